/* Artifacts, assembled from their chunks. */
#include "a2a/agent_internal.h"
#include "base/mem.h"

/* A checked chunk. Views into `memory` and the caller's document. */
typedef struct chunk {
    arena memory;
    bay_str text;
    bay_str id;
    bay_str parts; /* without the brackets */
    buf head;
} chunk;

void agent_artifact_fini(agent_artifact *self)
{
    mem_free(self->head);
    buf_fini(&self->parts);
    agent_overflow_unref(self->overflow);
}

static void chunk_fini(chunk *self)
{
    buf_fini(&self->head);
    arena_fini(&self->memory);
}

/* A stored artifact is in normal form, and has more parts than one chunk may have. */
static bay_err chunk_read(chunk *self, json_val artifact, const agent_task *task)
{
    size_t most = agent_task_most(task);
    arena_init(&self->memory, SIZE_MAX);
    buf_init(&self->head, most);
    bay_err err = BAY_OK;
    if (!task->is_restoring) {
        err = a2a_normal_view(A2A_TYPE_ARTIFACT, artifact, most, &self->memory, &artifact, NULL);
    }
    if (err != BAY_OK) {
        return err == BAY_ERR_PROTOCOL ? BAY_ERR_INVALID : err;
    }
    self->text = json_raw(artifact);
    json_val parts = json_get(artifact, STR("parts"));
    err = json_str(json_get(artifact, STR("artifactId")), &self->memory, &self->id);
    bool has_parts = json_is(parts, JSON_ARRAY) && json_count(parts) > 0;
    if (err != BAY_OK || self->id.len > AGENT_ID_BYTES || !has_parts) {
        return err != BAY_OK && err != BAY_ERR_TYPE ? err : BAY_ERR_INVALID;
    }
    bay_str raw = json_raw(parts);
    self->parts = (bay_str){raw.at + 1, raw.len - 2};
    json_iter it = json_iter_of(artifact);
    while (json_next(&it)) {
        if (!json_str_eq(it.key, STR("parts"))) {
            if (self->head.len > 0) {
                buf_char(&self->head, ',');
            }
            buf_str(&self->head, json_raw(it.key));
            buf_char(&self->head, ':');
            buf_str(&self->head, json_raw(it.value));
        }
    }
    return self->head.err;
}

static agent_artifact *find(const agent_task *task, bay_str id)
{
    for (uint32_t i = 0; i < task->artifact_count; i++) {
        if (str_eq(task->artifacts[i].id, id)) {
            return &task->artifacts[i];
        }
    }
    return NULL;
}

static size_t bytes_of(const agent_artifact *self)
{
    return sizeof(*self) + self->head_len + self->id.len + self->parts.len;
}

/* Room in the array for one more. */
static bay_err grow(agent_task *task)
{
    if (task->artifact_count >= task->of->limits.artifacts && !task->is_restoring) {
        return BAY_ERR_LIMIT;
    }
    if (task->artifact_count < task->artifact_cap) {
        return BAY_OK;
    }
    uint32_t cap = task->artifact_cap == 0 ? 1 : task->artifact_cap * 2;
    agent_artifact *artifacts = mem_resize(task->artifacts, cap * sizeof(*artifacts));
    if (artifacts == NULL) {
        return BAY_ERR_NOMEM;
    }
    task->artifacts = artifacts;
    task->artifact_cap = cap;
    return BAY_OK;
}

static bay_err build(const chunk *from, size_t most, agent_artifact *out)
{
    agent_artifact made = {.head_len = from->head.len};
    made.head = mem_alloc(from->head.len + from->id.len);
    if (made.head == NULL) {
        return BAY_ERR_NOMEM;
    }
    memcpy(made.head, from->head.at, from->head.len);
    if (from->id.len > 0) {
        memcpy(made.head + from->head.len, from->id.at, from->id.len);
    }
    made.id = (bay_str){made.head + from->head.len, from->id.len};
    buf_init(&made.parts, most);
    buf_str(&made.parts, from->parts);
    if (made.parts.err != BAY_OK) {
        bay_err err = made.parts.err;
        agent_artifact_fini(&made);
        return err;
    }
    *out = made;
    return BAY_OK;
}

/* The event of the change just made. */
static bay_err agent_artifact_tell(agent_task *task, const chunk *from, bool append,
                                   bool is_last_chunk)
{
    if (!agent_task_has_readers(task)) {
        task->dropped = task->revision;
        return BAY_OK;
    }
    buf out = agent_buffer(task->of);
    agent_write_artifact_event(task, from->text, append, is_last_chunk, &out);
    bay_err err = out.err == BAY_OK ? agent_event_add(task, buf_view(&out), false) : out.err;
    agent_buffer_back(task->of, &out);
    return err;
}

/* Nothing more is appended: unused memory is freed. */
static void fit(agent_artifact *self)
{
    char *at =
        self->parts.cap > self->parts.len ? mem_resize(self->parts.at, self->parts.len) : NULL;
    if (at != NULL) {
        self->parts.at = at;
        self->parts.cap = self->parts.len;
    }
}

/* An empty part, because a chunk must have one, that only carries lastChunk. */
static bool adds_nothing(const chunk *from, bool is_last_chunk)
{
    return is_last_chunk && str_eq(from->parts, STR("{\"text\":\"\"}"));
}

static bay_err append_to(agent_task *task, agent_artifact *artifact, const chunk *from,
                         bool is_last_chunk)
{
    size_t len = artifact->parts.len;
    size_t added = adds_nothing(from, is_last_chunk) ? 0 : from->parts.len + 1;
    bay_err err = agent_task_room(task, added);
    if (err != BAY_OK) {
        return err;
    }
    if (added > 0) {
        buf_char(&artifact->parts, ',');
        buf_str(&artifact->parts, from->parts);
    }
    err = artifact->parts.err;
    task->revision++;
    if (err == BAY_OK) {
        err = agent_artifact_tell(task, from, true, is_last_chunk);
    }
    if (err != BAY_OK) {
        task->revision--;
        artifact->parts.len = len;
        artifact->parts.err = BAY_OK;
        return err;
    }
    agent_task_count(task, added, 0);
    artifact->is_complete = is_last_chunk;
    if (is_last_chunk) {
        fit(artifact);
    }
    return BAY_OK;
}

static bay_err replace(agent_task *task, agent_artifact *artifact, const chunk *from,
                       bool is_last_chunk)
{
    agent_artifact made;
    bay_err err = artifact == NULL ? grow(task) : BAY_OK;
    if (err == BAY_OK) {
        err = build(from, agent_task_most(task), &made);
    }
    if (err != BAY_OK) {
        return err;
    }
    err = agent_task_room(task, bytes_of(&made));
    task->revision++;
    if (err == BAY_OK) {
        err = agent_artifact_tell(task, from, false, is_last_chunk);
    }
    if (err != BAY_OK) {
        task->revision--;
        agent_artifact_fini(&made);
        return err;
    }
    made.is_complete = is_last_chunk;
    agent_task_count(task, bytes_of(&made), artifact != NULL ? bytes_of(artifact) : 0);
    if (artifact != NULL) {
        agent_artifact_fini(artifact);
        *artifact = made;
    } else {
        task->artifacts[task->artifact_count++] = made;
    }
    return BAY_OK;
}

bay_err agent_artifact_add(agent_task *self, json_val artifact, bool append, bool is_last_chunk)
{
    chunk from;
    bay_err err = chunk_read(&from, artifact, self);
    if (err == BAY_OK) {
        agent_artifact *known = find(self, from.id);
        if (append && known == NULL) {
            err = BAY_ERR_INVALID;
        } else if (append && known->is_complete) {
            err = BAY_ERR_STATE;
        } else {
            err = agent_task_open(self);
        }
        if (err == BAY_OK && append) {
            err = append_to(self, known, &from, is_last_chunk);
        } else if (err == BAY_OK) {
            err = replace(self, known, &from, is_last_chunk);
        }
    }
    chunk_fini(&from);
    if (err == BAY_OK) {
        agent_task_touch(self);
    }
    return err;
}

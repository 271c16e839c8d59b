/* What a receiver has not yet got of a task. */
#include "a2a_transport/link_stream_state.h"

#include "base/mem.h"
#include "base/str.h"
#include "json/build.h"

enum { SEEN_EVENT_BYTES = 64 << 20 };

void a2a_stream_state_init(a2a_stream_state *self)
{
    *self = (a2a_stream_state){0};
    buf_init(&self->task_id, A2A_STREAM_STATE_ID_BYTES);
}

void a2a_stream_state_fini(a2a_stream_state *self)
{
    buf_fini(&self->task_id);
    mem_free(self->artifacts);
    *self = (a2a_stream_state){0};
}

/* ---- remembering ----------------------------------------------------------------------------- */

bay_err a2a_stream_state_note_id(a2a_stream_state *self, json_val id)
{
    bay_str raw = json_raw(id);
    if (self->task_id.len > 0 || !json_is(id, JSON_STRING) || raw.len <= 2 ||
        raw.len > A2A_STREAM_STATE_ID_BYTES) {
        return BAY_OK;
    }
    buf_str(&self->task_id, raw);
    return self->task_id.err;
}

/* The hash of a status in normal form; sets `out_state`, too. */
static uint64_t status_hash(json_val status, a2a_state *out_state)
{
    enum { AT_STATE, AT_TIME, AT_MESSAGE, AT_COUNT };
    static const bay_str names[] = {STR_INIT("state"), STR_INIT("timestamp"), STR_INIT("message")};
    json_val found[AT_COUNT];
    bay_str name = {NULL, 0};
    if (json_pick(status, names, AT_COUNT, found, NULL) != BAY_OK) {
        *out_state = a2a_state_of(name);
        return 0;
    }
    (void)json_str_plain(found[AT_STATE], &name);
    *out_state = a2a_state_of(name);
    uint64_t hash = str_hash(json_raw(found[AT_TIME]), (uint64_t)*out_state + 1);
    return str_hash(json_raw(json_get(found[AT_MESSAGE], STR("messageId"))), hash);
}

static void note_status(a2a_stream_state *self, json_val status)
{
    self->status = status_hash(status, &self->state);
}

static a2a_stream_state_artifact *find_artifact(a2a_stream_state *self, uint64_t id)
{
    for (size_t i = self->count; i > 0; i--) { /* the newest is the most frequent */
        if (self->artifacts[i - 1].id == id) {
            return &self->artifacts[i - 1];
        }
    }
    return NULL;
}

/* NULL with BAY_OK in *err: too many of them. */
static a2a_stream_state_artifact *add_artifact(a2a_stream_state *self, uint64_t id, bay_err *err)
{
    *err = BAY_OK;
    if (self->count >= A2A_STREAM_STATE_ARTIFACTS) {
        return NULL;
    }
    if (self->count == self->cap) {
        size_t cap = self->cap == 0 ? 2 : self->cap * 2;
        a2a_stream_state_artifact *at = mem_resize(self->artifacts, cap * sizeof(*at));
        if (at == NULL) {
            *err = BAY_ERR_NOMEM;
            return NULL;
        }
        self->artifacts = at;
        self->cap = cap;
    }
    self->artifacts[self->count] = (a2a_stream_state_artifact){.id = id};
    return &self->artifacts[self->count++];
}

static uint64_t artifact_key(json_val artifact)
{
    return str_hash(json_raw(json_get(artifact, STR("artifactId"))), 1);
}

static bay_err note_artifact(a2a_stream_state *self, json_val artifact, bool appends)
{
    bay_err err = BAY_OK;
    uint64_t id = artifact_key(artifact);
    a2a_stream_state_artifact *known = find_artifact(self, id);
    if (known == NULL) {
        known = add_artifact(self, id, &err);
    }
    if (known == NULL) {
        return err;
    }
    if (!appends) {
        known->content = 0;
        known->parts = 0;
    }
    json_iter parts = json_iter_of(json_get(artifact, STR("parts")));
    while (json_next(&parts)) {
        known->content = str_hash(json_raw(parts.value), known->content);
        known->parts++;
    }
    return BAY_OK;
}

static bay_err note_task(a2a_stream_state *self, json_val task)
{
    bay_err err = a2a_stream_state_note_id(self, json_get(task, STR("id")));
    note_status(self, json_get(task, STR("status")));
    self->count = 0; /* a whole task replaces what was reported */
    json_iter artifacts = json_iter_of(json_get(task, STR("artifacts")));
    while (err == BAY_OK && json_next(&artifacts)) {
        err = note_artifact(self, artifacts.value, false);
    }
    return err;
}

bay_err a2a_stream_state_note(a2a_stream_state *self, json_val event)
{
    static const bay_str names[] = {STR_INIT("task"), STR_INIT("message"), STR_INIT("statusUpdate"),
                                    STR_INIT("artifactUpdate")};
    json_val found[4];
    bay_err err = json_pick(event, names, 4, found, NULL);
    if (err != BAY_OK) {
        return err;
    }
    if (!json_is(found[0], JSON_MISSING)) {
        return note_task(self, found[0]);
    }
    if (!json_is(found[1], JSON_MISSING)) {
        self->is_message = true;
        return BAY_OK;
    }
    if (!json_is(found[2], JSON_MISSING)) {
        note_status(self, json_get(found[2], STR("status")));
        return a2a_stream_state_note_id(self, json_get(found[2], STR("taskId")));
    }
    err = a2a_stream_state_note_id(self, json_get(found[3], STR("taskId")));
    return err == BAY_OK ? note_artifact(self, json_get(found[3], STR("artifact")),
                                         json_true(json_get(found[3], STR("append"))))
                         : err;
}

/* ---- telling the rest ------------------------------------------------------------------------ */

static void write_ids(json_writer *out, json_val task)
{
    json_key_lit(out, "taskId");
    json_put_val(out, json_get(task, STR("id")));
    json_val context = json_get(task, STR("contextId"));
    json_key_lit(out, "contextId");
    if (json_is(context, JSON_STRING)) {
        json_put_val(out, context);
    } else {
        json_put_str(out, STR(""));
    }
}

/* The artifact with its parts from `from` on. */
static void write_artifact(json_writer *out, json_val artifact, size_t from)
{
    static const bay_str parts_name = STR_INIT("parts");
    json_open_object(out);
    json_put_members(out, artifact, &parts_name, 1);
    json_key_lit(out, "parts");
    json_open_array(out);
    json_iter parts = json_iter_of(json_get(artifact, parts_name));
    for (size_t i = 0; json_next(&parts); i++) {
        if (i >= from) {
            json_put_val(out, parts.value);
        }
    }
    json_close_array(out);
    json_close_object(out);
}

static void write_artifact_event(json_writer *out, json_val task, json_val artifact, size_t from)
{
    json_open_object(out);
    json_key_lit(out, "artifactUpdate");
    json_open_object(out);
    write_ids(out, task);
    json_key_lit(out, "artifact");
    write_artifact(out, artifact, from);
    if (from > 0) {
        json_key_lit(out, "append");
        json_put_bool(out, true);
    }
    json_close_object(out);
    json_close_object(out);
}

static void write_status_event(json_writer *out, json_val task)
{
    json_open_object(out);
    json_key_lit(out, "statusUpdate");
    json_open_object(out);
    write_ids(out, task);
    json_key_lit(out, "status");
    json_put_val(out, json_get(task, STR("status")));
    json_close_object(out);
    json_close_object(out);
}

/* How many parts of `artifact` were told already; all of them: SIZE_MAX. */
static size_t parts_told(const a2a_stream_state_artifact *known, json_val artifact)
{
    if (known == NULL) {
        return 0;
    }
    uint64_t content = 0;
    json_iter parts = json_iter_of(json_get(artifact, STR("parts")));
    size_t count = 0;
    while (count < known->parts && json_next(&parts)) {
        content = str_hash(json_raw(parts.value), content);
        count++;
    }
    if (count < known->parts || content != known->content) {
        return 0;
    }
    return json_next(&parts) ? count : SIZE_MAX;
}

static bay_err tell_artifact(a2a_stream_state *self, json_val task, json_val artifact,
                             a2a_stream_state_tell tell, void *user)
{
    size_t from = parts_told(find_artifact(self, artifact_key(artifact)), artifact);
    if (from == SIZE_MAX) {
        return BAY_OK;
    }
    json_val event;
    json_builder made;
    write_artifact_event(json_builder_init(&made, NULL, SEEN_EVENT_BYTES), task, artifact, from);
    bay_err err = json_builder_view(&made, &event);
    if (err == BAY_OK) {
        err = note_artifact(self, artifact, false); /* then all of it is reported */
    }
    if (err == BAY_OK) {
        err = tell(user, event);
    }
    json_builder_drop(&made);
    return err;
}

static bay_err tell_status(a2a_stream_state *self, json_val task, a2a_stream_state_tell tell,
                           void *user)
{
    json_val status = json_get(task, STR("status"));
    a2a_state state;
    if (self->status == status_hash(status, &state)) {
        return BAY_OK;
    }
    json_val event;
    json_builder made;
    write_status_event(json_builder_init(&made, NULL, SEEN_EVENT_BYTES), task);
    bay_err err = json_builder_view(&made, &event);
    if (err == BAY_OK) {
        note_status(self, status);
        err = tell(user, event);
    }
    json_builder_drop(&made);
    return err;
}

bay_err a2a_stream_state_difference(a2a_stream_state *self, json_val task,
                                    a2a_stream_state_tell tell, void *user)
{
    bay_err err = a2a_stream_state_note_id(self, json_get(task, STR("id")));
    json_iter artifacts = json_iter_of(json_get(task, STR("artifacts")));
    while (err == BAY_OK && json_next(&artifacts)) {
        err = tell_artifact(self, task, artifacts.value, tell, user);
    }
    return err == BAY_OK ? tell_status(self, task, tell, user) : err;
}

bool a2a_stream_state_was_told(a2a_stream_state *self, json_val event)
{
    json_val status = json_get(json_get(event, STR("statusUpdate")), STR("status"));
    if (!json_is(status, JSON_MISSING)) {
        a2a_state state;
        return self->status == status_hash(status, &state);
    }
    json_val update = json_get(event, STR("artifactUpdate"));
    json_val artifact = json_get(update, STR("artifact"));
    return !json_is(artifact, JSON_MISSING) && !json_true(json_get(update, STR("append"))) &&
           !json_true(json_get(update, STR("lastChunk"))) &&
           parts_told(find_artifact(self, artifact_key(artifact)), artifact) == SIZE_MAX;
}

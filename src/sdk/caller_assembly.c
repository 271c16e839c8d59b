/* A task put together from the events of its stream: what GetTask would say, as far as it was told.
 * Everything is kept as it stood on the wire. */
#include "base/mem.h"
#include "base/str.h"
#include "sdk/caller_parts.h"

enum { ASSEMBLY_ARTIFACTS = 10000 /* of one task; further ones are BAY_ERR_LIMIT */ };

typedef struct assembled {
    buf id;      /* raw */
    buf members; /* without parts, each followed by a comma */
    buf parts;   /* each followed by a comma */
} assembled;

struct caller_assembly {
    buf task;   /* members but status and artifacts, each followed by a comma */
    buf status; /* raw */
    buf message;
    assembled *artifacts;
    size_t count;
    size_t cap;
    size_t bytes; /* of all artifacts */
};

caller_assembly *sdk_assembly_new(void)
{
    caller_assembly *self = mem_zalloc(sizeof(*self));
    if (self != NULL) {
        buf_init(&self->task, CALLER_RESPONSE_BYTES);
        buf_init(&self->status, CALLER_RESPONSE_BYTES);
        buf_init(&self->message, CALLER_RESPONSE_BYTES);
    }
    return self;
}

static void forget_artifacts(caller_assembly *self)
{
    for (size_t i = 0; i < self->count; i++) {
        buf_fini(&self->artifacts[i].id);
        buf_fini(&self->artifacts[i].members);
        buf_fini(&self->artifacts[i].parts);
    }
    self->count = 0;
    self->bytes = 0;
}

static size_t bytes_of(const assembled *one)
{
    return one->id.len + one->members.len + one->parts.len;
}

void sdk_assembly_free(caller_assembly *self)
{
    if (self == NULL) {
        return;
    }
    forget_artifacts(self);
    mem_free(self->artifacts);
    buf_fini(&self->task);
    buf_fini(&self->status);
    buf_fini(&self->message);
    mem_free(self);
}

/* ---- taking ---------------------------------------------------------------------------------- */

static void put_value(buf *out, bay_str raw)
{
    buf_str(out, raw);
    buf_char(out, ',');
}

static void put_members(buf *out, json_val object, bay_str but, bay_str nor)
{
    json_iter members = json_iter_of(object);
    while (json_next(&members)) {
        if (!json_str_eq(members.key, but) && !json_str_eq(members.key, nor)) {
            buf_str(out, json_raw(members.key));
            buf_char(out, ':');
            put_value(out, json_raw(members.value));
        }
    }
}

static bay_err replace(buf *out, json_val value)
{
    buf_clear(out);
    buf_str(out, json_raw(value));
    return out->err;
}

/* The one of that id; `*out_is_new`: it was not there. NULL: no memory, or too many. */
static assembled *artifact_of(caller_assembly *self, bay_str id, bool *out_is_new)
{
    *out_is_new = false;
    for (size_t i = self->count; i > 0; i--) {
        if (str_eq(buf_view(&self->artifacts[i - 1].id), id)) {
            return &self->artifacts[i - 1];
        }
    }
    if (self->count == self->cap) {
        size_t cap = self->cap == 0 ? 2 : self->cap * 2;
        assembled *at =
            cap <= ASSEMBLY_ARTIFACTS * 2 ? mem_resize(self->artifacts, cap * sizeof(*at)) : NULL;
        if (at == NULL) {
            return NULL;
        }
        self->artifacts = at;
        self->cap = cap;
    }
    assembled *made = &self->artifacts[self->count++];
    buf_init(&made->id, CALLER_RESPONSE_BYTES);
    buf_init(&made->members, CALLER_RESPONSE_BYTES);
    buf_init(&made->parts, CALLER_RESPONSE_BYTES);
    *out_is_new = true;
    return made;
}

static bay_err take_artifact(caller_assembly *self, json_val artifact, bool appends)
{
    bool is_new = false;
    bay_str id = json_raw(json_get(artifact, STR("artifactId")));
    assembled *one = artifact_of(self, id, &is_new);
    if (one == NULL) {
        return self->count >= ASSEMBLY_ARTIFACTS ? BAY_ERR_LIMIT : BAY_ERR_NOMEM;
    }
    self->bytes -= bytes_of(one);
    if (is_new || !appends) {
        buf_clear(&one->id);
        buf_str(&one->id, id);
        buf_clear(&one->members);
        put_members(&one->members, artifact, STR("parts"), STR("parts"));
        buf_clear(&one->parts);
    }
    json_iter parts = json_iter_of(json_get(artifact, STR("parts")));
    while (json_next(&parts)) {
        put_value(&one->parts, json_raw(parts.value));
    }
    self->bytes += bytes_of(one);
    bay_err err = one->parts.err != BAY_OK ? one->parts.err : one->members.err;
    err = one->id.err != BAY_OK ? one->id.err : err;
    return err == BAY_OK && self->bytes > CALLER_RESPONSE_BYTES ? BAY_ERR_LIMIT : err;
}

static bay_err take_task(caller_assembly *self, json_val task)
{
    forget_artifacts(self);
    buf_clear(&self->task);
    put_members(&self->task, task, STR("status"), STR("artifacts"));
    bay_err err = self->task.err == BAY_OK ? replace(&self->status, json_get(task, STR("status")))
                                           : self->task.err;
    json_iter artifacts = json_iter_of(json_get(task, STR("artifacts")));
    while (err == BAY_OK && json_next(&artifacts)) {
        err = take_artifact(self, artifacts.value, false);
    }
    return err;
}

/* A stream that began without its task. */
static bay_err take_ids(caller_assembly *self, json_val event)
{
    json_val id = json_get(event, STR("taskId"));
    json_val context = json_get(event, STR("contextId"));
    if (self->task.len > 0 || !json_is(id, JSON_STRING)) {
        return BAY_OK;
    }
    buf_lit(&self->task, "\"id\":");
    put_value(&self->task, json_raw(id));
    if (json_is(context, JSON_STRING)) {
        buf_lit(&self->task, "\"contextId\":");
        put_value(&self->task, json_raw(context));
    }
    return self->task.err;
}

bay_err sdk_assembly_add(caller_assembly *self, json_val event)
{
    json_val task = json_get(event, STR("task"));
    json_val message = json_get(event, STR("message"));
    json_val status = json_get(event, STR("statusUpdate"));
    json_val artifact = json_get(event, STR("artifactUpdate"));
    if (!json_is(task, JSON_MISSING)) {
        return take_task(self, task);
    }
    if (!json_is(message, JSON_MISSING)) {
        return replace(&self->message, message);
    }
    bay_err err = take_ids(self, json_is(status, JSON_MISSING) ? artifact : status);
    if (err != BAY_OK) {
        return err;
    }
    if (!json_is(status, JSON_MISSING)) {
        return replace(&self->status, json_get(status, STR("status")));
    }
    return take_artifact(self, json_get(artifact, STR("artifact")),
                         json_true(json_get(artifact, STR("append"))));
}

/* ---- giving ---------------------------------------------------------------------------------- */

static bay_str without_comma(const buf *members)
{
    return (bay_str){members->at, members->len > 0 ? members->len - 1 : 0};
}

static void write_artifacts(const caller_assembly *self, buf *out)
{
    if (self->count == 0) {
        return;
    }
    buf_lit(out, ",\"artifacts\":[");
    for (size_t i = 0; i < self->count; i++) {
        const assembled *one = &self->artifacts[i];
        buf_str(out, i > 0 ? STR(",{") : STR("{"));
        buf_str(out, buf_view(&one->members));
        buf_lit(out, "\"parts\":[");
        buf_str(out, without_comma(&one->parts));
        buf_lit(out, "]}");
    }
    buf_char(out, ']');
}

bay_err sdk_assembly_write(const caller_assembly *self, buf *out)
{
    if (self->task.len == 0 && self->message.len == 0) {
        return BAY_ERR_NOT_FOUND;
    }
    if (self->message.len > 0) {
        buf_lit(out, "{\"message\":");
        buf_str(out, buf_view(&self->message));
        buf_char(out, '}');
        return out->err;
    }
    buf_lit(out, "{\"task\":{");
    buf_str(out, buf_view(&self->task));
    buf_lit(out, "\"status\":");
    buf_str(out, self->status.len > 0 ? buf_view(&self->status)
                                      : STR("{\"state\":\"TASK_STATE_UNSPECIFIED\"}"));
    write_artifacts(self, out);
    buf_lit(out, "}}");
    return out->err;
}

/* A task put together from the events of its stream: what GetTask would say, as far as it was told.
 * Values stay as they were on the wire. */
#include "base/mem.h"
#include "base/str.h"
#include "sdk/caller_parts.h"

enum { ASSEMBLY_ARTIFACTS = 10000 /* of one task; further ones are BAY_ERR_LIMIT */ };

typedef struct assembled {
    json_doc *members;  /* an object: all but the parts */
    json_builder parts; /* an array that stays open */
} assembled;

struct caller_assembly {
    json_doc *task;    /* an object: all but status and artifacts; NULL: nothing was told */
    json_doc *status;  /* NULL: none */
    json_doc *message; /* NULL: none */
    assembled **artifacts;
    size_t count;
    size_t cap;
    size_t bytes;  /* of all artifacts */
    size_t memory; /* that they take, with their indexes */
};

caller_assembly *sdk_assembly_new(void)
{
    return mem_zalloc(sizeof(caller_assembly));
}

static void forget_artifacts(caller_assembly *self)
{
    for (size_t i = 0; i < self->count; i++) {
        mem_free(self->artifacts[i]->members);
        json_builder_drop(&self->artifacts[i]->parts);
        mem_free(self->artifacts[i]);
    }
    self->count = 0;
    self->bytes = self->memory = 0;
}

void sdk_assembly_free(caller_assembly *self)
{
    if (self == NULL) {
        return;
    }
    forget_artifacts(self);
    mem_free(self->artifacts);
    mem_free(self->task);
    mem_free(self->status);
    mem_free(self->message);
    mem_free(self);
}

/* ---- taking ---------------------------------------------------------------------------------- */

static bay_err replace(json_doc **place, json_val value)
{
    json_doc *copy = NULL;
    bay_err err = json_is(value, JSON_MISSING) ? BAY_OK : json_clone(value, &copy);
    if (err == BAY_OK) {
        mem_free(*place);
        *place = copy;
    }
    return err;
}

/* The same, of an object without two of its members. */
static bay_err replace_members(json_doc **place, json_val object, const bay_str but[2])
{
    json_builder made;
    json_val members;
    json_writer *to = json_builder_init(&made, NULL, CALLER_RESPONSE_BYTES);
    json_open_object(to);
    json_put_members(to, object, but, 2);
    json_close_object(to);
    bay_err err = json_builder_view(&made, &members);
    err = err == BAY_OK ? replace(place, members) : err;
    json_builder_drop(&made);
    return err;
}

/* Adds what an artifact takes, or takes it away. */
static void count_bytes(caller_assembly *self, const assembled *one, bool is_added)
{
    bool has_members = one->members != NULL;
    size_t bytes = one->parts.text.len + (has_members ? one->members->text.len : 0);
    size_t memory = json_builder_clone_bytes(&one->parts) +
                    (has_members ? json_clone_bytes(json_root(one->members)) : 0);
    self->bytes = is_added ? self->bytes + bytes : self->bytes - bytes;
    self->memory = is_added ? self->memory + memory : self->memory - memory;
}

/* NULL: no memory, or too many. */
static assembled *artifact_new(caller_assembly *self)
{
    if (self->count == self->cap) {
        size_t cap = self->cap == 0 ? 2 : self->cap * 2;
        assembled **at =
            cap <= ASSEMBLY_ARTIFACTS * 2 ? mem_resize(self->artifacts, cap * sizeof(*at)) : NULL;
        if (at == NULL) {
            return NULL;
        }
        self->artifacts = at;
        self->cap = cap;
    }
    assembled *made = mem_zalloc(sizeof(*made));
    if (made != NULL) {
        self->artifacts[self->count++] = made;
        count_bytes(self, made, true);
    }
    return made;
}

/* The one of that id; `*out_is_new`: it was not there. NULL: no memory, or too many. */
static assembled *artifact_of(caller_assembly *self, json_val id, bool *out_is_new)
{
    *out_is_new = false;
    for (size_t i = self->count; i > 0; i--) {
        assembled *one = self->artifacts[i - 1];
        if (json_str_same(json_get(json_root(one->members), STR("artifactId")), id)) {
            return one;
        }
    }
    *out_is_new = true;
    return artifact_new(self);
}

static bay_err take_artifact(caller_assembly *self, json_val artifact, bool appends)
{
    static const bay_str parts_key[2] = {STR_INIT("parts"), STR_INIT("parts")};
    bool is_new = false;
    bay_err err = BAY_OK;
    assembled *one = artifact_of(self, json_get(artifact, STR("artifactId")), &is_new);
    if (one == NULL) {
        return self->count >= ASSEMBLY_ARTIFACTS ? BAY_ERR_LIMIT : BAY_ERR_NOMEM;
    }
    count_bytes(self, one, false);
    if (is_new || !appends) {
        json_builder_drop(&one->parts);
        json_open_array(json_builder_init(&one->parts, NULL, CALLER_RESPONSE_BYTES));
        err = replace_members(&one->members, artifact, parts_key);
    }
    json_iter parts = json_iter_of(json_get(artifact, STR("parts")));
    while (json_next(&parts)) {
        json_put_val(&one->parts.writer, parts.value);
    }
    count_bytes(self, one, true);
    err = err == BAY_OK ? one->parts.text.err : err;
    bool is_large = self->bytes > CALLER_RESPONSE_BYTES || self->memory > CALLER_RESPONSE_MEMORY;
    return err == BAY_OK && is_large ? BAY_ERR_LIMIT : err;
}

static bay_err take_task(caller_assembly *self, json_val task)
{
    static const bay_str own[2] = {STR_INIT("status"), STR_INIT("artifacts")};
    forget_artifacts(self);
    bay_err err = replace_members(&self->task, task, own);
    if (err == BAY_OK) {
        err = replace(&self->status, json_get(task, STR("status")));
    }
    json_iter artifacts = json_iter_of(json_get(task, STR("artifacts")));
    while (err == BAY_OK && json_next(&artifacts)) {
        err = take_artifact(self, artifacts.value, false);
    }
    return err;
}

/* A stream that began without its task. */
static bay_err take_ids(caller_assembly *self, json_val event)
{
    json_builder made;
    json_val ids;
    json_val id = json_get(event, STR("taskId"));
    json_val context = json_get(event, STR("contextId"));
    if (self->task != NULL || !json_is(id, JSON_STRING)) {
        return BAY_OK;
    }
    json_writer *to = json_builder_init(&made, NULL, CALLER_RESPONSE_BYTES);
    json_open_object(to);
    json_key_lit(to, "id");
    json_put_val(to, id);
    if (json_is(context, JSON_STRING)) {
        json_key_lit(to, "contextId");
        json_put_val(to, context);
    }
    json_close_object(to);
    bay_err err = json_builder_view(&made, &ids);
    err = err == BAY_OK ? replace(&self->task, ids) : err;
    json_builder_drop(&made);
    return err;
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

static void write_artifacts(const caller_assembly *self, json_writer *out)
{
    if (self->count == 0) {
        return;
    }
    json_key_lit(out, "artifacts");
    json_open_array(out);
    for (size_t i = 0; i < self->count; i++) {
        json_open_object(out);
        json_put_members(out, json_root(self->artifacts[i]->members), NULL, 0);
        json_key_lit(out, "parts");
        json_open_array(out);
        json_put_partial(out, &self->artifacts[i]->parts);
        json_close_array(out);
        json_close_object(out);
    }
    json_close_array(out);
}

bay_err sdk_assembly_write(const caller_assembly *self, json_writer *out)
{
    if (self->task == NULL && self->message == NULL) {
        return BAY_ERR_NOT_FOUND;
    }
    json_open_object(out);
    if (self->message != NULL) {
        json_key_lit(out, "message");
        json_put_val(out, json_root(self->message));
    } else {
        json_key_lit(out, "task");
        json_open_object(out);
        json_put_members(out, json_root(self->task), NULL, 0);
        json_key_lit(out, "status");
        if (self->status != NULL) {
            json_put_val(out, json_root(self->status));
        } else {
            json_open_object(out);
            json_key_lit(out, "state");
            json_put_str(out, STR("TASK_STATE_UNSPECIFIED"));
            json_close_object(out);
        }
        write_artifacts(self, out);
        json_close_object(out);
    }
    json_close_object(out);
    return out->out->err;
}

/* Artifacts while they are being made: one part is held back, so that the last one can say that it
 * is. Everything here is under the lock of the task. */
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "sdk/agent_task.h"
#include "sdk/format.h"
#include "sdk/json_parts.h"

static void part_free(artifact_part *self)
{
    if (self != NULL) {
        json_builder_drop(&self->made);
        mem_free(self);
    }
}

static void artifact_free(bay_artifact *self)
{
    mem_free(self->name);
    mem_free(self->media_type);
    mem_free(self->description);
    part_free(self->held);
    mem_free(self);
}

void sdk_artifacts_free(bay_task *self)
{
    while (self->artifacts != NULL) {
        bay_artifact *next = self->artifacts->next;
        artifact_free(self->artifacts);
        self->artifacts = next;
    }
}

static char *dup_text(bay_str text, bool *is_short)
{
    char *copy = text.at != NULL ? mem_dup(text.at, text.len) : NULL;
    *is_short = *is_short || (text.at != NULL && copy == NULL);
    return copy;
}

bay_artifact *bay_task_artifact_str(bay_task *task, bay_str name, bay_str media_type)
{
    bay_artifact *self = task != NULL ? mem_zalloc(sizeof(*self)) : NULL;
    if (self == NULL) {
        return NULL;
    }
    bool is_short = false;
    self->task = task;
    self->name = dup_text(name, &is_short);
    self->media_type = dup_text(media_type, &is_short);
    rand_uuid(self->id);
    if (is_short) {
        artifact_free(self);
        return NULL;
    }
    pthread_mutex_lock(&task->lock);
    bay_artifact **last = &task->artifacts; /* those made first are closed first */
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = self;
    pthread_mutex_unlock(&task->lock);
    return self;
}

bay_artifact *bay_task_artifact(bay_task *task, const char *name, const char *media_type)
{
    return bay_task_artifact_str(task, str_of(name), str_of(media_type));
}

void bay_artifact_describe_str(bay_artifact *artifact, bay_str description)
{
    bool is_short = false; /* then there is no description */
    if (artifact != NULL) {
        pthread_mutex_lock(&artifact->task->lock);
        mem_free(artifact->description);
        artifact->description = dup_text(description, &is_short);
        pthread_mutex_unlock(&artifact->task->lock);
    }
}

void bay_artifact_describe(bay_artifact *artifact, const char *description)
{
    bay_artifact_describe_str(artifact, str_of(description));
}

/* ---- chunks ---------------------------------------------------------------------------------- */

/* Without a part: one with an empty text. */
static void write_chunk(const bay_artifact *self, const artifact_part *part, json_writer *out)
{
    json_open_object(out);
    json_key_lit(out, "artifactId");
    json_put_str(out, str_of(self->id));
    if (!self->is_begun && self->name != NULL) {
        json_key_lit(out, "name");
        json_put_str(out, str_of(self->name));
    }
    if (!self->is_begun && self->description != NULL) {
        json_key_lit(out, "description");
        json_put_str(out, str_of(self->description));
    }
    json_key_lit(out, "parts");
    json_open_array(out);
    if (part != NULL) {
        json_put_val(out, part->value);
    } else {
        sdk_part_text(out, STR(""), STR(""), STR(""));
    }
    json_close_array(out);
    json_close_object(out);
}

static bay_err send_part(bay_artifact *self, const artifact_part *part, bool is_last)
{
    json_builder chunk;
    move_request request = {.kind = MOVE_ARTIFACT, .is_append = self->is_begun, .is_last = is_last};
    write_chunk(self, part, json_builder_init(&chunk, NULL, TASK_MOVE_BYTES));
    bay_err err = json_builder_view(&chunk, &request.value);
    if (err == BAY_OK) {
        err = sdk_turn_queue(self->task, &request);
    }
    self->is_begun = self->is_begun || err == BAY_OK;
    json_builder_drop(&chunk);
    return err;
}

static bay_err send_held(bay_artifact *self, bool is_last)
{
    bay_err err = self->held != NULL ? send_part(self, self->held, is_last) : BAY_OK;
    if (err == BAY_OK) {
        part_free(self->held);
        self->held = NULL;
    }
    return err;
}

/* Behind a chunk that went out by a flush nothing is left to say "last" but an empty one. */
static bay_err close_locked(bay_artifact *self)
{
    if (self->is_closed) {
        return BAY_ERR_STATE;
    }
    bay_err err = BAY_OK;
    if (self->held != NULL) {
        err = send_held(self, true);
    } else if (self->is_begun) {
        err = send_part(self, NULL, true);
    }
    self->is_closed = err == BAY_OK;
    return err;
}

bay_err sdk_artifacts_close(bay_task *self)
{
    bay_err err = BAY_OK;
    for (bay_artifact *at = self->artifacts; at != NULL && err == BAY_OK; at = at->next) {
        err = at->is_closed ? BAY_OK : close_locked(at);
    }
    return err;
}

/* `content`: of data it is missing, and `data` is the value. */
static void write_part(const bay_artifact *self, bay_part kind, bay_str content, json_val data,
                       json_writer *out)
{
    bay_str name = kind == BAY_PART_TEXT ? STR("") : str_of(self->name);
    bay_str media_type = str_of(self->media_type);
    switch (kind) {
    case BAY_PART_TEXT:
        sdk_part_text(out, content, name, media_type);
        break;
    case BAY_PART_BYTES:
        sdk_part_bytes(out, content, name, media_type);
        break;
    case BAY_PART_URL:
        sdk_part_url(out, content, name, media_type);
        break;
    default:
        sdk_part_data(out, data, STR(""), media_type);
    }
}

static bay_err part_new(const bay_artifact *of, bay_part kind, bay_str content, json_val data,
                        artifact_part **out)
{
    artifact_part *self = mem_alloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    json_writer *to = json_builder_init(&self->made, NULL, TASK_MOVE_BYTES);
    write_part(of, kind, content, data, to);
    bay_err err = json_builder_view(&self->made, &self->value);
    if (err != BAY_OK) {
        part_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

static bay_err append_part(bay_artifact *self, bay_part kind, bay_str content, json_val data)
{
    artifact_part *part = NULL;
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    bay_err err = part_new(self, kind, content, data, &part);
    pthread_mutex_lock(&self->task->lock);
    if (err == BAY_OK && self->is_closed) {
        err = BAY_ERR_STATE;
    }
    bool is_over = self->task->is_answered || atomic_load(&self->task->is_cancelled);
    if (err == BAY_OK && is_over) {
        err = self->task->is_closed ? BAY_ERR_CLOSED : BAY_ERR_STATE;
    }
    bool has_held = self->held != NULL;
    if (err == BAY_OK) {
        err = send_held(self, false);
    }
    if (err == BAY_OK) {
        self->held = part;
        part = NULL;
    }
    pthread_mutex_unlock(&self->task->lock);
    part_free(part);
    return err == BAY_OK && has_held ? sdk_turn_kick(self->task) : err;
}

static bay_err append(bay_artifact *self, bay_part kind, bay_str content)
{
    return append_part(self, kind, content, JSON_NONE);
}

bay_err bay_artifact_append(bay_artifact *artifact, const char *text)
{
    return append(artifact, BAY_PART_TEXT, str_of(text));
}

bay_err bay_artifact_append_str(bay_artifact *artifact, bay_str text)
{
    return append(artifact, BAY_PART_TEXT, text);
}

bay_err bay_artifact_appendf(bay_artifact *artifact, const char *format, ...)
{
    buf text;
    va_list arguments;
    va_start(arguments, format);
    sdk_format(&text, format, arguments);
    va_end(arguments);
    bay_err err = text.err != BAY_OK ? text.err : append(artifact, BAY_PART_TEXT, buf_view(&text));
    buf_fini(&text);
    return err;
}

bay_err bay_artifact_append_bytes(bay_artifact *artifact, const void *bytes, size_t len)
{
    return append(artifact, BAY_PART_BYTES, (bay_str){bytes, len});
}

bay_err bay_artifact_append_url_str(bay_artifact *artifact, bay_str url)
{
    return append(artifact, BAY_PART_URL, url);
}

bay_err bay_artifact_append_url(bay_artifact *artifact, const char *url)
{
    return bay_artifact_append_url_str(artifact, str_of(url));
}

bay_err bay_artifact_append_data_json(bay_artifact *artifact, bay_json *json)
{
    json_val data;
    bay_err err = sdk_json_val(json, JSON_MISSING, &data);
    if (err == BAY_OK) {
        err = append_part(artifact, BAY_PART_DATA, (bay_str){NULL, 0}, data);
    } else if (err != BAY_ERR_NOMEM && err != BAY_ERR_LIMIT) {
        err = BAY_ERR_INVALID;
    }
    bay_json_free(json);
    return err;
}

bay_err bay_artifact_append_data(bay_artifact *artifact, const char *json)
{
    return bay_artifact_append_data_json(artifact, bay_json_of(json));
}

bay_err bay_artifact_flush(bay_artifact *artifact)
{
    if (artifact == NULL) {
        return BAY_ERR_NOMEM;
    }
    pthread_mutex_lock(&artifact->task->lock);
    bay_err err = artifact->is_closed ? BAY_ERR_STATE : send_held(artifact, false);
    pthread_mutex_unlock(&artifact->task->lock);
    return err == BAY_OK ? sdk_turn_kick(artifact->task) : err;
}

bay_err bay_artifact_close(bay_artifact *artifact)
{
    if (artifact == NULL) {
        return BAY_ERR_NOMEM;
    }
    pthread_mutex_lock(&artifact->task->lock);
    bay_err err = close_locked(artifact);
    pthread_mutex_unlock(&artifact->task->lock);
    return err == BAY_OK ? sdk_turn_kick(artifact->task) : err;
}

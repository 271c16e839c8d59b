/* Artifacts while they are being made. A chunk is queued at once; closing marks the one that still
 * waits for the loop as the last, and behind one that is gone sends an empty part, as A2A requires
 * one of each chunk (1.0, Artifact: parts). Everything here is under the lock of the task. */
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "sdk/agent_task.h"
#include "sdk/format.h"
#include "sdk/json_parts.h"

static void artifact_free(bay_artifact *self)
{
    mem_free(self->name);
    mem_free(self->media_type);
    mem_free(self->description);
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

/* A missing part: an empty text. */
static void write_chunk(const bay_artifact *self, json_val part, json_writer *out)
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
    if (!json_is(part, JSON_MISSING)) {
        json_put_val(out, part);
    } else {
        sdk_part_text(out, STR(""), STR(""), STR(""));
    }
    json_close_array(out);
    json_close_object(out);
}

static bay_err queue_chunk(bay_artifact *self, json_val part, bool is_last)
{
    json_builder chunk;
    move_request request = {
        .kind = MOVE_ARTIFACT, .artifact = self, .is_append = self->is_begun, .is_last = is_last};
    write_chunk(self, part, json_builder_init(&chunk, NULL, TASK_MOVE_BYTES));
    bay_err err = json_builder_view(&chunk, &request.value);
    if (err == BAY_OK) {
        err = sdk_turn_queue(self->task, &request);
    }
    self->is_begun = self->is_begun || err == BAY_OK;
    json_builder_drop(&chunk);
    return err;
}

static bay_err close_locked(bay_artifact *self)
{
    if (self->is_closed) {
        return BAY_ERR_STATE;
    }
    bay_err err = BAY_OK;
    if (self->waiting != NULL) {
        self->waiting->request.is_last = true;
    } else if (self->is_begun) {
        err = queue_chunk(self, JSON_NONE, true);
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

static bay_err queue_part(bay_artifact *self, json_val part)
{
    bay_task *task = self->task;
    bool is_over = task->is_answered || atomic_load(&task->is_cancelled);
    if (self->is_closed || is_over) {
        return !self->is_closed && task->is_closed ? BAY_ERR_CLOSED : BAY_ERR_STATE;
    }
    bay_err err = queue_chunk(self, part, false);
    if (err == BAY_OK) {
        sdk_turn_post(task);
    }
    return err;
}

/* On the loop's thread a part leaves when the handler appends the next one or returns, so that one
 * which is closed at once needs no empty part. */
static bay_err append_part(bay_artifact *self, bay_part kind, bay_str content, json_val data)
{
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    json_builder made;
    json_val part;
    write_part(self, kind, content, data, json_builder_init(&made, NULL, TASK_MOVE_BYTES));
    bay_err err = json_builder_view(&made, &part);
    if (err == BAY_OK) {
        err = sdk_turn_make(self->task);
    }
    if (err == BAY_OK) {
        pthread_mutex_lock(&self->task->lock);
        err = queue_part(self, part);
        pthread_mutex_unlock(&self->task->lock);
    }
    json_builder_drop(&made);
    return err;
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

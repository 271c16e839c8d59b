/* What came back from an agent: read once, then views into it. */
#include "base/mem.h"
#include "base/str.h"
#include "sdk/caller_parts.h"
#include "sdk/message_parts.h"

typedef struct response_artifact {
    bay_str id;
    bay_str name;
    bay_message parts;
} response_artifact;

struct bay_caller_reply {
    bay_caller_reply_kind kind;
    json_doc *doc;
    arena memory;          /* of views that had to be decoded */
    bay_document document; /* the same, to be read as values */
    json_val root;         /* the task, message, update … itself */
    bay_str task;
    bay_str context;
    bay_task_state state;
    bool has_message;
    bay_message message;
    bay_str message_text;
    bay_message *history;
    size_t history_count;
    response_artifact *artifacts;
    size_t artifact_count;
    json_val items;
    bay_str next_page;
    uint64_t event_id;
};

/* ---- reading --------------------------------------------------------------------------------- */

static bay_err take_text(bay_caller_reply *self, json_val value, bay_str *out)
{
    *out = STR("");
    return json_is(value, JSON_STRING) ? json_str(value, &self->memory, out) : BAY_OK;
}

static bay_err take_message(bay_caller_reply *self, json_val message)
{
    if (!json_is(message, JSON_OBJECT)) {
        return BAY_OK;
    }
    self->has_message = true;
    sdk_message_read(&self->message, message, &self->memory);
    self->message_text = bay_message_text(&self->message);
    return BAY_OK;
}

static bay_err take_status(bay_caller_reply *self, json_val status)
{
    bay_str name = {NULL, 0};
    (void)json_str_plain(json_get(status, STR("state")), &name);
    self->state = (bay_task_state)a2a_state_of(name);
    return take_message(self, json_get(status, STR("message")));
}

static bay_err take_artifact(bay_caller_reply *self, json_val artifact)
{
    response_artifact *one = &self->artifacts[self->artifact_count++];
    sdk_message_read(&one->parts, artifact, &self->memory);
    bay_err err = take_text(self, json_get(artifact, STR("artifactId")), &one->id);
    return err == BAY_OK ? take_text(self, json_get(artifact, STR("name")), &one->name) : err;
}

static bay_err reserve_artifacts(bay_caller_reply *self, size_t count)
{
    self->artifacts = arena_array(&self->memory, count + 1, sizeof(*self->artifacts));
    return self->artifacts != NULL ? BAY_OK : BAY_ERR_NOMEM;
}

static bay_err take_history(bay_caller_reply *self, json_val history)
{
    self->history = arena_array(&self->memory, json_count(history) + 1, sizeof(*self->history));
    if (self->history == NULL) {
        return BAY_ERR_NOMEM;
    }
    json_iter all = json_iter_of(history);
    while (json_next(&all)) {
        sdk_message_read(&self->history[self->history_count++], all.value, &self->memory);
    }
    return BAY_OK;
}

static bay_err take_task(bay_caller_reply *self, json_val task)
{
    json_val artifacts = json_get(task, STR("artifacts"));
    self->kind = BAY_CALLER_REPLY_KIND_TASK;
    self->root = task;
    bay_err err = take_text(self, json_get(task, STR("id")), &self->task);
    err = err == BAY_OK ? take_text(self, json_get(task, STR("contextId")), &self->context) : err;
    err = err == BAY_OK ? take_status(self, json_get(task, STR("status"))) : err;
    err = err == BAY_OK ? take_history(self, json_get(task, STR("history"))) : err;
    err = err == BAY_OK ? reserve_artifacts(self, json_count(artifacts)) : err;
    json_iter all = json_iter_of(artifacts);
    while (err == BAY_OK && json_next(&all)) {
        err = take_artifact(self, all.value);
    }
    return err;
}

static bay_err take_ids(bay_caller_reply *self, json_val value)
{
    self->root = value;
    bay_err err = take_text(self, json_get(value, STR("taskId")), &self->task);
    return err == BAY_OK ? take_text(self, json_get(value, STR("contextId")), &self->context) : err;
}

/* A StreamResponse, or what SendMessage returns. */
static bay_err take_event(bay_caller_reply *self, json_val root)
{
    json_val task = json_get(root, STR("task"));
    json_val message = json_get(root, STR("message"));
    json_val status = json_get(root, STR("statusUpdate"));
    json_val artifact = json_get(root, STR("artifactUpdate"));
    bay_err err = BAY_OK;
    if (!json_is(task, JSON_MISSING)) {
        return take_task(self, task);
    }
    if (!json_is(message, JSON_MISSING)) {
        self->kind = BAY_CALLER_REPLY_KIND_MESSAGE;
        err = take_ids(self, message);
        return err == BAY_OK ? take_message(self, message) : err;
    }
    if (!json_is(status, JSON_MISSING)) {
        self->kind = BAY_CALLER_REPLY_KIND_STATUS;
        err = take_ids(self, status);
        return err == BAY_OK ? take_status(self, json_get(status, STR("status"))) : err;
    }
    if (!json_is(artifact, JSON_MISSING)) {
        self->kind = BAY_CALLER_REPLY_KIND_ARTIFACT;
        err = take_ids(self, artifact);
        err = err == BAY_OK ? reserve_artifacts(self, 1) : err;
        return err == BAY_OK ? take_artifact(self, json_get(artifact, STR("artifact"))) : err;
    }
    return BAY_OK;
}

static bay_err take_list(bay_caller_reply *self, bay_caller_reply_kind kind, bay_str name,
                         json_val root)
{
    self->kind = kind;
    self->items = json_get(root, name);
    return take_text(self, json_get(root, STR("nextPageToken")), &self->next_page);
}

static bay_err read_result(bay_caller_reply *self, a2a_method method)
{
    json_val root = json_root(self->doc);
    self->root = root;
    switch (method) {
    case A2A_GET_TASK:
    case A2A_CANCEL_TASK:
        return take_task(self, root);
    case A2A_LIST_TASKS:
        return take_list(self, BAY_CALLER_REPLY_KIND_TASKS, STR("tasks"), root);
    case A2A_LIST_PUSH_CONFIGS:
        return take_list(self, BAY_CALLER_REPLY_KIND_PUSH, STR("configs"), root);
    case A2A_CREATE_PUSH_CONFIG:
    case A2A_GET_PUSH_CONFIG:
        self->kind = BAY_CALLER_REPLY_KIND_PUSH;
        return take_text(self, json_get(root, STR("taskId")), &self->task);
    case A2A_DELETE_PUSH_CONFIG:
        self->kind = BAY_CALLER_REPLY_KIND_EMPTY;
        return BAY_OK;
    case A2A_GET_EXTENDED_CARD:
        self->kind = BAY_CALLER_REPLY_KIND_CARD;
        return BAY_OK;
    default:
        return take_event(self, root);
    }
}

bay_err sdk_response_new(a2a_method method, bool is_event, json_val value, uint64_t event_id,
                         bay_caller_reply **out)
{
    bay_caller_reply *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    arena_init(&self->memory, CALLER_RESPONSE_MEMORY);
    self->document.memory = &self->memory;
    self->event_id = event_id;
    bay_err err = BAY_ERR_LIMIT;
    if (json_raw(value).len <= CALLER_RESPONSE_BYTES &&
        json_clone_bytes(value) <= CALLER_RESPONSE_MEMORY) {
        err = json_clone(value, &self->doc);
    }
    if (err == BAY_OK) {
        self->document.doc = *self->doc;
    }
    if (err == BAY_OK) {
        err = read_result(self, is_event ? A2A_SEND_MESSAGE : method);
    }
    if (err != BAY_OK) {
        bay_caller_reply_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

void bay_caller_reply_free(bay_caller_reply *response)
{
    if (response != NULL) {
        arena_fini(&response->memory);
        mem_free(response->doc);
        mem_free(response);
    }
}

/* ---- views ----------------------------------------------------------------------------------- */

bay_caller_reply_kind bay_caller_reply_kind_of(const bay_caller_reply *response)
{
    return response != NULL ? response->kind : BAY_CALLER_REPLY_KIND_OTHER;
}

bay_str bay_caller_reply_json(const bay_caller_reply *response)
{
    return response != NULL ? response->doc->text : (bay_str){NULL, 0};
}

bay_str bay_caller_reply_task(const bay_caller_reply *response)
{
    return response != NULL ? response->task : (bay_str){NULL, 0};
}

bay_str bay_caller_reply_context(const bay_caller_reply *response)
{
    return response != NULL ? response->context : (bay_str){NULL, 0};
}

bay_task_state bay_caller_reply_state(const bay_caller_reply *response)
{
    return response != NULL ? response->state : BAY_TASK_STATE_UNKNOWN;
}

const bay_message *bay_caller_reply_message(const bay_caller_reply *response)
{
    return response != NULL && response->has_message ? &response->message : NULL;
}

bay_str bay_caller_reply_text(const bay_caller_reply *response)
{
    return response != NULL ? response->message_text : (bay_str){NULL, 0};
}

size_t bay_caller_reply_history_count(const bay_caller_reply *response)
{
    return response != NULL ? response->history_count : 0;
}

const bay_message *bay_caller_reply_history(const bay_caller_reply *response, size_t index)
{
    return index < bay_caller_reply_history_count(response) ? &response->history[index] : NULL;
}

size_t bay_caller_reply_artifact_count(const bay_caller_reply *response)
{
    return response != NULL ? response->artifact_count : 0;
}

static const response_artifact *artifact_at(const bay_caller_reply *response, size_t index)
{
    return index < bay_caller_reply_artifact_count(response) ? &response->artifacts[index] : NULL;
}

bay_str bay_caller_reply_artifact_id(const bay_caller_reply *response, size_t index)
{
    const response_artifact *one = artifact_at(response, index);
    return one != NULL ? one->id : (bay_str){NULL, 0};
}

bay_str bay_caller_reply_artifact_name(const bay_caller_reply *response, size_t index)
{
    const response_artifact *one = artifact_at(response, index);
    return one != NULL ? one->name : (bay_str){NULL, 0};
}

const bay_message *bay_caller_reply_artifact(const bay_caller_reply *response, size_t index)
{
    const response_artifact *one = artifact_at(response, index);
    return one != NULL ? &one->parts : NULL;
}

bool bay_caller_reply_appends(const bay_caller_reply *response)
{
    return response != NULL && json_true(json_get(response->root, STR("append")));
}

bool bay_caller_reply_is_last_chunk(const bay_caller_reply *response)
{
    return response != NULL && json_true(json_get(response->root, STR("lastChunk")));
}

uint64_t bay_caller_reply_event_id(const bay_caller_reply *response)
{
    return response != NULL ? response->event_id : 0;
}

size_t bay_caller_reply_count(const bay_caller_reply *response)
{
    return response != NULL ? json_count(response->items) : 0;
}

bay_str bay_caller_reply_item(const bay_caller_reply *response, size_t index)
{
    return response != NULL ? json_raw(json_item(response->items, index)) : (bay_str){NULL, 0};
}

bay_str bay_caller_reply_next_page(const bay_caller_reply *response)
{
    return response != NULL ? response->next_page : (bay_str){NULL, 0};
}

bay_str bay_caller_reply_str(const bay_caller_reply *response, const char *name)
{
    return name != NULL ? bay_value_str(bay_caller_reply_value(response, name))
                        : (bay_str){NULL, 0};
}

bay_value bay_caller_reply_value(const bay_caller_reply *response, const char *name)
{
    if (response == NULL) {
        return (bay_value){NULL, 0};
    }
    return sdk_value(&response->document,
                     name != NULL ? json_get(response->root, str_of(name)) : response->root);
}

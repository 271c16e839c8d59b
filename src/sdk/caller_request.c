/* One operation of a caller: made, and filled in by the program. What goes wrong meanwhile is
 * remembered and told by its start. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "sdk/caller_parts.h"
#include "sdk/message_parts.h"
#include "wire/header.h"

static void operation_fault(bay_caller_request *self, bay_err err, const char *text)
{
    if (self->err == BAY_OK) {
        self->err = err;
        snprintf(self->fault, sizeof(self->fault), "%s", text);
    }
}

/* ---- making ---------------------------------------------------------------------------------- */

static bay_caller_request *operation_new(bay_caller *caller, a2a_method method)
{
    bay_caller_request *self = caller != NULL ? mem_zalloc(sizeof(*self)) : NULL;
    if (self == NULL) {
        return NULL;
    }
    asker_item_init(&self->item, &caller->base);
    self->caller = caller;
    self->method = method;
    buf *texts[] = {&self->message, &self->request, &self->configuration, &self->metadata,
                    &self->params};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        buf_init_secret(texts[i],
                        CALLER_REQUEST_BYTES); /* credentials of webhooks are among them */
    }
    return self;
}

void sdk_operation_release(bay_caller_request *self)
{
    buf *texts[] = {&self->message, &self->request, &self->configuration, &self->metadata,
                    &self->params};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        buf_fini(texts[i]);
    }
    mem_free(self->task);
    mem_free(self->context);
    mem_free(self->skill);
    asker_settings_fini(&self->fields);
    asker_settings_fini(&self->modes);
    sdk_assembly_free(self->assembly);
    bay_caller_reply_free(self->item.answer);
    mem_free(self);
}

void bay_caller_request_free(bay_caller_request *operation)
{
    if (operation != NULL && operation->item.phase == ASKER_NEW) {
        sdk_operation_release(operation);
    }
}

/* "NAME":"VALUE", into the request. */
static void put_member(buf *out, const char *name, const char *value)
{
    json_quote(out, str_of(name));
    buf_char(out, ':');
    json_quote(out, str_of(value));
    buf_char(out, ',');
}

static bay_caller_request *operation_of(bay_caller *caller, a2a_method method, const char *name,
                                        const char *value)
{
    bay_caller_request *self = operation_new(caller, method);
    if (self == NULL) {
        return NULL;
    }
    if (value == NULL || value[0] == '\0') {
        operation_fault(self, BAY_ERR_INVALID, "no task is named");
    } else {
        put_member(&self->request, name, value);
    }
    return self;
}

bay_caller_request *bay_caller_request_send(bay_caller *caller, const bay_message *message)
{
    bay_caller_request *self = operation_new(caller, A2A_SEND_MESSAGE);
    if (self == NULL) {
        return NULL;
    }
    self->is_message = true;
    bay_err err = message != NULL ? sdk_message_write(message, &self->message) : BAY_ERR_NOMEM;
    if (err != BAY_OK) {
        operation_fault(self, err,
                        err == BAY_ERR_INVALID ? "the message has no part, or one that is not valid"
                                               : bay_err_text(err));
    }
    return self;
}

bay_caller_request *bay_caller_request_send_text(bay_caller *caller, const char *text)
{
    bay_message *message = bay_message_new();
    bay_message_add_text(message, text != NULL ? text : "");
    bay_caller_request *self = bay_caller_request_send(caller, message);
    bay_message_free(message);
    return self;
}

bay_caller_request *bay_caller_request_task(bay_caller *caller, const char *id)
{
    return operation_of(caller, A2A_GET_TASK, "id", id);
}

bay_caller_request *bay_caller_request_list(bay_caller *caller)
{
    return operation_new(caller, A2A_LIST_TASKS);
}

bay_caller_request *bay_caller_request_task_cancel(bay_caller *caller, const char *id)
{
    return operation_of(caller, A2A_CANCEL_TASK, "id", id);
}

bay_caller_request *bay_caller_request_subscribe(bay_caller *caller, const char *id)
{
    return operation_of(caller, A2A_SUBSCRIBE_TO_TASK, "id", id);
}

/* The members of an object, each with a comma behind it. */
static bay_err put_members(buf *out, const char *json)
{
    json_doc doc;
    arena memory;
    arena_init(&memory, CALLER_RESPONSE_MEMORY);
    bay_err err = json_parse(&doc, str_of(json), NULL, &memory, NULL);
    if (err == BAY_OK && !json_is(json_root(&doc), JSON_OBJECT)) {
        err = BAY_ERR_TYPE;
    }
    if (err == BAY_OK) {
        json_iter members = json_iter_of(json_root(&doc));
        while (json_next(&members)) {
            buf_str(out, json_raw(members.key));
            buf_char(out, ':');
            buf_str(out, json_raw(members.value));
            buf_char(out, ',');
        }
        err = out->err;
    }
    arena_fini(&memory);
    return err;
}

bay_caller_request *bay_caller_request_new(bay_caller *caller, const char *method,
                                           const char *request)
{
    a2a_method found = A2A_METHODS;
    for (int i = 0; method != NULL && i < A2A_METHODS; i++) {
        found = str_eq(a2a_methods[i].name, str_of(method)) ? (a2a_method)i : found;
    }
    bay_caller_request *self = operation_new(caller, found < A2A_METHODS ? found : A2A_GET_TASK);
    if (self == NULL) {
        return NULL;
    }
    if (found == A2A_METHODS) {
        operation_fault(self, BAY_ERR_INVALID, "there is no such operation: \"GetTask\" is one");
    } else if (request != NULL && put_members(&self->request, request) != BAY_OK) {
        operation_fault(self, BAY_ERR_INVALID, "the request is no JSON object");
    }
    return self;
}

/* ---- filling --------------------------------------------------------------------------------- */

static void replace_text(bay_caller_request *self, char **place, const char *text)
{
    if (self == NULL) {
        return;
    }
    char *copy = text != NULL ? mem_dup(text, strlen(text)) : NULL;
    if (text != NULL && copy == NULL) {
        operation_fault(self, BAY_ERR_NOMEM, "out of memory");
    }
    mem_free(*place);
    *place = copy;
}

void bay_caller_request_for_task(bay_caller_request *operation, const char *id)
{
    replace_text(operation, operation != NULL ? &operation->task : NULL, id);
}

void bay_caller_request_for_context(bay_caller_request *operation, const char *id)
{
    if (operation != NULL && operation->method == A2A_LIST_TASKS && id != NULL) {
        put_member(&operation->request, "contextId", id);
        return;
    }
    replace_text(operation, operation != NULL ? &operation->context : NULL, id);
}

void bay_caller_request_for_skill(bay_caller_request *operation, const char *id)
{
    replace_text(operation, operation != NULL ? &operation->skill : NULL, id);
}

void bay_caller_request_return_immediately(bay_caller_request *operation)
{
    if (operation != NULL) {
        buf_lit(&operation->configuration, "\"returnImmediately\":true,");
    }
}

void bay_caller_request_accept(bay_caller_request *operation, const char *media_type)
{
    if (operation == NULL || media_type == NULL) {
        return;
    }
    bay_err err = asker_settings_add(&operation->modes, CALLER_SETTINGS, media_type, NULL);
    if (err != BAY_OK) {
        operation_fault(operation, err, bay_err_text(err));
    }
}

void bay_caller_request_push(bay_caller_request *operation, const char *url, const char *token,
                             const char *scheme, const char *credentials)
{
    if (operation == NULL) {
        return;
    }
    if (url == NULL) {
        operation_fault(operation, BAY_ERR_INVALID, "a webhook needs a URL");
        return;
    }
    json_writer out;
    buf_lit(&operation->configuration, "\"taskPushNotificationConfig\":");
    json_writer_init(&out, &operation->configuration);
    json_open_object(&out);
    json_key_lit(&out, "url");
    json_put_str(&out, str_of(url));
    if (token != NULL) {
        json_key_lit(&out, "token");
        json_put_str(&out, str_of(token));
    }
    if (scheme != NULL) {
        json_key_lit(&out, "authentication");
        json_open_object(&out);
        json_key_lit(&out, "scheme");
        json_put_str(&out, str_of(scheme));
        if (credentials != NULL) {
            json_key_lit(&out, "credentials");
            json_put_str(&out, str_of(credentials));
        }
        json_close_object(&out);
    }
    json_close_object(&out);
    buf_char(&operation->configuration, ',');
}

void bay_caller_request_history(bay_caller_request *operation, int most)
{
    if (operation != NULL && most >= 0) {
        buf_printf(operation->is_message ? &operation->configuration : &operation->request,
                   "\"historyLength\":%d,", most);
    }
}

void bay_caller_request_metadata(bay_caller_request *operation, const char *json)
{
    if (operation == NULL || json == NULL) {
        return;
    }
    buf_clear(&operation->metadata);
    if (put_members(&operation->metadata, json) != BAY_OK) {
        operation_fault(operation, BAY_ERR_INVALID, "the metadata is no JSON object");
    }
}

void bay_caller_request_page(bay_caller_request *operation, const char *page, int size)
{
    if (operation == NULL) {
        return;
    }
    if (page != NULL && page[0] != '\0') {
        put_member(&operation->request, "pageToken", page);
    }
    if (size > 0) {
        buf_printf(&operation->request, "\"pageSize\":%d,", size);
    }
}

void bay_caller_request_state(bay_caller_request *operation, bay_task_state state)
{
    if (operation != NULL && state > BAY_TASK_STATE_UNKNOWN &&
        state <= BAY_TASK_STATE_AUTH_REQUIRED) {
        buf_printf(&operation->request, "\"status\":\"%.*s\",",
                   BAY_STR(a2a_state_names[(int)state]));
    }
}

void bay_caller_request_artifacts(bay_caller_request *operation)
{
    if (operation != NULL) {
        buf_lit(&operation->request, "\"includeArtifacts\":true,");
    }
}

void bay_caller_request_after(bay_caller_request *operation, uint64_t event_id)
{
    if (operation != NULL) {
        operation->after = event_id;
    }
}

void bay_caller_request_header(bay_caller_request *operation, const char *name, const char *value)
{
    if (operation == NULL) {
        return;
    }
    if (name == NULL || value == NULL || !header_name_is_valid(str_of(name)) ||
        strpbrk(value, "\r\n") != NULL) {
        operation_fault(operation, BAY_ERR_INVALID, "a header field that is not valid");
        return;
    }
    bay_err err = asker_settings_add(&operation->fields, CALLER_SETTINGS, name, value);
    if (err != BAY_OK) {
        operation_fault(operation, err, bay_err_text(err));
    }
}

void bay_caller_request_traceparent(bay_caller_request *operation, const char *traceparent)
{
    bay_caller_request_header(operation, "traceparent", traceparent);
}

void bay_caller_request_on_event(bay_caller_request *operation, bay_event_fn event, void *user)
{
    if (operation == NULL) {
        return;
    }
    operation->event = event;
    operation->event_user = user;
    if (operation->method == A2A_SEND_MESSAGE || operation->method == A2A_SEND_STREAMING_MESSAGE) {
        operation->method = event != NULL ? A2A_SEND_STREAMING_MESSAGE : A2A_SEND_MESSAGE;
    }
}

/* ---- the request ----------------------------------------------------------------------------- */

static void write_uuid(buf *out)
{
    uint8_t bytes[16];
    rand_bytes(bytes, sizeof(bytes));
    bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x40); /* RFC 9562: version 4 */
    bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        buf_printf(out, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", bytes[i]);
    }
}

/* Members that end in a comma, as an object. */
static void put_object(buf *out, const char *name, bay_str members)
{
    if (members.len > 0) {
        bool is_first = out->len > 0 && out->at[out->len - 1] == '{';
        buf_printf(out, is_first ? "\"%s\":{" : ",\"%s\":{", name);
        buf_append(out, members.at, members.len - 1);
        buf_char(out, '}');
    }
}

static void write_modes(bay_caller_request *self)
{
    if (self->modes.count == 0) {
        return;
    }
    buf_lit(&self->configuration, "\"acceptedOutputModes\":[");
    for (size_t i = 0; i < self->modes.count; i++) {
        buf_str(&self->configuration, i > 0 ? STR(",") : STR(""));
        json_quote(&self->configuration, str_of(self->modes.at[i].name));
    }
    buf_lit(&self->configuration, "],");
}

static void write_message(bay_caller_request *self, buf *out)
{
    write_modes(self);
    buf_lit(out, "\"message\":{\"messageId\":\"");
    write_uuid(out);
    buf_lit(out, "\",\"role\":\"ROLE_USER\",");
    if (self->context != NULL) {
        put_member(out, "contextId", self->context);
    }
    if (self->task != NULL) {
        put_member(out, "taskId", self->task);
    }
    buf_str(out, buf_view(&self->message));
    buf_char(out, '}');
    put_object(out, "configuration", buf_view(&self->configuration));
    if (self->skill != NULL) {
        put_member(&self->metadata, "skillId", self->skill);
    }
    put_object(out, "metadata", buf_view(&self->metadata));
}

bay_err sdk_operation_write(bay_caller_request *self, buf *out, bay_diag *diag)
{
    if (self->err != BAY_OK) {
        return diag_set(diag, self->err, "%s", self->fault);
    }
    buf_char(out, '{');
    if (self->is_message) {
        write_message(self, out);
    } else {
        bay_str members = buf_view(&self->request);
        buf_append(out, members.at, members.len > 0 ? members.len - 1 : 0);
        put_object(out, "metadata", buf_view(&self->metadata));
    }
    buf_char(out, '}');
    buf *texts[] = {&self->message, &self->request, &self->configuration, &self->metadata, out};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (texts[i]->err != BAY_OK) {
            return diag_set(diag, texts[i]->err, "the request: %s", bay_err_text(texts[i]->err));
        }
    }
    return BAY_OK;
}

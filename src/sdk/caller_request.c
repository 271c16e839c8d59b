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
#include "sdk/format.h"
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
    json_builder *all[] = {&self->message, &self->request, &self->configuration, &self->metadata,
                           &self->whole};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) { /* credentials of webhooks are among them */
        (void)json_builder_init_secret(all[i], NULL, CALLER_REQUEST_BYTES);
    }
    return self;
}

void sdk_operation_release(bay_caller_request *self)
{
    json_builder *all[] = {&self->message, &self->request, &self->configuration, &self->metadata,
                           &self->whole};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        json_builder_drop(all[i]);
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

/* Where its next member goes. */
static json_writer *open_members(json_builder *of)
{
    if (of->writer.depth == 0) {
        json_open_object(&of->writer);
    }
    return &of->writer;
}

static void put_member(json_writer *out, bay_str name, bay_str value)
{
    json_key(out, name);
    json_put_str(out, value);
}

static bay_caller_request *operation_of(bay_caller *caller, a2a_method method, bay_str id)
{
    bay_caller_request *self = operation_new(caller, method);
    if (self == NULL) {
        return NULL;
    }
    if (id.len == 0) {
        operation_fault(self, BAY_ERR_INVALID, "no task is named");
    } else {
        put_member(open_members(&self->request), STR("id"), id);
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
    bay_err err =
        message != NULL ? sdk_message_write(message, open_members(&self->message)) : BAY_ERR_NOMEM;
    if (err != BAY_OK) {
        operation_fault(self, err,
                        err == BAY_ERR_INVALID ? "the message has no part, or one that is not valid"
                                               : bay_err_text(err));
    }
    return self;
}

bay_caller_request *bay_caller_request_send_text_str(bay_caller *caller, bay_str text)
{
    bay_message *message = bay_message_new();
    bay_message_add_text_str(message, text);
    bay_caller_request *self = bay_caller_request_send(caller, message);
    bay_message_free(message);
    return self;
}

bay_caller_request *bay_caller_request_send_text(bay_caller *caller, const char *text)
{
    return bay_caller_request_send_text_str(caller, str_of(text));
}

bay_caller_request *bay_caller_request_send_textf(bay_caller *caller, const char *format, ...)
{
    buf text;
    va_list arguments;
    va_start(arguments, format);
    sdk_format(&text, format, arguments);
    va_end(arguments);
    bay_caller_request *self = bay_caller_request_send_text_str(caller, buf_view(&text));
    if (self != NULL && text.err != BAY_OK) {
        operation_fault(self, text.err, bay_err_text(text.err));
    }
    buf_fini(&text);
    return self;
}

bay_caller_request *bay_caller_request_task_str(bay_caller *caller, bay_str id)
{
    return operation_of(caller, A2A_GET_TASK, id);
}

bay_caller_request *bay_caller_request_task(bay_caller *caller, const char *id)
{
    return bay_caller_request_task_str(caller, str_of(id));
}

bay_caller_request *bay_caller_request_list(bay_caller *caller)
{
    return operation_new(caller, A2A_LIST_TASKS);
}

bay_caller_request *bay_caller_request_task_cancel_str(bay_caller *caller, bay_str id)
{
    return operation_of(caller, A2A_CANCEL_TASK, id);
}

bay_caller_request *bay_caller_request_task_cancel(bay_caller *caller, const char *id)
{
    return bay_caller_request_task_cancel_str(caller, str_of(id));
}

bay_caller_request *bay_caller_request_subscribe_str(bay_caller *caller, bay_str id)
{
    return operation_of(caller, A2A_SUBSCRIBE_TO_TASK, id);
}

bay_caller_request *bay_caller_request_subscribe(bay_caller *caller, const char *id)
{
    return bay_caller_request_subscribe_str(caller, str_of(id));
}

/* The members of the program's object. */
static void put_members(bay_caller_request *self, json_builder *of, bay_json *json,
                        const char *fault)
{
    json_val object = JSON_NONE;
    bay_err err = sdk_json_val(json, JSON_OBJECT, &object);
    if (err == BAY_OK) {
        json_put_members(open_members(of), object, NULL, 0);
        err = of->text.err;
    }
    if (err != BAY_OK) {
        operation_fault(self, err == BAY_ERR_NOMEM ? err : BAY_ERR_INVALID,
                        err == BAY_ERR_NOMEM ? bay_err_text(err) : fault);
    }
}

static bay_caller_request *operation_named(bay_caller *caller, const char *method)
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
    }
    return self;
}

bay_caller_request *bay_caller_request_new_json(bay_caller *caller, const char *method,
                                                bay_json *params)
{
    bay_caller_request *self = operation_named(caller, method);
    if (self != NULL) {
        put_members(self, &self->request, params, "the request is no JSON object");
    }
    bay_json_free(params);
    return self;
}

bay_caller_request *bay_caller_request_new(bay_caller *caller, const char *method,
                                           const char *params)
{
    return params != NULL ? bay_caller_request_new_json(caller, method, bay_json_of(params))
                          : operation_named(caller, method);
}

/* ---- filling --------------------------------------------------------------------------------- */

/* An id, which is kept as a C string. */
static void replace_text(bay_caller_request *self, char **place, bay_str text)
{
    if (self == NULL) {
        return;
    }
    if (text.len > 0 && memchr(text.at, '\0', text.len) != NULL) {
        operation_fault(self, BAY_ERR_INVALID, "an id has a NUL byte");
        return;
    }
    char *copy = text.at != NULL ? mem_dup(text.at, text.len) : NULL;
    if (text.at != NULL && copy == NULL) {
        operation_fault(self, BAY_ERR_NOMEM, "out of memory");
    }
    mem_free(*place);
    *place = copy;
}

void bay_caller_request_for_task_str(bay_caller_request *operation, bay_str id)
{
    replace_text(operation, operation != NULL ? &operation->task : NULL, id);
}

void bay_caller_request_for_task(bay_caller_request *operation, const char *id)
{
    bay_caller_request_for_task_str(operation, str_of(id));
}

void bay_caller_request_for_context_str(bay_caller_request *operation, bay_str id)
{
    if (operation != NULL && operation->method == A2A_LIST_TASKS && id.at != NULL) {
        put_member(open_members(&operation->request), STR("contextId"), id);
        return;
    }
    replace_text(operation, operation != NULL ? &operation->context : NULL, id);
}

void bay_caller_request_for_context(bay_caller_request *operation, const char *id)
{
    bay_caller_request_for_context_str(operation, str_of(id));
}

void bay_caller_request_for_skill_str(bay_caller_request *operation, bay_str id)
{
    replace_text(operation, operation != NULL ? &operation->skill : NULL, id);
}

void bay_caller_request_for_skill(bay_caller_request *operation, const char *id)
{
    bay_caller_request_for_skill_str(operation, str_of(id));
}

void bay_caller_request_return_immediately(bay_caller_request *operation)
{
    if (operation != NULL) {
        json_writer *out = open_members(&operation->configuration);
        json_key_lit(out, "returnImmediately");
        json_put_bool(out, true);
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
    json_writer *out = open_members(&operation->configuration);
    json_key_lit(out, "taskPushNotificationConfig");
    json_open_object(out);
    put_member(out, STR("url"), str_of(url));
    if (token != NULL) {
        put_member(out, STR("token"), str_of(token));
    }
    if (scheme != NULL) {
        json_key_lit(out, "authentication");
        json_open_object(out);
        put_member(out, STR("scheme"), str_of(scheme));
        if (credentials != NULL) {
            put_member(out, STR("credentials"), str_of(credentials));
        }
        json_close_object(out);
    }
    json_close_object(out);
}

void bay_caller_request_history(bay_caller_request *operation, int most)
{
    if (operation != NULL && most >= 0) {
        json_writer *out =
            open_members(operation->is_message ? &operation->configuration : &operation->request);
        json_key_lit(out, "historyLength");
        json_put_int(out, most);
    }
}

void bay_caller_request_metadata_json(bay_caller_request *operation, bay_json *json)
{
    if (operation != NULL) {
        json_builder_drop(&operation->metadata);
        (void)json_builder_init_secret(&operation->metadata, NULL, CALLER_REQUEST_BYTES);
        put_members(operation, &operation->metadata, json, "the metadata is no JSON object");
    }
    bay_json_free(json);
}

void bay_caller_request_metadata(bay_caller_request *operation, const char *json)
{
    if (json != NULL) {
        bay_caller_request_metadata_json(operation, bay_json_of(json));
    }
}

void bay_caller_request_page(bay_caller_request *operation, const char *page, int size)
{
    bay_caller_request_page_str(operation, str_of(page), size);
}

void bay_caller_request_page_str(bay_caller_request *operation, bay_str page, int size)
{
    if (operation == NULL) {
        return;
    }
    if (page.len > 0) {
        put_member(open_members(&operation->request), STR("pageToken"), page);
    }
    if (size > 0) {
        json_writer *out = open_members(&operation->request);
        json_key_lit(out, "pageSize");
        json_put_int(out, size);
    }
}

void bay_caller_request_state(bay_caller_request *operation, bay_task_state state)
{
    if (operation != NULL && state > BAY_TASK_STATE_UNKNOWN &&
        state <= BAY_TASK_STATE_AUTH_REQUIRED) {
        json_writer *out = open_members(&operation->request);
        json_key_lit(out, "status");
        json_put_str(out, a2a_state_names[(int)state]);
    }
}

void bay_caller_request_artifacts(bay_caller_request *operation)
{
    if (operation != NULL) {
        json_writer *out = open_members(&operation->request);
        json_key_lit(out, "includeArtifacts");
        json_put_bool(out, true);
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

static void put_object(json_writer *out, bay_str name, const json_builder *members)
{
    if (members->writer.depth > 0) {
        json_key(out, name);
        json_open_object(out);
        json_put_partial(out, members);
        json_close_object(out);
    }
}

static void put_modes(bay_caller_request *self)
{
    if (self->modes.count == 0) {
        return;
    }
    json_writer *out = open_members(&self->configuration);
    json_key_lit(out, "acceptedOutputModes");
    json_open_array(out);
    for (size_t i = 0; i < self->modes.count; i++) {
        json_put_str(out, str_of(self->modes.at[i].name));
    }
    json_close_array(out);
}

static void put_message(bay_caller_request *self, json_writer *out)
{
    char id[37];
    rand_uuid(id);
    json_key_lit(out, "message");
    json_open_object(out);
    json_key_lit(out, "messageId");
    json_put_str(out, str_of(id));
    json_key_lit(out, "role");
    json_put_str(out, STR("ROLE_USER"));
    if (self->context != NULL) {
        put_member(out, STR("contextId"), str_of(self->context));
    }
    if (self->task != NULL) {
        put_member(out, STR("taskId"), str_of(self->task));
    }
    json_put_partial(out, &self->message);
    json_close_object(out);
    put_modes(self);
    put_object(out, STR("configuration"), &self->configuration);
    if (self->skill != NULL) {
        put_member(open_members(&self->metadata), STR("skillId"), str_of(self->skill));
    }
}

bay_err sdk_operation_write(bay_caller_request *self, bay_diag *diag)
{
    json_val written;
    json_writer *out = &self->whole.writer;
    if (self->err != BAY_OK) {
        return diag_set(diag, self->err, "%s", self->fault);
    }
    json_open_object(out);
    if (self->is_message) {
        put_message(self, out);
    } else {
        json_put_partial(out, &self->request);
    }
    put_object(out, STR("metadata"), &self->metadata);
    json_close_object(out);
    bay_diag why = {0};
    bay_err err = json_builder_view(&self->whole, &written);
    if (err == BAY_OK && json_is_deeper(written, a2a_json_limits.max_depth)) {
        err = BAY_ERR_INVALID;
    }
    if (err == BAY_OK) { /* a setting that was made twice, or that the program's JSON has, too */
        err = json_check_duplicates(written, &why);
        err = err == BAY_ERR_DUPLICATE ? BAY_ERR_INVALID : err;
    }
    return err == BAY_OK ? err
                         : diag_set(diag, err, "the request: %s",
                                    why.text[0] != '\0' ? why.text : bay_err_text(err));
}

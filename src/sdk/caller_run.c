/* Operations under way: given to the link, told what comes, ended.
 * An operation that is WAITING waits for the card; one that is OPEN has a call of the link. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/str.h"
#include "sdk/caller_parts.h"

static const a2a_link_events operation_events;

/* ---- ends ------------------------------------------------------------------------------------ */

/* Takes the response, which may be NULL. */
static void operation_end(bay_caller_request *self, bay_caller_reply *response, bay_err err,
                          const char *text)
{
    bay_diag diag = {0};
    (void)diag_set(&diag, err, "%s", text);
    if (!asker_item_end(&self->item, &diag)) {
        bay_caller_reply_free(response);
        return;
    }
    self->item.answer = response;
    self->call = NULL;
}

/* "METHOD at WHERE: TEXT". */
static void operation_fail(bay_caller_request *self, bay_err err, const char *text)
{
    bay_diag whole = {0};
    const char *hint = self->error == A2A_E_UNAUTHENTICATED && self->caller->has_withheld
                           ? " (credentials were withheld: it is at another origin than its card)"
                           : "";
    (void)diag_set(&whole, err, "%.*s at %.60s: %.110s%s", BAY_STR(a2a_methods[self->method].name),
                   self->caller->base.shown, text, hint);
    operation_end(self, NULL, err, whole.text);
}

/* ---- as an asker has it ---------------------------------------------------------------------- */

static bay_caller_request *operation_of(asker_item *item)
{
    return CONTAINER_OF(item, bay_caller_request, item);
}

void sdk_operation_withdraw(asker_item *item)
{
    bay_caller_request *self = operation_of(item);
    if (self->call != NULL) {
        a2a_link_cancel(self->call);
        self->call = NULL;
    }
}

void sdk_operation_lose(asker_item *item, bay_err err, const char *text)
{
    operation_end(operation_of(item), NULL, err, text);
}

void sdk_operation_ended(asker_item *item, const void *answer)
{
    buf *remote_error = &operation_of(item)->caller->remote_error;
    (void)answer;
    buf_clear(remote_error);
    if (item->diag.code == BAY_ERR_REMOTE) {
        buf_str(remote_error, a2a_errors[operation_of(item)->error].reason);
    }
}

void sdk_operation_tell(asker_item *item, void *answer)
{
    bay_caller_request *self = operation_of(item);
    if (self->done != NULL) {
        self->done(self, answer, &item->diag, self->user);
    } else {
        bay_caller_reply_free(answer);
    }
}

void sdk_operation_item_free(asker_item *item)
{
    sdk_operation_release(operation_of(item));
}

void sdk_response_release(void *response)
{
    bay_caller_reply_free(response);
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* Fields of this request alone are credentials, too, for all we know; but for the trace. */
static size_t own_fields(const bay_caller_request *self, http_field *out, size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < self->fields.count && count < max; i++) {
        bay_str name = str_of(self->fields.at[i].name);
        if (!self->caller->has_withheld || str_eq_nocase(name, STR("traceparent"))) {
            out[count++] = (http_field){name, str_of(self->fields.at[i].value)};
        }
    }
    return count;
}

static bay_err operation_go(bay_caller_request *self, bay_diag *diag)
{
    bay_caller *caller = self->caller;
    http_field fields[CALLER_FIELDS];
    size_t count = 0;
    buf secrets;
    a2a_fault fault = {0};
    buf_init_secret(&secrets, CALLER_REQUEST_BYTES);
    json_val params;
    bay_err err = sdk_caller_fields(caller, &secrets, fields, CALLER_FIELDS, &count, diag);
    if (err == BAY_OK) {
        err = json_builder_view(&self->whole, &params);
    }
    if (err == BAY_OK) {
        count += own_fields(self, fields + count, CALLER_FIELDS - count);
        a2a_link_request request = {
            .method = self->method,
            .params = params,
            .fields = fields,
            .field_count = count,
            .authority = caller->has_withheld ? NULL : sdk_login_http(caller->base.login),
            .last_event_id = self->after,
            .has_no_stream = !bay_caller_has(caller, "streaming"),
        };
        err = a2a_link_start(caller->link, &request, &operation_events, self, &self->call, &fault);
        if (err != BAY_OK) {
            self->call = NULL;
            (void)diag_set(diag, err, "%.*s at %.80s: %.120s",
                           BAY_STR(a2a_methods[self->method].name), caller->base.shown,
                           fault.text[0] != '\0' ? fault.text : bay_err_text(err));
        }
    }
    buf_fini(&secrets);
    if (err == BAY_OK) {
        json_builder_drop(&self->whole);
        asker_item_set(&self->item, ASKER_OPEN);
        if (self->is_paused) {
            a2a_link_pause(self->call);
        }
    }
    return err;
}

void sdk_operation_send(asker_item *item)
{
    bay_diag diag = {0};
    bay_err err = operation_go(operation_of(item), &diag);
    if (err != BAY_OK) {
        operation_end(operation_of(item), NULL, err, diag.text);
    }
}

static bay_err operation_prepare(bay_caller_request *self, bay_diag *diag)
{
    bay_err err = sdk_operation_write(self, diag);
    bool is_stream = (a2a_methods[self->method].flags & A2A_METHOD_STREAM) != 0;
    bool is_heard = self->done != NULL || (self->item.wait != NULL && !self->is_unheard);
    if (err == BAY_OK && is_stream && is_heard) {
        self->assembly = sdk_assembly_new();
        err = self->assembly != NULL ? BAY_OK : diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    return err;
}

static bay_err operation_begin(bay_caller_request *self, bay_diag *diag)
{
    bay_caller *caller = self->caller;
    bay_err err = asker_item_start(&self->item, diag);
    if (err != BAY_OK) {
        return err;
    }
    err = operation_prepare(self, diag);
    if (err == BAY_OK && caller->phase == CALLER_READY) {
        err = operation_go(self, diag);
    } else if (err == BAY_OK) {
        asker_item_set(&self->item, ASKER_WAITING);
        sdk_caller_need(caller);
    }
    if (err != BAY_OK) {
        asker_item_drop(&self->item);
    }
    return err;
}

static bay_err operation_start(bay_caller_request *self, asker_wait *wait,
                               bay_caller_request_done_fn done, void *user, bay_diag *diag)
{
    if (self->item.phase != ASKER_NEW) {
        return diag_set(diag, BAY_ERR_STATE, "the operation was started already");
    }
    self->item.wait = wait;
    self->done = done;
    self->user = user;
    asker_touch(&self->caller->base);
    bay_err err = operation_begin(self, diag);
    if (err != BAY_OK) {
        sdk_operation_release(self);
    }
    return err;
}

bay_err bay_caller_request_start(bay_caller_request *operation, bay_diag *diag,
                                 bay_caller_request_done_fn done, void *user)
{
    return operation != NULL
               ? operation_start(operation, NULL, done, user, diag)
               : diag_set(diag, BAY_ERR_NOMEM, "out of memory (or there is no caller)");
}

void bay_caller_request_cancel(bay_caller_request *operation)
{
    if (operation != NULL && operation->item.phase != ASKER_NEW &&
        operation->item.phase != ASKER_ENDED) {
        sdk_operation_withdraw(&operation->item);
        operation_end(operation, NULL, BAY_ERR_CANCELLED, "cancelled");
    }
}

void bay_caller_request_pause(bay_caller_request *operation)
{
    if (operation != NULL && operation->item.phase != ASKER_ENDED) {
        operation->is_paused = true;
        if (operation->call != NULL) {
            a2a_link_pause(operation->call);
        }
    }
}

void bay_caller_request_resume(bay_caller_request *operation)
{
    if (operation != NULL && operation->is_paused) {
        operation->is_paused = false;
        if (operation->call != NULL) {
            a2a_link_resume(operation->call);
        }
        asker_touch(&operation->caller->base);
    }
}

/* ---- what the link tells --------------------------------------------------------------------- */

static void end_with(bay_caller_request *self, a2a_method method, json_val value)
{
    bay_caller_reply *response = NULL;
    bay_err err = sdk_response_new(method, false, value, 0, &response);
    if (err == BAY_OK) {
        operation_end(self, response, BAY_OK, "");
    } else {
        operation_fail(self, err, bay_err_text(err));
    }
}

static void on_result(void *user, json_val result)
{
    bay_caller_request *self = user;
    self->call = NULL;
    end_with(self, self->method, result);
}

static void on_event(void *user, json_val value, uint64_t event_id, bool is_last)
{
    bay_caller_request *self = user;
    bay_caller_reply *event = NULL;
    (void)is_last;
    /* without an assembly nobody asks for the whole */
    bay_err err = self->assembly != NULL ? sdk_assembly_add(self->assembly, value) : BAY_OK;
    if (err == BAY_OK && self->event != NULL) {
        err = sdk_response_new(self->method, true, value, event_id, &event);
    }
    if (err != BAY_OK) {
        a2a_link_cancel(self->call);
        operation_fail(self, err, bay_err_text(err));
        return;
    }
    if (self->event != NULL) {
        self->event(self, event, self->event_user);
        bay_caller_reply_free(event);
    }
}

static void on_stream_end(void *user)
{
    bay_caller_request *self = user;
    json_builder made;
    json_val whole;
    self->call = NULL;
    if (self->assembly == NULL) {
        operation_end(self, NULL, BAY_OK, "");
        return;
    }
    bay_err err =
        sdk_assembly_write(self->assembly, json_builder_init(&made, NULL, CALLER_RESPONSE_BYTES));
    if (err == BAY_OK) {
        err = json_builder_view(&made, &whole);
    }
    if (err == BAY_OK) {
        end_with(self, A2A_SEND_MESSAGE, whole);
    } else {
        operation_fail(self, err, bay_err_text(err));
    }
    json_builder_drop(&made);
}

static void on_call_failed(void *user, bay_err err, const a2a_fault *fault, bool was_sent)
{
    bay_caller_request *self = user;
    char text[A2A_FAULT_BYTES + 60];
    bool is_send = self->method == A2A_SEND_MESSAGE || self->method == A2A_SEND_STREAMING_MESSAGE;
    self->call = NULL;
    self->error = fault->error;
    snprintf(text, sizeof(text), "%.200s%s", fault->text,
             is_send && was_sent && err != BAY_ERR_REMOTE ? " (the agent may have the message)"
                                                          : "");
    operation_fail(self, err, text);
}

static const a2a_link_events operation_events = {
    .result = on_result,
    .event = on_event,
    .end = on_stream_end,
    .failed = on_call_failed,
};

/* ---- waiting --------------------------------------------------------------------------------- */

bay_err bay_caller_request_run(bay_caller_request *operation, bay_caller_reply **out,
                               bay_diag *diag)
{
    asker_wait wait = {0};
    if (operation == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory (or there is no caller)");
    }
    asker *of = &operation->caller->base;
    bay_err err = asker_check_waiting(of, diag);
    if (err != BAY_OK) {
        bay_caller_request_free(operation);
        return err;
    }
    if (operation->item.phase == ASKER_NEW) {
        operation->is_unheard = out == NULL;
    }
    /* what happened while nobody looked: above all, connections that the agent closed, on which a
     * message would be lost without our knowing whether it arrived */
    (void)loop_turn(of->loop, 0);
    err = operation_start(operation, &wait, NULL, NULL, diag);
    err = err == BAY_OK ? asker_await(of, &wait, diag) : err;
    if (err == BAY_OK && out != NULL) {
        *out = wait.answer;
    } else {
        bay_caller_reply_free(wait.answer);
    }
    return err;
}

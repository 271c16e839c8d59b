/* Operations under way: given to the link, told what comes, ended.
 *
 *   NEW --start--> WAITING (for the card) ──► OPEN (the link has it) ──► ENDED --`done`--> gone
 *   any --stop, the caller's end--> ENDED
 *
 * Invariants: `done` runs once, from sdk_operations_finish; only OPEN has a call of the link. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/str.h"
#include "sdk/caller_parts.h"

static const a2a_link_events operation_events;

/* ---- ends ------------------------------------------------------------------------------------ */

static void operation_end(bay_operation *self, bay_err err, const char *text)
{
    if (self->phase == OPERATION_ENDED) {
        return;
    }
    self->phase = OPERATION_ENDED;
    self->call = NULL;
    (void)diag_set(&self->diag, err, "%s", text);
    list_remove(&self->link);
    list_push(&self->caller->ended, &self->link);
    sdk_caller_settle_soon(self->caller);
}

/* "METHOD at WHERE: TEXT". */
static void operation_fail(bay_operation *self, bay_err err, const char *text)
{
    bay_diag whole = {0};
    const char *hint = self->error == A2A_E_UNAUTHENTICATED && self->caller->has_withheld
                           ? " (credentials were withheld: it is at another origin than its card)"
                           : "";
    (void)diag_set(&whole, err, "%.*s at %.60s: %.110s%s", BAY_STR(a2a_methods[self->method].name),
                   self->caller->shown, text, hint);
    operation_end(self, err, whole.text);
}

static void set_remote_error(bay_caller *caller, const bay_operation *ended)
{
    buf_clear(&caller->remote_error);
    if (ended->diag.code == BAY_REMOTE) {
        buf_str(&caller->remote_error, a2a_errors[ended->error].reason);
    }
}

void sdk_operations_finish(bay_caller *caller)
{
    list_link *link;
    while ((link = list_pop(&caller->ended)) != NULL) {
        bay_operation *self = CONTAINER_OF(link, bay_operation, link);
        bay_response *response = self->response;
        caller->operations--;
        self->response = NULL;
        set_remote_error(caller, self);
        if (self->done != NULL) {
            self->done(self, response, &self->diag, self->user);
        } else {
            bay_response_free(response);
        }
        sdk_operation_release(self);
    }
}

static void operation_cancel(bay_operation *self)
{
    if (self->call != NULL) {
        a2a_link_cancel(self->call);
        self->call = NULL;
    }
    operation_end(self, BAY_CANCELLED, "cancelled");
}

void sdk_operations_end(bay_caller *caller)
{
    list *all[] = {&caller->waiting, &caller->open};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        list_link *link;
        while ((link = list_first(all[i])) != NULL) {
            operation_cancel(CONTAINER_OF(link, bay_operation, link));
        }
    }
}

void sdk_operations_fail_waiting(bay_caller *caller, const bay_diag *fault)
{
    list_link *link;
    while ((link = list_first(&caller->waiting)) != NULL) {
        operation_end(CONTAINER_OF(link, bay_operation, link), fault->code, fault->text);
    }
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* Fields of this request alone are credentials, too, for all we know; but for the trace. */
static size_t own_fields(const bay_operation *self, http_field *out, size_t max)
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

static bay_err operation_go(bay_operation *self, bay_diag *diag)
{
    bay_caller *caller = self->caller;
    http_field fields[CALLER_FIELDS];
    size_t count = 0;
    buf secrets;
    a2a_fault fault = {0};
    buf_init_secret(&secrets, CALLER_REQUEST_BYTES);
    bay_err err = sdk_caller_fields(caller, &secrets, fields, CALLER_FIELDS, &count, diag);
    if (err == BAY_OK) {
        count += own_fields(self, fields + count, CALLER_FIELDS - count);
        a2a_link_request request = {
            .method = self->method,
            .params = buf_view(&self->params),
            .fields = fields,
            .field_count = count,
            .last_event_id = self->after,
            .has_no_stream = !bay_caller_has(caller, "streaming"),
        };
        err = a2a_link_start(caller->link, &request, &operation_events, self, &self->call, &fault);
        if (err != BAY_OK) {
            self->call = NULL;
            (void)diag_set(diag, err, "%.*s at %.80s: %.120s",
                           BAY_STR(a2a_methods[self->method].name), caller->shown,
                           fault.text[0] != '\0' ? fault.text : bay_err_text(err));
        }
    }
    buf_fini(&secrets);
    if (err == BAY_OK) {
        buf_fini(&self->params);
        self->phase = OPERATION_OPEN;
        list_push(&caller->open, &self->link);
        if (self->is_paused) {
            a2a_link_pause(self->call);
        }
    }
    return err;
}

void sdk_operations_hand_over(bay_caller *caller)
{
    list_link *link;
    while ((link = list_first(&caller->waiting)) != NULL) {
        bay_operation *self = CONTAINER_OF(link, bay_operation, link);
        bay_diag diag = {0};
        list_remove(link);
        bay_err err = operation_go(self, &diag);
        if (err != BAY_OK) {
            operation_end(self, err, diag.text);
        }
    }
}

static bay_err operation_prepare(bay_operation *self, bay_diag *diag)
{
    bay_caller *caller = self->caller;
    if (self->phase != OPERATION_NEW || caller->phase == CALLER_CLOSING) {
        return diag_set(diag, BAY_STATE, "the caller is being closed");
    }
    if (caller->operations >= CALLER_OPERATIONS) {
        return diag_set(diag, BAY_BUSY, "more than %d operations at one time", CALLER_OPERATIONS);
    }
    bay_err err = sdk_operation_write(self, &self->params, diag);
    bool is_stream = (a2a_methods[self->method].flags & A2A_METHOD_STREAM) != 0;
    if (err == BAY_OK && is_stream && self->done != NULL && !self->is_unheard) {
        self->assembly = sdk_assembly_new();
        err = self->assembly != NULL ? BAY_OK : diag_set(diag, BAY_NOMEM, "out of memory");
    }
    return err;
}

bay_err bay_operation_start(bay_operation *operation, bay_operation_done done, void *user,
                            bay_diag *diag)
{
    if (operation == NULL) {
        return diag_set(diag, BAY_NOMEM, "out of memory (or there is no caller)");
    }
    bay_caller *caller = operation->caller;
    operation->done = done;
    operation->user = user;
    sdk_caller_touch(caller);
    bay_err err = operation_prepare(operation, diag);
    if (err == BAY_OK && caller->phase == CALLER_READY) {
        err = operation_go(operation, diag);
    } else if (err == BAY_OK) {
        operation->phase = OPERATION_WAITING;
        list_push(&caller->waiting, &operation->link);
        sdk_caller_need(caller);
    }
    if (err != BAY_OK) {
        sdk_operation_release(operation);
        return err;
    }
    caller->operations++;
    return BAY_OK;
}

void bay_operation_stop(bay_operation *operation)
{
    if (operation != NULL &&
        (operation->phase == OPERATION_WAITING || operation->phase == OPERATION_OPEN)) {
        operation_cancel(operation);
    }
}

void bay_operation_pause(bay_operation *operation)
{
    if (operation != NULL && operation->phase != OPERATION_ENDED) {
        operation->is_paused = true;
        if (operation->call != NULL) {
            a2a_link_pause(operation->call);
        }
    }
}

void bay_operation_resume(bay_operation *operation)
{
    if (operation != NULL && operation->is_paused) {
        operation->is_paused = false;
        if (operation->call != NULL) {
            a2a_link_resume(operation->call);
        }
        sdk_caller_touch(operation->caller);
    }
}

/* ---- what the link tells --------------------------------------------------------------------- */

static void end_with(bay_operation *self, a2a_method method, bay_str json)
{
    bay_err err = sdk_response_new(method, false, json, 0, &self->response);
    if (err == BAY_OK) {
        operation_end(self, BAY_OK, "");
    } else {
        operation_fail(self, err, bay_err_text(err));
    }
}

static void on_result(void *user, bay_str json)
{
    bay_operation *self = user;
    self->call = NULL;
    end_with(self, self->method, json);
}

static void on_event(void *user, json_val value, uint64_t event_id, bool is_last)
{
    bay_operation *self = user;
    bay_response *event = NULL;
    (void)is_last;
    /* without an assembly nobody asks for the whole */
    bay_err err = self->assembly != NULL ? sdk_assembly_add(self->assembly, value) : BAY_OK;
    if (err == BAY_OK && self->event != NULL) {
        err = sdk_response_new(self->method, true, json_raw(value), event_id, &event);
    }
    if (err != BAY_OK) {
        a2a_link_cancel(self->call);
        operation_fail(self, err, bay_err_text(err));
        return;
    }
    if (self->event != NULL) {
        self->event(event, self->event_user);
        bay_response_free(event);
    }
}

static void on_stream_end(void *user)
{
    bay_operation *self = user;
    buf json;
    self->call = NULL;
    if (self->assembly == NULL) {
        operation_end(self, BAY_OK, "");
        return;
    }
    buf_init(&json, CALLER_RESPONSE_BYTES);
    bay_err err = sdk_assembly_write(self->assembly, &json);
    if (err == BAY_OK) {
        end_with(self, A2A_SEND_MESSAGE, buf_view(&json));
    } else {
        operation_fail(self, err, bay_err_text(err));
    }
    buf_fini(&json);
}

static void on_call_failed(void *user, bay_err err, const a2a_fault *fault, bool was_sent)
{
    bay_operation *self = user;
    char text[A2A_FAULT_BYTES + 60];
    bool is_send = self->method == A2A_SEND_MESSAGE || self->method == A2A_SEND_STREAMING_MESSAGE;
    self->call = NULL;
    self->error = fault->error;
    snprintf(text, sizeof(text), "%.200s%s", fault->text,
             is_send && was_sent && err != BAY_REMOTE ? " (the agent may have the message)" : "");
    operation_fail(self, err, text);
}

static const a2a_link_events operation_events = {
    .result = on_result,
    .event = on_event,
    .end = on_stream_end,
    .failed = on_call_failed,
};

/* ---- waiting --------------------------------------------------------------------------------- */

typedef struct awaited {
    bool is_done;
    bay_response *response;
    bay_diag diag;
} awaited;

static void on_awaited(bay_operation *operation, bay_response *response, const bay_diag *diag,
                       void *user)
{
    awaited *self = user;
    (void)operation;
    self->is_done = true;
    self->response = response;
    self->diag = *diag;
}

bay_err bay_operation_run(bay_operation *operation, bay_response **out, bay_diag *diag)
{
    awaited wait = {0};
    if (operation == NULL) {
        return diag_set(diag, BAY_NOMEM, "out of memory (or there is no caller)");
    }
    bay_caller *caller = operation->caller;
    bay_err err = sdk_caller_check_waiting(caller, diag);
    if (err != BAY_OK) {
        bay_operation_free(operation);
        return err;
    }
    operation->is_unheard = out == NULL;
    /* what happened while nobody looked: above all, connections that the agent closed, on which a
     * message would be lost without our knowing whether it arrived */
    (void)loop_turn(caller->loop, 0);
    err = bay_operation_start(operation, on_awaited, &wait, diag);
    if (err != BAY_OK) {
        return err;
    }
    while (!wait.is_done) {
        (void)loop_turn(caller->loop, -1);
    }
    caller->is_touched = true;
    if (wait.diag.code == BAY_OK && out != NULL) {
        *out = wait.response;
    } else {
        bay_response_free(wait.response);
    }
    if (diag != NULL && wait.diag.code != BAY_OK) {
        *diag = wait.diag;
    }
    return wait.diag.code;
}

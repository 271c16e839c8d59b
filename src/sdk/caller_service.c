/* Everything a caller is asked for in one word, and waits for. */
#include <stdio.h>

#include "base/err.h"
#include "base/str.h"
#include "sdk/caller_parts.h"

static void no_event(bay_caller_request *request, const bay_caller_reply *event, void *user)
{
    (void)request;
    (void)event;
    (void)user;
}

bay_err bay_caller_send(bay_caller *caller, const char *text, bay_diag *diag, bay_event_fn event,
                        void *user)
{
    bay_caller_request *operation = bay_caller_request_send_text(caller, text);
    bay_caller_request_on_event(operation, event != NULL ? event : no_event, user);
    return bay_caller_request_run(operation, NULL, diag);
}

bay_err bay_caller_send_wait(bay_caller *caller, const char *text, bay_caller_reply **out,
                             bay_diag *diag)
{
    return bay_caller_request_run(bay_caller_request_send_text(caller, text), out, diag);
}

bay_err bay_caller_task(bay_caller *caller, const char *id, int history, bay_caller_reply **out,
                        bay_diag *diag)
{
    bay_caller_request *operation = bay_caller_request_task(caller, id);
    bay_caller_request_history(operation, history);
    return bay_caller_request_run(operation, out, diag);
}

bay_err bay_caller_list(bay_caller *caller, const char *page, bay_caller_reply **out,
                        bay_diag *diag)
{
    bay_caller_request *operation = bay_caller_request_list(caller);
    bay_caller_request_page(operation, page, 0);
    return bay_caller_request_run(operation, out, diag);
}

bay_err bay_caller_task_cancel(bay_caller *caller, const char *id, bay_caller_reply **out,
                               bay_diag *diag)
{
    return bay_caller_request_run(bay_caller_request_task_cancel(caller, id), out, diag);
}

bay_err bay_caller_subscribe(bay_caller *caller, const char *id, bay_diag *diag, bay_event_fn event,
                             void *user)
{
    bay_caller_request *operation = bay_caller_request_subscribe(caller, id);
    bay_caller_request_on_event(operation, event != NULL ? event : no_event, user);
    return bay_caller_request_run(operation, NULL, diag);
}

/* ---- webhooks -------------------------------------------------------------------------------- */

static bay_err run_push(bay_caller *caller, a2a_method method, const char *task, const char *name,
                        const char *value, const char *token, bay_caller_reply **out,
                        bay_diag *diag)
{
    buf request;
    if (caller == NULL || task == NULL || (name != NULL && value == NULL)) {
        return diag_set(diag, BAY_ERR_INVALID, "no task, or no %s", name != NULL ? name : "caller");
    }
    buf_init(&request, CALLER_REQUEST_BYTES);
    buf_lit(&request, "{\"taskId\":");
    json_quote(&request, str_of(task));
    if (name != NULL) {
        buf_printf(&request, ",\"%s\":", name);
        json_quote(&request, str_of(value));
    }
    if (token != NULL) {
        buf_lit(&request, ",\"token\":");
        json_quote(&request, str_of(token));
    }
    buf_append(&request, "}", 2); /* with its NUL */
    bay_err err = request.err;
    if (err == BAY_OK) {
        bay_str name_1_0 = a2a_methods[method].name;
        err = bay_caller_request_run(bay_caller_request_new(caller, name_1_0.at, request.at), out,
                                     diag);
    } else {
        (void)diag_set(diag, err, "the request: %s", bay_err_text(err));
    }
    buf_fini(&request);
    return err;
}

bay_err bay_caller_push_create(bay_caller *caller, const char *task, const char *url,
                               const char *token, bay_caller_reply **out, bay_diag *diag)
{
    return run_push(caller, A2A_CREATE_PUSH_CONFIG, task, "url", url, token, out, diag);
}

bay_err bay_caller_push_get(bay_caller *caller, const char *task, const char *id,
                            bay_caller_reply **out, bay_diag *diag)
{
    return run_push(caller, A2A_GET_PUSH_CONFIG, task, "id", id, NULL, out, diag);
}

bay_err bay_caller_push_list(bay_caller *caller, const char *task, bay_caller_reply **out,
                             bay_diag *diag)
{
    return run_push(caller, A2A_LIST_PUSH_CONFIGS, task, NULL, NULL, NULL, out, diag);
}

bay_err bay_caller_push_delete(bay_caller *caller, const char *task, const char *id, bay_diag *diag)
{
    return run_push(caller, A2A_DELETE_PUSH_CONFIG, task, "id", id, NULL, NULL, diag);
}

bay_err bay_caller_extended_card(bay_caller *caller, bay_caller_reply **out, bay_diag *diag)
{
    return bay_caller_request_run(bay_caller_request_new(caller, "GetExtendedAgentCard", NULL), out,
                                  diag);
}

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

bay_err bay_caller_send_str(bay_caller *caller, bay_str text, bay_diag *diag, bay_event_fn event,
                            void *user)
{
    bay_caller_request *operation = bay_caller_request_send_text_str(caller, text);
    bay_caller_request_on_event(operation, event != NULL ? event : no_event, user);
    return bay_caller_request_run(operation, NULL, diag);
}

bay_err bay_caller_send(bay_caller *caller, const char *text, bay_diag *diag, bay_event_fn event,
                        void *user)
{
    return bay_caller_send_str(caller, str_of(text), diag, event, user);
}

bay_err bay_caller_send_wait_str(bay_caller *caller, bay_str text, bay_caller_reply **out,
                                 bay_diag *diag)
{
    return bay_caller_request_run(bay_caller_request_send_text_str(caller, text), out, diag);
}

bay_err bay_caller_send_wait(bay_caller *caller, const char *text, bay_caller_reply **out,
                             bay_diag *diag)
{
    return bay_caller_send_wait_str(caller, str_of(text), out, diag);
}

bay_err bay_caller_task_str(bay_caller *caller, bay_str id, int history, bay_caller_reply **out,
                            bay_diag *diag)
{
    bay_caller_request *operation = bay_caller_request_task_str(caller, id);
    bay_caller_request_history(operation, history);
    return bay_caller_request_run(operation, out, diag);
}

bay_err bay_caller_task(bay_caller *caller, const char *id, int history, bay_caller_reply **out,
                        bay_diag *diag)
{
    return bay_caller_task_str(caller, str_of(id), history, out, diag);
}

bay_err bay_caller_list_str(bay_caller *caller, bay_str page, bay_caller_reply **out,
                            bay_diag *diag)
{
    bay_caller_request *operation = bay_caller_request_list(caller);
    bay_caller_request_page_str(operation, page, 0);
    return bay_caller_request_run(operation, out, diag);
}

bay_err bay_caller_list(bay_caller *caller, const char *page, bay_caller_reply **out,
                        bay_diag *diag)
{
    return bay_caller_list_str(caller, str_of(page), out, diag);
}

bay_err bay_caller_task_cancel_str(bay_caller *caller, bay_str id, bay_caller_reply **out,
                                   bay_diag *diag)
{
    return bay_caller_request_run(bay_caller_request_task_cancel_str(caller, id), out, diag);
}

bay_err bay_caller_task_cancel(bay_caller *caller, const char *id, bay_caller_reply **out,
                               bay_diag *diag)
{
    return bay_caller_task_cancel_str(caller, str_of(id), out, diag);
}

bay_err bay_caller_subscribe_str(bay_caller *caller, bay_str id, bay_diag *diag, bay_event_fn event,
                                 void *user)
{
    bay_caller_request *operation = bay_caller_request_subscribe_str(caller, id);
    bay_caller_request_on_event(operation, event != NULL ? event : no_event, user);
    return bay_caller_request_run(operation, NULL, diag);
}

bay_err bay_caller_subscribe(bay_caller *caller, const char *id, bay_diag *diag, bay_event_fn event,
                             void *user)
{
    return bay_caller_subscribe_str(caller, str_of(id), diag, event, user);
}

/* ---- webhooks -------------------------------------------------------------------------------- */

typedef struct push_params {
    bay_str task;
    const char *name; /* of the other member; NULL: there is none */
    bay_str value;
    bay_str token; /* empty at NULL: none */
} push_params;

static bay_err run_push(bay_caller *caller, a2a_method method, const push_params *given,
                        bay_caller_reply **out, bay_diag *diag)
{
    if (caller == NULL || given->task.at == NULL ||
        (given->name != NULL && given->value.at == NULL)) {
        return diag_set(diag, BAY_ERR_INVALID, "no task, or no %s",
                        given->name != NULL ? given->name : "caller");
    }
    bay_json *json = bay_json_new();
    bay_json_object(json, NULL);
    bay_json_text_str(json, "taskId", given->task);
    if (given->name != NULL) {
        bay_json_text_str(json, given->name, given->value);
    }
    if (given->token.at != NULL) {
        bay_json_text_str(json, "token", given->token);
    }
    bay_json_end(json);
    bay_str name_1_0 = a2a_methods[method].name;
    return bay_caller_request_run(bay_caller_request_new_json(caller, name_1_0.at, json), out,
                                  diag);
}

bay_err bay_caller_push_create_str(bay_caller *caller, bay_str task, bay_str url, bay_str token,
                                   bay_caller_reply **out, bay_diag *diag)
{
    return run_push(caller, A2A_CREATE_PUSH_CONFIG, &(push_params){task, "url", url, token}, out,
                    diag);
}

bay_err bay_caller_push_create(bay_caller *caller, const char *task, const char *url,
                               const char *token, bay_caller_reply **out, bay_diag *diag)
{
    return bay_caller_push_create_str(caller, str_of(task), str_of(url), str_of(token), out, diag);
}

bay_err bay_caller_push_get_str(bay_caller *caller, bay_str task, bay_str id,
                                bay_caller_reply **out, bay_diag *diag)
{
    return run_push(caller, A2A_GET_PUSH_CONFIG, &(push_params){task, "id", id, {NULL, 0}}, out,
                    diag);
}

bay_err bay_caller_push_get(bay_caller *caller, const char *task, const char *id,
                            bay_caller_reply **out, bay_diag *diag)
{
    return bay_caller_push_get_str(caller, str_of(task), str_of(id), out, diag);
}

bay_err bay_caller_push_list_str(bay_caller *caller, bay_str task, bay_caller_reply **out,
                                 bay_diag *diag)
{
    return run_push(caller, A2A_LIST_PUSH_CONFIGS, &(push_params){.task = task}, out, diag);
}

bay_err bay_caller_push_list(bay_caller *caller, const char *task, bay_caller_reply **out,
                             bay_diag *diag)
{
    return bay_caller_push_list_str(caller, str_of(task), out, diag);
}

bay_err bay_caller_push_delete_str(bay_caller *caller, bay_str task, bay_str id, bay_diag *diag)
{
    return run_push(caller, A2A_DELETE_PUSH_CONFIG, &(push_params){task, "id", id, {NULL, 0}}, NULL,
                    diag);
}

bay_err bay_caller_push_delete(bay_caller *caller, const char *task, const char *id, bay_diag *diag)
{
    return bay_caller_push_delete_str(caller, str_of(task), str_of(id), diag);
}

bay_err bay_caller_extended_card(bay_caller *caller, bay_caller_reply **out, bay_diag *diag)
{
    return bay_caller_request_run(bay_caller_request_new(caller, "GetExtendedAgentCard", NULL), out,
                                  diag);
}

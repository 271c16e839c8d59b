/* What a server of the session revisions asks during a call, and whose question it is.
 *
 * On a stream of its own a question belongs to the call whose stream it is. On a pipe nothing says
 * so: there it belongs to the call that the link is exclusive to, or to the only one that is open.
 * One that may be anybody's is refused: a person must not be asked what another's call needs to
 * know.
 *
 * Invariant: each question is answered once, by whoever was asked or here when its call has ended;
 * one that the server took back, or that its end swallowed, is answered by nobody. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "upstream/local.h"

typedef struct input_request {
    list_link link;             /* in session.input_requests */
    struct input_request *next; /* of the same call */
    upstream_call *call;
    size_t len;
    char id[]; /* raw */
} input_request;

static void input_request_leave(input_request *self)
{
    input_request **at = &self->call->input_requests;
    while (*at != self) {
        at = &(*at)->next;
    }
    *at = self->next;
    self->call->input_request_count--;
    list_remove(&self->link);
}

static void input_request_free(input_request *self)
{
    input_request_leave(self);
    mem_free(self);
}

static input_request *input_request_of(const upstream_call *call, bay_str id)
{
    input_request *one = call->input_requests;
    while (one != NULL && !str_eq((bay_str){one->id, one->len}, id)) {
        one = one->next;
    }
    return one;
}

static input_request *input_request_find(const upstream_session *at, bay_str id)
{
    LIST_EACH(link, &at->input_requests)
    {
        input_request *one = CONTAINER_OF(link, input_request, link);
        if (str_eq((bay_str){one->id, one->len}, id)) {
            return one;
        }
    }
    return NULL;
}

static bool question_pass(upstream_session *at, upstream_call *call, const rpc_message *request)
{
    if (call->events->asked == NULL || call->input_request_count >= UPSTREAM_MAX_INPUT_REQUESTS) {
        return false;
    }
    input_request *made = mem_alloc(sizeof(*made) + request->id.len);
    if (made == NULL) {
        return false;
    }
    *made = (input_request){.next = call->input_requests, .call = call, .len = request->id.len};
    memcpy(made->id, request->id.at, request->id.len);
    list_push(&at->input_requests, &made->link);
    call->input_requests = made;
    call->input_request_count++;
    /* the server keeps what it is told of roots, and the next call may be another client's */
    if (at->is_exclusive && call->affinity.is_stateless &&
        str_eq(request->method, mcp_method_of(MCP_ROOTS_LIST)->text)) {
        at->is_draining = true;
    }
    call->events->asked(call->user, request);
    return true;
}

/* The call that has been open for longest of those that can be asked this. */
static upstream_call *first_that_can(const upstream_session *at, const rpc_message *request)
{
    unsigned needed = mcp_inputs_needed(request->method, request->params);
    LIST_EACH(link, &at->open)
    {
        upstream_call *call = CONTAINER_OF(link, upstream_call, link);
        if ((call->affinity.inputs & needed) == needed && call->events->asked != NULL) {
            return call;
        }
    }
    return NULL;
}

static void input_request_refuse(upstream_session *at, const rpc_message *request)
{
    local *self = at->owner;
    char text[240];
    snprintf(text, sizeof(text),
             "refused %.*s: %zu calls are open in this session and the request names none of them",
             BAY_STR(str_head(request->method, 64)), at->open_count);
    atomic_fetch_add_explicit(&self->base.figures.refused_questions, 1, memory_order_relaxed);
    if (!self->has_complained) {
        self->has_complained = true;
        LOG(LOG_WARN, "upstream", "%s: %s; set share: session for this server", self->base.name,
            text);
    }
    mcp_client_answer(mcp_link_client(at->connection), request->id, (bay_str){NULL, 0},
                      RPC_INVALID_REQUEST, str_of(text));
}

/* A request that names no call: only the calls that are open say whose it is. */
static bool asked_untied(upstream_session *at, const rpc_message *request)
{
    local *self = at->owner;
    upstream_call *only =
        at->open_count == 1 ? CONTAINER_OF(list_first(&at->open), upstream_call, link) : NULL;
    bool is_http = mcp_client_link_kind(mcp_link_client(at->connection)) == MCP_LINK_HTTP;
    if (is_http && only != NULL && at != &self->main && !at->is_exclusive && at->identity == NULL) {
        self->sends_unattributed = true; /* from now on its sessions are exclusive, not shared */
    }
    bool is_loose = loop_now_ms(self->base.loop) < at->loose_until_ms;
    if (only != NULL && (at->is_exclusive || at->identity != NULL || !is_loose)) {
        return question_pass(at, only, request);
    }
    if (at->identity != NULL) {
        upstream_call *call = first_that_can(at, request);
        return call != NULL && question_pass(at, call, request);
    }
    self->sends_unattributed =
        self->sends_unattributed || (is_http && at != &self->main && at->open_count > 0);
    if (first_that_can(at, request) == NULL) {
        return false;
    }
    input_request_refuse(at, request);
    return true;
}

/* mcp 2025-11-25 basic/utilities/tasks: what is asked for a task names it, on whatever stream. */
static bool is_of_task(const rpc_message *request, json_val *out_id)
{
    json_val meta = json_get(request->params, STR("_meta"));
    *out_id = json_get(json_get(meta, STR("io.modelcontextprotocol/related-task")), STR("taskId"));
    return json_is(*out_id, JSON_STRING);
}

static upstream_call *call_of_task(const upstream_session *at, json_val id)
{
    LIST_EACH(link, &at->open)
    {
        upstream_call *call = CONTAINER_OF(link, upstream_call, link);
        if (call->task.len > 0 && json_str_eq(id, call->task)) {
            return call;
        }
    }
    return NULL;
}

/* `call`: whose stream it came on, or NULL. The one that makes a task does not know its name yet.
 */
static void asked_for_task(upstream_session *at, upstream_call *call, json_val id,
                           const rpc_message *request)
{
    upstream_call *waits = call_of_task(at, id);
    bool makes_it = waits == NULL && call != NULL &&
                    !json_is(json_get(call->spec.params, STR("task")), JSON_MISSING);
    waits = makes_it ? call : waits;
    if (waits == NULL || !question_pass(at, waits, request)) {
        mcp_client_answer(mcp_link_client(at->connection), request->id, (bay_str){NULL, 0},
                          RPC_INVALID_REQUEST,
                          STR("nobody waits for the task that this is asked for: ask it while "
                              "tasks/result is open"));
    }
}

bool upstream_session_asked(upstream_session *at, upstream_call *call, const rpc_message *request)
{
    json_val task;
    mcp_client *client = mcp_link_client(at->connection);
    if (is_of_task(request, &task)) {
        asked_for_task(at, call, task, request);
        return true;
    }
    if (call == NULL || mcp_client_link_kind(client) != MCP_LINK_HTTP) {
        return asked_untied(at, request);
    }
    if (!question_pass(at, call, request)) {
        mcp_client_answer(client, request->id, (bay_str){NULL, 0}, RPC_METHOD_NOT_FOUND,
                          STR("nobody can be asked during this call"));
    }
    return true;
}

void upstream_session_withdrawn(void *user, bay_str id)
{
    upstream_session *at = user;
    input_request *one = input_request_find(at, id);
    if (one == NULL) {
        return;
    }
    upstream_call *call = one->call;
    input_request_free(one);
    if (call->events->withdrawn != NULL) {
        call->events->withdrawn(call->user, id);
    }
}

void local_answer(upstream_call *call, bay_str id, bay_str result, int code, bay_str message)
{
    upstream_session *at = call->session;
    input_request *one = at != NULL ? input_request_of(call, id) : NULL;
    if (one != NULL) {
        input_request_free(one);
        mcp_client_answer(mcp_link_client(at->connection), id, result, code, message);
    }
}

void upstream_session_end_input_requests(upstream_session *at, upstream_call *call)
{
    input_request *one;
    while ((one = call->input_requests) != NULL) {
        input_request_leave(one);     /* first: an answer that cannot be sent breaks the link */
        if (at->connection != NULL) { /* else it is being freed */
            mcp_client_answer(mcp_link_client(at->connection), (bay_str){one->id, one->len},
                              (bay_str){NULL, 0}, RPC_INTERNAL_ERROR,
                              STR("the call that this was asked for has ended"));
        }
        mem_free(one);
    }
}

void upstream_session_withdraw_input_requests(upstream_call *call)
{
    input_request *one;
    while ((one = call->input_requests) != NULL) {
        input_request_leave(one);
        if (call->events->withdrawn != NULL) {
            call->events->withdrawn(call->user, (bay_str){one->id, one->len});
        }
        mem_free(one);
    }
}

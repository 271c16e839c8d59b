/* What a server of the session revisions asks, and whose question it is.
 *
 * On a stream of its own a question belongs to the call whose stream it is. On a pipe nothing says
 * so: there it belongs to the call that the link is exclusive to, or to the only one that is open.
 * In a session that serves one client it belongs to that client: with several calls open, or none,
 * it is put to the client outside of any call; to a client without a session with the oldest call
 * that can be asked, and when that ends, with another. One that may be anybody's is refused: a
 * person must not be asked what another's call needs to know.
 *
 * Invariant: each question is answered once, by whoever was asked or here when its call has ended;
 * one that the server took back, or that its end swallowed, is answered by nobody. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "upstream/local.h"

typedef struct input_request {
    list_link link;             /* in session.input_requests */
    struct input_request *next; /* of the same call */
    upstream_call *call;        /* NULL: it is put to the client outside of any call … */
    uint64_t number;            /* … which answers by this */
    json_doc *request;          /* NULL, or a copy: it may be another call's */
    size_t len;
    char id[]; /* raw */
} input_request;

static bay_str input_request_id(const input_request *self)
{
    return (bay_str){self->id, self->len};
}

/* A call's: out of its call and its session. */
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

static void input_request_drop(input_request *self)
{
    mem_free(self->request);
    mem_free(self);
}

static void input_request_free(input_request *self)
{
    input_request_leave(self);
    input_request_drop(self);
}

static input_request *input_request_of(const upstream_call *call, bay_str id)
{
    input_request *one = call->input_requests;
    while (one != NULL && !str_eq(input_request_id(one), id)) {
        one = one->next;
    }
    return one;
}

static input_request *input_request_find(const upstream_session *at, bay_str id)
{
    LIST_EACH(link, &at->input_requests)
    {
        input_request *one = CONTAINER_OF(link, input_request, link);
        if (str_eq(input_request_id(one), id)) {
            return one;
        }
    }
    return NULL;
}

static input_request *input_request_new(upstream_session *at, const rpc_message *request)
{
    input_request *made = mem_zalloc(sizeof(*made) + request->id.len);
    if (made != NULL) {
        made->len = request->id.len;
        memcpy(made->id, request->id.at, request->id.len);
        list_push(&at->input_requests, &made->link);
    }
    return made;
}

/* `is_guess`: it may be another call's, so a copy is kept for that one. */
static bool question_pass(upstream_session *at, upstream_call *call, const rpc_message *request,
                          bool is_guess)
{
    if (call->events->asked == NULL || call->input_request_count >= UPSTREAM_MAX_INPUT_REQUESTS) {
        return false;
    }
    input_request *made = input_request_new(at, request);
    if (made == NULL) {
        return false;
    }
    if (is_guess && json_raw(request->root).len <= UPSTREAM_QUESTION_BYTES) {
        err_ignore(json_clone(request->root, &made->request)); /* else it ends with this call */
    }
    made->call = call;
    made->next = call->input_requests;
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

static bool call_can_be_asked(const upstream_call *call, const rpc_message *request)
{
    unsigned needed = mcp_inputs_needed(request->method, request->params);
    return (call->affinity.inputs & needed) == needed && call->events->asked != NULL;
}

/* The call that has been open for longest of those that can be asked this. */
static upstream_call *first_that_can(const upstream_session *at, const rpc_message *request)
{
    LIST_EACH(link, &at->open)
    {
        upstream_call *call = CONTAINER_OF(link, upstream_call, link);
        if (call_can_be_asked(call, request)) {
            return call;
        }
    }
    return NULL;
}

static size_t count_that_can(const upstream_session *at, const rpc_message *request)
{
    size_t count = 0;
    LIST_EACH(link, &at->open)
    {
        count += call_can_be_asked(CONTAINER_OF(link, upstream_call, link), request);
    }
    return count;
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

/* Out of its session; still to be dropped. */
static void client_request_leave(upstream_session *at, input_request *one)
{
    list_remove(&one->link);
    at->client_requests--;
}

/* To a client with a session, on whatever stream of it is open. */
static bool question_to_client(upstream_session *at, const rpc_message *request)
{
    local *self = at->owner;
    if (!at->has_session || at->client_requests >= UPSTREAM_MAX_INPUT_REQUESTS) {
        return false;
    }
    input_request *made = input_request_new(at, request);
    if (made == NULL) {
        return false;
    }
    uint64_t number = ++self->last_client_request;
    made->number = number;
    at->client_requests++;
    if (!upstream_session_ask(at, number, request)) { /* else it may have been answered already */
        client_request_leave(at, made);
        input_request_drop(made);
        return false;
    }
    LIST_EACH(link, &at->open)
    {
        /* nobody is asked the same twice for one call */
        CONTAINER_OF(link, upstream_call, link)->is_repeatable = false;
    }
    return true;
}

/* In a session that serves one client: what is asked is asked of that client. */
static bool asked_of_own(upstream_session *at, const rpc_message *request)
{
    upstream_call *call = first_that_can(at, request);
    size_t count = count_that_can(at, request);
    if (count != 1 && question_to_client(at, request)) {
        return true;
    }
    return call != NULL && question_pass(at, call, request, count > 1);
}

typedef struct client_answer {
    uint64_t number;
    bay_str result;
    int code;
    bay_str message;
} client_answer;

/* False: it was not asked by this session. */
static bool answer_in(upstream_session *at, const client_answer *answer)
{
    LIST_EACH(link, &at->input_requests)
    {
        input_request *one = CONTAINER_OF(link, input_request, link);
        if (one->call == NULL && one->number == answer->number) {
            client_request_leave(at, one); /* first: an answer that cannot be sent breaks it */
            if (at->connection != NULL) {
                mcp_client_answer(mcp_link_client(at->connection), input_request_id(one),
                                  answer->result, answer->code, answer->message);
            }
            input_request_drop(one);
            return true;
        }
    }
    return false;
}

void local_client_answer(upstream *base, uint64_t number, bay_str result, int code, bay_str message)
{
    local *self = local_of(base);
    client_answer answer = {number, result, code, message};
    if (answer_in(&self->main, &answer)) {
        return;
    }
    LIST_EACH(link, &self->sessions)
    {
        if (answer_in(CONTAINER_OF(link, upstream_session, link), &answer)) {
            return;
        }
    }
}

void upstream_session_forget_client(upstream_session *at)
{
    list_link *link;
    while ((link = list_first(&at->input_requests)) != NULL) {
        input_request *one = CONTAINER_OF(link, input_request, link);
        CHECK(one->call == NULL); /* those of calls went with their calls */
        uint64_t number = one->number;
        client_request_leave(at, one);
        input_request_drop(one);
        upstream_session_take_back(at, number);
    }
}

/* The only open call of a client, or NULL; the gateway reads lists beside it. */
static upstream_call *only_call_of_clients(const upstream_session *at)
{
    upstream_call *only = NULL;
    LIST_EACH(link, &at->open)
    {
        upstream_call *call = CONTAINER_OF(link, upstream_call, link);
        if (!call->affinity.is_own) {
            if (only != NULL) {
                return NULL;
            }
            only = call;
        }
    }
    return only;
}

/* A request that names no call: only the calls that are open say whose it is. */
static bool asked_untied(upstream_session *at, const rpc_message *request)
{
    local *self = at->owner;
    if (upstream_session_is_own(at)) {
        return asked_of_own(at, request);
    }
    upstream_call *only = only_call_of_clients(at);
    bool is_http = mcp_client_link_kind(mcp_link_client(at->connection)) == MCP_LINK_HTTP;
    if (is_http && only != NULL && at != &self->main && !at->is_exclusive && at->identity == NULL) {
        self->sends_unattributed = true; /* from now on its sessions are exclusive, not shared */
    }
    bool is_loose = loop_now_ms(self->base.loop) < at->loose_until_ms;
    if (only != NULL && (at->is_exclusive || at->identity != NULL || !is_loose)) {
        return question_pass(at, only, request, false);
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
    if (waits == NULL || !question_pass(at, waits, request, false)) {
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
    if (!question_pass(at, call, request, false)) {
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
    if (call == NULL) {
        uint64_t number = one->number;
        client_request_leave(at, one);
        input_request_drop(one);
        upstream_session_take_back(at, number);
        return;
    }
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

/* The call that was asked has ended; another of the same client may be the one that it is for. */
static bool question_move(upstream_session *at, const input_request *one)
{
    rpc_message request;
    rpc_fault fault;
    arena memory;
    bool is_moved = false;
    arena_init(&memory, UPSTREAM_QUESTION_BYTES);
    if (one->request != NULL && !at->is_broken &&
        rpc_message_read(&request, json_root(one->request), &memory, &fault) == BAY_OK) {
        is_moved = asked_of_own(at, &request);
    }
    arena_fini(&memory);
    return is_moved;
}

void upstream_session_end_input_requests(upstream_session *at, upstream_call *call)
{
    input_request *one;
    while ((one = call->input_requests) != NULL) {
        input_request_leave(one); /* first: an answer that cannot be sent breaks the link */
        if (at->connection != NULL && !question_move(at, one)) { /* else it is being freed */
            mcp_client_answer(mcp_link_client(at->connection), input_request_id(one),
                              (bay_str){NULL, 0}, RPC_INTERNAL_ERROR,
                              STR("the call that this was asked for has ended"));
        }
        input_request_drop(one);
    }
}

void upstream_session_withdraw_input_requests(upstream_call *call)
{
    input_request *one;
    while ((one = call->input_requests) != NULL) {
        input_request_leave(one);
        if (call->events->withdrawn != NULL) {
            call->events->withdrawn(call->user, input_request_id(one));
        }
        input_request_drop(one);
    }
}

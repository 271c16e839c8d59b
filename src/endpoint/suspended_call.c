#include "endpoint/suspended_call.h"

#include <string.h>

#include "auth/digest.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "endpoint/endpoint_parts.h"
#include "sessions/token.h"
#include "json/build.h"

enum { NUMBER_BYTES = BYTES_U64, STATE_BYTES = 3 * NUMBER_BYTES, RESULT_BYTES = 8 << 20 };

struct suspended_call {
    route way; /* first */
    list_link order_link;
    list_link asking_link;
    char number[NUMBER_BYTES]; /* its key */
    bool is_numbered;          /* it has been suspended once */
    bool is_waiting;           /* for the client */
    bool is_ended;
    uint32_t round;
    uint64_t due_ms;
    char digest[DIGEST_TEXT_BYTES + 1]; /* of method, name and arguments */
    /* of a call that ended while it waited */
    mcp_outcome outcome;
    json_doc *outcome_doc; /* its result or error; NULL: neither */
    char *outcome_bytes;   /* its text with a NUL, then the server's name */
    size_t outcome_all;
    char *server;
    call_target *target; /* counted: what the call was admitted to */
    const auth_principal *principal;
};

static bay_str number_of(const suspended_call *self)
{
    return (bay_str){self->number, NUMBER_BYTES};
}

static suspended_calls *calls_of(const suspended_call *self)
{
    return &self->way.endpoint->suspended;
}

/* ---- what a call is recognised by ------------------------------------------------------------ */

static bay_err digest_request(const mcp_request *request, char out[DIGEST_TEXT_BYTES + 1])
{
    buf text;
    buf_init(&text, (size_t)1 << 30);
    /* a client may write the same arguments another way the next time */
    bay_err err = digest_json(json_get(request->message.params, STR("arguments")), out);
    bytes_put_part(&text, request->method->text);
    bytes_put_part(&text, request->name);
    bytes_put_part(&text, str_of(err == BAY_OK ? out : ""));
    err = err == BAY_OK ? text.err : err;
    err = err == BAY_OK ? digest_sha256(buf_view(&text), out) : err;
    buf_fini(&text);
    return err;
}

/* ---- a call that may be suspended ------------------------------------------------------------ */

bool suspended_call_is_possible(const endpoint *of, const mcp_request *request)
{
    return of->ring != NULL && of->loop != NULL && of->config->limits.suspended_calls > 0 &&
           request->revision->era == MCP_MODERN && request->method != NULL &&
           (request->method->flags & MCP_FLAG_MRTR) != 0;
}

route *suspended_call_new(endpoint *of, const auth_principal *principal, bay_str identity)
{
    suspended_call *self = mem_zalloc(sizeof(*self) + identity.len);
    if (self == NULL) {
        return NULL;
    }
    char *at = (char *)(self + 1);
    self->principal = principal_ref(principal);
    self->way.suspended = self;
    self->way.endpoint = of;
    self->way.call.affinity.principal = self->principal;
    self->way.call.affinity.identity = str_put(&at, identity);
    return &self->way;
}

static void drop_outcome(suspended_call *self)
{
    calls_of(self)->bytes -= self->outcome_all;
    self->outcome_all = 0;
    mem_free(self->outcome_doc);
    mem_free(self->outcome_bytes);
    self->outcome_doc = NULL;
    self->outcome_bytes = NULL;
}

void suspended_call_free(suspended_call *self)
{
    list_remove(&self->order_link);
    list_remove(&self->asking_link);
    if (self->is_numbered) {
        map_remove(&calls_of(self)->calls, number_of(self));
    }
    drop_outcome(self);
    call_target_unref(self->target);
    principal_unref(self->principal);
    mem_free(self);
}

/* The request goes on without the call, and the call without the request: nothing of what the call
 * holds may be the request's. */
static mcp_request *let_go(suspended_call *self)
{
    route *way = &self->way;
    mcp_request *request = way->request;
    bay_str method = way->call.spec.method; /* static */
    way->call.spec = (mcp_call_spec){.method = method, .log_level = MCP_LOG_NONE};
    way->call.is_repeatable = false;
    listing_unref(way->owner);
    way->owner = NULL;
    way->request = NULL;
    request->user = NULL;
    return request;
}

/* ---- suspending ------------------------------------------------------------------------------ */

void suspended_call_ask(suspended_call *self)
{
    if (!list_holds(&self->asking_link)) {
        list_push(&calls_of(self)->asking, &self->asking_link);
        loop_defer(self->way.endpoint->loop, &calls_of(self)->tell);
    }
}

static bay_err enter(suspended_call *self)
{
    suspended_calls *calls = calls_of(self);
    if (self->is_numbered) {
        return BAY_OK;
    }
    if (calls->calls.len >= self->way.endpoint->config->limits.suspended_calls) {
        return BAY_ERR_BUSY;
    }
    bay_err err = digest_request(self->way.request, self->digest);
    if (err == BAY_OK) {
        bytes_put_u64(self->number, ++calls->last_number);
        err = map_put(&calls->calls, number_of(self), self, NULL);
    }
    self->is_numbered = err == BAY_OK;
    return err;
}

static bay_err write_state(const suspended_call *self, buf *out)
{
    const endpoint *of = self->way.endpoint;
    char plain[STATE_BYTES];
    bytes_put_u64(plain, of->suspended.instance);
    memcpy(plain + NUMBER_BYTES, self->number, NUMBER_BYTES);
    bytes_put_u64(plain + 2 * NUMBER_BYTES, self->round);
    return token_seal(of->ring, "call", of->worker, principal_binding(self->principal),
                      (bay_str){plain, sizeof(plain)},
                      loop_time_ms() + of->config->timeouts.answer_ms, out);
}

static void write_questions(const suspended_call *self, json_writer *out)
{
    char key[16];
    json_key_lit(out, "inputRequests");
    json_open_object(out);
    LIST_EACH(at, &self->way.input_requests)
    {
        const input_request *one = CONTAINER_OF(at, input_request, link);
        (void)snprintf(key, sizeof(key), "q%u", one->number);
        json_key(out, str_of(key));
        json_open_object(out);
        json_key_lit(out, "method");
        json_put_str(out, one->method->text);
        if (!json_is(one->params, JSON_MISSING)) {
            json_key_lit(out, "params");
            json_put_val(out, one->params);
        }
        json_close_object(out);
    }
    json_close_object(out);
}

/* The result in the request's memory. */
static bay_err make_result(const suspended_call *self, json_val *result)
{
    buf state;
    json_builder made;
    buf_init(&state, RESULT_BYTES);
    bay_err err = write_state(self, &state);
    if (err == BAY_OK) {
        json_writer *out = json_builder_init(&made, self->way.request->memory, RESULT_BYTES);
        json_open_object(out);
        json_key_lit(out, "resultType");
        json_put_str(out, STR("input_required"));
        write_questions(self, out);
        json_key_lit(out, "requestState");
        json_put_str(out, buf_view(&state));
        json_close_object(out);
        err = json_builder_end(&made, result);
    }
    buf_fini(&state);
    return err;
}

static void arm(suspended_calls *calls, loop *on)
{
    list_link *first = list_first(&calls->order);
    if (first == NULL) {
        loop_timer_stop(on, &calls->expire);
        return;
    }
    uint64_t due_ms = CONTAINER_OF(first, suspended_call, order_link)->due_ms;
    uint64_t now_ms = loop_now_ms(on);
    if (loop_timer_start(on, &calls->expire, due_ms > now_ms ? due_ms - now_ms : 0) != BAY_OK) {
        LOG(LOG_ERROR, "gateway",
            "no timer for suspended calls: the next one to be suspended, or the "
            "end, goes on with it");
    }
}

static void suspend(suspended_call *self)
{
    route *way = &self->way;
    endpoint *of = way->endpoint;
    json_val result;
    if (list_is_empty(&way->input_requests)) {
        return; /* the server took all of it back */
    }
    if (self->round >= SUSPENDED_ROUNDS) {
        route_give_up(way, "limit", STR("it asked for input too often"));
        return;
    }
    self->round++;
    bay_err err = enter(self);
    err = err == BAY_OK ? make_result(self, &result) : err;
    if (err != BAY_OK) {
        LOG(LOG_WARN, "gateway", "a question of \"%.*s\" could not be put to its client: %s",
            BAY_STR(upstream_name(way->call.upstream)),
            err == BAY_ERR_BUSY ? "too many calls are suspended" : bay_err_text(err));
        (void)input_requests_refuse(way, RPC_INTERNAL_ERROR,
                                    err == BAY_ERR_BUSY
                                        ? STR("too many calls wait for their clients")
                                        : STR("the client could not be asked"));
        return;
    }
    LIST_EACH(at, &way->input_requests)
    {
        CONTAINER_OF(at, input_request, link)->is_told = true;
    }
    self->is_waiting = true;
    self->due_ms = loop_now_ms(of->loop) + of->config->timeouts.answer_ms;
    list_push(&of->suspended.order, &self->order_link);
    arm(&of->suspended, of->loop);
    mcp_request *request = let_go(self);
    upstream_call_pause(&way->call, false); /* it was this request's client that read slowly */
    mcp_request_result(request, result);
}

static void suspended_call_tell(void *argument)
{
    endpoint *of = argument;
    list_link *link;
    while ((link = list_pop(&of->suspended.asking)) != NULL) {
        suspend(CONTAINER_OF(link, suspended_call, asking_link));
    }
}

/* ---- giving up ------------------------------------------------------------------------------- */

static void suspended_call_give_up(suspended_call *self, bay_str reason)
{
    upstream_call_cancel(&self->way.call, reason);
    route_end(&self->way);
}

static void expire(void *argument)
{
    endpoint *of = argument;
    list_link *first;
    uint64_t now_ms = loop_now_ms(of->loop);
    while ((first = list_first(&of->suspended.order)) != NULL &&
           CONTAINER_OF(first, suspended_call, order_link)->due_ms <= now_ms) {
        suspended_call_give_up(CONTAINER_OF(first, suspended_call, order_link),
                               STR("the client did not come back with what was asked of it"));
    }
    arm(&of->suspended, of->loop);
}

void suspended_calls_init(endpoint *of)
{
    map_init(&of->suspended.calls, SIZE_MAX / 2);
    list_init(&of->suspended.order);
    list_init(&of->suspended.asking);
    of->suspended.tell = (loop_task){.function = suspended_call_tell, .argument = of};
    loop_timer_init(&of->suspended.expire, expire, of);
    of->suspended.instance = rand_u64();
}

void suspended_calls_fini(endpoint *of)
{
    list_link *link;
    if (of->suspended.order.head.next == NULL) {
        return; /* it was never made */
    }
    while ((link = list_first(&of->suspended.order)) != NULL) {
        suspended_call_give_up(CONTAINER_OF(link, suspended_call, order_link),
                               STR("the gateway is closing"));
    }
    if (of->loop != NULL) {
        loop_undefer(of->loop, &of->suspended.tell);
        loop_timer_stop(of->loop, &of->suspended.expire);
    }
    map_fini(&of->suspended.calls);
}

/* ---- an end without a client request --------------------------------------------------------- */

static bay_err keep_outcome(suspended_call *self, json_val json, bay_str text, bay_str server)
{
    suspended_calls *calls = calls_of(self);
    bool has_json = !json_is(json, JSON_MISSING);
    size_t words = text.len + server.len + 2;
    size_t all = words + (has_json ? json_clone_bytes(json) : 0);
    if (json_raw(json).len > SUSPENDED_OUTCOME_BYTES || calls->bytes + all > SUSPENDED_MAX_BYTES) {
        return BAY_ERR_LIMIT;
    }
    json_doc *doc = NULL;
    char *bytes = mem_zalloc(words);
    if (bytes == NULL || (has_json && json_clone(json, &doc) != BAY_OK)) {
        mem_free(bytes);
        return BAY_ERR_NOMEM;
    }
    if (text.len > 0) {
        memcpy(bytes, text.at, text.len);
    }
    if (server.len > 0) {
        memcpy(bytes + text.len + 1, server.at, server.len);
    }
    self->outcome_doc = doc;
    self->outcome_bytes = bytes;
    self->outcome_all = all;
    self->outcome.text = bytes;
    self->server = bytes + text.len + 1;
    calls->bytes += all;
    return BAY_OK;
}

void suspended_call_store_outcome(suspended_call *self, const mcp_outcome *outcome)
{
    bool is_failure = outcome->kind == MCP_OUTCOME_FAILED;
    json_val json = outcome->kind == MCP_OUTCOME_RESULT ? outcome->result : outcome->error;
    bay_str server = upstream_name(self->way.call.upstream);
    self->is_ended = true;
    self->target = call_target_ref(upstream_target(self->way.call.upstream));
    self->outcome = *outcome;
    self->outcome.result = self->outcome.error = JSON_NONE;
    bay_err err = keep_outcome(self, is_failure ? JSON_NONE : json,
                               is_failure ? str_of(outcome->text) : (bay_str){NULL, 0}, server);
    if (err != BAY_OK) {
        self->outcome = (mcp_outcome){.kind = MCP_OUTCOME_FAILED,
                                      .err = err,
                                      .was_sent = true,
                                      .text = "it ended while the client's answers were awaited, "
                                              "and what it said could not be kept"};
        const char *text = self->outcome.text;
        err_ignore(keep_outcome(self, JSON_NONE, str_of(text), server)); /* a name less */
    }
    while (!list_is_empty(&self->way.input_requests)) {
        input_request_free(
            CONTAINER_OF(list_first(&self->way.input_requests), input_request, link));
    }
}

static void deliver(suspended_call *self, mcp_request *request)
{
    mcp_outcome outcome = self->outcome;
    bay_str server = str_of(self->server != NULL ? self->server : "");
    bay_err err = BAY_OK;
    if (outcome.kind != MCP_OUTCOME_FAILED) {
        /* in the request's memory: the call's goes first */
        json_val root = JSON_NONE;
        err = self->outcome_doc != NULL
                  ? json_clone_in(json_root(self->outcome_doc), request->memory, &root)
                  : BAY_OK;
        outcome.result = outcome.kind == MCP_OUTCOME_RESULT ? root : JSON_NONE;
        outcome.error = outcome.kind == MCP_OUTCOME_ERROR ? root : JSON_NONE;
    }
    if (err != BAY_OK) {
        outcome = (mcp_outcome){
            .kind = MCP_OUTCOME_FAILED, .err = err, .was_sent = true, .text = "out of memory"};
    }
    route_answer(self->way.endpoint, request, server, &outcome);
    route_end(&self->way);
}

/* ---- the retry ------------------------------------------------------------------------------- */

static bool suspended_call_refuse(mcp_request *request, const char *text)
{
    mcp_request_error(request, RPC_INVALID_PARAMS, str_of(text), (bay_str){NULL, 0});
    return true;
}

static bool refuse_memory(mcp_request *request)
{
    endpoint_refuse_memory(request);
    return true;
}

/* The call that a state of ours is for; NULL: there is none any more. */
static suspended_call *find(const endpoint *of, bay_str plain, uint64_t *out_round)
{
    if (plain.len != STATE_BYTES || bytes_get_u64(plain.at) != of->suspended.instance) {
        return NULL;
    }
    *out_round = bytes_get_u64(plain.at + 2 * NUMBER_BYTES);
    return map_get(&of->suspended.calls, (bay_str){plain.at + NUMBER_BYTES, NUMBER_BYTES});
}

static json_val answer_to(const input_request *one, json_val answers)
{
    char key[16];
    buf text = {.at = key, .cap = sizeof(key), .max = sizeof(key)};
    buf_char(&text, 'q');
    buf_uint(&text, one->number);
    return json_get(answers, buf_view(&text));
}

/* What was answered goes to the server. False: the call ended over it. */
static bool pass_answers(route *way, json_val answers)
{
    list mine;
    list_link *link;
    bool is_alive = true;
    list_init(&mine);
    /* those that are not answered go back to the end of the list, where they are not met again */
    uint32_t count = way->input_request_count;
    while (is_alive && count-- > 0 && (link = list_first(&way->input_requests)) != NULL) {
        input_request *one = CONTAINER_OF(link, input_request, link);
        json_val answer = one->is_told ? answer_to(one, answers) : JSON_NONE;
        if (!input_request_accepts(one, answer)) {
            list_remove(link);
            list_push(&way->input_requests, link);
            continue;
        }
        char id[RPC_MAX_ID_BYTES];
        bay_str copy = {id, one->id.len};
        memcpy(id, one->id.at, one->id.len);
        input_request_free(one);
        is_alive = route_reply(way, copy, answer, 0, (bay_str){NULL, 0});
    }
    return is_alive;
}

static void resume(suspended_call *self, mcp_request *request, json_val answers)
{
    route *way = &self->way;
    list_remove(&self->order_link);
    self->is_waiting = false;
    if (self->is_ended) {
        deliver(self, request);
        return;
    }
    way->request = request;
    request->user = way;
    request->call.is_sent = true;
    if (request->log_level != MCP_LOG_NONE) {
        upstream_set_level(way->call.upstream, request->log_level);
    }
    if (pass_answers(way, answers) && !list_is_empty(&way->input_requests)) {
        suspended_call_ask(self);
    }
}

/* Rights may have gone since the call was made: a retry is looked up like a first request. */
static bool sees_name(const endpoint *of, mcp_request *request)
{
    listing_kind kind = request->method->id == MCP_PROMPTS_GET ? LISTING_PROMPTS : LISTING_TOOLS;
    if (!endpoint_has_rules(&request->call)) {
        return true;
    }
    if (request->method->id == MCP_RESOURCES_READ) {
        upstream *owner = endpoint_owner_of_resource(of, request->session, request->name);
        return owner != NULL && endpoint_sees_resource(&request->call, owner);
    }
    return endpoint_find_seen(of, request, kind, request->name) != NULL;
}

static bool take_state(endpoint *of, mcp_request *request, bay_str plain, json_val answers)
{
    char digest[DIGEST_TEXT_BYTES + 1];
    uint64_t round = 0;
    suspended_call *self = find(of, plain, &round);
    if (self == NULL) {
        return suspended_call_refuse(
            request, "The call of this requestState is over: it was resumed before, or "
                     "given up. Call again without it");
    }
    if (digest_request(request, digest) != BAY_OK) {
        return refuse_memory(request);
    }
    if (strcmp(digest, self->digest) != 0) {
        return suspended_call_refuse(
            request, "The requestState belongs to a call of another name or with other "
                     "arguments");
    }
    if (!self->is_waiting || round != self->round) {
        return suspended_call_refuse(request, "The requestState was used before");
    }
    call_target *to = self->is_ended ? self->target : upstream_target(self->way.call.upstream);
    if (!sees_name(of, request)) {
        return suspended_call_refuse(request, "What this call is to is not there any more");
    }
    if (!mcp_request_admit(request, to)) {
        return true;
    }
    resume(self, request, answers);
    return true;
}

bool suspended_call_resume(endpoint *of, mcp_request *request)
{
    static const bay_str keys[] = {STR_INIT("requestState"), STR_INIT("inputResponses")};
    json_val at[ARRAY_LEN(keys)];
    bay_str token;
    if (!suspended_call_is_possible(of, request)) {
        return false;
    }
    bay_err err = json_pick(request->message.params, keys, ARRAY_LEN(keys), at, NULL);
    if (err == BAY_ERR_DUPLICATE) {
        return suspended_call_refuse(request, "inputResponses or requestState stands twice");
    }
    if (err != BAY_OK || !json_is(at[0], JSON_STRING)) {
        return false;
    }
    buf plain;
    buf_init(&plain, SEAL_PLAIN_BYTES);
    err = json_str(at[0], request->memory, &token);
    if (err == BAY_OK) {
        err = token_open(of->ring, "call", principal_binding(request->principal), token,
                         loop_time_ms(), &plain);
    }
    bool is_taken = true;
    bool has_answers = json_is(at[1], JSON_MISSING) || json_is(at[1], JSON_OBJECT);
    if (err == BAY_OK && !has_answers) {
        (void)suspended_call_refuse(request, "inputResponses must be an object");
    } else if (err == BAY_OK) {
        (void)take_state(of, request, buf_view(&plain), at[1]);
    } else if (err == BAY_ERR_TIMEOUT) {
        (void)suspended_call_refuse(request, "The requestState has expired: call again without it");
    } else if (err == BAY_ERR_DENIED) {
        is_taken = false; /* a server's own, perhaps */
    } else {
        (void)refuse_memory(request);
    }
    buf_fini(&plain);
    return is_taken;
}

#include "downstream/parked.h"

#include <string.h>

#include "auth/digest.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "downstream/face_parts.h"
#include "sessions/token.h"

enum { NUMBER_BYTES = BYTES_U64, STATE_BYTES = 3 * NUMBER_BYTES, RESULT_BYTES = 8 << 20 };

struct parked {
    route way; /* first */
    list_link order_link;
    list_link asking_link;
    char number[NUMBER_BYTES]; /* its key */
    bool is_numbered;          /* it has been parked once */
    bool is_waiting;           /* for the client */
    bool is_ended;
    uint32_t round;
    uint64_t due_ms;
    char digest[DIGEST_TEXT_BYTES + 1]; /* of method, name and arguments */
    /* of a call that ended while it waited */
    mcp_outcome outcome;
    char *outcome_bytes; /* the JSON, then the text with its NUL; then the server's name */
    size_t outcome_len;
    size_t outcome_all;
    char *server;
    call_target *target; /* counted: what the call was admitted to */
    const auth_principal *principal;
};

static bay_str number_of(const parked *self)
{
    return (bay_str){self->number, NUMBER_BYTES};
}

static parked_calls *calls_of(const parked *self)
{
    return &self->way.face->parked;
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

/* ---- a call that may be parked --------------------------------------------------------------- */

bool parked_is_possible(const face *of, const mcp_request *request)
{
    return of->ring != NULL && of->loop != NULL && of->config->limits.parked_calls > 0 &&
           request->revision->era == MCP_MODERN && request->method != NULL &&
           (request->method->flags & MCP_FLAG_MRTR) != 0;
}

route *parked_new(face *of, const auth_principal *principal)
{
    parked *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    self->principal = principal_ref(principal);
    self->way.parked = self;
    self->way.face = of;
    self->way.call.affinity.principal = self->principal;
    self->way.call.affinity.identity = principal_binding(self->principal);
    return &self->way;
}

static void drop_outcome(parked *self)
{
    calls_of(self)->bytes -= self->outcome_all;
    self->outcome_all = 0;
    mem_free(self->outcome_bytes);
    self->outcome_bytes = NULL;
}

void parked_free(parked *self)
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
static mcp_request *let_go(parked *self)
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

/* ---- parking --------------------------------------------------------------------------------- */

void parked_ask(parked *self)
{
    if (!list_holds(&self->asking_link)) {
        list_push(&calls_of(self)->asking, &self->asking_link);
        loop_defer(self->way.face->loop, &calls_of(self)->tell);
    }
}

static bay_err enter(parked *self)
{
    parked_calls *calls = calls_of(self);
    if (self->is_numbered) {
        return BAY_OK;
    }
    if (calls->calls.len >= self->way.face->config->limits.parked_calls) {
        return BAY_BUSY;
    }
    bay_err err = digest_request(self->way.request, self->digest);
    if (err == BAY_OK) {
        bytes_put_u64(self->number, ++calls->last_number);
        err = map_put(&calls->calls, number_of(self), self, NULL);
    }
    self->is_numbered = err == BAY_OK;
    return err;
}

static bay_err write_state(const parked *self, buf *out)
{
    const face *of = self->way.face;
    char plain[STATE_BYTES];
    bytes_put_u64(plain, of->parked.instance);
    memcpy(plain + NUMBER_BYTES, self->number, NUMBER_BYTES);
    bytes_put_u64(plain + 2 * NUMBER_BYTES, self->round);
    return token_seal(of->ring, "call", of->worker, principal_binding(self->principal),
                      (bay_str){plain, sizeof(plain)},
                      loop_time_ms() + of->config->timeouts.answer_ms, out);
}

static bay_err write_result(const parked *self, buf *out)
{
    const char *gap = "";
    buf_lit(out, "{\"resultType\":\"input_required\",\"inputRequests\":{");
    LIST_EACH(at, &self->way.questions)
    {
        const question *one = CONTAINER_OF(at, question, link);
        buf_printf(out, "%s\"q%u\":{\"method\":\"%.*s\"", gap, one->number,
                   BAY_STR(one->method->text));
        if (one->params.len > 0) {
            buf_lit(out, ",\"params\":");
            buf_str(out, one->params);
        }
        buf_char(out, '}');
        gap = ",";
    }
    buf_lit(out, "},\"requestState\":\"");
    bay_err err = out->err == BAY_OK ? write_state(self, out) : out->err;
    buf_lit(out, "\"}");
    return err == BAY_OK ? out->err : err;
}

/* The result in the request's memory. */
static bay_err make_result(parked *self, json_doc *doc)
{
    buf text;
    bay_str copy;
    arena *memory = self->way.request->memory;
    buf_init(&text, RESULT_BYTES);
    bay_err err = write_result(self, &text);
    err = err == BAY_OK ? arena_dup(memory, buf_view(&text), &copy) : err;
    err = err == BAY_OK ? json_parse(doc, copy, NULL, memory, NULL) : err;
    buf_fini(&text);
    return err;
}

static void arm(parked_calls *calls, loop *on)
{
    list_link *first = list_first(&calls->order);
    if (first == NULL) {
        loop_timer_stop(on, &calls->expire);
        return;
    }
    uint64_t due_ms = CONTAINER_OF(first, parked, order_link)->due_ms;
    uint64_t now_ms = loop_now_ms(on);
    if (loop_timer_start(on, &calls->expire, due_ms > now_ms ? due_ms - now_ms : 0) != BAY_OK) {
        LOG(LOG_ERROR, "gateway",
            "no timer for parked calls: the next one to be parked, or the "
            "end, goes on with it");
    }
}

static void park(parked *self)
{
    route *way = &self->way;
    face *of = way->face;
    json_doc doc;
    if (list_is_empty(&way->questions)) {
        return; /* the server took all of it back */
    }
    if (self->round >= PARKED_ROUNDS) {
        route_give_up(way, "limit", STR("it asked for input too often"));
        return;
    }
    self->round++;
    bay_err err = enter(self);
    err = err == BAY_OK ? make_result(self, &doc) : err;
    if (err != BAY_OK) {
        LOG(LOG_WARN, "gateway", "a question of \"%.*s\" could not be put to its client: %s",
            BAY_STR(upstream_name(way->call.upstream)),
            err == BAY_BUSY ? "too many calls are parked" : bay_err_text(err));
        (void)questions_refuse(way, RPC_INTERNAL_ERROR,
                               err == BAY_BUSY ? STR("too many calls wait for their clients")
                                               : STR("the client could not be asked"));
        return;
    }
    LIST_EACH(at, &way->questions)
    {
        CONTAINER_OF(at, question, link)->is_told = true;
    }
    self->is_waiting = true;
    self->due_ms = loop_now_ms(of->loop) + of->config->timeouts.answer_ms;
    list_push(&of->parked.order, &self->order_link);
    arm(&of->parked, of->loop);
    mcp_request *request = let_go(self);
    upstream_call_pause(&way->call, false); /* it was this request's client that read slowly */
    mcp_request_result(request, json_root(&doc));
}

static void tell(void *argument)
{
    face *of = argument;
    list_link *link;
    while ((link = list_pop(&of->parked.asking)) != NULL) {
        park(CONTAINER_OF(link, parked, asking_link));
    }
}

/* ---- giving up ------------------------------------------------------------------------------- */

static void give_up(parked *self, bay_str reason)
{
    upstream_call_cancel(&self->way.call, reason);
    route_end(&self->way);
}

static void expire(void *argument)
{
    face *of = argument;
    list_link *first;
    uint64_t now_ms = loop_now_ms(of->loop);
    while ((first = list_first(&of->parked.order)) != NULL &&
           CONTAINER_OF(first, parked, order_link)->due_ms <= now_ms) {
        give_up(CONTAINER_OF(first, parked, order_link),
                STR("the client did not come back with what was asked of it"));
    }
    arm(&of->parked, of->loop);
}

void parked_init(face *of)
{
    map_init(&of->parked.calls, SIZE_MAX / 2);
    list_init(&of->parked.order);
    list_init(&of->parked.asking);
    of->parked.tell = (loop_task){.function = tell, .argument = of};
    loop_timer_init(&of->parked.expire, expire, of);
    of->parked.instance = rand_u64();
}

void parked_fini(face *of)
{
    list_link *link;
    if (of->parked.order.head.next == NULL) {
        return; /* it was never made */
    }
    while ((link = list_first(&of->parked.order)) != NULL) {
        give_up(CONTAINER_OF(link, parked, order_link), STR("the gateway is closing"));
    }
    if (of->loop != NULL) {
        loop_undefer(of->loop, &of->parked.tell);
        loop_timer_stop(of->loop, &of->parked.expire);
    }
    map_fini(&of->parked.calls);
}

/* ---- an end while nobody is there ------------------------------------------------------------ */

static bay_err keep_bytes(parked *self, bay_str json, bay_str text, bay_str server)
{
    parked_calls *calls = calls_of(self);
    size_t all = json.len + text.len + server.len + 2;
    if (json.len > PARKED_OUTCOME_BYTES || calls->bytes + all > PARKED_MAX_BYTES) {
        return BAY_LIMIT;
    }
    char *bytes = mem_zalloc(all);
    if (bytes == NULL) {
        return BAY_NOMEM;
    }
    const bay_str parts[] = {json, text, {"", 1}, server};
    size_t len = 0;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (parts[i].len > 0) {
            memcpy(bytes + len, parts[i].at, parts[i].len);
        }
        len += parts[i].len;
    }
    self->outcome_bytes = bytes;
    self->outcome_len = json.len;
    self->outcome_all = all;
    self->outcome.text = bytes + json.len;
    self->server = bytes + json.len + text.len + 1;
    calls->bytes += all;
    return BAY_OK;
}

void parked_keep(parked *self, const mcp_outcome *outcome)
{
    bool is_failure = outcome->kind == MCP_OUTCOME_FAILED;
    json_val json = outcome->kind == MCP_OUTCOME_RESULT ? outcome->result : outcome->error;
    bay_str server = upstream_name(self->way.call.upstream);
    self->is_ended = true;
    self->target = call_target_ref(upstream_target(self->way.call.upstream));
    self->outcome = *outcome;
    self->outcome.result = self->outcome.error = JSON_NONE;
    bay_err err = keep_bytes(self, is_failure ? (bay_str){NULL, 0} : json_raw(json),
                             is_failure ? str_of(outcome->text) : (bay_str){NULL, 0}, server);
    if (err != BAY_OK) {
        self->outcome = (mcp_outcome){.kind = MCP_OUTCOME_FAILED,
                                      .err = err,
                                      .was_sent = true,
                                      .text = "it ended while the client's answers were awaited, "
                                              "and what it said could not be kept"};
        const char *text = self->outcome.text;
        err_ignore(keep_bytes(self, (bay_str){NULL, 0}, str_of(text), server)); /* a name less */
    }
    while (!list_is_empty(&self->way.questions)) {
        question_free(CONTAINER_OF(list_first(&self->way.questions), question, link));
    }
}

static void deliver(parked *self, mcp_request *request)
{
    json_doc doc;
    mcp_outcome outcome = self->outcome;
    bay_str server = str_of(self->server != NULL ? self->server : "");
    bay_str copy;
    bay_err err = BAY_OK;
    if (outcome.kind != MCP_OUTCOME_FAILED) {
        /* in the request's memory: the call's goes first */
        err = arena_dup(request->memory, (bay_str){self->outcome_bytes, self->outcome_len}, &copy);
        err = err == BAY_OK ? json_parse(&doc, copy, NULL, request->memory, NULL) : err;
        json_val root = err == BAY_OK ? json_root(&doc) : JSON_NONE;
        outcome.result = outcome.kind == MCP_OUTCOME_RESULT ? root : JSON_NONE;
        outcome.error = outcome.kind == MCP_OUTCOME_ERROR ? root : JSON_NONE;
    }
    if (err != BAY_OK) {
        outcome = (mcp_outcome){
            .kind = MCP_OUTCOME_FAILED, .err = err, .was_sent = true, .text = "out of memory"};
    }
    route_answer(request, server, &outcome);
    route_end(&self->way);
}

/* ---- the retry ------------------------------------------------------------------------------- */

static bool refuse(mcp_request *request, const char *text)
{
    mcp_request_error(request, RPC_INVALID_PARAMS, str_of(text), (bay_str){NULL, 0});
    return true;
}

static bool refuse_memory(mcp_request *request)
{
    face_refuse_memory(request);
    return true;
}

/* The call that a state of ours is for; NULL: there is none any more. */
static parked *find(const face *of, bay_str plain, uint64_t *out_round)
{
    if (plain.len != STATE_BYTES || bytes_get_u64(plain.at) != of->parked.instance) {
        return NULL;
    }
    *out_round = bytes_get_u64(plain.at + 2 * NUMBER_BYTES);
    return map_get(&of->parked.calls, (bay_str){plain.at + NUMBER_BYTES, NUMBER_BYTES});
}

static json_val answer_to(const question *one, json_val answers)
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
    uint32_t count = way->question_count;
    while (is_alive && count-- > 0 && (link = list_first(&way->questions)) != NULL) {
        question *one = CONTAINER_OF(link, question, link);
        json_val answer = one->is_told ? answer_to(one, answers) : JSON_NONE;
        if (!question_accepts(one, answer)) {
            list_remove(link);
            list_push(&way->questions, link);
            continue;
        }
        char id[RPC_MAX_ID_BYTES];
        bay_str copy = {id, one->id.len};
        memcpy(id, one->id.at, one->id.len);
        question_free(one);
        is_alive = route_reply(way, copy, json_raw(answer), 0, (bay_str){NULL, 0});
    }
    return is_alive;
}

static void resume(parked *self, mcp_request *request, json_val answers)
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
    if (request->log_level != MCP_LOG_NONE) {
        upstream_set_level(way->call.upstream, request->log_level);
    }
    if (pass_answers(way, answers) && !list_is_empty(&way->questions)) {
        parked_ask(self);
    }
}

static bool take_state(face *of, mcp_request *request, bay_str plain, json_val answers)
{
    char digest[DIGEST_TEXT_BYTES + 1];
    uint64_t round = 0;
    parked *self = find(of, plain, &round);
    if (self == NULL) {
        return refuse(request, "The call of this requestState is over: it was resumed before, or "
                               "given up. Call again without it");
    }
    if (digest_request(request, digest) != BAY_OK) {
        return refuse_memory(request);
    }
    if (strcmp(digest, self->digest) != 0) {
        return refuse(request, "The requestState belongs to a call of another name or with other "
                               "arguments");
    }
    if (!self->is_waiting || round != self->round) {
        return refuse(request, "The requestState was used before");
    }
    call_target *to = self->is_ended ? self->target : upstream_target(self->way.call.upstream);
    if (!mcp_request_admit(request, to)) {
        return true;
    }
    resume(self, request, answers);
    return true;
}

bool parked_resume(face *of, mcp_request *request)
{
    static const bay_str keys[] = {STR_INIT("requestState"), STR_INIT("inputResponses")};
    json_val at[ARRAY_LEN(keys)];
    bay_str token;
    if (!parked_is_possible(of, request)) {
        return false;
    }
    bay_err err = json_pick(request->message.params, keys, ARRAY_LEN(keys), at, NULL);
    if (err == BAY_DUPLICATE) {
        return refuse(request, "inputResponses or requestState stands twice");
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
        (void)refuse(request, "inputResponses must be an object");
    } else if (err == BAY_OK) {
        (void)take_state(of, request, buf_view(&plain), at[1]);
    } else if (err == BAY_TIMEOUT) {
        (void)refuse(request, "The requestState has expired: call again without it");
    } else if (err == BAY_DENIED) {
        is_taken = false; /* a server's own, perhaps */
    } else {
        (void)refuse_memory(request);
    }
    buf_fini(&plain);
    return is_taken;
}

/* Multi round-trip requests: what a call has to ask goes out as its result, together with all that
 * the next round has to know, sealed: the answers so far, the handler's own bytes, how many rounds
 * it has been. The client brings it back unread, and this file makes sure that it is what it gave,
 * to this caller, for this very call, not too long ago and not for the second time.
 *
 * The sealed text: instance (8) | number (8) | round (4) | bytes of state (4) | state | {"key":…}.
 * It is bound to the principal, the method, the name and the digest of the canonical arguments. */
#include "sdk/mrtr_state.h"

#include <string.h>

#include "auth/digest.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "sdk/server_parts.h"

enum { HEAD_BYTES = 24 };

/* What came with the request; lives in its memory. */
typedef struct call_round {
    uint32_t number; /* 0: the first */
    json_val responses;
    json_val earlier;
    json_doc doc; /* of `earlier` */
} call_round;

/* ---- numbers that came back */

typedef struct page {
    list_link link;
    uint64_t expires_ms; /* when all that came back has expired */
    char key[16];
    uint8_t bits[ROUNDS_PAGE_BITS / 8];
} page;

static void page_drop(rounds *self, page *one)
{
    list_remove(&one->link);
    map_remove(&self->pages, (bay_str){one->key, sizeof(one->key)});
    mem_free(one);
}

static page *page_of(rounds *self, uint64_t instance, uint64_t number, uint64_t now)
{
    char key[16];
    bytes_put_u64(key, instance);
    bytes_put_u64(key + 8, number / ROUNDS_PAGE_BITS);
    page *one = map_get(&self->pages, (bay_str){key, sizeof(key)});
    list_link *oldest = list_first(&self->order);
    while (one == NULL && oldest != NULL && CONTAINER_OF(oldest, page, link)->expires_ms <= now) {
        page_drop(self, CONTAINER_OF(oldest, page, link));
        oldest = list_first(&self->order);
    }
    if (one != NULL) {
        return one;
    }
    one = mem_zalloc(sizeof(*one));
    if (one == NULL) {
        return NULL;
    }
    memcpy(one->key, key, sizeof(key));
    if (map_put(&self->pages, (bay_str){one->key, sizeof(one->key)}, one, NULL) != BAY_OK) {
        mem_free(one);
        return NULL;
    }
    list_push(&self->order, &one->link);
    return one;
}

/* BAY_ERR_DUPLICATE: it came back before. BAY_ERR_BUSY: no room to remember it. */
static bay_err redeem(rounds *self, uint64_t instance, uint64_t number, uint64_t now, uint64_t ttl)
{
    page *one = page_of(self, instance, number, now);
    if (one == NULL) {
        return BAY_ERR_BUSY;
    }
    uint8_t *byte = &one->bits[number % ROUNDS_PAGE_BITS / 8];
    uint8_t bit = (uint8_t)(1u << number % 8);
    if ((*byte & bit) != 0) {
        return BAY_ERR_DUPLICATE;
    }
    *byte |= bit;
    one->expires_ms = now + ttl; /* its own expiry is not later */
    return BAY_OK;
}

/* ---- keys */

rounds *sdk_mrtr_state_of(bay_server *server)
{
    if (server->rounds != NULL) {
        return server->rounds;
    }
    rounds *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    self->clock = loop_time_ms;
    self->instance = rand_u64();
    map_init(&self->pages, ROUNDS_MAX_PAGES);
    list_init(&self->order);
    server->rounds = self;
    return self;
}

void sdk_mrtr_state_free(rounds *self)
{
    list_link *link;
    if (self == NULL) {
        return;
    }
    while ((link = list_first(&self->order)) != NULL) {
        page_drop(self, CONTAINER_OF(link, page, link));
    }
    map_fini(&self->pages);
    seal_ring_free(self->ring);
    mem_free(self);
}

void bay_server_key(bay_server *server, const void *key, size_t len)
{
    rounds *self = server != NULL ? sdk_mrtr_state_of(server) : NULL;
    bay_err err = self != NULL ? BAY_OK : BAY_ERR_NOMEM;
    if (server == NULL) {
        return;
    }
    if (err == BAY_OK && self->ring == NULL) {
        err = seal_ring_new(&self->ring);
    }
    if (err == BAY_OK) {
        err = seal_ring_add(self->ring, (bay_str){key, len});
        self->has_given_keys = err == BAY_OK || self->has_given_keys;
    }
    if (err == BAY_ERR_NOMEM) {
        server->is_out_of_memory = true;
    } else if (err == BAY_ERR_INVALID) {
        sdk_server_error(server, "bay_server_key: a key has %d bytes, not %zu", SEAL_KEY_BYTES,
                         len);
    } else if (err != BAY_OK) {
        sdk_server_error(server, "bay_server_key: this library was built without OpenSSL");
    }
}

const seal_ring *sdk_mrtr_state_keys(const bay_server *server)
{
    const rounds *self = server->rounds;
    return self != NULL && self->has_given_keys ? self->ring : NULL;
}

/* Rounds with something to seal with. BAY_ERR_UNSUPPORTED, BAY_ERR_NOMEM. */
static bay_err ready(bay_server *server, rounds **out)
{
    rounds *self = sdk_mrtr_state_of(server);
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    if (self->ring == NULL) {
        seal_ring *ring = NULL;
        bay_err err = seal_ring_new(&ring);
        err = err == BAY_OK ? seal_ring_generate(ring) : err;
        if (err != BAY_OK) {
            seal_ring_free(ring);
            return err;
        }
        self->ring = ring;
    }
    *out = self;
    return BAY_OK;
}

static uint64_t state_ttl(const bay_server *server)
{
    return sdk_server_setting(server, BAY_SERVER_SETTING_STATE_TTL_MS);
}

/* ---- what a state is bound to */

static bay_err bind(const mcp_request *request, buf *out)
{
    char digest[DIGEST_TEXT_BYTES + 1];
    /* a client may write the same arguments another way the next time */
    bay_err err = digest_json(json_get(request->message.params, STR("arguments")), digest);
    if (err != BAY_OK) {
        return err;
    }
    bytes_put_part(out, STR("patchbay round 1"));
    bytes_put_part(out, principal_binding(request->principal));
    bytes_put_part(out, request->method->text);
    bytes_put_part(out, request->name);
    bytes_put_part(out, str_of(digest));
    return out->err;
}

/* ---- a request arrives */

static bool mrtr_state_refuse(bay_call *call, int code, const char *text)
{
    bay_call_error(call, code, text);
    return false;
}

/* Takes apart what was sealed; `plain` lives in the request's memory. */
static bay_err read_state(bay_call *call, rounds *self, call_round *round, bay_str plain,
                          uint64_t now)
{
    if (plain.len < HEAD_BYTES) {
        return BAY_ERR_DENIED;
    }
    uint64_t sizes = bytes_get_u64(plain.at + 16);
    size_t state_len = (size_t)(sizes & UINT32_MAX);
    bay_str rest = str_from(plain, HEAD_BYTES);
    bay_str answers = str_from(rest, state_len);
    if (state_len > rest.len ||
        json_parse(&round->doc, answers, NULL, call->request->memory, NULL) != BAY_OK) {
        return BAY_ERR_NOMEM; /* it is ours: nothing else can be wrong with it */
    }
    round->number = (uint32_t)(sizes >> 32);
    round->earlier = json_root(&round->doc);
    bay_call_remember(call, rest.at, state_len);
    if (call->state.err != BAY_OK) {
        return BAY_ERR_NOMEM;
    }
    return redeem(self, bytes_get_u64(plain.at), bytes_get_u64(plain.at + 8), now,
                  state_ttl(call->server));
}

static bay_err unseal(bay_call *call, call_round *round, bay_str sealed)
{
    rounds *self;
    buf bound;
    buf opened;
    bay_str plain = {NULL, 0};
    bay_err err = ready(call->server, &self);
    if (err != BAY_OK) {
        return err;
    }
    uint64_t now = self->clock();
    buf_init(&bound, SEAL_ASSOCIATED_BYTES);
    buf_init_secret(&opened, SEAL_PLAIN_BYTES);
    err = bind(call->request, &bound);
    if (err == BAY_OK) {
        err = seal_open(self->ring, sealed, buf_view(&bound), now, &opened);
    }
    if (err == BAY_OK) {
        err = arena_dup(call->request->memory, buf_view(&opened), &plain);
    }
    if (err == BAY_OK) {
        err = read_state(call, self, round, plain, now);
    }
    buf_fini(&opened);
    buf_fini(&bound);
    return err;
}

static bool open_state(bay_call *call, call_round *round, json_val state)
{
    bay_str sealed;
    if (!json_is(state, JSON_STRING)) {
        return mrtr_state_refuse(call, RPC_INVALID_PARAMS, "requestState must be a string");
    }
    bay_err err = json_str(state, call->request->memory, &sealed);
    err = err == BAY_OK ? unseal(call, round, sealed) : err;
    switch (err) {
    case BAY_OK:
        return true;
    case BAY_ERR_TIMEOUT:
        return mrtr_state_refuse(call, RPC_INVALID_PARAMS,
                                 "The requestState has expired: call again without it");
    case BAY_ERR_DUPLICATE:
        return mrtr_state_refuse(call, RPC_INVALID_PARAMS,
                                 "The requestState was used before: call again without it");
    case BAY_ERR_BUSY:
        return mrtr_state_refuse(call, RPC_INTERNAL_ERROR,
                                 "The server has no room for the call now");
    case BAY_ERR_NOMEM:
        return mrtr_state_refuse(call, RPC_INTERNAL_ERROR, "Out of memory");
    default:
        return mrtr_state_refuse(call, RPC_INVALID_PARAMS,
                                 "The requestState is not one that this server gave for this call");
    }
}

bool sdk_call_round_open(bay_call *call)
{
    static const bay_str keys[] = {STR_INIT("inputResponses"), STR_INIT("requestState")};
    json_val at[ARRAY_LEN(keys)];
    mcp_request *request = call->request;
    if (json_pick(request->message.params, keys, ARRAY_LEN(keys), at, NULL) != BAY_OK) {
        return mrtr_state_refuse(call, RPC_INVALID_PARAMS,
                                 "inputResponses or requestState stands twice");
    }
    if (json_is(at[0], JSON_MISSING) && json_is(at[1], JSON_MISSING)) {
        return true;
    }
    /* mcp 2026-07-28 basic/patterns/mrtr, Error Handling */
    if (!json_is(at[0], JSON_MISSING) && !json_is(at[0], JSON_OBJECT)) {
        return mrtr_state_refuse(call, RPC_INVALID_PARAMS, "inputResponses must be an object");
    }
    call_round *round = arena_zalloc(request->memory, sizeof(*round));
    if (round == NULL) {
        return mrtr_state_refuse(call, RPC_INTERNAL_ERROR, "Out of memory");
    }
    round->responses = at[0];
    round->earlier = JSON_NONE;
    call->round = round;
    return json_is(at[1], JSON_MISSING) || open_state(call, round, at[1]);
}

/* ---- a question is asked */

static bool take_answer(bay_call *call, question *one, json_val result)
{
    if (json_is(result, JSON_MISSING) || sdk_call_question_check(one, result) != BAY_OK) {
        return false; /* it is asked again */
    }
    if (call->answered.len > 0) {
        buf_char(&call->answered, ',');
    }
    json_quote(&call->answered, one->key);
    buf_char(&call->answered, ':');
    buf_str(&call->answered, json_raw(result));
    sdk_call_question_answered(one, BAY_OK, result);
    return true;
}

/* What was accepted in an earlier round stands: this one cannot change it. */
void sdk_call_round_ask(bay_call *call, question *one)
{
    const call_round *round = call->round;
    rounds *self;
    if (round != NULL && (take_answer(call, one, json_get(round->earlier, one->key)) ||
                          take_answer(call, one, json_get(round->responses, one->key)))) {
        return;
    }
    bool may_ask = (call->request->method->flags & MCP_FLAG_MRTR) != 0;
    bay_err err = may_ask ? ready(call->server, &self) : BAY_ERR_UNSUPPORTED;
    if (err == BAY_OK) {
        one->state = QUESTION_OPEN;
    } else {
        sdk_call_question_answered(one, err, JSON_NONE);
    }
}

/* ---- the run ends with questions */

static void write_requests(const bay_call *call, json_writer *out)
{
    json_open_object(out);
    LIST_EACH(link, &call->questions)
    {
        const question *one = CONTAINER_OF(link, question, link);
        if (one->state == QUESTION_OPEN) {
            sdk_call_question_put(one, out);
        }
    }
    json_close_object(out);
}

static bay_err write_state(bay_call *call, rounds *self, uint32_t number, buf *out)
{
    char head[HEAD_BYTES];
    buf plain;
    buf bound;
    buf_init_secret(&plain, SEAL_PLAIN_BYTES);
    buf_init(&bound, SEAL_ASSOCIATED_BYTES);
    bytes_put_u64(head, self->instance);
    bytes_put_u64(head + 8, self->sequence++);
    pthread_mutex_lock(&call->server->asking); /* the thread it was deferred to may write */
    bytes_put_u64(head + 16, (uint64_t)number << 32 | call->state.len);
    buf_append(&plain, head, sizeof(head));
    buf_str(&plain, buf_view(&call->state));
    pthread_mutex_unlock(&call->server->asking);
    buf_char(&plain, '{');
    buf_str(&plain, buf_view(&call->answered));
    buf_char(&plain, '}');
    bay_err err = bind(call->request, &bound);
    err = err == BAY_OK ? plain.err : err;
    err = err == BAY_OK ? call->answered.err : err;
    if (err == BAY_OK) {
        err = seal_value(self->ring, buf_view(&plain), buf_view(&bound),
                         self->clock() + state_ttl(call->server), out);
    }
    buf_fini(&plain);
    buf_fini(&bound);
    return err;
}

bay_err sdk_call_round_write(bay_call *call, json_writer *out)
{
    rounds *self;
    uint32_t number = call->round != NULL ? call->round->number + 1 : 1;
    if (number > ROUNDS_MAX) {
        return BAY_ERR_LIMIT;
    }
    bay_err err = ready(call->server, &self);
    if (err != BAY_OK) {
        return err;
    }
    json_open_object(out);
    json_key_lit(out, "resultType");
    json_put_str(out, STR("input_required"));
    json_key_lit(out, "inputRequests");
    write_requests(call, out);
    json_key_lit(out, "requestState");
    size_t opened = json_open_word(out);
    err = write_state(call, self, number, out->out);
    json_close_word(out, opened);
    json_close_object(out);
    return err;
}

/* ---- the handler's own bytes: its thread */

void bay_call_remember(bay_call *call, const void *bytes, size_t len)
{
    if (call == NULL) {
        return;
    }
    pthread_mutex_lock(&call->server->asking);
    buf_clear(&call->state);
    buf_append(&call->state, bytes, len);
    bay_err err = call->state.err;
    pthread_mutex_unlock(&call->server->asking);
    if (err != BAY_OK) {
        SERVER_LOG(call->server, LOG_ERROR, "server",
                   "\"%.*s\": %zu bytes of state are not kept: %s", BAY_STR(call->entry->key), len,
                   bay_err_text(err));
    }
}

bay_str bay_call_remembered(bay_call *call)
{
    return call != NULL ? buf_view(&call->state) : (bay_str){NULL, 0};
}

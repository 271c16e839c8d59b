#include "oauth/gate.h"

#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "front/http_reply.h"

enum { RETRY_BYTES = 16 };

/* A request whose check waits. */
typedef struct gate_request {
    list_link link;
    const oauth_gate *gate;
    oauth_guard *guard; /* one reference */
    oauth_check *check;
    front_hold *hold;
    bay_str endpoint;
    bay_str bases[OAUTH_BASES];
} gate_request;

/* ---- refusals -------------------------------------------------------------------------------- */

static const char *text_of(const oauth_refusal *refusal)
{
    switch (refusal->status) {
    case 400:
        return refusal->description;
    case 401:
        return refusal->error[0] == '\0' ? "credentials are needed"
                                         : "the credentials are not accepted";
    case 403:
        return "the credentials lack a scope that is needed";
    case 429:
        return "too many credentials were not accepted; try again later";
    default:
        return "the credentials cannot be checked now; try again later";
    }
}

static bay_str keep(arena *memory, const char *text)
{
    bay_str kept = STR("");
    err_ignore(arena_dup(memory, str_of(text), &kept));
    return kept;
}

static void put_schemes(const oauth_guard *guard, const oauth_refusal *refusal, bay_str base,
                        bay_str endpoint, bay_str scopes, arena *memory, front_challenge *out)
{
    char *at = arena_alloc(memory, OAUTH_CHALLENGE_BYTES);
    char url[2 * OAUTH_URL_BYTES];
    buf metadata = {.at = url, .cap = sizeof(url), .max = sizeof(url)};
    buf text = {.at = at, .cap = OAUTH_CHALLENGE_BYTES, .max = OAUTH_CHALLENGE_BYTES};
    if (at == NULL) {
        return;
    }
    if (oauth_guard_has_issuers(guard)) {
        oauth_metadata_place(base, endpoint, &metadata);
    }
    bay_str told = metadata.err == BAY_OK ? buf_view(&metadata) : STR("");
    size_t count = oauth_challenges_write(guard, refusal, scopes, told, &text);
    for (size_t i = 0; i < count && i < FRONT_CHALLENGES; i++) {
        out->schemes[i] = str_of(at);
        at += out->schemes[i].len + 1;
    }
}

static void refuse_as(const oauth_guard *guard, const oauth_refusal *refusal, bay_str base,
                      bay_str endpoint, arena *memory, front_refusal *out)
{
    char retry[RETRY_BYTES];
    *out =
        (front_refusal){.cause = FRONT_DENIED, .status = refusal->status, .text = text_of(refusal)};
    put_schemes(guard, refusal, base, endpoint, STR(""), memory, &out->challenge);
    if (refusal->nonce[0] != '\0') {
        out->challenge.nonce = keep(memory, refusal->nonce);
    }
    if (refusal->retry_s > 0) {
        (void)snprintf(retry, sizeof(retry), "%u", refusal->retry_s);
        out->challenge.retry = keep(memory, retry);
    }
}

static front_verdict refuse_busy(front_refusal *out)
{
    *out = (front_refusal){.cause = FRONT_DENIED,
                           .status = 503,
                           .text = "the credentials cannot be checked now; try again later",
                           .challenge = {.retry = STR("1")}};
    return FRONT_REFUSE;
}

void oauth_gate_needs(const oauth_guard *guard, bay_str base, bay_str endpoint, bay_str scopes,
                      arena *memory, front_challenge *out)
{
    const oauth_refusal refusal = {.status = 403, .error = "insufficient_scope", .description = ""};
    put_schemes(guard, &refusal, base, endpoint, scopes, memory, out);
}

/* ---- requests that wait ---------------------------------------------------------------------- */

static void gate_request_free(gate_request *self)
{
    list_remove(&self->link);
    oauth_guard_unref(self->guard);
    mem_free(self);
}

static bool turns_away(const oauth_gate *self, const auth_principal *who, front_refusal *out)
{
    return self->turns_away != NULL && self->turns_away(self->user, who, out);
}

static void on_checked(void *user, guard_verdict verdict, const auth_principal *principal,
                       const oauth_refusal *refusal)
{
    gate_request *self = user;
    front_hold *hold = self->hold;
    front_refusal out = {.text = ""};
    bool may_enter = verdict == GUARD_GOOD && !turns_away(self->gate, principal, &out);
    if (verdict != GUARD_GOOD) {
        refuse_as(self->guard, refusal, self->bases[0], self->endpoint,
                  http_exchange_arena(front_hold_request(hold)->exchange), &out);
    }
    gate_request_free(self);
    front_hold_end(hold, may_enter ? FRONT_GO : FRONT_REFUSE, principal, &out);
}

static void on_left(void *user)
{
    gate_request *self = user;
    oauth_check_cancel(self->check);
    gate_request_free(self);
}

void oauth_gate_init(oauth_gate *self)
{
    *self = (oauth_gate){.turns_away = NULL};
    list_init(&self->waiting);
}

void oauth_gate_fini(oauth_gate *self)
{
    list_link *link;
    while ((link = list_first(&self->waiting)) != NULL) {
        gate_request *one = CONTAINER_OF(link, gate_request, link);
        front_hold *hold = one->hold;
        front_refusal refusal;
        (void)refuse_busy(&refusal);
        oauth_check_cancel(one->check);
        gate_request_free(one);
        front_hold_end(hold, FRONT_REFUSE, NULL, &refusal);
    }
}

/* ---- identification -------------------------------------------------------------------------- */

front_verdict oauth_gate_identify(oauth_gate *self, oauth_guard_link *link,
                                  const front_request *request, const oauth_place *place,
                                  const auth_principal **out_principal, front_refusal *out)
{
    gate_request *one = mem_zalloc(sizeof(*one));
    if (one == NULL) {
        return refuse_busy(out);
    }
    oauth_place here = *place;
    here.base_count = place->base_count < OAUTH_BASES ? place->base_count : OAUTH_BASES;
    for (size_t i = 0; i < here.base_count; i++) {
        one->bases[i] = place->bases[i];
    }
    here.bases = one->bases;
    one->gate = self;
    one->endpoint = place->endpoint;
    one->guard = oauth_guard_ref(oauth_guard_link_guard(link));
    oauth_refusal refusal;
    guard_verdict verdict =
        oauth_guard_check(link, request->exchange, &here, out_principal, &refusal, &one->check);
    if (verdict == GUARD_WAIT) {
        one->hold = front_hold_new(request, on_left, one);
        if (one->hold != NULL) {
            list_push(&self->waiting, &one->link);
            oauth_check_wait(one->check, on_checked, one);
            return FRONT_WAIT;
        }
        oauth_check_cancel(one->check);
        (void)refuse_busy(out);
    } else if (verdict == GUARD_REFUSED) {
        refuse_as(one->guard, &refusal, one->bases[0], one->endpoint,
                  http_exchange_arena(request->exchange), out);
    }
    bool may_enter = verdict == GUARD_GOOD && !turns_away(self, *out_principal, out);
    if (verdict == GUARD_GOOD && !may_enter) {
        principal_unref(*out_principal);
        *out_principal = NULL;
    }
    gate_request_free(one);
    return may_enter ? FRONT_GO : FRONT_REFUSE;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* Behind "https://". */
static bay_str authority_of(bay_str base)
{
    bay_str rest = str_from(base, str_find(base, ':') + 3);
    return str_head(rest, str_find(rest, '/'));
}

void oauth_bases_order(bay_str *bases, size_t count, bay_str host)
{
    for (size_t i = 1; i < count; i++) {
        if (str_eq_nocase(authority_of(bases[i]), host)) {
            bay_str first = bases[0];
            bases[0] = bases[i];
            bases[i] = first;
            return;
        }
    }
}

/* ---- metadata -------------------------------------------------------------------------------- */

const http_cors oauth_metadata_cors = {STR_INIT("GET, HEAD, OPTIONS"),
                                       STR_INIT("accept, mcp-protocol-version"), STR_INIT("")};

bay_str oauth_metadata_endpoint(bay_str base, bay_str path)
{
    bay_str rest = str_from(path, STR(OAUTH_METADATA_PATH).len);
    bay_str below = str_from(base, str_find(base, ':') + 3);
    bay_str prefix = str_from(below, str_find(below, '/'));
    if (prefix.len > 0 && str_starts(rest, prefix)) { /* unless a proxy took it away */
        rest = str_from(rest, prefix.len);
    }
    return str_eq(rest, STR("/")) ? STR("") : rest;
}

bool oauth_metadata_serve(const oauth_guard *guard, http_exchange *exchange, bay_str base,
                          bay_str endpoint, bay_str name)
{
    static const http_field fields[] = {
        {STR_INIT("Content-Type"), STR_INIT("application/json")},
        {STR_INIT("Cache-Control"), STR_INIT("max-age=60")},
        {STR_INIT("Access-Control-Allow-Origin"), STR_INIT("*")},
    };
    bay_str method = http_exchange_method(exchange);
    bool is_read = str_eq(method, STR("GET")) || str_eq(method, STR("HEAD"));
    if (!is_read || !oauth_guard_has_issuers(guard)) {
        return false;
    }
    buf body;
    buf_init(&body, OAUTH_DOCUMENT_BYTES);
    oauth_metadata_write(guard, base, endpoint, oauth_guard_scopes(guard), name, &body);
    bool is_whole = body.err == BAY_OK;
    http_exchange_reply(exchange, is_whole ? 200 : 503, fields, ARRAY_LEN(fields),
                        is_whole ? buf_view(&body) : STR(""));
    buf_fini(&body);
    return true;
}

#include "front/front.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "front/http_reply.h"
#include "json/writer.h"

enum { ERROR_BYTES = 1024, INVALID_REQUEST = -32600, INTERNAL_ERROR = -32603 /* JSON-RPC 2.0 */ };

struct http_front {
    front_options options;
    http_origin_check guard;
    bay_str via;
    arena memory; /* the guard's lists and the pseudonym */
};

/* ---- the table ------------------------------------------------------------------------------- */

/* `pattern` behind its first '*': the same, once more; what further ones stand for is not kept. */
static bool rest_matches(bay_str pattern, bay_str rest)
{
    while (pattern.len > 0) {
        if (pattern.at[0] == '*' && pattern.len > 1 && pattern.at[1] == '*') {
            return true;
        }
        if (pattern.at[0] == '*') {
            size_t segment = str_find(rest, '/');
            if (segment == 0) {
                return false;
            }
            pattern = str_from(pattern, 1);
            rest = str_from(rest, segment);
            continue;
        }
        size_t same = str_find(pattern, '*');
        if (!str_starts(rest, str_head(pattern, same))) {
            return false;
        }
        pattern = str_from(pattern, same);
        rest = str_from(rest, same);
    }
    return rest.len == 0;
}

static bool row_matches(bay_str pattern, bay_str path, front_request *out)
{
    size_t fixed = 0; /* most rows are left at their first octets */
    for (; fixed < pattern.len && pattern.at[fixed] != '*'; fixed++) {
        if (fixed == path.len || path.at[fixed] != pattern.at[fixed]) {
            return false;
        }
    }
    if (fixed == pattern.len) {
        return fixed == path.len;
    }
    bay_str tail = str_from(pattern, fixed);
    bay_str rest = str_from(path, fixed);
    if (!rest_matches(tail, rest)) {
        return false;
    }
    bool is_open = tail.len > 1 && tail.at[1] == '*';
    out->name = is_open ? STR("") : str_head(rest, str_find(rest, '/'));
    out->rest = str_from(rest, out->name.len);
    return true;
}

const front_row *front_find(const front_row *rows, size_t count, bay_str base, bay_str path,
                            front_request *out)
{
    bool is_below = str_starts(path, base);
    out->path = path;
    out->own = is_below ? str_from(path, base.len) : STR("");
    out->name = out->rest = STR("");
    is_below = is_below && (out->own.len == 0 || out->own.at[0] == '/');
    for (size_t i = 0; i < count; i++) {
        if ((is_below || rows[i].is_absolute) &&
            row_matches(rows[i].path, rows[i].is_absolute ? path : out->own, out)) {
            return &rows[i];
        }
    }
    return NULL;
}

/* ---- refusals -------------------------------------------------------------------------------- */

void front_reply_error(http_exchange *exchange, int status, int code, const char *text)
{
    char json[ERROR_BYTES];
    buf body = {.at = json, .cap = sizeof(json), .max = sizeof(json)};
    http_field fields[HTTP_REPLY_FIELDS] = {{STR("Content-Type"), STR("application/json")}};
    /* what the guard refused gets nothing that a browser would let its page read */
    size_t count = status == 403 ? 1 : http_reply_cors(exchange, fields, 1);
    buf_printf(&body, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":%d,\"message\":", code);
    json_quote(&body, str_of(text));
    buf_lit(&body, "}}");
    http_exchange_reply(exchange, status, fields, count,
                        body.err == BAY_OK ? buf_view(&body) : STR(""));
}

/* gRPC has its status in fields. Whoever tries again is told the same: 9 is FAILED_PRECONDITION, 7
 * PERMISSION_DENIED. */
static void refuse_grpc(http_exchange *exchange, const front_refusal *refusal)
{
    const http_field fields[] = {
        {STR("Content-Type"), STR("application/grpc")},
        {STR("grpc-status"), refusal->cause == FRONT_LOOP ? STR("9") : STR("7")},
        {STR("grpc-message"), str_of(refusal->text)}};
    http_exchange_reply(exchange, 200, fields, sizeof(fields) / sizeof(fields[0]), STR(""));
}

void front_refuse(http_exchange *exchange, const front_refusal *refusal)
{
    if (refusal->cause != FRONT_DENIED &&
        str_starts(http_exchange_field(exchange, STR("Content-Type")), STR("application/grpc"))) {
        refuse_grpc(exchange, refusal);
        return;
    }
    if (refusal->cause != FRONT_DENIED) {
        /* mcp 2026-07-28 basic/transports/streamable-http, Security Warning: 403, and the body may
         * be an error response that has no id */
        front_reply_error(exchange, refusal->status,
                          refusal->cause == FRONT_LOOP ? INTERNAL_ERROR : INVALID_REQUEST,
                          refusal->text);
        return;
    }
    http_field fields[HTTP_REPLY_FIELDS];
    size_t count = front_challenge_put(&refusal->challenge, fields, 0);
    fields[count++] = (http_field){STR("Cache-Control"), STR("no-store")};
    count = http_reply_cors(exchange, fields, count);
    http_exchange_reply(exchange, refusal->status, fields, count, STR(""));
}

size_t front_challenge_put(const front_challenge *self, http_field *fields, size_t count)
{
    for (size_t i = 0; i < FRONT_CHALLENGES; i++) {
        if (self->schemes[i].len > 0) {
            fields[count++] = (http_field){STR("WWW-Authenticate"), self->schemes[i]};
        }
    }
    if (self->nonce.len > 0) {
        fields[count++] = (http_field){STR("DPoP-Nonce"), self->nonce};
    }
    if (self->retry.len > 0) {
        fields[count++] = (http_field){STR("Retry-After"), self->retry};
    }
    return count;
}

static void refuse_request(const http_front *self, const front_request *request,
                           const front_refusal *refusal)
{
    const front_row *row = request->row;
    if (row != NULL && row->refuse != NULL) {
        row->refuse(self->options.user, request, refusal);
    } else {
        front_refuse(request->exchange, refusal);
    }
}

static void answer_unknown(const http_front *self, http_exchange *exchange)
{
    if (self->options.unknown != NULL) {
        self->options.unknown(self->options.user, exchange);
        return;
    }
    http_field fields[HTTP_REPLY_FIELDS];
    size_t count = http_reply_cors(exchange, fields, 0);
    http_exchange_reply(exchange, 404, fields, count, STR(""));
}

/* ---- one exchange ---------------------------------------------------------------------------- */

/* False: `out` says why not. */
static bool may_enter(http_front *self, const http_origin_check_fields *fields,
                      const http_exchange *exchange, front_refusal *out)
{
    out->text = http_origin_check_refusal(&self->guard, fields);
    if (out->text != NULL) {
        out->cause = FRONT_GUARD;
        out->status = 403;
        return false;
    }
    out->text =
        fields->has_via && self->via.len > 0 ? front_via_refusal(self->via, exchange) : NULL;
    if (out->text != NULL) {
        out->cause = FRONT_LOOP;
        out->status = 508;
        return false;
    }
    return true;
}

/* Its caller is known, or it is refused. */
static void conclude(const http_front *self, front_request *request, front_verdict verdict,
                     const auth_principal *principal, const front_refusal *refusal)
{
    if (verdict != FRONT_GO) {
        refuse_request(self, request, refusal);
        return;
    }
    request->principal = principal;
    if (!request->row->serve(self->options.user, request)) {
        answer_unknown(self, request->exchange);
    }
}

static void front_serve(const http_front *self, front_request *request)
{
    const front_options *options = &self->options;
    const auth_principal *principal = NULL;
    front_refusal refusal = {.cause = FRONT_DENIED, .status = 401, .text = ""};
    front_verdict verdict = FRONT_GO;
    if (request->row->need == FRONT_CALLER && options->identify != NULL) {
        verdict = options->identify(options->user, request, &principal, &refusal);
    }
    if (verdict != FRONT_WAIT) {
        conclude(self, request, verdict, principal, &refusal);
    }
    principal_unref(principal);
}

/* ---- exchanges that wait --------------------------------------------------------------------- */

struct front_hold {
    const http_owner_ops *owner; /* first: as front/http_reply.h wants it */
    front_request request;
    void (*left)(void *user);
    void *user;
};

static void hold_closed(void *holder, http_exchange *exchange, bool is_complete)
{
    front_hold *self = holder;
    (void)exchange;
    (void)is_complete;
    self->left(self->user);
    mem_free(self);
}

static void hold_drained(void *holder, http_exchange *exchange)
{
    (void)holder;
    (void)exchange;
}

front_hold *front_hold_new(const front_request *request, void (*left)(void *user), void *user)
{
    static const http_owner_ops ops = {.closed = hold_closed, .drained = hold_drained};
    front_hold *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    *self = (front_hold){.owner = &ops, .request = *request, .left = left, .user = user};
    http_exchange_set_user(request->exchange, self);
    return self;
}

const front_request *front_hold_request(const front_hold *self)
{
    return &self->request;
}

void front_hold_end(front_hold *self, front_verdict verdict, const auth_principal *principal,
                    const front_refusal *refusal)
{
    front_request request = self->request;
    http_exchange_set_user(request.exchange, NULL);
    mem_free(self);
    conclude(request.front, &request, verdict, principal, refusal);
}

/* ---- one exchange, from its beginning -------------------------------------------------------- */

static void on_request(void *user, http_exchange *exchange)
{
    http_front *self = user;
    front_request request = {.exchange = exchange, .front = self};
    front_refusal refusal = {.text = ""};
    const front_options *options = &self->options;
    const front_row *row = front_find(options->rows, options->row_count,
                                      options->base != NULL ? *options->base : STR(""),
                                      http_exchange_path(exchange), &request);
    request.row = row;
    http_origin_check_fields fields;
    http_origin_check_fields_read(exchange, &fields);
    request.from =
        (forwarded_request){.address = http_exchange_peer(exchange), .host = fields.host};
    if (options->proxies != NULL && options->proxies->count > 0) {
        forwarded_read(options->proxies, exchange, &request.from);
        fields.host = request.from.host;
    }
    if (row != NULL && row->need == FRONT_SHARED) {
        fields.origin_count = 0;
    }
    if (!may_enter(self, &fields, exchange, &refusal)) {
        LOG(LOG_DEBUG, "front", "a request from %.*s is refused: %s", BAY_STR(request.from.address),
            refusal.text);
        refuse_request(self, &request, &refusal);
    } else if (row == NULL) {
        answer_unknown(self, exchange);
    } else if (row->cors != NULL && str_eq(http_exchange_method(exchange), STR("OPTIONS"))) {
        http_origin_check_preflight(exchange, row->cors);
    } else {
        front_serve(self, &request);
    }
}

const http_handler front_handler = {
    .request = on_request, .closed = http_owner_closed, .drained = http_owner_drained};

/* ---- life ------------------------------------------------------------------------------------ */

bay_err front_new(const front_options *options, http_front **out)
{
    if (options->row_count == 0) {
        return BAY_ERR_INVALID;
    }
    http_front *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->options = *options;
    arena_init(&self->memory, TEXTS_MAX_BYTES);
    http_origin_check lists = {.hosts = options->hosts,
                               .host_count = options->host_count,
                               .origins = options->origins,
                               .origin_count = options->origin_count,
                               .is_loopback = options->is_loopback,
                               .names = options->names};
    bay_err err = http_origin_check_copy(&self->guard, &lists, &self->memory);
    if (err == BAY_OK) {
        err = arena_dup(&self->memory, options->via, &self->via);
    }
    if (err != BAY_OK) {
        front_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

void front_free(http_front *self)
{
    if (self != NULL) {
        arena_fini(&self->memory);
        mem_free(self);
    }
}

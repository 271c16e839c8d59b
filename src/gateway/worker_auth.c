/* Who sends a request, on one loop: which guard its path stands behind, what it is told when it may
 * not come in, and where the metadata of each endpoint is. */
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "gateway/auth_parts.h"
#include "gateway/connect.h"
#include "gateway/login.h"
#include "gateway/proxy.h"
#include "gateway/worker.h"
#include "oauth/gate.h"

enum { BASES = 5, BASE_BYTES = 4096 };

struct worker_auth {
    worker *worker;
    const gateway_auth *auth;
    oauth_guard_link **links; /* as gateway_auth.guards */
    oauth_gate gate;
    worker_login *login;     /* NULL: nobody logs in here */
    worker_connect *connect; /* likewise */
    worker_proxy *proxy;     /* NULL: nothing was fetched yet */
    size_t base_count;       /* 0: not known yet */
    bay_str bases[BASES];
    char base_text[BASE_BYTES];
};

/* ---- addresses ------------------------------------------------------------------------------- */

static void add_base(worker_auth *self, buf *text, const char *host)
{
    const gateway *owner = self->worker->gateway;
    size_t start = text->len;
    buf_str(text, owner->tls != NULL ? STR("https://") : STR("http://"));
    if (host == NULL) {
        gateway_write_reachable(owner, text);
    } else {
        buf_printf(text, "%s:%u", host, gateway_port(owner));
    }
    bay_str base = str_from(buf_view(text), start);
    bool is_known = text->err != BAY_OK;
    for (size_t i = 0; i < self->base_count; i++) {
        is_known = is_known || str_eq(self->bases[i], base);
    }
    if (!is_known) {
        self->bases[self->base_count++] = base;
    }
}

/* publicUrl, or how this machine reaches what is listened on: its port is known once it is. */
static void find_bases(worker_auth *self)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    const config *settings = self->auth->config;
    bay_str given = settings->public_url.len > 0 ? settings->public_url : settings->a2a.public_url;
    buf text = {.at = self->base_text, .cap = BASE_BYTES, .max = BASE_BYTES};
    if (given.len > 0) {
        self->bases[self->base_count++] = given;
        return;
    }
    add_base(self, &text, NULL);
    for (size_t i = 0; self->worker->gateway->is_local && i < ARRAY_LEN(names); i++) {
        add_base(self, &text, names[i]);
    }
}

static size_t order_bases(worker_auth *self, bay_str host, bay_str out[BASES])
{
    if (self->base_count == 0) {
        find_bases(self);
    }
    for (size_t i = 0; i < self->base_count; i++) {
        out[i] = self->bases[i];
    }
    oauth_bases_order(out, self->base_count, host);
    return self->base_count;
}

bay_str worker_auth_base(worker_auth *self, bay_str host)
{
    bay_str bases[BASES];
    (void)order_bases(self, host, bases);
    return bases[0];
}

/* ---- endpoints ------------------------------------------------------------------------------- */

/* "/mcp/@NAME" of a profile, also with its sign escaped; "": it is none. */
static bay_str profile_in(bay_str where)
{
    static const bay_str signs[] = {STR_INIT("/mcp/@"), STR_INIT("/mcp/%40")};
    for (size_t i = 0; i < ARRAY_LEN(signs); i++) {
        if (str_starts(where, signs[i])) {
            bay_str name = str_from(where, signs[i].len);
            return str_head(name, str_find(name, '/'));
        }
    }
    return STR("");
}

/* Which guard: 0 is the file's. */
static size_t guard_at(const config *settings, bay_str where)
{
    bay_str name = profile_in(where);
    for (size_t i = 0; name.len > 0 && i < settings->profile_count; i++) {
        if (str_eq(settings->profiles[i].name, name)) {
            return i + 1;
        }
    }
    return 0;
}

static bool is_own(const gateway_auth *self, size_t guard)
{
    const config_auth *of = guard > 0 ? &self->config->profiles[guard - 1].auth : NULL;
    return of != NULL && (of->none || config_auth_is_given(of));
}

/* "/mcp", "/mcp/NAME", "/a2a/NAME": what stands in front of the third slash; "" for what HTTP+SSE
 * and gRPC use, and for the list of agents. */
static bay_str endpoint_in(bay_str path)
{
    static const bay_str kinds[] = {STR_INIT("/mcp/"), STR_INIT("/a2a/")};
    if (str_eq(path, STR("/mcp"))) {
        return path;
    }
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        bay_str name = str_from(path, kinds[i].len);
        if (str_starts(path, kinds[i]) && name.len > 0 && name.at[0] != '/') {
            return str_head(path, kinds[i].len + str_find(name, '/'));
        }
    }
    return STR("");
}

static bay_str endpoint_of(const front_request *request)
{
    bay_str path = request->path;
    bool is_sse = str_starts(path, STR("/mcp/")) && str_eq(request->rest, STR("/sse"));
    return is_sse && profile_in(path).len == 0 ? STR("") : endpoint_in(path);
}

bool worker_auth_is_apart(const worker_auth *self, bay_str path)
{
    return is_own(self->auth, guard_at(self->auth->config, path));
}

/* ---- identification -------------------------------------------------------------------------- */

static bool is_by_proxy(const worker *self, const front_request *request)
{
    return forwarded_is_trusted(&self->proxies, http_exchange_peer(request->exchange));
}

front_verdict worker_auth_identify(worker_auth *self, const front_request *request,
                                   const auth_principal **out_principal, front_refusal *out)
{
    bay_str where = endpoint_of(request);
    size_t guard = guard_at(self->auth->config, where);
    oauth_guard_link *link = self->links[guard];
    bay_str bases[BASES];
    if (link == NULL) {
        return FRONT_GO;
    }
    oauth_place place = {.bases = bases,
                         .base_count = order_bases(self, request->from.host, bases),
                         .endpoint = where,
                         .is_part = !is_own(self->auth, guard),
                         .address = request->from.address,
                         .is_by_proxy = is_by_proxy(self->worker, request),
                         .ring = self->worker->ring};
    return oauth_gate_identify(&self->gate, link, request, &place, out_principal, out);
}

void worker_auth_challenge(worker_auth *self, http_exchange *exchange, bay_str scopes,
                           front_challenge *out)
{
    bay_str bases[BASES];
    bay_str where = endpoint_in(http_exchange_path(exchange));
    const oauth_guard *guard = self->auth->guards[guard_at(self->auth->config, where)];
    forwarded_request from = {.address = http_exchange_peer(exchange),
                              .host = http_exchange_field(exchange, STR("Host"))};
    if (guard == NULL) {
        return;
    }
    forwarded_read(&self->worker->proxies, exchange, &from);
    (void)order_bases(self, from.host, bases);
    oauth_gate_needs(guard, bases[0], where, scopes, http_exchange_arena(exchange), out);
}

/* ---- metadata -------------------------------------------------------------------------------- */

/* Any name has metadata, so that nobody learns from it which there are. */
bool worker_auth_serve_metadata(worker_auth *self, const front_request *request)
{
    bay_str bases[BASES];
    (void)order_bases(self, request->from.host, bases);
    bay_str rest = oauth_metadata_endpoint(bases[0], request->path);
    bay_str where = endpoint_in(rest);
    bool is_whole = rest.len == 0 || str_eq(rest, STR("/sse"));
    if (!is_whole && (where.len == 0 || where.len != rest.len)) {
        return false;
    }
    size_t guard = guard_at(self->auth->config, where);
    return oauth_metadata_serve(self->auth->guards[guard], request->exchange, bases[0], where,
                                STR(""));
}

/* ---- blocked callers ------------------------------------------------------------------------- */

bool worker_turns_away(void *user, const auth_principal *who, front_refusal *out)
{
    const worker *self = user;
    blocks_answer answer =
        self->blocks != NULL ? gateway_blocks_have(self->blocks, who) : BLOCKS_NO;
    if (answer == BLOCKS_NO) {
        return false;
    }
    *out = (front_refusal){.cause = FRONT_DENIED, .status = 403, .text = "this caller is blocked"};
    if (answer == BLOCKS_UNKNOWN) {
        *out = (front_refusal){.cause = FRONT_DENIED,
                               .status = 503,
                               .text = "who is blocked cannot be read now; try again later",
                               .challenge = {.retry = STR("1")}};
    }
    return true;
}

static bool is_blocked(void *user, const auth_principal *who)
{
    return who != NULL && gateway_blocks_have(((worker *)user)->blocks, who) == BLOCKS_YES;
}

static void end_streams(const worker *self, principal_test is_over, void *user)
{
    if (self->mcp_http_router != NULL) {
        mcp_http_router_end_streams(self->mcp_http_router, is_over, user);
    }
    if (self->agents != NULL) {
        agents_end_streams(self->agents, is_over, user);
    }
}

static void on_blocked(void *user)
{
    end_streams(user, is_blocked, user);
}

static bool is_expired(void *user, const auth_principal *who)
{
    return who != NULL && principal_is_expired(who, *(const uint64_t *)user);
}

void worker_end_expired(worker *self, uint64_t wall_ms)
{
    uint64_t before_ms = wall_ms - WORKER_EXPIRY_GRACE_MS;
    end_streams(self, is_expired, &before_ms);
}

void worker_watch_blocks(worker *self)
{
    if (self->blocks != NULL) {
        gateway_blocks_watch(self->blocks, on_blocked, self);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

bay_err worker_auth_new(worker *of, const gateway_auth *auth, store *keys, worker_auth **out,
                        bay_diag *diag)
{
    size_t count = auth->config->profile_count + 1;
    worker_auth *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    self->worker = of;
    self->auth = gateway_auth_ref(auth);
    oauth_gate_init(&self->gate);
    self->gate.turns_away = worker_turns_away;
    self->gate.user = of;
    self->links = mem_array(count, sizeof(oauth_guard_link *));
    bay_err err = self->links != NULL ? BAY_OK : BAY_ERR_NOMEM;
    for (size_t i = 0; err == BAY_OK && i < count; i++) {
        if (auth->guards[i] != NULL) {
            err =
                oauth_guard_link_new(of->loop, auth->guards[i], keys != NULL ? auth_key_find : NULL,
                                     keys, &self->links[i], diag);
        }
    }
    if (err == BAY_OK) {
        err = worker_login_new(of, auth, &self->login, diag);
    }
    if (err == BAY_OK && self->login != NULL) {
        err = worker_connect_new(of, &self->connect);
    }
    if (err != BAY_OK) {
        worker_auth_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

void worker_auth_free(worker_auth *self)
{
    if (self == NULL) {
        return;
    }
    worker_connect_free(self->connect);
    worker_login_free(self->login);
    worker_proxy_free(self->proxy);
    oauth_gate_fini(&self->gate);
    for (size_t i = 0; self->links != NULL && i <= self->auth->config->profile_count; i++) {
        oauth_guard_link_free(self->links[i]);
    }
    mem_free(self->links);
    gateway_auth_unref(self->auth);
    mem_free(self);
}

worker_login *worker_auth_login(const worker_auth *self)
{
    return self->login;
}

worker_connect *worker_auth_connect(const worker_auth *self)
{
    return self->connect;
}

worker_proxy **worker_auth_proxy(worker_auth *self)
{
    return &self->proxy;
}

const gateway_auth *worker_auth_of(const worker_auth *self)
{
    return self->auth;
}

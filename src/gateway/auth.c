/* The guards of a configuration. */
#include "gateway/auth.h"

#include <stdatomic.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "gateway/auth_parts.h"
#include "gateway/login.h"
#include "gateway/proxy.h"
#include "net/capture.h"

enum { KEYS_MS = 1000 /* to read a file: a reload does it on a loop */ };

/* ---- files ----------------------------------------------------------------------------------- */

static bay_err read_keys(const config_issuer *issuer, buf *out, bay_diag *diag)
{
    const char *fault = capture_file_into(issuer->keys.at, KEYS_MS, out);
    return fault == NULL
               ? BAY_OK
               : diag_set(diag, BAY_ERR_IO, "auth.issuers.%.*s.keys: %.*s cannot be read: %s",
                          BAY_STR(issuer->name), BAY_STR(issuer->keys), fault);
}

static bool is_file(bay_str keys)
{
    return keys.len > 0 && !str_starts(keys, STR("https://")) && !str_starts(keys, STR("http://"));
}

/* ---- one guard ------------------------------------------------------------------------------- */

/* What was verified with a key that is gone is verified again. */
static void on_dropped(void *user, const oauth_issuer *issuer)
{
    oauth_state_forget_issuer(user, oauth_issuer_url(issuer));
}

unsigned auth_algorithms(const config_issuer *from)
{
    unsigned bits = 0;
    for (size_t i = 0; i < from->algorithms.count; i++) {
        bits |= access_algorithm(from->algorithms.at[i]);
    }
    return bits;
}

static bay_err issuer_new(const config_issuer *from, oauth_state *state, oauth_issuer **out,
                          bay_diag *diag)
{
    buf keys;
    bay_diag why = {.text = ""};
    buf_init(&keys, JOSE_KEYSET_BYTES);
    bay_err err = is_file(from->keys) ? read_keys(from, &keys, diag) : BAY_OK;
    if (err == BAY_OK && is_file(from->keys) && !str_starts(str_trim(buf_view(&keys)), STR("{"))) {
        err = diag_set(diag, BAY_ERR_SYNTAX,
                       "auth.issuers.%.*s.keys: the file \"%.*s\" holds no keys: it must be a JWK "
                       "set, as {\"keys\":[…]}",
                       BAY_STR(from->name), BAY_STR(from->keys));
    }
    if (err == BAY_OK) {
        oauth_issuer_options options = {.url = from->url,
                                        .keys = is_file(from->keys) ? buf_view(&keys) : from->keys,
                                        .allow = from->allow.at,
                                        .allow_count = from->allow.count,
                                        .ca_file = from->tls.ca.len > 0 ? from->tls.ca.at : NULL,
                                        .dropped = on_dropped,
                                        .user = state};
        err = oauth_issuer_new(&options, out, &why);
        err = err == BAY_OK ? BAY_OK
                            : diag_set(diag, err, "auth.issuers.%.*s: %s", BAY_STR(from->name),
                                       why.text[0] != '\0' ? why.text : bay_err_text(err));
    }
    buf_fini(&keys);
    return err;
}

bay_err gateway_auth_check_issuer(const config_issuer *issuer, bay_diag *diag)
{
    oauth_issuer *made = NULL;
    bay_err err = issuer_new(issuer, NULL, &made, diag);
    oauth_issuer_unref(made);
    return err;
}

static void fill_issuer(const config_issuer *from, oauth_issuer *issuer, oauth_guard_issuer *out)
{
    *out = (oauth_guard_issuer){.issuer = issuer,
                                .audiences = from->audience.at,
                                .audience_count = from->audience.count,
                                .clients = from->clients.at,
                                .client_count = from->clients.count,
                                .algorithms = auth_algorithms(from),
                                .is_typed = from->type == CONFIG_TOKEN_AT_JWT,
                                .skew_ms = from->skew_ms,
                                .lifetime_ms = from->lifetime_ms,
                                .client_id = from->introspection.client_id,
                                .client_secret = from->introspection.client_secret,
                                .introspects_all = from->introspection.always,
                                .field = from->header};
}

static void put_scopes(config_list scopes, buf *out)
{
    for (size_t i = 0; i < scopes.count; i++) {
        buf_str(out, i > 0 ? STR(" ") : STR(""));
        buf_str(out, scopes.at[i]);
    }
}

/* A server or agent gets tokens in exchange for those of callers. */
static bool exchanges_tokens(const config *settings)
{
    bool exchanges = false;
    for (size_t i = 0; !exchanges && i < settings->server_count; i++) {
        exchanges = config_credentials_exchange(&settings->servers[i].credentials);
    }
    for (size_t i = 0; !exchanges && i < settings->agent_count; i++) {
        exchanges = config_credentials_exchange(&settings->agents[i].credentials);
    }
    return exchanges;
}

/* What the guards of a configuration have in common. */
typedef struct guard_shared {
    oauth_state *state;
    oauth_grants *grants; /* what we give out ourselves; NULL: nothing */
    bool keeps_tokens;
    oauth_issuer *
        *login; /* gets a reference to the issuer at which people log in; NULL: nobody does */
} guard_shared;

static bay_err guard_of(const config_auth *from, const guard_shared *shared, oauth_guard **out,
                        bay_diag *diag)
{
    oauth_guard_issuer *issuers = mem_array(from->issuer_count + 1, sizeof(*issuers));
    access_implied *implied = mem_array(from->implies.count + 1, sizeof(*implied));
    bay_err err = issuers != NULL && implied != NULL ? BAY_OK : BAY_ERR_NOMEM;
    size_t made = 0;
    buf scopes;
    buf_init(&scopes, PRINCIPAL_SCOPES_BYTES);
    put_scopes(from->scopes, &scopes);
    err = err == BAY_OK ? scopes.err : err;
    for (; err == BAY_OK && made < from->issuer_count; made++) {
        oauth_issuer *issuer = NULL;
        err = issuer_new(&from->issuers[made], shared->state, &issuer, diag);
        if (err != BAY_OK) {
            break;
        }
        fill_issuer(&from->issuers[made], issuer, &issuers[made]);
        if (shared->login != NULL && str_eq(from->login.issuer, from->issuers[made].name)) {
            *shared->login = oauth_issuer_ref(issuer);
        }
    }
    for (size_t i = 0; err == BAY_OK && i < from->implies.count; i++) {
        implied[i] = (access_implied){from->implies.at[i].name, from->implies.at[i].value};
    }
    if (err == BAY_OK) {
        oauth_guard_options options = {.state = shared->state,
                                       .issuers = issuers,
                                       .issuer_count = made,
                                       .grants = shared->grants,
                                       .has_keys = from->api_keys,
                                       .has_certificates = from->certificates,
                                       .dpop = (oauth_dpop)from->dpop,
                                       .has_nonces = from->dpop_nonces,
                                       .scopes = buf_view(&scopes),
                                       .implied = implied,
                                       .implied_count = from->implies.count,
                                       .keeps_tokens = shared->keeps_tokens};
        err = oauth_guard_new(&options, out, diag);
    }
    for (size_t i = 0; i < made; i++) {
        oauth_issuer_unref(issuers[i].issuer);
    }
    buf_fini(&scopes);
    mem_free(issuers);
    mem_free(implied);
    return err;
}

/* ---- all of them ----------------------------------------------------------------------------- */

bool gateway_auth_guards_all(const config *settings)
{
    bool guards = config_auth_is_given(&settings->auth);
    for (size_t i = 0; guards && i < settings->profile_count; i++) {
        guards = !settings->profiles[i].auth.none;
    }
    return guards;
}

/* A profile's keys are files whose bytes may have changed, so issuers with such a file are read
 * again at each reload. */
static bool has_files(const config_auth *of)
{
    bool has = false;
    for (size_t i = 0; !has && i < of->issuer_count; i++) {
        has = is_file(of->issuers[i].keys) || of->issuers[i].tls.ca.len > 0;
    }
    return has;
}

static bool is_same(const config *a, const config *b)
{
    bool same = config_equal_auth(&a->auth, &b->auth) && !has_files(&a->auth) &&
                a->profile_count == b->profile_count && str_eq(a->public_url, b->public_url) &&
                str_eq(a->a2a.public_url, b->a2a.public_url) &&
                exchanges_tokens(a) == exchanges_tokens(b);
    for (size_t i = 0; same && i < a->profile_count; i++) {
        same = str_eq(a->profiles[i].name, b->profiles[i].name) &&
               config_equal_auth(&a->profiles[i].auth, &b->profiles[i].auth) &&
               !has_files(&a->profiles[i].auth);
    }
    return same;
}

static bay_err state_new(const config *settings, oauth_state **out)
{
    const config_limits *limits = &settings->limits;
    oauth_state_options options = {
        .tokens = limits->tokens, .failures = limits->failed_credentials, .proofs = limits->proofs};
    return oauth_state_new(&options, out);
}

static bay_err make_guards(gateway_auth *self, bay_diag *diag)
{
    const config *settings = self->config;
    bay_err err = BAY_OK;
    guard_shared shared = {.state = self->state,
                           .grants = self->proxy != NULL ? self->proxy->grants : NULL,
                           .keeps_tokens = exchanges_tokens(settings),
                           .login = &self->login_issuer};
    if (config_auth_is_given(&settings->auth)) {
        err = guard_of(&settings->auth, &shared, &self->guards[0], diag);
        shared.grants = NULL; /* profiles with an auth of their own take neither */
        shared.login = NULL;
    }
    for (size_t i = 0; err == BAY_OK && i < settings->profile_count; i++) {
        const config_auth *own = &settings->profiles[i].auth;
        if (config_auth_is_given(own)) {
            err = guard_of(own, &shared, &self->guards[i + 1], diag);
        } else if (!own->none) {
            self->guards[i + 1] = oauth_guard_ref(self->guards[0]);
        }
    }
    return err;
}

/* Who has logged in, and whom they let in, stays so if everybody else does, too. */
static bay_err keep_sessions(gateway_auth *self, const gateway_auth *before)
{
    const config *settings = self->config;
    if (settings->auth.login.issuer.len == 0) {
        return BAY_OK;
    }
    if (before != NULL && config_equal_auth(&before->config->auth, &settings->auth) &&
        str_eq(before->config->public_url, settings->public_url)) {
        self->sessions = login_sessions_ref(before->sessions);
        self->proxy = gateway_proxy_ref(before->proxy);
        return BAY_OK;
    }
    bay_err err = login_sessions_new(&self->sessions);
    return err == BAY_OK && settings->auth.proxy.is_on
               ? gateway_proxy_new(&settings->auth.proxy, &self->proxy)
               : err;
}

bay_err gateway_auth_new(const config *settings, const gateway_auth *before,
                         const gateway_auth **out, bay_diag *diag)
{
    if (before != NULL && is_same(before->config, settings)) {
        *out = gateway_auth_ref(before);
        return BAY_OK;
    }
    gateway_auth *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    atomic_init(&self->references, 1);
    self->config = config_ref(settings);
    self->guards = mem_array(settings->profile_count + 1, sizeof(oauth_guard *));
    bay_err err = self->guards != NULL ? BAY_OK : BAY_ERR_NOMEM;
    if (err == BAY_OK && before != NULL) {
        self->state = oauth_state_ref(before->state);
    } else if (err == BAY_OK) {
        err = state_new(settings, &self->state);
    }
    if (err == BAY_OK) {
        err = keep_sessions(self, before);
    }
    err = err == BAY_OK ? make_guards(self, diag) : diag_set(diag, err, "out of memory");
    if (err != BAY_OK) {
        gateway_auth_unref(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

const gateway_auth *gateway_auth_ref(const gateway_auth *shared)
{
    gateway_auth *self = (gateway_auth *)(uintptr_t)shared; /* only the count changes */
    atomic_fetch_add_explicit(&self->references, 1, memory_order_relaxed);
    return shared;
}

void gateway_auth_unref(const gateway_auth *shared)
{
    gateway_auth *self = (gateway_auth *)(uintptr_t)shared;
    if (self == NULL ||
        atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; self->guards != NULL && i <= self->config->profile_count; i++) {
        oauth_guard_unref(self->guards[i]);
    }
    mem_free(self->guards);
    oauth_issuer_unref(self->login_issuer);
    login_sessions_unref(self->sessions);
    gateway_proxy_unref(self->proxy);
    oauth_state_unref(self->state);
    config_free(self->config);
    mem_free(self);
}

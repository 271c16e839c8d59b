/* Guards and what they share: made once, read by all loops. What a guard tells peers: challenges
 * and the metadata of its resources. */
#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/rand.h"
#include "oauth/guard_parts.h"
#include "json/writer.h"

/* ---- what all guards share ------------------------------------------------------------------- */

bay_err oauth_state_new(const oauth_state_options *options, oauth_state **out)
{
    oauth_state *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    atomic_init(&self->references, 1);
    self->wall = options->wall != NULL ? options->wall : loop_time_ms;
    bay_err err = token_memory_new(options->tokens, &self->tokens);
    err = err == BAY_OK ? failure_limit_new(options->failures, &self->failures) : err;
    err = err == BAY_OK ? dpop_replays_new(options->proofs, &self->proofs) : err;
    if (err != BAY_OK) {
        oauth_state_unref(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

oauth_state *oauth_state_ref(oauth_state *self)
{
    if (self != NULL) {
        atomic_fetch_add_explicit(&self->references, 1, memory_order_relaxed);
    }
    return self;
}

void oauth_state_unref(oauth_state *self)
{
    if (self != NULL &&
        atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) == 1) {
        token_memory_free(self->tokens);
        failure_limit_free(self->failures);
        dpop_replays_free(self->proofs);
        mem_free(self);
    }
}

static bool is_of_issuer(void *user, const token_entry *entry)
{
    return (entry->kind & (KIND_KEY | KIND_IDENTITY)) == 0 &&
           str_eq(principal_issuer(entry->principal), *(const bay_str *)user);
}

void oauth_state_forget_issuer(oauth_state *self, bay_str issuer)
{
    token_memory_forget(self->tokens, is_of_issuer, &issuer);
}

size_t oauth_state_tokens(oauth_state *self)
{
    return token_memory_count(self->tokens);
}

/* ---- guards ---------------------------------------------------------------------------------- */

static bay_err copy_texts(arena *memory, const bay_str *from, size_t count, const bay_str **out)
{
    bay_str *copies = arena_array(memory, count + 1, sizeof(*copies));
    if (copies == NULL) {
        return BAY_ERR_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        bay_err err = arena_dup(memory, from[i], &copies[i]);
        if (err != BAY_OK) {
            return err;
        }
    }
    *out = copies;
    return BAY_OK;
}

static bay_err copy_issuer(oauth_guard *self, const oauth_guard_issuer *from)
{
    arena *memory = &self->memory;
    oauth_guard_issuer *to = &self->issuers[self->issuer_count];
    *to = *from;
    bay_err err = copy_texts(memory, from->audiences, from->audience_count, &to->audiences);
    err = err == BAY_OK ? copy_texts(memory, from->clients, from->client_count, &to->clients) : err;
    err = err == BAY_OK ? arena_dup(memory, from->client_id, &to->client_id) : err;
    err = err == BAY_OK ? arena_dup(memory, from->client_secret, &to->client_secret) : err;
    err = err == BAY_OK ? arena_dup(memory, from->field, &to->field) : err;
    if (err == BAY_OK) {
        to->issuer = oauth_issuer_ref(from->issuer);
        self->issuer_count++;
    }
    return err;
}

static bay_err copy_options(oauth_guard *self, const oauth_guard_options *options)
{
    arena *memory = &self->memory;
    bay_err err = arena_dup(memory, options->scopes, &self->scopes);
    self->issuers = arena_array(memory, options->issuer_count + 1, sizeof(*self->issuers));
    self->implied = arena_array(memory, options->implied_count + 1, sizeof(*self->implied));
    if (self->issuers == NULL || self->implied == NULL) {
        return BAY_ERR_NOMEM;
    }
    for (size_t i = 0; err == BAY_OK && i < options->issuer_count; i++) {
        err = copy_issuer(self, &options->issuers[i]);
    }
    for (size_t i = 0; err == BAY_OK && i < options->implied_count; i++) {
        access_implied *to = &self->implied[i];
        err = arena_dup(memory, options->implied[i].scope, &to->scope);
        err = err == BAY_OK ? arena_dup(memory, options->implied[i].includes, &to->includes) : err;
    }
    self->implied_count = options->implied_count;
    return err;
}

static bay_err check_options(const oauth_guard_options *options, bay_diag *diag)
{
    size_t introspectors = 0;
    for (size_t i = 0; i < options->issuer_count; i++) {
        introspectors += options->issuers[i].client_id.len > 0 ? 1 : 0;
        if (options->issuers[i].audience_count > OAUTH_AUDIENCES) {
            return diag_set(diag, BAY_ERR_LIMIT, "more than %d audiences of one issuer",
                            OAUTH_AUDIENCES);
        }
    }
    if (options->issuer_count > OAUTH_ISSUERS) {
        return diag_set(diag, BAY_ERR_LIMIT, "more than %d issuers", OAUTH_ISSUERS);
    }
    if (options->issuer_count == 0 && !options->has_keys && !options->has_certificates) {
        return diag_set(diag, BAY_ERR_INVALID,
                        "nothing is demanded: name an issuer, or take API keys or certificates");
    }
    return introspectors <= 1
               ? BAY_OK
               : diag_set(diag, BAY_ERR_INVALID,
                          "two issuers introspect: an opaque token does not say whose it is");
}

bay_err oauth_guard_new(const oauth_guard_options *options, oauth_guard **out, bay_diag *diag)
{
    bay_err err = check_options(options, diag);
    oauth_guard *self = err == BAY_OK ? mem_zalloc(sizeof(*self)) : NULL;
    if (self == NULL) {
        return err != BAY_OK ? err : BAY_ERR_NOMEM;
    }
    atomic_init(&self->references, 1);
    arena_init(&self->memory, GUARD_MEMORY_BYTES);
    self->state = oauth_state_ref(options->state);
    self->grants = oauth_grants_ref(options->grants);
    self->has_keys = options->has_keys;
    self->has_certificates = options->has_certificates;
    self->dpop = options->dpop;
    self->has_nonces = options->has_nonces;
    self->keeps_tokens = options->keeps_tokens;
    self->check_ms = options->check_ms > 0 ? options->check_ms : OAUTH_CHECK_MS;
    self->seed = rand_u64();
    err = copy_options(self, options);
    if (err != BAY_OK) {
        oauth_guard_unref(self);
        return err;
    }
    self->introspector = self->issuer_count;
    for (size_t i = 0; i < self->issuer_count; i++) {
        self->introspector = self->issuers[i].client_id.len > 0 ? i : self->introspector;
    }
    *out = self;
    return BAY_OK;
}

oauth_guard *oauth_guard_ref(oauth_guard *self)
{
    if (self != NULL) {
        atomic_fetch_add_explicit(&self->references, 1, memory_order_relaxed);
    }
    return self;
}

void oauth_guard_unref(oauth_guard *self)
{
    if (self == NULL ||
        atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; i < self->issuer_count; i++) {
        oauth_issuer_unref(self->issuers[i].issuer);
    }
    arena_wipe(&self->memory); /* it holds clients' secrets */
    oauth_grants_unref(self->grants);
    oauth_state_unref(self->state);
    mem_free(self);
}

bool oauth_guard_has_issuers(const oauth_guard *self)
{
    return self != NULL && self->issuer_count > 0;
}

bay_str oauth_guard_scopes(const oauth_guard *self)
{
    return self->scopes;
}

/* ---- challenges ------------------------------------------------------------------------------ */

/* A quoted-string: what is in scopes and URLs is visible ASCII, but for a quote. */
static void put_parameter(buf *out, const char *name, bay_str value)
{
    size_t start = out->len > 0 ? out->len - 1 : 0;
    buf_str(out, out->at[start] == ' ' ? STR("") : STR(", "));
    buf_str(out, str_of(name));
    buf_lit(out, "=\"");
    for (size_t i = 0; i < value.len; i++) {
        char c = value.at[i];
        if (c == '"' || c == '\\') {
            buf_char(out, '\\');
        }
        buf_char(out, c < ' ' || c > '~' ? '?' : c);
    }
    buf_char(out, '"');
}

static void put_challenge(const oauth_refusal *refusal, const char *scheme, bool is_about,
                          bay_str scope, bay_str metadata, buf *out)
{
    buf_str(out, str_of(scheme));
    buf_char(out, ' ');
    if (is_about && refusal->error[0] != '\0') {
        put_parameter(out, "error", str_of(refusal->error));
        if (refusal->description[0] != '\0') {
            put_parameter(out, "error_description", str_of(refusal->description));
        }
    }
    if (scope.len > 0) {
        put_parameter(out, "scope", scope);
    }
    if (metadata.len > 0) {
        put_parameter(out, "resource_metadata", metadata);
    }
    if (str_eq(str_of(scheme), STR("DPoP"))) {
        put_parameter(out, "algs", STR("ES256 EdDSA ES384 ES512 PS256 RS256"));
    }
    if (out->at != NULL && out->at[out->len - 1] == ' ') {
        out->len--; /* nothing but the scheme */
    }
    buf_char(out, '\0');
}

size_t oauth_challenges_write(const oauth_guard *self, const oauth_refusal *refusal, bay_str scope,
                              bay_str metadata, buf *out)
{
    size_t count = 0;
    bay_str needed = scope.len > 0 ? scope : self->scopes;
    if (refusal->status != 401 && refusal->status != 403) {
        return 0;
    }
    if (self->dpop != OAUTH_DPOP_REQUIRED) {
        put_challenge(refusal, "Bearer", !refusal->is_dpop, needed, metadata, out);
        count++;
    }
    if (self->dpop != OAUTH_DPOP_OFF) {
        put_challenge(refusal, "DPoP", refusal->is_dpop || count == 0, needed, metadata, out);
        count++;
    }
    return out->err == BAY_OK ? count : 0;
}

/* ---- metadata -------------------------------------------------------------------------------- */

void oauth_metadata_place(bay_str base, bay_str endpoint, buf *out)
{
    size_t authority = str_find(base, ':') + 3; /* behind "https://" */
    authority += str_find(str_from(base, authority), '/');
    buf_str(out, str_head(base, authority));
    buf_lit(out, OAUTH_METADATA_PATH);
    buf_str(out, str_from(base, authority));
    if (!str_eq(endpoint, STR("/"))) {
        buf_str(out, endpoint);
    }
}

static void put_words(json_writer *writer, bay_str words)
{
    json_open_array(writer);
    while (words.len > 0) {
        bay_str one = str_head(words, str_find(words, ' '));
        words = str_from(words, one.len + 1);
        if (one.len > 0) {
            json_put_str(writer, one);
        }
    }
    json_close_array(writer);
}

static void put_resource(json_writer *writer, bay_str base, bay_str endpoint)
{
    buf resource;
    buf_init(&resource, 2 * OAUTH_URL_BYTES);
    buf_str(&resource, base);
    buf_str(&resource, endpoint);
    json_key_lit(writer, "resource");
    json_put_str(writer, buf_view(&resource));
    buf_fini(&resource);
}

void oauth_metadata_write(const oauth_guard *self, bay_str base, bay_str endpoint, bay_str scopes,
                          bay_str name, buf *out)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    put_resource(&writer, base, endpoint);
    json_key_lit(&writer, "authorization_servers");
    json_open_array(&writer);
    if (self->grants != NULL) {
        json_put_str(&writer, base);
    }
    for (size_t i = 0; i < self->issuer_count; i++) {
        json_put_str(&writer, oauth_issuer_url(self->issuers[i].issuer));
    }
    json_close_array(&writer);
    if (scopes.len > 0) {
        json_key_lit(&writer, "scopes_supported");
        put_words(&writer, scopes);
    }
    json_key_lit(&writer, "bearer_methods_supported");
    put_words(&writer, STR("header"));
    if (name.len > 0) {
        json_key_lit(&writer, "resource_name");
        json_put_str(&writer, name);
    }
    if (self->dpop != OAUTH_DPOP_OFF) {
        json_key_lit(&writer, "dpop_signing_alg_values_supported");
        put_words(&writer, STR("ES256 EdDSA ES384 ES512 PS256 RS256"));
        json_key_lit(&writer, "dpop_bound_access_tokens_required");
        json_put_bool(&writer, self->dpop == OAUTH_DPOP_REQUIRED);
    }
    json_close_object(&writer);
}

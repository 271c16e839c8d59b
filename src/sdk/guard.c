/* What a guard demands, as the program says it. */
#include "sdk/guard.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/capture.h"
#include "sdk/guard_parts.h"

enum { KEYS_MS = 1000 /* to read a file */ };

/* ---- registration ---------------------------------------------------------------------------- */

/* The first mistake is what is told. */
static void note(bay_guard *self, const char *function, const char *text)
{
    if (self->fault[0] == '\0') {
        (void)snprintf(self->fault, sizeof(self->fault), "%s: %s", function, text);
    }
}

static bool is_open(bay_guard *self, const char *function)
{
    if (self == NULL) {
        return false;
    }
    if (self->made != NULL) {
        note(self, function, "the guard was given to a server, and does not change any more");
    }
    return self->made == NULL;
}

static bay_str guard_keep(bay_guard *self, const char *text)
{
    bay_str kept = STR("");
    if (arena_dup(&self->memory, str_of(text), &kept) != BAY_OK) {
        note(self, "bay_guard", "out of memory");
    }
    return kept;
}

bay_guard *bay_guard_new(const char *public_url)
{
    bay_guard *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    atomic_init(&self->references, 1);
    arena_init(&self->memory, SDK_GUARD_MEMORY_BYTES);
    self->url = guard_keep(self, public_url);
    if (public_url != NULL &&
        (oauth_url_fault(self->url, self->url) != NULL || self->url.at[self->url.len - 1] == '/')) {
        note(self, "bay_guard_new",
             "the address that clients use is https://host, or http://127.0.0.1 and the like, "
             "without a slash at its end");
    }
    return self;
}

bay_guard *sdk_guard_ref(bay_guard *self)
{
    atomic_fetch_add_explicit(&self->references, 1, memory_order_relaxed);
    return self;
}

void bay_guard_free(bay_guard *self)
{
    if (self == NULL ||
        atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    oauth_guard_unref(self->made);
    for (size_t i = 0; i < self->issuer_count; i++) {
        oauth_issuer_unref(self->issuers[i].issuer);
    }
    oauth_state_unref(self->state);
    arena_wipe(&self->memory); /* it holds a client's secret */
    mem_free(self);
}

static guard_issuer *find_issuer(bay_guard *self, const char *function, const char *url)
{
    for (size_t i = 0; i < self->issuer_count; i++) {
        if (str_eq(self->issuers[i].url, str_of(url))) {
            return &self->issuers[i];
        }
    }
    note(self, function, "no such issuer: name it by bay_guard_issuer before");
    return NULL;
}

bay_err sdk_keys_read(const char *keys, buf *out, bay_diag *diag)
{
    bay_str text = str_of(keys);
    size_t blank = 0;
    while (blank < text.len && strchr(" \t\r\n", text.at[blank]) != NULL) {
        blank++;
    }
    if (blank < text.len && text.at[blank] == '{') {
        buf_str(out, text);
        return out->err;
    }
    const char *fault =
        keys != NULL ? capture_file_into(keys, KEYS_MS, out) : "there is no file, and no keys";
    return fault == NULL ? BAY_OK
                         : diag_set(diag, BAY_ERR_IO, "\"%.100s\" cannot be read: %s",
                                    keys != NULL ? keys : "", fault);
}

static bool is_address(bay_str text)
{
    return str_starts(text, STR("https://")) || str_starts(text, STR("http://"));
}

void bay_guard_issuer(bay_guard *self, const char *issuer, const char *keys)
{
    static const char function[] = "bay_guard_issuer";
    if (!is_open(self, function)) {
        return;
    }
    bool is_twice = false;
    for (size_t i = 0; i < self->issuer_count; i++) {
        is_twice = is_twice || str_eq(self->issuers[i].url, str_of(issuer));
    }
    if (str_of(issuer).len == 0 || is_twice || self->issuer_count == OAUTH_ISSUERS) {
        note(self, function,
             is_twice                  ? "the issuer was named before"
             : str_of(issuer).len == 0 ? "the issuer has no name"
                                       : "there are too many issuers");
        return;
    }
    bay_diag why = {.text = ""};
    buf text;
    buf_init(&text, JOSE_KEYSET_BYTES);
    bay_err err = BAY_OK;
    if (is_address(str_of(keys))) {
        buf_str(&text, str_of(keys));
    } else if (keys != NULL) {
        err = sdk_keys_read(keys, &text, &why);
    }
    guard_issuer *made = &self->issuers[self->issuer_count];
    *made = (guard_issuer){.url = guard_keep(self, issuer)};
    if (err == BAY_OK) {
        err = arena_dup(&self->memory, buf_view(&text), &made->keys);
    }
    if (err == BAY_OK) {
        self->issuer_count++;
    } else {
        note(self, function, why.text[0] != '\0' ? why.text : bay_err_text(err));
    }
    buf_fini(&text);
}

void bay_guard_audience(bay_guard *self, const char *issuer, const char *audience)
{
    static const char function[] = "bay_guard_audience";
    guard_issuer *of = is_open(self, function) ? find_issuer(self, function, issuer) : NULL;
    if (of == NULL) {
        return;
    }
    if (str_of(audience).len == 0 || of->audience_count == OAUTH_AUDIENCES) {
        note(self, function,
             of->audience_count == OAUTH_AUDIENCES ? "there are too many" : "it is empty");
        return;
    }
    of->audiences[of->audience_count++] = guard_keep(self, audience);
}

void bay_guard_introspection(bay_guard *self, const char *issuer, const char *client_id,
                             const char *client_secret)
{
    static const char function[] = "bay_guard_introspection";
    guard_issuer *of = is_open(self, function) ? find_issuer(self, function, issuer) : NULL;
    if (of == NULL) {
        return;
    }
    if (str_of(client_id).len == 0 || str_of(client_secret).len == 0) {
        note(self, function, "client id and client secret are wanted");
        return;
    }
    of->client_id = guard_keep(self, client_id);
    of->client_secret = guard_keep(self, client_secret);
}

void bay_guard_api_key(bay_guard *self, const char *key, const char *name, const char *scopes)
{
    static const char function[] = "bay_guard_api_key";
    bay_str id;
    if (!is_open(self, function)) {
        return;
    }
    bay_str text = str_of(key);
    bool is_key = api_key_id(text, &id) &&
                  text.len >= (size_t)(id.at - text.at) + id.len + 1 + SDK_GUARD_SECRET_BYTES;
    bool is_twice = false;
    for (size_t i = 0; is_key && i < self->key_count; i++) {
        is_twice = is_twice || str_eq(self->keys[i].id, id);
    }
    const char *fault = !is_key    ? "a key is pbk_ID_SECRET, with 16 bytes of a secret at least"
                        : is_twice ? "there is a key with that ID"
                        : str_of(name).len == 0             ? "the key has no name"
                        : self->key_count == SDK_GUARD_KEYS ? "there are too many keys"
                                                            : NULL;
    if (fault != NULL) {
        note(self, function, fault);
        return;
    }
    guard_key *made = &self->keys[self->key_count];
    *made =
        (guard_key){.row = {.name = guard_keep(self, name), .scopes = guard_keep(self, scopes)}};
    bay_err err = digest_bytes(text, made->row.digest);
    err = err == BAY_OK ? arena_dup(&self->memory, id, &made->id) : err;
    if (err != BAY_OK) {
        note(self, function, bay_err_text(err));
        return;
    }
    self->key_count++;
}

void bay_guard_certificates(bay_guard *self)
{
    if (is_open(self, "bay_guard_certificates")) {
        self->has_certificates = true;
    }
}

void bay_guard_scopes(bay_guard *self, const char *scopes)
{
    if (is_open(self, "bay_guard_scopes")) {
        self->scopes = guard_keep(self, scopes);
    }
}

void bay_guard_dpop(bay_guard *self, bool is_required)
{
    if (is_open(self, "bay_guard_dpop")) {
        self->dpop = is_required ? OAUTH_DPOP_REQUIRED : OAUTH_DPOP_ACCEPTED;
    }
}

/* ---- what it is made into -------------------------------------------------------------------- */

/* What was verified with a key that is gone is verified again. */
static void on_dropped(void *user, const oauth_issuer *issuer)
{
    oauth_state_forget_issuer(user, oauth_issuer_url(issuer));
}

static bay_err make_issuers(bay_guard *self, oauth_guard_issuer *out, bay_diag *diag)
{
    bay_err err = BAY_OK;
    for (size_t i = 0; err == BAY_OK && i < self->issuer_count; i++) {
        guard_issuer *from = &self->issuers[i];
        oauth_issuer_options options = {
            .url = from->url, .keys = from->keys, .dropped = on_dropped, .user = self->state};
        err = oauth_issuer_new(&options, &from->issuer, diag);
        out[i] = (oauth_guard_issuer){.issuer = from->issuer,
                                      .audiences = from->audiences,
                                      .audience_count = from->audience_count,
                                      .skew_ms = GUARD_SKEW_MS,
                                      .client_id = from->client_id,
                                      .client_secret = from->client_secret};
    }
    return err;
}

static bay_err make(bay_guard *self, bay_diag *diag)
{
    oauth_guard_issuer issuers[OAUTH_ISSUERS];
    oauth_state_options shared = {.tokens = TOKEN_MEMORY_DEFAULT,
                                  .failures = SDK_GUARD_FAILURES,
                                  .proofs = DPOP_REPLAYS_DEFAULT};
    bay_err err = oauth_state_new(&shared, &self->state);
    if (err == BAY_OK) {
        err = make_issuers(self, issuers, diag);
    }
    if (err != BAY_OK) {
        return err;
    }
    oauth_guard_options options = {.state = self->state,
                                   .issuers = issuers,
                                   .issuer_count = self->issuer_count,
                                   .has_keys = self->key_count > 0,
                                   .has_certificates = self->has_certificates,
                                   .dpop = self->dpop,
                                   .scopes = self->scopes};
    return oauth_guard_new(&options, &self->made, diag);
}

const char *sdk_guard_missing_url(const bay_guard *self)
{
    return self == NULL || self->url.len > 0 || self->issuer_count == 0
               ? NULL
               : "bay_guard_new's public_url";
}

const char *sdk_guard_seal(bay_guard *self)
{
    bay_diag diag = {.text = ""};
    if (self->fault[0] == '\0' && self->made == NULL) {
        bay_err err = make(self, &diag);
        if (err != BAY_OK) {
            note(self, "bay_guard", diag.text[0] != '\0' ? diag.text : bay_err_text(err));
        }
    }
    return self->fault[0] != '\0' ? self->fault : NULL;
}

#include "oauth/grants.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "auth/digest.h"
#include "auth/oauth_metadata.h"
#include "base/check.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "wire/base64.h"
#include "wire/chars.h"

enum { ID_BYTES = 16, SECRET_BYTES = 32, SECRET_TEXT = 43, CLIENT_SHOWN = 128, ACCESS_TOKENS = 2 };

static const bay_str access_prefix = STR_INIT("pbt_");
static const bay_str refresh_prefix = STR_INIT("pbr_");
static const bay_str code_prefix = STR_INIT("pbo_");

/* A secret that was given out; `until_ms` 0: none. */
typedef struct given_secret {
    unsigned char digest[DIGEST_BYTES];
    uint64_t until_ms;
    const auth_principal *principal; /* of an access token */
} given_secret;

typedef struct grant {
    list_link link;        /* in `used`, the one that was not used for longest first */
    char id[ID_BYTES + 1]; /* the key in the map */
    const auth_principal *person;
    char *texts; /* of the following */
    bay_str client_id, redirect_uri, challenge, resource, scope;
    given_secret code;
    given_secret access[ACCESS_TOKENS]; /* the newest, and the one before it */
    given_secret refresh;
} grant;

struct oauth_grants {
    atomic_uint references;
    oauth_grants_options options;
    pthread_mutex_t lock;
    map by_id;
    list used;
};

/* ---- life ------------------------------------------------------------------------------------ */

bay_err oauth_grants_new(const oauth_grants_options *options, oauth_grants **out)
{
    oauth_grants *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    atomic_init(&self->references, 1);
    self->options = *options;
    pthread_mutex_init(&self->lock, NULL);
    map_init(&self->by_id, OAUTH_GRANTS);
    list_init(&self->used);
    *out = self;
    return BAY_OK;
}

oauth_grants *oauth_grants_ref(oauth_grants *self)
{
    if (self != NULL) {
        atomic_fetch_add_explicit(&self->references, 1, memory_order_relaxed);
    }
    return self;
}

static void grant_free(grant *self)
{
    for (size_t i = 0; i < ACCESS_TOKENS; i++) {
        principal_unref(self->access[i].principal);
    }
    principal_unref(self->person);
    mem_free(self->texts);
    mem_free(self);
}

static void grant_end(oauth_grants *self, grant *of)
{
    (void)map_remove(&self->by_id, str_of(of->id));
    list_remove(&of->link);
    grant_free(of);
}

void oauth_grants_unref(oauth_grants *self)
{
    list_link *link;
    if (self == NULL ||
        atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    while ((link = list_first(&self->used)) != NULL) {
        grant_end(self, CONTAINER_OF(link, grant, link));
    }
    map_fini(&self->by_id);
    pthread_mutex_destroy(&self->lock);
    mem_free(self);
}

size_t oauth_grants_count(oauth_grants *self)
{
    pthread_mutex_lock(&self->lock);
    size_t count = self->by_id.len;
    pthread_mutex_unlock(&self->lock);
    return count;
}

/* ---- secrets --------------------------------------------------------------------------------- */

/* Makes a secret and writes it as it is given out. */
static bay_err secret_make(const grant *of, bay_str prefix, uint64_t until_ms, given_secret *out,
                           char text[OAUTH_GIVEN_BYTES])
{
    unsigned char bytes[SECRET_BYTES];
    buf to = {.at = text, .cap = OAUTH_GIVEN_BYTES - 1, .max = OAUTH_GIVEN_BYTES - 1};
    rand_bytes(bytes, sizeof(bytes));
    buf_str(&to, prefix);
    buf_str(&to, str_of(of->id));
    buf_char(&to, '_');
    size_t start = to.len;
    base64_encode(&to, (bay_str){(const char *)bytes, sizeof(bytes)}, BASE64_URL);
    mem_wipe(bytes, sizeof(bytes));
    text[to.len] = '\0';
    out->until_ms = until_ms;
    return to.err != BAY_OK ? to.err : digest_bytes(str_from(buf_view(&to), start), out->digest);
}

/* The two parts of a text with that prefix. */
static bool split(bay_str text, bay_str prefix, bay_str *out_id, bay_str *out_secret)
{
    bay_str rest = str_from(text, prefix.len);
    *out_id = str_head(rest, ID_BYTES);
    *out_secret = str_from(rest, ID_BYTES + 1);
    return str_starts(text, prefix) && rest.len == ID_BYTES + 1 + SECRET_TEXT &&
           rest.at[ID_BYTES] == '_';
}

static bool secret_is(const given_secret *self, bay_str secret, uint64_t now_ms)
{
    unsigned char digest[DIGEST_BYTES];
    return self->until_ms > now_ms && digest_bytes(secret, digest) == BAY_OK &&
           str_eq_secret((bay_str){(const char *)digest, sizeof(digest)},
                         (bay_str){(const char *)self->digest, sizeof(self->digest)});
}

/* Nothing of it can be used any more. */
static bool is_over(const grant *self, uint64_t now_ms)
{
    return self->code.until_ms <= now_ms && self->refresh.until_ms <= now_ms &&
           self->access[0].until_ms <= now_ms && self->access[1].until_ms <= now_ms;
}

/* ---- opening --------------------------------------------------------------------------------- */

static bay_err copy_texts(grant *self, const oauth_consent *from)
{
    const bay_str sources[] = {from->client_id, from->redirect_uri, from->challenge, from->resource,
                               from->scope};
    bay_str *const places[] = {&self->client_id, &self->redirect_uri, &self->challenge,
                               &self->resource, &self->scope};
    size_t len = 0;
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        len += sources[i].len;
    }
    if (len > OAUTH_GRANT_TEXT) {
        return BAY_ERR_LIMIT;
    }
    self->texts = mem_alloc(len + 1);
    char *at = self->texts;
    for (size_t i = 0; at != NULL && i < ARRAY_LEN(sources); i++) {
        *places[i] = str_put(&at, sources[i]);
    }
    return at != NULL ? BAY_OK : BAY_ERR_NOMEM;
}

static void make_id(char out[ID_BYTES + 1])
{
    (void)snprintf(out, ID_BYTES + 1, "%016llx", (unsigned long long)rand_u64());
}

/* What is over goes; of this person, and of all, no more than there may be. */
static void make_room(oauth_grants *self, const auth_principal *person, uint64_t now_ms)
{
    size_t own = 0;
    grant *oldest = NULL; /* of the person */
    LIST_EACH(link, &self->used)
    {
        grant *one = CONTAINER_OF(link, grant, link);
        if (is_over(one, now_ms)) {
            grant_end(self, one);
        } else if (principal_is_same(one->person, person)) {
            oldest = own++ == 0 ? one : oldest;
        }
    }
    if (own >= OAUTH_GRANTS_OF_ONE) {
        grant_end(self, oldest);
    } else if (self->by_id.len >= OAUTH_GRANTS) {
        grant_end(self, CONTAINER_OF(list_first(&self->used), grant, link));
    }
}

bay_err oauth_grants_open(oauth_grants *self, const oauth_consent *consent, uint64_t now_ms,
                          char out_code[OAUTH_GIVEN_BYTES])
{
    bool is_whole = consent->person != NULL && consent->client_id.len > 0 &&
                    consent->redirect_uri.len > 0 && consent->challenge.len == SECRET_TEXT &&
                    consent->resource.len > 0;
    if (!is_whole) {
        return BAY_ERR_INVALID;
    }
    grant *one = mem_zalloc(sizeof(*one));
    if (one == NULL) {
        return BAY_ERR_NOMEM;
    }
    make_id(one->id);
    one->person = principal_ref(consent->person);
    bay_err err = copy_texts(one, consent);
    if (err == BAY_OK) {
        err = secret_make(one, code_prefix, now_ms + OAUTH_CODE_MS, &one->code, out_code);
    }
    if (err == BAY_OK) {
        pthread_mutex_lock(&self->lock);
        make_room(self, consent->person, now_ms);
        err = map_put(&self->by_id, str_of(one->id), one, NULL);
        if (err == BAY_OK) {
            list_push(&self->used, &one->link);
        }
        pthread_mutex_unlock(&self->lock);
    }
    if (err != BAY_OK) {
        grant_free(one);
    }
    return err;
}

/* ---- giving ---------------------------------------------------------------------------------- */

/* In `principal_client`, which rules and logs read: an address as it is, of a long one its digest. */
static bay_err shown_client(bay_str id, char out[CLIENT_SHOWN], bay_str *view)
{
    if (id.len <= CLIENT_SHOWN) {
        *view = id;
        return BAY_OK;
    }
    *view = (bay_str){out, DIGEST_TEXT_BYTES};
    return digest_sha256(id, out);
}

static bay_err principal_for(const grant *of, bay_str scope, uint64_t until_ms,
                             const auth_principal **out)
{
    char client[CLIENT_SHOWN];
    principal_parts parts = {.proof = PRINCIPAL_TOKEN,
                             .issuer = principal_issuer(of->person),
                             .subject = principal_subject(of->person),
                             .scopes = scope,
                             .claims = principal_claim(of->person, STR("")),
                             .expires_at_ms = until_ms};
    bay_err err = shown_client(of->client_id, client, &parts.client);
    return err == BAY_OK ? principal_new(&parts, out) : err;
}

/* The next pair; the access token before it goes on, the refresh token does not. */
static bay_err give(const oauth_grants *self, grant *of, bay_str scope, uint64_t now_ms,
                    oauth_given *out)
{
    given_secret access = {.principal = NULL}, refresh = {.principal = NULL};
    uint64_t until_ms = now_ms + self->options.access_ms;
    bay_err err = principal_for(of, scope, until_ms, &access.principal);
    if (err == BAY_OK) {
        err = secret_make(of, access_prefix, until_ms, &access, out->access);
    }
    if (err == BAY_OK) {
        err = secret_make(of, refresh_prefix, now_ms + self->options.refresh_ms, &refresh,
                          out->refresh);
    }
    if (err != BAY_OK) {
        principal_unref(access.principal);
        return err;
    }
    principal_unref(of->access[1].principal);
    of->access[1] = of->access[0];
    of->access[0] = access;
    of->refresh = refresh;
    of->code.until_ms = 0;
    (void)snprintf(out->scope, sizeof(out->scope), "%.*s", BAY_STR(scope));
    out->access_ms = self->options.access_ms;
    return BAY_OK;
}

/* RFC 7636 section 4.6. */
static bool verifier_fits(const grant *of, bay_str verifier)
{
    unsigned char digest[DIGEST_BYTES];
    char text[SECRET_TEXT + 1];
    buf challenge = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    bool is_one = verifier.len >= OAUTH_VERIFIER_LEAST && verifier.len <= OAUTH_VERIFIER_MOST &&
                  chars_are(verifier, CHAR_UNRESERVED) && digest_bytes(verifier, digest) == BAY_OK;
    if (is_one) {
        base64_encode(&challenge, (bay_str){(const char *)digest, sizeof(digest)}, BASE64_URL);
    }
    return is_one && str_eq_secret(buf_view(&challenge), of->challenge);
}

/* The grant of a code or refresh token, whatever its secret; NULL: none. */
static grant *grant_of(oauth_grants *self, bay_str text, bay_str prefix, bay_str *out_secret)
{
    bay_str id;
    return split(text, prefix, &id, out_secret) ? map_get(&self->by_id, id) : NULL;
}

static const char *redeem(oauth_grants *self, const oauth_redemption *asked, uint64_t now_ms,
                          oauth_given *out)
{
    bay_str secret;
    grant *of = grant_of(self, asked->text, code_prefix, &secret);
    if (of == NULL) {
        return "invalid_grant";
    }
    bool is_good =
        secret_is(&of->code, secret, now_ms) && str_eq(asked->client_id, of->client_id) &&
        str_eq(asked->redirect_uri, of->redirect_uri) && verifier_fits(of, asked->verifier);
    bool is_there = asked->resource.len == 0 || str_eq(asked->resource, of->resource);
    bay_err err = is_good && is_there ? give(self, of, of->scope, now_ms, out) : BAY_OK;
    if (!is_good || !is_there) {
        grant_end(self, of); /* RFC 6749 section 4.1.2: with all tokens that came of the code */
        return is_good ? "invalid_target" : "invalid_grant";
    }
    return err == BAY_OK ? NULL : "server_error";
}

const char *oauth_grants_redeem(oauth_grants *self, const oauth_redemption *asked, uint64_t now_ms,
                                oauth_given *out)
{
    pthread_mutex_lock(&self->lock);
    const char *error = redeem(self, asked, now_ms, out);
    pthread_mutex_unlock(&self->lock);
    return error;
}

static const char *refresh(oauth_grants *self, const oauth_redemption *asked, uint64_t now_ms,
                           oauth_given *out)
{
    bay_str secret;
    grant *of = grant_of(self, asked->text, refresh_prefix, &secret);
    if (of == NULL || !str_eq(asked->client_id, of->client_id)) {
        return "invalid_grant";
    }
    if (!secret_is(&of->refresh, secret, now_ms)) {
        grant_end(self, of); /* RFC 9700 section 4.14.2: one of two has a stolen token */
        return "invalid_grant";
    }
    bay_str scope = asked->scope.len > 0 ? asked->scope : of->scope;
    if (!oauth_scopes_cover(of->scope, scope)) {
        return "invalid_scope";
    }
    if (asked->resource.len > 0 && !str_eq(asked->resource, of->resource)) {
        return "invalid_target";
    }
    if (give(self, of, scope, now_ms, out) != BAY_OK) {
        return "server_error";
    }
    list_remove(&of->link);
    list_push(&self->used, &of->link);
    return NULL;
}

const char *oauth_grants_refresh(oauth_grants *self, const oauth_redemption *asked, uint64_t now_ms,
                                 oauth_given *out)
{
    pthread_mutex_lock(&self->lock);
    const char *error = refresh(self, asked, now_ms, out);
    pthread_mutex_unlock(&self->lock);
    return error;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

bool oauth_grants_is_token(bay_str text)
{
    bay_str id, secret;
    return split(text, access_prefix, &id, &secret);
}

bool oauth_grants_find(oauth_grants *self, bay_str token, uint64_t now_ms,
                       const auth_principal **out_principal, buf *out_resource)
{
    bay_str secret;
    const auth_principal *found = NULL;
    pthread_mutex_lock(&self->lock);
    grant *of = grant_of(self, token, access_prefix, &secret);
    for (size_t i = 0; of != NULL && found == NULL && i < ACCESS_TOKENS; i++) {
        found = secret_is(&of->access[i], secret, now_ms) ? of->access[i].principal : NULL;
    }
    if (found != NULL) {
        *out_principal = principal_ref(found);
        buf_str(out_resource, of->resource);
        list_remove(&of->link);
        list_push(&self->used, &of->link);
    }
    pthread_mutex_unlock(&self->lock);
    return found != NULL;
}

void oauth_grants_revoke(oauth_grants *self, bay_str token, bay_str client_id, uint64_t now_ms)
{
    bay_str secret;
    pthread_mutex_lock(&self->lock);
    grant *of = grant_of(self, token, refresh_prefix, &secret);
    bool is_ours = of != NULL && secret_is(&of->refresh, secret, now_ms);
    if (of == NULL) {
        of = grant_of(self, token, access_prefix, &secret);
        for (size_t i = 0; of != NULL && i < ACCESS_TOKENS; i++) {
            is_ours = is_ours || secret_is(&of->access[i], secret, now_ms);
        }
    }
    if (is_ours && str_eq(client_id, of->client_id)) {
        grant_end(self, of);
    }
    pthread_mutex_unlock(&self->lock);
}

/* What proves who sends a request: the client's authentication at a token endpoint (RFC 6749
 * section 2.3, RFC 7523 section 2.2) and proofs of possession (RFC 9449). */
#include "auth/oauth_client_internal.h"
#include "auth/principal.h"
#include "base/err.h"
#include "base/rand.h"
#include "base/str.h"
#include "wire/base64.h"
#include "json/writer.h"

enum { RANDOM_TEXT_BYTES = 43 };

bay_err oauth_random(buf *text)
{
    unsigned char bytes[OAUTH_STATE_BYTES];
    rand_bytes(bytes, sizeof(bytes));
    oauth_text_forget(text);
    base64_encode(text, (bay_str){(const char *)bytes, sizeof(bytes)}, BASE64_URL);
    return text->err;
}

/* ---- the client ------------------------------------------------------------------------------ */

/* mcp 2025-11-25 basic/authorization: what the server lists; a secret goes by Basic rather than in
 * the body. 0: there is no way. */
static unsigned choose_method(const oauth_identity *identity, const oauth_server *server)
{
    unsigned ours = OAUTH_NONE;
    if (identity->secret.len > 0) {
        ours |= OAUTH_BASIC | OAUTH_POST;
    }
    if (identity->key != NULL) {
        ours |= OAUTH_PRIVATE_KEY;
    }
    unsigned both = ours & server->methods;
    if (identity->method != 0 && (both & identity->method) != 0) {
        return identity->method;
    }
    const unsigned order[] = {OAUTH_PRIVATE_KEY, OAUTH_BASIC, OAUTH_POST, OAUTH_NONE};
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        if ((both & order[i]) != 0) {
            return order[i];
        }
    }
    return 0;
}

static void put_times(json_writer *writer, uint64_t now_ms, uint64_t lifetime_ms)
{
    json_key_lit(writer, "iat");
    json_put_uint(writer, now_ms / 1000);
    if (lifetime_ms > 0) {
        json_key_lit(writer, "exp");
        json_put_uint(writer, (now_ms + lifetime_ms) / 1000);
    }
}

static bay_err put_number(json_writer *writer)
{
    buf text;
    buf_init_secret(&text, 2 * RANDOM_TEXT_BYTES);
    bay_err err = oauth_random(&text);
    json_key_lit(writer, "jti");
    json_put_str(writer, buf_view(&text));
    buf_fini(&text);
    return err;
}

/* The audience is the issuer, not the endpoint (SEP-1046; RFC 7523 as revised). */
static bay_err write_assertion(const oauth_identity *identity, const oauth_server *server,
                               uint64_t now_ms, buf *out)
{
    buf claims;
    json_writer writer;
    buf_init(&claims, OAUTH_FORM_BYTES);
    json_writer_init(&writer, &claims);
    json_open_object(&writer);
    json_key_lit(&writer, "iss");
    json_put_str(&writer, identity->id);
    json_key_lit(&writer, "sub");
    json_put_str(&writer, identity->id);
    json_key_lit(&writer, "aud");
    json_put_str(&writer, server->issuer);
    put_times(&writer, now_ms, OAUTH_ASSERTION_MS);
    bay_err err = put_number(&writer);
    json_close_object(&writer);
    err = err == BAY_OK ? claims.err : err;
    if (err == BAY_OK) {
        err = jose_token_sign(identity->key, STR("JWT"), false, buf_view(&claims), out);
    }
    buf_fini(&claims);
    return err;
}

static bay_err put_assertion(const oauth_identity *identity, const oauth_server *server,
                             uint64_t now_ms, buf *form, bay_diag *diag)
{
    buf assertion;
    bay_str algorithm = jose_key_algorithm(identity->key);
    if (server->signing.len > 0 && !scopes_have(server->signing, algorithm)) {
        return diag_set(diag, BAY_ERR_UNSUPPORTED,
                        "the authorization server takes no client assertion by %.*s",
                        BAY_STR(algorithm));
    }
    buf_init_secret(&assertion, OAUTH_TOKEN_BYTES);
    bay_err err = write_assertion(identity, server, now_ms, &assertion);
    if (err == BAY_OK) {
        oauth_form_put(form, 0, STR("client_assertion_type"),
                       STR("urn:ietf:params:oauth:client-assertion-type:jwt-bearer"));
        oauth_form_put(form, 0, STR("client_assertion"), buf_view(&assertion));
    }
    buf_fini(&assertion);
    return err == BAY_OK ? form->err : err;
}

static bay_err put_basic(oauth_client *self, const oauth_identity *identity, oauth_action *out)
{
    buf pair;
    buf_init_secret(&pair, 4 * OAUTH_URL_MOST);
    oauth_form_encode(&pair, identity->id);
    buf_char(&pair, ':');
    oauth_form_encode(&pair, identity->secret);
    oauth_text_forget(&self->basic);
    buf_lit(&self->basic, "Basic ");
    base64_encode(&self->basic, buf_view(&pair), BASE64_STANDARD);
    bay_err err = pair.err != BAY_OK ? pair.err : self->basic.err;
    buf_fini(&pair);
    out->fields[out->field_count++] = (http_field){STR("Authorization"), buf_view(&self->basic)};
    return err;
}

bay_err oauth_prove_client(oauth_client *self, const oauth_identity *identity,
                           const oauth_server *server, uint64_t now_ms, buf *form,
                           oauth_action *out, bay_diag *diag)
{
    if (identity->id.len == 0) {
        return BAY_OK; /* workload identity: the assertion says who */
    }
    switch (choose_method(identity, server)) {
    case OAUTH_NONE:
        oauth_form_put(form, 0, STR("client_id"), identity->id);
        return form->err;
    case OAUTH_BASIC:
        return put_basic(self, identity, out);
    case OAUTH_POST:
        oauth_form_put(form, 0, STR("client_id"), identity->id);
        oauth_form_put(form, 0, STR("client_secret"), identity->secret);
        return form->err;
    case OAUTH_PRIVATE_KEY:
        return put_assertion(identity, server, now_ms, form, diag);
    default:
        return diag_set(diag, BAY_ERR_UNSUPPORTED,
                        "the authorization server takes none of the ways in which this client can "
                        "authenticate: %s",
                        identity->secret.len > 0 ? "its secret" : "it has neither secret nor key");
    }
}

/* ---- possession ------------------------------------------------------------------------------ */

bool oauth_uses_dpop(const oauth_client *self)
{
    bool is_wanted = self->settings.wants_dpop || self->sees_dpop || self->record.is_dpop ||
                     (self->has_resource && self->resource.is_dpop_required);
    return is_wanted && (self->server.has_dpop || self->settings.wants_dpop);
}

bay_err oauth_key_need(oauth_client *self)
{
    bay_err err = BAY_OK;
    if (self->key != NULL) {
        return BAY_OK;
    }
    if (self->record.key.len == 0) {
        err = jose_key_generate(&self->record.key);
        self->is_changed = true;
    }
    return err == BAY_OK
               ? jose_key_new(buf_view(&self->record.key), (bay_str){"", 0}, &self->key, NULL)
               : err;
}

/* RFC 9449 section 4.2: without query and fragment. */
static bay_str target_of(bay_str url)
{
    url = str_head(url, str_find(url, '#'));
    return str_head(url, str_find(url, '?'));
}

bay_err oauth_proof_write(oauth_client *self, bay_str method, bay_str url, bay_str token,
                          bay_str nonce, uint64_t now_ms, buf *out)
{
    buf claims;
    json_writer writer;
    buf_init(&claims, OAUTH_FORM_BYTES);
    json_writer_init(&writer, &claims);
    json_open_object(&writer);
    bay_err err = put_number(&writer);
    json_key_lit(&writer, "htm");
    json_put_str(&writer, method);
    json_key_lit(&writer, "htu");
    json_put_str(&writer, target_of(url));
    put_times(&writer, now_ms, 0);
    if (token.len > 0 && err == BAY_OK) {
        buf hash;
        buf_init(&hash, 2 * RANDOM_TEXT_BYTES);
        err = jose_hash(token, &hash);
        json_key_lit(&writer, "ath");
        json_put_str(&writer, buf_view(&hash));
        buf_fini(&hash);
    }
    if (nonce.len > 0) {
        json_key_lit(&writer, "nonce");
        json_put_str(&writer, nonce);
    }
    json_close_object(&writer);
    err = err == BAY_OK ? claims.err : err;
    if (err == BAY_OK) {
        err = jose_token_sign(self->key, STR("dpop+jwt"), true, buf_view(&claims), out);
    }
    buf_fini(&claims);
    return err;
}

/* API keys, which are looked up by their public part, and client certificates, which TLS
 * verified. */
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "oauth/guard_parts.h"
#include "json/build.h"

/* ---- API keys -------------------------------------------------------------------------------- */

/* The key's views are good for this call only. */
static bay_err copy_key(oauth_check *self, const api_key *key)
{
    self->key = *key;
    bay_err err = arena_dup(&self->memory, key->name, &self->key.name);
    return err == BAY_OK ? arena_dup(&self->memory, key->scopes, &self->key.scopes) : err;
}

static void on_key(void *argument, bay_err err, const api_key *key)
{
    key_question *question = argument;
    oauth_check *check = question->check;
    bool is_asking = question->is_asking;
    mem_free(question);
    if (check == NULL) {
        return;
    }
    check->question = NULL;
    check->is_answered = true;
    check->answer = err == BAY_OK ? copy_key(check, key) : err;
    if (!is_asking) {
        check_go_on(check);
    }
}

/* BAY_ERR_AGAIN: the check waits. */
static bay_err ask_for_key(oauth_check *self)
{
    key_question *question = mem_zalloc(sizeof(*question));
    if (question == NULL) {
        return BAY_ERR_NOMEM;
    }
    question->check = self;
    question->is_asking = true;
    self->question = question;
    self->of->find_key(self->of->key_user, self->brought.key_id, on_key, question);
    if (self->question == NULL) {
        return BAY_OK;
    }
    question->is_asking = false;
    return BAY_ERR_AGAIN;
}

/* NULL: it is this key, and its time is not over. */
static const char *key_fault(const oauth_check *self)
{
    uint64_t expires_at_ms = self->key.expires_at_ms;
    bay_str digest = {(const char *)self->digest, DIGEST_BYTES};
    bay_str kept = {(const char *)self->key.digest, DIGEST_BYTES};
    if (!str_eq_secret(digest, kept)) {
        return "the API key's secret is another";
    }
    return expires_at_ms > 0 && expires_at_ms <= guard_wall(self->of->guard)
               ? "the API key's time is over"
               : NULL;
}

static guard_verdict take_key(oauth_check *self, const auth_principal **out_principal,
                              oauth_refusal *out_refusal)
{
    const oauth_guard *guard = self->of->guard;
    const auth_principal *principal = NULL;
    uint64_t until_ms = guard_wall(guard) + KEY_REMEMBERED_MS;
    access_claims key = {.who = {.proof = PRINCIPAL_KEY,
                                 .subject = self->key.name,
                                 .scopes = self->key.scopes,
                                 .expires_at_ms = self->key.expires_at_ms}};
    bay_diag diag = {.text = ""};
    bay_err err =
        access_claims_principal(&key, guard->implied, guard->implied_count, &principal, &diag);
    if (err != BAY_OK) {
        return guard_refuse_busy(self->of, &self->place, 1000,
                                 err == BAY_ERR_NOMEM ? "out of memory" : diag.text, out_refusal);
    }
    if (key.who.expires_at_ms > 0 && key.who.expires_at_ms < until_ms) {
        until_ms = key.who.expires_at_ms;
    }
    return check_believe(self, principal, KIND_KEY, until_ms, out_principal, out_refusal);
}

guard_verdict check_advance_key(oauth_check *self, const auth_principal **out_principal,
                                oauth_refusal *out_refusal)
{
    bay_err err = self->is_answered ? BAY_OK : ask_for_key(self);
    if (err == BAY_ERR_AGAIN) {
        return GUARD_WAIT;
    }
    err = err == BAY_OK ? self->answer : err;
    if (err == BAY_ERR_NOT_FOUND) {
        return check_disbelieve(self, "there is no such API key", out_refusal);
    }
    if (err != BAY_OK) {
        return guard_refuse_busy(self->of, &self->place, 1000, "API keys cannot be looked up",
                                 out_refusal);
    }
    const char *fault = key_fault(self);
    return fault == NULL ? take_key(self, out_principal, out_refusal)
                         : check_disbelieve(self, fault, out_refusal);
}

/* ---- certificates ---------------------------------------------------------------------------- */

static bay_err describe_certificate(oauth_check *self, bay_str subject, bay_str uri, json_val *out)
{
    json_builder builder;
    json_writer *writer = json_builder_init(&builder, &self->memory, 4 * TLS_PART_BYTES);
    json_open_object(writer);
    json_key_lit(writer, "certificate");
    json_open_object(writer);
    json_key_lit(writer, "subject");
    json_put_str(writer, subject);
    if (uri.len > 0) {
        json_key_lit(writer, "uri");
        json_put_str(writer, uri);
    }
    json_key_lit(writer, "sha256");
    json_put_str(writer, self->brought.text);
    json_close_object(writer);
    json_close_object(writer);
    return json_builder_end(&builder, out);
}

/* Its URI (a workload's, such as spiffe://…) before its distinguished name. TLS verified it when
 * the connection began. */
guard_verdict check_advance_certificate(oauth_check *self, const auth_principal **out_principal,
                                        oauth_refusal *out_refusal)
{
    const oauth_guard *guard = self->of->guard;
    const auth_principal *principal = NULL;
    bay_str subject = http_exchange_client_certificate(self->exchange, TLS_SUBJECT);
    bay_str uri = http_exchange_client_certificate(self->exchange, TLS_URI);
    principal_parts who = {.proof = PRINCIPAL_CERTIFICATE, .subject = uri.len > 0 ? uri : subject};
    bay_err err = describe_certificate(self, subject, uri, &who.claims);
    err = err == BAY_OK ? principal_new(&who, &principal) : err;
    if (err == BAY_ERR_NOMEM) {
        return guard_refuse_busy(self->of, &self->place, 1000, "out of memory", out_refusal);
    }
    if (err != BAY_OK) {
        return check_disbelieve(self, "its certificate names nobody", out_refusal);
    }
    return check_believe(self, principal, KIND_IDENTITY,
                         guard_wall(guard) + CERTIFICATE_REMEMBERED_MS, out_principal, out_refusal);
}

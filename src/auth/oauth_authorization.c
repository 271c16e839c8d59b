/* AUTHORIZATION and DEVICE: what a person is shown, and what comes back of it.
 * Source: RFC 6749 section 4.1, RFC 7636, RFC 8252, RFC 8628, RFC 8707, RFC 9207; mcp 2026-07-28
 * basic/authorization. */
#include <stdlib.h>

#include "auth/oauth_client_internal.h"
#include "auth/principal.h"
#include "base/err.h"
#include "base/shown.h"
#include "base/str.h"
#include "wire/chars.h"

enum { POLL_MS = 5000, DEVICE_MS = 600000 };

/* ---- the scope ------------------------------------------------------------------------------- */

/* mcp 2025-11-25 basic/authorization, Scope Selection Strategy; 2026-07-28: a step-up asks for the
 * union of what was granted, what was asked for and what is wanted (SEP-2350). */
bay_err oauth_scope_choose(oauth_client *self)
{
    buf scopes;
    bay_str configured = self->settings.scope;
    bay_str proposed = self->challenged.len > 0 ? buf_view(&self->challenged)
                       : self->has_resource     ? self->resource.scopes
                                                : (bay_str){"", 0};
    buf_init(&scopes, OAUTH_SCOPE_BYTES);
    if (self->is_step_up) {
        oauth_scopes_join(&scopes, buf_view(&self->record.scope));
        oauth_scopes_join(&scopes, buf_view(&self->asked));
        oauth_scopes_join(&scopes, proposed);
    } else {
        oauth_scopes_join(&scopes, configured.len > 0 ? configured : proposed);
    }
    bool may_refresh = scopes.len > 0 && !self->settings.is_login &&
                       (self->settings.grant == OAUTH_CODE || self->settings.grant == OAUTH_DEVICE);
    if (may_refresh && scopes_have(self->server.scopes, STR("offline_access"))) {
        oauth_scopes_join(&scopes, STR("offline_access")); /* SEP-2207 */
    }
    bay_err err = scopes.err;
    if (err == BAY_OK) {
        err = oauth_text_set(&self->wanted, buf_view(&scopes));
    }
    buf_fini(&scopes);
    return err;
}

/* ---- the browser ----------------------------------------------------------------------------- */

static bay_err challenge_of(const oauth_client *self, buf *out)
{
    return jose_hash(buf_view(&self->verifier), out);
}

static bay_err write_authorization_url(oauth_client *self)
{
    buf challenge;
    buf *out = &self->authorization_url;
    bay_str endpoint = self->server.authorization_endpoint;
    bool has_query = str_find(endpoint, '?') < endpoint.len;
    buf_init(&challenge, 128);
    bay_err err = challenge_of(self, &challenge);
    oauth_text_forget(out);
    buf_str(out, endpoint);
    buf_char(out, has_query ? '&' : '?');
    size_t start = out->len;
    oauth_form_put(out, start, STR("response_type"), STR("code"));
    oauth_form_put(out, start, STR("client_id"), oauth_identity_of(self).id);
    oauth_form_put(out, start, STR("redirect_uri"), buf_view(&self->redirect_uri));
    oauth_form_put(out, start, STR("state"), buf_view(&self->state));
    oauth_form_put(out, start, STR("code_challenge"), buf_view(&challenge));
    oauth_form_put(out, start, STR("code_challenge_method"), STR("S256"));
    oauth_put_resource(self, out, start);
    oauth_form_put_some(out, start, STR("scope"), buf_view(&self->wanted));
    oauth_form_put_some(out, start, STR("nonce"), buf_view(&self->nonce));
    if (self->settings.extra.len > 0) {
        buf_char(out, '&');
        buf_str(out, self->settings.extra);
    }
    buf_fini(&challenge);
    return err != BAY_OK ? err : out->err;
}

void oauth_authorization_begin(oauth_client *self, uint64_t now_ms)
{
    bay_err err = oauth_random(&self->state);
    if (err == BAY_OK) {
        err = oauth_random(&self->verifier);
    }
    if (err == BAY_OK && self->settings.is_login) {
        err = oauth_random(&self->nonce);
    }
    if (err == BAY_OK) {
        err = oauth_text_set(&self->asked, buf_view(&self->wanted));
    }
    if (err == BAY_OK) {
        err = write_authorization_url(self);
    }
    if (!oauth_went(self, now_ms, err)) {
        return;
    }
    self->until_ms = now_ms + OAUTH_ATTEMPT_MS;
    oauth_set_phase(self, OAUTH_AUTHORIZING);
}

/* RFC 9207 section 2.4. The issuer is compared byte for byte, and before anything else of the
 * redirect is looked at: an error may be an attacker's as well. */
static const char *check_issuer(const oauth_client *self, bay_str issuer)
{
    if (issuer.at == NULL) {
        return self->server.sends_issuer ? "the redirect does not say which issuer it is from"
                                         : NULL;
    }
    return str_eq(issuer, self->server.issuer) ? NULL : "the redirect is from another issuer";
}

bay_err oauth_client_redirected(oauth_client *self, bay_str query, uint64_t now_ms)
{
    arena memory;
    oauth_form form;
    arena_init(&memory, 2 * OAUTH_FORM_BYTES + 4096);
    bay_err err = oauth_form_read(query, &memory, &form);
    bay_str state = err == BAY_OK ? oauth_form_get(&form, STR("state")) : (bay_str){NULL, 0};
    bool is_asked = self->phase == OAUTH_AUTHORIZING && state.len > 0 &&
                    oauth_text_same(state, buf_view(&self->state));
    if (err != BAY_OK || !is_asked || now_ms >= self->until_ms) {
        arena_fini(&memory);
        return err == BAY_ERR_NOMEM ? err : BAY_ERR_NOT_FOUND;
    }
    bay_str code = oauth_form_get(&form, STR("code"));
    bay_str error = oauth_form_get(&form, STR("error"));
    const char *why = check_issuer(self, oauth_form_get(&form, STR("iss")));
    oauth_text_forget(&self->state); /* once */
    if (why != NULL) {
        oauth_fail(self, now_ms, BAY_ERR_DENIED, "%s", why);
    } else if (error.at != NULL) {
        oauth_fail(self, now_ms, BAY_ERR_DENIED, "the login was refused: %.*s",
                   BAY_STR(str_head(error, chars_span(str_head(error, 40), CHAR_TOKEN))));
    } else if (code.len == 0) {
        oauth_fail(self, now_ms, BAY_ERR_DENIED, "the redirect has no code");
    } else if (oauth_went(self, now_ms, oauth_text_set(&self->code, code))) {
        oauth_token_begin(self, now_ms);
    }
    arena_fini(&memory);
    return BAY_OK;
}

/* ---- a browser elsewhere --------------------------------------------------------------------- */

void oauth_device_begin(oauth_client *self, uint64_t now_ms)
{
    if (self->server.device_endpoint.len == 0) {
        oauth_fail(self, now_ms, BAY_ERR_UNSUPPORTED,
                   "the authorization server \"%.*s\" has no login by a code on another device",
                   BAY_STR(str_head(self->server.issuer, 80)));
        return;
    }
    bay_err err = oauth_text_set(&self->asked, buf_view(&self->wanted));
    oauth_text_forget(&self->body);
    oauth_form_put(&self->body, 0, STR("client_id"), oauth_identity_of(self).id);
    oauth_form_put_some(&self->body, 0, STR("scope"), buf_view(&self->wanted));
    oauth_put_resource(self, &self->body, 0);
    if (self->settings.extra.len > 0) {
        buf_char(&self->body, '&');
        buf_str(&self->body, self->settings.extra);
    }
    if (oauth_went(self, now_ms, err == BAY_OK ? self->body.err : err)) {
        oauth_set_phase(self, OAUTH_DEVICE_ASKING);
    }
}

void oauth_device_action(oauth_client *self, oauth_action *out)
{
    if (self->phase == OAUTH_DEVICE_ASKING) {
        out->need = OAUTH_REQUEST;
        out->method = STR("POST");
        out->url = self->server.device_endpoint;
        out->fields[out->field_count++] =
            (http_field){STR("Content-Type"), STR("application/x-www-form-urlencoded")};
        out->fields[out->field_count++] = (http_field){STR("Accept"), STR("application/json")};
        out->body = buf_view(&self->body);
        return;
    }
    out->need = self->is_shown ? OAUTH_WAIT : OAUTH_SHOW;
    out->url = buf_view(&self->verification_url);
    out->code = buf_view(&self->user_code);
    out->at_ms = self->poll_at_ms;
    self->is_shown = true;
}

static bay_err take_text(json_val root, bay_str name, arena *memory, buf *out)
{
    bay_str text = {"", 0};
    bay_err err = json_str(json_get(root, name), memory, &text);
    for (size_t i = 0; err == BAY_OK && i < text.len; i++) {
        err = (unsigned char)text.at[i] < 0x20 || text.at[i] == 0x7f ? BAY_ERR_SYNTAX : BAY_OK;
    }
    return err == BAY_OK ? oauth_text_set(out, text) : err;
}

static bay_err take_device(oauth_client *self, json_val root, arena *memory, uint64_t now_ms)
{
    uint64_t interval_s = POLL_MS / 1000, expires_s = DEVICE_MS / 1000;
    bay_err err = take_text(root, STR("device_code"), memory, &self->device_code);
    if (err == BAY_OK) {
        err = take_text(root, STR("user_code"), memory, &self->user_code);
    }
    if (err == BAY_OK) {
        err = take_text(root, STR("verification_uri_complete"), memory, &self->verification_url);
        if (err != BAY_OK && err != BAY_ERR_NOMEM) {
            err = take_text(root, STR("verification_uri"), memory, &self->verification_url);
        }
    }
    if (err == BAY_OK &&
        !oauth_url_is_usable(buf_view(&self->verification_url), self->may_be_loopback)) {
        err = BAY_ERR_SYNTAX;
    }
    err_ignore(json_uint64(json_get(root, STR("interval")), &interval_s)); /* else the defaults */
    err_ignore(json_uint64(json_get(root, STR("expires_in")), &expires_s));
    interval_s = interval_s < 1 ? 1 : interval_s > 60 ? 60 : interval_s;
    self->interval_ms = interval_s * 1000;
    self->poll_at_ms = now_ms + self->interval_ms;
    self->until_ms =
        now_ms + (expires_s < OAUTH_ATTEMPT_MS / 1000 ? expires_s * 1000 : OAUTH_ATTEMPT_MS);
    self->is_shown = false;
    return err;
}

void oauth_device_wait(oauth_client *self, uint64_t now_ms)
{
    self->poll_at_ms = now_ms + self->interval_ms;
    if (self->poll_at_ms < self->until_ms) {
        oauth_set_phase(self, OAUTH_DEVICE_WAITING);
    } else {
        oauth_fail(self, now_ms, BAY_ERR_TIMEOUT, "nobody has entered the code in time");
    }
}

void oauth_device_answered(oauth_client *self, int status, bay_str body, uint64_t now_ms)
{
    static const json_limits limits = {OAUTH_METADATA_BYTES, 8, 1 << 10};
    arena memory;
    json_doc doc;
    if (status != 200) {
        oauth_error error;
        oauth_error_read(self, body, &error);
        oauth_fail_remote(self, now_ms, "the login by a code", status, &error);
        return;
    }
    arena_init(&memory, OAUTH_MEMORY_BYTES);
    bay_err err = json_parse(&doc, body, &limits, &memory, NULL);
    if (err == BAY_OK) {
        err = take_device(self, json_root(&doc), &memory, now_ms);
    }
    arena_fini(&memory);
    if (err != BAY_OK) {
        oauth_fail(self, now_ms, err == BAY_ERR_NOMEM ? err : BAY_ERR_PROTOCOL,
                   "the authorization server's answer has no usable code for the login");
        return;
    }
    oauth_set_phase(self, OAUTH_DEVICE_WAITING);
}

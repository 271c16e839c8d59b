/* TOKEN, EXCHANGE, REVOCATION: requests to token endpoints and what comes of them.
 * Source: RFC 6749 sections 4.1.3, 4.4, 5 and 6; RFC 7009; RFC 7523; RFC 8628 section 3.4; RFC
 * 8693; mcp extensions oauth-client-credentials, enterprise-managed-authorization, auth/wif. */
#include <stdio.h>

#include "auth/oauth_client_internal.h"
#include "auth/principal.h"
#include "base/err.h"
#include "base/shown.h"
#include "base/str.h"
#include "wire/chars.h"

#define GRANT_TYPE "urn:ietf:params:oauth:grant-type:"
#define TOKEN_TYPE "urn:ietf:params:oauth:token-type:"

static const bay_str grant_types[] = {
    [OAUTH_CODE] = STR_INIT("authorization_code"),
    [OAUTH_DEVICE] = STR_INIT(GRANT_TYPE "device_code"),
    [OAUTH_CLIENT] = STR_INIT("client_credentials"),
    [OAUTH_ASSERTION] = STR_INIT(GRANT_TYPE "jwt-bearer"),
    [OAUTH_EXCHANGE] = STR_INIT(GRANT_TYPE "token-exchange"),
    [OAUTH_ID_JAG] = STR_INIT(GRANT_TYPE "jwt-bearer"),
    [OAUTH_STORED] = STR_INIT("refresh_token"),
};

/* ---- beginning ------------------------------------------------------------------------------- */

static bool grants(const oauth_server *server, bay_str grant)
{
    return server->grants.len == 0 || scopes_have(server->grants, grant);
}

void oauth_token_begin(oauth_client *self, uint64_t now_ms)
{
    bay_str grant = grant_types[self->settings.grant];
    bool is_refresh = self->purpose == OAUTH_TO_REFRESH;
    if (!is_refresh && !grants(&self->server, grant)) {
        oauth_fail(self, now_ms, BAY_ERR_UNSUPPORTED,
                   "the authorization server \"%.*s\" does not list the grant %.*s",
                   BAY_STR(str_head(self->server.issuer, 80)), BAY_STR(grant));
        return;
    }
    bool has_scope = self->settings.grant != OAUTH_CODE && !is_refresh;
    if (has_scope &&
        (!oauth_went(self, now_ms, oauth_scope_choose(self)) ||
         !oauth_went(self, now_ms, oauth_text_set(&self->asked, buf_view(&self->wanted))))) {
        return;
    }
    self->had_nonce = false;
    oauth_set_phase(self, OAUTH_GETTING_TOKEN);
}

void oauth_exchange_begin(oauth_client *self, uint64_t now_ms)
{
    bool needs_metadata = self->settings.idp_token_endpoint.len == 0 && !self->has_idp;
    if (needs_metadata) {
        arena_reset(&self->idp_memory);
        bay_err err =
            oauth_server_urls(self->settings.idp_issuer, &self->idp_memory, &self->candidates);
        self->candidate = 0;
        if (oauth_went(self, now_ms, err)) {
            oauth_set_phase(self, OAUTH_READING_IDP);
        }
        return;
    }
    if (!self->has_idp) {
        self->idp = (oauth_server){
            .issuer = self->settings.idp_issuer.len > 0 ? self->settings.idp_issuer
                                                        : self->settings.idp_token_endpoint,
            .token_endpoint = self->settings.idp_token_endpoint,
            .methods = OAUTH_NONE | OAUTH_BASIC | OAUTH_POST | OAUTH_PRIVATE_KEY,
        };
    }
    if (oauth_went(self, now_ms, oauth_scope_choose(self))) {
        self->had_nonce = false;
        oauth_set_phase(self, OAUTH_EXCHANGING);
    }
}

/* ---- the forms ------------------------------------------------------------------------------- */

/* A refresh asks for the very resource of the tokens, whatever metadata says by now. */
static bay_str resource_of(const oauth_client *self)
{
    if (self->purpose == OAUTH_TO_REFRESH || self->settings.grant == OAUTH_STORED) {
        return buf_view(&self->record.resource);
    }
    if (self->is_legacy || self->settings.is_login) {
        return (bay_str){"", 0};
    }
    return self->has_resource ? self->resource.resource : self->settings.url;
}

void oauth_put_resource(const oauth_client *self, buf *out, size_t start)
{
    oauth_form_put_some(out, start, STR("resource"), resource_of(self));
}

static void put_exchange(const oauth_client *self, buf *form)
{
    bool is_jag = self->settings.grant == OAUTH_ID_JAG;
    oauth_form_put(form, 0, STR("grant_type"), grant_types[OAUTH_EXCHANGE]);
    oauth_form_put(form, 0, STR("requested_token_type"),
                   is_jag ? STR(TOKEN_TYPE "id-jag") : STR(TOKEN_TYPE "access_token"));
    oauth_form_put(form, 0, STR("subject_token"), buf_view(&self->subject));
    oauth_form_put(form, 0, STR("subject_token_type"),
                   is_jag && !self->settings.is_subject_access ? STR(TOKEN_TYPE "id_token")
                                                               : STR(TOKEN_TYPE "access_token"));
    oauth_form_put_some(form, 0, STR("audience"), is_jag ? self->server.issuer : STR(""));
    oauth_put_resource(self, form, 0);
    oauth_form_put_some(form, 0, STR("scope"), buf_view(&self->wanted));
}

static void put_grant(const oauth_client *self, buf *form)
{
    oauth_grant grant = self->settings.grant;
    if (self->purpose == OAUTH_TO_REFRESH) {
        oauth_form_put(form, 0, STR("grant_type"), STR("refresh_token"));
        oauth_form_put(form, 0, STR("refresh_token"), buf_view(&self->record.refresh));
        oauth_put_resource(self, form, 0);
        return;
    }
    if (grant == OAUTH_EXCHANGE) {
        put_exchange(self, form);
        return;
    }
    oauth_form_put(form, 0, STR("grant_type"), grant_types[grant]);
    if (grant == OAUTH_CODE) {
        oauth_form_put(form, 0, STR("code"), buf_view(&self->code));
        oauth_form_put(form, 0, STR("redirect_uri"), buf_view(&self->redirect_uri));
        oauth_form_put(form, 0, STR("code_verifier"), buf_view(&self->verifier));
    } else if (grant == OAUTH_DEVICE) {
        oauth_form_put(form, 0, STR("device_code"), buf_view(&self->device_code));
    } else if (grant != OAUTH_CLIENT) {
        oauth_form_put(form, 0, STR("assertion"), buf_view(&self->assertion));
    }
    if (grant != OAUTH_ID_JAG) { /* the assertion says of which resource it is */
        oauth_put_resource(self, form, 0);
    }
    if (grant == OAUTH_CLIENT || grant == OAUTH_ASSERTION) {
        oauth_form_put_some(form, 0, STR("scope"), buf_view(&self->wanted));
    }
}

static void begin_form(oauth_client *self, bay_str url, oauth_action *out)
{
    out->need = OAUTH_REQUEST;
    out->method = STR("POST");
    out->url = url;
    out->fields[out->field_count++] =
        (http_field){STR("Content-Type"), STR("application/x-www-form-urlencoded")};
    out->fields[out->field_count++] = (http_field){STR("Accept"), STR("application/json")};
    oauth_text_forget(&self->body);
}

bay_err oauth_token_action(oauth_client *self, uint64_t now_ms, oauth_action *out)
{
    bay_diag diag = {0};
    bool is_exchange = self->phase == OAUTH_EXCHANGING;
    const oauth_server *server = is_exchange ? &self->idp : &self->server;
    oauth_identity identity = is_exchange ? self->settings.idp : oauth_identity_of(self);
    begin_form(self, server->token_endpoint, out);
    if (is_exchange) {
        put_exchange(self, &self->body);
    } else {
        put_grant(self, &self->body);
    }
    if (self->settings.extra.len > 0 && !is_exchange) {
        buf_char(&self->body, '&');
        buf_str(&self->body, self->settings.extra);
    }
    bay_err err = oauth_prove_client(self, &identity, server, now_ms, &self->body, out, &diag);
    if (err != BAY_OK && diag.code != BAY_OK) {
        oauth_fail_with(self, now_ms, &diag);
        return err;
    }
    if (err == BAY_OK && !is_exchange && oauth_uses_dpop(self)) {
        oauth_text_forget(&self->proof);
        err = oauth_key_need(self);
        if (err == BAY_OK) {
            err = oauth_proof_write(self, STR("POST"), server->token_endpoint, (bay_str){"", 0},
                                    buf_view(&self->server_nonce), now_ms, &self->proof);
        }
        out->fields[out->field_count++] = (http_field){STR("DPoP"), buf_view(&self->proof)};
    }
    out->body = buf_view(&self->body);
    return err == BAY_OK ? self->body.err : err;
}

bay_err oauth_revocation_action(oauth_client *self, uint64_t now_ms, oauth_action *out)
{
    bay_diag diag = {0};
    bool has_refresh = self->record.refresh.len > 0;
    oauth_identity identity = oauth_identity_of(self);
    if (self->server.revocation_endpoint.len == 0) {
        oauth_client_answered(self, 0, (bay_str){"", 0}, (bay_str){"", 0}, now_ms);
        return BAY_OK;
    }
    begin_form(self, self->server.revocation_endpoint, out);
    oauth_form_put(&self->body, 0, STR("token"),
                   buf_view(has_refresh ? &self->record.refresh : &self->record.access));
    oauth_form_put(&self->body, 0, STR("token_type_hint"),
                   has_refresh ? STR("refresh_token") : STR("access_token"));
    bay_err err =
        oauth_prove_client(self, &identity, &self->server, now_ms, &self->body, out, &diag);
    out->body = buf_view(&self->body);
    return err == BAY_OK ? self->body.err : err;
}

/* ---- errors ---------------------------------------------------------------------------------- */

enum { SECRET_BYTES = 6 /* what is shorter is in any text by chance */ };

/* A server may repeat in its words what it was sent. */
static bool tells_secrets(const oauth_client *self, bay_str text)
{
    const bay_str secrets[] = {
        buf_view(&self->record.access),
        buf_view(&self->record.refresh),
        buf_view(&self->record.client_secret),
        self->settings.identity.secret,
        self->settings.idp.secret,
        buf_view(&self->code),
        buf_view(&self->verifier),
        buf_view(&self->subject),
        buf_view(&self->assertion),
        buf_view(&self->device_code),
    };
    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
        if (secrets[i].len >= SECRET_BYTES && text.len >= secrets[i].len &&
            memmem(text.at, text.len, secrets[i].at, secrets[i].len) != NULL) {
            return true;
        }
    }
    return false;
}

void oauth_error_read(const oauth_client *self, bay_str body, oauth_error *out)
{
    static const json_limits limits = {OAUTH_METADATA_BYTES, 8, 1 << 10};
    arena memory;
    json_doc doc;
    bay_str code = {"", 0}, text = {"", 0};
    *out = (oauth_error){0};
    arena_init(&memory, OAUTH_MEMORY_BYTES);
    if (json_parse(&doc, body, &limits, &memory, NULL) == BAY_OK) {
        json_val root = json_root(&doc);
        if (json_str_plain(json_get(root, STR("error")), &code) && chars_are(code, CHAR_TOKEN) &&
            !tells_secrets(self, code)) {
            snprintf(out->code, sizeof(out->code), "%.*s", BAY_STR(str_head(code, 47)));
        }
        if (json_str(json_get(root, STR("error_description")), &memory, &text) == BAY_OK &&
            !tells_secrets(self, text)) {
            (void)shown_copy(out->text, sizeof(out->text), text, SHOWN_LINE);
        }
    }
    arena_fini(&memory);
}

void oauth_fail_remote(oauth_client *self, uint64_t now_ms, const char *who, int status,
                       const oauth_error *error)
{
    bay_err err = status == 429 ? BAY_ERR_BUSY : status >= 500 ? BAY_ERR_CONNECT : BAY_ERR_DENIED;
    if (error->code[0] == '\0') {
        oauth_fail(self, now_ms, err, "%s failed: HTTP status %d", who, status);
    } else if (error->text[0] == '\0') {
        oauth_fail(self, now_ms, err, "%s was refused: %s", who, error->code);
    } else {
        oauth_fail(self, now_ms, err, "%s was refused: %s (%s)", who, error->code, error->text);
    }
}

static void device_refused(oauth_client *self, int status, const oauth_error *error,
                           uint64_t now_ms)
{
    bool slows = strcmp(error->code, "slow_down") == 0;
    if (slows || strcmp(error->code, "authorization_pending") == 0) {
        self->interval_ms += slows ? 5000 : 0;
        oauth_device_wait(self, now_ms);
        return;
    }
    oauth_fail_remote(self, now_ms, "the login by a code", status, error);
}

static void token_refused(oauth_client *self, int status, bay_str nonce, bay_str body,
                          uint64_t now_ms)
{
    oauth_error error;
    oauth_error_read(self, body, &error);
    bool wants_nonce = strcmp(error.code, "use_dpop_nonce") == 0 && nonce.len > 0;
    if (wants_nonce && !self->had_nonce && oauth_uses_dpop(self)) {
        self->had_nonce = true;
        (void)oauth_went(self, now_ms, oauth_text_set(&self->server_nonce, nonce));
        return; /* the same phase: the same form once more, with a new proof */
    }
    if (self->phase == OAUTH_DEVICE_POLLING) {
        device_refused(self, status, &error, now_ms);
        return;
    }
    bool is_refresh = self->purpose == OAUTH_TO_REFRESH;
    bool is_unknown = strcmp(error.code, "invalid_client") == 0 && self->record.is_registered;
    if (is_unknown && self->phase == OAUTH_GETTING_TOKEN) {
        oauth_record_drop_client(&self->record); /* of this issuer only: there is no other here */
        self->generation = 0;
        self->is_changed = true;
    } else if (is_refresh && strcmp(error.code, "invalid_grant") == 0) {
        oauth_record_drop_tokens(&self->record);
        self->generation = 0;
        self->is_changed = true;
    }
    if (is_refresh && self->record.refresh.len == 0) {
        oauth_attempt_end(self);
        oauth_set_phase(self, OAUTH_IDLE); /* the server's challenge begins anew */
        return;
    }
    if ((status >= 500 || status == 429) && oauth_keeps_going(self, now_ms)) {
        return;
    }
    oauth_fail_remote(self, now_ms,
                      self->phase == OAUTH_EXCHANGING ? "the exchange at the identity provider"
                      : is_refresh                    ? "the refresh"
                                                      : "the token request",
                      status, &error);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

typedef struct token_answer {
    bay_str access, refresh, scope, issued_type, id_token;
    bool is_dpop, is_none; /* token_type; neither: Bearer */
    bool has_scope;
    uint64_t lifetime_s; /* 0: not said */
} token_answer;

static bool is_token(bay_str text)
{
    for (size_t i = 0; i < text.len; i++) { /* RFC 6749 appendix A.12: VSCHAR */
        if ((unsigned char)text.at[i] <= 0x20 || (unsigned char)text.at[i] >= 0x7f) {
            return false;
        }
    }
    return text.len > 0 && text.len <= OAUTH_TOKEN_BYTES;
}

/* Some servers send it as a string. */
static uint64_t lifetime_of(json_val value, arena *memory)
{
    uint64_t seconds = 0;
    double rough = 0;
    bay_str text = {"", 0};
    if (json_uint64(value, &seconds) == BAY_OK) {
        return seconds;
    }
    if (json_double(value, &rough) == BAY_OK) {
        return rough >= 1 && rough < 1e12 ? (uint64_t)rough : 0;
    }
    return json_str(value, memory, &text) == BAY_OK && str_uint(text, &seconds) ? seconds : 0;
}

static bay_err read_answer(bay_str body, arena *memory, token_answer *out, bay_diag *diag)
{
    static const json_limits limits = {4 * OAUTH_TOKEN_BYTES, 16, 1 << 12};
    json_doc doc;
    bay_str type = {"", 0};
    bay_err err = json_parse(&doc, body, &limits, memory, NULL);
    if (err == BAY_OK) {
        err = json_check_duplicates(json_root(&doc), NULL);
    }
    if (err != BAY_OK) {
        return err == BAY_ERR_NOMEM
                   ? err
                   : diag_set(diag, BAY_ERR_PROTOCOL, "the token answer is not a JSON object");
    }
    json_val root = json_root(&doc);
    *out = (token_answer){0};
    err = json_str(json_get(root, STR("access_token")), memory, &out->access);
    if (err == BAY_OK) {
        err = json_str(json_get(root, STR("token_type")), memory, &type);
    }
    if (err == BAY_ERR_NOMEM) {
        return err;
    }
    out->is_dpop = str_eq_nocase(type, STR("DPoP"));
    out->is_none = str_eq_nocase(type, STR("N_A"));
    bool is_known = out->is_dpop || out->is_none || str_eq_nocase(type, STR("Bearer"));
    if (err != BAY_OK || !is_token(out->access) || !is_known) {
        return diag_set(diag, BAY_ERR_PROTOCOL, "the token answer has no token of a known type");
    }
    const struct {
        bay_str name;
        bay_str *place;
    } texts[] = {{STR("refresh_token"), &out->refresh},
                 {STR("scope"), &out->scope},
                 {STR("issued_token_type"), &out->issued_type},
                 {STR("id_token"), &out->id_token}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        json_val value = json_get(root, texts[i].name);
        err = json_is(value, JSON_STRING) ? json_str(value, memory, texts[i].place) : BAY_OK;
        if (err != BAY_OK) {
            return err;
        }
    }
    if (out->refresh.len > 0 && !is_token(out->refresh)) {
        return diag_set(diag, BAY_ERR_PROTOCOL,
                        "the token answer has a refresh token that is none");
    }
    out->has_scope = json_is(json_get(root, STR("scope")), JSON_STRING);
    out->lifetime_s = lifetime_of(json_get(root, STR("expires_in")), memory);
    return BAY_OK;
}

/* The scopes as one list without doubles: a server may write anything in there. */
static bay_err set_scope(buf *out, bay_str scopes)
{
    buf joined;
    buf_init(&joined, OAUTH_SCOPE_BYTES);
    oauth_scopes_join(&joined, scopes);
    bay_err err = joined.err == BAY_OK ? oauth_text_set(out, buf_view(&joined)) : joined.err;
    buf_fini(&joined);
    return err;
}

static bay_err keep_tokens(oauth_client *self, const token_answer *answer, uint64_t now_ms)
{
    oauth_record *record = &self->record;
    bool is_refresh = self->purpose == OAUTH_TO_REFRESH;
    bay_err err = oauth_text_set(&record->access, answer->access);
    if (err == BAY_OK && self->settings.is_login) {
        err = oauth_text_set(&self->id_token, answer->id_token);
    }
    if (err == BAY_OK && (answer->refresh.len > 0 || !is_refresh)) {
        err = oauth_text_set(&record->refresh, answer->refresh); /* else the old one goes on */
    }
    if (err == BAY_OK && (answer->has_scope || !is_refresh)) {
        bay_str scope = answer->has_scope ? answer->scope : buf_view(&self->asked);
        err = set_scope(&record->scope, scope);
        record->is_scope_said = answer->has_scope;
    }
    if (err == BAY_OK && !is_refresh) {
        err = oauth_text_set(&record->resource, resource_of(self));
    }
    bay_str id = oauth_identity_of(self).id;
    if (err == BAY_OK && !record->is_registered && !str_eq(id, buf_view(&record->client_id))) {
        err = oauth_text_set(&record->client_id, id); /* whose tokens these are */
    }
    uint64_t lifetime_s = answer->lifetime_s < UINT32_MAX ? answer->lifetime_s : UINT32_MAX;
    record->is_dpop = answer->is_dpop;
    record->obtained_at_ms = now_ms;
    record->expires_at_ms = lifetime_s > 0 ? now_ms + lifetime_s * 1000 : 0;
    return err;
}

static void assertion_arrived(oauth_client *self, const token_answer *answer, uint64_t now_ms)
{
    if (!str_eq(answer->issued_type, STR(TOKEN_TYPE "id-jag"))) {
        oauth_fail(self, now_ms, BAY_ERR_DENIED,
                   "the identity provider issued something other than an identity assertion");
        return;
    }
    if (oauth_went(self, now_ms, oauth_text_set(&self->assertion, answer->access))) {
        oauth_text_forget(&self->subject);
        oauth_token_begin(self, now_ms);
    }
}

static const char *check_answer(const oauth_client *self, const token_answer *answer)
{
    bay_str issued = answer->issued_type;
    bool is_required =
        self->settings.wants_dpop || (self->has_resource && self->resource.is_dpop_required);
    if (answer->is_none) {
        return "the token answer has a token that cannot be used";
    }
    if (answer->is_dpop && !oauth_uses_dpop(self)) {
        return "the token is bound to a key, and none was shown";
    }
    if (!answer->is_dpop && is_required) {
        return "the token is not bound to our key, as it has to be";
    }
    if (self->settings.is_login && !is_token(answer->id_token)) {
        return "the token answer has no ID token: is the scope openid granted?";
    }
    if (self->settings.grant == OAUTH_EXCHANGE && issued.len > 0 &&
        !str_eq(issued, STR(TOKEN_TYPE "access_token")) && !str_eq(issued, STR(TOKEN_TYPE "jwt"))) {
        return "the exchange issued something other than an access token";
    }
    return NULL;
}

void oauth_token_answered(oauth_client *self, int status, bay_str nonce, bay_str body,
                          uint64_t now_ms)
{
    arena memory;
    token_answer answer;
    bay_diag diag = {0};
    if (status != 200) {
        token_refused(self, status, nonce, body, now_ms);
        return;
    }
    if (nonce.len > 0 && nonce.len <= OAUTH_NONCE_MOST) {
        err_ignore(oauth_text_set(&self->server_nonce, nonce)); /* without it: asked again */
    }
    arena_init(&memory, OAUTH_MEMORY_BYTES);
    bay_err err = read_answer(body, &memory, &answer, &diag);
    if (err == BAY_OK && self->phase == OAUTH_EXCHANGING) {
        assertion_arrived(self, &answer, now_ms);
        arena_fini(&memory);
        return;
    }
    const char *why = err == BAY_OK ? check_answer(self, &answer) : NULL;
    if (why != NULL) {
        err = diag_set(&diag, BAY_ERR_DENIED, "%s", why);
    }
    if (err == BAY_OK) {
        err = keep_tokens(self, &answer, now_ms);
    }
    arena_fini(&memory);
    if (err != BAY_OK) {
        oauth_fail(self, now_ms, err, "%s", diag.text[0] != '\0' ? diag.text : bay_err_text(err));
        return;
    }
    self->generation = ++self->generations;
    self->is_changed = true;
    oauth_text_forget(&self->refused);
    oauth_attempt_end(self);
    oauth_set_phase(self, OAUTH_IS_READY);
}

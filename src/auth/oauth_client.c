#include "auth/oauth_client.h"

#include <stdarg.h>
#include <stdio.h>

#include "auth/oauth_client_internal.h"
#include "auth/principal.h"
#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "wire/chars.h"
#include "wire/uri.h"

enum { SETTING_TEXTS = 13, SETTING_BYTES = 64 << 10 };

/* ---- the phase ------------------------------------------------------------------------------- */

#define TO(phase) (1u << (phase))

/* From IDLE, READY and FAILED a flow begins; a flow goes on, ends or fails. */
static const unsigned begins = TO(OAUTH_IDLE) | TO(OAUTH_READING_RESOURCE) |
                               TO(OAUTH_READING_SERVER) | TO(OAUTH_GETTING_SUBJECT) |
                               TO(OAUTH_REREADING) | TO(OAUTH_HAS_FAILED) | TO(OAUTH_IS_READY);
static const unsigned grants = TO(OAUTH_REGISTERING) | TO(OAUTH_LISTENING) | TO(OAUTH_AUTHORIZING) |
                               TO(OAUTH_DEVICE_ASKING) | TO(OAUTH_GETTING_SUBJECT) |
                               TO(OAUTH_READING_IDP) | TO(OAUTH_EXCHANGING) |
                               TO(OAUTH_GETTING_TOKEN) | TO(OAUTH_REVOKING) | TO(OAUTH_REREADING);

static unsigned follows(oauth_phase phase)
{
    const unsigned ends = TO(OAUTH_HAS_FAILED) | TO(OAUTH_IDLE) | TO(OAUTH_IS_READY);
    switch (phase) {
    case OAUTH_IDLE:
    case OAUTH_IS_READY:
    case OAUTH_HAS_FAILED:
        return begins | grants;
    case OAUTH_READING_RESOURCE:
        return ends | TO(OAUTH_READING_RESOURCE) | TO(OAUTH_READING_SERVER) | grants;
    case OAUTH_READING_SERVER:
    case OAUTH_READING_IDP:
        return ends | TO(OAUTH_READING_SERVER) | grants;
    case OAUTH_REGISTERING:
    case OAUTH_LISTENING:
        return ends | grants;
    case OAUTH_AUTHORIZING:
        return ends | TO(OAUTH_GETTING_TOKEN);
    case OAUTH_DEVICE_ASKING:
    case OAUTH_DEVICE_POLLING:
        return ends | TO(OAUTH_DEVICE_WAITING) | TO(OAUTH_REGISTERING);
    case OAUTH_DEVICE_WAITING:
        return ends | TO(OAUTH_DEVICE_POLLING);
    case OAUTH_GETTING_SUBJECT:
        return ends | TO(OAUTH_READING_IDP) | TO(OAUTH_EXCHANGING) | TO(OAUTH_GETTING_TOKEN);
    case OAUTH_EXCHANGING:
    case OAUTH_REREADING:
        return ends | TO(OAUTH_GETTING_TOKEN) | TO(OAUTH_READING_SERVER);
    case OAUTH_GETTING_TOKEN:
        return ends | TO(OAUTH_READING_RESOURCE) | TO(OAUTH_REGISTERING) | grants;
    case OAUTH_REVOKING:
        return ends;
    case OAUTH_PHASES:
        break;
    }
    return 0;
}

void oauth_set_phase(oauth_client *self, oauth_phase phase)
{
    CHECK((follows(self->phase) & TO(phase)) != 0);
    self->phase = phase;
}

void oauth_text_forget(buf *text)
{
    err_ignore(oauth_text_set(text, (bay_str){"", 0})); /* nothing is allocated */
}

bool oauth_text_same(bay_str one, bay_str other)
{
    unsigned char differs = one.len != other.len;
    for (size_t i = 0; i < one.len && i < other.len; i++) {
        differs |= (unsigned char)(one.at[i] ^ other.at[i]);
    }
    return differs == 0;
}

void oauth_attempt_end(oauth_client *self)
{
    buf *texts[] = {&self->state,
                    &self->verifier,
                    &self->code,
                    &self->authorization_url,
                    &self->device_code,
                    &self->user_code,
                    &self->subject,
                    &self->assertion,
                    &self->verification_url,
                    &self->redirect,
                    &self->redirect_uri};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        oauth_text_forget(texts[i]);
    }
    self->had_nonce = false;
    self->is_step_up = false;
}

void oauth_fail_with(oauth_client *self, uint64_t now_ms, const bay_diag *diag)
{
    bool may_pass = bay_err_class_of(diag->code) == BAY_ERR_CLASS_RETRY;
    self->fault = *diag;
    self->until_ms = now_ms + (may_pass ? OAUTH_PAUSE_MS : OAUTH_REST_MS);
    oauth_attempt_end(self);
    oauth_set_phase(self, OAUTH_HAS_FAILED);
}

void oauth_fail(oauth_client *self, uint64_t now_ms, bay_err err, const char *format, ...)
{
    bay_diag diag = {.code = err};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(diag.text, sizeof(diag.text), format, arguments);
    va_end(arguments);
    oauth_fail_with(self, now_ms, &diag);
}

bool oauth_went(oauth_client *self, uint64_t now_ms, bay_err err)
{
    if (err != BAY_OK) {
        oauth_fail(self, now_ms, err, "%s", bay_err_text(err));
    }
    return err == BAY_OK;
}

/* ---- making and freeing ---------------------------------------------------------------------- */

static void setting_texts(oauth_settings *self, bay_str *out[SETTING_TEXTS])
{
    bay_str *texts[SETTING_TEXTS] = {
        &self->url,
        &self->identity.id,
        &self->identity.secret,
        &self->issuer,
        &self->document_url,
        &self->name,
        &self->redirect_uri,
        &self->scope,
        &self->extra,
        &self->idp.id,
        &self->idp.secret,
        &self->idp_issuer,
        &self->idp_token_endpoint,
    };
    memcpy(out, texts, sizeof(texts));
}

static bay_err settings_copy(oauth_client *self, const oauth_settings *from)
{
    bay_str *texts[SETTING_TEXTS];
    size_t len = 0;
    self->settings = *from;
    setting_texts(&self->settings, texts);
    for (size_t i = 0; i < SETTING_TEXTS; i++) {
        len += texts[i]->len;
    }
    if (len > SETTING_BYTES) {
        return BAY_ERR_LIMIT;
    }
    self->texts = mem_alloc(len + 1);
    if (self->texts == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->texts_len = len;
    char *at = self->texts;
    for (size_t i = 0; i < SETTING_TEXTS; i++) {
        if (texts[i]->len > 0) {
            memcpy(at, texts[i]->at, texts[i]->len);
        }
        *texts[i] = (bay_str){at, texts[i]->len};
        at += texts[i]->len;
    }
    return BAY_OK;
}

static bay_err settings_check(const oauth_settings *self, bay_diag *diag)
{
    bool is_local = oauth_url_is_loopback(self->url);
    const struct {
        const char *name;
        bay_str url;
    } urls[] = {
        {"the issuer", self->issuer},
        {"the identity provider's issuer", self->idp_issuer},
        {"the identity provider's token endpoint", self->idp_token_endpoint},
    };
    if (!oauth_url_is_usable(self->url, true)) {
        return diag_set(diag, BAY_ERR_INVALID,
                        "OAuth needs an https URL (http to loopback addresses only)");
    }
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        if (urls[i].url.len > 0 && !oauth_url_is_usable(urls[i].url, is_local)) {
            return diag_set(diag, BAY_ERR_INVALID,
                            "%s is not a usable URL: https (http only where the server itself is "
                            "on this machine), no user information, no fragment",
                            urls[i].name);
        }
    }
    if (self->document_url.len > 0 && !oauth_url_is_usable(self->document_url, false)) {
        return diag_set(diag, BAY_ERR_INVALID, "the client id metadata document has no https URL");
    }
    if (self->grant == OAUTH_CLIENT && self->identity.id.len == 0) {
        return diag_set(diag, BAY_ERR_INVALID, "client credentials need a client id");
    }
    if (self->grant == OAUTH_ID_JAG && self->idp_issuer.len == 0 &&
        self->idp_token_endpoint.len == 0) {
        return diag_set(diag, BAY_ERR_INVALID,
                        "an identity assertion needs an identity provider: its issuer or its token "
                        "endpoint");
    }
    return BAY_OK;
}

typedef struct client_text {
    buf *text;
    size_t max;
} client_text;

enum { CLIENT_TEXTS = 23 };

static void client_texts(oauth_client *self, client_text out[CLIENT_TEXTS])
{
    const client_text texts[CLIENT_TEXTS] = {
        {&self->challenged, OAUTH_SCOPE_BYTES},
        {&self->pointer, OAUTH_URL_MOST},
        {&self->refused, OAUTH_TOKEN_BYTES},
        {&self->wanted, OAUTH_SCOPE_BYTES},
        {&self->asked, OAUTH_SCOPE_BYTES},
        {&self->state, 128},
        {&self->verifier, 128},
        {&self->redirect_uri, OAUTH_URL_MOST},
        {&self->code, OAUTH_TOKEN_BYTES},
        {&self->authorization_url, OAUTH_FORM_BYTES},
        {&self->device_code, OAUTH_TOKEN_BYTES},
        {&self->user_code, 256},
        {&self->verification_url, OAUTH_URL_MOST},
        {&self->redirect, OAUTH_FORM_BYTES},
        {&self->nonce, 128},
        {&self->id_token, OAUTH_TOKEN_BYTES},
        {&self->subject, OAUTH_TOKEN_BYTES},
        {&self->assertion, OAUTH_TOKEN_BYTES},
        {&self->server_nonce, OAUTH_NONCE_MOST},
        {&self->resource_nonce, OAUTH_NONCE_MOST},
        {&self->body, 4 * OAUTH_TOKEN_BYTES},
        {&self->basic, 4 * OAUTH_URL_MOST},
        {&self->proof, OAUTH_TOKEN_BYTES},
    };
    memcpy(out, texts, sizeof(texts));
}

bay_err oauth_client_new(const oauth_settings *settings, oauth_client **out, bay_diag *diag)
{
    client_text texts[CLIENT_TEXTS];
    bay_err err = settings_check(settings, diag);
    if (err != BAY_OK) {
        return err;
    }
    oauth_client *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    arena_init(&self->resource_memory, OAUTH_MEMORY_BYTES);
    arena_init(&self->server_memory, OAUTH_MEMORY_BYTES);
    arena_init(&self->idp_memory, OAUTH_MEMORY_BYTES);
    oauth_record_init(&self->record);
    client_texts(self, texts);
    for (size_t i = 0; i < CLIENT_TEXTS; i++) {
        buf_init_secret(texts[i].text, texts[i].max);
    }
    err = settings_copy(self, settings);
    if (err != BAY_OK) {
        oauth_client_free(self);
        return diag_set(diag, err, "the settings: %s", bay_err_text(err));
    }
    self->may_be_loopback = oauth_url_is_loopback(self->settings.url);
    *out = self;
    return BAY_OK;
}

void oauth_client_free(oauth_client *self)
{
    client_text texts[CLIENT_TEXTS];
    if (self == NULL) {
        return;
    }
    client_texts(self, texts);
    for (size_t i = 0; i < CLIENT_TEXTS; i++) {
        buf_fini(texts[i].text);
    }
    oauth_record_fini(&self->record);
    arena_fini(&self->resource_memory);
    arena_fini(&self->server_memory);
    arena_fini(&self->idp_memory);
    jose_key_free(self->key);
    if (self->texts != NULL) {
        mem_wipe(self->texts, self->texts_len);
    }
    mem_free(self->texts);
    mem_free(self);
}

/* ---- the record ------------------------------------------------------------------------------ */

/* One store may serve several targets, and a token goes to none but its own. Without a resource (mcp
 * 2025-03-26) the issuer is of the target's origin. */
static bool is_for_target(const oauth_record *record, bay_str url)
{
    bay_str resource = record->is_legacy ? oauth_url_origin(buf_view(&record->issuer))
                                         : buf_view(&record->resource);
    return resource.len == 0 || oauth_resource_covers(resource, url);
}

bay_err oauth_client_load(oauth_client *self, bay_str record)
{
    bay_err err = oauth_record_read(&self->record, record);
    bay_str issuer = buf_view(&self->record.issuer);
    bay_str configured = self->settings.issuer;
    bay_str id = self->settings.identity.id;
    bool is_ours = err == BAY_OK && (configured.len == 0 || str_eq(configured, issuer)) &&
                   (id.len == 0 || str_eq(id, buf_view(&self->record.client_id))) &&
                   is_for_target(&self->record, self->settings.url);
    if (!is_ours && err != BAY_ERR_NOMEM) {
        oauth_record_fini(&self->record);
        oauth_record_init(&self->record);
        err = BAY_OK;
    }
    jose_key_free(self->key);
    self->key = NULL;
    self->generation = self->record.access.len > 0 ? ++self->generations : 0;
    return err;
}

const oauth_record *oauth_client_record(const oauth_client *self)
{
    return &self->record;
}

bool oauth_client_take_change(oauth_client *self)
{
    bool is_changed = self->is_changed;
    self->is_changed = false;
    return is_changed;
}

bool oauth_can_refresh(const oauth_client *self)
{
    return self->record.issuer.len > 0 &&
           (self->record.refresh.len > 0 ||
            (self->settings.grant != OAUTH_CODE && self->settings.grant != OAUTH_DEVICE &&
             self->settings.grant != OAUTH_STORED && self->record.access.len > 0));
}

/* ---- what comes next ------------------------------------------------------------------------- */

/* Early, so that no request meets the end: 30 s, or a tenth of the lifetime if that is longer, but
 * at most half of it. */
static bool access_is_due(const oauth_client *self, uint64_t now_ms)
{
    const oauth_record *record = &self->record;
    if (record->access.len == 0) {
        return true;
    }
    if (record->expires_at_ms == 0) {
        return false; /* unknown: a 401 says */
    }
    uint64_t lifetime = record->expires_at_ms > record->obtained_at_ms
                            ? record->expires_at_ms - record->obtained_at_ms
                            : 0;
    uint64_t early = lifetime / 10 > 30000 ? lifetime / 10 : 30000;
    early = early < lifetime / 2 ? early : lifetime / 2;
    return now_ms + early >= record->expires_at_ms;
}

static bool access_is_over(const oauth_client *self, uint64_t now_ms)
{
    return self->record.access.len == 0 ||
           (self->record.expires_at_ms > 0 && now_ms >= self->record.expires_at_ms);
}

bool oauth_keeps_going(oauth_client *self, uint64_t now_ms)
{
    if (self->purpose != OAUTH_TO_REFRESH || access_is_over(self, now_ms)) {
        return false;
    }
    self->record.obtained_at_ms = now_ms; /* what is left counts as its lifetime: later again */
    oauth_attempt_end(self);
    oauth_set_phase(self, OAUTH_IS_READY);
    return true;
}

/* A refresh, or for a grant without refresh tokens the grant anew. */
static void renew(oauth_client *self, uint64_t now_ms)
{
    if (self->record.refresh.len > 0) {
        self->purpose = OAUTH_TO_REFRESH;
        oauth_set_phase(self, OAUTH_REREADING);
        return;
    }
    self->purpose = OAUTH_TO_GRANT;
    if (self->has_server && now_ms < self->server_until_ms) {
        oauth_server_known(self, now_ms);
    } else if (self->has_resource) {
        oauth_server_begin(self, buf_view(&self->record.issuer), now_ms);
    } else {
        oauth_discovery_begin(self, now_ms);
    }
}

static bool is_without_token(const oauth_client *self, uint64_t now_ms)
{
    return self->record.refresh.len == 0 && access_is_over(self, now_ms);
}

void oauth_client_reread(oauth_client *self, uint64_t now_ms)
{
    if (self->phase != OAUTH_REREADING) {
        return;
    }
    self->read_until_ms = now_ms + self->settings.reread_ms;
    if (self->settings.reread_ms > 0 && !self->settings.is_eager &&
        is_without_token(self, now_ms)) {
        oauth_record_drop_tokens(&self->record);
        oauth_set_phase(self, OAUTH_IDLE); /* a server may not ask */
        return;
    }
    if (self->settings.reread_ms > 0 && is_without_token(self, now_ms)) {
        oauth_fail(self, now_ms, BAY_ERR_DENIED, "%s",
                   self->record.access.len > 0 ? "the login there has expired"
                                               : "nobody has logged in there, or it was revoked");
        self->until_ms = now_ms + OAUTH_KEPT_PAUSE_MS; /* somebody may log in at any moment */
        return;
    }
    bool is_refused = self->refused.len > 0 &&
                      oauth_text_same(buf_view(&self->refused), buf_view(&self->record.access));
    if (self->purpose == OAUTH_TO_REFRESH && !is_refused && !access_is_due(self, now_ms)) {
        oauth_set_phase(self, OAUTH_IS_READY); /* another process did it */
    } else if (self->settings.reread_ms > 0 && self->record.refresh.len == 0 && !is_refused) {
        oauth_set_phase(self, OAUTH_IS_READY); /* for what is left of it */
    } else if (self->record.refresh.len == 0 && self->purpose == OAUTH_TO_REFRESH) {
        oauth_set_phase(self, OAUTH_IDLE); /* it was revoked meanwhile */
    } else {
        oauth_server_begin(self, buf_view(&self->record.issuer), now_ms);
    }
}

/* What is kept may have been granted, replaced or revoked elsewhere. */
static bool needs_reading(const oauth_client *self, uint64_t now_ms)
{
    return self->settings.reread_ms > 0 &&
           (now_ms >= self->read_until_ms ||
            (self->settings.is_eager && is_without_token(self, now_ms))) &&
           (self->phase == OAUTH_IDLE || self->phase == OAUTH_IS_READY);
}

/* What a request finds before a flow has begun. */
static void settle(oauth_client *self, uint64_t now_ms)
{
    if (self->phase == OAUTH_HAS_FAILED && now_ms >= self->until_ms) {
        oauth_set_phase(self, OAUTH_IDLE);
    }
    if (needs_reading(self, now_ms)) {
        self->purpose = OAUTH_TO_REFRESH;
        oauth_set_phase(self, OAUTH_REREADING);
        return;
    }
    bool has_token = self->record.access.len > 0;
    if (self->phase == OAUTH_IDLE && (has_token || self->record.refresh.len > 0)) {
        oauth_set_phase(self, OAUTH_IS_READY);
    }
    if (self->phase == OAUTH_IS_READY && oauth_can_refresh(self) && access_is_due(self, now_ms)) {
        renew(self, now_ms);
    } else if (self->phase == OAUTH_IS_READY && access_is_over(self, now_ms)) {
        oauth_record_drop_tokens(&self->record);
        oauth_set_phase(self, OAUTH_IDLE);
    }
    if (self->phase == OAUTH_IDLE && self->settings.is_eager && self->record.access.len == 0) {
        self->purpose = OAUTH_TO_GRANT;
        oauth_discovery_begin(self, now_ms);
    }
}

static bay_err show_action(oauth_client *self, uint64_t now_ms, oauth_action *out)
{
    switch (self->phase) {
    case OAUTH_READING_RESOURCE:
    case OAUTH_READING_SERVER:
    case OAUTH_READING_IDP:
        oauth_discovery_action(self, out);
        return BAY_OK;
    case OAUTH_REGISTERING:
        oauth_registration_action(self, out);
        return self->body.err;
    case OAUTH_LISTENING:
        out->need = OAUTH_LISTEN;
        out->url = buf_view(&self->record.redirect_uri);
        return BAY_OK;
    case OAUTH_AUTHORIZING:
        out->need = OAUTH_BROWSER;
        out->url = buf_view(&self->authorization_url);
        out->at_ms = self->until_ms;
        return BAY_OK;
    case OAUTH_DEVICE_ASKING:
    case OAUTH_DEVICE_WAITING:
        oauth_device_action(self, out);
        return BAY_OK;
    case OAUTH_DEVICE_POLLING:
    case OAUTH_EXCHANGING:
    case OAUTH_GETTING_TOKEN:
        return oauth_token_action(self, now_ms, out);
    case OAUTH_REVOKING:
        return oauth_revocation_action(self, now_ms, out);
    case OAUTH_GETTING_SUBJECT:
        out->need = OAUTH_SUBJECT;
        return BAY_OK;
    case OAUTH_REREADING:
        out->need = OAUTH_REREAD;
        return BAY_OK;
    case OAUTH_HAS_FAILED:
        out->need = OAUTH_FAILED;
        return BAY_OK;
    case OAUTH_IDLE:
    case OAUTH_IS_READY:
    case OAUTH_PHASES:
        break;
    }
    out->need = OAUTH_GO;
    return BAY_OK;
}

bay_err oauth_client_next(oauth_client *self, uint64_t now_ms, oauth_action *out)
{
    settle(self, now_ms);
    if (self->phase == OAUTH_AUTHORIZING && now_ms >= self->until_ms) {
        oauth_fail(self, now_ms, BAY_ERR_TIMEOUT, "nobody has logged in within %d minutes",
                   OAUTH_ATTEMPT_MS / 60000);
    }
    if (self->phase == OAUTH_DEVICE_WAITING && self->is_shown && now_ms >= self->poll_at_ms) {
        oauth_set_phase(self, OAUTH_DEVICE_POLLING);
    }
    *out = (oauth_action){.need = OAUTH_GO};
    bay_err err = show_action(self, now_ms, out);
    if (err != BAY_OK && self->phase != OAUTH_HAS_FAILED) {
        oauth_fail(self, now_ms, err, "%s", bay_err_text(err));
    }
    if (self->phase == OAUTH_HAS_FAILED) {
        *out = (oauth_action){.need = OAUTH_FAILED};
    }
    return BAY_OK;
}

void oauth_client_answered(oauth_client *self, int status, bay_str nonce, bay_str body,
                           uint64_t now_ms)
{
    switch (self->phase) {
    case OAUTH_READING_RESOURCE:
    case OAUTH_READING_SERVER:
    case OAUTH_READING_IDP:
        oauth_discovery_answered(self, status, body, now_ms);
        break;
    case OAUTH_REGISTERING:
        oauth_registration_answered(self, status, body, now_ms);
        break;
    case OAUTH_DEVICE_ASKING:
        oauth_device_answered(self, status, body, now_ms);
        break;
    case OAUTH_DEVICE_POLLING:
    case OAUTH_EXCHANGING:
    case OAUTH_GETTING_TOKEN:
        oauth_token_answered(self, status, nonce, body, now_ms);
        break;
    case OAUTH_REVOKING:
        oauth_record_drop_client(&self->record);
        self->is_changed = true;
        self->generation = 0;
        oauth_set_phase(self, OAUTH_IDLE);
        break;
    default:
        break; /* nothing was asked */
    }
}

void oauth_client_unanswered(oauth_client *self, bay_err err, const char *text, uint64_t now_ms)
{
    static const char *const whom[OAUTH_PHASES] = {
        [OAUTH_READING_RESOURCE] = "the resource's metadata",
        [OAUTH_READING_SERVER] = "the authorization server's metadata",
        [OAUTH_READING_IDP] = "the identity provider's metadata",
        [OAUTH_EXCHANGING] = "the identity provider",
    };
    if (self->phase == OAUTH_REVOKING) {
        oauth_client_answered(self, 0, (bay_str){"", 0}, (bay_str){"", 0}, now_ms);
        return;
    }
    if (self->phase == OAUTH_DEVICE_POLLING && bay_err_class_of(err) == BAY_ERR_CLASS_RETRY) {
        self->interval_ms *= 2; /* RFC 8628 section 3.5: a time-out slows down */
        oauth_device_wait(self, now_ms);
        return;
    }
    const char *who = whom[self->phase] != NULL ? whom[self->phase] : "the authorization server";
    if (!oauth_keeps_going(self, now_ms)) {
        oauth_fail(self, now_ms, err, "%s cannot be reached: %s", who,
                   text != NULL && text[0] != '\0' ? text : bay_err_text(err));
    }
}

/* ---- told by the carrier --------------------------------------------------------------------- */

void oauth_client_subject(oauth_client *self, bay_str token, uint64_t now_ms)
{
    if (self->phase != OAUTH_GETTING_SUBJECT) {
        return;
    }
    while (token.len > 0 && (unsigned char)token.at[token.len - 1] <= ' ') {
        token.len--; /* files end in a line end */
    }
    for (size_t i = 0; i < token.len; i++) {
        if ((unsigned char)token.at[i] <= 0x20 || (unsigned char)token.at[i] >= 0x7f) {
            token.len = 0;
        }
    }
    if (token.len == 0) {
        oauth_fail(self, now_ms, BAY_ERR_INVALID,
                   "the token to present is empty, or has characters that no token has");
        return;
    }
    bool is_assertion = self->settings.grant == OAUTH_ASSERTION;
    if (!oauth_went(self, now_ms,
                    oauth_text_set(is_assertion ? &self->assertion : &self->subject, token))) {
        return;
    }
    if (self->settings.grant == OAUTH_ID_JAG) {
        oauth_exchange_begin(self, now_ms);
    } else {
        oauth_token_begin(self, now_ms);
    }
}

void oauth_client_listens(oauth_client *self, bay_str redirect_uri, uint64_t now_ms)
{
    if (self->phase != OAUTH_LISTENING) {
        return;
    }
    bay_err err = oauth_text_set(&self->redirect_uri, redirect_uri);
    if (oauth_went(self, now_ms, err)) {
        oauth_registration_begin(self, now_ms);
    }
}

bay_str oauth_client_state(const oauth_client *self)
{
    return self->phase == OAUTH_AUTHORIZING ? buf_view(&self->state) : (bay_str){"", 0};
}

void oauth_client_give_up(oauth_client *self, bay_err err, const char *text, uint64_t now_ms)
{
    if (self->phase != OAUTH_IS_READY && self->phase != OAUTH_IDLE) {
        oauth_fail(self, now_ms, err, "%s", text);
    }
}

const bay_diag *oauth_client_fault(const oauth_client *self)
{
    return &self->fault;
}

static bool is_resting(const oauth_client *self)
{
    return self->phase == OAUTH_IDLE || self->phase == OAUTH_IS_READY ||
           self->phase == OAUTH_HAS_FAILED;
}

void oauth_client_forget(oauth_client *self)
{
    if (is_resting(self)) {
        oauth_record_drop_tokens(&self->record);
        self->generation = 0;
        oauth_set_phase(self, OAUTH_IDLE);
    }
}

void oauth_client_begin(oauth_client *self, bool anew)
{
    if (!is_resting(self)) {
        return;
    }
    if (anew) {
        oauth_client_forget(self);
    }
    oauth_text_forget(&self->id_token);
    oauth_set_phase(self, OAUTH_IDLE);
    self->settings.is_eager = true;
}

void oauth_client_revoke(oauth_client *self)
{
    if (!is_resting(self)) {
        return;
    }
    oauth_set_phase(self, OAUTH_IDLE);
    if (self->record.issuer.len == 0 ||
        (self->record.refresh.len == 0 && self->record.access.len == 0)) {
        oauth_record_drop_client(&self->record);
        self->is_changed = true;
        self->generation = 0;
        return;
    }
    self->purpose = OAUTH_TO_REVOKE;
    oauth_server_begin(self, buf_view(&self->record.issuer), 0);
}

/* ---- one request ----------------------------------------------------------------------------- */

/* A token goes to the origin it is for, and nowhere else. */
static bool is_of_resource(const oauth_client *self, bay_str url)
{
    uri ours, theirs;
    return uri_parse(&ours, self->settings.url) == BAY_OK && uri_parse(&theirs, url) == BAY_OK &&
           uri_same_origin(&ours, &theirs);
}

bay_err oauth_client_authorize(oauth_client *self, oauth_try *one, bay_str method, bay_str url,
                               uint64_t now_ms, buf *out_authorization, buf *out_proof)
{
    const oauth_record *record = &self->record;
    one->generation = 0;
    if (record->access.len == 0 || self->phase != OAUTH_IS_READY) {
        return BAY_OK;
    }
    if (!is_of_resource(self, url)) {
        return BAY_ERR_DENIED;
    }
    one->generation = self->generation;
    buf_str(out_authorization, record->is_dpop ? STR("DPoP ") : STR("Bearer "));
    buf_str(out_authorization, buf_view(&record->access));
    bay_err err = out_authorization->err;
    if (err == BAY_OK && record->is_dpop) {
        err = oauth_key_need(self);
    }
    if (err == BAY_OK && record->is_dpop) {
        err = oauth_proof_write(self, method, url, buf_view(&record->access),
                                buf_view(&self->resource_nonce), now_ms, out_proof);
    }
    return err;
}

static bay_str header_of(const http_field *fields, size_t count, bay_str name)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq_nocase(fields[i].name, name)) {
            return fields[i].value;
        }
    }
    return (bay_str){"", 0};
}

static oauth_verdict unauthorized(oauth_client *self, oauth_try *one,
                                  const oauth_challenge *challenge, uint64_t now_ms)
{
    bool has_nonce = self->resource_nonce.len > 0;
    if (one->generation != 0 && str_eq(challenge->error, STR("use_dpop_nonce"))) {
        if (one->had_nonce || !has_nonce || !self->record.is_dpop) {
            return OAUTH_PASS;
        }
        one->had_nonce = true;
        return OAUTH_AGAIN;
    }
    if (!is_resting(self) || self->generation != one->generation) {
        return OAUTH_AGAIN; /* it was renewed, or is being renewed, since this was sent */
    }
    if (self->phase == OAUTH_HAS_FAILED && now_ms < self->until_ms) {
        return OAUTH_AGAIN; /* which says why */
    }
    if (one->generation != 0 && one->refusals++ >= OAUTH_REFUSALS) {
        oauth_fail(self, now_ms, BAY_ERR_DENIED,
                   "the server refuses the token that its authorization server just issued");
        return OAUTH_AGAIN;
    }
    self->sees_dpop = challenge->is_present ? challenge->is_dpop : self->sees_dpop;
    if (!oauth_went(self, now_ms, oauth_text_set(&self->challenged, challenge->scope)) ||
        !oauth_went(self, now_ms, oauth_text_set(&self->pointer, challenge->resource_metadata))) {
        return OAUTH_AGAIN;
    }
    self->purpose = OAUTH_TO_GRANT;
    oauth_discovery_begin(self, now_ms); /* anew: the authorization server may be another one */
    return OAUTH_AGAIN;
}

static oauth_verdict forbidden(oauth_client *self, oauth_try *one, const oauth_challenge *challenge,
                               uint64_t now_ms)
{
    if (!str_eq(challenge->error, STR("insufficient_scope")) || one->generation == 0) {
        return OAUTH_PASS;
    }
    if (!is_resting(self) || self->generation != one->generation) {
        return OAUTH_AGAIN;
    }
    bay_str granted = buf_view(&self->record.scope);
    bool is_pointless = challenge->scope.len == 0 || oauth_scopes_cover(granted, challenge->scope);
    bool may_widen =
        self->settings.grant != OAUTH_STORED && self->settings.grant != OAUTH_ASSERTION;
    bool is_asked = oauth_scopes_cover(buf_view(&self->asked), challenge->scope);
    if (is_pointless || is_asked || !may_widen || one->step_ups++ >= OAUTH_STEP_UPS) {
        (void)diag_set(&self->fault, BAY_ERR_DENIED,
                       "the server wants the scope \"%.*s\", which %s",
                       BAY_STR(str_head(challenge->scope, 100)),
                       is_pointless ? "the token has already" : "was not granted");
        return OAUTH_REFUSE; /* this request only */
    }
    if (!oauth_went(self, now_ms, oauth_text_set(&self->challenged, challenge->scope))) {
        return OAUTH_AGAIN;
    }
    self->is_step_up = true;
    self->purpose = OAUTH_TO_GRANT;
    if (self->has_server) {
        oauth_server_known(self, now_ms);
    } else {
        oauth_discovery_begin(self, now_ms);
    }
    return OAUTH_AGAIN;
}

oauth_verdict oauth_client_replied(oauth_client *self, oauth_try *one, int status,
                                   const http_field *fields, size_t count, uint64_t now_ms)
{
    bay_str nonce = header_of(fields, count, STR("dpop-nonce"));
    if (nonce.len > 0 && nonce.len <= OAUTH_NONCE_MOST && self->record.is_dpop) {
        err_ignore(oauth_text_set(&self->resource_nonce, nonce)); /* without it: asked again */
    }
    if (status != 401 && status != 403) {
        return OAUTH_PASS;
    }
    arena memory;
    oauth_challenge challenge;
    arena_init(&memory, 4 * OAUTH_CHALLENGE_BYTES);
    oauth_verdict verdict = OAUTH_PASS;
    if (oauth_challenge_read(fields, count, &memory, &challenge) == BAY_OK) {
        verdict = status == 401 ? unauthorized(self, one, &challenge, now_ms)
                                : forbidden(self, one, &challenge, now_ms);
    }
    arena_fini(&memory);
    return verdict;
}

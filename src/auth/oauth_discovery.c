/* RESOURCE and SERVER: reading the two metadata documents at each place where they may be, in the
 * order of the specification. 404 and its kind mean "the next place"; everything else that is no
 * document ends the flow, so that a fault of the server never opens a weaker way.
 * Source: mcp 2025-11-25 basic/authorization, Authorization Server Discovery; mcp 2025-03-26
 * basic/authorization, Metadata Discovery and Fallbacks. */
#include "auth/oauth_client_internal.h"
#include "base/err.h"
#include "base/str.h"

static void forget_documents(oauth_client *self)
{
    arena_reset(&self->resource_memory);
    self->has_resource = self->has_server = false;
    self->is_legacy = false;
    self->candidates = (oauth_candidates){0};
    self->candidate = 0;
}

void oauth_discovery_begin(oauth_client *self, uint64_t now_ms)
{
    bay_str pointer = buf_view(&self->pointer);
    if (self->settings.is_login) { /* there is no resource */
        oauth_server_begin(self, self->settings.issuer, now_ms);
        return;
    }
    forget_documents(self);
    oauth_set_phase(self, OAUTH_READING_RESOURCE);
    if (pointer.len == 0) {
        bay_err err =
            oauth_resource_urls(self->settings.url, &self->resource_memory, &self->candidates);
        (void)oauth_went(self, now_ms, err);
        return;
    }
    /* RFC 9728 section 5.1: where the challenge says. SSRF: the address is checked at connect. */
    if (!oauth_url_is_usable(pointer, self->may_be_loopback)) {
        oauth_fail(self, now_ms, BAY_ERR_DENIED,
                   "the server names its metadata at a URL that is not usable (https, no user "
                   "information, no fragment)");
        return;
    }
    self->candidates = (oauth_candidates){.urls = {pointer}, .count = 1};
}

/* The issuer's metadata; as long as it was read a moment ago, that. */
void oauth_server_begin(oauth_client *self, bay_str issuer, uint64_t now_ms)
{
    if (self->record.is_legacy && self->purpose != OAUTH_TO_GRANT) {
        self->is_legacy = true;
        issuer = oauth_url_origin(self->settings.url);
    }
    if (self->has_server && str_eq(self->server.issuer, issuer) && now_ms < self->server_until_ms) {
        oauth_server_known(self, now_ms);
        return;
    }
    self->has_server = false;
    bay_str copy = {"", 0};
    arena_reset(&self->server_memory); /* `issuer` is not in there */
    bay_err err = arena_dup(&self->server_memory, issuer, &copy);
    if (err == BAY_OK) {
        err = oauth_server_urls(copy, &self->server_memory, &self->candidates);
    }
    self->candidate = 0;
    if (self->is_legacy && self->candidates.count > 1) {
        self->candidates.count = 1; /* mcp 2025-03-26 knows one place */
    }
    self->server.issuer = copy; /* the one that the document must name */
    if (err != BAY_OK) {
        oauth_fail(self, now_ms, err, "the issuer \"%.*s\" is not usable: %s",
                   BAY_STR(str_head(issuer, 80)), bay_err_text(err));
        return;
    }
    oauth_set_phase(self, OAUTH_READING_SERVER);
}

static bay_str candidate_now(const oauth_client *self)
{
    return self->candidates.urls[self->candidate];
}

void oauth_discovery_action(oauth_client *self, oauth_action *out)
{
    out->need = OAUTH_REQUEST;
    out->method = STR("GET");
    out->url = candidate_now(self);
    out->fields[out->field_count++] = (http_field){STR("Accept"), STR("application/json")};
    if (self->phase == OAUTH_READING_SERVER && self->is_legacy) {
        out->fields[out->field_count++] =
            (http_field){STR("MCP-Protocol-Version"), STR("2025-03-26")};
    }
}

/* ---- a resource ------------------------------------------------------------------------------ */

/* The server that we know already, the one that is configured, or else the first. */
static void choose_server(oauth_client *self, uint64_t now_ms)
{
    bay_str configured = self->settings.issuer;
    bay_str known = buf_view(&self->record.issuer);
    bay_str chosen = self->resource.servers[0];
    bool is_named = configured.len == 0;
    for (size_t i = 0; i < self->resource.server_count; i++) {
        bay_str one = self->resource.servers[i];
        is_named = is_named || str_eq(one, configured);
        if (str_eq(one, configured.len > 0 ? configured : known)) {
            chosen = one;
        }
    }
    if (!is_named) {
        oauth_fail(self, now_ms, BAY_ERR_DENIED,
                   "the server's authorization server is \"%.*s\", not the configured issuer "
                   "\"%.*s\"",
                   BAY_STR(str_head(chosen, 60)), BAY_STR(str_head(configured, 60)));
        return;
    }
    bool is_bound = self->settings.identity.id.len > 0 && known.len > 0 && configured.len == 0 &&
                    !str_eq(known, chosen);
    if (is_bound) {
        oauth_fail(self, now_ms, BAY_ERR_DENIED,
                   "the client id was used at the issuer \"%.*s\", and the server now names "
                   "\"%.*s\": configure the issuer to which it belongs",
                   BAY_STR(str_head(known, 60)), BAY_STR(str_head(chosen, 60)));
        return;
    }
    oauth_server_begin(self, chosen, now_ms);
}

/* No metadata of the resource anywhere. */
static void begin_legacy(oauth_client *self, uint64_t now_ms)
{
    if (self->settings.issuer.len > 0) {
        oauth_server_begin(self, self->settings.issuer, now_ms);
        return;
    }
    if (self->settings.is_modern_only) {
        oauth_fail(self, now_ms, BAY_ERR_UNSUPPORTED,
                   "the server asks for authorization and publishes no metadata: configure the "
                   "issuer");
        return;
    }
    self->is_legacy = true;
    oauth_server_begin(self, oauth_url_origin(self->settings.url), now_ms);
}

static void resource_answered(oauth_client *self, int status, bay_str body, uint64_t now_ms)
{
    bay_diag diag = {0};
    if (status >= 400 && status < 500) {
        self->candidate++;
        if (self->candidate < self->candidates.count) {
            return;
        }
        if (self->pointer.len > 0) {
            oauth_fail(self, now_ms, BAY_ERR_DENIED,
                       "the metadata that the server's challenge names is not there (HTTP status "
                       "%d)",
                       status);
        } else {
            begin_legacy(self, now_ms);
        }
        return;
    }
    if (status != 200) {
        oauth_fail(self, now_ms, status >= 500 ? BAY_ERR_CONNECT : BAY_ERR_PROTOCOL,
                   "the server's metadata cannot be read: HTTP status %d", status);
        return;
    }
    bay_err err = oauth_resource_read(body, self->settings.url, &self->resource_memory,
                                      &self->resource, &diag);
    if (err != BAY_OK) {
        diag_set(&diag, err, "%s", err == BAY_ERR_NOMEM ? bay_err_text(err) : diag.text);
        oauth_fail_with(self, now_ms, &diag);
        return;
    }
    self->has_resource = true;
    choose_server(self, now_ms);
}

/* ---- a server -------------------------------------------------------------------------------- */

static void assume_server(oauth_client *self, uint64_t now_ms)
{
    bay_err err = oauth_server_assume(self->server.issuer, &self->server_memory, &self->server);
    if (oauth_went(self, now_ms, err)) {
        self->has_server = true;
        self->server_until_ms = now_ms + OAUTH_CACHE_MS;
        oauth_server_known(self, now_ms);
    }
}

static void server_answered(oauth_client *self, int status, bay_str body, uint64_t now_ms)
{
    bay_diag diag = {0};
    bool is_idp = self->phase == OAUTH_READING_IDP;
    bay_str issuer = is_idp ? self->settings.idp_issuer : self->server.issuer;
    bool is_legacy = self->is_legacy && !is_idp;
    if (status >= 400 && status < 500) {
        if (++self->candidate < self->candidates.count) {
            return;
        }
        if (is_legacy) {
            assume_server(self, now_ms);
        } else {
            oauth_fail(self, now_ms, BAY_ERR_DENIED, "the issuer \"%.*s\" publishes no metadata",
                       BAY_STR(str_head(issuer, 100)));
        }
        return;
    }
    if (status != 200) {
        oauth_fail(self, now_ms, status >= 500 ? BAY_ERR_CONNECT : BAY_ERR_PROTOCOL,
                   "the metadata of \"%.*s\" cannot be read: HTTP status %d",
                   BAY_STR(str_head(issuer, 100)), status);
        return;
    }
    bay_err err = oauth_server_read(body, issuer, is_legacy, self->may_be_loopback,
                                    is_idp ? &self->idp_memory : &self->server_memory,
                                    is_idp ? &self->idp : &self->server, &diag);
    if (err != BAY_OK) {
        diag_set(&diag, err, "%s", err == BAY_ERR_NOMEM ? bay_err_text(err) : diag.text);
        oauth_fail_with(self, now_ms, &diag);
        return;
    }
    if (is_idp) {
        self->has_idp = true;
        oauth_exchange_begin(self, now_ms);
        return;
    }
    self->has_server = true;
    self->server_until_ms = now_ms + OAUTH_CACHE_MS;
    oauth_server_known(self, now_ms);
}

void oauth_discovery_answered(oauth_client *self, int status, bay_str body, uint64_t now_ms)
{
    if (self->phase == OAUTH_READING_RESOURCE) {
        resource_answered(self, status, body, now_ms);
    } else {
        server_answered(self, status, body, now_ms);
    }
}

/* ---- what it was read for -------------------------------------------------------------------- */

/* What is kept of another issuer counts for nothing here. */
static bay_err bind(oauth_client *self)
{
    oauth_record *record = &self->record;
    if (!str_eq(buf_view(&record->issuer), self->server.issuer)) {
        self->is_changed = self->is_changed || record->issuer.len > 0;
        oauth_record_drop_client(record);
        self->generation = 0;
        oauth_text_forget(&self->server_nonce);
        jose_key_free(self->key);
        self->key = NULL;
    }
    record->is_legacy = self->is_legacy;
    return oauth_text_set(&record->issuer, self->server.issuer);
}

/* After a 401 a refresh may do what a new authorization would, without a person: but only if it was
 * not tried for this challenge already. */
static bool may_refresh_instead(const oauth_client *self)
{
    return !self->is_step_up && self->record.refresh.len > 0;
}

void oauth_server_known(oauth_client *self, uint64_t now_ms)
{
    if (!oauth_went(self, now_ms, bind(self))) {
        return;
    }
    if (self->purpose == OAUTH_TO_REVOKE) {
        oauth_set_phase(self, OAUTH_REVOKING);
        return;
    }
    if (self->redirect.len > 0) {
        oauth_attempt_go_on(self, now_ms);
        return;
    }
    if (self->purpose == OAUTH_TO_REFRESH || may_refresh_instead(self)) {
        bool was_told = self->purpose == OAUTH_TO_REFRESH;
        self->purpose = OAUTH_TO_REFRESH;
        if (was_told) {
            oauth_token_begin(self, now_ms);
        } else {
            bay_err err = oauth_text_set(&self->refused, buf_view(&self->record.access));
            if (oauth_went(self, now_ms, err)) {
                oauth_set_phase(self, OAUTH_REREADING);
            }
        }
        return;
    }
    switch (self->settings.grant) {
    case OAUTH_CODE:
    case OAUTH_DEVICE:
        oauth_registration_begin(self, now_ms);
        break;
    case OAUTH_CLIENT:
        oauth_token_begin(self, now_ms);
        break;
    case OAUTH_ASSERTION:
    case OAUTH_EXCHANGE:
    case OAUTH_ID_JAG:
        oauth_set_phase(self, OAUTH_GETTING_SUBJECT);
        break;
    case OAUTH_STORED:
        oauth_fail(self, now_ms, BAY_ERR_DENIED, "nobody has logged in, or the login has expired");
        break;
    }
}

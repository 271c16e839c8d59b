/* Which client we are at the authorization server: registered beforehand, by a metadata document,
 * or dynamically, in this order. Source: mcp 2025-11-25 basic/authorization, Client Registration
 * Approaches; RFC 7591. */
#include "auth/oauth_client_internal.h"
#include "base/err.h"
#include "base/str.h"
#include "wire/header.h"
#include "wire/uri.h"
#include "json/writer.h"

static bool is_preregistered(const oauth_client *self)
{
    return self->settings.identity.id.len > 0;
}

static bool uses_document(const oauth_client *self)
{
    return !is_preregistered(self) && self->server.takes_documents &&
           self->settings.document_url.len > 0;
}

oauth_identity oauth_identity_of(const oauth_client *self)
{
    const oauth_record *record = &self->record;
    if (is_preregistered(self)) {
        return self->settings.identity;
    }
    if (uses_document(self)) {
        return (oauth_identity){
            .id = self->settings.document_url,
            .key = self->settings.identity.key,
            .method = self->settings.identity.key != NULL ? OAUTH_PRIVATE_KEY : OAUTH_NONE,
        };
    }
    return (oauth_identity){
        .id = buf_view(&record->client_id),
        .secret = buf_view(&record->client_secret),
        .key = self->settings.identity.key,
        .method = record->method,
    };
}

/* What was registered at this issuer earlier still does. */
static bool has_registration(const oauth_client *self, uint64_t now_ms)
{
    const oauth_record *record = &self->record;
    bool is_current = record->secret_expires_at_ms == 0 || now_ms < record->secret_expires_at_ms;
    return record->is_registered && record->client_id.len > 0 && is_current &&
           (self->settings.grant != OAUTH_CODE ||
            str_eq(buf_view(&record->redirect_uri), buf_view(&self->redirect_uri)));
}

static void registration_done(oauth_client *self, uint64_t now_ms)
{
    if (self->settings.grant == OAUTH_DEVICE) {
        oauth_device_begin(self, now_ms);
    } else {
        oauth_authorization_begin(self, now_ms);
    }
}

/* A redirect comes to the configured place, or to where the carrier listens. */
static bool needs_listener(oauth_client *self, uint64_t now_ms)
{
    if (self->settings.grant != OAUTH_CODE || self->redirect_uri.len > 0) {
        return false;
    }
    if (self->settings.redirect_uri.len > 0) {
        bay_err err = oauth_text_set(&self->redirect_uri, self->settings.redirect_uri);
        return !oauth_went(self, now_ms, err);
    }
    oauth_set_phase(self, OAUTH_LISTENING);
    return true;
}

/* RFC 8252: a client on the user's machine is native, whatever it listens on. */
static bay_str application_type(bay_str redirect_uri)
{
    bool is_hosted =
        oauth_url_is_usable(redirect_uri, false) && !oauth_url_is_loopback(redirect_uri);
    return is_hosted ? STR("web") : STR("native");
}

static void put_list(json_writer *writer, bay_str name, bay_str first, bay_str second)
{
    json_key(writer, name);
    json_open_array(writer);
    json_put_str(writer, first);
    if (second.len > 0) {
        json_put_str(writer, second);
    }
    json_close_array(writer);
}

/* Without `scope`: a client that is registered for some could not ask for more later. */
static void write_registration(oauth_client *self)
{
    json_writer writer;
    bay_str redirect = buf_view(&self->redirect_uri);
    bool is_device = self->settings.grant == OAUTH_DEVICE;
    bool may_be_public = (self->server.methods & OAUTH_NONE) != 0;
    oauth_text_forget(&self->body);
    json_writer_init(&writer, &self->body);
    json_open_object(&writer);
    json_key_lit(&writer, "client_name");
    json_put_str(&writer, self->settings.name.len > 0 ? self->settings.name : STR("patchbay"));
    json_key_lit(&writer, "application_type"); /* mcp 2026-07-28, SEP-837 */
    json_put_str(&writer, is_device ? STR("native") : application_type(redirect));
    if (!is_device) {
        put_list(&writer, STR("redirect_uris"), redirect, (bay_str){"", 0});
        put_list(&writer, STR("response_types"), STR("code"), (bay_str){"", 0});
    }
    put_list(&writer, STR("grant_types"),
             is_device ? STR("urn:ietf:params:oauth:grant-type:device_code")
                       : STR("authorization_code"),
             STR("refresh_token"));
    json_key_lit(&writer, "token_endpoint_auth_method");
    json_put_str(&writer, may_be_public                               ? STR("none")
                          : (self->server.methods & OAUTH_BASIC) != 0 ? STR("client_secret_basic")
                                                                      : STR("client_secret_post"));
    json_close_object(&writer);
}

/* Before anything is registered there or shown to a person. */
static bool server_can_authorize(oauth_client *self, uint64_t now_ms)
{
    const oauth_server *server = &self->server;
    const char *why = server->authorization_endpoint.len == 0 ? "has no authorization_endpoint"
                      : !server->has_code                     ? "does not offer the code flow"
                      : !oauth_server_grants(server, STR("authorization_code"))
                          ? "does not grant authorization codes"
                      : server->has_pushed_only
                          ? "wants pushed authorization requests, which are not supported"
                      /* mcp 2025-11-25: without it the client must refuse to go on; of OpenID
                         Connect's metadata the list is no part, and a login has its nonce */
                      : !server->has_s256 && !self->settings.is_login
                          ? "does not say that it supports PKCE with S256"
                          : NULL;
    if (why != NULL) {
        oauth_fail(self, now_ms, BAY_ERR_UNSUPPORTED, "the authorization server \"%.*s\" %s",
                   BAY_STR(str_head(server->issuer, 80)), why);
    }
    return why == NULL;
}

void oauth_registration_begin(oauth_client *self, uint64_t now_ms)
{
    if (self->settings.grant == OAUTH_CODE && !server_can_authorize(self, now_ms)) {
        return;
    }
    if (needs_listener(self, now_ms) || !oauth_went(self, now_ms, oauth_scope_choose(self))) {
        return;
    }
    if (is_preregistered(self) || uses_document(self) || has_registration(self, now_ms)) {
        registration_done(self, now_ms);
        return;
    }
    if (self->server.registration_endpoint.len == 0) {
        oauth_fail(self, now_ms, BAY_ERR_DENIED,
                   "the authorization server \"%.*s\" registers no clients: register one there by "
                   "hand and give its client id",
                   BAY_STR(str_head(self->server.issuer, 80)));
        return;
    }
    oauth_set_phase(self, OAUTH_REGISTERING);
    write_registration(self);
}

void oauth_registration_action(oauth_client *self, oauth_action *out)
{
    out->need = OAUTH_REQUEST;
    out->method = STR("POST");
    out->url = self->server.registration_endpoint;
    out->fields[out->field_count++] = (http_field){STR("Content-Type"), STR("application/json")};
    out->fields[out->field_count++] = (http_field){STR("Accept"), STR("application/json")};
    out->body = buf_view(&self->body);
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* BAY_ERR_DENIED with `diag`: a client that we cannot be. */
static bay_err take_client(oauth_client *self, json_val root, arena *memory, bay_diag *diag)
{
    oauth_record *record = &self->record;
    bay_str id = {"", 0}, secret = {"", 0};
    json_val given = json_get(root, STR("client_secret"));
    json_val method = json_get(root, STR("token_endpoint_auth_method"));
    uint64_t expires_s = 0;
    if (json_str(json_get(root, STR("client_id")), memory, &id) != BAY_OK || id.len == 0) {
        return diag_set(diag, BAY_ERR_DENIED, "the registration has no client_id");
    }
    if (json_is(given, JSON_STRING)) {
        bay_err err = json_str(given, memory, &secret);
        if (err != BAY_OK) {
            return err;
        }
    }
    if (json_uint64(json_get(root, STR("client_secret_expires_at")), &expires_s) != BAY_OK) {
        expires_s = 0;
    }
    bay_str name = {"", 0};
    unsigned said = json_str_plain(method, &name) ? oauth_method_find(name) : 0;
    if (json_is(method, JSON_STRING) && said == 0) {
        return diag_set(diag, BAY_ERR_DENIED,
                        "the registration demands a client authentication that is not supported");
    }
    if ((said & (OAUTH_BASIC | OAUTH_POST)) != 0 && secret.len == 0) {
        return diag_set(diag, BAY_ERR_DENIED,
                        "the registration demands a client secret and gives none");
    }
    if (said == OAUTH_PRIVATE_KEY && self->settings.identity.key == NULL) {
        return diag_set(diag, BAY_ERR_DENIED,
                        "the registration demands private_key_jwt, and there is no key");
    }
    oauth_record_drop_client(record);
    self->generation = 0;
    bay_err err = oauth_text_set(&record->client_id, id);
    if (err == BAY_OK) {
        err = oauth_text_set(&record->client_secret, secret);
    }
    if (err == BAY_OK) {
        err = oauth_text_set(&record->redirect_uri, buf_view(&self->redirect_uri));
    }
    record->method = said;
    record->is_registered = true;
    record->secret_expires_at_ms = secret.len > 0 ? expires_s * 1000 : 0;
    return err;
}

/* The server may change what is registered; a redirect that it did not keep would be refused. */
static bay_err check_redirects(const oauth_client *self, json_val root, bay_diag *diag)
{
    json_val list = json_get(root, STR("redirect_uris"));
    if (self->settings.grant == OAUTH_DEVICE || !json_is(list, JSON_ARRAY)) {
        return BAY_OK;
    }
    for (json_iter it = json_iter_of(list); json_next(&it);) {
        if (json_str_eq(it.value, buf_view(&self->redirect_uri))) {
            return BAY_OK;
        }
    }
    return diag_set(diag, BAY_ERR_DENIED,
                    "the registration has other redirect URIs than were asked for");
}

void oauth_registration_answered(oauth_client *self, int status, bay_str body, uint64_t now_ms)
{
    static const json_limits limits = {OAUTH_METADATA_BYTES, 16, 1 << 12};
    arena memory;
    json_doc doc;
    bay_diag diag = {0};
    if (status != 200 && status != 201) {
        oauth_error error;
        oauth_error_read(self, body, &error);
        oauth_fail_remote(self, now_ms, "the registration", status, &error);
        return;
    }
    arena_init(&memory, OAUTH_MEMORY_BYTES);
    bay_err err = json_parse(&doc, body, &limits, &memory, NULL);
    if (err == BAY_OK) {
        err = json_check_duplicates(json_root(&doc), NULL);
    }
    if (err != BAY_OK && err != BAY_ERR_NOMEM) {
        err = diag_set(&diag, BAY_ERR_DENIED, "the registration is not a JSON object");
    }
    if (err == BAY_OK) {
        err = check_redirects(self, json_root(&doc), &diag);
    }
    if (err == BAY_OK) {
        err = take_client(self, json_root(&doc), &memory, &diag);
    }
    arena_fini(&memory);
    if (err != BAY_OK) {
        oauth_fail(self, now_ms, err, "%s", diag.text[0] != '\0' ? diag.text : bay_err_text(err));
        return;
    }
    self->is_changed = true;
    registration_done(self, now_ms);
}

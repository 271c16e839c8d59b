#include "oauth/proxy_client.h"

#include "auth/oauth_form.h"
#include "base/check.h"
#include "base/err.h"
#include "base/str.h"
#include "wire/chars.h"
#include "wire/header.h"
#include "wire/uri.h"
#include "json/writer.h"

enum { DEPTH = 8, VALUES = 1 << 10 };

static const bay_str id_prefix = STR_INIT("pbc_");
static const bay_str sealed_for = STR_INIT("patchbay client");
static const bay_str uri_names[OAUTH_PROXY_REDIRECTS] = {
    STR_INIT("0"), STR_INIT("1"), STR_INIT("2"), STR_INIT("3"),
    STR_INIT("4"), STR_INIT("5"), STR_INIT("6"), STR_INIT("7")};

/* ---- redirects ------------------------------------------------------------------------------- */

bool oauth_proxy_scheme_is_fine(bay_str scheme)
{
    static const bay_str bad[] = {
        STR_INIT("http"),   STR_INIT("https"),       STR_INIT("javascript"), STR_INIT("data"),
        STR_INIT("file"),   STR_INIT("vbscript"),    STR_INIT("blob"),       STR_INIT("about"),
        STR_INIT("mailto"), STR_INIT("view-source"), STR_INIT("ws"),         STR_INIT("wss"),
        STR_INIT("ftp"),    STR_INIT("filesystem"),  STR_INIT("intent")};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (str_eq_nocase(scheme, bad[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < scheme.len; i++) { /* RFC 3986 section 3.1, in lower case */
        char c = scheme.at[i];
        bool is_letter = c >= 'a' && c <= 'z';
        bool is_other = (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
        if (!is_letter && (i == 0 || !is_other)) {
            return false;
        }
    }
    return scheme.len > 0;
}

const char *oauth_proxy_redirect_fault(bay_str text, const oauth_proxy_schemes *schemes)
{
    uri parts;
    if (text.len == 0 || text.len > OAUTH_PROXY_REDIRECT_BYTES) {
        return "a redirect URI is empty or too long";
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] <= ' ' || text.at[i] > '~' || text.at[i] == '*' || text.at[i] == '\\') {
            return "a redirect URI has characters that it must not have";
        }
    }
    if (uri_parse(&parts, text) != BAY_OK || parts.scheme.len == 0 || parts.has_fragment ||
        parts.has_userinfo) {
        return "a redirect URI is no absolute URI, or has a fragment or a user name";
    }
    if (str_eq(parts.scheme, STR("https"))) {
        return parts.host.len > 0 ? NULL : "a redirect URI has no host";
    }
    if (str_eq(parts.scheme, STR("http"))) {
        return header_host_is_loopback(parts.host)
                   ? NULL
                   : "a redirect URI is http, and not on this machine";
    }
    for (size_t i = 0; i < schemes->count; i++) {
        if (str_eq(schemes->at[i], parts.scheme) && oauth_proxy_scheme_is_fine(parts.scheme)) {
            return NULL;
        }
    }
    return "a redirect URI has a scheme that is not allowed here";
}

/* On this machine, by http. */
static bool is_local(const uri *self)
{
    return str_eq(self->scheme, STR("http")) && header_host_is_loopback(self->host) &&
           !self->has_userinfo && !self->has_fragment;
}

bool oauth_proxy_redirect_is(bay_str registered, bay_str asked)
{
    uri one, other;
    if (str_eq(registered, asked)) {
        return true;
    }
    return uri_parse(&one, registered) == BAY_OK && uri_parse(&other, asked) == BAY_OK &&
           is_local(&one) && is_local(&other) && str_eq(one.host, other.host) &&
           str_eq(one.path, other.path) && one.has_query == other.has_query &&
           str_eq(one.query, other.query);
}

bool oauth_proxy_client_has(const oauth_proxy_client *self, bay_str redirect_uri)
{
    for (size_t i = 0; i < self->redirect_count; i++) {
        if (oauth_proxy_redirect_is(self->redirects[i], redirect_uri)) {
            return true;
        }
    }
    return false;
}

/* ---- registration ---------------------------------------------------------------------------- */

static bay_err refuse(const char *code, const char *why, const char **out_error, bay_diag *diag)
{
    *out_error = code;
    return diag_set(diag, BAY_ERR_DENIED, "%s", why);
}

static bay_err read_redirects(json_val root, const oauth_proxy_schemes *schemes, arena *memory,
                              oauth_proxy_client *out, const char **out_error, bay_diag *diag)
{
    static const char code[] = "invalid_redirect_uri";
    json_val all = json_get(root, STR("redirect_uris"));
    if (!json_is(all, JSON_ARRAY) || json_count(all) == 0 ||
        json_count(all) > OAUTH_PROXY_REDIRECTS) {
        return refuse(code, "redirect_uris must be a list of 1 to 8", out_error, diag);
    }
    for (json_iter it = json_iter_of(all); json_next(&it);) {
        bay_str text = {"", 0};
        bay_err err = json_str(it.value, memory, &text);
        if (err == BAY_ERR_NOMEM) {
            return err;
        }
        const char *why =
            err == BAY_OK ? oauth_proxy_redirect_fault(text, schemes) : "a redirect URI is no text";
        if (why != NULL) {
            return refuse(code, why, out_error, diag);
        }
        out->redirects[out->redirect_count++] = text;
    }
    return BAY_OK;
}

/* All that it may be: a public client with codes. What it asks for besides is left out, and the
 * answer says so (RFC 7591 section 3.2.1). */
static bay_err read_client(json_val root, const oauth_proxy_schemes *schemes, arena *memory,
                           oauth_proxy_client *out, const char **out_error, bay_diag *diag)
{
    json_val name = json_get(root, STR("client_name"));
    *out = (oauth_proxy_client){.name = {"", 0}};
    if (json_is(name, JSON_STRING)) {
        bay_err err = json_str(name, memory, &out->name);
        if (err == BAY_ERR_NOMEM) {
            return err;
        }
        if (err != BAY_OK || out->name.len > OAUTH_PROXY_NAME_BYTES) {
            return refuse("invalid_client_metadata", "client_name is too long, or no text",
                          out_error, diag);
        }
        for (size_t i = 0; i < out->name.len; i++) {
            if ((unsigned char)out->name.at[i] < ' ' || out->name.at[i] == 0x7f) {
                return refuse("invalid_client_metadata", "client_name has control characters",
                              out_error, diag);
            }
        }
    }
    return read_redirects(root, schemes, memory, out, out_error, diag);
}

static bay_err write_id(const seal_ring *ring, const oauth_proxy_client *client, arena *memory,
                        bay_str *out, const char **out_error, bay_diag *diag)
{
    buf plain, id;
    buf_init(&plain, OAUTH_PROXY_CLIENT_BYTES);
    buf_init(&id, OAUTH_PROXY_CLIENT_ID_BYTES);
    oauth_form_put(&plain, 0, STR("n"), client->name);
    for (size_t i = 0; i < client->redirect_count; i++) {
        oauth_form_put(&plain, 0, uri_names[i], client->redirects[i]);
    }
    buf_str(&id, id_prefix);
    bay_err err = plain.err;
    if (err == BAY_OK) {
        err = seal_value(ring, buf_view(&plain), sealed_for, 0, &id);
    }
    if (err == BAY_OK) {
        err = arena_dup(memory, buf_view(&id), out);
    }
    buf_fini(&plain);
    buf_fini(&id);
    return err == BAY_ERR_LIMIT
               ? refuse("invalid_client_metadata", "name and redirect URIs are too long together",
                        out_error, diag)
               : err;
}

static void put_list(json_writer *writer, bay_str name, const bay_str *at, size_t count)
{
    json_key(writer, name);
    json_open_array(writer);
    for (size_t i = 0; i < count; i++) {
        json_put_str(writer, at[i]);
    }
    json_close_array(writer);
}

static void write_answer(const oauth_proxy_client *client, bay_str id, uint64_t now_ms, buf *out)
{
    static const bay_str grants[] = {STR_INIT("authorization_code"), STR_INIT("refresh_token")};
    static const bay_str types[] = {STR_INIT("code")};
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_key_lit(&writer, "client_id");
    json_put_str(&writer, id);
    json_key_lit(&writer, "client_id_issued_at");
    json_put_uint(&writer, now_ms / 1000);
    if (client->name.len > 0) {
        json_key_lit(&writer, "client_name");
        json_put_str(&writer, client->name);
    }
    put_list(&writer, STR("redirect_uris"), client->redirects, client->redirect_count);
    put_list(&writer, STR("grant_types"), grants, ARRAY_LEN(grants));
    put_list(&writer, STR("response_types"), types, ARRAY_LEN(types));
    json_key_lit(&writer, "token_endpoint_auth_method");
    json_put_str(&writer, STR("none"));
    json_close_object(&writer);
}

bay_err oauth_proxy_register(const seal_ring *ring, bay_str body,
                             const oauth_proxy_schemes *schemes, uint64_t now_ms, arena *memory,
                             buf *out, const char **out_error, bay_diag *diag)
{
    static const json_limits limits = {OAUTH_PROXY_BODY_BYTES, DEPTH, VALUES};
    json_doc doc;
    oauth_proxy_client client;
    bay_str id = {"", 0};
    bay_err err = json_parse(&doc, body, &limits, memory, NULL);
    if (err == BAY_OK) {
        err = json_check_duplicates(json_root(&doc), NULL);
    }
    if (err == BAY_ERR_NOMEM) {
        return err;
    }
    if (err != BAY_OK || !json_is(json_root(&doc), JSON_OBJECT)) {
        return refuse("invalid_client_metadata", "the body is no JSON object that can be read",
                      out_error, diag);
    }
    err = read_client(json_root(&doc), schemes, memory, &client, out_error, diag);
    if (err == BAY_OK) {
        err = write_id(ring, &client, memory, &id, out_error, diag);
    }
    if (err == BAY_OK) {
        write_answer(&client, id, now_ms, out);
        err = out->err;
    }
    return err;
}

bay_err oauth_proxy_client_read(const seal_ring *ring, bay_str client_id, uint64_t now_ms,
                                arena *memory, oauth_proxy_client *out)
{
    oauth_form form;
    buf plain;
    if (!str_starts(client_id, id_prefix) || client_id.len > OAUTH_PROXY_CLIENT_ID_BYTES) {
        return BAY_ERR_NOT_FOUND;
    }
    buf_init(&plain, OAUTH_PROXY_CLIENT_BYTES);
    bay_err err = seal_open(ring, str_from(client_id, id_prefix.len), sealed_for, now_ms, &plain);
    if (err == BAY_OK) {
        err = oauth_form_read(buf_view(&plain), memory, &form);
    }
    buf_fini(&plain);
    if (err != BAY_OK) {
        return err == BAY_ERR_NOMEM ? err : BAY_ERR_NOT_FOUND;
    }
    *out = (oauth_proxy_client){.name = oauth_form_get(&form, STR("n"))};
    for (size_t i = 0; i < OAUTH_PROXY_REDIRECTS; i++) {
        bay_str text = oauth_form_get(&form, uri_names[i]);
        if (text.at != NULL) {
            out->redirects[out->redirect_count++] = text;
        }
    }
    return BAY_OK;
}

/* ---- documents ------------------------------------------------------------------------------- */

/* With a path, and written in one way only: whoever compares it compares bytes. */
bool oauth_proxy_client_is_document(bay_str client_id)
{
    uri parts;
    bool is_web = str_starts(client_id, STR("https://")) || str_starts(client_id, STR("http://"));
    if (!is_web || client_id.len > OAUTH_PROXY_REDIRECT_BYTES ||
        uri_parse(&parts, client_id) != BAY_OK || parts.host.len == 0 || parts.has_userinfo ||
        parts.has_fragment || parts.has_query || parts.path.len < 2) {
        return false;
    }
    for (bay_str rest = parts.path; rest.len > 0;) {
        rest = str_from(rest, 1); /* its slash */
        bay_str one = str_head(rest, str_find(rest, '/'));
        rest = str_from(rest, one.len);
        if (str_eq(one, STR(".")) || str_eq(one, STR("..")) || str_find(one, '%') < one.len) {
            return false;
        }
    }
    return true;
}

bay_err oauth_proxy_document_read(bay_str client_id, json_val root,
                                  const oauth_proxy_schemes *schemes, arena *memory,
                                  oauth_proxy_client *out, bay_diag *diag)
{
    const char *error = "";
    json_val method = json_get(root, STR("token_endpoint_auth_method"));
    if (!json_str_eq(json_get(root, STR("client_id")), client_id)) {
        return diag_set(diag, BAY_ERR_DENIED, "the document describes another client");
    }
    if (!json_is(json_get(root, STR("client_secret")), JSON_MISSING)) {
        return diag_set(diag, BAY_ERR_DENIED,
                        "the document has a secret, which everybody can read");
    }
    if (!json_is(method, JSON_MISSING) && !json_str_eq(method, STR("none"))) {
        return diag_set(diag, BAY_ERR_DENIED,
                        "the document wants a client authentication other than none");
    }
    return read_client(root, schemes, memory, out, &error, diag);
}

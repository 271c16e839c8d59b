#include "auth/oauth_metadata.h"

#include "auth/principal.h"
#include "base/err.h"
#include "base/str.h"
#include "wire/header.h"
#include "wire/uri.h"
#include "json/json.h"

static const json_limits document_limits = {OAUTH_METADATA_BYTES, 16, 1 << 13};

/* ---- methods and scopes ---------------------------------------------------------------------- */

static const struct {
    bay_str name;
    oauth_method method;
} methods[] = {
    {STR_INIT("none"), OAUTH_NONE},
    {STR_INIT("client_secret_basic"), OAUTH_BASIC},
    {STR_INIT("client_secret_post"), OAUTH_POST},
    {STR_INIT("private_key_jwt"), OAUTH_PRIVATE_KEY},
};

unsigned oauth_method_find(bay_str name)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (str_eq(name, methods[i].name)) {
            return methods[i].method;
        }
    }
    return 0;
}

/* The next scope of a list; `list` is what follows it. */
static bay_str next_scope(bay_str *list)
{
    while (list->len > 0 && list->at[0] == ' ') {
        *list = str_from(*list, 1);
    }
    bay_str scope = str_head(*list, str_find(*list, ' '));
    *list = str_from(*list, scope.len);
    return scope;
}

void oauth_scopes_join(buf *out, bay_str more)
{
    for (bay_str scope; (scope = next_scope(&more)).len > 0;) {
        if (out->err == BAY_OK && scopes_have(buf_view(out), scope)) {
            continue;
        }
        if (out->len > 0) {
            buf_char(out, ' ');
        }
        buf_str(out, scope);
    }
}

bool oauth_scopes_cover(bay_str scopes, bay_str wanted)
{
    for (bay_str scope; (scope = next_scope(&wanted)).len > 0;) {
        if (!scopes_have(scopes, scope)) {
            return false;
        }
    }
    return true;
}

/* ---- URLs ------------------------------------------------------------------------------------ */

static bool url_read(bay_str url, uri *out)
{
    return url.len > 0 && url.len <= OAUTH_URL_MOST && uri_parse(out, url) == BAY_OK &&
           out->has_authority && out->host.len > 0 && !out->has_userinfo && !out->has_fragment &&
           (str_eq_nocase(out->scheme, STR("https")) || str_eq_nocase(out->scheme, STR("http")));
}

bool oauth_url_is_loopback(bay_str url)
{
    uri parts;
    return url_read(url, &parts) && header_host_is_loopback(parts.host);
}

bool oauth_url_is_usable(bay_str url, bool may_be_loopback)
{
    uri parts;
    return url_read(url, &parts) && (str_eq_nocase(parts.scheme, STR("https")) ||
                                     (may_be_loopback && header_host_is_loopback(parts.host)));
}

bay_str oauth_url_origin(bay_str url)
{
    uri parts;
    if (uri_parse(&parts, url) != BAY_OK || !parts.has_authority) {
        return (bay_str){"", 0};
    }
    size_t end = (size_t)(parts.authority.at - url.at) + parts.authority.len;
    return str_head(url, end);
}

/* Origin, then `middle`, then what is behind the origin. */
static bay_err candidate(oauth_candidates *self, arena *memory, bay_str origin, bay_str middle,
                         bay_str tail)
{
    char *at = arena_alloc(memory, origin.len + middle.len + tail.len + 1);
    if (at == NULL) {
        return BAY_ERR_NOMEM;
    }
    memcpy(at, origin.at, origin.len);
    memcpy(at + origin.len, middle.at, middle.len);
    if (tail.len > 0) {
        memcpy(at + origin.len + middle.len, tail.at, tail.len);
    }
    self->urls[self->count++] = (bay_str){at, origin.len + middle.len + tail.len};
    return BAY_OK;
}

bay_err oauth_resource_urls(bay_str resource_url, arena *memory, oauth_candidates *out)
{
    uri parts;
    const bay_str well_known = STR("/.well-known/oauth-protected-resource");
    *out = (oauth_candidates){0};
    if (!url_read(resource_url, &parts)) {
        return BAY_ERR_SYNTAX;
    }
    bay_str origin = oauth_url_origin(resource_url);
    bay_str tail = str_from(resource_url, origin.len);
    if (parts.path.len == 1 && tail.len > 0 && tail.at[0] == '/') {
        tail = str_from(tail, 1); /* a lone slash behind the host */
    }
    bay_err err = BAY_OK;
    if (tail.len > 0) {
        err = candidate(out, memory, origin, well_known, tail);
    }
    return err == BAY_OK ? candidate(out, memory, origin, well_known, (bay_str){"", 0}) : err;
}

bay_err oauth_server_urls(bay_str issuer, arena *memory, oauth_candidates *out)
{
    uri parts;
    const bay_str oauth = STR("/.well-known/oauth-authorization-server");
    const bay_str openid = STR("/.well-known/openid-configuration");
    *out = (oauth_candidates){0};
    if (!url_read(issuer, &parts) || parts.has_query) {
        return BAY_ERR_SYNTAX;
    }
    bay_str origin = oauth_url_origin(issuer);
    bay_str path = parts.path;
    if (path.len > 0 && path.at[path.len - 1] == '/') {
        path = str_head(path, path.len - 1);
    }
    bay_err err = candidate(out, memory, origin, oauth, path);
    if (err == BAY_OK) {
        err = candidate(out, memory, origin, openid, path);
    }
    if (err == BAY_OK && path.len > 0) {
        err = candidate(out, memory, str_head(issuer, origin.len + path.len), openid,
                        (bay_str){"", 0});
    }
    return err;
}

/* ---- members --------------------------------------------------------------------------------- */

static bay_err document_read(bay_str text, json_doc *doc, arena *memory, const char *what,
                             bay_diag *diag)
{
    bay_err err = json_parse(doc, text, &document_limits, memory, NULL);
    if (err == BAY_OK && !json_is(json_root(doc), JSON_OBJECT)) {
        err = BAY_ERR_TYPE;
    }
    if (err == BAY_OK) {
        err = json_check_duplicates(json_root(doc), NULL);
    }
    if (err == BAY_OK || err == BAY_ERR_NOMEM) {
        return err;
    }
    return diag_set(diag, BAY_ERR_SYNTAX, "the metadata of %s is not a JSON object: %s", what,
                    bay_err_text(err));
}

/* A text without control characters; "" if it is absent or something else. */
static bay_err member_text(json_val object, bay_str name, arena *memory, bay_str *out)
{
    json_val value = json_get(object, name);
    bay_str text = {"", 0};
    if (json_is(value, JSON_STRING)) {
        bay_err err = json_str(value, memory, &text);
        if (err == BAY_ERR_NOMEM) {
            return err;
        }
        text = err == BAY_OK ? text : (bay_str){"", 0};
    }
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.at[i] < 0x20 || text.at[i] == 0x7f) {
            text = (bay_str){"", 0};
        }
    }
    return arena_dup(memory, text, out);
}

/* A list of words, separated by spaces; "" if it is absent. Items that are no words are skipped. */
static bay_err member_words(json_val object, bay_str name, arena *memory, bay_str *out)
{
    buf words;
    bay_err err = BAY_OK;
    buf_init(&words, OAUTH_SCOPE_BYTES);
    for (json_iter it = json_iter_of(json_get(object, name)); err == BAY_OK && json_next(&it);) {
        bay_str word = {"", 0};
        bool is_word = json_str_plain(it.value, &word) && word.len > 0;
        for (size_t i = 0; is_word && i < word.len; i++) { /* RFC 6749 section 3.3 */
            is_word = (unsigned char)word.at[i] > 0x20 && (unsigned char)word.at[i] < 0x7f &&
                      word.at[i] != '"' && word.at[i] != '\\';
        }
        if (is_word && words.len + word.len + 1 < OAUTH_SCOPE_BYTES) {
            oauth_scopes_join(&words, word);
        }
        err = words.err;
    }
    if (err == BAY_OK) {
        err = arena_dup(memory, buf_view(&words), out);
    }
    buf_fini(&words);
    return err;
}

/* ---- of a resource --------------------------------------------------------------------------- */

/* What a server might read otherwise than we do: dot segments, and separators in disguise. */
static bool path_is_plain(bay_str path)
{
    for (size_t i = 0; i < path.len; i++) {
        bay_str rest = str_from(path, i);
        bool is_dots = rest.at[0] == '.' && (i == 0 || path.at[i - 1] == '/') &&
                       (rest.len == 1 || rest.at[1] == '/' ||
                        (rest.at[1] == '.' && (rest.len == 2 || rest.at[2] == '/')));
        if (is_dots || rest.at[0] == '\\' || str_eq_nocase(str_head(rest, 3), STR("%2f")) ||
            str_eq_nocase(str_head(rest, 3), STR("%5c")) ||
            str_eq_nocase(str_head(rest, 3), STR("%2e"))) {
            return false;
        }
    }
    return true;
}

/* mcp 2025-11-25 basic/authorization, and RFC 9728 section 3.3: another resource's metadata is not
 * used. */
bool oauth_resource_covers(bay_str resource, bay_str url)
{
    uri wide, narrow;
    if (str_eq(resource, url)) {
        return true;
    }
    if (!url_read(resource, &wide) || !url_read(url, &narrow) || !uri_same_origin(&wide, &narrow) ||
        wide.has_query || !path_is_plain(wide.path) || !path_is_plain(narrow.path)) {
        return false;
    }
    bay_str path = wide.path;
    if (path.len > 0 && path.at[path.len - 1] == '/') {
        path = str_head(path, path.len - 1);
    }
    bay_str behind = str_from(narrow.path, path.len);
    return str_starts(narrow.path, path) && (behind.len == 0 || behind.at[0] == '/');
}

static bay_err read_servers(json_val list, bool may_be_loopback, arena *memory, oauth_resource *out)
{
    for (json_iter it = json_iter_of(list); json_next(&it);) {
        bay_str url = {"", 0};
        if (!json_is(it.value, JSON_STRING) || out->server_count == OAUTH_SERVERS) {
            continue;
        }
        bay_err err = json_str(it.value, memory, &url);
        if (err == BAY_OK && oauth_url_is_usable(url, may_be_loopback)) {
            err = arena_dup(memory, url, &out->servers[out->server_count]);
            out->server_count += err == BAY_OK;
        }
        if (err == BAY_ERR_NOMEM) {
            return err;
        }
    }
    return BAY_OK;
}

bay_err oauth_resource_read(bay_str text, bay_str url, arena *memory, oauth_resource *out,
                            bay_diag *diag)
{
    json_doc doc;
    oauth_resource made = {0};
    bay_err err = document_read(text, &doc, memory, "the resource", diag);
    if (err != BAY_OK) {
        return err;
    }
    json_val root = json_root(&doc);
    err = member_text(root, STR("resource"), memory, &made.resource);
    if (err == BAY_OK) {
        err = member_words(root, STR("scopes_supported"), memory, &made.scopes);
    }
    if (err == BAY_OK) {
        err = read_servers(json_get(root, STR("authorization_servers")), oauth_url_is_loopback(url),
                           memory, &made);
    }
    if (err != BAY_OK) {
        return err;
    }
    made.is_dpop_required = json_true(json_get(root, STR("dpop_bound_access_tokens_required")));
    if (!oauth_resource_covers(made.resource, url)) {
        return diag_set(
            diag, BAY_ERR_DENIED,
            "the metadata is of the resource \"%.*s\", not of the server that was called",
            BAY_STR(str_head(made.resource, 100)));
    }
    if (made.server_count == 0) {
        return diag_set(diag, BAY_ERR_DENIED,
                        "the resource's metadata names no usable authorization server");
    }
    *out = made;
    return BAY_OK;
}

/* ---- of an authorization server -------------------------------------------------------------- */

bool oauth_server_grants(const oauth_server *self, bay_str grant)
{
    if (self->is_assumed || self->grants.len > 0) {
        return self->is_assumed || scopes_have(self->grants, grant);
    }
    return str_eq(grant, STR("authorization_code"));
}

static unsigned methods_of(bay_str names)
{
    unsigned found = 0;
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        found |= scopes_have(names, methods[i].name) ? (unsigned)methods[i].method : 0;
    }
    return found;
}

static bay_err read_endpoints(json_val root, bool may_be_loopback, arena *memory, oauth_server *out,
                              bay_diag *diag)
{
    const struct {
        bay_str name;
        bay_str *place;
    } endpoints[] = {
        {STR("authorization_endpoint"), &out->authorization_endpoint},
        {STR("token_endpoint"), &out->token_endpoint},
        {STR("registration_endpoint"), &out->registration_endpoint},
        {STR("device_authorization_endpoint"), &out->device_endpoint},
        {STR("revocation_endpoint"), &out->revocation_endpoint},
    };
    for (size_t i = 0; i < sizeof(endpoints) / sizeof(endpoints[0]); i++) {
        bay_err err = member_text(root, endpoints[i].name, memory, endpoints[i].place);
        if (err != BAY_OK) {
            return err;
        }
        bool is_absent = json_is(json_get(root, endpoints[i].name), JSON_MISSING);
        if (!is_absent && !oauth_url_is_usable(*endpoints[i].place, may_be_loopback)) {
            return diag_set(diag, BAY_ERR_DENIED,
                            "the authorization server's %.*s is not a usable URL (https, no user "
                            "information, no fragment)",
                            BAY_STR(endpoints[i].name));
        }
    }
    return BAY_OK;
}

static bay_err read_abilities(json_val root, arena *memory, oauth_server *out)
{
    bay_str responses = {"", 0}, challenges = {"", 0}, proofs = {"", 0}, names = {"", 0};
    const struct {
        bay_str name;
        bay_str *place;
    } lists[] = {
        {STR("response_types_supported"), &responses},
        {STR("code_challenge_methods_supported"), &challenges},
        {STR("dpop_signing_alg_values_supported"), &proofs},
        {STR("token_endpoint_auth_methods_supported"), &names},
        {STR("scopes_supported"), &out->scopes},
        {STR("grant_types_supported"), &out->grants},
        {STR("token_endpoint_auth_signing_alg_values_supported"), &out->signing},
    };
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        bay_err err = member_words(root, lists[i].name, memory, lists[i].place);
        if (err != BAY_OK) {
            return err;
        }
    }
    bool says_methods =
        json_is(json_get(root, STR("token_endpoint_auth_methods_supported")), JSON_ARRAY);
    out->methods = says_methods ? methods_of(names) : OAUTH_BASIC; /* RFC 8414 section 2 */
    out->has_code = scopes_have(responses, STR("code"));
    out->has_s256 = scopes_have(challenges, STR("S256"));
    out->has_dpop = scopes_have(proofs, STR("ES256"));
    out->sends_issuer =
        json_true(json_get(root, STR("authorization_response_iss_parameter_supported")));
    out->takes_documents = json_true(json_get(root, STR("client_id_metadata_document_supported")));
    out->has_pushed_only = json_true(json_get(root, STR("require_pushed_authorization_requests")));
    return BAY_OK;
}

static bool issuer_is(bay_str said, bay_str expected, bool is_origin)
{
    uri ours, theirs;
    if (!is_origin) {
        return str_eq(said, expected);
    }
    return url_read(expected, &ours) && url_read(said, &theirs) && uri_same_origin(&ours, &theirs);
}

bay_err oauth_server_read(bay_str text, bay_str issuer, bool is_origin, bool may_be_loopback,
                          arena *memory, oauth_server *out, bay_diag *diag)
{
    json_doc doc;
    oauth_server made = {0};
    bay_err err = document_read(text, &doc, memory, "the authorization server", diag);
    if (err != BAY_OK) {
        return err;
    }
    json_val root = json_root(&doc);
    err = member_text(root, STR("issuer"), memory, &made.issuer);
    if (err != BAY_OK) {
        return err;
    }
    if (!issuer_is(made.issuer, issuer, is_origin)) {
        return diag_set(diag, BAY_ERR_DENIED,
                        "the authorization server's metadata is of the issuer \"%.*s\", not of "
                        "\"%.*s\"",
                        BAY_STR(str_head(made.issuer, 80)), BAY_STR(str_head(issuer, 80)));
    }
    err = read_endpoints(root, may_be_loopback, memory, &made, diag);
    if (err == BAY_OK) {
        err = read_abilities(root, memory, &made);
    }
    if (err == BAY_OK && made.token_endpoint.len == 0) {
        err = diag_set(diag, BAY_ERR_DENIED, "the authorization server has no token_endpoint");
    }
    if (err == BAY_OK) {
        *out = made;
    }
    return err;
}

bay_err oauth_server_assume(bay_str origin, arena *memory, oauth_server *out)
{
    oauth_server made = {
        .methods = OAUTH_NONE | OAUTH_BASIC | OAUTH_POST,
        .has_code = true,
        .has_s256 = true,
        .is_assumed = true,
    };
    oauth_candidates urls = {0};
    const bay_str paths[] = {STR("/authorize"), STR("/token"), STR("/register")};
    bay_err err = arena_dup(memory, origin, &made.issuer);
    for (size_t i = 0; err == BAY_OK && i < sizeof(paths) / sizeof(paths[0]); i++) {
        err = candidate(&urls, memory, origin, paths[i], (bay_str){"", 0});
    }
    if (err != BAY_OK) {
        return err;
    }
    made.authorization_endpoint = urls.urls[0];
    made.token_endpoint = urls.urls[1];
    made.registration_endpoint = urls.urls[2];
    *out = made;
    return BAY_OK;
}

/* Who comes in: what must hold in `auth`. */
#include "auth/access_token.h"
#include "auth/oauth_metadata.h"
#include "config/internal.h"
#include "oauth/document.h"
#include "oauth/proxy_client.h"
#include "wire/header.h"

bool config_auth_is_given(const config_auth *self)
{
    return self->issuer_count > 0 || self->api_keys || self->certificates;
}

bool config_auth_has_issuers(const config *self)
{
    bool has = self->auth.issuer_count > 0;
    for (size_t i = 0; !has && i < self->profile_count; i++) {
        has = self->profiles[i].auth.issuer_count > 0;
    }
    return has;
}

/* ---- auth ------------------------------------------------------------------------------------ */

/* RFC 6749 section 3.3. */
static bool is_scope(bay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c <= ' ' || c > '~' || c == '"' || c == '\\') {
            return false;
        }
    }
    return text.len > 0;
}

static void check_scopes(config_loader *loader, uint32_t line, const char *key, config_list scopes)
{
    for (size_t i = 0; i < scopes.count; i++) {
        if (!is_scope(scopes.at[i])) {
            config_error(
                loader, line,
                "%s.%s: entry %zu is no scope: visible ASCII without spaces, quotes and \\",
                loader->path, key, i + 1);
            return;
        }
    }
}

static void check_implies(config_loader *loader, const config_node *node, const config_auth *auth)
{
    for (size_t i = 0; i < auth->implies.count; i++) {
        const config_pair *pair = &auth->implies.at[i];
        bool is_good = is_scope(pair->name) && pair->value.len > 0;
        for (bay_str rest = pair->value; is_good && rest.len > 0;) {
            bay_str one = str_head(rest, str_find(rest, ' '));
            rest = str_from(rest, one.len + 1);
            is_good = is_scope(one);
        }
        if (!is_good) {
            config_error(loader, config_line_of(node, "implies"),
                         "%s.implies: write a scope, then those that it includes, separated by "
                         "single spaces",
                         loader->path);
            return;
        }
    }
}

static bool is_url(bay_str text)
{
    return str_starts(text, STR("https://")) || str_starts(text, STR("http://"));
}

static void check_issuer_urls(config_loader *loader, const config_issuer *issuer)
{
    bool has_file = issuer->keys.len > 0 && !is_url(issuer->keys);
    if (issuer->url.len == 0) {
        config_error(loader, issuer->line, "%s: url is missing: its issuer identifier",
                     loader->path);
    } else if (!has_file && oauth_url_fault(issuer->url, issuer->url) != NULL) {
        config_error(loader, issuer->line,
                     "%s.url: write the issuer as its tokens do, https://host/path; http only on "
                     "this machine",
                     loader->path);
    }
    if (issuer->keys.len > 0 && !has_file && oauth_url_fault(issuer->keys, issuer->keys) != NULL) {
        config_error(loader, issuer->line,
                     "%s.keys: write a file, or an address https://host/path; http only on this "
                     "machine",
                     loader->path);
    }
}

static void check_issuer_lists(config_loader *loader, const config_issuer *issuer)
{
    for (size_t i = 0; i < issuer->audience.count; i++) {
        if (issuer->audience.at[i].len == 0) {
            config_error(loader, issuer->line, "%s.audience: entry %zu is empty", loader->path,
                         i + 1);
        }
    }
    for (size_t i = 0; i < issuer->clients.count; i++) {
        if (issuer->clients.at[i].len == 0) {
            config_error(loader, issuer->line, "%s.clients: entry %zu is empty", loader->path,
                         i + 1);
        }
    }
    for (size_t i = 0; i < issuer->algorithms.count; i++) {
        if (access_algorithm(issuer->algorithms.at[i]) == 0) {
            config_error(loader, issuer->line,
                         "%s.algorithms: entry %zu is no algorithm of those that are taken: ES256, "
                         "ES384, ES512, RS256, RS384, RS512, PS256, PS384, PS512, EdDSA",
                         loader->path, i + 1);
        }
    }
    config_check_rules(loader, issuer->line, loader->path, "allow", issuer->allow);
}

static void check_issuer(config_loader *loader, const config_issuer *issuer)
{
    const config_introspection *asks = &issuer->introspection;
    size_t before = config_path_enter(loader, STR("issuers"));
    (void)config_path_enter(loader, issuer->name);
    check_issuer_urls(loader, issuer);
    check_issuer_lists(loader, issuer);
    if ((asks->client_id.len == 0) != (asks->client_secret.len == 0) ||
        (asks->always && asks->client_id.len == 0)) {
        config_error(loader, issuer->line,
                     "%s.introspection: clientId and clientSecret belong together: give both",
                     loader->path);
    }
    if (asks->client_id.len > 0 && issuer->keys.len > 0 && !is_url(issuer->keys)) {
        config_error(loader, issuer->line,
                     "%s.introspection: where it is asked stands in its metadata, which is not "
                     "read beside a file of keys: remove keys, or introspection",
                     loader->path);
    }
    if (issuer->header.len > 0 && !header_name_is_valid(issuer->header)) {
        config_error(loader, issuer->line,
                     "%s.header: it cannot name a header: use letters, digits and -", loader->path);
    }
    config_path_leave(loader, before);
}

static void check_issuers_together(config_loader *loader, const config_auth *auth)
{
    size_t introspectors = 0;
    for (size_t i = 0; i < auth->issuer_count; i++) {
        introspectors += auth->issuers[i].introspection.client_id.len > 0;
        for (size_t k = 0; k < i; k++) {
            if (str_eq(auth->issuers[k].url, auth->issuers[i].url)) {
                config_error(loader, auth->issuers[i].line,
                             "%s.issuers: \"%s\" and \"%s\" have one url: keep one of them",
                             loader->path, config_quote(auth->issuers[k].name).text,
                             config_quote(auth->issuers[i].name).text);
            }
        }
    }
    if (introspectors > 1) {
        config_error(loader, auth->issuers[auth->issuer_count - 1].line,
                     "%s.issuers: more than one has introspection, and a token that is no JSON Web "
                     "Token does not say whose it is: keep one",
                     loader->path);
    }
}

/* ---- login ----------------------------------------------------------------------------------- */

static void check_login(config_loader *loader, const config_node *node, const config_auth *auth)
{
    const config_login *login = &auth->login;
    uint32_t line = config_line_of(node, "login");
    bool is_given =
        login->issuer.len > 0 || login->client_id.len > 0 || login->client_secret.len > 0;
    bool is_known = false;
    for (size_t i = 0; i < auth->issuer_count; i++) {
        is_known = is_known || str_eq(auth->issuers[i].name, login->issuer);
    }
    if (is_given && !is_known) {
        config_error(loader, line, "%s.login.issuer: write the name of one of %s.issuers",
                     loader->path, loader->path);
    }
    if (is_given && login->client_id.len == 0) {
        config_error(loader, line,
                     "%s.login.clientId: as which client the gateway is registered "
                     "there is missing",
                     loader->path);
    }
    if (is_given && !scopes_have(login->scope, STR("openid"))) {
        config_error(loader, line,
                     "%s.login.scope: it must have openid, without which nobody is "
                     "named",
                     loader->path);
    }
}

static void check_proxy(config_loader *loader, const config_node *node, const config_auth *auth)
{
    const config_proxy *proxy = &auth->proxy;
    uint32_t line = config_line_of(node, "proxy");
    if (proxy->is_on && auth->login.issuer.len == 0) {
        config_error(loader, line, "%s.proxy: people log in by %s.login, which is missing",
                     loader->path, loader->path);
    }
    if (proxy->is_on && auth->dpop == CONFIG_DPOP_REQUIRE) {
        config_error(loader, line,
                     "%s.proxy: its tokens are bound to no key, and dpop is require: set it to "
                     "accept",
                     loader->path);
    }
    for (size_t i = 0; i < proxy->schemes.count; i++) {
        if (!oauth_proxy_scheme_is_fine(proxy->schemes.at[i])) {
            config_error(loader, line,
                         "%s.proxy.redirectSchemes: entry %zu is no scheme of an application, in "
                         "lower case",
                         loader->path, i + 1);
        }
    }
    for (size_t i = 0; i < proxy->scopes.count; i++) {
        if (!is_scope(proxy->scopes.at[i])) {
            config_error(loader, line, "%s.proxy.scopes: entry %zu is no scope", loader->path,
                         i + 1);
        }
    }
}

void config_check_auth(config_loader *loader, const config_node *node, const config_auth *auth)
{
    bool is_given = config_auth_is_given(auth);
    if (!is_given && !auth->none) {
        config_error(
            loader, node->line,
            "%s demands nothing: name one of issuers, or set apiKeys, certificates or none",
            loader->path);
    } else if (auth->none && (is_given || auth->scopes.count > 0)) {
        config_error(loader, config_line_of(node, "none"),
                     "%s.none: everybody comes in by it, whatever else is demanded: remove one of "
                     "the two",
                     loader->path);
    }
    check_scopes(loader, config_line_of(node, "scopes"), "scopes", auth->scopes);
    check_implies(loader, node, auth);
    for (size_t i = 0; i < auth->issuer_count; i++) {
        check_issuer(loader, &auth->issuers[i]);
    }
    check_issuers_together(loader, auth);
    check_login(loader, node, auth);
    check_proxy(loader, node, auth);
    if (auth->dpop != CONFIG_DPOP_OFF && auth->issuer_count == 0) {
        config_error(loader, config_line_of(node, "dpop"),
                     "%s.dpop: only tokens of issuers are bound to keys: name an issuer",
                     loader->path);
    }
    if (auth->dpop_nonces && auth->dpop == CONFIG_DPOP_OFF) {
        config_error(loader, config_line_of(node, "dpopNonces"),
                     "%s.dpopNonces: dpop is off: set it to accept or require", loader->path);
    }
}

/* What the rest of the file must have. */
static void check_surroundings(config_loader *loader, const config *self, const config_auth *auth,
                               const char *path, uint32_t line)
{
    if (auth->api_keys && self->store.len == 0) {
        config_error(loader, line, "%s.apiKeys: keys are kept in a store: name a file by `store`",
                     path);
    }
    if (auth->certificates && self->tls.client_ca.len == 0) {
        config_error(loader, line,
                     "%s.certificates: nobody vouches for clients' certificates: give "
                     "tls.certificate, tls.key and tls.clientCa",
                     path);
    }
    for (size_t i = 0; i < auth->issuer_count; i++) {
        if (auth->issuers[i].header.len > 0 && self->trusted_proxies.count == 0) {
            config_error(loader, auth->issuers[i].line,
                         "%s.issuers.%s.header: it counts from `trustedProxies` alone, and there "
                         "are none",
                         path, config_quote(auth->issuers[i].name).text);
        }
    }
}

/* Cookies of people cross no network in clear text. */
static void check_login_place(config_loader *loader, const config_node *node, const config *self)
{
    bay_str url = self->public_url.len > 0 ? self->public_url : self->a2a.public_url;
    if (self->auth.login.issuer.len > 0 && url.len > 0 && !oauth_url_is_usable(url, true)) {
        config_error(loader, config_line_of(node, "auth"),
                     "auth.login: publicUrl must be https://…, or http:// on this machine: its "
                     "cookies are for nobody else");
    }
    for (size_t i = 0; i < self->profile_count; i++) {
        if (self->profiles[i].auth.login.issuer.len > 0 || self->profiles[i].auth.proxy.is_on) {
            config_error(loader, self->profiles[i].line,
                         "profiles.%s.auth.login: people log in to the gateway, not to a profile: "
                         "write it in the file's auth",
                         config_quote(self->profiles[i].name).text);
        }
    }
}

void config_check_access(config_loader *loader, const config_node *node, const config *self)
{
    check_login_place(loader, node, self);
    check_surroundings(loader, self, &self->auth, "auth", config_line_of(node, "auth"));
    for (size_t i = 0; i < self->profile_count; i++) {
        const config_profile *profile = &self->profiles[i];
        char path[CONFIG_NAME_BYTES + 32];
        (void)snprintf(path, sizeof(path), "profiles.%s.auth", config_quote(profile->name).text);
        check_surroundings(loader, self, &profile->auth, path, profile->line);
    }
}

/* What must hold across keys, and the grammar of single ones that no type expresses. */
#include "auth/seal.h"
#include "base/mem.h"
#include "config/internal.h"
#include "config/server_sandbox.h"
#include "net/address.h"
#include "net/socket.h"
#include "policy/scan.h"
#include "wire/header.h"
#include "wire/uri.h"

/* The line of a member of the map, or of the map itself. */
uint32_t config_line_of(const config_node *map, const char *name)
{
    if (map == NULL || map->kind != CONFIG_NODE_MAP) {
        return map != NULL ? map->line : 0;
    }
    for (const config_node *child = map->first; child != NULL; child = child->next) {
        if (str_eq(child->key, str_of(name))) {
            return child->line;
        }
    }
    return map->line;
}

static bool is_address(bay_str text)
{
    size_t colon = str_find_last(text, ':');
    bay_str host = str_head(text, colon);
    bay_str port = str_from(text, colon + 1);
    uint64_t number;
    if (colon == text.len || port.len == 0 || port.len > 5 || !str_uint(port, &number) ||
        number > UINT16_MAX || host.len == 0) {
        return false;
    }
    bay_str split_host;
    uint16_t split_port;
    return header_host_split(host, &split_host, &split_port) == BAY_OK && split_port == 0;
}

static void check_listen(config_loader *loader, const config_node *node, const config *self)
{
    for (size_t i = 0; i < self->listen.count; i++) {
        if (!is_address(self->listen.at[i])) {
            config_error(loader, config_line_of(node, "listen"),
                         "listen: write an address as host:port, such as 127.0.0.1:8930 or "
                         "[::1]:8930");
            return;
        }
    }
}

/* A message never quotes a value. */
static void check_admin(config_loader *loader, const config_node *node, const config *self)
{
    const config_node *section = config_member(node, "admin");
    for (size_t i = 0; i < self->admin.listen.count; i++) {
        char path[SOCKET_UNIX_PATH_BYTES];
        bay_err err = socket_unix_path(self->admin.listen.at[i], path, NULL);
        uint32_t line = config_line_of(section, "listen");
        if (err == BAY_ERR_LIMIT) {
            config_error(loader, line,
                         "admin.listen: the path of entry %zu is longer than %d bytes, the most "
                         "that a Unix socket takes: use a shorter one",
                         i + 1, SOCKET_UNIX_PATH_BYTES - 1);
        } else if (err != BAY_OK) {
            config_error(loader, line, "admin.listen: write entry %zu as unix:/FOLDER/NAME", i + 1);
        }
    }
}

static void check_separator(config_loader *loader, const config_node *node, const config *self)
{
    for (size_t i = 0; i < self->separator.len; i++) {
        if (memchr("._/:-", self->separator.at[i], 5) == NULL) {
            config_error(loader, config_line_of(node, "separator"),
                         "separator: only . _ / : and - may stand in it");
            return;
        }
    }
}

/* '*' is a legal byte of a host name, and never what a person means here. */
static bool is_host(bay_str text)
{
    bay_str host;
    uint16_t port;
    return str_find(text, '*') == text.len && header_host_split(text, &host, &port) == BAY_OK;
}

static bool is_origin(bay_str text)
{
    bay_str scheme, host;
    uint16_t port;
    return str_find(text, '*') == text.len &&
           header_origin_split(text, &scheme, &host, &port) == BAY_OK;
}

static void check_hosts(config_loader *loader, const config_node *node, const config *self)
{
    for (size_t i = 0; i < self->allowed_hosts.count; i++) {
        if (!is_host(self->allowed_hosts.at[i])) {
            config_error(loader, config_line_of(node, "allowedHosts"),
                         "allowedHosts: write each as host or host:port; there are no wildcards");
            break;
        }
    }
    for (size_t i = 0; i < self->allowed_origins.count; i++) {
        bay_str origin = self->allowed_origins.at[i];
        if (str_eq(origin, STR("null")) || (!is_origin(origin) && !is_host(origin))) {
            config_error(loader, config_line_of(node, "allowedOrigins"),
                         "allowedOrigins: write each as https://host or https://host:port; there "
                         "are no wildcards");
            break;
        }
    }
}

static void check_proxies(config_loader *loader, const config_node *node, const config *self)
{
    for (size_t i = 0; i < self->trusted_proxies.count; i++) {
        bay_str text = self->trusted_proxies.at[i];
        net_network network;
        if (network_parse(text, &network) != BAY_OK) {
            config_error(loader, config_line_of(node, "trustedProxies"),
                         "trustedProxies: \"%.*s\" is no address and no network; write each as "
                         "10.0.0.7, 10.0.0.0/8 or fd00::/8",
                         (int)(text.len < 100 ? text.len : 100), text.at);
            break;
        }
    }
}

/* The message names the place alone: what stands there is a secret, however it is spelt. */
static void check_keys(config_loader *loader, const config_node *node, const config *self)
{
    for (size_t i = 0; i < self->keys.count; i++) {
        unsigned char key[SEAL_KEY_BYTES];
        bool is_key = seal_key_read(self->keys.at[i], key);
        mem_wipe(key, sizeof(key));
        if (!is_key) {
            config_error(loader, config_line_of(node, "keys"),
                         "keys: number %zu is no key: write 32 bytes as base64 or as 64 "
                         "hexadecimal digits (openssl rand -base64 32)",
                         i + 1);
        }
    }
}

/* Each by itself, so that the message has its line. */
static void check_scan(config_loader *loader, const config_node *node, const config *self)
{
    scan_rule_set *rules = NULL;
    if (self->scan.rules.count == 0) {
        return;
    }
    if (scan_rule_set_new(&rules) != BAY_OK) {
        loader->err = BAY_ERR_NOMEM;
        return;
    }
    const config_node *section = config_member(node, "scan");
    section = config_member(section, "rules");
    for (size_t i = 0; i < self->scan.rules.count; i++) {
        const config_pair *rule = &self->scan.rules.at[i];
        bay_diag diag = {0};
        if (scan_rule_set_add(rules, rule->name, rule->value, &diag) != BAY_OK) {
            config_error(loader, config_line_of(section, rule->name.at), "scan.rules.%s: %s",
                         config_quote(rule->name).text, diag.text);
        }
    }
    scan_rule_set_free(rules);
}

static void check_silence(config_loader *loader, const config_node *node, const config *self)
{
    const config_node *section = config_member(node, "silence");
    for (size_t i = 0; i < self->silence.count; i++) {
        const config_pair *pair = &self->silence.at[i];
        if (str_trim(pair->value).len == 0) {
            config_error(loader, config_line_of(section, pair->name.at),
                         "silence: \"%s\" has no reason: write one", config_quote(pair->name).text);
        }
    }
}

/* The section alone would look as if there were an audit. */
static void check_audit(config_loader *loader, const config_node *node, const config *self)
{
    const config_node *section = config_member(node, "audit");
    if (section != NULL && self->audit.file.len == 0) {
        config_error(loader, section->line, "audit.file is missing: write where the audit is kept");
    }
}

static void check_metrics(config_loader *loader, const config_node *node, const config *self)
{
    const config_node *section = config_member(node, "metrics");
    if (self->metrics.listen.len > 0 && !self->metrics.is_enabled) {
        config_error(loader, section->line,
                     "metrics.listen without metrics.enabled: write enabled: true, or remove it");
    }
}

static void check_public_url(config_loader *loader, uint32_t line, const char *key, bay_str url)
{
    uri parts;
    if (url.len > 0 && (uri_parse(&parts, url) != BAY_OK || parts.host.len == 0 ||
                        parts.has_userinfo || url.at[url.len - 1] == '/' ||
                        str_find(url, '?') < url.len || str_find(url, '#') < url.len ||
                        (!str_eq_nocase(parts.scheme, STR("http")) &&
                         !str_eq_nocase(parts.scheme, STR("https"))))) {
        config_error(loader, line,
                     "%s: write the address clients reach the gateway at, such as "
                     "https://gateway.example, without a slash at its end",
                     key);
    }
}

static void check_public_urls(config_loader *loader, const config_node *node, const config *self)
{
    uint32_t line = config_line_of(config_member(node, "a2a"), "publicUrl");
    check_public_url(loader, config_line_of(node, "publicUrl"), "publicUrl", self->public_url);
    check_public_url(loader, line, "a2a.publicUrl", self->a2a.public_url);
    if (self->public_url.len > 0 && self->a2a.public_url.len > 0 &&
        !str_eq(self->public_url, self->a2a.public_url)) {
        config_error(loader, line, "a2a.publicUrl differs from publicUrl: keep the latter alone");
    }
}

static void check_tls(config_loader *loader, const config_node *node, const config *self)
{
    const config_tls *tls = &self->tls;
    if ((tls->certificate.len == 0) != (tls->key.len == 0)) {
        config_error(loader, tls->line, "tls: certificate and key belong together: give both");
    }
    if (tls->client_ca.len > 0 && tls->certificate.len == 0) {
        config_error(loader, tls->line,
                     "tls: clientCa needs a certificate and a key of the gateway: give them");
    }
    if (tls->require_client_certificate && tls->client_ca.len == 0) {
        config_error(loader, tls->line,
                     "tls: requireClientCertificate needs clientCa: name the authorities to trust");
    }
    if (self->is_open && tls->require_client_certificate) {
        config_error(loader, config_line_of(node, "open"),
                     "open: requireClientCertificate authenticates clients and open admits "
                     "anybody: remove one of the two");
    }
}

void config_check_top(config_loader *loader, const config_node *node, const config *self,
                      bool is_whole)
{
    check_listen(loader, node, self);
    check_admin(loader, node, self);
    check_separator(loader, node, self);
    check_hosts(loader, node, self);
    check_proxies(loader, node, self);
    check_keys(loader, node, self);
    check_scan(loader, node, self);
    check_silence(loader, node, self);
    check_audit(loader, node, self);
    check_metrics(loader, node, self);
    check_public_urls(loader, node, self);
    config_check_rules(loader, config_line_of(node, "a2a"), "a2a", "webhooks", self->a2a.webhooks);
    if (!is_whole) {
        return;
    }
    check_tls(loader, node, self);
    if (self->limits.held_bytes > 0 && self->limits.body_bytes > self->limits.held_bytes) {
        config_error(loader, config_line_of(node, "limits"),
                     "limits: bodyBytes is larger than heldBytes: raise heldBytes");
    }
    if (self->timeouts.call_ms > self->timeouts.call_total_ms) {
        config_error(loader, config_line_of(node, "timeouts"),
                     "timeouts: call is longer than callTotal: raise callTotal");
    }
}

/* A child gets its arguments and its environment as they are; only '=' cannot stand in a name. */
static void check_env(config_loader *loader, const config_node *node, const config_server *server)
{
    for (size_t i = 0; i < server->env.count; i++) {
        bay_str name = server->env.at[i].name;
        if (name.len == 0 || str_find(name, '=') < name.len ||
            memchr(name.at, '\0', name.len) != NULL) {
            config_error(loader, config_line_of(node, "env"),
                         "%s.env: \"%s\" cannot name an environment variable: rename it",
                         loader->path, config_quote(name).text);
        }
    }
}

static bool is_our_header(bay_str name)
{
    static const bay_str ours[] = {
        STR_INIT("Host"),
        STR_INIT("Content-Length"),
        STR_INIT("Transfer-Encoding"),
        STR_INIT("Connection"),
        STR_INIT("Upgrade"),
        STR_INIT("Content-Type"),
        STR_INIT("Accept"),
        STR_INIT("Mcp-Session-Id"),
        STR_INIT("Keep-Alive"),
        STR_INIT("Mcp-Method"),
        STR_INIT("MCP-Protocol-Version"),
        STR_INIT("Last-Event-ID"),
        STR_INIT("Mcp-Name"),
        STR_INIT("TE"),
        STR_INIT("Trailer"),
        STR_INIT("Accept-Encoding"),
        STR_INIT("Expect"),
        STR_INIT("A2A-Version"),
        STR_INIT("A2A-Extensions"),
        STR_INIT("traceparent"),
        STR_INIT("If-None-Match"),
    };
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (str_eq_nocase(ours[i], name)) {
            return true;
        }
    }
    return false;
}

bool config_check_header(config_loader *loader, uint32_t line, const config_pair *pair)
{
    if (!header_name_is_valid(pair->name)) {
        config_error(loader, line,
                     "%s.headers: \"%s\" cannot name a header: use letters, digits and -",
                     loader->path, config_quote(pair->name).text);
    } else if (is_our_header(pair->name)) {
        config_error(loader, line, "%s.headers: the gateway sets %s itself: remove it",
                     loader->path, config_quote(pair->name).text);
    } else if (!header_value_is_plain(pair->value)) {
        config_error(loader, line,
                     "%s.headers.%s: a header value is visible ASCII without line ends: check "
                     "what its variables hold",
                     loader->path, config_quote(pair->name).text);
    } else {
        return true;
    }
    return false;
}

static void check_headers(config_loader *loader, const config_node *node,
                          const config_server *server)
{
    for (size_t i = 0; i < server->headers.count; i++) {
        if (!config_check_header(loader, config_line_of(node, "headers"), &server->headers.at[i])) {
            continue; /* every one is looked at */
        }
    }
}

static bool check_url(config_loader *loader, const config_node *node, const config_server *server)
{
    uri parts;
    uint32_t line = server->line;
    static const char *const names[] = {"url", "serverUrl", "httpUrl"};
    for (size_t i = 0; i < 3 && line == server->line; i++) {
        line = config_line_of(node, names[i]);
    }
    bool is_http =
        uri_parse(&parts, server->url) == BAY_OK && parts.host.len > 0 &&
        (str_eq_nocase(parts.scheme, STR("http")) || str_eq_nocase(parts.scheme, STR("https")));
    if (!is_http) {
        config_error(loader, line,
                     "%s.url: not a web address: write http://host/path or https://host/path",
                     loader->path);
        return false;
    }
    if (parts.has_userinfo) {
        config_error(loader, line,
                     "%s.url: a password does not belong into an address: use headers with "
                     "Authorization",
                     loader->path);
    }
    return true;
}

/* The words of `type` beyond the enum are other hosts' names for the same transports. */
config_transport config_transport_of(unsigned word)
{
    if (word == CONFIG_TRANSPORT_SSE + 1) { /* local */
        return CONFIG_TRANSPORT_STDIO;
    }
    return word > CONFIG_TRANSPORT_SSE ? CONFIG_TRANSPORT_HTTP : (config_transport)word;
}

static void check_transport(config_loader *loader, config_server *server)
{
    bool is_stdio = server->transport == CONFIG_TRANSPORT_STDIO;
    if (server->command.len > 0) {
        if (!is_stdio && server->transport != CONFIG_TRANSPORT_AUTO) {
            config_error(loader, server->line,
                         "%s: a command is spoken to over stdio: remove type, or give a url",
                         loader->path);
        }
        server->transport = CONFIG_TRANSPORT_STDIO;
    } else if (is_stdio) {
        config_error(loader, server->line,
                     "%s: type stdio needs a command: give one, or set type to http", loader->path);
    }
}

static void check_renames(config_loader *loader, const config_node *node,
                          const config_server *server)
{
    for (size_t i = 0; i < server->rename.count; i++) {
        const config_pair *pair = &server->rename.at[i];
        if (pair->value.len == 0 || pair->value.len > CONFIG_SHOWN_BYTES) {
            config_error(loader, config_line_of(node, "rename"),
                         "%s.rename: the new name of \"%s\" needs 1 to %d bytes", loader->path,
                         config_quote(pair->name).text, CONFIG_SHOWN_BYTES);
        }
    }
}

static bool has_member(const config_node *map, const char *name)
{
    for (const config_node *child = map->first; child != NULL; child = child->next) {
        if (str_eq(child->key, str_of(name))) {
            return true;
        }
    }
    return false;
}

/* A section without a key is a sandbox, too; no section is none. */
static void check_sandbox(config_loader *loader, const config_node *node, config_server *server)
{
    config_sandbox *sandbox = &server->sandbox;
    uint32_t line = config_line_of(node, "sandbox");
    sandbox->is_enabled = sandbox->is_enabled && has_member(node, "sandbox");
    if (sandbox->is_enabled && server->url.len > 0) {
        config_error(loader, line, "%s.sandbox: a server with a url runs elsewhere: remove sandbox",
                     loader->path);
    }
    for (size_t i = server_sandbox_has_defaults(sandbox) ? 0 : 1; i < sandbox->fs.count; i++) {
        bay_str path;
        bool is_writable;
        if (!server_sandbox_path(sandbox->fs.at[i], &path, &is_writable)) {
            config_error(loader, line,
                         "%s.sandbox.fs: entry %zu is no absolute path without . and ..: write "
                         "/path, /path:ro or /path:rw (and `none` only first)",
                         loader->path, i + 1);
            return;
        }
    }
    size_t nested = server_sandbox_nested(sandbox);
    if (nested < sandbox->fs.count) {
        config_error(loader, line,
                     "%s.sandbox.fs: entry %zu lies inside a writable one and would be writable, "
                     "too: remove it, or list the folders beside it",
                     loader->path, nested + 1);
    }
}

static void warn_unused(config_loader *loader, const config_server *server)
{
    const char *side = server->command.len > 0 ? "command" : "url";
    const char *unused = NULL;
    if (server->command.len > 0) {
        unused = server->headers.count > 0 ? "headers" : NULL;
    } else if (server->args.count > 0) {
        unused = "args";
    } else if (server->env.count > 0) {
        unused = "env";
    } else if (server->cwd.len > 0) {
        unused = "cwd";
    } else if (server->idle_stop_ms > 0) {
        unused = "idleStop";
    }
    if (unused != NULL) {
        config_warn(loader, server->line, "%s: %s has no effect on a server with a %s",
                    loader->path, unused, side);
    }
}

/* What takes two keys to be wrong. */
static void check_together(config_loader *loader, const config_node *node, config_server *server)
{
    bool is_https = str_eq_nocase(str_head(server->url, 6), STR("https:"));
    config_check_credentials(loader, node, server->url, server->headers, &server->credentials);
    const config_server_tls *tls = &server->tls;
    check_transport(loader, server);
    warn_unused(loader, server);
    if ((tls->certificate.len == 0) != (tls->key.len == 0)) {
        config_error(loader, config_line_of(node, "tls"),
                     "%s.tls: certificate and key belong together: give both", loader->path);
    }
    if ((tls->ca.len > 0 || tls->certificate.len > 0) && !is_https) {
        config_error(loader, config_line_of(node, "tls"),
                     "%s.tls: only an https:// url has TLS: change the url or remove tls",
                     loader->path);
    }
    if (server->restart.min_delay_ms > server->restart.max_delay_ms) {
        config_error(loader, config_line_of(node, "restart"),
                     "%s.restart: minDelay is longer than maxDelay: swap them", loader->path);
    }
}

void config_check_server(config_loader *loader, const config_node *node, config_server *server,
                         bool is_whole)
{
    if (is_whole && (server->command.len > 0) == (server->url.len > 0)) {
        config_error(loader, server->line,
                     server->url.len > 0
                         ? "%s: both command and url: keep the one it is reached by"
                         : "%s: neither command nor url: say how it is started or where it is",
                     loader->path);
        is_whole = false;
    }
    if (server->url.len > 0 && !check_url(loader, node, server)) {
        is_whole = false;
    }
    check_env(loader, node, server);
    check_headers(loader, node, server);
    check_renames(loader, node, server);
    check_sandbox(loader, node, server);
    if (is_whole) {
        check_together(loader, node, server);
    }
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

/* Hosts let their servers be called anything; here a name is part of a path and of tool names. */
void config_fit_name(config_loader *loader, const config_node *node, char *name)
{
    bool is_changed = false;
    for (size_t i = 0; i < node->key.len; i++) {
        if (!is_name_byte(name[i])) {
            name[i] = '_';
            is_changed = true;
        }
    }
    if (is_changed) {
        config_warn(loader, node->line,
                    "mcpServers: \"%s\" is shown as \"%s\": names have letters, digits, _ and -",
                    config_quote(node->key).text, name);
    }
}

static bool is_taken(const config *self, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (str_eq(self->servers[i].name, self->servers[index].name)) {
            return true;
        }
    }
    return false;
}

bool config_is_name(bay_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (!is_name_byte(name.at[i])) {
            return false;
        }
    }
    return name.len > 0 && name.len <= CONFIG_NAME_BYTES;
}

/* In NAME + separator + tool the first separator must be the one that was put there: "a_" with "__"
 * would be split too early. */
static bool splits_early(bay_str name, bay_str separator)
{
    char joined[CONFIG_NAME_BYTES + 4];
    memcpy(joined, name.at, name.len);
    memcpy(joined + name.len, separator.at, separator.len);
    for (size_t at = 0; at < name.len; at++) {
        if (memcmp(joined + at, separator.at, separator.len) == 0) {
            return true;
        }
    }
    return false;
}

void config_check_names(config_loader *loader, const config *self)
{
    for (size_t i = 0; i < self->server_count; i++) {
        const config_server *server = &self->servers[i];
        if (!config_is_name(server->name)) {
            config_error(loader, server->line,
                         "mcpServers: \"%s\" cannot name a server: use 1 to %d letters, digits, _ "
                         "and -",
                         config_quote(server->name).text, CONFIG_NAME_BYTES);
        } else if (is_taken(self, i)) {
            config_error(loader, server->line,
                         "mcpServers: a second server would be shown as \"%s\": rename one",
                         config_quote(server->name).text);
        } else if (self->separator.len > 0 && self->separator.len <= 3 &&
                   splits_early(server->name, self->separator)) {
            config_error(loader, server->line,
                         "mcpServers: \"%s\" cannot be told from the separator behind it: rename "
                         "the server or change separator",
                         config_quote(server->name).text);
        }
    }
}

/* ---- profiles and what the catalog is told
 * -----------------------------------------------------*/

static bool knows_server(const config *self, bay_str name)
{
    for (size_t i = 0; i < self->server_count; i++) {
        if (str_eq(self->servers[i].name, name)) {
            return true;
        }
    }
    return false;
}

void config_check_profiles(config_loader *loader, const config *self)
{
    for (size_t i = 0; i < self->profile_count; i++) {
        const config_profile *profile = &self->profiles[i];
        for (size_t k = 0; k < profile->servers.count; k++) {
            if (!knows_server(self, profile->servers.at[k])) {
                config_error(loader, profile->line,
                             "profiles.%s.servers: there is no server \"%s\" below mcpServers",
                             config_quote(profile->name).text,
                             config_quote(profile->servers.at[k]).text);
            }
        }
    }
}

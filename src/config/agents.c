/* The agents of a configuration: read like servers, checked, and given a place among the servers
 * where their skills are tools of the catalog. */
#include "base/mem.h"
#include "config/internal.h"
#include "net/address.h"
#include "wire/uri.h"

/* http or https with a host, and nothing secret in it; says what is wrong. */
static bool check_address(config_loader *loader, uint32_t line, const char *key, bay_str url,
                          bool *out_is_https)
{
    uri parts;
    bool is_http =
        uri_parse(&parts, url) == BAY_OK && parts.host.len > 0 &&
        (str_eq_nocase(parts.scheme, STR("http")) || str_eq_nocase(parts.scheme, STR("https")));
    if (!is_http) {
        config_error(loader, line,
                     "%s.%s: not a web address: write http://host/path or https://host/path",
                     loader->path, key);
        return false;
    }
    if (parts.has_userinfo) {
        config_error(loader, line,
                     "%s.%s: a password does not belong into an address: use headers with "
                     "Authorization",
                     loader->path, key);
        return false;
    }
    if (out_is_https != NULL) {
        *out_is_https = str_eq_nocase(parts.scheme, STR("https"));
    }
    return true;
}

static void check_made_of_tools(config_loader *loader, const config_node *node,
                                const config_agent *agent)
{
    const char *unused = agent->headers.count > 0                            ? "headers"
                         : agent->version != 0                               ? "version"
                         : agent->binding != 0                               ? "binding"
                         : agent->allow.count > 0                            ? "allow"
                         : agent->verify.keys.len > 0                        ? "verify"
                         : agent->verify.jku.count > 0                       ? "verify"
                         : agent->verify.is_required                         ? "verify"
                         : agent->expose.skills.at != NULL                   ? "expose"
                         : agent->expose.hide.at != NULL                     ? "expose"
                         : agent->tls.ca.len > 0                             ? "tls"
                         : config_credentials_are_given(&agent->credentials) ? "credentials"
                                                                             : NULL;
    if (unused != NULL) {
        config_warn(loader, config_line_of(node, unused),
                    "%s: %s has no effect on an agent made of tools", loader->path, unused);
    }
}

void config_check_rules(config_loader *loader, uint32_t line, const char *section, const char *key,
                        config_list list)
{
    address_rules *rules = NULL;
    bay_diag why = {0};
    if (list.count > 0 && address_rules_new(list.at, list.count, &rules, &why) != BAY_OK) {
        config_error(loader, line, "%s.%s: %s", section, key, why.text);
    }
    address_rules_free(rules);
}

static void check_elsewhere(config_loader *loader, const config_node *node,
                            const config_agent *agent)
{
    bool is_https = false;
    bool is_card = agent->card.len > 0;
    uint32_t line = config_line_of(node, is_card ? "card" : "url");
    if (!check_address(loader, line, is_card ? "card" : "url", is_card ? agent->card : agent->url,
                       &is_https)) {
        return;
    }
    for (size_t i = 0; i < agent->headers.count; i++) {
        if (!config_check_header(loader, config_line_of(node, "headers"), &agent->headers.at[i])) {
            return;
        }
    }
    config_check_rules(loader, config_line_of(node, "allow"), loader->path, "allow", agent->allow);
    config_check_credentials(loader, node, is_card ? agent->card : agent->url, agent->headers,
                             &agent->credentials);
    for (size_t i = 0; i < agent->verify.jku.count; i++) {
        if (!check_address(loader, config_line_of(node, "verify"), "verify.jku",
                           agent->verify.jku.at[i], NULL)) {
            return;
        }
    }
    if (agent->verify.is_required && agent->verify.keys.len == 0 && agent->verify.jku.count == 0) {
        config_error(loader, config_line_of(node, "verify"),
                     "%s.verify: required needs keys to verify with: give keys or jku",
                     loader->path);
    }
    if ((agent->tls.certificate.len == 0) != (agent->tls.key.len == 0)) {
        config_error(loader, config_line_of(node, "tls"),
                     "%s.tls: certificate and key belong together: give both", loader->path);
    }
    if ((agent->tls.ca.len > 0 || agent->tls.certificate.len > 0) && !is_https) {
        config_error(loader, config_line_of(node, "tls"),
                     "%s.tls: only an https:// address has TLS: change it or remove tls",
                     loader->path);
    }
    if (agent->title.len > 0 || agent->description.len > 0) {
        config_warn(loader, agent->line, "%s: title and description have no effect: the card says",
                    loader->path);
    }
}

void config_check_agent(config_loader *loader, const config_node *node, config_agent *agent)
{
    int ways = (agent->url.len > 0) + (agent->card.len > 0) + (agent->tools.at != NULL);
    if (ways != 1) {
        config_error(loader, agent->line,
                     ways == 0 ? "%s: none of url, card and tools: say where the agent is, or "
                                 "which tools it is made of"
                               : "%s: more than one of url, card and tools: keep one",
                     loader->path);
    } else if (agent->tools.at != NULL) {
        check_made_of_tools(loader, node, agent);
    } else {
        check_elsewhere(loader, node, agent);
    }
}

void config_check_agents(config_loader *loader, const config_node *node, const config *self)
{
    (void)node;
    for (size_t i = 0; i < self->agent_count; i++) {
        const config_agent *agent = &self->agents[i];
        if (!config_is_name(agent->name)) {
            config_error(loader, agent->line,
                         "agents: \"%s\" cannot name an agent: use 1 to %d letters, digits, _ "
                         "and -",
                         config_quote(agent->name).text, CONFIG_NAME_BYTES);
        } else if (agent->expose.tools && agent->tools.at == NULL && !agent->is_disabled &&
                   config_server_find(self, agent->name) != NULL) {
            config_error(loader, agent->line,
                         "agents: \"%s\" is a server, too, and its skills would be tools of that "
                         "name: rename one, or set expose.tools to false",
                         config_quote(agent->name).text);
        }
    }
}

static void apply_agent(config_loader *loader, const config_node *node, config_agent *agent)
{
    size_t before = config_path_enter(loader, node->key);
    size_t errors = loader->report->errors;
    config_set_defaults(CONFIG_SCOPE_AGENT, agent);
    agent->line = node->line;
    agent->name = config_pool_dup(&loader->kept, node->key);
    if (agent->name.at == NULL) {
        loader->err = config_pool_err(&loader->kept);
        return;
    }
    config_apply_map(loader, CONFIG_SCOPE_AGENT, node, agent);
    if (loader->report->errors == errors && loader->err == BAY_OK) {
        config_check_agent(loader, node, agent);
    }
    if (loader->err == BAY_OK) {
        config_check_agent_files(loader, node, agent);
    }
    config_path_leave(loader, before);
}

static bool is_server(const config_agent *agent)
{
    return agent->expose.tools && agent->tools.at == NULL && !agent->is_disabled;
}

static void add_servers(config_loader *loader, config *self)
{
    size_t more = 0;
    for (size_t i = 0; i < self->agent_count; i++) {
        more += is_server(&self->agents[i]);
    }
    config_server *servers = config_keep_array(loader, self->server_count + more, sizeof(*servers));
    if (servers == NULL) {
        return;
    }
    if (self->server_count > 0) {
        memcpy(servers, self->servers, self->server_count * sizeof(*servers));
    }
    size_t count = self->server_count;
    for (size_t i = 0; i < self->agent_count; i++) {
        const config_agent *agent = &self->agents[i];
        if (is_server(agent)) {
            config_server *server = &servers[count++];
            config_set_defaults(CONFIG_SCOPE_SERVER, server);
            server->name = server->agent = agent->name;
            server->line = agent->line;
            server->timeout_ms = agent->timeout_ms;
            server->expose.tools = agent->expose.skills;
            server->expose.hide = agent->expose.hide;
        }
    }
    self->servers = servers;
    self->server_count = count;
}

void config_apply_agents(config_loader *loader, const config_node *node, config *self)
{
    if (node->kind == CONFIG_NODE_NULL) {
        return;
    }
    size_t before = config_path_enter(loader, node->key);
    if (node->kind != CONFIG_NODE_MAP) {
        config_error(loader, node->line,
                     "agents needs a map: write each agent's name, then its keys");
    } else if (node->count > CONFIG_AGENTS) {
        config_error(loader, node->line, "agents holds %zu agents, %d is the most: remove some",
                     node->count, CONFIG_AGENTS);
    } else if (config_check_twice(loader, node) && node->count > 0) {
        config_agent *agents = config_keep_array(loader, node->count, sizeof(*agents));
        size_t index = 0;
        for (const config_node *child = node->first;
             agents != NULL && child != NULL && loader->err == BAY_OK; child = child->next) {
            apply_agent(loader, child, &agents[index++]);
        }
        self->agents = agents;
        self->agent_count = index;
    }
    config_path_leave(loader, before);
    if (loader->err == BAY_OK) {
        config_check_agents(loader, node, self);
    }
    if (loader->err == BAY_OK && loader->report->errors == 0 && self->agent_count > 0) {
        add_servers(loader, self);
    }
}

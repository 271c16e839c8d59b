/* Whether `credentials` of a server or an agent can be used. */
#include "auth/jose.h"
#include "auth/oauth_metadata.h"
#include "config/internal.h"

bool config_credentials_are_given(const config_credentials *self)
{
    return self->client_id.len > 0 || self->client_secret.len > 0 || self->key.len > 0 ||
           self->token_file.len > 0 || self->grant != CONFIG_GRANT_CLIENT;
}

bool config_credentials_exchange(const config_credentials *self)
{
    return self->grant == CONFIG_GRANT_EXCHANGE || self->grant == CONFIG_GRANT_ID_JAG;
}

static const config_node *section_of(const config_node *node)
{
    for (const config_node *child = node->first; child != NULL; child = child->next) {
        if (str_eq(child->key, STR("credentials"))) {
            return child;
        }
    }
    return NULL;
}

bool config_credentials_are_callers(const config_credentials *self)
{
    return config_credentials_exchange(self) || self->grant == CONFIG_GRANT_USER;
}

/* An authorization server that the server names could be anybody's: it would get a token of each
 * caller. */
static const char *exchange_fault(const config_credentials *self)
{
    const config_idp *idp = &self->idp;
    bool is_chain = self->grant == CONFIG_GRANT_ID_JAG;
    bool has_idp = idp->issuer.len > 0 || idp->client_id.len > 0 || idp->client_secret.len > 0 ||
                   idp->key.len > 0;
    if (self->issuer.len == 0) {
        return "issuer is missing: say which authorization server exchanges callers' tokens";
    }
    return !is_chain && has_idp                  ? "idp is of grant: idJag: remove it"
           : is_chain && idp->issuer.len == 0    ? "idp.issuer is missing: say which "
                                                   "identity provider callers' tokens are of"
           : is_chain && idp->client_id.len == 0 ? "idp.clientId is missing: say which client "
                                                   "the gateway is there"
           : is_chain && (idp->client_secret.len > 0) == (idp->key.len > 0)
               ? "give idp either a clientSecret or a key, best as ${file:/PATH}"
               : NULL;
}

/* What the grant needs and has not, or has and does not need. */
static const char *grant_fault(const config_credentials *self)
{
    bool has_secret = self->client_secret.len > 0;
    bool has_key = self->key.len > 0;
    if (self->grant == CONFIG_GRANT_USER) {
        return self->token_file.len > 0   ? "tokenFile is of grant: workload: remove it"
               : self->idp.issuer.len > 0 ? "idp is of grant: idJag: remove it"
               : has_secret && has_key    ? "both clientSecret and key: keep one"
               : (has_secret || has_key) && self->client_id.len == 0
                   ? "clientId is missing: say which client the secret is of"
                   : NULL;
    }
    if (self->grant == CONFIG_GRANT_WORKLOAD) {
        return self->token_file.len == 0 ? "workload needs tokenFile: name the file with the "
                                           "platform's token"
               : has_secret || has_key   ? "the platform's token authenticates the gateway: remove "
                                           "clientSecret and key"
                                         : NULL;
    }
    return self->client_id.len == 0   ? "clientId is missing: say which client the gateway is"
           : self->token_file.len > 0 ? "tokenFile is of grant: workload: remove one of the two"
           : has_secret && has_key    ? "both clientSecret and key: keep one"
           : !has_secret && !has_key  ? "neither clientSecret nor key: give one, best as "
                                        "${file:/PATH}"
           : config_credentials_exchange(self) ? exchange_fault(self)
           : self->idp.issuer.len > 0          ? "idp is of grant: idJag: remove it"
                                               : NULL;
}

/* Like all messages without a part of it. */
static void check_key(config_loader *loader, uint32_t line, const char *section, bay_str text,
                      bay_str id)
{
    jose_key *key = NULL;
    bay_diag why = {0};
    if (text.len > 0 && jose_key_new(text, id, &key, &why) != BAY_OK) {
        config_error(loader, line,
                     "%s%s.key: it is no private key: write the text of a PEM or JWK, such as "
                     "${file:/PATH}; EC or RSA, without a passphrase",
                     loader->path, section);
    }
    jose_key_free(key);
}

static bool has_authorization(config_map headers)
{
    for (size_t i = 0; i < headers.count; i++) {
        if (str_eq_nocase(headers.at[i].name, STR("Authorization"))) {
            return true;
        }
    }
    return false;
}

void config_check_credentials(config_loader *loader, const config_node *node, bay_str url,
                              config_map headers, const config_credentials *credentials)
{
    const config_node *section = section_of(node);
    if (section == NULL || section->kind == CONFIG_NODE_NULL) {
        return;
    }
    uint32_t line = section->line;
    size_t before = config_path_enter(loader, STR("credentials"));
    const char *fault = grant_fault(credentials);
    if (url.len == 0) {
        config_error(loader, line,
                     "%s: they are for a server with a url: give a process its secrets by env",
                     loader->path);
    } else if (fault != NULL) {
        config_error(loader, line, "%s: %s", loader->path, fault);
    } else if (!oauth_url_is_usable(url, true)) {
        config_error(loader, line,
                     "%s: a token would go to the server in clear text: only https:// (and http:// "
                     "to this machine) has credentials",
                     loader->path);
    } else if (has_authorization(headers)) {
        config_error(loader, line, "%s: headers have an Authorization, too: remove one of the two",
                     loader->path);
    } else if (credentials->issuer.len > 0 &&
               !oauth_url_is_usable(credentials->issuer, oauth_url_is_loopback(url))) {
        config_error(
            loader, config_line_of(section, "issuer"),
            "%s.issuer: write the issuer as https://host or https://host/path%s", loader->path,
            oauth_url_is_loopback(url) ? "" : " (http:// only beside a url of this machine)");
    }
    if (credentials->idp.issuer.len > 0 &&
        !oauth_url_is_usable(credentials->idp.issuer, oauth_url_is_loopback(url))) {
        config_error(loader, config_line_of(section, "idp"),
                     "%s.idp.issuer: write the issuer as https://host or https://host/path",
                     loader->path);
    }
    check_key(loader, config_line_of(section, "key"), "", credentials->key, credentials->key_id);
    check_key(loader, config_line_of(section, "idp"), ".idp", credentials->idp.key, STR(""));
    config_check_rules(loader, config_line_of(section, "allow"), loader->path, "allow",
                       credentials->allow);
    config_path_leave(loader, before);
}

/* Whoever reads the store must not find the keys in it. */
static void check_vault(config_loader *loader, const config *self, uint32_t line, const char *kind,
                        bay_str name)
{
    if (self->keys.count == 0) {
        config_error(loader, line,
                     "%s.%s.credentials: users' tokens are sealed with `keys`, and there are none: "
                     "give one, such as ${file:/PATH}",
                     kind, config_quote(name).text);
    } else if (self->store.len == 0) {
        config_error(loader, line,
                     "%s.%s.credentials: users' tokens are kept in a store: name a file by `store`",
                     kind, config_quote(name).text);
    }
}

static void check_caller(config_loader *loader, const config *self, uint32_t line, const char *kind,
                         bay_str name, const config_credentials *credentials, bool has_tokens)
{
    if (credentials->grant == CONFIG_GRANT_USER) {
        check_vault(loader, self, line, kind, name);
    }
    if (config_credentials_exchange(credentials) && !has_tokens) {
        config_error(
            loader, line,
            "%s.%s.credentials: no caller brings a token that could be exchanged: name his "
            "issuer in auth.issuers",
            kind, config_quote(name).text);
    }
}

void config_check_callers(config_loader *loader, const config *self)
{
    bool has_tokens = config_auth_has_issuers(self);
    for (size_t i = 0; i < self->server_count; i++) {
        const config_server *server = &self->servers[i];
        check_caller(loader, self, server->line, "mcpServers", server->name, &server->credentials,
                     has_tokens);
        if (config_credentials_are_callers(&server->credentials) &&
            server->share == CONFIG_SHARE_ALWAYS) {
            config_error(
                loader, server->line,
                "mcpServers.%s.share: always: callers with credentials of their own share no "
                "session: remove it",
                config_quote(server->name).text);
        }
    }
    for (size_t i = 0; i < self->agent_count; i++) {
        const config_agent *agent = &self->agents[i];
        check_caller(loader, self, agent->line, "agents", agent->name, &agent->credentials,
                     has_tokens);
    }
}

/* Whether `credentials` of a server or an agent can be used. */
#include "auth/jose.h"
#include "auth/oauth_metadata.h"
#include "config/internal.h"

bool config_credentials_are_given(const config_credentials *self)
{
    return self->client_id.len > 0 || self->client_secret.len > 0 || self->key.len > 0 ||
           self->token_file.len > 0 || self->grant != CONFIG_GRANT_CLIENT;
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

/* What the grant needs and has not, or has and does not need. */
static const char *grant_fault(const config_credentials *self)
{
    bool has_secret = self->client_secret.len > 0;
    bool has_key = self->key.len > 0;
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
                                      : NULL;
}

/* Like all messages without a part of it. */
static void check_key(config_loader *loader, uint32_t line, const config_credentials *credentials)
{
    jose_key *key = NULL;
    bay_diag why = {0};
    if (credentials->key.len > 0 &&
        jose_key_new(credentials->key, credentials->key_id, &key, &why) != BAY_OK) {
        config_error(loader, line,
                     "%s.key: it is no private key: write the text of a PEM or JWK, such as "
                     "${file:/PATH}; EC or RSA, without a passphrase",
                     loader->path);
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
    check_key(loader, config_line_of(section, "key"), credentials);
    config_check_rules(loader, config_line_of(section, "allow"), loader->path, "allow",
                       credentials->allow);
    config_path_leave(loader, before);
}

/* What a configuration names on this machine: files, folders and programs. Without its own files the
 * gateway does not start, so their absence is an error. What one server or agent needs is a warning:
 * the gateway serves the others. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/internal.h"

/* Why the file cannot be read; NULL: it can. */
static const char *unreadable(bay_str path)
{
    struct stat seen;
    if (stat(path.at, &seen) != 0 || access(path.at, R_OK) != 0) {
        return strerror(errno);
    }
    return S_ISDIR(seen.st_mode) ? "it is a folder" : NULL;
}

/* A path is no secret: messages may name it, cut. */
static void check_file(config_loader *loader, const config_node *section, const char *key,
                       bay_str path, bool is_warning)
{
    const char *why = loader->is_served && path.len > 0 ? unreadable(path) : NULL;
    if (why == NULL) {
        return;
    }
    void (*report)(config_loader *, uint32_t, const char *, ...) =
        is_warning ? config_warn : config_error;
    report(loader, config_line_of(section, key),
           "%s.%s: the file \"%.*s\" cannot be read: %s: check the path and its permissions",
           loader->path, key, path.len < 100 ? (int)path.len : 100, path.at, why);
}

static void check_tls(config_loader *loader, const config_node *node, const config_server_tls *tls)
{
    const config_node *section = config_member(node, "tls");
    size_t before = config_path_enter(loader, STR("tls"));
    check_file(loader, section, "ca", tls->ca, true);
    check_file(loader, section, "certificate", tls->certificate, true);
    check_file(loader, section, "key", tls->key, true);
    config_path_leave(loader, before);
}

/* The folder that the store is made in. */
static void check_store(config_loader *loader, const config_node *node, bay_str path)
{
    size_t slash = str_find_last(path, '/');
    bay_str folder = slash == path.len ? STR(".") : slash == 0 ? STR("/") : str_head(path, slash);
    char text[4096];
    if (!loader->is_served || path.len == 0 || folder.len >= sizeof(text)) {
        return;
    }
    memcpy(text, folder.at, folder.len);
    text[folder.len] = '\0';
    if (access(text, W_OK | X_OK) != 0) {
        config_error(
            loader, config_line_of(node, "store"),
            "store: no file can be made in \"%.100s\": %s: make the folder, or name another", text,
            strerror(errno));
    }
}

/* A file of keys: an address is read while the gateway runs. */
static bool is_address(bay_str keys)
{
    return str_starts(keys, STR("https://")) || str_starts(keys, STR("http://"));
}

/* `node`: auth, or NULL. */
static void check_auth(config_loader *loader, const config_node *node, const config_auth *auth)
{
    const config_node *issuers = config_member(node, "issuers");
    size_t before = config_path_enter(loader, STR("auth"));
    (void)config_path_enter(loader, STR("issuers"));
    for (size_t i = 0; i < auth->issuer_count; i++) {
        const config_issuer *issuer = &auth->issuers[i];
        const config_node *section = config_member(issuers, issuer->name.at);
        size_t own = config_path_enter(loader, issuer->name);
        if (section != NULL && !is_address(issuer->keys)) {
            check_file(loader, section, "keys", issuer->keys, false);
        }
        if (section != NULL && config_member(section, "tls") != NULL) {
            (void)config_path_enter(loader, STR("tls"));
            check_file(loader, config_member(section, "tls"), "ca", issuer->tls.ca, true);
        }
        config_path_leave(loader, own);
    }
    config_path_leave(loader, before);
}

static void check_profiles(config_loader *loader, const config_node *node, const config *self)
{
    size_t before = config_path_enter(loader, STR("profiles"));
    for (size_t i = 0; i < self->profile_count; i++) {
        const config_profile *profile = &self->profiles[i];
        size_t own = config_path_enter(loader, profile->name);
        check_auth(loader, config_member(config_member(node, profile->name.at), "auth"),
                   &profile->auth);
        config_path_leave(loader, own);
    }
    config_path_leave(loader, before);
}

/* The platform may write it later. */
static void check_token_file(config_loader *loader, const config_node *node,
                             const config_credentials *credentials)
{
    size_t before = config_path_enter(loader, STR("credentials"));
    check_file(loader, config_member(node, "credentials"), "tokenFile", credentials->token_file,
               true);
    config_path_leave(loader, before);
}

void config_check_top_files(config_loader *loader, const config_node *node, const config *self)
{
    const config_node *tls = config_member(node, "tls");
    size_t before = config_path_enter(loader, STR("tls"));
    check_file(loader, tls, "certificate", self->tls.certificate, false);
    check_file(loader, tls, "key", self->tls.key, false);
    check_file(loader, tls, "clientCa", self->tls.client_ca, false);
    config_path_leave(loader, before);
    before = config_path_enter(loader, STR("a2a"));
    check_file(loader, config_member(node, "a2a"), "key", self->a2a.key, false);
    config_path_leave(loader, before);
    check_auth(loader, config_member(node, "auth"), &self->auth);
    check_profiles(loader, config_member(node, "profiles"), self);
    check_store(loader, node, self->store);
}

static bool is_program(const char *path)
{
    struct stat seen;
    return stat(path, &seen) == 0 && S_ISREG(seen.st_mode) && access(path, X_OK) == 0;
}

/* As the child's own PATH has it, where `env` sets one. */
static bool is_found(const config_server *server)
{
    bay_str path = str_of(getenv("PATH"));
    for (size_t i = 0; i < server->env.count; i++) {
        path = str_eq(server->env.at[i].name, STR("PATH")) ? server->env.at[i].value : path;
    }
    while (path.len > 0) {
        char text[PATH_MAX];
        buf file = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
        size_t end = str_find(path, ':');
        buf_str(&file, str_head(path, end));
        buf_char(&file, '/');
        buf_str(&file, server->command);
        buf_char(&file, '\0');
        if (file.err == BAY_OK && is_program(text)) {
            return true;
        }
        path = str_from(path, end < path.len ? end + 1 : path.len);
    }
    return false;
}

static void check_command(config_loader *loader, const config_node *node,
                          const config_server *server)
{
    bay_str command = server->command;
    bool is_path = str_find(command, '/') < command.len;
    if (command.len == 0 || (is_path && (command.at[0] != '/' && server->cwd.len > 0))) {
        return; /* relative to a folder that the child is in first */
    }
    if (is_path ? !is_program(command.at) : !is_found(server)) {
        config_warn(loader, config_line_of(node, "command"),
                    "%s.command: \"%.*s\" %s: install it, or give its path", loader->path,
                    command.len < 100 ? (int)command.len : 100, command.at,
                    is_path ? "is no program that can be started" : "is not found in PATH");
    }
}

void config_check_server_files(config_loader *loader, const config_node *node,
                               const config_server *server)
{
    struct stat seen;
    if (!loader->is_served || server->is_disabled) {
        return;
    }
    check_command(loader, node, server);
    if (server->cwd.len > 0 && (stat(server->cwd.at, &seen) != 0 || !S_ISDIR(seen.st_mode))) {
        config_warn(loader, config_line_of(node, "cwd"),
                    "%s.cwd: there is no folder \"%.*s\": make it, or name another", loader->path,
                    server->cwd.len < 100 ? (int)server->cwd.len : 100, server->cwd.at);
    }
    check_tls(loader, node, &server->tls);
    check_token_file(loader, node, &server->credentials);
}

void config_check_agent_files(config_loader *loader, const config_node *node,
                              const config_agent *agent)
{
    if (!loader->is_served || agent->is_disabled) {
        return;
    }
    size_t before = config_path_enter(loader, STR("verify"));
    check_file(loader, config_member(node, "verify"), "keys", agent->verify.keys, true);
    config_path_leave(loader, before);
    check_tls(loader, node, &agent->tls);
    check_token_file(loader, node, &agent->credentials);
}

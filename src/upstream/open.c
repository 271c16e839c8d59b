/* How the owner of an upstream opens its link: the child's arguments and environment, or the URL
 * with its fields and certificates. */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/server_sandbox.h"
#include "upstream/local.h"

enum { START_KNOWN_MS = 15000, START_UNKNOWN_MS = 60000 };

/* A program that nobody has seen yet may have to be fetched first (npx, uvx). */
static uint32_t start_timeout_ms(const local *self)
{
    uint32_t own = self->base.config->timeouts.start_ms;
    return own > 0 ? own : self->base.revision != NULL ? START_KNOWN_MS : START_UNKNOWN_MS;
}

static mcp_link_options link_options(local *self, upstream_session *at,
                                     const mcp_client_events *events, bay_str capabilities)
{
    const config *settings = self->base.config;
    const config_server *server = self->base.server;
    mcp_link_options options = {.events = events,
                                .user = at,
                                .term_ms = settings->timeouts.terminate_ms,
                                .kill_ms = settings->timeouts.kill_ms};
    mcp_client_options *client = &options.client;
    *client = (mcp_client_options){
        .name = STR("patchbay"),
        .label = server->name,
        .via = self->base.via,
        .version = str_of(bay_version()),
        .capabilities = capabilities,
        .oldest = MCP_REV_2024_11_05,
        .newest = MCP_LATEST,
        .remembered = self->base.revision,
        .probe_timeout_ms = settings->timeouts.probe_ms,
        .start_timeout_ms = start_timeout_ms(self),
        .call_timeout_ms = server->timeout_ms > 0 ? server->timeout_ms : settings->timeouts.call_ms,
        .max_total_ms = settings->timeouts.call_total_ms,
        .max_calls = UPSTREAM_MAX_WAITING,
        .max_message_bytes = settings->limits.message_bytes,
        .max_depth = settings->limits.json_depth,
        .wants_changes = true,
    };
    if (server->protocol == CONFIG_PROTOCOL_LEGACY) {
        client->newest = MCP_LATEST_LEGACY;
    } else if (server->protocol == CONFIG_PROTOCOL_MODERN) {
        client->oldest = MCP_LATEST_LEGACY + 1;
    } else if (server->protocol >= CONFIG_PROTOCOL_FIRST_REVISION) {
        client->oldest = client->newest =
            (mcp_revision_id)(server->protocol - CONFIG_PROTOCOL_FIRST_REVISION);
    }
    return options;
}

/* argv and environment of the process, in one arena. What is inherited first; names given again
 * replace it. */
static bay_err process_arguments(const config_server *server, arena *memory, const char ***out_argv,
                                 const char ***out_env)
{
    extern char **environ;
    size_t inherited = 0;
    while (environ[inherited] != NULL) {
        inherited++;
    }
    const char **argv = arena_array(memory, server->args.count + 2, sizeof(*argv));
    const char **env = arena_array(memory, inherited + server->env.count + 1, sizeof(*env));
    if (argv == NULL || env == NULL) {
        return BAY_ERR_NOMEM;
    }
    argv[0] = server->command.at;
    for (size_t i = 0; i < server->args.count; i++) {
        argv[i + 1] = server->args.at[i].at;
    }
    size_t count = 0;
    for (size_t i = 0; i < inherited; i++) {
        if (server_inherits(server, environ[i])) {
            env[count++] = environ[i];
        }
    }
    for (size_t i = 0; i < server->env.count; i++) {
        const config_pair *pair = &server->env.at[i];
        size_t len = pair->name.len + 1 + pair->value.len;
        char *text = arena_alloc(memory, len + 1);
        if (text == NULL) {
            return BAY_ERR_NOMEM;
        }
        memcpy(text, pair->name.at, pair->name.len);
        text[pair->name.len] = '=';
        memcpy(text + pair->name.len + 1, pair->value.at, pair->value.len);
        text[len] = '\0';
        env[count++] = text;
    }
    *out_argv = argv;
    *out_env = env;
    return BAY_OK;
}

/* Our copies of the configured values (the last ones) may be secrets. */
static void wipe_environment(const char **env, size_t configured)
{
    size_t count = 0;
    while (env != NULL && env[count] != NULL) {
        count++;
    }
    for (size_t i = 0; i < configured && i < count; i++) {
        char *text = (char *)(uintptr_t)env[count - 1 - i];
        mem_wipe(text, strlen(text));
    }
}

static bay_err open_process(local *self, upstream_session *at, const mcp_link_options *options,
                            bay_diag *diag)
{
    const config_server *server = self->base.server;
    arena memory;
    arena_init(&memory, 16 << 20);
    const char **argv = NULL;
    const char **env = NULL;
    process_options child = {
        .cwd = server->cwd.len > 0 ? server->cwd.at : NULL,
        .line_bytes = self->base.config->limits.message_bytes,
        .reply_bytes = self->base.config->limits.reply_bytes,
        .queue_bytes = self->base.config->limits.message_bytes,
    };
    bay_err err = process_arguments(server, &memory, &argv, &env);
    if (err == BAY_OK) {
        err = server_sandbox_make(server, &memory, &child.sandbox);
    }
    if (child.sandbox != NULL && !self->is_sandbox_told) {
        self->is_sandbox_told = true;
        server_sandbox_log(server, child.sandbox);
    }
    if (err == BAY_OK) {
        child.argv = argv;
        child.env = env;
        err = mcp_link_open_stdio(self->base.loop, &child, server->name, options, &at->connection,
                                  diag);
    }
    wipe_environment(env, server->env.count);
    arena_fini(&memory);
    return err;
}

static const char *file_of(bay_str path)
{
    return path.len > 0 ? path.at : NULL;
}

/* A server with authorities or a certificate of its own has an HTTP client of its own. */
static bay_err make_own_client(local *self, bay_diag *diag)
{
    const config_server_tls *tls = &self->base.server->tls;
    tls_options options = {.certificate_file = file_of(tls->certificate),
                           .key_file = file_of(tls->key),
                           .ca_file = file_of(tls->ca)};
    if (self->own_http != NULL || !tls_client_has_own(&options)) {
        return BAY_OK;
    }
    http_client_options client = {.limits = http_client_default_limits};
    client.limits.connect_timeout_ms = self->base.config->timeouts.connect_ms;
    client.limits.connections_per_origin = self->base.config->limits.origin_connections;
    client.limits.reply_bytes = self->base.config->limits.reply_bytes;
    bay_err err = self->tls == NULL ? tls_client_new(&options, &self->tls, diag) : BAY_OK;
    client.tls = self->tls;
    err = err == BAY_OK ? http_client_new(self->base.loop, &client, &self->own_http) : err;
    if (err == BAY_OK) {
        self->http = self->own_http;
    }
    return err;
}

static http_authority *link_authority(void *user, const auth_principal *principal)
{
    const upstream_session *at = user;
    upstream_credentials *credentials = at->owner->credentials;
    if (principal == NULL) {
        principal = at->principal; /* what belongs to the session and to no call of it */
    }
    return principal != NULL ? upstream_credentials_of(credentials, principal)
                             : upstream_credentials_own(credentials);
}

static bay_err make_credentials(local *self, bay_diag *diag)
{
    const config_server *server = self->base.server;
    if (self->credentials != NULL || !config_credentials_are_given(&server->credentials)) {
        return BAY_OK;
    }
    upstream_credentials_options options = {.settings = &server->credentials,
                                            .server = server->name,
                                            .url = server->url,
                                            .tls = self->tls,
                                            .vault = self->vault};
    return upstream_credentials_new(self->base.loop, &options, &self->credentials, diag);
}

static bay_err open_url(local *self, upstream_session *at, mcp_link_options *options,
                        bay_diag *diag)
{
    const config_server *server = self->base.server;
    bay_err err = make_own_client(self, diag);
    err = err == BAY_OK ? make_credentials(self, diag) : err;
    if (err != BAY_OK) {
        return err;
    }
    options->authority = self->credentials != NULL ? link_authority : NULL;
    size_t count = server->headers.count;
    http_field *fields = mem_array(count + 1, sizeof(*fields));
    if (fields == NULL) {
        return BAY_ERR_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        fields[i] = (http_field){server->headers.at[i].name, server->headers.at[i].value};
    }
    err = mcp_link_open_http(self->base.loop, self->http, server->url, fields, count,
                             server->transport == CONFIG_TRANSPORT_SSE, options, &at->connection,
                             diag);
    mem_free(fields);
    return err;
}

/* The skills of an agent: a server of this very loop. */
static bay_err open_agent(local *self, upstream_session *at, const mcp_link_options *options,
                          bay_diag *diag)
{
    bay_str agent = self->base.server->agent;
    mcp_server *engine =
        self->base.engine != NULL ? self->base.engine(self->base.engine_user, agent) : NULL;
    if (engine == NULL) {
        return diag_set(diag, BAY_ERR_NOT_FOUND, "there is no agent \"%.*s\"", BAY_STR(agent));
    }
    return mcp_link_open_local(self->base.loop, engine, options, &at->connection);
}

bay_err local_open(local *self, upstream_session *at, const mcp_client_events *events,
                   bay_diag *diag)
{
    buf capabilities;
    json_writer writer;
    buf_init(&capabilities, 4096);
    json_writer_init(&writer, &capabilities);
    json_open_object(&writer);
    mcp_inputs_write(at->inputs, NULL, &writer);
    json_close_object(&writer);
    bay_err err = capabilities.err;
    if (err == BAY_OK) {
        mcp_link_options options = link_options(self, at, events, buf_view(&capabilities));
        err = self->base.server->agent.len > 0 ? open_agent(self, at, &options, diag)
              : local_is_process(self)         ? open_process(self, at, &options, diag)
                                               : open_url(self, at, &options, diag);
    }
    buf_fini(&capabilities);
    return err;
}

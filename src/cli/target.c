#include "cli/target.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/commands.h"
#include "cli/say.h"
#include "config/server_sandbox.h"

enum {
    MEMORY = 32 << 20,
    SECRETS = 16 << 20,
    FIELD_BYTES = 17 * 1024,
    CALL_MS = 60000,
    PROBE_MS = 3000,
    CONNECT_MS = 10000,
};

void cli_target_fini(cli_target *self)
{
    buf_fini(&self->secrets);
    arena_fini(&self->memory);
    config_free(self->config);
    self->config = NULL;
}

static cli_exit out_of_memory(void)
{
    cli_say("out of memory");
    return CLI_EXIT_FAILED;
}

static void show(cli_target *self, bay_str text)
{
    snprintf(self->shown, sizeof(self->shown), "%.*s",
             (int)(text.len < sizeof(self->shown) ? text.len : sizeof(self->shown) - 1), text.at);
}

/* scheme://host/path: what may be a secret (user information, the query) stays out. */
static void show_url(cli_target *self)
{
    bay_str url = str_head(self->url, strcspn(self->url.at, "?#"));
    size_t scheme = str_find(url, ':');
    bay_str rest = str_from(url, scheme + 3);
    bay_str authority = str_head(rest, str_find(rest, '/'));
    size_t at = str_find_last(authority, '@');
    if (at < authority.len) {
        rest = str_from(rest, at + 1);
    }
    snprintf(self->shown, sizeof(self->shown), "%.*s://%.*s", BAY_STR(str_head(url, scheme)),
             (int)(rest.len < 180 ? rest.len : 180), rest.at);
}

/* ---- protocol and time ----------------------------------------------------------------------- */

static void take_protocol(cli_target *self, config_protocol protocol)
{
    self->oldest = MCP_REV_2024_11_05;
    self->newest = MCP_LATEST;
    if (protocol == CONFIG_PROTOCOL_LEGACY) {
        self->newest = MCP_LATEST_LEGACY;
    } else if (protocol == CONFIG_PROTOCOL_MODERN) {
        self->oldest = MCP_LATEST_LEGACY + 1;
    } else if (protocol >= CONFIG_PROTOCOL_FIRST_REVISION) {
        self->oldest = self->newest = (mcp_revision_id)(protocol - CONFIG_PROTOCOL_FIRST_REVISION);
    }
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* --timeout is a bound that nothing extends; the one of the configuration is of silence. */
static void take_times(cli_target *self, const cli_arguments *arguments,
                       const config_server *server)
{
    self->timeout_ms = CALL_MS;
    self->probe_ms = PROBE_MS;
    self->connect_ms = CONNECT_MS;
    if (server != NULL) {
        const config_timeouts *times = &self->config->timeouts;
        self->timeout_ms = server->timeout_ms > 0 ? server->timeout_ms : times->call_ms;
        self->total_ms = times->call_total_ms;
        self->probe_ms = times->probe_ms;
        self->connect_ms = times->connect_ms;
    }
    if (arguments->timeout_ms > 0) {
        self->timeout_ms = self->total_ms = arguments->timeout_ms;
        self->probe_ms = least(self->probe_ms, arguments->timeout_ms);
        self->connect_ms = least(self->connect_ms, arguments->timeout_ms);
    }
}

/* ---- header fields --------------------------------------------------------------------------- */

static bool is_given(const http_field *fields, size_t count, bay_str name)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq_nocase(fields[i].name, name)) {
            return true;
        }
    }
    return false;
}

/* --token-file: the first line as a bearer token, which stands in no command line. */
static cli_exit take_token(cli_target *self, const cli_arguments *arguments)
{
    char header[4096];
    bay_diag diag = {0};
    bay_str name = {NULL, 0};
    if (arguments->token_file == NULL) {
        return CLI_EXIT_OK;
    }
    snprintf(header, sizeof(header), "Authorization: @%s", arguments->token_file);
    buf_lit(&self->secrets, "Bearer ");
    bay_err err = cli_header_read(header, &name, &self->secrets, &diag);
    if (err != BAY_OK) {
        cli_say("%s", diag.text[0] != '\0' ? diag.text : bay_err_text(err));
        return err == BAY_ERR_NOMEM || err == BAY_ERR_IO ? CLI_EXIT_FAILED : CLI_EXIT_USAGE;
    }
    self->token = buf_view(&self->secrets);
    return CLI_EXIT_OK;
}

/* Those of the command line first; they replace the configured ones of the same name. */
static cli_exit take_fields(cli_target *self, const cli_arguments *arguments,
                            const config_server *server)
{
    size_t configured = server != NULL ? server->headers.count : 0;
    size_t given = arguments->header_count;
    http_field *fields = arena_array(&self->memory, given + configured + 2, sizeof(*fields));
    size_t *offsets = arena_array(&self->memory, given + 1, sizeof(*offsets));
    if (fields == NULL || offsets == NULL) {
        return out_of_memory();
    }
    /* enough for what a file may hold, so that growing leaves no copies behind */
    if (!buf_reserve(&self->secrets, (given + 1) * FIELD_BYTES)) {
        return out_of_memory();
    }
    cli_exit code = take_token(self, arguments);
    if (code != CLI_EXIT_OK) {
        return code;
    }
    for (size_t i = 0; i < given; i++) {
        bay_diag diag = {0};
        offsets[i] = self->secrets.len;
        bay_err err =
            cli_header_read(arguments->headers[i], &fields[i].name, &self->secrets, &diag);
        if (err != BAY_OK) {
            cli_say("%s", diag.text[0] != '\0' ? diag.text : bay_err_text(err));
            return err == BAY_ERR_NOMEM || err == BAY_ERR_IO ? CLI_EXIT_FAILED : CLI_EXIT_USAGE;
        }
    }
    offsets[given] = self->secrets.len; /* from here the bytes stay where they are */
    for (size_t i = 0; i < given; i++) {
        fields[i].value = (bay_str){self->secrets.at + offsets[i], offsets[i + 1] - offsets[i]};
    }
    size_t count = given;
    if (self->token.len > 0) {
        fields[count++] = (http_field){STR("Authorization"), self->token};
        given = count;
    }
    for (size_t i = 0; i < configured; i++) {
        const config_pair *pair = &server->headers.at[i];
        if (!is_given(fields, given, pair->name)) {
            fields[count++] = (http_field){pair->name, pair->value};
        }
    }
    self->fields = fields;
    self->field_count = count;
    return CLI_EXIT_OK;
}

/* ---- processes ------------------------------------------------------------------------------- */

/* What is inherited; names given again replace it. */
static cli_exit take_environment(cli_target *self, const config_server *server)
{
    const config_map *env = &server->env;
    size_t inherited = 0;
    size_t bytes = 0;
    while (environ[inherited] != NULL) {
        inherited++;
    }
    for (size_t i = 0; i < env->count; i++) {
        bytes += env->at[i].name.len + env->at[i].value.len + 2;
    }
    const char **all = arena_array(&self->memory, inherited + env->count + 1, sizeof(*all));
    if (all == NULL || !buf_reserve(&self->secrets, bytes)) {
        return out_of_memory();
    }
    size_t count = 0;
    for (size_t i = 0; i < inherited; i++) {
        if (server_inherits(server, environ[i])) {
            all[count++] = environ[i];
        }
    }
    for (size_t i = 0; i < env->count; i++) {
        all[count++] = self->secrets.at + self->secrets.len;
        buf_str(&self->secrets, env->at[i].name);
        buf_char(&self->secrets, '=');
        buf_str(&self->secrets, env->at[i].value);
        buf_char(&self->secrets, '\0');
    }
    self->env = all;
    return CLI_EXIT_OK;
}

static cli_exit take_command(cli_target *self, const config_server *server)
{
    const char **argv = arena_array(&self->memory, server->args.count + 2, sizeof(*argv));
    if (argv == NULL) {
        return out_of_memory();
    }
    argv[0] = server->command.at;
    for (size_t i = 0; i < server->args.count; i++) {
        argv[i + 1] = server->args.at[i].at;
    }
    self->argv = argv;
    self->cwd = server->cwd.len > 0 ? server->cwd.at : NULL;
    if (server_sandbox_make(server, &self->memory, &self->sandbox) != BAY_OK) {
        return out_of_memory();
    }
    return take_environment(self, server);
}

/* ---- names ----------------------------------------------------------------------------------- */

static cli_exit say_unknown(const config *settings, const char *path, bay_str name)
{
    buf known;
    buf_init(&known, 1 << 20);
    for (size_t i = 0; i < settings->server_count && i < 40; i++) {
        buf_str(&known, i > 0 ? STR(", ") : STR(""));
        buf_str(&known, settings->servers[i].name);
    }
    cli_say("%s has no server \"%.*s\"; its servers: %.*s", path, BAY_STR(name), (int)known.len,
            known.at != NULL ? known.at : "");
    buf_fini(&known);
    return CLI_EXIT_USAGE;
}

static cli_exit find_server(cli_target *self, const cli_arguments *arguments,
                            const config_server **out)
{
    const char *path = NULL;
    bay_err err = cli_load_config(arguments, false, &path, &self->config);
    if (err != BAY_OK) {
        return err == BAY_ERR_NOMEM ? CLI_EXIT_FAILED : CLI_EXIT_CONFIG;
    }
    const config_server *server = config_server_find(self->config, arguments->target);
    if (server == NULL) {
        return say_unknown(self->config, path, arguments->target);
    }
    if (server->is_disabled) {
        cli_say("%.*s is disabled in %s, line %u", BAY_STR(server->name), path, server->line);
        return CLI_EXIT_CONFIG;
    }
    *out = server;
    return CLI_EXIT_OK;
}

tls_options cli_tls_options(const cli_arguments *arguments, const config_server_tls *configured)
{
    tls_options out = arguments->tls;
    if (configured == NULL) {
        return out;
    }
    if (out.ca_file == NULL && !out.insecure_no_verify && configured->ca.len > 0) {
        out.ca_file = configured->ca.at;
    }
    if (out.certificate_file == NULL && configured->certificate.len > 0) {
        out.certificate_file = configured->certificate.at;
        out.key_file = configured->key.at;
    }
    return out;
}

static cli_exit check_fit(const cli_target *self, const cli_arguments *arguments)
{
    if (self->is_process && arguments->header_count > 0) {
        cli_say("--header is for a URL, and %s is a command", self->shown);
        return CLI_EXIT_USAGE;
    }
    bool is_https = str_eq_nocase(str_head(self->url, 8), STR("https://"));
    if (tls_client_has_own(&arguments->tls) && !is_https) {
        cli_say("--ca, --cert, --key and --insecure are for an https:// URL, and %s is %s",
                self->shown, self->is_process ? "a command" : "none");
        return CLI_EXIT_USAGE;
    }
    bool wants_process = arguments->transport == CONFIG_TRANSPORT_STDIO;
    bool wants_url = arguments->transport > CONFIG_TRANSPORT_STDIO;
    if ((self->is_process && wants_url) || (!self->is_process && wants_process)) {
        cli_say("--transport does not fit %s: stdio is for a command, http and sse are for a URL",
                self->shown);
        return CLI_EXIT_USAGE;
    }
    return CLI_EXIT_OK;
}

static cli_exit resolve_name(cli_target *self, const cli_arguments *arguments,
                             const config_server *server)
{
    self->name = server->name;
    show(self, server->name);
    self->is_process = server->command.len > 0;
    self->url = server->url;
    cli_exit code = check_fit(self, arguments);
    if (code != CLI_EXIT_OK) {
        return code;
    }
    if (self->is_process) {
        return take_command(self, server);
    }
    self->is_sse = server->transport == CONFIG_TRANSPORT_SSE;
    bool is_user = server->credentials.grant == CONFIG_GRANT_USER;
    bool is_given = config_credentials_are_given(&server->credentials);
    self->credentials = is_given && !is_user ? &server->credentials : NULL;
    self->granted = is_user ? &server->credentials : NULL;
    self->tls = cli_tls_options(arguments, &server->tls);
    return take_fields(self, arguments, server);
}

cli_exit cli_target_resolve(cli_target *out, const cli_arguments *arguments)
{
    const config_server *server = NULL;
    cli_exit code = CLI_EXIT_OK;
    *out = (cli_target){0};
    arena_init(&out->memory, MEMORY);
    buf_init_secret(&out->secrets, SECRETS);
    out->name = STR("server");
    switch (arguments->target_kind) {
    case CLI_TARGET_ARGV:
        out->is_process = true;
        out->argv = (const char *const *)cli_target_argv(arguments);
        show(out, str_of(out->argv[0]));
        break;
    case CLI_TARGET_URL:
        out->url = arguments->target;
        show_url(out);
        out->tls = cli_tls_options(arguments, NULL);
        code = check_fit(out, arguments);
        code = code == CLI_EXIT_OK ? take_fields(out, arguments, NULL) : code;
        break;
    default:
        code = find_server(out, arguments, &server);
        code = code == CLI_EXIT_OK ? resolve_name(out, arguments, server) : code;
        break;
    }
    if (code != CLI_EXIT_OK) {
        return code;
    }
    bool is_default = arguments->protocol == CONFIG_PROTOCOL_AUTO && server != NULL;
    take_protocol(out, is_default ? server->protocol : arguments->protocol);
    take_times(out, arguments, server);
    if (arguments->transport == CONFIG_TRANSPORT_SSE) {
        out->is_sse = true;
    } else if (arguments->transport == CONFIG_TRANSPORT_HTTP) {
        out->is_sse = false;
    }
    return CLI_EXIT_OK;
}

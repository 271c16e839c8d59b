/* serve and stdio: the gateway as a program. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/admin_client.h"
#include "cli/commands.h"
#include "cli/say.h"
#include "gateway/gateway.h"

static log_level level_of(const cli_arguments *arguments, const config *settings)
{
    if (arguments->verbosity == 0) {
        return settings->log.level;
    }
    return arguments->verbosity == 1 ? LOG_INFO : LOG_DEBUG;
}

static void put_scheme(buf *out, const gateway *running)
{
    buf_str(out, gateway_is_tls(running) ? STR("https://") : STR("http://"));
}

/* Every address that is listened on, as it is. */
static void put_addresses(buf *out, const gateway *running)
{
    for (size_t i = 0; i < gateway_address_count(running); i++) {
        buf_str(out, i == 0 ? STR("") : STR("\n                   "));
        put_scheme(out, running);
        gateway_write_address(running, i, out);
        buf_lit(out, "/mcp");
    }
    if (!gateway_is_local(running)) {
        buf_lit(out, "\nOther machines can reach it.");
    }
}

/* As a program, here or elsewhere, is told to find it. */
static void put_origin(buf *out, const gateway *running)
{
    put_scheme(out, running);
    gateway_write_reachable(running, out);
}

static void put_agents(buf *out, const gateway *running)
{
    size_t count = gateway_agent_count(running);
    if (count > 0) {
        buf_printf(out, "\n%zu agents:\n", count);
    }
    for (size_t i = 0; i < count; i++) {
        buf_lit(out, "  ");
        put_origin(out, running);
        buf_lit(out, "/a2a/");
        output_line(out, gateway_agent_name(running, i));
        buf_char(out, '\n');
    }
}

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

/* "12 tools of 5 servers; 1 is still starting, 1 failed (the log says why)" */
static void put_lists(buf *out, const gateway *running)
{
    gateway_servers servers = gateway_count_servers(running);
    const struct {
        size_t count;
        const char *what;
    } parts[] = {
        {servers.starting, "still starting"},
        {servers.down, "failed (the log says why)"},
        {servers.asleep, "started when needed"},
    };
    size_t tools = gateway_tool_count(running);
    buf_printf(out, "%zu tool%s of %zu server%s", tools, plural(tools), servers.count,
               plural(servers.count));
    bool is_first = true;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].count > 0) {
            buf_printf(out, "%s%zu %s", is_first ? "; " : ", ", parts[i].count, parts[i].what);
            is_first = false;
        }
    }
}

static void put_tools(buf *out, const gateway *running)
{
    enum { SHOWN = 40 };
    size_t count = gateway_tool_count(running);
    put_lists(out, running);
    buf_str(out, count > 0 ? STR(":\n") : STR(".\n"));
    for (size_t i = 0; i < count && i < SHOWN; i++) {
        buf_lit(out, "  ");
        output_line(out, gateway_tool_name(running, i));
        buf_char(out, '\n');
    }
    if (count > SHOWN) {
        buf_printf(out, "  … and %zu more\n", count - SHOWN);
    }
}

/* What there is and how to plug it in. */
static void put_banner(buf *out, const gateway *running)
{
    buf_lit(out, "\nPatchbay is ready: ");
    put_addresses(out, running);
    buf_lit(out, "\n\n");
    put_tools(out, running);
    put_agents(out, running);
    buf_lit(out, "\nTo plug a desktop host in, paste this into its configuration:\n\n"
                 "  {\"mcpServers\": {\"patchbay\": {\"url\": \"");
    put_origin(out, running);
    buf_lit(out, "/mcp\"}}}\n\n");
}

static void say_starting(const gateway *running)
{
    gateway_servers servers = gateway_count_servers(running);
    if (servers.starting > 0) {
        cli_say("%zu server%s starting", servers.starting, plural(servers.starting));
    }
}

/* Tells a person what happens. `user`: is it on stdio? Then there is no address to tell of. */
static void cmd_gateway_tell(void *user, gateway *running, const char *what)
{
    const bool *on_stdio = user;
    bool is_started = strcmp(what, "started") == 0;
    buf text;
    if (strcmp(what, "starting") == 0) {
        say_starting(running);
        return;
    }
    if (!is_started && strcmp(what, "listed") != 0) {
        return;
    }
    buf_init(&text, 1 << 20);
    if (is_started && !*on_stdio) {
        put_banner(&text, running);
        fwrite(text.at, 1, text.len, stderr);
    } else {
        put_lists(&text, running);
        cli_say("%s: %.*s", is_started ? "ready" : "the lists are complete", (int)text.len,
                text.at);
    }
    buf_fini(&text);
}

static int run(const cli_arguments *arguments, bool on_stdio)
{
    const config *settings = NULL;
    gateway *running = NULL;
    bay_diag diag = {0};
    char admin[SOCKET_UNIX_PATH_BYTES + 8];
    gateway_options options = {.workers = arguments->workers,
                               .on_stdio = on_stdio,
                               .is_watched = isatty(STDERR_FILENO) == 1};
    /* over stdio there is no TLS: what the file names for it may be out of reach */
    if (cli_load_config(arguments, !on_stdio, &options.config_path, &settings) != BAY_OK) {
        return CLI_EXIT_CONFIG;
    }
    cli_log_open(level_of(arguments, settings), settings->log.format);
    options.config = settings;
    options.listen = str_of(arguments->listen);
    options.is_open = arguments->is_open;
    options.profile = str_of(arguments->profile);
    if (!on_stdio && settings->admin.listen.at == NULL) {
        cli_admin_default(admin);
        options.admin = str_of(admin);
    }
    options.told = cmd_gateway_tell;
    options.user = &on_stdio;
    bay_err err = gateway_new(&options, &running, &diag);
    config_free(settings);
    if (err == BAY_OK) {
        err = gateway_run(running);
        snprintf(diag.text, sizeof(diag.text), "%s", bay_err_text(err));
    }
    if (err != BAY_OK) {
        cli_say("%s", diag.text);
    }
    gateway_free(running);
    return err == BAY_OK ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}

int cmd_serve(const cli_arguments *arguments)
{
    return run(arguments, false);
}

int cmd_stdio(const cli_arguments *arguments)
{
    return run(arguments, true);
}

/* serve and stdio: the gateway as a program. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
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

/* Tells a person what there is and how to plug it in. */
static void tell(void *user, gateway *running, const char *what)
{
    enum { SHOWN = 40 };
    buf text;
    (void)user;
    buf_init(&text, 1 << 20);
    if (strcmp(what, "started") == 0) {
        size_t count = gateway_tool_count(running);
        buf_lit(&text, "\nPatchbay is ready: ");
        put_addresses(&text, running);
        buf_printf(&text, "\n\n%zu tools:\n", count);
        for (size_t i = 0; i < count && i < SHOWN; i++) {
            buf_lit(&text, "  ");
            output_line(&text, gateway_tool_name(running, i));
            buf_char(&text, '\n');
        }
        if (count > SHOWN) {
            buf_printf(&text, "  … and %zu more\n", count - SHOWN);
        }
        put_agents(&text, running);
        buf_lit(&text, "\nTo plug a desktop host in, paste this into its configuration:\n\n"
                       "  {\"mcpServers\": {\"patchbay\": {\"url\": \"");
        put_origin(&text, running);
        buf_lit(&text, "/mcp\"}}}\n\n");
        fwrite(text.at, 1, text.len, stderr);
    }
    buf_fini(&text);
}

static int run(const cli_arguments *arguments, bool on_stdio)
{
    const config *settings = NULL;
    gateway *running = NULL;
    bay_diag diag = {0};
    gateway_options options = {.workers = arguments->workers, .on_stdio = on_stdio};
    if (cli_load_config(arguments, &options.config_path, &settings) != BAY_OK) {
        return CLI_EXIT_CONFIG;
    }
    cli_log_open(level_of(arguments, settings), settings->log.format);
    options.config = settings;
    options.listen = str_of(arguments->listen);
    options.is_open = arguments->is_open;
    options.profile = str_of(arguments->profile);
    options.told = on_stdio ? NULL : tell;
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

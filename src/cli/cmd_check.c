/* check: what serve would say of a configuration, and what it would do. Of commands and addresses no
 * more is shown than the program and the host: arguments and queries may hold secrets. */
#include "base/err.h"
#include "base/mem.h"
#include "base/shown.h"
#include "base/str.h"
#include "cli/check_rules.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/say.h"
#include "gateway/gateway.h"
#include "wire/uri.h"
#include "json/writer.h"

enum { TITLE_COLUMNS = 10, NAME_COLUMNS = 20 };

typedef struct check {
    const cli_arguments *arguments;
    config_report report;
    const config *settings; /* NULL: it was refused */
    bool is_local;          /* only this machine could reach it */
    output device;
    buf text;
} check;

/* ---- what is shown of a server --------------------------------------------------------------- */

static const char *kind_of(const config_server *server)
{
    return server->command.len > 0 ? "command" : server->agent.len > 0 ? "agent" : "url";
}

/* "https://host:port" of an address, the program of a command. */
static bay_str shown_of(bay_str command, bay_str url)
{
    size_t scheme = str_find(url, ':') + 3;
    if (command.len > 0) {
        return command;
    }
    return url.len < scheme ? url : str_head(url, scheme + str_find(str_from(url, scheme), '/'));
}

static const char *start_of(const config_server *server)
{
    return server->is_disabled                  ? "left out: disabled"
           : server->start == CONFIG_START_LAZY ? "started when it is needed"
           : server->command.len > 0            ? "started with the gateway"
                                                : "connected with the gateway";
}

/* ---- for a person ---------------------------------------------------------------------------- */

static void put_title(check *self, const char *title)
{
    output_color(&self->device, &self->text, OUTPUT_BOLD);
    buf_printf(&self->text, "%-*s", TITLE_COLUMNS, title);
    output_color(&self->device, &self->text, OUTPUT_PLAIN);
}

static config_list addresses_of(const check *self, bay_str *given)
{
    *given = str_of(self->arguments->listen);
    return given->len > 0 ? (config_list){given, 1} : self->settings->listen;
}

static void put_listen(check *self)
{
    bay_str given;
    config_list addresses = addresses_of(self, &given);
    for (size_t i = 0; i < addresses.count; i++) {
        put_title(self, i == 0 ? "listens" : "");
        buf_str(&self->text,
                self->settings->tls.certificate.len > 0 ? STR("https://") : STR("http://"));
        output_line(&self->text, addresses.at[i]);
        buf_lit(&self->text, "/mcp\n");
    }
    put_title(self, "");
    buf_str(&self->text, self->is_local ? STR("only this machine can reach it\n")
                                        : STR("other machines can reach it\n"));
}

/* Who comes in, and whether rules say what they may. */
static void put_access(check *self)
{
    const config *settings = self->settings;
    const config_auth *auth = &settings->auth;
    const char *between = "";
    put_title(self, "callers");
    for (size_t i = 0; i < auth->issuer_count; i++) {
        buf_printf(&self->text, "%stokens of ", between);
        output_line(&self->text, auth->issuers[i].name);
        between = ", ";
    }
    if (auth->api_keys) {
        buf_printf(&self->text, "%sAPI keys", between);
        between = ", ";
    }
    if (auth->certificates || settings->tls.require_client_certificate) {
        buf_printf(&self->text, "%sclient certificates", between);
        between = ", ";
    }
    buf_str(&self->text, between[0] == '\0' ? STR("whoever reaches it") : STR(""));
    buf_char(&self->text, '\n');
    if (settings->rules != NULL) {
        put_title(self, "rules");
        check_put_rules(settings, &self->text);
    }
}

static void put_row(check *self, size_t index, const char *title, bay_str name, bay_str what)
{
    buf row;
    buf_init(&row, 1 << 12);
    output_line(&row, name);
    put_title(self, index == 0 ? title : "");
    buf_printf(&self->text, "%-*.*s ", NAME_COLUMNS, BAY_STR(buf_view(&row)));
    output_line(&self->text, what);
    buf_fini(&row);
}

static void put_servers(check *self)
{
    const config *settings = self->settings;
    for (size_t i = 0; i < settings->server_count; i++) {
        const config_server *server = &settings->servers[i];
        put_row(self, i, "servers", server->name,
                server->agent.len > 0 ? STR("the skills of the agent of this name")
                                      : shown_of(server->command, server->url));
        buf_printf(&self->text, ", %s%s\n", start_of(server),
                   server->sandbox.is_enabled ? ", in a sandbox" : "");
    }
    if (settings->server_count > 0) {
        put_title(self, "names");
        output_line(&self->text, settings->servers[0].name);
        output_line(&self->text, settings->separator);
        buf_str(&self->text, settings->tool_mode == CONFIG_TOOLS_SEARCH
                                 ? STR("TOOL, found by search_tools\n")
                                 : STR("TOOL\n"));
    }
}

static void put_others(check *self)
{
    const config *settings = self->settings;
    for (size_t i = 0; i < settings->profile_count; i++) {
        const config_profile *profile = &settings->profiles[i];
        buf path;
        buf_init(&path, 1 << 10);
        buf_lit(&path, "/mcp/@");
        buf_str(&path, profile->name);
        put_row(self, i, "profiles", buf_view(&path), (bay_str){"", 0});
        for (size_t k = 0; k < profile->servers.count; k++) {
            buf_str(&self->text, k == 0 ? STR("") : STR(", "));
            output_line(&self->text, profile->servers.at[k]);
        }
        buf_str(&self->text, profile->servers.at == NULL ? STR("all servers") : STR(""));
        buf_str(&self->text, profile->auth.none                     ? STR(", for everybody\n")
                             : config_auth_is_given(&profile->auth) ? STR(", with its own auth\n")
                                                                    : STR("\n"));
        buf_fini(&path);
    }
    for (size_t i = 0; i < settings->agent_count; i++) {
        const config_agent *agent = &settings->agents[i];
        buf path;
        buf_init(&path, 1 << 10);
        buf_lit(&path, "/a2a/");
        buf_str(&path, agent->name);
        put_row(self, i, "agents", buf_view(&path),
                agent->tools.at != NULL
                    ? STR("made of tools")
                    : shown_of((bay_str){"", 0}, agent->url.len > 0 ? agent->url : agent->card));
        buf_str(&self->text, agent->is_disabled ? STR(", left out: disabled\n") : STR("\n"));
        buf_fini(&path);
    }
    put_title(self, "sessions");
    buf_str(&self->text, settings->store.len > 0 ? STR("kept in ") : STR("end with the gateway"));
    output_line(&self->text, settings->store);
    buf_char(&self->text, '\n');
}

static void put_verdict(check *self)
{
    const config_report *report = &self->report;
    output_color(&self->device, &self->text, report->errors > 0 ? OUTPUT_RED : OUTPUT_GREEN);
    buf_str(&self->text, report->errors > 0 ? STR("refused") : STR("good"));
    output_color(&self->device, &self->text, OUTPUT_PLAIN);
    buf_printf(&self->text, ": %zu error%s, %zu warning%s\n", report->errors,
               report->errors == 1 ? "" : "s", report->warnings, report->warnings == 1 ? "" : "s");
}

static cli_exit say(check *self, cli_exit code)
{
    buf messages;
    buf_init(&messages, 1 << 20);
    config_report_write(&self->report, &messages);
    shown_write(stderr, buf_view(&messages), SHOWN_TEXT);
    buf_fini(&messages);
    if (self->report.errors == 0) {
        put_listen(self);
        put_access(self);
        put_servers(self);
        put_others(self);
    }
    put_verdict(self);
    return cli_print(&self->device, &self->text, code);
}

/* ---- for an editor --------------------------------------------------------------------------- */

static void write_messages(const check *self, json_writer *out)
{
    json_key_lit(out, "messages");
    json_open_array(out);
    for (size_t i = 0; i < self->report.count; i++) {
        const config_message *message = &self->report.messages[i];
        json_open_object(out);
        json_key_lit(out, "line");
        json_put_uint(out, message->line);
        json_key_lit(out, "severity");
        json_put_str(out, message->is_warning ? STR("warning") : STR("error"));
        json_key_lit(out, "text");
        json_put_str(out, str_of(message->text));
        json_close_object(out);
    }
    json_close_array(out);
}

static void write_place(json_writer *out, bay_str name, uint32_t line, const char *kind,
                        bay_str target, bool is_disabled)
{
    json_key_lit(out, "name");
    json_put_str(out, name);
    json_key_lit(out, "line");
    json_put_uint(out, line);
    json_key_lit(out, "kind");
    json_put_str(out, str_of(kind));
    json_key_lit(out, "target");
    json_put_str(out, target);
    json_key_lit(out, "disabled");
    json_put_bool(out, is_disabled);
}

static void write_access(const config *settings, json_writer *out)
{
    const config_auth *auth = &settings->auth;
    json_key_lit(out, "issuers");
    json_open_array(out);
    for (size_t i = 0; i < auth->issuer_count; i++) {
        json_put_str(out, auth->issuers[i].name);
    }
    json_close_array(out);
    json_key_lit(out, "apiKeys");
    json_put_bool(out, auth->api_keys);
    json_key_lit(out, "certificates");
    json_put_bool(out, auth->certificates || settings->tls.require_client_certificate);
    check_write_rules(settings, out);
}

static void write_served(const check *self, json_writer *out)
{
    const config *settings = self->settings;
    bay_str given;
    config_list addresses = addresses_of(self, &given);
    json_key_lit(out, "listen");
    json_open_array(out);
    for (size_t i = 0; i < addresses.count; i++) {
        json_put_str(out, addresses.at[i]);
    }
    json_close_array(out);
    json_key_lit(out, "local");
    json_put_bool(out, self->is_local);
    write_access(settings, out);
    json_key_lit(out, "servers");
    json_open_array(out);
    for (size_t i = 0; i < settings->server_count; i++) {
        const config_server *server = &settings->servers[i];
        json_open_object(out);
        write_place(out, server->name, server->line, kind_of(server),
                    shown_of(server->command, server->url), server->is_disabled);
        json_key_lit(out, "sandbox");
        json_put_bool(out, server->sandbox.is_enabled);
        json_close_object(out);
    }
    json_close_array(out);
    json_key_lit(out, "profiles");
    json_open_array(out);
    for (size_t i = 0; i < settings->profile_count; i++) {
        json_open_object(out);
        json_key_lit(out, "name");
        json_put_str(out, settings->profiles[i].name);
        json_key_lit(out, "line");
        json_put_uint(out, settings->profiles[i].line);
        json_close_object(out);
    }
    json_close_array(out);
    json_key_lit(out, "agents");
    json_open_array(out);
    for (size_t i = 0; i < settings->agent_count; i++) {
        const config_agent *agent = &settings->agents[i];
        bool is_made = agent->tools.at != NULL;
        json_open_object(out);
        write_place(out, agent->name, agent->line, is_made ? "tools" : "url",
                    shown_of((bay_str){"", 0}, agent->url.len > 0 ? agent->url : agent->card),
                    agent->is_disabled);
        json_close_object(out);
    }
    json_close_array(out);
}

static cli_exit write_json(check *self, cli_exit code)
{
    json_writer out;
    json_writer_init(&out, &self->text);
    json_open_object(&out);
    json_key_lit(&out, "file");
    json_put_str(&out, str_of(self->report.name));
    json_key_lit(&out, "good");
    json_put_bool(&out, code == CLI_EXIT_OK);
    json_key_lit(&out, "errors");
    json_put_uint(&out, self->report.errors);
    json_key_lit(&out, "warnings");
    json_put_uint(&out, self->report.warnings);
    write_messages(self, &out);
    if (self->settings != NULL && self->report.errors == 0) {
        write_served(self, &out);
    }
    json_close_object(&out);
    buf_char(&self->text, '\n');
    return cli_print(&self->device, &self->text, code);
}

static cli_exit run(check *self)
{
    const cli_arguments *arguments = self->arguments;
    bay_err err =
        config_load_file(cli_config_path(arguments), true, &self->settings, &self->report);
    if (err == BAY_OK) {
        gateway_options options = {.config = self->settings,
                                   .listen = str_of(arguments->listen),
                                   .is_open = arguments->is_open};
        err = gateway_check(&options, &self->report, &self->is_local);
    }
    if (err == BAY_ERR_NOMEM) {
        cli_say("out of memory");
        return CLI_EXIT_FAILED;
    }
    cli_exit code = self->report.errors > 0 ? CLI_EXIT_CONFIG : CLI_EXIT_OK;
    return arguments->is_json ? write_json(self, code) : say(self, code);
}

int cmd_check(const cli_arguments *arguments)
{
    check *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        cli_say("out of memory");
        return CLI_EXIT_FAILED;
    }
    self->arguments = arguments;
    cli_print_init(&self->device, &self->text, arguments);
    cli_exit code = run(self);
    buf_fini(&self->text);
    config_free(self->settings);
    mem_free(self);
    return code;
}

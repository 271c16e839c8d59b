/* The options of the command line, wherever they stand before `--`, and their values. */
#include "cli/arguments_parser.h"

#include "a2a/protocol.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/arguments_table.h"
#include "config/internal.h"

/* ---- values of options ----------------------------------------------------------------------- */

static bay_err take_timeout(cli_parser *self, const char *value)
{
    static const config_key row = {
        .type = CONFIG_TYPE_DURATION, .min = 1, .max = 24ULL * 3600 * 1000};
    uint64_t milliseconds = 0;
    bool is_bare = false;
    bay_err err = config_value_parse(&row, str_of(value), &milliseconds, &is_bare);
    milliseconds *= is_bare ? 1000 : 1;
    if (err != BAY_OK || milliseconds > row.max) {
        return diag_set(self->diag, BAY_ERR_INVALID,
                        "--timeout needs a duration up to 24h, such as 500ms, 10s or 2m");
    }
    self->out->timeout_ms = (uint32_t)milliseconds;
    return BAY_OK;
}

/* "90d" as well: keys live longer than requests. */
static bay_err take_expires(cli_parser *self, const char *value)
{
    bay_str text = str_of(value);
    uint64_t days = 0;
    uint64_t milliseconds = 0;
    bool is_bare = false;
    static const config_key row = {
        .type = CONFIG_TYPE_DURATION, .min = 1, .max = 24ULL * 3600 * 1000 * 3650};
    bool is_days = text.len > 1 && text.at[text.len - 1] == 'd' &&
                   str_uint(str_head(text, text.len - 1), &days) && days <= 3650;
    bay_err err = is_days ? BAY_OK : config_value_parse(&row, text, &milliseconds, &is_bare);
    milliseconds = is_days ? days * 24 * 3600 * 1000 : milliseconds;
    if (err != BAY_OK || is_bare || milliseconds == 0) {
        return diag_set(self->diag, BAY_ERR_INVALID,
                        "--expires needs a duration up to 3650d, such as 12h or 90d");
    }
    self->out->expires_ms = milliseconds;
    return BAY_OK;
}

static bay_err take_workers(cli_parser *self, const char *value)
{
    uint64_t workers = 0;
    if (!str_uint(str_of(value), &workers) || workers < 1 || workers > 256) {
        return diag_set(self->diag, BAY_ERR_INVALID,
                        "--workers needs a whole number from 1 to 256");
    }
    self->out->workers = (uint32_t)workers;
    return BAY_OK;
}

/* The words are those of the configuration. */
static bay_err take_protocol(cli_parser *self, const char *value)
{
    const config_key *row = config_key_find(CONFIG_SCOPE_SERVER, STR("protocol"));
    int index = config_choice_find(row->extra, str_of(value));
    if (index < 0) {
        return diag_set(self->diag, BAY_ERR_INVALID,
                        "--protocol needs auto, legacy, modern or a revision such as 2025-11-25");
    }
    self->out->protocol = (config_protocol)index;
    return BAY_OK;
}

static bay_err take_transport(cli_parser *self, const char *value)
{
    int index = config_choice_find("auto|stdio|http|sse", str_of(value));
    if (index < 0) {
        return diag_set(self->diag, BAY_ERR_INVALID, "--transport needs auto, stdio, http or sse");
    }
    self->out->transport = (config_transport)index;
    return BAY_OK;
}

static bay_err take_header(cli_parser *self, const char *value)
{
    bay_str text = str_of(value);
    size_t colon = str_find(text, ':');
    if (colon == 0 || colon == text.len) {
        return diag_set(self->diag, BAY_ERR_INVALID, "--header needs 'NAME: VALUE'");
    }
    if (self->out->header_count == CLI_HEADERS) {
        return diag_set(self->diag, BAY_ERR_INVALID, "--header was given more than %d times",
                        CLI_HEADERS);
    }
    self->out->headers[self->out->header_count++] = value;
    return BAY_OK;
}

static bay_err take_file(cli_parser *self, const char *value)
{
    if (self->out->file_count == CLI_FILES) {
        return diag_set(self->diag, BAY_ERR_INVALID, "--file was given more than %d times",
                        CLI_FILES);
    }
    self->out->files[self->out->file_count++] = value;
    return BAY_OK;
}

static bay_err take_history(cli_parser *self, const char *value)
{
    uint64_t count = 0;
    if (!str_uint(str_of(value), &count) || count > 1000000) {
        return diag_set(self->diag, BAY_ERR_INVALID,
                        "--history needs a whole number up to 1000000");
    }
    self->out->history = (int)count;
    return BAY_OK;
}

/* "BINDING", "VERSION" or "BINDING/VERSION". */
static bay_err take_interface(cli_parser *self, const char *value)
{
    bay_str text = str_of(value);
    bay_str first = str_head(text, str_find(text, '/'));
    bay_str second = str_from(text, first.len + 1);
    size_t found = 0;
    for (size_t i = 0; i < A2A_BINDINGS; i++) {
        if (str_eq_nocase(first, a2a_binding_names[i])) {
            self->out->binding = a2a_binding_names[i].at;
            found++;
        }
    }
    for (size_t i = 0; i < A2A_VERSIONS; i++) {
        if (str_eq(found > 0 ? second : first, a2a_version_names[i])) {
            self->out->version = a2a_version_names[i].at;
            found++;
        }
    }
    if (found != (first.len < text.len ? 2U : 1U)) {
        return diag_set(self->diag, BAY_ERR_INVALID,
                        "--interface needs JSONRPC, HTTP+JSON or GRPC, or 1.0, 0.3, 0.2 or 0.1, or "
                        "both: GRPC/1.0");
    }
    return BAY_OK;
}

static bay_err take_form(cli_parser *self, cli_form form)
{
    if (self->out->form != CLI_FORM_TEXT) {
        return diag_set(self->diag, BAY_ERR_INVALID,
                        "--json, --sarif and --junit exclude each other: keep one");
    }
    self->out->form = form;
    return BAY_OK;
}

/* Those of commands that look at definitions. */
static bool take_trust_option(cli_arguments *out, cli_option_id id, const char *value)
{
    switch (id) {
    case OPTION_SILENCE:
        out->silence_file = value;
        return true;
    case OPTION_LOCK:
        out->lock_file = value;
        return true;
    case OPTION_NAME:
        out->pin_name = value;
        return true;
    case OPTION_APPROVE:
        out->approve = value;
        return true;
    case OPTION_BY:
        out->by = value;
        return true;
    case OPTION_AS_CLIENT:
        out->client_name = value;
        return true;
    case OPTION_CONTRACTS:
        out->contracts = value;
        return true;
    case OPTION_AS_DECLARED:
        out->is_as_declared = true;
        return true;
    case OPTION_LEARN:
        out->learns = true;
        return true;
    case OPTION_CONFORMANCE:
        out->is_conformance = true;
        return true;
    default:
        return false;
    }
}

static bool take_tls_option(cli_arguments *out, cli_option_id id, const char *value)
{
    switch (id) {
    case OPTION_CA:
        out->tls.ca_file = value;
        return true;
    case OPTION_CERT:
        out->tls.certificate_file = value;
        return true;
    case OPTION_KEY:
        out->tls.key_file = value;
        return true;
    case OPTION_INSECURE:
        out->tls.insecure_no_verify = true;
        return true;
    default:
        return false;
    }
}

/* Those of logins. */
static bool take_login_option(cli_arguments *out, cli_option_id id, const char *value)
{
    switch (id) {
    case OPTION_TOKEN_FILE:
        out->token_file = value;
        return true;
    case OPTION_CLIENT_ID:
        out->client_id = value;
        return true;
    case OPTION_CLIENT_SECRET:
        out->secret_file = value;
        return true;
    case OPTION_ISSUER:
        out->issuer = value;
        return true;
    case OPTION_AS:
        out->subject = value;
        return true;
    case OPTION_CLAIMS:
        out->claims = value;
        return true;
    case OPTION_ADDRESS:
        out->address = value;
        return true;
    case OPTION_SCOPE:
        out->scope = value;
        return true;
    case OPTION_DEVICE:
        out->is_device = true;
        return true;
    case OPTION_NO_BROWSER:
        out->is_browserless = true;
        return true;
    default:
        return false;
    }
}

/* Those of agents. */
static bay_err take_agent_option(cli_parser *self, cli_option_id id, const char *value)
{
    cli_arguments *out = self->out;
    switch (id) {
    case OPTION_STREAM:
        out->is_stream = true;
        return BAY_OK;
    case OPTION_SUBSCRIBE:
        out->is_subscription = true;
        return BAY_OK;
    case OPTION_NO_WAIT:
        out->is_impatient = true;
        return BAY_OK;
    case OPTION_EXTENDED:
        out->is_extended = true;
        return BAY_OK;
    case OPTION_TASK:
        out->task = value;
        return BAY_OK;
    case OPTION_CONTEXT:
        out->context = value;
        return BAY_OK;
    case OPTION_SKILL:
        out->skill = value;
        return BAY_OK;
    case OPTION_DATA:
        out->data = value;
        return BAY_OK;
    case OPTION_KEYS:
        out->keys_file = value;
        return BAY_OK;
    case OPTION_FILE:
        return take_file(self, value);
    case OPTION_HISTORY:
        return take_history(self, value);
    default:
        return take_interface(self, value);
    }
}

static bay_err take_option(cli_parser *self, const cli_option *option, const char *value)
{
    cli_arguments *out = self->out;
    bool may_repeat =
        option->id == OPTION_HEADER || option->id == OPTION_VERBOSE || option->id == OPTION_FILE;
    if ((self->given & ((uint64_t)1 << option->id)) != 0 && !may_repeat) {
        return diag_set(self->diag, BAY_ERR_INVALID, "--%s was given twice: keep one",
                        option->name);
    }
    self->given |= (uint64_t)1 << option->id;
    switch (option->id) {
    case OPTION_CONFIG:
        out->config_file = value;
        return BAY_OK;
    case OPTION_WORKERS:
        return take_workers(self, value);
    case OPTION_LISTEN:
        out->listen = value;
        return BAY_OK;
    case OPTION_OPEN:
        out->is_open = true;
        return BAY_OK;
    case OPTION_SOCKET:
        out->socket_path = value;
        return BAY_OK;
    case OPTION_SARIF:
        return take_form(self, CLI_FORM_SARIF);
    case OPTION_JUNIT:
        return take_form(self, CLI_FORM_JUNIT);
    case OPTION_PROFILE:
        out->profile = value;
        return BAY_OK;
    case OPTION_ARGUMENTS:
        out->json_arguments = value;
        return BAY_OK;
    case OPTION_HEADER:
        return take_header(self, value);
    case OPTION_TIMEOUT:
        return take_timeout(self, value);
    case OPTION_PROTOCOL:
        return take_protocol(self, value);
    case OPTION_TRANSPORT:
        return take_transport(self, value);
    case OPTION_FOR:
        out->subject = value;
        return BAY_OK;
    case OPTION_HEAD:
        out->head = value;
        return BAY_OK;
    case OPTION_LIFT:
        out->is_lifted = true;
        return BAY_OK;
    case OPTION_EXPIRES:
        return take_expires(self, value);
    case OPTION_JSON:
        out->is_json = true;
        return take_form(self, CLI_FORM_JSON);
    case OPTION_VERBOSE:
        out->verbosity++;
        return BAY_OK;
    case OPTION_NO_COLOR:
        out->is_colorless = true;
        return BAY_OK;
    case OPTION_HELP:
        out->wants_help = true;
        return BAY_OK;
    case OPTION_VERSION: /* looked at when there is no command */
        return BAY_OK;
    default:
        return take_tls_option(out, option->id, value) ||
                       take_login_option(out, option->id, value) ||
                       take_trust_option(out, option->id, value)
                   ? BAY_OK
                   : take_agent_option(self, option->id, value);
    }
}

/* ---- options --------------------------------------------------------------------------------- */

static bay_err refuse_option(cli_parser *self, bay_str name)
{
    const cli_option *nearest = cli_option_nearest(name);
    int len = name.len < 64 ? (int)name.len : 64;
    if (nearest == NULL) {
        return diag_set(self->diag, BAY_ERR_INVALID,
                        "unknown option --%.*s: patchbay help lists the options", len, name.at);
    }
    return diag_set(self->diag, BAY_ERR_INVALID, "unknown option --%.*s: did you mean --%s?", len,
                    name.at, nearest->name);
}

/* `--name`, `--name=value`, `--name value`. */
static bay_err take_long(cli_parser *self, const char *text, char **argv, int argc, int *at)
{
    bay_str all = str_of(text);
    bay_str name = str_head(all, str_find(all, '='));
    const cli_option *option = cli_option_find(name);
    if (option == NULL) {
        return refuse_option(self, name);
    }
    bool has_value = name.len < all.len;
    if (option->argument[0] == '\0') {
        if (has_value) {
            return diag_set(self->diag, BAY_ERR_INVALID,
                            "--%s takes no value: remove the =", option->name);
        }
        return take_option(self, option, NULL);
    }
    const char *value = has_value ? text + name.len + 1 : NULL;
    if (value == NULL && *at + 1 < argc) {
        value = argv[++*at];
    }
    if (value == NULL || value[0] == '\0') {
        return diag_set(self->diag, BAY_ERR_INVALID, "--%s needs %s", option->name,
                        option->argument);
    }
    return take_option(self, option, value);
}

/* `-v`, `-vvj`, `-c FILE`, `-cFILE`. */
static bay_err take_short(cli_parser *self, const char *text, char **argv, int argc, int *at)
{
    for (; *text != '\0'; text++) {
        const cli_option *option = cli_option_letter(*text);
        if (option == NULL) {
            char shown = *text;
            if (shown < 0x21 || shown > 0x7e) {
                shown = '?';
            }
            return diag_set(self->diag, BAY_ERR_INVALID,
                            "unknown option -%c: patchbay help lists the options", shown);
        }
        if (option->argument[0] == '\0') {
            bay_err err = take_option(self, option, NULL);
            if (err != BAY_OK) {
                return err;
            }
            continue;
        }
        const char *value = text[1] != '\0' ? text + 1 : *at + 1 < argc ? argv[++*at] : NULL;
        if (value == NULL || value[0] == '\0') {
            return diag_set(self->diag, BAY_ERR_INVALID, "-%c needs %s", option->letter,
                            option->argument);
        }
        return take_option(self, option, value);
    }
    return BAY_OK;
}

bay_err cli_take_options(cli_parser *self, int argc, char **argv)
{
    for (int at = 1; at < argc; at++) {
        char *text = argv[at];
        bay_err err = BAY_OK;
        if (text[0] != '-' || text[1] == '\0') {
            self->operands[self->operand_count++] = text;
        } else if (text[1] != '-') {
            err = take_short(self, text + 1, argv, argc, &at);
        } else if (text[2] != '\0') {
            err = take_long(self, text + 2, argv, argc, &at);
        } else {
            self->out->target_kind = CLI_TARGET_ARGV;
            self->out->target_argv = argv + at + 1; /* argv ends in NULL */
            return BAY_OK;
        }
        if (err != BAY_OK) {
            return err;
        }
    }
    return BAY_OK;
}

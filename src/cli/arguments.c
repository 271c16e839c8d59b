/* The command line into a struct. Two passes: options are taken out wherever they stand before `--`
 * and the operands gathered at the front; then the command says what its operands are. */
#include "cli/arguments.h"

#include "a2a/protocol.h"
#include "base/err.h"
#include "base/str.h"
#include "base/words.h"
#include "cli/arguments_table.h"
#include "config/internal.h"

typedef struct parser {
    cli_arguments *out;
    bay_diag *diag;
    char **operands; /* argv[1..], compacted */
    size_t operand_count;
    uint64_t given; /* options, one bit each */
} parser;

/* ---- values of options ----------------------------------------------------------------------- */

static bay_err take_timeout(parser *self, const char *value)
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
static bay_err take_expires(parser *self, const char *value)
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

static bay_err take_workers(parser *self, const char *value)
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
static bay_err take_protocol(parser *self, const char *value)
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

static bay_err take_transport(parser *self, const char *value)
{
    int index = config_choice_find("auto|stdio|http|sse", str_of(value));
    if (index < 0) {
        return diag_set(self->diag, BAY_ERR_INVALID, "--transport needs auto, stdio, http or sse");
    }
    self->out->transport = (config_transport)index;
    return BAY_OK;
}

static bay_err take_header(parser *self, const char *value)
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

static bay_err take_file(parser *self, const char *value)
{
    if (self->out->file_count == CLI_FILES) {
        return diag_set(self->diag, BAY_ERR_INVALID, "--file was given more than %d times",
                        CLI_FILES);
    }
    self->out->files[self->out->file_count++] = value;
    return BAY_OK;
}

static bay_err take_history(parser *self, const char *value)
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
static bay_err take_interface(parser *self, const char *value)
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

static bay_err take_form(parser *self, cli_form form)
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
static bay_err take_agent_option(parser *self, cli_option_id id, const char *value)
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

static bay_err take_option(parser *self, const cli_option *option, const char *value)
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

static bay_err refuse_option(parser *self, bay_str name)
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
static bay_err take_long(parser *self, const char *text, char **argv, int argc, int *at)
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
static bay_err take_short(parser *self, const char *text, char **argv, int argc, int *at)
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

static bay_err take_options(parser *self, int argc, char **argv)
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

/* ---- operands -------------------------------------------------------------------------------- */

static bay_err take_command(parser *self, const char *text)
{
    cli_command nearest = CLI_COMMAND_COUNT;
    size_t least = 3;
    for (size_t i = 0; i < CLI_COMMAND_COUNT; i++) {
        size_t distance = str_distance(str_of(text), str_of(cli_commands[i].name));
        if (str_eq(str_of(text), str_of(cli_commands[i].name))) {
            self->out->command = (cli_command)i;
            return BAY_OK;
        }
        if (distance < least) {
            least = distance;
            nearest = (cli_command)i;
        }
    }
    config_quoted quoted = config_quote(str_of(text));
    if (nearest == CLI_COMMAND_COUNT) {
        return diag_set(self->diag, BAY_ERR_INVALID,
                        "unknown command \"%s\": patchbay help lists the commands", quoted.text);
    }
    return diag_set(self->diag, BAY_ERR_INVALID, "unknown command \"%s\": did you mean \"%s\"?",
                    quoted.text, cli_commands[nearest].name);
}

static bool is_name(bay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9') && c != '_' && c != '-') {
            return false;
        }
    }
    return text.len > 0 && text.len <= CONFIG_NAME_BYTES;
}

static bool is_of_agents(cli_command command)
{
    return command == CLI_CARD || command == CLI_SEND || command == CLI_TASK ||
           command == CLI_CANCEL;
}

/* Commands that look at definitions, also at ones that were kept in a file. */
static bool looks_at_definitions(cli_command command)
{
    return command == CLI_LINT || command == CLI_DIFF || command == CLI_PIN || command == CLI_GRADE;
}

static bool is_url(bay_str text)
{
    return str_starts(text, STR("http://")) || str_starts(text, STR("https://"));
}

/* "@FILE" and "agent:…". */
static bool take_other_target(cli_arguments *out)
{
    if (out->target.at[0] == '@' && out->target.len > 1) {
        out->target_kind = CLI_TARGET_FILE;
        return true;
    }
    if (str_starts(out->target, STR("agent:"))) {
        out->target = str_from(out->target, 6);
        out->target_kind = CLI_TARGET_AGENT;
        return is_url(out->target) || is_name(out->target);
    }
    return false;
}

/* "stdio:COMMAND ARGUMENT…", as the library takes it. */
static bay_err take_words(parser *self, char *text)
{
    cli_arguments *out = self->out;
    size_t count = 0;
    bay_err err = words_split(text, out->words, CLI_MOST_WORDS, &count);
    if (err != BAY_OK || count == 0) {
        return diag_set(self->diag, BAY_ERR_INVALID, "stdio: %s",
                        err == BAY_ERR_SYNTAX  ? "a quote is not closed"
                        : err == BAY_ERR_LIMIT ? "there are more than 256 words: use -- COMMAND"
                                               : "needs a command: stdio:./weather --units=c");
    }
    out->target_kind = CLI_TARGET_ARGV;
    return BAY_OK;
}

static bay_err take_target(parser *self, char *text)
{
    cli_arguments *out = self->out;
    out->target = str_of(text);
    if (is_url(out->target)) {
        out->target_kind = CLI_TARGET_URL;
        return BAY_OK;
    }
    if (is_name(out->target)) {
        out->target_kind = CLI_TARGET_NAME;
        return BAY_OK;
    }
    if (looks_at_definitions(out->command) && take_other_target(out)) {
        return BAY_OK;
    }
    if (str_starts(out->target, STR("stdio:")) && !is_of_agents(out->command)) {
        return take_words(self, text + strlen("stdio:"));
    }
    return diag_set(self->diag, BAY_ERR_INVALID,
                    is_of_agents(out->command)
                        ? "\"%s\" is no AGENT: give http://HOST/PATH, or a name from the "
                          "configuration"
                        : "\"%s\" is no TARGET: give http://HOST/PATH, a name from the "
                          "configuration, stdio:COMMAND, or -- COMMAND at the end",
                    config_quote(out->target).text);
}

static bay_err check_pair(parser *self, bay_str pair)
{
    size_t equals = str_find(pair, '=');
    bool has_key = equals > 0 && !(equals == 1 && pair.at[0] == ':');
    if (has_key && equals < pair.len && pair.at[0] != '{') {
        return BAY_OK;
    }
    return diag_set(self->diag, BAY_ERR_INVALID,
                    "\"%s\" is no argument: write KEY=VALUE, or give JSON with --arguments",
                    config_quote(pair).text);
}

/* What stands behind TARGET, or alone when the target is a command behind `--`. */
/* The operands from `at` on are KEY=VALUE. */
static bay_err take_pairs(parser *self, size_t at)
{
    cli_arguments *out = self->out;
    out->pairs = self->operands + at;
    out->pair_count = self->operand_count - at;
    for (; at < self->operand_count; at++) {
        bay_err err = check_pair(self, str_of(self->operands[at]));
        if (err != BAY_OK) {
            return err;
        }
    }
    return out->pair_count > 0 && out->json_arguments != NULL
               ? diag_set(self->diag, BAY_ERR_INVALID,
                          "--arguments and KEY=VALUE exclude each other: keep one")
               : BAY_OK;
}

static bay_err take_rest(parser *self, size_t at)
{
    cli_arguments *out = self->out;
    const cli_command_row *row = &cli_commands[out->command];
    bool is_read = out->command == CLI_READ;
    bool is_send = out->command == CLI_SEND;
    bool is_task = out->command == CLI_TASK || out->command == CLI_CANCEL;
    bool has_name = is_read || is_task || out->command == CLI_CALL || out->command == CLI_PROMPT ||
                    ((is_send || out->command == CLI_BLOCK) && at < self->operand_count);
    if (has_name && at == self->operand_count) {
        return diag_set(self->diag, BAY_ERR_INVALID, "%s needs %s: patchbay %s %s", row->name,
                        is_read   ? "a URI"
                        : is_task ? "the ID of a task"
                                  : "a NAME",
                        row->name, row->operands);
    }
    if (has_name) {
        out->name = self->operands[at++];
    }
    if (has_name && !is_read && !is_task && !is_send && out->command != CLI_BLOCK) {
        return take_pairs(self, at);
    }
    if (at < self->operand_count) {
        return diag_set(self->diag, BAY_ERR_INVALID, "\"%s\" is too much: patchbay %s %s",
                        config_quote(str_of(self->operands[at])).text, row->name, row->operands);
    }
    return BAY_OK;
}

static bay_err take_agent_and_rest(parser *self)
{
    cli_arguments *out = self->out;
    const cli_command_row *row = &cli_commands[out->command];
    if (out->target_kind == CLI_TARGET_ARGV) {
        return diag_set(self->diag, BAY_ERR_INVALID, "%s takes no -- COMMAND: remove it",
                        row->name);
    }
    if (self->operand_count < 2) {
        return diag_set(self->diag, BAY_ERR_INVALID,
                        "%s needs an AGENT: a URL, or a name from the configuration", row->name);
    }
    bay_err err = take_target(self, self->operands[1]);
    return err == BAY_OK ? take_rest(self, 2) : err;
}

static void drop_operand(parser *self)
{
    self->operand_count--;
    for (size_t i = 1; i < self->operand_count; i++) {
        self->operands[i] = self->operands[i + 1];
    }
}

/* What pin and contract are to do, in front of TARGET. */
static bay_err take_trust_action(parser *self)
{
    cli_arguments *out = self->out;
    bool is_pin = out->command == CLI_PIN;
    const char *actions = is_pin ? "record|review" : "run|new";
    if (self->operand_count > 1 && config_choice_find(actions, str_of(self->operands[1])) >= 0) {
        out->name = self->operands[1];
        drop_operand(self);
        return BAY_OK;
    }
    out->name = "run";
    return is_pin ? diag_set(self->diag, BAY_ERR_INVALID, "pin needs record or review") : BAY_OK;
}

/* What diff compares TARGET with, in front of it. */
static bay_err take_before(parser *self)
{
    cli_arguments *out = self->out;
    cli_target_kind kind = out->target_kind;
    if (self->operand_count < (kind == CLI_TARGET_ARGV ? 2u : 3u)) {
        return BAY_OK;
    }
    bay_err err = take_target(self, self->operands[1]);
    if (err == BAY_OK) {
        out->before = out->target;
        out->before_kind = out->target_kind;
        out->target = (bay_str){NULL, 0};
        out->target_kind = kind;
        drop_operand(self);
    }
    return err;
}

static bay_err take_leading(parser *self)
{
    switch (self->out->command) {
    case CLI_PIN:
    case CLI_CONTRACT:
        return take_trust_action(self);
    case CLI_DIFF:
        return take_before(self);
    default:
        return BAY_OK;
    }
}

static bay_err take_target_and_rest(parser *self)
{
    cli_arguments *out = self->out;
    const cli_command_row *row = &cli_commands[out->command];
    bay_err err = take_leading(self);
    if (err != BAY_OK) {
        return err;
    }
    if (is_of_agents(out->command)) {
        return take_agent_and_rest(self);
    }
    if (out->target_kind == CLI_TARGET_ARGV) {
        if (out->target_argv[0] == NULL) {
            return diag_set(self->diag, BAY_ERR_INVALID, "-- needs a command behind it");
        }
        return take_rest(self, 1);
    }
    bool is_optional = strstr(row->operands, "[TARGET]") != NULL;
    if (self->operand_count < 2 && is_optional) {
        return BAY_OK; /* every server of the configuration */
    }
    if (self->operand_count < 2) {
        return diag_set(self->diag, BAY_ERR_INVALID,
                        "%s needs a TARGET: a URL, a name from the configuration, stdio:COMMAND, "
                        "or -- COMMAND",
                        row->name);
    }
    err = take_target(self, self->operands[1]);
    return err == BAY_OK ? take_rest(self, 2) : err;
}

static bay_err take_action(parser *self)
{
    cli_arguments *out = self->out;
    const cli_command_row *row = &cli_commands[out->command];
    out->action = self->operand_count > 1 ? self->operands[1] : "";
    bool is_list = str_eq(str_of(out->action), STR("list"));
    bool is_new = out->command == CLI_KEY && str_eq(str_of(out->action), STR("new"));
    bool is_known = is_list || is_new || str_eq(str_of(out->action), STR("revoke"));
    if (!is_known || out->target_kind == CLI_TARGET_ARGV ||
        self->operand_count != (is_list ? 2U : 3U)) {
        return diag_set(self->diag, BAY_ERR_INVALID, "use it so: patchbay %s %s", row->name,
                        row->operands);
    }
    out->name = is_list ? NULL : self->operands[2];
    return !is_new && (out->scope != NULL || out->expires_ms > 0)
               ? diag_set(self->diag, BAY_ERR_INVALID, "--scope and --expires are for %s new",
                          row->name)
               : BAY_OK;
}

static bay_err take_topic(parser *self)
{
    cli_arguments *out = self->out;
    out->wants_help = true;
    if (self->operand_count < 2) {
        return BAY_OK;
    }
    out->has_topic = true;
    bay_err err = take_command(self, self->operands[1]);
    return err == BAY_OK && self->operand_count > 2 ? take_rest(self, 2) : err;
}

static bay_err check_tls(parser *self)
{
    const cli_arguments *out = self->out;
    const tls_options *tls = &out->tls;
    if ((tls->certificate_file == NULL) != (tls->key_file == NULL)) {
        return diag_set(self->diag, BAY_ERR_INVALID, "--cert and --key belong together: give both");
    }
    if (tls->insecure_no_verify && tls->ca_file != NULL) {
        return diag_set(self->diag, BAY_ERR_INVALID,
                        "--ca and --insecure exclude each other: keep --ca");
    }
    if (out->target_kind == CLI_TARGET_ARGV && tls_client_has_own(tls)) {
        return diag_set(self->diag, BAY_ERR_INVALID,
                        "--ca, --cert, --key and --insecure are for an https:// URL, not for a "
                        "command");
    }
    return BAY_OK;
}

static bay_err check_options(parser *self)
{
    const cli_arguments *out = self->out;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const cli_option *option = &cli_options[i];
        bool is_given = (self->given & ((uint64_t)1 << option->id)) != 0;
        if (is_given && (option->commands & (1U << out->command)) == 0) {
            return diag_set(self->diag, BAY_ERR_INVALID,
                            "--%s is no option of %s: patchbay help %s lists them", option->name,
                            cli_commands[out->command].name, cli_commands[out->command].name);
        }
    }
    bool is_empty = out->name == NULL && out->data == NULL && out->file_count == 0;
    if (out->command == CLI_SEND && is_empty) {
        return diag_set(self->diag, BAY_ERR_INVALID,
                        "send needs something to send: a TEXT, --data or --file");
    }
    if (out->is_stream && out->is_impatient) {
        return diag_set(self->diag, BAY_ERR_INVALID,
                        "--stream and --no-wait exclude each other: keep one");
    }
    bool is_child = out->target_kind == CLI_TARGET_ARGV;
    if (is_child && out->header_count > 0) {
        return diag_set(self->diag, BAY_ERR_INVALID, "--header is for a URL, not for a command");
    }
    if (is_child && (out->token_file != NULL || out->command == CLI_LOGIN ||
                     out->command == CLI_LOGOUT || out->command == CLI_WHOAMI)) {
        return diag_set(self->diag, BAY_ERR_INVALID, "%s is for a URL, not for a command",
                        out->token_file != NULL ? "--token-file" : cli_commands[out->command].name);
    }
    if (out->secret_file != NULL && out->client_id == NULL) {
        return diag_set(self->diag, BAY_ERR_INVALID,
                        "--client-secret belongs to --client-id: give both");
    }
    bay_err err = check_tls(self);
    if (err != BAY_OK) {
        return err;
    }
    if ((is_child && out->transport > CONFIG_TRANSPORT_STDIO) ||
        (out->target_kind == CLI_TARGET_URL && out->transport == CONFIG_TRANSPORT_STDIO)) {
        return diag_set(self->diag, BAY_ERR_INVALID,
                        "--transport does not fit the TARGET: stdio is for a command, http and sse "
                        "are for a URL");
    }
    return BAY_OK;
}

/* explain NAME [KEY=VALUE...], test FILE */
static bay_err take_policy(parser *self)
{
    cli_arguments *out = self->out;
    const cli_command_row *row = &cli_commands[out->command];
    out->action = self->operand_count > 1 ? self->operands[1] : "";
    bool is_explain = str_eq(str_of(out->action), STR("explain"));
    bool is_test = str_eq(str_of(out->action), STR("test"));
    if ((!is_explain && !is_test) || out->target_kind == CLI_TARGET_ARGV ||
        self->operand_count < 3 || (is_test && self->operand_count > 3)) {
        return diag_set(self->diag, BAY_ERR_INVALID, "use it so: patchbay %s %s", row->name,
                        row->operands);
    }
    out->name = self->operands[2];
    uint64_t others = (uint64_t)1 << OPTION_CONFIG | (uint64_t)1 << OPTION_NO_COLOR;
    if (is_test && (self->given & ~others) != 0) {
        return diag_set(self->diag, BAY_ERR_INVALID,
                        "the examples of %s test say who calls: remove the options", row->name);
    }
    return is_test ? BAY_OK : take_pairs(self, 3);
}

static bay_err take_operands(parser *self)
{
    cli_arguments *out = self->out;
    if (self->operand_count == 0) {
        out->command = CLI_HELP;
        if ((self->given & ((uint64_t)1 << OPTION_VERSION)) != 0) {
            out->command = CLI_VERSION;
            self->given &= ~((uint64_t)1 << OPTION_VERSION);
        }
        if (out->target_kind == CLI_TARGET_ARGV) {
            return diag_set(self->diag, BAY_ERR_INVALID,
                            "-- without a command of patchbay before it: "
                            "patchbay list -- COMMAND");
        }
        return BAY_OK;
    }
    bay_err err = take_command(self, self->operands[0]);
    if (err != BAY_OK || out->wants_help) {
        out->has_topic = err == BAY_OK;
        return err;
    }
    if (out->command == CLI_HELP) {
        return take_topic(self);
    }
    if (strstr(cli_commands[out->command].operands, "TARGET") != NULL ||
        is_of_agents(out->command)) {
        return take_target_and_rest(self);
    }
    if (out->command == CLI_KEY || out->command == CLI_VAULT) {
        return take_action(self);
    }
    if (out->command == CLI_POLICY) {
        return take_policy(self);
    }
    if (out->target_kind == CLI_TARGET_ARGV) {
        return diag_set(self->diag, BAY_ERR_INVALID, "%s takes no -- COMMAND: remove it",
                        cli_commands[out->command].name);
    }
    return take_rest(self, 1);
}

char *const *cli_target_argv(const cli_arguments *self)
{
    return self->words[0] != NULL ? self->words : self->target_argv;
}

bay_err cli_parse(int argc, char **argv, cli_arguments *out, bay_diag *diag)
{
    cli_arguments parsed = {.command = CLI_HELP, .history = -1};
    parser self = {.out = &parsed, .diag = diag, .operands = argc > 0 ? argv + 1 : NULL};
    bay_err err = argc > 0 ? take_options(&self, argc, argv) : BAY_OK;
    if (err == BAY_OK) {
        err = take_operands(&self);
    }
    bool is_topic = parsed.has_topic || parsed.wants_help;
    if (err == BAY_OK && !is_topic) {
        err = check_options(&self);
    }
    if (err == BAY_OK) {
        *out = parsed;
    }
    return err;
}

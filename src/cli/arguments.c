/* The command line into a struct. Two passes: options are taken out wherever they stand before `--`
 * and the operands gathered at the front; then the command says what its operands are. */
#include "cli/arguments.h"

#include "base/err.h"
#include "base/str.h"
#include "base/words.h"
#include "cli/arguments_parser.h"
#include "cli/arguments_table.h"
#include "config/internal.h"

/* ---- operands -------------------------------------------------------------------------------- */

static bay_err take_command(cli_parser *self, const char *text)
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
static bay_err take_words(cli_parser *self, char *text)
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

static bay_err take_target(cli_parser *self, char *text)
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

static bay_err check_pair(cli_parser *self, bay_str pair)
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
static bay_err take_pairs(cli_parser *self, size_t at)
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

static bay_err take_rest(cli_parser *self, size_t at)
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

static bay_err take_agent_and_rest(cli_parser *self)
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

static void drop_operand(cli_parser *self)
{
    self->operand_count--;
    for (size_t i = 1; i < self->operand_count; i++) {
        self->operands[i] = self->operands[i + 1];
    }
}

/* What pin and contract are to do, in front of TARGET. */
static bay_err take_trust_action(cli_parser *self)
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
static bay_err take_before(cli_parser *self)
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

static bay_err take_leading(cli_parser *self)
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

static bay_err take_target_and_rest(cli_parser *self)
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

static bay_err take_action(cli_parser *self)
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

static bay_err take_audit(cli_parser *self)
{
    cli_arguments *out = self->out;
    const cli_command_row *row = &cli_commands[out->command];
    bay_str action = str_of(self->operand_count > 1 ? self->operands[1] : "");
    if (!str_eq(action, STR("verify")) || out->target_kind == CLI_TARGET_ARGV ||
        self->operand_count > 3) {
        return diag_set(self->diag, BAY_ERR_INVALID, "use it so: patchbay %s %s", row->name,
                        row->operands);
    }
    out->name = self->operand_count > 2 ? self->operands[2] : NULL;
    return BAY_OK;
}

static bay_err take_topic(cli_parser *self)
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

static bay_err check_tls(cli_parser *self)
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

static bay_err check_options(cli_parser *self)
{
    const cli_arguments *out = self->out;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const cli_option *option = &cli_options[i];
        bool is_given = (self->given & ((uint64_t)1 << option->id)) != 0;
        if (is_given && (option->commands & CLI_BIT_OF(out->command)) == 0) {
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
static bay_err take_policy(cli_parser *self)
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

static bay_err take_operands(cli_parser *self)
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
    if (out->command == CLI_AUDIT) {
        return take_audit(self);
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
    cli_parser self = {.out = &parsed, .diag = diag, .operands = argc > 0 ? argv + 1 : NULL};
    bay_err err = argc > 0 ? cli_take_options(&self, argc, argv) : BAY_OK;
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

/* The agent of a command: found, spoken to, left. */
#include "cli/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "a2a/protocol.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/say.h"
#include "cli/target.h"

enum { FILE_BYTES = 64 << 20, SECRET_BYTES = 17 * 1024 };

struct cli_agent {
    const cli_arguments *arguments;
    const config *config; /* NULL: none was needed */
    bay_caller_options *options;
    bay_caller *caller;
    bool is_known;
    bool is_done;
    bay_caller_reply *response;
    bay_diag diag;
    sigset_t waiting; /* signals that come in while nothing is done */
};

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
    caught = number;
}

/* ---- options --------------------------------------------------------------------------------- */

static cli_exit take_headers(cli_agent *self)
{
    cli_exit code = CLI_EXIT_OK;
    for (size_t i = 0; code == CLI_EXIT_OK && i < self->arguments->header_count; i++) {
        char name[256];
        bay_str given = {NULL, 0};
        bay_diag diag = {0};
        buf value;
        buf_init_secret(&value, SECRET_BYTES);
        bay_err err = buf_reserve(&value, SECRET_BYTES) ? BAY_OK : BAY_ERR_NOMEM;
        if (err == BAY_OK) {
            err = cli_header_read(self->arguments->headers[i], &given, &value, &diag);
        }
        if (err == BAY_OK && given.len < sizeof(name) && value.len < SECRET_BYTES) {
            snprintf(name, sizeof(name), "%.*s", BAY_STR(given));
            buf_char(&value, '\0');
            bay_caller_options_header(self->options, name, value.at);
        } else {
            cli_say("%s", diag.text[0] != '\0' ? diag.text : "--header: too long");
            code = err == BAY_ERR_NOMEM || err == BAY_ERR_IO ? CLI_EXIT_FAILED : CLI_EXIT_USAGE;
        }
        buf_fini(&value);
    }
    return code;
}

static cli_exit take_keys(cli_agent *self, const char *name)
{
    buf keys;
    buf_init(&keys, FILE_BYTES);
    cli_exit code = cli_agent_read_file(name, "--keys", &keys);
    if (code == CLI_EXIT_OK) {
        buf_char(&keys, '\0');
        bay_caller_options_keys(self->options, keys.err == BAY_OK ? keys.at : "");
    }
    buf_fini(&keys);
    return code;
}

static void take_binding_and_version(cli_agent *self, unsigned binding, unsigned version)
{
    const cli_arguments *arguments = self->arguments;
    const char *named = binding > 0 ? a2a_binding_names[binding - 1].at : NULL;
    const char *spoken = version > 0 ? a2a_version_names[version - 1].at : NULL;
    bay_caller_options_interface(self->options,
                                 arguments->binding != NULL ? arguments->binding : named,
                                 arguments->version != NULL ? arguments->version : spoken);
}

static bool is_given(const cli_arguments *arguments, bay_str name)
{
    for (size_t i = 0; i < arguments->header_count; i++) {
        bay_str text = str_of(arguments->headers[i]);
        if (str_eq_nocase(str_trim(str_head(text, str_find(text, ':'))), name)) {
            return true;
        }
    }
    return false;
}

static void take_tls(cli_agent *self, const config_server_tls *configured)
{
    tls_options tls = cli_tls_options(self->arguments, configured);
    bay_caller_options_tls(self->options, tls.ca_file, tls.certificate_file, tls.key_file);
    if (tls.insecure_no_verify) {
        bay_caller_options_insecure(self->options);
    }
}

/* Values of the configuration end in NUL. */
static cli_exit take_configured(cli_agent *self, const config_agent *agent)
{
    for (size_t i = 0; i < agent->headers.count; i++) {
        const config_pair *pair = &agent->headers.at[i];
        if (!is_given(self->arguments, pair->name)) {
            bay_caller_options_header(self->options, pair->name.at, pair->value.at);
        }
    }
    for (size_t i = 0; i < agent->verify.jku.count; i++) {
        bay_caller_options_key_url(self->options, agent->verify.jku.at[i].at);
    }
    if (agent->verify.is_required) {
        bay_caller_options_require_signature(self->options);
    }
    take_tls(self, &agent->tls);
    take_binding_and_version(self, agent->binding, agent->version);
    bool has_keys = agent->verify.keys.len > 0 && self->arguments->keys_file == NULL;
    return has_keys ? take_keys(self, agent->verify.keys.at) : CLI_EXIT_OK;
}

static cli_exit say_unknown(const config *settings, const char *path, bay_str name)
{
    buf known;
    buf_init(&known, 1 << 20);
    for (size_t i = 0; i < settings->agent_count && i < 40; i++) {
        buf_str(&known, i > 0 ? STR(", ") : STR(""));
        buf_str(&known, settings->agents[i].name);
    }
    cli_say("%s has no agent \"%.*s\"; its agents: %.*s", path, BAY_STR(name), (int)known.len,
            known.at != NULL ? known.at : "");
    buf_fini(&known);
    return CLI_EXIT_USAGE;
}

static cli_exit find_agent(cli_agent *self, const char **out_address)
{
    const char *path = NULL;
    bay_str name = self->arguments->target;
    bay_err err = cli_load_config(self->arguments, false, &path, &self->config);
    if (err != BAY_OK) {
        return err == BAY_ERR_NOMEM ? CLI_EXIT_FAILED : CLI_EXIT_CONFIG;
    }
    const config_agent *agent = config_agent_find(self->config, name);
    if (agent == NULL) {
        return say_unknown(self->config, path, name);
    }
    if (agent->is_disabled || (agent->url.len == 0 && agent->card.len == 0)) {
        cli_say("%.*s %s (%s, line %u)", BAY_STR(name),
                agent->is_disabled ? "is disabled"
                                   : "is made of tools: it is spoken to through the gateway",
                path, agent->line);
        return CLI_EXIT_CONFIG;
    }
    *out_address = agent->card.len > 0 ? agent->card.at : agent->url.at;
    return take_configured(self, agent);
}

static cli_exit take_options(cli_agent *self, const char **out_address)
{
    const cli_arguments *arguments = self->arguments;
    cli_exit code = CLI_EXIT_OK;
    bay_caller_options_timeout(self->options, 0, arguments->timeout_ms);
    if (arguments->target_kind == CLI_TARGET_URL) {
        *out_address = arguments->target.at; /* of argv: ends in NUL */
        take_tls(self, NULL);
        take_binding_and_version(self, 0, 0);
    } else {
        code = find_agent(self, out_address);
    }
    code = code == CLI_EXIT_OK ? take_headers(self) : code;
    if (code == CLI_EXIT_OK && arguments->keys_file != NULL) {
        bay_caller_options_require_signature(self->options);
        code = take_keys(self, arguments->keys_file);
    }
    return code;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void catch_signals(cli_agent *self)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t both;
    sigemptyset(&action.sa_mask);
    sigemptyset(&both);
    sigaddset(&both, SIGINT);
    sigaddset(&both, SIGTERM);
    sigprocmask(SIG_BLOCK, &both, &self->waiting);
    sigdelset(&self->waiting, SIGINT);
    sigdelset(&self->waiting, SIGTERM);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* Signals come in only while it waits, so that none is overlooked. */
static void wait_for(cli_agent *self, const bool *is_done)
{
    while (!*is_done && caught == 0) {
        int ms = bay_caller_wait_ms(self->caller);
        struct timespec within = {ms / 1000, (long)(ms % 1000) * 1000000};
        struct pollfd fd = {bay_caller_fd(self->caller), POLLIN, 0};
        (void)ppoll(&fd, 1, ms < 0 ? NULL : &within, &self->waiting);
        if (caught == 0) {
            err_ignore(bay_caller_dispatch(self->caller)); /* what comes of it is told elsewhere */
        }
    }
}

static cli_exit cli_agent_fail(const bay_diag *diag)
{
    cli_say("%s", diag->text[0] != '\0' ? diag->text : bay_err_text(diag->code));
    return diag->code == BAY_ERR_REMOTE ? CLI_EXIT_REMOTE : cli_exit_of(diag->code);
}

static cli_exit signalled(void)
{
    return (cli_exit)(128 + caught);
}

/* ---- a life ---------------------------------------------------------------------------------- */

static void on_connected(bay_caller *caller, const bay_diag *diag, void *user)
{
    cli_agent *self = user;
    (void)caller;
    self->diag = *diag;
    self->is_known = true;
}

cli_exit cli_agent_open(const cli_arguments *arguments, cli_agent **out)
{
    static const log_level levels[] = {LOG_WARN, LOG_INFO, LOG_DEBUG};
    const char *address = NULL;
    bay_diag diag = {0};
    cli_agent *self = mem_zalloc(sizeof(*self));
    *out = self;
    if (self == NULL) {
        cli_say("out of memory");
        return CLI_EXIT_FAILED;
    }
    self->arguments = arguments;
    self->options = bay_caller_options_new();
    cli_log_open(levels[arguments->verbosity < 2 ? arguments->verbosity : 2], CONFIG_LOG_TEXT);
    catch_signals(self);
    cli_exit code = take_options(self, &address);
    if (code != CLI_EXIT_OK) {
        return code;
    }
    bay_err err =
        bay_caller_connect_start(address, self->options, &self->caller, &diag, on_connected, self);
    if (err != BAY_OK) {
        return cli_agent_fail(&diag);
    }
    wait_for(self, &self->is_known);
    if (caught != 0) {
        return signalled();
    }
    return self->diag.code == BAY_OK ? CLI_EXIT_OK : cli_agent_fail(&self->diag);
}

cli_exit cli_agent_close(cli_agent *self, cli_exit code)
{
    if (self == NULL) {
        return code;
    }
    bay_caller_close(self->caller);
    bay_caller_options_free(self->options);
    config_free(self->config);
    mem_free(self);
    return caught != 0 ? signalled() : code;
}

bay_caller *cli_agent_caller(cli_agent *self)
{
    return self->caller;
}

static void on_done(bay_caller_request *operation, bay_caller_reply *response, const bay_diag *diag,
                    void *user)
{
    cli_agent *self = user;
    (void)operation;
    self->is_done = true;
    self->response = response;
    self->diag = *diag;
}

cli_exit cli_agent_run(cli_agent *self, bay_caller_request *operation, bay_caller_reply **out)
{
    bay_diag diag = {0};
    self->is_done = false;
    bay_err err = bay_caller_request_start(operation, &diag, on_done, self);
    if (err != BAY_OK) {
        return cli_agent_fail(&diag);
    }
    wait_for(self, &self->is_done);
    if (!self->is_done) {
        bay_caller_request_cancel(operation); /* its end is told by the caller's */
        return signalled();
    }
    if (self->diag.code != BAY_OK) {
        return cli_agent_fail(&self->diag);
    }
    *out = self->response;
    self->response = NULL;
    return CLI_EXIT_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

cli_exit cli_agent_read_file(const char *name, const char *what, buf *out)
{
    char chunk[16 * 1024];
    bool is_stdin = strcmp(name, "-") == 0;
    int file = is_stdin ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : 1;
    while (got > 0 && out->err == BAY_OK) {
        got = read(file, chunk, sizeof(chunk));
        buf_append(out, chunk, got > 0 ? (size_t)got : 0);
        got = got < 0 && errno == EINTR && caught == 0 ? 1 : got;
    }
    int reason = errno;
    if (!is_stdin && file >= 0) {
        close(file);
    }
    if (got < 0 || out->err != BAY_OK) {
        cli_say("%s: %s: %s", what, is_stdin ? "stdin" : name,
                got < 0 ? strerror(reason) : bay_err_text(out->err));
        return CLI_EXIT_FAILED;
    }
    return CLI_EXIT_OK;
}

/* ---- showing --------------------------------------------------------------------------------- */

static void put_part(const output *device, buf *out, const bay_message *message, size_t index)
{
    bay_str value = bay_message_part(message, index);
    bay_str name = bay_message_part_name(message, index);
    bay_str type = bay_message_part_type(message, index);
    switch (bay_message_part_kind(message, index)) {
    case BAY_PART_TEXT:
        output_text(device, out, value);
        break;
    case BAY_PART_DATA:
        output_json(device, out, value);
        break;
    case BAY_PART_URL:
        output_line(out, value);
        break;
    default:
        if (!device->is_terminal) {
            buf_str(out, value);
            return;
        }
        buf_printf(out, "(%zu bytes", value.len);
        buf_str(out, type.len > 0 ? STR(" of ") : STR(""));
        output_line(out, type);
        buf_str(out, name.len > 0 ? STR(", ") : STR(""));
        output_line(out, name);
        buf_lit(out, "; redirect the output to a file)");
        break;
    }
}

void cli_agent_put_parts(const output *device, buf *out, const bay_message *message)
{
    size_t count = bay_message_part_count(message);
    for (size_t i = 0; i < count; i++) {
        put_part(device, out, message, i);
    }
}

static void end_line(buf *out, size_t before)
{
    if (out->len > before && out->at[out->len - 1] != '\n') {
        buf_char(out, '\n');
    }
}

void cli_agent_put(const output *device, buf *out, const bay_caller_reply *response)
{
    size_t count = bay_caller_reply_artifact_count(response);
    for (size_t i = 0; i < count; i++) {
        size_t before = out->len;
        cli_agent_put_parts(device, out, bay_caller_reply_artifact(response, i));
        end_line(out, before);
    }
    size_t before = out->len;
    cli_agent_put_parts(device, out, bay_caller_reply_message(response));
    end_line(out, before);
}

cli_exit cli_agent_say_state(const bay_caller_reply *response)
{
    bay_task_state state = bay_caller_reply_state(response);
    bay_str task = bay_caller_reply_task(response);
    if (bay_caller_reply_kind_of(response) == BAY_CALLER_REPLY_KIND_MESSAGE || task.len == 0) {
        return CLI_EXIT_OK;
    }
    cli_say("task %.*s: %s%s", BAY_STR(task), bay_task_state_text(state),
            state == BAY_TASK_STATE_INPUT_REQUIRED ? " (answer it with send --task)" : "");
    bool has_failed = state == BAY_TASK_STATE_FAILED || state == BAY_TASK_STATE_REJECTED ||
                      state == BAY_TASK_STATE_CANCELLED;
    return has_failed ? CLI_EXIT_REMOTE : CLI_EXIT_OK;
}

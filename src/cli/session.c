#include "cli/session.h"

#include <signal.h>
#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/notice.h"
#include "cli/say.h"
#include "mcp_transport/link.h"
#include "upstream/credentials.h"

struct cli_session {
    cli_target target;
    const cli_arguments *arguments;
    cli_session_hooks hooks;
    loop *loop;
    http_client *http;
    tls_context *tls;
    mcp_link *link;
    cli_login *login;                  /* NULL: none */
    upstream_credentials *credentials; /* NULL: none, or a login goes before */
    cli_notice notice;
    int signal; /* the first that came; 0: none */
    bool is_forced;
    bool is_ready;
    bool is_broken;
    bool is_closed;
    bay_err broken_err;
    char broken_text[CLI_ANSWER_TEXT_BYTES];
    bool is_answered;
    bool shows_progress;
    cli_answer *answer;
};

/* ---- events ---------------------------------------------------------------------------------- */

static void on_ready(void *user)
{
    cli_session *self = user;
    self->is_ready = true;
}

static void on_broken(void *user, bay_err err, const char *text)
{
    cli_session *self = user;
    self->is_broken = true;
    mcp_link_log_last_lines(self->link);
    self->broken_err = err;
    snprintf(self->broken_text, sizeof(self->broken_text), "%s", text != NULL ? text : "");
}

static void on_logged(void *user, json_val params)
{
    cli_session *self = user;
    cli_notice_log(&self->notice, params);
}

static void on_traced(void *user, bool is_outgoing, bay_str message, const mcp_field *fields,
                      size_t count)
{
    cli_session *self = user;
    if (self->hooks.traced != NULL) {
        self->hooks.traced(self->hooks.user, is_outgoing, message, fields, count);
    }
}

static void on_notified(void *user, mcp_call *call, const mcp_method *method, json_val params)
{
    cli_session *self = user;
    (void)call;
    if (method->id == MCP_N_PROGRESS && self->shows_progress) {
        cli_notice_progress(&self->notice, params);
    } else if (method->id == MCP_N_MESSAGE) {
        cli_notice_log(&self->notice, params);
    }
}

static void on_done(void *user, mcp_call *call, const mcp_outcome *outcome)
{
    cli_session *self = user;
    (void)call;
    cli_answer_keep(self->answer, outcome);
    self->is_answered = true;
}

static void on_signal(void *user, int number)
{
    cli_session *self = user;
    self->is_forced = self->signal != 0;
    self->signal = self->signal != 0 ? self->signal : number;
}

static void session_on_closed(void *user)
{
    cli_session *self = user;
    self->is_closed = true;
}

static const mcp_client_events client_events = {
    .ready = on_ready, .broken = on_broken, .logged = on_logged, .traced = on_traced};
static const mcp_call_events call_events = {.notified = on_notified, .done = on_done};

/* ---- waiting --------------------------------------------------------------------------------- */

static void turn(cli_session *self)
{
    bool is_alive = loop_turn(self->loop, -1);
    if (self->hooks.turned != NULL) {
        self->hooks.turned(self->hooks.user);
    }
    if (!is_alive) { /* nobody is left who could answer */
        self->is_closed = true;
        if (!self->is_ready && !self->is_broken) {
            on_broken(self, BAY_ERR_CLOSED, "the connection ended");
        }
    }
}

static cli_exit signalled(const cli_session *self)
{
    return (cli_exit)(128 + self->signal);
}

static cli_exit session_fail(cli_session *self, bay_err err, const char *text)
{
    cli_notice_clear(&self->notice);
    cli_say_failure(self->target.shown, self->target.is_process, err, text);
    bool wants_login = err == BAY_ERR_DENIED && !self->target.is_process;
    return wants_login ? CLI_EXIT_LOGIN : cli_exit_of(err);
}

/* ---- opening --------------------------------------------------------------------------------- */

static http_authority *authority_of(void *user, const auth_principal *principal)
{
    cli_session *self = user;
    (void)principal;
    return self->login != NULL ? oauth_authority_http(cli_login_authority(self->login))
                               : upstream_credentials_own(self->credentials);
}

static mcp_link_options link_options(cli_session *self)
{
    const cli_target *target = &self->target;
    const char *name = self->arguments->client_name;
    mcp_link_options options = {
        .events = &client_events,
        .user = self,
        .authority = self->login != NULL || self->credentials != NULL ? authority_of : NULL,
    };
    options.client = (mcp_client_options){
        .name = name != NULL ? str_of(name) : STR("patchbay"),
        .label = str_of(target->shown),
        .version = str_of(bay_version()),
        .oldest = target->oldest,
        .newest = target->newest,
        .probe_timeout_ms = target->probe_ms,
        .call_timeout_ms = target->timeout_ms,
        .max_total_ms = target->total_ms,
    };
    return options;
}

static bay_err open_process(cli_session *self, bay_diag *diag)
{
    mcp_link_options options = link_options(self);
    process_options child = {.argv = self->target.argv,
                             .env = self->target.env,
                             .cwd = self->target.cwd,
                             .sandbox = self->arguments->sandbox != NULL ? self->arguments->sandbox
                                                                         : self->target.sandbox};
    return mcp_link_open_stdio(self->loop, &child, self->target.name, &options, &self->link, diag);
}

/* A field that the user wrote goes before a stored login, and that before what the configuration
 * has for the gateway. */
static bay_err open_login(cli_session *self, bay_diag *diag)
{
    const cli_target *target = &self->target;
    bool is_made = self->arguments->command == CLI_LOGIN;
    for (size_t i = 0; i < target->field_count; i++) {
        if (str_eq_nocase(target->fields[i].name, STR("authorization"))) {
            return is_made ? diag_set(diag, BAY_ERR_INVALID,
                                      "a header field Authorization is configured: nobody logs in")
                           : BAY_OK;
        }
    }
    if (is_made && target->granted == NULL && self->arguments->subject != NULL) {
        return diag_set(diag, BAY_ERR_INVALID,
                        "--for is for a server of the configuration whose credentials have grant: "
                        "user");
    }
    if (is_made && target->granted != NULL) {
        return cli_login_grant(self->arguments, target->granted, target->url, self->loop, self->tls,
                               &self->login, diag);
    }
    bay_err err = cli_login_new(self->arguments, is_made ? CLI_LOGIN_MADE : CLI_LOGIN_STORED,
                                target->url, self->loop, self->tls, &self->login, diag);
    if (err == BAY_OK && self->login == NULL && target->credentials != NULL) {
        upstream_credentials_options options = {
            .settings = target->credentials, .url = target->url, .tls = self->tls};
        err = upstream_credentials_new(self->loop, &options, &self->credentials, diag);
    }
    return err;
}

static bay_err open_url(cli_session *self, bay_diag *diag)
{
    const cli_target *target = &self->target;
    http_client_options http = {.limits = http_client_default_limits};
    http.limits.connect_timeout_ms = target->connect_ms;
    bay_err err = BAY_OK;
    if (tls_client_has_own(&target->tls)) {
        err = tls_client_new(&target->tls, &self->tls, diag);
        http.tls = self->tls;
    }
    if (err == BAY_OK) {
        err = http_client_new(self->loop, &http, &self->http);
    }
    if (err == BAY_OK) {
        err = open_login(self, diag);
    }
    if (err != BAY_OK) {
        return err;
    }
    mcp_link_options options = link_options(self);
    return mcp_link_open_http(self->loop, self->http, target->url, target->fields,
                              target->field_count, target->is_sse, &options, &self->link, diag);
}

static bay_err start(cli_session *self, bay_diag *diag)
{
    bay_err err = loop_new(&self->loop);
    err = err == BAY_OK ? loop_on_signal(self->loop, SIGINT, on_signal, self) : err;
    err = err == BAY_OK ? loop_on_signal(self->loop, SIGTERM, on_signal, self) : err;
    if (err != BAY_OK) {
        return err;
    }
    return self->target.is_process ? open_process(self, diag) : open_url(self, diag);
}

cli_exit cli_session_open(const cli_arguments *arguments, const cli_session_hooks *hooks,
                          cli_session **out)
{
    static const log_level levels[] = {LOG_WARN, LOG_INFO, LOG_DEBUG};
    bay_diag diag = {0};
    *out = NULL;
    cli_session *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        cli_say("out of memory");
        return CLI_EXIT_FAILED;
    }
    *out = self;
    self->arguments = arguments;
    self->hooks = hooks != NULL ? *hooks : (cli_session_hooks){0};
    cli_notice_init(&self->notice);
    cli_log_open(levels[arguments->verbosity < 2 ? arguments->verbosity : 2], CONFIG_LOG_TEXT);
    cli_exit code = cli_target_resolve(&self->target, arguments);
    if (code != CLI_EXIT_OK) {
        return code;
    }
    bay_err err = start(self, &diag);
    if (err != BAY_OK) {
        return session_fail(self, err, diag.text);
    }
    while (!self->is_ready && !self->is_broken && self->signal == 0) {
        turn(self);
    }
    if (self->signal != 0) {
        return signalled(self);
    }
    if (!self->is_broken) {
        return CLI_EXIT_OK;
    }
    bool is_stillborn = self->target.is_process && self->broken_err == BAY_ERR_CLOSED;
    return session_fail(self, self->broken_err,
                        is_stillborn ? "it ended before it could be spoken to" : self->broken_text);
}

/* ---- calling --------------------------------------------------------------------------------- */

static mcp_log_level wanted_level(const cli_session *self)
{
    static const mcp_log_level levels[] = {MCP_LOG_WARNING, MCP_LOG_INFO, MCP_LOG_DEBUG};
    return levels[self->arguments->verbosity < 2 ? self->arguments->verbosity : 2];
}

cli_exit cli_session_call(cli_session *self, const cli_request *request, cli_answer *out)
{
    bay_diag diag = {0};
    mcp_call *call = NULL;
    self->is_answered = false;
    self->answer = out;
    self->shows_progress = request->shows_progress && cli_notice_is_live(&self->notice);
    mcp_call_spec spec = {
        .method = mcp_method_of(request->method)->text,
        .params = request->params,
        .log_level = wanted_level(self),
        .wants_progress = self->shows_progress,
        .param_table = request->param_table,
    };
    bay_err err = mcp_client_call(mcp_link_client(self->link), &spec, &call_events, self,
                                  loop_now_ms(self->loop), &call, &diag);
    if (err != BAY_OK) {
        return session_fail(self, err, diag.text);
    }
    while (!self->is_answered && !self->is_broken && self->signal == 0) {
        turn(self);
    }
    cli_notice_clear(&self->notice);
    if (self->signal != 0) {
        if (!self->is_answered && !self->is_broken) {
            mcp_call_cancel(call, STR("interrupted"));
        }
        return signalled(self);
    }
    if (!self->is_answered) {
        return session_fail(self, self->broken_err, self->broken_text);
    }
    return out->kind == MCP_OUTCOME_FAILED ? session_fail(self, out->err, out->text) : CLI_EXIT_OK;
}

cli_exit cli_session_refused(const cli_session *self, bay_str what, const cli_answer *answer)
{
    arena memory;
    bay_str message = STR("no reason given");
    arena_init(&memory, 16 << 20);
    err_ignore(json_str(json_get(answer->value, STR("message")), &memory, &message));
    cli_say("%s: %.*s: error %d: %.*s", self->target.shown, BAY_STR(str_head(what, 200)),
            answer->error_code, BAY_STR(str_head(message, 2000)));
    arena_fini(&memory);
    return CLI_EXIT_REMOTE;
}

/* ---- the end --------------------------------------------------------------------------------- */

cli_exit cli_session_close(cli_session *self, cli_exit code)
{
    if (self == NULL) {
        return code;
    }
    /* who does not answer is not waited for again */
    bool is_polite = self->link != NULL && !self->is_broken && code != CLI_EXIT_TIMEOUT;
    if (is_polite) {
        mcp_link_close(self->link, session_on_closed, self);
        while (!self->is_closed && !self->is_forced) {
            turn(self);
        }
    }
    mcp_link_free(self->link);
    http_client_free(self->http);
    cli_login_free(self->login);
    upstream_credentials_free(self->credentials);
    if (self->loop != NULL) {
        (void)loop_turn(self->loop, 0);
        loop_free(self->loop);
    }
    tls_free(self->tls);
    cli_target_fini(&self->target);
    cli_notice_fini(&self->notice);
    code = self->signal != 0 ? signalled(self) : code;
    mem_free(self);
    return code;
}

cli_exit cli_session_once(const cli_arguments *arguments, mcp_method_id method, json_val params,
                          cli_exit (*print)(const cli_arguments *arguments, json_val result))
{
    cli_session *session = NULL;
    cli_answer answer;
    cli_request request = {.method = method, .params = params, .shows_progress = true};
    cli_exit code = cli_session_open(arguments, NULL, &session);
    if (code != CLI_EXIT_OK) {
        return cli_session_close(session, code);
    }
    cli_answer_init(&answer);
    code = cli_session_call(session, &request, &answer);
    if (code == CLI_EXIT_OK && answer.kind == MCP_OUTCOME_ERROR) {
        code = cli_session_refused(session, str_of(arguments->name), &answer);
    } else if (code == CLI_EXIT_OK) {
        code = print(arguments, answer.value);
    }
    cli_answer_fini(&answer);
    return cli_session_close(session, code);
}

cli_login *cli_session_login(cli_session *self)
{
    return self->login;
}

cli_exit cli_session_await_login(cli_session *self)
{
    bay_diag fault = {0};
    while (!cli_login_is_settled(self->login, &fault) && self->signal == 0) {
        turn(self);
    }
    if (self->signal != 0) {
        return signalled(self);
    }
    return fault.code == BAY_OK ? CLI_EXIT_OK : session_fail(self, fault.code, fault.text);
}

mcp_client *cli_session_client(cli_session *self)
{
    return mcp_link_client(self->link);
}

const cli_target *cli_session_resolved(const cli_session *self)
{
    return &self->target;
}

const char *cli_session_target(const cli_session *self)
{
    return self->target.shown;
}

const char *cli_session_transport(const cli_session *self)
{
    static const char *const names[] = {
        [MCP_LINK_DUPLEX] = "stdio", [MCP_LINK_HTTP] = "http", [MCP_LINK_SSE_2024] = "sse"};
    return names[mcp_client_link_kind(mcp_link_client(self->link))];
}

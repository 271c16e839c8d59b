/* login, logout, whoami: whom the user is to a server. */
#include <stdio.h>
#include <time.h>

#include "base/err.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/login.h"
#include "cli/print.h"
#include "cli/say.h"
#include "cli/session.h"
#include "cli/vault.h"
#include "wire/base64.h"
#include "json/writer.h"

enum { PAGE_BYTES = 1 << 20, CLAIMS_MEMORY = 4 << 20, TITLE_COLUMNS = 10 };

/* ---- about a login --------------------------------------------------------------------------- */

/* The payload of a token that is a JWT, not verified: the server does that. Missing if it is
 * none. */
static json_val claims_of(const oauth_record *record, arena *memory, json_doc *doc)
{
    static const json_limits limits = {64 << 10, 16, 1 << 12};
    bay_str token = buf_view(&record->access);
    size_t first = str_find(token, '.');
    bay_str payload = str_from(token, first + 1);
    buf decoded;
    bay_str text = {NULL, 0};
    payload = str_head(payload, str_find(payload, '.'));
    buf_init_secret(&decoded, OAUTH_TOKEN_BYTES);
    bool is_jwt = payload.len > 0 && base64_decode(&decoded, payload, BASE64_URL) == BAY_OK &&
                  arena_dup(memory, buf_view(&decoded), &text) == BAY_OK &&
                  json_parse(doc, text, &limits, memory, NULL) == BAY_OK &&
                  json_is(json_root(doc), JSON_OBJECT);
    buf_fini(&decoded);
    return is_jwt ? json_root(doc) : JSON_NONE;
}

static void put_time(buf *out, uint64_t at_ms)
{
    time_t seconds = (time_t)(at_ms / 1000);
    struct tm parts;
    char text[32];
    if (gmtime_r(&seconds, &parts) != NULL &&
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts) > 0) {
        buf_str(out, str_of(text));
    }
}

static void put_row(output *device, buf *out, const char *title, bay_str value)
{
    if (value.len == 0) {
        return;
    }
    output_color(device, out, OUTPUT_BOLD);
    buf_printf(out, "%-*s", TITLE_COLUMNS, title);
    output_color(device, out, OUTPUT_PLAIN);
    output_line(out, value);
    buf_char(out, '\n');
}

static bay_str subject_of(json_val claims, arena *memory)
{
    bay_str subject = {"", 0};
    err_ignore(json_str(json_get(claims, STR("sub")), memory, &subject));
    return subject;
}

static void write_text(const oauth_record *record, json_val claims, arena *memory, output *device,
                       buf *out)
{
    buf expiry;
    buf_init(&expiry, 64);
    if (record->expires_at_ms > 0) {
        put_time(&expiry, record->expires_at_ms);
    }
    put_row(device, out, "issuer", buf_view(&record->issuer));
    put_row(device, out, "subject", subject_of(claims, memory));
    put_row(device, out, "client", buf_view(&record->client_id));
    put_row(device, out, "resource", buf_view(&record->resource));
    put_row(device, out, "scopes", buf_view(&record->scope));
    put_row(device, out, "expires",
            expiry.len > 0 ? buf_view(&expiry) : STR("when the server says"));
    put_row(device, out, "renewed", record->refresh.len > 0 ? STR("yes") : STR("no"));
    put_row(device, out, "bound", record->is_dpop ? STR("to a key of this machine") : STR(""));
    buf_fini(&expiry);
}

static void write_json(const oauth_record *record, json_val claims, buf *out)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_key_lit(&writer, "issuer");
    json_put_str(&writer, buf_view(&record->issuer));
    json_key_lit(&writer, "client");
    json_put_str(&writer, buf_view(&record->client_id));
    json_key_lit(&writer, "resource");
    json_put_str(&writer, buf_view(&record->resource));
    json_key_lit(&writer, "scope");
    json_put_str(&writer, buf_view(&record->scope));
    if (record->expires_at_ms > 0) {
        json_key_lit(&writer, "expiresAt");
        size_t opened = json_open_word(&writer);
        put_time(out, record->expires_at_ms);
        json_close_word(&writer, opened);
    }
    json_key_lit(&writer, "renewed");
    json_put_bool(&writer, record->refresh.len > 0);
    json_key_lit(&writer, "bound");
    json_put_bool(&writer, record->is_dpop);
    if (!json_is(claims, JSON_MISSING)) {
        json_key_lit(&writer, "claims");
        json_put_val(&writer, claims);
    }
    json_close_object(&writer);
}

static cli_exit show(const cli_arguments *arguments, const oauth_record *record)
{
    arena memory;
    json_doc doc;
    output device;
    buf text;
    arena_init(&memory, CLAIMS_MEMORY);
    cli_print_init(&device, &text, arguments);
    json_val claims = claims_of(record, &memory, &doc);
    cli_exit code;
    if (arguments->is_json) {
        write_json(record, claims, &text);
        code = cli_print_json(&device, buf_view(&text), CLI_EXIT_OK);
    } else {
        write_text(record, claims, &memory, &device, &text);
        code = cli_print(&device, &text, CLI_EXIT_OK);
    }
    buf_fini(&text);
    arena_fini(&memory);
    return code;
}

/* ---- login ----------------------------------------------------------------------------------- */

int cmd_login(const cli_arguments *arguments)
{
    cli_session *session = NULL;
    cli_exit code = cli_session_open(arguments, NULL, &session);
    cli_login *login = session != NULL ? cli_session_login(session) : NULL;
    if (code == CLI_EXIT_OK && login == NULL) {
        cli_say("%s is a command: there is nothing to log in to", cli_session_target(session));
        code = CLI_EXIT_USAGE;
    }
    if (code == CLI_EXIT_OK && cli_login_record(login)->access.len == 0) {
        /* it did not ask: perhaps it does for single tools */
        oauth_authority_begin(cli_login_authority(login), false);
        code = cli_session_await_login(session);
    }
    const cli_target *target = session != NULL ? cli_session_resolved(session) : NULL;
    if (code == CLI_EXIT_OK && target->granted != NULL) {
        code = cli_vault_put(target->config, target->name, arguments->subject,
                             cli_login_record(login));
    }
    if (code == CLI_EXIT_OK) {
        code = show(arguments, cli_login_record(login));
    }
    return (int)cli_session_close(session, code);
}

/* ---- logout, whoami: without the server ------------------------------------------------------ */

typedef struct stored_login {
    cli_target target;
    tls_context *tls;
    loop *loop;
    cli_login *login;
} stored_login;

static void stored_close(stored_login *self)
{
    cli_login_free(self->login);
    if (self->loop != NULL) {
        loop_free(self->loop);
    }
    tls_free(self->tls);
    cli_target_fini(&self->target);
}

static cli_exit stored_open(stored_login *self, const cli_arguments *arguments, cli_login_mode mode)
{
    bay_diag diag = {0};
    *self = (stored_login){0};
    cli_exit code = cli_target_resolve(&self->target, arguments);
    if (code != CLI_EXIT_OK) {
        return code;
    }
    if (self->target.is_process) {
        cli_say("%s is a command: nobody logs in to it", self->target.shown);
        return CLI_EXIT_USAGE;
    }
    bay_err err = loop_new(&self->loop);
    if (err == BAY_OK && tls_client_has_own(&self->target.tls)) {
        err = tls_client_new(&self->target.tls, &self->tls, &diag);
    }
    if (err == BAY_OK) {
        err = cli_login_new(arguments, mode, self->target.url, self->loop, self->tls, &self->login,
                            &diag);
    }
    if (err == BAY_ERR_NOT_FOUND || (err == BAY_OK && self->login == NULL)) {
        cli_say("%s: nobody is logged in", self->target.shown);
        return CLI_EXIT_LOGIN;
    }
    if (err != BAY_OK) {
        cli_say("%s", diag.text[0] != '\0' ? diag.text : bay_err_text(err));
        return cli_exit_of(err);
    }
    return CLI_EXIT_OK;
}

int cmd_logout(const cli_arguments *arguments)
{
    stored_login stored;
    bay_diag fault = {0};
    cli_exit code = stored_open(&stored, arguments, CLI_LOGIN_ENDED);
    if (code == CLI_EXIT_OK) {
        oauth_authority_revoke(cli_login_authority(stored.login));
        while (!cli_login_is_settled(stored.login, &fault) && loop_turn(stored.loop, -1)) {
        }
        if (fault.code != BAY_OK) {
            cli_say("%s: the tokens could not be revoked: %s", stored.target.shown, fault.text);
        }
        bay_err err = cli_login_remove(stored.login);
        if (err != BAY_OK) {
            cli_say("%s: the login could not be removed: %s", stored.target.shown,
                    bay_err_text(err));
            code = CLI_EXIT_FAILED;
        }
    }
    stored_close(&stored);
    return (int)code;
}

int cmd_whoami(const cli_arguments *arguments)
{
    stored_login stored;
    cli_exit code = stored_open(&stored, arguments, CLI_LOGIN_STORED);
    const oauth_record *record = code == CLI_EXIT_OK ? cli_login_record(stored.login) : NULL;
    if (record != NULL && record->access.len == 0 && record->refresh.len == 0) {
        cli_say("%s: nobody is logged in", stored.target.shown); /* a login that did not end well */
        code = CLI_EXIT_LOGIN;
    }
    if (code == CLI_EXIT_OK) {
        code = show(arguments, record);
    }
    stored_close(&stored);
    return (int)code;
}

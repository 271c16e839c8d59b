#include "cli/login.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth/oauth_form.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/say.h"
#include "net/line_stream.h"

enum { SECRET_BYTES = 4096, LINE_BYTES = 16 << 10 };

struct cli_login {
    oauth_authority *authority;
    cli_logins *store;
    loop *loop;
    line_reader *pasted; /* the URL that the browser came back to, typed by the person; NULL */
    char *url;
    size_t url_len;
    cli_login_mode mode;
    bool opens_browser;
    bool is_settled;
    bay_diag fault;
    buf secret; /* of the client */
    jose_key *key;
};

static bay_str url_of(const cli_login *self)
{
    return (bay_str){self->url, self->url_len};
}

/* ---- the person ------------------------------------------------------------------------------ */

static bool has_screen(void)
{
    return getenv("DISPLAY") != NULL || getenv("WAYLAND_DISPLAY") != NULL ||
           getenv("BROWSER") != NULL;
}

/* As an argument of a program, never through a shell: CVE-2025-6514. The URL was checked to be one
 * of https, or of http on this machine. */
static bool open_browser(const char *url)
{
    extern char **environ;
    const char *chosen = getenv("BROWSER");
    const char *program = chosen != NULL && chosen[0] != '\0' ? chosen : "xdg-open";
    char *argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t)url, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    if (posix_spawn_file_actions_init(&actions) != 0) {
        return false;
    }
    bool is_ready = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0) == 0 &&
                    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1, 0) == 0 &&
                    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", 1, 0) == 0;
    bool is_started = is_ready && posix_spawnp(&pid, program, &actions, NULL, argv, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return is_started;
}

static void pasted_line(void *user, bay_str line)
{
    cli_login *self = user;
    line = str_trim(line);
    size_t query = str_find(line, '?');
    if (line.len > 0 && !oauth_authority_redirected(self->authority, str_from(line, query + 1))) {
        cli_say("that is not the address of this login's end: copy all of it");
    }
}

static void pasted_end(void *user, bay_err err)
{
    (void)user;
    (void)err; /* the receiver goes on */
}

static void read_pasted(cli_login *self)
{
    static const line_reader_events events = {.line = pasted_line, .end = pasted_end};
    line_reader_options options = {.line_bytes = LINE_BYTES};
    if (self->pasted == NULL && line_reader_new(self->loop, STDIN_FILENO, &options, &events, self,
                                                &self->pasted) != BAY_OK) {
        cli_say("what is typed here cannot be read");
        self->pasted = NULL;
    }
    if (self->pasted != NULL) {
        line_reader_resume(self->pasted);
    }
}

static void login_open(void *user, oauth_authority *authority, bay_str url)
{
    cli_login *self = user;
    char text[OAUTH_FORM_BYTES + 1];
    (void)authority;
    snprintf(text, sizeof(text), "%.*s", BAY_STR(url));
    bool is_open = self->opens_browser && has_screen() && open_browser(text);
    fprintf(stderr, "%s\n\n    %s\n\n",
            is_open ? "A browser was started for the login. If it shows nothing, open this page:"
                    : "To log in, open this page in a browser:",
            text);
    if (!self->opens_browser) {
        fprintf(stderr,
                "If the browser cannot come back to this machine, paste the address here at "
                "which it ends:\n");
        read_pasted(self);
    }
}

static void login_show(void *user, oauth_authority *authority, bay_str url, bay_str code)
{
    (void)user;
    (void)authority;
    fprintf(stderr, "To log in, open\n\n    %.*s\n\nand enter the code\n\n    %.*s\n\n",
            BAY_STR(url), BAY_STR(code));
}

/* ---- the store ------------------------------------------------------------------------------- */

static void login_keep(void *user, oauth_authority *authority, bay_str record)
{
    cli_login *self = user;
    bay_err err = BAY_OK;
    if (oauth_client_record(oauth_authority_client(authority))->issuer.len > 0) {
        err = cli_logins_write(self->store, url_of(self), record);
    }
    cli_logins_unlock(self->store);
    if (err != BAY_OK) {
        cli_say("the login could not be stored: %s; it ends with this command", bay_err_text(err));
    }
    oauth_authority_kept(authority);
}

static void login_reread(void *user, oauth_authority *authority)
{
    cli_login *self = user;
    buf record;
    buf_init_secret(&record, OAUTH_RECORD_BYTES);
    cli_logins_lock(self->store, url_of(self));
    bay_err err = cli_logins_read(self->store, url_of(self), &record);
    oauth_authority_reread(authority, err == BAY_OK ? buf_view(&record) : (bay_str){"", 0});
    buf_fini(&record);
}

static void login_settled(void *user, oauth_authority *authority, const bay_diag *fault)
{
    cli_login *self = user;
    (void)authority;
    self->is_settled = true;
    self->fault = fault != NULL ? *fault : (bay_diag){0};
    if (self->store != NULL) {
        cli_logins_unlock(self->store);
    }
}

static const oauth_authority_events stored_events = {
    .keep = login_keep, .reread = login_reread, .settled = login_settled};
static const oauth_authority_events made_events = {.open = login_open,
                                                   .show = login_show,
                                                   .keep = login_keep,
                                                   .reread = login_reread,
                                                   .settled = login_settled};
static const oauth_authority_events granted_events = {
    .open = login_open, .show = login_show, .settled = login_settled};

/* ---- making ---------------------------------------------------------------------------------- */

static bay_err read_secret(cli_login *self, const char *path, bay_diag *diag)
{
    char line[SECRET_BYTES];
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return diag_set(diag, BAY_ERR_IO, "%s: %s", path, strerror(errno));
    }
    size_t len = fread(line, 1, sizeof(line), file);
    fclose(file);
    bay_str text = {line, len};
    text = str_head(text, str_find(text, '\n'));
    bay_err err = oauth_text_set(&self->secret, str_trim(text));
    mem_wipe(line, sizeof(line));
    if (err == BAY_OK && self->secret.len == 0) {
        err = diag_set(diag, BAY_ERR_INVALID, "%s has no secret in its first line", path);
    }
    return err;
}

static oauth_settings settings_of(const cli_login *self, const cli_arguments *arguments,
                                  bay_str client)
{
    bool is_made = self->mode == CLI_LOGIN_MADE;
    return (oauth_settings){
        .grant = !is_made               ? OAUTH_STORED
                 : arguments->is_device ? OAUTH_DEVICE
                                        : OAUTH_CODE,
        .url = url_of(self),
        .identity = {.id = client, .secret = buf_view(&self->secret)},
        .name = STR("patchbay"),
        .issuer = str_of(arguments->issuer),
        .scope = str_of(arguments->scope),
    };
}

static bay_err load(cli_login *self, buf *record)
{
    bay_err err = cli_logins_read(self->store, url_of(self), record);
    return err == BAY_ERR_DENIED ? BAY_ERR_NOT_FOUND : err; /* sealed with a key that is gone */
}

static bay_err login_begin(cli_login *self, const cli_arguments *arguments, tls_context *tls,
                           bay_diag *diag)
{
    buf record;
    buf_init_secret(&record, OAUTH_RECORD_BYTES);
    bay_err err = load(self, &record);
    bool is_stored = err == BAY_OK;
    if (err == BAY_ERR_NOT_FOUND && self->mode == CLI_LOGIN_MADE) {
        err = BAY_OK;
    }
    if (err == BAY_OK && arguments->secret_file != NULL) {
        err = read_secret(self, arguments->secret_file, diag);
    }
    if (err == BAY_OK) {
        oauth_authority_options options = {
            .client = settings_of(self, arguments, str_of(arguments->client_id)),
            .tls = tls,
            .has_receiver = self->mode == CLI_LOGIN_MADE,
        };
        err = oauth_authority_new(self->loop, &options,
                                  self->mode == CLI_LOGIN_MADE ? &made_events : &stored_events,
                                  self, &self->authority, diag);
    }
    if (err == BAY_OK && is_stored) {
        err = oauth_authority_load(self->authority, buf_view(&record));
    }
    if (err == BAY_OK && self->mode == CLI_LOGIN_MADE) {
        oauth_authority_forget(self->authority);
    }
    buf_fini(&record);
    return err;
}

bay_err cli_login_new(const cli_arguments *arguments, cli_login_mode mode, bay_str url, loop *on,
                      tls_context *tls, cli_login **out, bay_diag *diag)
{
    *out = NULL;
    cli_login *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    self->mode = mode;
    self->loop = on;
    self->opens_browser = !arguments->is_browserless;
    buf_init_secret(&self->secret, SECRET_BYTES);
    self->url = mem_dup(url.at, url.len);
    self->url_len = url.len;
    bay_err err = self->url != NULL ? cli_logins_open(mode == CLI_LOGIN_MADE, &self->store, diag)
                                    : BAY_ERR_NOMEM;
    if (err == BAY_OK) {
        err = login_begin(self, arguments, tls, diag);
    }
    bool is_none = err == BAY_ERR_NOT_FOUND || err == BAY_ERR_UNSUPPORTED;
    if (err != BAY_OK) {
        cli_login_free(self);
        return is_none && mode == CLI_LOGIN_STORED ? BAY_OK : err;
    }
    *out = self;
    return BAY_OK;
}

static bay_str said_or(const char *said, bay_str configured)
{
    return said != NULL ? str_of(said) : configured;
}

static bay_err grant_begin(cli_login *self, const cli_arguments *arguments,
                           const config_credentials *client, tls_context *tls, bay_diag *diag)
{
    bay_err err = arguments->secret_file != NULL
                      ? read_secret(self, arguments->secret_file, diag)
                      : oauth_text_set(&self->secret, client->client_secret);
    if (err == BAY_OK && client->key.len > 0) {
        err = jose_key_new(client->key, client->key_id, &self->key, diag);
    }
    if (err != BAY_OK) {
        return err;
    }
    oauth_authority_options options = {
        .client = {.grant = arguments->is_device ? OAUTH_DEVICE : OAUTH_CODE,
                   .url = url_of(self),
                   .identity = {.id = said_or(arguments->client_id, client->client_id),
                                .secret = buf_view(&self->secret),
                                .key = self->key},
                   .name = STR("patchbay"),
                   .issuer = said_or(arguments->issuer, client->issuer),
                   .scope = said_or(arguments->scope, client->scope),
                   .wants_dpop = client->dpop},
        .tls = tls,
        .allow = client->allow.at,
        .allow_count = client->allow.count,
        .has_receiver = true,
    };
    return oauth_authority_new(self->loop, &options, &granted_events, self, &self->authority, diag);
}

bay_err cli_login_grant(const cli_arguments *arguments, const config_credentials *client,
                        bay_str url, loop *on, tls_context *tls, cli_login **out, bay_diag *diag)
{
    cli_login *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    self->mode = CLI_LOGIN_GRANTED;
    self->loop = on;
    self->opens_browser = !arguments->is_browserless;
    buf_init_secret(&self->secret, SECRET_BYTES);
    self->url = mem_dup(url.at, url.len);
    self->url_len = url.len;
    bay_err err =
        self->url != NULL ? grant_begin(self, arguments, client, tls, diag) : BAY_ERR_NOMEM;
    if (err != BAY_OK) {
        cli_login_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

void cli_login_free(cli_login *self)
{
    if (self == NULL) {
        return;
    }
    oauth_authority_free(self->authority);
    line_reader_free(self->pasted);
    if (self->store != NULL) {
        cli_logins_close(self->store);
    }
    buf_fini(&self->secret);
    jose_key_free(self->key);
    mem_free(self->url);
    mem_free(self);
}

oauth_authority *cli_login_authority(cli_login *self)
{
    return self->authority;
}

const oauth_record *cli_login_record(const cli_login *self)
{
    return oauth_client_record(oauth_authority_client(self->authority));
}

bay_err cli_login_remove(cli_login *self)
{
    bay_err err = cli_logins_remove(self->store, url_of(self));
    return err == BAY_ERR_NOT_FOUND ? BAY_OK : err;
}

bool cli_login_is_settled(const cli_login *self, bay_diag *out)
{
    if (self->is_settled) {
        *out = self->fault;
    }
    return self->is_settled;
}

/* vault: what users were granted at servers, in the store of a gateway: filled by login, shown, revoked. */
#include <stdio.h>
#include <string.h>

#include "auth/vault.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/rows.h"
#include "cli/say.h"
#include "cli/vault.h"
#include "oauth/authority.h"
#include "sessions/keys.h"
#include "json/writer.h"

enum { ID_BYTES = 12 };

typedef struct vault_work {
    const cli_arguments *arguments;
    const config *settings;
    cli_rows rows;
    seal_ring *ring, *keys;
    output device;
    buf text;
    json_writer json;
    size_t count, unreadable;
    /* revoke: the one whose name begins so */
    char name[VAULT_NAME_BYTES];
    buf value;
} vault_work;

/* ---- opening --------------------------------------------------------------------------------- */

static cli_exit vault_begin(vault_work *self)
{
    bay_diag diag = {.text = ""};
    if (self->settings->keys.count == 0) {
        cli_say(
            "the configuration has no keys, with which the vault is sealed: give one by `keys`");
        return CLI_EXIT_CONFIG;
    }
    bay_err err = session_keys_open(self->settings, &self->ring, &diag);
    err = err == BAY_OK ? vault_keys_new(self->ring, &self->keys) : err;
    if (err != BAY_OK) {
        cli_say("%s", diag.text[0] != '\0' ? diag.text : bay_err_text(err));
        return CLI_EXIT_FAILED;
    }
    return cli_rows_open(&self->rows, self->settings, "users' tokens") ? CLI_EXIT_OK
                                                                       : CLI_EXIT_CONFIG;
}

static void vault_end(vault_work *self)
{
    cli_rows_close(&self->rows);
    seal_ring_free(self->keys);
    seal_ring_free(self->ring);
}

/* ---- filling --------------------------------------------------------------------------------- */

/* "SUB" of the only issuer, or "ISSUER SUB". */
static bay_err principal_for(const config *settings, const char *subject,
                             const auth_principal **out)
{
    const config_auth *auth = &settings->auth;
    principal_parts who = {.proof = PRINCIPAL_TOKEN};
    if (subject == NULL) {
        *out = principal_local();
        return *out != NULL ? BAY_OK : BAY_ERR_NOMEM;
    }
    bay_str text = str_of(subject);
    size_t space = str_find(text, ' ');
    if (space < text.len) {
        who.issuer = str_head(text, space);
        who.subject = str_from(text, space + 1);
    } else if (auth->issuer_count == 1) {
        who.issuer = auth->issuers[0].url;
        who.subject = text;
    }
    return who.subject.len > 0 ? principal_new(&who, out) : BAY_ERR_INVALID;
}

static void count_row(void *user, const store_row *row)
{
    (void)row;
    ((vault_work *)user)->count++;
}

static bay_err put_row(vault_work *self, const vault_row *row)
{
    char name[VAULT_NAME_BYTES];
    bay_str key = {name, sizeof(name)};
    buf value;
    bay_err err = cli_rows_each(&self->rows, STR(VAULT_TABLE), count_row, self);
    if (err == BAY_OK && self->count >= VAULT_ROWS) {
        err = BAY_ERR_LIMIT;
    }
    buf_init(&value, 2 * VAULT_PLAIN_BYTES);
    err = err == BAY_OK ? vault_name(self->keys, 0, row->identity, row->server, name) : err;
    err = err == BAY_OK ? vault_seal(self->keys, key, row, &value) : err;
    if (err == BAY_OK) {
        store_put_request request = {.table = STR(VAULT_TABLE),
                                     .key = key,
                                     .value = buf_view(&value),
                                     .expected = STORE_ANY};
        err = cli_rows_wait(&self->rows,
                            store_put(self->rows.store, &request, cli_rows_done, &self->rows));
    }
    buf_fini(&value);
    return err;
}

cli_exit cli_vault_put(const config *settings, bay_str server, const char *subject,
                       const oauth_record *record)
{
    vault_work self = {.settings = settings};
    const auth_principal *who = NULL;
    buf text;
    bay_err err = principal_for(settings, subject, &who);
    if (err != BAY_OK) {
        cli_say("--for %s: whose login it is cannot be said so: with several issuers, or none, in "
                "`auth`, write \"ISSUER SUB\"",
                subject != NULL ? subject : "");
        return CLI_EXIT_USAGE;
    }
    buf_init_secret(&text, OAUTH_RECORD_BYTES);
    cli_exit code = vault_begin(&self);
    if (code == CLI_EXIT_OK) {
        err = oauth_record_write(record, &text);
        vault_row row = {principal_identity(who), server, buf_view(&text)};
        err = err == BAY_OK ? put_row(&self, &row) : err;
        if (err != BAY_OK) {
            cli_say("the login could not be kept in the vault: %s", bay_err_text(err));
            code = CLI_EXIT_FAILED;
        }
    }
    vault_end(&self);
    buf_fini(&text);
    principal_unref(who);
    return code;
}

/* ---- showing --------------------------------------------------------------------------------- */

static void show_row(vault_work *self, bay_str id, const auth_principal *who, const vault_row *row,
                     const oauth_record *record)
{
    char expires[CLI_TIME_BYTES];
    cli_time_write(record->expires_at_ms, expires);
    if (!self->arguments->is_json) {
        buf_printf(&self->text, "%.*s  %-20s  ", BAY_STR(str_head(id, ID_BYTES)), expires);
        output_line(&self->text, row->server);
        buf_lit(&self->text, "  ");
        output_line(&self->text, principal_subject(who));
        buf_lit(&self->text, "  ");
        output_line(&self->text, buf_view(&record->scope));
        buf_char(&self->text, '\n');
        return;
    }
    const struct {
        const char *name;
        bay_str value;
    } texts[] = {{"id", str_head(id, ID_BYTES)},
                 {"server", row->server},
                 {"issuer", principal_issuer(who)},
                 {"subject", principal_subject(who)},
                 {"authorizationServer", buf_view(&record->issuer)},
                 {"scope", buf_view(&record->scope)}};
    json_open_object(&self->json);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        json_key(&self->json, str_of(texts[i].name));
        json_put_str(&self->json, texts[i].value);
    }
    json_key_lit(&self->json, "expiresAt");
    json_put_uint(&self->json, record->expires_at_ms);
    json_key_lit(&self->json, "renewed");
    json_put_bool(&self->json, record->refresh.len > 0);
    json_close_object(&self->json);
}

static void see_row(void *user, const store_row *row)
{
    vault_work *self = user;
    vault_row opened;
    oauth_record record;
    const auth_principal *who = NULL;
    buf plain;
    buf_init_secret(&plain, VAULT_PLAIN_BYTES);
    oauth_record_init(&record);
    bool is_open = vault_open(self->keys, row->key, row->value, &plain, &opened) == BAY_OK;
    if (is_open && str_eq(opened.identity, STR(VAULT_CLIENT))) {
        /* the gateway's own registration there: nobody's login */
    } else if (is_open && principal_of_identity(opened.identity, &who) == BAY_OK &&
               oauth_record_read(&record, opened.record) == BAY_OK) {
        show_row(self, row->key, who, &opened, &record);
    } else {
        self->unreadable++;
    }
    principal_unref(who);
    oauth_record_fini(&record);
    buf_fini(&plain);
}

static cli_exit list_vault(vault_work *self)
{
    json_writer_init(&self->json, &self->text);
    if (self->arguments->is_json) {
        json_open_array(&self->json);
    }
    bay_err err = cli_rows_each(&self->rows, STR(VAULT_TABLE), see_row, self);
    if (err != BAY_OK) {
        cli_say("the vault cannot be read: %s", bay_err_text(err));
        return CLI_EXIT_FAILED;
    }
    if (self->unreadable > 0) {
        cli_say("%zu more cannot be opened: the keys that sealed them are not among `keys`",
                self->unreadable);
    }
    if (self->arguments->is_json) {
        json_close_array(&self->json);
        return cli_print_json(&self->device, buf_view(&self->text), CLI_EXIT_OK);
    }
    return cli_print(&self->device, &self->text, CLI_EXIT_OK);
}

/* ---- revoking -------------------------------------------------------------------------------- */

static void match_row(void *user, const store_row *row)
{
    vault_work *self = user;
    if (row->key.len != sizeof(self->name) ||
        !str_starts(row->key, str_of(self->arguments->name))) {
        return;
    }
    self->count++;
    memcpy(self->name, row->key.at, sizeof(self->name));
    buf_clear(&self->value);
    buf_str(&self->value, row->value);
}

typedef struct revocation {
    bool is_settled;
    bay_diag fault;
} revocation;

static void on_revoked(void *user, oauth_authority *authority, const bay_diag *fault)
{
    revocation *self = user;
    (void)authority;
    self->is_settled = true;
    self->fault = fault != NULL ? *fault : (bay_diag){0};
}

/* At the authorization server, as the client that the tokens are of. */
static void revoke_tokens(vault_work *self, const vault_row *row)
{
    static const oauth_authority_events events = {.settled = on_revoked};
    const config_server *server = config_server_find(self->settings, row->server);
    const config_agent *agent = config_agent_find(self->settings, row->server);
    bool is_server = server != NULL && server->url.len > 0; /* an agent's skills have no URL */
    oauth_authority *authority = NULL;
    revocation over = {.is_settled = false};
    if (!is_server && agent == NULL) {
        cli_say("%.*s is not in the configuration any more: its tokens are removed, not revoked",
                BAY_STR(row->server));
        return;
    }
    const config_credentials *client = is_server ? &server->credentials : &agent->credentials;
    oauth_authority_options options = {
        .client = {.grant = OAUTH_STORED,
                   .url = is_server             ? server->url
                          : agent->card.len > 0 ? agent->card
                                                : agent->url,
                   .identity = {.id = client->client_id, .secret = client->client_secret},
                   .is_modern_only = true},
        .allow = client->allow.at,
        .allow_count = client->allow.count,
    };
    bay_err err =
        oauth_authority_new(self->rows.loop, &options, &events, &over, &authority, &over.fault);
    err = err == BAY_OK ? oauth_authority_load(authority, row->record) : err;
    if (err == BAY_OK) {
        oauth_authority_revoke(authority);
        while (!over.is_settled && loop_turn(self->rows.loop, -1)) {
        }
    }
    if (err != BAY_OK || over.fault.code != BAY_OK) {
        cli_say("the tokens could not be revoked: %s",
                over.fault.text[0] != '\0' ? over.fault.text : bay_err_text(err));
    }
    oauth_authority_free(authority);
}

static cli_exit revoke(vault_work *self)
{
    vault_row row;
    buf plain;
    bay_err err = cli_rows_each(&self->rows, STR(VAULT_TABLE), match_row, self);
    bay_str name = {self->name, sizeof(self->name)};
    if (err == BAY_OK && self->count != 1) {
        cli_say(self->count == 0 ? "%s: there is no such login in the vault"
                                 : "%s: several begin so: write more of the ID",
                self->arguments->name);
        return CLI_EXIT_REMOTE;
    }
    buf_init_secret(&plain, VAULT_PLAIN_BYTES);
    err = err == BAY_OK ? self->value.err : err;
    if (err == BAY_OK &&
        vault_open(self->keys, name, buf_view(&self->value), &plain, &row) == BAY_OK) {
        revoke_tokens(self, &row);
    }
    if (err == BAY_OK) {
        err = cli_rows_wait(&self->rows, store_remove(self->rows.store, STR(VAULT_TABLE), name,
                                                      STORE_ANY, cli_rows_done, &self->rows));
    }
    buf_fini(&plain);
    if (err != BAY_OK) {
        cli_say("the vault could not be changed: %s", bay_err_text(err));
        return CLI_EXIT_FAILED;
    }
    return CLI_EXIT_OK;
}

int cmd_vault(const cli_arguments *arguments)
{
    const char *path = NULL;
    vault_work self = {.arguments = arguments};
    if (cli_load_config(arguments, false, &path, &self.settings) != BAY_OK) {
        return CLI_EXIT_CONFIG;
    }
    cli_print_init(&self.device, &self.text, arguments);
    buf_init(&self.value, 2 * VAULT_PLAIN_BYTES);
    cli_exit code = vault_begin(&self);
    if (code == CLI_EXIT_OK) {
        code = str_eq(str_of(arguments->action), STR("list")) ? list_vault(&self) : revoke(&self);
    }
    vault_end(&self);
    buf_fini(&self.value);
    buf_fini(&self.text);
    config_free(self.settings);
    return (int)code;
}

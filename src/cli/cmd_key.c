/* key: API keys of a gateway, in its store: made, shown, revoked. Of a key only a digest is stored. */
#include "auth/api_key.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/rows.h"
#include "cli/say.h"
#include "json/writer.h"

#include <stdio.h>

typedef struct key_work {
    const cli_arguments *arguments;
    cli_rows rows;
    output device;
    buf text;
    json_writer json;
    /* revoke: who has that name or ID */
    size_t matches;
    char id[API_KEY_ID_BYTES + 1];
} key_work;

/* ---- what is shown --------------------------------------------------------------------------- */

/* `text` is the key itself, once; NULL: it is not known. */
static void put_json(json_writer *out, bay_str id, const api_key *key, const char *text)
{
    json_open_object(out);
    json_key_lit(out, "id");
    json_put_str(out, id);
    json_key_lit(out, "name");
    json_put_str(out, key->name);
    json_key_lit(out, "scopes");
    json_put_str(out, key->scopes);
    json_key_lit(out, "madeAt");
    json_put_uint(out, key->made_at_ms);
    json_key_lit(out, "expiresAt");
    json_put_uint(out, key->expires_at_ms);
    if (text != NULL) {
        json_key_lit(out, "key");
        json_put_str(out, str_of(text));
    }
    json_close_object(out);
}

static void put_line(key_work *self, bay_str id, const api_key *key)
{
    char expires[CLI_TIME_BYTES];
    cli_time_write(key->expires_at_ms, expires);
    bool is_over = key->expires_at_ms > 0 && key->expires_at_ms <= loop_time_ms();
    buf_printf(&self->text, "%-16.*s  %-20s  ", BAY_STR(id), expires);
    output_line(&self->text, key->name);
    if (key->scopes.len > 0) {
        buf_lit(&self->text, "  ");
        output_line(&self->text, key->scopes);
    }
    buf_str(&self->text, is_over ? STR("  (expired)\n") : STR("\n"));
}

static cli_exit print_text(key_work *self)
{
    return self->arguments->is_json
               ? cli_print_json(&self->device, buf_view(&self->text), CLI_EXIT_OK)
               : cli_print(&self->device, &self->text, CLI_EXIT_OK);
}

/* ---- list and revoke ------------------------------------------------------------------------- */

static void see_key(key_work *self, bay_str id, const api_key *key)
{
    bay_str wanted = str_of(self->arguments->name);
    if (self->arguments->name == NULL) {
        if (self->arguments->is_json) {
            put_json(&self->json, id, key, NULL);
        } else {
            put_line(self, id, key);
        }
    } else if (str_eq(wanted, id) || str_eq(wanted, key->name)) {
        self->matches++;
        (void)snprintf(self->id, sizeof(self->id), "%.*s", BAY_STR(id));
    }
}

static void see_row(void *user, const store_row *row)
{
    api_key key;
    arena memory;
    arena_init(&memory, API_KEY_MEMORY_BYTES);
    if (api_key_row_read(row->value, &memory, &key) == BAY_OK) {
        see_key(user, row->key, &key);
    } else {
        cli_say("the key %.*s cannot be read: it was not written by this program",
                BAY_STR(row->key));
    }
    arena_fini(&memory);
}

static bay_err see_keys(key_work *self)
{
    return cli_rows_each(&self->rows, STR(API_KEY_TABLE), see_row, self);
}

static cli_exit list_keys(key_work *self)
{
    json_writer_init(&self->json, &self->text);
    if (self->arguments->is_json) {
        json_open_array(&self->json);
    }
    bay_err err = see_keys(self);
    if (err != BAY_OK) {
        cli_say("API keys cannot be read: %s", bay_err_text(err));
        return CLI_EXIT_FAILED;
    }
    if (self->arguments->is_json) {
        json_close_array(&self->json);
    }
    return print_text(self);
}

static cli_exit revoke_key(key_work *self)
{
    bay_err err = see_keys(self);
    if (err == BAY_OK && self->matches != 1) {
        cli_say(self->matches == 0 ? "there is no API key of that name or ID: patchbay key list "
                                     "shows them"
                                   : "several API keys have that name: give the ID of one, which "
                                     "patchbay key list shows");
        return CLI_EXIT_REMOTE;
    }
    if (err == BAY_OK) {
        err = cli_rows_wait(&self->rows,
                            store_remove(self->rows.store, STR(API_KEY_TABLE), str_of(self->id),
                                         STORE_ANY, cli_rows_done, &self->rows));
    }
    if (err != BAY_OK) {
        cli_say("the API key could not be removed: %s", bay_err_text(err));
        return CLI_EXIT_FAILED;
    }
    if (self->arguments->is_json) {
        buf_printf(&self->text, "{\"id\":\"%s\"}", self->id);
        return print_text(self);
    }
    cli_say("%s is revoked: a gateway that runs takes it for 10 s at most", self->id);
    return CLI_EXIT_OK;
}

/* ---- new ------------------------------------------------------------------------------------- */

/* Its name is shown in logs and lists; NULL: it may have it. */
static const char *name_fault(bay_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        if ((unsigned char)name.at[i] < ' ' || name.at[i] == 0x7f) {
            return "the name of a key is one line of text";
        }
    }
    return name.len > API_KEY_NAME_BYTES ? "the name of a key has at most 256 bytes" : NULL;
}

static bool are_scopes(bay_str scopes)
{
    bool is_good = scopes.len <= API_KEY_ROW_BYTES / 2;
    for (size_t i = 0; is_good && i < scopes.len; i++) {
        char c = scopes.at[i];
        bool is_gap = c == ' ' && i > 0 && i + 1 < scopes.len && scopes.at[i - 1] != ' ';
        is_good = is_gap || (c > ' ' && c <= '~' && c != '"' && c != '\\');
    }
    return is_good;
}

static cli_exit print_new(key_work *self, bay_str id, const api_key *row, const char *key)
{
    if (self->arguments->is_json) {
        json_writer_init(&self->json, &self->text);
        put_json(&self->json, id, row, key);
    } else {
        buf_printf(&self->text, "%s\n", key);
        cli_say("this is shown once; the key's ID is %.*s", BAY_STR(id));
    }
    return print_text(self);
}

static cli_exit new_key(key_work *self)
{
    char key[API_KEY_BYTES];
    bay_str id = {"", 0};
    uint64_t now = loop_time_ms();
    uint64_t lasts = self->arguments->expires_ms;
    api_key row = {.name = str_of(self->arguments->name),
                   .scopes = str_of(self->arguments->scope),
                   .made_at_ms = now,
                   .expires_at_ms = lasts > 0 ? now + lasts : 0};
    const char *fault = name_fault(row.name);
    fault =
        fault == NULL && !are_scopes(row.scopes)
            ? "--scope needs scopes separated by single spaces, of visible ASCII without quotes "
              "and \\"
            : fault;
    if (fault != NULL) {
        cli_say("%s", fault);
        return CLI_EXIT_USAGE;
    }
    bay_err err = api_key_make(&row, key);
    cli_exit code = CLI_EXIT_FAILED;
    buf value;
    buf_init(&value, API_KEY_ROW_BYTES);
    if (err == BAY_OK && api_key_id(str_of(key), &id)) {
        api_key_row_write(&row, &value);
        store_put_request request = {.table = STR(API_KEY_TABLE),
                                     .key = id,
                                     .value = buf_view(&value),
                                     .expected = STORE_ABSENT};
        err = value.err == BAY_OK
                  ? cli_rows_wait(&self->rows,
                                  store_put(self->rows.store, &request, cli_rows_done, &self->rows))
                  : value.err;
    }
    if (err != BAY_OK) {
        cli_say("the API key could not be stored: %s", bay_err_text(err));
    } else {
        code = print_new(self, id, &row, key);
    }
    mem_wipe(key, sizeof(key));
    buf_fini(&value);
    return code;
}

/* ---- all ------------------------------------------------------------------------------------- */

static cli_exit run(key_work *self)
{
    bay_str action = str_of(self->arguments->action);
    return str_eq(action, STR("new"))    ? new_key(self)
           : str_eq(action, STR("list")) ? list_keys(self)
                                         : revoke_key(self);
}

int cmd_key(const cli_arguments *arguments)
{
    const char *path = NULL;
    const config *settings = NULL;
    key_work self = {.arguments = arguments};
    if (cli_load_config(arguments, false, &path, &settings) != BAY_OK) {
        return CLI_EXIT_CONFIG;
    }
    cli_exit code = CLI_EXIT_CONFIG;
    cli_print_init(&self.device, &self.text, arguments);
    if (cli_rows_open(&self.rows, settings, "API keys")) {
        code = run(&self);
    }
    cli_rows_close(&self.rows);
    buf_fini(&self.text);
    config_free(settings);
    return code;
}

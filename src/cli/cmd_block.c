/* block: callers whom a gateway turns away, in its store. */
#include "auth/block.h"
#include "auth/principal.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/rows.h"
#include "cli/say.h"
#include "json/writer.h"

typedef struct block_work {
    const cli_arguments *arguments;
    cli_rows rows;
    output device;
    buf text;
    json_writer json;
    size_t count;
} block_work;

static void see_row(void *user, const store_row *row)
{
    block_work *self = user;
    self->count++;
    if (self->arguments->is_json) {
        json_put_str(&self->json, row->value);
    } else {
        output_line(&self->text, row->value);
        buf_char(&self->text, '\n');
    }
}

static cli_exit failed(const char *what, bay_err err)
{
    cli_say("%s: %s", what, bay_err_text(err));
    return CLI_EXIT_FAILED;
}

static cli_exit list_blocks(block_work *self)
{
    bool is_json = self->arguments->is_json;
    json_writer_init(&self->json, &self->text);
    if (is_json) {
        json_open_array(&self->json);
    }
    bay_err err = cli_rows_each(&self->rows, STR(BLOCK_TABLE), see_row, self);
    if (err != BAY_OK) {
        return failed("who is blocked cannot be read", err);
    }
    if (is_json) {
        json_close_array(&self->json);
        return cli_print_json(&self->device, buf_view(&self->text), CLI_EXIT_OK);
    }
    return cli_print(&self->device, &self->text, CLI_EXIT_OK);
}

static void count_row(void *user, const store_row *row)
{
    (void)row;
    ((block_work *)user)->count++;
}

static bay_err put_block(block_work *self, bay_str key, bay_str subject)
{
    bay_err err = cli_rows_each(&self->rows, STR(BLOCK_TABLE), count_row, self);
    if (err != BAY_OK || self->count >= BLOCKS) {
        return err != BAY_OK ? err : BAY_ERR_LIMIT;
    }
    store_put_request request = {
        .table = STR(BLOCK_TABLE), .key = key, .value = subject, .expected = STORE_ANY};
    return cli_rows_wait(&self->rows,
                         store_put(self->rows.store, &request, cli_rows_done, &self->rows));
}

static cli_exit change_block(block_work *self, bay_str subject)
{
    char text[DIGEST_TEXT_BYTES + 1];
    if (subject.len > PRINCIPAL_TEXT_BYTES) {
        cli_say("a subject has at most %d bytes", PRINCIPAL_TEXT_BYTES);
        return CLI_EXIT_USAGE;
    }
    bay_err err = block_key(subject, text);
    bay_str key = {text, DIGEST_TEXT_BYTES};
    if (err == BAY_OK && self->arguments->is_lifted) {
        err = cli_rows_wait(&self->rows, store_remove(self->rows.store, STR(BLOCK_TABLE), key,
                                                      STORE_ANY, cli_rows_done, &self->rows));
    } else if (err == BAY_OK) {
        err = put_block(self, key, subject);
    }
    if (err == BAY_ERR_NOT_FOUND) {
        cli_say("%.*s is not blocked", BAY_STR(subject));
        return CLI_EXIT_REMOTE;
    }
    if (err == BAY_ERR_LIMIT) {
        cli_say("%d callers are blocked, and more cannot be", BLOCKS);
        return CLI_EXIT_FAILED;
    }
    if (err != BAY_OK) {
        return failed("the store could not be changed", err);
    }
    cli_say(self->arguments->is_lifted ? "%.*s may come in again within 5 s"
                                       : "%.*s is turned away within 5 s",
            BAY_STR(subject));
    return CLI_EXIT_OK;
}

int cmd_block(const cli_arguments *arguments)
{
    const char *path = NULL;
    const config *settings = NULL;
    block_work self = {.arguments = arguments};
    if (arguments->name == NULL && arguments->is_lifted) {
        cli_say("--lift needs a SUBJECT: patchbay block SUBJECT --lift");
        return CLI_EXIT_USAGE;
    }
    if (cli_load_config(arguments, false, &path, &settings) != BAY_OK) {
        return CLI_EXIT_CONFIG;
    }
    cli_exit code = CLI_EXIT_CONFIG;
    cli_print_init(&self.device, &self.text, arguments);
    if (cli_rows_open(&self.rows, settings, "those who are blocked")) {
        code = arguments->name != NULL ? change_block(&self, str_of(arguments->name))
                                       : list_blocks(&self);
    }
    cli_rows_close(&self.rows);
    buf_fini(&self.text);
    config_free(settings);
    return code;
}

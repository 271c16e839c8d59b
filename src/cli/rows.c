#include "cli/rows.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "cli/say.h"

enum { TURN_MS = 100 };

typedef struct walk {
    cli_rows *rows;
    void (*see)(void *user, const store_row *row);
    void *user;
    char last[STORE_KEY_BYTES];
    size_t last_len;
    bool has_more;
} walk;

void cli_rows_done(void *user, const store_result *result)
{
    cli_rows *self = user;
    self->is_done = true;
    self->err = result->err;
}

static void on_closed(void *user)
{
    cli_rows *self = user;
    self->is_done = true;
}

bay_err cli_rows_wait(cli_rows *self, bay_err started)
{
    self->err = started;
    while (started == BAY_OK && !self->is_done) {
        (void)loop_turn(self->loop, TURN_MS);
    }
    self->is_done = false;
    return self->err;
}

bool cli_rows_open(cli_rows *self, const config *settings, const char *what)
{
    bay_diag diag = {.text = ""};
    *self = (cli_rows){.err = BAY_OK};
    if (settings->store.len == 0) {
        cli_say("the configuration has no store, where %s are kept: name a file by `store`", what);
        return false;
    }
    bay_err err = loop_new(&self->loop);
    if (err == BAY_OK) {
        err = store_open_sqlite(self->loop, settings->store, NULL, &self->store, &diag);
    }
    if (err != BAY_OK) {
        cli_say("%s", diag.text[0] != '\0' ? diag.text : bay_err_text(err));
    }
    return err == BAY_OK;
}

void cli_rows_close(cli_rows *self)
{
    if (self->store != NULL) {
        self->is_done = false;
        store_close(self->store, on_closed, self);
        while (!self->is_done) {
            (void)loop_turn(self->loop, TURN_MS);
        }
        store_free(self->store);
    }
    loop_free(self->loop);
}

static void on_rows(void *user, const store_result *result)
{
    walk *self = user;
    self->has_more = result->err == BAY_OK && result->has_more;
    for (size_t i = 0; result->err == BAY_OK && i < result->count; i++) {
        self->see(self->user, &result->rows[i]);
        self->last_len = result->rows[i].key.len;
        memcpy(self->last, result->rows[i].key.at, self->last_len);
    }
    cli_rows_done(self->rows, result);
}

bay_err cli_rows_each(cli_rows *self, bay_str table, void (*see)(void *user, const store_row *row),
                      void *user)
{
    walk of = {.rows = self, .see = see, .user = user};
    bay_err err;
    do {
        bay_str after = {of.last, of.last_len};
        err = cli_rows_wait(
            self, store_scan(self->store, table, STR(""), after, STORE_READ_ROWS, on_rows, &of));
    } while (err == BAY_OK && of.has_more);
    return err;
}

void cli_time_write(uint64_t ms, char out[CLI_TIME_BYTES])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm parts;
    if (ms == 0 || gmtime_r(&seconds, &parts) == NULL ||
        strftime(out, CLI_TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) {
        (void)snprintf(out, CLI_TIME_BYTES, "-");
    }
}

/* The store of the configuration, for commands that look at what is in it, or change it, while a
 * gateway may run. One operation at a time, waited for. */
#ifndef CLI_ROWS_H
#define CLI_ROWS_H

#include "config/config.h"
#include "net/loop.h"
#include "store/store.h"

typedef struct cli_rows {
    loop *loop;
    store *store;
    bool is_done;
    bay_err err;
} cli_rows;

/* `what` is kept there, for the text. False: it was said why not. Close it in any case. */
bool cli_rows_open(cli_rows *self, const config *settings, const char *what);
void cli_rows_close(cli_rows *self);

/* For operations whose result says no more than whether it worked; `user` is the cli_rows. */
void cli_rows_done(void *user, const store_result *result);
/* Waits for the one that was started so. */
bay_err cli_rows_wait(cli_rows *self, bay_err started) BAY_MUST_CHECK;

/* Each row of the table, in the order of its keys. */
bay_err cli_rows_each(cli_rows *self, bay_str table, void (*see)(void *user, const store_row *row),
                      void *user) BAY_MUST_CHECK;

/* "2026-11-27T05:00:00Z"; "-" for 0. */
enum { CLI_TIME_BYTES = 32 };
void cli_time_write(uint64_t ms, char out[CLI_TIME_BYTES]);

#endif

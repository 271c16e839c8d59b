/* A row that another process wrote into a gateway's store before it started, as `patchbay key` and
 * `patchbay block` do. */
#ifndef SUPPORT_STORE_ROW_H
#define SUPPORT_STORE_ROW_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/str.h"
#include "store/store.h"

static inline void store_row_on_put(void *user, const store_result *result)
{
    assert_int_equal(result->err, BAY_OK);
    *(bool *)user = true;
}

static inline void store_row_on_closed(void *user)
{
    *(bool *)user = true;
}

static inline void store_row_put(const char *path, bay_str table, bay_str key, bay_str value)
{
    bay_diag diag = {.text = ""};
    loop *on = NULL;
    store *rows = NULL;
    bool is_done = false;
    assert_int_equal(loop_new(&on), BAY_OK);
    assert_int_equal(store_open_sqlite(on, str_of(path), NULL, &rows, &diag), BAY_OK);
    store_put_request request = {.table = table, .key = key, .value = value, .expected = STORE_ANY};
    assert_int_equal(store_put(rows, &request, store_row_on_put, &is_done), BAY_OK);
    while (!is_done) {
        (void)loop_turn(on, 10);
    }
    is_done = false;
    store_close(rows, store_row_on_closed, &is_done);
    while (!is_done) {
        (void)loop_turn(on, 10);
    }
    store_free(rows);
    loop_free(on);
}

static inline void store_row_remove_files(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        char file[200];
        (void)snprintf(file, sizeof(file), "%s%s", path, ends[i]);
        (void)unlink(file);
    }
}

#endif

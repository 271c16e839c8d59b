/* A library without SQLite says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/str.h"
#include "store/store.h"

static void no_file_can_be_opened(void **state)
{
    (void)state;
    loop *on_loop = NULL;
    store *opened = NULL;
    bay_diag diag = {.code = BAY_OK};
    assert_int_equal(loop_new(&on_loop), BAY_OK);
    assert_int_equal(store_open_sqlite(on_loop, str_of("tasks.db"), NULL, &opened, &diag),
                     BAY_ERR_UNSUPPORTED);
    assert_null(opened);
    assert_non_null(strstr(diag.text, "built without SQLite"));
    assert_non_null(strstr(diag.text, "tasks.db"));
    assert_int_equal(store_open_sqlite(on_loop, str_of("tasks.db"), NULL, &opened, NULL),
                     BAY_ERR_UNSUPPORTED);
    loop_free(on_loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_file_can_be_opened)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Replaces sqlite.c in a library without SQLite. */
#include "base/err.h"
#include "store/store.h"

bay_err store_open_sqlite(loop *on_loop, bay_str path, const store_options *options, store **out,
                          bay_diag *diag)
{
    (void)on_loop;
    (void)options;
    (void)out;
    return diag_set(diag, BAY_ERR_UNSUPPORTED,
                    "this libpatchbay was built without SQLite: nothing can be kept in %.*s",
                    BAY_STR(path));
}

/* What owners.c (the table) and owners_rows.c (its rows in a store) share. */
#ifndef AGENTS_OWNERS_PARTS_H
#define AGENTS_OWNERS_PARTS_H

#include "agents/owners.h"
#include "store/store.h"

typedef struct owners_rows owners_rows;

typedef void (*owners_row)(void *user, bay_str key, bay_str value, uint64_t expires_at_ms);

/* Opens the file for as long as it takes to call `read` with each row that is there. */
bay_err owners_rows_read(bay_str path, owners_row read, void *user, bay_diag *diag) BAY_MUST_CHECK;

bay_err owners_rows_new(loop *home, bay_str path, owners_rows **out) BAY_MUST_CHECK;
void owners_rows_free(owners_rows *self); /* as agents_owners_close */

/* Any thread. `value.at` NULL: the row goes. Changes are made in the order in which this is called;
 * what cannot be kept is logged. */
void owners_rows_change(owners_rows *self, bay_str key, bay_str value, uint64_t expires_at_ms);

#endif

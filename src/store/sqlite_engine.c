/* The cells of an SQLite file as an engine, and the groups in which they change. */
#include "base/check.h"
#include "base/log.h"
#include "base/str.h"
#include "net/loop.h"
#include "store/sqlite_file.h"

static sqlite_file *file_of(store_engine *engine)
{
    return CONTAINER_OF(engine, sqlite_file, engine);
}

bay_err sqlite_error_of(int code)
{
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return BAY_OK;
    case SQLITE_NOMEM:
        return BAY_ERR_NOMEM;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return BAY_ERR_TIMEOUT;
    case SQLITE_TOOBIG:
        return BAY_ERR_LIMIT;
    case SQLITE_NOTADB:
        return BAY_ERR_SYNTAX;
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY:
        return BAY_ERR_DENIED;
    default:
        return BAY_ERR_IO;
    }
}

/* The group cannot continue. Only the text of the error code is logged, although SQLite's own text
 * can quote only the schema. */
static bay_err break_off(sqlite_file *self, int code)
{
    bay_err err = sqlite_error_of(code);
    if (err == BAY_ERR_DENIED || err == BAY_ERR_SYNTAX) {
        err = BAY_ERR_IO; /* the operation's caller made no error */
    }
    if (err != BAY_ERR_TIMEOUT) {
        log_write_paced(&self->complaints, loop_time_ms(), LOG_ERROR, "store", "SQLite: %s (%d)",
                        sqlite3_errstr(code), code);
    }
    self->broken = err;
    return err;
}

/* --- statements ------------------------------------------------------------------------------- */

static int bind_bytes(sqlite3_stmt *query, int index, bay_str bytes)
{
    /* A NULL pointer would bind NULL. The bound value lives until the query has run. */
    return sqlite3_bind_blob64(query, index, bytes.len > 0 ? bytes.at : "", bytes.len,
                               SQLITE_STATIC);
}

static int bind_name(sqlite3_stmt *query, store_space space, bay_str scope, bay_str key)
{
    int code = sqlite3_bind_int(query, 1, (int)space);
    if (code == SQLITE_OK) {
        code = bind_bytes(query, 2, scope);
    }
    return code == SQLITE_OK ? bind_bytes(query, 3, key) : code;
}

static bay_str column_bytes(sqlite3_stmt *query, int column)
{
    const void *at = sqlite3_column_blob(query, column);
    return (bay_str){at, at != NULL ? (size_t)sqlite3_column_bytes(query, column) : 0};
}

static uint64_t column_number(sqlite3_stmt *query, int column)
{
    sqlite3_int64 number = sqlite3_column_int64(query, column);
    return number > 0 ? (uint64_t)number : 0;
}

static void read_cell(sqlite3_stmt *query, store_cell *out)
{
    *out = (store_cell){(store_space)sqlite3_column_int(query, 0),
                        column_bytes(query, 1),
                        column_bytes(query, 2),
                        column_bytes(query, 3),
                        column_number(query, 4),
                        column_number(query, 5)};
}

/* For a query without rows. */
static int run(sqlite3_stmt *query)
{
    int code = sqlite3_step(query);
    sqlite3_reset(query);
    return code == SQLITE_DONE || code == SQLITE_ROW ? SQLITE_OK : code;
}

/* --- the engine ------------------------------------------------------------------------------- */

static void reset_views(sqlite_file *self)
{
    sqlite3_reset(self->queries[QUERY_FIND]);
    sqlite3_reset(self->queries[QUERY_SOONEST]);
}

/* Steps to the single row of a query and leaves it there for the view. */
static bay_err find_one(sqlite_file *self, sqlite3_stmt *query, int code, store_cell *out)
{
    if (code == SQLITE_OK) {
        code = sqlite3_step(query);
    }
    if (code == SQLITE_ROW) {
        read_cell(query, out);
        return BAY_OK;
    }
    sqlite3_reset(query);
    return code == SQLITE_DONE ? BAY_ERR_NOT_FOUND : break_off(self, code);
}

static bay_err find(store_engine *engine, store_space space, bay_str scope, bay_str key,
                    store_cell *out)
{
    sqlite_file *self = file_of(engine);
    sqlite3_stmt *query = self->queries[QUERY_FIND];
    reset_views(self);
    return find_one(self, query, bind_name(query, space, scope, key), out);
}

static bay_err soonest(store_engine *engine, store_cell *out)
{
    sqlite_file *self = file_of(engine);
    reset_views(self);
    return find_one(self, self->queries[QUERY_SOONEST], SQLITE_OK, out);
}

static bay_err write_cell(store_engine *engine, const store_cell *cell)
{
    sqlite_file *self = file_of(engine);
    sqlite3_stmt *query = self->queries[QUERY_WRITE];
    reset_views(self);
    int code = bind_name(query, cell->space, cell->scope, cell->key);
    if (code == SQLITE_OK) {
        code = bind_bytes(query, 4, cell->value);
    }
    if (code == SQLITE_OK) {
        code = sqlite3_bind_int64(query, 5, (sqlite3_int64)cell->version);
    }
    if (code == SQLITE_OK) {
        code = sqlite3_bind_int64(query, 6, (sqlite3_int64)cell->expires_at_ms);
    }
    if (code == SQLITE_OK) {
        code = run(query);
    }
    return code == SQLITE_OK ? BAY_OK : break_off(self, code);
}

static bay_err erase(store_engine *engine, store_space space, bay_str scope, bay_str key)
{
    sqlite_file *self = file_of(engine);
    sqlite3_stmt *query = self->queries[QUERY_ERASE];
    reset_views(self);
    int code = bind_name(query, space, scope, key);
    if (code == SQLITE_OK) {
        code = run(query);
    }
    return code == SQLITE_OK ? BAY_OK : break_off(self, code);
}

static bay_err scan(store_engine *engine, store_space space, bay_str scope, bay_str from,
                    store_visit visit, void *user)
{
    sqlite_file *self = file_of(engine);
    sqlite3_stmt *query = self->queries[QUERY_SCAN];
    reset_views(self);
    int code = bind_name(query, space, scope, from);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(query);
        store_cell cell;
        if (code != SQLITE_ROW) {
            break;
        }
        read_cell(query, &cell);
        if (!visit(user, &cell)) {
            code = SQLITE_DONE;
        }
    }
    sqlite3_reset(query);
    return code == SQLITE_DONE ? BAY_OK : break_off(self, code);
}

static const store_engine_calls calls = {find, write_cell, erase, scan, soonest};

/* --- groups ----------------------------------------------------------------------------------- */

static int read_totals(sqlite_file *self)
{
    sqlite3_stmt *query = self->queries[QUERY_READ_TOTALS];
    int code = sqlite3_step(query);
    if (code == SQLITE_ROW) {
        self->engine.totals = (store_totals){column_number(query, 0), column_number(query, 1),
                                             column_number(query, 2)};
        self->committed = self->engine.totals;
    }
    sqlite3_reset(query);
    return code == SQLITE_ROW ? SQLITE_OK : code == SQLITE_DONE ? SQLITE_CORRUPT : code;
}

/* Outside of groups only. */
static int set_synchronous(sqlite_file *self, bool is_full)
{
    if (self->is_full == is_full) {
        return SQLITE_OK;
    }
    int code = sqlite3_exec(self->database,
                            is_full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", NULL,
                            NULL, NULL);
    self->is_full = code == SQLITE_OK ? is_full : self->is_full;
    return code;
}

bay_err sqlite_file_begin(sqlite_file *self, bool is_writing, bool is_durable)
{
    self->engine.calls = &calls;
    self->broken = BAY_OK;
    int code = is_writing ? set_synchronous(self, is_durable) : SQLITE_OK;
    if (code == SQLITE_OK) {
        code = run(self->queries[is_writing ? QUERY_BEGIN_WRITING : QUERY_BEGIN_READING]);
    }
    if (code == SQLITE_OK) {
        code = read_totals(self);
    }
    if (code == SQLITE_OK) {
        return BAY_OK;
    }
    sqlite_file_roll_back(self);
    return break_off(self, code);
}

static int write_totals(sqlite_file *self)
{
    store_totals *now = &self->engine.totals;
    if (memcmp(now, &self->committed, sizeof(*now)) == 0) {
        return SQLITE_OK;
    }
    sqlite3_stmt *query = self->queries[QUERY_WRITE_TOTALS];
    int code = sqlite3_bind_int64(query, 1, (sqlite3_int64)now->counter);
    if (code == SQLITE_OK) {
        code = sqlite3_bind_int64(query, 2, (sqlite3_int64)now->rows);
    }
    if (code == SQLITE_OK) {
        code = sqlite3_bind_int64(query, 3, (sqlite3_int64)now->bytes);
    }
    return code == SQLITE_OK ? run(query) : code;
}

bay_err sqlite_file_commit(sqlite_file *self)
{
    reset_views(self);
    int code = write_totals(self);
    if (code == SQLITE_OK) {
        code = run(self->queries[QUERY_COMMIT]);
    }
    if (code == SQLITE_OK) {
        self->committed = self->engine.totals;
        return BAY_OK;
    }
    sqlite_file_roll_back(self);
    return break_off(self, code);
}

void sqlite_file_roll_back(sqlite_file *self)
{
    reset_views(self);
    /* SQLite rolls back by itself on some errors. */
    if (sqlite3_get_autocommit(self->database) == 0) {
        run(self->queries[QUERY_ROLLBACK]);
    }
    self->engine.totals = self->committed;
}

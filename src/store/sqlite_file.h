/* The SQLite file: opening, checking its owner, migrating, and its cells as an engine. Used by one
 * thread at a time.
 *
 * The file belongs to this project if its application_id says so; user_version is the number of the
 * schema. Any failure of SQLite within a group marks it as broken: the caller rolls back. */
#ifndef STORE_SQLITE_FILE_H
#define STORE_SQLITE_FILE_H

#include <sqlite3.h>

#include "base/log.h"
#include "store/back.h"

enum {
    SQLITE_FILE_SCHEMA = 1,               /* user_version of this release */
    SQLITE_FILE_APPLICATION = 0x50424159, /* "PBAY" */
    SQLITE_FILE_WAL_BYTES = 64 << 20,     /* the log is truncated to this */
};

typedef enum sqlite_query {
    QUERY_FIND,
    QUERY_WRITE,
    QUERY_ERASE,
    QUERY_SCAN,
    QUERY_SOONEST,
    QUERY_READ_TOTALS,
    QUERY_WRITE_TOTALS,
    QUERY_BEGIN_READING,
    QUERY_BEGIN_WRITING,
    QUERY_COMMIT,
    QUERY_ROLLBACK,
    QUERY_COUNT,
} sqlite_query;

typedef struct sqlite_file {
    store_engine engine;
    sqlite3 *database;
    sqlite3_stmt *queries[QUERY_COUNT];
    store_totals committed;
    bool is_full;   /* the current value of `synchronous` */
    bay_err broken; /* of the current group */
    log_pace complaints;
    /* Called while another process holds the lock; it sleeps. False: give up. */
    bool (*wait)(void *user, int tries);
    void *wait_user;
} sqlite_file;

/* `self` is zeroed except `wait` and the engine's limits. On failure everything is closed again. */
bay_err sqlite_file_open(sqlite_file *self, const char *path, bay_diag *diag) BAY_MUST_CHECK;
void sqlite_file_close(sqlite_file *self);

/* A group: begin, any number of operations on the engine, then commit or roll back. A failed begin
 * or commit leaves no group and restores the totals. */
bay_err sqlite_file_begin(sqlite_file *self, bool is_writing, bool is_durable) BAY_MUST_CHECK;
bay_err sqlite_file_commit(sqlite_file *self) BAY_MUST_CHECK;
void sqlite_file_roll_back(sqlite_file *self);

/* This project's error for an error of SQLite. */
bay_err sqlite_error_of(int code);

#endif

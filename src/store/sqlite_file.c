/* Opens an SQLite file: checks its owner and its schema, and migrates it. */
#include "store/sqlite_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/err.h"
#include "base/str.h"

#define SMALLEST_BYTES 512 /* one page */

/* migrations[n] migrates from schema n to n + 1. A released one never changes. */
static const char *const migrations[SQLITE_FILE_SCHEMA] = {
    "CREATE TABLE cell ("
    " space INTEGER NOT NULL, scope BLOB NOT NULL, key BLOB NOT NULL,"
    " value BLOB NOT NULL, version INTEGER NOT NULL, expires INTEGER NOT NULL);"
    "CREATE UNIQUE INDEX cell_name ON cell (space, scope, key);"
    "CREATE INDEX cell_expiry ON cell (expires) WHERE expires > 0;"
    "CREATE TABLE totals ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " counter INTEGER NOT NULL, cells INTEGER NOT NULL, bytes INTEGER NOT NULL);"
    "INSERT INTO totals VALUES (1, 0, 0, 0);",
};

static const char *const queries[QUERY_COUNT] = {
    [QUERY_FIND] = "SELECT space, scope, key, value, version, expires FROM cell"
                   " WHERE space = ?1 AND scope = ?2 AND key = ?3",
    [QUERY_WRITE] = "INSERT INTO cell (space, scope, key, value, version, expires)"
                    " VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (space, scope, key) DO UPDATE"
                    " SET value = excluded.value, version = excluded.version,"
                    " expires = excluded.expires",
    [QUERY_ERASE] = "DELETE FROM cell WHERE space = ?1 AND scope = ?2 AND key = ?3",
    [QUERY_SCAN] = "SELECT space, scope, key, value, version, expires FROM cell"
                   " WHERE space = ?1 AND scope = ?2 AND key >= ?3 ORDER BY key",
    [QUERY_SOONEST] = "SELECT space, scope, key, value, version, expires FROM cell"
                      " WHERE expires > 0 ORDER BY expires LIMIT 1",
    [QUERY_READ_TOTALS] = "SELECT counter, cells, bytes FROM totals WHERE one = 1",
    [QUERY_WRITE_TOTALS] = "UPDATE totals SET counter = ?1, cells = ?2, bytes = ?3 WHERE one = 1",
    [QUERY_BEGIN_READING] = "BEGIN",
    [QUERY_BEGIN_WRITING] = "BEGIN IMMEDIATE",
    [QUERY_COMMIT] = "COMMIT",
    [QUERY_ROLLBACK] = "ROLLBACK",
};

/* --- the file as such ------------------------------------------------------------------------- */

static bay_err no_file(int error, const char *path, bay_diag *diag)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return diag_set(diag, BAY_ERR_NOT_FOUND, "%s: no such folder", path);
    case EACCES:
    case EPERM:
    case EROFS:
        return diag_set(diag, BAY_ERR_DENIED, "%s: no permission to write it", path);
    case EISDIR:
    case ENXIO:
        return diag_set(diag, BAY_ERR_INVALID, "%s: not a regular file", path);
    default:
        return diag_set(diag, BAY_ERR_IO, "%s: cannot be opened (error %d)", path, error);
    }
}

/* SQLite would create the file with the umask's mode; its log gets the file's mode. An existing
 * file keeps its mode. */
static bay_err make_file(const char *path, bay_diag *diag)
{
    struct stat about;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
    if (fd < 0) {
        return no_file(errno, path, diag);
    }
    bool is_regular = fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
    close(fd);
    if (!is_regular) {
        return diag_set(diag, BAY_ERR_INVALID, "%s: not a regular file", path);
    }
    /* SQLite treats a file of one byte as empty and would overwrite it. */
    if (about.st_size > 0 && about.st_size < SMALLEST_BYTES) {
        return diag_set(diag, BAY_ERR_SYNTAX, "%s: not an SQLite database", path);
    }
    return BAY_OK;
}

static bay_err file_error(sqlite_file *self, int code, const char *path, bay_diag *diag)
{
    bay_err err = sqlite_error_of(code);
    switch (err) {
    case BAY_ERR_SYNTAX:
        return diag_set(diag, err, "%s: not an SQLite database", path);
    case BAY_ERR_TIMEOUT:
        return diag_set(diag, err, "%s: locked by another process for too long", path);
    case BAY_ERR_NOMEM:
        return diag_set(diag, err, "%s: out of memory", path);
    default:
        return diag_set(diag, err, "%s: %s (error %d)", path, sqlite3_errstr(code),
                        self->database != NULL ? sqlite3_extended_errcode(self->database) : code);
    }
}

/* --- whose it is, and which schema ------------------------------------------------------------ */

static int read_number(sqlite_file *self, const char *sql, int64_t *out)
{
    sqlite3_stmt *query = NULL;
    int code = sqlite3_prepare_v2(self->database, sql, -1, &query, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_step(query);
    }
    if (code == SQLITE_ROW) {
        *out = sqlite3_column_int64(query, 0);
        code = SQLITE_OK;
    } else if (code == SQLITE_DONE) {
        code = SQLITE_CORRUPT;
    }
    sqlite3_finalize(query);
    return code;
}

typedef struct file_about {
    int64_t application;
    int64_t schema;
    int64_t objects; /* tables and other objects */
} file_about;

static int read_about(sqlite_file *self, file_about *out)
{
    int code = read_number(self, "PRAGMA application_id", &out->application);
    if (code == SQLITE_OK) {
        code = read_number(self, "PRAGMA user_version", &out->schema);
    }
    return code == SQLITE_OK
               ? read_number(self, "SELECT count(*) FROM sqlite_schema", &out->objects)
               : code;
}

/* Reads all three in one transaction: another process may be migrating. */
static int sqlite_file_look(sqlite_file *self, file_about *out)
{
    int code = sqlite3_exec(self->database, "BEGIN", NULL, NULL, NULL);
    if (code == SQLITE_OK) {
        code = read_about(self, out);
    }
    if (sqlite3_get_autocommit(self->database) == 0) {
        sqlite3_exec(self->database, "ROLLBACK", NULL, NULL, NULL);
    }
    return code;
}

static bay_err check_about(const file_about *about, const char *path, bay_diag *diag)
{
    bool is_empty = about->application == 0 && about->schema == 0 && about->objects == 0;
    if (!is_empty && about->application != SQLITE_FILE_APPLICATION) {
        return diag_set(diag, BAY_ERR_INVALID, "%s: a database of another program", path);
    }
    if (about->schema < 0 || (!is_empty && about->schema == 0)) {
        return diag_set(diag, BAY_ERR_INVALID, "%s: a damaged database", path);
    }
    if (about->schema > SQLITE_FILE_SCHEMA) {
        return diag_set(diag, BAY_ERR_VERSION,
                        "%s: written by a newer release (schema %lld; this one knows %d)", path,
                        (long long)about->schema, SQLITE_FILE_SCHEMA);
    }
    return BAY_OK;
}

static int migrate_from(sqlite_file *self, int64_t schema)
{
    int code = SQLITE_OK;
    while (schema < SQLITE_FILE_SCHEMA && code == SQLITE_OK) {
        code = sqlite3_exec(self->database, migrations[schema++], NULL, NULL, NULL);
    }
    char sql[96];
    snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %d",
             SQLITE_FILE_APPLICATION, SQLITE_FILE_SCHEMA);
    return code == SQLITE_OK ? sqlite3_exec(self->database, sql, NULL, NULL, NULL) : code;
}

/* With the lock held the schema is read again: another process may have migrated first. */
static bay_err migrate(sqlite_file *self, const char *path, bay_diag *diag)
{
    file_about about = {0};
    int code = sqlite3_exec(self->database, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (code == SQLITE_OK) {
        code = read_about(self, &about);
    }
    bay_err err = code == SQLITE_OK ? check_about(&about, path, diag) : BAY_OK;
    if (code == SQLITE_OK && err == BAY_OK) {
        code = migrate_from(self, about.schema);
    }
    if (code == SQLITE_OK && err == BAY_OK) {
        code = sqlite3_exec(self->database, "COMMIT", NULL, NULL, NULL);
    }
    if (sqlite3_get_autocommit(self->database) == 0) {
        sqlite3_exec(self->database, "ROLLBACK", NULL, NULL, NULL);
    }
    return code == SQLITE_OK ? err : file_error(self, code, path, diag);
}

/* --- opening ---------------------------------------------------------------------------------- */

static int on_busy(void *user, int tries)
{
    sqlite_file *self = user;
    return self->wait(self->wait_user, tries);
}

/* Settings that must be in effect before anything is read: the file may come from someone else. */
static int configure(sqlite_file *self)
{
    sqlite3_busy_handler(self->database, on_busy, self);
    sqlite3_extended_result_codes(self->database, 1);
    sqlite3_db_config(self->database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(self->database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(self->database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(self->database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_limit(self->database, SQLITE_LIMIT_ATTACHED, 0);
    return sqlite3_exec(self->database, "PRAGMA cell_size_check=ON", NULL, NULL, NULL);
}

/* If another process does the same, this fails at once, whatever the busy handler says. */
static int use_log(sqlite_file *self)
{
    char sql[128];
    snprintf(sql, sizeof(sql),
             "PRAGMA synchronous=FULL; PRAGMA journal_size_limit=%d; PRAGMA journal_mode=WAL",
             SQLITE_FILE_WAL_BYTES);
    int code = SQLITE_BUSY;
    for (int tries = 0; (code & 0xff) == SQLITE_BUSY; tries++) {
        code = sqlite3_exec(self->database, sql, NULL, NULL, NULL);
        if ((code & 0xff) == SQLITE_BUSY && !self->wait(self->wait_user, tries)) {
            break;
        }
    }
    self->is_full = code == SQLITE_OK;
    return code;
}

static int prepare(sqlite_file *self)
{
    int code = SQLITE_OK;
    for (size_t i = 0; i < QUERY_COUNT && code == SQLITE_OK; i++) {
        code = sqlite3_prepare_v3(self->database, queries[i], -1, SQLITE_PREPARE_PERSISTENT,
                                  &self->queries[i], NULL);
    }
    return code;
}

static bay_err open_database(sqlite_file *self, const char *path, bay_diag *diag)
{
    int code =
        sqlite3_open_v2(path, &self->database,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    file_about about = {0};
    if (code == SQLITE_OK) {
        code = configure(self);
    }
    if (code == SQLITE_OK) { /* a file of another program must stay unchanged */
        code = sqlite_file_look(self, &about);
    }
    if (code == SQLITE_OK) {
        bay_err err = check_about(&about, path, diag);
        if (err != BAY_OK) {
            return err;
        }
        code = use_log(self);
    }
    if (code == SQLITE_OK && about.schema < SQLITE_FILE_SCHEMA) {
        bay_err err = migrate(self, path, diag);
        if (err != BAY_OK) {
            return err;
        }
    }
    if (code == SQLITE_OK) {
        code = prepare(self);
    }
    return code == SQLITE_OK ? BAY_OK : file_error(self, code, path, diag);
}

bay_err sqlite_file_open(sqlite_file *self, const char *path, bay_diag *diag)
{
    if (sqlite3_threadsafe() == 0) {
        return diag_set(diag, BAY_ERR_UNSUPPORTED, "this SQLite was built without threads");
    }
    bay_err err = make_file(path, diag);
    if (err == BAY_OK) {
        err = open_database(self, path, diag);
    }
    if (err == BAY_OK) { /* reads the totals, so that a damaged file is found now */
        err = sqlite_file_begin(self, false, false);
        if (err == BAY_OK) {
            err = sqlite_file_commit(self);
        }
        if (err != BAY_OK) {
            diag_set(diag, err, "%s: a damaged database", path);
        }
    }
    if (err != BAY_OK) {
        sqlite_file_close(self);
    }
    return err;
}

void sqlite_file_close(sqlite_file *self)
{
    for (size_t i = 0; i < QUERY_COUNT; i++) {
        sqlite3_finalize(self->queries[i]);
        self->queries[i] = NULL;
    }
    /* Without open queries it cannot fail; the last process that closes empties the log. */
    int code = sqlite3_close(self->database);
    CHECK(code == SQLITE_OK);
    self->database = NULL;
}

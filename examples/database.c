/* Read-only SQL over an SQLite file. Nothing can be changed or attached, rows and work are bounded.
 *
 *     database [FILE] [--stdio | --http ADDRESS]   FILE: a small sample unless given */
#include <patchbay/server.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum { MAX_ROWS = 200, MAX_CELL = 2000, MAX_STEPS = 10000 /* thousands of virtual instructions */ };

static const char sample[] =
    "CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT NOT NULL);"
    "INSERT INTO customer VALUES (1,'Acme','DE'),(2,'Globex','US'),(3,'Initech','US'),"
    "(4,'Umbrella','GB'),(5,'Hooli','CH');"
    "CREATE TABLE invoice(id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES "
    "customer(id),"
    " cents INTEGER NOT NULL, paid INTEGER NOT NULL);"
    "INSERT INTO invoice VALUES (1,1,120000,1),(2,1,45050,0),(3,2,990000,1),(4,3,1500,0),"
    "(5,4,78000,1),(6,5,333333,0);";

/* Reading only: whatever else a statement asks for is refused when it is compiled. */
static int authorize(void *user, int action, const char *a, const char *b, const char *c,
                     const char *d)
{
    (void)user, (void)a, (void)c, (void)d;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return b != NULL && sqlite3_stricmp(b, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    default:
        return SQLITE_DENY;
    }
}

typedef struct work {
    bay_call *call;
    int steps;
} work;

static int watch(void *user)
{
    work *self = user;
    return ++self->steps > MAX_STEPS || bay_call_is_cancelled(self->call);
}

static void put_row(bay_result *result, sqlite3_stmt *statement, bool is_head)
{
    char line[8192];
    size_t len = 0;
    for (int i = 0; i < sqlite3_column_count(statement) && len + MAX_CELL < sizeof(line); i++) {
        const char *text = is_head ? sqlite3_column_name(statement, i)
                                   : (const char *)sqlite3_column_text(statement, i);
        len += (size_t)snprintf(line + len, MAX_CELL, "%s%s", i > 0 ? " | " : "",
                                text != NULL ? text : "NULL");
        len = len < sizeof(line) ? len : sizeof(line) - 1;
    }
    bay_result_text_str(result, (bay_str){line, len});
}

static void query(bay_call *call, void *user)
{
    sqlite3 *database = user;
    sqlite3_stmt *statement = NULL;
    const char *rest = NULL;
    work under_way = {call, 0};
    bay_str sql = bay_call_str(call, "sql");
    int status = sqlite3_prepare_v2(database, sql.at, (int)sql.len, &statement, &rest);
    if (status != SQLITE_OK || statement == NULL || !sqlite3_stmt_readonly(statement)) {
        bay_call_failf(call, "The statement was refused: %s",
                       status != SQLITE_OK ? sqlite3_errmsg(database) : "one SELECT is wanted");
    } else if (rest < sql.at + sql.len &&
               strspn(rest, " \t\r\n;") < (size_t)(sql.at + sql.len - rest)) {
        bay_call_fail(call, "Only one statement at a time is taken.");
    } else {
        bay_result *result = bay_result_new(call);
        int rows = 0;
        sqlite3_progress_handler(database, 1000, watch, &under_way);
        put_row(result, statement, true);
        while (rows < MAX_ROWS && (status = sqlite3_step(statement)) == SQLITE_ROW) {
            put_row(result, statement, false);
            rows++;
        }
        if (status != SQLITE_ROW && status != SQLITE_DONE) {
            bay_result_textf(result, "Stopped after %d rows: %s", rows, sqlite3_errmsg(database));
            bay_result_error(result);
        } else {
            bay_result_textf(result, "%d rows%s", rows,
                             rows == MAX_ROWS ? "; there may be more" : "");
        }
        sqlite3_progress_handler(database, 0, NULL, NULL);
        bay_call_finish(call, result);
    }
    sqlite3_finalize(statement);
}

static void tables(bay_call *call, void *user)
{
    sqlite3_stmt *statement = NULL;
    bay_result *result = bay_result_new(call);
    sqlite3_prepare_v2(user, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name",
                       -1, &statement, NULL);
    for (int i = 0; i < MAX_ROWS && sqlite3_step(statement) == SQLITE_ROW; i++) {
        bay_result_text(result, (const char *)sqlite3_column_text(statement, 0));
    }
    sqlite3_finalize(statement);
    bay_call_finish(call, result);
}

int main(int argc, char **argv)
{
    bool has_file = argc > 1 && argv[1][0] != '-';
    sqlite3 *database = NULL;
    int status = sqlite3_open_v2(
        has_file ? argv[1] : ":memory:", &database,
        has_file ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, NULL);
    if (status == SQLITE_OK && !has_file) {
        status = sqlite3_exec(database, sample, NULL, NULL, NULL);
    }
    if (status == SQLITE_OK) {
        status = sqlite3_exec(database, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
    }
    if (status != SQLITE_OK) {
        fprintf(stderr, "database: %s: %s\n", has_file ? argv[1] : "sample",
                sqlite3_errmsg(database));
        return 2;
    }
    sqlite3_set_authorizer(database, authorize, NULL);
    sqlite3_limit(database, SQLITE_LIMIT_LENGTH, 1 << 20);
    bay_server *server = bay_server_new("database", "1.0.0");
    bay_tool *tool = bay_server_tool_schema(
        server, "query", "Runs one SELECT; at most 200 rows come back.",
        "{\"type\":\"object\",\"properties\":{\"sql\":{\"type\":\"string\"}},"
        "\"required\":[\"sql\"]}",
        query, database);
    bay_tool_annotations(tool, "{\"readOnlyHint\":true,\"openWorldHint\":false}");
    tool = bay_server_tool_schema(server, "tables", "The tables, as they were created.", NULL,
                                  tables, database);
    bay_tool_annotations(tool, "{\"readOnlyHint\":true,\"openWorldHint\":false}");
    status = bay_server_main(server, argc - has_file, argv + has_file);
    sqlite3_close(database);
    return status;
}

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
    "CREATE TABLE invoice(id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL, cents INTEGER);"
    "INSERT INTO invoice VALUES (1,1,120000),(2,1,45050),(3,2,990000),(4,3,1500),(5,4,78000);";

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

static _Thread_local int steps;

static int watch(void *call)
{
    return ++steps > MAX_STEPS || bay_call_is_cancelled(call);
}

static void put_cell(bay_json *json, sqlite3_stmt *statement, int column)
{
    int type = sqlite3_column_type(statement, column);
    const char *text = (const char *)sqlite3_column_text(statement, column);
    size_t len = (size_t)sqlite3_column_bytes(statement, column);
    if (text == NULL) {
        bay_json_null(json, NULL);
    } else if (type == SQLITE_INTEGER) {
        bay_json_raw_str(json, NULL, (bay_str){text, len}); /* digits are JSON */
    } else {
        bay_json_text_str(json, NULL, (bay_str){text, len < MAX_CELL ? len : MAX_CELL});
    }
}

/* The status that ended it. */
static int put_rows(bay_json *json, sqlite3_stmt *statement)
{
    int status = SQLITE_ROW;
    int columns = sqlite3_column_count(statement);
    bay_json_array(json, "columns");
    for (int i = 0; i < columns; i++) {
        bay_json_text(json, NULL, sqlite3_column_name(statement, i));
    }
    bay_json_end(json);
    bay_json_array(json, "rows");
    for (int rows = 0; rows < MAX_ROWS && (status = sqlite3_step(statement)) == SQLITE_ROW;
         rows++) {
        bay_json_array(json, NULL);
        for (int i = 0; i < columns; i++) {
            put_cell(json, statement, i);
        }
        bay_json_end(json);
    }
    bay_json_end(json);
    return status;
}

static void run(bay_call *call, sqlite3 *database, bay_str sql)
{
    sqlite3_stmt *statement = NULL;
    const char *rest = NULL;
    int status = sqlite3_prepare_v2(database, sql.at, (int)sql.len, &statement, &rest);
    if (status != SQLITE_OK || statement == NULL || !sqlite3_stmt_readonly(statement)) {
        bay_call_failf(call, "The statement was refused: %s",
                       status != SQLITE_OK ? sqlite3_errmsg(database) : "one SELECT is wanted");
    } else if (rest < sql.at + sql.len &&
               strspn(rest, " \t\r\n;") < (size_t)(sql.at + sql.len - rest)) {
        bay_call_fail(call, "Only one statement at a time is taken.");
    } else {
        bay_json *json = bay_json_new();
        steps = 0;
        sqlite3_progress_handler(database, 1000, watch, call);
        bay_json_object(json, NULL);
        status = put_rows(json, statement);
        bay_json_bool(json, "hasMore", status == SQLITE_ROW);
        bay_json_end(json);
        if (status == SQLITE_ROW || status == SQLITE_DONE) {
            bay_call_reply_json(call, json);
        } else {
            bay_call_failf(call, "The statement was stopped: %s", sqlite3_errmsg(database));
            bay_json_free(json);
        }
        sqlite3_progress_handler(database, 0, NULL, NULL);
    }
    sqlite3_finalize(statement);
}

static void query(bay_call *call, void *database)
{
    run(call, database, bay_call_str(call, "sql"));
}

static void tables(bay_call *call, void *database)
{
    run(call, database, bay_str_of("SELECT name, sql FROM sqlite_schema ORDER BY name"));
}

static const bay_field input[] = {{"sql", BAY_TYPE_STRING, "The statement", .is_required = true},
                                  {0}};

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
    if (status != SQLITE_OK ||
        sqlite3_exec(database, "SELECT 1 FROM sqlite_schema", NULL, NULL, NULL) != SQLITE_OK) {
        fprintf(stderr, "database: %s\n", sqlite3_errmsg(database));
        return 2;
    }
    sqlite3_set_authorizer(database, authorize, NULL);
    sqlite3_limit(database, SQLITE_LIMIT_LENGTH, 1 << 20);
    bay_server *server = bay_server_new("database", "1.0.0");
    bay_tool *tool = bay_server_tool(
        server, "query", "Runs one SELECT; at most 200 rows come back.", input, query, database);
    bay_tool_annotations(tool, "{\"readOnlyHint\":true,\"openWorldHint\":false}");
    tool = bay_server_tool(server, "tables", "The tables, as they were created.", NULL, tables,
                           database);
    bay_tool_annotations(tool, "{\"readOnlyHint\":true,\"openWorldHint\":false}");
    status = bay_server_main(server, argc - has_file, argv + has_file);
    sqlite3_close(database);
    return status;
}

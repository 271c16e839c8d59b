/* status: how a running gateway is, as a table for a person or as the gateway's own JSON. */
#include "base/err.h"
#include "base/str.h"
#include "cli/admin_client.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/say.h"
#include "json/json.h"

enum { STATUS_MS = 10000, TITLE_COLUMNS = 15 };

typedef struct page {
    output device;
    buf text;
    arena memory;
    json_doc document;
} page;

static bay_str text_of(page *self, json_val object, const char *name)
{
    bay_str out = {"", 0};
    err_ignore(json_str(json_get(object, str_of(name)), &self->memory, &out));
    return out;
}

static uint64_t count_of(json_val object, const char *name)
{
    uint64_t out = 0;
    err_ignore(json_uint64(json_get(object, str_of(name)), &out));
    return out;
}

/* "12 s", "3 min", "5 h", "2 d" */
static void put_age(buf *out, uint64_t ms)
{
    static const struct {
        uint64_t below; /* of `unit`, and then the next one */
        const char *unit;
    } units[] = {{120, "s"}, {120, "min"}, {48, "h"}, {UINT64_MAX, "d"}};
    static const uint64_t factors[] = {1000, 60, 60, 24};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        ms /= factors[i];
        if (ms < units[i].below) {
            buf_printf(out, "%llu %s", (unsigned long long)ms, units[i].unit);
            return;
        }
    }
}

static void put_title(page *self, const char *title)
{
    output_color(&self->device, &self->text, OUTPUT_BOLD);
    buf_printf(&self->text, "%-*s", TITLE_COLUMNS, title);
    output_color(&self->device, &self->text, OUTPUT_PLAIN);
}

static output_style style_of(bay_str state)
{
    return str_eq(state, STR("ready")) ? OUTPUT_GREEN
           : str_eq(state, STR("backoff")) || str_eq(state, STR("open")) ||
                   str_eq(state, STR("degraded"))
               ? OUTPUT_RED
               : OUTPUT_YELLOW;
}

static void put_head(page *self, json_val status)
{
    buf *out = &self->text;
    bay_str state = text_of(self, status, "status");
    put_title(self, "patchbay");
    output_color(&self->device, out, style_of(state));
    output_line(out, state);
    output_color(&self->device, out, OUTPUT_PLAIN);
    buf_lit(out, ", version ");
    output_line(out, text_of(self, status, "version"));
    buf_printf(out, ", process %llu, up ", (unsigned long long)count_of(status, "pid"));
    put_age(out, count_of(status, "uptimeMs"));
    buf_char(out, '\n');
}

static void put_configuration(page *self, json_val settings)
{
    buf *out = &self->text;
    bay_str error = text_of(self, settings, "reloadError");
    put_title(self, "configuration");
    output_line(out, text_of(self, settings, "file"));
    buf_lit(out, ", loaded ");
    put_age(out, count_of(settings, "loadedMs"));
    buf_lit(out, " ago");
    if (json_true(json_get(settings, STR("reloading")))) {
        buf_lit(out, "; a reload is under way");
    }
    buf_char(out, '\n');
    if (error.len > 0) {
        put_title(self, "");
        output_color(&self->device, out, OUTPUT_RED);
        buf_lit(out, "the reload ");
        put_age(out, count_of(settings, "reloadFailedMs"));
        buf_lit(out, " ago failed: ");
        output_line(out, error);
        output_color(&self->device, out, OUTPUT_PLAIN);
        buf_char(out, '\n');
    }
}

static void put_addresses(page *self, json_val addresses)
{
    json_iter each = json_iter_of(addresses);
    for (bool is_first = true; json_next(&each); is_first = false) {
        bay_str address = {"", 0};
        put_title(self, is_first ? "listening" : "");
        err_ignore(json_str(each.value, &self->memory, &address));
        output_line(&self->text, address);
        buf_char(&self->text, '\n');
    }
}

static void put_workers(page *self, json_val workers)
{
    size_t count = 0;
    size_t silent = 0;
    json_iter each = json_iter_of(workers);
    while (json_next(&each)) {
        count++;
        silent += !json_true(json_get(each.value, STR("answered")));
    }
    put_title(self, "workers");
    buf_printf(&self->text, "%zu", count);
    if (silent > 0) {
        output_color(&self->device, &self->text, OUTPUT_RED);
        buf_printf(&self->text, "; %zu did not answer in time, and what follows lacks its part",
                   silent);
        output_color(&self->device, &self->text, OUTPUT_PLAIN);
    }
    buf_char(&self->text, '\n');
}

static void put_clients(page *self, json_val status)
{
    static const struct {
        const char *name;
        const char *what;
    } counts[] = {
        {"connections", "connections"},
        {"sessions", "sessions"},
        {"calls", "calls under way"},
        {"parkedCalls", "calls that wait for their clients"},
        {"tasks", "tasks"},
    };
    put_title(self, "clients");
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        buf_str(&self->text, i > 0 ? STR(", ") : STR(""));
        buf_printf(&self->text, "%llu %s", (unsigned long long)count_of(status, counts[i].name),
                   counts[i].what);
    }
    uint64_t replaced = count_of(status, "replacedServers");
    if (replaced > 0) {
        buf_printf(&self->text, "; %llu calls of %llu replaced servers",
                   (unsigned long long)count_of(status, "callsOfReplacedServers"),
                   (unsigned long long)replaced);
    }
    buf_char(&self->text, '\n');
}

static void put_number(output_table *table, uint64_t number)
{
    char bytes[24];
    int len = snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)number);
    output_table_cell(table, (bay_str){bytes, (size_t)len});
}

/* What its own error does not say: contracts that fail. */
static bay_str trouble_of(page *self, json_val server)
{
    json_val contracts = json_get(server, STR("contracts"));
    bay_str error = text_of(self, contracts, "error");
    bool is_held = json_true(json_get(contracts, STR("held")));
    buf out;
    if (error.len == 0 && json_true(json_get(json_get(server, STR("grade")), STR("held")))) {
        return STR("held for its grade: patchbay grade says why");
    }
    if (error.len == 0) {
        return is_held ? STR("held: its contracts have not been run yet")
                       : text_of(self, server, "restartedFor");
    }
    bay_str text = error;
    buf_init(&out, 4096);
    buf_printf(&out, "%s%llu contracts fail: ", is_held ? "held: " : "",
               (unsigned long long)count_of(contracts, "failing"));
    buf_str(&out, error);
    err_ignore(arena_dup(&self->memory, buf_view(&out), &text));
    buf_fini(&out);
    return text;
}

static void put_server(page *self, output_table *table, json_val server)
{
    char bytes[40];
    buf age = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    bay_str error = text_of(self, server, "error");
    put_age(&age, count_of(server, "stateMs"));
    output_table_cell(table, text_of(self, server, "name"));
    output_table_cell(table, text_of(self, server, "state"));
    output_table_cell(table, buf_view(&age));
    put_number(table, count_of(server, "processes"));
    put_number(table, count_of(server, "calls"));
    put_number(table, count_of(server, "waiting"));
    put_number(table, count_of(server, "restarts"));
    output_table_cell(table, error.len > 0 ? error : trouble_of(self, server));
}

static void put_servers(page *self, json_val servers)
{
    static const char *const titles[] = {"SERVER", "STATE",   "FOR",      "PROCESSES",
                                         "CALLS",  "WAITING", "RESTARTS", "LAST ERROR"};
    enum { COLUMNS = sizeof(titles) / sizeof(titles[0]), FIRST_NUMBER = 2, LAST_NUMBER = 6 };
    output_table table;
    output_table_init(&table, COLUMNS);
    for (size_t i = 0; i < COLUMNS; i++) {
        table.is_right[i] = i >= FIRST_NUMBER && i <= LAST_NUMBER;
        output_table_cell(&table, str_of(titles[i]));
    }
    json_iter each = json_iter_of(servers);
    while (json_next(&each)) {
        put_server(self, &table, each.value);
    }
    if (json_count(servers) > 0) {
        buf_char(&self->text, '\n');
        output_table_write(&table, &self->device, &self->text);
    }
    output_table_fini(&table);
}

static void put_agents(page *self, json_val agents)
{
    json_iter each = json_iter_of(agents);
    for (bool is_first = true; json_next(&each); is_first = false) {
        buf_str(&self->text, is_first ? STR("\n  AGENT\n  ") : STR("  "));
        output_line(&self->text, text_of(self, each.value, "name"));
        bay_str state = text_of(self, each.value, "state");
        bay_str error = text_of(self, each.value, "error");
        if (state.len > 0) {
            buf_lit(&self->text, "  ");
            output_line(&self->text, state);
        }
        if (error.len > 0) {
            buf_lit(&self->text, "  ");
            output_line(&self->text, error);
        }
        buf_char(&self->text, '\n');
    }
}

static cli_exit print_page(const cli_arguments *arguments, bay_str body)
{
    page self;
    cli_exit code = CLI_EXIT_PROTOCOL;
    cli_print_init(&self.device, &self.text, arguments);
    arena_init(&self.memory, 4 * CLI_ADMIN_ANSWER_BYTES);
    if (json_parse(&self.document, body, NULL, &self.memory, NULL) != BAY_OK) {
        cli_say("the answer of the gateway is no JSON");
    } else if (arguments->is_json) {
        code = cli_print_json(&self.device, body, CLI_EXIT_OK);
    } else {
        json_val status = json_root(&self.document);
        put_head(&self, status);
        put_configuration(&self, json_get(status, STR("configuration")));
        put_addresses(&self, json_get(status, STR("listen")));
        put_workers(&self, json_get(status, STR("workers")));
        put_clients(&self, status);
        put_servers(&self, json_get(status, STR("servers")));
        put_agents(&self, json_get(status, STR("agents")));
        code = cli_print(&self.device, &self.text, CLI_EXIT_OK);
    }
    arena_fini(&self.memory);
    buf_fini(&self.text);
    return code;
}

int cmd_status(const cli_arguments *arguments)
{
    int status = 0;
    buf body;
    buf_init(&body, CLI_ADMIN_ANSWER_BYTES);
    cli_exit code =
        cli_admin_ask(arguments, STR("GET"), STR("/v1/status"), STATUS_MS, &status, &body);
    if (code == CLI_EXIT_OK) {
        code = status == 200 ? print_page(arguments, buf_view(&body))
                             : cli_admin_say_error(status, buf_view(&body));
    }
    buf_fini(&body);
    return code;
}

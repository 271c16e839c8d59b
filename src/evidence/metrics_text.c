/* Metrics as text: the classic format, and OpenMetrics, which differ in the names of counters' families
 * and in the end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "evidence/metrics_table.h"

/* As labels have them; the order of metrics_bounds_ns. */
static const char *const bound_texts[METRICS_BUCKETS] = {
    "0.01", "0.02", "0.05", "0.1",  "0.2",  "0.5",   "1.0",
    "2.0",  "5.0",  "10.0", "30.0", "60.0", "120.0", "300.0",
};

typedef struct page {
    buf *out;
    bool is_open; /* OpenMetrics */
    metrics_cell **cells;
    size_t count;
} page;

typedef enum family_type {
    FAMILY_COUNTER,
    FAMILY_GAUGE,
    FAMILY_HISTOGRAM,
    FAMILY_INFO
} family_type;

/* `name`: without the "_total" of a counter and the "_info" of an info. `unit`: "": none. */
static void put_family(page *self, const char *name, family_type type, const char *unit,
                       const char *help)
{
    static const char *const words[] = {"counter", "gauge", "histogram", "info"};
    static const char *const classic_words[] = {"counter", "gauge", "histogram", "gauge"};
    static const char *const ends[] = {"_total", "", "", "_info"};
    const char *end = self->is_open ? "" : ends[type];
    buf_printf(self->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, end, help, name, end,
               self->is_open ? words[type] : classic_words[type]);
    if (self->is_open && unit[0] != '\0') {
        buf_printf(self->out, "# UNIT %s %s\n", name, unit);
    }
}

static void put_value(buf *out, bay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c == '\\' || c == '"') {
            buf_char(out, '\\');
        }
        c == '\n' ? buf_lit(out, "\\n") : buf_char(out, c);
    }
}

static void put_label(buf *out, const char *name, bay_str value)
{
    char last = out->len > 0 && out->err == BAY_OK ? out->at[out->len - 1] : '{';
    if (last != '{') {
        buf_char(out, ',');
    }
    buf_str(out, str_of(name));
    buf_lit(out, "=\"");
    put_value(out, value);
    buf_char(out, '"');
}

static void put_seconds(buf *out, uint64_t ns)
{
    buf_printf(out, "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
}

/* ---- durations -------------------------------------------------------------------------------- */

/* JSON-RPC codes that say that the caller is wrong: no error of the server. */
static bool is_callers_fault(bay_str code)
{
    static const char *const codes[] = {"-32700", "-32600", "-32601", "-32602", "-32002"};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        if (str_eq(code, str_of(codes[i]))) {
            return true;
        }
    }
    return false;
}

static void put_operation(buf *out, const metrics_cell *cell, const metrics_end *end)
{
    bay_str reason = str_of(end->reason);
    put_label(out, "mcp_method_name", cell->method);
    put_label(out, "patchbay_server", cell->server);
    if (cell->kind == CALL_TOOL && cell->target.len > 0) {
        put_label(out, "gen_ai_operation_name", STR("execute_tool"));
        put_label(out, "gen_ai_tool_name", cell->target);
    } else if (cell->kind == CALL_PROMPT && cell->target.len > 0) {
        put_label(out, "gen_ai_prompt_name", cell->target);
    }
    if (reason.len > 0 && !(end->outcome == CALL_ERROR && is_callers_fault(reason))) {
        put_label(out, "error_type", reason);
    }
    if (end->outcome == CALL_ERROR && reason.at[0] == '-') {
        put_label(out, "rpc_response_status_code", reason);
    }
}

static void put_histogram(page *self, const char *name, const metrics_cell *cell,
                          const metrics_end *end)
{
    uint64_t count = 0;
    char labels[8 * METRICS_NAME_BYTES];
    buf text = {.at = labels, .cap = sizeof(labels), .max = sizeof(labels)};
    put_operation(&text, cell, end);
    if (end->count == 0 || text.err != BAY_OK) {
        return;
    }
    for (size_t i = 0; i <= METRICS_BUCKETS; i++) {
        count += end->buckets[i];
        buf_printf(self->out, "%s_bucket{", name);
        buf_str(self->out, buf_view(&text));
        buf_printf(self->out, ",le=\"%s\"} %" PRIu64 "\n",
                   i < METRICS_BUCKETS ? bound_texts[i] : "+Inf", count);
    }
    buf_printf(self->out, "%s_sum{", name);
    buf_str(self->out, buf_view(&text));
    buf_lit(self->out, "} ");
    put_seconds(self->out, end->sum_ns);
    buf_printf(self->out, "\n%s_count{", name);
    buf_str(self->out, buf_view(&text));
    buf_printf(self->out, "} %" PRIu64 "\n", end->count);
}

static void put_durations(page *self)
{
    static const char name[] = "mcp_server_operation_duration_seconds";
    put_family(self, name, FAMILY_HISTOGRAM, "seconds",
               "Duration of MCP requests, from their arrival to their answer.");
    for (size_t i = 0; i < self->count; i++) {
        const metrics_cell *cell = self->cells[i];
        if (cell->protocol != CALL_MCP) {
            continue;
        }
        put_histogram(self, name, cell, &cell->results);
        for (size_t k = 0; cell->errors != NULL && k <= METRICS_ERRORS; k++) {
            put_histogram(self, name, cell, &cell->errors[k]);
        }
    }
}

/* ---- counters --------------------------------------------------------------------------------- */

static void put_calls(page *self)
{
    put_family(self, "patchbay_calls", FAMILY_COUNTER, "", "Calls that have ended.");
    for (size_t i = 0; i < self->count; i++) {
        const metrics_cell *cell = self->cells[i];
        uint64_t counts[CALL_CANCELLED + 1] = {[CALL_RESULT] = cell->results.count};
        for (size_t k = 0; cell->errors != NULL && k <= METRICS_ERRORS; k++) {
            counts[cell->errors[k].outcome] += cell->errors[k].count;
        }
        for (call_outcome how = CALL_RESULT; how <= CALL_CANCELLED; how++) {
            if (counts[how] == 0) {
                continue;
            }
            buf_lit(self->out, "patchbay_calls_total{");
            put_label(self->out, "server", cell->server);
            put_label(self->out, "tool", cell->target);
            put_label(self->out, "method", cell->method);
            put_label(self->out, "outcome", str_of(evidence_outcome_text(how)));
            buf_printf(self->out, "} %" PRIu64 "\n", counts[how]);
        }
    }
}

static void put_number(page *self, const char *name, const char *help, uint64_t number)
{
    put_family(self, name, FAMILY_COUNTER, "", help);
    buf_printf(self->out, "%s_total %" PRIu64 "\n", name, number);
}

static void put_refusals(page *self, const metrics_table *table)
{
    put_family(self, "patchbay_refusals", FAMILY_COUNTER, "", "Calls that the gateway refused.");
    for (call_reason why = 0; why < CALL_REASONS; why++) {
        buf_printf(self->out, "patchbay_refusals_total{reason=\"%s\"} %" PRIu64 "\n",
                   call_reason_text(why), table->refused[why]);
    }
}

static uint64_t memory_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL) {
        return 0;
    }
    bool is_read = fscanf(file, "%*u %llu", &pages) == 1;
    (void)fclose(file);
    long size = sysconf(_SC_PAGESIZE);
    return is_read && size > 0 ? pages * (uint64_t)size : 0;
}

static uint64_t of_timeval(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_usec * 1000;
}

static void put_process(page *self, const metrics_process *process)
{
    struct rusage used;
    put_family(self, "process_cpu_seconds", FAMILY_COUNTER, "seconds", "CPU time of the process.");
    buf_lit(self->out, "process_cpu_seconds_total ");
    put_seconds(self->out, getrusage(RUSAGE_SELF, &used) == 0
                               ? of_timeval(used.ru_utime) + of_timeval(used.ru_stime)
                               : 0);
    buf_char(self->out, '\n');
    put_family(self, "process_resident_memory_bytes", FAMILY_GAUGE, "bytes",
               "Memory of the process that is resident.");
    buf_printf(self->out, "process_resident_memory_bytes %" PRIu64 "\n", memory_bytes());
    put_family(self, "process_start_time_seconds", FAMILY_GAUGE, "seconds",
               "When the gateway started, since 1970.");
    buf_lit(self->out, "process_start_time_seconds ");
    put_seconds(self->out, process->wall_started_ms * 1000000);
    buf_char(self->out, '\n');
    put_family(self, "patchbay_build", FAMILY_INFO, "", "The version of the gateway.");
    buf_printf(self->out, "patchbay_build_info{version=\"%s\"} 1\n", bay_version());
}

/* ---- all of it -------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    return str_cmp((*(metrics_cell *const *)a)->key, (*(metrics_cell *const *)b)->key);
}

static bool collect(page *self, metrics_table *table)
{
    size_t cursor = 0;
    bay_str key;
    void *cell;
    self->cells = mem_array(table->cells.len + 1, sizeof(metrics_cell *));
    if (self->cells == NULL) {
        return false;
    }
    while (map_next(&table->cells, &cursor, &key, &cell)) {
        self->cells[self->count++] = cell;
    }
    self->cells[self->count++] = table->other;
    qsort(self->cells, self->count, sizeof(self->cells[0]), compare);
    return true;
}

void metrics_write(metrics *self, const metrics_process *process, bool is_open, buf *out)
{
    page made = {.out = out, .is_open = is_open};
    pthread_mutex_lock(&self->lock);
    if (collect(&made, self->table)) {
        put_durations(&made);
        put_calls(&made);
        put_refusals(&made, self->table);
        put_number(&made, "patchbay_series_dropped",
                   "Calls that are counted as _other, because there are too many names.",
                   self->table->dropped);
        mem_free(made.cells);
    } else {
        out->err = BAY_ERR_NOMEM;
    }
    pthread_mutex_unlock(&self->lock);
    put_number(&made, "patchbay_audit_dropped", "Records of the audit that were lost.",
               process->audit_dropped);
    put_process(&made, process);
    if (is_open) {
        buf_lit(out, "# EOF\n");
    }
}

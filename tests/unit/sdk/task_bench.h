/* A bench for tasks: a client that begins them and looks after them, and a file that they survive
 * in, as another process may have left it. */
#ifndef TEST_TASK_BENCH_H
#define TEST_TASK_BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sdk/task_parts.h"
#include "unit/sdk/sdk_bench.h"

#define EXTENSION "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}"
#define MODERN "2026-07-28"

static const char none[] = "{\"type\":\"object\"}";
static const char form[] = "{\"type\":\"object\",\"properties\":{\"ok\":{\"type\":\"boolean\"}},"
                           "\"required\":[\"ok\"]}";

/* The answer to the last request, waited for. */
static inline const char *wait_for(rig *self)
{
    char id[32];
    (void)snprintf(id, sizeof(id), "\"id\":%d,", self->next_id);
    RIG_UNTIL(self, self->way.events > 0 && strstr(last_event(&self->way), id) != NULL);
    /* Only the last one is of interest: polling makes many. */
    for (int i = 0; i < self->way.events - 1; i++) {
        free(self->way.event[i]);
    }
    self->way.event[0] = self->way.event[self->way.events - 1];
    self->way.events = 1;
    return last_event(&self->way);
}

static inline const char *get_answer(rig *self, const char *method, const char *params)
{
    rig_send(self, method, params, "");
    return wait_for(self);
}

static inline const char *get_tool(rig *self, const char *name)
{
    char params[128];
    (void)snprintf(params, sizeof(params), "\"name\":\"%s\"", name);
    return get_answer(self, "tools/call", params);
}

static inline void begin_task(rig *self, const char *tool, char *id)
{
    const char *text = get_tool(self, tool);
    assert_has(text, "\"resultType\":\"task\"");
    const char *at = strstr(text, "\"taskId\":\"");
    assert_non_null(at);
    memcpy(id, at + 10, TASK_ID_BYTES);
    id[TASK_ID_BYTES] = '\0';
}

static inline const char *task_request(rig *self, const char *method, const char *id,
                                       const char *more)
{
    char params[1024];
    (void)snprintf(params, sizeof(params), "\"taskId\":\"%s\"%s%s", id, more[0] != '\0' ? "," : "",
                   more);
    return get_answer(self, method, params);
}

/* Looks until its state is that. */
static inline const char *wait_status(rig *self, const char *id, const char *status)
{
    char wanted[64];
    (void)snprintf(wanted, sizeof(wanted), "\"status\":\"%s\"", status);
    for (int i = 0; i < 1000; i++) {
        const char *text = task_request(self, "tasks/get", id, "");
        if (strstr(text, wanted) != NULL) {
            return text;
        }
    }
    fail_msg("never %s: %s", status, last_event(&self->way));
    return NULL;
}

/* ---- on disk */

static char path[64];

static inline int set_path(void **state)
{
    (void)state;
    (void)snprintf(path, sizeof(path), "/tmp/bay-tasks-XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(unlink(path), 0);
    return 0;
}

static inline int remove_path(void **state)
{
    char name[80];
    static const char *const ends[] = {"", "-wal", "-shm"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        (void)snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        (void)unlink(name);
    }
    return 0;
}

/* What a process that was killed leaves behind: a row under way, and nobody with its lease. Or with
 * one that is somebody else's. */
static inline void put_done(void *user, const store_result *result)
{
    assert_int_equal(result->err, BAY_OK);
    *(int *)user -= 1;
}

static const seal_ring *row_ring; /* that rows are left with; NULL: none */

static inline void leave_record(const task_record *record, const char *owner)
{
    int left = 1;
    loop *on;
    store *rows;
    bay_diag diag;
    buf row;
    assert_int_equal(loop_new(&on), BAY_OK);
    assert_int_equal(store_open_sqlite(on, str_of(path), NULL, &rows, &diag), BAY_OK);
    buf_init(&row, 65536);
    sdk_task_write_row(record, row_ring, &row);
    store_put_request put = {.table = STR("tasks"),
                             .key = record->id,
                             .value = buf_view(&row),
                             .expires_at_ms = record->created_ms + record->ttl_ms,
                             .expected = STORE_ABSENT};
    assert_int_equal(store_put(rows, &put, put_done, &left), BAY_OK);
    if (owner[0] != '\0') {
        left++;
        assert_int_equal(store_claim(rows, STR("task owners"), record->id, str_of(owner), 60000,
                                     put_done, &left),
                         BAY_OK);
    }
    while (left > 0) {
        loop_turn(on, 100);
    }
    store_close(rows, NULL, NULL);
    while (!store_is_closed(rows)) {
        loop_turn(on, 100);
    }
    store_free(rows);
    buf_fini(&row);
    loop_free(on);
}

static inline task_record record_of(const char *id, const char *tool)
{
    return (task_record){.id = str_of(id),
                         .tool = str_of(tool),
                         .arguments = STR("{\"a\":1.50}"),
                         .capabilities = STR("{}"),
                         .created_ms = loop_time_ms(),
                         .ttl_ms = 3600000,
                         .poll_ms = 10};
}

static inline void leave_row(const char *id, const char *tool, const char *owner,
                             const char *principal)
{
    task_record record = record_of(id, tool);
    record.principal = str_of(principal);
    leave_record(&record, owner);
}

#endif

/* The door over every transport of MCP: each row of the table of methods, in each revision that has
 * it, over Streamable HTTP, HTTP+SSE, stdio and in process, at the gateway and at a server of the
 * library, passes call_admit once before it has any effect and call_over once at its end, by the
 * principal who made it; and where the door refuses, nothing reaches a handler or an upstream.
 * Cells that there cannot be are in `impossible`, and tried as well. */
#include <openssl/opensslv.h> /* ids, cursors and states are sealed: not in a build without it */

#include "support/door_places.h"

#include "support/door_rows.h"

enum { ANY = -1 };

typedef struct cell {
    int place;
    int transport;
    const mcp_method *method;
    mcp_revision_id revision;
} cell;

static const struct {
    int place;
    int transport;
    int method; /* ANY: each */
    bool is_modern;
    const char *reason;
} impossible[] = {
    {PLACE_SERVER, ANY, MCP_TASKS_LEGACY_GET, false, "a server has tasks in 2026-07-28 alone"},
    {PLACE_SERVER, ANY, MCP_TASKS_RESULT, false, "a server has tasks in 2026-07-28 alone"},
    {PLACE_SERVER, ANY, MCP_TASKS_LIST, false, "a server has tasks in 2026-07-28 alone"},
    {PLACE_SERVER, ANY, MCP_TASKS_LEGACY_CANCEL, false, "a server has tasks in 2026-07-28 alone"},
};

static door_rig rig;
static int place_now;
static int tried[2]; /* cells that exist, that cannot */
static int failures; /* all are told of before the test fails */

static bool is_modern(const cell *at)
{
    return mcp_revision_of(at->revision)->era == MCP_MODERN;
}

static const char *reason_against(const cell *at)
{
    for (size_t i = 0; i < ARRAY_LEN(impossible); i++) {
        bool is_it = (impossible[i].place == ANY || impossible[i].place == at->place) &&
                     (impossible[i].transport == ANY || impossible[i].transport == at->transport) &&
                     (impossible[i].method == ANY || impossible[i].method == (int)at->method->id) &&
                     impossible[i].is_modern == is_modern(at);
        if (is_it) {
            return impossible[i].reason;
        }
    }
    return NULL;
}

static void fail_cell(const cell *at, const door_client *by, const char *what)
{
    print_error("%s, %s, %.*s of %.*s: %s; answered: %s\n", rig.place.name,
                door_transports[at->transport].name, BAY_STR(at->method->text),
                BAY_STR(mcp_revision_of(at->revision)->text), what, by->text);
    watch_print();
    failures++;
}

#define CAPABILITIES                                                                               \
    "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{},\"io.modelcontextprotocol/"             \
    "skills\":{}}}"

/* Params of the row; begins the task that it names. */
static const char *row_params(door_client *by, const mcp_method *method, const char **out_name)
{
    static char params[1000];
    static char id[500];
    const door_row *row = &door_rows[method->id];
    *out_name = row->name != NULL ? row->name : "";
    if (row->params == door_row_skill || row->params == door_row_folder) {
        return row->params == door_row_skill ? "'uri':'skill://s/SKILL.md'" : "'uri':'skill://s'";
    }
    if (row->params == door_row_listen || row->params == door_row_subscribe) {
        static int serial;
        static char topic[40];
        (void)snprintf(topic, sizeof(topic), "g:///%d", ++serial);
        if (row->params == door_row_listen) {
            (void)snprintf(params, sizeof(params), DOOR_LISTEN, topic);
        } else {
            (void)snprintf(params, sizeof(params), DOOR_SUBSCRIBE, topic);
        }
        atomic_store(&rig.server.topic, topic);
        return params;
    }
    if (row->params != door_row_task) {
        return row->params;
    }
    const char *text =
        door_client_ask(by, MCP_TOOLS_CALL, "a.job",
                        door_is_modern(by) ? "'name':'a.job','arguments':{}"
                                           : "'name':'a.job','arguments':{},'task':{}");
    const char *at = strstr(text, "\"taskId\":\"");
    (void)snprintf(id, sizeof(id), "none");
    if (at != NULL) {
        assert_int_equal(sscanf(at + 10, "%499[^\"]", id), 1);
    }
    *out_name = id;
    (void)snprintf(params, sizeof(params), "'taskId':'%s'%s", id,
                   method->id == MCP_TASKS_UPDATE ? ",'inputResponses':{}" : "");
    return params;
}

static void check_passed(const cell *at, const door_client *by)
{
    int wanted = door_calls_of(at->method);
    watch_wait_over(wanted);
    if (watch_count(&door_seen.asked) != wanted || watch_count(&door_seen.over) != wanted) {
        fail_cell(at, by, "it does not pass once");
        return;
    }
    for (int i = 0; i < wanted; i++) {
        const watched_call *in = &door_seen.asked.at[i];
        const watched_call *out = &door_seen.over.at[i];
        bool is_right =
            in->kind == at->method->call && in->state == CALL_NEW && strcmp(in->who, out->who) == 0;
        bool is_of_link = at->transport == DOOR_LOCAL && at->method->id == MCP_LISTEN;
        const char *who = is_of_link ? DOOR_LINK_CALLER : "ann";
        bool is_hers =
            by->by->has_caller ? strstr(in->who, who) != NULL : strncmp(in->who, "local", 5) == 0;
        if (!is_right || !is_hers) {
            fail_cell(at, by, "not the call or the caller that was to pass");
        }
        if (out->how == CALL_TURNED_AWAY || out->how == CALL_CANCELLED) {
            fail_cell(at, by, "it was refused, or nobody waited for it");
        }
    }
    if (door_seen.was_early) {
        fail_cell(at, by, "it had an effect before the door was asked");
    }
}

static void check_refused(const cell *at, const door_client *by)
{
    watch_wait_over(1);
    if (watch_count(&door_seen.asked) != 1 || watch_count(&door_seen.over) != 1 ||
        door_seen.over.at[0].how != CALL_TURNED_AWAY) {
        fail_cell(at, by, "it is not refused once");
        return;
    }
    const char *wanted = at->method->call == CALL_TOOL ? "\"isError\":true" : "\"error\":{";
    if (watch_effects() != door_seen.effects_before || strstr(by->text, wanted) == NULL ||
        strstr(by->text, "called by") != NULL) {
        fail_cell(at, by, "it was refused and yet something happened");
    }
}

static void try_cell(const cell *at, bool is_refused)
{
    static door_client caller;
    const char *reason = reason_against(at);
    const char *name = "";
    door_client_open(&caller, at->transport, &rig.place, at->revision, "ann", CAPABILITIES);
    watch_begin(NULL);
    const char *params = row_params(&caller, at->method, &name);
    watch_wait_over(watch_count(&door_seen.asked));
    watch_begin(is_refused ? watch_says_no : NULL);
    (void)door_client_ask(&caller, at->method->id, name, params);
    if (reason != NULL && watch_count(&door_seen.asked) > 0) {
        fail_cell(at, &caller, "a cell that cannot exist does exist");
    } else if (reason == NULL && is_refused) {
        check_refused(at, &caller);
    } else if (reason == NULL) {
        check_passed(at, &caller);
    }
    tried[reason != NULL]++;
    door_client_close(&caller);
}

static void try_row(const mcp_method *method, mcp_revision_id revision)
{
    for (int transport = 0; transport < DOOR_TRANSPORTS; transport++) {
        cell at = {place_now, transport, method, revision};
        try_cell(&at, false);
        try_cell(&at, true);
    }
}

static void every_row_over_every_transport(int place)
{
    door_rig_open(&rig, place);
    place_now = place;
    tried[0] = tried[1] = failures = 0;
    int rows = door_each_row(try_row);
    print_message("%s: %d rows, %d cells, %d that cannot be\n", rig.place.name, rows, tried[0],
                  tried[1]);
    assert_int_equal(failures, 0);
    assert_true(rows > 50);
    assert_int_equal(tried[0] + tried[1], rows * DOOR_TRANSPORTS * 2);
    door_rig_close(&rig);
}

static void every_row_passes_once_at_the_gateway(void **state)
{
    (void)state;
    every_row_over_every_transport(PLACE_GATEWAY);
}

static void every_row_passes_once_at_a_server(void **state)
{
    (void)state;
    every_row_over_every_transport(PLACE_SERVER);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_passes_once_at_the_gateway),
        cmocka_unit_test(every_row_passes_once_at_a_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

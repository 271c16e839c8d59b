/* The door for A2A: each operation of the table, in every version and binding, at an agent of the
 * library, at a remote agent behind the gateway, at an agent that the gateway makes of tools, and
 * at one that it makes of a remote agent's skills, passes call_admit once before it has any effect
 * and call_over once at its end, by the principal who made it; what the bridges call on that behalf
 * passes likewise, by the same principal; and where the door refuses, nothing reaches an upstream.
 * Cells that there cannot be are in `impossible`, and tried as well. */
#include "support/door_agent.h"

#include "support/door_places.h"

enum { AT_AGENT, AT_REMOTE, AT_TOOLS, AT_SKILLS, AGENT_PLACES, ANY = -1 };

static const char *const place_names[] = {"library agent", "remote agent", "agent made of tools",
                                          "agent made of skills"};

typedef struct cell {
    int place;
    a2a_version version;
    a2a_binding binding;
    a2a_method method;
} cell;

static const struct {
    int place;
    int version;
    int binding;
    int method;
    const char *reason;
} impossible[] = {
    {ANY, A2A_0_1, ANY, A2A_LIST_TASKS, "0.1 has no lists"},
    {ANY, A2A_0_1, ANY, A2A_LIST_PUSH_CONFIGS, "0.1 has no lists"},
    {ANY, A2A_0_1, ANY, A2A_DELETE_PUSH_CONFIG, "0.1 sets and gets a webhook, no more"},
    {ANY, A2A_0_1, ANY, A2A_GET_EXTENDED_CARD, "0.1 has one card"},
    {ANY, A2A_0_2, ANY, A2A_LIST_TASKS, "a method of 1.0"},
    {ANY, A2A_0_3, ANY, A2A_LIST_TASKS, "a method of 1.0"},
    {AT_REMOTE, A2A_0_2, A2A_JSONRPC, A2A_GET_EXTENDED_CARD, "it is beside the agent's path"},
    {AT_TOOLS, A2A_0_2, A2A_JSONRPC, A2A_GET_EXTENDED_CARD, "it is beside the agent's path"},
    {AT_SKILLS, A2A_0_2, A2A_JSONRPC, A2A_GET_EXTENDED_CARD, "it is beside the agent's path"},
};

static struct {
    door_agent agent; /* itself, or behind the gateway */
    door_server server;
    gateway_rig gateway;
    int descriptors;
    uint16_t port;
} rig;

static int tried[2]; /* cells that exist, that cannot */
static int failures; /* all are told of before the test fails */
static a2a_interface interface_now;

static const char *reason_against(const cell *at)
{
    for (size_t i = 0; i < ARRAY_LEN(impossible); i++) {
        bool is_it = (impossible[i].place == ANY || impossible[i].place == at->place) &&
                     (impossible[i].version == ANY || impossible[i].version == (int)at->version) &&
                     (impossible[i].binding == ANY || impossible[i].binding == (int)at->binding) &&
                     (impossible[i].method == ANY || impossible[i].method == (int)at->method);
        if (is_it) {
            return impossible[i].reason;
        }
    }
    return NULL;
}

static void fail_cell(const cell *at, const door_caller *by, const char *what)
{
    print_error("%s, %.*s of %.*s by %.*s: %s; answered: %s\n", place_names[at->place],
                BAY_STR(a2a_methods[at->method].name), BAY_STR(a2a_version_names[at->version]),
                BAY_STR(a2a_binding_names[at->binding]), what, by->text);
    watch_print();
    failures++;
}

/* ---- what is asked --------------------------------------------------------------------------- */

static const char *const message_of[AGENT_PLACES] = {
    [AT_AGENT] = "{'text':'x'}],'metadata':{'skillId':'echo'}",
    [AT_REMOTE] = "{'text':'x'}],'metadata':{'skillId':'echo'}",
    [AT_TOOLS] = "{'data':{'tool':'a.echo','arguments':{}}}]",
    [AT_SKILLS] = "{'data':{'tool':'far.echo','arguments':{'message':'x'}}}]",
};

/* Params of each operation, with the id of a task for %s; NULL: this test knows no way to ask. */
static const char *const params_of[A2A_METHODS] = {
    [A2A_SEND_MESSAGE] = "",
    [A2A_SEND_STREAMING_MESSAGE] = "",
    [A2A_GET_TASK] = "{'id':'%s'}",
    [A2A_LIST_TASKS] = "{}",
    [A2A_CANCEL_TASK] = "{'id':'%s'}",
    [A2A_SUBSCRIBE_TO_TASK] = "{'id':'%s'}",
    [A2A_CREATE_PUSH_CONFIG] = "{'taskId':'%s','id':'c','url':'http://127.0.0.1:9/hook'}",
    [A2A_GET_PUSH_CONFIG] = "{'taskId':'%s','id':'c'}",
    [A2A_LIST_PUSH_CONFIGS] = "{'taskId':'%s'}",
    [A2A_DELETE_PUSH_CONFIG] = "{'taskId':'%s','id':'c'}",
    [A2A_GET_EXTENDED_CARD] = "{}",
};

static void write_params(const cell *at, const char *task, char *out, size_t size)
{
    static int serial;
    const char *format = params_of[at->method];
    if (format == NULL) {
        fail_msg("%.*s is an operation that this test does not know",
                 BAY_STR(a2a_methods[at->method].name));
    }
    const char *name = strstr(format, "%s");
    if (format[0] == '\0') {
        (void)snprintf(out, size, "{'message':{'messageId':'m%d','role':'ROLE_USER','parts':[%s}}",
                       ++serial, message_of[at->place]);
    } else if (name == NULL) {
        (void)snprintf(out, size, "%s", format);
    } else {
        (void)snprintf(out, size, "%.*s%s%s", (int)(name - format), format, task, name + 2);
    }
}

static void begin_task(const cell *at, char task[100])
{
    static door_caller by;
    cell begun = {at->place, A2A_1_0, A2A_JSONRPC, A2A_SEND_MESSAGE};
    a2a_interface plain;
    char params[1000], url[100];
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", rig.port,
                   at->place == AT_AGENT    ? ""
                   : at->place == AT_REMOTE ? "/a2a/far"
                   : at->place == AT_TOOLS  ? "/a2a/made"
                                            : "/a2a/skilled");
    plain = (a2a_interface){str_of(url), STR(""), A2A_JSONRPC, A2A_1_0};
    write_params(&begun, "", params, sizeof(params));
    door_caller_open(&by, &plain);
    assert_int_equal(door_caller_ask(&by, "ann", A2A_SEND_MESSAGE, params), BAY_OK);
    const char *id = strstr(by.text, "{\"task\":{\"id\":\"");
    if (id == NULL) {
        fail_msg("no task: %s", by.text);
    }
    assert_int_equal(sscanf(id + 15, "%99[^\"]", task), 1);
    door_caller_close(&by);
}

/* ---- what is wanted -------------------------------------------------------------------------- */

/* The calls that bridges make for one operation: of MCP, of A2A. */
static void inner_calls(const cell *at, int *out_mcp, int *out_a2a)
{
    bool is_message = a2a_methods[at->method].call == CALL_MESSAGE;
    *out_mcp = is_message && (at->place == AT_TOOLS || at->place == AT_SKILLS);
    *out_a2a = is_message && at->place == AT_SKILLS;
}

/* By REST before 1.0 a caller that is told no tries the other way to write a webhook. */
static int outer_calls(const cell *at, const door_caller *by)
{
    bool is_again = at->method == A2A_CREATE_PUSH_CONFIG && at->binding == A2A_HTTP_JSON &&
                    at->version < A2A_1_0 && strstr(by->text, "fault") != NULL;
    return is_again ? 2 : 1;
}

static void check_passed(const cell *at, const door_caller *by)
{
    int mcp, a2a;
    int outer = outer_calls(at, by);
    inner_calls(at, &mcp, &a2a);
    watch_wait_over(outer + mcp + a2a);
    const watched_calls *in = &door_seen.asked;
    const watched_calls *out = &door_seen.over;
    if (watch_count_of(in, CALL_MCP) != mcp || watch_count_of(out, CALL_MCP) != mcp ||
        watch_count_of(in, CALL_A2A) != outer + a2a ||
        watch_count_of(out, CALL_A2A) != outer + a2a) {
        fail_cell(at, by, "it does not pass once");
        return;
    }
    for (int i = 0; i < in->count; i++) {
        if (strstr(in->at[i].who, "ann") == NULL || strstr(out->at[i].who, "ann") == NULL ||
            in->at[i].state != CALL_NEW || out->at[i].how == CALL_TURNED_AWAY) {
            fail_cell(at, by, "not the caller that was to pass, or it was refused");
        }
    }
    if (in->at[0].kind != a2a_methods[at->method].call || door_seen.was_early) {
        fail_cell(at, by, "not the call that was to pass, or it had an effect before");
    }
}

static void check_refused(const cell *at, const door_caller *by)
{
    watch_wait_over(1);
    if (door_seen.asked.count != 1 || door_seen.over.count != 1 ||
        door_seen.over.at[0].how != CALL_TURNED_AWAY) {
        fail_cell(at, by, "it is not refused once");
    } else if (watch_effects() != door_seen.effects_before || strstr(by->text, "fault") == NULL) {
        fail_cell(at, by, "it was refused and yet something happened");
    }
}

static bool says_no_to_inner(const call_context *call)
{
    return call->protocol == CALL_A2A && door_seen.asked.count == 1;
}

/* The door lets the operation in and refuses what the bridge calls for it. */
static void check_inner_refused(const cell *at, const door_caller *by)
{
    watch_wait_over(2);
    if (door_seen.asked.count != 2 || door_seen.over.count != 2) {
        fail_cell(at, by, "the bridge's call is not refused once");
    } else if (watch_effects() != door_seen.effects_before) {
        fail_cell(at, by, "the bridge's call was refused and yet something happened");
    }
}

/* ---- cells ----------------------------------------------------------------------------------- */

static void try_cell(const cell *at, const char *task, bool (*says)(const call_context *call),
                     void (*check)(const cell *at, const door_caller *by))
{
    static door_caller by;
    char params[1000];
    const char *reason = reason_against(at);
    write_params(at, task, params, sizeof(params));
    door_caller_open(&by, &interface_now);
    watch_begin(says);
    bay_err err = door_caller_ask(&by, "ann", at->method, params);
    bool is_there = watch_count(&door_seen.asked) > 0;
    if (reason != NULL && is_there) {
        fail_cell(at, &by, "a cell that cannot exist does exist");
    } else if (reason == NULL && err != BAY_OK) {
        fail_cell(at, &by, "the form has no such operation");
    } else if (reason == NULL) {
        check(at, &by);
    }
    tried[reason != NULL]++;
    door_caller_close(&by);
}

static void try_form(int place, a2a_version version, a2a_binding binding)
{
    static const char *const paths[] = {"", "/a2a/far", "/a2a/made", "/a2a/skilled"};
    char url[100], task[100];
    int mcp, a2a;
    (void)snprintf(url, sizeof(url), "%s127.0.0.1:%u%s", binding == A2A_GRPC ? "" : "http://",
                   rig.port, binding == A2A_GRPC ? "" : paths[place]);
    bool has_tenant = binding == A2A_GRPC && place != AT_AGENT;
    interface_now = (a2a_interface){str_of(url), has_tenant ? str_of(paths[place] + 5) : STR(""),
                                    binding, version};
    for (int method = 0; method < A2A_METHODS; method++) {
        cell at = {place, version, binding, (a2a_method)method};
        watch_begin(NULL);
        begin_task(&at, task); /* hers, for what names one */
        inner_calls(&at, &mcp, &a2a);
        watch_wait_over(1 + (place >= AT_TOOLS) + (place == AT_SKILLS));
        try_cell(&at, task, NULL, check_passed);
        try_cell(&at, task, watch_says_no, check_refused);
        if (mcp > 0) {
            try_cell(&at, task, says_no_to_inner, check_inner_refused);
        }
    }
}

static void try_place(int place)
{
    tried[0] = tried[1] = failures = 0;
    for (int version = 0; version < A2A_VERSIONS; version++) {
        for (int binding = 0; binding < A2A_BINDINGS; binding++) {
            bool is_form = version != A2A_0_1 || binding == A2A_JSONRPC;
#ifdef BAY_NO_HTTP2
            is_form = is_form && binding != A2A_GRPC; /* gRPC is HTTP/2 */
#endif
            if (!is_form) {
                continue;
            }
            try_form(place, (a2a_version)version, (a2a_binding)binding);
        }
    }
    print_message("%s: %d cells, %d that cannot be\n", place_names[place], tried[0], tried[1]);
    assert_int_equal(failures, 0);
    assert_true(tried[0] > 100);
}

static void every_operation_passes_once_at_an_agent(void **state)
{
    static const char *const names[] = {"ann"};
    (void)state;
    memset(&rig, 0, sizeof(rig));
    door_agent_listen(&rig.agent, names, 1);
    watch_door(&rig.agent.agent->host.door);
    door_agent_start(&rig.agent);
    rig.port = rig.agent.port;
    door_seen.effects = &rig.agent.begun;
    try_place(AT_AGENT);
    door_agent_close(&rig.agent);
    door_seen.effects = NULL;
}

static void open_gateway(void)
{
    char settings[1000];
    loop *first_loop;
    memset(&rig, 0, sizeof(rig));
    assert_int_equal(loop_new(&first_loop), BAY_OK); /* libuv keeps what its first loop opens */
    loop_free(first_loop);
    rig.descriptors = rig_descriptors();
    door_server_open_behind(&rig.server);
    door_agent_open_behind(&rig.agent);
    (void)snprintf(settings, sizeof(settings),
                   "{'mcpServers':{'a':{'url':'http://127.0.0.1:%u/mcp'}},'a2a':{'webhooks':["
                   "'127.0.0.1']},'agents':{'far':{'url':'http://127.0.0.1:%u'},'made':{'tools':["
                   "'a.*']},'skilled':{'tools':['far.*']}}}",
                   rig.server.port, rig.agent.port);
    door_seen.skips_lists = true;
    door_gateway_start(&rig.gateway, settings, 1);
    rig.port = gateway_port(rig.gateway.gateway);
}

static void close_gateway(void)
{
    door_seen.effects = NULL;
    door_server_close(&rig.server);
    door_agent_close(&rig.agent);
    rig.gateway.descriptors = rig.descriptors;
    rig_close(&rig.gateway);
}

static void every_operation_passes_once_at_a_remote_agent(void **state)
{
    (void)state;
    open_gateway();
    door_seen.effects = &rig.agent.reached;
    try_place(AT_REMOTE);
    close_gateway();
}

static void every_operation_passes_once_at_an_agent_of_tools(void **state)
{
    (void)state;
    open_gateway();
    door_seen.effects = &rig.server.reached;
    try_place(AT_TOOLS);
    close_gateway();
}

static void every_operation_passes_once_at_an_agent_of_skills(void **state)
{
    (void)state;
    open_gateway();
    door_seen.effects = &rig.agent.reached;
    try_place(AT_SKILLS);
    close_gateway();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_passes_once_at_an_agent),
        cmocka_unit_test(every_operation_passes_once_at_a_remote_agent),
        cmocka_unit_test(every_operation_passes_once_at_an_agent_of_tools),
        cmocka_unit_test(every_operation_passes_once_at_an_agent_of_skills),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

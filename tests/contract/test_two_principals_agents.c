/* Two principals at one agent, over HTTP: a remote agent behind the gateway, one that the gateway
 * makes of tools, an agent of the library. Tasks, contexts, lists and webhooks of one never show to
 * the other and are never moved by the other, whose answer is the same bytes and status as for an
 * invented id. And the faults by which callers were once lost, each by its name. */
#include "support/door_agent.h"

#include <openssl/opensslv.h> /* tasks have owners by sealed names: not in a build without it */

#include "support/door_places.h"

#include "support/strangers.h"

static struct {
    door_agent agent; /* behind the gateway */
    door_agent own;   /* asked itself */
    door_server server;
    gateway_rig gateway;
    int descriptors;
    uint16_t port;
} rig;

#define A2A_FIELDS "A2A-Version: 1.0\r\n"
#define A2A_BODY(method, params)                                                                   \
    "{'jsonrpc':'2.0','id':7,'method':'" method "','params':" params "}"
#define MESSAGE(parts, more)                                                                       \
    "{'message':{'messageId':'m1','role':'ROLE_USER','parts':[" parts "]" more "},"                \
    "'configuration':{'returnImmediately':true}}"

typedef struct agent_place {
    const char *target;
    const char *message; /* that begins a task which stays open */
    bool is_own;
    bool has_webhooks;
    int tools_called; /* by the two tasks, after their answers */
} agent_place;

static const agent_place places[] = {
    {"/a2a/far", MESSAGE("{'text':'x'}", ",'metadata':{'skillId':'ask'}"), false, true, 0},
    {"/a2a/made", MESSAGE("{'data':{'tool':'a.hold','arguments':{}}}", ""), false, false, 2},
    {"/", MESSAGE("{'text':'x'}", ",'metadata':{'skillId':'ask'}"), true, true, 0},
};

static uint16_t port_of(const agent_place *at)
{
    return at->is_own ? rig.own.port : rig.port;
}

static const char *ask_as(const agent_place *at, const char *who, const char *body, const char *id)
{
    static char text[STRANGER_TEXT];
    exchange one = {"POST", at->target, A2A_FIELDS, body};
    exchange_run(port_of(at), who, &one, id, text);
    return text;
}

static void begin_task(const agent_place *at, const char *who, char task[100], char context[100])
{
    char body[1000];
    (void)snprintf(body, sizeof(body), A2A_BODY("SendMessage", "%s"), at->message);
    const char *text = ask_as(at, who, body, "");
    const char *id = strstr(text, "{\"task\":{\"id\":\"");
    const char *of = strstr(text, "\"contextId\":\"");
    if (id == NULL || of == NULL) {
        fail_msg("no task: %s", text);
    }
    assert_int_equal(sscanf(id + 15, "%99[^\"]", task), 1);
    assert_int_equal(sscanf(of + 13, "%99[^\"]", context), 1);
}

static void tasks_of_one_are_not_there_for_the_other(void **state)
{
    static const char *const rows[] = {
        A2A_BODY("GetTask", "{'id':'@'}"),
        A2A_BODY("SubscribeToTask", "{'id':'@'}"),
        A2A_BODY("SendMessage", "{'message':{'messageId':'m2','role':'ROLE_USER','parts':[{"
                                "'text':'red'}],'taskId':'@'}}"),
        A2A_BODY("CreateTaskPushNotificationConfig",
                 "{'taskId':'@','id':'c','url':'http://127.0.0.1:9/hook'}"),
        A2A_BODY("GetTaskPushNotificationConfig", "{'taskId':'@','id':'c'}"),
        A2A_BODY("ListTaskPushNotificationConfigs", "{'taskId':'@'}"),
        A2A_BODY("DeleteTaskPushNotificationConfig", "{'taskId':'@','id':'c'}"),
        A2A_BODY("CancelTask", "{'id':'@'}"),
    };
    static char his_list[STRANGER_TEXT], invented[STRANGER_TEXT];
    char task[100], context[100], his[100], other[100];
    (void)state;
    for (size_t p = 0; p < ARRAY_LEN(places); p++) {
        const agent_place *at = &places[p];
        watch_begin(NULL);
        begin_task(at, "ann", task, context);
        if (at->has_webhooks) {
            assert_non_null(strstr(ask_as(at, "ann", rows[3], task), "\"result\""));
        }
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            exchange one = {"POST", at->target, A2A_FIELDS, rows[i]};
            assert_strange(port_of(at), "bob", &one, task, "00000000-0000-4000-8000-000000000000");
            const char *text = ask_as(at, "ann", rows[0], task);
            bool is_open = strstr(text, "INPUT_REQUIRED") != NULL ||
                           strstr(text, "WORKING") != NULL || strstr(text, "SUBMITTED") != NULL;
            if (!is_open) {
                fail_msg("%s moved it: %s", rows[i], text);
            }
        }
        if (at->has_webhooks) {
            assert_non_null(strstr(ask_as(at, "ann", rows[4], task), "/hook"));
        }
        /* lists: nothing of hers, and her context is like one that nobody has */
        const char *of_context = A2A_BODY("ListTasks", "{'contextId':'@'}");
        (void)snprintf(his_list, sizeof(his_list), "%s", ask_as(at, "bob", of_context, context));
        (void)snprintf(invented, sizeof(invented), "%s", ask_as(at, "bob", of_context, "invented"));
        exchange_normalise(his_list, context);
        exchange_normalise(invented, "invented");
        assert_string_equal(his_list, invented);
        assert_null(strstr(ask_as(at, "bob", A2A_BODY("ListTasks", "{}"), ""), task));
        assert_non_null(strstr(ask_as(at, "ann", A2A_BODY("ListTasks", "{}"), ""), task));
        /* the same messageId is another message when another sends it */
        begin_task(at, "bob", his, other);
        assert_string_not_equal(his, task);
        door_server_wait_held(&rig.server, at->tools_called);
        door_server_release(&rig.server, "done");
        watch_wait_for(&door_seen.over, CALL_MCP, at->tools_called);
        watch_wait_over(watch_count(&door_seen.asked));
    }
}

/* ---- the faults, by name --------------------------------------------------------------------- */

static void wait_and_check_callers(int count, const char *who)
{
    watch_wait_over(count);
    if (watch_count(&door_seen.over) != count) {
        watch_print();
        fail_msg("%d calls are over, not %d", watch_count(&door_seen.over), count);
    }
    for (int i = 0; i < count; i++) {
        if (strstr(door_seen.over.at[i].who, who) == NULL) {
            watch_print();
            fail_msg("not by %s", who);
        }
    }
}

/* "bridges between tools and agents lose the caller in both directions" */
static void bridges_keep_the_caller_both_ways(void **state)
{
    static const char *const who[] = {"ann", "bob"};
    static const exchange skill = {
        "POST", "/mcp",
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: far.echo\r\n",
        "{'jsonrpc':'2.0','id':7,'method':'tools/call','params':{'name':'far.echo','arguments':{"
        "'message':'x'},'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28',"
        "'io.modelcontextprotocol/clientInfo':{'name':'c','version':'1'},"
        "'io.modelcontextprotocol/clientCapabilities':{}}}}"};
    static const exchange tool = {
        "POST", "/a2a/made", A2A_FIELDS,
        A2A_BODY("SendMessage", "{'message':{'messageId':'m9','role':'ROLE_USER','parts':[{'data':{"
                                "'tool':'a.echo','arguments':{}}}]}}")};
    static char text[STRANGER_TEXT];
    (void)state;
    for (int i = 0; i < 2; i++) {
        watch_begin(NULL);
        exchange_run(rig.port, who[i], &skill, "", text);
        assert_non_null(strstr(text, "heard it"));
        wait_and_check_callers(2, who[i]);
        watch_begin(NULL);
        exchange_run(rig.port, who[i], &tool, "", text);
        assert_non_null(strstr(text, "called by"));
        wait_and_check_callers(2, who[i]);
    }
}

static bool grant_two(bay_grant *grant, bay_str credential, void *user)
{
    (void)user;
    bay_grant_principal(grant, "ann");
    bay_grant_scopes(grant, "read write");
    return str_eq(credential, STR("good"));
}

static bool has_scopes(const call_context *call)
{
    return principal_has_scope(call->principal, STR("write")) &&
           !principal_has_scope(call->principal, STR("admin"));
}

/* "scopes are verified and thrown away" */
static void scopes_reach_the_door(void **state)
{
    static const exchange row = {"POST", "/", A2A_FIELDS "Authorization: Bearer good\r\n",
                                 A2A_BODY("ListTasks", "{}")};
    static door_agent agent;
    static char text[STRANGER_TEXT];
    bay_diag diag = {0};
    (void)state;
    agent = (door_agent){.agent = bay_agent_new("Scopes", "1.0", "Has scopes.")};
    bay_agent_skill(agent.agent, "echo", "echo", "One thing.", door_agent_echo, &agent);
    bay_agent_http_auth(agent.agent, "token", "Bearer", grant_two, NULL);
    assert_int_equal(bay_agent_listen(agent.agent, "127.0.0.1:0", &diag), BAY_OK);
    watch_door(&agent.agent->host.door);
    watch_begin(has_scopes);
    door_agent_start(&agent);
    exchange_run(bay_agent_port(agent.agent), "ann", &row, "", text);
    assert_non_null(strstr(text, "\"result\""));
    wait_and_check_callers(1, "ann");
    door_agent_close(&agent);
}

static bool says_no_to_bob(const call_context *call)
{
    return !str_eq(principal_subject(call->principal), STR("bob"));
}

/* "a second subscriber of a resource is never checked" and "lists are rendered per endpoint, not
 * per caller" */
static void each_subscriber_and_each_list_is_checked(void **state)
{
    static door_client ann, bob;
    door_place at = {.name = "gateway", .port = rig.port};
    (void)state;
    watch_begin(says_no_to_bob);
    door_client_open(&ann, DOOR_SSE, &at, MCP_REV_2025_11_25, "ann", "{}");
    door_client_open(&bob, DOOR_SSE, &at, MCP_REV_2025_11_25, "bob", "{}");
    assert_non_null(strstr(
        door_client_ask(&ann, MCP_RESOURCES_SUBSCRIBE, "f:///a", "'uri':'f:///a'"), "\"result\""));
    assert_non_null(
        strstr(door_client_ask(&bob, MCP_RESOURCES_SUBSCRIBE, "f:///a", "'uri':'f:///a'"),
               "\"patchbay/reason\":\"denied\""));
    for (int i = 0; i < 2; i++) { /* also once it was rendered for her */
        assert_non_null(strstr(door_client_ask(&ann, MCP_TOOLS_LIST, "", ""), "a.echo"));
        assert_non_null(strstr(door_client_ask(&bob, MCP_TOOLS_LIST, "", ""), "\"error\""));
        assert_null(strstr(bob.text, "a.echo"));
    }
    door_client_close(&ann);
    door_client_close(&bob);
}

/* "identify runs before health checks, public cards and webhooks" */
static void public_paths_ask_nobody_who_they_are(void **state)
{
    static const exchange open[] = {
        {"GET", "/", "", ""},
        {"GET", "/healthz", "", ""},
        {"GET", "/readyz", "", ""},
        {"GET", "/a2a/far/.well-known/agent-card.json", "", ""},
        {"GET", "/a2a/keys.json", "", ""},
        {"POST", "/a2a/far/push/x", "", "{}"},
        {"OPTIONS", "/mcp", "Origin: http://127.0.0.1\r\nAccess-Control-Request-Method: POST\r\n",
         ""},
        {"GET", "/nothing", "", ""},
    };
    static const exchange asked[] = {
        {"POST", "/mcp", "", "{}"},      {"GET", "/mcp", "", ""},
        {"DELETE", "/mcp", "", ""},      {"GET", "/sse", "", ""},
        {"POST", "/messages", "", "{}"}, {"POST", "/a2a/far", "", "{}"},
        {"POST", "/a2a/none", "", "{}"}, {"GET", "/a2a/far/v1/tasks", "", ""},
        {"POST", "/mcp/none", "", "{}"},
    };
    static char text[STRANGER_TEXT];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(open); i++) {
        int before = atomic_load(&door_identified);
        exchange_run(rig.port, "mallory", &open[i], "", text);
        assert_int_equal(atomic_load(&door_identified), before);
        assert_null(strstr(text, "HTTP/1.1 401"));
    }
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) { /* once, and nothing behind it is touched */
        watch_begin(NULL);
        int before = atomic_load(&door_identified);
        exchange_run(rig.port, "mallory", &asked[i], "", text);
        assert_int_equal(atomic_load(&door_identified), before + 1);
        assert_non_null(strstr(text, "HTTP/1.1 401"));
        assert_int_equal(watch_count(&door_seen.asked), 0);
    }
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static int open_all(void **state)
{
    static const char *const names[] = {"ann", "bob"};
    char settings[1000];
    loop *first_loop;
    (void)state;
    memset(&rig, 0, sizeof(rig));
    assert_int_equal(loop_new(&first_loop), BAY_OK); /* libuv keeps what its first loop opens */
    loop_free(first_loop);
    rig.descriptors = rig_descriptors();
    door_server_open_behind(&rig.server);
    door_agent_open_behind(&rig.agent);
    door_agent_listen(&rig.own, names, 2);
    door_agent_start(&rig.own);
    (void)snprintf(settings, sizeof(settings),
                   "{'mcpServers':{'a':{'url':'http://127.0.0.1:%u/mcp'}},'a2a':{'webhooks':["
                   "'127.0.0.1']},'agents':{'far':{'url':'http://127.0.0.1:%u'},'made':{'tools':["
                   "'a.*']}}}",
                   rig.server.port, rig.agent.port);
    door_seen.skips_lists = true;
    door_gateway_start(&rig.gateway, settings, 1);
    rig.port = gateway_port(rig.gateway.gateway);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    door_server_close(&rig.server);
    door_agent_close(&rig.agent);
    door_agent_close(&rig.own);
    rig.gateway.descriptors = rig.descriptors;
    rig_close(&rig.gateway);
    return 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_of_one_are_not_there_for_the_other),
        cmocka_unit_test(bridges_keep_the_caller_both_ways),
        cmocka_unit_test(scopes_reach_the_door),
        cmocka_unit_test(each_subscriber_and_each_list_is_checked),
        cmocka_unit_test(public_paths_ask_nobody_who_they_are),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}

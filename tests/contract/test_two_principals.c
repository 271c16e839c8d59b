/* Two principals on one endpoint of the gateway, over HTTP: what one of them has (a session, a
 * task, a cursor, a suspended call, a subscription, a call under way) never shows to the other and
 * is never moved by the other, whose answer is the same bytes and status as for an invented name.
 */
#include <openssl/opensslv.h> /* ids, cursors and states are sealed: not in a build without it */

#include "support/door_places.h"

#include "support/strangers.h"

static door_rig rig;
static uint16_t port;

#define MODERN_FIELDS(method) "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: " method "\r\n"
#define MODERN_META                                                                                \
    "'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28',"                             \
    "'io.modelcontextprotocol/clientInfo':{'name':'c','version':'1'},"                             \
    "'io.modelcontextprotocol/clientCapabilities':{'elicitation':{},'extensions':{"                \
    "'io.modelcontextprotocol/tasks':{}}}}"
#define MODERN_BODY(method, params)                                                                \
    "{'jsonrpc':'2.0','id':7,'method':'" method "','params':{" params MODERN_META "}}"
#define LEGACY_BODY(method, params)                                                                \
    "{'jsonrpc':'2.0','id':7,'method':'" method "','params':{" params "}}"
#define LEGACY_FIELDS "MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: @\r\n"

/* ---- helpers --------------------------------------------------------------------------------- */

static const char *run_as(const char *who, const exchange *of, const char *id)
{
    static char text[STRANGER_TEXT];
    exchange_run(port, who, of, id, text);
    return text;
}

/* The string behind `before`. */
static void read_id(const char *text, const char *before, char out[4096])
{
    const char *at = strstr(text, before);
    if (at == NULL) {
        fail_msg("no %s in %s", before, text);
    }
    assert_int_equal(sscanf(at + strlen(before), "%4095[^\"\r\n]", out), 1);
}

static void expect_as(const char *who, const exchange *of, const char *id, const char *part)
{
    const char *text = run_as(who, of, id);
    if (strstr(text, part) == NULL) {
        fail_msg("%s, %s: wanted %s, came %s", who, of->body, part, text);
    }
}

/* Opens a session; its id. */
static void open_session(const char *who, char out[4096])
{
    static const exchange hello = {
        "POST", "/mcp", "",
        LEGACY_BODY("initialize", "'protocolVersion':'2025-11-25','capabilities':{},'clientInfo':{"
                                  "'name':'c','version':'1'}")};
    static const exchange ready = {"POST", "/mcp", LEGACY_FIELDS,
                                   "{'jsonrpc':'2.0','method':'notifications/initialized'}"};
    read_id(run_as(who, &hello, ""), "Mcp-Session-Id: ", out);
    expect_as(who, &ready, out, "HTTP/1.1 202");
}

/* A request in a session of the caller's own. */
static exchange in_session(const char *session, const char *body)
{
    static char fields[4200];
    exchange_fill(LEGACY_FIELDS, session, fields, sizeof(fields));
    return (exchange){"POST", "/mcp", fields, body};
}

/* ---- sessions -------------------------------------------------------------------------------- */

static void a_session_is_not_there_for_another(void **state)
{
    static const exchange rows[] = {
        {"POST", "/mcp", LEGACY_FIELDS, LEGACY_BODY("ping", "")},
        {"POST", "/mcp", LEGACY_FIELDS, LEGACY_BODY("tools/list", "")},
        {"POST", "/mcp", LEGACY_FIELDS, LEGACY_BODY("tools/call", "'name':'a.echo'")},
        {"POST", "/mcp", LEGACY_FIELDS, LEGACY_BODY("resources/subscribe", "'uri':'g:///a'")},
        {"POST", "/mcp", LEGACY_FIELDS, LEGACY_BODY("initialize", "")},
        {"POST", "/mcp", LEGACY_FIELDS, "{'jsonrpc':'2.0','id':3,'result':{}}"},
        {"POST", "/mcp", LEGACY_FIELDS,
         "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':1}}"},
        {"GET", "/mcp", LEGACY_FIELDS, ""},
        {"GET", "/mcp", LEGACY_FIELDS "Last-Event-ID: 1\r\n", ""},
        {"GET", "/mcp", LEGACY_FIELDS "Last-Event-ID: 1-1\r\n", ""},
        {"DELETE", "/mcp", LEGACY_FIELDS, ""},
    };
    char session[4096];
    (void)state;
    open_session("ann", session);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_strange(port, "bob", &rows[i], session, "0-invented");
        expect_as("ann", &rows[0], session, "\"result\":{}"); /* it is still hers */
    }
    expect_as("ann", &rows[10], session, "HTTP/1.1 20");
}

/* The address that HTTP+SSE names is no key of its own. */
static void a_stream_of_2024_takes_messages_of_its_caller_alone(void **state)
{
    static door_client ann;
    static exchange row = {"POST", "/messages?sessionId=@", "", LEGACY_BODY("ping", "")};
    (void)state;
    door_client_open(&ann, DOOR_SSE, &rig.place, MCP_REV_2025_11_25, "ann", "{}");
    assert_strange(port, "bob", &row, strchr(ann.target, '=') + 1, "0-invented");
    assert_non_null(strstr(door_client_ask(&ann, MCP_TOOLS_LIST, "", ""), "a.echo"));
    door_client_close(&ann);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static void a_task_is_not_there_for_another(void **state)
{
    static const exchange begin = {"POST", "/mcp",
                                   MODERN_FIELDS("tools/call") "Mcp-Name: a.work\r\n",
                                   MODERN_BODY("tools/call", "'name':'a.work','arguments':{},")};
    static const exchange rows[] = {
        {"POST", "/mcp", MODERN_FIELDS("tasks/get") "Mcp-Name: @\r\n",
         MODERN_BODY("tasks/get", "'taskId':'@',")},
        {"POST", "/mcp", MODERN_FIELDS("tasks/update") "Mcp-Name: @\r\n",
         MODERN_BODY("tasks/update", "'taskId':'@','inputResponses':{},")},
        {"POST", "/mcp", MODERN_FIELDS("tasks/cancel") "Mcp-Name: @\r\n",
         MODERN_BODY("tasks/cancel", "'taskId':'@',")},
    };
    char task[4096];
    (void)state;
    read_id(run_as("ann", &begin, ""), "\"taskId\":\"", task);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_strange(port, "bob", &rows[i], task, "invented");
        expect_as("ann", &rows[0], task, "\"status\":\"working\"");
    }
    door_server_release(&rig.server, "done");
}

static void a_task_of_a_session_is_not_there_for_another(void **state)
{
    static const char *const bodies[] = {
        LEGACY_BODY("tasks/get", "'taskId':'@'"),
        LEGACY_BODY("tasks/result", "'taskId':'@'"),
        LEGACY_BODY("tasks/cancel", "'taskId':'@'"),
    };
    static char hers[4096], his[4096], task[4096];
    (void)state;
    open_session("ann", hers);
    open_session("bob", his);
    exchange one =
        in_session(hers, LEGACY_BODY("tools/call", "'name':'a.work','arguments':{},'task':{}"));
    read_id(run_as("ann", &one, ""), "\"taskId\":\"", task);
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        one = in_session(his, bodies[i]);
        assert_strange(port, "bob", &one, task, "invented");
        one = in_session(hers, bodies[0]);
        expect_as("ann", &one, task, "\"status\":\"working\"");
    }
    one = in_session(his, LEGACY_BODY("tasks/list", ""));
    assert_null(strstr(run_as("bob", &one, ""), task));
    one = in_session(hers, LEGACY_BODY("tasks/list", ""));
    expect_as("ann", &one, "", task);
    door_server_release(&rig.server, "done");
}

/* ---- cursors --------------------------------------------------------------------------------- */

static void a_cursor_turns_pages_for_its_caller_alone(void **state)
{
#define PAGE(method)                                                                               \
    {                                                                                              \
        {"POST", "/mcp", MODERN_FIELDS(method), MODERN_BODY(method, "")},                          \
        {                                                                                          \
            "POST", "/mcp", MODERN_FIELDS(method), MODERN_BODY(method, "'cursor':'@',")            \
        }                                                                                          \
    }
    static const exchange rows[][2] = {PAGE("tools/list"), PAGE("resources/list")};
    char cursor[4096];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        read_id(run_as("ann", &rows[i][0], ""), "\"nextCursor\":\"", cursor);
        assert_strange(port, "bob", &rows[i][1], cursor, "invented");
        expect_as("ann", &rows[i][1], cursor, "\"result\":");
    }
}

/* ---- suspended calls ------------------------------------------------------------------------- */

static void a_suspended_call_goes_on_for_its_caller_alone(void **state)
{
    static const exchange begin = {"POST", "/mcp",
                                   MODERN_FIELDS("tools/call") "Mcp-Name: a.ask\r\n",
                                   MODERN_BODY("tools/call", "'name':'a.ask','arguments':{},")};
    char body[8192], key[4096], request_state[4096];
    (void)state;
    const char *text = run_as("ann", &begin, "");
    read_id(text, "\"inputRequests\":{\"", key);
    read_id(text, "\"requestState\":\"", request_state);
    (void)snprintf(body, sizeof(body),
                   MODERN_BODY("tools/call",
                               "'name':'a.ask','arguments':{},'requestState':'@',"
                               "'inputResponses':{'%s':{'action':'accept','content':{'ok':"
                               "'hers'}}},"),
                   key);
    exchange retry = {"POST", "/mcp", begin.fields, body};
    int handled = atomic_load(&rig.server.handled);
    assert_strange(port, "bob", &retry, request_state, "invented");
    assert_int_equal(atomic_load(&rig.server.handled), handled);
    expect_as("ann", &retry, request_state, "asked <hers>");
    expect_as("ann", &retry, request_state, "was used before");
}

/* ---- subscriptions --------------------------------------------------------------------------- */

static void touch(const char *uri)
{
    static const exchange row = {
        "POST", "/mcp", MODERN_FIELDS("tools/call") "Mcp-Name: a.touch\r\n",
        MODERN_BODY("tools/call", "'name':'a.touch','arguments':{'uri':'@'},")};
    expect_as("ann", &row, uri, "touched");
}

static void hear(int fd, char *text, size_t size, const char *part)
{
    while (strstr(text, part) == NULL) {
        if (!door_receive(fd, text, size)) {
            fail_msg("wanted %s, came %s", part, text);
        }
    }
}

/* The server behind the gateway is asked for it. (Each test has URIs of its own.) */
static int watch_topic(const char *uri)
{
    atomic_store(&rig.server.topic, uri);
    return atomic_load(&rig.server.reached);
}

#define UPDATED_A "\"uri\":\"g:///a\"}"
#define UPDATED_9 "\"uri\":\"g:///9\"}"

/* What comes for him later shows that what was hers did not come before. */
static void updates_go_to_who_subscribed(void **state)
{
    static door_client ann, bob;
    (void)state;
    door_client_open(&ann, DOOR_SSE, &rig.place, MCP_REV_2025_11_25, "ann", "{}");
    door_client_open(&bob, DOOR_SSE, &rig.place, MCP_REV_2025_11_25, "bob", "{}");
    int reached = watch_topic("g:///a");
    (void)door_client_ask(&ann, MCP_RESOURCES_SUBSCRIBE, "g:///a", "'uri':'g:///a'");
    wait_until(atomic_load(&rig.server.reached) > reached);
    reached = watch_topic("g:///9");
    (void)door_client_ask(&bob, MCP_RESOURCES_SUBSCRIBE, "g:///9", "'uri':'g:///9'");
    wait_until(atomic_load(&rig.server.reached) > reached);
    (void)door_client_ask(&bob, MCP_RESOURCES_UNSUBSCRIBE, "g:///a", "'uri':'g:///a'");
    ann.line[0] = bob.line[0] = '\0';
    touch("g:///a");
    hear(ann.fd, ann.line, sizeof(ann.line), UPDATED_A);
    touch("g:///9");
    hear(bob.fd, bob.line, sizeof(bob.line), UPDATED_9);
    assert_null(strstr(bob.line, "g:///a"));
    assert_non_null(strstr(door_client_ask(&ann, MCP_TOOLS_LIST, "", ""), "a.echo"));
    assert_null(strstr(ann.text, "g:///9"));
    door_client_close(&ann);
    door_client_close(&bob);
}

static void listens_hear_what_they_asked_for(void **state)
{
    static const exchange row = {
        "POST", "/mcp", MODERN_FIELDS("subscriptions/listen"),
        MODERN_BODY("subscriptions/listen", "'notifications':{'resourceSubscriptions':['@']},")};
    static char hers[STRANGER_TEXT], his[STRANGER_TEXT];
    (void)state;
    hers[0] = his[0] = '\0';
    int reached = watch_topic("g:///hers");
    int ann = exchange_begin(port, "ann", &row, "g:///hers");
    hear(ann, hers, sizeof(hers), "acknowledged");
    wait_until(atomic_load(&rig.server.reached) > reached);
    reached = watch_topic("g:///his");
    int bob = exchange_begin(port, "bob", &row, "g:///his");
    hear(bob, his, sizeof(his), "acknowledged");
    wait_until(atomic_load(&rig.server.reached) > reached);
    touch("g:///hers");
    hear(ann, hers, sizeof(hers), "\"uri\":\"g:///hers\"");
    touch("g:///his");
    hear(bob, his, sizeof(his), "\"uri\":\"g:///his\"");
    assert_null(strstr(his, "hers"));
    assert_null(strstr(hers, "his"));
    close(ann);
    close(bob);
}

/* ---- calls under way ------------------------------------------------------------------------- */

/* Both number their requests alike: his cancellation is of none of hers. */
static void a_call_is_cancelled_by_its_caller_alone(void **state)
{
    static char hers[4096], his[4096], text[STRANGER_TEXT];
    (void)state;
    open_session("ann", hers);
    open_session("bob", his);
    int handled = atomic_load(&rig.server.handled);
    exchange one = in_session(hers, LEGACY_BODY("tools/call", "'name':'a.hold','arguments':{}"));
    int fd = exchange_begin(port, "ann", &one, "");
    wait_until(atomic_load(&rig.server.handled) == handled + 1);
    one = in_session(his, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
                          "'requestId':7}}");
    expect_as("bob", &one, "", "HTTP/1.1 202");
    door_server_release(&rig.server, "not cancelled");
    text[0] = '\0';
    hear(fd, text, sizeof(text), "not cancelled");
    close(fd);
}

/* ---- what is asked by name ------------------------------------------------------------------- */

/* What the configuration hides is no more there than what nobody ever named. */
static void what_is_hidden_is_like_an_invented_name(void **state)
{
    static const exchange rows[] = {
        {"POST", "/mcp", MODERN_FIELDS("tools/call") "Mcp-Name: @\r\n",
         MODERN_BODY("tools/call", "'name':'@','arguments':{},")},
        {"POST", "/mcp", MODERN_FIELDS("prompts/get") "Mcp-Name: @\r\n",
         MODERN_BODY("prompts/get", "'name':'@',")},
        {"POST", "/mcp", MODERN_FIELDS("resources/read") "Mcp-Name: @\r\n",
         MODERN_BODY("resources/read", "'uri':'@',")},
        {"POST", "/mcp", MODERN_FIELDS("completion/complete"),
         MODERN_BODY("completion/complete", "'ref':{'type':'ref/prompt','name':'@'},'argument':{"
                                            "'name':'x','value':'y'},")},
        {"POST", "/mcp", MODERN_FIELDS("completion/complete"),
         MODERN_BODY("completion/complete", "'ref':{'type':'ref/resource','uri':'@'},'argument':{"
                                            "'name':'x','value':'y'},")},
    };
    static const char *const hidden[] = {"a.job", "a.p", "f:///b", "a.p", "f:///b"};
    static const char *const invented[] = {"a.none", "a.none", "h:///none", "a.none", "h:///none"};
    (void)state;
    int reached = atomic_load(&rig.server.reached);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_strange(port, "bob", &rows[i], hidden[i], invented[i]);
    }
    assert_int_equal(atomic_load(&rig.server.reached), reached);
}

/* ---- all of it, on one loop and on two ------------------------------------------------------- */

static int open_with(uint32_t workers)
{
    char settings[1000];
    memset(&rig, 0, sizeof(rig));
    (void)person("ann"); /* before there are other threads */
    (void)person("bob");
    loop *first_loop;
    assert_int_equal(loop_new(&first_loop), BAY_OK); /* libuv keeps what its first loop opens */
    loop_free(first_loop);
    int descriptors = rig_descriptors();
    door_server_open_behind(&rig.server);
    (void)snprintf(settings, sizeof(settings),
                   "{'mcpServers':{'a':{'url':'http://127.0.0.1:%u/"
                   "mcp','expose':{'hide':['job','p','f:///b']}}},'limits':{'pageSize':1}}",
                   rig.server.port);
    rig.descriptors = descriptors;
    door_gateway_start(&rig.gateway, settings, workers);
    port = gateway_port(rig.gateway.gateway);
    rig.place = (door_place){.name = "gateway", .port = port};
    return 0;
}

static int open_one(void **state)
{
    (void)state;
    return open_with(1);
}

static int open_two(void **state)
{
    (void)state;
    return open_with(2);
}

static int close_all(void **state)
{
    (void)state;
    door_rig_close(&rig);
    return 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_is_not_there_for_another),
        cmocka_unit_test(a_stream_of_2024_takes_messages_of_its_caller_alone),
        cmocka_unit_test(a_task_is_not_there_for_another),
        cmocka_unit_test(a_task_of_a_session_is_not_there_for_another),
        cmocka_unit_test(a_cursor_turns_pages_for_its_caller_alone),
        cmocka_unit_test(a_suspended_call_goes_on_for_its_caller_alone),
        cmocka_unit_test(updates_go_to_who_subscribed),
        cmocka_unit_test(listens_hear_what_they_asked_for),
        cmocka_unit_test(a_call_is_cancelled_by_its_caller_alone),
        cmocka_unit_test(what_is_hidden_is_like_an_invented_name),
    };
    int failed = cmocka_run_group_tests_name("one loop", tests, open_one, close_all);
    return failed + cmocka_run_group_tests_name("two loops", tests, open_two, close_all);
}

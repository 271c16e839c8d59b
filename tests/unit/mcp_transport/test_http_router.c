/* The HTTP router: who may name it, what each path answers, and what keeps its streams alive. */
#include <malloc.h>

#include "base/mem.h"
#include "support/server_rig.h"

#define EVENT_STREAM "Accept: text/event-stream\r\n"
#define MODERN_FIELDS                                                                              \
    WIRE_JSON "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n"
#define MODERN_META                                                                                \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define MODERN_CALL                                                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"                                            \
    "call\",\"params\":{\"name\":\"echo\"," MODERN_META "}}"

static uint16_t port_of(const server_rig *self)
{
    return http_server_port(self->http);
}

/* ---- Host and Origin ------------------------------------------------------------------------- */

typedef struct guard_case {
    const char *fields;
    bool passes;
} guard_case;

static void check_guard(const rig_options *options, const guard_case *cases, size_t count)
{
    server_rig rig;
    rig_open(&rig, options, 0);
    for (size_t i = 0; i < count; i++) {
        char fields[512];
        snprintf(fields, sizeof(fields), MODERN_FIELDS "%s", cases[i].fields);
        wire_client client;
        wire_exchange(&client, rig.loop, port_of(&rig), "POST", "/mcp", fields, MODERN_CALL);
        if (client.status != (cases[i].passes ? 200 : 403)) {
            fail_msg("%d for %s", client.status, cases[i].fields);
        }
        if (!cases[i].passes) {
            assert_true(wire_body_has(&client, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600"));
            assert_false(wire_body_has(&client, "\"id\""));
            assert_false(wire_head_has(&client, "Access-Control"));
        }
        wire_close(&client);
    }
    rig_close(&rig);
}

static void a_loopback_server_takes_loopback_names_only(void **state)
{
    static const guard_case cases[] = {
        {"Host: evil.example\r\n", false},
        {"Host: evil.example:80\r\n", false},
        {"Host: localhost.evil.example\r\n", false},
        {"Host: 127.0.0.1.evil.example\r\n", false},
        {"Host: 10.0.0.1\r\n", false},
        {"Host: 0.0.0.0\r\n", false},
        {"Host: localhost\r\nOrigin: http://evil.example\r\n", false},
        {"Host: localhost\r\nOrigin: null\r\n", false},
        {"Host: localhost\r\nOrigin: http://localhost@evil.example\r\n", false},
        {"Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example\r\n", false},
        {"Host: localhost\r\nOrigin: \r\n", false},
        {"Host: localhost\r\n", true},
        {"Host: localhost:8080\r\nOrigin: http://localhost:6274\r\n", true},
        {"Host: [::1]:8080\r\nOrigin: http://[::1]:6274\r\n", true},
        {"Host: 127.0.0.2\r\nOrigin: https://127.0.0.1\r\n", true},
    };
    rig_options options = {.front.is_loopback = true};
    (void)state;
    check_guard(&options, cases, ARRAY_LEN(cases));
}

static void a_public_server_takes_its_own_origin_only(void **state)
{
    static const guard_case cases[] = {
        {"Host: mcp.example\r\nOrigin: https://evil.example\r\n", false},
        {"Host: mcp.example:8443\r\nOrigin: https://mcp.example\r\n", false},
        {"Host: mcp.example\r\nOrigin: https://mcp.example:8443\r\n", false},
        {"Host: mcp.example\r\nOrigin: null\r\n", false},
        {"Host: mcp.example\r\nOrigin: http://localhost\r\n", false},
        {"Host: mcp.example\r\n", true},
        {"Host: mcp.example\r\nOrigin: https://mcp.example\r\n", true},
        {"Host: mcp.example\r\nOrigin: http://MCP.example:80\r\n", true},
        {"Host: mcp.example:8443\r\nOrigin: https://mcp.example:8443\r\n", true},
    };
    rig_options options = {0};
    (void)state;
    check_guard(&options, cases, ARRAY_LEN(cases));
}

static void lists_allow_what_they_name(void **state)
{
    static const bay_str hosts[] = {STR_INIT("mcp.example"), STR_INIT("other.example:8443")};
    static const bay_str origins[] = {STR_INIT("https://app.example")};
    static const guard_case cases[] = {
        {"Host: localhost\r\n", false},
        {"Host: other.example\r\n", false},
        {"Host: mcp.example\r\nOrigin: http://app.example\r\n", false},
        {"Host: mcp.example\r\nOrigin: https://mcp.example\r\n", false},
        {"Host: 127.0.0.1:8930\r\n", false},
        {"Host: mcp.example\r\nOrigin: http://localhost\r\n", false},
        {"Host: mcp.example:1\r\nOrigin: https://app.example\r\n", true},
        {"Host: other.example:8443\r\nOrigin: https://app.example:443\r\n", true},
    };
    rig_options options = {.front.hosts = hosts,
                           .front.host_count = 2,
                           .front.origins = origins,
                           .front.origin_count = 1};
    (void)state;
    check_guard(&options, cases, ARRAY_LEN(cases));
    options.front.is_loopback = true; /* which adds nothing to what is named */
    check_guard(&options, cases, ARRAY_LEN(cases));
}

static void a_star_allows_all(void **state)
{
    static const bay_str any = STR_INIT("*");
    static const guard_case cases[] = {
        {"Host: anything.example\r\nOrigin: https://elsewhere.example\r\n", true},
        {"Host: anything.example\r\nOrigin: null\r\n", true},
    };
    rig_options options = {.front.hosts = &any,
                           .front.host_count = 1,
                           .front.origins = &any,
                           .front.origin_count = 1,
                           .front.is_loopback = true};
    (void)state;
    check_guard(&options, cases, ARRAY_LEN(cases));
}

/* ---- CORS ------------------------------------------------------------------------------------ */

static void a_preflight_is_for_allowed_origins(void **state)
{
    server_rig rig;
    wire_client client;
    (void)state;
    rig_open(&rig, NULL, 0);
    wire_exchange(&client, rig.loop, port_of(&rig), "OPTIONS", "/mcp",
                  "Origin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n", NULL);
    assert_int_equal(client.status, 403);
    assert_false(wire_head_has(&client, "Access-Control"));
    wire_close(&client);

    wire_exchange(&client, rig.loop, port_of(&rig), "OPTIONS", "/mcp", "", NULL);
    assert_int_equal(client.status, 204);
    assert_true(wire_head_has(&client, "Allow: GET, HEAD, POST, DELETE, OPTIONS\r\n"));
    assert_false(wire_head_has(&client, "Access-Control"));
    wire_close(&client);

    wire_exchange(&client, rig.loop, port_of(&rig), "OPTIONS", "/mcp",
                  "Origin: http://localhost:6274\r\nAccess-Control-Request-Method: POST\r\n"
                  "Access-Control-Request-Headers: content-type, mcp-param-region,x-else, "
                  "mcp-param-b@d\r\n",
                  NULL);
    assert_int_equal(client.status, 204);
    assert_true(wire_head_has(&client, "Access-Control-Allow-Origin: http://localhost:6274\r\n"));
    assert_true(wire_head_has(&client, "Access-Control-Allow-Methods: GET, HEAD, POST, DELETE"));
    static const char *const names[] = {
        "accept",        "authorization",  "content-type",
        "mcp-method",    "mcp-name",       "mcp-protocol-version",
        "last-event-id", "mcp-session-id", ", mcp-param-region\r\n"};
    const char *allowed = strstr(client.head.at, "Access-Control-Allow-Headers: ");
    assert_non_null(allowed);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_non_null(strstr(allowed, names[i]));
    }
    assert_false(wire_head_has(&client, "x-else"));
    assert_true(wire_head_has(&client, "Vary: Origin"));
    wire_close(&client);
    rig_close(&rig);
}

static void replies_carry_the_origin(void **state)
{
    server_rig rig;
    wire_client client;
    (void)state;
    rig_open(&rig, NULL, 0);
    wire_exchange(&client, rig.loop, port_of(&rig), "POST", "/mcp",
                  WIRE_JSON "Origin: http://localhost:6274\r\n", WIRE_INITIALIZE);
    assert_int_equal(client.status, 200);
    assert_true(wire_head_has(&client, "Access-Control-Allow-Origin: http://localhost:6274\r\n"));
    assert_true(wire_head_has(&client, "Access-Control-Expose-Headers: Mcp-Session-Id, "
                                       "WWW-Authenticate, DPoP-Nonce\r\n"));
    assert_true(wire_head_has(&client, "Vary: Origin\r\n"));
    wire_close(&client);
    wire_request(&client, rig.loop, port_of(&rig), "GET", "/sse",
                 EVENT_STREAM "Origin: http://localhost:6274\r\n", NULL);
    TURN_UNTIL(rig.loop, wire_pump(&client), client.status != 0);
    assert_true(wire_head_has(&client, "Access-Control-Allow-Origin: http://localhost:6274\r\n"));
    wire_close(&client);
    rig_close(&rig);
}

/* ---- HEAD ------------------------------------------------------------------------------------ */

/* The head of the reply to GET, or to HEAD with nothing behind it; without Date. */
static void head_of(server_rig *rig, const char *verb, const char *target, const char *fields,
                    buf *out)
{
    wire_client client;
    wire_request(&client, rig->loop, port_of(rig), verb, target, fields, NULL);
    TURN_UNTIL(rig->loop, wire_pump(&client), client.status != 0);
    if (strcmp(verb, "HEAD") == 0) {
        TURN_UNTIL(rig->loop, wire_pump(&client), client.is_over); /* Connection: close */
        assert_int_equal(client.got.len + 1, client.head.len);     /* which ends in NUL */
    }
    buf_init(out, 1 << 16);
    bay_str rest = buf_view(&client.head);
    while (rest.len > 0) {
        size_t end = str_find(rest, '\n');
        bay_str line = str_head(rest, end + 1);
        if (!str_starts(line, STR("Date: "))) {
            buf_str(out, line);
        }
        rest = str_from(rest, end + 1);
    }
    wire_close(&client);
}

static void head_is_get_without_content(void **state)
{
    static const struct {
        const char *target, *fields;
        bool has_session;
    } cases[] = {
        {"/mcp", EVENT_STREAM, true},  {"/mcp", EVENT_STREAM, false},
        {"/sse", EVENT_STREAM, false}, {"/mcp", "Accept: application/json\r\n", true},
        {"/messages", "", false},      {"/nowhere", "", false},
    };
    server_rig rig;
    char id[64];
    (void)state;
    rig_open(&rig, NULL, 0);
    wire_initialize(rig.loop, port_of(&rig), id);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char fields[256];
        buf head, get;
        int len = snprintf(fields, sizeof(fields), "Connection: close\r\n%s", cases[i].fields);
        if (cases[i].has_session) {
            snprintf(fields + len, sizeof(fields) - (size_t)len, "Mcp-Session-Id: %s\r\n", id);
        }
        head_of(&rig, "HEAD", cases[i].target, fields, &head);
        head_of(&rig, "GET", cases[i].target, fields, &get);
        assert_string_equal(head.at, get.at);
        buf_fini(&head);
        buf_fini(&get);
    }
    rig_close(&rig);
}

/* A session's new stream ends the one before; HEAD opens none. */
static void head_leaves_a_stream_alone(void **state)
{
    server_rig rig;
    wire_client stream;
    char id[64], fields[256];
    buf head;
    (void)state;
    rig_open(&rig, NULL, 0);
    wire_initialize(rig.loop, port_of(&rig), id);
    snprintf(fields, sizeof(fields), EVENT_STREAM "Connection: close\r\nMcp-Session-Id: %s\r\n",
             id);
    wire_request(&stream, rig.loop, port_of(&rig), "GET", "/mcp", fields, NULL);
    TURN_UNTIL(rig.loop, wire_pump(&stream), stream.status == 200);
    head_of(&rig, "HEAD", "/mcp", fields, &head);
    wire_pump(&stream);
    assert_false(stream.is_complete || stream.is_over);
    buf_fini(&head);
    head_of(&rig, "GET", "/mcp", fields, &head); /* as this does */
    TURN_UNTIL(rig.loop, wire_pump(&stream), stream.is_complete);
    buf_fini(&head);
    wire_close(&stream);
    rig_close(&rig);
}

/* ---- paths and refusals ---------------------------------------------------------------------- */

typedef struct status_case {
    const char *verb;
    const char *target;
    const char *fields;
    const char *body;
    int status;
    const char *head;
} status_case;

static void every_path_has_its_answer(void **state)
{
    static const status_case cases[] = {
        {"GET", "/nowhere", "", NULL, 404, ""},
        {"GET", "/mcp/", "", NULL, 404, ""},
        {"POST", "/mcp/none", WIRE_JSON, "{}", 404, ""},
        {"PUT", "/mcp", WIRE_JSON, "{}", 405, "Allow: GET, HEAD, POST, DELETE\r\n"},
        {"POST", "/sse", WIRE_JSON, WIRE_INITIALIZE, 405, "Allow: GET, HEAD\r\n"},
        {"GET", "/messages", "", NULL, 405, "Allow: POST\r\n"},
        {"POST", "/messages", WIRE_JSON, "{}", 404, ""},
        {"POST", "/messages?sessionId=", WIRE_JSON, "{}", 404, ""},
        {"POST", "/messages?a=b&sessionId=0-00000000000000000000000000000000", WIRE_JSON, "{}", 404,
         ""},
        {"POST", "/messages?sessionId=9-00000000000000000000000000000000", WIRE_JSON, "{}", 404,
         ""},
        {"POST", "/mcp", "Content-Type: text/plain\r\nAccept: */*\r\n", "{}", 415,
         "Content-Type: application/json\r\n"},
        {"POST", "/mcp", "Content-Type: application/json\r\nAccept: text/html\r\n", "{}", 406,
         "Content-Type: application/json\r\n"},
        {"GET", "/mcp", "Accept: application/json\r\n", NULL, 406, ""},
        {"GET", "/mcp", EVENT_STREAM, NULL, 400, ""},
        {"GET", "/mcp", EVENT_STREAM "Mcp-Session-Id: 0-00000000000000000000000000000000\r\n", NULL,
         404, ""},
        {"GET", "/mcp", EVENT_STREAM "Mcp-Session-Id: 7-00000000000000000000000000000000\r\n", NULL,
         404, ""},
        {"GET", "/healthz", "", NULL, 200, ""},
    };
    server_rig rig;
    (void)state;
    rig_open(&rig, NULL, 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const status_case *one = &cases[i];
        wire_client client;
        wire_exchange(&client, rig.loop, port_of(&rig), one->verb, one->target, one->fields,
                      one->body);
        if (client.status != one->status || !wire_head_has(&client, one->head)) {
            fail_msg("%s %s: %s", one->verb, one->target, client.head.at);
        }
        wire_close(&client);
    }
    assert_int_equal(rig.plain, 1);
    assert_int_equal(rig.service.calls, 0);
    rig_close(&rig);
}

/* Whoever gets its own request back says so, before anything is done for it. */
static void a_loop_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *fields;
        int status;
        const char *text;
    } cases[] = {
        {"Via: 1.1 me\r\n", 508, "a loop"},
        {"Via: 1.1 you, 1.1 ME (x)\r\n", 508, "a loop"},
        {"Via: 1.1 you\r\nVia: 1.1 me\r\n", 508, "a loop"},
        {"Via: 1.1 a,1.1 a,1.1 a,1.1 a,1.1 a,1.1 a\r\nVia: 1.1 a,1.1 a,1.1 a,1.1 a,1.1 a\r\n", 508,
         "too many gateways"},
        {"Via: 1.1 you (1.1 me)\r\n", 200, "result"},
        {"", 200, "result"},
    };
    rig_options options = {.front.is_loopback = true, .front.via = STR("me")};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        server_rig rig;
        char fields[512];
        wire_client client;
        rig_open(&rig, &options, 0);
        snprintf(fields, sizeof(fields), MODERN_FIELDS "%s", cases[i].fields);
        wire_exchange(&client, rig.loop, port_of(&rig), "POST", "/mcp", fields, MODERN_CALL);
        assert_int_equal(client.status, cases[i].status);
        assert_true(wire_body_has(&client, cases[i].text));
        assert_int_equal(rig.service.calls, cases[i].status == 200);
        wire_close(&client);
        rig_close(&rig);
    }
    server_rig rig;
    wire_client client;
    rig_open(&rig, &options, 0);
    wire_exchange(&client, rig.loop, port_of(&rig), "POST", "/a.B/C",
                  "Content-Type: application/grpc+proto\r\nVia: 2 me\r\n", "x");
    assert_int_equal(client.status, 200);
    assert_true(wire_head_has(&client, "grpc-status: 9\r\n"));
    wire_close(&client);
    rig_close(&rig);
    rig_open(&rig, NULL, 0); /* a server that is no gateway does not look at it */
    wire_exchange(&client, rig.loop, port_of(&rig), "POST", "/mcp", MODERN_FIELDS "Via: 1.1 me\r\n",
                  MODERN_CALL);
    assert_int_equal(client.status, 200);
    wire_close(&client);
    rig_close(&rig);
}

static void a_session_is_opened_and_deleted(void **state)
{
    server_rig rig;
    wire_client client;
    char id[64];
    char fields[256];
    (void)state;
    rig_open(&rig, NULL, 3);
    wire_initialize(rig.loop, port_of(&rig), id);
    assert_memory_equal(id, "3-", 2);
    assert_int_equal(rig.service.sessions, 1);
    snprintf(fields, sizeof(fields), WIRE_JSON "Mcp-Session-Id: %s\r\n", id);
    wire_exchange(&client, rig.loop, port_of(&rig), "DELETE", "/mcp", fields, NULL);
    assert_int_equal(client.status, 204);
    wire_close(&client);
    assert_int_equal(rig.service.sessions, 0);
    wire_exchange(&client, rig.loop, port_of(&rig), "DELETE", "/mcp", fields, NULL);
    assert_int_equal(client.status, 404);
    wire_close(&client);
    rig_close(&rig);
}

/* ---- streams --------------------------------------------------------------------------------- */

static size_t comments_in(const wire_client *client)
{
    size_t count = 0;
    for (size_t i = 0; i + 3 <= client->body.len; i++) {
        count += memcmp(client->body.at + i, ":\n\n", 3) == 0 ? 1 : 0;
    }
    return count;
}

static void quiet_streams_are_kept_alive(void **state)
{
    server_rig rig;
    wire_client streams[3];
    char id[64];
    char fields[256];
    rig_options options = {.front.is_loopback = true, .router.keep_alive_ms = 5};
    (void)state;
    rig_open(&rig, &options, 0);
    wire_initialize(rig.loop, port_of(&rig), id);
    snprintf(fields, sizeof(fields), EVENT_STREAM "Mcp-Session-Id: %s\r\n", id);
    wire_request(&streams[0], rig.loop, port_of(&rig), "GET", "/mcp", fields, NULL);
    wire_request(&streams[1], rig.loop, port_of(&rig), "GET", "/sse", EVENT_STREAM, NULL);
    wire_request(&streams[2], rig.loop, port_of(&rig), "GET", "/sse", EVENT_STREAM, NULL);
    for (size_t i = 0; i < 3; i++) {
        TURN_UNTIL(rig.loop, wire_pump(&streams[i]), comments_in(&streams[i]) >= 3);
        assert_true(wire_head_has(&streams[i], "Content-Type: text/event-stream\r\n"));
        assert_true(wire_head_has(&streams[i], "Cache-Control: no-cache, no-transform\r\n"));
        assert_true(wire_head_has(&streams[i], "X-Accel-Buffering: no\r\n"));
    }
    wire_close(&streams[0]);
    wire_close(&streams[1]);
    size_t before = comments_in(&streams[2]);
    TURN_UNTIL(rig.loop, wire_pump(&streams[2]), comments_in(&streams[2]) > before + 2);
    wire_close(&streams[2]);
    rig_close(&rig);
}

static void list_changes_reach_the_standing_stream(void **state)
{
    server_rig rig;
    wire_client stream;
    char id[64];
    char fields[256];
    (void)state;
    rig_open(&rig, NULL, 0);
    wire_initialize(rig.loop, port_of(&rig), id);
    snprintf(fields, sizeof(fields), EVENT_STREAM "Mcp-Session-Id: %s\r\n", id);
    wire_request(&stream, rig.loop, port_of(&rig), "GET", "/mcp", fields, NULL);
    TURN_UNTIL(rig.loop, wire_pump(&stream), stream.status == 200);
    mcp_server_changed(rig.service.engine, MCP_CHANGE_TOOLS);
    TURN_UNTIL(rig.loop, wire_pump(&stream),
               wire_body_has(&stream, "notifications/tools/list_changed"));
    mcp_http_router_close_streams(rig.router);
    TURN_UNTIL(rig.loop, wire_pump(&stream), stream.is_complete);
    wire_close(&stream);
    rig_close(&rig);
}

/* A call's stream breaks; the client comes back with the last id it saw and gets the rest. */
static void a_broken_stream_is_resumed(void **state)
{
    server_rig rig;
    wire_client client;
    char session[64];
    char fields[512];
    (void)state;
    rig_open(&rig, NULL, 0);
    wire_initialize(rig.loop, port_of(&rig), session);
    snprintf(fields, sizeof(fields),
             WIRE_JSON "MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: %s\r\n", session);
    wire_request(&client, rig.loop, port_of(&rig), "POST", "/mcp", fields,
                 "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{\"name\":"
                 "\"hold\",\"_meta\":{\"progressToken\":1}}}");
    TURN_UNTIL(rig.loop, wire_pump(&client), rig.service.held_count == 1);
    assert_int_equal(mcp_request_progress(rig.service.held[0], 1, STR("\"progress\":1")), BAY_OK);
    sse_block block = {0};
    char last[32] = "";
    TURN_UNTIL(rig.loop, wire_pump(&client), wire_event(&client, &block) && block.data.len > 0);
    snprintf(last, sizeof(last), "%.*s", BAY_STR(block.id));
    assert_true(last[0] != '\0');
    wire_close(&client);
    TURN_UNTIL(rig.loop, (void)0, http_server_connections(rig.http) == 0);
    assert_int_equal(rig.service.cancelled, 0);
    assert_int_equal(mcp_request_progress(rig.service.held[0], 2, STR("\"progress\":2")), BAY_OK);
    service_finish(&rig.service);

    snprintf(fields, sizeof(fields), EVENT_STREAM "Mcp-Session-Id: %s\r\nLast-Event-ID: %s\r\n",
             session, last);
    wire_exchange(&client, rig.loop, port_of(&rig), "GET", "/mcp", fields, NULL);
    assert_int_equal(client.status, 200);
    assert_false(wire_body_has(&client, "\"progress\":1"));
    assert_true(wire_body_has(&client, "\"progress\":2"));
    assert_true(wire_body_has(&client, "was held"));
    wire_close(&client);
    rig_close(&rig);
}

/* An engine may go while its clients are connected: each hears the end of it. */
static void an_engine_may_go_first(void **state)
{
    server_rig rig;
    wire_client held;
    wire_client stream;
    (void)state;
    rig_open(&rig, NULL, 0);
    wire_request(&stream, rig.loop, port_of(&rig), "GET", "/sse", EVENT_STREAM, NULL);
    TURN_UNTIL(rig.loop, wire_pump(&stream), stream.status == 200);
    wire_request(&held, rig.loop, port_of(&rig), "POST", "/mcp",
                 WIRE_JSON "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                           "Mcp-Name: hold\r\n",
                 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
                 "\"hold\"," MODERN_META "}}");
    TURN_UNTIL(rig.loop, wire_pump(&held), rig.service.held_count == 1);
    mcp_server_free(rig.service.engine);
    rig.service.engine = NULL;
    TURN_UNTIL(rig.loop, wire_pump(&stream), stream.is_complete);
    TURN_UNTIL(rig.loop, wire_pump(&held), held.is_complete);
    assert_int_equal(held.status, 200); /* 503 would have it sent again */
    assert_true(wire_body_has(&held, "\"data\":{\"patchbay/mayHaveRun\":true}"));
    wire_close(&held);
    wire_close(&stream);
    wire_exchange(&held, rig.loop, port_of(&rig), "GET", "/mcp", EVENT_STREAM, NULL);
    assert_int_equal(held.status, 404);
    wire_close(&held);
    rig_close(&rig);
}

static void a_server_may_be_freed_with_everything_open(void **state)
{
    server_rig rig;
    wire_client streams[2];
    wire_client held;
    char id[64];
    char fields[256];
    (void)state;
    rig_open(&rig, NULL, 0);
    wire_initialize(rig.loop, port_of(&rig), id);
    snprintf(fields, sizeof(fields), WIRE_JSON "Mcp-Session-Id: %s\r\n", id);
    wire_request(&streams[0], rig.loop, port_of(&rig), "GET", "/mcp", fields, NULL);
    wire_request(&streams[1], rig.loop, port_of(&rig), "GET", "/sse", EVENT_STREAM, NULL);
    wire_request(&held, rig.loop, port_of(&rig), "POST", "/mcp", fields,
                 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
                 "\"hold\"}}");
    TURN_UNTIL(rig.loop, (wire_pump(&streams[0]), wire_pump(&streams[1])),
               rig.service.held_count == 1 && streams[0].status == 200 && streams[1].status == 200);
    rig_close(&rig);
    wire_close(&streams[0]);
    wire_close(&streams[1]);
    wire_close(&held);
}

/* ---- what a call costs ----------------------------------------------------------------------- */

static size_t allocations;
static size_t live_bytes;

static void *counting_alloc(size_t bytes, void *user)
{
    void *fresh = malloc(bytes);
    (void)user;
    allocations++;
    live_bytes += fresh != NULL ? malloc_usable_size(fresh) : 0;
    return fresh;
}

static void *counting_resize(void *old, size_t bytes, void *user)
{
    (void)user;
    allocations++;
    live_bytes -= old != NULL ? malloc_usable_size(old) : 0;
    void *moved = realloc(old, bytes);
    live_bytes += moved != NULL ? malloc_usable_size(moved) : 0;
    return moved;
}

static void counting_release(void *old, void *user)
{
    (void)user;
    live_bytes -= old != NULL ? malloc_usable_size(old) : 0;
    free(old);
}

static void a_warm_call_allocates_nothing(void **state)
{
    server_rig rig;
    wire_client client;
    char text[1024];
    (void)state;
    rig_open(&rig, NULL, 0);
    wire_open(&client, port_of(&rig));
    snprintf(text, sizeof(text),
             "POST /mcp HTTP/1.1\r\nHost: localhost\r\n" MODERN_FIELDS
             "Content-Length: %zu\r\n\r\n%s",
             strlen(MODERN_CALL), MODERN_CALL);
    for (int i = 0; i < 10; i++) {
        if (i == 5) {
            allocations = 0;
        }
        wire_send(&client, rig.loop, text, strlen(text));
        int calls = i + 1;
        size_t had = client.got.len;
        TURN_UNTIL(rig.loop, (void)0, rig.service.calls == calls);
        size_t spent = allocations; /* the client's own buffers are none of the server's */
        TURN_UNTIL(rig.loop, wire_pump(&client), client.got.len > had);
        allocations = spent;
    }
    assert_int_equal(allocations, 0);
    wire_close(&client);
    rig_close(&rig);
}

/* What a legacy client costs that is connected, listens, and says nothing. */
static void an_idle_session_is_small(void **state)
{
    enum { SESSIONS = 64, MOST_BYTES = 3 * 1024 };
    static wire_client streams[SESSIONS];
    server_rig rig;
    char id[64];
    char fields[256];
    char byte;
    size_t before = 0;
    (void)state;
    rig_open(&rig, NULL, 0);
    for (size_t i = 0; i < SESSIONS; i++) {
        wire_initialize(rig.loop, port_of(&rig), id);
        TURN_UNTIL(rig.loop, (void)0, http_server_connections(rig.http) == i);
        snprintf(fields, sizeof(fields), EVENT_STREAM "Mcp-Session-Id: %s\r\n", id);
        wire_request(&streams[i], rig.loop, port_of(&rig), "GET", "/mcp", fields, NULL);
        TURN_UNTIL(rig.loop, (void)0, recv(streams[i].fd, &byte, 1, MSG_PEEK) == 1);
        before = i == 0 ? live_bytes : before; /* what the server needs once */
    }
    size_t each = (live_bytes - before) / (SESSIONS - 1);
    print_message("an idle legacy session with its stream: %zu bytes of heap\n", each);
    assert_in_range(each, 500, MOST_BYTES);
    for (size_t i = 0; i < SESSIONS; i++) {
        wire_close(&streams[i]);
    }
    rig_close(&rig);
}

int main(void)
{
    static const mem_hooks counting = {
        .alloc = counting_alloc, .resize = counting_resize, .release = counting_release};
    mem_set_hooks(&counting);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loopback_server_takes_loopback_names_only),
        cmocka_unit_test(a_public_server_takes_its_own_origin_only),
        cmocka_unit_test(lists_allow_what_they_name),
        cmocka_unit_test(a_star_allows_all),
        cmocka_unit_test(a_preflight_is_for_allowed_origins),
        cmocka_unit_test(replies_carry_the_origin),
        cmocka_unit_test(head_is_get_without_content),
        cmocka_unit_test(head_leaves_a_stream_alone),
        cmocka_unit_test(every_path_has_its_answer),
        cmocka_unit_test(a_loop_is_refused),
        cmocka_unit_test(a_session_is_opened_and_deleted),
        cmocka_unit_test(quiet_streams_are_kept_alive),
        cmocka_unit_test(list_changes_reach_the_standing_stream),
        cmocka_unit_test(a_broken_stream_is_resumed),
        cmocka_unit_test(an_engine_may_go_first),
        cmocka_unit_test(a_server_may_be_freed_with_everything_open),
        cmocka_unit_test(a_warm_call_allocates_nothing),
        cmocka_unit_test(an_idle_session_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

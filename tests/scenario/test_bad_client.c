/* Clients that break the rules, in front of a real gateway over real sockets: each gets the error
 * or the status that its specification names, and a well-behaved client is served meanwhile. */
#include "support/gateway_rig.h"

#define SETTINGS                                                                                   \
    "{'limits':{'bodyTimeout':'400ms','bodyTotal':'2s','headTimeout':'400ms',"                     \
    "'writeTimeout':'1s','streamBytes':'64K','bodyBytes':'1M'},"                                   \
    "'timeouts':{'drain':'300ms','terminate':'200ms','kill':'200ms'},"                             \
    "'mcpServers':{" RIG_SERVER("a", "stdio", "good", "") "}}"

static void start(gateway_rig *self)
{
    rig_open(self, SETTINGS, 2);
    wait_until(atomic_load(&self->started) == 1);
}

/* A well-behaved client, right now. */
static void others_are_served(const gateway_rig *self)
{
    expect_call(self, "a.echo", "\"good\"");
}

static void finish(gateway_rig *self)
{
    others_are_served(self);
    rig_close(self);
}

#define LEGACY_FIELDS ""

/* Posts `body`, wants the status and a part of the reply. */
static void expect_post(const gateway_rig *to, const char *fields, const char *body, int status,
                        const char *part)
{
    client one;
    client_open(&one, to);
    client_post(&one, "/mcp", fields, body);
    int got = client_reply(&one);
    if (got != status || client_find(&one, part) == NULL) {
        print_error("%.200s\nwanted %d %s\ncame: %.*s\n", body, status, part, (int)one.got.len,
                    one.got.at);
    }
    assert_int_equal(got, status);
    assert_non_null(client_find(&one, part));
    client_close(&one);
    others_are_served(to);
}

/* Sends bytes; wants that status and that the connection is closed after it. */
static void expect_bytes(const gateway_rig *to, const char *bytes, int status)
{
    client one;
    client_open(&one, to);
    (void)client_send(&one, bytes);
    int got = client_status(&one);
    if (got != status) {
        print_error("%.300s\nwanted %d, came: %.*s\n", bytes, status, (int)one.got.len, one.got.at);
    }
    assert_int_equal(got, status);
    while (client_read(&one)) {
    }
    assert_null(client_find(&one, "\"good\"")); /* what was smuggled along was not carried out */
    int replies = 0;
    for (size_t i = 0; i + 9 <= one.got.len; i++) {
        replies += memcmp(one.got.at + i, "HTTP/1.1 ", 9) == 0;
    }
    assert_int_equal(replies, 1);
    client_close(&one);
    others_are_served(to);
}

static void messages_that_are_no_json(void **state)
{
    (void)state;
    gateway_rig self;
    start(&self);
    static const char *const bad[] = {"",
                                      " ",
                                      "{",
                                      "}",
                                      "nonsense",
                                      "{'jsonrpc':'2.0',}",
                                      "'x",
                                      "{'a' 1}",
                                      "\xff\xfe",
                                      "{'jsonrpc':'2.0','id':1,'method':'\xc3\x28'}",
                                      "[1,2",
                                      "01",
                                      "{'jsonrpc':'2.0','id':1,'method':'ping'} x"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        expect_post(&self, LEGACY_FIELDS, bad[i], 400, "\"code\":-32700");
    }
    finish(&self);
}

static void messages_that_are_no_requests(void **state)
{
    (void)state;
    gateway_rig self;
    start(&self);
    static const char *const bad[] = {
        "7",
        "null",
        "'text'",
        "{}",
        "[]",
        "{'jsonrpc':'1.0','id':1,'method':'ping'}",
        "{'id':1,'method':'ping'}",
        "{'jsonrpc':'2.0','id':null,'method':'ping'}",
        "{'jsonrpc':'2.0','id':{},'method':'ping'}",
        "{'jsonrpc':'2.0','id':[1],'method':'ping'}",
        "{'jsonrpc':'2.0','id':true,'method':'ping'}",
        "{'jsonrpc':'2.0','id':1,'method':7}",
        "{'jsonrpc':'2.0','id':1,'method':'ping','params':[1]}",
        "{'jsonrpc':'2.0','id':1,'method':'ping','params':'x'}",
        "{'jsonrpc':'2.0','id':1,'id':2,'method':'ping'}",
        "{'jsonrpc':'2.0','id':1,'method':'ping','method':'tools/list'}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        expect_post(&self, LEGACY_FIELDS, bad[i], 400, "\"code\":-32600");
    }
    finish(&self);
}

static void methods_that_are_unknown(void **state)
{
    (void)state;
    gateway_rig self;
    start(&self);
    expect_post(&self, "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: no/such\r\n",
                "{'jsonrpc':'2.0','id':'q','method':'no/such','params':{" RIG_META "}}}", 404,
                "\"id\":\"q\",\"error\":{\"code\":-32601");
    expect_post(&self, "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n",
                "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'x'," RIG_META
                "}}}",
                400, "\"code\":-32020");
    expect_post(&self, "MCP-Protocol-Version: 2099-01-01\r\n",
                "{'jsonrpc':'2.0','id':1,'method':'tools/list','params':{'_meta':{"
                "'io.modelcontextprotocol/protocolVersion':'2099-01-01',"
                "'io.modelcontextprotocol/clientCapabilities':{}}}}",
                400, "\"code\":-32022");
    finish(&self);
}

static void a_hundred_thousand_brackets(void **state)
{
    (void)state;
    enum { BRACKETS = 100000 };
    gateway_rig self;
    char *body = malloc(2 * BRACKETS + 200);
    assert_non_null(body);
    start(&self);
    memset(body, '[', BRACKETS);
    body[BRACKETS] = '\0';
    expect_post(&self, LEGACY_FIELDS, body, 400, "\"error\":{\"code\":-32");
    int len = snprintf(body, 100, "{'jsonrpc':'2.0','id':1,'method':'ping','params':{'x':");
    memset(body + len, '[', BRACKETS);
    memset(body + len + BRACKETS / 2, ']', BRACKETS / 2);
    memcpy(body + len + BRACKETS, "}}", 3);
    expect_post(&self, LEGACY_FIELDS, body, 400, "\"error\":{\"code\":-32");
    free(body);
    finish(&self);
}

#define POST_HEAD                                                                                  \
    "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"                  \
    "Accept: application/json, text/event-stream\r\n"
#define SMUGGLED "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}"

static void bodies_without_measure(void **state)
{
    (void)state;
    gateway_rig self;
    start(&self);
    expect_bytes(&self, POST_HEAD "Content-Length: 1073741824\r\n\r\n{", 413);
    expect_bytes(&self, POST_HEAD "Content-Length: 100\r\n\r\n{\"jsonrpc\":", 408);
    expect_bytes(&self, POST_HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"jso\r\n", 408);
    expect_bytes(&self, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Ty", 408);

    client one; /* it sends on and on, and never ends */
    client_open(&one, &self);
    assert_true(client_send(&one, POST_HEAD "Transfer-Encoding: chunked\r\n\r\n"));
    static char chunk[4096 + 8];
    (void)snprintf(chunk, 7, "1000\r\n");
    memset(chunk + 6, ' ', 4096);
    memcpy(chunk + 6 + 4096, "\r\n", 2);
    for (int i = 0; i < 4096 && client_send_bytes(&one, chunk, 6 + 4096 + 2); i++) {
    }
    int status = client_status(&one);
    assert_true(status == 413 || (status == 0 && one.is_over)); /* a reset may swallow the reply */
    while (client_read(&one)) {
    }
    client_close(&one);
    finish(&self);
}

static void heads_without_measure(void **state)
{
    (void)state;
    enum { FIELDS = 5000 };
    gateway_rig self;
    buf head;
    start(&self);
    buf_init(&head, 1 << 20);
    buf_lit(&head, "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n");
    for (int i = 0; i < FIELDS; i++) {
        buf_printf(&head, "X-%d: x\r\n", i);
    }
    buf_append(&head, "\r\n", 3);
    expect_bytes(&self, head.at, 431);
    buf_clear(&head);
    buf_lit(&head, "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ");
    for (int i = 0; i < 70000; i++) {
        buf_char(&head, 'x');
    }
    buf_append(&head, "\r\n\r\n", 5);
    expect_bytes(&self, head.at, 431);
    buf_fini(&head);
    finish(&self);
}

static void requests_that_two_readers_read_differently(void **state)
{
    (void)state;
    static const char *const bad[] = {
        POST_HEAD "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED,
        POST_HEAD "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}" SMUGGLED,
        POST_HEAD "Content-Length: 2, 3\r\n\r\n{}" SMUGGLED,
        POST_HEAD "Content-Length: +2\r\n\r\n{}" SMUGGLED,
        POST_HEAD "Content-Length: -2\r\n\r\n{}" SMUGGLED,
        POST_HEAD "Content-Length: 0x2\r\n\r\n{}" SMUGGLED,
        POST_HEAD "Content-Length: 18446744073709551618\r\n\r\n{}" SMUGGLED,
        POST_HEAD "Content-Length : 2\r\n\r\n{}" SMUGGLED,
        POST_HEAD " Content-Length: 2\r\n\r\n{}" SMUGGLED,
        POST_HEAD "X: 1\r\n Content-Length: 2\r\n\r\n{}" SMUGGLED,
        POST_HEAD "X: 1\nContent-Length: 2\r\n\r\n{}" SMUGGLED,
        POST_HEAD "X: 1\rContent-Length: 2\r\n\r\n{}" SMUGGLED,
        POST_HEAD
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" SMUGGLED,
        POST_HEAD "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" SMUGGLED,
        POST_HEAD "Transfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n" SMUGGLED,
        POST_HEAD "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}\r\n0\r\n\r\n" SMUGGLED,
        POST_HEAD "Transfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n" SMUGGLED,
        POST_HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\n{}x\r\n0\r\n\r\n" SMUGGLED,
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil\r\nContent-Length: "
        "2\r\n\r\n{}" SMUGGLED,
        "POST /mcp HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}" SMUGGLED,
        "POST  /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}" SMUGGLED,
        "POST /mcp HTTP/1.1 \r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}" SMUGGLED,
    };
    gateway_rig self;
    start(&self);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        client one;
        client_open(&one, &self);
        (void)client_send(&one, bad[i]);
        int got = client_status(&one);
        if (got != 400 && got != 413 && got != 501) {
            print_error("case %zu: %s\ncame: %.*s\n", i, bad[i], (int)one.got.len, one.got.at);
        }
        assert_true(got == 400 || got == 413 || got == 501);
        client_close(&one);
        expect_bytes(&self, bad[i], got);
    }
    finish(&self);
}

static void foreign_hosts_and_origins(void **state)
{
    (void)state;
    gateway_rig self;
    start(&self);
    client one;
    static const char *const heads[] = {
        "POST /mcp HTTP/1.1\r\nHost: evil.example\r\n",
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n",
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n",
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n",
        "GET /readyz HTTP/1.1\r\nHost: evil.example\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        client_open(&one, &self);
        (void)client_send(&one, heads[i]);
        (void)client_send(&one, "Content-Type: application/json\r\nAccept: application/json, "
                                "text/event-stream\r\nContent-Length: 2\r\n\r\n{}");
        if (client_status(&one) != 403) {
            print_error("%s came: %.*s\n", heads[i], (int)one.got.len, one.got.at);
        }
        assert_int_equal(client_status(&one), 403);
        client_close(&one);
    }
    finish(&self);
}

static void a_client_that_leaves_during_its_call(void **state)
{
    (void)state;
    gateway_rig self;
    client one;
    start(&self);
    client_open(&one, &self);
    client_call(&one, "a.hang");
    wait_until(rig_log_count("hanging") == 1);
    client_close(&one);
    wait_until(rig_log_count("cancelled") >= 1); /* the server hears of it */
    finish(&self);
}

static void a_half_closed_socket(void **state)
{
    (void)state;
    gateway_rig self;
    client one;
    start(&self);
    client_open(&one, &self);
    client_call(&one, "a.echo");
    assert_int_equal(shutdown(one.fd, SHUT_WR), 0);
    /* an end of input counts as a client that leaves: answered in time, told so, or just closed,
     * but never left hanging */
    int status = client_reply(&one);
    assert_true(status == 200 || status == 400 || (status == 0 && one.is_over));
    while (client_read(&one)) {
    }
    client_close(&one);
    finish(&self);
}

static void a_slow_reader_of_much(void **state)
{
    (void)state;
    enum { CALLS = 12 };
    gateway_rig self;
    client slow[CALLS];
    start(&self);
    for (int i = 0; i < CALLS; i++) {
        client_open(&slow[i], &self);
        client_call(&slow[i], "a.big"); /* 3 MiB, of which it reads nothing */
    }
    wait_until(rig_tally(&self) >= CALLS);
    for (int i = 0; i < 5; i++) {
        others_are_served(&self);
    }
    client one; /* and one that reads: it gets all of it */
    client_open(&one, &self);
    client_call(&one, "a.big");
    assert_int_equal(client_reply(&one), 200);
    assert_true(one.got.len > 3 << 20);
    client_close(&one);
    for (int i = 0; i < CALLS; i++) {
        client_close(&slow[i]);
    }
    finish(&self);
}

static void one_id_twice_at_once(void **state)
{
    (void)state;
    gateway_rig self;
    client first;
    client second;
    start(&self);
    client_open(&first, &self);
    client_open(&second, &self);
    client_call(&first, "a.echo"); /* both have the id 1, and nothing to do with each other */
    client_call(&second, "a.echo");
    assert_int_equal(client_reply(&first), 200);
    assert_int_equal(client_reply(&second), 200);
    assert_non_null(client_find(&first, "\"good\""));
    assert_non_null(client_find(&second, "\"good\""));
    client_close(&first);
    client_close(&second);
    finish(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_that_are_no_json),
        cmocka_unit_test(messages_that_are_no_requests),
        cmocka_unit_test(methods_that_are_unknown),
        cmocka_unit_test(a_hundred_thousand_brackets),
        cmocka_unit_test(bodies_without_measure),
        cmocka_unit_test(heads_without_measure),
        cmocka_unit_test(requests_that_two_readers_read_differently),
        cmocka_unit_test(foreign_hosts_and_origins),
        cmocka_unit_test(a_client_that_leaves_during_its_call),
        cmocka_unit_test(a_half_closed_socket),
        cmocka_unit_test(a_slow_reader_of_much),
        cmocka_unit_test(one_id_twice_at_once),
    };
    loop *warm = NULL; /* what libuv opens once is open before anything is counted */
    if (loop_new(&warm) != BAY_OK) {
        return 1;
    }
    loop_free(warm);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Metrics of a running gateway: what all its loops have counted, under names of the catalog alone, at
 * an address that shows nothing else and that no page of another origin reads. */
#include "support/gateway_rig.h"

static gateway_rig rig;

/* What GET of `path` with these fields answers, with its head; the status before it. */
static int fetch(const char *path, const char *fields, buf *out)
{
    char text[400];
    client one = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(gateway_metrics_port(rig.gateway)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    buf_init(&one.got, RIG_REPLY);
    assert_true(one.fd >= 0);
    assert_int_equal(connect(one.fd, (struct sockaddr *)&at, sizeof(at)), 0);
    (void)snprintf(text, sizeof(text), "%s HTTP/1.1\r\n%s\r\n", path, fields);
    assert_true(client_send(&one, text));
    int status = client_reply(&one);
    buf_init(out, RIG_REPLY);
    buf_str(out, buf_view(&one.got));
    buf_char(out, '\0');
    client_close(&one);
    return status;
}

#define HOST "Host: 127.0.0.1\r\n"

static bool is_shown(const char *line)
{
    buf text;
    assert_int_equal(fetch("GET /metrics", HOST, &text), 200);
    bool is_there = strstr(text.at, line) != NULL;
    buf_fini(&text);
    return is_there;
}

static void open_rig(void)
{
    rig_open(&rig,
             "{'timeouts':{'drain':100},'metrics':{'enabled':true,'listen':'127.0.0.1:0'},"
             "'mcpServers':{" RIG_SERVER("s", "stdio", "good", "") "}}",
             2);
    wait_until(atomic_load(&rig.started) == 1);
}

static void pages_and_other_paths_are_refused(void **state)
{
    static const struct {
        const char *request;
        const char *fields;
        int status;
    } cases[] = {
        {"GET /metrics", "Host: evil.example\r\n", 421},
        {"GET /metrics", HOST "Origin: http://127.0.0.1\r\n", 403},
        {"GET /metrics", HOST "Sec-Fetch-Site: cross-site\r\n", 403},
        {"POST /metrics", HOST "Content-Length: 0\r\n", 405},
        {"GET /v1/status", HOST, 404},
        {"GET /mcp", HOST, 404},
    };
    (void)state;
    open_rig();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        buf text;
        assert_int_equal(fetch(cases[i].request, cases[i].fields, &text), cases[i].status);
        assert_null(strstr(text.at, "patchbay_build"));
        buf_fini(&text);
    }
    rig_close(&rig);
}

static void calls_of_all_loops_are_shown(void **state)
{
    enum { CALLS = 30 };
    buf text;
    (void)state;
    open_rig();
    wait_until(is_answered(&rig, "s.echo", "\"text\":\"good\""));
    for (int i = 0; i < CALLS; i++) {
        char name[32];
        expect_call(&rig, "s.echo", "\"text\":\"good\"");
        (void)snprintf(name, sizeof(name), "s.invented%d", i);
        expect_call(&rig, name, "-32602");
    }
    char line[200];
    (void)snprintf(line, sizeof(line),
                   "\npatchbay_calls_total{server=\"\",tool=\"\",method=\"tools/call\","
                   "outcome=\"error\"} %d\n",
                   CALLS);
    wait_until(is_shown(line));
    wait_until(is_shown("gen_ai_tool_name=\"s.echo\",le=\"+Inf\"} "));
    assert_false(is_shown("invented"));
    assert_int_equal(fetch("GET /metrics", HOST "Accept: application/openmetrics-text\r\n", &text),
                     200);
    assert_non_null(strstr(text.at, "Content-Type: application/openmetrics-text; version=1.0.0"));
    assert_non_null(strstr(text.at, "\n# EOF\n"));
    buf_fini(&text);
    rig_close(&rig);
}

/* Other machines would read it without a login. */
static void only_this_machine_is_listened_on(void **state)
{
    bay_diag diag = {0};
    gateway_options asked = {.workers = 1, .listen = STR("127.0.0.1:0")};
    (void)state;
    assert_int_not_equal(rig_make(&rig,
                                  "{'metrics':{'enabled':true,'listen':'0.0.0.0:0'},"
                                  "'mcpServers':{}}",
                                  &asked, &diag),
                         BAY_OK);
    assert_non_null(strstr(diag.text, "metrics.listen: "));
}

/* The first loop of a process makes descriptors that stay. */
static int make_a_loop(void **state)
{
    loop *first = NULL;
    (void)state;
    if (loop_new(&first) != BAY_OK) {
        return -1;
    }
    loop_free(first);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_and_other_paths_are_refused),
        cmocka_unit_test(only_this_machine_is_listened_on),
        cmocka_unit_test(calls_of_all_loops_are_shown),
    };
    return cmocka_run_group_tests(tests, make_a_loop, NULL);
}

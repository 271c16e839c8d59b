/* Links whose every allocation fails in turn: each call still ends, nothing hangs, all is given
 * back. */
#include "support/failing_memory.h"
#include "support/link_owner.h"
#include "support/server_rig.h"

enum { STUBS = 16 };

/* A server that needs no memory: it answers by what it finds in the request. */
typedef struct stub {
    int listener;
    uint16_t port;
    struct {
        int fd;
        size_t len;
        char got[8192];
    } at[STUBS];
} stub;

static void stub_open(stub *self)
{
    memset(self, 0, sizeof(*self));
    self->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t len = sizeof(address);
    assert_int_equal(bind(self->listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(self->listener, 64), 0);
    assert_int_equal(getsockname(self->listener, (struct sockaddr *)&address, &len), 0);
    self->port = ntohs(address.sin_port);
}

static void stub_hang_up(stub *self, int i)
{
    if (self->at[i].fd > 0) {
        close(self->at[i].fd);
    }
    self->at[i].fd = 0;
    self->at[i].len = 0;
}

static void stub_answer(int fd, const char *request)
{
    char body[512] = "";
    char reply[1024];
    const char *type = "application/json";
    int status = 200;
    int id = 0;
    const char *at = strstr(request, "\"id\":");
    if (at != NULL) {
        id = (int)strtol(at + 5, NULL, 10);
    }
    if (strstr(request, "\"initialize\"") != NULL) {
        snprintf(body, sizeof(body),
                 "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"protocolVersion\":\"2025-06-18\","
                 "\"capabilities\":{},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}",
                 id);
    } else if (strstr(request, "tools/") != NULL) {
        type = "text/event-stream";
        snprintf(body, sizeof(body),
                 "id: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
                 "\"params\":{\"progressToken\":%d,\"progress\":1}}\n\n"
                 "data: {\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"content\":[]}}\n\n",
                 id, id);
    } else {
        status = strncmp(request, "POST", 4) == 0 ? 202 : 405;
    }
    int len = snprintf(reply, sizeof(reply),
                       "HTTP/1.1 %d X\r\nMcp-Session-Id: s1\r\nContent-Type: %s\r\n"
                       "Content-Length: %zu\r\n\r\n%s",
                       status, type, strlen(body), body);
    (void)!send(fd, reply, (size_t)len, MSG_NOSIGNAL);
}

static void stub_read(stub *self, int i)
{
    size_t room = sizeof(self->at[i].got) - 1 - self->at[i].len;
    ssize_t got = recv(self->at[i].fd, self->at[i].got + self->at[i].len, room, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
        stub_hang_up(self, i);
        return;
    }
    self->at[i].len += got > 0 ? (size_t)got : 0;
    self->at[i].got[self->at[i].len] = '\0';
    char *end = strstr(self->at[i].got, "\r\n\r\n");
    const char *length = strstr(self->at[i].got, "Content-Length: ");
    size_t body = length != NULL ? strtoul(length + 16, NULL, 10) : 0;
    if (end != NULL && self->at[i].len >= (size_t)(end + 4 - self->at[i].got) + body) {
        stub_answer(self->at[i].fd, self->at[i].got);
        self->at[i].len = 0;
    }
}

static void stub_turn(stub *self)
{
    int fd = accept4(self->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    for (int i = 0; i < STUBS; i++) {
        if (fd >= 0 && self->at[i].fd == 0) {
            self->at[i].fd = fd;
            fd = -1;
        }
        if (self->at[i].fd > 0) {
            stub_read(self, i);
        }
    }
    assert_true(fd < 0);
}

static void stub_close(stub *self)
{
    for (int i = 0; i < STUBS; i++) {
        stub_hang_up(self, i);
    }
    close(self->listener);
}

static bool comes_back; /* the memory, a turn after it was short */

static void turn(owner *on, stub *server)
{
    (void)loop_turn(on->loop, 1);
    if (server != NULL) {
        stub_turn(server);
    }
    if (comes_back && failing_memory.has_failed) {
        failing_memory.allowed = SIZE_MAX;
    }
}

static mcp_link_options short_options(owner *on)
{
    mcp_link_options options = owner_options(on);
    options.client.call_timeout_ms = 300;
    options.client.max_total_ms = 300;
    options.client.wants_changes = true;
    return options;
}

/* One call to its end, then the polite end. True: it brought its result. */
static bool use_link(owner *on, stub *server)
{
    answer out;
    answer_init(&out, on);
    mcp_call_spec spec = {.method = STR("tools/list"), .log_level = MCP_LOG_NONE};
    spec.wants_progress = true;
    bay_err err = mcp_client_call(mcp_link_client(on->link), &spec, &answer_events, &out,
                                  loop_now_ms(on->loop), &out.call, NULL);
    int64_t until_ms = link_clock_ms() + LINK_GIVE_UP_MS;
    while (err == BAY_OK && out.dones == 0) {
        assert_true(link_clock_ms() < until_ms);
        turn(on, server);
    }
    mcp_link_close(on->link, owner_closed, on);
    while (on->closes == 0) {
        assert_true(link_clock_ms() < until_ms);
        turn(on, server);
    }
    bool has_result = out.dones == 1 && out.kind == MCP_OUTCOME_RESULT;
    answer_fini(&out);
    return has_result;
}

static void test_http(void **state)
{
    comes_back = *state != NULL;
    stub server;
    char url[64];
    bool has_result = false;
    size_t at = 0;
    stub_open(&server);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/mcp", server.port);
    for (; failing_memory_start(at); at++) {
        owner on = {0};
        http_client *http = NULL;
        bay_diag diag = {0};
        http_client_options options = {.limits = http_client_default_limits};
        http_field field = {STR("Authorization"), STR("Bearer x")};
        if (loop_new(&on.loop) == BAY_OK) {
            mcp_link_options link = short_options(&on);
            if (http_client_new(on.loop, &options, &http) == BAY_OK &&
                mcp_link_open_http(on.loop, http, str_of(url), &field, 1, false, &link, &on.link,
                                   &diag) == BAY_OK) {
                has_result = use_link(&on, &server);
                owner_free(&on);
            }
            http_client_free(http);
            loop_free(on.loop);
        }
        for (int i = 0; i < STUBS; i++) {
            stub_hang_up(&server, i);
        }
        assert_int_equal(on.late, 0);
        failing_memory_check();
    }
    assert_true(has_result); /* with all the memory it wants */
    assert_true(at > 20);
    stub_close(&server);
}

static void test_local(void **state)
{
    comes_back = *state != NULL;
    size_t at = 0;
    bool has_result = false;
    for (; failing_memory_start(at); at++) {
        owner on = {0};
        test_service service = {0};
        mcp_server_options options = {.name = STR("test"),
                                      .version = STR("1"),
                                      .oldest = MCP_REV_2024_11_05,
                                      .newest = MCP_LATEST};
        if (loop_new(&on.loop) == BAY_OK) {
            mcp_link_options link = short_options(&on);
            if (mcp_server_new(&options, &test_service_table, &service, &service.engine) ==
                    BAY_OK &&
                mcp_link_open_local(on.loop, service.engine, &link, &on.link) == BAY_OK) {
                has_result = use_link(&on, NULL);
                owner_free(&on);
            }
            if (service.engine != NULL) {
                mcp_server_free(service.engine);
            }
            loop_free(on.loop);
        }
        assert_int_equal(on.late, 0);
        failing_memory_check();
    }
    assert_true(has_result);
    assert_true(at > 20);
}

static void test_stdio(void **state)
{
    comes_back = *state != NULL;
    const char *argv[] = {"/bin/cat", NULL}; /* it answers with what is no answer */
    const char *env[] = {"PATH=/bin", NULL};
    size_t at = 0;
    for (; failing_memory_start(at); at++) {
        owner on = {0};
        bay_diag diag = {0};
        sandbox_options held = {.bubblewrap = SANDBOX_BUBBLEWRAP_NEVER, .is_best_effort = true};
        process_options child = {.argv = argv, .env = env, .cwd = "/", .sandbox = &held};
        if (loop_new(&on.loop) == BAY_OK) {
            mcp_link_options link = short_options(&on);
            link.client.call_timeout_ms = link.client.max_total_ms = 20;
            if (mcp_link_open_stdio(on.loop, &child, STR("cat"), &link, &on.link, &diag) ==
                BAY_OK) {
                assert_false(use_link(&on, NULL));
                owner_free(&on);
            }
            loop_free(on.loop);
        }
        assert_int_equal(on.late, 0);
        failing_memory_check();
    }
    assert_true(at > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_http),  cmocka_unit_test_prestate(test_http, &comes_back),
        cmocka_unit_test(test_local), cmocka_unit_test_prestate(test_local, &comes_back),
        cmocka_unit_test(test_stdio), cmocka_unit_test_prestate(test_stdio, &comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Every allocation fails in turn, and all after it: two routers, a session on the far one, calls
 * and streams through the near one. Whatever happens, every exchange ends, nothing leaks, and what
 * the service was given it finishes once. Both loops run on one thread here, by turns. */
#include <poll.h>

#include "support/failing_memory.h"
#include "support/server_rig.h"

enum { GOT_BYTES = 64 * 1024, ENOUGH_TURNS = 5000 };

typedef struct both {
    server_rig rigs[2];
    bool is_up;
} both;

static void turn(both *self)
{
    (void)loop_turn(self->rigs[0].loop, 0);
    (void)loop_turn(self->rigs[1].loop, 0);
}

static bay_err try_open(server_rig *self, uint32_t worker)
{
    mcp_server_options engine = {.name = STR("test"),
                                 .version = STR("1"),
                                 .oldest = MCP_REV_2024_11_05,
                                 .newest = MCP_LATEST,
                                 .worker = worker};
    bay_err err = loop_new(&self->loop);
    if (err == BAY_OK) {
        err = mcp_server_new(&engine, &test_service_table, &self->service, &self->service.engine);
    }
    return err != BAY_OK ? err : rig_serve(self, NULL, worker);
}

/* Sends a request and reads until the server ends the connection, or says nothing for long (a
 * stream that stays open). */
static void exchange(both *self, size_t at, const char *head, const char *fields, const char *body,
                     char *got)
{
    char text[2048];
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(http_server_port(self->rigs[at].http))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    int len = snprintf(text, sizeof(text),
                       "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" WIRE_JSON
                       "%sContent-Length: %zu\r\n\r\n%s",
                       head, fields, strlen(body), body);
    assert_int_equal(send(fd, text, (size_t)len, MSG_NOSIGNAL), len);
    size_t have = 0;
    bool is_open = strncmp(head, "GET", 3) == 0;
    int turns = 0;
    for (;; turns++) {
        turn(self);
        ssize_t more = recv(fd, got + have, GOT_BYTES - 1 - have, MSG_DONTWAIT);
        have += more > 0 ? (size_t)more : 0;
        if (more == 0 || (more < 0 && errno != EAGAIN) || (is_open && have > 0)) {
            break;
        }
        /* Nothing may be left hanging, except an engine's stream that could not be opened … */
        assert_true(turns < ENOUGH_TURNS);
        if (turns > 100) {
            (void)poll(NULL, 0, 1);
        }
    }
    got[have] = '\0';
    close(fd);
    for (int i = 0; i < 4; i++) {
        turn(self);
    }
}

static void run_clients(both *self)
{
    static char got[GOT_BYTES];
    char session[64] = "";
    char fields[256];
    exchange(self, 1, "POST /mcp", "", WIRE_INITIALIZE, got);
    const char *id = strstr(got, "Mcp-Session-Id: ");
    if (id != NULL) {
        assert_int_equal(sscanf(id + 16, "%63[0-9a-f-]", session), 1);
    }
    snprintf(fields, sizeof(fields), "Mcp-Session-Id: %s\r\n", session);
    for (size_t at = 0; at < 2; at++) {
        exchange(self, at, "POST /mcp", fields,
                 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
                 "\"echo\"}}",
                 got);
        exchange(self, at, "GET /mcp", fields, "", got);
        exchange(self, at, "GET /sse", "", "", got);
        exchange(self, at, "POST /messages?sessionId=1-00000000000000000000000000000000", "", "{}",
                 got);
    }
}

static void every_exchange_ends_without_memory(void **state)
{
    (void)state;
    size_t at;
    for (at = 0; failing_memory_start(at); at++) {
        both self = {0};
        bay_err err = try_open(&self.rigs[0], 0);
        if (err == BAY_OK) {
            err = try_open(&self.rigs[1], 1);
        }
        if (err == BAY_OK) {
            mcp_http_router *routers[] = {self.rigs[0].router, self.rigs[1].router};
            mcp_http_router_set_peers(self.rigs[0].router, routers, 2);
            mcp_http_router_set_peers(self.rigs[1].router, routers, 2);
            run_clients(&self);
        }
        for (size_t i = 0; i < 2; i++) {
            http_server_free(self.rigs[i].http);
            front_free(self.rigs[i].front);
            mcp_http_router_free(self.rigs[i].router);
            mcp_server_free(self.rigs[i].service.engine);
            assert_int_equal(self.rigs[i].service.sessions, 0);
            loop_free(self.rigs[i].loop);
        }
        failing_memory_check();
    }
    assert_true(at > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_exchange_ends_without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

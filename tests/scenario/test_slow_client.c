/* A client that calls and does not read: whoever else uses the same server is served all the same,
 * and the client, cut off at its bound, comes back and hears of its call's end. The server behind
 * the gateway is this very program and has one pipe for all. */
#include <signal.h>
#include <sys/wait.h>

#include "support/server_rig.h"

enum { ID_BYTES = 256, GIVE_UP_S = 60, REPORTS = 400, REPORT_BYTES = 32 * 1024 };

/* ---- the server behind the gateway: says everything at once, and waits where nobody reads */

static void put(const char *text)
{
    size_t len = strlen(text);
    while (len > 0) {
        ssize_t done = write(STDOUT_FILENO, text, len);
        if (done <= 0) {
            _exit(1);
        }
        text += done;
        len -= (size_t)done;
    }
}

static void answer(const char *id, const char *result)
{
    char text[1024];
    (void)snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n", id,
                   result);
    put(text);
}

/* The raw value of a member; the gateway writes without white space. */
static void member(const char *line, const char *name, char out[128])
{
    const char *at = strstr(line, name);
    size_t len = 0;
    out[0] = '\0';
    if (at == NULL) {
        return;
    }
    at += strlen(name);
    len = *at == '"' ? strcspn(at + 1, "\"") + 2 : strcspn(at, ",}");
    (void)snprintf(out, 128, "%.*s", (int)len, at);
}

static void flood(const char *line)
{
    static char text[REPORT_BYTES + 256];
    char token[128];
    member(line, "\"progressToken\":", token);
    for (int i = 1; i <= REPORTS; i++) {
        int len = snprintf(text, sizeof(text),
                           "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
                           "\"progressToken\":%s,\"progress\":%d,\"message\":\"",
                           token, i);
        memset(text + len, 'f', REPORT_BYTES);
        (void)snprintf(text + len + REPORT_BYTES, 8, "\"}}\n");
        put(text);
    }
}

static int run_server(void)
{
    char *line = NULL;
    size_t size = 0;
    char id[128];
    while (getline(&line, &size, stdin) > 0) {
        member(line, "\"id\":", id);
        if (id[0] == '\0') {
            continue;
        }
        if (strstr(line, "\"initialize\"") != NULL) {
            answer(id, "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},"
                       "\"serverInfo\":{\"name\":\"flood\",\"version\":\"1\"}}");
        } else if (strstr(line, "\"tools/list\"") != NULL) {
            answer(id, "{\"tools\":[{\"name\":\"flood\",\"inputSchema\":{\"type\":\"object\"}},"
                       "{\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}]}");
        } else if (strstr(line, "\"tools/call\"") != NULL) {
            if (strstr(line, "\"flood\"") != NULL) {
                flood(line);
            }
            answer(id, "{\"content\":[{\"type\":\"text\",\"text\":\"all said\"}]}");
        } else if (strstr(line, "\"ping\"") != NULL) {
            answer(id, "{}");
        } else {
            char text[256];
            (void)snprintf(text, sizeof(text),
                           "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32601,\"message\":"
                           "\"Method not found\"}}\n",
                           id);
            put(text);
        }
    }
    free(line);
    return 0;
}

/* ---- the gateway */

typedef struct place {
    char config[64];
    loop *loop; /* only to wait with */
    pid_t gateway;
    int say;
    uint16_t port;
} place;

static void open_place(place *self)
{
    char own[1024];
    char text[4096] = "";
    size_t len = 0;
    int ends[2];
    *self = (place){0};
    ssize_t got = readlink("/proc/self/exe", own, sizeof(own) - 1);
    assert_true(got > 0);
    own[got] = '\0';
    (void)snprintf(self->config, sizeof(self->config), "/tmp/patchbay-slow-XXXXXX");
    int fd = mkstemp(self->config);
    assert_true(fd >= 0);
    dprintf(fd,
            "listen: 127.0.0.1:0\nworkers: 2\nlimits: {streamBytes: 1M, eventLogEvents: 8}\n"
            "mcpServers:\n  s:\n    command: %s\n    args: [server]\n    protocol: legacy\n",
            own);
    close(fd);
    assert_int_equal(pipe(ends), 0);
    self->gateway = fork();
    assert_true(self->gateway >= 0);
    if (self->gateway == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        alarm(GIVE_UP_S); /* whatever becomes of the test, nothing is left behind */
        execl(BAY_TEST_BINARY_DIR "/patchbay", "patchbay", "serve", "-c", self->config,
              (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    self->say = ends[0];
    const char *at = NULL;
    while (at == NULL || strstr(at, "/mcp") == NULL) {
        got = read(self->say, text + len, sizeof(text) - 1 - len);
        assert_true(got > 0);
        len += (size_t)got;
        text[len] = '\0';
        at = strstr(text, "http://127.0.0.1:");
    }
    self->port = (uint16_t)strtoul(at + 17, NULL, 10);
    assert_int_equal(loop_new(&self->loop), BAY_OK);
}

static void close_place(place *self)
{
    int status;
    assert_int_equal(kill(self->gateway, SIGTERM), 0);
    assert_int_equal(waitpid(self->gateway, &status, 0), self->gateway);
    close(self->say);
    (void)unlink(self->config);
    loop_free(self->loop);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- clients */

#define PUMP_UNTIL(self, client, condition) TURN_UNTIL((self)->loop, wire_pump(client), condition)

static void begin(place *self, char id[ID_BYTES])
{
    wire_client client;
    wire_exchange(&client, self->loop, self->port, "POST", "/mcp", WIRE_JSON, WIRE_INITIALIZE);
    const char *at = strstr(client.head.at, "Mcp-Session-Id: ");
    assert_non_null(at);
    assert_int_equal(sscanf(at + 16, "%255[0-9A-Za-z_-]", id), 1);
    wire_close(&client);
}

static void call(place *self, wire_client *out, const char *id, const char *tool)
{
    char fields[512];
    char body[512];
    (void)snprintf(fields, sizeof(fields), WIRE_JSON "Mcp-Session-Id: %s\r\n", id);
    (void)snprintf(body, sizeof(body),
                   "{\"jsonrpc\":\"2.0\",\"id\":\"one\",\"method\":\"tools/call\",\"params\":{"
                   "\"name\":\"s.%s\",\"arguments\":{},\"_meta\":{\"progressToken\":7}}}",
                   tool);
    wire_request(out, self->loop, self->port, "POST", "/mcp", fields, body);
}

static void a_slow_client_slows_itself(void **state)
{
    (void)state;
    place self;
    char slow_id[ID_BYTES];
    char other_id[ID_BYTES];
    char seen[128];
    char fields[512];
    wire_client slow;
    wire_client other;
    sse_block block;
    open_place(&self);
    begin(&self, slow_id);
    begin(&self, other_id);
    call(&self, &slow, slow_id, "flood"); /* twelve megabytes that nobody reads */
    for (int i = 0; i < 3; i++) {
        call(&self, &other, other_id, "echo");
        PUMP_UNTIL(&self, &other, other.is_complete);
        assert_int_equal(other.status, 200);
        assert_true(wire_body_has(&other, "all said"));
        wire_close(&other);
    }
    /* by now the server has said it all: what was too much for the stream has cut it */
    PUMP_UNTIL(&self, &slow, slow.is_over);
    assert_false(slow.is_complete);
    int events = 0;
    while (wire_event(&slow, &block)) {
        if (block.id.len > 0) { /* a comment or a hint has none */
            (void)snprintf(seen, sizeof(seen), "%.*s", BAY_STR(block.id));
        }
        events++;
    }
    assert_true(events > 1 && events < REPORTS);
    wire_close(&slow);
    (void)snprintf(fields, sizeof(fields),
                   "Accept: text/event-stream\r\nMcp-Session-Id: %s\r\nLast-Event-ID: %s\r\n",
                   slow_id, seen);
    wire_exchange(&slow, self.loop, self.port, "GET", "/mcp", fields, NULL);
    if (slow.status != 200) {
        print_error("%d events came, the last was %s\n", events, seen);
    }
    assert_int_equal(slow.status, 200);
    int answers = 0;
    uint64_t before = 0;
    while (wire_event(&slow, &block)) {
        uint64_t seq = 0;
        bay_str tail = str_from(block.id, str_find(block.id, '-') + 1);
        assert_true(str_uint(str_head(tail, str_find(tail, '-')), &seq));
        assert_true(seq > before); /* in order, none twice; the bounded log has the newest */
        before = seq;
        answers += memmem(block.data.at, block.data.len, "all said", 8) != NULL;
    }
    assert_int_equal(answers, 1);
    wire_close(&slow);
    close_place(&self);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "server") == 0) {
        return run_server();
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_slow_client_slows_itself)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

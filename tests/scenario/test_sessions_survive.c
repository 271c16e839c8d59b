/* The real gateway with a store, killed under a call and started again: every client of the
 * handshake revisions goes on with its session and its stream, and hears of each call exactly once.
 * The server behind it is this very program; clients are bare sockets. */
#include <openssl/opensslv.h> /* a build that cannot seal or store leaves this out */
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "patchbay/server.h"
#include "support/server_rig.h"

enum { ID_BYTES = 256, LINE_BYTES = 256, START_MS = 60000 };

#define EVENT_STREAM "Accept: text/event-stream\r\n"

/* ---- the server behind the gateway */

static void hold(bay_call *call, void *user)
{
    (void)user;
    bay_call_progress(call, 1, 3, "one");
    bay_call_progress(call, 2, 3, "two");
    (void)bay_call_defer(call); /* for ever */
}

static void echo(bay_call *call, void *user)
{
    (void)user;
    bay_call_replyf(call, "still here");
}

static int run_server(void)
{
    static const char schema[] = "{\"type\":\"object\"}";
    char name[] = "behind";
    char *arguments[] = {name, NULL};
    bay_server *server = bay_server_new("behind", "1");
    (void)bay_server_tool_schema(server, "hold", "d", schema, hold, NULL);
    (void)bay_server_tool_schema(server, "echo", "d", schema, echo, NULL);
    return bay_server_main(server, 1, arguments);
}

/* ---- the gateway: a process of its own */

typedef struct place {
    char folder[64];
    char config[128];
    char store[128];
    loop *loop; /* only to wait with */
    pid_t gateway;
    int say; /* what it tells people */
    uint16_t port;
} place;

static void write_config(const place *self, uint32_t workers, const char *more)
{
    char self_path[1024];
    ssize_t len = readlink("/proc/self/exe", self_path, sizeof(self_path) - 1);
    assert_true(len > 0);
    self_path[len] = '\0';
    FILE *file = fopen(self->config, "w");
    assert_non_null(file);
    fprintf(file,
            "listen: 127.0.0.1:0\nworkers: %u\nstore: %s\n%s\nmcpServers:\n  behind:\n    command: "
            "%s\n    args: [server]\n",
            workers, self->store, more, self_path);
    assert_int_equal(fclose(file), 0);
}

static void read_port(place *self)
{
    char text[4096] = "";
    size_t len = 0;
    const char *at = NULL;
    while (at == NULL) {
        ssize_t got = read(self->say, text + len, sizeof(text) - 1 - len);
        assert_true(got > 0);
        len += (size_t)got;
        text[len] = '\0';
        at = strstr(text, "http://127.0.0.1:");
        at = at != NULL && strstr(at, "/mcp") != NULL ? at : NULL;
    }
    self->port = (uint16_t)strtoul(at + 17, NULL, 10);
}

__attribute__((noreturn)) static void exec_gateway(const place *self)
{
    alarm(START_MS / 1000); /* whatever becomes of the test, nothing is left behind */
    execl(BAY_TEST_BINARY_DIR "/patchbay", "patchbay", "serve", "-c", self->config, (char *)NULL);
    _exit(127);
}

static void start(place *self)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    self->gateway = fork();
    assert_true(self->gateway >= 0);
    if (self->gateway == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        exec_gateway(self);
    }
    close(ends[1]);
    self->say = ends[0];
    read_port(self);
}

static void await_end(place *self, int number)
{
    int status;
    assert_int_equal(waitpid(self->gateway, &status, 0), self->gateway);
    bool is_good =
        number == SIGKILL ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    char text[4096];
    ssize_t got;
    while (!is_good && (got = read(self->say, text, sizeof(text))) > 0) {
        print_error("%.*s", (int)got, text);
    }
    close(self->say);
    assert_true(is_good);
}

static void end(place *self, int number)
{
    assert_int_equal(kill(self->gateway, number), 0);
    await_end(self, number);
}

static void reload(place *self, uint32_t workers, const char *more)
{
    char text[4096] = "";
    size_t len = 0;
    write_config(self, workers, more);
    assert_int_equal(kill(self->gateway, SIGHUP), 0);
    while (strstr(text, "the configuration was reloaded") == NULL) {
        len = len > sizeof(text) / 2 ? 0 : len;
        ssize_t got = read(self->say, text + len, sizeof(text) / 2 - 1);
        assert_true(got > 0);
        len += (size_t)got;
        text[len] = '\0';
    }
}

static void open_place(place *self)
{
    *self = (place){0};
    (void)snprintf(self->folder, sizeof(self->folder), "/tmp/patchbay-sessions-XXXXXX");
    assert_non_null(mkdtemp(self->folder));
    (void)snprintf(self->config, sizeof(self->config), "%s/patchbay.yaml", self->folder);
    (void)snprintf(self->store, sizeof(self->store), "%s/store", self->folder);
    assert_int_equal(loop_new(&self->loop), BAY_OK);
}

static void close_place(place *self)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        char path[160];
        (void)snprintf(path, sizeof(path), "%s%s", self->store, suffixes[i]);
        (void)unlink(path);
    }
    (void)unlink(self->config);
    assert_int_equal(rmdir(self->folder), 0);
    loop_free(self->loop);
}

/* ---- clients */

#define PUMP_UNTIL(self, client, condition) TURN_UNTIL((self)->loop, wire_pump(client), condition)

static void say_at(place *self, wire_client *out, const char *path, const char *id,
                   const char *verb, const char *more, const char *body)
{
    char fields[1024];
    (void)snprintf(fields, sizeof(fields), "%sMcp-Session-Id: %s\r\n%s",
                   body == NULL ? EVENT_STREAM : WIRE_JSON, id, more);
    wire_request(out, self->loop, self->port, verb, path, fields, body);
}

static void say(place *self, wire_client *out, const char *id, const char *verb, const char *more,
                const char *body)
{
    say_at(self, out, "/mcp", id, verb, more, body);
}

static void begin(place *self, const char *revision, char id[ID_BYTES])
{
    wire_client client;
    char body[512];
    (void)snprintf(body, sizeof(body),
                   "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
                   "\"protocolVersion\":\"%s\",\"capabilities\":{},\"clientInfo\":{\"name\":"
                   "\"raw\",\"version\":\"1\"}}}",
                   revision);
    wire_exchange(&client, self->loop, self->port, "POST", "/mcp", WIRE_JSON, body);
    assert_int_equal(client.status, 200);
    assert_true(wire_body_has(&client, revision));
    const char *at = strstr(client.head.at, "Mcp-Session-Id: ");
    assert_non_null(at);
    assert_int_equal(sscanf(at + 16, "%255[0-9A-Za-z_-]", id), 1);
    wire_close(&client);
    say(self, &client, id, "POST", "",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    PUMP_UNTIL(self, &client, client.is_complete);
    assert_int_equal(client.status, 202);
    wire_close(&client);
}

static int status_of(place *self, const char *path, const char *id)
{
    wire_client client;
    say_at(self, &client, path, id, "POST", "",
           "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}");
    PUMP_UNTIL(self, &client, client.is_complete);
    int status = client.status;
    wire_close(&client);
    return status;
}

/* Calls "hold" and reads its two reports; the id of the first goes to `out_id`. */
static void call_hold(place *self, wire_client *call, const char *id, char out_id[LINE_BYTES])
{
    sse_block block;
    int reports = 0;
    say(self, call, id, "POST", "",
        "{\"jsonrpc\":\"2.0\",\"id\":\"the call\",\"method\":\"tools/call\",\"params\":{\"name\":"
        "\"behind.hold\",\"arguments\":{},\"_meta\":{\"progressToken\":1}}}");
    while (reports < 2) {
        PUMP_UNTIL(self, call, wire_event(call, &block));
        if (block.data.len == 0) {
            continue;
        }
        assert_non_null(memmem(block.data.at, block.data.len, "notifications/progress", 22));
        if (++reports == 1) {
            (void)snprintf(out_id, LINE_BYTES, "%.*s", BAY_STR(block.id));
        }
    }
}

/* A stream says something only once its session is stored, after everything before it. */
static void open_standing(place *self, wire_client *out, const char *id)
{
    say(self, out, id, "GET", "", NULL);
    PUMP_UNTIL(self, out, out->status == 200);
}

/* ---- cases */

static void a_killed_gateways_calls_are_answered_once(void **state)
{
    static const char *const revisions[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};
    enum { COUNT = ARRAY_LEN(revisions) };
    (void)state;
    place self;
    char ids[COUNT][ID_BYTES];
    char seen[COUNT][LINE_BYTES];
    wire_client calls[COUNT];
    wire_client standing[COUNT];
    open_place(&self);
    write_config(&self, 3, "");
    start(&self);
    for (size_t i = 0; i < COUNT; i++) {
        begin(&self, revisions[i], ids[i]);
        call_hold(&self, &calls[i], ids[i], seen[i]);
        open_standing(&self, &standing[i], ids[i]);
    }
    end(&self, SIGKILL);
    for (size_t i = 0; i < COUNT; i++) {
        PUMP_UNTIL(&self, &calls[i], calls[i].is_over);
        assert_false(calls[i].is_complete);
        wire_close(&calls[i]);
        wire_close(&standing[i]);
    }
    write_config(&self, 2, ""); /* a loop fewer than the ids know of */
    start(&self);
    for (size_t i = 0; i < COUNT; i++) {
        wire_client back;
        char more[LINE_BYTES + 32];
        (void)snprintf(more, sizeof(more), "Last-Event-ID: %s\r\n", seen[i]);
        say(&self, &back, ids[i], "GET", more, NULL);
        PUMP_UNTIL(&self, &back, back.is_complete);
        assert_int_equal(back.status, 200);
        assert_true(wire_head_has(&back, "X-Accel-Buffering: no\r\n"));
        assert_false(wire_body_has(&back, "\"progress\":1"));
        assert_true(wire_body_has(&back, "\"progress\":2"));
        assert_true(wire_body_has(&back, "\"id\":\"the call\",\"result\":{"));
        assert_true(wire_body_has(&back, "\"isError\":true"));
        assert_true(wire_body_has(&back, "\"patchbay/mayHaveRun\":true"));
        const char *at = memmem(back.body.at, back.body.len, "\"id\":\"the call\"", 15);
        size_t left = back.body.len - (size_t)(at - back.body.at) - 15;
        assert_null(memmem(at + 15, left, "\"id\":\"the call\"", 15));
        wire_close(&back);
        say(&self, &back, ids[i], "GET", more, NULL);
        PUMP_UNTIL(&self, &back, back.is_complete);
        assert_int_equal(back.status, 400); /* it was delivered */
        wire_close(&back);
        say(&self, &back, ids[i], "POST", "",
            "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":"
            "\"behind.echo\",\"arguments\":{}}}");
        PUMP_UNTIL(&self, &back, back.is_complete);
        assert_int_equal(back.status, 200);
        assert_true(wire_body_has(&back, "still here"));
        wire_close(&back);
    }
    end(&self, SIGTERM);
    close_place(&self);
}

static void a_drained_gateways_clients_come_back(void **state)
{
    (void)state;
    place self;
    char id[ID_BYTES];
    char seen[LINE_BYTES];
    char more[LINE_BYTES + 32];
    wire_client standing;
    sse_block block;
    open_place(&self);
    write_config(&self, 2, "timeouts: {drain: 2s}");
    start(&self);
    begin(&self, "2025-11-25", id);
    open_standing(&self, &standing, id);
    PUMP_UNTIL(&self, &standing, wire_event(&standing, &block) && block.id.len > 0);
    (void)snprintf(seen, sizeof(seen), "%.*s", BAY_STR(block.id));
    assert_int_equal(kill(self.gateway, SIGTERM), 0);
    PUMP_UNTIL(&self, &standing, standing.is_complete);
    assert_true(wire_body_has(&standing, "retry: "));
    wire_close(&standing);
    await_end(&self, SIGTERM);
    start(&self);
    (void)snprintf(more, sizeof(more), "Last-Event-ID: %s\r\n", seen);
    say(&self, &standing, id, "GET", more, NULL);
    PUMP_UNTIL(&self, &standing, standing.status != 0);
    assert_int_equal(standing.status, 200);
    wire_close(&standing);
    /* what a client ends stays ended */
    wire_client over;
    say(&self, &over, id, "DELETE", "", NULL);
    PUMP_UNTIL(&self, &over, over.status != 0);
    assert_int_equal(over.status, 204);
    wire_close(&over);
    assert_int_equal(status_of(&self, "/mcp", id), 404);
    end(&self, SIGTERM);
    start(&self);
    assert_int_equal(status_of(&self, "/mcp", id), 404);
    end(&self, SIGTERM);
    close_place(&self);
}

static void nobody_makes_up_an_id(void **state)
{
    (void)state;
    place self;
    char id[ID_BYTES];
    open_place(&self);
    write_config(&self, 2, "");
    start(&self);
    begin(&self, "2025-11-25", id);
    assert_int_equal(status_of(&self, "/mcp", id), 200);
    for (int round = 0; round < 2; round++) { /* held, then stored */
        size_t len = strlen(id);
        for (size_t i = 0; i < len; i += 3) {
            char forged[ID_BYTES];
            memcpy(forged, id, len + 1);
            forged[i] = forged[i] == 'A' ? 'B' : 'A';
            int status = status_of(&self, "/mcp", forged);
            assert_int_equal(status, 404);
            memcpy(forged, id, len + 1);
            forged[i] = '\0';
            status = status_of(&self, "/mcp", i > 0 ? forged : "-");
            assert_int_equal(status, 404);
        }
        assert_int_equal(status_of(&self, "/mcp/behind", id), 404); /* another endpoint's */
        if (round == 0) {
            end(&self, SIGKILL);
            start(&self);
        }
    }
    assert_int_equal(status_of(&self, "/mcp", id), 200);
    end(&self, SIGTERM);
    close_place(&self);
}

static void keys_rotate(void **state)
{
#define OLD "\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\""
#define NEW "000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f"
    (void)state;
    place self;
    char old[ID_BYTES];
    char new[ID_BYTES];
    open_place(&self);
    write_config(&self, 1, "keys: [" OLD "]");
    start(&self);
    begin(&self, "2025-11-25", old);
    end(&self, SIGTERM);
    write_config(&self, 1, "keys: [" NEW ", " OLD "]");
    start(&self);
    assert_int_equal(status_of(&self, "/mcp", old), 200);
    begin(&self, "2025-11-25", new);
    end(&self, SIGTERM);
    write_config(&self, 1, "keys: [" NEW "]");
    start(&self);
    assert_int_equal(status_of(&self, "/mcp", old), 404);
    assert_int_equal(status_of(&self, "/mcp", new), 200);
    end(&self, SIGTERM);
    /* the same without a restart */
    write_config(&self, 3, "keys: [" OLD ", " NEW "]");
    start(&self);
    begin(&self, "2025-11-25", old);
    reload(&self, 3, "keys: [" NEW "]");
    assert_int_equal(status_of(&self, "/mcp", old), 404);
    assert_int_equal(status_of(&self, "/mcp", new), 200);
    begin(&self, "2025-11-25", old);
    reload(&self, 3, "");
    assert_int_equal(status_of(&self, "/mcp", old), 404); /* the store's own key seals now */
    end(&self, SIGTERM);
    struct stat about;
    assert_int_equal(stat(self.store, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    close_place(&self);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "server") == 0) {
        return run_server();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_gateways_calls_are_answered_once),
        cmocka_unit_test(a_drained_gateways_clients_come_back),
        cmocka_unit_test(nobody_makes_up_an_id),
        cmocka_unit_test(keys_rotate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

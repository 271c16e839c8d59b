/* A tool with a side effect behind the real gateway with a store, called again with the same key
 * after each way in which the first call can be lost: the effect happened once, or the answer says
 * that nobody knows. The server behind it is this very program; it counts in a file. */
#include <fcntl.h>
#include <openssl/opensslv.h> /* a build that cannot seal or store leaves this out */
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "patchbay/server.h"
#include "support/server_rig.h"

enum { START_MS = 60000, PATIENCE = 20000 };

/* ---- the server behind the gateway */

static const char *folder_of_server;

static bool is_there(const char *folder, const char *name)
{
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void count(void)
{
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/count", folder_of_server);
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0 || write(file, "x", 1) != 1) {
        _exit(3);
    }
    (void)close(file);
}

static void pay(bay_call *call, void *user)
{
    (void)user;
    if (is_there(folder_of_server, "die-before")) {
        _exit(1);
    }
    count();
    if (is_there(folder_of_server, "die-after")) {
        _exit(1);
    }
    if (is_there(folder_of_server, "hold")) {
        (void)bay_call_defer(call); /* for ever */
        return;
    }
    while (is_there(folder_of_server, "wait")) {
        (void)poll(NULL, 0, 1);
    }
    bay_call_replyf(call, "paid");
}

static int run_server(const char *folder)
{
    static const char schema[] = "{\"type\":\"object\"}";
    char name[] = "bank";
    char *arguments[] = {name, NULL};
    folder_of_server = folder;
    bay_server *server = bay_server_new("bank", "1");
    (void)bay_server_tool_schema(server, "pay", "d", schema, pay, NULL);
    return bay_server_main(server, 1, arguments);
}

/* ---- the gateway: a process of its own */

typedef struct place {
    char folder[64];
    char config[128];
    loop *loop; /* only to wait with */
    pid_t gateway;
    int say; /* what it tells people */
    uint16_t port;
} place;

static void write_config(const place *self, unsigned workers)
{
    char self_path[1024];
    ssize_t len = readlink("/proc/self/exe", self_path, sizeof(self_path) - 1);
    assert_true(len > 0);
    self_path[len] = '\0';
    FILE *file = fopen(self->config, "w");
    assert_non_null(file);
    fprintf(file,
            "listen: 127.0.0.1:0\nworkers: %u\nstore: %s/store\nadmin: {listen: []}\n"
            "mcpServers:\n  bank: {command: %s, args: [server, %s]}\n"
            "policy: {tools: {bank.pay: {idempotency: {}}}}\n",
            workers, self->folder, self_path, self->folder);
    assert_int_equal(fclose(file), 0);
}

static void start(place *self)
{
    int ends[2];
    char text[4096] = "";
    size_t len = 0;
    const char *at = NULL;
    assert_int_equal(pipe(ends), 0);
    self->gateway = fork();
    assert_true(self->gateway >= 0);
    if (self->gateway == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        alarm(START_MS / 1000); /* whatever becomes of the test, nothing is left behind */
        execl(BAY_TEST_BINARY_DIR "/patchbay", "patchbay", "serve", "-c", self->config,
              (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    self->say = ends[0];
    while (at == NULL || strstr(at, "/mcp") == NULL) {
        ssize_t got = read(self->say, text + len, sizeof(text) - 1 - len);
        assert_true(got > 0);
        len += (size_t)got;
        text[len] = '\0';
        at = strstr(text, "http://127.0.0.1:");
    }
    self->port = (uint16_t)strtoul(at + 17, NULL, 10);
}

static void end(place *self, int number)
{
    int status;
    assert_int_equal(kill(self->gateway, number), 0);
    assert_int_equal(waitpid(self->gateway, &status, 0), self->gateway);
    close(self->say);
    assert_true(number == SIGKILL ? WIFSIGNALED(status)
                                  : WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void open_place(place *self, unsigned workers)
{
    *self = (place){0};
    (void)snprintf(self->folder, sizeof(self->folder), "/tmp/patchbay-once-XXXXXX");
    assert_non_null(mkdtemp(self->folder));
    (void)snprintf(self->config, sizeof(self->config), "%s/patchbay.yaml", self->folder);
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    write_config(self, workers);
    start(self);
}

static void touch(const place *self, const char *name, bool is_made)
{
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/%s", self->folder, name);
    if (is_made) {
        int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(file >= 0);
        close(file);
    } else {
        (void)unlink(path);
    }
}

static void close_place(place *self)
{
    static const char *const names[] = {"store", "store-wal", "store-shm",  "count",        "wait",
                                        "hold",  "die-after", "die-before", "patchbay.yaml"};
    end(self, SIGTERM);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        touch(self, names[i], false);
    }
    assert_int_equal(rmdir(self->folder), 0);
    loop_free(self->loop);
}

static off_t counted(const place *self)
{
    struct stat found;
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/count", self->folder);
    return stat(path, &found) == 0 ? found.st_size : 0;
}

static void await_count(const place *self, off_t count)
{
    for (int times = 0; counted(self) < count && times < PATIENCE; times++) {
        (void)poll(NULL, 0, 1);
    }
    assert_int_equal(counted(self), count);
}

/* ---- clients */

static void say(place *self, wire_client *out, const char *key)
{
    char body[768];
    (void)snprintf(
        body, sizeof(body),
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"bank.pay\","
        "\"arguments\":{},\"_meta\":{\"patchbay/idempotencyKey\":\"%s\","
        "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
        "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"raw\",\"version\":\"1\"},"
        "\"io.modelcontextprotocol/clientCapabilities\":{}}}}",
        key);
    wire_request(out, self->loop, self->port, "POST", "/mcp",
                 WIRE_JSON "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                           "Mcp-Name: bank.pay\r\n",
                 body);
}

static void await_answer(place *self, wire_client *of, const char *text)
{
    TURN_UNTIL(self->loop, wire_pump(of), of->is_complete);
    if (!wire_body_has(of, text)) {
        fail_msg("no \"%s\" in: %.*s", text, (int)of->body.len, of->body.at);
    }
    wire_close(of);
}

static void expect(place *self, const char *key, const char *text)
{
    wire_client client;
    say(self, &client, key);
    await_answer(self, &client, text);
}

#define UNKNOWN "\"patchbay/reason\":\"outcome_unknown\""
#define REPLAYED "\"patchbay/replayed\":true"

static void the_server_dies_before_or_after_the_effect(void **state)
{
    place self;
    (void)state;
    open_place(&self, 2);
    touch(&self, "die-before", true);
    expect(&self, "before", "\"patchbay/mayHaveRun\":true");
    touch(&self, "die-before", false);
    expect(&self, "before", UNKNOWN); /* the gateway cannot tell */
    assert_int_equal(counted(&self), 0);
    touch(&self, "die-after", true);
    expect(&self, "after", "\"patchbay/mayHaveRun\":true");
    touch(&self, "die-after", false);
    expect(&self, "after", UNKNOWN);
    assert_int_equal(counted(&self), 1);
    close_place(&self);
}

static void the_gateway_dies_after_the_outcome(void **state)
{
    place self;
    (void)state;
    open_place(&self, 1);
    expect(&self, "k", "paid");
    expect(&self, "k", REPLAYED);
    expect(&self, "other", "paid"); /* one worker: by now the outcome of the first is written */
    end(&self, SIGKILL);
    start(&self);
    expect(&self, "k", REPLAYED);
    end(&self, SIGTERM);
    start(&self);
    expect(&self, "k", REPLAYED);
    assert_int_equal(counted(&self), 2);
    close_place(&self);
}

static void the_gateway_dies_under_the_call(void **state)
{
    place self;
    wire_client client;
    (void)state;
    open_place(&self, 2);
    touch(&self, "hold", true);
    say(&self, &client, "k");
    await_count(&self, 1);
    end(&self, SIGKILL);
    wire_close(&client);
    touch(&self, "hold", false);
    start(&self);
    expect(&self, "k", UNKNOWN);
    expect(&self, "k", UNKNOWN);
    assert_int_equal(counted(&self), 1);
    close_place(&self);
}

/* The client that lost its connection calls again under another JSON-RPC id, and gets the outcome. */
static void the_client_leaves_and_calls_again(void **state)
{
    place self;
    wire_client first;
    wire_client again;
    wire_client other;
    (void)state;
    open_place(&self, 2);
    touch(&self, "wait", true);
    say(&self, &first, "k");
    await_count(&self, 1);
    wire_close(&first);
    say(&self, &again, "k");
    say(&self, &other, "k");
    touch(&self, "wait", false);
    await_answer(&self, &again, REPLAYED);
    await_answer(&self, &other, REPLAYED);
    assert_int_equal(counted(&self), 1);
    close_place(&self);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_server_dies_before_or_after_the_effect),
        cmocka_unit_test(the_gateway_dies_after_the_outcome),
        cmocka_unit_test(the_gateway_dies_under_the_call),
        cmocka_unit_test(the_client_leaves_and_calls_again),
    };
    if (argc > 2 && strcmp(argv[1], "server") == 0) {
        return run_server(argv[2]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

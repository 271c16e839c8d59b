/* Sandboxed servers behind a real gateway: what they are not given, what their ends look like to
 * the caller, and that one server's secrets are nowhere in another. */
#include "support/gateway_rig.h"

#include <sys/wait.h>

#include "net/sandbox.h"
#include "support/skipped.h"

enum { TEXT = 6000, FOUND = 64 };

#define BACK_OFF "'restart':{'minDelay':'10ms','maxDelay':'20ms','attempts':0}"
#define TIMES "'timeouts':{'drain':'200ms','terminate':'200ms','kill':'200ms'}"
#define ESCAPE(name, more)                                                                         \
    "'" name "':{'command':'@/escape_server'," BACK_OFF ",'share':'always'" more "}"

/* net/sandbox asks others whether these facts are so. */
#define SKIP_WITHOUT_WALLS()                                                                       \
    do {                                                                                           \
        const sandbox_facts *facts = sandbox_facts_of_machine();                                   \
        if (facts->landlock_abi == 0 || !facts->has_seccomp) {                                     \
            SKIP("this kernel, or what we run in, has no Landlock or no seccomp");                 \
        }                                                                                          \
    } while (0)

/* One call, one answer with `part` in it. */
static void expect_with(const gateway_rig *rig, const char *tool, const char *a, const char *b,
                        const char *part)
{
    char fields[300];
    char body[1200];
    client one;
    (void)snprintf(fields, sizeof(fields),
                   "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                   "Mcp-Name: %s\r\n",
                   tool);
    (void)snprintf(body, sizeof(body),
                   "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'%s',"
                   "'arguments':{'a':'%s','b':'%s'}," RIG_META "}}}",
                   tool, a, b);
    client_open(&one, rig);
    client_post(&one, "/mcp", fields, body);
    (void)client_reply(&one);
    if (client_find(&one, part) == NULL) {
        print_error("%s %s: wanted %s\ncame: %.*s\n", tool, a, part, (int)one.got.len, one.got.at);
    }
    assert_non_null(client_find(&one, part));
    client_close(&one);
}

/* ---- secrets --------------------------------------------------------------------------------- */

typedef struct family {
    char names[FOUND][16]; /* of processes: decimal numbers */
    int count;
} family;

static void add_children(void *context, const char *name)
{
    family *self = context;
    char path[100];
    char text[8192];
    (void)snprintf(path, sizeof(path), "/proc/self/task/%s/children", name);
    size_t len = name[0] != '.' ? rig_read(path, text, sizeof(text)) : 0;
    for (char *at = text; at < text + len && self->count < FOUND;) {
        size_t digits = strcspn(at, " ");
        (void)snprintf(self->names[self->count++], sizeof(self->names[0]), "%.*s",
                       (int)(digits < 15 ? digits : 15), at);
        at += digits + 1;
    }
}

static bool holds(const char *process, const char *file, const char *part)
{
    static char text[1 << 18];
    char path[100];
    (void)snprintf(path, sizeof(path), "/proc/%s/%s", process, file);
    size_t len = rig_read(path, text, sizeof(text));
    return len > 0 && memmem(text, len, part, strlen(part)) != NULL;
}

static void secrets_stay_where_they_belong(void **state)
{
    (void)state;
    SKIP_WITHOUT_WALLS();
    gateway_rig rig;
    assert_int_equal(setenv("GATEWAY_SECRET", "of-the-gateway", 1), 0);
    rig_open(&rig,
             "{" TIMES ",'mcpServers':{" ESCAPE("plain", "") "," ESCAPE(
                 "one", ",'env':{'ONE_SECRET':'known-to-one'},'sandbox':{"
                        "'bubblewrap':'never'}") "," ESCAPE("two", ",'env':{'TWO_SECRET':'known-to-"
                                                                   "two'},'sandbox':{}") "}}",
             2);
    expect_with(&rig, "plain.environment", "GATEWAY_SECRET", "", "done: of-the-gateway");
    expect_with(&rig, "one.environment", "GATEWAY_SECRET", "", "refused");
    expect_with(&rig, "two.environment", "GATEWAY_SECRET", "", "refused");
    expect_with(&rig, "one.environment", "ONE_SECRET", "", "done: known-to-one");
    expect_with(&rig, "two.environment", "TWO_SECRET", "", "done: known-to-two");
    expect_with(&rig, "plain.environment", "ONE_SECRET", "", "refused");
    expect_with(&rig, "one.environment", "TWO_SECRET", "", "refused");
    expect_with(&rig, "two.environment", "ONE_SECRET", "", "refused");
    expect_with(&rig, "one.environment", "PATH", "", "done");
    expect_with(&rig, "plain.descriptors", "", "", "done: 0");
    expect_with(&rig, "one.descriptors", "", "", "done: 0");

    family all = {.count = 0};
    int owners = 0;
    rig_list("/proc/self/task", add_children, &all);
    assert_in_range(all.count, 3, FOUND);
    for (int i = 0; i < all.count; i++) {
        const char *name = all.names[i];
        bool has_one = holds(name, "environ", "known-to-one");
        bool has_two = holds(name, "environ", "known-to-two");
        owners += has_one + has_two;
        assert_false(has_one && has_two);
        assert_false((has_one || has_two) && holds(name, "environ", "of-the-gateway"));
        assert_false(holds(name, "cmdline", "known-to"));
        assert_false(holds(name, "cmdline", "of-the-gateway"));
    }
    assert_int_equal(owners, 2);
    assert_int_equal(rig_log_count("known-to"), 0);
    assert_int_equal(rig_log_count("of-the-gateway"), 0);
    assert_true(rig_log_count("one: sandboxed by Landlock") >= 1);
    rig_close(&rig);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void who_dies_of_a_limit_comes_back(void **state)
{
    (void)state;
    SKIP_WITHOUT_WALLS();
    gateway_rig rig;
    rig_open(&rig,
             "{" TIMES ",'mcpServers':{" ESCAPE("box", ",'sandbox':{'time':'1s','memory':'64M',"
                                                       "'bubblewrap':'never','cpu':1}") "}}",
             1);
    expect_with(&rig, "box.echo", "", "", "done");
    expect_with(&rig, "box.burn", "5", "", "its processor time is used up");
    expect_with(&rig, "box.echo", "", "", "done");
    expect_with(&rig, "box.burn", "5", "deaf", "killed by signal 9");
    expect_with(&rig, "box.echo", "", "", "done");
    expect_with(&rig, "box.heap", "100", "", "refused: Cannot allocate memory");
    expect_with(&rig, "box.cores", "", "", "done: 1\"");
#if defined(__x86_64__)
    expect_with(&rig, "box.foreign", "", "", "a system call that is not allowed");
    expect_with(&rig, "box.echo", "", "", "done");
#endif
    assert_true(rig_log_count("box: backoff -> starting") >= 2);
    rig_close(&rig);
}

static void what_cannot_be_held_is_not_started(void **state)
{
    (void)state;
    SKIP_WITHOUT_WALLS();
    gateway_rig rig;
    sandbox_facts bare = {0};
    sandbox_pretend(&bare);
    rig_open(&rig,
             "{" TIMES ",'mcpServers':{" ESCAPE("strict", ",'sandbox':{}") "," ESCAPE(
                 "loose", ",'sandbox':{'bestEffort':true}") "," RIG_SERVER("well", "stdio", "good",
                                                                           "") "}}",
             1);
    expect_with(&rig, "strict.echo", "", "", "no Landlock");
    expect_with(&rig, "loose.echo", "", "", "done");
    expect_with(&rig, "loose.core", "", "", "done: 0");
    expect_with(&rig, "well.echo", "", "", "good");
    assert_true(rig_log_count("loose: its sandbox is incomplete: this kernel has no Landlock") >=
                1);
    rig_close(&rig);
    sandbox_pretend(NULL);
    rig_open(&rig,
             "{" TIMES
             ",'mcpServers':{" ESCAPE("lost", ",'sandbox':{'fs':['/no/such/folder']}") "}}",
             1);
    expect_with(&rig, "lost.echo", "", "", "/no/such/folder: No such file");
    rig_close(&rig);
}

/* A reload that changes nothing of a sandboxed server keeps it; one that opens the walls replaces
 * it. */
static void a_reload_that_changes_the_walls_starts_anew(void **state)
{
    (void)state;
    SKIP_WITHOUT_WALLS();
    static const char closed[] =
        "{" TIMES ",'mcpServers':{" ESCAPE("box", ",'sandbox':{'bubblewrap':'never'}") "}}";
    static const char open[] = "{" TIMES ",'mcpServers':{" ESCAPE(
        "box", ",'sandbox':{'bubblewrap':'never','fs':['/sys/kernel']}") "}}";
    gateway_rig rig;
    rig_open(&rig, closed, 1);
    expect_with(&rig, "box.list", "/sys/kernel", "", "refused");
    rig_ask_reload(&rig);
    wait_until(atomic_load(&rig.reloaded) == 1);
    expect_with(&rig, "box.list", "/sys/kernel", "", "refused");
    assert_int_equal(rig_log_count("box: sandboxed by"), 1);
    rig_configure(&rig, open);
    rig_ask_reload(&rig);
    wait_until(atomic_load(&rig.reloaded) == 2);
    expect_with(&rig, "box.list", "/sys/kernel", "", "done");
    rig_close(&rig);
}

/* ---- other languages ------------------------------------------------------------------------- */

/* Says what became of reading /etc/hostname, of a socket, and of a file in the folder it may write
 * to. */
static const char node_server[] =
    "const fs = require('fs'), net = require('net');\n"
    "const attempt = f => { try { f(); return 'yes'; } catch { return 'no'; } };\n"
    "require('readline').createInterface({input: process.stdin}).on('line', line => {\n"
    "  const m = JSON.parse(line), say = result =>\n"
    "    console.log(JSON.stringify({jsonrpc: '2.0', id: m.id, ...result}));\n"
    "  if (m.id === undefined) return;\n"
    "  if (m.method === 'initialize') say({result: {protocolVersion: '2025-06-18',\n"
    "    capabilities: {tools: {}}, serverInfo: {name: 'n', version: '1'}}});\n"
    "  else if (m.method === 'tools/list')\n"
    "    say({result: {tools: [{name: 'try', inputSchema: {type: 'object'}}]}});\n"
    "  else if (m.method === 'tools/call') {\n"
    "    const read = attempt(() => fs.readFileSync('/etc/hostname'));\n"
    "    const write = attempt(() => fs.writeFileSync(process.argv[2] + '/made', 'x'));\n"
    "    const rss = attempt(() => process.memoryUsage().rss);\n"
    "    net.connect(Number(process.argv[3]), '127.0.0.1').on('connect', () => done('yes'))\n"
    "      .on('error', () => done('no'));\n"
    "    const done = socket => say({result: {content: [{type: 'text',\n"
    "      text: `read ${read} write ${write} socket ${socket} memory ${rss}`}]}});\n"
    "  } else say({error: {code: -32601, message: 'no'}});\n"
    "});\n";

static const char python_server[] =
    "import json, resource, socket, sys\n"
    "def attempt(f):\n"
    "    try:\n"
    "        f()\n"
    "        return 'yes'\n"
    "    except OSError:\n"
    "        return 'no'\n"
    "for line in sys.stdin:\n"
    "    m = json.loads(line)\n"
    "    if 'id' not in m:\n"
    "        continue\n"
    "    if m['method'] == 'initialize':\n"
    "        r = {'result': {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}},\n"
    "             'serverInfo': {'name': 'p', 'version': '1'}}}\n"
    "    elif m['method'] == 'tools/list':\n"
    "        r = {'result': {'tools': [{'name': 'try', 'inputSchema': {'type': 'object'}}]}}\n"
    "    elif m['method'] == 'tools/call':\n"
    "        read = attempt(lambda: open('/etc/hostname').read())\n"
    "        write = attempt(lambda: open(sys.argv[1] + '/made', 'w').write('x'))\n"
    "        port = ('127.0.0.1', int(sys.argv[2]))\n"
    "        net = attempt(lambda: socket.create_connection(port))\n"
    "        memory = attempt(lambda: open('/proc/self/statm').read())\n"
    "        text = f'read {read} write {write} socket {net} memory {memory}'\n"
    "        r = {'result': {'content': [{'type': 'text', 'text': text}]}}\n"
    "    else:\n"
    "        r = {'error': {'code': -32601, 'message': 'no'}}\n"
    "    print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], **r}), flush=True)\n";

static int open_port(int *out_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 100), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *out_port = ntohs(at.sin_port);
    return fd;
}

/* The same server three times: as it is, behind Landlock, and behind whatever there is. */
static void try_language(const char *program, const char *suffix, const char *server)
{
    char folder[] = "/tmp/sandbox.XXXXXX";
    char path[100];
    char made[100];
    char settings[TEXT];
    int port = 0;
    gateway_rig rig;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/server%s", folder, suffix);
    (void)snprintf(made, sizeof(made), "%s/made", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(server, file);
    fclose(file);
    int listener = open_port(&port);
    (void)snprintf(
        settings, sizeof(settings),
        "{" TIMES ",'mcpServers':{"
        "'open':{'command':'%s','args':['%s','%s','%d']},"
        "'held':{'command':'%s','args':['%s','%s','%d'],'sandbox':{'bubblewrap':'never',"
        "'fs':['%s:rw'],'memory':'512M','cpu':1,'time':'10m','files':256}},"
        "'best':{'command':'%s','args':['%s','%s','%d'],'sandbox':{'fs':['%s:rw'],"
        "'memory':'512M'}},"
        "'wide':{'command':'%s','args':['%s','%s','%d'],'sandbox':{'fs':['%s:rw','/etc'],"
        "'net':true}}}}",
        program, path, folder, port, program, path, folder, port, folder, program, path, folder,
        port, folder, program, path, folder, port, folder);
    rig_open(&rig, settings, 1);
    expect_with(&rig, "open.try", "", "", "read yes write yes socket yes memory yes");
    assert_int_equal(unlink(made), 0);
    expect_with(&rig, "held.try", "", "", "read no write yes socket no memory yes");
    assert_int_equal(unlink(made), 0); /* it was written for all to see */
    expect_with(&rig, "best.try", "", "", "read no write yes socket no memory yes");
    assert_int_equal(unlink(made), 0);
    expect_with(&rig, "wide.try", "", "", "read yes write yes socket yes memory yes");
    rig_close(&rig);
    close(listener);
    (void)unlink(made);
    (void)unlink(path);
    assert_int_equal(rmdir(folder), 0);
}

static void a_node_server_works_inside(void **state)
{
    (void)state;
    SKIP_WITHOUT_WALLS();
    if (access("/usr/bin/node", X_OK) != 0) {
        SKIP("there is no /usr/bin/node");
    }
    try_language("/usr/bin/node", ".js", node_server);
}

static void a_python_server_works_inside(void **state)
{
    (void)state;
    SKIP_WITHOUT_WALLS();
    if (access("/usr/bin/python3", X_OK) != 0) {
        SKIP("there is no /usr/bin/python3");
    }
    try_language("/usr/bin/python3", ".py", python_server);
}

/* ---- the command line ------------------------------------------------------------------------ */

static void commands_that_start_a_server_hold_it_too(void **state)
{
    (void)state;
    SKIP_WITHOUT_WALLS();
    char path[64];
    char got[TEXT] = "";
    size_t len = 0;
    int ends[2];
    (void)snprintf(path, sizeof(path), "/tmp/sandbox.%d.json", (int)getpid());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fprintf(file,
                  "{\"mcpServers\":{\"box\":{\"command\":\"%s/escape_server\",\"sandbox\":{}}}}",
                  BAY_TEST_BINARY_DIR);
    fclose(file);
    assert_int_equal(setenv("GATEWAY_SECRET", "of-the-gateway", 1), 0);
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(ends[1], 1);
        (void)dup2(ends[1], 2);
        execl(BAY_TEST_BINARY_DIR "/patchbay", "patchbay", "call", "box", "environment",
              "a=GATEWAY_SECRET", "-c", path, NULL);
        _exit(127);
    }
    close(ends[1]);
    ssize_t read_bytes;
    while ((read_bytes = read(ends[0], got + len, sizeof(got) - 1 - len)) > 0) {
        len += (size_t)read_bytes;
    }
    close(ends[0]);
    (void)waitpid(pid, NULL, 0);
    (void)unlink(path);
    if (strstr(got, "refused") == NULL) {
        print_error("%s\n", got);
    }
    assert_non_null(strstr(got, "refused"));
    assert_null(strstr(got, "of-the-gateway"));
}

/* ---- the admin socket ------------------------------------------------------------------------ */

/* Another socket of the same folder shows that it is the sandbox that keeps them out, and an open
 * server that the sockets are there. */
static void the_admin_socket_is_out_of_reach(void **state)
{
    (void)state;
    SKIP_WITHOUT_WALLS();
    gateway_rig rig;
    char folder[] = "/tmp/sandbox.XXXXXX";
    char path[64];
    char settings[TEXT];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/admin", folder);
    (void)snprintf(
        settings, sizeof(settings),
        "{'admin':{'listen':['unix:%s']}," TIMES ",'mcpServers':{" ESCAPE("plain", "") "," ESCAPE(
            "wall", ",'sandbox':{'bubblewrap':'never'}") "," ESCAPE("box", ",'sandbox':{}") "}}",
        path);
    rig_open(&rig, settings, 1);
    expect_with(&rig, "plain.unix", path, "", "done");
    expect_with(&rig, "wall.unix", path, "", "refused");
    expect_with(&rig, "box.unix", path, "", "refused");
    rig_close(&rig);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_stay_where_they_belong),
        cmocka_unit_test(the_admin_socket_is_out_of_reach),
        cmocka_unit_test(who_dies_of_a_limit_comes_back),
        cmocka_unit_test(what_cannot_be_held_is_not_started),
        cmocka_unit_test(a_reload_that_changes_the_walls_starts_anew),
        cmocka_unit_test(a_node_server_works_inside),
        cmocka_unit_test(a_python_server_works_inside),
        cmocka_unit_test(commands_that_start_a_server_hold_it_too),
    };
    loop *warm = NULL; /* what libuv opens once is open before anything is counted */
    if (loop_new(&warm) != BAY_OK) {
        return 1;
    }
    loop_free(warm);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The example that executes code, behind a real gateway, and code that means harm. */
#include "support/gateway_rig.h"

#include <pwd.h>

#include "net/sandbox.h"
#include "support/skipped.h"

enum { TEXT = 4000 };

static char base[] = "/tmp/runs.XXXXXX";
static char scratch[64];
static char secret[64];

#define TIMES "'timeouts':{'drain':'200ms','terminate':'200ms','kill':'200ms'}"
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEMORY                                                                                     \
    "" /* whose own memory would be counted; what it gives Python is bounded all the same */
#else
#define MEMORY "'memory':'512M',"
#endif

/* As in examples/run_python.yaml, but for its folder. */
static void open_example(gateway_rig *rig, const char *bubblewrap, bool has_sandbox)
{
    char text[TEXT];
    (void)snprintf(text, sizeof(text),
                   "{" TIMES ",'mcpServers':{'python':{'command':'%s/examples/run_python',"
                   "'args':['%s'],'share':'always','env':{'ASAN_OPTIONS':'detect_leaks=0'},"
                   "'restart':{'minDelay':'10ms','maxDelay':'20ms','attempts':0}%s%s%s%s}}}",
                   BAY_TEST_BINARY_DIR, scratch,
                   has_sandbox ? ",'sandbox':{" MEMORY "'cpu':1,'files':64,'time':'10m',"
                                 "'processes':24,'bubblewrap':'"
                               : "",
                   has_sandbox ? bubblewrap : "",
                   !has_sandbox     ? ""
                   : geteuid() == 0 ? "','user':'nobody','fs':['"
                                    : "','fs':['",
                   has_sandbox ? scratch : "");
    if (has_sandbox) {
        size_t len = strlen(text) - strlen("}}}");
        (void)snprintf(text + len, sizeof(text) - len, ":rw']}}}}");
    }
    rig_open(rig, text, 1);
}

/* The code holds no " and no '; lines end with \\n. */
static void expect(const gateway_rig *rig, const char *code, const char *part)
{
    char body[TEXT];
    client one;
    (void)snprintf(
        body, sizeof(body),
        "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'python.run_python',"
        "'arguments':{'code':'%s'}," RIG_META "}}}",
        code);
    client_open(&one, rig);
    client_post(&one, "/mcp",
                "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                "Mcp-Name: python.run_python\r\n",
                body);
    (void)client_reply(&one);
    if (client_find(&one, part) == NULL) {
        print_error("%s: wanted %s\ncame: %.*s\n", code, part, (int)one.got.len, one.got.at);
    }
    assert_non_null(client_find(&one, part));
    client_close(&one);
}

/* Code, and what its caller is to see. @ is a file outside, % the gateway, ` a quote. */
static const char *const attacks[][2] = {
    {"print(6 * 7)", "42"},
    {"open(`a`, `w`).write(`kept`); print(open(`a`).read())", "kept"},
    {"print(open(`a`).read())", "FileNotFoundError"}, /* the next call has nothing of it */
    {"print(open(`@`).read())", "Error"},
    {"open(`@`, `w`)", "Error"},
    {"open(`/tmp/made`, `w`)", "Error"},
    {"import os; os.symlink(`@`, `l`); print(open(`l`).read())", "Error"},
    {"import os; os.chmod(`.`, 0o4755)", "PermissionError"},
    {"import os; os.open(`x`, os.O_CREAT, 0o4755)", "PermissionError"},
    {"import socket; socket.create_connection((`127.0.0.1`, 1))", "Error"},
    {"import socket; socket.socket(socket.AF_UNIX)", "Error"},
    {"import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)", "Error"},
    {"import os; print(sorted(os.environ))", "['LANG', 'PATH']"},
    {"import os; print(open(f`/proc/{os.getppid()}/mem`, `rb`))", "Error"},
    {"import os; print(open(f`/proc/{os.getppid()}/environ`, `rb`).read())", "Error"},
    {"import os\\nif os.fork() == 0:\\n os.setsid()\\n while True: pass\\nprint(`parent`)",
     "parent"},
    {"x = bytearray(1 << 30)", "MemoryError"},
    {"print(`x` * (1 << 20))", "it said too much"},
    {"open(`big`, `wb`).write(bytes(20 << 20))", "it failed"},
    {"import os\\nwhile True: os.fork()", "("},
    {"import os\\nif os.fork() == 0:\\n while True: pass\\nprint(`parent`)", "parent"},
    {"import os\\nos.close(1); os.close(2)\\nwhile True: pass",
     "\\n("}, /* a signal, or the clock */
    {"import sys; sys.exit(3)", "it failed"},
    {"import os; os.kill(os.getpid(), 9)", "Killed"},
    {"import os; os.kill(%, 15)", "it failed"},
    {"import os; print(len(os.listdir(`.`)))", "0"},
    {"import os; os.kill(os.getppid(), 9)", "process"}, /* itself and its server: said honestly */
    {"print(6 * 7)", "42"},                             /* and the next call is served */
};

static void write_attack(char out[TEXT], const char *text)
{
    size_t len = 0;
    for (; *text != '\0'; text++) {
        len += (size_t)(*text == '@'   ? snprintf(out + len, TEXT - len, "%s", secret)
                        : *text == '%' ? snprintf(out + len, TEXT - len, "%d", (int)getpid())
                        : *text == '`' ? snprintf(out + len, TEXT - len, "\\u0027")
                                       : snprintf(out + len, TEXT - len, "%c", *text));
        assert_true(len < TEXT);
    }
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static void attack(const char *bubblewrap)
{
    gateway_rig rig;
    open_example(&rig, bubblewrap, true);
    for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
        char code[TEXT];
        write_attack(code, attacks[i][0]);
        expect(&rig, code, attacks[i][1]);
    }
    rig_close(&rig); /* and nobody is left: it looks */
    assert_false(is_there("/tmp/made"));
    char text[16] = "";
    assert_int_equal(rig_read(secret, text, sizeof(text)), 6);
    assert_memory_equal(text, "hidden", 6);
}

/* NULL: nothing is missing. net/sandbox asks others whether these facts are so. */
static const char *what_is_missing(void)
{
    const sandbox_facts *facts = sandbox_facts_of_machine();
    return access("/usr/bin/python3", X_OK) != 0 ? "there is no /usr/bin/python3"
           : facts->landlock_abi < 6 ? "this kernel, or what we run in, has no Landlock of ABI 6"
           : !facts->has_seccomp     ? "this kernel, or what we run in, has no seccomp filters"
           : !facts->has_user_namespaces
               ? "user namespaces cannot be made here (with ThreadSanitizer never)"
               : NULL;
}

static void code_stays_behind_landlock(void **state)
{
    (void)state;
    if (what_is_missing() != NULL) {
        SKIP(what_is_missing());
    }
    attack("never");
}

static void code_stays_behind_bubblewrap(void **state)
{
    (void)state;
    if (what_is_missing() != NULL) {
        SKIP(what_is_missing());
    }
    if (sandbox_facts_of_machine()->bubblewrap[0] == '\0') {
        SKIP("bubblewrap is not installed or may not make namespaces here");
    }
    attack("required");
}

static void without_a_sandbox_it_does_not_run(void **state)
{
    (void)state;
    gateway_rig rig;
    open_example(&rig, "", false);
    expect(&rig, "print(1)", "no sandbox");
    assert_true(rig_log_count("run_python: no sandbox") >= 1);
    rig_close(&rig);
}

static int open_folders(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(base));
    (void)snprintf(scratch, sizeof(scratch), "%s/run_python", base);
    (void)snprintf(secret, sizeof(secret), "%s/secret", base);
    assert_int_equal(chmod(base, 0755), 0);
    assert_int_equal(mkdir(scratch, 0700), 0);
    const struct passwd *nobody = geteuid() == 0 ? getpwnam("nobody") : NULL;
    assert_true(nobody == NULL || chown(scratch, nobody->pw_uid, nobody->pw_gid) == 0);
    int fd = open(secret, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    assert_int_equal(write(fd, "hidden", 6), 6);
    assert_int_equal(fchmod(fd, 0666), 0);
    close(fd);
    loop *warm = NULL; /* what libuv opens once is open before anything is counted */
    assert_int_equal(loop_new(&warm), BAY_OK);
    loop_free(warm);
    return 0;
}

static int close_folders(void **state)
{
    (void)state;
    (void)unlink(secret);
    (void)rmdir(scratch);
    return rmdir(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_sandbox_it_does_not_run),
        cmocka_unit_test(code_stays_behind_landlock),
        cmocka_unit_test(code_stays_behind_bubblewrap),
    };
    return cmocka_run_group_tests(tests, open_folders, close_folders);
}

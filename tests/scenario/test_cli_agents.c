/* card, send, task and cancel as a person or a script runs them, and the orchestrator among the
 * examples: the built programs against the built agents, and against one that says what it should
 * not. Output, exit codes, signals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/scripted_agent.h"

#define PATCHBAY BAY_TEST_BINARY_DIR "/patchbay"
#define EXAMPLES BAY_TEST_BINARY_DIR "/examples/"

enum { TEXT_BYTES = 256 * 1024, WORDS = 24 };

typedef struct run {
    int code; /* 128 + signal when one killed it */
    char out[TEXT_BYTES];
    char err[TEXT_BYTES];
} run;

static run result; /* of the latest */
static char folder[] = "/tmp/patchbay-agents-XXXXXX";

/* ---- programs -------------------------------------------------------------------------------- */

static void path_of(char *out, size_t size, const char *name)
{
    snprintf(out, size, "%s/%s", folder, name);
}

static void put_file(const char *name, const char *text)
{
    char path[256];
    path_of(path, sizeof(path), name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    fclose(file);
}

static void read_file(const char *name, char *out)
{
    char path[256];
    path_of(path, sizeof(path), name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    out[fread(out, 1, TEXT_BYTES - 1, file)] = '\0';
    fclose(file);
}

/* In the folder, with both streams in files there. */
static pid_t begin(const char *const *argv)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (chdir(folder) != 0 || freopen("out", "w", stdout) == NULL ||
            freopen("err", "w", stderr) == NULL || freopen("/dev/null", "r", stdin) == NULL) {
            _exit(126);
        }
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    return pid;
}

static void finish(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    read_file("out", result.out);
    read_file("err", result.err);
}

/* Words end in NULL. Returns the exit code. */
static int patchbay(const char *first, ...)
{
    const char *argv[WORDS] = {PATCHBAY};
    va_list words;
    int count = 1;
    va_start(words, first);
    for (const char *word = first; word != NULL && count < WORDS - 1;
         word = va_arg(words, const char *)) {
        argv[count++] = word;
    }
    va_end(words);
    finish(begin(argv));
    return result.code;
}

#define EXPECT(code, ...)                                                                          \
    do {                                                                                           \
        int got_code = patchbay(__VA_ARGS__, (const char *)NULL);                                  \
        if (got_code != (code)) {                                                                  \
            fail_msg("exit code %d: %s%s", got_code, result.out, result.err);                      \
        }                                                                                          \
    } while (0)
#define EXPECT_IN(text, part)                                                                      \
    do {                                                                                           \
        if (strstr(text, part) == NULL) {                                                          \
            fail_msg("no %s in %s", part, text);                                                   \
        }                                                                                          \
    } while (0)

/* An agent among the examples, on a free port. */
typedef struct example {
    pid_t pid;
    char url[64];
} example;

static void example_start(example *self, const char *name)
{
    int ends[2];
    char path[512];
    char line[512];
    self->url[0] = '\0';
    snprintf(path, sizeof(path), EXAMPLES "%s", name);
    assert_int_equal(pipe(ends), 0);
    self->pid = fork();
    assert_true(self->pid >= 0);
    if (self->pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        if (chdir(folder) == 0) {
            execl(path, path, "--http", "127.0.0.1:0", (char *)NULL);
        }
        _exit(127);
    }
    close(ends[1]);
    FILE *said = fdopen(ends[0], "r");
    while (self->url[0] == '\0' && fgets(line, sizeof(line), said) != NULL) {
        const char *at = strstr(line, "http://127.0.0.1:");
        if (at != NULL) {
            snprintf(self->url, sizeof(self->url), "%.*s", (int)strcspn(at, " \r\n"), at);
        }
    }
    fclose(said);
    assert_true(self->url[0] != '\0');
}

static void example_stop(const example *self)
{
    int status = 0;
    kill(self->pid, SIGTERM);
    assert_int_equal(waitpid(self->pid, &status, 0), self->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static example tck;

static int prepare(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    example_start(&tck, "tck_agent");
    return 0;
}

static int clean(void **state)
{
    char command[128];
    (void)state;
    example_stop(&tck);
    static const char *const left[] = {"out",         "err",         "patchbay.yaml", "keys.json",
                                       "note.txt",    "papers/a.md", "papers/b.md",   "papers/c.md",
                                       "papers/d.md", "papers"};
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        path_of(command, sizeof(command), left[i]);
        (void)remove(command);
    }
    return rmdir(folder);
}

/* ---- what goes wrong ------------------------------------------------------------------------- */

static void failures_have_their_codes(void **state)
{
    (void)state;
    char elsewhere[128];
    EXPECT(3, "card", "http://127.0.0.1:1");
    EXPECT(3, "send", "http://127.0.0.1:1", "hello");
    snprintf(elsewhere, sizeof(elsewhere), "%s/nowhere/at/all.json", tck.url);
    EXPECT(3, "card", elsewhere);
    EXPECT_IN(result.err, "no card");
    EXPECT(1, "task", tck.url, "no-such-task");
    EXPECT_IN(result.err, "GetTask");
    EXPECT(1, "cancel", tck.url, "no-such-task");
    EXPECT(1, "task", tck.url, "no-such-task", "--subscribe");
    EXPECT(7, "send", tck.url, "--file", "missing.txt");
    EXPECT_IN(result.err, "missing.txt");
    EXPECT(2, "send", tck.url, "--data", "{nonsense");
    EXPECT(2, "send", tck.url);
    EXPECT(2, "send", tck.url, "x", "-H", "Bad name: x");
    EXPECT(6, "send", "research", "x", "-c", "missing.yaml");
    put_file("patchbay.yaml", "agents:\n  tck:\n    url: http://127.0.0.1:1\n");
    EXPECT(2, "send", "research", "x");
    EXPECT_IN(result.err, "no agent \"research\"; its agents: tck");
    put_file("keys.json", "{\"keys\":[]}");
    EXPECT(1, "card", tck.url, "--keys", "keys.json");
    EXPECT_IN(result.err, "not signed");
    EXPECT(5, "card", tck.url, "--interface", "GRPC/0.1");
}

static void a_signal_ends_it(void **state)
{
    (void)state;
    static scripted_agent agent;
    static const agent_step steps[] = {
        {.body = "{\"name\":\"Mute\",\"description\":\"d\",\"version\":\"1\","
                 "\"supportedInterfaces\":[{\"url\":\"$URL\",\"protocolBinding\":\"JSONRPC\","
                 "\"protocolVersion\":\"1.0\"}],\"capabilities\":{\"streaming\":true},"
                 "\"defaultInputModes\":[\"text/plain\"],\"defaultOutputModes\":[\"text/plain\"],"
                 "\"skills\":[{\"id\":\"s\",\"name\":\"s\",\"description\":\"s\",\"tags\":[\"t\"]}]"
                 "}"},
        {.body = ": nothing yet\n\n", .is_stream = true, .end = AGENT_HANGS}};
    scripted_agent_start(&agent, steps, 2);
    const char *argv[] = {PATCHBAY, "send", agent.url, "hello", "--stream", NULL};
    pid_t pid = begin(argv);
    scripted_agent_await(&agent, 2); /* it has the message */
    kill(pid, SIGINT);
    finish(pid);
    assert_int_equal(result.code, 130);
    scripted_agent_stop(&agent);
}

/* What an agent says cannot speak to the terminal, and its errors do not either. */
static void an_agent_cannot_write_lines_of_ours(void **state)
{
    (void)state;
    static scripted_agent agent;
    static const agent_step steps[] = {
        {.body = "{\"name\":\"Evil\\u001b[2J\\nX\",\"description\":\"d\",\"version\":\"1\","
                 "\"supportedInterfaces\":[{\"url\":\"$URL\",\"protocolBinding\":\"JSONRPC\","
                 "\"protocolVersion\":\"1.0\"}],\"capabilities\":{},"
                 "\"defaultInputModes\":[\"text/plain\"],\"defaultOutputModes\":[\"text/plain\"],"
                 "\"skills\":[{\"id\":\"s\",\"name\":\"s\",\"description\":\"s\",\"tags\":[\"t\"]}]"
                 "}"}};
    scripted_agent_start(&agent, steps, 1);
    EXPECT(0, "card", agent.url);
    assert_null(strchr(result.out, '\x1b'));
    assert_null(strstr(result.out, "\nX"));
    scripted_agent_stop(&agent);
}

/* ---- what goes well -------------------------------------------------------------------------- */

static void a_card_is_shown(void **state)
{
    (void)state;
    EXPECT(0, "card", tck.url);
    EXPECT_IN(result.out, "tck · 1.0, JSONRPC, http://127.0.0.1:");
    EXPECT_IN(result.out, "Compatibility kit");
    EXPECT(0, "card", tck.url, "--json");
    EXPECT_IN(result.out, "\"supportedInterfaces\":[");
}

static void messages_are_sent_every_way(void **state)
{
    (void)state;
    static const char *const interfaces[] = {
        "JSONRPC", "HTTP+JSON", "JSONRPC/1.0", "JSONRPC/0.3", "HTTP+JSON/0.3", "0.2", "0.1"};
    for (size_t i = 0; i < sizeof(interfaces) / sizeof(interfaces[0]); i++) {
        EXPECT(0, "send", tck.url, "hello", "-i", interfaces[i]);
        assert_string_equal(result.out, "Hello from TCK\n");
        EXPECT_IN(result.err, ": completed");
        EXPECT(0, "send", tck.url, "hello", "-s", "-i", interfaces[i]);
        assert_string_equal(result.out, "Hello from TCK\n");
    }
    put_file("note.txt", "a note");
    EXPECT(0, "send", tck.url, "--data", "{\"a\":1}", "--file", "note.txt", "--file", "http://x/y",
           "--json");
    EXPECT_IN(result.out, "\"task\":{");
    char config[256];
    snprintf(config, sizeof(config), "agents:\n  kit:\n    url: %s\n    version: \"0.3\"\n",
             tck.url);
    put_file("patchbay.yaml", config);
    EXPECT(0, "send", "kit", "hello");
    assert_string_equal(result.out, "Hello from TCK\n");
}

static void task_of(char *out, size_t size)
{
    const char *at = strstr(result.err, "task ");
    assert_non_null(at);
    snprintf(out, size, "%.*s", (int)strcspn(at + 5, ":"), at + 5);
}

static void tasks_are_looked_at(void **state)
{
    (void)state;
    char task[128];
    EXPECT(0, "send", tck.url, "hello");
    task_of(task, sizeof(task));
    EXPECT(0, "task", tck.url, task, "--history", "5");
    EXPECT_IN(result.out, "> hello\n");
    EXPECT_IN(result.out, "Hello from TCK");
    EXPECT(0, "task", tck.url, task, "--json");
    EXPECT_IN(result.out, task);
    EXPECT(1, "cancel", tck.url, task); /* it has ended */
    EXPECT(1, "task", tck.url, task, "--subscribe");
}

/* ---- the research agent and who orders it about ---------------------------------------------- */

static int orchestrate(const char *topic, const char *answer, const char *first, const char *second)
{
    const char *argv[] = {EXAMPLES "orchestrator", topic, answer, first, second, NULL};
    finish(begin(argv));
    return result.code;
}

/* README.md's agent. */
static void the_shortest_agent_greets_and_asks(void **state)
{
    (void)state;
    example greeter;
    char id[64];
    example_start(&greeter, "greeter");
    EXPECT(0, "send", greeter.url, "Ada");
    EXPECT_IN(result.out, "Hello, Ada.");
    patchbay("send", greeter.url, "", NULL);
    EXPECT_IN(result.out, "Whom shall I greet?");
    const char *at = strstr(result.err, "task ");
    assert_non_null(at);
    snprintf(id, sizeof(id), "%.*s", (int)strcspn(at + 5, ": \n"), at + 5);
    EXPECT(0, "send", greeter.url, "Bob", "--task", id);
    EXPECT_IN(result.out, "Hello, Bob.");
    example_stop(&greeter);
}

static void an_orchestrator_delegates(void **state)
{
    (void)state;
    static const char *const names[] = {"papers/a.md", "papers/b.md", "papers/c.md", "papers/d.md"};
    example research;
    char task[128];
    char papers[128];
    path_of(papers, sizeof(papers), "papers");
    assert_int_equal(mkdir(papers, 0700), 0);
    for (int i = 0; i < 4; i++) {
        put_file(names[i], "The tides come and go.\n\nThey are many.\n");
    }
    setenv("RESEARCH_TOOLS", "stdio:" EXAMPLES "files", 1);
    example_start(&research, "research_agent");
    /* by hand: it asks back, and goes on */
    EXPECT(0, "send", research.url, "md", "--stream");
    EXPECT_IN(result.out, "There are 4 papers. Shall I read them all?");
    EXPECT_IN(result.err, "input-required");
    task_of(task, sizeof(task));
    EXPECT(0, "send", research.url, "yes", "--task", task, "--stream");
    EXPECT_IN(result.out, "The tides come and go.");
    EXPECT_IN(result.out, "4 papers read");
    /* by a program, which passes over who is not there and who cannot do it */
    assert_int_equal(orchestrate("md", "yes", "http://127.0.0.1:1", research.url), 0);
    EXPECT_IN(result.out, "## papers/a.md\n\nThe tides come and go.");
    EXPECT_IN(result.err, "Shall I read them all?");
    EXPECT_IN(result.err, "4 papers read");
    assert_int_equal(orchestrate("md", "no", tck.url, research.url), 0);
    EXPECT_IN(result.err, "tck cannot do it");
    EXPECT_IN(result.err, "Nothing read, as you wish.");
    assert_int_equal(orchestrate("md", "no", tck.url, tck.url), 1);
    EXPECT_IN(result.err, "no agent has the skill literature_search");
    example_stop(&research);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_have_their_codes),
        cmocka_unit_test(a_signal_ends_it),
        cmocka_unit_test(an_agent_cannot_write_lines_of_ours),
        cmocka_unit_test(a_card_is_shown),
        cmocka_unit_test(messages_are_sent_every_way),
        cmocka_unit_test(tasks_are_looked_at),
        cmocka_unit_test(the_shortest_agent_greets_and_asks),
        cmocka_unit_test(an_orchestrator_delegates),
    };
    return cmocka_run_group_tests(tests, prepare, clean);
}

/* The link to a child process, against shell scripts that are good, silly or dying servers. */
#include "support/link_owner.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

/* Answers initialize, then line by line what the test says. `id` is in $id. */
#define SHELL_SERVER                                                                               \
    "reply() { printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\\n' \"$id\" \"$1\"; }\n"      \
    "while IFS= read -r line; do\n"                                                                \
    "  id=${line#*\\\"id\\\":}; id=${id%%,*}\n"                                                    \
    "  case $line in\n"                                                                            \
    "  *'\"initialize\"'*) reply '{\"protocolVersion\":\"2025-06-18\",\"capabilities\":"           \
    "{\"tools\":{}},\"serverInfo\":{\"name\":\"sh\",\"version\":\"1\"}}' ;;\n"                     \
    "  *'\"notifications/'*) ;;\n"

#define SHELL_END                                                                                  \
    "  *) reply '{\"tools\":[]}' ;;\n"                                                             \
    "  esac\n"                                                                                     \
    "done\n"

typedef struct log_book {
    int lines;
    int sums;
    int warnings; /* and whatever else is not for debugging */
    char last[400];
    char component[64];
} log_book;

static log_book book;

static void note_log(log_level level, const char *component, const char *text, void *user)
{
    (void)user;
    if (strcmp(component, "mcp") == 0) {
        return;
    }
    bool is_sum = strstr(text, "were not logged") != NULL;
    book.lines += level == LOG_DEBUG && !is_sum;
    book.sums += is_sum;
    book.warnings += level < LOG_DEBUG;
    snprintf(book.last, sizeof(book.last), "%s", text);
    snprintf(book.component, sizeof(book.component), "%s", component);
}

static bay_err start_with(owner *self, const mcp_link_options *options, const char *script,
                          size_t line_bytes)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    process_options child = {.argv = argv, .line_bytes = line_bytes};
    bay_diag diag = {0};
    return mcp_link_open_stdio(self->loop, &child, STR("sheller"), options, &self->link, &diag);
}

static void start(owner *self, const char *script)
{
    *self = (owner){0};
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    mcp_link_options options = owner_options(self);
    assert_int_equal(start_with(self, &options, script, 0), BAY_OK);
    assert_true(mcp_link_process_id(self->link) > 0);
    assert_int_equal(self->readies + self->breaks, 0); /* nothing runs inside the opening */
}

static void finish(owner *self)
{
    if (self->link != NULL) {
        owner_free(self);
    }
    loop_free(self->loop);
    assert_int_equal(self->late, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void test_cannot_start(void **state)
{
    (void)state;
    owner on = {0};
    mcp_link_options options = owner_options(&on);
    const char *argv[] = {"/no/such/program", NULL};
    process_options child = {.argv = argv};
    bay_diag diag = {0};
    assert_int_equal(loop_new(&on.loop), BAY_OK);
    loop_free(on.loop); /* the first loop opens what the process keeps */
    int before = open_descriptors();
    assert_int_equal(loop_new(&on.loop), BAY_OK);
    assert_int_equal(mcp_link_open_stdio(on.loop, &child, STR("x"), &options, &on.link, &diag),
                     BAY_ERR_SPAWN);
    assert_null(on.link);
    assert_non_null(strstr(diag.text, "/no/such/program"));
    settle(on.loop);
    assert_int_equal(on.breaks, 0);
    finish(&on);
    assert_int_equal(open_descriptors(), before);
}

static void test_call(void **state)
{
    (void)state;
    owner on;
    answer out;
    start(&on, SHELL_SERVER SHELL_END);
    assert_int_equal(ask(&out, &on, "tools/list", "{\n\"cursor\":\r\n\"a\"}"), BAY_OK);
    LINK_UNTIL(on.loop, out.dones == 1);
    assert_int_equal(out.kind, MCP_OUTCOME_RESULT);
    assert_true(answer_has(&out, "{\"tools\":[]}"));
    assert_string_equal(on.revision, "2025-06-18");
    answer_fini(&out);
    finish(&on);
}

static void test_exit_tells_why(void **state)
{
    (void)state;
    owner on;
    answer out;
    start(&on, SHELL_SERVER
          "  *) printf 'cannot open \\033[31mfiles.db\\033[0m\\a\\n\\n' >&2; exit 3 ;;\n"
          "esac\ndone\n");
    assert_int_equal(ask(&out, &on, "tools/list", NULL), BAY_OK);
    LINK_UNTIL(on.loop, on.breaks == 1);
    assert_int_equal(on.err, BAY_ERR_EXITED);
    assert_string_equal(on.text, "exited with status 3: cannot open files.db\\u{7}");
    assert_int_equal(out.dones, 1);
    assert_int_equal(out.kind, MCP_OUTCOME_FAILED);
    assert_int_equal(out.err, BAY_ERR_EXITED);
    assert_true(out.was_sent);
    assert_int_equal(mcp_link_process_id(on.link), 0);
    answer_fini(&out);
    finish(&on);
}

/* Not every server of an older revision survives being asked whether it is a newer one. */
static void test_dies_of_the_probe(void **state)
{
    (void)state;
    static const char script[] =
        "test \"$GREETING\" = hello || exit 9\n" SHELL_SERVER
        "  *server/discover*) echo 'what is that?' >&2; exit 1 ;;\n" SHELL_END;
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    char greeting[] = "GREETING=hello";
    const char *env[] = {greeting, "PATH=/usr/bin:/bin", NULL};
    for (int newest_only = 0; newest_only < 2; newest_only++) {
        owner on = {0};
        answer out;
        bay_diag diag = {0};
        assert_int_equal(loop_new(&on.loop), BAY_OK);
        mcp_link_options options = owner_options(&on);
        options.client.newest = MCP_LATEST;
        options.client.oldest = newest_only ? MCP_LATEST : MCP_REV_2024_11_05;
        process_options child = {.argv = argv, .env = env, .cwd = "/"};
        memcpy(greeting, "GREETING=hello", sizeof(greeting));
        assert_int_equal(
            mcp_link_open_stdio(on.loop, &child, STR("old"), &options, &on.link, &diag), BAY_OK);
        memset(greeting, 'x', sizeof(greeting) - 1); /* borrowed for the call only */
        assert_int_equal(ask(&out, &on, "tools/list", NULL), BAY_OK);
        LINK_UNTIL(on.loop, out.dones == 1);
        if (newest_only) {
            assert_int_equal(out.err, BAY_ERR_EXITED);
            assert_string_equal(on.text, "exited with status 1: what is that?");
        } else {
            assert_int_equal(out.kind, MCP_OUTCOME_RESULT);
            assert_string_equal(on.revision, "2025-06-18");
            assert_true(mcp_link_process_id(on.link) > 0);
        }
        assert_int_equal(on.breaks, newest_only);
        answer_fini(&out);
        finish(&on);
    }
    /* one that dies anyway dies twice, not for ever */
    owner on = {0};
    assert_int_equal(loop_new(&on.loop), BAY_OK);
    mcp_link_options options = owner_options(&on);
    options.client.newest = MCP_LATEST;
    assert_int_equal(start_with(&on, &options, "read -r line; exit 5", 0), BAY_OK);
    LINK_UNTIL(on.loop, on.breaks == 1);
    assert_string_equal(on.text, "exited with status 5");
    finish(&on);
}

/* A child that is started once more is held as the first was, though the caller's options are gone.
 */
static void test_stays_sandboxed(void **state)
{
    (void)state;
    static const char script[] =
        "test \"$(ulimit -n)\" = 77 || exit 9\n" SHELL_SERVER
        "  *server/discover*) echo 'what is that?' >&2; exit 1 ;;\n" SHELL_END;
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    sandbox_path paths[] = {{"/bin", false}};
    sandbox_options sandbox = {.paths = paths,
                               .path_count = 1,
                               .files = 77,
                               .bubblewrap = SANDBOX_BUBBLEWRAP_NEVER,
                               .is_best_effort = true}; /* a limit is to be had everywhere */
    owner on = {0};
    answer out;
    bay_diag diag = {0};
    assert_int_equal(loop_new(&on.loop), BAY_OK);
    mcp_link_options options = owner_options(&on);
    options.client.newest = MCP_LATEST;
    options.client.oldest = MCP_REV_2024_11_05;
    process_options child = {.argv = argv, .sandbox = &sandbox};
    assert_int_equal(mcp_link_open_stdio(on.loop, &child, STR("old"), &options, &on.link, &diag),
                     BAY_OK);
    memset(&sandbox, 0xff, sizeof(sandbox)); /* borrowed for the call only */
    memset(paths, 0xff, sizeof(paths));
    assert_int_equal(ask(&out, &on, "tools/list", NULL), BAY_OK);
    LINK_UNTIL(on.loop, out.dones == 1);
    assert_int_equal(out.kind, MCP_OUTCOME_RESULT);
    assert_int_equal(on.breaks, 0);
    answer_fini(&out);
    finish(&on);
}

static void test_limits_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        const char *text;
    } cases[] = {
        {"read -r line; kill -XCPU $$", "was killed by signal 24 (its processor time is used up)"},
        {"read -r line; kill -SYS $$",
         "was killed by signal 31 (a system call that is not allowed)"},
    };
    for (size_t i = 0; i < 2; i++) {
        owner on = {0};
        assert_int_equal(loop_new(&on.loop), BAY_OK);
        mcp_link_options options = owner_options(&on);
        assert_int_equal(start_with(&on, &options, cases[i].script, 0), BAY_OK);
        LINK_UNTIL(on.loop, on.breaks == 1);
        assert_string_equal(on.text, cases[i].text);
        finish(&on);
    }
}

static void test_killed(void **state)
{
    (void)state;
    owner on;
    start(&on, SHELL_SERVER SHELL_END);
    LINK_UNTIL(on.loop, on.readies == 1);
    on.frees_on_break = true;
    assert_int_equal(kill(mcp_link_process_id(on.link), SIGKILL), 0);
    LINK_UNTIL(on.loop, on.breaks == 1);
    assert_int_equal(on.err, BAY_ERR_EXITED);
    assert_string_equal(on.text, "was killed by signal 9");
    settle(on.loop);
    finish(&on);
}

static void test_garbage(void **state)
{
    (void)state;
    owner on;
    answer out;
    /* some garbage is survived */
    start(&on,
          "echo Starting server...; echo; echo '[]'; echo '{\"jsonrpc\":\"2.0\"}'\n" SHELL_SERVER
              SHELL_END);
    assert_int_equal(ask(&out, &on, "tools/list", NULL), BAY_OK);
    LINK_UNTIL(on.loop, out.dones == 1);
    assert_int_equal(out.kind, MCP_OUTCOME_RESULT);
    answer_fini(&out);
    finish(&on);
    /* nothing but garbage is not */
    start(&on, "while :; do echo nonsense; done");
    LINK_UNTIL(on.loop, on.breaks == 1);
    assert_int_equal(on.err, BAY_ERR_PROTOCOL);
    finish(&on);
}

static void test_line_over_bound(void **state)
{
    (void)state;
    owner on = {0};
    assert_int_equal(loop_new(&on.loop), BAY_OK);
    mcp_link_options options = owner_options(&on);
    assert_int_equal(
        start_with(&on, &options, "head -c 5000 /dev/zero | tr '\\0' x; sleep 100", 4096), BAY_OK);
    LINK_UNTIL(on.loop, on.breaks == 1);
    assert_int_equal(on.err, BAY_ERR_LIMIT);
    assert_string_equal(on.text, "the server wrote a line of more than 4096 bytes");
    LINK_UNTIL(on.loop, mcp_link_process_id(on.link) == 0);
    assert_int_equal(on.breaks, 1);
    finish(&on);
}

/* The call that such a line answers fails, and no other; the process goes on. */
static void test_a_line_over_bound_that_says_whose_it_is(void **state)
{
    (void)state;
    static const char script[] =
        "large() { head -c 5000 /dev/zero | tr '\\0' x; }\n" SHELL_SERVER
        "  *answer*) printf '{\"jsonrpc\":\"2.0\",\"result\":{\"a\":\"'; large\n"
        "            printf '\"},\"id\":%s}\\n' \"$id\" ;;\n"
        "  *notify*) printf "
        "'{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":{\"a\":\"'\n"
        "            large; printf '\"}}\\n'; reply '{\"tools\":[]}' ;;\n"
        "  *'\"error\"'*) case $line in *'\"id\":\"q\"'*'too large'*) id=$last; reply "
        "'{\"tools\":[]}' ;; esac ;;\n"
        "  *question*) last=$id; printf '{\"method\":\"roots/list\",\"params\":{\"a\":\"'; large\n"
        "            printf '\"},\"jsonrpc\":\"2.0\",\"id\":\"q\"}\\n' ;;\n"
        "  *stalls*) printf '{\"a\":\"'; large ;;\n" SHELL_END;
    owner on = {0};
    answer out[3];
    assert_int_equal(loop_new(&on.loop), BAY_OK);
    mcp_link_options options = owner_options(&on);
    assert_int_equal(start_with(&on, &options, script, 4096), BAY_OK);
    for (int i = 0; i < 3; i++) {
        static const char *const params[] = {"{\"cursor\":\"answer\"}", "{\"cursor\":\"notify\"}",
                                             "{\"cursor\":\"question\"}"};
        assert_int_equal(ask(&out[i], &on, "tools/list", params[i]), BAY_OK);
    }
    LINK_UNTIL(on.loop, out[0].dones == 1 && out[1].dones == 1 && out[2].dones == 1);
    assert_int_equal(out[0].kind, MCP_OUTCOME_FAILED);
    assert_int_equal(out[0].err, BAY_ERR_LIMIT);
    assert_int_equal(out[1].kind, MCP_OUTCOME_RESULT);
    assert_int_equal(out[2].kind, MCP_OUTCOME_RESULT);
    assert_int_equal(on.breaks, 0);
    for (int i = 0; i < 3; i++) {
        answer_fini(&out[i]);
    }
    assert_int_equal(ask(&out[0], &on, "tools/list", "{\"cursor\":\"stalls\"}"), BAY_OK);
    LINK_UNTIL(on.loop, on.breaks == 1);
    assert_int_equal(on.err, BAY_ERR_LIMIT);
    answer_fini(&out[0]);
    finish(&on);
}

static void test_stderr_is_bounded(void **state)
{
    (void)state;
    owner on;
    book = (log_book){0};
    log_set_sink(LOG_DEBUG, note_log, NULL);
    start(&on, "echo one two >&2; exit 1");
    LINK_UNTIL(on.loop, on.breaks == 1);
    assert_int_equal(book.lines, 1);
    assert_string_equal(book.last, "one two");
    assert_string_equal(book.component, "sheller");
    assert_int_equal(book.warnings, 0);
    mcp_link_log_last_lines(on.link); /* the log holds them already */
    assert_int_equal(book.warnings, 0);
    finish(&on);

    book = (log_book){0};
    int64_t before = link_clock_ms();
    start(&on, "i=0; while [ $i -lt 30000 ]; do echo line $i >&2; i=$((i+1)); done");
    LINK_UNTIL(on.loop, on.breaks == 1);
    int64_t seconds = (link_clock_ms() - before) / 1000 + 2;
    assert_in_range(book.lines, 1000, 1000 * seconds);
    assert_true(seconds * 1000 >= 30000 || book.sums >= 1);
    assert_string_equal(on.text, "exited with status 0: line 29999");
    finish(&on);
    log_set_sink(LOG_ERROR, NULL, NULL);
}

/* A line on stderr is about the end only where it can be. */
static void test_only_what_explains_the_end_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *script; /* of the first call, of the second */
        const char *text;
    } cases[] = {
        /* during a call that went well: nobody knows why it was killed, and nothing else is about
         * its end by itself at the next call */
        {"  *first*) echo unrelated >&2; reply '{\"tools\":[]}' ;;\n"
         "  *second*) kill -KILL $$ ;;\n",
         "was killed by signal 9"},
        {"  *first*) echo unrelated >&2; reply '{\"tools\":[]}' ;;\n"
         "  *second*) exit 3 ;;\n",
         "exited with status 3"},
        {"  *first*) reply '{\"tools\":[]}' ;;\n"
         "  *second*) echo unrelated >&2; kill -TERM $$ ;;\n",
         "was killed by signal 15"},
        {"  *first*) reply '{\"tools\":[]}' ;;\n"
         "  *second*) echo goodbye >&2; exit 0 ;;\n",
         "exited with status 0"},
        {"  *first*) echo unrelated >&2; reply '{\"tools\":[]}' ;;\n"
         "  *second*) echo full disk >&2; exit 3 ;;\n",
         "exited with status 3: full disk"},
        {"  *first*) reply '{\"tools\":[]}' ;;\n"
         "  *second*) echo assertion >&2; kill -ABRT $$ ;;\n",
         "was killed by signal 6: assertion"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        owner on;
        answer out[3];
        char script[2048];
        snprintf(script, sizeof(script), "%s%s%s", SHELL_SERVER, cases[i].script, SHELL_END);
        start(&on, script);
        assert_int_equal(ask(&out[0], &on, "tools/list", "{\"cursor\":\"first\"}"), BAY_OK);
        LINK_UNTIL(on.loop, out[0].dones == 1);
        assert_int_equal(out[0].kind, MCP_OUTCOME_RESULT);
        /* what is on stderr before an answer may be read after it, but before the next one */
        assert_int_equal(ask(&out[1], &on, "tools/list", "{\"cursor\":\"middle\"}"), BAY_OK);
        LINK_UNTIL(on.loop, out[1].dones == 1);
        assert_int_equal(ask(&out[2], &on, "tools/list", "{\"cursor\":\"second\"}"), BAY_OK);
        LINK_UNTIL(on.loop, on.breaks == 1);
        assert_string_equal(on.text, cases[i].text);
        for (size_t j = 0; j < ARRAY_LEN(out); j++) {
            answer_fini(&out[j]);
        }
        finish(&on);
    }
    /* the life before this one said it */
    owner on = {0};
    assert_int_equal(loop_new(&on.loop), BAY_OK);
    mcp_link_options options = owner_options(&on);
    options.client.newest = MCP_LATEST;
    static const char twice[] =
        "read -r line; case $line in *discover*) echo 'what is that?' >&2; exit 1 ;; esac; exit 5";
    assert_int_equal(start_with(&on, &options, twice, 0), BAY_OK);
    LINK_UNTIL(on.loop, on.breaks == 1);
    assert_string_equal(on.text, "exited with status 5");
    finish(&on);
}

/* Nobody debugs: the log has nothing of a server that is well, and all of what it said at the end
 * where that may be why. */
static void test_last_lines_are_warnings(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        int warnings;
    } cases[] = {
        {"echo a >&2; echo b >&2; exit 1", 2},
        {"echo the reason quotes it >&2; exit 1", 0},
        {"echo a >&2; echo b >&2; kill -KILL $$", 0},
        {"i=0; while [ $i -lt 2000 ]; do echo line $((1000000 + i)) >&2; i=$((i+1)); done; exit 1",
         315}, /* 4,096 bytes of 13 */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        owner on;
        book = (log_book){0};
        log_set_sink(LOG_INFO, note_log, NULL);
        start(&on, cases[i].script);
        LINK_UNTIL(on.loop, on.breaks == 1);
        assert_int_equal(book.lines + book.warnings, 0);
        mcp_link_log_last_lines(on.link);
        assert_int_equal(book.warnings, cases[i].warnings);
        finish(&on);
    }
    assert_string_equal(book.last, "stderr: line 1001999");
    mcp_link_log_last_lines(NULL);
    log_set_sink(LOG_ERROR, NULL, NULL);
}

static void test_close(void **state)
{
    (void)state;
    int before = open_descriptors();
    /* a server that ends with its stdin, one that must be asked, one that must be made to */
    static const char *const scripts[] = {
        SHELL_SERVER SHELL_END,
        SHELL_SERVER SHELL_END "sleep 100",
        "trap '' TERM\n" SHELL_SERVER SHELL_END "while :; do sleep 100; done",
    };
    for (size_t i = 0; i < 3; i++) {
        owner on;
        answer out;
        start(&on, scripts[i]);
        on.frees_on_close = true;
        LINK_UNTIL(on.loop, on.readies == 1);
        assert_int_equal(ask(&out, &on, "tools/list", NULL), BAY_OK);
        int child = mcp_link_process_id(on.link);
        mcp_link_close(on.link, owner_closed, &on);
        assert_int_equal(out.dones, 1);
        assert_int_equal(out.err, BAY_ERR_CANCELLED);
        assert_int_equal(on.closes, 0);
        LINK_UNTIL(on.loop, on.closes == 1);
        assert_int_equal(kill(child, 0), -1);
        assert_int_equal(errno, ESRCH);
        assert_int_equal(on.breaks, 0);
        answer_fini(&out);
        finish(&on);
    }
    assert_int_equal(open_descriptors(), before);
}

static void test_close_early_and_late(void **state)
{
    (void)state;
    owner on;
    /* before the first turn */
    start(&on, SHELL_SERVER SHELL_END);
    mcp_link_close(on.link, owner_closed, &on);
    LINK_UNTIL(on.loop, on.closes == 1);
    assert_int_equal(on.readies, 0);
    finish(&on);
    /* twice: the newer one hears it */
    start(&on, SHELL_SERVER SHELL_END);
    owner other = {0};
    mcp_link_close(on.link, owner_closed, &other);
    mcp_link_close(on.link, owner_closed, &on);
    LINK_UNTIL(on.loop, on.closes == 1);
    mcp_link_close(on.link, owner_closed, &other);
    assert_int_equal(other.closes, 0);
    LINK_UNTIL(on.loop, other.closes == 1);
    assert_int_equal(on.closes, 1);
    finish(&on);
    /* after it died */
    start(&on, "exit 0");
    LINK_UNTIL(on.loop, on.breaks == 1);
    mcp_link_close(on.link, owner_closed, &on);
    assert_int_equal(on.closes, 0);
    LINK_UNTIL(on.loop, on.closes == 1);
    finish(&on);
    /* freed before it was done */
    start(&on, "trap '' TERM; while :; do sleep 100; done");
    mcp_link_close(on.link, owner_closed, &on);
    owner_free(&on);
    settle(on.loop);
    assert_int_equal(on.closes, 0);
    finish(&on);
}

static void test_free_inside_callbacks(void **state)
{
    (void)state;
    owner on;
    answer out;
    int before = open_descriptors();
    start(&on, SHELL_SERVER SHELL_END);
    on.frees_on_ready = true;
    assert_int_equal(ask(&out, &on, "tools/list", NULL), BAY_OK);
    LINK_UNTIL(on.loop, on.readies == 1);
    assert_int_equal(out.dones, 1);
    assert_int_equal(out.err, BAY_ERR_CANCELLED);
    answer_fini(&out);
    finish(&on);

    start(&on, SHELL_SERVER SHELL_END);
    assert_int_equal(ask(&out, &on, "tools/list", NULL), BAY_OK);
    out.frees_on_done = true;
    LINK_UNTIL(on.loop, out.dones == 1);
    assert_int_equal(out.kind, MCP_OUTCOME_RESULT);
    settle(on.loop);
    answer_fini(&out);
    finish(&on);

    /* in the middle of a sending */
    start(&on, SHELL_SERVER SHELL_END);
    LINK_UNTIL(on.loop, on.readies == 1);
    on.frees_on_trace = true;
    assert_int_equal(ask(&out, &on, "tools/list", NULL), BAY_ERR_CLOSED);
    assert_true(on.is_freed);
    settle(on.loop);
    answer_fini(&out);
    finish(&on);
    assert_int_equal(open_descriptors(), before);
}

/* A child that reads nothing: calls wait, time out, and nothing grows beyond the queue. */
static void test_stuck_stdin(void **state)
{
    (void)state;
    owner on = {0};
    answer out[40];
    assert_int_equal(loop_new(&on.loop), BAY_OK);
    mcp_link_options options = owner_options(&on);
    options.client.call_timeout_ms = 300;
    const char *argv[] = {"/bin/sh", "-c",
                          "read -r line; printf '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":"
                          "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},"
                          "\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}\\n'; sleep 100",
                          NULL};
    process_options child = {.argv = argv, .queue_bytes = 1 << 20};
    bay_diag diag = {0};
    assert_int_equal(mcp_link_open_stdio(on.loop, &child, STR("stuck"), &options, &on.link, &diag),
                     BAY_OK);
    LINK_UNTIL(on.loop, on.readies == 1);
    buf params;
    buf_init(&params, 1 << 20);
    buf_lit(&params, "{\"name\":\"a\",\"arguments\":{\"x\":\"");
    for (int i = 0; i < 100000; i++) {
        buf_char(&params, 'y');
    }
    buf_append(&params, "\"}}", 4);
    for (size_t i = 0; i < ARRAY_LEN(out); i++) {
        assert_int_equal(ask(&out[i], &on, "tools/call", params.at), BAY_OK);
    }
    for (size_t i = 0; i < ARRAY_LEN(out); i++) {
        LINK_UNTIL(on.loop, out[i].dones == 1);
        assert_int_equal(out[i].err, BAY_ERR_TIMEOUT);
        answer_fini(&out[i]);
    }
    buf_fini(&params);
    finish(&on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cannot_start),
        cmocka_unit_test(test_call),
        cmocka_unit_test(test_exit_tells_why),
        cmocka_unit_test(test_dies_of_the_probe),
        cmocka_unit_test(test_stays_sandboxed),
        cmocka_unit_test(test_limits_are_named),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_line_over_bound),
        cmocka_unit_test(test_a_line_over_bound_that_says_whose_it_is),
        cmocka_unit_test(test_only_what_explains_the_end_is_told),
        cmocka_unit_test(test_last_lines_are_warnings),
        cmocka_unit_test(test_stderr_is_bounded),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_close_early_and_late),
        cmocka_unit_test(test_free_inside_callbacks),
        cmocka_unit_test(test_stuck_stdin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

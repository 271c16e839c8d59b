/* A client and a command: one that cannot be started, that dies, keeps silent, talks nonsense, does
 * not end; and one that is well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "sdk/client_parts.h"
#include "support/failing_memory.h"

static const char bad_server[] = BAY_TEST_BINARY_DIR "/bad_server";

static bay_client_options *fast(void)
{
    bay_client_options *options = bay_client_options_new();
    assert_non_null(options);
    bay_client_options_reconnect(options, 3, 20);
    bay_client_options_revisions(options, NULL, "2025-11-25"); /* no probe: it knows none */
    return options;
}

static bay_err spawn(const char *const *argv, bay_client_options *options, bay_client **out,
                     bay_diag *diag)
{
    bay_err err = bay_client_spawn(argv, options, out, diag);
    bay_client_options_free(options);
    return err;
}

static bay_client *spawn_bad(const char *mode)
{
    bay_client *client = NULL;
    bay_diag diag = {0};
    const char *const argv[] = {bad_server, "stdio", mode, NULL};
    if (spawn(argv, fast(), &client, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    return client;
}

static void assert_says(const bay_diag *diag, const char *text)
{
    if (strstr(diag->text, text) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", diag->text, text);
    }
}

static void assert_no_children(void)
{
    int status = 0;
    assert_int_equal(waitpid(-1, &status, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void what_cannot_be_started_is_told(void **state)
{
    (void)state;
    bay_client *client = NULL;
    bay_diag diag = {0};
    const char *const missing[] = {"/nonexistent/server", "--key=secret", NULL};
    assert_int_equal(spawn(missing, fast(), &client, &diag), BAY_ERR_SPAWN);
    assert_says(&diag, "/nonexistent/server");
    assert_null(strstr(diag.text, "secret"));
    bay_client_options *options = fast();
    const char *const fine[] = {bad_server, "stdio", "good", NULL};
    bay_client_options_directory(options, "/nonexistent");
    assert_int_equal(spawn(fine, options, &client, &diag), BAY_ERR_SPAWN);
    assert_int_equal(bay_client_spawn(NULL, NULL, &client, &diag), BAY_ERR_INVALID);
    assert_int_equal(bay_client_spawn((const char *[]){NULL}, NULL, &client, &diag),
                     BAY_ERR_INVALID);
    assert_null(client);
    assert_no_children();
}

static void one_that_dies_at_once_is_told(void **state)
{
    (void)state;
    bay_client *client = NULL;
    bay_diag diag = {0};
    const char *const argv[] = {bad_server, "stdio", "exit", NULL};
    bay_err err = spawn(argv, fast(), &client, &diag);
    assert_true(err == BAY_ERR_EXITED || err == BAY_ERR_CLOSED);
    assert_says(&diag, "bad_server");
    assert_null(client);
    assert_no_children();
}

static void one_that_keeps_silent_times_out(void **state)
{
    static const char *const modes[] = {"silent", "deaf"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        bay_client *client = NULL;
        bay_diag diag = {0};
        bay_client_options *options = fast();
        bay_client_options_timeout(options, 50, 0);
        const char *const argv[] = {bad_server, "stdio", modes[i], NULL};
        assert_int_equal(spawn(argv, options, &client, &diag), BAY_ERR_TIMEOUT);
        assert_null(client);
    }
    assert_no_children();
}

static void noise_before_the_first_word_is_no_harm(void **state)
{
    (void)state;
    bay_client *client = spawn_bad("noise");
    assert_true(str_eq(bay_client_revision(client), STR("2025-06-18")));
    bay_client_close(client);
    assert_no_children();
}

static bay_err call(bay_client *client, const char *tool, bay_diag *diag)
{
    bay_reply *reply = NULL;
    bay_request *request = bay_request_tool(client, tool, NULL);
    bay_request_timeout(request, strcmp(tool, "hang") == 0 ? 50 : 0, 0);
    bay_err err = bay_request_run(request, &reply, diag);
    assert_true((err == BAY_OK) == (reply != NULL));
    bay_reply_free(reply);
    return err;
}

static void odd_answers_end_one_call_only(void **state)
{
    static const struct {
        const char *tool;
        bay_err err; /* BAY_OK: the answer behind the nonsense */
    } cases[] = {
        {"echo", BAY_OK},          {"garbage", BAY_OK},  {"binary", BAY_OK}, {"unknown", BAY_OK},
        {"twice", BAY_OK},         {"progress", BAY_OK}, {"ask", BAY_OK},    {"big", BAY_OK},
        {"hang", BAY_ERR_TIMEOUT}, {"echo", BAY_OK},
    };
    (void)state;
    bay_client *client = spawn_bad("good");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bay_diag diag = {0};
        bay_err err = call(client, cases[i].tool, &diag);
        if (err != cases[i].err) {
            fail_msg("%s: %s", cases[i].tool, diag.text);
        }
    }
    assert_int_equal(client->links, 1);
    bay_client_close(client);
    assert_no_children();
}

static void one_that_dies_in_a_call_is_started_again(void **state)
{
    static const char *const deaths[] = {"exit", "kill", "half_line", "shut"};
    (void)state;
    bay_client *client = spawn_bad("good");
    for (size_t i = 0; i < ARRAY_LEN(deaths); i++) {
        bay_diag diag = {0};
        assert_int_equal(call(client, deaths[i], &diag), BAY_ERR_CLOSED);
        assert_says(&diag, "may have been executed");
        assert_int_equal(call(client, "echo", &diag), BAY_OK);
    }
    assert_int_equal(client->links, 5);
    bay_client_close(client);
    assert_no_children();
}

static void one_that_reads_no_more_is_ended(void **state)
{
    (void)state;
    bay_diag diag = {0};
    bay_client *client = spawn_bad("good");
    assert_int_equal(call(client, "deafen", &diag), BAY_OK); /* it closes its stdin, and sleeps */
    bay_client_close(client);
    assert_no_children();
}

static void variables_and_words_arrive(void **state)
{
    (void)state;
    bay_client *client = NULL;
    bay_diag diag = {0};
    bay_client_options *options = fast();
    bay_client_options_env(options, "BAY_CLIENT_TEST=it is");
    bay_client_options_env(options, "PATH=/usr/bin:/bin");
    bay_client_options_directory(options, "/");
    /* a server by shell: says where it is and what it was given as its own name */
    assert_int_equal(
        bay_client_connect(
            "stdio:sh -c 'read -r line; printf \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":1,"
            "\\\"result\\\":{\\\"protocolVersion\\\":\\\"2025-11-25\\\",\\\"capabilities\\\":{},"
            "\\\"serverInfo\\\":{\\\"name\\\":\\\"$BAY_CLIENT_TEST $(pwd) $1\\\","
            "\\\"version\\\":\\\"1\\\"}}}\\n\"; cat >/dev/null' sh \"a b\"",
            options, &client, &diag),
        BAY_OK);
    bay_client_options_free(options);
    assert_true(str_eq(bay_client_server_info(client),
                       STR("{\"name\":\"it is / a b\",\"version\":\"1\"}")));
    bay_client_close(client);
    assert_no_children();
}

typedef struct lines {
    int count;
} lines;

static void on_line(bay_log_level level, const char *component, const char *text, void *user)
{
    lines *self = user;
    (void)level, (void)component;
    self->count += strstr(text, "going down") != NULL;
}

static void on_message(bay_client *client, bool is_outgoing, bay_str message, void *user)
{
    int *counts = user;
    (void)client;
    assert_true(message.len > 0 && message.at[0] == '{');
    counts[is_outgoing]++;
}

static void what_it_says_on_stderr_is_logged(void **state)
{
    (void)state;
    bay_client *client = NULL;
    bay_diag diag = {0};
    lines seen = {0};
    int counts[2] = {0, 0};
    bay_client_options *options = fast();
    const char *const argv[] = {bad_server, "stdio", "good", NULL};
    bay_client_options_log_to(options, BAY_LOG_LEVEL_DEBUG, on_line, &seen);
    bay_client_options_on_message(options, on_message, counts);
    assert_int_equal(spawn(argv, options, &client, &diag), BAY_OK);
    assert_int_equal(call(client, "exit", &diag), BAY_ERR_CLOSED);
    assert_int_equal(call(client, "echo", &diag), BAY_OK);
    bay_client_close(client);
    assert_true(seen.count >= 1);
    assert_true(counts[0] >= 3 && counts[1] >= 6);
}

/* A server with subscriptions, which writes a byte per subscription and dies of a call. */
static const char subscribable[] =
    "while read -r l; do id=${l#*'\"id\":'}; id=${id%%,*}; case $l in "
    "*'\"initialize\"'*) r='{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"resources\":"
    "{\"subscribe\":true}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}';; "
    "*resources/subscribe*) printf x >>\"$TALLY\"; r='{}';; "
    "*tools/call*) exit 1;; "
    "*'\"id\":'*) r='{}';; "
    "*) continue;; esac; "
    "printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\\n' \"$id\" \"$r\"; done";

static long tally_of(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long bytes = ftell(file);
    fclose(file);
    return bytes;
}

static void subscriptions_outlive_a_link(void **state)
{
    (void)state;
    bay_client *client = NULL;
    bay_diag diag = {0};
    char path[] = "/tmp/bay_client_XXXXXX";
    char variable[64];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    snprintf(variable, sizeof(variable), "TALLY=%s", path);
    bay_client_options *options = fast();
    bay_client_options_env(options, variable);
    const char *const argv[] = {"sh", "-c", subscribable, NULL};
    if (spawn(argv, options, &client, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    if (bay_client_subscribe(client, "x:a", &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    assert_int_equal(tally_of(path), 1);
    assert_int_equal(call(client, "dies", &diag), BAY_ERR_CLOSED);
    while (tally_of(path) < 2) { /* nobody asks for anything: the subscription needs the link */
        assert_int_equal(bay_client_wait(client, 5), BAY_OK);
    }
    assert_int_equal(bay_client_unsubscribe(client, "x:a", &diag), BAY_OK);
    assert_int_equal(call(client, "dies", &diag), BAY_ERR_CLOSED);
    assert_int_equal(bay_client_ping(client, &diag), BAY_OK);
    assert_int_equal(tally_of(path), 2);
    bay_client_close(client);
    unlink(path);
    assert_no_children();
}

typedef struct listed {
    int count;
    bay_err err;
} listed;

static void take_list(bay_client *client, bay_list *made, const bay_diag *diag, void *user)
{
    listed *self = user;
    (void)client;
    self->count++;
    self->err = diag->code;
    bay_list_free(made);
}

/* Asked for without waiting, and told once, whatever is lacking. */
static bool list_later(bay_client *client)
{
    listed end = {0};
    bay_err err = bay_client_list_start(client, BAY_KIND_TOOLS, NULL, take_list, &end);
    assert_int_equal(end.count, 0);
    for (bay_err turned = BAY_OK; err == BAY_OK && end.count == 0 && turned == BAY_OK;) {
        turned = bay_client_wait(client, -1);
        assert_true(turned == BAY_OK || end.count == 1);
    }
    assert_int_equal(end.count, err == BAY_OK);
    return err == BAY_OK && end.err == BAY_OK;
}

static void every_lack_of_memory_is_an_error(void **state)
{
    (void)state;
    bool is_well = false;
    for (size_t at = 0; failing_memory_start(at); at++) {
        bay_client *client = NULL;
        bay_reply *reply = NULL;
        bay_list *made = NULL;
        bay_diag diag = {0};
        const char *const argv[] = {bad_server, "stdio", "good", NULL};
        bay_client_options *options = bay_client_options_new();
        bay_client_options_revisions(options, NULL, "2025-11-25");
        bay_client_options_reconnect(options, 1, 1);
        bay_err err = options != NULL ? spawn(argv, options, &client, &diag) : BAY_ERR_NOMEM;
        assert_true((err == BAY_OK) == (client != NULL));
        is_well = false;
        if (err == BAY_OK) {
            err = bay_client_list(client, BAY_KIND_TOOLS, &made, &diag);
            is_well = err == BAY_OK;
            bay_list_free(made);
            err = bay_client_call(client, "echo", "{}", &reply, &diag);
            is_well = is_well && err == BAY_OK;
            bay_reply_free(reply);
            is_well = list_later(client) && is_well;
        }
        bay_client_close(client);
        failing_memory_check();
    }
    assert_true(is_well);
    assert_no_children();
}

static void *connect_there(void *user)
{
    *(bay_client **)user = spawn_bad("good");
    return NULL;
}

/* A client is its thread's, but may be handed on: the command does not end with the thread. */
static void a_command_outlives_the_thread_that_started_it(void **state)
{
    pthread_t thread;
    bay_client *client = NULL;
    bay_diag diag = {0};
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, connect_there, &client), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_non_null(client);
    int process_id = mcp_link_process_id(client->link);
    assert_int_equal(call(client, "echo", &diag), BAY_OK);
    assert_int_equal(mcp_link_process_id(client->link), process_id);
    bay_client_close(client);
    assert_no_children();
}

/* What broke a link in use says nothing of the next one: the next call makes it, and is made. */
static void one_that_talked_nonsense_is_started_again(void **state)
{
    (void)state;
    bay_client *client = spawn_bad("good");
    bay_diag diag = {0};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(call(client, "babble", &diag), BAY_ERR_PROTOCOL);
        assert_says(&diag, "the server sends what is no MCP");
        assert_int_equal(call(client, "echo", &diag), BAY_OK);
    }
    bay_client_close(client);
    assert_no_children();
}

/* … and a broken answer ends one call, not its time limit. */
static void a_broken_answer_ends_its_call(void **state)
{
    static const char *const tools[] = {"types", "null", "wrong_version", "error"};
    (void)state;
    bay_client *client = spawn_bad("good");
    for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
        bay_diag diag = {0};
        assert_int_equal(call(client, tools[i], &diag), BAY_ERR_PROTOCOL);
        assert_says(&diag, "the server's answer is no JSON-RPC response: ");
        assert_int_equal(call(client, "echo", &diag), BAY_OK);
    }
    bay_client_close(client);
    assert_no_children();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_started_is_told),
        cmocka_unit_test(one_that_dies_at_once_is_told),
        cmocka_unit_test(one_that_keeps_silent_times_out),
        cmocka_unit_test(noise_before_the_first_word_is_no_harm),
        cmocka_unit_test(odd_answers_end_one_call_only),
        cmocka_unit_test(one_that_dies_in_a_call_is_started_again),
        cmocka_unit_test(a_command_outlives_the_thread_that_started_it),
        cmocka_unit_test(one_that_talked_nonsense_is_started_again),
        cmocka_unit_test(a_broken_answer_ends_its_call),
        cmocka_unit_test(one_that_reads_no_more_is_ended),
        cmocka_unit_test(variables_and_words_arrive),
        cmocka_unit_test(what_it_says_on_stderr_is_logged),
        cmocka_unit_test(subscriptions_outlive_a_link),
        cmocka_unit_test(every_lack_of_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

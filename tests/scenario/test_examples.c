/* Every example server as a program of its own, asked by a client of the library over stdio: what
 * its comment promises is what it does. The example clients are started against them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "patchbay/client.h"

#define EXAMPLES BAY_TEST_BINARY_DIR "/examples/"

static bay_client *begin(const char *program, bay_client_options *options)
{
    char target[512];
    bay_client *client = NULL;
    bay_diag diag;
    (void)snprintf(target, sizeof(target), "stdio:'" EXAMPLES "%s'", program);
    if (bay_client_connect(target, options, &client, &diag) != BAY_OK) {
        fail_msg("%s: %s", program, diag.text);
    }
    bay_client_options_free(options);
    return client;
}

static bool holds(bay_str text, const char *part)
{
    return text.len > 0 && memmem(text.at, text.len, part, strlen(part)) != NULL;
}

static bay_reply *call(bay_client *client, const char *tool, const char *arguments)
{
    bay_reply *reply = NULL;
    bay_diag diag;
    if (bay_client_call(client, tool, arguments, &reply, &diag) != BAY_OK) {
        fail_msg("%s: %s", tool, diag.text);
    }
    return reply;
}

static void expect_json(bay_reply *reply, const char *part)
{
    if (!holds(bay_reply_json(reply), part)) {
        fail_msg("\"%.*s\" lacks \"%s\"", BAY_STR(bay_reply_json(reply)), part);
    }
    bay_reply_free(reply);
}

static void every_kind_of_content_arrives(void **state)
{
    static const bay_content kinds[] = {BAY_CONTENT_TEXT,     BAY_CONTENT_IMAGE,
                                        BAY_CONTENT_AUDIO,    BAY_CONTENT_RESOURCE,
                                        BAY_CONTENT_RESOURCE, BAY_CONTENT_LINK};
    bay_client *client = begin("content", NULL);
    bay_reply *reply = call(client, "show", NULL);
    (void)state;
    assert_int_equal(bay_reply_count(reply), 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(bay_reply_kind(reply, i), kinds[i]);
    }
    void *bytes = NULL;
    size_t len = 0;
    assert_int_equal(bay_reply_bytes(reply, 1, &bytes, &len), BAY_OK);
    assert_int_equal(len, 69);
    assert_memory_equal(bytes, "\x89PNG", 4);
    bay_free(bytes);
    assert_true(holds(bay_reply_item(reply, 1), "\"priority\":0.9"));
    bay_reply_free(reply);
    bay_client_close(client);
}

static void arguments_and_results_keep_their_schemas(void **state)
{
    bay_client *client = begin("structured", NULL);
    (void)state;
    bay_reply *reply = call(client, "get_area", "{\"width\":-3,\"height\":2}");
    assert_true(bay_reply_is_error(reply));
    assert_true(holds(bay_reply_text(reply, 0), "/width"));
    bay_reply_free(reply);
    reply = call(client, "get_area", "{\"width\":3,\"height\":2,\"unit\":\"ft\"}");
    assert_false(bay_reply_is_error(reply));
    assert_true(holds(bay_reply_structured(reply), "\"area\":6"));
    assert_true(holds(bay_reply_str(reply, "unit"), "ft2"));
    bay_reply_free(reply);
    bay_client_close(client);
}

static void count_progress(bay_request *request, double progress, double total, bay_str message,
                           void *user)
{
    (void)request;
    (void)message;
    assert_true(total == 5);
    assert_true(progress == ++*(int *)user);
}

static void slow_work_reports_and_is_cancelled(void **state)
{
    int seen = 0;
    bay_reply *reply = NULL;
    bay_diag diag;
    bay_client *client = begin("progress", NULL);
    (void)state;
    bay_request *request = bay_request_tool(client, "count", "{\"to\":5}");
    bay_request_on_progress(request, count_progress, &seen);
    assert_int_equal(bay_request_run(request, &reply, &diag), BAY_OK);
    assert_true(holds(bay_reply_text(reply, 0), "Counted to 5."));
    assert_int_equal(seen, 5);
    bay_reply_free(reply);
    request = bay_request_tool(client, "count", "{\"to\":1000}");
    bay_request_timeout(request, 100, 100);
    assert_int_equal(bay_request_run(request, &reply, &diag), BAY_ERR_TIMEOUT);
    bay_client_close(client);
}

static void agree(bay_question *question, void *user)
{
    bay_diag diag;
    (void)user;
    assert_int_equal(bay_question_accept(question, NULL, &diag), BAY_OK);
}

static void parrot(bay_question *question, void *user)
{
    (void)user;
    bay_question_reply(question, "parrot", "A whale wins.");
}

static void questions_are_asked_in_either_era(void **state)
{
    static const char *const revisions[] = {"2025-11-25", "2026-07-28"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        bay_client_options *options = bay_client_options_new();
        bay_client_options_revisions(options, revisions[i], revisions[i]);
        bay_client_options_elicitation(options, BAY_ELICITATION_FORM, agree, NULL);
        bay_client_options_sampling(options, NULL, parrot, NULL);
        bay_client_options_root(options, "file:///music", "Music");
        bay_client *client = begin("questions", options);
        assert_true(holds(bay_client_revision(client), revisions[i]));
        expect_json(call(client, "delete_all", NULL), "because: spring cleaning");
        expect_json(call(client, "sum_up", NULL), "A whale wins.");
        expect_json(call(client, "list_roots", NULL), "file:///music");
        bay_client_close(client);
    }
    bay_client *client = begin("questions", NULL); /* one that cannot be asked */
    expect_json(call(client, "delete_all", NULL), "nobody agreed");
    expect_json(call(client, "sum_up", NULL), "No summary");
    bay_client_close(client);
}

static void updated(bay_client *client, bay_str uri, void *user)
{
    (void)client;
    *(bool *)user = holds(uri, "counter://visits");
}

static void resources_are_read_and_watched(void **state)
{
    bool is_told = false;
    bay_reply *reply = NULL;
    bay_diag diag;
    bay_client_options *options = bay_client_options_new();
    bay_client_options_on_updated(options, updated, &is_told);
    bay_client *client = begin("resources", options);
    (void)state;
    assert_int_equal(bay_client_read(client, "text://motto", &reply, &diag), BAY_OK);
    expect_json(reply, "Plug anything");
    assert_int_equal(bay_client_read(client, "square://12", &reply, &diag), BAY_OK);
    expect_json(reply, "144");
    assert_int_equal(bay_client_read(client, "square://twelve", &reply, &diag), BAY_ERR_REMOTE);
    assert_int_equal(bay_client_subscribe(client, "counter://visits", &diag), BAY_OK);
    expect_json(call(client, "visit", NULL), "Welcome");
    for (int i = 0; i < 100 && !is_told; i++) {
        assert_int_equal(bay_client_wait(client, 100), BAY_OK);
    }
    assert_true(is_told);
    bay_client_close(client);
}

static void prompts_are_filled_in_and_completed(void **state)
{
    bay_reply *reply = NULL;
    bay_diag diag;
    bay_client *client = begin("prompts", NULL);
    (void)state;
    assert_int_equal(bay_client_prompt(client, "translate",
                                       "{\"language\":\"Greek\",\"text\":\"sea\"}", &reply, &diag),
                     BAY_OK);
    assert_int_equal(bay_reply_count(reply), 2);
    assert_true(
        holds(bay_reply_text(reply, 0), "Translate into Greek, as a newspaper would say it: sea"));
    assert_true(holds(bay_reply_role(reply, 1), "assistant"));
    bay_reply_free(reply);
    assert_int_equal(bay_client_complete(client, "translate", "language", "G", &reply, &diag),
                     BAY_OK);
    assert_int_equal(bay_reply_count(reply), 3);
    assert_true(holds(bay_reply_text(reply, 2), "Gujarati"));
    bay_reply_free(reply);
    assert_int_equal(bay_client_complete(client, "translate", "style", "a p", &reply, &diag),
                     BAY_OK);
    assert_int_equal(bay_reply_count(reply), 1);
    assert_true(holds(bay_reply_text(reply, 0), "a pirate"));
    bay_reply_free(reply);
    bay_client_close(client);
}

static void a_task_outlives_its_server(void **state)
{
    char folder[] = "/tmp/bay-example-XXXXXX";
    char id[64];
    bay_reply *reply = NULL;
    bay_diag diag;
    (void)state;
    assert_non_null(mkdtemp(folder));
    bay_client_options *options = bay_client_options_new();
    bay_client_options_directory(options, folder);
    bay_client *client = begin("tasks", options);
    bay_request *request = bay_request_tool(client, "bake", NULL);
    bay_request_return_immediately(request);
    assert_int_equal(bay_request_run(request, &reply, &diag), BAY_OK);
    assert_int_equal(bay_reply_task_state(reply), BAY_TASK_STATE_WORKING);
    (void)snprintf(id, sizeof(id), "%.*s", BAY_STR(bay_reply_task(reply)));
    bay_reply_free(reply);
    bay_client_close(client);

    options = bay_client_options_new();
    bay_client_options_directory(options, folder);
    client = begin("tasks", options);
    if (bay_client_task_wait(client, id, &reply, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    expect_json(reply, "One loaf of bread.");
    expect_json(call(client, "bake", NULL), "One loaf of bread."); /* waited for as any answer */
    bay_client_close(client);
    static const char *const names[] = {"tasks.db", "tasks.db-wal", "tasks.db-shm"};
    for (size_t i = 0; i < 3; i++) {
        char path[128];
        (void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
}

static void a_skill_is_read_and_verified(void **state)
{
    bay_list *list = NULL;
    bay_reply *reply = NULL;
    bay_diag diag;
    bay_client *client = begin("skills", NULL);
    (void)state;
    assert_int_equal(bay_client_list(client, BAY_KIND_SKILLS, &list, &diag), BAY_OK);
    assert_int_equal(bay_list_count(list), 1);
    assert_true(holds(bay_list_name(list, 0), "sourdough"));
    bay_list_free(list);
    if (bay_client_skill_file(client, "sourdough", "references/amounts.md", &reply, &diag) !=
        BAY_OK) {
        fail_msg("%s", diag.text);
    }
    expect_json(reply, "Flour 100");
    bay_client_close(client);
}

static void an_app_names_its_page(void **state)
{
    bay_list *list = NULL;
    bay_reply *reply = NULL;
    bay_diag diag;
    bay_client *client = begin("apps", NULL);
    (void)state;
    assert_int_equal(bay_client_list(client, BAY_KIND_TOOLS, &list, &diag), BAY_OK);
    assert_true(holds(bay_list_ui(list, 0), "ui://dice"));
    bay_list_free(list);
    assert_int_equal(bay_client_read(client, "ui://dice", &reply, &diag), BAY_OK);
    assert_true(holds(bay_reply_mime_type(reply, 0), "text/html;profile=mcp-app"));
    expect_json(reply, "<!doctype html>");
    expect_json(call(client, "roll", NULL), "\"eyes\":");
    bay_client_close(client);
}

static void has_changed(bay_client *client, bay_kind kind, void *user)
{
    (void)client;
    *(bool *)user = *(bool *)user || kind == BAY_KIND_TOOLS;
}

static void tools_come_and_go(void **state)
{
    bool is_told = false;
    bay_list *list = NULL;
    bay_reply *reply = NULL;
    bay_diag diag;
    bay_client_options *options = bay_client_options_new();
    bay_client_options_on_changed(options, has_changed, &is_told);
    bay_client *client = begin("changes", options);
    (void)state;
    assert_int_equal(bay_client_list(client, BAY_KIND_TOOLS, &list, &diag), BAY_OK);
    assert_int_equal(bay_list_count(list), 1);
    bay_list_free(list);
    assert_int_equal(bay_client_call(client, "open_safe", NULL, &reply, &diag), BAY_ERR_REMOTE);
    expect_json(call(client, "set_lock", "{\"locked\":false}"), "Unlocked");
    for (int i = 0; i < 100 && !is_told; i++) {
        assert_int_equal(bay_client_wait(client, 100), BAY_OK);
    }
    assert_int_equal(bay_client_list(client, BAY_KIND_TOOLS, &list, &diag), BAY_OK);
    assert_int_equal(bay_list_count(list), 2);
    bay_list_free(list);
    expect_json(call(client, "open_safe", NULL), "Gold.");
    bay_client_close(client);
}

static void an_extension_has_methods_of_its_own(void **state)
{
    bay_reply *reply = NULL;
    bay_diag diag;
    (void)state;
    bay_client *client = begin("extension", NULL);
    assert_true(bay_client_has(client, "extensions.com.example/clock"));
    assert_int_equal(bay_client_request(client, "com.example/clock/get", NULL, &reply, &diag),
                     BAY_ERR_REMOTE);
    bay_client_close(client);
    bay_client_options *options = bay_client_options_new();
    bay_client_options_extension(options, "com.example/clock", NULL);
    client = begin("extension", options);
    if (bay_client_request(client, "com.example/clock/get", NULL, &reply, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    expect_json(reply, "\"seconds\":");
    bay_client_close(client);
}

/* ---- the example clients, as programs */

static void run(const char *command, int expected, const char *part)
{
    char line[1024];
    char out[16384];
    (void)snprintf(line, sizeof(line), "cd '" EXAMPLES "' && %s 2>&1", command);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    size_t len = 0;
    ssize_t got;
    while (len < sizeof(out) - 1 && (got = read(ends[0], out + len, sizeof(out) - 1 - len)) > 0) {
        len += (size_t)got;
    }
    out[len] = '\0';
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WEXITSTATUS(status) != expected || strstr(out, part) == NULL) {
        fail_msg("%s: status %d, \"%s\" lacks \"%s\"", command, WEXITSTATUS(status), out, part);
    }
}

static void the_example_clients_do_as_they_say(void **state)
{
    (void)state;
    run("./in_process", 0, "42\n");
    run("./client_requests stdio:./progress", 0, "third: ");
    run("./client_requests stdio:./progress", 0, "first: Counted to 3.");
    run("./client_lists stdio:./resources", 0, "2 resources");
    run("./client_lists stdio:./nothing", 1, "./nothing");
    run("echo no | ./client_questions stdio:./questions delete_all", 1, "nobody agreed");
    run("echo '{\"reason\":\"rust\"}' | ./client_questions stdio:./questions delete_all", 0,
        "because: rust");
    run("./client_questions stdio:./questions list_roots '{}' file:///a", 0, "file:///a");
    run("./client_tasks stdio:./weather list_cities", 0, "No task: ");
    run("./client_tasks", 1, "usage: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_content_arrives),
        cmocka_unit_test(arguments_and_results_keep_their_schemas),
        cmocka_unit_test(slow_work_reports_and_is_cancelled),
        cmocka_unit_test(questions_are_asked_in_either_era),
        cmocka_unit_test(resources_are_read_and_watched),
        cmocka_unit_test(prompts_are_filled_in_and_completed),
        cmocka_unit_test(a_task_outlives_its_server),
        cmocka_unit_test(a_skill_is_read_and_verified),
        cmocka_unit_test(an_app_names_its_page),
        cmocka_unit_test(tools_come_and_go),
        cmocka_unit_test(an_extension_has_methods_of_its_own),
        cmocka_unit_test(the_example_clients_do_as_they_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

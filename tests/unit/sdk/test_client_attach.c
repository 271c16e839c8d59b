/* A client and a server in one process: every revision, progress, log messages, questions without
 * handlers, the end of one before the other, and every lack of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "patchbay/server.h"
#include "sdk/client_parts.h"
#include "sdk/server_parts.h"
#include "support/failing_memory.h"

static const char *const revisions[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25",
                                        "2026-07-28"};

static void echo(bay_call *call, void *user)
{
    (void)user;
    bay_call_progress(call, 1, 2, "half \"way\"");
    bay_call_log(call, "warning", "look out");
    bay_call_replyf(call, "got %.*s", BAY_STR(bay_call_str(call, "text")));
}

static void fails(bay_call *call, void *user)
{
    (void)user;
    bay_call_fail(call, "no luck");
}

static void waits(bay_call *call, void *user)
{
    bay_call **kept = user;
    *kept = bay_call_defer(call);
}

static void reads(bay_call *call, void *user)
{
    (void)user;
    bay_call_reply(call, "contents");
}

static void completes(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_str town = bay_call_context(call, "town");
    bay_result_value_str(result, town.at != NULL ? town : STR("alpha"));
    bay_call_finish(call, result);
}

static bay_server *make_server(bay_call **kept)
{
    bay_server *server = bay_server_new("local", "1.0.0");
    bay_server_tool_schema(server, "echo", "Says it again.",
                           "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}}}",
                           echo, NULL);
    bay_server_tool_schema(server, "fails", "Fails.", "{\"type\":\"object\"}", fails, NULL);
    bay_server_tool_schema(server, "waits", "Waits.", "{\"type\":\"object\"}", waits, kept);
    bay_server_resource(server, "x:a", "a", "A.", "text/plain", reads, NULL);
    bay_server_prompt(server, "greet", "Greets.",
                      (const bay_field[]){{.name = "who", .type = BAY_TYPE_STRING}, {0}}, completes,
                      NULL);
    bay_server_completion(server, completes, NULL);
    return server;
}

static bay_client *attach(bay_server *server, const char *revision)
{
    bay_client *client = NULL;
    bay_diag diag = {0};
    bay_client_options *options = bay_client_options_new();
    bay_client_options_revisions(options, revision, revision);
    bay_client_options_reconnect(options, 1, 1);
    if (bay_client_attach(server, options, &client, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    bay_client_options_free(options);
    return client;
}

typedef struct heard {
    int progress;
    int logs;
    int ends;
    double total;
    char message[64];
    bay_err err;
    char text[64];
} heard;

static void on_progress(bay_request *request, double progress, double total, bay_str message,
                        void *user)
{
    heard *self = user;
    (void)request, (void)progress;
    self->progress++;
    self->total = total;
    snprintf(self->message, sizeof(self->message), "%.*s", BAY_STR(message));
}

static void on_log(bay_request *request, bay_str params, void *user)
{
    heard *self = user;
    (void)request;
    self->logs += memmem(params.at, params.len, "look out", 8) != NULL;
}

static void on_done(bay_request *request, bay_reply *reply, const bay_diag *diag, void *user)
{
    heard *self = user;
    (void)request;
    self->ends++;
    self->err = diag->code;
    snprintf(self->text, sizeof(self->text), "%.*s", BAY_STR(bay_reply_text(reply, 0)));
    bay_reply_free(reply);
}

static void no_server_is_refused(void **state)
{
    bay_client *client = NULL;
    bay_diag diag = {0};
    (void)state;
    assert_int_equal(bay_client_attach(NULL, NULL, &client, &diag), BAY_ERR_NOMEM);
    bay_server *server = make_server(NULL);
    bay_client_options *options = bay_client_options_new();
    bay_server_revisions(server, "2026-07-28", NULL);
    bay_client_options_revisions(options, NULL, "2025-11-25");
    assert_int_equal(bay_client_attach(server, options, &client, &diag), BAY_ERR_VERSION);
    bay_client_options_free(options);
    bay_server_free(server);
    server = bay_server_new("bad", "1");
    bay_server_tool_schema(server, "a tool", "", "{}", reads,
                           NULL); /* no name, no schema of an object */
    assert_int_equal(bay_client_attach(server, NULL, &client, &diag), BAY_ERR_INVALID);
    assert_null(client);
    bay_server_free(server);
}

static void every_revision_works(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(revisions); i++) {
        bay_call *kept = NULL;
        bay_server *server = make_server(&kept);
        bay_client *client = attach(server, revisions[i]);
        bay_reply *reply = NULL;
        bay_diag diag = {0};
        heard seen = {.total = -1};
        assert_true(str_eq(bay_client_revision(client), str_of(revisions[i])));
        bay_request *request = bay_request_tool(client, "echo", "{\"text\":\"x\"}");
        bay_request_on_progress(request, on_progress, &seen);
        bay_request_on_log(request, "info", on_log, &seen);
        bay_request_meta(request, "{\"com.example/a\":1}");
        if (bay_request_run(request, &reply, &diag) != BAY_OK) {
            fail_msg("%s: %s", revisions[i], diag.text);
        }
        assert_true(str_eq(bay_reply_text(reply, 0), STR("got x")));
        bay_reply_free(reply);
        assert_int_equal(seen.progress, 1);
        assert_true(seen.total > 1.9 && seen.total < 2.1);
        assert_int_equal(seen.logs, 1);
        assert_int_equal(bay_client_call(client, "fails", NULL, &reply, &diag), BAY_OK);
        assert_true(bay_reply_is_error(reply));
        bay_reply_free(reply);
        assert_int_equal(bay_client_call(client, "none", NULL, &reply, &diag), BAY_ERR_REMOTE);
        assert_true(bay_client_remote_error(client).len > 0);
        assert_int_equal(bay_client_read(client, "x:a", &reply, &diag), BAY_OK);
        assert_true(str_eq(bay_reply_text(reply, 0), STR("contents")));
        bay_reply_free(reply);
        assert_int_equal(bay_client_remote_error(client).len, 0);
        assert_int_equal(bay_client_read(client, "x:b", &reply, &diag), BAY_ERR_REMOTE);
        assert_int_equal(bay_client_complete(client, "greet", "who", "a", &reply, &diag), BAY_OK);
        assert_true(str_eq(bay_reply_text(reply, 0), STR("alpha")));
        bay_reply_free(reply);
        for (size_t k = 0; k < 4; k++) {
            static const char *const bad[] = {NULL, "[]", "{\"a\":1}", "{"};
            assert_int_equal(bay_client_complete_json(client, "greet", "who", "a",
                                                      bay_json_of(bad[k]), &reply, &diag),
                             BAY_ERR_INVALID);
            assert_non_null(strstr(diag.text, k == 2 ? "context: \"a\" is no string"
                                                     : "context is no JSON object"));
        }
        assert_int_equal(bay_client_complete_json(client, "greet", "who", "a",
                                                  bay_json_of("{\"town\":\"x\\u0041\"}"), &reply,
                                                  &diag),
                         BAY_OK);
        bool is_read = strcmp(revisions[i], "2025-06-18") >= 0;
        assert_true(str_eq(bay_reply_text(reply, 0), is_read ? STR("xA") : STR("alpha")));
        bay_reply_free(reply);
        bay_list *made = NULL;
        assert_int_equal(bay_client_list(client, BAY_KIND_TOOLS, &made, &diag), BAY_OK);
        assert_int_equal(bay_list_count(made), 3);
        bay_list_free(made);
        assert_int_equal(bay_client_ping(client, &diag), BAY_OK);
        bay_client_close(client);
        bay_server_free(server);
    }
}

static void a_context_above_its_bound_is_refused(void **state)
{
    bay_call *kept = NULL;
    bay_reply *reply = NULL;
    bay_diag diag = {0};
    (void)state;
    bay_server *server = make_server(&kept);
    bay_client *client = attach(server, "2026-07-28");
    char *text = malloc(COMPLETION_CONTEXT_BYTES);
    assert_non_null(text);
    memset(text, 'x', COMPLETION_CONTEXT_BYTES);
    for (size_t more = 0; more < 2; more++) {
        size_t len = COMPLETION_CONTEXT_BYTES - strlen("{\"d\":\"\"}") + more;
        bay_json *context = bay_json_new();
        bay_json_object(context, NULL);
        bay_json_text_str(context, "d", (bay_str){text, len});
        bay_json_end(context);
        assert_int_equal(
            bay_client_complete_json(client, "greet", "who", "a", context, &reply, &diag),
            more == 0 ? BAY_OK : BAY_ERR_REMOTE);
        if (more == 0) {
            bay_reply_free(reply);
        }
    }
    assert_non_null(strstr(diag.text, "context.arguments is larger than 1 MiB"));
    free(text);
    bay_client_close(client);
    bay_server_free(server);
}

static void bad_settings_of_a_request_are_told(void **state)
{
    bay_call *kept = NULL;
    bay_reply *reply = NULL;
    bay_diag diag = {0};
    (void)state;
    bay_server *server = make_server(&kept);
    bay_client *client = attach(server, "2026-07-28");
    bay_request *request = bay_request_tool(client, "echo", NULL);
    bay_request_on_log(request, "shouting", on_log, NULL);
    assert_int_equal(bay_request_run(request, &reply, &diag), BAY_ERR_INVALID);
    request = bay_request_tool(client, "echo", NULL);
    bay_request_meta(request, "7");
    assert_int_equal(bay_request_run(request, &reply, &diag), BAY_ERR_INVALID);
    assert_non_null(strstr(diag.text, "_meta"));
    bay_request_on_log(NULL, NULL, NULL, NULL);
    bay_request_on_progress(NULL, NULL, NULL);
    bay_request_meta(NULL, NULL);
    bay_request_timeout(NULL, 1, 1);
    bay_request_return_immediately(NULL);
    bay_request_free(NULL);
    assert_null(bay_request_new(NULL, "a", NULL));
    assert_null(bay_request_new(client, NULL, NULL));
    assert_null(bay_request_tool(client, NULL, NULL));
    bay_client_close(client);
    bay_server_free(server);
}

static void clients_of_one_server_share_its_loop(void **state)
{
    bay_call *kept = NULL;
    heard seen = {0};
    bay_reply *reply = NULL;
    (void)state;
    bay_server *server = make_server(&kept);
    bay_client *one = attach(server, "2025-11-25");
    bay_client *other = attach(server, "2026-07-28");
    assert_int_equal(bay_request_start(bay_request_tool(one, "waits", NULL), NULL, on_done, &seen),
                     BAY_OK);
    assert_int_equal(bay_client_call(other, "echo", NULL, &reply, NULL), BAY_OK);
    bay_reply_free(reply);
    while (kept == NULL) {
        assert_int_equal(bay_client_wait(other, 5), BAY_OK);
    }
    bay_call_reply(kept, "at last");
    while (seen.ends == 0) {
        assert_int_equal(bay_client_wait(other, 5), BAY_OK);
    }
    assert_string_equal(seen.text, "at last");
    bay_client_close(one);
    assert_int_equal(bay_client_call(other, "echo", NULL, &reply, NULL), BAY_OK);
    bay_reply_free(reply);
    bay_client_close(other);
    bay_server_free(server);
}

static void a_close_ends_what_is_open(void **state)
{
    bay_call *kept = NULL;
    heard seen = {0};
    (void)state;
    bay_server *server = make_server(&kept);
    bay_client *client = attach(server, "2026-07-28");
    assert_int_equal(
        bay_request_start(bay_request_tool(client, "waits", NULL), NULL, on_done, &seen), BAY_OK);
    while (kept == NULL) {
        assert_int_equal(bay_client_wait(client, 5), BAY_OK);
    }
    bay_call_reply(kept, "too late"); /* not heard any more */
    bay_client_close(client);
    assert_int_equal(seen.ends, 1);
    assert_int_equal(seen.err, BAY_ERR_CANCELLED);
    bay_server_free(server);
}

/* ---- memory -----------------------------------------------------------------------------------
 */

static void assert_expected(bay_err err, const bay_diag *diag)
{
    /* what a lack of memory on the other side of the process looks like from here */
    bool is_expected = err == BAY_OK || err == BAY_ERR_NOMEM || err == BAY_ERR_CLOSED ||
                       err == BAY_ERR_REMOTE || err == BAY_ERR_PROTOCOL || err == BAY_ERR_LIMIT ||
                       err == BAY_ERR_TIMEOUT || err == BAY_ERR_VERSION;
    if (!is_expected) {
        fail_msg("%d: %s", (int)err, diag->text);
    }
}

/* True: everything went well. */
static bool live_once(bay_server *server, const char *revision)
{
    bay_client *client = NULL;
    bay_reply *reply = NULL;
    bay_list *made = NULL;
    bay_diag diag = {0};
    bay_client_options *options = bay_client_options_new();
    bay_client_options_revisions(options, revision, revision);
    bay_client_options_reconnect(options, 1, 1);
    bay_client_options_timeout(options, 100, 200);
    bay_client_options_root(options, "file:///a", "a");
    bay_err err =
        options != NULL ? bay_client_attach(server, options, &client, &diag) : BAY_ERR_NOMEM;
    bay_client_options_free(options);
    assert_expected(err, &diag);
    if (err != BAY_OK) {
        assert_null(client);
        return false;
    }
    err = bay_client_list(client, BAY_KIND_TOOLS, &made, &diag);
    assert_expected(err, &diag);
    assert_true((err == BAY_OK) == (made != NULL));
    bool is_well = err == BAY_OK && bay_list_count(made) == 3;
    bay_list_free(made);
    err = bay_client_call(client, "echo", "{\"text\":\"x\\n\"}", &reply, &diag);
    assert_expected(err, &diag);
    assert_true((err == BAY_OK) == (reply != NULL));
    is_well = is_well && err == BAY_OK && str_eq(bay_reply_text(reply, 0), STR("got x\n"));
    bay_reply_free(reply);
    bay_client_close(client);
    return is_well;
}

static void every_lack_of_memory_is_an_error(void **state)
{
    static const char *const eras[] = {"2025-11-25", "2026-07-28"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        for (size_t at = 0; failing_memory_start(at); at++) {
            bay_call *kept = NULL;
            bay_server *server = make_server(&kept);
            bool is_well = live_once(server, eras[i]);
            assert_true(is_well || failing_memory.has_failed);
            bay_server_free(server);
            failing_memory_check();
        }
    }
}

/* … and a client that met one goes on. */
static void one_lack_of_memory_harms_one_thing_only(void **state)
{
    static const char *const eras[] = {"2025-11-25", "2026-07-28"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        for (size_t at = 0; failing_memory_start_single(at); at++) {
            bay_call *kept = NULL;
            bay_server *server = make_server(&kept);
            bool is_well = live_once(server, eras[i]);
            assert_true(is_well || failing_memory.has_failed);
            bay_server_free(server);
            failing_memory_check();
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_server_is_refused),
        cmocka_unit_test(every_revision_works),
        cmocka_unit_test(a_context_above_its_bound_is_refused),
        cmocka_unit_test(bad_settings_of_a_request_are_told),
        cmocka_unit_test(clients_of_one_server_share_its_loop),
        cmocka_unit_test(a_close_ends_what_is_open),
        cmocka_unit_test(every_lack_of_memory_is_an_error),
        cmocka_unit_test(one_lack_of_memory_harms_one_thing_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

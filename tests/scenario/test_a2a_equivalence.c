/* The same operation by three bindings and in four dialects ends in the same task: an agent on a
 * thread of its own, callers of each form, and what the task is in 1.0 afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "json/json.h"
#include "json/writer.h"

#include <cmocka.h>

#include "support/skipped.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "patchbay/agent.h"
#include "patchbay/caller.h"

static bay_agent *agent;
static pthread_t agent_thread;
static char address[64];

typedef struct form {
    const char *binding, *version;
} form;

/* The first is what the others are held against. */
static const form forms[] = {
    {"JSONRPC", "1.0"},   {"HTTP+JSON", "1.0"}, {"JSONRPC", "0.3"},
    {"HTTP+JSON", "0.3"}, {"JSONRPC", "0.2"},   {"JSONRPC", "0.1"},
#ifndef BAY_NO_HTTP2
    {"GRPC", "1.0"},      {"GRPC", "0.3"},
#endif
};

enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

/* ---- the agent ------------------------------------------------------------------------------- */

static void write_everything(bay_task *task)
{
    bay_task_status(task, BAY_TASK_STATE_WORKING, "working");
    bay_artifact *text = bay_task_artifact(task, "text", "text/plain");
    bay_artifact_append(text, "first, ");
    bay_artifact_append(text, "second");
    bay_artifact_close(text);
    bay_artifact *file = bay_task_artifact(task, "file.bin", "application/octet-stream");
    bay_artifact_append_bytes(file, "\0\1\2", 3);
    bay_artifact_append_url(file, "https://example.com/file.bin");
    bay_artifact_close(file);
    bay_artifact *data = bay_task_artifact(task, "data", NULL);
    bay_artifact_append_data(data, "{\"a\":[1,null,{\"b\":2.50}]}");
    bay_task_complete(task, "done");
}

static void handle(bay_task *task, const bay_message *message, void *user)
{
    bay_str text = bay_message_text(message);
    (void)user;
    if (str_eq(text, STR("ask"))) {
        bay_task_ask(task, "what?");
    } else if (str_eq(text, STR("reject"))) {
        bay_task_reject(task, "no");
    } else if (str_eq(text, STR("wait"))) {
        bay_task_status(task, BAY_TASK_STATE_WORKING, NULL);
        (void)bay_task_sleep(task, 3600000);
    } else {
        write_everything(task);
    }
}

static void *serve(void *argument)
{
    (void)argument;
    return bay_agent_run(agent, NULL) == BAY_OK ? NULL : agent;
}

static int begin(void **state)
{
    (void)state;
    agent = bay_agent_new("same", "1.0.0", "The same to everybody.");
    bay_agent_skill(agent, "same", "Same", "Does what the text says.", handle, NULL);
    if (bay_agent_listen(agent, "127.0.0.1:0", NULL) != BAY_OK) {
        return -1;
    }
    snprintf(address, sizeof(address), "http://127.0.0.1:%u", bay_agent_port(agent));
    return pthread_create(&agent_thread, NULL, serve, NULL);
}

static int end(void **state)
{
    void *failed = NULL;
    (void)state;
    bay_agent_stop(agent);
    pthread_join(agent_thread, &failed);
    bay_agent_free(agent);
    return failed == NULL ? 0 : -1;
}

/* ---- callers --------------------------------------------------------------------------------- */

static bay_caller *connect_as(const form *as)
{
    bay_caller *caller = NULL;
    bay_diag diag;
    bay_caller_options *options = bay_caller_options_new();
    bay_caller_options_interface(options, as->binding, as->version);
    if (bay_caller_connect(address, options, &caller, &diag) != BAY_OK) {
        fail_msg("%s %s: %s", as->binding, as->version, diag.text);
    }
    bay_caller_options_free(options);
    assert_true(str_eq(bay_caller_binding(caller), str_of(as->binding)));
    return caller;
}

static bay_caller_reply *run(const form *as, bay_caller_request *operation)
{
    bay_caller_reply *response = NULL;
    bay_diag diag;
    if (bay_caller_request_run(operation, &response, &diag) != BAY_OK) {
        fail_msg("%s %s: %s", as->binding, as->version, diag.text);
    }
    return response;
}

/* ---- what is the same ------------------------------------------------------------------------ */

static bool is_random(bay_str key)
{
    static const bay_str keys[] = {STR_INIT("id"),        STR_INIT("taskId"),
                                   STR_INIT("contextId"), STR_INIT("messageId"),
                                   STR_INIT("timestamp"), STR_INIT("artifactId")};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (str_eq(key, keys[i])) {
            return true;
        }
    }
    return false;
}

static void write_same(json_writer *out, json_val value)
{
    json_iter it = json_iter_of(value);
    if (json_is(value, JSON_OBJECT)) {
        json_open_object(out);
        while (json_next(&it)) {
            bay_str key = STR("");
            assert_true(json_str_plain(it.key, &key));
            if (!is_random(key)) {
                json_key(out, key);
                write_same(out, it.value);
            }
        }
        json_close_object(out);
    } else if (json_is(value, JSON_ARRAY)) {
        json_open_array(out);
        while (json_next(&it)) {
            write_same(out, it.value);
        }
        json_close_array(out);
    } else {
        json_put_val(out, value);
    }
}

/* The task as a caller of 1.0 sees it, without what is random. */
static void read_back(const char *id, buf *out)
{
    bay_caller_reply *response = NULL;
    bay_diag diag;
    json_doc doc;
    arena memory;
    json_writer writer;
    bay_caller *caller = connect_as(&forms[0]);
    if (bay_caller_task(caller, id, -1, &response, &diag) != BAY_OK) {
        fail_msg("%s: %s", id, diag.text);
    }
    arena_init(&memory, 1 << 24);
    assert_int_equal(json_parse(&doc, bay_caller_reply_json(response), NULL, &memory, NULL),
                     BAY_OK);
    json_val root = json_root(&doc);
    json_val task = json_get(root, STR("task"));
    json_writer_init(&writer, out);
    write_same(&writer, json_is(task, JSON_OBJECT) ? task : root);
    assert_int_equal(out->err, BAY_OK);
    arena_fini(&memory);
    bay_caller_reply_free(response);
    bay_caller_close(caller);
}

static void keep_id(const bay_caller_reply *response, char out[64])
{
    snprintf(out, 64, "%.*s", BAY_STR(bay_caller_reply_task(response)));
    assert_true(out[0] != '\0');
}

/* Does something as that form; the id of the task that came of it. */
typedef void (*doing)(const form *as, bay_caller *caller, char out_id[64]);

static void everybody_gets_the_same(doing act, const char *part)
{
    buf first;
    buf_init(&first, 1 << 20);
    for (size_t i = 0; i < FORMS; i++) {
        char id[64];
        buf now;
        buf_init(&now, 1 << 20);
        bay_caller *caller = connect_as(&forms[i]);
        act(&forms[i], caller, id);
        bay_caller_close(caller);
        read_back(id, &now);
        if (i == 0) {
            buf_str(&first, buf_view(&now));
            assert_non_null(memmem(now.at, now.len, part, strlen(part)));
        } else if (!str_eq(buf_view(&first), buf_view(&now))) {
            fail_msg("%s %s:\n%.*s\nin place of\n%.*s", forms[i].binding, forms[i].version,
                     BAY_STR(buf_view(&now)), BAY_STR(buf_view(&first)));
        }
        buf_fini(&now);
    }
    buf_fini(&first);
}

static void send(const form *as, bay_caller *caller, char out_id[64])
{
    bay_caller_reply *response = run(as, bay_caller_request_send_text(caller, "go"));
    assert_int_equal(bay_caller_reply_state(response), BAY_TASK_STATE_COMPLETED);
    assert_true(str_eq(bay_caller_reply_text(response), STR("done")));
    assert_int_equal(bay_caller_reply_artifact_count(response), 3);
    assert_true(
        str_eq(bay_message_text(bay_caller_reply_artifact(response, 0)), STR("first, second")));
    assert_memory_equal(bay_message_part(bay_caller_reply_artifact(response, 1), 0).at, "\0\1\2",
                        3);
    keep_id(response, out_id);
    bay_caller_reply_free(response);
}

static void count_events(bay_caller_request *request, const bay_caller_reply *event, void *user)
{
    (void)request;
    int *counts = user;
    counts[bay_caller_reply_kind_of(event)]++;
}

static void follow(const form *as, bay_caller *caller, char out_id[64])
{
    int counts[16] = {0};
    bay_caller_request *operation = bay_caller_request_send_text(caller, "go");
    bay_caller_request_on_event(operation, count_events, counts);
    bay_caller_reply *response = run(as, operation);
    assert_int_equal(counts[BAY_CALLER_REPLY_KIND_ARTIFACT], 5);
    assert_int_equal(bay_caller_reply_state(response), BAY_TASK_STATE_COMPLETED);
    assert_int_equal(bay_caller_reply_artifact_count(response), 3);
    keep_id(response, out_id);
    bay_caller_reply_free(response);
}

static void ask_and_answer(const form *as, bay_caller *caller, char out_id[64])
{
    bay_caller_reply *response = run(as, bay_caller_request_send_text(caller, "ask"));
    assert_int_equal(bay_caller_reply_state(response), BAY_TASK_STATE_INPUT_REQUIRED);
    keep_id(response, out_id);
    bay_caller_reply_free(response);
    bay_caller_request *answer = bay_caller_request_send_text(caller, "answer");
    bay_caller_request_for_task(answer, out_id);
    response = run(as, answer);
    assert_int_equal(bay_caller_reply_state(response), BAY_TASK_STATE_COMPLETED);
    bay_caller_reply_free(response);
}

static void be_rejected(const form *as, bay_caller *caller, char out_id[64])
{
    bay_caller_reply *response = run(as, bay_caller_request_send_text(caller, "reject"));
    keep_id(response, out_id);
    bay_caller_reply_free(response);
}

static void cancel(const form *as, bay_caller *caller, char out_id[64])
{
    bay_caller_request *operation = bay_caller_request_send_text(caller, "wait");
    bay_caller_request_return_immediately(operation);
    bay_caller_reply *response = run(as, operation);
    keep_id(response, out_id);
    bay_caller_reply_free(response);
    response = run(as, bay_caller_request_task_cancel(caller, out_id));
    assert_int_equal(bay_caller_reply_state(response), BAY_TASK_STATE_CANCELLED);
    bay_caller_reply_free(response);
}

static void a_message_that_is_waited_for(void **state)
{
    (void)state;
    everybody_gets_the_same(send, "TASK_STATE_COMPLETED");
}

static void a_message_that_is_followed(void **state)
{
    (void)state;
    everybody_gets_the_same(follow, "TASK_STATE_COMPLETED");
}

static void a_question_and_its_answer(void **state)
{
    (void)state;
    everybody_gets_the_same(ask_and_answer, "what?");
}

static void a_refusal(void **state)
{
    (void)state;
    everybody_gets_the_same(be_rejected, "TASK_STATE_REJECTED");
}

static void a_task_that_is_canceled(void **state)
{
    (void)state;
    everybody_gets_the_same(cancel, "TASK_STATE_CANCELED");
}

#ifdef BAY_NO_HTTP2
SKIPPED(all_of_it_by_grpc, "this build has no HTTP/2, which gRPC is")
#endif

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_that_is_waited_for),
        cmocka_unit_test(a_message_that_is_followed),
        cmocka_unit_test(a_question_and_its_answer),
        cmocka_unit_test(a_refusal),
        cmocka_unit_test(a_task_that_is_canceled),
#ifdef BAY_NO_HTTP2
        cmocka_unit_test(all_of_it_by_grpc),
#endif
    };
    return cmocka_run_group_tests(tests, begin, end);
}

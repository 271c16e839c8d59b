/* What the sweeps repeat: a server that has every feature, and a client's session that uses each of
 * them, on the public headers only. The session never fails a test: what each step brought is
 * written down, line by line, and two runs are the same when their lines are. */
#ifndef TESTS_SWEEP_SESSION_H
#define TESTS_SWEEP_SESSION_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <patchbay/client.h>
#include <patchbay/server.h>

static const char *const sweep_revisions[] __attribute__((unused)) = {
    "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"};
enum { SWEEP_REVISIONS = 5, SWEEP_HELD = 16, SWEEP_LINES = 128 * 1024 };

/* ---- the server ------------------------------------------------------------------------------ */

typedef struct sweep_service {
    bay_server *server;
    bay_call *held[SWEEP_HELD];
    int held_count;
} sweep_service;

static inline void sweep_echo(bay_call *call, void *user)
{
    (void)user;
    bay_call_progress(call, 1, 2, "half \"way\"");
    bay_call_log(call, "warning", "look out");
    bay_call_log_json(call, "info", "other", bay_json_of("{\"a\":[1,2.50]}"));
    bay_call_replyf(call, "got %.*s", BAY_STR(bay_call_str(call, "text")));
}

static inline void sweep_all_kinds(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_text(result, "a line\nand \xc3\xa4nother");
    bay_result_annotate(result, "{\"audience\":[\"user\"],\"priority\":0.5}");
    bay_result_image(result, "\x89PNG", 4, "image/png");
    bay_result_audio(result, "RIFF", 4, "audio/wav");
    bay_result_resource(result, "test://text", "text/plain", "embedded");
    bay_result_resource_blob(result, "test://bytes", NULL, "\0\1\2", 3);
    bay_result_link(result, "test://text", "Text", "text/plain");
    bay_result_meta(result, "{\"example.com/a\":1}");
    bay_call_finish(call, result);
}

static inline void sweep_structured(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_structured(result,
                          bay_call_bool_or(call, "right", false) ? "{\"count\":1.50}" : "{}");
    bay_call_finish(call, result);
}

static inline void sweep_fail(bay_call *call, void *user)
{
    (void)user;
    bay_call_fail(call, "no luck");
}

static inline void sweep_error(bay_call *call, void *user)
{
    (void)user;
    bay_call_error_json(call, -32001, "it broke", bay_json_of("{\"why\":\"because\"}"));
}

/* Until "release" is called, or the server is freed. */
static inline void sweep_hold(bay_call *call, void *user)
{
    sweep_service *self = user;
    bay_call_progress(call, 1, -1, "begun");
    if (self->held_count == SWEEP_HELD) {
        bay_call_fail(call, "enough");
        return;
    }
    self->held[self->held_count++] = bay_call_defer(call);
}

static inline int sweep_let_go(sweep_service *self)
{
    int cancelled = 0;
    for (int i = 0; i < self->held_count; i++) {
        cancelled += bay_call_is_cancelled(self->held[i]);
        bay_call_reply(self->held[i], "let go");
    }
    self->held_count = 0;
    return cancelled;
}

static inline void sweep_release(bay_call *call, void *user)
{
    bay_call_replyf(call, "%d were cancelled", sweep_let_go(user));
}

static inline void sweep_touch(bay_call *call, void *user)
{
    sweep_service *self = user;
    bay_server_updated(self->server, "test://text");
    bay_server_changed(self->server, BAY_KIND_TOOLS);
    bay_server_changed(self->server, BAY_KIND_RESOURCES);
    bay_server_changed(self->server, BAY_KIND_PROMPTS);
    bay_server_log(self->server, "error", "touched");
    bay_call_reply(call, "touched");
}

static inline void sweep_told_last(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    bay_call_replyf(call, "%.*s: %d %.*s (%d)", BAY_STR(bay_call_remembered(call)),
                    (int)bay_answer_action(answer), BAY_STR(bay_answer_content(answer)),
                    (int)bay_answer_error(answer));
}

static inline void sweep_told_name(bay_call *call, const bay_answer *answer, void *user)
{
    if (bay_answer_action(answer) != BAY_ACTION_ACCEPT) {
        bay_call_replyf(call, "none (%d)", (int)bay_answer_error(answer));
        return;
    }
    bay_str name = bay_answer_str(answer, "name");
    bay_call_remember(call, name.at, name.len);
    bay_call_elicit_schema(call, "Sure?",
                           "{\"type\":\"object\",\"properties\":{\"sure\":{\"type\":\"boolean\","
                           "\"default\":true}}}",
                           sweep_told_last, user);
}

static inline void sweep_ask_form(bay_call *call, void *user)
{
    bay_call_question_key(call, "name");
    bay_call_elicit_schema(call, "Your name?",
                           "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\","
                           "\"minLength\":1,\"default\":\"Jo\"}},\"required\":[\"name\"]}",
                           sweep_told_name, user);
}

static inline void sweep_told_page(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    bay_call_elicit_complete(call, "e-1");
    bay_call_replyf(call, "page: %d (%d)", (int)bay_answer_action(answer),
                    (int)bay_answer_error(answer));
}

static inline void sweep_ask_page(bay_call *call, void *user)
{
    bay_call_elicit_url(call, "Sign in", "https://example.com/x?y", "e-1", sweep_told_page, user);
}

static inline void sweep_told_words(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    bay_call_replyf(call, "%.*s (%d)", BAY_STR(bay_answer_text(answer)),
                    (int)bay_answer_error(answer));
}

static inline void sweep_ask_model(bay_call *call, void *user)
{
    bay_call_sample(call, "Say \"it\"", 10, sweep_told_words, user);
}

static inline void sweep_told_roots(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    bay_call_replyf(call, "%zu roots, last %.*s", bay_answer_root_count(answer),
                    BAY_STR(bay_answer_root(answer, 1)));
}

static inline void sweep_ask_roots(bay_call *call, void *user)
{
    bay_call_roots(call, sweep_told_roots, user);
}

static inline void sweep_read(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_text_str(result, bay_call_name(call));
    bay_result_cache(result, 1000, true);
    bay_call_finish(call, result);
}

static inline void sweep_read_bytes(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_blob(result, "\0\xff\n", 3);
    bay_call_finish(call, result);
}

static inline void sweep_read_item(bay_call *call, void *user)
{
    (void)user;
    bay_str id = bay_call_variable(call, "id");
    if (id.len == 0 || id.at[0] == 'n') {
        bay_call_not_found(call);
        return;
    }
    bay_call_replyf(call, "item %.*s", BAY_STR(id));
}

static inline void sweep_prompt(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_message(result, "user");
    bay_result_textf(result, "About %.*s", BAY_STR(bay_call_str(call, "topic")));
    bay_result_message(result, "assistant");
    bay_result_image(result, "\x89PNG", 4, "image/png");
    bay_call_finish(call, result);
}

static inline void sweep_complete(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_value(result, "paris");
    bay_result_value(result, "park");
    bay_result_more(result, 7);
    bay_call_finish(call, result);
}

static inline void sweep_method(bay_call *call, void *user)
{
    (void)user;
    bay_call_finish_json(call, bay_json_of(bay_call_has(call, "a") ? "{\"b\":[1]}" : "{}"));
}

static inline void sweep_add_tools(bay_server *server, sweep_service *self)
{
    bay_tool *tool =
        bay_server_tool_schema(server, "echo", "Says it again.",
                               "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\","
                               "\"minLength\":1},\"place\":{\"type\":\"string\",\"x-mcp-header\":"
                               "\"Place\"}},\"required\":[\"text\"]}",
                               sweep_echo, NULL);
    bay_tool_title(tool, "Echo");
    bay_tool_annotations(tool, "{\"readOnlyHint\":true}");
    bay_tool_meta(tool, "{\"example.com/a\":1}");
    bay_tool_ui(tool, "ui://page");
    bay_server_tool_schema(server, "all_kinds", NULL, NULL, sweep_all_kinds, NULL);
    tool = bay_server_tool_schema(server, "structured", NULL, NULL, sweep_structured, NULL);
    bay_tool_output_schema(tool, "{\"type\":\"object\",\"properties\":{\"count\":{\"type\":"
                                 "\"number\"}},\"required\":[\"count\"]}");
    bay_server_tool_schema(server, "fail", NULL, NULL, sweep_fail, NULL);
    bay_server_tool_schema(server, "error", NULL, NULL, sweep_error, NULL);
    bay_server_tool_schema(server, "hold", NULL, NULL, sweep_hold, self);
    bay_server_tool_schema(server, "release", NULL, NULL, sweep_release, self);
    bay_server_tool_schema(server, "touch", NULL, NULL, sweep_touch, self);
    bay_server_tool_schema(server, "ask_form", NULL, NULL, sweep_ask_form, NULL);
    bay_server_tool_schema(server, "ask_page", NULL, NULL, sweep_ask_page, NULL);
    tool = bay_server_tool_schema(server, "ask_model", NULL, NULL, sweep_ask_model, NULL);
    bay_tool_requires(tool, "sampling");
    bay_server_tool_schema(server, "ask_roots", NULL, NULL, sweep_ask_roots, NULL);
    tool = bay_server_tool_schema(server, "task", NULL, NULL, sweep_ask_form, NULL);
    bay_tool_task(tool, BAY_TASK_MODE_OPTIONAL);
    tool = bay_server_tool_schema(server, "long_task", NULL, NULL, sweep_hold, self);
    bay_tool_task(tool, BAY_TASK_MODE_OPTIONAL);
}

/* NULL, or one that lacks something and says so when it is checked: out of memory. */
static inline bay_server *sweep_server_new(sweep_service *self)
{
    bay_server *server = bay_server_new("sweep", "1.0");
    *self = (sweep_service){.server = server};
    bay_server_title(server, "Swept");
    bay_server_instructions(server, "Ask \"away\".");
    bay_server_set(server, BAY_SERVER_SETTING_PAGE_SIZE, 5);
    bay_server_set(server, BAY_SERVER_SETTING_TASK_POLL_MS, 1);
    sweep_add_tools(server, self);
    bay_server_resource(server, "test://text", "text", "A text", "text/plain", sweep_read, NULL);
    bay_server_resource(server, "test://bytes", "bytes", NULL, NULL, sweep_read_bytes, NULL);
    bay_server_template(server, "test://item/{id}", "item", NULL, NULL, sweep_read_item, NULL);
    bay_server_ui(server, "ui://page", "page", "<p>page</p>", "{\"prefersBorder\":true}");
    bay_server_prompt(
        server, "about", "A prompt",
        (const bay_field[]){{.name = "topic", .type = BAY_TYPE_STRING, .is_required = true}, {0}},
        sweep_prompt, NULL);
    bay_server_completion(server, sweep_complete, NULL);
    bay_server_method(server, "example.com/method", sweep_method, NULL);
    bay_server_extension(server, "example.com/extension", "{\"a\":1}");
#ifndef BAY_NO_TLS /* digests */
    static const char words[] = "---\nname: pdf\ndescription: Fill forms\n---\nBody\n";
    bay_server_skill_file(server, "pdf", "SKILL.md", "text/markdown", words, sizeof(words) - 1);
    bay_server_skill_file(server, "pdf", "a/b.bin", "application/octet-stream", "\0\xff\n", 3);
#endif
    return server;
}

/* ---- the client ------------------------------------------------------------------------------ */

typedef struct sweep_transcript {
    char text[SWEEP_LINES];
    size_t len;
    int steps;
    int well; /* so many steps brought what was asked for */
    int updates;
    int changes;
    int logs;
    bool has_begun;
    bool is_done;
} sweep_transcript;

static inline void sweep_note(sweep_transcript *self, const char *format, ...) BAY_PRINTF(2, 3);
static inline void sweep_note(sweep_transcript *self, const char *format, ...)
{
    va_list arguments;
    size_t room = sizeof(self->text) - self->len;
    va_start(arguments, format);
    int len = vsnprintf(self->text + self->len, room, format, arguments);
    va_end(arguments);
    assert_true(len >= 0 && (size_t)len + 1 < room);
    self->len += (size_t)len;
    self->text[self->len++] = '\n';
    self->text[self->len] = '\0';
}

/* Takes the reply. */
static inline void sweep_note_reply(sweep_transcript *self, const char *step, bay_err err,
                                    bay_reply *reply)
{
    self->steps++;
    if (err == BAY_OK) {
        bay_str json = bay_reply_json(reply);
        sweep_note(self, "%s: %.*s", step, BAY_STR(json));
        void *bytes;
        size_t len;
        for (size_t i = 0; i < bay_reply_count(reply); i++) {
            if (bay_reply_bytes(reply, i, &bytes, &len) == BAY_OK) {
                bay_free(bytes);
            }
        }
        self->well++;
    } else {
        assert_null(reply);
        sweep_note(self, "%s: error %d", step, (int)err);
    }
    bay_reply_free(reply);
}

static inline void sweep_note_end(sweep_transcript *self, const char *step, bay_err err)
{
    self->steps++;
    self->well += err == BAY_OK;
    sweep_note(self, "%s: %d", step, (int)err);
}

static inline void sweep_fill_in(bay_question *question, void *user)
{
    sweep_transcript *self = user;
    bay_diag diag;
    bay_str asked = bay_question_message(question);
    sweep_note(self, "asked %.*s", BAY_STR(asked));
    if (bay_question_url(question).len > 0) {
        bay_err err = bay_question_accept(question, NULL, &diag);
        if (err != BAY_OK) {
            bay_question_decline(question);
        }
        return;
    }
    bool is_name = asked.len > 0 && asked.at[0] == 'Y';
    if (bay_question_accept(question, is_name ? "{\"name\":\"\"}" : "{\"sure\":1}", &diag) ==
        BAY_OK) {
        sweep_note(self, "a wrong answer was taken");
    } else if (bay_question_accept(question, is_name ? "{\"name\":\"Al\\u00e4\"}" : NULL, &diag) !=
               BAY_OK) {
        bay_question_decline(question);
    }
}

static inline void sweep_speak(bay_question *question, void *user)
{
    sweep_note(user, "asked to say");
    bay_question_reply(question, "model", "said \"it\"");
}

static inline void sweep_updated(bay_client *client, bay_str uri, void *user)
{
    sweep_transcript *self = user;
    (void)client, (void)uri;
    self->updates++;
}

static inline void sweep_changed(bay_client *client, bay_kind kind, void *user)
{
    sweep_transcript *self = user;
    (void)client;
    self->changes |= (int)kind;
}

static inline void sweep_logged(bay_client *client, bay_str params, void *user)
{
    sweep_transcript *self = user;
    (void)client, (void)params;
    self->logs++;
}

static inline bay_client_options *sweep_options(sweep_transcript *self, const char *revision)
{
    bay_client_options *options = bay_client_options_new();
    bay_client_options_name(options, "sweeper", "2.0");
    bay_client_options_revisions(options, revision, revision);
    bay_client_options_elicitation(options, BAY_ELICITATION_FORM | BAY_ELICITATION_URL,
                                   sweep_fill_in, self);
    bay_client_options_sampling(options, "{\"tools\":{}}", sweep_speak, self);
    bay_client_options_root(options, "file:///a", NULL);
    bay_client_options_root(options, "file:///b", "B");
    bay_client_options_extension(options, "example.com/extension", NULL);
    bay_client_options_on_updated(options, sweep_updated, self);
    bay_client_options_on_changed(options, sweep_changed, self);
    bay_client_options_on_log(options, sweep_logged, self);
    return options;
}

static inline void sweep_list(bay_client *client, sweep_transcript *out, const char *step,
                              bay_kind kind)
{
    bay_list *list = NULL;
    bay_err err = bay_client_list(client, kind, &list, NULL);
    for (size_t i = 0; err == BAY_OK && i < bay_list_count(list); i++) {
        sweep_note(out, "  %.*s", BAY_STR(bay_list_json(list, i)));
    }
    bay_list_free(list);
    sweep_note_end(out, step, err);
}

static inline void sweep_call(bay_client *client, sweep_transcript *out, const char *tool,
                              const char *arguments)
{
    bay_reply *reply = NULL;
    bay_err err = bay_client_call(client, tool, arguments, &reply, NULL);
    sweep_note_reply(out, tool, err, reply);
}

static inline void sweep_progressed(bay_request *request, double progress, double total,
                                    bay_str message, void *user)
{
    sweep_transcript *self = user;
    (void)request;
    self->has_begun = true;
    sweep_note(self, "progress %g of %g %.*s", progress, total, BAY_STR(message));
}

static inline void sweep_request_logged(bay_request *request, bay_str params, void *user)
{
    (void)request;
    sweep_note(user, "log %.*s", BAY_STR(params));
}

static inline void sweep_done(bay_request *request, bay_reply *reply, const bay_diag *diag,
                              void *user)
{
    sweep_transcript *self = user;
    (void)request;
    self->is_done = true;
    sweep_note(self, "ended %d", (int)diag->code);
    bay_reply_free(reply);
}

static inline int64_t sweep_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Turns until it is so, but not for ever. */
#define SWEEP_UNTIL(client, condition, most_ms)                                                    \
    for (int64_t end_ = sweep_now_ms() + (most_ms); !(condition) && sweep_now_ms() < end_;) {      \
        if (bay_client_wait((client), 20) != BAY_OK) {                                             \
            break;                                                                                 \
        }                                                                                          \
    }

static inline void sweep_requests(bay_client *client, sweep_transcript *out, int most_ms)
{
    bay_reply *reply = NULL;
    bay_request *request = bay_request_tool(client, "echo",
                                            "{\"text\":\"\\u00e4 \\\"b\\\"\","
                                            "\"place\":\"here\"}");
    bay_request_on_progress(request, sweep_progressed, out);
    bay_request_on_log(request, "debug", sweep_request_logged, out);
    bay_request_meta(request, "{\"example.com/a\":1}");
    bay_err err = bay_request_run(request, &reply, NULL);
    sweep_note_reply(out, "echo in full", err, reply);
    reply = NULL;
    request = bay_request_tool(client, "hold", NULL);
    bay_request_on_progress(request, sweep_progressed, out);
    out->has_begun = out->is_done = false;
    err = bay_request_start(request, NULL, sweep_done, out);
    if (err == BAY_OK) {
        SWEEP_UNTIL(client, out->has_begun || out->is_done, most_ms);
        if (!out->is_done) {
            bay_request_cancel(request, "enough");
        }
        SWEEP_UNTIL(client, out->is_done, most_ms);
        assert_true(out->is_done);
    }
    sweep_note_end(out, "hold", err);
}

static inline void sweep_tasks(bay_client *client, sweep_transcript *out)
{
    char id[80];
    bay_reply *reply = NULL;
    sweep_call(client, out, "task", NULL);
    if (!bay_client_has(client, "extensions.io.modelcontextprotocol/tasks")) {
        return;
    }
    bay_request *request = bay_request_tool(client, "long_task", NULL);
    bay_request_return_immediately(request);
    bay_err err = bay_request_run(request, &reply, NULL);
    snprintf(id, sizeof(id), "%.*s", BAY_STR(bay_reply_task(reply)));
    sweep_note_reply(out, "long_task", err, reply);
    if (id[0] != '\0') {
        reply = NULL;
        err = bay_client_task(client, id, &reply, NULL);
        sweep_note_reply(out, "tasks/get", err, reply);
        sweep_note_end(out, "tasks/cancel", bay_client_task_cancel(client, id, NULL));
        reply = NULL;
        err = bay_client_task_wait(client, id, &reply, NULL);
        sweep_note_reply(out, "task over", err, reply);
    }
    sweep_call(client, out, "release", NULL);
}

static inline void sweep_reads(bay_client *client, sweep_transcript *out)
{
    static const char *const uris[] = {"test://text", "test://bytes", "test://item/7",
                                       "test://item/none", "ui://page"};
    bay_reply *reply = NULL;
    bay_err err;
    for (size_t i = 0; i < sizeof(uris) / sizeof(uris[0]); i++) {
        reply = NULL;
        err = bay_client_read(client, uris[i], &reply, NULL);
        sweep_note_reply(out, uris[i], err, reply);
    }
    reply = NULL;
    err = bay_client_prompt(client, "about", "{\"topic\":\"bees\"}", &reply, NULL);
    sweep_note_reply(out, "prompt", err, reply);
    reply = NULL;
    err = bay_client_prompt(client, "about", NULL, &reply, NULL);
    sweep_note_reply(out, "prompt without its argument", err, reply);
    reply = NULL;
    err = bay_client_complete(client, "about", "topic", "pa", &reply, NULL);
    sweep_note_reply(out, "complete prompt", err, reply);
    reply = NULL;
    err = bay_client_complete(client, "test://item/{id}", "id", "", &reply, NULL);
    sweep_note_reply(out, "complete template", err, reply);
    reply = NULL;
    err = bay_client_request(client, "example.com/method", "{\"a\":1}", &reply, NULL);
    sweep_note_reply(out, "method", err, reply);
    reply = NULL;
    err = bay_client_request(client, "example.com/none", NULL, &reply, NULL);
    sweep_note_reply(out, "no method", err, reply);
    static const char *const files[] = {"SKILL.md", "a/b.bin", "none"};
    for (size_t i = 0; i < 3; i++) {
        reply = NULL;
        err = bay_client_skill_file(client, "pdf", files[i], &reply, NULL);
        sweep_note_reply(out, files[i], err, reply);
    }
}

static inline void sweep_listens(bay_client *client, sweep_transcript *out, int most_ms)
{
    sweep_note_end(out, "log level", bay_client_log_level(client, "info", NULL));
    sweep_note_end(out, "subscribe", bay_client_subscribe(client, "test://text", NULL));
    out->updates = out->changes = 0;
    sweep_call(client, out, "touch", NULL);
    SWEEP_UNTIL(client, out->updates > 0 && (out->changes & 7) == 7, most_ms);
    sweep_note(out, "updated %d changed %d", out->updates > 0, out->changes & 7);
    sweep_note_end(out, "unsubscribe", bay_client_unsubscribe(client, "test://text", NULL));
    sweep_note_end(out, "log no more", bay_client_log_level(client, NULL, NULL));
    sweep_list(client, out, "tools again", BAY_KIND_TOOLS);
}

/* The whole session. `most_ms`: how long it waits at a time for what the server tells unasked. */
static inline void sweep_session(bay_client *client, sweep_transcript *out, int most_ms)
{
    static const char *const roots[] = {"file:///c", "C", "file:///d", "D", NULL};
    sweep_note(out, "%.*s %.*s %.*s", BAY_STR(bay_client_revision(client)),
               BAY_STR(bay_client_server_info(client)), BAY_STR(bay_client_capabilities(client)));
    sweep_list(client, out, "tools", BAY_KIND_TOOLS);
    sweep_list(client, out, "prompts", BAY_KIND_PROMPTS);
    sweep_list(client, out, "resources", BAY_KIND_RESOURCES);
    sweep_list(client, out, "templates", BAY_KIND_TEMPLATES);
    sweep_list(client, out, "skills", BAY_KIND_SKILLS);
    sweep_note_end(out, "ping", bay_client_ping(client, NULL));
    sweep_call(client, out, "echo", "{\"text\":\"x\"}");
    sweep_call(client, out, "echo", "{\"text\":\"\"}"); /* breaks the schema */
    sweep_call(client, out, "all_kinds", NULL);
    sweep_call(client, out, "structured", "{\"right\":true}");
    sweep_call(client, out, "structured", NULL); /* the answer breaks its schema */
    sweep_call(client, out, "fail", NULL);
    sweep_call(client, out, "error", NULL);
    sweep_call(client, out, "none", NULL);
    sweep_requests(client, out, most_ms);
    sweep_call(client, out, "release", NULL);
    sweep_reads(client, out);
    sweep_listens(client, out, most_ms);
    sweep_call(client, out, "ask_form", NULL);
    sweep_call(client, out, "ask_page", NULL);
    sweep_call(client, out, "ask_model", NULL);
    sweep_call(client, out, "ask_roots", NULL);
    sweep_note_end(out, "roots", bay_client_roots(client, roots, NULL));
    sweep_call(client, out, "ask_roots", NULL);
    sweep_tasks(client, out);
    sweep_note_end(out, "notify", bay_client_notify(client, "example.com/told", NULL, NULL));
}

#endif

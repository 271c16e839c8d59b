/* Every function of the library, with any arguments: nothing, junk, and what looks good, without an
 * object and with each that there is. Nothing crashes, waits for ever or is lost; every call and
 * task still ends. The calls are generated from the headers, so that none is forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patchbay/agent.h"
#include "patchbay/call.h"
#include "patchbay/caller.h"
#include "patchbay/client.h"
#include "patchbay/guard.h"
#include "patchbay/json.h"
#include "patchbay/oauth.h"
#include "patchbay/schema.h"
#include "patchbay/server.h"

/* ---- arguments ------------------------------------------------------------------------------- */

enum { FILLS = 3 }; /* nothing, junk, good */

static size_t any_fill;
static size_t any_called; /* callbacks that ran */
static char any_room[64];
static bay_document *any_document;

static inline const char *any_const_char(void)
{
    static const char *const texts[FILLS] = {NULL, "\xff\"{\n%n", "{}"};
    return texts[any_fill];
}

static inline const char *any_format(void)
{
    return any_fill == 0 ? NULL : "%s";
}

static inline bay_str any_bay_str(void)
{
    return bay_str_of(any_const_char());
}

static inline const char *const *any_texts(void)
{
    static const char *const junk[] = {"\xff", "\n", NULL};
    static const char *const good[] = {"file:///a", "a", NULL};
    return any_fill == 0 ? NULL : any_fill == 1 ? junk : good;
}

static inline const void *any_const_void(void)
{
    return any_fill == 0 ? NULL : any_room;
}

static inline size_t any_size(void)
{
    static const size_t sizes[FILLS] = {0, sizeof(any_room), 1};
    return sizes[any_fill];
}

static inline int64_t any_number(void)
{
    static const int64_t numbers[FILLS] = {0, -1, 7};
    return numbers[any_fill];
}

static inline double any_double(void)
{
    return any_fill == 0 ? 0 : any_fill == 1 ? -1e308 * 10 : 0.5;
}

static inline bool any__Bool(void)
{
    return any_fill == 2;
}

static inline bay_value any_bay_value(void)
{
    return any_fill == 2 ? bay_document_root(any_document) : (bay_value){NULL, any_fill};
}

static inline bay_json *any_bay_json(void)
{
    if (any_fill == 0) {
        return NULL;
    }
    bay_json *json = bay_json_new();
    bay_json_object(json, NULL);
    bay_json_int(json, "a", 1);
    if (any_fill == 2) {
        bay_json_end(json);
    }
    return json;
}

static inline const bay_field *any_const_bay_field(void)
{
    static const char *const no_choices[] = {NULL};
    static const bay_field junk[] = {{"a", (bay_type)77, "\xff", .min = "x", .choices = no_choices},
                                     {0}};
    static const bay_field good[] = {{"a", BAY_TYPE_STRING, "A", .default_value = "x"}, {0}};
    return any_fill == 0 ? NULL : any_fill == 1 ? junk : good;
}

static inline void any_result(int result)
{
    assert_in_range(result, BAY_OK, BAY_ERR_INTERNAL);
}

typedef struct any_group {
    const char *type;
    const char *const *names;
    size_t count;
    void (*call)(void *object, size_t which);
} any_group;

#include "any_calls.h"

static const any_group *group_of(const char *type)
{
    for (size_t i = 0; i < sizeof(any_groups) / sizeof(any_groups[0]); i++) {
        if (strcmp(any_groups[i].type, type) == 0) {
            return &any_groups[i];
        }
    }
    fail_msg("no function takes a %s", type);
    return NULL;
}

/* Runs `body` for each function of a type with each fill. */
#define EACH_CALL(group, which)                                                                    \
    for (any_fill = 0; any_fill < FILLS; any_fill++)                                               \
        for (size_t which = 0; which < (group)->count; which++)

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (strcmp(name, *names) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- without an object ----------------------------------------------------------------------- */

static void nothing_at_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(any_groups) / sizeof(any_groups[0]); i++) {
        EACH_CALL(&any_groups[i], which)
        {
            any_groups[i].call(NULL, which);
        }
    }
    assert_int_equal(any_called, 0);
    any_fill = 0;
    assert_int_not_equal(bay_server_main(NULL, 0, NULL), 0);
    assert_int_not_equal(bay_agent_main(NULL, 0, NULL), 0);
    assert_int_not_equal(bay_client_wait(NULL, 0), BAY_OK);
    assert_int_not_equal(bay_caller_wait(NULL, 0), BAY_OK);
    assert_int_equal(bay_set_allocator(NULL), BAY_ERR_INVALID);
    assert_false(bay_task_sleep(NULL, 0));
}

/* ---- with what a program makes ---------------------------------------------------------------- */

static const bay_field form[] = {{"a", BAY_TYPE_STRING, .description = "A"}, {0}};

static void reply_ok(bay_call *call, void *user)
{
    (void)user;
    bay_call_reply(call, "ok");
}

static void objects_of_a_server(void **state)
{
    (void)state;
    static const char *const types[] = {"bay_server", "bay_tool", "bay_resource", "bay_prompt"};
    for (size_t i = 0; i < 4; i++) {
        const any_group *group = group_of(types[i]);
        EACH_CALL(group, which)
        {
            bay_server *server = bay_server_new("s", "1");
            void *const objects[] = {
                server, bay_server_tool(server, "t", "d", form, reply_ok, NULL),
                bay_server_resource(server, "file:///a", "a", "d", "text/plain", reply_ok, NULL),
                bay_server_prompt(server, "p", "d", form, reply_ok, NULL)};
            group->call(objects[i], which);
            if (strcmp(group->names[which], "bay_server_free") != 0) {
                any_result(bay_server_check(server, NULL));
                bay_server_free(server);
            }
        }
    }
}

static void work(bay_task *task, const bay_message *message, void *user);

static void objects_of_an_agent(void **state)
{
    (void)state;
    static const char *const types[] = {"bay_agent", "bay_skill"};
    for (size_t i = 0; i < 2; i++) {
        const any_group *group = group_of(types[i]);
        EACH_CALL(group, which)
        {
            bay_agent *agent = bay_agent_new("a", "1", "d");
            void *const objects[] = {agent, bay_agent_skill(agent, "s", "S", "d", work, NULL)};
            group->call(objects[i], which);
            if (strcmp(group->names[which], "bay_agent_free") != 0) {
                any_result(bay_agent_check(agent, NULL));
                bay_agent_free(agent);
            }
        }
    }
}

/* NAME_new and NAME_free. */
#define MADE(name)                                                                                 \
    do {                                                                                           \
        const any_group *group = group_of("bay_" #name);                                           \
        EACH_CALL(group, which)                                                                    \
        {                                                                                          \
            bay_##name *object = bay_##name##_new();                                               \
            group->call(object, which);                                                            \
            if (strcmp(group->names[which], "bay_" #name "_free") != 0) {                          \
                bay_##name##_free(object);                                                         \
            }                                                                                      \
        }                                                                                          \
    } while (0)

static void objects_of_no_other(void **state)
{
    (void)state;
    MADE(json);
    MADE(message);
    MADE(client_options);
    MADE(caller_options);
    const any_group *group = group_of("bay_oauth");
    EACH_CALL(group, which)
    {
        bay_oauth *oauth = bay_oauth_new(BAY_OAUTH_GRANT_CLIENT);
        group->call(oauth, which);
        if (strcmp(group->names[which], "bay_oauth_free") != 0) {
            bay_oauth_free(oauth);
        }
    }
    group = group_of("bay_guard");
    EACH_CALL(group, which)
    {
        bay_guard *guard = bay_guard_new("https://example.com");
        group->call(guard, which);
        if (strcmp(group->names[which], "bay_guard_free") != 0) {
            bay_guard_free(guard);
        }
    }
    group = group_of("bay_document");
    EACH_CALL(group, which)
    {
        bay_document *document = NULL;
        assert_int_equal(bay_document_new(bay_str_of("[1]"), &document, NULL), BAY_OK);
        group->call(document, which);
        if (strcmp(group->names[which], "bay_document_free") != 0) {
            bay_document_free(document);
        }
    }
}

/* ---- inside handlers of a server --------------------------------------------------------------- */

static const any_group *at_group; /* what a handler is to call, and with what */
static size_t at_which;

static void in_call(bay_call *call, void *user)
{
    (void)user;
    at_group->call(call, at_which);
    bay_call_reply(call, "after");
}

static void in_result(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    at_group->call(result, at_which);
    if (strcmp(at_group->names[at_which], "bay_result_free") == 0) {
        bay_call_reply(call, "after");
        return;
    }
    bay_call_finish(call, result);
}

static void in_answer(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    at_group->call((void *)answer, at_which);
    bay_call_reply(call, "after");
}

static void ask(bay_call *call, void *user)
{
    (void)user;
    bay_call_elicit(call, "?", form, in_answer, NULL);
}

static void accept_it(bay_question *question, void *user)
{
    (void)user;
    assert_int_equal(bay_question_accept(question, "{\"a\":\"x\"}", NULL), BAY_OK);
}

static void in_question(bay_question *question, void *user)
{
    (void)user;
    at_group->call(question, at_which);
    bay_question_decline(question);
}

static void answered(bay_call *call, const bay_answer *answer, void *user)
{
    (void)answer;
    (void)user;
    bay_call_reply(call, "after");
}

static void ask_openly(bay_call *call, void *user)
{
    (void)user;
    bay_call_elicit(call, "?", form, answered, NULL);
}

static bay_server *asking_server(void)
{
    bay_server *server = bay_server_new("s", "1");
    bay_server_set(server, BAY_SERVER_SETTING_TASK_POLL_MS, 1); /* clients do not wait for long */
    bay_server_tool(server, "call", "d", form, in_call, NULL);
    bay_tool_task(bay_server_tool(server, "task", "d", form, in_call, NULL),
                  BAY_TASK_MODE_OPTIONAL);
    bay_server_tool(server, "result", "d", NULL, in_result, NULL);
    bay_server_tool(server, "answer", "d", NULL, ask, NULL);
    bay_server_tool(server, "question", "d", NULL, ask_openly, NULL);
    bay_server_resource(server, "file:///call", "a", "d", "text/plain", in_call, NULL);
    bay_server_resource(server, "file:///result", "b", "d", "text/plain", in_result, NULL);
    bay_server_prompt(server, "call", "d", form, in_call, NULL);
    bay_server_prompt(server, "result", "d", NULL, in_result, NULL);
    bay_server_method(server, "x/call", in_call, NULL);
    bay_server_completion(server, in_call, NULL);
    return server;
}

static bay_client *attached(bay_server *server, const char *revision, bay_asked_fn asked)
{
    bay_client_options *options = bay_client_options_new();
    bay_client_options_revisions(options, revision, revision);
    bay_client_options_elicitation(options, BAY_ELICITATION_FORM, asked, NULL);
    bay_client *client = NULL;
    bay_diag diag = {0};
    if (bay_client_attach(server, options, &client, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    bay_client_options_free(options);
    return client;
}

/* One request, which must end. */
static void ends(bay_client *client, const char *method, const char *params)
{
    bay_diag diag = {0};
    bay_reply *reply = NULL;
    bay_request *request = bay_request_new(client, method, params);
    bay_request_timeout(request, 20000, 20000);
    bay_err err = bay_request_run(request, &reply, &diag);
    if (err == BAY_ERR_TIMEOUT || err == BAY_ERR_CLOSED || err == BAY_ERR_INTERNAL) {
        fail_msg("%s (fill %zu): %s", at_group->names[at_which], any_fill, diag.text);
    }
    bay_reply_free(reply);
}

static const char *const revisions[] = {"2025-11-25", "2026-07-28"};

static void a_call(void **state)
{
    (void)state;
    at_group = group_of("bay_call");
    for (size_t i = 0; i < 2; i++) {
        bay_server *server = asking_server();
        bay_client *client = attached(server, revisions[i], accept_it);
        EACH_CALL(at_group, which)
        {
            at_which = which;
            ends(client, "tools/call", "{\"name\":\"call\",\"arguments\":{\"a\":\"x\"}}");
            ends(client, "tools/call", "{\"name\":\"task\",\"arguments\":{\"a\":\"x\"}}");
            ends(client, "resources/read", "{\"uri\":\"file:///call\"}");
            ends(client, "prompts/get", "{\"name\":\"call\",\"arguments\":{\"a\":\"x\"}}");
            ends(client, "x/call", "{}");
            ends(client, "completion/complete",
                 "{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"call\"},"
                 "\"argument\":{\"name\":\"a\",\"value\":\"x\"}}");
        }
        bay_client_close(client);
        bay_server_free(server);
    }
}

static void a_result(void **state)
{
    (void)state;
    at_group = group_of("bay_result");
    bay_server *server = asking_server();
    bay_client *client = attached(server, NULL, accept_it);
    EACH_CALL(at_group, which)
    {
        at_which = which;
        ends(client, "tools/call", "{\"name\":\"result\"}");
        ends(client, "resources/read", "{\"uri\":\"file:///result\"}");
        ends(client, "prompts/get", "{\"name\":\"result\"}");
    }
    bay_client_close(client);
    bay_server_free(server);
}

static void an_answer_and_a_question(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        bay_server *server = asking_server();
        bay_client *client = attached(server, revisions[i], accept_it);
        at_group = group_of("bay_answer");
        EACH_CALL(at_group, which)
        {
            at_which = which;
            ends(client, "tools/call", "{\"name\":\"answer\"}");
        }
        bay_client_close(client);
        client = attached(server, revisions[i], in_question);
        at_group = group_of("bay_question");
        EACH_CALL(at_group, which)
        {
            at_which = which;
            ends(client, "tools/call", "{\"name\":\"question\"}");
        }
        bay_client_close(client);
        bay_server_free(server);
    }
}

/* ---- what a client has ------------------------------------------------------------------------- */

static void a_client(void **state)
{
    (void)state;
    static const char *const ends_it[] = {"bay_client_close", NULL};
    const any_group *group = group_of("bay_client");
    at_group = group_of("bay_result");
    at_which = 0;
    for (size_t i = 0; i < 2; i++) {
        bay_server *server = asking_server();
        EACH_CALL(group, which)
        {
            bay_client *client = attached(server, revisions[i], accept_it);
            group->call(client, which);
            if (!is_one_of(group->names[which], ends_it)) {
                bay_client_close(client);
            }
        }
        bay_server_free(server);
    }
}

static void a_request(void **state)
{
    (void)state;
    static const char *const takes_it[] = {"bay_request_free", "bay_request_run",
                                           "bay_request_start", NULL};
    const any_group *group = group_of("bay_request");
    bay_server *server = asking_server();
    EACH_CALL(group, which)
    {
        bay_client *client = attached(server, NULL, accept_it);
        bay_request *request = bay_request_tool(client, "question", NULL);
        group->call(request, which);
        if (!is_one_of(group->names[which], takes_it)) {
            bay_reply *reply = NULL;
            any_result(bay_request_run(request, &reply, NULL));
            bay_reply_free(reply);
        }
        bay_client_close(client);
    }
    bay_server_free(server);
}

static void replies_and_lists(void **state)
{
    (void)state;
    bay_server *server = asking_server();
    bay_client *client = attached(server, NULL, accept_it);
    const any_group *group = group_of("bay_reply");
    EACH_CALL(group, which)
    {
        bay_reply *reply = NULL;
        assert_int_equal(bay_client_call(client, "question", NULL, &reply, NULL), BAY_OK);
        group->call(reply, which);
        if (strcmp(group->names[which], "bay_reply_free") != 0) {
            bay_reply_free(reply);
        }
    }
    group = group_of("bay_list");
    EACH_CALL(group, which)
    {
        bay_list *list = NULL;
        assert_int_equal(bay_client_list(client, BAY_KIND_TOOLS, &list, NULL), BAY_OK);
        group->call(list, which);
        if (strcmp(group->names[which], "bay_list_free") != 0) {
            bay_list_free(list);
        }
    }
    bay_client_close(client);
    bay_server_free(server);
}

/* ---- by HTTP ----------------------------------------------------------------------------------- */

static bool in_peer(bay_peer *peer, void *user)
{
    (void)user;
    at_group->call(peer, at_which);
    return true;
}

static void *run_server(void *server)
{
    return (void *)(intptr_t)bay_server_run(server, NULL);
}

static void a_peer(void **state)
{
    (void)state;
    at_group = group_of("bay_peer");
    bay_server *server = asking_server();
    bay_server_identify(server, in_peer, NULL);
    assert_int_equal(bay_server_listen(server, "127.0.0.1:0", NULL), BAY_OK);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_server, server), 0);
    char url[64];
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/mcp", bay_server_port(server));
    EACH_CALL(at_group, which)
    {
        at_which = which;
        bay_client *client = NULL;
        bay_diag diag = {0};
        bay_err err = bay_client_connect(url, NULL, &client, &diag);
        if (err != BAY_OK &&
            strstr(diag.text, "HTTP status 401") == NULL) { /* a name that is none */
            fail_msg("%s (fill %zu): %s", at_group->names[which], any_fill, diag.text);
        }
        bay_client_close(client);
    }
    bay_server_stop(server);
    assert_int_equal(pthread_join(thread, NULL), 0);
    bay_server_free(server);
}

static void work(bay_task *task, const bay_message *message, void *user)
{
    (void)user;
    if (at_group == group_of("bay_message")) {
        at_group->call((void *)message, at_which);
    } else if (at_group == group_of("bay_artifact")) {
        at_group->call(bay_task_artifact(task, "a", "text/plain"), at_which);
    } else if (at_group == group_of("bay_task") &&
               strcmp(at_group->names[at_which], "bay_task_release") != 0) {
        at_group->call(task, at_which);
        if (strcmp(at_group->names[at_which], "bay_task_defer") == 0) {
            bay_task_release(task);
        }
    }
    any_result(bay_task_complete(task, "after"));
}

static bool in_grant(bay_grant *grant, bay_str credential, void *user)
{
    (void)credential;
    (void)user;
    bay_grant_principal(grant, "me");
    if (at_group == group_of("bay_grant")) {
        at_group->call(grant, at_which);
    }
    return true;
}

static void *run_agent(void *agent)
{
    return (void *)(intptr_t)bay_agent_run(agent, NULL);
}

typedef struct agent_rig {
    bay_agent *agent;
    pthread_t thread;
    char url[64];
} agent_rig;

static void agent_start(agent_rig *self)
{
    self->agent = bay_agent_new("a", "1", "d");
    bay_agent_skill(self->agent, "s", "S", "d", work, NULL);
    bay_agent_api_key(self->agent, "key", "header", "X-Key", in_grant, NULL);
    bay_agent_push(self->agent);
    bay_diag diag = {0};
    if (bay_agent_listen(self->agent, "127.0.0.1:0", &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    assert_int_equal(pthread_create(&self->thread, NULL, run_agent, self->agent), 0);
    (void)snprintf(self->url, sizeof(self->url), "http://127.0.0.1:%u",
                   bay_agent_port(self->agent));
}

static void agent_end(agent_rig *self)
{
    bay_agent_stop(self->agent);
    assert_int_equal(pthread_join(self->thread, NULL), 0);
    bay_agent_free(self->agent);
}

static bay_caller *caller_of(const agent_rig *self)
{
    bay_caller_options *options = bay_caller_options_new();
    bay_caller_options_credential(options, "key", "secret");
    bay_caller_options_timeout(options, 20000, 20000);
    bay_caller *caller = NULL;
    bay_diag diag = {0};
    if (bay_caller_connect(self->url, options, &caller, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    bay_caller_options_free(options);
    return caller;
}

/* Each of these in the handler, or in what verifies the credential; the task ends all the same. */
static void a_task_and_what_it_has(void **state)
{
    (void)state;
    static const char *const types[] = {"bay_task", "bay_artifact", "bay_message", "bay_grant"};
    agent_rig rig;
    agent_start(&rig);
    bay_caller *caller = caller_of(&rig);
    for (size_t i = 0; i < 4; i++) {
        at_group = group_of(types[i]);
        EACH_CALL(at_group, which)
        {
            if (strcmp(at_group->names[which], "bay_message_free") == 0) {
                continue; /* of what a program made only */
            }
            at_which = which;
            bay_diag diag = {0};
            bay_caller_reply *reply = NULL;
            bay_err err = bay_caller_send_wait(caller, "x", &reply, &diag);
            bay_task_state got = bay_caller_reply_state(reply);
            bool is_message = bay_caller_reply_kind_of(reply) == BAY_CALLER_REPLY_KIND_MESSAGE;
            if (err == BAY_OK && !is_message && !bay_task_state_is_final(got) &&
                got != BAY_TASK_STATE_INPUT_REQUIRED && got != BAY_TASK_STATE_AUTH_REQUIRED) {
                err = BAY_ERR_STATE;
            }
            bool is_refused = err == BAY_ERR_REMOTE && at_group == group_of("bay_grant");
            if (err != BAY_OK && !is_refused) { /* a name that is none */
                fail_msg("%s (fill %zu): %d %s", at_group->names[which], any_fill, (int)err,
                         diag.text);
            }
            bay_caller_reply_free(reply);
        }
    }
    bay_caller_close(caller);
    agent_end(&rig);
}

static void a_caller_and_what_it_has(void **state)
{
    (void)state;
    static const char *const takes_it[] = {"bay_caller_request_free", "bay_caller_request_run",
                                           "bay_caller_request_start", NULL};
    agent_rig rig;
    at_group = group_of("bay_server");
    agent_start(&rig);
    const any_group *group = group_of("bay_caller");
    EACH_CALL(group, which)
    {
        bay_caller *caller = caller_of(&rig);
        group->call(caller, which);
        if (strcmp(group->names[which], "bay_caller_close") != 0) {
            bay_caller_close(caller);
        }
    }
    bay_caller *caller = caller_of(&rig);
    group = group_of("bay_caller_request");
    EACH_CALL(group, which)
    {
        bay_caller_request *request = bay_caller_request_send_text(caller, "x");
        group->call(request, which);
        if (!is_one_of(group->names[which], takes_it)) {
            bay_caller_request_resume(request); /* what is paused has no end */
            any_result(bay_caller_request_run(request, NULL, NULL));
        }
    }
    group = group_of("bay_caller_reply");
    EACH_CALL(group, which)
    {
        bay_caller_reply *reply = NULL;
        assert_int_equal(bay_caller_send_wait(caller, "x", &reply, NULL), BAY_OK);
        group->call(reply, which);
        if (strcmp(group->names[which], "bay_caller_reply_free") != 0) {
            bay_caller_reply_free(reply);
        }
    }
    bay_caller_close(caller);
    agent_end(&rig);
}

/* Every type of object is met above; a login stands in a client's, and its tests call all of it. */
static void no_type_is_forgotten(void **state)
{
    (void)state;
    static const char *const met[] = {"nothing",
                                      "bay_server",
                                      "bay_tool",
                                      "bay_resource",
                                      "bay_prompt",
                                      "bay_agent",
                                      "bay_skill",
                                      "bay_json",
                                      "bay_message",
                                      "bay_client_options",
                                      "bay_client",
                                      "bay_document",
                                      "bay_call",
                                      "bay_caller_options",
                                      "bay_result",
                                      "bay_answer",
                                      "bay_question",
                                      "bay_peer",
                                      "bay_request",
                                      "bay_reply",
                                      "bay_list",
                                      "bay_task",
                                      "bay_grant",
                                      "bay_artifact",
                                      "bay_caller",
                                      "bay_caller_request",
                                      "bay_caller_reply",
                                      "bay_oauth",
                                      "bay_login",
                                      "bay_guard",
                                      NULL};
    for (size_t i = 0; i < sizeof(any_groups) / sizeof(any_groups[0]); i++) {
        if (!is_one_of(any_groups[i].type, met)) {
            fail_msg("nothing calls the functions of %s", any_groups[i].type);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_type_is_forgotten),
        cmocka_unit_test(nothing_at_all),
        cmocka_unit_test(objects_of_a_server),
        cmocka_unit_test(objects_of_an_agent),
        cmocka_unit_test(objects_of_no_other),
        cmocka_unit_test(a_call),
        cmocka_unit_test(a_result),
        cmocka_unit_test(an_answer_and_a_question),
        cmocka_unit_test(a_client),
        cmocka_unit_test(a_request),
        cmocka_unit_test(replies_and_lists),
        cmocka_unit_test(a_peer),
        cmocka_unit_test(a_task_and_what_it_has),
        cmocka_unit_test(a_caller_and_what_it_has),
    };
    assert_int_equal(bay_document_new(bay_str_of("{\"a\":[1,\"x\"]}"), &any_document, NULL),
                     BAY_OK);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bay_document_free(any_document);
    return failed;
}

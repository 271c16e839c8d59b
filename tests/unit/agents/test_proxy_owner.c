/* Several callers of one remote agent, which takes them all for one: tasks, contexts, lists,
 * streams, webhooks and messages of one never show or move anything of another, whatever they name,
 * in each binding to the agent; what is another's is the same as what does not exist. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "agents/proxy_owner.h" /* cmocka takes the word "fail" */
#include "agents/remote.h"
#include "support/agent_peer.h"

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "support/a2a_callers.h"
#include "support/failing_memory.h"
#include "support/people.h"

PEOPLE_FROM_THE_START

enum { MOST_TURNS = 4000, TURN_MS = 5 };

/* ---- the rig --------------------------------------------------------------------------------- */

typedef struct rig {
    loop *loop;
    agent_peer peer;
    agents_settings settings;
    agents_public public;
    agents_owners *owners;
    seal_ring *ring; /* NULL in a build that cannot seal */
    const seal_ring *shown_ring;
    agents_remote *remote;
    char url[64];
} rig;

static const a2a_binding bindings[] = {A2A_JSONRPC, A2A_HTTP_JSON,
#ifndef BAY_NO_HTTP2
                                       A2A_GRPC
#endif
};

static void open_remote(rig *self)
{
    bay_diag diag = {0};
    assert_int_equal(
        agents_remote_new(self->loop, &self->settings, &self->public, NULL, &self->remote, &diag),
        BAY_OK);
    agents_remote_set_owners(self->remote, agents_owners_of(self->owners, STR("far")),
                             &self->shown_ring);
}

static void rig_open(rig *self, a2a_binding binding, const char *store)
{
    bay_diag diag = {0};
    memset(self, 0, sizeof(*self));
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    assert_true(peer_open(&self->peer, 0, NULL));
    (void)snprintf(self->url, sizeof(self->url), "http://127.0.0.1:%u", self->peer.port);
    self->public = (agents_public){.base = STR("http://gateway"), .grpc = STR("")};
    self->settings = (agents_settings){.name = STR("far"),
                                       .url = str_of(self->url),
                                       .has_binding = true,
                                       .binding = binding,
                                       .connect_ms = 5000,
                                       .connections = 16,
                                       .timeout_ms = 60000,
                                       .stream_idle_ms = 60000,
                                       .refresh_ms = 60000,
                                       .answer_bytes = 1 << 20,
                                       .circuit = {3, 60000, 100000}};
    if (seal_ring_new(&self->ring) == BAY_OK) {
        assert_int_equal(seal_ring_generate(self->ring), BAY_OK);
        self->shown_ring = self->ring;
    }
    assert_int_equal(agents_owners_new(str_of(store), &self->owners, &diag), BAY_OK);
    assert_int_equal(agents_owners_write_on(self->owners, self->loop), BAY_OK);
    open_remote(self);
}

static void rig_close(rig *self)
{
    atomic_store(&self->peer.may_go, true);
    agents_remote_free(self->remote);
    agents_owners_close(self->owners);
    agents_owners_free(self->owners);
    peer_close(&self->peer);
    seal_ring_free(self->ring);
    loop_free(self->loop);
}

/* ---- callers --------------------------------------------------------------------------------- */

static void begin(rig *self, caller *one, const char *who, a2a_method method, const char *params)
{
    caller_begin(one, agents_remote_service(self->remote), person(who), method, params);
}

static void turn_until(rig *self, const int *count, int wanted)
{
    callers_turn(&self->loop, 1, count, wanted);
}

static void finish(rig *self, caller *one)
{
    caller_finish(one, &self->loop, 1);
}

/* What that caller is told. */
static const char *ask(rig *self, const char *who, a2a_method method, const char *format, ...)
{
    static caller one;
    char params[2048];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(params, sizeof(params), format, arguments);
    va_end(arguments);
    begin(self, &one, who, method, params);
    finish(self, &one);
    return one.text;
}

#define MESSAGE                                                                                    \
    "'messageId':'%s','role':'ROLE_USER','parts':[{'text':'x'}],'metadata':{'skillId':'%s'}"

static void read_id(const char *text, const char *before, char out[64])
{
    const char *at = strstr(text, before);
    assert_non_null(at);
    assert_int_equal(sscanf(at + strlen(before), "%63[^\"]", out), 1);
}

/* A task that waits for its caller. */
static void begin_task(rig *self, const char *who, const char *message, char task[64],
                       char context[64])
{
    const char *text =
        ask(self, who, A2A_SEND_MESSAGE, "{'message':{" MESSAGE "}}", message, "ask");
    read_id(text, "{\"task\":{\"id\":\"", task);
    read_id(text, "\"contextId\":\"", context);
}

/* ---- cases ----------------------------------------------------------------------------------- */

/* Every request that names a task. `%s` is its id. */
static const struct {
    a2a_method method;
    const char *params;
} naming[] = {
    {A2A_GET_TASK, "{'id':'%s'}"},
    {A2A_CANCEL_TASK, "{'id':'%s'}"},
    {A2A_SUBSCRIBE_TO_TASK, "{'id':'%s'}"},
    {A2A_CREATE_PUSH_CONFIG, "{'taskId':'%s','id':'c','url':'https://example.com/hook'}"},
    {A2A_GET_PUSH_CONFIG, "{'taskId':'%s','id':'c'}"},
    {A2A_LIST_PUSH_CONFIGS, "{'taskId':'%s'}"},
    {A2A_DELETE_PUSH_CONFIG, "{'taskId':'%s','id':'c'}"},
    {A2A_SEND_MESSAGE, "{'message':{'messageId':'n','role':'ROLE_USER','parts':[{'text':'x'}],"
                       "'taskId':'%s'}}"},
    {A2A_SEND_STREAMING_MESSAGE, "{'message':{'messageId':'n','role':'ROLE_USER','parts':["
                                 "{'text':'x'}],'taskId':'%s'}}"},
    {A2A_SEND_MESSAGE, "{'message':{'messageId':'n','role':'ROLE_USER','parts':[{'text':'x'}],"
                       "'referenceTaskIds':['%s']}}"},
    {A2A_SEND_MESSAGE, "{'message':{'messageId':'n','role':'ROLE_USER','parts':[{'text':'x'}]},"
                       "'configuration':{'taskPushNotificationConfig':{'taskId':'%s',"
                       "'url':'https://example.com/hook'}}}"},
};

static void anothers_task_is_like_one_that_does_not_exist(void **state)
{
    (void)state;
    for (size_t b = 0; b < ARRAY_LEN(bindings); b++) {
        rig self;
        char task[64], context[64], params[1024];
        static char unknown[CALLER_TEXT_BYTES];
        rig_open(&self, bindings[b], "");
        begin_task(&self, "ann", "m", task, context);
        int begun = atomic_load(&self.peer.begun);
        for (size_t i = 0; i < ARRAY_LEN(naming); i++) {
            static const char *const others[] = {"bob", "", "alice"};
            for (size_t k = 0; k < ARRAY_LEN(others); k++) {
                (void)snprintf(params, sizeof(params), naming[i].params, "no-such-task");
                (void)snprintf(unknown, sizeof(unknown), "%s",
                               ask(&self, others[k], naming[i].method, params));
                assert_non_null(strstr(unknown, "there is no such task"));
                (void)snprintf(params, sizeof(params), naming[i].params, task);
                assert_string_equal(ask(&self, others[k], naming[i].method, params), unknown);
            }
        }
        assert_int_equal(atomic_load(&self.peer.begun), begun);
        /* nothing of that moved it */
        const char *text = ask(&self, "ann", A2A_GET_TASK, "{'id':'%s'}", task);
        assert_non_null(strstr(text, "TASK_STATE_INPUT_REQUIRED"));
        assert_non_null(strstr(text, task));
        text = ask(&self, "ann", A2A_SEND_MESSAGE,
                   "{'message':{'messageId':'n','role':'ROLE_USER','parts':[{'text':'red'}],"
                   "'taskId':'%s','contextId':'%s','referenceTaskIds':['%s']}}",
                   task, context, task);
        assert_non_null(strstr(text, "painted red"));
        rig_close(&self);
    }
}

static void wait_for_begun(rig *self, int wanted)
{
    for (int i = 0; i < MOST_TURNS && atomic_load(&self->peer.begun) < wanted; i++) {
        loop_turn(self->loop, TURN_MS);
    }
    assert_int_equal(atomic_load(&self->peer.begun), wanted);
}

/* A client repeats a message by its id while it has no answer, and knows nothing of others' ids. */
static void equal_message_ids_of_two_callers_never_meet(void **state)
{
    (void)state;
    for (size_t b = 0; b < ARRAY_LEN(bindings); b++) {
        rig self;
        static caller anns[2], other;
        char task[3][64];
        const char *send = "{'message':{'messageId':'same','role':'ROLE_USER','parts':[{'text':"
                           "'x'}],'metadata':{'skillId':'wait'}}}";
        rig_open(&self, bindings[b], "");
        begin(&self, &anns[0], "ann", A2A_SEND_MESSAGE, send);
        wait_for_begun(&self, 1);
        begin(&self, &other, "bob", A2A_SEND_MESSAGE, send);
        wait_for_begun(&self, 2);
        begin(&self, &anns[1], "ann", A2A_SEND_MESSAGE, send);
        assert_non_null(strstr(ask(&self, "alice", A2A_LIST_TASKS, "{}"), "\"tasks\":[]"));
        atomic_store(&self.peer.may_go, true);
        caller *all[] = {&anns[0], &anns[1], &other};
        for (size_t i = 0; i < ARRAY_LEN(all); i++) {
            finish(&self, all[i]);
            read_id(all[i]->text, "{\"task\":{\"id\":\"", task[i]);
            assert_non_null(strstr(all[i]->text, "\"messageId\":\"same\"")); /* as it was sent */
            assert_null(strstr(all[i]->text, "~"));
        }
        assert_string_equal(task[0], task[1]); /* her second is the first once more */
        assert_string_not_equal(task[0], task[2]);
        assert_int_equal(atomic_load(&self.peer.begun), 2);
        rig_close(&self);
    }
}

static void anothers_context_is_like_one_that_does_not_exist(void **state)
{
    (void)state;
    for (size_t b = 0; b < ARRAY_LEN(bindings); b++) {
        rig self;
        char task[64], context[64], bobs[64], again[64];
        rig_open(&self, bindings[b], "");
        begin_task(&self, "ann", "m", task, context);
        const char *names[] = {context, "made-up"};
        for (size_t i = 0; i < 2; i++) {
            const char *text = ask(&self, "bob", A2A_LIST_TASKS, "{'contextId':'%s'}", names[i]);
            assert_non_null(strstr(text, "\"tasks\":[]"));
            assert_non_null(strstr(text, "\"totalSize\":0"));
            text = ask(&self, "bob", A2A_SEND_MESSAGE, "{'message':{'contextId':'%s'," MESSAGE "}}",
                       names[i], i == 0 ? "b0" : "b1", "ask");
            read_id(text, "{\"task\":{\"id\":\"", bobs);
            read_id(text, "\"contextId\":\"", again);
            assert_string_equal(again, names[i]); /* his own of that name */
            text = ask(&self, "bob", A2A_LIST_TASKS, "{'contextId':'%s'}", names[i]);
            assert_non_null(strstr(text, bobs));
            assert_null(strstr(text, task));
            assert_non_null(strstr(text, "\"totalSize\":1"));
        }
        const char *text = ask(&self, "ann", A2A_LIST_TASKS, "{'contextId':'%s'}", context);
        assert_non_null(strstr(text, task));
        assert_null(strstr(text, bobs));
        assert_non_null(strstr(text, "\"totalSize\":1"));
        rig_close(&self);
    }
}

static int count_of(const char *text, const char *what)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++) {
        count++;
    }
    return count;
}

static void a_list_shows_the_callers_tasks_alone(void **state)
{
    (void)state;
    for (size_t b = 0; b < ARRAY_LEN(bindings); b++) {
        rig self;
        char anns[5][64], bobs[12][64], context[64], id[24], token[1024] = "";
        int seen = 0, pages = 0;
        rig_open(&self, bindings[b], "");
        for (int i = 0, ann = 0; i < 12; i++) { /* between each other */
            (void)snprintf(id, sizeof(id), "m%d", i);
            begin_task(&self, "bob", id, bobs[i], context);
            if (i % 3 == 0 || i == 11) {
                begin_task(&self, "ann", id, anns[ann++], context);
            }
        }
        const char *text = ask(&self, "ann", A2A_LIST_TASKS, "{}");
        assert_int_equal(count_of(text, "INPUT_REQUIRED"), 5);
        assert_non_null(strstr(text, "\"totalSize\":5"));
        assert_non_null(strstr(text, "\"nextPageToken\":\"\""));
        for (int i = 0; i < 5; i++) {
            assert_non_null(strstr(text, anns[i]));
        }
        assert_int_equal(count_of(ask(&self, "bob", A2A_LIST_TASKS, "{}"), "INPUT_REQUIRED"), 12);
        text = ask(&self, "", A2A_LIST_TASKS, "{}");
        assert_non_null(strstr(text, "\"tasks\":[]"));
        assert_non_null(strstr(text, "\"totalSize\":0"));
        do { /* pages are full, whatever lies between */
            text = ask(&self, "ann", A2A_LIST_TASKS, "{'pageSize':2,'pageToken':'%s'}", token);
            int count = count_of(text, "INPUT_REQUIRED");
            seen += count;
            pages++;
            assert_true(count == (seen < 5 || pages < 3 ? 2 : 1));
            assert_non_null(strstr(text, "\"pageSize\":2"));
            assert_non_null(strstr(text, "\"totalSize\":5"));
            token[0] = '\0';
            if (strstr(text, "\"nextPageToken\":\"\"") == NULL) {
                const char *at = strstr(text, "\"nextPageToken\":\"");
                assert_int_equal(sscanf(at, "\"nextPageToken\":\"%1000[^\"]", token), 1);
#ifndef BAY_NO_TLS
                assert_non_null(strstr(
                    ask(&self, "bob", A2A_LIST_TASKS, "{'pageSize':2,'pageToken':'%s'}", token),
                    "pageToken: not one of this list"));
#endif
            }
        } while (token[0] != '\0');
        assert_int_equal(seen, 5);
        rig_close(&self);
    }
}

/* What lies between a caller's tasks is read in bounded steps; a page may then be empty, and says
 * nothing of what there was. */
static void a_page_that_takes_too_long_goes_on_by_its_token(void **state)
{
    (void)state;
    rig self;
    char task[64], other[64], context[64], id[24], token[1024];
    rig_open(&self, A2A_JSONRPC, "");
    begin_task(&self, "ann", "m", task, context);
    for (int i = 0; i < PROXY_LIST_ROUNDS + 2; i++) {
        (void)snprintf(id, sizeof(id), "m%d", i);
        begin_task(&self, "bob", id, other, context);
    }
    const char *text = ask(&self, "ann", A2A_LIST_TASKS, "{'pageSize':1}");
    assert_non_null(strstr(text, "\"tasks\":[]"));
    assert_non_null(strstr(text, "\"totalSize\":1"));
    const char *at = strstr(text, "\"nextPageToken\":\"");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\"nextPageToken\":\"%1000[^\"]", token), 1);
    text = ask(&self, "ann", A2A_LIST_TASKS, "{'pageSize':1,'pageToken':'%s'}", token);
    assert_non_null(strstr(text, task));
    assert_non_null(strstr(text, "\"nextPageToken\":\"\""));
    rig_close(&self);
}

/* A client of 0.1 names its tasks, and an agent of 0.1 has it so: two clients' equal names are two
 * tasks, and a name that nobody gave is no task. */
static void equal_task_ids_of_two_clients_never_meet(void **state)
{
    (void)state;
    seal_ring *ring = NULL;
    agents_owners *all = NULL;
    assert_int_equal(agents_owners_new(STR(""), &all, NULL), BAY_OK);
    agents_owned *far = agents_owners_of(all, STR("far"));
#ifndef BAY_NO_TLS
    assert_int_equal(seal_ring_new(&ring), BAY_OK);
    assert_int_equal(seal_ring_generate(ring), BAY_OK);
#endif
    const seal_ring *shown = ring;
    static const char *const names[] = {"ann", "bob"};
    bay_str sent[2];
    agents_proxy_owner owners[2];
    arena memory;
    json_doc send, get;
    json_val out;
    a2a_fault fault;
    buf stripped;
    arena_init(&memory, 1 << 20);
    assert_int_equal(json_parse(&send, STR("{\"message\":{\"messageId\":\"m\",\"taskId\":\"t1\"}}"),
                                NULL, &memory, NULL),
                     BAY_OK);
    assert_int_equal(json_parse(&get, STR("{\"id\":\"t1\"}"), NULL, &memory, NULL), BAY_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            agents_proxy_owner_init(&owners[i], far, &shown, STR("far"), person(names[i])), BAY_OK);
        assert_int_equal(agents_proxy_owner_write(&owners[i], A2A_GET_TASK, true, json_root(&get),
                                                  &memory, &out, &fault),
                         BAY_ERR_PROTOCOL);
        assert_int_equal(agents_proxy_owner_write(&owners[i], A2A_SEND_MESSAGE, false,
                                                  json_root(&send), &memory, &out, &fault),
                         BAY_ERR_PROTOCOL);
        assert_int_equal(agents_proxy_owner_write(&owners[i], A2A_SEND_MESSAGE, true,
                                                  json_root(&send), &memory, &out, &fault),
                         BAY_OK);
        json_val id = json_get(json_get(out, STR("message")), STR("taskId"));
        assert_int_equal(json_str(id, &memory, &sent[i]), BAY_OK);
        assert_true(str_starts(sent[i], STR("t1~")));
        assert_true(agents_proxy_owner_claims(&owners[i], OWNED_TASK, sent[i]));
    }
    assert_false(str_eq(sent[0], sent[1]));
    assert_false(agents_proxy_owner_claims(&owners[1], OWNED_TASK, sent[0]));
    for (int i = 0; i < 2; i++) { /* from now on each name is its client's task, and comes back */
        assert_int_equal(agents_proxy_owner_write(&owners[i], A2A_GET_TASK, false, json_root(&get),
                                                  &memory, &out, &fault),
                         BAY_OK);
        assert_true(json_str_eq(json_get(out, STR("id")), sent[i]));
        buf_init(&stripped, 1 << 10);
        assert_true(str_eq(agents_proxy_owner_strip(&owners[i], sent[i], &stripped), STR("t1")));
        buf_fini(&stripped);
        buf_init(&stripped, 1 << 10);
        assert_true(
            str_eq(agents_proxy_owner_strip(&owners[i], sent[1 - i], &stripped), sent[1 - i]));
        buf_fini(&stripped);
        agents_proxy_owner_fini(&owners[i]);
    }
    arena_fini(&memory);
    agents_owners_free(all);
    seal_ring_free(ring);
}

/* One exchange of each kind, with what the agent would see and answer. True: it went through. */
static bool exchange(const seal_ring *const *ring, arena *memory)
{
    static const bay_str texts[] = {
        STR_INIT("{\"message\":{\"messageId\":\"m\",\"contextId\":\"c\"}}"),
        STR_INIT("{\"task\":{\"id\":\"t\",\"contextId\":\"d\"}}"),
        STR_INIT("{\"tasks\":[{\"id\":\"t\"},{\"id\":\"u\"}],\"nextPageToken\":\"n\"}"),
    };
    json_doc docs[ARRAY_LEN(texts)];
    json_val out = JSON_NONE;
    a2a_fault fault;
    bool is_done = false;
    agents_owners *all = NULL;
    agents_proxy_owner ann = {0};
    agents_proxy_list list_of = {0};
    buf page;
    json_writer to;
    buf_init(&page, 1 << 16);
    json_writer_init(&to, &page);
    bay_err err = agents_owners_new(STR(""), &all, NULL);
    agents_owned *far = err == BAY_OK ? agents_owners_of(all, STR("far")) : NULL;
    err = far != NULL ? agents_proxy_owner_init(&ann, far, ring, STR("far"), person("ann"))
                      : BAY_ERR_NOMEM;
    for (size_t i = 0; err == BAY_OK && i < ARRAY_LEN(texts); i++) {
        err = json_parse(&docs[i], texts[i], NULL, memory, NULL);
    }
    if (err == BAY_OK) {
        err = agents_proxy_owner_write(&ann, A2A_SEND_MESSAGE, false, json_root(&docs[0]), memory,
                                       &out, &fault);
    }
    if (err == BAY_OK) {
        assert_null(memmem(json_raw(out).at, json_raw(out).len, "\"c\"", 3));
        err = agents_proxy_owner_admits(&ann, A2A_SEND_MESSAGE, false, json_root(&docs[1]), memory)
                  ? agents_proxy_list_init(&list_of, &ann, JSON_NONE, memory, &fault)
                  : BAY_ERR_NOMEM;
    }
    if (err == BAY_OK) {
        err = agents_proxy_list_take(&list_of, &ann, json_root(&docs[2]), memory, &is_done);
    }
    err = err == BAY_OK ? agents_proxy_list_write(&list_of, &ann, &to) : err;
    if (err == BAY_OK) { /* never what is not known to be hers */
        assert_null(memmem(page.at, page.len, "\"u\"", 3));
    }
    bool is_shown = err == BAY_OK && memmem(page.at, page.len, "\"t\"", 3) != NULL;
    assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
    buf_fini(&page);
    agents_proxy_list_fini(&list_of);
    agents_proxy_owner_fini(&ann);
    agents_owners_free(all);
    return is_shown;
}

static void without_memory_nobody_gets_more(void **state)
{
    (void)state;
    seal_ring *ring = NULL;
    bool is_shown = false;
#ifndef BAY_NO_TLS
    assert_int_equal(seal_ring_new(&ring), BAY_OK);
    assert_int_equal(seal_ring_generate(ring), BAY_OK);
#endif
    const seal_ring *shown = ring;
    for (size_t at = 0; failing_memory_start(at); at++) {
        arena memory;
        arena_init(&memory, 1 << 20);
        is_shown = exchange(&shown, &memory);
        arena_fini(&memory);
        failing_memory_check();
    }
    assert_true(is_shown);
    seal_ring_free(ring);
}

static void a_stream_left_half_way_leaves_its_task_to_its_owner(void **state)
{
    (void)state;
    rig self;
    static caller stream, other;
    char task[64];
    rig_open(&self, A2A_JSONRPC, "");
    begin(&self, &stream, "ann", A2A_SEND_STREAMING_MESSAGE,
          "{'message':{'messageId':'m','role':'ROLE_USER','parts':[{'text':'x'}],'metadata':{"
          "'skillId':'wait'}}}");
    turn_until(&self, &stream.events, 2);
    read_id(stream.text, "{\"task\":{\"id\":\"", task);
    assert_null(strstr(stream.text, "~"));
    a2a_service *service = agents_remote_service(self.remote);
    stream.call.is_gone = true;
    service->gone(service, &stream.call);
    finish(&self, &stream);
    assert_non_null(
        strstr(ask(&self, "bob", A2A_SUBSCRIBE_TO_TASK, "{'id':'%s'}", task), "no such task"));
    char params[100];
    (void)snprintf(params, sizeof(params), "{'id':'%s'}", task);
    begin(&self, &other, "ann", A2A_SUBSCRIBE_TO_TASK, params);
    turn_until(&self, &other.events, 1);
    assert_non_null(
        strstr(ask(&self, "bob", A2A_CANCEL_TASK, "{'id':'%s'}", task), "no such task"));
    assert_non_null(
        strstr(ask(&self, "ann", A2A_CANCEL_TASK, "{'id':'%s'}", task), "TASK_STATE_CANCELED"));
    finish(&self, &other);
    assert_non_null(strstr(other.text, "TASK_STATE_CANCELED"));
    rig_close(&self);
}

/* What anonymous callers did before anybody was known is theirs no longer: nobody can tell. */
static void the_first_caller_who_is_known_ends_that_all_share(void **state)
{
    (void)state;
    rig self;
    char task[64], context[64], later[64];
    rig_open(&self, A2A_JSONRPC, "");
    begin_task(&self, "", "m", task, context);
    assert_non_null(strstr(ask(&self, "", A2A_GET_TASK, "{'id':'%s'}", task), context));
    assert_non_null(strstr(ask(&self, "", A2A_LIST_TASKS, "{}"), task));
    assert_non_null(strstr(ask(&self, "ann", A2A_GET_TASK, "{'id':'%s'}", task), "no such task"));
    assert_non_null(strstr(ask(&self, "ann", A2A_LIST_TASKS, "{}"), "\"tasks\":[]"));
    assert_non_null(strstr(ask(&self, "", A2A_GET_TASK, "{'id':'%s'}", task), "no such task"));
    begin_task(&self, "", "m2", later, context);
    assert_non_null(strstr(ask(&self, "", A2A_GET_TASK, "{'id':'%s'}", later), context));
    assert_non_null(strstr(ask(&self, "", A2A_LIST_TASKS, "{}"), later));
    rig_close(&self);
}

static void a_reload_keeps_owners(void **state)
{
    (void)state;
    rig self;
    char task[64], context[64];
    rig_open(&self, A2A_JSONRPC, "");
    begin_task(&self, "ann", "m", task, context);
    agents_remote_free(self.remote);
    open_remote(&self);
    assert_non_null(strstr(ask(&self, "bob", A2A_GET_TASK, "{'id':'%s'}", task), "no such task"));
    assert_non_null(strstr(ask(&self, "ann", A2A_GET_TASK, "{'id':'%s'}", task), context));
    rig_close(&self);
}

#if !defined(BAY_NO_TLS) && !defined(BAY_NO_SQLITE)
static void remove_store(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char name[80];
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        (void)snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        (void)unlink(name);
    }
}

static void a_restart_with_a_store_keeps_owners(void **state)
{
    (void)state;
    rig self;
    bay_diag diag = {0};
    char task[64], context[64], path[] = "/tmp/relay.XXXXXX";
    close(mkstemp(path));
    rig_open(&self, A2A_JSONRPC, path);
    begin_task(&self, "ann", "m", task, context);
    agents_remote_free(self.remote);
    agents_owners_close(self.owners);
    agents_owners_free(self.owners);
    assert_int_equal(agents_owners_new(str_of(path), &self.owners, &diag), BAY_OK);
    assert_int_equal(agents_owners_write_on(self.owners, self.loop), BAY_OK);
    open_remote(&self);
    assert_non_null(strstr(ask(&self, "", A2A_GET_TASK, "{'id':'%s'}", task), "no such task"));
    assert_non_null(strstr(ask(&self, "bob", A2A_GET_TASK, "{'id':'%s'}", task), "no such task"));
    assert_non_null(strstr(ask(&self, "ann", A2A_GET_TASK, "{'id':'%s'}", task), context));
    rig_close(&self);
    remove_store(path);
}

/* Contexts and messages of the older key are known under the newer one. */
static void a_new_key_keeps_owners(void **state)
{
    (void)state;
    rig self;
    char task[64], first[64], context[64], second[64];
    rig_open(&self, A2A_JSONRPC, "");
    const char *text = ask(&self, "ann", A2A_SEND_MESSAGE,
                           "{'message':{'contextId':'mine'," MESSAGE "}}", "m", "ask");
    read_id(text, "{\"task\":{\"id\":\"", first);
    assert_int_equal(seal_ring_generate(self.ring), BAY_OK);
    assert_non_null(strstr(ask(&self, "bob", A2A_GET_TASK, "{'id':'%s'}", first), "no such task"));
    text = ask(&self, "ann", A2A_SEND_MESSAGE, "{'message':{'contextId':'mine'," MESSAGE "}}", "m2",
               "ask");
    read_id(text, "{\"task\":{\"id\":\"", second);
    read_id(text, "\"contextId\":\"", context);
    assert_string_equal(context, "mine");
    begin_task(&self, "ann", "m3", task, context);
    text = ask(&self, "ann", A2A_LIST_TASKS, "{'contextId':'mine'}");
    assert_non_null(strstr(text, first));
    assert_non_null(strstr(text, second));
    assert_null(strstr(text, task));
    assert_null(strstr(text, "~"));
    rig_close(&self);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(anothers_task_is_like_one_that_does_not_exist),
        cmocka_unit_test(equal_message_ids_of_two_callers_never_meet),
        cmocka_unit_test(anothers_context_is_like_one_that_does_not_exist),
        cmocka_unit_test(a_list_shows_the_callers_tasks_alone),
        cmocka_unit_test(a_page_that_takes_too_long_goes_on_by_its_token),
        cmocka_unit_test(equal_task_ids_of_two_clients_never_meet),
        cmocka_unit_test(without_memory_nobody_gets_more),
        cmocka_unit_test(a_stream_left_half_way_leaves_its_task_to_its_owner),
        cmocka_unit_test(the_first_caller_who_is_known_ends_that_all_share),
        cmocka_unit_test(a_reload_keeps_owners),
#if !defined(BAY_NO_TLS) && !defined(BAY_NO_SQLITE)
        cmocka_unit_test(a_restart_with_a_store_keeps_owners),
        cmocka_unit_test(a_new_key_keeps_owners),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

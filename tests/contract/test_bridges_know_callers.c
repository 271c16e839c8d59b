/* Whoever calls through a bridge between tools and agents is known behind it: a tool of an agent
 * made of tools, a skill of a remote agent called as a tool, both in a row; in process, from
 * another loop, for principals of tokens and of the program, for the local user and for nobody; all
 * at once. And what one of them began, no other ever sees or moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "agents/loop_call.h" /* cmocka takes the word "fail" */
#include "agents/skills.h"
#include "agents/tool_agent.h"
#include "support/agent_peer.h"

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp_transport/link.h"
#include "support/a2a_callers.h"
#include "json/writer.h"

enum { HELD = 16 };

/* ---- who calls ------------------------------------------------------------------------------- */

enum { ANN, OTHER_ANN, BOB, LOCAL, NOBODY, ALL };

static const auth_principal *who[ALL]; /* of NOBODY: NULL */

static const auth_principal *made_of(principal_proof proof, const char *issuer, const char *subject)
{
    const auth_principal *self = NULL;
    principal_parts parts = {.proof = proof, .issuer = str_of(issuer), .subject = str_of(subject)};
    assert_int_equal(principal_new(&parts, &self), BAY_OK);
    return self;
}

static int people_open(void **state)
{
    (void)state;
    who[ANN] = made_of(PRINCIPAL_TOKEN, "https://one.example", "ann");
    who[OTHER_ANN] = made_of(PRINCIPAL_TOKEN, "https://two.example", "ann");
    who[BOB] = made_of(PRINCIPAL_PROGRAM, "", "bob");
    who[LOCAL] = principal_local();
    assert_non_null(who[LOCAL]);
    return 0;
}

static int people_close(void **state)
{
    (void)state;
    for (int i = 0; i < ALL; i++) {
        principal_unref(who[i]);
    }
    return 0;
}

/* ---- a server with tools --------------------------------------------------------------------- */

typedef struct tools {
    mcp_server *engine;
    mcp_request *held[HELD];
    int held_count;
} tools;

/* "who" says who calls; "hold" waits. */
static void tools_request(void *user, mcp_request *request)
{
    tools *self = user;
    if (request->method != NULL && request->method->id == MCP_TOOLS_LIST) {
        mcp_request_result_members(
            request, STR("\"tools\":[{\"name\":\"who\",\"inputSchema\":{\"type\":\"object\"}},"
                         "{\"name\":\"hold\",\"inputSchema\":{\"type\":\"object\"}}]"));
        return;
    }
    if (str_eq(request->name, STR("hold"))) {
        assert_true(self->held_count < HELD);
        self->held[self->held_count++] = request;
        return;
    }
    buf text, members;
    buf_init(&text, 1 << 10);
    buf_init(&members, 1 << 12);
    buf_printf(&text, "called by <%.*s>", BAY_STR(principal_identity(request->principal)));
    buf_lit(&members, "\"content\":[{\"type\":\"text\",\"text\":");
    json_quote(&members, buf_view(&text));
    buf_lit(&members, "}]");
    mcp_request_result_members(request, buf_view(&members));
    buf_fini(&text);
    buf_fini(&members);
}

static void tools_cancelled(void *user, mcp_request *request)
{
    tools *self = user;
    for (int i = 0; i < self->held_count; i++) {
        if (self->held[i] == request) {
            self->held[i] = self->held[--self->held_count];
            mcp_request_result_members(request, STR("\"content\":[]"));
            return;
        }
    }
}

static void tools_capabilities(void *user, const mcp_revision *revision, json_writer *out)
{
    (void)user;
    (void)revision;
    json_key_lit(out, "tools");
    json_put_raw(out, STR("{}"));
}

static const mcp_service tools_service = {
    .request = tools_request, .cancelled = tools_cancelled, .capabilities = tools_capabilities};

/* ---- the rig: a made agent on one loop, its callers there and on another --------------------- */

typedef struct rig {
    loop *loops[2]; /* where the agents are; where others call from */
    loop_mailbox *ports[2];
    agents_loop_calls loop_calls;
    a2a_service elsewhere; /* the made agent, from the other loop */
    tools tools;
    mcp_server *engine; /* what the made agent is made of */
    agents_tool_agent *made;
    agents_settings settings[2];
    agents_public public;
    /* a remote one, with its skills as tools */
    agent_peer peer;
    agents_owners *owners;
    seal_ring *ring;
    const seal_ring *shown_ring;
    agents_remote *remote;
    agents_skills *skills;
    char url[64];
} rig;

static rig *the_rig; /* of agents_loop_call_find, which has an endpoint alone */

static a2a_service *find_made(void *endpoint, bay_str name)
{
    (void)endpoint;
    return str_eq(name, STR("desk")) ? agents_tool_agent_service(the_rig->made) : NULL;
}

static void elsewhere_call(a2a_service *service, a2a_call *call)
{
    rig *self = CONTAINER_OF(service, rig, elsewhere);
    agents_loop_call_begin(&self->loop_calls, self->ports[0], STR("desk"), find_made, call);
}

static void elsewhere_gone(a2a_service *service, a2a_call *call)
{
    (void)service;
    agents_loop_call_gone(call);
}

static void elsewhere_drained(a2a_service *service, a2a_call *call)
{
    (void)service;
    agents_loop_call_drained(call);
}

static mcp_server *engine_of(void *user)
{
    return ((rig *)user)->engine;
}

static void on_card(void *user)
{
    ++*(int *)user;
}

static void wait_for_card(rig *self, agents_remote *remote)
{
    int cards = 0;
    agents_watch watch = {.told = on_card, .user = &cards};
    bool is_coming;
    if (remote != NULL) {
        agents_remote_watch(remote, &watch);
        is_coming = agents_remote_learn(remote);
    } else {
        agents_tool_agent_watch(self->made, &watch);
        is_coming = agents_tool_agent_learn(self->made);
    }
    if (is_coming) {
        callers_turn(self->loops, 2, &cards, 1);
    }
    agents_remote_unwatch(&watch);
}

static void open_remote(rig *self)
{
    assert_true(peer_open(&self->peer, 0, NULL));
    (void)snprintf(self->url, sizeof(self->url), "http://127.0.0.1:%u", self->peer.port);
    self->settings[1] = (agents_settings){.name = STR("far"),
                                          .url = str_of(self->url),
                                          .connect_ms = 5000,
                                          .connections = 16,
                                          .timeout_ms = 60000,
                                          .stream_idle_ms = 60000,
                                          .refresh_ms = 600000,
                                          .answer_bytes = 1 << 20,
                                          .circuit = {3, 60000, 100000}};
    if (seal_ring_new(&self->ring) == BAY_OK) {
        assert_int_equal(seal_ring_generate(self->ring), BAY_OK);
        self->shown_ring = self->ring;
    }
    assert_int_equal(agents_owners_new(STR(""), &self->owners, NULL), BAY_OK);
    assert_int_equal(agents_remote_new(self->loops[0], &self->settings[1], &self->public, NULL,
                                       &self->remote, NULL),
                     BAY_OK);
    agents_remote_set_owners(self->remote, agents_owners_of(self->owners, STR("far")),
                             &self->shown_ring);
    assert_int_equal(agents_skills_new(self->loops[0], self->remote, &self->skills), BAY_OK);
    wait_for_card(self, self->remote);
}

/* `has_skills`: the made agent is made of a remote one's skills. */
static void rig_open(rig *self, bool has_skills)
{
    static const bay_str all[] = {STR_INIT("*")};
    memset(self, 0, sizeof(*self));
    the_rig = self;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(loop_new(&self->loops[i]), BAY_OK);
        assert_int_equal(loop_mailbox_new(self->loops[i], self, &self->ports[i]), BAY_OK);
    }
    agents_loop_calls_init(&self->loop_calls, self->ports[1]);
    self->elsewhere =
        (a2a_service){.call = elsewhere_call, .gone = elsewhere_gone, .drained = elsewhere_drained};
    self->public = (agents_public){.base = STR("http://gateway"), .grpc = STR("")};
    mcp_server_options server = {.name = STR("test"), .version = STR("1"), .newest = MCP_LATEST};
    assert_int_equal(mcp_server_new(&server, &tools_service, &self->tools, &self->tools.engine),
                     BAY_OK);
    if (has_skills) {
        open_remote(self);
    }
    self->engine = has_skills ? agents_skills_engine(self->skills) : self->tools.engine;
    self->settings[0] = (agents_settings){.name = STR("desk"),
                                          .tools = all,
                                          .tool_count = 1,
                                          .title = STR("Desk"),
                                          .description = STR("d"),
                                          .timeout_ms = 60000,
                                          .answer_bytes = 1 << 20};
    agents_tools of = {engine_of, self};
    assert_int_equal(agents_tool_agent_new(self->loops[0], &of, &self->settings[0], &self->public,
                                           &self->made, NULL),
                     BAY_OK);
    wait_for_card(self, NULL);
    assert_non_null(agents_tool_agent_card(self->made));
}

static void rig_close(rig *self)
{
    agents_loop_calls_end(&self->loop_calls);
    for (int i = 0; i < 2; i++) {
        loop_mailbox_close(self->ports[i]);
    }
    agents_tool_agent_free(self->made);
    for (int i = 0; i < 50; i++) { /* what is on its way between the loops and the engine */
        loop_turn(self->loops[i % 2], 0);
    }
    while (self->tools.held_count > 0) {
        mcp_request_result_members(self->tools.held[--self->tools.held_count],
                                   STR("\"content\":[]"));
    }
    mcp_server_free(self->tools.engine);
    if (self->remote != NULL) {
        agents_skills_free(self->skills);
        agents_remote_free(self->remote);
        agents_owners_free(self->owners);
        peer_close(&self->peer);
        seal_ring_free(self->ring);
    }
    for (int i = 0; i < 2; i++) {
        loop_mailbox_unref(self->ports[i]);
        loop_free(self->loops[i]);
    }
}

/* From the agent's own loop, or from the other. */
static a2a_service *made_from(rig *self, int at)
{
    return at == 0 ? agents_tool_agent_service(self->made) : &self->elsewhere;
}

static const char *ask(rig *self, a2a_service *service, int caller_index, a2a_method method,
                       const char *format, ...)
{
    static caller one;
    char params[2048];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(params, sizeof(params), format, arguments);
    va_end(arguments);
    caller_begin(&one, service, who[caller_index], method, params);
    caller_finish(&one, self->loops, 2);
    return one.text;
}

static void read_id(const char *text, const char *before, char out[64])
{
    const char *at = strstr(text, before);
    assert_non_null(at);
    assert_int_equal(sscanf(at + strlen(before), "%63[^\"]", out), 1);
}

#define TOOL                                                                                       \
    "{'message':{'messageId':'%s','contextId':'%s','role':'ROLE_USER','parts':[{'text':'%s'}]},"   \
    "'configuration':{'returnImmediately':%s}}"

/* ---- cases ----------------------------------------------------------------------------------- */

static void a_tool_knows_who_called_the_agent(void **state)
{
    (void)state;
    rig self;
    static caller calls[2 * ALL];
    char params[500], expected[200];
    rig_open(&self, false);
    (void)snprintf(params, sizeof(params), TOOL, "same", "same", "who", "false");
    for (int i = 0; i < 2 * ALL; i++) { /* all at once, over one link to the tools */
        caller_begin(&calls[i], made_from(&self, i / ALL), who[i % ALL], A2A_SEND_MESSAGE, params);
    }
    for (int i = 0; i < 2 * ALL; i++) {
        caller_finish(&calls[i], self.loops, 2);
        (void)snprintf(expected, sizeof(expected), "called by <%.*s>",
                       BAY_STR(principal_identity(who[i % ALL])));
        assert_non_null(strstr(calls[i].text, expected));
        assert_non_null(strstr(calls[i].text, "TASK_STATE_COMPLETED"));
    }
    rig_close(&self);
}

/* Every request that names a task. */
static const struct {
    a2a_method method;
    const char *params;
} naming[] = {
    {A2A_GET_TASK, "{'id':'%s'}"},
    {A2A_CANCEL_TASK, "{'id':'%s'}"},
    {A2A_SUBSCRIBE_TO_TASK, "{'id':'%s'}"},
    {A2A_SEND_MESSAGE, "{'message':{'messageId':'n','role':'ROLE_USER','parts':[{'text':'who'}],"
                       "'taskId':'%s'}}"},
};

static void tasks_of_a_made_agent_never_mix(void **state)
{
    (void)state;
    for (int at = 0; at < 2; at++) {
        rig self;
        char task[ALL][64], params[500];
        static char unknown[CALLER_TEXT_BYTES];
        rig_open(&self, false);
        a2a_service *made = made_from(&self, at);
        for (int i = 0; i < ALL; i++) { /* one message and context, five callers */
            read_id(ask(&self, made, i, A2A_SEND_MESSAGE, TOOL, "same", "same", "hold", "true"),
                    "{\"task\":{\"id\":\"", task[i]);
        }
        callers_turn(self.loops, 2, &self.tools.held_count, ALL);
        for (int i = 0; i < ALL; i++) {
            const char *shown = ask(&self, made, i, A2A_LIST_TASKS, "{'contextId':'same'}");
            for (int k = 0; k < ALL; k++) {
                assert_true((strstr(shown, task[k]) != NULL) == (i == k));
            }
            assert_non_null(strstr(shown, "\"totalSize\":1"));
            for (size_t n = 0; n < ARRAY_LEN(naming); n++) {
                (void)snprintf(params, sizeof(params), naming[n].params, "no-such-task");
                (void)snprintf(unknown, sizeof(unknown), "%s",
                               ask(&self, made, i, naming[n].method, params));
                (void)snprintf(params, sizeof(params), naming[n].params, task[(i + 1) % ALL]);
                assert_string_equal(ask(&self, made, i, naming[n].method, params), unknown);
            }
        }
        assert_int_equal(self.tools.held_count, ALL); /* nobody's was cancelled */
        for (int i = 0; i < ALL; i++) {
            assert_non_null(strstr(ask(&self, made, i, A2A_CANCEL_TASK, "{'id':'%s'}", task[i]),
                                   "TASK_STATE_CANCELED"));
        }
        rig_close(&self);
    }
}

/* A call of a tool, in process. */
typedef struct tool_call {
    int is_done;
    char text[8192];
} tool_call;

static void on_done(void *user, mcp_call *call, const mcp_outcome *outcome)
{
    tool_call *self = user;
    (void)call;
    bay_str raw = json_raw(outcome->kind == MCP_OUTCOME_RESULT ? outcome->result : outcome->error);
    (void)snprintf(self->text, sizeof(self->text), "%d %.*s", (int)outcome->kind, BAY_STR(raw));
    self->is_done = 1;
}

static const char *call_skill(rig *self, mcp_link *link, int caller_index, const char *name,
                              const char *task)
{
    static const mcp_call_events events = {.done = on_done};
    static tool_call one;
    char params[500];
    json_doc doc;
    arena memory;
    mcp_call *call;
    bay_diag diag = {0};
    arena_init(&memory, 1 << 20);
    (void)snprintf(
        params, sizeof(params), "{\"name\":\"%s\",\"arguments\":{\"message\":\"red\"%s%s%s}}", name,
        task != NULL ? ",\"taskId\":\"" : "", task != NULL ? task : "", task != NULL ? "\"" : "");
    assert_int_equal(json_parse(&doc, str_of(params), NULL, &memory, NULL), BAY_OK);
    one = (tool_call){0};
    mcp_call_spec spec = {
        .method = STR("tools/call"), .principal = who[caller_index], .params = json_root(&doc)};
    assert_int_equal(mcp_client_call(mcp_link_client(link), &spec, &events, &one,
                                     loop_now_ms(self->loops[0]), &call, &diag),
                     BAY_OK);
    callers_turn(self->loops, 2, &one.is_done, 1);
    arena_fini(&memory);
    return one.text;
}

static void on_ready(void *user)
{
    ++*(int *)user;
}

static void on_broken(void *user, bay_err err, const char *text)
{
    (void)user;
    (void)err;
    (void)text;
}

static void a_skill_called_as_a_tool_belongs_to_who_called(void **state)
{
    (void)state;
    rig self;
    int ready = 0;
    char task[64];
    static char unknown[8192];
    static const mcp_client_events events = {.ready = on_ready, .broken = on_broken};
    mcp_link *link = NULL;
    rig_open(&self, true);
    mcp_link_options options = {.client = {.name = STR("t"),
                                           .version = STR("1"),
                                           .capabilities = STR("{}"),
                                           .oldest = MCP_LATEST,
                                           .newest = MCP_LATEST,
                                           .call_timeout_ms = 60000,
                                           .max_total_ms = 60000,
                                           .max_calls = 100},
                                .events = &events,
                                .user = &ready};
    assert_int_equal(mcp_link_open_local(self.loops[0], self.engine, &options, &link), BAY_OK);
    callers_turn(self.loops, 2, &ready, 1);
    a2a_service *far = agents_remote_service(self.remote);
    for (int i = 0; i < NOBODY; i++) {
        const char *text = call_skill(&self, link, i, "ask", NULL);
        const char *at = strstr(text, "with taskId ");
        assert_non_null(at);
        assert_int_equal(sscanf(at, "with taskId %*[^0-9a-f]%63[0-9a-f-]", task), 1);
        for (int k = 0; k < ALL; k++) { /* by tool and by agent, whoever is another */
            if (k == i) {
                continue;
            }
            (void)snprintf(unknown, sizeof(unknown), "%s",
                           call_skill(&self, link, k, "ask", "no-such-task"));
            const char *got = call_skill(&self, link, k, "ask", task);
            assert_null(strstr(got, "painted"));
            assert_int_equal(got[0], unknown[0]);
            assert_non_null(strstr(unknown, "no such task"));
            assert_non_null(strstr(got, "no such task"));
            assert_non_null(
                strstr(ask(&self, far, k, A2A_GET_TASK, "{'id':'%s'}", task), "no such task"));
            assert_null(strstr(ask(&self, far, k, A2A_LIST_TASKS, "{}"), task));
        }
        assert_non_null(strstr(ask(&self, far, i, A2A_GET_TASK, "{'id':'%s'}", task),
                               "TASK_STATE_INPUT_REQUIRED"));
        assert_non_null(strstr(ask(&self, far, i, A2A_LIST_TASKS, "{}"), task));
        assert_non_null(strstr(call_skill(&self, link, i, "ask", task), "painted red"));
    }
    mcp_link_free(link);
    rig_close(&self);
}

/* A2A, tool, skill, A2A: who calls the agent made of skills owns what the remote one does. */
static void both_bridges_in_a_row_keep_the_caller(void **state)
{
    (void)state;
    rig self;
    static caller calls[2 * NOBODY];
    rig_open(&self, true);
    a2a_service *far = agents_remote_service(self.remote);
    for (int i = 0; i < 2 * NOBODY; i++) { /* of each caller two, of all the same two */
        char params[500];
        (void)snprintf(params, sizeof(params),
                       "{'message':{'messageId':'m%d','role':'ROLE_USER','parts':[{'data':{'tool':"
                       "'echo','arguments':{'message':'hello'}}}]}}",
                       i / NOBODY);
        caller_begin(&calls[i], made_from(&self, i / NOBODY), who[i % NOBODY], A2A_SEND_MESSAGE,
                     params);
    }
    for (int i = 0; i < 2 * NOBODY; i++) {
        caller_finish(&calls[i], self.loops, 2);
        assert_non_null(strstr(calls[i].text, "TASK_STATE_COMPLETED"));
    }
    assert_int_equal(atomic_load(&self.peer.begun), 2 * NOBODY);
    for (int i = 0; i < ALL; i++) {
        assert_non_null(strstr(ask(&self, far, i, A2A_LIST_TASKS, "{}"),
                               i == NOBODY ? "\"totalSize\":0" : "\"totalSize\":2"));
    }
    rig_close(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tool_knows_who_called_the_agent),
        cmocka_unit_test(tasks_of_a_made_agent_never_mix),
        cmocka_unit_test(a_skill_called_as_a_tool_belongs_to_who_called),
        cmocka_unit_test(both_bridges_in_a_row_keep_the_caller),
    };
    return cmocka_run_group_tests(tests, people_open, people_close);
}

/* Rules at an endpoint: what a principal may not use is not listed, not found and not described, and
 * what is listed may be called. Hidden is like invented, byte for byte, in every revision. */
#define STAGE_DOOR (&door)
#define STAGE_TASKS (&task_ops)
#include "call/call.h"
#include "tasks/task.h"

static call_door door;

#include "support/endpoint_testing.h"
#include "support/people.h"

#include "endpoint/endpoint_parts.h"

#define SERVERS "mcpServers: {a: {command: x}, b: {command: x}}\n"
#define INIT(revision) "'protocolVersion':'" revision "','capabilities':{}"

static const auth_principal *token(const char *subject, const char *scopes)
{
    const auth_principal *made = NULL;
    principal_parts parts = {
        .proof = PRINCIPAL_TOKEN, .subject = str_of(subject), .scopes = str_of(scopes)};
    assert_int_equal(principal_new(&parts, &made), BAY_OK);
    return made;
}

static void open_rules(stage *self, const char *settings, const char *only, const char *who)
{
    call_door_init(&door);
    door.timeout_ms = 60000;
    *self = (stage){0};
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    assert_int_equal(seal_ring_new(&self->ring), BAY_OK);
    assert_int_equal(seal_ring_generate(self->ring), BAY_OK);
    open_for(self, settings, only, who);
    endpoint_lists_ready(self->endpoint);
    fake_learn(&self->a->base, mcp_revision_of(MCP_LATEST),
               STR("{\"tools\":{},\"resources\":{\"subscribe\":true},\"prompts\":{},"
                   "\"completions\":{}}"));
    endpoint_server_changed(self->endpoint, NULL);
    policy_index_set(&door.policy, self->config->rules);
    mcp_connection_identify(self->legacy.connection, person("ann"));
    mcp_connection_identify(self->modern.connection, person("ann"));
    self->a->sends = self->b->sends = 0;
    forget(&self->legacy);
    forget(&self->modern);
}

static void close_rules(stage *self)
{
    close_stage(self);
    policy_index_fini(&door.policy);
}

/* The answer to a request that is answered at once; mem_free is the caller's. */
static char *ask(stage *self, bool is_modern, const char *method, const char *params)
{
    buf text;
    peer *to = is_modern ? &self->modern : &self->legacy;
    buf_init(&text, 1 << 16);
    buf_printf(&text, "{'jsonrpc':'2.0','id':7,'method':'%s','params':{%s", method, params);
    if (is_modern) {
        buf_printf(&text, "%s%s}", params[0] != '\0' ? "," : "", META);
    }
    buf_lit(&text, "}}");
    buf_char(&text, '\0');
    assert_int_equal(text.err, BAY_OK);
    say(to, text.at);
    buf_fini(&text);
    if (to->count != 1) {
        fail_msg("%s %s: %d answers", method, params, to->count);
    }
    char *answer = to->lines[0];
    to->count = 0;
    return answer;
}

/* ---- hidden is unknown ------------------------------------------------------------------------ */

typedef struct named {
    const char *method;
    const char *params; /* with %s for the name */
    const char *known;
    const char *invented; /* as long */
    const char *without; /* as long and near to nothing, where there are no rules; NULL: the same */
} named;

static const named rows[] = {
    {"tools/call", "'name':'%s','arguments':{}", "a.echo", "a.ohce", NULL},
    {"tools/call", "'name':'%s','arguments':{}", "a.x.y", "a.y.x", NULL},
    {"prompts/get", "'name':'%s'", "a.p", "a.q", "q.q"},
    {"resources/read", "'uri':'%s'", "f:///a", "f:///b", "h:///b"},
    {"resources/read", "'uri':'%s'", "g:///1", "g:///2", "h:///2"},
    {"completion/complete",
     "'ref':{'type':'ref/prompt','name':'%s'},'argument':{'name':'x','value':'y'}", "a.p", "a.q",
     NULL},
    {"completion/complete",
     "'ref':{'type':'ref/resource','uri':'%s'},'argument':{'name':'x','value':'y'}", "g:///{id}",
     "g:///{ix}", NULL},
};

static char *ask_for(stage *self, bool is_modern, const named *row, const char *name)
{
    char params[256];
    (void)snprintf(params, sizeof(params), row->params, name);
    char *answer = ask(self, is_modern, row->method, params);
    for (char *at = strstr(answer, name); at != NULL; at = strstr(at, name)) {
        memset(at, '#', strlen(name));
    }
    return answer;
}

static void hidden_is_unknown(void **state)
{
    static const char *const revisions[] = {INIT("2024-11-05"), INIT("2025-03-26"),
                                            INIT("2025-06-18"), INIT("2025-11-25")};
    static const char *const files[] = {
        SERVERS "policy: {default: deny}",
        SERVERS "policy: {default: allow, rules: [{deny: ['*', 'prompt:*', 'resource:*']}]}",
        SERVERS "policy: {default: allow, rules: [{deny: ['*', 'prompt:*', 'resource:*'], who: "
                "{subject: ann}}]}",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(revisions) * ARRAY_LEN(files); i++) {
        stage self;
        open_rules(&self, files[i % ARRAY_LEN(files)], "", revisions[i / ARRAY_LEN(files)]);
        for (size_t k = 0; k < 2 * ARRAY_LEN(rows); k++) {
            const named *row = &rows[k / 2];
            bool is_modern = k % 2 == 0;
            char *hidden = ask_for(&self, is_modern, row, row->known);
            char *invented = ask_for(&self, is_modern, row, row->invented);
            policy_index_set(&door.policy, NULL);
            const char *other = row->without != NULL ? row->without : row->invented;
            char *unknown = ask_for(&self, is_modern, row, other);
            policy_index_set(&door.policy, self.config->rules);
            assert_string_equal(hidden, invented);
            assert_string_equal(hidden, unknown);
            mem_free(hidden);
            mem_free(invented);
            mem_free(unknown);
        }
        assert_int_equal(self.a->sends + self.b->sends, 0);
        close_rules(&self);
    }
}

static void hidden_is_not_listed(void **state)
{
    static const char *const lists[] = {"tools/list", "prompts/list", "resources/list",
                                        "resources/templates/list"};
    static const char *const words[] = {"echo", "x.y", "\"a.p\"", "f:///a", "g:///", "nextCursor"};
    stage self;
    (void)state;
    open_rules(&self, SERVERS "limits: {pageSize: 1}\npolicy: {default: deny}", "",
               INIT("2025-11-25"));
    for (size_t i = 0; i < 2 * ARRAY_LEN(lists); i++) {
        char *answer = ask(&self, i % 2 == 0, lists[i / 2], "");
        assert_non_null(strstr(answer, ":[]"));
        for (size_t k = 0; k < ARRAY_LEN(words); k++) {
            assert_null(strstr(answer, words[k]));
        }
        mem_free(answer);
    }
    close_rules(&self);
}

/* A page is as full as it may be, and the last one says that it is: what is hidden leaves no gap. */
static void pages_tell_nothing_of_what_is_hidden(void **state)
{
    stage self;
    (void)state;
    open_rules(&self,
               SERVERS "limits: {pageSize: 1}\npolicy: {default: deny, rules: [{allow: a.x.y}]}",
               "", INIT("2025-11-25"));
    for (int i = 0; i < 2; i++) {
        char *answer = ask(&self, i == 0, "tools/list", "");
        assert_non_null(strstr(answer, "\"tools\":[{\"name\":\"a.x.y\"}]"));
        assert_null(strstr(answer, "nextCursor"));
        mem_free(answer);
    }
    close_rules(&self);
    open_rules(&self,
               SERVERS "limits: {pageSize: 1}\npolicy: {default: allow, rules: [{deny: a.x.y}]}",
               "", INIT("2025-11-25"));
    char *answer = ask(&self, false, "tools/list", "");
    assert_non_null(strstr(answer, "\"tools\":[{\"name\":\"a.echo\"}]"));
    char *cursor = strstr(answer, "nextCursor\":\"");
    assert_non_null(cursor);
    char params[400];
    cursor += strlen("nextCursor\":\"");
    (void)snprintf(params, sizeof(params), "'cursor':'%.*s'", (int)strcspn(cursor, "\""), cursor);
    mem_free(answer);
    answer = ask(&self, false, "tools/list", params);
    assert_non_null(strstr(answer, "\"tools\":[{\"name\":\"b.echo\"}]"));
    assert_null(strstr(answer, "nextCursor"));
    mem_free(answer);
    close_rules(&self);
}

/* ---- listed is callable ----------------------------------------------------------------------- */

static const char *const policies[] = {
    "{default: allow}",
    "{default: deny}",
    "{default: deny, rules: [{allow: '*'}]}",
    "{default: deny, rules: [{allow: 'a.*'}, {deny: '*.y'}]}",
    "{default: allow, rules: [{deny: '*', server: b}]}",
    "{default: allow, rules: [{deny: '*', who: {subject: bob}}, {deny: 'a.echo'}]}",
    "{default: deny, rules: [{allow: '*', who: {subject: [ann, bob]}, server: a}]}",
    "{default: deny, rules: [{allow: ['a.echo', 'b.echo'], method: 'tools/*'}]}",
    "{default: deny, rules: [{allow: '*', who: {address: 10.0.0.0/8}}]}",
    "{default: allow, rules: [{deny: '*', who: {header: {X-Org: evil}}}]}",
    "{default: deny, rules: [{allow: '*', who: {group: g}}]}",
};

/* Each tool: in the list, found, described and sent to its server, or none of it. */
static void listed_is_callable(void **state)
{
    static const char *const tools[] = {"a.echo", "a.x.y", "b.echo"};
    int seen = 0;
    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_LEN(policies); i++) {
        char file[400];
        stage self;
        bool is_searched = i % 2 == 1;
        (void)snprintf(file, sizeof(file), SERVERS "groups: {g: {subject: ann}}\n%spolicy: %s",
                       is_searched ? "toolMode: search\n" : "", policies[i / 2]);
        open_rules(&self, file, "", INIT("2025-11-25"));
        char *shown = is_searched ? ask(&self, false, "tools/call",
                                        "'name':'search_tools','arguments':{'query':''}")
                                  : ask(&self, false, "tools/list", "");
        for (size_t k = 0; k < ARRAY_LEN(tools); k++) {
            char params[200];
            char quoted[40];
            int sends = self.a->sends + self.b->sends;
            (void)snprintf(quoted, sizeof(quoted), "\"%s\"", tools[k]);
            (void)snprintf(params, sizeof(params),
                           is_searched ? "'name':'call_tool','arguments':{'name':'%s'}"
                                       : "'name':'%s','arguments':{}",
                           tools[k]);
            char call[400];
            (void)snprintf(call, sizeof(call),
                           "{'jsonrpc':'2.0','id':1%zu,'method':'tools/call','params':{%s}}", k,
                           params);
            say(&self.legacy, call);
            bool is_listed = strstr(shown, quoted) != NULL;
            bool is_called = self.a->sends + self.b->sends == sends + 1;
            if (is_listed != is_called) {
                fail_msg("%s: %s is %slisted and %scalled", policies[i / 2], tools[k],
                         is_listed ? "" : "not ", is_called ? "" : "not ");
            }
            forget(&self.legacy);
            if (is_searched) {
                (void)snprintf(params, sizeof(params),
                               "'name':'describe_tool','arguments':{'name':'%s'}", tools[k]);
                char *told = ask(&self, false, "tools/call", params);
                assert_true((strstr(told, "\"isError\":true") == NULL) == is_listed);
                mem_free(told);
            }
            seen += is_listed;
        }
        mem_free(shown);
        close_rules(&self);
    }
    assert_true(seen > 10);
}

/* A rule names what "/mcp" shows, and holds at the server's own endpoint as well. */
static void rules_hold_at_every_endpoint(void **state)
{
    stage self;
    (void)state;
    open_rules(&self, SERVERS "policy: {default: allow, rules: [{deny: a.echo}]}", "a",
               INIT("2025-11-25"));
    char *answer = ask(&self, false, "tools/list", "");
    assert_non_null(strstr(answer, "\"tools\":[{\"name\":\"x.y\"}]"));
    mem_free(answer);
    answer = ask(&self, true, "tools/call", "'name':'echo','arguments':{}");
    assert_non_null(strstr(answer, "Unknown tool: echo\""));
    mem_free(answer);
    answer = ask(&self, true, "tools/call", "'name':'x_y','arguments':{}");
    assert_non_null(strstr(answer, "Unknown tool: x_y; did you mean x.y?\""));
    mem_free(answer);
    answer = ask(&self, true, "tools/call", "'name':'ecko','arguments':{}"); /* near a hidden one */
    assert_non_null(strstr(answer, "Unknown tool: ecko\""));
    mem_free(answer);
    assert_int_equal(self.a->sends, 0);
    close_rules(&self);
}

static void subscriptions_are_decided(void **state)
{
    stage self;
    (void)state;
    open_rules(&self, SERVERS "policy: {default: allow, rules: [{deny: 'resource:f:*'}]}", "",
               INIT("2025-11-25"));
    self.a->subscribes = 0;
    char *answer = ask(&self, false, "resources/subscribe", "'uri':'f:///a'");
    char *other = ask(&self, false, "resources/subscribe", "'uri':'f:///b'");
    assert_non_null(strstr(answer, "\"error\""));
    assert_int_equal(strlen(answer), strlen(other));
    mem_free(answer);
    mem_free(other);
    answer = ask(&self, true, "subscriptions/listen",
                 "'notifications':{'resourceSubscriptions':['f:///a']}");
    assert_null(strstr(answer, "f:///a"));
    mem_free(answer);
    assert_int_equal(self.a->subscribes, 0);
    close_rules(&self);
}

/* ---- what is visible and refused -------------------------------------------------------------- */

static void arguments_are_decided(void **state)
{
    stage self;
    (void)state;
    open_rules(&self,
               SERVERS "policy: {default: deny, rules: [{allow: a.echo, args: {/n: {le: 10}}}, "
                       "{approve: a.echo, args: {/n: {gt: 5}}}]}",
               "", INIT("2025-11-25"));
    char *answer = ask(&self, false, "tools/list", "");
    assert_non_null(strstr(answer, "\"a.echo\""));
    mem_free(answer);
    static const char *const refused[] = {
        "'name':'a.echo','arguments':{'n':11}",
        "'name':'a.echo','arguments':{'n':'1'}",
        "'name':'a.echo'",
        "'name':'a.echo','arguments':{'n':1,'N':11}",
        "'name':'a.echo','arguments':{'n':1},'arguments':{'n':11}",
    };
    for (size_t i = 0; i < 2 * ARRAY_LEN(refused); i++) {
        answer = ask(&self, i % 2 == 0, "tools/call", refused[i / 2]);
        bool is_fault = strstr(answer, "\"error\"") != NULL; /* a member that stands twice */
        assert_true(is_fault || (strstr(answer, "\"isError\":true") != NULL &&
                                 strstr(answer, "\"patchbay/reason\":\"denied\"") != NULL &&
                                 strstr(answer, "structuredContent") == NULL));
        mem_free(answer);
    }
    answer = ask(&self, true, "tools/call", "'name':'a.echo','arguments':{'n':6}");
    assert_non_null(strstr(answer, "\"patchbay/reason\":\"approval_unavailable\""));
    mem_free(answer);
    assert_int_equal(self.a->sends, 0);
    say(&self.modern, MODERN("9", "tools/call", "'name':'a.echo','arguments':{'n':5}"));
    assert_int_equal(self.a->sends, 1);
    close_rules(&self);
}

static void a_scope_that_lacks_is_named(void **state)
{
    stage self;
    (void)state;
    open_rules(&self,
               SERVERS "policy: {default: deny, rules: [{allow: a.echo, who: {scopes: [r, w]}}]}",
               "", INIT("2025-11-25"));
    const auth_principal *reader = token("ann", "r");
    const auth_principal *writer = token("ann", "r w");
    char *answer = ask(&self, true, "tools/list", "");
    assert_null(strstr(answer, "echo")); /* ann has no token */
    mem_free(answer);
    mcp_connection_identify(self.modern.connection, reader);
    answer = ask(&self, true, "tools/list", "");
    assert_non_null(strstr(answer, "\"a.echo\""));
    mem_free(answer);
    answer = ask(&self, true, "tools/call", "'name':'a.echo','arguments':{}");
    assert_non_null(strstr(answer, "\"patchbay/reason\":\"insufficient_scope\""));
    assert_non_null(strstr(answer, "r w"));
    mem_free(answer);
    assert_int_equal(self.a->sends, 0);
    mcp_connection_identify(self.modern.connection, writer);
    say(&self.modern, MODERN("9", "tools/call", "'name':'a.echo','arguments':{}"));
    assert_int_equal(self.a->sends, 1);
    close_rules(&self);
    principal_unref(reader);
    principal_unref(writer);
}

/* A client hears that its lists are others when the rules are. */
static void other_rules_are_told(void **state)
{
    stage self;
    (void)state;
    open_rules(&self, SERVERS "policy: {default: deny}", "", INIT("2025-11-25"));
    const config *next = testing_config(SERVERS "policy: {default: allow}");
    assert_int_equal(endpoint_set_sources(self.endpoint, next, self.sources, 2), BAY_OK);
    endpoint_tell_now(self.endpoint);
    bool is_told = false;
    for (int i = 0; i < self.legacy.count; i++) {
        is_told |= strstr(self.legacy.lines[i], "notifications/tools/list_changed") != NULL;
    }
    assert_true(is_told);
    policy_index_set(&door.policy, next->rules);
    forget(&self.legacy);
    char *answer = ask(&self, false, "tools/list", "");
    assert_non_null(strstr(answer, "\"a.echo\""));
    mem_free(answer);
    close_rules(&self);
    config_free(next);
}

/* A client that is in the middle of a list goes on with it after a server of it has left. */
static void an_older_list_outlives_its_server(void **state)
{
    stage self;
    char cursor[300];
    char params[400];
    (void)state;
    open_rules(&self,
               SERVERS "limits: {pageSize: 1}\npolicy: {default: allow, rules: [{deny: a.x.y}]}",
               "", INIT("2025-11-25"));
    char *answer = ask(&self, true, "tools/list", "");
    const char *at = strstr(answer, "nextCursor\":\"");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "nextCursor\":\"%299[^\"]", cursor), 1);
    mem_free(answer);
    assert_int_equal(endpoint_set_sources(self.endpoint, self.config, self.sources, 1), BAY_OK);
    fake_free(self.b);
    (void)snprintf(params, sizeof(params), "'cursor':'%s'", cursor);
    answer = ask(&self, true, "tools/list", params);
    assert_non_null(strstr(answer, "\"tools\":[{\"name\":\"b.echo\"}]"));
    mem_free(answer);
    self.b = fake_new("b", false);
    close_rules(&self);
}

/* Whether a server is there and why its list is not does not show where the name would be hidden. */
static void an_unread_server_is_hidden(void **state)
{
    static const char *const files[] = {
        SERVERS "policy: {default: allow, rules: [{deny: [b.*, 'prompt:b.*']}]}",
        SERVERS "toolMode: search\npolicy: {default: allow, rules: [{deny: [b.*, 'prompt:b.*']}]}",
    };
    static const named asked[] = {
        {"tools/call", "'name':'%s','arguments':{}", "b.echo", "c.echo", NULL},
        {"tools/call", "'name':'call_tool','arguments':{'name':'%s'}", "b.echo", "c.echo", NULL},
        {"prompts/get", "'name':'%s'", "b.p", "c.p", NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(files) * ARRAY_LEN(asked); i++) {
        stage self;
        open_rules(&self, files[i / ARRAY_LEN(asked)], "", INIT("2025-11-25"));
        const named *row = &asked[i % ARRAY_LEN(asked)];
        listing *read = self.sources[1].listings[LISTING_TOOLS];
        self.sources[1].listings[LISTING_TOOLS] = NULL;
        self.sources[1].read = ~0u; /* and not again */
        assert_int_equal(endpoint_set_sources(self.endpoint, self.config, self.sources, 2), BAY_OK);
        listing_unref(read);
        char *hidden = ask_for(&self, true, row, row->known);
        char *invented = ask_for(&self, true, row, row->invented);
        assert_string_equal(hidden, invented);
        mem_free(hidden);
        mem_free(invented);
        close_rules(&self);
    }
}

/* Of two members that a server may take for one another it might read the one that nobody decided
 * on. */
static void members_are_said_once(void **state)
{
    static const struct {
        const char *method;
        const char *params;
    } asked[] = {
        {"tools/call", "'name':'a.echo','Name':'x.y'"},
        {"tools/call", "'name':'a.echo','arguments':{},'Arguments':{'n':1}"},
        {"tools/call", "'name':'a.echo','argument\xc5\xbf':{'n':1}"},
        {"tools/call", "'name':'a.echo','RequestState':'s'"},
        {"prompts/get", "'name':'a.p','NAME':'q'"},
        {"resources/read", "'uri':'f:///a','URI':'f:///b'"},
        {"completion/complete", "'ref':{'type':'ref/prompt','name':'a.p'},"
                                "'ref':{'type':'ref/prompt','name':'q'},"
                                "'argument':{'name':'x','value':'y'}"},
        {"completion/complete", "'ref':{'type':'ref/prompt','name':'a.p','name':'q'},"
                                "'argument':{'name':'x','value':'y'}"},
        {"completion/complete", "'ref':{'type':'ref/resource','uri':'g:///{id}','Uri':'q'},"
                                "'argument':{'name':'x','value':'y'}"},
    };
    stage self;
    (void)state;
    open_rules(&self, SERVERS "policy: {default: allow}", "", INIT("2025-11-25"));
    for (size_t i = 0; i < 2 * ARRAY_LEN(asked); i++) {
        char *answer = ask(&self, i % 2 == 0, asked[i / 2].method, asked[i / 2].params);
        assert_non_null(strstr(answer, "\"error\":{\"code\":-32602"));
        mem_free(answer);
    }
    assert_int_equal(self.a->sends + self.b->sends, 0);
    close_rules(&self);
}

/* A rule about calls of a tool is not about the tool that searches. */
static void to_search_is_to_list(void **state)
{
    stage self;
    (void)state;
    open_rules(&self,
               SERVERS "toolMode: search\n"
                       "policy: {default: allow, rules: [{deny: a.echo, method: tools/call}]}",
               "", INIT("2025-11-25"));
    char *answer = ask(&self, true, "tools/call", "'name':'search_tools','arguments':{'query':''}");
    assert_non_null(strstr(answer, "x.y"));
    assert_null(strstr(answer, "a.echo"));
    mem_free(answer);
    close_rules(&self);
}

/* Neither a server that fails nor an item on which rules cannot decide is told to those for whom it
 * is not there. */
static void skills_are_decided(void **state)
{
    stage self;
    (void)state;
    open_rules(&self, SERVERS "policy: {default: allow, rules: [{deny: 'skill:*', server: a}]}", "",
               INIT("2025-11-25"));
    fake_learn(&self.a->base, mcp_revision_of(MCP_LATEST),
               STR("{\"resources\":{},\"extensions\":{\"io.modelcontextprotocol/skills\":{}}}"));
    endpoint_server_changed(self.endpoint, NULL);
    say(&self.modern, MODERN("1", "skills/list", "'x':1"));
    fake_result(self.a, "{'skills':[{'uri':'skill://x/SKILL.md'},{'name':'y'}],"
                        "'cacheScope':'public','ttlMs':5}");
    assert_int_equal(self.modern.count, 1);
    assert_non_null(strstr(self.modern.lines[0], "\"skills\":[]"));
    assert_non_null(strstr(self.modern.lines[0], "\"cacheScope\":\"private\""));
    forget(&self.modern);
    say(&self.modern, MODERN("1", "skills/list", "'x':1"));
    fake_fail(self.a, BAY_ERR_CLOSED, false, "it went");
    assert_int_equal(self.modern.count, 1);
    assert_non_null(strstr(self.modern.lines[0], "\"skills\":[]"));
    forget(&self.modern);
    close_rules(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hidden_is_unknown),
        cmocka_unit_test(hidden_is_not_listed),
        cmocka_unit_test(pages_tell_nothing_of_what_is_hidden),
        cmocka_unit_test(listed_is_callable),
        cmocka_unit_test(rules_hold_at_every_endpoint),
        cmocka_unit_test(subscriptions_are_decided),
        cmocka_unit_test(arguments_are_decided),
        cmocka_unit_test(a_scope_that_lacks_is_named),
        cmocka_unit_test(other_rules_are_told),
        cmocka_unit_test(an_older_list_outlives_its_server),
        cmocka_unit_test(an_unread_server_is_hidden),
        cmocka_unit_test(members_are_said_once),
        cmocka_unit_test(to_search_is_to_list),
        cmocka_unit_test(skills_are_decided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

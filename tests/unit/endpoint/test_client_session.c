/* What a server says, outside of any call, to one client with a session: it reaches that client in
 * its own words, and no other; and the only client of stdin and stdout introduces itself. */
#include "support/endpoint_testing.h"

#include "endpoint/endpoint_parts.h"
#include "support/people.h"

#define CAN "'protocolVersion':'2025-06-18','capabilities':{'elicitation':{},'sampling':{}}"
#define FORM                                                                                       \
    "{'jsonrpc':'2.0','id':'q','method':'elicitation/create','params':{'message':'m','mode':"      \
    "'form','requestedSchema':{'type':'object','properties':{}}}}"

/* Opens a stage whose session client is known to servers by the name that this returns. */
static bay_str open_named(stage *self, char name[80])
{
    open_on_loop(self, "workers: 1", CAN);
    fake_learn(&self->a->base, mcp_revision_of(MCP_REV_2025_11_25),
               STR("{\"tools\":{},\"resources\":{\"subscribe\":true}}"));
    say(&self->legacy, LEGACY("1", "tools/call", "'name':'a.echo'"));
    bay_str identity = self->a->held[0]->affinity.identity;
    (void)snprintf(name, 80, "%.*s", BAY_STR(identity));
    fake_result(self->a, "{'content':[]}");
    forget(&self->legacy);
    assert_true(name[0] != '\0');
    return str_of(name);
}

static void tell(const stage *self, bay_str identity, mcp_method_id method, const char *uri,
                 const char *params)
{
    arena memory;
    json_doc doc;
    upstream_client_message what = {.identity = identity, .method = method, .uri = str_of(uri)};
    char *text = testing_quotes(params);
    arena_init(&memory, 1 << 16);
    if (params[0] != '\0') {
        assert_int_equal(json_parse(&doc, str_of(text), NULL, &memory, NULL), BAY_OK);
        what.params = json_root(&doc);
    }
    endpoint_client_told(self->endpoint, &self->a->base, &what);
    arena_fini(&memory);
    mem_free(text);
}

static bool ask(const stage *self, bay_str identity, uint64_t number, const char *request)
{
    arena memory;
    json_doc doc;
    rpc_message message;
    rpc_fault fault;
    char *text = testing_quotes(request);
    arena_init(&memory, 1 << 16);
    assert_int_equal(rpc_message_parse(&message, &doc, str_of(text), NULL, &memory, &fault),
                     BAY_OK);
    bool is_taken =
        endpoint_client_asked(self->endpoint, &self->a->base, identity, number, &message);
    arena_fini(&memory);
    mem_free(text);
    return is_taken;
}

static void what_is_told_reaches_that_client(void **state)
{
    (void)state;
    stage self;
    char name[80];
    bay_str client = open_named(&self, name);
    tell(&self, STR("somebody"), MCP_N_TOOLS_CHANGED, "", "");
    tell(&self, STR(""), MCP_N_TOOLS_CHANGED, "", "");
    tell(&self, client, MCP_N_MESSAGE, "", "{'level':'debug','data':1}"); /* below its level */
    tell(&self, client, MCP_N_RESOURCE_UPDATED, "f:///a", "");            /* not subscribed to */
    assert_int_equal(self.legacy.count, 0);
    tell(&self, client, MCP_N_TOOLS_CHANGED, "", "");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}");
    tell(&self, client, MCP_N_MESSAGE, "", "{'level':'error','data' : 1.0}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/message','params':"
                               "{'level':'error','data' : 1.0}}");
    say(&self.legacy, LEGACY("2", "resources/subscribe", "'uri':'f:///a'"));
    forget(&self.legacy);
    tell(&self, client, MCP_N_RESOURCE_UPDATED, "f:///a", "");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/resources/updated',"
                               "'params':{'uri':'f:///a'}}");
    assert_int_equal(self.modern.count, 0);
    close_stage(&self);
}

static void a_question_is_put_to_that_client(void **state)
{
    (void)state;
    stage self;
    char name[80];
    bay_str client = open_named(&self, name);
    assert_false(ask(&self, STR("somebody"), 7, FORM));
    assert_true(ask(&self, client, 7, "{'jsonrpc':'2.0','id':1,'method':'roots/list'}"));
    assert_true(str_starts(str_of(self.a->answer), STR("7 -32601 ")));
    assert_int_equal(self.legacy.count, 0);
    assert_true(ask(&self, client, 8, FORM));
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','method':'elicitation/create',"
                               "'params':{'message':'m','requestedSchema':{'type':'object',"
                               "'properties':{}}}}");
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action' : 'accept'}}");
    assert_text(str_of(self.a->answer), "8 {\"action\" : \"accept\"}0 ");
    assert_true(ask(&self, client, 9, FORM));
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-2','result':{'action':1}}");
    assert_true(str_starts(str_of(self.a->answer), STR("9 -32603 the client's answer is no")));
    assert_true(ask(&self, client, 10, FORM));
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-3','error':{'code':-5,'message':'n\\u0041'}}");
    assert_text(str_of(self.a->answer), "10 -5 nA");
    assert_int_equal(self.a->answers, 4);
    close_stage(&self);
}

static void what_the_server_takes_back_the_client_hears(void **state)
{
    (void)state;
    stage self;
    char name[80];
    bay_str client = open_named(&self, name);
    assert_true(ask(&self, client, 7, FORM));
    forget(&self.legacy);
    endpoint_client_withdrawn(self.endpoint, &self.b->base, 7); /* another server's */
    endpoint_client_withdrawn(self.endpoint, &self.a->base, 6);
    assert_int_equal(self.legacy.count, 0);
    endpoint_client_withdrawn(self.endpoint, &self.a->base, 7);
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
                               "'requestId':'bay-1','reason':'The server took it back'}}");
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'accept'}}");
    assert_int_equal(self.a->answers, 0);
    close_stage(&self);
}

static void nobody_is_waited_for_who_has_left(void **state)
{
    (void)state;
    stage self;
    char name[80];
    bay_str client = open_named(&self, name);
    assert_true(ask(&self, client, 7, FORM));
    mcp_connection_close(self.legacy.connection);
    assert_text(str_of(self.a->answer), "7 -32603 the client is gone");
    assert_false(ask(&self, client, 8, FORM));
    tell(&self, client, MCP_N_TOOLS_CHANGED, "", "");
    forget(&self.legacy);
    peer_open(&self.legacy, self.endpoint);
    close_stage(&self);

    client = open_named(&self, name); /* the server leaves */
    assert_true(ask(&self, client, 7, FORM));
    assert_int_equal(endpoint_set_sources(self.endpoint, self.config, &self.sources[1], 1), BAY_OK);
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'accept'}}");
    assert_int_equal(self.a->answers, 0);
    assert_false(ask(&self, client, 8, FORM));
    close_stage(&self);

    client = open_named(&self, name); /* the endpoint goes, with a question open */
    assert_true(ask(&self, client, 7, FORM));
    close_stage(&self);
}

static void introduced(void *user, unsigned inputs)
{
    unsigned *heard = user;
    assert_int_equal(*heard, 99); /* once */
    *heard = inputs;
}

/* By initialize, or by the first request of the stateless revision. */
static void the_only_client_introduces_itself(void **state)
{
    (void)state;
    for (int is_modern = 0; is_modern < 2; is_modern++) {
        stage self = {0};
        peer only;
        unsigned heard = 99;
        open_on_loop(&self, "workers: 1", CAN);
        endpoint *of;
        endpoint_options options = {.config = self.config,
                                    .loop = self.loop,
                                    .ring = self.ring,
                                    .has_one_client = true,
                                    .introduced = introduced,
                                    .user = &heard};
        assert_int_equal(endpoint_new(&options, &of), BAY_OK);
        peer_open(&only, of);
        assert_null(endpoint_session_find(of, STR("")));
        if (is_modern) {
            say(&only, MODERN("1", "tools/list", "'x':1"));
            say(&only, MODERN("2", "tools/list", "'x':1"));
            assert_null(endpoint_session_find(of, STR("")));
        } else {
            say(&only, "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{" CAN
                       ",'clientInfo':{'name':'c','version':'1'}}}");
            say(&only, LEGACY("1", "tools/list", "'x':1"));
            assert_non_null(endpoint_session_find(of, STR("")));
        }
        assert_int_equal(heard, is_modern ? MCP_INPUT_FORM : MCP_INPUT_FORM | MCP_INPUT_SAMPLING);
        mcp_connection_close(only.connection);
        assert_null(endpoint_session_find(of, STR("")));
        endpoint_free(of);
        forget(&only);
        close_stage(&self);
    }
}

#define NAMED(more)                                                                                \
    "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'a.echo'," META more "}}}"

/* What a request says of itself, as its server's sessions are told apart by it. */
static void expect_identity(stage *self, const auth_principal *who, const char *request,
                            const char *end, bool is_stateless)
{
    mcp_connection_identify(self->modern.connection, who);
    say(&self->modern, request);
    const upstream_affinity *affinity = &self->a->held[0]->affinity;
    bay_str binding = principal_binding(who);
    assert_true(str_starts(affinity->identity, binding));
    assert_text(str_from(affinity->identity, binding.len), end);
    assert_int_equal(affinity->is_stateless, is_stateless);
    assert_false(affinity->has_session);
    fake_result(self->a, "{'content':[]}");
    forget(&self->modern);
}

/* It counts only within a principal: who is nobody cannot be told from another. */
static void a_conversation_tells_clients_of_one_principal_apart(void **state)
{
    (void)state;
    stage self = {0};
    char name[ENDPOINT_CONVERSATION_BYTES + 1];
    char request[1000];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    open_on_loop(&self, "conversation: acme/thread", CAN);
    expect_identity(&self, person("alice"), NAMED(",'acme/thread':'t1'"), "\"t1\"", false);
    expect_identity(&self, person("alice"), NAMED(",'acme/thread':'t2'"), "\"t2\"", false);
    expect_identity(&self, person("bob"), NAMED(",'acme/thread':'t1'"), "\"t1\"", false);
    expect_identity(&self, person("alice"), NAMED(""), "", true);
    expect_identity(&self, person("alice"), NAMED(",'acme/thread':''"), "", true);
    expect_identity(&self, person("alice"), NAMED(",'acme/thread':7"), "", true);
    expect_identity(&self, person("alice"), NAMED(",'other/thread':'t1'"), "", true);
    (void)snprintf(request, sizeof(request), NAMED(",'acme/thread':'%s'"), name);
    expect_identity(&self, person("alice"), request, "", true);
    expect_identity(&self, NULL, NAMED(",'acme/thread':'t1'"), "", true);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.echo','_meta':{'acme/thread':'t1'}"));
    assert_false(str_contains(self.a->held[0]->affinity.identity, "t1")); /* it has a session */
    assert_true(self.a->held[0]->affinity.has_session);
    fake_result(self.a, "{'content':[]}");
    close_stage(&self);
}

/* ---- a session of its own --------------------------------------------------------------------- */

#define SHARED_RESOURCES "{'resources':[{'uri':'f:///a','name':'r'}]}"

/* Answers the reading of its lists that is under way, over the client's own session. */
static void answer_lists(stage *self, bay_str client, const char *tools)
{
    assert_true(self->a->held_count > 0);
    while (self->a->held_count > 0) {
        const upstream_call *call = self->a->held[0];
        assert_true(str_eq(call->affinity.identity, client));
        assert_int_equal(call->affinity.inputs, MCP_INPUT_FORM | MCP_INPUT_SAMPLING);
        if (str_eq(call->spec.method, STR("tools/list"))) {
            fake_result(self->a, tools);
        } else if (str_eq(call->spec.method, STR("resources/list"))) {
            fake_result(self->a, SHARED_RESOURCES);
        } else if (str_eq(call->spec.method, STR("prompts/list"))) {
            fake_result(self->a, "{'prompts':[{'name':'p'}]}");
        } else {
            fake_error(self->a, RPC_METHOD_NOT_FOUND, "{'code':-32601,'message':'none'}");
        }
    }
    (void)loop_turn(self->loop, 0); /* it is told when the turn is over */
}

static void expect_tools(peer *of, const char *request, const char *has, const char *has_not)
{
    say(of, request);
    assert_int_equal(of->count, 1);
    assert_non_null(strstr(of->lines[0], has));
    assert_null(strstr(of->lines[0], has_not));
    forget(of);
}

#define LIST LEGACY("5", "tools/list", "")
#define TOOLS_CHANGED "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}"
#define OWN_TOOLS                                                                                  \
    "{'tools':[{'name':'echo','inputSchema':{'type':'object'}},"                                   \
    "{'name':'mine','inputSchema':{'type':'object'}}]}"

static void what_its_own_session_lists_it_sees_and_calls(void **state)
{
    (void)state;
    stage self;
    char name[80];
    bay_str client = open_named(&self, name);
    fake_learn(&self.a->base, mcp_revision_of(MCP_REV_2025_11_25),
               STR("{\"tools\":{},\"resources\":{},\"prompts\":{}}"));
    endpoint_own_session(self.endpoint, &self.a->base, STR("somebody"), 1, true);
    assert_int_equal(self.a->held_count, 0);
    endpoint_own_session(self.endpoint, &self.a->base, client, 1, true);
    expect_tools(&self.legacy, LIST, "a.x.y", "a.mine"); /* until it has been read */
    answer_lists(&self, client, OWN_TOOLS);
    assert_heard(&self.legacy, TOOLS_CHANGED);
    assert_int_equal(self.modern.count, 0);
    expect_tools(&self.legacy, LIST, "a.mine", "a.x.y");
    expect_tools(&self.legacy, LIST, "b.echo", "a.x.y");
    expect_tools(&self.modern, MODERN("5", "tools/list", "'x':1"), "", "a.mine");
    say(&self.legacy, LEGACY("6", "tools/call", "'name':'a.mine'"));
    assert_int_equal(self.a->held_count, 1);
    fake_result(self.a, "{'content':[]}");
    forget(&self.legacy);
    say(&self.legacy, LEGACY("7", "tools/call", "'name':'a.x.y'"));
    assert_heard_part(&self.legacy, "Unknown tool");
    say(&self.modern, MODERN("8", "tools/call", "'name':'a.mine'"));
    assert_heard_part(&self.modern, "Unknown tool");
    /* what others have changes for it, too */
    listing_unref(self.sources[1].listings[LISTING_TOOLS]);
    self.sources[1].listings[LISTING_TOOLS] =
        listing_of(self.b, LISTING_TOOLS, "[{\"name\":\"new\"}]");
    endpoint_refresh(self.endpoint, LISTING_TOOLS, &self.sources[1], 1);
    (void)loop_turn(self.loop, 0);
    forget(&self.legacy);
    expect_tools(&self.legacy, LIST, "b.new", "b.echo");
    expect_tools(&self.legacy, LIST, "a.mine", "a.x.y");
    /* and what it hears from its own is read again first */
    tell(&self, client, MCP_N_TOOLS_CHANGED, "", "");
    assert_int_equal(self.legacy.count, 0);
    answer_lists(&self, client, OWN_TOOLS);
    assert_heard(&self.legacy, TOOLS_CHANGED);                            /* told all the same */
    endpoint_own_session(self.endpoint, &self.a->base, client, 7, false); /* another one */
    expect_tools(&self.legacy, LIST, "a.mine", "a.x.y");
    endpoint_own_session(self.endpoint, &self.a->base, client, 1, false);
    (void)loop_turn(self.loop, 0);
    assert_heard(&self.legacy, TOOLS_CHANGED);
    expect_tools(&self.legacy, LIST, "a.x.y", "a.mine");
    close_stage(&self);
}

static void updates_come_from_its_own_session_alone(void **state)
{
    (void)state;
    stage self;
    char name[80];
    bay_str client = open_named(&self, name);
    say(&self.legacy, LEGACY("2", "resources/subscribe", "'uri':'f:///a'"));
    forget(&self.legacy);
    assert_int_equal(self.a->subscribes, 2); /* the shared session's, and its own */
    endpoint_updated(self.endpoint, &self.a->base, STR("f:///a"));
    assert_heard_part(&self.legacy, "resources/updated");
    endpoint_own_session(self.endpoint, &self.a->base, client, 1, true);
    endpoint_updated(self.endpoint, &self.a->base, STR("f:///a"));
    assert_int_equal(self.legacy.count, 0);
    tell(&self, client, MCP_N_RESOURCE_UPDATED, "f:///a", "");
    assert_heard_part(&self.legacy, "resources/updated");
    say(&self.legacy, LEGACY("3", "resources/unsubscribe", "'uri':'f:///a'"));
    assert_int_equal(self.a->unsubscribes, 2);
    close_stage(&self); /* while its lists are read */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_conversation_tells_clients_of_one_principal_apart),
        cmocka_unit_test(what_is_told_reaches_that_client),
        cmocka_unit_test(a_question_is_put_to_that_client),
        cmocka_unit_test(what_the_server_takes_back_the_client_hears),
        cmocka_unit_test(nobody_is_waited_for_who_has_left),
        cmocka_unit_test(the_only_client_introduces_itself),
        cmocka_unit_test(what_its_own_session_lists_it_sees_and_calls),
        cmocka_unit_test(updates_come_from_its_own_session_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

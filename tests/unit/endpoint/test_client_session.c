/* What a server says, outside of any call, to one client with a session: it reaches that client in
 * its own words, and no other; and the only client of stdin and stdout introduces itself. */
#include "support/endpoint_testing.h"

#include "endpoint/endpoint_parts.h"

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
    endpoint_client_told(self->endpoint, &what);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told_reaches_that_client),
        cmocka_unit_test(a_question_is_put_to_that_client),
        cmocka_unit_test(what_the_server_takes_back_the_client_hears),
        cmocka_unit_test(nobody_is_waited_for_who_has_left),
        cmocka_unit_test(the_only_client_introduces_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* An endpoint between clients and servers, all in memory: names, ids, progress, cancels and
 * failures on their way through. Requests are made in the handshake era (`legacy`) and the
 * stateless one. */
#include "support/endpoint_testing.h"

/* ---- refusals -------------------------------------------------------------------------------- */

static void unknown_names_are_refused(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.nothing'"));
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'error':{'code':-32602,"
                               "'message':'Unknown tool: a.nothing'}}");
    say(&self.legacy, LEGACY("2", "tools/call", "'name':'echo'"));
    assert_heard_part(&self.legacy, "Unknown tool: echo");
    say(&self.legacy, LEGACY("3", "tools/call", "'name':'c.echo'"));
    assert_heard_part(&self.legacy, "Unknown tool: c.echo; did you mean a.echo?'");
    say(&self.legacy, LEGACY("4", "prompts/get", "'name':'a.q\\n\\u0000'"));
    assert_heard_part(&self.legacy, "'code':-32602,'message':'Unknown prompt: a.q\\n\\u0000'");
    say(&self.legacy, LEGACY("5", "completion/complete",
                             "'ref':{'type':'ref/prompt','name':'zz'},'argument':{'name':'n',"
                             "'value':''}"));
    assert_heard_part(&self.legacy, "-32602");
    say(&self.legacy, LEGACY("6", "completion/complete", "'ref':7"));
    assert_heard_part(&self.legacy, "-32602");
    say(&self.legacy, LEGACY("7", "no/such", "'name':'a.echo'"));
    assert_heard_part(&self.legacy, "-32601");
    assert_int_equal(self.a->sends + self.b->sends, 5 /* the listings */);
    close_stage(&self);
}

static void a_resource_nobody_has_is_told_in_the_clients_own_way(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "resources/read", "'uri':'h:///\\u00e9'"));
    assert_heard(&self.legacy,
                 "{'jsonrpc':'2.0','id':1,'error':{'code':-32002,'message':'Resource not found',"
                 "'data':{'uri':'h:///\xc3\xa9'}}}");
    say(&self.modern, MODERN("1", "resources/read", "'uri':'h:///x'"));
    assert_heard_part(&self.modern, "'code':-32602,'message':'Resource not found'");
    close_stage(&self);
}

static void a_forged_cursor_is_refused(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "tools/list", "'cursor':'forged'"));
    assert_heard_part(&self.legacy, "'code':-32602,'message':'Invalid cursor");
    close_stage(&self);
}

static void input_for_a_stateless_client_goes_through(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.modern, MODERN("2", "tools/call", "'name':'a.echo'"));
    assert_text(self.a->held[0]->spec.capabilities, "{\"elicitation\":{}}");
    fake_result(self.a, "{'resultType':'input_required','inputRequests':{},'requestState':'s'}");
    assert_heard_part(&self.modern, "'resultType':'input_required'");
    close_stage(&self);
}

/* ---- failures -------------------------------------------------------------------------------- */

static void failures_have_a_text_and_a_reason(void **state)
{
    (void)state;
    static const struct {
        bay_err err;
        bool was_sent;
        const char *text;
        const char *part;
        const char *reason;
    } cases[] = {
        {BAY_ERR_TIMEOUT, true, "timed out", "gave no answer: timed out. The call may have been",
         "'patchbay/reason':'timeout','patchbay/server':'a','patchbay/mayHaveRun':true"},
        {BAY_ERR_EXITED, false, "exited with status 3",
         "the process exited: exited with status 3. "
         "The call was not carried out",
         "'patchbay/reason':'server_unavailable','patchbay/server':'a',"
         "'patchbay/mayHaveRun':false"},
        {BAY_ERR_BUSY, false, NULL, "too many of these at once. The", "'patchbay/reason':'busy'"},
        {BAY_ERR_LIMIT, true, "\x01\xff\"\\", "exceeded: \\u0001\xef\xbf\xbd\\'\\\\. The call may",
         "result_too_large"},
        {BAY_ERR_PROTOCOL, true, "", "the peer broke the protocol. The", "invalid_answer"},
        {BAY_ERR_UNSUPPORTED, false, "", "not supported by the peer", "not_supported_by_server"},
        {BAY_ERR_DENIED, true, "401", "refused: 401", "denied_by_server"},
    };
    stage self;
    open_stage(&self);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.echo'"));
        fake_fail(self.a, cases[i].err, cases[i].was_sent, cases[i].text);
        char *reason = testing_quotes(cases[i].reason);
        assert_int_equal(self.legacy.count, 1);
        assert_non_null(strstr(self.legacy.lines[0], reason));
        mem_free(reason);
        assert_non_null(strstr(self.legacy.lines[0], "\"isError\":true"));
        assert_heard_part(&self.legacy, cases[i].part);
    }
    say(&self.modern, MODERN("1", "tools/call", "'name':'a.echo'"));
    fake_fail(self.a, BAY_ERR_TIMEOUT, true, "");
    assert_int_equal(self.modern.count, 1);
    const char *meta = strstr(self.modern.lines[0], "\"_meta\":");
    assert_non_null(meta);
    assert_null(strstr(meta + 1, "\"_meta\":")); /* one, not two */
    assert_non_null(strstr(meta, "\"patchbay/reason\":\"timeout\""));
    forget(&self.modern);
    say(&self.legacy, LEGACY("1", "prompts/get", "'name':'a.p'"));
    fake_fail(self.a, BAY_ERR_TIMEOUT, true, "timed out");
    assert_heard(
        &self.legacy,
        "{'jsonrpc':'2.0','id':1,'error':{'code':-32603,'message':'The server \\'a\\' gave "
        "no answer: timed out. The call may have been carried out.','data':{"
        "'patchbay/reason':'timeout','patchbay/server':'a','patchbay/mayHaveRun':true}}}");
    close_stage(&self);
}

static void an_invalid_answer_has_its_place(void **state)
{
    (void)state;
    stage self;
    mcp_outcome outcome = {.kind = MCP_OUTCOME_FAILED,
                           .err = BAY_ERR_PROTOCOL,
                           .was_sent = true,
                           .text = "what the server answered is no result of prompts/get",
                           .place = "/messages/0/\"k"};
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "prompts/get", "'name':'a.p'"));
    fake_end(self.a, fake_take(self.a), &outcome, NULL, false);
    assert_heard_part(&self.legacy,
                      "'data':{'patchbay/reason':'invalid_answer','patchbay/server':'a',"
                      "'patchbay/place':'/messages/0/\\'k','patchbay/mayHaveRun':true}");
    close_stage(&self);
}

static void the_longest_failure_is_still_json(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    char text[8000];
    memset(text, 1, sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.echo'"));
    fake_fail(self.a, BAY_ERR_EXITED, true, text);
    assert_int_equal(self.legacy.count, 1);
    arena memory;
    json_doc doc;
    arena_init(&memory, 1 << 20);
    assert_int_equal(json_parse(&doc, str_of(self.legacy.lines[0]), NULL, &memory, NULL), BAY_OK);
    assert_true(json_true(json_pointer(json_root(&doc), STR("/result/isError"))));
    arena_fini(&memory);
    close_stage(&self);
}

/* ---- the way through ------------------------------------------------------------------------- */

static void calls_reach_their_server_under_its_own_name(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.echo','arguments':{'n':1.0e2}"));
    assert_asked(self.a, "tools/call", "echo", "{'name':'a.echo','arguments':{'n':1.0e2}}");
    say(&self.legacy, LEGACY("'1'", "tools/call", "'name':'b.echo'"));
    assert_asked(self.b, "tools/call", "echo", "{'name':'b.echo'}");
    fake_result(self.b, "{'content':[],'n':0.1000}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':'1','result':{'content':[],'n':0.1000}}");
    fake_error(self.a, 7, "{'code':7,'message':'m\\u0041','data':[1.50]}");
    assert_heard(&self.legacy,
                 "{'jsonrpc':'2.0','id':1,'error':{'code':7,'message':'m\\u0041','data':[1.50]}}");
    say(&self.modern, MODERN("1.0", "tools/call", "'name':'a.x.y'"));
    assert_text(self.a->held[0]->spec.rename, "x.y");
    fake_result(self.a, "{'content':[],'resultType':'complete'}");
    assert_heard_part(&self.modern, "'id':1.0,");
    close_stage(&self);
}

static void prompts_resources_and_templates_find_their_owner(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "prompts/get", "'name':'a.p'"));
    assert_asked(self.a, "prompts/get", "p", "{'name':'a.p'}");
    fake_result(self.a, "{'messages':[]}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'result':{'messages':[]}}");
    say(&self.legacy, LEGACY("2", "resources/read", "'uri':'f:///a'"));
    assert_asked(self.a, "resources/read", "", "{'uri':'f:///a'}");
    fake_result(self.a, "{'contents':[]}");
    forget(&self.legacy);
    say(&self.legacy, LEGACY("3", "resources/read", "'uri':'g:///9'"));
    assert_asked(self.b, "resources/read", "", "{'uri':'g:///9'}");
    fake_result(self.b, "{'contents':[]}");
    close_stage(&self);
}

static void an_unlisted_resource_goes_to_the_only_server_that_has_any(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    fake_learn(&self.a->base, mcp_revision_of(MCP_LATEST), STR("{\"tools\":{}}"));
    say(&self.legacy, LEGACY("1", "resources/read", "'uri':'unlisted:x'"));
    assert_asked(self.b, "resources/read", "", "{'uri':'unlisted:x'}");
    fake_result(self.b, "{'contents':[]}");
    close_stage(&self);
}

static void completions_name_the_servers_own_prompt(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy,
        LEGACY("1", "completion/complete",
               "'argument':{'name':'a.p','value':'a.p'},'ref' : {'type':'ref/prompt','name' : "
               "'a.\\u0070','title':'a.p'},'context':{'arguments':{'b':'a.p'}},'_meta':{'k':1.0}"));
    assert_asked(self.a, "completion/complete", "",
                 "{'argument':{'name':'a.p','value':'a.p'},'ref':{'type':'ref/prompt','name':"
                 "'p','title':'a.p'},'context':{'arguments':{'b':'a.p'}},'_meta':{'k':1.0}}");
    assert_text(json_raw(self.a->held[0]->spec.meta), "{\"k\":1.0}");
    fake_result(self.a, "{'completion':{'values':[]}}");
    forget(&self.legacy);
    say(&self.legacy, LEGACY("2", "completion/complete",
                             "'ref':{'type':'ref/resource','uri':'g:///{id}'},'argument':{}"));
    assert_int_equal(self.b->held_count, 1);
    fake_result(self.b, "{'completion':{'values':[]}}");
    close_stage(&self);
}

static void a_bare_name_and_its_full_name_are_one(void **state)
{
    (void)state;
    stage self;
    open_with(&self, "bareNames: true", "");
    endpoint_lists_ready(self.endpoint);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'x.y'"));
    assert_asked(self.a, "tools/call", "", "{'name':'x.y'}");
    fake_result(self.a, "{}");
    say(&self.legacy, LEGACY("2", "tools/call", "'name':'a.x.y'"));
    assert_asked(self.a, "tools/call", "x.y", "{'name':'a.x.y'}");
    fake_result(self.a, "{}");
    forget(&self.legacy);
    say(&self.legacy, LEGACY("3", "tools/call", "'name':'b.x.y'"));
    assert_heard_part(&self.legacy, "Unknown tool");
    close_stage(&self);
}

static void the_endpoint_of_one_server_has_its_own_names(void **state)
{
    (void)state;
    stage self;
    open_with(&self, "workers: 1", "a");
    endpoint_lists_ready(self.endpoint);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'echo'"));
    assert_asked(self.a, "tools/call", "", "{'name':'echo'}");
    fake_result(self.a, "{}");
    forget(&self.legacy);
    say(&self.legacy, LEGACY("2", "tools/call", "'name':'a.echo'"));
    assert_heard_part(&self.legacy, "Unknown tool: a.echo");
    close_stage(&self);
}

/* The lists of b of that kind, from now on: none, of which is known what `read` says. */
static void forget_list(stage *self, listing_kind kind, unsigned read)
{
    listing_unref(self->sources[1].listings[kind]);
    self->sources[1].listings[kind] = NULL;
    self->sources[1].read = read;
    endpoint_refresh(self->endpoint, kind, &self->sources[1], 1);
    forget(&self->legacy); /* the list changed */
}

static void nothing_of_an_unread_list_can_be_called(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    forget_list(&self, LISTING_TOOLS, 1u << LISTING_TOOLS);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'b.echo'"));
    assert_heard_part(&self.legacy,
                      "The server \\'b\\' has no tool list that could be read. The call was not "
                      "carried out; it can be tried again.'}],'isError':true,'_meta':{"
                      "'patchbay/reason':'server_unavailable','patchbay/server':'b'");
    say(&self.legacy, LEGACY("2", "tools/call", "'name':'b.'"));
    assert_heard_part(&self.legacy, "Unknown tool: b.");
    say(&self.legacy, LEGACY("3", "prompts/get", "'name':'b.p'"));
    assert_heard_part(&self.legacy, "'error':{'code':-32603");
    forget_list(&self, LISTING_TEMPLATES, 0xf);
    fake_learn(&self.a->base, mcp_revision_of(MCP_LATEST), STR("{\"tools\":{}}"));
    say(&self.legacy, LEGACY("4", "resources/read", "'uri':'unlisted:x'"));
    assert_heard_part(&self.legacy, "Resource not found");
    assert_int_equal(self.b->sends, 2 /* its lists */);
    close_stage(&self);
}

static void a_call_waits_for_the_first_list(void **state)
{
    (void)state;
    static const char *const lists[] = {"[{\"name\":\"echo\"}]", "[]"};
    for (size_t i = 0; i < 3; i++) {
        stage self;
        open_on_loop(&self, i < 2 ? "timeouts: {settle: 1h}" : "timeouts: {settle: 10ms}",
                     "'protocolVersion':'2025-11-25','capabilities':{}");
        forget_list(&self, LISTING_TOOLS, 0);
        say(&self.legacy, LEGACY("1", "tools/call", "'name':'b.echo'"));
        assert_int_equal(self.legacy.count, 0);
        say(&self.legacy, LEGACY("2", "tools/list", "'x':1")); /* which waits for nobody */
        assert_heard_part(&self.legacy, "'id':2");
        assert_int_equal(self.b->held_count, 0);
        if (i < 2) {
            self.sources[1].listings[LISTING_TOOLS] = listing_of(self.b, LISTING_TOOLS, lists[i]);
            self.sources[1].read = 1u << LISTING_TOOLS;
            endpoint_refresh(self.endpoint, LISTING_TOOLS, &self.sources[1], 1);
        }
        while (i == 2 && self.legacy.count == 0) { /* until its time is over */
            loop_turn(self.loop, -1);
        }
        if (i == 0) {
            assert_asked(self.b, "tools/call", "echo", "{'name':'b.echo'}");
            fake_result(self.b, "{'content':[]}");
        } else {
            assert_int_equal(self.b->held_count, 0);
            assert_non_null(strstr(self.legacy.lines[self.legacy.count - 1],
                                   i == 1 ? "Unknown tool: b.echo" : "could be read"));
        }
        close_stage(&self);
    }
}

/* The hints are the server's word: they make a call go twice only where the configuration says. */
static void hints_count_where_they_are_trusted(void **state)
{
    (void)state;
    static const char *const hints[] = {"readOnlyHint", "idempotentHint"};
    for (size_t i = 0; i < 2 * ARRAY_LEN(hints); i++) {
        stage self;
        char items[200];
        bool is_trusted = i >= ARRAY_LEN(hints);
        open_stage(&self);
        (void)snprintf(items, sizeof(items),
                       "[{\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"},"
                       "\"annotations\":{\"%s\":true}}]",
                       hints[i % ARRAY_LEN(hints)]);
        listing_unref(self.sources[1].listings[LISTING_TOOLS]);
        self.sources[1].listings[LISTING_TOOLS] = listing_of(self.b, LISTING_TOOLS, items);
        endpoint_refresh(self.endpoint, LISTING_TOOLS, self.sources, 2);
        forget(&self.legacy);
        self.b->server.trust_hints = is_trusted;
        say(&self.legacy, LEGACY("1", "tools/call", "'name':'b.echo'"));
        assert_int_equal(self.b->held_count, 1);
        assert_true(self.b->held[0]->is_repeatable == is_trusted);
        fake_result(self.b, "{'content':[]}");
        close_stage(&self);
    }
}

static void progress_carries_the_clients_own_token(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy,
        LEGACY("1", "tools/call", "'name':'a.echo','_meta':{'progressToken':'t\\u0041'}"));
    assert_true(self.a->held[0]->spec.wants_progress);
    fake_notify(self.a, MCP_N_PROGRESS,
                "{'progressToken':17,'progress':0.50,'total':1e0,'message':'half','x':[1.0]}");
    assert_heard(&self.legacy,
                 "{'jsonrpc':'2.0','method':'notifications/progress','params':{"
                 "'progressToken':'t\\u0041','progress':0.50,'total':1e0,'message':'half',"
                 "'x':[1.0]}}");
    fake_notify(self.a, MCP_N_PROGRESS, "{'progressToken':17,'progress':'no number'}");
    fake_notify(self.a, MCP_N_PROGRESS, "{}");
    assert_int_equal(self.legacy.count, 0);
    fake_result(self.a, "{}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'result':{}}");
    say(&self.legacy, LEGACY("2", "tools/call", "'name':'a.echo'"));
    assert_false(self.a->held[0]->spec.wants_progress);
    fake_result(self.a, "{}");
    close_stage(&self);
}

static void log_messages_reach_who_asked_for_them(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.modern, MODERN("1", "tools/call", "'name':'a.echo'"));
    fake_notify(self.a, MCP_N_MESSAGE, "{'level':'error','data':'x'}");
    assert_int_equal(self.modern.count, 0); /* it did not ask */
    fake_result(self.a, "{}");
    forget(&self.modern);
    say(&self.modern,
        "{'jsonrpc':'2.0','id':2,'method':'tools/call','params':{'name':'a.echo'," META
        ",'io.modelcontextprotocol/logLevel':'warning'}}}");
    assert_int_equal(self.a->level, MCP_LOG_WARNING);
    fake_notify(self.a, MCP_N_MESSAGE, "{'level':'info','data':'x'}");
    assert_int_equal(self.modern.count, 0);
    fake_notify(self.a, MCP_N_MESSAGE, "{'level':'error','data':{'n':1.0}}");
    assert_heard_part(&self.modern, "'method':'notifications/message','params':{'level':'error',"
                                    "'data':{'n':1.0}}");
    fake_result(self.a, "{}");
    close_stage(&self);
}

static void a_slow_client_stops_its_own_call_only(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.echo','_meta':{'progressToken':1}"));
    self.legacy.says = BAY_ERR_AGAIN;
    fake_notify(self.a, MCP_N_PROGRESS, "{'progress':1}");
    assert_int_equal(self.a->pauses, 1);
    self.legacy.says = BAY_OK;
    mcp_connection_drained(self.legacy.connection);
    assert_int_equal(self.a->resumes, 1);
    assert_int_equal(self.b->pauses + self.b->resumes, 0);
    fake_result(self.a, "{}");
    close_stage(&self);
}

static void a_cancel_reaches_the_one_call(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.echo'"));
    say(&self.legacy, LEGACY("2", "tools/call", "'name':'b.echo'"));
    say(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
                      "'requestId':1}}");
    assert_int_equal(self.a->cancels, 1);
    assert_int_equal(self.b->cancels, 0);
    assert_int_equal(self.legacy.count, 0); /* no answer to what was cancelled */
    fake_result(self.b, "{}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':2,'result':{}}");
    say(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
                      "'requestId':2}}");
    close_stage(&self);
}

static void a_client_that_leaves_cancels_its_calls(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.echo'"));
    say(&self.modern, MODERN("1", "tools/call", "'name':'b.echo'"));
    mcp_connection_close(self.legacy.connection);
    assert_int_equal(self.a->cancels, 1);
    assert_int_equal(self.b->cancels, 0);
    peer_open(&self.legacy, self.endpoint);
    fake_result(self.b, "{}");
    assert_heard_part(&self.modern, "'result':{");
    close_stage(&self);
}

static void an_endpoint_that_ends_cancels_what_is_open(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.echo'"));
    close_stage(&self); /* fake_free: no call is left */
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void lists_wait_until_the_servers_were_heard_of(void **state)
{
    (void)state;
    stage self;
    open_with(&self, "workers: 1", "");
    say(&self.legacy, LEGACY("1", "tools/list", "'x':1"));
    say(&self.legacy, LEGACY("2", "prompts/list", "'x':1"));
    say(&self.legacy, LEGACY("3", "resources/list", "'x':1"));
    assert_int_equal(self.legacy.count, 0);
    say(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
                      "'requestId':2}}");
    say(&self.legacy, LEGACY("4", "tools/call", "'name':'a.echo'")); /* calls do not wait */
    fake_result(self.a, "{}");
    assert_heard_part(&self.legacy, "'id':4");
    endpoint_lists_ready(self.endpoint);
    assert_int_equal(self.legacy.count, 2);
    char *wanted = testing_quotes("{'jsonrpc':'2.0','id':1,'result':{'tools':[{'name':'a.echo'},"
                                  "{'name':'a.x.y'},{'name':'b.echo'}]}}");
    assert_text(str_of(self.legacy.lines[0]), wanted);
    mem_free(wanted);
    forget(&self.legacy);
    close_stage(&self);
}

/* What the servers have is not known yet, so nothing is "not found". */
static void what_is_not_known_yet_waits_too(void **state)
{
    (void)state;
    stage self;
    open_with(&self, "workers: 1", "");
    say(&self.legacy, LEGACY("1", "resources/read", "'uri':'h:///late'"));
    say(&self.legacy, LEGACY("2", "resources/read", "'uri':'h:///never'"));
    say(&self.legacy, LEGACY("3", "tools/call", "'name':'late'"));
    say(&self.legacy, LEGACY("4", "completion/complete",
                             "'ref':{'type':'ref/prompt','name':'b.late'},'argument':{}"));
    assert_int_equal(self.legacy.count, 0);
    say(&self.legacy, LEGACY("5", "resources/subscribe", "'uri':'h:///late'"));
    say(&self.legacy, LEGACY("6", "resources/subscribe", "'uri':'h:///never'"));
    say(&self.legacy, LEGACY("7", "resources/unsubscribe", "'uri':'h:///never'"));
    assert_int_equal(self.legacy.count, 3); /* agreed to */
    forget(&self.legacy);
    self.sources[1].listings[LISTING_RESOURCES] =
        listing_of(self.b, LISTING_RESOURCES, "[{\"uri\":\"h:///late\",\"name\":\"r\"}]");
    endpoint_refresh(self.endpoint, LISTING_RESOURCES, self.sources, 2);
    endpoint_lists_ready(self.endpoint);
    assert_int_equal(self.b->subscribes, 1);
    assert_int_equal(self.a->subscribes + self.b->unsubscribes, 0);
    assert_asked(self.b, "resources/read", "", "{'uri':'h:///late'}");
    assert_int_equal(self.legacy.count, 3); /* the other three are refused now */
    fake_result(self.b, "{'contents':[]}");
    forget(&self.legacy);
    say(&self.legacy, LEGACY("8", "resources/unsubscribe", "'uri':'h:///late'"));
    assert_int_equal(self.b->unsubscribes, 1);
    close_stage(&self);
}

static void an_endpoint_that_ends_forgets_early_subscriptions(void **state)
{
    (void)state;
    stage self;
    open_with(&self, "workers: 1", "");
    say(&self.legacy, LEGACY("1", "resources/subscribe", "'uri':'h:///late'"));
    say(&self.legacy, LEGACY("2", "resources/read", "'uri':'h:///late'"));
    close_stage(&self);
}

static void a_changed_list_is_told(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    endpoint_refresh(self.endpoint, LISTING_TOOLS, self.sources, 2);
    assert_int_equal(self.legacy.count, 0); /* the same: nothing to tell */
    listing_unref(self.sources[1].listings[LISTING_TOOLS]);
    self.sources[1].listings[LISTING_TOOLS] = listing_of(self.b, LISTING_TOOLS, "[]");
    endpoint_refresh(self.endpoint, LISTING_TOOLS, self.sources, 2);
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}");
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'b.echo'"));
    assert_heard_part(&self.legacy, "Unknown tool: b.echo");
    close_stage(&self);
}

static void subscriptions_go_to_the_owner(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "resources/subscribe", "'uri':'f:///a'"));
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'result':{}}");
    assert_int_equal(self.a->subscribes, 1);
    endpoint_updated(self.endpoint, &self.a->base, STR("f:///a"));
    assert_heard_part(&self.legacy, "'method':'notifications/resources/updated','params':{"
                                    "'uri':'f:///a'}");
    endpoint_updated(self.endpoint, &self.a->base, STR("f:///b"));
    assert_int_equal(self.legacy.count, 0);
    say(&self.legacy, LEGACY("2", "resources/unsubscribe", "'uri':'f:///a'"));
    assert_int_equal(self.a->unsubscribes, 1);
    forget(&self.legacy);
    say(&self.legacy, LEGACY("3", "resources/subscribe", "'uri':'nobody:x'"));
    assert_heard_part(&self.legacy, "'error'");
    close_stage(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_names_are_refused),
        cmocka_unit_test(a_resource_nobody_has_is_told_in_the_clients_own_way),
        cmocka_unit_test(a_forged_cursor_is_refused),
        cmocka_unit_test(input_for_a_stateless_client_goes_through),
        cmocka_unit_test(failures_have_a_text_and_a_reason),
        cmocka_unit_test(an_invalid_answer_has_its_place),
        cmocka_unit_test(the_longest_failure_is_still_json),
        cmocka_unit_test(calls_reach_their_server_under_its_own_name),
        cmocka_unit_test(prompts_resources_and_templates_find_their_owner),
        cmocka_unit_test(an_unlisted_resource_goes_to_the_only_server_that_has_any),
        cmocka_unit_test(completions_name_the_servers_own_prompt),
        cmocka_unit_test(a_bare_name_and_its_full_name_are_one),
        cmocka_unit_test(the_endpoint_of_one_server_has_its_own_names),
        cmocka_unit_test(nothing_of_an_unread_list_can_be_called),
        cmocka_unit_test(a_call_waits_for_the_first_list),
        cmocka_unit_test(hints_count_where_they_are_trusted),
        cmocka_unit_test(progress_carries_the_clients_own_token),
        cmocka_unit_test(log_messages_reach_who_asked_for_them),
        cmocka_unit_test(a_slow_client_stops_its_own_call_only),
        cmocka_unit_test(a_cancel_reaches_the_one_call),
        cmocka_unit_test(a_client_that_leaves_cancels_its_calls),
        cmocka_unit_test(an_endpoint_that_ends_cancels_what_is_open),
        cmocka_unit_test(lists_wait_until_the_servers_were_heard_of),
        cmocka_unit_test(what_is_not_known_yet_waits_too),
        cmocka_unit_test(an_endpoint_that_ends_forgets_early_subscriptions),
        cmocka_unit_test(a_changed_list_is_told),
        cmocka_unit_test(subscriptions_go_to_the_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

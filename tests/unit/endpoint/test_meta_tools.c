/* The meta tools: words and how they rank, searches in slices, definitions byte for byte, calls as
 * if they had been made directly. */
#include "support/endpoint_testing.h"

#include "base/err.h"
#include "endpoint/endpoint_parts.h"
#include "support/failing_memory.h"

static uint32_t score(const char *query, const char *name, const char *title,
                      const char *description)
{
    meta_query made;
    meta_query_read(&made, str_of(query));
    return meta_query_score(&made, str_of(name), str_of(title), str_of(description));
}

static void what_does_not_fit_scores_nothing(void **state)
{
    (void)state;
    assert_int_equal(score("weather", "files.read", "Read", "Reads a file."), 0);
    assert_int_equal(score("", "files.read", "Read", "Reads a file."), 0);
    assert_int_equal(score("...", "files.read", "Read", "Reads a file."), 0);
    assert_int_equal(score("r", "files.read", "", ""), 0); /* one letter begins too much */
    assert_int_equal(score("eather", "weather", "", ""), 0);
    assert_int_equal(score("nread", "", "", "one\\nread"), 0); /* the escape is no letter */
    assert_int_equal(score("0041ab", "", "", "\\u0041ab"), 0);
}

static void words_fit_however_they_are_written(void **state)
{
    (void)state;
    static const char *const names[] = {"weather",     "get_weather",    "getWeather",
                                        "GET-WEATHER", "api.weather/v2", "weatherReport"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_true(score("Weather", names[i], "", "") > 0);
    }
    assert_true(score("forecasts", "forecast", "", "") > 0);
    assert_true(score("fore", "forecast", "", "") > 0);
    assert_true(score("read", "", "", "one\\nread") > 0);
    assert_true(score("ab", "", "", "\\u0041ab") > 0);
    assert_true(score("gr\xc3\xbc\xc3\x9f"
                      "e",
                      "gr\xc3\xbc\xc3\x9f"
                      "e",
                      "", "") > 0);
    assert_true(score("x", "x", "", "") > 0);
}

static void better_fits_score_more(void **state)
{
    (void)state;
    uint32_t both = score("create event", "calendar.create_event", "", "");
    uint32_t one = score("create event", "calendar.create", "", "");
    uint32_t title = score("create event", "x", "Create event", "");
    uint32_t words = score("create event", "x", "", "Can create an event.");
    uint32_t begins = score("create event", "x", "", "Can creates an events.");
    uint32_t twice = score("create create event", "calendar.create_event", "", "");
    assert_true(both > title && title > words && words > begins && begins > one && one > 0);
    assert_int_equal(both, twice);
}

static void a_query_has_its_bounds(void **state)
{
    (void)state;
    meta_query made;
    buf text;
    buf_init(&text, 1 << 20);
    for (int i = 0; i < 1000; i++) {
        buf_printf(&text, "w%d ", i);
    }
    meta_query_read(&made, buf_view(&text));
    assert_int_equal(made.count, META_WORDS);
    buf_clear(&text);
    for (int i = 0; i < 2000; i++) {
        buf_char(&text, 'x');
    }
    meta_query_read(&made, buf_view(&text));
    assert_int_equal(made.count, 0); /* nothing is called so */
    meta_query_read(&made, (bay_str){"\0a\0b\\", 5});
    assert_int_equal(made.count, 2);
    meta_query_read(&made, STR("a\\u00"));
    assert_int_equal(made.count, 1);
    buf_fini(&text);
}

/* ---- on an endpoint
 * ----------------------------------------------------------------------------------
 */

static void set_tools(stage *self, int which, const char *items)
{
    fake *server = which == 0 ? self->a : self->b;
    char *text = testing_quotes(items);
    listing_unref(self->sources[which].listings[LISTING_TOOLS]);
    self->sources[which].listings[LISTING_TOOLS] = listing_of(server, LISTING_TOOLS, text);
    endpoint_refresh(self->endpoint, LISTING_TOOLS, &self->sources[which], 1);
    mem_free(text);
}

static void open_search(stage *self)
{
    open_with(self, "toolMode: search", "");
    endpoint_lists_ready(self->endpoint);
    set_tools(self, 0,
              "[{'name':'read_file','title':'Read \\u0022it\\u0022','description':'Reads a file.'},"
              "{'name':'write_file','description':'Writes a file.\\nSecond line.'}]");
    set_tools(self, 1,
              "[{ 'name':'forecast' , "
              "'inputSchema':{'type':'object','x':1.0e2},'annotations':{'title':'Weather'}},"
              "{'name':'say','x':7}]");
    assert_int_equal(self->legacy.count, 0); /* the three stay as they are */
}

static void three_tools_are_listed(void **state)
{
    (void)state;
    stage self;
    open_search(&self);
    say(&self.modern, MODERN("1", "tools/list", "'x':1"));
    assert_int_equal(self.modern.count, 1);
    assert_non_null(strstr(self.modern.lines[0], "\"ttlMs\":3600000"));
    arena memory;
    json_doc doc;
    arena_init(&memory, 1 << 20);
    assert_int_equal(json_parse(&doc, str_of(self.modern.lines[0]), NULL, &memory, NULL), BAY_OK);
    json_val tools = json_get(json_get(json_root(&doc), STR("result")), STR("tools"));
    static const char *const names[] = {"search_tools", "describe_tool", "call_tool"};
    assert_int_equal(json_count(tools), ARRAY_LEN(names));
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        json_val tool = json_item(tools, i);
        assert_true(json_str_eq(json_get(tool, STR("name")), str_of(names[i])));
        assert_true(json_str_length(json_get(tool, STR("description"))) > 80);
        json_val schema = json_get(tool, STR("inputSchema"));
        assert_true(json_str_eq(json_get(schema, STR("type")), STR("object")));
    }
    arena_fini(&memory);
    forget(&self.modern);
    say(&self.modern, MODERN("2", "tools/list", "'cursor':'MTox'"));
    assert_heard_part(&self.modern, "-32602");
    say(&self.modern, MODERN("3", "prompts/list", "'x':1"));
    assert_heard_part(&self.modern, "'name':'a.p'");
    close_stage(&self);
}

static void assert_found(stage *self, const char *arguments, const char *wanted)
{
    char message[1000];
    (void)snprintf(message, sizeof(message),
                   LEGACY("1", "tools/call", "'name':'search_tools','arguments':%s"), arguments);
    say(&self->legacy, message);
    assert_heard_part(&self->legacy, wanted);
}

#define READ "{'name':'a.read_file','title':'Read \\u0022it\\u0022','description':'Reads a file.'}"
#define WRITE "{'name':'a.write_file','description':'Writes a file.\\nSecond line.'}"
#define CAST "{'name':'b.forecast','title':'Weather'}"

static void searches_rank_and_repeat(void **state)
{
    (void)state;
    stage self;
    open_search(&self);
    assert_found(&self, "{'query':'write file'}",
                 "'structuredContent':{'tools':[" WRITE "," READ "],'found':2}");
    assert_found(&self, "{'query':'write file','limit':1}",
                 "'structuredContent':{'tools':[" WRITE "],'found':2}");
    assert_found(&self, "{'query':'file'}", "{'tools':[" READ "," WRITE "],'found':2}");
    assert_found(&self, "{'query':'weather'}",
                 "'structuredContent':{'tools':[" CAST "],'found':1}");
    assert_found(&self, "{'query':'second'}", "{'tools':[" WRITE "],'found':1}");
    assert_found(&self, "{'query':'nothing comparable'}", "{'tools':[],'found':0}");
    assert_found(&self, "{'query':'','limit':3.0}",
                 "{'tools':[" READ "," WRITE "," CAST "],'found':4}");
    close_stage(&self);
}

static void a_client_of_old_gets_text_alone(void **state)
{
    (void)state;
    stage self = {0};
    open_for(&self, "toolMode: search", "", "'protocolVersion':'2024-11-05','capabilities':{}");
    endpoint_lists_ready(self.endpoint);
    forget(&self.legacy);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'search_tools','arguments':{'query':'x'}"));
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'result':{'content':[{'type':'text','text':"
                               "'{\\'tools\\':[{\\'name\\':\\'a.x.y\\'}],\\'found\\':1}'}]}}");
    close_stage(&self);
}

static void what_is_asked_wrongly_is_a_tool_s_error(void **state)
{
    (void)state;
    static const struct {
        const char *params;
        const char *says;
    } cases[] = {
        {"'name':'search_tools'", "query is missing"},
        {"'name':'search_tools','arguments':{}", "query is missing"},
        {"'name':'search_tools','arguments':[]", "query is missing"},
        {"'name':'search_tools','arguments':{'query':7}", "query is missing"},
        {"'name':'search_tools','arguments':{'query':'x','limit':0}", "limit needs"},
        {"'name':'search_tools','arguments':{'query':'x','limit':51}", "limit needs"},
        {"'name':'search_tools','arguments':{'query':'x','limit':'9'}", "limit needs"},
        {"'name':'search_tools','arguments':{'query':'x','limit':1.5}", "limit needs"},
        {"'name':'describe_tool'", "name is missing"},
        {"'name':'describe_tool','arguments':{'name':null}", "name is missing"},
        {"'name':'describe_tool','arguments':{'name':'nobody'}", "There is no such tool"},
        {"'name':'describe_tool','arguments':{'name':'search_tools'}", "There is no such tool"},
        {"'name':'call_tool','arguments':{'arguments':{}}", "name is missing"},
        {"'name':'call_tool','arguments':{'name':'a.nobody'}", "There is no such tool"},
        {"'name':'call_tool','arguments':{'name':'call_tool'}", "There is no such tool"},
        {"'name':'call_tool','arguments':{'name':'b.say','arguments':[]}", "needs an object"},
        {"'name':'call_tool','arguments':{'name':'b.say','arguments':null}", "needs an object"},
    };
    stage self;
    open_search(&self);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char message[500];
        (void)snprintf(message, sizeof(message), LEGACY("1", "tools/call", "%s"), cases[i].params);
        say(&self.legacy, message);
        assert_int_equal(self.legacy.count, 1);
        assert_non_null(strstr(self.legacy.lines[0], "\"isError\":true"));
        assert_heard_part(&self.legacy, cases[i].says);
    }
    assert_int_equal(self.a->sends + self.b->sends, 7); /* lists alone */
    say(&self.legacy, LEGACY("2", "tools/call", "'name':'nobody'"));
    assert_heard_part(&self.legacy, "'error':{'code':-32602");
    close_stage(&self);
}

static void definitions_come_byte_for_byte(void **state)
{
    (void)state;
    stage self;
    open_search(&self);
    say(&self.legacy,
        LEGACY("1", "tools/call", "'name':'describe_tool','arguments':{'name':'b.forecast'}"));
    assert_heard(&self.legacy,
                 "{'jsonrpc':'2.0','id':1,'result':{'content':[{'type':'text','text':"
                 "'{ \\'name\\':\\'b.forecast\\' , "
                 "\\'inputSchema\\':{\\'type\\':\\'object\\',\\'x\\':1.0e2},"
                 "\\'annotations\\':{\\'title\\':\\'Weather\\'}}'}],'structuredContent':{'tool':"
                 "{ 'name':'b.forecast' , 'inputSchema':{'type':'object','x':1.0e2},"
                 "'annotations':{'title':'Weather'}}}}}");
    close_stage(&self);
}

static void a_call_is_the_target_s_own(void **state)
{
    (void)state;
    stage self;
    open_search(&self);
    say(&self.legacy,
        LEGACY("1", "tools/call",
               "'x':[1],'name':'call_tool','arguments':{'arguments':{ 'n':1.0e2 , 'u':'\\u0041' },"
               "'name':'b.say'},'_meta':{'progressToken':7}"));
    assert_asked(self.b, "tools/call", "say",
                 "{'name':'b.say','arguments':{ 'n':1.0e2 , 'u':'\\u0041' },'x':[1],"
                 "'_meta':{'progressToken':7}}");
    assert_true(self.b->held[0]->spec.wants_progress);
    fake_notify(self.b, MCP_N_PROGRESS, "{'progressToken':1,'progress':3}");
    assert_heard_part(&self.legacy, "'progressToken':7");
    fake_result(self.b, "{'content':[],'isError':false,'more':1.50}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'result':{'content':[],'isError':false,"
                               "'more':1.50}}");
    say(&self.legacy, LEGACY("2", "tools/call", "'name':'call_tool','arguments':{'name':'b.say'}"));
    assert_asked(self.b, "tools/call", "say", "{'name':'b.say'}");
    say(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
                      "'requestId':2}}");
    assert_int_equal(self.b->cancels, 1);
    say(&self.legacy, LEGACY("3", "tools/call", "'name':'b.say'")); /* who knows it may call it */
    assert_asked(self.b, "tools/call", "say", "{'name':'b.say'}");
    fake_result(self.b, "{'content':[]}");
    close_stage(&self);
}

#define WRAPPED(id, more)                                                                          \
    "{'jsonrpc':'2.0','id':" id                                                                    \
    ",'method':'tools/call','params':{'name':'call_tool','arguments':{"                            \
    "'name':'a.echo','arguments':{'n':1.0}}" more "," META_OF("{'elicitation':{'form':{}}}") "}}}"

static void a_question_during_a_call_is_asked_as_ever(void **state)
{
    (void)state;
    char text[4000];
    char sealed[1000];
    stage self;
    open_on_loop(&self, "toolMode: search", "'protocolVersion':'2025-11-25','capabilities':{}");
    fake_learn(&self.a->base, mcp_revision_of(MCP_REV_2025_11_25), STR("{\"tools\":{}}"));
    say(&self.modern, WRAPPED("1", ""));
    assert_int_equal(self.a->held_count, 1);
    fake_ask_during(self.a->held[0],
                    "{'jsonrpc':'2.0','id':'s1','method':'elicitation/create','params':{"
                    "'message':'name?','requestedSchema':{'type':'object','properties':{}}}}");
    loop_turn(self.loop, 0);
    assert_int_equal(self.modern.count, 1);
    const char *at = strstr(self.modern.lines[0], "\"requestState\":\"");
    assert_non_null(at);
    (void)snprintf(sealed, sizeof(sealed), "%.*s", (int)strcspn(at + 16, "\""), at + 16);
    forget(&self.modern);
    (void)snprintf(
        text, sizeof(text),
        WRAPPED("2", ",'requestState':'%s','inputResponses':{'q1':{'action':'decline'}}"), sealed);
    say(&self.modern, text);
    assert_int_equal(self.modern.count, 0);
    assert_text(str_of(self.a->answer), "\"s1\" {\"action\":\"decline\"}");
    fake_result(self.a, "{'content':[]}");
    assert_heard_part(&self.modern, "'id':2,'result':{'resultType':'complete','content':[]");
    close_stage(&self);
}

static void before_the_servers_were_heard_of_they_wait(void **state)
{
    (void)state;
    stage self;
    open_with(&self, "toolMode: search", "");
    say(&self.legacy, LEGACY("9", "tools/list", "'x':1"));
    assert_heard_part(&self.legacy, "'name':'search_tools'"); /* these are there */
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'search_tools','arguments':{'query':'x'}"));
    say(&self.legacy,
        LEGACY("2", "tools/call", "'name':'describe_tool','arguments':{'name':'a.late'}"));
    say(&self.legacy,
        LEGACY("3", "tools/call", "'name':'call_tool','arguments':{'name':'b.late'}"));
    say(&self.legacy, LEGACY("4", "tools/call", "'name':'call_tool','arguments':{'name':'late'}"));
    assert_int_equal(self.legacy.count, 0);
    set_tools(&self, 0, "[{'name':'late'}]");
    set_tools(&self, 1, "[{'name':'late'}]");
    endpoint_lists_ready(self.endpoint);
    assert_int_equal(self.legacy.count, 3); /* the third is under way */
    assert_asked(self.b, "tools/call", "late", "{'name':'b.late'}");
    fake_result(self.b, "{'content':[]}");
    close_stage(&self);
}

static void a_change_of_mode_is_told(void **state)
{
    (void)state;
    stage self;
    open_search(&self);
    const config *other = testing_config("workers: 1");
    assert_int_equal(endpoint_set_sources(self.endpoint, other, self.sources, 2), BAY_OK);
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}");
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'search_tools'"));
    assert_heard_part(&self.legacy, "Unknown tool: search_tools");
    assert_int_equal(endpoint_set_sources(self.endpoint, self.config, self.sources, 2), BAY_OK);
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}");
    config_free(other);
    close_stage(&self);
}

/* ---- slices -------------------------------------------------------------------------------------
 */

static void set_many_tools(stage *self, int count)
{
    buf items;
    buf_init(&items, 64 << 20);
    for (int i = 0; i < count; i++) {
        buf_printf(&items, "%c{'name':'tool_%d','description':'Does number %d of many things.'}",
                   i == 0 ? '[' : ',', i, i);
    }
    buf_str(&items, (bay_str){"]\0", 2});
    set_tools(self, 0, items.at);
    buf_fini(&items);
}

static void a_long_search_lets_others_pass(void **state)
{
    (void)state;
    stage self;
    open_on_loop(&self, "toolMode: search", "'protocolVersion':'2025-11-25','capabilities':{}");
    set_many_tools(&self, 20000);
    say(&self.legacy,
        LEGACY("1", "tools/call",
               "'name':'search_tools','arguments':{'query':'number 19999','limit':1}"));
    assert_int_equal(self.legacy.count, 0);
    say(&self.legacy, LEGACY("2", "ping", "'x':1"));
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':2,'result':{}}");
    set_tools(&self, 0, "[]"); /* the search keeps what it began with */
    while (self.legacy.count == 0) {
        loop_turn(self.loop, 1000);
    }
    assert_heard_part(&self.legacy, "'name':'a.tool_19999'");
    assert_int_equal(self.endpoint->search_count, 0);
    close_stage(&self);
}

static void searches_are_cancelled_and_bounded(void **state)
{
    (void)state;
    stage self;
    open_on_loop(&self, "toolMode: search", "'protocolVersion':'2025-11-25','capabilities':{}");
    set_many_tools(&self, 20000);
    for (int i = 0; i < META_SEARCHES; i++) {
        char message[300];
        (void)snprintf(
            message, sizeof(message),
            LEGACY("%d", "tools/call", "'name':'search_tools','arguments':{'query':'many'}"),
            i + 1);
        say(&self.legacy, message);
    }
    assert_int_equal(self.legacy.count, 0);
    say(&self.legacy,
        LEGACY("1000", "tools/call", "'name':'search_tools','arguments':{'query':'many'}"));
    assert_heard_part(&self.legacy, "too many searches");
    say(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
                      "'requestId':1}}");
    assert_int_equal(self.endpoint->search_count, META_SEARCHES - 1);
    close_stage(&self); /* ends the others */
}

/* ---- lack of memory
 * ------------------------------------------------------------------------------ */

static void every_failing_allocation_is_survived(void **state)
{
    (void)state;
    static const char *const said[] = {
        "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{'protocolVersion':'2025-06-18',"
        "'capabilities':{},'clientInfo':{'name':'c','version':'1'}}}",
        "{'jsonrpc':'2.0','method':'notifications/initialized'}",
        LEGACY("1", "tools/list", "'x':1"),
        LEGACY("2", "prompts/list", "'x':1"),
        LEGACY("3", "tools/call", "'name':'search_tools','arguments':{'query':'echo'}"),
        LEGACY("4", "tools/call", "'name':'describe_tool','arguments':{'name':'a.echo'}"),
        LEGACY("5", "tools/call", "'name':'call_tool','arguments':{'name':'a.nobody'}"),
        LEGACY("6", "resources/subscribe", "'uri':'f:///a'"),
        LEGACY("7", "resources/unsubscribe", "'uri':'f:///a'"),
    };
    stage self;
    char *texts[ARRAY_LEN(said)];
    open_with(&self, "toolMode: search", "");
    for (size_t i = 0; i < ARRAY_LEN(said); i++) {
        texts[i] = testing_quotes(said[i]);
    }
    upstream_learn_instructions(&self.a->base, STR("Ask a."));
    size_t at = 0;
    for (; failing_memory_start(at); at++) {
        endpoint *made = NULL;
        endpoint_options options = {.config = self.config};
        if (endpoint_new(&options, &made) == BAY_OK) {
            peer one = {.carrier.ops = &peer_ops};
            err_ignore(endpoint_set_sources(made, self.config, self.sources, 2));
            endpoint_lists_ready(made);
            endpoint_refresh(made, LISTING_TOOLS, self.sources, 2);
            if (mcp_connection_open(endpoint_engine(made), &one.carrier, &one.connection) ==
                BAY_OK) {
                for (size_t i = 0; i < ARRAY_LEN(said); i++) {
                    mcp_connection_receive(one.connection, str_of(texts[i]), 1000);
                }
                mcp_connection_close(one.connection);
            }
            forget(&one);
            endpoint_free(made);
        }
        failing_memory_check();
    }
    assert_true(at > 100);
    assert_int_equal(self.a->subscribes, self.a->unsubscribes);
    for (size_t i = 0; i < ARRAY_LEN(said); i++) {
        mem_free(texts[i]);
    }
    close_stage(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_scores_nothing),
        cmocka_unit_test(words_fit_however_they_are_written),
        cmocka_unit_test(better_fits_score_more),
        cmocka_unit_test(a_query_has_its_bounds),
        cmocka_unit_test(three_tools_are_listed),
        cmocka_unit_test(searches_rank_and_repeat),
        cmocka_unit_test(a_client_of_old_gets_text_alone),
        cmocka_unit_test(what_is_asked_wrongly_is_a_tool_s_error),
        cmocka_unit_test(definitions_come_byte_for_byte),
        cmocka_unit_test(a_call_is_the_target_s_own),
        cmocka_unit_test(a_question_during_a_call_is_asked_as_ever),
        cmocka_unit_test(before_the_servers_were_heard_of_they_wait),
        cmocka_unit_test(a_change_of_mode_is_told),
        cmocka_unit_test(a_long_search_lets_others_pass),
        cmocka_unit_test(searches_are_cancelled_and_bounded),
        cmocka_unit_test(every_failing_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

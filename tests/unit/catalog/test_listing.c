/* Fetching all that a server offers: pages, cursors that misbehave, and what is left out. */
#include "support/fake_listing.h"

typedef struct stage {
    fake *server;
    listing_fetch fetch;
    int ends; /* 1 for a new list, 100 for none */
} stage;

static void begin_with(stage *self, fake *server, listing_kind kind)
{
    self->server = server;
    self->ends = 0;
    listing_fetch_init(&self->fetch, &server->base, kind, listing_fetched, &self->ends);
}

static void begin(stage *self, listing_kind kind)
{
    begin_with(self, fake_new("s", false), kind);
}

static void finish(stage *self)
{
    listing_fetch_fini(&self->fetch);
    fake_free(self->server);
}

static void assert_sent(const stage *self, const char *method, const char *params)
{
    assert_true(self->server->held_count == 1);
    const upstream_call *call = self->server->held[0];
    char *wanted = testing_quotes(params);
    assert_text(call->spec.method, method);
    assert_text(json_raw(call->spec.params), wanted);
    mem_free(wanted);
}

static void assert_names(const stage *self, const char *wanted)
{
    buf names;
    buf_init(&names, 1 << 16);
    const listing *got = self->fetch.current;
    for (size_t i = 0; got != NULL && i < got->count; i++) {
        buf_str(&names, got->items[i].key);
        buf_char(&names, ' ');
    }
    assert_text(buf_view(&names), wanted);
    buf_fini(&names);
}

static void a_failure_keeps_the_earlier_list(void **state)
{
    (void)state;
    stage self;
    begin(&self, LISTING_TOOLS);
    listing_fetch_start(&self.fetch, 1000);
    fake_result(self.server, "{'tools':[{'name':'a'}]}");
    assert_int_equal(self.ends, 1);
    listing_fetch_start(&self.fetch, 1000);
    fake_result(self.server, "{'tools':[{'name':'b'}],'nextCursor':'2'}");
    fake_error(self.server, -32603, "{'code':-32603,'message':'no'}");
    assert_int_equal(self.ends, 101);
    assert_names(&self, "a ");
    listing_fetch_start(&self.fetch, 1000);
    fake_fail(self.server, BAY_ERR_TIMEOUT, true, "timed out");
    listing_fetch_start(&self.fetch, 1000);
    fake_result(self.server, "{'tools':{'name':'b'}}");
    listing_fetch_start(&self.fetch, 1000);
    fake_result(self.server, "{}");
    assert_int_equal(self.ends, 401);
    assert_names(&self, "a ");
    finish(&self);
}

static void a_first_failure_leaves_none(void **state)
{
    (void)state;
    stage self;
    begin(&self, LISTING_PROMPTS);
    listing_fetch_start(&self.fetch, 1000);
    fake_fail(self.server, BAY_ERR_EXITED, false, "exited");
    assert_int_equal(self.ends, 100);
    assert_null(self.fetch.current);
    finish(&self);
}

static void a_cursor_that_stands_still_is_cut_off(void **state)
{
    (void)state;
    stage self;
    begin(&self, LISTING_TOOLS);
    listing_fetch_start(&self.fetch, 1000);
    fake_result(self.server, "{'tools':[{'name':'a'}],'nextCursor':'x'}");
    fake_result(self.server, "{'tools':[{'name':'b'}],'nextCursor':'x'}");
    assert_int_equal(self.server->held_count, 0);
    assert_int_equal(self.ends, 1);
    assert_names(&self, "a b ");
    finish(&self);
}

static void pages_without_end_are_cut_off(void **state)
{
    (void)state;
    stage self;
    begin(&self, LISTING_TOOLS);
    listing_fetch_start(&self.fetch, 1000);
    int pages = 0;
    while (self.server->held_count > 0 && pages < 2 * LISTING_MAX_PAGES) {
        char page[100];
        pages++;
        (void)snprintf(page, sizeof(page), "{'tools':[{'name':'t%d'}],'nextCursor':'%d'}", pages,
                       pages);
        fake_result(self.server, page);
    }
    assert_int_equal(pages, LISTING_MAX_PAGES);
    assert_int_equal(self.ends, 1);
    assert_int_equal(self.fetch.current->count, LISTING_MAX_PAGES);
    finish(&self);
}

static void cursors_that_turn_in_a_circle_are_cut_off(void **state)
{
    (void)state;
    stage self;
    begin(&self, LISTING_TOOLS);
    listing_fetch_start(&self.fetch, 1000);
    fake_result(self.server, "{'tools':[{'name':'a'}],'nextCursor':'x'}");
    fake_result(self.server, "{'tools':[{'name':'b'}],'nextCursor':'y'}");
    fake_result(self.server, "{'tools':[{'name':'c'}],'nextCursor':'z'}");
    fake_result(self.server, "{'tools':[{'name':'d'}],'nextCursor':'x'}");
    assert_int_equal(self.server->held_count, 0);
    assert_names(&self, "a b c d ");
    listing_fetch_start(&self.fetch, 1000); /* cursors of an earlier reading are nobody's */
    fake_result(self.server, "{'tools':[{'name':'a'}],'nextCursor':'x'}");
    fake_result(self.server, "{'tools':[{'name':'b'}]}");
    assert_names(&self, "a b ");
    assert_true(self.fetch.is_good);
    finish(&self);
}

static void too_many_items_are_cut_off(void **state)
{
    (void)state;
    stage self;
    buf page;
    buf_init(&page, 64 << 20);
    buf_lit(&page, "{'nextCursor':'more','tools':[{'name':'first'}");
    for (int i = 0; i < LISTING_MAX_ITEMS; i++) {
        buf_printf(&page, ",{'name':'t%d'}", i);
    }
    buf_str(&page, (bay_str){"]}\0", 3});
    begin(&self, LISTING_TOOLS);
    listing_fetch_start(&self.fetch, 1000);
    fake_result(self.server, page.at);
    assert_int_equal(self.server->held_count, 0);
    assert_int_equal(self.ends, 1);
    assert_int_equal(self.fetch.current->count, LISTING_MAX_ITEMS);
    assert_text(self.fetch.current->items[0].key, "first");
    buf_fini(&page);
    finish(&self);
}

static void the_least_time_that_a_page_gives_counts(void **state)
{
    (void)state;
    stage self;
    begin(&self, LISTING_TOOLS);
    listing_fetch_start(&self.fetch, 1000);
    fake_result(self.server, "{'tools':[],'nextCursor':'x','ttlMs':9000}");
    fake_result(self.server, "{'tools':[],'ttlMs':5000}");
    assert_int_equal(self.fetch.ttl_ms, 5000);
    static const char *const none[] = {
        "-1", "'5000'", "1.5", "null", "{}", "0", "18446744073709551616"};
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        char page[100];
        (void)snprintf(page, sizeof(page), "{'tools':[],'ttlMs':%s}", none[i]);
        listing_fetch_start(&self.fetch, 1000);
        fake_result(self.server, page);
        assert_int_equal(self.fetch.ttl_ms, 0);
    }
    listing_fetch_start(&self.fetch, 1000);
    fake_result(self.server, "{'tools':[],'nextCursor':'x','ttlMs':9000}");
    fake_result(self.server, "{'tools':[]}");
    assert_int_equal(self.fetch.ttl_ms, 0); /* one page says nothing */
    listing_fetch_start(&self.fetch, 1000);
    fake_result(self.server, "{'tools':[],'ttlMs':99999999999}");
    assert_true(self.fetch.ttl_ms == UINT32_MAX);
    self.server->base.revision = mcp_revision_of(MCP_REV_2025_11_25);
    listing_fetch_start(&self.fetch, 1000);
    fake_result(self.server, "{'tools':[],'ttlMs':9000}");
    assert_int_equal(self.fetch.ttl_ms, 0); /* another revision's word */
    finish(&self);
}

static void what_cannot_be_named_is_left_out(void **state)
{
    (void)state;
    stage self;
    begin(&self, LISTING_TOOLS);
    listing_fetch_start(&self.fetch, 1000);
    fake_result(self.server, "{'tools':[null,1,'x',[],{},{'name':1},{'name':null},{'name':''},"
                             "{'Name':'x'},{'name':{'name':'x'}},{'name':'x','name':'y'},"
                             "{'name':'good'}],'nextCursor':7}");
    assert_int_equal(self.ends, 1);
    assert_names(&self, "good ");
    assert_int_equal(self.fetch.left_out, 11);
    finish(&self);
}

static void names_have_a_bound(void **state)
{
    (void)state;
    stage self;
    begin(&self, LISTING_TOOLS);
    buf text;
    buf_init(&text, 1 << 16);
    buf_lit(&text, "{\"tools\":[{\"name\":\"");
    for (int i = 0; i < LISTING_NAME_BYTES; i++) {
        buf_char(&text, 'n');
    }
    buf_lit(&text, "\"},{\"name\":\"");
    for (int i = 0; i < LISTING_NAME_BYTES + 1; i++) {
        buf_char(&text, 'm');
    }
    buf_lit(&text, "\"}]}");
    buf_char(&text, '\0');
    listing_fetch_start(&self.fetch, 1000);
    fake_result(self.server, text.at);
    buf_fini(&text);
    assert_int_equal(self.fetch.current->count, 1);
    assert_int_equal(self.fetch.current->items[0].key.len, LISTING_NAME_BYTES);
    finish(&self);
}

static void only_a_server_says_that_its_tool_may_run_twice(void **state)
{
    (void)state;
    stage self;
    static const bool wanted[] = {false, false, true, true, true};
    begin(&self, LISTING_TOOLS);
    listing_fetch_start(&self.fetch, 1000);
    fake_result(self.server,
                "{'tools':[{'name':'a'},{'name':'b','annotations':[]},{'name':'c','annotations':{"
                "'readOnlyHint':'true','idempotentHint':1}},{'name':'d','annotations':{"
                "'readOnlyHint':false,'destructiveHint':false}},{'name':'e','annotations':{"
                "'readOnlyHint':true}},{'name':'f','annotations':{'idempotentHint':true}},"
                "{'name':'g','annotations':{'readOnlyHint':false,'idempotentHint':true}}]}");
    assert_non_null(self.fetch.current);
    assert_int_equal(self.fetch.current->count, ARRAY_LEN(wanted));
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        assert_int_equal(self.fetch.current->items[i].is_repeatable, wanted[i]);
    }
    finish(&self);
}

/* One definition that no strict client would read is left out, and nothing else. */
static void a_misshapen_or_endlessly_nested_item_costs_itself_only(void **state)
{
    static const char *const bad[] = {
        "'description':7",
        "'inputSchema':[]",
        "'inputSchema':{}",
        "'inputSchema':{'type':'array'}",
        "'annotations':{'readOnlyHint':'yes'}",
        "'icons':[null]",
        "'_meta':null",
    };
    enum { DEEP = 3000, SIZE = 4 * DEEP };
    stage self;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char text[400];
        begin(&self, LISTING_TOOLS);
        listing_fetch_start(&self.fetch, 1000);
        (void)snprintf(text, sizeof(text),
                       "{'tools':[{'name':'a'},{'name':'b',%s},{'name':'c','n':1.50}]}", bad[i]);
        fake_result(self.server, text);
        assert_non_null(self.fetch.current);
        assert_int_equal(self.fetch.current->count, 2);
        assert_text(self.fetch.current->items[1].raw, "{\"name\":\"c\",\"n\":1.50}");
        finish(&self);
    }
    char *text = calloc(1, SIZE);
    assert_non_null(text);
    size_t len = (size_t)snprintf(text, SIZE, "{'tools':[{'name':'a'},{'name':'b','x':");
    memset(text + len, '[', DEEP);
    memset(text + len + DEEP, ']', DEEP);
    (void)snprintf(text + len + 2 * (size_t)DEEP, SIZE - len - 2 * (size_t)DEEP,
                   "},{'name':'c'}]}");
    begin(&self, LISTING_TOOLS);
    listing_fetch_start(&self.fetch, 1000);
    fake_result(self.server, text);
    free(text);
    assert_non_null(self.fetch.current);
    assert_int_equal(self.fetch.current->count, 2);
    assert_text(self.fetch.current->items[1].key, "c");
    finish(&self);
}

/* An icon from elsewhere than https: and data:image/ is left out, however it is escaped; the item
 * stays, with its other icons. What the pins see is what the server sent. */
static void an_unsafe_icon_is_left_out_and_not_its_tool(void **state)
{
    static const char *const bad[] = {"{'src':'javascript:alert(1)'}",
                                      "{'src':'java\\u0073cript:alert(1)','sizes':['1x1']}",
                                      "{'src':'data:text/html;base64,PHA+'}",
                                      "{'src':'http://x.example/i.png'}",
                                      "{'src':'HTTPS//x.example'}",
                                      "{'src':'https://'}"};
    stage self;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char text[600];
        begin(&self, LISTING_TOOLS);
        listing_fetch_start(&self.fetch, 1000);
        (void)snprintf(
            text, sizeof(text),
            "{'tools':[{'icons' : [%s],'name':'a','n':1.50},{'name':'b','icons':[{'src':"
            "'data:image/png,x'},%s, {'src':'https:\\/\\/x'}]},{'icons':[] ,'name':'c'}]}",
            bad[i], bad[i]);
        fake_result(self.server, text);
        assert_non_null(self.fetch.current);
        const listing_item *items = self.fetch.current->items;
        assert_int_equal(self.fetch.current->count, 3);
        assert_text(items[0].raw, "{\"name\":\"a\",\"n\":1.50}");
        assert_text(items[0].key, "a");
        assert_ptr_equal(json_raw(items[0].key_val).at, items[0].raw.at + strlen("{\"name\":"));
        assert_false(json_is(json_get(items[0].sent, STR("icons")), JSON_MISSING));
        assert_text(items[1].raw, "{\"name\":\"b\",\"icons\":[{\"src\":\"data:image/png,x\"},"
                                  "{\"src\":\"https:\\/\\/x\"}]}");
        assert_text(items[2].raw, "{\"icons\":[] ,\"name\":\"c\"}");
        finish(&self);
    }
}

/* The schema of every revision demands a name beside the URI. */
static void a_resource_without_a_name_costs_itself_only(void **state)
{
    static const struct {
        listing_kind kind;
        const char *page;
    } rows[] = {
        {LISTING_RESOURCES, "{'resources':[{'uri':'f:1'},{'uri':'f:2','name':''}]}"},
        {LISTING_TEMPLATES,
         "{'resourceTemplates':[{'uriTemplate':'f:1'},{'uriTemplate':'f:2','name':'n'}]}"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        stage self;
        begin(&self, rows[i].kind);
        listing_fetch_start(&self.fetch, 1000);
        fake_result(self.server, rows[i].page);
        assert_names(&self, "f:2 ");
        finish(&self);
    }
}

/* Whatever its server speaks: clients of the gateway send the fields, and it checks them. */
static void broken_header_annotations_cost_the_tool(void **state)
{
    (void)state;
    for (int is_url = 0; is_url < 2; is_url++) {
        stage self;
        begin_with(&self, fake_new("s", is_url), LISTING_TOOLS);
        listing_fetch_start(&self.fetch, 1000);
        fake_result(self.server,
                    "{'tools':[{'name':'bad','inputSchema':{'type':'object','properties':{"
                    "'a':{'type':'string','x-mcp-header':'two words'}}}},"
                    "{'name':'good','inputSchema':{'type':'object','properties':{"
                    "'a':{'type':'string','x-mcp-header':'Region'}}}}]}");
        assert_names(&self, "good ");
        assert_int_equal(self.fetch.current->items[0].params.count, 1);
        assert_text(self.fetch.current->items[0].params.params[0].header, "Region");
        finish(&self);
    }
}

static void all_pages_are_fetched_with_the_cursor_as_it_came(void **state)
{
    (void)state;
    stage self;
    begin(&self, LISTING_RESOURCES);
    listing_fetch_start(&self.fetch, 1000);
    assert_sent(&self, "resources/list", "");
    fake_result(self.server, "{'resources':[{'uri':'f:1','name':'r'},{'uri':'f:2','name':'r'}],"
                             "'nextCursor':'\\u0041\\n/='}");
    assert_sent(&self, "resources/list", "{'cursor':'\\u0041\\n/='}");
    fake_result(self.server, "{'resources':[],'nextCursor':''}");
    assert_sent(&self, "resources/list", "{'cursor':''}");
    fake_result(self.server, "{'resources':[{'uri':'f:3','name':'r'}]}");
    assert_int_equal(self.ends, 1);
    assert_names(&self, "f:1 f:2 f:3 ");
    finish(&self);
}

static void a_missing_method_means_none(void **state)
{
    (void)state;
    stage self;
    begin(&self, LISTING_TEMPLATES);
    listing_fetch_start(&self.fetch, 1000);
    assert_sent(&self, "resources/templates/list", "");
    fake_error(self.server, -32601, "{'code':-32601,'message':'Method not found'}");
    assert_int_equal(self.ends, 1);
    assert_non_null(self.fetch.current);
    assert_names(&self, "");
    finish(&self);
}

static void without_the_capability_nobody_is_asked(void **state)
{
    (void)state;
    stage self;
    begin(&self, LISTING_PROMPTS);
    fake_learn(&self.server->base, mcp_revision_of(MCP_LATEST), STR("{\"tools\":{}}"));
    listing_fetch_start(&self.fetch, 1000);
    assert_int_equal(self.server->sends, 0);
    assert_int_equal(self.ends, 1);
    finish(&self);
}

static void a_demand_meanwhile_fetches_again(void **state)
{
    (void)state;
    stage self;
    begin(&self, LISTING_TOOLS);
    listing_fetch_start(&self.fetch, 1000);
    listing_fetch_start(&self.fetch, 1000);
    listing_fetch_start(&self.fetch, 1000);
    assert_int_equal(self.server->sends, 1);
    fake_result(self.server, "{'tools':[{'name':'a'}]}");
    assert_int_equal(self.ends, 1);
    assert_int_equal(self.server->sends, 2);
    assert_int_equal(self.server->held[0]->spec.timeout_ms, 1000);
    fake_result(self.server, "{'tools':[{'name':'a'},{'name':'b'}]}");
    assert_int_equal(self.ends, 2);
    assert_int_equal(self.server->sends, 2);
    assert_names(&self, "a b ");
    finish(&self);
}

static void the_same_list_is_no_change(void **state)
{
    (void)state;
    stage self;
    begin(&self, LISTING_TOOLS);
    listing_fetch_start(&self.fetch, 1000);
    fake_result(self.server, "{'tools':[{'name':'a'}]}");
    const listing *first = self.fetch.current;
    listing_fetch_start(&self.fetch, 1000);
    fake_result(self.server, "{'tools' : [ {'name':'a'} ]}");
    assert_int_equal(self.ends, 101);
    assert_ptr_equal(self.fetch.current, first);
    listing_fetch_start(&self.fetch, 1000);
    fake_result(self.server, "{'tools':[{'name':'a','title':'A'}]}");
    assert_int_equal(self.ends, 102);
    finish(&self);
}

static void an_end_in_the_middle_cancels_the_call(void **state)
{
    (void)state;
    stage self;
    begin(&self, LISTING_TOOLS);
    listing_fetch_start(&self.fetch, 1000);
    fake_result(self.server, "{'tools':[{'name':'a'}],'nextCursor':'1'}");
    fake *server = self.server;
    listing_fetch_fini(&self.fetch);
    assert_int_equal(server->cancels, 1);
    assert_int_equal(self.ends, 0);
    fake_free(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_keeps_the_earlier_list),
        cmocka_unit_test(a_first_failure_leaves_none),
        cmocka_unit_test(a_cursor_that_stands_still_is_cut_off),
        cmocka_unit_test(pages_without_end_are_cut_off),
        cmocka_unit_test(cursors_that_turn_in_a_circle_are_cut_off),
        cmocka_unit_test(too_many_items_are_cut_off),
        cmocka_unit_test(the_least_time_that_a_page_gives_counts),
        cmocka_unit_test(what_cannot_be_named_is_left_out),
        cmocka_unit_test(names_have_a_bound),
        cmocka_unit_test(only_a_server_says_that_its_tool_may_run_twice),
        cmocka_unit_test(a_resource_without_a_name_costs_itself_only),
        cmocka_unit_test(broken_header_annotations_cost_the_tool),
        cmocka_unit_test(an_unsafe_icon_is_left_out_and_not_its_tool),
        cmocka_unit_test(a_misshapen_or_endlessly_nested_item_costs_itself_only),
        cmocka_unit_test(all_pages_are_fetched_with_the_cursor_as_it_came),
        cmocka_unit_test(a_missing_method_means_none),
        cmocka_unit_test(without_the_capability_nobody_is_asked),
        cmocka_unit_test(a_demand_meanwhile_fetches_again),
        cmocka_unit_test(the_same_list_is_no_change),
        cmocka_unit_test(an_end_in_the_middle_cancels_the_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

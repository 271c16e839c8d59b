/* An endpoint: what it declares of its servers, what it shows and refuses, how long its lists are
 * good for, and where subscriptions go when servers change. */
#include "support/endpoint_testing.h"

#include "endpoint/endpoint_parts.h"

/* What a server says it can, from now on; NULL: it has not been heard of. */
static void learn(stage *self, fake *server, const char *capabilities)
{
    if (capabilities == NULL) {
        server->base.revision = NULL;
    } else {
        char *text = testing_quotes(capabilities);
        fake_learn(&server->base, mcp_revision_of(MCP_REV_2025_11_25), str_of(text));
        mem_free(text);
    }
    endpoint_server_changed(self->endpoint, &server->base);
}

static void assert_declares(stage *self, const char *capabilities)
{
    char text[600];
    peer late;
    peer_open(&late, self->endpoint);
    say(&late, "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{"
               "'protocolVersion':'2025-11-25','capabilities':{},"
               "'clientInfo':{'name':'c','version':'1'}}}");
    (void)snprintf(text, sizeof(text), "'capabilities':%s,'serverInfo'", capabilities);
    assert_heard_part(&late, text);
    mcp_connection_close(late.connection);
}

#define ALL                                                                                        \
    "{'tools':{'listChanged':true},'resources':{'subscribe':true,'listChanged':true},"             \
    "'prompts':{'listChanged':true},'completions':{},'logging':{}}"

static void capabilities_are_those_of_the_servers(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    learn(&self, self.a, "{'tools':{}}");
    assert_declares(&self, ALL); /* b has them all */
    learn(&self, self.b, "{'prompts':{},'tools':false}");
    assert_declares(&self, "{'tools':{'listChanged':true},'prompts':{'listChanged':true}}");
    learn(&self, self.b, "{'resources':{'subscribe':false},'logging':{}}");
    assert_declares(&self, "{'tools':{'listChanged':true},'resources':{'listChanged':true},"
                           "'logging':{}}");
    learn(&self, self.b, NULL);
    assert_declares(&self, ALL); /* who has not been heard of may have anything */
    learn(&self, self.b, "{}");
    learn(&self, self.a, "{}");
    assert_declares(&self, "{}");
    assert_int_equal(endpoint_set_sources(self.endpoint, self.config, self.sources, 0), BAY_OK);
    assert_declares(&self, ALL); /* nobody is there yet */
    close_stage(&self);
}

static void who_came_before_a_capability_is_told_of_its_lists(void **state)
{
    (void)state;
    stage self;
    open_with(&self, "workers: 1", "");
    endpoint_lists_ready(self.endpoint);
    learn(&self, self.a, "{'tools':{}}");
    learn(&self, self.b, "{'tools':{}}");
    peer early;
    peer_open(&early, self.endpoint);
    say(&early, "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{"
                "'protocolVersion':'2025-11-25','capabilities':{},"
                "'clientInfo':{'name':'c','version':'1'}}}");
    say(&early, "{'jsonrpc':'2.0','method':'notifications/initialized'}");
    say(&early, LEGACY("1", "prompts/list", "'x':1"));
    assert_int_equal(early.count, 2);
    assert_non_null(strstr(early.lines[1], "-32601"));
    forget(&early);
    learn(&self, self.b, "{'tools':{},'prompts':{}}");
    listing *made = listing_of(self.b, LISTING_PROMPTS, "[{\"name\":\"new\"}]");
    self.sources[1].listings[LISTING_PROMPTS] = made;
    endpoint_refresh(self.endpoint, LISTING_PROMPTS, &self.sources[1], 1);
    assert_heard(&early, "{'jsonrpc':'2.0','method':'notifications/prompts/list_changed'}");
    say(&early, LEGACY("2", "prompts/list", "'x':1"));
    assert_heard_part(&early, "'b.new'");
    mcp_connection_close(early.connection);
    close_stage(&self);
}

static void assert_instructs(endpoint *of, const char *wanted)
{
    peer one;
    peer_open(&one, of);
    say(&one, MODERN("1", "server/discover", "'x':1"));
    assert_int_equal(one.count, 1);
    const char *found = strstr(one.lines[0], "\"instructions\":");
    char *text = wanted != NULL ? testing_quotes(wanted) : NULL;
    if ((found != NULL) != (text != NULL) ||
        (text != NULL && strncmp(found + 15, text, strlen(text)) != 0)) {
        print_error("is: %.300s\nwanted: %s\n", found, text);
        fail();
    }
    mem_free(text);
    forget(&one);
    mcp_connection_close(one.connection);
}

static void instructions_are_joined_each_under_its_name(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    assert_instructs(self.endpoint, NULL);
    upstream_learn_instructions(&self.b->base, STR("Say \"please\"."));
    assert_instructs(self.endpoint, "'# b\\n\\nSay \\'please\\'.'");
    upstream_learn_instructions(&self.a->base, STR("Ask a."));
    assert_instructs(self.endpoint, "'# a\\n\\nAsk a.\\n\\n# b\\n\\nSay \\'please\\'.'");
    endpoint_options options = {.config = self.config, .only = STR("b")};
    endpoint *own;
    assert_int_equal(endpoint_new(&options, &own), BAY_OK);
    assert_int_equal(endpoint_set_sources(own, self.config, &self.sources[1], 1), BAY_OK);
    assert_instructs(own, "'Say \\'please\\'.'"); /* byte for byte */
    endpoint_free(own);
    char *large = mem_alloc(UPSTREAM_INSTRUCTIONS_BYTES + 1);
    assert_non_null(large);
    memset(large, 'x', UPSTREAM_INSTRUCTIONS_BYTES + 1);
    upstream_learn_instructions(&self.b->base, (bay_str){large, UPSTREAM_INSTRUCTIONS_BYTES + 1});
    assert_int_equal(upstream_instructions(&self.b->base).len, 0);
    upstream_learn_instructions(&self.b->base, (bay_str){large, UPSTREAM_INSTRUCTIONS_BYTES});
    buf out;
    buf_init(&out, 1 << 20);
    mcp_request request = {0};
    endpoint_instructions(self.endpoint, &request, &out);
    assert_true(out.len > 8000 && out.len < 9000); /* one server does not crowd out the others */
    buf_fini(&out);
    mem_free(large);
    close_stage(&self);
}

/* ---- what is not shown cannot be used ---------------------------------------------------------
 */

static void expose(stage *self, const config *settings)
{
    upstream_set_config(&self->a->base, settings, &settings->servers[0]);
    upstream_set_config(&self->b->base, settings, &settings->servers[1]);
    assert_int_equal(endpoint_set_sources(self->endpoint, settings, self->sources, 2), BAY_OK);
    forget(&self->legacy);
}

static void what_is_hidden_cannot_be_called_or_read(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    const config *settings = testing_config(
        "mcpServers: {a: {url: 'http://x/', expose: {hide: [echo, 'f:*'], prompts: []}},"
        " b: {command: x, rename: {echo: say}, expose: {hide: ['g:///secret*']}}}");
    expose(&self, settings);
    say(&self.legacy, LEGACY("1", "tools/list", "'x':1"));
    assert_heard_part(&self.legacy, "{'tools':[{'name':'a.x.y'},{'name':'b.say'}]}");
    say(&self.legacy, LEGACY("2", "tools/call", "'name':'a.echo'"));
    assert_heard_part(&self.legacy, "Unknown tool: a.echo");
    say(&self.legacy, LEGACY("3", "tools/call", "'name':'b.echo'"));
    assert_heard_part(&self.legacy, "Unknown tool: b.echo");
    say(&self.legacy, LEGACY("4", "prompts/get", "'name':'a.p'"));
    assert_heard_part(&self.legacy, "Unknown prompt: a.p");
    say(&self.legacy, LEGACY("5", "resources/read", "'uri':'f:///a'"));
    assert_asked(self.b, "resources/read", "", "{'uri':'f:///a'}"); /* b alone is left to ask */
    fake_result(self.b, "{'contents':[]}");
    forget(&self.legacy);
    say(&self.legacy, LEGACY("6", "resources/read", "'uri':'g:///secret1'"));
    assert_asked(self.a, "resources/read", "", "{'uri':'g:///secret1'}");
    fake_result(self.a, "{'contents':[]}");
    forget(&self.legacy);
    say(&self.legacy, LEGACY("7", "tools/call", "'name':'b.say'"));
    assert_asked(self.b, "tools/call", "echo", "{'name':'b.say'}");
    fake_result(self.b, "{'content':[]}");
    close_stage(&self);
    config_free(settings);
}

static void what_would_be_hidden_is_not_called_before_its_list_is_known(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    const config *settings = testing_config(
        "mcpServers: {a: {url: 'http://x/', expose: {tools: [echo]}, rename: {echo: say}},"
        " b: {command: x}}");
    listing_unref(self.sources[0].listings[LISTING_TOOLS]);
    self.sources[0].listings[LISTING_TOOLS] = NULL;
    expose(&self, settings);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.other'"));
    assert_heard_part(&self.legacy, "Unknown tool: a.other");
    say(&self.legacy, LEGACY("2", "tools/call", "'name':'a.echo'"));
    assert_heard_part(&self.legacy, "Unknown tool: a.echo");
    say(&self.legacy, LEGACY("3", "tools/call", "'name':'a.say'"));
    assert_heard_part(&self.legacy, "no tool list that could be read"); /* it may be there */
    assert_int_equal(self.a->held_count, 0);
    close_stage(&self);
    config_free(settings);
}

static void a_profile_shows_its_part(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    const config *settings =
        testing_config("mcpServers: {a: {url: 'http://x/'}, b: {command: x}}\n"
                       "profiles: {part: {tools: ['*.echo'], hide: [b.echo, 'f:///a', a.p]}}");
    endpoint_options options = {.config = settings, .profile = STR("part")};
    endpoint *part;
    peer one;
    assert_int_equal(endpoint_new(&options, &part), BAY_OK);
    assert_text(endpoint_profile(part), "part");
    assert_int_equal(endpoint_set_sources(part, settings, self.sources, 2), BAY_OK);
    endpoint_lists_ready(part);
    peer_open(&one, part);
    say(&one, MODERN("1", "tools/list", "'x':1"));
    assert_heard_part(&one, "'tools':[{'name':'a.echo'}]");
    say(&one, MODERN("2", "prompts/list", "'x':1"));
    assert_heard_part(&one, "'prompts':[]");
    say(&one, MODERN("3", "resources/list", "'x':1"));
    assert_heard_part(&one, "'resources':[]");
    say(&one, MODERN("4", "tools/call", "'name':'b.echo'"));
    assert_heard_part(&one, "Unknown tool: b.echo");
    say(&one, MODERN("5", "resources/read", "'uri':'f:///a'"));
    assert_heard_part(&one, "'error'");
    say(&one, MODERN("6", "tools/call", "'name':'a.echo'"));
    assert_asked(self.a, "tools/call", "echo", "{'name':'a.echo'," META "}}");
    fake_result(self.a, "{'content':[]}");
    forget(&one);
    mcp_connection_close(one.connection);
    endpoint_free(part);
    close_stage(&self);
    config_free(settings);
}

/* ---- cursors and freshness ---------------------------------------------------------------------
 */

static void cursors_of_another_endpoint_are_refused(void **state)
{
    (void)state;
    stage self;
    open_on_loop(&self, "limits: {pageSize: 1}",
                 "'protocolVersion':'2025-11-25','capabilities':{}");
    char cursor[300];
    char message[900];
    say(&self.legacy, LEGACY("1", "tools/list", "'x':1"));
    assert_int_equal(self.legacy.count, 1);
    const char *at = strstr(self.legacy.lines[0], "\"nextCursor\":\"");
    assert_non_null(at);
    (void)snprintf(cursor, sizeof(cursor), "%.*s", (int)strcspn(at + 14, "\""), at + 14);
    forget(&self.legacy);
    (void)snprintf(message, sizeof(message), LEGACY("2", "tools/list", "'cursor':'%s'"), cursor);
    say(&self.legacy, message);
    assert_heard_part(&self.legacy, "'tools':[{'name':'a.x.y'}]");
    (void)snprintf(message, sizeof(message), LEGACY("3", "prompts/list", "'cursor':'%s'"), cursor);
    say(&self.legacy, message);
    assert_heard_part(&self.legacy, "'error':{'code':-32602,'message':'Invalid cursor");
    say(&self.legacy, LEGACY("4", "tools/list", "'cursor':'MTox'"));
    assert_heard_part(&self.legacy, "'error':{'code':-32602,'message':'Invalid cursor");
    endpoint_options options = {
        .config = self.config, .only = STR("a"), .loop = self.loop, .ring = self.ring};
    endpoint *own;
    peer one;
    assert_int_equal(endpoint_new(&options, &own), BAY_OK);
    assert_int_equal(endpoint_set_sources(own, self.config, self.sources, 1), BAY_OK);
    endpoint_lists_ready(own);
    peer_open(&one, own);
    (void)snprintf(message, sizeof(message), MODERN("5", "tools/list", "'cursor':'%s'"), cursor);
    say(&one, message);
    assert_heard_part(&one, "'error':{'code':-32602,'message':'Invalid cursor");
    mcp_connection_close(one.connection);
    endpoint_free(own);
    close_stage(&self);
}

static void assert_ttl(stage *self, uint64_t a_ms, uint64_t b_ms, const char *wanted)
{
    self->sources[0].fresh_until_ms[LISTING_TOOLS] = a_ms;
    self->sources[1].fresh_until_ms[LISTING_TOOLS] = b_ms;
    endpoint_keep_fresh(self->endpoint, LISTING_TOOLS, &self->sources[0]);
    endpoint_keep_fresh(self->endpoint, LISTING_TOOLS, &self->sources[1]);
    say(&self->modern, MODERN("1", "tools/list", "'x':1"));
    assert_heard_part(&self->modern, wanted);
}

static void lists_are_good_for_what_is_left_of_the_least_time(void **state)
{
    (void)state;
    stage self;
    open_stage(&self); /* without a loop it is always 0 o'clock */
    assert_ttl(&self, 0, 0, "'ttlMs':0,");
    assert_ttl(&self, 0, 5000, "'ttlMs':0,");
    assert_ttl(&self, 9000, 5000, "'ttlMs':5000,");
    assert_ttl(&self, UINT64_MAX, 5000, "'ttlMs':5000,");
    assert_ttl(&self, UINT64_MAX, UINT64_MAX, "'ttlMs':0,");
    assert_ttl(&self, UINT64_MAX, UINT64_MAX - 1, "'ttlMs':86400000,");
    close_stage(&self);
}

/* ---- subscriptions ------------------------------------------------------------------------------
 */

static void relist(stage *self, int which, const char *items)
{
    fake *server = which == 0 ? self->a : self->b;
    listing_unref(self->sources[which].listings[LISTING_RESOURCES]);
    self->sources[which].listings[LISTING_RESOURCES] = listing_of(server, LISTING_RESOURCES, items);
}

static void subscriptions_follow_a_replaced_server(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "resources/subscribe", "'uri':'f:///a'"));
    forget(&self.legacy);
    assert_int_equal(self.a->subscribes, 1);
    fake *other = fake_new("a", true);
    catalog_source sources[2] = {self.sources[0], self.sources[1]};
    sources[0].upstream = &other->base;
    assert_int_equal(endpoint_set_sources(self.endpoint, self.config, sources, 2), BAY_OK);
    assert_int_equal(self.a->unsubscribes, 1);
    assert_int_equal(other->subscribes, 1);
    /* once more, and nothing moves */
    assert_int_equal(endpoint_set_sources(self.endpoint, self.config, sources, 2), BAY_OK);
    assert_int_equal(other->subscribes, 1);
    assert_int_equal(other->unsubscribes, 0);
    /* its server leaves, and comes back */
    assert_int_equal(endpoint_set_sources(self.endpoint, self.config, &sources[1], 1), BAY_OK);
    assert_int_equal(other->unsubscribes, 1);
    assert_int_equal(endpoint_set_sources(self.endpoint, self.config, sources, 2), BAY_OK);
    assert_int_equal(other->subscribes, 2);
    say(&self.legacy, LEGACY("2", "resources/unsubscribe", "'uri':'f:///a'"));
    assert_int_equal(other->unsubscribes, 2);
    assert_int_equal(self.b->subscribes, self.b->unsubscribes);
    assert_int_equal(endpoint_set_sources(self.endpoint, self.config, self.sources, 2), BAY_OK);
    fake_free(other);
    close_stage(&self);
}

static void a_subscription_finds_its_server_when_the_list_comes(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "resources/subscribe", "'uri':'f:///a'"));
    forget(&self.legacy);
    assert_int_equal(self.a->subscribes, 1);
    relist(&self, 0, "[]");
    endpoint_refresh(self.endpoint, LISTING_RESOURCES, self.sources, 1);
    assert_int_equal(self.a->unsubscribes, 0); /* unlisted resources exist */
    relist(&self, 1, "[{\"uri\":\"f:///a\",\"name\":\"r\"}]");
    assert_int_equal(endpoint_set_sources(self.endpoint, self.config, &self.sources[1], 1), BAY_OK);
    assert_int_equal(self.a->unsubscribes, 1);
    assert_int_equal(self.b->subscribes, 1);
    relist(&self, 1, "[]");
    listing *back = listing_of(self.b, LISTING_RESOURCES, "[{\"uri\":\"f:///a\",\"name\":\"r\"}]");
    mem_free(self.b->base.capabilities);
    self.b->base.capabilities = NULL;
    assert_int_equal(endpoint_set_sources(self.endpoint, self.config, &self.sources[1], 1), BAY_OK);
    assert_int_equal(self.b->unsubscribes, 1); /* nobody's */
    listing_unref(self.sources[1].listings[LISTING_RESOURCES]);
    self.sources[1].listings[LISTING_RESOURCES] = back;
    endpoint_refresh(self.endpoint, LISTING_RESOURCES, &self.sources[1], 1);
    assert_int_equal(self.b->subscribes, 2);
    endpoint_forget_sources(self.endpoint, self.config);
    assert_int_equal(self.b->unsubscribes, 2);
    close_stage(&self);
}

/* Tasks are built on endpoints: where nobody has brought them, they are a method unknown. */
static void without_tasks_none_are_declared_or_taken(void **state)
{
    stage self;
    (void)state;
    open_on_loop(&self, "workers: 1", "'protocolVersion':'2025-11-25','capabilities':{}");
    say(&self.legacy, LEGACY("1", "tasks/get", "'taskId':'pb5.x'"));
    assert_heard_part(&self.legacy, "'code':-32601");
    peer other;
    peer_open(&other, self.endpoint);
    say(&other, "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{'protocolVersion':"
                "'2025-11-25','capabilities':{},'clientInfo':{'name':'c','version':'1'}}}");
    assert_non_null(strstr(other.lines[0], "\"tools\":{"));
    assert_null(strstr(other.lines[0], "\"tasks\""));
    forget(&other);
    mcp_connection_close(other.connection);
    say(&self.modern, MODERN("2", "server/discover", "'x':1"));
    assert_non_null(strstr(self.modern.lines[0], "\"tools\":{"));
    assert_null(strstr(self.modern.lines[0], "tasks"));
    assert_null(strstr(self.modern.lines[0], "extensions"));
    forget(&self.modern);
    close_stage(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capabilities_are_those_of_the_servers),
        cmocka_unit_test(who_came_before_a_capability_is_told_of_its_lists),
        cmocka_unit_test(instructions_are_joined_each_under_its_name),
        cmocka_unit_test(what_is_hidden_cannot_be_called_or_read),
        cmocka_unit_test(what_would_be_hidden_is_not_called_before_its_list_is_known),
        cmocka_unit_test(a_profile_shows_its_part),
        cmocka_unit_test(cursors_of_another_endpoint_are_refused),
        cmocka_unit_test(lists_are_good_for_what_is_left_of_the_least_time),
        cmocka_unit_test(subscriptions_follow_a_replaced_server),
        cmocka_unit_test(without_tasks_none_are_declared_or_taken),
        cmocka_unit_test(a_subscription_finds_its_server_when_the_list_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Skills of several servers on one endpoint: a list page by page over the servers, and URIs that
 * find whose they are. */
#include "support/starving.h"

#define WHO "'protocolVersion':'2025-11-25','capabilities':{}"
#define SKILLS "{\"resources\":{},\"extensions\":{\"io.modelcontextprotocol/skills\":{}}}"

enum { CURSOR = 600 };

static void open_skills(stage *self, bool has_a, bool has_b)
{
    open_on_loop(self, "workers: 1", WHO);
    fake_learn(&self->a->base, mcp_revision_of(MCP_LATEST),
               has_a ? STR(SKILLS) : STR("{\"tools\":{}}"));
    fake_learn(&self->b->base, mcp_revision_of(MCP_REV_2025_11_25),
               has_b ? STR(SKILLS) : STR("{\"tools\":{}}"));
    endpoint_server_changed(self->endpoint, NULL);
}

static void list_from(stage *self, const char *cursor)
{
    char text[1500];
    (void)snprintf(text, sizeof(text), MODERN("1", "skills/list", "'x':1.0%s%s%s"),
                   cursor[0] != '\0' ? ",'cursor':'" : "", cursor, cursor[0] != '\0' ? "'" : "");
    say(&self->modern, text);
}

static void take_cursor(peer *self, char out[CURSOR])
{
    assert_int_equal(self->count, 1);
    const char *at = strstr(self->lines[0], "\"nextCursor\":\"");
    out[0] = '\0';
    if (at != NULL) {
        (void)sscanf(at, "\"nextCursor\":\"%599[^\"]", out);
    }
}

static void without_a_server_that_has_them_there_are_none(void **state)
{
    (void)state;
    stage self;
    open_skills(&self, false, false);
    say(&self.modern, MODERN("1", "skills/list", "'x':1"));
    assert_heard_part(&self.modern, "-32601");
    say(&self.legacy, LEGACY("1", "skills/get", "'uri':'skill://a/SKILL.md'"));
    assert_heard_part(&self.legacy, "-32601");
    close_stage(&self);
}

static void the_list_goes_on_at_the_next_server(void **state)
{
    (void)state;
    stage self;
    char cursor[CURSOR];
    open_skills(&self, true, true);
    say(&self.modern, MODERN("1", "server/discover", "'x':1"));
    assert_heard_part(&self.modern, "'io.modelcontextprotocol/skills':{'directoryRead':true}");
    list_from(&self, "");
    assert_int_equal(self.b->held_count, 0);
    fake_result(
        self.a,
        "{'skills':[{'uri':'skill://a/SKILL.md','name':'r','n':1.0}],'nextCursor':'up\\u0041',"
        "'ttlMs':5,'cacheScope':'public'}");
    take_cursor(&self.modern, cursor);
    assert_heard_part(&self.modern,
                      "'skills':[{'uri':'skill://a/SKILL.md','name':'r','n':1.0}],'nextCursor'");
    list_from(&self, cursor);
    char *own = testing_quotes("'cursor':'up\\u0041'");
    assert_true(str_contains(json_raw(self.a->held[0]->spec.params), own));
    mem_free(own);
    fake_result(self.a, "{'skills':[]}");
    take_cursor(&self.modern, cursor);
    forget(&self.modern);
    list_from(&self, cursor);
    assert_false(str_contains(json_raw(self.b->held[0]->spec.params), "cursor"));
    fake_result(self.b, "{'skills':[{'uri':'skill://b/SKILL.md','name':'r'}]}");
    take_cursor(&self.modern, cursor);
    assert_int_equal(cursor[0], '\0');
    assert_heard_part(&self.modern, "'skills':[{'uri':'skill://b/SKILL.md','name':'r'}]");
    list_from(&self, "forged");
    assert_heard_part(&self.modern, "-32602");
    close_stage(&self);
}

static void a_server_that_fails_leaves_the_others(void **state)
{
    (void)state;
    stage self;
    char cursor[CURSOR];
    open_skills(&self, true, true);
    list_from(&self, "");
    fake_fail(self.a, BAY_ERR_TIMEOUT, true, "timed out");
    take_cursor(&self.modern, cursor);
    assert_heard_part(&self.modern, "'skills':[],'nextCursor'");
    list_from(&self, cursor);
    fake_error(self.b, -32603, "{'code':-32603,'message':'m'}");
    assert_heard_part(&self.modern, "'skills':[]");
    close_stage(&self);
    open_skills(&self, false, true);
    list_from(&self, "");
    fake_error(self.b, -32603, "{'code':-32603,'message':'m'}");
    assert_heard_part(&self.modern, "'code':-32603,'message':'m'");
    list_from(&self, "");
    fake_result(self.b, "{'skills':[]}");
    assert_heard_part(&self.modern, "'skills':[]");
    close_stage(&self);
}

static void a_uri_finds_whose_it_is(void **state)
{
    (void)state;
    stage self;
    open_skills(&self, true, true);
    say(&self.legacy, LEGACY("1", "skills/get", "'uri':'skill://b/SKILL.md'"));
    fake_error(self.a, -32602, "{'code':-32602,'message':'none'}");
    assert_asked(self.b, "skills/get", "", "{'uri':'skill://b/SKILL.md'}");
    fake_result(self.b, "{'skill':{'n':1.0}}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'result':{'skill':{'n':1.0}}}");
    say(&self.legacy, LEGACY("2", "resources/directory/read", "'uri':'skill://x'"));
    fake_error(self.a, -32601, "{'code':-32601,'message':'none'}");
    fake_error(self.b, -32602, "{'code':-32602,'message':'nowhere'}");
    assert_heard_part(&self.legacy, "'code':-32602,'message':'nowhere'");
    say(&self.legacy, LEGACY("3", "skills/get", "'uri':7"));
    assert_heard_part(&self.legacy, "-32602");
    /* a resource's owner comes first; its failure is the answer */
    listing_unref(self.sources[1].listings[LISTING_RESOURCES]);
    self.sources[1].listings[LISTING_RESOURCES] =
        listing_of(self.b, LISTING_RESOURCES, "[{\"uri\":\"skill://b/SKILL.md\",\"name\":\"r\"}]");
    endpoint_refresh(self.endpoint, LISTING_RESOURCES, self.sources, 2);
    forget(&self.legacy);
    say(&self.legacy, LEGACY("4", "skills/get", "'uri':'skill://b/SKILL.md'"));
    assert_int_equal(self.a->held_count, 0);
    fake_error(self.b, -32602, "{'code':-32602,'message':'none'}");
    fake_error(self.a, -32602, "{'code':-32602,'message':'none, too'}");
    assert_heard_part(&self.legacy, "none, too");
    say(&self.legacy, LEGACY("5", "skills/get", "'uri':'skill://b/SKILL.md'"));
    fake_fail(self.b, BAY_ERR_EXITED, true, "it died");
    assert_heard_part(&self.legacy, "'code':-32603");
    say(&self.legacy, LEGACY("6", "skills/get", "'uri':'skill://b/SKILL.md'"));
    say(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
                      "'requestId':6}}");
    assert_int_equal(self.b->cancels, 1);
    close_stage(&self);
}

/* What must not be read as a resource is no skill either. */
static void what_is_hidden_is_no_skill(void **state)
{
    (void)state;
    stage self;
    bay_str hidden[] = {STR("skill://secret/*")};
    bay_str shown[] = {STR("skill://b/*")};
    open_skills(&self, true, true);
    self.a->server.expose.hide = (config_list){hidden, 1};
    self.b->server.expose.resources = (config_list){shown, 1};
    static const char *const methods[] = {"skills/get", "resources/directory/read"};
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        char text[300];
        (void)snprintf(text, sizeof(text), LEGACY("1", "%s", "'uri':'skill://%%73ecret/SKILL.md'"),
                       methods[i]);
        say(&self.legacy, text);
        assert_heard_part(&self.legacy, "-32602");
        assert_int_equal(self.a->held_count + self.b->held_count, 0);
        (void)snprintf(text, sizeof(text), LEGACY("2", "%s", "'uri':'skill://b/SKILL.md'"),
                       methods[i]);
        say(&self.legacy, text);
        fake_error(self.a, -32602, "{'code':-32602,'message':'none'}");
        fake_result(self.b, "{'x':1}");
        assert_heard_part(&self.legacy, "'x':1");
    }
    list_from(&self, "");
    fake_result(self.a, "{'skills':[{'uri':'skill://a/SKILL.md','name':'r', 'n':1.0},"
                        "{'uri':'skill://secret/SKILL.md'},{'name':'x'}],'y':2}");
    assert_int_equal(self.modern.count, 1);
    assert_null(strstr(self.modern.lines[0], "secret"));
    assert_heard_part(&self.modern,
                      "[{'uri':'skill://a/SKILL.md','name':'r', 'n':1.0},{'name':'x'}]");
    close_stage(&self);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    size_t at = 0;
    do {
        stage self;
        char cursor[CURSOR] = "";
        open_skills(&self, true, true);
        starved_begin(at++);
        starved_say(&self.modern, MODERN("1", "skills/list", "'x':1%s"), "");
        starved_result(&self, "{'skills':[],'nextCursor':'up'}");
        if (self.modern.count > 0 && self.modern.lines[0] != NULL) {
            take_cursor(&self.modern, cursor);
        }
        forget(&self.modern);
        starved_say(&self.modern, MODERN("2", "skills/list", "'cursor':'%s'"), cursor);
        starved_result(&self, "{'skills':[]}");
        starved_say(&self.modern, MODERN("3", "skills/get", "'uri':'skill://x%s'"), "");
        starved_result(&self, "{'skill':{}}");
        starved_settle(&self);
        assert_int_equal(self.b->held_count, 0);
        assert_int_equal(mcp_connection_pending(self.modern.connection), 0);
        close_stage(&self);
    } while (starved_has_failed);
    assert_true(at > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_server_that_has_them_there_are_none),
        cmocka_unit_test(the_list_goes_on_at_the_next_server),
        cmocka_unit_test(a_server_that_fails_leaves_the_others),
        cmocka_unit_test(a_uri_finds_whose_it_is),
        cmocka_unit_test(what_is_hidden_is_no_skill),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Switching tools, resources and prompts off and on while clients are there: from the loop, from
 * other threads, before serving; and log messages that belong to no call. */
#include "net/thread.h"
#include "unit/sdk/sdk_bench.h"

typedef struct set {
    bay_server *server;
    bay_tool *tool;
    bay_resource *resource;
    bay_resource *family;
    bay_prompt *prompt;
} set;

static set new_set(void)
{
    set self = {.server = bay_server_new("s", "1")};
    self.tool = bay_server_tool_schema(self.server, "t", NULL, NULL, reply_ok, NULL);
    self.resource = bay_server_resource(self.server, "x:a", "a", NULL, NULL, reply_ok, NULL);
    self.family = bay_server_template(self.server, "y:{a}", "b", NULL, NULL, reply_ok, NULL);
    self.prompt = bay_server_prompt(self.server, "p", NULL, NULL, reply_ok, NULL);
    return self;
}

static void switch_all(const set *self, bool is_enabled)
{
    bay_tool_enable(self->tool, is_enabled);
    bay_resource_enable(self->resource, is_enabled);
    bay_resource_enable(self->family, is_enabled);
    bay_prompt_enable(self->prompt, is_enabled);
}

static void expect_off(rig *on)
{
    assert_has(rig_ask(on, "tools/list", ""), "\"tools\":[]");
    assert_has(rig_ask(on, "resources/list", ""), "\"resources\":[]");
    assert_has(rig_ask(on, "resources/templates/list", ""), "\"resourceTemplates\":[]");
    assert_has(rig_ask(on, "prompts/list", ""), "\"prompts\":[]");
    assert_has(rig_call(on, "t"), "{\"code\":-32602,\"message\":\"Unknown tool: t\"}");
    assert_has(rig_ask(on, "resources/read", "\"uri\":\"x:a\""), "Resource not found");
    assert_has(rig_ask(on, "resources/read", "\"uri\":\"y:1\""), "Resource not found");
    assert_has(rig_ask(on, "prompts/get", "\"name\":\"p\""), "Unknown prompt: p");
}

static void expect_on(rig *on)
{
    assert_has(rig_ask(on, "tools/list", ""), "\"tools\":[{\"name\":\"t\"");
    assert_has(rig_ask(on, "resources/list", ""), "\"resources\":[{\"uri\":\"x:a\"");
    assert_has(rig_ask(on, "resources/templates/list", ""), "[{\"uriTemplate\":\"y:{a}\"");
    assert_has(rig_ask(on, "prompts/list", ""), "\"prompts\":[{\"name\":\"p\"");
    assert_has(rig_call(on, "t"), "\"text\":\"ok\"");
    assert_has(rig_ask(on, "resources/read", "\"uri\":\"x:a\""), "\"text\":\"ok\"");
    assert_has(rig_ask(on, "resources/read", "\"uri\":\"y:1\""), "\"text\":\"ok\"");
    assert_has(rig_ask(on, "prompts/get", "\"name\":\"p\""), "\"text\":\"ok\"");
}

static void nothing_is_fine(void **state)
{
    (void)state;
    bay_tool_enable(NULL, true);
    bay_resource_enable(NULL, true);
    bay_prompt_enable(NULL, true);
    bay_server_log(NULL, "info", "text");
}

static void what_is_off_is_neither_listed_nor_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(all_revisions); i++) {
        rig on;
        set self = new_set();
        switch_all(&self, false); /* before serving */
        rig_start(&on, self.server);
        rig_client(&on, all_revisions[i]);
        expect_off(&on);
        switch_all(&self, true);
        loop_turn(on.loop, 0);
        expect_on(&on);
        switch_all(&self, false); /* what a client listed before does not help it */
        assert_has(rig_call(&on, "t"), "Unknown tool: t");
        loop_turn(on.loop, 0);
        expect_off(&on);
        rig_stop(&on);
    }
}

static int count_events(const rig *on, const char *part)
{
    int count = 0;
    for (int i = 0; i < on->way.events; i++) {
        count += strstr(on->way.event[i], part) != NULL;
    }
    return count;
}

static void clients_hear_of_it_once(void **state)
{
    (void)state;
    rig on;
    set self = new_set();
    rig_start(&on, self.server);
    rig_client(&on, "2025-11-25");
    switch_all(&self, true); /* they are */
    loop_turn(on.loop, 0);
    assert_int_equal(count_events(&on, "list_changed"), 0);
    switch_all(&self, false);
    switch_all(&self, false);
    loop_turn(on.loop, 0);
    assert_int_equal(count_events(&on, "notifications/tools/list_changed"), 1);
    assert_int_equal(count_events(&on, "notifications/resources/list_changed"), 1);
    assert_int_equal(count_events(&on, "notifications/prompts/list_changed"), 1);
    rig_stop(&on);
}

static void subscribe_is_told(bay_server *server, bay_str uri, bool is_wanted, void *user)
{
    assert_non_null(server);
    char *told = user;
    size_t len = strlen(told);
    (void)snprintf(told + len, 256 - len, "%c%.*s ", is_wanted ? '+' : '-', BAY_STR(uri));
}

static void the_first_and_the_last_subscriber_are_told(void **state)
{
    (void)state;
    rig on;
    char told[256] = "";
    set self = new_set();
    bay_server_on_subscribe(NULL, subscribe_is_told, told);
    bay_server_on_subscribe(self.server, subscribe_is_told, told);
    rig_start(&on, self.server);
    rig_client(&on, "2025-11-25");
    (void)rig_ask(&on, "resources/subscribe", "\"uri\":\"x:a\"");
    (void)rig_ask(&on, "resources/subscribe", "\"uri\":\"x:a\"");
    (void)rig_ask(&on, "resources/subscribe", "\"uri\":\"y:7\"");
    assert_has(rig_ask(&on, "resources/subscribe", "\"uri\":\"z:7\""), "Resource not found");
    (void)rig_ask(&on, "resources/unsubscribe", "\"uri\":\"x:a\"");
    assert_string_equal(told, "+x:a +y:7 -x:a ");
    rig_stop(&on); /* the client is gone */
    assert_string_equal(told, "+x:a +y:7 -x:a -y:7 ");
}

/* ---- log messages */

static void log_messages_reach_whoever_wants_them(void **state)
{
    (void)state;
    rig on;
    set self = new_set();
    rig_start(&on, self.server);
    rig_client(&on, "2025-11-25");
    bay_server_log(self.server, "loud", "no level");
    bay_server_log(self.server, "debug", "below the level");
    bay_server_log(self.server, "warning", "a \"text\"");
    loop_turn(on.loop, 0);
    assert_int_equal(count_events(&on, "notifications/message"), 1);
    assert_has(last_event(&on.way),
               "\"params\":{\"level\":\"warning\",\"data\":\"a \\\"text\\\"\"}");
    (void)rig_ask(&on, "logging/setLevel", "\"level\":\"error\"");
    bay_server_log(self.server, "warning", "below now");
    loop_turn(on.loop, 0);
    assert_int_equal(count_events(&on, "notifications/message"), 1);
    rig_stop(&on);
}

static void log_messages_have_a_bound(void **state)
{
    (void)state;
    rig on;
    set self = new_set();
    bay_server_log(self.server, "error", "nobody is there yet");
    rig_start(&on, self.server);
    for (int i = 0; i < SERVER_MAX_LINES + 10; i++) {
        bay_server_log(self.server, "error", "again");
    }
    assert_int_equal(self.server->announcements.lines, SERVER_MAX_LINES);
    loop_turn(on.loop, 0);
    assert_int_equal(self.server->announcements.lines, 0);
    rig_stop(&on);
}

/* ---- from other threads */

enum { CROWD = 4, ROUNDS = 200 };

static void switch_about(void *argument)
{
    const set *self = argument;
    for (int i = 0; i < ROUNDS; i++) {
        switch_all(self, i % 2 == 0);
        bay_server_log(self->server, "error", "switched");
        bay_server_changed(self->server, BAY_KIND_SKILLS);
        bay_server_updated(self->server, "x:a");
    }
}

static void any_thread_may_switch(void **state)
{
    (void)state;
    rig on;
    net_thread crowd[CROWD];
    set self = new_set();
    rig_start(&on, self.server);
    rig_client(&on, "2026-07-28");
    for (int i = 0; i < CROWD; i++) {
        assert_int_equal(net_thread_start(&crowd[i], switch_about, &self), BAY_OK);
    }
    for (int i = 0; i < ROUNDS; i++) {
        static const char *const methods[] = {"tools/list", "resources/list", "prompts/list"};
        assert_has(rig_ask(&on, methods[i % 3], ""), "\"result\":{");
        loop_turn(on.loop, 0);
        wire_fini(&on.way); /* room for the next events */
        on.way.events = 0;
    }
    for (int i = 0; i < CROWD; i++) {
        net_thread_join(&crowd[i]);
    }
    switch_all(&self, true);
    loop_turn(on.loop, 0);
    expect_on(&on);
    rig_stop(&on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_fine),
        cmocka_unit_test(what_is_off_is_neither_listed_nor_found),
        cmocka_unit_test(clients_hear_of_it_once),
        cmocka_unit_test(the_first_and_the_last_subscriber_are_told),
        cmocka_unit_test(log_messages_reach_whoever_wants_them),
        cmocka_unit_test(log_messages_have_a_bound),
        cmocka_unit_test(any_thread_may_switch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a server says to one client, across loops: from the owner of its process to the proxy by which
 * the client's calls come, and back. */
#include "proxy_stage.h"

static const void *home_of(const stage *self)
{
    return self->fake->held[0]->affinity.home;
}

static void tell_client(stage *self)
{
    upstream_client_message what = {
        .identity = STR("me"), .method = MCP_N_RESOURCE_UPDATED, .uri = STR("a:b")};
    upstream_tell_client(self->owner, home_of(self), &what);
}

static void log_to_client(stage *self)
{
    arena memory;
    json_doc doc;
    arena_init(&memory, 1 << 16);
    assert_int_equal(json_parse(&doc, STR("{\"level\":\"info\"}"), NULL, &memory, NULL), BAY_OK);
    upstream_client_message what = {
        .identity = STR("me"), .method = MCP_N_MESSAGE, .params = json_root(&doc)};
    upstream_tell_client(self->owner, home_of(self), &what);
    arena_fini(&memory);
}

static void ask_client(stage *self)
{
    arena memory;
    json_doc doc;
    rpc_message request;
    rpc_fault fault;
    arena_init(&memory, 1 << 16);
    assert_int_equal(
        rpc_message_parse(&request, &doc,
                          STR("{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"roots/list\"}"), NULL,
                          &memory, &fault),
        BAY_OK);
    assert_true(upstream_ask_client(self->owner, home_of(self), STR("me"), 7, &request));
    assert_false(upstream_ask_client(self->owner, self, STR("me"), 7, &request)); /* has left */
    arena_fini(&memory);
}

static void take_back(stage *self)
{
    upstream_take_back_from_client(self->owner, home_of(self), 7);
}

static void what_a_server_says_to_one_client_crosses(void **state)
{
    (void)state;
    stage self;
    probe one;
    open_fake(&self);
    probe_init(&one, "echo");
    probe_send(&one, self.proxy);
    there(&self, nothing);
    there(&self, tell_client);
    turn_until(self.here, strcmp(self.client, "me notifications/resources/updated a:b") == 0);
    there(&self, log_to_client);
    turn_until(self.here,
               strcmp(self.client, "me notifications/message {\"level\":\"info\"}") == 0);
    self.has_client = true;
    there(&self, ask_client);
    turn_until(self.here, strcmp(self.client, "me 7 \"q\" roots/list") == 0);
    there(&self, nothing);
    assert_string_equal(self.fake->answer, "7 {\"a\":1}0 ");
    there(&self, take_back);
    turn_until(self.here, strcmp(self.client, "7") == 0);
    self.has_client = false; /* nobody is there: the server is told */
    there(&self, ask_client);
    there(&self, nothing);
    assert_string_equal(self.fake->answer, "7 -32601 the client cannot be asked");
    there(&self, answer_good);
    turn_until(self.here, one.dones == 1);
    probe_fini(&one);
    close_stage(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_server_says_to_one_client_crosses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

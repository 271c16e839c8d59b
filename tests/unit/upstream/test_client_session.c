/* What a server says, outside of any call, to the client that one of its sessions serves alone:
 * with real processes, and what becomes of it at the bounds and ends. */
#include "asking_client.h"

#include <signal.h>

#include "asking_server.h"
#include "base/err.h"

/* Whoever is behind the upstream, with what it heard of one client. */
typedef struct desk {
    stage stage;
    upstream_events events;
    char identity[80];
    char told[600]; /* each message: its method, and what it is about */
    int tells;
    int changes; /* of the tools, to its client or to everybody */
    int asked;
    int withdrawn;
    int opened; /* sessions of a client's own */
    int over;
    uint64_t number;
    bool is_holding; /* does not answer at once */
    bool is_deaf;    /* has no such client */
} desk;

static void desk_told(void *user, upstream *from, const upstream_client_message *what)
{
    desk *self = user;
    (void)from;
    bay_str method = mcp_method_of(what->method)->text;
    size_t len = strlen(self->told);
    (void)snprintf(self->identity, sizeof(self->identity), "%.*s", BAY_STR(what->identity));
    (void)snprintf(self->told + len, sizeof(self->told) - len, "%.*s %.*s%.*s;", BAY_STR(method),
                   BAY_STR(what->uri), BAY_STR(json_raw(what->params)));
    self->tells++;
    self->changes += what->method == MCP_N_TOOLS_CHANGED;
}

static void desk_own_session(void *user, upstream *from, bay_str identity, uint64_t number,
                             bool is_open)
{
    desk *self = user;
    (void)from;
    (void)snprintf(self->identity, sizeof(self->identity), "%.*s", BAY_STR(identity));
    assert_true(number > 0);
    self->opened += is_open;
    self->over += !is_open;
}

static void desk_changed(void *user, upstream *from, mcp_change change)
{
    (void)from;
    (void)change;
    ((desk *)user)->changes++;
}

static void desk_updated(void *user, upstream *from, bay_str uri)
{
    (void)user;
    (void)from;
    assert_true(str_eq(uri, STR("a:b")));
}

static bool desk_asked(void *user, upstream *from, bay_str identity, uint64_t number,
                       const rpc_message *request)
{
    desk *self = user;
    (void)request;
    if (self->is_deaf) {
        return false;
    }
    (void)snprintf(self->identity, sizeof(self->identity), "%.*s", BAY_STR(identity));
    self->asked++;
    self->number = number;
    if (!self->is_holding) {
        upstream_client_answer(from, number, STR("{\"action\":\"accept\"}"), 0, (bay_str){0});
    }
    return true;
}

static void desk_withdrawn(void *user, upstream *from, uint64_t number)
{
    desk *self = user;
    (void)from;
    assert_int_equal(number, self->number);
    self->withdrawn++;
}

static void open_desk(desk *self, const char *more)
{
    char program[300];
    char text[1000];
    stage *on = &self->stage;
    *self = (desk){.stage.descriptors = open_descriptors(), .events = fake_events};
    self->events.changed = desk_changed;
    self->events.updated = desk_updated;
    self->events.own_session = desk_own_session;
    self->events.client_told = desk_told;
    self->events.client_asked = desk_asked;
    self->events.client_withdrawn = desk_withdrawn;
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
    assert_true(len > 0);
    program[len] = '\0';
    (void)snprintf(text, sizeof(text),
                   "{'timeouts':{'terminate':'5s'},'mcpServers':{'s':{'command':'%s','args':["
                   "'serve'],'protocol':'legacy'%s}}}",
                   program, more);
    char *quoted = testing_quotes(text);
    on->config = testing_config(quoted);
    mem_free(quoted);
    assert_int_equal(loop_new(&on->loop), BAY_OK);
    upstream_options options = {.loop = on->loop,
                                .config = on->config,
                                .server = &on->config->servers[0],
                                .events = &self->events,
                                .user = self};
    assert_int_equal(upstream_new(&options, &on->server), BAY_OK);
}

static void close_desk(desk *self)
{
    stage *on = &self->stage;
    upstream_close(on->server, closed, &on->is_closed);
    turn_until(on->loop, on->is_closed);
    upstream_free(on->server);
    loop_free(on->loop);
    config_free(on->config);
    assert_int_equal(count_children(), 0);
    assert_int_equal(open_descriptors(), on->descriptors);
}

static void what_is_told_outside_of_calls_reaches_its_client(void **state)
{
    (void)state;
    desk self;
    client one = {0};
    client other = {0};
    open_desk(&self, "");
    client_call(&one, &self.stage, "tell", FORM, "a");
    turn_until(self.stage.loop, self.tells == 3);
    assert_string_equal(self.identity, "a");
    assert_non_null(strstr(self.told, "notifications/message {\"level\":\"info\",\"data\":1};"));
    assert_non_null(strstr(self.told, "notifications/tools/list_changed ;"));
    assert_non_null(strstr(self.told, "notifications/resources/updated a:b;"));
    /* what a lent process tells between its calls is nobody's */
    other.is_stateless = true;
    client_call(&other, &self.stage, "tell", FORM, "p");
    client_call(&other, &self.stage, "say", FORM, "p");
    client_call(&one, &self.stage, "say", FORM, "a");
    assert_int_equal(self.tells, 3);
    close_desk(&self);
}

static void state_and_process_stay_with_their_client(void **state)
{
    (void)state;
    desk self;
    client one = {0};
    client two = {0};
    open_desk(&self, "");
    client_call(&one, &self.stage, "say", FORM, "a");
    int pid = pid_of(&one);
    client_send(&two, &self.stage, "hang", FORM, "a");
    client_call(&one, &self.stage, "say", FORM, "a"); /* beside it, in the same process */
    assert_int_equal(pid_of(&one), pid);
    upstream_call_cancel(&two.probe.call, STR("no more"));
    probe_fini(&two.probe);
    client_call(&one, &self.stage, "say", FORM, "a"); /* a cancel does not end it */
    assert_int_equal(pid_of(&one), pid);
    client_call(&two, &self.stage, "say", FORM, "b");
    assert_int_not_equal(pid_of(&two), pid);
    close_desk(&self);
}

static void a_question_outside_of_calls_goes_to_its_client(void **state)
{
    (void)state;
    desk self;
    client one = {0};
    client two = {0};
    open_desk(&self, "");
    client_call(&one, &self.stage, "ask_late", FORM, "a");
    turn_until(self.stage.loop, self.asked == 1);
    assert_string_equal(self.identity, "a");
    client_call(&one, &self.stage, "late", FORM, "a"); /* what it was answered */
    assert_says(&one, "\"action\":\"accept\"");
    assert_int_equal(one.asked, 0);
    /* two calls are open: either may be the one that it is about */
    client_send(&one, &self.stage, "ask_all", FORM, "a");
    client_send(&two, &self.stage, "ask_all", FORM, "a");
    client_wait(&two, &self.stage);
    client_wait(&one, &self.stage);
    assert_int_equal(self.asked, 2);
    assert_says(&one, "\"action\":\"accept\"");
    /* one call is open: it is its question, on its stream */
    client_call(&one, &self.stage, "ask", FORM, "a");
    assert_int_equal(one.asked, 1);
    assert_int_equal(self.asked, 2);
    close_desk(&self);
}

static void a_client_that_cannot_be_asked_is_not_waited_for(void **state)
{
    (void)state;
    desk self;
    client one = {0};
    open_desk(&self, "");
    self.is_deaf = true;
    client_call(&one, &self.stage, "ask_late", FORM, "a");
    client_call(&one, &self.stage, "late", FORM, "a");
    assert_says(&one, "\"code\":-32601");
    close_desk(&self);
}

static void a_question_ends_with_its_process(void **state)
{
    (void)state;
    desk self;
    client one = {0};
    open_desk(&self, ",'restart':{'minDelay':'10ms','maxDelay':'20ms','attempts':0}");
    self.is_holding = true;
    client_call(&one, &self.stage, "ask_late", FORM, "a");
    turn_until(self.stage.loop, self.asked == 1);
    assert_int_equal(kill(pid_of(&one), SIGKILL), 0);
    turn_until(self.stage.loop, self.withdrawn == 1);
    upstream_client_answer(self.stage.server, self.number, STR("{}"), 0, (bay_str){0}); /* late */
    client_call(&one, &self.stage, "withdraw_late", FORM, "a"); /* the server takes it back */
    turn_until(self.stage.loop, self.asked == 2 && self.withdrawn == 2);
    upstream_client_answer(self.stage.server, self.number + 1, STR("{}"), 0, (bay_str){0});
    client_call(&one, &self.stage, "ask_late", FORM, "a");
    turn_until(self.stage.loop, self.asked == 3);
    close_desk(&self); /* with a question open */
}

/* A client without a session is asked during its calls alone: of two, first the older. */
static void a_question_moves_to_another_call(void **state)
{
    (void)state;
    desk self;
    client one = {.is_stateless = true, .is_holding = true};
    client two = {.is_stateless = true};
    open_desk(&self, ",'share':'session'");
    client_send(&one, &self.stage, "hang", FORM, "p");
    client_send(&two, &self.stage, "ask", FORM, "p");
    turn_until(self.stage.loop, one.asked == 1);
    upstream_call_cancel(&one.probe.call, STR("no more"));
    probe_fini(&one.probe);
    client_wait(&two, &self.stage);
    assert_int_equal(two.asked, 1);
    assert_says(&two, "\"action\":\"accept\"");
    assert_int_equal(self.asked, 0);
    close_desk(&self);
}

/* A conversation has a process of its own, and no session to be asked or told in. */
static void a_conversation_is_asked_during_its_calls(void **state)
{
    (void)state;
    desk self;
    client one = {.is_named = true, .is_holding = true};
    client two = {.is_named = true};
    open_desk(&self, "");
    client_send(&one, &self.stage, "hang", FORM, "p t1");
    client_send(&two, &self.stage, "ask", FORM, "p t1");
    turn_until(self.stage.loop, one.asked == 1);
    upstream_call_cancel(&one.probe.call, STR("no more"));
    probe_fini(&one.probe);
    client_wait(&two, &self.stage);
    assert_says(&two, "\"action\":\"accept\"");
    int pid = pid_of(&two);
    client_call(&two, &self.stage, "say", FORM, "p t1");
    assert_int_equal(pid_of(&two), pid);
    client_call(&two, &self.stage, "ask_late", FORM, "p t1");
    client_call(&two, &self.stage, "late", FORM, "p t1");
    assert_says(&two, "\"code\":-32601");
    assert_int_equal(self.asked, 0);
    client_call(&two, &self.stage, "say", FORM, "p t2");
    assert_int_not_equal(pid_of(&two), pid);
    close_desk(&self);
}

static void the_only_client_has_the_main_session(void **state)
{
    (void)state;
    desk self;
    client one = {0};
    open_desk(&self, "");
    upstream_set_client(self.stage.server, FORM);
    client_call(&one, &self.stage, "tell", FORM, "a");
    assert_int_equal(pid_of(&one), upstream_process_id(self.stage.server));
    assert_says(&one, "\"caps\":{\"elicitation\":{\"form\":{}}}");
    /* lists and resources are everybody's there */
    turn_until(self.stage.loop, self.tells == 1 && self.changes == 1);
    assert_string_equal(self.identity, "");
    client_call(&one, &self.stage, "ask_late", FORM, "a");
    turn_until(self.stage.loop, self.asked == 1);
    client_call(&one, &self.stage, "say", SAMPLING, "a"); /* it says something else now */
    assert_int_not_equal(pid_of(&one), upstream_process_id(self.stage.server));
    assert_says(&one, "\"caps\":{\"sampling\":{}}");
    close_desk(&self);
}

/* Its client hears of it before it hears anything else over it, and when it is over. */
static void a_session_of_its_own_is_introduced(void **state)
{
    (void)state;
    desk self;
    client one = {0};
    open_desk(&self, "");
    client_call(&one, &self.stage, "say", 0, "b"); /* over the one that all share */
    assert_int_equal(self.opened, 0);
    upstream_subscribe(self.stage.server, STR("a"), STR("a:b"), true);
    upstream_subscribe(self.stage.server, STR("a"), STR("a:b"), true);
    client_call(&one, &self.stage, "say", FORM, "a");
    assert_int_equal(self.opened, 1);
    assert_string_equal(self.identity, "a");
    assert_true(upstream_subscriptions_has(local_part(&self.stage), STR("a")));
    upstream_subscribe(self.stage.server, STR("a"), STR("a:b"), false);
    assert_false(upstream_subscriptions_has(local_part(&self.stage), STR("a")));
    upstream_subscribe(self.stage.server, STR("a"), STR("a:c"), true);
    upstream_identity_gone(self.stage.server, STR("a"));
    turn_until(self.stage.loop, self.over == 1);
    assert_false(upstream_subscriptions_has(local_part(&self.stage), STR("a")));
    assert_int_equal(self.opened, 1);
    close_desk(&self);
}

static void a_flood_of_log_messages_is_cut(void **state)
{
    (void)state;
    desk self;
    client one = {0};
    open_desk(&self, "");
    client_call(&one, &self.stage, "flood", FORM, "a");
    turn_until(self.stage.loop, self.changes == 1); /* told last */
    assert_true(self.tells >= UPSTREAM_CLIENT_LOGS && self.tells < 5000);
    close_desk(&self);
}

static int warm_up(void **state)
{
    (void)state;
    loop *made = NULL;
    bay_err err = loop_new(&made);
    loop_free(made);
    return err;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "serve") == 0) {
        return asking_server_run();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told_outside_of_calls_reaches_its_client),
        cmocka_unit_test(state_and_process_stay_with_their_client),
        cmocka_unit_test(a_question_outside_of_calls_goes_to_its_client),
        cmocka_unit_test(a_client_that_cannot_be_asked_is_not_waited_for),
        cmocka_unit_test(a_question_ends_with_its_process),
        cmocka_unit_test(a_question_moves_to_another_call),
        cmocka_unit_test(a_conversation_is_asked_during_its_calls),
        cmocka_unit_test(the_only_client_has_the_main_session),
        cmocka_unit_test(a_session_of_its_own_is_introduced),
        cmocka_unit_test(a_flood_of_log_messages_is_cut),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}

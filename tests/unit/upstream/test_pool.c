/* The sessions of one server behind the owner of it, with real processes: who shares one, who gets
 * which question, what happens at the bounds and when they die. */
#include "asking_client.h"

#include <signal.h>

#include "asking_server.h"
#include "base/err.h"

#define RULES "'minDelay':'10ms','maxDelay':'20ms'"
#define QUICK ",'restart':{" RULES "}"

static void open_stage(stage *self, const char *more)
{
    char program[300];
    char text[1000];
    *self = (stage){.descriptors = open_descriptors()};
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
    assert_true(len > 0);
    program[len] = '\0';
    (void)snprintf(text, sizeof(text),
                   "{'timeouts':{'terminate':'5s'},'mcpServers':{'s':{'command':'%s','args':["
                   "'serve'],'protocol':'legacy'%s}}}",
                   program, more);
    char *quoted = testing_quotes(text);
    self->config = testing_config(quoted);
    mem_free(quoted);
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    upstream_options options = {.loop = self->loop,
                                .config = self->config,
                                .server = &self->config->servers[0],
                                .events = &fake_events};
    assert_int_equal(upstream_new(&options, &self->server), BAY_OK);
}

static void drop_stage(stage *self)
{
    upstream_free(self->server);
    loop_free(self->loop);
    config_free(self->config);
    assert_int_equal(count_children(), 0);
    assert_int_equal(open_descriptors(), self->descriptors);
}

static void close_stage(stage *self)
{
    upstream_close(self->server, closed, &self->is_closed);
    turn_until(self->loop, self->is_closed);
    assert_int_equal(count_children(), 0);
    drop_stage(self);
}

/* ---- who shares ------------------------------------------------------------------------------ */

static void who_cannot_be_asked_shares_the_main_one(void **state)
{
    (void)state;
    stage self;
    client one = {0};
    client two = {0};
    open_stage(&self, QUICK);
    client_call(&one, &self, "say", 0, "a");
    client_call(&two, &self, "say", 0, "b");
    assert_int_equal(pid_of(&one), pid_of(&two));
    assert_int_equal(pid_of(&one), upstream_process_id(self.server));
    /* it declares everything, so that a server that shows tools by capability shows them all */
    assert_says(&one, "\"elicitation\":{\"form\":{},\"url\":{}}");
    assert_says(&one, "\"sampling\":{");
    assert_says(&one, "\"roots\":{");
    assert_int_equal(local_part(&self)->session_count, 0);
    client_call(&one, &self, "ask", 0, "a"); /* refused by whoever routes it */
    assert_int_equal(one.asked, 1);
    close_stage(&self);
}

static void links_declare_what_their_client_can_be_asked(void **state)
{
    (void)state;
    stage self;
    client one = {.is_stateless = true};
    open_stage(&self, QUICK);
    client_call(&one, &self, "ask", FORM, "a");
    assert_int_equal(one.asked, 1);
    assert_says(&one, "\"caps\":{\"elicitation\":{\"form\":{}}}");
    assert_says(&one, "\"said\":{\"action\":\"accept\"}");
    int pid = pid_of(&one);
    assert_int_not_equal(pid, upstream_process_id(self.server));
    client_call(&one, &self, "say", FORM, "b"); /* another client, of the same kind */
    assert_int_equal(pid_of(&one), pid);
    client_call(&one, &self, "say", SAMPLING, "b");
    assert_int_not_equal(pid_of(&one), pid);
    assert_says(&one, "\"caps\":{\"sampling\":{}}");
    assert_int_equal(local_part(&self)->session_count, 2);
    close_stage(&self);
}

static void a_link_is_lent_to_one_call_at_a_time(void **state)
{
    (void)state;
    stage self;
    client one = {.is_holding = true, .is_stateless = true};
    client two = {.is_holding = true, .is_stateless = true};
    open_stage(&self, QUICK);
    client_send(&one, &self, "ask", FORM, "a");
    client_send(&two, &self, "ask", FORM, "b");
    turn_until(self.loop, one.asked == 1 && two.asked == 1);
    assert_int_equal(local_part(&self)->session_count, 2);
    client_answer(&two, "{\"action\":\"decline\"}");
    client_answer(&one, "{\"action\":\"accept\"}");
    client_answer(&one, "{\"action\":\"twice\"}"); /* harmless */
    client_wait(&one, &self);
    client_wait(&two, &self);
    assert_says(&one, "accept");
    assert_says(&two, "decline");
    assert_int_not_equal(pid_of(&one), pid_of(&two));
    close_stage(&self);
}

static void roots_are_told_to_one_clients_sessions_only(void **state)
{
    (void)state;
    stage self;
    client one = {0};
    client two = {0};
    open_stage(&self, QUICK);
    client_call(&one, &self, "roots", ROOTS, "a");
    client_call(&two, &self, "roots", ROOTS, "b");
    assert_int_equal(one.asked, 1);
    assert_int_not_equal(pid_of(&one), pid_of(&two));
    upstream_tell(self.server, STR("a"), STR("notifications/roots/list_changed"), (bay_str){0});
    client_call(&one, &self, "told", ROOTS, "a");
    client_call(&two, &self, "told", ROOTS, "b");
    assert_says(&one, "\"told\":1");
    assert_says(&two, "\"told\":0");
    upstream_identity_gone(self.server, STR("a"));
    turn_until(self.loop, local_part(&self)->session_count == 1);
    client_call(&two, &self, "told", ROOTS, "b"); /* the other's is left alone */
    client_call(&one, &self, "told", ROOTS, "a"); /* the number may come again: a fresh one */
    assert_says(&one, "\"told\":0");
    close_stage(&self);
}

static void roots_of_a_stateless_client_are_told_for_one_call(void **state)
{
    (void)state;
    stage self;
    client one = {.is_stateless = true};
    client two = {.is_stateless = true};
    open_stage(&self, QUICK);
    client_call(&one, &self, "roots", ROOTS, "a");
    client_call(&two, &self, "roots", ROOTS, "a"); /* of one principal, and yet another client */
    assert_int_equal(one.asked, 1);
    assert_int_equal(two.asked, 1);
    assert_int_not_equal(pid_of(&one), pid_of(&two));
    client_call(&one, &self, "say", ROOTS, "a");
    client_call(&two, &self, "say", ROOTS, "a"); /* it was told nothing: good for the next */
    assert_int_equal(pid_of(&one), pid_of(&two));
    close_stage(&self);
}

static void a_session_that_is_in_use_ends_after_its_last_call(void **state)
{
    (void)state;
    stage self;
    client one = {.is_holding = true};
    open_stage(&self, QUICK);
    client_send(&one, &self, "roots", ROOTS, "a");
    turn_until(self.loop, one.asked == 1);
    upstream_identity_gone(self.server, STR("a"));
    loop_turn(self.loop, 0);
    client_answer(&one, "{\"roots\":[]}");
    client_wait(&one, &self);
    assert_good(&one.probe);
    turn_until(self.loop, local_part(&self)->session_count == 0);
    close_stage(&self);
}

static void share_session_pins_a_client_to_its_own(void **state)
{
    (void)state;
    stage self;
    client one = {0};
    client two = {0};
    client three = {.is_holding = true};
    open_stage(&self, ",'share':'session'");
    client_call(&one, &self, "say", FORM, "a");
    client_call(&two, &self, "say", FORM, "b");
    assert_int_not_equal(pid_of(&one), pid_of(&two));
    int pid = pid_of(&one);
    client_send(&three, &self, "ask", FORM, "a"); /* shares it with the client's other calls */
    client_send(&one, &self, "say", FORM, "a");
    turn_until(self.loop, three.asked == 1);
    client_wait(&one, &self);
    assert_int_equal(pid_of(&one), pid);
    client_answer(&three, "{\"action\":\"accept\"}");
    client_wait(&three, &self);
    assert_int_equal(pid_of(&three), pid);
    client_call(&one, &self, "say", 0, "c"); /* also who cannot be asked */
    assert_int_not_equal(pid_of(&one), upstream_process_id(self.server));
    assert_int_equal(local_part(&self)->session_count, 3);
    upstream_identity_gone(self.server, STR("a"));
    turn_until(self.loop, local_part(&self)->session_count == 2);
    close_stage(&self);
}

static void share_always_refuses_what_may_be_anybodys(void **state)
{
    (void)state;
    stage self;
    client one = {0};
    client two = {0};
    open_stage(&self, ",'share':'always'");
    client_call(&one, &self, "ask", FORM, "a"); /* the only call: it is its question */
    assert_int_equal(one.asked, 1);
    assert_int_equal(pid_of(&one), upstream_process_id(self.server));
    client_send(&one, &self, "ask_all", FORM, "a");
    client_send(&two, &self, "ask_all", FORM, "b");
    client_wait(&one, &self);
    client_wait(&two, &self);
    assert_int_equal(one.asked + two.asked, 0);
    assert_says(&one, "\"code\":-32600");
    assert_says(&one, "the request names none of them");
    assert_int_equal(upstream_count_of(self.server).refused_questions, 1);
    assert_int_equal(local_part(&self)->session_count, 0);
    close_stage(&self);
}

static void a_list_that_is_read_meanwhile_makes_a_question_nobodys_else(void **state)
{
    (void)state;
    stage self;
    client one = {0};
    client lists = {0};
    open_stage(&self, ",'share':'always'");
    client_call(&one, &self, "say", FORM, "a");
    client_send(&one, &self, "ask_all", FORM, "a"); /* held over there */
    client_prepare(&lists, "ask_all", 0, "");
    lists.probe.call.affinity.is_own = true;
    probe_send(&lists.probe, self.server);
    client_wait(&one, &self);
    client_wait(&lists, &self);
    assert_int_equal(one.asked, 1);
    assert_int_equal(lists.asked, 0);
    assert_int_equal(upstream_count_of(self.server).refused_questions, 0);
    close_stage(&self);
}

/* It asks for roots as soon as it is up, while its lists are read: that is no question of theirs.
 */
static void a_question_that_no_call_can_be_asked_is_nobodys(void **state)
{
    (void)state;
    stage self;
    client one = {0};
    client two = {0};
    open_stage(&self, QUICK);
    client_send(&one, &self, "ask_all", 0, "a");
    client_send(&two, &self, "ask_all", 0, "b");
    client_wait(&one, &self);
    client_wait(&two, &self);
    assert_int_equal(one.asked + two.asked, 0);
    assert_says(&one, "\"code\":-32601");
    assert_int_equal(upstream_count_of(self.server).refused_questions, 0);
    close_stage(&self);
}

/* Also while only one call is open: the server may ask for one that was given up a moment ago. */
static void share_always_asks_nobody_for_a_call_that_was_given_up(void **state)
{
    (void)state;
    stage self;
    client one = {0};
    client two = {0};
    open_stage(&self, ",'share':'always'");
    client_call(&two, &self, "say", FORM, "b");
    client_send(&one, &self, "ask_all", FORM, "a"); /* held over there */
    upstream_call_cancel(&one.probe.call, STR("no more"));
    probe_fini(&one.probe);
    client_call(&two, &self, "ask_all", FORM, "b"); /* now it asks for the first */
    client_call(&two, &self, "say", FORM, "b");
    assert_int_equal(one.asked + two.asked, 0);
    assert_int_equal(upstream_count_of(self.server).refused_questions, 1);
    close_stage(&self);
}

/* ---- questions ------------------------------------------------------------------------------- */

static void a_question_that_is_taken_back(void **state)
{
    (void)state;
    stage self;
    client one = {.is_holding = true};
    open_stage(&self, QUICK);
    client_call(&one, &self, "withdraw", FORM, "a");
    assert_good(&one.probe);
    assert_int_equal(one.asked, 1);
    assert_int_equal(one.withdrawn, 1);
    client_answer(&one, "{}"); /* harmless */
    close_stage(&self);
}

static void a_question_after_its_call_is_nobodys(void **state)
{
    (void)state;
    stage self;
    client one = {0};
    client two = {0};
    open_stage(&self, QUICK);
    client_call(&one, &self, "ask_late", FORM, "a");
    assert_int_equal(one.asked, 0);
    client_call(&two, &self, "say", FORM, "b"); /* what it asked was refused meanwhile */
    assert_int_equal(two.asked, 0);
    close_stage(&self);
}

static void a_cancelled_call_gives_its_questions_back(void **state)
{
    (void)state;
    stage self;
    client one = {.is_holding = true};
    client two = {0};
    open_stage(&self, QUICK);
    client_send(&one, &self, "ask", FORM, "a");
    turn_until(self.loop, one.asked == 1);
    upstream_call_cancel(&one.probe.call, STR("no more"));
    probe_fini(&one.probe);
    client_answer(&one, "{}"); /* harmless */
    client_call(&two, &self, "say", FORM, "a");
    assert_good(&two.probe);
    assert_int_equal(local_part(&self)->session_count, 1);
    close_stage(&self);
}

static void what_a_cancelled_call_asks_later_reaches_nobody_else(void **state)
{
    (void)state;
    stage self;
    client one = {.is_stateless = true};
    client two = {.is_stateless = true};
    open_stage(&self, QUICK ",'timeout':'2s'");     /* the last call hangs over there */
    client_send(&one, &self, "ask_all", FORM, "a"); /* held over there */
    turn_until(self.loop, upstream_state_of(self.server) == UPSTREAM_READY &&
                              local_part(&self)->session_count == 1);
    client_call(&two, &self, "say", SAMPLING, "b"); /* by now the first is there, too */
    upstream_call_cancel(&one.probe.call, STR("no more"));
    probe_fini(&one.probe);
    client_call(&two, &self, "ask_all", FORM, "b");
    assert_int_equal(two.asked, 0);
    close_stage(&self);
}

/* The next call of its principal may be another client's, and the server may still ask. */
static void a_call_that_a_stateless_client_cancelled_keeps_its_process(void **state)
{
    (void)state;
    stage self;
    client one = {.is_stateless = true};
    client two = {.is_stateless = true};
    open_stage(&self, QUICK);
    client_call(&one, &self, "say", FORM, "");
    int pid = pid_of(&one);
    client_send(&one, &self, "hang", FORM, "");
    upstream_call_cancel(&one.probe.call, STR("no more"));
    probe_fini(&one.probe);
    client_call(&two, &self, "say", FORM, "");
    assert_good(&two.probe);
    assert_int_not_equal(pid_of(&two), pid);
    close_stage(&self);
}

static void a_lent_process_that_hangs_is_ended(void **state)
{
    (void)state;
    stage self;
    client one = {.is_stateless = true};
    open_stage(&self, ",'timeout':'400ms'");
    client_call(&one, &self, "hang", FORM, "a");
    assert_failed(&one.probe, BAY_ERR_TIMEOUT, true, "");
    turn_until(self.loop, local_part(&self)->session_count == 0);
    assert_int_equal(upstream_state_of(self.server), UPSTREAM_READY);
    close_stage(&self);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static void further_calls_wait_for_a_link(void **state)
{
    (void)state;
    enum { CALLS = 12 };
    stage self;
    static client calls[CALLS];
    memset(calls, 0, sizeof(calls));
    open_stage(&self, ",'processes':2");
    for (int i = 0; i < CALLS; i++) {
        calls[i].is_stateless = true;
        client_send(&calls[i], &self, "ask", FORM, i % 2 == 0 ? "a" : "b");
    }
    for (int i = 0; i < CALLS; i++) {
        client_wait(&calls[i], &self);
        assert_good(&calls[i].probe);
        assert_int_equal(calls[i].asked, 1);
    }
    assert_int_equal(local_part(&self)->session_count, 2);
    assert_int_equal(local_part(&self)->queued_count, 0);
    close_stage(&self);
}

static void the_least_recently_used_makes_room(void **state)
{
    (void)state;
    stage self;
    client one = {0};
    open_stage(&self, ",'processes':2");
    client_call(&one, &self, "say", FORM, "a");
    int first = pid_of(&one);
    client_call(&one, &self, "say", SAMPLING, "a");
    int second = pid_of(&one);
    client_call(&one, &self, "say", FORM, "a");
    assert_int_equal(pid_of(&one), first);
    client_call(&one, &self, "say", FORM | SAMPLING, "a");
    assert_says(&one, "\"sampling\":{}");
    assert_int_equal(local_part(&self)->session_count, 2);
    client_call(&one, &self, "say", FORM, "a");
    assert_int_equal(pid_of(&one), first); /* the other one went */
    client_call(&one, &self, "say", SAMPLING, "a");
    assert_int_not_equal(pid_of(&one), second);
    close_stage(&self);
}

static void who_waits_too_long_is_told(void **state)
{
    (void)state;
    stage self;
    client one = {.is_holding = true};
    client two = {0};
    open_stage(&self, ",'processes':1,'timeout':'200ms'");
    client_send(&one, &self, "ask", FORM, "a");
    turn_until(self.loop, one.asked == 1); /* a question is open: it may take its time */
    client_call(&two, &self, "say", FORM, "b");
    assert_failed(&two.probe, BAY_ERR_BUSY, false, "all sessions of this server are in use");
    client_answer(&one, "{}");
    client_wait(&one, &self);
    assert_good(&one.probe);
    close_stage(&self);
}

static void one_clients_many_calls_do_not_starve_another(void **state)
{
    (void)state;
    enum { MANY = 200 };
    stage self;
    static client many[MANY];
    client other = {.is_stateless = true};
    client blocks = {.is_holding = true, .is_stateless = true};
    memset(many, 0, sizeof(many));
    open_stage(&self, ",'processes':1");
    client_send(&blocks, &self, "ask", FORM, "a");
    turn_until(self.loop, blocks.asked == 1);
    for (int i = 0; i < MANY; i++) {
        many[i].is_stateless = true;
        client_send(&many[i], &self, "say", FORM, "a");
    }
    client_send(&other, &self, "say", FORM, "b");
    client_answer(&blocks, "{}");
    client_wait(&other, &self);
    int ahead = 0;
    for (int i = 0; i < MANY; i++) {
        ahead += many[i].probe.dones;
    }
    assert_true(ahead <= 2);
    for (int i = 0; i < MANY; i++) {
        client_wait(&many[i], &self);
        assert_good(&many[i].probe);
    }
    client_wait(&blocks, &self);
    close_stage(&self);
}

static void the_queue_has_its_bound(void **state)
{
    (void)state;
    enum { ALL = UPSTREAM_MAX_WAITING + 2 };
    stage self;
    client *calls = calloc(ALL, sizeof(*calls));
    assert_non_null(calls);
    open_stage(&self, ",'processes':1");
    calls[0].is_stateless = true;
    client_send(&calls[0], &self, "hang", FORM, "a");
    turn_until(self.loop, local_part(&self)->session_count == 1);
    for (int i = 1; i < ALL; i++) {
        calls[i].is_stateless = true;
        client_send(&calls[i], &self, "say", FORM, "a");
    }
    assert_failed(&calls[ALL - 1].probe, BAY_ERR_BUSY, false, "too many calls wait");
    for (int i = 1; i < ALL - 1; i += 2) {
        upstream_call_cancel(&calls[i].probe.call, STR("no more"));
    }
    drop_stage(&self);
    for (int i = 0; i < ALL; i++) {
        assert_int_equal(calls[i].probe.dones, i % 2 == 0 || i == ALL - 1 ? 1 : 0);
        probe_fini(&calls[i].probe);
    }
    free(calls);
}

static void links_stop_when_they_idle(void **state)
{
    (void)state;
    stage self;
    client one = {0};
    open_stage(&self, ",'idleStop':'30ms'");
    client_call(&one, &self, "say", FORM, "a");
    turn_until(self.loop, local_part(&self)->session_count == 0);
    turn_until(self.loop, upstream_state_of(self.server) == UPSTREAM_STOPPED);
    turn_until(self.loop, count_children() == 0);
    client_call(&one, &self, "say", FORM, "a"); /* what it speaks is known: no main one is needed */
    assert_good(&one.probe);
    assert_int_equal(upstream_state_of(self.server), UPSTREAM_STOPPED);
    close_stage(&self);
}

/* ---- death ----------------------------------------------------------------------------------- */

static void a_dead_link_ends_its_own_call_only(void **state)
{
    (void)state;
    stage self;
    client lives = {.is_holding = true};
    client dies = {0};
    client main = {0};
    open_stage(&self, QUICK);
    client_send(&lives, &self, "ask", FORM, "a");
    turn_until(self.loop, lives.asked == 1);
    client_call(&dies, &self, "exit", FORM, "b");
    assert_failed(&dies.probe, BAY_ERR_EXITED, true, "status 5");
    assert_int_equal(upstream_state_of(self.server), UPSTREAM_READY);
    client_call(&main, &self, "say", 0, "c");
    assert_good(&main.probe);
    client_answer(&lives, "{}");
    client_wait(&lives, &self);
    assert_good(&lives.probe);
    client_call(&dies, &self, "say", FORM, "b");
    assert_good(&dies.probe);
    close_stage(&self);
}

static void all_links_die_with_calls_under_way(void **state)
{
    (void)state;
    enum { CALLS = 6 };
    stage self;
    static client calls[CALLS];
    memset(calls, 0, sizeof(calls));
    open_stage(&self, ",'restart':{" RULES ",'attempts':0}");
    for (int i = 0; i < CALLS; i++) {
        calls[i].is_holding = calls[i].is_stateless = true;
        client_send(&calls[i], &self, "ask", i == 0 ? 0 : FORM, "a");
    }
    for (int i = 0; i < CALLS; i++) {
        turn_until(self.loop, calls[i].asked == 1);
    }
    LIST_EACH(link, &local_part(&self)->sessions)
    {
        int pid = mcp_link_process_id(CONTAINER_OF(link, upstream_session, link)->connection);
        assert_int_equal(kill(pid, SIGKILL), 0);
    }
    assert_int_equal(kill(upstream_process_id(self.server), SIGKILL), 0);
    for (int i = 0; i < CALLS; i++) {
        client_wait(&calls[i], &self);
        assert_failed(&calls[i].probe, BAY_ERR_EXITED, true, "killed by signal 9");
        client_answer(&calls[i], "{}"); /* harmless */
    }
    client_call(&calls[0], &self, "say", FORM, "a");
    assert_good(&calls[0].probe);
    close_stage(&self);
}

static void a_repeatable_call_is_tried_once_more(void **state)
{
    (void)state;
    stage self;
    client one = {.is_holding = true};
    open_stage(&self, ",'restart':{" RULES ",'attempts':0}");
    for (unsigned inputs = 0; inputs <= FORM; inputs += FORM) {
        client_call(&one, &self, "say", inputs, "a");
        int pid = pid_of(&one);
        one.is_holding = true;
        client_prepare(&one, "ask", inputs, "a");
        one.probe.call.is_repeatable = true;
        probe_send(&one.probe, self.server);
        turn_until(self.loop, one.asked == 1);
        assert_int_equal(kill(pid, SIGKILL), 0);
        turn_until(self.loop, one.asked == 2); /* asked anew, by another process */
        assert_int_equal(one.withdrawn, 1);
        client_answer(&one, "{\"action\":\"accept\"}");
        client_wait(&one, &self);
        assert_good(&one.probe);
        assert_int_not_equal(pid_of(&one), pid);

        client_prepare(&one, "exit", inputs, "a"); /* once more, and not twice */
        one.probe.call.is_repeatable = true;
        probe_send(&one.probe, self.server);
        client_wait(&one, &self);
        assert_failed(&one.probe, BAY_ERR_EXITED, true, "status 5");
    }
    close_stage(&self);
}

static void crashing_links_open_the_circuit(void **state)
{
    (void)state;
    stage self;
    client one = {0};
    open_stage(&self, ",'restart':{" RULES ",'attempts':3,"
                      "'coolOff':'1h'}");
    client_call(&one, &self, "say", 0, "a");
    for (int i = 0; i < 3; i++) {
        client_call(&one, &self, "exit", FORM, "a");
        assert_failed(&one.probe, BAY_ERR_EXITED, true, "status 5");
    }
    client_call(&one, &self, "say", FORM, "a"); /* no other is started … */
    assert_failed(&one.probe, BAY_ERR_CLOSED, false, "it crashed 3 times within 60 s");
    assert_says(&one, "tried again in 3600 s");
    client_call(&one, &self, "say", 0, "a"); /* … and the one that is up serves on */
    assert_good(&one.probe);
    client_call(&one, &self, "exit", 0, "a");
    assert_failed(&one.probe, BAY_ERR_EXITED, true, "status 5");
    turn_until(self.loop, upstream_state_of(self.server) == UPSTREAM_OPEN);
    assert_string_equal(upstream_state_text(upstream_state_of(self.server)), "open");
    client_call(&one, &self, "say", 0, "a");
    assert_failed(&one.probe, BAY_ERR_CLOSED, false, "tried again in");
    close_stage(&self);
}

/* Its second try would be an hour later. */
static void what_may_be_tried_again_does_not_wait_for_an_open_circuit(void **state)
{
    (void)state;
    static const unsigned inputs[] = {0, FORM};
    for (size_t i = 0; i < ARRAY_LEN(inputs); i++) {
        stage self;
        client one = {0};
        open_stage(&self, ",'restart':{" RULES ",'attempts':1,"
                          "'coolOff':'1h'}");
        client_call(&one, &self, "say", inputs[i], "a");
        client_prepare(&one, "exit", inputs[i], "a");
        one.probe.call.is_repeatable = true;
        probe_send(&one.probe, self.server);
        client_wait(&one, &self);
        assert_int_equal(one.probe.kind, MCP_OUTCOME_FAILED);
        assert_true(one.probe.was_sent);
        close_stage(&self);
    }
}

static void the_circuit_closes_when_the_trial_is_up(void **state)
{
    (void)state;
    stage self;
    client one = {0};
    open_stage(&self, ",'restart':{" RULES ",'attempts':1,"
                      "'coolOff':'50ms'}");
    client_call(&one, &self, "exit", 0, "a");
    assert_failed(&one.probe, BAY_ERR_EXITED, true, "status 5");
    turn_until(self.loop, upstream_state_of(self.server) == UPSTREAM_OPEN);
    turn_until(self.loop, upstream_state_of(self.server) == UPSTREAM_READY);
    assert_int_equal(local_part(&self)->circuit.state, CIRCUIT_CLOSED);
    client_call(&one, &self, "say", 0, "a");
    assert_good(&one.probe);
    close_stage(&self);
}

/* It says nothing of the server that nobody waited for its start. */
static void a_trial_that_is_not_waited_for_is_another_ones(void **state)
{
    (void)state;
    stage self;
    client one = {0};
    open_stage(&self, ",'restart':{" RULES ",'attempts':1,"
                      "'coolOff':'50ms'}");
    client_call(&one, &self, "say", 0, "a");
    client_call(&one, &self, "exit", FORM, "a");
    assert_failed(&one.probe, BAY_ERR_EXITED, true, "status 5");
    const circuit *guard = &local_part(&self)->circuit;
    turn_until(self.loop, guard->state == CIRCUIT_OPEN);
    turn_until(self.loop, loop_now_ms(self.loop) >= guard->trial_at_ms);
    client_send(&one, &self, "say", FORM, "a");
    assert_int_equal(guard->state, CIRCUIT_TRIAL);
    upstream_call_cancel(&one.probe.call, STR("no more"));
    probe_fini(&one.probe);
    upstream_identity_gone(self.server, STR("a"));
    turn_until(self.loop, local_part(&self)->session_count == 0);
    client_call(&one, &self, "say", FORM, "b");
    assert_good(&one.probe);
    assert_int_equal(guard->state, CIRCUIT_CLOSED);
    close_stage(&self);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void freed_with_links_in_every_state(void **state)
{
    (void)state;
    stage self;
    static client calls[5];
    memset(calls, 0, sizeof(calls));
    open_stage(&self, ",'processes':2");
    client_call(&calls[0], &self, "say", FORM, "a"); /* idle */
    calls[1].is_holding = true;
    client_send(&calls[1], &self, "ask", FORM, "b"); /* asked */
    turn_until(self.loop, calls[1].asked == 1);
    client_send(&calls[2], &self, "say", SAMPLING, "b"); /* opening */
    client_send(&calls[3], &self, "say", ROOTS, "b");    /* waits */
    client_send(&calls[4], &self, "hang", 0, "b");
    drop_stage(&self);
    for (int i = 1; i < 5; i++) {
        assert_int_equal(calls[i].probe.dones, 1);
        assert_int_equal(calls[i].probe.kind, MCP_OUTCOME_FAILED);
        probe_fini(&calls[i].probe);
    }
}

static void closed_with_calls_under_way(void **state)
{
    (void)state;
    stage self;
    static client calls[3];
    memset(calls, 0, sizeof(calls));
    open_stage(&self, ",'processes':1");
    calls[0].is_holding = true;
    client_send(&calls[0], &self, "ask", FORM, "b");
    turn_until(self.loop, calls[0].asked == 1);
    client_send(&calls[1], &self, "say", SAMPLING, "b");
    client_send(&calls[2], &self, "hang", 0, "b");
    close_stage(&self);
    for (int i = 0; i < 3; i++) {
        assert_failed(&calls[i].probe, BAY_ERR_CLOSED, i != 1, "leaving the gateway");
        probe_fini(&calls[i].probe);
    }
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
        cmocka_unit_test(who_cannot_be_asked_shares_the_main_one),
        cmocka_unit_test(links_declare_what_their_client_can_be_asked),
        cmocka_unit_test(a_link_is_lent_to_one_call_at_a_time),
        cmocka_unit_test(roots_are_told_to_one_clients_sessions_only),
        cmocka_unit_test(roots_of_a_stateless_client_are_told_for_one_call),
        cmocka_unit_test(a_session_that_is_in_use_ends_after_its_last_call),
        cmocka_unit_test(share_session_pins_a_client_to_its_own),
        cmocka_unit_test(share_always_refuses_what_may_be_anybodys),
        cmocka_unit_test(a_list_that_is_read_meanwhile_makes_a_question_nobodys_else),
        cmocka_unit_test(a_question_that_no_call_can_be_asked_is_nobodys),
        cmocka_unit_test(share_always_asks_nobody_for_a_call_that_was_given_up),
        cmocka_unit_test(a_question_that_is_taken_back),
        cmocka_unit_test(a_question_after_its_call_is_nobodys),
        cmocka_unit_test(a_cancelled_call_gives_its_questions_back),
        cmocka_unit_test(what_a_cancelled_call_asks_later_reaches_nobody_else),
        cmocka_unit_test(a_lent_process_that_hangs_is_ended),
        cmocka_unit_test(a_call_that_a_stateless_client_cancelled_keeps_its_process),
        cmocka_unit_test(further_calls_wait_for_a_link),
        cmocka_unit_test(the_least_recently_used_makes_room),
        cmocka_unit_test(who_waits_too_long_is_told),
        cmocka_unit_test(one_clients_many_calls_do_not_starve_another),
        cmocka_unit_test(the_queue_has_its_bound),
        cmocka_unit_test(links_stop_when_they_idle),
        cmocka_unit_test(a_dead_link_ends_its_own_call_only),
        cmocka_unit_test(all_links_die_with_calls_under_way),
        cmocka_unit_test(a_repeatable_call_is_tried_once_more),
        cmocka_unit_test(crashing_links_open_the_circuit),
        cmocka_unit_test(what_may_be_tried_again_does_not_wait_for_an_open_circuit),
        cmocka_unit_test(the_circuit_closes_when_the_trial_is_up),
        cmocka_unit_test(a_trial_that_is_not_waited_for_is_another_ones),
        cmocka_unit_test(freed_with_links_in_every_state),
        cmocka_unit_test(closed_with_calls_under_way),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}

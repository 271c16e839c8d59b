/* An agent's day with each allocation failing in turn, first all from that one on, then that one
 * alone: every call is ended once, nothing leaks, and what was answered is true. */
#include "agent_rig.h"

#include "support/failing_memory.h"

enum { CALLS = 24 };

typedef struct day {
    rig *rig;
    told *calls[CALLS];
    size_t count;
} day;

static told *say(day *self, a2a_method method, const char *params)
{
    told *call = rig_ask(self->rig, method, params);
    if (call != NULL) {
        CHECK(self->count < CALLS);
        self->calls[self->count++] = call;
    }
    return call;
}

static void hold_some(rig *r, a2a_turn *turn)
{
    bay_err err = a2a_turn_status_text(turn, A2A_WORKING, STR("working"));
    if (err == BAY_OK) {
        err = rig_artifact(turn, "a", "x", false, false);
    }
    if (err == BAY_OK) {
        err = rig_artifact(turn, "a", "y", true, true);
    }
    assert_true(err == BAY_OK || err == BAY_ERR_NOMEM || err == BAY_ERR_STATE ||
                err == BAY_ERR_INVALID);
    rig_hold(r, turn);
}

static void live(day *self)
{
    rig *r = self->rig;
    r->turn = rig_complete;
    say(self, A2A_SEND_MESSAGE, RIG_MESSAGE("1", ""));
    r->turn = hold_some;
    say(self, A2A_SEND_STREAMING_MESSAGE,
        "{\"message\":{\"messageId\":\"2\",\"contextId\":\"c\",\"role\":\"ROLE_USER\",\"parts\":[{"
        "\"text\":\"hi\"}]},\"configuration\":{\"taskPushNotificationConfig\":{\"url\":"
        "\"https://x\"}}}");
    if (r->held != NULL) {
        char params[200];
        bay_str id = a2a_turn_task_id(r->held);
        rig_format(params, sizeof(params),
                   "{\"id\":\"%.*s\",\"taskId\":\"%.*s\",\"url\":\"https://y\"}", (int)id.len,
                   id.at, (int)id.len, id.at);
        say(self, A2A_SUBSCRIBE_TO_TASK, params);
        say(self, A2A_GET_TASK, params);
        say(self, A2A_CREATE_PUSH_CONFIG, params);
        say(self, A2A_LIST_PUSH_CONFIGS, params);
        err_ignore(rig_status(r->held, A2A_INPUT_REQUIRED, "which?"));
        a2a_turn_end(r->held);
        rig_format(params, sizeof(params),
                   "{\"message\":{\"messageId\":\"3\",\"taskId\":\"%.*s\",\"role\":\"ROLE_USER\","
                   "\"parts\":[{\"text\":\"this\"}]}}",
                   (int)id.len, id.at);
        say(self, A2A_SEND_MESSAGE, params);
        rig_format(params, sizeof(params), "{\"id\":\"%.*s\"}", (int)id.len, id.at);
        say(self, A2A_CANCEL_TASK, params);
    }
    say(self, A2A_LIST_TASKS, "{\"pageSize\":1,\"includeArtifacts\":true}");
    r->now_ms += 2000;
    a2a_agent_tick(r->agent);
}

/* The same rows in another agent, as far as memory goes. */
static void live_again(day *self)
{
    rig *r = self->rig;
    rig_close(r);
    a2a_turn_unref(r->held);
    r->held = NULL;
    if (a2a_agent_new(&r->options, &r->agent) != BAY_OK) {
        r->agent = NULL;
        return;
    }
    for (size_t i = 0; i < r->row_count; i++) {
        bay_err err = rig_restore(r, &r->rows[i], true);
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
    }
    a2a_agent_tick(r->agent);
    say(self, A2A_LIST_TASKS, "{}");
}

static void run(bool is_keeping)
{
    day self = {.rig = rig_plain()};
    if (is_keeping) {
        self.rig->options.persistence = &self.rig->persistence;
    }
    if (a2a_agent_new(&self.rig->options, &self.rig->agent) != BAY_OK) {
        self.rig->agent = NULL;
    } else {
        live(&self);
        if (is_keeping) {
            live_again(&self);
        }
    }
    if (self.rig->agent != NULL) {
        rig_close(self.rig);
    }
    for (size_t i = 0; i < self.count; i++) {
        assert_int_equal(self.calls[i]->ended, 1);
        told_free(self.calls[i]);
    }
    rig_free(self.rig);
}

static void survives_the_lack_of_memory(void **state)
{
    (void)state;
    (void)rig_card();
    for (int keeping = 0; keeping < 2; keeping++) {
        for (size_t at = 0; failing_memory_start(at); at++) {
            run(keeping == 1);
            failing_memory_check();
        }
        for (size_t at = 0; failing_memory_start_single(at); at++) {
            run(keeping == 1);
            failing_memory_check();
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(survives_the_lack_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Random walks over an agent, beside a model of what a task may do: with and without a keeper that
 * confirms late or fails, with callers that leave, read slowly and come back. */
#include "agent_rig.h"

enum { WALKS = 60, STEPS = 400, TASKS = 4, CALLS = 64 };

/* What the model knows of a turn that the handler has. */
typedef struct actor {
    a2a_turn *turn;
    int task; /* of the model */
} actor;

typedef struct model_task {
    char id[40];
    a2a_state state; /* UNSPECIFIED: not open yet */
    bool was_answered;
} model_task;

typedef struct walk {
    rig *rig;
    uint64_t seed;
    bool has_failed_keeping;
    actor actors[CALLS];
    model_task tasks[CALLS];
    size_t task_count;
    told *calls[CALLS];
    size_t call_count;
} walk;

static walk *walking;

static unsigned roll(walk *self, unsigned sides)
{
    self->seed = self->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)((self->seed >> 33) % sides);
}

static model_task *model_of(walk *self, bay_str id)
{
    for (size_t i = 0; i < self->task_count; i++) {
        if (str_eq(str_of(self->tasks[i].id), id)) {
            return &self->tasks[i];
        }
    }
    assert_true(self->task_count < CALLS);
    model_task *made = &self->tasks[self->task_count++];
    *made = (model_task){.state = A2A_STATE_UNSPECIFIED};
    rig_format(made->id, sizeof(made->id), "%.*s", (int)id.len, id.at);
    return made;
}

/* The model's own view of what may follow. */
static bool may_follow(a2a_state from, a2a_state to)
{
    if (to == A2A_STATE_UNSPECIFIED || to >= A2A_STATES || a2a_state_is_terminal(from)) {
        return false;
    }
    return from != A2A_WORKING || to != A2A_SUBMITTED;
}

static void take_turn(rig *r, a2a_turn *turn)
{
    walk *self = walking;
    (void)r;
    model_task *task = model_of(self, a2a_turn_task_id(turn));
    if (a2a_state_is_interrupted(task->state)) {
        task->state = A2A_WORKING;
    }
    for (size_t i = 0; i < CALLS; i++) {
        if (self->actors[i].turn == NULL) {
            self->actors[i].turn = a2a_turn_ref(turn);
            return;
        }
    }
    a2a_turn_end(turn);
}

static actor *some_actor(walk *self)
{
    size_t from = roll(self, CALLS);
    for (size_t i = 0; i < CALLS; i++) {
        actor *at = &self->actors[(from + i) % CALLS];
        if (at->turn != NULL) {
            return at;
        }
    }
    return NULL;
}

static void drop(actor *at)
{
    a2a_turn_end(at->turn);
    a2a_turn_unref(at->turn);
    at->turn = NULL;
}

static void end_turn(walk *self)
{
    actor *at = some_actor(self);
    if (at == NULL) {
        return;
    }
    model_task *task = model_of(self, a2a_turn_task_id(at->turn));
    if (!a2a_state_is_terminal(task->state) && !a2a_state_is_interrupted(task->state) &&
        !task->was_answered) {
        task->state = A2A_STATES; /* FAILED, unless another message waits: asked for below */
    }
    drop(at);
}

static void move(walk *self)
{
    actor *at = some_actor(self);
    if (at == NULL) {
        return;
    }
    model_task *task = model_of(self, a2a_turn_task_id(at->turn));
    a2a_state to = (a2a_state)roll(self, A2A_STATES);
    a2a_state from = task->state == A2A_STATE_UNSPECIFIED ? A2A_SUBMITTED : task->state;
    bool was_canceled = a2a_turn_is_canceled(at->turn);
    bay_err err = rig_status(at->turn, to, roll(self, 2) == 0 ? "words" : NULL);
    bool may = from != A2A_STATES && may_follow(from, to) && !was_canceled && !task->was_answered;
    if (self->has_failed_keeping || from == A2A_STATES) {
        if (err == BAY_OK) {
            task->state = to;
        }
        return;
    }
    if ((err == BAY_OK) != may) {
        fail_msg("%d -> %d: %s", (int)from, (int)to, bay_err_text(err));
    }
    if (err == BAY_OK) {
        task->state = to;
    }
}

static void add_chunk(walk *self)
{
    actor *at = some_actor(self);
    if (at == NULL) {
        return;
    }
    model_task *task = model_of(self, a2a_turn_task_id(at->turn));
    bay_err err = rig_artifact(at->turn, "a", "chunk", roll(self, 2) == 0, false);
    if (err == BAY_OK && task->state == A2A_STATE_UNSPECIFIED) {
        task->state = A2A_SUBMITTED;
    }
    assert_false(err == BAY_OK && a2a_state_is_terminal(task->state));
}

static void answer(walk *self)
{
    actor *at = some_actor(self);
    if (at != NULL && rig_reply(at->turn, "hello") == BAY_OK) {
        model_task *task = model_of(self, a2a_turn_task_id(at->turn));
        assert_int_equal(task->state, A2A_STATE_UNSPECIFIED);
        assert_false(task->was_answered);
        task->was_answered = true;
    }
}

static void note(walk *self, told *call)
{
    assert_true(self->call_count < CALLS);
    self->calls[self->call_count++] = call;
}

static const char *some_id(walk *self)
{
    return self->task_count > 0 ? self->tasks[roll(self, (unsigned)self->task_count)].id : "none";
}

static void send_message(walk *self, bool to_some)
{
    char params[500];
    char task[80] = "";
    if (self->call_count + 1 >= CALLS || self->task_count + 1 >= CALLS) {
        return;
    }
    if (to_some) {
        rig_format(task, sizeof(task), ",\"taskId\":\"%s\"", some_id(self));
    }
    rig_format(params, sizeof(params),
               "{\"message\":{\"messageId\":\"%u\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":"
               "\"hi\"}]%s},\"configuration\":{\"returnImmediately\":%s}}",
               roll(self, 1000000), task, roll(self, 3) == 0 ? "true" : "false");
    note(self, rig_ask(self->rig,
                       roll(self, 2) == 0 ? A2A_SEND_MESSAGE : A2A_SEND_STREAMING_MESSAGE, params));
}

static void ask_for(walk *self, a2a_method method)
{
    char params[80];
    if (self->call_count + 1 >= CALLS) {
        return;
    }
    rig_format(params, sizeof(params), "{\"id\":\"%s\"}", some_id(self));
    told *call = rig_call(self->rig, method, params);
    call->call.last_event_id = method == A2A_SUBSCRIBE_TO_TASK ? roll(self, 8) : 0;
    rig_start(call);
    note(self, call);
}

/* Canceling succeeds exactly when the model says that the task has not ended. */
static void cancel(walk *self)
{
    char params[80];
    if (self->call_count + 1 >= CALLS || self->task_count == 0) {
        return;
    }
    model_task *task = &self->tasks[roll(self, (unsigned)self->task_count)];
    a2a_state before = task->state;
    rig_format(params, sizeof(params), "{\"id\":\"%s\"}", task->id);
    told *call = rig_ask(self->rig, A2A_CANCEL_TASK, params);
    note(self, call);
    bool is_refused = call->ended > 0 && call->result == NULL;
    if (!is_refused) {
        task->state = A2A_CANCELED;
    }
    if (before != A2A_STATES && before != A2A_STATE_UNSPECIFIED && !self->has_failed_keeping) {
        assert_int_equal(is_refused, a2a_state_is_terminal(before));
    }
}

static void disturb(walk *self)
{
    if (self->call_count == 0) {
        return;
    }
    told *call = self->calls[roll(self, (unsigned)self->call_count)];
    if (call->ended > 0) {
        return;
    }
    switch (roll(self, 3)) {
    case 0:
        rig_leave(call);
        break;
    case 1:
        call->says = BAY_ERR_AGAIN;
        break;
    default:
        rig_drain(call);
        break;
    }
}

static void keep(walk *self)
{
    rig *r = self->rig;
    if (r->options.persistence == NULL) {
        return;
    }
    if (roll(self, 12) == 0) {
        self->has_failed_keeping = true;
        rig_confirm(r, BAY_ERR_IO);
    } else {
        rig_confirm(r, BAY_OK);
    }
}

static void step(walk *self)
{
    switch (roll(self, 14)) {
    case 0:
        send_message(self, false);
        break;
    case 1:
        send_message(self, true);
        break;
    case 2:
        ask_for(self, A2A_GET_TASK);
        break;
    case 3:
        ask_for(self, A2A_SUBSCRIBE_TO_TASK);
        break;
    case 4:
        cancel(self);
        break;
    case 5:
        end_turn(self);
        break;
    case 6:
        answer(self);
        break;
    case 7:
        disturb(self);
        break;
    case 8:
    case 9:
        keep(self);
        break;
    case 10:
        add_chunk(self);
        break;
    case 11:
        self->rig->now_ms += roll(self, 3000);
        a2a_agent_tick(self->rig->agent);
        break;
    default:
        move(self);
        break;
    }
}

/* Numbers grow in each stream, and nothing follows what was said to be the last. */
static void check_call(const told *call)
{
    assert_int_equal(call->ended, 1);
    for (size_t i = 0; i < call->event_count; i++) {
        assert_true(i == 0 || call->sequences[i] > call->sequences[i - 1]);
        assert_true(i + 1 == call->event_count || !call->is_last[i]);
    }
}

static void walks(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < WALKS; seed++) {
        walk self = {.seed = seed, .rig = seed % 2 == 0 ? rig_new() : rig_new_keeping()};
        walking = &self;
        self.rig->turn = take_turn;
        self.rig->is_keeping = false;
        for (int i = 0; i < STEPS; i++) {
            step(&self);
            assert_true(self.rig->put_count < RIG_PUTS / 2);
        }
        a2a_agent_free(self.rig->agent);
        self.rig->agent = NULL;
        rig_confirm(self.rig, BAY_ERR_CANCELLED);
        for (size_t i = 0; i < CALLS; i++) {
            if (self.actors[i].turn != NULL) {
                assert_int_equal(rig_status(self.actors[i].turn, A2A_WORKING, NULL),
                                 BAY_ERR_CLOSED);
                drop(&self.actors[i]);
            }
        }
        for (size_t i = 0; i < self.call_count; i++) {
            check_call(self.calls[i]);
            told_free(self.calls[i]);
        }
        rig_free(self.rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(walks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

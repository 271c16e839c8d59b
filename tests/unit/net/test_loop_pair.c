/* Two ends on two loops, first turned by one thread in every order, then by two threads at random:
 * order, bounds, last words, ends that close at any time, mailboxes that close, and no memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/check.h"
#include "net/loop_pair.h"
#include "net/thread.h"
#include "support/failing_memory.h"

enum { WINDOW = 8, RESUME = 2, MOST = 16, MOST_TURNS = 100000 };

typedef struct number {
    loop_pair_message message;
    unsigned value;
} number;

/* What one end got; its own thread writes it. */
typedef struct end {
    unsigned begun;
    unsigned received; /* each is one more than the one before */
    unsigned signals;
    unsigned drained;
    unsigned closed;
    unsigned last; /* the value of the last word; 0: none */
    bool is_open;
    bool is_slow;
    bool closes_on_message; /* in the callback */
    bool closes_on_closed;
    bool closes_on_begun;
} end;

typedef struct conversation {
    loop_pair pair;
    end ends[2];
    atomic_uint *released;
} conversation;

typedef struct stage {
    loop *loops[2];
    loop_mailbox *mailboxes[2];
    atomic_uint released;
    unsigned made;
} stage;

/* ---- what the ends do ------------------------------------------------------------------------ */

static conversation *of_pair(loop_pair *pair)
{
    return CONTAINER_OF(pair, conversation, pair);
}

static number *number_new(unsigned value)
{
    number *made = mem_alloc(sizeof(*made));
    if (made != NULL) {
        made->value = value;
    }
    return made;
}

static void close_end(conversation *self, loop_pair_side side, unsigned last)
{
    number *word = last > 0 ? number_new(last) : NULL;
    self->ends[side].is_open = false;
    loop_pair_close(&self->pair, side, word != NULL ? &word->message : NULL);
}

static bay_err received(conversation *self, loop_pair_side side, loop_pair_message *message)
{
    end *here = &self->ends[side];
    assert_true(here->is_open);
    assert_int_equal(here->closed, 0);
    assert_int_equal(CONTAINER_OF(message, number, message)->value, ++here->received);
    bay_err err = here->is_slow ? BAY_ERR_AGAIN : BAY_OK;
    if (here->closes_on_message) {
        close_end(self, side, 0);
    }
    return err;
}

static void closed(conversation *self, loop_pair_side side, loop_pair_message *last)
{
    end *here = &self->ends[side];
    assert_true(here->is_open);
    here->closed++;
    here->last = last != NULL ? CONTAINER_OF(last, number, message)->value : 0;
    if (here->closes_on_closed) {
        close_end(self, side, 0);
    }
}

static bay_err near_received(loop_pair *pair, loop_pair_message *message)
{
    return received(of_pair(pair), LOOP_PAIR_NEAR, message);
}

static bay_err far_received(loop_pair *pair, loop_pair_message *message)
{
    assert_int_equal(of_pair(pair)->ends[LOOP_PAIR_FAR].begun, 1);
    return received(of_pair(pair), LOOP_PAIR_FAR, message);
}

static void near_signalled(loop_pair *pair, unsigned signals)
{
    of_pair(pair)->ends[LOOP_PAIR_NEAR].signals |= signals;
}

static void far_signalled(loop_pair *pair, unsigned signals)
{
    assert_int_equal(of_pair(pair)->ends[LOOP_PAIR_FAR].begun, 1);
    of_pair(pair)->ends[LOOP_PAIR_FAR].signals |= signals;
}

static void near_drained(loop_pair *pair)
{
    of_pair(pair)->ends[LOOP_PAIR_NEAR].drained++;
}

static void far_drained(loop_pair *pair)
{
    of_pair(pair)->ends[LOOP_PAIR_FAR].drained++;
}

static void near_closed(loop_pair *pair, loop_pair_message *last)
{
    closed(of_pair(pair), LOOP_PAIR_NEAR, last);
}

static void far_closed(loop_pair *pair, loop_pair_message *last)
{
    closed(of_pair(pair), LOOP_PAIR_FAR, last);
}

static void far_begun(loop_pair *pair)
{
    conversation *self = of_pair(pair);
    self->ends[LOOP_PAIR_FAR].begun++;
    self->ends[LOOP_PAIR_FAR].is_open = true;
    if (self->ends[LOOP_PAIR_FAR].closes_on_begun || loop_pair_user(pair, LOOP_PAIR_FAR) == NULL) {
        close_end(self, LOOP_PAIR_FAR, 0);
    }
}

static const loop_pair_events near_events = {.received = near_received,
                                             .signalled = near_signalled,
                                             .drained = near_drained,
                                             .closed = near_closed,
                                             .window = WINDOW,
                                             .resume = RESUME,
                                             .most = MOST};
static const loop_pair_events far_events = {.begun = far_begun,
                                            .received = far_received,
                                            .signalled = far_signalled,
                                            .drained = far_drained,
                                            .closed = far_closed,
                                            .window = WINDOW,
                                            .resume = RESUME,
                                            .most = MOST};

static void release(loop_pair *pair)
{
    conversation *self = of_pair(pair);
    atomic_fetch_add(self->released, 1);
    mem_free(self);
}

/* ---- the stage ------------------------------------------------------------------------------- */

static bay_err stage_open(stage *self)
{
    *self = (stage){0};
    atomic_init(&self->released, 0);
    for (int i = 0; i < 2; i++) {
        bay_err err = loop_new(&self->loops[i]);
        err = err == BAY_OK ? loop_mailbox_new(self->loops[i], self, &self->mailboxes[i]) : err;
        if (err != BAY_OK) {
            return err;
        }
    }
    return BAY_OK;
}

static void close_mailbox(stage *self, loop_pair_side side)
{
    if (self->mailboxes[side] != NULL) {
        loop_mailbox_close(self->mailboxes[side]);
        loop_mailbox_unref(self->mailboxes[side]);
        self->mailboxes[side] = NULL;
    }
}

static void stage_close(stage *self)
{
    for (int i = 0; i < 2; i++) {
        close_mailbox(self, (loop_pair_side)i);
    }
    loop_free(self->loops[0]); /* runs what was posted */
    loop_free(self->loops[1]);
    assert_int_equal(self->released, self->made);
}

static conversation *open_near(stage *self)
{
    conversation *made = mem_zalloc(sizeof(*made));
    if (made != NULL) {
        made->released = &self->released;
        made->ends[LOOP_PAIR_NEAR].is_open = true;
        loop_pair_init(&made->pair, self->mailboxes[LOOP_PAIR_NEAR], &near_events,
                       self->mailboxes[LOOP_PAIR_FAR], &far_events, release);
        self->made++;
    }
    return made;
}

static conversation *open_both(stage *self)
{
    conversation *made = open_near(self);
    assert_non_null(made);
    assert_int_equal(loop_pair_begin(&made->pair), BAY_OK);
    return made;
}

static void turn(stage *self)
{
    loop_turn(self->loops[0], 0);
    loop_turn(self->loops[1], 0);
}

static bay_err say(conversation *self, loop_pair_side to, unsigned value, size_t cost)
{
    number *word = number_new(value);
    return word != NULL ? loop_pair_post(&self->pair, to, &word->message, cost) : BAY_ERR_NOMEM;
}

/* ---- one thread ------------------------------------------------------------------------------ */

static void a_closed_mailbox_begins_nothing(void **state)
{
    (void)state;
    stage self;
    assert_int_equal(stage_open(&self), BAY_OK);
    loop_mailbox_close(self.mailboxes[LOOP_PAIR_FAR]);
    conversation *one = open_near(&self);
    assert_int_equal(loop_pair_begin(&one->pair), BAY_ERR_CLOSED);
    assert_int_equal(say(one, LOOP_PAIR_FAR, 1, 1), BAY_ERR_CLOSED);
    loop_pair_signal(&one->pair, LOOP_PAIR_FAR, 1);
    assert_false(loop_pair_finish(&one->pair, LOOP_PAIR_NEAR));
    assert_int_equal(self.released, 0);
    close_end(one, LOOP_PAIR_NEAR, 7);
    assert_int_equal(self.released, 1);
    conversation *never_begun = open_near(&self);
    close_end(never_begun, LOOP_PAIR_NEAR, 0);
    assert_int_equal(self.released, 2);
    stage_close(&self);
}

static void a_mailbox_that_closes_on_the_way_still_begins(void **state)
{
    (void)state;
    stage self;
    assert_int_equal(stage_open(&self), BAY_OK);
    conversation *one = open_both(&self);
    assert_int_equal(say(one, LOOP_PAIR_FAR, 1, 1), BAY_OK);
    close_mailbox(&self, LOOP_PAIR_FAR);
    turn(&self); /* `begun` finds no user, and closes */
    turn(&self);
    assert_int_equal(one->ends[LOOP_PAIR_FAR].begun, 1);
    assert_int_equal(one->ends[LOOP_PAIR_FAR].received, 0);
    assert_int_equal(one->ends[LOOP_PAIR_NEAR].closed, 1);
    close_end(one, LOOP_PAIR_NEAR, 0);
    assert_int_equal(self.released, 1);
    stage_close(&self);
}

static void messages_arrive_in_order_then_the_last_word(void **state)
{
    (void)state;
    stage self;
    assert_int_equal(stage_open(&self), BAY_OK);
    conversation *one = open_both(&self);
    loop_pair_signal(&one->pair, LOOP_PAIR_FAR, 1);
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(say(one, LOOP_PAIR_FAR, i, 1), BAY_OK);
    }
    loop_pair_signal(&one->pair, LOOP_PAIR_FAR, 4);
    close_end(one, LOOP_PAIR_NEAR, 99);
    assert_int_equal(one->ends[LOOP_PAIR_FAR].begun, 0); /* nothing happens inside */
    loop_turn(self.loops[LOOP_PAIR_FAR], 0);
    const end *far = &one->ends[LOOP_PAIR_FAR];
    assert_int_equal(far->begun, 1);
    assert_int_equal(far->signals, 5);
    assert_int_equal(far->received, 3);
    assert_int_equal(far->closed, 1);
    assert_int_equal(far->last, 99);
    assert_int_equal(say(one, LOOP_PAIR_NEAR, 1, 1), BAY_ERR_CLOSED); /* it knows */
    loop_pair_signal(&one->pair, LOOP_PAIR_NEAR, 1);
    close_end(one, LOOP_PAIR_FAR, 5);
    turn(&self);
    assert_int_equal(self.released, 1);
    stage_close(&self);
}

static void a_closed_end_gets_nothing(void **state)
{
    (void)state;
    stage self;
    assert_int_equal(stage_open(&self), BAY_OK);
    conversation *one = open_both(&self);
    turn(&self);
    assert_int_equal(say(one, LOOP_PAIR_NEAR, 1, 1), BAY_OK);
    loop_pair_signal(&one->pair, LOOP_PAIR_NEAR, 1);
    close_end(one, LOOP_PAIR_FAR, 3);
    assert_int_equal(say(one, LOOP_PAIR_FAR, 1, 1), BAY_OK); /* it does not know yet */
    close_end(one, LOOP_PAIR_NEAR, 4);
    /* the callbacks fail if an end that is not open gets a message or the other's last word */
    loop_turn(self.loops[LOOP_PAIR_NEAR], 0);
    assert_int_equal(self.released, 0); /* messages for the far end are under way */
    turn(&self);
    assert_int_equal(self.released, 1);
    stage_close(&self);
}

static void an_end_may_close_inside_each_callback(void **state)
{
    (void)state;
    for (int where = 0; where < 3; where++) {
        stage self;
        assert_int_equal(stage_open(&self), BAY_OK);
        conversation *one = open_both(&self);
        end *far = &one->ends[LOOP_PAIR_FAR];
        far->closes_on_begun = where == 0;
        far->closes_on_message = where == 1;
        far->closes_on_closed = where == 2;
        one->ends[LOOP_PAIR_NEAR].closes_on_closed = true;
        loop_pair_signal(&one->pair, LOOP_PAIR_FAR, 1);
        assert_int_equal(say(one, LOOP_PAIR_FAR, 1, 1), BAY_OK);
        assert_int_equal(say(one, LOOP_PAIR_FAR, 2, 1), BAY_OK);
        if (where == 2) {
            close_end(one, LOOP_PAIR_NEAR, 0);
        }
        turn(&self);
        turn(&self);
        assert_int_equal(self.released, 1);
        stage_close(&self);
    }
}

static void the_sender_waits_at_the_window_and_hears_once(void **state)
{
    (void)state;
    stage self;
    assert_int_equal(stage_open(&self), BAY_OK);
    conversation *one = open_both(&self);
    end *near = &one->ends[LOOP_PAIR_NEAR];
    turn(&self);
    near->is_slow = true;
    for (unsigned i = 1; i < WINDOW; i++) {
        assert_int_equal(say(one, LOOP_PAIR_NEAR, i, 1), BAY_OK);
    }
    assert_int_equal(say(one, LOOP_PAIR_NEAR, WINDOW, 1), BAY_ERR_AGAIN);
    turn(&self);
    turn(&self);
    assert_int_equal(near->received, WINDOW);
    assert_int_equal(one->ends[LOOP_PAIR_FAR].drained, 0); /* it holds them all */
    near->is_slow = false;
    loop_pair_resume(&one->pair, LOOP_PAIR_NEAR);
    loop_pair_resume(&one->pair, LOOP_PAIR_NEAR); /* no effect */
    turn(&self);
    turn(&self);
    assert_int_equal(one->ends[LOOP_PAIR_FAR].drained, 1);
    assert_int_equal(say(one, LOOP_PAIR_NEAR, WINDOW + 1, 1), BAY_OK);
    turn(&self);
    assert_int_equal(near->received, WINDOW + 1);
    close_end(one, LOOP_PAIR_NEAR, 0);
    close_end(one, LOOP_PAIR_FAR, 0);
    stage_close(&self);
}

static void above_most_only_the_last_word_is_taken(void **state)
{
    (void)state;
    stage self;
    assert_int_equal(stage_open(&self), BAY_OK);
    conversation *one = open_both(&self);
    turn(&self);
    assert_true(loop_pair_has_room(&one->pair, LOOP_PAIR_NEAR, MOST + 100));
    assert_int_equal(say(one, LOOP_PAIR_NEAR, 1, MOST + 100), BAY_ERR_AGAIN); /* one alone */
    assert_false(loop_pair_has_room(&one->pair, LOOP_PAIR_NEAR, 1));
    assert_int_equal(say(one, LOOP_PAIR_NEAR, 2, 1), BAY_ERR_LIMIT);
    assert_int_equal(say(one, LOOP_PAIR_NEAR, 2, SIZE_MAX), BAY_ERR_LIMIT);
    assert_int_equal(say(one, LOOP_PAIR_NEAR, 2, 0), BAY_OK);
    close_end(one, LOOP_PAIR_FAR, 42);
    turn(&self);
    assert_int_equal(one->ends[LOOP_PAIR_NEAR].received, 2);
    assert_int_equal(one->ends[LOOP_PAIR_NEAR].last, 42);
    close_end(one, LOOP_PAIR_NEAR, 0);
    stage_close(&self);
}

static void who_finishes_still_listens(void **state)
{
    (void)state;
    stage self;
    assert_int_equal(stage_open(&self), BAY_OK);
    conversation *one = open_both(&self);
    turn(&self);
    assert_true(loop_pair_finish(&one->pair, LOOP_PAIR_NEAR));
    turn(&self);
    assert_int_equal(one->ends[LOOP_PAIR_FAR].closed, 1);
    assert_int_equal(say(one, LOOP_PAIR_NEAR, 1, 1), BAY_OK);
    close_end(one, LOOP_PAIR_FAR, 6);
    turn(&self);
    assert_int_equal(one->ends[LOOP_PAIR_NEAR].received, 1);
    assert_int_equal(one->ends[LOOP_PAIR_NEAR].closed, 1);
    assert_int_equal(one->ends[LOOP_PAIR_NEAR].last, 6);
    close_end(one, LOOP_PAIR_NEAR, 0);
    assert_int_equal(self.released, 1);

    one = open_both(&self); /* and may close before the answer comes */
    turn(&self);
    assert_true(loop_pair_finish(&one->pair, LOOP_PAIR_NEAR));
    close_end(one, LOOP_PAIR_NEAR, 0);
    turn(&self);
    assert_int_equal(one->ends[LOOP_PAIR_FAR].closed, 1);
    close_end(one, LOOP_PAIR_FAR, 0);
    stage_close(&self);
}

static void a_reference_keeps_it_past_both_ends(void **state)
{
    (void)state;
    stage self;
    assert_int_equal(stage_open(&self), BAY_OK);
    conversation *one = open_both(&self);
    one->ends[LOOP_PAIR_FAR].closes_on_begun = true;
    loop_pair_ref(&one->pair);
    close_end(one, LOOP_PAIR_NEAR, 0);
    turn(&self);
    turn(&self);
    assert_int_equal(one->ends[LOOP_PAIR_FAR].begun, 1);
    assert_int_equal(self.released, 0);
    loop_pair_unref(&one->pair);
    assert_int_equal(self.released, 1);
    stage_close(&self);
}

static void loops_that_end_run_what_is_under_way(void **state)
{
    (void)state;
    stage self;
    assert_int_equal(stage_open(&self), BAY_OK);
    for (unsigned i = 0; i < 4; i++) {
        conversation *one = open_both(&self);
        one->ends[LOOP_PAIR_FAR].closes_on_closed = true;
        if (i % 2 != 0) {
            loop_turn(self.loops[LOOP_PAIR_FAR], 0);
        }
        assert_int_equal(say(one, LOOP_PAIR_FAR, 1, 1), BAY_OK);
        close_end(one, LOOP_PAIR_NEAR, i);
    }
    stage_close(&self); /* checks that all were released */
}

static void without_memory_the_ends_still_meet(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        stage self;
        if (stage_open(&self) == BAY_OK) {
            conversation *one = open_near(&self);
            if (one != NULL) {
                one->ends[LOOP_PAIR_FAR].closes_on_closed = true;
                assert_int_equal(loop_pair_begin(&one->pair), BAY_OK);
                bay_err err = say(one, LOOP_PAIR_FAR, 1, 1);
                assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
                loop_pair_signal(&one->pair, LOOP_PAIR_FAR, 2);
                turn(&self);
                assert_int_equal(one->ends[LOOP_PAIR_FAR].received, err == BAY_OK ? 1 : 0);
                assert_int_equal(one->ends[LOOP_PAIR_FAR].signals, 2);
                close_end(one, LOOP_PAIR_NEAR, 9); /* without memory: with no value */
                turn(&self);
                assert_int_equal(self.released, 1);
            }
        }
        stage_close(&self);
        failing_memory_check();
    }
}

/* ---- two threads ----------------------------------------------------------------------------- */

enum { TALKS = 400, WORDS = 100 };

/* One talk: both ends say WORDS numbers at most, wait at the window, and close at random. */
typedef struct talker {
    loop_task step;
    conversation *talk;
    loop_pair_side side;
    loop *loop;
    uint32_t random;
    unsigned said;
    bool waits;
} talker;

typedef struct talk {
    conversation conversation; /* first: released with it */
    talker talkers[2];
} talk;

typedef struct crowd {
    stage stage;
    net_thread thread;
    uint32_t random;
    atomic_uint closed_ends;
} crowd;

static crowd *the_crowd;

static uint32_t draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void talker_close(talker *self)
{
    loop_undefer(self->loop, &self->step);
    atomic_fetch_add(&the_crowd->closed_ends, 1);
    if (draw(&self->random) % 4 == 0) {
        (void)loop_pair_finish(&self->talk->pair, self->side);
    }
    close_end(self->talk, self->side, draw(&self->random) % 2);
}

static void talker_step(void *argument)
{
    talker *self = argument;
    loop_pair_side to = self->side == LOOP_PAIR_NEAR ? LOOP_PAIR_FAR : LOOP_PAIR_NEAR;
    end *here = &self->talk->ends[self->side];
    for (unsigned i = draw(&self->random) % 12; i > 0 && !self->waits; i--) {
        bay_err err = say(self->talk, to, self->said + 1, 1);
        if (err == BAY_OK || err == BAY_ERR_AGAIN) {
            self->said++;
            self->waits = err == BAY_ERR_AGAIN;
        } else {
            assert_true(err == BAY_ERR_CLOSED);
            break;
        }
    }
    loop_pair_signal(&self->talk->pair, to, 1u << draw(&self->random) % LOOP_PAIR_SIGNALS);
    here->is_slow = draw(&self->random) % 3 == 0;
    if (!here->is_slow) {
        loop_pair_resume(&self->talk->pair, self->side);
    }
    if (self->said >= WORDS || draw(&self->random) % 40 == 0) {
        talker_close(self);
        return;
    }
    loop_defer(self->loop, &self->step);
}

static talk *of_talk(loop_pair *pair)
{
    return CONTAINER_OF(of_pair(pair), talk, conversation);
}

static void talker_drained(talker *self)
{
    assert_true(self->waits);
    self->waits = false;
}

static void talker_closed(talker *self, loop_pair_message *last)
{
    end *here = &self->talk->ends[self->side];
    assert_true(here->is_open);
    assert_int_equal(here->closed, 0);
    here->closed++;
    (void)last;
    if (draw(&self->random) % 2 == 0) { /* else later, by a step */
        talker_close(self);
    }
}

static void talkers_near_drained(loop_pair *pair)
{
    talker_drained(&of_talk(pair)->talkers[LOOP_PAIR_NEAR]);
}

static void talkers_far_drained(loop_pair *pair)
{
    talker_drained(&of_talk(pair)->talkers[LOOP_PAIR_FAR]);
}

static void talkers_near_closed(loop_pair *pair, loop_pair_message *last)
{
    talker_closed(&of_talk(pair)->talkers[LOOP_PAIR_NEAR], last);
}

static void talkers_far_closed(loop_pair *pair, loop_pair_message *last)
{
    talker_closed(&of_talk(pair)->talkers[LOOP_PAIR_FAR], last);
}

static void talkers_begun(loop_pair *pair)
{
    talker *self = &of_talk(pair)->talkers[LOOP_PAIR_FAR];
    self->talk->ends[LOOP_PAIR_FAR].begun++;
    self->talk->ends[LOOP_PAIR_FAR].is_open = true;
    loop_defer(self->loop, &self->step);
}

static const loop_pair_events talkers_near = {.received = near_received,
                                              .signalled = near_signalled,
                                              .drained = talkers_near_drained,
                                              .closed = talkers_near_closed,
                                              .window = WINDOW,
                                              .resume = RESUME};
static const loop_pair_events talkers_far = {.begun = talkers_begun,
                                             .received = far_received,
                                             .signalled = far_signalled,
                                             .drained = talkers_far_drained,
                                             .closed = talkers_far_closed,
                                             .window = WINDOW,
                                             .resume = RESUME};

static void talk_open(crowd *self)
{
    talk *made = mem_zalloc(sizeof(*made));
    assert_non_null(made);
    self->stage.made++;
    made->conversation.released = &self->stage.released;
    made->conversation.ends[LOOP_PAIR_NEAR].is_open = true;
    for (int i = 0; i < 2; i++) {
        made->talkers[i] = (talker){.talk = &made->conversation,
                                    .side = (loop_pair_side)i,
                                    .loop = self->stage.loops[i],
                                    .random = draw(&self->random)};
        made->talkers[i].step = (loop_task){.function = talker_step, .argument = &made->talkers[i]};
    }
    loop_pair_init(&made->conversation.pair, self->stage.mailboxes[LOOP_PAIR_NEAR], &talkers_near,
                   self->stage.mailboxes[LOOP_PAIR_FAR], &talkers_far, release);
    assert_int_equal(loop_pair_begin(&made->conversation.pair), BAY_OK);
    loop_defer(self->stage.loops[LOOP_PAIR_NEAR], &made->talkers[LOOP_PAIR_NEAR].step);
}

static void run_far(void *argument)
{
    loop_run(((crowd *)argument)->stage.loops[LOOP_PAIR_FAR]);
}

static void two_threads_meet_in_every_order(void **state)
{
    (void)state;
    crowd self = {.random = 20251124};
    the_crowd = &self;
    atomic_init(&self.closed_ends, 0);
    assert_int_equal(stage_open(&self.stage), BAY_OK);
    loop_hold(self.stage.loops[LOOP_PAIR_FAR]);
    assert_int_equal(net_thread_start(&self.thread, run_far, &self), BAY_OK);
    for (unsigned turns = 0; self.closed_ends < 2 * TALKS && turns < MOST_TURNS; turns++) {
        if (self.stage.made < TALKS) {
            talk_open(&self);
        }
        loop_turn(self.stage.loops[LOOP_PAIR_NEAR], 10);
    }
    assert_int_equal(self.closed_ends, 2 * TALKS); /* each end got word, or closed itself */
    loop_stop(self.stage.loops[LOOP_PAIR_FAR]);
    net_thread_join(&self.thread);
    stage_close(&self.stage);
}

/* A stream that goes on only when it is told to: a lost `drained` would stop it for good. */
enum { STREAM = 20000 };

static void stream_more(loop_pair *pair)
{
    conversation *self = of_pair(pair);
    unsigned *said = &self->ends[LOOP_PAIR_FAR].received;
    bay_err err = BAY_OK;
    while (err == BAY_OK && *said < STREAM) {
        err = say(self, LOOP_PAIR_NEAR, ++*said, 1);
    }
    if (err != BAY_ERR_AGAIN) {
        close_end(self, LOOP_PAIR_FAR, 1);
    }
}

static void stream_begun(loop_pair *pair)
{
    of_pair(pair)->ends[LOOP_PAIR_FAR].is_open = true;
    stream_more(pair);
}

/* a window of one message, so that each may be taken before its sender sees that it has to wait */
static const loop_pair_events stream_near = {
    .received = near_received, .closed = near_closed, .window = 1};
static const loop_pair_events stream_far = {
    .begun = stream_begun, .drained = stream_more, .closed = far_closed};

static void a_stream_between_threads_never_stalls(void **state)
{
    (void)state;
    crowd self = {0};
    assert_int_equal(stage_open(&self.stage), BAY_OK);
    loop_hold(self.stage.loops[LOOP_PAIR_FAR]);
    assert_int_equal(net_thread_start(&self.thread, run_far, &self), BAY_OK);
    conversation *one = open_near(&self.stage);
    const end *near = &one->ends[LOOP_PAIR_NEAR];
    one->pair.lanes[LOOP_PAIR_NEAR].events = &stream_near;
    one->pair.lanes[LOOP_PAIR_FAR].events = &stream_far;
    assert_int_equal(loop_pair_begin(&one->pair), BAY_OK);
    unsigned before = 0;
    for (unsigned idle = 0; near->closed == 0 && idle < 1000; idle++) {
        loop_turn(self.stage.loops[LOOP_PAIR_NEAR], 10);
        idle = near->received > before ? 0 : idle;
        before = near->received;
    }
    assert_int_equal(near->received, STREAM);
    assert_int_equal(near->closed, 1);
    close_end(one, LOOP_PAIR_NEAR, 0);
    loop_stop(self.stage.loops[LOOP_PAIR_FAR]);
    net_thread_join(&self.thread);
    stage_close(&self.stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_closed_mailbox_begins_nothing),
        cmocka_unit_test(a_mailbox_that_closes_on_the_way_still_begins),
        cmocka_unit_test(messages_arrive_in_order_then_the_last_word),
        cmocka_unit_test(a_closed_end_gets_nothing),
        cmocka_unit_test(an_end_may_close_inside_each_callback),
        cmocka_unit_test(the_sender_waits_at_the_window_and_hears_once),
        cmocka_unit_test(above_most_only_the_last_word_is_taken),
        cmocka_unit_test(who_finishes_still_listens),
        cmocka_unit_test(a_reference_keeps_it_past_both_ends),
        cmocka_unit_test(loops_that_end_run_what_is_under_way),
        cmocka_unit_test(without_memory_the_ends_still_meet),
        cmocka_unit_test(two_threads_meet_in_every_order),
        cmocka_unit_test(a_stream_between_threads_never_stalls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

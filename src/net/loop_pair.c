/* Invariants
 * - Whoever calls in for an end holds that end's reference, and every message under way holds one,
 *   so the pair outlives both. A post that fails gives back its own reference, never the last one.
 * - A lane is written by its end, except what is atomic and what the other end writes before it
 *   posts the message that hands it over.
 * - Only the sender adds to `under_way`, so a bound that it checks cannot be passed meanwhile.
 * - `note` and `last` are each posted at most once at a time: `note` by is_noted, `last` because
 *   loop_pair_finish and loop_pair_close say the last word only once. */
#include "net/loop_pair.h"

#include "base/check.h"
#include "base/mem.h"

enum {
    SIGNAL_BEGIN = 1u << (LOOP_PAIR_SIGNALS + 1),
    SIGNAL_DRAINED = 1u << LOOP_PAIR_SIGNALS,
    SIGNALS_OF_USERS = SIGNAL_DRAINED - 1,
};

static loop_pair_side other_of(loop_pair_side side)
{
    return side == LOOP_PAIR_NEAR ? LOOP_PAIR_FAR : LOOP_PAIR_NEAR;
}

static bool is_near(const loop_pair_lane *lane)
{
    return lane == &lane->pair->lanes[LOOP_PAIR_NEAR];
}

void loop_pair_ref(loop_pair *self)
{
    atomic_fetch_add(&self->references, 1);
}

void loop_pair_unref(loop_pair *self)
{
    if (atomic_fetch_sub(&self->references, 1) == 1) {
        loop_mailbox_unref(self->lanes[LOOP_PAIR_NEAR].mailbox);
        loop_mailbox_unref(self->lanes[LOOP_PAIR_FAR].mailbox);
        self->release(self);
    }
}

static bool post(loop_pair_lane *lane, loop_message *message)
{
    loop_pair *self = lane->pair;
    loop_pair_ref(self);
    if (loop_mailbox_post(lane->mailbox, message)) {
        return true;
    }
    loop_pair_unref(self);
    return false;
}

static bool signal_lane(loop_pair_lane *lane, unsigned signals)
{
    atomic_fetch_or(&lane->signals, signals);
    return atomic_exchange(&lane->is_noted, true) || post(lane, &lane->note);
}

/* Subtracts from what is under way on the lane. */
static void give_back(loop_pair_lane *lane, size_t cost)
{
    size_t left = atomic_fetch_sub(&lane->under_way, cost) - cost;
    if (left <= lane->events->resume && atomic_exchange(&lane->is_full, false)) {
        (void)signal_lane(&lane->pair->lanes[is_near(lane) ? LOOP_PAIR_FAR : LOOP_PAIR_NEAR],
                          SIGNAL_DRAINED);
    }
}

/* ---- what runs on the loop of the lane's end ------------------------------------------------- */

static void on_note(void *argument)
{
    loop_pair_lane *lane = argument;
    loop_pair *self = lane->pair;
    atomic_store(&lane->is_noted, false);
    unsigned signals = atomic_exchange(&lane->signals, 0);
    if ((signals & SIGNAL_BEGIN) != 0) {
        lane->events->begun(self);
    }
    if ((signals & SIGNAL_DRAINED) != 0 && !lane->is_closed && !lane->is_alone) {
        lane->events->drained(self);
    }
    if ((signals & SIGNALS_OF_USERS) != 0 && !lane->is_closed) {
        lane->events->signalled(self, signals & SIGNALS_OF_USERS);
    }
    loop_pair_unref(self);
}

static void hear_last(loop_pair_lane *lane, loop_pair_message *last)
{
    lane->is_alone = !lane->is_sender_listening;
    if (!lane->is_closed) {
        lane->events->closed(lane->pair, last);
    }
}

static void on_last(void *argument)
{
    loop_pair_lane *lane = argument;
    hear_last(lane, NULL);
    loop_pair_unref(lane->pair);
}

static void receive(loop_pair_lane *lane, loop_pair_message *message)
{
    if (lane->is_closed) {
        atomic_fetch_sub(&lane->under_way, message->cost);
        return;
    }
    if (lane->events->received(lane->pair, message) == BAY_ERR_AGAIN) {
        lane->is_slow = true;
    }
    if (lane->is_slow) {
        lane->held += message->cost;
    } else {
        give_back(lane, message->cost);
    }
}

static void on_message(loop_pair_lane *lane, loop_pair_message *message)
{
    if (message->is_last) {
        hear_last(lane, message);
    } else {
        receive(lane, message);
    }
    mem_free(message);
    loop_pair_unref(lane->pair);
}

static void on_near_message(void *argument)
{
    loop_pair_message *message = argument;
    on_message(&message->pair->lanes[LOOP_PAIR_NEAR], message);
}

static void on_far_message(void *argument)
{
    loop_pair_message *message = argument;
    on_message(&message->pair->lanes[LOOP_PAIR_FAR], message);
}

/* ---- what an end does ------------------------------------------------------------------------ */

/* Posts a message that has its own memory; false: the caller still has it. */
static bool post_message(loop_pair_lane *lane, loop_pair_message *message, size_t cost,
                         bool is_last)
{
    *message = (loop_pair_message){
        .post = {.function = is_near(lane) ? on_near_message : on_far_message, .argument = message},
        .pair = lane->pair,
        .cost = cost,
        .is_last = is_last};
    return post(lane, &message->post);
}

static void init_lane(loop_pair *self, loop_pair_side side, loop_mailbox *mailbox,
                      const loop_pair_events *events)
{
    loop_pair_lane *lane = &self->lanes[side];
    *lane = (loop_pair_lane){.pair = self,
                             .mailbox = loop_mailbox_ref(mailbox),
                             .events = events,
                             .note = {.function = on_note, .argument = lane},
                             .last = {.function = on_last, .argument = lane}};
    atomic_init(&lane->is_noted, false);
    atomic_init(&lane->signals, 0);
    atomic_init(&lane->under_way, 0);
    atomic_init(&lane->is_full, false);
}

void loop_pair_init(loop_pair *self, loop_mailbox *near, const loop_pair_events *near_events,
                    loop_mailbox *far, const loop_pair_events *far_events,
                    void (*release)(loop_pair *self))
{
    atomic_init(&self->references, 1); /* the near end's */
    self->release = release;
    init_lane(self, LOOP_PAIR_NEAR, near, near_events);
    init_lane(self, LOOP_PAIR_FAR, far, far_events);
    self->lanes[LOOP_PAIR_NEAR].is_alone = true; /* until loop_pair_begin */
}

bay_err loop_pair_begin(loop_pair *self)
{
    loop_pair_ref(self); /* the far end's */
    if (!signal_lane(&self->lanes[LOOP_PAIR_FAR], SIGNAL_BEGIN)) {
        loop_pair_unref(self);
        return BAY_ERR_CLOSED;
    }
    self->lanes[LOOP_PAIR_NEAR].is_alone = false;
    return BAY_OK;
}

bool loop_pair_has_room(const loop_pair *self, loop_pair_side to, size_t cost)
{
    const loop_pair_lane *lane = &self->lanes[to];
    size_t most = lane->events->most;
    size_t under_way = atomic_load(&lane->under_way);
    return most == 0 || cost == 0 || under_way == 0 || (cost <= most && under_way <= most - cost);
}

bay_err loop_pair_post(loop_pair *self, loop_pair_side to, loop_pair_message *message, size_t cost)
{
    loop_pair_lane *lane = &self->lanes[to];
    const loop_pair_lane *sender = &self->lanes[other_of(to)];
    CHECK(!sender->is_closed && !sender->has_finished);
    bool has_room = loop_pair_has_room(self, to, cost);
    if (sender->is_alone || !has_room) {
        mem_free(message);
        return sender->is_alone ? BAY_ERR_CLOSED : BAY_ERR_LIMIT;
    }
    size_t under_way = atomic_fetch_add(&lane->under_way, cost) + cost;
    if (!post_message(lane, message, cost, false)) {
        atomic_fetch_sub(&lane->under_way, cost);
        mem_free(message);
        return BAY_ERR_CLOSED;
    }
    if (lane->events->window == 0 || cost == 0 || under_way < lane->events->window) {
        return BAY_OK;
    }
    atomic_store(&lane->is_full, true);
    /* the other end may have taken all of it before it could see that */
    bool is_clear = atomic_load(&lane->under_way) <= lane->events->resume &&
                    atomic_exchange(&lane->is_full, false);
    return is_clear ? BAY_OK : BAY_ERR_AGAIN;
}

void loop_pair_signal(loop_pair *self, loop_pair_side to, unsigned signals)
{
    const loop_pair_lane *sender = &self->lanes[other_of(to)];
    CHECK(!sender->is_closed && (signals & ~(unsigned)SIGNALS_OF_USERS) == 0);
    if (!sender->is_alone) {
        (void)signal_lane(&self->lanes[to], signals); /* closed: nobody gets it */
    }
}

void loop_pair_resume(loop_pair *self, loop_pair_side side)
{
    loop_pair_lane *lane = &self->lanes[side];
    size_t held = lane->held;
    lane->is_slow = false;
    lane->held = 0;
    if (held > 0) {
        give_back(lane, held);
    }
}

bool loop_pair_finish(loop_pair *self, loop_pair_side side)
{
    loop_pair_lane *lane = &self->lanes[side];
    loop_pair_lane *to = &self->lanes[other_of(side)];
    CHECK(!lane->is_closed && !lane->has_finished);
    if (lane->is_alone) {
        return false;
    }
    lane->has_finished = true;
    to->is_sender_listening = true;
    return post(to, &to->last);
}

void loop_pair_close(loop_pair *self, loop_pair_side side, loop_pair_message *last)
{
    loop_pair_lane *lane = &self->lanes[side];
    CHECK(!lane->is_closed);
    lane->is_closed = true;
    loop_pair_lane *to = &self->lanes[other_of(side)];
    bool is_said = lane->is_alone || lane->has_finished;
    if (last == NULL && !is_said) {
        (void)post(to, &to->last); /* its mailbox is closed: nobody gets it */
    } else if (last != NULL && (is_said || !post_message(to, last, 0, true))) {
        mem_free(last);
    }
    loop_pair_unref(self);
}

void *loop_pair_user(const loop_pair *self, loop_pair_side side)
{
    return loop_mailbox_user(self->lanes[side].mailbox);
}

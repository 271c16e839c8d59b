/* What a door saw (call/call.h): each call_admit and each call_over with its principal, and whether
 * an upstream or a handler was reached before the door had decided. The door may be on another
 * thread. One watch for each test program. */
#ifndef SUPPORT_DOOR_WATCH_H
#define SUPPORT_DOOR_WATCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "call/call.h"

#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum { WATCH_CALLS = 256, WATCH_GIVE_UP = 10000 };

typedef struct watched_call {
    const call_context *call; /* its address: two passes of one call have the same */
    call_protocol protocol;
    call_kind kind;
    call_state state;
    call_outcome how; /* of an end */
    char method[64];
    char shown[128];
    char who[192]; /* principal_identity */
} watched_call;

typedef struct watched_calls {
    watched_call at[WATCH_CALLS];
    int count;
} watched_calls;

static struct {
    pthread_mutex_t lock;
    watched_calls asked; /* call_admit reached the guard */
    watched_calls over;
    bool (*says)(const call_context *call); /* NULL: every call may go */
    atomic_int *effects;                    /* what reached an upstream or a handler; NULL: none */
    int effects_before;
    bool was_early;   /* there was an effect before the guard was asked */
    bool skips_lists; /* agents made of tools read these for their cards, whenever it is time */
} door_seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static inline int watch_effects(void)
{
    return door_seen.effects != NULL ? atomic_load(door_seen.effects) : 0;
}

static inline void watch_note(watched_calls *in, const call_context *call, call_outcome how)
{
    if (in->count < WATCH_CALLS) {
        watched_call *one = &in->at[in->count++];
        *one = (watched_call){.call = call,
                              .protocol = call->protocol,
                              .kind = call->kind,
                              .state = call->state,
                              .how = how};
        (void)snprintf(one->method, sizeof(one->method), "%.*s", BAY_STR(call->method));
        (void)snprintf(one->shown, sizeof(one->shown), "%.*s", BAY_STR(call->shown));
        (void)snprintf(one->who, sizeof(one->who), "%.*s",
                       BAY_STR(principal_identity(call->principal)));
    }
}

static inline bool watch_skips(const call_context *call)
{
    return door_seen.skips_lists && call->kind == CALL_LIST && call->principal == NULL;
}

static inline bool watch_guard(void *user, const call_context *call, call_refusal *out)
{
    (void)user;
    (void)out;
    if (watch_skips(call)) {
        return true;
    }
    pthread_mutex_lock(&door_seen.lock);
    watch_note(&door_seen.asked, call, CALL_RESULT);
    door_seen.was_early = door_seen.was_early || watch_effects() != door_seen.effects_before;
    bool may_go = door_seen.says == NULL || door_seen.says(call);
    pthread_mutex_unlock(&door_seen.lock);
    return may_go;
}

static inline void watch_record(void *user, const call_context *call, call_outcome how)
{
    (void)user;
    if (!watch_skips(call)) {
        pthread_mutex_lock(&door_seen.lock);
        watch_note(&door_seen.over, call, how);
        pthread_mutex_unlock(&door_seen.lock);
    }
}

/* Before the door's loop runs, or while it stands still. */
static inline void watch_door(call_door *door)
{
    door->guard = watch_guard;
    door->record = watch_record;
}

static inline bool watch_says_no(const call_context *call)
{
    (void)call;
    return false;
}

/* Forgets what was seen so far. */
static inline void watch_begin(bool (*says)(const call_context *call))
{
    pthread_mutex_lock(&door_seen.lock);
    door_seen.asked.count = door_seen.over.count = 0;
    door_seen.says = says;
    door_seen.effects_before = watch_effects();
    door_seen.was_early = false;
    pthread_mutex_unlock(&door_seen.lock);
}

static inline int watch_count(const watched_calls *of)
{
    pthread_mutex_lock(&door_seen.lock);
    int count = of->count;
    pthread_mutex_unlock(&door_seen.lock);
    return count;
}

/* Did the latest call that is over end so? */
static inline bool watch_is_refused(void)
{
    pthread_mutex_lock(&door_seen.lock);
    int count = door_seen.over.count;
    bool is_refused = count > 0 && door_seen.over.at[count - 1].how == CALL_TURNED_AWAY;
    pthread_mutex_unlock(&door_seen.lock);
    return is_refused;
}

/* Until so many calls are over, for the answer may come before its record. */
static inline void watch_wait_over(int count)
{
    for (int i = 0; i < WATCH_GIVE_UP && watch_count(&door_seen.over) < count; i++) {
        poll(NULL, 0, 1);
    }
}

/* The calls of this protocol among those seen. */
static inline int watch_count_of(const watched_calls *of, call_protocol protocol)
{
    int count = 0;
    pthread_mutex_lock(&door_seen.lock);
    for (int i = 0; i < of->count; i++) {
        count += of->at[i].protocol == protocol;
    }
    pthread_mutex_unlock(&door_seen.lock);
    return count;
}

/* Until there are so many of this protocol: a task calls its tools after its answer. */
static inline void watch_wait_for(const watched_calls *of, call_protocol protocol, int count)
{
    for (int i = 0; i < WATCH_GIVE_UP && watch_count_of(of, protocol) < count; i++) {
        poll(NULL, 0, 1);
    }
}

static inline void watch_print(void)
{
    static const char *const ends[] = {"result", "error", "refused", "cancelled"};
    for (int i = 0; i < door_seen.asked.count; i++) {
        const watched_call *one = &door_seen.asked.at[i];
        print_error("  asked: %s \"%s\" by <%s>\n", one->method, one->shown, one->who);
    }
    for (int i = 0; i < door_seen.over.count; i++) {
        const watched_call *one = &door_seen.over.at[i];
        print_error("  over:  %s \"%s\" by <%s>: %s\n", one->method, one->shown, one->who,
                    ends[one->how]);
    }
}

#endif

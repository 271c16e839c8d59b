/* Callers of an A2A service on loops of the test's own thread: what they are told, as text. */
#ifndef SUPPORT_A2A_CALLERS_H
#define SUPPORT_A2A_CALLERS_H

#include <stdio.h>
#include <string.h>

#include "a2a/service.h"
#include "base/check.h"
#include "net/loop.h"

enum { CALLER_TURNS = 20000, CALLER_TURN_MS = 1, CALLER_TEXT_BYTES = 64 << 10 };

typedef struct caller {
    a2a_call call; /* first */
    arena memory;
    json_doc params;
    int ended;
    int events;
    char text[CALLER_TEXT_BYTES]; /* what it was told: results and events, or the fault */
} caller;

static inline void caller_told(caller *self, bay_str text)
{
    size_t len = strlen(self->text);
    (void)snprintf(self->text + len, sizeof(self->text) - len, "%.*s\n", BAY_STR(text));
}

static inline void caller_result(a2a_call *call, bay_str json)
{
    caller *self = CONTAINER_OF(call, caller, call);
    self->ended++;
    caller_told(self, json);
}

static inline bay_err caller_event(a2a_call *call, a2a_event *event)
{
    caller *self = CONTAINER_OF(call, caller, call);
    self->events++;
    caller_told(self, a2a_event_json(event));
    return BAY_OK;
}

static inline void caller_end(a2a_call *call)
{
    CONTAINER_OF(call, caller, call)->ended++;
}

static inline void caller_fail(a2a_call *call, const a2a_fault *fault)
{
    caller *self = CONTAINER_OF(call, caller, call);
    char text[A2A_FAULT_BYTES + 32];
    self->ended++;
    (void)snprintf(text, sizeof(text), "fault %d %s", fault->error, fault->text);
    caller_told(self, str_of(text));
}

static inline bay_str caller_field(a2a_call *call, bay_str name)
{
    (void)call;
    (void)name;
    return (bay_str){NULL, 0};
}

static const a2a_call_ops caller_ops = {caller_result, caller_event, caller_end, caller_fail,
                                        caller_field};

/* `params` with apostrophes for quotation marks. */
static inline void caller_begin(caller *self, a2a_service *service, const auth_principal *who,
                                a2a_method method, const char *params)
{
    char text[4096];
    bay_str kept;
    (void)snprintf(text, sizeof(text), "%s", params);
    for (char *at = text; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    memset(self, 0, sizeof(*self));
    arena_init(&self->memory, 1 << 20);
    CHECK(arena_dup(&self->memory, str_of(text), &kept) == BAY_OK);
    CHECK(json_parse(&self->params, kept, NULL, &self->memory, NULL) == BAY_OK);
    self->call = (a2a_call){.ops = &caller_ops,
                            .method = method,
                            .version = A2A_1_0,
                            .params = json_root(&self->params),
                            .principal = who,
                            .tenant = STR(""),
                            .extensions = STR(""),
                            .traceparent = STR(""),
                            .memory = &self->memory};
    a2a_service_call(service, &self->call);
}

/* Turns these loops until `count` has come so far. */
static inline void callers_turn(loop *const *loops, size_t loop_count, const int *count, int wanted)
{
    for (int i = 0; i < CALLER_TURNS && *count < wanted; i++) {
        for (size_t k = 0; k < loop_count; k++) {
            loop_turn(loops[k], k == 0 ? CALLER_TURN_MS : 0);
        }
    }
    CHECK(*count >= wanted);
}

/* Until it was ended, once. */
static inline void caller_finish(caller *self, loop *const *loops, size_t loop_count)
{
    callers_turn(loops, loop_count, &self->ended, 1);
    CHECK(self->ended == 1);
    arena_fini(&self->memory);
}

#endif

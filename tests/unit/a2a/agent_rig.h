/* An agent engine under test: calls that note what they are told, a handler that the test writes, a
 * clock that the test turns, and a persister that confirms when it is told to. */
#ifndef TESTS_AGENT_RIG_H
#define TESTS_AGENT_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "a2a/agent.h" /* before cmocka's macro `fail` */

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/list.h"
#include "base/mem.h"
#include "support/literal_json.h"
#include "support/people.h"

PEOPLE_FROM_THE_START

enum { RIG_EVENTS = 256, RIG_PUTS = 64, RIG_PUSHES = 64, RIG_BLOCKS = 512 };
#define RIG_NOW UINT64_C(1700000000000) /* 2023-11-14T22:13:20Z */

typedef struct rig rig;

/* A call and all that it was told; events as their JSON. */
typedef struct told {
    a2a_call call;
    rig *of;
    arena memory;
    json_doc doc;
    char *text;   /* of the params */
    char *result; /* NULL: none */
    a2a_fault fault;
    int ended; /* results, failures and ends together: one */
    size_t event_count;
    char *events[RIG_EVENTS];
    uint64_t sequences[RIG_EVENTS];
    bool is_last[RIG_EVENTS];
    const a2a_event *last; /* to see that all get the same one; it may be gone */
    bay_err says;          /* to the next events */
    bool awaits_drain;
    bool is_unwilling;
    void (*on_result)(struct told *self);
    struct told *inner; /* a call that on_result made */
} told;

typedef struct kept_block {
    uint64_t overflow;
    uint32_t number;
    size_t len;
    char *bytes;
} kept_block;

typedef struct kept_row {
    char *id;
    char *row;
    size_t row_len;
    size_t block_count;
    kept_block blocks[RIG_BLOCKS];
    size_t event_count;
    a2a_event *events[RIG_EVENTS];
} kept_row;

typedef struct open_put {
    void (*kept)(void *user, bay_err err);
    void *user;
} open_put;

struct rig {
    a2a_agent *agent;
    a2a_agent_options options;
    a2a_handler handler;
    a2a_persistence persistence;
    uint64_t now_ms;
    uint64_t wake_ms;
    unsigned ids;
    /* The handler. */
    void (*turn)(rig *self, a2a_turn *turn);
    void (*canceled)(rig *self, a2a_turn *turn);
    a2a_turn *held; /* the last one that `hold` took */
    int turns;
    int cancels;
    /* What was pushed. */
    int pushes;
    char *pushed[RIG_PUSHES];
    bay_err url_says;
    /* The persister. */
    bool is_keeping; /* confirms at once */
    bay_err keep_says;
    bay_err put_says;
    kept_row rows[RIG_PUTS];
    size_t row_count;
    open_put puts[RIG_PUTS];
    size_t put_count;
    uint64_t written; /* bytes of rows and blocks */
    int removed;
};

/* ---- calls */

static inline char *rig_copy(bay_str text)
{
    char *copy = malloc(text.len + 1);
    CHECK(copy != NULL);
    if (text.len > 0) {
        memcpy(copy, text.at, text.len);
    }
    copy[text.len] = '\0';
    return copy;
}

static inline void told_result(a2a_call *call, bay_str json)
{
    told *self = (told *)call;
    self->ended++;
    self->result = rig_copy(json);
    if (self->on_result != NULL) {
        self->on_result(self);
    }
}

static inline bay_err told_event(a2a_call *call, a2a_event *event)
{
    told *self = (told *)call;
    CHECK(self->ended == 0 && self->event_count < RIG_EVENTS && !self->awaits_drain);
    if (self->says == BAY_ERR_CLOSED) {
        return BAY_ERR_CLOSED;
    }
    self->events[self->event_count] = rig_copy(a2a_event_json(event));
    self->sequences[self->event_count] = a2a_event_sequence(event);
    self->is_last[self->event_count++] = a2a_event_is_last(event);
    self->last = event;
    self->awaits_drain = self->says == BAY_ERR_AGAIN;
    if (self->event_count == 1) { /* a stream's request is gone with its first event */
        call->params = JSON_NONE;
        call->tenant = call->extensions = call->traceparent = (bay_str){"", 0};
        call->memory = NULL;
        arena_fini(&self->memory);
        arena_init(&self->memory, 1);
    }
    return self->says;
}

static inline void told_end(a2a_call *call)
{
    ((told *)call)->ended++;
}

static inline void told_fail(a2a_call *call, const a2a_fault *fault)
{
    told *self = (told *)call;
    self->ended++;
    self->fault = *fault;
}

static inline bay_str told_field(a2a_call *call, bay_str name)
{
    (void)call;
    return str_eq(name, STR("tracestate")) ? STR("a=1,b=2") : (bay_str){NULL, 0};
}

static const a2a_call_ops told_ops = {told_result, told_event, told_end, told_fail, told_field};

/* Made, not started. `params`: 1.0. */
static inline told *rig_call(rig *self, a2a_method method, const char *params)
{
    told *call = calloc(1, sizeof(*call));
    CHECK(call != NULL);
    call->of = self;
    call->text = rig_copy(str_of(params));
    arena_init(&call->memory, 1 << 20);
    if (json_parse(&call->doc, str_of(call->text), NULL, &call->memory, NULL) != BAY_OK) {
        arena_fini(&call->memory); /* out of memory: the sweep's affair */
        free(call->text);
        free(call);
        return NULL;
    }
    call->call = (a2a_call){.ops = &told_ops,
                            .method = method,
                            .version = A2A_1_0,
                            .params = json_root(&call->doc),
                            .tenant = {"", 0},
                            .principal = person("ann"),
                            .extensions = {"", 0},
                            .traceparent = {"", 0},
                            .memory = &call->memory};
    return call;
}

static inline void rig_start(told *call)
{
    a2a_service *service = a2a_agent_service(call->of->agent);
    service->call(service, &call->call);
}

static inline told *rig_ask(rig *self, a2a_method method, const char *params)
{
    told *call = rig_call(self, method, params);
    if (call != NULL) {
        rig_start(call);
    }
    return call;
}

static inline void rig_leave(told *call)
{
    a2a_service *service = a2a_agent_service(call->of->agent);
    call->call.is_gone = true;
    service->gone(service, &call->call);
}

static inline void rig_drain(told *call)
{
    a2a_service *service = a2a_agent_service(call->of->agent);
    call->says = BAY_OK;
    call->awaits_drain = false;
    service->drained(service, &call->call);
}

static inline void told_free(told *self)
{
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < self->event_count; i++) {
        free(self->events[i]);
    }
    arena_fini(&self->memory);
    free(self->result);
    free(self->text);
    free(self);
}

/* ---- the handler */

static inline json_val rig_json(const char *text, json_doc *doc, arena *memory)
{
    arena_init(memory, SIZE_MAX);
    return json_parse(doc, str_of(text), NULL, memory, NULL) == BAY_OK ? json_root(doc) : JSON_NONE;
}

/* With a message of that text; NULL: none. */
static inline bay_err rig_status(a2a_turn *turn, a2a_state state, const char *words)
{
    char text[512];
    json_doc doc;
    arena memory;
    snprintf(text, sizeof(text), "{\"parts\":[{\"text\":\"%s\"}]}", words != NULL ? words : "");
    json_val message = rig_json(text, &doc, &memory);
    bay_err err =
        words != NULL && json_kind_of(message) == JSON_MISSING
            ? BAY_ERR_NOMEM
            : a2a_turn_status(turn, state, words != NULL ? message : JSON_NONE, JSON_NONE);
    arena_fini(&memory);
    return err;
}

static inline bay_err rig_reply(a2a_turn *turn, const char *words)
{
    char text[512];
    json_doc doc;
    arena memory;
    snprintf(text, sizeof(text), "{\"parts\":[{\"text\":\"%s\"}]}", words);
    json_val message = rig_json(text, &doc, &memory);
    bay_err err =
        json_kind_of(message) == JSON_MISSING ? BAY_ERR_NOMEM : a2a_turn_reply(turn, message);
    arena_fini(&memory);
    return err;
}

static inline bay_err rig_artifact(a2a_turn *turn, const char *id, const char *words, bool append,
                                   bool is_last)
{
    char text[512];
    json_doc doc;
    arena memory;
    snprintf(text, sizeof(text),
             "{\"artifactId\":\"%s\",\"name\":\"n\",\"parts\":[{\"text\":\"%s\"}]}", id, words);
    json_val artifact = rig_json(text, &doc, &memory);
    bay_err err = json_kind_of(artifact) == JSON_MISSING
                      ? BAY_ERR_NOMEM
                      : a2a_turn_artifact(turn, artifact, append, is_last);
    arena_fini(&memory);
    return err;
}

/* Keeps the turn for the test. */
static inline void rig_hold(rig *self, a2a_turn *turn)
{
    a2a_turn_unref(self->held);
    self->held = a2a_turn_ref(turn);
}

static inline void rig_complete(rig *self, a2a_turn *turn)
{
    (void)self;
    err_ignore(rig_status(turn, A2A_COMPLETED, "done"));
    a2a_turn_end(turn);
}

static inline void rig_on_turn(void *user, a2a_turn *turn)
{
    rig *self = user;
    self->turns++;
    self->turn(self, turn);
}

static inline void rig_on_canceled(void *user, a2a_turn *turn)
{
    rig *self = user;
    self->cancels++;
    if (self->canceled != NULL) {
        self->canceled(self, turn);
    }
}

static inline void rig_on_push(void *user, bay_str principal, json_val config, a2a_form form,
                               a2a_event *event, bay_str task)
{
    rig *self = user;
    char text[2048];
    bay_str json = a2a_event_json(event);
    bay_str raw = json_raw(config);
    CHECK(self->pushes < RIG_PUSHES);
    snprintf(text, sizeof(text), "%.*s|%d|%.*s|%.*s|%s", (int)principal.len, principal.at,
             (int)form, (int)raw.len, raw.at, (int)json.len, json.at, task.len > 0 ? "task" : "");
    self->pushed[self->pushes++] = rig_copy(str_of(text));
}

static inline bay_err rig_on_url(void *user, bay_str url, a2a_fault *fault)
{
    (void)url;
    (void)fault;
    return ((rig *)user)->url_says;
}

/* ---- the persister */

/* A block in its place, by overflow and number. */
static inline void rig_store_block(kept_row *at, const a2a_overflow_block *block)
{
    size_t i = 0;
    while (i < at->block_count &&
           (at->blocks[i].overflow < block->overflow ||
            (at->blocks[i].overflow == block->overflow && at->blocks[i].number < block->number))) {
        i++;
    }
    bool is_there = i < at->block_count && at->blocks[i].overflow == block->overflow &&
                    at->blocks[i].number == block->number;
    if (is_there) {
        free(at->blocks[i].bytes);
    } else {
        CHECK(at->block_count < RIG_BLOCKS);
        memmove(at->blocks + i + 1, at->blocks + i, (at->block_count - i) * sizeof(kept_block));
        at->block_count++;
    }
    at->blocks[i] =
        (kept_block){block->overflow, block->number, block->bytes.len, rig_copy(block->bytes)};
}

static inline void rig_drop_overflow(kept_row *at, uint64_t overflow)
{
    size_t left = 0;
    for (size_t i = 0; i < at->block_count; i++) {
        if (at->blocks[i].overflow == overflow) {
            free(at->blocks[i].bytes);
        } else {
            at->blocks[left++] = at->blocks[i];
        }
    }
    at->block_count = left;
}

static inline void rig_store(rig *self, const a2a_put *put)
{
    kept_row *at = NULL;
    for (size_t i = 0; i < self->row_count; i++) {
        if (str_eq(str_of(self->rows[i].id), put->id)) {
            at = &self->rows[i];
        }
    }
    if (at == NULL) {
        CHECK(self->row_count < RIG_PUTS);
        at = &self->rows[self->row_count++];
        at->id = rig_copy(put->id);
    }
    free(at->row);
    at->row = rig_copy(put->row);
    at->row_len = put->row.len;
    for (size_t i = 0; i < put->block_count; i++) {
        rig_store_block(at, &put->blocks[i]);
        self->written += put->blocks[i].bytes.len;
    }
    for (size_t i = 0; i < put->gone_count; i++) {
        rig_drop_overflow(at, put->gone[i]);
    }
    self->written += put->row.len;
    for (size_t i = 0; i < put->event_count; i++) {
        CHECK(at->event_count < RIG_EVENTS);
        at->events[at->event_count++] = a2a_event_ref(put->events[i]);
    }
}

static inline bay_err rig_put(a2a_persistence *persistence, const a2a_put *put,
                              void (*kept)(void *user, bay_err err), void *user)
{
    rig *self = CONTAINER_OF(persistence, rig, persistence);
    if (self->put_says != BAY_OK) {
        return self->put_says;
    }
    if (self->keep_says == BAY_OK) {
        rig_store(self, put);
    }
    if (self->is_keeping) {
        kept(user, self->keep_says);
        return BAY_OK;
    }
    CHECK(self->put_count < RIG_PUTS);
    self->puts[self->put_count++] = (open_put){kept, user};
    return BAY_OK;
}

/* What was kept of a task, to an agent. */
static inline bay_err rig_restore(rig *self, const kept_row *from, bool may_resume)
{
    a2a_overflow_block blocks[RIG_BLOCKS];
    for (size_t i = 0; i < from->block_count; i++) {
        const kept_block *block = &from->blocks[i];
        blocks[i] =
            (a2a_overflow_block){block->overflow, block->number, {block->bytes, block->len}};
    }
    const a2a_kept_task kept = {.row = {from->row, from->row_len},
                                .blocks = blocks,
                                .block_count = from->block_count,
                                .events = from->events,
                                .event_count = from->event_count};
    return a2a_agent_restore(self->agent, &kept, may_resume);
}

static inline void rig_remove(a2a_persistence *persistence, bay_str id)
{
    (void)id;
    CONTAINER_OF(persistence, rig, persistence)->removed++;
}

/* Confirms what is open; how many that were. */
static inline size_t rig_confirm(rig *self, bay_err err)
{
    size_t count = self->put_count;
    open_put puts[RIG_PUTS];
    memcpy(puts, self->puts, sizeof(puts));
    self->put_count = 0;
    for (size_t i = 0; i < count; i++) {
        puts[i].kept(puts[i].user, err);
    }
    return count;
}

/* ---- the rig */

static inline uint64_t agent_rig_now(void *user)
{
    return ((rig *)user)->now_ms;
}

static inline void rig_id(void *user, char out[37])
{
    snprintf(out, 37, "00000000-0000-4000-8000-%012u", ++((rig *)user)->ids);
}

static inline void rig_wake(void *user, uint64_t at_ms)
{
    ((rig *)user)->wake_ms = at_ms;
}

static const a2a_persistence_ops rig_persistence_ops = {rig_put, rig_remove};

/* Read on first use: before allocations are made to fail. */
static inline json_val rig_card(void)
{
    static const char text[] =
        "{\"name\":\"x\",\"capabilities\":{\"streaming\":true,\"pushNotifications\":true,"
        "\"extendedAgentCard\":true},\"defaultInputModes\":[\"text/plain\",\"application/*\"]}";
    return literal_json(text);
}

static inline rig *rig_plain(void)
{
    rig *self = calloc(1, sizeof(*self));
    CHECK(self != NULL);
    self->now_ms = RIG_NOW;
    self->turn = rig_complete;
    self->is_keeping = true;
    self->persistence.ops = &rig_persistence_ops;
    self->handler = (a2a_handler){rig_on_turn, rig_on_canceled, rig_on_push, rig_on_url};
    self->options = (a2a_agent_options){.handler = &self->handler,
                                        .user = self,
                                        .card = rig_card(),
                                        .extended_card = {"", 0},
                                        .now = agent_rig_now,
                                        .id = rig_id,
                                        .wake = rig_wake};
    return self;
}

static inline void rig_open(rig *self)
{
    assert_int_equal(a2a_agent_new(&self->options, &self->agent), BAY_OK);
}

static inline rig *rig_new(void)
{
    rig *self = rig_plain();
    rig_open(self);
    return self;
}

static inline rig *rig_new_keeping(void)
{
    rig *self = rig_plain();
    self->options.persistence = &self->persistence;
    rig_open(self);
    return self;
}

static inline void rig_close(rig *self)
{
    a2a_agent_free(self->agent);
    self->agent = NULL;
    rig_confirm(self, BAY_ERR_CANCELLED);
}

static inline void rig_free(rig *self)
{
    if (self->agent != NULL) {
        rig_close(self);
    }
    a2a_turn_unref(self->held);
    for (size_t i = 0; i < self->row_count; i++) {
        free(self->rows[i].id);
        free(self->rows[i].row);
        for (size_t k = 0; k < self->rows[i].block_count; k++) {
            free(self->rows[i].blocks[k].bytes);
        }
        for (size_t k = 0; k < self->rows[i].event_count; k++) {
            a2a_event_unref(self->rows[i].events[k]);
        }
    }
    for (int i = 0; i < self->pushes; i++) {
        free(self->pushed[i]);
    }
    free(self);
}

/* Another agent over the same rows. */
static inline void rig_restart(rig *self, bool may_resume)
{
    rig_close(self);
    a2a_turn_unref(self->held);
    self->held = NULL;
    rig_open(self);
    for (size_t i = 0; i < self->row_count; i++) {
        assert_int_equal(rig_restore(self, &self->rows[i], may_resume), BAY_OK);
    }
}

/* ---- asking */

#define RIG_MESSAGE(id, more)                                                                      \
    "{\"message\":{\"messageId\":\"" id                                                            \
    "\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"hi\"}]" more "}}"

static inline told *rig_send(rig *self, const char *params)
{
    return rig_ask(self, A2A_SEND_MESSAGE, params);
}

static inline told *rig_stream(rig *self, const char *params)
{
    return rig_ask(self, A2A_SEND_STREAMING_MESSAGE, params);
}

/* "taskId" of the first task that the rig's ids give: contexts and tasks take one each. */
static inline const char *rig_format(char *out, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out, size, format, arguments);
    va_end(arguments);
    return out;
}

static inline bool holds(const char *text, const char *what)
{
    bool has = text != NULL && strstr(text, what) != NULL;
    if (!has) {
        print_error("'%s' is not in '%s'\n", what, text != NULL ? text : "(nothing)");
    }
    return has;
}

#define assert_holds(text, what) assert_true(holds((text), (what)))
#define assert_lacks(text, what) assert_null(strstr((text), (what)))
#define assert_failed(call, code)                                                                  \
    do {                                                                                           \
        assert_int_equal((call)->ended, 1);                                                        \
        assert_null((call)->result);                                                               \
        if ((call)->fault.error != (code)) {                                                       \
            fail_msg("%d, not %d: %s", (int)(call)->fault.error, (int)(code), (call)->fault.text); \
        }                                                                                          \
    } while (0)
#define assert_answered(call)                                                                      \
    do {                                                                                           \
        assert_int_equal((call)->ended, 1);                                                        \
        if ((call)->result == NULL) {                                                              \
            fail_msg("%d: %s", (int)(call)->fault.error, (call)->fault.text);                      \
        }                                                                                          \
    } while (0)

/* Asks, looks at the failure, forgets. */
#define assert_refused(self, method, params, code)                                                 \
    do {                                                                                           \
        told *refused = rig_ask((self), (method), (params));                                       \
        assert_failed(refused, (code));                                                            \
        told_free(refused);                                                                        \
    } while (0)

/* "…0001" of the rig. */
#define TASK_1 "00000000-0000-4000-8000-000000000001"
#define CONTEXT_1 "00000000-0000-4000-8000-000000000002"

#endif

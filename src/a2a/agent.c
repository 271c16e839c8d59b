/* The agent engine: creation, entry, ticks, end. agent_internal.h describes it. */
#include "a2a/agent_internal.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/rand.h"

const a2a_agent_limits a2a_agent_default_limits = {
    .tasks = 100000,
    .running = 10000,
    .waiting = 16,
    .task_bytes = 32 << 20,
    .total_bytes = 1 << 30,
    .history = 1000,
    .artifacts = 1000,
    .subscribers = 10000,
    .push_configs = 100,
    .replay_events = 1000,
    .replay_bytes = 1 << 20,
    .replay_total_bytes = 8 << 20,
    .task_ttl_ms = UINT64_C(7) * 24 * 3600 * 1000,
    .deduplicate_ms = 600000,
};

/* ---- entering and leaving */

void agent_enter(a2a_agent *self)
{
    self->depth++;
}

/* Flushing may mark more tasks, also the same one; callbacks that call in are at a depth above zero
 * and leave what they marked to this loop. */
void agent_leave(a2a_agent *self)
{
    if (self->depth == 1) {
        for (list_link *link; (link = list_pop(&self->work)) != NULL;) {
            agent_flush(CONTAINER_OF(link, agent_task, in_work));
        }
    }
    self->depth--;
}

/* It never goes back, so that the newest change always has the latest time. */
uint64_t agent_now(a2a_agent *self)
{
    uint64_t now_ms = self->options.now(self->options.user);
    if (now_ms > self->last_ms) {
        self->last_ms = now_ms;
    }
    return self->last_ms;
}

void agent_wake_at(a2a_agent *self, uint64_t at_ms)
{
    if (self->woken_at_ms == 0 || at_ms < self->woken_at_ms) {
        self->woken_at_ms = at_ms;
        self->options.wake(self->options.user, at_ms);
    }
}

#define PAIRS(half)                                                                                \
    half "0" half "1" half "2" half "3" half "4" half "5" half "6" half "7" half "8" half "9" half \
         "a" half "b" half "c" half "d" half "e" half "f"
static const char pairs[] =
    PAIRS("0") PAIRS("1") PAIRS("2") PAIRS("3") PAIRS("4") PAIRS("5") PAIRS("6") PAIRS("7")
        PAIRS("8") PAIRS("9") PAIRS("a") PAIRS("b") PAIRS("c") PAIRS("d") PAIRS("e") PAIRS("f");
#undef PAIRS

/* RFC 9562 version 4. */
void agent_make_id(a2a_agent *self, char out[37])
{
    if (self->options.id != NULL) {
        self->options.id(self->options.user, out);
        return;
    }
    if (self->random_left < 16) {
        rand_bytes(self->random, sizeof(self->random));
        self->random_left = sizeof(self->random);
    }
    self->random_left -= 16;
    unsigned char *bits = self->random + self->random_left;
    bits[6] = (unsigned char)((bits[6] & 0x0f) | 0x40);
    bits[8] = (unsigned char)((bits[8] & 0x3f) | 0x80);
    static const unsigned char places[16] = {0,  2,  4,  6,  9,  11, 14, 16,
                                             19, 21, 24, 26, 28, 30, 32, 34};
    for (size_t i = 0; i < 16; i++) {
        memcpy(out + places[i], pairs + 2 * (size_t)bits[i], 2);
    }
    out[8] = out[13] = out[18] = out[23] = '-';
    out[36] = '\0';
    memset(bits, 0, 16);
}

/* A table of many tasks is not in the cache: the slot of each new one is prefetched during the
 * request before it, so its id has to be known by then. */
uint64_t agent_make_task_id(a2a_agent *self, char out[37])
{
    if (self->options.id != NULL || self->next_id[0] == '\0') {
        agent_make_id(self, out);
    } else {
        memcpy(out, self->next_id, sizeof(self->next_id));
    }
    uint64_t hash =
        self->next_id[0] != '\0' ? self->next_hash : map_hash(&self->tasks, (bay_str){out, 36});
    if (self->options.id == NULL) {
        agent_make_id(self, self->next_id);
        self->next_hash = map_hash(&self->tasks, (bay_str){self->next_id, 36});
        map_warm(&self->tasks, self->next_hash);
    }
    return hash;
}

/* The agent's own buffer, unless it is in use: callbacks may call in again. */
buf agent_buffer(a2a_agent *self)
{
    buf taken = self->buffer;
    buf_init(&self->buffer, taken.max);
    buf_clear(&taken);
    return taken;
}

void agent_buffer_back(a2a_agent *self, buf *buffer)
{
    if (self->buffer.at == NULL && buffer->cap <= AGENT_BUFFER_KEPT) {
        self->buffer = *buffer;
        buf_clear(&self->buffer);
    } else {
        buf_fini(buffer);
    }
}

/* ---- the service */

typedef void (*agent_method)(a2a_agent *self, a2a_call *call);

static const agent_method methods[A2A_METHODS] = {
    [A2A_SEND_MESSAGE] = agent_send,
    [A2A_SEND_STREAMING_MESSAGE] = agent_send,
    [A2A_GET_TASK] = agent_get,
    [A2A_LIST_TASKS] = agent_list,
    [A2A_CANCEL_TASK] = agent_cancel,
    [A2A_SUBSCRIBE_TO_TASK] = agent_subscribe,
    [A2A_CREATE_PUSH_CONFIG] = agent_create_config,
    [A2A_GET_PUSH_CONFIG] = agent_get_config,
    [A2A_LIST_PUSH_CONFIGS] = agent_list_configs,
    [A2A_DELETE_PUSH_CONFIG] = agent_delete_config,
    [A2A_GET_EXTENDED_CARD] = agent_extended_card,
};

static void service_call(a2a_service *service, a2a_call *call)
{
    a2a_agent *self = CONTAINER_OF(service, a2a_agent, service);
    unsigned flags = a2a_methods[call->method].flags;
    call->user = NULL;
    agent_enter(self);
    /* a2a 1.0 section 3.3.4 */
    if ((flags & A2A_METHOD_PUSH) != 0 && !self->card.can_push) {
        agent_fail(call, A2A_E_PUSH_NOT_SUPPORTED, "this agent sends no push notifications");
    } else if ((flags & A2A_METHOD_STREAM) != 0 && !self->card.can_stream) {
        agent_fail(call, A2A_E_UNSUPPORTED_OPERATION,
                   "this agent does not stream; use SendMessage and GetTask");
    } else {
        methods[call->method](self, call);
    }
    agent_leave(self);
}

static void service_gone(a2a_service *service, a2a_call *call)
{
    a2a_agent *self = CONTAINER_OF(service, a2a_agent, service);
    agent_enter(self);
    agent_reply_gone(self, call);
    agent_leave(self);
}

static void service_drained(a2a_service *service, a2a_call *call)
{
    a2a_agent *self = CONTAINER_OF(service, a2a_agent, service);
    agent_enter(self);
    agent_reply_drained(self, call);
    agent_leave(self);
}

a2a_service *a2a_agent_service(a2a_agent *self)
{
    return &self->service;
}

/* ---- making and ending */

static a2a_agent_limits limits_of(const a2a_agent_limits *asked)
{
    a2a_agent_limits limits = *asked;
    const a2a_agent_limits *most = &a2a_agent_default_limits;
#define LIMIT(name) limits.name = limits.name != 0 ? limits.name : most->name
    LIMIT(tasks);
    LIMIT(running);
    LIMIT(waiting);
    LIMIT(task_bytes);
    LIMIT(total_bytes);
    LIMIT(history);
    LIMIT(artifacts);
    LIMIT(subscribers);
    LIMIT(push_configs);
    LIMIT(replay_events);
    LIMIT(replay_bytes);
    LIMIT(replay_total_bytes);
    LIMIT(task_ttl_ms);
    LIMIT(deduplicate_ms);
#undef LIMIT
    return limits;
}

bay_err a2a_agent_new(const a2a_agent_options *options, a2a_agent **out)
{
    a2a_agent *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->service.call = service_call;
    self->service.gone = service_gone;
    self->service.drained = service_drained;
    self->options = *options;
    self->limits = limits_of(&options->limits);
    self->options.card = JSON_NONE;
    self->options.extended_card = (bay_str){"", 0};
    map_init(&self->tasks, (size_t)self->limits.tasks + 1);
    map_init(&self->contexts, (size_t)self->limits.tasks + 1);
    map_init(&self->owners, (size_t)self->limits.tasks + 1);
    map_init(&self->seen, (size_t)self->limits.tasks + 1);
    list_init(&self->all);
    list_init(&self->turns);
    list_init(&self->work);
    list_init(&self->terminal);
    list_init(&self->failed);
    list_init(&self->events);
    list_init(&self->expiring);
    buf_init(&self->buffer, SIZE_MAX / 4);
    self->is_terminal_sorted = true;
    self->cursor_seed[0] = rand_u64();
    self->cursor_seed[1] = rand_u64();
    bay_err err = a2a_agent_set_card(self, options->card, options->extended_card);
    if (err != BAY_OK) {
        a2a_agent_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

bay_err a2a_agent_set_card(a2a_agent *self, json_val card, bay_str extended_card)
{
    agent_card read;
    bay_err err = agent_card_read(&read, card, extended_card);
    if (err != BAY_OK) {
        return err;
    }
    agent_card_fini(&self->card);
    self->card = read;
    self->card.can_push = read.can_push && self->options.handler->push != NULL;
    return BAY_OK;
}

void a2a_agent_free(a2a_agent *self)
{
    if (self == NULL) {
        return;
    }
    CHECK(self->depth == 0);
    a2a_fault fault;
    err_ignore(a2a_fault_set(&fault, A2A_E_UNAVAILABLE, "the agent is being stopped"));
    self->depth = 1;       /* callbacks may call in, but nothing is flushed any more */
    self->woken_at_ms = 1; /* no wake-up is needed */
    for (list_link *link; (link = list_first(&self->turns)) != NULL;) {
        agent_turn_close(CONTAINER_OF(link, a2a_turn, in_agent));
    }
    for (list_link *link; (link = list_first(&self->all)) != NULL;) {
        agent_task_remove(CONTAINER_OF(link, agent_task, in_agent), &fault, false);
    }
    agent_dedup_fini(self);
    agent_card_fini(&self->card);
    map_fini(&self->tasks);
    map_fini(&self->contexts);
    map_fini(&self->owners);
    map_fini(&self->seen);
    buf_fini(&self->buffer);
    mem_wipe(self->random, sizeof(self->random));
    mem_wipe(self->next_id, sizeof(self->next_id));
    mem_free(self);
}

/* ---- time */

static void retry_failed(a2a_agent *self, uint64_t now_ms)
{
    if (self->retry_at_ms == 0 || now_ms < self->retry_at_ms) {
        return;
    }
    self->retry_at_ms = 0;
    for (list_link *link; (link = list_pop(&self->failed)) != NULL;) {
        agent_task_touch(CONTAINER_OF(link, agent_task, in_failed));
    }
}

static void wake_again(a2a_agent *self)
{
    list_link *task = list_first(&self->terminal);
    list_link *seen = list_first(&self->expiring);
    if (task != NULL) {
        agent_wake_at(self, CONTAINER_OF(task, agent_task, in_terminal)->status_ms +
                                self->limits.task_ttl_ms);
    }
    if (seen != NULL) {
        agent_wake_at(self, CONTAINER_OF(seen, agent_dedup_entry, link)->expires_at_ms);
    }
    if (self->retry_at_ms != 0) {
        agent_wake_at(self, self->retry_at_ms);
    }
}

void a2a_agent_tick(a2a_agent *self)
{
    agent_enter(self);
    uint64_t now_ms = agent_now(self);
    self->woken_at_ms = 0;
    if (!self->is_terminal_sorted) {
        agent_sort_terminal(self);
    }
    agent_dedup_expire(self, now_ms);
    agent_task_evict(self, now_ms);
    retry_failed(self, now_ms);
    agent_leave(self);
    wake_again(self);
}

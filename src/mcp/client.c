/* The client engine's frame: construction, the state machine, the clock, the link as a whole.
 *
 *   IDLE --(a call is made)--> OPENING --opened--> PROBING --modern--> READY
 *     \________opened___________/    \                 \--legacy--> INITIALIZING --> READY
 *                                     \--(era known)--> INITIALIZING or READY
 *   READY --other era, other version--> PROBING, INITIALIZING; --session lost--> INITIALIZING
 *   PROBING, INITIALIZING --no MCP at this URL--> OPENING (HTTP+SSE)
 *   any --> BROKEN --opened--> OPENING
 *
 * Invariants: calls are OPEN in READY, or stay open from an earlier READY; WAITING calls are sent
 * in the order of their creation; BROKEN has no calls. */
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/shown.h"
#include "mcp/client_internal.h"
#include "wire/via.h"

#define BIT(state) (1u << (state))

/* transitions[from]: the states that may follow. */
static const unsigned transitions[] = {
    [MCP_CLIENT_IDLE] = BIT(MCP_CLIENT_OPENING) | BIT(MCP_CLIENT_BROKEN),
    [MCP_CLIENT_OPENING] = BIT(MCP_CLIENT_PROBING) | BIT(MCP_CLIENT_INITIALIZING) |
                           BIT(MCP_CLIENT_READY) | BIT(MCP_CLIENT_BROKEN),
    [MCP_CLIENT_PROBING] = BIT(MCP_CLIENT_OPENING) | BIT(MCP_CLIENT_INITIALIZING) |
                           BIT(MCP_CLIENT_READY) | BIT(MCP_CLIENT_BROKEN),
    [MCP_CLIENT_INITIALIZING] = BIT(MCP_CLIENT_OPENING) | BIT(MCP_CLIENT_PROBING) |
                                BIT(MCP_CLIENT_READY) | BIT(MCP_CLIENT_BROKEN),
    [MCP_CLIENT_READY] = BIT(MCP_CLIENT_PROBING) | BIT(MCP_CLIENT_INITIALIZING) |
                         BIT(MCP_CLIENT_OPENING) | BIT(MCP_CLIENT_BROKEN),
    [MCP_CLIENT_BROKEN] = BIT(MCP_CLIENT_OPENING),
};

void mcp_client_set_state(mcp_client *self, mcp_client_state state)
{
    if (self->state == state) {
        return;
    }
    CHECK((transitions[self->state] & BIT(state)) != 0);
    bool was_starting = self->state == MCP_CLIENT_PROBING || self->state == MCP_CLIENT_INITIALIZING;
    bool is_starting = state == MCP_CLIENT_PROBING || state == MCP_CLIENT_INITIALIZING;
    if (is_starting && !was_starting) {
        self->start_by_ms =
            self->start_timeout_ms > 0 ? self->now_ms + self->start_timeout_ms : UINT64_MAX;
    }
    self->state = state;
}

/* ---- making and freeing ---------------------------------------------------------------------- */

static void client_describe(mcp_client *self, const mcp_client_options *options)
{
    json_writer out;
    json_writer_init(&out, &self->client_info);
    json_open_object(&out);
    json_key_lit(&out, "name");
    json_put_str(&out, options->name);
    if (options->title.len > 0) {
        json_key_lit(&out, "title");
        json_put_str(&out, options->title);
    }
    json_key_lit(&out, "version");
    json_put_str(&out, options->version);
    json_close_object(&out);
    buf_str(&self->capabilities, options->capabilities.len > 0 ? options->capabilities : STR("{}"));
}

static uint32_t or_default(uint32_t value, uint32_t fallback)
{
    return value != 0 ? value : fallback;
}

static void client_configure(mcp_client *self, const mcp_client_options *options)
{
    self->kind = options->link_kind;
    self->oldest = options->oldest;
    self->newest = options->newest;
    self->remembered = options->remembered;
    self->probe_timeout_ms = or_default(options->probe_timeout_ms, 3000);
    self->call_timeout_ms = or_default(options->call_timeout_ms, 60000);
    self->start_timeout_ms = options->start_timeout_ms;
    self->max_total_ms = or_default(options->max_total_ms, 600000);
    self->max_calls = or_default(options->max_calls, 10000);
    self->max_message_bytes =
        options->max_message_bytes != 0 ? options->max_message_bytes : (size_t)64 << 20;
    self->max_depth = or_default(options->max_depth, json_default_limits.max_depth);
    self->wants_changes = options->wants_changes;
}

bay_err mcp_client_new(const mcp_client_options *options, const mcp_client_events *events,
                       void *user, const mcp_link_ops *ops, void *link, mcp_client **out)
{
    if (options->oldest > options->newest || options->newest >= MCP_REVISION_COUNT ||
        ops->send == NULL) {
        return BAY_ERR_INVALID;
    }
    mcp_client *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->events = *events;
    self->user = user;
    self->ops = *ops;
    self->link = link;
    shown_copy(self->label, sizeof(self->label),
               options->label.len > 0 ? options->label : STR("a server"), SHOWN_LINE);
    client_configure(self, options);
    self->level = MCP_LOG_NONE;
    self->next_id = 1;
    self->next_wake_ms = UINT64_MAX;
    self->listen_at_ms = UINT64_MAX;
    list *lists[] = {&self->waiting, &self->open,    &self->lingering,
                     &self->expired, &self->failing, &self->spare};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        list_init(lists[i]);
    }
    list_init(&self->asked);
    buf_init(&self->client_info, CLIENT_MAX_OPTION_BYTES);
    buf_init(&self->via, VIA_BYTES);
    if (options->via.len > 0) {
        via_write(&self->via, (bay_str){"", 0}, options->via);
    }
    buf_init(&self->capabilities, CLIENT_MAX_OPTION_BYTES);
    buf_init(&self->session, CLIENT_MAX_SESSION);
    buf_init(&self->next_session, CLIENT_MAX_SESSION);
    arena_init(&self->about_memory, 16 * self->max_message_bytes);
    map_init(&self->subscriptions, CLIENT_MAX_SUBSCRIPTIONS);
    mcp_client_scratch_init(self, &self->send_scratch);
    mcp_client_scratch_init(self, &self->receive_scratch);
    client_describe(self, options);
    bay_err err = self->client_info.err != BAY_OK ? self->client_info.err : self->capabilities.err;
    err = err != BAY_OK ? err : self->via.err;
    if (err != BAY_OK) {
        mcp_client_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

static void free_calls(list *calls)
{
    list_link *link;
    while ((link = list_pop(calls)) != NULL) {
        mcp_call *call = CONTAINER_OF(link, mcp_call, link);
        buf_fini(&call->kept.bytes);
        buf_fini(&call->event_id);
        principal_unref(call->principal);
        mem_free(call);
    }
}

static void forget_subscriptions(mcp_client *self)
{
    size_t cursor = 0;
    bay_str uri;
    void *value;
    while (map_next(&self->subscriptions, &cursor, &uri, &value)) {
        mem_free(value);
    }
    map_fini(&self->subscriptions);
}

static void client_release(mcp_client *self)
{
    list *lists[] = {&self->waiting, &self->open,    &self->lingering,
                     &self->expired, &self->failing, &self->spare};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        free_calls(lists[i]);
    }
    forget_subscriptions(self);
    mcp_id_table_fini(&self->table);
    buf_fini(&self->client_info);
    buf_fini(&self->via);
    buf_fini(&self->capabilities);
    buf_fini(&self->session);
    buf_fini(&self->next_session);
    arena_fini(&self->about_memory);
    mcp_client_scratch_fini(&self->send_scratch);
    mcp_client_scratch_fini(&self->receive_scratch);
    mem_free(self);
}

void mcp_client_enter(mcp_client *self, uint64_t now_ms)
{
    self->depth++;
    if (now_ms > self->now_ms) {
        self->now_ms = now_ms;
    }
}

void mcp_client_leave(mcp_client *self)
{
    if (--self->depth == 0 && self->is_dead) {
        client_release(self);
    }
}

/* Ends every current call; a `done` may end others, free the client or open the link again. */
static void fail_everything(mcp_client *self, bay_err err, const char *text, bool is_link_gone)
{
    self->probe = self->stream = self->listen = self->old_listen = NULL;
    list *lists[] = {&self->open, &self->expired, &self->waiting, &self->lingering};
    list_link *link;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        while ((link = list_pop(lists[i])) != NULL) {
            list_push(&self->failing, link);
        }
    }
    while ((link = list_first(&self->failing)) != NULL) {
        mcp_call *call = CONTAINER_OF(link, mcp_call, link);
        bool was_sent = call->was_sent && call->phase != PHASE_WAITING;
        if (!is_link_gone) {
            mcp_call_abandon(call);
        }
        call->is_exchange_open = false;
        if (call->phase == PHASE_LINGERING) {
            mcp_call_recycle(call);
        } else {
            mcp_call_fail(call, err, was_sent, text);
        }
    }
}

const char *mcp_client_label(const mcp_client *self)
{
    return self->label;
}

void mcp_client_free(mcp_client *self)
{
    if (self == NULL || self->is_dead) {
        return;
    }
    mcp_client_enter(self, 0);
    self->is_dead = true;
    fail_everything(self, BAY_ERR_CANCELLED, "the client was closed", true);
    mcp_client_leave(self);
}

/* ---- the link as a whole --------------------------------------------------------------------- */

void mcp_client_opened(mcp_client *self, uint64_t now_ms)
{
    if (self->is_dead || (self->state != MCP_CLIENT_IDLE && self->state != MCP_CLIENT_OPENING &&
                          self->state != MCP_CLIENT_BROKEN)) {
        return;
    }
    mcp_client_enter(self, now_ms);
    if (self->state == MCP_CLIENT_BROKEN && self->revision != NULL && self->is_confirmed) {
        self->remembered = self->revision;
    }
    mcp_client_set_state(self, MCP_CLIENT_OPENING);
    self->broken_text[0] = '\0';
    self->garbage = self->clogged_count = 0;
    self->is_clogged = false;
    self->doubt_after_ms = 0;
    self->session_serial++;
    buf_clear(&self->session);
    mcp_client_unlearn(self);
    mcp_client_detect_begin(self);
    mcp_client_leave(self);
}

void mcp_client_relinked(mcp_client *self, mcp_link_kind kind, uint64_t now_ms)
{
    if (self->is_dead) {
        return;
    }
    mcp_client_enter(self, now_ms);
    if (self->state == MCP_CLIENT_OPENING || self->state == MCP_CLIENT_IDLE ||
        self->state == MCP_CLIENT_BROKEN) {
        self->kind = kind;
        mcp_client_opened(self, now_ms);
    }
    mcp_client_leave(self);
}

void mcp_client_break(mcp_client *self, bay_err err, const char *text, bool is_link_gone)
{
    if (self->state == MCP_CLIENT_BROKEN || self->is_dead) {
        return;
    }
    mcp_client_enter(self, self->now_ms);
    mcp_client_set_state(self, MCP_CLIENT_BROKEN);
    self->broken_err = err;
    snprintf(self->broken_text, sizeof(self->broken_text), "%s",
             text != NULL && text[0] != '\0' ? text : bay_err_text(err));
    LOG(LOG_DEBUG, "mcp", "%s: the link is broken: %s", self->label, self->broken_text);
    char copy[CLIENT_TEXT]; /* a callback may open the link again */
    memcpy(copy, self->broken_text, sizeof(copy));
    fail_everything(self, err, copy, is_link_gone);
    if (!self->is_dead && self->state == MCP_CLIENT_BROKEN && self->events.broken != NULL) {
        self->events.broken(self->user, err, copy);
    }
    mcp_client_leave(self);
}

void mcp_client_broken(mcp_client *self, bay_err err, const char *text, uint64_t now_ms)
{
    mcp_client_enter(self, now_ms);
    if (self->state == MCP_CLIENT_PROBING && self->kind == MCP_LINK_DUPLEX) {
        self->fears_probe = true;
    }
    mcp_client_break(self, err, text, true);
    mcp_client_leave(self);
}

/* Calls that were open when another era was suspected: no answer can come for them. */
static void fail_open(mcp_client *self)
{
    list_link *link;
    while ((link = list_pop(&self->open)) != NULL) {
        list_push(&self->failing, link);
    }
    while ((link = list_first(&self->failing)) != NULL) {
        mcp_call *call = CONTAINER_OF(link, mcp_call, link);
        mcp_call_fail(call, BAY_ERR_EXITED, call->was_sent,
                      "ended when it was asked server/discover");
    }
}

bool mcp_client_restarted(mcp_client *self, uint64_t now_ms)
{
    if (self->is_dead || self->state != MCP_CLIENT_PROBING || self->kind != MCP_LINK_DUPLEX ||
        self->fears_probe || self->oldest > MCP_LATEST_LEGACY) {
        return false;
    }
    mcp_client_enter(self, now_ms);
    self->fears_probe = true;
    self->remembered = NULL; /* the server does not answer server/discover now */
    mcp_call *probe = self->probe;
    self->probe = NULL;
    if (probe != NULL) {
        mcp_call_recycle(probe);
    }
    mcp_client_set_state(self, MCP_CLIENT_OPENING);
    self->garbage = self->clogged_count = 0;
    self->is_clogged = false;
    fail_open(self);
    if (!self->is_dead && self->state == MCP_CLIENT_OPENING) {
        mcp_client_detect_begin(self);
    }
    mcp_client_leave(self);
    return true;
}

void mcp_client_drained(mcp_client *self)
{
    mcp_client_enter(self, 0);
    self->is_clogged = false;
    self->clogged_count = 0;
    mcp_client_flush(self);
    mcp_client_leave(self);
}

void mcp_client_close(mcp_client *self)
{
    if (self->is_dead || self->state == MCP_CLIENT_BROKEN) {
        return;
    }
    mcp_client_enter(self, 0);
    mcp_client_modern_close_listens(self, false);
    mcp_client_legacy_close_stream(self);
    if (mcp_client_is_http(self) && self->session.len > 0 && self->ops.end_session != NULL) {
        mcp_field fields[MCP_MAX_FIELDS];
        size_t count = mcp_client_legacy_fields(self, (bay_str){0}, fields);
        self->ops.end_session(self->link, fields, count);
    }
    buf_clear(&self->session);
    mcp_client_set_state(self, MCP_CLIENT_BROKEN);
    self->broken_err = BAY_ERR_CANCELLED;
    snprintf(self->broken_text, sizeof(self->broken_text), "the client was closed");
    fail_everything(self, BAY_ERR_CANCELLED, "the client was closed", false);
    mcp_client_leave(self);
}

void mcp_client_become_ready(mcp_client *self)
{
    mcp_client_set_state(self, MCP_CLIENT_READY);
    LOG(LOG_DEBUG, "mcp", "%s: ready, revision %.*s", self->label, BAY_STR(self->revision->text));
    if (self->events.ready != NULL) {
        self->events.ready(self->user);
    }
    if (self->is_dead || self->state != MCP_CLIENT_READY) {
        return;
    }
    if (mcp_client_is_modern(self)) {
        mcp_client_modern_ready(self);
    } else {
        mcp_client_legacy_ready(self);
    }
    mcp_client_flush(self);
}

/* ---- the clock ------------------------------------------------------------------------------- */

uint64_t mcp_client_backoff(uint32_t attempts)
{
    uint64_t delay = CLIENT_BACKOFF_MS;
    while (attempts-- > 0 && delay < CLIENT_MAX_BACKOFF_MS) {
        delay *= 2;
    }
    return delay < CLIENT_MAX_BACKOFF_MS ? delay : CLIENT_MAX_BACKOFF_MS;
}

void mcp_client_wake(mcp_client *self, uint64_t at_ms)
{
    if (at_ms < self->next_wake_ms) {
        self->next_wake_ms = at_ms;
    }
}

static uint64_t call_due(const mcp_call *call)
{
    uint64_t due = call->deadline_ms < call->end_ms ? call->deadline_ms : call->end_ms;
    return call->wake_ms < due ? call->wake_ms : due;
}

/* Moves what is due to `expired`, which is safe against any callback. */
static void collect_due(mcp_client *self, list *calls)
{
    LIST_EACH(link, calls)
    {
        mcp_call *call = CONTAINER_OF(link, mcp_call, link);
        if (call->phase == PHASE_OPEN && call->deadline_ms <= self->now_ms) {
            /* while the server waits for an answer, the call's time does not run */
            uint64_t until = mcp_call_asked_deadline(call);
            call->deadline_ms = until > call->deadline_ms ? until : call->deadline_ms;
        }
        if (call->deadline_ms <= self->now_ms && self->held_ms > 0) {
            uint64_t until =
                (self->held_count > 0 ? self->now_ms : self->held_ms) + call->timeout_ms;
            call->deadline_ms = until > call->deadline_ms ? until : call->deadline_ms;
        }
        uint64_t due = call_due(call);
        if (due <= self->now_ms) {
            list_remove(link);
            list_push(&self->expired, link);
        } else {
            mcp_client_wake(self, due);
        }
    }
}

static void call_ring(mcp_call *call)
{
    mcp_client *self = call->client;
    if (call->phase == PHASE_LINGERING) {
        mcp_call_abandon(call);
        mcp_call_recycle(call);
    } else if (call->deadline_ms <= self->now_ms || call->end_ms <= self->now_ms) {
        mcp_call_expire(call);
    } else {
        call->wake_ms = UINT64_MAX;
        list_remove(&call->link);
        list_push(&self->open, &call->link);
        mcp_client_wake(self, call_due(call));
        mcp_client_legacy_listen(call);
    }
}

void mcp_client_hold(mcp_client *self, bool is_held, uint64_t now_ms)
{
    self->held_count = is_held ? self->held_count + 1 : self->held_count - 1;
    self->held_ms = now_ms;
}

uint64_t mcp_client_tick(mcp_client *self, uint64_t now_ms)
{
    if (self->is_dead) {
        return UINT64_MAX;
    }
    mcp_client_enter(self, now_ms);
    mcp_client_asked_tick(self);
    if (self->now_ms >= self->next_wake_ms) {
        self->next_wake_ms = UINT64_MAX;
        collect_due(self, &self->open);
        collect_due(self, &self->waiting);
        collect_due(self, &self->lingering);
        list_link *link;
        while (!self->is_dead && (link = list_first(&self->expired)) != NULL) {
            call_ring(CONTAINER_OF(link, mcp_call, link));
        }
        if (!self->is_dead) {
            mcp_client_modern_tick(self);
        }
    }
    uint64_t next = self->next_wake_ms;
    mcp_client_leave(self);
    return next;
}

/* ListTasks. A page token holds the order number after which the next page begins, and its expiry;
 * a keyed hash of these, of the caller and of the filter makes it invalid for any other caller or
 * filter. */
#include "a2a/agent_internal.h"
#include "base/bytes.h"
#include "base/err.h"

enum { PAGE_DEFAULT = 50, PAGE_MOST = 100, CURSOR_WORDS = 4, CURSOR_CHARS = 64 };

typedef struct listing {
    a2a_call *call;
    bay_str context_id;
    a2a_state state; /* UNSPECIFIED: any */
    uint64_t after_ms;
    uint64_t before; /* order; UINT64_MAX: from the newest */
    size_t size;
    int64_t history_length;
    bool with_artifacts;
    bool has_more;
    size_t total;
    size_t count;
    agent_task *page[PAGE_MOST];
    a2a_fault fault;
} listing;

/* ---- page tokens */

static uint64_t tag_of(const a2a_agent *agent, const listing *self, const uint64_t words[2], int i)
{
    char numbers[4 * BYTES_U64];
    bytes_put_u64(numbers, words[0]);
    bytes_put_u64(numbers + BYTES_U64, words[1]);
    bytes_put_u64(numbers + 2 * BYTES_U64, (uint64_t)self->state);
    bytes_put_u64(numbers + 3 * BYTES_U64, self->after_ms);
    uint64_t hash = str_hash((bay_str){numbers, sizeof(numbers)}, agent->cursor_seed[i]);
    hash = str_hash(principal_identity(self->call->principal), hash);
    return str_hash(self->context_id, hash ^ agent->cursor_seed[i]);
}

static void write_cursor(a2a_agent *agent, const listing *self, uint64_t before, buf *out)
{
    uint64_t words[CURSOR_WORDS] = {before, agent_now(agent) + AGENT_CURSOR_MS};
    words[2] = tag_of(agent, self, words, 0);
    words[3] = tag_of(agent, self, words, 1);
    for (int i = 0; i < CURSOR_WORDS; i++) {
        buf_printf(out, "%016llx", (unsigned long long)words[i]);
    }
}

static bool read_word(bay_str text, uint64_t *out)
{
    uint64_t word = 0;
    for (size_t i = 0; i < 16; i++) {
        char c = text.at[i];
        if (c >= '0' && c <= '9') {
            word = word << 4 | (uint64_t)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            word = word << 4 | (uint64_t)(c - 'a' + 10);
        } else {
            return false;
        }
    }
    *out = word;
    return true;
}

static bool read_cursor(a2a_agent *agent, listing *self, bay_str text)
{
    uint64_t words[CURSOR_WORDS];
    if (text.len != CURSOR_CHARS) {
        return false;
    }
    for (size_t i = 0; i < CURSOR_WORDS; i++) {
        if (!read_word(str_from(text, i * 16), &words[i])) {
            return false;
        }
    }
    uint64_t wrong = words[2] ^ tag_of(agent, self, words, 0);
    wrong |= words[3] ^ tag_of(agent, self, words, 1);
    self->before = words[0];
    return wrong == 0 && words[1] > agent_now(agent);
}

/* ---- reading */

enum { CONTEXT_ID, STATUS, PAGE_SIZE, PAGE_TOKEN, HISTORY, AFTER, ARTIFACTS, KEYS };
static const bay_str keys[KEYS] = {STR_INIT("contextId"),       STR_INIT("status"),
                                   STR_INIT("pageSize"),        STR_INIT("pageToken"),
                                   STR_INIT("historyLength"),   STR_INIT("statusTimestampAfter"),
                                   STR_INIT("includeArtifacts")};

static bay_err read_text(const listing *self, json_val value, bay_str *out)
{
    *out = (bay_str){"", 0};
    return json_is(value, JSON_STRING) ? json_str(value, self->call->memory, out) : BAY_OK;
}

static bay_err listing_read(a2a_agent *agent, listing *self)
{
    json_val member[KEYS];
    int64_t size = PAGE_DEFAULT;
    bay_str token;
    bay_str text;
    a2a_fault *fault = &self->fault;
    bay_err err = json_pick(self->call->params, keys, KEYS, member, NULL);
    if (err == BAY_OK) {
        err = read_text(self, member[CONTEXT_ID], &self->context_id);
    }
    if (err != BAY_OK) {
        return err == BAY_ERR_NOMEM
                   ? err
                   : a2a_fault_set(fault, A2A_E_INVALID_PARAMS, "params: not valid");
    }
    if (json_kind_of(member[PAGE_SIZE]) > JSON_NULL &&
        (json_int64(member[PAGE_SIZE], &size) != BAY_OK || size < 1 || size > PAGE_MOST)) {
        return a2a_fault_set(fault, A2A_E_INVALID_PARAMS, "pageSize: must be from 1 to %d",
                             PAGE_MOST);
    }
    self->size = (size_t)size;
    self->with_artifacts = json_true(member[ARTIFACTS]);
    err = agent_history_length(member[HISTORY], "historyLength", &self->history_length, fault);
    if (err == BAY_OK && read_text(self, member[STATUS], &text) == BAY_OK) {
        self->state = a2a_state_of(text);
    }
    if (err == BAY_OK && read_text(self, member[AFTER], &text) == BAY_OK && text.len > 0 &&
        !agent_read_time(text, &self->after_ms)) {
        err = a2a_fault_set(fault, A2A_E_INVALID_PARAMS,
                            "statusTimestampAfter: not a time as 2026-01-31T12:00:00Z");
    }
    self->before = UINT64_MAX;
    if (err == BAY_OK && read_text(self, member[PAGE_TOKEN], &token) == BAY_OK && token.len > 0 &&
        !read_cursor(agent, self, token)) {
        err = a2a_fault_set(fault, A2A_E_INVALID_PARAMS,
                            "pageToken: expired, or not of this list; begin again without one");
    }
    return err;
}

/* ---- finding */

static bool matches(const listing *self, const agent_task *task)
{
    return (self->state == A2A_STATE_UNSPECIFIED || task->state == self->state) &&
           task->status_ms >= self->after_ms;
}

/* False: the page is full. */
static bool agent_list_take(listing *self, agent_task *task)
{
    if (self->count == self->size) {
        self->has_more = true;
        return false;
    }
    self->page[self->count++] = task;
    return true;
}

static void find_in_context(a2a_agent *agent, listing *self)
{
    agent_context *context =
        agent_context_find(agent, principal_identity(self->call->principal), self->context_id);
    bool is_full = false;
    if (context == NULL) {
        return;
    }
    for (list_link *link = context->tasks.head.prev; link != &context->tasks.head;
         link = link->prev) {
        agent_task *task = CONTAINER_OF(link, agent_task, in_context);
        if (matches(self, task)) {
            self->total++;
            is_full = is_full || (task->order < self->before && !agent_list_take(self, task));
        }
    }
}

/* The number of tasks on all pages. Only a filter by time needs a walk, over the newer ones. */
static size_t count_all(const listing *self, const agent_owner *owner)
{
    if (self->after_ms == 0) {
        return self->state == A2A_STATE_UNSPECIFIED ? owner->live : owner->counts[self->state];
    }
    size_t total = 0;
    uint64_t least = self->after_ms * AGENT_ORDER_PER_MS;
    for (size_t i = owner->len; i > 0 && owner->entries[i - 1].order >= least; i--) {
        const agent_task *task = owner->entries[i - 1].task;
        total += task != NULL && matches(self, task);
    }
    return total;
}

static void find_in_owner(a2a_agent *agent, listing *self)
{
    agent_owner *owner = agent_owner_find(agent, principal_identity(self->call->principal));
    if (owner == NULL) {
        return;
    }
    agent_order_sort(owner);
    self->total = count_all(self, owner);
    uint64_t least = self->after_ms * AGENT_ORDER_PER_MS;
    for (size_t i = agent_order_seek(owner, self->before);
         self->total > 0 && i > 0 && owner->entries[i - 1].order >= least; i--) {
        agent_task *task = owner->entries[i - 1].task;
        if (task != NULL && matches(self, task) && !agent_list_take(self, task)) {
            return;
        }
    }
}

/* ---- answering */

static void write_page(a2a_agent *agent, listing *self, buf *out)
{
    size_t written = 0;
    buf_lit(out, "{\"tasks\":[");
    for (; written < self->count && (written == 0 || out->len < AGENT_PAGE_BYTES); written++) {
        if (written > 0) {
            buf_char(out, ',');
        }
        agent_write_task(self->page[written], self->history_length, self->with_artifacts, out);
    }
    self->has_more = self->has_more || written < self->count;
    self->count = written;
    buf_lit(out, "],\"nextPageToken\":\"");
    if (self->has_more) {
        write_cursor(agent, self, self->page[written - 1]->order, out);
    }
    buf_lit(out, "\",\"pageSize\":");
    buf_uint(out, self->size);
    buf_lit(out, ",\"totalSize\":");
    buf_uint(out, self->total);
    buf_char(out, '}');
}

/* The tasks on the page that are not stored yet. */
static bay_err unkept(const listing *self, agent_wait **out, size_t *count)
{
    agent_wait *waits = arena_array(self->call->memory, self->count + 1, sizeof(*waits));
    *count = 0;
    for (size_t i = 0; waits != NULL && i < self->count; i++) {
        const agent_task *task = self->page[i];
        if (!agent_task_is_kept(task, task->revision)) {
            agent_wait *wait = &waits[(*count)++];
            wait->revision = task->revision;
            if (arena_dup(self->call->memory, task->id, &wait->id) != BAY_OK) {
                return BAY_ERR_NOMEM;
            }
        }
    }
    *out = waits;
    return waits != NULL ? BAY_OK : BAY_ERR_NOMEM;
}

void agent_list(a2a_agent *self, a2a_call *call)
{
    listing asked = {.call = call};
    bay_err err = listing_read(self, &asked);
    if (err == BAY_ERR_PROTOCOL) {
        a2a_call_fail(call, &asked.fault);
        return;
    }
    if (err != BAY_OK) {
        agent_fail_err(call, err);
        return;
    }
    if (asked.context_id.len > 0) {
        find_in_context(self, &asked);
    } else {
        find_in_owner(self, &asked);
    }
    buf out = agent_buffer(self);
    agent_wait *waits = NULL;
    size_t count = 0;
    write_page(self, &asked, &out);
    err = self->options.persistence != NULL ? unkept(&asked, &waits, &count) : BAY_OK;
    if (err != BAY_OK) {
        agent_fail_err(call, err);
    } else if (count == 0) {
        agent_result(call, &out);
    } else {
        agent_reply *reply = agent_reply_new(call, asked.page[0]);
        if (reply != NULL) {
            agent_reply_hold(reply, &out, waits, count);
        }
    }
    agent_buffer_back(self, &out);
}

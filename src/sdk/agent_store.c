/* See agent_store.h. */
#include "sdk/agent_store_parts.h"

#include "base/check.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"

/* A put whose operations are under way. */
typedef struct keeping {
    agent_store *of;
    void (*kept)(void *user, bay_err err); /* NULL: nobody waits */
    void *user;
    bay_err err;
    uint32_t left;
} keeping;

store_options agent_store_suits(void)
{
    return (store_options){.rows = UINT64_C(20) << 20,
                           .value_bytes = AGENT_STORE_VALUE,
                           .total_bytes = UINT64_C(8) << 30,
                           .pending = AGENT_STORE_PENDING * 2,
                           .pending_bytes = UINT64_C(1) << 30};
}

/* ---- keeping */

bay_str agent_store_stream(const agent_store *self, bay_str id, char at[STORE_TABLE_BYTES])
{
    if (self->name_len + 1 + id.len > STORE_TABLE_BYTES) {
        return (bay_str){at, 0};
    }
    memcpy(at, self->name, self->name_len);
    at[self->name_len] = '/';
    memcpy(at + self->name_len + 1, id.at, id.len);
    return (bay_str){at, self->name_len + 1 + id.len};
}

/* FNV-1a */
uint64_t agent_store_sum(bay_str id, bay_str name, bay_str bytes)
{
    const bay_str all[] = {id, name, bytes};
    uint64_t sum = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        for (size_t k = 0; k < all[i].len; k++) {
            sum = (sum ^ (unsigned char)all[i].at[k]) * UINT64_C(1099511628211);
        }
    }
    return sum;
}

static void one_done(keeping *self, bay_err err, bool is_row)
{
    self->of->doing--;
    self->left--;
    if (err != BAY_OK && self->err == BAY_OK) {
        self->err = err;
    }
    if (is_row && self->kept != NULL) {
        self->kept(self->user, self->err);
    }
    if (self->left == 0) {
        mem_free(self);
    }
}

static void events_done(void *user, const store_result *result)
{
    one_done(user, result->err, false);
}

static void row_done(void *user, const store_result *result)
{
    one_done(user, result->err, true);
}

static bay_err put_events(keeping *self, bay_str stream, a2a_event *const *events, size_t count)
{
    buf value;
    buf_init(&value, AGENT_STORE_VALUE);
    for (size_t i = 0; i < count; i++) {
        char head[AGENT_STORE_EVENT_HEAD];
        bay_str json = a2a_event_json(events[i]);
        bytes_put_u64(head, a2a_event_sequence(events[i]));
        head[BYTES_U64] = a2a_event_is_last(events[i]) ? '1' : '0';
        bytes_put_u64(head + BYTES_U64 + 1, json.len);
        buf_append(&value, head, sizeof(head));
        buf_str(&value, json);
    }
    /* Larger than all that is kept: who comes back begins with the task. */
    bool fits = value.len <= AGENT_STORE_BYTES;
    /* The oldest go many at a time, which is less work. */
    uint64_t last = a2a_event_sequence(events[count - 1]);
    bool trims = value.len > AGENT_STORE_LARGE ||
                 (a2a_event_sequence(events[0]) - 1) / AGENT_STORE_TRIM != last / AGENT_STORE_TRIM;
    bay_err err = value.err;
    if (err == BAY_OK && fits) {
        store_append_request request = {.stream = stream,
                                        .value = buf_view(&value),
                                        .keep_events = trims ? AGENT_STORE_EVENTS : 0,
                                        .keep_bytes = trims ? AGENT_STORE_BYTES : 0,
                                        .expires_at_ms = loop_time_ms() + AGENT_STORE_EVENTS_MS,
                                        .is_relaxed = true};
        err = store_append(self->of->store, &request, events_done, self);
        self->left += err == BAY_OK;
        self->of->doing += err == BAY_OK;
    }
    buf_fini(&value);
    return err;
}

static void write_name(char at[AGENT_STORE_BLOCK_NAME], uint64_t overflow, uint32_t number)
{
    bytes_put_u64(at, overflow);
    for (int i = AGENT_STORE_BLOCK_NAME - 1; i >= BYTES_U64; i--, number >>= 8) {
        at[i] = (char)(number & 0xff);
    }
}

/* The blocks of a put as parts of its row, and the names of those that go; in `memory`. */
static bay_err list_parts(arena *memory, const a2a_put *put, store_put_request *out)
{
    store_part *parts = arena_array(memory, put->block_count + 1, sizeof(*parts));
    bay_str *gone = arena_array(memory, put->gone_count + 1, sizeof(*gone));
    if (parts == NULL || gone == NULL) {
        return BAY_ERR_NOMEM;
    }
    for (size_t i = 0; i < put->block_count; i++) {
        const a2a_overflow_block *block = &put->blocks[i];
        char *at =
            arena_alloc(memory, AGENT_STORE_BLOCK_NAME + AGENT_STORE_BLOCK_HEAD + block->bytes.len);
        if (at == NULL) {
            return BAY_ERR_NOMEM;
        }
        write_name(at, block->overflow, block->number);
        parts[i] =
            (store_part){{at, AGENT_STORE_BLOCK_NAME},
                         {at + AGENT_STORE_BLOCK_NAME, AGENT_STORE_BLOCK_HEAD + block->bytes.len}};
        bytes_put_u64(at + AGENT_STORE_BLOCK_NAME,
                      agent_store_sum(put->id, parts[i].name, block->bytes));
        memcpy(at + AGENT_STORE_BLOCK_NAME + AGENT_STORE_BLOCK_HEAD, block->bytes.at,
               block->bytes.len);
    }
    for (size_t i = 0; i < put->gone_count; i++) {
        char *at = arena_alloc(memory, BYTES_U64);
        if (at == NULL) {
            return BAY_ERR_NOMEM;
        }
        bytes_put_u64(at, put->gone[i]);
        gone[i] = (bay_str){at, BYTES_U64};
    }
    out->parts = parts;
    out->part_count = put->block_count;
    out->dropped = gone;
    out->dropped_count = put->gone_count;
    return BAY_OK;
}

static bay_err put_row(keeping *self, const a2a_put *put, bool has_events)
{
    char *value = mem_alloc(put->row.len + 1);
    if (value == NULL) {
        return BAY_ERR_NOMEM;
    }
    value[0] = (char)(AGENT_STORE_PLAIN + (has_events ? AGENT_STORE_HAS_EVENTS : 0) +
                      (put->has_blocks ? AGENT_STORE_HAS_BLOCKS : 0));
    memcpy(value + 1, put->row.at, put->row.len);
    store_put_request request = {.table = agent_store_table(self->of),
                                 .key = put->id,
                                 .value = {value, put->row.len + 1},
                                 .expected = STORE_ANY};
    arena memory;
    arena_init(&memory, SIZE_MAX);
    bay_err err = BAY_OK;
    if (put->block_count + put->gone_count > 0) {
        err = list_parts(&memory, put, &request);
    }
    if (err == BAY_OK) {
        err = store_put(self->of->store, &request, row_done, self);
        self->left += err == BAY_OK;
        self->of->doing += err == BAY_OK;
    }
    arena_fini(&memory);
    mem_free(value);
    return err;
}

static bay_err persistence_put(a2a_persistence *persistence, const a2a_put *put,
                               void (*kept)(void *user, bay_err err), void *user)
{
    agent_store *self = CONTAINER_OF(persistence, agent_store, persistence);
    char name[STORE_TABLE_BYTES];
    bay_str stream = agent_store_stream(self, put->id, name);
    keeping *made = mem_zalloc(sizeof(*made));
    if (made == NULL) {
        return BAY_ERR_NOMEM;
    }
    *made = (keeping){.of = self, .kept = kept, .user = user};
    bay_err err = BAY_OK;
    if (put->event_count > 0 && stream.len > 0) {
        err = put_events(made, stream, put->events, put->event_count);
    }
    if (err == BAY_OK) {
        err = put_row(made, put, put->has_events && stream.len > 0);
    }
    if (err != BAY_OK) {
        made->kept = NULL; /* the events may still be under way */
        if (made->left == 0) {
            mem_free(made);
        }
    }
    return err;
}

static void removed(void *user, const store_result *result)
{
    agent_store *self = user;
    self->doing--;
    if (result->err != BAY_OK && result->err != BAY_ERR_NOT_FOUND &&
        result->err != BAY_ERR_CANCELLED) {
        log_write_paced(&self->complaints, loop_time_ms(), LOG_WARN, "agent",
                        "a task that has ended could not be removed from the store: %s",
                        bay_err_text(result->err));
    }
}

/* Its blocks go with the row, its events by themselves. What cannot be removed now is read again at
 * the next start, and goes then. */
static void persistence_remove(a2a_persistence *persistence, bay_str id)
{
    agent_store *self = CONTAINER_OF(persistence, agent_store, persistence);
    self->doing +=
        store_remove(self->store, agent_store_table(self), id, STORE_ANY, removed, self) == BAY_OK;
}

/* ---- life */

static const a2a_persistence_ops ops = {persistence_put, persistence_remove};

bay_err agent_store_new(store *on, bay_str table, agent_store **out)
{
    if (table.len == 0 || table.len > AGENT_STORE_NAME_BYTES) {
        return BAY_ERR_INVALID;
    }
    agent_store *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->persistence.ops = &ops;
    self->store = on;
    self->name_len = table.len;
    memcpy(self->name, table.at, table.len);
    *out = self;
    return BAY_OK;
}

void agent_store_free(agent_store *self)
{
    if (self != NULL) {
        CHECK(self->doing == 0);
        mem_free(self);
    }
}

bool agent_store_is_idle(const agent_store *self)
{
    return self->doing == 0;
}

a2a_persistence *agent_store_persistence(agent_store *self)
{
    return &self->persistence;
}

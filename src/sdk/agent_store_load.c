/* Reading the tasks of a store: pages of rows, and for each row its events and its blocks. */
#include "sdk/agent_store_parts.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"

typedef struct loaded_row {
    bay_str key;
    bay_str row;
    bool has_events;
    bool has_blocks;
} loaded_row;

typedef struct agent_store_loading {
    a2a_agent *agent;
    void (*done)(void *user, const agent_store_loaded *loaded);
    void *user;
    agent_store_loaded told;
    bool may_resume;
    bool has_more;
    arena memory; /* of one page of rows */
    loaded_row *rows;
    size_t count;
    size_t at;
    a2a_event **events; /* of the row at hand */
    size_t event_count;
    size_t event_cap;
    arena block_memory; /* the same */
    a2a_overflow_block *blocks;
    size_t block_count;
    size_t block_cap;
    size_t block_bytes;
    bool has_read_events;
    bool has_read_blocks;
    char last[STORE_KEY_BYTES];
    size_t last_len;
} loading;

static void load_next(agent_store *self);
static void events_read(void *user, const store_result *result);
static void blocks_read(void *user, const store_result *result);

static void drop_events(loading *self)
{
    for (size_t i = 0; i < self->event_count; i++) {
        a2a_event_unref(self->events[i]);
    }
    self->event_count = 0;
}

static void load_end(agent_store *self, bay_err err)
{
    loading *load = self->loading;
    self->loading = NULL;
    load->told.err = err;
    drop_events(load);
    mem_free(load->events);
    mem_free(load->blocks);
    arena_fini(&load->memory);
    arena_fini(&load->block_memory);
    load->done(load->user, &load->told);
    mem_free(load);
}

static bay_err add_event(loading *self, uint64_t sequence, bool is_last, bay_str json)
{
    while (self->event_count > 0 &&
           a2a_event_sequence(self->events[self->event_count - 1]) >= sequence) {
        a2a_event_unref(self->events[--self->event_count]);
    }
    if (self->event_count == self->event_cap) {
        size_t cap = self->event_cap == 0 ? 16 : self->event_cap * 2;
        a2a_event **events = mem_resize(self->events, cap * sizeof(a2a_event *));
        if (events == NULL) {
            return BAY_ERR_NOMEM;
        }
        self->events = events;
        self->event_cap = cap;
    }
    a2a_event *event = a2a_event_new(json, sequence, is_last);
    if (event == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->events[self->event_count++] = event;
    return BAY_OK;
}

/* What is damaged ends the list: what comes before it has no gap. */
static bay_err read_events(loading *self, bay_str value)
{
    while (value.len >= AGENT_STORE_EVENT_HEAD) {
        uint64_t len = bytes_get_u64(value.at + BYTES_U64 + 1);
        if (len > value.len - AGENT_STORE_EVENT_HEAD) {
            break;
        }
        bay_err err = add_event(self, bytes_get_u64(value.at), value.at[BYTES_U64] == '1',
                                (bay_str){value.at + AGENT_STORE_EVENT_HEAD, (size_t)len});
        if (err != BAY_OK) {
            return err;
        }
        value = str_from(value, AGENT_STORE_EVENT_HEAD + (size_t)len);
    }
    return BAY_OK;
}

/* The row at hand is done with. */
static void drop_row(loading *self)
{
    drop_events(self);
    arena_reset(&self->block_memory);
    self->block_count = self->block_bytes = 0;
    self->has_read_events = self->has_read_blocks = false;
    self->at++;
}

static bay_err restore_row(agent_store *self)
{
    loading *load = self->loading;
    const a2a_kept_task kept = {.row = load->rows[load->at].row,
                                .blocks = load->blocks,
                                .block_count = load->block_count,
                                .events = load->events,
                                .event_count = load->event_count};
    bay_err err = a2a_agent_restore(load->agent, &kept, load->may_resume);
    drop_row(load);
    load->told.tasks += err == BAY_OK;
    if (err == BAY_ERR_SYNTAX || err == BAY_ERR_DUPLICATE) {
        load->told.refused++;
        LOG(LOG_WARN, "agent", "a stored task cannot be read and is left alone: %s",
            bay_err_text(err));
        return BAY_OK;
    }
    return err;
}

/* The next step of loading, after one that came back. */
static void load_on(agent_store *self, bay_err err)
{
    if (err != BAY_OK) {
        load_end(self, err);
    } else {
        load_next(self);
    }
}

static bay_err start_events(agent_store *self, uint64_t after)
{
    char name[STORE_TABLE_BYTES];
    bay_str stream = agent_store_stream(self, self->loading->rows[self->loading->at].key, name);
    bay_err err = store_read(self->store, stream, after, STORE_READ_ROWS, events_read, self);
    self->doing += err == BAY_OK;
    return err;
}

static void events_read(void *user, const store_result *result)
{
    agent_store *self = user;
    loading *load = self->loading;
    bay_err err = result->err;
    self->doing--;
    for (size_t i = 0; err == BAY_OK && i < result->count; i++) {
        err = read_events(load, result->rows[i].value);
    }
    if (err == BAY_OK && result->has_more) {
        err = start_events(self, result->rows[result->count - 1].version);
        if (err == BAY_OK) {
            return;
        }
    }
    load->has_read_events = true;
    load_on(self, err);
}

/* ---- blocks */

/* One that is damaged, or another's, is left out: the row misses it then. */
static bay_err read_block(loading *self, const store_row *from)
{
    bay_str value = from->value;
    bay_str id = self->rows[self->at].key;
    if (from->key.len != AGENT_STORE_BLOCK_NAME || value.len <= AGENT_STORE_BLOCK_HEAD ||
        value.len > AGENT_STORE_BLOCKS - self->block_bytes ||
        bytes_get_u64(value.at) !=
            agent_store_sum(id, from->key, str_from(value, AGENT_STORE_BLOCK_HEAD))) {
        return BAY_OK;
    }
    if (self->block_count == self->block_cap) {
        size_t cap = self->block_cap == 0 ? 64 : self->block_cap * 2;
        a2a_overflow_block *blocks = mem_resize(self->blocks, cap * sizeof(*blocks));
        if (blocks == NULL) {
            return BAY_ERR_NOMEM;
        }
        self->blocks = blocks;
        self->block_cap = cap;
    }
    a2a_overflow_block *block = &self->blocks[self->block_count];
    *block = (a2a_overflow_block){.overflow = bytes_get_u64(from->key.at)};
    for (int i = BYTES_U64; i < AGENT_STORE_BLOCK_NAME; i++) {
        block->number = block->number << 8 | (unsigned char)from->key.at[i];
    }
    bay_err err =
        arena_dup(&self->block_memory, str_from(value, AGENT_STORE_BLOCK_HEAD), &block->bytes);
    self->block_count += err == BAY_OK;
    self->block_bytes += value.len;
    return err;
}

static bay_err start_blocks(agent_store *self, bay_str after)
{
    bay_err err = store_parts(self->store, agent_store_table(self),
                              self->loading->rows[self->loading->at].key, after, STORE_READ_ROWS,
                              blocks_read, self);
    self->doing += err == BAY_OK;
    return err;
}

static void blocks_read(void *user, const store_result *result)
{
    agent_store *self = user;
    loading *load = self->loading;
    bay_err err = result->err == BAY_ERR_NOT_FOUND ? BAY_OK : result->err;
    self->doing--;
    for (size_t i = 0; err == BAY_OK && i < result->count; i++) {
        err = read_block(load, &result->rows[i]);
    }
    if (err == BAY_OK && result->has_more) {
        err = start_blocks(self, result->rows[result->count - 1].key);
        if (err == BAY_OK) {
            return;
        }
    }
    load->has_read_blocks = true;
    load_on(self, err);
}

/* ---- rows */

static bay_err copy_page(loading *self, const store_result *result)
{
    arena_reset(&self->memory);
    self->rows = arena_array(&self->memory, result->count + 1, sizeof(*self->rows));
    self->count = self->at = 0;
    self->has_more = result->has_more;
    if (self->rows == NULL) {
        return BAY_ERR_NOMEM;
    }
    for (size_t i = 0; i < result->count; i++) {
        const store_row *from = &result->rows[i];
        loaded_row *row = &self->rows[i];
        bay_err err = arena_dup(&self->memory, from->key, &row->key);
        if (err == BAY_OK) {
            err = arena_dup(&self->memory, str_from(from->value, 1), &row->row);
        }
        if (err != BAY_OK) {
            return err;
        }
        int flags = from->value.len > 0 ? from->value.at[0] - AGENT_STORE_PLAIN : 0;
        bool is_known = flags >= 0 && flags <= (AGENT_STORE_HAS_EVENTS | AGENT_STORE_HAS_BLOCKS);
        row->has_events = is_known && (flags & AGENT_STORE_HAS_EVENTS) != 0;
        row->has_blocks = is_known && (flags & AGENT_STORE_HAS_BLOCKS) != 0;
        self->count++;
    }
    if (result->count > 0) {
        bay_str last = result->rows[result->count - 1].key;
        memcpy(self->last, last.at, last.len);
        self->last_len = last.len;
    }
    return BAY_OK;
}

static void page_read(void *user, const store_result *result)
{
    agent_store *self = user;
    self->doing--;
    load_on(self, result->err == BAY_OK ? copy_page(self->loading, result) : result->err);
}

static bay_err read_page(agent_store *self)
{
    loading *load = self->loading;
    bay_err err =
        store_scan(self->store, agent_store_table(self), (bay_str){"", 0},
                   (bay_str){load->last, load->last_len}, AGENT_STORE_PAGE, page_read, self);
    self->doing += err == BAY_OK;
    return err;
}

static void load_next(agent_store *self)
{
    loading *load = self->loading;
    bay_err err = BAY_OK;
    while (err == BAY_OK && load->at < load->count) {
        const loaded_row *row = &load->rows[load->at];
        if (row->has_events && !load->has_read_events) {
            err = start_events(self, 0);
        } else if (row->has_blocks && !load->has_read_blocks) {
            err = start_blocks(self, (bay_str){"", 0});
        } else {
            err = restore_row(self);
            continue;
        }
        if (err == BAY_OK) {
            return; /* it comes back */
        }
    }
    bool is_over = err != BAY_OK || !load->has_more;
    if (!is_over) {
        err = read_page(self);
    }
    if (is_over || err != BAY_OK) {
        load_end(self, err);
    }
}

bay_err agent_store_load(agent_store *self, a2a_agent *agent, bool may_resume,
                         void (*done)(void *user, const agent_store_loaded *loaded), void *user)
{
    if (self->loading != NULL) {
        return BAY_ERR_STATE;
    }
    loading *load = mem_zalloc(sizeof(*load));
    if (load == NULL) {
        return BAY_ERR_NOMEM;
    }
    load->agent = agent;
    load->done = done;
    load->user = user;
    load->may_resume = may_resume;
    arena_init(&load->memory, SIZE_MAX);
    arena_init(&load->block_memory, SIZE_MAX);
    self->loading = load;
    bay_err err = read_page(self);
    if (err != BAY_OK) {
        self->loading = NULL;
        mem_free(load);
    }
    return err;
}

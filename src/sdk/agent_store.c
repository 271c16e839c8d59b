/* See agent_store.h. A row's value is a flag (has it events, has it pieces?) and what the engine
 * wrote. A piece is a part of the row, named by strand (8, big endian) and number (4), and holds a
 * checksum (8) and the piece. An event's value holds all events of one put, each as
 *     sequence (8, big endian) | is it the last of its stream (1) | length (8) | JSON
 *
 * A process may die between the events and the row. The engine ignores events that its row does not
 * know of; when later ones take their sequences, the later ones count. */
#include "sdk/agent_store.h"

#include "base/bytes.h"
#include "base/check.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"

enum {
    EVENT_HEAD = BYTES_U64 + 1 + BYTES_U64,
    PIECE_NAME = BYTES_U64 + 4,
    PIECE_HEAD = BYTES_U64,
    FLAG_NONE = '0', /* and any of these two */
    FLAG_EVENTS = 1,
    FLAG_PIECES = 2,
};

/* A put whose operations are under way. */
typedef struct keeping {
    agent_store *of;
    void (*kept)(void *user, bay_err err); /* NULL: nobody waits */
    void *user;
    bay_err err;
    uint32_t left;
} keeping;

typedef struct loaded_row {
    bay_str key;
    bay_str row;
    bool has_events;
    bool has_pieces;
} loaded_row;

typedef struct loading {
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
    arena piece_memory; /* the same */
    a2a_piece *pieces;
    size_t piece_count;
    size_t piece_cap;
    size_t piece_bytes;
    bool has_read_events;
    bool has_read_pieces;
    char last[STORE_KEY_BYTES];
    size_t last_len;
} loading;

struct agent_store {
    a2a_keeper keeper;
    store *store;
    uint32_t doing; /* operations under way */
    loading *loading;
    log_pace complaints;
    size_t name_len;
    char name[AGENT_STORE_NAME_BYTES];
};

store_options agent_store_suits(void)
{
    return (store_options){.rows = UINT64_C(20) << 20,
                           .value_bytes = AGENT_STORE_VALUE,
                           .total_bytes = UINT64_C(8) << 30,
                           .pending = AGENT_STORE_PENDING * 2,
                           .pending_bytes = UINT64_C(1) << 30};
}

static bay_str table_of(const agent_store *self)
{
    return (bay_str){self->name, self->name_len};
}

/* Empty: the id is too long for one. */
static bay_str stream_of(const agent_store *self, bay_str id, char at[STORE_TABLE_BYTES])
{
    if (self->name_len + 1 + id.len > STORE_TABLE_BYTES) {
        return (bay_str){at, 0};
    }
    memcpy(at, self->name, self->name_len);
    at[self->name_len] = '/';
    memcpy(at + self->name_len + 1, id.at, id.len);
    return (bay_str){at, self->name_len + 1 + id.len};
}

/* ---- keeping */

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
        char head[EVENT_HEAD];
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

/* Of a piece under its name: what is damaged, or another's, is told from it. FNV-1a. */
static uint64_t sum_of(bay_str id, bay_str name, bay_str bytes)
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

static void write_name(char at[PIECE_NAME], uint64_t strand, uint32_t number)
{
    bytes_put_u64(at, strand);
    for (int i = PIECE_NAME - 1; i >= BYTES_U64; i--, number >>= 8) {
        at[i] = (char)(number & 0xff);
    }
}

/* The pieces of a put as parts of its row, and the names of those that go; in `memory`. */
static bay_err list_parts(arena *memory, const a2a_put *put, store_put_request *out)
{
    store_part *parts = arena_array(memory, put->piece_count + 1, sizeof(*parts));
    bay_str *gone = arena_array(memory, put->gone_count + 1, sizeof(*gone));
    if (parts == NULL || gone == NULL) {
        return BAY_NOMEM;
    }
    for (size_t i = 0; i < put->piece_count; i++) {
        const a2a_piece *piece = &put->pieces[i];
        char *at = arena_alloc(memory, PIECE_NAME + PIECE_HEAD + piece->bytes.len);
        if (at == NULL) {
            return BAY_NOMEM;
        }
        write_name(at, piece->strand, piece->number);
        parts[i] = (store_part){{at, PIECE_NAME}, {at + PIECE_NAME, PIECE_HEAD + piece->bytes.len}};
        bytes_put_u64(at + PIECE_NAME, sum_of(put->id, parts[i].name, piece->bytes));
        memcpy(at + PIECE_NAME + PIECE_HEAD, piece->bytes.at, piece->bytes.len);
    }
    for (size_t i = 0; i < put->gone_count; i++) {
        char *at = arena_alloc(memory, BYTES_U64);
        if (at == NULL) {
            return BAY_NOMEM;
        }
        bytes_put_u64(at, put->gone[i]);
        gone[i] = (bay_str){at, BYTES_U64};
    }
    out->parts = parts;
    out->part_count = put->piece_count;
    out->dropped = gone;
    out->dropped_count = put->gone_count;
    return BAY_OK;
}

static bay_err put_row(keeping *self, const a2a_put *put, bool has_events)
{
    char *value = mem_alloc(put->row.len + 1);
    if (value == NULL) {
        return BAY_NOMEM;
    }
    value[0] =
        (char)(FLAG_NONE + (has_events ? FLAG_EVENTS : 0) + (put->has_pieces ? FLAG_PIECES : 0));
    memcpy(value + 1, put->row.at, put->row.len);
    store_put_request request = {.table = table_of(self->of),
                                 .key = put->id,
                                 .value = {value, put->row.len + 1},
                                 .expected = STORE_ANY};
    arena memory;
    arena_init(&memory, SIZE_MAX);
    bay_err err = BAY_OK;
    if (put->piece_count + put->gone_count > 0) {
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

static bay_err keeper_put(a2a_keeper *keeper, const a2a_put *put,
                          void (*kept)(void *user, bay_err err), void *user)
{
    agent_store *self = CONTAINER_OF(keeper, agent_store, keeper);
    char name[STORE_TABLE_BYTES];
    bay_str stream = stream_of(self, put->id, name);
    keeping *made = mem_zalloc(sizeof(*made));
    if (made == NULL) {
        return BAY_NOMEM;
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
    if (result->err != BAY_OK && result->err != BAY_NOTFOUND && result->err != BAY_CANCELLED) {
        log_write_paced(&self->complaints, loop_time_ms(), LOG_WARN, "agent",
                        "a task that has ended could not be removed from the store: %s",
                        bay_err_text(result->err));
    }
}

/* Its pieces go with the row, its events by themselves. What cannot be removed now is read again at
 * the next start, and goes then. */
static void keeper_remove(a2a_keeper *keeper, bay_str id)
{
    agent_store *self = CONTAINER_OF(keeper, agent_store, keeper);
    self->doing +=
        store_remove(self->store, table_of(self), id, STORE_ANY, removed, self) == BAY_OK;
}

/* ---- loading */

static void load_next(agent_store *self);
static void events_read(void *user, const store_result *result);
static void pieces_read(void *user, const store_result *result);

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
    mem_free(load->pieces);
    arena_fini(&load->memory);
    arena_fini(&load->piece_memory);
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
            return BAY_NOMEM;
        }
        self->events = events;
        self->event_cap = cap;
    }
    a2a_event *event = a2a_event_new(json, sequence, is_last);
    if (event == NULL) {
        return BAY_NOMEM;
    }
    self->events[self->event_count++] = event;
    return BAY_OK;
}

/* What is damaged ends the list: what comes before it has no gap. */
static bay_err read_events(loading *self, bay_str value)
{
    while (value.len >= EVENT_HEAD) {
        uint64_t len = bytes_get_u64(value.at + BYTES_U64 + 1);
        if (len > value.len - EVENT_HEAD) {
            break;
        }
        bay_err err = add_event(self, bytes_get_u64(value.at), value.at[BYTES_U64] == '1',
                                (bay_str){value.at + EVENT_HEAD, (size_t)len});
        if (err != BAY_OK) {
            return err;
        }
        value = str_from(value, EVENT_HEAD + (size_t)len);
    }
    return BAY_OK;
}

/* The row at hand is done with. */
static void drop_row(loading *self)
{
    drop_events(self);
    arena_reset(&self->piece_memory);
    self->piece_count = self->piece_bytes = 0;
    self->has_read_events = self->has_read_pieces = false;
    self->at++;
}

static bay_err restore_row(agent_store *self)
{
    loading *load = self->loading;
    const a2a_kept_task kept = {.row = load->rows[load->at].row,
                                .pieces = load->pieces,
                                .piece_count = load->piece_count,
                                .events = load->events,
                                .event_count = load->event_count};
    bay_err err = a2a_agent_restore(load->agent, &kept, load->may_resume);
    drop_row(load);
    load->told.tasks += err == BAY_OK;
    if (err == BAY_SYNTAX || err == BAY_DUPLICATE) {
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
    bay_str stream = stream_of(self, self->loading->rows[self->loading->at].key, name);
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

/* ---- pieces */

/* One that is damaged, or another's, is left out: the row misses it then. */
static bay_err read_piece(loading *self, const store_row *from)
{
    bay_str value = from->value;
    bay_str id = self->rows[self->at].key;
    if (from->key.len != PIECE_NAME || value.len <= PIECE_HEAD ||
        value.len > AGENT_STORE_PIECES - self->piece_bytes ||
        bytes_get_u64(value.at) != sum_of(id, from->key, str_from(value, PIECE_HEAD))) {
        return BAY_OK;
    }
    if (self->piece_count == self->piece_cap) {
        size_t cap = self->piece_cap == 0 ? 64 : self->piece_cap * 2;
        a2a_piece *pieces = mem_resize(self->pieces, cap * sizeof(*pieces));
        if (pieces == NULL) {
            return BAY_NOMEM;
        }
        self->pieces = pieces;
        self->piece_cap = cap;
    }
    a2a_piece *piece = &self->pieces[self->piece_count];
    *piece = (a2a_piece){.strand = bytes_get_u64(from->key.at)};
    for (int i = BYTES_U64; i < PIECE_NAME; i++) {
        piece->number = piece->number << 8 | (unsigned char)from->key.at[i];
    }
    bay_err err = arena_dup(&self->piece_memory, str_from(value, PIECE_HEAD), &piece->bytes);
    self->piece_count += err == BAY_OK;
    self->piece_bytes += value.len;
    return err;
}

static bay_err start_pieces(agent_store *self, bay_str after)
{
    bay_err err =
        store_parts(self->store, table_of(self), self->loading->rows[self->loading->at].key, after,
                    STORE_READ_ROWS, pieces_read, self);
    self->doing += err == BAY_OK;
    return err;
}

static void pieces_read(void *user, const store_result *result)
{
    agent_store *self = user;
    loading *load = self->loading;
    bay_err err = result->err == BAY_NOTFOUND ? BAY_OK : result->err;
    self->doing--;
    for (size_t i = 0; err == BAY_OK && i < result->count; i++) {
        err = read_piece(load, &result->rows[i]);
    }
    if (err == BAY_OK && result->has_more) {
        err = start_pieces(self, result->rows[result->count - 1].key);
        if (err == BAY_OK) {
            return;
        }
    }
    load->has_read_pieces = true;
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
        return BAY_NOMEM;
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
        int flags = from->value.len > 0 ? from->value.at[0] - FLAG_NONE : 0;
        bool is_known = flags >= 0 && flags <= (FLAG_EVENTS | FLAG_PIECES);
        row->has_events = is_known && (flags & FLAG_EVENTS) != 0;
        row->has_pieces = is_known && (flags & FLAG_PIECES) != 0;
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
        store_scan(self->store, table_of(self), (bay_str){"", 0},
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
        } else if (row->has_pieces && !load->has_read_pieces) {
            err = start_pieces(self, (bay_str){"", 0});
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
        return BAY_STATE;
    }
    loading *load = mem_zalloc(sizeof(*load));
    if (load == NULL) {
        return BAY_NOMEM;
    }
    load->agent = agent;
    load->done = done;
    load->user = user;
    load->may_resume = may_resume;
    arena_init(&load->memory, SIZE_MAX);
    arena_init(&load->piece_memory, SIZE_MAX);
    self->loading = load;
    bay_err err = read_page(self);
    if (err != BAY_OK) {
        self->loading = NULL;
        mem_free(load);
    }
    return err;
}

/* ---- life */

static const a2a_keeper_ops ops = {keeper_put, keeper_remove};

bay_err agent_store_new(store *on, bay_str table, agent_store **out)
{
    if (table.len == 0 || table.len > AGENT_STORE_NAME_BYTES) {
        return BAY_INVALID;
    }
    agent_store *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_NOMEM;
    }
    self->keeper.ops = &ops;
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

a2a_keeper *agent_store_keeper(agent_store *self)
{
    return &self->keeper;
}

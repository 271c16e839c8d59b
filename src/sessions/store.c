/* Rows and events of sessions, written and read back. */
#include "sessions/store.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

enum {
    LATER_MS = 1000,
    HOLD_MS = 500, /* a stream waits no longer for a store that is slow or locked */
    COMPLAINT_MS = 60000,
    TURN_MS = 20,
    HEADER_BYTES = 9, /* of a stored event: stream, sequence (big endian), is it the last */
    READ_EVENTS = STORE_READ_ROWS,
    NAME_BYTES = 32,
    GONE_MS = 1,
    MOST_ENDED = 4096,     /* sessions that are over, and whose rows could not be removed yet */
    MOST_UNWRITTEN = 1024, /* of a worker; beyond that, answers alone are logged */
};

static const bay_str session_table = STR_INIT("sessions");

struct session_store {
    loop *loop;
    store *file;
    list due;
    list later;
    list awaited; /* sessions with streams that wait for their rows, in the order of time */
    loop_timer hold;
    list ended; /* rows that are to go, oldest first */
    uint32_t ended_count;
    loop_task task;
    loop_timer timer;
    buf row;
    uint32_t pending; /* operations started and not over */
    uint32_t idle_ms;
    uint32_t log_events;
    size_t log_bytes;
    uint64_t quiet_until_ms; /* complaints are rare, whatever is wrong */
};

typedef struct name {
    char text[NAME_BYTES];
    size_t len;
} name;

static bay_str name_of(name *self, const char *prefix, uint64_t number)
{
    buf out = {.at = self->text, .cap = sizeof(self->text), .max = sizeof(self->text)};
    buf_printf(&out, "%s%016llx", prefix, (unsigned long long)number);
    self->len = out.len;
    return buf_view(&out);
}

/* A client that listens is a sign of life only every idle time; the row must last until then. */
static uint64_t expiry(const session_store *self)
{
    return loop_time_ms() + self->idle_ms + self->idle_ms / 2;
}

static void complain(session_store *self, bay_err err)
{
    bool is_trouble = err != BAY_OK && err != BAY_ERR_CANCELLED && err != BAY_ERR_CLOSED;
    if (is_trouble && loop_time_ms() >= self->quiet_until_ms) {
        self->quiet_until_ms = loop_time_ms() + COMPLAINT_MS;
        LOG(LOG_ERROR, "sessions",
            "the store does not take everything (%s): sessions may not survive", bay_err_text(err));
    }
}

/* ---- opening and closing */

static void write_due(void *argument);
static void remove_ended(session_store *self);
static void show_late(void *argument);

static void make_due(void *argument)
{
    session_store *self = argument;
    list_link *link;
    remove_ended(self);
    while ((link = list_pop(&self->later)) != NULL) {
        list_push(&self->due, link);
    }
    write_due(self);
}

static void store_on_closed(void *user)
{
    *(bool *)user = true;
}

static void close_file(loop *on, store *file)
{
    bool is_closed = false;
    store_close(file, store_on_closed, &is_closed);
    while (!is_closed) {
        (void)loop_turn(on, TURN_MS);
    }
    store_free(file);
}

/* The largest event, and the largest row. */
static uint64_t value_bytes(const config *settings)
{
    uint64_t event = settings->limits.event_log_bytes + HEADER_BYTES;
    return event > STORE_VALUE_BYTES ? event : STORE_VALUE_BYTES;
}

bay_err session_store_new(loop *on, const config *settings, store *file, session_store **out)
{
    session_store *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        close_file(on, file);
        return BAY_ERR_NOMEM;
    }
    self->file = file;
    self->loop = on;
    self->idle_ms = settings->limits.session_idle_ms;
    self->log_events = settings->limits.event_log_events;
    self->log_bytes = settings->limits.event_log_bytes;
    list_init(&self->due);
    list_init(&self->later);
    list_init(&self->ended);
    list_init(&self->awaited);
    loop_timer_init(&self->hold, show_late, self);
    buf_init(&self->row, value_bytes(settings));
    self->task = (loop_task){.function = write_due, .argument = self};
    loop_timer_init(&self->timer, make_due, self);
    *out = self;
    return BAY_OK;
}

bay_err session_store_open(loop *on, const config *settings, session_store **out, bay_diag *diag)
{
    if (settings->store.len == 0) {
        *out = NULL;
        return BAY_OK;
    }
    store *file = NULL;
    store_options options = {.value_bytes = value_bytes(settings)};
    bay_err err = store_open_sqlite(on, settings->store, &options, &file, diag);
    if (err != BAY_OK) {
        return err;
    }
    err = session_store_new(on, settings, file, out);
    return err == BAY_OK ? BAY_OK : diag_set(diag, err, "out of memory");
}

store *session_store_rows(const session_store *self)
{
    return self != NULL ? self->file : NULL;
}

void session_store_flush(session_store *self, uint32_t within_ms)
{
    uint64_t until = loop_time_ms() + within_ms;
    make_due(self);
    while ((self->pending > 0 || !list_is_empty(&self->due)) && loop_time_ms() < until) {
        (void)loop_turn(self->loop, TURN_MS);
    }
    if (self->pending > 0) {
        LOG(LOG_WARN, "sessions", "%u changes of sessions were not written in time", self->pending);
    }
}

void session_store_free(session_store *self)
{
    if (self == NULL) {
        return;
    }
    CHECK(list_is_empty(&self->due) && list_is_empty(&self->later));
    close_file(self->loop, self->file);
    loop_undefer(self->loop, &self->task);
    loop_timer_stop(self->loop, &self->timer);
    loop_timer_stop(self->loop, &self->hold);
    list_link *link;
    while ((link = list_pop(&self->ended)) != NULL) {
        mem_free(CONTAINER_OF(link, kept_session, link));
    }
    buf_fini(&self->row);
    mem_free(self);
}

/* ---- rows */

kept_session *kept_session_new(session_store *self, uint64_t number)
{
    kept_session *made = mem_zalloc(sizeof(*made));
    if (made != NULL) {
        made->store = self;
        made->number = number;
    }
    return made;
}

static void arm(session_store *self)
{
    if (self->timer.heap_index == 0) {
        /* without memory for it the next change that matters takes it along */
        err_ignore(loop_timer_start(self->loop, &self->timer, LATER_MS));
    }
}

static void await(kept_session *self)
{
    session_store *home = self->store;
    if (list_holds(&self->awaiting)) {
        return;
    }
    self->since_ms = loop_now_ms(home->loop);
    list_push(&home->awaited, &self->awaiting);
    if (home->hold.heap_index == 0) {
        /* without memory for it they wait for their rows, however long */
        err_ignore(loop_timer_start(home->loop, &home->hold, HOLD_MS));
    }
}

/* A store that is locked, or slow, delays nobody for longer: those streams may not survive. */
static void show_late(void *argument)
{
    session_store *self = argument;
    uint64_t now_ms = loop_now_ms(self->loop);
    list_link *link;
    while ((link = list_first(&self->awaited)) != NULL) {
        kept_session *one = CONTAINER_OF(link, kept_session, awaiting);
        if (one->since_ms + HOLD_MS > now_ms) {
            err_ignore(loop_timer_start(self->loop, &self->hold, one->since_ms + HOLD_MS - now_ms));
            return;
        }
        list_remove(link);
        one->is_awaited = false;
        one->is_promised = false;
        complain(self, BAY_ERR_TIMEOUT);
        mcp_session_kept(one->session, mcp_session_last_stream(one->session));
    }
}

static void put_due(kept_session *self)
{
    list_remove(&self->link);
    list_push(&self->store->due, &self->link);
    loop_defer(self->store->loop, &self->store->task);
}

bool kept_session_changed(kept_session *self, mcp_keep how)
{
    session_store *home = self->store;
    bool is_due = list_holds(&self->link);
    self->is_awaited = self->is_awaited || how == MCP_KEEP_AWAITED;
    if (how == MCP_KEEP_AWAITED) {
        await(self);
    }
    if (how != MCP_KEEP_LATER) {
        put_due(self);
    } else if (!is_due) {
        list_push(&home->later, &self->link);
        arm(home);
    }
    return how == MCP_KEEP_AWAITED;
}

static void free_if_over(kept_session *self)
{
    if (!self->is_writing && !self->is_gone) {
        mem_free(self);
    }
}

static void row_is_over(kept_session *self, bay_err err)
{
    complain(self->store, err);
    self->is_writing = false;
    if (self->session == NULL) {
        free_if_over(self);
        return;
    }
    if (list_holds(&self->link)) { /* it changed meanwhile */
        loop_defer(self->store->loop, &self->store->task);
    }
    if (self->is_promised) {
        self->is_promised = false;
        list_remove(&self->awaiting);
        if (self->is_awaited) {
            await(self);
        }
        mcp_session_kept(self->session, self->shown);
    }
}

static void on_row(void *user, const store_result *result)
{
    kept_session *self = user;
    self->store->pending--;
    row_is_over(self, result->err);
}

static bay_err put_row(kept_session *self, store_done done, void *user)
{
    session_store *home = self->store;
    name key = {0};
    buf_clear(&home->row);
    mcp_session_write(self->session, &home->row);
    if (home->row.err != BAY_OK) {
        return home->row.err;
    }
    store_put_request request = {.table = session_table,
                                 .key = name_of(&key, "", self->number),
                                 .value = buf_view(&home->row),
                                 .expires_at_ms = expiry(home),
                                 .expected = STORE_ANY,
                                 .is_relaxed = true};
    return store_put(home->file, &request, done, user);
}

static void write_row(kept_session *self)
{
    self->is_writing = true;
    self->is_promised = self->is_awaited;
    self->is_awaited = false;
    self->shown = mcp_session_last_stream(self->session);
    bay_err err = put_row(self, on_row, self);
    if (err == BAY_OK) {
        self->store->pending++;
    } else {
        row_is_over(self, err);
    }
}

/* One whose row is under way waits for that: its next row says more. */
static void write_due(void *argument)
{
    session_store *self = argument;
    list busy;
    list_link *link;
    list_init(&busy);
    while ((link = list_pop(&self->due)) != NULL) {
        kept_session *one = CONTAINER_OF(link, kept_session, link);
        if (one->is_writing) {
            list_push(&busy, link);
        } else {
            write_row(one);
        }
    }
    while ((link = list_pop(&busy)) != NULL) {
        list_push(&self->due, link);
    }
}

static void on_ignored(void *user, const store_result *result)
{
    session_store *self = user;
    self->pending--;
    complain(self, result->err == BAY_ERR_NOT_FOUND ? BAY_OK : result->err);
}

static void count(session_store *self, bay_err started)
{
    if (started == BAY_OK) {
        self->pending++;
    } else {
        complain(self, started);
    }
}

/* A store's stream has no end of its own: an event that is gone at once takes the others' place. */
static void forget_events(kept_session *self)
{
    name text = {0};
    store_append_request request = {.stream = name_of(&text, "session:", self->number),
                                    .value = STR("-"),
                                    .expires_at_ms = loop_time_ms() + GONE_MS,
                                    .keep_events = 1,
                                    .is_relaxed = true};
    count(self->store, store_append(self->store->file, &request, on_ignored, self->store));
}

/* ---- ending: who was told that a session is over must never find it again. A row that cannot be
 * removed now is removed later; until then nobody finds it. */

static void forget_ended(kept_session *self)
{
    self->is_gone = false;
    list_remove(&self->link);
    self->store->ended_count--;
    free_if_over(self);
}

static void on_removed(void *user, const store_result *result)
{
    kept_session *self = user;
    session_store *home = self->store;
    home->pending--;
    self->is_removing = false;
    if (result->err == BAY_OK || result->err == BAY_ERR_NOT_FOUND) {
        forget_ended(self);
    } else {
        complain(home, result->err);
        arm(home);
    }
}

static void remove_row(kept_session *self)
{
    session_store *home = self->store;
    name key = {0};
    bay_err err = store_remove(home->file, session_table, name_of(&key, "", self->number),
                               STORE_ANY, on_removed, self);
    self->is_removing = err == BAY_OK;
    count(home, err);
    if (err != BAY_OK) {
        arm(home);
    }
}

static void remove_ended(session_store *self)
{
    LIST_EACH(link, &self->ended)
    {
        kept_session *one = CONTAINER_OF(link, kept_session, link);
        if (one->is_removing) {
            continue;
        }
        if (one->until_ms <= loop_time_ms()) { /* the row has expired */
            forget_ended(one);
        } else {
            remove_row(one);
        }
    }
}

static void end_for_good(kept_session *self)
{
    session_store *home = self->store;
    self->is_gone = true;
    self->until_ms = expiry(home);
    list_push(&home->ended, &self->link);
    home->ended_count++;
    remove_row(self);
    if (self->has_events) {
        forget_events(self);
    }
    kept_session *oldest = CONTAINER_OF(list_first(&home->ended), kept_session, link);
    if (home->ended_count > MOST_ENDED && !oldest->is_removing) {
        forget_ended(oldest);
    }
}

void kept_session_end(kept_session *self, bool is_for_good)
{
    session_store *home = self->store;
    bool is_due = list_holds(&self->link);
    list_remove(&self->link);
    list_remove(&self->awaiting);
    if (is_for_good) {
        self->session = NULL;
        end_for_good(self);
        return;
    }
    if (is_due && self->session != NULL) {
        count(home, put_row(self, on_ignored, home));
    }
    self->session = NULL;
    free_if_over(self);
}

/* ---- events */

static void put_number(char *at, uint32_t number)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (char)(number >> (24 - 8 * i));
    }
}

static uint32_t get_number(const char *at)
{
    uint32_t number = 0;
    for (int i = 0; i < 4; i++) {
        number = number << 8 | (unsigned char)at[i];
    }
    return number;
}

void kept_session_logged(kept_session *self, uint32_t stream, uint32_t seq, bool is_last,
                         bay_str text)
{
    session_store *home = self->store;
    if (!is_last && home->pending >= MOST_UNWRITTEN) {
        return;
    }
    name stream_name = {0};
    buf_clear(&home->row);
    char header[HEADER_BYTES];
    put_number(header, stream);
    put_number(header + 4, seq);
    header[8] = (char)is_last;
    buf_append(&home->row, header, sizeof(header));
    buf_str(&home->row, text);
    if (home->row.err != BAY_OK) {
        complain(home, home->row.err);
        return;
    }
    self->has_events = true;
    store_append_request request = {.stream = name_of(&stream_name, "session:", self->number),
                                    .value = buf_view(&home->row),
                                    .expires_at_ms = expiry(home),
                                    .keep_events = home->log_events,
                                    .keep_bytes = home->log_bytes + HEADER_BYTES,
                                    .is_relaxed = true};
    count(home, store_append(home->file, &request, on_ignored, home));
}

/* ---- finding one again */

typedef struct search {
    session_store *store;
    uint64_t number;
    session_found done;
    void *user;
    buf row;
    buf text; /* of the events, one after the other */
    mcp_kept_event *events;
    size_t count;
} search;

static void search_end(search *self, bay_err err)
{
    size_t at = 0;
    for (size_t i = 0; i < self->count; i++) { /* the buffer has stopped moving */
        self->events[i].text.at = self->text.at + at;
        at += self->events[i].text.len;
    }
    found_session found = {buf_view(&self->row), self->events, self->count};
    self->done(self->user, err, err == BAY_OK ? &found : NULL);
    buf_fini(&self->row);
    buf_fini(&self->text);
    mem_free(self->events);
    mem_free(self);
}

static bay_err take_event(search *self, bay_str value)
{
    if (value.len < HEADER_BYTES) {
        return BAY_OK; /* it says that there were others */
    }
    mcp_kept_event *more = mem_resize(self->events, (self->count + 1) * sizeof(*more));
    if (more == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->events = more;
    bay_str text = str_from(value, HEADER_BYTES);
    buf_str(&self->text, text);
    more[self->count++] = (mcp_kept_event){.stream = get_number(value.at),
                                           .seq = get_number(value.at + 4),
                                           .is_last = value.at[8] != 0,
                                           .text = {NULL, text.len}};
    return self->text.err;
}

static bay_err read_events(search *self, uint64_t after);

static void on_events(void *user, const store_result *result)
{
    search *self = user;
    self->store->pending--;
    bay_err err = result->err;
    for (size_t i = 0; err == BAY_OK && i < result->count; i++) {
        err = take_event(self, result->rows[i].value);
    }
    if (err == BAY_OK && result->has_more && result->count > 0) {
        err = read_events(self, result->rows[result->count - 1].version);
        if (err == BAY_OK) {
            return;
        }
    }
    search_end(self, err);
}

static bay_err read_events(search *self, uint64_t after)
{
    name stream = {0};
    bay_err err = store_read(self->store->file, name_of(&stream, "session:", self->number), after,
                             READ_EVENTS, on_events, self);
    self->store->pending += err == BAY_OK;
    return err;
}

static void on_found(void *user, const store_result *result)
{
    search *self = user;
    self->store->pending--;
    bay_err err = result->err;
    if (err == BAY_OK) {
        buf_str(&self->row, result->rows[0].value);
        err = self->row.err;
    }
    if (err == BAY_OK) {
        err = read_events(self, 0);
        if (err == BAY_OK) {
            return;
        }
    }
    search_end(self, err);
}

bay_err session_store_find(session_store *self, uint64_t number, session_found done, void *user)
{
    name key = {0};
    LIST_EACH(link, &self->ended)
    {
        if (CONTAINER_OF(link, kept_session, link)->number == number) {
            return BAY_ERR_NOT_FOUND;
        }
    }
    search *made = mem_zalloc(sizeof(*made));
    if (made == NULL) {
        return BAY_ERR_NOMEM;
    }
    *made = (search){.store = self, .number = number, .done = done, .user = user};
    buf_init(&made->row, self->row.max);
    buf_init(&made->text, SIZE_MAX / 2); /* the store's own bounds hold */
    bay_err err = store_get(self->file, session_table, name_of(&key, "", number), on_found, made);
    if (err != BAY_OK) {
        mem_free(made);
        return err;
    }
    self->pending++;
    return BAY_OK;
}

/* A duplex connection on two descriptors.
 *
 *   open ──end of input──► answering ──all answered and written, or time is up──► over
 *     └──────────the output breaks, or the engine is freed──────────────────────► over
 *
 * If a client does not read its answers, its input is not read either: its requests need no more
 * memory than the writer's high-water mark. */
#include "mcp_transport/stdio.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/line_stream.h"

enum { FLUSH_MS = 5000, LINE_KEPT_BYTES = 64 * 1024, LINE_MAX_BYTES = 512 * 1024 * 1024 };

struct mcp_stdio {
    mcp_carrier carrier; /* first */
    loop *loop;
    mcp_connection *connection; /* NULL: over */
    line_reader *reader;
    line_writer *writer;
    uint32_t linger_ms;
    void (*done)(void *user);
    void *user;
    loop_timer timer;     /* limits the answering after the end of input */
    loop_task task;       /* checks whether it is over; never inside a call of the engine */
    buf line;             /* a message whose line ends were replaced */
    bool is_overlong;     /* a line above the reader's bound is on its way … */
    rpc_outline overlong; /* … and shows this */
    bool is_input_over;
    bool is_broken;
    bool is_done;
};

static void look_later(mcp_stdio *self)
{
    if (!self->is_done) {
        loop_defer(self->loop, &self->task);
    }
}

static void stdio_look(void *argument)
{
    mcp_stdio *self = argument;
    bool is_over =
        self->is_broken || (self->is_input_over && mcp_connection_pending(self->connection) == 0 &&
                            line_writer_queued_bytes(self->writer) == 0);
    if (self->is_done || !is_over) {
        return;
    }
    self->is_done = true;
    loop_timer_stop(self->loop, &self->timer);
    line_reader_pause(self->reader);
    if (self->connection != NULL) {
        mcp_connection_close(self->connection);
        self->connection = NULL;
    }
    self->done(self->user); /* may free self */
}

static void set_broken(mcp_stdio *self)
{
    self->is_broken = true;
    look_later(self);
}

static void on_time_is_up(void *argument)
{
    set_broken(argument);
}

/* ---- from the engine */

/* mcp 2026-07-28 basic/transports/stdio: messages MUST NOT contain embedded newlines. Raw ones in
 * JSON are white space, so a space does as well. */
static bay_str one_line(mcp_stdio *self, bay_str json)
{
    if (memchr(json.at, '\n', json.len) == NULL && memchr(json.at, '\r', json.len) == NULL) {
        return json;
    }
    buf_clear(&self->line);
    buf_str(&self->line, json);
    for (size_t i = 0; i < self->line.len; i++) {
        if (self->line.at[i] == '\n' || self->line.at[i] == '\r') {
            self->line.at[i] = ' ';
        }
    }
    return self->line.err == BAY_OK ? buf_view(&self->line) : STR("");
}

static bay_err on_event(mcp_carrier *carrier, bay_str json, bay_str event_id)
{
    mcp_stdio *self = (mcp_stdio *)carrier;
    (void)event_id;
    if (json.len == 0 || self->is_broken) {
        return json.len == 0 ? BAY_OK : BAY_ERR_CANCELLED;
    }
    bay_str line = one_line(self, json);
    bay_err err = line.len > 0 ? line_writer_write(self->writer, line) : BAY_ERR_NOMEM;
    if (self->line.cap > LINE_KEPT_BYTES) {
        buf_fini(&self->line);
        buf_init(&self->line, LINE_MAX_BYTES);
    }
    if (err == BAY_ERR_AGAIN) {
        line_reader_pause(self->reader);
    } else if (err != BAY_OK) {
        LOG(LOG_WARN, "stdio", "the client does not take its messages: %s", bay_err_text(err));
        set_broken(self);
        return BAY_ERR_CANCELLED;
    }
    if (self->is_input_over) {
        look_later(self);
    }
    return err;
}

/* The engine is being freed. */
static void stdio_on_end(mcp_carrier *carrier)
{
    mcp_stdio *self = (mcp_stdio *)carrier;
    self->connection = NULL;
    set_broken(self);
}

static const mcp_carrier_ops carrier_ops = {.event = on_event, .end = stdio_on_end};

/* ---- from the descriptors */

static void on_line(void *user, bay_str line)
{
    mcp_stdio *self = user;
    if (str_trim(line).len > 0 && self->connection != NULL) {
        mcp_connection_receive(self->connection, line, loop_now_ms(self->loop));
    }
}

/* A line above the reader's bound: it is answered as far as it shows what it is. */
static void on_piece(void *user, bay_str piece, bool is_last)
{
    mcp_stdio *self = user;
    if (!self->is_overlong) {
        rpc_outline_init(&self->overlong);
        LOG(LOG_WARN, "stdio", "the client sent a line that is too large");
    }
    self->is_overlong = !is_last;
    rpc_outline_feed(&self->overlong, piece);
    if (is_last && self->connection != NULL) {
        mcp_connection_overlong(self->connection, &self->overlong, loop_now_ms(self->loop));
    }
}

void mcp_stdio_end(mcp_stdio *self, uint32_t linger_ms)
{
    if (self->is_done) {
        return;
    }
    line_reader_pause(self->reader);
    self->is_input_over = true;
    if (loop_timer_start(self->loop, &self->timer, linger_ms) != BAY_OK) {
        self->is_broken = true;
    }
    if (self->connection != NULL) {
        mcp_connection_input_ended(self->connection);
    }
    look_later(self);
}

static void on_input_end(void *user, bay_err err)
{
    mcp_stdio *self = user;
    (void)err;
    mcp_stdio_end(self, self->linger_ms);
}

static void on_drained(void *user)
{
    mcp_stdio *self = user;
    if (self->connection == NULL) {
        return;
    }
    if (self->is_input_over) {
        look_later(self);
    } else {
        line_reader_resume(self->reader);
    }
    mcp_connection_drained(self->connection);
}

static void on_flushed(void *user)
{
    mcp_stdio *self = user;
    if (self->is_input_over) {
        look_later(self);
    }
}

static void on_output_closed(void *user, bay_err err)
{
    (void)err;
    set_broken(user);
}

static const line_reader_events reader_events = {
    .line = on_line, .piece = on_piece, .end = on_input_end};
static const line_writer_events writer_events = {
    .drained = on_drained, .closed = on_output_closed, .flushed = on_flushed};

/* ---- life */

static bay_err open_descriptors(mcp_stdio *self, int in, int out_descriptor)
{
    line_reader_options options = {0};
    bay_err err = line_reader_new(self->loop, in, &options, &reader_events, self, &self->reader);
    /* Taken in any case, also if it is not used any more. */
    bay_err also =
        line_writer_new(self->loop, out_descriptor, 0, 0, &writer_events, self, &self->writer);
    return err != BAY_OK ? err : also;
}

bay_err mcp_stdio_new(loop *runs_on, mcp_server *server, int in, int out_descriptor,
                      uint32_t linger_ms, void (*done)(void *user), void *user, mcp_stdio **out)
{
    mcp_stdio *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->carrier.ops = &carrier_ops;
    self->loop = runs_on;
    self->linger_ms = linger_ms;
    self->done = done;
    self->user = user;
    self->task = (loop_task){.function = stdio_look, .argument = self};
    loop_timer_init(&self->timer, on_time_is_up, self);
    buf_init(&self->line, LINE_MAX_BYTES);
    bay_err err = open_descriptors(self, in, out_descriptor);
    if (err == BAY_OK) {
        err = mcp_connection_open(server, &self->carrier, &self->connection);
    }
    if (err == BAY_OK) {
        const auth_principal *local = principal_local();
        err = local != NULL ? BAY_OK : BAY_ERR_NOMEM;
        mcp_connection_identify(self->connection, local);
        principal_unref(local);
    }
    if (err != BAY_OK) {
        mcp_stdio_free(self);
        return err;
    }
    line_reader_resume(self->reader);
    *out = self;
    return BAY_OK;
}

void mcp_stdio_free(mcp_stdio *self)
{
    if (self == NULL) {
        return;
    }
    self->is_done = true;
    loop_timer_stop(self->loop, &self->timer);
    loop_undefer(self->loop, &self->task);
    if (self->connection != NULL) {
        mcp_connection_close(self->connection);
    }
    line_reader_free(self->reader);
    line_writer_close(self->writer, FLUSH_MS);
    buf_fini(&self->line);
    mem_free(self);
}

/* The frame of every client link: the engine, its clock, and the ways to end. See link_internal.h
 * for states and invariants. */
#include "mcp_transport/link_internal.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/shown.h"
#include "base/str.h"

enum {
    /* Calls that wait for the server, or for room, do not pass through the carrier: their deadlines
     * are checked at this interval. */
    WATCH_MS = 250,
};

uint64_t link_now(const mcp_link *self)
{
    return loop_now_ms(self->loop);
}

/* ---- the clock ------------------------------------------------------------------------------- */

static bool has_hidden_deadlines(const mcp_link *self)
{
    mcp_client_state state = mcp_client_state_of(self->client);
    return self->is_clogged || (state != MCP_CLIENT_READY && state != MCP_CLIENT_BROKEN);
}

static void set_timer(mcp_link *self, uint64_t next_ms)
{
    uint64_t now = link_now(self);
    if (has_hidden_deadlines(self) && next_ms > now + WATCH_MS) {
        next_ms = now + WATCH_MS;
    }
    if (next_ms == UINT64_MAX) {
        loop_timer_stop(self->loop, &self->timer);
        return;
    }
    uint64_t after = next_ms > now ? next_ms - now : 1;
    bool is_set = self->timer.heap_index != 0 && self->timer.due_ms == now + after;
    if (!is_set && loop_timer_start(self->loop, &self->timer, after) != BAY_OK) {
        /* without a clock calls could wait without end */
        mcp_client_broken(self->client, BAY_ERR_NOMEM, "no memory for a timer", now);
    }
}

static void take_turn(void *argument)
{
    mcp_link *self = argument;
    if (!self->is_begun && !self->is_closing) {
        self->is_begun = true;
        self->carrier->begin(self);
    }
    if (self->is_freed) {
        return;
    }
    if (self->is_closed && self->done != NULL) {
        void (*done)(void *user) = self->done;
        self->done = NULL;
        done(self->done_user);
        return;
    }
    uint64_t next = mcp_client_tick(self->client, link_now(self));
    if (!self->is_freed) {
        set_timer(self, next);
    }
}

static void on_timer(void *argument)
{
    link_touch(argument);
}

void link_touch(mcp_link *self)
{
    if (!self->is_freed) {
        loop_defer(self->loop, &self->turn);
    }
}

/* ---- making ---------------------------------------------------------------------------------- */

static void bury(void *argument)
{
    mcp_link *self = argument;
    self->carrier->release(self);
}

bay_err link_init(mcp_link *self, const link_carrier *carrier, loop *runs_on,
                  const mcp_link_options *options, mcp_link_kind kind, const mcp_link_ops *ops)
{
    mcp_client_options client = options->client;
    if (client.max_message_bytes == 0) {
        client.max_message_bytes = LINK_MAX_MESSAGE_BYTES;
    }
    client.link_kind = kind;
    self->carrier = carrier;
    self->loop = runs_on;
    self->max_message_bytes = client.max_message_bytes;
    self->turn = (loop_task){.function = take_turn, .argument = self};
    self->burial = (loop_task){.function = bury, .argument = self};
    loop_timer_init(&self->timer, on_timer, self);
    bay_err err = mcp_client_new(&client, options->events, options->user, ops, self, &self->client);
    if (err == BAY_OK) {
        link_touch(self);
    }
    return err;
}

mcp_client *mcp_link_client(mcp_link *self)
{
    return self->client;
}

int mcp_link_process_id(const mcp_link *self)
{
    return self->carrier->process_id != NULL ? self->carrier->process_id(self) : 0;
}

void mcp_link_log_last_lines(const mcp_link *self)
{
    if (self != NULL && self->carrier->log_last_lines != NULL) {
        self->carrier->log_last_lines(self);
    }
}

/* ---- ending ---------------------------------------------------------------------------------- */

void link_closed(mcp_link *self)
{
    self->is_closed = true;
    link_touch(self);
}

void mcp_link_close(mcp_link *self, void (*done)(void *user), void *user)
{
    self->done = done;
    self->done_user = user;
    if (self->is_closing) {
        link_touch(self);
        return;
    }
    self->is_closing = true;
    mcp_client_close(self->client); /* runs callbacks of the owner */
    if (!self->is_freed) {
        self->carrier->close(self);
    }
}

void mcp_link_free(mcp_link *self)
{
    if (self == NULL || self->is_freed) {
        return;
    }
    self->is_freed = true;
    self->done = NULL;
    loop_timer_stop(self->loop, &self->timer);
    loop_undefer(self->loop, &self->turn);
    self->carrier->stop(self);
    mcp_client_free(self->client);
    loop_defer(self->loop, &self->burial);
}

/* ---- text ------------------------------------------------------------------------------------ */

bay_str link_line(buf *scratch, bay_str message)
{
    bool has_ends = memchr(message.at, '\n', message.len) != NULL ||
                    memchr(message.at, '\r', message.len) != NULL;
    if (!has_ends) {
        return message;
    }
    buf_clear(scratch);
    buf_str(scratch, message);
    if (scratch->err != BAY_OK) {
        return (bay_str){NULL, 0};
    }
    for (size_t i = 0; i < scratch->len; i++) {
        if (scratch->at[i] == '\n' || scratch->at[i] == '\r') {
            scratch->at[i] = ' ';
        }
    }
    return buf_view(scratch);
}

/* The length of an escape sequence at the front that only sets a colour (ESC [ … m); 0: none. */
static size_t colour_bytes(bay_str text)
{
    if (text.len < 3 || text.at[0] != 0x1B || text.at[1] != '[') {
        return 0;
    }
    size_t len = 2;
    while (len < text.len &&
           ((text.at[len] >= '0' && text.at[len] <= '9') || text.at[len] == ';')) {
        len++;
    }
    return len < text.len && text.at[len] == 'm' ? len + 1 : 0;
}

void link_clean_text(char *out, size_t size, bay_str text)
{
    size_t len = 0;
    out[0] = '\0';
    while (text.len > 0 && len + 1 < size) {
        size_t colour = colour_bytes(text);
        size_t end = colour > 0 ? 0 : 1;
        while (colour == 0 && end < text.len && text.at[end] != 0x1B) {
            end++;
        }
        len += shown_copy(out + len, size - len, str_head(text, end), SHOWN_LINE);
        text = str_from(text, colour + end);
    }
}

/* Server-sent events: the writer, and a decoder that reads line by line. A line that is complete in
 * the caller's bytes is read in place; only a split line is collected in `line`. The data of an
 * event with one data line, the usual case, also stays in place until the block or the caller's
 * bytes end. */
#include "wire/sse.h"

#include "base/str.h"

enum {
    LONGEST_FIELD = 16, /* field name, colon and space before the data of one line */
    SMALL_BYTES = 64,   /* not worth freeing */
};

static const char byte_order_mark[3] = {'\xef', '\xbb', '\xbf'};

static bool is_one_line(bay_str text)
{
    return text.len == 0 ||
           (memchr(text.at, '\n', text.len) == NULL && memchr(text.at, '\r', text.len) == NULL);
}

static void write_line(buf *out, const char *field, bay_str value)
{
    buf_str(out, str_of(field));
    buf_str(out, value);
    buf_char(out, '\n');
}

static void write_data(buf *out, bay_str data)
{
    if (is_one_line(data)) {
        write_line(out, "data: ", data);
        return;
    }
    for (;;) {
        size_t end = 0;
        while (end < data.len && data.at[end] != '\n' && data.at[end] != '\r') {
            end++;
        }
        write_line(out, "data: ", str_head(data, end));
        if (end == data.len) {
            return;
        }
        bool is_pair = data.at[end] == '\r' && end + 1 < data.len && data.at[end + 1] == '\n';
        data = str_from(data, end + (is_pair ? 2 : 1));
    }
}

static bay_err sse_settle(buf *out, size_t start)
{
    if (out->err != BAY_OK) {
        out->len = start;
    }
    return out->err;
}

bay_err sse_write_event(buf *out, const sse_event *event)
{
    bool has_retry = event->retry_ms >= 0;
    bool has_nul = event->id.len > 0 && memchr(event->id.at, '\0', event->id.len) != NULL;
    if (!is_one_line(event->name) || !is_one_line(event->id) || has_nul ||
        (event->data.at == NULL && event->id.at == NULL && !has_retry)) {
        return BAY_ERR_INVALID;
    }
    size_t start = out->len;
    if (event->name.at != NULL) {
        write_line(out, "event: ", event->name);
    }
    if (event->id.at != NULL) {
        write_line(out, "id: ", event->id);
    }
    if (has_retry) {
        buf_lit(out, "retry: ");
        buf_int(out, event->retry_ms);
        buf_char(out, '\n');
    }
    if (event->data.at != NULL) {
        write_data(out, event->data);
    }
    buf_char(out, '\n');
    return sse_settle(out, start);
}

bay_err sse_write_comment(buf *out, bay_str text)
{
    if (!is_one_line(text)) {
        return BAY_ERR_INVALID;
    }
    size_t start = out->len;
    write_line(out, text.len > 0 ? ": " : ":", text);
    buf_char(out, '\n');
    return sse_settle(out, start);
}

void sse_decoder_init(sse_decoder *self, size_t max_event_bytes)
{
    *self = (sse_decoder){
        .max_event_bytes = max_event_bytes,
        .block_retry_ms = SSE_NO_RETRY,
        .retry_ms = SSE_NO_RETRY,
    };
    bool is_huge = max_event_bytes > SIZE_MAX - LONGEST_FIELD;
    buf_init(&self->line, is_huge ? SIZE_MAX : max_event_bytes + LONGEST_FIELD);
    buf_init(&self->data, max_event_bytes);
    buf_init(&self->name, SSE_NAME_BYTES);
    buf_init(&self->id, SSE_ID_BYTES);
    buf_init(&self->last_id, SSE_ID_BYTES);
}

void sse_decoder_fini(sse_decoder *self)
{
    buf_fini(&self->line);
    buf_fini(&self->data);
    buf_fini(&self->name);
    buf_fini(&self->id);
    buf_fini(&self->last_id);
}

static void begin_block(sse_decoder *self)
{
    buf_clear(&self->data);
    buf_clear(&self->name);
    self->has_data = false;
    self->has_id = false;
    self->whole = (bay_str){NULL, 0};
    self->block_retry_ms = SSE_NO_RETRY;
    self->excess = 0;
    self->is_done = false;
}

static bay_err set(buf *field, bay_str value)
{
    buf_clear(field);
    buf_str(field, value);
    return field->err;
}

/* Copies the data when the caller's bytes end, or when there is more than one line. */
static bay_err copy_whole(sse_decoder *self)
{
    buf_str(&self->data, self->whole);
    self->whole = (bay_str){NULL, 0};
    return self->data.err;
}

/* `stays`: the value is in the caller's bytes. */
static bay_err read_data(sse_decoder *self, bay_str value, bool stays)
{
    if (!self->has_data && stays && value.len <= self->data.max) {
        self->has_data = true;
        self->whole = value;
        return BAY_OK;
    }
    bay_err err = copy_whole(self);
    if (self->has_data) {
        buf_char(&self->data, '\n');
    }
    self->has_data = true;
    buf_str(&self->data, value);
    return err != BAY_OK ? err : self->data.err;
}

static bay_err read_field(sse_decoder *self, bay_str name, bay_str value, bool stays)
{
    if (str_eq(name, STR("data"))) {
        return read_data(self, value, stays);
    }
    if (str_eq(name, STR("event"))) {
        return set(&self->name, value);
    }
    if (str_eq(name, STR("id"))) {
        if (value.len > 0 && memchr(value.at, '\0', value.len) != NULL) {
            return BAY_OK;
        }
        self->has_id = true;
        return set(&self->id, value);
    }
    uint64_t retry_ms;
    if (str_eq(name, STR("retry")) && str_uint(value, &retry_ms) && retry_ms <= INT64_MAX) {
        self->block_retry_ms = self->retry_ms = (int64_t)retry_ms;
    }
    return BAY_OK;
}

/* An empty line. Sets is_done if the caller gets a block. */
static void end_block(sse_decoder *self)
{
    if (self->has_id) {
        buf old = self->last_id;
        self->last_id = self->id;
        self->id = old;
        buf_clear(&self->id);
    }
    if (self->has_data || self->has_id || self->block_retry_ms >= 0) {
        self->is_done = true;
    } else {
        begin_block(self);
    }
}

/* False: the block has too many bytes that are not data. */
static bool count_line(sse_decoder *self, bay_str line, size_t data)
{
    self->excess += line.len + 1 - data;
    self->excess -= data < self->excess ? data : self->excess;
    return self->excess <= SSE_FRAMING_BYTES;
}

static bay_err read_line(sse_decoder *self, bay_str line, bool stays)
{
    if (line.len == 0) {
        end_block(self);
        return BAY_OK;
    }
    size_t colon = str_find(line, ':');
    bool is_data = str_eq(str_head(line, colon), STR("data"));
    if (!count_line(self, line, is_data ? str_from(line, colon + 1).len : 0)) {
        return BAY_ERR_LIMIT;
    }
    if (colon == 0) {
        return BAY_OK; /* a comment */
    }
    bay_str value = str_from(line, colon + 1);
    if (value.len > 0 && value.at[0] == ' ') {
        value = str_from(value, 1);
    }
    return read_field(self, str_head(line, colon), value, stays);
}

/* Skips one byte order mark at the start of the stream; false: it may continue. */
static bool skip_mark(sse_decoder *self, bay_str bytes, size_t *at)
{
    while (self->mark_at < sizeof(byte_order_mark)) {
        if (*at == bytes.len) {
            return false;
        }
        if (bytes.at[*at] != byte_order_mark[self->mark_at]) {
            buf_append(&self->line, byte_order_mark, self->mark_at); /* it was text after all */
            self->mark_at = sizeof(byte_order_mark);
            return true;
        }
        self->mark_at++;
        (*at)++;
    }
    return true;
}

/* The next end of line of one kind in the caller's bytes. The result is remembered, so that a
 * stream with one kind of line end is not searched repeatedly for the other. */
static size_t next_of(bay_str bytes, size_t at, char c, size_t *known)
{
    if (*known < at || *known == SIZE_MAX) {
        *known = at + str_find(str_from(bytes, at), c);
    }
    return *known;
}

/* Reads the piece of a line that ends at `end`; `is_whole`: a line end follows. */
static bay_err read_piece(sse_decoder *self, bay_str piece, bool is_whole)
{
    if (piece.len > self->line.max - self->line.len) {
        return BAY_ERR_LIMIT;
    }
    if (is_whole && self->line.len == 0) {
        return read_line(self, piece, true);
    }
    buf_str(&self->line, piece);
    if (self->line.err != BAY_OK || !is_whole) {
        return self->line.err;
    }
    bay_err err = read_line(self, buf_view(&self->line), false);
    buf_clear(&self->line);
    return err;
}

static void report(const sse_decoder *self, sse_block *out)
{
    *out = (sse_block){.kind = SSE_MORE, .retry_ms = SSE_NO_RETRY};
    if (!self->is_done) {
        return;
    }
    out->kind = self->has_data ? SSE_EVENT : SSE_UPDATE;
    out->has_id = self->has_id;
    out->retry_ms = self->block_retry_ms;
    out->name = self->name.len > 0 ? buf_view(&self->name) : STR("message");
    out->id = buf_view(&self->last_id);
    out->data = self->whole.at != NULL ? self->whole : buf_view(&self->data);
}

bay_err sse_decoder_feed(sse_decoder *self, bay_str bytes, size_t *out_consumed, sse_block *out)
{
    size_t at = 0;
    size_t known_lf = SIZE_MAX;
    size_t known_cr = SIZE_MAX;
    if (self->is_done) {
        begin_block(self);
    }
    bool may_read = skip_mark(self, bytes, &at);
    while (may_read && at < bytes.len && !self->is_done) {
        if (self->skips_lf) {
            self->skips_lf = false;
            if (bytes.at[at] == '\n') {
                at++;
                continue;
            }
        }
        size_t lf = next_of(bytes, at, '\n', &known_lf);
        size_t cr = next_of(bytes, at, '\r', &known_cr);
        size_t end = lf < cr ? lf : cr;
        bool is_whole = end < bytes.len;
        bay_err err = read_piece(self, (bay_str){bytes.at + at, end - at}, is_whole);
        if (err != BAY_OK) {
            return err;
        }
        self->skips_lf = is_whole && cr < lf;
        at = is_whole ? end + 1 : end;
    }
    bay_err err = self->is_done || self->whole.at == NULL ? BAY_OK : copy_whole(self);
    err = self->line.err != BAY_OK ? self->line.err : err;
    if (err != BAY_OK) {
        return err;
    }
    *out_consumed = at;
    report(self, out);
    return BAY_OK;
}

void sse_decoder_trim(sse_decoder *self)
{
    if (self->is_done) {
        begin_block(self);
    }
    if (self->line.len == 0) {
        buf_fini(&self->line);
    }
    if (self->data.len == 0) {
        buf_fini(&self->data);
    }
    if (self->name.len == 0) {
        buf_fini(&self->name);
    }
    if (!self->has_id && self->id.cap > SMALL_BYTES) {
        buf_fini(&self->id); /* a stream whose events have ids will use it again */
    }
}

bay_str sse_decoder_last_id(const sse_decoder *self)
{
    return buf_view(&self->last_id);
}

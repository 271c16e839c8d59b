/* Sessions as bytes: taken down between a client and a server, and taken apart so that either
 * side's bytes can be given to a fresh other side, cut wherever a test wants.
 *
 * A recording has, in the order in which they passed:
 * - units: what the client sent, whole requests (HTTP) or lines (stdio); an empty one: it hung up;
 * - items: what the server said: heads, messages, ends of responses, or lines;
 * - pieces: the server's bytes, each with the unit it answers and how many requests went before it.
 * Ids of sessions and tasks and states of rounds are drawn anew by each server: they are its
 * tokens, in the order of their first appearance, and a replay puts the new ones where the old ones
 * were.
 *
 * Nothing here uses the library's memory, so that a test may take that away. */
#ifndef TESTS_SWEEP_RECORDING_H
#define TESTS_SWEEP_RECORDING_H

#include "support/sweep_session.h"

#include <stdarg.h>
#include <strings.h>

enum { RECORD_CONNECTIONS = 32, RECORD_TOKENS = 64, RECORD_TOKEN = 4096 };

/* ---- bytes that grow ------------------------------------------------------------------------- */

typedef struct text_bytes {
    char *at;
    size_t len;
    size_t room;
} text_bytes;

static inline void bytes_add(text_bytes *self, const char *at, size_t len)
{
    if (self->len + len + 1 > self->room) {
        self->room = (self->len + len + 1) * 2;
        self->at = realloc(self->at, self->room);
        assert_non_null(self->at);
    }
    memcpy(self->at + self->len, at, len);
    self->len += len;
    self->at[self->len] = '\0';
}

static inline void bytes_clear(text_bytes *self)
{
    self->len = 0;
    if (self->at != NULL) {
        self->at[0] = '\0';
    }
}

static inline const char *bytes_text(const text_bytes *self)
{
    return self->at != NULL ? self->at : "";
}

/* ---- one direction of one connection, taken apart -------------------------------------------- */

typedef enum part_kind {
    PART_HEAD,    /* of a response: its status and type */
    PART_MESSAGE, /* a body, an event, a line */
    PART_END,     /* of a response */
    PART_REQUEST, /* of the client, whole */
} part_kind;

typedef void (*part_handler)(void *user, part_kind kind, const char *text);

typedef struct dissector {
    bool is_http;
    bool is_client;
    enum { IN_HEAD, IN_BODY, IN_SIZE, IN_CHUNK, IN_CHUNK_END } state;
    size_t left;
    bool is_chunked;
    bool is_events;
    text_bytes text;  /* head, body or line so far */
    text_bytes data;  /* of an event */
    text_bytes whole; /* a client's request */
    part_handler handler;
    void *user;
} dissector;

static inline void dissector_fini(dissector *self)
{
    free(self->text.at);
    free(self->data.at);
    free(self->whole.at);
    memset(self, 0, sizeof(*self));
}

static inline void dissector_tell(dissector *self, part_kind kind, const char *text)
{
    self->handler(self->user, kind, text);
}

static inline void dissector_end(dissector *self)
{
    dissector_tell(self, self->is_client ? PART_REQUEST : PART_END,
                   self->is_client ? bytes_text(&self->whole) : "end");
    bytes_clear(&self->whole);
    bytes_clear(&self->text);
    self->state = IN_HEAD;
}

static inline void dissector_head(dissector *self)
{
    const char *head = bytes_text(&self->text);
    const char *length = strcasestr(head, "\r\nContent-Length:");
    self->is_chunked = strcasestr(head, "\r\nTransfer-Encoding: chunked") != NULL;
    self->is_events = strcasestr(head, "\r\nContent-Type: text/event-stream") != NULL;
    self->left = length != NULL ? strtoul(length + 17, NULL, 10) : 0;
    if (!self->is_client) {
        dissector_tell(self, PART_HEAD, head);
    }
    bytes_clear(&self->text);
    if (self->is_chunked) {
        self->state = IN_SIZE;
    } else if (self->left > 0) {
        self->state = IN_BODY;
    } else {
        dissector_end(self);
    }
}

/* A byte of an event stream. */
static inline void dissector_event(dissector *self, char c)
{
    if (c != '\n') {
        bytes_add(&self->text, &c, 1);
        return;
    }
    const char *line = bytes_text(&self->text);
    if (strncmp(line, "data: ", 6) == 0) {
        bytes_add(&self->data, line + 6, strlen(line + 6));
    } else if (line[0] == '\0' && self->data.len > 0) {
        dissector_tell(self, PART_MESSAGE, bytes_text(&self->data));
        bytes_clear(&self->data);
    }
    bytes_clear(&self->text);
}

static inline void dissector_http(dissector *self, char c)
{
    size_t len;
    switch (self->state) {
    case IN_HEAD:
        bytes_add(&self->text, &c, 1);
        len = self->text.len;
        if (len >= 4 && memcmp(self->text.at + len - 4, "\r\n\r\n", 4) == 0) {
            dissector_head(self);
        }
        return;
    case IN_BODY:
        bytes_add(&self->text, &c, 1);
        if (--self->left == 0) {
            if (!self->is_client) {
                dissector_tell(self, PART_MESSAGE, bytes_text(&self->text));
            }
            dissector_end(self);
        }
        return;
    case IN_SIZE:
        bytes_add(&self->data, &c, 1);
        if (c == '\n') {
            self->left = strtoul(bytes_text(&self->data), NULL, 16);
            self->state = self->left > 0 ? IN_CHUNK : IN_CHUNK_END;
            self->is_chunked = self->left > 0;
            bytes_clear(&self->data);
            self->left += self->left == 0;
        }
        return;
    case IN_CHUNK:
        dissector_event(self, c);
        self->state = --self->left == 0 ? IN_CHUNK_END : IN_CHUNK;
        return;
    case IN_CHUNK_END:
        if (c == '\n') {
            if (self->is_chunked) {
                self->state = IN_SIZE;
            } else {
                dissector_end(self);
            }
        }
        return;
    }
}

static inline void dissector_feed(dissector *self, char c)
{
    if (self->is_client) {
        bytes_add(&self->whole, &c, 1);
    }
    if (self->is_http) {
        dissector_http(self, c);
    } else if (c != '\n') {
        bytes_add(&self->text, &c, 1);
    } else {
        dissector_tell(self, self->is_client ? PART_REQUEST : PART_MESSAGE,
                       bytes_text(self->is_client ? &self->whole : &self->text));
        bytes_clear(&self->whole);
        bytes_clear(&self->text);
    }
}

/* ---- tokens ---------------------------------------------------------------------------------- */

typedef struct tokens {
    size_t count;
    char text[RECORD_TOKENS][RECORD_TOKEN];
} tokens;

static inline void tokens_take(tokens *self, const char *text)
{
    static const char *const before[] = {"\"taskId\":\"", "\"requestState\":\"",
                                         "sessionId=", "session_id=", "Mcp-Session-Id: "};
    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
        const char *at = text;
        while ((at = strcasestr(at, before[i])) != NULL) {
            at += strlen(before[i]);
            size_t len = strcspn(at, "\"\r&");
            bool is_known = len == 0;
            for (size_t k = 0; k < self->count && !is_known; k++) {
                is_known = strlen(self->text[k]) == len && memcmp(self->text[k], at, len) == 0;
            }
            if (!is_known) {
                assert_true(self->count < RECORD_TOKENS && len < RECORD_TOKEN);
                memcpy(self->text[self->count], at, len);
                self->text[self->count++][len] = '\0';
            }
        }
    }
}

/* Puts `to`'s k-th token wherever `from`'s k-th stands; `to` NULL: the k-th letter. In place: both
 * are of one length, unless what they stand for differs, and then the old one stays. */
static inline void tokens_swap(const tokens *from, const tokens *to, char *text, size_t len)
{
    for (size_t k = 0; k < from->count; k++) {
        size_t token = strlen(from->text[k]);
        char *at = text;
        while ((at = memmem(at, len - (size_t)(at - text), from->text[k], token)) != NULL) {
            if (to == NULL) {
                memset(at, 'A' + (int)(k % 26), token);
            } else if (k < to->count && strlen(to->text[k]) == token) {
                memcpy(at, to->text[k], token);
            }
            at += token;
        }
    }
}

/* Times, and what else differs from run to run. */
static inline void blank_times(char *text)
{
    static const char *const before[] = {"\"createdAt\":\"", "\"lastUpdatedAt\":\""};
    for (size_t i = 0; i < 2; i++) {
        char *at = text;
        while ((at = strstr(at, before[i])) != NULL) {
            at += strlen(before[i]);
            memset(at, 'T', strcspn(at, "\""));
        }
    }
}

/* ---- what one side said, and both ------------------------------------------------------------ */

typedef struct item {
    int connection;
    char *text;
} item;

typedef struct unit {
    int connection;
    char *at;
    size_t len;
    size_t items_before;
} unit;

typedef struct piece {
    int unit;
    text_bytes bytes;
    size_t requests_before;
} piece;

typedef struct recording {
    const char *revision;
    bool is_http;
    item *items;
    size_t item_count;
    unit *units;
    size_t unit_count;
    size_t request_count; /* units that are not empty */
    piece *pieces;
    size_t piece_count;
    tokens tokens;
    int answering[RECORD_CONNECTIONS]; /* the unit whose answer goes on there; -1: none */
    sweep_transcript told;
} recording;

#define GROW(self, array, count)                                                                   \
    do {                                                                                           \
        (self)->array = realloc((self)->array, ((self)->count + 1) * sizeof(*(self)->array));      \
        assert_non_null((self)->array);                                                            \
    } while (0)

static inline void recording_add_item(recording *self, int connection, part_kind kind,
                                      const char *text)
{
    char line[160];
    tokens_take(&self->tokens, text);
    if (kind == PART_HEAD) { /* its fields are HTTP's affair */
        snprintf(line, sizeof(line), "%.*s", (int)strcspn(text, "\r"), text);
        text = line;
    }
    GROW(self, items, item_count);
    self->items[self->item_count++] = (item){connection, strdup(text)};
}

static inline void recording_add_unit(recording *self, int connection, const char *text)
{
    GROW(self, units, unit_count);
    self->units[self->unit_count++] = (unit){.connection = connection,
                                             .at = strdup(text),
                                             .len = strlen(text),
                                             .items_before = self->item_count};
    self->request_count += text[0] != '\0';
}

static inline void recording_add_byte(recording *self, int of, char c)
{
    piece *last = self->piece_count > 0 ? &self->pieces[self->piece_count - 1] : NULL;
    if (last == NULL || last->unit != of || last->requests_before != self->request_count) {
        GROW(self, pieces, piece_count);
        last = &self->pieces[self->piece_count++];
        *last = (piece){.unit = of, .requests_before = self->request_count};
    }
    bytes_add(&last->bytes, &c, 1);
}

static inline size_t recording_bytes(const recording *self, bool is_client)
{
    size_t sum = 0;
    for (size_t i = 0; is_client && i < self->unit_count; i++) {
        sum += self->units[i].len;
    }
    for (size_t i = 0; !is_client && i < self->piece_count; i++) {
        sum += self->pieces[i].bytes.len;
    }
    return sum;
}

static inline void items_clear(recording *self)
{
    for (size_t i = 0; i < self->item_count; i++) {
        free(self->items[i].text);
    }
    free(self->items);
    self->items = NULL;
    self->item_count = 0;
    self->tokens.count = 0;
}

static inline void recording_free(recording *self)
{
    items_clear(self);
    for (size_t i = 0; i < self->unit_count; i++) {
        free(self->units[i].at);
    }
    for (size_t i = 0; i < self->piece_count; i++) {
        free(self->pieces[i].bytes.at);
    }
    free(self->units);
    free(self->pieces);
    free(self);
}

/* ---- where to cut ---------------------------------------------------------------------------- */

typedef struct cuts {
    size_t stride; /* each piece of bytes is cut where position % stride == phase; 0: see only_at */
    size_t phase;
    size_t only_at; /* of all bytes of the session */
} cuts;

/* How many bytes of `len`, of which `done` are sent, go next; `base`: those of the session before.
 */
static inline size_t cuts_next(const cuts *self, size_t done, size_t len, size_t base)
{
    if (self->stride == 0) {
        size_t at = self->only_at - base;
        return self->only_at > base + done && at < len ? at - done : len - done;
    }
    size_t next = done + 1;
    next += (self->stride + self->phase - next % self->stride) % self->stride;
    return (next < len ? next : len) - done;
}

#endif

/* One HTTP exchange of a client link: its request, its reply (a JSON body, an event stream, or
 * nothing), its end. States and invariants: link_http.h. Source: mcp 2026-07-28
 * basic/transports/streamable-http; mcp 2025-11-25 basic/transports, Streamable HTTP. */
#include <stdio.h>

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "mcp_transport/link_http.h"
#include "wire/header.h"

static const http_call_events exchange_events;

/* ---- being ------------------------------------------------------------------------------------
 */

static void exchange_release(link_exchange *self)
{
    buf_fini(&self->kept);
    buf_fini(&self->body);
    buf_fini(&self->held);
    sse_decoder_fini(&self->decoder);
    http_authority_release(self->authority);
    mem_free(self);
}

void http_link_enter(http_link *self)
{
    self->depth++;
}

void http_link_leave(http_link *self)
{
    if (--self->depth > 0) {
        return;
    }
    list_link *link;
    while ((link = list_pop(&self->dropped)) != NULL) {
        exchange_release(CONTAINER_OF(link, link_exchange, link));
    }
}

static bay_str id_key(const link_exchange *self)
{
    return (bay_str){(const char *)&self->id, sizeof(self->id)};
}

link_exchange *exchange_find(http_link *self, uint64_t id)
{
    return map_get(&self->exchanges, (bay_str){(const char *)&id, sizeof(id)});
}

static link_exchange *exchange_new(http_link *owner, exchange_kind kind, uint64_t id)
{
    link_exchange *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    self->owner = owner;
    self->kind = kind;
    self->id = id;
    self->is_duplex = owner->is_sse_2024;
    if (owner->authority != NULL) {
        self->authority = http_authority_hold(
            owner->authority(owner->authority_user, mcp_client_sends_for(owner->base.client)));
    }
    buf_init(&self->kept, SIZE_MAX / 2);
    buf_init(&self->body, owner->base.max_message_bytes);
    buf_init(&self->held, LINK_MAX_HELD_BYTES);
    sse_decoder_init(&self->decoder, owner->base.max_message_bytes);
    return self;
}

/* A person may have to log in: the engine gives up no call for being idle meanwhile. */
static void exchange_hold(link_exchange *self, bool is_held)
{
    http_link *owner = self->owner;
    if (self->is_held != is_held && !owner->base.is_freed) {
        self->is_held = is_held;
        mcp_client_hold(owner->base.client, is_held, link_now(&owner->base));
        link_touch(&owner->base);
    }
}

static void on_waits(void *user, bool is_waiting)
{
    exchange_hold(user, is_waiting);
}

void exchange_drop(link_exchange *self)
{
    http_link *owner = self->owner;
    if (self->is_dropped) {
        return;
    }
    http_link_enter(owner);
    exchange_hold(self, false);
    self->is_dropped = true;
    if (self->id != 0) {
        (void)map_remove(&owner->exchanges, id_key(self));
    } else {
        owner->unnamed_count--;
    }
    if (self->call != NULL) {
        http_call_cancel(self->call);
        self->call = NULL;
    }
    list_remove(&self->wait);
    list_remove(&self->link);
    list_push(&owner->dropped, &self->link);
    if (owner->stream == self) {
        owner->stream = NULL;
    }
    if (owner->gate == self) {
        http_link_open_gate(owner);
    }
    http_link_leave(owner);
}

void exchange_conclude(link_exchange *self, bay_err err, bool was_sent, const char *text)
{
    http_link *owner = self->owner;
    if (self->is_dropped) {
        return;
    }
    http_link_enter(owner);
    uint64_t id = self->id;
    exchange_kind kind = self->kind;
    int status = self->status;
    exchange_drop(self);
    if (owner->base.is_freed) {
        http_link_leave(owner);
        return;
    }
    if (kind == EXCHANGE_DELETE) {
        if (owner->base.is_closing) {
            link_closed(&owner->base);
        }
    } else if (kind == EXCHANGE_STREAM) {
        sse_2024_ended(owner, err, text);
    } else if (id != 0) {
        mcp_client_ended(owner->base.client, id, err, was_sent, text, link_now(&owner->base));
    } else if (err != BAY_OK) {
        LOG(LOG_WARN, "mcp", "%s: a message was not delivered: %s",
            mcp_client_label(owner->base.client), text);
    } else if (status >= 400) {
        LOG(LOG_WARN, "mcp", "%s: a message was refused: HTTP status %d",
            mcp_client_label(owner->base.client), status);
    }
    link_touch(&owner->base);
    http_link_leave(owner);
}

/* ---- the request ------------------------------------------------------------------------------
 */

static size_t request_fields(const http_link *owner, const link_exchange *self,
                             const mcp_field *fields, size_t count)
{
    http_field *out = owner->fields;
    size_t at = owner->field_count; /* after the owner's own fields */
    if (self->kind == EXCHANGE_POST) {
        out[at++] = (http_field){STR("Content-Type"), STR("application/json")};
        out[at++] = (http_field){STR("Accept"), STR("application/json, text/event-stream")};
    } else if (self->kind != EXCHANGE_DELETE) {
        out[at++] = (http_field){STR("Accept"), STR("text/event-stream")};
        out[at++] = (http_field){STR("Cache-Control"), STR("no-store")};
    }
    for (size_t i = 0; i < count && i < MCP_MAX_FIELDS; i++) {
        out[at++] = (http_field){fields[i].name, fields[i].value};
    }
    return at;
}

static bay_err exchange_send(link_exchange *self, bay_str message, const mcp_field *fields,
                             size_t count)
{
    http_link *owner = self->owner;
    static const bay_str methods[] = {[EXCHANGE_POST] = STR_INIT("POST"),
                                      [EXCHANGE_LISTEN] = STR_INIT("GET"),
                                      [EXCHANGE_DELETE] = STR_INIT("DELETE"),
                                      [EXCHANGE_STREAM] = STR_INIT("GET")};
    bool is_to_endpoint = self->is_duplex && self->kind == EXCHANGE_POST;
    http_call_spec spec = {
        .method = methods[self->kind],
        .url = is_to_endpoint ? buf_view(&owner->endpoint) : http_link_url(owner),
        .parts = is_to_endpoint ? NULL : &owner->parts,
        .fields = owner->fields,
        .field_count = request_fields(owner, self, fields, count),
        .body = message,
        .has_body = self->kind == EXCHANGE_POST,
        .timeout_ms = self->timeout_ms,
        .authority = self->authority,
    };
    bay_diag diag = {0};
    bay_err err = http_client_call(owner->http, &spec, &exchange_events, self, &self->call, &diag);
    if (err != BAY_OK) {
        self->call = NULL;
        LOG(LOG_DEBUG, "mcp", "%s: a request could not begin: %s",
            mcp_client_label(owner->base.client), diag.text);
    } else if (self->is_paused) {
        http_call_pause(self->call);
    }
    return err;
}

/* Behind the gate: copies the parts of the request. */
static bay_err exchange_keep(link_exchange *self, bay_str message, const mcp_field *fields,
                             size_t count)
{
    buf_str(&self->kept, message);
    for (size_t i = 0; i < count; i++) {
        buf_str(&self->kept, fields[i].name);
        buf_char(&self->kept, '\0');
        buf_str(&self->kept, fields[i].value);
        buf_char(&self->kept, '\0');
    }
    if (self->kept.err != BAY_OK) {
        return self->kept.err;
    }
    self->kept_message = message.len;
    self->kept_fields = count;
    list_push(&self->owner->waiting, &self->wait);
    return BAY_OK;
}

static bay_err exchange_send_kept(link_exchange *self)
{
    mcp_field fields[MCP_MAX_FIELDS];
    const char *at = self->kept.at + self->kept_message;
    size_t count = self->kept_fields < MCP_MAX_FIELDS ? self->kept_fields : MCP_MAX_FIELDS;
    for (size_t i = 0; i < count; i++) {
        fields[i].name = str_of(at);
        fields[i].value = str_of(at + fields[i].name.len + 1);
        at = fields[i].value.at + fields[i].value.len + 1;
    }
    bay_err err = exchange_send(self, (bay_str){self->kept.at, self->kept_message}, fields, count);
    buf_fini(&self->kept);
    buf_init(&self->kept, SIZE_MAX / 2);
    return err;
}

void http_link_open_gate(http_link *self)
{
    loop_timer_stop(self->base.loop, &self->gate_timer);
    self->gate = NULL;
    http_link_enter(self);
    list_link *link;
    while (self->gate == NULL && !self->base.is_freed &&
           (link = list_pop(&self->waiting)) != NULL) {
        link_exchange *next = CONTAINER_OF(link, link_exchange, wait);
        bay_err err = exchange_send_kept(next);
        if (err != BAY_OK) {
            exchange_conclude(next, err, false, bay_err_text(err));
        }
    }
    http_link_leave(self);
}

bay_err exchange_begin(http_link *self, exchange_kind kind, uint64_t id, bay_str message,
                       const mcp_field *fields, size_t count, uint32_t timeout_ms,
                       link_exchange **out)
{
    if (id == 0 && self->unnamed_count >= LINK_MAX_UNNAMED) {
        return BAY_ERR_BUSY;
    }
    link_exchange *made = exchange_new(self, kind, id);
    if (made == NULL) {
        return BAY_ERR_NOMEM;
    }
    bool is_bounded = timeout_ms != 0 && timeout_ms < UINT32_MAX - LINK_SLACK_MS;
    made->timeout_ms = is_bounded ? timeout_ms + LINK_SLACK_MS : timeout_ms;
    bay_err err = id != 0 ? map_put(&self->exchanges, id_key(made), made, NULL) : BAY_OK;
    if (err != BAY_OK) {
        exchange_release(made);
        return err == BAY_ERR_LIMIT ? BAY_ERR_BUSY : err;
    }
    self->unnamed_count += id == 0;
    list_push(&self->open, &made->link);
    bool is_gated = self->gate != NULL && kind != EXCHANGE_DELETE && kind != EXCHANGE_STREAM;
    err = is_gated ? exchange_keep(made, message, fields, count)
                   : exchange_send(made, message, fields, count);
    if (err != BAY_OK) {
        exchange_drop(made);
        return err;
    }
    *out = made;
    return BAY_OK;
}

/* ---- back-pressure ----------------------------------------------------------------------------
 */

void exchange_pause(link_exchange *self, bool is_paused)
{
    if (self->is_paused == is_paused) {
        return;
    }
    self->is_paused = is_paused;
    if (!is_paused && (self->held.len > 0 || self->is_over)) {
        loop_defer(self->owner->base.loop, &self->owner->resume);
    }
    if (self->call != NULL) {
        if (is_paused) {
            http_call_pause(self->call);
        } else {
            http_call_resume(self->call);
        }
    }
}

/* ---- events -----------------------------------------------------------------------------------
 */

static void take_event(link_exchange *self, const sse_block *block)
{
    http_link *owner = self->owner;
    mcp_client *client = owner->base.client;
    if (self->kind == EXCHANGE_STREAM) {
        sse_2024_event(self, block);
        return;
    }
    if (block->retry_ms > 0 || block->kind == SSE_UPDATE) {
        int64_t wish = block->retry_ms < INT32_MAX ? block->retry_ms : INT32_MAX;
        mcp_client_event_hint(client, self->id, block->id, wish > 0 ? (uint32_t)wish : 0);
    }
    if (block->kind == SSE_EVENT && str_eq(block->name, STR("message"))) {
        mcp_client_receive(client, self->id, block->data, block->id, link_now(&owner->base));
    }
}

static void hold(link_exchange *self, bay_str bytes)
{
    buf_str(&self->held, bytes);
    if (self->held.err != BAY_OK) {
        exchange_conclude(self, self->held.err, true, bay_err_text(self->held.err));
    }
}

/* Decodes until the bytes are consumed, the receiver pauses or the exchange has ended. */
static void take_events(link_exchange *self, bay_str bytes)
{
    while (!self->is_dropped) {
        size_t consumed = 0;
        sse_block block;
        if (self->is_paused) {
            hold(self, bytes);
            return;
        }
        bay_err err = sse_decoder_feed(&self->decoder, bytes, &consumed, &block);
        if (err != BAY_OK) {
            char text[LINK_TEXT];
            snprintf(text, sizeof(text),
                     err == BAY_ERR_LIMIT
                         ? "an event of the server's stream is larger than %zu bytes"
                         : "no memory for an event of %zu bytes at most",
                     self->owner->base.max_message_bytes);
            exchange_conclude(self, err, true, text);
            return;
        }
        bytes = str_from(bytes, consumed);
        if (self->call != NULL) { /* a complete event is the engine's */
            http_call_keep(self->call,
                           block.kind == SSE_MORE ? sse_decoder_held_bytes(&self->decoder) : 0);
        }
        if (block.kind == SSE_MORE) {
            sse_decoder_trim(&self->decoder);
            return;
        }
        take_event(self, &block);
    }
}

void exchange_resume_all(void *argument)
{
    http_link *self = argument;
    http_link_enter(self);
    /* An exchange that ends inside moves to `dropped`, so the walk starts again; each round empties
     * a `held` or ends an exchange, and what is held again is paused. */
    bool is_again = true;
    while (is_again && !self->base.is_freed) {
        is_again = false;
        LIST_EACH(link, &self->open)
        {
            link_exchange *one = CONTAINER_OF(link, link_exchange, link);
            if (one->is_paused || (one->held.len == 0 && !one->is_over)) {
                continue;
            }
            buf held = one->held;
            buf_init(&one->held, LINK_MAX_HELD_BYTES);
            take_events(one, buf_view(&held));
            buf_fini(&held);
            if (!one->is_dropped && one->is_over && one->held.len == 0 && !one->is_paused) {
                exchange_conclude(one, one->end_err, one->end_was_sent, bay_err_text(one->end_err));
            }
            is_again = true;
            break;
        }
    }
    if (!self->base.is_freed) {
        link_touch(&self->base);
    }
    http_link_leave(self);
}

/* ---- the reply --------------------------------------------------------------------------------
 */

/* Redirects are not followed: the owner's credentials are for the configured URL. */
static void refuse_redirect(link_exchange *self, int status)
{
    char text[LINK_TEXT];
    snprintf(text, sizeof(text),
             "the server redirects (HTTP status %d) and redirects are not followed: configure the "
             "URL it now has",
             status);
    exchange_conclude(self, BAY_ERR_PROTOCOL, status == 303, text);
}

static void refuse_type(link_exchange *self, bay_str type)
{
    char text[LINK_TEXT];
    char shown[64];
    link_clean_text(shown, sizeof(shown), type);
    snprintf(text, sizeof(text),
             "the server answered HTTP status %d with content type \"%s\", which is neither JSON "
             "nor an event stream: is this the URL of an MCP server?",
             self->status, shown);
    exchange_conclude(self, BAY_ERR_PROTOCOL, true, text);
}

/* No encoding was accepted. */
static void refuse_encoding(link_exchange *self, bay_str encoding)
{
    char text[LINK_TEXT];
    char shown[64];
    link_clean_text(shown, sizeof(shown), encoding);
    snprintf(
        text, sizeof(text),
        "the server's reply has the content encoding \"%s\", which was not asked for: is there "
        "a proxy that compresses?",
        shown);
    exchange_conclude(self, BAY_ERR_PROTOCOL, true, text);
}

static bay_str field_of(const http_field *fields, size_t count, bay_str name)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq_nocase(fields[i].name, name)) {
            return fields[i].value;
        }
    }
    return (bay_str){NULL, 0};
}

/* Decides by the reply to a message or a GET what its body means; may end the exchange. */
static void choose_reply(link_exchange *self, int status, bay_str type, bay_str encoding)
{
    bool is_json = header_content_type_is(type, STR("application/json"));
    bool is_events = header_content_type_is(type, STR("text/event-stream"));
    self->reply = REPLY_IGNORED;
    if (self->is_duplex) {
        if (status >= 400 || is_events) {
            exchange_conclude(self, BAY_OK, true, NULL);
        } /* otherwise its messages come on the stream */
    } else if (status >= 400) {
        self->reply = is_json ? REPLY_JSON : REPLY_IGNORED;
        if (self->kind == EXCHANGE_LISTEN) {
            exchange_conclude(self, BAY_OK, true, NULL);
        }
    } else if (self->kind == EXCHANGE_POST && (status == 202 || status == 204 || self->id == 0)) {
        /* ignored: a stream in answer to a notification might never end */
        if (is_events) {
            exchange_conclude(self, BAY_OK, true, NULL);
        }
    } else if (encoding.len > 0 && !str_eq_nocase(encoding, STR("identity"))) {
        refuse_encoding(self, encoding);
    } else if (is_events) {
        self->reply = REPLY_EVENTS;
    } else if (is_json && self->kind == EXCHANGE_POST) {
        self->reply = REPLY_JSON;
    } else {
        refuse_type(self, type);
    }
}

static void on_head(void *user, int status, const http_field *fields, size_t count)
{
    link_exchange *self = user;
    http_link *owner = self->owner;
    http_link_enter(owner);
    self->status = status;
    if (owner->gate == self) {
        http_link_open_gate(owner);
    }
    bay_str type = field_of(fields, count, STR("content-type"));
    if (self->is_dropped) {
        http_link_leave(owner);
        return;
    }
    if (self->kind == EXCHANGE_DELETE) {
        exchange_conclude(self, BAY_OK, true, NULL); /* the session ends whatever the answer */
    } else if (status >= 300 && status < 400) {
        refuse_redirect(self, status);
    } else if (self->kind == EXCHANGE_STREAM) {
        sse_2024_head(self, status, header_content_type_is(type, STR("text/event-stream")));
    } else {
        if (self->id != 0) {
            mcp_client_head(owner->base.client, self->id, status,
                            field_of(fields, count, STR("mcp-session-id")), link_now(&owner->base));
        }
        if (!self->is_dropped) {
            choose_reply(self, status, type, field_of(fields, count, STR("content-encoding")));
        }
    }
    http_link_leave(owner);
}

static void take_json(link_exchange *self, bay_str bytes)
{
    buf_str(&self->body, bytes);
    if (self->body.err == BAY_OK) {
        return;
    }
    char text[LINK_TEXT];
    snprintf(text, sizeof(text),
             self->body.err == BAY_ERR_LIMIT ? "the server's reply is larger than %zu bytes"
                                             : "no memory for a reply of %zu bytes at most",
             self->owner->base.max_message_bytes);
    exchange_conclude(self, self->body.err, true, text);
}

static void on_body(void *user, bay_str bytes)
{
    link_exchange *self = user;
    http_link *owner = self->owner;
    http_link_enter(owner);
    switch (self->reply) {
    case REPLY_EVENTS:
        if (self->held.len > 0) {
            hold(self, bytes); /* after the bytes held before */
        } else {
            take_events(self, bytes);
        }
        break;
    case REPLY_JSON:
        take_json(self, bytes);
        break;
    case REPLY_IGNORED:
        self->ignored_bytes += bytes.len;
        if (self->ignored_bytes > LINK_MAX_IGNORED_BYTES) {
            exchange_conclude(self, BAY_OK, true, NULL);
        }
        break;
    }
    if (!owner->base.is_freed) {
        link_touch(&owner->base);
    }
    http_link_leave(owner);
}

static void link_exchange_on_end(void *user)
{
    link_exchange *self = user;
    http_link *owner = self->owner;
    http_link_enter(owner);
    self->call = NULL; /* its end was reported: it cannot be cancelled any more */
    if (self->reply == REPLY_JSON && self->id != 0) {
        mcp_client_receive(owner->base.client, self->id, buf_view(&self->body), (bay_str){0},
                           link_now(&owner->base));
    }
    if (self->held.len > 0) {
        self->is_over = true;
        self->end_err = BAY_OK;
        self->end_was_sent = true;
    } else {
        exchange_conclude(self, BAY_OK, true, NULL);
    }
    http_link_leave(owner);
}

static void on_failed(void *user, bay_err err, bool was_sent, const char *text)
{
    link_exchange *self = user;
    http_link *owner = self->owner;
    http_link_enter(owner);
    self->call = NULL;
    if (self->held.len > 0) {
        self->is_over = true;
        self->end_err = err;
        self->end_was_sent = was_sent;
    } else {
        exchange_conclude(self, err, was_sent, text);
    }
    http_link_leave(owner);
}

static const http_call_events exchange_events = {
    .head = on_head,
    .body = on_body,
    .end = link_exchange_on_end,
    .failed = on_failed,
    .waits = on_waits,
};

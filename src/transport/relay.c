/* Relayed exchanges. One struct has a half for each loop; messages hold a count on it while they
 * travel. Those that must never fail (begin, cut, gone, acknowledgement) are part of it; answers
 * and events carry bytes and are allocated, and when that fails the exchange is cut. */
#include "transport/relay.h"

#include <stdatomic.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"

enum {
    WINDOW_BYTES = 256 * 1024,    /* on their way; above it: BAY_AGAIN */
    MOST_BYTES = 8 * 1024 * 1024, /* … and above this the exchange is cut */
    EVENT_COST = 128,             /* what an event costs beside its text */
};

typedef struct relay {
    atomic_uint refs;
    relay_port *from; /* of the exchange's loop */
    relay_port *owner;
    loop_message begin;
    loop_message cut;
    loop_message gone;
    loop_message acknowledge;
    loop_message notice;
    atomic_bool is_acknowledging; /* that message is on its way */
    atomic_bool is_noticing;      /* the same */
    atomic_uint notices;          /* what it will say */
    atomic_size_t acknowledged;   /* bytes it will report */
    struct {                      /* the exchange's loop */
        http_reply reply;
        size_t unreported;
        bool is_blocked;
    } front;
    struct { /* the owner's loop */
        face_back way;
        http_face *face;
        list_link link; /* in face->relayed while anybody here may use the carrier */
        size_t on_their_way;
        bool is_waiting;
        bool is_cut;
    } back;
    face_call call; /* views into `request`, until the owner has read it */
    char *request;
    http_field *fields;
    size_t field_count;
} relay;

typedef enum output_kind { OUTPUT_ANSWER, OUTPUT_EVENT, OUTPUT_RETRY, OUTPUT_END } output_kind;

/* What the exchange's loop saw of the reply, by bits. */
enum { NOTICE_QUIET = 1, NOTICE_EXPIRED = 2 };

/* The engine's word on its way to the exchange. */
typedef struct output {
    loop_message message;
    relay *of;
    output_kind kind;
    int status;
    bay_str json;
    bay_str id; /* of the event, or the session */
    bay_str allow;
    char bytes[];
} output;

static void drop_request(relay *self)
{
    principal_unref(self->call.http.principal);
    mem_free(self->request);
    mem_free(self->fields);
    self->request = NULL;
    self->fields = NULL;
}

static void unref(relay *self)
{
    if (atomic_fetch_sub(&self->refs, 1) == 1) {
        relay_port_unref(self->from);
        relay_port_unref(self->owner);
        drop_request(self);
        mem_free(self);
    }
}

/* A message that is part of the relay; it holds a count until it has run. */
static bool post(relay *self, relay_port *to, loop_message *message)
{
    atomic_fetch_add(&self->refs, 1);
    if (relay_port_post(to, message)) {
        return true;
    }
    unref(self); /* never the last: the caller's half has one */
    return false;
}

/* ---- the owner's half ------------------------------------------------------------------------ */

static relay *of_carrier(mcp_carrier *carrier)
{
    return CONTAINER_OF(carrier, relay, back.way.carrier);
}

/* The engine does not know the carrier any more. */
static void leave_back(relay *self)
{
    list_remove(&self->back.link);
    unref(self);
}

static void cut(relay *self)
{
    if (!self->back.is_cut) {
        self->back.is_cut = true;
        (void)post(self, self->from, &self->cut);
    }
}

static void run_output(void *argument);

static bay_str put(char **at, bay_str text)
{
    bay_str copy = {*at, text.len};
    if (text.len > 0) {
        memcpy(*at, text.at, text.len);
    }
    *at += text.len;
    return copy;
}

/* False: it could not be sent; the exchange is cut. */
static bool say(relay *self, output_kind kind, int status, bay_str json, bay_str id, bay_str allow)
{
    if (self->back.is_cut) {
        return false;
    }
    output *word = mem_alloc(sizeof(*word) + json.len + id.len + allow.len);
    if (word == NULL) {
        cut(self);
        return false;
    }
    char *at = word->bytes;
    *word = (output){.of = self, .kind = kind, .status = status};
    word->message = (loop_message){.function = run_output, .argument = word};
    word->json = put(&at, json);
    word->id = put(&at, id);
    word->allow = put(&at, allow);
    if (!post(self, self->from, &word->message)) {
        mem_free(word);
        self->back.is_cut = true;
        return false;
    }
    return true;
}

static void back_answer(mcp_carrier *carrier, int status, bay_str json, bay_str session,
                        bay_str allow)
{
    relay *self = of_carrier(carrier);
    (void)say(self, OUTPUT_ANSWER, status, json, session, allow);
    leave_back(self);
}

static bay_err back_event(mcp_carrier *carrier, bay_str json, bay_str event_id)
{
    relay *self = of_carrier(carrier);
    size_t cost = json.len + event_id.len + EVENT_COST;
    /* As on a socket: one message may be as large as it is, a heap of them may not. */
    if (self->back.on_their_way > 0 &&
        (cost > MOST_BYTES || self->back.on_their_way > MOST_BYTES - cost)) {
        cut(self);
        return BAY_CANCELLED;
    }
    if (!say(self, OUTPUT_EVENT, 0, json, event_id, STR(""))) {
        return BAY_CANCELLED;
    }
    self->back.on_their_way += cost;
    if (self->back.on_their_way > WINDOW_BYTES) {
        self->back.is_waiting = true;
        return BAY_AGAIN;
    }
    return BAY_OK;
}

static void back_end(mcp_carrier *carrier)
{
    relay *self = of_carrier(carrier);
    (void)say(self, OUTPUT_END, 0, STR(""), STR(""), STR(""));
    leave_back(self);
}

static void back_release(mcp_carrier *carrier, uint32_t retry_ms)
{
    (void)say(of_carrier(carrier), OUTPUT_RETRY, (int)retry_ms, STR(""), STR(""), STR(""));
    back_end(carrier);
}

static const mcp_carrier_ops back_ops = {
    .answer = back_answer, .event = back_event, .end = back_end, .release = back_release};

static bay_str field_of(void *context, bay_str name)
{
    relay *self = context;
    for (size_t i = 0; i < self->field_count; i++) {
        if (str_eq_nocase(self->fields[i].name, name)) {
            return self->fields[i].value;
        }
    }
    return (bay_str){NULL, 0};
}

static size_t count_of(void *context, bay_str name)
{
    relay *self = context;
    size_t count = 0;
    for (size_t i = 0; i < self->field_count; i++) {
        count += str_eq_nocase(self->fields[i].name, name) ? 1 : 0;
    }
    return count;
}

static bool field_at(void *context, size_t index, bay_str *out_name, bay_str *out_value)
{
    const relay *self = context;
    if (index >= self->field_count) {
        return false;
    }
    *out_name = self->fields[index].name;
    *out_value = self->fields[index].value;
    return true;
}

/* The request is still needed while the call waits; the wait counts for that long. */
static void drop_wait(face_back *way)
{
    relay *self = of_carrier(&way->carrier);
    drop_request(self);
    unref(self);
}

static void run_begin(void *argument)
{
    relay *self = argument;
    http_face *face = relay_port_face(self->owner);
    if (face == NULL) {
        cut(self);
    } else {
        atomic_fetch_add(&self->refs, 1); /* the engine's, given back by leave_back */
        self->back.way.carrier.ops = &back_ops;
        self->back.way.served = drop_wait;
        self->back.face = face;
        list_push(&face->relayed, &self->back.link);
        face_serve(face, &self->call, &self->back.way);
    }
    if (self->back.way.wait != NULL) {
        return; /* the message's count becomes the wait's */
    }
    drop_wait(&self->back.way);
}

/* The engine forgets the carrier; what it still says has nowhere to go. */
static void abandon_back(relay *self)
{
    if (!list_holds(&self->back.link)) {
        return;
    }
    self->back.is_cut = true;
    bool has_waited = self->back.way.wait != NULL;
    face_back_gone(&self->back.way, loop_now_ms(self->back.face->loop));
    if (has_waited) {
        drop_wait(&self->back.way);
    }
    leave_back(self);
}

static void run_gone(void *argument)
{
    relay *self = argument;
    abandon_back(self);
    unref(self);
}

static void run_acknowledge(void *argument)
{
    relay *self = argument;
    atomic_store(&self->is_acknowledging, false);
    self->back.on_their_way -= atomic_exchange(&self->acknowledged, 0);
    if (list_holds(&self->back.link) && self->back.is_waiting &&
        self->back.on_their_way <= WINDOW_BYTES / 2) {
        self->back.is_waiting = false;
        mcp_server_drained(self->back.way.engine, &self->back.way.carrier);
    }
    unref(self);
}

static void run_notice(void *argument)
{
    relay *self = argument;
    atomic_store(&self->is_noticing, false);
    unsigned notices = atomic_exchange(&self->notices, 0);
    face_back *way = &self->back.way;
    if ((notices & NOTICE_QUIET) != 0 && list_holds(&self->back.link) && way->engine != NULL) {
        mcp_server_quiet(way->engine, &way->carrier, loop_now_ms(self->back.face->loop));
    }
    if ((notices & NOTICE_EXPIRED) != 0 && list_holds(&self->back.link) && way->engine != NULL) {
        mcp_server_end_stream(way->engine, &way->carrier, loop_now_ms(self->back.face->loop));
    }
    unref(self);
}

void relays_end(http_face *self)
{
    list_link *link;
    while ((link = list_first(&self->relayed)) != NULL) {
        relay *one = CONTAINER_OF(link, relay, back.link);
        cut(one);
        abandon_back(one);
    }
}

void relays_close_streams(http_face *self)
{
    list asked;
    list_init(&asked);
    mcp_server *last = NULL;
    list_link *link;
    while ((link = list_pop(&self->relayed)) != NULL) {
        list_push(&asked, link);
        mcp_server *engine = CONTAINER_OF(link, relay, back.link)->back.way.engine;
        if (engine != NULL && engine != last) {
            last = engine;
            mcp_server_close_streams(engine);
        }
    }
    while ((link = list_pop(&asked)) != NULL) {
        list_push(&self->relayed, link);
    }
}

/* ---- the exchange's half --------------------------------------------------------------------- */

static relay *of_reply(http_reply *reply)
{
    return CONTAINER_OF(reply, relay, front.reply);
}

static void acknowledge(relay *self)
{
    if (self->front.unreported == 0) {
        return;
    }
    atomic_fetch_add(&self->acknowledged, self->front.unreported);
    self->front.unreported = 0;
    if (!atomic_exchange(&self->is_acknowledging, true)) {
        (void)post(self, self->owner, &self->acknowledge);
    }
}

static void front_gone(http_reply *reply)
{
    relay *self = of_reply(reply);
    (void)post(self, self->owner, &self->gone);
    unref(self);
}

static void front_drained(http_reply *reply)
{
    relay *self = of_reply(reply);
    self->front.is_blocked = false;
    acknowledge(self);
}

static void front_close(http_reply *reply)
{
    (void)reply; /* the owner's face ends it, when it closes its own streams */
}

static void notice(relay *self, unsigned what)
{
    atomic_fetch_or(&self->notices, what);
    if (!atomic_exchange(&self->is_noticing, true)) {
        (void)post(self, self->owner, &self->notice);
    }
}

static void front_quiet(http_reply *reply)
{
    notice(of_reply(reply), NOTICE_QUIET);
}

static void front_expired(http_reply *reply)
{
    notice(of_reply(reply), NOTICE_EXPIRED);
}

static const http_reply_ops front_ops = {.gone = front_gone,
                                         .drained = front_drained,
                                         .close = front_close,
                                         .quiet = front_quiet,
                                         .expired = front_expired};

static void write_event(relay *self, const output *word)
{
    bay_err err = http_reply_event(&self->front.reply, (bay_str){NULL, 0}, word->json, word->id);
    self->front.unreported += word->json.len + word->id.len + EVENT_COST;
    self->front.is_blocked = self->front.is_blocked || err == BAY_AGAIN;
    if (!self->front.is_blocked && self->front.unreported >= WINDOW_BYTES / 4) {
        acknowledge(self);
    }
}

static void run_output(void *argument)
{
    output *word = argument;
    relay *self = word->of;
    http_reply *reply = &self->front.reply;
    bool was_open = reply->exchange != NULL;
    switch (word->kind) {
    case OUTPUT_ANSWER:
        http_reply_answer(reply, word->status, word->json, word->id, word->allow);
        break;
    case OUTPUT_EVENT:
        if (was_open) {
            write_event(self, word);
        }
        break;
    case OUTPUT_RETRY:
        (void)http_reply_retry(reply, (uint32_t)word->status);
        break;
    case OUTPUT_END:
        http_reply_end(reply);
        break;
    }
    if (was_open && reply->exchange == NULL) {
        unref(self); /* the exchange's */
    }
    mem_free(word);
    unref(self);
}

static void run_cut(void *argument)
{
    relay *self = argument;
    if (self->front.reply.exchange != NULL) {
        http_reply_abort(&self->front.reply);
        (void)post(self, self->owner, &self->gone);
        unref(self);
    }
    unref(self);
}

/* ---- handing over ---------------------------------------------------------------------------- */

static bay_err copy_request(relay *self, const http_exchange *exchange,
                            const auth_principal *principal)
{
    size_t count;
    const http_field *fields = http_exchange_fields(exchange, &count);
    bay_str parts[] = {http_exchange_method(exchange), http_exchange_path(exchange),
                       http_exchange_query(exchange), http_exchange_body(exchange)};
    size_t bytes = 1; /* of an empty allocation nothing is promised */
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        bytes += parts[i].len;
    }
    for (size_t i = 0; i < count; i++) {
        bytes += fields[i].name.len + fields[i].value.len;
    }
    self->request = mem_alloc(bytes);
    self->fields = mem_array(count + 1, sizeof(*self->fields));
    if (self->request == NULL || self->fields == NULL) {
        return BAY_NOMEM;
    }
    char *at = self->request;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        parts[i] = put(&at, parts[i]);
    }
    for (size_t i = 0; i < count; i++) {
        self->fields[i] = (http_field){put(&at, fields[i].name), put(&at, fields[i].value)};
    }
    self->field_count = count;
    self->call = (face_call){.path = parts[1],
                             .query = parts[2],
                             .http = {.verb = parts[0],
                                      .body = parts[3],
                                      .field = field_of,
                                      .field_count = count_of,
                                      .field_at = field_at,
                                      .context = self,
                                      .principal = principal_ref(principal)}};
    return BAY_OK;
}

void relay_exchange(http_face *face, http_exchange *exchange, relay_port *owner,
                    const auth_principal *principal)
{
    relay *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        http_exchange_reply(exchange, 503, NULL, 0, STR(""));
        return;
    }
    atomic_init(&self->refs, 1); /* the exchange's */
    self->from = relay_port_ref(face->port);
    self->owner = relay_port_ref(owner);
    self->begin = (loop_message){.function = run_begin, .argument = self};
    self->cut = (loop_message){.function = run_cut, .argument = self};
    self->gone = (loop_message){.function = run_gone, .argument = self};
    self->acknowledge = (loop_message){.function = run_acknowledge, .argument = self};
    self->notice = (loop_message){.function = run_notice, .argument = self};
    bay_err err = copy_request(self, exchange, principal);
    if (err == BAY_OK) {
        http_reply_begin(&self->front.reply, &face->replies, &front_ops, exchange);
        if (post(self, owner, &self->begin)) {
            return;
        }
    }
    if (self->front.reply.exchange != NULL) {
        http_reply_answer(&self->front.reply, 503, STR(""), STR(""), STR(""));
    } else {
        http_exchange_reply(exchange, 503, NULL, 0, STR(""));
    }
    unref(self);
}

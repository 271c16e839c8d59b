/* A bench for the server engine: carriers that write down what they are told, a service that
 * answers as it is asked to, and a clock that stands still until it is moved. */
#ifndef TEST_SERVER_BENCH_H
#define TEST_SERVER_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/mem.h"
#include "mcp/server.h"
#include "support/people.h"

enum { MAX_EVENTS = 64, MAX_HELD = 32 };

typedef struct wire {
    mcp_carrier carrier; /* first */
    mcp_server *server;
    int status; /* 0: no answer yet */
    int answers;
    int ends;
    uint32_t retry_ms; /* of a release */
    int events;
    char *body;
    char session[64];
    char allow[64];
    char *event[MAX_EVENTS];
    char id[MAX_EVENTS][32];
    bay_err event_err;  /* what `event` says */
    bool dies_on_event; /* reports itself gone from inside `event` */
    bool is_gone;       /* nothing may be called any more */
    mcp_connection *connection;
} wire;

/* A copy with a NUL behind it; for free(). (strndup may look behind the bytes it is given.) */
static char *text_dup(bay_str text)
{
    char *copy = malloc(text.len + 1);
    assert_non_null(copy);
    if (text.len > 0) {
        memcpy(copy, text.at, text.len);
    }
    copy[text.len] = '\0';
    return copy;
}

typedef struct bench {
    mcp_server *server;
    uint64_t now_ms;
    const char *capabilities;
    /* The service: */
    enum { ANSWER_NOW, ANSWER_LATER, NOTIFY_THEN_ANSWER } mode;
    mcp_request *held[MAX_HELD];
    int held_count;
    int requests;
    int cancels;
    int drains;
    int notified;
    int subscribed;
    int unsubscribed;
    int opened;
    int closed;
    bool finish_on_cancel;
    const char *result;
    char last_name[128];
    mcp_session *session;
    const mcp_param_table *params;
    bool are_params_pending;
    bay_err subscribe_err;
} bench;

/* ---- carrier */

static inline void wire_answer(mcp_carrier *carrier, int status, bay_str json, bay_str session,
                               bay_str allow)
{
    wire *self = (wire *)carrier;
    assert_int_equal(self->answers + self->ends, 0);
    assert_false(self->is_gone);
    assert_int_equal(self->events, 0);
    self->answers++;
    self->status = status;
    self->body = json.len > 0 ? text_dup(json) : NULL;
    (void)snprintf(self->session, sizeof(self->session), "%.*s", BAY_STR(session));
    (void)snprintf(self->allow, sizeof(self->allow), "%.*s", BAY_STR(allow));
}

static inline bay_err wire_event(mcp_carrier *carrier, bay_str json, bay_str id)
{
    wire *self = (wire *)carrier;
    assert_int_equal(self->answers + self->ends, 0);
    assert_false(self->is_gone);
    assert_true(self->events < MAX_EVENTS);
    assert_null(memchr(json.len > 0 ? json.at : "", '\n', json.len));
    self->event[self->events] = text_dup(json);
    (void)snprintf(self->id[self->events], sizeof(self->id[0]), "%.*s", BAY_STR(id));
    self->events++;
    if (self->dies_on_event) {
        self->is_gone = true;
        if (self->connection != NULL) {
            mcp_connection *connection = self->connection;
            self->connection = NULL;
            mcp_connection_close(connection);
        } else {
            mcp_server_gone(self->server, carrier, 0);
        }
    }
    return self->event_err;
}

static inline void wire_end(mcp_carrier *carrier)
{
    wire *self = (wire *)carrier;
    assert_int_equal(self->answers + self->ends, 0);
    assert_false(self->is_gone);
    self->ends++;
}

static inline void wire_release(mcp_carrier *carrier, uint32_t retry_ms)
{
    ((wire *)carrier)->retry_ms = retry_ms;
    wire_end(carrier);
}

static const mcp_carrier_ops wire_ops = {wire_answer, wire_event, wire_end, wire_release};

static inline void wire_init(wire *self, bench *on)
{
    *self = (wire){.carrier.ops = &wire_ops, .server = on->server};
}

static inline void wire_fini(wire *self)
{
    free(self->body);
    for (int i = 0; i < self->events; i++) {
        free(self->event[i]);
    }
}

/* The peer of an exchange is gone. */
static inline void wire_gone(bench *on, wire *self)
{
    self->is_gone = true;
    mcp_server_gone(on->server, &self->carrier, on->now_ms);
}

/* ---- HTTP */

typedef struct field {
    const char *name;
    const char *value;
} field;

enum { MAX_FIELDS = 64 };

/* The body and the fields are gone when this returns, as a closed exchange's are. */
static inline void bench_http_as(bench *self, wire *through, const char *verb, const field *at,
                                 const char *body, const char *principal)
{
    wire_init(through, self);
    http_field fields[MAX_FIELDS];
    size_t count = 0;
    for (const field *one = at; one != NULL && one->name != NULL; one++) {
        assert_true(count < MAX_FIELDS);
        fields[count++] = (http_field){str_of(one->name), str_of(one->value)};
    }
    arena memory;
    arena_init(&memory, 1 << 20);
    size_t len = body != NULL ? strlen(body) : 0;
    char *copy = malloc(len + 1);
    assert_non_null(copy);
    memcpy(copy, body != NULL ? body : "", len + 1);
    mcp_http_request request = {.verb = str_of(verb),
                                .body = {copy, len},
                                .fields = fields,
                                .field_count = count,
                                .memory = &memory,
                                .principal = person(principal)};
    mcp_server_http(self->server, &request, &through->carrier, self->now_ms);
    free(copy);
    arena_fini(&memory);
}

static inline void bench_http(bench *self, wire *through, const char *verb, const field *at,
                              const char *body)
{
    bench_http_as(self, through, verb, at, body, "");
}

#define JSON_TYPE                                                                                  \
    {                                                                                              \
        "Content-Type", "application/json"                                                         \
    }
#define BOTH                                                                                       \
    {                                                                                              \
        "Accept", "application/json, text/event-stream"                                            \
    }
#define MODERN_VERSION                                                                             \
    {                                                                                              \
        "MCP-Protocol-Version", "2026-07-28"                                                       \
    }
#define META                                                                                       \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientCapabilities\":{}"
#define CALL(id, extra)                                                                            \
    "{\"jsonrpc\":\"2.0\",\"id\":" id                                                              \
    ",\"method\":\"tools/call\",\"params\":{\"name\":\"t\"," META "}" extra "}}"

static const field call_fields[] __attribute__((unused)) = {
    JSON_TYPE, BOTH, MODERN_VERSION, {"Mcp-Method", "tools/call"}, {"Mcp-Name", "t"}, {NULL, NULL}};

/* ---- service */

static inline void bench_answer(bench *self, mcp_request *request)
{
    arena memory;
    arena_init(&memory, 1 << 20);
    json_doc doc;
    assert_int_equal(json_parse(&doc, str_of(self->result), NULL, &memory, NULL), BAY_OK);
    mcp_request_result(request, json_root(&doc));
    arena_fini(&memory);
}

static inline void bench_request(void *context, mcp_request *request)
{
    bench *self = context;
    self->requests++;
    (void)snprintf(self->last_name, sizeof(self->last_name), "%.*s", BAY_STR(request->name));
    if (self->mode == ANSWER_LATER) {
        assert_true(self->held_count < MAX_HELD);
        self->held[self->held_count++] = request;
        return;
    }
    if (self->mode == NOTIFY_THEN_ANSWER) {
        (void)mcp_request_progress(request, 1, STR("\"progress\":1"));
    }
    mcp_request_result_members(request, STR("\"content\":[]"));
}

static inline void bench_cancelled(void *context, mcp_request *request)
{
    bench *self = context;
    self->cancels++;
    assert_true(request->is_cancelled);
    if (!self->finish_on_cancel) {
        return;
    }
    for (int i = 0; i < self->held_count; i++) {
        if (self->held[i] == request) {
            self->held[i] = self->held[--self->held_count];
            mcp_request_error(request, -1, STR("stopped"), STR(""));
            return;
        }
    }
}

static inline mcp_request *bench_take(bench *self)
{
    assert_true(self->held_count > 0);
    return self->held[--self->held_count];
}

static inline void bench_drained(void *context, mcp_request *request)
{
    (void)request;
    ((bench *)context)->drains++;
}

static inline void bench_capabilities(void *context, const mcp_revision *revision, json_writer *out)
{
    (void)revision;
    arena memory;
    arena_init(&memory, 1 << 20);
    json_doc doc;
    const char *text = ((bench *)context)->capabilities;
    if (json_parse(&doc, str_of(text), NULL, &memory, NULL) == BAY_OK) {
        json_put_members(out, json_root(&doc), NULL, 0);
    }
    arena_fini(&memory);
}

static inline const mcp_param_table *bench_param_table(void *context, bay_str tool)
{
    (void)tool;
    bench *self = context;
    return self->are_params_pending ? &mcp_params_pending : self->params;
}

static inline bool bench_knows(void *context, bay_str method, const mcp_revision *revision)
{
    (void)context;
    (void)revision;
    return str_eq(method, STR("x/known"));
}

static inline bay_err bench_subscribe(void *context, bay_str uri, bool is_wanted)
{
    bench *self = context;
    if (is_wanted && (self->subscribe_err != BAY_OK || str_eq(uri, STR("x:none")))) {
        return self->subscribe_err != BAY_OK ? self->subscribe_err : BAY_ERR_NOT_FOUND;
    }
    *(is_wanted ? &self->subscribed : &self->unsubscribed) += 1;
    return BAY_OK;
}

static inline void bench_notified(void *context, mcp_session *session, const rpc_message *message)
{
    (void)session;
    (void)message;
    ((bench *)context)->notified++;
}

static inline void bench_session(void *context, mcp_session *session, bool is_open)
{
    bench *self = context;
    *(is_open ? &self->opened : &self->closed) += 1;
    self->session = is_open ? session : NULL;
}

static const mcp_service bench_service __attribute__((unused)) = {
    .request = bench_request,
    .cancelled = bench_cancelled,
    .drained = bench_drained,
    .capabilities = bench_capabilities,
    .param_table = bench_param_table,
    .knows_method = bench_knows,
    .subscribe = bench_subscribe,
    .notified = bench_notified,
    .session_changed = bench_session,
};

#define EVERYTHING                                                                                 \
    "{\"tools\":{\"listChanged\":true},\"prompts\":{\"listChanged\":true},\"resources\":{"         \
    "\"subscribe\":true,\"listChanged\":true},\"logging\":{},\"completions\":{}}"

static inline mcp_server_options bench_options(void)
{
    return (mcp_server_options){.name = STR("bench"),
                                .version = STR("1"),
                                .oldest = MCP_REV_2024_11_05,
                                .newest = MCP_REV_2026_07_28};
}

static inline void bench_init_with(bench *self, const mcp_server_options *options)
{
    *self = (bench){.capabilities = EVERYTHING, .result = "{\"content\":[]}", .now_ms = 1000};
    assert_int_equal(mcp_server_new(options, &bench_service, self, &self->server), BAY_OK);
}

static inline void bench_init(bench *self)
{
    mcp_server_options options = bench_options();
    bench_init_with(self, &options);
}

static inline void bench_fini(bench *self)
{
    mcp_server_free(self->server);
    while (self->held_count > 0) {
        mcp_request_error(bench_take(self), -1, STR("late"), STR(""));
    }
}

/* ---- legacy over HTTP */

#define INITIALIZE(version)                                                                        \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"     \
    "\"" version                                                                                   \
    "\",\"capabilities\":{\"sampling\":{},\"elicitation\":{}},\"clientInfo\":{\"name\":"           \
    "\"c\",\"version\":\"1\"}}}"

static const field plain_fields[] __attribute__((unused)) = {JSON_TYPE, BOTH, {NULL, NULL}};

typedef struct legacy {
    char id[64];
    field fields[5];
} legacy;

static inline void legacy_begin(bench *on, legacy *self, const char *initialize)
{
    wire first;
    bench_http(on, &first, "POST", plain_fields, initialize);
    assert_int_equal(first.status, 200);
    assert_int_not_equal(first.session[0], 0);
    memcpy(self->id, first.session, sizeof(self->id));
    wire_fini(&first);
    field all[5] = {JSON_TYPE, BOTH, {"Mcp-Session-Id", self->id}, {NULL, NULL}, {NULL, NULL}};
    memcpy(self->fields, all, sizeof(all));
}

/* ---- duplex */

static inline void duplex_open(bench *on, wire *self)
{
    wire_init(self, on);
    assert_int_equal(mcp_connection_open(on->server, &self->carrier, &self->connection), BAY_OK);
}

static inline void duplex_say(bench *on, wire *self, const char *text)
{
    char *copy = strdup(text);
    assert_non_null(copy);
    mcp_connection_receive(self->connection, str_of(copy), on->now_ms);
    free(copy);
}

static inline void duplex_close(wire *self)
{
    if (self->connection != NULL) {
        self->is_gone = true;
        mcp_connection_close(self->connection);
        self->connection = NULL;
    }
}

static inline const char *last_event(const wire *self)
{
    assert_true(self->events > 0);
    return self->event[self->events - 1];
}

/* ---- claims */

#define assert_has(text, part)                                                                     \
    do {                                                                                           \
        const char *in = (text);                                                                   \
        if (in == NULL || strstr(in, (part)) == NULL) {                                            \
            fail_msg("\"%s\" lacks \"%s\"", in != NULL ? in : "(nothing)", (part));                \
        }                                                                                          \
    } while (0)

#define assert_lacks(text, part)                                                                   \
    do {                                                                                           \
        const char *in = (text);                                                                   \
        if (in != NULL && strstr(in, (part)) != NULL) {                                            \
            fail_msg("\"%s\" has \"%s\"", in, (part));                                             \
        }                                                                                          \
    } while (0)

#endif

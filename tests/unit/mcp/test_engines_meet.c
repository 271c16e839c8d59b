/* The client engine and the server engine speak to each other in memory: all five revisions, as
 * lines and as HTTP exchanges. What one is given comes out of the other byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "mcp/client.h"
#include "mcp/server.h"

enum { MAX_EXCHANGES = 64 };

typedef struct meeting meeting;

/* One HTTP exchange, or the whole duplex connection (number 0). */
typedef struct exchange {
    mcp_carrier carrier; /* first */
    meeting *on;
    uint64_t number;
    bool is_over; /* the server said its last word, or was told that the client left */
    bool has_head;
} exchange;

/* Nothing is delivered from inside a call: it waits here for the pump. */
typedef struct parcel {
    list_link link;
    enum { TO_SERVER, GONE, TO_CLIENT, CLIENT_ENDED, CLIENT_HEAD } kind;
    uint64_t number;
    char verb[8];
    char *text;
    size_t len;
    char fields[1024]; /* "Name: value\n" each; to the client: the event's id */
    int status;
} parcel;

struct meeting {
    mcp_server *server;
    mcp_client *client;
    mcp_connection *connection;
    mcp_link_kind kind;
    list parcels;
    exchange exchanges[MAX_EXCHANGES];
    size_t exchange_count;
    mcp_request *held;
    int cancelled;
    char log[8192];
    uint64_t now;
};

static meeting room;

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
    va_list args;
    size_t len = strlen(room.log);
    va_start(args, format);
    vsnprintf(room.log + len, sizeof(room.log) - len, format, args);
    va_end(args);
}

static void saw(const char *expected)
{
    assert_string_equal(room.log, expected);
    room.log[0] = '\0';
}

static parcel *post(int kind, uint64_t number, bay_str text)
{
    parcel *one = calloc(1, sizeof(*one));
    assert_non_null(one);
    one->kind = (unsigned)kind;
    one->number = number;
    one->text = malloc(text.len + 1);
    assert_non_null(one->text);
    if (text.len > 0) {
        memcpy(one->text, text.at, text.len);
    }
    one->len = text.len;
    list_push(&room.parcels, &one->link);
    return one;
}

/* ---- the server's side ----------------------------------------------------------------------- */

static void carrier_answer(mcp_carrier *self, int status, bay_str json, bay_str session,
                           bay_str allow)
{
    exchange *through = (exchange *)self;
    (void)allow;
    through->is_over = true;
    parcel *head = post(CLIENT_HEAD, through->number, session);
    head->status = status;
    if (json.len > 0) {
        post(TO_CLIENT, through->number, json);
    }
    post(CLIENT_ENDED, through->number, (bay_str){0});
}

static bay_err carrier_event(mcp_carrier *self, bay_str json, bay_str event_id)
{
    exchange *through = (exchange *)self;
    if (!through->has_head && through->number != 0) {
        through->has_head = true;
        post(CLIENT_HEAD, through->number, (bay_str){0})->status = 200;
    }
    parcel *one = post(TO_CLIENT, through->number, json);
    snprintf(one->fields, sizeof(one->fields), "%.*s", BAY_STR(event_id));
    return BAY_OK;
}

static void carrier_end(mcp_carrier *self)
{
    exchange *through = (exchange *)self;
    through->is_over = true;
    post(CLIENT_ENDED, through->number, (bay_str){0});
}

static const mcp_carrier_ops carrier_ops = {carrier_answer, carrier_event, carrier_end, NULL};

static exchange *exchange_new(uint64_t number)
{
    assert_true(room.exchange_count < MAX_EXCHANGES);
    exchange *through = &room.exchanges[room.exchange_count++];
    *through = (exchange){.carrier.ops = &carrier_ops, .on = &room, .number = number};
    return through;
}

/* Lines of "name: value". */
static size_t fields_of(const char *lines, http_field *out, size_t room_for)
{
    size_t count = 0;
    for (const char *at = lines; *at != '\0'; at = strchr(at, '\n') + 1) {
        size_t len = strcspn(at, ":");
        assert_true(count < room_for);
        out[count++] = (http_field){{at, len}, {at + len + 2, strcspn(at + len + 2, "\n")}};
    }
    return count;
}

static void deliver_http(parcel *one)
{
    arena memory;
    arena_init(&memory, 1 << 22);
    http_field fields[MCP_MAX_FIELDS];
    mcp_http_request request = {.verb = str_of(one->verb),
                                .body = {one->text, one->len},
                                .fields = fields,
                                .field_count = fields_of(one->fields, fields, MCP_MAX_FIELDS),
                                .memory = &memory};
    mcp_server_http(room.server, &request, &exchange_new(one->number)->carrier, room.now);
    arena_fini(&memory);
}

/* What the tools do. */
static void asked_back(void *user, bay_err err, const rpc_message *response)
{
    mcp_request *request = user;
    char text[512];
    assert_int_equal(err, BAY_OK);
    snprintf(text, sizeof(text), "\"content\":[],\"said\":%.*s",
             BAY_STR(json_raw(response->kind == RPC_RESULT ? response->result : response->error)));
    mcp_request_result_members(request, str_of(text));
}

static void serve(void *self, mcp_request *request)
{
    (void)self;
    char text[2048];
    bay_str arguments = json_raw(json_get(request->message.params, STR("arguments")));
    if (request->method->id == MCP_TOOLS_LIST) {
        mcp_request_result_members(request,
                                   STR("\"tools\":[{\"name\":\"\\u0065cho\",\"inputSchema\":"
                                       "{\"type\":\"object\"},\"n\":1.0E+2}]"));
    } else if (str_eq(request->name, STR("echo"))) {
        (void)!mcp_request_progress(request, 0.5, STR("\"progress\":0.50,\"total\":1e0"));
        (void)!mcp_request_log(request, MCP_LOG_ERROR, STR("{\"level\":\"error\",\"data\":[1.0]}"));
        (void)!mcp_request_progress(request, 1, STR("\"progress\":1"));
        snprintf(text, sizeof(text), "\"content\":[],\"echo\":%.*s", BAY_STR(arguments));
        mcp_request_result_members(request, str_of(text));
    } else if (str_eq(request->name, STR("fail"))) {
        mcp_request_error(request, 1234, STR("a \"bad\" day"), STR("{\"n\":18446744073709551616}"));
    } else if (str_eq(request->name, STR("ask"))) {
        bay_err err = mcp_request_ask(request, MCP_SAMPLING, STR("{\"maxTokens\":1.0}"), asked_back,
                                      request, room.now);
        if (err != BAY_OK) {
            mcp_request_error(request, 1235, STR("cannot ask"), (bay_str){0});
        }
    } else {
        room.held = request;
    }
}

static void serve_cancelled(void *self, mcp_request *request)
{
    (void)self;
    room.cancelled++;
    room.held = NULL;
    mcp_request_error(request, -1, STR("cancelled"), (bay_str){0});
}

static void capabilities(void *self, const mcp_revision *revision, json_writer *out)
{
    (void)self;
    (void)revision;
    json_key_lit(out, "tools");
    json_put_raw(out, STR("{\"listChanged\":true}"));
    json_key_lit(out, "resources");
    json_put_raw(out, STR("{\"subscribe\":true}"));
    json_key_lit(out, "logging");
    json_put_raw(out, STR("{}"));
}

static bay_err subscribe(void *self, bay_str uri, bool is_wanted)
{
    (void)self;
    (void)uri;
    (void)is_wanted;
    return BAY_OK;
}

static const mcp_service service = {.request = serve,
                                    .cancelled = serve_cancelled,
                                    .capabilities = capabilities,
                                    .subscribe = subscribe};

/* ---- the client's side ----------------------------------------------------------------------- */

static void add_fields(parcel *one, const char *verb, const mcp_field *fields, size_t count)
{
    int at = snprintf(one->fields, sizeof(one->fields), "Content-Type: application/json\n%s",
                      strcmp(verb, "GET") == 0 ? "Accept: text/event-stream\n"
                                               : "Accept: application/json, text/event-stream\n");
    for (size_t i = 0; i < count; i++) {
        at += snprintf(one->fields + at, sizeof(one->fields) - (size_t)at, "%.*s: %.*s\n",
                       BAY_STR(fields[i].name), BAY_STR(fields[i].value));
        assert_true((size_t)at < sizeof(one->fields));
    }
    snprintf(one->verb, sizeof(one->verb), "%s", verb);
}

static bay_err link_send(void *link, uint64_t number, bay_str message, const mcp_field *fields,
                         size_t count, uint32_t timeout_ms)
{
    (void)link;
    (void)timeout_ms;
    add_fields(post(TO_SERVER, number, message), "POST", fields, count);
    return BAY_OK;
}

static void link_abandon(void *link, uint64_t number)
{
    (void)link;
    post(GONE, number, (bay_str){0});
}

static bay_err link_listen(void *link, uint64_t number, const mcp_field *fields, size_t count)
{
    (void)link;
    add_fields(post(TO_SERVER, number, (bay_str){0}), "GET", fields, count);
    return BAY_OK;
}

static void link_end_session(void *link, const mcp_field *fields, size_t count)
{
    (void)link;
    add_fields(post(TO_SERVER, 0, (bay_str){0}), "DELETE", fields, count);
}

static void on_changed(void *user, mcp_change change)
{
    (void)user;
    note("changed %d\n", (int)change);
}

static void on_updated(void *user, bay_str uri)
{
    (void)user;
    note("updated %.*s\n", BAY_STR(uri));
}

static void on_notified(void *user, mcp_call *call, const mcp_method *method, json_val params)
{
    (void)user;
    (void)call;
    if (method->id == MCP_N_PROGRESS) {
        note("progress %.*s\n", BAY_STR(json_raw(json_get(params, STR("progress")))));
    } else {
        note("notified %.*s\n", BAY_STR(json_raw(params)));
    }
}

static bool on_asked(void *user, mcp_call *call, const rpc_message *request)
{
    (void)user;
    (void)call;
    note("asked %.*s\n", BAY_STR(json_raw(request->params)));
    mcp_client_answer(room.client, request->id, STR("{\"role\":\"assistant\",\"n\":1.50}"), 0,
                      (bay_str){0});
    return true;
}

static void on_done(void *user, mcp_call *call, const mcp_outcome *outcome)
{
    (void)call;
    const char *member = user; /* what of the result is looked at */
    if (outcome->kind == MCP_OUTCOME_RESULT) {
        note("result %.*s\n", BAY_STR(json_raw(json_get(outcome->result, str_of(member)))));
    } else if (outcome->kind == MCP_OUTCOME_ERROR) {
        note("error %.*s\n", BAY_STR(json_raw(outcome->error)));
    } else {
        note("failed %s\n", outcome->text);
    }
}

static const mcp_call_events call_events = {on_notified, on_asked, on_done};

/* ---- the pump -------------------------------------------------------------------------------- */

static exchange *exchange_of(uint64_t number)
{
    for (size_t i = room.exchange_count; number != 0 && i-- > 0;) {
        if (room.exchanges[i].number == number) {
            return &room.exchanges[i];
        }
    }
    return NULL;
}

static void deliver(parcel *one)
{
    bay_str text = {one->text, one->len};
    exchange *through = exchange_of(one->number);
    switch (one->kind) {
    case TO_SERVER:
        if (room.kind == MCP_LINK_HTTP) {
            deliver_http(one);
        } else if (room.connection != NULL) {
            mcp_connection_receive(room.connection, text, room.now);
        }
        return;
    case GONE:
        if (through != NULL && !through->is_over) {
            through->is_over = true;
            mcp_server_gone(room.server, &through->carrier, room.now);
        }
        return;
    case CLIENT_HEAD:
        mcp_client_head(room.client, one->number, one->status, text, room.now);
        return;
    case TO_CLIENT:
        mcp_client_receive(room.client, one->number, text, str_of(one->fields), room.now);
        return;
    case CLIENT_ENDED:
        mcp_client_ended(room.client, one->number, BAY_OK, true, NULL, room.now);
        return;
    }
}

static void pump(void)
{
    list_link *link;
    for (int i = 0; (link = list_pop(&room.parcels)) != NULL; i++) {
        assert_true(i < 1000);
        parcel *one = CONTAINER_OF(link, parcel, link);
        deliver(one);
        free(one->text);
        free(one);
    }
}

static void open_room(mcp_link_kind kind, mcp_revision_id revision)
{
    memset(&room, 0, sizeof(room));
    list_init(&room.parcels);
    room.kind = kind;
    room.now = 1000;
    mcp_server_options server = {.name = STR("s"),
                                 .version = STR("1"),
                                 .instructions = STR("be \"kind\""),
                                 .oldest = revision,
                                 .newest = revision};
    assert_int_equal(mcp_server_new(&server, &service, NULL, &room.server), BAY_OK);
    mcp_client_options client = {.name = STR("c"),
                                 .version = STR("1"),
                                 .capabilities = STR("{\"sampling\":{}}"),
                                 .link_kind = kind,
                                 .oldest = MCP_REV_2024_11_05,
                                 .newest = MCP_LATEST,
                                 .wants_changes = true};
    static const mcp_client_events events = {.changed = on_changed, .updated = on_updated};
    static const mcp_link_ops ops = {.send = link_send,
                                     .abandon = link_abandon,
                                     .listen = link_listen,
                                     .end_session = link_end_session};
    assert_int_equal(mcp_client_new(&client, &events, NULL, &ops, NULL, &room.client), BAY_OK);
    if (kind == MCP_LINK_DUPLEX) {
        assert_int_equal(
            mcp_connection_open(room.server, &exchange_new(0)->carrier, &room.connection), BAY_OK);
    }
    mcp_client_opened(room.client, room.now);
    pump();
    assert_int_equal(mcp_client_state_of(room.client), MCP_CLIENT_READY);
    assert_int_equal(mcp_client_revision(room.client)->id, revision);
    assert_true(mcp_client_has(room.client, STR("resources.subscribe")));
    assert_true(json_str_eq(json_get(mcp_client_server_info(room.client), STR("name")), STR("s")));
    assert_true(str_eq(mcp_client_instructions(room.client), STR("be \"kind\"")));
}

static void close_room(void)
{
    mcp_client_close(room.client);
    pump();
    if (room.connection != NULL) {
        mcp_connection_close(room.connection);
        room.connection = NULL;
    }
    assert_int_equal(mcp_server_session_count(room.server), 0);
    mcp_client_free(room.client);
    mcp_server_free(room.server);
    for (list_link *link; (link = list_pop(&room.parcels)) != NULL;) {
        free(CONTAINER_OF(link, parcel, link)->text);
        free(CONTAINER_OF(link, parcel, link));
    }
}

/* ---- the talk -------------------------------------------------------------------------------- */

static mcp_call *call(const char *method, const char *params, const char *member)
{
    arena memory;
    arena_init(&memory, 1 << 20);
    json_doc doc;
    mcp_call_spec spec = {
        .method = str_of(method), .log_level = MCP_LOG_INFO, .wants_progress = true};
    if (params != NULL) {
        assert_int_equal(json_parse(&doc, str_of(params), NULL, &memory, NULL), BAY_OK);
        spec.params = json_root(&doc);
    }
    mcp_call *one = NULL;
    assert_int_equal(mcp_client_call(room.client, &spec, &call_events, (void *)(uintptr_t)member,
                                     room.now, &one, NULL),
                     BAY_OK);
    arena_fini(&memory);
    return one;
}

#define EXOTIC                                                                                     \
    "{\"\\u00e9\":[1.0E+2,-0,18446744073709551616,0.1000],\"b\":1,\"b\":2,\"s\":\"\\/"             \
    "\\ud83d\\ude00\\u0000\"}"

static void talk(mcp_link_kind kind, mcp_revision_id revision)
{
    bool is_modern = mcp_revision_of(revision)->era == MCP_MODERN;
    open_room(kind, revision);
    call("tools/list", NULL, "tools");
    pump();
    saw("result [{\"name\":\"\\u0065cho\",\"inputSchema\":{\"type\":\"object\"},\"n\":1.0E+2}]\n");

    call("tools/call", "{\"name\":\"echo\",\"arguments\":" EXOTIC "}", "echo");
    pump();
    saw("progress 0.50\nnotified {\"level\":\"error\",\"data\":[1.0]}\nprogress 1\nresult " EXOTIC
        "\n");

    call("tools/call", "{\"name\":\"fail\",\"arguments\":{}}", "");
    pump();
    saw("error {\"code\":1234,\"message\":\"a \\\"bad\\\" "
        "day\",\"data\":{\"n\":18446744073709551616}}\n");

    call("tools/call", "{\"name\":\"ask\",\"arguments\":{}}", "said");
    pump();
    saw(is_modern ? "error {\"code\":1235,\"message\":\"cannot ask\"}\n"
                  : "asked {\"maxTokens\":1.0}\nresult {\"role\":\"assistant\",\"n\":1.50}\n");

    mcp_call *held = call("tools/call", "{\"name\":\"hold\",\"arguments\":{}}", "");
    pump();
    assert_non_null(room.held);
    mcp_call_cancel(held, STR("enough"));
    pump();
    assert_int_equal(room.cancelled, 1);
    saw("");

    mcp_server_changed(room.server, MCP_CHANGE_TOOLS);
    pump();
    saw("changed 1\n");
    assert_int_equal(mcp_client_subscribe(room.client, STR("file:///a"), true, room.now), BAY_OK);
    pump();
    mcp_server_resource_updated(room.server, STR("file:///a"));
    mcp_server_resource_updated(room.server, STR("file:///b"));
    pump();
    saw("updated file:///a\n");
    assert_int_equal(mcp_client_subscribe(room.client, STR("file:///a"), false, room.now), BAY_OK);
    pump();
    mcp_server_resource_updated(room.server, STR("file:///a"));
    mcp_server_changed(room.server, MCP_CHANGE_TOOLS);
    pump();
    saw("changed 1\n");
    assert_int_equal(mcp_client_open_calls(room.client), 0);
    close_room();
}

static void test_lines(void **state)
{
    (void)state;
    for (int i = 0; i < MCP_REVISION_COUNT; i++) {
        talk(MCP_LINK_DUPLEX, (mcp_revision_id)i);
    }
}

static void test_http(void **state)
{
    (void)state;
    for (int i = 0; i < MCP_REVISION_COUNT; i++) {
        talk(MCP_LINK_HTTP, (mcp_revision_id)i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines), cmocka_unit_test(test_http)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

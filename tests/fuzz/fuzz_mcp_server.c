/* Bytes become what clients do to a server engine: HTTP requests with whatever header fields and
 * bodies, lines on duplex connections, exchanges that break, time that passes; and what its service
 * does: answers now, later or in pieces; and what a keeper of sessions does: has streams wait,
 * moves a session to another engine, brings one that nobody wrote. Checked: no exchange is answered
 * twice, nothing is sent to one that is gone, every ask is answered once, nothing leaks.
 *
 * An input is a run of commands: a byte that says which, then its text up to a NUL. In texts, the
 * byte 1 stands for the modern _meta and 2 for the id of the newest session, so that the fuzzer
 * need not guess them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "mcp/persistence.h"
#include "mcp/server.h"

enum { WIRES = 4, LINES = 2, HELD = 16, MAX_COMMANDS = 64, LOGGED = 64 };

typedef struct wire {
    mcp_carrier carrier; /* first */
    bool is_open;
    bool is_done;
    unsigned char temper;
    mcp_connection *connection;
} wire;

typedef struct world {
    mcp_server *server;
    wire wires[WIRES];
    wire lines[LINES];
    mcp_request *held[HELD];
    int held_count;
    unsigned char mood; /* of the service */
    char session[64];
    size_t session_len;
    char event[32]; /* id of the last event sent */
    size_t event_len;
    uint64_t now_ms;
    mcp_session *kept; /* the one that changed last; NULL: it ended */
    int names;
    mcp_kept_event logged[LOGGED]; /* of all sessions: one is enough to be confused with */
    int logged_count;
    bool is_ending;
    long asked;
    long answered;
} world;

static world *the_world;

static unsigned sum;

static void touch(bay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        sum += (unsigned char)text.at[i];
    }
}

static void on_answer(mcp_carrier *carrier, int status, bay_str json, bay_str session,
                      bay_str allow)
{
    wire *self = (wire *)carrier;
    CHECK(self->is_open && !self->is_done && self->connection == NULL);
    CHECK(status >= 200 && status < 600);
    touch(json);
    touch(allow);
    self->is_done = true;
    if (session.len > 0 && session.len < sizeof(the_world->session)) {
        memcpy(the_world->session, session.at, session.len);
        the_world->session_len = session.len;
    }
}

static bay_err on_event(mcp_carrier *carrier, bay_str json, bay_str event_id)
{
    wire *self = (wire *)carrier;
    CHECK(self->is_open && !self->is_done);
    CHECK(json.len == 0 || memchr(json.at, '\n', json.len) == NULL);
    touch(json);
    if (event_id.len > 0 && event_id.len < sizeof(the_world->event)) {
        memcpy(the_world->event, event_id.at, event_id.len);
        the_world->event_len = event_id.len;
    }
    if (self->temper == 7) {
        self->temper = 0;
        self->is_open = false;
        if (self->connection != NULL) {
            mcp_connection *connection = self->connection;
            self->connection = NULL;
            mcp_connection_close(connection);
        } else {
            mcp_server_gone(the_world->server, carrier, the_world->now_ms);
        }
    }
    return (self->temper & 1) != 0 ? BAY_ERR_AGAIN : BAY_OK;
}

static void on_end(mcp_carrier *carrier)
{
    wire *self = (wire *)carrier;
    CHECK(self->is_open && !self->is_done);
    CHECK(self->connection == NULL || the_world->is_ending);
    self->connection = NULL; /* of a line: closed by the server's end */
    self->is_done = true;
}

static const mcp_carrier_ops ops = {on_answer, on_event, on_end, NULL};

static void on_asked(void *user, bay_err err, const rpc_message *response)
{
    CHECK((err == BAY_OK) == (response != NULL));
    if (response != NULL) {
        touch(json_raw(response->root));
    }
    ((world *)user)->answered++;
}

/* ---- the service */

static void finish(mcp_request *request, unsigned char how)
{
    static const char result[] =
        "{\"resultType\":\"complete\",\n\"content\":[],\"_meta\":{\"a\":1}}";
    arena memory;
    json_doc doc;
    arena_init(&memory, 1 << 16);
    switch (how & 3) {
    case 0:
        mcp_request_result_members(request, STR("\"content\":[]"));
        break;
    case 1:
        mcp_request_error(request, -32002, STR("no\n"), STR("{}"));
        break;
    default:
        CHECK(json_parse(&doc, str_of(result), NULL, &memory, NULL) == BAY_OK);
        if ((how & 3) == 2) {
            mcp_request_result(request, json_root(&doc));
        } else {
            mcp_request_error_object(request, json_root(&doc));
        }
    }
    arena_fini(&memory);
}

static void work(world *self, mcp_request *request, unsigned char how)
{
    if ((how & 4) != 0) {
        (void)mcp_request_progress(request, how, STR("\"progress\":1"));
    }
    if ((how & 8) != 0) {
        (void)mcp_request_log(request, MCP_LOG_ERROR, STR("{\"level\":\"error\",\n\"data\":1}"));
    }
    if ((how & 16) != 0 &&
        mcp_request_ask(request, MCP_SAMPLING, STR("{}"), on_asked, self, self->now_ms) == BAY_OK) {
        self->asked++;
    }
}

static void on_request(void *user, mcp_request *request)
{
    world *self = user;
    touch(request->name);
    touch(request->message.id);
    touch(principal_binding(request->principal));
    touch(json_raw(request->client_info));
    work(self, request, self->mood);
    if ((self->mood & 32) != 0 || self->held_count == HELD) {
        finish(request, self->mood);
    } else {
        self->held[self->held_count++] = request;
    }
}

static void on_cancelled(void *user, mcp_request *request)
{
    world *self = user;
    for (int i = 0; (self->mood & 64) != 0 && i < self->held_count; i++) {
        if (self->held[i] == request) {
            self->held[i] = self->held[--self->held_count];
            finish(request, self->mood);
            return;
        }
    }
}

static void on_capabilities(void *user, const mcp_revision *revision, json_writer *out)
{
    (void)user;
    (void)revision;
    static const char *const lists[] = {"tools", "prompts", "resources"};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        json_key(out, str_of(lists[i]));
        json_put_raw(out, STR("{\"listChanged\":true,\"subscribe\":true}"));
    }
    json_key_lit(out, "logging");
    json_put_raw(out, STR("{}"));
}

static bool on_knows(void *user, bay_str method, const mcp_revision *revision)
{
    (void)user;
    (void)revision;
    return str_starts(method, STR("x/"));
}

static bay_err on_subscribe(void *user, bay_str uri, bool is_wanted)
{
    (void)user;
    return is_wanted && str_ends(uri, STR("!")) ? BAY_ERR_NOT_FOUND : BAY_OK;
}

static void on_drained(void *user, mcp_request *request)
{
    (void)user;
    touch(request->message.id);
}

static const mcp_service service = {.request = on_request,
                                    .cancelled = on_cancelled,
                                    .drained = on_drained,
                                    .capabilities = on_capabilities,
                                    .knows_method = on_knows,
                                    .subscribe = on_subscribe};

/* ---- the clients */

static void expand(world *self, bay_str text, buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == 1) {
            buf_lit(out, "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
                         "\"progressToken\":1,\"io.modelcontextprotocol/logLevel\":\"info\","
                         "\"io.modelcontextprotocol/clientCapabilities\":{}}");
        } else if (text.at[i] == 2) {
            buf_append(out, self->session, self->session_len);
        } else {
            buf_char(out, text.at[i]);
        }
    }
}

enum { MAX_FIELDS = 6 };

static size_t fields_of(const world *self, unsigned char flags, bay_str method, bay_str name,
                        http_field out[MAX_FIELDS])
{
    static const char *const revisions[] = {"2026-07-28", "2025-11-25", "2025-03-26", "v9"};
    size_t count = 0;
    out[count++] = (http_field){STR("Content-Type"), STR("application/json")};
    if ((flags & 1) != 0) {
        out[count++] = (http_field){STR("MCP-Protocol-Version"), str_of(revisions[flags >> 1 & 3])};
    }
    if ((flags & 8) != 0) {
        out[count++] = (http_field){STR("Mcp-Session-Id"), {self->session, self->session_len}};
    }
    if ((flags & 16) != 0) {
        out[count++] = (http_field){STR("Last-Event-ID"), {self->event, self->event_len}};
    }
    if ((flags & 32) != 0) {
        out[count++] = (http_field){STR("Mcp-Method"), method};
        out[count++] = (http_field){STR("Mcp-Name"), name};
    }
    return count;
}

/* Text: flags, then (when they say so) method and name each up to a tab, then the body. */
static void http(world *self, wire *through, const char *verb, bay_str text)
{
    if (through->is_open && !through->is_done) {
        through->is_open = false;
        mcp_server_gone(self->server, &through->carrier, self->now_ms);
    }
    *through = (wire){.carrier.ops = &ops, .is_open = true};
    unsigned char flags = 0;
    bay_str method = STR(""), name = STR("");
    if (text.len > 0) {
        flags = (unsigned char)text.at[0];
        text = str_from(text, 1);
    }
    if ((flags & 32) != 0) {
        method = str_head(text, str_find(text, '\t'));
        text = str_from(text, method.len + 1);
        name = str_head(text, str_find(text, '\t'));
        text = str_from(text, name.len + 1);
    }
    http_field fields[MAX_FIELDS];
    size_t count = fields_of(self, flags, method, name, fields);
    through->temper = flags >> 6 == 3 ? 7 : flags >> 6;
    buf body;
    buf_init(&body, 1 << 20);
    expand(self, text, &body);
    arena memory;
    arena_init(&memory, 1 << 20);
    mcp_http_request request = {.verb = str_of(verb),
                                .body = buf_view(&body),
                                .fields = fields,
                                .field_count = count,
                                .memory = &memory};
    mcp_server_http(self->server, &request, &through->carrier, self->now_ms);
    arena_fini(&memory);
    buf_fini(&body);
}

static void line(world *self, wire *through, bay_str text)
{
    if (through->connection == NULL) {
        *through = (wire){.carrier.ops = &ops, .is_open = true};
        if (mcp_connection_open(self->server, &through->carrier, &through->connection) != BAY_OK) {
            abort();
        }
    }
    buf message;
    buf_init(&message, 1 << 20);
    expand(self, text, &message);
    mcp_connection_receive(through->connection, buf_view(&message), self->now_ms);
    buf_fini(&message);
}

/* ---- the keeper */

static bay_err keeper_name(void *user, const mcp_revision *revision,
                           const auth_principal *principal, buf *out)
{
    world *self = user;
    (void)revision;
    (void)principal;
    mcp_session_prefix(0, out);
    buf_printf(out, "kept-%d", ++self->names);
    return out->err;
}

static bool keeper_changed(void *user, mcp_session *session, mcp_keep how)
{
    world *self = user;
    self->kept = session;
    return how == MCP_KEEP_AWAITED && (self->mood & 128) != 0;
}

static void keeper_logged(void *user, mcp_session *session, uint32_t stream, uint32_t seq,
                          bool is_last, bay_str text)
{
    world *self = user;
    (void)session;
    char *copy = malloc(text.len + 1);
    if (self->logged_count == LOGGED || copy == NULL) {
        free(copy);
        return;
    }
    memcpy(copy, text.len > 0 ? text.at : "", text.len);
    self->logged[self->logged_count++] = (mcp_kept_event){stream, seq, is_last, {copy, text.len}};
}

static void keeper_ended(void *user, mcp_session *session, bool is_for_good)
{
    world *self = user;
    (void)is_for_good;
    self->kept = self->kept == session ? NULL : self->kept;
}

static void keeper_lost(void *user, bay_str id, bay_str method, buf *out)
{
    (void)user;
    rpc_write_error(out, id, -1, method, STR(""));
}

static const mcp_persistence keeper = {keeper_name, keeper_changed, keeper_logged, keeper_ended,
                                       keeper_lost};

static void restore(world *self, bay_str id, bay_str written)
{
    bay_err err = mcp_session_restore(self->server, id, NULL, written, self->logged,
                                      (size_t)self->logged_count, NULL, self->now_ms);
    CHECK(err == BAY_OK || err == BAY_ERR_SYNTAX || err == BAY_ERR_BUSY || err == BAY_ERR_LIMIT);
    CHECK(mcp_server_holds(self->server, id) == (err == BAY_OK));
    if (err == BAY_OK && id.len < sizeof(self->session)) {
        memcpy(self->session, id.at, id.len);
        self->session_len = id.len;
    }
}

static void open_server(world *self)
{
    mcp_server_options options = {.name = STR("f"),
                                  .version = STR("1"),
                                  .oldest = MCP_REV_2024_11_05,
                                  .newest = MCP_REV_2026_07_28,
                                  .max_sessions = 4,
                                  .max_requests = 8,
                                  .max_subscriptions = 4,
                                  .log_bytes = 2048,
                                  .log_events = 8,
                                  .persistence = &keeper,
                                  .persistence_user = self,
                                  .json = {1 << 16, 32, 4096}};
    if (mcp_server_new(&options, &service, self, &self->server) != BAY_OK) {
        abort();
    }
}

static void close_server(world *self)
{
    self->is_ending = true;
    mcp_server_free(self->server);
    self->is_ending = false;
    for (int i = 0; i < WIRES; i++) {
        CHECK(!self->wires[i].is_open || self->wires[i].is_done);
    }
    for (int i = 0; i < LINES; i++) {
        self->lines[i].connection = NULL;
        self->lines[i].is_open = false;
    }
    while (self->held_count > 0) {
        finish(self->held[--self->held_count], 0);
    }
}

/* The engine goes, another takes the session up. */
static void move(world *self)
{
    buf written;
    buf id;
    buf_init(&written, 1 << 20);
    buf_init(&id, MCP_SESSION_ID_BYTES);
    bool has_one = self->kept != NULL;
    if (has_one) {
        mcp_session_write(self->kept, &written);
        buf_str(&id, mcp_session_id(self->kept));
    }
    close_server(self);
    open_server(self);
    if (has_one) {
        restore(self, buf_view(&id), buf_view(&written));
    }
    buf_fini(&written);
    buf_fini(&id);
}

static void keep(world *self, wire *through, bay_str text)
{
    bool is_there = through->is_open && !through->is_done;
    switch (text.len > 0 ? text.at[0] : 0) {
    case 'c':
        mcp_server_close_streams(self->server);
        break;
    case 'k':
        if (self->kept != NULL) {
            mcp_session_kept(self->kept, mcp_session_last_stream(self->kept));
        }
        break;
    case 'q':
        if (is_there) {
            mcp_server_quiet(self->server, &through->carrier, self->now_ms);
        }
        break;
    case 'x':
        if (is_there) {
            mcp_server_end_stream(self->server, &through->carrier, self->now_ms);
        }
        break;
    case 'm':
        move(self);
        break;
    case 'r':
        restore(self, STR("0-made-up"), str_from(text, 1));
        break;
    default:
        break;
    }
}

static void leave(world *self, unsigned which)
{
    wire *one = which < WIRES ? &self->wires[which] : &self->lines[which % LINES];
    if (one->connection != NULL) {
        mcp_connection *connection = one->connection;
        one->connection = NULL;
        one->is_open = false;
        mcp_connection_close(connection);
    } else if (one->is_open && !one->is_done) {
        one->is_open = false;
        mcp_server_gone(self->server, &one->carrier, self->now_ms);
    }
}

static void command(world *self, unsigned char what, bay_str text)
{
    unsigned char first = text.len > 0 ? (unsigned char)text.at[0] : 0;
    wire *through = &self->wires[(what >> 4) % WIRES];
    switch (what & 15) {
    case 0:
    case 1:
    case 2:
        http(self, through, "POST", text);
        break;
    case 3:
        http(self, through, "GET", text);
        break;
    case 4:
        http(self, through, "DELETE", text);
        break;
    case 5:
    case 6:
    case 7:
        line(self, &self->lines[(what >> 4) % LINES], text);
        break;
    case 8:
        leave(self, (what >> 4) % (WIRES + LINES));
        break;
    case 9:
        self->mood = first;
        break;
    case 10:
        if (self->held_count > 0) {
            mcp_request *request = self->held[--self->held_count];
            work(self, request, first);
            finish(request, first);
        }
        break;
    case 11:
        self->now_ms += (uint64_t)first * first * 1000;
        (void)mcp_server_tick(self->server, self->now_ms);
        break;
    case 12:
        mcp_server_changed(self->server, (mcp_change)(first & 7));
        break;
    case 13:
        mcp_server_resource_updated(self->server, text);
        break;
    case 14:
        keep(self, through, text);
        break;
    default:
        if (through->is_open && !through->is_done) {
            mcp_server_drained(self->server, &through->carrier);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    world self = {.now_ms = 1};
    the_world = &self;
    open_server(&self);
    bay_str rest = {(const char *)bytes, len};
    for (int i = 0; i < MAX_COMMANDS && rest.len > 0; i++) {
        unsigned char what = (unsigned char)rest.at[0];
        rest = str_from(rest, 1);
        bay_str text = str_head(rest, str_find(rest, '\0'));
        command(&self, what, text);
        rest = str_from(rest, text.len + 1);
    }
    for (unsigned which = WIRES; (rest.len & 1) == 0 && which < WIRES + LINES; which++) {
        leave(&self, which);
    }
    close_server(&self);
    for (int i = 0; i < self.logged_count; i++) {
        free((char *)self.logged[i].text.at);
    }
    CHECK(self.asked == self.answered);
    return 0;
}

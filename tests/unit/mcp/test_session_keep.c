/* Sessions that outlive their engine: what is written of them, what a second engine makes of it,
 * and that no client knows an event's id before it could come back with it. */
#include "server_bench.h"

#include "mcp/persistence.h"
#include "support/failing_memory.h"

PEOPLE_FROM_THE_START

#define SAY(id, method, params)                                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":" params "}"
#define TELL(method) "{\"jsonrpc\":\"2.0\",\"method\":\"" method "\"}"
#define TOOL "{\"name\":\"t\",\"_meta\":{\"progressToken\":\"p\"}}"

enum { MOST_LOGGED = 128, CALLS = 24 };

/* A keeper that remembers everything, and is done when it is told to be. */
typedef struct shelf {
    bool is_slow; /* what is awaited waits for shelf_keep */
    int names;
    int changes;
    int awaited;
    int ended_here;
    int ended_for_good;
    bay_err name_err;
    mcp_session *session;
    mcp_kept_event events[MOST_LOGGED];
    int count;
} shelf;

static bay_err shelf_name(void *user, const mcp_revision *revision, const auth_principal *principal,
                          buf *out)
{
    shelf *self = user;
    (void)revision;
    (void)principal;
    if (self->name_err != BAY_OK) {
        return self->name_err;
    }
    mcp_session_prefix(3, out);
    buf_printf(out, "Kept_%d", ++self->names);
    return out->err;
}

static bool shelf_changed(void *user, mcp_session *session, mcp_keep how)
{
    shelf *self = user;
    self->changes++;
    self->session = session;
    self->awaited += how == MCP_KEEP_AWAITED;
    return self->is_slow && how == MCP_KEEP_AWAITED;
}

static void shelf_logged(void *user, mcp_session *session, uint32_t stream, uint32_t seq,
                         bool is_last, bay_str text)
{
    shelf *self = user;
    assert_true(self->count < MOST_LOGGED);
    (void)session;
    self->events[self->count++] =
        (mcp_kept_event){stream, seq, is_last, {text_dup(text), text.len}};
}

static void shelf_ended(void *user, mcp_session *session, bool is_for_good)
{
    shelf *self = user;
    (void)session;
    *(is_for_good ? &self->ended_for_good : &self->ended_here) += 1;
}

static void shelf_lost(void *user, bay_str id, bay_str method, buf *out)
{
    (void)user;
    buf_printf(
        out, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"error\":{\"code\":-1,\"message\":\"lost %.*s\"}}",
        BAY_STR(id), BAY_STR(method));
}

static const mcp_persistence shelf_keeper = {shelf_name, shelf_changed, shelf_logged, shelf_ended,
                                             shelf_lost};

static void shelf_fini(shelf *self)
{
    for (int i = 0; i < self->count; i++) {
        free((char *)self->events[i].text.at);
    }
}

static void open_engine(bench *self, shelf *on)
{
    mcp_server_options options = bench_options();
    options.persistence = &shelf_keeper;
    options.persistence_user = on;
    bench_init_with(self, &options);
}

static bay_err take_up(bench *self, const shelf *from, const char *id, bay_str written)
{
    return mcp_session_restore(self->server, str_of(id), NULL, written, from->events,
                               (size_t)from->count, NULL, self->now_ms);
}

/* The session as the first engine wrote it, in a second one; the first dies without a word. */
static void move(bench *to, shelf *to_shelf, bench *from, const shelf *shelf_of, const legacy *who)
{
    buf written;
    buf_init(&written, 1 << 20);
    mcp_session_write(shelf_of->session, &written);
    assert_int_equal(written.err, BAY_OK);
    open_engine(to, to_shelf);
    to->now_ms = from->now_ms;
    assert_false(mcp_server_holds(to->server, str_of(who->id)));
    assert_int_equal(take_up(to, shelf_of, who->id, buf_view(&written)), BAY_OK);
    assert_true(mcp_server_holds(to->server, str_of(who->id)));
    assert_int_equal(take_up(to, shelf_of, who->id, STR("is there already")), BAY_OK);
    buf_fini(&written);
}

static void post(bench *self, const legacy *who, wire *through, const char *body)
{
    bench_http(self, through, "POST", who->fields, body);
}

static void get(bench *self, const legacy *who, wire *through, const char *last_event_id)
{
    field fields[] = {{"Accept", "text/event-stream"},
                      {"Mcp-Session-Id", who->id},
                      {last_event_id != NULL ? "Last-Event-ID" : "X", last_event_id},
                      {NULL, NULL}};
    bench_http(self, through, "GET", fields, NULL);
}

static void what_was_not_written_by_us_is_refused(void **state)
{
    (void)state;
#define REST ",\"client\":{\"clientInfo\":null,\"capabilities\":{}},\"level\":1}"
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "\"v\"",
        "{}",
        "{\"v\":1}",
        "{\"v\":1,\"revision\":\"2025-11-25\"}",
        "{\"v\":1,\"revision\":\"2025-11-25\",\"client\":7}",
        "{\"v\":2,\"revision\":\"2025-11-25\"" REST,
        "{\"v\":-1,\"revision\":\"2025-11-25\"" REST,
        "{\"v\":1,\"revision\":\"2026-07-28\"" REST,
        "{\"v\":1,\"revision\":\"1999-01-01\"" REST,
        "{\"v\":1,\"revision\":4" REST,
    };
    bench self;
    shelf one = {0};
    open_engine(&self, &one);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(take_up(&self, &one, "3-x", str_of(bad[i])), BAY_ERR_SYNTAX);
    }
    assert_int_equal(mcp_server_session_count(self.server), 0);
    assert_int_equal(self.opened, 0);
    /* nonsense where something may be left out leaves it out */
    assert_int_equal(take_up(&self, &one, "3-x",
                             STR("{\"v\":1,\"revision\":\"2025-11-25\",\"last\":-4,\"streams\":[7,{"
                                 "\"n\":\"x\"},{\"n\":4294967296},{\"n\":5,\"open\":[1,[],[{}]]}],"
                                 "\"subscriptions\":{\"a\":1}" REST)),
                     BAY_OK);
    assert_int_equal(mcp_server_session_count(self.server), 1);
    assert_int_equal(one.count, 0);
    bench_fini(&self);
    assert_int_equal(one.ended_here, 1);
}

static void a_session_is_only_taken_up_where_there_is_room(void **state)
{
    (void)state;
    bench self;
    shelf one = {0};
    mcp_server_options options = bench_options();
    options.persistence = &shelf_keeper;
    options.persistence_user = &one;
    options.max_sessions = 1;
    bench_init_with(&self, &options);
    static const bay_str good = STR_INIT("{\"v\":1,\"revision\":\"2025-11-25\"" REST);
    assert_int_equal(take_up(&self, &one, "3-x", good), BAY_OK);
    assert_int_equal(take_up(&self, &one, "3-y", good), BAY_ERR_BUSY);
    bench_fini(&self);
}

static void without_a_name_there_is_no_session(void **state)
{
    (void)state;
    bench self;
    shelf one = {.name_err = BAY_ERR_NOMEM};
    open_engine(&self, &one);
    wire through;
    bench_http(&self, &through, "POST", plain_fields, INITIALIZE("2025-11-25"));
    assert_int_equal(through.status, 503);
    assert_string_equal(through.session, "");
    assert_int_equal(mcp_server_session_count(self.server), 0);
    wire_fini(&through);
    bench_fini(&self);
}

static void another_engine_knows_what_the_first_knew(void **state)
{
    (void)state;
    bench first;
    bench second;
    shelf one = {0};
    shelf two = {0};
    wire through;
    legacy who;
    open_engine(&first, &one);
    legacy_begin(&first, &who, INITIALIZE("2025-06-18"));
    assert_string_equal(who.id, "3-Kept_1");
    int changes = one.changes;
    static const char *const said[] = {
        TELL("notifications/initialized"),
        SAY("2", "logging/setLevel", "{\"level\":\"error\"}"),
        SAY("3", "resources/subscribe", "{\"uri\":\"file:///a\"}"),
        SAY("4", "resources/subscribe", "{\"uri\":\"file:///\\u00e9\"}"),
        SAY("5", "resources/unsubscribe", "{\"uri\":\"file:///a\"}"),
    };
    for (size_t i = 0; i < ARRAY_LEN(said); i++) {
        post(&first, &who, &through, said[i]);
        wire_fini(&through);
        assert_true(one.changes > changes);
        changes = one.changes;
    }
    move(&second, &two, &first, &one, &who);
    assert_int_equal(second.subscribed, 1);
    assert_int_equal(second.opened, 1);
    second.mode = ANSWER_LATER;
    post(&second, &who, &through, SAY("6", "tools/call", TOOL));
    mcp_request *request = bench_take(&second);
    assert_int_equal(request->revision->id, MCP_REV_2025_06_18);
    assert_int_equal(request->log_level, MCP_LOG_ERROR);
    assert_true(json_str_eq(json_get(request->client_info, STR("name")), STR("c")));
    assert_true(json_is(json_get(request->client_capabilities, STR("sampling")), JSON_OBJECT));
    bench_answer(&second, request);
    wire_fini(&through);
    wire standing;
    get(&second, &who, &standing, NULL);
    mcp_server_resource_updated(second.server, STR("file:///\xc3\xa9"));
    assert_has(last_event(&standing), "notifications/resources/updated");
    bench_fini(&second);
    wire_fini(&standing);
    bench_fini(&first);
    shelf_fini(&one);
    shelf_fini(&two);
}

static void nothing_is_said_before_it_could_be_resumed(void **state)
{
    (void)state;
    bench self;
    shelf one = {.is_slow = true};
    legacy who;
    wire call;
    wire standing;
    open_engine(&self, &one);
    legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
    self.mode = ANSWER_LATER;
    post(&self, &who, &call, SAY("1", "tools/call", TOOL));
    mcp_request *request = bench_take(&self);
    assert_int_equal(mcp_request_progress(request, 1, STR("\"progress\":1")), BAY_OK);
    get(&self, &who, &standing, NULL);
    mcp_server_changed(self.server, MCP_CHANGE_TOOLS);
    assert_int_equal(call.events + standing.events, 0);
    assert_int_equal(one.awaited, 2);
    wire guess; /* an id that nobody was told */
    get(&self, &who, &guess, "1-0");
    assert_int_equal(guess.status, 400);
    wire_fini(&guess);
    mcp_session_kept(one.session, 0);
    assert_int_equal(call.events + standing.events, 0);
    mcp_session_kept(one.session, 1);
    assert_int_equal(call.events, 2);
    assert_int_equal(standing.events, 0);
    mcp_session_kept(one.session, mcp_session_last_stream(one.session));
    assert_int_equal(call.events, 2);
    assert_string_equal(call.id[0], "1-0");
    assert_string_equal(call.id[1], "1-1");
    assert_int_equal(standing.events, 2);
    assert_string_equal(standing.id[0], "2-0");
    assert_int_equal(mcp_request_progress(request, 2, STR("\"progress\":2")), BAY_OK);
    bench_answer(&self, request);
    assert_int_equal(call.events, 4);
    assert_string_equal(call.id[3], "1-3-end");
    assert_int_equal(call.ends, 1);
    mcp_session_kept(one.session, UINT32_MAX);
    assert_int_equal(call.events + standing.events, 6);
    wire_fini(&call);
    bench_fini(&self);
    wire_fini(&standing);
    shelf_fini(&one);
}

static void an_answer_waits_for_its_stream(void **state)
{
    (void)state;
    bench self;
    shelf one = {.is_slow = true};
    legacy who;
    wire call;
    wire left;
    wire cut;
    open_engine(&self, &one);
    legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
    self.mode = NOTIFY_THEN_ANSWER;
    post(&self, &who, &call, SAY("1", "tools/call", TOOL));
    post(&self, &who, &left, SAY("2", "tools/call", TOOL));
    wire_gone(&self, &left);
    assert_int_equal(call.events + call.ends, 0);
    mcp_session_kept(one.session, UINT32_MAX);
    assert_int_equal(call.events, 3);
    assert_has(last_event(&call), "\"id\":1,\"result\"");
    assert_int_equal(call.ends, 1);
    assert_int_equal(left.events + left.ends, 0);
    /* what ends while it is held is said first */
    post(&self, &who, &cut, SAY("3", "tools/call", TOOL));
    assert_int_equal(cut.events, 0);
    wire end;
    bench_http(&self, &end, "DELETE", who.fields, NULL);
    assert_int_equal(end.status, 204);
    assert_has(last_event(&cut), "\"id\":3,\"result\"");
    assert_int_equal(cut.ends, 1);
    assert_int_equal(one.ended_for_good, 1);
    wire_fini(&end);
    wire_fini(&cut);
    wire_fini(&call);
    wire_fini(&left);
    bench_fini(&self);
    shelf_fini(&one);
}

static void a_flood_is_not_dropped_while_it_is_held(void **state)
{
    (void)state;
    bench self;
    shelf one = {.is_slow = true};
    legacy who;
    wire call;
    mcp_server_options options = bench_options();
    options.persistence = &shelf_keeper;
    options.persistence_user = &one;
    options.log_events = 3;
    bench_init_with(&self, &options);
    legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
    self.mode = ANSWER_LATER;
    post(&self, &who, &call, SAY("1", "tools/call", TOOL));
    mcp_request *request = bench_take(&self);
    for (int i = 1; i <= 5; i++) {
        char text[32];
        (void)snprintf(text, sizeof(text), "\"progress\":%d", i);
        assert_int_equal(mcp_request_progress(request, i, str_of(text)), BAY_OK);
    }
    bench_answer(&self, request);
    assert_int_equal(call.events, 7);
    for (int i = 0; i < 6; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "1-%d", i);
        assert_string_equal(call.id[i], id);
    }
    assert_int_equal(call.ends, 1);
    wire_fini(&call);
    bench_fini(&self);
    shelf_fini(&one);
}

/* The engine dies under a call of which two events were sent and kept, and a third sent alone. */
static void a_call_that_was_lost_is_answered_once(void **state)
{
    (void)state;
    bench first;
    bench second;
    bench third;
    shelf one = {0};
    shelf two = {0};
    shelf three = {0};
    legacy who;
    wire call;
    wire back;
    open_engine(&first, &one);
    first.mode = ANSWER_LATER;
    legacy_begin(&first, &who, INITIALIZE("2025-11-25"));
    post(&first, &who, &call, SAY("\"a\"", "tools/call", TOOL));
    mcp_request *request = bench_take(&first);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(mcp_request_progress(request, i, STR("\"progress\":1")), BAY_OK);
    }
    assert_string_equal(call.id[3], "1-3");
    free((char *)one.events[--one.count].text.at); /* the third was not kept in time */
    move(&second, &two, &first, &one, &who);
    assert_int_equal(two.count, 1);
    assert_int_equal(two.events[0].is_last, true);
    get(&second, &who, &back, "1-1"); /* missed the second */
    assert_int_equal(back.events, 2);
    assert_string_equal(back.id[0], "1-2");
    assert_has(back.event[1],
               "\"id\":\"a\",\"error\":{\"code\":-1,\"message\":\"lost tools/call\"");
    assert_int_equal(back.ends, 1);
    wire_fini(&back);
    get(&second, &who, &back, "1-1"); /* delivered: forgotten */
    assert_int_equal(back.status, 400);
    wire_fini(&back);
    bench_fini(&second);

    /* the second dies, too, before anybody came: its answer is the one that is given */
    one.events[one.count++] = two.events[0];
    two.count = 0;
    move(&third, &three, &first, &one, &who);
    assert_int_equal(three.count, 0);
    get(&third, &who, &back, "1-3"); /* of which only the client knows */
    assert_int_equal(back.events, 1);
    assert_has(back.event[0], "lost tools/call");
    assert_true(strstr(back.id[0], "-end") != NULL);
    assert_int_equal(back.ends, 1);
    wire_fini(&back);
    bench_fini(&third);
    first.held[first.held_count++] = request;
    bench_fini(&first);
    wire_fini(&call);
    shelf_fini(&one);
    shelf_fini(&two);
}

/* A client that had many calls under way has the answer to each, wherever it comes back to. */
static void none_of_many_answers_is_forgotten(void **state)
{
    (void)state;
    bench first;
    bench second;
    shelf one = {0};
    shelf two = {0};
    legacy who;
    wire calls[CALLS];
    wire back;
    open_engine(&first, &one);
    first.mode = ANSWER_LATER;
    legacy_begin(&first, &who, INITIALIZE("2025-11-25"));
    for (int i = 0; i < CALLS; i++) {
        char body[256];
        snprintf(body, sizeof(body), SAY("%d", "tools/call", TOOL), i);
        post(&first, &who, &calls[i], body);
        assert_int_equal(mcp_request_progress(first.held[i], 1, STR("\"progress\":1")), BAY_OK);
        wire_gone(&first, &calls[i]);
    }
    move(&second, &two, &first, &one, &who);
    while (first.held_count > 0) {
        bench_answer(&first, bench_take(&first));
    }
    for (int i = 0; i < CALLS; i++) {
        char last[16];
        snprintf(last, sizeof(last), "%d-1", i + 1);
        get(&first, &who, &back, last);
        assert_int_equal(back.events, 1);
        assert_has(back.event[0], "\"result\"");
        assert_int_equal(back.ends, 1);
        wire_fini(&back);
        get(&second, &who, &back, last);
        assert_int_equal(back.events, 1);
        assert_has(back.event[0], "lost tools/call");
        assert_int_equal(back.ends, 1);
        wire_fini(&back);
        wire_fini(&calls[i]);
    }
    bench_fini(&second);
    bench_fini(&first);
    shelf_fini(&one);
    shelf_fini(&two);
}

/* What one call says of its progress costs no other its answer. */
static void an_answer_outlasts_progress(void **state)
{
    (void)state;
    bench self;
    shelf one = {0};
    legacy who;
    wire quick;
    wire slow;
    wire back;
    mcp_server_options options = bench_options();
    options.log_events = 4;
    options.persistence = &shelf_keeper;
    options.persistence_user = &one;
    bench_init_with(&self, &options);
    self.mode = ANSWER_LATER;
    legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
    post(&self, &who, &quick, SAY("1", "tools/call", TOOL));
    mcp_request *request = bench_take(&self);
    assert_int_equal(mcp_request_progress(request, 1, STR("\"progress\":1")), BAY_OK);
    wire_gone(&self, &quick);
    bench_answer(&self, request);
    post(&self, &who, &slow, SAY("2", "tools/call", TOOL));
    request = bench_take(&self);
    for (int i = 1; i <= 8; i++) {
        assert_int_equal(mcp_request_progress(request, i, STR("\"progress\":1")), BAY_OK);
    }
    get(&self, &who, &back, "1-0");
    assert_has(back.event[back.events - 1], "\"id\":1,\"result\"");
    assert_int_equal(back.ends, 1);
    wire_fini(&back);
    self.held[self.held_count++] = request;
    bench_fini(&self);
    wire_fini(&quick);
    wire_fini(&slow);
    shelf_fini(&one);
}

/* An answer larger than all that is kept is at least said to be lost. */
static void an_answer_too_large_to_keep_is_an_error(void **state)
{
    (void)state;
    bench self;
    shelf one = {0};
    legacy who;
    wire call;
    wire back;
    mcp_server_options options = bench_options();
    options.log_bytes = 512;
    options.persistence = &shelf_keeper;
    options.persistence_user = &one;
    bench_init_with(&self, &options);
    self.mode = ANSWER_LATER;
    legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
    post(&self, &who, &call, SAY("\"a\"", "tools/call", TOOL));
    mcp_request *request = bench_take(&self);
    assert_int_equal(mcp_request_progress(request, 1, STR("\"progress\":1")), BAY_OK);
    wire_gone(&self, &call);
    char large[1024];
    memset(large, 'x', sizeof(large));
    memcpy(large, "\"x\":\"", 5);
    large[sizeof(large) - 1] = '"';
    mcp_request_result_members(request, (bay_str){large, sizeof(large)});
    get(&self, &who, &back, "1-1");
    assert_int_equal(back.events, 1);
    assert_has(back.event[0], "\"id\":\"a\",\"error\":{\"code\":-32603");
    assert_int_equal(back.ends, 1);
    assert_int_equal(one.count, 2);
    assert_true(one.events[1].is_last);
    wire_fini(&back);
    wire_fini(&call);
    bench_fini(&self);
    shelf_fini(&one);
}

static void what_was_answered_is_not_answered_again(void **state)
{
    (void)state;
    bench first;
    bench second;
    bench third;
    shelf one = {0};
    shelf two = {0};
    shelf three = {0};
    legacy who;
    wire call;
    wire back;
    open_engine(&first, &one);
    first.mode = ANSWER_LATER;
    legacy_begin(&first, &who, INITIALIZE("2025-11-25"));
    post(&first, &who, &call, SAY("1", "tools/call", TOOL));
    mcp_request *request = bench_take(&first);
    assert_int_equal(mcp_request_progress(request, 1, STR("\"progress\":1")), BAY_OK);
    buf written;
    buf_init(&written, 1 << 20);
    mcp_session_write(one.session, &written); /* with the call open */
    bench_answer(&first, request);
    assert_string_equal(call.id[2], "1-2-end");

    /* the answer was kept: whoever missed it has it */
    open_engine(&second, &two);
    assert_int_equal(take_up(&second, &one, who.id, buf_view(&written)), BAY_OK);
    assert_int_equal(two.count, 0);
    get(&second, &who, &back, "1-1");
    assert_int_equal(back.events, 1);
    assert_string_equal(back.id[0], "1-2-end");
    assert_has(back.event[0], "\"id\":1,\"result\"");
    assert_int_equal(back.ends, 1);
    wire_fini(&back);
    bench_fini(&second);

    /* it was not kept, but the client had it */
    free((char *)one.events[--one.count].text.at);
    open_engine(&third, &three);
    assert_int_equal(take_up(&third, &one, who.id, buf_view(&written)), BAY_OK);
    get(&third, &who, &back, "1-2-end");
    assert_int_equal(back.ends, 1);
    for (int i = 0; i < back.events; i++) {
        assert_string_equal(back.event[i], "");
    }
    wire_fini(&back);
    bench_fini(&third);
    buf_fini(&written);
    wire_fini(&call);
    bench_fini(&first);
    shelf_fini(&one);
    shelf_fini(&two);
    shelf_fini(&three);
}

static void each_request_of_a_batch_gets_its_answer(void **state)
{
    (void)state;
    bench first;
    bench second;
    shelf one = {0};
    shelf two = {0};
    legacy who;
    wire call;
    wire back;
    open_engine(&first, &one);
    first.mode = ANSWER_LATER;
    legacy_begin(&first, &who, INITIALIZE("2025-03-26"));
    post(&first, &who, &call,
         "[" SAY("1", "tools/call", TOOL) "," SAY("2", "prompts/get",
                                                  TOOL) "," SAY("3", "tools/call", TOOL) "]");
    mcp_request *third = bench_take(&first);
    mcp_request *later = bench_take(&first);
    assert_int_equal(mcp_request_progress(third, 1, STR("\"progress\":1")), BAY_OK);
    bench_answer(&first, third);
    assert_string_equal(call.id[call.events - 1], "1-2");
    move(&second, &two, &first, &one, &who);
    get(&second, &who, &back, "1-1");
    assert_int_equal(back.events, 3);
    assert_has(back.event[0], "\"id\":3,\"result\"");
    assert_has(back.event[1], "\"id\":1,\"error\":{\"code\":-1,\"message\":\"lost tools/call\"");
    assert_has(back.event[2], "\"id\":2,\"error\":{\"code\":-1,\"message\":\"lost prompts/get\"");
    assert_null(strstr(back.id[1], "-end"));
    assert_non_null(strstr(back.id[2], "-end"));
    assert_int_equal(back.ends, 1);
    wire_fini(&back);
    bench_answer(&first, later);
    bench_fini(&second);
    bench_fini(&first);
    wire_fini(&call);
    shelf_fini(&one);
    shelf_fini(&two);
}

static void a_standing_stream_goes_on(void **state)
{
    (void)state;
    bench first;
    bench second;
    shelf one = {0};
    shelf two = {0};
    legacy who;
    wire standing;
    wire back;
    open_engine(&first, &one);
    legacy_begin(&first, &who, INITIALIZE("2025-11-25"));
    get(&first, &who, &standing, NULL);
    mcp_server_close_streams(first.server); /* a drain: the client is to come back */
    assert_int_equal(standing.ends, 1);
    assert_true(standing.retry_ms > 0);
    mcp_server_changed(first.server, MCP_CHANGE_TOOLS);
    move(&second, &two, &first, &one, &who);
    mcp_server_changed(second.server, MCP_CHANGE_PROMPTS);
    get(&second, &who, &back, standing.id[0]);
    assert_int_equal(back.events, 2);
    assert_has(back.event[0], "tools/list_changed");
    assert_has(back.event[1], "prompts/list_changed");
    assert_int_equal(back.ends, 0);
    mcp_server_changed(second.server, MCP_CHANGE_TOOLS);
    assert_int_equal(back.events, 3);
    mcp_server_end_stream(second.server, &back.carrier, second.now_ms);
    assert_int_equal(back.ends, 1);
    assert_true(back.retry_ms > 0);
    bench_fini(&second);
    wire_fini(&back);
    bench_fini(&first);
    wire_fini(&standing);
    assert_int_equal(one.ended_here + two.ended_here, 2);
    assert_int_equal(one.ended_for_good + two.ended_for_good, 0);
    shelf_fini(&one);
    shelf_fini(&two);
}

static void a_drain_does_not_wait_for_what_is_held(void **state)
{
    (void)state;
    bench self;
    shelf one = {.is_slow = true};
    legacy who;
    wire standing;
    open_engine(&self, &one);
    legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
    get(&self, &who, &standing, NULL);
    assert_int_equal(standing.events, 0);
    mcp_server_close_streams(self.server);
    assert_string_equal(standing.id[0], "1-0");
    assert_true(standing.retry_ms > 0);
    assert_int_equal(standing.ends, 1);
    wire_fini(&standing);
    bench_fini(&self);
}

static void the_keeper_hears_now_and_then_that_somebody_is_there(void **state)
{
    (void)state;
    bench self;
    shelf one = {0};
    legacy who;
    wire through;
    open_engine(&self, &one);
    legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
    int changes = one.changes;
    for (int i = 0; i < 20; i++) { /* twenty minutes, at thirty of patience */
        self.now_ms += 60 * 1000;
        post(&self, &who, &through, SAY("1", "ping", "{}"));
        assert_int_equal(through.status, 200);
        wire_fini(&through);
    }
    assert_true(one.changes > changes);
    assert_true(one.changes <= changes + 3);
    self.now_ms += 31 * 60 * 1000;
    (void)mcp_server_tick(self.server, self.now_ms);
    assert_int_equal(one.ended_for_good, 1);
    bench_fini(&self);
}

static void a_long_call_begins_its_stream(void **state)
{
    (void)state;
    bench self;
    legacy who;
    wire call;
    wire modern;
    bench_init(&self);
    self.mode = ANSWER_LATER;
    legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
    post(&self, &who, &call, SAY("1", "tools/call", TOOL));
    mcp_server_quiet(self.server, &call.carrier, self.now_ms);
    assert_int_equal(call.events, 1);
    assert_string_equal(call.id[0], "1-0");
    mcp_server_quiet(self.server, &call.carrier, self.now_ms);
    assert_int_equal(call.events, 1);
    bench_answer(&self, bench_take(&self));
    assert_has(last_event(&call), "\"result\"");
    assert_int_equal(call.ends, 1);
    bench_http(&self, &modern, "POST", call_fields, CALL("1", ""));
    mcp_server_quiet(self.server, &modern.carrier, self.now_ms);
    assert_int_equal(modern.events, 1);
    assert_string_equal(modern.event[0], "");
    mcp_server_end_stream(self.server, &modern.carrier, self.now_ms); /* nobody could come back */
    assert_int_equal(modern.ends, 0);
    bench_answer(&self, bench_take(&self));
    assert_has(last_event(&modern), "\"result\"");
    assert_int_equal(modern.ends, 1);
    wire_fini(&call);
    wire_fini(&modern);
    bench_fini(&self);
}

static void old_clients_keep_a_stream_they_could_not_find_again(void **state)
{
    (void)state;
    bench self;
    legacy who;
    wire call;
    bench_init(&self);
    self.mode = ANSWER_LATER;
    legacy_begin(&self, &who, INITIALIZE("2025-06-18"));
    post(&self, &who, &call, SAY("1", "tools/call", TOOL));
    mcp_server_quiet(self.server, &call.carrier, self.now_ms);
    mcp_server_end_stream(self.server, &call.carrier, self.now_ms);
    assert_int_equal(call.ends, 0);
    mcp_request *request = bench_take(&self);
    assert_int_equal(mcp_request_progress(request, 1, STR("\"progress\":1")), BAY_OK);
    mcp_server_end_stream(self.server, &call.carrier, self.now_ms);
    assert_int_equal(call.ends, 1); /* it has an id by now */
    wire back;
    get(&self, &who, &back, call.id[call.events - 1]);
    bench_answer(&self, request);
    assert_has(last_event(&back), "\"result\"");
    wire_fini(&call);
    wire_fini(&back);
    bench_fini(&self);
}

static void no_lack_of_memory_does_harm(void **state)
{
    (void)state;
    static const bay_str written = STR_INIT(
        "{\"v\":1,\"revision\":\"2025-11-25\",\"last\":4,\"initialized\":true,\"subscriptions\":["
        "\"file:///a\"],\"streams\":[{\"n\":1,\"get\":true},{\"n\":4,\"open\":[[3,\"tools/call\"]]}"
        "]" REST);
    static const mcp_kept_event events[] = {{1, 1, false, STR_INIT("{\"method\":\"x\"}")},
                                            {4, 1, false, STR_INIT("{\"method\":\"y\"}")}};
    for (size_t at = 0; failing_memory_start(at); at++) {
        shelf one = {0};
        bench self = {.capabilities = EVERYTHING, .now_ms = 1000};
        mcp_server_options options = bench_options();
        options.persistence = &shelf_keeper;
        options.persistence_user = &one;
        if (mcp_server_new(&options, &bench_service, &self, &self.server) == BAY_OK) {
            bay_err err = mcp_session_restore(self.server, STR("3-x"), person("me"), written,
                                              events, ARRAY_LEN(events), NULL, 1000);
            assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
            assert_int_equal(mcp_server_session_count(self.server), err == BAY_OK);
            bench_fini(&self);
        }
        shelf_fini(&one);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_not_written_by_us_is_refused),
        cmocka_unit_test(a_session_is_only_taken_up_where_there_is_room),
        cmocka_unit_test(without_a_name_there_is_no_session),
        cmocka_unit_test(another_engine_knows_what_the_first_knew),
        cmocka_unit_test(nothing_is_said_before_it_could_be_resumed),
        cmocka_unit_test(an_answer_waits_for_its_stream),
        cmocka_unit_test(a_flood_is_not_dropped_while_it_is_held),
        cmocka_unit_test(a_call_that_was_lost_is_answered_once),
        cmocka_unit_test(none_of_many_answers_is_forgotten),
        cmocka_unit_test(an_answer_outlasts_progress),
        cmocka_unit_test(an_answer_too_large_to_keep_is_an_error),
        cmocka_unit_test(what_was_answered_is_not_answered_again),
        cmocka_unit_test(each_request_of_a_batch_gets_its_answer),
        cmocka_unit_test(a_standing_stream_goes_on),
        cmocka_unit_test(a_drain_does_not_wait_for_what_is_held),
        cmocka_unit_test(the_keeper_hears_now_and_then_that_somebody_is_there),
        cmocka_unit_test(a_long_call_begins_its_stream),
        cmocka_unit_test(old_clients_keep_a_stream_they_could_not_find_again),
        cmocka_unit_test(no_lack_of_memory_does_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The front: which row a path has, and that each exchange is guarded once, identified once and only
 * where its row needs it, with what is refused and unknown alike for everybody. */
#include "support/people.h"
#include "support/server_rig.h"

/* ---- patterns -------------------------------------------------------------------------------- */

static bool never(void *user, const front_request *request)
{
    (void)user;
    (void)request;
    return false;
}

typedef struct pattern_case {
    const char *pattern;
    const char *path;
    bool matches;
    const char *name;
    const char *rest;
} pattern_case;

static void a_pattern_matches_what_it_says(void **state)
{
    static const pattern_case cases[] = {
        {"/mcp", "/mcp/", false, "", ""},
        {"/mcp", "/mc", false, "", ""},
        {"/mcp", "/MCP", false, "", ""},
        {"/mcp", "", false, "", ""},
        {"/mcp/*", "/mcp", false, "", ""},
        {"/mcp/*", "/mcp/", false, "", ""},
        {"/mcp/*", "/mcp/a/b", false, "", ""},
        {"/mcp/*", "/mcp/a/", false, "", ""},
        {"/mcp/*", "/mcpx/a", false, "", ""},
        {"/mcp/*/sse", "/mcp//sse", false, "", ""},
        {"/mcp/*/sse", "/mcp/a/sse/", false, "", ""},
        {"/mcp/*/sse", "/mcp/a/b/sse", false, "", ""},
        {"/mcp/*/sse", "/mcp/sse", false, "", ""},
        {"/a2a/*/push/*", "/a2a/a/push/", false, "", ""},
        {"/a2a/*/push/*", "/a2a/a/push/b/c", false, "", ""},
        {"/a2a/*/push/*", "/a2a/a/pushb", false, "", ""},
        {"/a2a/*/**", "/a2a/a", false, "", ""},
        {"/a2a/*/**", "/a2a//a", false, "", ""},
        {"/a.v1.**", "/a.v2.X/Y", false, "", ""},
        {"/mcp", "/mcp", true, "", ""},
        {"/mcp/*", "/mcp/@all", true, "@all", ""},
        {"/mcp/*", "/mcp/**", true, "**", ""},
        {"/mcp/*/sse", "/mcp/sse/sse", true, "sse", "/sse"},
        {"/a2a/*/push/*", "/a2a/a/push/b", true, "a", "/push/b"},
        {"/a2a/*/**", "/a2a/a/", true, "a", "/"},
        {"/a2a/*/**", "/a2a/a/v1/tasks/7", true, "a", "/v1/tasks/7"},
        {"/a.v1.**", "/a.v1.X/Y", true, "", "X/Y"},
        {"/**", "/", true, "", ""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const pattern_case *one = &cases[i];
        front_row row = {.path = str_of(one->pattern), .serve = never};
        front_request got = {.exchange = NULL};
        const front_row *found = front_find(&row, 1, STR(""), str_of(one->path), &got);
        if ((found != NULL) != one->matches) {
            fail_msg("%s and %s", one->pattern, one->path);
        }
        if (one->matches) {
            assert_true(str_eq(got.name, str_of(one->name)));
            assert_true(str_eq(got.rest, str_of(one->rest)));
            assert_true(str_eq(got.path, str_of(one->path)));
        }
    }
}

static void rows_begin_behind_the_base(void **state)
{
    static const front_row rows[] = {
        {STR_INIT("/grpc.**"), true, FRONT_CALLER, NULL, never, NULL},
        {STR_INIT(""), false, FRONT_CALLER, NULL, never, NULL},
        {STR_INIT("/x"), false, FRONT_CALLER, NULL, never, NULL},
    };
    bay_str base = STR("/in/*");
    front_request got = {.exchange = NULL};
    (void)state;
    assert_null(front_find(rows, 3, base, STR("/x"), &got));
    assert_null(front_find(rows, 3, base, STR("/in/*x"), &got));
    assert_null(front_find(rows, 3, base, STR("/in/a/x"), &got)); /* a base is no pattern */
    assert_null(front_find(rows, 3, base, STR("/in/*/grpc.A"), &got));
    assert_ptr_equal(front_find(rows, 3, base, STR("/grpc.A"), &got), &rows[0]);
    assert_ptr_equal(front_find(rows, 3, base, STR("/in/*"), &got), &rows[1]);
    assert_int_equal(got.own.len, 0);
    assert_ptr_equal(front_find(rows, 3, base, STR("/in/*/x"), &got), &rows[2]);
    assert_true(str_eq(got.own, STR("/x")));
}

/* ---- a table of each kind of row ------------------------------------------------------------- */

typedef struct rig {
    loop *loop;
    http_front *front;
    http_server *http;
    int identified;
    int served;
    int refused; /* in the row's own words */
    int unknown;
    const auth_principal *seen;
    front_hold *hold;
    int left;
} rig;

static void on_left(void *user)
{
    ((rig *)user)->left++;
}

static bool serve(void *user, const front_request *request)
{
    rig *self = user;
    self->served++;
    self->seen = request->principal;
    http_exchange_reply(request->exchange, 200, NULL, 0, STR("served"));
    return true;
}

/* There is "/hidden/mine", for alice alone. */
static bool serve_hidden(void *user, const front_request *request)
{
    bool is_there = str_eq(request->name, STR("mine")) && request->principal == person("alice");
    return is_there && serve(user, request);
}

static void refuse(void *user, const front_request *request, const front_refusal *refusal)
{
    rig *self = user;
    self->refused++;
    http_exchange_reply(request->exchange, refusal->status, NULL, 0, str_of(refusal->text));
}

static front_verdict identify(void *user, const front_request *request,
                              const auth_principal **out_principal, front_refusal *out)
{
    rig *self = user;
    bay_str who = http_exchange_field(request->exchange, STR("X-Who"));
    self->identified++;
    *out_principal = principal_ref(person_of(who)); /* of a refused one the reference goes back */
    if (str_eq(who, STR("mallory"))) {
        out->status = 403;
        return FRONT_REFUSE;
    }
    if (str_eq(who, STR("later"))) {
        self->hold = front_hold_new(request, on_left, self);
        assert_non_null(self->hold);
        return FRONT_WAIT;
    }
    out->challenge.schemes[0] = STR("Bearer");
    return who.len > 0 ? FRONT_GO : FRONT_REFUSE;
}

static void unknown(void *user, http_exchange *exchange)
{
    ((rig *)user)->unknown++;
    http_exchange_reply(exchange, 404, NULL, 0, STR("there is nothing"));
}

static const http_cors cors = {STR_INIT("GET, POST"), STR_INIT("accept"), STR_INIT("x-")};

static const front_row rows[] = {
    {STR_INIT("/caller"), false, FRONT_CALLER, &cors, serve, NULL},
    {STR_INIT("/worded"), false, FRONT_CALLER, &cors, serve, refuse},
    {STR_INIT("/public"), false, FRONT_PUBLIC, &cors, serve, NULL},
    {STR_INIT("/proven"), false, FRONT_PROVEN, &cors, serve, refuse},
    {STR_INIT("/hidden/*"), false, FRONT_CALLER, &cors, serve_hidden, NULL},
    {STR_INIT("/bare"), false, FRONT_PUBLIC, NULL, serve, NULL},
    {STR_INIT("/shared"), false, FRONT_SHARED, NULL, serve, NULL},
};

static void open_rig(rig *self)
{
    *self = (rig){0};
    front_options options = {.rows = rows,
                             .row_count = ARRAY_LEN(rows),
                             .is_loopback = true,
                             .via = STR("me"),
                             .identify = identify,
                             .unknown = unknown,
                             .user = self};
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    assert_int_equal(front_new(&options, &self->front), BAY_OK);
    http_server_options http = {
        .limits = http_server_default_limits, .handler = &front_handler, .user = self->front};
    assert_int_equal(http_server_new(self->loop, &http, &self->http), BAY_OK);
    assert_int_equal(http_server_listen(self->http, STR("127.0.0.1:0"), NULL), BAY_OK);
}

static void close_rig(rig *self)
{
    http_server_free(self->http);
    front_free(self->front);
    loop_free(self->loop);
}

static void ask(rig *self, wire_client *client, const char *verb, const char *path,
                const char *fields)
{
    self->identified = self->served = self->refused = self->unknown = 0;
    self->seen = NULL;
    wire_exchange(client, self->loop, http_server_port(self->http), verb, path, fields, NULL);
}

typedef struct sent {
    const char *fields;
    int refusal; /* 0: it may enter */
    bool is_by_origin;
} sent;

static const sent entries[] = {
    {"Host: evil.example\r\n", 403, false},
    {"Host: localhost\r\nOrigin: http://evil.example\r\n", 403, true},
    {"Host: localhost\r\nOrigin: null\r\n", 403, true},
    {"Host: evil.example\r\nVia: 1.1 me\r\n", 403, false},
    {"Host: localhost\r\nVia: 1.1 me\r\n", 508, false},
    {"Host: localhost\r\n", 0, false},
    {"Host: localhost\r\nOrigin: http://localhost\r\nVia: 1.1 you\r\n", 0, false},
};

static const struct {
    const char *fields;
    int refusal;
    const char *name;
} callers[] = {
    {"", 401, NULL},
    {"X-Who: mallory\r\n", 403, NULL},
    {"X-Who: alice\r\n", 0, "alice"},
    {"X-Who: bob\r\n", 0, "bob"},
};

/* Every row, with every way to enter, by every caller. */
static void each_row_asks_for_what_it_needs_once(void **state)
{
    rig self;
    (void)state;
    open_rig(&self);
    for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
        for (size_t e = 0; e < ARRAY_LEN(entries); e++) {
            for (size_t c = 0; c < ARRAY_LEN(callers); c++) {
                const front_row *row = &rows[r];
                bool is_open = str_ends(row->path, STR("*"));
                bool is_let_in = entries[e].refusal == 0 ||
                                 (row->need == FRONT_SHARED && entries[e].is_by_origin);
                bool asks = row->need == FRONT_CALLER && is_let_in;
                bool is_missing = is_open && c != 2; /* not alice's */
                int refusal = !is_let_in ? entries[e].refusal : asks ? callers[c].refusal : 0;
                char fields[256];
                wire_client client;
                snprintf(fields, sizeof(fields), "%s%s", entries[e].fields, callers[c].fields);
                ask(&self, &client, "GET", is_open ? "/hidden/mine" : row->path.at, fields);
                int status = refusal != 0 ? refusal : is_missing ? 404 : 200;
                if (client.status != status) {
                    fail_msg("%s, %s: %d", row->path.at, fields, client.status);
                }
                assert_int_equal(self.identified, asks);
                assert_int_equal(self.served, status == 200);
                assert_int_equal(self.refused, refusal != 0 && row->refuse != NULL);
                assert_int_equal(self.unknown, status == 404);
                const char *name = asks && status == 200 ? callers[c].name : NULL;
                assert_ptr_equal(self.seen, name != NULL ? person(name) : NULL);
                assert_int_equal(wire_head_has(&client, "WWW-Authenticate: Bearer\r\n"),
                                 refusal == 401 && row->refuse == NULL);
                wire_close(&client);
            }
        }
    }
    close_rig(&self);
}

static void a_preflight_identifies_nobody(void **state)
{
    rig self;
    (void)state;
    open_rig(&self);
    for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
        bool is_open = str_ends(rows[r].path, STR("*"));
        wire_client client;
        ask(&self, &client, "OPTIONS", is_open ? "/hidden/none" : rows[r].path.at,
            "Origin: http://localhost\r\nAccess-Control-Request-Headers: x-a, y-b\r\n");
        assert_int_equal(client.status, rows[r].cors != NULL ? 204 : 200);
        assert_int_equal(self.identified, 0);
        assert_int_equal(wire_head_has(&client, "Headers: accept, x-a\r\n"), rows[r].cors != NULL);
        wire_close(&client);
        ask(&self, &client, "OPTIONS", "/public", "Origin: http://evil.example\r\n");
        assert_int_equal(client.status, 403);
        assert_false(wire_head_has(&client, "Access-Control"));
        wire_close(&client);
    }
    close_rig(&self);
}

/* ---- a caller who is known later ------------------------------------------------------------- */

static void ask_later(rig *self, wire_client *client, const char *path)
{
    self->identified = self->served = self->refused = self->left = 0;
    self->seen = NULL;
    wire_request(client, self->loop, http_server_port(self->http), "GET", path,
                 "Host: localhost\r\nX-Who: later\r\n", NULL);
    TURN_UNTIL(self->loop, (void)0, self->identified == 1);
    assert_int_equal(self->served + self->refused, 0);
}

static void a_held_request_goes_on_or_is_refused(void **state)
{
    rig self;
    wire_client client;
    (void)state;
    open_rig(&self);
    ask_later(&self, &client, "/caller");
    front_hold_end(self.hold, FRONT_GO, person("alice"), NULL);
    TURN_UNTIL(self.loop, wire_pump(&client), client.is_complete);
    assert_int_equal(client.status, 200);
    assert_ptr_equal(self.seen, person("alice"));
    wire_close(&client);

    ask_later(&self, &client, "/hidden/mine"); /* what is hidden from bob stays so */
    assert_true(str_eq(front_hold_request(self.hold)->name, STR("mine")));
    front_hold_end(self.hold, FRONT_GO, person("bob"), NULL);
    TURN_UNTIL(self.loop, wire_pump(&client), client.is_complete);
    assert_int_equal(client.status, 404);
    wire_close(&client);

    front_refusal refusal = {
        .cause = FRONT_DENIED,
        .status = 401,
        .text = "",
        .challenge = {{STR("Bearer x"), STR("DPoP y")}, .nonce = STR("n1"), .retry = STR("7")}};
    ask_later(&self, &client, "/caller");
    front_hold_end(self.hold, FRONT_REFUSE, NULL, &refusal);
    TURN_UNTIL(self.loop, wire_pump(&client), client.is_complete);
    assert_int_equal(client.status, 401);
    assert_true(wire_head_has(&client, "WWW-Authenticate: Bearer x\r\n"));
    assert_true(wire_head_has(&client, "WWW-Authenticate: DPoP y\r\n"));
    assert_true(wire_head_has(&client, "DPoP-Nonce: n1\r\n"));
    assert_true(wire_head_has(&client, "Retry-After: 7\r\n"));
    assert_true(wire_head_has(&client, "Cache-Control: no-store\r\n"));
    wire_close(&client);

    ask_later(&self, &client, "/worded");
    front_hold_end(self.hold, FRONT_REFUSE, NULL, &refusal);
    TURN_UNTIL(self.loop, wire_pump(&client), client.is_complete);
    assert_int_equal(self.refused, 1);
    assert_int_equal(self.left, 0);
    wire_close(&client);
    close_rig(&self);
}

static void a_held_request_may_be_left(void **state)
{
    rig self;
    wire_client client;
    (void)state;
    open_rig(&self);
    ask_later(&self, &client, "/caller");
    wire_close(&client);
    TURN_UNTIL(self.loop, (void)0, self.left == 1);
    ask_later(&self, &client, "/caller"); /* and so is the server's end */
    close_rig(&self);
    assert_int_equal(self.left, 1);
    wire_close(&client);
}

/* What is sent, without the time. */
static void keep(const wire_client *client, char *out, size_t size)
{
    const char *date = strstr(client->head.at, "Date: ");
    const char *end = date != NULL ? strstr(date, "\r\n") : NULL;
    assert_non_null(end);
    snprintf(out, size, "%.*s%.*s|%.*s", (int)(date - client->head.at), client->head.at,
             (int)(client->head.at + client->head.len - end), end, (int)client->body.len,
             client->body.at);
}

static void hidden_and_invented_are_the_same_bytes(void **state)
{
    rig self;
    char first[1024];
    static const char *const paths[] = {"/hidden/mine", "/hidden/other", "/invented",     "/",
                                        "/caller/",     "/hidden/",      "/hidden/mine/x"};
    (void)state;
    open_rig(&self);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        char got[1024];
        wire_client client;
        ask(&self, &client, "POST", paths[i], "X-Who: bob\r\nContent-Length: 0\r\n");
        assert_int_equal(client.status, 404);
        keep(&client, i == 0 ? first : got, sizeof(got));
        if (i > 0) {
            assert_string_equal(got, first);
        }
        wire_close(&client);
    }
    wire_client client;
    ask(&self, &client, "GET", "/hidden/mine", "");
    assert_int_equal(client.status, 401); /* and so is any name, to whoever is nobody */
    wire_close(&client);
    ask(&self, &client, "GET", "/hidden/other", "");
    assert_int_equal(client.status, 401);
    wire_close(&client);
    close_rig(&self);
}

static void a_front_without_rows_is_refused(void **state)
{
    front_options none = {.row_count = 0};
    http_front *made = NULL;
    (void)state;
    assert_int_equal(front_new(&none, &made), BAY_ERR_INVALID);
    assert_null(made);
    front_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pattern_matches_what_it_says),
        cmocka_unit_test(rows_begin_behind_the_base),
        cmocka_unit_test(a_front_without_rows_is_refused),
        cmocka_unit_test(each_row_asks_for_what_it_needs_once),
        cmocka_unit_test(a_preflight_identifies_nobody),
        cmocka_unit_test(hidden_and_invented_are_the_same_bytes),
        cmocka_unit_test(a_held_request_goes_on_or_is_refused),
        cmocka_unit_test(a_held_request_may_be_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

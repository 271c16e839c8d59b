/* The sessions of one server at a URL, of the handshake era: who shares one, whose questions come
 * on which stream, what happens when the server forgets them. The server is one of this test, on
 * the same loop. */
#include "asking_client.h"

#include "http/http_server.h"

enum { SESSIONS = 64 };

/* One session as the server sees it. */
typedef struct peer_session {
    char id[16]; /* "": forgotten, or ended */
    char capabilities[300];
    http_exchange *stream; /* its GET */
} peer_session;

typedef struct peer_stage {
    stage base;
    http_server *server;
    http_client *http;
    peer_session sessions[SESSIONS];
    int session_count; /* ever */
    int deletes;
    int calls;
    http_exchange *asking; /* the call that asked, and its id */
    char asking_id[40];
} peer_stage;

static void reply_json(http_exchange *exchange, const char *session, const char *body)
{
    http_field fields[] = {{STR("Content-Type"), STR("application/json")},
                           {STR("Mcp-Session-Id"), str_of(session)}};
    http_exchange_reply(exchange, 200, fields, session[0] != '\0' ? 2 : 1, str_of(body));
}

static void open_events(http_exchange *exchange)
{
    static const http_field fields[] = {{STR_INIT("Content-Type"), STR_INIT("text/event-stream")}};
    assert_int_equal(http_stream_open(exchange, 200, fields, 1, false), BAY_OK);
}

static void write_event(http_exchange *exchange, const char *message)
{
    char text[1200];
    (void)snprintf(text, sizeof(text), "data: %s\n\n", message);
    assert_int_equal(http_stream_write(exchange, str_of(text)), BAY_OK);
}

static void result_text(const peer_session *session, bay_str id, bay_str said, char *out,
                        size_t size)
{
    (void)snprintf(out, size,
                   "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"content\":[{\"type\":\"text\","
                   "\"text\":\"good\"}],\"structuredContent\":{\"session\":\"%s\",\"caps\":%s,"
                   "\"said\":%.*s}}}",
                   BAY_STR(id), session->id, session->capabilities, BAY_STR(said));
}

static peer_session *session_of(peer_stage *self, const http_exchange *exchange)
{
    bay_str id = http_exchange_field(exchange, STR("Mcp-Session-Id"));
    for (int i = 0; id.len > 0 && i < self->session_count; i++) {
        if (str_eq(id, str_of(self->sessions[i].id))) {
            return &self->sessions[i];
        }
    }
    return NULL;
}

static void take_initialize(peer_stage *self, http_exchange *exchange, json_val message, bay_str id)
{
    char text[600];
    assert_true(self->session_count < SESSIONS);
    peer_session *made = &self->sessions[self->session_count++];
    json_val capabilities = json_get(json_get(message, STR("params")), STR("capabilities"));
    (void)snprintf(made->id, sizeof(made->id), "s%d", self->session_count);
    (void)snprintf(made->capabilities, sizeof(made->capabilities), "%.*s",
                   BAY_STR(json_raw(capabilities)));
    (void)snprintf(
        text, sizeof(text),
        "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"protocolVersion\":\"2025-11-25\","
        "\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"p\",\"version\":\"1\"}"
        "}}",
        BAY_STR(id));
    reply_json(exchange, made->id, text);
}

static void ask_on(http_exchange *stream, bay_str id)
{
    char text[300];
    (void)snprintf(
        text, sizeof(text),
        "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":{"
        "\"message\":\"for %.*s?\"}}",
        BAY_STR(id));
    write_event(stream, text);
}

static void take_call(peer_stage *self, http_exchange *exchange, peer_session *session,
                      json_val message, bay_str id)
{
    char text[900];
    json_val name = json_get(json_get(message, STR("params")), STR("name"));
    bool is_loose = json_str_eq(name, STR("ask_loosely"));
    self->calls++;
    if (json_str_eq(name, STR("hang"))) {
        return;
    }
    if (json_str_eq(name, STR("ask")) || is_loose) {
        open_events(exchange);
        self->asking = exchange;
        (void)snprintf(self->asking_id, sizeof(self->asking_id), "%.*s", BAY_STR(id));
        ask_on(is_loose ? session->stream : exchange, id);
        return;
    }
    result_text(session, id, STR("0"), text, sizeof(text));
    reply_json(exchange, "", text);
}

static void take_answer(peer_stage *self, peer_session *session, json_val message)
{
    char text[900];
    json_val result = json_get(message, STR("result"));
    json_val said = json_is(result, JSON_MISSING) ? json_get(message, STR("error")) : result;
    assert_non_null(self->asking);
    result_text(session, str_of(self->asking_id), json_raw(said), text, sizeof(text));
    write_event(self->asking, text);
    http_stream_end(self->asking);
    self->asking = NULL;
}

static void take_post(peer_stage *self, http_exchange *exchange)
{
    json_doc doc;
    arena *memory = http_exchange_arena(exchange);
    assert_int_equal(json_parse(&doc, http_exchange_body(exchange), NULL, memory, NULL), BAY_OK);
    json_val message = json_root(&doc);
    json_val method = json_get(message, STR("method"));
    bay_str id = json_raw(json_get(message, STR("id")));
    peer_session *session = session_of(self, exchange);
    if (json_str_eq(method, STR("initialize"))) {
        take_initialize(self, exchange, message, id);
    } else if (session == NULL) {
        http_exchange_reply(exchange, 404, NULL, 0, STR("no such session"));
    } else if (json_str_eq(method, STR("tools/call"))) {
        take_call(self, exchange, session, message, id);
    } else {
        http_exchange_reply(exchange, 202, NULL, 0, (bay_str){NULL, 0});
        if (json_is(method, JSON_MISSING)) {
            take_answer(self, session, message);
        }
    }
}

static void peer_request(void *user, http_exchange *exchange)
{
    peer_stage *self = user;
    bay_str method = http_exchange_method(exchange);
    peer_session *session = session_of(self, exchange);
    if (str_eq(method, STR("POST"))) {
        take_post(self, exchange);
    } else if (session == NULL) {
        http_exchange_reply(exchange, 404, NULL, 0, (bay_str){NULL, 0});
    } else if (str_eq(method, STR("GET"))) {
        open_events(exchange);
        session->stream = exchange;
    } else {
        self->deletes++;
        session->id[0] = '\0';
        http_exchange_reply(exchange, 200, NULL, 0, (bay_str){NULL, 0});
    }
}

static void peer_closed(void *user, http_exchange *exchange, bool is_complete)
{
    peer_stage *self = user;
    (void)is_complete;
    for (int i = 0; i < self->session_count; i++) {
        if (self->sessions[i].stream == exchange) {
            self->sessions[i].stream = NULL;
        }
    }
    self->asking = self->asking == exchange ? NULL : self->asking;
}

static void peer_drained(void *user, http_exchange *exchange)
{
    (void)user;
    (void)exchange;
}

static const http_handler peer_handler = {peer_request, peer_closed, peer_drained};

static void forget_sessions(peer_stage *self)
{
    for (int i = 0; i < self->session_count; i++) {
        self->sessions[i].id[0] = '\0';
    }
}

static void open_peer(peer_stage *self, const char *more)
{
    char text[500];
    memset(self, 0, sizeof(*self));
    self->base.descriptors = open_descriptors();
    assert_int_equal(loop_new(&self->base.loop), BAY_OK);
    http_server_options server = {
        .limits = http_server_default_limits, .handler = &peer_handler, .user = self};
    http_client_options caller = {.limits = http_client_default_limits};
    assert_int_equal(http_server_new(self->base.loop, &server, &self->server), BAY_OK);
    assert_int_equal(http_server_listen(self->server, STR("127.0.0.1:0"), NULL), BAY_OK);
    assert_int_equal(http_client_new(self->base.loop, &caller, &self->http), BAY_OK);
    (void)snprintf(text, sizeof(text),
                   "{'mcpServers':{'s':{'url':'http://127.0.0.1:%d/mcp','protocol':'legacy'%s}}}",
                   (int)http_server_port(self->server), more);
    char *quoted = testing_quotes(text);
    self->base.config = testing_config(quoted);
    mem_free(quoted);
    upstream_options options = {.loop = self->base.loop,
                                .http = self->http,
                                .config = self->base.config,
                                .server = &self->base.config->servers[0],
                                .events = &fake_events};
    assert_int_equal(upstream_new(&options, &self->base.server), BAY_OK);
}

static void close_peer(peer_stage *self)
{
    upstream_close(self->base.server, closed, &self->base.is_closed);
    turn_until(self->base.loop, self->base.is_closed);
    upstream_free(self->base.server);
    http_client_free(self->http);
    http_server_free(self->server);
    loop_free(self->base.loop);
    config_free(self->base.config);
    assert_int_equal(open_descriptors(), self->base.descriptors);
}

static const char *session_text(const client *self)
{
    static char out[16];
    const char *at = strstr(self->probe.text, "\"session\":\"");
    if (at == NULL) {
        fail_msg("no session: %s", self->probe.text);
    }
    (void)snprintf(out, sizeof(out), "%.*s", (int)strcspn(at + 11, "\""), at + 11);
    return out;
}

static void clients_of_one_kind_share_a_session(void **state)
{
    (void)state;
    peer_stage self;
    client one = {.is_holding = true, .is_stateless = true};
    client two = {.is_stateless = true};
    open_peer(&self, "");
    client_call(&two, &self.base, "say", 0, "a");
    assert_string_equal(session_text(&two), "s1");
    assert_says(&two, "\"roots\":{");
    client_send(&one, &self.base, "ask", FORM, "a");
    turn_until(self.base.loop, one.asked == 1);
    client_call(&two, &self.base, "say", FORM, "b"); /* while the other is asked */
    assert_string_equal(session_text(&two), "s2");
    assert_says(&two, "\"caps\":{\"elicitation\":{\"form\":{}}}");
    assert_int_equal(two.asked, 0);
    client_answer(&one, "{\"action\":\"accept\"}");
    client_wait(&one, &self.base);
    assert_string_equal(session_text(&one), "s2");
    assert_says(&one, "accept");
    one.is_stateless = false; /* a client with a session has its own */
    client_call(&one, &self.base, "say", ROOTS, "a");
    assert_string_equal(session_text(&one), "s3");
    client_call(&one, &self.base, "say", ROOTS, "b"); /* whose roots they are matters */
    assert_string_equal(session_text(&one), "s4");
    client_call(&one, &self.base, "say", ROOTS, "a");
    assert_string_equal(session_text(&one), "s3");
    upstream_identity_gone(self.base.server, STR("a"));
    turn_until(self.base.loop, self.deletes == 1); /* ended politely */
    close_peer(&self);
}

static void what_the_shared_one_asks_is_the_calls_own_affair(void **state)
{
    (void)state;
    peer_stage self;
    client one = {0};
    open_peer(&self, "");
    client_call(&one, &self.base, "ask", 0, "a"); /* its route refuses it */
    assert_int_equal(one.asked, 1);
    probe_init(&one.probe, "ask"); /* one that cannot be asked: refused here */
    probe_send(&one.probe, self.base.server);
    client_wait(&one, &self.base);
    assert_says(&one, "nobody can be asked during this call");
    close_peer(&self);
}

/* Many servers ask on the stream of the session where they should on the call's. */
static void a_server_whose_questions_are_loose_has_its_sessions_lent(void **state)
{
    (void)state;
    peer_stage self;
    client one = {.is_holding = true, .is_stateless = true};
    client two = {.is_stateless = true};
    open_peer(&self, "");
    client_call(&two, &self.base, "say", FORM, "a");
    turn_until(self.base.loop, self.sessions[1].stream != NULL);
    client_send(&one, &self.base, "ask_loosely", FORM, "a");
    turn_until(self.base.loop, one.asked == 1); /* the only call there: it is its question */
    client_call(&two, &self.base, "say", FORM, "b");
    assert_string_not_equal(session_text(&two), "s2"); /* known by now: not shared any more */
    client_answer(&one, "{\"action\":\"accept\"}");
    client_wait(&one, &self.base);
    assert_good(&one.probe);
    close_peer(&self);
}

static void a_loose_question_among_several_calls_is_refused(void **state)
{
    (void)state;
    peer_stage self;
    client one = {.is_stateless = true};
    client two = {.is_stateless = true};
    open_peer(&self, "");
    client_call(&two, &self.base, "say", FORM, "a");
    turn_until(self.base.loop, self.sessions[1].stream != NULL);
    client_send(&two, &self.base, "hang", FORM, "b");
    client_call(&one, &self.base, "ask_loosely", FORM, "a");
    assert_int_equal(one.asked + two.asked, 0);
    assert_says(&one, "the request names none of them");
    assert_int_equal(upstream_count_of(self.base.server).refused_questions, 1);
    upstream_call_cancel(&two.probe.call, STR("no more"));
    probe_fini(&two.probe);
    two = (client){.is_holding = true, .is_stateless = true};
    client_send(&two, &self.base, "say", FORM, "b");
    client_wait(&two, &self.base);
    assert_string_equal(session_text(&two), "s3"); /* exclusive from now on */
    close_peer(&self);
}

static void a_forgotten_session_is_begun_anew(void **state)
{
    (void)state;
    peer_stage self;
    client one = {0};
    open_peer(&self, "");
    for (unsigned inputs = 0; inputs <= FORM; inputs += FORM) {
        client_call(&one, &self.base, "say", inputs, "a");
        int before = self.session_count;
        int calls = self.calls;
        forget_sessions(&self);
        client_call(&one, &self.base, "say", inputs, "a"); /* 404: certainly not executed */
        assert_good(&one.probe);
        assert_int_equal(self.session_count, before + 1);
        assert_int_equal(self.calls, calls + 1);
    }
    close_peer(&self);
}

static void sessions_have_their_bound(void **state)
{
    (void)state;
    peer_stage self;
    client one = {0};
    open_peer(&self, ",'share':'session','sessions':2");
    client_call(&one, &self.base, "say", FORM, "a");
    client_call(&one, &self.base, "say", FORM, "b");
    client_call(&one, &self.base, "say", FORM, "a");
    client_call(&one, &self.base, "say", FORM, "c"); /* in the place of b's */
    assert_int_equal(self.deletes, 1);
    assert_string_equal(self.sessions[2].id, "");
    assert_int_equal(local_part(&self.base)->session_count, 2);
    client_call(&one, &self.base, "say", FORM, "a");
    assert_string_equal(session_text(&one), "s2");
    close_peer(&self);
}

static void a_server_that_is_gone_fails_all(void **state)
{
    (void)state;
    peer_stage self;
    client calls[2] = {{.is_holding = true}, {.is_holding = true}};
    open_peer(&self, ",'restart':{'minDelay':'1h','maxDelay':'1h'}");
    client_send(&calls[0], &self.base, "ask", FORM, "a");
    turn_until(self.base.loop, calls[0].asked == 1);
    client_send(&calls[1], &self.base, "hang", 0, "a");
    turn_until(self.base.loop, self.calls == 2);
    http_server_free(self.server);
    self.server = NULL;
    for (int i = 0; i < 2; i++) {
        client_wait(&calls[i], &self.base);
        assert_int_equal(calls[i].probe.kind, MCP_OUTCOME_FAILED);
        assert_true(calls[i].probe.was_sent);
    }
    client_call(&calls[0], &self.base, "say", FORM, "a");
    assert_int_equal(calls[0].probe.kind, MCP_OUTCOME_FAILED);
    assert_false(calls[0].probe.was_sent);
    upstream_close(self.base.server, closed, &self.base.is_closed);
    turn_until(self.base.loop, self.base.is_closed);
    upstream_free(self.base.server);
    http_client_free(self.http);
    loop_free(self.base.loop);
    config_free(self.base.config);
}

static int warm_up(void **state)
{
    (void)state;
    loop *made = NULL;
    bay_err err = loop_new(&made);
    loop_free(made);
    return err;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_of_one_kind_share_a_session),
        cmocka_unit_test(what_the_shared_one_asks_is_the_calls_own_affair),
        cmocka_unit_test(a_server_whose_questions_are_loose_has_its_sessions_lent),
        cmocka_unit_test(a_loose_question_among_several_calls_is_refused),
        cmocka_unit_test(a_forgotten_session_is_begun_anew),
        cmocka_unit_test(sessions_have_their_bound),
        cmocka_unit_test(a_server_that_is_gone_fails_all),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}

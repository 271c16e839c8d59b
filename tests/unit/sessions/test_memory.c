/* A session's way into the store and back. Every allocation of it fails in turn: nobody crashes,
 * hangs or leaks, and what cannot be kept is simply not kept. And when more is said than can be
 * written, answers are. The store is one in memory: nothing runs beside this thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "sessions/persister.h"
#include "support/failing_memory.h"
#include "support/people.h"
#include "support/skipped.h"

PEOPLE_FROM_THE_START

enum { ROUNDS = 400 };

#define INITIALIZE                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"     \
    "\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}"
#define CALL                                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"t\","          \
    "\"_meta\":{\"progressToken\":1}}}"

typedef struct world {
    loop *loop;
    session_store *store;
    session_persister *persister;
    mcp_server *engine;
} world;

typedef struct wire {
    mcp_carrier carrier; /* first */
    char session[MCP_SESSION_ID_BYTES + 1];
    char last_id[32];
    int events;
    bool is_over;
} wire;

static void on_answer(mcp_carrier *carrier, int status, bay_str json, bay_str session,
                      bay_str allow)
{
    wire *self = (wire *)carrier;
    (void)status;
    (void)json;
    (void)allow;
    assert_false(self->is_over);
    self->is_over = true;
    assert_true(session.len < sizeof(self->session));
    memcpy(self->session, session.len > 0 ? session.at : "", session.len);
    self->session[session.len] = '\0';
}

static bay_err on_event(mcp_carrier *carrier, bay_str json, bay_str id)
{
    wire *self = (wire *)carrier;
    (void)json;
    assert_false(self->is_over);
    self->events++;
    assert_true(id.len < sizeof(self->last_id));
    memcpy(self->last_id, id.len > 0 ? id.at : "", id.len);
    self->last_id[id.len] = '\0';
    return BAY_OK;
}

static void on_end(mcp_carrier *carrier)
{
    wire *self = (wire *)carrier;
    assert_false(self->is_over);
    self->is_over = true;
}

static const mcp_carrier_ops wire_ops = {.answer = on_answer, .event = on_event, .end = on_end};

static const char *event_named;
static int reports = 1; /* more than one: the call is held after them */
static mcp_request *held;

static void say(world *self, wire *through, const char *session, const char *verb, const char *body)
{
    *through = (wire){.carrier.ops = &wire_ops};
    http_field fields[3] = {{STR("Content-Type"), STR("application/json")}};
    size_t count = 1;
    if (session != NULL) {
        fields[count++] = (http_field){STR("Mcp-Session-Id"), str_of(session)};
    }
    if (event_named != NULL) {
        fields[count++] = (http_field){STR("Last-Event-ID"), str_of(event_named)};
    }
    mcp_http_request request = {.verb = str_of(verb),
                                .body = str_of(body),
                                .fields = fields,
                                .field_count = count,
                                .principal = person("ann")};
    mcp_server_http(self->engine, &request, &through->carrier, 1000);
}

static void serve(void *user, mcp_request *request)
{
    (void)user;
    for (int i = 1; i <= reports; i++) {
        (void)mcp_request_progress(request, i, STR("\"progress\":1"));
    }
    if (reports > 1) {
        held = request;
        return;
    }
    mcp_request_result_members(request, STR("\"content\":[]"));
}

static void cancelled(void *user, mcp_request *request)
{
    (void)user;
    (void)request;
}

static void capabilities(void *user, const mcp_revision *revision, json_writer *out)
{
    (void)user;
    (void)revision;
    json_key_lit(out, "tools");
    json_put_raw(out, STR("{}"));
}

static const mcp_service service = {
    .request = serve, .cancelled = cancelled, .capabilities = capabilities};

static bay_err open_engine(world *self, const seal_ring *ring)
{
    session_persister_options options = {.loop = self->loop, .ring = ring, .store = self->store};
    bay_err err = session_persister_new(&options, &self->persister);
    mcp_server_options engine = {.name = STR("t"),
                                 .version = STR("1"),
                                 .oldest = MCP_REV_2024_11_05,
                                 .newest = MCP_LATEST,
                                 .persistence = &session_persister_ops,
                                 .persistence_user = self->persister};
    return err == BAY_OK ? mcp_server_new(&engine, &service, NULL, &self->engine) : err;
}

static void close_engine(world *self)
{
    if (self->engine != NULL) {
        mcp_server_free(self->engine);
    }
    session_persister_free(self->persister);
    self->engine = NULL;
    self->persister = NULL;
}

static void on_found(void *user, bay_err err)
{
    (void)err;
    *(int *)user += 1;
}

static void settle(world *self)
{
    for (int i = 0; i < 8; i++) {
        (void)loop_turn(self->loop, 0);
    }
    session_store_flush(self->store, 2000);
}

/* A session with a streamed call and a standing stream, and the same in a second engine. */
static void live(world *self, const seal_ring *ring)
{
    wire begin;
    wire call;
    wire standing;
    wire back;
    say(self, &begin, NULL, "POST", INITIALIZE);
    assert_true(begin.is_over);
    if (begin.session[0] == '\0') {
        return;
    }
    say(self, &call, begin.session, "POST", CALL);
    settle(self);
    assert_true(call.is_over); /* held no longer than it can be kept, or not at all */
    say(self, &standing, begin.session, "GET", "");
    settle(self);
    close_engine(self);
    int found = 0;
    if (open_engine(self, ring) != BAY_OK) {
        return;
    }
    bay_err err = session_persister_find(self->persister, self->engine, str_of(begin.session),
                                         person("ann"), on_found, &found);
    settle(self);
    assert_int_equal(found, err == BAY_OK);
    say(self, &back, begin.session, "DELETE", "");
    assert_true(back.is_over);
    settle(self);
}

static void sweep(const seal_ring *ring, const config *settings, bool is_single)
{
    size_t at = 0;
    for (; at < ROUNDS && failing_memory_start(at); at++) {
        failing_memory.is_single = is_single;
        world self = {0};
        store *file = NULL;
        bay_err err = loop_new(&self.loop);
        err = err == BAY_OK ? store_open_memory(self.loop, NULL, &file) : err;
        err = err == BAY_OK ? session_store_new(self.loop, settings, file, &self.store) : err;
        err = err == BAY_OK ? open_engine(&self, ring) : err;
        if (err == BAY_OK) {
            live(&self, ring);
        }
        close_engine(&self);
        session_store_free(self.store);
        if (self.loop != NULL) {
            loop_free(self.loop);
        }
        failing_memory_check();
    }
    assert_true(at > 50);
    assert_true(at < ROUNDS);
}

/* Without TLS nothing is sealed, and no session is kept. A build with it must have keys. */
static seal_ring *make_ring(void)
{
#ifdef BAY_NO_TLS
    SKIP("this build has no TLS, so nothing seals the ids of sessions in a store");
#endif
    seal_ring *ring = NULL;
    assert_int_equal(seal_ring_new(&ring), BAY_OK);
    assert_int_equal(seal_ring_generate(ring), BAY_OK);
    return ring;
}

static void no_lack_of_memory_does_harm(void **state)
{
    (void)state;
    seal_ring *ring = make_ring();
    const config *settings = NULL;
    config_report *report = calloc(1, sizeof(*report));
    assert_int_equal(
        config_load_text(STR("mcpServers: {}\n"), STR("t"), NULL, NULL, &settings, report), BAY_OK);
    free(report);
    sweep(ring, settings, false);
    sweep(ring, settings, true);
    config_free(settings);
    seal_ring_free(ring);
}

static void answers_are_kept_whatever_else_is_said(void **state)
{
    (void)state;
    seal_ring *ring = make_ring();
    const config *settings = NULL;
    config_report *report = calloc(1, sizeof(*report));
    assert_int_equal(
        config_load_text(STR("mcpServers: {}\n"), STR("t"), NULL, NULL, &settings, report), BAY_OK);
    free(report);
    world self = {0};
    store *file = NULL;
    wire begin;
    wire call;
    wire back;
    int found = 0;
    assert_int_equal(loop_new(&self.loop), BAY_OK);
    assert_int_equal(store_open_memory(self.loop, NULL, &file), BAY_OK);
    assert_int_equal(session_store_new(self.loop, settings, file, &self.store), BAY_OK);
    assert_int_equal(open_engine(&self, ring), BAY_OK);
    say(&self, &begin, NULL, "POST", INITIALIZE);
    settle(&self);
    reports = 20000; /* more than the store takes at once */
    say(&self, &call, begin.session, "POST", CALL);
    reports = 1;
    mcp_server_gone(self.engine, &call.carrier, 1000);
    mcp_request_result_members(held, STR("\"content\":[]"));
    settle(&self);
    close_engine(&self);
    assert_int_equal(open_engine(&self, ring), BAY_OK);
    assert_int_equal(session_persister_find(self.persister, self.engine, str_of(begin.session),
                                            person("ann"), on_found, &found),
                     BAY_OK);
    settle(&self);
    assert_int_equal(found, 1);
    event_named = "1-5";
    say(&self, &back, begin.session, "GET", "");
    event_named = NULL;
    assert_true(back.is_over);
    assert_string_equal(back.last_id, "1-20001-end");
    settle(&self);
    close_engine(&self);
    session_store_free(self.store);
    loop_free(self.loop);
    config_free(settings);
    seal_ring_free(ring);
}

static void on_recalled(void *user, bay_err err)
{
    *(bay_err *)user = err;
}

static void on_put(void *user, const store_result *result)
{
    (void)result;
    *(bool *)user = true;
}

/* The store has no room for the removal, and then has: in between nobody finds the session. */
static void what_ended_is_found_by_nobody(void **state)
{
    (void)state;
    seal_ring *ring = make_ring();
    const config *settings = NULL;
    config_report *report = calloc(1, sizeof(*report));
    assert_int_equal(
        config_load_text(STR("mcpServers: {}\n"), STR("t"), NULL, NULL, &settings, report), BAY_OK);
    free(report);
    world self = {0};
    store *file = NULL;
    store_options narrow = {.pending = 1};
    wire begin;
    wire end;
    bool is_put = false;
    bay_err found = BAY_OK;
    assert_int_equal(loop_new(&self.loop), BAY_OK);
    assert_int_equal(store_open_memory(self.loop, &narrow, &file), BAY_OK);
    assert_int_equal(session_store_new(self.loop, settings, file, &self.store), BAY_OK);
    assert_int_equal(open_engine(&self, ring), BAY_OK);
    say(&self, &begin, NULL, "POST", INITIALIZE);
    settle(&self);
    store_put_request other = {
        .table = STR("other"), .key = STR("k"), .value = STR("v"), .expected = STORE_ANY};
    assert_int_equal(store_put(file, &other, on_put, &is_put), BAY_OK);
    say(&self, &end, begin.session, "DELETE", "");
    assert_true(end.is_over);
    while (!is_put) {
        (void)loop_turn(self.loop, 0);
    }
    assert_int_equal(session_persister_find(self.persister, self.engine, str_of(begin.session),
                                            person("ann"), on_recalled, &found),
                     BAY_ERR_NOT_FOUND);
    settle(&self);
    assert_int_equal(session_persister_find(self.persister, self.engine, str_of(begin.session),
                                            person("ann"), on_recalled, &found),
                     BAY_OK);
    settle(&self);
    assert_int_equal(found, BAY_ERR_NOT_FOUND);
    say(&self, &begin, NULL, "POST", INITIALIZE);
    settle(&self);
    assert_int_equal(store_put(file, &other, on_put, &is_put), BAY_OK);
    say(&self, &end, begin.session, "DELETE", ""); /* and everything ends before it is removed */
    close_engine(&self);
    session_store_free(self.store);
    loop_free(self.loop);
    config_free(settings);
    seal_ring_free(ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_lack_of_memory_does_harm),
        cmocka_unit_test(answers_are_kept_whatever_else_is_said),
        cmocka_unit_test(what_ended_is_found_by_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

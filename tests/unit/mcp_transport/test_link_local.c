/* The link to a server of the same loop: no re-entrance, bounded queues, and whoever goes first. */
#include "support/link_owner.h"
#include "support/people.h"
#include "support/server_rig.h"

typedef struct fixture {
    owner on;
    test_service service;
} fixture;

static void open_link(fixture *self, mcp_revision_id revision, size_t max_message_bytes)
{
    *self = (fixture){0};
    assert_int_equal(loop_new(&self->on.loop), BAY_OK);
    service_open(&self->service, 0);
    mcp_link_options options = owner_options(&self->on);
    options.client.oldest = options.client.newest = revision;
    options.client.max_message_bytes = max_message_bytes;
    assert_int_equal(
        mcp_link_open_local(self->on.loop, self->service.engine, &options, &self->on.link), BAY_OK);
    assert_int_equal(self->on.readies + self->on.breaks, 0);
    assert_int_equal(mcp_link_process_id(self->on.link), 0);
}

static void close_all(fixture *self)
{
    if (self->on.link != NULL) {
        owner_free(&self->on);
    }
    settle(self->on.loop);
    while (self->service.held_count > 0) {
        service_finish(&self->service);
    }
    mcp_server_free(self->service.engine);
    loop_free(self->on.loop);
    assert_int_equal(self->service.sessions, 0);
    assert_int_equal(self->on.late, 0);
}

static void test_call(void **state)
{
    (void)state;
    for (int i = 0; i < MCP_REVISION_COUNT; i++) {
        fixture on;
        answer out;
        open_link(&on, (mcp_revision_id)i, 0);
        assert_int_equal(ask(&out, &on.on, "tools/call", "{\"name\":\"echo\"}"), BAY_OK);
        assert_int_equal(on.service.calls, 0);
        LINK_UNTIL(on.on.loop, out.dones == 1);
        assert_true(answer_has(&out, "0.1000 \\u00e9"));
        answer_fini(&out);
        /* nothing of it happens inside the call */
        assert_int_equal(ask(&out, &on.on, "tools/call", "{\"name\":\"echo\"}"), BAY_OK);
        assert_int_equal(on.service.calls, 1);
        assert_int_equal(out.dones, 0);
        LINK_UNTIL(on.on.loop, out.dones == 1);
        answer_fini(&out);
        close_all(&on);
    }
}

/* A receiver that is slow stops the sender; nothing grows beyond the mark and one message. */
static void test_back_pressure(void **state)
{
    (void)state;
    fixture on;
    answer out;
    open_link(&on, MCP_LATEST_LEGACY, 0);
    LINK_UNTIL(on.on.loop, on.on.readies == 1);
    assert_int_equal(ask(&out, &on.on, "tools/call", "{\"name\":\"flood\"}"), BAY_OK);
    out.pauses_on_note = true;
    LINK_UNTIL(on.on.loop, out.notes == 1);
    settle(on.on.loop);
    int said = on.service.flooded;
    assert_in_range(said, 2, 20);
    assert_non_null(on.service.flooding);
    assert_int_equal(out.notes, 1);
    out.pauses_on_note = false;
    mcp_call_pause(out.call, false);
    LINK_UNTIL(on.on.loop, out.dones == 1);
    assert_int_equal(out.kind, MCP_OUTCOME_RESULT);
    assert_int_equal(out.notes, on.service.flooded);
    assert_true(on.service.drained > 1);
    answer_fini(&out);
    close_all(&on);
}

/* A server that is not paused by BAY_ERR_AGAIN is cut off at the bound. */
static void test_overrun(void **state)
{
    (void)state;
    fixture on;
    answer out;
    open_link(&on, MCP_LATEST_LEGACY, 1 << 20);
    LINK_UNTIL(on.on.loop, on.on.readies == 1);
    assert_int_equal(ask(&out, &on.on, "tools/call", "{\"name\":\"hold\"}"), BAY_OK);
    LINK_UNTIL(on.on.loop, on.service.held_count == 1);
    mcp_call_pause(out.call, true);
    static char members[FLOOD_BYTES + 64];
    bay_err err = BAY_OK;
    for (int i = 1; i < 100 && (err == BAY_OK || err == BAY_ERR_AGAIN); i++) {
        int len = snprintf(members, sizeof(members), "\"progress\":%d,\"message\":\"%0*d\"", i,
                           FLOOD_BYTES - 64, 0);
        err = mcp_request_progress(on.service.held[0], i, (bay_str){members, (size_t)len});
    }
    assert_int_equal(err, BAY_ERR_CANCELLED);
    LINK_UNTIL(on.on.loop, on.on.breaks == 1);
    assert_int_equal(on.on.err, BAY_ERR_LIMIT);
    assert_int_equal(out.dones, 1);
    answer_fini(&out);
    close_all(&on);
}

static void test_who_goes_first(void **state)
{
    (void)state;
    for (int manner = 0; manner < 4; manner++) {
        fixture on;
        answer out;
        open_link(&on, manner % 2 == 0 ? MCP_LATEST : MCP_LATEST_LEGACY, 0);
        LINK_UNTIL(on.on.loop, on.on.readies == 1);
        assert_int_equal(ask(&out, &on.on, "tools/call", "{\"name\":\"hold\"}"), BAY_OK);
        LINK_UNTIL(on.on.loop, on.service.held_count == 1);
        if (manner < 2) {
            /* the link, politely */
            mcp_link_close(on.on.link, owner_closed, &on.on);
            assert_int_equal(on.on.closes, 0);
            assert_int_equal(on.service.cancelled, 1);
            LINK_UNTIL(on.on.loop, on.on.closes == 1);
            assert_int_equal(out.err, BAY_ERR_CANCELLED);
        } else {
            /* the server */
            service_finish(&on.service);
            mcp_server_free(on.service.engine);
            service_open(&on.service, 0);
            LINK_UNTIL(on.on.loop, on.on.breaks == 1);
            assert_int_equal(on.on.err, BAY_ERR_CLOSED);
        }
        assert_int_equal(out.dones, 1);
        answer_fini(&out);
        close_all(&on);
    }
}

static void test_free_inside_callbacks(void **state)
{
    (void)state;
    for (int manner = 0; manner < 3; manner++) {
        fixture on;
        answer out;
        open_link(&on, MCP_LATEST_LEGACY, 0);
        on.on.frees_on_ready = manner == 0;
        assert_int_equal(ask(&out, &on.on, "tools/call", "{\"name\":\"progress\"}"), BAY_OK);
        out.frees_on_note = manner == 1;
        out.frees_on_done = manner == 2;
        LINK_UNTIL(on.on.loop, on.on.is_freed);
        assert_int_equal(out.dones, 1);
        assert_int_equal(out.notes, manner == 0 ? 0 : manner == 1 ? 1 : 3);
        answer_fini(&out);
        close_all(&on);
    }
    /* before the first turn */
    fixture on;
    open_link(&on, MCP_LATEST, 0);
    close_all(&on);
    assert_int_equal(on.on.readies + on.on.breaks, 0);
}

/* Calls of several callers share a link, and each keeps its own; what names nobody is the link's.
 */
static void test_callers(void **state)
{
    (void)state;
    for (int i = 0; i < MCP_REVISION_COUNT; i++) {
        const char *const names[] = {"alice", "bob", NULL, "alice"};
        fixture on;
        answer out[ARRAY_LEN(names)];
        on = (fixture){0};
        assert_int_equal(loop_new(&on.on.loop), BAY_OK);
        service_open(&on.service, 0);
        mcp_link_options options = owner_options(&on.on);
        options.client.oldest = options.client.newest = (mcp_revision_id)i;
        options.principal = person("me");
        assert_int_equal(mcp_link_open_local(on.on.loop, on.service.engine, &options, &on.on.link),
                         BAY_OK);
        for (size_t j = 0; j < ARRAY_LEN(names); j++) {
            assert_int_equal(
                ask_as(&out[j], &on.on, "tools/call", "{\"name\":\"hold\"}", person(names[j])),
                BAY_OK);
        }
        LINK_UNTIL(on.on.loop, on.service.held_count == ARRAY_LEN(names));
        for (size_t j = 0; j < ARRAY_LEN(names); j++) {
            const char *expected = names[j] != NULL ? names[j] : "me";
            assert_true(on.service.held[j]->principal == person(expected));
        }
        while (on.service.held_count > 0) {
            service_finish(&on.service);
        }
        LINK_UNTIL(on.on.loop, out[3].dones == 1);
        for (size_t j = 0; j < ARRAY_LEN(names); j++) {
            answer_fini(&out[j]);
        }
        close_all(&on);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call),           cmocka_unit_test(test_callers),
        cmocka_unit_test(test_back_pressure),  cmocka_unit_test(test_overrun),
        cmocka_unit_test(test_who_goes_first), cmocka_unit_test(test_free_inside_callbacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

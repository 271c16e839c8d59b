/* Every client link against the server transport it is made for, in every revision: what goes in at
 * one end comes out at the other, byte for byte. The stdio server is this program again. */
#include "mcp_transport/stdio.h"
#include "support/link_owner.h"
#include "support/server_rig.h"

typedef enum way { WAY_LOCAL, WAY_STDIO, WAY_HTTP, WAY_SSE_2024, WAY_FALL_BACK, WAY_COUNT } way;

static const char *const way_names[] = {"in process", "stdio", "Streamable HTTP", "HTTP+SSE",
                                        "fallen back to HTTP+SSE"};

typedef struct fixture {
    way way;
    mcp_revision_id revision;
    server_rig rig;
    http_client *http;
    owner on;
} fixture;

static const char *program;

/* ---- the server: the rig's service, and two tools more -----------------------------------------
 */

static void tell_cancels(test_service *self, mcp_request *request)
{
    char members[64];
    int len = snprintf(members, sizeof(members), "\"content\":[],\"structuredContent\":{\"n\":%d}",
                       self->cancelled);
    mcp_request_result_members(request, (bay_str){members, (size_t)len});
}

static void mirror(mcp_request *request)
{
    buf members;
    buf_init(&members, LARGE_BYTES * 2);
    buf_lit(&members, "\"content\":[],\"structuredContent\":");
    buf_str(&members, json_raw(json_get(request->message.params, STR("arguments"))));
    assert_int_equal(members.err, BAY_OK);
    mcp_request_result_members(request, buf_view(&members));
    buf_fini(&members);
}

static void on_request(void *user, mcp_request *request)
{
    if (str_eq(request->name, STR("cancels"))) {
        tell_cancels(user, request);
    } else if (str_eq(request->name, STR("mirror"))) {
        mirror(request);
    } else {
        service_request(user, request);
    }
}

static void open_service(test_service *self)
{
    static mcp_service table;
    table = test_service_table;
    table.request = on_request;
    mcp_server_options options = {.name = STR("test"),
                                  .version = STR("1"),
                                  .oldest = MCP_REV_2024_11_05,
                                  .newest = MCP_LATEST};
    *self = (test_service){0};
    assert_int_equal(mcp_server_new(&options, &table, self, &self->engine), BAY_OK);
}

static void on_served(void *user)
{
    loop_stop(user);
}

/* The child: serves its stdin until that ends. */
static int serve(void)
{
    loop *on_loop = NULL;
    test_service service;
    mcp_stdio *stdio = NULL;
    assert_int_equal(loop_new(&on_loop), BAY_OK);
    open_service(&service);
    fprintf(stderr, "serving\n");
    assert_int_equal(mcp_stdio_new(on_loop, service.engine, 0, 1, 100, on_served, on_loop, &stdio),
                     BAY_OK);
    loop_run(on_loop);
    mcp_stdio_free(stdio);
    while (service.held_count > 0) {
        service_finish(&service);
    }
    mcp_server_free(service.engine);
    loop_free(on_loop);
    return 0;
}

/* ---- the two ends ------------------------------------------------------------------------------
 */

static bay_err open_way(fixture *self, const mcp_link_options *options)
{
    bay_diag diag = {0};
    char url[64];
    const char *argv[] = {program, "serve", NULL};
    process_options child = {.argv = argv};
    const char *path = self->way == WAY_HTTP ? "mcp" : "sse";
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/%s", http_server_port(self->rig.http), path);
    switch (self->way) {
    case WAY_LOCAL:
        return mcp_link_open_local(self->on.loop, self->rig.service.engine, options,
                                   &self->on.link);
    case WAY_STDIO:
        return mcp_link_open_stdio(self->on.loop, &child, STR("child"), options, &self->on.link,
                                   &diag);
    default:
        return mcp_link_open_http(self->on.loop, self->http, str_of(url), NULL, 0,
                                  self->way == WAY_SSE_2024, options, &self->on.link, &diag);
    }
}

static void open_both(fixture *self, way by, mcp_revision_id revision)
{
    *self = (fixture){.way = by, .revision = revision};
    rig_open(&self->rig, NULL, 0);
    mcp_server_free(self->rig.service.engine);
    open_service(&self->rig.service);
    self->on.loop = self->rig.loop;
    http_client_options options = {.limits = http_client_default_limits};
    assert_int_equal(http_client_new(self->on.loop, &options, &self->http), BAY_OK);
    mcp_link_options link = owner_options(&self->on);
    link.client.oldest = link.client.newest = revision;
    link.term_ms = link.kill_ms = 5000;
    assert_int_equal(open_way(self, &link), BAY_OK);
}

/* Politely; then nothing of the client may be left at the server. */
static void close_both(fixture *self)
{
    mcp_link_close(self->on.link, owner_closed, &self->on);
    LINK_UNTIL(self->on.loop, self->on.closes == 1);
    LINK_UNTIL(self->on.loop, self->rig.service.sessions == 0);
    assert_int_equal(mcp_link_process_id(self->on.link), 0);
    owner_free(&self->on);
    http_client_free(self->http);
    assert_int_equal(self->on.breaks, 0);
    assert_int_equal(self->on.late, 0);
    rig_close(&self->rig);
}

/* A call of a tool, until it is done. */
static void call(fixture *self, answer *out, const char *tool, const char *arguments)
{
    buf params;
    buf_init(&params, LARGE_BYTES * 2);
    buf_printf(&params, "{\"name\":\"%s\",\"arguments\":", tool);
    buf_str(&params, str_of(arguments));
    buf_append(&params, "}", 2); /* with its NUL */
    assert_int_equal(ask(out, &self->on, "tools/call", params.at), BAY_OK);
    buf_fini(&params);
}

static void finish(fixture *self, answer *out, mcp_outcome_kind kind)
{
    LINK_UNTIL(self->on.loop, out->dones == 1);
    if (out->kind != kind) {
        fail_msg("%s, %.*s: %s: %s", way_names[self->way],
                 BAY_STR(mcp_revision_of(self->revision)->text), bay_err_text(out->err), out->text);
    }
}

/* ---- the cases ---------------------------------------------------------------------------------
 */

static void case_list(fixture *self)
{
    answer out;
    assert_int_equal(ask(&out, &self->on, "tools/list", NULL), BAY_OK);
    finish(self, &out, MCP_OUTCOME_RESULT);
    assert_true(answer_has(&out, "\"name\":\"echo\""));
    assert_string_equal(self->on.revision, mcp_revision_of(self->revision)->text.at);
    answer_fini(&out);
}

static void case_progress(fixture *self)
{
    answer out;
    call(self, &out, "progress", "{}");
    finish(self, &out, MCP_OUTCOME_RESULT);
    assert_int_equal(out.notes, 3);
    answer_fini(&out);
}

static void case_error(fixture *self)
{
    answer out;
    call(self, &out, "fail", "{}");
    finish(self, &out, MCP_OUTCOME_ERROR);
    assert_int_equal(out.code, RPC_INVALID_PARAMS);
    assert_true(answer_has(&out, "no such thing"));
    assert_true(answer_has(&out, "{\"why\":1}"));
    answer_fini(&out);
}

static void case_large(fixture *self)
{
    answer out;
    call(self, &out, "large", "{}");
    finish(self, &out, MCP_OUTCOME_RESULT);
    assert_in_range(out.result.len, LARGE_BYTES, LARGE_BYTES + 1000);
    assert_true(answer_has(&out, "xxxend\""));
    answer_fini(&out);
}

/* Binary as base64, in both directions, beside what careless readers change. */
static void case_binary(fixture *self)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    answer out;
    buf arguments;
    buf_init(&arguments, LARGE_BYTES);
    buf_lit(&arguments, "{\"n\":0.1000,\"big\":12345678901234567890123,\"e\":\"\\u0000\\u00e9\\/"
                        "\xF0\x9F\x8E\xB8\",\"a\" : [ ],\"blob\":\"");
    for (size_t i = 0; i < 1 << 20; i++) {
        buf_char(&arguments, digits[(i * 2654435761U >> 7) % 64]);
    }
    buf_append(&arguments, "==\"}", 5); /* with its NUL */
    call(self, &out, "mirror", arguments.at);
    finish(self, &out, MCP_OUTCOME_RESULT);
    assert_true(answer_has(&out, arguments.at));
    answer_fini(&out);
    buf_fini(&arguments);
}

static void case_cancel(fixture *self)
{
    answer out, seen;
    bool is_seen = false;
    call(self, &out, "hold", "{}");
    if (self->way != WAY_STDIO) {
        LINK_UNTIL(self->on.loop, self->rig.service.held_count == 1);
    }
    settle(self->on.loop);
    mcp_call_cancel(out.call, STR("not needed any more"));
    for (int i = 0; i < 1000 && !is_seen; i++) {
        call(self, &seen, "cancels", "{}");
        finish(self, &seen, MCP_OUTCOME_RESULT);
        is_seen = answer_has(&seen, "\"n\":1");
        answer_fini(&seen);
    }
    assert_true(is_seen);
    assert_int_equal(out.dones, 0);
    answer_fini(&out);
}

/* Many at once; each gets its own. */
static void case_crowd(fixture *self)
{
    enum { CROWD = 100 };
    static answer out[CROWD];
    char arguments[32];
    for (int i = 0; i < CROWD; i++) {
        snprintf(arguments, sizeof(arguments), "{\"me\":%d}", i);
        call(self, &out[i], "mirror", arguments);
    }
    for (int i = 0; i < CROWD; i++) {
        finish(self, &out[i], MCP_OUTCOME_RESULT);
        snprintf(arguments, sizeof(arguments), "{\"me\":%d}", i);
        assert_true(answer_has(&out[i], arguments));
        answer_fini(&out[i]);
    }
}

static void run_all(way by, mcp_revision_id revision)
{
    fixture self;
    open_both(&self, by, revision);
    case_list(&self);
    case_progress(&self);
    case_error(&self);
    case_large(&self);
    case_binary(&self);
    case_cancel(&self);
    case_crowd(&self);
    assert_int_equal(self.on.readies, 1);
    close_both(&self);
}

static void test_every_revision(void **state)
{
    way by = (way)(intptr_t)*state;
    bool is_old = by == WAY_SSE_2024 || by == WAY_FALL_BACK;
    int newest = is_old ? MCP_REV_2024_11_05 : MCP_LATEST;
    for (int i = MCP_REV_2024_11_05; i <= newest; i++) {
        run_all(by, (mcp_revision_id)i);
    }
}

/* Without knowing what the other end speaks. */
static void test_detection(void **state)
{
    (void)state;
    for (int by = 0; by < WAY_COUNT; by++) {
        fixture self;
        answer out;
        self = (fixture){.way = (way)by};
        rig_open(&self.rig, NULL, 0);
        mcp_server_free(self.rig.service.engine);
        open_service(&self.rig.service);
        self.on.loop = self.rig.loop;
        http_client_options options = {.limits = http_client_default_limits};
        assert_int_equal(http_client_new(self.on.loop, &options, &self.http), BAY_OK);
        mcp_link_options link = owner_options(&self.on);
        link.client.newest = MCP_LATEST;
        assert_int_equal(open_way(&self, &link), BAY_OK);
        call(&self, &out, "progress", "{}");
        finish(&self, &out, MCP_OUTCOME_RESULT);
        bool is_old = by == WAY_SSE_2024 || by == WAY_FALL_BACK;
        assert_string_equal(self.on.revision, is_old ? "2025-11-25" : "2026-07-28");
        answer_fini(&out);
        close_both(&self);
    }
}

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc > 1 && strcmp(argv[1], "serve") == 0) {
        return serve();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_every_revision, (void *)(intptr_t)WAY_LOCAL),
        cmocka_unit_test_prestate(test_every_revision, (void *)(intptr_t)WAY_STDIO),
        cmocka_unit_test_prestate(test_every_revision, (void *)(intptr_t)WAY_HTTP),
        cmocka_unit_test_prestate(test_every_revision, (void *)(intptr_t)WAY_SSE_2024),
        cmocka_unit_test_prestate(test_every_revision, (void *)(intptr_t)WAY_FALL_BACK),
        cmocka_unit_test(test_detection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

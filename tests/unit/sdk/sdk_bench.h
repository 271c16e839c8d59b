/* A bench for the SDK's server: a bay_server behind its engine, on a loop that is turned by hand,
 * and one client on a duplex connection in memory that speaks the revision it is told to. */
#ifndef TEST_SDK_BENCH_H
#define TEST_SDK_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sdk/server_parts.h"
#include "unit/mcp/server_bench.h"

typedef struct rig {
    bay_server *server;
    loop *loop;
    bench on; /* only its engine and its clock */
    wire way;
    const char *revision;
    const char *capabilities; /* members, of a modern client's requests */
    int next_id;
} rig;

static const char *const legacy_revisions[]
    __attribute__((unused)) = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};
static const char *const all_revisions[] __attribute__((unused)) = {
    "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"};

static inline bool rig_is_modern(const rig *self)
{
    return strcmp(self->revision, "2026-07-28") == 0;
}

/* Starts what was registered; false: out of memory, and everything is given back. */
static inline bool rig_try_start(rig *self, bay_server *server)
{
    *self = (rig){.server = server, .next_id = 10};
    mcp_server_options options = {.name = str_of(server->name),
                                  .title = str_of(server->title),
                                  .version = str_of(server->version),
                                  .instructions = str_of(server->instructions),
                                  .website = str_of(server->website),
                                  .icons = server->icons,
                                  .oldest = server->oldest,
                                  .newest = server->newest};
    bay_err err = sdk_server_render(server);
    if (err == BAY_OK) {
        err = loop_new(&self->loop);
    }
    if (err == BAY_OK) {
        server->loop = self->loop;
        err = mcp_server_new(&options, &sdk_server_service, server, &server->engine);
    }
    if (err != BAY_OK) {
        assert_int_equal(err, BAY_ERR_NOMEM);
        loop_free(self->loop);
        bay_server_free(server);
        return false;
    }
    bay_diag diag = {.code = BAY_OK};
    err = sdk_tasks_open(server, &diag);
    if (err != BAY_OK) {
        assert_int_equal(err, BAY_ERR_NOMEM);
        mcp_server_free(server->engine);
        loop_free(self->loop);
        bay_server_free(server);
        return false;
    }
    sdk_announcements_open(server, self->loop);
    self->on = (bench){.server = server->engine, .now_ms = 1000};
    return true;
}

static inline void rig_start(rig *self, bay_server *server)
{
    bay_diag diag = {0};
    if (bay_server_check(server, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    assert_true(rig_try_start(self, server));
}

static inline void rig_hang_up(rig *self)
{
    if (self->revision != NULL) {
        duplex_close(&self->way);
        wire_fini(&self->way);
        self->revision = NULL;
    }
}

#define RIG_UNTIL(self, condition)                                                                 \
    do {                                                                                           \
        for (int left = 100000; !(condition) && left > 0; left--) {                                \
            loop_turn((self)->loop, 20);                                                           \
        }                                                                                          \
        assert_true(condition);                                                                    \
    } while (0)

static inline void rig_stop(rig *self)
{
    rig_hang_up(self);
    sdk_tasks_stop(self->server);
    RIG_UNTIL(self, self->server->calls_under_way == 0);
    sdk_tasks_free(self->server);
    sdk_announcements_close(self->server);
    mcp_server_free(self->server->engine);
    self->server->engine = NULL;
    loop_free(self->loop);
    bay_server_free(self->server);
}

static inline void rig_say(rig *self, const char *text)
{
    duplex_say(&self->on, &self->way, text);
}

/* A new client of that revision; `capabilities` are its members. */
static inline void rig_client_with(rig *self, const char *revision, const char *capabilities)
{
    char text[1024];
    rig_hang_up(self);
    self->revision = revision;
    self->capabilities = capabilities;
    duplex_open(&self->on, &self->way);
    if (!rig_is_modern(self)) {
        (void)snprintf(text, sizeof(text),
                       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
                       "\"protocolVersion\":\"%s\",\"capabilities\":{%s},\"clientInfo\":{\"name\":"
                       "\"c\",\"version\":\"1\"}}}",
                       revision, capabilities);
        rig_say(self, text);
        rig_say(self, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    }
}

static inline void rig_client(rig *self, const char *revision)
{
    rig_client_with(self, revision, "");
}

/* Sends a request: `params` are members, `meta` more members of _meta, each "" or without commas
 * around. */
static inline void rig_send(rig *self, const char *method, const char *params, const char *meta)
{
    static char text[64 * 1024];
    char modern[1024];
    bool is_modern = rig_is_modern(self);
    (void)snprintf(modern, sizeof(modern),
                   "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
                   "\"io.modelcontextprotocol/clientCapabilities\":{%s}",
                   self->capabilities != NULL ? self->capabilities : "");
    int len = snprintf(
        text, sizeof(text),
        "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"%s\",\"params\":{\"_meta\":{%s%s%s}%s%s}}",
        ++self->next_id, method, is_modern ? modern : "", is_modern && meta[0] != '\0' ? "," : "",
        meta, params[0] != '\0' ? "," : "", params);
    assert_true(len > 0 && (size_t)len < sizeof(text));
    rig_say(self, text);
}

/* … and what came last, which must be its answer. */
static inline const char *rig_ask_meta(rig *self, const char *method, const char *params,
                                       const char *meta)
{
    char id[32];
    rig_send(self, method, params, meta);
    (void)snprintf(id, sizeof(id), "\"id\":%d,", self->next_id);
    assert_has(last_event(&self->way), id);
    return last_event(&self->way);
}

static inline const char *rig_ask(rig *self, const char *method, const char *params)
{
    return rig_ask_meta(self, method, params, "");
}

/* A tool without arguments. */
static inline const char *rig_call(rig *self, const char *name)
{
    char params[256];
    (void)snprintf(params, sizeof(params), "\"name\":\"%s\"", name);
    return rig_ask(self, "tools/call", params);
}

static inline void reply_ok(bay_call *call, void *user)
{
    (void)user;
    bay_call_reply(call, "ok");
}

#endif

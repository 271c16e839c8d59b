/* Sessions as an earlier process wrote them down: whatever stands there and whatever events go
 * along, an engine takes it up or refuses it; and what it took up, it writes down so that the next
 * engine writes the same. The first line is the session, each further one an event: a byte for its
 * stream, one for its number and whether it is the last, and its text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "mcp/persistence.h"
#include "support/people.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { EVENTS_MAX = 32, ROOM = 8 << 20 };

#define ID "0-x"

static void on_request(void *user, mcp_request *request)
{
    (void)user;
    (void)request;
    abort(); /* nobody sends any */
}

static bay_err keeper_name(void *user, const mcp_revision *revision,
                           const auth_principal *principal, buf *out)
{
    (void)user;
    (void)revision;
    (void)principal;
    buf_lit(out, ID);
    return out->err;
}

static bool keeper_changed(void *user, mcp_session *session, mcp_keep how)
{
    (void)user;
    (void)session;
    (void)how;
    return false;
}

static void keeper_logged(void *user, mcp_session *session, uint32_t stream, uint32_t seq,
                          bool is_last, bay_str text)
{
    (void)user;
    (void)session;
    (void)stream;
    (void)seq;
    (void)is_last;
    CHECK(text.len < ROOM);
}

/* The engine ends: the last moment to see what it holds. */
static void keeper_ended(void *user, mcp_session *session, bool is_for_good)
{
    buf *written = user;
    (void)is_for_good;
    buf_clear(written);
    mcp_session_write(session, written);
}

static void keeper_lost(void *user, bay_str id, bay_str method, buf *out)
{
    (void)user;
    (void)method;
    buf_lit(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_str(out, id);
    buf_lit(out, ",\"error\":{\"code\":-32603,\"message\":\"lost\"}}");
}

/* True when it was taken up; then `written` holds what became of it. */
static bool take_up(bay_str from, const mcp_kept_event *events, size_t count, buf *written)
{
    static const mcp_service service = {.request = on_request};
    static const mcp_persistence keeper = {.name = keeper_name,
                                           .changed = keeper_changed,
                                           .logged = keeper_logged,
                                           .ended = keeper_ended,
                                           .lost = keeper_lost};
    mcp_server *server = NULL;
    mcp_server_options options = {.name = STR("f"),
                                  .version = STR("1"),
                                  .oldest = MCP_REV_2024_11_05,
                                  .newest = MCP_LATEST,
                                  .max_sessions = 2,
                                  .max_requests = 8,
                                  .max_subscriptions = 4,
                                  .log_events = 16,
                                  .log_bytes = 4096,
                                  .persistence = &keeper,
                                  .persistence_user = written};
    CHECK(mcp_server_new(&options, &service, NULL, &server) == BAY_OK);
    buf_clear(written);
    bay_err err =
        mcp_session_restore(server, STR(ID), person("me"), from, events, count, NULL, 1000);
    CHECK(err == BAY_OK || err == BAY_ERR_SYNTAX || err == BAY_ERR_BUSY || err == BAY_ERR_LIMIT);
    CHECK((err == BAY_OK) == mcp_server_holds(server, STR(ID)));
    if (err == BAY_OK) {
        (void)mcp_server_tick(server, 2000);
    }
    mcp_server_free(server);
    return err == BAY_OK && written->len > 0;
}

/* But for the number of the newest stream: each engine leaves out some that might have been. */
static bool is_same(bay_str a, bay_str b)
{
    static const char *const members[] = {"v",           "revision",      "client", "level",
                                          "initialized", "subscriptions", "streams"};
    arena memory;
    json_doc in_a;
    json_doc in_b;
    bool is_equal = true;
    arena_init(&memory, 4 * (size_t)ROOM);
    CHECK(json_parse(&in_a, a, NULL, &memory, NULL) == BAY_OK);
    CHECK(json_parse(&in_b, b, NULL, &memory, NULL) == BAY_OK);
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        bay_str key = str_of(members[i]);
        is_equal = is_equal && str_eq(json_raw(json_get(json_root(&in_a), key)),
                                      json_raw(json_get(json_root(&in_b), key)));
    }
    arena_fini(&memory);
    return is_equal;
}

static size_t read_events(bay_str rest, mcp_kept_event *out)
{
    size_t count = 0;
    while (rest.len >= 2 && count < EVENTS_MAX) {
        size_t end = str_find(str_from(rest, 2), '\n') + 2;
        out[count++] = (mcp_kept_event){.stream = (unsigned char)rest.at[0] % 8,
                                        .seq = (unsigned char)rest.at[1] % 64,
                                        .is_last = (unsigned char)rest.at[1] >= 128,
                                        .text = {rest.at + 2, end - 2}};
        rest = end < rest.len ? str_from(rest, end + 1) : (bay_str){NULL, 0};
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mcp_kept_event events[EVENTS_MAX];
    bay_str all = {(const char *)data, size};
    size_t end = str_find(all, '\n');
    size_t count = end < size ? read_events(str_from(all, end + 1), events) : 0;
    buf first;
    buf second;
    buf third;
    buf_init(&first, ROOM);
    buf_init(&second, ROOM);
    buf_init(&third, ROOM);
    if (take_up(str_head(all, end), events, count, &first)) {
        CHECK(take_up(buf_view(&first), NULL, 0, &second)); /* streams without events are over */
        CHECK(take_up(buf_view(&second), NULL, 0, &third));
        CHECK(is_same(buf_view(&second), buf_view(&third)));
    }
    buf_fini(&first);
    buf_fini(&second);
    buf_fini(&third);
    return 0;
}

/* Calls whose session is not held: they wait while it is looked for, and the search, the exchange
 * and the router may end in any order. */
#include "mcp/persistence.h"
#include "support/server_rig.h"

enum { MOST_SEARCHES = 8 };

#define WRITTEN                                                                                    \
    "{\"v\":1,\"revision\":\"2025-11-25\",\"client\":{\"clientInfo\":null,\"capabilities\":{}}}"
#define LIST "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/list\"}"

static struct {
    bay_err at_once;
    int asked;
    struct {
        mcp_server *engine;
        void (*done)(void *user, bay_err err);
        void *user;
        char id[64];
    } at[MOST_SEARCHES];
    int count;
} searches;

static bay_err session_lookup(void *user, mcp_server *engine, bay_str id,
                              const auth_principal *principal,
                              void (*done)(void *done_user, bay_err err), void *done_user)
{
    (void)user;
    assert_null(principal);
    searches.asked++;
    if (searches.at_once != BAY_OK) {
        return searches.at_once;
    }
    assert_true(searches.count < MOST_SEARCHES);
    searches.at[searches.count].engine = engine;
    searches.at[searches.count].done = done;
    searches.at[searches.count].user = done_user;
    (void)snprintf(searches.at[searches.count].id, 64, "%.*s", BAY_STR(id));
    searches.count++;
    return BAY_OK;
}

/* The oldest search ends. */
static void end_search(const server_rig *self, bay_err err)
{
    assert_true(searches.count > 0);
    if (err == BAY_OK) {
        assert_int_equal(mcp_session_restore(searches.at[0].engine, str_of(searches.at[0].id), NULL,
                                             STR(WRITTEN), NULL, 0, NULL, loop_now_ms(self->loop)),
                         BAY_OK);
    }
    searches.at[0].done(searches.at[0].user, err);
    memmove(searches.at, searches.at + 1, sizeof(searches.at[0]) * (size_t)--searches.count);
}

static void open_rig(server_rig *self)
{
    rig_options options = {.front.is_loopback = true, .router.session_lookup = session_lookup};
    memset(&searches, 0, sizeof(searches));
    rig_open(self, &options, 0);
}

static void say(server_rig *self, wire_client *client, const char *verb, const char *more,
                const char *body)
{
    char fields[512];
    snprintf(fields, sizeof(fields), "%sMcp-Session-Id: 0-abc\r\n%s",
             body == NULL ? "Accept: text/event-stream\r\n" : WIRE_JSON, more);
    wire_request(client, self->loop, http_server_port(self->http), verb, "/mcp", fields, body);
}

#define PUMP_UNTIL(self, client, condition) TURN_UNTIL((self)->loop, wire_pump(client), condition)

static void what_is_not_kept_is_not_found(void **state)
{
    server_rig rig;
    wire_client client;
    (void)state;
    open_rig(&rig);
    searches.at_once = BAY_ERR_NOT_FOUND;
    say(&rig, &client, "POST", "", LIST);
    PUMP_UNTIL(&rig, &client, client.is_complete);
    assert_int_equal(client.status, 404);
    wire_close(&client);
    searches.at_once = BAY_OK;
    say(&rig, &client, "POST", "", LIST);
    PUMP_UNTIL(&rig, &client, searches.count == 1);
    end_search(&rig, BAY_ERR_NOT_FOUND);
    PUMP_UNTIL(&rig, &client, client.is_complete);
    assert_int_equal(client.status, 404);
    assert_true(wire_body_has(&client, "No such session"));
    wire_close(&client);
    rig_close(&rig);
}

static void nothing_is_looked_for_without_one_id(void **state)
{
    server_rig rig;
    wire_client client;
    (void)state;
    open_rig(&rig);
    say(&rig, &client, "POST", "Mcp-Session-Id: 0-abd\r\n", LIST);
    PUMP_UNTIL(&rig, &client, client.is_complete);
    assert_int_equal(client.status, 400);
    wire_close(&client);
    wire_exchange(&client, rig.loop, http_server_port(rig.http), "POST", "/mcp", WIRE_JSON, LIST);
    assert_int_equal(client.status, 400);
    wire_close(&client);
    assert_int_equal(searches.asked, 0);
    rig_close(&rig);
}

static void trouble_is_not_the_sessions_end(void **state)
{
    static const bay_err errors[] = {BAY_ERR_BUSY, BAY_ERR_NOMEM};
    server_rig rig;
    wire_client client;
    (void)state;
    open_rig(&rig);
    for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
        searches.at_once = errors[i];
        say(&rig, &client, "POST", "", LIST);
        PUMP_UNTIL(&rig, &client, client.is_complete);
        assert_int_equal(client.status, 503);
        assert_true(wire_head_has(&client, "Retry-After: 1\r\n"));
        wire_close(&client);
    }
    searches.at_once = BAY_OK;
    say(&rig, &client, "POST", "", LIST);
    PUMP_UNTIL(&rig, &client, searches.count == 1);
    end_search(&rig, BAY_ERR_IO);
    PUMP_UNTIL(&rig, &client, client.is_complete);
    assert_int_equal(client.status, 503);
    wire_close(&client);
    rig_close(&rig);
}

static void a_session_that_was_found_goes_on(void **state)
{
    static const struct {
        const char *verb;
        const char *body;
        int status;
    } cases[] = {{"POST", LIST, 200}, {"GET", NULL, 200}, {"DELETE", NULL, 204}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        server_rig rig;
        wire_client first;
        wire_client second;
        open_rig(&rig);
        say(&rig, &first, "POST", "", LIST);
        say(&rig, &second, cases[i].verb, "", cases[i].body);
        TURN_UNTIL(rig.loop, (void)0, searches.count == 2);
        end_search(&rig, BAY_OK);
        PUMP_UNTIL(&rig, &first, first.is_complete);
        assert_int_equal(first.status, 200);
        assert_true(wire_body_has(&first, "\"id\":\"a\",\"result\":{\"tools\""));
        end_search(&rig, BAY_OK); /* it is there already */
        PUMP_UNTIL(&rig, &second, second.status != 0);
        assert_int_equal(second.status, cases[i].status);
        wire_close(&first);
        wire_close(&second);
        assert_int_equal(searches.asked, 2);
        rig_close(&rig);
    }
}

static void whoever_leaves_is_not_waited_for(void **state)
{
    server_rig rig;
    wire_client client;
    (void)state;
    open_rig(&rig);
    say(&rig, &client, "POST", "", LIST);
    PUMP_UNTIL(&rig, &client, searches.count == 1);
    wire_close(&client);
    TURN_UNTIL(rig.loop, (void)0, http_server_connections(rig.http) == 0);
    end_search(&rig, BAY_OK);
    assert_int_equal(mcp_server_session_count(rig.service.engine), 1);
    rig_close(&rig);
}

static void the_router_may_go_first(void **state)
{
    server_rig rig;
    wire_client client;
    (void)state;
    open_rig(&rig);
    say(&rig, &client, "POST", "", LIST);
    PUMP_UNTIL(&rig, &client, searches.count == 1);
    http_server_free(rig.http);
    rig.http = NULL;
    front_free(rig.front);
    rig.front = NULL;
    mcp_http_router_free(rig.router);
    rig.router = NULL;
    end_search(&rig, BAY_ERR_NOT_FOUND);
    wire_close(&client);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_kept_is_not_found),
        cmocka_unit_test(nothing_is_looked_for_without_one_id),
        cmocka_unit_test(trouble_is_not_the_sessions_end),
        cmocka_unit_test(a_session_that_was_found_goes_on),
        cmocka_unit_test(whoever_leaves_is_not_waited_for),
        cmocka_unit_test(the_router_may_go_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

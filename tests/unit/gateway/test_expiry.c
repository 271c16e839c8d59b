/* Callers whose credentials end, or grow, while they are connected. */
#include <openssl/evp.h> /* not in a build without it: tokens are signed */

#include "support/token_callers.h"

#define SERVERS "'mcpServers':{" RIG_SERVER("a", "stdio", "good", "") "}"
#define TIMES "'timeouts':{'drain':'50ms','terminate':'50ms','kill':'50ms'},"

enum { TEXT = 4096 };

static void open_rig(gateway_rig *self, const char *more)
{
    char settings[TEXT];
    callers_begin();
    (void)snprintf(settings, sizeof(settings),
                   "{" TIMES CALLERS_AUTH "%s'agents':{'desk':{'tools':['a.*']}}," SERVERS "}",
                   callers_keys, more);
    rig_open(self, settings, 2);
    wait_until(atomic_load(&self->started) == 1);
}

static void end_rig(gateway_rig *self)
{
    rig_close(self);
    callers_end();
}

static void go(const gateway_rig *self)
{
    FILE *file = fopen(self->go, "w");
    assert_non_null(file);
    fclose(file);
}

/* ---- the end --------------------------------------------------------------------------------- */

static _Atomic(uint64_t) pretended_ms;
static atomic_int looked;

static void look(void *argument)
{
    worker_end_expired(argument, pretended_ms);
    atomic_fetch_add(&looked, 1);
}

/* Each loop looks once at what has expired, as if it were so much later. */
static void look_after(const gateway_rig *self, uint64_t later_ms)
{
    gateway *owner = self->gateway;
    pretended_ms = loop_time_ms() + later_ms;
    looked = 0;
    for (uint32_t i = 0; i < owner->worker_count; i++) {
        assert_int_equal(loop_post(owner->workers[i].loop, look, &owner->workers[i]), BAY_OK);
    }
    wait_until(atomic_load(&looked) == (int)owner->worker_count);
}

static void wait_for_end(client *self)
{
    while (client_find(self, "\r\n0\r\n\r\n") == NULL && client_read(self)) {
    }
    assert_false(self->is_over); /* in order */
}

static void authorize(const char *user, const char *more, char out[TEXT])
{
    (void)snprintf(out, TEXT, "Authorization: Bearer %s\r\n", token_of(user, more));
}

static void post_to_agent(client *one, const gateway_rig *to, const char *user, const char *method,
                          const char *params)
{
    char fields[TEXT], bearer[TEXT - 32], body[TEXT];
    (void)snprintf(bearer, sizeof(bearer), "Authorization: Bearer %s\r\n", token_of(user, ""));
    (void)snprintf(fields, sizeof(fields), "A2A-Version: 1.0\r\n%s", bearer);
    (void)snprintf(body, sizeof(body), "{'jsonrpc':'2.0','id':1,'method':'%s','params':%s}", method,
                   params);
    client_open(one, to);
    client_post(one, "/a2a/desk", fields, body);
}

/* Tokens are good for 10 min and a minute of skew, streams for a minute more; the task goes on, and can be taken up again. */
static void streams_of_tasks_end_with_their_callers(void **state)
{
    (void)state;
    gateway_rig self;
    client ann, bob;
    char task[100], params[200];
    open_rig(&self, "");
    post_to_agent(&ann, &self, "ann", "SendStreamingMessage",
                  "{'message':{'messageId':'m1','role':'ROLE_USER','parts':[{'text':'a.wait'}]}}");
    client_wait_for(&ann, "TASK_STATE_WORKING");
    look_after(&self, 600000);
    const char *at = client_find(&ann, "\"id\":\"");
    at = at != NULL ? at : client_find(&ann, "\"taskId\":\"");
    assert_non_null(at);
    at = strchr(strchr(at, ':') + 1, '"') + 1;
    (void)snprintf(task, sizeof(task), "%.*s", (int)strcspn(at, "\""), at);
    assert_null(client_find(&ann, "\r\n0\r\n\r\n"));
    look_after(&self, 730000);
    wait_for_end(&ann);
    assert_null(client_find(&ann, "COMPLETED"));
    client_close(&ann);
    (void)snprintf(params, sizeof(params), "{'id':'%s'}", task);
    post_to_agent(&bob, &self, "bob", "SubscribeToTask", params); /* not his */
    (void)client_reply(&bob);
    assert_null(client_find(&bob, "WORKING"));
    client_close(&bob);
    post_to_agent(&ann, &self, "ann", "SubscribeToTask", params);
    client_wait_for(&ann, "TASK_STATE_WORKING");
    go(&self);
    client_wait_for(&ann, "TASK_STATE_COMPLETED");
    client_close(&ann);
    end_rig(&self);
}

static void streams_of_2024_end_with_their_callers(void **state)
{
    (void)state;
    gateway_rig self;
    client one;
    char bearer[TEXT], get[2 * TEXT];
    open_rig(&self, "");
    authorize("ann", "", bearer);
    client_open(&one, &self);
    (void)snprintf(get, sizeof(get),
                   "GET /sse HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n%s\r\n",
                   bearer);
    assert_true(client_send(&one, get));
    client_wait_for(&one, "event: endpoint");
    look_after(&self, 600000);
    look_after(&self, 730000);
    wait_for_end(&one);
    client_close(&one);
    end_rig(&self);
}

/* ---- more rights ----------------------------------------------------------------------------- */

static void begin_session(const gateway_rig *to, const char *bearer, char fields[TEXT])
{
    client one;
    client_open(&one, to);
    client_post(&one, "/mcp", bearer,
                "{'jsonrpc':'2.0','id':1,'method':'initialize','params':{'protocolVersion':"
                "'2025-11-25','capabilities':{},'clientInfo':{'name':'c','version':'1'}}}");
    assert_int_equal(client_reply(&one), 200);
    const char *session = client_find(&one, "Mcp-Session-Id: ");
    assert_non_null(session);
    (void)snprintf(fields, TEXT, "MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: %.*s\r\n",
                   (int)strcspn(session + 16, "\r"), session + 16);
    client_close(&one);
}

static void list_tools(const gateway_rig *to, const char *fields, const char *bearer,
                       const char *part, bool is_there)
{
    client one;
    char both[2 * TEXT];
    (void)snprintf(both, sizeof(both), "%s%s", fields, bearer);
    client_open(&one, to);
    client_post(&one, "/mcp", both, "{'jsonrpc':'2.0','id':2,'method':'tools/list'}");
    assert_int_equal(client_reply(&one), 200);
    assert_int_equal(client_find(&one, part) != NULL, is_there);
    client_close(&one);
}

static void a_step_up_changes_the_lists(void **state)
{
    (void)state;
    gateway_rig self;
    client stream, last;
    char narrow[TEXT], wide[TEXT], fields[TEXT], get[3 * TEXT];
    open_rig(&self, "'policy':{'default':'deny','locked':'hide','rules':[{'allow':['a.*'],"
                    "'who':{'scopes':['w']}}]},");
    authorize("ann", "", narrow);
    authorize("ann", ",\"scope\":\"w\"", wide);
    begin_session(&self, narrow, fields);
    client_open(&stream, &self);
    (void)snprintf(get, sizeof(get),
                   "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n%s%s\r\n",
                   fields, narrow);
    assert_true(client_send(&stream, get));
    assert_int_equal(client_status(&stream), 200);
    list_tools(&self, fields, narrow, "a.wait", false);
    list_tools(&self, fields, narrow, "a.wait", false);
    assert_null(client_find(&stream, "list_changed"));
    list_tools(&self, fields, wide, "a.wait", true);
    client_wait_for(&stream, "notifications/tools/list_changed");
    list_tools(&self, fields, wide, "a.wait", true);
    /* and no more than that */
    client_open(&last, &self);
    (void)snprintf(get, sizeof(get), "DELETE /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n%s%s\r\n", fields,
                   wide);
    assert_true(client_send(&last, get));
    assert_int_equal(client_status(&last) / 100, 2);
    while (client_find(&stream, "\r\n0\r\n\r\n") == NULL && client_read(&stream)) {
    }
    int count = 0;
    for (const char *at = stream.got.at; (at = strstr(at, "tools/list_changed")) != NULL; at++) {
        count++;
    }
    assert_int_equal(count, 1);
    client_close(&last);
    client_close(&stream);
    end_rig(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_of_tasks_end_with_their_callers),
        cmocka_unit_test(streams_of_2024_end_with_their_callers),
        cmocka_unit_test(a_step_up_changes_the_lists),
    };
    loop *warm = NULL; /* what libuv opens once is open before anything is counted */
    if (loop_new(&warm) != BAY_OK) {
        return 1;
    }
    loop_free(warm);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Servers that break the rules, behind a real gateway: whatever they do, the caller gets exactly
 * one answer that says what happened, and nobody else notices. */
#include "support/gateway_rig.h"

#include <sys/wait.h>

/* Calls a well-behaved server all the time, on one connection; every answer must be good. */
typedef struct neighbour {
    const gateway_rig *rig;
    net_thread thread;
    atomic_bool is_over;
    atomic_int good;
    atomic_int bad;
} neighbour;

static void live_next_door(void *argument)
{
    neighbour *self = argument;
    client one;
    client_open(&one, self->rig);
    while (!atomic_load(&self->is_over)) {
        client_forget(&one);
        client_call(&one, "well.echo");
        bool is_good = client_reply(&one) == 200 && client_find(&one, "\"good\"") != NULL;
        atomic_fetch_add(is_good ? &self->good : &self->bad, 1);
        poll(NULL, 0, 1);
    }
    client_close(&one);
}

typedef struct stage {
    gateway_rig rig;
    neighbour neighbour;
    pid_t pid; /* of the server reached by URL */
    int port;
} stage;

#define TIMES                                                                                      \
    "'timeouts':{'settle':'3s','call':'300ms','list':'300ms','probe':'300ms','drain':'200ms',"     \
    "'terminate':'200ms','kill':'200ms'}"
#define BACK_OFF ",'restart':{'attempts':0,'minDelay':'10ms','maxDelay':'20ms'}"

static void open_stage(stage *self, const char *servers)
{
    char text[4000];
    *self = (stage){0};
    self->pid = rig_start_http(&self->port);
    (void)snprintf(text, sizeof(text),
                   "{" TIMES ",'limits':{'messageBytes':'1M'},'mcpServers':{" RIG_SERVER(
                       "well", "stdio", "good",
                       "") ",'url':{'url':'http://127.0.0.1:%d/mcp'" BACK_OFF "},%s}}",
                   self->port, servers);
    rig_open(&self->rig, text, 2);
    wait_until(atomic_load(&self->rig.started) == 1);
    self->neighbour.rig = &self->rig;
    assert_int_equal(net_thread_start(&self->neighbour.thread, live_next_door, &self->neighbour),
                     BAY_OK);
    wait_until(atomic_load(&self->neighbour.good) > 0);
}

static void close_stage(stage *self)
{
    int before = atomic_load(&self->neighbour.good);
    wait_until(atomic_load(&self->neighbour.good) > before + 1);
    atomic_store(&self->neighbour.is_over, true);
    net_thread_join(&self->neighbour.thread);
    assert_int_equal(atomic_load(&self->neighbour.bad), 0);
    rig_close(&self->rig);
    rig_end_http(self->pid);
}

/* One call, one answer: the connection is watched for a second one while another call passes. */
static void expect(stage *self, const char *tool, const char *part, const char *other)
{
    client one;
    client_open(&one, &self->rig);
    client_call(&one, tool);
    (void)client_reply(&one);
    if (client_find(&one, part) == NULL || (other != NULL && client_find(&one, other) == NULL)) {
        print_error("%s: wanted %s and %s\ncame: %.*s\n", tool, part, other != NULL ? other : "",
                    (int)(one.got.len < 2000 ? one.got.len : 2000), one.got.at);
    }
    assert_non_null(client_find(&one, part));
    assert_true(other == NULL || client_find(&one, other) != NULL);
    client_forget(&one);
    client_call(&one, "well.echo");
    assert_int_equal(client_reply(&one), 200);
    assert_non_null(client_find(&one, "\"good\""));
    assert_int_equal(memcmp(one.got.at, "HTTP/1.1 200", 12), 0); /* nothing stood before it */
    client_close(&one);
}

#define MAY_HAVE_RUN "\"patchbay/mayHaveRun\":true"

static void answers_that_are_none(void **state)
{
    (void)state;
    stage self;
    open_stage(&self, RIG_SERVER("bad", "stdio", "good", BACK_OFF));
    expect(&self, "bad.exit", "status 3: going down", MAY_HAVE_RUN);
    expect(&self, "bad.echo", "\"good\"", NULL); /* it is back */
    expect(&self, "bad.kill", "killed by signal 9", MAY_HAVE_RUN);
    expect(&self, "bad.half_line", "exited", MAY_HAVE_RUN);
    expect(&self, "bad.shut", "server_unavailable", MAY_HAVE_RUN);
    expect(&self, "bad.hang", "\"patchbay/reason\":\"timeout\"", MAY_HAVE_RUN);
    expect(&self, "bad.echo", "\"good\"", NULL);
    expect(&self, "bad.long", "more than 1048576 bytes", "result_too_large");
    expect(&self, "bad.echo", "\"good\"", NULL);
    /* what cannot be read as an answer is none: the call runs out of time */
    expect(&self, "bad.types", "\"isError\":true", MAY_HAVE_RUN);
    expect(&self, "bad.null", "\"isError\":true", MAY_HAVE_RUN);
    expect(&self, "bad.error", "\"isError\":true", MAY_HAVE_RUN);
    expect(&self, "bad.wrong_version", "\"isError\":true", MAY_HAVE_RUN);
    expect(&self, "bad.echo", "\"good\"", NULL);
    close_stage(&self);
}

static void noise_around_an_answer_is_passed_over(void **state)
{
    (void)state;
    stage self;
    open_stage(&self, RIG_SERVER("bad", "stdio", "noise", BACK_OFF));
    static const char *const tools[] = {"bad.garbage",  "bad.binary", "bad.unknown", "bad.twice",
                                        "bad.progress", "bad.ask",    "bad.echo"};
    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
            expect(&self, tools[i], "\"good\"", NULL);
        }
    }
    assert_int_equal(rig_log_count("bad: stopped -> starting"), 1); /* one process for all */
    assert_int_equal(rig_log_count("bad: backoff -> starting"), 0);
    close_stage(&self);
}

static void servers_that_never_get_ready(void **state)
{
    (void)state;
    stage self;
    open_stage(&self, RIG_SERVER("exit", "stdio", "exit", BACK_OFF) "," RIG_SERVER(
                          "silent", "stdio", "silent",
                          BACK_OFF) "," RIG_SERVER("deaf", "stdio", "deaf",
                                                   BACK_OFF) ",'none':{'command':'/no/such'}"
                                                             ",'nobody':{'url':"
                                                             "'http://127.0.0.1:1/mcp'}");
    expect(&self, "exit.echo", "cannot start", "server_unavailable");
    expect(&self, "none.echo", "/no/such", "server_unavailable");
    expect(&self, "nobody.echo", "\"isError\":true", "server_unavailable");
    expect(&self, "silent.echo", "\"isError\":true", "\"patchbay/mayHaveRun\":false");
    expect(&self, "deaf.echo", "\"isError\":true", "\"patchbay/mayHaveRun\":false");
    client one;
    client_open(&one, &self.rig);
    client_list(&one, "/mcp");
    assert_int_equal(client_reply(&one), 200);
    assert_non_null(client_find(&one, "well.echo")); /* the others' lists are whole */
    client_close(&one);
    close_stage(&self);
}

static void lists_that_break_the_rules(void **state)
{
    (void)state;
    stage self;
    open_stage(&self,
               RIG_SERVER("endless", "stdio", "endless", "") "," RIG_SERVER(
                   "still", "stdio", "still",
                   "") "," RIG_SERVER("types", "stdio", "types",
                                      "") "," RIG_SERVER("slow", "stdio", "slow_list",
                                                         "") "," RIG_SERVER("no_tools", "stdio",
                                                                            "no_tools", ""));
    wait_until(rig_log_count("endless: its list of tools does not end") >= 1);
    wait_until(rig_log_count("still: its list of tools does not end") >= 1);
    wait_until(rig_log_count("types: tools/list could not be read") >= 1);
    wait_until(rig_log_count("slow: tools/list could not be read") >= 1);
    expect(&self, "endless.echo", "\"good\"", NULL);
    expect(&self, "still.echo", "\"good\"", NULL);
    expect(&self, "types.echo", "no tool list that could be read", "server_unavailable");
    expect(&self, "slow.echo", "no tool list that could be read", "server_unavailable");
    expect(&self, "no_tools.echo", "Unknown tool: no_tools.echo", NULL);
    close_stage(&self);
}

static void servers_at_a_url(void **state)
{
    (void)state;
    stage self;
    open_stage(&self, RIG_SERVER("other", "stdio", "good", ""));
    expect(&self, "url.echo", "\"good\"", NULL);
    expect(&self, "url.event", "\"good\"", NULL);
    expect(&self, "url.nothing", "\"isError\":true", MAY_HAVE_RUN);
    expect(&self, "url.partial", "\"isError\":true", MAY_HAVE_RUN);
    expect(&self, "url.cut", "\"isError\":true", MAY_HAVE_RUN);
    expect(&self, "url.status", "500", MAY_HAVE_RUN);
    expect(&self, "url.html", "\"isError\":true", MAY_HAVE_RUN);
    expect(&self, "url.garbage", "\"isError\":true", MAY_HAVE_RUN);
    expect(&self, "url.types", "\"isError\":true", MAY_HAVE_RUN);
    expect(&self, "url.hang", "\"patchbay/reason\":\"timeout\"", MAY_HAVE_RUN);
    expect(&self, "url.missing", "404", NULL);
    expect(&self, "url.echo", "\"good\"", NULL);
    close_stage(&self);
}

static void a_server_that_dies_again_and_again(void **state)
{
    (void)state;
    enum { CALLS = 200, CLIENTS = 8 };
    stage self;
    open_stage(&self, RIG_SERVER("bad", "stdio", "good", BACK_OFF));
    client clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        client_open(&clients[i], &self.rig);
    }
    int good = 0;
    for (int i = 0; i < CALLS; i++) {
        for (int k = 0; k < CLIENTS; k++) {
            client_forget(&clients[k]);
            client_call(&clients[k], k == 0 && i % 10 == 5 ? "bad.kill" : "bad.echo");
        }
        for (int k = 0; k < CLIENTS; k++) {
            assert_int_equal(client_reply(&clients[k]), 200);
            bool is_good = client_find(&clients[k], "\"good\"") != NULL;
            assert_true(is_good || client_find(&clients[k], "\"isError\":true") != NULL);
            good += is_good;
        }
    }
    for (int i = 0; i < CLIENTS; i++) {
        client_close(&clients[i]);
    }
    assert_true(good > CALLS * CLIENTS / 2);
    close_stage(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_that_are_none),
        cmocka_unit_test(noise_around_an_answer_is_passed_over),
        cmocka_unit_test(servers_that_never_get_ready),
        cmocka_unit_test(lists_that_break_the_rules),
        cmocka_unit_test(servers_at_a_url),
        cmocka_unit_test(a_server_that_dies_again_and_again),
    };
    loop *warm = NULL; /* what libuv opens once is open before anything is counted */
    if (loop_new(&warm) != BAY_OK) {
        return 1;
    }
    loop_free(warm);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

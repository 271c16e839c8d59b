/* A server's sessions with each allocation failing in turn, from the moment its main link is up:
 * every call ends once, nothing is kept, nothing hangs. */
#include "asking_client.h"

#include "asking_server.h"
#include "support/failing_memory.h"

enum { CALLS = 4, TURNS = 400 };

static void open_stage(stage *self)
{
    char program[300];
    char text[1000];
    *self = (stage){0};
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
    assert_true(len > 0);
    program[len] = '\0';
    (void)snprintf(text, sizeof(text),
                   "{'timeouts':{'probe':'2s'},'mcpServers':{'s':{'command':'%s','args':['serve'],"
                   "'protocol':'legacy','processes':2,'timeout':'3s','restart':{'minDelay':'5ms',"
                   "'maxDelay':'5ms','attempts':0}}}}",
                   program);
    char *quoted = testing_quotes(text);
    self->config = testing_config(quoted);
    mem_free(quoted);
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    upstream_options options = {.loop = self->loop,
                                .config = self->config,
                                .server = &self->config->servers[0],
                                .events = &fake_events};
    assert_int_equal(upstream_new(&options, &self->server), BAY_OK);
    upstream_start(self->server);
    turn_until(self->loop, upstream_state_of(self->server) == UPSTREAM_READY);
}

static bool all_done(const client *calls)
{
    bool is_done = true;
    for (int i = 0; i < CALLS; i++) {
        is_done = is_done && calls[i].probe.dones > 0;
    }
    return is_done;
}

static void play(size_t fails_at)
{
    static client calls[CALLS];
    stage self;
    open_stage(&self);
    client_prepare(&calls[0], "ask", FORM, "a");
    client_prepare(&calls[1], "roots", ROOTS, "b");
    client_prepare(&calls[2], "ask", SAMPLING, "c"); /* waits for room */
    client_prepare(&calls[3], "say", 0, "d");
    failing_memory.allowed = fails_at;
    for (int i = 0; i < CALLS; i++) {
        probe_send(&calls[i].probe, self.server);
    }
    for (int i = 0; i < TURNS && !all_done(calls); i++) {
        loop_turn(self.loop, 10);
    }
    upstream_identity_gone(self.server, STR("b"));
    loop_turn(self.loop, 0);
    failing_memory.allowed = SIZE_MAX;
    upstream_free(self.server);
    loop_free(self.loop);
    config_free(self.config);
    for (int i = 0; i < CALLS; i++) {
        assert_int_equal(calls[i].probe.dones, 1);
        probe_fini(&calls[i].probe);
    }
    assert_int_equal(count_children(), 0);
}

/* Every so many, so that the whole takes seconds: another offset each time would be another test.
 */
static void each_allocation_fails_in_turn(void **state)
{
    (void)state;
    size_t at = 0;
    bool has_failed = true;
    while (has_failed) {
        (void)failing_memory_start_single(SIZE_MAX);
        play(at);
        has_failed = failing_memory.has_failed;
        failing_memory_check();
        failing_memory_stop();
        at += at < 40 ? 1 : 7;
    }
    assert_true(at > 40);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "serve") == 0) {
        return asking_server_run();
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation_fails_in_turn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

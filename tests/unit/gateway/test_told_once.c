/* What the log and a person are told of servers, with several loops: each change once, a reason
 * that repeats itself not again, and the lists when they are whole. */
#include "support/gateway_rig.h"

#define HURRY "'restart':{'minDelay':'10ms','maxDelay':'20ms','attempts':0}"

/* Nobody listens there. */
static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static void a_url_that_is_down_is_one_line(void **state)
{
    (void)state;
    gateway_rig self;
    char settings[400];
    snprintf(
        settings, sizeof(settings),
        "{'timeouts':{'drain':'50ms'},'mcpServers':{'a':{'url':'http://127.0.0.1:%d/mcp'," HURRY
        "}}}",
        free_port());
    rig_open(&self, settings, 3);
    wait_until(atomic_load(&self.started) == 1);
    /* each of three loops has tried more than once */
    wait_until(rig_log_count("upstream: a: starting -> backoff") >= 12);
    assert_int_equal(rig_log_count("warning upstream: a: starting -> backoff"), 1);
    assert_int_equal(rig_log_count("info upstream: a: "), 0);
    assert_int_equal(rig_log_count("a: the link is broken") > 0, 1); /* it names its server */
    rig_close(&self);
}

static void a_program_that_cannot_start_is_one_line_and_its_last_words(void **state)
{
    (void)state;
    gateway_rig self;
    rig_open(&self,
             "{'timeouts':{'drain':'50ms'},'mcpServers':{'a':{'command':'/bin/sh','args':['-c',"
             "'echo first >&2; echo no database >&2; exit 3']," HURRY "}}}",
             3);
    wait_until(atomic_load(&self.started) == 1);
    wait_until(rig_log_count("upstream: a: starting -> backoff") >= 5);
    assert_int_equal(rig_log_count("warning upstream: a: starting -> backoff: exited with status "
                                   "3: no database"),
                     1);
    assert_int_equal(rig_log_count("warning upstream: a:"), 1);
    rig_close(&self);
}

/* The one server is silent until it may go: a person hears how many are awaited, and when the lists
 * are whole. */
static void lists_that_are_late_are_told_of(void **state)
{
    (void)state;
    gateway_rig self;
    char settings[1000];
    char go[80];
    snprintf(go, sizeof(go), "/tmp/rig.%d.tally.go", (int)getpid());
    snprintf(settings, sizeof(settings),
             "{'timeouts':{'settle':'20ms','drain':'50ms'},'mcpServers':{'a':{'command':'/bin/sh',"
             "'args':['-c','while [ ! -e %s ]; do sleep 0.02; done; exec " BAY_TEST_BINARY_DIR
             "/bad_server stdio good']}}}",
             go);
    rig_open(&self, settings, 2);
    wait_until(atomic_load(&self.started) == 1);
    assert_int_equal(atomic_load(&self.starting), 1);
    assert_int_equal(atomic_load(&self.listed), 0);
    FILE *file = fopen(self.go, "w");
    assert_non_null(file);
    fclose(file);
    wait_until(atomic_load(&self.listed) == 1);
    rig_close(&self);
    assert_int_equal(atomic_load(&self.started), 1);
    assert_int_equal(atomic_load(&self.listed), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_that_is_down_is_one_line),
        cmocka_unit_test(a_program_that_cannot_start_is_one_line_and_its_last_words),
        cmocka_unit_test(lists_that_are_late_are_told_of),
    };
    loop *warm = NULL; /* what libuv opens once is open before anything is counted */
    if (loop_new(&warm) != BAY_OK) {
        return 1;
    }
    loop_free(warm);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What the log and a person are told of servers, with several loops: each change once, a reason
 * that repeats itself not again, and the lists when they are whole. */
#include "support/gateway_rig.h"

#define HURRY "'restart':{'minDelay':'10ms','maxDelay':'20ms','attempts':0}"

static int bound_socket(int *out_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *out_port = ntohs(address.sin_port);
    return fd;
}

/* Nobody listens there. */
static int free_port(void)
{
    int port;
    close(bound_socket(&port));
    return port;
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

/* Each loop reads the lists of a server, and reads them again. */
static void what_is_wrong_with_a_list_is_one_line(void **state)
{
    static const struct {
        const char *mode, *line;
    } rows[] = {
        {"circle", "catalog: a: its list of tools does not end"},
        {"odd", "catalog: a: an item of tools was left out: \"\": it has no name"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        gateway_rig self;
        char settings[400];
        char warning[200];
        snprintf(settings, sizeof(settings),
                 "{'timeouts':{'drain':'50ms'},'mcpServers':{'a':{'command':'" BAY_TEST_BINARY_DIR
                 "/list_server','args':['%s'],'refresh':'1s'}}}",
                 rows[i].mode);
        snprintf(warning, sizeof(warning), "warning %s", rows[i].line);
        rig_open(&self, settings, 3);
        wait_until(rig_log_count(rows[i].line) >= 6);
        assert_int_equal(rig_log_count(warning), 1);
        rig_close(&self);
    }
}

static void a_url_that_says_nothing_is_one_line(void **state)
{
    (void)state;
    gateway_rig self;
    char settings[400];
    int port;
    int fd = bound_socket(&port);
    assert_int_equal(listen(fd, 16), 0);
    snprintf(settings, sizeof(settings),
             "{'timeouts':{'settle':'20ms','drain':'50ms'},'mcpServers':{'a':{'url':"
             "'http://127.0.0.1:%d/mcp'}}}",
             port);
    rig_open(&self, settings, 3);
    wait_until(rig_log_count("gateway: server \"a\" has not answered within 20 ms") == 3);
    assert_int_equal(rig_log_count("warning gateway: server \"a\" has not answered"), 1);
    rig_close(&self);
    close(fd);
}

/* A program may have to be fetched before it starts. A client that lists once must not get half. */
static void lists_wait_for_programs_that_are_starting(void **state)
{
    (void)state;
    gateway_rig self;
    client one;
    char fifo[64];
    char settings[600];
    (void)snprintf(fifo, sizeof(fifo), "/tmp/patchbay-starting-%d", (int)getpid());
    assert_int_equal(mkfifo(fifo, 0600), 0);
    (void)snprintf(
        settings, sizeof(settings),
        "{'timeouts':{'drain':'1s','terminate':'200ms'},'mcpServers':{"
        "'slow':{'command':'/bin/sh','args':['-c','read go < %s; exec @/bad_server stdio "
        "good']}," RIG_SERVER("fast", "stdio", "good", "") "}}",
        fifo);
    rig_open(&self, settings, 2);
    wait_until(rig_log_count("info gateway: the first lists wait for slow, at most 20 s") == 1);
    assert_int_equal(atomic_load(&self.started), 0);
    client_open(&one, &self);
    client_list(&one, "/mcp");
    int fd = open(fifo, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "go\n", 3), 3);
    close(fd);
    assert_int_equal(client_reply(&one), 200);
    assert_non_null(client_find(&one, "slow.echo"));
    assert_non_null(client_find(&one, "fast.echo"));
    client_close(&one);
    assert_int_equal(rig_log_count("has not answered within"), 0);
    rig_close(&self);
    assert_int_equal(unlink(fifo), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_that_is_down_is_one_line),
        cmocka_unit_test(lists_wait_for_programs_that_are_starting),
        cmocka_unit_test(a_program_that_cannot_start_is_one_line_and_its_last_words),
        cmocka_unit_test(lists_that_are_late_are_told_of),
        cmocka_unit_test(what_is_wrong_with_a_list_is_one_line),
        cmocka_unit_test(a_url_that_says_nothing_is_one_line),
    };
    loop *warm = NULL; /* what libuv opens once is open before anything is counted */
    if (loop_new(&warm) != BAY_OK) {
        return 1;
    }
    loop_free(warm);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

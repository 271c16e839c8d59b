/* What a call costs beside instructions, once everything is warm: how often the bytes of a request
 * and of its answer are copied and indexed, and what is allocated for it. The linker puts counters
 * around memcpy, memmove and json_parse (cmake/tests.cmake), the allocator's hooks count the rest;
 * what the product is made of does not change. Only threads of the program count, not the clients.
 *
 * A copy is told by what is in it: requests are full of 'q', answers of 'a'. What the kernel copies
 * in reading and writing is not in it. */
#include "support/gateway_rig.h"

#include <patchbay/agent.h>
#include <patchbay/server.h>

#include "base/mem.h"
#include "net/thread.h"
#include "json/json.h"

enum {
    PART = 256,
    REQUEST = 200 * 1000, /* a body's filling */
    ANSWER = 300 * 1000,
    WARM_CALLS = 20,
    LARGE_CALLS = 8,
    SMALL_CALLS = 64,
    CROSSING_TRIES = 64,
    WORKERS = 2,
};

/* ---- the counters ---------------------------------------------------------------------------- */

static _Thread_local bool is_client; /* or a test's own */

static struct {
    atomic_bool is_counting;
    atomic_size_t request_bytes; /* copied */
    atomic_size_t answer_bytes;
    atomic_size_t request_parses;
    atomic_size_t answer_parses;
    atomic_size_t allocations;
    atomic_uint threads; /* that copied or parsed, by bits */
} counts;

static bool is_counted(void)
{
    return !is_client && atomic_load(&counts.is_counting);
}

static void note_thread(void)
{
    static atomic_uint serial;
    static _Thread_local unsigned own;
    if (own == 0) {
        own = 1U << (atomic_fetch_add(&serial, 1) % 32);
    }
    atomic_fetch_or(&counts.threads, own);
}

/* What is short is about fields, not bodies. */
static void note_copy(const char *at, size_t len)
{
    size_t of_request = 0;
    size_t of_answer = 0;
    if (len < PART || !is_counted()) {
        return;
    }
    for (size_t i = 0; i < len; i++) {
        of_request += at[i] == 'q';
        of_answer += at[i] == 'a';
    }
    if (of_request + of_answer > len / 2) {
        atomic_fetch_add(&counts.request_bytes, of_request);
        atomic_fetch_add(&counts.answer_bytes, of_answer);
        note_thread();
    }
}

void *__real_memcpy(void *to, const void *from, size_t len);
void *__real_memmove(void *to, const void *from, size_t len);
bay_err __real_json_parse(json_doc *out, bay_str text, const json_limits *limits, arena *memory,
                          bay_diag *diag);
void *__wrap_memcpy(void *to, const void *from, size_t len);
void *__wrap_memmove(void *to, const void *from, size_t len);
bay_err __wrap_json_parse(json_doc *out, bay_str text, const json_limits *limits, arena *memory,
                          bay_diag *diag);

void *__wrap_memcpy(void *to, const void *from, size_t len)
{
    note_copy(from, len);
    return __real_memcpy(to, from, len);
}

void *__wrap_memmove(void *to, const void *from, size_t len)
{
    note_copy(from, len);
    return __real_memmove(to, from, len);
}

bay_err __wrap_json_parse(json_doc *out, bay_str text, const json_limits *limits, arena *memory,
                          bay_diag *diag)
{
    if (text.len >= REQUEST && is_counted()) {
        bool is_request = memchr(text.at, 'q', text.len / 2) != NULL;
        atomic_fetch_add(is_request ? &counts.request_parses : &counts.answer_parses, 1);
    }
    return __real_json_parse(out, text, limits, memory, diag);
}

static void note_allocation(void)
{
    if (is_counted()) {
        atomic_fetch_add(&counts.allocations, 1);
    }
}

static void *counted_alloc(size_t bytes, void *user)
{
    (void)user;
    note_allocation();
    return malloc(bytes);
}

static void *counted_resize(void *old, size_t bytes, void *user)
{
    (void)user;
    note_allocation();
    return realloc(old, bytes);
}

static void counted_release(void *old, void *user)
{
    (void)user;
    free(old);
}

/* ---- a client that copies nothing ------------------------------------------------------------ */

typedef struct call_text {
    const char *fields;
    const char *before; /* of the body, around the filling */
    const char *after;
    size_t filling;
    const char *expected; /* stands in the answer */
} call_text;

static int connect_to(uint16_t port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

static void send_all(int fd, const char *at, size_t len)
{
    for (size_t sent = 0; sent < len;) {
        ssize_t done = send(fd, at + sent, len - sent, MSG_NOSIGNAL);
        assert_true(done > 0);
        sent += (size_t)done;
    }
}

/* One request and its whole answer, which has a Content-Length. */
static void call(int fd, const call_text *what)
{
    static char bytes[REQUEST + 4096];
    static char got[4 * ANSWER];
    size_t body = strlen(what->before) + what->filling + strlen(what->after);
    size_t len = (size_t)snprintf(bytes, sizeof(bytes), "POST %s\r\nContent-Length: %zu\r\n\r\n%s",
                                  what->fields, body, what->before);
    memset(bytes + len, 'q', what->filling);
    len += what->filling;
    len += (size_t)snprintf(bytes + len, sizeof(bytes) - len, "%s", what->after);
    send_all(fd, bytes, len);
    size_t have = 0;
    size_t wanted = SIZE_MAX;
    while (have < wanted) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&wait, 1, RIG_GIVE_UP_MS), 1);
        assert_true(have < sizeof(got) - 1);
        ssize_t more = recv(fd, got + have, sizeof(got) - 1 - have, 0);
        assert_true(more > 0);
        have += (size_t)more;
        got[have] = '\0';
        const char *end = strstr(got, "\r\n\r\n");
        const char *field = strstr(got, "Content-Length: ");
        if (wanted == SIZE_MAX && end != NULL) {
            assert_true(field != NULL && field < end);
            wanted = (size_t)(end + 4 - got) + strtoul(field + 16, NULL, 10);
        }
    }
    if (strstr(got, what->expected) == NULL) {
        fail_msg("%.600s", got);
    }
}

/* ---- what is counted ------------------------------------------------------------------------- */

/* Of one call. */
typedef struct cost {
    double request_copies;
    double answer_copies;
    double request_parses;
    double answer_parses;
    double allocations;
    int threads; /* that copied of it */
} cost;

static cost measure(int fd, const call_text *what)
{
    int calls = what->filling == REQUEST ? LARGE_CALLS : SMALL_CALLS;
    for (int i = 0; i < WARM_CALLS; i++) {
        call(fd, what);
    }
    atomic_size_t *all[] = {&counts.request_bytes, &counts.answer_bytes, &counts.request_parses,
                            &counts.answer_parses, &counts.allocations};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        atomic_store(all[i], 0);
    }
    atomic_store(&counts.threads, 0);
    atomic_store(&counts.is_counting, true);
    for (int i = 0; i < calls; i++) {
        call(fd, what);
    }
    atomic_store(&counts.is_counting, false);
    return (cost){.request_copies = (double)counts.request_bytes / calls / REQUEST,
                  .answer_copies = (double)counts.answer_bytes / calls / ANSWER,
                  .request_parses = (double)counts.request_parses / calls,
                  .answer_parses = (double)counts.answer_parses / calls,
                  .allocations = (double)counts.allocations / calls,
                  .threads = __builtin_popcount(counts.threads)};
}

/* In half a copy there is room for what a full socket or pipe leaves, and for the part of a body
 * that came with its head. */
static void check_large(const cost *got, const cost *most)
{
    print_message("request: %.2f copies, %.2f parses; answer: %.2f copies, %.2f parses\n",
                  got->request_copies, got->request_parses, got->answer_copies, got->answer_parses);
    assert_true(got->request_copies >= 1 && got->answer_copies >= 1); /* it counts at all */
    assert_true(got->request_copies < most->request_copies + 0.5);
    assert_true(got->answer_copies < most->answer_copies + 0.5);
    assert_true(got->request_parses == most->request_parses);
    assert_true(got->answer_parses == most->answer_parses);
}

/* Tables that grow, and what happens once a second, are a fraction of an allocation. */
static void check_small(const cost *got, double most)
{
    print_message("%.2f allocations\n", got->allocations);
    assert_true(got->allocations < most + 0.5);
}

#define MODERN(tool)                                                                               \
    "/mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"                       \
    "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"          \
    "Mcp-Method: tools/call\r\nMcp-Name: " tool
#define CALL(tool)                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"" tool         \
    "\",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                    \
    "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"c\",\"version\":\"1\"},"                   \
    "\"io.modelcontextprotocol/clientCapabilities\":{}},\"arguments\":{\"text\":\""

static const call_text own_large = {MODERN("large"), CALL("large"), "\"}}}", REQUEST, "aaaa"};
static const call_text own_small = {MODERN("small"), CALL("small"), "\"}}}", 100, "cloudy"};
static const call_text far_large = {MODERN("far.large"), CALL("far.large"), "\"}}}", REQUEST,
                                    "aaaa"};
static const call_text far_small = {MODERN("far.small"), CALL("far.small"), "\"}}}", 100, "cloudy"};

/* ---- the programs ---------------------------------------------------------------------------- */

static char filling[ANSWER + 1];

static void large(bay_call *call, void *user)
{
    (void)user;
    bay_call_reply(call, filling);
}

static void small(bay_call *call, void *user)
{
    (void)user;
    bay_call_reply(call, "17 degrees and cloudy");
}

static bay_server *server_make(void)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}}}";
    bay_server *self = bay_server_new("counted", "1");
    bay_server_tool_schema(self, "large", "Much.", schema, large, NULL);
    bay_server_tool_schema(self, "small", "Little.", schema, small, NULL);
    return self;
}

static void run_server(void *argument)
{
    bay_diag diag = {0};
    assert_int_equal(bay_server_run(argument, &diag), BAY_OK);
}

static void a_server_of_the_library(void **state)
{
    (void)state;
    bay_diag diag = {0};
    net_thread thread;
    bay_server *server = server_make();
    assert_int_equal(bay_server_listen(server, "127.0.0.1:0", &diag), BAY_OK);
    assert_int_equal(net_thread_start(&thread, run_server, server), BAY_OK);
    int fd = connect_to(bay_server_port(server));
    cost got = measure(fd, &own_large);
    /* read, kept for the handler; quoted, made a result, put into the answer */
    check_large(&got, &(cost){2, 3, 1, 0, .threads = 1});
    got = measure(fd, &own_small);
    check_small(&got, 0);
    close(fd);
    bay_server_stop(server);
    net_thread_join(&thread);
    bay_server_free(server);
}

static void handle(bay_task *task, const bay_message *message, void *user)
{
    (void)user;
    bay_str text = bay_message_text(message);
    bay_task_complete(task, text.len > REQUEST / 2 ? filling : "17 degrees and cloudy");
}

static void run_agent(void *argument)
{
    bay_diag diag = {0};
    assert_int_equal(bay_agent_run(argument, &diag), BAY_OK);
}

#define SEND                                                                                       \
    "/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nA2A-Version: 1.0",         \
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{\"message\":{"       \
        "\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"",                      \
        "\"}]}}}"

static void an_agent_of_the_library(void **state)
{
    (void)state;
    static const call_text send_large = {SEND, REQUEST, "aaaa"};
    static const call_text send_small = {SEND, 100, "cloudy"};
    bay_diag diag = {0};
    net_thread thread;
    bay_agent *agent = bay_agent_new("counted", "1", "Counts.");
    bay_agent_skill(agent, "count", "Count", "Counts.", handle, NULL);
    bay_agent_on_loop(agent);
    assert_int_equal(bay_agent_listen(agent, "127.0.0.1:0", &diag), BAY_OK);
    assert_int_equal(net_thread_start(&thread, run_agent, agent), BAY_OK);
    int fd = connect_to(bay_agent_port(agent));
    cost got = measure(fd, &send_large);
    check_large(&got, &(cost){6, 6, 1, 0, .threads = 1});
    got = measure(fd, &send_small);
    /* the task with its message, its turn, its status */
    check_small(&got, 3);
    close(fd);
    bay_agent_stop(agent);
    net_thread_join(&thread);
    bay_agent_free(agent);
}

/* ---- through the gateway --------------------------------------------------------------------- */

#define PIPE "{'mcpServers':{'far':{'command':'@/test_contract_counts','args':['--stdio']}}}"

/* This program as a server behind HTTP. */
static pid_t start_upstream(unsigned *out_port)
{
    int ends[2];
    char text[200] = "";
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(ends[1], 1);
        (void)dup2(ends[1], 2);
        execl("/proc/self/exe", "test_counts", "--http", "127.0.0.1:0", NULL);
        _exit(127);
    }
    close(ends[1]);
    for (size_t len = 0; strstr(text, "127.0.0.1:") == NULL || strchr(text, '\n') == NULL;) {
        ssize_t got = read(ends[0], text + len, sizeof(text) - 1 - len);
        assert_true(got > 0);
        len += (size_t)got;
    }
    *out_port = (unsigned)strtoul(strstr(text, "127.0.0.1:") + 10, NULL, 10);
    return pid;
}

static void check_gateway(const char *settings, const cost *most)
{
    gateway_rig rig;
    rig_open(&rig, settings, 1);
    int fd = connect_to(gateway_port(rig.gateway));
    cost got = measure(fd, &far_large);
    check_large(&got, most);
    got = measure(fd, &far_small);
    check_small(&got, most->allocations);
    close(fd);
    rig_close(&rig);
}

static void the_gateway_to_http(void **state)
{
    (void)state;
    char settings[300];
    unsigned port;
    pid_t far = start_upstream(&port);
    snprintf(settings, sizeof(settings), "{'mcpServers':{'far':{'url':'http://127.0.0.1:%u/mcp'}}}",
             port);
    check_gateway(settings, &(cost){5, 2, 1, 1, .allocations = 2});
    rig_end_http(far);
}

static void the_gateway_to_a_pipe(void **state)
{
    (void)state;
    check_gateway(PIPE, &(cost){5, 2, 1, 1, .allocations = 0});
}

/* Which loop accepts a connection is the kernel's choice. */
static void the_gateway_to_another_loops_pipe(void **state)
{
    (void)state;
    gateway_rig rig;
    bool has_crossed = false;
    rig_open(&rig, PIPE, WORKERS);
    for (int i = 0; i < CROSSING_TRIES && !has_crossed; i++) {
        int fd = connect_to(gateway_port(rig.gateway));
        cost got = measure(fd, &far_large);
        has_crossed = got.threads > 1;
        if (has_crossed) {
            check_large(&got, &(cost){6, 3, 1, 1, .threads = 2});
            got = measure(fd, &far_small);
            check_small(&got, 3);
        }
        close(fd);
    }
    assert_true(has_crossed);
    rig_close(&rig);
}

int main(int argc, char **argv)
{
    memset(filling, 'a', ANSWER);
    if (argc > 1) {
        return bay_server_main(server_make(), argc, argv);
    }
    is_client = true;
    const mem_hooks hooks = {counted_alloc, counted_resize, counted_release, NULL};
    mem_set_hooks(&hooks);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_of_the_library),
        cmocka_unit_test(an_agent_of_the_library),
        cmocka_unit_test(the_gateway_to_http),
        cmocka_unit_test(the_gateway_to_a_pipe),
        cmocka_unit_test(the_gateway_to_another_loops_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

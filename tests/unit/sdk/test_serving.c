/* Serving in pieces, as programs with a life of their own do it: addresses, pipes, a stop from
 * anywhere, a loop inside another one, and ends of all kinds. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/thread.h"
#include "sdk/serving.h"
#include "support/failing_memory.h"
#include "unit/sdk/sdk_bench.h"

enum { GIVE_UP_MS = 20000 };

#define CALL_LINE                                                                                  \
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"t\"," META "}" \
    "}"                                                                                            \
    "}"

static bay_server *server_of(bay_handler_fn handler, void *user)
{
    bay_server *server = bay_server_new("s", "1");
    bay_server_tool_schema(server, "t", NULL, NULL, handler, user);
    return server;
}

static uint16_t listen_anywhere(bay_server *server)
{
    bay_diag diag = {0};
    if (bay_server_listen(server, "127.0.0.1:0", &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    return bay_server_port(server);
}

static int connect_to(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* One call, on a connection that is closed after it. */
static void post(int fd, const char *host)
{
    char text[2048];
    int len = snprintf(text, sizeof(text),
                       "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
                       "Accept: application/json, text/event-stream\r\nConnection: close\r\n"
                       "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                       "Mcp-Name: t\r\nContent-Length: %zu\r\n\r\n%s",
                       host, strlen(CALL_LINE), CALL_LINE);
    assert_true(len > 0 && (size_t)len < sizeof(text));
    assert_int_equal(send(fd, text, (size_t)len, MSG_NOSIGNAL), len);
}

/* Reads until the end, or until `part` has come. */
static void read_all(int fd, const char *part, char *text, size_t size)
{
    size_t len = 0;
    text[0] = '\0';
    while (part == NULL || strstr(text, part) == NULL) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&wait, 1, GIVE_UP_MS), 1);
        assert_true(len + 1 < size);
        ssize_t got = read(fd, text + len, size - 1 - len);
        if (got <= 0) {
            return;
        }
        len += (size_t)got;
        text[len] = '\0';
    }
}

typedef struct runner {
    net_thread thread;
    bay_server *server;
    bay_err err;
} runner;

static void run(void *argument)
{
    runner *self = argument;
    self->err = bay_server_run(self->server, NULL);
}

static void start(runner *self, bay_server *server)
{
    *self = (runner){.server = server, .err = BAY_ERR_INTERNAL};
    assert_int_equal(net_thread_start(&self->thread, run, self), BAY_OK);
}

static void finish(runner *self)
{
    net_thread_join(&self->thread);
    assert_int_equal(self->err, BAY_OK);
}

static void ask(uint16_t port, const char *host, const char *wanted)
{
    char text[8192];
    int fd = connect_to(port);
    assert_true(fd >= 0);
    post(fd, host);
    read_all(fd, NULL, text, sizeof(text));
    assert_has(text, wanted);
    close(fd);
}

/* ---- what cannot be */

static void a_server_that_is_nowhere_does_not_run(void **state)
{
    (void)state;
    bay_diag diag = {0};
    bay_server *server = server_of(reply_ok, NULL);
    assert_int_equal(bay_server_run(server, &diag), BAY_ERR_STATE);
    assert_has(diag.text, "nothing to serve on");
    assert_int_equal(bay_server_dispatch(server), BAY_ERR_STATE);
    assert_int_equal(bay_server_fd(server), -1);
    assert_int_equal(bay_server_wait_ms(server), -1);
    assert_int_equal(bay_server_port(server), 0);
    bay_server_free(server);
    assert_int_equal(bay_server_run(NULL, NULL), BAY_ERR_NOMEM);
    assert_int_equal(bay_server_listen(NULL, "127.0.0.1:0", NULL), BAY_ERR_NOMEM);
    assert_int_equal(bay_server_pipe(NULL, 0, 1, NULL), BAY_ERR_NOMEM);
    assert_int_equal(bay_server_dispatch(NULL), BAY_ERR_STATE);
    assert_int_equal(bay_server_fd(NULL), -1);
    assert_int_equal(bay_server_port(NULL), 0);
    bay_server_stop(NULL);
}

static void what_cannot_be_had_is_told(void **state)
{
    (void)state;
    static const char *const bad[] = {"",        "127.0.0.1",  "127.0.0.1:http", "127.0.0.1:99999",
                                      "[::1:80", "256.1.1.1:0"};
    bay_server *server = server_of(reply_ok, NULL);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        bay_diag diag = {0};
        assert_int_not_equal(bay_server_listen(server, bad[i], &diag), BAY_OK);
        assert_true(strlen(diag.text) > 10);
        assert_null(server->loop); /* nothing is left behind */
    }
    assert_int_not_equal(bay_server_listen(server, NULL, NULL), BAY_OK);
    bay_diag diag = {0};
    assert_int_equal(bay_server_pipe(server, -1, 1, &diag), BAY_ERR_INVALID);
    assert_int_equal(bay_server_pipe(server, 1000, 1001, &diag), BAY_ERR_IO);
    assert_null(server->loop);
    bay_server_free(server);
}

static void a_bad_registration_is_told_before_anything_is_opened(void **state)
{
    (void)state;
    bay_diag diag = {0};
    bay_server *server = server_of(NULL, NULL);
    assert_int_equal(bay_server_listen(server, "127.0.0.1:0", &diag), BAY_ERR_INVALID);
    assert_has(diag.text, "the handler is NULL");
    assert_int_equal(bay_server_run(server, &diag), BAY_ERR_INVALID);
    bay_server_free(server);
}

/* ---- HTTP */

/* Stops the server twice when it is told to: on the loop's thread, so that both come before its end. */
static void reply_and_stop(bay_call *call, void *user)
{
    bay_server *_Atomic *stops = user;
    bay_server *server = atomic_load(stops);
    if (server != NULL) {
        bay_server_stop(server);
        bay_server_stop(server);
    }
    bay_call_reply(call, "ok");
}

static void addresses_are_served_until_a_stop(void **state)
{
    (void)state;
    static bay_server *_Atomic stops;
    bay_server *server = server_of(reply_and_stop, &stops);
    runner on;
    uint16_t port = listen_anywhere(server);
    assert_int_not_equal(port, 0);
    assert_int_equal(listen_anywhere(server), port); /* of the first */
    start(&on, server);
    ask(port, "localhost", "\"text\":\"ok\"");
    atomic_store(&stops, server);
    ask(port, "127.0.0.1", "\"text\":\"ok\"");
    finish(&on);
    atomic_store(&stops, NULL);
    assert_int_equal(bay_server_port(server), 0);
    assert_int_equal(connect_to(port), -1);
    assert_int_equal(bay_server_dispatch(server), BAY_ERR_EOF);
    /* … and again: neither stop is left over. */
    port = listen_anywhere(server);
    start(&on, server);
    ask(port, "localhost", "\"text\":\"ok\"");
    bay_server_stop(server);
    finish(&on);
    bay_server_free(server);
}

/* mcp 2026-07-28 basic/transports/streamable-http, Security Warning */
static void who_may_name_the_server_depends_on_the_address(void **state)
{
    (void)state;
    bay_server *server = server_of(reply_ok, NULL);
    runner on;
    uint16_t guarded = listen_anywhere(server);
    start(&on, server);
    ask(guarded, "rebound.example", "HTTP/1.1 403 ");
    ask(guarded, "localhost", "\"text\":\"ok\"");
    bay_server_stop(server);
    finish(&on);
    bay_server_open_on_purpose(server);
    assert_int_equal(bay_server_listen(server, "0.0.0.0:0", NULL), BAY_OK);
    uint16_t open = bay_server_port(server);
    start(&on, server);
    ask(open, "somewhere.example", "\"text\":\"ok\"");
    bay_server_stop(server);
    finish(&on);
    bay_server_free(server);
}

static bool know_nobody(bay_peer *peer, void *user)
{
    (void)peer;
    (void)user;
    return false;
}

static bool know_anybody(bay_peer *peer, void *user)
{
    (void)user;
    bay_peer_principal(peer, "somebody");
    return true;
}

static void strangers_do_not_reach_a_server_that_asks_for_nothing(void **state)
{
    (void)state;
    static const char *const addresses[] = {"0.0.0.0:0", "[::]:0", ":0", "*:0", "192.0.2.1:0"};
    bay_diag diag = {.code = BAY_OK};
    bay_server *server = server_of(reply_ok, NULL);
    for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
        assert_int_equal(bay_server_listen(server, addresses[i], &diag), BAY_ERR_DENIED);
        assert_non_null(strstr(diag.text, "bay_server_identify"));
        assert_non_null(strstr(diag.text, "bay_server_open_on_purpose"));
        assert_int_equal(bay_server_port(server), 0);
        assert_int_equal(bay_server_fd(server), -1);
    }
    listen_anywhere(server); /* where nobody else comes, nothing has changed */
    assert_int_equal(bay_server_listen(server, "0.0.0.0:0", &diag), BAY_ERR_DENIED);
    assert_int_equal(bay_server_listen(server, "localhost:0", &diag), BAY_OK);
    assert_int_equal(bay_server_listen(server, "[::ffff:127.0.0.1]:0", &diag), BAY_OK);
    bay_server_free(server);
}

static void a_server_that_knows_its_callers_listens_anywhere(void **state)
{
    (void)state;
    bay_server *server = server_of(reply_ok, NULL);
    runner on;
    bay_server_identify(server, know_anybody, NULL);
    assert_int_equal(bay_server_listen(server, "0.0.0.0:0", NULL), BAY_OK);
    uint16_t port = bay_server_port(server);
    start(&on, server);
    ask(port, "somewhere.example", "\"text\":\"ok\"");
    bay_server_stop(server);
    finish(&on);
    /* who is not asked any more has not become anybody */
    assert_int_equal(bay_server_listen(server, "0.0.0.0:0", NULL), BAY_OK);
    port = bay_server_port(server);
    bay_server_identify(server, NULL, NULL);
    start(&on, server);
    ask(port, "somewhere.example", "HTTP/1.1 401 ");
    bay_server_stop(server);
    finish(&on);
    /* and whoever is asked from now on is asked */
    port = listen_anywhere(server);
    bay_server_identify(server, know_nobody, NULL);
    start(&on, server);
    ask(port, "localhost", "HTTP/1.1 401 ");
    bay_server_stop(server);
    finish(&on);
    bay_server_free(server);
}

/* "127.1" is 127.0.0.1, but only to those who look it up: as is, in many a hosts file, the name of
 * the machine. */
static void a_name_of_this_machine_is_served_and_no_other(void **state)
{
    (void)state;
    bay_server *server = server_of(reply_ok, NULL);
    runner on;
    uint16_t before = listen_anywhere(server);
    assert_int_equal(bay_server_listen(server, "127.1:0", NULL), BAY_OK);
    start(&on, server);
    ask(before, "127.1:80", "\"text\":\"ok\"");
    ask(before, "rebound.example", "HTTP/1.1 403 ");
    ask(before, "localhost", "\"text\":\"ok\"");
    bay_server_stop(server);
    finish(&on);
    bay_server_free(server);
}

static void keys_and_an_open_door_exclude_each_other(void **state)
{
    (void)state;
    bay_diag diag = {.code = BAY_OK};
    bay_server *server = server_of(reply_ok, NULL);
    bay_server_open_on_purpose(server);
    bay_server_identify(server, know_nobody, NULL);
    assert_int_equal(bay_server_check(server, &diag), BAY_ERR_INVALID);
    assert_non_null(strstr(diag.text, "bay_server_identify"));
    assert_non_null(strstr(diag.text, "bay_server_open_on_purpose"));
    assert_int_equal(bay_server_listen(server, "0.0.0.0:0", NULL), BAY_ERR_INVALID);
    assert_int_equal(bay_server_listen(server, "127.0.0.1:0", NULL), BAY_ERR_INVALID);
    assert_int_equal(bay_server_fd(server), -1);
    bay_server_free(server);
    bay_server_open_on_purpose(NULL);
}

static void a_stop_before_the_run_is_not_lost(void **state)
{
    (void)state;
    bay_server *server = server_of(reply_ok, NULL);
    listen_anywhere(server);
    bay_server_stop(server);
    assert_int_equal(bay_server_run(server, NULL), BAY_OK);
    bay_server_free(server);
}

static bay_server *to_stop;

static void on_signal(int number)
{
    (void)number;
    bay_server_stop(to_stop);
}

static void raise_it(bay_call *call, void *user)
{
    (void)user;
    bay_call_reply(call, "raised");
    raise(SIGUSR1); /* in the middle of a turn */
}

static void a_signal_handler_may_stop_it(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = on_signal};
    struct sigaction before;
    to_stop = server_of(raise_it, NULL);
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    uint16_t port = listen_anywhere(to_stop);
    int fd = connect_to(port);
    post(fd, "localhost");
    assert_int_equal(bay_server_run(to_stop, NULL), BAY_OK);
    char text[8192];
    read_all(fd, NULL, text, sizeof(text));
    assert_has(text, "raised");
    close(fd);
    sigaction(SIGUSR1, &before, NULL);
    bay_server_free(to_stop);
}

/* ---- handlers and the end */

static struct {
    bay_call *call;
    atomic_bool is_here;
} held;

static void hold(bay_call *call, void *user)
{
    held.call = bay_call_defer(call);
    atomic_store(&held.is_here, true);
    if (user != NULL) {
        bay_server_stop(user);
    }
}

static void let_go(void *argument)
{
    (void)argument;
    while (!atomic_load(&held.is_here)) {
        poll(NULL, 0, 1);
    }
    bay_call_reply(held.call, "in the end");
}

static void what_is_under_way_is_answered(void **state)
{
    (void)state;
    bay_server *server = bay_server_new("s", "1");
    bay_server_tool_schema(server, "t", NULL, NULL, hold, server);
    runner on;
    net_thread other;
    atomic_store(&held.is_here, false);
    uint16_t port = listen_anywhere(server);
    start(&on, server);
    int fd = connect_to(port);
    post(fd, "localhost");
    assert_int_equal(net_thread_start(&other, let_go, NULL), BAY_OK);
    char text[8192];
    read_all(fd, NULL, text, sizeof(text));
    assert_has(text, "in the end");
    close(fd);
    net_thread_join(&other);
    finish(&on);
    bay_server_free(server);
}

static void a_handler_that_does_not_end_is_given_up_on(void **state)
{
    (void)state;
    bay_diag diag = {0};
    bay_server *server = bay_server_new("s", "1");
    bay_server_tool_schema(server, "t", NULL, NULL, hold, server);
    server->host.drain_ms = 20;
    atomic_store(&held.is_here, false);
    int fd = connect_to(listen_anywhere(server));
    post(fd, "localhost");
    assert_int_equal(bay_server_run(server, &diag), BAY_ERR_TIMEOUT);
    assert_has(diag.text, "a handler did not come to an end");
    assert_true(bay_call_is_cancelled(held.call));
    bay_server_free(server); /* refused: the handler has parts of it */
    assert_int_equal(bay_server_dispatch(server), BAY_OK);
    bay_call_reply(held.call, "too late");
    assert_int_equal(bay_server_run(server, &diag), BAY_OK);
    close(fd);
    bay_server_free(server);
}

static void hear(bay_call *call, const bay_answer *answer, void *user)
{
    *(bay_action *)user = bay_answer_action(answer);
    bay_call_reply(call, "heard");
}

static void ask_person(bay_call *call, void *user)
{
    bay_call_elicit_schema(call, "Well?", "{\"type\":\"object\",\"properties\":{}}", hear, user);
}

static void post_text(uint16_t port, const char *session, const char *body, char *out, size_t size,
                      const char *wanted)
{
    char text[2048];
    int fd = connect_to(port);
    int len = snprintf(text, sizeof(text),
                       "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                       "Accept: application/json, text/event-stream\r\n%s"
                       "Content-Length: %zu\r\n\r\n%s",
                       session, strlen(body), body);
    assert_true(len > 0 && (size_t)len < sizeof(text));
    assert_int_equal(send(fd, text, (size_t)len, MSG_NOSIGNAL), len);
    read_all(fd, wanted, out, size);
    close(fd);
}

/* The session outlives its connections, and the server its sessions: but not this end. */
static void a_question_that_nobody_answers_does_not_keep_it(void **state)
{
    char text[8192];
    char session[128];
    runner self;
    bay_action heard = BAY_ACTION_ACCEPT;
    (void)state;
    bay_server *server = server_of(ask_person, &heard);
    server->host.drain_ms = GIVE_UP_MS;
    uint16_t port = listen_anywhere(server);
    start(&self, server);
    post_text(port, "",
              "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
              "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"elicitation\":{}},"
              "\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}",
              text, sizeof(text), "\"result\"");
    const char *at = strcasestr(text, "Mcp-Session-Id:");
    assert_non_null(at);
    (void)snprintf(session, sizeof(session), "%.*s\r\n", (int)strcspn(at, "\r"), at);
    post_text(port, session, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", text,
              sizeof(text), "202");
    post_text(port, session,
              "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":"
              "\"t\"}}",
              text, sizeof(text), "elicitation/create");
    bay_server_stop(server);
    finish(&self);
    assert_int_equal(heard, BAY_ACTION_NONE);
    assert_int_equal(bay_server_fd(server), -1); /* it is not kept for a handler */
    bay_server_free(server);
}

static void misuse(bay_call *call, void *user)
{
    bay_server *server = user;
    bay_diag diag = {0};
    assert_int_equal(bay_server_run(server, &diag), BAY_ERR_STATE);
    assert_has(diag.text, "running already");
    assert_int_equal(bay_server_dispatch(server), BAY_ERR_STATE);
    bay_server_free(server); /* refused */
    bay_call_reply(call, "still here");
    bay_server_stop(server);
}

static void a_handler_cannot_end_what_runs_it(void **state)
{
    (void)state;
    bay_server *server = bay_server_new("s", "1");
    bay_server_tool_schema(server, "t", NULL, NULL, misuse, server);
    int fd = connect_to(listen_anywhere(server));
    post(fd, "localhost");
    assert_int_equal(bay_server_run(server, NULL), BAY_OK);
    char text[8192];
    read_all(fd, NULL, text, sizeof(text));
    assert_has(text, "still here");
    close(fd);
    bay_server_free(server);
}

static void it_may_be_freed_without_having_run(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    bay_server *server = server_of(reply_ok, NULL);
    uint16_t port = listen_anywhere(server);
    assert_int_equal(bay_server_pipe(server, ends[0], ends[0], NULL), BAY_OK);
    bay_server_free(server);
    assert_int_equal(connect_to(port), -1);
    assert_true(fcntl(ends[0], F_GETFD) >= 0);
    close(ends[0]);
    close(ends[1]);
}

/* ---- pipes */

static void say(int fd, const char *line)
{
    assert_int_equal(write(fd, line, strlen(line)), (ssize_t)strlen(line));
}

static void it_ends_with_its_last_pipe(void **state)
{
    (void)state;
    int first[2];
    int second[2];
    char text[8192];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, first), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, second), 0);
    int flags = fcntl(first[0], F_GETFL);
    bay_server *server = server_of(reply_ok, NULL);
    assert_int_equal(bay_server_pipe(server, first[0], first[0], NULL), BAY_OK);
    assert_int_equal(bay_server_pipe(server, second[0], second[0], NULL), BAY_OK);
    runner on;
    start(&on, server);
    say(first[1], CALL_LINE "\n");
    read_all(first[1], "\n", text, sizeof(text));
    assert_has(text, "\"text\":\"ok\"");
    shutdown(first[1], SHUT_WR);
    say(second[1], CALL_LINE "\n");
    read_all(second[1], "\n", text, sizeof(text));
    assert_has(text, "\"text\":\"ok\"");
    shutdown(second[1], SHUT_WR);
    finish(&on);
    bay_server_free(server);
    assert_int_equal(fcntl(first[0], F_GETFL), flags); /* they are still ours, and as they were */
    for (int i = 0; i < 2; i++) {
        close(first[i]);
        close(second[i]);
    }
}

static void a_stop_lets_a_pipe_have_its_answer(void **state)
{
    (void)state;
    int ends[2];
    char text[8192];
    net_thread other;
    runner on;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    bay_server *server = bay_server_new("s", "1");
    bay_server_tool_schema(server, "t", NULL, NULL, hold, server);
    atomic_store(&held.is_here, false);
    assert_int_equal(bay_server_pipe(server, ends[0], ends[0], NULL), BAY_OK);
    start(&on, server);
    say(ends[1], CALL_LINE "\n");
    assert_int_equal(net_thread_start(&other, let_go, NULL), BAY_OK);
    read_all(ends[1], "\n", text, sizeof(text));
    assert_has(text, "in the end");
    net_thread_join(&other);
    finish(&on);
    bay_server_free(server);
    close(ends[0]);
    close(ends[1]);
}

/* ---- inside another loop */

static void dispatch_until(bay_server *server, int fd, char *text, size_t size, const char *part)
{
    size_t len = strlen(text);
    while (strstr(text, part) == NULL) {
        int wait_ms = bay_server_wait_ms(server);
        assert_in_range(wait_ms + 1, 0, GIVE_UP_MS); /* a timer is always armed */
        struct pollfd wait[2] = {{.fd = bay_server_fd(server), .events = POLLIN},
                                 {.fd = fd, .events = POLLIN}};
        assert_true(poll(wait, 2, wait_ms) >= 0);
        assert_int_equal(bay_server_dispatch(server), BAY_OK);
        if ((wait[1].revents & POLLIN) != 0) {
            ssize_t got = read(fd, text + len, size - 1 - len);
            assert_true(got > 0);
            len += (size_t)got;
            text[len] = '\0';
        }
    }
}

static void keep_call(bay_call *call, void *user)
{
    *(bay_call **)user = bay_call_defer(call);
}

/* Whoever waits has asked how long before; an answer that is given after that, between two
 * dispatches, leaves all the same. */
static void an_answer_between_two_dispatches_leaves(void **state)
{
    (void)state;
    char text[8192] = "";
    bay_call *kept = NULL;
    bay_server *server = server_of(keep_call, &kept);
    int fd = connect_to(listen_anywhere(server));
    post(fd, "localhost");
    while (kept == NULL) {
        struct pollfd wait = {.fd = bay_server_fd(server), .events = POLLIN};
        assert_true(poll(&wait, 1, bay_server_wait_ms(server)) >= 0);
        assert_int_equal(bay_server_dispatch(server), BAY_OK);
    }
    while (bay_server_wait_ms(server) == 0) {
        assert_int_equal(bay_server_dispatch(server), BAY_OK);
    }
    bay_call_reply(kept, "ok");
    while (strstr(text, "\"text\":\"ok\"") == NULL) {
        size_t len = strlen(text);
        struct pollfd wait[2] = {{.fd = bay_server_fd(server), .events = POLLIN},
                                 {.fd = fd, .events = POLLIN}};
        assert_true(poll(wait, 2, GIVE_UP_MS) > 0);
        if ((wait[0].revents & POLLIN) != 0) {
            assert_int_equal(bay_server_dispatch(server), BAY_OK);
        }
        if ((wait[1].revents & POLLIN) != 0) {
            ssize_t got = read(fd, text + len, sizeof(text) - 1 - len);
            assert_true(got > 0);
            text[len + (size_t)got] = '\0';
        }
    }
    close(fd);
    bay_server_free(server);
}

static void it_lives_in_another_loop(void **state)
{
    (void)state;
    char text[8192] = "";
    bay_server *server = server_of(reply_ok, NULL);
    int fd = connect_to(listen_anywhere(server));
    post(fd, "localhost");
    dispatch_until(server, fd, text, sizeof(text), "\"text\":\"ok\"");
    close(fd);
    bay_server_stop(server);
    bay_err err = BAY_OK;
    for (int left = 10000; err == BAY_OK && left > 0; left--) {
        struct pollfd wait = {.fd = bay_server_fd(server), .events = POLLIN};
        assert_true(poll(&wait, 1, bay_server_wait_ms(server)) >= 0);
        err = bay_server_dispatch(server);
    }
    assert_int_equal(err, BAY_ERR_EOF);
    assert_int_equal(bay_server_dispatch(server), BAY_ERR_EOF);
    assert_int_equal(bay_server_fd(server), -1);
    bay_server_free(server);
}

static void note(void *argument)
{
    atomic_store((atomic_bool *)argument, true);
}

/* What the loop does for itself counts: deferred tasks, timers, messages. */
static void the_wait_knows_what_is_due(void **state)
{
    (void)state;
    bay_server *server = server_of(reply_ok, NULL);
    listen_anywhere(server);
    while (bay_server_wait_ms(server) == 0) {
        assert_int_equal(bay_server_dispatch(server), BAY_OK);
    }
    atomic_bool was_run = false;
    loop_task task = {.function = note, .argument = &was_run};
    loop_defer(server->loop, &task);
    assert_int_equal(bay_server_wait_ms(server), 0);
    assert_int_equal(bay_server_dispatch(server), BAY_OK);
    assert_true(atomic_load(&was_run));
    was_run = false;
    loop_timer timer;
    loop_timer_init(&timer, note, (void *)&was_run);
    assert_int_equal(loop_timer_start(server->loop, &timer, 0), BAY_OK);
    assert_int_equal(bay_server_wait_ms(server), 0);
    assert_int_equal(bay_server_dispatch(server), BAY_OK);
    assert_true(atomic_load(&was_run));
    was_run = false;
    assert_int_equal(loop_post(server->loop, note, (void *)&was_run), BAY_OK);
    assert_int_equal(bay_server_wait_ms(server), 0);
    assert_int_equal(bay_server_dispatch(server), BAY_OK);
    assert_true(atomic_load(&was_run));
    bay_server_free(server);
}

/* ---- clients in process, as they use it */

static void a_client_in_process_keeps_it(void **state)
{
    (void)state;
    bay_server *server = server_of(reply_ok, NULL);
    assert_int_equal(sdk_serving_open(server, NULL), BAY_OK);
    assert_int_equal(sdk_serving_open(server, NULL), BAY_OK);
    loop *first = sdk_serving_loop(server);
    assert_non_null(first);
    assert_non_null(sdk_serving_engine(server));
    bay_server_free(server); /* refused */
    bay_server_stop(server); /* of nothing: it stays */
    loop_turn(first, 0);
    sdk_serving_close(server);
    assert_ptr_equal(sdk_serving_loop(server), first);
    /* Its own serving ends, the client's goes on. */
    listen_anywhere(server);
    bay_server_stop(server);
    assert_int_equal(bay_server_run(server, NULL), BAY_OK);
    assert_ptr_equal(sdk_serving_loop(server), first);
    sdk_serving_close(server);
    assert_null(sdk_serving_loop(server));
    bay_server_free(server);
}

/* ---- without memory */

static void every_allocation_may_fail(void **state)
{
    (void)state;
    int ends[2];
    size_t runs = 0;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    for (size_t at = 0; failing_memory_start(at); at++) {
        runs++;
        bay_server *server = server_of(reply_ok, NULL);
        bay_err listened = bay_server_listen(server, "127.0.0.1:0", NULL);
        bay_err piped = bay_server_pipe(server, ends[0], ends[0], NULL);
        if (listened == BAY_OK || piped == BAY_OK) {
            bay_server_stop(server);
            assert_int_equal(bay_server_run(server, NULL), BAY_OK);
        }
        bay_server_free(server);
        failing_memory_check();
    }
    assert_true(runs > 20);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_is_nowhere_does_not_run),
        cmocka_unit_test(what_cannot_be_had_is_told),
        cmocka_unit_test(a_bad_registration_is_told_before_anything_is_opened),
        cmocka_unit_test(addresses_are_served_until_a_stop),
        cmocka_unit_test(who_may_name_the_server_depends_on_the_address),
        cmocka_unit_test(strangers_do_not_reach_a_server_that_asks_for_nothing),
        cmocka_unit_test(a_server_that_knows_its_callers_listens_anywhere),
        cmocka_unit_test(a_name_of_this_machine_is_served_and_no_other),
        cmocka_unit_test(keys_and_an_open_door_exclude_each_other),
        cmocka_unit_test(a_stop_before_the_run_is_not_lost),
        cmocka_unit_test(a_signal_handler_may_stop_it),
        cmocka_unit_test(what_is_under_way_is_answered),
        cmocka_unit_test(a_handler_that_does_not_end_is_given_up_on),
        cmocka_unit_test(a_question_that_nobody_answers_does_not_keep_it),
        cmocka_unit_test(a_handler_cannot_end_what_runs_it),
        cmocka_unit_test(it_may_be_freed_without_having_run),
        cmocka_unit_test(it_ends_with_its_last_pipe),
        cmocka_unit_test(a_stop_lets_a_pipe_have_its_answer),
        cmocka_unit_test(an_answer_between_two_dispatches_leaves),
        cmocka_unit_test(it_lives_in_another_loop),
        cmocka_unit_test(the_wait_knows_what_is_due),
        cmocka_unit_test(a_client_in_process_keeps_it),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The admin API: who may use which route, what it says of all loops, and what it does to a gateway
 * with calls under way. The clients are threads of this process, which the gateway admits; whom it
 * refuses is forked. */
#include "support/gateway_rig.h"

#include <semaphore.h>
#include <sys/un.h>

#include "gateway/admin_internal.h"
#include "support/failing_memory.h"

#define TIMES "'timeouts':{'drain':'10s','terminate':'200ms','kill':'200ms'},"
#define GOOD(name) RIG_SERVER(name, "stdio", "good", "")
#define GOOD_TOO(name) RIG_SERVER(name, "stdio", "good", ",'env':{'OTHER':'1'}")

static char folder[] = "/tmp/admin.XXXXXX";
static char path[64];
static char text[4096]; /* of a configuration */

/* The socket, then what else stands in the file. */
static const char *with_admin(const char *rest)
{
    snprintf(text, sizeof(text), "{'admin':{'listen':['unix:%s']}," TIMES "%s", path, rest);
    return text;
}

static void go(const gateway_rig *self)
{
    FILE *file = fopen(self->go, "w");
    assert_non_null(file);
    fclose(file);
}

/* ---- clients --------------------------------------------------------------------------------- */

static int connect_admin(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void admin_client(client *self)
{
    *self = (client){.fd = connect_admin()};
    assert_true(self->fd >= 0);
    buf_init(&self->got, RIG_REPLY);
}

#define GET "GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n"
#define POST(route)                                                                                \
    "POST /v1/" route " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"         \
    "Content-Length: 0\r\n\r\n"

/* Sends, and expects that status and each of the parts, of which the last is NULL. In these '
 * stands for ". */
static void expect(const char *request, int status, const char *const *parts)
{
    client one;
    admin_client(&one);
    assert_true(client_send(&one, request));
    int got = client_reply(&one);
    if (got != status) {
        fail_msg("%d, not %d: %s", got, status, one.got.at);
    }
    for (; *parts != NULL; parts++) {
        char part[300];
        size_t len = (size_t)snprintf(part, sizeof(part), "%s", *parts);
        for (size_t i = 0; i < len; i++) {
            part[i] = part[i] == '\'' ? '"' : part[i];
        }
        if (client_find(&one, part) == NULL) {
            fail_msg("\"%s\" is not in: %s", part, one.got.at);
        }
    }
    client_close(&one);
}

#define EXPECT(request, status, ...)                                                               \
    expect(request, status, (const char *const[]){__VA_ARGS__, NULL})

/* Of the status of just now. */
static void read_status(client *self)
{
    admin_client(self);
    assert_true(client_send(self, GET));
    assert_int_equal(client_reply(self), 200);
    for (size_t i = 0; i < self->got.len; i++) {
        self->got.at[i] = self->got.at[i] == '"' ? '\'' : self->got.at[i];
    }
}

static bool is_said(const char *part)
{
    client one;
    read_status(&one);
    bool is_found = client_find(&one, part) != NULL;
    client_close(&one);
    return is_found;
}

static long counted_calls(void)
{
    client one;
    read_status(&one);
    const char *at = client_find(&one, "'calls':");
    long count = at != NULL ? strtol(at + 8, NULL, 10) : -1;
    client_close(&one);
    return count;
}

static void start(gateway_rig *self, const char *rest, uint32_t workers)
{
    rig_open(self, with_admin(rest), workers);
    wait_until(!is_said("'status':'starting'")); /* on all loops */
}

/* ---- roles and routes ------------------------------------------------------------------------ */

/* Written down once more: a row that is missing here, or that admits others, is a failure. */
static const struct cell {
    const char *method;
    const char *path;
    unsigned roles;
} cells[] = {
    {"GET", "/v1/status", ADMIN_VIEWER | ADMIN_OPERATOR | ADMIN_APPROVER | ADMIN_ADMIN},
    {"GET", "/metrics", ADMIN_VIEWER | ADMIN_OPERATOR | ADMIN_APPROVER | ADMIN_ADMIN},
    {"GET", "/v1/pins", ADMIN_VIEWER | ADMIN_OPERATOR | ADMIN_APPROVER | ADMIN_ADMIN},
    {"POST", "/v1/pins/approve", ADMIN_APPROVER | ADMIN_ADMIN},
    {"POST", "/v1/reload", ADMIN_OPERATOR | ADMIN_ADMIN},
    {"POST", "/v1/drain", ADMIN_OPERATOR | ADMIN_ADMIN},
};

static void each_role_at_each_route(void **state)
{
    (void)state;
    static const char *const methods[] = {"GET",     "HEAD",  "POST",    "PUT",   "DELETE",
                                          "OPTIONS", "PATCH", "CONNECT", "TRACE", "get"};
    assert_int_equal(admin_route_count, ARRAY_LEN(cells));
    for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
        for (size_t m = 0; m < ARRAY_LEN(methods); m++) {
            bool is_its = strcmp(methods[m], cells[i].method) == 0 ||
                          (strcmp(methods[m], "HEAD") == 0 && strcmp(cells[i].method, "GET") == 0);
            for (unsigned roles = 0; roles <= ADMIN_ALL_ROLES; roles++) {
                const admin_route *route = NULL;
                int wanted = !is_its ? 405 : (roles & cells[i].roles) != 0 ? 200 : 403;
                assert_int_equal(
                    admin_choose(roles, str_of(methods[m]), str_of(cells[i].path), &route), wanted);
                assert_true(str_eq(route->path, str_of(cells[i].path)));
            }
        }
    }
}

static void other_paths_do_not_exist(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "",           "/",    "/v1",      "/v1/",        "/v1/status/", "/v1/Status",
        "/v2/status", "/mcp", "/healthz", "//v1/status", "/v1/drain%00"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        const admin_route *route = NULL;
        assert_int_equal(admin_choose(ADMIN_ALL_ROLES, STR("GET"), str_of(paths[i]), &route), 404);
    }
}

/* No route that changes something is a GET. */
static void a_get_changes_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < admin_route_count; i++) {
        bool is_get = str_eq(admin_routes[i].method, STR("GET"));
        assert_int_equal(is_get, admin_routes[i].handle == admin_status ||
                                     admin_routes[i].handle == admin_metrics ||
                                     admin_routes[i].handle == admin_pins);
        assert_true(str_eq(admin_routes[i].method, STR("GET")) ||
                    (admin_routes[i].roles & ADMIN_VIEWER) == 0);
    }
}

static void what_a_page_could_send_is_refused(void **state)
{
    (void)state;
    gateway_rig self;
    start(&self, "'mcpServers':{" GOOD("a") "}}", 1);
#define HEAD_OF_POST "POST /v1/drain HTTP/1.1\r\nHost: localhost\r\n"
    EXPECT(HEAD_OF_POST "Content-Length: 0\r\n\r\n", 415, "{'error':");
    EXPECT(HEAD_OF_POST "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", 415,
           "{'error':");
    EXPECT(HEAD_OF_POST "Content-Type: application/x-www-form-urlencoded\r\n"
                        "Content-Length: 3\r\n\r\na=b",
           415, "{'error':");
#define JSON "Content-Type: application/json\r\n"
    EXPECT(HEAD_OF_POST JSON "Content-Length: 1\r\n\r\n{", 400, "{'error':");
    EXPECT(HEAD_OF_POST JSON "Content-Length: 2\r\n\r\n[]", 400, "{'error':");
    EXPECT(HEAD_OF_POST JSON "Content-Length: 7\r\n\r\n{\"a\":1}", 400, "{'error':");
    EXPECT(HEAD_OF_POST JSON "Origin: http://localhost\r\nContent-Length: 0\r\n\r\n", 403,
           "{'error':");
    EXPECT(HEAD_OF_POST JSON "Origin: null\r\nContent-Length: 0\r\n\r\n", 403, "{'error':");
    EXPECT(HEAD_OF_POST JSON "Sec-Fetch-Site: cross-site\r\nContent-Length: 0\r\n\r\n", 403,
           "{'error':");
    EXPECT(HEAD_OF_POST JSON "Sec-Fetch-Site: same-origin\r\nContent-Length: 0\r\n\r\n", 403,
           "{'error':");
    EXPECT("POST /v1/drain HTTP/1.1\r\nHost: evil.example\r\n" JSON "Content-Length: 0\r\n\r\n",
           421, "{'error':");
    EXPECT("GET /v1/status HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421, "{'error':");
    EXPECT("GET /v1/drain HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "\r\nAllow: POST\r\n");
    EXPECT("DELETE /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "\r\nAllow: GET, HEAD\r\n",
           "{'error':");
    EXPECT("GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "{'error':");
    EXPECT(GET, 200, "'status':'ready'", "Content-Type: application/json\r\n");
    assert_int_equal(rig_log_count("draining"), 0);
    rig_close(&self);
}

/* ---- who is refused -------------------------------------------------------------------------- */

/* In a child of the gateway's process, by system calls alone: the status of the answer. */
static int post_in_child(bool leaves)
{
    int out[2];
    int status = 0;
    assert_int_equal(pipe(out), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        static const char request[] = POST("reload");
        char got[64] = "";
        if (leaves) {
            (void)setsid();
        }
        int fd = connect_admin();
        if (fd >= 0 && write(fd, request, sizeof(request) - 1) > 0 &&
            read(fd, got, sizeof(got) - 1) > 12) {
            status = (int)strtol(got + 9, NULL, 10);
        }
        (void)!write(out[1], &status, sizeof(status));
        _exit(0);
    }
    close(out[1]);
    assert_int_equal(read(out[0], &status, sizeof(status)), sizeof(status));
    close(out[0]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return status;
}

static void descendants_are_refused(void **state)
{
    (void)state;
    gateway_rig self;
    start(&self, "'mcpServers':{" GOOD("a") "}}", 2);
    assert_int_equal(post_in_child(false), 403);
    assert_int_equal(post_in_child(true), 403);
    assert_int_equal(rig_log_count("refused 1 connections to the admin socket"), 1);
    EXPECT(GET, 200, "'status':'ready'"); /* the loop has been round */
    assert_int_equal(atomic_load(&self.reloaded), 0);
    rig_close(&self);
}

/* They hold more connections than there may be, and say nothing: nobody else goes without. */
static void descendants_take_no_places(void **state)
{
    (void)state;
    gateway_rig self;
    int up[2];
    int down[2];
    char byte = 0;
    start(&self, "'mcpServers':{" GOOD("a") "}}", 1);
    assert_int_equal(pipe(up), 0);
    assert_int_equal(pipe(down), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(down[1]);
        for (int i = 0; i < 2 * ADMIN_CONNECTIONS; i++) {
            byte |= connect_admin() < 0;
        }
        (void)!write(up[1], &byte, 1);
        (void)!read(down[0], &byte, 1);
        _exit(0);
    }
    close(down[0]);
    assert_int_equal(read(up[0], &byte, 1), 1);
    assert_int_equal(byte, 0);
    EXPECT(GET, 200, "'status':'ready'");
    close(down[1]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(up[0]);
    close(up[1]);
    rig_close(&self);
}

/* ---- where it listens ------------------------------------------------------------------------ */

static bool is_there(void)
{
    struct stat about;
    return lstat(path, &about) == 0;
}

/* As another gateway would. */
static int listen_there(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

static void a_second_gateway_is_told_so(void **state)
{
    (void)state;
    gateway_rig self;
    bay_diag diag = {0};
    int first = listen_there();
    gateway_options asked = {.workers = 1, .listen = STR("127.0.0.1:0")};
    assert_int_equal(rig_try(&self, with_admin("'mcpServers':{}}"), &asked, &diag), BAY_ERR_STATE);
    assert_non_null(strstr(diag.text, "admin.listen: cannot listen on unix:"));
    assert_non_null(strstr(diag.text, "another process listens there"));
    assert_true(is_there());
    close(first);
    start(&self, "'mcpServers':{" GOOD("a") "}}", 1); /* what it left is replaced */
    EXPECT(GET, 200, "'status':'ready'");
    rig_close(&self);
    assert_false(is_there());
}

/* Where nobody asked for it the gateway runs without it. */
static void a_default_that_is_taken_is_a_warning(void **state)
{
    (void)state;
    static const char settings[] = "{" TIMES "'mcpServers':{" GOOD("a") "}}";
    gateway_rig self;
    bay_diag diag = {0};
    char address[80];
    snprintf(address, sizeof(address), "unix:%s", path);
    gateway_options asked = {.workers = 1, .listen = STR("127.0.0.1:0"), .admin = str_of(address)};
    int first = listen_there();
    assert_int_equal(rig_try(&self, settings, &asked, &diag), BAY_OK);
    assert_int_equal(rig_log_count("warning admin: no admin API"), 1);
    expect_call(&self, "a.echo", "good");
    rig_close(&self);
    assert_true(is_there());
    close(first);
    assert_int_equal(rig_try(&self, settings, &asked, &diag), BAY_OK);
    wait_until(atomic_load(&self.started) == 1);
    EXPECT(GET, 200, "'status':'ready'");
    rig_close(&self);
    assert_false(is_there());
    assert_int_equal(
        rig_try(&self, "{'admin':{'listen':[]},'mcpServers':{" GOOD("a") "}}", &asked, &diag),
        BAY_OK);
    assert_false(is_there()); /* turned off */
    rig_close(&self);
}

/* ---- status ---------------------------------------------------------------------------------- */

static void all_loops_are_asked(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 3; workers++) {
        enum { CALLS = 4 };
        gateway_rig self;
        client waits[CALLS];
        char last[64];
        start(&self, "'mcpServers':{" GOOD("a") ",'b':{'command':'/no/such/program'}}}", workers);
        for (int i = 0; i < CALLS; i++) {
            client_open(&waits[i], &self);
            client_call(&waits[i], "a.wait");
        }
        wait_until(counted_calls() == CALLS); /* the server takes them one after the other */
        snprintf(last, sizeof(last), "{'worker':%u,'answered':true,", workers - 1);
        EXPECT(GET, 200, "'status':'degraded'", "'connections':4,", "'calls':4,", last,
               "{'name':'a','state':'ready'", "'calls':4,", "{'name':'b','state':'",
               "'error':'cannot start");
        go(&self);
        for (int i = 0; i < CALLS; i++) {
            assert_int_equal(client_reply(&waits[i]), 200);
            client_close(&waits[i]);
        }
        EXPECT(GET, 200, "'calls':0,", "{'name':'a','state':'ready'");
        rig_close(&self);
    }
}

typedef struct block {
    sem_t begun;
    sem_t end;
} block;

static void hold_loop(void *argument)
{
    block *self = argument;
    sem_post(&self->begun);
    while (sem_wait(&self->end) != 0) {
    }
}

/* It is named, and what the others say comes all the same; so does the next answer, which does not
 * wait for it again. */
static void a_loop_that_does_not_answer_is_named(void **state)
{
    (void)state;
    gateway_rig self;
    block held;
    start(&self, "'mcpServers':{" GOOD("a") "}}", 3);
    sem_init(&held.begun, 0, 0);
    sem_init(&held.end, 0, 0);
    assert_int_equal(loop_post(self.gateway->workers[1].loop, hold_loop, &held), BAY_OK);
    while (sem_wait(&held.begun) != 0) {
    }
    for (int i = 0; i < 3; i++) {
        EXPECT(GET, 200, "{'worker':0,'answered':true,", "{'worker':1,'answered':false}",
               "{'worker':2,'answered':true,", "{'name':'a','state':'ready'");
    }
    sem_post(&held.end);
    wait_until(is_said("{'worker':1,'answered':true,"));
    rig_close(&self);
    sem_destroy(&held.begun);
    sem_destroy(&held.end);
}

/* The gateway ends while a loop still owes an answer. */
static void an_end_in_the_middle_of_an_answer(void **state)
{
    (void)state;
    gateway_rig self;
    client one;
    block held;
    start(&self, "'mcpServers':{" GOOD("a") "}}", 2);
    sem_init(&held.begun, 0, 0);
    sem_init(&held.end, 0, 0);
    assert_int_equal(loop_post(self.gateway->workers[1].loop, hold_loop, &held), BAY_OK);
    while (sem_wait(&held.begun) != 0) {
    }
    admin_client(&one);
    assert_true(client_send(&one, GET));
    gateway_stop(self.gateway);
    gateway_stop(self.gateway); /* in a hurry: nothing is waited for */
    sem_post(&held.end);
    self.descriptors++; /* the client's */
    rig_join(&self);
    client_close(&one);
    sem_destroy(&held.begun);
    sem_destroy(&held.end);
}

/* They ask and ask and never read; others are answered, and the gateway ends. */
static void readers_that_never_read(void **state)
{
    (void)state;
    enum { READERS = 8, REQUESTS = 200 };
    gateway_rig self;
    client readers[READERS];
    start(&self, "'mcpServers':{" GOOD("a") "," GOOD("b") "}}", 2);
    for (int i = 0; i < READERS; i++) {
        admin_client(&readers[i]);
        for (int k = 0; k < REQUESTS; k++) {
            if (send(readers[i].fd, GET, sizeof(GET) - 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
                break; /* it is not read from any more */
            }
        }
    }
    EXPECT(GET, 200, "'status':'ready'");
    expect_call(&self, "a.echo", "good");
    for (int i = 0; i < READERS; i += 2) {
        client_close(&readers[i]); /* abandoned */
    }
    EXPECT(GET, 200, "'status':'ready'");
    self.descriptors += READERS / 2;
    rig_close(&self);
    for (int i = 1; i < READERS; i += 2) {
        client_close(&readers[i]);
    }
}

/* One allocation fails somewhere between the request and its answer; what comes after it succeeds.
 * Whatever becomes of that request, the next one is answered. */
static void a_lack_of_memory_costs_one_answer(void **state)
{
    (void)state;
    enum { MOST = 60 };
    gateway_rig self;
    size_t answered = 0;
    size_t failed = 0;
    start(&self, "'mcpServers':{" GOOD("a") "}}", 2);
    for (size_t at = 0; at < MOST; at++) {
        char got[16] = "";
        int fd = connect_admin();
        assert_true(fd >= 0);
        failing_memory.has_failed = false;
        failing_memory.allowed = at;
        assert_int_equal(send(fd, GET, sizeof(GET) - 1, MSG_NOSIGNAL), sizeof(GET) - 1);
        ssize_t len = recv(fd, got, sizeof(got) - 1, 0); /* or the connection ends */
        failing_memory.allowed = SIZE_MAX;
        close(fd);
        failed += failing_memory.has_failed;
        if (len > 12) {
            assert_true(strncmp(got + 9, "200", 3) == 0 || strncmp(got + 9, "503", 3) == 0);
            answered += got[9] == '2';
        }
        EXPECT(GET, 200, "'status':'ready'", "'name':'a'");
    }
    assert_true(failed > 0 && answered > 0);
    rig_close(&self);
}

/* ---- reload ---------------------------------------------------------------------------------- */

static void a_reload_says_what_changed(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 3; workers += 2) {
        gateway_rig self;
        client waits;
        start(&self, "'mcpServers':{" GOOD("a") "," GOOD("b") "," GOOD("c") "}}", workers);
        client_open(&waits, &self);
        client_call(&waits, "a.wait");
        wait_until(rig_tally(&self) == 1);
        EXPECT(POST("reload"), 200, "'servers':{'added':[],'changed':[],'removed':[]}",
               "'nextStart':[]");
        rig_configure(&self, with_admin("'store':'/tmp/x','mcpServers':{" GOOD_TOO("a") "," GOOD(
                                 "b") "," GOOD("d") ",'c':{'command':'x','disabled':true}}}"));
        /* not kept waiting by the call of the server that is replaced */
        EXPECT(POST("reload"), 200, "'servers':{'added':['d'],'changed':['a'],'removed':['c']}",
               "'nextStart':['store']", "'failures':0");
        EXPECT(GET, 200, "'replacedServers':", "'callsOfReplacedServers':1,");
        go(&self);
        assert_int_equal(client_reply(&waits), 200);
        assert_non_null(client_find(&waits, "good"));
        client_close(&waits);
        wait_until(atomic_load(&self.reloaded) == 2);
        rig_close(&self);
    }
}

static void a_faulty_file_is_told_with_its_lines(void **state)
{
    (void)state;
    gateway_rig self;
    client waits;
    start(&self, "'mcpServers':{" GOOD("a") "}}", 2);
    client_open(&waits, &self);
    client_call(&waits, "a.wait");
    wait_until(rig_tally(&self) == 1);
    rig_configure(&self, "{'mcpServers':{\n'a':{'command':'x',\n'no_such_key':1}}}");
    EXPECT(POST("reload"), 422, "{'error':'the configuration was not reloaded", "'line':3,",
           "no_such_key", "'file':'/tmp/rig.");
    EXPECT(GET, 200, "'reloadError':'/tmp/rig.", "'reloading':false");
    (void)unlink(self.path);
    EXPECT(POST("reload"), 422, "'errors':[{'file':");
    rig_configure(&self, with_admin("'mcpServers':{" GOOD("a") "}}"));
    EXPECT(POST("reload"), 200, "'status':'reloaded'");
    go(&self);
    assert_int_equal(client_reply(&waits), 200); /* the call did not notice any of it */
    client_close(&waits);
    rig_close(&self);
}

/* The second waits for the first, which waits for a call; a third leaves. */
static void reloads_at_one_time(void **state)
{
    (void)state;
    enum { MOST = 64 };
    gateway_rig self;
    client waits[MOST];
    client second;
    client third;
    int count = 0;
    start(&self, "'mcpServers':{" GOOD("a") "}}", 2);
    do { /* until each loop has one, so that one of them crosses loops */
        assert_true(count < MOST);
        client_open(&waits[count], &self);
        client_call(&waits[count++], "a.wait");
        wait_until(counted_calls() == count);
    } while (is_said("'answered':true,'connections':0,"));
    rig_configure(&self, with_admin("'mcpServers':{" GOOD_TOO("a") "}}"));
    EXPECT(POST("reload"), 200, "'changed':['a']");
    rig_configure(&self, with_admin("'mcpServers':{" GOOD_TOO("a") "," GOOD("b") "}}"));
    admin_client(&second);
    admin_client(&third);
    assert_true(client_send(&second, POST("reload")));
    assert_true(client_send(&third, POST("reload")));
    EXPECT(GET, 200, "'reloading':true"); /* both are in */
    client_close(&third);
    EXPECT(GET, 200, "'reloading':true");
    go(&self);
    for (int i = 0; i < count; i++) {
        assert_int_equal(client_reply(&waits[i]), 200);
        client_close(&waits[i]);
    }
    assert_int_equal(client_reply(&second), 200);
    assert_non_null(client_find(&second, "\"added\":[\"b\"]"));
    client_close(&second);
    wait_until(atomic_load(&self.reloaded) == 2);
    rig_close(&self);
}

/* The socket stays where the first configuration put it. */
static void a_reload_does_not_move_the_socket(void **state)
{
    (void)state;
    gateway_rig self;
    start(&self, "'mcpServers':{" GOOD("a") "}}", 1);
    rig_configure(&self, "{'admin':{'listen':[]},'mcpServers':{" GOOD("a") "}}");
    EXPECT(POST("reload"), 200, "'nextStart':['admin']");
    EXPECT(GET, 200, "'status':'ready'");
    rig_close(&self);
    assert_false(is_there());
}

/* ---- drain ----------------------------------------------------------------------------------- */

/* Calls end well, also when two ask for it: the second does not hurry. */
static void a_drain_with_a_call_under_way(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 3; workers += 2) {
        gateway_rig self;
        client waits;
        start(&self, "'mcpServers':{" GOOD("a") "}}", workers);
        client_open(&waits, &self);
        client_call(&waits, "a.wait");
        wait_until(rig_tally(&self) == 1);
        EXPECT(POST("drain"), 202, "{'status':'draining'}");
        EXPECT(POST("drain"), 202, "{'status':'draining'}");
        EXPECT(GET, 200, "'status':'draining'", "'calls':1,");
        EXPECT(POST("reload"), 409, "the gateway is draining");
        go(&self);
        assert_int_equal(client_reply(&waits), 200);
        assert_non_null(client_find(&waits, "good"));
        client_close(&waits);
        rig_join(&self);
        assert_false(is_there());
    }
}

static int open_folder(void **state)
{
    (void)state;
    loop *warm = NULL; /* what libuv opens once is open before anything is counted */
    assert_int_equal(loop_new(&warm), BAY_OK);
    loop_free(warm);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/socket", folder);
    return 0;
}

static int close_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    failing_memory.allowed = SIZE_MAX; /* until a test says otherwise */
    failing_memory.is_single = true;
    mem_set_hooks(
        &(mem_hooks){failing_memory_alloc, failing_memory_resize, failing_memory_release, NULL});
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_role_at_each_route),
        cmocka_unit_test(other_paths_do_not_exist),
        cmocka_unit_test(a_get_changes_nothing),
        cmocka_unit_test(what_a_page_could_send_is_refused),
        cmocka_unit_test(descendants_are_refused),
        cmocka_unit_test(descendants_take_no_places),
        cmocka_unit_test(a_second_gateway_is_told_so),
        cmocka_unit_test(a_default_that_is_taken_is_a_warning),
        cmocka_unit_test(all_loops_are_asked),
        cmocka_unit_test(a_loop_that_does_not_answer_is_named),
        cmocka_unit_test(an_end_in_the_middle_of_an_answer),
        cmocka_unit_test(readers_that_never_read),
        cmocka_unit_test(a_lack_of_memory_costs_one_answer),
        cmocka_unit_test(a_reload_says_what_changed),
        cmocka_unit_test(a_faulty_file_is_told_with_its_lines),
        cmocka_unit_test(reloads_at_one_time),
        cmocka_unit_test(a_reload_does_not_move_the_socket),
        cmocka_unit_test(a_drain_with_a_call_under_way),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}

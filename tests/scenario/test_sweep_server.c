/* A recorded client's bytes, given to a fresh server, over stdio and over HTTP, in each revision:
 *
 * - cut at every byte: in run k of STRIDE every request is cut wherever its position is k modulo
 *   STRIDE, so that over the runs each byte has been the first of a read once; and byte by byte.
 * The server must say the same, message by message. BAY_SWEEP_FULL=1 cuts once per run, at each
 * byte of the session in turn, which takes long.
 * - with each allocation of the server failing, alone and all from there on: what it says may be
 *   less, but it neither crashes nor hangs nor keeps anything, and after a single failure a new
 *   client is served. Every so-many-th allocation is taken, from BAY_SWEEP_OFFSET on (0);
 *   BAY_SWEEP_STEP=1 takes all of them. */
#include "support/sweep_relay.h"

#include <sys/ioctl.h>

#include "support/failing_memory.h"

enum { STRIDE = 48, STEP_ALONE = 5, STEP_ALL = 7, PATIENCE_MS = 10000 };

typedef struct replay {
    const recording *of;
    recording *live; /* items and tokens only */
    bay_server *server;
    int fds[RECORD_CONNECTIONS];
    dissector heard[RECORD_CONNECTIONS];
    struct hearing {
        struct replay *of;
        int connection;
    } hearings[RECORD_CONNECTIONS];
    bool is_lenient; /* what is missing is not waited for long */
    bool is_over;
} replay;

static void hear(void *user, part_kind kind, const char *text)
{
    struct hearing *self = user;
    recording_add_item(self->of->live, self->connection, kind, text);
}

static void read_answers(replay *self)
{
    char got[16384];
    for (int i = 0; i < RECORD_CONNECTIONS; i++) {
        while (self->fds[i] >= 0) {
            ssize_t len = recv(self->fds[i], got, sizeof(got), MSG_DONTWAIT);
            if (len <= 0) {
                break;
            }
            for (ssize_t k = 0; k < len; k++) {
                dissector_feed(&self->heard[i], got[k]);
            }
        }
    }
}

/* All that is due now. */
static void settle(replay *self)
{
    for (int left = 50; left > 0 && !self->is_over; left--) {
        struct pollfd polled = {.fd = bay_server_fd(self->server), .events = POLLIN};
        if (left < 50 && bay_server_wait_ms(self->server) != 0 && poll(&polled, 1, 0) == 0) {
            break;
        }
        self->is_over = bay_server_dispatch(self->server) != BAY_OK;
    }
    read_answers(self);
}

/* Turns until the server has said so much, or, where it may say less, for a few turns. */
static void await(replay *self, size_t items)
{
    int64_t end = sweep_now_ms() + PATIENCE_MS;
    int turns = 1;
    settle(self);
    while (self->live->item_count < items && !self->is_over) {
        if (self->is_lenient && turns-- == 0) {
            return;
        }
        if (sweep_now_ms() > end) {
            const item *last = &self->of->items[self->live->item_count];
            fail_msg("%s: nothing is said where there was \"%.200s\"", self->of->revision,
                     last->text);
        }
        int ms = bay_server_wait_ms(self->server);
        int most = self->is_lenient ? 1 : 100;
        struct pollfd polled = {.fd = bay_server_fd(self->server), .events = POLLIN};
        (void)poll(&polled, 1, ms >= 0 && ms < most ? ms : most);
        settle(self);
    }
}

static bool connection_open(replay *self, int connection)
{
    if (self->fds[connection] >= 0) {
        return true;
    }
    self->fds[connection] = tcp_connect(bay_server_port(self->server));
    self->hearings[connection] = (struct hearing){self, connection};
    self->heard[connection] =
        (dissector){.is_http = true, .handler = hear, .user = &self->hearings[connection]};
    return self->fds[connection] >= 0;
}

static void send_unit(replay *self, const unit *from, const cuts *at, size_t base)
{
    char *copy = malloc(from->len + 1);
    memcpy(copy, from->at, from->len);
    tokens_swap(&self->of->tokens, &self->live->tokens, copy, from->len);
    size_t done = 0;
    if (from->len == 0 && self->fds[from->connection] >= 0) { /* it hung up */
        close(self->fds[from->connection]);
        self->fds[from->connection] = -1;
        settle(self);
    }
    while (done < from->len && connection_open(self, from->connection)) {
        size_t next = cuts_next(at, done, from->len, base);
        if (send(self->fds[from->connection], copy + done, next, MSG_NOSIGNAL) != (ssize_t)next) {
            if (!self->is_lenient) {
                fail_msg("%s, connection %d: hung up on: %s", self->of->revision, from->connection,
                         strerror(errno));
            }
            break;
        }
        done += next;
        if (done < from->len) {
            settle(self);
        }
    }
    free(copy);
}

static char *normal(const item *from, const tokens *known)
{
    char *text = strdup(from->text);
    tokens_swap(known, NULL, text, strlen(text));
    blank_times(text);
    return text;
}

/* Connection by connection, the same messages in the same order. Behind them there may be what the
 * recorded client did not stay to hear. */
static void assert_same(const recording *was, const recording *is, const cuts *at)
{
    for (int i = 0; i < RECORD_CONNECTIONS; i++) {
        size_t k = 0;
        for (size_t n = 0; n < was->item_count; n++) {
            if (was->items[n].connection != i) {
                continue;
            }
            while (k < is->item_count && is->items[k].connection != i) {
                k++;
            }
            char *before = normal(&was->items[n], &was->tokens);
            char *now = k < is->item_count ? normal(&is->items[k++], &is->tokens) : strdup("");
            if (strcmp(before, now) != 0) {
                fail_msg("%s, connection %d, cut at %zu modulo %zu (%zu): not \"%s\" but \"%s\"",
                         was->revision, i, at->phase, at->stride, at->only_at, before, now);
            }
            free(before);
            free(now);
        }
    }
}

/* False: the server could not be opened (out of memory). Otherwise the caller closes. */
static bool replay_open(replay *self, const recording *of, bay_server *server, bool is_lenient)
{
    bay_diag diag = {.code = BAY_OK};
    int ends[2];
    memset(self, 0, sizeof(*self));
    self->of = of;
    self->server = server;
    self->is_lenient = is_lenient;
    for (int i = 0; i < RECORD_CONNECTIONS; i++) {
        self->fds[i] = -1;
    }
    bay_err err;
    if (of->is_http) {
        err = bay_server_listen(server, "127.0.0.1:0", &diag);
    } else {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        err = bay_server_pipe(server, ends[0], ends[0], &diag);
        close(ends[0]); /* the server has its own by now */
        self->fds[0] = ends[1];
        self->hearings[0] = (struct hearing){self, 0};
        self->heard[0] = (dissector){.handler = hear, .user = &self->hearings[0]};
    }
    if (err != BAY_OK) {
        if (!is_lenient || err != BAY_ERR_NOMEM) {
            fail_msg("%s", diag.text);
        }
        if (self->fds[0] >= 0) {
            close(self->fds[0]);
        }
        return false;
    }
    self->live = calloc(1, sizeof(*self->live));
    return true;
}

static void replay_run(replay *self, const cuts *at)
{
    size_t base = 0;
    for (size_t i = 0; i < self->of->unit_count && !self->is_over; i++) {
        await(self, self->of->units[i].items_before);
        send_unit(self, &self->of->units[i], at, base);
        base += self->of->units[i].len;
    }
    await(self, self->of->item_count);
}

static void replay_close(replay *self)
{
    for (int i = 0; i < RECORD_CONNECTIONS; i++) {
        if (self->fds[i] >= 0) {
            close(self->fds[i]);
        }
        dissector_fini(&self->heard[i]);
    }
    items_clear(self->live);
    free(self->live);
}

/* Until the server has come to its end: told once, it lets calls end; told twice, it does not. */
static void serve_out(bay_server *server, sweep_service *service)
{
    int64_t end = sweep_now_ms() + PATIENCE_MS;
    bay_server_stop(server);
    bay_err err = bay_server_dispatch(server);
    if (err == BAY_OK) {
        bay_server_stop(server);
    }
    while (err == BAY_OK || err == BAY_ERR_TIMEOUT) { /* TIMEOUT: over, but for a call */
        struct pollfd polled = {.fd = bay_server_fd(server), .events = POLLIN};
        (void)poll(&polled, 1, bay_server_wait_ms(server));
        (void)sweep_let_go(service); /* of what came last */
        err = bay_server_dispatch(server);
        if (sweep_now_ms() > end) {
            fail_msg("the server does not come to its end: %d", (int)err);
        }
    }
    assert_int_equal(err, BAY_ERR_EOF);
}

/* ---- cuts ------------------------------------------------------------------------------------ */

static void replay_cut(const recording *of, const cuts *at)
{
    replay self;
    sweep_service service;
    bay_server *server = sweep_server_new(&service);
    assert_true(replay_open(&self, of, server, false));
    replay_run(&self, at);
    assert_same(of, self.live, at);
    (void)sweep_let_go(&service);
    replay_close(&self);
    serve_out(server, &service);
    bay_server_free(server);
}

static void cut_each(bool is_http)
{
    bool is_full = getenv("BAY_SWEEP_FULL") != NULL;
    for (int i = 0; i < SWEEP_REVISIONS; i++) {
        const recording *of = recorded[is_http][i];
        int64_t began = sweep_now_ms();
        size_t all = recording_bytes(of, true);
        size_t runs = is_full ? all : STRIDE;
        cuts whole = {.only_at = all};
        cuts bytewise = {.stride = 1};
        replay_cut(of, &whole);
        replay_cut(of, &bytewise);
        for (size_t k = 0; k < runs; k++) {
            cuts at = {.stride = is_full ? 0 : STRIDE, .phase = is_full ? 0 : k, .only_at = k};
            replay_cut(of, &at);
        }
        printf("%s %s: %zu requests, %zu bytes, %zu answers and notifications, %zu runs, %d ms\n",
               of->revision, is_http ? "HTTP" : "stdio", of->unit_count, all, of->item_count,
               runs + 2, (int)(sweep_now_ms() - began));
    }
}

static void requests_on_stdio_are_cut_at_every_byte(void **state)
{
    (void)state;
    cut_each(false);
}

static void requests_over_http_are_cut_at_every_byte(void **state)
{
    (void)state;
    cut_each(true);
}

/* ---- no memory ------------------------------------------------------------------------------- */

/* A new client of a server that met a failure gets what the first one got at first. */
static void serves_afresh(const recording *of, bay_server *server, sweep_service *service,
                          size_t at)
{
    replay self;
    cuts whole = {.only_at = SIZE_MAX};
    recording head = *of; /* its first request, and what was answered before the second */
    head.unit_count = 1;
    head.item_count = of->units[1].items_before;
    if (!replay_open(&self, &head, server, false)) {
        fail_msg("%s, allocation %zu: the server is of no use after it", of->revision, at);
    }
    replay_run(&self, &whole);
    assert_same(&head, self.live, &whole);
    replay_close(&self);
    serve_out(server, service);
}

static void replay_starved(const recording *of, bool is_single, size_t at)
{
    replay self;
    sweep_service service;
    cuts whole = {.only_at = SIZE_MAX};
    bay_server *server = sweep_server_new(&service);
    bay_diag diag = {.code = BAY_OK};
    if (bay_server_check(server, &diag) != BAY_OK) {
        assert_int_equal(diag.code, BAY_ERR_NOMEM);
    } else {
        if (replay_open(&self, of, server, true)) {
            replay_run(&self, &whole);
            (void)sweep_let_go(&service);
            replay_close(&self);
            if (!self.is_over) { /* a stop is for the serving that comes, where there is none */
                serve_out(server, &service);
            }
        }
        if (is_single && failing_memory.has_failed) {
            serves_afresh(of, server, &service, at);
        }
    }
    bay_server_free(server);
    if (failing_memory.outstanding != 0) {
        fail_msg("%s, allocation %zu: %zu not given back", of->revision, at,
                 failing_memory.outstanding);
    }
}

static void starve_each(bool is_single)
{
    for (int i = 0; i < 2 * SWEEP_REVISIONS; i++) {
        const recording *of = recorded[i % 2][i / 2];
        int64_t began = sweep_now_ms();
        size_t runs = 0;
        size_t step = sweep_setting("BAY_SWEEP_STEP", is_single ? STEP_ALONE : STEP_ALL);
        size_t at = (sweep_setting("BAY_SWEEP_OFFSET", 0) + (size_t)i) % step;
        for (; is_single ? failing_memory_start_single(at) : failing_memory_start(at); at += step) {
            replay_starved(of, is_single, at);
            runs++;
        }
        printf("%s %s: %zu runs, to allocation %zu, %s, %d ms\n", of->revision,
               of->is_http ? "HTTP" : "stdio", runs, at - step,
               is_single ? "one failing" : "all failing from there", (int)(sweep_now_ms() - began));
        assert_true(runs > 40);
    }
}

static void each_allocation_fails_alone(void **state)
{
    (void)state;
    starve_each(true);
}

static void memory_ends_at_each_allocation(void **state)
{
    (void)state;
    starve_each(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_on_stdio_are_cut_at_every_byte),
        cmocka_unit_test(requests_over_http_are_cut_at_every_byte),
        cmocka_unit_test(each_allocation_fails_alone),
        cmocka_unit_test(memory_ends_at_each_allocation),
    };
    return cmocka_run_group_tests(tests, record_all, forget_all);
}

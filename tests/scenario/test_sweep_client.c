/* A recorded server's bytes, given to a fresh client, over stdio and over HTTP, in each revision:
 *
 * - cut at every byte: in run k of STRIDE what the server says is cut wherever its position is k
 *   modulo STRIDE, and the client has read the one part before the other is sent; and byte by byte.
 *   The session must bring, step by step, what it brought when it was recorded. BAY_SWEEP_FULL=1
 * cuts once per run, at each byte of the session in turn, which takes long.
 * - with each allocation of the client failing, alone and all from there on: the session's steps
 * may end with errors, but each ends, nothing crashes and nothing is kept. Every so-many-th
 * allocation is taken, from BAY_SWEEP_OFFSET on (0); BAY_SWEEP_STEP=1 takes all of them.
 *
 * The server is a thread that plays: each piece of its bytes waits until the client has sent as
 * many requests as had passed before it in the recording. Requests are recognised by their
 * beginning. */
#include "support/sweep_relay.h"

#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "support/failing_memory.h"

enum { STRIDE = 16, STEP_ALONE = 41, STEP_ALL = 17, KEY = 60, READ_MS = 100, NUDGE_MS = 3 };

typedef struct part_of_client {
    int fds[3]; /* to read, to write, the child's line (or -1) */
    int other;  /* the client's own end, which is in this process; or -1 */
    dissector heard;
    struct player *of;
} part_of_client;

typedef struct player {
    const recording *of;
    cuts at;
    bool is_lenient;
    int listener;
    int stop[2];
    char path[64];
    uint16_t port;
    part_of_client parts[RECORD_CONNECTIONS];
    int count;
    int *played_on; /* by unit: the part it came from; -1: not yet */
    size_t arrived;
    size_t next;   /* piece */
    size_t base;   /* bytes of the pieces before it */
    char odd[256]; /* a request that was not recorded */
    pthread_t thread;
} player;

/* ---- what the client says -------------------------------------------------------------------- */

static void key_of(const char *text, bool is_http, char *out, size_t size)
{
    const char *body = is_http ? strstr(text, "\r\n\r\n") : text;
    snprintf(out, size, "%.*s %.*s", is_http ? (int)strcspn(text, " ") : 0, text, KEY,
             body != NULL ? body : "");
}

static void take_request(void *user, part_kind kind, const char *text)
{
    part_of_client *part = user;
    player *self = part->of;
    char wanted[KEY + 32];
    char key[KEY + 32];
    (void)kind;
    key_of(text, self->of->is_http, wanted, sizeof(wanted));
    for (size_t i = 0; i < self->of->unit_count; i++) {
        key_of(self->of->units[i].at, self->of->is_http, key, sizeof(key));
        if (self->played_on[i] < 0 && self->of->units[i].len > 0 && strcmp(key, wanted) == 0) {
            self->played_on[i] = (int)(part - self->parts);
            self->arrived++;
            return;
        }
    }
    snprintf(self->odd, sizeof(self->odd), "%s", text);
    if (self->of->is_http) {
        static const char none[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        (void)write_all(part->fds[1], none, sizeof(none) - 1);
    }
}

static void hang_up(part_of_client *part)
{
    for (int i = 0; i < 3; i++) {
        if (part->fds[i] >= 0 && (i != 1 || part->fds[1] != part->fds[0])) {
            close(part->fds[i]);
        }
    }
    part->fds[0] = part->fds[1] = part->fds[2] = part->other = -1;
}

static void take_bytes(part_of_client *part)
{
    char got[16384];
    ssize_t len = read(part->fds[0], got, sizeof(got));
    if (len <= 0) {
        hang_up(part);
        return;
    }
    for (ssize_t i = 0; i < len; i++) {
        dissector_feed(&part->heard, got[i]);
    }
}

/* The client lives in this process: its end of the connection is one of our own descriptors. */
static int find_other(int fd)
{
    struct sockaddr_in theirs;
    socklen_t len = sizeof(theirs);
    if (getpeername(fd, (struct sockaddr *)&theirs, &len) != 0) {
        return -1;
    }
    for (int at = 3; at < 256; at++) {
        struct sockaddr_in own = {.sin_family = AF_UNSPEC};
        len = sizeof(own);
        if (at != fd && getsockname(at, (struct sockaddr *)&own, &len) == 0 &&
            own.sin_family == AF_INET && own.sin_port == theirs.sin_port) {
            return at;
        }
    }
    return -1;
}

static void welcome(player *self)
{
    int ends[3] = {-1, -1, -1};
    if (self->of->is_http) {
        int on = 1;
        ends[0] = ends[1] = accept4(self->listener, NULL, NULL, SOCK_CLOEXEC);
        setsockopt(ends[0], IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof(on));
    } else if (!hand_take(self->listener, ends)) {
        return;
    }
    part_of_client *part = &self->parts[self->count % RECORD_CONNECTIONS];
    if (self->count >= RECORD_CONNECTIONS) { /* only one that lacks memory comes so often */
        hang_up(part);
        dissector_fini(&part->heard);
    }
    *part = (part_of_client){.fds = {ends[0], ends[1], ends[2]},
                             .other = self->of->is_http ? find_other(ends[0]) : -1,
                             .of = self};
    part->heard = (dissector){
        .is_http = self->of->is_http, .is_client = true, .handler = take_request, .user = part};
    if (!self->of->is_http && self->count > 0) {
        hang_up(part); /* a second process plays nothing */
    }
    self->count++;
}

/* ---- what the server says -------------------------------------------------------------------- */

/* Until the client has read what was written. */
static void await_reading(const part_of_client *part)
{
    int64_t end = sweep_now_ms() + READ_MS;
    for (;;) {
        int left = 0;
        bool is_known = part->other >= 0 ? ioctl(part->other, FIONREAD, &left) == 0
                                         : ioctl(part->fds[1], SIOCOUTQ, &left) == 0 ||
                                               ioctl(part->fds[1], FIONREAD, &left) == 0;
        if (!is_known || left == 0 || sweep_now_ms() > end) {
            return;
        }
        sched_yield();
    }
}

static void play_piece(player *self, const piece *from, part_of_client *on)
{
    size_t done = 0;
    while (done < from->bytes.len && on->fds[1] >= 0) {
        size_t next = cuts_next(&self->at, done, from->bytes.len, self->base);
        if (send(on->fds[1], from->bytes.at + done, next, MSG_NOSIGNAL) != (ssize_t)next &&
            !write_all(on->fds[1], from->bytes.at + done, next)) {
            return;
        }
        done += next;
        if (done < from->bytes.len) {
            await_reading(on);
        }
    }
}

/* False: the next piece has to wait. `must_go_on`: it has waited enough. */
static bool play(player *self, bool must_go_on)
{
    if (self->next == self->of->piece_count) {
        return false;
    }
    const piece *from = &self->of->pieces[self->next];
    int on = self->of->is_http ? self->played_on[from->unit] : self->count > 0 ? 0 : -1;
    if (!must_go_on && (on < 0 || self->arrived < from->requests_before)) {
        return false;
    }
    if (on >= 0) {
        play_piece(self, from, &self->parts[on % RECORD_CONNECTIONS]);
    }
    self->base += from->bytes.len;
    self->next++;
    return true;
}

static void *player_main(void *argument)
{
    player *self = argument;
    bool is_idle = false;
    for (;;) {
        struct pollfd polled[2 + RECORD_CONNECTIONS] = {{.fd = self->stop[0], .events = POLLIN},
                                                        {.fd = self->listener, .events = POLLIN}};
        int count = self->count < RECORD_CONNECTIONS ? self->count : RECORD_CONNECTIONS;
        while (play(self, is_idle && self->is_lenient && self->arrived > 0)) {
            is_idle = false;
        }
        for (int i = 0; i < count; i++) {
            polled[2 + i] = (struct pollfd){.fd = self->parts[i].fds[0], .events = POLLIN};
        }
        int ready = poll(polled, (nfds_t)(2 + count), self->is_lenient ? NUDGE_MS : -1);
        is_idle = ready == 0;
        if (ready <= 0) {
            continue;
        }
        if (polled[0].revents != 0) {
            return NULL;
        }
        for (int i = 0; i < count; i++) {
            if (polled[2 + i].revents != 0 && self->parts[i].fds[0] >= 0) {
                take_bytes(&self->parts[i]);
            }
        }
        if (polled[1].revents != 0) {
            welcome(self);
        }
    }
}

static player *player_start(const recording *of, const cuts *at, bool is_lenient)
{
    player *self = calloc(1, sizeof(*self));
    assert_non_null(self);
    self->of = of;
    self->at = *at;
    self->is_lenient = is_lenient;
    self->played_on = malloc(of->unit_count * sizeof(int));
    for (size_t i = 0; i < of->unit_count; i++) {
        self->played_on[i] = -1;
    }
    self->listener =
        of->is_http ? tcp_listen(&self->port) : hand_listen(self->path, sizeof(self->path));
    assert_int_equal(pipe(self->stop), 0);
    assert_int_equal(pthread_create(&self->thread, NULL, player_main, self), 0);
    return self;
}

static void player_stop(player *self)
{
    assert_int_equal(write(self->stop[1], "x", 1), 1);
    pthread_join(self->thread, NULL);
    for (int i = 0; i < self->count && i < RECORD_CONNECTIONS; i++) {
        hang_up(&self->parts[i]);
        dissector_fini(&self->parts[i].heard);
    }
    close(self->listener);
    close(self->stop[0]);
    close(self->stop[1]);
    if (self->path[0] != '\0') {
        (void)unlink(self->path);
    }
    free(self->played_on);
    free(self);
}

static bay_client *connect_to(const player *self, bay_client_options *options)
{
    char target[512];
    bay_client *client = NULL;
    record_target(self->of, self->port, self->path, target, sizeof(target));
    bay_client_options_transport(options, record_is_sse_2024(self->of) ? BAY_TRANSPORT_SSE_2024
                                                                       : BAY_TRANSPORT_AUTO);
    if (bay_client_connect(target, options, &client, NULL) != BAY_OK) {
        assert_null(client);
    }
    bay_client_options_free(options);
    return client;
}

/* ---- cuts ------------------------------------------------------------------------------------ */

static sweep_transcript told;

static void assert_told_the_same(const player *self)
{
    const char *was = self->of->told.text;
    const char *is = told.text;
    while (*was != '\0' && strncmp(was, is, strcspn(was, "\n") + 1) == 0) {
        is += strcspn(was, "\n") + 1;
        was += strcspn(was, "\n") + 1;
    }
    if (*was != '\0' || *is != '\0') {
        fail_msg("%s, cut at %zu modulo %zu (%zu), piece %zu of %zu: not \"%.*s\" but \"%.*s\"; "
                 "unexpected: %s",
                 self->of->revision, self->at.phase, self->at.stride, self->at.only_at, self->next,
                 self->of->piece_count, (int)strcspn(was, "\n"), was, (int)strcspn(is, "\n"), is,
                 self->odd);
    }
}

static void replay_cut(const recording *of, const cuts *at)
{
    player *server = player_start(of, at, false);
    memset(&told, 0, sizeof(told));
    bay_client_options *options = sweep_options(&told, of->revision);
    bay_client_options_timeout(options, 5000, 20000);
    bay_client *client = connect_to(server, options);
    if (client == NULL) {
        fail_msg("%s, cut at %zu modulo %zu (%zu): no connection", of->revision, at->phase,
                 at->stride, at->only_at);
    }
    sweep_session(client, &told, 5000);
    assert_told_the_same(server);
    bay_client_close(client);
    player_stop(server);
}

static void cut_each(bool is_http)
{
    bool is_full = getenv("BAY_SWEEP_FULL") != NULL;
    for (int i = 0; i < SWEEP_REVISIONS; i++) {
        const recording *of = recorded[is_http][i];
        int64_t began = sweep_now_ms();
        size_t all = recording_bytes(of, false);
        size_t runs = is_full ? all : STRIDE;
        cuts whole = {.only_at = all};
        cuts bytewise = {.stride = 1};
        replay_cut(of, &whole);
        replay_cut(of, &bytewise);
        for (size_t k = 0; k < runs; k++) {
            cuts at = {.stride = is_full ? 0 : STRIDE, .phase = is_full ? 0 : k, .only_at = k};
            replay_cut(of, &at);
        }
        printf("%s %s: %zu bytes in %zu pieces, %d steps, %zu runs, %d ms\n", of->revision,
               is_http ? "HTTP" : "stdio", all, of->piece_count, of->told.steps, runs + 2,
               (int)(sweep_now_ms() - began));
    }
}

static void answers_on_stdio_are_cut_at_every_byte(void **state)
{
    (void)state;
    cut_each(false);
}

static void answers_over_http_are_cut_at_every_byte(void **state)
{
    (void)state;
    cut_each(true);
}

/* ---- no memory ------------------------------------------------------------------------------- */

static void replay_starved(const recording *of, bool is_single, size_t at, int *most_well)
{
    cuts whole = {.only_at = SIZE_MAX};
    int64_t began = sweep_now_ms();
    player *server = player_start(of, &whole, true);
    memset(&told, 0, sizeof(told));
    bay_client_options *options = sweep_options(&told, of->revision);
    bay_client_options_timeout(options, 80, 600); /* long enough for a machine with other work */
    bay_client_options_reconnect(options, 1, 1);
    bay_client *client = options != NULL ? connect_to(server, options) : NULL;
    if (client != NULL) {
        sweep_session(client, &told, 30);
    }
    bay_client_close(client);
    player_stop(server);
    if (getenv("BAY_SWEEP_TOLD") != NULL && sweep_now_ms() - began > 600) {
        printf("%s %d: allocation %zu: %d ms\n%s\n", of->revision, of->is_http, at,
               (int)(sweep_now_ms() - began), told.text);
    }
    *most_well = told.well > *most_well ? told.well : *most_well;
    if (failing_memory.outstanding != 0) {
        fail_msg("%s, allocation %zu (%s): %zu not given back", of->revision, at,
                 is_single ? "alone" : "and all after it", failing_memory.outstanding);
    }
}

static void starve_each(bool is_single)
{
    for (int i = 0; i < 2 * SWEEP_REVISIONS; i++) {
        const recording *of = recorded[i % 2][i / 2];
        int64_t began = sweep_now_ms();
        size_t runs = 0;
        int most_well = 0;
        size_t step = sweep_setting("BAY_SWEEP_STEP", is_single ? STEP_ALONE : STEP_ALL);
        size_t at = (sweep_setting("BAY_SWEEP_OFFSET", 0) + (size_t)i) % step;
        for (; is_single ? failing_memory_start_single(at) : failing_memory_start(at); at += step) {
            replay_starved(of, is_single, at, &most_well);
            runs++;
        }
        printf("%s %s: %zu runs, to allocation %zu, %s, at best %d steps well, %d ms\n",
               of->revision, of->is_http ? "HTTP" : "stdio", runs, at - step,
               is_single ? "one failing" : "all failing from there", most_well,
               (int)(sweep_now_ms() - began));
        assert_true(runs > 5 && most_well > 10);
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
        cmocka_unit_test(answers_on_stdio_are_cut_at_every_byte),
        cmocka_unit_test(answers_over_http_are_cut_at_every_byte),
        cmocka_unit_test(each_allocation_fails_alone),
        cmocka_unit_test(memory_ends_at_each_allocation),
    };
    return cmocka_run_group_tests(tests, record_all, forget_all);
}

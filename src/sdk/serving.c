/* Serving, in pieces: what a server listens on, what it is piped to, who is attached in process,
 * and how all of it ends.
 *
 *   (nothing) ──listen, pipe, run──► SERVING ──stop, or nothing left──► DRAINING ──► ENDING ──►
 * gone └─ a second stop ─┘
 *
 * DRAINING: no new connections, open streams get their end, what is under way is answered, for at
 * most SERVER_DRAIN_MS. ENDING: what is still connected is cut; handlers on other threads let go of
 * their calls, for at most SERVER_DRAIN_MS again: after that they are given up on (BAY_TIMEOUT),
 * and the server stays as it is, because they still hold parts of it.
 *
 * Invariants
 * - Loop and engine live while `users` > 0. The server's own serving (listens, pipes) is one user,
 *   each client in process is one.
 * - Nothing of this is freed inside a turn of the loop. */
#include "sdk/serving.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/server_parts.h"
#include "transport/mcp_http_face.h"
#include "transport/mcp_stdio.h"

enum { LINGER_MS = 60000, TICK_MS = 1000, SERVER_MAX_PIPES = 1024 };

/* Two descriptors of the caller's. */
typedef struct pipe_pair {
    struct pipe_pair *next;
    serving *of;
    mcp_stdio *stdio; /* NULL: over */
    int descriptors[2];
    int flags[2]; /* to be set back: -1 nothing */
} pipe_pair;

/* Addresses that are guarded alike. */
typedef struct door {
    serving *of;
    http_server *http; /* NULL: nothing is listened on */
    http_front *front;
    http_face *face;
    bool is_drained;
} door;

typedef enum serving_phase { SERVING, DRAINING, ENDING } serving_phase;

struct serving {
    bay_server *server;
    loop *loop;
    uint32_t users;
    bool is_own_user; /* the server itself is one of them */
    bool is_turning;
    bool had_ways; /* something was listened on, or piped */
    bool is_cut;   /* the carriers are gone */
    serving_phase phase;
    door doors[2];      /* [1]: loopback addresses */
    listen_names names; /* of loopback addresses */
    uint16_t port;
    pipe_pair *pipes;
    size_t pipe_count;
    size_t open_pipes;
    loop_timer tick;
    loop_timer patience; /* of DRAINING, then of ENDING */
    bool is_impatient;   /* it ran out */
};

/* ---- the engine and its loop */

static void tick(void *argument)
{
    serving *self = argument;
    uint64_t now = loop_now_ms(self->loop);
    uint64_t due = mcp_server_tick(self->server->engine, now);
    uint64_t after = due > now && due - now < TICK_MS ? due - now : due <= now ? 1 : TICK_MS;
    err_ignore(loop_timer_start(self->loop, &self->tick, after)); /* it has room: it was armed */
}

static void run_out(void *argument)
{
    serving *self = argument;
    self->is_impatient = true;
}

static void be_patient(serving *self)
{
    self->is_impatient = loop_timer_start(self->loop, &self->patience, self->server->drain_ms) !=
                         BAY_OK; /* else until then */
}

static bay_err open_engine(bay_server *server)
{
    uint64_t body = sdk_server_setting(server, BAY_MAX_BODY_BYTES);
    call_door_init(&server->door);
    server->door.timeout_ms = (uint32_t)sdk_server_setting(server, BAY_CALL_TIMEOUT_MS);
    server->door.wall_ms = loop_time_ms;
    mcp_server_options options = {
        .name = str_of(server->name),
        .title = str_of(server->title),
        .version = str_of(server->version),
        .instructions = str_of(server->instructions),
        .website = str_of(server->website),
        .icons = server->icons,
        .oldest = server->oldest,
        .newest = server->newest,
        .max_sessions = (uint32_t)sdk_server_setting(server, BAY_MAX_SESSIONS),
        .session_idle_ms = (uint32_t)sdk_server_setting(server, BAY_SESSION_IDLE_MS),
        .max_requests = (uint32_t)sdk_server_setting(server, BAY_MAX_REQUESTS),
        .ask_timeout_ms = (uint32_t)sdk_server_setting(server, BAY_QUESTION_TIMEOUT_MS),
        .door = &server->door,
        .json = {body > 64 << 20 ? body : 64 << 20, 64, 1 << 20},
    };
    return mcp_server_new(&options, &sdk_server_service, server, &server->engine);
}

static void ring_stop(void *argument);

static void serving_free(serving *self)
{
    bay_server *server = self->server;
    sdk_tasks_free(server);
    sdk_announcements_close(server);
    mcp_server_free(server->engine);
    server->engine = NULL;
    loop_free(self->loop);
    server->loop = NULL;
    while (self->pipes != NULL) {
        pipe_pair *next = self->pipes->next;
        for (int i = 0; i < 2; i++) {
            if (self->pipes->flags[i] >= 0) {
                (void)fcntl(self->pipes->descriptors[i], F_SETFL, self->pipes->flags[i]);
            }
        }
        mem_free(self->pipes);
        self->pipes = next;
    }
    bell_mute(&server->stop); /* what stopped this must not stop the next */
    server->serving = NULL;
    mem_free(self);
}

static bay_err serving_new(bay_server *server, bay_diag *diag)
{
    serving *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_NOMEM;
    }
    self->server = server;
    bay_err err = sdk_server_render(server);
    if (err == BAY_OK) {
        err = loop_new(&self->loop);
    }
    if (err != BAY_OK) {
        mem_free(self);
        return err;
    }
    server->serving = self;
    server->loop = self->loop;
    loop_set_log(self->loop, server->log.sink != NULL ? &server->log : NULL);
    loop_timer_init(&self->tick, tick, self);
    loop_timer_init(&self->patience, run_out, self);
    err = open_engine(server);
    if (err == BAY_OK) {
        err = bell_hang(&server->stop, self->loop, ring_stop, self);
    }
    if (err == BAY_OK) {
        err = loop_timer_start(self->loop, &self->tick, TICK_MS);
    }
    if (err == BAY_OK) {
        err = sdk_tasks_open(server, diag);
    }
    if (err != BAY_OK) {
        serving_free(self);
        return err;
    }
    loop_hold(self->loop); /* a turn waits for the bell, even when nothing else is open */
    sdk_announcements_open(server, self->loop);
    return BAY_OK;
}

bay_err sdk_serving_open(bay_server *server, bay_diag *diag)
{
    bay_err err = bay_server_check(server, diag);
    if (err != BAY_OK) {
        return err;
    }
    if (server->serving == NULL) {
        bay_diag why = {.code = BAY_OK};
        err = serving_new(server, &why);
        if (err != BAY_OK) {
            return diag_set(diag, err, "the server cannot begin: %s",
                            why.code != BAY_OK ? why.text : bay_err_text(err));
        }
    }
    server->serving->users++;
    return BAY_OK;
}

void sdk_serving_close(bay_server *server)
{
    serving *self = server->serving;
    CHECK(self != NULL && self->users > 0);
    if (--self->users > 0) {
        return; /* always so inside a turn of the server's own */
    }
    sdk_tasks_stop(server);
    be_patient(self);
    while (server->calls_under_way > 0 && !self->is_impatient) {
        loop_turn(self->loop, -1);
    }
    if (server->calls_under_way > 0) {
        SERVER_LOG(server, LOG_ERROR, "server",
                   "a handler did not come to an end; its server is kept for it");
        return;
    }
    serving_free(self);
}

loop *sdk_serving_loop(bay_server *server)
{
    return server->loop;
}

mcp_server *sdk_serving_engine(bay_server *server)
{
    return server->engine;
}

/* The server's own serving becomes a user. */
static bay_err open_own(bay_server *server, bay_diag *diag)
{
    if (server != NULL && server->serving != NULL && server->serving->is_own_user) {
        if (server->serving->phase != SERVING) {
            return diag_set(diag, BAY_STATE, "the server is being stopped");
        }
        return BAY_OK;
    }
    bay_err err = sdk_serving_open(server, diag);
    if (err == BAY_OK) {
        server->serving->is_own_user = true;
        server->serving->phase = SERVING;
        server->serving->is_cut = false;
        server->has_served = true;
    }
    return err;
}

/* Undoes open_own when it was for nothing. */
static void close_own_if_idle(bay_server *server)
{
    serving *self = server->serving;
    if (!self->had_ways && !self->is_turning) {
        self->is_own_user = false;
        sdk_serving_close(server);
    }
}

/* ---- HTTP */

/* Also for a program that sets or removes bay_server_identify while it serves. */
static bool door_identify(void *user, const front_request *request,
                          const auth_principal **out_principal, front_refusal *out)
{
    const door *self = user;
    const bay_server *server = self->of->server;
    if (server->identify != NULL) {
        return sdk_peer_identify(server, request->exchange, out_principal, out);
    }
    return server->is_open || self == &self->of->doors[1];
}

/* Of exchanges that wait or come from another loop: there is one engine, whatever the path. */
static mcp_server *door_engine(void *user, bay_str path)
{
    const door *self = user;
    (void)path;
    return self->of->server->engine;
}

static bool serve_endpoint(void *user, const front_request *request)
{
    door *self = user;
    http_face_serve(self->face, request->exchange, self->of->server->engine, request->principal);
    return true;
}

static bool serve_sse(void *user, const front_request *request)
{
    door *self = user;
    http_face_serve_sse(self->face, request->exchange, self->of->server->engine,
                        request->principal);
    return true;
}

static bool serve_message(void *user, const front_request *request)
{
    door *self = user;
    http_face_serve_message(self->face, request->exchange, request->principal);
    return true;
}

#define MESSAGES "/messages"

static const front_row rows[] = {
    {STR_INIT("/mcp"), false, FRONT_CALLER, &http_face_cors, serve_endpoint, NULL},
    {STR_INIT("/"), false, FRONT_CALLER, &http_face_cors, serve_endpoint, NULL},
    {STR_INIT("/sse"), false, FRONT_CALLER, &http_face_sse_cors, serve_sse, NULL},
    {STR_INIT("/mcp/sse"), false, FRONT_CALLER, &http_face_sse_cors, serve_sse, NULL},
    {STR_INIT(MESSAGES), false, FRONT_CALLER, &http_face_message_cors, serve_message, NULL},
};

static void door_free(door *self)
{
    if (self->http != NULL) {
        http_server_free(self->http);
    }
    front_free(self->front);
    http_face_free(self->face);
    self->http = NULL;
    self->front = NULL;
    self->face = NULL;
}

static bay_err door_open(door *self, serving *of, bool is_loopback)
{
    http_face_options face = {.engine = door_engine, .user = self, .messages_path = MESSAGES};
    front_options options = {
        .rows = rows,
        .row_count = ARRAY_LEN(rows),
        .is_loopback = is_loopback,
        .names = &of->names,
        .identify = door_identify,
        .user = self,
    };
    self->of = of;
    self->is_drained = false;
    bay_err err = http_face_new(of->loop, &face, &self->face);
    if (err == BAY_OK) {
        err = front_new(&options, &self->front);
    }
    http_server_options http = {
        .limits = http_server_default_limits,
        .handler = &front_handler,
        .user = self->front,
        .is_local_only = is_loopback,
    };
    http.limits.body_bytes = sdk_server_setting(of->server, BAY_MAX_BODY_BYTES);
    http.limits.connections = (uint32_t)sdk_server_setting(of->server, BAY_MAX_CONNECTIONS);
    http.limits.reply_bytes = sdk_server_setting(of->server, BAY_MAX_REPLY_BYTES);
    if (err == BAY_OK) {
        err = http_server_new(of->loop, &http, &self->http);
    }
    if (err != BAY_OK) {
        door_free(self);
    }
    return err;
}

bay_err bay_server_listen(bay_server *server, const char *address, bay_diag *diag)
{
    bay_str at = str_of(address);
    bool is_loopback = false;
    bay_err err = bay_server_check(server, diag);
    if (err == BAY_OK) {
        listen_policy policy = sdk_server_policy(server);
        err = listen_policy_admit(&policy, at, &is_loopback, diag);
    }
    if (err == BAY_OK) {
        err = open_own(server, diag);
    }
    if (err != BAY_OK) {
        return err;
    }
    serving *self = server->serving;
    door *way = &self->doors[is_loopback ? 1 : 0];
    bool is_first_here = way->http == NULL;
    if (is_first_here) {
        err = door_open(way, self, is_loopback);
        if (err != BAY_OK) {
            err = diag_set(diag, err, "cannot listen on %.100s: %s", address, bay_err_text(err));
        }
    }
    if (err == BAY_OK) {
        err = http_server_listen(way->http, at, diag);
        if (err != BAY_OK && is_first_here) {
            door_free(way);
        }
    }
    if (err != BAY_OK) {
        close_own_if_idle(server);
        return err;
    }
    if (is_loopback) {
        listen_names_add(&self->names, at);
    }
    if (self->port == 0) {
        self->port = http_server_port(way->http);
    }
    self->had_ways = true;
    return BAY_OK;
}

uint16_t bay_server_port(const bay_server *server)
{
    return server != NULL && server->serving != NULL ? server->serving->port : 0;
}

/* ---- pipes */

static void pipe_done(void *user)
{
    pipe_pair *self = user;
    mcp_stdio *stdio = self->stdio;
    self->stdio = NULL;
    self->of->open_pipes--;
    mcp_stdio_free(stdio);
}

/* A descriptor for the line streams, which close all but the standard three, and set those back. */
static int lend(pipe_pair *self, int which, int descriptor)
{
    self->descriptors[which] = descriptor;
    self->flags[which] = -1;
    if (descriptor <= STDERR_FILENO) {
        return descriptor;
    }
    self->flags[which] = fcntl(descriptor, F_GETFL);
    return fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

static bay_err pipe_open(pipe_pair *self, int in, int out)
{
    int lent_in = lend(self, 0, in);
    int lent_out = lend(self, 1, out);
    if (lent_in < 0 || lent_out < 0) {
        if (lent_in > STDERR_FILENO) {
            close(lent_in);
        }
        if (lent_out > STDERR_FILENO) {
            close(lent_out);
        }
        return BAY_IO;
    }
    serving *of = self->of;
    return mcp_stdio_new(of->loop, of->server->engine, lent_in, lent_out, LINGER_MS, pipe_done,
                         self, &self->stdio);
}

bay_err bay_server_pipe(bay_server *server, int in, int out, bay_diag *diag)
{
    if (in < 0 || out < 0) {
        return diag_set(diag, BAY_INVALID, "a pipe is two open descriptors");
    }
    bay_err err = open_own(server, diag);
    if (err != BAY_OK) {
        return err;
    }
    serving *self = server->serving;
    pipe_pair *pair = NULL;
    if (self->pipe_count >= SERVER_MAX_PIPES) {
        err = BAY_LIMIT;
    } else {
        pair = mem_zalloc(sizeof(*pair));
        err = pair != NULL ? BAY_OK : BAY_NOMEM;
    }
    if (err == BAY_OK) {
        pair->of = self;
        err = pipe_open(pair, in, out);
    }
    if (err != BAY_OK) {
        mem_free(pair);
        close_own_if_idle(server);
        return diag_set(diag, err, "cannot serve on descriptors %d and %d: %s", in, out,
                        bay_err_text(err));
    }
    pair->next = self->pipes;
    self->pipes = pair;
    self->pipe_count++;
    self->open_pipes++;
    self->had_ways = true;
    return BAY_OK;
}

/* ---- the end */

static void door_drained(void *argument)
{
    door *self = argument;
    self->is_drained = true;
}

static void begin_drain(serving *self)
{
    self->phase = DRAINING;
    sdk_tasks_stop(self->server);
    be_patient(self);
    for (size_t i = 0; i < ARRAY_LEN(self->doors); i++) {
        if (self->doors[i].http != NULL) {
            http_face_close_streams(self->doors[i].face);
            http_server_drain(self->doors[i].http, self->server->drain_ms, door_drained,
                              &self->doors[i]);
        }
    }
    for (pipe_pair *at = self->pipes; at != NULL; at = at->next) {
        if (at->stdio != NULL) {
            mcp_stdio_end(at->stdio, self->server->drain_ms);
        }
    }
}

static void begin_end(serving *self)
{
    self->phase = ENDING;
    sdk_tasks_stop(self->server);
    be_patient(self);
}

static void ring_stop(void *argument)
{
    serving *self = argument;
    if (!self->is_own_user) {
        return; /* clients in process are all there is: nothing of ours to stop */
    }
    if (self->phase == SERVING) {
        begin_drain(self);
    } else if (self->phase == DRAINING) {
        begin_end(self);
    }
}

static bool has_open_ways(const serving *self)
{
    bool is_open = self->open_pipes > 0;
    for (size_t i = 0; i < ARRAY_LEN(self->doors); i++) {
        is_open = is_open || (self->doors[i].http != NULL && !self->doors[i].is_drained);
    }
    return is_open;
}

/* Not inside a turn: carriers may be freed. */
static void cut(serving *self)
{
    if (self->is_cut) {
        return;
    }
    self->is_cut = true;
    for (pipe_pair *at = self->pipes; at != NULL; at = at->next) {
        mcp_stdio_free(at->stdio);
        at->stdio = NULL;
    }
    self->open_pipes = 0;
    for (size_t i = 0; i < ARRAY_LEN(self->doors); i++) {
        door_free(&self->doors[i]);
    }
    if (self->server->engine != NULL) {
        mcp_server_end_http_sessions(self->server->engine); /* who asked its client asks no more */
    }
    self->port = 0;
}

/* Between two turns: BAY_OK goes on, BAY_EOF: it is over and `server->serving` may be gone,
 * BAY_TIMEOUT: over but for handlers that do not end. */
static bay_err look(bay_server *server)
{
    serving *self = server->serving;
    bool has_company = self->users > 1;
    if (self->phase == SERVING && !has_open_ways(self) && !has_company) {
        begin_end(self);
    } else if (self->phase == DRAINING && (!has_open_ways(self) || self->is_impatient)) {
        begin_end(self);
    }
    if (self->phase != ENDING) {
        return BAY_OK;
    }
    cut(self);
    if (!has_company && server->calls_under_way > 0) {
        if (!self->is_impatient) {
            return BAY_OK;
        }
        be_patient(self); /* for whoever tries again */
        return BAY_TIMEOUT;
    }
    loop_timer_stop(self->loop, &self->patience);
    self->is_own_user = false;
    self->had_ways = false;
    sdk_serving_close(server);
    return BAY_EOF;
}

static bay_err turn(bay_server *server, int64_t timeout_ms)
{
    serving *self = server->serving;
    self->is_turning = true;
    loop_turn(self->loop, timeout_ms);
    self->is_turning = false;
    return look(server);
}

bay_err bay_server_run(bay_server *server, bay_diag *diag)
{
    if (server == NULL) {
        return diag_set(diag, BAY_NOMEM, "%s", bay_err_text(BAY_NOMEM));
    }
    serving *self = server->serving;
    if (self == NULL || !self->is_own_user) {
        bay_err err = bay_server_check(server, diag);
        return err != BAY_OK ? err
                             : diag_set(diag, BAY_STATE,
                                        "there is nothing to serve on: bay_server_listen or "
                                        "bay_server_pipe comes first");
    }
    if (self->is_turning) {
        return diag_set(diag, BAY_STATE, "the server is running already");
    }
    bay_err err = look(server);
    while (err == BAY_OK) {
        err = turn(server, -1);
    }
    if (err == BAY_TIMEOUT) {
        return diag_set(diag, err, "a handler did not come to an end");
    }
    return BAY_OK;
}

void bay_server_stop(bay_server *server)
{
    if (server != NULL) {
        bell_ring(&server->stop);
    }
}

int bay_server_fd(const bay_server *server)
{
    return server != NULL && server->serving != NULL ? loop_fd(server->loop) : -1;
}

int bay_server_wait_ms(const bay_server *server)
{
    if (server == NULL || server->serving == NULL) {
        return -1;
    }
    const serving *self = server->serving;
    bool is_due = self->is_own_user && self->phase == SERVING && !has_open_ways(self) &&
                  self->users == 1; /* dispatch has the end to tell */
    return is_due ? 0 : loop_wait_ms(server->loop);
}

bay_err bay_server_dispatch(bay_server *server)
{
    if (server == NULL || (server->serving == NULL && !server->has_served)) {
        return BAY_STATE;
    }
    if (server->serving == NULL || !server->serving->is_own_user) {
        return BAY_EOF;
    }
    return server->serving->is_turning ? BAY_STATE : turn(server, 0);
}

bool sdk_serving_abandon(bay_server *server)
{
    serving *self = server->serving;
    if (self == NULL) {
        return true;
    }
    if (self->is_turning || self->users > (self->is_own_user ? 1u : 0u)) {
        return false;
    }
    cut(self);
    if (!self->is_own_user) {
        self->users++; /* an earlier end was given up on: once more */
    }
    self->is_own_user = false;
    sdk_serving_close(server);
    if (server->serving == NULL) {
        return true;
    }
    self->users++; /* bay_server_run may still see to its end */
    self->is_own_user = true;
    begin_end(self);
    return false;
}

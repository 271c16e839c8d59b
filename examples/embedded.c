/* A server inside a program that has a life of its own: an epoll loop with a clock and a signal, in
 * which clients over HTTP are just one more descriptor; and the program as its own client.
 *
 *     embedded [ADDRESS:PORT] */
#include <patchbay/client.h>
#include <patchbay/server.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

typedef struct program {
    bay_server *server;
    uint64_t beats; /* what it lives for */
    int epoll;
    int clock;
    int signals;
} program;

/* Handlers run inside bay_server_dispatch, on the program's own thread: no locks. */
static void tell_beats(bay_call *call, void *user)
{
    const program *self = user;
    bay_call_replyf(call, "%llu beats so far", (unsigned long long)self->beats);
}

static bool watch(program *self, int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
    return descriptor >= 0 && epoll_ctl(self->epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

static bool start(program *self)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    struct itimerspec beat = {{0, 100000000}, {0, 100000000}};
    self->epoll = epoll_create1(EPOLL_CLOEXEC);
    self->clock = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    self->signals = signalfd(-1, &ends, SFD_CLOEXEC);
    return self->epoll >= 0 && watch(self, self->clock) && watch(self, self->signals) &&
           watch(self, bay_server_fd(self->server)) &&
           timerfd_settime(self->clock, 0, &beat, NULL) == 0;
}

/* The same tool, without a socket between. */
static void ask_oneself(program *self)
{
    bay_client *client;
    bay_reply *reply;
    bay_diag diag;
    if (bay_client_attach(self->server, NULL, &client, &diag) != BAY_OK) {
        fprintf(stderr, "%s\n", diag.text);
        return;
    }
    if (bay_client_call(client, "beats", "{}", &reply, &diag) == BAY_OK) {
        printf("in process: %.*s\n", BAY_STR(bay_reply_text(reply, 0)));
        bay_reply_free(reply);
    } else {
        fprintf(stderr, "%s\n", diag.text);
    }
    bay_client_close(client);
}

static void live(program *self)
{
    bay_err err = BAY_OK;
    while (err == BAY_OK) {
        struct epoll_event event;
        uint64_t times;
        struct signalfd_siginfo which;
        int count = epoll_wait(self->epoll, &event, 1, bay_server_wait_ms(self->server));
        if (count == 1 && event.data.fd == self->clock &&
            read(self->clock, &times, sizeof(times)) == (ssize_t)sizeof(times)) {
            self->beats += times;
        }
        if (count == 1 && event.data.fd == self->signals &&
            read(self->signals, &which, sizeof(which)) == (ssize_t)sizeof(which)) {
            bay_server_stop(self->server); /* what is under way is answered; then BAY_ERR_EOF */
        }
        err = bay_server_dispatch(self->server);
    }
}

int main(int argc, char **argv)
{
    program self = {.server = bay_server_new("embedded", "1.0.0"), .epoll = -1};
    const char *address = argc > 1 ? argv[1] : "127.0.0.1:8080";
    bay_diag diag;
    int status = 1;
    bay_server_tool(self.server, "beats", "How often the program's clock has beaten.", NULL,
                    tell_beats, &self);
    if (bay_server_listen(self.server, address, &diag) != BAY_OK) {
        fprintf(stderr, "%s\n", diag.text);
    } else if (start(&self)) {
        ask_oneself(&self);
        printf("listening on port %u\n", bay_server_port(self.server));
        fflush(stdout);
        live(&self);
        status = 0;
    }
    bay_server_free(self.server);
    return status;
}

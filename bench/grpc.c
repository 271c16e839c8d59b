/* gRPC unary calls: our server (HTTP/2, the router, protobuf to the model and back, a service that
 * answers at once) against the least that nghttp2 can do: a loop that echoes what it is sent, with
 * grpc-status behind it. Both are children of this program, each on the core it is told; this
 * program is their load: CONNECTIONS with STREAMS calls under way on each. A figure is the CPU time
 * of the child for each call, the median of the rounds.
 *
 *     grpc [ROUNDS [SECONDS [SERVER_CORE]]] */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "a2a_transport/grpc.h"
#include "base/str.h"
#include "http/http_server.h"

enum { CONNECTIONS = 16, STREAMS = 4, EVENTS = 64, READ_BYTES = 65536, ROUNDS_MAX = 99 };

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static double now_s(clockid_t clock)
{
    struct timespec at;
    clock_gettime(clock, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static nghttp2_nv field(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value),
                        NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

/* --- both ends of a bare connection ----------------------------------------------------------- */

typedef struct line {
    int fd;
    nghttp2_session *session;
} line;

static void line_write(line *self)
{
    static uint8_t out[READ_BYTES];
    size_t len = 0;
    for (;;) {
        const uint8_t *at = NULL;
        ssize_t more = nghttp2_session_mem_send(self->session, &at);
        if (more > 0 && len + (size_t)more <= sizeof(out)) {
            memcpy(out + len, at, (size_t)more);
            len += (size_t)more;
            continue;
        }
        if (len > 0 && send(self->fd, out, len, MSG_NOSIGNAL) != (ssize_t)len) {
            die("send"); /* a few hundred bytes under way at most: the kernel takes them */
        }
        if (more <= 0) {
            return;
        }
        memcpy(out, at, (size_t)more);
        len = (size_t)more;
    }
}

/* False: the peer has ended. */
static bool line_read(line *self)
{
    static uint8_t in[READ_BYTES];
    ssize_t len = recv(self->fd, in, sizeof(in), 0);
    if (len > 0 && nghttp2_session_mem_recv(self->session, in, (size_t)len) == len) {
        line_write(self);
        return true;
    }
    return len < 0 && errno == EAGAIN;
}

static void ready_fd(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
        die("fcntl");
    }
}

/* --- the floor -------------------------------------------------------------------------------- */

typedef struct echo {
    size_t len;
    size_t from;
    uint8_t bytes[1024];
} echo;

static int echo_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    (void)user;
    echo *self = calloc(1, sizeof(echo));
    return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, self);
}

static int echo_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *at,
                     size_t len, void *user)
{
    (void)flags;
    (void)user;
    echo *self = nghttp2_session_get_stream_user_data(session, id);
    if (self != NULL && len <= sizeof(self->bytes) - self->len) {
        memcpy(self->bytes + self->len, at, len);
        self->len += len;
    }
    return 0;
}

static ssize_t echo_read(nghttp2_session *session, int32_t id, uint8_t *at, size_t cap,
                         uint32_t *flags, nghttp2_data_source *source, void *user)
{
    (void)user;
    echo *self = source->ptr;
    size_t len = self->len - self->from < cap ? self->len - self->from : cap;
    memcpy(at, self->bytes + self->from, len);
    self->from += len;
    if (self->from == self->len) {
        nghttp2_nv status = field("grpc-status", "0");
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        (void)nghttp2_submit_trailer(session, id, &status, 1);
    }
    return (ssize_t)len;
}

static int echo_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    (void)user;
    if ((frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS) ||
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) {
        return 0;
    }
    echo *self = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    nghttp2_nv fields[] = {field(":status", "200"), field("content-type", "application/grpc")};
    nghttp2_data_provider body = {.source = {.ptr = self}, .read_callback = echo_read};
    return nghttp2_submit_response(session, frame->hd.stream_id, fields, 2, &body);
}

static int echo_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
    (void)code;
    (void)user;
    free(nghttp2_session_get_stream_user_data(session, id));
    return 0;
}

static nghttp2_session *echo_session(void)
{
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_session *session = NULL;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, echo_begin);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, echo_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, echo_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, echo_close);
    if (nghttp2_session_server_new(&session, callbacks, NULL) != 0) {
        die("nghttp2");
    }
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session, 0, NULL, 0);
    return session;
}

static void serve_floor(int listener, int tell)
{
    int poll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
    (void)!write(tell, "x", 1);
    for (;;) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(poll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            line *one = events[i].data.ptr;
            if (one == NULL) {
                one = malloc(sizeof(*one));
                *one = (line){.fd = accept(listener, NULL, NULL), .session = echo_session()};
                ready_fd(one->fd);
                event.data.ptr = one;
                epoll_ctl(poll, EPOLL_CTL_ADD, one->fd, &event);
            } else if (!line_read(one)) {
                nghttp2_session_del(one->session);
                close(one->fd);
                free(one);
            }
        }
    }
}

/* --- ours ------------------------------------------------------------------------------------- */

static void answer(a2a_service *service, a2a_call *call)
{
    (void)service;
    a2a_call_result(call, STR("{\"message\":{\"messageId\":\"m-1\",\"role\":\"ROLE_AGENT\","
                              "\"parts\":[{\"text\":\"It rains in Tokyo, as it does.\"}]}}"));
}

static void ignore(a2a_service *service, a2a_call *call)
{
    (void)service;
    (void)call;
}

static a2a_service stub = {.call = answer, .gone = ignore, .drained = ignore};

static bool find_agent(void *user, bay_str tenant, http_exchange *exchange,
                       const auth_principal *principal, a2a_http_agent *out)
{
    (void)user;
    (void)tenant;
    (void)exchange;
    (void)principal;
    *out = (a2a_http_agent){.service = &stub};
    return true;
}

static void on_request(void *user, http_exchange *exchange)
{
    a2a_grpc_request(*(a2a_grpc **)user, exchange, NULL);
}

static void serve_ours(int tell)
{
    static const http_handler handler = {on_request, http_owner_closed, http_owner_drained};
    static const a2a_http_router_options router = {.agent = find_agent};
    loop *own = NULL;
    a2a_grpc *grpc = NULL;
    http_server *server = NULL;
    http_server_options options = {
        .limits = http_server_default_limits, .handler = &handler, .user = &grpc};
    if (loop_new(&own) != BAY_OK || a2a_grpc_new(own, &router, &grpc) != BAY_OK ||
        http_server_new(own, &options, &server) != BAY_OK ||
        http_server_listen(server, STR("127.0.0.1:0"), NULL) != BAY_OK) {
        die("server");
    }
    uint16_t port = http_server_port(server);
    (void)!write(tell, &port, sizeof(port));
    loop_run(own);
    exit(1);
}

/* --- the load --------------------------------------------------------------------------------- */

/* SendMessage in package lf.a2a.v1: message {message_id, role user, parts {text}}. */
static uint8_t request[256];
static size_t request_len;
static uint64_t done;
static uint64_t failed;
static bool is_over;

static void make_request(void)
{
    static const char id[] = "message-100000000";
    static const char text[] = "What is the weather in Tokyo?";
    uint8_t message[200];
    size_t len = 0;
    message[len++] = 0x0a; /* message_id */
    message[len++] = sizeof(id) - 1;
    memcpy(message + len, id, sizeof(id) - 1);
    len += sizeof(id) - 1;
    message[len++] = 0x20; /* role */
    message[len++] = 1;
    message[len++] = 0x2a; /* parts */
    message[len++] = (uint8_t)(sizeof(text) - 1 + 2);
    message[len++] = 0x0a; /* text */
    message[len++] = sizeof(text) - 1;
    memcpy(message + len, text, sizeof(text) - 1);
    len += sizeof(text) - 1;
    request[4] = (uint8_t)(len + 2);
    request[5] = 0x12; /* the request's message, field 2 */
    request[6] = (uint8_t)len;
    memcpy(request + 7, message, len);
    request_len = 7 + len;
}

static ssize_t load_read(nghttp2_session *session, int32_t id, uint8_t *at, size_t cap,
                         uint32_t *flags, nghttp2_data_source *source, void *user)
{
    (void)session;
    (void)id;
    (void)cap;
    (void)source;
    (void)user;
    memcpy(at, request, request_len);
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)request_len;
}

static void one_call(nghttp2_session *session)
{
    nghttp2_nv fields[] = {field(":method", "POST"),
                           field(":scheme", "http"),
                           field(":path", "/lf.a2a.v1.A2AService/SendMessage"),
                           field(":authority", "127.0.0.1"),
                           field("content-type", "application/grpc"),
                           field("te", "trailers"),
                           field("a2a-version", "1.0"),
                           field("user-agent", "bench")};
    nghttp2_data_provider body = {.read_callback = load_read};
    nghttp2_submit_request(session, NULL, fields, sizeof(fields) / sizeof(fields[0]), &body, NULL);
}

static int load_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                       size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                       void *user)
{
    (void)session;
    (void)frame;
    (void)flags;
    (void)user;
    if (name_len == 11 && memcmp(name, "grpc-status", 11) == 0) {
        done += value_len == 1 && *value == '0';
        failed += value_len != 1 || *value != '0';
    }
    return 0;
}

static int load_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
    (void)id;
    (void)user;
    failed += code != 0;
    if (!is_over) {
        one_call(session);
    }
    return 0;
}

static void load_open(line *self, uint16_t port)
{
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, load_header);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, load_close);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    self->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (nghttp2_session_client_new(&self->session, callbacks, NULL) != 0 ||
        connect(self->fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        die("connect");
    }
    nghttp2_session_callbacks_del(callbacks);
    ready_fd(self->fd);
    nghttp2_submit_settings(self->session, 0, NULL, 0);
    for (int i = 0; i < STREAMS; i++) {
        one_call(self->session);
    }
    line_write(self);
}

/* CPU microseconds of the server for each call. */
static double load(uint16_t port, pid_t server, double seconds)
{
    line lines[CONNECTIONS];
    clockid_t clock;
    int poll = epoll_create1(0);
    done = failed = 0;
    is_over = false;
    clock_getcpuclockid(server, &clock);
    for (int i = 0; i < CONNECTIONS; i++) {
        load_open(&lines[i], port);
        struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = &lines[i]}};
        epoll_ctl(poll, EPOLL_CTL_ADD, lines[i].fd, &event);
    }
    double cpu = now_s(clock);
    double end = now_s(CLOCK_MONOTONIC) + seconds;
    while (now_s(CLOCK_MONOTONIC) < end) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(poll, events, EVENTS, 1000);
        for (int i = 0; i < count; i++) {
            if (!line_read(events[i].data.ptr)) {
                die("the server ended a connection");
            }
        }
    }
    cpu = now_s(clock) - cpu;
    is_over = true;
    for (int i = 0; i < CONNECTIONS; i++) {
        close(lines[i].fd);
        nghttp2_session_del(lines[i].session);
    }
    close(poll);
    if (failed > 0 || done == 0) {
        fprintf(stderr, "grpc: %llu calls failed\n", (unsigned long long)failed);
        exit(1);
    }
    return cpu * 1e6 / (double)done;
}

static pid_t start(bool is_ours, int core, uint16_t *out_port)
{
    int ends[2];
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (pipe(ends) != 0 || bind(listener, (struct sockaddr *)&address, len) != 0 ||
        listen(listener, 128) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &len) != 0) {
        die("listen");
    }
    pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when the load gives up */
        cpu_set_t cores;
        CPU_ZERO(&cores);
        CPU_SET((size_t)core, &cores);
        if (core >= 0) {
            (void)sched_setaffinity(0, sizeof(cores), &cores);
        }
        if (is_ours) {
            close(listener);
            serve_ours(ends[1]);
        }
        serve_floor(listener, ends[1]);
    }
    uint16_t port = 0;
    if (child < 0 || read(ends[0], &port, sizeof(port)) <= 0) {
        die("fork");
    }
    *out_port = is_ours ? port : ntohs(address.sin_port);
    close(listener);
    close(ends[0]);
    close(ends[1]);
    return child;
}

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return left < right ? -1 : left > right;
}

int main(int count, char **words)
{
    int rounds = count > 1 ? (int)strtol(words[1], NULL, 10) : 5;
    double seconds = count > 2 ? strtod(words[2], NULL) : 2;
    int core = count > 3 ? (int)strtol(words[3], NULL, 10) : -1;
    double figures[2][ROUNDS_MAX];
    uint16_t ports[2];
    pid_t servers[2];
    rounds = rounds < 1 ? 1 : rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
    make_request();
    for (int i = 0; i < 2; i++) {
        servers[i] = start(i == 1, core, &ports[i]);
        (void)load(ports[i], servers[i], 0.2); /* warm */
    }
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 2; i++) {
            figures[i][round] = load(ports[i], servers[i], seconds);
        }
    }
    for (int i = 0; i < 2; i++) {
        kill(servers[i], SIGKILL);
        waitpid(servers[i], NULL, 0);
        qsort(figures[i], (size_t)rounds, sizeof(double), by_size);
    }
    double least = figures[0][rounds / 2];
    double ours = figures[1][rounds / 2];
    printf("floor_us=%.3f cpu_us=%.3f ratio=%.3f\n", least, ours, ours / least);
    return 0;
}

/* A load generator: one thread, one epoll, C keep-alive connections, each with one request under
 * way. It answers nothing but the question: how many, how fast, and what did the server's process
 * pay for it (the kernel's own accounting of user and system time).
 *
 *     load [-c CONNECTIONS] [-n REQUESTS | -t SECONDS] [-H 'Name: value']… [-m METHOD]
 *          [-d BODY | -f BODYFILE] [-i ID] [-e TEXT] [-s WORD -S COUNT] [-p SERVER_PID]… PORT PATH
 *
 * An answer is a reply of 2xx whose body is a result of JSON-RPC without isError and, with -e,
 * holds TEXT. Anything else is an error: it is not counted among the answers, the first is shown,
 * and the run fails.
 *
 * -i: where the body holds these digits, each request gets a number of its own of as many digits,
 * for sessions in which ids must differ. -s: a word that ends with digits, wherever it stands in
 * head and body; they become 0 to COUNT - 1 in turn, so that each request goes somewhere else. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"
#include "cpu.h"

enum { EVENTS = 256, REPLY_BYTES = 1 << 20, PIDS = 16, BUCKETS = 1 << 16, PLACES = 16 };

typedef struct connection {
    int descriptor;
    uint64_t sent_ns;
    size_t len;
    char *reply;
} connection;

typedef struct load {
    char request[256 * 1024];
    size_t request_len;
    const char *id;         /* NULL: every request is the same */
    char *id_at;            /* in `request` */
    char *turns_at[PLACES]; /* the digits that say whose turn it is, in `request` */
    size_t turn_places, turn_digits;
    uint64_t turns;
    const char *expected; /* NULL: any result will do */
    uint16_t port;
    size_t connections;
    uint64_t requests; /* 0: by time */
    double seconds;
    int pids[PIDS];
    size_t pid_count;
    uint64_t started, answered, errors;
    uint64_t start_ns;
    uint32_t latency[BUCKETS]; /* in us; the last takes the rest */
    int poll;
} load;

static load state = {.connections = 64, .seconds = 5};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static cpu_time cpu_of_all(void)
{
    cpu_time sum = {0};
    for (size_t i = 0; i < state.pid_count; i++) {
        cpu_time one;
        if (!cpu_of(state.pids[i], &one)) {
            fprintf(stderr, "load: no process %d\n", state.pids[i]);
            exit(1);
        }
        sum.total += one.total;
        sum.user += one.user;
    }
    return sum;
}

static bool is_over(uint64_t now)
{
    return state.requests > 0 ? state.started >= state.requests
                              : (double)(now - state.start_ns) >= state.seconds * 1e9;
}

static bool send_request(connection *one, uint64_t now)
{
    one->sent_ns = now;
    one->len = 0;
    state.started++;
    uint64_t number = state.started;
    for (size_t i = state.id_at != NULL ? strlen(state.id) - 1 : 0; i > 0; i--, number /= 10) {
        state.id_at[i] = (char)('0' + number % 10); /* the first digit stays: no leading zero */
    }
    for (size_t place = 0; place < state.turn_places; place++) {
        uint64_t turn = state.started % state.turns;
        for (size_t i = state.turn_digits; i > 0; i--, turn /= 10) {
            state.turns_at[place][i - 1] = (char)('0' + turn % 10);
        }
    }
    size_t sent = 0;
    while (sent < state.request_len) {
        ssize_t put = write(one->descriptor, state.request + sent, state.request_len - sent);
        if (put < 0 && errno != EAGAIN && errno != EINTR) {
            return false;
        }
        sent += put > 0 ? (size_t)put : 0;
    }
    return true;
}

/* A chunked body without its framing, in place; its length. */
static size_t join_chunks(char *body, size_t len)
{
    size_t joined = 0;
    for (size_t at = 0; at < len;) {
        char *data = NULL;
        size_t size = strtoul(body + at, &data, 16);
        char *line_end = memchr(data, '\n', len - (size_t)(data - body));
        if (size == 0 || line_end == NULL) {
            break;
        }
        at = (size_t)(line_end - body) + 1;
        size = size < len - at ? size : len - at;
        memmove(body + joined, body + at, size);
        joined += size;
        at += size + 2;
    }
    return joined;
}

/* True when the connection holds one whole reply, by length, or chunked up to its last chunk; then
 * also its body. */
static bool find_body(const connection *one, char **out, size_t *out_len)
{
    char *end = memmem(one->reply, one->len, "\r\n\r\n", 4);
    if (end == NULL) {
        return false;
    }
    char *body = end + 4;
    size_t head = (size_t)(body - one->reply);
    size_t len = one->len - head;
    bool is_chunked = false;
    for (char *line = memchr(one->reply, '\n', head); line != NULL && line + 1 < end;
         line = memchr(line + 1, '\n', head - (size_t)(line + 1 - one->reply))) {
        if (strncasecmp(line + 1, "content-length:", 15) == 0) {
            size_t wanted = strtoul(line + 16, NULL, 10);
            *out = body;
            *out_len = wanted;
            return len >= wanted;
        }
        is_chunked = is_chunked || strncasecmp(line + 1, "transfer-encoding:", 18) == 0;
    }
    if (is_chunked && (len < 5 || memcmp(body + len - 5, "0\r\n\r\n", 5) != 0)) {
        return false;
    }
    *out = body;
    *out_len = is_chunked ? join_chunks(body, len) : len;
    return true;
}

static bool is_good(const connection *one, const char *body, size_t len)
{
    bool is_answer = one->len > 12 && memcmp(one->reply, "HTTP/1.1 2", 10) == 0 &&
                     answer_body_is_result(body, len) &&
                     (state.expected == NULL ||
                      memmem(body, len, state.expected, strlen(state.expected)) != NULL);
    if (!is_answer && state.errors == 0) {
        fprintf(stderr, "load: answered %.*s %.*s\n", one->len > 12 ? 12 : (int)one->len,
                one->reply, len > 400 ? 400 : (int)len, body);
    }
    return is_answer;
}

/* False when the connection has no more work. */
static bool receive(connection *one)
{
    ssize_t got = read(one->descriptor, one->reply + one->len, REPLY_BYTES - one->len);
    if (got <= 0) {
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return true;
        }
        state.errors++;
        return false;
    }
    one->len += (size_t)got;
    one->reply[one->len] = '\0'; /* where a number ends, at the latest */
    char *body;
    size_t body_len;
    if (!find_body(one, &body, &body_len)) {
        return true;
    }
    uint64_t now = now_ns();
    if (is_good(one, body, body_len)) {
        uint64_t us = (now - one->sent_ns) / 1000;
        state.latency[us < BUCKETS ? us : BUCKETS - 1]++;
        state.answered++;
    } else {
        state.errors++;
    }
    return !is_over(now) && send_request(one, now);
}

static uint32_t percentile(double share)
{
    uint64_t wanted = (uint64_t)((double)state.answered * share);
    uint64_t seen = 0;
    for (uint32_t us = 0; us < BUCKETS; us++) {
        seen += state.latency[us];
        if (seen > wanted) {
            return us;
        }
    }
    return BUCKETS;
}

static bool open_connection(connection *one)
{
    one->descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    one->reply = malloc(REPLY_BYTES + 1);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(state.port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int on = 1;
    if (one->descriptor < 0 || one->reply == NULL ||
        connect(one->descriptor, (struct sockaddr *)&address, sizeof(address)) != 0) {
        perror("load: connect");
        return false;
    }
    setsockopt(one->descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    fcntl(one->descriptor, F_SETFL, O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = one};
    return epoll_ctl(state.poll, EPOLL_CTL_ADD, one->descriptor, &event) == 0;
}

static void append(const char *text, size_t len)
{
    if (len > sizeof(state.request) - state.request_len) {
        fprintf(stderr, "load: the request is too large\n");
        exit(2);
    }
    memcpy(state.request + state.request_len, text, len);
    state.request_len += len;
}

static void append_text(const char *text)
{
    append(text, strlen(text));
}

static char *read_file(const char *path, size_t *out_len)
{
    FILE *file = fopen(path, "rb");
    char *at = malloc(sizeof(state.request));
    if (file == NULL || at == NULL) {
        perror(path);
        exit(2);
    }
    *out_len = fread(at, 1, sizeof(state.request), file);
    fclose(file);
    return at;
}

static void usage(void)
{
    fprintf(stderr, "usage: load [-c connections] [-n requests | -t seconds] [-H 'Name: value']... "
                    "[-m METHOD] [-d body | -f file] [-i id] [-e text] "
                    "[-s word -S count] [-p server pid]... PORT PATH\n");
    exit(2);
}

/* Finds where `word` stands in the request. */
static void find_turns(const char *word)
{
    size_t len = strlen(word);
    size_t letters = strcspn(word, "0123456789");
    char *end = state.request + state.request_len;
    for (char *at = state.request;
         state.turn_places < PLACES && (at = memmem(at, (size_t)(end - at), word, len)) != NULL;
         at += len) {
        state.turns_at[state.turn_places++] = at + letters;
    }
    state.turn_digits = len - letters;
}

static void read_arguments(int argc, char **argv)
{
    const char *turning = NULL;
    const char *method = "POST";
    const char *body = "";
    size_t body_len = 0;
    static char fields[64 * 1024];
    size_t fields_len = 0;
    for (int option; (option = getopt(argc, argv, "c:n:t:H:m:d:f:i:e:p:s:S:")) != -1;) {
        switch (option) {
        case 'c':
            state.connections = strtoul(optarg, NULL, 10);
            break;
        case 'n':
            state.requests = strtoull(optarg, NULL, 10);
            break;
        case 't':
            state.seconds = strtod(optarg, NULL);
            break;
        case 'm':
            method = optarg;
            break;
        case 'd':
            body = optarg;
            body_len = strlen(optarg);
            break;
        case 'f':
            body = read_file(optarg, &body_len);
            break;
        case 'i':
            state.id = optarg;
            break;
        case 'e':
            state.expected = optarg;
            break;
        case 's':
            turning = optarg;
            break;
        case 'S':
            state.turns = strtoull(optarg, NULL, 10);
            break;
        case 'p':
            if (state.pid_count < PIDS) {
                state.pids[state.pid_count++] = (int)strtol(optarg, NULL, 10);
            }
            break;
        case 'H':
            fields_len += (size_t)snprintf(fields + fields_len, sizeof(fields) - fields_len,
                                           "%s\r\n", optarg);
            if (fields_len >= sizeof(fields)) {
                usage();
            }
            break;
        default:
            usage();
        }
    }
    if (argc - optind != 2 || state.connections == 0 || (turning != NULL && state.turns == 0)) {
        usage();
    }
    state.port = (uint16_t)strtoul(argv[optind], NULL, 10);
    char length[64];
    snprintf(length, sizeof(length), "Content-Length: %zu\r\n\r\n", body_len);
    append_text(method);
    append_text(" ");
    append_text(argv[optind + 1]);
    append_text(" HTTP/1.1\r\nHost: 127.0.0.1:");
    append_text(argv[optind]);
    append_text("\r\n");
    append(fields, fields_len);
    append_text(length);
    append(body, body_len);
    if (state.id != NULL && state.id[0] != '\0') {
        char *start = state.request + state.request_len - body_len;
        state.id_at = memmem(start, body_len, state.id, strlen(state.id));
    }
    if (turning != NULL) {
        find_turns(turning);
    }
}

static void run(connection *all)
{
    size_t open = state.connections;
    for (size_t i = 0; i < state.connections; i++) {
        if (!open_connection(&all[i])) {
            exit(1);
        }
    }
    state.start_ns = now_ns();
    for (size_t i = 0; i < state.connections; i++) {
        if (is_over(now_ns()) || !send_request(&all[i], now_ns())) {
            open--;
        }
    }
    while (open > 0) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(state.poll, events, EVENTS, 5000);
        if (count == 0) {
            fprintf(stderr, "load: %zu connections got no answer in 5 s\n", open);
            state.errors += open;
            return;
        }
        for (int i = 0; i < count; i++) {
            connection *one = events[i].data.ptr;
            if (!receive(one)) {
                epoll_ctl(state.poll, EPOLL_CTL_DEL, one->descriptor, NULL);
                open--;
            }
        }
    }
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv);
    state.poll = epoll_create1(EPOLL_CLOEXEC);
    connection *all = calloc(state.connections, sizeof(connection));
    if (state.poll < 0 || all == NULL) {
        perror("load");
        return 1;
    }
    cpu_time before = cpu_of_all();
    run(all);
    double seconds = (double)(now_ns() - state.start_ns) / 1e9;
    cpu_time after = cpu_of_all();
    printf("requests=%llu errors=%llu seconds=%.2f per_second=%.0f p50_us=%u p99_us=%u",
           (unsigned long long)state.answered, (unsigned long long)state.errors, seconds,
           (double)state.answered / seconds, percentile(0.50), percentile(0.99));
    if (state.pid_count > 0 && state.answered > 0) {
        printf(" cpu_us=%.3f user_us=%.3f", (after.total - before.total) / (double)state.answered,
               (after.user - before.user) / (double)state.answered);
    }
    printf("\n");
    return state.errors == 0 ? 0 : 1;
}

/* A load generator: one thread, one epoll, C keep-alive connections, each with one request under
 * way. It answers nothing but the question: how many, how fast, and what did the server's process
 * pay for it (the kernel's own accounting of user and system time).
 *
 *     load [-c CONNECTIONS] [-n REQUESTS | -t SECONDS] [-H 'Name: value']… [-m METHOD]
 *          [-d BODY | -f BODYFILE] [-i ID] [-s WORD -S COUNT] [-p SERVER_PID]… PORT PATH
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

/* What a process has used of the processor, in microseconds. */
typedef struct cpu_time {
    double user, system;
} cpu_time;

static cpu_time cpu_of(int pid)
{
    char path[64];
    char line[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    size_t len = file != NULL ? fread(line, 1, sizeof(line) - 1, file) : 0;
    if (file != NULL) {
        fclose(file);
    }
    line[len] = '\0';
    char *at = strrchr(line, ')');
    unsigned long user = 0;
    unsigned long system = 0;
    if (at == NULL || sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                             &system) != 2) {
        fprintf(stderr, "load: no process %d\n", pid);
        exit(1);
    }
    double tick = 1e6 / (double)sysconf(_SC_CLK_TCK);
    return (cpu_time){.user = (double)user * tick, .system = (double)system * tick};
}

static cpu_time cpu_of_all(void)
{
    cpu_time sum = {0};
    for (size_t i = 0; i < state.pid_count; i++) {
        cpu_time one = cpu_of(state.pids[i]);
        sum.user += one.user;
        sum.system += one.system;
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

/* True when `at` holds one whole reply; by length, or chunked up to its last chunk. */
static bool is_whole(const char *at, size_t len)
{
    const char *end = memmem(at, len, "\r\n\r\n", 4);
    if (end == NULL) {
        return false;
    }
    size_t head = (size_t)(end - at) + 4;
    for (const char *line = memchr(at, '\n', head); line != NULL && line + 1 < end;
         line = memchr(line + 1, '\n', head - (size_t)(line + 1 - at))) {
        if (strncasecmp(line + 1, "content-length:", 15) == 0) {
            return len >= head + strtoul(line + 16, NULL, 10);
        }
        if (strncasecmp(line + 1, "transfer-encoding:", 18) == 0) {
            return len >= head + 5 && memcmp(at + len - 5, "0\r\n\r\n", 5) == 0;
        }
    }
    return true;
}

static bool is_good(const connection *one)
{
    return one->len > 12 && memcmp(one->reply, "HTTP/1.1 2", 10) == 0;
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
    if (!is_whole(one->reply, one->len)) {
        return true;
    }
    uint64_t now = now_ns();
    uint64_t us = (now - one->sent_ns) / 1000;
    state.latency[us < BUCKETS ? us : BUCKETS - 1]++;
    state.answered++;
    state.errors += is_good(one) ? 0 : 1;
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
    one->reply = malloc(REPLY_BYTES);
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
                    "[-m METHOD] [-d body | -f file] [-i id] "
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
    for (int option; (option = getopt(argc, argv, "c:n:t:H:m:d:f:i:p:s:S:")) != -1;) {
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
    double user = after.user - before.user;
    double cpu = user + after.system - before.system;
    printf("requests=%llu errors=%llu seconds=%.2f per_second=%.0f p50_us=%u p99_us=%u",
           (unsigned long long)state.answered, (unsigned long long)state.errors, seconds,
           (double)state.answered / seconds, percentile(0.50), percentile(0.99));
    if (state.pid_count > 0 && state.answered > 0) {
        printf(" cpu_us=%.3f user_us=%.3f", cpu / (double)state.answered,
               user / (double)state.answered);
    }
    printf("\n");
    return state.errors == 0 ? 0 : 1;
}

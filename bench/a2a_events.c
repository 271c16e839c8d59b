/* How long an event of a task is on its way: an agent whose tasks say what time it is, and a client
 * that reads many such streams and compares. Both on one machine, so on one clock.
 *
 *     a2a_events agent --http 127.0.0.1:0
 *     a2a_events hop PORT
 *         passes bytes on to that port and back, unseen: what any hop costs
 *     a2a_events load PORT PATH STREAMS EVENTS_PER_SECOND SECONDS
 *         prints "events=N p50_us=… p99_us=… worst_us=…" */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <patchbay/agent.h>

enum { MOST_STREAMS = 1000, BUFFER = 64 << 10, MOST_EVENTS = 1 << 22 };

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- the agent: one thread tells the time to all tasks in turn ---------------------------------
 */

static struct {
    pthread_mutex_t lock;
    bay_task *tasks[MOST_STREAMS];
    size_t count;
    size_t wanted;
    uint64_t gap_ns;
    uint64_t events; /* of each */
} told = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *tell(void *argument)
{
    (void)argument;
    uint64_t due = now_ns();
    for (uint64_t i = 0; i < told.events * told.count; i++) {
        char text[40];
        while (now_ns() < due) {
            uint64_t rest = due - now_ns();
            struct timespec wait = {0, rest < 1000000 ? (long)rest : 1000000};
            nanosleep(&wait, NULL);
        }
        due += told.gap_ns;
        (void)snprintf(text, sizeof(text), "stamp=%llu;", (unsigned long long)now_ns());
        (void)bay_task_status(told.tasks[i % told.count], BAY_TASK_STATE_WORKING, text);
    }
    for (size_t i = 0; i < told.count; i++) {
        (void)bay_task_complete(told.tasks[i], NULL);
        bay_task_release(told.tasks[i]);
    }
    told.count = 0;
    return NULL;
}

/* The message says "STREAMS RATE EVENTS": when so many tasks are there, it begins. */
static void events(bay_task *task, const bay_message *message, void *user)
{
    (void)user;
    char text[80];
    bay_str said = bay_message_text(message);
    (void)snprintf(text, sizeof(text), "%.*s", BAY_STR(said));
    char *at = text;
    unsigned long streams = strtoul(at, &at, 10);
    unsigned long rate = strtoul(at, &at, 10);
    unsigned long each = strtoul(at, &at, 10);
    pthread_mutex_lock(&told.lock);
    if (told.count < MOST_STREAMS && streams <= MOST_STREAMS && rate > 0) {
        told.tasks[told.count++] = bay_task_defer(task);
        told.gap_ns = 1000000000u / rate;
        told.events = each;
        pthread_t thread;
        if (told.count == streams && pthread_create(&thread, NULL, tell, NULL) == 0) {
            pthread_detach(thread);
        }
    }
    pthread_mutex_unlock(&told.lock);
}

static int run_agent(int argc, char **argv)
{
    bay_agent *agent = bay_agent_new("clock", "1.0.0", "Tells the time.");
    bay_agent_skill(agent, "events", "Events", "The time, again and again.", events, NULL);
    bay_agent_on_loop(agent);
    return bay_agent_main(agent, argc, argv);
}

/* ---- the hop ----------------------------------------------------------------------------------
 */

enum { MOST_HOPS = 4 * MOST_STREAMS, HOPS_AT_ONCE = 256 };

static struct {
    int listener;
    int poll;
    struct sockaddr_in to;
    int other[MOST_HOPS]; /* by descriptor; 0: it has none */
} hop;

static void watch(int fd)
{
    int yes = 1;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    (void)epoll_ctl(hop.poll, EPOLL_CTL_ADD, fd, &event);
}

static void accept_one(void)
{
    int from = accept4(hop.listener, NULL, NULL, SOCK_CLOEXEC);
    int onward = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (from < 0 || onward < 0 || from >= MOST_HOPS || onward >= MOST_HOPS ||
        connect(onward, (struct sockaddr *)&hop.to, sizeof(hop.to)) != 0) {
        exit(1);
    }
    hop.other[from] = onward;
    hop.other[onward] = from;
    watch(from);
    watch(onward);
}

static void pass_on(int fd)
{
    static char bytes[BUFFER];
    if (hop.other[fd] == 0) {
        return; /* it went with the other, in this very turn */
    }
    ssize_t got = recv(fd, bytes, sizeof(bytes), 0);
    if (got <= 0 || send(hop.other[fd], bytes, (size_t)got, MSG_NOSIGNAL) != got) {
        int other = hop.other[fd];
        hop.other[fd] = hop.other[other] = 0;
        close(fd);
        close(other);
    }
}

static int run_hop(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    hop.to = at;
    hop.to.sin_port = htons((uint16_t)port);
    hop.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    hop.poll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = hop.listener};
    if (bind(hop.listener, (struct sockaddr *)&at, sizeof(at)) != 0 ||
        listen(hop.listener, MOST_STREAMS) != 0 ||
        getsockname(hop.listener, (struct sockaddr *)&at, &len) != 0 ||
        epoll_ctl(hop.poll, EPOLL_CTL_ADD, hop.listener, &event) != 0) {
        perror("a2a_events");
        return 1;
    }
    printf("%d\n", ntohs(at.sin_port));
    (void)fflush(stdout);
    for (;;) {
        struct epoll_event ready[HOPS_AT_ONCE];
        int count = epoll_wait(hop.poll, ready, HOPS_AT_ONCE, -1);
        for (int i = 0; i < count; i++) {
            if (ready[i].data.fd == hop.listener) {
                accept_one();
            } else {
                pass_on(ready[i].data.fd);
            }
        }
    }
}

/* ---- the load ---------------------------------------------------------------------------------
 */

typedef struct stream {
    int fd;
    size_t len;
    char bytes[BUFFER];
} stream;

static uint32_t *delays;
static size_t delay_count;

static int open_stream(int port, const char *path, const char *said, int number)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char body[400], text[900];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int body_len =
        snprintf(body, sizeof(body),
                 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendStreamingMessage\",\"params\":{"
                 "\"message\":{\"messageId\":\"%d-%d\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":"
                 "\"%s\"}]}}}",
                 (int)getpid(), number, said);
    int len = snprintf(text, sizeof(text),
                       "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                       "A2A-Version: 1.0\r\nAccept: text/event-stream\r\nContent-Length: %d\r\n\r\n"
                       "%s",
                       path, body_len, body);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0 ||
        send(fd, text, (size_t)len, MSG_NOSIGNAL) != len) {
        return -1;
    }
    return fd;
}

/* Counts the stamps that are whole, keeps the rest. */
static void take(stream *self, uint64_t now)
{
    static const char mark[] = "stamp=";
    char *at = self->bytes, *end = self->bytes + self->len, *found;
    while ((found = memmem(at, (size_t)(end - at), mark, sizeof(mark) - 1)) != NULL) {
        char *stop = memchr(found, ';', (size_t)(end - found));
        if (stop == NULL) {
            break;
        }
        uint64_t stamp = strtoull(found + sizeof(mark) - 1, NULL, 10);
        if (delay_count < MOST_EVENTS) {
            delays[delay_count++] = (uint32_t)((now - stamp) / 1000);
        }
        at = stop;
    }
    size_t rest = found != NULL ? (size_t)(end - found) : sizeof(mark);
    rest = rest < self->len ? rest : self->len;
    memmove(self->bytes, end - rest, rest);
    self->len = rest;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static int run_load(int port, const char *path, size_t count, unsigned long rate, unsigned seconds)
{
    static struct pollfd polls[MOST_STREAMS];
    stream *streams = calloc(count, sizeof(*streams));
    delays = calloc(MOST_EVENTS, sizeof(*delays));
    char said[80];
    unsigned long each = rate * seconds / count;
    (void)snprintf(said, sizeof(said), "%zu %lu %lu", count, rate, each);
    for (size_t i = 0; i < count; i++) {
        streams[i].fd = open_stream(port, path, said, (int)i);
        polls[i] = (struct pollfd){.fd = streams[i].fd, .events = POLLIN};
        if (streams[i].fd < 0) {
            return 1;
        }
    }
    size_t open = count;
    while (open > 0 && delay_count < each * count && poll(polls, count, 5000) > 0) {
        for (size_t i = 0; i < count; i++) {
            stream *at = &streams[i];
            if (polls[i].revents == 0) {
                continue;
            }
            ssize_t got = recv(at->fd, at->bytes + at->len, sizeof(at->bytes) - at->len, 0);
            if (got <= 0) {
                polls[i].fd = -1;
                open--;
                continue;
            }
            at->len += (size_t)got;
            take(at, now_ns());
        }
    }
    if (delay_count == 0) {
        (void)fprintf(stderr, "no event came\n");
        return 1;
    }
    qsort(delays, delay_count, sizeof(*delays), compare);
    printf("events=%zu of=%lu p50_us=%u p99_us=%u worst_us=%u\n", delay_count, each * count,
           delays[delay_count / 2], delays[delay_count - 1 - delay_count / 100],
           delays[delay_count - 1]);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "agent") == 0) {
        return run_agent(argc - 1, argv + 1);
    }
    if (argc == 3 && strcmp(argv[1], "hop") == 0) {
        return run_hop((int)strtol(argv[2], NULL, 10));
    }
    if (argc != 7 || strcmp(argv[1], "load") != 0) {
        (void)fprintf(stderr, "usage: a2a_events agent --http ADDRESS | hop PORT | load PORT PATH "
                              "STREAMS EVENTS_PER_SECOND SECONDS\n");
        return 2;
    }
    size_t count = strtoul(argv[4], NULL, 10);
    if (count == 0 || count > MOST_STREAMS) {
        return 2;
    }
    return run_load((int)strtol(argv[2], NULL, 10), argv[3], count, strtoul(argv[5], NULL, 10),
                    (unsigned)strtoul(argv[6], NULL, 10));
}

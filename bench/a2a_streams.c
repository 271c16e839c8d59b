/* Many streams at once: what one costs while it is open, and whether each has every event, in
 * order.
 *
 *     a2a_streams agent --http 127.0.0.1:0
 *     a2a_streams load PORT PID STREAMS EVENTS
 *         so many tasks, each followed by its caller; prints "whole=N open_bytes=… told_bytes=…",
 *         memory of the process PID for each of them, before and after the events
 *     a2a_streams fan PORT PID SUBSCRIBERS EVENTS VERSION
 *         so many subscribers of one task; prints "whole=N cpu_us=…", for each event delivered */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <patchbay/agent.h>

enum { MOST_STREAMS = 10000, TAIL = 64, BUFFER = 64 << 10, PATIENCE_MS = 20000 };

/* ---- the agent: tasks wait for "go EVENTS", then one thread tells all of them, in turn ---------
 */

static struct {
    pthread_mutex_t lock;
    bay_task *tasks[MOST_STREAMS];
    size_t count;
    unsigned long events;
} told = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *tell(void *argument)
{
    (void)argument;
    for (unsigned long i = 0; i < told.events; i++) {
        char text[40];
        (void)snprintf(text, sizeof(text), "event=%lu;", i);
        for (size_t j = 0; j < told.count; j++) {
            (void)bay_task_status(told.tasks[j], BAY_TASK_STATE_WORKING, text);
        }
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
    }
    for (size_t i = 0; i < told.count; i++) {
        (void)bay_task_complete(told.tasks[i], NULL);
        bay_task_release(told.tasks[i]);
    }
    told.count = 0;
    return NULL;
}

static void events(bay_task *task, const bay_message *message, void *user)
{
    (void)user;
    bay_str said = bay_message_text(message);
    pthread_mutex_lock(&told.lock);
    if (said.len > 3 && memcmp(said.at, "go ", 3) == 0) {
        char digits[20];
        (void)snprintf(digits, sizeof(digits), "%.*s", BAY_STR(said));
        told.events = strtoul(digits + 3, NULL, 10);
        pthread_t thread;
        if (pthread_create(&thread, NULL, tell, NULL) == 0) {
            pthread_detach(thread);
        }
        (void)bay_task_reply(task, "gone");
    } else if (told.count < MOST_STREAMS) {
        told.tasks[told.count++] = bay_task_defer(task);
        (void)bay_task_status(task, BAY_TASK_STATE_WORKING, NULL);
    }
    pthread_mutex_unlock(&told.lock);
}

static int run_agent(int argc, char **argv)
{
    bay_agent *agent = bay_agent_new("events", "1.0.0", "Tells what it was told to tell.");
    bay_agent_skill(agent, "events", "Events", "Numbered ones.", events, NULL);
    bay_agent_on_loop(agent);
    return bay_agent_main(agent, argc, argv);
}

/* ---- the load ----------------------------------------------------------------------------------
 */

typedef struct stream {
    int fd;
    bool is_open; /* its first event came */
    bool is_wrong;
    bool is_over;
    unsigned long next;
    size_t tail_len;
    char tail[TAIL];
} stream;

static struct {
    int port;
    int poll;
    size_t count;
    size_t open;
    size_t over;
    stream *streams;
} load;

/* A number of the kernel's about that process: a line of `file` that begins with `name`. */
static unsigned long resident_kb(const char *pid)
{
    char path[64], line[256];
    unsigned long found = 0;
    (void)snprintf(path, sizeof(path), "/proc/%s/status", pid);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            found = strtoul(line + 6, NULL, 10);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return found;
}

/* User and system time of that process, in microseconds: nanoseconds on a core by its scheduler. */
static double cpu_us(const char *pid)
{
    char path[64];
    unsigned long long on_core = 0;
    (void)snprintf(path, sizeof(path), "/proc/%s/schedstat", pid);
    FILE *file = fopen(path, "r");
    char line[128];
    if (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        on_core = strtoull(line, NULL, 10);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return (double)on_core / 1000;
}

static int ask(const char *version, const char *body)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)load.port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char text[1200];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int len = snprintf(text, sizeof(text),
                       "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                       "A2A-Version: %s\r\nAccept: text/event-stream\r\nContent-Length: %zu\r\n\r\n"
                       "%s",
                       version, strlen(body), body);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0 ||
        send(fd, text, (size_t)len, MSG_NOSIGNAL) != len) {
        perror("a2a_streams");
        exit(1);
    }
    return fd;
}

static void watch(size_t i, int fd)
{
    struct epoll_event interest = {.events = EPOLLIN, .data.u64 = i};
    load.streams[i].fd = fd;
    if (epoll_ctl(load.poll, EPOLL_CTL_ADD, fd, &interest) != 0) {
        perror("a2a_streams");
        exit(1);
    }
}

static int send_message(const char *method, const char *said, size_t number)
{
    char body[400];
    (void)snprintf(
        body, sizeof(body),
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{\"message\":{"
        "\"messageId\":\"%d-%zu\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"%s\"}]}}}",
        method, (int)getpid(), number, said);
    return ask("1.0", body);
}

/* Takes the numbers that are whole, keeps what may be the beginning of one. */
static void take(stream *self, char *at, size_t len)
{
    static const char mark[] = "event=";
    char *end = at + len;
    char *rest = len > sizeof(mark) ? end - sizeof(mark) : at;
    for (char *found; (found = memmem(at, (size_t)(end - at), mark, sizeof(mark) - 1)) != NULL;) {
        char *stop = memchr(found, ';', (size_t)(end - found));
        if (stop == NULL) {
            rest = found;
            break;
        }
        self->is_wrong |= strtoul(found + sizeof(mark) - 1, NULL, 10) != self->next++;
        at = stop;
    }
    rest = rest < at ? at : rest;
    self->tail_len = (size_t)(end - rest) < TAIL ? (size_t)(end - rest) : TAIL;
    memmove(self->tail, end - self->tail_len, self->tail_len);
}

/* Once what is there now; false: nothing came for a long time. */
static bool read_some(void)
{
    static char bytes[TAIL + BUFFER + 1];
    struct epoll_event ready[256];
    int count = epoll_wait(load.poll, ready, 256, PATIENCE_MS);
    for (int i = 0; i < count; i++) {
        stream *self = &load.streams[ready[i].data.u64];
        memcpy(bytes, self->tail, self->tail_len);
        ssize_t got = recv(self->fd, bytes + self->tail_len, BUFFER, 0);
        size_t len = self->tail_len + (got > 0 ? (size_t)got : 0);
        bytes[len] = '\0';
        if (got > 0 && !self->is_open && strstr(bytes, "data:") != NULL) {
            self->is_open = true;
            load.open++;
        }
        take(self, bytes, len);
        /* the last chunk, or the end of the connection */
        if (got <= 0 || (len >= 5 && memcmp(bytes + len - 5, "0\r\n\r\n", 5) == 0)) {
            (void)epoll_ctl(load.poll, EPOLL_CTL_DEL, self->fd, NULL);
            (void)close(self->fd);
            self->is_over = true;
            load.over++;
        }
    }
    return count > 0;
}

static void read_until_open(size_t count)
{
    while (load.open < count) {
        if (!read_some()) {
            (void)fprintf(stderr, "%zu of %zu streams opened\n", load.open, count);
            exit(1);
        }
    }
}

static size_t read_all(unsigned long each)
{
    while (load.over < load.count && read_some()) {
    }
    size_t whole = 0;
    for (size_t i = 0; i < load.count; i++) {
        const stream *self = &load.streams[i];
        whole += self->is_over && !self->is_wrong && self->next == each;
    }
    return whole;
}

static void go(unsigned long each)
{
    char said[40];
    (void)snprintf(said, sizeof(said), "go %lu", each);
    (void)send_message("SendMessage", said, MOST_STREAMS); /* its answer is not waited for */
}

static void run_streams(const char *pid, unsigned long each)
{
    unsigned long before = resident_kb(pid);
    for (size_t i = 0; i < load.count; i++) {
        watch(i, send_message("SendStreamingMessage", "wait", i));
        read_until_open(i + 1 > 100 ? i - 99 : 0); /* not more at once than are accepted */
    }
    read_until_open(load.count);
    unsigned long open = resident_kb(pid);
    go(each);
    size_t whole = read_all(each);
    unsigned long after = resident_kb(pid);
    printf("whole=%zu open_bytes=%lu told_bytes=%lu\n", whole, (open - before) * 1024 / load.count,
           (after - before) * 1024 / load.count);
}

/* The first stream begins the task, the others subscribe to it. */
static void run_fan(const char *pid, unsigned long each, const char *version)
{
    char bytes[4096], task[40] = "", body[300];
    int first = send_message("SendStreamingMessage", "wait", 0);
    ssize_t got = recv(first, bytes, sizeof(bytes) - 1, MSG_PEEK);
    for (int i = 0; i < 1000 && task[0] == '\0' && got > 0; i++) {
        bytes[got] = '\0';
        const char *id = strstr(bytes, "\"task\":{\"id\":\"");
        if (id != NULL && strlen(id) > 14 + 36) {
            memcpy(task, id + 14, 36);
        } else {
            (void)usleep(1000);
            got = recv(first, bytes, sizeof(bytes) - 1, MSG_PEEK);
        }
    }
    watch(0, first);
    const char *method = strcmp(version, "1.0") == 0 ? "SubscribeToTask" : "tasks/resubscribe";
    (void)snprintf(body, sizeof(body),
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{\"id\":\"%s\"}}",
                   method, task);
    for (size_t i = 1; i < load.count; i++) {
        watch(i, ask(version, body));
        read_until_open(i + 1 > 100 ? i - 99 : 0);
    }
    read_until_open(load.count);
    double before = cpu_us(pid);
    go(each);
    size_t whole = read_all(each);
    printf("whole=%zu cpu_us=%.3f\n", whole,
           (cpu_us(pid) - before) / ((double)each * (double)load.count));
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "agent") == 0) {
        struct rlimit files = {MOST_STREAMS + 100, MOST_STREAMS + 100};
        (void)setrlimit(RLIMIT_NOFILE, &files);
        return run_agent(argc - 1, argv + 1);
    }
    bool is_fan = argc == 7 && strcmp(argv[1], "fan") == 0;
    if (!is_fan && (argc != 6 || strcmp(argv[1], "load") != 0)) {
        (void)fprintf(stderr,
                      "usage: a2a_streams agent --http ADDRESS | load PORT PID STREAMS EVENTS"
                      " | fan PORT PID SUBSCRIBERS EVENTS VERSION\n");
        return 2;
    }
    struct rlimit files = {MOST_STREAMS + 100, MOST_STREAMS + 100};
    (void)setrlimit(RLIMIT_NOFILE, &files);
    load.port = (int)strtol(argv[2], NULL, 10);
    load.count = strtoul(argv[4], NULL, 10);
    load.poll = epoll_create1(EPOLL_CLOEXEC);
    load.streams = calloc(load.count, sizeof(*load.streams));
    if (load.count == 0 || load.count >= MOST_STREAMS || load.streams == NULL) {
        return 2;
    }
    unsigned long each = strtoul(argv[5], NULL, 10);
    if (is_fan) {
        run_fan(argv[3], each, argv[6]);
    } else {
        run_streams(argv[3], each);
    }
    return 0;
}

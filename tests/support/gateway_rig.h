/* A gateway on a free port in this process, on threads of its own, and blocking clients in front of
 * it that send exactly the bytes they are given. What is waited for has a bound in time that only
 * ends a test that would never end. In texts given here ' stands for ". */
#ifndef SUPPORT_GATEWAY_RIG_H
#define SUPPORT_GATEWAY_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "gateway/gateway.h"
#include "gateway/worker.h"
#include "net/loop.h"
#include "net/thread.h"

#ifndef BAY_TEST_BINARY_DIR
#define BAY_TEST_BINARY_DIR "." /* for readers of this header alone */
#endif

enum { RIG_GIVE_UP_MS = 20000, RIG_LOG = 1 << 20, RIG_REPLY = 32 << 20 };

typedef struct gateway_rig {
    gateway *gateway;
    const config *config;
    net_thread thread;
    atomic_int starting; /* what it told, by word */
    atomic_int started;
    atomic_int listed;
    atomic_int reloaded;
    bay_err result;
    char path[64];   /* of the configuration */
    char tally[64];  /* BAD_SERVER_TALLY */
    char go[72];     /* lets the tool "wait" answer */
    int descriptors; /* before it, and children */
    int children;
} gateway_rig;

/* ---- the log --------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    size_t len;
    char text[RIG_LOG];
} rig_log = {.lock = PTHREAD_MUTEX_INITIALIZER};

static inline void rig_log_sink(log_level level, const char *component, const char *text,
                                void *user)
{
    (void)user;
    static const char *const levels[] = {"error", "warning", "info", "debug"};
    pthread_mutex_lock(&rig_log.lock);
    int len = snprintf(rig_log.text + rig_log.len, RIG_LOG - rig_log.len, "%s %s: %s\n",
                       levels[level], component, text);
    rig_log.len += (size_t)len < RIG_LOG - rig_log.len ? (size_t)len : 0;
    pthread_mutex_unlock(&rig_log.lock);
}

static inline int rig_log_count(const char *part)
{
    int count = 0;
    pthread_mutex_lock(&rig_log.lock);
    for (const char *at = rig_log.text; (at = strstr(at, part)) != NULL; at++) {
        count++;
    }
    pthread_mutex_unlock(&rig_log.lock);
    return count;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static inline uint64_t rig_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

#define wait_until(condition)                                                                      \
    do {                                                                                           \
        uint64_t give_up_ms = rig_now_ms() + RIG_GIVE_UP_MS;                                       \
        while (!(condition) && rig_now_ms() < give_up_ms) {                                        \
            poll(NULL, 0, 2);                                                                      \
        }                                                                                          \
        assert_true(condition);                                                                    \
    } while (0)

/* Reading /proc by bare system calls: libuv closes descriptors in a way that ThreadSanitizer does
 * not see, and it would take the next user of their numbers for an intruder. */
static inline size_t rig_read(const char *path, char *out, size_t size)
{
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    long got = fd >= 0 ? syscall(SYS_read, fd, out, size - 1) : 0;
    if (fd >= 0) {
        syscall(SYS_close, fd);
    }
    out[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

typedef void (*rig_visit)(void *context, const char *name);

static inline void rig_list(const char *path, rig_visit visit, void *context)
{
    struct entry {
        uint64_t inode;
        int64_t offset;
        unsigned short size;
        unsigned char type;
        char name[];
    };
    static _Alignas(8) char bytes[32768];
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long got;
    while (fd >= 0 && (got = syscall(SYS_getdents64, fd, bytes, sizeof(bytes))) > 0) {
        for (long at = 0; at < got;) {
            const struct entry *entry = (const struct entry *)(bytes + at);
            visit(context, entry->name);
            at += entry->size;
        }
    }
    if (fd >= 0) {
        syscall(SYS_close, fd);
    }
}

static inline void rig_count_entry(void *context, const char *name)
{
    *(int *)context += name[0] != '.';
}

static inline int rig_descriptors(void)
{
    int count = 0;
    rig_list("/proc/self/fd", rig_count_entry, &count);
    return count;
}

static inline void rig_count_children(void *context, const char *name)
{
    char path[100];
    char text[8192];
    (void)snprintf(path, sizeof(path), "/proc/self/task/%s/children", name);
    size_t len = name[0] != '.' ? rig_read(path, text, sizeof(text)) : 0;
    for (size_t i = 0; i < len; i++) {
        *(int *)context += text[i] == ' ';
    }
}

/* Also dead ones that nobody has reaped. */
static inline int rig_children(void)
{
    int count = 0;
    rig_list("/proc/self/task", rig_count_children, &count);
    return count;
}

static inline int rig_tally(const gateway_rig *self)
{
    struct stat about;
    return stat(self->tally, &about) == 0 ? (int)about.st_size : 0;
}

/* ---- the gateway ----------------------------------------------------------------------------- */

static inline void rig_told(void *user, gateway *self, const char *what)
{
    gateway_rig *rig = user;
    (void)self;
    atomic_int *counts[] = {&rig->starting, &rig->started, &rig->listed, &rig->reloaded};
    static const char *const names[] = {"starting", "started", "listed", "reloaded"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        atomic_fetch_add(counts[i], strcmp(what, names[i]) == 0);
    }
}

static inline void rig_run(void *argument)
{
    gateway_rig *self = argument;
    self->result = gateway_run(self->gateway);
}

/* Replaces @ in `text` by the folder of the test programs, ' by ". As an editor does, the file is
 * replaced whole. */
static inline void rig_configure(gateway_rig *self, const char *text)
{
    char new_path[80];
    (void)snprintf(new_path, sizeof(new_path), "%s.new", self->path);
    FILE *file = fopen(new_path, "w");
    assert_non_null(file);
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '@') {
            fputs(BAY_TEST_BINARY_DIR, file);
        } else {
            fputc(*at == '\'' ? '"' : *at, file);
        }
    }
    fclose(file);
    assert_int_equal(rename(new_path, self->path), 0);
}

#define RIG_SERVER(name, kind, mode, more)                                                         \
    "'" name "':{'command':'@/bad_server','args':['" kind "','" mode "']" more "}"

/* `asked`: what it is to be started with; the configuration comes from `settings`. It does not run
 * yet: rig_start. */
static inline bay_err rig_make(gateway_rig *self, const char *settings,
                               const gateway_options *asked, bay_diag *diag)
{
    static int serial;
    config_report *report = calloc(1, sizeof(*report));
    assert_non_null(report);
    log_set_sink(LOG_DEBUG, rig_log_sink, NULL);
    rig_log.len = 0;
    rig_log.text[0] = '\0';
    *self = (gateway_rig){.descriptors = rig_descriptors(), .children = rig_children()};
    (void)snprintf(self->path, sizeof(self->path), "/tmp/rig.%d.%d.json", (int)getpid(), ++serial);
    (void)snprintf(self->tally, sizeof(self->tally), "/tmp/rig.%d.tally", (int)getpid());
    (void)snprintf(self->go, sizeof(self->go), "%s.go", self->tally);
    (void)unlink(self->tally);
    (void)unlink(self->go);
    assert_int_equal(setenv("BAD_SERVER_TALLY", self->tally, 1), 0);
    rig_configure(self, settings);
    bay_err err = config_load_file(self->path, false, &self->config, report);
    if (err != BAY_OK) {
        print_error("%s\n", report->messages[0].text);
    }
    assert_int_equal(err, BAY_OK);
    free(report);
    gateway_options options = *asked;
    options.config = self->config;
    options.config_path = self->path;
    options.told = rig_told;
    options.user = self;
    err = gateway_new(&options, &self->gateway, diag);
    if (err != BAY_OK) {
        config_free(self->config);
        (void)unlink(self->path);
        assert_int_equal(rig_descriptors(), self->descriptors);
        return err;
    }
    return BAY_OK;
}

static inline void rig_start(gateway_rig *self)
{
    assert_int_equal(net_thread_start(&self->thread, rig_run, self), BAY_OK);
}

static inline bay_err rig_try(gateway_rig *self, const char *settings, const gateway_options *asked,
                              bay_diag *diag)
{
    bay_err err = rig_make(self, settings, asked, diag);
    if (err == BAY_OK) {
        rig_start(self);
    }
    return err;
}

static inline void rig_open(gateway_rig *self, const char *settings, uint32_t workers)
{
    bay_diag diag = {0};
    gateway_options asked = {.workers = workers, .listen = STR("127.0.0.1:0")};
    if (rig_try(self, settings, &asked, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
}

static inline void rig_join(gateway_rig *self)
{
    net_thread_join(&self->thread);
    assert_int_equal(self->result, BAY_OK);
    gateway_free(self->gateway);
    self->gateway = NULL;
    config_free(self->config);
    (void)unlink(self->path);
    (void)unlink(self->tally);
    (void)unlink(self->go);
    assert_int_equal(rig_children(), self->children);
    assert_int_equal(rig_descriptors(), self->descriptors);
}

/* Everything of it is gone afterwards: descriptors and children are counted. */
static inline void rig_close(gateway_rig *self)
{
    gateway_stop(self->gateway);
    rig_join(self);
}

static inline void rig_reload_there(void *argument)
{
    gateway_reload(argument);
}

static inline void rig_ask_reload(gateway_rig *self)
{
    assert_int_equal(loop_post(self->gateway->workers[0].loop, rig_reload_there, self->gateway),
                     BAY_OK);
}

/* A bad_server behind HTTP, as a child; rig_end_http ends it. */
static inline pid_t rig_start_http(int *out_port)
{
    int ends[2];
    char text[20] = "";
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execl(BAY_TEST_BINARY_DIR "/bad_server", "bad_server", "http", "good", NULL);
        _exit(127);
    }
    close(ends[1]);
    assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
    close(ends[0]);
    *out_port = (int)strtol(text, NULL, 10);
    return pid;
}

static inline void rig_end_http(pid_t pid)
{
    const char *tally = getenv("BAD_SERVER_TALLY");
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    if (tally != NULL) { /* it may have written there after the gateway's end */
        (void)unlink(tally);
    }
}

/* ---- clients --------------------------------------------------------------------------------- */

typedef struct client {
    int fd;
    bool is_over; /* the gateway closed or reset */
    buf got;
} client;

static inline void client_open(client *self, const gateway_rig *to)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(gateway_port(to->gateway)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *self = (client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    buf_init(&self->got, RIG_REPLY);
    assert_true(self->fd >= 0);
    assert_int_equal(connect(self->fd, (struct sockaddr *)&at, sizeof(at)), 0);
}

static inline void client_close(client *self)
{
    if (self->fd >= 0) {
        close(self->fd);
    }
    buf_fini(&self->got);
    self->fd = -1;
}

/* False: the gateway does not listen any more. */
static inline bool client_send_bytes(client *self, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t done = send(self->fd, at, len, MSG_NOSIGNAL);
        if (done <= 0) {
            return false;
        }
        at += done;
        len -= (size_t)done;
    }
    return true;
}

static inline bool client_send(client *self, const char *text)
{
    return client_send_bytes(self, text, strlen(text));
}

/* Reads what comes next; false: nothing more comes. */
static inline bool client_read(client *self)
{
    char bytes[65536];
    struct pollfd wait = {.fd = self->fd, .events = POLLIN};
    if (self->is_over) {
        return false;
    }
    if (poll(&wait, 1, RIG_GIVE_UP_MS) <= 0) {
        print_error("nothing came; so far: %.*s\n", (int)self->got.len, self->got.at);
        fail_msg("%s", "the gateway did not answer");
    }
    ssize_t got = recv(self->fd, bytes, sizeof(bytes), 0);
    if (got <= 0) {
        self->is_over = true;
        return false;
    }
    buf_append(&self->got, bytes, (size_t)got);
    assert_true(buf_reserve(&self->got, 1));
    self->got.at[self->got.len] = '\0'; /* for those who look for it with str functions */
    return true;
}

static inline const char *client_find(const client *self, const char *part)
{
    return self->got.len > 0 ? memmem(self->got.at, self->got.len, part, strlen(part)) : NULL;
}

static inline void client_wait_for(client *self, const char *part)
{
    while (client_find(self, part) == NULL && client_read(self)) {
    }
    if (client_find(self, part) == NULL) {
        print_error("wanted: %s\ncame: %.*s\n", part, (int)self->got.len, self->got.at);
    }
    assert_non_null(client_find(self, part));
}

/* Status of the reply that begins the bytes; 0 when none came before the end. */
static inline int client_status(client *self)
{
    while (self->got.len < 12 && client_read(self)) {
    }
    int status = 0;
    for (size_t i = 9; self->got.len >= 12 && i < 12; i++) { /* "HTTP/1.1 200" */
        status = status * 10 + (self->got.at[i] - '0');
    }
    return status;
}

/* Waits for one whole reply (by its Content-Length, or to the end of the connection). */
static inline int client_reply(client *self)
{
    int status = client_status(self);
    const char *end;
    while ((end = client_find(self, "\r\n\r\n")) == NULL && client_read(self)) {
    }
    const char *field = client_find(self, "\r\nContent-Length: ");
    if (end == NULL) {
        return status;
    }
    size_t head = (size_t)(end + 4 - self->got.at);
    size_t wanted = SIZE_MAX;
    if (field != NULL && field < end) {
        wanted = head + strtoul(field + 18, NULL, 10);
    }
    while (self->got.len < wanted && client_find(self, "\r\n0\r\n\r\n") == NULL &&
           client_read(self)) {
    }
    return status;
}

static inline void client_forget(client *self)
{
    buf_clear(&self->got);
}

/* Both revisions' fields; `fields` may replace none of them but add. */
static inline void client_post(client *self, const char *path, const char *fields, const char *body)
{
    buf text;
    buf_init(&text, RIG_REPLY);
    buf_printf(&text,
               "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
               "Accept: application/json, text/event-stream\r\nContent-Length: %zu\r\n%s\r\n",
               path, strlen(body), fields);
    size_t head = text.len;
    buf_str(&text, (bay_str){body, strlen(body)});
    for (size_t i = head; i < text.len; i++) {
        text.at[i] = text.at[i] == '\'' ? '"' : text.at[i];
    }
    assert_int_equal(text.err, BAY_OK);
    (void)client_send_bytes(self, text.at, text.len);
    buf_fini(&text);
}

#define RIG_META                                                                                   \
    "'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28',"                             \
    "'io.modelcontextprotocol/clientInfo':{'name':'c','version':'1'},"                             \
    "'io.modelcontextprotocol/clientCapabilities':{}"

/* A stateless call of one tool. */
static inline void client_call(client *self, const char *tool)
{
    char fields[300];
    char body[600];
    (void)snprintf(fields, sizeof(fields),
                   "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                   "Mcp-Name: %s\r\n",
                   tool);
    (void)snprintf(body, sizeof(body),
                   "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'%s'," RIG_META
                   "}}}",
                   tool);
    client_post(self, "/mcp", fields, body);
}

static inline void client_list(client *self, const char *path)
{
    client_post(self, path, "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n",
                "{'jsonrpc':'2.0','id':1,'method':'tools/list','params':{" RIG_META "}}}");
}

/* Does the tool, called on a connection of its own, answer with `part`? */
static inline bool is_answered(const gateway_rig *to, const char *tool, const char *part)
{
    client one;
    client_open(&one, to);
    client_call(&one, tool);
    (void)client_reply(&one);
    bool is_good = client_find(&one, part) != NULL;
    client_close(&one);
    return is_good;
}

/* Calls a tool on a connection of its own and expects `part` in the answer. */
static inline void expect_call(const gateway_rig *to, const char *tool, const char *part)
{
    client one;
    client_open(&one, to);
    client_call(&one, tool);
    (void)client_reply(&one);
    if (client_find(&one, part) == NULL) {
        print_error("%s: wanted %s\ncame: %.*s\n", tool, part, (int)one.got.len, one.got.at);
    }
    assert_non_null(client_find(&one, part));
    client_close(&one);
}

#endif

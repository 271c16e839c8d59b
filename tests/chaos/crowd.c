/* Many clients that do little: what benchmarks of idle listeners and parked calls put in front of
 * the gateway.
 *
 *     crowd idle MODERN LEGACY PORT      opens so many listeners, says "open=N"; for a line on
 * stdin so many sessions with streams, too, and says so; for each further line, a port and a path
 * of a fleet's control, sends that and says how many heard of a change, and when crowd park CALLS
 * PORT TOOL         makes calls of a tool that asks, until all are parked, says "parked=N"; for a
 * line on stdin, answers them all and says how many were answered, and how many wrongly */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "talk.h"

#define META                                                                                       \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"crowd\",\"version\":\"1\"},"               \
    "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}}}"
#define COMMON "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
#define MODERN COMMON "MCP-Protocol-Version: 2026-07-28\r\n"
#define LEGACY COMMON "MCP-Protocol-Version: 2025-11-25\r\n"

enum { OPENING = 64, LINES = 64, GIVE_UP_US = 60 * 1000 * 1000, CHANGE_US = 10 * 1000 * 1000 };

typedef struct member {
    talk_line line;
    bool is_modern, is_open, is_initialized;
    uint64_t heard_us;
} member;

typedef struct parked {
    char *state;
    char key[64];
    unsigned answers, wrong;
} parked;

typedef struct crowd {
    member *members;
    size_t member_count, wanted, next, open, heard;
    uint64_t changed_us;
    parked *calls;
    size_t call_count, done;
    const char *tool;
    bool is_answering;
} crowd;

static crowd self;

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "crowd: %s: %.300s\n", what, detail);
    exit(1);
}

/* Whole lines of stdin; false at its end. */
static bool await_word(char *out, size_t size)
{
    return fgets(out, (int)size, stdin) != NULL;
}

/* ---- idle ------------------------------------------------------------------------------------ */

static void member_begin(member *one)
{
    static const char listen[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscriptions/listen\",\"params\":{"
        "\"notifications\":{\"toolsListChanged\":true}," META "}}";
    static const char initialize[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
        "\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"crowd\",\"version\":\"1\"}}"
        "}";
    if (one->is_modern) {
        talk_request(&one->line, "POST", MODERN "Mcp-Method: subscriptions/listen\r\n", listen);
    } else {
        talk_request(&one->line, "POST", COMMON, initialize);
    }
}

static void open_next(void)
{
    while (self.next < self.wanted && self.next - self.open < OPENING) {
        member_begin(&self.members[self.next++]);
    }
}

static void member_is_open(member *one)
{
    if (!one->is_open) {
        one->is_open = true;
        self.open++;
        open_next();
    }
}

static void idle_message(talk_line *line, char *text)
{
    member *one = line->user;
    if (strstr(text, "list_changed") != NULL) {
        if (self.changed_us > 0 && one->heard_us == 0) {
            one->heard_us = talk_now_us() - self.changed_us;
            self.heard++;
        }
    } else if (one->is_modern && strstr(text, "acknowledged") != NULL) {
        member_is_open(one);
    } else if (strstr(text, "\"error\"") != NULL) {
        fail("refused", text);
    }
}

/* A session's first two replies; then its stream begins, and no reply is complete any more. */
static void idle_replied(talk_line *line)
{
    member *one = line->user;
    talk_text fields = {0};
    if (one->is_modern || line->status >= 300 || line->session[0] == '\0') {
        fail("a stream ended, or there was no session", one->is_modern ? "modern" : "legacy");
    }
    talk_text_put(&fields, LEGACY "Mcp-Session-Id: %s\r\n", line->session);
    if (!one->is_initialized) {
        one->is_initialized = true;
        talk_request(line, "POST", fields.at,
                     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    } else {
        talk_request(line, "GET", fields.at, "");
    }
    talk_text_free(&fields);
}

static void idle_broken(talk_line *line)
{
    member *one = line->user;
    fail("a connection broke", one->is_modern ? "modern" : "legacy");
}

static const talk_events idle_events = {idle_message, idle_replied, idle_broken};

/* A GET stream is open once its head has come. */
static void look_for_heads(void)
{
    for (size_t i = 0; i < self.next; i++) {
        member *one = &self.members[i];
        if (!one->is_modern && !one->is_open && one->is_initialized && one->line.is_busy &&
            one->line.has_head && one->line.is_stream) {
            member_is_open(one);
        }
    }
}

static void send_change(const char *word)
{
    unsigned port = 0;
    char path[128] = "";
    char request[256];
    if (sscanf(word, "%u %127s", &port, path) != 2) {
        fail("no port and path", word);
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int len = snprintf(request, sizeof(request),
                       "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        write(fd, request, (size_t)len) != len || read(fd, request, sizeof(request)) <= 0) {
        fail("no fleet", word);
    }
    close(fd);
}

static int by_time(const void *a, const void *b)
{
    const member *first = a;
    const member *second = b;
    return (first->heard_us > second->heard_us) - (first->heard_us < second->heard_us);
}

static void tell_change(void)
{
    member *sorted = malloc(self.member_count * sizeof(member));
    if (sorted == NULL) {
        exit(1);
    }
    memcpy(sorted, self.members, self.member_count * sizeof(member));
    qsort(sorted, self.member_count, sizeof(member), by_time);
    printf("heard=%zu half_ms=%.1f last_ms=%.1f\n", self.heard,
           (double)sorted[self.member_count / 2].heard_us / 1000,
           (double)sorted[self.member_count - 1].heard_us / 1000);
    fflush(stdout);
    free(sorted);
}

/* The first `count` of them. */
static void open_all(size_t count)
{
    uint64_t give_up = talk_now_us() + GIVE_UP_US;
    self.wanted = count;
    for (open_next(); self.open < count; look_for_heads()) {
        talk_turn(100);
        if (talk_now_us() > give_up) {
            fail("not all could be opened in time", "");
        }
    }
    printf("open=%zu\n", self.open);
    fflush(stdout);
}

static void be_idle(size_t modern, size_t legacy)
{
    char word[256];
    self.member_count = modern + legacy;
    self.members = calloc(self.member_count, sizeof(member));
    if (self.members == NULL) {
        exit(1);
    }
    for (size_t i = 0; i < self.member_count; i++) {
        self.members[i].line = (talk_line){.events = &idle_events, .user = &self.members[i]};
        self.members[i].is_modern = i < modern;
    }
    open_all(modern);
    if (legacy > 0 && await_word(word, sizeof(word))) {
        open_all(modern + legacy);
    }
    while (await_word(word, sizeof(word))) {
        for (size_t i = 0; i < self.member_count; i++) {
            self.members[i].heard_us = 0;
        }
        talk_turn(0);
        self.heard = 0;
        self.changed_us = talk_now_us();
        send_change(word);
        while (self.heard < self.member_count && talk_now_us() < self.changed_us + CHANGE_US) {
            talk_turn(100);
        }
        tell_change();
    }
}

/* ---- parked ---------------------------------------------------------------------------------- */

static void park_next(talk_line *line)
{
    if (self.next == self.call_count) {
        line->user = NULL;
        return;
    }
    parked *one = &self.calls[self.next++];
    talk_text fields = {0};
    talk_text body = {0};
    line->user = one;
    talk_text_put(&fields, MODERN "Mcp-Method: tools/call\r\nMcp-Name: %s\r\n", self.tool);
    talk_text_put(
        &body,
        "{\"jsonrpc\":\"2.0\",\"id\":%zu,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\","
        "\"arguments\":{\"n\":%zu},",
        self.next, self.tool, self.next - 1);
    if (self.is_answering) {
        talk_text_put(
            &body,
            "\"inputResponses\":{\"%s\":{\"action\":\"accept\",\"content\":{\"who\":\"me\"}}},"
            "\"requestState\":\"%s\",",
            one->key, one->state != NULL ? one->state : "");
    }
    talk_text_put(&body, META "}}");
    talk_request(line, "POST", fields.at, body.at);
    talk_text_free(&fields);
    talk_text_free(&body);
}

static void copy_member(char *out, size_t size, const char *text, const char *key)
{
    const char *at = strstr(text, key);
    size_t len = at != NULL ? strcspn(at + strlen(key), "\"") : 0;
    if (at == NULL || len >= size) {
        fail("nothing was asked", text);
    }
    memcpy(out, at + strlen(key), len);
    out[len] = '\0';
}

static void park_message(talk_line *line, char *text)
{
    static char state[64 * 1024];
    parked *one = line->user;
    char expected[64];
    if (strstr(text, "\"id\":") == NULL) {
        return;
    }
    if (self.is_answering) {
        (void)snprintf(expected, sizeof(expected), "n=%zu of", (size_t)(one - self.calls));
        one->answers++;
        one->wrong += strstr(text, expected) == NULL ? 1 : 0;
        if (one->wrong == 1 && self.done < 3) {
            fprintf(stderr, "crowd: answered %.300s\n", text);
        }
        return;
    }
    copy_member(state, sizeof(state), text, "\"requestState\":\"");
    copy_member(one->key, sizeof(one->key), text, "\"inputRequests\":{\"");
    one->state = strdup(state);
}

static void park_replied(talk_line *line)
{
    self.done++;
    park_next(line);
}

static void park_broken(talk_line *line)
{
    (void)line;
    fail("a connection broke", self.is_answering ? "answering" : "parking");
}

static const talk_events park_events = {park_message, park_replied, park_broken};

static double send_all(talk_line *lines)
{
    uint64_t begin = talk_now_us();
    self.next = 0;
    self.done = 0;
    for (size_t i = 0; i < LINES; i++) {
        park_next(&lines[i]);
    }
    while (self.done < self.call_count && talk_now_us() < begin + GIVE_UP_US) {
        talk_turn(100);
    }
    return (double)(talk_now_us() - begin) / 1e6;
}

static void park(size_t count)
{
    static talk_line lines[LINES];
    char word[64];
    size_t once = 0;
    size_t wrong = 0;
    self.call_count = count;
    self.calls = calloc(count, sizeof(parked));
    if (self.calls == NULL) {
        exit(1);
    }
    for (size_t i = 0; i < LINES; i++) {
        lines[i].events = &park_events;
    }
    double seconds = send_all(lines);
    for (size_t i = 0; i < count; i++) {
        once += self.calls[i].state != NULL ? 1 : 0;
    }
    printf("parked=%zu seconds=%.2f\n", once, seconds);
    fflush(stdout);
    if (!await_word(word, sizeof(word))) {
        return;
    }
    self.is_answering = true;
    seconds = send_all(lines);
    once = 0;
    for (size_t i = 0; i < count; i++) {
        once += self.calls[i].answers == 1 ? 1 : 0;
        wrong += self.calls[i].wrong;
    }
    printf("answered=%zu wrong=%zu seconds=%.2f\n", once, wrong, seconds);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "idle") == 0) {
        talk_init((uint16_t)strtoul(argv[4], NULL, 10));
        be_idle(strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
        return 0;
    }
    if (argc == 5 && strcmp(argv[1], "park") == 0) {
        talk_init((uint16_t)strtoul(argv[3], NULL, 10));
        self.tool = argv[4];
        park(strtoul(argv[2], NULL, 10));
        return 0;
    }
    fprintf(stderr, "usage: crowd idle MODERN LEGACY PORT | crowd park CALLS PORT TOOL\n");
    return 2;
}

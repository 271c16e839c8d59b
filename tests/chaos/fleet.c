/* Many MCP servers in one process, as cheap as they can be: what benchmarks and chaos runs put
 * behind the gateway.
 *
 *     fleet [-t TOOLS] [-b BOARD -s FIRST] [-p PORT] [-a ADDRESSES] http
 *         listens on 127.0.0.1 and so many addresses after it, and prints its port
 *     fleet [-t TOOLS] [-b BOARD -s FIRST] stdio ERA
 *         one server, by lines
 *
 * By path: /legacy/N and /modern/N are server N of an era, whatever the address. /change/N
 * announces a change of N's tools and makes it; /every/N/MS does so every MS milliseconds, until MS
 * is 0. With a board, server N is row FIRST + N of it: calls are counted there by their argument
 * "n", and what shall go wrong is read there.
 *
 * Tools: `tool_NNN` answers at once; `look` too, and says that it may be run twice; `slow` reports
 * progress, and answers after its argument "ms"; `ask` asks the client first. Every answer says
 * "n=N".
 *
 * The gateway's own requests are compact and begin with the id: looking for keys is reading enough.
 * A call counts as executed when it arrives: that is the hardest reading of "not twice". `ask`
 * counts when it has its answer. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "board.h"
#include "talk.h"

enum {
    SERVERS = 4096,
    EVENTS = 256,
    READ_BYTES = 64 * 1024,
    NAME = 128,
    LATE_MAX = 1 << 16,
    BOARD_LOOK_MS = 50,
};

typedef enum era { LEGACY, MODERN } era;

typedef struct line {
    int fd, out_fd;
    bool is_pipe, is_stream, is_announcer; /* is_announcer: changes of `server` are told here */
    era era;
    unsigned server;
    char listen_id[NAME]; /* of the modern era's subscription */
    talk_text in, out;
    unsigned late; /* answers under way */
    bool is_dead;
    struct line *next_dead;
    struct line *previous, *next; /* announcers */
} line;

typedef struct request {
    char id[NAME]; /* raw; "" for what wants no answer */
    char method[NAME], tool[NAME];
    unsigned long n, ms;
    char progress[NAME];
    const char *all;
} request;

/* An answer that waits: for its time, or (is_asked) for the client's. */
typedef struct late {
    line *on;
    request from;
    uint64_t due_ms;
    bool is_asked, is_used;
} late;

typedef struct fleet {
    int poll;
    unsigned tools, first;
    board *board;
    unsigned versions[SERVERS];
    unsigned announced; /* the board's changes of server 0 that were told */
    line *announcers;
    line *dead;
    late late[LATE_MAX];
    size_t late_end;  /* beyond the last slot that is used */
    size_t late_free; /* below: none is free */
    size_t timed;     /* those that wait for their time */
    unsigned every_server;
    uint64_t every_ms, every_at_ms;
} fleet;

static fleet self;

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static board_server *row_of(unsigned server)
{
    return self.board != NULL ? &self.board->servers[(self.first + server) % BOARD_SERVERS] : NULL;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void text_cut(talk_text *out, size_t len)
{
    out->len -= len;
    memmove(out->at, out->at + len, out->len);
    if (out->len == 0) {
        free(out->at);
        *out = (talk_text){0};
    }
}

static void member(char *out, const char *at, const char *key, const char *stops)
{
    const char *found = at != NULL ? strstr(at, key) : NULL;
    out[0] = '\0';
    if (found != NULL) {
        size_t len = strcspn(found + strlen(key), stops);
        len = len < NAME - 1 ? len : NAME - 1;
        memcpy(out, found + strlen(key), len);
        out[len] = '\0';
    }
}

static unsigned long number(const char *at, const char *key)
{
    char digits[NAME];
    member(digits, at, key, ",}");
    return strtoul(digits, NULL, 10);
}

static request read_request(const char *at)
{
    request got = {.all = at};
    const char *params = strstr(at, "\"params\":");
    member(got.method, at, "\"method\":\"", "\"");
    if (params == NULL || strstr(at, "\"id\":") < params) {
        member(got.id, at, "\"id\":", ",}");
    }
    member(got.tool, params, "\"name\":\"", "\"");
    member(got.progress, params, "\"progressToken\":", ",}");
    got.n = number(params, "\"n\":");
    got.ms = number(params, "\"ms\":");
    return got;
}

/* ---- answers that wait ----------------------------------------------------------------------- */

/* The slot; LATE_MAX when nobody is there any more. */
static size_t late_keep(line *on, const request *from, uint64_t due_ms, bool is_asked)
{
    if (on->is_dead) {
        return LATE_MAX;
    }
    size_t slot = self.late_free;
    while (slot < self.late_end && self.late[slot].is_used) {
        slot++;
    }
    if (slot == LATE_MAX) {
        fprintf(stderr, "fleet: too many calls at once\n");
        exit(1);
    }
    self.late[slot] =
        (late){.on = on, .from = *from, .due_ms = due_ms, .is_asked = is_asked, .is_used = true};
    self.late[slot].from.all = NULL;
    self.late_free = slot + 1;
    self.late_end = slot < self.late_end ? self.late_end : slot + 1;
    self.timed += is_asked ? 0 : 1;
    on->late++;
    return slot;
}

static void late_forget(size_t slot)
{
    late *it = &self.late[slot];
    it->is_used = false;
    it->on->late--;
    self.timed -= it->is_asked ? 0 : 1;
    self.late_free = slot < self.late_free ? slot : self.late_free;
}

/* ---- bytes out ------------------------------------------------------------------------------- */

static void line_drop(line *one)
{
    if (one->is_dead) {
        return;
    }
    if (one->is_pipe) {
        exit(0);
    }
    one->is_dead = true;
    one->next_dead = self.dead;
    self.dead = one;
    close(one->fd);
    for (size_t i = 0; one->late > 0 && i < self.late_end; i++) {
        if (self.late[i].is_used && self.late[i].on == one) {
            late_forget(i);
        }
    }
    if (one->is_announcer) {
        *(one->previous != NULL ? &one->previous->next : &self.announcers) = one->next;
        if (one->next != NULL) {
            one->next->previous = one->previous;
        }
    }
}

static void line_flush(line *one)
{
    while (!one->is_dead && one->out.len > 0) {
        ssize_t put = write(one->out_fd, one->out.at, one->out.len);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0 && errno == EAGAIN) {
            break;
        }
        if (put < 0) {
            line_drop(one);
            return;
        }
        text_cut(&one->out, (size_t)put);
    }
    if (!one->is_pipe && !one->is_dead) {
        struct epoll_event event = {.events = EPOLLIN | (one->out.len > 0 ? EPOLLOUT : 0),
                                    .data.ptr = one};
        (void)epoll_ctl(self.poll, EPOLL_CTL_MOD, one->fd, &event);
    }
}

static void line_send(line *one, const char *at, size_t len)
{
    if (one->is_dead) {
        return;
    }
    ssize_t put = one->out.len == 0 ? write(one->out_fd, at, len) : 0;
    put = put > 0 ? put : 0;
    if ((size_t)put < len) {
        talk_text_add(&one->out, at + put, len - (size_t)put);
        line_flush(one);
    }
}

/* Turns the reply under way into a stream of events. */
static void line_stream(line *one)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n";
    if (!one->is_pipe && !one->is_stream) {
        one->is_stream = true;
        line_send(one, head, sizeof(head) - 1);
    }
}

static void line_event(line *one, const talk_text *message)
{
    talk_text bytes = {0};
    if (one->is_pipe) {
        talk_text_add(&bytes, message->at, message->len);
        talk_text_add(&bytes, "\n", 1);
    } else {
        talk_text_put(&bytes, "%zx\r\ndata: ", message->len + 8);
        talk_text_add(&bytes, message->at, message->len);
        talk_text_add(&bytes, "\n\n\r\n", 4);
    }
    line_send(one, bytes.at, bytes.len);
    free(bytes.at);
}

static bool take_cut(const line *one)
{
    board_server *row = row_of(one->server);
    uint32_t cuts = row != NULL ? __atomic_load_n(&row->cuts, __ATOMIC_SEQ_CST) : 0;
    return cuts > 0 && __atomic_compare_exchange_n(&row->cuts, &cuts, cuts - 1, false,
                                                   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* The last message of an exchange, whatever it came as. */
static void line_answer(line *one, const talk_text *message, const char *fields)
{
    talk_text bytes = {0};
    if (one->is_pipe || one->is_stream) {
        line_event(one, message);
        if (one->is_stream) {
            line_send(one, "0\r\n\r\n", 5);
            one->is_stream = false;
        }
        return;
    }
    talk_text_put(
        &bytes,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n",
        fields, message->len);
    talk_text_add(&bytes, message->at, message->len);
    line_send(one, bytes.at, bytes.len);
    free(bytes.at);
}

/* The same, of a call; a cut one ends in its middle, and its connection or process with it. */
static void line_answer_call(line *one, talk_text *message)
{
    if (take_cut(one)) {
        line_stream(one);
        line_send(one, "40\r\ndata: {\"json", 16);
        line_drop(one);
    } else {
        line_answer(one, message, "");
    }
    free(message->at);
}

static void line_status(line *one, int status)
{
    talk_text bytes = {0};
    talk_text_put(&bytes, "HTTP/1.1 %d x\r\nContent-Length: 0\r\n\r\n", status);
    line_send(one, bytes.at, bytes.len);
    free(bytes.at);
}

/* ---- methods --------------------------------------------------------------------------------- */

static void open_result(talk_text *out, const line *one, const char *id)
{
    talk_text_put(out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s", id,
                  one->era == MODERN ? "\"resultType\":\"complete\"," : "");
}

static const char *hints_of(const line *one)
{
    return one->era == MODERN ? ",\"ttlMs\":3600000,\"cacheScope\":\"public\"" : "";
}

static void answer_hello(line *one, const request *from)
{
    static unsigned sessions;
    char field[NAME] = "";
    talk_text out = {0};
    open_result(&out, one, from->id);
    if (one->era == MODERN) {
        talk_text_put(&out, "\"supportedVersions\":[\"2026-07-28\"]%s", hints_of(one));
    } else {
        talk_text_put(&out, "\"protocolVersion\":\"2025-11-25\"");
        (void)snprintf(field, sizeof(field), "Mcp-Session-Id: %d-%u\r\n", (int)getpid(),
                       ++sessions);
    }
    talk_text_put(&out,
                  ",\"capabilities\":{\"tools\":{\"listChanged\":true}},\"serverInfo\":{\"name\":"
                  "\"fleet\",\"version\":\"1\"}}}");
    line_answer(one, &out, field);
    free(out.at);
}

static void answer_tools(line *one, const request *from)
{
    static const char *const special[] = {
        "\"look\",\"annotations\":{\"readOnlyHint\":true,\"idempotentHint\":true}", "\"slow\"",
        "\"ask\""};
    talk_text out = {0};
    open_result(&out, one, from->id);
    talk_text_put(&out, "\"tools\":[");
    for (unsigned i = 0; i < self.tools; i++) {
        talk_text_put(
            &out,
            "{\"name\":\"tool_%03u\",\"description\":\"Tool %u of server %u, version %u: does "
            "what tools of its kind do\",\"inputSchema\":{\"type\":\"object\",\"properties\":{"
            "\"n\":{\"type\":\"integer\"},\"note\":{\"type\":\"string\"}}}},",
            i, i, one->server, self.versions[one->server]);
    }
    for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
        talk_text_put(&out, "%s{\"name\":%s,\"inputSchema\":{\"type\":\"object\"}}",
                      i > 0 ? "," : "", special[i]);
    }
    talk_text_put(&out, "]%s}}", hints_of(one));
    line_answer(one, &out, "");
    free(out.at);
}

static void count_execution(const request *from)
{
    if (self.board != NULL && from->n < BOARD_CALLS) {
        __atomic_fetch_add(&self.board->executed[from->n], 1, __ATOMIC_SEQ_CST);
    }
}

static void answer_refused(line *one, const request *from)
{
    talk_text out = {0};
    open_result(&out, one, from->id);
    talk_text_put(
        &out,
        "\"content\":[{\"type\":\"text\",\"text\":\"n=%lu of server %u: nobody said who\"}],"
        "\"isError\":true}}",
        from->n, one->server);
    line_answer_call(one, &out);
}

static void answer_call(line *one, const request *from)
{
    talk_text out = {0};
    open_result(&out, one, from->id);
    talk_text_put(
        &out,
        "\"content\":[{\"type\":\"text\",\"text\":\"n=%lu of server %u: 17 degrees and cloudy, "
        "light wind from the west, no rain before tonight\"}],\"isError\":false}}",
        from->n, one->server);
    line_answer_call(one, &out);
}

static const char question[] =
    "\"params\":{\"mode\":\"form\",\"message\":\"Who?\",\"requestedSchema\":{\"type\":\"object\","
    "\"properties\":{\"who\":{\"type\":\"string\"}},\"required\":[\"who\"]}}}";

/* The client is asked on the call's stream; the modern one by its answer. */
static void ask(line *one, const request *from)
{
    talk_text out = {0};
    if (one->era == MODERN && strstr(from->all, "\"action\":\"accept\"") != NULL) {
        count_execution(from);
        answer_call(one, from);
        return;
    }
    if (one->era == MODERN) {
        talk_text_put(
            &out,
            "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"resultType\":\"input_required\","
            "\"inputRequests\":{\"who\":{\"method\":\"elicitation/create\",%s},"
            "\"requestState\":\"state-%lu\"}}",
            from->id, question, from->n);
        line_answer_call(one, &out);
        return;
    }
    line_stream(one);
    talk_text_put(&out,
                  "{\"jsonrpc\":\"2.0\",\"id\":\"%zu-%lu\",\"method\":\"elicitation/create\",%s",
                  late_keep(one, from, 0, true), from->n, question);
    line_event(one, &out);
    free(out.at);
}

static void begin_call(line *one, const request *from)
{
    board_server *row = row_of(one->server);
    uint64_t delay =
        from->ms + (row != NULL ? __atomic_load_n(&row->delay_ms, __ATOMIC_SEQ_CST) : 0);
    if (strcmp(from->tool, "ask") == 0) {
        ask(one, from);
        return;
    }
    count_execution(from);
    if (strcmp(from->tool, "slow") == 0) {
        line_stream(one);
        if (from->progress[0] != '\0') {
            talk_text out = {0};
            talk_text_put(&out,
                          "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
                          "\"progressToken\":%s,\"progress\":1}}",
                          from->progress);
            line_event(one, &out);
            free(out.at);
        }
    }
    if (delay > 0) {
        (void)late_keep(one, from, now_ms() + delay, false);
    } else {
        answer_call(one, from);
    }
}

/* A legacy client's answer to a question: its call goes on. */
static void take_answer(line *one, const request *from)
{
    size_t slot = LATE_MAX;
    unsigned long n = 0;
    (void)sscanf(from->id, "\"%zu-%lu\"", &slot, &n);
    late *it = slot < self.late_end ? &self.late[slot] : NULL;
    if (it != NULL && it->is_used && it->is_asked && it->from.n == n &&
        it->on->server == one->server) {
        late asked = *it;
        late_forget(slot);
        if (strstr(from->all, "\"action\":\"accept\"") != NULL) {
            count_execution(&asked.from);
            answer_call(asked.on, &asked.from);
        } else {
            answer_refused(asked.on, &asked.from);
        }
    }
    if (!one->is_pipe) {
        line_status(one, 202);
    }
}

static void announce_to(line *one)
{
    talk_text out = {0};
    talk_text_put(&out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"");
    if (one->listen_id[0] != '\0') {
        talk_text_put(&out,
                      ",\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":%s}}",
                      one->listen_id);
    }
    talk_text_put(&out, "}");
    line_event(one, &out);
    free(out.at);
}

static void announce(unsigned server)
{
    self.versions[server]++;
    for (line *one = self.announcers, *next; one != NULL; one = next) {
        next = one->next;
        if (one->server == server) {
            announce_to(one);
        }
    }
}

static void become_announcer(line *one)
{
    if (!one->is_announcer) {
        one->is_announcer = true;
        one->next = self.announcers;
        if (one->next != NULL) {
            one->next->previous = one;
        }
        self.announcers = one;
    }
}

static void listen_modern(line *one, const request *from)
{
    talk_text out = {0};
    line_stream(one);
    memcpy(one->listen_id, from->id, sizeof(one->listen_id));
    talk_text_put(&out,
                  "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\","
                  "\"params\":{\"notifications\":{\"toolsListChanged\":true},\"_meta\":{"
                  "\"io.modelcontextprotocol/subscriptionId\":%s}}}",
                  from->id);
    line_event(one, &out);
    free(out.at);
    become_announcer(one);
}

static void refuse(line *one, const request *from, int code)
{
    talk_text out = {0};
    talk_text_put(&out,
                  "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":%d,\"message\":\"no\"}}",
                  from->id, code);
    line_answer(one, &out, "");
    free(out.at);
}

static void serve(line *one, const char *body)
{
    request from = read_request(body);
    bool is_modern = one->era == MODERN;
    if (from.method[0] == '\0' && from.id[0] != '\0') {
        take_answer(one, &from);
    } else if (from.id[0] == '\0') {
        if (!one->is_pipe) {
            line_status(one, 202);
        }
    } else if (strcmp(from.method, "tools/call") == 0) {
        begin_call(one, &from);
    } else if (strcmp(from.method, "tools/list") == 0) {
        answer_tools(one, &from);
    } else if (strcmp(from.method, is_modern ? "server/discover" : "initialize") == 0) {
        answer_hello(one, &from);
    } else if (is_modern && strcmp(from.method, "subscriptions/listen") == 0) {
        listen_modern(one, &from);
    } else if (!is_modern && strcmp(from.method, "ping") == 0) {
        talk_text out = {0};
        talk_text_put(&out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}", from.id);
        line_answer(one, &out, "");
        free(out.at);
    } else {
        refuse(one, &from, -32601);
    }
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

static bool has_session(const char *head)
{
    const char *at = strcasestr(head, "\nmcp-session-id: ");
    return at == NULL || strtol(at + 17, NULL, 10) == (long)getpid();
}

static void serve_control(line *one, const char *path)
{
    unsigned server = 0;
    unsigned ms = 0;
    if (sscanf(path, "/change/%u", &server) == 1) {
        announce(server % SERVERS);
    } else if (sscanf(path, "/every/%u/%u", &server, &ms) == 2) {
        self.every_server = server % SERVERS;
        self.every_ms = ms;
        self.every_at_ms = now_ms() + ms;
    }
    line_status(one, 200);
}

static void serve_http(line *one, char *head, char *body)
{
    char method[16] = "";
    char path[NAME] = "";
    (void)sscanf(head, "%15s %127s", method, path);
    bool is_modern = strncmp(path, "/modern/", 8) == 0;
    if (!is_modern && strncmp(path, "/legacy/", 8) != 0) {
        serve_control(one, path);
        return;
    }
    one->era = is_modern ? MODERN : LEGACY;
    one->server = (unsigned)strtoul(path + 8, NULL, 10) % SERVERS;
    if (!is_modern && !has_session(head)) {
        line_status(one, 404);
    } else if (strcmp(method, "POST") == 0) {
        serve(one, body);
    } else if (strcmp(method, "GET") == 0 && !is_modern) {
        line_stream(one);
        become_announcer(one);
    } else {
        line_status(one, is_modern ? 405 : 200);
    }
}

/* Serves the whole requests that are there. */
static void take_http(line *one)
{
    for (char *end; !one->is_dead && one->in.len > 0 &&
                    (end = memmem(one->in.at, one->in.len, "\r\n\r\n", 4)) != NULL;) {
        char kept;
        *end = '\0';
        const char *field = strcasestr(one->in.at, "\ncontent-length:");
        size_t body = field != NULL ? strtoul(field + 16, NULL, 10) : 0;
        size_t head = (size_t)(end - one->in.at) + 4;
        if (one->in.len < head + body) {
            *end = '\r';
            return;
        }
        kept = one->in.at[head + body];
        one->in.at[head + body] = '\0';
        serve_http(one, one->in.at, one->in.at + head);
        one->in.at[head + body] = kept;
        text_cut(&one->in, head + body);
    }
}

static void take_lines(line *one)
{
    size_t used = 0;
    for (char *end; (end = memchr(one->in.at + used, '\n', one->in.len - used)) != NULL;) {
        *end = '\0';
        serve(one, one->in.at + used);
        used = (size_t)(end - one->in.at) + 1;
    }
    text_cut(&one->in, used);
}

static void line_read(line *one)
{
    static char bytes[READ_BYTES];
    ssize_t got = read(one->fd, bytes, sizeof(bytes));
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (got <= 0) {
        line_drop(one);
        return;
    }
    talk_text_add(&one->in, bytes, (size_t)got);
    (one->is_pipe ? take_lines : take_http)(one);
    if (one->in.len == 0) {
        free(one->in.at);
        one->in = (talk_text){0};
    }
}

static line *line_new(int fd, int out_fd)
{
    line *one = calloc(1, sizeof(*one));
    if (one == NULL) {
        exit(1);
    }
    one->fd = fd;
    one->out_fd = out_fd;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = one};
    if (epoll_ctl(self.poll, EPOLL_CTL_ADD, fd, &event) != 0) {
        perror("fleet");
        exit(1);
    }
    return one;
}

static void take_connections(int listener)
{
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        (void)line_new(fd, fd);
    }
}

/* Port 0 becomes a free one. False: it is taken. */
static bool listen_on(uint32_t host, uint16_t *port)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(*port)};
    address.sin_addr.s_addr = htonl(host);
    socklen_t len = sizeof(address);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)listener << 1 | 1};
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listener, 4096) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &len) != 0 ||
        epoll_ctl(self.poll, EPOLL_CTL_ADD, listener, &event) != 0) {
        close(listener);
        return false;
    }
    *port = ntohs(address.sin_port);
    return true;
}

static void listen_on_all(unsigned port_wanted, unsigned addresses)
{
    for (int tries = 0; tries < 100; tries++) {
        uint16_t port = (uint16_t)port_wanted;
        unsigned done = 0;
        while (done < addresses && listen_on(INADDR_LOOPBACK + done, &port)) {
            done++;
        }
        if (done == addresses) {
            printf("%u\n", port);
            fflush(stdout);
            return;
        }
        usleep(20000);
    }
    fprintf(stderr, "fleet: no port to listen on\n");
    exit(1);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void answer_due(void)
{
    uint64_t now = now_ms();
    for (size_t i = 0; self.timed > 0 && i < self.late_end; i++) {
        if (self.late[i].is_used && !self.late[i].is_asked && self.late[i].due_ms <= now) {
            late due = self.late[i];
            late_forget(i);
            answer_call(due.on, &due.from);
        }
    }
}

static void announce_due(void)
{
    board_server *row = row_of(0);
    if (self.every_ms > 0 && self.every_at_ms <= now_ms()) {
        self.every_at_ms += self.every_ms;
        announce(self.every_server);
    }
    if (row != NULL && __atomic_load_n(&row->changes, __ATOMIC_SEQ_CST) != self.announced) {
        self.announced = __atomic_load_n(&row->changes, __ATOMIC_SEQ_CST);
        announce(0);
    }
}

static int patience_ms(void)
{
    return self.timed > 0 || self.every_ms > 0 ? 5 : self.board != NULL ? BOARD_LOOK_MS : -1;
}

static void turn(void)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(self.poll, events, EVENTS, patience_ms());
    for (int i = 0; i < count; i++) {
        if (events[i].data.u64 % 2 == 1) {
            take_connections((int)(events[i].data.u64 >> 1));
            continue;
        }
        line *one = events[i].data.ptr;
        if (!one->is_dead && (events[i].events & EPOLLOUT) != 0) {
            line_flush(one);
        }
        if (!one->is_dead && (events[i].events & ~(uint32_t)EPOLLOUT) != 0) {
            line_read(one);
        }
    }
    answer_due();
    announce_due();
    for (line *one; (one = self.dead) != NULL;) {
        self.dead = one->next_dead;
        free(one->in.at);
        free(one->out.at);
        free(one);
    }
}

static void usage(void)
{
    fprintf(stderr, "usage: fleet [-t tools] [-b board -s first] [-p port] [-a addresses] "
                    "http | stdio legacy | stdio modern\n");
    exit(2);
}

int main(int argc, char **argv)
{
    unsigned port = 0;
    unsigned addresses = 1;
    self.tools = 1;
    for (int option; (option = getopt(argc, argv, "t:b:s:p:a:")) != -1;) {
        unsigned long count = strtoul(optarg != NULL ? optarg : "", NULL, 10);
        switch (option) {
        case 't':
            self.tools = (unsigned)count;
            break;
        case 'b':
            self.board = board_open(optarg);
            break;
        case 's':
            self.first = (unsigned)count;
            break;
        case 'p':
            port = (unsigned)count;
            break;
        case 'a':
            addresses = (unsigned)count;
            break;
        default:
            usage();
        }
    }
    signal(SIGPIPE, SIG_IGN);
    self.poll = epoll_create1(EPOLL_CLOEXEC);
    if (argc - optind == 1 && strcmp(argv[optind], "http") == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* whoever started it is gone */
        listen_on_all(port, addresses);
    } else if (argc - optind == 2 && strcmp(argv[optind], "stdio") == 0) {
        line *one = line_new(STDIN_FILENO, STDOUT_FILENO);
        one->is_pipe = true;
        one->era = strcmp(argv[optind + 1], "modern") == 0 ? MODERN : LEGACY;
        if (one->era == LEGACY) {
            become_announcer(one);
        }
    } else {
        usage();
    }
    if (self.board != NULL) {
        __atomic_store_n(&row_of(0)->pid, (uint32_t)getpid(), __ATOMIC_SEQ_CST);
        self.announced = __atomic_load_n(&row_of(0)->changes, __ATOMIC_SEQ_CST);
    }
    for (;;) {
        turn();
    }
}

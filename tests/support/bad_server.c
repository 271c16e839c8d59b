/* A server that breaks the rules in the way it is asked to: `bad_server stdio MODE` speaks lines,
 * `bad_server http MODE` listens on a free port of 127.0.0.1 and prints that port.
 *
 * MODE says what is wrong from the start ("good": nothing, up to the calls):
 *   exit, silent, deaf, noise, endless, still, types, no_tools, slow_list, newer
 * and the name of the tool that is called says what is wrong with the answer: see `tools`.
 * Every call of a tool adds a byte to the file named by BAD_SERVER_TALLY. The mere string handling
 * is enough for the gateway's own requests, which are compact and begin with the id. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TEXT = 1 << 20, NAME = 128, BIG = 3 << 20 };

static const char *mode = "good";

/* What a request is. */
typedef struct request {
    char id[NAME]; /* raw; "" for notifications */
    char method[NAME];
    char tool[NAME];
    char cursor[NAME];
} request;

/* Appends to `out`, which holds TEXT bytes. */
__attribute__((format(printf, 2, 3))) static void put(char *out, const char *format, ...)
{
    size_t len = strlen(out);
    va_list list;
    va_start(list, format);
    vsnprintf(out + len, TEXT - len, format, list);
    va_end(list);
}

__attribute__((format(printf, 2, 3))) static void anew(char *out, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(out, TEXT, format, list);
    va_end(list);
}

static void say_all(int fd, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t done = write(fd, at, len);
        if (done <= 0) {
            _exit(0);
        }
        at += done;
        len -= (size_t)done;
    }
}

static void say(int fd, const char *text)
{
    say_all(fd, text, strlen(text));
}

static void copy_until(char *out, const char *at, const char *stops)
{
    size_t len = strcspn(at, stops);
    len = len < NAME - 1 ? len : NAME - 1;
    memcpy(out, at, len);
    out[len] = '\0';
}

static void member(char *out, const char *text, const char *key, const char *stops)
{
    const char *at = strstr(text, key);
    out[0] = '\0';
    if (at != NULL) {
        copy_until(out, at + strlen(key), stops);
    }
}

static request read_request(const char *text)
{
    request got;
    const char *params = strstr(text, "\"params\":");
    member(got.method, text, "\"method\":\"", "\"");
    member(got.id, text, "\"id\":", ",}");
    member(got.tool, params != NULL ? params : "", "\"name\":\"", "\"");
    member(got.cursor, params != NULL ? params : "", "\"cursor\":\"", "\"");
    return got;
}

static bool is_mode(const char *name)
{
    return strcmp(mode, name) == 0;
}

static void tally(void)
{
    const char *path = getenv("BAD_SERVER_TALLY");
    int fd = path != NULL ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0) {
        say(fd, "x");
        close(fd);
    }
}

/* Until somebody makes the file BAD_SERVER_TALLY.go. */
static void wait_for_go(void)
{
    char path[300];
    const char *tally_path = getenv("BAD_SERVER_TALLY");
    snprintf(path, sizeof(path), "%s.go", tally_path != NULL ? tally_path : "");
    while (access(path, F_OK) != 0) {
        usleep(2000);
    }
}

static const char *const tools[] = {
    "wait",      "deafen",   "echo",    "exit",    "kill",          "hang",      "twice",
    "unknown",   "garbage",  "long",    "shut",    "types",         "null",      "binary",
    "ask",       "big",      "cut",     "status",  "missing",       "html",      "event",
    "progress",  "error",    "nothing", "partial", "wrong_version", "half_line", "asks",
    "asks_exit", "asks_url", "flood",   "huge",    "stall",
};

static void list_tools(const request *from, char *out)
{
    static unsigned pages;
    put(out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"tools\":", from->id);
    if (is_mode("types")) {
        put(out, "{\"echo\":true}}}");
        return;
    }
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
        put(out, "%c{\"name\":\"%s\",\"inputSchema\":{\"type\":\"object\"}}", i > 0 ? ',' : '[',
            tools[i]);
    }
    put(out, "]");
    if (is_mode("endless")) {
        put(out, ",\"nextCursor\":\"%u\"", ++pages);
    } else if (is_mode("still")) {
        put(out, ",\"nextCursor\":\"here\"");
    }
    put(out, "}}");
}

/* The answer to anything but a call; false: there is none. */
static bool answer_plain(const request *from, char *out)
{
    out[0] = '\0';
    if (from->id[0] == '\0' || from->method[0] == '\0' || is_mode("deaf")) {
        return false;
    }
    if (strcmp(from->method, "initialize") == 0) {
        anew(out,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"protocolVersion\":\"%s\","
             "\"capabilities\":{%s},\"serverInfo\":{\"name\":\"bad\",\"version\":\"1\"}}}",
             from->id, is_mode("newer") ? "2025-11-25" : "2025-06-18",
             is_mode("no_tools") ? "" : "\"tools\":{\"listChanged\":true}");
    } else if (strcmp(from->method, "tools/list") == 0) {
        if (is_mode("slow_list")) {
            return false;
        }
        list_tools(from, out);
    } else if (strcmp(from->method, "ping") == 0) {
        anew(out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}", from->id);
    } else {
        anew(out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32601,\"message\":\"no\"}}",
             from->id);
    }
    return true;
}

static void good_result(const request *from, char *out)
{
    anew(out,
         "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\","
         "\"text\":\"good\"}]}}",
         from->id);
}

/* Asks and waits for the answer: see line_asks and http_asks. */
static void question(const char *id, const char *tool, char *out)
{
    if (strcmp(tool, "asks_url") == 0) {
        anew(out,
             "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"method\":\"elicitation/create\",\"params\":{"
             "\"mode\":\"url\",\"message\":\"look\",\"url\":\"https://example.com/\","
             "\"elicitationId\":\"%s\"}}",
             id, id);
        return;
    }
    anew(out,
         "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"method\":\"elicitation/create\",\"params\":{"
         "\"message\":\"name?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}}",
         id);
}

/* `line`: the whole answer; its result, or its error, becomes a member of ours. */
static void answered_result(const request *from, const char *line, char *out)
{
    const char *at = strstr(line, "\"result\":");
    at = at != NULL ? at + 9 : strstr(line, "\"error\":");
    at = at != NULL ? at : "null}";
    const char *end = strrchr(at, '}');
    at = at[0] == '"' ? at + 8 : at;
    anew(out,
         "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\","
         "\"text\":\"good\"}],\"answer\":%.*s}}",
         from->id, (int)(end - at), at);
}

/* So many that whoever passes on each of them drowns. */
static void flood(void)
{
    enum { MANY = 100000 };
    char text[400];
    for (int i = 0; i < MANY; i++) {
        snprintf(text, sizeof(text),
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n"
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
                 "\"progressToken\":%d,\"progress\":1}}\n"
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{"
                 "\"uri\":\"file:///%d\"}}\n",
                 1000000 + i, i % 20000);
        say(1, text);
    }
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void serve_line(const char *line);

/* Whatever else comes meanwhile is served. */
static void line_asks(const request *from)
{
    static unsigned serial;
    char out[2000];
    char id[NAME];
    char *line = calloc(1, TEXT);
    char *text = calloc(1, TEXT);
    snprintf(id, sizeof(id), "q%d-%u", (int)getpid(), ++serial);
    question(id, from->tool, text);
    say(1, text);
    say(1, "\n");
    if (strcmp(from->tool, "asks_exit") == 0) {
        wait_for_go();
        fprintf(stderr, "going down\n");
        exit(3);
    }
    snprintf(out, sizeof(out), "\"requestId\":%s", from->id);
    while (fgets(line, TEXT, stdin) != NULL) {
        request got = read_request(line);
        if (got.method[0] == '\0' && strstr(line, id) != NULL) {
            answered_result(from, line, text);
            say(1, text);
            say(1, "\n");
            if (strcmp(from->tool, "asks_url") == 0) {
                wait_for_go();
                anew(text,
                     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/elicitation/complete\","
                     "\"params\":{\"elicitationId\":\"%s\"}}\n",
                     id);
                say(1, text);
            }
            break;
        }
        bool is_cancel = strcmp(got.method, "notifications/cancelled") == 0;
        if (is_cancel && strstr(line, out) != NULL) {
            fprintf(stderr, "cancelled\n");
            break;
        }
        serve_line(line);
    }
    free(line);
    free(text);
}

static void line_call(const request *from)
{
    static char out[TEXT];
    const char *tool = from->tool;
    if (strncmp(tool, "asks", 4) == 0) {
        line_asks(from);
        return;
    }
    good_result(from, out);
    if (strcmp(tool, "exit") == 0) {
        fprintf(stderr, "going down\n");
        exit(3);
    }
    if (strcmp(tool, "kill") == 0) {
        raise(SIGKILL);
    }
    if (strcmp(tool, "hang") == 0) {
        fprintf(stderr, "hanging\n");
        return;
    }
    if (strcmp(tool, "wait") == 0) {
        wait_for_go();
    }
    if (strcmp(tool, "shut") == 0) {
        close(1);
        return;
    }
    if (strcmp(tool, "half_line") == 0) {
        say_all(1, out, strlen(out) / 2);
        exit(0);
    }
    if (strcmp(tool, "garbage") == 0) {
        say(1, "Loading model...\n\n{\"jsonrpc\":\n[1,2\n\"\xff\xfe\"\n{}\n[]\n7\n");
    } else if (strcmp(tool, "babble") == 0) {
        for (int i = 0; i < 150; i++) {
            say(1, "loading…\n");
        }
    } else if (strcmp(tool, "binary") == 0) {
        say_all(1, "\0\1\2\n\0\n", 6);
    } else if (strcmp(tool, "unknown") == 0) {
        say(1, "{\"jsonrpc\":\"2.0\",\"id\":999999,\"result\":{}}\n"
               "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}\n"
               "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":\"m\"}}\n");
    } else if (strcmp(tool, "ask") == 0) {
        say(1, "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"sampling/createMessage\","
               "\"params\":{\"messages\":[],\"maxTokens\":1}}\n");
    } else if (strcmp(tool, "types") == 0) {
        anew(out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":[1]}", from->id);
    } else if (strcmp(tool, "null") == 0) {
        anew(out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":null}", from->id);
    } else if (strcmp(tool, "wrong_version") == 0) {
        anew(out, "{\"jsonrpc\":\"1.0\",\"id\":%s,\"result\":{}}", from->id);
    } else if (strcmp(tool, "error") == 0) {
        anew(out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":\"x\"}}", from->id);
    } else if (strcmp(tool, "progress") == 0) {
        say(1, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
               "\"progressToken\":\"nobody's\",\"progress\":1}}\n");
    } else if (strcmp(tool, "flood") == 0) {
        flood();
    } else if (strcmp(tool, "huge") == 0) {
        anew(out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[],\"x\":\"", from->id);
        say(1, out);
        static char part[1 << 20];
        memset(part, 'x', sizeof(part));
        for (int i = 0; i < 100; i++) {
            say_all(1, part, sizeof(part));
        }
        anew(out, "\"}}");
    } else if (strcmp(tool, "long") == 0 || strcmp(tool, "big") == 0) {
        anew(out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[],\"x\":\"", from->id);
        say(1, out);
        static char fill[BIG];
        memset(fill, 'x', BIG);
        say_all(1, fill, BIG);
        anew(out, "\"}}");
    }
    if (strcmp(tool, "deafen") == 0) {
        close(0);
    }
    say(1, out);
    say(1, "\n");
    if (strcmp(tool, "deafen") == 0 || strcmp(tool, "stall") == 0) {
        pause();
    }
    if (strcmp(tool, "twice") == 0) {
        say(1, out);
        say(1, "\n");
    }
}

static void serve_line(const char *line)
{
    static char out[TEXT];
    request got = read_request(line);
    if (strcmp(got.method, "notifications/cancelled") == 0) {
        fprintf(stderr, "cancelled\n");
    } else if (is_mode("silent")) {
        return;
    } else if (strcmp(got.method, "tools/call") == 0) {
        tally();
        line_call(&got);
    } else if (answer_plain(&got, out)) {
        say(1, out);
        say(1, "\n");
    }
}

static int serve_lines(void)
{
    static char line[TEXT];
    if (is_mode("exit")) {
        fprintf(stderr, "cannot start\n");
        return 7;
    }
    if (is_mode("noise")) {
        say(1, "Server starting\n\n* ready {\n");
    }
    while (fgets(line, sizeof(line), stdin) != NULL) {
        serve_line(line);
    }
    return 0;
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

static void reply(int fd, const char *status, const char *type, const char *body)
{
    char head[512];
    snprintf(head, sizeof(head), "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n",
             status, type, strlen(body));
    say(fd, head);
    say(fd, body);
}

static struct {
    pthread_mutex_t lock;
    pthread_cond_t came;
    unsigned serial;
    char text[TEXT]; /* the last answer */
} answers = {.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER};

/* On the call's own stream; the answer comes by another connection. */
static void http_asks(int fd, const request *from, char *out)
{
    char id[NAME];
    char quoted[NAME + 2];
    pthread_mutex_lock(&answers.lock);
    snprintf(id, sizeof(id), "q%d-%u", (int)getpid(), ++answers.serial);
    pthread_mutex_unlock(&answers.lock);
    snprintf(quoted, sizeof(quoted), "\"%s\"", id);
    say(fd, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ");
    question(id, from->tool, out);
    say(fd, out);
    say(fd, "\n\n");
    if (strcmp(from->tool, "asks_exit") == 0) {
        wait_for_go();
        return;
    }
    pthread_mutex_lock(&answers.lock);
    while (strstr(answers.text, quoted) == NULL) {
        pthread_cond_wait(&answers.came, &answers.lock);
    }
    answered_result(from, answers.text, out);
    pthread_mutex_unlock(&answers.lock);
    say(fd, "data: ");
    say(fd, out);
    say(fd, "\n\n");
}

static void http_answered(const char *body)
{
    pthread_mutex_lock(&answers.lock);
    snprintf(answers.text, sizeof(answers.text), "%s", body);
    pthread_cond_broadcast(&answers.came);
    pthread_mutex_unlock(&answers.lock);
}

/* False: the connection is over. */
static bool http_call(int fd, const request *from, char *out)
{
    const char *tool = from->tool;
    good_result(from, out);
    if (strcmp(tool, "hang") == 0) {
        pause();
        return false;
    }
    if (strncmp(tool, "asks", 4) == 0) {
        http_asks(fd, from, out);
        return false;
    }
    if (strcmp(tool, "nothing") == 0) {
        return false;
    }
    if (strcmp(tool, "partial") == 0) {
        say(fd, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
                "{\"jsonrpc\":");
        return false;
    }
    if (strcmp(tool, "cut") == 0) {
        say(fd, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
                "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":"
                "{\"level\":\"info\",\"data\":1}}\n\ndata: {\"json");
        return false;
    }
    if (strcmp(tool, "event") == 0) {
        say(fd, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hello\n\ndata: ");
        say(fd, out);
        say(fd, "\n\n");
        return false;
    }
    if (strcmp(tool, "status") == 0) {
        reply(fd, "500 Internal Server Error", "text/plain", "it broke");
    } else if (strcmp(tool, "missing") == 0) {
        reply(fd, "404 Not Found", "text/plain", "gone");
    } else if (strcmp(tool, "html") == 0) {
        reply(fd, "200 OK", "text/html", "<html>Welcome to the hotel's network</html>");
    } else if (strcmp(tool, "garbage") == 0) {
        reply(fd, "200 OK", "application/json", "{\"jsonrpc\":");
    } else if (strcmp(tool, "types") == 0) {
        reply(fd, "200 OK", "application/json", "[1,2]");
    } else {
        reply(fd, "200 OK", "application/json", out);
    }
    return true;
}

static bool http_message(int fd, const char *head, const char *body, char *out)
{
    request got = read_request(body);
    if (strncmp(head, "POST ", 5) != 0) {
        reply(fd, "405 Method Not Allowed", "text/plain", "");
        return true;
    }
    if (strcmp(got.method, "tools/call") == 0) {
        tally();
        return http_call(fd, &got, out);
    }
    if (got.method[0] == '\0') {
        http_answered(body);
    }
    if (answer_plain(&got, out)) {
        reply(fd, "200 OK", "application/json", out);
    } else {
        say(fd, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
    }
    return true;
}

/* One connection; the gateway sends a request at a time. */
static void *serve_connection(void *argument)
{
    int fd = (int)(intptr_t)argument;
    char *text = calloc(1, TEXT);
    char *out = calloc(1, TEXT);
    size_t len = 0;
    bool is_open = text != NULL && out != NULL;
    while (is_open && len < TEXT - 1) {
        ssize_t got = read(fd, text + len, TEXT - 1 - len);
        if (got <= 0) {
            break;
        }
        len += (size_t)got;
        text[len] = '\0';
        char *body = strstr(text, "\r\n\r\n");
        char *field = body != NULL ? strcasestr(text, "\r\ncontent-length:") : NULL;
        size_t wanted = field != NULL ? strtoul(field + 17, NULL, 10) : 0;
        if (body != NULL && len >= (size_t)(body + 4 - text) + wanted) {
            is_open = http_message(fd, text, body + 4, out);
            len = 0;
        }
    }
    close(fd);
    free(text);
    free(out);
    return NULL;
}

static int serve_http(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&at, size) != 0 ||
        listen(listener, 64) != 0 || getsockname(listener, (struct sockaddr *)&at, &size) != 0) {
        return 1;
    }
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    for (;;) {
        pthread_t thread;
        int fd = accept(listener, NULL, NULL);
        if (fd < 0 || pthread_create(&thread, NULL, serve_connection, (void *)(intptr_t)fd) != 0) {
            return 1;
        }
        pthread_detach(thread);
    }
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stderr, NULL, _IOLBF, 0);
    if (argc > 2) {
        mode = argv[2];
    }
    if (argc > 1 && strcmp(argv[1], "http") == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        return serve_http();
    }
    return serve_lines();
}

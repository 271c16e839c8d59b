/* lint --conformance: servers and agents without a fault, and with one each, which is told and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/str.h"
#include "support/program.h"
#include "support/skipped.h"
#include "json/json.h"

/* ---- a server with one fault ----------------------------------------------------------------- */

enum { ANSWER_BYTES = 4096, REQUEST_BYTES = 64 * 1024 };

typedef struct peer {
    const char *fault;
    bool is_modern;
    bool is_agent;
    bool is_http;
    int status;
    const char *content_type;
    char out[ANSWER_BYTES];
    bool is_deaf;
    int calls;
    arena memory;
} peer;

static bool faulty(const peer *self, const char *fault)
{
    return strcmp(self->fault, fault) == 0;
}

static bay_str text_at(peer *self, json_val of, const char *name)
{
    bay_str text = {"", 0};
    json_val value = json_get(of, str_of(name));
    if (json_is(value, JSON_STRING)) {
        text = json_str(value, &self->memory, &text) == BAY_OK ? text : (bay_str){"", 0};
    }
    return text;
}

static void put_answer(peer *self, json_val message, const char *rest)
{
    bay_str id = json_raw(json_get(message, STR("id")));
    const char *version = faulty(self, "envelope") ? "1.0" : "2.0";
    if (faulty(self, "id-changed") && id.len > 0 && id.at[0] == '"') {
        id = (bay_str){id.at + 1, id.len - 2}; /* a text becomes a number */
        id = id.len == 1 ? id : STR("0");
    }
    snprintf(self->out, sizeof(self->out), "{\"jsonrpc\":\"%s\",\"id\":%.*s,%s}", version,
             BAY_STR(id), rest);
}

static void put_error(peer *self, json_val message, int code, int status)
{
    char rest[128];
    snprintf(rest, sizeof(rest), "\"error\":{\"code\":%d,\"message\":\"no\"}", code);
    self->status = status;
    put_answer(self, message, rest);
}

/* An error with that code, or, with the fault, a result. */
static void refuse(peer *self, json_val message, const char *fault, int code, const char *otherwise)
{
    if (faulty(self, fault)) {
        put_answer(self, message, otherwise);
    } else {
        put_error(self, message, code, self->is_modern && code == -32601 ? 404 : 200);
    }
}

#define CAPABILITIES "\"capabilities\":{\"tools\":{},\"prompts\":{},\"resources\":{}}"
#define CACHED ",\"resultType\":\"complete\",\"ttlMs\":0,\"cacheScope\":\"private\""

static void answer_start(peer *self, json_val message, json_val params)
{
    bay_str asked = text_at(self, params, "protocolVersion");
    bool is_known = str_eq(asked, STR("2025-11-25"));
    char rest[512];
    if (self->is_modern || (!is_known && faulty(self, "version-negotiation")) ||
        faulty(self, "handshake")) {
        put_error(self, message, -32601, 404);
        return;
    }
    snprintf(rest, sizeof(rest),
             "\"result\":{\"protocolVersion\":\"2025-11-25\"," CAPABILITIES
             ",\"serverInfo\":{\"name\":\"peer\",\"version\":\"1\"}}");
    put_answer(self, message, rest);
}

static void answer_list(peer *self, json_val message, bay_str method, json_val params)
{
    bay_str cursor = text_at(self, params, "cursor");
    const char *item = faulty(self, "item-shape") ? "{\"name\":7}"
                       : str_eq(method, STR("resources/list"))
                           ? "{\"name\":\"r\",\"uri\":\"x:r\"}"
                           : "{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}";
    bay_str member = str_eq(method, STR("tools/list"))       ? STR("tools")
                     : str_eq(method, STR("prompts/list"))   ? STR("prompts")
                     : str_eq(method, STR("resources/list")) ? STR("resources")
                                                             : STR("resourceTemplates");
    bool is_templates = str_eq(member, STR("resourceTemplates"));
    char rest[512];
    if (str_eq(cursor, STR("patchbay-no-such-cursor")) && !faulty(self, "bad-cursor")) {
        put_error(self, message, -32602, 200);
        return;
    }
    snprintf(rest, sizeof(rest), "\"result\":{\"%.*s\":[%s]%s%s}", BAY_STR(member),
             is_templates ? "" : item,
             faulty(self, "endless-pages") ? ",\"nextCursor\":\"on\"" : "",
             self->is_modern ? CACHED : "");
    put_answer(self, message, rest);
}

static bool is_list(bay_str method)
{
    return method.len > 5 && str_eq(str_from(method, method.len - 5), STR("/list"));
}

static void answer_server(peer *self, json_val message, bay_str method, json_val params)
{
    if (str_eq(method, STR("initialize"))) {
        answer_start(self, message, params);
    } else if (str_eq(method, STR("server/discover")) && self->is_modern) {
        put_answer(self, message,
                   "\"result\":{\"supportedVersions\":[\"2026-07-28\"]," CAPABILITIES CACHED
                   ",\"serverInfo\":{\"name\":\"peer\",\"version\":\"1\"}}");
    } else if (str_eq(method, STR("ping")) && !self->is_modern) {
        put_answer(self, message,
                   faulty(self, "ping")           ? "\"error\":{\"code\":-32601,\"message\":\"no\"}"
                   : faulty(self, "result-shape") ? "\"result\":{\"_meta\":7}"
                                                  : "\"result\":{}");
    } else if (is_list(method)) {
        answer_list(self, message, method, params);
    } else if (str_eq(method, STR("tools/call"))) {
        refuse(self, message, "unknown-tool", -32602,
               "\"result\":{\"content\":[],\"resultType\":\"complete\"}");
    } else if (str_eq(method, STR("prompts/get"))) {
        if (faulty(self, "connection-ended") && !self->is_http) {
            exit(0);
        }
        self->is_deaf = faulty(self, "no-answer");
        refuse(self, message, "unknown-prompt", -32602, "\"result\":{\"messages\":[]}");
    } else if (str_eq(method, STR("resources/read"))) {
        refuse(self, message, "unknown-resource", self->is_modern ? -32602 : -32002,
               "\"result\":{\"contents\":[]}");
    } else {
        refuse(self, message, "unknown-method", -32601, "\"result\":{}");
    }
}

static void answer_agent(peer *self, json_val message, bay_str method, json_val params)
{
    if (!str_eq(method, STR("GetTask"))) {
        refuse(self, message, "unknown-method", -32601, "\"result\":{}");
    } else if (json_get(params, STR("id")).doc == NULL) {
        refuse(self, message, "bad-params", -32602, "\"result\":{}");
    } else {
        refuse(self, message, "unknown-task", -32001, "\"result\":{}");
    }
}

/* What it says to one message; "" in `out`: nothing. */
static void hear(peer *self, const char *text)
{
    json_doc doc;
    self->out[0] = '\0';
    self->status = 200;
    if (json_parse(&doc, str_of(text), NULL, &self->memory, NULL) != BAY_OK) {
        self->is_deaf = faulty(self, "broken-message");
        self->status = faulty(self, "parse-error") ? 200 : 400;
        snprintf(self->out, sizeof(self->out), "%s",
                 self->is_http && faulty(self, "parse-error") ? "{}" : "");
        return;
    }
    json_val message = json_root(&doc);
    bay_str method = text_at(self, message, "method");
    json_val params = json_get(message, STR("params"));
    if (json_get(message, STR("id")).doc == NULL) {
        self->is_deaf =
            faulty(self, "cancellation") && str_eq(method, STR("notifications/cancelled"));
        self->status = faulty(self, "notification-status") ? 200 : 202;
        if (faulty(self, "answers-notification")) {
            snprintf(self->out, sizeof(self->out),
                     "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}");
        }
    } else if (self->is_agent) {
        answer_agent(self, message, method, params);
    } else {
        answer_server(self, message, method, params);
    }
}

/* ---- its carriers ---------------------------------------------------------------------------- */

static int serve_stdio(peer *self)
{
    static char line[REQUEST_BYTES];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (!self->is_deaf) {
            arena_init(&self->memory, 1 << 20);
            hear(self, line);
            arena_fini(&self->memory);
        }
        if (self->out[0] != '\0' && !self->is_deaf) {
            printf("%s%s\n", faulty(self, "not-json") ? "ready\n" : "", self->out);
            fflush(stdout);
        }
    }
    return 0;
}

static bool has_field(const char *head, const char *field)
{
    return strcasestr(head, field) != NULL;
}

/* What HTTP refuses before the message is looked at; 0: nothing. */
static int refused(const peer *self, const char *head, const char *body)
{
    static const struct {
        const char *field;
        const char *fault;
        int status;
    } rows[] = {
        {"Origin: https://patchbay.invalid", "origin", 403},
        {"MCP-Protocol-Version: 1999-01-01", "version-header", 400},
        {"Mcp-Session-Id: patchbay-no-such-session", "unknown-session", 404},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool is_version = strstr(body, "\"1999-01-01\"") != NULL; /* see modern_checks */
        if (has_field(head, rows[i].field) && !faulty(self, rows[i].fault) && !is_version) {
            return rows[i].status;
        }
    }
    return 0;
}

/* In place of what it says so far. */
static void say_instead(peer *self, const char *error)
{
    char *at = strstr(self->out, "\"result\"");
    at = at != NULL ? at : strstr(self->out, "\"error\"");
    snprintf(at, (size_t)(self->out + sizeof(self->out) - at), "\"error\":{%s}}", error);
}

static void modern_checks(peer *self, const char *head, const char *body)
{
    bool has_meta = strstr(body, "_meta") != NULL;
    if (strstr(body, "\"1999-01-01\"") != NULL && !faulty(self, "version-negotiation")) {
        self->status = 400;
        say_instead(self,
                    "\"code\":-32022,\"message\":\"no\",\"data\":{\"supported\":[\"2026-07-28\"]}");
    } else if (!has_meta && strstr(body, "tools/list") != NULL && !faulty(self, "missing-meta")) {
        self->status = 400;
        say_instead(self, "\"code\":-32602,\"message\":\"no\"");
    } else if (has_field(head, "Mcp-Method: tools/list") &&
               strstr(body, "server/discover") != NULL && !faulty(self, "header-mismatch")) {
        self->status = 400;
    }
}

static void answer_http(peer *self, const char *head, const char *body, int port)
{
    self->content_type = faulty(self, "content-type") ? "text/plain" : "application/json";
    int status = refused(self, head, body);
    if (strncmp(head, "GET /.well-known/agent-card.json", 32) == 0) {
        snprintf(self->out, sizeof(self->out),
                 "{\"name\":\"peer\",\"description\":\"d\",\"version\":\"1\",\"capabilities\":{},"
                 "\"defaultInputModes\":[],\"defaultOutputModes\":[],\"skills\":[],"
                 "\"supportedInterfaces\":[{\"url\":\"http://127.0.0.1:%d/\","
                 "\"protocolBinding\":\"JSONRPC\",\"protocolVersion\":\"1.0\"}]}",
                 port);
        self->status = 200;
    } else if (strncmp(head, "GET ", 4) == 0) {
        self->status = faulty(self, "get") ? 200 : 405;
    } else if (status != 0) {
        self->status = status;
    } else {
        hear(self, body);
        if (self->is_modern && self->out[0] != '\0') {
            modern_checks(self, head, body);
        }
        if (self->is_agent && has_field(head, "A2A-Version: 9.9") && !faulty(self, "a2a-version")) {
            say_instead(self, "\"code\":-32009,\"message\":\"no\"");
        }
    }
}

static void serve_connection(peer *self, int fd, int port)
{
    static char request[REQUEST_BYTES];
    size_t len = 0;
    char *body = NULL;
    size_t length = 0;
    while (body == NULL || len < (size_t)(body - request) + length) {
        ssize_t got = read(fd, request + len, sizeof(request) - 1 - len);
        if (got <= 0) {
            return;
        }
        len += (size_t)got;
        request[len] = '\0';
        char *end = strstr(request, "\r\n\r\n");
        if (end != NULL && body == NULL) {
            const char *said = strcasestr(request, "content-length: ");
            body = end + 4;
            length = said != NULL && said < end ? strtoul(said + 16, NULL, 10) : 0;
        }
    }
    char head[REQUEST_BYTES];
    snprintf(head, sizeof(head), "%.*s", (int)(body - request), request);
    arena_init(&self->memory, 1 << 20);
    self->out[0] = '\0';
    answer_http(self, head, body, port);
    arena_fini(&self->memory);
    dprintf(fd, "HTTP/1.1 %d X\r\n%s%s%s%sContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
            self->status, self->out[0] != '\0' ? "Content-Type: " : "",
            self->out[0] != '\0' ? self->content_type : "", self->out[0] != '\0' ? "\r\n" : "",
            self->is_modern || self->is_agent ? "" : "Mcp-Session-Id: one\r\n", strlen(self->out),
            self->out);
}

/* Prints its port first. */
static int serve_http(peer *self)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listening, (struct sockaddr *)&address, len) != 0 || listen(listening, 64) != 0 ||
        getsockname(listening, (struct sockaddr *)&address, &len) != 0) {
        return 1;
    }
    int port = ntohs(address.sin_port);
    printf("%d\n", port);
    fflush(stdout);
    for (;;) {
        int fd = accept(listening, NULL, NULL);
        if (fd >= 0) {
            serve_connection(self, fd, port);
            close(fd);
        }
    }
}

/* --peer CARRIER FAULT; the carrier: stdio, http, modern or agent. */
static int run_peer(const char *carrier, const char *fault)
{
    peer self = {.fault = fault,
                 .is_modern = strcmp(carrier, "modern") == 0,
                 .is_agent = strcmp(carrier, "agent") == 0,
                 .is_http = strcmp(carrier, "stdio") != 0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return self.is_http ? serve_http(&self) : serve_stdio(&self);
}

/* ---- the tests ------------------------------------------------------------------------------- */

typedef struct trial {
    const char *carrier;
    const char *fault;
    int server; /* over HTTP: its process */
    char target[64];
    run run;
} trial;

enum { AT_ONCE = 20 };

static void start_server(trial *self)
{
    int ends[2];
    char port[16] = "";
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    self->server = fork();
    assert_true(self->server >= 0);
    if (self->server == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl(self_path, self_path, "--peer", self->carrier, self->fault, NULL);
        _exit(127);
    }
    close(ends[1]);
    assert_true(read(ends[0], port, sizeof(port) - 1) > 1);
    close(ends[0]);
    port[strcspn(port, "\n")] = '\0';
    snprintf(self->target, sizeof(self->target), "%shttp://127.0.0.1:%s/",
             strcmp(self->carrier, "agent") == 0 ? "agent:" : "", port);
}

static bool is_silent(const char *fault)
{
    return strcmp(fault, "no-answer") == 0 || strcmp(fault, "id-changed") == 0 ||
           strcmp(fault, "broken-message") == 0 || strcmp(fault, "cancellation") == 0;
}

static void start_trial(trial *self)
{
    const char *timeout = is_silent(self->fault) ? "1s" : "60s";
    if (strcmp(self->carrier, "stdio") == 0) {
        start(&self->run,
              (const char *const[]){binary, "lint", "--conformance", "--timeout", timeout, "--",
                                    self_path, "--peer", "stdio", self->fault, NULL});
    } else {
        start_server(self);
        start(&self->run, (const char *const[]){binary, "lint", "--conformance", "--timeout",
                                                timeout, self->target, NULL});
    }
}

static size_t count_lines(const char *text, const char *with)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, with)) != NULL; at++) {
        count++;
    }
    return count;
}

static void end_trial(trial *self)
{
    char error[64];
    char warning[64];
    bool is_good = strcmp(self->fault, "none") == 0;
    finish(&self->run);
    if (self->server > 0) {
        kill(self->server, SIGKILL);
        waitpid(self->server, NULL, 0);
    }
    snprintf(error, sizeof(error), "\n  error   %s ", self->fault);
    snprintf(warning, sizeof(warning), "\n  warning %s ", self->fault);
    size_t told =
        count_lines(self->run.out, "\n  error   ") + count_lines(self->run.out, "\n  warning ");
    size_t right = count_lines(self->run.out, error) + count_lines(self->run.out, warning);
    bool is_right = is_good ? self->run.code == 0 && told == 0
                            : self->run.code >= 11 && right > 0 &&
                                  (right == told || is_silent(self->fault) ||
                                   strcmp(self->fault, "connection-ended") == 0);
    if (!is_right) {
        fail_msg("%s %s: exit code %d, %zu of %zu: %s%s", self->carrier, self->fault,
                 self->run.code, right, told, self->run.out, self->run.err);
    }
}

static void run_trials(trial *trials, size_t count)
{
    for (size_t at = 0; at < count; at += AT_ONCE) {
        for (size_t i = at; i < count && i < at + AT_ONCE; i++) {
            start_trial(&trials[i]);
        }
        for (size_t i = at; i < count && i < at + AT_ONCE; i++) {
            end_trial(&trials[i]);
        }
    }
}

static void faults_on_a_pipe_are_told(void **state)
{
    static trial trials[] = {
        {.fault = "none"},
        {.fault = "no-answer"},
        {.fault = "connection-ended"},
        {.fault = "not-json"},
        {.fault = "envelope"},
        {.fault = "id-changed"},
        {.fault = "result-shape"},
        {.fault = "unknown-method"},
        {.fault = "broken-message"},
        {.fault = "handshake"},
        {.fault = "unknown-tool"},
        {.fault = "version-negotiation"},
        {.fault = "unknown-prompt"},
        {.fault = "unknown-resource"},
        {.fault = "answers-notification"},
        {.fault = "bad-cursor"},
        {.fault = "endless-pages"},
        {.fault = "item-shape"},
        {.fault = "ping"},
        {.fault = "cancellation"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(trials); i++) {
        trials[i].carrier = "stdio";
    }
    run_trials(trials, ARRAY_LEN(trials));
}

static void faults_over_http_are_told(void **state)
{
    static trial trials[] = {
        {.carrier = "http", .fault = "none"},
        {.carrier = "http", .fault = "parse-error"},
        {.carrier = "http", .fault = "content-type"},
        {.carrier = "http", .fault = "notification-status"},
        {.carrier = "http", .fault = "origin"},
        {.carrier = "http", .fault = "version-header"},
        {.carrier = "http", .fault = "unknown-session"},
        {.carrier = "http", .fault = "get"},
        {.carrier = "modern", .fault = "none"},
        {.carrier = "modern", .fault = "version-negotiation"},
        {.carrier = "modern", .fault = "missing-meta"},
        {.carrier = "modern", .fault = "header-mismatch"},
    };
    (void)state;
    run_trials(trials, ARRAY_LEN(trials));
}

static void faults_of_agents_are_told(void **state)
{
    static trial trials[] = {
        {.carrier = "agent", .fault = "none"},
        {.carrier = "agent", .fault = "unknown-method"},
        {.carrier = "agent", .fault = "unknown-task"},
        {.carrier = "agent", .fault = "bad-params"},
        {.carrier = "agent", .fault = "a2a-version"},
        {.carrier = "agent", .fault = "parse-error"},
    };
    (void)state;
    run_trials(trials, ARRAY_LEN(trials));
}

static void it_needs_somebody_who_answers(void **state)
{
    (void)state;
    PATCHBAY("lint", "--conformance");
    assert_ended(2, "");
    PATCHBAY("lint", "--conformance", "@/no/such/file");
    assert_ended(2, "");
    assert_has(result.err, "--conformance needs a TARGET that answers");
    PATCHBAY("lint", "--conformance", "--", "/no/such/program");
    assert_ended(3, "");
    PATCHBAY("lint", "--conformance", "http://127.0.0.1:1/");
    assert_int_equal(result.code, 12);
    assert_has(result.out, "connection-ended");
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--peer") == 0) {
        return run_peer(argv[2], argv[3]);
    }
    find_programs();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_on_a_pipe_are_told),
        cmocka_unit_test(faults_over_http_are_told),
        cmocka_unit_test(faults_of_agents_are_told),
        cmocka_unit_test(it_needs_somebody_who_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

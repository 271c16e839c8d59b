/* Clients of MCP over every transport, for one request at a time to a server whose loop runs on
 * another thread: Streamable HTTP, HTTP+SSE of 2024, stdio, in process. In texts given here '
 * stands for ". */
#ifndef SUPPORT_DOOR_CLIENTS_H
#define SUPPORT_DOOR_CLIENTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/str.h"
#include "mcp_transport/link.h"
#include "mcp_transport/stdio.h"
#include "support/door_watch.h"
#include "support/door_wire.h"
#include "support/people.h"
#include "json/json.h"

enum { DOOR_TEXT = 64 << 10 };

/* What is asked. */
typedef struct door_place {
    const char *name;
    uint16_t port;
    loop *loop; /* on which the engine lives */
    mcp_server *engine;
} door_place;

typedef struct door_client door_client;

typedef struct door_transport {
    const char *name;
    bool has_caller; /* the caller is who it says; else the local user */
    void (*open)(door_client *self);
    /* Waits for the answer with this id, or for an acknowledged listen; fills `text`. */
    void (*ask)(door_client *self, const mcp_method *method, const char *name, const char *params,
                int id);
    void (*close)(door_client *self);
} door_transport;

struct door_client {
    const door_transport *by;
    const door_place *at;
    const mcp_revision *revision;
    const char *who;
    const char *capabilities; /* JSON */
    int fd;                   /* of stdio, or the stream of HTTP+SSE */
    char session[400];        /* of Streamable HTTP */
    char target[400];         /* of HTTP+SSE: where messages go */
    char text[DOOR_TEXT];     /* what the last request was answered with; also HTTP's head */
    char line[DOOR_TEXT];     /* a line of stdio, an event */
    char params[8192];        /* of a call in process */
    mcp_stdio *stdio;         /* of the place's loop, as the following */
    mcp_link *link;
    mcp_call *call;
    arena memory;
    bay_str method;
    atomic_int is_done;
};

/* ---- the loop of the place ------------------------------------------------------------------- */

static inline void door_wait(atomic_int *is_done)
{
    for (int i = 0; i < DOOR_GIVE_UP_MS && !atomic_load(is_done); i++) {
        poll(NULL, 0, 1);
    }
    assert_true(atomic_load(is_done));
}

/* Runs it there; it sets is_done, now or later. */
static inline void door_there(door_client *self, void (*function)(void *client))
{
    atomic_store(&self->is_done, 0);
    assert_int_equal(loop_post(self->at->loop, function, self), BAY_OK);
    door_wait(&self->is_done);
}

/* ---- messages -------------------------------------------------------------------------------- */

static inline bool door_is_modern(const door_client *self)
{
    return self->revision->era == MCP_MODERN;
}

static inline void door_message(const door_client *self, bay_str method, const char *params, int id,
                                char *out, size_t size)
{
    char meta[500] = "";
    if (door_is_modern(self)) {
        (void)snprintf(meta, sizeof(meta),
                       "%s'_meta':{'io.modelcontextprotocol/protocolVersion':'%.*s',"
                       "'io.modelcontextprotocol/clientInfo':{'name':'c','version':'1'},"
                       "'io.modelcontextprotocol/clientCapabilities':%s}",
                       params[0] != '\0' ? "," : "", BAY_STR(self->revision->text),
                       self->capabilities);
    }
    int len = snprintf(out, size, "{'jsonrpc':'2.0','id':%d,'method':'%.*s','params':{%s%s}}", id,
                       BAY_STR(method), params, meta);
    assert_true(len > 0 && (size_t)len < size);
    door_quotes(out);
}

static inline void door_hello(const door_client *self, char *out, size_t size)
{
    (void)snprintf(out, size,
                   "{'jsonrpc':'2.0','id':1,'method':'initialize','params':{'protocolVersion':"
                   "'%.*s','capabilities':%s,'clientInfo':{'name':'c','version':'1'}}}",
                   BAY_STR(self->revision->text), self->capabilities);
    door_quotes(out);
}

#define DOOR_INITIALIZED "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"

/* ---- Streamable HTTP ------------------------------------------------------------------------- */

/* The whole reply; but of a stream that stays open what came up to the answer. */
static inline void door_exchange(door_client *self, const char *verb, const char *target,
                                 const char *fields, const char *body, int id)
{
    char head[2048];
    int fd = door_connect(self->at->port);
    int len = snprintf(head, sizeof(head),
                       "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nX-Caller: %s\r\n"
                       "Content-Type: application/json\r\n"
                       "Accept: application/json, text/event-stream\r\nContent-Length: %zu\r\n"
                       "%s\r\n",
                       verb, target, self->who, strlen(body), fields);
    door_send(fd, head, (size_t)len);
    door_send(fd, body, strlen(body));
    self->text[0] = '\0';
    while (door_receive(fd, self->text, sizeof(self->text))) {
        if (strstr(self->text, "notifications/subscriptions/acknowledged") != NULL &&
            door_is_answered(self->text, id, "\n\n")) {
            break;
        }
    }
    close(fd);
}

static inline void door_http_say(door_client *self, const mcp_method *method, const char *name,
                                 const char *body, int id)
{
    char fields[1024];
    if (door_is_modern(self)) {
        (void)snprintf(fields, sizeof(fields),
                       "MCP-Protocol-Version: %.*s\r\nMcp-Method: %.*s\r\n%s%s%s",
                       BAY_STR(self->revision->text), BAY_STR(method->text),
                       name[0] != '\0' ? "Mcp-Name: " : "", name, name[0] != '\0' ? "\r\n" : "");
    } else {
        (void)snprintf(fields, sizeof(fields), "Mcp-Session-Id: %s\r\n%s%.*s%s", self->session,
                       self->revision->id >= MCP_REV_2025_06_18 ? "MCP-Protocol-Version: " : "",
                       self->revision->id >= MCP_REV_2025_06_18 ? (int)self->revision->text.len : 0,
                       self->revision->text.at,
                       self->revision->id >= MCP_REV_2025_06_18 ? "\r\n" : "");
    }
    door_exchange(self, "POST", "/mcp", fields, body, id);
}

static inline void door_http_open(door_client *self)
{
    char body[1000];
    if (door_is_modern(self)) {
        return;
    }
    door_hello(self, body, sizeof(body));
    door_exchange(self, "POST", "/mcp", "", body, 1);
    const char *at = strstr(self->text, "Mcp-Session-Id: ");
    if (at == NULL) {
        fail_msg("no session: %s", self->text);
    }
    assert_int_equal(sscanf(at + 16, "%399[^\r]", self->session), 1);
    door_http_say(self, NULL, "", DOOR_INITIALIZED, 0);
}

static inline void door_http_ask(door_client *self, const mcp_method *method, const char *name,
                                 const char *params, int id)
{
    static char body[DOOR_TEXT];
    door_message(self, method->text, params, id, body, sizeof(body));
    door_http_say(self, method, name, body, id);
}

static inline void door_http_close(door_client *self)
{
    char fields[500];
    if (self->session[0] != '\0') {
        (void)snprintf(fields, sizeof(fields), "Mcp-Session-Id: %s\r\n", self->session);
        door_exchange(self, "DELETE", "/mcp", fields, "", 0);
    }
}

/* ---- HTTP+SSE -------------------------------------------------------------------------------- */

/* The answer comes by the stream. */
static inline void door_sse_say(door_client *self, const char *body, int id)
{
    self->line[0] = '\0';
    door_exchange(self, "POST", self->target, "", body, id);
    if (strncmp(self->text, "HTTP/1.1 202", 12) != 0) {
        return; /* refused at the door of the transport */
    }
    while (id > 0 && !door_is_answered(self->line, id, "\n")) {
        assert_true(door_receive(self->fd, self->line, sizeof(self->line)));
    }
    memcpy(self->text, self->line, sizeof(self->text));
}

static inline void door_sse_open(door_client *self)
{
    char text[1000];
    self->fd = door_connect(self->at->port);
    int len = snprintf(text, sizeof(text),
                       "GET /sse HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Caller: %s\r\n"
                       "Accept: text/event-stream\r\n\r\n",
                       self->who);
    door_send(self->fd, text, (size_t)len);
    self->line[0] = '\0';
    while (strstr(self->line, "data: ") == NULL ||
           strchr(strstr(self->line, "data: "), '\n') == 0) {
        assert_true(door_receive(self->fd, self->line, sizeof(self->line)));
    }
    assert_int_equal(sscanf(strstr(self->line, "data: ") + 6, "%399[^\r\n]", self->target), 1);
    if (!door_is_modern(self)) {
        door_hello(self, text, sizeof(text));
        door_sse_say(self, text, 1);
        assert_non_null(strstr(self->text, "protocolVersion"));
        door_sse_say(self, DOOR_INITIALIZED, 0);
    }
}

static inline void door_sse_ask(door_client *self, const mcp_method *method, const char *name,
                                const char *params, int id)
{
    static char body[DOOR_TEXT];
    (void)name;
    door_message(self, method->text, params, id, body, sizeof(body));
    door_sse_say(self, body, id);
}

static inline void door_fd_close(door_client *self)
{
    close(self->fd);
}

/* ---- stdio ----------------------------------------------------------------------------------- */

static inline void door_stdio_over(void *user)
{
    (void)user;
}

static inline void door_stdio_there(void *user)
{
    door_client *self = user;
    int out = dup(self->fd);
    bay_err err = mcp_stdio_new(self->at->loop, self->at->engine, self->fd, out, 60000,
                                door_stdio_over, self, &self->stdio);
    atomic_store(&self->is_done, err == BAY_OK ? 1 : -1);
}

static inline void door_stdio_free_there(void *user)
{
    door_client *self = user;
    mcp_stdio_free(self->stdio);
    atomic_store(&self->is_done, 1);
}

static inline void door_stdio_say(door_client *self, const char *body, int id)
{
    self->text[0] = '\0';
    door_send(self->fd, body, strlen(body));
    door_send(self->fd, "\n", 1);
    while (id > 0 && !door_is_answered(self->text, id, "\n")) {
        assert_true(door_receive(self->fd, self->text, sizeof(self->text)));
    }
}

static inline void door_stdio_open(door_client *self)
{
    int ends[2];
    char body[1000];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    self->fd = ends[1];
    door_there(self, door_stdio_there);
    assert_int_equal(atomic_load(&self->is_done), 1);
    self->fd = ends[0];
    if (!door_is_modern(self)) {
        door_hello(self, body, sizeof(body));
        door_stdio_say(self, body, 1);
        assert_non_null(strstr(self->text, "protocolVersion"));
        door_stdio_say(self, DOOR_INITIALIZED, 0);
    }
}

static inline void door_stdio_ask(door_client *self, const mcp_method *method, const char *name,
                                  const char *params, int id)
{
    static char body[DOOR_TEXT];
    (void)name;
    door_message(self, method->text, params, id, body, sizeof(body));
    door_stdio_say(self, body, id);
}

static inline void door_stdio_close(door_client *self)
{
    door_there(self, door_stdio_free_there);
    close(self->fd);
}

/* ---- in process ------------------------------------------------------------------------------ */

static inline void door_local_ready(void *user)
{
    atomic_store(&((door_client *)user)->is_done, 1);
}

static inline void door_local_broken(void *user, bay_err err, const char *text)
{
    print_error("broken: %s %s\n", bay_err_text(err), text);
    atomic_store(&((door_client *)user)->is_done, -1);
}

static const mcp_client_events door_local_events = {.ready = door_local_ready,
                                                    .broken = door_local_broken};

static inline void door_local_open_there(void *user)
{
    door_client *self = user;
    mcp_link_options options = {.client = {.name = STR("c"),
                                           .version = STR("1"),
                                           .capabilities = str_of(self->capabilities),
                                           .oldest = self->revision->id,
                                           .newest = self->revision->id,
                                           .call_timeout_ms = 60000,
                                           .max_total_ms = 60000,
                                           .max_calls = 100},
                                .events = &door_local_events,
                                .user = self,
                                .principal = person(DOOR_LINK_CALLER)};
    if (mcp_link_open_local(self->at->loop, self->at->engine, &options, &self->link) != BAY_OK) {
        atomic_store(&self->is_done, -1);
    }
}

static inline void door_local_done(void *user, mcp_call *call, const mcp_outcome *outcome)
{
    door_client *self = user;
    (void)call;
    bay_str raw =
        outcome->kind == MCP_OUTCOME_FAILED
            ? str_of(outcome->text)
            : json_raw(outcome->kind == MCP_OUTCOME_RESULT ? outcome->result : outcome->error);
    (void)snprintf(self->text, sizeof(self->text), "\"%s\":%.*s",
                   outcome->kind == MCP_OUTCOME_RESULT ? "result" : "error", BAY_STR(raw));
    self->call = NULL;
    atomic_store(&self->is_done, 1);
}

static const mcp_call_events door_local_call_events = {.done = door_local_done};

static inline void door_local_ask_there(void *user)
{
    door_client *self = user;
    json_doc doc;
    bay_diag diag = {0};
    bay_err err = json_parse(&doc, str_of(self->params), NULL, &self->memory, NULL);
    mcp_call_spec spec = {
        .method = self->method,
        .principal = person(self->who),
        .params = err == BAY_OK ? json_root(&doc) : JSON_NONE,
        .capabilities = str_of(self->capabilities),
    };
    if (err == BAY_OK) {
        err = mcp_client_call(mcp_link_client(self->link), &spec, &door_local_call_events, self,
                              loop_now_ms(self->at->loop), &self->call, &diag);
    }
    if (err != BAY_OK) {
        (void)snprintf(self->text, sizeof(self->text), "not sent: %s", diag.text);
        atomic_store(&self->is_done, 1);
    }
}

/* A listen is no call of the client engine, but a state of it. */
static inline void door_local_listen_there(void *user)
{
    door_client *self = user;
    bay_err err = mcp_client_subscribe(mcp_link_client(self->link), str_of(self->params), true,
                                       loop_now_ms(self->at->loop));
    atomic_store(&self->is_done, err == BAY_OK ? 1 : -1);
}

/* One that is refused is tried again later: then the record says so. */
static inline void door_local_look_there(void *user)
{
    door_client *self = user;
    if (mcp_client_listening(mcp_link_client(self->link)) == MCP_LISTENS) {
        (void)snprintf(self->text, sizeof(self->text), "acknowledged");
    } else if (watch_is_refused()) {
        (void)snprintf(self->text, sizeof(self->text), "\"error\":{}");
    }
    atomic_store(&self->is_done, 1);
}

static inline void door_local_listen(door_client *self, const char *params)
{
    const char *uri = strstr(params, "['") + 2;
    (void)snprintf(self->params, sizeof(self->params), "%.*s", (int)strcspn(uri, "'"), uri);
    door_there(self, door_local_listen_there);
    assert_int_equal(atomic_load(&self->is_done), 1);
    for (int i = 0; i < DOOR_GIVE_UP_MS && self->text[0] == '\0'; i++) {
        door_there(self, door_local_look_there);
    }
}

static inline void door_local_close_there(void *user)
{
    door_client *self = user;
    if (self->call != NULL) {
        mcp_call_cancel(self->call, STR("enough"));
    }
    mcp_link_free(self->link);
    atomic_store(&self->is_done, 1);
}

static inline void door_local_open(door_client *self)
{
    arena_init(&self->memory, 1 << 20);
    door_there(self, door_local_open_there);
    assert_int_equal(atomic_load(&self->is_done), 1);
}

static inline void door_local_ask(door_client *self, const mcp_method *method, const char *name,
                                  const char *params, int id)
{
    (void)name;
    (void)id;
    self->method = method->text;
    self->text[0] = '\0';
    if (method->id == MCP_LISTEN) {
        door_local_listen(self, params);
        return;
    }
    (void)snprintf(self->params, sizeof(self->params), "{%s}", params);
    door_quotes(self->params);
    door_there(self, door_local_ask_there);
}

static inline void door_local_close(door_client *self)
{
    door_there(self, door_local_close_there);
    arena_fini(&self->memory);
}

/* ---- all of them ----------------------------------------------------------------------------- */

enum { DOOR_HTTP, DOOR_SSE, DOOR_STDIO, DOOR_LOCAL, DOOR_TRANSPORTS };

static const door_transport door_transports[DOOR_TRANSPORTS] = {
    [DOOR_HTTP] = {"Streamable HTTP", true, door_http_open, door_http_ask, door_http_close},
    [DOOR_SSE] = {"HTTP+SSE", true, door_sse_open, door_sse_ask, door_fd_close},
    [DOOR_STDIO] = {"stdio", false, door_stdio_open, door_stdio_ask, door_stdio_close},
    [DOOR_LOCAL] = {"in process", true, door_local_open, door_local_ask, door_local_close},
};

static inline void door_client_open(door_client *self, int transport, const door_place *at,
                                    mcp_revision_id revision, const char *who,
                                    const char *capabilities)
{
    memset(self, 0, sizeof(*self));
    self->by = &door_transports[transport];
    self->at = at;
    self->revision = mcp_revision_of(revision);
    self->who = who;
    self->capabilities = capabilities;
    self->by->open(self);
}

static inline const char *door_client_ask(door_client *self, mcp_method_id method, const char *name,
                                          const char *params)
{
    static int serial = 100;
    self->by->ask(self, mcp_method_of(method), name, params, ++serial);
    return self->text;
}

static inline void door_client_close(door_client *self)
{
    self->by->close(self);
}

#endif

/* A peer that asks: what it asks, and what it was told, for both ways of asking. The test writes
 * the script before the client connects and reads the answers when its call is over. */
#ifndef TESTS_CLIENT_ASKING_SERVER_H
#define TESTS_CLIENT_ASKING_SERVER_H

#include "unit/sdk/client_peer.h"

#include "base/check.h"
#include "base/str.h"
#include "sdk/client_parts.h"

typedef struct asking_server {
    peer server;
    bool is_modern;
    const char *requests; /* modern: the members of inputRequests; legacy: the request's own */
    const char *state;    /* raw, or NULL */
    int rounds;           /* so many questions before the result; modern */
    const char *after;    /* legacy: an event behind the question, or NULL */
    int stream;           /* legacy: the connection that waits for the result */
    char call_id[32];
    char answer[PEER_TEXT]; /* the last that came */
    int answers;
} asking_server;

static inline void asking_server_event(asking_server *self, const char *text)
{
    static char line[PEER_TEXT];
    peer_message to = {.at = self->stream};
    snprintf(line, sizeof(line), "data: %s\n\n", text);
    peer_say(&self->server, &to, line);
}

static inline void asking_server_finish(asking_server *self)
{
    char text[256];
    snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}",
             self->call_id);
    asking_server_event(self, text);
    peer_hang_up(&self->server, self->stream);
}

static inline void asking_server_legacy(asking_server *self, const peer_message *message)
{
    char text[PEER_TEXT];
    if (message->method[0] == '\0' && message->id[0] != '\0') { /* an answer */
        snprintf(self->answer, sizeof(self->answer), "%s", message->body);
        self->answers++;
        peer_reply(&self->server, message, "202 Accepted", "", "");
        asking_server_finish(self);
    } else if (!peer_legacy(&self->server, message)) {
        self->stream = message->at;
        snprintf(self->call_id, sizeof(self->call_id), "%s", message->id);
        peer_say(&self->server, message,
                 "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
        snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":\"q\\u0031\",%s}",
                 self->requests);
        asking_server_event(self, text);
        if (self->after != NULL) {
            asking_server_event(self, self->after);
            asking_server_finish(self);
        }
    }
}

static inline void asking_server_modern(asking_server *self, const peer_message *message)
{
    char text[PEER_TEXT];
    if (peer_modern(&self->server, message)) {
        return;
    }
    if (peer_is(message, "tools/list")) {
        peer_result(&self->server, message, "",
                    "{\"resultType\":\"complete\",\"tools\":[],\"ttlMs\":60000,"
                    "\"cacheScope\":\"private\"}");
        return;
    }
    const char *answers = strstr(message->body, "\"inputResponses\"");
    const char *state = strstr(message->body, "\"requestState\"");
    const char *from = answers != NULL ? answers : state;
    if (from != NULL) {
        snprintf(self->answer, sizeof(self->answer), "%s", from);
        self->answers++;
    }
    if (self->rounds-- <= 0) {
        const char *done = peer_is(message, "resources/read") ? "{\"contents\":[]}"
                           : peer_is(message, "prompts/get")  ? "{\"messages\":[]}"
                                                              : PEER_TEXT_RESULT("done");
        peer_result(&self->server, message, "", done);
        return;
    }
    snprintf(text, sizeof(text), "{\"resultType\":\"input_required\"%s%s%s%s%s}",
             self->requests != NULL ? ",\"inputRequests\":{" : "",
             self->requests != NULL ? self->requests : "", self->requests != NULL ? "}" : "",
             self->state != NULL ? ",\"requestState\":" : "",
             self->state != NULL ? self->state : "");
    peer_result(&self->server, message, "", text);
}

static inline void asking_server_handle(peer *server, const peer_message *message)
{
    asking_server *self = server->user;
    if (self->is_modern) {
        asking_server_modern(self, message);
    } else {
        asking_server_legacy(self, message);
    }
}

static inline void asking_server_start(asking_server *self)
{
    self->answer[0] = '\0';
    self->answers = 0;
    peer_start(&self->server, asking_server_handle, self, 0);
}

/* Takes the options. */
static inline bay_client *asking_server_client(const peer *server, bay_client_options *options)
{
    bay_client *client = NULL;
    bay_diag diag = {0};
    bay_client_options_timeout(options, 20000, 0);
    if (bay_client_connect(server->url, options, &client, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    bay_client_options_free(options);
    return client;
}

static inline void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("no \"%s\" in \"%s\"", part, text);
    }
}

/* A request whose end can be waited for. */
typedef struct awaited {
    bool is_done;
    bay_err err;
    char text[4096]; /* of the reply, or of the diagnosis */
} awaited;

static inline void awaited_done(bay_request *request, bay_reply *reply, const bay_diag *diag,
                                void *user)
{
    awaited *self = user;
    (void)request;
    self->is_done = true;
    self->err = diag->code;
    snprintf(self->text, sizeof(self->text), "%.*s",
             diag->code != BAY_OK ? (int)strlen(diag->text) : (int)bay_reply_json(reply).len,
             diag->code != BAY_OK ? diag->text : bay_reply_json(reply).at);
    bay_reply_free(reply);
}

#endif

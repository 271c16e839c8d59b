/* Our HTTP server and client as the barest of proxies: the request's body goes to an upstream, the
 * reply's body comes back. What a gateway pays before it knows any protocol; its floor is two hops.
 *
 *     http_relay PORT UPSTREAM_PORT      PORT 0: a free port, printed on stdout */
#include <stdio.h>

#include "base/buf.h"
#include "http/http_client.h"

static http_client *client;
static char upstream[64];

/* One request on its way; lives in the exchange's arena. */
typedef struct relay {
    http_exchange *exchange;
    http_call *call;
    buf body;
    int status;
} relay;

static const http_field fields[] = {{STR_INIT("Content-Type"), STR_INIT("application/json")}};

static void on_head(void *user, int status, const http_field *reply_fields, size_t count)
{
    (void)reply_fields;
    (void)count;
    ((relay *)user)->status = status;
}

static void on_body(void *user, bay_str bytes)
{
    buf_str(&((relay *)user)->body, bytes);
}

static void on_end(void *user)
{
    relay *self = user;
    self->call = NULL;
    http_exchange_reply(self->exchange, self->status, fields, 1, buf_view(&self->body));
}

static void on_failed(void *user, bay_err err, bool was_sent, const char *text)
{
    relay *self = user;
    (void)err;
    (void)was_sent;
    self->call = NULL;
    http_exchange_reply(self->exchange, 502, NULL, 0, str_of(text));
}

static void on_request(void *user, http_exchange *exchange)
{
    static const http_call_events events = {
        .head = on_head, .body = on_body, .end = on_end, .failed = on_failed};
    (void)user;
    relay *self = arena_zalloc(http_exchange_arena(exchange), sizeof(relay));
    if (self == NULL) {
        http_exchange_abort(exchange);
        return;
    }
    self->exchange = exchange;
    buf_init(&self->body, 1024 * 1024);
    http_exchange_set_user(exchange, self);
    http_call_spec spec = {.method = STR("POST"),
                           .url = str_of(upstream),
                           .fields = fields,
                           .field_count = 1,
                           .body = http_exchange_body(exchange),
                           .timeout_ms = 30000};
    if (http_client_call(client, &spec, &events, self, &self->call, NULL) != BAY_OK) {
        http_exchange_reply(exchange, 503, NULL, 0, STR("no connection\n"));
    }
}

static void on_closed(void *user, http_exchange *exchange, bool is_complete)
{
    relay *self = http_exchange_user(exchange);
    (void)user;
    (void)is_complete;
    if (self != NULL && self->call != NULL) {
        http_call_cancel(self->call);
    }
    if (self != NULL) {
        buf_fini(&self->body);
    }
}

int main(int argc, char **argv)
{
    static const http_handler handler = {.request = on_request, .closed = on_closed};
    if (argc != 3) {
        fprintf(stderr, "usage: http_relay PORT UPSTREAM_PORT\n");
        return 2;
    }
    char address[64];
    snprintf(address, sizeof(address), "127.0.0.1:%s", argv[1]);
    snprintf(upstream, sizeof(upstream), "http://127.0.0.1:%s/mcp", argv[2]);
    http_server_options options = {.limits = http_server_default_limits, .handler = &handler};
    http_client_options client_options = {.limits = http_client_default_limits};
    loop *runs_on = NULL;
    http_server *server = NULL;
    bay_diag diag = {.code = BAY_OK};
    if (loop_new(&runs_on) != BAY_OK || http_server_new(runs_on, &options, &server) != BAY_OK ||
        http_client_new(runs_on, &client_options, &client) != BAY_OK ||
        http_server_listen(server, str_of(address), &diag) != BAY_OK) {
        fprintf(stderr, "http_relay: %s\n", diag.text);
        return 1;
    }
    printf("%u\n", http_server_port(server));
    fflush(stdout);
    loop_run(runs_on);
    return 0;
}

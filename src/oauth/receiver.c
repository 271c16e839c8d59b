#include "oauth/receiver.h"

#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "front/page.h"
#include "http/http_server.h"
#include "wire/header.h"
#include "wire/uri.h"

#define RECEIVER_PATH "/callback"

enum {
    RECEIVER_CONNECTIONS = 16,
    RECEIVER_HEAD_BYTES = 32 << 10,
    RECEIVER_URI_BYTES = 64,
    RECEIVER_DRAIN_MS = 1000
};

struct oauth_receiver {
    http_server *server;
    oauth_received received;
    void *user;
    uint16_t port;
    bool is_stopped;
    char uri[RECEIVER_URI_BYTES];
};

static void reply_page(http_exchange *exchange, int status, bay_str title, bay_str text)
{
    page_say(exchange, status, title, text, STR(""), STR(""));
}

/* A page elsewhere that leads a browser here under another name is not answered (DNS rebinding). */
static bool is_ours(const oauth_receiver *self, const http_exchange *exchange)
{
    bay_str host = http_exchange_field(exchange, STR("host"));
    bay_str name = {NULL, 0};
    uint16_t port = 0;
    return http_exchange_field_count(exchange, STR("host")) == 1 &&
           header_host_split(host, &name, &port) == BAY_OK && port == self->port &&
           str_eq(name, STR("127.0.0.1"));
}

static void on_request(void *user, http_exchange *exchange)
{
    oauth_receiver *self = user;
    if (!is_ours(self, exchange) || !str_eq(http_exchange_path(exchange), STR(RECEIVER_PATH))) {
        reply_page(exchange, 404, STR("Not found"), STR("There is nothing at this address."));
        return;
    }
    if (!str_eq(http_exchange_method(exchange), STR("GET"))) {
        reply_page(exchange, 405, STR("Method not allowed"), STR("Logins end with GET."));
        return;
    }
    if (self->received(self->user, http_exchange_query(exchange))) {
        reply_page(exchange, 200, STR("Login received"),
                   STR("You can close this window and go back to the program."));
    } else {
        reply_page(exchange, 400, STR("Unknown login"),
                   STR("This login is not expected, or was received before."));
    }
}

static void on_closed(void *user, http_exchange *exchange, bool is_complete)
{
    (void)user;
    (void)exchange;
    (void)is_complete;
}

static const http_handler handler = {.request = on_request, .closed = on_closed};

/* The port of an earlier login, so that what was registered for it goes on; 0: any. */
static uint16_t port_of(bay_str preferred)
{
    uri parts;
    bool is_ours = uri_parse(&parts, preferred) == BAY_OK && str_eq(parts.scheme, STR("http")) &&
                   str_eq(parts.host, STR("127.0.0.1")) && str_eq(parts.path, STR(RECEIVER_PATH));
    return is_ours ? parts.port : 0;
}

static bay_err listen_at(oauth_receiver *self, uint16_t port, bay_diag *diag)
{
    char address[32];
    int len = snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)port);
    return http_server_listen(self->server, (bay_str){address, (size_t)len}, diag);
}

bay_err oauth_receiver_new(loop *on, bay_str preferred, oauth_received received, void *user,
                           oauth_receiver **out, bay_diag *diag)
{
    http_server_options options = {
        .limits = http_server_default_limits,
        .handler = &handler,
        .is_local_only = true,
    };
    oauth_receiver *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    self->received = received;
    self->user = user;
    options.user = self;
    options.limits.connections = RECEIVER_CONNECTIONS;
    options.limits.head_bytes = RECEIVER_HEAD_BYTES;
    options.limits.body_bytes = 1024;
    bay_err err = http_server_new(on, &options, &self->server);
    if (err == BAY_OK) {
        uint16_t port = port_of(preferred);
        err = listen_at(self, port, diag);
        if (err != BAY_OK && port != 0) {
            err = listen_at(self, 0, diag);
        }
    }
    if (err != BAY_OK) {
        oauth_receiver_free(self);
        return diag_set(diag, err, "no listener for the end of the login: %s", bay_err_text(err));
    }
    self->port = http_server_port(self->server);
    snprintf(self->uri, sizeof(self->uri), "http://127.0.0.1:%u" RECEIVER_PATH,
             (unsigned)self->port);
    *out = self;
    return BAY_OK;
}

bay_str oauth_receiver_uri(const oauth_receiver *self)
{
    return str_of(self->uri);
}

static void on_drained(void *argument)
{
    (void)argument;
}

void oauth_receiver_stop(oauth_receiver *self)
{
    if (!self->is_stopped) {
        self->is_stopped = true;
        http_server_drain(self->server, RECEIVER_DRAIN_MS, on_drained, NULL);
    }
}

void oauth_receiver_free(oauth_receiver *self)
{
    if (self != NULL) {
        http_server_free(self->server);
        mem_free(self);
    }
}

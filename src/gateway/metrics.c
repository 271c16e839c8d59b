/* The metrics of the gateway: GET /metrics of the admin API, and at an address of this machine where
 * one is configured. That address shows metrics alone, and needs no login: they name servers and
 * tools, never who calls. */
#include "base/check.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "front/listen_address.h"
#include "gateway/admin_internal.h"
#include "wire/header.h"

enum { METRICS_CONNECTIONS = 16, METRICS_WRITE_MS = 10000 };

struct gateway_metrics {
    gateway *gateway;
    http_server *server;
};

static void reply(gateway *owner, http_exchange *exchange)
{
    bool is_open = header_accepts_named(http_exchange_field(exchange, STR("Accept")),
                                        STR("application/openmetrics-text"));
    const http_field fields[] = {
        {STR("Content-Type"),
         is_open ? STR("application/openmetrics-text; version=1.0.0; charset=utf-8")
                 : STR("text/plain; version=0.0.4; charset=utf-8")},
        {STR("Cache-Control"), STR("no-store")},
        {STR("X-Content-Type-Options"), STR("nosniff")},
    };
    buf text;
    buf_init(&text, METRICS_TEXT_BYTES);
    if (!gateway_evidence_write_metrics(owner->evidence, is_open, &text)) {
        admin_refuse(exchange, 404, STR("nothing is counted: set metrics.enabled"));
    } else if (text.err != BAY_OK) {
        admin_refuse_busy(exchange);
    } else {
        http_exchange_reply(exchange, 200, fields, ARRAY_LEN(fields), buf_view(&text));
    }
    buf_fini(&text);
}

void admin_metrics(admin *self, http_exchange *exchange)
{
    reply(self->gateway, exchange);
}

static void on_request(void *user, http_exchange *exchange)
{
    gateway_metrics *self = user;
    bay_str method = http_exchange_method(exchange);
    if (!admin_check_origin(exchange)) {
        return;
    }
    if (!str_eq(http_exchange_path(exchange), STR("/metrics"))) {
        admin_refuse(exchange, 404, STR("there is /metrics, and nothing else"));
    } else if (!str_eq(method, STR("GET")) && !str_eq(method, STR("HEAD"))) {
        admin_refuse(exchange, 405, STR("this path takes GET"));
    } else if (atomic_load(&self->gateway->is_over)) {
        admin_refuse(exchange, 503, STR("the gateway is ending"));
    } else {
        reply(self->gateway, exchange);
    }
}

static void on_closed(void *user, http_exchange *exchange, bool is_complete)
{
    (void)user;
    (void)exchange;
    (void)is_complete;
}

static bay_err listen_at(gateway_metrics *self, bay_str address, bay_diag *diag)
{
    static const http_handler handler = {.request = on_request, .closed = on_closed};
    http_server_options options = {.limits = http_server_default_limits,
                                   .handler = &handler,
                                   .user = self,
                                   .is_local_only = true};
    options.limits.connections = METRICS_CONNECTIONS;
    options.limits.body_bytes = 0;
    options.limits.write_timeout_ms = METRICS_WRITE_MS;
    options.limits.reply_bytes = self->gateway->config->limits.reply_bytes;
    bay_err err = http_server_new(self->gateway->workers[0].loop, &options, &self->server);
    return err == BAY_OK ? http_server_listen(self->server, address, diag)
                         : diag_set(diag, err, "out of memory");
}

bay_err gateway_metrics_open(gateway *owner, bay_diag *diag)
{
    bay_str address = owner->config->metrics.listen;
    bay_diag why = {0};
    if (address.len == 0) {
        return BAY_OK;
    }
    gateway_metrics *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    self->gateway = owner;
    owner->metrics = self;
    bay_err err = listen_at(self, address, &why);
    if (err != BAY_OK) {
        return diag_set(diag, err, "metrics.listen: %s", why.text);
    }
    LOG(LOG_INFO, "metrics", "metrics are at http://%.*s/metrics", BAY_STR(address));
    return BAY_OK;
}

uint16_t gateway_metrics_port(const gateway *self)
{
    return self->metrics != NULL ? http_server_port_at(self->metrics->server, 0) : 0;
}

void gateway_metrics_close(gateway_metrics *self)
{
    if (self != NULL) {
        http_server_free(self->server);
        mem_free(self);
    }
}

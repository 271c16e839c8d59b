/* Listeners: where a host takes HTTP/1.1 and HTTP/2, in clear text or over TLS. */
#include "base/err.h"
#include "base/str.h"
#include "sdk/host_parts.h"

static void listener_free(host_listener *self)
{
    if (self->http != NULL) {
        http_server_free(self->http);
    }
    front_free(self->front);
    if (self->endpoint != NULL) {
        self->of->kind->endpoint_free(self->endpoint);
    }
    self->http = NULL;
    self->front = NULL;
    self->endpoint = NULL;
}

static bay_err open_front(host_listener *self)
{
    sdk_host *of = self->of;
    const host_kind *kind = of->kind;
    bay_str names[HOST_NAMES];
    front_options options = {
        .rows = kind->rows,
        .row_count = kind->row_count,
        .base = kind->base != NULL ? kind->base(of->owner.object) : NULL,
        .hosts = of->hosts.items,
        .host_count = of->hosts.count,
        .origins = of->origins.items,
        .origin_count = of->origins.count,
        .is_loopback = self->is_loopback,
        .names = &of->serving->names,
        .identify = kind->identify,
        .unknown = kind->unknown,
        .user = self,
    };
    if (self->is_loopback && of->hosts.count == 0 && kind->names != NULL) {
        options.hosts = names;
        options.host_count = kind->names(of->owner.object, names);
    }
    return front_new(&options, &self->front);
}

static bay_err listener_open(host_listener *self, sdk_host *of, bool is_loopback)
{
    const host_kind *kind = of->kind;
    *self = (host_listener){.of = of, .is_loopback = is_loopback};
    bay_err err = kind->endpoint_new(of->owner.object, self, of->serving->loop, &self->endpoint);
    if (err == BAY_OK) {
        err = open_front(self);
    }
    if (err == BAY_OK) {
        http_server_options options = {
            .limits = http_server_default_limits,
            .handler = &front_handler,
            .user = self->front,
            .tls = of->tls,
            .is_local_only = is_loopback,
        };
        kind->limits(of->owner.object, &options.limits);
        err = http_server_new(of->serving->loop, &options, &self->http);
    }
    if (err != BAY_OK) {
        listener_free(self);
    }
    return err;
}

static bay_err tell_reached(sdk_host *self, bay_str address, bay_diag *diag)
{
    host_serving *now = self->serving;
    buf base = {.at = now->base, .cap = sizeof(now->base) - 1, .max = sizeof(now->base) - 1};
    buf_str(&base, self->tls != NULL ? STR("https://") : STR("http://"));
    listen_address_write_reachable(address, now->port, &base);
    now->base[base.len] = '\0';
    return self->kind->reached != NULL
               ? self->kind->reached(self->owner.object, buf_view(&base), diag)
               : BAY_OK;
}

static bay_err listen_on(sdk_host *self, bay_str address, bool is_loopback, bay_diag *diag)
{
    host_serving *now = self->serving;
    host_listener *at = &now->listeners[is_loopback ? 1 : 0];
    bool is_first_here = at->http == NULL;
    bay_err err = is_first_here ? listener_open(at, self, is_loopback) : BAY_OK;
    if (err != BAY_OK) {
        return diag_set(diag, err, "cannot listen on %.*s: %s", BAY_STR(str_head(address, 100)),
                        bay_err_text(err));
    }
    err = http_server_listen(at->http, address, diag);
    if (err == BAY_OK && now->port == 0) {
        now->port = http_server_port(at->http);
        err = tell_reached(self, address, diag);
        now->port = err == BAY_OK ? now->port : 0; /* it was the first one of all */
    }
    if (err != BAY_OK) {
        if (is_first_here) {
            listener_free(at);
        }
        return err;
    }
    if (is_loopback) {
        listen_names_add(&now->names, address);
    }
    return BAY_OK;
}

/* Read anew once nothing is listened on: files may have changed by then. */
static void leave_tls(sdk_host *self)
{
    bool is_used = false;
    for (size_t i = 0; self->serving != NULL && i < ARRAY_LEN(self->serving->listeners); i++) {
        is_used = is_used || self->serving->listeners[i].http != NULL;
    }
    if (!is_used) {
        tls_free(self->tls);
        self->tls = NULL;
    }
}

static bay_err open_tls(sdk_host *self, bay_diag *diag)
{
    if (self->certificate_file.len == 0 || self->tls != NULL) {
        return BAY_OK;
    }
    tls_options options = {
        .certificate_file = self->certificate_file.at,
        .key_file = self->key_file.at,
        .ca_file = self->ca_file.len > 0 ? self->ca_file.at : NULL,
    };
    return tls_server_new(&options, &self->tls, diag);
}

bay_err host_listen(sdk_host *self, const char *address, bay_diag *diag)
{
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "%s", bay_err_text(BAY_ERR_NOMEM));
    }
    bool is_loopback = false;
    bay_err err = self->kind->check(self->owner.object, diag);
    if (err == BAY_OK) {
        listen_policy policy = self->kind->policy(self->owner.object);
        err = listen_policy_admit(&policy, str_of(address), &is_loopback, diag);
    }
    if (err == BAY_OK) {
        err = open_tls(self, diag); /* before anything is opened for nothing */
    }
    if (err != BAY_OK) {
        return err;
    }
    err = host_open_own(self, diag);
    if (err == BAY_OK) {
        err = listen_on(self, str_of(address), is_loopback, diag);
        if (err == BAY_OK) {
            host_has_way(self);
        } else {
            host_close_own_if_idle(self);
        }
    }
    leave_tls(self);
    return err;
}

uint16_t host_port(const sdk_host *self)
{
    return self != NULL && self->serving != NULL ? self->serving->port : 0;
}

bay_str host_base(const sdk_host *self)
{
    return self->serving != NULL ? str_of(self->serving->base) : STR("");
}

/* ---- the end --------------------------------------------------------------------------------- */

bool host_listeners_are_open(const host_serving *self)
{
    bool is_open = false;
    for (size_t i = 0; i < ARRAY_LEN(self->listeners); i++) {
        is_open = is_open || (self->listeners[i].http != NULL && !self->listeners[i].is_drained);
    }
    return is_open;
}

static void listener_drained(void *argument)
{
    host_listener *self = argument;
    self->is_drained = true;
}

void host_listeners_drain(host_serving *self)
{
    for (size_t i = 0; i < ARRAY_LEN(self->listeners); i++) {
        host_listener *at = &self->listeners[i];
        if (at->http != NULL) {
            at->of->kind->endpoint_close_streams(at->endpoint);
            http_server_drain(at->http, at->of->drain_ms, listener_drained, at);
        }
    }
}

void host_listeners_free(host_serving *self)
{
    for (size_t i = 0; i < ARRAY_LEN(self->listeners); i++) {
        listener_free(&self->listeners[i]);
    }
    leave_tls(self->host);
    self->port = 0;
}

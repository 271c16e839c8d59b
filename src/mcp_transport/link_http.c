/* A client link by URL: Streamable HTTP, or HTTP+SSE if the server has only that. This file has the
 * link as a whole and the functions that the engine calls; link_exchange.c has one exchange.
 *
 * The owner's fields (mostly credentials) are sent with every request to the configured origin and
 * nowhere else; they are never logged, and wiped at the end. */
#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "mcp_transport/link_http.h"
#include "wire/header.h"
#include "wire/uri.h"

static http_link *http_of(mcp_link *base)
{
    return CONTAINER_OF(base, http_link, base);
}

/* ---- the engine's wishes ----------------------------------------------------------------------
 */

/* mcp 2025-11-25 basic/lifecycle, Initialization: only pings before it */
static bool is_initialized(bay_str message)
{
    return message.len < 200 && memmem(message.at, message.len, "\"notifications/initialized\"",
                                       sizeof("\"notifications/initialized\"") - 1) != NULL;
}

static void shut_gate(http_link *self, link_exchange *gate)
{
    if (loop_timer_start(self->base.loop, &self->gate_timer, LINK_GATE_MS) == BAY_OK) {
        self->gate = gate;
    }
}

static void on_gate_timer(void *argument)
{
    http_link_open_gate(argument);
}

static bay_err http_send(void *link, uint64_t exchange, bay_str message, const mcp_field *fields,
                         size_t count, uint32_t timeout_ms)
{
    http_link *self = link;
    if (self->base.is_freed || (self->is_sse_2024 && self->endpoint.len == 0)) {
        return BAY_ERR_CLOSED;
    }
    link_exchange *made = NULL;
    bay_err err =
        exchange_begin(self, EXCHANGE_POST, exchange, message, fields, count, timeout_ms, &made);
    if (err == BAY_OK && exchange == 0 && self->gate == NULL && is_initialized(message)) {
        shut_gate(self, made);
    }
    link_touch(&self->base);
    return err;
}

static void http_abandon(void *link, uint64_t exchange)
{
    http_link *self = link;
    link_exchange *found = self->base.is_freed ? NULL : exchange_find(self, exchange);
    if (found != NULL) {
        exchange_drop(found);
    }
}

static bay_err http_listen(void *link, uint64_t exchange, const mcp_field *fields, size_t count)
{
    http_link *self = link;
    if (self->base.is_freed || self->is_sse_2024) {
        return BAY_ERR_CLOSED;
    }
    link_exchange *made = NULL;
    link_touch(&self->base);
    return exchange_begin(self, EXCHANGE_LISTEN, exchange, (bay_str){0}, fields, count, 0, &made);
}

static void http_end_session(void *link, const mcp_field *fields, size_t count)
{
    http_link *self = link;
    link_exchange *made = NULL;
    if (self->base.is_freed || self->is_sse_2024) {
        return;
    }
    bay_err err = exchange_begin(self, EXCHANGE_DELETE, 0, (bay_str){0}, fields, count,
                                 LINK_DELETE_MS, &made);
    if (err != BAY_OK) {
        LOG(LOG_DEBUG, "mcp", "%s: the session could not be ended: %s",
            mcp_client_label(self->base.client), bay_err_text(err));
    }
}

static void http_fall_back(void *link)
{
    http_link *self = link;
    if (!self->base.is_freed && !self->is_sse_2024) {
        sse_2024_begin(self);
    }
}

static void http_pause(void *link, uint64_t exchange, bool is_paused)
{
    http_link *self = link;
    link_exchange *found = self->base.is_freed ? NULL
                           : self->is_sse_2024 ? self->stream
                                               : exchange_find(self, exchange);
    if (found != NULL) {
        exchange_pause(found, is_paused && !self->base.is_closing);
    }
}

static const mcp_link_ops http_ops = {
    .send = http_send,
    .abandon = http_abandon,
    .listen = http_listen,
    .end_session = http_end_session,
    .fall_back = http_fall_back,
    .pause = http_pause,
};

/* ---- the link's life --------------------------------------------------------------------------
 */

static void http_begin(mcp_link *base)
{
    http_link *self = http_of(base);
    if (self->is_sse_2024) {
        sse_2024_begin(self);
    } else {
        mcp_client_opened(base->client, link_now(base));
    }
}

static void drop_all_but(http_link *self, exchange_kind kept, bool keeps)
{
    http_link_enter(self);
    LIST_EACH(link, &self->open)
    {
        link_exchange *one = CONTAINER_OF(link, link_exchange, link);
        if (!keeps || one->kind != kept) {
            exchange_drop(one);
        }
    }
    http_link_leave(self);
}

static void http_close(mcp_link *base)
{
    http_link *self = http_of(base);
    self->gate = NULL; /* nothing more is sent */
    sse_2024_stop(self);
    drop_all_but(self, EXCHANGE_DELETE, true);
    if (list_is_empty(&self->open)) {
        link_closed(base);
    }
}

static void http_stop(mcp_link *base)
{
    http_link *self = http_of(base);
    sse_2024_stop(self);
    loop_timer_stop(base->loop, &self->gate_timer);
    loop_undefer(base->loop, &self->resume);
    drop_all_but(self, EXCHANGE_DELETE, false);
    self->gate = NULL;
}

static void http_release(mcp_link *base)
{
    http_link *self = http_of(base);
    if (self->secrets != NULL) {
        mem_wipe(self->secrets, self->secret_bytes);
    }
    mem_free(self->secrets);
    mem_free(self->fields);
    mem_free(self->url);
    buf_fini(&self->endpoint);
    map_fini(&self->exchanges);
    mem_free(self);
}

static const link_carrier http_carrier = {
    .begin = http_begin,
    .close = http_close,
    .stop = http_stop,
    .release = http_release,
};

/* ---- opening ----------------------------------------------------------------------------------
 */

static bay_err read_url(uri *out, bay_str url, bay_diag *diag)
{
    if (url.len > LINK_MAX_URL_BYTES || uri_parse(out, url) != BAY_OK || !out->has_authority ||
        out->host.len == 0 ||
        (!str_eq_nocase(out->scheme, STR("http")) && !str_eq_nocase(out->scheme, STR("https")))) {
        /* not shown: it may contain a password or a token */
        return diag_set(diag, BAY_ERR_INVALID,
                        "not an http or https URL of at most %d bytes (http://HOST:PORT/PATH)",
                        LINK_MAX_URL_BYTES);
    }
    if (out->has_userinfo) {
        return diag_set(diag, BAY_ERR_INVALID,
                        "a URL must not carry a name or password; use a header field");
    }
    return BAY_OK;
}

/* Header fields that the protocol sets. */
static bool is_protocols_own(bay_str name)
{
    static const bay_str names[] = {
        STR_INIT("accept"),
        STR_INIT("content-type"),
        STR_INIT("content-length"),
        STR_INIT("mcp-session-id"),
        STR_INIT("mcp-protocol-version"),
        STR_INIT("last-event-id"),
        STR_INIT("mcp-method"),
        STR_INIT("mcp-name"),
        STR_INIT("cache-control"),
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eq_nocase(name, names[i])) {
            return true;
        }
    }
    return false;
}

static bay_err check_fields(const http_field *fields, size_t count, size_t *out_bytes,
                            bay_diag *diag)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bay_str name = fields[i].name;
        bay_str value = fields[i].value;
        bool is_one_line = value.len == 0 || (memchr(value.at, '\r', value.len) == NULL &&
                                              memchr(value.at, '\n', value.len) == NULL &&
                                              memchr(value.at, '\0', value.len) == NULL);
        if (!header_name_is_valid(name) || !is_one_line) {
            return diag_set(diag, BAY_ERR_INVALID, "the header field \"%.*s\" is not valid",
                            BAY_STR(str_head(name, 60)));
        }
        bytes += name.len + value.len;
        if (bytes > LINK_MAX_USER_FIELD_BYTES || count > LINK_MAX_USER_FIELDS) {
            return diag_set(diag, BAY_ERR_LIMIT, "too many header fields, or too long");
        }
    }
    *out_bytes = bytes;
    return BAY_OK;
}

static bay_err copy_fields(http_link *self, const http_field *fields, size_t count, size_t bytes,
                           bay_str label)
{
    self->secrets = mem_alloc(bytes + 1);
    self->fields = mem_array(count + 4 + MCP_MAX_FIELDS, sizeof(*self->fields));
    if (self->secrets == NULL || self->fields == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->secret_bytes = bytes;
    char *at = self->secrets;
    for (size_t i = 0; i < count; i++) {
        if (is_protocols_own(fields[i].name)) {
            LOG(LOG_WARN, "mcp",
                "%.*s: the configured header field %.*s is left out: the protocol "
                "writes it itself",
                BAY_STR(label), BAY_STR(fields[i].name));
            continue;
        }
        http_field *copy = &self->fields[self->field_count++];
        *copy =
            (http_field){{at, fields[i].name.len}, {at + fields[i].name.len, fields[i].value.len}};
        memcpy(at, fields[i].name.at, fields[i].name.len);
        at += fields[i].name.len;
        if (fields[i].value.len > 0) {
            memcpy(at, fields[i].value.at, fields[i].value.len);
        }
        at += fields[i].value.len;
    }
    return BAY_OK;
}

static void http_link_prepare(http_link *self, http_client *http, bool is_sse_2024)
{
    self->http = http;
    self->is_sse_2024 = is_sse_2024;
    list_init(&self->open);
    list_init(&self->dropped);
    list_init(&self->waiting);
    map_init(&self->exchanges, LINK_MAX_EXCHANGES);
    buf_init(&self->endpoint, LINK_MAX_URL_BYTES);
    loop_timer_init(&self->gate_timer, on_gate_timer, self);
    loop_timer_init(&self->endpoint_timer, sse_2024_late, self);
    self->resume = (loop_task){.function = exchange_resume_all, .argument = self};
}

bay_err mcp_link_open_http(loop *runs_on, http_client *http, bay_str url, const http_field *fields,
                           size_t count, bool is_sse_2024, const mcp_link_options *options,
                           mcp_link **out, bay_diag *diag)
{
    size_t bytes = 0;
    uri parts;
    bay_err err = read_url(&parts, url, diag);
    if (err == BAY_OK) {
        err = check_fields(fields, count, &bytes, diag);
    }
    if (err != BAY_OK) {
        return err;
    }
    http_link *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory for a link");
    }
    http_link_prepare(self, http, is_sse_2024);
    self->authority = options->authority;
    self->authority_user = options->user;
    self->url = mem_dup(url.at, url.len);
    self->url_len = url.len;
    err = self->url != NULL ? uri_parse(&self->parts, http_link_url(self)) : BAY_ERR_NOMEM;
    if (err == BAY_OK) {
        err = copy_fields(self, fields, count, bytes, options->client.label);
    }
    if (err == BAY_OK) {
        mcp_link_kind kind = is_sse_2024 ? MCP_LINK_SSE_2024 : MCP_LINK_HTTP;
        err = link_init(&self->base, &http_carrier, runs_on, options, kind, &http_ops);
    }
    if (err != BAY_OK) {
        http_release(&self->base);
        return diag_set(diag, err, "a link could not be made: %s", bay_err_text(err));
    }
    *out = &self->base;
    return BAY_OK;
}

/* The HTTP client: origins and their pools, requests, the sweep of idle connections. http_call.c
 * has what happens on a connection; states and invariants: http_client_internal.h. */
#include "http/http_client.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "http/http_client_internal.h"
#include "wire/uri.h"

enum {
    SPARE_CALLS = 256,
    SPARE_READERS = 64,
    SPARE_BYTES = 16 * 1024, /* larger buffers are not kept */
    ORIGINS_MAX = 65536,
    SWEEP_MAX_MS = 1000,
    HEAD_MAX = 1024 * 1024,
};

const http_client_limits http_client_default_limits = {
    .connections_per_origin = 256,
    .queue_per_origin = 10000,
    .idle_timeout_ms = 4000,
    .connect_timeout_ms = 10000,
    .head_timeout_ms = 10000,
    .body_timeout_ms = 60000,
    .head_bytes = 64 * 1024,
    .head_fields = 200,
    .body_bytes = 0,
    .framing_rest_ms = 1000,
    .streams_per_connection = 100,
    .http2_connections = 4,
};

/* --- memory ----------------------------------------------------------------------------------- */

http_reader *client_reader_take(http_client *self)
{
    http_reader *reader = self->spare_readers;
    if (reader != NULL) {
        self->spare_readers = reader->next;
        self->spare_reader_count--;
        return reader;
    }
    reader = mem_alloc(sizeof(http_reader) + self->wire_limits.fields * sizeof(http_field));
    if (reader != NULL) {
        buf_init(&reader->input, SIZE_MAX / 2); /* the parser bounds heads */
    }
    return reader;
}

static void reader_free(http_reader *reader)
{
    buf_fini(&reader->input);
    mem_free(reader);
}

void client_reader_give(http_client *self, http_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    if (self->spare_reader_count >= SPARE_READERS || reader->input.cap > SPARE_BYTES) {
        reader_free(reader);
        return;
    }
    buf_clear(&reader->input);
    reader->next = self->spare_readers;
    self->spare_readers = reader;
    self->spare_reader_count++;
}

static http_call *call_take(http_client *self)
{
    list_link *link = list_pop(&self->spare_calls);
    if (link != NULL) {
        self->spare_call_count--;
        return CONTAINER_OF(link, http_call, link);
    }
    http_call *call = mem_zalloc(sizeof(http_call));
    if (call != NULL) {
        /* as large as the caller's own body; its fields may have credentials */
        buf_init_secret(&call->request, SIZE_MAX / 2);
        loop_timer_init(&call->timer, call_on_timer, call);
    }
    return call;
}

static void call_free(http_call *call)
{
    call_draft_free(call);
    http2_call_free(call);
    buf_fini(&call->request);
    mem_free(call);
}

static void call_give(http_client *self, http_call *call)
{
    call_draft_free(call);
    http2_call_free(call);
    if (self->spare_call_count >= SPARE_CALLS || call->request.cap > SPARE_BYTES) {
        call_free(call);
        return;
    }
    list_push(&self->spare_calls, &call->link);
    self->spare_call_count++;
}

/* --- entering and leaving --------------------------------------------------------------------- */

void http_client_enter(http_client *self)
{
    self->depth++;
}

static void destroy(http_client *self)
{
    for (list_link *link; (link = list_pop(&self->spare_calls)) != NULL;) {
        call_free(CONTAINER_OF(link, http_call, link));
    }
    while (self->spare_readers != NULL) {
        http_reader *next = self->spare_readers->next;
        reader_free(self->spare_readers);
        self->spare_readers = next;
    }
    loop_timer_stop(self->loop, &self->sweep);
    if (self->owns_tls) {
        tls_free(self->tls);
    }
    buf_fini(&self->key);
    map_fini(&self->origins);
    reply_rooms_free(self->rooms);
    mem_free(self);
}

void http_client_leave(http_client *self)
{
    if (--self->depth > 0) {
        return;
    }
    for (list_link *link; (link = list_pop(&self->dead_channels)) != NULL;) {
        channel_free(CONTAINER_OF(link, http_channel, link));
    }
    http2_lines_free(self);
    for (list_link *link; (link = list_pop(&self->dead_calls)) != NULL;) {
        call_give(self, CONTAINER_OF(link, http_call, link));
    }
    if (self->is_freed) {
        destroy(self);
    }
}

/* --- origins ---------------------------------------------------------------------------------- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* The key of an origin, in self->key: 's' or 'c' (HTTP/2: 'S' or 'C'), the port, the host in lower
 * case. */
static bay_str origin_key(http_client *self, const uri *url, bool is_tls, bool is_http2)
{
    char kind = is_tls ? 's' : 'c';
    buf_clear(&self->key);
    buf_char(&self->key, is_http2 ? (char)(kind - 'a' + 'A') : kind);
    uint16_t port = uri_port(url);
    buf_append(&self->key, &port, sizeof(port));
    size_t start = self->key.len;
    buf_str(&self->key, url->host);
    for (size_t i = start; i < self->key.len; i++) {
        self->key.at[i] = lower(self->key.at[i]);
    }
    return buf_view(&self->key);
}

static bay_err origin_take(http_client *self, const uri *url, bool is_tls, bool is_http2,
                           http_origin **out)
{
    bay_str key = origin_key(self, url, is_tls, is_http2);
    if (self->key.err != BAY_OK) {
        return self->key.err;
    }
    http_origin *origin = map_get(&self->origins, key);
    if (origin == NULL) {
        origin = mem_zalloc(sizeof(http_origin) + key.len);
        if (origin == NULL) {
            return BAY_ERR_NOMEM;
        }
        list_init(&origin->idle);
        list_init(&origin->queue);
        list_init(&origin->lines);
        memcpy(origin->bytes, key.at, key.len);
        origin->key = (bay_str){origin->bytes, key.len};
        origin->host = str_from(origin->key, 1 + sizeof(uint16_t));
        origin->port = uri_port(url);
        origin->is_tls = is_tls;
        origin->is_http2 = is_http2;
        bay_err err = map_put(&self->origins, origin->key, origin, NULL);
        if (err != BAY_OK) {
            mem_free(origin);
            return err;
        }
    }
    origin->users++;
    *out = origin;
    return BAY_OK;
}

void origin_release(http_client *self, http_origin *origin)
{
    if (--origin->users == 0) {
        map_remove(&self->origins, origin->key);
        mem_free(origin);
    }
}

static bool has_room(http_client *self, http_origin *origin)
{
    if (origin->is_http2) {
        return http2_origin_has_room(self, origin);
    }
    return origin->channels < self->limits.connections_per_origin || !list_is_empty(&origin->idle);
}

void origin_kick(http_client *self, http_origin *origin)
{
    while (!self->is_freed && !list_is_empty(&origin->queue) && has_room(self, origin)) {
        http_call *call = CONTAINER_OF(list_pop(&origin->queue), http_call, queue_link);
        origin->queued--;
        if (http_call_start(call) != BAY_OK) {
            list_push(&origin->queue, &call->queue_link); /* the sweep tries again */
            origin->queued++;
            client_arm_sweep(self);
            return;
        }
    }
}

/* --- the sweep -------------------------------------------------------------------------------- */

void client_arm_sweep(http_client *self)
{
    if (self->sweep.heap_index == 0 && !self->is_freed &&
        loop_timer_start(self->loop, &self->sweep, self->sweep_ms) != BAY_OK) {
        LOG(LOG_ERROR, "http", "no memory for a timer: idle connections stay open");
    }
}

/* Closes idle channels whose time is over; true: there is more to watch. */
static bool sweep_origin(http_client *self, http_origin *origin, uint64_t now)
{
    origin->users++;
    for (list_link *link; (link = list_first(&origin->idle)) != NULL;) {
        http_channel *channel = CONTAINER_OF(link, http_channel, link);
        if (now - channel->idle_since_ms < self->limits.idle_timeout_ms) {
            break; /* later ones are younger */
        }
        channel_drop(channel);
    }
    origin_kick(self, origin);
    bool has_lines = origin->is_http2 && http2_origin_sweep(self, origin, now);
    bool has_more = has_lines || !list_is_empty(&origin->idle) || !list_is_empty(&origin->queue);
    origin->users--;
    return has_more;
}

/* Frees origins after a walk: the map must not change while it is walked. */
static void release_all(http_client *self, list *origins)
{
    for (list_link *link; (link = list_pop(origins)) != NULL;) {
        http_origin *origin = CONTAINER_OF(link, http_origin, link);
        origin->users++;
        origin_release(self, origin);
    }
}

static void on_sweep(void *argument)
{
    http_client *self = argument;
    http_client_enter(self);
    uint64_t now = loop_now_ms(self->loop);
    bool has_more = self->rooms != NULL && reply_rooms_wake(now);
    size_t cursor = 0;
    bay_str key;
    void *value;
    list unused;
    list_init(&unused);
    while (map_next(&self->origins, &cursor, &key, &value)) {
        http_origin *origin = value;
        has_more = sweep_origin(self, origin, now) || has_more;
        if (origin->users == 0) {
            list_push(&unused, &origin->link);
        }
    }
    release_all(self, &unused);
    if (has_more) {
        client_arm_sweep(self);
    }
    http_client_leave(self);
}

/* --- requests --------------------------------------------------------------------------------- */

/* Fields about message framing are set here. */
static bool is_ours(bay_str name)
{
    return str_eq_nocase(name, STR("content-length")) ||
           str_eq_nocase(name, STR("transfer-encoding")) || str_eq_nocase(name, STR("connection"));
}

static void write_target(buf *out, const uri *url)
{
    buf_str(out, url->path.len > 0 ? url->path : STR("/"));
    if (url->has_query) {
        buf_char(out, '?');
        buf_str(out, url->query);
    }
}

static bay_err write_host(buf *out, const uri *url)
{
    buf_lit(out, "Host: ");
    if (url->is_ip_literal) {
        buf_char(out, '[');
    }
    buf_str(out, url->host);
    if (url->is_ip_literal) {
        buf_char(out, ']');
    }
    if (url->port != 0) {
        buf_char(out, ':');
        buf_uint(out, url->port);
    }
    buf_lit(out, "\r\n");
    return out->err;
}

static bay_err write_request(http_client *self, buf *out, const http_call_spec *spec,
                             const uri *url)
{
    buf_clear(out);
    buf_clear(&self->key);
    write_target(&self->key, url);
    bay_err err = self->key.err != BAY_OK
                      ? self->key.err
                      : http1_write_request_line(out, spec->method, buf_view(&self->key));
    if (err == BAY_OK &&
        http1_field_find(spec->fields, spec->field_count, STR("host")).at == NULL) {
        err = write_host(out, url);
    }
    size_t from = 0;
    for (size_t i = 0; i <= spec->field_count && err == BAY_OK; i++) {
        if (i == spec->field_count || is_ours(spec->fields[i].name)) {
            err = http1_write_fields(out, &spec->fields[from], i - from);
            from = i + 1;
        }
    }
    if (err == BAY_OK && (spec->has_body || spec->body.len > 0)) {
        err = http1_write_content_length(out, spec->body.len);
    }
    if (err != BAY_OK) {
        return err;
    }
    buf_lit(out, "\r\n");
    buf_str(out, spec->body);
    return out->err;
}

/* `scratch` holds the parts of a URL that was not parsed before. */
static bay_err read_url(const http_call_spec *spec, uri *scratch, const uri **out, bool *out_is_tls,
                        bay_diag *diag)
{
    bay_str text = spec->url;
    const uri *url = spec->parts != NULL ? spec->parts : scratch;
    if ((url == scratch && uri_parse(scratch, text) != BAY_OK) || !url->has_authority ||
        url->host.len == 0) {
        return diag_set(diag, BAY_ERR_INVALID, "not an http or https URL: %.*s",
                        (int)(text.len < 100 ? text.len : 100), text.at);
    }
    *out_is_tls = str_eq_nocase(url->scheme, STR("https"));
    if (!*out_is_tls && !str_eq_nocase(url->scheme, STR("http"))) {
        return diag_set(diag, BAY_ERR_INVALID, "the scheme %.*s is not http or https",
                        (int)(url->scheme.len < 40 ? url->scheme.len : 40), url->scheme.at);
    }
    *out = url;
    if (url->has_userinfo) {
        return diag_set(diag, BAY_ERR_INVALID, "a URL must not carry a name or password");
    }
    return BAY_OK;
}

static bay_err need_tls(http_client *self, bay_diag *diag)
{
    if (self->tls != NULL) {
        return BAY_OK;
    }
    tls_options options = {.certificate_file = NULL};
    bay_err err = tls_client_new(&options, &self->tls, diag);
    self->owns_tls = err == BAY_OK;
    return err;
}

static http_call *call_new(http_client *self, http_origin *origin, const http_call_spec *spec,
                           const http_call_events *events, void *user)
{
    http_call *call = call_take(self);
    if (call == NULL) {
        return NULL;
    }
    call->client = self;
    call->origin = origin;
    call->channel = NULL;
    call->http2 = NULL;
    call->draft = NULL;
    call->events = events;
    call->user = user;
    call->timeout_ms = spec->timeout_ms;
    call->head_end_ms = spec->timeout_ms > 0 ? loop_now_ms(self->loop) + spec->timeout_ms : 0;
    call->until_ms = 0;
    call->idle_ms = spec->idle_ms;
    call->is_in_head = false;
    call->is_stream = false;
    call->state = CALL_QUEUED;
    call->interim = 0;
    call->is_paused = false;
    call->was_sent = false;
    call->is_head_method = str_eq(spec->method, STR("HEAD"));
    call->may_run_twice = spec->may_run_twice || !str_eq(spec->method, STR("POST"));
    return call;
}

bay_err http_call_go(http_call *self, const http_call_spec *spec, const uri *url, bool is_tls,
                     bay_diag *diag)
{
    http_client *client = self->client;
    bay_err err = spec->is_http2 ? http2_call_prepare(self, spec, url, is_tls)
                                 : write_request(client, &self->request, spec, url);
    if (err == BAY_ERR_INVALID) {
        err = diag_set(diag, err, "the method or a header field is not valid");
    }
    if (err == BAY_OK && spec->timeout_ms > 0) {
        err = loop_timer_start(client->loop, &self->timer, spec->timeout_ms);
    }
    return err == BAY_OK ? http_call_start(self) : err;
}

bay_err http_client_call(http_client *self, const http_call_spec *spec,
                         const http_call_events *events, void *user, http_call **out,
                         bay_diag *diag)
{
    uri parsed;
    const uri *url = NULL;
    bool is_tls = false;
    http_origin *origin = NULL;
    bay_err err = self->is_freed ? BAY_ERR_CANCELLED : read_url(spec, &parsed, &url, &is_tls, diag);
    if (err == BAY_OK && is_tls) {
        err = need_tls(self, diag);
    }
    if (err == BAY_OK) {
        err = origin_take(self, url, is_tls, spec->is_http2, &origin);
    }
    if (err != BAY_OK) {
        return err;
    }
    http_client_enter(self);
    http_call *call = call_new(self, origin, spec, events, user);
    if (call == NULL) {
        origin_release(self, origin);
        http_client_leave(self);
        return BAY_ERR_NOMEM;
    }
    if (spec->authority == NULL) {
        err = http_call_go(call, spec, url, is_tls, diag);
    } else {
        err = call_draft(call, spec, is_tls);
        err = err == BAY_OK ? call_attempt(call, diag) : err;
    }
    if (err != BAY_OK) {
        loop_timer_stop(self->loop, &call->timer);
        list_push(&self->dead_calls, &call->link);
        origin_release(self, origin);
    } else {
        list_push(&self->calls, &call->link);
        *out = call;
    }
    http_client_leave(self);
    return err;
}

/* --- the public interface --------------------------------------------------------------------- */

bay_err http_client_new(loop *runs_on, const http_client_options *options, http_client **out)
{
    const http_client_limits *limits = &options->limits;
    if (limits->connections_per_origin == 0 || limits->head_bytes == 0 ||
        limits->head_bytes > HEAD_MAX || limits->head_fields == 0) {
        return BAY_ERR_INVALID;
    }
    http_client *self = mem_zalloc(sizeof(http_client));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->loop = runs_on;
    self->limits = *limits;
    if (limits->reply_bytes > 0 &&
        reply_rooms_new(runs_on, limits->reply_bytes, call_granted, &self->rooms) != BAY_OK) {
        mem_free(self);
        return BAY_ERR_NOMEM;
    }
    if (self->limits.streams_per_connection == 0) { /* limits that were set for HTTP/1.1 */
        self->limits.streams_per_connection = http_client_default_limits.streams_per_connection;
    }
    if (self->limits.http2_connections == 0) {
        self->limits.http2_connections = http_client_default_limits.http2_connections;
    }
    self->tls = options->tls;
    self->permit = options->permit;
    self->permit_user = options->permit_user;
    self->wire_limits = http1_default_limits;
    self->wire_limits.head_bytes = limits->head_bytes;
    self->wire_limits.fields = limits->head_fields;
    self->wire_limits.body_bytes =
        limits->body_bytes > 0 ? (uint64_t)limits->body_bytes : HTTP1_UNBOUNDED;
    uint32_t sweep = limits->idle_timeout_ms / 8;
    self->sweep_ms = sweep < 1 ? 1 : sweep > SWEEP_MAX_MS ? SWEEP_MAX_MS : sweep;
    map_init(&self->origins, ORIGINS_MAX);
    list_init(&self->calls);
    list_init(&self->busy);
    list_init(&self->dead_channels);
    list_init(&self->dead_lines);
    list_init(&self->dead_calls);
    list_init(&self->spare_calls);
    buf_init(&self->key, HEAD_MAX);
    loop_timer_init(&self->sweep, on_sweep, self);
    *out = self;
    return BAY_OK;
}

loop *http_client_loop(const http_client *self)
{
    return self->loop;
}

void http_client_free(http_client *self)
{
    if (self == NULL || self->is_freed) {
        return;
    }
    http_client_enter(self);
    self->is_freed = true;
    for (list_link *link; (link = list_first(&self->calls)) != NULL;) {
        http_call_fail(CONTAINER_OF(link, http_call, link), BAY_ERR_CANCELLED,
                       "the client is closing");
    }
    size_t cursor = 0;
    bay_str key;
    void *value;
    list unused;
    list_init(&unused);
    while (map_next(&self->origins, &cursor, &key, &value)) {
        http_origin *origin = value;
        origin->users++; /* keeps the map unchanged while it is walked */
        for (list_link *link; (link = list_first(&origin->idle)) != NULL;) {
            channel_drop(CONTAINER_OF(link, http_channel, link));
        }
        if (origin->is_http2) {
            http2_origin_drop(origin);
        }
        origin->users--;
        list_push(&unused, &origin->link);
    }
    release_all(self, &unused);
    http_client_leave(self);
}

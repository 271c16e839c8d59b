#include "http/http_document.h"

#include <string.h>

#include "base/err.h"
#include "wire/header.h"

static void document_finish(http_document *self, bay_err err, const char *text)
{
    self->call = NULL;
    loop_timer_stop(self->loop, &self->timeout_timer);
    self->done(self->user, err, text);
}

/* The seconds of max-age; 0 if caching is forbidden. */
static void read_cache_control(http_document *self, bay_str value)
{
    while (value.len > 0) {
        size_t end = str_find(value, ',');
        bay_str part = str_trim(str_head(value, end));
        uint64_t seconds = 0;
        if (str_eq_nocase(part, STR("no-store")) || str_eq_nocase(part, STR("no-cache"))) {
            self->has_max_age = true;
            self->max_age_s = 0;
            return;
        }
        if (str_eq_nocase(str_head(part, 8), STR("max-age=")) &&
            str_uint(str_from(part, 8), &seconds)) {
            self->has_max_age = true;
            self->max_age_s = seconds;
        }
        value = str_from(value, end + 1);
    }
}

static void on_head(void *user, int status, const http_field *fields, size_t count)
{
    http_document *self = user;
    self->status = status;
    if (self->head != NULL) {
        self->head(self->user, status, fields, count);
    }
    for (size_t i = 0; i < count; i++) {
        if (str_eq_nocase(fields[i].name, STR("ETag")) &&
            fields[i].value.len < sizeof(self->etag)) {
            memcpy(self->etag, fields[i].value.at, fields[i].value.len);
            self->etag[fields[i].value.len] = '\0';
        } else if (str_eq_nocase(fields[i].name, STR("Cache-Control"))) {
            read_cache_control(self, fields[i].value);
        } else if (str_eq_nocase(fields[i].name, STR("Content-Type"))) {
            self->may_be_json =
                self->may_be_json && header_content_type_may_be_json(fields[i].value);
        }
    }
}

static void on_body(void *user, bay_str bytes)
{
    http_document *self = user;
    buf_str(&self->body, bytes);
    if (self->body.err != BAY_OK) {
        bay_err err = self->body.err;
        http_call_cancel(self->call);
        document_finish(self, err,
                        err == BAY_ERR_LIMIT ? "its answer is too large" : "out of memory");
    }
}

static void on_end(void *user)
{
    document_finish(user, BAY_OK, "");
}

static void on_failed(void *user, bay_err err, bool was_sent, const char *text)
{
    (void)was_sent;
    document_finish(user, err, text);
}

static void on_timeout(void *argument)
{
    http_document *self = argument;
    http_call_cancel(self->call);
    document_finish(self, BAY_ERR_TIMEOUT, "it did not answer in time");
}

static void on_waits(void *user, bool is_waiting)
{
    http_document *self = user;
    if (is_waiting) {
        loop_timer_stop(self->loop, &self->timeout_timer);
    } else {
        /* without memory the HTTP client's time-outs are what is left */
        err_ignore(loop_timer_start(self->loop, &self->timeout_timer, self->timeout_ms));
    }
}

static const http_call_events events = {
    .head = on_head, .body = on_body, .end = on_end, .failed = on_failed, .waits = on_waits};

void http_document_init(http_document *self, loop *on)
{
    *self = (http_document){.loop = on};
    loop_timer_init(&self->timeout_timer, on_timeout, self);
    buf_init(&self->body, 0);
}

void http_document_fini(http_document *self)
{
    if (self->call != NULL) {
        http_call_cancel(self->call);
        self->call = NULL;
    }
    loop_timer_stop(self->loop, &self->timeout_timer);
    buf_fini(&self->body);
}

bool http_document_is_busy(const http_document *self)
{
    return self->call != NULL;
}

static void clear(http_document *self, const http_document_spec *spec)
{
    buf_fini(&self->body);
    if (spec->is_secret) {
        buf_init_secret(&self->body, spec->max_bytes);
    } else {
        buf_init(&self->body, spec->max_bytes);
    }
    self->may_be_json = true;
    self->status = 0;
    self->etag[0] = '\0';
    self->has_max_age = false;
    self->max_age_s = 0;
}

bay_err http_document_start(http_document *self, http_client *http, const http_document_spec *spec,
                            http_document_done done, void *user, bay_diag *diag)
{
    uint32_t timeout_ms = spec->timeout_ms > 0 ? spec->timeout_ms : HTTP_DOCUMENT_MS;
    clear(self, spec);
    self->timeout_ms = timeout_ms;
    self->head = spec->head;
    self->done = done;
    self->user = user;
    http_call_spec call = {.method = spec->method.len > 0 ? spec->method : STR("GET"),
                           .url = spec->url,
                           .fields = spec->fields,
                           .field_count = spec->field_count,
                           .body = spec->body,
                           .has_body = spec->body.len > 0,
                           .timeout_ms = timeout_ms,
                           .idle_ms = timeout_ms,
                           .authority = spec->authority};
    bay_err err = loop_timer_start(self->loop, &self->timeout_timer, timeout_ms);
    err = err == BAY_OK ? http_client_call(http, &call, &events, self, &self->call, diag) : err;
    if (err != BAY_OK) {
        loop_timer_stop(self->loop, &self->timeout_timer);
        self->call = NULL;
    }
    return err;
}

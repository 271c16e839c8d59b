#include "agents/fetch.h"

#include <string.h>

#include "wire/header.h"

static void fetch_finish(agents_fetch *self, bay_err err, const char *text)
{
    self->call = NULL;
    loop_timer_stop(self->loop, &self->timeout_timer);
    self->done(self->user, err, text);
}

/* The seconds of max-age; what tells a cache to keep nothing counts as 0. */
static void read_cache_control(agents_fetch *self, bay_str value)
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
    agents_fetch *self = user;
    self->status = status;
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
    agents_fetch *self = user;
    buf_str(&self->body, bytes);
    if (self->body.err != BAY_OK) {
        bay_err err = self->body.err;
        http_call_cancel(self->call);
        fetch_finish(self, err, err == BAY_LIMIT ? "its answer is too long" : "out of memory");
    }
}

static void fetch_on_end(void *user)
{
    fetch_finish(user, BAY_OK, "");
}

static void on_failed(void *user, bay_err err, bool was_sent, const char *text)
{
    (void)was_sent;
    fetch_finish(user, err, text);
}

static void on_timeout(void *argument)
{
    agents_fetch *self = argument;
    http_call_cancel(self->call);
    fetch_finish(self, BAY_TIMEOUT, "it did not answer in time");
}

static const http_call_events events = {
    .head = on_head, .body = on_body, .end = fetch_on_end, .failed = on_failed};

void agents_fetch_init(agents_fetch *self, loop *on)
{
    *self = (agents_fetch){.loop = on};
    loop_timer_init(&self->timeout_timer, on_timeout, self);
    buf_init(&self->body, 0);
}

static void agents_fetch_cancel(agents_fetch *self)
{
    if (self->call != NULL) {
        http_call_cancel(self->call);
        self->call = NULL;
    }
    loop_timer_stop(self->loop, &self->timeout_timer);
}

void agents_fetch_fini(agents_fetch *self)
{
    agents_fetch_cancel(self);
    buf_fini(&self->body);
}

bay_err agents_fetch_start(agents_fetch *self, http_client *http, bay_str url, size_t max_bytes,
                           const http_field *fields, size_t count, agents_fetch_done done,
                           void *user, bay_diag *diag)
{
    buf_fini(&self->body);
    buf_init(&self->body, max_bytes);
    self->may_be_json = true;
    self->status = 0;
    self->etag[0] = '\0';
    self->has_max_age = false;
    self->max_age_s = 0;
    self->done = done;
    self->user = user;
    http_call_spec spec = {.method = STR("GET"),
                           .url = url,
                           .fields = fields,
                           .field_count = count,
                           .timeout_ms = AGENTS_FETCH_MS,
                           .idle_ms = AGENTS_FETCH_MS};
    bay_err err = loop_timer_start(self->loop, &self->timeout_timer, AGENTS_FETCH_MS);
    err = err == BAY_OK ? http_client_call(http, &spec, &events, self, &self->call, diag) : err;
    if (err != BAY_OK) {
        loop_timer_stop(self->loop, &self->timeout_timer);
        self->call = NULL;
    }
    return err;
}

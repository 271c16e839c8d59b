/* A client engine on a link that only writes down what it is told, with a clock that stands still.
 * In every text given here ' stands for " and # for the id (or exchange) meant. */
#ifndef TESTS_MCP_CLIENT_FIXTURE_H
#define TESTS_MCP_CLIENT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "mcp/client.h"

enum { FX_MAX = 512, FX_TEXT = 2048, FX_LOG = 1 << 16 };

typedef struct fx_record {
    char kind; /* 'S'end, 'A'bandon, 'G'et, 'D'elete, 'F'all back, 'P'ause */
    uint64_t exchange;
    size_t len;
    char text[FX_TEXT];
    char fields[FX_TEXT]; /* "Name: value\n" each */
    bool is_paused;
} fx_record;

typedef struct fixture {
    mcp_client *client;
    mcp_client_options options;
    fx_record record[FX_MAX];
    size_t count;
    size_t seen; /* records already looked at by fx_next */
    char log[FX_LOG];
    size_t log_len;
    uint64_t now;
    bay_err send_err;
    bool takes_asks; /* of the client events */
    bool has_fall_back;
    void (*on_done)(struct fixture *self, mcp_call *call, const mcp_outcome *outcome);
    arena memory; /* of the specs' values */
} fixture;

static inline const char *fx_err(bay_err err)
{
    static const char *const names[] = {
#define ERR(name, class_name, text) #name,
#include "base/err.def"
#undef ERR
    };
    assert_true((unsigned)err < ERR_COUNT);
    return names[err] + strlen(err == BAY_OK ? "BAY_" : "BAY_ERR_");
}

static inline void fx_log(fixture *self, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int len = vsnprintf(self->log + self->log_len, FX_LOG - self->log_len, format, list);
    va_end(list);
    assert_true(len >= 0 && (size_t)len < FX_LOG - self->log_len);
    self->log_len += (size_t)len;
}

/* ' -> ", # -> id */
static inline const char *fx_text(const char *text, uint64_t id, char *out, size_t size)
{
    size_t len = 0;
    for (; *text != '\0'; text++) {
        assert_true(len + 24 < size);
        if (*text == '#') {
            len += (size_t)snprintf(out + len, size - len, "%llu", (unsigned long long)id);
        } else {
            out[len++] = (char)(*text == '\'' ? '"' : *text);
        }
    }
    out[len] = '\0';
    return out;
}

static inline fx_record *fx_add(fixture *self, char kind, uint64_t exchange, bay_str text,
                                const mcp_field *fields, size_t count)
{
    assert_true(self->count < FX_MAX);
    fx_record *record = &self->record[self->count++];
    *record = (fx_record){.kind = kind, .exchange = exchange, .len = text.len};
    if (text.len > 0) {
        memcpy(record->text, text.at, text.len < FX_TEXT - 1 ? text.len : FX_TEXT - 1);
    }
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        at += (size_t)snprintf(record->fields + at, FX_TEXT - at, "%.*s: %.*s\n",
                               BAY_STR(fields[i].name), BAY_STR(fields[i].value));
        assert_true(at < FX_TEXT);
    }
    return record;
}

static inline bay_err fx_send(void *link, uint64_t exchange, bay_str message,
                              const mcp_field *fields, size_t count, uint32_t timeout_ms)
{
    fixture *self = link;
    (void)timeout_ms;
    if (self->send_err != BAY_OK && self->send_err != BAY_ERR_AGAIN) {
        return self->send_err;
    }
    fx_add(self, 'S', exchange, message, fields, count);
    return self->send_err;
}

static inline void fx_abandon(void *link, uint64_t exchange)
{
    fx_add(link, 'A', exchange, (bay_str){0}, NULL, 0);
}

static inline bay_err fx_listen(void *link, uint64_t exchange, const mcp_field *fields,
                                size_t count)
{
    fx_add(link, 'G', exchange, (bay_str){0}, fields, count);
    return BAY_OK;
}

static inline void fx_end_session(void *link, const mcp_field *fields, size_t count)
{
    fx_add(link, 'D', 0, (bay_str){0}, fields, count);
}

static inline void fx_fall_back(void *link)
{
    fx_add(link, 'F', 0, (bay_str){0}, NULL, 0);
}

static inline void fx_pause(void *link, uint64_t exchange, bool is_paused)
{
    fx_add(link, 'P', exchange, (bay_str){0}, NULL, 0)->is_paused = is_paused;
}

static inline void fx_ready(void *user)
{
    fixture *self = user;
    fx_log(self, "ready %.*s\n", BAY_STR(mcp_client_revision(self->client)->text));
}

static inline void fx_broken(void *user, bay_err err, const char *text)
{
    assert_non_null(text);
    fx_log(user, "broken %s %s\n", fx_err(err), text);
}

static inline void fx_changed(void *user, mcp_change change)
{
    fx_log(user, "changed %d\n", (int)change);
}

static inline void fx_updated(void *user, bay_str uri)
{
    fx_log(user, "updated %.*s\n", BAY_STR(uri));
}

static inline void fx_logged(void *user, json_val params)
{
    fx_log(user, "logged %.*s\n", BAY_STR(json_raw(params)));
}

static inline bool fx_asked(void *user, const rpc_message *request)
{
    fixture *self = user;
    fx_log(self, "asked %.*s %.*s\n", BAY_STR(request->id), BAY_STR(request->method));
    return self->takes_asks;
}

static inline void fx_elicited(void *user, json_val params)
{
    fx_log(user, "elicited %.*s\n", BAY_STR(json_raw(params)));
}

static inline void fx_withdrawn(void *user, bay_str id)
{
    fx_log(user, "withdrawn %.*s\n", BAY_STR(id));
}

/* ---- calls: `user` of a call is its name, an object of static storage ---------------------------
 */

typedef struct fx_name {
    fixture *fx;
    const char *text;
    bool takes_asks;
    int done_count;
    bay_err err; /* of the outcome, FAILED only */
    bool was_sent;
    mcp_outcome_kind kind;
    uint64_t progress_token;
} fx_name;

static inline void fx_notified(void *user, mcp_call *call, const mcp_method *method,
                               json_val params)
{
    fx_name *name = user;
    (void)call;
    fx_log(name->fx, "%s notified %.*s %.*s\n", name->text, BAY_STR(method->text),
           BAY_STR(json_raw(params)));
}

static inline bool fx_call_asked(void *user, mcp_call *call, const rpc_message *request)
{
    fx_name *name = user;
    (void)call;
    fx_log(name->fx, "%s asked %.*s %.*s\n", name->text, BAY_STR(request->id),
           BAY_STR(request->method));
    return name->takes_asks;
}

static inline void fx_done(void *user, mcp_call *call, const mcp_outcome *outcome)
{
    fx_name *name = user;
    name->done_count++;
    name->kind = outcome->kind;
    name->err = outcome->err;
    name->was_sent = outcome->was_sent;
    name->progress_token = outcome->progress_token;
    if (outcome->kind == MCP_OUTCOME_RESULT) {
        fx_log(name->fx, "%s result %.*s\n", name->text, BAY_STR(json_raw(outcome->result)));
    } else if (outcome->kind == MCP_OUTCOME_ERROR) {
        fx_log(name->fx, "%s error %d %.*s\n", name->text, outcome->error_code,
               BAY_STR(json_raw(outcome->error)));
    } else {
        assert_non_null(outcome->text);
        fx_log(name->fx, "%s failed %s %s %s\n", name->text, fx_err(outcome->err),
               outcome->was_sent ? "sent" : "unsent", outcome->text);
    }
    if (name->fx->on_done != NULL) {
        name->fx->on_done(name->fx, call, outcome);
    }
}

static const mcp_call_events fx_call_events = {fx_notified, fx_call_asked, fx_done};

static inline json_val fx_value(fixture *self, const char *text)
{
    if (text == NULL) {
        return JSON_NONE;
    }
    char *copy = arena_alloc(&self->memory, strlen(text) + 32);
    json_doc *doc = arena_alloc(&self->memory, sizeof(*doc));
    assert_non_null(copy);
    assert_non_null(doc);
    fx_text(text, 0, copy, strlen(text) + 32);
    assert_int_equal(json_parse(doc, str_of(copy), &json_any_depth, &self->memory, NULL), BAY_OK);
    return json_root(doc);
}

static inline mcp_call_spec fx_spec(fixture *self, const char *method, const char *params)
{
    return (mcp_call_spec){
        .method = str_of(method), .params = fx_value(self, params), .log_level = MCP_LOG_NONE};
}

static inline bay_err fx_try(fixture *self, fx_name *name, const mcp_call_spec *spec,
                             mcp_call **out)
{
    mcp_call *call = NULL;
    name->fx = self;
    bay_err err = mcp_client_call(self->client, spec, &fx_call_events, name, self->now,
                                  out != NULL ? out : &call, NULL);
    return err;
}

static inline mcp_call *fx_call(fixture *self, fx_name *name, const char *method,
                                const char *params)
{
    mcp_call_spec spec = fx_spec(self, method, params);
    mcp_call *call = NULL;
    assert_int_equal(fx_try(self, name, &spec, &call), BAY_OK);
    return call;
}

/* ---- making ------------------------------------------------------------------------------------
 */

static inline void fx_init(fixture *self, mcp_link_kind kind)
{
    memset(self, 0, sizeof(*self));
    self->now = 1000;
    self->has_fall_back = true;
    arena_init(&self->memory, 1 << 24);
    self->options = (mcp_client_options){.name = STR("test"),
                                         .version = STR("1"),
                                         .link_kind = kind,
                                         .oldest = MCP_REV_2024_11_05,
                                         .newest = MCP_LATEST};
}

static inline bay_err fx_try_new(fixture *self)
{
    static const mcp_client_events events = {.ready = fx_ready,
                                             .broken = fx_broken,
                                             .changed = fx_changed,
                                             .updated = fx_updated,
                                             .logged = fx_logged,
                                             .asked = fx_asked,
                                             .withdrawn = fx_withdrawn,
                                             .elicited = fx_elicited};
    mcp_link_ops ops = {.send = fx_send,
                        .abandon = fx_abandon,
                        .listen = fx_listen,
                        .end_session = fx_end_session,
                        .fall_back = self->has_fall_back ? fx_fall_back : NULL,
                        .pause = fx_pause};
    return mcp_client_new(&self->options, &events, self, &ops, self, &self->client);
}

static inline void fx_new(fixture *self)
{
    assert_int_equal(fx_try_new(self), BAY_OK);
}

static inline void fx_open(fixture *self)
{
    fx_new(self);
    mcp_client_opened(self->client, self->now);
}

static inline void fx_fini(fixture *self)
{
    mcp_client_free(self->client);
    self->client = NULL;
    arena_fini(&self->memory);
}

/* ---- the other side ----------------------------------------------------------------------------
 */

/* The next record not looked at yet; fails when there is none. */
static inline fx_record *fx_next(fixture *self)
{
    assert_true(self->seen < self->count);
    return &self->record[self->seen++];
}

static inline fx_record *fx_next_kind(fixture *self, char kind)
{
    fx_record *record = fx_next(self);
    if (record->kind != kind) {
        fail_msg("expected %c, got %c %s", kind, record->kind, record->text);
    }
    return record;
}

static inline fx_record *fx_expect(fixture *self, const char *part)
{
    char text[FX_TEXT];
    fx_record *record = fx_next_kind(self, 'S');
    if (strstr(record->text, fx_text(part, record->exchange, text, sizeof(text))) == NULL) {
        fail_msg("expected %s in %s", text, record->text);
    }
    return record;
}

static inline void fx_quiet(fixture *self)
{
    if (self->seen != self->count) {
        fail_msg("unexpected %c %s", self->record[self->seen].kind, self->record[self->seen].text);
    }
}

static inline void fx_head(fixture *self, uint64_t exchange, int status)
{
    mcp_client_head(self->client, exchange, status, (bay_str){0}, self->now);
}

/* One message on an exchange, or a line (exchange 0); # is the id. */
static inline void fx_message(fixture *self, uint64_t exchange, uint64_t id, const char *text)
{
    char bytes[1 << 14];
    fx_text(text, id, bytes, sizeof(bytes));
    size_t len = strlen(bytes);
    char *exact = malloc(len + 1); /* so that a byte read too far is seen */
    assert_non_null(exact);
    memcpy(exact, bytes, len);
    mcp_client_receive(self->client, exchange, (bay_str){exact, len}, (bay_str){0}, self->now);
    free(exact);
}

static inline void fx_line(fixture *self, uint64_t id, const char *text)
{
    fx_message(self, 0, id, text);
}

static inline void fx_ended(fixture *self, uint64_t exchange, bay_err err)
{
    mcp_client_ended(self->client, exchange, err, true, "cut", self->now);
}

/* A whole HTTP reply; text NULL: no body. */
static inline void fx_reply(fixture *self, uint64_t exchange, int status, const char *text)
{
    fx_head(self, exchange, status);
    if (text != NULL) {
        fx_message(self, exchange, exchange, text);
    }
    fx_ended(self, exchange, BAY_OK);
}

static inline void fx_event(fixture *self, uint64_t exchange, const char *id, const char *text)
{
    char bytes[1 << 14];
    fx_text(text, exchange, bytes, sizeof(bytes));
    mcp_client_receive(self->client, exchange, str_of(bytes), str_of(id), self->now);
}

static inline uint64_t fx_pass(fixture *self, uint64_t ms)
{
    self->now += ms;
    return mcp_client_tick(self->client, self->now);
}

/* Does the log hold exactly these lines? Empties it. */
static inline void fx_saw(fixture *self, const char *expected)
{
    char text[FX_LOG];
    fx_text(expected, 0, text, sizeof(text));
    assert_string_equal(self->log, text);
    self->log_len = 0;
    self->log[0] = '\0';
}

static inline void fx_saw_part(fixture *self, const char *part)
{
    char text[FX_TEXT];
    if (strstr(self->log, fx_text(part, 0, text, sizeof(text))) == NULL) {
        fail_msg("expected %s in the log:\n%s", text, self->log);
    }
    self->log_len = 0;
    self->log[0] = '\0';
}

#define FX_RESULT(members) "{'jsonrpc':'2.0','id':#,'result':" members "}"
#define FX_ERROR(code) "{'jsonrpc':'2.0','id':#,'error':{'code':" code ",'message':'no'}}"
#define FX_DISCOVER(versions, capabilities)                                                        \
    FX_RESULT("{'resultType':'complete','supportedVersions':" versions                             \
              ",'capabilities':" capabilities ",'instructions':'be kind'"                          \
              ",'_meta':{'io.modelcontextprotocol/serverInfo':{'name':'s','version':'2'}}}")
#define FX_INITIALIZED(version, capabilities)                                                      \
    FX_RESULT("{'protocolVersion':'" version "','capabilities':" capabilities                      \
              ",'serverInfo':{'name':'s','version':'2'},'instructions':'be kind'}")
#define FX_CAPABILITIES                                                                            \
    "{'tools':{'listChanged':true},'resources':{'subscribe':true,'listChanged':false},"            \
    "'logging':{}}"

/* Through detection to READY; the log and the records are emptied. */
static inline void fx_open_modern(fixture *self)
{
    fx_open(self);
    fx_record *probe = fx_expect(self, "'method':'server/discover'");
    if (self->options.link_kind == MCP_LINK_HTTP) {
        fx_reply(self, probe->exchange, 200, FX_DISCOVER("['2026-07-28']", FX_CAPABILITIES));
    } else {
        fx_line(self, probe->exchange, FX_DISCOVER("['2026-07-28']", FX_CAPABILITIES));
    }
    fx_saw(self, "ready 2026-07-28\n");
}

static inline void fx_answer_initialize(fixture *self, const char *session)
{
    fx_record *request = fx_expect(self, "'method':'initialize'");
    if (self->options.link_kind == MCP_LINK_HTTP) {
        mcp_client_head(self->client, request->exchange, 200, str_of(session), self->now);
        fx_message(self, request->exchange, request->exchange,
                   FX_INITIALIZED("2025-11-25", FX_CAPABILITIES));
        fx_ended(self, request->exchange, BAY_OK);
    } else {
        fx_line(self, request->exchange, FX_INITIALIZED("2025-11-25", FX_CAPABILITIES));
    }
    fx_expect(self, "'method':'notifications/initialized'");
}

static inline void fx_open_legacy(fixture *self, const char *session)
{
    fx_open(self);
    fx_record *probe = fx_expect(self, "'method':'server/discover'");
    if (self->options.link_kind == MCP_LINK_HTTP) {
        fx_reply(self, probe->exchange, 400, NULL);
    } else if (self->options.link_kind == MCP_LINK_DUPLEX) {
        fx_line(self, probe->exchange, FX_ERROR("-32601"));
    }
    fx_answer_initialize(self, session);
    fx_saw(self, "ready 2025-11-25\n");
}

#endif

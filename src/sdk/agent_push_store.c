/* What outlives the process of push notifications: deliveries that were not made yet, a row each,
 * and, in a stream, those that were given up. The rows have what the task's row has anyway:
 * webhooks with their credentials. Operations of a store take effect in their order, so a row's
 * removal never overtakes its writing. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "sdk/agent_push_parts.h"
#include "wire/uri.h"
#include "json/writer.h"

enum { ROW_BYTES = 64 << 20 };

static const bay_str rows = STR_INIT("a2a/push");
static const bay_str letters = STR_INIT("a2a/dead");

/* Older processes' rows come before ours. */
void push_make_prefix(agent_push *self)
{
    snprintf(self->prefix, sizeof(self->prefix), "%015llx-%016llx",
             (unsigned long long)loop_time_ms(), (unsigned long long)rand_u64());
}

void push_release(agent_push *self)
{
    if (self->is_freed && self->store_calls == 0) {
        mem_free(self);
    }
}

static void on_changed(void *user, const store_result *result)
{
    agent_push *self = user;
    if (result->err != BAY_OK && result->err != BAY_ERR_CANCELLED &&
        result->err != BAY_ERR_NOT_FOUND) {
        log_write_paced(&self->complaints, loop_time_ms(), LOG_WARN, "push",
                        "a notification's row could not be changed: %s", bay_err_text(result->err));
    }
    self->store_calls--;
    push_release(self);
}

static void started(agent_push *self, bay_err err)
{
    if (err == BAY_OK) {
        self->store_calls++;
    } else {
        log_write_paced(&self->complaints, loop_time_ms(), LOG_WARN, "push",
                        "a notification is not kept for a restart: %s", bay_err_text(err));
    }
}

/* --- rows ------------------------------------------------------------------------------------- */

static bay_str key_of(const agent_push *self, const a2a_delivery *delivery,
                      char text[PUSH_KEY_BYTES])
{
    if (delivery->tag.len > 0) {
        return delivery->tag;
    }
    int len = snprintf(text, PUSH_KEY_BYTES, "%s/%016llx", self->prefix,
                       (unsigned long long)delivery->id);
    return (bay_str){text, (size_t)len};
}

static void write_row(const a2a_delivery *delivery, buf *out)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_key_lit(&writer, "url");
    json_put_str(&writer, delivery->url);
    json_key_lit(&writer, "task");
    json_put_str(&writer, delivery->task_id);
    json_key_lit(&writer, "config");
    json_put_str(&writer, delivery->config_id);
    json_key_lit(&writer, "fields");
    json_open_object(&writer);
    for (size_t i = 0; i < delivery->field_count; i++) {
        json_key(&writer, delivery->fields[i].name);
        json_put_str(&writer, delivery->fields[i].value);
    }
    json_close_object(&writer);
    json_key_lit(&writer, "body");
    json_put_str(&writer, delivery->body);
    json_close_object(&writer);
}

static bay_err put_row(agent_push *self, const a2a_delivery *delivery, bay_str key, store_done done,
                       void *user)
{
    buf row;
    buf_init_secret(&row, ROW_BYTES);
    write_row(delivery, &row);
    bay_err err = row.err;
    if (err == BAY_OK) {
        store_put_request request = {.table = rows,
                                     .key = key,
                                     .value = buf_view(&row),
                                     .expected = STORE_ANY,
                                     .is_relaxed = true};
        err = store_put(self->store, &request, done, user);
    }
    buf_fini(&row);
    return err;
}

void push_keep(agent_push *self, const a2a_delivery *delivery)
{
    if (self->store != NULL) {
        char text[PUSH_KEY_BYTES];
        started(self, put_row(self, delivery, key_of(self, delivery, text), on_changed, self));
    }
}

static void on_kept(void *user, const store_result *result)
{
    push_take *take = user;
    agent_push *self = take->of;
    self->store_calls--;
    push_taken(take, result->err);
    push_release(self);
}

bay_err push_keep_first(push_take *take)
{
    agent_push *self = take->of;
    int len = snprintf(take->key, sizeof(take->key), "%s+%016llx", self->prefix,
                       (unsigned long long)++self->last_take);
    take->key_len = (size_t)len;
    bay_err err = put_row(self, a2a_push_item_delivery(take->item),
                          (bay_str){take->key, take->key_len}, on_kept, take);
    self->store_calls += err == BAY_OK;
    return err;
}

void push_forget(agent_push *self, const a2a_delivery *delivery)
{
    if (self->store != NULL) {
        char text[PUSH_KEY_BYTES];
        started(self, store_remove(self->store, rows, key_of(self, delivery, text), STORE_ANY,
                                   on_changed, self));
    }
}

/* --- dead letters ----------------------------------------------------------------------------- */

/* Where it should have gone, without what may be a secret: path and query. */
static void put_origin(bay_str text, buf *out)
{
    uri url;
    if (uri_parse(&url, text) == BAY_OK) {
        buf_str(out, url.scheme);
        buf_lit(out, "://");
        buf_str(out, url.authority);
    }
}

static void write_push_request(const a2a_delivery *delivery, bay_str origin, const char *reason,
                               buf *out)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_key_lit(&writer, "task");
    json_put_str(&writer, delivery->task_id);
    json_key_lit(&writer, "config");
    json_put_str(&writer, delivery->config_id);
    json_key_lit(&writer, "webhook");
    json_put_str(&writer, origin);
    json_key_lit(&writer, "attempts");
    json_put_uint(&writer, delivery->attempt);
    json_key_lit(&writer, "at");
    json_put_uint(&writer, loop_time_ms());
    json_key_lit(&writer, "reason");
    json_put_str(&writer, str_of(reason));
    if (delivery->body.len <= PUSH_DEAD_BODY) {
        json_key_lit(&writer, "body");
        json_put_str(&writer, delivery->body);
    }
    json_close_object(&writer);
}

void push_bury(agent_push *self, const a2a_delivery *delivery, const char *reason)
{
    buf origin;
    buf letter;
    buf_init(&origin, A2A_PUSH_URL_BYTES);
    buf_init(&letter, ROW_BYTES);
    put_origin(delivery->url, &origin);
    self->dead++;
    LOG(LOG_WARN, "push", "a notification of task %.*s to %.*s was given up after %u attempts: %s",
        BAY_STR(delivery->task_id), BAY_STR(buf_view(&origin)), (unsigned)delivery->attempt,
        reason);
    write_push_request(delivery, buf_view(&origin), reason, &letter);
    if (self->store != NULL && letter.err == BAY_OK) {
        store_append_request request = {.stream = letters,
                                        .value = buf_view(&letter),
                                        .expires_at_ms = loop_time_ms() + AGENT_PUSH_DEAD_MS,
                                        .keep_events = AGENT_PUSH_DEAD};
        started(self, store_append(self->store, &request, on_changed, self));
    }
    if (delivery->id != 0) {
        push_forget(self, delivery);
    }
    buf_fini(&letter);
    buf_fini(&origin);
}

/* --- restoring -------------------------------------------------------------------------------- */

static bay_str text_of(json_val object, bay_str name, arena *memory)
{
    bay_str text = {"", 0};
    return json_str(json_get(object, name), memory, &text) == BAY_OK ? text : (bay_str){"", 0};
}

/* BAY_ERR_SYNTAX: a row that is none of ours. */
static bay_err read_row(const store_row *row, arena *memory, json_doc *doc, a2a_delivery *out)
{
    bay_err err = json_parse(doc, row->value, NULL, memory, NULL);
    if (err != BAY_OK) {
        return err == BAY_ERR_NOMEM ? err : BAY_ERR_SYNTAX;
    }
    json_val root = json_root(doc);
    *out = (a2a_delivery){.url = text_of(root, STR("url"), memory),
                          .body = text_of(root, STR("body"), memory),
                          .task_id = text_of(root, STR("task"), memory),
                          .config_id = text_of(root, STR("config"), memory),
                          .tag = row->key};
    json_iter it = json_iter_of(json_get(root, STR("fields")));
    while (json_next(&it)) {
        http_field *field = &out->fields[out->field_count];
        if (out->field_count == A2A_PUSH_FIELDS ||
            json_str(it.key, memory, &field->name) != BAY_OK ||
            json_str(it.value, memory, &field->value) != BAY_OK) {
            return BAY_ERR_SYNTAX;
        }
        out->field_count++;
    }
    return out->url.len > 0 && out->body.len > 0 ? BAY_OK : BAY_ERR_SYNTAX;
}

static void restore_row(agent_push *self, const store_row *row)
{
    arena memory;
    json_doc doc;
    a2a_delivery delivery;
    arena_init(&memory, row->value.len * 32 + (64 << 10));
    bay_err err = read_row(row, &memory, &doc, &delivery);
    if (err == BAY_OK) {
        err = a2a_push_restore(self->queue, &delivery, loop_now_ms(self->loop));
    }
    if (err == BAY_ERR_SYNTAX) {
        started(self, store_remove(self->store, rows, row->key, STORE_ANY, on_changed, self));
    } else if (err != BAY_OK && err != BAY_ERR_LIMIT) {
        LOG(LOG_WARN, "push", "a kept notification waits for the next start: %s",
            bay_err_text(err));
    }
    arena_fini(&memory);
}

static void on_scanned(void *user, const store_result *result);

static void scan(agent_push *self)
{
    bay_err err = store_scan(self->store, rows, STR(""), str_of(self->scanned), PUSH_SCAN_ROWS,
                             on_scanned, self);
    if (err == BAY_OK) {
        self->store_calls++;
    } else {
        LOG(LOG_WARN, "push", "kept notifications wait for the next start: %s", bay_err_text(err));
        a2a_push_hold(self->queue, false);
    }
}

static void on_scanned(void *user, const store_result *result)
{
    agent_push *self = user;
    self->store_calls--;
    if (self->is_freed) {
        push_release(self);
        return;
    }
    for (size_t i = 0; i < result->count; i++) {
        const store_row *row = &result->rows[i];
        bool is_ours = str_starts(row->key, str_of(self->prefix));
        size_t len = row->key.len < PUSH_KEY_BYTES ? row->key.len : PUSH_KEY_BYTES;
        memcpy(self->scanned, row->key.at, len);
        self->scanned[len] = '\0';
        if (!is_ours) {
            restore_row(self, row);
        }
    }
    if (result->err == BAY_OK && result->has_more && result->count > 0) {
        scan(self);
    } else {
        a2a_push_hold(self->queue, false);
    }
}

void push_restore(agent_push *self)
{
    if (self->store != NULL) {
        a2a_push_hold(self->queue, true);
        scan(self);
    }
}

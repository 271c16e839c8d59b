/* What is stored of a task, and what clients are shown of it. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "sdk/task_parts.h"
#include "json/writer.h"

#define LAST_MS UINT64_C(253402300799999) /* of the year 9999, which is all a date has room for */

static const bay_str status_texts[TASK_STATUSES] = {
    STR_INIT("working"), STR_INIT("input_required"), STR_INIT("completed"),
    STR_INIT("failed"),  STR_INIT("cancelled"),
};

static void put_time(json_writer *out, const char *name, uint64_t ms)
{
    char text[40];
    struct tm parts;
    time_t seconds = (time_t)(ms / 1000);
    gmtime_r(&seconds, &parts);
    size_t len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    len += (size_t)snprintf(text + len, sizeof(text) - len, ".%03uZ", (unsigned)(ms % 1000));
    json_key(out, str_of(name));
    json_put_str(out, (bay_str){text, len});
}

static void put_text(json_writer *out, const char *name, bay_str text)
{
    if (text.len > 0) {
        json_key(out, str_of(name));
        json_put_str(out, text);
    }
}

static void put_raw(json_writer *out, const char *name, bay_str raw)
{
    if (raw.len > 0) {
        json_key(out, str_of(name));
        json_put_raw(out, raw);
    }
}

/* "name":{members} */
static void put_object(json_writer *out, const char *name, bay_str members)
{
    json_key(out, str_of(name));
    json_open_object(out);
    buf_str(out->out, members);
    json_close_object(out);
}

void sdk_task_put(const task_record *self, bool is_whole, json_writer *out)
{
    json_key_lit(out, "taskId");
    json_put_str(out, self->id);
    json_key_lit(out, "status");
    json_put_str(out, status_texts[self->status]);
    put_text(out, "statusMessage", self->message);
    put_time(out, "createdAt", self->created_ms);
    put_time(out, "lastUpdatedAt", self->updated_ms);
    json_key_lit(out, "ttlMs");
    json_put_uint(out, self->ttl_ms);
    json_key_lit(out, "pollIntervalMs");
    json_put_uint(out, self->poll_ms);
    if (is_whole && self->status == TASK_INPUT_REQUIRED) {
        put_object(out, "inputRequests", self->requests);
    } else if (is_whole && self->status == TASK_COMPLETED) {
        put_raw(out, "result", self->outcome);
    } else if (is_whole && self->status == TASK_FAILED) {
        put_raw(out, "error", self->outcome);
    }
}

static void put_owner(json_writer *writer, const task_record *self, const seal_ring *ring, buf *out)
{
    buf owner;
    buf_init(&owner, PRINCIPAL_KEY_BYTES);
    bay_err err = principal_row_write(self->principal, ring, self->id, &owner);
    put_text(writer, "principal", buf_view(&owner));
    out->err = out->err == BAY_OK ? err : out->err;
    buf_fini(&owner);
}

void sdk_task_write_row(const task_record *self, const seal_ring *ring, buf *out)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    put_text(&writer, "id", self->id);
    put_text(&writer, "tool", self->tool);
    put_owner(&writer, self, ring, out);
    put_text(&writer, "status", status_texts[self->status]);
    put_text(&writer, "message", self->message);
    json_key_lit(&writer, "created");
    json_put_uint(&writer, self->created_ms);
    json_key_lit(&writer, "updated");
    json_put_uint(&writer, self->updated_ms);
    json_key_lit(&writer, "ttl");
    json_put_uint(&writer, self->ttl_ms);
    json_key_lit(&writer, "poll");
    json_put_uint(&writer, self->poll_ms);
    if (sdk_task_is_over(self->status)) {
        put_raw(&writer, "outcome", self->outcome);
    } else { /* what is needed to go on */
        put_raw(&writer, "arguments", self->arguments);
        put_raw(&writer, "capabilities", self->capabilities);
        put_raw(&writer, "clientInfo", self->client_info);
        put_object(&writer, "requests", self->requests);
        put_object(&writer, "answers", self->answers);
        put_object(&writer, "mail", self->inbox);
    }
    json_close_object(&writer);
}

/* The text between the braces of a raw object. */
static bay_str members_of(json_val object)
{
    bay_str raw = json_raw(object);
    return json_count(object) > 0 ? (bay_str){raw.at + 1, raw.len - 2} : (bay_str){NULL, 0};
}

static bay_err read_text(json_val row, bay_str name, arena *memory, bay_str *out)
{
    json_val value = json_get(row, name);
    *out = (bay_str){NULL, 0};
    return json_is(value, JSON_MISSING) ? BAY_OK : json_str(value, memory, out);
}

static bay_err read_number(json_val row, bay_str name, uint64_t most, uint64_t *out)
{
    bay_err err = json_uint64(json_get(row, name), out);
    return err == BAY_OK && *out > most ? BAY_ERR_RANGE : err;
}

static bool read_status(json_val row, task_status *out)
{
    for (size_t i = 0; i < TASK_STATUSES; i++) {
        if (json_str_eq(json_get(row, STR("status")), status_texts[i])) {
            *out = (task_status)i;
            return true;
        }
    }
    return false;
}

static bay_err read_owner(task_record *self, const seal_ring *ring, arena *memory)
{
    buf owner;
    buf_init(&owner, PRINCIPAL_KEY_BYTES);
    bay_err err = principal_row_read(self->principal, ring, self->id, &owner);
    err = err == BAY_OK ? arena_dup(memory, buf_view(&owner), &self->principal) : err;
    buf_fini(&owner);
    return err;
}

bay_err sdk_task_read_row(bay_str text, const seal_ring *ring, arena *memory, task_record *out)
{
    /* Whatever could be written can be read: a value takes two bytes at least. */
    static const json_limits limits = {TASK_MAX_ROW, 128, TASK_MAX_ROW / 2};
    json_doc *doc = arena_zalloc(memory, sizeof(*doc));
    if (doc == NULL) {
        return BAY_ERR_NOMEM;
    }
    bay_err err = json_parse(doc, text, &limits, memory, NULL);
    if (err != BAY_OK) {
        return err == BAY_ERR_NOMEM ? err : BAY_ERR_SYNTAX;
    }
    json_val row = json_root(doc);
    uint64_t ttl = 0;
    uint64_t poll = 0;
    *out = (task_record){.arguments = json_raw(json_get(row, STR("arguments"))),
                         .capabilities = json_raw(json_get(row, STR("capabilities"))),
                         .client_info = json_raw(json_get(row, STR("clientInfo"))),
                         .requests = members_of(json_get(row, STR("requests"))),
                         .answers = members_of(json_get(row, STR("answers"))),
                         .inbox = members_of(json_get(row, STR("mail"))),
                         .outcome = json_raw(json_get(row, STR("outcome"))),
                         .row = row};
    const bay_err read[] = {
        read_text(row, STR("id"), memory, &out->id),
        read_text(row, STR("tool"), memory, &out->tool),
        read_text(row, STR("principal"), memory, &out->principal),
        read_text(row, STR("message"), memory, &out->message),
        read_number(row, STR("created"), LAST_MS, &out->created_ms),
        read_number(row, STR("updated"), LAST_MS, &out->updated_ms),
        read_number(row, STR("ttl"), UINT32_MAX, &ttl),
        read_number(row, STR("poll"), UINT32_MAX, &poll),
    };
    for (size_t i = 0; i < ARRAY_LEN(read); i++) {
        if (read[i] != BAY_OK) {
            return read[i] == BAY_ERR_NOMEM ? BAY_ERR_NOMEM : BAY_ERR_SYNTAX;
        }
    }
    err = read_owner(out, ring, memory);
    if (err != BAY_OK) {
        return err == BAY_ERR_NOMEM ? err : BAY_ERR_SYNTAX;
    }
    out->ttl_ms = (uint32_t)ttl;
    out->poll_ms = (uint32_t)poll;
    return read_status(row, &out->status) && out->id.len > 0 ? BAY_OK : BAY_ERR_SYNTAX;
}

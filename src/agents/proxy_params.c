#include "agents/proxy_params.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/rand.h"
#include "json/build.h"

static bool is_send(a2a_method method)
{
    return method == A2A_SEND_MESSAGE || method == A2A_SEND_STREAMING_MESSAGE;
}

/* Where a request names its task: in its message, by `taskId`, or by `id`. */
static json_val named_by(a2a_method method, json_val params)
{
    if (is_send(method)) {
        return json_get(json_get(params, STR("message")), STR("taskId"));
    }
    json_val task = json_get(params, STR("taskId"));
    return json_is(task, JSON_STRING) ? task : json_get(params, STR("id"));
}

void agents_proxy_alias_init(agents_proxy_alias *self, agents_aliases *among, bay_str agent,
                             const a2a_call *call)
{
    bay_str id;
    bay_str principal = principal_identity(call->principal);
    *self = (agents_proxy_alias){.agent = agent};
    json_val named = named_by(call->method, call->params);
    if (among == NULL || !json_is(named, JSON_STRING) ||
        json_str(named, call->memory, &id) != BAY_OK || id.len == 0) {
        return;
    }
    self->client_id = mem_dup(id.at, id.len);
    self->principal = mem_dup(principal.at, principal.len);
    if (self->client_id == NULL || self->principal == NULL) {
        agents_proxy_alias_fini(self);
        return;
    }
    self->client_id_len = id.len;
    self->principal_len = principal.len;
    /* what 0.1 and later versions call alike (tasks/get) counts as a later one's: there the id
     * decides */
    buf known;
    buf_init(&known, 2 * AGENTS_ALIAS_BYTES);
    bool is_first = call->version == A2A_0_1 && is_send(call->method);
    if (is_first || agents_aliases_find(among, agent, principal, id, &known)) {
        self->among = among;
    }
    buf_fini(&known);
}

void agents_proxy_alias_fini(agents_proxy_alias *self)
{
    mem_free(self->client_id);
    mem_free(self->principal);
    *self = (agents_proxy_alias){0};
}

static bay_str client_id_of(const agents_proxy_alias *self)
{
    return (bay_str){self->client_id, self->client_id_len};
}

static bay_str principal_of(const agents_proxy_alias *self)
{
    return (bay_str){self->principal, self->principal_len};
}

static void write_message(json_writer *writer, json_val message, bay_str id)
{
    static const bay_str task[] = {STR_INIT("taskId")};
    json_key_lit(writer, "message");
    json_open_object(writer);
    json_put_members(writer, message, task, ARRAY_LEN(task));
    if (id.len > 0) { /* else it is a new one's first */
        json_key(writer, task[0]);
        json_put_str(writer, id);
    }
    json_close_object(writer);
}

bay_err agents_proxy_alias_write(const agents_proxy_alias *self, a2a_method method, json_val params,
                                 arena *memory, json_val *out)
{
    static const bay_str of_send[] = {STR_INIT("tenant"), STR_INIT("message"),
                                      STR_INIT("metadata")};
    static const bay_str flag[] = {STR_INIT("patchbay/clientTaskId")};
    buf known;
    buf_init(&known, 2 * AGENTS_ALIAS_BYTES);
    bool is_known = agents_aliases_find(self->among, self->agent, principal_of(self),
                                        client_id_of(self), &known);
    json_builder made;
    json_writer *to = json_builder_init(&made, memory, a2a_json_limits.max_bytes);
    json_open_object(to);
    if (is_send(method)) {
        json_val metadata = json_get(params, of_send[2]);
        json_put_members(to, params, of_send, ARRAY_LEN(of_send));
        if (json_is(metadata, JSON_OBJECT)) {
            json_key(to, of_send[2]);
            json_open_object(to);
            json_put_members(to, metadata, flag, ARRAY_LEN(flag));
            json_close_object(to);
        }
        write_message(to, json_get(params, of_send[1]), buf_view(&known));
    } else {
        bool by_task = json_is(json_get(params, STR("taskId")), JSON_STRING);
        bay_str key = by_task ? STR("taskId") : STR("id");
        const bay_str others[] = {STR("tenant"), key};
        json_put_members(to, params, others, ARRAY_LEN(others));
        json_key(to, key);
        json_put_str(to, is_known ? buf_view(&known) : client_id_of(self));
    }
    json_close_object(to);
    bay_err err = known.err;
    buf_fini(&known);
    if (err != BAY_OK) {
        json_builder_drop(&made);
        return err;
    }
    return json_builder_end(&made, out);
}

/* `of` with another id under `key`. */
static void write_renamed(const agents_proxy_alias *self, json_writer *writer, json_val of,
                          bay_str key)
{
    json_open_object(writer);
    json_key(writer, key);
    json_put_str(writer, client_id_of(self));
    json_put_members(writer, of, &key, 1);
    json_close_object(writer);
}

static void remember(const agents_proxy_alias *self, json_val id, arena *scratch)
{
    bay_str text;
    if (json_is(id, JSON_STRING) && json_str(id, scratch, &text) == BAY_OK) {
        agents_aliases_put(self->among, self->agent, principal_of(self), client_id_of(self), text);
    }
}

bay_err agents_proxy_alias_read(const agents_proxy_alias *self, json_val value, arena *memory,
                                json_val *out)
{
    static const struct {
        bay_str member;
        bay_str key;
    } rows[] = {{STR_INIT("task"), STR_INIT("id")},
                {STR_INIT("statusUpdate"), STR_INIT("taskId")},
                {STR_INIT("artifactUpdate"), STR_INIT("taskId")}};
    json_builder made;
    if (self->among == NULL) {
        *out = value;
        return BAY_OK;
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        json_val inner = json_get(value, rows[i].member);
        if (json_is(inner, JSON_OBJECT)) {
            remember(self, json_get(inner, rows[i].key), memory);
            json_writer *to = json_builder_init(&made, memory, a2a_json_limits.max_bytes);
            json_open_object(to);
            json_key(to, rows[i].member);
            write_renamed(self, to, inner, rows[i].key);
            json_close_object(to);
            return json_builder_end(&made, out);
        }
    }
    bool is_task = json_is(json_get(value, STR("status")), JSON_OBJECT);
    bool is_config = json_is(json_get(value, STR("url")), JSON_STRING);
    if (is_task || is_config) {
        write_renamed(self, json_builder_init(&made, memory, a2a_json_limits.max_bytes), value,
                      is_task ? STR("id") : STR("taskId"));
        return json_builder_end(&made, out);
    }
    *out = value;
    return BAY_OK;
}

json_val agents_proxy_skill_of(json_val params)
{
    static const bay_str keys[] = {STR_INIT("skillId"), STR_INIT("skill")};
    json_val places[] = {json_get(json_get(params, STR("message")), STR("metadata")),
                         json_get(params, STR("metadata"))};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
            json_val found = json_get(places[i], keys[k]);
            if (json_is(found, JSON_STRING)) {
                return found;
            }
        }
    }
    return JSON_NONE;
}

bay_str agents_proxy_child_span(bay_str traceparent, char out[PROXY_TRACE_BYTES])
{
    enum { SPAN_AT = 36, SPAN_BYTES = 16 };
    static const char digits[] = "0123456789abcdef";
    if (traceparent.len != PROXY_TRACE_BYTES) {
        return (bay_str){"", 0};
    }
    for (size_t i = 0; i < PROXY_TRACE_BYTES; i++) { /* it becomes a header field */
        char c = traceparent.at[i];
        if (c != '-' && !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) {
            return (bay_str){"", 0};
        }
    }
    memcpy(out, traceparent.at, PROXY_TRACE_BYTES);
    uint64_t span = rand_u64() | 1; /* never all zeros */
    for (size_t i = 0; i < SPAN_BYTES; i++) {
        out[SPAN_AT + i] = digits[(span >> (60 - 4 * i)) & 15];
    }
    return (bay_str){out, PROXY_TRACE_BYTES};
}

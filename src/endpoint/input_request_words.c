/* A question in another revision's words. Everything goes byte for byte but what a strict reader of
 * that revision would refuse: forms have no `mode` before 2025-11-25, and name the titles of a
 * choice beside it instead of within; messages of sampling have one content each. A choice of
 * several has no words before 2025-11-25: it stays as it is, and the client's answer tells. */
#include "base/rand.h"
#include "base/str.h"
#include "endpoint/input_request.h"

/* Nobody completes what has this id: it only satisfies the revision that demands one. */
static void put_elicitation_id(json_writer *out)
{
    char id[17];
    uint64_t random = rand_u64();
    for (int i = 0; i < 16; i++, random >>= 4) {
        id[i] = "0123456789abcdef"[random & 15];
    }
    json_key_lit(out, "elicitationId");
    json_put_str(out, (bay_str){id, 16});
}

/* ---- choices with titles --------------------------------------------------------------------- */

/* mcp 2025-11-25 client/elicitation, Requested Schema: oneOf of const and title; mcp 2025-06-18:
 * enum and enumNames. */
static bool is_titled(json_val property)
{
    json_val choices = json_get(property, STR("oneOf"));
    json_iter iter = json_iter_of(choices);
    bool is_choice = json_is(choices, JSON_ARRAY) && json_count(choices) > 0;
    while (is_choice && json_next(&iter)) {
        is_choice = json_is(json_get(iter.value, STR("const")), JSON_STRING);
    }
    return is_choice;
}

static void put_choices(json_writer *out, json_val choices, bay_str key, bay_str member)
{
    json_iter iter = json_iter_of(choices);
    json_key(out, key);
    json_open_array(out);
    while (json_next(&iter)) {
        json_val value = json_get(iter.value, member);
        json_put_val(out, json_is(value, JSON_STRING) ? value : json_get(iter.value, STR("const")));
    }
    json_close_array(out);
}

static bool has_titles(json_val properties)
{
    json_iter iter = json_iter_of(properties);
    while (json_is(properties, JSON_OBJECT) && json_next(&iter)) {
        if (is_titled(iter.value)) {
            return true;
        }
    }
    return false;
}

static void put_properties(json_writer *out, json_val properties)
{
    static const bay_str one_of = STR_INIT("oneOf");
    json_iter iter = json_iter_of(properties);
    json_open_object(out);
    while (json_next(&iter)) {
        json_key_raw(out, json_raw(iter.key));
        if (!is_titled(iter.value)) {
            json_put_val(out, iter.value);
            continue;
        }
        json_val choices = json_get(iter.value, one_of);
        json_open_object(out);
        json_put_members(out, iter.value, &one_of, 1);
        put_choices(out, choices, STR("enum"), STR("const"));
        put_choices(out, choices, STR("enumNames"), STR("title"));
        json_close_object(out);
    }
    json_close_object(out);
}

static void put_schema(json_writer *out, json_val schema)
{
    static const bay_str properties = STR_INIT("properties");
    json_key_lit(out, "requestedSchema");
    json_open_object(out);
    json_put_members(out, schema, &properties, 1);
    json_key(out, properties);
    put_properties(out, json_get(schema, properties));
    json_close_object(out);
}

/* ---- messages of sampling -------------------------------------------------------------------- */

static bool has_lists(json_val messages)
{
    json_iter iter = json_iter_of(messages);
    while (json_is(messages, JSON_ARRAY) && json_next(&iter)) {
        if (json_count(json_get(iter.value, STR("content"))) > 0 &&
            json_is(json_get(iter.value, STR("content")), JSON_ARRAY)) {
            return true;
        }
    }
    return false;
}

/* mcp 2025-06-18 client/sampling: one content a message; several of one role may follow each other.
 */
static void put_messages(json_writer *out, json_val messages)
{
    static const bay_str content = STR_INIT("content");
    json_iter iter = json_iter_of(messages);
    json_key_lit(out, "messages");
    json_open_array(out);
    while (json_next(&iter)) {
        json_val contents = json_get(iter.value, content);
        if (!json_is(contents, JSON_ARRAY) || json_count(contents) == 0) {
            json_put_val(out, iter.value);
            continue;
        }
        json_iter items = json_iter_of(contents);
        while (json_next(&items)) {
            json_open_object(out);
            json_put_members(out, iter.value, &content, 1);
            json_key(out, content);
            json_put_val(out, items.value);
            json_close_object(out);
        }
    }
    json_close_array(out);
}

/* ---- the params ------------------------------------------------------------------------------ */

void input_request_write_params(json_writer *out, bay_str method, json_val params,
                                const mcp_revision *to)
{
    bool is_older = to->id < MCP_REV_2025_11_25;
    bool is_elicitation = str_eq(method, STR("elicitation/create"));
    bool is_sampling = str_eq(method, STR("sampling/createMessage"));
    json_val mode = json_get(params, STR("mode"));
    json_val schema = json_get(params, STR("requestedSchema"));
    json_val messages = json_get(params, STR("messages"));
    bool drops_mode = is_elicitation && is_older && !json_is(mode, JSON_MISSING);
    bool is_retitled =
        is_elicitation && is_older && has_titles(json_get(schema, STR("properties")));
    bool is_split = is_sampling && is_older && has_lists(messages);
    bool wants_id = is_elicitation && json_str_eq(mode, STR("url")) &&
                    to->id == MCP_REV_2025_11_25 &&
                    json_is(json_get(params, STR("elicitationId")), JSON_MISSING);
    if (!drops_mode && !is_retitled && !is_split && !wants_id) {
        json_put_val(out, params);
        return;
    }
    bay_str except[3];
    size_t count = 0;
    if (drops_mode) {
        except[count++] = STR("mode");
    }
    if (is_retitled || is_split) {
        except[count++] = is_retitled ? STR("requestedSchema") : STR("messages");
    }
    json_open_object(out);
    json_put_members(out, params, except, count);
    if (is_retitled) {
        put_schema(out, schema);
    }
    if (is_split) {
        put_messages(out, messages);
    }
    if (wants_id) {
        put_elicitation_id(out);
    }
    json_close_object(out);
}

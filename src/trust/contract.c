#include "trust/contract.h"

#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "base/shown.h"
#include "base/str.h"
#include "schema/schema.h"
#include "json/build.h"

enum { PARAMS_BYTES = 4 << 20 };

typedef struct contract_reader {
    arena *memory;
    json_val place;
    bay_diag *diag;
} contract_reader;

static bay_err contract_refuse(contract_reader *self, json_val place, const char *why)
{
    self->place = place;
    return diag_set(self->diag, BAY_ERR_INVALID, "%s", why);
}

/* ---- members --------------------------------------------------------------------------------- */

/* No member but these: a misspelt expectation must not pass for one that holds. */
static bay_err check_members(contract_reader *self, json_val object, const char *const *known,
                             size_t count, const char *why)
{
    json_iter members = json_iter_of(object);
    while (json_next(&members)) {
        bool is_known = false;
        for (size_t i = 0; i < count; i++) {
            is_known = is_known || json_str_eq(members.key, str_of(known[i]));
        }
        if (!is_known) {
            return contract_refuse(self, members.key, why);
        }
    }
    return BAY_OK;
}

static bay_err take_text(contract_reader *self, json_val value, const char *why, bay_str *out)
{
    *out = (bay_str){"", 0};
    if (json_is(value, JSON_MISSING)) {
        return BAY_OK;
    }
    bay_err err = json_str(value, self->memory, out);
    return err == BAY_OK && out->len <= CONTRACT_NAME_BYTES ? BAY_OK
           : err == BAY_ERR_NOMEM                           ? err
                                                            : contract_refuse(self, value, why);
}

static bay_err take_bool(contract_reader *self, json_val value, const char *why, bool *out)
{
    bool is_given = !json_is(value, JSON_MISSING);
    if (is_given && !json_is(value, JSON_TRUE) && !json_is(value, JSON_FALSE)) {
        return contract_refuse(self, value, why);
    }
    *out = json_true(value);
    return BAY_OK;
}

static bay_err take_bound(contract_reader *self, json_val value, const char *why, bool *out_has,
                          uint64_t *out)
{
    *out_has = !json_is(value, JSON_MISSING);
    return !*out_has || json_uint64(value, out) == BAY_OK ? BAY_OK
                                                          : contract_refuse(self, value, why);
}

/* Compiled once to see that it can be: a contract that cannot decide is refused before the call. */
static bay_err check_schema(contract_reader *self, json_val value)
{
    schema *compiled = NULL;
    bay_diag diag = {0};
    bay_err err = schema_compile(value, NULL, &compiled, &diag);
    schema_free(compiled);
    return err == BAY_OK || err == BAY_ERR_NOMEM ? err : contract_refuse(self, value, diag.text);
}

static bay_err take_pointers(contract_reader *self, json_val pointers)
{
    bay_err err = BAY_OK;
    json_iter members = json_iter_of(pointers);
    if (!json_is(pointers, JSON_OBJECT) || json_count(pointers) > CONTRACT_POINTERS) {
        return contract_refuse(self, pointers,
                               "pointers must be a map of at most 64 JSON pointers to schemas");
    }
    while (err == BAY_OK && json_next(&members)) {
        bay_str pointer;
        err = json_str(members.key, self->memory, &pointer);
        if (err == BAY_OK && (pointer.len == 0 || pointer.at[0] != '/')) {
            return contract_refuse(self, members.key, "a JSON pointer begins with /");
        }
        err = err == BAY_OK ? check_schema(self, members.value) : err;
    }
    return err;
}

static bay_err take_expectations(contract_reader *self, json_val expect, trust_contract *out)
{
    static const char *const known[] = {"isError", "bytes",  "latencyMs",
                                        "text",    "schema", "pointers"};
    if (json_is(expect, JSON_MISSING)) {
        return BAY_OK;
    }
    if (!json_is(expect, JSON_OBJECT)) {
        return contract_refuse(self, expect, "expect must be a map");
    }
    bay_err err = check_members(self, expect, known, ARRAY_LEN(known),
                                "expect has isError, bytes, latencyMs, text, schema and pointers");
    err = err == BAY_OK ? take_bool(self, json_get(expect, STR("isError")),
                                    "isError must be true or false", &out->is_error)
                        : err;
    err = err == BAY_OK ? take_bound(self, json_get(expect, STR("bytes")),
                                     "bytes must be a whole number", &out->has_bytes, &out->bytes)
                        : err;
    err = err == BAY_OK ? take_bound(self, json_get(expect, STR("latencyMs")),
                                     "latencyMs must be a whole number of milliseconds",
                                     &out->has_latency, &out->latency_ms)
                        : err;
    err = err == BAY_OK ? take_text(self, json_get(expect, STR("text")),
                                    "text must be a text of at most 256 bytes", &out->text)
                        : err;
    out->schema = json_get(expect, STR("schema"));
    out->pointers = json_get(expect, STR("pointers"));
    if (err == BAY_OK && !json_is(out->schema, JSON_MISSING)) {
        err = check_schema(self, out->schema);
    }
    if (err == BAY_OK && !json_is(out->pointers, JSON_MISSING)) {
        err = take_pointers(self, out->pointers);
    }
    return err;
}

static bay_err take_contract(contract_reader *self, json_val value, trust_contract *out)
{
    static const char *const known[] = {"name", "tool", "arguments", "writes", "expect"};
    *out = (trust_contract){.at = value};
    if (!json_is(value, JSON_OBJECT)) {
        return contract_refuse(self, value, "a contract must be a map with tool and expect");
    }
    bay_err err = check_members(self, value, known, ARRAY_LEN(known),
                                "a contract has name, tool, arguments, writes and expect");
    err = err == BAY_OK ? take_text(self, json_get(value, STR("tool")),
                                    "tool must be a text of at most 256 bytes", &out->tool)
                        : err;
    if (err == BAY_OK && out->tool.len == 0) {
        return contract_refuse(self, value, "tool is missing");
    }
    err = err == BAY_OK ? take_text(self, json_get(value, STR("name")),
                                    "name must be a text of at most 256 bytes", &out->name)
                        : err;
    out->name = out->name.len > 0 ? out->name : out->tool;
    err = err == BAY_OK ? take_bool(self, json_get(value, STR("writes")),
                                    "writes must be true or false", &out->may_write)
                        : err;
    out->arguments = json_get(value, STR("arguments"));
    if (err == BAY_OK && !json_is(out->arguments, JSON_MISSING) &&
        !json_is(out->arguments, JSON_OBJECT)) {
        return contract_refuse(self, out->arguments, "arguments must be a map");
    }
    return err == BAY_OK ? take_expectations(self, json_get(value, STR("expect")), out) : err;
}

/* A report names each contract. */
static bay_err check_name(contract_reader *self, const trust_contracts *all)
{
    const trust_contract *made = &all->at[all->count];
    for (size_t i = 0; i < all->count; i++) {
        if (str_eq(all->at[i].name, made->name)) {
            return contract_refuse(self, made->at,
                                   "another contract has this name: give each its own name");
        }
    }
    return BAY_OK;
}

static bay_err read_all(contract_reader *self, json_val root, trust_contracts *out)
{
    static const char *const known[] = {"server", "contracts"};
    json_val list = json_get(root, STR("contracts"));
    if (!json_is(root, JSON_OBJECT) || !json_is(list, JSON_ARRAY)) {
        return contract_refuse(self, root, "the file must be a map with contracts, a list");
    }
    if (json_count(list) > CONTRACTS) {
        return contract_refuse(self, list, "more than 1,000 contracts: split the file");
    }
    bay_err err =
        check_members(self, root, known, ARRAY_LEN(known), "the file has server and contracts");
    err = err == BAY_OK ? take_text(self, json_get(root, STR("server")),
                                    "server must be a name of the configuration", &out->server)
                        : err;
    out->at = arena_array(self->memory, json_count(list) + 1, sizeof(*out->at));
    err = err == BAY_OK && out->at == NULL ? BAY_ERR_NOMEM : err;
    json_iter items = json_iter_of(list);
    while (err == BAY_OK && json_next(&items)) {
        err = take_contract(self, items.value, &out->at[out->count]);
        err = err == BAY_OK ? check_name(self, out) : err;
        out->count++;
    }
    return err;
}

bay_err trust_contracts_read(json_val root, arena *memory, trust_contracts *out,
                             json_val *out_place, bay_diag *diag)
{
    contract_reader self = {.memory = memory, .place = root, .diag = diag};
    *out = (trust_contracts){0};
    bay_err err = read_all(&self, root, out);
    *out_place = self.place;
    return err;
}

/* ---- the call -------------------------------------------------------------------------------- */

bool trust_contract_may_call(const trust_contract *self, json_val tool, buf *out)
{
    json_val hints = json_get(tool, STR("annotations"));
    if (json_is(tool, JSON_MISSING)) {
        buf_lit(out, "the server does not list the tool\n");
        return false;
    }
    if (!json_true(json_get(hints, STR("readOnlyHint"))) && !self->may_write) {
        buf_lit(out, "it was not called: the tool does not claim readOnlyHint; set writes: true if "
                     "the call may change something\n");
        return false;
    }
    return true;
}

bay_err trust_contract_params(const trust_contract *self, arena *memory, json_val *out)
{
    json_builder made;
    bool has_none = json_is(self->arguments, JSON_MISSING);
    json_writer *writer = json_builder_init(&made, memory, PARAMS_BYTES);
    json_open_object(writer);
    json_key_lit(writer, "name");
    json_put_str(writer, self->tool);
    json_key_lit(writer, "arguments");
    json_put_val(writer, has_none ? json_empty_object() : self->arguments);
    json_close_object(writer);
    return json_builder_end(&made, out);
}

/* ---- judging --------------------------------------------------------------------------------- */

static bay_err judge_schema(json_val wanted, json_val value, const char *of, bay_str where,
                            schema_state *state, buf *out)
{
    schema *compiled = NULL;
    schema_failures failures;
    bay_diag diag = {0};
    bay_err err = schema_compile(wanted, NULL, &compiled, &diag);
    if (err != BAY_OK) {
        if (err != BAY_ERR_NOMEM) {
            buf_printf(out, "%s cannot be checked: %s\n", of, diag.text);
        }
        return err == BAY_ERR_NOMEM ? err : BAY_OK;
    }
    err = schema_check(compiled, value, state, &failures);
    for (size_t i = 0; err != BAY_OK && err != BAY_ERR_NOMEM && i < failures.count; i++) {
        buf_printf(out, "%s", of);
        shown_append(out, where, SHOWN_LINE);
        buf_lit(out, ": ");
        shown_append(out, failures.item[i].text, SHOWN_LINE);
        buf_char(out, '\n');
    }
    schema_free(compiled);
    return err == BAY_ERR_NOMEM ? err : BAY_OK;
}

static bay_err judge_pointers(const trust_contract *self, json_val result, schema_state *state,
                              buf *out)
{
    bay_err err = BAY_OK;
    json_iter members = json_iter_of(self->pointers);
    while (err == BAY_OK && json_next(&members)) {
        arena memory;
        bay_str pointer;
        arena_init(&memory, 64 << 10);
        err = json_str(members.key, &memory, &pointer);
        json_val value = err == BAY_OK ? json_pointer(result, pointer) : JSON_NONE;
        if (err == BAY_OK && json_is(value, JSON_MISSING)) {
            shown_append(out, pointer, SHOWN_LINE);
            buf_lit(out, " is missing\n");
        } else if (err == BAY_OK) {
            err = judge_schema(members.value, value, "", pointer, state, out);
        }
        arena_fini(&memory);
    }
    return err;
}

static bool has_text(json_val result, bay_str wanted, arena *memory)
{
    json_iter blocks = json_iter_of(json_get(result, STR("content")));
    while (json_next(&blocks)) {
        bay_str text;
        if (json_str(json_get(blocks.value, STR("text")), memory, &text) == BAY_OK &&
            memmem(text.at, text.len, wanted.at, wanted.len) != NULL) {
            return true;
        }
    }
    return false;
}

/* The first text of a result that failed, for whoever reads why. */
static void put_error_text(json_val result, arena *memory, buf *out)
{
    bay_str text;
    json_val block = json_item(json_get(result, STR("content")), 0);
    if (json_str(json_get(block, STR("text")), memory, &text) == BAY_OK) {
        buf_lit(out, ": ");
        shown_append(out, str_head(text, 300), SHOWN_LINE);
    }
}

static bay_err judge_result(const trust_contract *self, json_val result, json_val output_schema,
                            schema_state *state, arena *memory, buf *out)
{
    bool is_error = json_true(json_get(result, STR("isError")));
    if (is_error != self->is_error) {
        buf_printf(out, "isError is %s", is_error ? "true" : "false");
        if (is_error) {
            put_error_text(result, memory, out);
        }
        buf_char(out, '\n');
    }
    size_t bytes = json_raw(result).len;
    if (self->has_bytes && bytes > self->bytes) {
        buf_printf(out, "the result has %zu bytes, more than %llu\n", bytes,
                   (unsigned long long)self->bytes);
    }
    if (self->text.len > 0 && !has_text(result, self->text, memory)) {
        buf_lit(out, "no text block contains \"");
        shown_append(out, self->text, SHOWN_LINE);
        buf_lit(out, "\"\n");
    }
    bay_err err = BAY_OK;
    json_val structured = json_get(result, STR("structuredContent"));
    if (!is_error && !json_is(output_schema, JSON_MISSING)) {
        if (json_is(structured, JSON_MISSING)) {
            buf_lit(out, "the tool has an outputSchema and the result no structuredContent\n");
        } else {
            err = judge_schema(output_schema, structured, "structuredContent", STR(""), state, out);
        }
    }
    if (err == BAY_OK && !json_is(self->schema, JSON_MISSING)) {
        err = judge_schema(self->schema, result, "result", STR(""), state, out);
    }
    return err == BAY_OK ? judge_pointers(self, result, state, out) : err;
}

bay_err trust_contract_judge(const trust_contract *self, const trust_outcome *outcome,
                             json_val output_schema, buf *out)
{
    arena memory;
    schema_state state;
    if (json_is(outcome->result, JSON_MISSING)) {
        shown_append(out, outcome->failure, SHOWN_LINE);
        buf_char(out, '\n');
        return out->err;
    }
    if (self->has_latency && outcome->latency_ms > self->latency_ms) {
        buf_printf(out, "the answer took %llu ms, more than %llu\n",
                   (unsigned long long)outcome->latency_ms, (unsigned long long)self->latency_ms);
    }
    arena_init(&memory, 64 << 20);
    schema_state_init(&state);
    bay_err err = judge_result(self, outcome->result, output_schema, &state, &memory, out);
    schema_state_fini(&state);
    arena_fini(&memory);
    return err == BAY_OK ? out->err : err;
}

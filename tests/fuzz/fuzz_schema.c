/* A schema and an instance, one behind the other with a byte of zero between them: whatever they
 * are, there is a verdict or an error, the same with and without reporting, and with a state that
 * has been used before. Without a zero, the text is the pattern of a schema and its instance. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/str.h"
#include "schema/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
#include "json/json.h"
#include "json/writer.h"

static void expect(bool holds)
{
    if (!holds) {
        abort();
    }
}

static const json_limits parse_limits = {1U << 20, 600, 1U << 16};

/* Small enough that no input takes long. */
static const schema_limits limits = {.max_steps = 1U << 14, .max_lookups = 1U << 16};

static void check_failures(const schema_failures *failures)
{
    expect(failures->count <= SCHEMA_MAX_FAILURES && failures->used <= SCHEMA_FAILURE_BYTES);
    for (size_t i = 0; i < failures->count; i++) {
        const schema_failure *one = &failures->item[i];
        expect(one->text.len > 0 && one->text.at[one->text.len] == '\0');
        expect(one->path.at[one->path.len] == '\0' && one->rule.at[one->rule.len] == '\0');
    }
    buf out;
    buf_init(&out, 1U << 16);
    schema_failures_print(failures, &out);
    expect(out.err == BAY_OK);
    buf_fini(&out);
}

static void check(const schema *compiled, json_val instance, schema_state *state)
{
    static schema_failures failures;
    bay_err err = schema_check(compiled, instance, state, &failures);
    expect(err == BAY_OK || err == BAY_ERR_INVALID || err == BAY_ERR_LIMIT);
    expect((failures.count == 0) == (err == BAY_OK));
    check_failures(&failures);
    expect(schema_check(compiled, instance, NULL, NULL) == err);
    expect(schema_check(compiled, instance, state, NULL) == err);
}

static void run(bay_str text, bay_str instance, schema_dialect dialect)
{
    arena memory;
    json_doc docs[2];
    arena_init(&memory, 64U << 20);
    const schema_options options = {.dialect = dialect, .limits = &limits};
    schema *compiled = NULL;
    bay_diag diag = {0};
    if (json_parse(&docs[0], text, &parse_limits, &memory, NULL) == BAY_OK) {
        bay_err err = schema_compile(json_root(&docs[0]), &options, &compiled, &diag);
        expect((err == BAY_OK) == (compiled != NULL));
        expect(err == BAY_OK || (diag.code == err && diag.text[0] != '\0'));
        expect(err != BAY_ERR_NOMEM && err != BAY_ERR_INTERNAL && diag.offset <= text.len);
    }
    if (compiled != NULL) {
        schema_state state;
        schema_state_init(&state);
        if (json_parse(&docs[1], instance, &parse_limits, &memory, NULL) == BAY_OK) {
            check(compiled, json_root(&docs[1]), &state);
        }
        check(compiled, json_root(&docs[0]), &state);
        schema_state_fini(&state);
    }
    schema_free(compiled);
    arena_fini(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bay_str all = {(const char *)data, size};
    size_t zero = size > 0 ? str_find(all, '\0') : 0;
    if (zero < size) {
        bay_str text = str_head(all, zero);
        bay_str instance = str_from(all, zero + 1);
        run(text, instance, SCHEMA_2020_12);
        run(text, instance, SCHEMA_DRAFT_07);
        return 0;
    }
    buf text;
    buf instance;
    buf_init(&text, 1U << 20);
    buf_init(&instance, 1U << 20);
    buf_lit(&text, "{\"pattern\":");
    json_quote(&text, all);
    buf_lit(&text, ",\"format\":\"regex\"}");
    json_quote(&instance, all);
    run(buf_view(&text), buf_view(&instance), SCHEMA_2020_12);
    buf_fini(&text);
    buf_fini(&instance);
    return 0;
}

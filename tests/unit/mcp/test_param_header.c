/* x-mcp-header: which schemas are refused, what header a value makes, what a header matches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "mcp/param_header.h"

typedef struct bench {
    arena memory;
    json_doc schema;
    json_doc arguments;
} bench;

static json_val parse(bench *self, json_doc *doc, const char *text)
{
    bay_str copy;
    assert_int_equal(arena_dup(&self->memory, str_of(text), &copy), BAY_OK);
    assert_int_equal(json_parse(doc, copy, NULL, &self->memory, NULL), BAY_OK);
    return json_root(doc);
}

#define PROPERTY(schema) "{\"type\":\"object\",\"properties\":{\"a\":" schema "}}"

static const char *const refused[] = {
    PROPERTY("{\"type\":\"string\",\"x-mcp-header\":\"\"}"),
    PROPERTY("{\"type\":\"string\",\"x-mcp-header\":1}"),
    PROPERTY("{\"type\":\"string\",\"x-mcp-header\":\"My Region\"}"),
    PROPERTY("{\"type\":\"string\",\"x-mcp-header\":\"a:b\"}"),
    PROPERTY("{\"type\":\"string\",\"x-mcp-header\":\"R\xc3\xa9gion\"}"),
    PROPERTY("{\"type\":\"string\",\"x-mcp-header\":\"a\\r\\nb\"}"),
    PROPERTY("{\"type\":\"string\",\"x-mcp-header\":\"a\\tb\"}"),
    PROPERTY("{\"type\":\"string\",\"x-mcp-header\":\"A\",\"x-mcp-header\":\"B\"}"),
    PROPERTY("{\"type\":\"number\",\"x-mcp-header\":\"A\"}"),
    PROPERTY("{\"type\":\"object\",\"x-mcp-header\":\"A\"}"),
    PROPERTY("{\"type\":\"array\",\"x-mcp-header\":\"A\"}"),
    PROPERTY("{\"type\":\"null\",\"x-mcp-header\":\"A\"}"),
    PROPERTY("{\"x-mcp-header\":\"A\"}"),
    PROPERTY("{\"type\":[\"string\",\"null\"],\"x-mcp-header\":\"A\"}"),
    PROPERTY("{\"type\":\"array\",\"items\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}"),
    PROPERTY("{\"anyOf\":[{\"type\":\"string\",\"x-mcp-header\":\"A\"}]}"),
    PROPERTY("{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"b\":{\"type\":"
             "\"string\",\"x-mcp-header\":\"A\"}}}}"),
    "{\"type\":\"string\",\"x-mcp-header\":\"A\"}",
    "{\"$defs\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}",
    "{\"if\":{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}}",
    "{\"additionalProperties\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}",
    "{\"patternProperties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}",
    "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"},"
    "\"b\":{\"type\":\"string\",\"x-mcp-header\":\"rEGION\"}}}",
};

static void broken_annotations_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        bench self;
        arena_init(&self.memory, 1 << 16);
        mcp_param_table table = {NULL, 77};
        bay_diag diag = {0};
        json_val schema = parse(&self, &self.schema, refused[i]);
        bay_err err = mcp_param_table_read(&table, schema, &self.memory, &diag);
        if (err != BAY_ERR_PROTOCOL) {
            fail_msg("taken: %s", refused[i]);
        }
        assert_int_equal(table.count, 77);
        assert_int_not_equal(diag.text[0], 0);
        arena_fini(&self.memory);
    }
}

static void too_many_and_too_deep_are_refused(void **state)
{
    (void)state;
    for (int count = MCP_MAX_PARAM_HEADERS; count <= MCP_MAX_PARAM_HEADERS + 1; count++) {
        bench self;
        arena_init(&self.memory, 1 << 20);
        buf text;
        buf_init(&text, 1 << 16);
        buf_lit(&text, "{\"properties\":{");
        for (int i = 0; i < count; i++) {
            buf_printf(&text, "%s\"p%d\":{\"type\":\"string\",\"x-mcp-header\":\"H%d\"}",
                       i > 0 ? "," : "", i, i);
        }
        buf_lit(&text, "}}\0");
        mcp_param_table table;
        bay_err err =
            mcp_param_table_read(&table, parse(&self, &self.schema, text.at), &self.memory, NULL);
        assert_int_equal(err, count <= MCP_MAX_PARAM_HEADERS ? BAY_OK : BAY_ERR_PROTOCOL);
        buf_fini(&text);
        arena_fini(&self.memory);
    }
    for (int depth = MCP_MAX_PARAM_DEPTH; depth <= MCP_MAX_PARAM_DEPTH + 1; depth++) {
        bench self;
        arena_init(&self.memory, 1 << 20);
        buf text;
        buf_init(&text, 1 << 16);
        for (int i = 0; i < depth; i++) {
            buf_lit(&text, "{\"properties\":{\"p\":");
        }
        buf_lit(&text, "{\"type\":\"string\",\"x-mcp-header\":\"H\"}");
        for (int i = 0; i < depth; i++) {
            buf_lit(&text, "}}");
        }
        buf_lit(&text, "\0");
        mcp_param_table table;
        bay_err err =
            mcp_param_table_read(&table, parse(&self, &self.schema, text.at), &self.memory, NULL);
        assert_int_equal(err, depth <= MCP_MAX_PARAM_DEPTH ? BAY_OK : BAY_ERR_PROTOCOL);
        buf_fini(&text);
        arena_fini(&self.memory);
    }
}

static void data_and_property_names_are_not_annotations(void **state)
{
    (void)state;
    bench self;
    arena_init(&self.memory, 1 << 16);
    mcp_param_table table;
    json_val schema = parse(&self, &self.schema,
                            "{\"properties\":{\"x-mcp-header\":{\"type\":\"string\"},\"b\":{"
                            "\"default\":{\"x-mcp-header\":1},\"const\":{\"x-mcp-header\":1},"
                            "\"enum\":[{\"x-mcp-header\":\"A\"}],\"examples\":[{\"x-mcp-header\":"
                            "2}]}},\"required\":[\"x-mcp-header\"]}");
    assert_int_equal(mcp_param_table_read(&table, schema, &self.memory, NULL), BAY_OK);
    assert_int_equal(table.count, 0);
    arena_fini(&self.memory);
}

static const char schema_text[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"region\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"},"
    "\"limit\":{\"type\":\"integer\",\"x-mcp-header\":\"Limit\"},"
    "\"in\":{\"type\":\"object\",\"properties\":{\"deep\":{\"type\":\"boolean\","
    "\"x-mcp-header\":\"Deep\"}}}}}";

static void a_table_is_read(void **state)
{
    (void)state;
    bench self;
    arena_init(&self.memory, 1 << 16);
    mcp_param_table table;
    json_val schema = parse(&self, &self.schema, schema_text);
    assert_int_equal(mcp_param_table_read(&table, schema, &self.memory, NULL), BAY_OK);
    assert_int_equal(table.count, 3);
    assert_true(str_eq(table.params[0].header, STR("Region")));
    assert_int_equal(table.params[1].type, JSON_NUMBER);
    assert_int_equal(table.params[2].path_len, 2);
    assert_true(str_eq(table.params[2].path[0], STR("in")));
    assert_true(str_eq(table.params[2].path[1], STR("deep")));
    assert_int_equal(table.params[2].type, JSON_TRUE);
    arena_fini(&self.memory);
}

typedef struct sample {
    int param;
    const char *arguments;
    const char *value; /* NULL: left out */
} sample;

static const sample samples[] = {
    {0, "{}", NULL},
    {0, "{\"region\":null}", NULL},
    {0, "{\"region\":[1]}", NULL},
    {0, "{\"region\":\"us-west1\"}", "us-west1"},
    {0, "{\"region\":\"\"}", ""},
    {0, "{\"region\":\"Hello, \xe4\xb8\x96\xe7\x95\x8c\"}", "=?base64?SGVsbG8sIOS4lueVjA==?="},
    {0, "{\"region\":\" padded \"}", "=?base64?IHBhZGRlZCA=?="},
    {0, "{\"region\":\"line1\\nline2\"}", "=?base64?bGluZTEKbGluZTI=?="},
    {0, "{\"region\":\"=?base64?literal?=\"}", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="},
    {1, "{\"limit\":42}", "42"},
    {1, "{\"limit\":42.0}", "42"},
    {1, "{\"limit\":-7}", "-7"},
    {1, "{\"limit\":9007199254740991}", "9007199254740991"},
    {1, "{\"limit\":1.5}", NULL},
    {2, "{\"in\":{\"deep\":true}}", "true"},
    {2, "{\"in\":{\"deep\":false}}", "false"},
    {2, "{\"in\":{}}", NULL},
    {2, "{\"in\":7}", NULL},
};

static void values_become_headers_and_match_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        bench self;
        arena_init(&self.memory, 1 << 16);
        mcp_param_table table;
        json_val schema = parse(&self, &self.schema, schema_text);
        assert_int_equal(mcp_param_table_read(&table, schema, &self.memory, NULL), BAY_OK);
        const mcp_param *param = &table.params[samples[i].param];
        json_val arguments = parse(&self, &self.arguments, samples[i].arguments);
        bay_str value = STR("untouched");
        assert_int_equal(mcp_param_value(param, arguments, &self.memory, &value), BAY_OK);
        if (samples[i].value == NULL) {
            assert_null(value.at);
        } else {
            assert_non_null(value.at);
            assert_true(str_eq(value, str_of(samples[i].value)));
        }
        assert_true(mcp_param_matches(param, arguments, value, &self.memory));
        assert_false(mcp_param_matches(param, arguments, STR("other"), &self.memory));
        if (value.at != NULL) {
            assert_false(mcp_param_matches(param, arguments, (bay_str){NULL, 0}, &self.memory));
        }
        arena_fini(&self.memory);
    }
}

typedef struct comparison {
    int param;
    const char *arguments;
    const char *field;
    bool is_match;
} comparison;

static const comparison comparisons[] = {
    {0, "{\"region\":\"Hello\"}", "=?base64?SGVsbG8=?=", true},
    {0, "{\"region\":\"Hello\"}", "=?base64?SGVsbG8?=", false},
    {0, "{\"region\":\"Hello\"}", "=?base64?SGVs!G8=?=", false},
    {0, "{\"region\":\"Hello\"}", "SGVsbG8=?=", false},
    {0, "{\"region\":\"SGVsbG8=?=\"}", "SGVsbG8=?=", true},
    {0, "{\"region\":\"=?base64?SGVsbG8=\"}", "=?base64?SGVsbG8=", true},
    {0, "{\"region\":\"a\"}", "A", false},
    {1, "{\"limit\":42}", "42.0", true},
    {1, "{\"limit\":42}", "4.2e1", true},
    {1, "{\"limit\":42}", "43", false},
    {1, "{\"limit\":42}", " 42", false},
    {1, "{\"limit\":42}", "\"42\"", false},
    {1, "{\"limit\":42}", "42 43", false},
    {1, "{\"limit\":42}", "", false},
    {1, "{\"limit\":9007199254740993}", "9007199254740993", false},
    {2, "{\"in\":{\"deep\":true}}", "True", false},
    {2, "{\"in\":{\"deep\":true}}", "false", false},
};

static void headers_are_compared_decoded(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(comparisons); i++) {
        bench self;
        arena_init(&self.memory, 1 << 16);
        mcp_param_table table;
        json_val schema = parse(&self, &self.schema, schema_text);
        assert_int_equal(mcp_param_table_read(&table, schema, &self.memory, NULL), BAY_OK);
        json_val arguments = parse(&self, &self.arguments, comparisons[i].arguments);
        bool is_match = mcp_param_matches(&table.params[comparisons[i].param], arguments,
                                          str_of(comparisons[i].field), &self.memory);
        if (is_match != comparisons[i].is_match) {
            fail_msg("%s against %s", comparisons[i].field, comparisons[i].arguments);
        }
        arena_fini(&self.memory);
    }
}

static void integers_no_reader_counts_are_an_error(void **state)
{
    (void)state;
    bench self;
    arena_init(&self.memory, 1 << 16);
    mcp_param_table table;
    json_val schema = parse(&self, &self.schema, schema_text);
    assert_int_equal(mcp_param_table_read(&table, schema, &self.memory, NULL), BAY_OK);
    json_val arguments = parse(&self, &self.arguments, "{\"limit\":9007199254740992}");
    bay_str value = STR("untouched");
    assert_int_equal(mcp_param_value(&table.params[1], arguments, &self.memory, &value),
                     BAY_ERR_RANGE);
    assert_true(str_eq(value, STR("untouched")));
    arena_fini(&self.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_annotations_are_refused),
        cmocka_unit_test(too_many_and_too_deep_are_refused),
        cmocka_unit_test(data_and_property_names_are_not_annotations),
        cmocka_unit_test(a_table_is_read),
        cmocka_unit_test(values_become_headers_and_match_them),
        cmocka_unit_test(headers_are_compared_decoded),
        cmocka_unit_test(integers_no_reader_counts_are_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

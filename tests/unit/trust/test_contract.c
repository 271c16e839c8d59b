/* How results are judged, and memory that fails. What is wrong with a file is tested with its lines in
 * tests/scenario/test_contract.c. */
#include "trust/contract.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "support/failing_memory.h"

enum { TEXT_BYTES = 2048 };

#define TEXT(text) "'content':[{'type':'text','text':'" text "'}]"

static const struct contract_case {
    const char *expect; /* of one contract; "": none */
    const char *output; /* the tool's outputSchema; "": none */
    const char *result; /* "": there was none */
    uint64_t latency_ms;
    const char *failures; /* "": it holds */
} cases[] = {
    {"", "", "{" TEXT("a") "}", 5, ""},
    {"", "", "{" TEXT("broken") ",'isError':true}", 5, "isError is true: broken\n"},
    {"'isError':true", "", "{" TEXT("a") ",'isError':true}", 5, ""},
    {"'isError':true", "", "{}", 5, "isError is false\n"},
    {"", "", "", 5, "gone\n"},
    {"'latencyMs':5", "", "{}", 5, ""},
    {"'latencyMs':4", "", "{}", 5, "the answer took 5 ms, more than 4\n"},
    {"'bytes':2", "", "{}", 5, ""},
    {"'bytes':1", "", "{}", 5, "the result has 2 bytes, more than 1\n"},
    {"'text':'b'", "", "{'content':[{'text':'a'},{'text':'abc'}]}", 5, ""},
    {"'text':'b'", "", "{" TEXT("a") "}", 5, "no text block contains \"b\"\n"},
    {"", "{'type':'object'}", "{}", 5,
     "the tool has an outputSchema and the result no structuredContent\n"},
    {"'isError':true", "{'type':'object'}", "{'isError':true}", 5, ""},
    {"", "{'type':'object'}", "{'structuredContent':{}}", 5, ""},
    {"", "{'required':['a']}", "{'structuredContent':{}}", 5, "structuredContent: "},
    {"", "{'type':'nothing'}", "{'structuredContent':{}}", 5,
     "structuredContent cannot be checked"},
    {"'schema':{'required':['a']}", "", "{'a':1}", 5, ""},
    {"'schema':{'required':['a']}", "", "{}", 5, "result: "},
    {"'pointers':{'/a/0':{'type':'number'}}", "", "{'a':[1]}", 5, ""},
    {"'pointers':{'/a/0':{'type':'number'}}", "", "{'a':['x']}", 5, "/a/0: "},
    {"'pointers':{'/a/1':{}}", "", "{'a':[1]}", 5, "/a/1 is missing\n"},
};

static json_val parse(const char *text, char plain[TEXT_BYTES], json_doc *doc, arena *memory)
{
    int len = snprintf(plain, TEXT_BYTES, "%s", text);
    for (int i = 0; i < len; i++) {
        plain[i] = plain[i] == '\'' ? '"' : plain[i];
    }
    bool is_good = len > 0 && json_parse(doc, str_of(plain), NULL, memory, NULL) == BAY_OK;
    return is_good ? json_root(doc) : JSON_NONE;
}

static bay_err judge(const struct contract_case *of, buf *out)
{
    char texts[3][TEXT_BYTES];
    char file[TEXT_BYTES];
    json_doc docs[3];
    arena memory;
    trust_contracts contracts;
    json_val place;
    (void)snprintf(file, sizeof(file), "{'contracts':[{'tool':'a','expect':{%s}}]}", of->expect);
    arena_init(&memory, 4 << 20);
    json_val root = parse(file, texts[0], &docs[0], &memory);
    bay_err err = json_is(root, JSON_OBJECT) ? BAY_OK : BAY_ERR_NOMEM;
    err = err == BAY_OK ? trust_contracts_read(root, &memory, &contracts, &place, NULL) : err;
    if (err == BAY_OK) {
        const trust_outcome outcome = {
            .result = parse(of->result, texts[1], &docs[1], &memory),
            .failure = STR("gone"),
            .latency_ms = of->latency_ms,
        };
        err = trust_contract_judge(&contracts.at[0], &outcome,
                                   parse(of->output, texts[2], &docs[2], &memory), out);
    }
    arena_fini(&memory);
    return err;
}

static void results_are_judged(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        buf out;
        buf_init(&out, 1 << 16);
        assert_int_equal(judge(&cases[i], &out), BAY_OK);
        bay_str got = buf_view(&out);
        bool is_good = cases[i].failures[0] == '\0' ? got.len == 0
                                                    : str_starts(got, str_of(cases[i].failures));
        if (!is_good) {
            fail_msg("case %zu: %.*s", i, BAY_STR(got));
        }
        buf_fini(&out);
    }
}

static void memory_may_fail(void **state)
{
    (void)state;
    static const struct contract_case one = {
        "'text':'b','schema':{'type':'object'},'pointers':{'/a':{'type':'number'}}",
        "{'type':'object'}", "{'a':1,'structuredContent':{}," TEXT("b") "}", 5, ""};
    for (size_t at = 0; failing_memory_start(at); at++) {
        buf out;
        buf_init(&out, 1 << 16);
        bay_err err = judge(&one, &out);
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        buf_fini(&out);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_judged),
        cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "trust/lint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/str.h"
#include "support/failing_memory.h"

enum { TEXT_BYTES = 8192 };

#define TEN "0123456789 "
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define LONG                                                                                       \
    HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED        \
        HUNDRED HUNDRED HUNDRED

static const struct lint_case {
    lint_rule rule;
    bool is_found;
    bool is_whole; /* a recording or a card, not a tool */
    const char *text;
} cases[] = {
#define FOUND(rule, text) {LINT_##rule, true, false, text},
#define CLEAN(rule, text) {LINT_##rule, false, false, text},
#define FOUND_IN(rule, text) {LINT_##rule, true, true, text},
#define CLEAN_IN(rule, text) {LINT_##rule, false, true, text},
#include "lint_cases.def"
};

/* Lints the definitions of `text`, in which ' stands for ". */
static bay_err lint(const char *text, bool is_whole, trust_findings *out)
{
    static char plain[TEXT_BYTES];
    json_doc doc;
    arena memory;
    trust_definitions all;
    int len = snprintf(plain, sizeof(plain), is_whole ? "%s" : "{'tools':[%s]}", text);
    for (int i = 0; i < len; i++) {
        plain[i] = plain[i] == '\'' ? '"' : plain[i];
    }
    assert_true(len > 0 && (size_t)len < sizeof(plain));
    arena_init(&memory, 1 << 20);
    trust_definitions_init(&all, STR("s"));
    trust_findings_init(out);
    bay_err err = json_parse(&doc, str_of(plain), NULL, &memory, NULL);
    err = err == BAY_OK ? trust_definitions_add_object(&all, json_root(&doc), NULL) : err;
    trust_definitions_sort(&all);
    err = err == BAY_OK ? trust_lint_run(out, &all, NULL) : err;
    trust_definitions_fini(&all);
    arena_fini(&memory);
    return err;
}

static bool has(const trust_findings *found, lint_rule rule)
{
    for (size_t i = 0; i < found->count; i++) {
        if (str_eq(found->at[i].rule, str_of(lint_rules[rule].id))) {
            return true;
        }
    }
    return false;
}

static void rules_find_what_they_are_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        trust_findings found;
        assert_int_equal(lint(cases[i].text, cases[i].is_whole, &found), BAY_OK);
        if (has(&found, cases[i].rule) != cases[i].is_found) {
            fail_msg("%s: %s in %s", lint_rules[cases[i].rule].id,
                     cases[i].is_found ? "not found" : "found", cases[i].text);
        }
        trust_findings_fini(&found);
    }
}

static void each_rule_has_cases(void **state)
{
    (void)state;
    for (lint_rule rule = 0; rule < LINT_RULES; rule++) {
        bool has_found = rule == LINT_BUDGET_TOOLS || rule == LINT_BUDGET_TOKENS;
        bool has_clean = has_found;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
            has_found = has_found || (cases[i].rule == rule && cases[i].is_found);
            has_clean = has_clean || (cases[i].rule == rule && !cases[i].is_found);
        }
        if (!has_found || !has_clean) {
            fail_msg("%s has no case", lint_rules[rule].id);
        }
    }
}

static void findings_say_where(void **state)
{
    (void)state;
    trust_findings found;
    assert_int_equal(
        lint("{'name':'a','description':'Reads one file.','inputSchema':{'type':'object',"
             "'properties':{'x/y~':{'type':'string'}}},'outputSchema':{},"
             "'annotations':{'readOnlyHint':true}}",
             false, &found),
        BAY_OK);
    assert_int_equal(found.count, 1);
    assert_true(str_eq(found.at[0].pointer, STR("/inputSchema/properties/x~1y~0")));
    assert_true(str_eq(found.at[0].server, STR("s")));
    assert_true(str_eq(found.at[0].item, STR("a")));
    trust_findings_fini(&found);
}

static void a_deep_schema_ends(void **state)
{
    (void)state;
    enum { LEVELS = 60 };
    buf text;
    buf_init(&text, TEXT_BYTES);
    buf_lit(&text, "{'name':'a','inputSchema':");
    for (int i = 0; i < LEVELS; i++) {
        buf_lit(&text, "{'properties':{'x':");
    }
    buf_lit(&text, "true");
    for (int i = 0; i < LEVELS; i++) {
        buf_lit(&text, "}}");
    }
    buf_lit(&text, "}");
    buf_char(&text, '\0');
    trust_findings found;
    assert_int_equal(lint(text.at, false, &found), BAY_OK);
    trust_findings_fini(&found);
    buf_fini(&text);
}

/* Of a hostile server: as many required names as properties, and one that is none. */
static void many_required_names_are_looked_up_in_time(void **state)
{
    enum { NAMES = 100000, MOST_SECONDS = 5 };
    (void)state;
    json_doc doc;
    arena memory;
    trust_definitions all;
    trust_findings found;
    struct timespec start;
    struct timespec end;
    buf text;
    buf_init(&text, 16 << 20);
    buf_lit(&text, "{\"tools\":[{\"name\":\"a\",\"inputSchema\":{\"properties\":{\"p\":{}");
    for (int i = 0; i < NAMES; i++) {
        buf_printf(&text, ",\"%d\":{}", i);
    }
    buf_lit(&text, "},\"required\":[\"q\"");
    for (int i = 0; i < NAMES; i++) {
        buf_printf(&text, ",\"%d\"", i);
    }
    buf_lit(&text, "]}}]}");
    arena_init(&memory, 64 << 20);
    trust_definitions_init(&all, STR("s"));
    trust_findings_init(&found);
    assert_int_equal(json_parse(&doc, buf_view(&text), NULL, &memory, NULL), BAY_OK);
    assert_int_equal(trust_definitions_add_object(&all, json_root(&doc), NULL), BAY_OK);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    assert_int_equal(trust_lint_run(&found, &all, NULL), BAY_OK);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    assert_true(end.tv_sec - start.tv_sec < MOST_SECONDS);
    size_t unknown = 0;
    for (size_t i = 0; i < found.count; i++) {
        unknown += str_eq(found.at[i].rule, str_of(lint_rules[LINT_REQUIRED_UNKNOWN].id));
    }
    assert_int_equal(unknown, 1);
    trust_findings_fini(&found);
    trust_definitions_fini(&all);
    arena_fini(&memory);
    buf_fini(&text);
}

static void budgets(void **state)
{
    (void)state;
    static const struct {
        size_t tools;
        size_t tokens;
        size_t found;
    } rows[] = {{0, 0, 0}, {12, 8000, 0}, {13, 8000, 1}, {12, 8001, 1}, {13, 8001, 2}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        trust_findings found;
        trust_findings_init(&found);
        assert_int_equal(trust_lint_budget(&found, STR("s"), rows[i].tools, rows[i].tokens, NULL),
                         BAY_OK);
        assert_int_equal(found.count, rows[i].found);
        trust_findings_fini(&found);
    }
}

static void memory_that_fails_is_reported(void **state)
{
    (void)state;
    static const char text[] = "{'tools':[{'name':'a b','inputSchema':{'properties':{'path':{}}}},"
                               "{'name':'c','description':'Reads one file.'}],"
                               "'prompts':[{'name':'d','arguments':[{'name':'e'}]}]}";
    for (size_t at = 0; failing_memory_start(at); at++) {
        trust_findings found;
        bay_err err = lint(text, true, &found);
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        trust_findings_fini(&found);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_find_what_they_are_for),
        cmocka_unit_test(each_rule_has_cases),
        cmocka_unit_test(findings_say_where),
        cmocka_unit_test(a_deep_schema_ends),
        cmocka_unit_test(many_required_names_are_looked_up_in_time),
        cmocka_unit_test(budgets),
        cmocka_unit_test(memory_that_fails_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

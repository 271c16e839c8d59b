/* Definitions, findings, silences, relations, and how findings are written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "support/failing_memory.h"
#include "trust/relations.h"

typedef struct parsed {
    arena memory;
    json_doc doc;
} parsed;

static json_val parse(parsed *self, const char *text)
{
    arena_init(&self->memory, 64 << 20);
    assert_int_equal(json_parse(&self->doc, str_of(text), NULL, &self->memory, NULL), BAY_OK);
    return json_root(&self->doc);
}

static void load(parsed *from, trust_definitions *self, const char *server, const char *text)
{
    bay_diag diag = {0};
    trust_definitions_init(self, str_of(server));
    assert_int_equal(trust_definitions_add_object(self, parse(from, text), &diag), BAY_OK);
    trust_definitions_sort(self);
}

static void unload(parsed *from, trust_definitions *self)
{
    trust_definitions_fini(self);
    arena_fini(&from->memory);
}

/* ---- definitions ----------------------------------------------------------------------------- */

static void what_has_no_definitions_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[]", "1", "{}", "{\"tools\":1}", "{\"tool\":[]}", "{\"result\":{}}"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        parsed from;
        trust_definitions all;
        bay_diag diag = {0};
        trust_definitions_init(&all, STR("a"));
        assert_int_equal(trust_definitions_add_object(&all, parse(&from, texts[i]), &diag),
                         BAY_ERR_INVALID);
        assert_true(diag.text[0] != '\0');
        unload(&from, &all);
    }
}

static void definitions_are_sorted_and_found(void **state)
{
    (void)state;
    parsed from;
    trust_definitions all;
    load(&from, &all, "files",
         "{\"result\":{\"tools\":[{\"name\":\"b\"},{\"name\":\"a\\u0062\"},{\"name\":\"b\",\"x\":1}"
         ",{},7,"
         "{\"name\":3}],\"prompts\":[{\"name\":\"b\"}],\"resources\":[{\"uri\":\"file:///a\"}],"
         "\"resourceTemplates\":[{\"uriTemplate\":\"x{y}\"}],\"instructions\":\"Read on.\"}}");
    assert_int_equal(all.count, 6);
    assert_int_equal(all.left_out, 4);
    assert_int_equal(all.items[0].kind, TRUST_INSTRUCTIONS);
    const trust_item *found = trust_definitions_find(&all, TRUST_TOOL, STR("ab"));
    assert_non_null(found);
    found = trust_definitions_find(&all, TRUST_TOOL, STR("b"));
    assert_int_equal(json_count(found->value), 1); /* the first of two */
    assert_null(trust_definitions_find(&all, TRUST_TOOL, STR("c")));
    assert_null(trust_definitions_find(&all, TRUST_PROMPT, STR("ab")));
    unload(&from, &all);
}

static void a_card_is_one_definition(void **state)
{
    (void)state;
    parsed from;
    trust_definitions all;
    load(&from, &all, "", "{\"name\":\"x\",\"skills\":[]}");
    assert_int_equal(all.count, 1);
    assert_int_equal(all.items[0].kind, TRUST_CARD);
    unload(&from, &all);
}

/* ---- silences -------------------------------------------------------------------------------- */

static void silences_need_a_rule_and_a_reason(void **state)
{
    (void)state;
    static trust_silences silences;
    bay_diag diag = {0};
    silences.count = 0;
    assert_int_equal(trust_silences_add(&silences, STR("  "), STR("x"), &diag), BAY_ERR_SYNTAX);
    assert_int_equal(trust_silences_add(&silences, STR("secrecy"), STR("  "), &diag),
                     BAY_ERR_SYNTAX);
    for (size_t i = 0; i < TRUST_SILENCES; i++) {
        assert_int_equal(trust_silences_add(&silences, STR("a b"), STR("x"), &diag), BAY_OK);
    }
    assert_int_equal(trust_silences_add(&silences, STR("a b"), STR("x"), &diag), BAY_ERR_LIMIT);
}

static trust_finding finding_of(const char *rule, const char *item)
{
    return (trust_finding){.severity = SCAN_ERROR,
                           .rule = str_of(rule),
                           .server = STR("mail"),
                           .kind = TRUST_TOOL,
                           .item = str_of(item),
                           .pointer = STR("/description"),
                           .excerpt = STR("a <b> & \"c\"\x1b"),
                           .why = STR("it \xff is"),
                           .remedy = STR("mend it")};
}

static void silenced_findings_do_not_count(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        bool is_silenced;
    } cases[] = {
        {"secrecy", true},       {"secrecy read", true},    {"secrecy mail.read", true},
        {"sec* mail.*", true},   {"secrecy re?d", true},    {"secrecy files.read", false},
        {"secrets read", false}, {"secrecy reader", false}, {"secrecy Read", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        static trust_silences silences;
        trust_findings all;
        bay_diag diag = {0};
        silences.count = 0;
        trust_findings_init(&all);
        assert_int_equal(trust_silences_add(&silences, str_of(cases[i].key), STR(" why "), &diag),
                         BAY_OK);
        trust_finding one = finding_of("secrecy", "read");
        assert_int_equal(trust_findings_add(&all, &one, &silences), BAY_OK);
        if ((all.counts[SCAN_ERROR] == 0) != cases[i].is_silenced) {
            fail_msg("%s", cases[i].key);
        }
        assert_int_equal(all.silenced, cases[i].is_silenced);
        assert_int_equal(silences.at[0].used, cases[i].is_silenced);
        assert_int_equal(all.count, 1);
        trust_findings_fini(&all);
    }
}

static void findings_beyond_the_bound_are_counted(void **state)
{
    (void)state;
    trust_findings all;
    trust_finding one = finding_of("secrecy", "read");
    trust_findings_init(&all);
    for (size_t i = 0; i < TRUST_FINDINGS + 3; i++) {
        assert_int_equal(trust_findings_add(&all, &one, NULL), BAY_OK);
    }
    assert_int_equal(all.count, TRUST_FINDINGS);
    assert_int_equal(all.dropped, 3);
    assert_int_equal(all.counts[SCAN_ERROR], TRUST_FINDINGS + 3);
    trust_findings_fini(&all);
}

/* ---- relations ------------------------------------------------------------------------------- */

static void names_of_two_servers_are_compared(void **state)
{
    (void)state;
    parsed first;
    parsed second;
    trust_definitions one;
    trust_definitions other;
    trust_findings all;
    load(&first, &one, "a",
         "{\"tools\":[{\"name\":\"search\"},{\"name\":\"send_message\"},{\"name\":\"get_user\"}]}");
    load(
        &second, &other, "b",
        "{\"tools\":[{\"name\":\"search\"},{\"name\":\"send_messages\"},{\"name\":\"sendMessage\"},"
        "{\"name\":\"set_user\"}],\"prompts\":[{\"name\":\"search\"}]}");
    const trust_definitions *servers[] = {&one, &other};
    trust_findings_init(&all);
    assert_int_equal(trust_relations_add(&all, servers, 2, NULL), BAY_OK);
    trust_findings_sort(&all);
    assert_int_equal(all.count, 3);
    assert_string_equal(all.at[0].item.at, "search");
    assert_string_equal(all.at[0].rule.at, "shadowing");
    assert_string_equal(all.at[1].item.at, "sendMessage");
    assert_string_equal(all.at[1].rule.at, "look-alike");
    assert_string_equal(all.at[2].item.at, "send_messages");
    assert_string_equal(all.at[2].excerpt.at, "send_message of a");
    trust_findings_fini(&all);
    unload(&first, &one);
    unload(&second, &other);
}

/* Of a hostile server: as many names as there may be, all of one beginning, and one that is another server's. */
static void many_long_names_are_compared_in_time(void **state)
{
    enum { NAMES = 20000, MOST_SECONDS = 5 };
    (void)state;
    trust_definitions sets[2];
    trust_findings all;
    struct timespec start;
    struct timespec end;
    for (size_t i = 0; i < 2; i++) {
        trust_definitions_init(&sets[i], i == 0 ? STR("a") : STR("b"));
        for (size_t k = 0; k < NAMES; k++) {
            char text[120];
            bay_str name;
            int len = k == 0
                          ? snprintf(text, sizeof(text), "%s", i == 0 ? "copy_page" : "copypages")
                          : snprintf(text, sizeof(text), "%080d_%zu_%zu", 0, i, k);
            assert_int_equal(arena_dup(&sets[i].memory, (bay_str){text, (size_t)len}, &name),
                             BAY_OK);
            assert_int_equal(trust_definitions_add(&sets[i], TRUST_TOOL, name, JSON_NONE), BAY_OK);
        }
    }
    const trust_definitions *servers[] = {&sets[0], &sets[1]};
    trust_findings_init(&all);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    assert_int_equal(trust_relations_add(&all, servers, 2, NULL), BAY_OK);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    assert_true(end.tv_sec - start.tv_sec < MOST_SECONDS);
    assert_int_equal(all.count, 1);
    assert_string_equal(all.at[0].item.at, "copypages");
    assert_string_equal(all.at[0].excerpt.at, "copy_page of a");
    trust_findings_fini(&all);
    trust_definitions_fini(&sets[0]);
    trust_definitions_fini(&sets[1]);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void writing_shows_what_a_terminal_would_obey(void **state)
{
    (void)state;
    parsed from;
    trust_definitions of;
    trust_findings all;
    buf out;
    load(&from, &of, "mail", "{\"tools\":[{\"name\":\"read\"},{\"name\":\"send\"}]}");
    const trust_definitions *looked_at[] = {&of};
    trust_finding one = finding_of("secrecy", "read");
    trust_findings_init(&all);
    assert_int_equal(trust_findings_add(&all, &one, NULL), BAY_OK);
    buf_init(&out, 1 << 20);
    trust_findings_write_text(&all, &out);
    buf_char(&out, '\0');
    assert_non_null(strstr(out.at, "mail tool read\n  error   secrecy /description: it \\x{ff} is: "
                                   "\"a <b> & \"c\"\\u{1b}\". mend it\n1 error, 0 warnings"));
    buf_clear(&out);
    trust_findings_write_junit(&all, looked_at, 1, &out);
    buf_char(&out, '\0');
    assert_non_null(strstr(out.at, "tests=\"2\" failures=\"1\""));
    assert_non_null(strstr(out.at, "a &lt;b&gt; &amp; &quot;c&quot;\\u{1b}"));
    assert_non_null(strstr(out.at, "name=\"tool send\">\n    </testcase>"));
    buf_clear(&out);
    trust_findings_write_json(&all, &out);
    parsed again;
    buf_char(&out, '\0');
    json_val root = parse(&again, out.at);
    assert_true(
        json_str_eq(json_pointer(root, STR("/findings/0/excerpt")), STR("a <b> & \"c\"\x1b")));
    arena_fini(&again.memory);
    buf_clear(&out);
    trust_findings_write_sarif(&all, STR("1"), &out);
    buf_char(&out, '\0');
    root = parse(&again, out.at);
    assert_true(json_str_eq(
        json_pointer(root,
                     STR("/runs/0/results/0/locations/0/logicalLocations/0/fullyQualifiedName")),
        STR("mail/tool/read/description")));
    arena_fini(&again.memory);
    buf_fini(&out);
    trust_findings_fini(&all);
    unload(&from, &of);
}

static void memory_may_fail(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        arena memory;
        json_doc doc;
        trust_definitions one;
        trust_findings all;
        arena_init(&memory, 1 << 20);
        trust_findings_init(&all);
        trust_definitions_init(&one, STR("a"));
        bay_err err = json_parse(
            &doc, STR("{\"tools\":[{\"name\":\"send_\\u006dessage\"}],\"instructions\":\"x\"}"),
            NULL, &memory, NULL);
        err = err == BAY_OK ? trust_definitions_add_object(&one, json_root(&doc), NULL) : err;
        err = err == BAY_OK ? trust_definitions_add_text(&one, TRUST_INSTRUCTIONS, STR("y")) : err;
        trust_definitions_sort(&one);
        const trust_definitions *servers[] = {&one, &one};
        trust_finding finding = finding_of("secrecy", "read");
        err = err == BAY_OK ? trust_findings_add(&all, &finding, NULL) : err;
        err = err == BAY_OK ? trust_relations_add(&all, servers, 2, NULL) : err;
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        trust_definitions_fini(&one);
        trust_findings_fini(&all);
        arena_fini(&memory);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_no_definitions_is_refused),
        cmocka_unit_test(definitions_are_sorted_and_found),
        cmocka_unit_test(a_card_is_one_definition),
        cmocka_unit_test(silences_need_a_rule_and_a_reason),
        cmocka_unit_test(silenced_findings_do_not_count),
        cmocka_unit_test(findings_beyond_the_bound_are_counted),
        cmocka_unit_test(names_of_two_servers_are_compared),
        cmocka_unit_test(many_long_names_are_compared_in_time),
        cmocka_unit_test(writing_shows_what_a_terminal_would_obey),
        cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

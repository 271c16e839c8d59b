/* Lines of records: what callers write neither forges lines nor brings a credential into them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "evidence/record.h"

static char text[4096];

static void write_as(const call_context *call, call_outcome how,
                     void (*write)(const evidence_record *record, record_clock *clock, buf *out))
{
    evidence_record record;
    record_clock clock = {0};
    buf out = {.at = text, .cap = sizeof(text) - 1, .max = sizeof(text) - 1};
    evidence_record_make(call, how, STR("id-0-1"), 1795791256320, 1234567, &record);
    write(&record, &clock, &out);
    assert_int_equal(out.err, BAY_OK);
    text[out.len] = '\0';
    assert_null(strchr(text, '\n'));
}

static void a_line_for_people(void **state)
{
    call_context call = {.method = STR("tools/call"),
                         .shown = STR("s.t"),
                         .refused_for = CALL_DENIED,
                         .about = {.kind = POLICY_TOOL, .server = STR("s"), .name = STR("s.t")}};
    (void)state;
    write_as(&call, CALL_TURNED_AWAY, evidence_write_text);
    assert_string_equal(text, "2026-11-27T14:54:16.320Z info    access: tools/call s.t by anybody: "
                              "refused denied, 1.2 ms");
    call.shown = STR("");
    call.error_code = -32603;
    write_as(&call, CALL_ERROR, evidence_write_text);
    assert_string_equal(text, "2026-11-27T14:54:16.320Z info    access: tools/call of s by "
                              "anybody: error -32603, 1.2 ms");
}

static void names_of_callers_forge_nothing(void **state)
{
    call_context call = {.method = STR("resources/read"),
                         .shown = STR("a\n2026 forged\x1b[31m\xe2\x80\xae\"")};
    (void)state;
    write_as(&call, CALL_RESULT, evidence_write_text);
    assert_null(strchr(text, '\x1b'));
    assert_null(strstr(text, "\xe2\x80\xae"));
    write_as(&call, CALL_RESULT, evidence_write_json);
    assert_non_null(strstr(text, "\"name\":\"a\\n2026 forged\\u001b[31m"));
    assert_null(strchr(text, '\x1b'));
}

static void a_credential_in_a_uri_is_not_told(void **state)
{
    call_context call = {.method = STR("resources/read"),
                         .shown = STR("https://user:hunter2@host/x")};
    (void)state;
    write_as(&call, CALL_RESULT, evidence_write_text);
    assert_null(strstr(text, "hunter2"));
    write_as(&call, CALL_RESULT, evidence_write_json);
    assert_null(strstr(text, "hunter2"));
    assert_non_null(strstr(text, "\"name\":\"[redacted]\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_for_people),
        cmocka_unit_test(names_of_callers_forge_nothing),
        cmocka_unit_test(a_credential_in_a_uri_is_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

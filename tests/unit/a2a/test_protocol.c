/* The tables of A2A: names, states, versions, codes, and that the rows hold together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "a2a/types.h"
#include "base/check.h"

static void what_is_no_version_is_none(void **state)
{
    (void)state;
    static const char *const texts[] = {"1",     "0",     "1.",      ".3",     "0.3.",  "0.3.x",
                                        "v1.0",  "1.0a",  "1.0-rc1", "2.0",    "0.4",   "0.0",
                                        "1.00",  "01.0",  "1,0",     "1.0 .1", "1..0",  "-1.0",
                                        "1.0,1", "0.3 1", "one",     "1.0\n",  "1.0.1."};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (a2a_version_of(str_of(texts[i])) != A2A_VERSIONS) {
            fail_msg("%s counts as a version", texts[i]);
        }
    }
}

static void versions_are_trimmed_to_two_numbers(void **state)
{
    (void)state;
    assert_int_equal(a2a_version_of((bay_str){NULL, 0}), A2A_0_3);
    assert_int_equal(a2a_version_of(STR("")), A2A_0_3);
    assert_int_equal(a2a_version_of(STR("  \t")), A2A_0_3);
    assert_int_equal(a2a_version_of(STR("0.1")), A2A_0_1);
    assert_int_equal(a2a_version_of(STR("0.2.6")), A2A_0_2);
    assert_int_equal(a2a_version_of(STR("0.3.0")), A2A_0_3);
    assert_int_equal(a2a_version_of(STR(" 1.0 ")), A2A_1_0);
    assert_int_equal(a2a_version_of(STR("1.0.1")), A2A_1_0);
    for (size_t i = 0; i < A2A_VERSIONS; i++) {
        assert_int_equal(a2a_version_of(a2a_version_names[i]), i);
    }
}

static void states_are_found_by_their_whole_name(void **state)
{
    (void)state;
    assert_int_equal(a2a_state_of(STR("")), A2A_STATE_UNSPECIFIED);
    assert_int_equal(a2a_state_of(STR("working")), A2A_STATE_UNSPECIFIED);
    assert_int_equal(a2a_state_of(STR("TASK_STATE_CANCELLED")), A2A_STATE_UNSPECIFIED);
    assert_int_equal(a2a_state_of(STR("TASK_STATE_WORKING ")), A2A_STATE_UNSPECIFIED);
    for (size_t i = 0; i < A2A_STATES; i++) {
        assert_int_equal(a2a_state_of(a2a_state_names[i]), i);
        assert_false(a2a_state_is_terminal((a2a_state)i) && a2a_state_is_interrupted((a2a_state)i));
    }
    assert_true(a2a_state_is_terminal(A2A_REJECTED));
    assert_false(a2a_state_is_terminal(A2A_STATE_UNSPECIFIED));
    assert_true(a2a_state_is_interrupted(A2A_AUTH_REQUIRED));
}

static void unknown_codes_are_internal_errors(void **state)
{
    (void)state;
    static const int64_t codes[] = {0, 1, -1, -32000, -32099, -32768, 32001, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        assert_int_equal(a2a_error_of_code(A2A_1_0, codes[i]), A2A_E_INTERNAL);
        assert_int_equal(a2a_error_of_code(A2A_0_1, codes[i]), A2A_E_INTERNAL);
    }
}

static void the_oldest_version_numbers_some_errors_otherwise(void **state)
{
    (void)state;
    assert_int_equal(a2a_error_of_code(A2A_0_1, -32006), A2A_E_UNSUPPORTED_OPERATION);
    assert_int_equal(a2a_error_of_code(A2A_0_3, -32006), A2A_E_INVALID_AGENT_RESPONSE);
    assert_int_equal(a2a_error_of_code(A2A_0_1, -32007), A2A_E_UNAUTHENTICATED);
    assert_int_equal(a2a_error_of_code(A2A_0_3, -32007), A2A_E_EXTENDED_CARD_NOT_CONFIGURED);
    assert_int_equal(a2a_error_of_code(A2A_0_1, -32008), A2A_E_FORBIDDEN);
    assert_int_equal(a2a_error_of_code(A2A_0_1, -32010), A2A_E_BUSY);
    assert_int_equal(a2a_error_code(A2A_0_1, A2A_E_UNAUTHENTICATED), -32007);
    assert_int_equal(a2a_error_code(A2A_1_0, A2A_E_UNAUTHENTICATED), -32600);
    assert_int_equal(a2a_error_code(A2A_0_1, A2A_E_UNSUPPORTED_OPERATION), -32004);
    assert_int_equal(a2a_error_code(A2A_0_1, A2A_E_INVALID_AGENT_RESPONSE), -32603);
    assert_int_equal(a2a_error_code(A2A_0_1, A2A_E_EXTENDED_CARD_NOT_CONFIGURED), -32004);
    assert_int_equal(a2a_error_code(A2A_0_1, A2A_E_VERSION_NOT_SUPPORTED), -32004);
}

static void every_error_of_a2a_comes_back_from_its_code(void **state)
{
    (void)state;
    for (size_t i = A2A_NO_ERROR + 1; i < A2A_ERRORS; i++) {
        const a2a_error_row *row = &a2a_errors[i];
        assert_true(row->code <= -32000 && row->code >= -32768);
        assert_in_range(row->http, 400, 504);
        assert_in_range(row->grpc, 1, 16);
        assert_true(row->text.len > 0 && row->text.len < A2A_FAULT_BYTES);
        if (row->reason.len > 0) {
            assert_int_equal(a2a_error_of_code(A2A_1_0, row->code), i);
        }
    }
    assert_int_equal(a2a_errors[A2A_E_TASK_NOT_FOUND].grpc, 5);
    assert_true(str_eq(a2a_errors[A2A_E_TASK_NOT_FOUND].grpc_name, STR("NOT_FOUND")));
    assert_int_equal(a2a_errors[A2A_E_UNAUTHENTICATED].grpc, 16);
}

static void every_method_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < A2A_METHODS; i++) {
        const a2a_method_row *row = &a2a_methods[i];
        assert_true(row->name.len > 0);
        assert_in_range(row->request, 1, A2A_TYPES - 1);
        assert_in_range(row->response, 1, A2A_TYPES - 1);
        assert_int_equal((row->flags & A2A_METHOD_STREAM) != 0,
                         row->response == A2A_TYPE_STREAM_RESPONSE);
        for (size_t k = 0; k < i; k++) {
            assert_false(str_eq(row->name, a2a_methods[k].name));
            assert_true(row->name_0_3.len == 0 || !str_eq(row->name_0_3, a2a_methods[k].name_0_3));
        }
    }
}

static void a_fault_is_cut_between_characters(void **state)
{
    (void)state;
    assert_int_equal(a2a_fault_set(NULL, A2A_E_INTERNAL, "nobody listens"), BAY_ERR_PROTOCOL);
    static const char *const tails[] = {"x", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (size_t tail = 0; tail < ARRAY_LEN(tails); tail++) {
        size_t len = strlen(tails[tail]);
        for (size_t before = A2A_FAULT_BYTES - 8; before < A2A_FAULT_BYTES + 2; before++) {
            char text[2 * A2A_FAULT_BYTES] = "";
            memset(text, 'a', before);
            memcpy(text + before, tails[tail], len + 1);
            a2a_fault fault;
            assert_int_equal(a2a_fault_set(&fault, A2A_E_PARSE_ERROR, "%s", text),
                             BAY_ERR_PROTOCOL);
            assert_int_equal(fault.error, A2A_E_PARSE_ERROR);
            size_t whole = before + len < A2A_FAULT_BYTES ? before + len
                           : before < A2A_FAULT_BYTES     ? before
                                                          : A2A_FAULT_BYTES - 1;
            assert_int_equal(strlen(fault.text), whole);
        }
    }
}

static void forms_follow_from_version_and_binding(void **state)
{
    (void)state;
    assert_int_equal(a2a_form_of(A2A_1_0, A2A_GRPC), A2A_FORM_1_0);
    assert_int_equal(a2a_form_of(A2A_0_2, A2A_JSONRPC), A2A_FORM_0_3);
    assert_int_equal(a2a_form_of(A2A_0_3, A2A_HTTP_JSON), A2A_FORM_0_3_PROTO);
    assert_int_equal(a2a_form_of(A2A_0_1, A2A_JSONRPC), A2A_FORM_0_1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_version_is_none),
        cmocka_unit_test(versions_are_trimmed_to_two_numbers),
        cmocka_unit_test(states_are_found_by_their_whole_name),
        cmocka_unit_test(unknown_codes_are_internal_errors),
        cmocka_unit_test(the_oldest_version_numbers_some_errors_otherwise),
        cmocka_unit_test(every_error_of_a2a_comes_back_from_its_code),
        cmocka_unit_test(every_method_has_a_name_of_its_own),
        cmocka_unit_test(a_fault_is_cut_between_characters),
        cmocka_unit_test(forms_follow_from_version_and_binding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Numbers: what is not exactly representable is refused, never guessed. */
#include "case.h"

#include <float.h>
#include <locale.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "support/skipped.h"
#include "json/writer.h"

#define ZEROS_50 "00000000000000000000000000000000000000000000000000"

typedef struct number_case {
    const char *text;
    bay_err err_int;
    int64_t number;
    bay_err err_uint;
    uint64_t positive;
    bool is_integer;
} number_case;

static const number_case cases[] = {
    {"0.5", BAY_ERR_RANGE, 0, BAY_ERR_RANGE, 0, false},
    {"1e-1", BAY_ERR_RANGE, 0, BAY_ERR_RANGE, 0, false},
    {"1e-9999999999999999999999", BAY_ERR_RANGE, 0, BAY_ERR_RANGE, 0, false},
    {"12345678901234567890123", BAY_ERR_RANGE, 0, BAY_ERR_RANGE, 0, true},
    {"1e400", BAY_ERR_RANGE, 0, BAY_ERR_RANGE, 0, true},
    {"1e9999999999999999999999", BAY_ERR_RANGE, 0, BAY_ERR_RANGE, 0, true},
    {"0.1000", BAY_ERR_RANGE, 0, BAY_ERR_RANGE, 0, false},
    {"9007199254740993.5", BAY_ERR_RANGE, 0, BAY_ERR_RANGE, 0, false},
    {"9223372036854775808", BAY_ERR_RANGE, 0, BAY_OK, 9223372036854775808U, true},
    {"18446744073709551615", BAY_ERR_RANGE, 0, BAY_OK, UINT64_MAX, true},
    {"18446744073709551616", BAY_ERR_RANGE, 0, BAY_ERR_RANGE, 0, true},
    {"18446744073709551615.0", BAY_ERR_RANGE, 0, BAY_OK, UINT64_MAX, true},
    {"20000000000000000000", BAY_ERR_RANGE, 0, BAY_ERR_RANGE, 0, true},
    {"-9223372036854775809", BAY_ERR_RANGE, 0, BAY_ERR_RANGE, 0, true},
    {"-9223372036854775808", BAY_OK, INT64_MIN, BAY_ERR_RANGE, 0, true},
    {"-1", BAY_OK, -1, BAY_ERR_RANGE, 0, true},
    {"9223372036854775807", BAY_OK, INT64_MAX, BAY_OK, INT64_MAX, true},
    {"9007199254740993", BAY_OK, 9007199254740993, BAY_OK, 9007199254740993U, true},
    {"0", BAY_OK, 0, BAY_OK, 0, true},
    {"-0", BAY_OK, 0, BAY_OK, 0, true},
    {"-0.000e99999999999999999999", BAY_OK, 0, BAY_OK, 0, true},
    {"1.0", BAY_OK, 1, BAY_OK, 1, true},
    {"10e-1", BAY_OK, 1, BAY_OK, 1, true},
    {"1e2", BAY_OK, 100, BAY_OK, 100, true},
    {"1E+18", BAY_OK, 1000000000000000000, BAY_OK, 1000000000000000000U, true},
    {"1e19", BAY_ERR_RANGE, 0, BAY_OK, 10000000000000000000U, true},
    {"1.25e2", BAY_OK, 125, BAY_OK, 125, true},
    {"1.25e1", BAY_ERR_RANGE, 0, BAY_ERR_RANGE, 0, false},
    {"0.000125e6", BAY_OK, 125, BAY_OK, 125, true},
    {"0.0001200e4", BAY_ERR_RANGE, 0, BAY_ERR_RANGE, 0, false},
    {"100e-2", BAY_OK, 1, BAY_OK, 1, true},
    {"1" ZEROS_50 "e-50", BAY_OK, 1, BAY_OK, 1, true},
    {"0." ZEROS_50 "7e51", BAY_OK, 7, BAY_OK, 7, true},
    {"1.0" ZEROS_50 "1", BAY_ERR_RANGE, 0, BAY_ERR_RANGE, 0, false},
};

static void integers_are_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        parsed p;
        json_val value = must_parse(&p, cases[i].text);
        int64_t number = 4711;
        uint64_t positive = 4711;
        bay_err err = json_int64(value, &number);
        if (err != cases[i].err_int) {
            print_error("%s: %s\n", cases[i].text, bay_err_text(err));
        }
        assert_int_equal(err, cases[i].err_int);
        assert_int_equal(number, err == BAY_OK ? cases[i].number : 4711);
        err = json_uint64(value, &positive);
        assert_int_equal(err, cases[i].err_uint);
        assert_int_equal(positive, err == BAY_OK ? cases[i].positive : 4711);
        assert_int_equal(json_is_integer(value), cases[i].is_integer);
        assert_true(str_eq(json_raw(value), str_of(cases[i].text)));
        forget(&p);
    }
}

static void other_kinds_are_no_numbers(void **state)
{
    (void)state;
    parsed p;
    json_val root = must_parse(&p, "[\"1\",null,true,[],{}]");
    for (size_t i = 0; i < 5; i++) {
        int64_t number;
        uint64_t positive;
        double real;
        assert_int_equal(json_int64(json_item(root, i), &number), BAY_ERR_TYPE);
        assert_int_equal(json_uint64(json_item(root, i), &positive), BAY_ERR_TYPE);
        assert_int_equal(json_double(json_item(root, i), &real), BAY_ERR_TYPE);
        assert_false(json_is_integer(json_item(root, i)));
    }
    forget(&p);
}

static uint64_t bits_of(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof(bits));
    return bits;
}

static void doubles_round_to_nearest(void **state)
{
    (void)state;
    static const char *const same[] = {
        "0",
        "-0",
        "1",
        "-1.5",
        "0.1",
        "0.1000",
        "123456.789e3",
        "9007199254740993",
        "18446744073709551615",
        "1e22",
        "1e23",
        "123456789012345e22",
        "8.41e21",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "2.2250738585072011e-308",
        "2.2250738585072014e-308",
        "4.9406564584124654e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "1e-400",
        "1e-99999999999999999999999",
        "0e99999999999999999999999",
        "0.000000000000000000000000000000000000000000001e45",
        "9007199254740992.99999999999999999999999999999999999999999999999999999999999",
        "9007199254740993.00000000000000000000000000000000000000000000000000000000001",
        "1" ZEROS_50 ZEROS_50 "e-100",
    };
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        parsed p;
        json_val value = must_parse(&p, same[i]);
        double number = 0.25;
        assert_int_equal(json_double(value, &number), BAY_OK);
        assert_int_equal(bits_of(number), bits_of(strtod(same[i], NULL)));
        forget(&p);
    }
}

static void doubles_that_overflow_are_refused(void **state)
{
    (void)state;
    static const char *const large[] = {"1e400",
                                        "-1e400",
                                        "1e309",
                                        "1.7976931348623159e308",
                                        "1e99999999999999999999",
                                        "1" ZEROS_50 "e260"};
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
        parsed p;
        json_val value = must_parse(&p, large[i]);
        double number = 0.25;
        assert_int_equal(json_double(value, &number), BAY_ERR_RANGE);
        assert_true(number == 0.25);
        forget(&p);
    }
}

/* Halfway between 1 and the next double, in 53 digits; one digit more, a thousand places on,
 * decides. */
static void far_digits_decide_a_tie(void **state)
{
    (void)state;
    static const char half[] = "1.00000000000000011102230246251565404236316680908203125";
    char text[2048];
    memset(text, '0', sizeof(text));
    memcpy(text, half, sizeof(half) - 1);
    text[2000] = '1';
    text[2001] = '\0';
    parsed p;
    double number;
    assert_int_equal(json_double(must_parse(&p, text), &number), BAY_OK);
    assert_true(number == 1 + DBL_EPSILON);
    forget(&p);
    text[2000] = '0';
    assert_int_equal(json_double(must_parse(&p, text), &number), BAY_OK);
    assert_true(number == 1);
    forget(&p);
}

static int run_shell(const char *command)
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* Makes one with glibc's own tool, in a folder of its own, and sets it. */
static bool set_locale_with_comma(void)
{
    char folder[] = "/tmp/patchbay-locale.XXXXXX";
    char command[512];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(command, sizeof(command),
                   "printf 'LC_NUMERIC\\ndecimal_point \",\"\\nthousands_sep \".\"\\ngrouping "
                   "3;3\\nEND LC_NUMERIC\\n' >%s/source && localedef -c -i %s/source %s/comma "
                   ">%s/said 2>&1",
                   folder, folder, folder, folder);
    (void)run_shell(command); /* it warns of all that the source does not define */
    assert_int_equal(setenv("LOCPATH", folder, 1), 0);
    bool is_set = setlocale(LC_NUMERIC, "comma") != NULL;
    assert_int_equal(unsetenv("LOCPATH"), 0);
    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(run_shell(command), 0);
    return is_set;
}

static void the_locale_has_no_say(void **state)
{
    (void)state;
    if (!set_locale_with_comma()) {
        SKIP("localedef made no locale with a decimal comma: that doubles ignore it was not shown");
    }
    char text[32];
    (void)snprintf(text, sizeof(text), "%.1f", 1.5);
    assert_string_equal(text, "1,5");
    parsed p;
    double number;
    assert_int_equal(json_double(must_parse(&p, "1.2345678901234567e-7"), &number), BAY_OK);
    assert_true(number == 1.2345678901234567e-7);
    forget(&p);
    buf out;
    json_writer writer;
    buf_init(&out, 64);
    json_writer_init(&writer, &out);
    json_put_double(&writer, 1.5);
    assert_true(str_eq(buf_view(&out), STR("1.5")));
    buf_fini(&out);
    setlocale(LC_NUMERIC, "C");
}

static uint64_t hash_of(const char *text)
{
    parsed p;
    uint64_t hash = json_hash(must_parse(&p, text), 7);
    forget(&p);
    return hash;
}

static void equality_is_mathematical(void **state)
{
    (void)state;
    static const char *const equal[][2] = {
        {"1", "1.0"},
        {"1", "1e0"},
        {"1", "10e-1"},
        {"1", "0.1E+1"},
        {"100", "1e2"},
        {"0", "-0"},
        {"0", "0.000e77"},
        {"0", "-0e-9"},
        {"1e400", "10e399"},
        {"1.50", "15e-1"},
        {"-2.5", "-0.25e1"},
        {"0.001", "1e-3"},
        {"123.456", "123456e-3"},
        {"10203.0405", "1.02030405e4"},
        {"1e00000000000000000000000000002", "100"},
        {"1e99999999999999999999999999999999", "10e99999999999999999999999999999998"},
        {"1e100000000000000000000000000000000", "10e99999999999999999999999999999999"},
        {"1e-100000000000000000000000000000000", "0.1e-99999999999999999999999999999999"},
    };
    static const char *const different[][2] = {
        {"1", "2"},
        {"1", "-1"},
        {"1", "10"},
        {"0", "1e-400"},
        {"0.1", "0.01"},
        {"12", "1.3e1"},
        {"12", "123"},
        {"9007199254740993", "9007199254740992"},
        {"1e400", "1e401"},
        {"1e5", "1e-5"},
        {"1e99999999999999999999999999999999", "1e99999999999999999999999999999998"},
        {"1e99999999999999999999999999999999", "1e-99999999999999999999999999999999"},
        {"12345678901234567890123", "12345678901234567890124"},
    };
    for (size_t i = 0; i < sizeof(equal) / sizeof(equal[0]); i++) {
        assert_true(json_number_eq(str_of(equal[i][0]), str_of(equal[i][1])));
        assert_true(json_number_eq(str_of(equal[i][1]), str_of(equal[i][0])));
        assert_int_equal(json_number_cmp(str_of(equal[i][0]), str_of(equal[i][1])), 0);
        assert_int_equal(hash_of(equal[i][0]), hash_of(equal[i][1]));
    }
    for (size_t i = 0; i < sizeof(different) / sizeof(different[0]); i++) {
        assert_false(json_number_eq(str_of(different[i][0]), str_of(different[i][1])));
        assert_false(json_number_eq(str_of(different[i][1]), str_of(different[i][0])));
        assert_true(json_number_eq(str_of(different[i][0]), str_of(different[i][0])));
        assert_int_not_equal(json_number_cmp(str_of(different[i][0]), str_of(different[i][1])), 0);
    }
}

static void order_is_mathematical(void **state)
{
    (void)state;
    static const char *const ascending[] = {
        "-1e99999999999999999999999999999999",
        "-1e400",
        "-12345678901234567890124",
        "-12345678901234567890123",
        "-10.5",
        "-10",
        "-1e-400",
        "0",
        "1e-99999999999999999999999999999999",
        "0.0999",
        "0.1",
        "0.10000000000000000000000001",
        "1",
        "9.99",
        "1.0e1",
        "18446744073709551600",
        "18446744073709551615",
        "972783798187987123879878123.18878137",
        "972783798187987123879878123.188781371",
        "1e400",
        "1e99999999999999999999999999999998",
        "1e99999999999999999999999999999999",
    };
    const size_t count = sizeof(ascending) / sizeof(ascending[0]);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            int order = json_number_cmp(str_of(ascending[i]), str_of(ascending[j]));
            assert_int_equal(order < 0, i < j);
            assert_int_equal(order > 0, i > j);
        }
    }
}

static void multiples_are_exact(void **state)
{
    (void)state;
    static const struct {
        const char *number;
        const char *step;
        bay_err err;
        bool is_multiple;
    } multiples[] = {
        {"1", "0", BAY_ERR_RANGE, false},
        {"1", "-1", BAY_ERR_RANGE, false},
        {"1", "1234567890123456789", BAY_ERR_RANGE, false},
        {"7", "2", BAY_OK, false},
        {"0.00751", "0.0001", BAY_OK, false},
        {"1e-3", "1e-2", BAY_OK, false},
        {"12345678901234567890123", "2", BAY_OK, false},
        {"1e400", "3", BAY_OK, false},
        {"1e-99999999999999999999", "1", BAY_OK, false},
        {"0", "3", BAY_OK, true},
        {"-8", "2", BAY_OK, true},
        {"0.0075", "0.0001", BAY_OK, true},
        {"19.99", "0.01", BAY_OK, true},
        {"1e308", "0.123456789", BAY_OK, false},
        {"1e308", "0.5", BAY_OK, true},
        {"12391239123", "1e-8", BAY_OK, true},
        {"12345678901234567890122", "2", BAY_OK, true},
        {"1e99999999999999999999", "1e-99999999999999999999", BAY_OK, true},
        {"1e99999999999999999999", "7", BAY_OK, false},
        {"1.5", "0.5", BAY_OK, true},
        {"999999999999999999000000000000000000", "999999999999999999", BAY_OK, true},
    };
    for (size_t i = 0; i < sizeof(multiples) / sizeof(multiples[0]); i++) {
        bool is_multiple = false;
        assert_int_equal(json_number_is_multiple(str_of(multiples[i].number),
                                                 str_of(multiples[i].step), &is_multiple),
                         multiples[i].err);
        assert_int_equal(is_multiple, multiples[i].is_multiple);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(other_kinds_are_no_numbers),
        cmocka_unit_test(doubles_round_to_nearest),
        cmocka_unit_test(doubles_that_overflow_are_refused),
        cmocka_unit_test(far_digits_decide_a_tie),
        cmocka_unit_test(the_locale_has_no_say),
        cmocka_unit_test(equality_is_mathematical),
        cmocka_unit_test(order_is_mathematical),
        cmocka_unit_test(multiples_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* gRPC on the wire: frames at any split, status text, time-outs, details. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../support/failing_memory.h"
#include "base/str.h"
#include "wire/grpc_frame.h"

static void test_frames_that_are_refused(void **state)
{
    (void)state;
    grpc_reader reader;
    size_t used = 0;
    bay_str out;
    grpc_reader_init(&reader, 10);
    assert_int_equal(grpc_reader_next(&reader, (bay_str){"\x01\0\0\0\0", 5}, &used, &out),
                     BAY_ERR_UNSUPPORTED);
    grpc_reader_fini(&reader);
    grpc_reader_init(&reader, 10);
    assert_int_equal(grpc_reader_next(&reader, (bay_str){"\x02\0\0\0\0", 5}, &used, &out),
                     BAY_ERR_PROTOCOL);
    grpc_reader_fini(&reader);
    grpc_reader_init(&reader, 10);
    assert_int_equal(grpc_reader_next(&reader, (bay_str){"\0\0\0\0\x0b", 5}, &used, &out),
                     BAY_ERR_LIMIT);
    grpc_reader_fini(&reader);
    grpc_reader_init(&reader, 10);
    assert_int_equal(grpc_reader_next(&reader, (bay_str){"\0\xff\xff\xff\xff", 5}, &used, &out),
                     BAY_ERR_LIMIT);
    grpc_reader_fini(&reader);
    /* Cut: inside a head, inside a message. */
    grpc_reader_init(&reader, 10);
    assert_int_equal(grpc_reader_next(&reader, (bay_str){"\0\0", 2}, &used, &out), BAY_ERR_AGAIN);
    assert_false(grpc_reader_is_between(&reader));
    assert_int_equal(grpc_reader_next(&reader,
                                      (bay_str){"\0\0\x03"
                                                "ab",
                                                5},
                                      &used, &out),
                     BAY_ERR_AGAIN);
    assert_false(grpc_reader_is_between(&reader));
    grpc_reader_fini(&reader);
}

/* Feeds three messages in steps of `step` bytes. */
static void feed(size_t step)
{
    static const char wire[] = "\0\0\0\0\x03"
                               "one"
                               "\0\0\0\0\0"
                               "\0\0\0\0\x05"
                               "three";
    const size_t len = sizeof(wire) - 1;
    static const char *const expected[] = {"one", "", "three"};
    grpc_reader reader;
    size_t seen = 0;
    grpc_reader_init(&reader, 5);
    for (size_t at = 0; at < len; at += step) {
        bay_str bytes = {wire + at, len - at < step ? len - at : step};
        for (;;) {
            size_t used = 0;
            bay_str out;
            bay_err err = grpc_reader_next(&reader, bytes, &used, &out);
            bytes = str_from(bytes, used);
            if (err == BAY_ERR_AGAIN) {
                assert_int_equal(bytes.len, 0);
                break;
            }
            assert_int_equal(err, BAY_OK);
            assert_true(seen < 3);
            assert_true(str_eq(out, str_of(expected[seen])));
            seen++;
        }
    }
    assert_int_equal(seen, 3);
    assert_true(grpc_reader_is_between(&reader));
    grpc_reader_fini(&reader);
}

static void test_frames_at_any_split(void **state)
{
    (void)state;
    for (size_t step = 1; step < 25; step++) {
        feed(step);
    }
}

static void test_frame_head(void **state)
{
    (void)state;
    char head[GRPC_FRAME_HEAD];
    assert_true(grpc_frame_head(head, 0x01020304));
    assert_memory_equal(head, "\0\x01\x02\x03\x04", 5);
    assert_true(grpc_frame_head(head, UINT32_MAX));
    assert_false(grpc_frame_head(head, (size_t)UINT32_MAX + 1));
}

static void check_message(const char *text, const char *value)
{
    buf out;
    buf_init(&out, 4096);
    grpc_message_encode(&out, str_of(text));
    assert_true(str_eq(buf_view(&out), str_of(value)));
    buf back;
    buf_init(&back, 4096);
    grpc_message_decode(&back, buf_view(&out));
    assert_true(str_eq(buf_view(&back), str_of(text)));
    buf_fini(&out);
    buf_fini(&back);
}

static void test_message(void **state)
{
    (void)state;
    check_message("", "");
    check_message("no such task: \"x\"", "no such task: \"x\"");
    check_message("100%", "100%25");
    check_message("\xc3\xa9t\xc3\xa9", "%C3%A9t%C3%A9");
    check_message(" edges ", "%20edges%20");

    buf out;
    buf_init(&out, 1 << 16);
    grpc_message_encode(&out, STR("a\r\nb"));
    assert_true(str_eq(buf_view(&out), STR("a%0D%0Ab")));
    buf_clear(&out);
    grpc_message_decode(&out, STR("a%zz%4%41%0A%ff%c3"));
    assert_true(str_eq(buf_view(&out), STR("a%zz%4A???")));
    buf_clear(&out);
    char many[3000];
    for (size_t i = 0; i < sizeof(many); i++) {
        many[i] = i % 2 == 0 ? '\xc3' : '\xa9';
    }
    grpc_message_encode(&out, (bay_str){many, sizeof(many)});
    assert_true(out.len <= GRPC_MESSAGE_BYTES);
    assert_int_equal(out.len % 6, 0); /* no half of a character */
    assert_true(out.len > GRPC_MESSAGE_BYTES - 10);
    memset(many, 'a', sizeof(many));
    many[0] = many[GRPC_MESSAGE_BYTES - 5] = many[GRPC_MESSAGE_BYTES - 1] = ' ';
    buf_clear(&out);
    grpc_message_encode(&out, (bay_str){many, sizeof(many)});
    assert_true(out.len <= GRPC_MESSAGE_BYTES);
    buf_fini(&out);
}

static void test_timeout(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    "1",          "m",    "1x", "1 m", "-1m",
                                      "1mm", "123456789m", "1.5S", "m1", "0x1S"};
    uint32_t ms = 7;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(grpc_timeout_read(str_of(bad[i]), &ms), BAY_ERR_SYNTAX);
    }
    assert_int_equal(ms, 7);
    static const struct {
        const char *text;
        uint32_t ms;
    } good[] = {{"1H", 3600000},
                {"2M", 120000},
                {"3S", 3000},
                {"4m", 4},
                {"1u", 1},
                {"1001u", 2},
                {"5n", 1},
                {"0m", 1},
                {"99999999H", UINT32_MAX},
                {"99999999m", 99999999}};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(grpc_timeout_read(str_of(good[i].text), &ms), BAY_OK);
        assert_int_equal(ms, good[i].ms);
    }
    buf out;
    buf_init(&out, 100);
    grpc_timeout_write(&out, 1500);
    grpc_timeout_write(&out, UINT32_MAX);
    assert_true(str_eq(buf_view(&out), STR("1500m4294967S")));
    buf_fini(&out);
}

static void test_codes(void **state)
{
    (void)state;
    assert_true(str_eq(grpc_code_name(GRPC_NOT_FOUND), STR("NOT_FOUND")));
    assert_int_equal(GRPC_UNAUTHENTICATED, 16);
    assert_true(str_eq(grpc_code_name(17), STR("UNKNOWN")));
    assert_true(str_eq(grpc_code_name(-1), STR("UNKNOWN")));
    assert_int_equal(grpc_code_of_http(503), GRPC_UNAVAILABLE);
    assert_int_equal(grpc_code_of_http(404), GRPC_UNIMPLEMENTED);
    assert_int_equal(grpc_code_of_http(200), GRPC_UNKNOWN);
}

/* A Status with code 5, message "m" and an ErrorInfo, as protobuf writes it. */
#define TYPE "type.googleapis.com/google.rpc.ErrorInfo"

static void test_details(void **state)
{
    (void)state;
    grpc_status status = {.code = GRPC_NOT_FOUND,
                          .message = STR("m"),
                          .reason = STR("TASK_NOT_FOUND"),
                          .domain = STR("a2a-protocol.org"),
                          .metadata = {{STR("taskId"), STR("t-1")}},
                          .metadata_count = 1};
    buf out;
    arena memory;
    grpc_status read;
    buf_init(&out, 4096);
    arena_init(&memory, 1 << 20);
    grpc_details_write(&out, &status);
    assert_int_equal(out.err, BAY_OK);
    assert_true(str_find(buf_view(&out), '=') == out.len);
    assert_int_equal(grpc_details_read(buf_view(&out), &memory, &read), BAY_OK);
    assert_int_equal(read.code, 5);
    assert_true(str_eq(read.message, STR("m")));
    assert_true(str_eq(read.reason, STR("TASK_NOT_FOUND")));
    assert_true(str_eq(read.domain, STR("a2a-protocol.org")));
    assert_int_equal(read.metadata_count, 1);
    assert_true(str_eq(read.metadata[0].name, STR("taskId")));
    assert_true(str_eq(read.metadata[0].value, STR("t-1")));

    buf_clear(&out);
    grpc_status bare = {.code = GRPC_INTERNAL, .message = STR("x")};
    grpc_details_write(&out, &bare);
    assert_true(str_eq(buf_view(&out), STR("CA0SAXg"))); /* 08 0d 12 01 78 */
    assert_int_equal(grpc_details_read(STR("CA0SAXg="), &memory, &read), BAY_OK);
    assert_int_equal(read.code, 13);
    assert_int_equal(read.reason.len, 0);
    assert_int_equal(grpc_details_read(STR("CA0SAXg, CA0"), &memory, &read), BAY_OK);
    assert_int_equal(grpc_details_read(STR(""), &memory, &read), BAY_OK);
    assert_int_equal(read.code, 0);

    static const char *const bad[] = {"!", "CA0SAX", "CA0SBXg", "CP", "AA", "CwA", "Gv////8P"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(grpc_details_read(str_of(bad[i]), &memory, &read), BAY_ERR_SYNTAX);
    }
    char *large = malloc(20000);
    memset(large, 'A', 20000);
    assert_int_equal(grpc_details_read((bay_str){large, 20000}, &memory, &read), BAY_ERR_LIMIT);
    free(large);
    buf_fini(&out);
    arena_fini(&memory);
}

static void test_every_lack_of_memory(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        grpc_status status = {.code = 5,
                              .reason = STR("R"),
                              .domain = STR("d"),
                              .metadata = {{STR("k"), STR("v")}},
                              .metadata_count = 1};
        buf out;
        arena memory;
        buf_init(&out, 4096);
        arena_init(&memory, 1 << 20);
        grpc_details_write(&out, &status);
        if (out.err == BAY_OK) {
            grpc_status read;
            bay_err err = grpc_details_read(buf_view(&out), &memory, &read);
            assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        } else {
            assert_int_equal(out.err, BAY_ERR_NOMEM);
        }
        buf_fini(&out);
        arena_fini(&memory);
        grpc_reader reader;
        grpc_reader_init(&reader, 100);
        size_t used = 0;
        bay_str message;
        bay_err err = grpc_reader_next(&reader,
                                       (bay_str){"\0\0\0\0\x03"
                                                 "a",
                                                 6},
                                       &used, &message);
        assert_true(err == BAY_ERR_AGAIN || err == BAY_ERR_NOMEM);
        grpc_reader_fini(&reader);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_that_are_refused),
        cmocka_unit_test(test_frames_at_any_split),
        cmocka_unit_test(test_frame_head),
        cmocka_unit_test(test_message),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_details),
        cmocka_unit_test(test_every_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Views into what came back, whatever it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/str.h"
#include "sdk/client_parts.h"
#include "support/failing_memory.h"

/* As the engine gives an outcome: the document is gone when this returns. */
static bay_err reply_new(const char *text, bay_reply **out)
{
    arena memory;
    json_doc doc;
    arena_init(&memory, 1 << 20);
    bay_err err = json_parse(&doc, str_of(text), NULL, &memory, NULL);
    err = err == BAY_OK ? sdk_reply_new(json_root(&doc), out) : err;
    arena_fini(&memory);
    return err;
}

static bay_reply *reply_of(const char *text)
{
    bay_reply *reply = NULL;
    assert_int_equal(reply_new(text, &reply), BAY_OK);
    return reply;
}

static void assert_str(bay_str got, const char *expected)
{
    if (!str_eq(got, str_of(expected))) {
        fail_msg("\"%.*s\" is not \"%s\"", BAY_STR(got), expected);
    }
}

static void what_is_missing_is_no_reply(void **state)
{
    (void)state;
    bay_reply *reply = NULL;
    assert_int_equal(sdk_reply_new(JSON_NONE, &reply), BAY_ERR_SYNTAX);
    assert_null(reply);
    bay_reply_free(NULL);
}

static void wrong_types_read_as_absent(void **state)
{
    (void)state;
    static const char *const odd[] = {
        "{}",
        "[]",
        "7",
        "{\"content\":7}",
        "{\"content\":{}}",
        "{\"content\":null,\"isError\":\"true\"}",
        "{\"completion\":[1]}",
        "{\"completion\":{\"values\":{}}}",
        "{\"messages\":\"x\",\"contents\":false}",
    };
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        bay_reply *reply = reply_of(odd[i]);
        assert_int_equal(bay_reply_count(reply), 0);
        assert_false(bay_reply_is_error(reply));
        assert_int_equal(bay_reply_kind(reply, 0), BAY_CONTENT_NONE);
        assert_str(bay_reply_text(reply, 0), "");
        assert_str(bay_reply_structured(reply), "");
        assert_str(bay_reply_json(reply), odd[i]);
        bay_reply_free(reply);
    }
    bay_reply *reply =
        reply_of("{\"content\":[7,{\"type\":\"text\",\"text\":7},"
                 "{\"type\":\"resource\",\"resource\":\"x\"},{\"type\":\"new\"},null]}");
    assert_int_equal(bay_reply_count(reply), 5);
    assert_int_equal(bay_reply_kind(reply, 0), BAY_CONTENT_OTHER);
    assert_int_equal(bay_reply_kind(reply, 1), BAY_CONTENT_TEXT);
    assert_int_equal(bay_reply_kind(reply, 2), BAY_CONTENT_RESOURCE);
    assert_int_equal(bay_reply_kind(reply, 3), BAY_CONTENT_OTHER);
    assert_int_equal(bay_reply_kind(reply, 5), BAY_CONTENT_NONE);
    for (size_t i = 0; i < 6; i++) {
        assert_str(bay_reply_text(reply, i), "");
        assert_str(bay_reply_uri(reply, i), "");
    }
    assert_str(bay_reply_item(reply, 0), "7");
    bay_reply_free(reply);
}

static void nothing_is_read_from_no_reply(void **state)
{
    (void)state;
    void *bytes = NULL;
    size_t len = 0;
    assert_int_equal(bay_reply_count(NULL), 0);
    assert_false(bay_reply_is_error(NULL));
    assert_str(bay_reply_json(NULL), "");
    assert_str(bay_reply_structured(NULL), "");
    assert_str(bay_reply_str(NULL, "a"), "");
    assert_str(bay_reply_text(NULL, 0), "");
    assert_int_equal(bay_reply_bytes(NULL, 0, &bytes, &len), BAY_ERR_NOT_FOUND);
}

static void content_is_read(void **state)
{
    (void)state;
    bay_reply *reply = reply_of(
        "{\"content\":[{\"type\":\"text\",\"text\":\"a\\n\\u00e9\"},"
        "{\"type\":\"image\",\"data\":\"AP8K\",\"mimeType\":\"image/png\"},"
        "{\"type\":\"audio\",\"data\":\"\",\"mimeType\":\"audio/wav\"},"
        "{\"type\":\"resource_link\",\"uri\":\"x:\\/a\",\"name\":\"a\"},"
        "{\"type\":\"resource\",\"resource\":{\"uri\":\"x:b\",\"text\":\"t\",\"mimeType\":\"text/"
        "plain\"}},{\"type\":\"resource\",\"resource\":{\"uri\":\"x:c\",\"blob\":\"AA==\"}}],"
        "\"structuredContent\":{\"n\":1.0,\"s\":\"\\\"q\\\"\",\"o\":{\"a\":[1]}},"
        "\"isError\":true,\"extra\":\"e\",\"n\":2}");
    assert_true(bay_reply_is_error(reply));
    assert_int_equal(bay_reply_count(reply), 6);
    assert_str(bay_reply_text(reply, 0), "a\n\xc3\xa9");
    assert_int_equal(bay_reply_kind(reply, 1), BAY_CONTENT_IMAGE);
    assert_str(bay_reply_mime_type(reply, 1), "image/png");
    assert_int_equal(bay_reply_kind(reply, 2), BAY_CONTENT_AUDIO);
    assert_int_equal(bay_reply_kind(reply, 3), BAY_CONTENT_LINK);
    assert_str(bay_reply_uri(reply, 3), "x:/a");
    assert_int_equal(bay_reply_kind(reply, 4), BAY_CONTENT_RESOURCE);
    assert_str(bay_reply_text(reply, 4), "t");
    assert_str(bay_reply_uri(reply, 5), "x:c");
    assert_str(bay_reply_structured(reply), "{\"n\":1.0,\"s\":\"\\\"q\\\"\",\"o\":{\"a\":[1]}}");
    assert_str(bay_reply_str(reply, "n"), "1.0");
    assert_str(bay_reply_str(reply, "s"), "\"q\"");
    assert_str(bay_reply_str(reply, "o"), "{\"a\":[1]}");
    assert_str(bay_reply_str(reply, "extra"), "e");
    assert_str(bay_reply_str(reply, "none"), "");
    void *bytes = NULL;
    size_t len = 0;
    assert_int_equal(bay_reply_bytes(reply, 1, &bytes, &len), BAY_OK);
    assert_int_equal(len, 3);
    assert_memory_equal(bytes, "\0\xff\n", 3);
    bay_free(bytes);
    assert_int_equal(bay_reply_bytes(reply, 2, &bytes, &len), BAY_OK);
    assert_int_equal(len, 0);
    bay_free(bytes);
    assert_int_equal(bay_reply_bytes(reply, 4, &bytes, &len), BAY_OK);
    assert_int_equal(len, 1);
    bay_free(bytes);
    assert_int_equal(bay_reply_bytes(reply, 3, &bytes, &len), BAY_ERR_TYPE);
    assert_int_equal(bay_reply_bytes(reply, 6, &bytes, &len), BAY_ERR_NOT_FOUND);
    bay_reply_free(reply);
}

static void broken_base64_is_an_error(void **state)
{
    (void)state;
    void *bytes = NULL;
    size_t len = 0;
    bay_reply *reply = reply_of("{\"content\":[{\"type\":\"image\",\"data\":\"A A\"},"
                                "{\"type\":\"image\",\"data\":\"AB==\"}]}");
    assert_int_equal(bay_reply_bytes(reply, 0, &bytes, &len), BAY_ERR_SYNTAX);
    assert_int_equal(bay_reply_bytes(reply, 1, &bytes, &len), BAY_ERR_SYNTAX);
    assert_null(bytes);
    bay_reply_free(reply);
}

static void other_results_have_items_too(void **state)
{
    (void)state;
    bay_reply *reply = reply_of("{\"contents\":[{\"uri\":\"x:a\",\"text\":\"t\"},"
                                "{\"uri\":\"x:b\",\"blob\":\"AA==\",\"mimeType\":\"m\"}]}");
    assert_int_equal(bay_reply_count(reply), 2);
    assert_int_equal(bay_reply_kind(reply, 0), BAY_CONTENT_RESOURCE);
    assert_str(bay_reply_text(reply, 0), "t");
    assert_str(bay_reply_mime_type(reply, 1), "m");
    bay_reply_free(reply);
    reply = reply_of("{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":"
                     "\"hi\"}}]}");
    assert_int_equal(bay_reply_kind(reply, 0), BAY_CONTENT_TEXT);
    assert_str(bay_reply_role(reply, 0), "user");
    assert_str(bay_reply_text(reply, 0), "hi");
    bay_reply_free(reply);
    reply = reply_of("{\"completion\":{\"values\":[\"a\",\"b\\\\\",3],\"hasMore\":false}}");
    assert_int_equal(bay_reply_count(reply), 3);
    assert_int_equal(bay_reply_kind(reply, 1), BAY_CONTENT_VALUE);
    assert_str(bay_reply_text(reply, 1), "b\\");
    assert_str(bay_reply_text(reply, 2), "");
    bay_reply_free(reply);
}

static void a_lack_of_memory_leaves_nothing(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        bay_reply *reply = NULL;
        bay_err err = reply_new("{\"content\":[{\"type\":\"text\",\"text\":\"a\\n\"}],"
                                "\"x\":\"\\u0041\"}",
                                &reply);
        if (err == BAY_OK) {
            assert_str(bay_reply_str(reply, "x"), "A");
            bay_reply_free(reply);
        } else {
            assert_int_equal(err, BAY_ERR_NOMEM);
        }
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_missing_is_no_reply),
        cmocka_unit_test(wrong_types_read_as_absent),
        cmocka_unit_test(nothing_is_read_from_no_reply),
        cmocka_unit_test(content_is_read),
        cmocka_unit_test(broken_base64_is_an_error),
        cmocka_unit_test(other_results_have_items_too),
        cmocka_unit_test(a_lack_of_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

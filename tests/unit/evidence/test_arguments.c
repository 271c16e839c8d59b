/* Arguments as the audit shows them: nothing secret by its name or form, one line, a bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "evidence/arguments.h"

/* What is written of `text`; ' stands for ". */
static const char *shown(const char *text, arguments_form form)
{
    static char out[64 * 1024];
    static char given[64 * 1024];
    arena memory;
    json_doc document;
    json_writer writer;
    buf to = {.at = out, .cap = sizeof(out) - 1, .max = sizeof(out) - 1};
    size_t len = strlen(text);
    assert_true(len < sizeof(given));
    for (size_t i = 0; i <= len; i++) {
        given[i] = text[i] == '\'' ? '"' : text[i];
    }
    arena_init(&memory, 16 << 20);
    assert_int_equal(json_parse(&document, (bay_str){given, len}, NULL, &memory, NULL), BAY_OK);
    json_writer_init(&writer, &to);
    json_open_object(&writer);
    arguments_write(json_root(&document), form, STR(""), NULL, &writer);
    json_close_object(&writer);
    assert_int_equal(to.err, BAY_OK);
    out[to.len] = '\0';
    for (size_t i = 0; i < to.len; i++) {
        out[i] = (char)(out[i] == '"' ? '\'' : out[i]);
    }
    assert_null(strchr(out, '\n'));
    arena_fini(&memory);
    return out;
}

static void secrets_are_not_shown(void **state)
{
    (void)state;
    assert_string_equal(
        shown("{'password':'a','API_Key':{'x':1},'x-auth-token':[1],'a':{'Client-Secret':5}}",
              ARGUMENTS_REDACTED),
        "{'arguments':{'password':'[redacted]','API_Key':'[redacted]','x-auth-token':"
        "'[redacted]','a':{'Client-Secret':'[redacted]'}}}");
    static const char *const secrets[] = {
        "Bearer abc",  "say Bearer abc",    "sk-abc123",
        "ghp_x1",      "AKIAIOSFODNN7",     "eyJhbGciOiJub25lIn0.e30.",
        "(pbk_1_abc)", "https://u:p@host/", "-----BEGIN PRIVATE KEY-----",
    };
    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
        assert_true(arguments_text_is_secret(str_of(secrets[i])));
    }
    assert_string_equal(shown("{'a':['Bearer abc']}", ARGUMENTS_REDACTED),
                        "{'arguments':{'a':['[redacted]']}}");
    assert_string_equal(shown("{'a':'\\u0042earer abc'}", ARGUMENTS_REDACTED),
                        "{'arguments':{'a':'[redacted]'}}");
    assert_string_equal(shown("{'pass\\u0077ord':'abc'}", ARGUMENTS_REDACTED),
                        "{'arguments':{'password':'[redacted]'}}");
    /* a name whose end was not looked at */
    assert_true(
        arguments_name_is_secret(STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                                     "aaaaaaaaaaaapassword")));
}

static void what_is_not_secret_is_shown(void **state)
{
    static const char *const plain[] = {"Bearer ",          "task-sk", "monkey",
                                        "https://host/a@b", "a:b@c",   "risk-averse"};
    (void)state;
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        assert_false(arguments_text_is_secret(str_of(plain[i])));
    }
    assert_string_equal(
        shown("{ 'city' : 'Oslo' ,\n 'n':1.50, 'yes':true,'no':null, 'deep': [ [ 1 ] , {} ] }",
              ARGUMENTS_REDACTED),
        "{'arguments':{'city':'Oslo','n':1.50,'yes':true,'no':null,'deep':[[1],{}]}}");
}

static void each_form_shows_what_it_says(void **state)
{
    (void)state;
    assert_string_equal(shown("{'a':1,'token':2}", ARGUMENTS_NONE), "{}");
    assert_string_equal(shown("{'a':1,'token':2}", ARGUMENTS_KEYS_ALONE),
                        "{'argumentKeys':['a','token']}");
    assert_string_equal(shown("{'a':1,'token':'sk-1'}", ARGUMENTS_FULL),
                        "{'arguments':{'a':1,'token':'sk-1'}}");
    assert_string_equal(shown("{'a':1}", ARGUMENTS_DIGEST), "{}"); /* there is no key for it */
}

static void what_is_too_large_or_deep_becomes_its_names(void **state)
{
    char text[3 * ARGUMENTS_BYTES];
    (void)state;
    int len = snprintf(text, sizeof(text), "{'long':'%*s','b':1}", ARGUMENTS_BYTES, "");
    const char *out = shown(text, ARGUMENTS_REDACTED);
    assert_non_null(strstr(out, "{'argumentKeys':['long','b'],'argumentBytes':"));
    assert_true(strlen(out) < 100 && len > 0);
    char bytes[256];
    buf deep = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    buf_lit(&deep, "{'a':");
    for (int i = 0; i < 2 * ARGUMENTS_DEPTH; i++) {
        buf_char(&deep, i < ARGUMENTS_DEPTH ? '[' : ']');
    }
    buf_lit(&deep, "}");
    buf_char(&deep, '\0');
    assert_non_null(strstr(shown(bytes, ARGUMENTS_FULL), "'argumentKeys':['a']"));
    assert_non_null(strstr(shown("{'a':'\\ud800'}", ARGUMENTS_FULL), "'argumentKeys':['a']"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_are_not_shown),
        cmocka_unit_test(what_is_not_secret_is_shown),
        cmocka_unit_test(each_form_shows_what_it_says),
        cmocka_unit_test(what_is_too_large_or_deep_becomes_its_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

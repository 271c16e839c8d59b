/* A library without TLS says so, and what asks for TLS is not served in clear text instead. */
#include "http/http_client.h"
#include "support/net_test.h"

#include <string.h>

#include "base/str.h"
#include "net/tls.h"

static void no_context_can_be_made(void **state)
{
    (void)state;
    tls_options options = {.certificate_file = "certificate.pem", .key_file = "key.pem"};
    tls_context *context = NULL;
    bay_diag diag = {.code = BAY_OK};
    assert_int_equal(tls_server_new(&options, &context, &diag), BAY_ERR_UNSUPPORTED);
    assert_non_null(strstr(diag.text, "built without TLS"));
    diag.text[0] = '\0';
    assert_int_equal(tls_client_new(&options, &context, &diag), BAY_ERR_UNSUPPORTED);
    assert_non_null(strstr(diag.text, "built without TLS"));
    assert_null(context);
    assert_int_equal(tls_client_new(&options, &context, NULL), BAY_ERR_UNSUPPORTED);
    tls_free(NULL);
}

static void unexpected(void *user, bay_err err, bool was_sent, const char *text)
{
    (void)user;
    (void)err;
    (void)was_sent;
    fail_msg("an event of a call that was refused: %s", text);
}

static void https_is_refused_before_anything_is_sent(void **state)
{
    (void)state;
    loop *on_loop = test_loop();
    http_client *client = NULL;
    http_client_options options = {.limits = http_client_default_limits};
    assert_int_equal(http_client_new(on_loop, &options, &client), BAY_OK);
    http_call_events events = {.failed = unexpected};
    http_call_spec spec = {.method = str_of("GET"), .url = str_of("https://127.0.0.1:9/")};
    http_call *call = NULL;
    bay_diag diag = {.code = BAY_OK};
    assert_int_equal(http_client_call(client, &spec, &events, NULL, &call, &diag),
                     BAY_ERR_UNSUPPORTED);
    assert_non_null(strstr(diag.text, "built without TLS"));
    assert_null(call);
    http_client_free(client);
    loop_free(on_loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_context_can_be_made),
        cmocka_unit_test(https_is_refused_before_anything_is_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

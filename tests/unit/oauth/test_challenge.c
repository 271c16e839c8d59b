/* What those who may not come in are told: the metadata of a resource, and challenges. */
#include "guard_rig.h"
#include <openssl/evp.h> /* not in a build without it: the rig's tokens are signed */

static void metadata_of_a_resource(void **state)
{
    (void)state;
    guard_rig self;
    buf out;
    begin_with_tokens(&self);
    buf_init(&out, GUARD_TEXT);
    oauth_metadata_write(self.guard, STR("https://rs.example"), STR("/mcp/a"), STR("read write"),
                         STR("A \"b\""), &out);
    assert_true(str_eq(buf_view(&out),
                       STR("{\"resource\":\"https://rs.example/mcp/a\",\"authorization_servers\":["
                           "\"" ISSUER "\"],\"scopes_supported\":[\"read\",\"write\"],"
                           "\"bearer_methods_supported\":[\"header\"],\"resource_name\":\"A "
                           "\\\"b\\\"\"}")));
    buf_clear(&out);
    oauth_metadata_place(STR("https://rs.example"), STR("/mcp/a"), &out);
    assert_true(str_eq(buf_view(&out),
                       STR("https://rs.example/.well-known/oauth-protected-resource/mcp/a")));
    buf_clear(&out);
    oauth_metadata_place(STR("https://rs.example"), STR(""), &out);
    assert_true(
        str_eq(buf_view(&out), STR("https://rs.example/.well-known/oauth-protected-resource")));
    buf_fini(&out);
    rig_end(&self);
}

static void nothing_that_peers_name_breaks_a_challenge(void **state)
{
    (void)state;
    guard_rig self;
    buf out;
    oauth_refusal refusal = {.status = 403, .error = "insufficient_scope", .description = ""};
    begin_with_tokens(&self);
    buf_init(&out, GUARD_TEXT);
    assert_int_equal(oauth_challenges_write(self.guard, &refusal, STR("a\"b\\c\r\nd\xc3\xa9"),
                                            STR("https://m"), &out),
                     1);
    assert_string_equal(out.at, "Bearer error=\"insufficient_scope\", scope=\"a\\\"b\\\\c??d??\", "
                                "resource_metadata=\"https://m\"");
    buf_fini(&out);
    rig_end(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metadata_of_a_resource),
        cmocka_unit_test(nothing_that_peers_name_breaks_a_challenge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

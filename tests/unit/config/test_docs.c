/* docs/config.md and docs/config.schema.json are what the table says. With BAY_REGENERATE set in
 * the environment they are written instead of compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "config/internal.h"
#include "json/json.h"

static void compare(const char *path, void (*write)(buf *))
{
    buf generated;
    buf_init(&generated, 1024 * 1024);
    write(&generated);
    assert_int_equal(generated.err, BAY_OK);
    bool regenerates = getenv("BAY_REGENERATE") != NULL;
    FILE *file = fopen(path, regenerates ? "wb" : "rb");
    assert_non_null(file);
    if (regenerates) {
        assert_int_equal(fwrite(generated.at, 1, generated.len, file), generated.len);
    } else {
        char *committed = malloc(1024 * 1024);
        assert_non_null(committed);
        size_t len = fread(committed, 1, 1024 * 1024, file);
        assert_int_equal(len, generated.len);
        assert_memory_equal(committed, generated.at, len);
        free(committed);
    }
    fclose(file);
    buf_fini(&generated);
}

static void the_page_is_current(void **state)
{
    (void)state;
    compare(BAY_TEST_SOURCE_DIR "/docs/config.md", config_write_markdown);
}

static void the_schema_is_current(void **state)
{
    (void)state;
    compare(BAY_TEST_SOURCE_DIR "/docs/config.schema.json", config_write_schema);
}

static void the_schema_is_json_and_knows_every_key(void **state)
{
    (void)state;
    buf generated;
    arena memory;
    json_doc document;
    buf_init(&generated, 1024 * 1024);
    arena_init(&memory, 16 * 1024 * 1024);
    config_write_schema(&generated);
    assert_int_equal(json_parse(&document, buf_view(&generated), NULL, &memory, NULL), BAY_OK);
    static const char *const roots[CONFIG_SCOPE_COUNT] = {
        [CONFIG_SCOPE_TOP] = "",
        [CONFIG_SCOPE_ADMIN] = "/properties/admin",
        [CONFIG_SCOPE_SCAN] = "/properties/scan",
        [CONFIG_SCOPE_PINS] = "/properties/pins",
        [CONFIG_SCOPE_CONTRACTS] = "/properties/contracts",
        [CONFIG_SCOPE_TLS] = "/properties/tls",
        [CONFIG_SCOPE_GROUP] = "/properties/groups/additionalProperties",
        [CONFIG_SCOPE_POLICY] = "/properties/policy",
        [CONFIG_SCOPE_RULE] = "/properties/policy/properties/rules/items",
        [CONFIG_SCOPE_WHO] = "/properties/policy/properties/rules/items/properties/who",
        [CONFIG_SCOPE_TOOL] = "/properties/policy/properties/tools/additionalProperties",
        [CONFIG_SCOPE_IDEMPOTENCY] = "/properties/policy/properties/tools/additionalProperties"
                                     "/properties/idempotency",
        [CONFIG_SCOPE_RATES] = "/properties/policy/properties/rates",
        [CONFIG_SCOPE_RESULT] = "/properties/policy/properties/tools/additionalProperties"
                                "/properties/result",
        [CONFIG_SCOPE_LOG] = "/properties/log",
        [CONFIG_SCOPE_AUDIT] = "/properties/audit",
        [CONFIG_SCOPE_METRICS] = "/properties/metrics",
        [CONFIG_SCOPE_LIMITS] = "/properties/limits",
        [CONFIG_SCOPE_TIMEOUTS] = "/properties/timeouts",
        [CONFIG_SCOPE_SERVER] = "/properties/mcpServers/additionalProperties",
        [CONFIG_SCOPE_RESTART] = "/properties/mcpServers/additionalProperties/properties/restart",
        [CONFIG_SCOPE_CREDENTIALS] =
            "/properties/mcpServers/additionalProperties/properties/credentials",
        [CONFIG_SCOPE_IDP] = "/properties/mcpServers/additionalProperties/properties/credentials"
                             "/properties/idp",
        [CONFIG_SCOPE_SERVER_TLS] = "/properties/mcpServers/additionalProperties/properties/tls",
        [CONFIG_SCOPE_GRADE] = "/properties/mcpServers/additionalProperties/properties/grade",
        [CONFIG_SCOPE_OWN_SCAN] = "/properties/mcpServers/additionalProperties/properties/scan",
        [CONFIG_SCOPE_EXPOSE] = "/properties/mcpServers/additionalProperties/properties/expose",
        [CONFIG_SCOPE_PROFILE] = "/properties/profiles/additionalProperties",
        [CONFIG_SCOPE_SANDBOX] = "/properties/mcpServers/additionalProperties/properties/sandbox",
        [CONFIG_SCOPE_A2A] = "/properties/a2a",
        [CONFIG_SCOPE_AGENT] = "/properties/agents/additionalProperties",
        [CONFIG_SCOPE_VERIFY] = "/properties/agents/additionalProperties/properties/verify",
        [CONFIG_SCOPE_AGENT_EXPOSE] = "/properties/agents/additionalProperties/properties/expose",
        [CONFIG_SCOPE_AUTH] = "/properties/profiles/additionalProperties/properties/auth",
        [CONFIG_SCOPE_ISSUER] = "/properties/auth/properties/issuers/additionalProperties",
        [CONFIG_SCOPE_INTROSPECTION] = "/properties/auth/properties/issuers/additionalProperties"
                                       "/properties/introspection",
        [CONFIG_SCOPE_ISSUER_TLS] = "/properties/auth/properties/issuers/additionalProperties"
                                    "/properties/tls",
        [CONFIG_SCOPE_LOGIN] = "/properties/auth/properties/login",
        [CONFIG_SCOPE_PROXY] = "/properties/auth/properties/proxy",
    };
    for (size_t i = 0; i < config_key_count; i++) {
        json_val scope = json_pointer(json_root(&document), str_of(roots[config_keys[i].scope]));
        json_val row = json_get(json_get(scope, STR("properties")), config_keys[i].name);
        assert_true(json_is(row, JSON_OBJECT));
        assert_true(json_is(json_get(row, STR("description")), JSON_STRING));
    }
    arena_fini(&memory);
    buf_fini(&generated);
}

static void a_lack_of_memory_shows_in_the_buffer(void **state)
{
    (void)state;
    buf small;
    buf_init(&small, 100);
    config_write_markdown(&small);
    assert_int_equal(small.err, BAY_ERR_LIMIT);
    buf_clear(&small);
    config_write_schema(&small);
    assert_int_equal(small.err, BAY_ERR_LIMIT);
    buf_fini(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_is_current),
        cmocka_unit_test(the_schema_is_current),
        cmocka_unit_test(the_schema_is_json_and_knows_every_key),
        cmocka_unit_test(a_lack_of_memory_shows_in_the_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

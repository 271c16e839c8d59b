/* What strangers send to a client of OAuth, part by part: challenges, forms, metadata. Each refusal
 * is one that an attack needs, or a mistake that is seen in the wild. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "auth/oauth_challenge.h"
#include "auth/oauth_form.h"
#include "auth/oauth_metadata.h"
#include "auth/oauth_record.h"
#include "support/failing_memory.h"

enum { ROOM = 1 << 20 };

#define assert_text(got, wanted) assert_text_at(got, wanted, __LINE__)

static void assert_text_at(bay_str got, const char *wanted, int line)
{
    if (!str_eq(got, str_of(wanted))) {
        fail_msg("line %d: \"%.*s\" instead of \"%s\"", line, BAY_STR(got), wanted);
    }
}

/* ---- challenges ------------------------------------------------------------------------------ */

static void challenges(void **state)
{
    (void)state;
    static const struct {
        const char *field, *second; /* NULL: one field */
        bool is_present, is_dpop;
        const char *metadata, *scope, *error;
    } cases[] = {
        {"", NULL, false, false, "", "", ""},
        {"Basic realm=\"x\"", NULL, false, false, "", "", ""},
        {"Bearer", NULL, true, false, "", "", ""},
        {"bearer scope=\"a b\"", NULL, true, false, "", "a b", ""},
        {"Bearer scope=a", NULL, true, false, "", "a", ""},
        {"Bearer resource_metadata=\"https://h/m\", scope=\"a\"", NULL, true, false, "https://h/m",
         "a", ""},
        {"Bearer RESOURCE_METADATA = \"https://h/m\"", NULL, true, false, "https://h/m", "", ""},
        {"Bearer error=\"insufficient_scope\", scope=\"w\"", NULL, true, false, "", "w",
         "insufficient_scope"},
        /* the first of a name counts: a second one does not replace it */
        {"Bearer scope=\"a\", scope=\"b\"", NULL, true, false, "", "a", ""},
        /* quoted pairs, and what looks like the end inside a string */
        {"Bearer scope=\"a\\\"b, DPoP error=\\\"x\"", NULL, true, false, "", "a\"b, DPoP error=\"x",
         ""},
        /* several challenges in one field; the one with metadata is chosen */
        {"Basic realm=\"r\", Bearer scope=\"a\", DPoP algs=\"ES256\", "
         "resource_metadata=\"https://h\"",
         NULL, true, true, "https://h", "", ""},
        {"Negotiate abc==, Bearer scope=\"a\"", NULL, true, false, "", "a", ""},
        {"Negotiate abc+/=, , ,Bearer", NULL, true, false, "", "", ""},
        /* several fields */
        {"Bearer scope=\"a\"", "Bearer resource_metadata=\"https://h\"", true, false, "https://h",
         "", ""},
        {"Digest x", "DPoP error=\"use_dpop_nonce\"", true, true, "", "", "use_dpop_nonce"},
        /* a field that breaks the grammar ends there; what came before it counts */
        {"Bearer scope=\"a", NULL, false, false, "", "", ""},
        {"Bearer scope=\"a\", DPoP error=\"x", NULL, true, false, "", "a", ""},
        {"Bearer scope=\"a\rb\"", NULL, false, false, "", "", ""},
        {"Bearer scope=\"a\nX-Injected: 1\"", NULL, false, false, "", "", ""},
        {"= Bearer", NULL, false, false, "", "", ""},
        {"Bearer scope=\"a\"", "Bearer \"", true, false, "", "a", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        arena memory;
        oauth_challenge found;
        const http_field fields[] = {
            {STR("content-type"), STR("Bearer scope=\"no\"")},
            {STR("WWW-Authenticate"), str_of(cases[i].field)},
            {STR("www-authenticate"), str_of(cases[i].second)},
        };
        arena_init(&memory, ROOM);
        assert_int_equal(
            oauth_challenge_read(fields, cases[i].second != NULL ? 3 : 2, &memory, &found), BAY_OK);
        if (found.is_present != cases[i].is_present || found.is_dpop != cases[i].is_dpop) {
            fail_msg("case %zu: %s", i, cases[i].field);
        }
        assert_text(found.resource_metadata, cases[i].metadata);
        assert_text(found.scope, cases[i].scope);
        assert_text(found.error, cases[i].error);
        arena_fini(&memory);
    }
}

/* A thousand challenges, or a field without end, cost little and hide nothing that came first. */
static void floods_of_challenges(void **state)
{
    (void)state;
    arena memory;
    oauth_challenge found;
    buf text;
    arena_init(&memory, ROOM);
    buf_init(&text, ROOM);
    buf_lit(&text, "Bearer scope=\"first\"");
    for (int i = 0; i < 500; i++) {
        buf_lit(&text, ", Bearer resource_metadata=\"u\"");
    }
    http_field field = {STR("WWW-Authenticate"), buf_view(&text)};
    assert_true(text.len < OAUTH_CHALLENGE_BYTES);
    assert_int_equal(oauth_challenge_read(&field, 1, &memory, &found), BAY_OK);
    assert_text(found.resource_metadata, "u");
    while (text.len <= OAUTH_CHALLENGE_BYTES) {
        buf_lit(&text, ", Bearer x=y");
    }
    field.value = buf_view(&text);
    assert_int_equal(oauth_challenge_read(&field, 1, &memory, &found), BAY_OK);
    assert_false(found.is_present); /* longer than is looked at */
    buf_clear(&text);
    buf_lit(&text, "Bearer a=b");
    for (int i = 0; i < OAUTH_CHALLENGE_PARAMS; i++) {
        buf_lit(&text, ", a=b");
    }
    field.value = buf_view(&text);
    assert_int_equal(oauth_challenge_read(&field, 1, &memory, &found), BAY_OK);
    assert_false(found.is_present);
    buf_fini(&text);
    arena_fini(&memory);
}

/* ---- forms ----------------------------------------------------------------------------------- */

static void forms_are_written(void **state)
{
    (void)state;
    buf out;
    buf_init(&out, ROOM);
    buf_lit(&out, "https://h/?x=1&");
    size_t start = out.len;
    oauth_form_put(&out, start, STR("a b"), STR("c:d/e+f~g"));
    oauth_form_put_some(&out, start, STR("none"), STR(""));
    oauth_form_put_some(&out, start, STR("z"), STR("\xc3\xbc"));
    assert_text(buf_view(&out), "https://h/?x=1&a+b=c%3Ad%2Fe%2Bf%7Eg&z=%C3%BC");
    buf_fini(&out);
}

static void forms_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bay_err err;
        const char *code; /* NULL: absent */
    } cases[] = {
        {"", BAY_OK, NULL},
        {"&&", BAY_OK, NULL},
        {"code=a+b%2B", BAY_OK, "a b+"},
        {"code", BAY_OK, ""},
        {"code=a=b", BAY_OK, "a=b"},
        {"Code=x", BAY_OK, NULL},
        {"code=a&code=b", BAY_ERR_DUPLICATE, NULL},
        {"c%6Fde=a&code=b", BAY_ERR_DUPLICATE, NULL},
        {"state=x&state=x", BAY_ERR_DUPLICATE, NULL},
        {"code=%", BAY_ERR_SYNTAX, NULL},
        {"code=%2", BAY_ERR_SYNTAX, NULL},
        {"code=%zz", BAY_ERR_SYNTAX, NULL},
        {"code=%00", BAY_ERR_SYNTAX, NULL},
        {"code=a%0d%0aX: y", BAY_ERR_SYNTAX, NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        arena memory;
        oauth_form form;
        arena_init(&memory, ROOM);
        bay_err err = oauth_form_read(str_of(cases[i].text), &memory, &form);
        if (err != cases[i].err) {
            fail_msg("\"%s\": %s", cases[i].text, bay_err_text(err));
        }
        bay_str code = err == BAY_OK ? oauth_form_get(&form, STR("code")) : (bay_str){NULL, 0};
        assert_true((code.at == NULL) == (cases[i].code == NULL));
        if (code.at != NULL) {
            assert_text(code, cases[i].code);
        }
        arena_fini(&memory);
    }
    arena memory;
    oauth_form form;
    buf many;
    arena_init(&memory, ROOM);
    buf_init(&many, ROOM);
    for (int i = 0; i <= OAUTH_FORM_FIELDS; i++) {
        buf_printf(&many, "f%d=1&", i);
    }
    assert_int_equal(oauth_form_read(buf_view(&many), &memory, &form), BAY_ERR_LIMIT);
    while (many.len <= OAUTH_FORM_BYTES) {
        buf_char(&many, 'x');
    }
    assert_int_equal(oauth_form_read(buf_view(&many), &memory, &form), BAY_ERR_LIMIT);
    buf_fini(&many);
    arena_fini(&memory);
}

/* ---- URLs ------------------------------------------------------------------------------------ */

static void urls_that_are_used(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        bool is_usable, is_usable_here;
    } cases[] = {
        {"https://h/a?b=c", true, true},
        {"HTTPS://h", true, true},
        {"http://127.0.0.1:1/a", false, true},
        {"http://localhost/a", false, true},
        {"http://[::1]/a", false, true},
        {"http://h/a", false, false},
        {"http://10.0.0.1/a", false, false},
        {"http://127.0.0.1.evil.example/", false, false},
        {"http://localhost@evil.example/", false, false},
        {"https://good@evil/", false, false},
        {"https://h/a#b", false, false},
        {"https:///a", false, false},
        {"file:///etc/passwd", false, false},
        {"javascript:alert(1)", false, false},
        {"JaVaScRiPt:alert(1)//https://h", false, false},
        {"\tjavascript:alert(1)", false, false},
        {"data:text/html,x", false, false},
        {"-oProxyCommand=calc", false, false},
        {"$(calc)", false, false},
        {"https://h/&calc", true, true}, /* an argument, never a command line */
        {"https://h/a b", false, false},
        {"https://h/\r\nX: y", false, false},
        {"", false, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (oauth_url_is_usable(str_of(cases[i].url), false) != cases[i].is_usable ||
            oauth_url_is_usable(str_of(cases[i].url), true) != cases[i].is_usable_here) {
            fail_msg("%s", cases[i].url);
        }
    }
}

static void places_of_metadata(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        bool is_issuer;
        const char *places[OAUTH_CANDIDATES];
    } cases[] = {
        {"https://h/a/mcp",
         false,
         {"https://h/.well-known/oauth-protected-resource/a/mcp",
          "https://h/.well-known/oauth-protected-resource"}},
        {"https://h:1/", false, {"https://h:1/.well-known/oauth-protected-resource"}},
        {"https://h", false, {"https://h/.well-known/oauth-protected-resource"}},
        {"https://h/mcp?t=1",
         false,
         {"https://h/.well-known/oauth-protected-resource/mcp?t=1",
          "https://h/.well-known/oauth-protected-resource"}},
        {"https://h/p",
         true,
         {"https://h/.well-known/oauth-authorization-server/p",
          "https://h/.well-known/openid-configuration/p",
          "https://h/p/.well-known/openid-configuration"}},
        {"https://h/p/",
         true,
         {"https://h/.well-known/oauth-authorization-server/p",
          "https://h/.well-known/openid-configuration/p",
          "https://h/p/.well-known/openid-configuration"}},
        {"https://h",
         true,
         {"https://h/.well-known/oauth-authorization-server",
          "https://h/.well-known/openid-configuration"}},
        {"https://h/",
         true,
         {"https://h/.well-known/oauth-authorization-server",
          "https://h/.well-known/openid-configuration"}},
        {"https://h/?q", true, {NULL}},
        {"ftp://h", false, {NULL}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        arena memory;
        oauth_candidates found = {0};
        arena_init(&memory, ROOM);
        bay_str url = str_of(cases[i].url);
        bay_err err = cases[i].is_issuer ? oauth_server_urls(url, &memory, &found)
                                         : oauth_resource_urls(url, &memory, &found);
        assert_int_equal(err, cases[i].places[0] != NULL ? BAY_OK : BAY_ERR_SYNTAX);
        size_t count = 0;
        while (count < OAUTH_CANDIDATES && cases[i].places[count] != NULL) {
            assert_true(count < found.count);
            assert_text(found.urls[count], cases[i].places[count]);
            count++;
        }
        assert_int_equal(found.count, count);
        arena_fini(&memory);
    }
}

/* ---- a resource ------------------------------------------------------------------------------ */

static bay_err read_resource(const char *resource, const char *url, const char *servers)
{
    arena memory;
    oauth_resource found;
    bay_diag diag = {0};
    char text[1024];
    snprintf(text, sizeof(text), "{\"resource\":\"%s\",\"authorization_servers\":%s}", resource,
             servers);
    arena_init(&memory, ROOM);
    bay_err err = oauth_resource_read(str_of(text), str_of(url), &memory, &found, &diag);
    if (err == BAY_OK) {
        assert_text(found.resource, resource); /* byte for byte */
    } else {
        assert_int_equal(diag.code, err);
    }
    arena_fini(&memory);
    return err;
}

static void whose_metadata_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *resource, *url;
        bool is_ours;
    } cases[] = {
        {"https://h/mcp", "https://h/mcp", true},
        {"https://h", "https://h/mcp", true},
        {"https://h/", "https://h/mcp", true},
        {"https://h/a", "https://h/a/mcp", true},
        {"https://h/a/", "https://h/a/mcp", true},
        {"https://H/mcp", "https://h/mcp", true},
        {"https://h:443/mcp", "https://h/mcp", true},
        {"https://h/mc", "https://h/mcp", false},
        {"https://h/mcp/x", "https://h/mcp", false},
        {"https://h/MCP", "https://h/mcp", false},
        {"https://evil/mcp", "https://h/mcp", false},
        {"https://h.evil/mcp", "https://h/mcp", false},
        {"https://h@evil/mcp", "https://h/mcp", false},
        {"http://h/mcp", "https://h/mcp", false},
        {"https://h:444/mcp", "https://h/mcp", false},
        {"https://h/x/../mcp", "https://h/mcp", false},
        {"https://h/a/..", "https://h/a/../mcp", false},
        {"https://h/a%2Fb", "https://h/a%2Fb/mcp", false},
        {"https://h/a%2e%2e", "https://h/a%2e%2e/mcp", false},
        {"https://h/?x", "https://h/mcp", false},
        {"https://h/#x", "https://h/mcp", false},
        {"", "https://h/mcp", false},
        {"h/mcp", "https://h/mcp", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bay_err err = read_resource(cases[i].resource, cases[i].url, "[\"https://as\"]");
        if (err != (cases[i].is_ours ? BAY_OK : BAY_ERR_DENIED)) {
            fail_msg("%s for %s: %s", cases[i].resource, cases[i].url, bay_err_text(err));
        }
    }
    /* servers that may not be asked do not count */
    assert_int_equal(read_resource("https://h/m", "https://h/m", "[]"), BAY_ERR_DENIED);
    assert_int_equal(read_resource("https://h/m", "https://h/m", "\"https://as\""), BAY_ERR_DENIED);
    assert_int_equal(read_resource("https://h/m", "https://h/m", "[\"http://as\", 1, null]"),
                     BAY_ERR_DENIED);
    assert_int_equal(read_resource("https://h/m", "https://h/m", "[\"http://127.0.0.1/\"]"),
                     BAY_ERR_DENIED);
    assert_int_equal(
        read_resource("http://127.0.0.1/m", "http://127.0.0.1/m", "[\"http://127.0.0.1/\"]"),
        BAY_OK);
}

static void documents_that_are_none(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "[]",
        "null",
        "{",
        "<html>",
        "{\"resource\":\"https://h/m\",\"resource\":\"https://h/m\",\"authorization_servers\":["
        "\"https://as\"]}",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        arena memory;
        oauth_resource resource;
        oauth_server server;
        bay_diag diag = {0};
        arena_init(&memory, ROOM);
        assert_int_equal(
            oauth_resource_read(str_of(texts[i]), STR("https://h/m"), &memory, &resource, &diag),
            BAY_ERR_SYNTAX);
        assert_int_equal(oauth_server_read(str_of(texts[i]), STR("https://as"), false, false,
                                           &memory, &server, &diag),
                         BAY_ERR_SYNTAX);
        arena_fini(&memory);
    }
}

static void scopes_of_a_resource(void **state)
{
    (void)state;
    arena memory;
    oauth_resource found;
    arena_init(&memory, ROOM);
    assert_int_equal(oauth_resource_read(
                         STR("{\"resource\":\"https://h\",\"authorization_servers\":[\"https://"
                             "a\",\"https://b\"],\"scopes_supported\":[\"x\",\"y z\",\"x\",1,\"\","
                             "\"q\\\"\",\"w\"],\"dpop_bound_access_tokens_required\":true}"),
                         STR("https://h/m"), &memory, &found, NULL),
                     BAY_OK);
    assert_text(found.scopes, "x w"); /* "y z" would be two */
    assert_int_equal(found.server_count, 2);
    assert_text(found.servers[1], "https://b");
    assert_true(found.is_dpop_required);
    arena_fini(&memory);
}

/* ---- an authorization server ----------------------------------------------------------------- */

static bay_err read_server(const char *text, const char *issuer, bool is_origin, oauth_server *out,
                           arena *memory)
{
    bay_diag diag = {0};
    bay_err err =
        oauth_server_read(str_of(text), str_of(issuer), is_origin, false, memory, out, &diag);
    assert_int_equal(diag.code, err);
    return err;
}

static void servers(void **state)
{
    (void)state;
    static const struct {
        const char *text, *issuer;
        bool is_origin;
        bay_err err;
    } cases[] = {
        {"{\"issuer\":\"https://a\",\"token_endpoint\":\"https://a/t\"}", "https://a", false,
         BAY_OK},
        {"{\"issuer\":\"https://a/\",\"token_endpoint\":\"https://a/t\"}", "https://a", false,
         BAY_ERR_DENIED},
        {"{\"issuer\":\"https://A\",\"token_endpoint\":\"https://a/t\"}", "https://a", false,
         BAY_ERR_DENIED},
        {"{\"issuer\":\"https://b\",\"token_endpoint\":\"https://a/t\"}", "https://a", false,
         BAY_ERR_DENIED},
        {"{\"token_endpoint\":\"https://a/t\"}", "https://a", false, BAY_ERR_DENIED},
        {"{\"issuer\":[\"https://a\"],\"token_endpoint\":\"https://a/t\"}", "https://a", false,
         BAY_ERR_DENIED},
        {"{\"issuer\":\"https://a\"}", "https://a", false, BAY_ERR_DENIED},
        {"{\"issuer\":\"https://a\",\"token_endpoint\":\"http://a/t\"}", "https://a", false,
         BAY_ERR_DENIED},
        {"{\"issuer\":\"https://a\",\"token_endpoint\":\"https://a/t\",\"authorization_endpoint\":"
         "\"javascript:alert(1)\"}",
         "https://a", false, BAY_ERR_DENIED},
        {"{\"issuer\":\"https://a\",\"token_endpoint\":\"https://a/t\",\"registration_endpoint\":"
         "\"http://169.254.169.254/\"}",
         "https://a", false, BAY_ERR_DENIED},
        {"{\"issuer\":\"https://a\",\"token_endpoint\":\"https://a/t\",\"revocation_endpoint\":7}",
         "https://a", false, BAY_ERR_DENIED},
        {"{\"issuer\":\"https://a/x\",\"token_endpoint\":\"https://a/t\"}", "https://a", true,
         BAY_OK},
        {"{\"issuer\":\"https://b/x\",\"token_endpoint\":\"https://a/t\"}", "https://a", true,
         BAY_ERR_DENIED},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        arena memory;
        oauth_server found;
        arena_init(&memory, ROOM);
        bay_err err =
            read_server(cases[i].text, cases[i].issuer, cases[i].is_origin, &found, &memory);
        if (err != cases[i].err) {
            fail_msg("%s: %s", cases[i].text, bay_err_text(err));
        }
        arena_fini(&memory);
    }
}

static void abilities_of_a_server(void **state)
{
    (void)state;
    arena memory;
    oauth_server found;
    arena_init(&memory, ROOM);
    assert_int_equal(read_server("{\"issuer\":\"https://a\",\"token_endpoint\":\"https://a/t\"}",
                                 "https://a", false, &found, &memory),
                     BAY_OK);
    assert_int_equal(found.methods, OAUTH_BASIC); /* RFC 8414: what an absent list means */
    assert_false(found.has_s256);
    assert_true(oauth_server_grants(&found, STR("authorization_code")));
    assert_false(oauth_server_grants(&found, STR("client_credentials")));
    assert_int_equal(
        read_server(
            "{\"issuer\":\"https://a\",\"token_endpoint\":\"https://a/"
            "t\",\"response_types_supported\":[\"code\"],\"code_challenge_methods_supported\":["
            "\"plain\"],\"grant_types_supported\":[\"client_credentials\"],\"token_endpoint_"
            "auth_methods_supported\":[\"none\",\"private_key_jwt\",\"tls_client_auth\"],"
            "\"dpop_signing_alg_values_supported\":[\"RS256\",\"ES256\"],"
            "\"authorization_response_iss_parameter_supported\":\"true\"}",
            "https://a", false, &found, &memory),
        BAY_OK);
    assert_int_equal(found.methods, OAUTH_NONE | OAUTH_PRIVATE_KEY);
    assert_false(found.has_s256); /* plain is none */
    assert_true(found.has_code && found.has_dpop);
    assert_false(found.sends_issuer); /* a string is no true */
    assert_false(oauth_server_grants(&found, STR("authorization_code")));
    assert_int_equal(oauth_server_assume(STR("https://h:1"), &memory, &found), BAY_OK);
    assert_text(found.token_endpoint, "https://h:1/token");
    arena_fini(&memory);
}

/* ---- records --------------------------------------------------------------------------------- */

static void records_come_back(void **state)
{
    (void)state;
    oauth_record one, other;
    buf text;
    oauth_record_init(&one);
    oauth_record_init(&other);
    buf_init(&text, OAUTH_RECORD_BYTES);
    assert_int_equal(oauth_text_set(&one.issuer, STR("https://a")), BAY_OK);
    assert_int_equal(oauth_text_set(&one.access, STR("a\"\\b")), BAY_OK);
    assert_int_equal(oauth_text_set(&one.key, STR("-----BEGIN\nx\n")), BAY_OK);
    one.expires_at_ms = 12345;
    one.method = OAUTH_POST;
    one.is_dpop = one.is_registered = true;
    assert_int_equal(oauth_record_write(&one, &text), BAY_OK);
    assert_int_equal(oauth_record_read(&other, buf_view(&text)), BAY_OK);
    assert_text(buf_view(&other.access), "a\"\\b");
    assert_text(buf_view(&other.key), "-----BEGIN\nx\n");
    assert_text(buf_view(&other.refresh), "");
    assert_int_equal(other.expires_at_ms, 12345);
    assert_int_equal(other.method, OAUTH_POST);
    assert_true(other.is_dpop && other.is_registered && !other.is_legacy);
    assert_int_equal(oauth_record_read(&other, STR("[]")), BAY_ERR_SYNTAX);
    assert_int_equal(other.issuer.len, 0); /* nothing is left of the one before */
    assert_int_equal(oauth_record_read(&other, STR("{\"key\":\"!\"}")), BAY_ERR_SYNTAX);
    oauth_record_drop_tokens(&one);
    assert_int_equal(one.access.len + one.refresh.len, 0);
    assert_true(one.is_registered);
    buf_fini(&text);
    oauth_record_fini(&one);
    oauth_record_fini(&other);
}

static void without_memory(void **state)
{
    (void)state;
    static const char document[] = "{\"issuer\":\"https://a\",\"token_endpoint\":\"https://a/"
                                   "t\",\"scopes_supported\":[\"x\"]}";
    for (size_t at = 0; failing_memory_start(at); at++) {
        arena memory;
        oauth_server found;
        oauth_challenge challenge;
        http_field field = {STR("WWW-Authenticate"), STR("Bearer scope=\"a\"")};
        arena_init(&memory, ROOM);
        bay_err err = oauth_server_read(str_of(document), STR("https://a"), false, false, &memory,
                                        &found, NULL);
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        err = oauth_challenge_read(&field, 1, &memory, &challenge);
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        arena_fini(&memory);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(challenges),
        cmocka_unit_test(floods_of_challenges),
        cmocka_unit_test(forms_are_written),
        cmocka_unit_test(forms_are_read),
        cmocka_unit_test(urls_that_are_used),
        cmocka_unit_test(places_of_metadata),
        cmocka_unit_test(whose_metadata_it_is),
        cmocka_unit_test(documents_that_are_none),
        cmocka_unit_test(scopes_of_a_resource),
        cmocka_unit_test(servers),
        cmocka_unit_test(abilities_of_a_server),
        cmocka_unit_test(records_come_back),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* auth and publicUrl: what they may say, and each mistake with its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "config/internal.h"
#include "config_testing.h"

static void report_text(const config_report *report, char *out, size_t size)
{
    buf shown;
    buf_init(&shown, 65536);
    config_report_write(report, &shown);
    snprintf(out, size, "%.*s", BAY_STR(buf_view(&shown)));
    buf_fini(&shown);
}

static const config *load(const char *text)
{
    const config *loaded = NULL;
    config_report report;
    char said[4096];
    bay_err err = testing_load(text, &loaded, &report);
    report_text(&report, said, sizeof(said));
    if (err != BAY_OK) {
        fail_msg("%s\n%s", text, said);
    }
    return loaded;
}

#define SERVERS "mcpServers: {a: {command: x}}\n"
#define ISSUER(more) "auth: {issuers: {i: {url: 'https://i.example'" more "}}}\n"

static void all_of_it_is_read(void **state)
{
    (void)state;
    const config *self =
        load(SERVERS "publicUrl: https://gw.example\nstore: /tmp/s\ntrustedProxies: [10.0.0.0/8]\n"
                     "tls: {certificate: c, key: k, clientCa: ca}\n"
                     "auth:\n"
                     "  issuers:\n"
                     "    acme:\n"
                     "      url: https://login.acme.example/t1\n"
                     "      audience: ['api://gw', b]\n"
                     "      clients: [one]\n"
                     "      algorithms: [ES256, EdDSA]\n"
                     "      type: at+jwt\n"
                     "      skew: 5s\n"
                     "      lifetime: 1h\n"
                     "      introspection: {clientId: me, clientSecret: '${TOKEN}', always: true}\n"
                     "      allow: [10.1.0.0/16]\n"
                     "      tls: {ca: ca.pem}\n"
                     "    proxy: {url: joe, keys: keys.json, header: X-Identity}\n"
                     "  apiKeys: true\n"
                     "  certificates: true\n"
                     "  scopes: [mcp]\n"
                     "  implies: {admin: 'read write', write: read}\n"
                     "  dpop: accept\n"
                     "  dpopNonces: true\n");
    const config_auth *auth = &self->auth;
    assert_true(config_auth_is_given(auth));
    assert_true(str_eq(self->public_url, STR("https://gw.example")));
    assert_int_equal(auth->issuer_count, 2);
    const config_issuer *acme = &auth->issuers[0];
    assert_true(str_eq(acme->name, STR("acme")));
    assert_true(str_eq(acme->url, STR("https://login.acme.example/t1")));
    assert_int_equal(acme->audience.count, 2);
    assert_int_equal(acme->clients.count, 1);
    assert_int_equal(acme->algorithms.count, 2);
    assert_int_equal(acme->type, CONFIG_TOKEN_AT_JWT);
    assert_int_equal(acme->skew_ms, 5000);
    assert_int_equal(acme->lifetime_ms, 3600000);
    assert_true(str_eq(acme->introspection.client_id, STR("me")));
    assert_true(acme->introspection.always);
    assert_true(str_eq(acme->tls.ca, STR("ca.pem")));
    assert_true(str_eq(auth->issuers[1].header, STR("X-Identity")));
    assert_int_equal(auth->issuers[1].skew_ms, 60000);
    assert_true(auth->api_keys && auth->certificates && auth->dpop_nonces);
    assert_int_equal(auth->dpop, CONFIG_DPOP_ACCEPT);
    assert_int_equal(auth->implies.count, 2);
    config_free(self);
}

static void a_profile_has_its_own(void **state)
{
    (void)state;
    const config *self = load(SERVERS "store: s\n" ISSUER("") "profiles:\n"
                                                              "  ci: {auth: {apiKeys: true}}\n"
                                                              "  open: {auth: {none: true}}\n"
                                                              "  same: {}\n");
    assert_true(config_auth_is_given(&self->profiles[0].auth));
    assert_true(self->profiles[1].auth.none);
    assert_false(config_auth_is_given(&self->profiles[1].auth));
    assert_false(config_auth_is_given(&self->profiles[2].auth) || self->profiles[2].auth.none);
    config_free(self);
}

static void nothing_is_given_by_default(void **state)
{
    (void)state;
    const config *self = load(SERVERS);
    assert_false(config_auth_is_given(&self->auth) || self->auth.none);
    assert_int_equal(self->limits.failed_credentials, 300);
    config_free(self);
}

static void what_differs_is_seen(void **state)
{
    (void)state;
    static const char *const auths[] = {
        ISSUER(""),
        ISSUER(", audience: [x]"),
        ISSUER(", clients: [x]"),
        ISSUER(", introspection: {clientId: a, clientSecret: b}"),
        ISSUER(", introspection: {clientId: a, clientSecret: c}"),
        ISSUER(", tls: {ca: x}"),
        "auth: {issuers: {j: {url: 'https://i.example'}}}\n",
        "auth: {issuers: {i: {url: 'https://i.example'}, j: {url: 'https://j.example'}}}\n",
        "auth: {issuers: {i: {url: 'https://i.example'}}, scopes: [a]}\n",
        "auth: {issuers: {i: {url: 'https://i.example'}}, implies: {a: b}}\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(auths); i++) {
        char text[1024];
        snprintf(text, sizeof(text), "%s\n\n%s", auths[i], SERVERS); /* other lines */
        const config *one = load(text);
        for (size_t k = 0; k < ARRAY_LEN(auths); k++) {
            snprintf(text, sizeof(text), "%s%s", SERVERS, auths[k]);
            const config *other = load(text);
            assert_int_equal(config_equal_auth(&one->auth, &other->auth), i == k);
            config_free(other);
        }
        config_free(one);
    }
}

typedef struct mistake {
    const char *text;
    const char *report; /* the beginning of its line */
} mistake;

static const mistake mistakes[] = {
    {"publicUrl: gw.example\n", "1: publicUrl: write the address"},
    {"publicUrl: https://gw.example/\n", "1: publicUrl: write the address"},
    {"publicUrl: ftp://gw.example\n", "1: publicUrl: write the address"},
    {"publicUrl: https://a@gw.example\n", "1: publicUrl: write the address"},
    {"publicUrl: https://gw.example?x\n", "1: publicUrl: write the address"},
    {"publicUrl: https://a.example\na2a: {publicUrl: 'https://b.example'}\n",
     "2: a2a.publicUrl differs from publicUrl"},
    {"auth: {}\n", "1: auth demands nothing"},
    {"auth: {scopes: [a]}\n", "1: auth demands nothing"},
    {"auth: {issuers: {}}\n", "1: auth demands nothing"},
    {"auth: [a]\n", "1: auth needs a map of keys"},
    {"auth: {issuers: [a]}\n", "1: auth.issuers needs a map"},
    {"auth: {issuers: {'a b': {url: 'https://i.example'}}}\n",
     "1: auth.issuers: \"a b\" cannot be a name"},
    {"auth: {issuers: {i: {}}}\n", "1: auth.issuers.i: url is missing"},
    {"auth: {issuers: {i: {url: i.example}}}\n", "1: auth.issuers.i.url: write the issuer"},
    {"auth: {issuers: {i: {url: 'http://i.example'}}}\n",
     "1: auth.issuers.i.url: write the issuer"},
    {"auth: {issuers: {i: {url: 'https://u@i.example'}}}\n",
     "1: auth.issuers.i.url: write the issuer"},
    {"auth: {issuers: {i: {audiences: x}}}\n",
     "1: unknown key \"audiences\" in auth.issuers.i: did you mean"},
    {ISSUER(", keys: 'http://i.example/k'"), "1: auth.issuers.i.keys: write a file"},
    {ISSUER(", audience: []"), "1: auth.issuers.i.audience needs"},
    {ISSUER(", audience: ['${EMPTY:-}']"), "1: auth.issuers.i.audience: entry 1 is empty"},
    {ISSUER(", audience: x"), "1: auth.issuers.i.audience needs a list of texts"},
    {ISSUER(", clients: []"), "1: auth.issuers.i.clients needs"},
    {ISSUER(", clients: ['']"), "1: auth.issuers.i.clients: entry 1 is empty"},
    {ISSUER(", algorithms: [ES256, none]"), "1: auth.issuers.i.algorithms: entry 2 is no"},
    {ISSUER(", algorithms: [HS256]"), "1: auth.issuers.i.algorithms: entry 1 is no"},
    {ISSUER(", algorithms: []"), "1: auth.issuers.i.algorithms needs"},
    {ISSUER(", skew: 6m"), "1: auth.issuers.i.skew needs a duration"},
    {ISSUER(", introspection: {clientId: a}"), "1: auth.issuers.i.introspection: clientId and"},
    {ISSUER(", introspection: {always: true}"), "1: auth.issuers.i.introspection: clientId and"},
    {ISSUER(", keys: f, introspection: {clientId: a, clientSecret: b}"),
     "1: auth.issuers.i.introspection: where it is asked"},
    {ISSUER(", header: 'a b'"), "1: auth.issuers.i.header: it cannot name a header"},
    {ISSUER(", header: X-Token"), "1: auth.issuers.i.header: it counts from `trustedProxies`"},
    {ISSUER(", allow: ['10.0.0.0/99']"), "1: auth.issuers.i.allow: "},
    {"auth: {issuers: {i: {url: 'https://i.example'},\n  j: {url: 'https://i.example'}}}\n",
     "2: auth.issuers: \"i\" and \"j\" have one url"},
    {"auth: {issuers: {i: {url: 'https://i.example', introspection: {clientId: a, clientSecret: "
     "b}},\n  j: {url: 'https://j.example', introspection: {clientId: a, clientSecret: b}}}}\n",
     "2: auth.issuers: more than one has introspection"},
    {"auth: {apiKeys: true}\n", "1: auth.apiKeys: keys are kept in a store"},
    {"auth: {certificates: true}\n", "1: auth.certificates: nobody vouches"},
    {"auth: {none: true, apiKeys: true}\nstore: s\n", "1: auth.none: everybody comes in"},
    {"auth: {none: true, scopes: [a]}\n", "1: auth.none: everybody comes in"},
    {"auth: {apiKeys: true, scopes: ['a b']}\nstore: s\n", "1: auth.scopes: entry 1 is no scope"},
    {"auth: {apiKeys: true, scopes: ['a\"']}\nstore: s\n", "1: auth.scopes: entry 1 is no scope"},
    {"auth: {apiKeys: true, implies: {a: ''}}\nstore: s\n", "1: auth.implies: write a scope"},
    {"auth: {apiKeys: true, implies: {a: 'b  c'}}\nstore: s\n", "1: auth.implies: write a scope"},
    {"auth: {apiKeys: true, dpop: accept}\nstore: s\n", "1: auth.dpop: only tokens of issuers"},
    {"auth: {issuers: {i: {url: 'https://i.example'}}, dpopNonces: true}\n",
     "1: auth.dpopNonces: dpop is off"},
#define IDP "issuers: {i: {url: 'https://i.example'}}, "
    {"auth: {" IDP "login: {issuer: j, clientId: w}}\n", "1: auth.login.issuer: write the name"},
    {"auth: {apiKeys: true, login: {clientId: w}}\nstore: s\n",
     "1: auth.login.issuer: write the name"},
    {"auth: {" IDP "login: {issuer: i, clientSecret: s3cr3t}}\n",
     "1: auth.login.clientId: as which"},
    {"auth: {" IDP "login: {issuer: i, clientId: w, scope: email}}\n",
     "1: auth.login.scope: it must have openid"},
    {"auth: {" IDP "login: {issuer: i, clientId: w, session: 1s}}\n",
     "1: auth.login.session needs a duration"},
    {"publicUrl: http://gw.example\nauth: {" IDP "login: {issuer: i, clientId: w}}\n",
     "2: auth.login: publicUrl must be https"},
#define LOGS_IN IDP "login: {issuer: i, clientId: w}, "
    {"auth: {" IDP "proxy: {enabled: true}}\n", "1: auth.proxy: people log in by auth.login"},
    {"auth: {" LOGS_IN "dpop: require, proxy: {enabled: true}}\n",
     "1: auth.proxy: its tokens are bound to no key"},
    {"auth: {" LOGS_IN "proxy: {enabled: true, redirectSchemes: [javascript]}}\n",
     "1: auth.proxy.redirectSchemes: entry 1 is no scheme"},
    {"auth: {" LOGS_IN "proxy: {enabled: true, scopes: ['a b']}}\n",
     "1: auth.proxy.scopes: entry 1 is no scope"},
    {"profiles: {p: {auth: {" LOGS_IN "proxy: {enabled: true}}}}\n",
     "1: profiles.p.auth.login: people log in to the gateway"},
    {"profiles: {p: {auth: {" IDP "login: {issuer: i, clientId: w}}}}\n",
     "1: profiles.p.auth.login: people log in to the gateway"},
    {"profiles: {p: {auth: {}}}\n", "1: profiles.p.auth demands nothing"},
    {"profiles: {p: {auth: {apiKeys: true}}}\n", "1: profiles.p.auth.apiKeys: keys are kept"},
    {"profiles: {p: {auth: {apiKeys: true, issuers: {i: {url: s3cr3t}}}}}\nstore: s\n",
     "1: profiles.p.auth.issuers.i.url: write the issuer"},
};

static void each_mistake_is_told_with_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
        const config *self = NULL;
        config_report report;
        char text[1024];
        char said[8192];
        char wanted[256];
        snprintf(text, sizeof(text), "%s%s", mistakes[i].text, SERVERS);
        bay_err err = testing_load(text, &self, &report);
        report_text(&report, said, sizeof(said));
        snprintf(wanted, sizeof(wanted), "patchbay.yaml:%s", mistakes[i].report);
        if (err != BAY_ERR_SYNTAX || strstr(said, wanted) == NULL) {
            fail_msg("%s\n  wanted %s\n  got    %s", text, wanted, said);
        }
        assert_null(strstr(said, "s3cr3t"));
        assert_null(self);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_it_is_read),
        cmocka_unit_test(a_profile_has_its_own),
        cmocka_unit_test(nothing_is_given_by_default),
        cmocka_unit_test(what_differs_is_seen),
        cmocka_unit_test(each_mistake_is_told_with_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Rules: what is unknown never allows, the order says nothing, and what is not shown cannot be
 * called. Negative cases first. */
#include <stdio.h>

#include "support/rules_rig.h"

#define NOBODY PRINCIPAL_TOKEN, "", "", ""

/* ---- the default and the order ---------------------------------------------------------------- */

static void test_default(void **state)
{
    rules_rig self;
    (void)state;
    rules_begin(&self, POLICY_DENY);
    assert_int_equal(rules_call(&self, "mail.send", "{}"), POLICY_HIDDEN);
    assert_int_equal(rules_list(&self, "mail.send"), POLICY_HIDDEN);
    assert_int_equal(rules_ask(&self, POLICY_METHOD, "", "tools/list", "{}").outcome,
                     POLICY_ALLOWED);
    rules_end(&self);
    rules_begin(&self, POLICY_ALLOW);
    assert_int_equal(rules_call(&self, "mail.send", "{}"), POLICY_ALLOWED);
    rules_end(&self);
}

static void test_deny_wins(void **state)
{
    static const policy_effect orders[][3] = {{POLICY_ALLOW, POLICY_APPROVE, POLICY_DENY},
                                              {POLICY_DENY, POLICY_APPROVE, POLICY_ALLOW},
                                              {POLICY_APPROVE, POLICY_DENY, POLICY_ALLOW},
                                              {POLICY_DENY, POLICY_ALLOW, POLICY_APPROVE}};
    rules_rig self;
    (void)state;
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        rules_begin(&self, POLICY_DENY);
        for (size_t k = 0; k < 3; k++) {
            rules_add(&self, orders[i][k], orders[i][k] == POLICY_DENY ? "a.drop" : "a.*");
        }
        assert_int_equal(rules_call(&self, "a.drop", "{}"), POLICY_HIDDEN);
        assert_int_equal(rules_call(&self, "a.read", "{}"), POLICY_APPROVAL);
        assert_int_equal(rules_list(&self, "a.read"), POLICY_ALLOWED);
        rules_end(&self);
    }
}

static void test_approve_grants_nothing(void **state)
{
    rules_rig self;
    (void)state;
    rules_begin(&self, POLICY_DENY);
    rules_add(&self, POLICY_APPROVE, "a.*");
    assert_int_equal(rules_call(&self, "a.pay", "{}"), POLICY_HIDDEN);
    rules_add(&self, POLICY_ALLOW, "a.pay");
    rules_if(&self, POLICY_ARGUMENT, "/amount", "lt", "10");
    rules_add(&self, POLICY_APPROVE, "a.pay");
    rules_if(&self, POLICY_ARGUMENT, "/amount", "gt", "1");
    assert_int_equal(rules_call(&self, "a.pay", "{\"amount\":20}"), POLICY_DENIED);
    assert_int_equal(rules_call(&self, "a.pay", "{\"amount\":5}"), POLICY_APPROVAL);
    rules_end(&self);
}

/* ---- unknown ---------------------------------------------------------------------------------- */

static void test_unknown_never_allows(void **state)
{
    static const char *const unclear[] = {
        "{}",
        "{\"path\":7}",
        "{\"path\":null}",
        "{\"path\":[\"/srv/a\"]}",
        "{\"path\":{\"path\":\"/srv/a\"}}",
        "{\"path\":\"/srv/a\",\"path\":\"/etc/passwd\"}",
        "{\"path\":\"/srv/a\",\"Path\":\"/etc/passwd\"}",
        "{\"path\":\"/srv/a\",\"p\\u0061th\":\"/etc/passwd\"}",
        "{\"PATH\":\"/srv/a\"}",
        "{\"path\":\"/srv/../etc/passwd\"}",
        "{\"path\":\"/srv/%2e%2e/etc/passwd\"}",
        "{\"path\":\"/srv/..%2fetc\"}",
        "{\"path\":\"/srv/..\\\\etc\"}",
        "{\"path\":\"/srv/a/..\"}",
        "{\"path\":\"/srv/./a\"}",
        "{\"path\":\"/srv/a\\u0000b\"}",
        "{\"path\":\"/srv/\\ud800\"}",
        "{},\"arguments\":{\"path\":\"/srv/a\"}",
        "{\"path\":\"/srv/a\"},\"arguments\":{}",
    };
    rules_rig self;
    (void)state;
    for (size_t i = 0; i < sizeof(unclear) / sizeof(unclear[0]); i++) {
        if (strstr(unclear[i], "ud800") != NULL) {
            continue; /* the reader refuses it */
        }
        rules_begin(&self, POLICY_DENY);
        rules_add(&self, POLICY_ALLOW, "files.*");
        rules_if(&self, POLICY_ARGUMENT, "/path", "prefix", "/srv/");
        assert_int_equal(rules_call(&self, "files.read", unclear[i]), POLICY_DENIED);
        assert_int_equal(rules_call(&self, "files.read", "{\"path\":\"/srv/a..b\"}"),
                         POLICY_ALLOWED);
        rules_end(&self);
        rules_begin(&self, POLICY_ALLOW);
        rules_add(&self, POLICY_DENY, "files.*");
        rules_if(&self, POLICY_ARGUMENT, "/path", "prefix", "/etc/");
        assert_int_equal(rules_call(&self, "files.read", unclear[i]), POLICY_DENIED);
        assert_int_equal(rules_call(&self, "files.read", "{\"path\":\"/srv/a\"}"), POLICY_ALLOWED);
        rules_end(&self);
        rules_begin(&self, POLICY_ALLOW);
        rules_add(&self, POLICY_APPROVE, "files.*");
        rules_if(&self, POLICY_ARGUMENT, "/path", "prefix", "/etc/");
        assert_int_equal(rules_call(&self, "files.read", unclear[i]), POLICY_APPROVAL);
        rules_end(&self);
    }
}

static void test_unknown_principal(void **state)
{
    rules_rig self;
    (void)state;
    rules_begin(&self, POLICY_ALLOW);
    rules_add(&self, POLICY_DENY, "a.*");
    rules_if(&self, POLICY_CLAIM, "/role", "", "guest");
    rules_add(&self, POLICY_DENY, "b.*");
    rules_if(&self, POLICY_ADDRESS, "", "", "10.0.0.0/8");
    rules_add(&self, POLICY_DENY, "c.*");
    rules_if(&self, POLICY_HEADER, "X-Org", "", "evil");
    rules_add(&self, POLICY_DENY, "d.*");
    rules_if(&self, POLICY_CERTIFICATE, "", "glob", "spiffe://x/*");
    const char *const names[] = {"a.x", "b.x", "c.x", "d.x"};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(rules_call(&self, names[i], "{}"), POLICY_HIDDEN);
    }
    rules_as(&self, PRINCIPAL_TOKEN, "ann", "", "{\"role\":\"staff\"}");
    rules_from(&self, "192.0.2.1");
    rules_header(&self, "x-org", "good");
    assert_int_equal(rules_call(&self, "a.x", "{}"), POLICY_ALLOWED);
    assert_int_equal(rules_call(&self, "b.x", "{}"), POLICY_ALLOWED);
    assert_int_equal(rules_call(&self, "c.x", "{}"), POLICY_ALLOWED);
    assert_int_equal(rules_call(&self, "d.x", "{}"), POLICY_HIDDEN);
    self.headers[0].is_twice = true;
    assert_int_equal(rules_call(&self, "c.x", "{}"), POLICY_HIDDEN);
    rules_end(&self);
}

/* ---- the 19 forms of rules that people write -------------------------------------------------- */

typedef struct form {
    int number;
    policy_effect fallback;
    policy_effect effect;
    const char *about;
    const char *server;
    struct {
        policy_field field;
        const char *key, *op, *values;
    } tests[3];
    const char *name;   /* that is asked for */
    const char *claims; /* of the principal */
    const char *scopes;
    const char *arguments; /* of the call */
    policy_outcome yes;
    const char *other_name; /* the same with one thing else: NULL is the same */
    const char *other_claims;
    const char *other_scopes;
    const char *other_arguments;
    policy_outcome no;
} form;

#define ALLOWS POLICY_DENY, POLICY_ALLOW
#define DENIES POLICY_ALLOW, POLICY_DENY

static const form forms[] = {
    {1,
     ALLOWS,
     "a.x",
     NULL,
     {{0}},
     "a.x",
     "{}",
     "",
     "{}",
     POLICY_ALLOWED,
     "a.y",
     NULL,
     NULL,
     NULL,
     POLICY_HIDDEN},
    {2,
     ALLOWS,
     "a.x",
     NULL,
     {{POLICY_SUBJECT, "", "", "ann"}},
     "a.x",
     "{}",
     "",
     "{}",
     POLICY_ALLOWED,
     "a.y",
     NULL,
     NULL,
     NULL,
     POLICY_HIDDEN},
    {3,
     ALLOWS,
     "a.x",
     NULL,
     {{POLICY_CLAIM, "/a/b", "", "v"}},
     "a.x",
     "{\"a\":{\"b\":\"v\"}}",
     "",
     "{}",
     POLICY_ALLOWED,
     NULL,
     "{\"a.b\":\"v\"}",
     NULL,
     NULL,
     POLICY_HIDDEN},
    {4,
     ALLOWS,
     "a.*",
     NULL,
     {{POLICY_CLAIM, "/roles", "has", "ops"}},
     "a.x",
     "{\"roles\":[\"dev\",\"ops\"]}",
     "",
     "{}",
     POLICY_ALLOWED,
     NULL,
     "{\"roles\":[\"ops2\"]}",
     NULL,
     NULL,
     POLICY_HIDDEN},
    {5,
     ALLOWS,
     "a.*",
     NULL,
     {{POLICY_CLAIM, "/email", "suffix", "@acme.example"}},
     "a.x",
     "{\"email\":\"ann@acme.example\"}",
     "",
     "{}",
     POLICY_ALLOWED,
     NULL,
     "{\"email\":\"ann@acme.example.evil\"}",
     NULL,
     NULL,
     POLICY_HIDDEN},
    {6,
     ALLOWS,
     "*",
     "a",
     {{POLICY_CLAIM, "/roles", "has", "ops"}, {POLICY_CLAIM, "/sub", "exists", "true"}},
     "a.x",
     "{\"sub\":\"ann\",\"roles\":[\"ops\"]}",
     "",
     "{}",
     POLICY_ALLOWED,
     NULL,
     "{\"roles\":[\"ops\"]}",
     NULL,
     NULL,
     POLICY_HIDDEN},
    {11,
     ALLOWS,
     "a.x a.y",
     NULL,
     {{0}},
     "a.y",
     "{}",
     "",
     "{}",
     POLICY_ALLOWED,
     "a.z",
     NULL,
     NULL,
     NULL,
     POLICY_HIDDEN},
    {10,
     ALLOWS,
     "kubectl* helm*",
     NULL,
     {{0}},
     "helm_list",
     "{}",
     "",
     "{}",
     POLICY_ALLOWED,
     "rm_helm",
     NULL,
     NULL,
     NULL,
     POLICY_HIDDEN},
    {12,
     ALLOWS,
     "a.*",
     "a",
     {{POLICY_SCOPES, "", "", "r|w"}},
     "a.x",
     "{}",
     "w r",
     "{}",
     POLICY_ALLOWED,
     NULL,
     NULL,
     "w",
     NULL,
     POLICY_LOCKED},
    {13,
     ALLOWS,
     "a.*",
     NULL,
     {{POLICY_CLAIM, "/tenant", "in", "t1|t2"}, {POLICY_CLAIM, "/org/departments", "any", "hr|it"}},
     "a.x",
     "{\"tenant\":\"t2\",\"org\":{\"departments\":[\"it\"]}}",
     "",
     "{}",
     POLICY_ALLOWED,
     NULL,
     "{\"tenant\":\"t2\",\"org\":{\"departments\":[\"pr\"]}}",
     NULL,
     NULL,
     POLICY_HIDDEN},
    {14,
     ALLOWS,
     "a.*",
     NULL,
     {{POLICY_ARGUMENT, "/text", "regex", "[a-z]+"}, {POLICY_HEADER, "X-Org", "", "acme"}},
     "a.x",
     "{}",
     "",
     "{\"text\":\"abc\"}",
     POLICY_ALLOWED,
     NULL,
     NULL,
     NULL,
     "{\"text\":\"abc1\"}",
     POLICY_DENIED},
    {15,
     ALLOWS,
     "a.*",
     NULL,
     {{POLICY_ARGUMENT, "/url", "prefix", "https://docs.example/"}},
     "a.x",
     "{}",
     "",
     "{\"url\":\"https://docs.example/a\"}",
     POLICY_ALLOWED,
     NULL,
     NULL,
     NULL,
     "{\"url\":\"https://docs.example.evil/a\"}",
     POLICY_DENIED},
    {15,
     ALLOWS,
     "a.*",
     NULL,
     {{POLICY_ARGUMENT, "/url", "host", "docs.example|*.docs.example"}},
     "a.x",
     "{}",
     "",
     "{\"url\":\"https://A.Docs.example./a\"}",
     POLICY_ALLOWED,
     NULL,
     NULL,
     NULL,
     "{\"url\":\"https://docs.example@evil/a\"}",
     POLICY_DENIED},
    {16,
     ALLOWS,
     "a.*",
     NULL,
     {{POLICY_ARGUMENT, "/foo", "gt", "10"}},
     "a.x",
     "{}",
     "",
     "{\"foo\":10.5}",
     POLICY_ALLOWED,
     NULL,
     NULL,
     NULL,
     "{\"foo\":\"11\"}",
     POLICY_DENIED},
    {19,
     DENIES,
     "*delete*",
     NULL,
     {{0}},
     "a.delete_all",
     "{}",
     "",
     "{}",
     POLICY_HIDDEN,
     "a.list",
     NULL,
     NULL,
     NULL,
     POLICY_ALLOWED},
};

static void make_form(rules_rig *self, const form *of)
{
    rules_begin(self, of->fallback);
    rules_add(self, of->effect, of->about);
    if (of->server != NULL) {
        assert_int_equal(policy_rule_server(self->rules, self->last, str_of(of->server)), BAY_OK);
    }
    for (size_t i = 0; i < 3 && of->tests[i].values != NULL; i++) {
        rules_if(self, of->tests[i].field, of->tests[i].key, of->tests[i].op, of->tests[i].values);
    }
    rules_header(self, "x-org", "acme");
}

static const char *either(const char *other, const char *usual)
{
    return other != NULL ? other : usual;
}

static void test_forms(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        const form *of = &forms[i];
        rules_rig self;
        if (of->tests[0].op != NULL && !rules_can(of->tests[0].op)) {
            continue;
        }
        make_form(&self, of);
        rules_as(&self, PRINCIPAL_TOKEN, "ann", of->scopes, of->claims);
        if (rules_call(&self, of->name, of->arguments) != of->yes) {
            fail_msg("form %d", of->number);
        }
        rules_as(&self, PRINCIPAL_TOKEN, "ann", either(of->other_scopes, of->scopes),
                 either(of->other_claims, of->claims));
        if (rules_call(&self, either(of->other_name, of->name),
                       either(of->other_arguments, of->arguments)) != of->no) {
            fail_msg("form %d is too wide", of->number);
        }
        rules_end(&self);
    }
}

/* 2: of another subject; 7 and 8: from networks, and not from one address; 9: by a header field. */
static void test_forms_of_origin(void **state)
{
    rules_rig self;
    (void)state;
    rules_begin(&self, POLICY_DENY);
    rules_add(&self, POLICY_ALLOW, "a.*");
    rules_if(&self, POLICY_ADDRESS, "", "", "10.0.0.0/8|fd00::/8");
    rules_add(&self, POLICY_DENY, "*");
    rules_if(&self, POLICY_ADDRESS, "", "", "10.0.0.66");
    rules_add(&self, POLICY_ALLOW, "b.*");
    rules_if(&self, POLICY_HEADER, "X-Org", "", "acme");
    rules_add(&self, POLICY_ALLOW, "c.x");
    rules_if(&self, POLICY_SUBJECT, "", "", "ann");
    assert_int_equal(rules_call(&self, "a.x", "{}"), POLICY_HIDDEN);
    rules_from(&self, "192.0.2.1");
    assert_int_equal(rules_call(&self, "a.x", "{}"), POLICY_HIDDEN);
    rules_from(&self, "10.0.0.66");
    assert_int_equal(rules_call(&self, "a.x", "{}"), POLICY_HIDDEN);
    rules_from(&self, "10.0.0.67");
    assert_int_equal(rules_call(&self, "a.x", "{}"), POLICY_ALLOWED);
    rules_from(&self, "fd00::1");
    assert_int_equal(rules_call(&self, "a.x", "{}"), POLICY_ALLOWED);
    assert_int_equal(rules_call(&self, "b.x", "{}"), POLICY_HIDDEN);
    rules_header(&self, "x-org", "acme");
    assert_int_equal(rules_call(&self, "b.x", "{}"), POLICY_ALLOWED);
    rules_as(&self, PRINCIPAL_TOKEN, "bob", "", "{}");
    assert_int_equal(rules_call(&self, "c.x", "{}"), POLICY_HIDDEN);
    rules_as(&self, PRINCIPAL_TOKEN, "ann", "", "{}");
    assert_int_equal(rules_call(&self, "c.x", "{}"), POLICY_ALLOWED);
    rules_end(&self);
}

/* 17: lists for one issuer alone. Without such a rule lists are there, and hold what may be called.
 */
static void test_form_of_method(void **state)
{
    rules_rig self;
    (void)state;
    rules_begin(&self, POLICY_DENY);
    rules_add(&self, POLICY_ALLOW, "*");
    assert_int_equal(policy_rule_method(self.rules, self.last, STR("*/list")), BAY_OK);
    rules_if(&self, POLICY_ISSUER, "", "", "https://login.example");
    assert_int_equal(rules_ask(&self, POLICY_METHOD, "", "tools/list", "{}").outcome,
                     POLICY_HIDDEN);
    assert_int_equal(rules_ask(&self, POLICY_METHOD, "", "tasks/get", "{}").outcome,
                     POLICY_ALLOWED);
    rules_as(&self, PRINCIPAL_TOKEN, "ann", "", "{}");
    assert_int_equal(rules_ask(&self, POLICY_METHOD, "", "tools/list", "{}").outcome,
                     POLICY_ALLOWED);
    assert_int_equal(rules_call(&self, "a.x", "{}"), POLICY_HIDDEN);
    rules_end(&self);
}

/* 18: the identity of a certificate. */
static void test_form_of_certificate(void **state)
{
    rules_rig self;
    (void)state;
    rules_begin(&self, POLICY_DENY);
    rules_add(&self, POLICY_ALLOW, "a.*");
    rules_if(&self, POLICY_CERTIFICATE, "", "glob", "spiffe://acme.example/ci/*");
    rules_as(&self, PRINCIPAL_TOKEN, "spiffe://acme.example/ci/1", "", "{}");
    assert_int_equal(rules_call(&self, "a.x", "{}"), POLICY_HIDDEN);
    rules_as(&self, PRINCIPAL_CERTIFICATE, "spiffe://acme.example/web", "", "{}");
    assert_int_equal(rules_call(&self, "a.x", "{}"), POLICY_HIDDEN);
    rules_as(&self, PRINCIPAL_CERTIFICATE, "spiffe://acme.example/ci/1", "", "{}");
    assert_int_equal(rules_call(&self, "a.x", "{}"), POLICY_ALLOWED);
    rules_end(&self);
}

/* ---- operators -------------------------------------------------------------------------------- */

static void test_operators(void **state)
{
    static const struct {
        const char *op, *values, *value;
        policy_outcome outcome; /* of a rule that allows, where the default is to deny */
    } rows[] = {
        {"eq", "10", "10", POLICY_ALLOWED},
        {"eq", "10", "1e1", POLICY_ALLOWED},
        {"eq", "10", "\"10\"", POLICY_ALLOWED},
        {"eq", "10", "10.5", POLICY_DENIED},
        {"eq", "true", "true", POLICY_ALLOWED},
        {"eq", "a", "[\"a\"]", POLICY_DENIED},
        {"in", "a|b", "\"b\"", POLICY_ALLOWED},
        {"in", "a|b", "\"B\"", POLICY_DENIED},
        {"has", "a|b", "[\"b\",\"a\"]", POLICY_ALLOWED},
        {"has", "a|b", "[\"b\"]", POLICY_DENIED},
        {"has", "a", "\"a\"", POLICY_ALLOWED},
        {"any", "a|b", "[\"x\",\"b\"]", POLICY_ALLOWED},
        {"any", "a|b", "{\"a\":1}", POLICY_DENIED},
        {"any", "a|b", "[]", POLICY_DENIED},
        {"suffix", ".txt", "\"a.txt\"", POLICY_ALLOWED},
        {"suffix", ".txt", "\"a.txt.exe\"", POLICY_DENIED},
        {"glob", "/srv/*.txt", "\"/srv/a.txt\"", POLICY_ALLOWED},
        {"glob", "/srv/*.txt", "\"/srv/../a.txt\"", POLICY_DENIED},
        {"regex", "a|b", "\"b\"", POLICY_ALLOWED},
        {"regex", "a", "\"ab\"", POLICY_DENIED},
        {"regex", "a", "\"a\\n\"", POLICY_DENIED},
        {"regex", "(a+)+", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\"", POLICY_DENIED},
        {"lt", "10", "9", POLICY_ALLOWED},
        {"lt", "10", "10", POLICY_DENIED},
        {"le", "10", "10", POLICY_ALLOWED},
        {"ge", "10", "10", POLICY_ALLOWED},
        {"ge", "9007199254740993", "9007199254740992", POLICY_DENIED},
        {"gt", "10", "true", POLICY_DENIED},
        {"cidr", "10.0.0.0/8", "\"10.1.2.3\"", POLICY_ALLOWED},
        {"cidr", "10.0.0.0/8", "\"::ffff:10.1.2.3\"", POLICY_ALLOWED},
        {"cidr", "10.0.0.0/8", "\"010.1.2.3\"", POLICY_DENIED},
        {"host", "good.example", "\"https://good.example/\"", POLICY_ALLOWED},
        {"host", "good.example", "\"https://GOOD.example.:8443/x\"", POLICY_ALLOWED},
        {"host", "good.example", "\"https://good.example@evil.example/\"", POLICY_DENIED},
        {"host", "good.example", "\"https://evil.example/#@good.example\"", POLICY_DENIED},
        {"host", "good.example", "\"https://evil.example\\\\@good.example/\"", POLICY_DENIED},
        {"host", "good.example", "\"//good.example/\"", POLICY_DENIED},
        {"host", "*", "\"http://2130706433/\"", POLICY_DENIED},
        {"host", "*", "\"http://127.1/\"", POLICY_DENIED},
        {"host", "127.0.0.1", "\"http://127.0.0.1/\"", POLICY_ALLOWED},
        {"exists", "true", "null", POLICY_ALLOWED},
        {"exists", "false", "null", POLICY_DENIED},
        {"sameAs", "/sub", "\"ann\"", POLICY_ALLOWED},
        {"sameAs", "/sub", "\"bob\"", POLICY_DENIED},
        {"sameAs", "/n", "7.0", POLICY_ALLOWED},
        {"sameAs", "/none", "\"ann\"", POLICY_DENIED},
    };
    rules_rig self;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char arguments[256];
        if (!rules_can(rows[i].op)) {
            continue;
        }
        rules_begin(&self, POLICY_DENY);
        rules_as(&self, PRINCIPAL_TOKEN, "ann", "", "{\"sub\":\"ann\",\"n\":7}");
        rules_add(&self, POLICY_ALLOW, "a.*");
        rules_if(&self, POLICY_ARGUMENT, "/v", rows[i].op, rows[i].values);
        snprintf(arguments, sizeof(arguments), "{\"v\":%s}", rows[i].value);
        if (rules_call(&self, "a.x", arguments) != rows[i].outcome) {
            fail_msg("%s %s of %s", rows[i].op, rows[i].values, rows[i].value);
        }
        rules_end(&self);
    }
}

/* What cannot be compared must not pass by a rule that denies either. */
static void test_operators_that_deny(void **state)
{
    static const struct {
        const char *op, *values, *value;
        policy_outcome outcome;
    } rows[] = {
        {"host", "evil.example", "\"https://good.example@evil.example/\"", POLICY_DENIED},
        {"host", "evil.example", "\"https://EVIL.example./\"", POLICY_DENIED},
        {"host", "127.0.0.1", "\"http://0x7f.1/\"", POLICY_DENIED},
        {"host", "127.0.0.1", "\"http://good.example/\"", POLICY_ALLOWED},
        {"gt", "1000", "\"2000\"", POLICY_DENIED},
        {"gt", "1000", "1e99999", POLICY_DENIED},
        {"gt", "1000", "5", POLICY_ALLOWED},
        {"regex", "(a+)+", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\"", POLICY_DENIED},
        {"exists", "true", "1", POLICY_DENIED},
        {"exists", "false", "1", POLICY_ALLOWED},
    };
    rules_rig self;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char arguments[256];
        if (!rules_can(rows[i].op)) {
            continue;
        }
        rules_begin(&self, POLICY_ALLOW);
        rules_add(&self, POLICY_DENY, "a.*");
        rules_if(&self, POLICY_ARGUMENT, "/v", rows[i].op, rows[i].values);
        snprintf(arguments, sizeof(arguments), "{\"v\":%s}", rows[i].value);
        policy_outcome outcome = rules_call(&self, "a.x", arguments);
        bool may_be_either = strcmp(rows[i].op, "regex") == 0 && outcome == POLICY_ALLOWED;
        if (outcome != rows[i].outcome && !may_be_either) {
            fail_msg("%s %s of %s", rows[i].op, rows[i].values, rows[i].value);
        }
        rules_end(&self);
    }
}

/* ---- scopes, kinds, names --------------------------------------------------------------------- */

static void test_locked(void **state)
{
    rules_rig self;
    (void)state;
    rules_begin(&self, POLICY_DENY);
    rules_add(&self, POLICY_ALLOW, "a.*");
    rules_if(&self, POLICY_SCOPES, "", "", "r|w|x");
    rules_add(&self, POLICY_ALLOW, "a.*");
    rules_if(&self, POLICY_SCOPES, "", "", "admin");
    rules_add(&self, POLICY_ALLOW, "b.*");
    rules_if(&self, POLICY_SCOPES, "", "", "w");
    rules_if(&self, POLICY_CLAIM, "/role", "", "ops");
    assert_int_equal(rules_list(&self, "a.x"), POLICY_HIDDEN); /* nobody can get scopes */
    rules_as(&self, PRINCIPAL_KEY, "ann", "", "{}");
    assert_int_equal(rules_list(&self, "a.x"), POLICY_HIDDEN);
    rules_as(&self, PRINCIPAL_TOKEN, "ann", "r", "{}");
    policy_decision decision = rules_ask(&self, POLICY_TOOL, "a.x", "tools/call", "{}");
    assert_int_equal(decision.outcome, POLICY_LOCKED);
    assert_true(str_eq(decision.scopes, STR("admin")));
    assert_int_equal(rules_list(&self, "b.x"), POLICY_HIDDEN); /* it is not the scope alone */
    rules_add(&self, POLICY_DENY, "a.*");
    rules_if(&self, POLICY_SCOPES, "", "", "admin");
    rules_end(&self);
}

/* With the scope a rule that denies would hold: there is nothing to log in for. */
static void test_locked_for_good(void **state)
{
    rules_rig self;
    (void)state;
    rules_begin(&self, POLICY_DENY);
    rules_add(&self, POLICY_ALLOW, "a.*");
    rules_if(&self, POLICY_SCOPES, "", "", "admin");
    rules_add(&self, POLICY_DENY, "a.*");
    rules_if(&self, POLICY_SCOPES, "", "", "admin");
    rules_as(&self, PRINCIPAL_TOKEN, "ann", "", "{}");
    assert_int_equal(rules_list(&self, "a.x"), POLICY_HIDDEN);
    rules_end(&self);
}

static void test_groups(void **state)
{
    rules_rig self;
    policy_group *group;
    bay_diag diag = {0};
    bay_str ops = STR("ops");
    policy_test member = {POLICY_CLAIM, STR("/groups"), STR("has"), &ops, 1};
    (void)state;
    rules_begin(&self, POLICY_DENY);
    assert_int_equal(policy_rules_group(self.rules, STR("operators"), &group), BAY_OK);
    assert_int_equal(policy_group_if(self.rules, group, &member, &diag), BAY_OK);
    rules_add(&self, POLICY_ALLOW, "a.*");
    assert_int_equal(rules_try_if(&self, POLICY_GROUP, "", "", "operator", &diag), BAY_ERR_SYNTAX);
    assert_non_null(strstr(diag.text, "did you mean \"operators\"?"));
    rules_if(&self, POLICY_GROUP, "", "", "operators");
    rules_as(&self, PRINCIPAL_TOKEN, "ann", "", "{\"groups\":[\"dev\"]}");
    assert_int_equal(rules_call(&self, "a.x", "{}"), POLICY_HIDDEN);
    rules_as(&self, PRINCIPAL_TOKEN, "ann", "", "{\"groups\":[\"dev\",\"ops\"]}");
    assert_int_equal(rules_call(&self, "a.x", "{}"), POLICY_ALLOWED);
    rules_end(&self);
}

static void test_kinds(void **state)
{
    rules_rig self;
    (void)state;
    rules_begin(&self, POLICY_DENY);
    rules_add(&self, POLICY_ALLOW, "* prompt:a.* resource:file:///srv/* agent:research");
    rules_add(&self, POLICY_DENY, "resource:file:///srv/secret/*");
    const char *const read = "resources/read";
    assert_int_equal(rules_ask(&self, POLICY_PROMPT, "b.p", "prompts/get", "{}").outcome,
                     POLICY_HIDDEN);
    assert_int_equal(rules_ask(&self, POLICY_PROMPT, "a.p", "prompts/get", "{}").outcome,
                     POLICY_ALLOWED);
    assert_int_equal(rules_ask(&self, POLICY_AGENT, "other", "SendMessage", "{}").outcome,
                     POLICY_HIDDEN);
    assert_int_equal(rules_ask(&self, POLICY_AGENT, "research", "SendMessage", "{}").outcome,
                     POLICY_ALLOWED);
    static const char *const hidden[] = {
        "file:///srv/secret/a",      "file:///srv/%73ecret/a",      "file:///srv/a/../secret/a",
        "file:///srv/../etc/passwd", "file://localhost/etc/passwd", "FILE:///srv/secret/a",
        "file:///srv//secret/a",     "file:/srv/secret/a",
    };
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
        if (rules_ask(&self, POLICY_RESOURCE, hidden[i], read, "{}").outcome != POLICY_HIDDEN) {
            fail_msg("%s", hidden[i]);
        }
    }
    assert_int_equal(rules_ask(&self, POLICY_RESOURCE, "file:///srv/a", read, "{}").outcome,
                     POLICY_ALLOWED);
    assert_int_equal(rules_ask(&self, POLICY_TEMPLATE, "file:///{path}", read, NULL).outcome,
                     POLICY_ALLOWED); /* some of what it expands to */
    rules_end(&self);
    rules_begin(&self, POLICY_ALLOW);
    rules_add(&self, POLICY_DENY, "resource:file:///srv/*");
    assert_int_equal(rules_ask(&self, POLICY_TEMPLATE, "file:///{path}", read, NULL).outcome,
                     POLICY_ALLOWED);
    rules_add(&self, POLICY_DENY, "resource:*");
    assert_int_equal(rules_ask(&self, POLICY_TEMPLATE, "file:///{path}", read, NULL).outcome,
                     POLICY_HIDDEN);
    rules_end(&self);
}

/* Two names that some server takes for one, of which nobody can say which it reads. */
static void test_names_in_another_case(void **state)
{
    static const char *const unclear[] = {"{\"task\":1,\"Task\":2}",
                                          "{\"task\":1,\"ta\xc5\xbfk\":2}",
                                          "{\"task\":1,\"tas\\u212a\":2}", "{\"ta\xc5\xbfk\":1}"};
    rules_rig self;
    (void)state;
    rules_begin(&self, POLICY_DENY);
    rules_add(&self, POLICY_ALLOW, "a.x");
    rules_if(&self, POLICY_ARGUMENT, "/task", "eq", "1");
    assert_int_equal(rules_call(&self, "a.x", "{\"task\":1}"), POLICY_ALLOWED);
    for (size_t i = 0; i < sizeof(unclear) / sizeof(unclear[0]); i++) {
        assert_int_equal(rules_call(&self, "a.x", unclear[i]), POLICY_DENIED);
    }
    rules_end(&self);
}

/* A template is there if what it begins with is also how something that is allowed begins. */
static void test_templates(void **state)
{
    static const char *const shown[] = {"f:/srv/{path}", "f:/{path}", "{+uri}", "f:/srv/a/{x}"};
    static const char *const hidden[] = {"db:/{table}", "f:/s/{path}", "f:/srw{path}"};
    const char *read = "resources/read";
    rules_rig self;
    (void)state;
    rules_begin(&self, POLICY_DENY);
    rules_add(&self, POLICY_ALLOW, "resource:f:/srv/*");
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        assert_int_equal(rules_ask(&self, POLICY_TEMPLATE, shown[i], read, NULL).outcome,
                         POLICY_ALLOWED);
    }
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
        assert_int_equal(rules_ask(&self, POLICY_TEMPLATE, hidden[i], read, NULL).outcome,
                         POLICY_HIDDEN);
    }
    rules_end(&self);
}

/* What a skill consists of is read as resources. */
static void test_skills(void **state)
{
    const char *read = "resources/read";
    rules_rig self;
    (void)state;
    rules_begin(&self, POLICY_ALLOW);
    rules_add(&self, POLICY_DENY, "skill:skill://x/*");
    static const char *const hidden[] = {"skill://x/SKILL.md", "SKILL://X/y/../SKILL.md",
                                         "skill://%78/SKILL.md"};
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
        assert_int_equal(rules_ask(&self, POLICY_RESOURCE, hidden[i], read, "{}").outcome,
                         POLICY_HIDDEN);
    }
    assert_int_equal(rules_ask(&self, POLICY_RESOURCE, "skill://y/a", read, "{}").outcome,
                     POLICY_ALLOWED);
    rules_add(&self, POLICY_DENY, "skill:*");
    assert_int_equal(rules_ask(&self, POLICY_RESOURCE, "skill://y/a", read, "{}").outcome,
                     POLICY_HIDDEN);
    assert_int_equal(rules_ask(&self, POLICY_RESOURCE, "file:///a", read, "{}").outcome,
                     POLICY_ALLOWED);
    assert_int_equal(rules_ask(&self, POLICY_TEMPLATE, "file:///{a}", read, NULL).outcome,
                     POLICY_ALLOWED);
    /* which file a completion would name is to come */
    const char *complete = "completion/complete";
    static const char *const open[] = {"skill://{name}/{file}", "SKILL://x/{file}", "{+uri}"};
    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
        assert_int_equal(rules_ask(&self, POLICY_TEMPLATE, open[i], complete, "{}").outcome,
                         POLICY_DENIED);
    }
    assert_int_equal(rules_ask(&self, POLICY_TEMPLATE, "file:///{a}", complete, "{}").outcome,
                     POLICY_ALLOWED);
    rules_end(&self);
    rules_begin(&self, POLICY_DENY);
    rules_add(&self, POLICY_ALLOW, "skill:*");
    assert_int_equal(rules_ask(&self, POLICY_RESOURCE, "skill://y/a", read, "{}").outcome,
                     POLICY_HIDDEN); /* to allow a skill allows no resource */
    rules_end(&self);
}

/* ---- what is wrong in a file ------------------------------------------------------------------ */

static void test_errors(void **state)
{
    static const struct {
        policy_field field;
        const char *key, *op, *values, *says;
    } rows[] = {
        {POLICY_ARGUMENT, "path", "eq", "x", "\"path\" is no pointer"},
        {POLICY_CLAIM, "/a~2", "eq", "x", "a ~ in a pointer"},
        {POLICY_ARGUMENT, "/a", "prefx", "x", "did you mean \"prefix\"?"},
        {POLICY_ARGUMENT, "/a", "gt", "ten", "compares with a number"},
        {POLICY_ARGUMENT, "/a", "gt", "1|2", "takes one number"},
        {POLICY_ARGUMENT, "/a", "lt", "01", "compares with a number"},
        {POLICY_ARGUMENT, "/a", "regex", "(", "no regular expression"},
        {POLICY_ARGUMENT, "/a", "regex", "a)(b", "no regular expression"},
        {POLICY_ARGUMENT, "/a", "cidr", "10.0.0.0/33", "no network"},
        {POLICY_ARGUMENT, "/a", "exists", "yes", "true or false"},
        {POLICY_ARGUMENT, "/a", "prefix", "", "not empty"},
        {POLICY_ARGUMENT, "/a", "prefix", "https://docs.example", "other hosts"},
        {POLICY_ARGUMENT, "/a", "sameAs", "sub", "by its pointer"},
        {POLICY_ADDRESS, "", "", "here", "no network"},
        {POLICY_GROUP, "", "", "ops", "write it below groups"},
    };
    rules_rig self;
    (void)state;
    rules_begin(&self, POLICY_DENY);
    rules_add(&self, POLICY_ALLOW, "a.*");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bay_diag diag = {0};
        if (rules_try_if(&self, rows[i].field, rows[i].key, rows[i].op, rows[i].values, &diag) !=
                BAY_ERR_SYNTAX ||
            strstr(diag.text, rows[i].says) == NULL) {
            fail_msg("%s %s: %s", rows[i].op, rows[i].values, diag.text);
        }
    }
    bay_diag diag = {0};
    assert_int_equal(policy_rule_about(self.rules, self.last, STR("agnet:x"), STR("."), &diag),
                     BAY_ERR_SYNTAX);
    assert_non_null(strstr(diag.text, "did you mean \"agent:\"?"));
    assert_int_equal(policy_rule_about(self.rules, self.last, STR("a:x"), STR(":"), &diag), BAY_OK);
    assert_int_equal(policy_rule_about(self.rules, self.last, STR("prompt:"), STR("."), &diag),
                     BAY_ERR_SYNTAX);
    rules_end(&self);
}

static void test_bounds(void **state)
{
    rules_rig self;
    (void)state;
    rules_begin(&self, POLICY_DENY);
    rules_add(&self, POLICY_ALLOW, "a.*");
    for (int i = 0; i < POLICY_CONDITIONS; i++) {
        rules_if(&self, POLICY_ARGUMENT, "/a", "eq", "x");
    }
    assert_int_equal(rules_try_if(&self, POLICY_ARGUMENT, "/a", "eq", "x", NULL), BAY_ERR_LIMIT);
    for (int i = 1; i < POLICY_RULES; i++) {
        rules_add(&self, POLICY_DENY, "b.*");
    }
    policy_rule *rule;
    assert_int_equal(policy_rules_add(self.rules, POLICY_DENY, 1, STR(""), &rule), BAY_ERR_LIMIT);
    assert_int_equal(rules_call(&self, "a.x", "{\"a\":\"x\"}"), POLICY_ALLOWED);
    assert_int_equal(rules_call(&self, "b.x", "{}"), POLICY_HIDDEN);
    rules_end(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default),
        cmocka_unit_test(test_deny_wins),
        cmocka_unit_test(test_approve_grants_nothing),
        cmocka_unit_test(test_unknown_never_allows),
        cmocka_unit_test(test_unknown_principal),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_forms_of_origin),
        cmocka_unit_test(test_form_of_method),
        cmocka_unit_test(test_form_of_certificate),
        cmocka_unit_test(test_operators),
        cmocka_unit_test(test_operators_that_deny),
        cmocka_unit_test(test_locked),
        cmocka_unit_test(test_locked_for_good),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_names_in_another_case),
        cmocka_unit_test(test_templates),
        cmocka_unit_test(test_skills),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

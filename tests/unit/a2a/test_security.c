/* What a card says of security, and requests that do not satisfy it: nothing opens by mistake. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "a2a/security.h"
#include "base/str.h"
#include "support/failing_memory.h"

#define SCHEMES                                                                                    \
    "\"securitySchemes\":{"                                                                        \
    "\"key\":{\"apiKeySecurityScheme\":{\"location\":\"header\",\"name\":\"X-Key\"}},"             \
    "\"query\":{\"apiKeySecurityScheme\":{\"location\":\"query\",\"name\":\"key\"}},"              \
    "\"cookie\":{\"apiKeySecurityScheme\":{\"location\":\"cookie\",\"name\":\"sid\"}},"            \
    "\"bearer\":{\"httpAuthSecurityScheme\":{\"scheme\":\"Bearer\",\"bearerFormat\":\"JWT\"}},"    \
    "\"basic\":{\"httpAuthSecurityScheme\":{\"scheme\":\"basic\"}},"                               \
    "\"digest\":{\"httpAuthSecurityScheme\":{\"scheme\":\"Digest\"}},"                             \
    "\"oauth\":{\"oauth2SecurityScheme\":{\"flows\":{}}},"                                         \
    "\"openid\":{\"openIdConnectSecurityScheme\":{\"openIdConnectUrl\":\"https://i.example\"}},"   \
    "\"cert\":{\"mtlsSecurityScheme\":{}}}"
#define NEEDS(list) "{" SCHEMES ",\"securityRequirements\":" list "}"
#define ONE(name) NEEDS("[{\"schemes\":{\"" name "\":{\"list\":[]}}}]")

typedef struct door {
    arena memory;
    json_doc doc;
    a2a_security *security;
    a2a_fault fault;
    const auth_principal *principal;
    bay_str challenge;
    const char *fields[4][2];
    const char *query;
    const char *certificate;
    int asked;
    bool is_out_of_memory;
} door;

static bay_err read_card(door *self, const char *text)
{
    memset(self, 0, sizeof(*self));
    arena_init(&self->memory, 1 << 22);
    assert_int_equal(json_parse(&self->doc, str_of(text), NULL, &self->memory, NULL), BAY_OK);
    return a2a_security_new(json_root(&self->doc), &self->security, &self->fault);
}

static void open_door(door *self, const char *text)
{
    if (read_card(self, text) != BAY_OK) {
        fail_msg("%s: %s", text, self->fault.text);
    }
}

static void close_door(door *self)
{
    a2a_security_free(self->security);
    principal_unref(self->principal);
    self->principal = NULL;
    arena_fini(&self->memory);
}

static bay_str field(void *context, bay_str name)
{
    door *self = context;
    for (size_t i = 0; i < 4 && self->fields[i][0] != NULL; i++) {
        if (str_eq(name, str_of(self->fields[i][0]))) {
            return str_of(self->fields[i][1]);
        }
    }
    return (bay_str){NULL, 0};
}

/* "good-ann": Ann without scopes; "read-ann": with "read tasks"; a certificate and "ann:pw" as
 * well.
 */
static bay_err verify(void *user, a2a_scheme_kind kind, bay_str name, bay_str credential,
                      arena *memory, principal_parts *out)
{
    door *self = user;
    (void)memory;
    self->asked++;
    if (self->is_out_of_memory) {
        return BAY_ERR_NOMEM;
    }
    if (str_eq(name, STR("digest"))) {
        return BAY_ERR_UNSUPPORTED;
    }
    if (str_eq(credential, STR("nobody"))) {
        out->subject = STR("");
        return BAY_OK;
    }
    bool is_read = str_starts(credential, STR("read-"));
    if (kind == A2A_SCHEME_MTLS) {
        out->subject = credential;
    } else if (str_eq(credential, STR("ann:pw"))) {
        out->subject = STR("ann");
    } else if (str_starts(credential, STR("good-")) || is_read) {
        out->subject = str_head(str_from(credential, 5), PRINCIPAL_TEXT_BYTES);
    } else {
        return BAY_ERR_DENIED;
    }
    out->scopes = is_read ? STR("read tasks") : STR("");
    return BAY_OK;
}

static bay_err knock(door *self, const char *skill)
{
    a2a_presented presented = {.field = field,
                               .query = str_of(self->query),
                               .certificate = str_of(self->certificate),
                               .context = self};
    principal_unref(self->principal);
    self->principal = NULL;
    self->challenge = STR("unset");
    self->fault = (a2a_fault){.error = A2A_NO_ERROR};
    self->asked = 0;
    bay_err err =
        a2a_security_check(self->security, &presented, str_of(skill), verify, self, &self->memory,
                           &self->principal, &self->challenge, &self->fault);
    if (err == BAY_ERR_DENIED) {
        assert_null(self->principal);
        assert_true(self->challenge.len > 0 && !str_eq(self->challenge, STR("unset")));
        assert_true(self->fault.error == A2A_E_UNAUTHENTICATED ||
                    self->fault.error == A2A_E_FORBIDDEN);
        assert_null(strstr(self->fault.text, "ann"));
    }
    return err;
}

static void expect_in(door *self, const char *principal)
{
    assert_int_equal(knock(self, ""), BAY_OK);
    if (!str_eq(principal_subject(self->principal), str_of(principal))) {
        fail_msg("%.*s instead of %s", BAY_STR(principal_subject(self->principal)), principal);
    }
}

static bool is_challenged(const door *self, const char *text)
{
    return memmem(self->challenge.at, self->challenge.len, text, strlen(text)) != NULL;
}

/* --- cards ------------------------------------------------------------------------------------ */

static void cards_that_are_refused(void **state)
{
    (void)state;
    static const char *const cards[] = {
        "[]",
        "{\"name\":\"a\",\"name\":\"b\"}",
        "{\"securitySchemes\":{\"a\":{},\"a\":{}}}",
        "{\"securitySchemes\":{\"a\":{}}}",
        "{\"securitySchemes\":{\"a\":{\"type\":\"http\",\"scheme\":\"bearer\"}}}",
        "{\"securitySchemes\":{\"a\":{\"mtlsSecurityScheme\":true}}}",
        "{\"securitySchemes\":{\"a\":{\"mtlsSecurityScheme\":{},\"oauth2SecurityScheme\":{}}}}",
        "{\"securitySchemes\":{\"a\":{\"httpAuthSecurityScheme\":{}}}}",
        "{\"securitySchemes\":{\"a\":{\"httpAuthSecurityScheme\":{\"scheme\":\"\"}}}}",
        "{\"securitySchemes\":{\"a\":{\"httpAuthSecurityScheme\":{\"scheme\":\"a b\"}}}}",
        "{\"securitySchemes\":{\"a\":{\"apiKeySecurityScheme\":{\"location\":\"body\",\"name\":"
        "\"x\"}}}}",
        "{\"securitySchemes\":{\"a\":{\"apiKeySecurityScheme\":{\"location\":\"header\"}}}}",
        "{\"securitySchemes\":{\"a\":{\"apiKeySecurityScheme\":{\"location\":\"header\",\"name\":"
        "\"\"}}}}",
        "{\"securitySchemes\":{\"a\":{\"apiKeySecurityScheme\":{\"location\":\"header\",\"name\":"
        "\"x\\r\\ny\"}}}}",
        "{\"securitySchemes\":{\"\\ud800\":{\"mtlsSecurityScheme\":{}}}}",
        "{\"securityRequirements\":{}}",
        "{\"securityRequirements\":[1]}",
        "{\"securityRequirements\":[{\"schemes\":[]}]}",
        "{\"securityRequirements\":[{\"schemes\":{\"nope\":{}}}]}",
        "{\"securityRequirements\":[{\"key\":[]}]}", /* as 0.3 wrote it: not "nothing" */
        NEEDS("[{\"schemes\":{\"Key\":{}}}]"),
        NEEDS("[{\"schemes\":{\"oauth\":{\"list\":[1]}}}]"),
        NEEDS("[{\"schemes\":{\"oauth\":{\"list\":[\"a b\"]}}}]"),
        NEEDS("[{\"schemes\":{\"oauth\":{\"list\":[\"a\\\"\"]}}}]"),
        NEEDS("[{\"schemes\":{\"oauth\":{\"list\":[\"\"]}}}]"),
        "{" SCHEMES
        ",\"skills\":[{\"id\":\"s\",\"securityRequirements\":[{\"schemes\":{\"x\":{}}}]}]}",
        "{" SCHEMES ",\"skills\":[{\"securityRequirements\":[{\"schemes\":{\"key\":{}}}]}]}",
    };
    for (size_t i = 0; i < sizeof(cards) / sizeof(cards[0]); i++) {
        door self;
        if (read_card(&self, cards[i]) != BAY_ERR_INVALID) {
            fail_msg("read: %s", cards[i]);
        }
        assert_int_not_equal(self.fault.error, A2A_NO_ERROR);
        close_door(&self);
    }
}

static void repeat(buf *out, const char *format, int count)
{
    for (int i = 0; i < count; i++) {
        buf_str(out, i > 0 ? STR(",") : STR(""));
        char text[128];
        snprintf(text, sizeof(text), "%s", format);
        char *number = strstr(text, "%d");
        if (number != NULL) {
            *number = '\0';
            buf_printf(out, "%s%d%s", text, i, number + 2);
        } else {
            buf_str(out, str_of(text));
        }
    }
}

static void cards_that_are_too_large(void **state)
{
    (void)state;
    static const struct {
        const char *before, *item, *behind;
        int most;
    } rows[] = {
        {"{\"securitySchemes\":{", "\"s%d\":{\"mtlsSecurityScheme\":{}}", "}}", A2A_SCHEMES},
        {"{\"securityRequirements\":[", "{}", "]}", A2A_REQUIREMENTS},
        {"{" SCHEMES ",\"securityRequirements\":[{\"schemes\":{\"oauth\":{\"list\":[", "\"a%d\"",
         "]}}}]}", A2A_REQUIREMENT_SCOPES},
        {"{\"skills\":[", "{}", "]}", A2A_SECURED_SKILLS},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int more = 0; more < 2; more++) {
            buf text;
            door self;
            buf_init(&text, 1 << 20);
            buf_str(&text, str_of(rows[i].before));
            repeat(&text, rows[i].item, rows[i].most + more);
            buf_str(&text, str_of(rows[i].behind));
            buf_char(&text, '\0');
            assert_int_equal(read_card(&self, text.at), more ? BAY_ERR_LIMIT : BAY_OK);
            close_door(&self);
            buf_fini(&text);
        }
    }
}

static void what_is_open(void **state)
{
    (void)state;
    static const struct {
        const char *card;
        bool is_open;
    } rows[] = {
        {"{}", true},
        {"{" SCHEMES "}", true},
        {NEEDS("[]"), true},
        {NEEDS("[{}]"), true},
        {NEEDS("[{\"schemes\":{\"key\":{}}},{\"schemes\":{}}]"), true},
        {ONE("key"), false},
        {NEEDS("[{\"schemes\":{\"key\":{},\"cert\":{}}}]"), false},
        {"{" SCHEMES
         ",\"skills\":[{\"id\":\"s\",\"securityRequirements\":[{\"schemes\":{\"key\":{}}}]}]}",
         true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        door self;
        open_door(&self, rows[i].card);
        assert_int_equal(a2a_security_is_open(self.security), rows[i].is_open);
        close_door(&self);
    }
    a2a_security_free(NULL);
}

/* --- requests --------------------------------------------------------------------------------- */

typedef struct knocking {
    const char *scheme;
    const char *name; /* of a field, or NULL: then it is the query */
    const char *value;
    const char *principal; /* NULL: refused */
} knocking;

static void credentials(void **state)
{
    (void)state;
    static const knocking rows[] = {
        {"key", "x-key", "", NULL},
        {"key", "x-key", "bad", NULL},
        {"key", "x-key", "nobody", NULL},
        {"key", "x-key", "good-\x01", NULL},
        {"key", "authorization", "Bearer good-ann", NULL},
        {"key", NULL, "x-key=good-ann", NULL},
        {"key", NULL, "X-Key=good-ann", NULL},
        {"key", "x-key", "good-ann", "ann"},
        {"query", NULL, "", NULL},
        {"query", NULL, "key", NULL},
        {"query", NULL, "key=", NULL},
        {"query", NULL, "KEY=good-ann", NULL},
        {"query", NULL, "key=bad", NULL},
        {"query", NULL, "key=good-ann&key=good-ann", NULL},
        {"query", NULL, "key=good-ann&key=bad", NULL},
        {"query", NULL, "key=good-%0aann", NULL},
        {"query", NULL, "key=good-%zz", NULL},
        {"query", NULL, "key=good-%00", NULL},
        {"query", "key", "good-ann", NULL},
        {"query", NULL, "a=1&key=good-%61nn&b", "ann"},
        {"query", NULL, "key=good-a=b", "a=b"},
        {"cookie", "cookie", "sid", NULL},
        {"cookie", "cookie", "sid=", NULL},
        {"cookie", "cookie", "xsid=good-ann", NULL},
        {"cookie", "cookie", "SID=good-ann", NULL},
        {"cookie", "cookie", "sid=bad; sid=good-ann", NULL},
        {"cookie", "cookie", "a=1; sid=good-ann; b=2", "ann"},
        {"bearer", "authorization", "", NULL},
        {"bearer", "authorization", "Bearer", NULL},
        {"bearer", "authorization", "Bearer ", NULL},
        {"bearer", "authorization", "good-ann", NULL},
        {"bearer", "authorization", "Bearergood-ann", NULL},
        {"bearer", "authorization", "Basic good-ann", NULL},
        {"bearer", "authorization", "Bearer good-ann good-ann", NULL},
        {"bearer", "authorization", "Bearer good-ann, Bearer bad", NULL},
        {"bearer", "authorization", "Bearer go=od-ann", NULL},
        {"bearer", "authorization", "Bearer bad", NULL},
        {"bearer", "x-authorization", "Bearer good-ann", NULL},
        {"bearer", "authorization", "Bearer good-ann", "ann"},
        {"bearer", "authorization", "bEARER  good-ann ", "ann"},
        {"basic", "authorization", "Basic ann:pw", NULL},
        {"basic", "authorization", "Basic YW5u", NULL},         /* no colon */
        {"basic", "authorization", "Basic YW5uOnB3Cg==", NULL}, /* a line end */
        {"basic", "authorization", "Basic YW5uOnB3*", NULL},
        {"basic", "authorization", "Bearer YW5uOnB3", NULL},
        {"basic", "authorization", "Basic YW5uOnB3", "ann"},
        {"digest", "authorization", "Digest good-ann", NULL}, /* nobody verifies it */
        {"oauth", "authorization", "Bearer bad", NULL},
        {"oauth", "authorization", "Bearer good-ann", "ann"},
        {"openid", "authorization", "Bearer good-ann", "ann"},
        {"cert", "authorization", "CN=ann", NULL},
        {"cert", "ssl-client-s-dn", "CN=ann", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char card[4096];
        snprintf(card, sizeof(card), NEEDS("[{\"schemes\":{\"%s\":{}}}]"), rows[i].scheme);
        door self;
        open_door(&self, card);
        if (rows[i].name != NULL) {
            self.fields[0][0] = rows[i].name;
            self.fields[0][1] = rows[i].value;
        } else {
            self.query = rows[i].value;
        }
        if (rows[i].principal != NULL) {
            expect_in(&self, rows[i].principal);
        } else if (knock(&self, "") != BAY_ERR_DENIED) {
            fail_msg("row %zu opens: %s", i, rows[i].value);
        }
        close_door(&self);
    }
    door self;
    open_door(&self, ONE("cert"));
    assert_int_equal(knock(&self, ""), BAY_ERR_DENIED);
    assert_int_equal(self.asked, 0); /* nobody is asked about what is not there */
    self.certificate = "CN=ann";
    expect_in(&self, "CN=ann");
    close_door(&self);
    char *endless = malloc(A2A_CREDENTIAL_BYTES + 2);
    memset(endless, 'a', A2A_CREDENTIAL_BYTES + 1);
    endless[A2A_CREDENTIAL_BYTES + 1] = '\0';
    memcpy(endless, "good-", 5);
    open_door(&self, ONE("key"));
    self.fields[0][0] = "x-key";
    self.fields[0][1] = endless;
    assert_int_equal(knock(&self, ""), BAY_ERR_DENIED);
    assert_int_equal(self.asked, 0);
    endless[A2A_CREDENTIAL_BYTES] = '\0';
    assert_int_equal(knock(&self, ""), BAY_OK);
    close_door(&self);
    free(endless);
}

static void all_of_any_of(void **state)
{
    (void)state;
    door self;
    open_door(&self,
              NEEDS("[{\"schemes\":{\"key\":{},\"cert\":{}}},{\"schemes\":{\"basic\":{}}}]"));
    assert_int_equal(knock(&self, ""), BAY_ERR_DENIED);
    self.fields[0][0] = "x-key";
    self.fields[0][1] = "good-ann";
    assert_int_equal(knock(&self, ""), BAY_ERR_DENIED); /* half of the first */
    self.certificate = "CN=box";
    expect_in(&self, "key=ann&cert=CN%3Dbox");
    self.fields[0][1] = "good-CN=box";
    expect_in(&self, "CN=box"); /* both are the same */
    self.fields[0][1] = "bad";
    assert_int_equal(knock(&self, ""), BAY_ERR_DENIED);
    self.fields[1][0] = "authorization";
    self.fields[1][1] = "Basic YW5uOnB3";
    expect_in(&self, "ann"); /* the second */
    close_door(&self);
    /* Each scheme is verified once, however often it is named. */
    open_door(&self,
              NEEDS("[{\"schemes\":{\"key\":{},\"cert\":{}}},{\"schemes\":{\"key\":{},\"basic\":"
                    "{}}},{\"schemes\":{\"key\":{\"list\":[\"x\"]}}}]"));
    self.fields[0][0] = "x-key";
    self.fields[0][1] = "good-ann";
    assert_int_equal(knock(&self, ""), BAY_ERR_DENIED);
    assert_int_equal(self.asked, 1);
    close_door(&self);
}

static void optional_credentials(void **state)
{
    (void)state;
    door self;
    open_door(&self, NEEDS("[{},{\"schemes\":{\"key\":{}}}]"));
    expect_in(&self, "");
    self.fields[0][0] = "x-key";
    self.fields[0][1] = "good-ann";
    expect_in(&self, "ann");
    self.fields[0][1] = "bad"; /* nobody becomes anonymous by a typing error */
    assert_int_equal(knock(&self, ""), BAY_ERR_DENIED);
    close_door(&self);
}

static void scopes(void **state)
{
    (void)state;
    door self;
    open_door(&self, NEEDS("[{\"schemes\":{\"oauth\":{\"list\":[\"read\",\"tasks\"]}}}]"));
    self.fields[0][0] = "authorization";
    self.fields[0][1] = "Bearer bad";
    assert_int_equal(knock(&self, ""), BAY_ERR_DENIED);
    assert_int_equal(self.fault.error, A2A_E_UNAUTHENTICATED);
    assert_true(is_challenged(&self, "error=\"invalid_token\""));
    assert_false(is_challenged(&self, "tasks"));
    self.fields[0][1] = "Bearer good-ann";
    assert_int_equal(knock(&self, ""), BAY_ERR_DENIED);
    assert_int_equal(self.fault.error, A2A_E_FORBIDDEN);
    assert_true(is_challenged(&self, "error=\"insufficient_scope\", scope=\"tasks\""));
    self.fields[0][1] = "Bearer read-ann";
    expect_in(&self, "ann");
    close_door(&self);
    static const char *const others[] = {"rea", "READ", "read-more"};
    for (size_t i = 0; i < 3; i++) { /* a scope is a whole word */
        char card[4096];
        snprintf(card, sizeof(card), NEEDS("[{\"schemes\":{\"oauth\":{\"list\":[\"%s\"]}}}]"),
                 others[i]);
        open_door(&self, card);
        self.fields[0][0] = "authorization";
        self.fields[0][1] = "Bearer read-ann";
        assert_int_equal(knock(&self, ""), BAY_ERR_DENIED);
        close_door(&self);
    }
}

static void skills(void **state)
{
    (void)state;
    door self;
    open_door(&self,
              "{" SCHEMES ",\"securityRequirements\":[{\"schemes\":{\"key\":{}}}],\"skills\":["
              "{\"id\":\"free\"},{\"id\":\"dear\",\"securityRequirements\":[{\"schemes\":"
              "{\"oauth\":{\"list\":[\"tasks\"]}}}]}]}");
    assert_int_equal(knock(&self, "dear"), BAY_ERR_DENIED);
    self.fields[0][0] = "x-key";
    self.fields[0][1] = "good-ann";
    expect_in(&self, "ann");
    assert_int_equal(knock(&self, "free"), BAY_OK);
    assert_int_equal(knock(&self, "dear"), BAY_ERR_DENIED);
    assert_int_equal(self.fault.error, A2A_E_UNAUTHENTICATED);
    self.fields[1][0] = "authorization";
    self.fields[1][1] = "Bearer good-bob";
    assert_int_equal(knock(&self, "dear"), BAY_ERR_DENIED);
    assert_int_equal(self.fault.error, A2A_E_FORBIDDEN);
    self.fields[1][1] = "Bearer read-bob";
    assert_int_equal(knock(&self, "dear"), BAY_OK);
    assert_true(
        str_eq(principal_subject(self.principal), STR("ann"))); /* the same as without the skill */
    self.fields[0][1] = "bad";
    assert_int_equal(knock(&self, "dear"), BAY_ERR_DENIED); /* the card's own still holds */
    close_door(&self);
}

static void challenges(void **state)
{
    (void)state;
    door self;
    open_door(&self,
              NEEDS("[{\"schemes\":{\"bearer\":{},\"cert\":{}}},{\"schemes\":{\"oauth\":{}}},"
                    "{\"schemes\":{\"basic\":{}}},{\"schemes\":{\"query\":{}}}]"));
    assert_int_equal(knock(&self, ""), BAY_ERR_DENIED);
    assert_true(str_eq(self.challenge,
                       STR("Bearer realm=\"a2a\", ClientCertificate realm=\"a2a\", basic "
                           "realm=\"a2a\", ApiKey realm=\"a2a\", in=\"query\", name=\"key\"")));
    close_door(&self);
}

static void without_memory(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        door self;
        memset(&self, 0, sizeof(self));
        arena_init(&self.memory, 1 << 22);
        bay_err err = json_parse(
            &self.doc,
            STR(NEEDS("[{\"schemes\":{\"query\":{},\"cert\":{}}},{\"schemes\":{\"basic\":{}}}]")),
            NULL, &self.memory, NULL);
        if (err == BAY_OK) {
            err = a2a_security_new(json_root(&self.doc), &self.security, &self.fault);
        }
        if (err == BAY_OK) {
            err = knock(&self, "");
            assert_true(err == BAY_ERR_DENIED || err == BAY_ERR_NOMEM);
            self.query = "key=good-%61nn";
            self.certificate = "CN=box";
            err = knock(&self, "");
        }
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        close_door(&self);
        failing_memory_check();
    }
    door self;
    open_door(&self, ONE("key"));
    self.fields[0][0] = "x-key";
    self.fields[0][1] = "good-ann";
    self.is_out_of_memory = true;
    assert_int_equal(knock(&self, ""), BAY_ERR_NOMEM);
    close_door(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cards_that_are_refused),
        cmocka_unit_test(cards_that_are_too_large),
        cmocka_unit_test(what_is_open),
        cmocka_unit_test(credentials),
        cmocka_unit_test(all_of_any_of),
        cmocka_unit_test(optional_credentials),
        cmocka_unit_test(scopes),
        cmocka_unit_test(skills),
        cmocka_unit_test(challenges),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

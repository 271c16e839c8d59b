/* Documents that peers name: which URLs are fetched, where a connection may lead, and what of an
 * answer is read. The server is a real one on this machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "oauth/document.h" /* cmocka takes the word "fail" */

#include <cmocka.h>
#include <stdio.h>

#include "base/check.h"
#include "http/http_server.h"

enum { MOST_TURNS = 500, TURN_MS = 20, TEXT_BYTES = 256 };

typedef struct rig {
    loop *loop;
    http_server *server;
    uint16_t port;
    oauth_source *source;
    oauth_document document;
    int requests;
    char last[TEXT_BYTES]; /* method, Content-Type and body of the last one */
    /* the answer to it */
    int status;
    const char *type;
    const char *body;
    size_t padding;
    const char *extra; /* a field's name, and its value */
    const char *extra_value;
    bool is_silent;
    /* what came of it */
    int done;
    bay_err err;
    char text[TEXT_BYTES];
    int got_status;
    bool has_root;
    char issuer[TEXT_BYTES];
    char nonce[OAUTH_NONCE_BYTES + 1];
    bool has_max_age;
    uint64_t max_age_s;
} rig;

static void on_request(void *user, http_exchange *exchange)
{
    rig *self = user;
    http_field fields[3] = {{STR("Content-Type"), str_of(self->type)}};
    size_t count = self->type != NULL ? 1 : 0;
    buf body;
    self->requests++;
    bay_str type = http_exchange_field(exchange, STR("Content-Type"));
    snprintf(self->last, sizeof(self->last), "%.*s %.*s %.*s",
             BAY_STR(http_exchange_method(exchange)), BAY_STR(type),
             BAY_STR(http_exchange_body(exchange)));
    if (self->is_silent) {
        return;
    }
    if (self->extra != NULL) {
        fields[count++] = (http_field){str_of(self->extra), str_of(self->extra_value)};
    }
    buf_init(&body, 1 << 20);
    buf_str(&body, str_of(self->body));
    for (size_t i = 0; i < self->padding; i++) {
        buf_char(&body, ' ');
    }
    http_exchange_reply(exchange, self->status, fields, count, buf_view(&body));
    buf_fini(&body);
}

static void on_closed(void *user, http_exchange *exchange, bool is_complete)
{
    (void)user;
    (void)exchange;
    (void)is_complete;
}

static const http_handler handler = {.request = on_request, .closed = on_closed};

static void on_done(void *user, const oauth_answer *answer)
{
    rig *self = user;
    bay_str issuer = STR("");
    self->done++;
    self->err = answer->err;
    self->got_status = answer->status;
    self->has_root = json_is(answer->root, JSON_OBJECT);
    (void)json_str_plain(json_get(answer->root, STR("issuer")), &issuer);
    snprintf(self->text, sizeof(self->text), "%s", answer->text);
    snprintf(self->issuer, sizeof(self->issuer), "%.*s", BAY_STR(issuer));
    snprintf(self->nonce, sizeof(self->nonce), "%.*s", BAY_STR(answer->dpop_nonce));
    self->has_max_age = answer->has_max_age;
    self->max_age_s = answer->max_age_s;
}

static void begin(rig *self, const char *home)
{
    char text[TEXT_BYTES];
    bay_diag diag = {0};
    *self = (rig){.status = 200, .type = "application/json", .body = "{\"issuer\":\"i\"}"};
    http_server_options options = {
        .limits = http_server_default_limits, .handler = &handler, .user = self};
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    assert_int_equal(http_server_new(self->loop, &options, &self->server), BAY_OK);
    assert_int_equal(http_server_listen(self->server, STR("127.0.0.1:0"), &diag), BAY_OK);
    self->port = http_server_port(self->server);
    snprintf(text, sizeof(text), home, self->port);
    oauth_source_options source = {.home = str_of(text)};
    assert_int_equal(oauth_source_new(self->loop, &source, &self->source, &diag), BAY_OK);
    oauth_document_init(&self->document, self->source);
}

static void end(rig *self)
{
    oauth_document_fini(&self->document);
    oauth_source_free(self->source);
    http_server_free(self->server);
    loop_free(self->loop);
}

static bay_err start(rig *self, const char *url, oauth_request request)
{
    char text[TEXT_BYTES];
    bay_diag diag = {0};
    snprintf(text, sizeof(text), url, self->port);
    request.url = str_of(text);
    self->done = 0;
    bay_err err = oauth_document_start(&self->document, &request, on_done, self, &diag);
    if (err != BAY_OK) {
        snprintf(self->text, sizeof(self->text), "%s", diag.text);
    }
    return err;
}

static void fetch(rig *self, const char *url, oauth_request request)
{
    assert_int_equal(start(self, url, request), BAY_OK);
    for (int i = 0; i < MOST_TURNS && self->done == 0; i++) {
        loop_turn(self->loop, TURN_MS);
    }
    assert_int_equal(self->done, 1);
}

#define HERE "http://127.0.0.1:%u"

/* ---- URLs ------------------------------------------------------------------------------------ */

static void which_urls_are_fetched(void **state)
{
    static const struct {
        const char *home;
        const char *url;
        bool may;
    } rows[] = {
        {"https://issuer.example/t", "https://issuer.example/jwks", true},
        {"https://issuer.example/t", "HTTPS://keys.example/jwks?x=1", true},
        {"https://issuer.example/t", "http://issuer.example/jwks", false},
        {"https://issuer.example/t", "http://localhost/jwks", false},
        {"https://issuer.example/t", "http://127.0.0.1/jwks", false},
        {"https://issuer.example/t", "file:///etc/passwd", false},
        {"https://issuer.example/t", "javascript:alert(1)", false},
        {"https://issuer.example/t", "https://issuer.example@evil.example/", false},
        {"https://issuer.example/t", "https://evil.example/#issuer.example", false},
        {"https://issuer.example/t", "https:///jwks", false},
        {"https://issuer.example/t", "/jwks", false},
        {"https://issuer.example/t", "", false},
        {"https://issuer.example/t", "https://issuer.example/ jwks", false},
        {"https://issuer.example/t", "https://issuer.example/\r\nX: y", false},
        {"http://localhost:3000/mcp", "http://127.0.0.1:4000/jwks", true},
        {"http://127.0.0.1:3000/mcp", "http://[::1]:4000/jwks", true},
        {"http://127.0.0.1:3000/mcp", "http://as.localhost:4000/jwks", true},
        {"http://127.0.0.1:3000/mcp", "http://10.0.0.1/jwks", false},
        {"http://127.0.0.1:3000/mcp", "http://localhost.evil.example/", false},
        {"http://10.0.0.1/mcp", "http://10.0.0.1/jwks", false},
        {"not a url", "http://127.0.0.1/", false},
        {"", "http://127.0.0.1/", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *fault = oauth_url_fault(str_of(rows[i].home), str_of(rows[i].url));
        if ((fault == NULL) != rows[i].may) {
            print_error("%s from %s: %s\n", rows[i].url, rows[i].home, fault);
        }
        assert_int_equal(fault == NULL, rows[i].may);
    }
    static char longest[OAUTH_URL_BYTES + 2] = "https://issuer.example/";
    memset(longest + strlen(longest), 'a', sizeof(longest) - 1 - strlen(longest));
    assert_non_null(oauth_url_fault(STR("https://issuer.example"), str_of(longest)));
    longest[OAUTH_URL_BYTES] = '\0';
    assert_null(oauth_url_fault(STR("https://issuer.example"), str_of(longest)));
}

static void a_refused_url_is_no_request(void **state)
{
    rig self;
    (void)state;
    begin(&self, HERE);
    assert_int_equal(start(&self, "http://example.com/", (oauth_request){0}), BAY_ERR_DENIED);
    assert_non_null(strstr(self.text, "not on this machine"));
    assert_int_equal(start(&self, "ftp://127.0.0.1:%u/", (oauth_request){0}), BAY_ERR_DENIED);
    assert_false(oauth_document_is_busy(&self.document));
    assert_int_equal(self.done, 0);
    end(&self);
}

static void a_source_needs_a_home_that_may_be_fetched(void **state)
{
    static const char *const homes[] = {"http://10.0.0.1/", "http://as.example", "nothing", ""};
    loop *on = NULL;
    (void)state;
    assert_int_equal(loop_new(&on), BAY_OK);
    for (size_t i = 0; i < ARRAY_LEN(homes); i++) {
        oauth_source *source = NULL;
        bay_diag diag = {0};
        oauth_source_options options = {.home = str_of(homes[i])};
        assert_int_equal(oauth_source_new(on, &options, &source, &diag), BAY_ERR_INVALID);
        assert_true(diag.text[0] != '\0');
    }
    const bay_str allow = STR("10.0.0.0/99");
    oauth_source *source = NULL;
    bay_diag diag = {0};
    oauth_source_options options = {
        .home = STR("https://as.example"), .allow = &allow, .allow_count = 1};
    assert_int_equal(oauth_source_new(on, &options, &source, &diag), BAY_ERR_INVALID);
    loop_free(on);
}

/* ---- addresses: in the moment before the connection ------------------------------------------ */

static void a_home_far_away_leads_to_no_address_of_this_machine(void **state)
{
    static const char *const urls[] = {
        "https://127.0.0.1:%u/", "https://localhost:%u/",       "https://[::ffff:127.0.0.1]:%u/",
        "https://10.0.0.1:%u/",  "https://169.254.169.254:%u/", "https://2130706433:%u/",
        "https://0x7f.1:%u/"};
    rig self;
    (void)state;
    begin(&self, "https://issuer.invalid:%u");
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        bay_err err = start(&self, urls[i], (oauth_request){0});
        if (err == BAY_ERR_UNSUPPORTED) {
            break; /* a build without TLS */
        }
        assert_int_equal(err, BAY_OK);
        for (int turn = 0; turn < MOST_TURNS && self.done == 0; turn++) {
            loop_turn(self.loop, TURN_MS);
        }
        assert_int_equal(self.done, 1);
        if (self.err != BAY_ERR_DENIED && self.err != BAY_ERR_RESOLVE) {
            print_error("%s: %s\n", urls[i], self.text);
        }
        assert_true(self.err == BAY_ERR_DENIED || self.err == BAY_ERR_RESOLVE);
    }
    assert_int_equal(self.requests, 0);
    end(&self);
}

static void a_home_on_this_machine_leads_to_this_machine(void **state)
{
    rig self;
    (void)state;
    begin(&self, "http://localhost:1/of-%u");
    fetch(&self, "http://127.0.0.1:%u/", (oauth_request){0});
    assert_int_equal(self.err, BAY_OK);
    assert_string_equal(self.issuer, "i");
    end(&self);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void only_an_object_is_read(void **state)
{
    static const struct {
        const char *type;
        const char *body;
        bool is_read;
    } rows[] = {
        {"application/json", "{\"issuer\":\"i\"}", true},
        {"application/jwk-set+json; charset=utf-8", "{}", true},
        {NULL, "{}", true},
        {"text/html", "{}", false},
        {"text/html; charset=utf-8", "<html>200</html>", false},
        {"application/json", "<html>", false},
        {"application/json", "[]", false},
        {"application/json", "\"text\"", false},
        {"application/json", "", false},
        {"application/json", "{\"issuer\":\"a\",\"issuer\":\"b\"}", false},
        {"application/json", "{\"a\":{\"b\":1,\"b\":2}}", false},
        {"application/json", "{} {}", false},
        {"application/json", "{\"a\":\"\xff\"}", false},
        {"application/json", "[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]", false},
    };
    rig self;
    (void)state;
    begin(&self, HERE);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        self.type = rows[i].type;
        self.body = rows[i].body;
        fetch(&self, HERE, (oauth_request){0});
        assert_int_equal(self.err, BAY_OK);
        assert_int_equal(self.got_status, 200);
        if (self.has_root != rows[i].is_read) {
            print_error("row %zu\n", i);
        }
        assert_int_equal(self.has_root, rows[i].is_read);
        assert_int_equal(self.text[0] == '\0', rows[i].is_read);
    }
    end(&self);
}

static void an_answer_is_bounded(void **state)
{
    rig self;
    (void)state;
    begin(&self, HERE);
    self.padding = OAUTH_DOCUMENT_BYTES;
    fetch(&self, HERE, (oauth_request){0});
    assert_int_equal(self.err, BAY_ERR_LIMIT);
    fetch(&self, HERE, (oauth_request){.max_bytes = OAUTH_DOCUMENT_MOST});
    assert_int_equal(self.err, BAY_OK);
    assert_true(self.has_root);
    self.padding = OAUTH_DOCUMENT_MOST;
    fetch(&self, HERE, (oauth_request){.max_bytes = OAUTH_DOCUMENT_MOST});
    assert_int_equal(self.err, BAY_ERR_LIMIT);
    assert_int_equal(start(&self, HERE, (oauth_request){.max_bytes = OAUTH_DOCUMENT_MOST + 1}),
                     BAY_ERR_LIMIT);
    end(&self);
}

static void a_redirect_is_an_answer(void **state)
{
    rig self;
    (void)state;
    begin(&self, HERE);
    self.status = 302;
    self.extra = "Location";
    self.extra_value = "http://169.254.169.254/latest/meta-data";
    fetch(&self, HERE, (oauth_request){0});
    assert_int_equal(self.err, BAY_OK);
    assert_int_equal(self.got_status, 302);
    assert_int_equal(self.requests, 1);
    end(&self);
}

static void errors_are_read_too(void **state)
{
    rig self;
    (void)state;
    begin(&self, HERE);
    self.status = 400;
    self.body = "{\"error\":\"invalid_grant\"}";
    fetch(&self, HERE, (oauth_request){.form = STR("grant_type=x&code=a%20b")});
    assert_int_equal(self.got_status, 400);
    assert_true(self.has_root);
    assert_string_equal(self.last,
                        "POST application/x-www-form-urlencoded grant_type=x&code=a%20b");
    fetch(&self, HERE, (oauth_request){.json = STR("{\"client_name\":\"c\"}")});
    assert_string_equal(self.last, "POST application/json {\"client_name\":\"c\"}");
    fetch(&self, HERE, (oauth_request){0});
    assert_string_equal(self.last, "GET  ");
    end(&self);
}

static void nonces_and_ages(void **state)
{
    static char longer[OAUTH_NONCE_BYTES + 2];
    rig self;
    (void)state;
    memset(longer, 'n', OAUTH_NONCE_BYTES + 1);
    begin(&self, HERE);
    self.extra = "DPoP-Nonce";
    self.extra_value = longer;
    fetch(&self, HERE, (oauth_request){0});
    assert_string_equal(self.nonce, "");
    longer[OAUTH_NONCE_BYTES] = '\0';
    fetch(&self, HERE, (oauth_request){0});
    assert_string_equal(self.nonce, longer);
    self.extra = "Cache-Control";
    self.extra_value = "public, max-age=120";
    fetch(&self, HERE, (oauth_request){0});
    assert_string_equal(self.nonce, ""); /* of this answer, not of the one before */
    assert_true(self.has_max_age);
    assert_int_equal(self.max_age_s, 120);
    end(&self);
}

static void an_end_before_the_answer_is_silent(void **state)
{
    rig self;
    (void)state;
    begin(&self, HERE);
    self.is_silent = true;
    assert_int_equal(start(&self, HERE, (oauth_request){0}), BAY_OK);
    assert_true(oauth_document_is_busy(&self.document));
    for (int i = 0; i < MOST_TURNS && self.requests == 0; i++) {
        loop_turn(self.loop, TURN_MS);
    }
    assert_int_equal(self.requests, 1);
    oauth_document_fini(&self.document);
    assert_int_equal(self.done, 0);
    end(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_urls_are_fetched),
        cmocka_unit_test(a_refused_url_is_no_request),
        cmocka_unit_test(a_source_needs_a_home_that_may_be_fetched),
        cmocka_unit_test(a_home_far_away_leads_to_no_address_of_this_machine),
        cmocka_unit_test(a_home_on_this_machine_leads_to_this_machine),
        cmocka_unit_test(only_an_object_is_read),
        cmocka_unit_test(an_answer_is_bounded),
        cmocka_unit_test(a_redirect_is_an_answer),
        cmocka_unit_test(errors_are_read_too),
        cmocka_unit_test(nonces_and_ages),
        cmocka_unit_test(an_end_before_the_answer_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Requests that wait for their authorization: one flow for all of them, what of it a browser may
 * end, and what is left when it is given up. Resource and authorization server are one real server
 * on this machine; the receiver of redirects is the real one, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "oauth/authority.h" /* cmocka takes the word "fail" */

#include <cmocka.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "auth/oauth_form.h"
#include "base/check.h"
#include "http/http_server.h"
#include "wire/uri.h"

enum { MOST_TURNS = 1000, TURN_MS = 20, TEXT_BYTES = 4096, CALLS = 16 };

typedef struct one_call {
    http_call *call;
    int status, ends, failures, waits, goes_on;
    bay_err err;
    char text[TEXT_BYTES];
} one_call;

typedef struct rig {
    loop *loop;
    http_server *server;
    uint16_t port;
    http_client *http;
    oauth_authority *authority;
    char origin[64], url[80];
    /* what the server does */
    char token[64]; /* what the resource takes; "": anything */
    int expires_s;
    bool is_slow_token; /* the token endpoint answers when it is told to */
    http_exchange *held;
    int authorized, refused, tokens, registrations, refreshes;
    /* what the owner does */
    bool declines, keeps_later, is_silent;
    char page[TEXT_BYTES]; /* that the person was shown */
    char kept[TEXT_BYTES];
    int opened, kept_count, rereads, settled, faults;
    char order[256]; /* k: kept, u: used */
    size_t order_len;
} rig;

static void note(rig *self, char what)
{
    if (self->order_len + 1 < sizeof(self->order)) {
        self->order[self->order_len++] = what;
    }
}

/* ---- the server ------------------------------------------------------------------------------ */

static void reply_json(http_exchange *exchange, int status, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list arguments;
    const http_field type = {STR("Content-Type"), STR("application/json")};
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    http_exchange_reply(exchange, status, &type, 1, str_of(text));
}

static void issue(rig *self, http_exchange *exchange)
{
    snprintf(self->token, sizeof(self->token), "Bearer at-%d", ++self->tokens);
    reply_json(exchange, 200,
               "{\"access_token\":\"at-%d\",\"token_type\":\"Bearer\",\"refresh_token\":\"rt-%d\","
               "\"expires_in\":%d}",
               self->tokens, self->tokens, self->expires_s);
}

static void serve_token(rig *self, http_exchange *exchange)
{
    arena memory;
    oauth_form form;
    arena_init(&memory, 1 << 20);
    assert_int_equal(oauth_form_read(http_exchange_body(exchange), &memory, &form), BAY_OK);
    if (str_eq(oauth_form_get(&form, STR("grant_type")), STR("refresh_token"))) {
        char wanted[32];
        self->refreshes++;
        snprintf(wanted, sizeof(wanted), "rt-%d", self->tokens);
        assert_true(str_eq(oauth_form_get(&form, STR("refresh_token")), str_of(wanted)));
    }
    arena_fini(&memory);
    if (self->is_slow_token) {
        self->held = exchange;
        return;
    }
    issue(self, exchange);
}

static void on_request(void *user, http_exchange *exchange)
{
    rig *self = user;
    bay_str path = http_exchange_path(exchange);
    bay_str given = http_exchange_field(exchange, STR("Authorization"));
    if (str_eq(path, STR("/.well-known/oauth-protected-resource/mcp"))) {
        assert_int_equal(given.len, 0); /* no credentials with metadata */
        reply_json(exchange, 200, "{\"resource\":\"%s\",\"authorization_servers\":[\"%s\"]}",
                   self->url, self->origin);
    } else if (str_eq(path, STR("/.well-known/oauth-authorization-server"))) {
        reply_json(exchange, 200,
                   "{\"issuer\":\"%s\",\"authorization_endpoint\":\"%s/authorize\","
                   "\"token_endpoint\":\"%s/token\",\"registration_endpoint\":\"%s/register\","
                   "\"revocation_endpoint\":\"%s/revoke\",\"response_types_supported\":[\"code\"],"
                   "\"code_challenge_methods_supported\":[\"S256\"],"
                   "\"token_endpoint_auth_methods_supported\":[\"none\"]}",
                   self->origin, self->origin, self->origin, self->origin, self->origin);
    } else if (str_eq(path, STR("/register"))) {
        self->registrations++;
        reply_json(exchange, 201, "{\"client_id\":\"c\"}");
    } else if (str_eq(path, STR("/token"))) {
        serve_token(self, exchange);
    } else if (str_eq(path, STR("/mcp"))) {
        bool is_fine = self->token[0] != '\0' && str_eq(given, str_of(self->token));
        const http_field challenge = {STR("WWW-Authenticate"), STR("Bearer scope=\"x\"")};
        if (is_fine) {
            note(self, 'u');
        }
        *(is_fine ? &self->authorized : &self->refused) += 1;
        http_exchange_reply(exchange, is_fine ? 200 : 401, &challenge, 1,
                            http_exchange_body(exchange));
    } else {
        reply_json(exchange, 404, "{}");
    }
}

static void on_closed(void *user, http_exchange *exchange, bool is_complete)
{
    (void)user;
    (void)exchange;
    (void)is_complete;
}

static const http_handler handler = {.request = on_request, .closed = on_closed};

/* ---- the owner ------------------------------------------------------------------------------- */

static void open_page(void *user, oauth_authority *authority, bay_str url)
{
    rig *self = user;
    self->opened++;
    snprintf(self->page, sizeof(self->page), "%.*s", BAY_STR(url));
    if (self->declines) {
        oauth_authority_declined(authority, "the person said no");
    }
}

static void keep(void *user, oauth_authority *authority, bay_str record)
{
    rig *self = user;
    self->kept_count++;
    snprintf(self->kept, sizeof(self->kept), "%.*s", BAY_STR(record));
    note(self, 'k');
    if (!self->keeps_later) {
        oauth_authority_kept(authority);
    }
}

static void reread(void *user, oauth_authority *authority)
{
    rig *self = user;
    self->rereads++;
    oauth_authority_reread(authority, str_of(self->kept));
}

static void settled(void *user, oauth_authority *authority, const bay_diag *fault)
{
    rig *self = user;
    (void)authority;
    self->settled++;
    self->faults += fault != NULL;
}

static const oauth_authority_events events = {
    .open = open_page, .keep = keep, .reread = reread, .settled = settled};

/* ---- calls ----------------------------------------------------------------------------------- */

static void on_head(void *user, int status, const http_field *fields, size_t count)
{
    one_call *self = user;
    (void)fields;
    (void)count;
    self->status = status;
}

static void on_end(void *user)
{
    ((one_call *)user)->ends++;
}

static void on_failed(void *user, bay_err err, bool was_sent, const char *text)
{
    one_call *self = user;
    (void)was_sent;
    self->failures++;
    self->err = err;
    snprintf(self->text, sizeof(self->text), "%s", text);
}

static void on_waits(void *user, bool is_waiting)
{
    one_call *self = user;
    *(is_waiting ? &self->waits : &self->goes_on) += 1;
}

static const http_call_events call_events = {
    .head = on_head, .end = on_end, .failed = on_failed, .waits = on_waits};

static void call(rig *self, one_call *one)
{
    bay_diag diag = {0};
    const http_field field = {STR("X-Kept"), STR("yes")};
    http_call_spec spec = {
        .method = STR("POST"),
        .url = str_of(self->url),
        .fields = &field,
        .field_count = 1,
        .body = STR("hello"),
        .timeout_ms = 5000,
        .authority = self->authority != NULL ? oauth_authority_http(self->authority) : NULL,
    };
    *one = (one_call){0};
    assert_int_equal(http_client_call(self->http, &spec, &call_events, one, &one->call, &diag),
                     BAY_OK);
}

#define turn_until(self, condition)                                                                \
    do {                                                                                           \
        int left = MOST_TURNS;                                                                     \
        while (!(condition) && left-- > 0) {                                                       \
            loop_turn((self)->loop, TURN_MS);                                                      \
        }                                                                                          \
        assert_true(condition);                                                                    \
    } while (0)

/* ---- set up ---------------------------------------------------------------------------------- */

static void make_authority(rig *self)
{
    bay_diag diag = {0};
    oauth_authority_options options = {
        .client = {.grant = OAUTH_CODE, .url = str_of(self->url)},
        .has_receiver = true,
    };
    if (oauth_authority_new(self->loop, &options, &events, self, &self->authority, &diag) !=
        BAY_OK) {
        fail_msg("%s", diag.text);
    }
}

static void rig_init(rig *self)
{
    bay_diag diag = {0};
    *self = (rig){.expires_s = 3600};
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    http_server_options server = {
        .limits = http_server_default_limits, .handler = &handler, .user = self};
    assert_int_equal(http_server_new(self->loop, &server, &self->server), BAY_OK);
    assert_int_equal(http_server_listen(self->server, STR("127.0.0.1:0"), &diag), BAY_OK);
    self->port = http_server_port(self->server);
    snprintf(self->origin, sizeof(self->origin), "http://127.0.0.1:%u", self->port);
    snprintf(self->url, sizeof(self->url), "%s/mcp", self->origin);
    http_client_options client = {.limits = http_client_default_limits};
    assert_int_equal(http_client_new(self->loop, &client, &self->http), BAY_OK);
    make_authority(self);
}

static void rig_fini(rig *self)
{
    http_client_free(self->http);
    oauth_authority_free(self->authority);
    http_server_free(self->server);
    loop_free(self->loop);
}

static bay_str page_param(const rig *self, arena *memory, const char *name)
{
    static oauth_form form;
    bay_str page = str_of(self->page);
    assert_int_equal(oauth_form_read(str_from(page, str_find(page, '?') + 1), memory, &form),
                     BAY_OK);
    return oauth_form_get(&form, str_of(name));
}

/* What a browser sends to where the login ends; the status of the answer. */
static int browse(rig *self, const char *method, const char *host, const char *path,
                  const char *query)
{
    one_call one = {0};
    arena memory;
    char url[TEXT_BYTES];
    bay_diag diag = {0};
    uri parts;
    arena_init(&memory, 1 << 20);
    bay_str redirect = page_param(self, &memory, "redirect_uri");
    assert_int_equal(uri_parse(&parts, redirect), BAY_OK);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u%s?%s", parts.port,
             path != NULL ? path : "/callback", query);
    const http_field field = {STR("Host"), str_of(host)};
    http_call_spec spec = {.method = str_of(method),
                           .url = str_of(url),
                           .fields = &field,
                           .field_count = host != NULL ? 1 : 0,
                           .timeout_ms = 5000};
    arena_fini(&memory);
    bay_err err = http_client_call(self->http, &spec, &call_events, &one, &one.call, &diag);
    assert_int_equal(err, BAY_OK);
    turn_until(self, one.ends + one.failures > 0);
    return one.failures > 0 ? -1 : one.status;
}

static void log_in(rig *self)
{
    arena memory;
    char query[TEXT_BYTES];
    arena_init(&memory, 1 << 20);
    snprintf(query, sizeof(query), "code=k&state=%.*s",
             BAY_STR(page_param(self, &memory, "state")));
    arena_fini(&memory);
    assert_int_equal(browse(self, "GET", NULL, NULL, query), 200);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void one_login_for_all(void **state)
{
    (void)state;
    rig it;
    one_call calls[CALLS];
    rig_init(&it);
    for (int i = 0; i < CALLS; i++) {
        call(&it, &calls[i]);
    }
    turn_until(&it, it.opened == 1);
    for (int i = 0; i < CALLS; i++) {
        assert_int_equal(calls[i].ends + calls[i].failures, 0);
    }
    log_in(&it);
    for (int i = 0; i < CALLS; i++) {
        turn_until(&it, calls[i].ends == 1);
        assert_int_equal(calls[i].status, 200);
        assert_int_equal(calls[i].waits, 1);
        assert_int_equal(calls[i].goes_on, 1);
    }
    assert_int_equal(it.opened, 1);
    assert_int_equal(it.registrations, 1);
    assert_int_equal(it.tokens, 1);
    assert_int_equal(it.refused, CALLS);
    assert_int_equal(it.authorized, CALLS);
    assert_int_equal(it.settled, 1);
    /* the registration and the tokens were kept before any was used */
    assert_true(strncmp(it.order, "kku", 3) == 0);
    rig_fini(&it);
}

/* Sixteen requests meet an expired token: one refresh. */
static void one_refresh_for_all(void **state)
{
    (void)state;
    rig it;
    one_call calls[CALLS];
    rig_init(&it);
    it.expires_s = 0; /* not said: the server's 401 tells */
    call(&it, &calls[0]);
    turn_until(&it, it.opened == 1);
    log_in(&it);
    turn_until(&it, calls[0].ends == 1);
    snprintf(it.token, sizeof(it.token), "Bearer none"); /* the server takes it no more */
    for (int i = 0; i < CALLS; i++) {
        call(&it, &calls[i]);
    }
    for (int i = 0; i < CALLS; i++) {
        turn_until(&it, calls[i].ends == 1);
        assert_int_equal(calls[i].status, 200);
    }
    assert_int_equal(it.refreshes, 1);
    assert_int_equal(it.tokens, 2);
    assert_int_equal(it.opened, 1);
    assert_int_equal(it.rereads, 1);
    rig_fini(&it);
}

/* What was kept serves the next process: neither login nor registration. */
static void a_record_serves_again(void **state)
{
    (void)state;
    rig it;
    one_call one;
    rig_init(&it);
    call(&it, &one);
    turn_until(&it, it.opened == 1);
    log_in(&it);
    turn_until(&it, one.ends == 1);
    http_client_free(it.http);
    oauth_authority_free(it.authority);
    http_client_options client = {.limits = http_client_default_limits};
    assert_int_equal(http_client_new(it.loop, &client, &it.http), BAY_OK);
    make_authority(&it);
    assert_int_equal(oauth_authority_load(it.authority, str_of(it.kept)), BAY_OK);
    call(&it, &one);
    turn_until(&it, one.ends == 1);
    assert_int_equal(one.status, 200);
    assert_int_equal(it.opened, 1);
    assert_int_equal(it.refused, 1);
    rig_fini(&it);
}

static void tokens_wait_until_they_are_kept(void **state)
{
    (void)state;
    rig it;
    one_call one;
    rig_init(&it);
    it.keeps_later = true;
    call(&it, &one);
    turn_until(&it, it.kept_count == 1); /* the registration */
    oauth_authority_kept(it.authority);
    turn_until(&it, it.opened == 1);
    log_in(&it);
    turn_until(&it, it.kept_count == 2);
    for (int i = 0; i < 5; i++) {
        loop_turn(it.loop, 1);
    }
    assert_int_equal(it.authorized, 0);
    oauth_authority_kept(it.authority);
    turn_until(&it, one.ends == 1);
    assert_int_equal(one.status, 200);
    rig_fini(&it);
}

static void what_ends_no_login(void **state)
{
    (void)state;
    rig it;
    one_call one;
    char good[256], host[64];
    arena memory;
    rig_init(&it);
    call(&it, &one);
    turn_until(&it, it.opened == 1);
    arena_init(&memory, 1 << 20);
    snprintf(good, sizeof(good), "code=k&state=%.*s", BAY_STR(page_param(&it, &memory, "state")));
    bay_str redirect = page_param(&it, &memory, "redirect_uri");
    uri parts;
    assert_int_equal(uri_parse(&parts, redirect), BAY_OK);
    assert_int_equal(browse(&it, "POST", NULL, NULL, good), 405);
    assert_int_equal(browse(&it, "GET", NULL, "/", good), 404);
    assert_int_equal(browse(&it, "GET", NULL, "/callback/", good), 404);
    assert_int_equal(browse(&it, "GET", "evil.example", NULL, good), 404);
    snprintf(host, sizeof(host), "evil.example:%u", parts.port);
    assert_int_equal(browse(&it, "GET", host, NULL, good), 404);
    snprintf(host, sizeof(host), "localhost:%u", parts.port);
    assert_int_equal(browse(&it, "GET", host, NULL, good), 404);
    assert_int_equal(browse(&it, "GET", NULL, NULL, "code=k&state=guess"), 400);
    assert_int_equal(browse(&it, "GET", NULL, NULL, ""), 400);
    assert_int_equal(it.tokens, 0);
    assert_int_equal(browse(&it, "GET", NULL, NULL, good), 200);
    turn_until(&it, one.ends == 1);
    arena_fini(&memory);
    rig_fini(&it);
}

static void a_login_is_given_up(void **state)
{
    (void)state;
    rig it;
    one_call one, other;
    rig_init(&it);
    it.declines = true;
    call(&it, &one);
    turn_until(&it, one.failures == 1);
    assert_int_equal(one.err, BAY_ERR_DENIED);
    assert_string_equal(one.text, "the person said no");
    assert_int_equal(it.faults, 1);
    /* the next one fails at once: nobody is asked again within a minute */
    call(&it, &other);
    turn_until(&it, other.failures == 1);
    assert_int_equal(it.opened, 1);
    /* unless the person begins anew; and no listener was left */
    it.declines = false;
    oauth_authority_begin(it.authority, false);
    call(&it, &other);
    turn_until(&it, it.opened == 2);
    log_in(&it);
    turn_until(&it, other.ends == 1);
    int left = MOST_TURNS; /* a connection that is open is served for a tenth of a second */
    while (browse(&it, "GET", NULL, NULL, "code=k&state=x") != -1 && left-- > 0) {
    }
    assert_true(left > 0);
    rig_fini(&it);
}

/* Calls that wait may end in any way, and the owner in the middle of a login. */
static void calls_that_end_while_they_wait(void **state)
{
    (void)state;
    rig it;
    one_call one, two;
    rig_init(&it);
    call(&it, &one);
    call(&it, &two);
    turn_until(&it, it.opened == 1);
    http_call_cancel(one.call);
    log_in(&it);
    turn_until(&it, two.ends == 1);
    assert_int_equal(one.ends + one.failures, 0);
    rig_fini(&it);
    rig_init(&it);
    call(&it, &one);
    turn_until(&it, it.opened == 1);
    http_client_free(it.http); /* fails what waits */
    assert_int_equal(one.failures, 1);
    assert_int_equal(one.err, BAY_ERR_CANCELLED);
    oauth_authority_free(it.authority); /* with its listener */
    it.authority = NULL;
    http_client_options client = {.limits = http_client_default_limits};
    assert_int_equal(http_client_new(it.loop, &client, &it.http), BAY_OK);
    assert_int_equal(browse(&it, "GET", NULL, NULL, "code=k"), -1);
    rig_fini(&it);
    /* while the token endpoint has the code */
    rig_init(&it);
    it.is_slow_token = true;
    call(&it, &one);
    turn_until(&it, it.opened == 1);
    log_in(&it);
    turn_until(&it, it.held != NULL);
    rig_fini(&it);
}

static void nobody_can_log_in_here(void **state)
{
    (void)state;
    static const oauth_authority_events none = {.open = NULL};
    rig it;
    one_call one;
    bay_diag diag = {0};
    rig_init(&it);
    oauth_authority_free(it.authority);
    oauth_authority_options options = {.client = {.grant = OAUTH_CODE, .url = str_of(it.url)}};
    assert_int_equal(oauth_authority_new(it.loop, &options, &none, &it, &it.authority, &diag),
                     BAY_OK);
    call(&it, &one);
    turn_until(&it, one.failures == 1);
    assert_non_null(strstr(one.text, "no browser here"));
    rig_fini(&it);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_login_for_all),
        cmocka_unit_test(one_refresh_for_all),
        cmocka_unit_test(a_record_serves_again),
        cmocka_unit_test(tokens_wait_until_they_are_kept),
        cmocka_unit_test(what_ends_no_login),
        cmocka_unit_test(a_login_is_given_up),
        cmocka_unit_test(calls_that_end_while_they_wait),
        cmocka_unit_test(nobody_can_log_in_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

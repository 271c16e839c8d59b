/* An issuer's keys: where they are looked for, how often, what rotation and failures do, and that
 * many loops make one fetch. The issuer is a real server on this machine; the clock is the test's.
 */
#include "unit/auth/jose_rig.h" /* before what takes the word "fail" */
#include <openssl/evp.h>        /* not in a build without it: its tokens are signed */

#include <stdatomic.h>

#include "auth/access_token.h"
#include "http/http_server.h"
#include "net/thread.h"
#include "oauth/issuer.h"
#include "oauth/metadata.h"

enum { MOST_TURNS = 500, TURN_MS = 20, TEXT_BYTES = 256, PATHS = 64 };

static atomic_ullong clock_ms = 1000000;

static uint64_t test_now(void)
{
    return atomic_load(&clock_ms);
}

typedef struct rig {
    loop *loop;
    http_server *server;
    uint16_t port;
    char url[TEXT_BYTES];
    oauth_issuer *issuer;
    oauth_issuer_link *link;
    oauth_wait wait;
    atomic_int dropped;
    int told;
    char paths[PATHS][TEXT_BYTES]; /* of all requests, in order */
    int requests;
    /* what it answers */
    const char *metadata_path; /* where its metadata is */
    const char *names;         /* "issuer" in it; NULL: its own */
    const char *more;          /* further members */
    int keys_status;
    const char *keys;
    const char *max_age;
    bool is_silent;
} rig;

static void reply(http_exchange *exchange, int status, const char *body, const char *max_age)
{
    http_field fields[2] = {{STR("Content-Type"), STR("application/json")}};
    size_t count = 1;
    if (max_age != NULL) {
        fields[count++] = (http_field){STR("Cache-Control"), str_of(max_age)};
    }
    http_exchange_reply(exchange, status, fields, count, str_of(body));
}

static void on_request(void *user, http_exchange *exchange)
{
    rig *self = user;
    bay_str path = http_exchange_path(exchange);
    char text[1024];
    snprintf(self->paths[self->requests++ % PATHS], TEXT_BYTES, "%.*s", BAY_STR(path));
    if (self->is_silent) {
        return;
    }
    if (self->metadata_path != NULL && str_eq(path, str_of(self->metadata_path))) {
        snprintf(text, sizeof(text), "{\"issuer\":\"%s\"%s}",
                 self->names != NULL ? self->names : self->url,
                 self->more != NULL ? self->more : "");
        reply(exchange, 200, text, NULL);
    } else if (str_eq(path, STR("/jwks"))) {
        reply(exchange, self->keys_status, self->keys, self->max_age);
    } else {
        reply(exchange, 404, "{}", NULL);
    }
}

static void on_closed(void *user, http_exchange *exchange, bool is_complete)
{
    (void)user;
    (void)exchange;
    (void)is_complete;
}

static const http_handler handler = {.request = on_request, .closed = on_closed};

static void on_dropped(void *user, const oauth_issuer *issuer)
{
    rig *self = user;
    (void)issuer;
    atomic_fetch_add(&self->dropped, 1);
}

static void on_told(void *user)
{
    ((rig *)user)->told++;
}

#define KEY(id)                                                                                    \
    "{\"kid\":\"" id "\",\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" RIG_EC_X                       \
    "\",\"y\":\"" RIG_EC_Y "\"}"
#define SET(keys) "{\"keys\":[" keys "]}"
#define AT "/.well-known/oauth-authorization-server"

static void rig_begin(rig *self, const char *path)
{
    bay_diag diag = {0};
    *self = (rig){.metadata_path = AT, .keys_status = 200, .keys = SET(KEY("a"))};
    self->wait = (oauth_wait){.done = on_told, .user = self};
    http_server_options options = {
        .limits = http_server_default_limits, .handler = &handler, .user = self};
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    assert_int_equal(http_server_new(self->loop, &options, &self->server), BAY_OK);
    assert_int_equal(http_server_listen(self->server, STR("127.0.0.1:0"), &diag), BAY_OK);
    self->port = http_server_port(self->server);
    snprintf(self->url, sizeof(self->url), "http://127.0.0.1:%u%s", self->port, path);
    static char more[TEXT_BYTES];
    snprintf(more, sizeof(more),
             ",\"jwks_uri\":\"http://127.0.0.1:%u/jwks\",\"introspection_endpoint\":"
             "\"http://127.0.0.1:%u/introspect\"",
             self->port, self->port);
    self->more = more;
    oauth_issuer_options issuer = {
        .url = str_of(self->url), .dropped = on_dropped, .user = self, .now = test_now};
    assert_int_equal(oauth_issuer_new(&issuer, &self->issuer, &diag), BAY_OK);
    assert_int_equal(oauth_issuer_link_new(self->loop, self->issuer, &self->link, &diag), BAY_OK);
}

static void rig_end(rig *self)
{
    oauth_issuer_link_free(self->link);
    oauth_issuer_unref(self->issuer);
    http_server_free(self->server);
    loop_free(self->loop);
}

static void wait_for(rig *self)
{
    int before = self->told;
    oauth_issuer_link_wait(self->link, &self->wait);
    for (int i = 0; i < MOST_TURNS && self->told == before; i++) {
        loop_turn(self->loop, TURN_MS);
    }
    assert_int_equal(self->told, before + 1);
}

/* As whoever needs them: the number of keys, or -1. */
static int keys_of(rig *self)
{
    jose_keys *keys = NULL;
    uint32_t retry_ms = 0;
    bay_err err = oauth_issuer_link_keys(self->link, &keys, &retry_ms);
    if (err == BAY_ERR_AGAIN) {
        wait_for(self);
        err = oauth_issuer_link_keys(self->link, &keys, &retry_ms);
    }
    assert_true(err == BAY_OK || (err == BAY_ERR_BUSY && retry_ms > 0));
    int count = err == BAY_OK ? (int)jose_keys_count(keys) : -1;
    jose_keys_free(keys);
    return count;
}

/* Lets a fetch that nobody waits for end. */
static void settle(rig *self, int requests)
{
    for (int i = 0; i < MOST_TURNS && self->requests < requests; i++) {
        loop_turn(self->loop, TURN_MS);
    }
    size_t fetches = oauth_issuer_fetches(self->issuer);
    for (int i = 0; i < 50 && oauth_issuer_fetches(self->issuer) == fetches; i++) {
        loop_turn(self->loop, 1);
    }
    assert_int_equal(self->requests, requests);
}

/* ---- where its keys are looked for ----------------------------------------------------------- */

static void addresses_of_metadata(void **state)
{
    static const struct {
        const char *issuer;
        const char *urls[OAUTH_METADATA_URLS];
    } rows[] = {
        {"https://h.example",
         {"https://h.example/.well-known/oauth-authorization-server",
          "https://h.example/.well-known/openid-configuration", NULL}},
        {"https://h.example/",
         {"https://h.example/.well-known/oauth-authorization-server",
          "https://h.example/.well-known/openid-configuration", NULL}},
        {"https://h.example:8443/t1/x",
         {"https://h.example:8443/.well-known/oauth-authorization-server/t1/x",
          "https://h.example:8443/.well-known/openid-configuration/t1/x",
          "https://h.example:8443/t1/x/.well-known/openid-configuration"}},
        {"https://h.example/t1/",
         {"https://h.example/.well-known/oauth-authorization-server/t1",
          "https://h.example/.well-known/openid-configuration/t1",
          "https://h.example/t1/.well-known/openid-configuration"}},
        {"https://h.example?x", {NULL, NULL, NULL}},
        {"https://u@h.example", {NULL, NULL, NULL}},
        {"h.example", {NULL, NULL, NULL}},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (size_t nth = 0; nth <= OAUTH_METADATA_URLS; nth++) {
            const char *expected = nth < OAUTH_METADATA_URLS ? rows[i].urls[nth] : NULL;
            buf url;
            buf_init(&url, OAUTH_URL_BYTES);
            assert_int_equal(oauth_metadata_url(str_of(rows[i].issuer), nth, &url),
                             expected != NULL);
            assert_true(expected == NULL || str_eq(buf_view(&url), str_of(expected)));
            buf_fini(&url);
        }
    }
}

static void metadata_is_looked_for_in_order(void **state)
{
    static const char *const places[] = {"/.well-known/oauth-authorization-server/t1",
                                         "/.well-known/openid-configuration/t1",
                                         "/t1/.well-known/openid-configuration"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        rig self;
        rig_begin(&self, "/t1");
        self.metadata_path = places[i];
        assert_int_equal(keys_of(&self), 1);
        assert_int_equal(self.requests, (int)i + 2);
        for (size_t k = 0; k <= i; k++) {
            assert_string_equal(self.paths[k], places[k]);
        }
        assert_string_equal(self.paths[i + 1], "/jwks");
        rig_end(&self);
    }
}

static void metadata_that_is_not_believed(void **state)
{
    static const char *const names[] = {"https://other.example", "", "http://127.0.0.1:$/"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        rig self;
        char own_with_slash[TEXT_BYTES + 1];
        rig_begin(&self, "");
        snprintf(own_with_slash, sizeof(own_with_slash), "%s/", self.url);
        self.names = i == 2 ? own_with_slash : names[i];
        assert_int_equal(keys_of(&self), -1);
        assert_int_equal(self.requests, 1); /* nothing that it leads to is asked */
        rig_end(&self);
    }
    static const char *const members[] = {
        "",
        ",\"jwks_uri\":7",
        ",\"jwks_uri\":\"http://10.0.0.1/jwks\"",
        ",\"jwks_uri\":\"http://169.254.169.254/latest\"",
        ",\"jwks_uri\":\"file:///etc/passwd\"",
        ",\"jwks_uri\":\"https://169.254.169.254/latest\"",
        ",\"jwks_uri\":\"https://[::ffff:169.254.169.254]/latest\"",
    };
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        rig self;
        rig_begin(&self, "");
        self.more = members[i];
        assert_int_equal(keys_of(&self), -1);
        assert_int_equal(self.requests, 1);
        rig_end(&self);
    }
}

static void key_sets_that_are_none(void **state)
{
    static const char *const sets[] = {"<html>",
                                       "[]",
                                       "{}",
                                       SET(""),
                                       SET("{\"kty\":\"oct\",\"k\":\"AAAA\"}"),
                                       "{\"keys\":{}}",
                                       "{\"keys\":[],\"keys\":[" KEY("a") "]}"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        rig self;
        rig_begin(&self, "");
        self.keys = sets[i];
        assert_int_equal(keys_of(&self), -1);
        rig_end(&self);
    }
    rig self;
    rig_begin(&self, "");
    self.keys_status = 302;
    assert_int_equal(keys_of(&self), -1);
    rig_end(&self);
}

/* ---- how often ------------------------------------------------------------------------------- */

static void a_set_is_fresh_as_long_as_it_says(void **state)
{
    (void)state;
    static const struct {
        const char *max_age;
        uint64_t fresh_ms;
    } rows[] = {
        {NULL, OAUTH_KEYS_FRESH_MS},
        {"max-age=1", OAUTH_KEYS_FRESH_LEAST_MS},
        {"no-store", OAUTH_KEYS_FRESH_LEAST_MS},
        {"max-age=300", 300000},
        {"max-age=99999999999", OAUTH_KEYS_FRESH_MOST_MS},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        rig self;
        rig_begin(&self, "");
        self.max_age = rows[i].max_age;
        assert_int_equal(keys_of(&self), 1);
        assert_int_equal(self.requests, 2);
        atomic_fetch_add(&clock_ms, rows[i].fresh_ms - 1);
        assert_int_equal(keys_of(&self), 1);
        assert_int_equal(self.requests, 2);
        atomic_fetch_add(&clock_ms, 1);
        self.keys = SET(KEY("a") "," KEY("b"));
        assert_int_equal(keys_of(&self), 1); /* the earlier one serves while it is fetched */
        settle(&self, 3);
        assert_int_equal(keys_of(&self), 2);
        assert_int_equal(self.dropped, 0);
        rig_end(&self);
    }
}

static void a_set_is_used_on_for_a_day(void **state)
{
    (void)state;
    rig self;
    rig_begin(&self, "");
    assert_int_equal(keys_of(&self), 1);
    self.keys_status = 503;
    atomic_fetch_add(&clock_ms, OAUTH_KEYS_FRESH_MS);
    assert_int_equal(keys_of(&self), 1);
    settle(&self, 3);
    assert_int_equal(keys_of(&self), 1);
    assert_int_equal(self.requests, 3); /* not again at once */
    atomic_fetch_add(&clock_ms, OAUTH_KEYS_REFRESH_MS);
    assert_int_equal(keys_of(&self), 1);
    settle(&self, 5); /* its metadata may say something else by now */
    atomic_fetch_add(&clock_ms, OAUTH_KEYS_STALE_MS);
    assert_int_equal(keys_of(&self), -1);
    self.keys_status = 200;
    atomic_fetch_add(&clock_ms, OAUTH_KEYS_REFRESH_MS);
    assert_int_equal(keys_of(&self), 1);
    rig_end(&self);
}

static void an_issuer_that_is_not_there_is_asked_again_soon(void **state)
{
    (void)state;
    rig self;
    rig_begin(&self, "");
    self.metadata_path = NULL;
    assert_int_equal(keys_of(&self), -1);
    assert_int_equal(self.requests, 2);
    assert_int_equal(keys_of(&self), -1);
    assert_int_equal(self.requests, 2);
    atomic_fetch_add(&clock_ms, OAUTH_KEYS_RETRY_MS);
    assert_int_equal(keys_of(&self), -1);
    assert_int_equal(self.requests, 4);
    atomic_fetch_add(&clock_ms, OAUTH_KEYS_RETRY_MS);
    assert_int_equal(keys_of(&self), -1);
    assert_int_equal(self.requests, 4); /* twice as long now */
    atomic_fetch_add(&clock_ms, OAUTH_KEYS_RETRY_MS);
    self.metadata_path = AT;
    assert_int_equal(keys_of(&self), 1);
    rig_end(&self);
}

/* As who verifies a token: true when the key is there in the end. */
static bool has_key(rig *self, const char *id)
{
    bool has_waited = false;
    for (;;) {
        jose_keys *keys = NULL;
        uint32_t retry_ms = 0;
        arena memory;
        access_token token;
        bay_diag diag = {0};
        buf text;
        char header[128];
        if (keys_of(self) < 0) {
            return false;
        }
        assert_int_equal(oauth_issuer_link_keys(self->link, &keys, &retry_ms), BAY_OK);
        EVP_PKEY *key = rig_ec_key();
        buf_init(&text, RIG_TEXT);
        arena_init(&memory, RIG_TEXT);
        snprintf(header, sizeof(header), "{\"alg\":\"ES256\",\"kid\":\"%s\"}", id);
        rig_token(key, header, "{\"iss\":\"i\"}", &text);
        assert_int_equal(access_token_read(buf_view(&text), &memory, &token, &diag), BAY_OK);
        bay_err err = access_token_verify(&token, keys, &diag);
        EVP_PKEY_free(key);
        jose_keys_free(keys);
        buf_fini(&text);
        if (err == BAY_ERR_NOT_FOUND) {
            err = oauth_issuer_link_refresh(self->link, token.key_id, has_waited);
        }
        arena_fini(&memory);
        if (err != BAY_ERR_AGAIN) {
            assert_true(err == BAY_OK || err == BAY_ERR_NOT_FOUND);
            return err == BAY_OK;
        }
        wait_for(self);
        has_waited = true;
    }
}

static void a_new_key_is_found_by_one_fetch(void **state)
{
    (void)state;
    rig self;
    rig_begin(&self, "");
    assert_true(has_key(&self, "a"));
    assert_int_equal(self.requests, 2);
    self.keys = SET(KEY("b"));
    assert_false(has_key(&self, "b")); /* not within a minute of the last one */
    assert_int_equal(self.requests, 2);
    atomic_fetch_add(&clock_ms, OAUTH_KEYS_REFRESH_MS);
    assert_true(has_key(&self, "b"));
    assert_int_equal(self.requests, 3);
    assert_int_equal(self.dropped, 1); /* what "a" signed counts no more */
    assert_false(has_key(&self, "a"));
    rig_end(&self);
}

/* Five hundred a second for two minutes: two fetches. */
static void a_storm_of_unknown_keys(void **state)
{
    (void)state;
    rig self;
    char id[32];
    rig_begin(&self, "");
    assert_true(has_key(&self, "a"));
    int requests = self.requests;
    for (int second = 0; second < 120; second++) {
        for (int i = 0; i < 5; i++) {
            snprintf(id, sizeof(id), "made-up-%d-%d", second, i);
            assert_false(has_key(&self, id));
        }
        atomic_fetch_add(&clock_ms, 1000);
    }
    assert_int_equal(self.requests, requests + 1);
    /* one that is known not to be there does not make it be asked for again */
    atomic_fetch_add(&clock_ms, OAUTH_KEYS_REFRESH_MS);
    assert_false(has_key(&self, "again"));
    assert_int_equal(self.requests, requests + 2);
    atomic_fetch_add(&clock_ms, OAUTH_KEYS_REFRESH_MS);
    assert_false(has_key(&self, "again"));
    assert_int_equal(self.requests, requests + 2);
    rig_end(&self);
}

static void fixed_keys_are_not_fetched(void **state)
{
    (void)state;
    rig self;
    bay_diag diag = {0};
    oauth_issuer *issuer = NULL;
    oauth_issuer_link *link = NULL;
    jose_keys *keys = NULL;
    uint32_t retry_ms = 0;
    rig_begin(&self, "");
    oauth_issuer_options options = {.url = STR("urn:our:own"), .keys = STR(SET(KEY("a")))};
    assert_int_equal(oauth_issuer_new(&options, &issuer, &diag), BAY_OK);
    assert_int_equal(oauth_issuer_link_new(self.loop, issuer, &link, &diag), BAY_OK);
    assert_int_equal(oauth_issuer_link_keys(link, &keys, &retry_ms), BAY_OK);
    assert_int_equal(oauth_issuer_link_refresh(link, STR("b"), false), BAY_ERR_NOT_FOUND);
    jose_keys_free(keys);
    oauth_issuer_link_free(link);
    oauth_issuer_unref(issuer);
    static const struct {
        const char *url;
        const char *keys;
    } broken[] = {{"", ""},
                  {"http://as.example", ""},
                  {"https://as.example", "http://keys.example/set"},
                  {"https://as.example", "{}"},
                  {"https://as.example", "{\"keys\":[1"}};
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        oauth_issuer_options wrong = {.url = str_of(broken[i].url), .keys = str_of(broken[i].keys)};
        assert_int_not_equal(oauth_issuer_new(&wrong, &issuer, &diag), BAY_OK);
    }
    rig_end(&self);
}

static void where_it_introspects(void **state)
{
    (void)state;
    rig self;
    buf url;
    uint32_t retry_ms = 0;
    rig_begin(&self, "");
    buf_init(&url, OAUTH_URL_BYTES);
    assert_int_equal(oauth_issuer_link_introspection(self.link, &url, &retry_ms), BAY_ERR_AGAIN);
    wait_for(&self);
    assert_int_equal(oauth_issuer_link_introspection(self.link, &url, &retry_ms), BAY_OK);
    buf_char(&url, '\0');
    assert_non_null(strstr(url.at, "/introspect"));
    assert_int_equal(self.requests, 1); /* its keys are not needed for that */
    assert_int_equal(keys_of(&self), 1);
    buf_fini(&url);
    rig_end(&self);
    rig_begin(&self, "");
    self.more = "";
    buf_init(&url, OAUTH_URL_BYTES);
    assert_int_equal(oauth_issuer_link_introspection(self.link, &url, &retry_ms), BAY_ERR_AGAIN);
    wait_for(&self);
    assert_int_equal(oauth_issuer_link_introspection(self.link, &url, &retry_ms),
                     BAY_ERR_UNSUPPORTED);
    buf_fini(&url);
    rig_end(&self);
}

/* ---- many loops ------------------------------------------------------------------------------ */

/* The link that fetches goes, in the middle of it: another one takes over. */
static void a_link_that_goes_hands_over(void **state)
{
    (void)state;
    rig self;
    bay_diag diag = {0};
    oauth_issuer_link *other = NULL;
    jose_keys *keys = NULL;
    uint32_t retry_ms = 0;
    rig_begin(&self, "");
    assert_int_equal(oauth_issuer_link_new(self.loop, self.issuer, &other, &diag), BAY_OK);
    self.is_silent = true;
    assert_int_equal(oauth_issuer_link_keys(other, &keys, &retry_ms), BAY_ERR_AGAIN);
    for (int i = 0; i < MOST_TURNS && self.requests == 0; i++) {
        loop_turn(self.loop, TURN_MS);
    }
    assert_int_equal(oauth_issuer_link_keys(self.link, &keys, &retry_ms), BAY_ERR_AGAIN);
    self.is_silent = false;
    oauth_issuer_link_wait(self.link, &self.wait);
    oauth_issuer_link_free(other);
    for (int i = 0; i < MOST_TURNS && self.told == 0; i++) {
        loop_turn(self.loop, TURN_MS);
    }
    assert_int_equal(self.told, 1);
    assert_int_equal(keys_of(&self), 1);
    /* one that waits and is cancelled hears nothing, nor does one whose link goes */
    oauth_issuer_link_wait(self.link, &self.wait);
    oauth_wait_cancel(&self.wait);
    oauth_wait_cancel(&self.wait);
    rig_end(&self);
}

typedef struct other_loop {
    net_thread thread;
    oauth_issuer *issuer;
    loop *loop;
    oauth_issuer_link *link;
    oauth_wait wait;
    bool is_done;
    int keys;
} other_loop;

static void other_told(void *user)
{
    ((other_loop *)user)->is_done = true;
}

static void other_run(void *argument)
{
    other_loop *self = argument;
    bay_diag diag = {0};
    jose_keys *keys = NULL;
    uint32_t retry_ms = 0;
    self->keys = -1;
    self->wait = (oauth_wait){.done = other_told, .user = self};
    if (loop_new(&self->loop) != BAY_OK ||
        oauth_issuer_link_new(self->loop, self->issuer, &self->link, &diag) != BAY_OK) {
        return;
    }
    bay_err err = oauth_issuer_link_keys(self->link, &keys, &retry_ms);
    if (err == BAY_ERR_AGAIN) {
        oauth_issuer_link_wait(self->link, &self->wait);
        for (int i = 0; i < MOST_TURNS && !self->is_done; i++) {
            loop_turn(self->loop, TURN_MS);
        }
        err = oauth_issuer_link_keys(self->link, &keys, &retry_ms);
    }
    self->keys = err == BAY_OK ? (int)jose_keys_count(keys) : -1;
    jose_keys_free(keys);
    oauth_issuer_link_free(self->link);
    loop_free(self->loop);
}

static void loops_share_one_fetch(void **state)
{
    enum { LOOPS = 4 };
    (void)state;
    rig self;
    other_loop others[LOOPS] = {{.keys = 0}};
    rig_begin(&self, "");
    for (size_t i = 0; i < LOOPS; i++) {
        others[i].issuer = self.issuer;
        assert_int_equal(net_thread_start(&others[i].thread, other_run, &others[i]), BAY_OK);
    }
    /* the server answers on this thread */
    for (int i = 0; i < MOST_TURNS && oauth_issuer_fetches(self.issuer) == 0; i++) {
        loop_turn(self.loop, TURN_MS);
    }
    for (size_t i = 0; i < LOOPS; i++) {
        net_thread_join(&others[i].thread);
        assert_int_equal(others[i].keys, 1);
    }
    assert_int_equal(oauth_issuer_fetches(self.issuer), 1);
    assert_int_equal(self.requests, 2);
    rig_end(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_of_metadata),
        cmocka_unit_test(metadata_is_looked_for_in_order),
        cmocka_unit_test(metadata_that_is_not_believed),
        cmocka_unit_test(key_sets_that_are_none),
        cmocka_unit_test(a_set_is_fresh_as_long_as_it_says),
        cmocka_unit_test(a_set_is_used_on_for_a_day),
        cmocka_unit_test(an_issuer_that_is_not_there_is_asked_again_soon),
        cmocka_unit_test(a_new_key_is_found_by_one_fetch),
        cmocka_unit_test(a_storm_of_unknown_keys),
        cmocka_unit_test(fixed_keys_are_not_fetched),
        cmocka_unit_test(where_it_introspects),
        cmocka_unit_test(a_link_that_goes_hands_over),
        cmocka_unit_test(loops_share_one_fetch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

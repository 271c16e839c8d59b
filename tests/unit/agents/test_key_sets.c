/* Key sets that the signatures of a remote agent's card name: what is fetched, from where, and what
 * of it is believed. Card and keys come from real servers on this machine. */
#include "unit/auth/jose_rig.h" /* before what takes the word "fail" */

#include <openssl/opensslv.h> /* a library without it cannot verify */

#include "agents/remote.h"
#include "auth/card_signature.h"
#include "base/check.h"
#include "http/http_server.h"

#define RIG_EC_MEMBERS                                                                             \
    "\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" RIG_EC_X "\",\"y\":\"" RIG_EC_Y "\""

enum { MOST_TURNS = 500, TURN_MS = 20, URL_BYTES = 160, KEYS_BYTES = 2048 };

typedef struct rig {
    loop *loop;
    http_server *server; /* of the card, and of the keys */
    uint16_t port;
    agents_settings settings;
    agents_public public;
    agents_remote *remote;
    char url[URL_BYTES];
    bay_str allowed; /* the key set that the configuration names */
    char allowed_text[URL_BYTES];
    const char *named; /* by the signature; $P is the port */
    const char *key_id;
    const char *signer;
    int signatures;
    int key_requests; /* of the key set's path */
    int elsewhere;    /* of any other that is no card's */
    /* the answer to it */
    int status;
    const char *types[3];
    const char *location;
    const char *keys;
    size_t padding; /* white space behind it */
    bool has_told_secret;
} rig;

static void fill_port(const rig *self, const char *text, char out[URL_BYTES])
{
    const char *at = strstr(text, "$P");
    if (at == NULL) {
        (void)snprintf(out, URL_BYTES, "%s", text);
        return;
    }
    (void)snprintf(out, URL_BYTES, "%.*s%u%s", (int)(at - text), text, self->port, at + 2);
}

/* ---- the servers ----------------------------------------------------------------------------- */

static void answer_card(rig *self, http_exchange *exchange)
{
    static const char text[] =
        "{\"name\":\"Far\",\"description\":\"d\",\"version\":\"1\",\"supportedInterfaces\":[{"
        "\"url\":\"http://127.0.0.1:9/\",\"protocolBinding\":\"JSONRPC\",\"protocolVersion\":"
        "\"1.0\"}],\"capabilities\":{\"streaming\":true},\"defaultInputModes\":[\"text/plain\"],"
        "\"defaultOutputModes\":[\"text/plain\"],\"skills\":[{\"id\":\"a\",\"name\":\"A\","
        "\"description\":\"d\",\"tags\":[\"t\"]}]}";
    static const http_field type = {STR_INIT("Content-Type"), STR_INIT("application/json")};
    char jku[URL_BYTES];
    jose_key *key = NULL;
    buf card, next;
    fill_port(self, self->named, jku);
    buf_init(&card, 1 << 16);
    buf_str(&card, str_of(text));
    assert_int_equal(jose_key_new(str_of(self->signer), str_of(self->key_id), &key, NULL), BAY_OK);
    for (int i = 0; i < self->signatures; i++) {
        arena memory;
        json_doc doc;
        arena_init(&memory, 1 << 20);
        buf_init(&next, 1 << 16);
        assert_int_equal(json_parse(&doc, buf_view(&card), NULL, &memory, NULL), BAY_OK);
        assert_int_equal(card_sign(json_root(&doc), key, str_of(jku), &next, NULL), BAY_OK);
        buf_fini(&card);
        card = next;
        arena_fini(&memory);
    }
    http_exchange_reply(exchange, 200, &type, 1, buf_view(&card));
    buf_fini(&card);
    jose_key_free(key);
}

static void answer_keys(rig *self, http_exchange *exchange)
{
    http_field fields[4];
    size_t count = 0;
    buf body;
    self->has_told_secret =
        self->has_told_secret || http_exchange_field(exchange, STR("Authorization")).at != NULL;
    for (size_t i = 0; i < ARRAY_LEN(self->types) && self->types[i] != NULL; i++) {
        fields[count++] = (http_field){STR("Content-Type"), str_of(self->types[i])};
    }
    if (self->location != NULL) {
        fields[count++] = (http_field){STR("Location"), str_of(self->location)};
    }
    buf_init(&body, 16 << 20);
    buf_str(&body, str_of(self->keys));
    for (size_t i = 0; i < self->padding; i++) {
        buf_char(&body, ' ');
    }
    assert_int_equal(body.err, BAY_OK);
    http_exchange_reply(exchange, self->status, fields, count, buf_view(&body));
    buf_fini(&body);
}

static void on_request(void *user, http_exchange *exchange)
{
    rig *self = user;
    bay_str path = http_exchange_path(exchange);
    if (str_eq(path, STR("/.well-known/agent-card.json"))) {
        answer_card(self, exchange);
    } else if (str_eq(path, STR("/keys.json"))) {
        self->key_requests++;
        answer_keys(self, exchange);
    } else {
        self->elsewhere++;
        static const http_field type = {STR_INIT("Content-Type"), STR_INIT("application/json")};
        http_exchange_reply(exchange, 200, &type, 1,
                            STR("{\"keys\":[{\"kid\":\"k1\"," RIG_EC_MEMBERS "}]}"));
    }
}

static void on_closed(void *user, http_exchange *exchange, bool is_complete)
{
    (void)user;
    (void)exchange;
    (void)is_complete;
}

static void on_drained(void *user, http_exchange *exchange)
{
    (void)user;
    (void)exchange;
}

static const http_handler handler = {
    .request = on_request, .closed = on_closed, .drained = on_drained};

/* ---- the rig --------------------------------------------------------------------------------- */

#define KEY(more) "{\"keys\":[{" more RIG_EC_MEMBERS "}]}"
#define GOOD KEY("\"kid\":\"k1\",")

static const http_field secret = {STR_INIT("Authorization"), STR_INIT("Bearer s3cr3t")};

static void rig_open(rig *self)
{
    bay_diag diag = {0};
    *self = (rig){.named = "http://127.0.0.1:$P/keys.json",
                  .key_id = "k1",
                  .signer = RIG_EC_PRIVATE,
                  .signatures = 1,
                  .status = 200,
                  .types = {"application/json"},
                  .keys = GOOD};
    http_server_options server = {
        .limits = http_server_default_limits, .handler = &handler, .user = self};
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    assert_int_equal(http_server_new(self->loop, &server, &self->server), BAY_OK);
    assert_int_equal(http_server_listen(self->server, STR("127.0.0.1:0"), &diag), BAY_OK);
    self->port = http_server_port(self->server);
    fill_port(self, "http://127.0.0.1:$P", self->url);
    fill_port(self, "http://127.0.0.1:$P/keys.json", self->allowed_text);
    self->allowed = str_of(self->allowed_text);
    self->public = (agents_public){.base = STR("http://gateway"), .grpc = STR("")};
    self->settings =
        (agents_settings){.name = STR("far"),
                          .url = str_of(self->url),
                          .fields = &secret,
                          .field_count = 1,
                          .connect_ms = 5000,
                          .connections = 16,
                          .timeout_ms = 5000,
                          .stream_idle_ms = 5000,
                          .refresh_ms = 60000,
                          .answer_bytes = 1 << 20,
                          .verify = {.is_required = true, .jku = &self->allowed, .jku_count = 1},
                          .circuit = {3, 60000, 100000}};
}

static void told(void *user)
{
    ++*(int *)user;
}

/* Has the card been fetched and judged; closes the rig. What it counted stays. */
static bool is_believed(rig *self)
{
    int count = 0;
    bay_diag diag = {0};
    agents_watch watch = {.told = told, .user = &count};
    assert_int_equal(
        agents_remote_new(self->loop, &self->settings, &self->public, NULL, &self->remote, &diag),
        BAY_OK);
    agents_remote_watch(self->remote, &watch);
    assert_true(agents_remote_learn(self->remote));
    for (int i = 0; i < MOST_TURNS && count == 0; i++) {
        loop_turn(self->loop, TURN_MS);
    }
    assert_int_equal(count, 1);
    bool has_card = agents_remote_card(self->remote) != NULL;
    agents_remote_state state = agents_remote_state_of(self->remote);
    assert_int_equal(state.is_verified, has_card);
    if (!has_card) {
        assert_non_null(strstr(state.error, "signed by nobody who is trusted"));
    }
    assert_false(self->has_told_secret);
    agents_remote_unwatch(&watch);
    agents_remote_free(self->remote);
    http_server_free(self->server);
    loop_free(self->loop);
    return has_card;
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void redirects_are_not_followed(void **state)
{
    (void)state;
    static const int statuses[] = {300, 301, 302, 303, 307, 308};
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        rig self;
        rig_open(&self);
        self.status = statuses[i];
        self.location = "/elsewhere.json";
        assert_false(is_believed(&self)); /* nor is what came with it */
        assert_int_equal(self.key_requests, 1);
        assert_int_equal(self.elsewhere, 0);
    }
}

static void only_a_whole_answer_counts(void **state)
{
    (void)state;
    static const int statuses[] = {201, 203, 206, 304, 401, 404, 500};
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        rig self;
        rig_open(&self);
        self.status = statuses[i];
        assert_false(is_believed(&self));
        assert_int_equal(self.key_requests, 1);
    }
}

static void too_many_bytes_are_refused(void **state)
{
    (void)state;
    static const struct {
        size_t bytes;
        bool is_fine;
    } cases[] = {{JOSE_KEYSET_BYTES - 1, true},
                 {JOSE_KEYSET_BYTES, true},
                 {JOSE_KEYSET_BYTES + 1, false},
                 {AGENTS_CARD_BYTES + 1, false},
                 {(10 << 20) + 1, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        rig self;
        rig_open(&self);
        self.padding = cases[i].bytes - strlen(self.keys);
        assert_int_equal(is_believed(&self), cases[i].is_fine);
    }
}

static void what_is_said_to_be_something_else_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *types[3];
        bool is_fine;
    } cases[] = {{{"text/html"}, false},
                 {{"application/javascript"}, false},
                 {{"image/png"}, false},
                 {{"application/json", "text/html"}, false},
                 {{"text/html", "application/json"}, false},
                 {{"application/json, text/html"}, false},
                 {{NULL}, true},
                 {{"application/jwk-set+json"}, true},
                 {{"Application/JSON; charset=utf-8"}, true},
                 {{"text/plain; charset=utf-8"}, true}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        rig self;
        rig_open(&self);
        memcpy(self.types, cases[i].types, sizeof(self.types));
        assert_int_equal(is_believed(&self), cases[i].is_fine);
        assert_int_equal(self.key_requests, 1);
    }
}

static void keys_for_something_else_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        KEY("\"kid\":\"k2\","), /* unknown */
        KEY("\"kid\":\"K1\","),
        KEY("\"kid\":\"k1 \","),
        KEY("\"kid\":\"\","),
        KEY("\"kid\":1,"),
        KEY("\"kid\":\"k1\",\"kid\":\"k1\","),
        KEY("\"kid\":\"k1\",\"use\":\"enc\","),
        KEY("\"kid\":\"k1\",\"use\":\"SIG\","),
        KEY("\"kid\":\"k1\",\"use\":[\"sig\"],"),
        KEY("\"kid\":\"k1\",\"key_ops\":[\"encrypt\"],"),
        KEY("\"kid\":\"k1\",\"key_ops\":\"verify\","),
        KEY("\"kid\":\"k1\",\"alg\":\"RS256\","),
        KEY("\"kid\":\"k1\",\"alg\":\"HS256\","),
        KEY("\"kid\":\"k1\",\"alg\":\"none\","),
        KEY("\"kid\":\"k1\",\"alg\":\"ES384\","),
        KEY("\"kid\":\"k1\",\"d\":\"" RIG_EC_D "\","), /* published: anybody's */
        "{\"keys\":[{\"kid\":\"k1\",\"kty\":\"oct\",\"alg\":\"ES256\",\"k\":\"" RIG_EC_X "\"}]}",
        "{\"keys\":[{\"kid\":\"k1\",\"alg\":\"ES256\",\"kty\":\"RSA\",\"n\":\"" RIG_RSA_N
        "\",\"e\":\"AQAB\"}]}",
        "{\"keys\":[{\"kid\":\"k1\",\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" RIG_EC_Y
        "\",\"y\":\"" RIG_EC_X "\"}]}", /* no point of the curve */
        "{\"keys\":[]}",
        "{\"keys\":{}}",
        "[" GOOD "]",
        "{\"keys\":[{\"kid\":\"k1\"," RIG_EC_MEMBERS "}]",
        GOOD GOOD,
        "",
    };
    static const char *const good[] = {
        GOOD, KEY(""), /* a key without an id may be any */
        KEY("\"kid\":\"k1\",\"use\":\"sig\",\"alg\":\"ES256\",\"key_ops\":[\"verify\"],"),
        "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\"},{\"kid\":\"k1\"," RIG_EC_MEMBERS "}]}"};
    for (size_t i = 0; i < ARRAY_LEN(bad) + ARRAY_LEN(good); i++) {
        bool is_good = i >= ARRAY_LEN(bad);
        rig self;
        rig_open(&self);
        self.keys = is_good ? good[i - ARRAY_LEN(bad)] : bad[i];
        if (is_believed(&self) != is_good) {
            fail_msg("%s: believed where it must not be, or the reverse", self.keys);
        }
        assert_int_equal(self.key_requests, 1);
    }
}

/* Only the very text that is configured; whatever else it may mean to somebody is not asked. */
static void other_spellings_are_other_addresses(void **state)
{
    (void)state;
    static const char *const named[] = {
        "http://a@127.0.0.1:$P/keys.json",
        "http://a:b@127.0.0.1:$P/keys.json",
        "http://@127.0.0.1:$P/keys.json",
        "http://127.0.0.1:$P@127.0.0.1/keys.json",
        "http://127.0.0.1:$P\\@127.0.0.1/keys.json",
        "HTTP://127.0.0.1:$P/keys.json",
        "https://127.0.0.1:$P/keys.json",
        "http://127.0.0.1.:$P/keys.json",
        "http://127.0.0.1:0$P/keys.json",
        "http://127.0.0.1/keys.json",
        "http://localhost:$P/keys.json",
        "http://LOCALHOST:$P/keys.json",
        "http://localhost.:$P/keys.json",
        "http://127.1:$P/keys.json",
        "http://0x7f000001:$P/keys.json",
        "http://2130706433:$P/keys.json",
        "http://0177.0.0.1:$P/keys.json",
        "http://%31%32%37.0.0.1:$P/keys.json",
        "http://[::ffff:127.0.0.1]:$P/keys.json",
        "http://[::ffff:7f00:1]:$P/keys.json",
        "http://[::1]:$P/keys.json",
        "http://127.0.0.1:$P/%6beys.json",
        "http://127.0.0.1:$P/keys.json?",
        "http://127.0.0.1:$P/keys.json?a",
        "http://127.0.0.1:$P/keys.json#",
        "http://127.0.0.1:$P/keys.json/",
        "http://127.0.0.1:$P//keys.json",
        "http://127.0.0.1:$P/./keys.json",
        "http://127.0.0.1:$P/x/../keys.json",
        "http://127.0.0.1:$P/KEYS.json",
        "http://127.0.0.1:$P/keys.json.evil",
        "http://127.0.0.1:$P/keys",
        " http://127.0.0.1:$P/keys.json",
        "http://127.0.0.1:$P/keys.json ",
        "\thttp://127.0.0.1:$P/keys.json",
        "//127.0.0.1:$P/keys.json",
        "/keys.json",
        "file:///etc/passwd",
        "",
    };
    for (size_t i = 0; i < ARRAY_LEN(named); i++) {
        rig self;
        rig_open(&self);
        self.named = named[i];
        if (is_believed(&self) || self.key_requests + self.elsewhere != 0) {
            fail_msg("%s was fetched, or believed", named[i]);
        }
    }
}

/* Each of its signatures may name the set; whoever signs for another set's sake is not believed. */
static void a_set_is_asked_for_once(void **state)
{
    (void)state;
    rig self;
    rig_open(&self);
    self.signatures = 8;
    self.key_id = "unknown";
    assert_false(is_believed(&self));
    assert_int_equal(self.key_requests, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(redirects_are_not_followed),
        cmocka_unit_test(only_a_whole_answer_counts),
        cmocka_unit_test(too_many_bytes_are_refused),
        cmocka_unit_test(what_is_said_to_be_something_else_is_refused),
        cmocka_unit_test(keys_for_something_else_are_refused),
        cmocka_unit_test(other_spellings_are_other_addresses),
        cmocka_unit_test(a_set_is_asked_for_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Signed cards: both rules, what is refused, and a card that another implementation signed. */
#include "jose_rig.h"

#include <openssl/evp.h> /* of no use without it: left out then */

#include "auth/card_signature.h"
#include "support/failing_memory.h"

typedef struct desk {
    arena memory;
    json_doc doc;
    buf text;
} desk;

static json_val open_card(desk *self, bay_str text)
{
    arena_init(&self->memory, (size_t)64 << 20);
    buf_init(&self->text, (size_t)4 << 20);
    buf_str(&self->text, text);
    assert_int_equal(json_parse(&self->doc, buf_view(&self->text), NULL, &self->memory, NULL),
                     BAY_OK);
    return json_root(&self->doc);
}

static void close_card(desk *self)
{
    buf_fini(&self->text);
    arena_fini(&self->memory);
}

static bay_err verify(bay_str text, const jose_keys *keys)
{
    desk at;
    bay_diag diag = {.code = BAY_OK};
    bay_err err = card_verify(open_card(&at, text), keys, &diag);
    assert_true(err == BAY_OK || diag.code == err);
    close_card(&at);
    return err;
}

static jose_key *signing_key(void)
{
    jose_key *key = NULL;
    assert_int_equal(jose_key_new(STR(RIG_EC_PRIVATE), STR("k1"), &key, NULL), BAY_OK);
    return key;
}

static void sign(const char *card, buf *out)
{
    desk at;
    jose_key *key = signing_key();
    bay_diag diag = {.text = ""};
    buf_clear(out);
    if (card_sign(open_card(&at, str_of(card)), key, STR("https://a.example/keys.json"), out,
                  &diag) != BAY_OK) {
        fail_msg("%s: %s", card, diag.text);
    }
    jose_key_free(key);
    close_card(&at);
}

static void cards_that_cannot_be_signed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bay_err err;
    } rows[] = {
        {"[]", BAY_ERR_TYPE},
        {"\"x\"", BAY_ERR_TYPE},
        {"{\"signatures\":{}}", BAY_ERR_TYPE},
        {"{\"signatures\":\"x\"}", BAY_ERR_TYPE},
        {"{\"a\":1,\"a\":2}", BAY_ERR_DUPLICATE},
        {"{\"x\":{\"a\":1,\"\\u0061\":2}}", BAY_ERR_DUPLICATE},
        {"{\"a\":1e999}", BAY_ERR_RANGE},
        {"{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
         "]]]"
         "]]]]]]]]]]]]]]]]}",
         BAY_ERR_DEPTH},
        {"{\"signatures\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]}", BAY_ERR_LIMIT},
    };
    jose_key *key = signing_key();
    buf out;
    buf_init(&out, RIG_TEXT);
    buf_lit(&out, "before");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        desk at;
        bay_diag diag = {.code = BAY_OK};
        assert_int_equal(card_sign(open_card(&at, str_of(rows[i].text)), key, STR(""), &out, &diag),
                         rows[i].err);
        assert_int_equal(diag.code, rows[i].err);
        assert_true(str_eq(buf_view(&out), STR("before")));
        close_card(&at);
    }
    buf large;
    buf_init(&large, (size_t)4 << 20);
    buf_lit(&large, "{\"a\":\"");
    while (large.len < CARD_SIGNED_BYTES) {
        buf_char(&large, 'x');
    }
    buf_lit(&large, "\"}");
    desk at;
    assert_int_equal(card_sign(open_card(&at, buf_view(&large)), key, STR(""), &out, NULL),
                     BAY_ERR_LIMIT);
    close_card(&at);
    buf_fini(&large);
    buf_fini(&out);
    jose_key_free(key);
}

static void cards_that_are_not_believed(void **state)
{
    (void)state;
    jose_keys *keys = rig_keys(RIG_EC_JWK);
    static const char *const unsigned_cards[] = {"{}", "[]", "{\"signatures\":[]}",
                                                 "{\"signatures\":{\"protected\":\"a\"}}",
                                                 "{\"name\":\"a\",\"signatures\":null}"};
    for (size_t i = 0; i < sizeof(unsigned_cards) / sizeof(unsigned_cards[0]); i++) {
        assert_int_equal(verify(str_of(unsigned_cards[i]), keys), BAY_ERR_NOT_FOUND);
    }
    static const char *const forged[] = {
        "{\"signatures\":[1]}",
        "{\"signatures\":[{}]}",
        "{\"signatures\":[{\"protected\":\"\",\"signature\":\"\"}]}",
        "{\"signatures\":[{\"protected\":\"eyJhbGciOiJub25lIn0\",\"signature\":\"\"}]}",
        "{\"signatures\":[{\"protected\":\"eyJhbGciOiJFUzI1NiJ9\",\"signature\":\"" RIG_EC_SIGNATURE
        "\"}]}",
        "{\"a\":1,\"a\":1,\"signatures\":[{}]}",
        "{\"a\":1e999,\"signatures\":[{}]}",
    };
    for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
        assert_int_equal(verify(str_of(forged[i]), keys), BAY_ERR_DENIED);
    }
    jose_keys_free(keys);
}

/* Replaces the first `from` by `to`. */
static void replace(buf *text, const char *from, const char *to)
{
    char *at = memmem(text->at, text->len, from, strlen(from));
    assert_non_null(at);
    size_t start = (size_t)(at - text->at);
    buf made;
    buf_init(&made, RIG_TEXT);
    buf_append(&made, text->at, start);
    buf_str(&made, str_of(to));
    buf_append(&made, at + strlen(from), text->len - start - strlen(from));
    buf_clear(text);
    buf_str(text, buf_view(&made));
    buf_fini(&made);
}

#define CARD                                                                                       \
    "{\"version\":\"1\",\"name\":\"An "                                                            \
    "\\u0061gent\",\"description\":\"d\",\"supportedInterfaces\":["                                \
    "{\"url\":\"https://"                                                                          \
    "a.example\",\"protocolBinding\":\"JSONRPC\",\"protocolVersion\":\"1.0\"}],"                   \
    "\"capabilities\":{\"streaming\":false},\"n\":1.50}"

static void changed_cards_are_not_believed(void **state)
{
    (void)state;
    static const char *const changes[][2] = {
        {"\"d\"", "\"e\""},
        {"a.example", "b.example"},
        {"false", "true"},
        {"1.50", "1.51"},
        {"\"version\":\"1\",", ""},
        {"{\"version\"", "{\"x\":0,\"version\""},
        {"{\"version\"", "{\"securitySchemes\":{\"a\":{\"b\":1}},\"version\""},
        {"\"signature\":\"", "\"signature\":\"A"},
    };
    jose_keys *keys = rig_keys(RIG_EC_JWK);
    buf text;
    buf_init(&text, RIG_TEXT);
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        sign(CARD, &text);
        assert_int_equal(verify(buf_view(&text), keys), BAY_OK);
        replace(&text, changes[i][0], changes[i][1]);
        assert_int_equal(verify(buf_view(&text), keys), BAY_ERR_DENIED);
    }
    /* Another spelling is the same card. */
    sign(CARD, &text);
    replace(&text, "1.50", "15e-1");
    replace(&text, "\\u0061", "a");
    replace(&text, "{\"version\":\"1\",", "{ ");
    replace(&text, ",\"n\":", ",\"version\":\"1\",\"n\":");
    assert_int_equal(verify(buf_view(&text), keys), BAY_OK);
    jose_keys_free(keys);
    EVP_PKEY *other = EVP_EC_gen("P-256");
    char *pem = rig_pem(other);
    jose_key *key = NULL;
    buf public;
    buf_init(&public, RIG_TEXT);
    assert_int_equal(jose_key_new(str_of(pem), STR("k1"), &key, NULL), BAY_OK);
    assert_int_equal(jose_key_public(key, &public), BAY_OK);
    assert_int_equal(jose_keys_new(buf_view(&public), &keys, NULL), BAY_OK);
    assert_int_equal(verify(buf_view(&text), keys), BAY_ERR_DENIED);
    jose_keys_free(keys);
    jose_key_free(key);
    free(pem);
    buf_fini(&public);
    buf_fini(&text);
}

static size_t signatures_of(bay_str text)
{
    desk at;
    size_t count = json_count(json_get(open_card(&at, text), STR("signatures")));
    close_card(&at);
    return count;
}

static void empty_fields_have_two_rules(void **state)
{
    (void)state;
    jose_keys *keys = rig_keys(RIG_EC_JWK);
    buf text;
    buf_init(&text, RIG_TEXT);
    sign("{\"name\":\"a\"}", &text);
    assert_int_equal(signatures_of(buf_view(&text)), 1);
    sign("{\"name\":\"a\",\"description\":\"\",\"skills\":[],\"capabilities\":{}}", &text);
    assert_int_equal(signatures_of(buf_view(&text)), 2);
    assert_int_equal(verify(buf_view(&text), keys), BAY_OK);
    replace(&text, "\"skills\":[],", ""); /* as an SDK hands it on: only the second is good */
    assert_int_equal(verify(buf_view(&text), keys), BAY_OK);
    replace(&text, "\"name\":\"a\"", "\"name\":\"b\"");
    assert_int_equal(verify(buf_view(&text), keys), BAY_ERR_DENIED);
    sign("{\"a\":{\"b\":[{\"c\":\"\"},null,[]]}}", &text); /* nothing in it at all */
    assert_int_equal(verify(buf_view(&text), keys), BAY_OK);
    sign("{}", &text);
    assert_int_equal(verify(buf_view(&text), keys), BAY_OK);
    /* false and 0 are not empty */
    sign("{\"a\":false,\"b\":0}", &text);
    replace(&text, "\"a\":false,", "");
    assert_int_equal(verify(buf_view(&text), keys), BAY_ERR_DENIED);
    jose_keys_free(keys);
    buf_fini(&text);
}

static void signatures_are_added(void **state)
{
    (void)state;
    jose_keys *keys = rig_keys(RIG_EC_JWK);
    buf text;
    buf again;
    buf_init(&text, RIG_TEXT);
    buf_init(&again, RIG_TEXT);
    sign("{\"name\":\"a\",\"signatures\":[{\"protected\":\"x\",\"signature\":\"y\"}]}", &text);
    assert_int_equal(signatures_of(buf_view(&text)), 2);
    assert_int_equal(verify(buf_view(&text), keys), BAY_OK);
    buf_char(&text, '\0');
    sign(text.at, &again);
    assert_int_equal(signatures_of(buf_view(&again)), 3);
    assert_int_equal(verify(buf_view(&again), keys), BAY_OK);
    desk at;
    card_signer signers[CARD_SIGNATURES];
    json_val card = open_card(&at, buf_view(&again));
    assert_int_equal(card_signers(card, &at.memory, signers, CARD_SIGNATURES), 2);
    assert_true(str_eq(signers[0].key_id, STR("k1")));
    assert_true(str_eq(signers[1].jku, STR("https://a.example/keys.json")));
    assert_int_equal(card_signers(card, &at.memory, signers, 1), 1);
    assert_int_equal(card_signers(JSON_NONE, &at.memory, signers, 1), 0);
    close_card(&at);
    /* A good signature behind more bad ones than are looked at does not count. */
    buf_clear(&text);
    buf_lit(&text, "\"signatures\":[");
    for (int i = 0; i < CARD_SIGNATURES; i++) {
        buf_lit(&text, "{},");
    }
    buf_char(&text, '\0');
    sign("{\"name\":\"a\"}", &again);
    replace(&again, "\"signatures\":[", text.at);
    assert_int_equal(verify(buf_view(&again), keys), BAY_ERR_DENIED);
    buf_fini(&again);
    buf_fini(&text);
    jose_keys_free(keys);
}

static void without_memory(void **state)
{
    (void)state;
    desk at;
    jose_keys *keys = rig_keys(RIG_EC_JWK);
    jose_key *key = signing_key();
    json_val card = open_card(&at, STR("{\"name\":\"a\",\"b\":[{\"c\":\"\"}]}"));
    buf text;
    buf_init(&text, RIG_TEXT);
    sign("{\"name\":\"a\",\"b\":[{\"c\":\"\"}]}", &text);
    desk signed_at;
    json_val signed_card = open_card(&signed_at, buf_view(&text));
    for (size_t i = 0; failing_memory_start(i); i++) {
        buf out;
        buf_init(&out, RIG_TEXT);
        bay_err err = card_sign(card, key, STR(""), &out, NULL);
        assert_true(err == BAY_OK || (err == BAY_ERR_NOMEM && out.len == 0));
        buf_fini(&out);
        err = card_verify(signed_card, keys, NULL);
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        failing_memory_check();
    }
    close_card(&signed_at);
    close_card(&at);
    buf_fini(&text);
    jose_key_free(key);
    jose_keys_free(keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cards_that_cannot_be_signed),
        cmocka_unit_test(cards_that_are_not_believed),
        cmocka_unit_test(changed_cards_are_not_believed),
        cmocka_unit_test(empty_fields_have_two_rules),
        cmocka_unit_test(signatures_are_added),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

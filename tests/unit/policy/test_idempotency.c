/* What makes two calls the same, and what does not. Negative cases first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/opensslv.h> /* a build that cannot digest leaves this out */
#include <stdio.h>
#include <string.h>

#include "auth/digest.h"
#include "base/check.h"
#include "base/str.h"
#include "policy/idempotency.h"
#include "support/people.h"

typedef struct rig {
    arena memory;
    seal_ring *ring;
    policy_idempotency how;
    outcome_key key;
    bay_str upstream;
    bay_diag diag;
} rig;

static void rig_init(rig *self)
{
    *self = (rig){0};
    arena_init(&self->memory, 1 << 20);
    assert_int_equal(seal_ring_new(&self->ring), BAY_OK);
    assert_int_equal(seal_ring_generate(self->ring), BAY_OK);
}

static void rig_fini(rig *self)
{
    arena_fini(&self->memory);
    seal_ring_free(self->ring);
}

static bay_err read_for(rig *self, const char *who, const char *tool, const char *params)
{
    json_doc doc;
    char digest[DIGEST_TEXT_BYTES + 1];
    assert_int_equal(json_parse(&doc, str_of(params), NULL, &self->memory, NULL), BAY_OK);
    json_val root = json_root(&doc);
    assert_int_equal(digest_json(json_get(root, STR("arguments")), digest), BAY_OK);
    idempotency_call call = {.how = &self->how,
                             .principal = person(who),
                             .server = STR("bank"),
                             .name = str_of(tool),
                             .params = root,
                             .arguments_digest = str_of(digest),
                             .ring = self->ring,
                             .memory = &self->memory};
    bay_err err = idempotency_read(&call, &self->key, &self->upstream, &self->diag);
    assert_int_equal(idempotency_has_key(&call), err != BAY_ERR_NOT_FOUND);
    return err;
}

static bay_err read_key(rig *self, const char *params)
{
    return read_for(self, "ann", "bank.pay", params);
}

#define META(key) "{\"_meta\":{\"patchbay/idempotencyKey\":" key "},\"arguments\":{\"n\":1}}"

static void keys_that_cannot_be_used_are_refused(void **state)
{
    static const char *const bad[] = {
        META("\"\""),
        META("true"),
        META("{}"),
        META("[\"a\"]"),
        "{\"_meta\":{\"patchbay/idempotencyKey\":\"a\",\"patchbay/idempotencyKey\":\"b\"}}",
        "{\"arguments\":{\"ref\":{}}}",
    };
    char text[512];
    char key[300];
    rig self;
    (void)state;
    rig_init(&self);
    self.how.argument = STR("/ref");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(read_key(&self, bad[i]), BAY_ERR_INVALID);
        assert_non_null(strstr(self.diag.text, "was not carried out"));
    }
    memset(key, 'k', sizeof(key));
    for (int len = 255; len <= 256; len++) {
        (void)snprintf(text, sizeof(text), META("\"%.*s\""), len, key);
        assert_int_equal(read_key(&self, text), len == 255 ? BAY_OK : BAY_ERR_INVALID);
    }
    rig_fini(&self);
}

static void a_call_without_a_key_has_none(void **state)
{
    static const char *const without[] = {"{}",
                                          "{\"_meta\":{}}",
                                          "{\"_meta\":7}",
                                          META("null"),
                                          "{\"arguments\":{\"reference\":\"a\"}}",
                                          "{\"_meta\":{\"acme/key\":\"a\"}}"};
    rig self;
    (void)state;
    rig_init(&self);
    self.how.argument = STR("/ref");
    for (size_t i = 0; i < ARRAY_LEN(without); i++) {
        assert_int_equal(read_key(&self, without[i]), BAY_ERR_NOT_FOUND);
    }
    rig_fini(&self);
}

/* The key of somebody else, guessed; and the same key for another tool. */
static void a_key_counts_within_principal_and_tool(void **state)
{
    static const struct {
        const char *who;
        const char *tool;
    } others[] = {{"bob", "bank.pay"}, {"", "bank.pay"}, {"ann", "bank.refund"}};
    rig self;
    (void)state;
    rig_init(&self);
    assert_int_equal(read_key(&self, META("\"1\"")), BAY_OK);
    outcome_key first = self.key;
    bay_str upstream = self.upstream;
    assert_int_equal(upstream.len, IDEMPOTENCY_UPSTREAM_BYTES);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        assert_int_equal(read_for(&self, others[i].who, others[i].tool, META("\"1\"")), BAY_OK);
        assert_memory_not_equal(self.key.key, first.key, OUTCOME_KEY_BYTES);
        assert_false(str_eq(self.upstream, upstream));
    }
    assert_int_equal(read_key(&self, META("\"1\"")), BAY_OK);
    assert_memory_equal(self.key.key, first.key, OUTCOME_KEY_BYTES);
    assert_true(str_eq(self.upstream, upstream));
    rig_fini(&self);
}

/* The same key for a cheaper call; but another spelling is the same call. */
static void the_fingerprint_is_of_the_canonical_arguments(void **state)
{
    rig self;
    (void)state;
    rig_init(&self);
    self.how.argument = STR("/ref");
    assert_int_equal(read_key(&self, "{\"arguments\":{\"ref\":\"a\",\"n\":1}}"), BAY_OK);
    outcome_key first = self.key;
    assert_int_equal(read_key(&self, "{\"arguments\":{ \"n\":1.0, \"ref\":\"\\u0061\"}}"), BAY_OK);
    assert_memory_equal(&self.key, &first, sizeof(first));
    assert_int_equal(read_key(&self, "{\"arguments\":{\"ref\":\"a\",\"n\":2}}"), BAY_OK);
    assert_memory_equal(self.key.key, first.key, OUTCOME_KEY_BYTES);
    assert_memory_not_equal(self.key.fingerprint, first.fingerprint, OUTCOME_KEY_BYTES);
    rig_fini(&self);
}

/* Two equal reminders may be meant: only where it is configured, for a short time, and never mixed up
 * with a key that somebody gives. */
static void a_derived_key_is_opt_in_and_short(void **state)
{
    rig self;
    char digest[DIGEST_TEXT_BYTES + 1];
    char text[256];
    (void)state;
    rig_init(&self);
    assert_int_equal(read_key(&self, "{\"arguments\":{}}"), BAY_ERR_NOT_FOUND);
    self.how.derive = true;
    assert_int_equal(read_key(&self, "{\"arguments\":{}}"), BAY_OK);
    outcome_key derived = self.key;
    assert_int_equal(derived.keep_ms, IDEMPOTENCY_DERIVED_KEEP_MS);
    assert_int_equal(digest_sha256(STR("{}"), digest), BAY_OK);
    (void)snprintf(text, sizeof(text), "{\"_meta\":{\"patchbay/idempotencyKey\":\"%s\"}}", digest);
    assert_int_equal(read_key(&self, text), BAY_OK);
    assert_int_equal(self.key.keep_ms, IDEMPOTENCY_KEEP_MS);
    assert_memory_not_equal(self.key.key, derived.key, OUTCOME_KEY_BYTES);
    rig_fini(&self);
}

static void answers_to_a_question_belong_to_their_call(void **state)
{
    rig self;
    (void)state;
    rig_init(&self);
    self.how.derive = true;
    assert_int_equal(read_key(&self, "{\"arguments\":{}}"), BAY_OK);
    assert_false(self.key.is_retry);
    assert_int_equal(read_key(&self, "{\"arguments\":{},\"requestState\":\"s\"}"), BAY_OK);
    assert_true(self.key.is_retry);
    assert_int_equal(read_key(&self, "{\"arguments\":{},\"inputResponses\":{}}"), BAY_OK);
    assert_true(self.key.is_retry);
    rig_fini(&self);
}

/* A key that is new in the ring seals from then on; the server must not see another call. */
static void a_new_key_of_the_ring_keeps_the_servers_key(void **state)
{
    rig self;
    (void)state;
    rig_init(&self);
    assert_int_equal(read_key(&self, META("\"1\"")), BAY_OK);
    bay_str before = self.upstream;
    assert_int_equal(seal_ring_generate(self.ring), BAY_OK);
    assert_int_equal(read_key(&self, META("\"1\"")), BAY_OK);
    assert_true(str_eq(self.upstream, before));
    rig_fini(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_that_cannot_be_used_are_refused),
        cmocka_unit_test(a_call_without_a_key_has_none),
        cmocka_unit_test(a_key_counts_within_principal_and_tool),
        cmocka_unit_test(the_fingerprint_is_of_the_canonical_arguments),
        cmocka_unit_test(a_derived_key_is_opt_in_and_short),
        cmocka_unit_test(answers_to_a_question_belong_to_their_call),
        cmocka_unit_test(a_new_key_of_the_ring_keeps_the_servers_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

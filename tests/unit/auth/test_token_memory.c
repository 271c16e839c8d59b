/* What was verified is remembered for its place and its time, within the bound, and by all threads
 * at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/token_memory.h" /* cmocka takes the word "fail" */

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "support/failing_memory.h"

enum { NOW = 1000000, LATER = NOW + 60000 };

static const auth_principal *person(const char *name)
{
    const auth_principal *made = NULL;
    principal_parts parts = {.proof = PRINCIPAL_TOKEN, .subject = str_of(name)};
    assert_int_equal(principal_new(&parts, &made), BAY_OK);
    return made;
}

/* As a digest is: nothing about it can be guessed. */
static void digest_of(unsigned number, unsigned char out[DIGEST_BYTES])
{
    char text[32];
    int len = snprintf(text, sizeof(text), "token %u", number);
    if (digest_bytes((bay_str){text, (size_t)len}, out) == BAY_OK) {
        return;
    }
    uint64_t x = number + 1; /* a library without OpenSSL */
    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        x = x * 6364136223846793005U + 1442695040888963407U;
        out[i] = (unsigned char)(x >> 56);
    }
}

static void keep(token_memory *self, unsigned number, uint64_t place, const auth_principal *whose,
                 uint64_t until_ms, uint64_t now_ms)
{
    unsigned char digest[DIGEST_BYTES];
    digest_of(number, digest);
    token_entry entry = {whose, until_ms, 7};
    token_memory_keep(self, digest, place, &entry, now_ms);
}

static token_verdict find(token_memory *self, unsigned number, uint64_t place, uint64_t now_ms,
                          const auth_principal *expected)
{
    unsigned char digest[DIGEST_BYTES];
    token_entry entry = {NULL, 0, 0};
    digest_of(number, digest);
    token_verdict verdict = token_memory_find(self, digest, place, now_ms, &entry);
    if (verdict == TOKEN_GOOD) {
        assert_ptr_equal(entry.principal, expected);
        assert_int_equal(entry.kind, 7);
        principal_unref(entry.principal);
    }
    return verdict;
}

static void a_token_is_good_at_its_place_and_in_its_time(void **state)
{
    (void)state;
    token_memory *self = NULL;
    const auth_principal *ann = person("ann");
    assert_int_equal(token_memory_new(64, &self), BAY_OK);
    assert_int_equal(find(self, 1, 1, NOW, NULL), TOKEN_UNKNOWN);
    keep(self, 1, 1, ann, LATER, NOW);
    assert_int_equal(find(self, 1, 1, NOW, ann), TOKEN_GOOD);
    assert_int_equal(find(self, 1, 2, NOW, NULL), TOKEN_UNKNOWN); /* another endpoint */
    assert_int_equal(find(self, 2, 1, NOW, NULL), TOKEN_UNKNOWN);
    assert_int_equal(find(self, 1, 1, LATER - 1, ann), TOKEN_GOOD);
    assert_int_equal(find(self, 1, 1, LATER, NULL), TOKEN_UNKNOWN);
    assert_int_equal(token_memory_count(self), 0); /* it went */
    /* kept anew, for another principal: of one token there is one */
    const auth_principal *bob = person("bob");
    keep(self, 1, 1, ann, LATER, NOW);
    keep(self, 1, 1, bob, LATER, NOW);
    assert_int_equal(find(self, 1, 1, NOW, bob), TOKEN_GOOD);
    assert_int_equal(token_memory_count(self), 1);
    token_memory_free(self);
    principal_unref(ann);
    principal_unref(bob);
}

static void a_refusal_lasts_seconds(void **state)
{
    (void)state;
    unsigned char digest[DIGEST_BYTES];
    token_memory *self = NULL;
    const auth_principal *ann = person("ann");
    assert_int_equal(token_memory_new(64, &self), BAY_OK);
    digest_of(1, digest);
    token_memory_refuse(self, digest, 1, NOW);
    assert_int_equal(find(self, 1, 1, NOW, NULL), TOKEN_REFUSED);
    assert_int_equal(find(self, 1, 2, NOW, NULL), TOKEN_UNKNOWN);
    assert_int_equal(find(self, 2, 1, NOW, NULL), TOKEN_UNKNOWN);
    assert_int_equal(find(self, 1, 1, NOW + TOKEN_MEMORY_REFUSED_MS - 1, NULL), TOKEN_REFUSED);
    assert_int_equal(find(self, 1, 1, NOW + TOKEN_MEMORY_REFUSED_MS, NULL), TOKEN_UNKNOWN);
    /* what is good is good, whatever was said of it before */
    keep(self, 1, 1, ann, LATER, NOW);
    assert_int_equal(find(self, 1, 1, NOW, ann), TOKEN_GOOD);
    token_memory_free(self);
    principal_unref(ann);
}

/* A flood of others, good or bad, costs a token that is used nothing. */
static void what_is_used_stays(void **state)
{
    enum { MOST = 256, USED = 16, FLOOD = 4000 };
    (void)state;
    token_memory *self = NULL;
    const auth_principal *ann = person("ann");
    const auth_principal *bob = person("bob");
    assert_int_equal(token_memory_new(MOST, &self), BAY_OK);
    for (unsigned i = 0; i < USED; i++) {
        keep(self, i, 1, ann, LATER, NOW);
    }
    for (unsigned i = 0; i < FLOOD; i++) {
        unsigned char digest[DIGEST_BYTES];
        keep(self, 1000 + i, 1, bob, LATER, NOW);
        digest_of(100000 + i, digest);
        token_memory_refuse(self, digest, 1, NOW);
        assert_true(token_memory_count(self) <= MOST);
        for (unsigned used = 0; used < USED && i % 2 == 0; used++) {
            assert_int_equal(find(self, used, 1, NOW, ann), TOKEN_GOOD);
        }
    }
    token_memory_free(self);
    principal_unref(ann);
    principal_unref(bob);
}

static bool is_of(void *user, const token_entry *entry)
{
    return entry->principal == user;
}

/* Whatever is removed in whatever order, what is left is found. */
static void removing_loses_nothing_else(void **state)
{
    enum { TOKENS = 3000 };
    (void)state;
    token_memory *self = NULL;
    const auth_principal *people[] = {person("ann"), person("bob"), person("eve")};
    assert_int_equal(token_memory_new(TOKENS * 2, &self), BAY_OK);
    for (unsigned i = 0; i < TOKENS; i++) {
        keep(self, i, i % 5, people[i % 3], i % 7 == 0 ? NOW + 10 : LATER, NOW);
    }
    assert_int_equal(token_memory_count(self), TOKENS);
    for (unsigned i = 0; i < TOKENS; i += 7) { /* these have expired by then */
        assert_int_equal(find(self, i, i % 5, NOW + 10, NULL), TOKEN_UNKNOWN);
    }
    token_memory_forget(self, is_of, (void *)(uintptr_t)people[1]);
    for (unsigned i = 0; i < TOKENS; i++) {
        bool is_there = i % 7 != 0 && i % 3 != 1;
        assert_int_equal(find(self, i, i % 5, NOW + 10, people[i % 3]),
                         is_there ? TOKEN_GOOD : TOKEN_UNKNOWN);
    }
    token_memory_free(self);
    for (size_t i = 0; i < 3; i++) {
        principal_unref(people[i]);
    }
}

static void nothing_is_remembered_without_memory(void **state)
{
    (void)state;
    const auth_principal *ann = person("ann");
    for (size_t at = 0; failing_memory_start(at); at++) {
        token_memory *self = NULL;
        if (token_memory_new(64, &self) == BAY_OK) {
            for (unsigned i = 0; i < 40; i++) {
                keep(self, i, 1, ann, LATER, NOW);
                token_verdict verdict = find(self, i, 1, NOW, ann);
                assert_true(verdict == TOKEN_GOOD || verdict == TOKEN_UNKNOWN);
            }
        }
        token_memory_free(self);
        failing_memory_check();
    }
    principal_unref(ann);
    token_memory *none = NULL;
    assert_int_equal(token_memory_new(0, &none), BAY_OK);
    const auth_principal *bob = person("bob");
    keep(none, 1, 1, bob, LATER, NOW);
    assert_int_equal(find(none, 1, 1, NOW, NULL), TOKEN_UNKNOWN);
    token_memory_free(none);
    principal_unref(bob);
}

typedef struct crowd {
    token_memory *memory;
    const auth_principal *whose;
    unsigned first;
} crowd;

static void *come_and_go(void *argument)
{
    const crowd *self = argument;
    for (unsigned round = 0; round < 2000; round++) {
        unsigned number = self->first + round % 97;
        keep(self->memory, number, 1, self->whose, LATER, NOW);
        (void)find(self->memory, number, 1, NOW, self->whose);
        if (round % 500 == 0) {
            token_memory_forget(self->memory, is_of, (void *)(uintptr_t)self->whose);
        }
    }
    return NULL;
}

static void threads_share_it(void **state)
{
    enum { THREADS = 4 };
    (void)state;
    pthread_t threads[THREADS];
    crowd crowds[THREADS];
    const auth_principal *ann = person("ann");
    token_memory *self = NULL;
    assert_int_equal(token_memory_new(128, &self), BAY_OK);
    for (unsigned i = 0; i < THREADS; i++) {
        crowds[i] = (crowd){self, ann, i % 2 * 50};
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &crowds[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    token_memory_free(self);
    principal_unref(ann);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_good_at_its_place_and_in_its_time),
        cmocka_unit_test(a_refusal_lasts_seconds),
        cmocka_unit_test(what_is_used_stays),
        cmocka_unit_test(removing_loses_nothing_else),
        cmocka_unit_test(nothing_is_remembered_without_memory),
        cmocka_unit_test(threads_share_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

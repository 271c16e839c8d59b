/* Whose each task and context of an agent is: another's is never found, nothing collides, what is
 * remembered is bounded and survives in a store, under a newer key too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "agents/owners.h" /* cmocka takes the word "fail" */

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "support/failing_memory.h"
#include "support/people.h"

PEOPLE_FROM_THE_START

enum { NAME_BYTES = 1024 };

typedef struct one {
    agents_caller caller;
    char key[NAME_BYTES];
} one;

static one *someone(one *self, const auth_principal *who, const seal_ring *ring)
{
    buf key = {.at = self->key, .cap = NAME_BYTES, .max = NAME_BYTES};
    assert_int_equal(principal_key(who, ring, 0, &key), BAY_OK);
    self->caller = (agents_caller){who, ring, buf_view(&key)};
    return self;
}

static bool is_of(agents_owned *at, owned_kind kind, const char *id, const char *name)
{
    one who;
    return agents_owned_is(at, kind, str_of(id), &someone(&who, person(name), NULL)->caller);
}

static bay_err claim(agents_owned *at, owned_kind kind, const char *id, const char *name)
{
    one who;
    return agents_owned_claim(at, kind, str_of(id), &someone(&who, person(name), NULL)->caller);
}

static size_t tasks_of(agents_owned *at, const char *name)
{
    one who;
    return agents_owned_count(at, &someone(&who, person(name), NULL)->caller);
}

static agents_owners *opened(const char *path)
{
    agents_owners *self = NULL;
    bay_diag diag = {0};
    assert_int_equal(agents_owners_new(str_of(path), &self, &diag), BAY_OK);
    return self;
}

static void anothers_is_never_found(void **state)
{
    (void)state;
    agents_owners *all = opened("");
    agents_owned *far = agents_owners_of(all, STR("far"));
    assert_false(is_of(far, OWNED_TASK, "t", "ann"));
    assert_int_equal(claim(far, OWNED_TASK, "t", "ann"), BAY_OK);
    assert_true(is_of(far, OWNED_TASK, "t", "ann"));
    assert_false(is_of(far, OWNED_TASK, "t", "bob"));
    assert_false(is_of(far, OWNED_TASK, "t", ""));
    assert_int_equal(claim(far, OWNED_TASK, "t", "bob"), BAY_ERR_DENIED);
    assert_int_equal(claim(far, OWNED_TASK, "t", ""), BAY_ERR_DENIED);
    assert_int_equal(claim(far, OWNED_TASK, "t", "ann"), BAY_OK);
    assert_true(is_of(far, OWNED_TASK, "t", "ann"));
    assert_int_equal(tasks_of(far, "ann"), 1);
    assert_int_equal(tasks_of(far, "bob"), 0);
    agents_owners_free(all);
}

/* Equal ids at two agents, of two kinds, and of names that run into each other. */
static void nothing_collides(void **state)
{
    (void)state;
    agents_owners *all = opened("");
    agents_owned *at[] = {agents_owners_of(all, STR("far")), agents_owners_of(all, STR("fart")),
                          agents_owners_of(all, STR("f"))};
    assert_ptr_equal(at[0], agents_owners_of(all, STR("far")));
    assert_int_equal(claim(at[0], OWNED_TASK, "1", "ann"), BAY_OK);
    assert_int_equal(claim(at[1], OWNED_TASK, "1", "bob"), BAY_OK);
    assert_int_equal(claim(at[0], OWNED_CONTEXT, "1", "bob"), BAY_OK);
    assert_int_equal(claim(at[2], OWNED_TASK, "ar1", "bob"), BAY_OK);
    assert_true(is_of(at[0], OWNED_TASK, "1", "ann"));
    assert_false(is_of(at[0], OWNED_CONTEXT, "1", "ann"));
    assert_false(is_of(at[1], OWNED_TASK, "1", "ann"));
    assert_false(is_of(at[2], OWNED_TASK, "1", "ann"));
    /* subjects with the separators of identities in them */
    assert_int_equal(claim(at[0], OWNED_TASK, "2", "a:3:b"), BAY_OK);
    assert_false(is_of(at[0], OWNED_TASK, "2", "a"));
    assert_false(is_of(at[0], OWNED_TASK, "2", "a:3"));
    assert_false(is_of(at[0], OWNED_TASK, "2", "b"));
    assert_true(is_of(at[0], OWNED_TASK, "2", "a:3:b"));
    agents_owners_free(all);
}

static void an_id_that_is_too_long_or_empty_is_nobodys(void **state)
{
    (void)state;
    static char id[AGENTS_OWNED_ID_BYTES + 2];
    agents_owners *all = opened("");
    agents_owned *far = agents_owners_of(all, STR("far"));
    memset(id, 'x', AGENTS_OWNED_ID_BYTES + 1);
    assert_int_equal(claim(far, OWNED_TASK, id, "ann"), BAY_ERR_LIMIT);
    assert_false(is_of(far, OWNED_TASK, id, "ann"));
    assert_int_equal(claim(far, OWNED_TASK, "", "ann"), BAY_ERR_LIMIT);
    assert_false(is_of(far, OWNED_TASK, "", "ann"));
    id[AGENTS_OWNED_ID_BYTES] = '\0';
    assert_int_equal(claim(far, OWNED_TASK, id, "ann"), BAY_OK);
    assert_true(is_of(far, OWNED_TASK, id, "ann"));
    agents_owners_free(all);
}

static void who_has_too_many_loses_his_own(void **state)
{
    (void)state;
    char id[24];
    agents_owners *all = opened("");
    agents_owned *far = agents_owners_of(all, STR("far"));
    assert_int_equal(claim(far, OWNED_TASK, "anns", "ann"), BAY_OK);
    for (int i = 0; i < AGENTS_OWNED_BY_ONE; i++) {
        (void)snprintf(id, sizeof(id), "%d", i);
        assert_int_equal(claim(far, OWNED_TASK, id, "bob"), BAY_OK);
    }
    assert_true(is_of(far, OWNED_TASK, "0", "bob")); /* used: the next is the least recent */
    assert_int_equal(claim(far, OWNED_TASK, "more", "bob"), BAY_OK);
    assert_true(is_of(far, OWNED_TASK, "0", "bob"));
    assert_false(is_of(far, OWNED_TASK, "1", "bob"));
    assert_false(is_of(far, OWNED_TASK, "1", ""));
    assert_true(is_of(far, OWNED_TASK, "anns", "ann"));
    assert_int_equal(tasks_of(far, "bob"), AGENTS_OWNED_BY_ONE);
    agents_owners_free(all);
}

static void an_agent_with_too_many_loses_the_least_recently_used(void **state)
{
    (void)state;
    char id[24], name[24];
    agents_owners *all = opened("");
    agents_owned *far = agents_owners_of(all, STR("far"));
    for (int i = 0; i < AGENTS_OWNED; i++) {
        (void)snprintf(id, sizeof(id), "%d", i);
        (void)snprintf(name, sizeof(name), "p%d", i / AGENTS_OWNED_BY_ONE);
        assert_int_equal(claim(far, OWNED_TASK, id, name), BAY_OK);
    }
    assert_true(is_of(far, OWNED_TASK, "0", "p0"));
    assert_int_equal(claim(far, OWNED_TASK, "more", "ann"), BAY_OK);
    assert_true(is_of(far, OWNED_TASK, "0", "p0"));
    assert_false(is_of(far, OWNED_TASK, "1", "p0"));
    assert_true(is_of(far, OWNED_TASK, "more", "ann"));
    agents_owners_free(all);
}

static void *claim_many(void *user)
{
    char id[24];
    for (int i = 0; i < 2000; i++) {
        (void)snprintf(id, sizeof(id), "%d", i);
        (void)claim(user, OWNED_TASK, id, i % 2 == 0 ? "ann" : "bob");
        (void)is_of(user, OWNED_TASK, id, "ann");
    }
    return NULL;
}

static void all_loops_share_it(void **state)
{
    (void)state;
    pthread_t threads[3];
    agents_owners *all = opened("");
    agents_owned *far = agents_owners_of(all, STR("far"));
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, claim_many, far), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(tasks_of(far, "ann"), 1000);
    assert_int_equal(tasks_of(far, "bob"), 1000);
    agents_owners_free(all);
}

static void without_memory_it_is_nobodys(void **state)
{
    (void)state;
    bool is_its = false;
    for (size_t at = 0; failing_memory_start(at); at++) {
        agents_owners *all = NULL;
        is_its = false;
        if (agents_owners_new(STR(""), &all, NULL) == BAY_OK) {
            agents_owned *far = agents_owners_of(all, STR("far"));
            bay_err err = far != NULL ? claim(far, OWNED_TASK, "t", "ann") : BAY_ERR_NOMEM;
            is_its = err == BAY_OK && is_of(far, OWNED_TASK, "t", "ann");
            if (far != NULL) {
                assert_false(is_of(far, OWNED_TASK, "t", "bob"));
            }
        }
        agents_owners_free(all);
        failing_memory_check();
    }
    assert_true(is_its);
}

#if !defined(BAY_NO_TLS) && !defined(BAY_NO_SQLITE)

static const bay_str key_one = STR_INIT("0123456789abcdef0123456789abcdef");
static const bay_str key_two = STR_INIT("the second key, of 32 bytes too.");

/* One process after the other on one file. */
typedef struct process {
    loop *home;
    agents_owners *all;
    agents_owned *far;
} process;

static void process_start(process *self, const char *path)
{
    assert_int_equal(loop_new(&self->home), BAY_OK);
    self->all = opened(path);
    assert_int_equal(agents_owners_write_on(self->all, self->home), BAY_OK);
    self->far = agents_owners_of(self->all, STR("far"));
}

static void process_end(process *self)
{
    agents_owners_close(self->all);
    agents_owners_free(self->all);
    loop_free(self->home);
}

static void remove_store(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char name[80];
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        (void)snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        (void)unlink(name);
    }
}

static void a_store_keeps_owners_and_no_names(void **state)
{
    (void)state;
    char path[] = "/tmp/owners.XXXXXX", text[200];
    process self;
    one ann, bob;
    seal_ring *ring = NULL;
    close(mkstemp(path));
    assert_int_equal(seal_ring_new(&ring), BAY_OK);
    assert_int_equal(seal_ring_add(ring, key_one), BAY_OK);
    process_start(&self, path);
    assert_true(agents_owned_is_open(self.far));
    agents_owned_close(self.far);
    someone(&ann, person("ann"), ring);
    someone(&bob, person("bob"), ring);
    for (int i = 0; i < 600; i++) { /* more than are written at a time */
        (void)snprintf(text, sizeof(text), "task %d", i);
        assert_int_equal(agents_owned_claim(self.far, OWNED_TASK, str_of(text),
                                            i == 0 ? &ann.caller : &bob.caller),
                         BAY_OK);
    }
    process_end(&self);

    /* the key is rotated, and the rows of the old one are found */
    assert_int_equal(seal_ring_add(ring, key_two), BAY_OK);
    process_start(&self, path);
    assert_false(agents_owned_is_open(self.far));
    someone(&ann, person("ann"), ring);
    someone(&bob, person("bob"), ring);
    assert_true(agents_owned_is(self.far, OWNED_TASK, STR("task 0"), &ann.caller));
    assert_false(agents_owned_is(self.far, OWNED_TASK, STR("task 0"), &bob.caller));
    assert_true(agents_owned_is(self.far, OWNED_TASK, STR("task 599"), &bob.caller));
    assert_int_equal(agents_owned_count(self.far, &ann.caller), 1);
    process_end(&self);

    /* what was used since then is named by the new key, so the old one may go */
    seal_ring_free(ring);
    assert_int_equal(seal_ring_new(&ring), BAY_OK);
    assert_int_equal(seal_ring_add(ring, key_two), BAY_OK);
    process_start(&self, path);
    someone(&ann, person("ann"), ring);
    someone(&bob, person("bob"), ring);
    assert_true(agents_owned_is(self.far, OWNED_TASK, STR("task 0"), &ann.caller));
    assert_false(agents_owned_is(self.far, OWNED_TASK, STR("task 1"), &bob.caller));
    process_end(&self);
    seal_ring_free(ring);

    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    static char bytes[1 << 20];
    size_t len = fread(bytes, 1, sizeof(bytes), file);
    (void)fclose(file);
    assert_non_null(memmem(bytes, len, "task 0", 6));
    assert_null(memmem(bytes, len, "ann", 3));
    assert_null(memmem(bytes, len, "bob", 3));
    remove_store(path);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(anothers_is_never_found),
        cmocka_unit_test(nothing_collides),
        cmocka_unit_test(an_id_that_is_too_long_or_empty_is_nobodys),
        cmocka_unit_test(who_has_too_many_loses_his_own),
        cmocka_unit_test(an_agent_with_too_many_loses_the_least_recently_used),
        cmocka_unit_test(all_loops_share_it),
        cmocka_unit_test(without_memory_it_is_nobodys),
#if !defined(BAY_NO_TLS) && !defined(BAY_NO_SQLITE)
        cmocka_unit_test(a_store_keeps_owners_and_no_names),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

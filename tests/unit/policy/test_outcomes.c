/* The table of outcomes: what is under way is joined, what is unknown is never begun again, and what
 * the store knows survives. Negative cases first. */
#include <openssl/opensslv.h> /* a build that cannot seal leaves this out */
#include <string.h>

#include "base/str.h"
#include "policy/outcomes_internal.h"
#include "policy/outcomes_store.h"
#include "support/store_rig.h"

typedef struct call {
    outcome_claim claim;
    int readies;
} call;

static void on_ready(outcome_claim *claim)
{
    CONTAINER_OF(claim, call, claim)->readies++;
}

typedef struct table_rig {
    outcomes *table;
    arena memory;
    json_doc doc;
    outcome_view view;
} table_rig;

static void table_init(table_rig *self, outcomes_options options)
{
    *self = (table_rig){0};
    arena_init(&self->memory, 8 << 20);
    assert_int_equal(outcomes_new(&options, &self->table), BAY_OK);
}

static void table_fini(table_rig *self)
{
    outcomes_free(self->table);
    arena_fini(&self->memory);
}

static json_val value_of(table_rig *self, const char *text)
{
    assert_int_equal(json_parse(&self->doc, str_of(text), NULL, &self->memory, NULL), BAY_OK);
    return json_root(&self->doc);
}

static outcome_key key_of(const char *key, const char *arguments, const char *owner)
{
    outcome_key made = {.keep_ms = 1000};
    memcpy(made.key, key, strlen(key));
    memcpy(made.fingerprint, arguments, strlen(arguments));
    memcpy(made.owner, owner, strlen(owner));
    return made;
}

static outcomes_answer enter_at(table_rig *self, call *by, const outcome_key *key, uint64_t now_ms)
{
    by->claim.ready = on_ready;
    return outcomes_enter(self->table, &by->claim, key, now_ms, &self->memory, &self->view);
}

static outcomes_answer enter(table_rig *self, call *by, const char *key)
{
    outcome_key made = key_of(key, "args", "ann");
    return enter_at(self, by, &made, 0);
}

static void other_arguments_are_a_conflict(void **state)
{
    table_rig self;
    call first = {0};
    call other = {0};
    outcome_key cheaper = key_of("k", "other", "ann");
    (void)state;
    table_init(&self, (outcomes_options){0});
    assert_int_equal(enter(&self, &first, "k"), OUTCOMES_OWNER);
    assert_int_equal(enter_at(&self, &other, &cheaper, 0), OUTCOMES_CONFLICT);
    outcomes_send(self.table, &first.claim);
    assert_int_equal(enter_at(&self, &other, &cheaper, 0), OUTCOMES_CONFLICT);
    outcomes_settle(self.table, &first.claim, OUTCOME_RESULT, value_of(&self, "{}"));
    assert_int_equal(enter_at(&self, &other, &cheaper, 0), OUTCOMES_CONFLICT);
    table_fini(&self);
}

static void what_was_sent_and_lost_is_never_begun_again(void **state)
{
    table_rig self;
    call first = {0};
    call waits = {0};
    outcome_key again = key_of("k", "args", "ann");
    (void)state;
    table_init(&self, (outcomes_options){0});
    assert_int_equal(enter(&self, &first, "k"), OUTCOMES_OWNER);
    outcomes_send(self.table, &first.claim);
    assert_int_equal(enter(&self, &waits, "k"), OUTCOMES_JOINED);
    outcomes_leave(self.table, &first.claim, false);
    assert_int_equal(waits.readies, 1);
    assert_int_equal(enter(&self, &waits, "k"), OUTCOMES_LOST);
    /* unless its call may be carried out twice */
    again.may_repeat = true;
    assert_int_equal(enter_at(&self, &waits, &again, 0), OUTCOMES_OWNER);
    outcomes_leave(self.table, &waits.claim, true);
    table_fini(&self);
}

static void what_was_not_sent_is_released(void **state)
{
    table_rig self;
    call first = {0};
    call waits = {0};
    (void)state;
    table_init(&self, (outcomes_options){0});
    for (int was_sent = 0; was_sent < 2; was_sent++) {
        assert_int_equal(enter(&self, &first, "k"), OUTCOMES_OWNER);
        assert_int_equal(enter(&self, &waits, "k"), OUTCOMES_JOINED);
        if (was_sent == 1) { /* it was about to be, and was not */
            outcomes_send(self.table, &first.claim);
            outcomes_unsend(self.table, &first.claim);
        }
        outcomes_leave(self.table, &first.claim, false);
        assert_int_equal(waits.readies, was_sent + 1);
        assert_int_equal(enter(&self, &waits, "k"), OUTCOMES_OWNER);
        outcomes_leave(self.table, &waits.claim, false);
    }
    assert_int_equal(outcomes_count_of(self.table).rows, 0);
    table_fini(&self);
}

static void those_who_join_get_the_one_outcome(void **state)
{
    table_rig self;
    call first = {0};
    call waits[3] = {{{0}, 0}};
    (void)state;
    table_init(&self, (outcomes_options){0});
    assert_int_equal(enter(&self, &first, "k"), OUTCOMES_OWNER);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(enter(&self, &waits[i], "k"), OUTCOMES_JOINED);
    }
    outcomes_leave(self.table, &waits[2].claim, false); /* its client left: the others stay */
    outcomes_send(self.table, &first.claim);
    outcomes_settle(self.table, &first.claim, OUTCOME_RESULT, value_of(&self, "{\"paid\":1}"));
    assert_int_equal(waits[2].readies, 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(waits[i].readies, 1);
        assert_int_equal(enter(&self, &waits[i], "k"), OUTCOMES_KNOWN);
        assert_int_equal(self.view.kind, OUTCOME_RESULT);
        assert_true(str_eq(json_raw(self.view.value), STR("{\"paid\":1}")));
    }
    table_fini(&self);
}

static void only_the_answers_own_a_question(void **state)
{
    table_rig self;
    call first = {0};
    outcome_key answers = key_of("k", "args", "ann");
    (void)state;
    table_init(&self, (outcomes_options){0});
    assert_int_equal(enter(&self, &first, "k"), OUTCOMES_OWNER);
    outcomes_settle(self.table, &first.claim, OUTCOME_QUESTION, value_of(&self, "{\"q\":1}"));
    assert_int_equal(enter(&self, &first, "k"), OUTCOMES_KNOWN); /* the question once more */
    answers.is_retry = true;
    assert_int_equal(enter_at(&self, &first, &answers, 0), OUTCOMES_OWNER);
    outcomes_settle(self.table, &first.claim, OUTCOME_RESULT, value_of(&self, "{}"));
    assert_int_equal(enter_at(&self, &first, &answers, 0), OUTCOMES_KNOWN);
    table_fini(&self);
}

/* Filling the table: a principal that has its rows is refused, others are not. */
static void a_principal_fills_its_own_rows_only(void **state)
{
    table_rig self;
    call calls[4] = {{{0}, 0}};
    outcome_key bob = key_of("b", "args", "bob");
    (void)state;
    table_init(&self, (outcomes_options){.rows = 4, .owner_rows = 2});
    assert_int_equal(enter(&self, &calls[0], "1"), OUTCOMES_OWNER);
    assert_int_equal(enter(&self, &calls[1], "2"), OUTCOMES_OWNER);
    assert_int_equal(enter(&self, &calls[2], "3"), OUTCOMES_FULL);
    assert_int_equal(enter_at(&self, &calls[3], &bob, 0), OUTCOMES_OWNER);
    outcomes_leave(self.table, &calls[0].claim, false);
    assert_int_equal(enter(&self, &calls[2], "3"), OUTCOMES_OWNER);
    for (size_t i = 1; i < 4; i++) {
        outcomes_leave(self.table, &calls[i].claim, false);
    }
    table_fini(&self);
}

static void a_result_that_is_too_large_leaves_that_it_was(void **state)
{
    static char text[OUTCOME_BYTES + 8];
    table_rig self;
    call first = {0};
    (void)state;
    table_init(&self, (outcomes_options){0});
    memset(text, 'x', sizeof(text) - 1);
    text[0] = text[sizeof(text) - 2] = '"';
    assert_int_equal(enter(&self, &first, "k"), OUTCOMES_OWNER);
    outcomes_settle(self.table, &first.claim, OUTCOME_RESULT, value_of(&self, text));
    assert_int_equal(enter(&self, &first, "k"), OUTCOMES_KNOWN);
    assert_int_equal(self.view.kind, OUTCOME_TOO_LARGE);
    assert_int_equal(outcomes_count_of(self.table).bytes, 0);
    table_fini(&self);
}

static void rows_expire_but_not_under_a_call(void **state)
{
    table_rig self;
    call done = {0};
    call open = {0};
    (void)state;
    table_init(&self, (outcomes_options){0});
    assert_int_equal(enter(&self, &done, "1"), OUTCOMES_OWNER);
    assert_int_equal(enter(&self, &open, "2"), OUTCOMES_OWNER);
    outcomes_settle(self.table, &done.claim, OUTCOME_RESULT, value_of(&self, "{}"));
    outcomes_tick(self.table, 999);
    assert_int_equal(outcomes_count_of(self.table).rows, 2);
    outcomes_tick(self.table, 1000);
    assert_int_equal(outcomes_count_of(self.table).rows, 1);
    assert_int_equal(outcomes_count_of(self.table).bytes, 0);
    outcomes_leave(self.table, &open.claim, false);
    table_fini(&self);
}

/* 200 bytes besides its outcome; a place in a map that is half full is 64. */
static void a_row_is_small(void **state)
{
    (void)state;
    assert_true(sizeof(outcome_row) + 64 <= 200);
}

/* ---- with a store behind it ------------------------------------------------------------------ */

typedef struct kept_rig {
    table_rig table;
    store_rig *rows;
    outcomes_store *store;
    seal_ring *ring;
} kept_rig;

static void kept_open(kept_rig *self)
{
    table_init(&self->table, (outcomes_options){0});
    assert_int_equal(
        outcomes_store_new(self->table.table, self->rows->store, self->ring, &self->store), BAY_OK);
}

static void kept_init(kept_rig *self, bool is_sqlite)
{
    self->rows = rig_new(is_sqlite);
    assert_int_equal(seal_ring_new(&self->ring), BAY_OK);
    assert_int_equal(seal_ring_generate(self->ring), BAY_OK);
    rig_open(self->rows);
    kept_open(self);
}

/* The process ends: the table is gone, the store's rows are there. */
static void kept_restart(kept_rig *self)
{
    if (self->rows->is_sqlite) {
        rig_reopen(self->rows);
    }
    outcomes_store_free(self->store);
    table_fini(&self->table);
    kept_open(self);
}

static void kept_fini(kept_rig *self)
{
    rig_close(self->rows);
    outcomes_store_free(self->store);
    table_fini(&self->table);
    seal_ring_free(self->ring);
    rig_remove_file(self->rows);
    (void)rmdir(self->rows->folder);
    loop_free(self->rows->loop);
    free(self->rows);
}

/* Enters, and looks into the store; what the store knew is entered anew. */
static outcomes_answer kept_enter(kept_rig *self, call *by, const char *key)
{
    outcome_key made = key_of(key, "args", "ann");
    made.keep_ms = RIG_NOW; /* the store's clock stands */
    outcomes_answer first = enter_at(&self->table, by, &made, RIG_NOW);
    if (first != OUTCOMES_OWNER) {
        return first;
    }
    int before = by->readies;
    outcomes_step step = outcomes_store_look_up(self->store, &by->claim);
    assert_int_equal(step, OUTCOMES_STEP_WAITS);
    rig_turn_until(self->rows, by->readies > before);
    step = outcomes_store_look_up(self->store, &by->claim);
    return step == OUTCOMES_STEP_OVER   ? enter_at(&self->table, by, &made, RIG_NOW)
           : step == OUTCOMES_STEP_DONE ? OUTCOMES_OWNER
                                        : OUTCOMES_FULL;
}

static void kept_send(kept_rig *self, call *by)
{
    int before = by->readies;
    assert_int_equal(outcomes_store_send(self->store, &by->claim), OUTCOMES_STEP_WAITS);
    rig_turn_until(self->rows, by->readies > before);
    assert_int_equal(outcomes_store_send(self->store, &by->claim), OUTCOMES_STEP_DONE);
}

static void drain_store(kept_rig *self)
{
    answer over = {0};
    assert_int_equal(store_get(self->rows->store, STR("x"), STR("x"), on_answer, &over), BAY_OK);
    rig_turn_until(self->rows, over.calls > 0);
    answer_clear(&over);
}

static void check_store(bool is_sqlite)
{
    kept_rig self = {0};
    call by = {0};
    kept_init(&self, is_sqlite);
    /* a crash before it leaves releases */
    assert_int_equal(kept_enter(&self, &by, "claimed"), OUTCOMES_OWNER);
    outcomes_store_leave(self.store, &by.claim, false);
    /* a crash after it leaves an unknown outcome */
    assert_int_equal(kept_enter(&self, &by, "sent"), OUTCOMES_OWNER);
    kept_send(&self, &by);
    outcomes_store_leave(self.store, &by.claim, false);
    /* proven unsent: released in the store, too */
    assert_int_equal(kept_enter(&self, &by, "unsent"), OUTCOMES_OWNER);
    kept_send(&self, &by);
    outcomes_unsend(self.table.table, &by.claim);
    outcomes_store_leave(self.store, &by.claim, false);
    /* an outcome is there after the crash */
    assert_int_equal(kept_enter(&self, &by, "done"), OUTCOMES_OWNER);
    kept_send(&self, &by);
    outcomes_store_settle(self.store, &by.claim, OUTCOME_RESULT,
                          value_of(&self.table, "{\"secret\":1}"));
    drain_store(&self);
    kept_restart(&self);
    assert_int_equal(kept_enter(&self, &by, "claimed"), OUTCOMES_OWNER);
    outcomes_store_leave(self.store, &by.claim, false);
    assert_int_equal(kept_enter(&self, &by, "sent"), OUTCOMES_LOST);
    assert_int_equal(kept_enter(&self, &by, "sent"), OUTCOMES_LOST);
    assert_int_equal(kept_enter(&self, &by, "unsent"), OUTCOMES_OWNER);
    outcomes_store_leave(self.store, &by.claim, false);
    assert_int_equal(kept_enter(&self, &by, "done"), OUTCOMES_KNOWN);
    assert_true(str_eq(json_raw(self.table.view.value), STR("{\"secret\":1}")));
    kept_fini(&self);
}

static void the_store_knows_each_state_in_memory(void **state)
{
    (void)state;
    check_store(false);
}

static void the_store_knows_each_state_in_a_file(void **state)
{
    (void)state;
    if (RIG_HAS_SQLITE) {
        check_store(true);
    }
}

static void outcomes_are_sealed_and_bound_to_their_row(void **state)
{
    kept_rig self = {0};
    call by = {0};
    answer rows = {0};
    (void)state;
    kept_init(&self, false);
    assert_int_equal(kept_enter(&self, &by, "done"), OUTCOMES_OWNER);
    kept_send(&self, &by);
    outcomes_store_settle(self.store, &by.claim, OUTCOME_RESULT,
                          value_of(&self.table, "{\"secret\":1}"));
    assert_int_equal(
        store_scan(self.rows->store, STR(OUTCOMES_TABLE), STR(""), STR(""), 10, on_answer, &rows),
        BAY_OK);
    rig_turn_until(self.rows, rows.calls > 0);
    assert_int_equal(rows.count, 1);
    for (size_t i = 0; i + 6 <= rows.text.len; i++) {
        assert_memory_not_equal(rows.text.at + i, "secret", 6);
    }
    answer_clear(&rows);
    kept_fini(&self);
}

/* A row that somebody wrote over is an outcome that nobody knows, never one to begin anew. */
static void a_damaged_row_is_unknown(void **state)
{
    static const char *const values[] = {"", "\1", "\2\2\0aaaaaaaaaaaaaaaa", "\1\2\0args"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        kept_rig self = {0};
        call by = {0};
        unsigned char key[SEAL_DIGEST_BYTES];
        answer put = {0};
        outcome_key made = key_of("k", "args", "ann");
        kept_init(&self, false);
        assert_int_equal(seal_digest(self.ring, 0, SEAL_OUTCOME,
                                     (bay_str){(char *)made.key, OUTCOME_KEY_BYTES}, key),
                         BAY_OK);
        store_put_request request = {.table = STR(OUTCOMES_TABLE),
                                     .key = {(char *)key, sizeof(key)},
                                     .value = {values[i], i == 2 ? 19 : strlen(values[i])},
                                     .expires_at_ms = 4 * RIG_NOW,
                                     .expected = STORE_ANY};
        assert_int_equal(store_put(self.rows->store, &request, on_answer, &put), BAY_OK);
        rig_turn_until(self.rows, put.calls > 0);
        answer_clear(&put);
        outcomes_answer found = kept_enter(&self, &by, "k");
        assert_true(found == OUTCOMES_LOST || found == OUTCOMES_CONFLICT);
        kept_fini(&self);
    }
}

/* What cannot be looked up is refused, and the next call looks again. */
static void a_store_that_is_away_refuses(void **state)
{
    kept_rig self = {0};
    call by = {0};
    outcome_key key = key_of("k", "args", "ann");
    (void)state;
    kept_init(&self, false);
    store_close(self.rows->store, rig_on_closed, self.rows);
    assert_int_equal(enter_at(&self.table, &by, &key, RIG_NOW), OUTCOMES_OWNER);
    assert_int_equal(outcomes_store_look_up(self.store, &by.claim), OUTCOMES_STEP_FAILED);
    assert_int_equal(outcomes_store_send(self.store, &by.claim), OUTCOMES_STEP_FAILED);
    outcomes_store_leave(self.store, &by.claim, false);
    assert_int_equal(outcomes_count_of(self.table.table).rows, 0);
    rig_turn_until(self.rows, self.rows->closed > 0);
    store_free(self.rows->store);
    self.rows->store = NULL;
    kept_fini(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_arguments_are_a_conflict),
        cmocka_unit_test(what_was_sent_and_lost_is_never_begun_again),
        cmocka_unit_test(what_was_not_sent_is_released),
        cmocka_unit_test(those_who_join_get_the_one_outcome),
        cmocka_unit_test(only_the_answers_own_a_question),
        cmocka_unit_test(a_principal_fills_its_own_rows_only),
        cmocka_unit_test(a_result_that_is_too_large_leaves_that_it_was),
        cmocka_unit_test(rows_expire_but_not_under_a_call),
        cmocka_unit_test(a_row_is_small),
        cmocka_unit_test(the_store_knows_each_state_in_memory),
        cmocka_unit_test(the_store_knows_each_state_in_a_file),
        cmocka_unit_test(outcomes_are_sealed_and_bound_to_their_row),
        cmocka_unit_test(a_damaged_row_is_unknown),
        cmocka_unit_test(a_store_that_is_away_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

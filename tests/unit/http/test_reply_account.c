/* The account of what replies hold: who is ended when too much waits, and who is spared. The clock
 * is the test's own. */
#include "support/net_test.h"

#include "http/pace.h"
#include "http/reply_account.h"

enum { MOST = 1000 * 1000, OLD_MS = 60 * 1000 };

typedef struct peer {
    reply_debt debt; /* first */
    reply_book *book;
    uint64_t taken;
    int ended;
} peer;

static uint64_t taken_of(const reply_debt *debt)
{
    return ((const peer *)(const void *)debt)->taken;
}

static void end_peer(reply_debt *debt)
{
    peer *self = (peer *)(void *)debt;
    self->ended++;
    reply_debt_set(self->book, debt, 0, 0);
}

static const reply_book_ops ops = {.taken = taken_of, .end = end_peer};

static loop *runs_on;
static reply_book *book;

static int setup(void **state)
{
    (void)state;
    assert_int_equal(loop_new(&runs_on), BAY_OK);
    assert_int_equal(reply_book_new(runs_on, MOST, &ops, &book), BAY_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(reply_account_bytes(), 0);
    reply_book_free(book);
    loop_free(runs_on);
    return 0;
}

static void owe(peer *self, size_t bytes, uint64_t now)
{
    self->book = book;
    reply_debt_set(book, &self->debt, bytes, now);
}

static void owe_nothing(peer *peers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        reply_debt_set(peers[i].book, &peers[i].debt, 0, 0);
    }
}

static void test_the_longest_stalled_end_first(void **state)
{
    (void)state;
    peer peers[5] = {0};
    for (size_t i = 0; i < 5; i++) {
        owe(&peers[i], 300 * 1000, 1000 + OLD_MS * (i == 0 ? 1 : i == 1 ? 0 : i));
    }
    assert_int_equal(peers[0].ended, 1); /* in the order in which they began to wait: 0, 1, 2 … */
    assert_int_equal(peers[1].ended, 1);
    assert_int_equal(peers[2].ended + peers[3].ended + peers[4].ended, 0);
    assert_int_equal(reply_account_bytes(), 900 * 1000);
    owe_nothing(peers, 5);
}

static void test_who_grew_last_is_looked_at_last(void **state)
{
    (void)state;
    peer old = {0};
    peer young = {0};
    owe(&old, 600 * 1000, 1000);
    owe(&young, 300 * 1000, 1000 + OLD_MS);
    owe(&old, 800 * 1000, 1000 + 2 * OLD_MS);
    assert_int_equal(young.ended, 1);
    assert_int_equal(old.ended, 0);
    owe_nothing(&old, 1);
}

/* An octet now and then is no step, 16 KiB are. */
static void test_a_peer_that_reads_is_spared(void **state)
{
    (void)state;
    uint64_t now = 1000 + OLD_MS;
    peer reads = {0};
    peer nibbles = {0};
    peer more = {0};
    owe(&reads, 500 * 1000, 1000);
    owe(&nibbles, 500 * 1000, 2000);
    reads.taken = REPLY_STEP_BYTES;
    nibbles.taken = REPLY_STEP_BYTES - 1;
    owe(&more, 10, now);
    assert_int_equal(reads.ended, 0);
    assert_int_equal(nibbles.ended, 1);
    /* It has stopped since: then it is as old as its last step. */
    owe(&nibbles, 600 * 1000, now + REPLY_STEP_MS);
    assert_int_equal(reads.ended, 1);
    assert_int_equal(nibbles.ended + more.ended, 1);
    owe_nothing(&nibbles, 1);
    owe_nothing(&more, 1);
}

/* What comes right after the beginning may be the peer's kernel alone. */
static void test_the_first_steps_prove_nothing(void **state)
{
    (void)state;
    peer fills = {0};
    peer more = {0};
    owe(&fills, 700 * 1000, 1000);
    fills.taken = 40 * REPLY_STEP_BYTES;
    owe(&fills, 600 * 1000, 1000 + REPLY_GRACE_MS - 1);
    owe(&more, 600 * 1000, 1000 + REPLY_GRACE_MS);
    assert_int_equal(fills.ended, 1);
    owe_nothing(&more, 1);
}

/* Those who read have a bound, too. */
static void test_readers_are_spared_within_reason(void **state)
{
    (void)state;
    enum { COUNT = 10 };
    peer peers[COUNT] = {0};
    for (size_t i = 0; i < COUNT; i++) {
        owe(&peers[i], 500 * 1000, 1000 + i);
        peers[i].taken = REPLY_STEP_BYTES;
        owe(&peers[i], 499 * 1000, 1000 + REPLY_GRACE_MS + i);
    }
    int ended = 0;
    for (size_t i = 0; i < COUNT; i++) {
        ended += peers[i].ended;
    }
    assert_int_equal(ended, 2);
    assert_int_equal(peers[0].ended + peers[1].ended, 2);
    assert_true(reply_account_bytes() <= (size_t)(REPLY_READERS + 1) * MOST);
    owe_nothing(peers, COUNT);
}

/* Their end would free little; but many of them are much. */
static void test_small_debts_are_spared_within_reason(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    static peer peers[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        owe(&peers[i], REPLY_SMALL_BYTES - 1, 1000 + OLD_MS * i);
        assert_true(reply_account_bytes() <= (size_t)REPLY_READERS * MOST + REPLY_SMALL_BYTES);
        assert_true(i > 100 || peers[0].ended == 0);
    }
    assert_int_equal(peers[0].ended, 1);
    owe_nothing(peers, COUNT);
}

static void test_a_young_peer_has_a_moment(void **state)
{
    (void)state;
    peer young = {0};
    peer other = {0};
    owe(&young, 700 * 1000, 1000);
    owe(&other, 500 * 1000, 1000 + REPLY_GRACE_MS - 1);
    assert_int_equal(young.ended, 0); /* a quarter above the bound is room for it … */
    owe(&other, 600 * 1000, 1000 + REPLY_GRACE_MS - 1);
    assert_int_equal(young.ended, 1); /* … and more is not */
    owe(&young, 500 * 1000, 2000);
    assert_int_equal(other.ended, 1);
    owe_nothing(&young, 1);
}

static void test_the_peak_is_told_once(void **state)
{
    (void)state;
    peer one = {0};
    (void)reply_account_take_peak();
    owe(&one, 700 * 1000, 1000);
    owe(&one, 100 * 1000, 1000);
    assert_int_equal(reply_account_take_peak(), 700 * 1000);
    assert_int_equal(reply_account_take_peak(), 100 * 1000);
    owe_nothing(&one, 1);
    assert_int_equal(reply_account_take_peak(), 100 * 1000);
    assert_int_equal(reply_account_take_peak(), 0);
}

/* However large a reply is, it does not end its own connection. */
static void test_one_large_reply_is_delivered(void **state)
{
    (void)state;
    peer large = {0};
    peer small = {0};
    owe(&large, 64 * MOST, 1000);
    owe(&small, 1000, 1000 + OLD_MS);
    owe(&small, 2000, 1000 + 2 * OLD_MS);
    assert_int_equal(large.ended, 0);
    owe(&small, MOST / 2, 1000 + 3 * OLD_MS);
    assert_int_equal(large.ended, 1); /* now it stands in others' way, and has taken nothing */
    assert_int_equal(small.ended, 0);
    owe_nothing(&small, 1);
}

/* Another loop's connection may be the one that has stalled for longest: it is told. */
static void test_the_longest_stalled_of_another_loop(void **state)
{
    (void)state;
    loop *elsewhere = NULL;
    peer there = {0};
    peer here[3] = {0};
    assert_int_equal(loop_new(&elsewhere), BAY_OK);
    assert_int_equal(reply_book_new(elsewhere, MOST, &ops, &there.book), BAY_OK);
    uint64_t now = loop_now_ms(elsewhere) + OLD_MS;
    reply_debt_set(there.book, &there.debt, 900 * 1000, now - OLD_MS - 1);
    owe(&here[0], 500 * 1000, now - OLD_MS);
    assert_int_equal(here[0].ended + there.ended, 0);
    (void)loop_turn(elsewhere, 0);
    assert_int_equal(there.ended, 1);
    assert_int_equal(reply_account_bytes(), 500 * 1000);
    /* Who does not turn its loop keeps nobody else from staying within the bound. */
    reply_debt_set(there.book, &there.debt, 900 * 1000, now - OLD_MS - 1);
    owe(&here[1], 500 * 1000, now);
    owe(&here[2], 500 * 1000, now);
    assert_int_equal(here[0].ended, 1);
    assert_int_equal(here[2].ended, 0);
    assert_int_equal(there.ended, 1);
    owe_nothing(&there, 1);
    owe_nothing(here, 3);
    reply_book_free(there.book); /* its message is still on its way */
    loop_free(elsewhere);
}

static void test_pace(void **state)
{
    (void)state;
    enum { WINDOW = 60000 };
    uint64_t until = pace_until(0, 1000, WINDOW, 0, 1);
    assert_int_equal(until, 1000 + WINDOW);
    assert_int_equal(pace_until(until, 5000, WINDOW, 0, 1), until); /* silence */
    assert_int_equal(pace_until(until, 1000, WINDOW, 1000, 1), 1000 + WINDOW);
    /* One octet every 20 s: over soon after the window. */
    uint64_t now = 1000;
    while (now < until) {
        now += 20000;
        until = pace_until(until, now, WINDOW, 1, 1);
    }
    assert_true(now <= 1000 + 2 * WINDOW);
    /* 1 KB/s is fine for ever, also in bursts of 32 KB. */
    for (int burst = 1; burst <= 32; burst += 31) {
        now = 1000;
        until = pace_until(0, now, WINDOW, 0, 1);
        for (int i = 0; i < 10000; i++) {
            now += 1000;
            until = pace_until(until, now, WINDOW, (i + 1) % burst == 0 ? 1000 * burst : 0, 1);
            assert_true(now < until);
        }
    }
    /* Ten that share as much: each has a tenth of the rate to keep. */
    now = 1000;
    until = pace_until(0, now, WINDOW, 0, 10);
    for (int i = 0; i < 1000; i++) {
        now += 1000;
        until = pace_until(until, now, WINDOW, PACE_BYTES_PER_S / 10 + 1, 10);
        assert_true(now < until);
    }
    /* Much at once, and a clock that is far on, stay within the window. */
    assert_int_equal(pace_until(1, 5000, WINDOW, UINT64_MAX, UINT32_MAX), 5000 + WINDOW);
    assert_int_equal(pace_until(1, 5000, 1, 0, 1), 1);
}

#define RULE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(test_the_longest_stalled_end_first),
        RULE(test_who_grew_last_is_looked_at_last),
        RULE(test_a_peer_that_reads_is_spared),
        RULE(test_the_first_steps_prove_nothing),
        RULE(test_readers_are_spared_within_reason),
        RULE(test_small_debts_are_spared_within_reason),
        RULE(test_a_young_peer_has_a_moment),
        RULE(test_the_peak_is_told_once),
        RULE(test_one_large_reply_is_delivered),
        RULE(test_the_longest_stalled_of_another_loop),
        cmocka_unit_test(test_pace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

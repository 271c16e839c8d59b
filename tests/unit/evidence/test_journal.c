/* Lanes of several loops into one journal: each line once and in the order of its lane; what does not
 * fit is counted; a sink that could not write is asked again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/str.h"
#include "evidence/journal.h"
#include "net/thread.h"

enum { LANES = 3, LINES = 5000 };

/* What a sink got; of the journal's thread until that has ended. */
static struct {
    unsigned next[LANES];
    uint64_t dropped;
    uint64_t lines;
    unsigned failures; /* how often it says that it could not write */
    bool is_good;
    pthread_mutex_t gate; /* held: the sink waits */
} got;

static bool take(void *user, bay_str lines, uint64_t dropped)
{
    (void)user;
    pthread_mutex_lock(&got.gate);
    pthread_mutex_unlock(&got.gate);
    got.dropped += dropped;
    while (lines.len > 0) {
        size_t end = str_find(lines, '\n');
        unsigned lane = 0;
        unsigned number = 0;
        if (sscanf(lines.at, "%u %u", &lane, &number) != 2 || lane >= LANES ||
            number != got.next[lane]) {
            got.is_good = false;
            return true;
        }
        got.next[lane]++;
        got.lines++;
        lines = str_from(lines, end + 1);
    }
    if (got.failures > 0) {
        got.failures--;
        return false;
    }
    return true;
}

static journal *opened(void)
{
    journal *made = NULL;
    journal_sink sink = {.write = take};
    memset(&got, 0, sizeof(got));
    got.is_good = true;
    assert_int_equal(pthread_mutex_init(&got.gate, NULL), 0);
    assert_int_equal(journal_new(&sink, &made), BAY_OK);
    return made;
}

typedef struct writer {
    unsigned number;
    journal *to;
    net_thread thread;
} writer;

static void put(journal_lane *lane, unsigned number, unsigned line, unsigned padding)
{
    buf *out = journal_lane_begin(lane);
    buf_printf(out, "%u %u", number, line);
    for (unsigned i = 0; i < padding; i++) {
        buf_char(out, ' ');
    }
    journal_lane_end(lane);
}

static void write_lines(void *argument)
{
    writer *self = argument;
    loop *on = NULL;
    journal_lane lane;
    if (loop_new(&on) != BAY_OK) {
        return; /* its lines are missing */
    }
    journal_lane_open(&lane, self->to, on);
    for (unsigned i = 0; i < LINES; i++) {
        put(&lane, self->number, i, 0);
        if (i % 100 == 0) {
            loop_turn(on, 0);
        }
    }
    journal_lane_close(&lane);
    loop_free(on);
}

static void every_line_comes_once_and_in_order(void **state)
{
    writer writers[LANES];
    (void)state;
    journal *to = opened();
    for (unsigned i = 0; i < LANES; i++) {
        writers[i] = (writer){.number = i, .to = to};
        assert_int_equal(net_thread_start(&writers[i].thread, write_lines, &writers[i]), BAY_OK);
    }
    for (unsigned i = 0; i < LANES; i++) {
        net_thread_join(&writers[i].thread);
    }
    journal_free(to);
    assert_true(got.is_good);
    assert_int_equal(got.lines, LANES * LINES);
    assert_int_equal(got.dropped, 0);
}

/* The sink takes nothing: the journal holds its bytes, then the lane, then lines are dropped. */
static void what_does_not_fit_is_counted(void **state)
{
    enum { WIDE = 4096, MANY = (JOURNAL_BYTES * 2 + LANE_BYTES) / WIDE + 1000 };
    loop *on = NULL;
    journal_lane lane;
    (void)state;
    journal *to = opened();
    assert_int_equal(loop_new(&on), BAY_OK);
    journal_lane_open(&lane, to, on);
    pthread_mutex_lock(&got.gate);
    for (unsigned i = 0; i < MANY; i++) {
        put(&lane, 0, i, WIDE);
    }
    assert_true(lane.is_failing);
    assert_true(lane.lines.len <= LANE_BYTES);
    pthread_mutex_unlock(&got.gate);
    journal_lane_close(&lane);
    journal_free(to);
    loop_free(on);
    assert_true(got.is_good); /* the oldest are kept, without a gap */
    assert_true(got.dropped > 0);
    assert_int_equal(got.lines + got.dropped, MANY);
}

static void a_sink_that_failed_is_asked_again(void **state)
{
    loop *on = NULL;
    journal_lane lane;
    (void)state;
    journal *to = opened();
    got.failures = 1;
    assert_int_equal(loop_new(&on), BAY_OK);
    journal_lane_open(&lane, to, on);
    put(&lane, 0, 0, 0);
    journal_lane_flush(&lane);
    put(&lane, 0, 1, 0);
    journal_lane_close(&lane);
    journal_free(to);
    loop_free(on);
    assert_true(got.is_good);
    assert_int_equal(got.failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_line_comes_once_and_in_order),
        cmocka_unit_test(what_does_not_fit_is_counted),
        cmocka_unit_test(a_sink_that_failed_is_asked_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

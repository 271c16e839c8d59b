/* The life of what a client or a caller asks for, without either: a kind that counts what it is
 * told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "sdk/asker.h"
#include "support/failing_memory.h"

enum { MOST = 3 };

typedef struct thing {
    asker_item item;
    int number;
} thing;

static char story[200]; /* what happened, in order */
static int answers;     /* that are out */
static thing *begun;    /* by `tell` */

static void say(const char *what, const asker_item *item)
{
    size_t len = strlen(story);
    int more = snprintf(story + len, sizeof(story) - len, "%s%d ", what,
                        CONTAINER_OF(item, const thing, item)->number);
    assert_true(more > 0 && (size_t)more < sizeof(story) - len);
}

static void told(const char *expected)
{
    assert_string_equal(story, expected);
    story[0] = '\0';
}

static void settle(void *of)
{
    asker_finish(of);
}

static void on_send(asker_item *item)
{
    say("send", item);
    asker_item_set(item, ASKER_OPEN);
}

static void on_withdraw(asker_item *item)
{
    say("withdraw", item);
}

static void on_fail(asker_item *item, bay_err err, const char *text)
{
    bay_diag diag = {0};
    (void)diag_set(&diag, err, "%s", text);
    assert_true(asker_item_end(item, &diag));
}

static void on_ended(asker_item *item, const void *answer)
{
    (void)answer;
    assert_int_equal(item->phase, ASKER_ENDED);
}

static void answer_free(void *answer)
{
    answers -= answer != NULL ? 1 : 0;
}

static void on_tell(asker_item *item, void *answer)
{
    say(item->diag.code == BAY_OK ? "ok" : "lost", item);
    answer_free(answer);
    if (begun != NULL) {
        thing *next = begun;
        begun = NULL;
        assert_int_equal(asker_item_start(&next->item, NULL), BAY_OK);
    }
}

static void item_free(asker_item *item)
{
    mem_free(CONTAINER_OF(item, thing, item));
}

static const asker_kind kind = {
    .noun = "thing",
    .items = "things",
    .most = MOST,
    .closing = BAY_ERR_CLOSED,
    .settle = settle,
    .send = on_send,
    .withdraw = on_withdraw,
    .fail = on_fail,
    .ended = on_ended,
    .tell = on_tell,
    .answer_free = answer_free,
    .item_free = item_free,
};

static asker_options options;

static void open_one(asker *self)
{
    asker_options_init(&options, "thing", 1);
    assert_int_equal(asker_open(self, &kind, &options, NULL, NULL), BAY_OK);
    story[0] = '\0';
    begun = NULL;
    answers = 0;
}

static thing *thing_new(asker *of, int number)
{
    thing *made = mem_zalloc(sizeof(*made));
    assert_non_null(made);
    asker_item_init(&made->item, of);
    made->number = number;
    return made;
}

static thing *thing_start(asker *of, int number)
{
    thing *made = thing_new(of, number);
    assert_int_equal(asker_item_start(&made->item, NULL), BAY_OK);
    return made;
}

static void thing_end(thing *self)
{
    bay_diag fine = {0};
    self->item.answer = self;
    answers++;
    assert_true(asker_item_end(&self->item, &fine));
    assert_false(asker_item_end(&self->item, &fine)); /* once */
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void bounds_are_held(void **state)
{
    asker self;
    bay_diag diag = {0};
    (void)state;
    open_one(&self);
    thing *more = thing_new(&self, 9);
    thing *first = thing_start(&self, 0);
    for (int i = 1; i < MOST; i++) {
        thing_start(&self, i);
    }
    assert_int_equal(asker_item_start(&more->item, &diag), BAY_ERR_BUSY);
    assert_string_equal(diag.text, "3 things are under way");
    asker_item_drop(&first->item);
    mem_free(first);
    assert_int_equal(self.count, MOST - 1);
    assert_int_equal(asker_item_start(&more->item, NULL), BAY_OK);
    assert_true(asker_close(&self));
    thing *late = thing_new(&self, 10);
    assert_int_equal(asker_item_start(&late->item, &diag), BAY_ERR_CLOSED);
    assert_string_equal(diag.text, "the thing is being closed");
    assert_false(asker_close(&self));
    assert_int_equal(asker_turn(&self, 0), BAY_ERR_STATE);
    assert_int_equal(asker_check_waiting(&self, NULL), BAY_ERR_STATE);
    mem_free(late);
    asker_end_all(&self, "gone");
    told("withdraw1 withdraw2 withdraw9 lost1 lost2 lost9 ");
    assert_int_equal(self.count, 0);
    asker_fini(&self);
}

/* Nothing runs in the function that ends something. */
static void an_end_is_told_in_a_later_turn(void **state)
{
    asker self;
    (void)state;
    open_one(&self);
    thing *first = thing_start(&self, 1);
    thing *second = thing_start(&self, 2);
    thing_end(second);
    thing_end(first);
    told("");
    assert_int_equal(self.count, 2); /* until it is told */
    assert_int_equal(asker_turn(&self, 0), BAY_OK);
    told("ok2 ok1 ");
    assert_int_equal(self.count + (size_t)answers, 0);
    asker_fini(&self);
}

static void what_waits_goes_in_its_order_or_fails(void **state)
{
    asker self;
    bay_diag fault = {.code = BAY_ERR_CONNECT};
    (void)state;
    open_one(&self);
    thing *things[MOST];
    for (int i = 0; i < MOST; i++) {
        things[i] = thing_start(&self, i);
    }
    asker_send_waiting(&self);
    told(""); /* none waits */
    asker_item_set(&things[2]->item, ASKER_WAITING);
    asker_item_set(&things[0]->item, ASKER_WAITING);
    asker_item_set(&things[0]->item, ASKER_WAITING);
    assert_int_equal(self.waiting, 2);
    asker_send_waiting(&self);
    told("send0 send2 ");
    assert_int_equal(self.waiting, 0);
    asker_item_set(&things[1]->item, ASKER_WAITING);
    asker_fail_waiting(&self, &fault);
    assert_int_equal(self.waiting, 0);
    asker_finish(&self);
    told("lost1 ");
    asker_item_set(&things[0]->item, ASKER_WAITING);
    asker_item_drop(&things[0]->item);
    assert_int_equal(self.waiting, 0);
    mem_free(things[0]);
    asker_end_all(&self, "gone");
    told("withdraw2 lost2 ");
    asker_fini(&self);
}

/* Who is told may start the next one. */
static void a_callback_may_start_another(void **state)
{
    asker self;
    (void)state;
    open_one(&self);
    thing_end(thing_start(&self, 1));
    begun = thing_new(&self, 2);
    asker_finish(&self);
    told("ok1 ");
    assert_int_equal(self.count, 1);
    asker_end_all(&self, "gone");
    told("withdraw2 lost2 ");
    asker_fini(&self);
}

static void who_waits_gets_the_answer(void **state)
{
    asker self;
    asker_wait wait = {0};
    bay_diag diag = {0};
    (void)state;
    open_one(&self);
    thing *one = thing_start(&self, 1);
    one->item.wait = &wait;
    thing_end(one);
    assert_int_equal(asker_await(&self, &wait, &diag), BAY_OK);
    assert_non_null(wait.answer); /* ours */
    assert_int_equal(diag.code, BAY_OK);
    told("");
    wait = (asker_wait){0};
    one = thing_start(&self, 2);
    one->item.wait = &wait;
    one->item.answer = one; /* as an error has one */
    on_fail(&one->item, BAY_ERR_REMOTE, "no");
    assert_int_equal(asker_await(&self, &wait, &diag), BAY_ERR_REMOTE);
    assert_null(wait.answer);
    assert_string_equal(diag.text, "no");
    asker_fini(&self);
}

static void its_place_in_a_loop(void **state)
{
    asker self;
    (void)state;
    assert_int_equal(asker_fd(NULL), -1);
    assert_int_equal(asker_wait_ms(NULL), -1);
    assert_int_equal(asker_turn(NULL, 0), BAY_ERR_INVALID);
    open_one(&self);
    assert_true(asker_fd(&self) >= 0);
    assert_int_equal(asker_wait_ms(&self), 0);
    assert_int_equal(asker_turn(&self, 0), BAY_OK);
    assert_false(self.is_touched);
    asker_touch(&self);
    assert_int_equal(asker_wait_ms(&self), 0);
    self.is_tracing = true;
    assert_true(asker_is_inside(&self));
    assert_false(asker_close(&self));
    assert_int_equal(asker_turn(&self, 0), BAY_ERR_STATE);
    assert_int_equal(asker_check_waiting(&self, NULL), BAY_ERR_STATE);
    self.is_tracing = false;
    /* one that borrows its loop leaves it as it is */
    asker lodger;
    assert_int_equal(asker_open(&lodger, &kind, &options, self.loop, NULL), BAY_OK);
    asker_settle_soon(&lodger);
    asker_fini(&lodger);
    asker_fini(&lodger);
    assert_int_equal(asker_turn(&self, 0), BAY_OK);
    asker_fini(&self);
}

static void every_allocation_may_fail(void **state)
{
    size_t runs = 0;
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        asker self;
        runs++;
        asker_options_init(&options, "thing", 1);
        bay_err err = asker_open(&self, &kind, &options, NULL, NULL);
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        asker_fini(&self);
        failing_memory_check();
    }
    assert_true(runs > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_held),
        cmocka_unit_test(an_end_is_told_in_a_later_turn),
        cmocka_unit_test(what_waits_goes_in_its_order_or_fails),
        cmocka_unit_test(a_callback_may_start_another),
        cmocka_unit_test(who_waits_gets_the_answer),
        cmocka_unit_test(its_place_in_a_loop),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

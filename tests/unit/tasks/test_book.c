/* What a face remembers of tasks: whose it is, how long, how much; and that nobody's tasks make
 * another's go. */
#include "support/fake_upstream.h"

#include "tasks/book.h"

static task_book *open_book(void)
{
    task_book *book = NULL;
    assert_int_equal(task_book_new(NULL, 1000, &book), BAY_OK);
    return book;
}

static task_note *add(task_book *book, const char *who, const char *token, uint64_t now_ms)
{
    task_note *note = NULL;
    assert_int_equal(task_note_add(book, str_of(who), str_of(token), 1000, now_ms, &note), BAY_OK);
    return note;
}

static void assert_listed(const task_book *book, const char *who, const char *wanted)
{
    buf out;
    buf_init(&out, 1 << 20);
    assert_int_equal(task_book_list(book, str_of(who), JSON_NONE, &out), BAY_OK);
    assert_text(buf_view(&out), wanted);
    buf_fini(&out);
}

static void a_note_is_its_owners_until_its_time_is_over(void **state)
{
    (void)state;
    task_book *book = open_book();
    task_note *note = add(book, "a", "t1", 0);
    add(book, "b", "t2", 500);
    assert_int_equal(task_note_show(note, STR("{\"n\":1.0}")), BAY_OK);
    assert_ptr_equal(task_note_find(book, STR("a"), STR("t1")), note);
    assert_null(task_note_find(book, STR("b"), STR("t1")));
    assert_null(task_note_find(book, STR(""), STR("t1")));
    assert_null(task_note_find(NULL, STR("a"), STR("t1")));
    assert_listed(book, "a", "\"tasks\":[{\"n\":1.0}]");
    assert_listed(book, "b", "\"tasks\":[]"); /* nothing to show of it */
    assert_listed(book, "nobody", "\"tasks\":[]");
    assert_listed(NULL, "a", "\"tasks\":[]");
    task_book_expire(book, 999);
    assert_non_null(task_note_find(book, STR("a"), STR("t1")));
    task_book_expire(book, 1000);
    assert_null(task_note_find(book, STR("a"), STR("t1")));
    assert_non_null(task_note_find(book, STR("b"), STR("t2")));
    /* a time without end has one all the same */
    task_note *longest = NULL;
    assert_int_equal(task_note_add(book, STR("a"), STR("t3"), UINT64_MAX, 1000, &longest), BAY_OK);
    assert_int_equal(longest->expires_at_ms, 1000 + (uint64_t)TASK_MAX_TTL_MS);
    task_book_free(book);
    task_book_free(NULL);
}

static void a_long_task_is_not_listed(void **state)
{
    (void)state;
    task_book *book = open_book();
    task_note *note = add(book, "a", "t1", 0);
    char *text = calloc(1, TASK_NOTE_BYTES + 2);
    assert_non_null(text);
    memset(text, '1', TASK_NOTE_BYTES + 1);
    assert_int_equal(task_note_show(note, (bay_str){text, TASK_NOTE_BYTES + 1}), BAY_LIMIT);
    assert_listed(book, "a", "\"tasks\":[]");
    assert_int_equal(task_note_show(note, (bay_str){text, TASK_NOTE_BYTES}), BAY_OK);
    assert_int_equal(note->shown_len, TASK_NOTE_BYTES);
    free(text);
    task_book_free(book);
}

static void one_owners_many_make_only_its_own_go(void **state)
{
    (void)state;
    task_book *book = open_book();
    char token[40];
    add(book, "quiet", "q", 0);
    for (int i = 0; i < TASK_NOTES_EACH + 5; i++) {
        (void)snprintf(token, sizeof(token), "t%d", i);
        add(book, "loud", token, 0);
    }
    assert_non_null(task_note_find(book, STR("quiet"), STR("q")));
    assert_null(task_note_find(book, STR("loud"), STR("t4")));
    assert_non_null(task_note_find(book, STR("loud"), STR("t5")));
    assert_int_equal(book->notes.len, TASK_NOTES_EACH + 1);
    task_book_free(book);
}

static void all_together_have_a_bound_too(void **state)
{
    (void)state;
    task_book *book = open_book();
    char token[40];
    char who[40];
    task_note *note = NULL;
    for (int i = 0; i < TASK_NOTES; i++) {
        (void)snprintf(token, sizeof(token), "t%d", i);
        (void)snprintf(who, sizeof(who), "w%d", i / 100);
        add(book, who, token, 0);
    }
    assert_int_equal(task_note_add(book, STR("late"), STR("x"), 1000, 0, &note), BAY_LIMIT);
    assert_null(map_get(&book->owners, STR("late")));
    /* what is over makes room by itself */
    assert_int_equal(task_note_add(book, STR("late"), STR("x"), 1000, 1000, &note), BAY_OK);
    assert_int_equal(book->notes.len, 1);
    task_book_free(book);
}

static void kept_results_have_bounds(void **state)
{
    (void)state;
    enum { HALF = TASK_KEPT_EACH / 2 };
    task_book *book = open_book();
    char *bytes = calloc(1, (size_t)TASK_KEPT_EACH + 1);
    assert_non_null(bytes);
    task_note *first = add(book, "a", "1", 0);
    assert_int_equal(
        task_note_keep(book, first, (bay_str){bytes, (size_t)TASK_KEPT_EACH + 1}, false),
        BAY_LIMIT);
    assert_false(first->is_own);
    assert_int_equal(task_note_keep(book, first, (bay_str){bytes, HALF}, false), BAY_OK);
    assert_int_equal(task_note_keep(book, add(book, "a", "2", 0), (bay_str){bytes, HALF}, false),
                     BAY_OK);
    assert_non_null(task_note_find(book, STR("a"), STR("1")));
    assert_int_equal(task_note_keep(book, add(book, "a", "3", 0), (bay_str){bytes, 1}, true),
                     BAY_OK);
    assert_null(task_note_find(book, STR("a"), STR("1"))); /* its oldest made room */
    assert_true(task_note_find(book, STR("a"), STR("3"))->is_failure);
    assert_int_equal(book->kept_bytes, HALF + 1);
    for (int i = 0; i < TASK_KEPT_BYTES / HALF - 1; i++) {
        char who[8];
        (void)snprintf(who, sizeof(who), "b%d", i);
        bay_err err = task_note_keep(book, add(book, who, who, 0), (bay_str){bytes, HALF}, false);
        assert_int_equal(err, i < TASK_KEPT_BYTES / HALF - 2 ? BAY_OK : BAY_LIMIT);
    }
    assert_non_null(task_note_find(book, STR("a"), STR("2"))); /* nobody else's went */
    free(bytes);
    task_book_free(book);
}

static void farewells_have_a_bound(void **state)
{
    (void)state;
    task_book *book = open_book();
    fake *server = fake_new("s", false);
    upstream_affinity affinity = {.identity = STR("who")};
    for (int i = 0; i < TASK_FAREWELLS + 3; i++) {
        task_farewell_send(book, &server->base, STR("t"), &affinity);
    }
    assert_int_equal(server->sends, TASK_FAREWELLS);
    assert_text(server->held[0]->spec.method, "tasks/cancel");
    assert_text(server->held[0]->spec.rename, "t");
    fake_result(server, "{}");
    task_farewell_send(book, &server->base, STR("t"), &affinity);
    assert_int_equal(server->sends, TASK_FAREWELLS + 1);
    task_book_free(book); /* takes back what is open */
    assert_int_equal(server->held_count, 0);
    fake_free(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_note_is_its_owners_until_its_time_is_over),
        cmocka_unit_test(a_long_task_is_not_listed),
        cmocka_unit_test(one_owners_many_make_only_its_own_go),
        cmocka_unit_test(all_together_have_a_bound_too),
        cmocka_unit_test(kept_results_have_bounds),
        cmocka_unit_test(farewells_have_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

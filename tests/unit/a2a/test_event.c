/* Events: what is shared, what is made once, what is given back. The forms themselves are played by
 * functions that count; those of the room have tests of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "a2a/event.h"
#include "support/failing_memory.h"
#include "json/build.h"

static struct {
    int written;
    int encoded;
    bool saw_last;
    bay_err err;
    bool is_silent;
} made;

bay_err a2a_event_write(a2a_form form, json_val event, bool is_last, buf *out)
{
    made.written++;
    made.saw_last = is_last;
    buf_printf(out, "[%d,", (int)form);
    buf_str(out, json_raw(event));
    buf_char(out, ']');
    return made.err;
}

bay_err a2a_event_in_form(a2a_form form, json_val event, bool is_last, arena *memory, json_val *out)
{
    json_builder builder;
    if (form == A2A_FORM_1_0) {
        *out = event;
        return BAY_OK;
    }
    made.written++;
    made.saw_last = is_last;
    json_writer *to = json_builder_init(&builder, memory, 1 << 20);
    json_open_array(to);
    json_put_int(to, (int)form);
    json_put_val(to, event);
    json_close_array(to);
    bay_err err = json_builder_end(&builder, out);
    return err == BAY_OK ? made.err : err;
}

bay_err a2a_text_view(bay_str text, json_val known, arena *memory, json_val *out)
{
    json_doc *doc = arena_alloc(memory, sizeof(*doc));
    *out = known;
    if (!json_is(known, JSON_MISSING)) {
        return BAY_OK;
    }
    bay_err err = doc != NULL ? json_parse(doc, text, NULL, memory, NULL) : BAY_ERR_NOMEM;
    *out = err == BAY_OK ? json_root(doc) : known;
    return err;
}

bay_err a2a_to_protobuf(a2a_type type, json_val value, buf *out, a2a_fault *fault)
{
    (void)fault;
    made.encoded++;
    if (!made.is_silent) {
        buf_printf(out, "%s%zu",
                   type == A2A_TYPE_STREAM_RESPONSE ? "1.0:" : "0.3:", json_raw(value).len);
    }
    return made.err;
}

static const char event_text[] = "{\"message\":{\"messageId\":\"m\"}}";

static void two_forms_have_no_protobuf(void **state)
{
    (void)state;
    made.written = made.encoded = 0;
    a2a_event *event = a2a_event_new(str_of(event_text), 1, false);
    bay_str out = STR("as before");
    assert_int_equal(a2a_event_in(event, A2A_FORM_0_3, true, &out), BAY_ERR_INVALID);
    assert_int_equal(a2a_event_in(event, A2A_FORM_0_1, true, &out), BAY_ERR_INVALID);
    assert_true(str_eq(out, STR("as before")));
    assert_int_equal(made.written + made.encoded, 0);
    a2a_event_unref(event);
    a2a_event_unref(NULL);
}

static void what_fails_is_tried_again(void **state)
{
    (void)state;
    a2a_event *event = a2a_event_new(str_of(event_text), 1, false);
    bay_str out = STR("as before");
    size_t bytes = a2a_event_bytes(event);
    made.err = BAY_ERR_LIMIT;
    assert_int_equal(a2a_event_in(event, A2A_FORM_0_3, false, &out), BAY_ERR_LIMIT);
    made.err = BAY_ERR_PROTOCOL;
    assert_int_equal(a2a_event_in(event, A2A_FORM_1_0, true, &out), BAY_ERR_INTERNAL);
    assert_true(str_eq(out, STR("as before")));
    assert_int_equal(a2a_event_bytes(event), bytes);
    made.err = BAY_OK;
    assert_int_equal(a2a_event_in(event, A2A_FORM_0_3, false, &out), BAY_OK);
    assert_true(str_starts(out, STR("[1,")));
    a2a_event_unref(event);
}

static void what_is_no_json_has_no_other_form(void **state)
{
    (void)state;
    a2a_event *event = a2a_event_new(STR("{"), 1, false);
    bay_str out;
    assert_int_equal(a2a_event_in(event, A2A_FORM_0_3, false, &out), BAY_ERR_SYNTAX);
    assert_int_equal(a2a_event_in(event, A2A_FORM_1_0, false, &out), BAY_OK);
    a2a_event_unref(event);
}

static void every_form_is_made_once(void **state)
{
    (void)state;
    made.written = made.encoded = 0;
    a2a_event *event = a2a_event_new(str_of(event_text), 7, true);
    assert_int_equal(a2a_event_sequence(event), 7);
    assert_true(a2a_event_is_last(event));
    bay_str first[A2A_FORMS];
    bay_str again;
    for (int round = 0; round < 3; round++) {
        for (size_t form = 0; form < A2A_FORMS; form++) {
            bay_str *out = round == 0 ? &first[form] : &again;
            assert_int_equal(a2a_event_in(event, (a2a_form)form, false, out), BAY_OK);
            assert_true(round == 0 || again.at == first[form].at);
        }
    }
    assert_int_equal(made.written, A2A_FORMS - 1);
    assert_true(made.saw_last);
    assert_true(str_eq(first[A2A_FORM_1_0], str_of(event_text)));
    assert_ptr_equal(first[A2A_FORM_1_0].at, a2a_event_json(event).at);

    bay_str encoded;
    for (int round = 0; round < 2; round++) {
        assert_int_equal(a2a_event_in(event, A2A_FORM_1_0, true, &encoded), BAY_OK);
        assert_true(str_eq(encoded, STR("1.0:29")));
        assert_int_equal(a2a_event_in(event, A2A_FORM_0_3_PROTO, true, &encoded), BAY_OK);
        assert_true(str_eq(encoded, STR("0.3:33"))); /* of the form, not of the model */
    }
    assert_int_equal(made.encoded, 2);
    a2a_event_unref(event);
}

/* The text is broken, so that only what was lent can be made into anything. */
static void what_was_lent_is_not_read_again(void **state)
{
    (void)state;
    json_doc doc;
    arena memory;
    bay_str out;
    arena_init(&memory, 1 << 16);
    assert_int_equal(json_parse(&doc, str_of(event_text), NULL, &memory, NULL), BAY_OK);
    a2a_event *event = a2a_event_new(STR("{"), 1, false);
    a2a_event_lend(event, json_root(&doc));
    a2a_event_lend(event, JSON_NONE);
    assert_int_equal(a2a_event_in(event, A2A_FORM_0_3, false, &out), BAY_ERR_SYNTAX);
    a2a_event_lend(event, json_root(&doc));
    assert_int_equal(a2a_event_in(event, A2A_FORM_0_3, false, &out), BAY_OK);
    assert_true(str_eq(out, STR("[1,{\"message\":{\"messageId\":\"m\"}}]")));
    assert_int_equal(a2a_event_in(event, A2A_FORM_1_0, true, &out), BAY_OK);
    assert_true(str_eq(out, STR("1.0:29")));
    assert_int_equal(a2a_event_in(event, A2A_FORM_0_3_PROTO, true, &out), BAY_OK);
    assert_true(str_eq(out, STR("0.3:33"))); /* of the form that was made of it */
    a2a_event_unref(event);
    arena_fini(&memory);
}

static void an_empty_rendering_counts_as_made(void **state)
{
    (void)state;
    made.encoded = 0;
    made.is_silent = true;
    a2a_event *event = a2a_event_new(str_of(event_text), 0, false);
    bay_str out;
    assert_int_equal(a2a_event_in(event, A2A_FORM_1_0, true, &out), BAY_OK);
    assert_int_equal(a2a_event_in(event, A2A_FORM_1_0, true, &out), BAY_OK);
    assert_int_equal(out.len, 0);
    assert_int_equal(made.encoded, 1);
    made.is_silent = false;
    a2a_event_unref(event);
}

static void an_event_has_its_own_copy_and_lives_by_its_references(void **state)
{
    (void)state;
    char text[] = "{\"a\":1}";
    a2a_event *event = a2a_event_new(str_of(text), 0, false);
    text[2] = 'b';
    assert_ptr_equal(a2a_event_ref(event), event);
    a2a_event_unref(event);
    assert_true(str_eq(a2a_event_json(event), STR("{\"a\":1}")));
    size_t bytes = a2a_event_bytes(event);
    bay_str out;
    assert_int_equal(a2a_event_in(event, A2A_FORM_0_3, false, &out), BAY_OK);
    assert_true(a2a_event_bytes(event) >= bytes + out.len);
    a2a_event_unref(event);
}

static void every_lack_of_memory_is_told(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        a2a_event *event = a2a_event_new(str_of(event_text), 1, false);
        for (size_t form = 0; event != NULL && form < A2A_FORMS; form++) {
            bay_str out;
            bay_err err = a2a_event_in(event, (a2a_form)form, false, &out);
            assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
            if (form == A2A_FORM_1_0 || form == A2A_FORM_0_3_PROTO) {
                err = a2a_event_in(event, (a2a_form)form, true, &out);
                assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
            }
        }
        a2a_event_unref(event);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_forms_have_no_protobuf),
        cmocka_unit_test(what_fails_is_tried_again),
        cmocka_unit_test(what_is_no_json_has_no_other_form),
        cmocka_unit_test(every_form_is_made_once),
        cmocka_unit_test(what_was_lent_is_not_read_again),
        cmocka_unit_test(an_empty_rendering_counts_as_made),
        cmocka_unit_test(an_event_has_its_own_copy_and_lives_by_its_references),
        cmocka_unit_test(every_lack_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "trust/grade.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"

#define GOOD                                                                                       \
    "{\"tools\":[{\"name\":\"a\",\"description\":\"Reads one file.\",\"annotations\":{"            \
    "\"readOnlyHint\":true},\"inputSchema\":{\"type\":\"object\"},\"outputSchema\":{}}]}"
#define BARE "{\"tools\":[{\"name\":\"a\"}]}"

typedef struct rig {
    arena memory;
    json_doc doc;
    trust_definitions all;
    trust_findings scan;
    trust_lock lock;
    grade_facts facts;
} rig;

static void rig_open(rig *self, const char *text)
{
    *self = (rig){0};
    arena_init(&self->memory, 1 << 20);
    trust_definitions_init(&self->all, STR("s"));
    trust_findings_init(&self->scan);
    trust_lock_init(&self->lock);
    assert_int_equal(json_parse(&self->doc, str_of(text), NULL, &self->memory, NULL), BAY_OK);
    assert_int_equal(trust_definitions_add_object(&self->all, json_root(&self->doc), NULL), BAY_OK);
    trust_definitions_sort(&self->all);
    self->facts = (grade_facts){.definitions = &self->all, .scan = &self->scan};
}

static void rig_close(rig *self)
{
    trust_lock_fini(&self->lock);
    trust_findings_fini(&self->scan);
    trust_definitions_fini(&self->all);
    arena_fini(&self->memory);
}

static void rig_find(rig *self, scan_severity severity)
{
    const trust_finding found = {.source = TRUST_BY_SCAN,
                                 .severity = severity,
                                 .rule = STR("secrecy"),
                                 .server = STR("s"),
                                 .kind = TRUST_TOOL,
                                 .item = STR("a")};
    assert_int_equal(trust_findings_add(&self->scan, &found, NULL), BAY_OK);
}

static trust_grade grade(const rig *self)
{
    trust_grade out;
    assert_int_equal(trust_grade_run(&self->facts, &out), BAY_OK);
    return out;
}

#ifndef BAY_NO_TLS
/* The lock as it is after a record, or after an approval. */
static void rig_pin(rig *self, bool is_approved)
{
    trust_pinned *pinned;
    arena memory;
    buf canon;
    trust_pin pin = {.kind = TRUST_TOOL, .name = STR("a"), .seen = STR("2026-11-27T10:00:00Z")};
    arena_init(&memory, 1 << 20);
    buf_init(&canon, 1 << 20);
    assert_int_equal(trust_canon(self->all.items[0].value, &memory, &canon, pin.digest), BAY_OK);
    pin.canon = buf_view(&canon);
    pin.approved = is_approved ? STR("2026-11-27T10:00:00Z") : (bay_str){"", 0};
    assert_int_equal(trust_lock_enter(&self->lock, STR("s"), false, &pinned), BAY_OK);
    assert_int_equal(trust_lock_put(&self->lock, pinned, &pin), BAY_OK);
    self->facts.pinned = trust_lock_find(&self->lock, STR("s"), false);
    buf_fini(&canon);
    arena_fini(&memory);
}

static void pins_count_half_without_an_approval(void **state)
{
    (void)state;
    rig self;
    rig_open(&self, GOOD);
    assert_int_equal(grade(&self).rows[GRADE_PINS].points, 0);
    rig_pin(&self, false);
    assert_int_equal(grade(&self).rows[GRADE_PINS].points, 7);
    rig_pin(&self, true);
    assert_int_equal(grade(&self).rows[GRADE_PINS].points, 15);
    trust_lock_find(&self.lock, STR("s"), false)->identity = STR("url https://a:443");
    self.facts.identity = STR("url https://b:443");
    assert_int_equal(grade(&self).rows[GRADE_PINS].points, 0);
    rig_close(&self);
}

static void everything_right_is_an_a(void **state)
{
    (void)state;
    rig self;
    rig_open(&self, GOOD);
    rig_pin(&self, true);
    self.facts.has_sandbox = true;
    self.facts.contracts = self.facts.held = 3;
    trust_grade all = grade(&self);
    assert_int_equal(all.points, 100);
    assert_int_equal(all.letter, 'A');
    for (size_t i = 0; i < GRADE_CHECKS; i++) {
        assert_string_equal(all.rows[i].raise, "");
    }
    rig_find(&self, SCAN_ERROR);
    all = grade(&self);
    assert_int_equal(all.points, 74);
    assert_int_equal(all.letter, 'D'); /* not more with an error */
    rig_close(&self);
}
#endif

static void each_lack_says_what_would_raise_it(void **state)
{
    (void)state;
    rig self;
    rig_open(&self, BARE);
    self.facts.transport = GRADE_PLAIN;
    rig_find(&self, SCAN_WARNING);
    trust_grade all = grade(&self);
    assert_int_equal(all.letter, 'F');
    assert_int_equal(all.rows[GRADE_SCAN].points, 20);
    assert_false(all.rows[GRADE_SANDBOX].applies);
    for (size_t i = 0; i < GRADE_CHECKS; i++) {
        assert_true(!all.rows[i].applies || all.rows[i].raise[0] != '\0');
        assert_true(!all.rows[i].applies || all.rows[i].points < all.rows[i].weight);
    }
    self.facts.transport = GRADE_PROCESS;
    all = grade(&self);
    assert_true(all.rows[GRADE_SANDBOX].applies);
    assert_false(all.rows[GRADE_AUTHENTICATION].applies);
    rig_close(&self);
}

static void a_contradicted_claim_costs_the_annotations(void **state)
{
    (void)state;
    rig self;
    rig_open(&self, GOOD);
    assert_int_equal(grade(&self).rows[GRADE_ANNOTATIONS].points, 10);
    self.facts.contradicted = 1;
    assert_int_equal(grade(&self).rows[GRADE_ANNOTATIONS].points, 0);
    self.facts.contracts = 4;
    self.facts.held = 3;
    assert_int_equal(grade(&self).rows[GRADE_CONTRACTS].points, 11);
    rig_close(&self);
}

static void an_agent_has_no_tools(void **state)
{
    (void)state;
    rig self;
    buf out;
    rig_open(&self, "{\"name\":\"x\",\"skills\":[]}");
    self.facts.is_agent = true;
    self.facts.transport = GRADE_TLS;
    self.facts.has_credentials = true;
    trust_grade all = grade(&self);
    assert_false(all.rows[GRADE_ANNOTATIONS].applies);
    assert_false(all.rows[GRADE_SCHEMAS].applies);
    assert_false(all.rows[GRADE_CONTRACTS].applies);
    buf_init(&out, 1 << 16);
    trust_grade_write_text(&all, STR("x\x1b"), &out);
    assert_int_equal(out.err, BAY_OK);
    assert_true(str_starts(buf_view(&out), STR("x\\u{1b}: ")));
    buf_fini(&out);
    rig_close(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_lack_says_what_would_raise_it),
        cmocka_unit_test(a_contradicted_claim_costs_the_annotations),
        cmocka_unit_test(an_agent_has_no_tools),
#ifndef BAY_NO_TLS
        cmocka_unit_test(pins_count_half_without_an_approval),
        cmocka_unit_test(everything_right_is_an_a),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

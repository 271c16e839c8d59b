/* A long task whose puts fail now and then, and whose process ends now and then: another process
 * has the very same, every time; whatever its bounds are. */
#include "agent_rig.h"

static unsigned long long seed;

static unsigned draw(unsigned below)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(seed >> 33) % below;
}

/* Of a length that stays in the row, leaves it with others, or leaves it alone. */
static size_t draw_words(char *out)
{
    static const size_t lengths[] = {1, 20, 300, 1100, 2047, 2100, 4200, 7000};
    size_t len = lengths[draw(8)];
    memset(out, 'a' + (int)draw(26), len);
    out[len] = '\0';
    return len;
}

enum { WORDS = 8000 };

static void add(rig *r)
{
    char words[WORDS];
    char json[WORDS + 200];
    json_doc doc;
    arena memory;
    draw_words(words);
    snprintf(json, sizeof(json),
             "{\"artifactId\":\"%c\\u0001\",\"name\":\"n%u\",\"metadata\":{\"m\":\"\\u0001a 1 1 "
             "9\\u0001\"},\"parts\":[{\"text\":\"%s\"}%s]}",
             'a' + (char)draw(5), draw(100), words,
             draw(3) == 0 ? ",{\"data\":[ 1, {\"x\" : \"\\u0001t 1 0 1\\u0001\"} ]}" : "");
    bool append = draw(4) > 0;
    bay_err err = a2a_turn_artifact(r->held, rig_json(json, &doc, &memory), append, draw(12) == 0);
    assert_true(err == BAY_OK || err == BAY_ERR_INVALID || err == BAY_ERR_STATE ||
                err == BAY_ERR_LIMIT);
    arena_fini(&memory);
}

static void speak(rig *r, a2a_state state)
{
    char words[WORDS];
    size_t len = draw_words(words);
    bay_err err = a2a_turn_status_text(r->held, state, (bay_str){words, draw(5) == 0 ? 0 : len});
    assert_true(err == BAY_OK || err == BAY_ERR_LIMIT);
}

enum { CALLS = 80 };
static told *calls[CALLS]; /* some wait for as long as their agent lives */
static size_t call_count;

static void send(rig *r, const char *json)
{
    assert_in_range(call_count, 0, CALLS - 1);
    calls[call_count++] = rig_send(r, json);
}

static void end(rig *r)
{
    rig_free(r);
    while (call_count > 0) {
        assert_int_equal(calls[--call_count]->ended, 1);
        told_free(calls[call_count]);
    }
}

static void hear(rig *r, unsigned number)
{
    char words[WORDS];
    char json[WORDS + 300];
    draw_words(words);
    snprintf(json, sizeof(json),
             "{\"message\":{\"messageId\":\"%u\",\"taskId\":\"" TASK_1 "\",\"role\":\"ROLE_USER\","
             "\"parts\":[{\"text\":\"%s\"}]},\"configuration\":{\"returnImmediately\":true}}",
             number, words);
    send(r, json);
}

static void remember(rig *r)
{
    char words[WORDS];
    size_t len = draw_words(words);
    bay_err err = a2a_turn_remember(r->held, (bay_str){words, len});
    assert_true(err == BAY_OK || err == BAY_ERR_LIMIT);
}

static void one_change(rig *r, unsigned number)
{
    switch (draw(8)) {
    case 0:
        speak(r, A2A_WORKING);
        break;
    case 1:
        hear(r, number);
        break;
    case 2:
        remember(r);
        break;
    case 3: /* asks back; then what waits, or comes next, has its turn */
        speak(r, A2A_INPUT_REQUIRED);
        a2a_turn_end(r->held);
        hear(r, number);
        break;
    default:
        add(r);
        break;
    }
}

static void settle(rig *r)
{
    r->keep_says = r->put_says = BAY_OK;
    r->is_keeping = true;
    rig_confirm(r, BAY_OK);
    r->now_ms += 2000;
    a2a_agent_tick(r->agent);
}

static void compare_after_restart(rig *r)
{
    told *before = rig_ask(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\"}");
    assert_answered(before);
    for (int i = 0; i < 2; i++) { /* also when nothing was put meanwhile */
        rig_restart(r, true);
        r->now_ms++;
        a2a_agent_tick(r->agent);
        assert_non_null(r->held);
        told *after = rig_ask(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\"}");
        assert_answered(after);
        assert_string_equal(before->result, after->result);
        told_free(after);
    }
    told_free(before);
}

static void one_life(unsigned history, bool is_late)
{
    rig *r = rig_plain();
    r->options.persistence = &r->persistence;
    r->options.limits.history = history;
    rig_open(r);
    r->turn = rig_hold;
    send(r, "{\"message\":{\"messageId\":\"0\",\"role\":\"ROLE_USER\",\"parts\":[{"
            "\"text\":\"x\"}]},\"configuration\":{\"returnImmediately\":true}}");
    for (unsigned i = 1; i < 60; i++) {
        r->put_says = draw(6) == 0 ? BAY_ERR_BUSY : BAY_OK;
        r->keep_says = draw(6) == 0 ? BAY_ERR_IO : BAY_OK;
        r->is_keeping = !is_late || draw(3) == 0;
        r->keep_says = r->is_keeping ? r->keep_says : BAY_OK; /* it is written when it is put */
        one_change(r, i);
        if (is_late && draw(2) == 0) { /* one that failed may have been written all the same */
            rig_confirm(r, draw(3) == 0 ? BAY_ERR_IO : BAY_OK);
        }
        if (draw(3) == 0) {
            settle(r);
        }
        if (draw(8) == 0) {
            settle(r);
            compare_after_restart(r);
        }
    }
    settle(r);
    compare_after_restart(r);
    end(r);
}

static void is_the_same_to_every_process(void **state)
{
    (void)state;
    static const unsigned histories[] = {1, 2, 3, 10, 100};
    const char *from = getenv("RANDOM_FROM");
    unsigned base = from != NULL ? (unsigned)strtoul(from, NULL, 10) : 0;
    for (unsigned i = 0; i < 40; i++) {
        seed = base + i + 1;
        one_life(histories[i % 5], i % 2 == 1);
    }
}

/* What ends because it is full says so, to another process too. */
static void is_the_same_when_it_is_full(void **state)
{
    (void)state;
    rig *r = rig_plain();
    r->options.persistence = &r->persistence;
    r->options.limits.task_bytes = 20000;
    rig_open(r);
    r->turn = rig_hold;
    seed = 7;
    send(r, "{\"message\":{\"messageId\":\"0\",\"role\":\"ROLE_USER\",\"parts\":[{"
            "\"text\":\"x\"}]},\"configuration\":{\"returnImmediately\":true}}");
    char words[4000];
    memset(words, 'w', sizeof(words));
    while (a2a_turn_status_text(r->held, A2A_WORKING, (bay_str){words, sizeof(words)}) == BAY_OK) {
    }
    assert_int_equal(a2a_turn_status_text(r->held, A2A_FAILED, (bay_str){words, sizeof(words)}),
                     BAY_OK);
    a2a_turn_end(r->held);
    told *before = rig_ask(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\"}");
    assert_answered(before);
    rig_restart(r, true);
    told *after = rig_ask(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\"}");
    assert_answered(after);
    assert_string_equal(before->result, after->result);
    told_free(before);
    told_free(after);
    end(r);
}

/* What was told in chunks has more parts, and more values, than anybody may send at once. */
static void is_the_same_with_very_many_parts(void **state)
{
    enum { CHUNKS = 12, PARTS = 1000 };
    static char json[PARTS * 16 + 100];
    (void)state;
    rig *r = rig_plain();
    r->options.persistence = &r->persistence;
    rig_open(r);
    r->turn = rig_hold;
    send(r, "{\"message\":{\"messageId\":\"0\",\"role\":\"ROLE_USER\",\"parts\":[{"
            "\"text\":\"x\"}]},\"configuration\":{\"returnImmediately\":true}}");
    size_t len = (size_t)snprintf(json, sizeof(json), "{\"artifactId\":\"a\",\"parts\":[");
    for (int i = 0; i < PARTS; i++) {
        len +=
            (size_t)snprintf(json + len, sizeof(json) - len, "%s{\"text\":\"\"}", i > 0 ? "," : "");
    }
    snprintf(json + len, sizeof(json) - len, "]}");
    for (int i = 0; i < CHUNKS; i++) {
        json_doc doc;
        arena memory;
        assert_int_equal(a2a_turn_artifact(r->held, rig_json(json, &doc, &memory), i > 0, false),
                         BAY_OK);
        arena_fini(&memory);
    }
    compare_after_restart(r);
    end(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_the_same_when_it_is_full),
        cmocka_unit_test(is_the_same_to_every_process),
        cmocka_unit_test(is_the_same_with_very_many_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a keeper has of a long task: what is new with each put, in blocks; and another process that
 * puts it together again, or refuses it. */
#include "agent_rig.h"

#include "support/failing_memory.h"

enum {
    LONG = 6000,     /* bytes of a text that leaves the row at once */
    ROW_MOST = 2048, /* of an artifact in its row */
};

static char *text_of(size_t len, char with)
{
    char *text = malloc(len + 1);
    CHECK(text != NULL);
    memset(text, with, len);
    text[len] = '\0';
    return text;
}

/* An artifact, or a status, or a message of a client, with a text of that length. */
static char *json_of(const char *head, size_t len, char with, const char *tail)
{
    char *words = text_of(len, with);
    size_t size = strlen(head) + len + strlen(tail) + 1;
    char *json = malloc(size);
    CHECK(json != NULL);
    snprintf(json, size, "%s%s%s", head, words, tail);
    free(words);
    return json;
}

static bay_err add(a2a_turn *turn, const char *id, size_t len, char with, bool append, bool is_last)
{
    char head[100];
    json_doc doc;
    arena memory;
    snprintf(head, sizeof(head), "{\"artifactId\":\"%s\",\"parts\":[{\"text\":\"", id);
    char *json = json_of(head, len, with, "\"}]}");
    json_val artifact = rig_json(json, &doc, &memory);
    bay_err err = json_kind_of(artifact) == JSON_MISSING
                      ? BAY_ERR_NOMEM
                      : a2a_turn_artifact(turn, artifact, append, is_last);
    arena_fini(&memory);
    free(json);
    return err;
}

static bay_err say(a2a_turn *turn, a2a_state state, size_t len, char with)
{
    char *words = text_of(len, with);
    bay_err err = a2a_turn_status_text(turn, state, (bay_str){words, len});
    free(words);
    return err;
}

static told *send(rig *r, const char *id, size_t len, bool has_task)
{
    char head[200];
    snprintf(head, sizeof(head),
             "{\"message\":{\"messageId\":\"%s\",%s\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"",
             id, has_task ? "\"taskId\":\"" TASK_1 "\"," : "");
    char *json = json_of(head, len, 'm', "\"}]},\"configuration\":{\"returnImmediately\":true}}");
    told *call = rig_send(r, json);
    free(json);
    return call;
}

static told *get(rig *r)
{
    return rig_ask(r, A2A_GET_TASK, "{\"id\":\"" TASK_1 "\"}");
}

static size_t blocks_of(const rig *r)
{
    return r->row_count > 0 ? r->rows[0].block_count : 0;
}

static size_t overflows_of(const rig *r)
{
    size_t count = 0;
    for (size_t i = 0; i < blocks_of(r); i++) {
        count += i == 0 || r->rows[0].blocks[i].overflow != r->rows[0].blocks[i - 1].overflow;
    }
    return count;
}

/* The task is the same to another process, and goes on there. */
static void assert_survives(rig *r)
{
    told *before = get(r);
    assert_answered(before);
    rig_restart(r, true);
    a2a_agent_tick(r->agent);
    told *after = get(r);
    assert_answered(after);
    assert_string_equal(before->result, after->result);
    told_free(before);
    told_free(after);
}

/* ---- rows that are not whole */

/* A task with two artifacts, of which one has several blocks, and a long message. */
static rig *rig_in_blocks(void)
{
    rig *r = rig_new_keeping();
    r->turn = rig_hold;
    told_free(send(r, "1", LONG, false));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(add(r->held, "a", LONG, (char)('a' + i), i > 0, false), BAY_OK);
    }
    assert_int_equal(add(r->held, "b", LONG, 'z', false, true), BAY_OK);
    assert_true(blocks_of(r) >= 7);
    return r;
}

static bay_err restore_only(rig *r)
{
    if (r->agent != NULL) {
        rig_close(r);
    }
    rig_open(r);
    return rig_restore(r, &r->rows[0], true);
}

static void refuses_rows_without_their_blocks(void **state)
{
    (void)state;
    rig *r = rig_in_blocks();
    kept_row *row = &r->rows[0];
    for (size_t i = 0; i < row->block_count; i++) {
        kept_block without = row->blocks[i];
        size_t behind = row->block_count - i - 1;
        memmove(row->blocks + i, row->blocks + i + 1, behind * sizeof(kept_block));
        row->block_count--;
        assert_int_equal(restore_only(r), BAY_ERR_SYNTAX);
        memmove(row->blocks + i + 1, row->blocks + i, behind * sizeof(kept_block));
        row->block_count++;
        row->blocks[i] = without;
    }
    size_t count = row->block_count;
    row->block_count = 0;
    assert_int_equal(restore_only(r), BAY_ERR_SYNTAX);
    row->block_count = count;
    assert_int_equal(restore_only(r), BAY_OK);
    rig_free(r);
}

static void refuses_blocks_that_are_not_what_they_were(void **state)
{
    (void)state;
    rig *r = rig_in_blocks();
    kept_row *row = &r->rows[0];
    for (size_t i = 0; i < row->block_count; i++) {
        kept_block *block = &row->blocks[i];
        char first = block->bytes[0];
        block->len--; /* shorter */
        assert_int_equal(restore_only(r), BAY_ERR_SYNTAX);
        block->len++;
        block->bytes[0] = '\x7f'; /* no JSON, no length */
        assert_int_equal(restore_only(r), BAY_ERR_SYNTAX);
        block->bytes[0] = first;
        block->overflow += 100; /* another's */
        assert_int_equal(restore_only(r), BAY_ERR_SYNTAX);
        block->overflow -= 100;
    }
    assert_int_equal(restore_only(r), BAY_OK);
    rig_free(r);
}

static void refuses_rows_that_say_it_wrongly(void **state)
{
    static const char *const bad[] = {
        "\001",
        "\001a 1 1 1",
        "\001\001",
        "\001a\001",
        "\001a \001",
        "\001a 1 1\001",
        "\001a 1 1 1 1\001",
        "\001a 1 x 1\001",
        "\001a 1 0 3\001",
        "\001a 1 1 0\001",
        "\001a 1 1 2\001",
        "\001a 1 1 4\001",
        "\001a 1 2 3\001",
        "\001a 1 4294967297 3\001",
        "\001a 2 1 3\001",
        "\001x 1 1 3\001",
        "\001t 9 0 1\001",
        "\001t 1 0 1\001", /* too short for a length */
        "\001t 3 0 0\001",
        "\001t 3 0 2\001",
        "\001t 3 1 1\001",
        "\001t 3 18446744073709551615 1\001",
        "\001t 3 0 18446744073709551615\001",
        "\001t 4 0 1\001", /* its length is more than there is */
        "\001a 1 1 3\001\001a 1 1 3\001\001a 1 1 3\001\001a 1 1 3\001",
    };
    static const char one[] = "\0\0\0\0\0\0\0\2{}";
    static const char longer[] = "\0\0\0\0\0\0\0\3{}";
    const a2a_overflow_block blocks[] = {{1, 0, STR_INIT("abc")},
                                         {3, 0, {one, sizeof(one) - 1}},
                                         {4, 0, {longer, sizeof(longer) - 1}}};
    rig *r = rig_new_keeping();
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char row[300];
        snprintf(row, sizeof(row),
                 "{\"v\":2,\"revision\":1,\"order\":1,\"principal\":\"\",\"task\":{\"id\":\"a\","
                 "\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_WORKING\","
                 "\"timestamp\":\"2023-11-14T22:13:20Z\"},\"history\":[%s]}}",
                 bad[i]);
        const a2a_kept_task kept = {
            .row = str_of(row), .blocks = blocks, .block_count = ARRAY_LEN(blocks)};
        bay_err err = a2a_agent_restore(r->agent, &kept, true);
        if (err != BAY_ERR_SYNTAX) {
            fail_msg("%s: %s", bad[i], bay_err_text(err));
        }
    }
    rig_free(r);
}

static uint32_t roll(uint32_t *random, uint32_t below) /* the same in every run */
{
    *random = *random * 1664525U + 1013904223U;
    return (uint32_t)(((uint64_t)*random * below) >> 32);
}

/* Whatever a byte is changed to: it is refused, or it is a task that can be told and go on. */
static void survives_any_damage(void **state)
{
    enum { ROUNDS = 1200 };
    (void)state;
    rig *r = rig_in_blocks();
    kept_row *row = &r->rows[0];
    uint32_t random = 1;
    int refused = 0;
    for (int round = 0; round < ROUNDS; round++) {
        static const char telling[] = "\001\"{}[],: 0123456789at\0";
        kept_block *block = &row->blocks[roll(&random, (uint32_t)row->block_count)];
        bool is_row = round % 3 != 0;
        char *at = is_row ? row->row + roll(&random, (uint32_t)row->row_len)
                          : block->bytes + roll(&random, round % 2 ? 60 : (uint32_t)block->len);
        char was = *at;
        *at = telling[roll(&random, sizeof(telling) - 1)];
        bay_err err = restore_only(r);
        assert_true(err == BAY_OK || err == BAY_ERR_SYNTAX);
        refused += err != BAY_OK;
        *at = was;
        if (err == BAY_OK) {
            told *listed = rig_ask(r, A2A_LIST_TASKS, "{\"includeArtifacts\":true}");
            r->keep_says = BAY_ERR_IO; /* what is kept must stay */
            a2a_agent_tick(r->agent);
            rig_close(r);
            told_free(listed);
            r->keep_says = BAY_OK;
        }
    }
    assert_in_range(refused, ROUNDS / 4, ROUNDS - 50);
    rig_free(r);
}

/* Each names a thing of the task by a place of another's. */
static void refuses_one_block_for_two_things(void **state)
{
    static const char *const bad[] = {
        "\"artifacts\":[{\"artifactId\":\"a\",\"parts\":[\001a 1 1 13\001]},"
        "{\"artifactId\":\"b\",\"parts\":[\001a 1 1 13\001]}]",
        "\"artifacts\":[{\"artifactId\":\"a\",\"parts\":[\001t 2 0 1\001]}]",
        "\"artifacts\":[{\"artifactId\":\"a\",\"parts\":[\001a 1 1 13\001]}],"
        "\"history\":[\001t 1 0 1\001]",
        "\"history\":[\001a 1 1 13\001]",
    };
    static const char text[] = "\0\0\0\0\0\0\0\14{\"text\":\"x\"}";
    const a2a_overflow_block blocks[] = {{1, 0, STR_INIT("{\"text\":\"xy\"}")},
                                         {2, 0, {text, sizeof(text) - 1}}};
    rig *r = rig_new_keeping();
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char row[400];
        snprintf(row, sizeof(row),
                 "{\"v\":2,\"revision\":1,\"order\":1,\"principal\":\"\",\"task\":{\"id\":\"a\","
                 "\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_WORKING\","
                 "\"timestamp\":\"2023-11-14T22:13:20Z\"},%s}}",
                 bad[i]);
        const a2a_kept_task kept = {
            .row = str_of(row), .blocks = blocks, .block_count = ARRAY_LEN(blocks)};
        bay_err err = a2a_agent_restore(r->agent, &kept, true);
        if (err != BAY_ERR_SYNTAX) {
            fail_msg("%s: %s", bad[i], bay_err_text(err));
        }
    }
    rig_free(r);
}

/* A row that says it is whole and is not, and the reverse. */
static void refuses_the_wrong_version(void **state)
{
    (void)state;
    rig *r = rig_in_blocks();
    assert_memory_equal(r->rows[0].row, "{\"v\":2,", 7);
    r->rows[0].row[5] = '1';
    assert_int_equal(restore_only(r), BAY_ERR_SYNTAX);
    r->rows[0].row[5] = '3';
    assert_int_equal(restore_only(r), BAY_ERR_SYNTAX);
    rig_free(r);
    r = rig_new_keeping();
    told_free(rig_send(r, RIG_MESSAGE("1", "")));
    assert_memory_equal(r->rows[0].row, "{\"v\":1,", 7);
    r->rows[0].row[5] = '2';
    assert_int_equal(restore_only(r), BAY_ERR_SYNTAX);
    rig_free(r);
}

/* ---- what stays in the row */

static void keeps_small_tasks_in_their_row(void **state)
{
    rig *r = rig_new_keeping();
    (void)state;
    r->turn = rig_hold;
    told_free(send(r, "1", 10, false));
    for (int i = 0; i < 5; i++) {
        assert_int_equal(add(r->held, "a", 300, 'a', i > 0, false), BAY_OK);
    }
    rig_complete(r, r->held);
    assert_int_equal(blocks_of(r), 0);
    assert_memory_equal(r->rows[0].row, "{\"v\":1,", 7);
    assert_survives(r);
    rig_free(r);
}

static void complete_at_once(rig *r, a2a_turn *turn)
{
    (void)r;
    assert_int_equal(add(turn, "a", 10 * LONG, 'a', false, true), BAY_OK);
    assert_int_equal(say(turn, A2A_COMPLETED, LONG, 'd'), BAY_OK);
    a2a_turn_end(turn);
}

/* It is written once: nothing would be saved. */
static void keeps_what_completes_at_once_in_its_row(void **state)
{
    rig *r = rig_new_keeping();
    (void)state;
    r->turn = complete_at_once;
    told_free(rig_send(r, RIG_MESSAGE("1", "")));
    assert_int_equal(blocks_of(r), 0);
    assert_survives(r);
    /* Should it be written again all the same, it is not written whole a third time. */
    const char *config = "{\"taskId\":\"" TASK_1 "\",\"url\":\"https://x\"}";
    told_free(rig_ask(r, A2A_CREATE_PUSH_CONFIG, config));
    assert_true(blocks_of(r) >= 2);
    uint64_t before = r->written;
    told_free(rig_ask(r, A2A_CREATE_PUSH_CONFIG, config));
    assert_in_range(r->written - before, 100, 4096);
    assert_survives(r);
    rig_free(r);
}

/* As the releases before wrote them: all in one row. What is long in it leaves it. */
static void reads_rows_that_are_whole(void **state)
{
    static const char head[] =
        "{\"v\":1,\"revision\":4,\"order\":1,\"pushed\":0,\"principal\":\"program:0::3:ann\","
        "\"task\":{"
        "\"id\":\"" TASK_1 "\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_WORKING\","
        "\"timestamp\":\"2023-11-14T22:13:20Z\"},\"artifacts\":[{\"artifactId\":\"a\",\"parts\":[{"
        "\"text\":\"";
    static const char tail[] =
        "\"}]}],\"history\":[{\"messageId\":\"1\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":"
        "\"hi\"}]}]},\"complete\":[],\"turns\":[{\"request\":{\"message\":{\"messageId\":\"1\","
        "\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"hi\"}]}},\"traceparent\":\"\","
        "\"extensions\":\"\",\"isNew\":true,\"isBegun\":true}]}";
    (void)state;
    rig *r = rig_new_keeping();
    r->turn = rig_hold;
    char *row = json_of(head, 10 * LONG, 'o', tail);
    const a2a_kept_task kept = {.row = str_of(row)};
    assert_int_equal(a2a_agent_restore(r->agent, &kept, true), BAY_OK);
    a2a_agent_tick(r->agent);
    assert_int_equal(r->turns, 1);
    assert_int_equal(add(r->held, "a", 10, 'p', true, false), BAY_OK);
    assert_int_equal(blocks_of(r), 1);
    assert_in_range(r->rows[0].blocks[0].len, 10 * LONG, 11 * LONG);
    assert_in_range(r->rows[0].row_len, 100, 2000);
    assert_survives(r);
    free(row);
    rig_free(r);
}

/* ---- long artifacts */

static void writes_what_is_new(void **state)
{
    enum { CHUNKS = 400, BYTES = 1000, SLACK = 2500 };
    rig *r = rig_new_keeping();
    (void)state;
    r->turn = rig_hold;
    told_free(send(r, "1", 10, false));
    uint64_t before = r->written;
    for (int i = 0; i < CHUNKS; i++) {
        uint64_t at = r->written;
        assert_int_equal(add(r->held, "a", BYTES, (char)('a' + i % 26), i > 0, false), BAY_OK);
        assert_in_range(r->written - at, BYTES / 4, ROW_MOST + BYTES + SLACK);
    }
    /* Each chunk once, and rows that have a few of them. */
    assert_in_range(r->written - before, CHUNKS * BYTES, CHUNKS * (BYTES + SLACK));
    assert_int_equal(overflows_of(r), 1);
    assert_survives(r);
    assert_int_equal(add(r->held, "a", BYTES, 'x', true, true), BAY_OK);
    before = r->written;
    rig_complete(r, r->held);
    assert_in_range(r->written - before, 100, ROW_MOST + SLACK);
    assert_survives(r);
    rig_free(r);
}

static void writes_many_small_artifacts_once(void **state)
{
    enum { MANY = 150, BYTES = 1000, HEADS = 120 };
    rig *r = rig_new_keeping();
    (void)state;
    r->turn = rig_hold;
    told_free(send(r, "1", 10, false));
    uint64_t before = r->written;
    for (int i = 0; i < MANY; i++) {
        char id[20];
        snprintf(id, sizeof(id), "artifact-%d", i);
        assert_int_equal(add(r->held, id, BYTES, 'a', false, true), BAY_OK);
    }
    uint64_t most = MANY * BYTES + MANY * (20000 + MANY * HEADS / 2);
    assert_in_range(r->written - before, MANY * BYTES, most);
    assert_true(overflows_of(r) > MANY / 2);
    assert_survives(r);
    rig_free(r);
}

static void replaces_artifacts(void **state)
{
    rig *r = rig_in_blocks();
    (void)state;
    size_t before = overflows_of(r);
    assert_int_equal(add(r->held, "a", 10, 'n', false, false), BAY_OK);
    assert_int_equal(overflows_of(r), before - 1);
    assert_survives(r);
    for (int i = 0; i < 5; i++) { /* one kept under another's name would show */
        assert_int_equal(add(r->held, "a", LONG, (char)('0' + i), false, false), BAY_OK);
        assert_int_equal(add(r->held, "a", LONG, (char)('5' + i), true, false), BAY_OK);
        assert_int_equal(overflows_of(r), before);
        assert_survives(r);
    }
    rig_free(r);
}

/* Replaced while its first block is on its way. */
static void replaces_artifacts_under_way(void **state)
{
    rig *r = rig_new_keeping();
    (void)state;
    r->turn = rig_hold;
    told_free(send(r, "1", 10, false));
    r->is_keeping = false;
    assert_int_equal(add(r->held, "a", LONG, 'a', false, false), BAY_OK);
    assert_int_equal(overflows_of(r), 1);
    assert_int_equal(add(r->held, "a", LONG, 'b', false, false), BAY_OK);
    assert_int_equal(add(r->held, "a", LONG, 'c', true, false), BAY_OK);
    assert_int_equal(rig_confirm(r, BAY_OK), 1);
    assert_int_equal(rig_confirm(r, BAY_OK), 1);
    assert_int_equal(overflows_of(r), 1);
    r->is_keeping = true;
    assert_survives(r);
    rig_free(r);
}

/* ---- puts that fail */

static void cuts_anew_what_was_not_kept(void **state)
{
    rig *r = rig_in_blocks();
    (void)state;
    size_t before = blocks_of(r);
    size_t overflows = overflows_of(r);
    r->keep_says = BAY_ERR_IO;
    assert_int_equal(add(r->held, "a", LONG, 'x', true, false), BAY_OK);
    assert_int_equal(add(r->held, "b", LONG, 'y', false, true), BAY_OK);
    assert_int_equal(add(r->held, "c", LONG, 'z', false, true), BAY_OK);
    assert_int_equal(say(r->held, A2A_WORKING, LONG, 's'), BAY_OK);
    r->now_ms += 1000;
    a2a_agent_tick(r->agent); /* and again */
    assert_int_equal(blocks_of(r), before);
    r->keep_says = BAY_OK;
    r->put_says = BAY_ERR_BUSY;
    r->now_ms += 1000;
    a2a_agent_tick(r->agent);
    assert_int_equal(blocks_of(r), before);
    r->put_says = BAY_OK;
    r->now_ms += 1000;
    a2a_agent_tick(r->agent);
    assert_int_equal(blocks_of(r), before + 3); /* of a, c, and what was said; b has another */
    assert_int_equal(overflows_of(r), overflows + 2);
    assert_survives(r);
    rig_free(r);
}

/* ---- messages, what is remembered, requests */

static void writes_messages_once(void **state)
{
    enum { MANY = 60, BYTES = 1000, SLACK = 4500 };
    rig *r = rig_new_keeping();
    (void)state;
    r->turn = rig_hold;
    told_free(send(r, "1", 20 * LONG, false));
    uint64_t before = r->written;
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(say(r->held, A2A_WORKING, i % 10 == 9 ? LONG : BYTES, 'w'), BAY_OK);
    }
    /* The first message and the request, 120 KB each, are not among it. */
    assert_in_range(r->written - before, MANY * BYTES, MANY * (BYTES + SLACK));
    assert_survives(r);
    assert_int_equal(say(r->held, A2A_INPUT_REQUIRED, LONG, 'q'), BAY_OK);
    a2a_turn_end(r->held);
    told_free(send(r, "2", LONG, true));
    assert_survives(r);
    rig_free(r);
}

static void drops_old_messages(void **state)
{
    rig *r = rig_plain();
    (void)state;
    r->options.persistence = &r->persistence;
    r->options.limits.history = 10;
    rig_open(r);
    r->turn = rig_hold;
    told_free(send(r, "1", LONG, false));
    size_t most = 0;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(say(r->held, A2A_WORKING, i % 3 == 0 ? LONG : 1500, 'w'), BAY_OK);
        most = blocks_of(r) > most ? blocks_of(r) : most;
        if (i % 10 == 7) {
            assert_survives(r);
        }
    }
    assert_in_range(most, 5, 14);
    rig_free(r);
}

static void keeps_what_is_remembered_and_asked_apart(void **state)
{
    rig *r = rig_new_keeping();
    (void)state;
    char *bytes = text_of(LONG, '\x80');
    r->turn = rig_hold;
    told_free(send(r, "1", LONG, false));
    assert_int_equal(a2a_turn_remember(r->held, (bay_str){bytes, LONG}), BAY_OK);
    assert_int_equal(rig_status(r->held, A2A_WORKING, "so far"), BAY_OK);
    told_free(send(r, "2", LONG, true)); /* waits for its turn */
    size_t overflows = overflows_of(r);
    assert_in_range(overflows, 4, 6);
    uint64_t before = r->written;
    assert_int_equal(rig_status(r->held, A2A_WORKING, "further"), BAY_OK);
    assert_in_range(r->written - before, 100, 4096);
    assert_survives(r);
    assert_true(a2a_turn_is_resumed(r->held));
    assert_int_equal(a2a_turn_remembered(r->held).len, LONG);
    assert_memory_equal(a2a_turn_remembered(r->held).at, bytes, LONG);
    /* Another memory, then no turn: what they had goes. */
    assert_int_equal(a2a_turn_remember(r->held, STR("short")), BAY_OK);
    assert_int_equal(rig_status(r->held, A2A_INPUT_REQUIRED, "which?"), BAY_OK);
    a2a_turn_end(r->held);
    rig_complete(r, r->held);
    assert_int_equal(overflows_of(r), overflows - 2);
    assert_survives(r);
    free(bytes);
    rig_free(r);
}

/* ---- what a row does not know */

static void drops_blocks_that_no_row_knows(void **state)
{
    rig *r = rig_in_blocks();
    (void)state;
    size_t before = blocks_of(r);
    const a2a_overflow_block unknown[] = {
        {77, 0, STR_INIT("x")}, {77, 1, STR_INIT("y")}, {99, 3, STR_INIT("z")}};
    for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
        rig_store_block(&r->rows[0], &unknown[i]);
    }
    assert_survives(r);
    assert_int_equal(add(r->held, "c", LONG, 'c', false, false), BAY_OK);
    assert_int_equal(blocks_of(r), before + 1);
    assert_true(r->rows[0].blocks[before].overflow > 99); /* never a name that there was */
    assert_survives(r);
    rig_free(r);
}

static void without_resuming_requests_go(void **state)
{
    rig *r = rig_in_blocks();
    (void)state;
    size_t before = overflows_of(r);
    rig_restart(r, false);
    a2a_agent_tick(r->agent);
    told *after = get(r);
    assert_holds(after->result, "TASK_STATE_FAILED");
    assert_int_equal(overflows_of(r), before - 1);
    told_free(after);
    rig_free(r);
}

/* The bounds of a task count what it has, wherever that is kept. */
static void keeps_to_its_bounds(void **state)
{
    rig *r = rig_plain();
    (void)state;
    r->options.persistence = &r->persistence;
    r->options.limits.task_bytes = 10 * LONG;
    rig_open(r);
    r->turn = rig_hold;
    told_free(send(r, "1", 10, false));
    int added = 0;
    while (add(r->held, "a", LONG, 'a', added > 0, false) == BAY_OK) {
        added++;
        if (added == 5) {
            assert_survives(r);
        }
    }
    assert_int_equal(added, 9);
    assert_survives(r);
    assert_int_equal(add(r->held, "a", LONG, 'a', true, false), BAY_ERR_LIMIT);
    assert_int_equal(add(r->held, "a", 10, 'a', false, false), BAY_OK);
    assert_int_equal(add(r->held, "a", LONG, 'a', true, false), BAY_OK);
    rig_free(r);
}

/* ---- memory */

static void live(rig *r)
{
    r->turn = rig_hold;
    told *sent = send(r, "1", LONG, false);
    for (int i = 0; r->held != NULL && i < 3; i++) {
        err_ignore(add(r->held, "a", LONG, (char)('a' + i), i > 0, false));
        err_ignore(say(r->held, A2A_WORKING, i == 1 ? LONG : 2000, 's'));
        err_ignore(a2a_turn_remember(r->held, (bay_str){r->rows[0].row, 0}));
    }
    if (r->held != NULL) {
        err_ignore(add(r->held, "a", LONG, 'n', false, false));
        r->now_ms += 2000;
        a2a_agent_tick(r->agent);
    }
    told_free(sent);
}

static void run(void)
{
    rig *r = rig_plain();
    r->options.persistence = &r->persistence;
    if (a2a_agent_new(&r->options, &r->agent) != BAY_OK) {
        r->agent = NULL;
        rig_free(r);
        return;
    }
    live(r);
    rig_close(r);
    a2a_turn_unref(r->held);
    r->held = NULL;
    if (a2a_agent_new(&r->options, &r->agent) != BAY_OK) {
        r->agent = NULL;
    }
    for (size_t i = 0; r->agent != NULL && i < r->row_count; i++) {
        bay_err err = rig_restore(r, &r->rows[i], true);
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM); /* never damaged */
    }
    rig_free(r);
}

static void survives_the_lack_of_memory(void **state)
{
    (void)state;
    (void)rig_card();
    for (size_t at = 0; failing_memory_start(at); at++) {
        run();
        failing_memory_check();
    }
    for (size_t at = 0; failing_memory_start_single(at); at++) {
        run();
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_rows_without_their_blocks),
        cmocka_unit_test(refuses_blocks_that_are_not_what_they_were),
        cmocka_unit_test(refuses_rows_that_say_it_wrongly),
        cmocka_unit_test(refuses_one_block_for_two_things),
        cmocka_unit_test(survives_any_damage),
        cmocka_unit_test(refuses_the_wrong_version),
        cmocka_unit_test(keeps_small_tasks_in_their_row),
        cmocka_unit_test(keeps_what_completes_at_once_in_its_row),
        cmocka_unit_test(reads_rows_that_are_whole),
        cmocka_unit_test(writes_what_is_new),
        cmocka_unit_test(writes_many_small_artifacts_once),
        cmocka_unit_test(replaces_artifacts),
        cmocka_unit_test(replaces_artifacts_under_way),
        cmocka_unit_test(cuts_anew_what_was_not_kept),
        cmocka_unit_test(writes_messages_once),
        cmocka_unit_test(drops_old_messages),
        cmocka_unit_test(keeps_what_is_remembered_and_asked_apart),
        cmocka_unit_test(drops_blocks_that_no_row_knows),
        cmocka_unit_test(without_resuming_requests_go),
        cmocka_unit_test(keeps_to_its_bounds),
        cmocka_unit_test(survives_the_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

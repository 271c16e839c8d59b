/* An agent's tasks on a store: in memory and in a file, over a restart, with a store that is full;
 * long ones, and what is damaged of them. */
#include "a2a/agent.h" /* before cmocka's macro `fail` */

#include "support/literal_json.h"
#include "support/people.h"
#include "support/skipped.h"
#include "support/store_rig.h"

#include "sdk/agent_store.h"

typedef struct heard {
    a2a_call call;
    arena memory;
    json_doc doc;
    char *text;
    char *result;
    a2a_fault fault;
    int ended;
    int events;
    uint64_t sequences[64];
    size_t lengths[64];
} heard;

typedef struct bench {
    store_rig *rig;
    agent_store *kept;
    a2a_agent *agent;
    a2a_handler handler;
    a2a_turn *held;
    const seal_ring *ring;     /* hides owners in rows */
    const auth_principal *who; /* makes the calls */
    bool holds;
    int turns;
    int loads;
    agent_store_loaded loaded;
} bench;

/* ---- calls */

static void on_result(a2a_call *call, bay_str json)
{
    heard *self = (heard *)call;
    self->ended++;
    self->result = calloc(1, json.len + 1);
    assert_non_null(self->result);
    memcpy(self->result, json.at, json.len);
}

static bay_err on_event(a2a_call *call, a2a_event *event)
{
    heard *self = (heard *)call;
    self->lengths[self->events] = a2a_event_json(event).len;
    self->sequences[self->events++] = a2a_event_sequence(event);
    return BAY_OK;
}

static void on_end(a2a_call *call)
{
    ((heard *)call)->ended++;
}

static void on_fail(a2a_call *call, const a2a_fault *fault)
{
    ((heard *)call)->ended++;
    ((heard *)call)->fault = *fault;
}

static bay_str on_field(a2a_call *call, bay_str name)
{
    (void)call;
    (void)name;
    return (bay_str){NULL, 0};
}

static const a2a_call_ops call_ops = {on_result, on_event, on_end, on_fail, on_field};

static heard *ask_agent(bench *b, a2a_method method, const char *params, uint64_t last_event_id)
{
    heard *self = calloc(1, sizeof(*self));
    assert_non_null(self);
    self->text = strdup(params);
    arena_init(&self->memory, 1 << 20);
    assert_int_equal(json_parse(&self->doc, str_of(self->text), NULL, &self->memory, NULL), BAY_OK);
    self->call = (a2a_call){.ops = &call_ops,
                            .method = method,
                            .version = A2A_1_0,
                            .params = json_root(&self->doc),
                            .principal = b->who,
                            .memory = &self->memory,
                            .last_event_id = last_event_id};
    a2a_service *service = a2a_agent_service(b->agent);
    service->call(service, &self->call);
    return self;
}

static void forget(heard *self)
{
    arena_fini(&self->memory);
    free(self->text);
    free(self->result);
    free(self);
}

/* ---- the agent */

static void turn(void *user, a2a_turn *turn)
{
    bench *b = user;
    b->turns++;
    if (b->holds) {
        a2a_turn_unref(b->held);
        b->held = a2a_turn_ref(turn);
        return;
    }
    assert_int_equal(a2a_turn_status(turn, A2A_COMPLETED, JSON_NONE, JSON_NONE), BAY_OK);
    a2a_turn_end(turn);
}

static uint64_t now(void *user)
{
    return ((bench *)user)->rig->now_ms;
}

static void wake(void *user, uint64_t at_ms)
{
    (void)user;
    (void)at_ms;
}

static void loaded(void *user, const agent_store_loaded *told)
{
    bench *b = user;
    b->loads++;
    b->loaded = *told;
}

static void begin(bench *b, bool may_resume)
{
    static const char card[] = "{\"capabilities\":{\"streaming\":true}}";
    assert_int_equal(agent_store_new(b->rig->store, STR("tasks"), &b->kept), BAY_OK);
    b->handler = (a2a_handler){.turn = turn};
    a2a_agent_options options = {.handler = &b->handler,
                                 .user = b,
                                 .persistence = agent_store_persistence(b->kept),
                                 .ring = b->ring,
                                 .card = literal_json(card),
                                 .extended_card = {"", 0},
                                 .now = now,
                                 .wake = wake};
    int before = b->loads;
    assert_int_equal(a2a_agent_new(&options, &b->agent), BAY_OK);
    assert_int_equal(agent_store_load(b->kept, b->agent, may_resume, loaded, b), BAY_OK);
    assert_int_equal(agent_store_load(b->kept, b->agent, may_resume, loaded, b), BAY_ERR_STATE);
    rig_turn_until(b->rig, b->loads == before + 1);
    a2a_agent_tick(b->agent);
}

static void end(bench *b)
{
    a2a_agent_free(b->agent);
    a2a_turn_unref(b->held);
    b->held = NULL;
    rig_turn_until(b->rig, agent_store_is_idle(b->kept));
    agent_store_free(b->kept);
}

static void restart(bench *b, bool may_resume)
{
    end(b);
    if (b->rig->is_sqlite) {
        rig_reopen(b->rig);
    }
    begin(b, may_resume);
}

#define SEND(id)                                                                                   \
    "{\"message\":{\"messageId\":\"" id "\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"hi\"}]}" \
    "}"

/* ---- cases */

static void refuses_bad_names(void **state)
{
    store_rig *rig = *state;
    agent_store *none = NULL;
    assert_int_equal(agent_store_new(rig->store, STR(""), &none), BAY_ERR_INVALID);
    assert_int_equal(agent_store_new(rig->store, STR("a name that is far too long"), &none),
                     BAY_ERR_INVALID);
    assert_null(none);
    agent_store_free(NULL);
}

static void keeps_and_gives_back(void **state)
{
    bench b = {.rig = *state};
    begin(&b, true);
    assert_int_equal(b.loaded.tasks, 0);
    heard *sent[5];
    for (int i = 0; i < 5; i++) {
        sent[i] = ask_agent(&b, A2A_SEND_MESSAGE, SEND("m"), 0);
        assert_int_equal(sent[i]->ended, 0); /* not before it is kept */
    }
    rig_turn_until(b.rig, sent[4]->ended == 1);
    heard *before = ask_agent(&b, A2A_LIST_TASKS, "{}", 0);
    rig_turn_until(b.rig, before->ended == 1);
    restart(&b, true);
    assert_int_equal(b.loaded.err, BAY_OK);
    assert_int_equal(b.loaded.tasks, 5);
    assert_int_equal(b.loaded.refused, 0);
    heard *after = ask_agent(&b, A2A_LIST_TASKS, "{}", 0);
    assert_string_equal(before->result, after->result);
    assert_int_equal(b.turns, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(sent[i]->ended, 1);
        forget(sent[i]);
    }
    forget(before);
    forget(after);
    end(&b);
}

static void replays_after_a_restart(void **state)
{
    bench b = {.rig = *state, .holds = true};
    char params[200];
    begin(&b, true);
    heard *stream = ask_agent(&b, A2A_SEND_STREAMING_MESSAGE, SEND("m"), 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(a2a_turn_status(b.held, A2A_WORKING, JSON_NONE, JSON_NONE), BAY_OK);
    }
    rig_turn_until(b.rig, stream->events == 11);
    bay_str id = a2a_turn_task_id(b.held);
    snprintf(params, sizeof(params), "{\"id\":\"%.*s\"}", (int)id.len, id.at);
    restart(&b, true);
    assert_int_equal(b.turns, 2);
    assert_true(a2a_turn_is_resumed(b.held));
    heard *back = ask_agent(&b, A2A_SUBSCRIBE_TO_TASK, params, 4);
    assert_int_equal(back->events, 7);
    assert_int_equal(a2a_turn_status(b.held, A2A_COMPLETED, JSON_NONE, JSON_NONE), BAY_OK);
    rig_turn_until(b.rig, back->ended == 1);
    for (int i = 0; i < back->events; i++) {
        assert_int_equal(back->sequences[i], 5 + i);
    }
    forget(stream);
    forget(back);
    end(&b);
}

/* A process died after it wrote an event and before the task's row: the event was told to nobody,
 * and its number is another's later. */
static void drops_events_without_a_row(void **state)
{
    bench b = {.rig = *state, .holds = true};
    char params[200];
    char stream_name[80];
    answer a = {0};
    begin(&b, true);
    heard *stream = ask_agent(&b, A2A_SEND_STREAMING_MESSAGE, SEND("m"), 0);
    assert_int_equal(a2a_turn_status(b.held, A2A_WORKING, JSON_NONE, JSON_NONE), BAY_OK);
    rig_turn_until(b.rig, stream->events == 2);
    bay_str id = a2a_turn_task_id(b.held);
    snprintf(params, sizeof(params), "{\"id\":\"%.*s\"}", (int)id.len, id.at);
    snprintf(stream_name, sizeof(stream_name), "tasks/%.*s", (int)id.len, id.at);
    static const char lost[] = "\0\0\0\0\0\0\0\3"
                               "0"
                               "\0\0\0\0\0\0\0\2{}"
                               "damaged";
    store_append_request request = {.stream = str_of(stream_name),
                                    .value = {lost, sizeof(lost) - 1},
                                    .keep_events = 100,
                                    .keep_bytes = 10000};
    assert_int_equal(ask(b.rig, &a, append, &request), BAY_OK);
    answer_clear(&a);
    restart(&b, true);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(a2a_turn_status(b.held, A2A_WORKING, JSON_NONE, JSON_NONE), BAY_OK);
    }
    rig_turn_until(b.rig, agent_store_is_idle(b.kept));
    restart(&b, true);
    heard *back = ask_agent(&b, A2A_SUBSCRIBE_TO_TASK, params, 1);
    assert_int_equal(back->events, 4);
    for (int i = 0; i < back->events; i++) {
        assert_int_equal(back->sequences[i], 2 + i);
        assert_true(back->lengths[i] > 2); /* not the lost one */
    }
    end(&b);
    forget(stream);
    forget(back);
}

static void leaves_damaged_rows_alone(void **state)
{
    bench b = {.rig = *state};
    answer a = {0};
    store_put_request request = {
        .table = {"tasks", 5}, .key = {"bad", 3}, .value = {"0{", 2}, .expected = STORE_ANY};
    assert_int_equal(ask(b.rig, &a, put, &request), BAY_OK);
    request.key = STR("empty");
    request.value = STR("");
    assert_int_equal(ask(b.rig, &a, put, &request), BAY_OK);
    answer_clear(&a);
    begin(&b, true);
    heard *sent = ask_agent(&b, A2A_SEND_MESSAGE, SEND("m"), 0);
    rig_turn_until(b.rig, sent->ended == 1);
    restart(&b, true);
    assert_int_equal(b.loaded.tasks, 1);
    assert_int_equal(b.loaded.refused, 2);
    forget(sent);
    end(&b);
}

static void says_that_it_is_full(void **state)
{
    bench b = {.rig = *state};
    reopen_with(b.rig, (store_options){.rows = 3});
    begin(&b, true);
    heard *sent[5];
    int failed = 0;
    for (int i = 0; i < 5; i++) {
        sent[i] = ask_agent(&b, A2A_SEND_MESSAGE, SEND("m"), 0);
        rig_turn_until(b.rig, sent[i]->ended == 1);
        failed += sent[i]->fault.error == A2A_E_BUSY;
    }
    assert_int_equal(failed, 2);
    heard *listed = ask_agent(&b, A2A_LIST_TASKS, "{}", 0);
    assert_non_null(strstr(listed->result, "\"totalSize\":3"));
    for (int i = 0; i < 5; i++) {
        forget(sent[i]);
    }
    forget(listed);
    end(&b);
}

static void removes_what_ends(void **state)
{
    bench b = {.rig = *state};
    begin(&b, true);
    heard *sent = ask_agent(&b, A2A_SEND_MESSAGE, SEND("m"), 0);
    rig_turn_until(b.rig, sent->ended == 1);
    b.rig->now_ms += UINT64_C(8) * 24 * 3600 * 1000;
    a2a_agent_tick(b.agent);
    restart(&b, true);
    assert_int_equal(b.loaded.tasks, 0);
    forget(sent);
    end(&b);
}

/* More than one page of rows, and the store closed under a put. */
static void reads_many(void **state)
{
    enum { MANY = 2 * AGENT_STORE_PAGE + 7 };
    bench b = {.rig = *state};
    heard *sent[MANY];
    begin(&b, true);
    for (int i = 0; i < MANY; i++) {
        sent[i] = ask_agent(&b, A2A_SEND_MESSAGE, SEND("m"), 0);
    }
    rig_turn_until(b.rig, sent[MANY - 1]->ended == 1);
    restart(&b, true);
    assert_int_equal(b.loaded.tasks, MANY);
    for (int i = 0; i < MANY; i++) {
        forget(sent[i]);
    }
    heard *last = ask_agent(&b, A2A_SEND_MESSAGE, SEND("last"), 0);
    a2a_agent_free(b.agent);
    assert_int_equal(last->fault.error, A2A_E_UNAVAILABLE);
    rig_close(b.rig);
    assert_true(agent_store_is_idle(b.kept));
    agent_store_free(b.kept);
    forget(last);
}

/* ---- long tasks: rows with blocks */

enum { CHUNK = 1000, MOST_PARTS = 256 };

#define SEND_LONG                                                                                  \
    "{\"message\":{\"messageId\":\"long\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"hi\"}]},"  \
    "\"configuration\":{\"returnImmediately\":true}}"

static void add_chunk(bench *b, char with, bool append)
{
    char text[CHUNK + 100];
    char words[CHUNK + 1];
    arena memory;
    json_doc doc;
    memset(words, with, CHUNK);
    words[CHUNK] = '\0';
    snprintf(text, sizeof(text), "{\"artifactId\":\"a\",\"parts\":[{\"text\":\"%s\"}]}", words);
    arena_init(&memory, SIZE_MAX);
    assert_int_equal(json_parse(&doc, str_of(text), NULL, &memory, NULL), BAY_OK);
    assert_int_equal(a2a_turn_artifact(b->held, json_root(&doc), append, false), BAY_OK);
    arena_fini(&memory);
    rig_turn_until(b->rig, agent_store_is_idle(b->kept));
}

/* A task at work, with that many chunks, each put by itself. Its id. */
static void make_long(bench *b, int chunks, char id[64])
{
    b->holds = true;
    heard *sent = ask_agent(b, A2A_SEND_MESSAGE, SEND_LONG, 0);
    rig_turn_until(b->rig, sent->ended == 1);
    bay_str name = a2a_turn_task_id(b->held);
    snprintf(id, 64, "%.*s", (int)name.len, name.at);
    for (int i = 0; i < chunks; i++) {
        add_chunk(b, (char)('a' + i % 26), i > 0);
    }
    forget(sent);
}

static heard *get_task(bench *b, const char *id)
{
    char params[100];
    snprintf(params, sizeof(params), "{\"id\":\"%s\"}", id);
    heard *got = ask_agent(b, A2A_GET_TASK, params, 0);
    rig_turn_until(b->rig, got->ended == 1);
    return got;
}

/* What the store has of it: the row, then its parts. */
typedef struct stored {
    int calls;
    char *row;
    size_t row_len;
    store_part parts[MOST_PARTS];
    size_t count;
} stored;

static bay_str copied(bay_str from)
{
    char *copy = malloc(from.len + 1);
    assert_non_null(copy);
    if (from.len > 0) {
        memcpy(copy, from.at, from.len);
    }
    return (bay_str){copy, from.len};
}

static void on_stored_row(void *user, const store_result *result)
{
    stored *self = user;
    bay_str row = copied(result->rows[0].value);
    self->row = (char *)row.at;
    self->row_len = row.len;
    self->calls++;
}

static void on_stored_parts(void *user, const store_result *result)
{
    stored *self = user;
    assert_false(result->has_more);
    for (size_t i = 0; i < result->count; i++) {
        assert_true(self->count < MOST_PARTS);
        self->parts[self->count++] =
            (store_part){copied(result->rows[i].key), copied(result->rows[i].value)};
    }
    self->calls++;
}

static void look(bench *b, const char *id, stored *out)
{
    *out = (stored){.calls = 0};
    bay_str table = STR("tasks");
    assert_int_equal(store_get(b->rig->store, table, str_of(id), on_stored_row, out), BAY_OK);
    assert_int_equal(store_parts(b->rig->store, table, str_of(id), (bay_str){"", 0}, MOST_PARTS,
                                 on_stored_parts, out),
                     BAY_OK);
    rig_turn_until(b->rig, out->calls == 2);
}

static void stored_free(stored *self)
{
    for (size_t i = 0; i < self->count; i++) {
        free((char *)self->parts[i].name.at);
        free((char *)self->parts[i].value.at);
    }
    free(self->row);
}

/* The row as it was, with one of its parts changed (`dropped`: gone). */
static void change(bench *b, const char *id, const stored *from, const store_part *part,
                   const bay_str *dropped)
{
    answer a = {0};
    store_put_request request = {.table = STR("tasks"),
                                 .key = str_of(id),
                                 .value = {from->row, from->row_len},
                                 .expected = STORE_ANY,
                                 .parts = part,
                                 .part_count = part != NULL,
                                 .dropped = dropped,
                                 .dropped_count = dropped != NULL};
    assert_int_equal(ask(b->rig, &a, put, &request), BAY_OK);
    answer_clear(&a);
}

static void assert_refused(bench *b)
{
    restart(b, true);
    assert_int_equal(b->loaded.err, BAY_OK);
    assert_int_equal(b->loaded.tasks, 1);
    assert_int_equal(b->loaded.refused, 1);
}

/* One of two tasks has a block that is gone, damaged, or of the other: it is not given to anybody,
 * and not lost. */
static void refuses_damaged_blocks(void **state)
{
    bench b = {.rig = *state};
    char id[64];
    char other_id[64];
    stored self;
    stored other;
    begin(&b, true);
    make_long(&b, 12, id);
    heard *before = get_task(&b, id);
    make_long(&b, 12, other_id);
    look(&b, id, &self);
    look(&b, other_id, &other);
    assert_in_range(self.count, 3, 6);
    assert_int_equal(self.count, other.count);
    for (size_t i = 0; i < self.count; i++) {
        const store_part *part = &self.parts[i];
        assert_true(str_eq(part->name, other.parts[i].name));
        change(&b, id, &self, NULL, &part->name);
        assert_refused(&b);
        change(&b, id, &self, &other.parts[i], NULL);
        assert_refused(&b);
        bay_str bytes = copied(part->value);
        ((char *)bytes.at)[bytes.len / 2] ^= 1; /* still JSON */
        change(&b, id, &self, &(store_part){part->name, bytes}, NULL);
        assert_refused(&b);
        ((char *)bytes.at)[bytes.len / 2] ^= 1;
        change(&b, id, &self, &(store_part){part->name, {bytes.at, 7}}, NULL);
        assert_refused(&b);
        change(&b, id, &self, &(store_part){part->name, {bytes.at, 0}}, NULL);
        assert_refused(&b);
        free((char *)bytes.at);
        change(&b, id, &self, part, NULL);
    }
    /* An older row with a newer one's blocks; the flag that there are some. */
    self.row[0] = '0';
    change(&b, id, &self, NULL, NULL);
    assert_refused(&b);
    self.row[0] = 'x';
    change(&b, id, &self, NULL, NULL);
    assert_refused(&b);
    self.row[0] = '2';
    change(&b, id, &self, NULL, NULL);
    restart(&b, true);
    assert_int_equal(b.loaded.refused, 0);
    heard *after = get_task(&b, id);
    assert_string_equal(before->result, after->result);
    forget(before);
    forget(after);
    stored_free(&self);
    stored_free(&other);
    end(&b);
}

/* Names that are none of ours are nobody's. */
static void passes_over_strange_parts(void **state)
{
    bench b = {.rig = *state};
    char id[64];
    stored self;
    begin(&b, true);
    make_long(&b, 12, id);
    heard *before = get_task(&b, id);
    look(&b, id, &self);
    static const char far[] = "\xff\0\0\0\0\0\0\1\0\0\0\0";
    const store_part strange[] = {{STR_INIT("x"), STR_INIT("what is this?")},
                                  {{far, sizeof(far) - 1}, STR_INIT("and what is this?")},
                                  {{far, sizeof(far) - 1}, STR_INIT("")}};
    for (size_t i = 0; i < ARRAY_LEN(strange); i++) {
        change(&b, id, &self, &strange[i], NULL);
        restart(&b, true);
        assert_int_equal(b.loaded.refused, 0);
        heard *after = get_task(&b, id);
        assert_string_equal(before->result, after->result);
        forget(after);
    }
    forget(before);
    stored_free(&self);
    end(&b);
}

/* Each byte of an artifact is written a few times, however long it becomes; what comes back is the
 * same, and goes on. */
static void writes_long_artifacts_once(void **state)
{
    enum { CHUNKS = 300, EACH = 3500 };
    bench b = {.rig = *state};
    char id[64];
    begin(&b, true);
    uint64_t before = store_written(b.rig->store);
    make_long(&b, CHUNKS, id);
    uint64_t written = store_written(b.rig->store) - before;
    assert_in_range(written, CHUNKS * CHUNK, CHUNKS * EACH);
    for (int round = 0; round < 2; round++) {
        heard *told = get_task(&b, id);
        restart(&b, true);
        assert_int_equal(b.loaded.tasks, 1);
        heard *again = get_task(&b, id);
        assert_string_equal(told->result, again->result);
        assert_true(a2a_turn_is_resumed(b.held));
        before = store_written(b.rig->store);
        for (int i = 0; i < 10; i++) {
            add_chunk(&b, '0', true);
        }
        assert_in_range(store_written(b.rig->store) - before, 10 * CHUNK, 10 * EACH);
        forget(told);
        forget(again);
    }
    end(&b);
}

static void removes_blocks_with_their_task(void **state)
{
    bench b = {.rig = *state};
    char id[64];
    answer a = {0};
    begin(&b, true);
    make_long(&b, 30, id);
    add_chunk(&b, 'n', false); /* all over again: what it had goes at once */
    assert_int_equal(ask(b.rig, &a, get, STR("tasks"), str_of(id)), BAY_OK);
    assert_int_equal(a.held_rows, 1);
    for (int i = 0; i < 30; i++) {
        add_chunk(&b, 'm', true);
    }
    assert_int_equal(ask(b.rig, &a, get, STR("tasks"), str_of(id)), BAY_OK);
    assert_in_range(a.held_rows, 8, 20);
    assert_int_equal(a2a_turn_status(b.held, A2A_COMPLETED, JSON_NONE, JSON_NONE), BAY_OK);
    a2a_turn_end(b.held);
    b.rig->now_ms += UINT64_C(8) * 24 * 3600 * 1000;
    a2a_agent_tick(b.agent);
    assert_int_equal(ask(b.rig, &a, get, STR("tasks"), str_of(id)), BAY_ERR_NOT_FOUND);
    assert_int_equal(a.held_rows, 0);
    answer_clear(&a);
    end(&b);
}

/* A store that becomes full in the middle: what was told is there, to the last byte. */
static void keeps_what_fits(void **state)
{
    bench b = {.rig = *state};
    char id[64];
    reopen_with(b.rig, (store_options){.rows = 6});
    begin(&b, true);
    make_long(&b, 10, id);
    heard *before = get_task(&b, id);
    assert_int_equal(before->fault.error, 0);
    for (int i = 0; i < 20; i++) {
        add_chunk(&b, 'x', true);
    }
    char params[100];
    snprintf(params, sizeof(params), "{\"id\":\"%s\"}", id);
    heard *refused = ask_agent(&b, A2A_GET_TASK, params, 0);
    b.rig->now_ms += 1000;
    a2a_agent_tick(b.agent); /* tries again */
    rig_turn_until(b.rig, refused->ended == 1);
    assert_null(refused->result); /* what it is now is not kept */
    restart(&b, true);
    assert_int_equal(b.loaded.tasks, 1);
    heard *after = get_task(&b, id);
    assert_non_null(after->result);
    assert_true(strlen(after->result) >= strlen(before->result));
    size_t same = (size_t)(strstr(before->result, "jjjj") - before->result);
    assert_memory_equal(after->result, before->result, same);
    forget(before);
    forget(refused);
    forget(after);
    end(&b);
}

#ifndef BAY_NO_TLS

static seal_ring *ring_of(const char *key, const char *older)
{
    seal_ring *ring = NULL;
    assert_int_equal(seal_ring_new(&ring), BAY_OK);
    if (older != NULL) {
        assert_int_equal(seal_ring_add(ring, str_of(older)), BAY_OK);
    }
    assert_int_equal(seal_ring_add(ring, str_of(key)), BAY_OK);
    return ring;
}

static bool finds(bench *b, const char *who, const char *id)
{
    b->who = person(who);
    heard *got = get_task(b, id);
    bool is_found = got->result != NULL;
    forget(got);
    return is_found;
}

/* A task under way, of a caller whose name the store must not show. */
static void rows_do_not_name_their_owners(void **state)
{
    static const char one[] = "0123456789abcdef0123456789abcdef";
    static const char two[] = "the second key, of 32 bytes too.";
    bench b = {.rig = *state, .holds = true, .who = person("mallory")};
    char id[64];
    stored row;
    seal_ring *rings[] = {ring_of(one, NULL), ring_of(two, one), ring_of(two, NULL)};
    b.ring = rings[0];
    begin(&b, true);
    heard *sent = ask_agent(&b, A2A_SEND_MESSAGE, SEND("m"), 0);
    rig_turn_until(b.rig, b.held != NULL);
    bay_str given = a2a_turn_task_id(b.held);
    (void)snprintf(id, sizeof(id), "%.*s", BAY_STR(given));
    assert_int_equal(a2a_turn_status(b.held, A2A_WORKING, JSON_NONE, JSON_NONE), BAY_OK);
    rig_turn_until(b.rig, agent_store_is_idle(b.kept));
    look(&b, id, &row);
    assert_non_null(memmem(row.row, row.row_len, id, strlen(id)));
    assert_null(memmem(row.row, row.row_len, "mallory", 7));
    stored_free(&row);
    end(&b);
    forget(sent);

    /* a newer key: the older one still opens it, and the handler goes on for whom it began */
    b.ring = rings[1];
    if (b.rig->is_sqlite) {
        rig_reopen(b.rig);
    }
    begin(&b, true);
    assert_int_equal(b.loaded.refused, 0);
    assert_non_null(b.held);
    assert_true(principal_is_same(a2a_turn_principal(b.held), person("mallory")));
    assert_true(finds(&b, "mallory", id));
    assert_false(finds(&b, "bob", id));
    assert_false(finds(&b, "", id));
    assert_int_equal(a2a_turn_status(b.held, A2A_COMPLETED, JSON_NONE, JSON_NONE), BAY_OK);
    a2a_turn_end(b.held);
    end(&b);

    /* what changed since is sealed by the newer key alone */
    b.ring = rings[2];
    if (b.rig->is_sqlite) {
        rig_reopen(b.rig);
    }
    begin(&b, true);
    assert_true(finds(&b, "mallory", id));
    end(&b);

    /* its key is gone: nobody has it */
    b.ring = rings[0];
    if (b.rig->is_sqlite) {
        rig_reopen(b.rig);
    }
    begin(&b, true);
    assert_false(finds(&b, "mallory", id));
    assert_false(finds(&b, "", id));
    end(&b);
    for (size_t i = 0; i < ARRAY_LEN(rings); i++) {
        seal_ring_free(rings[i]);
    }
}

#else
SKIPPED(rows_do_not_name_their_owners, "this build has no TLS, so nothing is sealed")
#endif

#ifdef BAY_NO_SQLITE
SKIPPED(all_of_it_on_sqlite, "this build has no SQLite")
#define BOTH(test) cmocka_unit_test_setup_teardown(test, rig_setup_memory, rig_teardown)
#else
#define BOTH(test)                                                                                 \
    cmocka_unit_test_setup_teardown(test, rig_setup_memory, rig_teardown),                         \
        cmocka_unit_test_setup_teardown(test, rig_setup_sqlite, rig_teardown)
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(refuses_bad_names),
        BOTH(keeps_and_gives_back),
        BOTH(replays_after_a_restart),
        BOTH(drops_events_without_a_row),
        BOTH(leaves_damaged_rows_alone),
        BOTH(says_that_it_is_full),
        BOTH(removes_what_ends),
        BOTH(reads_many),
        BOTH(refuses_damaged_blocks),
        BOTH(passes_over_strange_parts),
        BOTH(writes_long_artifacts_once),
        BOTH(removes_blocks_with_their_task),
        BOTH(keeps_what_fits),
        BOTH(rows_do_not_name_their_owners),
#ifdef BAY_NO_SQLITE
        cmocka_unit_test(all_of_it_on_sqlite),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

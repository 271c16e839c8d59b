/* What spares memory and time where a task is alone: a context that is part of its task, the
 * message in the task's own memory, ids told as they stand there. Whatever is asked, the answers
 * are those of tasks for which all of that was made apart. */
#include "agent_rig.h"

#include "a2a/agent_internal.h"
#include "base/str.h"
#include "support/failing_memory.h"

enum { UUID = 36, NAMES = 64, SAID = 256 << 10 };

/* Answers, with every id as the number in which it first came. */
typedef struct transcript {
    char text[SAID];
    size_t len;
    char names[NAMES][UUID + 1];
    size_t name_count;
} transcript;

static bool is_uuid(const char *at)
{
    for (size_t i = 0; i < UUID; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        bool is_digit = (at[i] >= '0' && at[i] <= '9') || (at[i] >= 'a' && at[i] <= 'f');
        if (is_dash ? at[i] != '-' : !is_digit) {
            return false;
        }
    }
    return true;
}

static void tell(transcript *self, const char *text)
{
    for (const char *at = text; *at != '\0';) {
        CHECK(self->len + 8 < sizeof(self->text));
        if (!is_uuid(at)) {
            self->text[self->len++] = *at++;
            continue;
        }
        size_t i = 0;
        while (i < self->name_count && strncmp(self->names[i], at, UUID) != 0) {
            i++;
        }
        CHECK(i < NAMES);
        if (i == self->name_count) {
            memcpy(self->names[self->name_count++], at, UUID);
        }
        self->len += (size_t)snprintf(self->text + self->len, 8, "<%zu>", i);
        at += UUID;
    }
    self->text[self->len++] = '\n';
}

/* `principal` NULL: nobody in particular. `name` stands in the params as %s. */
static void ask(rig *r, transcript *out, const char *principal, a2a_method method,
                const char *params, const char *name)
{
    char text[1024];
    snprintf(text, sizeof(text), params, name);
    told *call = rig_call(r, method, text);
    call->call.principal = person(principal);
    rig_start(call);
    assert_int_equal(call->ended, 1);
    tell(out, call->result != NULL ? call->result : call->fault.text);
    told_free(call);
    r->now_ms += 7;
}

#define IN_CONTEXT "{\"contextId\":\"%s\",\"historyLength\":3}"
#define SENT(id) RIG_MESSAGE(id, ",\"contextId\":\"%s\"")

/* The first answer's ids are the task's, its context's and its message's. */
static const char *context_of(const transcript *self, size_t task)
{
    return self->names[task + 1];
}

static void visit(rig *r, transcript *out)
{
    ask(r, out, NULL, A2A_SEND_MESSAGE, RIG_MESSAGE("1", "%s"), "");
    const char *context = context_of(out, 0);
    const char *task = out->names[0];
    ask(r, out, NULL, A2A_GET_TASK, "{\"id\":\"%s\"}", task);
    ask(r, out, NULL, A2A_GET_TASK, "{\"id\":\"%s\"}", context);
    ask(r, out, NULL, A2A_LIST_TASKS, IN_CONTEXT, context);
    ask(r, out, NULL, A2A_LIST_TASKS, IN_CONTEXT, task);
    ask(r, out, "eve", A2A_LIST_TASKS, IN_CONTEXT, context);
    ask(r, out, "eve", A2A_SEND_MESSAGE, SENT("2"), context);
    ask(r, out, "eve", A2A_LIST_TASKS, IN_CONTEXT, context);
    ask(r, out, NULL, A2A_LIST_TASKS, IN_CONTEXT, context);
    ask(r, out, NULL, A2A_SEND_MESSAGE, SENT("3"), context);
    ask(r, out, NULL, A2A_LIST_TASKS, IN_CONTEXT, context);
    ask(r, out, NULL, A2A_SEND_MESSAGE, SENT("a \\\" chosen one"), "a \\\" chosen one");
    ask(r, out, NULL, A2A_LIST_TASKS, IN_CONTEXT, "a \\\" chosen one");
    ask(r, out, NULL, A2A_SUBSCRIBE_TO_TASK, "{\"id\":\"%s\"}", task);
    ask(r, out, NULL, A2A_CANCEL_TASK, "{\"id\":\"%s\"}", task);
    ask(r, out, NULL, A2A_SEND_MESSAGE, RIG_MESSAGE("4", "%s"), "");
    ask(r, out, NULL, A2A_LIST_TASKS, "{\"pageSize\":9%s}", "");
}

static rig *rig_with(bool has_ids, bool is_keeping, uint32_t tasks)
{
    rig *r = rig_plain();
    r->options.id = has_ids ? r->options.id : NULL;
    r->options.persistence = is_keeping ? &r->persistence : NULL;
    r->options.limits.tasks = tasks;
    rig_open(r);
    return r;
}

static void answers_alike(void **state)
{
    (void)state;
    for (int is_keeping = 0; is_keeping < 2; is_keeping++) {
        transcript *said = calloc(2, sizeof(*said));
        for (int i = 0; i < 2; i++) {
            rig *r = rig_with(i == 0, is_keeping != 0, 0);
            visit(r, &said[i]);
            /* of four contexts one has but the task that gave it its name */
            assert_int_equal(r->agent->contexts.len, i == 0 ? 4 : 3);
            if (is_keeping != 0) {
                rig_restart(r, false);
                ask(r, &said[i], NULL, A2A_LIST_TASKS, IN_CONTEXT, context_of(&said[i], 0));
                ask(r, &said[i], "eve", A2A_LIST_TASKS, IN_CONTEXT, context_of(&said[i], 0));
                ask(r, &said[i], NULL, A2A_SEND_MESSAGE, SENT("5"), context_of(&said[i], 0));
                ask(r, &said[i], NULL, A2A_LIST_TASKS, IN_CONTEXT, context_of(&said[i], 0));
                ask(r, &said[i], NULL, A2A_LIST_TASKS, "{\"pageSize\":9%s}", "");
            }
            rig_free(r);
        }
        assert_string_equal(said[0].text, said[1].text);
        free(said);
    }
}

/* The task that gave a context its name goes; those that joined it stay. */
static void leaves_its_context_to_others(void **state)
{
    (void)state;
    transcript *said = calloc(2, sizeof(*said));
    for (int i = 0; i < 2; i++) {
        rig *r = rig_with(i == 0, false, 3);
        ask(r, &said[i], NULL, A2A_SEND_MESSAGE, RIG_MESSAGE("1", "%s"), "");
        const char *context = context_of(&said[i], 0);
        ask(r, &said[i], NULL, A2A_SEND_MESSAGE, SENT("2"), context);
        for (int more = 0; more < 3; more++) {
            ask(r, &said[i], NULL, A2A_SEND_MESSAGE, RIG_MESSAGE("3", "%s"), "");
            ask(r, &said[i], NULL, A2A_LIST_TASKS, IN_CONTEXT, context);
            ask(r, &said[i], NULL, A2A_LIST_TASKS, "{\"pageSize\":9%s}", "");
        }
        ask(r, &said[i], NULL, A2A_SEND_MESSAGE, SENT("4"), context);
        ask(r, &said[i], NULL, A2A_LIST_TASKS, IN_CONTEXT, context);
        rig_free(r);
    }
    assert_string_equal(said[0].text, said[1].text);
    free(said);
}

/* Larger than the room beside a task, exactly as large, and with ids of its own. */
static void receives_messages_of_any_size(void **state)
{
    (void)state;
    static char params[8192];
    static char words[6000];
    rig *r = rig_with(false, false, 0);
    for (size_t len = 0; len<sizeof(words) - 1; len += len> 3600 && len < 4200 ? 1 : 97) {
        memset(words, 'x', len);
        words[len] = '\0';
        snprintf(
            params, sizeof(params),
            "{\"message\":{\"messageId\":\"%zu\",\"role\":\"ROLE_USER\",%s\"parts\":[{\"text\":"
            "\"%s\"}]}}",
            len, len % 2 == 0 ? "\"contextId\":\"c\\n\"," : "", words);
        told *call = rig_send(r, params);
        assert_int_equal(call->ended, 1);
        char expected[64];
        snprintf(expected, sizeof(expected), "\"messageId\":\"%zu\",\"role\":\"ROLE_USER\"", len);
        assert_holds(call->result, expected);
        snprintf(params, sizeof(params), "\"parts\":[{\"text\":\"%s\"}]}", words);
        assert_holds(call->result, params);
        json_doc doc;
        arena memory;
        json_val result = rig_json(call->result, &doc, &memory);
        json_val history = json_get(json_get(result, STR("task")), STR("history"));
        assert_int_equal(json_count(history), 2);
        assert_int_equal(json_check_duplicates(result, NULL), BAY_OK);
        arena_fini(&memory);
        told_free(call);
    }
    rig_free(r);
}

static void names_contexts_there_and_back(void **state)
{
    (void)state;
    char name[UUID];
    char back[UUID];
    assert_true(agent_context_name(STR("01234567-89ab-4cde-8f01-0123456789ab"), name));
    assert_memory_equal(name, "01234567-89ab-4cde-8f01-fedcba987654", UUID);
    assert_true(agent_context_name((bay_str){name, UUID}, back));
    assert_memory_equal(back, "01234567-89ab-4cde-8f01-0123456789ab", UUID);
    assert_false(agent_context_name(STR(""), name));
    assert_false(agent_context_name(STR("01234567-89ab-4cde-8f01-0123456789aB"), name));
    assert_false(agent_context_name(STR("01234567-89ab-4cde-8f01-0123456789a"), name));
    assert_false(agent_context_name(STR("01234567-89ab-4cde-8f01-0123456789ab0"), name));
    assert_false(agent_context_name(STR("01234567-89ab-4cde-8f01 0123456789ab"), name));
    assert_false(agent_context_name(STR("01234567-89ab-4cde+8f01-0123456789ab"), name));
    assert_false(agent_context_name(STR("0123\"567-89ab-4cde-8f01-0123456789ab"), name));
    assert_false(agent_context_name(STR("01234567-89ab--cde-8f01-0123456789ab"), name));
}

/* As long as a UUID is and with dashes where it has them: what it is told as must be JSON. */
static void takes_no_word_for_a_uuid(void **state)
{
    (void)state;
    rig *r = rig_with(false, false, 0);
    told *call =
        rig_call(r, A2A_SEND_MESSAGE,
                 "{\"message\":{\"messageId\":\"1\",\"taskId\":\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"-"
                 "89ab-4cde-8f01-0123456789ab\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":"
                 "\"hi\"}]},\"metadata\":{\"patchbay/clientTaskId\":true}}");
    call->call.version = A2A_0_1;
    rig_start(call);
    assert_int_equal(call->ended, 1);
    json_doc doc;
    arena memory;
    json_val task = json_get(rig_json(call->result, &doc, &memory), STR("task"));
    assert_true(json_str_eq(json_get(task, STR("id")),
                            STR("\"\"\"\"\"\"\"\"-89ab-4cde-8f01-0123456789ab")));
    bay_str context;
    assert_true(json_str_plain(json_get(task, STR("contextId")), &context));
    assert_int_equal(context.len, UUID);
    arena_fini(&memory);
    told_free(call);
    rig_free(r);
}

/* A task begins its context, another joins it, and both go. */
static void join_and_leave(rig *r)
{
    told *first = rig_send(r, RIG_MESSAGE("1", ""));
    const char *said =
        first != NULL && first->result != NULL ? strstr(first->result, "\"contextId\":\"") : NULL;
    char params[512];
    snprintf(params, sizeof(params), RIG_MESSAGE("2", ",\"contextId\":\"%.36s\""),
             said != NULL ? said + strlen("\"contextId\":\"") : "");
    told *second = rig_send(r, params);
    told *third = rig_send(r, RIG_MESSAGE("3", ""));
    told *fourth = rig_send(r, RIG_MESSAGE("4", ""));
    told *all[] = {first, second, third, fourth};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        assert_true(all[i] == NULL || all[i]->ended == 1);
        told_free(all[i]);
    }
}

static void survives_every_lack_of_memory(void **state)
{
    (void)state;
    (void)rig_card();
    for (size_t at = 0; failing_memory_start(at); at++) {
        rig *r = rig_plain();
        r->options.id = NULL;
        r->options.limits.tasks = 2;
        if (a2a_agent_new(&r->options, &r->agent) == BAY_OK) {
            join_and_leave(r);
        }
        rig_free(r);
        failing_memory_check();
    }
}

/* The name of a principal is as long as its token says: then even looking for a context needs
 * memory, and without that it must not be taken for one that is not there. */
static void survives_long_names_without_memory(void **state)
{
    enum { NAME = PRINCIPAL_TEXT_BYTES };
    static char name[NAME];
    static const char *const said[] = {RIG_MESSAGE("1", ",\"contextId\":\"c\""),
                                       RIG_MESSAGE("2", ",\"contextId\":\"c\"")};
    (void)state;
    (void)rig_card();
    memset(name, 'p', NAME);
    const auth_principal *principal = person_of((bay_str){name, NAME});
    for (size_t at = 0; failing_memory_start_single(at); at++) {
        rig *r = rig_plain();
        bool is_there = a2a_agent_new(&r->options, &r->agent) == BAY_OK;
        for (size_t i = 0; is_there && i < ARRAY_LEN(said); i++) {
            told *call = rig_call(r, A2A_SEND_MESSAGE, said[i]);
            if (call != NULL) {
                call->call.principal = principal;
                rig_start(call);
                assert_int_equal(call->ended, 1);
                told_free(call);
            }
        }
        rig_free(r);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_contexts_there_and_back),
        cmocka_unit_test(answers_alike),
        cmocka_unit_test(leaves_its_context_to_others),
        cmocka_unit_test(receives_messages_of_any_size),
        cmocka_unit_test(takes_no_word_for_a_uuid),
        cmocka_unit_test(survives_every_lack_of_memory),
        cmocka_unit_test(survives_long_names_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

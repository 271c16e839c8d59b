/* What a task's handler says, asks and answers, and what its clients do to it. The loop's thread
 * throughout. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "sdk/task_parts.h"

/* ---- where the call's words go */

static void forget_outcome(task *self)
{
    mem_free(self->outcome_value);
    self->outcome_value = NULL;
    buf_clear(&self->outcome);
}

static bay_err keep_value(task *self, json_val value)
{
    bay_err err = json_clone(value, &self->outcome_value);
    if (err == BAY_OK) {
        self->record.outcome = self->outcome_value->text;
    }
    return err;
}

void sdk_task_set_error(task *self, int code, bay_str text, json_val data)
{
    json_builder made;
    json_val error;
    json_writer *to = json_builder_init(&made, NULL, TASK_MAX_ROW);
    json_open_object(to);
    json_key_lit(to, "code");
    json_put_int(to, code);
    json_key_lit(to, "message");
    json_put_str(to, text);
    if (data.doc != NULL) {
        json_key_lit(to, "data");
        json_put_val(to, data);
    }
    json_close_object(to);
    forget_outcome(self);
    self->record.status = TASK_FAILED;
    bay_err err = json_builder_view(&made, &error);
    if (err != BAY_OK || keep_value(self, error) != BAY_OK) {
        self->record.outcome = STR("{\"code\":-32603,\"message\":\"Out of memory\"}");
    }
    json_builder_drop(&made);
}

/* The result is written around the members, which a plain answer would take alone. */
static bay_err keep_members(task *self, const call_note *note)
{
    buf *out = &self->outcome;
    buf_lit(out, "{\"resultType\":\"complete\"");
    buf_str(out, note->text.len > 0 ? STR(",") : STR(""));
    size_t members_at = out->len;
    buf_str(out, note->text);
    buf_str(out, note->meta.len > 0 ? STR(",\"_meta\":{") : STR(""));
    size_t meta_at = out->len;
    buf_str(out, note->meta);
    buf_str(out, note->meta.len > 0 ? STR("}}") : STR("}"));
    if (out->err == BAY_OK) {
        self->record.outcome = buf_view(out);
        self->outcome_members = (bay_str){out->at + members_at, note->text.len};
        self->outcome_meta = (bay_str){out->at + meta_at, note->meta.len};
    }
    return out->err;
}

static void set_outcome(task *self, const call_note *note)
{
    bay_err err = BAY_ERR_LIMIT;
    if (note->kind != NOTE_RESULT && note->kind != NOTE_OBJECT) {
        sdk_task_set_error(self, note->code, note->text, note->value);
        return;
    }
    forget_outcome(self);
    self->record.status = TASK_COMPLETED;
    if (note->kind == NOTE_RESULT) {
        err = keep_members(self, note);
    } else if (json_raw(note->value).len <= TASK_MAX_ROW) {
        err = keep_value(self, note->value);
    }
    if (err != BAY_OK) {
        sdk_task_set_error(self, RPC_INTERNAL_ERROR, STR("The result is larger than a task may be"),
                           JSON_NONE);
    }
}

static bool is_settled(const task *self)
{
    return sdk_task_is_over(self->record.status) || self->is_left;
}

static void sink_answer(bay_call *call, const call_note *note)
{
    task *self = call->task;
    mcp_request *request = call->request;
    bool is_last_word = !is_settled(self);
    if (is_last_word) {
        set_outcome(self, note);
    }
    self->call = NULL;
    call->task = NULL;
    if (request == &self->request) {
        /* ours */
    } else if (request == self->waiting) {
        request->user = NULL;
    } else {
        mcp_request_result_members(request, STR("")); /* it was answered long ago */
    }
    if (is_last_word || self->is_dirty) {
        sdk_task_save(self);
    }
    sdk_task_settle(self);
}

static void sink_part(bay_call *call, const call_note *note)
{
    task *self = call->task;
    if (!is_settled(self)) {
        set_outcome(self, note);
        sdk_task_save(self);
    }
    LIST_EACH(link, &call->questions)
    {
        question *one = CONTAINER_OF(link, question, link);
        if (one->state == QUESTION_ASKED) {
            sdk_call_question_answered(one, BAY_ERR_CANCELLED, JSON_NONE);
        }
    }
}

static bay_err sink_message(bay_call *call, const call_note *note)
{
    task *self = call->task;
    if (note->kind == NOTE_TASK_STATUS && !sdk_task_is_over(self->record.status)) {
        size_t len =
            note->text.len < sizeof(self->message) ? note->text.len : sizeof(self->message);
        while (len < note->text.len && len > 0 &&
               ((unsigned char)note->text.at[len] & 0xc0) == 0x80) {
            len--; /* not in the middle of a character */
        }
        memcpy(self->message, len > 0 ? note->text.at : "", len);
        self->record.message = (bay_str){self->message, len};
        sdk_task_save(self);
    }
    return BAY_OK;
}

static json_val answer_of(task *self, bay_str key)
{
    return self->answers != NULL ? json_builder_get(self->answers, key) : JSON_NONE;
}

/* What was answered in an earlier run stands, if it still fits. */
static void sink_ask(bay_call *call, question *one)
{
    task *self = call->task;
    json_val given = answer_of(self, one->key);
    if (!json_is(given, JSON_MISSING) && sdk_call_question_check(one, given) == BAY_OK) {
        sdk_call_question_answered(one, BAY_OK, given);
        return;
    }
    one->state = QUESTION_ASKED;
    if (!is_settled(self)) {
        self->record.status = TASK_INPUT_REQUIRED;
        sdk_task_save(self);
    }
}

static void sink_pause(bay_call *call)
{
    (void)call; /* a task's questions are never OPEN */
}

const call_sink sdk_task_sink = {
    .answer = sink_answer,
    .part = sink_part,
    .message = sink_message,
    .ask = sink_ask,
    .pause = sink_pause,
};

/* ---- what clients do to it */

static json_writer *open_answers(task *self)
{
    if (self->answers == NULL) {
        self->answers = mem_alloc(sizeof(*self->answers));
        if (self->answers == NULL) {
            self->has_outgrown = true;
            return NULL;
        }
        json_open_object(json_builder_init(self->answers, NULL, TASK_MAX_ROW));
    }
    return &self->answers->writer;
}

static void keep_answer(task *self, bay_str key, json_val response)
{
    json_writer *out = open_answers(self);
    if (out != NULL) {
        json_key(out, key);
        json_put_val(out, response);
        self->has_outgrown = self->has_outgrown || out->out->err != BAY_OK;
    }
}

void sdk_task_keep_answers(task *self, json_val answers)
{
    json_writer *out = json_count(answers) > 0 ? open_answers(self) : NULL;
    if (out != NULL) {
        json_put_members(out, answers, NULL, 0);
        self->has_outgrown = self->has_outgrown || out->out->err != BAY_OK;
    }
}

static question *find_question(const task *self, bay_str key)
{
    if (self->call != NULL) {
        LIST_EACH(link, &self->call->questions)
        {
            question *one = CONTAINER_OF(link, question, link);
            if (str_eq(one->key, key)) {
                return one;
            }
        }
    }
    return NULL;
}

static question *answerable(const task *self, json_val responses, json_val *out)
{
    if (self->call == NULL) {
        return NULL;
    }
    LIST_EACH(link, &self->call->questions)
    {
        question *one = CONTAINER_OF(link, question, link);
        if (one->state != QUESTION_ASKED) {
            continue;
        }
        *out = json_get(responses, one->key);
        if (!json_is(*out, JSON_MISSING) && sdk_call_question_check(one, *out) == BAY_OK) {
            return one;
        }
    }
    return NULL;
}

/* Answers to what another process asked before it died, and the handler of this one has not asked
 * yet. */
static bool keep_early(task *self, json_val responses)
{
    arena memory;
    bool is_any = false;
    arena_init(&memory, SIZE_MAX);
    if (!is_settled(self)) {
        json_iter each = json_iter_of(self->asked_before);
        bay_str key;
        while (json_next(&each)) {
            if (json_str(each.key, &memory, &key) != BAY_OK) {
                continue;
            }
            json_val response = json_get(responses, key);
            if (!json_is(response, JSON_MISSING) && find_question(self, key) == NULL &&
                json_is(answer_of(self, key), JSON_MISSING)) {
                keep_answer(self, key, response);
                is_any = true;
            }
        }
    }
    arena_fini(&memory);
    return is_any;
}

void sdk_task_answer(task *self, json_val responses)
{
    json_val response;
    question *one;
    self->looking++; /* it stays, whatever the handler does */
    bool is_any = keep_early(self, responses);
    while ((one = answerable(self, responses, &response)) != NULL) {
        keep_answer(self, one->key, response);
        is_any = true;
        if (!sdk_task_is_over(self->record.status)) {
            self->record.status = TASK_WORKING; /* unless others are still open, see below */
        }
        sdk_call_question_answered(one, BAY_OK, response);
    }
    if (is_any && self->call != NULL && self->record.status == TASK_WORKING &&
        sdk_call_questions_has(self->call, QUESTION_ASKED)) {
        self->record.status = TASK_INPUT_REQUIRED;
    }
    if (is_any) {
        sdk_task_save(self);
    }
    self->looking--;
    sdk_task_settle(self);
}

void sdk_task_cancel(task *self)
{
    if (sdk_task_is_over(self->record.status)) {
        return;
    }
    self->looking++;
    self->record.status = TASK_CANCELLED;
    sdk_task_save(self);
    if (self->call != NULL) {
        sdk_call_give_up(self->call, &(call_note){.kind = NOTE_ERROR});
    }
    self->looking--;
    sdk_task_settle(self);
}

void sdk_task_inbox_read(task *self, json_val inbox)
{
    self->looking++;
    sdk_task_answer(self, json_get(inbox, STR("answers")));
    if (json_true(json_get(inbox, STR("cancel")))) {
        sdk_task_cancel(self);
    }
    self->looking--;
    sdk_task_settle(self);
}

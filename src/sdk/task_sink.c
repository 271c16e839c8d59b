/* What a task's handler says, asks and answers, and what its clients do to it. The loop's thread
 * throughout. */
#include <string.h>

#include "base/str.h"
#include "sdk/task_parts.h"
#include "json/writer.h"

/* ---- where the call's words go */

static void set_outcome(task *self, const call_note *note)
{
    buf *out = &self->outcome;
    buf_clear(out);
    self->record.status = TASK_COMPLETED;
    if (note->kind == NOTE_RESULT) {
        buf_lit(out, "{\"resultType\":\"complete\"");
        buf_str(out, note->text.len > 0 ? STR(",") : STR(""));
        buf_str(out, note->text);
        buf_char(out, '}');
    } else if (note->kind == NOTE_OBJECT) {
        buf_str(out, note->text);
    } else {
        self->record.status = TASK_FAILED;
        buf_printf(out, "{\"code\":%lld,\"message\":", (long long)note->code);
        json_quote(out, note->text);
        if (note->data.len > 0) {
            buf_lit(out, ",\"data\":");
            buf_str(out, note->data);
        }
        buf_char(out, '}');
    }
    self->record.outcome = buf_view(out);
    if (out->err != BAY_OK) {
        self->record.status = TASK_FAILED;
        self->record.outcome =
            STR("{\"code\":-32603,\"message\":\"The result is larger than a task may be\"}");
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

/* Members, as they stand in a buffer or a row; `memory` holds what is read. */
static json_val read_members(bay_str members, arena *memory, json_doc *doc)
{
    buf text;
    bay_str kept;
    buf_init(&text, TASK_MAX_ROW + 2);
    buf_char(&text, '{');
    buf_str(&text, members);
    buf_char(&text, '}');
    bool is_good = text.err == BAY_OK && arena_dup(memory, buf_view(&text), &kept) == BAY_OK &&
                   json_parse(doc, kept, NULL, memory, NULL) == BAY_OK;
    buf_fini(&text);
    return is_good ? json_root(doc) : JSON_NONE;
}

/* What was answered in an earlier run stands, if it still fits. */
static void sink_ask(bay_call *call, question *one)
{
    task *self = call->task;
    arena memory;
    json_doc doc;
    arena_init(&memory, SIZE_MAX);
    json_val given = JSON_NONE;
    if (self->answers.len > 0) {
        given =
            json_get(read_members(str_from(buf_view(&self->answers), 1), &memory, &doc), one->key);
    }
    if (!json_is(given, JSON_MISSING) && sdk_call_question_check(one, given) == BAY_OK) {
        sdk_call_question_answered(one, BAY_OK, given);
    } else {
        one->state = QUESTION_ASKED;
        if (!is_settled(self)) {
            self->record.status = TASK_INPUT_REQUIRED;
            sdk_task_save(self);
        }
    }
    arena_fini(&memory);
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

static void keep_answer(task *self, bay_str key, json_val response)
{
    buf_char(&self->answers, ',');
    json_quote(&self->answers, key);
    buf_char(&self->answers, ':');
    buf_str(&self->answers, json_raw(response));
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
    json_doc asked;
    json_doc given;
    bool is_any = false;
    arena_init(&memory, SIZE_MAX);
    if (self->asked_before.len > 0 && !is_settled(self)) {
        json_val earlier = read_members(str_from(buf_view(&self->answers), 1), &memory, &given);
        json_iter each = json_iter_of(read_members(self->asked_before, &memory, &asked));
        bay_str key;
        while (json_next(&each)) {
            if (json_str(each.key, &memory, &key) != BAY_OK) {
                continue;
            }
            json_val response = json_get(responses, key);
            if (!json_is(response, JSON_MISSING) && find_question(self, key) == NULL &&
                json_is(json_get(earlier, key), JSON_MISSING)) {
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

void sdk_task_inbox_read(task *self, bay_str inbox)
{
    arena memory;
    json_doc doc;
    self->looking++;
    arena_init(&memory, SIZE_MAX);
    json_val root = inbox.len > 0 ? read_members(inbox, &memory, &doc) : JSON_NONE;
    sdk_task_answer(self, json_get(root, STR("answers")));
    if (json_true(json_get(root, STR("cancel")))) {
        sdk_task_cancel(self);
    }
    arena_fini(&memory);
    self->looking--;
    sdk_task_settle(self);
}

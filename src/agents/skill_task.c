/* Calls of skills that outlive their request: an agent's task as a task of MCP (extension
 * io.modelcontextprotocol/tasks), for clients that can take one for an answer.
 *
 *   tools/call ─► SendMessage, returnImmediately ─► the task, or the result where it is done
 * already tasks/get ─► GetTask        tasks/update ─► SendMessage to the task        tasks/cancel
 * ─► CancelTask
 *
 * The id that clients see is "MS.ID": when it began, and the agent's own. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agents/skills_parts.h"
#include "base/err.h"

enum { POLL_MS = 1000, TTL_MS = 86400000 };

bool skill_task_is_wanted(const mcp_request *request)
{
    json_val extensions = json_get(request->client_capabilities, STR("extensions"));
    return json_is(json_get(extensions, STR(MCP_EXTENSION_TASKS)), JSON_OBJECT);
}

static void put_pair(json_writer *to, bay_str key, bay_str value)
{
    json_key(to, key);
    json_put_str(to, value);
}

void skill_task_write_question(bay_str words, json_writer *to)
{
    json_open_object(to);
    json_key_lit(to, "answer");
    json_open_object(to);
    put_pair(to, STR("method"), STR("elicitation/create"));
    json_key_lit(to, "params");
    json_open_object(to);
    put_pair(to, STR("mode"), STR("form"));
    put_pair(to, STR("message"), words.len > 0 ? words : STR("The agent needs more input."));
    json_key_lit(to, "requestedSchema");
    json_open_object(to);
    put_pair(to, STR("type"), STR("object"));
    json_key_lit(to, "properties");
    json_open_object(to);
    json_key_lit(to, "answer");
    json_open_object(to);
    put_pair(to, STR("type"), STR("string"));
    put_pair(to, STR("title"), STR("Answer"));
    json_close_object(to);
    json_close_object(to);
    json_key_lit(to, "required");
    json_open_array(to);
    json_put_str(to, STR("answer"));
    json_close_array(to);
    json_close_object(to);
    json_close_object(to);
    json_close_object(to);
    json_close_object(to);
}

static void put_time(json_writer *to, bay_str name, uint64_t ms)
{
    char text[40];
    struct tm parts;
    time_t seconds = (time_t)(ms / 1000);
    gmtime_r(&seconds, &parts);
    size_t len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(text + len, sizeof(text) - len, ".%03uZ", (unsigned)(ms % 1000));
    put_pair(to, name, str_of(text));
}

/* What every answer says of the task. */
static void write_head(const skill_call *self, const char *status, json_writer *to)
{
    buf words;
    size_t id_len = strlen(self->task);
    json_key_lit(to, "taskId");
    size_t opened = json_open_word(to);
    buf_uint(to->out, self->created_ms);
    buf_char(to->out, '.');
    buf_str(to->out,
            (bay_str){self->task + 1, id_len > 2 ? id_len - 2 : 0}); /* without its quotes */
    json_close_word(to, opened);
    put_pair(to, STR("status"), str_of(status));
    buf_init(&words, 64 << 10);
    skill_call_write_words(self, &words);
    if (words.len > 0 && words.err == BAY_OK) {
        put_pair(to, STR("statusMessage"), buf_view(&words));
    }
    buf_fini(&words);
    put_time(to, STR("createdAt"), self->created_ms);
    if (self->updated[0] != '\0') {
        json_key_lit(to, "lastUpdatedAt");
        json_put_raw(to, str_of(self->updated));
    } else {
        put_time(to, STR("lastUpdatedAt"), self->created_ms);
    }
    json_key_lit(to, "ttlMs");
    json_put_int(to, TTL_MS);
    json_key_lit(to, "pollIntervalMs");
    json_put_int(to, POLL_MS);
}

static const char *status_of(const skill_call *self)
{
    switch (self->state) {
    case A2A_INPUT_REQUIRED:
        return "input_required";
    case A2A_CANCELED:
        return "cancelled";
    case A2A_COMPLETED:
    case A2A_FAILED: /* the tool's result says that it failed */
    case A2A_REJECTED:
    case A2A_AUTH_REQUIRED:
        return "completed";
    default:
        return "working";
    }
}

void skill_task_announce(skill_call *self)
{
    json_builder whole;
    json_writer *to = json_builder_init(&whole, NULL, 1 << 20);
    self->created_ms = loop_time_ms();
    json_open_object(to);
    put_pair(to, STR("resultType"), STR("task"));
    write_head(self, "working", to);
    json_close_object(to);
    skill_call_reply(self, BAY_OK, &whole);
}

void skill_task_show(skill_call *self, bool is_error)
{
    json_builder whole;
    const char *status = status_of(self);
    bay_err err = BAY_OK;
    json_writer *to = json_builder_init(&whole, NULL, 3 * SKILL_CONTENT_BYTES);
    json_open_object(to);
    write_head(self, status, to);
    if (strcmp(status, "input_required") == 0) {
        buf words;
        buf_init(&words, 4 << 20);
        skill_call_write_words(self, &words);
        json_key_lit(to, "inputRequests");
        skill_task_write_question(buf_view(&words), to);
        buf_fini(&words);
    } else if (strcmp(status, "completed") == 0) {
        json_key_lit(to, "result");
        json_open_object(to);
        err = skill_call_write(self, is_error, to);
        json_close_object(to);
    }
    json_close_object(to);
    skill_call_reply(self, err, &whole);
}

void skill_task_acknowledge(skill_call *self)
{
    mcp_request_result_members(skill_call_part(self), STR(""));
    skill_call_free(self);
}

void skill_task_failed(skill_call *self, const a2a_fault *fault)
{
    if (self->mode == SKILL_CANCEL && fault->error == A2A_E_TASK_NOT_CANCELABLE) {
        skill_task_acknowledge(self); /* it is over already */
        return;
    }
    mcp_request *request = skill_call_part(self);
    if (fault->error == A2A_E_TASK_NOT_FOUND) {
        mcp_request_error(request, RPC_INVALID_PARAMS, STR("Unknown task"), STR(""));
    } else {
        mcp_request_error(request, RPC_INTERNAL_ERROR, str_of(fault->text), STR(""));
    }
    skill_call_free(self);
}

/* "MS.ID" apart; the id as a raw JSON string. */
static bool read_id(skill_call *self, bay_str name)
{
    size_t dot = str_find(name, '.');
    buf quoted = {.at = self->task, .cap = sizeof(self->task) - 1, .max = sizeof(self->task) - 1};
    if (dot == name.len || dot + 1 == name.len ||
        !str_uint(str_head(name, dot), &self->created_ms)) {
        return false;
    }
    json_quote(&quoted, str_from(name, dot + 1));
    self->task[quoted.err == BAY_OK ? quoted.len : 0] = '\0';
    return quoted.err == BAY_OK;
}

static bay_err build_answer(skill_call *self, json_val text)
{
    json_val params;
    bay_err err = skill_call_write_id(self->task, &self->memory, &params);
    return err == BAY_OK
               ? skill_call_build(self, text, JSON_NONE, json_get(params, STR("id")), JSON_NONE)
               : err;
}

void skill_task_request(agents_skills *skills, mcp_request *request)
{
    mcp_method_id method = request->method->id;
    skill_call *self = skill_call_new(skills, request,
                                      method == MCP_TASKS_GET      ? SKILL_GET
                                      : method == MCP_TASKS_CANCEL ? SKILL_CANCEL
                                                                   : SKILL_UPDATE);
    if (self == NULL) {
        return;
    }
    json_val text = JSON_NONE;
    if (self->mode == SKILL_UPDATE) {
        json_val responses = json_get(request->message.params, STR("inputResponses"));
        json_val answer = json_get(responses, STR("answer"));
        text = json_get(json_get(answer, STR("content")), STR("answer"));
        if (!json_str_eq(json_get(answer, STR("action")), STR("accept")) ||
            !json_is(text, JSON_STRING)) {
            self->mode = SKILL_CANCEL; /* declined: nobody will answer */
        }
    }
    bay_err err = read_id(self, request->name) ? BAY_OK : BAY_ERR_NOT_FOUND;
    if (err == BAY_OK) {
        err = self->mode == SKILL_UPDATE
                  ? build_answer(self, text)
                  : skill_call_write_id(self->task, &self->memory, &self->params);
    }
    if (err == BAY_OK) {
        skill_call_send(self);
        return;
    }
    mcp_request_error(
        skill_call_part(self), err == BAY_ERR_NOT_FOUND ? RPC_INVALID_PARAMS : RPC_INTERNAL_ERROR,
        err == BAY_ERR_NOT_FOUND ? STR("Unknown task") : STR("out of memory"), STR(""));
    skill_call_free(self);
}

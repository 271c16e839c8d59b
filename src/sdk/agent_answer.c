/* What a handler says of its task: states, answers, what it wants to remember. Each is a move
 * (agent_move.c); texts come in three forms. */
#include "base/str.h"
#include "sdk/agent_task.h"
#include "sdk/format.h"

static a2a_state state_of(bay_task_state state)
{
    return state > BAY_TASK_STATE_UNKNOWN && state <= BAY_TASK_STATE_AUTH_REQUIRED
               ? (a2a_state)state
               : A2A_STATE_UNSPECIFIED;
}

/* Nothing is said without a text. */
static bay_err move_text(bay_task *task, move_kind kind, a2a_state state, bool ends, bay_str text)
{
    move_request request = {.kind = kind, .state = state, .ends = ends, .text = text};
    return sdk_turn_move(task, &request);
}

static bay_err move_message(bay_task *task, move_kind kind, a2a_state state, bool ends,
                            const bay_message *message)
{
    if (message == NULL) {
        return BAY_ERR_NOMEM;
    }
    json_builder made;
    move_request request = {.kind = kind, .state = state, .ends = ends};
    json_writer *to = json_builder_init(&made, NULL, TASK_MOVE_BYTES);
    json_open_object(to);
    bay_err err = sdk_message_write(message, to);
    if (err == BAY_OK) {
        json_close_object(to);
        err = json_builder_view(&made, &request.value);
        err = err == BAY_OK ? sdk_turn_move(task, &request) : err;
    } else if (err != BAY_ERR_NOMEM && err != BAY_ERR_LIMIT) {
        err = BAY_ERR_INVALID;
    }
    json_builder_drop(&made);
    return err;
}

/* Does a task in that state wait for nobody but its caller? */
static bool is_end(a2a_state state)
{
    return a2a_state_is_terminal(state) || state == A2A_INPUT_REQUIRED;
}

bay_err bay_task_status_str(bay_task *task, bay_task_state state, bay_str text)
{
    a2a_state to = state_of(state);
    return to == A2A_STATE_UNSPECIFIED ? BAY_ERR_INVALID
                                       : move_text(task, MOVE_STATUS, to, is_end(to), text);
}

bay_err bay_task_status(bay_task *task, bay_task_state state, const char *text)
{
    return bay_task_status_str(task, state, str_of(text));
}

bay_err bay_task_status_message(bay_task *task, bay_task_state state, const bay_message *message)
{
    a2a_state to = state_of(state);
    return to == A2A_STATE_UNSPECIFIED ? BAY_ERR_INVALID
                                       : move_message(task, MOVE_STATUS, to, is_end(to), message);
}

/* Texts that are formatted are never NULL: an empty one is an empty text. */
static bay_str view_of(const buf *text)
{
    return text->len > 0 ? buf_view(text) : STR("");
}

bay_err bay_task_statusf(bay_task *task, bay_task_state state, const char *format, ...)
{
    buf text;
    va_list arguments;
    va_start(arguments, format);
    sdk_format(&text, format, arguments);
    va_end(arguments);
    bay_err err = text.err != BAY_OK ? text.err : bay_task_status_str(task, state, view_of(&text));
    buf_fini(&text);
    return err;
}

/* One that ends the message, in three forms. */
static bay_err end_with(bay_task *task, a2a_state state, bay_str text)
{
    move_kind kind = state == A2A_STATE_UNSPECIFIED ? MOVE_REPLY : MOVE_STATUS;
    return move_text(task, kind, state, true, text);
}

static bay_err vend_with(bay_task *task, a2a_state state, const char *format, va_list arguments)
{
    buf text;
    sdk_format(&text, format, arguments);
    bay_err err = text.err != BAY_OK ? text.err : end_with(task, state, view_of(&text));
    buf_fini(&text);
    return err;
}

bay_err bay_task_complete_str(bay_task *task, bay_str text)
{
    return end_with(task, A2A_COMPLETED, text);
}

bay_err bay_task_complete(bay_task *task, const char *text)
{
    return end_with(task, A2A_COMPLETED, str_of(text));
}

bay_err bay_task_completef(bay_task *task, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bay_err err = vend_with(task, A2A_COMPLETED, format, arguments);
    va_end(arguments);
    return err;
}

bay_err bay_task_fail_str(bay_task *task, bay_str text)
{
    return end_with(task, A2A_FAILED, text);
}

bay_err bay_task_fail(bay_task *task, const char *text)
{
    return end_with(task, A2A_FAILED, str_of(text));
}

bay_err bay_task_failf(bay_task *task, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bay_err err = vend_with(task, A2A_FAILED, format, arguments);
    va_end(arguments);
    return err;
}

bay_err bay_task_reject_str(bay_task *task, bay_str text)
{
    return end_with(task, A2A_REJECTED, text);
}

bay_err bay_task_reject(bay_task *task, const char *text)
{
    return end_with(task, A2A_REJECTED, str_of(text));
}

bay_err bay_task_rejectf(bay_task *task, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bay_err err = vend_with(task, A2A_REJECTED, format, arguments);
    va_end(arguments);
    return err;
}

bay_err bay_task_ask_str(bay_task *task, bay_str text)
{
    return end_with(task, A2A_INPUT_REQUIRED, text);
}

bay_err bay_task_ask(bay_task *task, const char *text)
{
    return end_with(task, A2A_INPUT_REQUIRED, str_of(text));
}

bay_err bay_task_askf(bay_task *task, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bay_err err = vend_with(task, A2A_INPUT_REQUIRED, format, arguments);
    va_end(arguments);
    return err;
}

bay_err bay_task_ask_auth_str(bay_task *task, bay_str text)
{
    return end_with(task, A2A_AUTH_REQUIRED, text);
}

bay_err bay_task_ask_auth(bay_task *task, const char *text)
{
    return end_with(task, A2A_AUTH_REQUIRED, str_of(text));
}

bay_err bay_task_ask_authf(bay_task *task, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bay_err err = vend_with(task, A2A_AUTH_REQUIRED, format, arguments);
    va_end(arguments);
    return err;
}

bay_err bay_task_reply_str(bay_task *task, bay_str text)
{
    return end_with(task, A2A_STATE_UNSPECIFIED, text.at != NULL ? text : STR(""));
}

bay_err bay_task_reply(bay_task *task, const char *text)
{
    return end_with(task, A2A_STATE_UNSPECIFIED, str_of(text != NULL ? text : ""));
}

bay_err bay_task_replyf(bay_task *task, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bay_err err = vend_with(task, A2A_STATE_UNSPECIFIED, format, arguments);
    va_end(arguments);
    return err;
}

bay_err bay_task_reply_message(bay_task *task, const bay_message *message)
{
    return move_message(task, MOVE_REPLY, A2A_STATE_UNSPECIFIED, true, message);
}

bay_err bay_task_end(bay_task *task, bay_task_state state, const bay_message *message)
{
    a2a_state to = state_of(state);
    bool is_end_state = is_end(to) || to == A2A_AUTH_REQUIRED;
    return is_end_state ? move_message(task, MOVE_STATUS, to, true, message) : BAY_ERR_INVALID;
}

/* The skill stands before the handler's own bytes: further messages of the task go to it. */
bay_err bay_task_remember(bay_task *task, const void *bytes, size_t len)
{
    if (task == NULL) {
        return BAY_ERR_NOMEM;
    }
    if (len + task->skill.len + 2 > A2A_TURN_MEMORY_BYTES) {
        return BAY_ERR_LIMIT;
    }
    buf record;
    buf_init(&record, A2A_TURN_MEMORY_BYTES);
    buf_char(&record, (char)(task->skill.len & 0xff));
    buf_char(&record, (char)(task->skill.len >> 8));
    buf_str(&record, task->skill);
    buf_append(&record, bytes, len);
    bay_err err = record.err != BAY_OK ? record.err
                                       : move_text(task, MOVE_REMEMBER, A2A_STATE_UNSPECIFIED,
                                                   false, buf_view(&record));
    buf_fini(&record);
    return err;
}

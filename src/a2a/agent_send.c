/* SendMessage and SendStreamingMessage, and the operations on a task: get, cancel, subscribe. */
#include "a2a/agent_internal.h"
#include "base/err.h"

/* A parsed request to send. Views into the call. */
typedef struct sending {
    a2a_call *call;
    json_val message;
    json_val config; /* of a webhook */
    int64_t history_length;
    bool returns_at_once;
    bool makes_id; /* 0.1: the client chose the task's id */
    bool has_ids;  /* of a task or context, even if they are empty */
    bay_str message_id;
    bay_str task_id;
    bay_str context_id;
    a2a_fault fault;
} sending;

/* ---- reading */

static bay_err read_id(sending *self, json_val value, const char *what, bay_str *out)
{
    *out = (bay_str){"", 0};
    if (!json_str_plain(value, out) && json_is(value, JSON_STRING)) {
        bay_err err = json_str(value, self->call->memory, out);
        if (err != BAY_OK) {
            return err;
        }
    }
    if (out->len > AGENT_ID_BYTES) {
        return a2a_fault_set(&self->fault, A2A_E_INVALID_PARAMS, "%s: longer than %d bytes", what,
                             AGENT_ID_BYTES);
    }
    return BAY_OK;
}

enum { MESSAGE_ID, CONTEXT_ID, TASK_ID, PARTS, MESSAGE_KEYS };
static const bay_str message_keys[MESSAGE_KEYS] = {STR_INIT("messageId"), STR_INIT("contextId"),
                                                   STR_INIT("taskId"), STR_INIT("parts")};

static bay_err read_message(a2a_agent *agent, sending *self)
{
    json_val member[MESSAGE_KEYS];
    bay_err err = json_pick(self->message, message_keys, MESSAGE_KEYS, member, NULL);
    if (err != BAY_OK) {
        return a2a_fault_set(&self->fault, A2A_E_INVALID_PARAMS, "message: not an object");
    }
    self->has_ids =
        !json_is(member[CONTEXT_ID], JSON_MISSING) || !json_is(member[TASK_ID], JSON_MISSING);
    err = agent_card_check_parts(&agent->card, member[PARTS], self->call->memory, &self->fault);
    if (err == BAY_OK) {
        err = read_id(self, member[MESSAGE_ID], "message.messageId", &self->message_id);
    }
    if (err == BAY_OK) {
        err = read_id(self, member[CONTEXT_ID], "message.contextId", &self->context_id);
    }
    return err == BAY_OK ? read_id(self, member[TASK_ID], "message.taskId", &self->task_id) : err;
}

enum { MESSAGE, CONFIGURATION, METADATA, PARAM_KEYS };
static const bay_str param_keys[PARAM_KEYS] = {STR_INIT("message"), STR_INIT("configuration"),
                                               STR_INIT("metadata")};

static bay_err sending_read(a2a_agent *agent, sending *self)
{
    json_val member[PARAM_KEYS];
    bay_err err = json_pick(self->call->params, param_keys, PARAM_KEYS, member, NULL);
    if (err != BAY_OK) {
        return a2a_fault_set(&self->fault, A2A_E_INVALID_PARAMS, "params: not an object");
    }
    self->message = member[MESSAGE];
    self->history_length = -1;
    err = agent_card_check_extensions(&agent->card, self->call->extensions, &self->fault);
    if (err == BAY_OK && json_is(member[CONFIGURATION], JSON_OBJECT)) {
        json_val configuration = member[CONFIGURATION];
        self->returns_at_once = json_true(json_get(configuration, STR("returnImmediately")));
        self->config = json_get(configuration, STR("taskPushNotificationConfig"));
        err = agent_history_length(json_get(configuration, STR("historyLength")),
                                   "configuration.historyLength", &self->history_length,
                                   &self->fault);
    }
    if (err == BAY_OK && json_is(self->config, JSON_OBJECT) && !agent->card.can_push) {
        err = a2a_fault_set(&self->fault, A2A_E_PUSH_NOT_SUPPORTED,
                            "this agent sends no push notifications");
    }
    /* No other version may choose ids. */
    self->makes_id = self->call->version == A2A_0_1 &&
                     json_true(json_get(member[METADATA], STR("patchbay/clientTaskId")));
    return err == BAY_OK ? read_message(agent, self) : err;
}

/* ---- the reply */

static agent_reply *reply_to(sending *self, agent_task *task, a2a_turn *turn)
{
    agent_reply *reply = agent_reply_new(self->call, task);
    if (reply != NULL) {
        reply->turn = turn;
        reply->is_send = true;
        reply->history_length = self->history_length;
        reply->returns_at_once = self->returns_at_once && !reply->is_stream;
    }
    return reply;
}

/* From now on a client may reconnect for its events. */
static void watch(agent_task *task)
{
    if (!task->has_streams) {
        if (task->config_count == 0) {
            task->dropped = task->revision;
        }
        task->has_streams = true;
    }
}

/* ---- a new task */

enum {
    ROOM_BYTES = 4096, /* a larger message is allocated */
    IDS_BYTES = 30,    /* around ids without escapes */
};

static bay_err new_task(a2a_agent *agent, const sending *self, agent_task **out)
{
    char id[37];
    char context[37];
    bay_str task_id = self->task_id;
    bay_str context_id = self->context_id;
    agent_naming naming = AGENT_CONTEXT_GIVEN;
    uint64_t hash;
    if (task_id.len == 0) {
        hash = agent_make_task_id(agent, id);
        task_id = (bay_str){id, 36};
    } else {
        hash = map_hash(&agent->tasks, task_id);
    }
    if (context_id.len == 0) {
        /* ids of the embedding program and of clients may have any form */
        bool is_ours = agent->options.id == NULL && self->task_id.len == 0;
        bool is_own = is_ours && agent_context_name(task_id, context);
        if (!is_own) {
            agent_make_id(agent, context);
        }
        naming = is_own ? AGENT_CONTEXT_OWN : AGENT_CONTEXT_NEW;
        context_id = (bay_str){context, 36};
    }
    if (self->task_id.len > 0 && map_get_hashed(&agent->tasks, task_id, hash) != NULL) {
        return BAY_ERR_DUPLICATE;
    }
    size_t room = agent_received_bytes(self->message, task_id.len + context_id.len + IDS_BYTES);
    return agent_task_new(agent, task_id, hash, principal_identity(self->call->principal),
                          context_id, naming, room <= ROOM_BYTES ? room : 0, out);
}

/* All that can fail, before the handler is called. */
static bay_err furnish(sending *self, agent_task *task, a2a_turn **out_turn)
{
    bay_err err = BAY_OK;
    if (json_is(self->config, JSON_OBJECT)) {
        agent_config *config;
        err = agent_config_add(task, self->call, self->config, &config, &self->fault);
    }
    if (err == BAY_OK) {
        const agent_turn_fields fields = {self->call->principal, self->call->traceparent,
                                          a2a_call_tracestate(self->call), self->call->extensions,
                                          a2a_call_via(self->call)};
        err = agent_turn_new(task->of, task, self->call->params, &fields, out_turn);
    }
    return err == BAY_OK ? agent_task_receive(task, self->message, self->has_ids) : err;
}

static void send_message_fail(sending *self, bay_err err)
{
    if (err != BAY_ERR_PROTOCOL) {
        agent_fault_of(&self->fault, err);
    }
    a2a_call_fail(self->call, &self->fault);
}

/* It was not begun, and will not be. */
static void drop(agent_task *task, a2a_turn *turn)
{
    if (turn != NULL) {
        agent_turn_forget(turn);
    }
    agent_task_remove(task, NULL, true);
}

static void send_new(a2a_agent *agent, sending *self)
{
    agent_task *task = NULL;
    a2a_turn *turn = NULL;
    bay_err err = new_task(agent, self, &task);
    if (err != BAY_OK) {
        if (err == BAY_ERR_DUPLICATE) { /* another caller's: as unknown, and none can be made */
            agent_fail(self->call, A2A_E_TASK_NOT_FOUND, "there is no such task");
        } else {
            send_message_fail(self, err);
        }
        return;
    }
    bool is_stream = self->call->method == A2A_SEND_STREAMING_MESSAGE;
    err = furnish(self, task, &turn);
    if (err == BAY_OK && is_stream) {
        watch(task);
    }
    if (err == BAY_OK && self->makes_id) {
        err = agent_task_open(task);
    }
    if (err != BAY_OK) {
        drop(task, turn);
        send_message_fail(self, err);
        return;
    }
    agent_reply *reply = reply_to(self, task, turn);
    if (reply == NULL) {
        drop(task, turn);
        return;
    }
    turn->is_new = true;
    agent_reply_join(reply);
    err_ignore(agent_turn_begin(turn)); /* a new one cannot fail */
}

/* ---- a message to a task */

static bay_err may_send(a2a_agent *agent, sending *self, const agent_task *task)
{
    if (a2a_state_is_terminal(task->state)) {
        return a2a_fault_set(&self->fault, A2A_E_UNSUPPORTED_OPERATION,
                             "the task has ended; send a message without taskId to begin another");
    }
    if (self->context_id.len > 0 && !str_eq(self->context_id, task->context->id)) {
        return a2a_fault_set(&self->fault, A2A_E_INVALID_PARAMS,
                             "message.contextId: not that of the task");
    }
    if (task->waiting_count >= agent->limits.waiting) {
        return a2a_fault_set(&self->fault, A2A_E_BUSY,
                             "too many messages wait for this task's agent");
    }
    return BAY_OK;
}

static void send_to(a2a_agent *agent, sending *self, agent_task *task)
{
    a2a_turn *turn = NULL;
    bool is_stream = self->call->method == A2A_SEND_STREAMING_MESSAGE;
    bay_err err = may_send(agent, self, task);
    if (err == BAY_OK && is_stream && task->subscriber_count >= agent->limits.subscribers) {
        err = BAY_ERR_BUSY;
    }
    if (err == BAY_OK) {
        err = furnish(self, task, &turn);
    }
    agent_reply *reply = err == BAY_OK ? reply_to(self, task, turn) : NULL;
    if (reply == NULL) {
        if (turn != NULL) {
            agent_turn_forget(turn);
        }
        if (err != BAY_OK) {
            send_message_fail(self, err);
        }
        return;
    }
    task->revision++;
    if (is_stream) {
        watch(task);
    } else if (!agent_task_has_readers(task)) {
        task->dropped = task->revision;
    }
    list_push(&task->waiting, &turn->link);
    task->waiting_count++;
    agent_task_pin(task);
    if (is_stream && agent_stream_snapshot(reply) != BAY_OK) {
        agent_turn_forget(turn);
        agent_reply_fail_err(reply, BAY_ERR_NOMEM);
    } else {
        agent_reply_join(reply);
    }
    agent_task_touch(task); /* flushing begins the turn */
    agent_task_unpin(task);
}

/* ---- a message that came before */

static bool send_again(a2a_agent *agent, sending *self)
{
    agent_dedup_entry *seen =
        agent_dedup_find(agent, principal_identity(self->call->principal), self->message_id,
                         agent_dedup_content(self->message));
    agent_task *task = seen != NULL ? map_get(&agent->tasks, seen->task_id) : NULL;
    if (task == NULL ||
        !str_eq(task->context->owner->name, principal_identity(self->call->principal))) {
        return false;
    }
    bool is_stream = self->call->method == A2A_SEND_STREAMING_MESSAGE;
    if (is_stream && task->subscriber_count >= agent->limits.subscribers) {
        send_message_fail(self, BAY_ERR_BUSY);
        return true;
    }
    agent_reply *reply = reply_to(self, task, task->turn);
    if (reply == NULL) {
        return true;
    }
    if (is_stream) {
        watch(task); /* also before it is open: the turn before may not have wanted events */
        reply->ends_with_first =
            task->state == A2A_INPUT_REQUIRED && list_is_empty(&task->waiting); /* needs a text */
    }
    if (is_stream && task->is_open && agent_stream_snapshot(reply) != BAY_OK) {
        agent_reply_fail_err(reply, BAY_ERR_NOMEM);
        return true;
    }
    agent_dedup_join(reply, seen);
    agent_reply_join(reply);
    return true;
}

void agent_send(a2a_agent *self, a2a_call *call)
{
    sending request = {.call = call};
    bay_err err = sending_read(self, &request);
    if (err != BAY_OK) {
        send_message_fail(&request, err);
        return;
    }
    if (self->seen.len > 0 && send_again(self, &request)) {
        return;
    }
    if (self->running >= self->limits.running) {
        agent_fail(call, A2A_E_BUSY, "the agent works on too many messages; try again later");
        return;
    }
    agent_task *task =
        request.task_id.len > 0
            ? agent_task_find(self, request.task_id, principal_identity(call->principal))
            : NULL;
    if (task != NULL) {
        send_to(self, &request, task);
    } else if (request.task_id.len == 0 || request.makes_id) {
        send_new(self, &request);
    } else {
        agent_fail(call, A2A_E_TASK_NOT_FOUND, "message.taskId: there is no such task");
    }
}

/* ---- what a task is asked */

/* The task that `id` of the params names; NULL: the call has failed. */
static agent_task *task_of(a2a_agent *self, a2a_call *call)
{
    bay_str id = {"", 0};
    json_val value = json_get(call->params, STR("id"));
    if (!json_str_plain(value, &id) && json_is(value, JSON_STRING)) {
        bay_err err = json_str(value, call->memory, &id);
        if (err != BAY_OK) {
            agent_fail_err(call, err);
            return NULL;
        }
    }
    agent_task *task = agent_task_find(self, id, principal_identity(call->principal));
    if (task == NULL) {
        agent_fail(call, A2A_E_TASK_NOT_FOUND, "there is no such task");
    }
    return task;
}

void agent_get(a2a_agent *self, a2a_call *call)
{
    int64_t length;
    a2a_fault fault;
    if (agent_history_length(json_get(call->params, STR("historyLength")), "historyLength", &length,
                             &fault) != BAY_OK) {
        a2a_call_fail(call, &fault);
        return;
    }
    agent_task *task = task_of(self, call);
    agent_reply *reply = task != NULL ? agent_reply_new(call, task) : NULL;
    if (reply != NULL) {
        reply->history_length = length;
        agent_reply_with_task(reply);
    }
}

void agent_cancel(a2a_agent *self, a2a_call *call)
{
    agent_task *task = task_of(self, call);
    if (task == NULL) {
        return;
    }
    if (a2a_state_is_terminal(task->state)) {
        bay_str state = a2a_state_names[task->state];
        agent_fail(call, A2A_E_TASK_NOT_CANCELABLE, "the task has ended: %.*s", (int)state.len,
                   state.at);
        return;
    }
    bay_err err = agent_task_set_state(task, A2A_CANCELED, NULL, (bay_str){NULL, 0});
    if (err != BAY_OK) {
        agent_fail_err(call, err);
        return;
    }
    agent_reply *reply = agent_reply_new(call, task);
    if (reply != NULL) {
        agent_reply_join(reply);
    }
    if (task->turn != NULL) {
        agent_turn_cancel(task->turn);
    }
}

/* Only the missed events, if all of them are still there; otherwise the task first. */
static bay_err resume(agent_reply *reply, uint64_t last_event_id)
{
    agent_task *task = reply->task;
    if (last_event_id != 0 && last_event_id >= task->dropped && last_event_id <= task->revision) {
        reply->sent = last_event_id;
        return BAY_OK;
    }
    return agent_stream_snapshot(reply);
}

void agent_subscribe(a2a_agent *self, a2a_call *call)
{
    agent_task *task = task_of(self, call);
    if (task == NULL) {
        return;
    }
    uint64_t last = call->last_event_id;
    /* a2a 1.0 section 3.1.6; a client that reconnects gets what it missed */
    bool has_missed = last != 0 && last < task->dropped;
    has_missed = has_missed || (last != 0 && agent_event_after(task, last) != NULL);
    if (a2a_state_is_terminal(task->state) && !has_missed) {
        agent_fail(call, A2A_E_UNSUPPORTED_OPERATION, "the task has ended; use GetTask");
        return;
    }
    if (task->subscriber_count >= self->limits.subscribers) {
        agent_fail(call, A2A_E_BUSY, "too many streams of this task");
        return;
    }
    agent_reply *reply = agent_reply_new(call, task);
    if (reply == NULL) {
        return;
    }
    watch(task);
    bay_err err = resume(reply, last);
    if (err != BAY_OK) {
        agent_reply_fail_err(reply, err);
        return;
    }
    agent_reply_join(reply);
}

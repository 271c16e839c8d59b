/* A task as its persister stores it: one JSON object, with all that another process needs to
 * continue.
 *
 *   {"v":1, "revision":…, "order":…, "pushed":…, "principal":"…", "hasStreams":…,
 *    "task":{1.0 Task}, "memory":"base64", "complete":[artifactId…],
 *    "configs":[{"form":…, "config":{…}}…],
 *    "turns":[{"request":{…}, "traceparent":"…", "tracestate":"…", "extensions":"…", "isNew":…,
 *              "isBegun":…}…]}
 *
 * With "v":2 parts of it are in blocks (agent_overflow.c), and the row has their places
 * (agent_row_join.c); joined, it is as with 1. A short task is written as 1. */
#include <stdlib.h>

#include "a2a/agent_internal.h"
#include "base/mem.h"
#include "wire/base64.h"
#include "json/writer.h"

enum { ROW_WHOLE = 1, ROW_IN_BLOCKS = 2 };

/* ---- writing */

static void write_turn(const a2a_turn *turn, buf *out)
{
    buf_lit(out, "{\"request\":");
    if (agent_overflow_is_apart(turn->overflow)) {
        agent_write_place(turn->overflow, 0, 1, out);
    } else {
        buf_str(out, turn->request->text);
    }
    buf_lit(out, ",\"traceparent\":");
    json_quote(out, turn->traceparent);
    if (turn->tracestate.len > 0) {
        buf_lit(out, ",\"tracestate\":");
        json_quote(out, turn->tracestate);
    }
    buf_lit(out, ",\"extensions\":");
    json_quote(out, turn->extensions);
    buf_printf(out, ",\"isNew\":%s,\"isBegun\":%s}", turn->is_new ? "true" : "false",
               turn->is_begun ? "true" : "false");
}

static void write_turns(const agent_task *self, buf *out)
{
    buf_lit(out, ",\"turns\":[");
    if (self->turn != NULL) {
        write_turn(self->turn, out);
    }
    bool is_first = self->turn == NULL;
    LIST_EACH(link, &self->waiting)
    {
        if (!is_first) {
            buf_char(out, ',');
        }
        is_first = false;
        write_turn(CONTAINER_OF(link, a2a_turn, link), out);
    }
    buf_char(out, ']');
}

static void write_configs(const agent_task *self, buf *out)
{
    buf_lit(out, ",\"configs\":[");
    LIST_EACH(link, &self->configs)
    {
        const agent_config *config = CONTAINER_OF(link, agent_config, link);
        if (link != list_first(&self->configs)) {
            buf_char(out, ',');
        }
        buf_printf(out, "{\"form\":%d,\"config\":", (int)config->form);
        buf_str(out, config->config->text);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

static void write_owner(const agent_task *self, buf *out)
{
    buf owner;
    buf_init(&owner, PRINCIPAL_KEY_BYTES);
    bay_err err =
        principal_row_write(self->context->owner->name, self->of->options.ring, self->id, &owner);
    json_quote(out, buf_view(&owner));
    out->err = out->err == BAY_OK ? err : out->err;
    buf_fini(&owner);
}

void agent_write_row(const agent_task *self, buf *out)
{
    buf_printf(out, "{\"v\":%d,\"revision\":%llu,\"order\":%llu,\"pushed\":%llu,\"principal\":",
               agent_overflow_are_apart(self) ? ROW_IN_BLOCKS : ROW_WHOLE,
               (unsigned long long)self->revision, (unsigned long long)self->order,
               (unsigned long long)self->pushed);
    write_owner(self, out);
    if (self->has_streams) {
        buf_lit(out, ",\"hasStreams\":true");
    }
    if (self->memory != NULL) {
        buf_lit(out, ",\"memory\":\"");
        if (agent_overflow_is_apart(self->memory->overflow)) {
            agent_write_place(self->memory->overflow, self->memory->place, 1, out);
        } else {
            base64_encode(out, agent_text_view(self->memory), BASE64_STANDARD);
        }
        buf_char(out, '"');
    }
    buf_lit(out, ",\"task\":");
    agent_write_kept_task(self, out);
    buf_lit(out, ",\"complete\":[");
    bool is_first = true;
    for (uint32_t i = 0; i < self->artifact_count; i++) {
        if (self->artifacts[i].is_complete) {
            if (!is_first) {
                buf_char(out, ',');
            }
            is_first = false;
            json_quote(out, self->artifacts[i].id);
        }
    }
    buf_char(out, ']');
    if (self->config_count > 0) {
        write_configs(self, out);
    }
    if (self->turn != NULL || !list_is_empty(&self->waiting)) {
        write_turns(self, out);
    }
    buf_char(out, '}');
}

/* ---- reading */

typedef struct row {
    const a2a_kept_task *from;
    agent_row_join whole;
    arena memory;
    json_doc doc;
    json_val root;
    json_val task;
    bay_str id;
    bay_str context_id;
    bay_str principal;
    uint64_t revision;
    uint64_t order;
    a2a_state state;
    uint64_t status_ms;
} row;

static bay_err read_str(row *self, json_val object, bay_str key, bay_str *out)
{
    bay_err err = json_str(json_get(object, key), &self->memory, out);
    return err == BAY_ERR_TYPE ? BAY_ERR_SYNTAX : err;
}

static bay_err row_read(row *self)
{
    /* What was streamed in pieces is limited by the task's bytes alone. */
    const json_limits limits = {SIZE_MAX, json_default_limits.max_depth, UINT32_MAX};
    bay_str name;
    uint64_t version = 0;
    bay_err err = agent_row_join_make(self->from, &self->whole);
    if (err != BAY_OK) {
        return err;
    }
    bool is_whole = self->whole.text.len == 0;
    bay_str text = is_whole ? self->from->row : buf_view(&self->whole.text);
    err = json_parse(&self->doc, text, &limits, &self->memory, NULL);
    if (err != BAY_OK) {
        return err == BAY_ERR_NOMEM ? err : BAY_ERR_SYNTAX;
    }
    self->root = json_root(&self->doc);
    self->task = json_get(self->root, STR("task"));
    json_val status = json_get(self->task, STR("status"));
    if (json_uint64(json_get(self->root, STR("v")), &version) != BAY_OK ||
        version != (is_whole ? ROW_WHOLE : ROW_IN_BLOCKS) ||
        json_uint64(json_get(self->root, STR("revision")), &self->revision) != BAY_OK ||
        json_uint64(json_get(self->root, STR("order")), &self->order) != BAY_OK ||
        self->revision == 0 || self->order == 0) {
        return BAY_ERR_SYNTAX;
    }
    err = read_str(self, self->root, STR("principal"), &self->principal);
    if (err == BAY_OK) {
        err = read_str(self, self->task, STR("id"), &self->id);
    }
    if (err == BAY_OK) {
        err = read_str(self, self->task, STR("contextId"), &self->context_id);
    }
    if (err == BAY_OK) {
        err = read_str(self, status, STR("state"), &name);
    }
    if (err == BAY_OK) {
        self->state = a2a_state_of(name);
        err = read_str(self, status, STR("timestamp"), &name);
    }
    if (err == BAY_OK && (self->state == A2A_STATE_UNSPECIFIED || self->id.len == 0 ||
                          !agent_read_time(name, &self->status_ms))) {
        err = BAY_ERR_SYNTAX;
    }
    return err;
}

/* ---- restoring */

/* What came from a block stays there; `at`: where it begins in the joined row. */
static bay_err take_up(agent_task *task, const row *from, const char *at, agent_overflow **to,
                       size_t *out_place)
{
    const agent_link *link = agent_row_join_find(&from->whole, at);
    if (link == NULL || *to != NULL) {
        return BAY_OK;
    }
    if (out_place != NULL) {
        *out_place = link->place;
    }
    return (link->cut > 0) == (out_place == NULL) ? agent_overflow_restore(task, link, to)
                                                  : BAY_ERR_SYNTAX;
}

static bay_err restore_text(agent_task *task, const row *from, bay_str json, agent_text **out)
{
    agent_text *text = agent_text_new(json);
    if (text == NULL) {
        return BAY_ERR_NOMEM;
    }
    bay_err err = take_up(task, from, json.at, &text->overflow, &text->place);
    if (err != BAY_OK) {
        agent_text_unref(text);
        return err;
    }
    *out = text;
    return BAY_OK;
}

static bay_err restore_history(agent_task *task, const row *from)
{
    json_iter it = json_iter_of(json_get(from->task, STR("history")));
    while (json_next(&it)) {
        agent_text *text;
        bay_err err = restore_text(task, from, json_raw(it.value), &text);
        if (err == BAY_OK) {
            err = agent_task_remember(task, text);
        }
        if (err != BAY_OK) {
            return err;
        }
    }
    json_val message = json_get(json_get(from->task, STR("status")), STR("message"));
    if (!json_is(message, JSON_OBJECT)) {
        return BAY_OK;
    }
    agent_text *newest = task->history_count > 0 ? task->history[task->history_count - 1] : NULL;
    if (newest != NULL && str_eq(agent_text_view(newest), json_raw(message))) {
        task->status = agent_text_ref(newest);
        return BAY_OK;
    }
    return restore_text(task, from, json_raw(message), &task->status);
}

static bay_err restore_memory(agent_task *task, row *from)
{
    json_val value = json_get(from->root, STR("memory"));
    if (json_is(value, JSON_MISSING)) {
        return BAY_OK;
    }
    bay_str text;
    bay_err err = read_str(from, from->root, STR("memory"), &text);
    buf bytes;
    buf_init(&bytes, A2A_TURN_MEMORY_BYTES);
    if (err == BAY_OK) {
        err = base64_decode(&bytes, text, BASE64_STANDARD);
    }
    if (err == BAY_OK) {
        task->memory = agent_text_new(buf_view(&bytes));
        err = task->memory != NULL ? BAY_OK : BAY_ERR_NOMEM;
        agent_task_count(task, bytes.len, 0);
    }
    if (err == BAY_OK) { /* after the quote */
        err = take_up(task, from, json_raw(value).at + 1, &task->memory->overflow,
                      &task->memory->place);
    }
    buf_fini(&bytes);
    return err == BAY_OK || err == BAY_ERR_NOMEM ? err : BAY_ERR_SYNTAX;
}

/* The artifact that was just added. If it is written differently now, it is stored again. */
static bay_err take_up_artifact(agent_task *task, const row *from, bay_str parts)
{
    agent_artifact *artifact = &task->artifacts[task->artifact_count - 1];
    if (artifact->parts.len != parts.len - 2) {
        return BAY_OK;
    }
    bay_err err = take_up(task, from, parts.at + 1, &artifact->overflow, NULL);
    return err == BAY_OK && artifact->overflow != NULL &&
                   artifact->overflow->cut > artifact->parts.len
               ? BAY_ERR_SYNTAX
               : err;
}

static bay_err restore_artifacts(agent_task *task, const row *from)
{
    json_iter it = json_iter_of(json_get(from->task, STR("artifacts")));
    json_iter complete = json_iter_of(json_get(from->root, STR("complete")));
    bool has_complete = json_next(&complete);
    while (json_next(&it)) {
        /* Both lists are in the same order. */
        bool is_complete =
            has_complete && json_str_same(json_get(it.value, STR("artifactId")), complete.value);
        bay_err err = agent_artifact_add(task, it.value, false, is_complete);
        if (err == BAY_OK) {
            err = take_up_artifact(task, from, json_raw(json_get(it.value, STR("parts"))));
        }
        if (err != BAY_OK) {
            return err == BAY_ERR_INVALID ? BAY_ERR_SYNTAX : err;
        }
        if (is_complete) {
            has_complete = json_next(&complete);
        }
    }
    return BAY_OK;
}

static bay_err restore_configs(agent_task *task, const row *from)
{
    json_iter it = json_iter_of(json_get(from->root, STR("configs")));
    while (json_next(&it)) {
        uint64_t form = A2A_FORMS;
        if (json_uint64(json_get(it.value, STR("form")), &form) != BAY_OK || form >= A2A_FORMS) {
            return BAY_ERR_SYNTAX;
        }
        bay_err err = agent_config_restore(task, json_get(it.value, STR("config")), (a2a_form)form);
        if (err != BAY_OK) {
            return err == BAY_ERR_TYPE ? BAY_ERR_SYNTAX : err;
        }
    }
    return BAY_OK;
}

/* A turn that has asked for input is complete, whether it had ended or not: the client may know,
 * and the next message is its answer. Without resuming, other begun turns are lost with the tasks
 * that they worked on; a message that waits for a turn of a task that waits for input is still
 * processed. */
static bay_err restore_turns(agent_task *task, row *from, bool may_resume)
{
    json_iter it = json_iter_of(json_get(from->root, STR("turns")));
    while (json_next(&it)) {
        a2a_turn *turn;
        agent_turn_fields fields = {.tracestate = {"", 0}};
        bool is_begun = json_true(json_get(it.value, STR("isBegun")));
        if ((is_begun && from->state == A2A_INPUT_REQUIRED) ||
            (!may_resume && (is_begun || !a2a_state_is_interrupted(from->state)))) {
            continue;
        }
        bay_err err = read_str(from, it.value, STR("traceparent"), &fields.traceparent);
        if (err == BAY_OK) {
            err = read_str(from, it.value, STR("extensions"), &fields.extensions);
        }
        if (err == BAY_OK && json_is(json_get(it.value, STR("tracestate")), JSON_STRING)) {
            err = read_str(from, it.value, STR("tracestate"), &fields.tracestate);
        }
        if (err == BAY_OK) {
            err = principal_of_identity(from->principal, &fields.principal);
        }
        if (err == BAY_OK) {
            err =
                agent_turn_new(task->of, task, json_get(it.value, STR("request")), &fields, &turn);
        }
        principal_unref(fields.principal);
        fields.principal = NULL;
        if (err != BAY_OK) {
            return err == BAY_ERR_TYPE ? BAY_ERR_SYNTAX : err;
        }
        size_t place = 0;
        err = take_up(task, from, json_raw(json_get(it.value, STR("request"))).at, &turn->overflow,
                      &place);
        err = err == BAY_OK && place > 0 ? BAY_ERR_SYNTAX : err; /* it is alone there */
        turn->is_new = json_true(json_get(it.value, STR("isNew")));
        turn->is_resumed = is_begun;
        list_push(&task->waiting, &turn->link);
        task->waiting_count++;
        if (err != BAY_OK) {
            return err;
        }
    }
    return BAY_OK;
}

static bay_err restore_events(agent_task *task, const a2a_kept_task *from)
{
    task->dropped = task->revision;
    for (size_t i = 0; i < from->event_count; i++) {
        uint64_t sequence = a2a_event_sequence(from->events[i]);
        if (sequence == 0 || sequence > task->revision) {
            break; /* the row does not refer to it: it was never sent */
        }
        agent_event *made = mem_zalloc(sizeof(*made));
        if (made == NULL) {
            return BAY_ERR_NOMEM;
        }
        if (task->event_count == 0) {
            task->dropped = sequence - 1;
        }
        made->event = a2a_event_ref(from->events[i]);
        agent_event_take(task, made);
    }
    return BAY_OK;
}

/* Events may not have reached the push sender before the process died: recent ones are sent again.
 */
static void restore_pushed(agent_task *task, const row *from)
{
    a2a_agent *of = task->of;
    bool is_recent = task->status_ms + of->limits.deduplicate_ms >= agent_now(of);
    uint64_t pushed = task->revision;
    task->pushed = is_recent && json_uint64(json_get(from->root, STR("pushed")), &pushed) == BAY_OK
                       ? pushed
                       : task->revision;
}

/* Their messages may come again, because their callers may not have got an answer. */
static void restore_seen(agent_task *task, const row *from)
{
    a2a_agent *of = task->of;
    arena memory;
    if (task->status_ms + of->limits.deduplicate_ms < agent_now(of)) {
        return;
    }
    arena_init(&memory, SIZE_MAX);
    json_iter it = json_iter_of(json_get(from->task, STR("history")));
    while (json_next(&it)) {
        bay_str id;
        if (json_str_eq(json_get(it.value, STR("role")), STR("ROLE_USER")) &&
            json_str(json_get(it.value, STR("messageId")), &memory, &id) == BAY_OK) {
            agent_dedup_restore(task, id);
        }
    }
    arena_fini(&memory);
}

static bay_err restore_task(agent_task *task, row *from, bool may_resume)
{
    bay_err err = agent_order_reserve(task->context->owner);
    task->is_open = task->is_restoring = true;
    if (err == BAY_OK) {
        err = restore_history(task, from);
    }
    if (err == BAY_OK) {
        err = restore_memory(task, from);
    }
    if (err == BAY_OK) {
        err = restore_artifacts(task, from);
    }
    if (err == BAY_OK) {
        err = restore_configs(task, from);
    }
    if (err == BAY_OK) {
        err = restore_turns(task, from, may_resume);
    }
    if (err == BAY_OK) {
        err = agent_overflow_forget(task, from->from->blocks, from->from->block_count);
    }
    task->revision = from->revision;
    if (err == BAY_OK) {
        err = restore_events(task, from->from);
    }
    if (err != BAY_OK) {
        return err;
    }
    a2a_agent *of = task->of;
    task->kept = task->put = task->revision;
    task->state = from->state;
    task->status_ms = from->status_ms;
    task->has_streams = json_true(json_get(from->root, STR("hasStreams")));
    task->is_restored = true;
    task->is_restoring = false;
    of->last_ms = task->status_ms > of->last_ms ? task->status_ms : of->last_ms;
    agent_order_place(task, from->order);
    if (a2a_state_is_terminal(task->state)) {
        list_push(&of->terminal, &task->in_terminal);
        of->is_terminal_sorted = false;
    }
    restore_pushed(task, from);
    restore_seen(task, from);
    agent_task_touch(task);
    return BAY_OK;
}

/* There are more than the limit if a removal failed earlier. The oldest finished one is removed
 * now; false: that is this one, or there is none. */
static bool find_place(a2a_agent *self, const row *from)
{
    agent_task *oldest = NULL;
    LIST_EACH(link, &self->terminal)
    {
        agent_task *task = CONTAINER_OF(link, agent_task, in_terminal);
        oldest = oldest == NULL || task->status_ms < oldest->status_ms ? task : oldest;
    }
    bool has_ended = a2a_state_is_terminal(from->state);
    if (oldest == NULL || (has_ended && from->status_ms <= oldest->status_ms)) {
        return false;
    }
    agent_task_remove(oldest, NULL, true);
    return true;
}

static bay_err restore_row(a2a_agent *self, row *from, bool may_resume)
{
    a2a_persistence *persistence = self->options.persistence;
    agent_task *task;
    if (map_get(&self->tasks, from->id) != NULL) {
        return BAY_ERR_DUPLICATE;
    }
    if (self->task_count >= self->limits.tasks && !find_place(self, from)) {
        if (!a2a_state_is_terminal(from->state)) {
            return BAY_ERR_LIMIT;
        }
        if (persistence != NULL) {
            persistence->ops->remove(persistence, from->id);
        }
        return BAY_OK;
    }
    bay_err err = agent_task_new(self, from->id, map_hash(&self->tasks, from->id), from->principal,
                                 from->context_id, AGENT_CONTEXT_GIVEN, 0, &task);
    if (err != BAY_OK) {
        return err;
    }
    err = restore_task(task, from, may_resume);
    if (err != BAY_OK) {
        agent_task_remove(task, NULL, true);
    }
    return err;
}

static bay_err read_owner(const a2a_agent *self, row *from)
{
    buf owner;
    buf_init(&owner, PRINCIPAL_KEY_BYTES);
    bay_err err = principal_row_read(from->principal, self->options.ring, from->id, &owner);
    err = err == BAY_OK ? arena_dup(&from->memory, buf_view(&owner), &from->principal) : err;
    buf_fini(&owner);
    return err == BAY_OK || err == BAY_ERR_NOMEM ? err : BAY_ERR_SYNTAX;
}

bay_err a2a_agent_restore(a2a_agent *self, const a2a_kept_task *kept, bool may_resume)
{
    row from = {.from = kept};
    arena_init(&from.memory, SIZE_MAX);
    bay_err err = row_read(&from);
    err = err == BAY_OK ? read_owner(self, &from) : err;
    if (err == BAY_OK) {
        err = restore_row(self, &from, may_resume);
    }
    agent_row_join_fini(&from.whole);
    arena_fini(&from.memory);
    return err;
}

/* ---- rows come in any order; the oldest go first */

static int by_change(const void *a, const void *b)
{
    const agent_task *left = *(agent_task *const *)a;
    const agent_task *right = *(agent_task *const *)b;
    return (left->status_ms > right->status_ms) - (left->status_ms < right->status_ms);
}

void agent_sort_terminal(a2a_agent *self)
{
    size_t count = 0;
    LIST_EACH(link, &self->terminal)
    {
        count++;
    }
    agent_task **tasks = mem_array(count, sizeof(agent_task *));
    if (tasks == NULL) {
        return; /* at the next tick */
    }
    count = 0;
    for (list_link *link; (link = list_pop(&self->terminal)) != NULL;) {
        tasks[count++] = CONTAINER_OF(link, agent_task, in_terminal);
    }
    qsort(tasks, count, sizeof(agent_task *), by_change);
    for (size_t i = 0; i < count; i++) {
        list_push(&self->terminal, &tasks[i]->in_terminal);
    }
    mem_free(tasks);
    self->is_terminal_sorted = true;
}

/* Questions of a server of 2025-11-25 about a task, for a client of the stateless era: the server
 * asks on the stream of tasks/result, so that call is kept open while the client polls. */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "mcp/inputs.h"
#include "tasks/book.h"

enum { HOLDER_MEMORY = 1 << 20, KEY_BYTES = 40 };

/* Whoever is due moves to `due` first: a waiter that is woken may end others. */
static void take_due(task_holder *self, uint64_t now_ms, list *due)
{
    LIST_EACH(link, &self->waiters)
    {
        if (CONTAINER_OF(link, task_waiter, link)->until_ms <= now_ms) {
            list_remove(link);
            list_push(due, link);
        }
    }
}

static void wake_all(list *due)
{
    list_link *link;
    while ((link = list_pop(due)) != NULL) {
        task_waiter *waiter = CONTAINER_OF(link, task_waiter, link);
        waiter->wake(waiter);
    }
}

static void holder_wake(task_holder *self)
{
    list due;
    list_init(&due);
    take_due(self, UINT64_MAX, &due);
    wake_all(&due);
}

static void question_remove(task_holder *self, task_question *question)
{
    list_remove(&question->link);
    self->question_count--;
    self->question_bytes -= question->params.len;
    mem_free(question);
}

static void holder_free(task_holder *self)
{
    list_link *link;
    while ((link = list_first(&self->questions)) != NULL) {
        question_remove(self, CONTAINER_OF(link, task_question, link));
    }
    principal_unref(self->call.affinity.principal);
    arena_fini(&self->memory);
    mem_free(self);
}

/* Out of the book; whoever waits hears of it and finds no questions. */
static void holder_end(task_holder *self)
{
    list_link *link;
    self->has_ended = true;
    map_remove(&self->book->holders, self->token);
    while ((link = list_first(&self->questions)) != NULL) {
        question_remove(self, CONTAINER_OF(link, task_question, link));
    }
    holder_wake(self);
    if (self->hold == 0) {
        holder_free(self);
    }
}

/* After something that may have ended it: true when it did. */
static bool holder_let_go(task_holder *self)
{
    self->hold--;
    if (self->has_ended && self->hold == 0) {
        holder_free(self);
        return true;
    }
    return false;
}

static void holder_done(void *user, const mcp_outcome *outcome)
{
    (void)outcome; /* the next tasks/get finds the task as it is now */
    holder_end(user);
}

static void holder_notified(void *user, mcp_method_id method, json_val params)
{
    (void)user; /* tasks have neither progress nor messages in the stateless era */
    (void)method;
    (void)params;
}

static char *put(char **at, bay_str text, bay_str *out)
{
    memcpy(*at, text.at, text.len);
    *out = (bay_str){*at, text.len};
    *at += text.len;
    return *at;
}

static bay_err question_add(task_holder *self, const rpc_message *request)
{
    buf params;
    buf key;
    if (self->question_count >= TASK_QUESTIONS) {
        return BAY_LIMIT;
    }
    buf_init(&params, TASK_QUESTION_BYTES);
    buf_init(&key, KEY_BYTES);
    task_write_question(&params, request->params, (bay_str){NULL, 0});
    buf_printf(&key, "q%llx-%u", (unsigned long long)self->salt, ++self->last_key);
    bay_err err = params.err == BAY_OK ? key.err : params.err;
    if (err == BAY_OK && params.len > TASK_QUESTION_BYTES - self->question_bytes) {
        err = BAY_LIMIT;
    }
    task_question *made = NULL;
    if (err == BAY_OK) {
        made = mem_zalloc(sizeof(*made) + params.len + key.len + request->id.len +
                          request->method.len + 1);
        err = made != NULL ? BAY_OK : BAY_NOMEM;
    }
    if (made != NULL) {
        char *at = made->bytes;
        put(&at, buf_view(&params), &made->params);
        put(&at, buf_view(&key), &made->key);
        put(&at, request->id, &made->id);
        put(&at, request->method, &made->method);
        list_push(&self->questions, &made->link);
        self->question_count++;
        self->question_bytes += params.len;
    }
    buf_fini(&params);
    buf_fini(&key);
    return err;
}

static void holder_asked(void *user, const rpc_message *request)
{
    task_holder *self = user;
    unsigned needed = mcp_inputs_needed(request->method, request->params);
    if (needed == 0 || (needed & ~self->inputs) != 0) {
        upstream_call_answer(&self->call, request->id, (bay_str){NULL, 0}, RPC_METHOD_NOT_FOUND,
                             STR("The client of this task cannot be asked for that"));
        return;
    }
    bay_err err = question_add(self, request);
    if (err != BAY_OK) {
        upstream_call_answer(&self->call, request->id, (bay_str){NULL, 0}, RPC_INTERNAL_ERROR,
                             err == BAY_LIMIT ? STR("Too many questions of this task are open")
                                              : STR("Out of memory"));
        return;
    }
    holder_wake(self);
}

static void holder_withdrawn(void *user, bay_str id)
{
    task_holder *self = user;
    LIST_EACH(link, &self->questions)
    {
        task_question *question = CONTAINER_OF(link, task_question, link);
        if (str_eq(question->id, id)) {
            question_remove(self, question);
            return;
        }
    }
}

static const upstream_call_events holder_events = {.notified = holder_notified,
                                                   .asked = holder_asked,
                                                   .withdrawn = holder_withdrawn,
                                                   .done = holder_done};

task_holder *task_holder_find(const task_book *self, bay_str token)
{
    return self != NULL ? map_get(&self->holders, token) : NULL;
}

static bay_err holder_fill(task_holder *self, bay_str token, bay_str id,
                           const upstream_affinity *affinity)
{
    buf params;
    bay_str text;
    buf_init(&params, HOLDER_MEMORY);
    buf_lit(&params, "{\"taskId\":");
    json_quote(&params, id);
    buf_char(&params, '}');
    bay_err err =
        params.err == BAY_OK ? arena_dup(&self->memory, buf_view(&params), &text) : params.err;
    buf_fini(&params);
    err = err == BAY_OK ? json_parse(&self->params_doc, text, NULL, &self->memory, NULL) : err;
    err = err == BAY_OK ? arena_dup(&self->memory, token, &self->token) : err;
    if (err == BAY_OK) {
        err = arena_dup(&self->memory, affinity->identity, &self->call.affinity.identity);
    }
    if (err != BAY_OK) {
        return err;
    }
    self->call.affinity.principal = principal_ref(affinity->principal);
    self->call.affinity.inputs = affinity->inputs;
    self->call.affinity.is_stateless = affinity->is_stateless;
    self->call.spec = (mcp_call_spec){.method = mcp_method_of(MCP_TASKS_RESULT)->text,
                                      .params = json_root(&self->params_doc),
                                      .log_level = MCP_LOG_NONE,
                                      .timeout_ms = TASK_MAX_TTL_MS,
                                      .max_total_ms = TASK_MAX_TTL_MS};
    err = arena_dup(&self->memory, id, &self->call.task);
    self->call.spec.rename = self->call.task;
    return err;
}

bay_err task_holder_open(task_book *self, bay_str token, bay_str id, upstream *to,
                         const upstream_affinity *affinity, uint64_t now_ms, task_holder **out)
{
    task_holder *made = mem_zalloc(sizeof(*made));
    if (made == NULL) {
        return BAY_NOMEM;
    }
    made->book = self;
    arena_init(&made->memory, HOLDER_MEMORY);
    list_init(&made->questions);
    list_init(&made->waiters);
    made->salt = rand_u64();
    made->call.events = &holder_events;
    made->call.user = made;
    bay_err err = holder_fill(made, token, id, affinity);
    err = err == BAY_OK ? map_put(&self->holders, made->token, made, NULL) : err;
    if (err != BAY_OK) {
        holder_free(made);
        return err;
    }
    task_holder_look(made, affinity->inputs, now_ms);
    task_book_wake(self);
    made->hold++;
    upstream_send(to, &made->call); /* a refusal may come at once */
    if (holder_let_go(made)) {
        return BAY_CLOSED;
    }
    *out = made;
    return BAY_OK;
}

void task_holder_look(task_holder *self, unsigned inputs, uint64_t now_ms)
{
    self->inputs = inputs;
    self->until_ms = now_ms + self->book->answer_ms;
}

void task_holder_wait(task_holder *self, task_waiter *waiter, uint64_t until_ms)
{
    waiter->until_ms = until_ms;
    list_push(&self->waiters, &waiter->link);
}

void task_holder_write(const task_holder *self, json_writer *out)
{
    json_key_lit(out, "inputRequests");
    json_open_object(out);
    LIST_EACH(link, &self->questions)
    {
        const task_question *question = CONTAINER_OF(link, task_question, link);
        json_key(out, question->key);
        json_open_object(out);
        json_key_lit(out, "method");
        json_put_str(out, question->method);
        json_key_lit(out, "params");
        json_put_raw(out, question->params);
        json_close_object(out);
    }
    json_close_object(out);
}

void task_holder_answer(task_holder *self, json_val responses)
{
    /* an answer may end the call, and the holder with it: what is to be said is taken out first */
    list answered;
    self->hold++;
    list_init(&answered);
    LIST_EACH(link, &self->questions)
    {
        const task_question *question = CONTAINER_OF(link, task_question, link);
        if (json_is(json_get(responses, question->key), JSON_OBJECT)) {
            list_remove(link);
            list_push(&answered, link);
        }
    }
    upstream_call *call = &self->call;
    list_link *link;
    buf text;
    buf_init(&text, TASK_ANSWER_BYTES);
    while ((link = list_pop(&answered)) != NULL) {
        task_question *question = CONTAINER_OF(link, task_question, link);
        self->question_count--;
        self->question_bytes -= question->params.len;
        /* mcp 2025-11-25 tasks, Related Task Metadata */
        buf_clear(&text);
        task_write_result(&text, json_get(responses, question->key), call->task);
        upstream_call_answer(call, question->id,
                             text.err == BAY_OK ? buf_view(&text) : (bay_str){NULL, 0},
                             RPC_INTERNAL_ERROR, STR("The answer does not fit into memory"));
        mem_free(question);
    }
    buf_fini(&text);
    (void)holder_let_go(self);
}

static task_holder *first_abandoned(const task_book *self, uint64_t now_ms)
{
    size_t cursor = 0;
    bay_str token;
    void *holder;
    while (map_next(&self->holders, &cursor, &token, &holder)) {
        if (((task_holder *)holder)->until_ms <= now_ms) {
            return holder;
        }
    }
    return NULL;
}

void task_holders_expire(task_book *self, uint64_t now_ms)
{
    list due;
    size_t cursor = 0;
    bay_str token;
    void *holder;
    list_init(&due);
    while (map_next(&self->holders, &cursor, &token, &holder)) {
        take_due(holder, now_ms, &due);
    }
    wake_all(&due);
    task_holder *abandoned;
    while ((abandoned = first_abandoned(self, now_ms)) != NULL) {
        upstream_call_cancel(&abandoned->call, STR("nobody comes for the task any more"));
        holder_end(abandoned);
    }
}

/* ---- cancels that nobody waits for ----------------------------------------------------------- */

typedef struct task_farewell {
    list_link link;
    task_book *book;
    upstream_call call;
    arena memory;
    json_doc params_doc;
} task_farewell;

static void farewell_free(task_farewell *self)
{
    list_remove(&self->link);
    self->book->farewell_count--;
    principal_unref(self->call.affinity.principal);
    arena_fini(&self->memory);
    mem_free(self);
}

static void farewell_done(void *user, const mcp_outcome *outcome)
{
    (void)outcome;
    farewell_free(user);
}

static const upstream_call_events farewell_events = {.notified = holder_notified,
                                                     .done = farewell_done};

void task_farewell_send(task_book *self, upstream *to, bay_str id,
                        const upstream_affinity *affinity)
{
    task_farewell *made = NULL;
    if (self->farewell_count < TASK_FAREWELLS) {
        made = mem_zalloc(sizeof(*made));
    }
    if (made == NULL) {
        LOG(LOG_WARN, "task", "%s: a task that nobody waits for was not cancelled",
            upstream_name(to).at);
        return;
    }
    made->book = self;
    arena_init(&made->memory, HOLDER_MEMORY);
    list_push(&self->farewells, &made->link);
    self->farewell_count++;
    made->call.events = &farewell_events;
    made->call.user = made;
    made->call.is_repeatable = true;
    made->call.affinity.principal = principal_ref(affinity->principal);
    made->call.affinity.inputs = affinity->inputs;
    made->call.affinity.is_stateless = affinity->is_stateless;
    bay_err err = arena_dup(&made->memory, affinity->identity, &made->call.affinity.identity);
    err = err == BAY_OK ? arena_dup(&made->memory, id, &made->call.spec.rename) : err;
    err = err == BAY_OK
              ? json_parse(&made->params_doc, STR("{\"taskId\":\"\"}"), NULL, &made->memory, NULL)
              : err;
    if (err != BAY_OK) {
        farewell_free(made);
        return;
    }
    made->call.spec.method = mcp_method_of(MCP_TASKS_CANCEL)->text;
    made->call.spec.params = json_root(&made->params_doc);
    made->call.spec.log_level = MCP_LOG_NONE;
    /* mcp 2026-07-28 tasks: whoever speaks of a task declares the extension */
    made->call.spec.capabilities = STR("{\"extensions\":{\"" MCP_EXTENSION_TASKS "\":{}}}");
    upstream_send(to, &made->call);
}

void task_farewells_end(task_book *self)
{
    list_link *link;
    while ((link = list_first(&self->farewells)) != NULL) {
        task_farewell *one = CONTAINER_OF(link, task_farewell, link);
        upstream_call_cancel(&one->call, STR("the gateway is closing"));
        farewell_free(one);
    }
}

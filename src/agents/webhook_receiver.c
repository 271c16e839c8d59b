/* One notification is a *receiver_request*, from its request to its answer.
 *
 *   looking (the agent is asked for the task) ──► away (its letter is with the post) ──► answered
 *
 * Invariants
 * - A receiver_request belongs to its loop until it is away; then to the post until its letter is
 * done, and its loop touches nothing of it but `exchange`, which the other side does not.
 * - Whoever leaves before the answer ends a look, and nothing else: what is away is delivered. */
#include "agents/webhook_receiver.h"

#include "agents/proxy_owner.h"
#include "agents/proxy_params.h"
#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "front/http_reply.h"
#include "wire/header.h"
#include "json/build.h"

enum {
    OPENED_BYTES = 32 << 10,
    CONFIG_BYTES = 128 << 10,
    INDEX_BYTES = 512 << 20, /* of a body, a task */
    NAMES_BYTES = 64 << 20,
};

typedef struct receiver_request {
    const http_owner_ops *owner; /* first */
    agents_push_request letter;
    a2a_call look;
    agents_webhook_receiver *of;
    agents_webhook_receiver *(*receiver_of)(void *home);
    http_exchange *exchange; /* NULL: whoever told it has left */
    a2a_service *service;    /* that is asked for the task; NULL: it is not */
    uint32_t *looks;         /* how many times it is, while it is */
    bay_str agent;
    const auth_principal *principal; /* counted: who registered the webhook */
    agents_proxy_owner names;
    agents_webhook hook;
    buf opened[2];  /* what `hook` views: the address's and the token's */
    arena content;  /* of the two: */
    json_val event; /* 1.0 */
    json_val task;  /* 1.0; JSON_NONE: it is not needed */
    bool is_message;
    bay_str task_id;
    size_t held_bytes; /* of the receiver's, while it is away */
    arena memory;      /* of few and small things: names, params */
} receiver_request;

/* ---- answers --------------------------------------------------------------------------------- */

static void reply(http_exchange *exchange, int status)
{
    static const http_field allow = {STR_INIT("Allow"), STR_INIT("POST")};
    static const http_field challenge = {STR_INIT("WWW-Authenticate"),
                                         STR_INIT("A2A-Notification-Token")};
    http_field later = {STR("Retry-After"), STR("5")};
    const http_field *field = status == 405   ? &allow
                              : status == 401 ? &challenge
                              : status == 503 ? &later
                                              : NULL;
    http_exchange_reply(exchange, status, field, field != NULL, (bay_str){NULL, 0});
}

/* All that an answer does not need. */
static void let_go(receiver_request *self)
{
    buf_fini(&self->opened[0]);
    buf_fini(&self->opened[1]);
    self->event = self->task = JSON_NONE;
    arena_fini(&self->content);
    arena_fini(&self->memory);
    self->hook = (agents_webhook){0};
}

static void receiver_request_free(receiver_request *self)
{
    let_go(self);
    agents_proxy_owner_fini(&self->names);
    principal_unref(self->principal);
    mem_free(self);
}

/* On its own loop. */
static void webhook_receiver_answer(receiver_request *self, int status)
{
    http_exchange *exchange = self->exchange;
    self->of->open--;
    self->of->held_bytes -= self->held_bytes;
    if (exchange != NULL) {
        http_exchange_set_user(exchange, NULL);
        reply(exchange, status);
    }
    receiver_request_free(self);
}

static int status_of(bay_err err)
{
    return err == BAY_OK ? 200 : err == BAY_ERR_INVALID || err == BAY_ERR_PROTOCOL ? 400 : 503;
}

/* ---- passing it on --------------------------------------------------------------------------- */

static void on_push_request(agents_push_request *letter, void *home)
{
    receiver_request *self = CONTAINER_OF(letter, receiver_request, letter);
    if (home == NULL) {
        receiver_request_free(self); /* its loop's agents are gone, and the exchange before them */
        return;
    }
    self->of = self->receiver_of(home);
    webhook_receiver_answer(self, status_of(letter->err));
}

/* The configuration as its caller registered it. */
static void write_config(const agents_webhook *hook, bay_str task_id, json_writer *out)
{
    json_open_object(out);
    json_key_lit(out, "url");
    json_put_str(out, hook->url);
    json_key_lit(out, "id");
    json_put_str(out, hook->id);
    json_key_lit(out, "taskId");
    json_put_str(out, hook->client_id.len > 0 ? hook->client_id : task_id);
    json_key_lit(out, "token");
    json_put_str(out, hook->token);
    json_key_lit(out, "authentication");
    json_open_object(out);
    json_key_lit(out, "scheme");
    json_put_str(out, hook->scheme);
    json_key_lit(out, "credentials");
    json_put_str(out, hook->credentials);
    json_close_object(out);
    json_close_object(out);
}

/* `value` with the id that the caller has for the task. */
static bay_err rename_task(receiver_request *self, json_val *value)
{
    agents_proxy_alias alias = {.among = self->of->aliases,
                                .agent = self->agent,
                                .principal = (char *)self->hook.principal.at,
                                .principal_len = self->hook.principal.len,
                                .client_id = (char *)self->hook.client_id.at,
                                .client_id_len = self->hook.client_id.len};
    if (alias.among == NULL || alias.client_id_len == 0 || json_is(*value, JSON_MISSING)) {
        return BAY_OK;
    }
    return agents_proxy_alias_read(&alias, *value, &self->content, value);
}

static bay_err prepare(receiver_request *self, a2a_push_item **out)
{
    json_builder made;
    json_val config;
    write_config(&self->hook, self->task_id, json_builder_init_secret(&made, NULL, CONFIG_BYTES));
    bay_err err = json_builder_view(&made, &config);
    a2a_event *event = err == BAY_OK ? a2a_event_new(json_raw(self->event), 0, false) : NULL;
    err = err == BAY_OK && event == NULL ? BAY_ERR_NOMEM : err;
    if (err == BAY_OK) {
        a2a_event_lend(event, self->event);
        err = a2a_push_prepare(config, self->hook.caller_form, event, self->task,
                               AGENTS_WEBHOOK_RECEIVER_BYTES, out);
    }
    a2a_event_unref(event);
    json_builder_drop(&made);
    return err;
}

/* BAY_ERR_BUSY: too much is on its way already. */
static bay_err hold(receiver_request *self, const a2a_push_item *item)
{
    size_t bytes = a2a_push_item_delivery(item)->body.len;
    if (self->of->held_bytes + bytes > AGENTS_WEBHOOK_RECEIVER_HELD_BYTES) {
        return BAY_ERR_BUSY;
    }
    self->held_bytes = bytes;
    self->of->held_bytes += bytes;
    return BAY_OK;
}

static void send_off(receiver_request *self)
{
    a2a_push_item *item = NULL;
    bay_err err = rename_task(self, &self->event);
    err = err == BAY_OK ? rename_task(self, &self->task) : err;
    err = err == BAY_OK ? prepare(self, &item) : err;
    if (err == BAY_ERR_LIMIT) {
        webhook_receiver_answer(self, 413); /* it will never be smaller */
        return;
    }
    err = err == BAY_OK ? hold(self, item) : err;
    if (err != BAY_OK) {
        a2a_push_item_free(item);
        webhook_receiver_answer(self, status_of(err));
        return;
    }
    let_go(self);
    self->letter.done = on_push_request;
    agents_push_request_send(&self->letter, self->of->post, item, self->of->port);
}

/* ---- the task -------------------------------------------------------------------------------- */

/* Is it the task that was asked for? Whoever may hear of one hears of no other. */
static bay_err take_task(receiver_request *self, bay_str json, json_val known)
{
    bay_str id = {"", 0};
    json_val task = JSON_NONE;
    bay_err err = json_is(known, JSON_MISSING) ? arena_dup(&self->content, json, &json) : BAY_OK;
    err = err == BAY_OK ? a2a_text_view(json, known, &self->content, &task) : err;
    json_val value = json_get(task, STR("id"));
    err = err == BAY_OK && json_is(value, JSON_STRING) ? json_str(value, &self->content, &id) : err;
    err = err == BAY_OK && !str_eq(id, self->task_id) ? BAY_ERR_DENIED : err;
    return err == BAY_OK ? json_clone_in(task, &self->content, &self->task) : err;
}

static void end_look(receiver_request *self)
{
    self->service = NULL;
    --*self->looks;
}

static void on_task(a2a_call *call, bay_str json)
{
    receiver_request *self = CONTAINER_OF(call, receiver_request, look);
    end_look(self);
    bay_err err = take_task(self, json, call->answer);
    if (err != BAY_OK) {
        webhook_receiver_answer(self, 503); /* the agent may do better the next time */
    } else {
        send_off(self);
    }
}

static void on_no_task(a2a_call *call, const a2a_fault *fault)
{
    receiver_request *self = CONTAINER_OF(call, receiver_request, look);
    end_look(self);
    webhook_receiver_answer(self, fault->error == A2A_E_TASK_NOT_FOUND ? 404 : 503);
}

static bay_err no_event(a2a_call *call, a2a_event *event)
{
    (void)call;
    (void)event;
    return BAY_ERR_CLOSED; /* GetTask is no stream */
}

static void no_end(a2a_call *call)
{
    receiver_request *self = CONTAINER_OF(call, receiver_request, look);
    end_look(self);
    webhook_receiver_answer(self, 503);
}

static bay_str no_field(a2a_call *call, bay_str name)
{
    (void)call;
    (void)name;
    return (bay_str){NULL, 0};
}

static const a2a_call_ops look_ops = {on_task, no_event, no_end, on_no_task, no_field};

static void look(receiver_request *self, agents_remote *from)
{
    self->looks = agents_remote_looks(from);
    if (*self->looks >= AGENTS_WEBHOOK_RECEIVER_LOOKS) {
        webhook_receiver_answer(
            self, 503); /* one agent that does not answer leaves room for the others' */
        return;
    }
    json_builder made;
    json_val params = JSON_NONE;
    json_writer *to = json_builder_init(&made, &self->memory, CONFIG_BYTES);
    json_open_object(to);
    json_key_lit(to, "id");
    json_put_str(to, self->task_id);
    json_close_object(to);
    bay_err err = json_builder_end(&made, &params);
    if (err != BAY_OK) {
        webhook_receiver_answer(self, status_of(err));
        return;
    }
    ++*self->looks;
    self->service = agents_remote_service(from);
    self->look = (a2a_call){.ops = &look_ops,
                            .method = A2A_GET_TASK,
                            .version = A2A_1_0,
                            .binding = A2A_JSONRPC,
                            .params = params,
                            .principal = self->principal,
                            .memory = &self->memory};
    a2a_service_call(self->service, &self->look);
}

/* ---- taking it in ---------------------------------------------------------------------------- */

static void webhook_receiver_on_closed(void *user, http_exchange *exchange, bool is_complete)
{
    receiver_request *self = user;
    (void)exchange;
    (void)is_complete;
    self->exchange = NULL;
    if (self->service != NULL) { /* it will be told again */
        self->look.is_gone = true;
        a2a_service_gone(self->service, &self->look);
    }
}

static void on_drained(void *user, http_exchange *exchange)
{
    (void)user;
    (void)exchange;
}

static const http_owner_ops receiver_request_owner = {webhook_receiver_on_closed, on_drained};

/* The token that came, under one of its names or under both. `at` NULL: none, or two. */
static bay_str token_of(const http_exchange *exchange)
{
    static const bay_str names[] = {STR_INIT("X-A2A-Notification-Token"),
                                    STR_INIT("A2A-Notification-Token")};
    bay_str token = {NULL, 0};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t count = http_exchange_field_count(exchange, names[i]);
        bay_str value = http_exchange_field(exchange, names[i]);
        if (count > 1 || (count == 1 && token.at != NULL && !str_eq(token, value))) {
            return (bay_str){NULL, 0};
        }
        token = count == 1 ? value : token;
    }
    return token;
}

/* 0: it is one of ours, from who was told. */
static int authenticate(receiver_request *self, bay_str sealed)
{
    const seal_ring *ring = *self->of->ring;
    uint64_t now = loop_time_ms();
    bay_str token = token_of(self->exchange);
    bay_err err =
        agents_webhook_open_url(ring, self->agent, sealed, now, &self->opened[0], &self->hook);
    if (err != BAY_OK) {
        return err == BAY_ERR_NOMEM ? 503 : 404;
    }
    if (token.at == NULL) {
        return 401;
    }
    err = agents_webhook_open_token(ring, self->agent, sealed, token, now, &self->opened[1],
                                    &self->hook);
    return err == BAY_OK ? 0 : err == BAY_ERR_NOMEM ? 503 : 401;
}

static int check_body(const http_exchange *exchange)
{
    bay_str type = http_exchange_field(exchange, STR("Content-Type"));
    bool is_json = header_content_type_is(type, STR("application/json")) ||
                   header_content_type_is(type, STR("application/a2a+json"));
    return !is_json                                                           ? 415
           : http_exchange_body(exchange).len > AGENTS_WEBHOOK_RECEIVER_BYTES ? 413
                                                                              : 0;
}

/* The id of the task that an event of 1.0 is about; "": none. */
static bay_err read_task_id(receiver_request *self, json_val event, arena *index)
{
    static const struct {
        bay_str member;
        bay_str key;
    } rows[] = {{STR_INIT("task"), STR_INIT("id")},
                {STR_INIT("statusUpdate"), STR_INIT("taskId")},
                {STR_INIT("artifactUpdate"), STR_INIT("taskId")},
                {STR_INIT("message"), STR_INIT("taskId")}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bay_str id;
        json_val value = json_get(json_get(event, rows[i].member), rows[i].key);
        if (json_is(value, JSON_STRING)) {
            bay_err err = json_str(value, index, &id);
            return err == BAY_OK ? arena_dup(&self->memory, id, &self->task_id) : err;
        }
    }
    return BAY_OK;
}

/* What was told: `event`, its task's id, and the task where it is one. */
static bay_err read_event(receiver_request *self)
{
    json_doc told;
    json_val event;
    arena index; /* of the body, which goes before the answer */
    arena_init(&index, INDEX_BYTES);
    bay_err err =
        json_parse(&told, http_exchange_body(self->exchange), &a2a_json_limits, &index, NULL);
    if (err == BAY_OK) {
        err = agents_webhook_read(self->hook.agent_form, json_root(&told), &index, &event, NULL);
    }
    if (err == BAY_OK) {
        err = json_clone_in(event, &self->content, &self->event);
    }
    if (err == BAY_OK) {
        json_val task = json_get(self->event, STR("task"));
        self->is_message = json_is(json_get(self->event, STR("message")), JSON_OBJECT);
        if (json_is(task, JSON_OBJECT) && self->hook.caller_form != A2A_FORM_1_0) {
            self->task = task;
        }
        err = read_task_id(self, self->event, &index);
    }
    arena_fini(&index);
    return err;
}

static bay_err strip(receiver_request *self, json_val *value)
{
    return agents_proxy_owner_strip_val(&self->names, *value, &self->content, value);
}

/* Whose webhook it is hears of his own tasks alone, by his own names for them. A task that nobody
 * has is his from now on: the agent may tell the webhook before it answers the message. Errors:
 * BAY_ERR_DENIED: it is another's. */
static bay_err check_owner(receiver_request *self, const agents_remote *from)
{
    bay_err err = principal_of_identity(self->hook.principal, &self->principal);
    if (err == BAY_OK) {
        err = agents_proxy_owner_init(&self->names, agents_remote_owned(from), self->of->ring,
                                      self->agent, self->principal);
    }
    if (err != BAY_OK) {
        return err == BAY_ERR_SYNTAX ? BAY_ERR_DENIED : err;
    }
    if (agents_proxy_owner_is_on(&self->names) && self->task_id.len > 0 &&
        !agents_proxy_owner_claims(&self->names, OWNED_TASK, self->task_id)) {
        return BAY_ERR_DENIED;
    }
    buf id;
    buf_init(&id, CONFIG_BYTES);
    bay_str shown = agents_proxy_owner_strip(&self->names, self->task_id, &id);
    err = id.err;
    if (err == BAY_OK && shown.at == id.at) {
        err = arena_dup(&self->memory, shown, &self->task_id);
    }
    buf_fini(&id);
    err = err == BAY_OK ? strip(self, &self->event) : err;
    return err == BAY_OK ? strip(self, &self->task) : err;
}

static void go_on(receiver_request *self, agents_remote *from)
{
    int status = check_body(self->exchange);
    if (status != 0) {
        webhook_receiver_answer(self, status);
        return;
    }
    bay_err err = read_event(self);
    if (err == BAY_OK) {
        err = check_owner(self, from);
        if (err == BAY_ERR_DENIED) {
            webhook_receiver_answer(self, 404);
            return;
        }
    }
    bay_str known = self->hook.task_id;
    bool needs_task = self->hook.caller_form != A2A_FORM_1_0 && json_is(self->task, JSON_MISSING) &&
                      !self->is_message;
    if (err != BAY_OK) {
        webhook_receiver_answer(self, err == BAY_ERR_NOMEM ? 503 : 400);
    } else if (known.len > 0 && !str_eq(self->task_id, known)) {
        webhook_receiver_answer(self, 404); /* the address is another task's */
    } else if (needs_task) {
        look(self, from);
    } else {
        send_off(self);
    }
}

bool agents_webhook_receiver_works(const agents_webhook_receiver *self)
{
    return self != NULL && self->post != NULL && self->ring != NULL && *self->ring != NULL;
}

bool agents_webhook_receiver_knows(const agents_webhook_receiver *self, bay_str agent,
                                   bay_str sealed)
{
    buf opened;
    agents_webhook hook;
    if (!agents_webhook_receiver_works(self)) {
        return false;
    }
    buf_init_secret(&opened, OPENED_BYTES);
    bay_err err =
        agents_webhook_open_url(*self->ring, agent, sealed, loop_time_ms(), &opened, &hook);
    buf_fini(&opened);
    return err == BAY_OK;
}

static receiver_request *receiver_request_new(agents_webhook_receiver *of, agents_remote *from,
                                              http_exchange *exchange)
{
    receiver_request *self =
        of->open < AGENTS_WEBHOOK_RECEIVER_OPEN ? mem_zalloc(sizeof(*self)) : NULL;
    if (self == NULL) {
        return NULL;
    }
    self->owner = &receiver_request_owner;
    self->of = of;
    self->exchange = exchange;
    arena_init(&self->memory, NAMES_BYTES);
    buf_init_secret(&self->opened[0], OPENED_BYTES);
    buf_init_secret(&self->opened[1], OPENED_BYTES);
    self->event = self->task = JSON_NONE;
    arena_init(&self->content, INDEX_BYTES);
    if (arena_dup(&self->memory, agents_remote_settings(from)->name, &self->agent) != BAY_OK) {
        receiver_request_free(self);
        return NULL;
    }
    of->open++;
    http_exchange_set_user(exchange, self);
    return self;
}

void agents_webhook_receiver_take(agents_webhook_receiver *self,
                                  agents_webhook_receiver *(*receiver_of)(void *home),
                                  agents_remote *from, bay_str sealed, http_exchange *exchange)
{
    if (!str_eq(http_exchange_method(exchange), STR("POST"))) {
        reply(exchange, 405);
        return;
    }
    if (!agents_webhook_receiver_works(self)) {
        reply(exchange, 404);
        return;
    }
    receiver_request *made = receiver_request_new(self, from, exchange);
    if (made == NULL) {
        reply(exchange, 503);
        return;
    }
    made->receiver_of = receiver_of;
    int status = authenticate(made, sealed);
    if (status != 0) {
        webhook_receiver_answer(made, status);
    } else {
        go_on(made, from);
    }
}

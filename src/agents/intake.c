/* One notification is a *reception*, from its request to its answer.
 *
 *   looking (the agent is asked for the task) ──► away (its letter is with the post) ──► answered
 *
 * Invariants
 * - A reception belongs to its loop until it is away; then to the post until its letter is done,
 * and its loop touches nothing of it but `exchange`, which the other side does not.
 * - Whoever leaves before the answer ends a look, and nothing else: what is away is delivered. */
#include "agents/intake.h"

#include "agents/relay_owner.h"
#include "agents/relay_params.h"
#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "front/http_reply.h"
#include "wire/header.h"
#include "json/writer.h"

enum {
    OPENED_BYTES = 32 << 10,
    CONFIG_BYTES = 128 << 10,
    EVENT_BYTES = 64 << 20,
    INDEX_BYTES = 512 << 20, /* of a body, a task */
    NAMES_BYTES = 64 << 20,
};

typedef struct reception {
    const http_owner_ops *owner; /* first */
    agents_letter letter;
    a2a_call look;
    agents_intake *of;
    agents_intake *(*intake_of)(void *face);
    http_exchange *exchange; /* NULL: whoever told it has left */
    a2a_service *service;    /* that is asked for the task; NULL: it is not */
    uint32_t *looks;         /* how many times it is, while it is */
    bay_str agent;
    const auth_principal *principal; /* counted: who registered the webhook */
    relay_owner names;
    agents_webhook hook;
    buf opened[2]; /* what `hook` views: the address's and the token's */
    buf event;     /* 1.0 */
    buf task;      /* 1.0; empty: it is not needed */
    bool is_message;
    bay_str task_id;
    size_t held_bytes; /* of the intake's, while it is away */
    arena memory;      /* of few and small things: names, params */
    json_doc params;
} reception;

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
static void let_go(reception *self)
{
    buf_fini(&self->opened[0]);
    buf_fini(&self->opened[1]);
    buf_fini(&self->event);
    buf_fini(&self->task);
    arena_fini(&self->memory);
    self->hook = (agents_webhook){0};
}

static void reception_free(reception *self)
{
    let_go(self);
    relay_owner_fini(&self->names);
    principal_unref(self->principal);
    mem_free(self);
}

/* On its own loop. */
static void answer(reception *self, int status)
{
    http_exchange *exchange = self->exchange;
    self->of->open--;
    self->of->held_bytes -= self->held_bytes;
    if (exchange != NULL) {
        http_exchange_set_user(exchange, NULL);
        reply(exchange, status);
    }
    reception_free(self);
}

static int status_of(bay_err err)
{
    return err == BAY_OK ? 200 : err == BAY_INVALID || err == BAY_PROTOCOL ? 400 : 503;
}

/* ---- passing it on --------------------------------------------------------------------------- */

static void on_letter(agents_letter *letter, void *face)
{
    reception *self = CONTAINER_OF(letter, reception, letter);
    if (face == NULL) {
        reception_free(self); /* its loop's agents are gone, and the exchange before them */
        return;
    }
    self->of = self->intake_of(face);
    answer(self, status_of(letter->err));
}

/* The configuration as its caller registered it. */
static void write_config(const agents_webhook *hook, bay_str task_id, buf *out)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_key_lit(&writer, "url");
    json_put_str(&writer, hook->url);
    json_key_lit(&writer, "id");
    json_put_str(&writer, hook->id);
    json_key_lit(&writer, "taskId");
    json_put_str(&writer, hook->client_id.len > 0 ? hook->client_id : task_id);
    json_key_lit(&writer, "token");
    json_put_str(&writer, hook->token);
    json_key_lit(&writer, "authentication");
    json_open_object(&writer);
    json_key_lit(&writer, "scheme");
    json_put_str(&writer, hook->scheme);
    json_key_lit(&writer, "credentials");
    json_put_str(&writer, hook->credentials);
    json_close_object(&writer);
    json_close_object(&writer);
}

/* `text` with the id that the caller has for the task. */
static bay_err rename_task(const reception *self, buf *text)
{
    relay_alias alias = {.among = self->of->aliases,
                         .agent = self->agent,
                         .principal = (char *)self->hook.principal.at,
                         .principal_len = self->hook.principal.len,
                         .client_id = (char *)self->hook.client_id.at,
                         .client_id_len = self->hook.client_id.len};
    arena scratch;
    json_doc doc;
    buf renamed;
    if (alias.among == NULL || alias.client_id_len == 0 || text->len == 0) {
        return BAY_OK;
    }
    arena_init(&scratch, INDEX_BYTES);
    buf_init(&renamed, EVENT_BYTES);
    bay_err err = json_parse(&doc, buf_view(text), &a2a_json_limits, &scratch, NULL);
    if (err == BAY_OK) {
        bay_str made = relay_alias_read(&alias, json_root(&doc), &scratch, &renamed);
        err = renamed.err;
        if (err == BAY_OK && made.at == renamed.at) {
            buf_fini(text);
            *text = renamed;
            buf_init(&renamed, EVENT_BYTES);
        }
    }
    buf_fini(&renamed);
    arena_fini(&scratch);
    return err;
}

static bay_err prepare(const reception *self, a2a_push_item **out)
{
    json_doc doc;
    arena index;
    buf config;
    arena_init(&index, INDEX_BYTES);
    buf_init_secret(&config, CONFIG_BYTES);
    write_config(&self->hook, self->task_id, &config);
    bay_err err = config.err;
    if (err == BAY_OK) {
        err = json_parse(&doc, buf_view(&config), NULL, &index, NULL);
    }
    a2a_event *event = err == BAY_OK ? a2a_event_new(buf_view(&self->event), 0, false) : NULL;
    err = err == BAY_OK && event == NULL ? BAY_NOMEM : err;
    if (err == BAY_OK) {
        err = a2a_push_prepare(json_root(&doc), self->hook.told, event, buf_view(&self->task),
                               AGENTS_INTAKE_BYTES, out);
    }
    a2a_event_unref(event);
    buf_fini(&config);
    arena_fini(&index);
    return err;
}

/* BAY_BUSY: too much is on its way already. */
static bay_err hold(reception *self, const a2a_push_item *item)
{
    size_t bytes = a2a_push_item_delivery(item)->body.len;
    if (self->of->held_bytes + bytes > AGENTS_INTAKE_HELD_BYTES) {
        return BAY_BUSY;
    }
    self->held_bytes = bytes;
    self->of->held_bytes += bytes;
    return BAY_OK;
}

static void send_off(reception *self)
{
    a2a_push_item *item = NULL;
    bay_err err = rename_task(self, &self->event);
    err = err == BAY_OK ? rename_task(self, &self->task) : err;
    err = err == BAY_OK ? prepare(self, &item) : err;
    if (err == BAY_LIMIT) {
        answer(self, 413); /* it will never be smaller */
        return;
    }
    err = err == BAY_OK ? hold(self, item) : err;
    if (err != BAY_OK) {
        a2a_push_item_free(item);
        answer(self, status_of(err));
        return;
    }
    let_go(self);
    self->letter.done = on_letter;
    agents_letter_send(&self->letter, self->of->post, item, self->of->port);
}

/* ---- the task -------------------------------------------------------------------------------- */

/* Is it the task that was asked for? Whoever may hear of one hears of no other. */
static bay_err check_task(const reception *self, bay_str json)
{
    json_doc doc;
    arena index;
    bay_str id = {"", 0};
    arena_init(&index, INDEX_BYTES);
    bay_err err = json_parse(&doc, json, &a2a_json_limits, &index, NULL);
    json_val value = err == BAY_OK ? json_get(json_root(&doc), STR("id")) : JSON_NONE;
    err = err == BAY_OK && json_is(value, JSON_STRING) ? json_str(value, &index, &id) : err;
    err = err == BAY_OK && !str_eq(id, self->task_id) ? BAY_DENIED : err;
    arena_fini(&index);
    return err;
}

static void end_look(reception *self)
{
    self->service = NULL;
    --*self->looks;
}

static void on_task(a2a_call *call, bay_str json)
{
    reception *self = CONTAINER_OF(call, reception, look);
    end_look(self);
    bay_err err = check_task(self, json);
    if (err == BAY_OK) {
        buf_str(&self->task, json);
        err = self->task.err;
    }
    if (err != BAY_OK) {
        answer(self, 503); /* the agent may do better the next time */
    } else {
        send_off(self);
    }
}

static void on_no_task(a2a_call *call, const a2a_fault *fault)
{
    reception *self = CONTAINER_OF(call, reception, look);
    end_look(self);
    answer(self, fault->error == A2A_E_TASK_NOT_FOUND ? 404 : 503);
}

static bay_err no_event(a2a_call *call, a2a_event *event)
{
    (void)call;
    (void)event;
    return BAY_CLOSED; /* GetTask is no stream */
}

static void no_end(a2a_call *call)
{
    reception *self = CONTAINER_OF(call, reception, look);
    end_look(self);
    answer(self, 503);
}

static bay_str no_field(a2a_call *call, bay_str name)
{
    (void)call;
    (void)name;
    return (bay_str){NULL, 0};
}

static const a2a_call_ops look_ops = {on_task, no_event, no_end, on_no_task, no_field};

static void look(reception *self, agents_remote *from)
{
    self->looks = agents_remote_looks(from);
    if (*self->looks >= AGENTS_INTAKE_LOOKS) {
        answer(self, 503); /* one agent that does not answer leaves room for the others' */
        return;
    }
    buf params;
    bay_str text = {"", 0};
    buf_init(&params, CONFIG_BYTES);
    buf_lit(&params, "{\"id\":");
    json_quote(&params, self->task_id);
    buf_char(&params, '}');
    bay_err err = params.err;
    err = err == BAY_OK ? arena_dup(&self->memory, buf_view(&params), &text) : err;
    err = err == BAY_OK ? json_parse(&self->params, text, NULL, &self->memory, NULL) : err;
    buf_fini(&params);
    if (err != BAY_OK) {
        answer(self, status_of(err));
        return;
    }
    ++*self->looks;
    self->service = agents_remote_service(from);
    self->look = (a2a_call){.ops = &look_ops,
                            .method = A2A_GET_TASK,
                            .version = A2A_1_0,
                            .binding = A2A_JSONRPC,
                            .params = json_root(&self->params),
                            .principal = self->principal,
                            .memory = &self->memory};
    a2a_service_call(self->service, &self->look);
}

/* ---- taking it in ---------------------------------------------------------------------------- */

static void on_closed(void *user, http_exchange *exchange, bool is_complete)
{
    reception *self = user;
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

static const http_owner_ops reception_owner = {on_closed, on_drained};

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
static int authenticate(reception *self, bay_str sealed)
{
    const seal_ring *ring = *self->of->ring;
    uint64_t now = loop_time_ms();
    bay_str token = token_of(self->exchange);
    bay_err err =
        agents_webhook_open_url(ring, self->agent, sealed, now, &self->opened[0], &self->hook);
    if (err != BAY_OK) {
        return err == BAY_NOMEM ? 503 : 404;
    }
    if (token.at == NULL) {
        return 401;
    }
    err = agents_webhook_open_token(ring, self->agent, sealed, token, now, &self->opened[1],
                                    &self->hook);
    return err == BAY_OK ? 0 : err == BAY_NOMEM ? 503 : 401;
}

static int check_body(const http_exchange *exchange)
{
    bay_str type = http_exchange_field(exchange, STR("Content-Type"));
    bool is_json = header_content_type_is(type, STR("application/json")) ||
                   header_content_type_is(type, STR("application/a2a+json"));
    return !is_json ? 415 : http_exchange_body(exchange).len > AGENTS_INTAKE_BYTES ? 413 : 0;
}

/* The id of the task that an event of 1.0 is about; "": none. */
static bay_err read_task_id(reception *self, json_val event, arena *index)
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
static bay_err read_event(reception *self, arena *index)
{
    json_doc told, read;
    bay_err err =
        json_parse(&told, http_exchange_body(self->exchange), &a2a_json_limits, index, NULL);
    if (err == BAY_OK) {
        err = agents_webhook_read(self->hook.heard, json_root(&told), &self->event, NULL);
    }
    arena_reset(index);
    if (err == BAY_OK) {
        err = json_parse(&read, buf_view(&self->event), NULL, index, NULL);
    }
    if (err == BAY_OK) {
        json_val event = json_root(&read);
        json_val task = json_get(event, STR("task"));
        self->is_message = json_is(json_get(event, STR("message")), JSON_OBJECT);
        if (json_is(task, JSON_OBJECT) && self->hook.told != A2A_FORM_1_0) {
            buf_str(&self->task, json_raw(task));
        }
        err = read_task_id(self, event, index);
    }
    return err == BAY_OK ? self->task.err : err;
}

static bay_err strip(const reception *self, buf *text)
{
    buf stripped;
    buf_init(&stripped, EVENT_BYTES);
    bay_str made = relay_owner_strip(&self->names, buf_view(text), &stripped);
    if (stripped.err == BAY_OK && made.at == stripped.at) {
        buf_fini(text);
        *text = stripped;
        return BAY_OK;
    }
    bay_err err = stripped.err;
    buf_fini(&stripped);
    return err;
}

/* Whose webhook it is hears of his own tasks alone, by his own names for them. A task that nobody
 * has is his from now on: the agent may tell the webhook before it answers the message. Errors:
 * BAY_DENIED: it is another's. */
static bay_err check_owner(reception *self, const agents_remote *from)
{
    bay_err err = principal_of_identity(self->hook.principal, &self->principal);
    if (err == BAY_OK) {
        err = relay_owner_init(&self->names, agents_remote_owned(from), self->of->ring, self->agent,
                               self->principal);
    }
    if (err != BAY_OK) {
        return err == BAY_SYNTAX ? BAY_DENIED : err;
    }
    if (relay_owner_is_on(&self->names) && self->task_id.len > 0 &&
        !relay_owner_claims(&self->names, OWNED_TASK, self->task_id)) {
        return BAY_DENIED;
    }
    buf id;
    buf_init(&id, CONFIG_BYTES);
    bay_str shown = relay_owner_strip(&self->names, self->task_id, &id);
    err = id.err;
    if (err == BAY_OK && shown.at == id.at) {
        err = arena_dup(&self->memory, shown, &self->task_id);
    }
    buf_fini(&id);
    err = err == BAY_OK ? strip(self, &self->event) : err;
    return err == BAY_OK ? strip(self, &self->task) : err;
}

static void go_on(reception *self, agents_remote *from)
{
    arena index;
    int status = check_body(self->exchange);
    if (status != 0) {
        answer(self, status);
        return;
    }
    arena_init(&index, INDEX_BYTES);
    bay_err err = read_event(self, &index);
    arena_fini(&index);
    if (err == BAY_OK) {
        err = check_owner(self, from);
        if (err == BAY_DENIED) {
            answer(self, 404);
            return;
        }
    }
    bay_str known = self->hook.task_id;
    bool needs_task = self->hook.told != A2A_FORM_1_0 && self->task.len == 0 && !self->is_message;
    if (err != BAY_OK) {
        answer(self, err == BAY_NOMEM ? 503 : 400);
    } else if (known.len > 0 && !str_eq(self->task_id, known)) {
        answer(self, 404); /* the address is another task's */
    } else if (needs_task) {
        look(self, from);
    } else {
        send_off(self);
    }
}

bool agents_intake_works(const agents_intake *self)
{
    return self != NULL && self->post != NULL && self->ring != NULL && *self->ring != NULL;
}

static reception *reception_new(agents_intake *of, agents_remote *from, http_exchange *exchange)
{
    reception *self = of->open < AGENTS_INTAKE_OPEN ? mem_zalloc(sizeof(*self)) : NULL;
    if (self == NULL) {
        return NULL;
    }
    self->owner = &reception_owner;
    self->of = of;
    self->exchange = exchange;
    arena_init(&self->memory, NAMES_BYTES);
    buf_init_secret(&self->opened[0], OPENED_BYTES);
    buf_init_secret(&self->opened[1], OPENED_BYTES);
    buf_init(&self->event, EVENT_BYTES);
    buf_init(&self->task, EVENT_BYTES);
    if (arena_dup(&self->memory, agents_remote_settings(from)->name, &self->agent) != BAY_OK) {
        reception_free(self);
        return NULL;
    }
    of->open++;
    http_exchange_set_user(exchange, self);
    return self;
}

void agents_intake_take(agents_intake *self, agents_intake *(*intake_of)(void *face),
                        agents_remote *from, bay_str sealed, http_exchange *exchange)
{
    if (!str_eq(http_exchange_method(exchange), STR("POST"))) {
        reply(exchange, 405);
        return;
    }
    if (!agents_intake_works(self)) {
        reply(exchange, 404);
        return;
    }
    reception *made = reception_new(self, from, exchange);
    if (made == NULL) {
        reply(exchange, 503);
        return;
    }
    made->intake_of = intake_of;
    int status = authenticate(made, sealed);
    if (status != 0) {
        answer(made, status);
    } else {
        go_on(made, from);
    }
}

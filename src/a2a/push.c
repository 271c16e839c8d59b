/* The push queue. A *hook* is one configuration of one task: its deliveries are sent one after the
 * other, so that its receiver gets events in their order. A hook is in one list at most:
 *
 *      add                 room under way          done: delivered or dead, and there is another
 *   ───────► ready ───────────────────────► under way ───────────────────────► ready
 *              ▲                                │ done: again
 *              └──────── its time ◄── delayed ◄─┘             (no other: the hook is freed)
 *
 * A delivery is one block of memory, wiped when it is freed: its fields have credentials. */
#include "a2a/push.h"

#include "a2a/types.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/rand.h"
#include "wire/chars.h"
#include "wire/uri.h"

enum { SCRATCH_GROWTH = 64, SCRATCH_SPARE = 64 * 1024, KEY_BYTES = 8192, FIELD_BYTES = 20 * 1024 };

const a2a_push_limits a2a_push_default_limits = {
    .waiting = 10000,
    .per_webhook = 1000,
    .under_way = 64,
    .attempts = 8,
    .first_delay_ms = 1000,
    .most_delay_ms = 300000,
    .timeout_ms = 15000,
    .body_bytes = 8U << 20,
    .held_bytes = 256U << 20,
};

struct a2a_push_item {
    list_link link; /* in its hook */
    a2a_delivery delivery;
    bool is_restored;
    char tag[A2A_PUSH_TAG_BYTES]; /* of an accepted one */
    size_t bytes;
    char text[];
};
typedef a2a_push_item push_item;

typedef enum push_origin {
    PUSH_NEW,      /* the queue's owner is notified, also if it is given up */
    PUSH_RESTORED, /* it was stored, precedes new ones, and its end is reported */
    PUSH_ACCEPTED, /* it is stored already, and the caller handles a limit */
} push_origin;

typedef struct push_hook {
    list_link link; /* in `ready` or `delayed`; in none while under way */
    list items;
    uint32_t count;
    uint64_t due_ms; /* delayed */
    bool is_under_way;
    bay_str key;
    char text[];
} push_hook;

struct a2a_push {
    a2a_push_limits limits;
    const a2a_push_ops *ops;
    void *user;
    map hooks;
    list ready;
    list delayed;
    list under_way;
    uint32_t waiting; /* deliveries, including those under way */
    size_t held_bytes;
    uint32_t busy; /* hooks under way */
    bool is_held;
    uint64_t last_id;
    uint64_t wake_ms; /* the last argument of `wake`; 0: none */
};

/* --- configurations --------------------------------------------------------------------------- */

static bay_err push_refuse(a2a_fault *fault, const char *why)
{
    return a2a_fault_set(fault, A2A_E_INVALID_PARAMS, "%s", why);
}

/* `text` of a header value: no byte that could begin another field, no space at an end. */
static bool is_field_value(bay_str text, size_t most)
{
    return text.len <= most && chars_value_is_clean(text) && str_trim(text).len == text.len;
}

static bool is_webhook_url(bay_str text)
{
    uri url;
    return text.len <= A2A_PUSH_URL_BYTES && uri_parse(&url, text) == BAY_OK &&
           (str_eq_nocase(url.scheme, STR("https")) || str_eq_nocase(url.scheme, STR("http"))) &&
           url.has_authority && url.host.len > 0 && !url.has_userinfo;
}

typedef struct push_config {
    bay_str url;
    bay_str id;
    bay_str task_id;
    bay_str token;
    bay_str scheme;
    bay_str credentials;
} push_config;

static bay_err member(json_val object, bay_str name, arena *memory, bay_str *out)
{
    json_val value = json_get(object, name);
    *out = (bay_str){"", 0};
    return json_is(value, JSON_STRING) ? json_str(value, memory, out)
           : json_is(value, JSON_MISSING) || json_is(value, JSON_NULL) ? BAY_OK
                                                                       : BAY_ERR_TYPE;
}

/* Errors: BAY_ERR_PROTOCOL with `fault`, BAY_ERR_NOMEM. */
static bay_err read_config(json_val config, arena *memory, push_config *out, a2a_fault *fault)
{
    json_val login = json_get(config, STR("authentication"));
    struct {
        json_val in;
        bay_str name;
        bay_str *to;
    } members[] = {
        {config, STR("url"), &out->url},        {config, STR("id"), &out->id},
        {config, STR("taskId"), &out->task_id}, {config, STR("token"), &out->token},
        {login, STR("scheme"), &out->scheme},   {login, STR("credentials"), &out->credentials},
    };
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        bay_err err = member(members[i].in, members[i].name, memory, members[i].to);
        if (err != BAY_OK) {
            return err == BAY_ERR_NOMEM
                       ? err
                       : push_refuse(fault, "a push configuration of the wrong shape");
        }
    }
    if (!is_webhook_url(out->url)) {
        return push_refuse(fault, "url: no http or https URL of a webhook, or one with a password");
    }
    if (!is_field_value(out->token, A2A_PUSH_CREDENTIAL_BYTES)) {
        return push_refuse(fault, "token: cannot stand in a header field");
    }
    if (!chars_are(out->scheme, CHAR_TOKEN) || out->scheme.len > 64 ||
        (out->scheme.len == 0 && out->credentials.len > 0)) {
        return push_refuse(fault, "authentication.scheme: no authentication scheme");
    }
    if (!is_field_value(out->credentials, A2A_PUSH_CREDENTIAL_BYTES)) {
        return push_refuse(fault, "authentication.credentials: cannot stand in a header field");
    }
    return BAY_OK;
}

bay_err a2a_push_config_check(json_val config, a2a_fault *fault)
{
    arena memory;
    push_config read;
    arena_init(&memory, (size_t)json_raw(config).len * 2 + SCRATCH_SPARE);
    bay_err err = read_config(config, &memory, &read, fault);
    arena_fini(&memory);
    return err;
}

/* --- deliveries ------------------------------------------------------------------------------- */

static bay_str put_text(push_item *self, bay_str text)
{
    char *at = self->text + self->bytes;
    if (text.len > 0) {
        memcpy(at, text.at, text.len);
    }
    self->bytes += text.len;
    return (bay_str){at, text.len};
}

static push_item *item_new(const a2a_delivery *from)
{
    size_t bytes = from->url.len + from->body.len + from->task_id.len + from->config_id.len +
                   from->tag.len + 1;
    for (size_t i = 0; i < from->field_count; i++) {
        bytes += from->fields[i].name.len + from->fields[i].value.len;
    }
    push_item *self = mem_alloc(sizeof(*self) + bytes);
    if (self == NULL) {
        return NULL;
    }
    *self = (push_item){.delivery = *from};
    a2a_delivery *to = &self->delivery;
    to->url = put_text(self, from->url);
    to->body = put_text(self, from->body);
    to->task_id = put_text(self, from->task_id);
    to->config_id = put_text(self, from->config_id);
    to->tag = put_text(self, from->tag);
    for (size_t i = 0; i < from->field_count; i++) {
        to->fields[i].name = put_text(self, from->fields[i].name);
        to->fields[i].value = put_text(self, from->fields[i].value);
    }
    to->attempt = 0;
    return self;
}

static size_t size_of(const push_item *self)
{
    return sizeof(*self) + self->bytes;
}

void a2a_push_item_free(a2a_push_item *self)
{
    if (self != NULL) {
        mem_wipe(self, size_of(self));
        mem_free(self);
    }
}

const a2a_delivery *a2a_push_item_delivery(const a2a_push_item *self)
{
    return &self->delivery;
}

static push_item *first_of(const push_hook *hook)
{
    return CONTAINER_OF(list_first(&hook->items), push_item, link);
}

static void hook_free(a2a_push *self, push_hook *hook)
{
    for (list_link *link; (link = list_pop(&hook->items)) != NULL;) {
        push_item *item = CONTAINER_OF(link, push_item, link);
        self->held_bytes -= size_of(item);
        a2a_push_item_free(item);
    }
    map_remove(&self->hooks, hook->key);
    list_remove(&hook->link);
    mem_free(hook);
}

/* --- what is next ----------------------------------------------------------------------------- */

static void send_ready(a2a_push *self)
{
    while (!self->is_held && self->busy < self->limits.under_way && !list_is_empty(&self->ready)) {
        push_hook *hook = CONTAINER_OF(list_pop(&self->ready), push_hook, link);
        a2a_delivery *next = &first_of(hook)->delivery;
        hook->is_under_way = true;
        list_push(&self->under_way, &hook->link);
        self->busy++;
        next->attempt++;
        self->ops->send(self->user, next);
    }
}

static void ask_for_wake(a2a_push *self)
{
    uint64_t soonest = UINT64_MAX;
    LIST_EACH(link, &self->delayed)
    {
        const push_hook *hook = CONTAINER_OF(link, push_hook, link);
        soonest = hook->due_ms < soonest ? hook->due_ms : soonest;
    }
    if (soonest != UINT64_MAX && soonest != self->wake_ms) {
        self->wake_ms = soonest;
        self->ops->wake(self->user, soonest);
    }
}

/* Removes the first delivery of the hook. */
static void drop_first(a2a_push *self, push_hook *hook)
{
    push_item *item = first_of(hook);
    list_remove(&item->link);
    self->held_bytes -= size_of(item);
    a2a_push_item_free(item);
    hook->count--;
    self->waiting--;
    if (hook->count == 0) {
        hook_free(self, hook);
    } else {
        list_push(&self->ready, &hook->link);
    }
}

static bool is_worth_another(const a2a_push *self, const a2a_delivery *delivery, int status)
{
    bool may_pass = status <= 0 || status == 408 || status == 429 || status >= 500;
    return may_pass && delivery->attempt < self->limits.attempts;
}

/* Doubled after each attempt; random in the upper half, so that deliveries that failed together are
 * not retried together. */
static uint64_t delay_ms(const a2a_push *self, uint32_t attempt)
{
    uint64_t delay = self->limits.first_delay_ms;
    for (uint32_t i = 1; i < attempt && delay < self->limits.most_delay_ms; i++) {
        delay *= 2;
    }
    delay = delay < self->limits.most_delay_ms ? delay : self->limits.most_delay_ms;
    return delay - (delay > 1 ? rand_u64() % (delay / 2 + 1) : 0);
}

static push_hook *hook_under_way(const a2a_push *self, uint64_t id)
{
    LIST_EACH(link, &self->under_way)
    {
        push_hook *hook = CONTAINER_OF(link, push_hook, link);
        if (first_of(hook)->delivery.id == id) {
            return hook;
        }
    }
    return NULL;
}

void a2a_push_done(a2a_push *self, uint64_t id, int status, const char *reason, uint64_t now_ms)
{
    push_hook *hook = hook_under_way(self, id);
    if (hook == NULL) {
        return;
    }
    a2a_delivery *delivery = &first_of(hook)->delivery;
    list_remove(&hook->link);
    hook->is_under_way = false;
    self->busy--;
    if (status >= 200 && status < 300) {
        if (self->ops->delivered != NULL) {
            self->ops->delivered(self->user, delivery);
        }
        drop_first(self, hook);
    } else if (is_worth_another(self, delivery, status)) {
        hook->due_ms = now_ms + delay_ms(self, delivery->attempt);
        list_push(&self->delayed, &hook->link);
        ask_for_wake(self);
    } else {
        self->ops->dead(self->user, delivery, reason);
        drop_first(self, hook);
    }
    send_ready(self);
}

void a2a_push_tick(a2a_push *self, uint64_t now_ms)
{
    self->wake_ms = 0;
    LIST_EACH(link, &self->delayed)
    {
        push_hook *hook = CONTAINER_OF(link, push_hook, link);
        if (hook->due_ms <= now_ms) {
            list_remove(link);
            list_push(&self->ready, link);
        }
    }
    send_ready(self);
    ask_for_wake(self);
}

/* --- taking in -------------------------------------------------------------------------------- */

static bay_err hook_of(a2a_push *self, const a2a_delivery *delivery, push_hook **out)
{
    buf key;
    buf_init(&key, KEY_BYTES);
    buf_printf(&key, "%zu %zu ", delivery->task_id.len, delivery->config_id.len);
    buf_str(&key, delivery->task_id);
    buf_str(&key, delivery->config_id);
    buf_str(&key, delivery->url);
    bay_err err = key.err;
    push_hook *hook = err == BAY_OK ? map_get(&self->hooks, buf_view(&key)) : NULL;
    if (err == BAY_OK && hook == NULL) {
        hook = mem_zalloc(sizeof(*hook) + key.len);
        err = hook == NULL ? BAY_ERR_NOMEM : BAY_OK;
        if (err == BAY_OK) {
            memcpy(hook->text, key.at, key.len);
            hook->key = (bay_str){hook->text, key.len};
            list_init(&hook->items);
            err = map_put(&self->hooks, hook->key, hook, NULL);
        }
        if (err != BAY_OK) {
            mem_free(hook);
            hook = NULL;
        }
    }
    buf_fini(&key);
    *out = hook;
    return err;
}

static bay_err push_give_up(a2a_push *self, const a2a_delivery *delivery, const char *why)
{
    self->ops->dead(self->user, delivery, why);
    return BAY_ERR_LIMIT;
}

/* Restored ones precede new ones. */
static void put_in_order(push_hook *hook, push_item *item)
{
    list_link *before = &hook->items.head;
    while (item->is_restored && before->prev != &hook->items.head &&
           !CONTAINER_OF(before->prev, push_item, link)->is_restored) {
        before = before->prev;
    }
    item->link.prev = before->prev;
    item->link.next = before;
    before->prev->next = &item->link;
    before->prev = &item->link;
}

static bool has_bytes_for(const a2a_push *self, size_t bytes)
{
    size_t most = self->limits.held_bytes;
    return most == 0 || (self->held_bytes <= most && bytes <= most - self->held_bytes);
}

/* The hook for the item; with BAY_ERR_LIMIT the reason why there is no room. */
static bay_err find_room(a2a_push *self, const push_item *item, push_hook **out,
                         const char **out_why)
{
    *out_why = "too many notifications wait";
    if (self->waiting >= self->limits.waiting) {
        return BAY_ERR_LIMIT;
    }
    if (!has_bytes_for(self, size_of(item))) {
        *out_why = "notifications that wait take too much memory";
        return BAY_ERR_LIMIT;
    }
    bay_err err = hook_of(self, &item->delivery, out);
    if (err != BAY_OK) {
        *out_why = "the names of task and webhook are too long";
        return err;
    }
    if ((*out)->count >= self->limits.per_webhook) {
        *out_why = "too many notifications wait for this webhook";
        if ((*out)->count == 0) {
            hook_free(self, *out);
        }
        return BAY_ERR_LIMIT;
    }
    return BAY_OK;
}

/* With BAY_OK the queue owns the item. */
static bay_err enqueue(a2a_push *self, push_item *item, push_origin origin)
{
    const char *why = NULL;
    push_hook *hook = NULL;
    bay_err err = find_room(self, item, &hook, &why);
    if (err == BAY_ERR_LIMIT && origin != PUSH_ACCEPTED) {
        return push_give_up(self, &item->delivery, why);
    }
    if (err != BAY_OK) {
        return err;
    }
    item->delivery.id = ++self->last_id;
    item->is_restored = origin == PUSH_RESTORED;
    put_in_order(hook, item);
    self->waiting++;
    self->held_bytes += size_of(item);
    if (hook->count++ == 0) {
        list_push(&self->ready, &hook->link);
    }
    if (origin == PUSH_NEW && self->ops->queued != NULL) {
        self->ops->queued(self->user, &item->delivery);
    }
    send_ready(self);
    return BAY_OK;
}

static bay_err enqueue_copy(a2a_push *self, const a2a_delivery *delivery, push_origin origin)
{
    if (delivery->body.len > self->limits.body_bytes) {
        return push_give_up(self, delivery, "the notification is too large");
    }
    push_item *item = item_new(delivery);
    bay_err err = item != NULL ? enqueue(self, item, origin) : BAY_ERR_NOMEM;
    if (err != BAY_OK) {
        a2a_push_item_free(item);
    }
    return err;
}

bay_err a2a_push_accept(a2a_push *self, a2a_push_item *item, bay_str tag)
{
    CHECK(tag.len <= A2A_PUSH_TAG_BYTES);
    if (tag.len > 0) {
        memcpy(item->tag, tag.at, tag.len);
    }
    item->delivery.tag = (bay_str){item->tag, tag.len};
    return enqueue(self, item, PUSH_ACCEPTED);
}

static void add_field(a2a_delivery *delivery, bay_str name, bay_str value)
{
    CHECK(delivery->field_count < A2A_PUSH_FIELDS);
    delivery->fields[delivery->field_count++] = (http_field){.name = name, .value = value};
}

/* A2A 1.0.1 section 4.3.3; no text defines the name of the token's field, and SDKs differ. */
static void add_fields(a2a_delivery *delivery, const push_config *config, a2a_form form,
                       bay_str login)
{
    static const bay_str versions[A2A_FORMS] = {[A2A_FORM_1_0] = STR_INIT("1.0"),
                                                [A2A_FORM_0_3] = STR_INIT("0.3"),
                                                [A2A_FORM_0_3_PROTO] = STR_INIT("0.3"),
                                                [A2A_FORM_0_1] = STR_INIT("0.1")};
    add_field(delivery, STR("Content-Type"),
              form == A2A_FORM_1_0 ? STR("application/a2a+json") : STR("application/json"));
    add_field(delivery, STR("A2A-Version"), versions[form]);
    if (login.len > 0) {
        add_field(delivery, STR("Authorization"), login);
    }
    if (config->token.len > 0) {
        add_field(delivery, STR("X-A2A-Notification-Token"), config->token);
        add_field(delivery, STR("A2A-Notification-Token"), config->token);
    }
}

/* `known`: the task as a value, if it is known. */
static bay_err write_body(a2a_form form, a2a_event *event, bay_str task, json_val known, buf *out)
{
    bay_str json = a2a_event_json(event);
    if (form == A2A_FORM_1_0) {
        buf_str(out, json);
        return out->err;
    }
    arena memory;
    json_val value;
    json_val task_value = JSON_NONE;
    arena_init(&memory, (json.len + task.len) * SCRATCH_GROWTH + SCRATCH_SPARE);
    bay_err err = a2a_event_value(event, &memory, &value);
    if (err == BAY_OK && task.len > 0) {
        err = a2a_text_view(task, known, &memory, &task_value);
    }
    if (err == BAY_OK) {
        err = a2a_push_write(form, value, task_value, out);
    }
    arena_fini(&memory);
    return err == BAY_OK || err == BAY_ERR_NOMEM || err == BAY_ERR_LIMIT ? err : BAY_ERR_INVALID;
}

/* The body is in `login` and `body` and in the configuration. BAY_ERR_LIMIT: too large. */
static bay_err write_delivery(const push_config *config, a2a_form form, a2a_event *event,
                              bay_str task, json_val known, buf *login, buf *body,
                              a2a_delivery *out)
{
    *out = (a2a_delivery){.url = config->url, .task_id = config->task_id, .config_id = config->id};
    if (config->credentials.len > 0) {
        buf_str(login, config->scheme);
        buf_char(login, ' ');
        buf_str(login, config->credentials);
    }
    add_fields(out, config, form, buf_view(login));
    bay_err err = login->err != BAY_OK ? login->err : write_body(form, event, task, known, body);
    out->body = buf_view(body);
    return err;
}

/* `take` gets the delivery of an event, valid until it returns, and the result of making it:
 * BAY_OK, or BAY_ERR_LIMIT without a body. */
typedef bay_err (*push_taker)(void *user, const a2a_delivery *delivery, bay_err err);

static bay_err deliver_to(json_val config, a2a_form form, a2a_event *event, bay_str task,
                          json_val known, size_t body_bytes, push_taker take, void *user)
{
    arena memory;
    push_config read;
    a2a_delivery delivery;
    buf login;
    buf body;
    arena_init(&memory, (size_t)json_raw(config).len * 2 + SCRATCH_SPARE);
    buf_init_secret(&login, FIELD_BYTES);
    buf_init(&body, body_bytes);
    bay_err err = read_config(config, &memory, &read, NULL);
    if (err == BAY_OK) {
        err = write_delivery(&read, form, event, task, known, &login, &body, &delivery);
        err = err == BAY_OK || err == BAY_ERR_LIMIT ? take(user, &delivery, err) : err;
    }
    buf_fini(&login);
    buf_fini(&body);
    arena_fini(&memory);
    return err == BAY_ERR_PROTOCOL ? BAY_ERR_INVALID : err;
}

static bay_err take_new(void *user, const a2a_delivery *delivery, bay_err err)
{
    return err == BAY_OK ? enqueue_copy(user, delivery, PUSH_NEW)
                         : push_give_up(user, delivery, "the notification is too large");
}

static bay_err take_item(void *user, const a2a_delivery *delivery, bay_err err)
{
    push_item **out = user;
    push_item *item = err == BAY_OK ? item_new(delivery) : NULL;
    if (item == NULL) {
        return err == BAY_OK ? BAY_ERR_NOMEM : err;
    }
    *out = item;
    return BAY_OK;
}

bay_err a2a_push_add(a2a_push *self, json_val config, a2a_form form, a2a_event *event, bay_str task,
                     uint64_t now_ms)
{
    (void)now_ms; /* new ones are due at once */
    return deliver_to(config, form, event, task, JSON_NONE, self->limits.body_bytes, take_new,
                      self);
}

bay_err a2a_push_prepare(json_val config, a2a_form form, a2a_event *event, json_val task,
                         size_t body_bytes, a2a_push_item **out)
{
    return deliver_to(config, form, event, json_raw(task), task, body_bytes, take_item, out);
}

bay_err a2a_push_restore(a2a_push *self, const a2a_delivery *kept, uint64_t now_ms)
{
    (void)now_ms;
    CHECK(kept->field_count <= A2A_PUSH_FIELDS);
    return self->is_held ? enqueue_copy(self, kept, PUSH_RESTORED) : BAY_ERR_STATE;
}

void a2a_push_hold(a2a_push *self, bool is_held)
{
    self->is_held = is_held;
    send_ready(self);
}

/* --- making ----------------------------------------------------------------------------------- */

bay_err a2a_push_new(const a2a_push_limits *limits, const a2a_push_ops *ops, void *user,
                     a2a_push **out)
{
    a2a_push *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->limits = limits != NULL ? *limits : a2a_push_default_limits;
    self->ops = ops;
    self->user = user;
    map_init(&self->hooks, (size_t)self->limits.waiting + 1);
    list_init(&self->ready);
    list_init(&self->delayed);
    list_init(&self->under_way);
    *out = self;
    return BAY_OK;
}

void a2a_push_free(a2a_push *self)
{
    if (self == NULL) {
        return;
    }
    list *const lists[] = {&self->ready, &self->delayed, &self->under_way};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        while (!list_is_empty(lists[i])) {
            hook_free(self, CONTAINER_OF(list_first(lists[i]), push_hook, link));
        }
    }
    map_fini(&self->hooks);
    mem_free(self);
}

size_t a2a_push_waiting(const a2a_push *self)
{
    return self->waiting;
}

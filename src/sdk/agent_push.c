/* Sending. An attempt is one POST by a client of the push sender's own, whose guard sees each
 * address in the moment before it is connected to. Whatever a webhook answers, little of it is
 * read, and an attempt ends when its time is over. */
#include "sdk/agent_push.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "sdk/agent_push_parts.h"
#include "wire/header.h"
#include "wire/uri.h"

enum {
    REFUSED = 403, /* as the queue is told of what no repetition changes */
    ORIGIN_CONNECTIONS = 8,
};

/* --- one attempt ------------------------------------------------------------------------------ */

static void end_flight(push_flight *flight, int status, const char *reason)
{
    agent_push *self = flight->of;
    uint64_t id = flight->id;
    loop_timer_stop(self->loop, &flight->timer);
    loop_undefer(self->loop, &flight->ending);
    flight->call = NULL;
    flight->id = 0;
    if (!self->is_freed) {
        a2a_push_done(self->queue, id, status, reason, loop_now_ms(self->loop));
    }
}

static const char *reason_of(int status)
{
    return status >= 300 && status < 400   ? "the webhook redirects, which is not followed"
           : status >= 400 && status < 500 ? "the webhook refused it"
           : status >= 500                 ? "the webhook failed"
                                           : "the webhook's answer makes no sense";
}

static void on_head(void *user, int status, const http_field *fields, size_t count)
{
    (void)fields;
    (void)count;
    ((push_flight *)user)->status = status;
}

static void on_body(void *user, bay_str bytes)
{
    push_flight *flight = user;
    flight->answer_bytes += bytes.len;
    if (flight->answer_bytes > PUSH_ANSWER_BYTES) {
        http_call_cancel(flight->call);
        end_flight(flight, flight->status, reason_of(flight->status));
    }
}

static void agent_push_on_end(void *user)
{
    push_flight *flight = user;
    end_flight(flight, flight->status, reason_of(flight->status));
}

static void on_failed(void *user, bay_err err, bool was_sent, const char *text)
{
    push_flight *flight = user;
    (void)was_sent; /* at least once: it may have arrived */
    if (flight->status != 0) {
        end_flight(flight, flight->status, reason_of(flight->status));
    } else {
        end_flight(flight, err == BAY_ERR_DENIED ? REFUSED : 0, text);
    }
}

static const http_call_events call_events = {
    .head = on_head, .body = on_body, .end = agent_push_on_end, .failed = on_failed};

static void on_time_out(void *argument)
{
    push_flight *flight = argument;
    http_call_cancel(flight->call);
    end_flight(flight, flight->status,
               flight->status != 0 ? reason_of(flight->status) : "the webhook did not answer");
}

static void on_ending(void *argument)
{
    push_flight *flight = argument;
    end_flight(flight, flight->status, flight->reason);
}

/* The queue is told in a later turn. */
static void end_later(push_flight *flight, int status, const char *reason)
{
    flight->status = status;
    flight->reason = reason;
    loop_defer(flight->of->loop, &flight->ending);
}

static push_flight *free_flight(agent_push *self)
{
    for (size_t i = 0; i < PUSH_FLIGHTS; i++) {
        if (self->flights[i].id == 0) {
            return &self->flights[i];
        }
    }
    return NULL;
}

static void on_send(void *user, const a2a_delivery *delivery)
{
    agent_push *self = user;
    push_flight *flight = free_flight(self);
    CHECK(flight != NULL); /* the queue has no more under way than there are */
    flight->id = delivery->id;
    flight->status = 0;
    flight->answer_bytes = 0;
    http_call_spec spec = {.method = STR("POST"),
                           .url = delivery->url,
                           .fields = delivery->fields,
                           .field_count = delivery->field_count,
                           .body = delivery->body,
                           .has_body = true,
                           .may_run_twice = true};
    bay_err err = loop_timer_start(self->loop, &flight->timer, self->limits.timeout_ms);
    if (err == BAY_OK) {
        err = http_client_call(self->http, &spec, &call_events, flight, &flight->call, NULL);
    }
    if (err == BAY_OK) {
        return;
    }
    loop_timer_stop(self->loop, &flight->timer);
    if (err == BAY_ERR_INVALID) {
        end_later(flight, REFUSED, "the webhook's URL or its fields cannot be sent");
    } else {
        end_later(flight, 0, bay_err_text(err));
    }
}

/* --- the queue's wishes ----------------------------------------------------------------------- */

static void on_queued(void *user, const a2a_delivery *delivery)
{
    push_keep(user, delivery);
}

static void on_delivered(void *user, const a2a_delivery *delivery)
{
    push_forget(user, delivery);
}

static void on_dead(void *user, const a2a_delivery *delivery, const char *reason)
{
    push_bury(user, delivery, reason);
}

static void on_wake_time(void *argument)
{
    agent_push *self = argument;
    a2a_push_tick(self->queue, loop_now_ms(self->loop));
}

static void on_wake(void *user, uint64_t at_ms)
{
    agent_push *self = user;
    uint64_t now = loop_now_ms(self->loop);
    if (loop_timer_start(self->loop, &self->wake, at_ms > now ? at_ms - now : 0) != BAY_OK) {
        LOG(LOG_WARN, "push", "no memory for a timer: notifications wait for the next one");
    }
}

static const a2a_push_ops queue_ops = {.queued = on_queued,
                                       .send = on_send,
                                       .delivered = on_delivered,
                                       .dead = on_dead,
                                       .wake = on_wake};

/* --- the guard -------------------------------------------------------------------------------- */

static bool permit(void *user, bay_str host, const net_address *address)
{
    const agent_push *self = user;
    return address_rules_permit(self->rules, host, address);
}

static bay_err agent_push_refuse(a2a_fault *fault, const char *what)
{
    (void)a2a_fault_set(fault, A2A_E_INVALID_PARAMS,
                        "url: the webhook is at %s, which this agent "
                        "does not send to",
                        what);
    return BAY_ERR_DENIED;
}

bay_err agent_push_url(void *user, bay_str url, a2a_fault *fault)
{
    const agent_push *self = user;
    uri parts;
    address_class kind;
    if (url.len > A2A_PUSH_URL_BYTES || uri_parse(&parts, url) != BAY_OK || parts.host.len == 0 ||
        parts.has_userinfo ||
        !(str_eq_nocase(parts.scheme, STR("https")) || str_eq_nocase(parts.scheme, STR("http")))) {
        (void)a2a_fault_set(fault, A2A_E_INVALID_PARAMS, "url: no http or https URL of a webhook");
        return BAY_ERR_INVALID;
    }
    /* A name is looked up when it is connected to, each time anew. */
    return address_rules_permit_url(self->rules, url, &kind)
               ? BAY_OK
               : agent_push_refuse(fault, address_class_text(kind));
}

/* --- the public interface --------------------------------------------------------------------- */

void agent_push_event(void *user, bay_str principal, json_val config, a2a_form form,
                      a2a_event *event, bay_str task)
{
    agent_push *self = user;
    (void)principal;
    bay_err err = a2a_push_add(self->queue, config, form, event, task, loop_now_ms(self->loop));
    if (err != BAY_OK && err != BAY_ERR_LIMIT) { /* of a limit `dead` was told */
        LOG(LOG_WARN, "push", "a notification could not be queued: %s", bay_err_text(err));
    }
}

/* --- what is kept first ----------------------------------------------------------------------- */

static void take_free(push_take *take)
{
    a2a_push_item_free(take->item);
    mem_free(take);
}

static void drop_row(agent_push *self, const push_take *take)
{
    if (take->key_len > 0) {
        a2a_delivery row = {.tag = {take->key, take->key_len}};
        push_forget(self, &row);
    }
}

void push_taken(push_take *take, bay_err err)
{
    agent_push *self = take->of;
    self->takes--;
    if (err == BAY_OK && self->is_freed) {
        err = BAY_ERR_CANCELLED; /* its row stays: it is sent after the next start */
    } else if (err == BAY_OK) {
        err = a2a_push_accept(self->queue, take->item, (bay_str){take->key, take->key_len});
        if (err == BAY_OK) {
            take->item = NULL;
        } else {
            drop_row(self, take);
        }
    }
    take->done(take->user, err);
    take_free(take);
}

static void on_take_ending(void *argument)
{
    push_take *take = argument;
    list_remove(&take->link);
    push_taken(take, take->err);
}

bay_err agent_push_take(agent_push *self, a2a_push_item *item, agent_push_done done, void *user)
{
    bool is_full = agent_push_waiting(self) + self->takes >= self->limits.waiting;
    push_take *take = is_full || self->takes >= PUSH_TAKES ? NULL : mem_zalloc(sizeof(*take));
    if (take == NULL) {
        a2a_push_item_free(item);
        return is_full ? BAY_ERR_LIMIT : self->takes >= PUSH_TAKES ? BAY_ERR_BUSY : BAY_ERR_NOMEM;
    }
    *take = (push_take){.of = self, .item = item, .done = done, .user = user};
    take->ending = (loop_task){.function = on_take_ending, .argument = take};
    bay_err err = BAY_OK;
    if (self->store != NULL) {
        err = push_keep_first(take);
    } else {
        list_push(&self->ending, &take->link);
        loop_defer(self->loop, &take->ending);
    }
    if (err != BAY_OK) {
        take_free(take);
        return err;
    }
    self->takes++;
    return BAY_OK;
}

static void cancel_takes(agent_push *self)
{
    list_link *at;
    while ((at = list_first(&self->ending)) != NULL) {
        push_take *take = CONTAINER_OF(at, push_take, link);
        loop_undefer(self->loop, &take->ending);
        take->err = BAY_ERR_CANCELLED;
        on_take_ending(take);
    }
}

bay_err agent_push_allow(agent_push *self, const bay_str *allow, size_t count, bay_diag *diag)
{
    address_rules *rules = NULL;
    bay_err err = address_rules_new(allow, count, &rules, diag);
    if (err == BAY_OK) {
        address_rules_free(self->rules);
        self->rules = rules;
    }
    return err;
}

size_t agent_push_waiting(const agent_push *self)
{
    return a2a_push_waiting(self->queue);
}

uint64_t agent_push_dead(const agent_push *self)
{
    return self->dead;
}

static bay_err open_parts(agent_push *self, const agent_push_options *options, bay_diag *diag)
{
    http_client_options http = {.limits = http_client_default_limits,
                                .tls = options->tls,
                                .permit = permit,
                                .permit_user = self};
    http.limits.connections_per_origin = ORIGIN_CONNECTIONS;
    bay_err err = address_rules_new(options->allow, options->allow_count, &self->rules, diag);
    if (err == BAY_OK) {
        err = http_client_new(self->loop, &http, &self->http);
    }
    if (err == BAY_OK) {
        err = a2a_push_new(&self->limits, &queue_ops, self, &self->queue);
    }
    return err;
}

bay_err agent_push_new(const agent_push_options *options, agent_push **out, bay_diag *diag)
{
    agent_push *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->loop = options->loop;
    self->store = options->store;
    self->limits = options->limits != NULL ? *options->limits : a2a_push_default_limits;
    if (self->limits.under_way > PUSH_FLIGHTS) {
        self->limits.under_way = PUSH_FLIGHTS;
    }
    list_init(&self->ending);
    loop_timer_init(&self->wake, on_wake_time, self);
    for (size_t i = 0; i < PUSH_FLIGHTS; i++) {
        push_flight *flight = &self->flights[i];
        flight->of = self;
        flight->ending = (loop_task){.function = on_ending, .argument = flight};
        loop_timer_init(&flight->timer, on_time_out, flight);
    }
    push_make_prefix(self);
    bay_err err = open_parts(self, options, diag);
    if (err != BAY_OK) {
        agent_push_free(self);
        return err;
    }
    push_restore(self);
    *out = self;
    return BAY_OK;
}

void agent_push_free(agent_push *self)
{
    if (self == NULL) {
        return;
    }
    self->is_freed = true;
    cancel_takes(self);
    loop_timer_stop(self->loop, &self->wake);
    http_client_free(self->http); /* its calls fail: the flights end, and nobody is told */
    for (size_t i = 0; i < PUSH_FLIGHTS; i++) {
        loop_timer_stop(self->loop, &self->flights[i].timer);
        loop_undefer(self->loop, &self->flights[i].ending);
    }
    a2a_push_free(self->queue);
    address_rules_free(self->rules);
    push_release(self);
}

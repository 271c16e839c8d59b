/* Deliveries to webhooks: their bodies, fields and retries. Sans I/O: a queue that says what is to
 * be sent now and is told the result. At least once; per webhook in the order of events; back-off
 * with jitter; deliveries that are given up are reported, for a dead-letter record. */
#ifndef A2A_PUSH_H
#define A2A_PUSH_H

#include "a2a/event.h"
#include "wire/field.h"

typedef struct a2a_push a2a_push;

typedef struct a2a_push_limits {
    uint32_t waiting;        /* 10,000 deliveries in all; further ones are dead letters at once */
    uint32_t per_webhook;    /* 1,000 */
    uint32_t under_way;      /* 64 concurrently, one per webhook */
    uint32_t attempts;       /* 8 */
    uint32_t first_delay_ms; /* 1,000; doubled, with jitter … */
    uint32_t most_delay_ms;  /* … up to 300,000 */
    uint32_t timeout_ms;     /* 15,000 for one attempt */
    size_t body_bytes;       /* 8 MiB of one delivery */
    size_t held_bytes;       /* 256 MiB of all waiting ones; 0: only the limits above */
} a2a_push_limits;

extern const a2a_push_limits a2a_push_default_limits;

enum { A2A_PUSH_FIELDS = 8 };

typedef struct a2a_delivery {
    uint64_t id; /* of this queue, from 1 */
    bay_str url;
    bay_str body;
    http_field
        fields[A2A_PUSH_FIELDS]; /* Content-Type, Authorization, both token headers, A2A-Version */
    size_t field_count;
    uint32_t attempt; /* from 1; 0: no attempt yet */
    bay_str task_id;
    bay_str config_id;
    bay_str tag; /* of a restored one, as it was given; "" */
} a2a_delivery;

/* Views live until the function returns, those of `send` until a2a_push_done. Inside, only
 * a2a_push_waiting may be called. */
typedef struct a2a_push_ops {
    /* A new delivery waits: store it here. NULL: not reported. */
    void (*queued)(void *user, const a2a_delivery *delivery);
    /* Sends it; a2a_push_done follows, never inside. */
    void (*send)(void *user, const a2a_delivery *delivery);
    /* It was delivered. NULL: not reported. */
    void (*delivered)(void *user, const a2a_delivery *delivery);
    /* Given up, with the last reason, which has no secrets; the delivery's fields do. One that
     * never waited (a limit) has id 0. */
    void (*dead)(void *user, const a2a_delivery *delivery, const char *reason);
    void (*wake)(void *user, uint64_t at_ms); /* call a2a_push_tick then */
} a2a_push_ops;

bay_err a2a_push_new(const a2a_push_limits *limits, const a2a_push_ops *ops, void *user,
                     a2a_push **out) BAY_MUST_CHECK;
void a2a_push_free(a2a_push *self);

enum {
    A2A_PUSH_URL_BYTES = 2048,        /* of a webhook's URL */
    A2A_PUSH_CREDENTIAL_BYTES = 8192, /* of its token and of its credentials, each */
    A2A_PUSH_TAG_BYTES = 64,          /* of the name under which an accepted delivery is stored */
};

/* Checks whether a TaskPushNotificationConfig (1.0) can be delivered to: an absolute http or https
 * URL without user information, and token, scheme and credentials that are valid in a header field
 * (no CR, LF or other control byte, so that nobody can inject header fields). For code that accepts
 * configurations; a2a_handler.push_url decides about the URL's address. Errors: BAY_ERR_PROTOCOL
 * with `fault` (A2A_E_INVALID_PARAMS; without values of the configuration), BAY_ERR_NOMEM. Threads:
 * any. Source: A2A 1.0.1 section 4.3.3. */
bay_err a2a_push_config_check(json_val config, a2a_fault *fault) BAY_MUST_CHECK;
/* `config`: TaskPushNotificationConfig, 1.0; `task`: the whole current task (for webhooks of 0.3),
 * "" if no webhook needs it. Deliveries of one configuration are sent one after the other. Copies;
 * secrets are wiped at the end. Errors: BAY_ERR_LIMIT (`dead` was called), BAY_ERR_NOMEM,
 * BAY_ERR_INVALID: a configuration that a2a_push_config_check refuses, or an invalid event. */
bay_err a2a_push_add(a2a_push *self, json_val config, a2a_form form, a2a_event *event, bay_str task,
                     uint64_t now_ms) BAY_MUST_CHECK;
/* The same in two steps, for callers that store a delivery before it is queued. An item is a
 * delivery that is not queued; its block is wiped when it is freed. */
typedef struct a2a_push_item a2a_push_item;
/* Owns: the caller, until a2a_push_item_free or a2a_push_accept. Errors: as a2a_push_add,
 * BAY_ERR_LIMIT for a body of more than `body_bytes`; `dead` is not called. Threads: any. */
bay_err a2a_push_prepare(json_val config, a2a_form form, a2a_event *event, json_val task,
                         size_t body_bytes, a2a_push_item **out) BAY_MUST_CHECK;
const a2a_delivery *a2a_push_item_delivery(const a2a_push_item *self);
void a2a_push_item_free(a2a_push_item *self); /* NULL is allowed */
/* Queues it; with BAY_OK the queue owns it. `tag` (at most A2A_PUSH_TAG_BYTES) is its name in the
 * store; `queued` is not called. Errors: BAY_ERR_LIMIT: too many wait; `dead` is not called, and
 * the caller may retry. BAY_ERR_NOMEM. */
bay_err a2a_push_accept(a2a_push *self, a2a_push_item *item, bay_str tag) BAY_MUST_CHECK;
/* While held nothing is sent: for the time in which stored deliveries are restored. */
void a2a_push_hold(a2a_push *self, bool is_held);
/* One that an earlier process stored, while held: url, body, fields, task, configuration and tag
 * are used; `queued` is not called. It precedes new ones of its configuration, in the order of
 * these calls. Errors: BAY_ERR_LIMIT (`dead` was called), BAY_ERR_NOMEM, BAY_ERR_STATE: not held.
 */
bay_err a2a_push_restore(a2a_push *self, const a2a_delivery *kept, uint64_t now_ms) BAY_MUST_CHECK;
/* `status` 0: no answer. 2xx: delivered; 408, 429, 5xx and 0: retry; others: dead. */
void a2a_push_done(a2a_push *self, uint64_t id, int status, const char *reason, uint64_t now_ms);
void a2a_push_tick(a2a_push *self, uint64_t now_ms);
size_t a2a_push_waiting(const a2a_push *self);

#endif

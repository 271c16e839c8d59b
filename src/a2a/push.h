/* Deliveries to webhooks: which body, which fields, when again. Sans I/O: a queue that says what is
 * to be sent now and hears how it went. At least once; per webhook in the order of events; back-off
 * with jitter; what was given up is told, for a dead-letter record. */
#ifndef A2A_PUSH_H
#define A2A_PUSH_H

#include "a2a/event.h"
#include "wire/field.h"

typedef struct a2a_push a2a_push;

typedef struct a2a_push_limits {
    uint32_t waiting;        /* 10,000 deliveries in all; further ones are dead letters at once */
    uint32_t per_webhook;    /* 1,000 */
    uint32_t under_way;      /* 64 at one time, one per webhook */
    uint32_t attempts;       /* 8 */
    uint32_t first_delay_ms; /* 1,000; doubled, with jitter … */
    uint32_t most_delay_ms;  /* … up to 300,000 */
    uint32_t timeout_ms;     /* 15,000 for one attempt */
    size_t body_bytes;       /* 8 MiB of one delivery */
    size_t held_bytes;       /* 256 MiB of all that wait; 0: what the numbers above allow */
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
    uint32_t attempt; /* from 1; 0: none was made yet */
    bay_str task_id;
    bay_str config_id;
    bay_str tag; /* of a restored one, as it was given; "" */
} a2a_delivery;

/* Views live until the function returns, those of `send` until a2a_push_done. Nothing of the queue
 * may be called inside but a2a_push_waiting. */
typedef struct a2a_push_ops {
    /* A new delivery waits: the place to keep it. NULL: not told. */
    void (*queued)(void *user, const a2a_delivery *delivery);
    /* Sends it; a2a_push_done follows, never inside. */
    void (*send)(void *user, const a2a_delivery *delivery);
    /* It arrived. NULL: not told. */
    void (*delivered)(void *user, const a2a_delivery *delivery);
    /* Given up, with the last reason. No secret is in `reason`; the delivery's fields have some.
     * One that never waited (a limit) has id 0. */
    void (*dead)(void *user, const a2a_delivery *delivery, const char *reason);
    void (*wake)(void *user, uint64_t at_ms); /* call a2a_push_tick then */
} a2a_push_ops;

bay_err a2a_push_new(const a2a_push_limits *limits, const a2a_push_ops *ops, void *user,
                     a2a_push **out) BAY_MUST_CHECK;
void a2a_push_free(a2a_push *self);

enum {
    A2A_PUSH_URL_BYTES = 2048,        /* of a webhook's URL */
    A2A_PUSH_CREDENTIAL_BYTES = 8192, /* of its token and of its credentials, each */
    A2A_PUSH_TAG_BYTES = 64,          /* of the name that an accepted delivery is kept by */
};

/* Whether a TaskPushNotificationConfig (1.0) can be delivered to at all: an absolute http or https
 * URL without user information, and token, scheme and credentials that can stand in a header field
 * (no CR, LF or other control byte: nobody writes header fields of ours). For whoever takes
 * configurations in; where the URL may lead is a2a_handler.push_url's affair.
 * Errors: BAY_ERR_PROTOCOL with `fault` (A2A_E_INVALID_PARAMS; no value of the configuration in
 * it), BAY_ERR_NOMEM. Threads: any. Source: A2A 1.0.1 section 4.3.3. */
bay_err a2a_push_config_check(json_val config, a2a_fault *fault) BAY_MUST_CHECK;
/* `config`: TaskPushNotificationConfig, 1.0; `task`: the whole task as it is (0.3 webhooks get it),
 * "" when nobody needs it. Deliveries of one configuration go one after the other. Copies; secrets
 * are wiped at the end. Errors: BAY_ERR_LIMIT (then `dead` was told), BAY_ERR_NOMEM,
 * BAY_ERR_INVALID: a configuration that a2a_push_config_check refuses, an event that is none. */
bay_err a2a_push_add(a2a_push *self, json_val config, a2a_form form, a2a_event *event, bay_str task,
                     uint64_t now_ms) BAY_MUST_CHECK;
/* The same in two steps, for whoever must know that a delivery is kept before it is queued. An item
 * is a delivery that nobody has queued: its block is wiped when it goes. */
typedef struct a2a_push_item a2a_push_item;
/* Owns: the caller, until a2a_push_item_free or a2a_push_accept. Errors: as a2a_push_add,
 * BAY_ERR_LIMIT for a body of more than `body_bytes`; nobody else is told. Threads: any. */
bay_err a2a_push_prepare(json_val config, a2a_form form, a2a_event *event, json_val task,
                         size_t body_bytes, a2a_push_item **out) BAY_MUST_CHECK;
const a2a_delivery *a2a_push_item_delivery(const a2a_push_item *self);
void a2a_push_item_free(a2a_push_item *self); /* NULL is fine */
/* Queues it; with BAY_OK it is the queue's. `tag` (at most A2A_PUSH_TAG_BYTES) is its name where it
 * is kept; `queued` is not told. Errors: BAY_ERR_LIMIT: too much waits; nobody is told, and it may
 * be tried again later. BAY_ERR_NOMEM. */
bay_err a2a_push_accept(a2a_push *self, a2a_push_item *item, bay_str tag) BAY_MUST_CHECK;
/* While held nothing is sent; for the time in which what was kept is being restored. */
void a2a_push_hold(a2a_push *self, bool is_held);
/* One that was kept by an earlier process, while held: url, body, fields, task, configuration and
 * tag count; `queued` is not told. It goes before new ones of its configuration, in the order of
 * these calls. Errors: BAY_ERR_LIMIT (`dead` was told), BAY_ERR_NOMEM, BAY_ERR_STATE: not held. */
bay_err a2a_push_restore(a2a_push *self, const a2a_delivery *kept, uint64_t now_ms) BAY_MUST_CHECK;
/* `status` 0: no answer came. 2xx: delivered; 408, 429, 5xx and 0: again; all else: dead. */
void a2a_push_done(a2a_push *self, uint64_t id, int status, const char *reason, uint64_t now_ms);
void a2a_push_tick(a2a_push *self, uint64_t now_ms);
size_t a2a_push_waiting(const a2a_push *self);

#endif

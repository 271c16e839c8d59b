/* What agent_push.c (sending) and agent_push_store.c (keeping) share. Nobody else includes this. */
#ifndef SDK_AGENT_PUSH_PARTS_H
#define SDK_AGENT_PUSH_PARTS_H

#include "base/list.h"
#include "base/log.h"
#include "http/http_client.h"
#include "net/address.h"
#include "sdk/agent_push.h"

enum {
    PUSH_FLIGHTS = 64,            /* attempts under way at one time */
    PUSH_PREFIX_BYTES = 32,       /* of this process's keys */
    PUSH_KEY_BYTES = 64,          /* of a row's key */
    PUSH_DEAD_BODY = 64 << 10,    /* of a notification that a dead letter repeats */
    PUSH_SCAN_ROWS = 100,         /* of one look at what was kept */
    PUSH_ANSWER_BYTES = 64 << 10, /* of a webhook's answer that are read before it is cut */
    PUSH_TAKES = 256,             /* that are being kept at one time; a further one is busy */
};

/* One attempt. All of them are there from the start: an attempt cannot fail for their memory. */
typedef struct push_flight {
    agent_push *of;
    http_call *call;
    uint64_t id; /* of its delivery; 0: free */
    int status;  /* 0: no answer yet */
    size_t answer_bytes;
    loop_timer timer; /* for all of it */
    loop_task ending; /* it failed before it began */
    const char *reason;
} push_flight;

struct agent_push {
    loop *loop;
    store *store;
    http_client *http;
    address_rules *rules;
    a2a_push *queue;
    a2a_push_limits limits;
    loop_timer wake;
    uint64_t dead;
    log_pace complaints;
    uint32_t store_calls; /* the store will call back so often */
    uint32_t takes;
    list ending;        /* takes whose ends are told in a later turn */
    uint64_t last_take; /* in the keys of their rows */
    bool is_freed;
    char prefix[PUSH_PREFIX_BYTES + 1];
    char scanned[PUSH_KEY_BYTES + 1]; /* the last row that was restored */
    push_flight flights[PUSH_FLIGHTS];
};

/* One that is kept before it is queued. */
typedef struct push_take {
    agent_push *of;
    a2a_push_item *item;
    agent_push_done done;
    void *user;
    bay_err err;
    loop_task ending; /* without a store */
    list_link link;   /* in agent_push.ending, for that time */
    size_t key_len;
    char key[PUSH_KEY_BYTES];
} push_take;

/* agent_push_store.c */
void push_make_prefix(agent_push *self);
void push_keep(agent_push *self, const a2a_delivery *delivery);
void push_forget(agent_push *self, const a2a_delivery *delivery);
/* Begins to keep what is taken; push_taken follows, never inside. */
bay_err push_keep_first(push_take *take) BAY_MUST_CHECK;
void push_bury(agent_push *self, const a2a_delivery *delivery, const char *reason);
/* Holds the queue until everything that was kept is in it. */
void push_restore(agent_push *self);
/* The last of the push sender's memory, once nothing calls it any more. */
void push_release(agent_push *self);

/* agent_push.c */
void push_taken(push_take *take, bay_err err);

#endif

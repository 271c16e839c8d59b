/* The parts of an upstream's owner: its calls, its link's life, how a link is opened, and what it
 * remembers for the next link. */
#ifndef GATEWAY_UPSTREAM_LOCAL_H
#define GATEWAY_UPSTREAM_LOCAL_H

#include "gateway/upstream_parts.h"
#include "transport/mcp_link.h"

enum {
    LOCAL_PATIENCE_MS = 2000,   /* calls wait for a restart this near; else they fail at once */
    LOCAL_HEALTHY_MS = 10000,   /* ready for so long: the next crash starts with least back-off */
    LOCAL_LAST_MOMENT_MS = 500, /* between a broken stdin and the end of its process */
    LOCAL_MOST_ATTEMPTS = 2,
    LOCAL_MAX_SUBSCRIPTIONS = 4096,
    LOCAL_MAX_URI_BYTES = 8192,
};

typedef struct local {
    upstream base;
    http_client *http; /* borrowed, or `own_http` */
    http_client *own_http;
    tls_context *tls; /* of a server with certificates of its own */
    mcp_link *link;
    list waiting;
    list open;
    size_t waiting_count;
    size_t open_count;
    uint32_t failures; /* in a row */
    uint64_t ready_at_ms;
    uint64_t restart_at_ms;
    loop_timer restart;
    loop_timer idle;
    loop_task settle; /* what must not happen inside the link's own callbacks */
    list subscriptions;
    size_t subscription_count;
    mcp_log_level level;
    bool is_link_broken;
    bool is_link_closing; /* stopped after idling */
    bool is_unreachable;  /* a call found nobody at the URL */
    bool is_unwritable;   /* the process reads no more: calls wait for the next one */
    bool is_closing;
    void (*close_done)(void *user);
    void *close_user;
} local;

local *local_of(upstream *self);

/* upstream_calls.c */
void local_send(upstream *base, upstream_call *call);
void local_cancel(upstream_call *call, bay_str reason);
void local_pause(upstream_call *call, bool is_paused);
void local_answer(upstream_call *call, bay_str id, bay_str result, int code, bay_str message);
void local_hand_over_waiting(local *self);
void local_fail_waiting(local *self, bay_err err, const char *text);
void local_arm_idle(local *self);

/* upstream_local.c: STARTING, and what waits goes to the new engine. */
void local_begin(local *self);

/* upstream_open.c: makes `self->link`. */
bay_err local_open(local *self, const mcp_client_events *events, bay_diag *diag) BAY_MUST_CHECK;

/* upstream_wishes.c */
void local_subscribe(upstream *base, bay_str uri, bool is_wanted);
void local_set_level(upstream *base, mcp_log_level level);
void local_renew_wishes(local *self, mcp_client *client, uint64_t now_ms);
void local_forget_wishes(local *self);

#endif

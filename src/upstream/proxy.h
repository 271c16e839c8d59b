/* The parts of a proxy: an upstream whose owner is on another loop.
 *
 *   proxy       what it sends to the owner, the interface
 *   publish     what the owner sends to its proxies
 *   loop_call   one call that crosses the loops */
#ifndef UPSTREAM_PROXY_H
#define UPSTREAM_PROXY_H

#include "net/loop_pair.h"
#include "upstream/parts.h"

typedef struct upstream_proxy {
    upstream base;
    struct proxy_link *link; /* to the owner; NULL: the owner's end is closed */
    list open;               /* calls that have no answer yet */
    mcp_log_level level;
    bool is_closed; /* or closing */
    void (*close_done)(void *user);
    void *close_user;
} upstream_proxy;

/* What is between a proxy (near) and its owner (far). The near end is open while `proxy->link` is
 * set, the far end while it is in the owner's list. */
typedef struct proxy_link {
    loop_pair pair;
    upstream_proxy *proxy;
    list_link link;            /* in the owner's `proxies` */
    bool has_dropped_messages; /* the owner's: it is in the log */
} proxy_link;

/* publish.c: the near end of a link, to the proxy. */
extern const loop_pair_events proxy_link_near_events;

/* loop_call.c: the members of upstream_ops for calls. */
void upstream_loop_call_send(upstream *base, upstream_call *call);
void upstream_loop_call_cancel(upstream_call *call, bay_str reason);
void upstream_loop_call_pause(upstream_call *call, bool is_paused);
void upstream_loop_call_answer(upstream_call *call, bay_str id, bay_str result, int code,
                               bay_str message);

#endif

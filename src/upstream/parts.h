/* What the two kinds of upstream share. */
#ifndef UPSTREAM_PARTS_H
#define UPSTREAM_PARTS_H

#include <stdatomic.h>

#include "base/list.h"
#include "net/loop_mailbox.h"
#include "upstream/upstream.h"

enum { UPSTREAM_CAPABILITIES_BYTES = 256 * 1024, UPSTREAM_INSTRUCTIONS_BYTES = 64 * 1024 };

typedef struct upstream_ops {
    void (*start)(upstream *self);
    void (*close)(upstream *self, void (*done)(void *user), void *user);
    void (*free)(upstream *self);
    void (*send)(upstream *self, upstream_call *call);
    void (*cancel)(upstream_call *call, bay_str reason);
    void (*pause)(upstream_call *call, bool is_paused);
    void (*answer)(upstream_call *call, bay_str id, bay_str result, int code, bay_str message);
    /* may be NULL, all four: it has no such sessions */
    void (*tell)(upstream *self, bay_str identity, bay_str method, bay_str params);
    void (*identity_gone)(upstream *self, bay_str identity);
    void (*client_answer)(upstream *self, uint64_t number, bay_str result, int code,
                          bay_str message);
    void (*set_client)(upstream *self, unsigned inputs);
    void (*subscribe)(upstream *self, bay_str identity, bay_str uri, bool is_wanted);
    void (*set_level)(upstream *self, mcp_log_level level);
} upstream_ops;

/* Written by the owner's thread, read by any. */
typedef struct upstream_figures {
    atomic_uint links;
    atomic_uint processes;
    atomic_uint waiting;
    atomic_uint refused_questions;
    atomic_uint circuit;
} upstream_figures;

struct upstream {
    const upstream_ops *ops;
    loop *loop;
    const config *config;
    const config_server *server;
    char *name; /* its own copy: a reload replaces the config below it */
    const upstream_events *events;
    void *user;
    mcp_server *(*engine)(void *engine_user, bay_str agent); /* as in upstream_options */
    void *engine_user;
    bay_str via;
    upstream_state state;
    bool is_settled;
    bool is_unauthorized; /* the owner's: it is down for want of credentials that are accepted */
    size_t open_calls;
    uint32_t restarts;
    int process_id;
    const mcp_revision *revision;
    uint64_t elicited_ms; /* when the count below began */
    uint32_t elicited_count;
    loop_mailbox *mailbox;  /* its loop's; `user` is this upstream */
    list proxies;           /* the owner's: proxy_link, of those on other loops */
    buf instructions;       /* as of the last time it was ready */
    json_doc *capabilities; /* likewise; NULL: nothing is known of them */
    char error[UPSTREAM_ERROR_BYTES];
    char last_break[UPSTREAM_ERROR_BYTES]; /* why it was last restarted */
    upstream_figures figures;              /* the owner's */
    upstream_told *told;                   /* shared; a proxy logs no step */
    bool is_told_down;                     /* its part of it */
    call_target *target;                   /* counted */
    const upstream *owner;                 /* whose figures they are; NULL: its own */
};

/* upstream.c */
bay_err upstream_init(upstream *self, const upstream_ops *ops,
                      const upstream_options *options) BAY_MUST_CHECK;
void upstream_fini(upstream *self);
/* The one place where the state changes; tells the owner. `error` may be NULL: as it was. True: the
 * log did not say so yet. */
bool upstream_set_state(upstream *self, upstream_state state, const char *error);
/* Remembers what the server can; a text that does not parse counts as {}. */
void upstream_learn(upstream *self, const mcp_revision *revision, json_val capabilities);
/* What it tells clients to know of it; what is too long counts as nothing. */
void upstream_learn_instructions(upstream *self, bay_str text);
/* publish.c: sends it to every proxy; for owners. */
void upstream_publish_state(upstream *self);
void upstream_publish_change(upstream *self, mcp_change change);
void upstream_publish_update(upstream *self, bay_str uri);
/* To the client of this identity, on the loop of the proxy `home` (NULL: the owner's). The second
 * is false where there is no such client, or no memory. */
void upstream_tell_client(upstream *self, const void *home, const upstream_client_message *what);
bool upstream_ask_client(upstream *self, const void *home, bay_str identity, uint64_t number,
                         const rpc_message *request);
void upstream_take_back_from_client(upstream *self, const void *home, uint64_t number);
void upstream_own_session(upstream *self, const void *home, bay_str identity, uint64_t number,
                          bool is_open);
/* For the owner too; so many in a second, and no more. */
void upstream_tell_elicited(upstream *self, json_val params);
void upstream_forget_proxies(upstream *self);
void upstream_call_end(upstream_call *call); /* it is no longer open */
void upstream_call_fail(upstream_call *call, bay_err err, bool was_sent, const char *text);
void upstream_call_done(upstream_call *call, const mcp_outcome *outcome); /* it ends */

#endif

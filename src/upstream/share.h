/* Which of a server's sessions a call goes to, as a pure decision: by what the config says, how the
 * server is spoken to, what the call is and whom it is for. */
#ifndef UPSTREAM_SHARE_H
#define UPSTREAM_SHARE_H

#include "upstream/upstream.h"

typedef enum share_kind {
    SHARE_MAIN,      /* the one session that all share; it declares everything */
    SHARE_SHARED,    /* one that declares what the call's client can be asked: that client's, or
                        shared by its like */
    SHARE_EXCLUSIVE, /* the same, exclusive to one call at a time */
} share_kind;

typedef struct share_key {
    share_kind kind;
    unsigned inputs;  /* mcp_inputs that it declares */
    bool is_personal; /* it serves one identity only */
    bool
        has_rights; /* it is authorized by a credential of the caller's: it serves his calls only */
} share_key;

typedef struct share_server {
    config_share share;
    const mcp_revision *revision; /* NULL: not known yet */
    bool are_callers;             /* each caller has a credential of his own there */
    bool ties;            /* what it asks comes on the stream of the call that it is about */
    bool has_one_client;  /* the main session is that client's … */
    unsigned main_inputs; /* … and declares this */
} share_server;

share_key upstream_share_key(const share_server *server, const mcp_call_spec *spec,
                             const upstream_affinity *affinity);

#endif

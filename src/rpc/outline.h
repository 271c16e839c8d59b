/* What a message that cannot be read says of itself all the same: its id, and whether it is a
 * request or an answer. For messages that are too large to be kept, too deep, or no JSON: whoever
 * waits for them learns that they came. The outermost object is walked by its brackets and strings
 * alone, in pieces as they come, without memory of its own.
 *
 * It is for error reports: the text is not valid, so what is found in it proves nothing. */
#ifndef RPC_OUTLINE_H
#define RPC_OUTLINE_H

#include "rpc/message.h"

typedef struct rpc_outline {
    unsigned state;
    uint32_t depth;
    bool is_escaped; /* the last byte inside a string was a backslash */
    bool has_method;
    bool has_outcome; /* result or error */
    bool is_over;     /* the object has ended */
    unsigned member;  /* whose value is being walked */
    size_t key_len;
    char key[8]; /* its start; the names that matter are shorter */
    uint64_t position;
    uint64_t id_at; /* where the id begins, from the first byte fed on */
    size_t id_len;
    bool has_id;
    bool is_id_good;           /* it is whole, one that MCP allows, and the only one */
    char id[RPC_MAX_ID_BYTES]; /* raw */
} rpc_outline;

void rpc_outline_init(rpc_outline *self);
void rpc_outline_feed(rpc_outline *self, bay_str piece);

/* The raw id of the request that it is; empty: none, or it is none. Views live as long as `self`. */
bay_str rpc_outline_request(const rpc_outline *self);
/* The raw id of the request that it answers, likewise. */
bay_str rpc_outline_answer(const rpc_outline *self);
/* It may still show something: an object that has not ended. */
bool rpc_outline_is_open(const rpc_outline *self);
/* A message without an id that names a method: nobody waits for it. */
bool rpc_outline_is_notification(const rpc_outline *self);

#endif

/* What the files of an agent's store share.
 *
 * A row's value is a flag (has it events, has it blocks?) and what the engine wrote. A block is a
 * part of the row: named by overflow (8, big endian) and number (4), it holds a checksum (8) and
 * the bytes. An event's value holds all events of one put, each so:
 *
 *     sequence (8, big endian) | is it the last of its stream (1) | length (8) | JSON
 *
 * Events may be written without their row. The engine ignores those that the row does not know of;
 * when later ones take their sequences, the later ones count. */
#ifndef SDK_AGENT_STORE_PARTS_H
#define SDK_AGENT_STORE_PARTS_H

#include "base/bytes.h"
#include "base/log.h"
#include "sdk/agent_store.h"

enum {
    AGENT_STORE_EVENT_HEAD = BYTES_U64 + 1 + BYTES_U64,
    AGENT_STORE_BLOCK_NAME = BYTES_U64 + 4,
    AGENT_STORE_BLOCK_HEAD = BYTES_U64,
    AGENT_STORE_PLAIN = '0', /* and any of these two */
    AGENT_STORE_HAS_EVENTS = 1,
    AGENT_STORE_HAS_BLOCKS = 2,
};

struct agent_store {
    a2a_persistence persistence;
    store *store;
    uint32_t doing;                      /* operations under way */
    struct agent_store_loading *loading; /* NULL: it is not */
    log_pace complaints;
    size_t name_len;
    char name[AGENT_STORE_NAME_BYTES];
};

static inline bay_str agent_store_table(const agent_store *self)
{
    return (bay_str){self->name, self->name_len};
}

/* The stream of a task's events. Empty: the id is too long for one. */
bay_str agent_store_stream(const agent_store *self, bay_str id, char at[STORE_TABLE_BYTES]);

/* Of a block under its name: what is damaged, or another's, is told from it. */
uint64_t agent_store_sum(bay_str id, bay_str name, bay_str bytes);

#endif

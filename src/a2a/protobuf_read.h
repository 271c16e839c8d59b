/* Shared by the two halves of reading protobuf: messages, which follow the tables
 * (protobuf_read.c), and maps and free values, which do not (protobuf_free.c). Private to a2a/. */
#ifndef A2A_PROTOBUF_READ_H
#define A2A_PROTOBUF_READ_H

#include "a2a/protobuf.h"
#include "a2a/table.h"
#include "json/writer.h"

typedef struct protobuf_reader {
    json_writer *to;
    a2a_fault *fault;
    uint32_t depth;   /* open arrays and objects */
    size_t mergeable; /* bytes that may still be concatenated */
} protobuf_reader;

/* The records of one field of a message. */
typedef struct protobuf_slot {
    bay_str from; /* the message from the first used record on */
    size_t count;
    protobuf_record last;
} protobuf_slot;

/* The entries of a map: the records of this number in `from`, which were scanned. */
typedef struct protobuf_entries {
    bay_str from;
    uint32_t number;
    size_t count;
} protobuf_entries;

bay_err protobuf_broken(protobuf_reader *self, const a2a_place *place);
bay_err protobuf_open(protobuf_reader *self, char bracket, const a2a_place *place) BAY_MUST_CHECK;
void protobuf_close(protobuf_reader *self, char bracket);
/* The bytes of a singular message: a view, or in `scratch`, which the caller frees. */
bay_err protobuf_whole(protobuf_reader *self, const protobuf_slot *what, const a2a_place *place,
                       buf *scratch, bay_str *out) BAY_MUST_CHECK;
bay_err protobuf_put_string(protobuf_reader *self, bay_str text,
                            const a2a_place *place) BAY_MUST_CHECK;
bay_err protobuf_put_key(protobuf_reader *self, bay_str text,
                         const a2a_place *place) BAY_MUST_CHECK;

bay_err protobuf_read_message(protobuf_reader *self, a2a_type type, bay_str bytes,
                              const a2a_place *place) BAY_MUST_CHECK;
/* Each key once, with its last value: a string, a Value or a message of `type`. */
bay_err protobuf_read_map(protobuf_reader *self, a2a_kind kind, a2a_type type,
                          const protobuf_entries *of, const a2a_place *place) BAY_MUST_CHECK;
bay_err protobuf_read_struct(protobuf_reader *self, bay_str bytes,
                             const a2a_place *place) BAY_MUST_CHECK;
bay_err protobuf_read_value(protobuf_reader *self, bay_str bytes,
                            const a2a_place *place) BAY_MUST_CHECK;

#endif

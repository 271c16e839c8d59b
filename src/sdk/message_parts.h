/* The inside of a bay_message: either a place in a document, or parts being written. */
#ifndef SDK_MESSAGE_PARTS_H
#define SDK_MESSAGE_PARTS_H

#include "base/arena.h"
#include "patchbay/message.h"
#include "sdk/json_parts.h"

enum {
    MESSAGE_MAX_BYTES = 32 << 20, /* of one that is made */
    MESSAGE_MAX_PARTS = 1000,
};

typedef struct message_made message_made; /* message.c */

struct bay_message {
    json_val root;          /* one that is read: a 1.0 Message */
    arena *memory;          /* what its views are decoded into */
    bay_document *document; /* of the root, once it is read as values */
    message_made *made;     /* NULL: it is read */
};

/* A message to be read: `root` and `memory` outlive it. Views that have to be decoded allocate: one
 * thread. */
void sdk_message_read(bay_message *self, json_val root, arena *memory);

/* Writes a message into an open object, as members of a 1.0 Message: parts, metadata, extensions
 * and referenceTaskIds; of one that is read neither its ids nor its role. BAY_ERR_INVALID: it has
 * no part; or what could not be added to it. */
bay_err sdk_message_write(const bay_message *self, json_writer *out) BAY_MUST_CHECK;

/* Writes one part: its text, bytes, link or data, and what it is called. `at` NULL: left out. */
void sdk_part_text(json_writer *out, bay_str text, bay_str name, bay_str media_type);
void sdk_part_bytes(json_writer *out, bay_str bytes, bay_str name, bay_str media_type);
void sdk_part_url(json_writer *out, bay_str url, bay_str name, bay_str media_type);
void sdk_part_data(json_writer *out, json_val data, bay_str name, bay_str media_type);

#endif

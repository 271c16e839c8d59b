/* The inside of a bay_message: either a place in somebody's JSON, or parts being written. */
#ifndef SDK_MESSAGE_PARTS_H
#define SDK_MESSAGE_PARTS_H

#include "base/arena.h"
#include "base/buf.h"
#include "patchbay/message.h"
#include "json/json.h"

enum {
    MESSAGE_MAX_BYTES = 32 << 20, /* of one that is made */
    MESSAGE_MAX_PARTS = 1000,
};

struct bay_message {
    json_val root; /* one that is read: a 1.0 Message */
    arena *memory; /* what its views are decoded into */
    /* One that is made. */
    buf parts; /* elements with their commas */
    buf metadata;
    buf extensions;
    buf references;
    size_t part_count;
    bay_err err; /* what could not be added; BAY_OK */
};

/* A message to be read: `root` and `memory` outlive it. Views that have to be decoded allocate: one
 * thread. */
void sdk_message_read(bay_message *self, json_val root, arena *memory);

/* Appends a made message as the members of a 1.0 Message: "parts":[…],"metadata":{…},…; one that is
 * read likewise, without its ids and its role. BAY_ERR_INVALID: it has no part; or what could not
 * be added to it. */
bay_err sdk_message_write(const bay_message *self, buf *out) BAY_MUST_CHECK;

/* One part, appended: its text, bytes, link or data, and what it is called. `at` NULL: left out.
 * BAY_ERR_INVALID: `json` is none. */
void sdk_part_text(buf *out, bay_str text, bay_str name, bay_str media_type);
void sdk_part_bytes(buf *out, bay_str bytes, bay_str name, bay_str media_type);
void sdk_part_url(buf *out, bay_str url, bay_str name, bay_str media_type);
bay_err sdk_part_data(buf *out, bay_str json, bay_str name, bay_str media_type) BAY_MUST_CHECK;

/* Is this JSON, and of that kind (JSON_MISSING: of any)? BAY_ERR_INVALID, BAY_ERR_NOMEM. */
bay_err sdk_json_check(bay_str text, json_kind wanted) BAY_MUST_CHECK;

#endif

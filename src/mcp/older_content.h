/* Content that came with a later revision, said in the kinds of 2024-11-05: what both the engine (for
 * results that pass through) and the SDK (for results it makes) write for clients of that time. */
#ifndef MCP_OLDER_CONTENT_H
#define MCP_OLDER_CONTENT_H

#include "json/writer.h"

/* A resource link, each part as it stands between the quotes of a JSON string; empty: none. */
typedef struct mcp_older_link {
    bay_str uri;
    bay_str name;
    bay_str title;
    bay_str description;
    bay_str mime_type;
    bay_str size; /* a raw number */
} mcp_older_link;

/* Members of a content object: an embedded resource with the link's URI and a text that says what
 * the link says. */
void mcp_older_put_link(json_writer *out, const mcp_older_link *link);

/* The same for audio: an embedded resource, up to the value of its blob: the caller writes that and
 * closes the object. `mime_type` is raw, with its quotes. `number` is the content's place in its
 * result, from 1 on: it tells several apart. */
void mcp_older_open_audio(json_writer *out, unsigned number, bay_str mime_type);

#endif

/* Tools as clients of the handshake era can read them. Until 2025-11-25 an outputSchema is that of
 * an object, and a client that reads strictly refuses a list with any other; since 2026-07-28 it
 * may be anything. So such a schema is left out, the tool stays, and what it returns goes as a text
 * (mcp/dress_content.c). */
#ifndef CATALOG_OLDER_TOOLS_H
#define CATALOG_OLDER_TOOLS_H

#include "json/writer.h"

/* Has the tool an outputSchema that says nothing of an object? */
bool older_tools_is_free(json_val tool);

/* The members of a tools/list result, written anew without such schemas; everything else byte for
 * byte. Errors: BAY_NOMEM, BAY_LIMIT. */
bay_err older_tools_write(buf *out, bay_str members) BAY_MUST_CHECK;

#endif

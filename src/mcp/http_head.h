/* The header fields of a request that the engine reads, found in one walk, because it needs most of
 * them for every request. */
#ifndef MCP_HTTP_HEAD_H
#define MCP_HTTP_HEAD_H

#include "mcp/server.h"

typedef enum head_name {
    HEAD_ACCEPT,
    HEAD_CONTENT_TYPE,
    HEAD_LAST_EVENT_ID,
    HEAD_METHOD,
    HEAD_NAME,
    HEAD_SESSION_ID,
    HEAD_VERSION,
    HEAD_VIA,
    HEAD_NAMES,
} head_name;

typedef struct http_head {
    const mcp_http_request *request;
    bay_str at[HEAD_NAMES]; /* the first of its name, a view; `at` NULL: absent */
    size_t count[HEAD_NAMES];
} http_head;

void http_head_read(http_head *out, const mcp_http_request *request);

#endif

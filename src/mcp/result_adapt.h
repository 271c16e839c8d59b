/* Dressing: what a result or an error must carry, and must not, for the revision of the client that
 * gets it. Internal to the server engine. */
#ifndef MCP_RESULT_ADAPT_H
#define MCP_RESULT_ADAPT_H

#include "mcp/server_internal.h"

/* A whole response to `request`, appended to `out`. BAY_ERR_PROTOCOL: `result` is no object, has
 * one of the dressing members twice, or asks for input that this revision cannot give; `out` is
 * then as it was. Failures of `out` stick in it. */
bay_err mcp_result_adapt(buf *out, const request *to, json_val result) BAY_MUST_CHECK;

/* The same for members without braces and without any dressing. */
void result_adapt_members(buf *out, const request *to, bay_str members);

/* What a result holds that the client's revision does not know. */
typedef struct result_adapt_newer {
    bay_str
        content; /* the member that holds content of a newer kind, or none at all; empty: none */
    bool lacks_text; /* structured content, which this client cannot read, has no text beside it */
    bool is_no_object; /* structured content of a kind that came with 2026-07-28: left out */
} result_adapt_newer;

/* result_adapt_content.c */
result_adapt_newer result_adapt_newer_content(const request *to, json_val result);
/* The member `content`, in kinds that the client knows, into an open object. */
void result_adapt_put_content(json_writer *writer, const request *to,
                              const result_adapt_newer *newer, json_val result);

/* The code this revision has for what `code` says. */
int mcp_error_code_adapt(const mcp_revision *revision, int code);

/* A whole error response from an upstream's error object. BAY_ERR_PROTOCOL when it is none. */
bay_err mcp_error_adapt(buf *out, const request *to, json_val error, int *out_code) BAY_MUST_CHECK;

/* HTTP status of an error response. */
int mcp_status_adapt(const mcp_revision *revision, int code);

#endif

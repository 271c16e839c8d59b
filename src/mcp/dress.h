/* Dressing: what a result or an error must carry, and must not, for the revision of the client that
 * gets it. Internal to the server engine. */
#ifndef MCP_DRESS_H
#define MCP_DRESS_H

#include "mcp/server_internal.h"

/* A whole response to `request`, appended to `out`. BAY_PROTOCOL: `result` is no object, has one of
 * the dressing members twice, or asks for input that this revision cannot give; `out` is then as it
 * was. Failures of `out` stick in it. */
bay_err dress_result(buf *out, const request *to, json_val result) BAY_MUST_CHECK;

/* The same for members without braces and without any dressing. */
void dress_members(buf *out, const request *to, bay_str members);

/* dress_content.c: the member of `result` that holds content of a kind newer than the client's
 * revision; empty: none does. */
bay_str dress_newer_content(const request *to, json_val result);
/* That member, with its content in kinds that the client knows, into an open object. */
void dress_put_content(json_writer *writer, const request *to, bay_str key, json_val result);

/* The code this revision has for what `code` says. */
int dress_code(const mcp_revision *revision, int code);

/* A whole error response from an upstream's error object. BAY_PROTOCOL when it is none. */
bay_err dress_error(buf *out, const request *to, json_val error, int *out_code) BAY_MUST_CHECK;

/* HTTP status of an error response. */
int dress_status(const mcp_revision *revision, int code);

#endif

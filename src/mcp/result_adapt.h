/* Result adaptation: the members that a result or an error must and must not have in the revision
 * of its client. Internal to the server engine. */
#ifndef MCP_RESULT_ADAPT_H
#define MCP_RESULT_ADAPT_H

#include "mcp/server_internal.h"

/* Appends a whole response to `request`. BAY_ERR_PROTOCOL: `result` is not an object, has one of
 * the adapted members twice, or asks for input in a revision without it; `out` is then unchanged.
 * Errors of `out` stick in it. */
bay_err mcp_result_adapt(buf *out, const request *to, json_val result) BAY_MUST_CHECK;

/* The same for members without braces, which have none of the adapted members. */
void result_adapt_members(buf *out, const request *to, bay_str members);

/* What a result contains that the client's revision does not have. */
typedef struct result_adapt_newer {
    bay_str content; /* the member with content of a newer kind, or without content; empty: none */
    bool lacks_text; /* structured content, which this client cannot read, without text beside it */
    bool is_no_object; /* structured content of a kind that 2026-07-28 introduced: omitted */
} result_adapt_newer;

/* result_adapt_content.c */
result_adapt_newer result_adapt_newer_content(const request *to, json_val result);
/* Writes the member `content`, in kinds that the client has, into an open object. */
void result_adapt_put_content(json_writer *writer, const request *to,
                              const result_adapt_newer *newer, json_val result);

/* This revision's code with the meaning of `code`. */
int mcp_error_code_adapt(const mcp_revision *revision, int code);

/* A whole error response from an upstream's error object. BAY_ERR_PROTOCOL: not an error object. */
bay_err mcp_error_adapt(buf *out, const request *to, json_val error, int *out_code) BAY_MUST_CHECK;

/* HTTP status of an error response. */
int mcp_status_adapt(const mcp_revision *revision, int code);

#endif

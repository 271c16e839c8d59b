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

/* What a result holds that the client's revision does not know. */
typedef struct dress_newer {
    bay_str
        content; /* the member that holds content of a newer kind, or none at all; empty: none */
    bool lacks_text; /* structured content, which this client cannot read, has no text beside it */
    bool is_no_object; /* structured content of a kind that came with 2026-07-28: left out */
} dress_newer;

/* dress_content.c */
dress_newer dress_newer_content(const request *to, json_val result);
/* The member `content`, in kinds that the client knows, into an open object. */
void dress_put_content(json_writer *writer, const request *to, const dress_newer *newer,
                       json_val result);

/* The code this revision has for what `code` says. */
int dress_code(const mcp_revision *revision, int code);

/* A whole error response from an upstream's error object. BAY_PROTOCOL when it is none. */
bay_err dress_error(buf *out, const request *to, json_val error, int *out_code) BAY_MUST_CHECK;

/* HTTP status of an error response. */
int dress_status(const mcp_revision *revision, int code);

#endif

/* What a tool, a resource or a prompt brought, as a person reads it: text as it is, everything else
 * in one line that says what it is. */
#ifndef CLI_CONTENT_H
#define CLI_CONTENT_H

#include "cli/output.h"
#include "json/json.h"

enum { CLI_CONTENT_MEMORY = 512 * 1024 * 1024 };

/* One content block (text, image, audio, resource, resource_link, or one we do not know), with a
 * line end behind it.
 * Errors: BAY_ERR_NOMEM, BAY_ERR_LIMIT; they also stick in `out`. */
bay_err cli_content_write(const output *device, buf *out, json_val block) BAY_MUST_CHECK;

/* The contents of a resource: text as it is, a blob decoded; no line end added. A blob is only
 * described where the device is a terminal: `out_is_hidden` is set then.
 * Errors: BAY_ERR_PROTOCOL: neither a text nor a blob in base64; BAY_ERR_NOMEM, BAY_ERR_LIMIT. */
bay_err cli_content_write_resource(const output *device, buf *out, json_val contents,
                                   bool *out_is_hidden) BAY_MUST_CHECK;

/* A message of a prompt: "user: …". Errors: as cli_content_write. */
bay_err cli_content_write_message(const output *device, buf *out, json_val message) BAY_MUST_CHECK;

#endif

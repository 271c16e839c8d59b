/* Tools as clients of the session revisions can read them. Until 2025-11-25 an outputSchema is that
 * of an object, and a client that reads strictly refuses a list with any other; since 2026-07-28 it
 * may be anything. So such a schema is left out, the tool stays, and what it returns goes as a text
 * (mcp/result_adapt_content.c). */
#ifndef CATALOG_OLDER_TOOLS_H
#define CATALOG_OLDER_TOOLS_H

#include "json/writer.h"

/* Has the tool an outputSchema that says nothing of an object? */
bool older_tools_is_free(json_val tool);

/* The tool under the name that is shown, without such a schema; everything else byte for byte.
 * `describe` with `at` NULL: its description stays as it is. */
void older_tools_put(json_writer *out, json_val tool, bay_str shown, bay_str describe,
                     bool gains_tasks);

#endif

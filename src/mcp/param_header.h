/* x-mcp-header: tool parameters mirrored into Mcp-Param-* header fields (2026-07-28,
 * basic/transports/streamable-http, "Custom Headers from Tool Parameters"). Both roles and the
 * gateway use one compiled table per tool. */
#ifndef MCP_PARAM_HEADER_H
#define MCP_PARAM_HEADER_H

#include "json/json.h"

#define MCP_PARAM_PREFIX "Mcp-Param-"

typedef struct mcp_param {
    bay_str header;      /* the suffix after MCP_PARAM_PREFIX */
    const bay_str *path; /* property names from the arguments down */
    size_t path_len;
    json_kind type; /* JSON_STRING, JSON_NUMBER (integer) or JSON_TRUE (boolean) */
} mcp_param;

typedef struct mcp_param_table {
    const mcp_param *params;
    size_t count;
} mcp_param_table;

enum { MCP_MAX_PARAM_HEADERS = 64, MCP_MAX_PARAM_DEPTH = 16 };

/* Reads the annotations of an inputSchema. BAY_ERR_PROTOCOL (with the reason in `diag`): an
 * annotation breaks the rules, and a client omits the tool. An empty table is BAY_OK with count 0.
 */
bay_err mcp_param_table_read(mcp_param_table *out, json_val input_schema, arena *memory,
                             bay_diag *diag) BAY_MUST_CHECK;

/* The header's value for these arguments, encoded; `at` NULL: no header. */
bay_err mcp_param_value(const mcp_param *param, json_val arguments, arena *memory,
                        bay_str *out) BAY_MUST_CHECK;

/* Whether a received (encoded) value matches the arguments. `field.at` NULL: no header. */
bool mcp_param_matches(const mcp_param *param, json_val arguments, bay_str field, arena *memory);

#endif

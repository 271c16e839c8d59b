/* The input requests that a client accepts: elicitation, sampling and roots. In a session they are
 * requests of the server; in the stateless revision they are inputRequests of an input_required
 * result. */
#ifndef MCP_INPUTS_H
#define MCP_INPUTS_H

#include "base/buf.h"
#include "mcp/protocol.h"
#include "json/writer.h"

typedef enum mcp_inputs {
    MCP_INPUT_FORM = 1, /* elicitation by a form, since 2025-06-18 */
    MCP_INPUT_URL = 2,  /* elicitation by a URL, since 2025-11-25 */
    MCP_INPUT_SAMPLING = 4,
    MCP_INPUT_SAMPLING_TOOLS = 8, /* with tools, since 2025-11-25 */
    MCP_INPUT_SAMPLING_CONTEXT = 16,
    MCP_INPUT_ROOTS = 32,
    MCP_INPUT_EVERYTHING = 63,
} mcp_inputs;

/* The input requests that a client of this revision with these capabilities accepts, as bits of
 * mcp_inputs. */
unsigned mcp_inputs_of(const mcp_revision *revision, json_val capabilities);

/* The bits that this input request needs; 0: not an input request, or params that need nothing
 * known. */
unsigned mcp_inputs_needed(bay_str method, json_val params);

/* Writes the members of a capabilities object that declare them, into an open object. Bits that a
 * revision lacks are omitted; `revision` NULL: in a form that every revision reads. */
void mcp_inputs_write(unsigned inputs, const mcp_revision *revision, json_writer *out);

#endif

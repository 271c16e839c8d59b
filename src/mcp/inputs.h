/* What may be asked of a client: elicitation, sampling and roots, in whatever way its revision has
 * for it: requests of the server in a session, inputRequests of an input_required result in the
 * stateless revision. */
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

/* What a client of this revision with these capabilities can be asked, as bits of mcp_inputs. */
unsigned mcp_inputs_of(const mcp_revision *revision, json_val capabilities);

/* What this request needs of a client; 0: no such request, or params that ask for nothing known. */
unsigned mcp_inputs_needed(bay_str method, json_val params);

/* Writes the members of a capabilities object that declare them, for use inside an open object. A
 * revision that lacks one leaves it out; `revision` NULL: in words every one understands. */
void mcp_inputs_write(unsigned inputs, const mcp_revision *revision, json_writer *out);

#endif

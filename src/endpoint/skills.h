/* Skills (the extension io.modelcontextprotocol/skills) of all servers of an endpoint: skills/list,
 * skills/get, resources/directory/read.
 *
 * A skill is named by a URI, which goes through as it is, as a resource's does. The list is paged
 * server by server: a page is one server's, byte for byte, and its cursor says where to go on. A
 * URI is asked of the server whose resource it is, else of one server after the other, until one
 * knows it. */
#ifndef ENDPOINT_SKILLS_H
#define ENDPOINT_SKILLS_H

#include "mcp/server.h"

struct endpoint;

/* Does any of its servers have skills? A profile shows none. */
bool skills_are_shown(const struct endpoint *self);
void skills_request(struct endpoint *self, mcp_request *request);

#endif

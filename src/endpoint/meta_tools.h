/* The three tools that an endpoint lists in the place of all others, for hosts that cannot hold
 * hundreds of definitions: search_tools finds tools by words, describe_tool gives a definition byte
 * for byte, call_tool calls it as if it had been called directly.
 *
 * A search goes through the catalog in slices, so that it never holds up the loop; it keeps the
 * snapshot it began with. */
#ifndef ENDPOINT_META_TOOLS_H
#define ENDPOINT_META_TOOLS_H

#include "catalog/catalog.h"
#include "mcp/server.h"

enum {
    META_SEARCHES = 64,            /* under way on one endpoint; more are told to come back */
    META_SLICE_BYTES = 256 << 10,  /* of names and descriptions looked at in one go */
    META_DESCRIPTION_BYTES = 4096, /* of a description that are looked at */
    META_SHOWN_BYTES = 400,        /* of a description that are shown */
    META_WORDS = 16,               /* of a query */
    META_HITS = 50,
    META_HITS_USUAL = 10,
};

struct endpoint;

/* The result of tools/list: its members. */
bay_str meta_tools_list(void);

/* Is it the name of one of the three? */
bool meta_tools_are(bay_str name);
/* Takes a tools/call of one of the three. True: it was answered, or will be. False: it is to go on
 * as any call; one of call_tool reads as a call of its target from then on. */
bool meta_tools_request(struct endpoint *self, mcp_request *request);
/* The client gives a search up; false: the request is none. It is still to be finished. */
bool meta_tools_cancelled(struct endpoint *self, const mcp_request *request);

/* How well a tool fits a query; 0: not at all. Words that begin alike fit, names count most. The
 * texts are raw JSON strings without their quotes, but for the name. */
typedef struct meta_query {
    bay_str words[META_WORDS]; /* lower case, in `bytes` */
    size_t count;
    char bytes[1024];
} meta_query;
void meta_query_read(meta_query *out, bay_str text);
uint32_t meta_query_score(const meta_query *self, bay_str name, bay_str title, bay_str description);

#endif

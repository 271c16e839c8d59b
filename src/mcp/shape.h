/* Checks whether a result has its method's shape. The tables are in shapes.def. The walk uses the
 * message's index, needs no memory, and stops at the first fault. What is in no table passes:
 * unknown members, content of unknown types. */
#ifndef MCP_SHAPE_H
#define MCP_SHAPE_H

#include "mcp/protocol.h"

typedef enum mcp_shape_id {
    MCP_SHAPE_NONE,
#define SHAPE(symbol, needed, any) MCP_SHAPE_##symbol,
#define MEMBER(name, kinds, shape, words, since, until)
#define KIND(type, symbol)
#define RESULT(method, symbol)
#include "mcp/shapes.def"
#undef SHAPE
#undef MEMBER
#undef KIND
#undef RESULT
    MCP_SHAPE_COUNT
} mcp_shape_id;

enum {
    MCP_PLACE_BYTES = 64,
    MCP_SHAPE_TEXT_BYTES = 48,
    MCP_ITEM_DEPTH = 120, /* levels of arrays and objects of one item of a list */
};

typedef struct mcp_shape_fault {
    char place[MCP_PLACE_BYTES];     /* RFC 6901, from the checked value; cut if long */
    char text[MCP_SHAPE_TEXT_BYTES]; /* "must be a string" */
} mcp_shape_fault;

/* False: `out` says where and why. Threads: any. */
bool mcp_shape_holds(mcp_shape_id shape, mcp_revision_id revision, json_val value,
                     mcp_shape_fault *out);
/* An item of a list; MCP_SHAPE_NONE: only its depth is checked. */
bool mcp_shape_item(mcp_shape_id shape, mcp_revision_id revision, json_val value,
                    mcp_shape_fault *out);
/* A result of `method` (NULL: of a method in no table). */
bool mcp_shape_result(const mcp_method *method, const mcp_revision *revision, json_val result,
                      mcp_shape_fault *out);

#endif

/* JSON-RPC 2.0 envelopes: reading one from a JSON value, writing one to a buf. Ids are kept as raw
 * JSON: 1, "1" and 1.0 are three different ids. */
#ifndef RPC_MESSAGE_H
#define RPC_MESSAGE_H

#include "json/json.h"
#include "json/writer.h"

enum {
    RPC_PARSE_ERROR = -32700,
    RPC_INVALID_REQUEST = -32600,
    RPC_METHOD_NOT_FOUND = -32601,
    RPC_INVALID_PARAMS = -32602,
    RPC_INTERNAL_ERROR = -32603,
};

typedef enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESULT, RPC_ERROR } rpc_kind;

/* Views into the document of the message. */
typedef struct rpc_message {
    rpc_kind kind;
    json_val root;
    bay_str id;      /* raw JSON; empty for notifications and for errors without one */
    bay_str method;  /* decoded */
    json_val params; /* object, or (requests) missing; arrays are refused, as MCP has none */
    json_val result; /* RPC_RESULT: an object */
    json_val error;  /* RPC_ERROR: an object with integer code and string message */
} rpc_message;

/* The error response for a message that cannot be read. */
typedef struct rpc_fault {
    int code;
    bay_str id; /* raw, "null" when unreadable; never points outside the input or static text */
    const char *text; /* static */
    size_t offset;    /* of the error in the input, for -32700 */
    bay_str answers;  /* raw id of the request that the invalid response belongs to; empty: none */
} rpc_fault;

/* Of a text that cannot be read: `id` and `answers`, as far as it shows them; the rest is empty. */
void rpc_message_outline(bay_str text, rpc_fault *out);

/* Bounds on ids and method names: 256 bytes each. */
enum { RPC_MAX_ID_BYTES = 256, RPC_MAX_METHOD_BYTES = 256 };

/* Reads the envelope in `root`. BAY_ERR_PROTOCOL with `fault` filled in, BAY_ERR_NOMEM. Duplicate
 * members of the envelope are refused, since two readers could choose different ones. */
bay_err rpc_message_read(rpc_message *out, json_val root, arena *memory,
                         rpc_fault *fault) BAY_MUST_CHECK;

/* Parses `text` and reads its envelope; a batch (array) is BAY_ERR_UNSUPPORTED with `out->root` set
 * to it. */
bay_err rpc_message_parse(rpc_message *out, json_doc *doc, bay_str text, const json_limits *limits,
                          arena *memory, rpc_fault *fault) BAY_MUST_CHECK;

/* Whole messages, appended to `out`, without a line end. `params`, `result` and `data` are raw JSON
 * (empty: omitted, except `result`). The error's message is plain text. */
void rpc_write_request(buf *out, bay_str id, bay_str method, bay_str params);
/* A request up to its params; the caller appends the params and a '}'. */
void rpc_open_request(buf *out, bay_str id, bay_str method);
void rpc_write_notification(buf *out, bay_str method, bay_str params);
void rpc_write_result(buf *out, bay_str id, bay_str result);
void rpc_write_error(buf *out, bay_str id, int code, bay_str message, bay_str data);

#endif

/* What a server asks of its client during a call, and how it reads in another revision.
 *
 * A server of the session revisions sends requests of its own: elicitation/create,
 * sampling/createMessage, roots/list. A client of that era gets each of them on its own stream, at
 * once; to one of the stateless revision they go out together as the call's result
 * (suspended_call.h). What the client has not declared is refused, as a client without it would. */
#ifndef ENDPOINT_INPUT_REQUEST_H
#define ENDPOINT_INPUT_REQUEST_H

#include "base/buf.h"
#include "base/list.h"
#include "mcp/inputs.h"
#include "rpc/message.h"
#include "json/writer.h"

enum {
    INPUT_REQUESTS_PER_CALL = 64,        /* open at once; a further one is refused */
    INPUT_REQUESTS_CALL_BYTES = 1 << 20, /* of their params, of one call */
};

struct route;

/* One that is not answered yet. */
typedef struct input_request {
    list_link link; /* in route.input_requests */
    struct route *route;
    const mcp_method *method;
    uint32_t number; /* the client's key for it is "q" and this */
    bool is_told;    /* the client was asked */
    bay_str id;      /* raw: the server's */
    json_val params; /* missing where nobody needs them any more */
    size_t held;     /* bytes of the params, counted among the route's and the endpoint's */
} input_request;

/* What became of a question that a client of the session revisions was asked. */
typedef struct input_answer {
    json_val result; /* or missing, and … */
    int code;
    bay_str message;
    arena memory; /* of the message … */
    char text[200];
} input_answer;

/* `response` NULL: there is none, for the reason `err`. */
void input_answer_init(input_answer *self, bay_err err, const rpc_message *response,
                       const mcp_method *method, const mcp_revision *revision);
void input_answer_fini(input_answer *self);
/* Why a client that can be asked `has` cannot be asked this; false: it can. */
bool input_request_is_beyond(unsigned has, const rpc_message *message, int *out_code,
                             const char **out_text);

/* The server asks, or takes a question back: see upstream_call_events. */
void input_requests_asked(struct route *of, const rpc_message *message);
void input_requests_withdrawn(struct route *of, bay_str id);
/* The call is over: nobody answers any more, and a client that was asked is told so. */
void input_requests_drop(struct route *of);
/* Every open question is answered by this error. The call may have ended when this returns, and the
 * route with it; false then. */
bool input_requests_refuse(struct route *of, int code, bay_str text);
void input_request_free(input_request *self);
/* Has this answer the shape that the question wants? (What it says is the server's affair.) */
bool input_request_accepts(const input_request *self, json_val answer);

/* Appends the params of a question as a client of `to` knows them: byte for byte, but that forms
 * before 2025-11-25 have no `mode`, and that URLs in that revision have an `elicitationId`. */
void input_request_write_params(json_writer *out, bay_str method, json_val params,
                                const mcp_revision *to);

/* What a client would have to declare for these inputs, in words: "elicitation", "sampling with
 * tools" …, appended. */
void input_request_write_inputs(buf *out, unsigned inputs);

#endif

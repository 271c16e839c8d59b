/* Forms of the model: what a peer of another version writes becomes 1.0 on the way in, and 1.0
 * becomes what it reads on the way out. Every function takes and makes whole JSON values; the
 * results of `read` are in normal form (a2a/types.h), so that nothing behind this door ever sees an
 * older version.
 *
 * Whoever reads a request keeps its a2a_wish: what the older form can say and 1.0 cannot (or the
 * reverse) and what the answer needs. */
#ifndef A2A_DIALECT_H
#define A2A_DIALECT_H

#include "a2a/types.h"

/* Params of a request (a JSON-RPC `params`; the message of a REST or gRPC request) -> 1.0.
 * `blocking` and its inverse `returnImmediately`, `tasks/ID` names, `kind`, `type`, files, states
 * and roles are translated; 0.1's client-made task id becomes `message.taskId` with
 * `metadata["patchbay/clientTaskId"]`: true beside the message (the agent may then make the task).
 * Errors: BAY_ERR_PROTOCOL with `fault`, paths as the peer wrote them; BAY_ERR_NOMEM,
 * BAY_ERR_LIMIT. */
bay_err a2a_params_read(a2a_form form, a2a_method method, json_val params, buf *out,
                        a2a_fault *fault) BAY_MUST_CHECK;
/* … as a value: `params` itself where it is in normal form already, else one in `memory`; it lives
 * as long as both. */
bay_err a2a_params_view(a2a_form form, a2a_method method, json_val params, arena *memory,
                        json_val *out, a2a_fault *fault) BAY_MUST_CHECK;
/* 1.0 -> params in that form (a caller's, a gateway's towards an older agent). BAY_ERR_UNSUPPORTED
 * with `fault` when the form has no such method. */
bay_err a2a_params_write(a2a_form form, a2a_method method, json_val params, buf *out,
                         a2a_fault *fault) BAY_MUST_CHECK;
/* … as a value, as a2a_params_view's. */
bay_err a2a_params_in_form(a2a_form form, a2a_method method, json_val params, arena *memory,
                           json_val *out, a2a_fault *fault) BAY_MUST_CHECK;

/* The result of a method that is no stream. 1.0 wraps what SendMessage returns ({"task":…}); 0.3
 * does not; 0.1 has tasks only (a message becomes a completed task's status message). */
bay_err a2a_result_read(a2a_form form, a2a_method method, json_val result, buf *out,
                        a2a_fault *fault) BAY_MUST_CHECK;
bay_err a2a_result_write(a2a_form form, a2a_method method, json_val result,
                         buf *out) BAY_MUST_CHECK;
/* … as values. */
bay_err a2a_result_view(a2a_form form, a2a_method method, json_val result, arena *memory,
                        json_val *out, a2a_fault *fault) BAY_MUST_CHECK;
bay_err a2a_result_in_form(a2a_form form, a2a_method method, json_val result, arena *memory,
                           json_val *out) BAY_MUST_CHECK;

/* One event of a stream: a StreamResponse. `is_last`: the stream ends behind it, which forms of 0.x
 * say by `final`. Reading tells that the same way (1.0: never). */
bay_err a2a_event_read(a2a_form form, json_val event, buf *out, bool *out_is_last,
                       a2a_fault *fault) BAY_MUST_CHECK;
/* … as a value: `event` itself where it is in normal form already, else one in `memory`; it lives
 * as long as both. */
bay_err a2a_event_view(a2a_form form, json_val event, arena *memory, json_val *out,
                       bool *out_is_last, a2a_fault *fault) BAY_MUST_CHECK;
bay_err a2a_event_write(a2a_form form, json_val event, bool is_last, buf *out) BAY_MUST_CHECK;
bay_err a2a_event_in_form(a2a_form form, json_val event, bool is_last, arena *memory,
                          json_val *out) BAY_MUST_CHECK;

/* What a webhook of that form is sent for an event: 1.0 the StreamResponse, 0.3 the bare Task
 * (`task`: the whole task as it is then, 1.0). */
bay_err a2a_push_write(a2a_form form, json_val event, json_val task, buf *out) BAY_MUST_CHECK;

/* The value of `text`, which this process has written: `known`, if whoever wrote it had it. Only
 * the engine has not. It keeps tasks as text (a row is put together of blocks, and mostly goes out
 * as it is), which older forms, gRPC and webhooks in older forms look into; this is the one place
 * where such text is read again. It lives as long as `text` (or `known`) and `memory`. */
bay_err a2a_text_view(bay_str text, json_val known, arena *memory, json_val *out) BAY_MUST_CHECK;

/* Cards. Reading takes a card of any version (told by its members) and makes a 1.0 card; of a
 * hybrid the 1.0 part counts. */
typedef enum a2a_card_form {
    A2A_CARD_1_0,    /* pure */
    A2A_CARD_HYBRID, /* 1.0 and, beside it, what 0.2 and 0.3 clients need */
    A2A_CARD_0_3,    /* pure: for /.well-known/agent.json, gRPC and REST of 0.3 */
} a2a_card_form;
bay_err a2a_card_read(json_val card, buf *out, a2a_version *out_version,
                      a2a_fault *fault) BAY_MUST_CHECK;
bay_err a2a_card_write(a2a_card_form form, json_val card, buf *out) BAY_MUST_CHECK;
/* … as values: `card` itself where nothing has to change, else in `memory`, of at most so many
 * bytes. */
bay_err a2a_card_view(json_val card, arena *memory, json_val *out, a2a_version *out_version,
                      a2a_fault *fault) BAY_MUST_CHECK;
bay_err a2a_card_in_form(a2a_card_form form, json_val card, size_t max_bytes, arena *memory,
                         json_val *out) BAY_MUST_CHECK;

#endif

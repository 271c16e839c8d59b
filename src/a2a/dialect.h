/* Forms of the model: what a peer of another version sends is converted to 1.0, and 1.0 to what the
 * peer reads. Every function takes and makes whole JSON values; the results of `read` are in normal
 * form (a2a/types.h), so that no code behind this interface handles an older version. */
#ifndef A2A_DIALECT_H
#define A2A_DIALECT_H

#include "a2a/types.h"

/* Params of a request (a JSON-RPC `params`; the message of a REST or gRPC request) -> 1.0.
 * `blocking` and its inverse `returnImmediately`, `tasks/ID` names, `kind`, `type`, files, states
 * and roles are converted; 0.1's client-made task id becomes `message.taskId` with
 * `metadata["patchbay/clientTaskId"]`: true beside the message (the agent may then make the task).
 * Errors: BAY_ERR_PROTOCOL with `fault`, paths as in the peer's form; BAY_ERR_NOMEM, BAY_ERR_LIMIT.
 */
bay_err a2a_params_read(a2a_form form, a2a_method method, json_val params, buf *out,
                        a2a_fault *fault) BAY_MUST_CHECK;
/* … as a value: `params` itself if it is in normal form, otherwise a value in `memory`; valid as
 * long as both. */
bay_err a2a_params_view(a2a_form form, a2a_method method, json_val params, arena *memory,
                        json_val *out, a2a_fault *fault) BAY_MUST_CHECK;
/* 1.0 -> params in that form (for a caller, or for a gateway's request to an older agent).
 * BAY_ERR_UNSUPPORTED with `fault`: the form has no such method. */
bay_err a2a_params_write(a2a_form form, a2a_method method, json_val params, buf *out,
                         a2a_fault *fault) BAY_MUST_CHECK;
/* … as a value, like that of a2a_params_view. */
bay_err a2a_params_in_form(a2a_form form, a2a_method method, json_val params, arena *memory,
                           json_val *out, a2a_fault *fault) BAY_MUST_CHECK;

/* The result of a method without a stream. 1.0 wraps the result of SendMessage ({"task":…}); 0.3
 * does not; 0.1 has only tasks (a message becomes the status message of a completed task). */
bay_err a2a_result_read(a2a_form form, a2a_method method, json_val result, buf *out,
                        a2a_fault *fault) BAY_MUST_CHECK;
bay_err a2a_result_write(a2a_form form, a2a_method method, json_val result,
                         buf *out) BAY_MUST_CHECK;
/* … as values. */
bay_err a2a_result_view(a2a_form form, a2a_method method, json_val result, arena *memory,
                        json_val *out, a2a_fault *fault) BAY_MUST_CHECK;
bay_err a2a_result_in_form(a2a_form form, a2a_method method, json_val result, arena *memory,
                           json_val *out) BAY_MUST_CHECK;

/* One event of a stream: a StreamResponse. `is_last`: the stream ends after it, which forms of 0.x
 * mark with `final`. Reading returns that, too (1.0: never). */
bay_err a2a_event_read(a2a_form form, json_val event, buf *out, bool *out_is_last,
                       a2a_fault *fault) BAY_MUST_CHECK;
/* … as a value: `event` itself if it is in normal form, otherwise a value in `memory`; valid as
 * long as both. */
bay_err a2a_event_view(a2a_form form, json_val event, arena *memory, json_val *out,
                       bool *out_is_last, a2a_fault *fault) BAY_MUST_CHECK;
bay_err a2a_event_write(a2a_form form, json_val event, bool is_last, buf *out) BAY_MUST_CHECK;
bay_err a2a_event_in_form(a2a_form form, json_val event, bool is_last, arena *memory,
                          json_val *out) BAY_MUST_CHECK;

/* The body for a webhook of that form: in 1.0 the StreamResponse, in 0.3 the Task alone (`task`:
 * the whole current task, 1.0). */
bay_err a2a_push_write(a2a_form form, json_val event, json_val task, buf *out) BAY_MUST_CHECK;

/* The value of `text`, which this process has written: `known`, if its writer had the value. Only
 * the engine has not: it keeps tasks as text, because a row is joined from blocks and is mostly
 * sent unchanged. Older forms, gRPC and webhooks in older forms need the value; this is the only
 * place where such text is parsed again. Valid as long as `text` (or `known`) and `memory`. */
bay_err a2a_text_view(bay_str text, json_val known, arena *memory, json_val *out) BAY_MUST_CHECK;

/* Cards. Reading takes a card of any version (detected by its members) and makes a 1.0 card; of a
 * hybrid the 1.0 part is used. */
typedef enum a2a_card_form {
    A2A_CARD_1_0,    /* pure */
    A2A_CARD_HYBRID, /* 1.0 with the members that clients of 0.2 and 0.3 need */
    A2A_CARD_0_3,    /* pure: for /.well-known/agent.json, gRPC and REST of 0.3 */
} a2a_card_form;
bay_err a2a_card_read(json_val card, buf *out, a2a_version *out_version,
                      a2a_fault *fault) BAY_MUST_CHECK;
bay_err a2a_card_write(a2a_card_form form, json_val card, buf *out) BAY_MUST_CHECK;
/* … as values: `card` itself if nothing has to change, otherwise a value in `memory` of at most so
 * many bytes. */
bay_err a2a_card_view(json_val card, arena *memory, json_val *out, a2a_version *out_version,
                      a2a_fault *fault) BAY_MUST_CHECK;
bay_err a2a_card_in_form(a2a_card_form form, json_val card, size_t max_bytes, arena *memory,
                         json_val *out) BAY_MUST_CHECK;

#endif

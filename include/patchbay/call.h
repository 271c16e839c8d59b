/* A call, as its handler sees it: what it carries, whom it may ask, how it ends; and the content of
 * its answer.
 *
 * A call ends exactly once, by one of the functions of "how it ends". A handler that returns
 * without that, and without bay_call_defer or an open question, gets an internal error sent in its
 * place. Answering twice, or after the end, does nothing but a line in the log. After a cancel, a
 * timeout or the client's disappearance the answer is dropped; the handler learns of it by
 * bay_call_is_cancelled and still ends the call.
 *
 * For the whole header:
 * Owns: strings and bytes given are copied; views that are returned live until the call ends; a
 * result belongs to who made it until bay_call_finish takes it. Errors: a call that could not be
 * answered as asked (no memory, a result over its bound, output that breaks its own schema) is
 * answered with an error instead, so every call ends. Units: lengths in bytes, times in
 * milliseconds, progress in whatever the handler counts. Threads: the handler's; after
 * bay_call_defer any one thread at a time. Source: MCP revisions 2024-11-05 to 2026-07-28:
 * server/tools, server/resources, server/prompts, server/utilities, client/elicitation,
 * client/sampling, client/roots, basic/utilities, basic/patterns/mrtr. */
#ifndef PATCHBAY_CALL_H
#define PATCHBAY_CALL_H

#include <patchbay/json.h>
#include <patchbay/schema.h>
#include <patchbay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bay_call bay_call;     /* of a tool, a resource, a prompt, a completion, a method */
typedef struct bay_result bay_result; /* content being put together */
typedef struct bay_answer bay_answer; /* what the client said to a question */

typedef void (*bay_handler_fn)(bay_call *call, void *user);

/* ---- a call: what it carries --------------------------------------------------------------------
 */

/* The argument of that name as text: a string decoded, any other value as its JSON; empty (at NULL)
 * when absent. A tool's arguments fit its schema: that was checked. */
BAY_API bay_str bay_call_str(bay_call *call, const char *name);
/* BAY_ERR_NOT_FOUND, BAY_ERR_TYPE, BAY_ERR_RANGE. */
BAY_API bay_err bay_call_int(bay_call *call, const char *name, int64_t *out) BAY_MUST_CHECK;
BAY_API bay_err bay_call_double(bay_call *call, const char *name, double *out) BAY_MUST_CHECK;
BAY_API bay_err bay_call_bool(bay_call *call, const char *name, bool *out) BAY_MUST_CHECK;
/* The same, and `fallback` where there is an error: for arguments without a default. */
BAY_API bay_str bay_call_str_or(bay_call *call, const char *name, const char *fallback);
BAY_API int64_t bay_call_int_or(bay_call *call, const char *name, int64_t fallback);
BAY_API double bay_call_double_or(bay_call *call, const char *name, double fallback);
BAY_API bool bay_call_bool_or(bay_call *call, const char *name, bool fallback);
/* The argument, to be read further: arrays and objects. NULL: all of them, an object. */
BAY_API bay_value bay_call_value(bay_call *call, const char *name);
BAY_API bool bay_call_has(bay_call *call, const char *name);
BAY_API bay_str bay_call_arguments(bay_call *call); /* the raw JSON object; "{}" when absent */
BAY_API bay_str bay_call_name(bay_call *call);      /* tool or prompt name, URI, template, method */
BAY_API bay_str bay_call_revision(bay_call *call);  /* "2025-11-25" */
/* Handlers of templates: the value of {variable} in the URI read, percent-decoded. */
BAY_API bay_str bay_call_variable(bay_call *call, const char *variable);
/* Completion: the value that the argument or variable of that name already has (context.arguments,
 * 2025-06-18 and later); empty (at NULL) when the client named none. */
BAY_API bay_str bay_call_context(bay_call *call, const char *name);
/* Who is calling: over HTTP as bay_server_identify said; over stdio and in process the user id of
 * this process, in decimal; empty: anonymous. */
BAY_API bay_str bay_call_principal(bay_call *call);
/* Has the client this capability? "elicitation", "elicitation.url", "sampling.tools", "roots",
 * "extensions.io.modelcontextprotocol/tasks" (extensions are named whole after the dot). */
BAY_API bool bay_call_client_has(bay_call *call, const char *capability);
BAY_API bay_str bay_call_client_info(bay_call *call); /* raw JSON object, or empty */
BAY_API bay_str bay_call_meta(bay_call *call);        /* the request's _meta, raw, or empty */
/* Milliseconds until the call is given up (bay_tool_timeout); UINT64_MAX: no such bound. */
BAY_API uint64_t bay_call_time_left_ms(const bay_call *call);
/* The task this call runs as; empty when its client waits for it. */
BAY_API bay_str bay_call_task(bay_call *call);

/* ---- a call: how it ends, exactly once --------------------------------------------------------
 * After any of these the call is gone. */

BAY_API void bay_call_reply(bay_call *call, const char *text);
BAY_API void bay_call_replyf(bay_call *call, const char *format, ...) BAY_PRINTF(2, 3);
BAY_API void bay_call_reply_str(bay_call *call, bay_str text);
/* Tools: the structured content and all there is (see bay_result_structured). Resources: its text.
 * Takes it. */
BAY_API void bay_call_reply_json(bay_call *call, bay_json *json);
/* The tool failed in a way the model can act on (isError). For resources and prompts: an error. */
BAY_API void bay_call_fail(bay_call *call, const char *text);
BAY_API void bay_call_failf(bay_call *call, const char *format, ...) BAY_PRINTF(2, 3);
BAY_API void bay_call_fail_str(bay_call *call, bay_str text);
/* A JSON-RPC error: the call itself was wrong; with any JSON as its data. */
BAY_API void bay_call_error(bay_call *call, int code, const char *message);
BAY_API void bay_call_errorf(bay_call *call, int code, const char *format, ...) BAY_PRINTF(3, 4);
BAY_API void bay_call_error_str(bay_call *call, int code, bay_str message);
BAY_API void bay_call_error_json(bay_call *call, int code, const char *message, bay_json *data);
/* The resource does not exist (the code each revision wants). */
BAY_API void bay_call_not_found(bay_call *call);
BAY_API void bay_call_finish(bay_call *call, bay_result *result); /* takes the result */
/* Methods (bay_server_method): the whole result, an object. Takes it. */
BAY_API void bay_call_finish_json(bay_call *call, bay_json *object);

/* ---- a call: while it lasts ---------------------------------------------------------------------
 */

/* Keeps the call open after the handler returns; it may now be finished from any thread. */
BAY_API bay_call *bay_call_defer(bay_call *call);
BAY_API bool bay_call_is_cancelled(const bay_call *call);
/* `total` < 0: unknown; `message` may be NULL: partial output, in words. Dropped when the client
 * did not ask for it, and while it does not read what it got. */
BAY_API void bay_call_progress(bay_call *call, double progress, double total, const char *message);
BAY_API void bay_call_progressf(bay_call *call, double progress, double total, const char *format,
                                ...) BAY_PRINTF(4, 5);
BAY_API void bay_call_progress_str(bay_call *call, double progress, double total, bay_str message);
/* Log message to this client; level is "debug", "info", … as in MCP. Dropped like progress. */
BAY_API void bay_call_log(bay_call *call, const char *level, const char *text);
BAY_API void bay_call_logf(bay_call *call, const char *level, const char *format, ...)
    BAY_PRINTF(3, 4);
BAY_API void bay_call_log_str(bay_call *call, const char *level, bay_str text);
/* The same with any JSON as data, and a logger's name (NULL: the tool's). */
BAY_API void bay_call_log_json(bay_call *call, const char *level, const char *logger,
                               bay_json *data);
/* Closes the stream that carries this call and tells the client to come back for the rest after
 * `retry_ms` (2025-11-25 sessions over HTTP); elsewhere nothing happens. What is sent meanwhile
 * waits in the session's log. */
BAY_API void bay_call_release_stream(bay_call *call, uint32_t retry_ms);
/* From here on the call is a task, decided by the handler itself (BAY_TASK_MODE_BY_HANDLER): before
 * this it may have asked its client in rounds. False: this client cannot, the call goes on as it
 * is. */
BAY_API bool bay_call_become_task(bay_call *call);
/* A word on what the task is doing. */
BAY_API void bay_call_task_status(bay_call *call, const char *message);
BAY_API void bay_call_task_statusf(bay_call *call, const char *format, ...) BAY_PRINTF(2, 3);
BAY_API void bay_call_task_status_str(bay_call *call, bay_str message);

/* ---- questions to the client --------------------------------------------------------------------
 * Written once, carried as each revision wants: to a session as a request on the call's stream; to
 * a 2026-07-28 client as "input required", whereupon it calls again with the answers. In that case
 * the handler runs again from the top, perhaps in another process, and is given what it asked
 * before: so side effects belong behind the answers, and a handler must ask the same things in the
 * same order (or give its questions keys). As a task, the task waits for input.
 *
 * `answered` runs once per question, after the handler has returned; several questions may be open
 * at once. It never runs for a question that ends this run of the handler (see above). A client
 * that lacks the capability, a question that times out: BAY_ACTION_NONE, with the reason in
 * bay_answer_error. It runs where handlers of its kind run: on the pool for a blocking one.
 *
 * A deferred call may ask from its own thread, too; its `answered` always runs, and either that or
 * the thread ends the call, not both. For a client of 2026-07-28 the library answers the request
 * with `input_required` as soon as the deferred call asks. From then on bay_call_is_cancelled
 * returns true, `answered` gets BAY_ACTION_NONE with error BAY_ERR_CANCELLED, and replies, progress
 * and log messages of this run are dropped. The handler runs again when the client retries.
 *
 * The state between two rounds travels with the client, sealed: encrypted, bound to caller, tool,
 * arguments and expiry, good for one use (see bay_server_key). */

typedef void (*bay_answered_fn)(bay_call *call, const bay_answer *answer, void *user);

/* A form: a flat table of strings, numbers, booleans and arrays of choices (NULL: only a yes or no).
 * What the person leaves out has its default when the answer is read. */
BAY_API void bay_call_elicit(bay_call *call, const char *message, const bay_field *form,
                             bay_answered_fn answered, void *user);
BAY_API void bay_call_elicitf(bay_call *call, const bay_field *form, bay_answered_fn answered,
                              void *user, const char *format, ...) BAY_PRINTF(5, 6);
BAY_API void bay_call_elicit_str(bay_call *call, bay_str message, const bay_field *form,
                                 bay_answered_fn answered, void *user);
/* With a hand-written requestedSchema. */
BAY_API void bay_call_elicit_schema(bay_call *call, const char *message, const char *schema,
                                    bay_answered_fn answered, void *user);
BAY_API void bay_call_elicit_schema_str(bay_call *call, bay_str message, bay_str schema,
                                        bay_answered_fn answered, void *user);
BAY_API void bay_call_elicit_schema_json(bay_call *call, const char *message, bay_json *schema,
                                         bay_answered_fn answered, void *user);
/* A page to visit, for what must not pass through the client (2025-11-25 and later). */
BAY_API void bay_call_elicit_url(bay_call *call, const char *message, const char *url,
                                 const char *elicitation_id, bay_answered_fn answered, void *user);
BAY_API void bay_call_elicit_url_str(bay_call *call, bay_str message, bay_str url,
                                     bay_str elicitation_id, bay_answered_fn answered, void *user);
/* That page is done (notifications/elicitation/complete, to clients that know it). */
BAY_API void bay_call_elicit_complete(bay_call *call, const char *elicitation_id);
BAY_API void bay_call_elicit_complete_str(bay_call *call, bay_str elicitation_id);
/* The client's model: one user message; or everything as the params of sampling/createMessage. */
BAY_API void bay_call_sample(bay_call *call, const char *prompt, int max_tokens,
                             bay_answered_fn answered, void *user);
BAY_API void bay_call_samplef(bay_call *call, int max_tokens, bay_answered_fn answered, void *user,
                              const char *format, ...) BAY_PRINTF(5, 6);
BAY_API void bay_call_sample_str(bay_call *call, bay_str prompt, int max_tokens,
                                 bay_answered_fn answered, void *user);
BAY_API void bay_call_sample_json(bay_call *call, bay_json *params, bay_answered_fn answered,
                                  void *user);
BAY_API void bay_call_roots(bay_call *call, bay_answered_fn answered, void *user);
/* The key of the next question, in place of its number: "user_name". */
BAY_API void bay_call_question_key(bay_call *call, const char *key);
BAY_API void bay_call_question_key_str(bay_call *call, bay_str key);
/* Bytes of the handler's own that come back with the next round (at most 16 KiB); empty in the
 * first. Kept for sessions and tasks as well. */
BAY_API void bay_call_remember(bay_call *call, const void *bytes, size_t len);
BAY_API bay_str bay_call_remembered(bay_call *call);

/* Views into an answer live as long as its callback. */
BAY_API bay_action bay_answer_action(const bay_answer *answer);
BAY_API bay_err bay_answer_error(const bay_answer *answer); /* why there is none; BAY_OK */
/* The field of a form as text: a string decoded, any other value as its JSON; empty when absent. A
 * form that breaks its schema was refused before this. */
BAY_API bay_str bay_answer_str(const bay_answer *answer, const char *field);
/* The field, to be read further: bay_value_int_or(…). NULL: the whole form. */
BAY_API bay_value bay_answer_value(const bay_answer *answer, const char *field);
BAY_API bay_str bay_answer_content(const bay_answer *answer); /* the form, raw; or empty */
BAY_API bay_str bay_answer_text(const bay_answer *answer);    /* sampling: its text blocks */
BAY_API size_t bay_answer_root_count(const bay_answer *answer);
BAY_API bay_str bay_answer_root(const bay_answer *answer, size_t index); /* its URI */
BAY_API bay_str bay_answer_json(const bay_answer *answer); /* the whole result, raw; or empty */

/* ---- results ------------------------------------------------------------------------------------
 * Content that this kind of call cannot carry (a blob in a tool's result, an image in a resource's)
 * makes the call fail with an internal error that says so. What the client's revision does not know
 * yet is sent in older words: audio as an embedded resource, a link as a line of text. */

BAY_API bay_result *bay_result_new(bay_call *call);
BAY_API void bay_result_free(bay_result *result); /* only if it is not finished */
BAY_API void bay_result_text(bay_result *result, const char *text);
BAY_API void bay_result_textf(bay_result *result, const char *format, ...) BAY_PRINTF(2, 3);
BAY_API void bay_result_text_str(bay_result *result, bay_str text);
BAY_API void bay_result_image(bay_result *result, const void *bytes, size_t len,
                              const char *mime_type);
BAY_API void bay_result_audio(bay_result *result, const void *bytes, size_t len,
                              const char *mime_type);
BAY_API void bay_result_resource(bay_result *result, const char *uri, const char *mime_type,
                                 const char *text); /* embedded, text */
BAY_API void bay_result_resource_str(bay_result *result, bay_str uri, bay_str mime_type,
                                     bay_str text);
BAY_API void bay_result_resource_blob(bay_result *result, const char *uri, const char *mime_type,
                                      const void *bytes, size_t len); /* embedded, bytes */
BAY_API void bay_result_link(bay_result *result, const char *uri, const char *name,
                             const char *mime_type);
BAY_API void bay_result_link_str(bay_result *result, bay_str uri, bay_str name, bay_str mime_type);
BAY_API void bay_result_blob(bay_result *result, const void *bytes, size_t len); /* of a resource */
/* Annotations of the content added last: {"audience":["user"],"priority":0.5}. */
BAY_API void bay_result_annotate(bay_result *result, const char *json);
/* _meta of the content added last, a JSON object (2025-06-18 and later). */
BAY_API void bay_result_item_meta(bay_result *result, const char *json);
/* Any JSON; when it is none, or breaks the output schema, the call fails. Where it is all there is,
 * it is sent as text too. Clients before 2026-07-28 get only objects as structured content: what
 * else there is has to be in the content. */
BAY_API void bay_result_structured(bay_result *result, const char *json);
BAY_API void bay_result_structured_json(bay_result *result, bay_json *json);
BAY_API void bay_result_error(bay_result *result);                  /* isError: true */
BAY_API void bay_result_meta(bay_result *result, const char *json); /* _meta: a JSON object */
BAY_API void bay_result_meta_json(bay_result *result, bay_json *json);
/* How long and by whom this resource's content may be kept (2026-07-28). */
BAY_API void bay_result_cache(bay_result *result, uint32_t ttl_ms, bool is_public);
/* Prompts: what is added next belongs to a message of this role ("user", "assistant"). */
BAY_API void bay_result_message(bay_result *result, const char *role);
BAY_API void bay_result_value(bay_result *result, const char *value); /* completion */
BAY_API void bay_result_value_str(bay_result *result, bay_str value);
BAY_API void bay_result_more(bay_result *result, size_t total); /* completion: there are so many */

#ifdef __cplusplus
}
#endif
#endif

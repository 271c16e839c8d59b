/* An MCP server: tools, resources and prompts written once, served to clients of every protocol
 * revision from 2024-11-05 to 2026-07-28, on stdio and HTTP.
 *
 *     bay_server *server = bay_server_new("weather", "1.0.0");
 *     bay_server_tool(server, "get_weather", "Conditions in a city.", schema, handler, NULL);
 *     return bay_server_main(server, argc, argv);
 *
 * Errors of registration (a bad schema, a bad name, twice the same) are kept by the server and
 * reported, all of them, by bay_server_main or bay_server_check before it serves.
 *
 * For the whole header:
 * Owns: strings and bytes given are copied; a `user` pointer stays the caller's and must outlive
 * the server; a result belongs to who made it until bay_call_finish takes it. Errors: those of
 * registration are kept, see above; a call that could not be answered as asked (no memory, a result
 * over its bound) is answered with a JSON-RPC error instead, so every call ends. Units: lengths in
 * bytes, times in milliseconds, progress in whatever the handler counts. Threads: a server is set
 * up by one thread. Handlers run on the server's loop; those marked blocking run on a pool of
 * threads. A deferred call may be finished, and asked, from any thread. Source: MCP revisions
 * 2024-11-05 to 2026-07-28: server/tools, server/resources, server/prompts, server/utilities,
 * basic/utilities and basic/patterns. */
#ifndef PATCHBAY_SERVER_H
#define PATCHBAY_SERVER_H

#include <patchbay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bay_server bay_server;
typedef struct bay_tool bay_tool;
typedef struct bay_call bay_call;     /* one call of a tool, read of a resource, get of a prompt */
typedef struct bay_result bay_result; /* content being put together */

typedef void (*bay_handler)(bay_call *call, void *user);

/* ---- the server -------------------------------------------------------------------------------
 * Threads: the one that sets up. NULL is returned only when out of memory, and taken by every
 * function that takes what was returned. */

BAY_API bay_server *bay_server_new(const char *name, const char *version);
BAY_API void bay_server_free(bay_server *server); /* NULL is fine */
BAY_API void bay_server_title(bay_server *server, const char *title);
BAY_API void bay_server_instructions(bay_server *server, const char *text);

/* A tool. `input_schema` is JSON Schema (type object). */
BAY_API bay_tool *bay_server_tool(bay_server *server, const char *name, const char *description,
                                  const char *input_schema, bay_handler handler, void *user);
BAY_API void bay_tool_title(bay_tool *tool, const char *title);
BAY_API void bay_tool_output_schema(bay_tool *tool, const char *schema);
/* Behaviour hints as a JSON object: {"readOnlyHint":true,…}. */
BAY_API void bay_tool_annotations(bay_tool *tool, const char *json);
/* The handler may block: it runs on the pool, not on the loop. */
BAY_API void bay_tool_blocking(bay_tool *tool);
/* The caller must have declared this client capability ("sampling", "elicitation", "roots"), or the
 * call is refused before the handler runs (-32021; a tool error for legacy clients). */
BAY_API void bay_tool_requires(bay_tool *tool, const char *capability);

/* A resource at a fixed URI, and a family of them by URI template (RFC 6570 level 1). The handler
 * answers with bay_call_reply (text) or a result holding bay_result_blob; the URI read is
 * bay_call_name. */
BAY_API void bay_server_resource(bay_server *server, const char *uri, const char *name,
                                 const char *description, const char *mime_type,
                                 bay_handler handler, void *user);
BAY_API void bay_server_template(bay_server *server, const char *uri_template, const char *name,
                                 const char *description, const char *mime_type,
                                 bay_handler handler, void *user);
/* Handlers of templates: the value of {variable} in the URI read, percent-decoded. */
BAY_API bay_str bay_call_variable(bay_call *call, const char *variable);

/* A prompt. `arguments` is a JSON array: [{"name":"city","description":"…","required":true}] or
 * NULL. The handler adds messages with bay_result_message. */
BAY_API void bay_server_prompt(bay_server *server, const char *name, const char *description,
                               const char *arguments, bay_handler handler, void *user);

/* Completion of prompt arguments and template variables: one handler for all; it reads
 * bay_call_name (the prompt's name or the template), bay_call_str(call, "name") and
 * bay_call_str(call, "value") (the argument) and adds values with bay_result_value. */
BAY_API void bay_server_completion(bay_server *server, bay_handler handler, void *user);

/* What changed since the clients last listed; any thread, also while serving. */
typedef enum bay_change { BAY_TOOLS = 1, BAY_PROMPTS = 2, BAY_RESOURCES = 4 } bay_change;
BAY_API void bay_server_changed(bay_server *server, bay_change change);
BAY_API void bay_server_updated(bay_server *server, const char *uri);

/* Are all registrations good? BAY_INVALID and the first error's text if not. */
BAY_API bay_err bay_server_check(bay_server *server, bay_diag *diag) BAY_MUST_CHECK;

/* Serves until the end of input (stdio) or SIGTERM (HTTP); frees the server; returns the exit
 * status for main. Options: --stdio (default), --http ADDRESS[:PORT], --help, --version. */
BAY_API int bay_server_main(bay_server *server, int argc, char **argv);

/* ---- a call: what it carries --------------------------------------------------------------------
 * Views live until the call is finished. Threads: the handler's, or after bay_call_defer any one
 * thread at a time. */

/* The argument of that name as text: a string decoded, any other value as its JSON; empty (at NULL)
 * when absent. */
BAY_API bay_str bay_call_str(bay_call *call, const char *name);
/* BAY_NOTFOUND, BAY_TYPE, BAY_RANGE. */
BAY_API bay_err bay_call_int(bay_call *call, const char *name, int64_t *out) BAY_MUST_CHECK;
BAY_API bay_err bay_call_double(bay_call *call, const char *name, double *out) BAY_MUST_CHECK;
BAY_API bool bay_call_true(bay_call *call, const char *name); /* is it the literal true? */
BAY_API bool bay_call_has(bay_call *call, const char *name);
BAY_API bay_str bay_call_arguments(bay_call *call); /* the raw JSON object; "{}" when absent */
BAY_API bay_str bay_call_name(bay_call *call);      /* tool or prompt name, URI, template */
BAY_API bay_str bay_call_revision(bay_call *call);  /* "2025-11-25" */

/* ---- a call: how it ends, exactly once --------------------------------------------------------
 * After any of these the call is gone. A handler that returns without finishing or deferring gets
 * an internal error sent in its place. */

BAY_API void bay_call_reply(bay_call *call, const char *text);
BAY_API void bay_call_replyf(bay_call *call, const char *format, ...) BAY_PRINTF(2, 3);
BAY_API void bay_call_reply_str(bay_call *call, bay_str text);
/* The tool failed in a way the model can act on (isError). For resources and prompts: an error. */
BAY_API void bay_call_fail(bay_call *call, const char *text);
BAY_API void bay_call_failf(bay_call *call, const char *format, ...) BAY_PRINTF(2, 3);
/* A JSON-RPC error: the call itself was wrong. */
BAY_API void bay_call_error(bay_call *call, int code, const char *message);
/* The resource does not exist (the code each revision wants). */
BAY_API void bay_call_not_found(bay_call *call);
BAY_API void bay_call_finish(bay_call *call, bay_result *result); /* takes the result */

/* ---- a call: while it lasts ---------------------------------------------------------------------
 */

/* Keeps the call open after the handler returns; it may now be finished from any thread. */
BAY_API bay_call *bay_call_defer(bay_call *call);
BAY_API bool bay_call_is_cancelled(const bay_call *call);
/* `total` < 0: unknown; `message` may be NULL. Dropped when the client did not ask for it,
 * and while it does not read what it got. */
BAY_API void bay_call_progress(bay_call *call, double progress, double total, const char *message);
/* Log message to this client; level is "debug", "info", … as in MCP. Dropped like progress. */
BAY_API void bay_call_log(bay_call *call, const char *level, const char *text);

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
BAY_API void bay_result_link(bay_result *result, const char *uri, const char *name,
                             const char *mime_type);
BAY_API void bay_result_blob(bay_result *result, const void *bytes, size_t len); /* of a resource */
/* An object; when it is none the call fails. Where it is all there is, it is sent as text too. */
BAY_API void bay_result_structured(bay_result *result, const char *json);
BAY_API void bay_result_error(bay_result *result); /* isError: true */
/* Prompts: what is added next belongs to a message of this role ("user", "assistant"). */
BAY_API void bay_result_message(bay_result *result, const char *role);
BAY_API void bay_result_value(bay_result *result, const char *value); /* completion */

#ifdef __cplusplus
}
#endif
#endif

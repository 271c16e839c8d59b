/* An MCP client: one server, by URL, by command or in process, of any protocol revision from
 * 2024-11-05 to 2026-07-28.
 *
 *     bay_client *client;
 *     bay_diag diag;
 *     if (bay_client_connect("https://example.com/mcp", NULL, &client, &diag) != BAY_OK) …
 *     bay_reply *reply;
 *     if (bay_client_call(client, "get_weather", "{\"location\":\"Tokyo\"}", &reply, &diag)
 *         == BAY_OK) …
 *
 * A client has no thread of its own. The functions that wait (connect, call, read, list …) turn its
 * event loop until they have what they were asked for; everything else that happens meanwhile
 * (notifications, questions of the server, other requests) is served too. A program with an event
 * loop starts requests, and dispatches the client when its descriptor says so.
 *
 * A connection that breaks is made again, with back-off, when it is next needed; a request that was
 * certainly not executed is sent again, one that may have been is not, unless it only reads: it
 * fails with an error that says so.
 *
 * For the whole header:
 * Owns: strings given are copied; a reply and a list belong to who got them; a `user` pointer stays
 * the caller's. Errors: an error is returned, and told in `diag` (which may be NULL) with what,
 * where and what to do. BAY_ERR_REMOTE: the server answered with a JSON-RPC error. A tool that
 * failed is no error: see bay_reply_is_error. Units: times in milliseconds, lengths in bytes.
 * Threads: a client, its requests and whatever is attached to the same server belong to one thread
 * at a time; replies and lists may be read by any. Callbacks run inside the functions that wait or
 * dispatch, never inside one that only starts something. Source: MCP revisions 2024-11-05 to
 * 2026-07-28; extensions tasks, skills and apps. */
#ifndef PATCHBAY_CLIENT_H
#define PATCHBAY_CLIENT_H

#include <patchbay/json.h>
#include <patchbay/library.h>
#include <patchbay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bay_client bay_client;
typedef struct bay_client_options bay_client_options;
typedef struct bay_request bay_request;   /* one request, from its making to its end */
typedef struct bay_reply bay_reply;       /* what came back */
typedef struct bay_list bay_list;         /* everything of one kind that the server offers */
typedef struct bay_question bay_question; /* the server asks something */
struct bay_server;

/* ---- options ------------------------------------------------------------------------------------
 * Made, filled, given to a connect (which copies them), freed. Out of memory while filling is told
 * by the connect. NULL options: all defaults. */

BAY_API bay_client_options *bay_client_options_new(void); /* NULL: out of memory */
BAY_API void bay_client_options_free(bay_client_options *options);
BAY_API void bay_client_options_name(bay_client_options *options, const char *name,
                                     const char *version); /* clientInfo */
/* A header field for every HTTP request (Authorization …); kept out of every log, wiped at the end.
 */
BAY_API void bay_client_options_header(bay_client_options *options, const char *name,
                                       const char *value);
/* For https: who signs servers' certificates, in place of the system's store, and the client's own
 * certificate chain and key, for servers that ask for one. PEM files, a key without a passphrase;
 * NULL: as before, at first the system's store and no certificate. The connect reads them.
 * Errors: of the connect, BAY_ERR_INVALID: a certificate without its key, or an empty name;
 * BAY_ERR_TLS: a file that cannot be used, or a key that does not belong to the certificate;
 * BAY_ERR_UNSUPPORTED: a library without TLS. BAY_ERR_TLS also where a server's certificate is not
 * accepted: signed by nobody who is trusted, expired, or of another host. */
BAY_API void bay_client_options_tls(bay_client_options *options, const char *ca_file,
                                    const char *certificate_file, const char *key_file);
/* For tests only: accepts every certificate. Whoever is on the way can read and change everything,
 * credentials included: each connect to a URL logs a warning. With a CA file: BAY_ERR_INVALID. */
BAY_API void bay_client_options_insecure(bay_client_options *options);
/* For commands: NAME=VALUE, added to the environment of this program, all of which a command
 * inherits; and the folder it runs in. */
BAY_API void bay_client_options_env(bay_client_options *options, const char *assignment);
BAY_API void bay_client_options_directory(bay_client_options *options, const char *path);
/* Speak only these revisions, inclusive; NULL: no bound. Without this the server's is found out. */
BAY_API void bay_client_options_revisions(bay_client_options *options, const char *oldest,
                                          const char *newest);
typedef enum bay_transport {
    BAY_TRANSPORT_AUTO, /* Streamable HTTP, else HTTP+SSE; stdio for commands */
    BAY_TRANSPORT_HTTP,
    BAY_TRANSPORT_SSE_2024,
} bay_transport;
BAY_API void bay_client_options_transport(bay_client_options *options, bay_transport transport);
/* Results of tools are checked against the outputSchema in the latest list of tools that the client
 * has; results that say isError, and tools of no list, are not. */
typedef enum bay_output_check {
    BAY_OUTPUT_CHECK_WARN,   /* one that breaks it is logged, and returned */
    BAY_OUTPUT_CHECK_REFUSE, /* the request fails with BAY_ERR_PROTOCOL, which says what breaks it */
    BAY_OUTPUT_CHECK_OFF,
} bay_output_check;
BAY_API void bay_client_options_output(bay_client_options *options, bay_output_check check);
/* Without progress for `idle_ms`, or in all after `total_ms`, a request fails with BAY_ERR_TIMEOUT
 * and the server is told. 0: the defaults, 60,000 and 600,000. */
BAY_API void bay_client_options_timeout(bay_client_options *options, uint32_t idle_ms,
                                        uint32_t total_ms);
/* How often, and with how long a pause at most, a lost connection is made again; 0: the defaults, 8
 * and 30,000. The first pause is 250 ms; each doubles, with jitter. */
BAY_API void bay_client_options_reconnect(bay_client_options *options, uint32_t attempts,
                                          uint32_t longest_ms);
/* Lists are fetched anew each time they are asked for. */
BAY_API void bay_client_options_no_cache(bay_client_options *options);
/* Believes readOnlyHint and idempotentHint of the server's tools: a call of such a tool that may
 * have been executed is sent again. Without this no call of a tool is. */
BAY_API void bay_client_options_trust_hints(bay_client_options *options);
/* Declares capabilities.extensions[id] = settings (a JSON object; NULL: {}). */
BAY_API void bay_client_options_extension(bay_client_options *options, const char *id,
                                          const char *settings);
BAY_API void bay_client_options_log_to(bay_client_options *options, bay_log_level most_verbose,
                                       bay_log_fn sink, void *user);

/* What the server may ask. A handler declares the capability; it answers at once, or later after
 * bay_question_defer. Legacy servers ask by request, 2026-07-28 servers by "input required"; the
 * handler cannot tell, and a call that needs several rounds ends once. */
typedef void (*bay_asked_fn)(bay_question *question, void *user);
typedef enum bay_elicitation {
    BAY_ELICITATION_FORM = 1,
    BAY_ELICITATION_URL = 2,
} bay_elicitation;
/* `modes`: bits. Fields that the person left out get the schema's defaults; what breaks the schema
 * is not sent. */
BAY_API void bay_client_options_elicitation(bay_client_options *options, unsigned modes,
                                            bay_asked_fn asked, void *user);
/* `capability`: settings as a JSON object ({"tools":{}}), or NULL. */
BAY_API void bay_client_options_sampling(bay_client_options *options, const char *capability,
                                         bay_asked_fn asked, void *user);
/* Roots: answered by the library from the list that bay_client_roots changes. */
BAY_API void bay_client_options_root(bay_client_options *options, const char *uri,
                                     const char *name);

/* What the server tells; NULL: nothing. A list of that kind changed; a resource subscribed to was
 * updated; a log message outside a request, its params raw. */
typedef void (*bay_client_changed_fn)(bay_client *client, bay_kind kind, void *user);
typedef void (*bay_client_updated_fn)(bay_client *client, bay_str uri, void *user);
typedef void (*bay_client_logged_fn)(bay_client *client, bay_str params, void *user);
BAY_API void bay_client_options_on_changed(bay_client_options *options,
                                           bay_client_changed_fn changed, void *user);
BAY_API void bay_client_options_on_updated(bay_client_options *options,
                                           bay_client_updated_fn updated, void *user);
BAY_API void bay_client_options_on_log(bay_client_options *options, bay_client_logged_fn logged,
                                       void *user);
/* Every message, as it stands on the wire; header fields are not shown. For looking only: it runs
 * inside whatever sends or receives, functions that only start something included, and what it
 * should start or send itself is not shown to it. */
typedef void (*bay_client_message_fn)(bay_client *client, bool is_outgoing, bay_str message,
                                      void *user);
BAY_API void bay_client_options_on_message(bay_client_options *options,
                                           bay_client_message_fn traced, void *user);

/* ---- a client -----------------------------------------------------------------------------------
 */

/* Connects and finds out what the server speaks. `target`: "https://…", "http://…", or
 * "stdio:COMMAND ARGUMENT…" (words separated by spaces, quoted with '…' or "…" where needed; no
 * shell is involved). Waits. */
BAY_API bay_err bay_client_connect(const char *target, const bay_client_options *options,
                                   bay_client **out, bay_diag *diag) BAY_MUST_CHECK;
/* The same for a command that is words already; `argv` ends in NULL. */
BAY_API bay_err bay_client_spawn(const char *const *argv, const bay_client_options *options,
                                 bay_client **out, bay_diag *diag) BAY_MUST_CHECK;
/* To a server in this process, without any carrier. The server and all clients attached to it share
 * one loop, one descriptor and one thread: whoever dispatches or waits for one of them serves all
 * (and what the server listens to); of their times to wait the shortest counts. The server outlives
 * its clients. */
BAY_API bay_err bay_client_attach(struct bay_server *server, const bay_client_options *options,
                                  bay_client **out, bay_diag *diag) BAY_MUST_CHECK;
/* The same as connect without waiting: requests may be started at once. `connected` (which may be
 * NULL) runs once: with BAY_OK in `diag` when the server can be spoken to, else with why it cannot,
 * as the requests hear it that were waiting; the next request tries again. Not at all after
 * bay_client_close. */
typedef void (*bay_client_connected_fn)(bay_client *client, const bay_diag *diag, void *user);
BAY_API bay_err bay_client_connect_start(const char *target, const bay_client_options *options,
                                         bay_client **out, bay_diag *diag,
                                         bay_client_connected_fn connected,
                                         void *user) BAY_MUST_CHECK;
/* Ends politely (a session is deleted, a process is asked to end, then made to) and frees. Requests
 * still open end with BAY_ERR_CANCELLED. Waits for a process, at most 5,000 ms. NULL is fine. Not
 * inside a callback. */
BAY_API void bay_client_close(bay_client *client);

/* Of the server as it was when it was last met; empty before the first time. Views live until the
 * client is closed (or has met sixteen other descriptions since). */
BAY_API bay_str bay_client_revision(const bay_client *client);     /* "2026-07-28" */
BAY_API bay_str bay_client_server_info(const bay_client *client);  /* raw JSON object */
BAY_API bay_str bay_client_capabilities(const bay_client *client); /* raw JSON object */
BAY_API bay_str bay_client_instructions(const bay_client *client); /* or empty */
/* "tools", "resources.subscribe", "extensions.io.modelcontextprotocol/tasks". */
BAY_API bool bay_client_has(const bay_client *client, const char *capability);
/* The error object behind the last BAY_ERR_REMOTE, raw JSON; until the next request ends. */
BAY_API bay_str bay_client_remote_error(const bay_client *client);

/* ---- asking, and waiting for it -----------------------------------------------------------------
 * `arguments`: a JSON object, or NULL (an empty bay_str); a bay_json is taken. On anything but
 * BAY_OK there is no reply. */

BAY_API bay_err bay_client_call(bay_client *client, const char *tool, const char *arguments,
                                bay_reply **out, bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_client_call_str(bay_client *client, bay_str tool, bay_str arguments,
                                    bay_reply **out, bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_client_call_json(bay_client *client, const char *tool, bay_json *arguments,
                                     bay_reply **out, bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_client_read(bay_client *client, const char *uri, bay_reply **out,
                                bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_client_read_str(bay_client *client, bay_str uri, bay_reply **out,
                                    bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_client_prompt(bay_client *client, const char *prompt, const char *arguments,
                                  bay_reply **out, bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_client_prompt_str(bay_client *client, bay_str prompt, bay_str arguments,
                                      bay_reply **out, bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_client_prompt_json(bay_client *client, const char *prompt, bay_json *arguments,
                                       bay_reply **out, bay_diag *diag) BAY_MUST_CHECK;
/* `reference`: a prompt's name, or a template (it contains "://"). */
BAY_API bay_err bay_client_complete(bay_client *client, const char *reference, const char *argument,
                                    const char *value, bay_reply **out,
                                    bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_client_complete_str(bay_client *client, bay_str reference, bay_str argument,
                                        bay_str value, bay_reply **out,
                                        bay_diag *diag) BAY_MUST_CHECK;
/* The same, and what the other arguments already have: a JSON object of strings, which servers of
 * 2025-06-18 and later read. Takes it. Anything else: BAY_ERR_INVALID. */
BAY_API bay_err bay_client_complete_json(bay_client *client, const char *reference,
                                         const char *argument, const char *value, bay_json *context,
                                         bay_reply **out, bay_diag *diag) BAY_MUST_CHECK;
/* Any request. `params`: a JSON object, or NULL. */
BAY_API bay_err bay_client_request(bay_client *client, const char *method, const char *params,
                                   bay_reply **out, bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_client_request_json(bay_client *client, const char *method, bay_json *params,
                                        bay_reply **out, bay_diag *diag) BAY_MUST_CHECK;
/* A notification of the client's own. */
BAY_API bay_err bay_client_notify(bay_client *client, const char *method, const char *params,
                                  bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_client_notify_json(bay_client *client, const char *method, bay_json *params,
                                       bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_client_ping(bay_client *client, bay_diag *diag) BAY_MUST_CHECK;
/* Updates of a resource, in the server's own way. */
BAY_API bay_err bay_client_subscribe(bay_client *client, const char *uri,
                                     bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_client_subscribe_str(bay_client *client, bay_str uri,
                                         bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_client_unsubscribe(bay_client *client, const char *uri,
                                       bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_client_unsubscribe_str(bay_client *client, bay_str uri,
                                           bay_diag *diag) BAY_MUST_CHECK;
/* The least severe log message wanted ("info"; NULL: none), in the server's own way. */
BAY_API bay_err bay_client_log_level(bay_client *client, const char *level,
                                     bay_diag *diag) BAY_MUST_CHECK;
/* Replaces the roots (uri, name, uri, name …, NULL); the server is told. */
BAY_API bay_err bay_client_roots(bay_client *client, const char *const *pairs,
                                 bay_diag *diag) BAY_MUST_CHECK;

/* ---- lists --------------------------------------------------------------------------------------
 * All pages, in the server's order. Kept for as long as the server allows (ttlMs) and until it says
 * that they changed; servers without either are asked each time. An immutable snapshot. A tool that
 * breaks the rules of x-mcp-header is left out, and told. */

BAY_API bay_err bay_client_list(bay_client *client, bay_kind kind, bay_list **out,
                                bay_diag *diag) BAY_MUST_CHECK;
/* The same without waiting, also from inside callbacks. `list` NULL: it failed, `diag` says how;
 * else it is the callee's. */
typedef void (*bay_listed_fn)(bay_client *client, bay_list *list, const bay_diag *diag, void *user);
/* `listed` runs exactly once if this succeeds. */
BAY_API bay_err bay_client_list_start(bay_client *client, bay_kind kind, bay_diag *diag,
                                      bay_listed_fn listed, void *user) BAY_MUST_CHECK;
BAY_API void bay_list_free(bay_list *list); /* NULL is fine */
BAY_API size_t bay_list_count(const bay_list *list);
BAY_API bay_str bay_list_name(const bay_list *list, size_t index);
BAY_API bay_str bay_list_title(const bay_list *list, size_t index); /* or its name */
BAY_API bay_str bay_list_description(const bay_list *list, size_t index);
BAY_API bay_str bay_list_uri(const bay_list *list, size_t index); /* or the template */
/* The entry, byte for byte, but for icons that are neither https: URLs nor data: URIs of images:
 * those are left out. */
BAY_API bay_str bay_list_json(const bay_list *list, size_t index);
BAY_API bay_value bay_list_value(const bay_list *list, size_t index); /* the same, to be read */
/* Which has this name, or URI? count: none. */
BAY_API size_t bay_list_find(const bay_list *list, const char *name);
BAY_API size_t bay_list_find_str(const bay_list *list, bay_str name);
BAY_API size_t bay_list_rejected_count(const bay_list *list);
BAY_API bay_str bay_list_rejected(const bay_list *list, size_t index); /* "NAME: why" */
/* The page that shows this tool's results (apps): its ui:// URI, or empty. */
BAY_API bay_str bay_list_ui(const bay_list *list, size_t index);

/* ---- requests in full ---------------------------------------------------------------------------
 */

/* NULL: out of memory (or nothing was named); taken by every function below, and told by the one
 * that starts it. */
BAY_API bay_request *bay_request_new(bay_client *client, const char *method, const char *params);
BAY_API bay_request *bay_request_new_json(bay_client *client, const char *method, bay_json *params);
BAY_API bay_request *bay_request_tool(bay_client *client, const char *tool, const char *arguments);
BAY_API bay_request *bay_request_tool_str(bay_client *client, bay_str tool, bay_str arguments);
BAY_API bay_request *bay_request_tool_json(bay_client *client, const char *tool,
                                           bay_json *arguments);
BAY_API void bay_request_free(bay_request *request); /* only if it was not started */
BAY_API void bay_request_timeout(bay_request *request, uint32_t idle_ms, uint32_t total_ms);
/* `total` < 0: unknown; `message` may be empty. */
typedef void (*bay_request_progress_fn)(bay_request *request, double progress, double total,
                                        bay_str message, void *user);
BAY_API void bay_request_on_progress(bay_request *request, bay_request_progress_fn progressed,
                                     void *user);
/* Log messages of this request; `level`: the least severe one wanted. */
typedef void (*bay_request_logged_fn)(bay_request *request, bay_str params, void *user);
BAY_API void bay_request_on_log(bay_request *request, const char *level,
                                bay_request_logged_fn logged, void *user);
BAY_API void bay_request_meta(bay_request *request, const char *json); /* _meta: a JSON object */
BAY_API void bay_request_meta_json(bay_request *request, bay_json *json);
/* A task is not waited for: the reply is the task itself (bay_reply_task). */
BAY_API void bay_request_return_immediately(bay_request *request);

/* `diag->code` says how it went. BAY_OK: with a reply. BAY_ERR_REMOTE: with a reply, too, whose
 * bay_reply_json is the error object. Anything else: `reply` is NULL. A reply is the callee's. The
 * request is gone when this returns. */
typedef void (*bay_request_done_fn)(bay_request *request, bay_reply *reply, const bay_diag *diag,
                                    void *user);
/* Takes the request, also when it fails; `done` runs exactly once if it does not. BAY_ERR_STATE: it
 * was started already, and goes on. */
BAY_API bay_err bay_request_start(bay_request *request, bay_diag *diag, bay_request_done_fn done,
                                  void *user) BAY_MUST_CHECK;
/* The server is told; `done` runs with BAY_ERR_CANCELLED, at the next turn. May be called in any
 * callback before that; a request that was not started stays as it is. */
BAY_API void bay_request_cancel(bay_request *request, const char *reason);
/* Takes the request, and waits for its end. */
BAY_API bay_err bay_request_run(bay_request *request, bay_reply **out,
                                bay_diag *diag) BAY_MUST_CHECK;

/* ---- replies ------------------------------------------------------------------------------------
 * Views live as long as the reply. */

typedef enum bay_content {
    BAY_CONTENT_NONE, /* no such item */
    BAY_CONTENT_TEXT,
    BAY_CONTENT_IMAGE,
    BAY_CONTENT_AUDIO,
    BAY_CONTENT_LINK,
    BAY_CONTENT_RESOURCE, /* embedded, or an item of a resource that was read */
    BAY_CONTENT_VALUE,    /* of a completion */
    BAY_CONTENT_OTHER,    /* of a later revision: see bay_reply_item */
} bay_content;

BAY_API void bay_reply_free(bay_reply *reply);           /* NULL is fine */
BAY_API bool bay_reply_is_error(const bay_reply *reply); /* the tool says that it failed */
/* Content items, contents of a resource, messages of a prompt, values of a completion. */
BAY_API size_t bay_reply_count(const bay_reply *reply);
BAY_API bay_content bay_reply_kind(const bay_reply *reply, size_t index);
/* The text of the item, decoded; empty where it has none. */
BAY_API bay_str bay_reply_text(const bay_reply *reply, size_t index);
BAY_API bay_str bay_reply_mime_type(const bay_reply *reply, size_t index);
BAY_API bay_str bay_reply_uri(const bay_reply *reply, size_t index);
BAY_API bay_str bay_reply_role(const bay_reply *reply, size_t index); /* of a prompt's message */
/* Its bytes, from base64; decoded anew each time. The caller frees them with bay_free. */
BAY_API bay_err bay_reply_bytes(const bay_reply *reply, size_t index, void **out,
                                size_t *out_len) BAY_MUST_CHECK;
BAY_API bay_str bay_reply_item(const bay_reply *reply, size_t index); /* raw JSON */
BAY_API bay_str bay_reply_structured(const bay_reply *reply);         /* raw JSON, or empty */
BAY_API bay_str bay_reply_json(const bay_reply *reply);               /* the whole result, raw */
/* The member of that name of the structured content, else of the result, as text: a string decoded,
 * any other value as its JSON; empty when absent. */
BAY_API bay_str bay_reply_str(const bay_reply *reply, const char *name);
/* The same, to be read further: bay_value_int_or(…). NULL: the structured content, else the result.
 */
BAY_API bay_value bay_reply_value(const bay_reply *reply, const char *name);

/* ---- questions of the server --------------------------------------------------------------------
 * Each is answered once. A handler that returns without answering or deferring has declined. */

BAY_API bay_str bay_question_method(const bay_question *question); /* "elicitation/create" */
BAY_API bay_str bay_question_params(const bay_question *question); /* raw JSON object */
/* The member of that name of the params, to be read; NULL: all of them. */
BAY_API bay_value bay_question_value(const bay_question *question, const char *name);
BAY_API bay_str bay_question_message(const bay_question *question);
BAY_API bay_str bay_question_schema(const bay_question *question); /* of a form; raw JSON */
/* Of a page; or empty. Whatever the server says: look at its scheme and host, and ask, before it is
 * opened. */
BAY_API bay_str bay_question_url(const bay_question *question);
/* `content`: the form's fields as a JSON object; NULL: none but the defaults. What breaks the
 * schema: BAY_ERR_INVALID with a diag, and the question is still open. */
BAY_API bay_err bay_question_accept(bay_question *question, const char *content,
                                    bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_question_accept_json(bay_question *question, bay_json *content,
                                         bay_diag *diag) BAY_MUST_CHECK; /* takes it */
BAY_API void bay_question_decline(bay_question *question);
BAY_API void bay_question_cancel(bay_question *question);
/* Sampling: what the model said. */
BAY_API void bay_question_reply(bay_question *question, const char *model, const char *text);
BAY_API void bay_question_replyf(bay_question *question, const char *model, const char *format, ...)
    BAY_PRINTF(3, 4);
BAY_API void bay_question_reply_str(bay_question *question, const char *model, bay_str text);
BAY_API void bay_question_result(bay_question *question, const char *object); /* raw, any method */
BAY_API void bay_question_result_json(bay_question *question, bay_json *object); /* takes it */
BAY_API void bay_question_error(bay_question *question, int code, const char *message);
BAY_API void bay_question_errorf(bay_question *question, int code, const char *format, ...)
    BAY_PRINTF(3, 4);
BAY_API void bay_question_error_str(bay_question *question, int code, bay_str message);
/* Answer later, on the client's thread. It may have become pointless: answering is still right. */
BAY_API bay_question *bay_question_defer(bay_question *question);

/* ---- extensions ---------------------------------------------------------------------------------
 */

/* Tasks: bay_client_call and every request wait for a task as they wait for an answer: they look at
 * the pace that the server wants, let the handlers above answer what it asks, and return the final
 * result. With bay_request_return_immediately: its id and its state. The extension is declared to
 * every server; bay_client_options_extension may give it other settings. Giving up a call that
 * became a task cancels the task; giving up bay_client_task_wait does not. */
BAY_API bay_str bay_reply_task(const bay_reply *reply);
BAY_API bay_task_state bay_reply_task_state(const bay_reply *reply);
BAY_API bay_err bay_client_task(bay_client *client, const char *id, bay_reply **out,
                                bay_diag *diag) BAY_MUST_CHECK; /* how it stands now */
BAY_API bay_err bay_client_task_str(bay_client *client, bay_str id, bay_reply **out,
                                    bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_client_task_wait(bay_client *client, const char *id, bay_reply **out,
                                     bay_diag *diag) BAY_MUST_CHECK; /* its final result */
BAY_API bay_err bay_client_task_wait_str(bay_client *client, bay_str id, bay_reply **out,
                                         bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_client_task_cancel(bay_client *client, const char *id,
                                       bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_client_task_cancel_str(bay_client *client, bay_str id,
                                           bay_diag *diag) BAY_MUST_CHECK;

/* Skills: bay_client_list(client, BAY_KIND_SKILLS, …) says which there are; nothing is fetched
 * before it is asked for. A file whose size or digest is not what the list says, or a SKILL.md
 * whose front matter is not, is refused: BAY_ERR_DENIED, and so is everything of that skill until
 * its entry changes. `skill`: its name where only one has it, or its URI (which need not be
 * listed). `path`: "SKILL.md", "references/FORMS.md". Of a skill whose content is dynamic only the
 * front matter can be verified. BAY_ERR_UNSUPPORTED: the server has no skills, or the library
 * cannot take digests. */
BAY_API bay_err bay_client_skill_file(bay_client *client, const char *skill, const char *path,
                                      bay_reply **out, bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_client_skill_file_str(bay_client *client, bay_str skill, bay_str path,
                                          bay_reply **out, bay_diag *diag) BAY_MUST_CHECK;

/* ---- event loops --------------------------------------------------------------------------------
 * When the descriptor is readable, or the time (ms, -1: none) has passed, dispatch does what is due
 * without waiting. Ask for the time again after each dispatch and each start. The descriptor stays
 * the same, whatever becomes of connections. BAY_ERR_CLOSED: the server cannot be reached, and it
 * is no longer tried; the next request tries again, so this is no reason to close the client. */

BAY_API int bay_client_fd(const bay_client *client);
BAY_API int bay_client_wait_ms(const bay_client *client);
BAY_API bay_err bay_client_dispatch(bay_client *client) BAY_MUST_CHECK;
/* For programs without one: turns the loop until something happened, or for so long (-1: without
 * bound). BAY_OK in both cases; BAY_ERR_CLOSED as above. */
BAY_API bay_err bay_client_wait(bay_client *client, int ms) BAY_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif

/* An MCP server: tools, resources and prompts written once, served to clients of every protocol
 * revision from 2024-11-05 to 2026-07-28, on stdio and HTTP and in process.
 *
 *     bay_server *server = bay_server_new("weather", "1.0.0");
 *     bay_server_tool(server, "get_weather", "Conditions in a city.", input, handler, NULL);
 *     return bay_server_main(server, argc, argv);
 *
 * Errors of registration (a bad schema, a bad name, twice the same) are kept by the server and
 * reported, all of them, by bay_server_main or bay_server_check before it serves.
 *
 * For the whole header:
 * Owns: strings and bytes given are copied; a `user` pointer stays the caller's and must outlive
 * the server; tools, resources and prompts belong to their server. Errors: those of registration
 * are kept, see above. Units: lengths in bytes, times in milliseconds. Threads: a server is set up
 * by one thread, and served by one: the one that runs or dispatches it. Handlers run there too;
 * those marked blocking run on a pool of threads. What any thread may call says so. Source: MCP
 * revisions 2024-11-05 to 2026-07-28: server/tools, server/resources, server/prompts,
 * server/utilities, basic/utilities and basic/patterns; extensions tasks, skills and apps. */
#ifndef PATCHBAY_SERVER_H
#define PATCHBAY_SERVER_H

#include <patchbay/call.h>
#include <patchbay/library.h>
#include <patchbay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bay_server bay_server;
typedef struct bay_tool bay_tool;
typedef struct bay_resource bay_resource; /* at one URI, or a template of many */
typedef struct bay_prompt bay_prompt;
typedef struct bay_peer bay_peer; /* who sent an HTTP request, while it is being identified */

/* ---- the server -------------------------------------------------------------------------------
 * NULL is returned only when out of memory, and taken by every function that takes what was
 * returned. */

BAY_API bay_server *bay_server_new(const char *name, const char *version);
BAY_API void bay_server_free(bay_server *server); /* NULL is fine; not while it is being served */
BAY_API void bay_server_title(bay_server *server, const char *title);
BAY_API void bay_server_instructions(bay_server *server, const char *text);
BAY_API void bay_server_website(bay_server *server, const char *url);
/* A JSON array of icons: [{"src":"https://…","mimeType":"image/png","sizes":["48x48"]}]. Each is an
 * https: URL or a data: URI of an image; so are those of tools, resources and prompts. */
BAY_API void bay_server_icons(bay_server *server, const char *json);
/* Lines about this server go there, in place of bay_log_to's sink. */
BAY_API void bay_server_log_to(bay_server *server, bay_log_level most_verbose, bay_log_fn sink,
                               void *user);

/* Settings that are numbers, read when serving begins; 0 stands for the default, except where it
 * says what 0 is. Out of range: an error of registration. */
typedef enum bay_server_setting {
    BAY_SERVER_SETTING_CALL_TIMEOUT_MS,     /* of every call without one of its own; 600,000 */
    BAY_SERVER_SETTING_QUESTION_TIMEOUT_MS, /* until a question counts as unanswered; 600,000 */
    BAY_SERVER_SETTING_STATE_TTL_MS,        /* a client's time for its next round; 600,000 */
    BAY_SERVER_SETTING_LIST_TTL_MS,     /* of lists that clients keep; 300,000; 0: none are kept */
    BAY_SERVER_SETTING_PAGE_SIZE,       /* entries per page of a list; 0: all on one */
    BAY_SERVER_SETTING_MAX_SESSIONS,    /* 10,000 */
    BAY_SERVER_SETTING_SESSION_IDLE_MS, /* 1,800,000 */
    BAY_SERVER_SETTING_MAX_REQUESTS,    /* under way per session or connection; 1,024 */
    BAY_SERVER_SETTING_MAX_BODY_BYTES,  /* of one HTTP request; 16 MiB */
    BAY_SERVER_SETTING_MAX_CONNECTIONS, /* HTTP; 10,000 */
    BAY_SERVER_SETTING_MAX_TASKS,       /* kept at one time; 10,000 */
    BAY_SERVER_SETTING_TASK_TTL_MS,     /* from its creation to its removal; 3,600,000 */
    BAY_SERVER_SETTING_TASK_POLL_MS,    /* what clients are told to wait between two looks; 1,000 */
    BAY_SERVER_SETTING_MAX_REPLY_BYTES, /* HTTP: of replies that clients have not read, of all
                                         * servers of the process; above it the connection that has
                                         * read nothing for the longest time ends; 16 MiB */
} bay_server_setting;
BAY_API void bay_server_set(bay_server *server, bay_server_setting setting, int64_t value);

/* Serve only these revisions, inclusive: "2025-03-26", "2026-07-28". NULL: no bound. */
BAY_API void bay_server_revisions(bay_server *server, const char *oldest, const char *newest);

/* ---- tools --------------------------------------------------------------------------------------
 */

/* `input` is a table of fields (patchbay/schema.h); NULL: no arguments. Arguments that do not fit it
 * never reach the handler: the caller gets a tool error that says what to mend. Those that are left
 * out have their defaults. */
BAY_API bay_tool *bay_server_tool(bay_server *server, const char *name, const char *description,
                                  const bay_field *input, bay_handler_fn handler, void *user);
/* The same with a hand-written schema: JSON Schema 2020-12 (or draft-07, by $schema) of type object;
 * NULL: any object. Top-level properties with "x-mcp-header" are checked against their header
 * fields. A word in it that means nothing is a warning in the log. */
BAY_API bay_tool *bay_server_tool_schema(bay_server *server, const char *name,
                                         const char *description, const char *input_schema,
                                         bay_handler_fn handler, void *user);
BAY_API bay_tool *bay_server_tool_schema_json(bay_server *server, const char *name,
                                              const char *description, bay_json *input_schema,
                                              bay_handler_fn handler, void *user);
/* A hand-written schema's defaults are applied as those of a table are: of `properties` and `items`,
 * not behind $ref, allOf and the like. A default that breaks its own schema is an error. */
BAY_API void bay_tool_apply_defaults(bay_tool *tool);
BAY_API void bay_tool_title(bay_tool *tool, const char *title);
/* What bay_result_structured gives must fit this; when it does not, the call fails. A schema of
 * another type than object is shown to clients of 2026-07-28 and later, which alone know it. */
BAY_API void bay_tool_output(bay_tool *tool, const bay_field *output);
BAY_API void bay_tool_output_schema(bay_tool *tool, const char *schema);
BAY_API void bay_tool_output_schema_json(bay_tool *tool, bay_json *schema);
/* Behaviour hints as a JSON object: {"readOnlyHint":true,…}. */
BAY_API void bay_tool_annotations(bay_tool *tool, const char *json);
BAY_API void bay_tool_icons(bay_tool *tool, const char *json);
BAY_API void bay_tool_meta(bay_tool *tool, const char *json); /* _meta: a JSON object */
/* The handler may block: it runs on the pool, not on the loop. */
BAY_API void bay_tool_blocking(bay_tool *tool);
/* The call is given up after so long: cancelled, and answered with a tool error that says so. */
BAY_API void bay_tool_timeout(bay_tool *tool, uint32_t ms);
/* The caller must have declared this client capability ("sampling", "elicitation", "roots"), or the
 * call is refused before the handler runs (-32021; a tool error for legacy clients). */
BAY_API void bay_tool_requires(bay_tool *tool, const char *capability);
/* Off: neither listed nor callable until it is on again. Clients hear of the change. Any thread,
 * also while serving. */
BAY_API void bay_tool_enable(bay_tool *tool, bool is_enabled);

/* Extension io.modelcontextprotocol/tasks: the call may outlive its request. The handler is the
 * same; with a client that declares the extension the answer is a task, and what the handler sends,
 * asks and answers goes there. */
typedef enum bay_task_mode {
    BAY_TASK_MODE_NEVER,      /* the default */
    BAY_TASK_MODE_OPTIONAL,   /* a task for clients that can, a plain call for the others */
    BAY_TASK_MODE_REQUIRED,   /* clients that cannot are refused (-32021) */
    BAY_TASK_MODE_BY_HANDLER, /* a plain call until bay_call_become_task */
} bay_task_mode;
BAY_API void bay_tool_task(bay_tool *tool, bay_task_mode mode);
/* The handler may be run again from the top when the process died while it was working; otherwise
 * such a task has failed. */
BAY_API void bay_tool_resumable(bay_tool *tool);

/* ---- resources ----------------------------------------------------------------------------------
 * At a fixed URI, and a family of them by URI template (RFC 6570 level 1). The handler answers with
 * bay_call_reply (text) or a result holding bay_result_blob; the URI read is bay_call_name. */

BAY_API bay_resource *bay_server_resource(bay_server *server, const char *uri, const char *name,
                                          const char *description, const char *mime_type,
                                          bay_handler_fn handler, void *user);
BAY_API bay_resource *bay_server_template(bay_server *server, const char *uri_template,
                                          const char *name, const char *description,
                                          const char *mime_type, bay_handler_fn handler,
                                          void *user);
BAY_API void bay_resource_title(bay_resource *resource, const char *title);
BAY_API void bay_resource_annotations(bay_resource *resource, const char *json);
BAY_API void bay_resource_icons(bay_resource *resource, const char *json);
BAY_API void bay_resource_meta(bay_resource *resource, const char *json);
BAY_API void bay_resource_size(bay_resource *resource, uint64_t bytes);
BAY_API void bay_resource_blocking(bay_resource *resource); /* as bay_tool_blocking */
BAY_API void bay_resource_enable(bay_resource *resource, bool is_enabled); /* any thread */

/* ---- prompts and completion ---------------------------------------------------------------------
 */

/* `arguments` is a table of strings (patchbay/schema.h); NULL: none. They are checked as a tool's
 * are; choices are offered as completions. The handler adds messages with bay_result_message. */
BAY_API bay_prompt *bay_server_prompt(bay_server *server, const char *name, const char *description,
                                      const bay_field *arguments, bay_handler_fn handler,
                                      void *user);
BAY_API void bay_prompt_title(bay_prompt *prompt, const char *title);
BAY_API void bay_prompt_icons(bay_prompt *prompt, const char *json);
BAY_API void bay_prompt_meta(bay_prompt *prompt, const char *json);
BAY_API void bay_prompt_blocking(bay_prompt *prompt);                /* as bay_tool_blocking */
BAY_API void bay_prompt_enable(bay_prompt *prompt, bool is_enabled); /* any thread */

/* Completion of prompt arguments without choices and of template variables: one handler for all. It
 * reads bay_call_name (the prompt's name or the template), bay_call_str(call, "name") and
 * bay_call_str(call, "value") (the argument), by bay_call_context what the others have, and adds values with bay_result_value. */
BAY_API void bay_server_completion(bay_server *server, bay_handler_fn handler, void *user);

/* ---- changes ------------------------------------------------------------------------------------
 * Any thread, also while serving. Clients that asked for it are told, each in its revision's way.
 */

BAY_API void bay_server_changed(bay_server *server, bay_kind kind); /* since they last listed */
BAY_API void bay_server_updated(bay_server *server, const char *uri);
BAY_API void bay_server_updated_str(bay_server *server, bay_str uri);
/* A log message tied to no call, to the sessions whose level admits it. */
BAY_API void bay_server_log(bay_server *server, const char *level, const char *text);
BAY_API void bay_server_logf(bay_server *server, const char *level, const char *format, ...)
    BAY_PRINTF(3, 4);
BAY_API void bay_server_log_str(bay_server *server, const char *level, bay_str text);
/* The first subscriber of a resource came, or the last one left: start or stop to watch it. */
typedef void (*bay_subscribed_fn)(bay_server *server, bay_str uri, bool is_wanted, void *user);
BAY_API void bay_server_on_subscribe(bay_server *server, bay_subscribed_fn subscribed, void *user);

/* ---- extensions ---------------------------------------------------------------------------------
 */

/* Declares capabilities.extensions[id] = settings (a JSON object; NULL: {}). */
BAY_API void bay_server_extension(bay_server *server, const char *id, const char *settings);
/* A method of an extension, outside the protocol's own: the handler reads the params as arguments
 * and answers with bay_call_finish_json or bay_call_error. */
BAY_API void bay_server_method(bay_server *server, const char *method, bay_handler_fn handler,
                               void *user);

/* Skills (io.modelcontextprotocol/skills): the folder of a SKILL.md and what lies beside it, read
 * when the server is checked, its files offered as resources skill://NAME/…, with digests. Or from
 * memory, file by file; SKILL.md first. */
BAY_API void bay_server_skill(bay_server *server, const char *folder);
BAY_API void bay_server_skill_file(bay_server *server, const char *skill, const char *path,
                                   const char *mime_type, const void *bytes, size_t len);

/* Apps (io.modelcontextprotocol/ui): a page at ui://… for the host to show, and the tool whose
 * results it shows. `settings`: _meta.ui of the resource ({"csp":…}) as a JSON object, or NULL. */
BAY_API bay_resource *bay_server_ui(bay_server *server, const char *uri, const char *name,
                                    const char *html, const char *settings);
BAY_API void bay_tool_ui(bay_tool *tool, const char *uri);
/* Who may call it: "model", "app", or both: "model,app" (the default). */
BAY_API void bay_tool_visibility(bay_tool *tool, const char *visibility);

/* ---- who is calling, and what must not be forged ------------------------------------------------
 */

/* Called for each HTTP request before anything of it is looked at. True: go on (bay_peer_principal
 * names the caller); false: 401, with `challenge` as WWW-Authenticate if bay_peer_challenge gave
 * one. */
typedef bool (*bay_identify_fn)(bay_peer *peer, void *user);
BAY_API void bay_server_identify(bay_server *server, bay_identify_fn identify, void *user);
/* Anybody may call: the server also listens on addresses that other machines reach although it has
 * no bay_server_identify. With one, bay_server_check says BAY_ERR_INVALID: each admits what the
 * other refuses. */
BAY_API void bay_server_open_on_purpose(bay_server *server);
BAY_API bay_str bay_peer_field(const bay_peer *peer,
                               const char *name); /* header; `at` NULL: none */
/* The subject of the client's certificate, which bay_server_tls's `ca_file` signed
 * ("CN=client,O=Example", RFC 2253); empty: the client showed none. */
BAY_API bay_str bay_peer_certificate(const bay_peer *peer);
BAY_API void bay_peer_principal(bay_peer *peer, const char *principal);
BAY_API void bay_peer_challenge(bay_peer *peer, const char *challenge);
/* Hosts that requests may name (Host), and pages that may call it (Origin): "mcp.example.com",
 * "https://console.example.com"; "*": any. Without them: on a loopback address names of this
 * machine, elsewhere any host; pages of the same origin, or of this machine. At most 256 of each;
 * before bay_server_listen. Source: MCP 2026-07-28 basic/transports/streamable-http. */
BAY_API void bay_server_allow_host(bay_server *server, const char *name);
BAY_API void bay_server_allow_origin(bay_server *server, const char *origin);
/* HTTPS, as HTTP/1.1 and HTTP/2, with this certificate chain and key (PEM files). `ca_file`: who
 * signs clients' certificates, for bay_peer_certificate; a certificate that it did not sign ends
 * the connection; NULL: clients are not asked for one. Before bay_server_listen, which reads the
 * files.
 * Errors: of registration, where one of the two is missing; of bay_server_listen, BAY_ERR_TLS: a
 * file cannot be read, is not PEM, or the key is not the certificate's; BAY_ERR_UNSUPPORTED: this
 * library is built without TLS. */
BAY_API void bay_server_tls(bay_server *server, const char *certificate_file, const char *key_file,
                            const char *ca_file);

/* The secret (32 bytes) that seals what clients carry between two rounds, and whose a stored task
 * is. The newest seals, each opens: give the old one first, then the new one. Without any, one is
 * drawn at start for rounds, which do not survive a restart, and one for tasks is made once and
 * kept in the file of bay_server_store. A task whose key is not given any more belongs to nobody.
 */
BAY_API void bay_server_key(bay_server *server, const void *key, size_t len);

/* Where tasks live: ":memory:" (the default) or the path of an SQLite file, where they are safe
 * before the reply that names them, and survive the process. */
BAY_API void bay_server_store(bay_server *server, const char *path);

/* ---- serving ------------------------------------------------------------------------------------
 */

/* Are all registrations good? BAY_ERR_INVALID and the first error's text if not. */
BAY_API bay_err bay_server_check(bay_server *server, bay_diag *diag) BAY_MUST_CHECK;

/* Serves until the end of input (stdio) or SIGTERM (HTTP); frees the server; returns the exit
 * status for main. Options: --stdio (default), --http ADDRESS[:PORT], --open
 * (bay_server_open_on_purpose), --help, --version. */
BAY_API int bay_server_main(bay_server *server, int argc, char **argv);

/* The same in pieces, for a program with a life of its own. First say where, as often as needed:
 * "127.0.0.1:8080" (port 0: a free one), or two descriptors, which stay the caller's.
 * BAY_ERR_DENIED: other machines can reach the address (it, or one that its name resolves to, is
 * not a loopback address), there is no bay_server_identify, and nobody said
 * bay_server_open_on_purpose. */
BAY_API bay_err bay_server_listen(bay_server *server, const char *address,
                                  bay_diag *diag) BAY_MUST_CHECK;
BAY_API uint16_t bay_server_port(const bay_server *server); /* of the first listen; 0: none */
BAY_API bay_err bay_server_pipe(bay_server *server, int in, int out, bay_diag *diag) BAY_MUST_CHECK;
/* Then serve on this thread until bay_server_stop, or until every pipe has ended and nothing is
 * listened on … */
BAY_API bay_err bay_server_run(bay_server *server, bay_diag *diag) BAY_MUST_CHECK;
BAY_API void bay_server_stop(bay_server *server); /* any thread, and signal handlers */
/* … or from an event loop: when the descriptor is readable, or the time (ms, -1: none) has passed,
 * dispatch does what is due without waiting. BAY_ERR_EOF: as where bay_server_run returns. */
BAY_API int bay_server_fd(const bay_server *server);
BAY_API int bay_server_wait_ms(const bay_server *server);
BAY_API bay_err bay_server_dispatch(bay_server *server) BAY_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif

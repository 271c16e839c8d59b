/* An A2A agent: a card and a handler, served to callers of every protocol version from 0.1 to 1.0,
 * as JSON-RPC, HTTP+JSON and gRPC, all at one address.
 *
 *     bay_agent *agent = bay_agent_new("research", "1.0.0", "Reads the literature.");
 *     bay_agent_skill(agent, "search", "Search", "Finds and sums up papers.", research, NULL);
 *     return bay_agent_main(agent, argc, argv);
 *
 * The handler is called once for each message: a new one, or one for a task that waits for input.
 * It answers with a message (bay_task_reply), or moves the task: status, artifacts, and an end.
 * What the library does is the rest: the state machine, history, assembly of artifacts, blocking
 * and other sends, streams and their replay, subscriptions, paging, push deliveries, storage.
 *
 * Errors of registration (a bad URL, twice the same skill, JSON that is none) are kept by the agent
 * and reported, all of them, by bay_agent_main or bay_agent_check before it serves.
 *
 * For the whole header:
 * Owns: strings and bytes given are copied; a `user` pointer stays the caller's and must outlive
 * the agent; skills belong to their agent. Errors: those of registration are kept, see above.
 * Units: lengths in bytes, times in milliseconds. Threads: an agent is set up by one thread, and
 * served by one: the one that runs or dispatches it. Handlers run on a pool of threads, one message
 * of a task at a time, unless bay_agent_on_loop; callbacks that verify credentials run on the
 * serving thread. What any thread may call says so. Source: A2A 1.0.1, 0.3.0, 0.2.6 and 0.1.0. */
#ifndef PATCHBAY_AGENT_H
#define PATCHBAY_AGENT_H

#include <patchbay/library.h>
#include <patchbay/message.h>
#include <patchbay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bay_agent bay_agent;
typedef struct bay_skill bay_skill;       /* a skill of an agent, as its card lists it */
typedef struct bay_task bay_task;         /* a task, as its handler sees it during one message */
typedef struct bay_artifact bay_artifact; /* something the task makes, while it is being made */
typedef struct bay_grant bay_grant;       /* what a credential entitles to, while it is verified */

typedef void (*bay_task_handler_fn)(bay_task *task, const bay_message *message, void *user);

/* ---- the agent ----------------------------------------------------------------------------------
 * NULL is returned only when out of memory, and taken by every function that takes what was
 * returned. */

BAY_API bay_agent *bay_agent_new(const char *name, const char *version, const char *description);
/* NULL is fine; not while it is being served. Waits for handlers that are still running: they see
 * bay_task_is_cancelled. */
BAY_API void bay_agent_free(bay_agent *agent);
/* Lines about this agent go there, in place of bay_log_to's sink. */
BAY_API void bay_agent_log_to(bay_agent *agent, bay_log_level most_verbose, bay_log_fn sink,
                              void *user);

/* Settings that are numbers, read when serving begins; 0 stands for the default, except where it
 * says what 0 is. Out of range: an error of registration. */
typedef enum bay_agent_setting {
    BAY_AGENT_SETTING_THREADS,       /* that run handlers; 16 */
    BAY_AGENT_SETTING_MAX_TASKS,     /* kept at one time; the oldest that ended go first; 100,000 */
    BAY_AGENT_SETTING_MAX_RUNNING,   /* messages that handlers work on at one time; 10,000 */
    BAY_AGENT_SETTING_MAX_WAITING,   /* messages of one task that wait for the one before; 16 */
    BAY_AGENT_SETTING_TASK_BYTES,    /* of one task with history and artifacts; 32 MiB */
    BAY_AGENT_SETTING_TOTAL_BYTES,   /* of all tasks; 1 GiB */
    BAY_AGENT_SETTING_TASK_TTL_MS,   /* from a task's end to its removal; 7 days */
    BAY_AGENT_SETTING_MAX_HISTORY,   /* messages of one task; 1,000 */
    BAY_AGENT_SETTING_MAX_ARTIFACTS, /* of one task; 1,000 */
    BAY_AGENT_SETTING_MAX_SUBSCRIBERS, /* streams of one task; 10,000 */
    BAY_AGENT_SETTING_REPLAY_EVENTS,   /* of one task, for streams that were cut; 1,000 */
    BAY_AGENT_SETTING_DEDUPLICATE_MS, /* a message that comes twice in this time counts once; 600,000 */
    BAY_AGENT_SETTING_MAX_BODY_BYTES,  /* of one request; 16 MiB */
    BAY_AGENT_SETTING_MAX_CONNECTIONS, /* 10,000 */
    BAY_AGENT_SETTING_KEEP_ALIVE_MS,   /* a comment on a stream that is quiet for so long; 15,000 */
    BAY_AGENT_SETTING_CARD_MAX_AGE_S,  /* how long callers may keep the card, in seconds; 300 */
    BAY_AGENT_SETTING_MAX_REPLY_BYTES, /* of replies that callers have not read, of all servers of
                                        * the process; above it the connection that has read nothing
                                        * for the longest time ends; 16 MiB */
} bay_agent_setting;
BAY_API void bay_agent_set(bay_agent *agent, bay_agent_setting setting, int64_t value);

/* ---- the card -----------------------------------------------------------------------------------
 * What is set while the agent is served shows after bay_agent_update. */

/* A skill: what the agent can do, and who does it. A message says which it wants by "skillId" in
 * its metadata or the request's: one that the agent does not have is refused before there is a
 * task. A message that names none goes to bay_agent_handler's, else to the first skill's. */
BAY_API bay_skill *bay_agent_skill(bay_agent *agent, const char *id, const char *name,
                                   const char *description, bay_task_handler_fn handler,
                                   void *user);
BAY_API void bay_skill_tag(bay_skill *skill, const char *tag);
BAY_API void bay_skill_example(bay_skill *skill, const char *example);
BAY_API void bay_skill_input_mode(bay_skill *skill, const char *media_type);
BAY_API void bay_skill_output_mode(bay_skill *skill, const char *media_type);
/* Who asks for this skill, or goes on with a task of it, needs this as well (see
 * bay_agent_require). */
BAY_API void bay_skill_require(bay_skill *skill, const char *scheme, const char *scopes);
/* Who answers messages that name no skill. */
BAY_API void bay_agent_handler(bay_agent *agent, bay_task_handler_fn handler, void *user);

BAY_API void bay_agent_provider(bay_agent *agent, const char *organization, const char *url);
BAY_API void bay_agent_documentation(bay_agent *agent, const char *url);
BAY_API void bay_agent_icon(bay_agent *agent, const char *url);
/* Media types that are taken and made by skills that say nothing else; "text/plain" until one is
 * given. */
BAY_API void bay_agent_input_mode(bay_agent *agent, const char *media_type);
BAY_API void bay_agent_output_mode(bay_agent *agent, const char *media_type);
/* An extension of the protocol. `params`: a JSON object, or NULL. Callers that do not declare a
 * required one are refused. */
BAY_API void bay_agent_extension(bay_agent *agent, const char *uri, const char *description,
                                 bool is_required, const char *params);
/* Where callers reach it, as they see it: "https://research.example.com/agent". Its path is where
 * the agent stands: what is behind a proxy that cuts paths off gives bay_agent_path as well.
 * Without it: http(s)://, the address and port that are listened on first. */
BAY_API void bay_agent_url(bay_agent *agent, const char *url);
BAY_API void bay_agent_path(bay_agent *agent, const char *path); /* "" or "/a2a/research" */
/* Members that callers with credentials see in addition, or in place of those of the card: a JSON
 * object of a 1.0 card's members ({"skills":[…]}). The agent needs a security scheme then. */
BAY_API void bay_agent_extended(bay_agent *agent, const char *members);
/* The card that callers get who name no version has, beside 1.0, what those of 0.2 and 0.3 read;
 * false: it is a pure card of 1.0. True unless said. */
BAY_API void bay_agent_hybrid_card(bay_agent *agent, bool is_hybrid);
/* Requests with a method of 1.0 that name no version are served as 1.0; false: they are refused.
 * True unless said. */
BAY_API void bay_agent_lenient(bay_agent *agent, bool is_lenient);
/* Signs the card: PEM or JWK of a private key (EC P-256 or RSA), the id that its signatures name
 * (NULL: the key's own, or its thumbprint), and where the public half is found (NULL: nowhere). */
BAY_API void bay_agent_signing_key(bay_agent *agent, const char *key, const char *key_id,
                                   const char *jku);
/* Shows what was set since. On the serving thread. BAY_ERR_INVALID: errors of registration; then
 * the card is as it was. */
BAY_API bay_err bay_agent_update(bay_agent *agent, bay_diag *diag) BAY_MUST_CHECK;
/* The card as callers of 1.0 get it; lives until the next update. Empty before the agent listens.
 */
BAY_API bay_str bay_agent_card(const bay_agent *agent);

/* ---- who may call -------------------------------------------------------------------------------
 * Schemes are declared in the card, and enforced: no operation without a credential. An agent
 * without any listens on loopback addresses only, unless it is open on purpose. */

/* Is this credential good? True: whose it is was said by bay_grant_principal. */
typedef bool (*bay_verify_fn)(bay_grant *grant, bay_str credential, void *user);
BAY_API void bay_grant_principal(bay_grant *grant, const char *principal);
BAY_API void bay_grant_scopes(bay_grant *grant, const char *scopes); /* separated by spaces */

/* A key in the field `name` of `location` ("header", "query", "cookie"), known by
 * bay_agent_api_key_add or by `verify` (NULL: only the former). */
BAY_API void bay_agent_api_key(bay_agent *agent, const char *scheme, const char *location,
                               const char *name, bay_verify_fn verify, void *user);
BAY_API void bay_agent_api_key_add(bay_agent *agent, const char *scheme, const char *key,
                                   const char *principal, const char *scopes);
/* HTTP authentication: `kind` is "Bearer", "Basic", … ; the credential is what follows it. */
BAY_API void bay_agent_http_auth(bay_agent *agent, const char *scheme, const char *kind,
                                 bay_verify_fn verify, void *user);
/* Bearer tokens that are JWTs: signed by a key of `keys` (a JWK set, or the path of a file that
 * holds one), by `issuer` (NULL: any), for `audience`. The subject is the principal. */
BAY_API void bay_agent_jwt(bay_agent *agent, const char *scheme, const char *issuer,
                           const char *audience, const char *keys);
/* The client's certificate, by bay_agent_tls's `ca_file`. Its subject is the principal. */
BAY_API void bay_agent_mtls(bay_agent *agent, const char *scheme);
/* Any scheme as the card has it ({"oauth2SecurityScheme":{…}}); its bearer tokens are verified by
 * `verify`, or, when that is NULL, as those of the scheme `like` are. */
BAY_API void bay_agent_scheme(bay_agent *agent, const char *scheme, const char *json,
                              const char *like, bay_verify_fn verify, void *user);
/* Callers need this scheme, with these scopes (separated by spaces; NULL: none). Given more than
 * once: any one of them is enough. Not given: any one scheme of the card is. */
BAY_API void bay_agent_require(bay_agent *agent, const char *scheme, const char *scopes);
/* Anybody may call: the agent also listens on addresses that other machines reach although its card
 * asks nobody for credentials. Credentials that the card requires are required all the same: with
 * such a card bay_agent_check says BAY_ERR_INVALID. Skills keep what they require. */
BAY_API void bay_agent_open_on_purpose(bay_agent *agent);
/* Hosts that requests may name (Host), and pages that may call it (Origin): "agents.example.com",
 * "https://console.example.com"; "*": any. Without them: on a loopback address names of this
 * machine and the host of bay_agent_url, elsewhere any host; pages of the same origin, or of this
 * machine. At most 256 of each; before bay_agent_listen. */
BAY_API void bay_agent_allow_host(bay_agent *agent, const char *name);
BAY_API void bay_agent_allow_origin(bay_agent *agent, const char *origin);
/* HTTPS, as HTTP/1.1 and HTTP/2, with this certificate chain and key (PEM files). `ca_file`: who
 * signs clients' certificates, for bay_agent_mtls; a certificate that it did not sign ends the
 * connection; NULL: clients are not asked for one. Before bay_agent_listen, which reads the files.
 * Errors: as bay_server_tls. */
BAY_API void bay_agent_tls(bay_agent *agent, const char *certificate_file, const char *key_file,
                           const char *ca_file);

/* ---- tasks: where they live, who hears of them --------------------------------------------------
 */

/* ":memory:" (the default) or the path of an SQLite file. A task is committed to it before any
 * response, event or webhook mentions the task, and survives a crash of the process. */
BAY_API void bay_agent_store(bay_agent *agent, const char *path);
/* Messages whose handler ran when the process died are given to it again (bay_task_is_resumed);
 * without this such tasks have failed. */
BAY_API void bay_agent_resumable(bay_agent *agent);
/* Handlers do not block: they run on the serving thread, without a pool. */
BAY_API void bay_agent_on_loop(bay_agent *agent);
/* Push notifications: callers may register webhooks. Addresses of this machine and of private
 * networks are refused but for those allowed: "127.0.0.1", "hooks.internal", "10.0.0.0/8". */
BAY_API void bay_agent_push(bay_agent *agent);
BAY_API void bay_agent_push_allow(bay_agent *agent, const char *target);

/* ---- serving ------------------------------------------------------------------------------------
 */

/* Are all registrations good? BAY_ERR_INVALID and the first error's text if not. */
BAY_API bay_err bay_agent_check(bay_agent *agent, bay_diag *diag) BAY_MUST_CHECK;

/* Serves until SIGTERM; frees the agent; returns the exit status for main. Options: --http
 * ADDRESS[:PORT] (127.0.0.1:8080), --open (bay_agent_open_on_purpose), --store FILE, --url URL,
 * --card (prints the card), --help, --version. */
BAY_API int bay_agent_main(bay_agent *agent, int argc, char **argv);

/* The same in pieces, for a program with a life of its own. First say where, as often as needed:
 * "127.0.0.1:8080" (port 0: a free one). BAY_ERR_DENIED: other machines can reach the address (it,
 * or one that its name resolves to, is not a loopback address), the card requires no credentials,
 * and nobody said bay_agent_open_on_purpose. */
BAY_API bay_err bay_agent_listen(bay_agent *agent, const char *address,
                                 bay_diag *diag) BAY_MUST_CHECK;
BAY_API uint16_t bay_agent_port(const bay_agent *agent); /* of the first listen; 0: none */
/* Then serve on this thread until bay_agent_stop: what is under way is answered, streams end (their
 * callers come back), handlers that do not end within ten seconds are left: BAY_ERR_TIMEOUT … */
BAY_API bay_err bay_agent_run(bay_agent *agent, bay_diag *diag) BAY_MUST_CHECK;
BAY_API void bay_agent_stop(bay_agent *agent); /* any thread, and signal handlers */
/* … or from an event loop: when the descriptor is readable, or the time (ms, -1: none) has passed,
 * dispatch does what is due without waiting. BAY_ERR_EOF: as where bay_agent_run returns. */
BAY_API int bay_agent_fd(const bay_agent *agent);
BAY_API int bay_agent_wait_ms(const bay_agent *agent);
BAY_API bay_err bay_agent_dispatch(bay_agent *agent) BAY_MUST_CHECK;

/* ---- a task: what it carries --------------------------------------------------------------------
 * A bay_task is one message being worked on, from the handler's call to its end; views live until
 * then. A handler that asks back (bay_task_ask) has done its work: the answer is another call of
 * the handler, perhaps in another process, with the answer as its message. What it needs to go on
 * it keeps in bay_task_remember, or finds in the task's history. Any thread. */

BAY_API bay_str bay_task_id(const bay_task *task);
BAY_API bay_str bay_task_context(const bay_task *task);
/* Who is calling; empty: nobody in particular. */
BAY_API bay_str bay_task_principal(const bay_task *task);
BAY_API bay_str bay_task_traceparent(const bay_task *task); /* W3C, checked; or empty */
BAY_API bay_str bay_task_tracestate(const bay_task *task);  /* of that trace; or empty */
BAY_API bay_str bay_task_metadata(const bay_task *task);    /* of the request: raw JSON, or empty */
BAY_API bay_str bay_task_skill(const bay_task *task);       /* the skill asked for, or empty */
/* Did the caller declare this extension? */
BAY_API bool bay_task_has_extension(const bay_task *task, const char *uri);
/* Does the caller take this media type? True when it did not say. */
BAY_API bool bay_task_accepts(const bay_task *task, const char *media_type);
BAY_API bool bay_task_is_new(const bay_task *task);     /* this is its first message */
BAY_API bool bay_task_is_resumed(const bay_task *task); /* the process died during it */
/* Nobody waits for what it makes: it was canceled, or the agent ends. */
BAY_API bool bay_task_is_cancelled(const bay_task *task);
/* Waits for so long, or until the task is cancelled: then false. Not on the serving thread. */
BAY_API bool bay_task_sleep(bay_task *task, uint32_t ms);
/* What was said before this message, oldest first; views. */
BAY_API size_t bay_task_history_count(const bay_task *task);
BAY_API const bay_message *bay_task_history(const bay_task *task, size_t index);
/* The task as it was when this message came: 1.0, raw JSON; empty for a new one. */
BAY_API bay_str bay_task_json(const bay_task *task);
/* Bytes of the handler's own that are kept with the task and shown to nobody (at most 64 KiB);
 * empty until they are set. What is set shows with the next message. */
BAY_API bay_err bay_task_remember(bay_task *task, const void *bytes, size_t len);
BAY_API bay_str bay_task_remembered(const bay_task *task);

/* ---- a task: moves ------------------------------------------------------------------------------
 * Any thread; those of one task happen in the order of the calls. BAY_OK: taken; BAY_ERR_STATE:
 * this message was answered already, or the task was cancelled; BAY_ERR_INVALID: a message that
 * could not be made; BAY_ERR_CLOSED: the agent is gone; BAY_ERR_NOMEM, BAY_ERR_LIMIT. A move that
 * the task's bounds do not permit fails the task. Texts may be NULL. */

/* A state that ends the task, or BAY_TASK_STATE_INPUT_REQUIRED, answers the message as bay_task_end
 * does. */

BAY_API bay_err bay_task_status(bay_task *task, bay_task_state state, const char *text);
BAY_API bay_err bay_task_statusf(bay_task *task, bay_task_state state, const char *format, ...)
    BAY_PRINTF(3, 4);
BAY_API bay_err bay_task_status_str(bay_task *task, bay_task_state state, bay_str text);
BAY_API bay_err bay_task_status_message(bay_task *task, bay_task_state state,
                                        const bay_message *message);

/* An artifact in chunks. Each goes out as it is appended; on the serving thread, when the handler
 * appends the next one or returns. If the last one has gone out when the artifact is closed, an
 * empty part behind it says so in streams; what is kept is without it. What is open when the task
 * ends is closed. It lives as long as the bay_task. NULL when out of memory, and taken by all of these. */
BAY_API bay_artifact *bay_task_artifact(bay_task *task, const char *name, const char *media_type);
BAY_API bay_artifact *bay_task_artifact_str(bay_task *task, bay_str name, bay_str media_type);
BAY_API void bay_artifact_describe(bay_artifact *artifact, const char *description);
BAY_API void bay_artifact_describe_str(bay_artifact *artifact, bay_str description);
BAY_API bay_err bay_artifact_append(bay_artifact *artifact, const char *text);
BAY_API bay_err bay_artifact_appendf(bay_artifact *artifact, const char *format, ...)
    BAY_PRINTF(2, 3);
BAY_API bay_err bay_artifact_append_str(bay_artifact *artifact, bay_str text);
BAY_API bay_err bay_artifact_append_bytes(bay_artifact *artifact, const void *bytes, size_t len);
BAY_API bay_err bay_artifact_append_url(bay_artifact *artifact, const char *url);
BAY_API bay_err bay_artifact_append_url_str(bay_artifact *artifact, bay_str url);
BAY_API bay_err bay_artifact_append_data(bay_artifact *artifact, const char *json);
BAY_API bay_err bay_artifact_append_data_json(bay_artifact *artifact,
                                              bay_json *json); /* takes it */
BAY_API bay_err bay_artifact_close(bay_artifact *artifact);

/* ---- a task: how a message is answered, exactly once --------------------------------------------
 * After one of these no move is possible; a handler that returns without any, and without
 * bay_task_defer, has its task fail. */

BAY_API bay_err bay_task_complete(bay_task *task, const char *text);
BAY_API bay_err bay_task_completef(bay_task *task, const char *format, ...) BAY_PRINTF(2, 3);
BAY_API bay_err bay_task_complete_str(bay_task *task, bay_str text);
BAY_API bay_err bay_task_fail(bay_task *task, const char *text);
BAY_API bay_err bay_task_failf(bay_task *task, const char *format, ...) BAY_PRINTF(2, 3);
BAY_API bay_err bay_task_fail_str(bay_task *task, bay_str text);
BAY_API bay_err bay_task_reject(bay_task *task, const char *text);
BAY_API bay_err bay_task_rejectf(bay_task *task, const char *format, ...) BAY_PRINTF(2, 3);
BAY_API bay_err bay_task_reject_str(bay_task *task, bay_str text);
/* Asks back: input required, or credentials that are got elsewhere; the next message goes on. */
BAY_API bay_err bay_task_ask(bay_task *task, const char *text);
BAY_API bay_err bay_task_askf(bay_task *task, const char *format, ...) BAY_PRINTF(2, 3);
BAY_API bay_err bay_task_ask_str(bay_task *task, bay_str text);
BAY_API bay_err bay_task_ask_auth(bay_task *task, const char *text);
BAY_API bay_err bay_task_ask_authf(bay_task *task, const char *format, ...) BAY_PRINTF(2, 3);
BAY_API bay_err bay_task_ask_auth_str(bay_task *task, bay_str text);
/* Answers with a message instead of a task: only before anything was moved, of a new task. */
BAY_API bay_err bay_task_reply(bay_task *task, const char *text);
BAY_API bay_err bay_task_replyf(bay_task *task, const char *format, ...) BAY_PRINTF(2, 3);
BAY_API bay_err bay_task_reply_str(bay_task *task, bay_str text);
BAY_API bay_err bay_task_reply_message(bay_task *task, const bay_message *message);
/* The same with a message; `state`: BAY_TASK_STATE_COMPLETED, BAY_TASK_STATE_FAILED,
 * BAY_TASK_STATE_REJECTED, BAY_TASK_STATE_INPUT_REQUIRED or BAY_TASK_STATE_AUTH_REQUIRED. */
BAY_API bay_err bay_task_end(bay_task *task, bay_task_state state, const bay_message *message);

/* Keeps the task after the handler has returned, for a thread of the program's own: a reference,
 * given back by bay_task_release, on any thread. The last one that goes without an answer fails the
 * task. */
BAY_API bay_task *bay_task_defer(bay_task *task);
BAY_API void bay_task_release(bay_task *task);

#ifdef __cplusplus
}
#endif
#endif

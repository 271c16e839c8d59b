/* A caller of A2A agents: one agent, found by its card, spoken to in the best of its versions and
 * bindings: 0.1 to 1.0, JSON-RPC, HTTP+JSON and gRPC.
 *
 *     bay_caller *caller;
 *     bay_diag diag;
 *     if (bay_caller_connect("https://research.example.com", NULL, &caller, &diag) != BAY_OK) …
 *     if (bay_caller_send(caller, "agentic design patterns", on_event, user, &diag) != BAY_OK) …
 *
 * A caller has no thread of its own. The functions that wait (connect, send, task …) turn its event
 * loop until they have what they were asked for; everything else that happens meanwhile is served
 * too. A program with an event loop starts operations, and dispatches the caller when its
 * descriptor says so.
 *
 * Streams that are cut are taken up again: by the ids of their events where they have some, else by
 * subscribing to the task; what was told is not told twice. A message is sent once: one that may
 * have arrived is not sent again, and its operation fails with an error that says so.
 *
 * Credentials go to the origin (scheme, host and port) that the card was fetched from, and nowhere
 * else: not along redirects, which are not followed, and not to interfaces at another origin unless
 * bay_caller_options_trust names it. A card that the program gives as JSON is the program's word:
 * then they go where it says.
 *
 * For the whole header:
 * Owns: strings given are copied; a response belongs to who got it; a `user` pointer stays the
 * caller's. Errors: an error is returned, and told in `diag` (which may be NULL) with what, where
 * and what to do. BAY_REMOTE: the agent answered with an error (bay_caller_remote_error). A task
 * that failed is no error: see bay_response_state. Units: times in milliseconds, lengths in bytes.
 * Threads: a caller and its operations belong to one thread at a time; responses may be read by
 * any, one at a time. Callbacks run inside the functions that wait or dispatch, never inside one
 * that only starts something. Source: A2A 1.0.1, 0.3.0, 0.2.6 and 0.1.0. */
#ifndef PATCHBAY_A2A_CLIENT_H
#define PATCHBAY_A2A_CLIENT_H

#include <patchbay/a2a.h>
#include <patchbay/library.h>
#include <patchbay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bay_caller bay_caller;
typedef struct bay_caller_options bay_caller_options;
typedef struct bay_operation bay_operation; /* one request, from its making to its end */
typedef struct bay_response bay_response;   /* what came back, or an event of it */

/* ---- options ------------------------------------------------------------------------------------
 * Made, filled, given to a connect (which copies them), freed. Out of memory while filling is told
 * by the connect. NULL options: all defaults. */

BAY_API bay_caller_options *bay_caller_options_new(void); /* NULL: out of memory */
BAY_API void bay_caller_options_free(bay_caller_options *options);
/* A header field (gRPC: metadata) of every request; kept out of every log, wiped at the end. */
BAY_API void bay_caller_options_header(bay_caller_options *options, const char *name,
                                       const char *value);
/* "Authorization: Bearer TOKEN". */
BAY_API void bay_caller_options_bearer(bay_caller_options *options, const char *token);
/* The credential for a security scheme of the card, by its name there: an API key goes into the
 * header field or cookie that the card says, of HTTP authentication it is what follows the scheme's
 * word, of OAuth 2 and OpenID it is the access token. A key that belongs into the query is
 * BAY_UNSUPPORTED. */
BAY_API void bay_caller_options_credential(bay_caller_options *options, const char *scheme,
                                           const char *credential);
/* An origin that may have the credentials too: "https://agents.example.com", "host:port" of a gRPC
 * interface; "*": every one that the card names. */
BAY_API void bay_caller_options_trust(bay_caller_options *options, const char *origin);
/* An extension of the protocol that the caller uses (A2A-Extensions). */
BAY_API void bay_caller_options_extension(bay_caller_options *options, const char *uri);
/* Only these: a binding ("JSONRPC", "HTTP+JSON", "GRPC"), a version ("1.0", "0.3", "0.2", "0.1").
 * NULL: any. Otherwise the newest version of the card that can be spoken to, and of that the
 * interface that the card names first. A version before 1.0 that the card does not name is spoken
 * at its JSON-RPC interface of another version before 1.0. */
BAY_API void bay_caller_options_interface(bay_caller_options *options, const char *binding,
                                          const char *version);
/* Keys that a card's signature must be good under: a JWK set. With keys, by this or by
 * bay_caller_options_key_url, a signed card whose signature is not good is refused: BAY_DENIED. */
BAY_API void bay_caller_options_keys(bay_caller_options *options, const char *jwk_set);
/* A key set that a card's signature may name (`jku`): only these URLs are fetched, without
 * credentials. */
BAY_API void bay_caller_options_key_url(bay_caller_options *options, const char *url);
/* A card without a signature that is good is refused, too. */
BAY_API void bay_caller_options_require_signature(bay_caller_options *options);
/* For https, of cards, keys and interfaces: who signs servers' certificates, in place of the
 * system's store, and the caller's own certificate chain and key, for agents whose card wants
 * mutual TLS. As bay_client_options_tls, with its errors. */
BAY_API void bay_caller_options_tls(bay_caller_options *options, const char *ca_file,
                                    const char *certificate_file, const char *key_file);
/* For tests only: accepts every certificate, also where the card and its keys come from. As
 * bay_client_options_insecure. */
BAY_API void bay_caller_options_insecure(bay_caller_options *options);
/* An answer, or a stream's first event, takes at most `total_ms`; a stream that is silent for
 * `idle_ms` counts as cut. 0: the defaults, 600,000 and 90,000. */
BAY_API void bay_caller_options_timeout(bay_caller_options *options, uint32_t total_ms,
                                        uint32_t idle_ms);
/* How often in a row, and after how long a pause at first, a stream that was cut is taken up; 0:
 * the defaults, 8 and 500. The pause doubles, up to 10,000, with jitter. */
BAY_API void bay_caller_options_resume(bay_caller_options *options, uint32_t attempts,
                                       uint32_t first_ms);
BAY_API void bay_caller_options_log_to(bay_caller_options *options, bay_log_sink sink, void *user,
                                       bay_log_level most_verbose);

/* ---- a caller -----------------------------------------------------------------------------------
 */

/* Fetches the card, checks its signature if there are keys, and chooses an interface. `agent`:
 *   "https://research.example.com[/PATH]": the card is at PATH/.well-known/agent-card.json, or
 *       (older agents) agent.json; where neither is, and there is a PATH, at the host's own
 *   "https://…/any.json": the card itself
 *   "{…}": the card
 * Waits. Errors: BAY_NOTFOUND (there is no card), BAY_VERSION (it has no interface that can be
 * spoken to), BAY_DENIED (its signature), BAY_PROTOCOL (it is no card), and what connecting says.
 */
BAY_API bay_err bay_caller_connect(const char *agent, const bay_caller_options *options,
                                   bay_caller **out, bay_diag *diag) BAY_MUST_CHECK;
/* The same without waiting: operations may be started at once. `connected` (which may be NULL) runs
 * once: with BAY_OK in `diag` when the agent is known, else with why not, as the operations hear it
 * that were waiting; the next one tries again. Not at all after bay_caller_close. */
BAY_API bay_err bay_caller_begin(const char *agent, const bay_caller_options *options,
                                 void (*connected)(bay_caller *caller, const bay_diag *diag,
                                                   void *user),
                                 void *user, bay_caller **out, bay_diag *diag) BAY_MUST_CHECK;
/* Operations still open end with BAY_CANCELLED; tasks of the agent go on. NULL is fine. Not inside
 * a callback. */
BAY_API void bay_caller_close(bay_caller *caller);

/* Of the agent's card; empty before it is known. Views live until the caller is closed. */
BAY_API bay_str bay_caller_card(const bay_caller *caller); /* as 1.0, whatever it was; raw JSON */
BAY_API bay_str bay_caller_card_source(const bay_caller *caller); /* as it was fetched */
BAY_API bay_str bay_caller_name(const bay_caller *caller);
BAY_API bay_str bay_caller_description(const bay_caller *caller);
BAY_API bool bay_caller_is_verified(const bay_caller *caller); /* a signature was good */
BAY_API bool bay_caller_has(const bay_caller *caller, const char *capability); /* "streaming" */
BAY_API size_t bay_caller_skill_count(const bay_caller *caller);
BAY_API bay_str bay_caller_skill(const bay_caller *caller, size_t index); /* its id */
BAY_API bay_str bay_caller_skill_name(const bay_caller *caller, size_t index);
BAY_API bay_str bay_caller_skill_description(const bay_caller *caller, size_t index);
/* Of the interface chosen. */
BAY_API bay_str bay_caller_url(const bay_caller *caller);
BAY_API bay_str bay_caller_binding(const bay_caller *caller); /* "JSONRPC" … */
BAY_API bay_str bay_caller_version(const bay_caller *caller); /* "1.0" … */
/* The error behind the last BAY_REMOTE: "TASK_NOT_FOUND", … as 1.0 names it; empty when it has no
 * name. Until the next operation ends. */
BAY_API bay_str bay_caller_remote_error(const bay_caller *caller);

/* ---- asking, and waiting for it -----------------------------------------------------------------
 * On anything but BAY_OK there is no response. */

/* An event: a task, a message, a change of status, a part of an artifact. Lives for the call. */
typedef void (*bay_on_event)(const bay_response *event, void *user);

/* Sends a text and follows what comes of it until the task ends or asks back, or a message answers.
 * An agent without streams is asked again and again in place of it. */
BAY_API bay_err bay_caller_send(bay_caller *caller, const char *text, bay_on_event event,
                                void *user, bay_diag *diag) BAY_MUST_CHECK;
/* The same with one response at the end: the task, or the message. */
BAY_API bay_err bay_caller_send_wait(bay_caller *caller, const char *text, bay_response **out,
                                     bay_diag *diag) BAY_MUST_CHECK;
/* `history`: at most so many messages of it; -1: as many as the agent likes to give. */
BAY_API bay_err bay_caller_task(bay_caller *caller, const char *id, int history, bay_response **out,
                                bay_diag *diag) BAY_MUST_CHECK;
/* A page of tasks, newest first. `page`: bay_response_next_page of the page before, or NULL. */
BAY_API bay_err bay_caller_list(bay_caller *caller, const char *page, bay_response **out,
                                bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_caller_cancel(bay_caller *caller, const char *id, bay_response **out,
                                  bay_diag *diag) BAY_MUST_CHECK;
/* Follows a task from where it is. BAY_REMOTE (UNSUPPORTED_OPERATION): it has ended. */
BAY_API bay_err bay_caller_subscribe(bay_caller *caller, const char *id, bay_on_event event,
                                     void *user, bay_diag *diag) BAY_MUST_CHECK;
/* A webhook for a task: the configuration, with its id. `token` may be NULL. */
BAY_API bay_err bay_caller_push_create(bay_caller *caller, const char *task, const char *url,
                                       const char *token, bay_response **out,
                                       bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_caller_push_get(bay_caller *caller, const char *task, const char *id,
                                    bay_response **out, bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_caller_push_list(bay_caller *caller, const char *task, bay_response **out,
                                     bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_caller_push_delete(bay_caller *caller, const char *task, const char *id,
                                       bay_diag *diag) BAY_MUST_CHECK;
/* The card that callers with credentials get. It does not take the place of bay_caller_card. */
BAY_API bay_err bay_caller_extended_card(bay_caller *caller, bay_response **out,
                                         bay_diag *diag) BAY_MUST_CHECK;

/* ---- operations in full -------------------------------------------------------------------------
 * NULL: out of memory; taken by every function below, and told by the one that starts it. What is
 * wrong with a setting is told there, too. */

/* Sends this message (copied; what was added before). With an event handler it streams, unless the
 * agent cannot; without one the agent is waited for. */
BAY_API bay_operation *bay_operation_send(bay_caller *caller, const bay_message *message);
BAY_API bay_operation *bay_operation_send_text(bay_caller *caller, const char *text);
BAY_API bay_operation *bay_operation_task(bay_caller *caller, const char *id);
BAY_API bay_operation *bay_operation_list(bay_caller *caller);
BAY_API bay_operation *bay_operation_cancel_task(bay_caller *caller, const char *id);
BAY_API bay_operation *bay_operation_subscribe(bay_caller *caller, const char *id);
/* Any operation of 1.0 by its name ("GetTask"), with its request as a JSON object. */
BAY_API bay_operation *bay_operation_new(bay_caller *caller, const char *method,
                                         const char *request);
BAY_API void bay_operation_free(bay_operation *operation); /* only if it was not started */

/* Of a message: the task it goes on with, the context it belongs to, the skill it wants. */
BAY_API void bay_operation_for_task(bay_operation *operation, const char *id);
BAY_API void bay_operation_for_context(bay_operation *operation, const char *id);
BAY_API void bay_operation_for_skill(bay_operation *operation, const char *id);
/* The task is not waited for: the response is the task as it begins. */
BAY_API void bay_operation_return_immediately(bay_operation *operation);
BAY_API void bay_operation_accept(bay_operation *operation, const char *media_type);
/* A webhook for the task that begins with this message. `token` may be NULL; so may `scheme` (of
 * the Authorization that the agent sends with it) and `credentials`. */
BAY_API void bay_operation_push(bay_operation *operation, const char *url, const char *token,
                                const char *scheme, const char *credentials);
/* Of a message or a task: at most so many messages of its history; of a list: of each task. */
BAY_API void bay_operation_history(bay_operation *operation, int most);
BAY_API void bay_operation_metadata(bay_operation *operation, const char *json); /* an object */
/* Of a list. */
BAY_API void bay_operation_page(bay_operation *operation, const char *page, int size);
BAY_API void bay_operation_state(bay_operation *operation, bay_state state);
BAY_API void bay_operation_artifacts(bay_operation *operation); /* with artifacts */
/* Of a subscription: what came after this event only, of an agent that numbers them
 * (bay_response_event_id). */
BAY_API void bay_operation_after(bay_operation *operation, uint64_t event_id);
/* Of this request alone: a header field; the trace it belongs to (W3C traceparent). */
BAY_API void bay_operation_header(bay_operation *operation, const char *name, const char *value);
BAY_API void bay_operation_traceparent(bay_operation *operation, const char *traceparent);
/* Makes it a stream; NULL: it is none. */
BAY_API void bay_operation_on_event(bay_operation *operation, bay_on_event event, void *user);

/* `diag->code` says how it went. BAY_OK: with a response, which is the callee's: of a stream the
 * task as it is at its end as far as it was told (with its artifacts whole), or the message.
 * Anything else: `response` is NULL. The operation is gone when this returns. */
typedef void (*bay_operation_done)(bay_operation *operation, bay_response *response,
                                   const bay_diag *diag, void *user);
/* Takes the operation, also when it fails; `done` (which may be NULL) runs exactly once if it does
 * not. BAY_STATE: it was started already, and goes on; or the caller is being closed. */
BAY_API bay_err bay_operation_start(bay_operation *operation, bay_operation_done done, void *user,
                                    bay_diag *diag) BAY_MUST_CHECK;
/* Stops listening; the task of the agent goes on. `done` runs with BAY_CANCELLED, at the next turn.
 * May be called in any callback before that; one that was not started stays as it is. */
BAY_API void bay_operation_stop(bay_operation *operation);
/* No more events until resumed: the agent is held back. */
BAY_API void bay_operation_pause(bay_operation *operation);
BAY_API void bay_operation_resume(bay_operation *operation);
/* Takes the operation, and waits for its end. `out` may be NULL. */
BAY_API bay_err bay_operation_run(bay_operation *operation, bay_response **out,
                                  bay_diag *diag) BAY_MUST_CHECK;

/* ---- responses and events -----------------------------------------------------------------------
 * Views live as long as the response. */

typedef enum bay_response_kind {
    BAY_RESPONSE_OTHER, /* see bay_response_json */
    BAY_RESPONSE_TASK,
    BAY_RESPONSE_MESSAGE,
    BAY_RESPONSE_STATUS,   /* an event: the task moved */
    BAY_RESPONSE_ARTIFACT, /* an event: a part of an artifact */
    BAY_RESPONSE_TASKS,    /* a page of them */
    BAY_RESPONSE_PUSH,     /* a push configuration, or several */
    BAY_RESPONSE_CARD,
    BAY_RESPONSE_EMPTY,
} bay_response_kind;

BAY_API void bay_response_free(bay_response *response); /* NULL is fine; never of an event */
BAY_API bay_response_kind bay_response_kind_of(const bay_response *response);
BAY_API bay_str bay_response_json(const bay_response *response); /* 1.0, raw JSON */
/* Of a task, its events, and a message that names them. */
BAY_API bay_str bay_response_task(const bay_response *response);
BAY_API bay_str bay_response_context(const bay_response *response);
BAY_API bay_state bay_response_state(const bay_response *response);
/* What the agent said: of a task or status the status's message, or the message; NULL: nothing. */
BAY_API const bay_message *bay_response_message(const bay_response *response);
/* The text of that message; empty when there is none. */
BAY_API bay_str bay_response_text(const bay_response *response);
/* Of a task: its history, oldest first. */
BAY_API size_t bay_response_history_count(const bay_response *response);
BAY_API const bay_message *bay_response_history(const bay_response *response, size_t index);
/* Of a task, all of them; of an event, the one it is about. */
BAY_API size_t bay_response_artifact_count(const bay_response *response);
BAY_API bay_str bay_response_artifact_id(const bay_response *response, size_t index);
BAY_API bay_str bay_response_artifact_name(const bay_response *response, size_t index);
/* Its parts, read like a message's; NULL: there is no such artifact. */
BAY_API const bay_message *bay_response_artifact(const bay_response *response, size_t index);
/* Of an event about an artifact: these parts come behind those before (else in their place); they
 * are the last ones. */
BAY_API bool bay_response_appends(const bay_response *response);
BAY_API bool bay_response_is_last_chunk(const bay_response *response);
/* Of an event: its number, of agents that number them; 0: none. */
BAY_API uint64_t bay_response_event_id(const bay_response *response);
/* Of a page of tasks, or several push configurations: how many are in it, each of them, and where
 * the next page begins (empty: this is the last). */
BAY_API size_t bay_response_count(const bay_response *response);
BAY_API bay_str bay_response_item(const bay_response *response, size_t index); /* raw JSON */
BAY_API bay_str bay_response_next_page(const bay_response *response);
/* A member of the response that is a text, decoded; any other value as its JSON; empty when there
 * is none: "id" of a push configuration. */
BAY_API bay_str bay_response_member(const bay_response *response, const char *name);

/* ---- event loops --------------------------------------------------------------------------------
 * When the descriptor is readable, or the time (ms, -1: none) has passed, dispatch does what is due
 * without waiting. Ask for the time again after each dispatch and each start. */

BAY_API int bay_caller_fd(const bay_caller *caller);
BAY_API int bay_caller_wait_ms(const bay_caller *caller);
BAY_API bay_err bay_caller_dispatch(bay_caller *caller) BAY_MUST_CHECK;
/* For programs without one: turns the loop until something happened, or for so long (-1: without
 * bound). */
BAY_API bay_err bay_caller_wait(bay_caller *caller, int ms) BAY_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif

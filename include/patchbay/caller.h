/* A caller of A2A agents: one agent, found by its card, spoken to in the best of its versions and
 * bindings: 0.1 to 1.0, JSON-RPC, HTTP+JSON and gRPC.
 *
 *     bay_caller *caller;
 *     bay_diag diag;
 *     if (bay_caller_connect("https://research.example.com", NULL, &caller, &diag) != BAY_OK) …
 *     if (bay_caller_send(caller, "agentic design patterns", &diag, on_event, user) != BAY_OK) …
 *
 * A caller has no thread of its own. The functions that wait (connect, send, task …) turn its event
 * loop until they have what they were asked for; everything else that happens meanwhile is served
 * too. A program with an event loop starts requests, and dispatches the caller when its
 * descriptor says so.
 *
 * Streams that are cut are taken up again: by the ids of their events where they have some, else by
 * subscribing to the task; what was told is not told twice. A message is sent once: one that may
 * have arrived is not sent again, and its request fails with an error that says so.
 *
 * Credentials go to the origin (scheme, host and port) that the card was fetched from, and nowhere
 * else: not along redirects, which are not followed, and not to interfaces at another origin unless
 * bay_caller_options_trust names it. A card that the program gives as JSON is the program's word:
 * then they go where it says.
 *
 * For the whole header:
 * Owns: strings given are copied; a reply belongs to who got it; a `user` pointer stays the
 * caller's. Errors: an error is returned, and told in `diag` (which may be NULL) with what, where
 * and what to do. BAY_ERR_REMOTE: the agent answered with an error (bay_caller_remote_error). A
 * task that failed is no error: see bay_caller_reply_state. Units: times in milliseconds, lengths
 * in bytes.
 * Threads: a caller and its requests belong to one thread at a time; replies may be read by
 * any, one at a time. Callbacks run inside the functions that wait or dispatch, never inside one
 * that only starts something. Source: A2A 1.0.1, 0.3.0, 0.2.6 and 0.1.0. */
#ifndef PATCHBAY_CALLER_H
#define PATCHBAY_CALLER_H

#include <patchbay/library.h>
#include <patchbay/message.h>
#include <patchbay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bay_caller bay_caller;
typedef struct bay_caller_options bay_caller_options;
typedef struct bay_caller_request bay_caller_request; /* one request, from its making to its end */
typedef struct bay_caller_reply bay_caller_reply;     /* what came back, or an event of it */

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
 * BAY_ERR_UNSUPPORTED. */
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
 * bay_caller_options_key_url, a signed card whose signature is not good is refused:
 * BAY_ERR_DENIED. */
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
BAY_API void bay_caller_options_timeout(bay_caller_options *options, uint32_t idle_ms,
                                        uint32_t total_ms);
/* How often in a row, and after how long a pause at first, a stream that was cut is taken up; 0:
 * the defaults, 8 and 500. The pause doubles, up to 10,000, with jitter. */
BAY_API void bay_caller_options_resume(bay_caller_options *options, uint32_t attempts,
                                       uint32_t first_ms);
BAY_API void bay_caller_options_log_to(bay_caller_options *options, bay_log_level most_verbose,
                                       bay_log_fn sink, void *user);

/* ---- a caller -----------------------------------------------------------------------------------
 */

/* Fetches the card, checks its signature if there are keys, and chooses an interface. `agent`:
 *   "https://research.example.com[/PATH]": the card is at PATH/.well-known/agent-card.json, or
 *       (older agents) agent.json; where neither is, and there is a PATH, at the host's own
 *   "https://…/any.json": the card itself
 *   "{…}": the card
 * Waits. Errors: BAY_ERR_NOT_FOUND (there is no card), BAY_ERR_VERSION (it has no interface that
 * can be spoken to), BAY_ERR_DENIED (its signature), BAY_ERR_PROTOCOL (it is no card), and what
 * connecting says.
 */
BAY_API bay_err bay_caller_connect(const char *agent, const bay_caller_options *options,
                                   bay_caller **out, bay_diag *diag) BAY_MUST_CHECK;
/* The same without waiting: requests may be started at once. `connected` (which may be NULL) runs
 * once: with BAY_OK in `diag` when the agent is known, else with why not, as the requests hear it
 * that were waiting; the next one tries again. Not at all after bay_caller_close. */
typedef void (*bay_caller_connected_fn)(bay_caller *caller, const bay_diag *diag, void *user);
BAY_API bay_err bay_caller_connect_start(const char *agent, const bay_caller_options *options,
                                         bay_caller **out, bay_diag *diag,
                                         bay_caller_connected_fn connected,
                                         void *user) BAY_MUST_CHECK;
/* Requests still open end with BAY_ERR_CANCELLED; tasks of the agent go on. NULL is fine. Not
 * inside a callback. */
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
/* The error behind the last BAY_ERR_REMOTE: "TASK_NOT_FOUND", … as 1.0 names it; empty when it has
 * no name. Until the next request ends. */
BAY_API bay_str bay_caller_remote_error(const bay_caller *caller);

/* ---- asking, and waiting for it -----------------------------------------------------------------
 * On anything but BAY_OK there is no reply. */

/* An event: a task, a message, a change of status, a part of an artifact. Both live for the call; the
 * request may be cancelled, paused and resumed, also one that bay_caller_send made. */
typedef void (*bay_event_fn)(bay_caller_request *request, const bay_caller_reply *event,
                             void *user);

/* Sends a text and follows what comes of it until the task ends or asks back, or a message answers.
 * An agent without streams is asked again and again in place of it. */
BAY_API bay_err bay_caller_send(bay_caller *caller, const char *text, bay_diag *diag,
                                bay_event_fn event, void *user) BAY_MUST_CHECK;
BAY_API bay_err bay_caller_send_str(bay_caller *caller, bay_str text, bay_diag *diag,
                                    bay_event_fn event, void *user) BAY_MUST_CHECK;
/* The same with one reply at the end: the task, or the message. */
BAY_API bay_err bay_caller_send_wait(bay_caller *caller, const char *text, bay_caller_reply **out,
                                     bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_caller_send_wait_str(bay_caller *caller, bay_str text, bay_caller_reply **out,
                                         bay_diag *diag) BAY_MUST_CHECK;
/* `history`: at most so many messages of it; -1: as many as the agent likes to give. */
BAY_API bay_err bay_caller_task(bay_caller *caller, const char *id, int history,
                                bay_caller_reply **out, bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_caller_task_str(bay_caller *caller, bay_str id, int history,
                                    bay_caller_reply **out, bay_diag *diag) BAY_MUST_CHECK;
/* A page of tasks, newest first. `page`: bay_caller_reply_next_page of the page before; NULL, or an
 * empty one: the first. */
BAY_API bay_err bay_caller_list(bay_caller *caller, const char *page, bay_caller_reply **out,
                                bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_caller_list_str(bay_caller *caller, bay_str page, bay_caller_reply **out,
                                    bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_caller_task_cancel(bay_caller *caller, const char *id, bay_caller_reply **out,
                                       bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_caller_task_cancel_str(bay_caller *caller, bay_str id, bay_caller_reply **out,
                                           bay_diag *diag) BAY_MUST_CHECK;
/* Follows a task from where it is. BAY_ERR_REMOTE (UNSUPPORTED_OPERATION): it has ended. */
BAY_API bay_err bay_caller_subscribe(bay_caller *caller, const char *id, bay_diag *diag,
                                     bay_event_fn event, void *user) BAY_MUST_CHECK;
BAY_API bay_err bay_caller_subscribe_str(bay_caller *caller, bay_str id, bay_diag *diag,
                                         bay_event_fn event, void *user) BAY_MUST_CHECK;
/* A webhook for a task: the configuration, with its id. `token` may be NULL. */
BAY_API bay_err bay_caller_push_create(bay_caller *caller, const char *task, const char *url,
                                       const char *token, bay_caller_reply **out,
                                       bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_caller_push_create_str(bay_caller *caller, bay_str task, bay_str url,
                                           bay_str token, bay_caller_reply **out,
                                           bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_caller_push_get(bay_caller *caller, const char *task, const char *id,
                                    bay_caller_reply **out, bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_caller_push_get_str(bay_caller *caller, bay_str task, bay_str id,
                                        bay_caller_reply **out, bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_caller_push_list(bay_caller *caller, const char *task, bay_caller_reply **out,
                                     bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_caller_push_list_str(bay_caller *caller, bay_str task, bay_caller_reply **out,
                                         bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_caller_push_delete(bay_caller *caller, const char *task, const char *id,
                                       bay_diag *diag) BAY_MUST_CHECK;
BAY_API bay_err bay_caller_push_delete_str(bay_caller *caller, bay_str task, bay_str id,
                                           bay_diag *diag) BAY_MUST_CHECK;
/* The card that callers with credentials get. It does not take the place of bay_caller_card. */
BAY_API bay_err bay_caller_extended_card(bay_caller *caller, bay_caller_reply **out,
                                         bay_diag *diag) BAY_MUST_CHECK;

/* ---- requests in full ---------------------------------------------------------------------------
 * NULL: out of memory; taken by every function below, and told by the one that starts it. What is
 * wrong with a setting is told there, too. */

/* Sends this message (copied; what was added before). With an event handler it streams, unless the
 * agent cannot; without one the agent is waited for. */
BAY_API bay_caller_request *bay_caller_request_send(bay_caller *caller, const bay_message *message);
BAY_API bay_caller_request *bay_caller_request_send_text(bay_caller *caller, const char *text);
BAY_API bay_caller_request *bay_caller_request_send_textf(bay_caller *caller, const char *format,
                                                          ...) BAY_PRINTF(2, 3);
BAY_API bay_caller_request *bay_caller_request_send_text_str(bay_caller *caller, bay_str text);
BAY_API bay_caller_request *bay_caller_request_task(bay_caller *caller, const char *id);
BAY_API bay_caller_request *bay_caller_request_task_str(bay_caller *caller, bay_str id);
BAY_API bay_caller_request *bay_caller_request_list(bay_caller *caller);
BAY_API bay_caller_request *bay_caller_request_task_cancel(bay_caller *caller, const char *id);
BAY_API bay_caller_request *bay_caller_request_task_cancel_str(bay_caller *caller, bay_str id);
BAY_API bay_caller_request *bay_caller_request_subscribe(bay_caller *caller, const char *id);
BAY_API bay_caller_request *bay_caller_request_subscribe_str(bay_caller *caller, bay_str id);
/* Any operation of 1.0 by its name ("GetTask"), with its params as a JSON object. */
BAY_API bay_caller_request *bay_caller_request_new(bay_caller *caller, const char *method,
                                                   const char *params);
BAY_API bay_caller_request *bay_caller_request_new_json(bay_caller *caller, const char *method,
                                                        bay_json *params); /* takes them */
BAY_API void bay_caller_request_free(bay_caller_request *request); /* only if it was not started */

/* Of a message: the task it goes on with, the context it belongs to, the skill it wants. */
BAY_API void bay_caller_request_for_task(bay_caller_request *request, const char *id);
BAY_API void bay_caller_request_for_context(bay_caller_request *request, const char *id);
BAY_API void bay_caller_request_for_skill(bay_caller_request *request, const char *id);
BAY_API void bay_caller_request_for_task_str(bay_caller_request *request, bay_str id);
BAY_API void bay_caller_request_for_context_str(bay_caller_request *request, bay_str id);
BAY_API void bay_caller_request_for_skill_str(bay_caller_request *request, bay_str id);
/* The task is not waited for: the reply is the task as it begins. */
BAY_API void bay_caller_request_return_immediately(bay_caller_request *request);
BAY_API void bay_caller_request_accept(bay_caller_request *request, const char *media_type);
/* A webhook for the task that begins with this message. `token` may be NULL; so may `scheme` (of
 * the Authorization that the agent sends with it) and `credentials`. */
BAY_API void bay_caller_request_push(bay_caller_request *request, const char *url,
                                     const char *token, const char *scheme,
                                     const char *credentials);
/* Of a message or a task: at most so many messages of its history; of a list: of each task. */
BAY_API void bay_caller_request_history(bay_caller_request *request, int most);
BAY_API void bay_caller_request_metadata(bay_caller_request *request,
                                         const char *json); /* an object */
BAY_API void bay_caller_request_metadata_json(bay_caller_request *request, bay_json *json);
/* Of a list. */
BAY_API void bay_caller_request_page(bay_caller_request *request, const char *page, int size);
BAY_API void bay_caller_request_page_str(bay_caller_request *request, bay_str page, int size);
BAY_API void bay_caller_request_state(bay_caller_request *request, bay_task_state state);
BAY_API void bay_caller_request_artifacts(bay_caller_request *request); /* with artifacts */
/* Of a subscription: what came after this event only, of an agent that numbers them
 * (bay_caller_reply_event_id). */
BAY_API void bay_caller_request_after(bay_caller_request *request, uint64_t event_id);
/* Of this request alone: a header field; the trace it belongs to (W3C traceparent). */
BAY_API void bay_caller_request_header(bay_caller_request *request, const char *name,
                                       const char *value);
BAY_API void bay_caller_request_traceparent(bay_caller_request *request, const char *traceparent);
/* Makes it a stream; NULL: it is none. */
BAY_API void bay_caller_request_on_event(bay_caller_request *request, bay_event_fn event,
                                         void *user);

/* `diag->code` says how it went. BAY_OK: with a reply, which is the callee's: of a stream the
 * task as it is at its end as far as it was told (with its artifacts whole), or the message.
 * Anything else: `reply` is NULL. The request is gone when this returns. */
typedef void (*bay_caller_request_done_fn)(bay_caller_request *request, bay_caller_reply *reply,
                                           const bay_diag *diag, void *user);
/* Takes the request, also when it fails; `done` (which may be NULL) runs exactly once if it does
 * not. BAY_ERR_STATE: it was started already, and goes on; or the caller is being closed. */
BAY_API bay_err bay_caller_request_start(bay_caller_request *request, bay_diag *diag,
                                         bay_caller_request_done_fn done,
                                         void *user) BAY_MUST_CHECK;
/* Stops listening; the task of the agent goes on. `done` runs with BAY_ERR_CANCELLED, at the next
 * turn. May be called in any callback before that; one that was not started stays as it is. */
BAY_API void bay_caller_request_cancel(bay_caller_request *request);
/* No more events until resumed: the agent is held back. */
BAY_API void bay_caller_request_pause(bay_caller_request *request);
BAY_API void bay_caller_request_resume(bay_caller_request *request);
/* Takes the request, and waits for its end. `out` may be NULL. */
BAY_API bay_err bay_caller_request_run(bay_caller_request *request, bay_caller_reply **out,
                                       bay_diag *diag) BAY_MUST_CHECK;

/* ---- replies and events -------------------------------------------------------------------------
 * Views live as long as the reply. */

typedef enum bay_caller_reply_kind {
    BAY_CALLER_REPLY_KIND_OTHER, /* see bay_caller_reply_json */
    BAY_CALLER_REPLY_KIND_TASK,
    BAY_CALLER_REPLY_KIND_MESSAGE,
    BAY_CALLER_REPLY_KIND_STATUS,   /* an event: the task moved */
    BAY_CALLER_REPLY_KIND_ARTIFACT, /* an event: a part of an artifact */
    BAY_CALLER_REPLY_KIND_TASKS,    /* a page of them */
    BAY_CALLER_REPLY_KIND_PUSH,     /* a push configuration, or several */
    BAY_CALLER_REPLY_KIND_CARD,
    BAY_CALLER_REPLY_KIND_EMPTY,
} bay_caller_reply_kind;

BAY_API void bay_caller_reply_free(bay_caller_reply *reply); /* NULL is fine; never of an event */
BAY_API bay_caller_reply_kind bay_caller_reply_kind_of(const bay_caller_reply *reply);
BAY_API bay_str bay_caller_reply_json(const bay_caller_reply *reply); /* 1.0, raw JSON */
/* Of a task, its events, and a message that names them. */
BAY_API bay_str bay_caller_reply_task(const bay_caller_reply *reply);
BAY_API bay_str bay_caller_reply_context(const bay_caller_reply *reply);
BAY_API bay_task_state bay_caller_reply_state(const bay_caller_reply *reply);
/* What the agent said: of a task or status the status's message, or the message; NULL: nothing. */
BAY_API const bay_message *bay_caller_reply_message(const bay_caller_reply *reply);
/* The text of that message; empty when there is none. */
BAY_API bay_str bay_caller_reply_text(const bay_caller_reply *reply);
/* Of a task: its history, oldest first. */
BAY_API size_t bay_caller_reply_history_count(const bay_caller_reply *reply);
BAY_API const bay_message *bay_caller_reply_history(const bay_caller_reply *reply, size_t index);
/* Of a task, all of them; of an event, the one it is about. */
BAY_API size_t bay_caller_reply_artifact_count(const bay_caller_reply *reply);
BAY_API bay_str bay_caller_reply_artifact_id(const bay_caller_reply *reply, size_t index);
BAY_API bay_str bay_caller_reply_artifact_name(const bay_caller_reply *reply, size_t index);
/* Its parts, read like a message's; NULL: there is no such artifact. */
BAY_API const bay_message *bay_caller_reply_artifact(const bay_caller_reply *reply, size_t index);
/* Of an event about an artifact: these parts come behind those before (else in their place); they
 * are the last ones. */
BAY_API bool bay_caller_reply_appends(const bay_caller_reply *reply);
BAY_API bool bay_caller_reply_is_last_chunk(const bay_caller_reply *reply);
/* Of an event: its number, of agents that number them; 0: none. */
BAY_API uint64_t bay_caller_reply_event_id(const bay_caller_reply *reply);
/* Of a page of tasks, or several push configurations: how many are in it, each of them, and where
 * the next page begins (empty: this is the last). */
BAY_API size_t bay_caller_reply_count(const bay_caller_reply *reply);
BAY_API bay_str bay_caller_reply_item(const bay_caller_reply *reply, size_t index); /* raw JSON */
BAY_API bay_str bay_caller_reply_next_page(const bay_caller_reply *reply);
/* A member of the reply that is a text, decoded; any other value as its JSON; empty when there
 * is none: "id" of a push configuration. */
BAY_API bay_str bay_caller_reply_str(const bay_caller_reply *reply, const char *name);
/* Any member of it, to be read; NULL: all of it. */
BAY_API bay_value bay_caller_reply_value(const bay_caller_reply *reply, const char *name);

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

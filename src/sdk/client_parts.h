/* The inside of the public client object, for the files of this module only.
 *
 *   client.c        connecting, ending, turning the loop
 *   client_link.c     its links, one after the other, and what they tell
 *   client_target.c   URLs and commands
 *   client_options.c
 *   client_request.c  one request: its settings, its start, its end
 *   client_call.c     … and its rounds on the wire
 *   client_service.c  everything that is one word: call, read, subscribe …
 *   client_reply.c    views into what came back
 *   client_output.c   results of tools against their schemas
 *   client_lists.c    paging, caches, tools that break the rules
 *   client_questions.c  what the server asks, in either way
 *   client_mrtr.c   "input required": the handlers' answers, and the next round
 *   client_tasks.c    a task followed to its end
 *   client_skills.c
 *
 * All of it on the client's loop. A request lives from bay_request_new until `done` has run; it may
 * take several calls of the engine (a reconnect, rounds, looks at a task), one at a time. */
#ifndef SDK_CLIENT_PARTS_H
#define SDK_CLIENT_PARTS_H

#include "sdk/client_objects.h"

/* A request on its way through its rounds. client_request.c owns the struct's life. */
bay_client *sdk_request_client(const bay_request *self);
bay_str sdk_request_method(const bay_request *self);
json_val sdk_request_params(const bay_request *self); /* as first given, or {} */
/* Sends the next round: `method`, which outlives the request, and a copy of `params` in place of
 * the first ones, with a new id. What comes back goes to the same request. */
bay_err sdk_request_again(bay_request *self, bay_str method, json_val params,
                          bay_diag *diag) BAY_MUST_CHECK;
/* The same after a pause; the request's own time limits go on. */
bay_err sdk_request_later(bay_request *self, bay_str method, json_val params, uint32_t after_ms,
                          bay_diag *diag) BAY_MUST_CHECK;
/* Ends it with a result (copied), or with an error. `error_object`: of BAY_ERR_REMOTE, raw, or
 * empty.
 */
void sdk_request_succeed(bay_request *self, json_val result);
void sdk_request_fail(bay_request *self, const bay_diag *diag, json_val error_object);
/* Room for what rounds and tasks remember; freed with `release` when the request ends, whatever way
 * it ends (also cancelled between two rounds). One holder at a time. */
void sdk_request_hold(bay_request *self, void *held, void (*release)(void *held));
void *sdk_request_held(const bay_request *self);

/* client_mrtr.c: a result said "input_required". Takes over: asks, then sdk_request_again. */
void sdk_mrtr_state_continue(bay_request *self, json_val result);
/* client_tasks.c: a result said "task" (or is the answer to a look at one). Takes over. */
void sdk_task_go_on(bay_request *self, json_val result);
/* … and the request is cancelled meanwhile: the server is told to cancel the task. */
void sdk_task_abandon(bay_request *self);

/* client_questions.c: a request of a legacy server, within `during` or (NULL) outside any. True:
 * it will be answered through mcp_client_answer; false: refused with a clear error. */
bool sdk_question_arrived(bay_client *client, bay_request *during, const rpc_message *request);
/* The server took it back, or it is unknown. */
void sdk_question_withdrawn(bay_client *client, bay_str id);
/* One input request of a round, asked of the same handlers. `answered` runs exactly once, in a
 * later turn or inside; `result` is an object, or missing and `code` and `message` say why there
 * is none. BAY_ERR_NOMEM: it does not run. `*out` is the question until it is answered, then NULL
 * (so `out` has to stay where it is); until then it may be dropped with sdk_question_drop. */
typedef void (*sdk_question_answered)(void *user, json_val result, int code, bay_str message);
bay_err sdk_question_ask(bay_client *client, bay_str method, json_val params,
                         sdk_question_answered answered, void *user,
                         bay_question **out) BAY_MUST_CHECK;
void sdk_question_drop(bay_question *self);
/* Every question of a legacy server still open at the end of the client, or of the link it came by.
 * (Those of rounds end with their request.) */
void sdk_questions_end(bay_client *client);

/* client_skills.c: forgets what was refused. */
void sdk_skills_end(bay_client *client);

/* From now on every result of this request goes to sdk_task_go_on. (sdk_request_again and _later
 * with a method of tasks imply it.) */
void sdk_request_follow_task(bay_request *self);
/* A reply of one's own making: `result` is a raw object, copied. */
bay_err sdk_reply_new(json_val result, bay_reply **out) BAY_MUST_CHECK;
/* Where the client stands, for "… at WHERE" in texts: no secrets in it. */
const char *sdk_client_where(const bay_client *self);
/* The engine of the link there is now; NULL: there is none. */
mcp_client *sdk_client_engine(bay_client *self);

/* ---- client_link.c
 * ---------------------------------------------------------------------------------
 */

void sdk_client_settle(void *of); /* asker_kind.settle */
void sdk_client_link_init(bay_client *self);
void sdk_client_link_fini(bay_client *self);
/* Makes a link; what comes of it is told later. */
void sdk_client_open(bay_client *self);
/* Something waits for the server. */
void sdk_client_need(bay_client *self);
/* It answered; or nobody did, though the link still stands. */
void sdk_client_alive(bay_client *self);
void sdk_client_unreachable(bay_client *self, bay_err err, const char *text);

/* ---- client_target.c ------------------------------------------------------------------------- */

bay_err sdk_target_copy_words(const char *const *argv, char ***out, bay_diag *diag) BAY_MUST_CHECK;
bay_err sdk_target_words(const char *command, char ***out, bay_diag *diag) BAY_MUST_CHECK;
void sdk_target_show(const char *url, const char *const *argv, char *out, size_t size);

/* ---- client_service.c ------------------------------------------------------------------------ */

/* {"roots":[…]} from uri, name, uri, name …, NULL ("" : no name), in place of those before. */
bay_err sdk_client_render_roots(bay_client *self, const char *const *pairs) BAY_MUST_CHECK;
void sdk_client_forget_subscriptions(bay_client *self);

/* ---- client_request.c ------------------------------------------------------------------------ */

/* Gives it params that were built, and drops `made`. */
void sdk_request_set_params(bay_request *self, json_builder *made);
/* A request whose params are a name and, unless NULL, arguments; NULL: no memory. */
bay_request *sdk_request_named(bay_client *client, const char *method, bay_str name,
                               bay_str arguments);
/* The same with JSON, which is taken. */
bay_request *sdk_request_named_json(bay_client *client, const char *method, bay_str name,
                                    bay_json *arguments, bool has_arguments);
/* "METHOD NAME at WHERE: TEXT". Returns err. */
bay_err sdk_request_diag(const bay_request *self, bay_diag *diag, bay_err err, const char *text);
/* The same with the text only, for whatever is not the server's own error. */
void sdk_request_break(bay_request *self, bay_err err, const char *text);
/* Ends what the server does for it. */
void sdk_request_withdraw(bay_request *self, bay_str reason);
void sdk_request_expire(bay_request *self);

/* ---- client_call.c --------------------------------------------------------------------------- */

/* Sends it, or lets it wait. On failure it is as it was. */
bay_err sdk_request_go(bay_request *self, bay_diag *diag) BAY_MUST_CHECK;
void sdk_request_on_timer(void *argument);
bay_str sdk_request_round_method(const bay_request *self);
json_val sdk_request_round_params(const bay_request *self);
void sdk_request_wait_for_tools(bay_request *self);
void sdk_requests_tools_arrived(bay_client *client);
/* As asker_kind has them: client_call.c, else client_request.c. */
void sdk_request_send(asker_item *item);
void sdk_request_give_up(asker_item *item);
void sdk_request_lose(asker_item *item, bay_err err, const char *text);
void sdk_request_ended(asker_item *item, const void *answer);
void sdk_request_tell(asker_item *item, void *answer);
void sdk_request_release(asker_item *item);
void sdk_reply_release(void *reply);

/* ---- client_lists.c -------------------------------------------------------------------------- */

void sdk_lists_changed(bay_client *self, bay_kind kind);
void sdk_lists_finish(bay_client *self); /* runs what is due of `listed` */
void sdk_lists_fini(bay_client *self);
/* Must the tools be known before this request may be sent, and are they not? */
bool sdk_lists_needs_tools(const bay_request *request);
/* Fetches them (again) while the request waits; false: not possible, it goes on without. */
bool sdk_lists_fetch_tools_for(bay_request *request);
/* What the known list says of the tool a request calls. */
bool sdk_lists_tool_may_repeat(const bay_request *request);
bay_err sdk_lists_tool_params(bay_client *self, json_val name, const mcp_param_table **out,
                              bay_diag *diag) BAY_MUST_CHECK;

/* The tool of that name in the latest list, if it has an outputSchema; else NULL. */
list_entry *sdk_lists_output_of(const bay_client *self, json_val name);

/* ---- client_output.c ------------------------------------------------------------------------- */

/* False: the result breaks what the tool promised, and the request has failed over it. */
bool sdk_output_admits(bay_request *request, json_val result);

/* ---- client_options.c ------------------------------------------------------------------------ */

/* A deep copy (NULL: the defaults); the first fault of filling is told here. */
bay_err sdk_options_copy(bay_client_options *self, const bay_client_options *from,
                         bay_diag *diag) BAY_MUST_CHECK;
void sdk_options_fini(bay_client_options *self);
/* The capabilities object the client declares (raw), from its options: elicitation, sampling,
 * roots, extensions. */
bay_err sdk_options_write_capabilities(const bay_client_options *options, buf *out) BAY_MUST_CHECK;

#endif

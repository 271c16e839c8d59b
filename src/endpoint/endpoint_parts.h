#ifndef ENDPOINT_ENDPOINT_PARTS_H
#define ENDPOINT_ENDPOINT_PARTS_H

#include "base/str.h"
#include "endpoint/client_session.h"
#include "endpoint/endpoint.h"
#include "endpoint/input_request.h"
#include "endpoint/meta_tools.h"
#include "endpoint/mrtr_loop.h"
#include "endpoint/own_lists.h"
#include "endpoint/suspended_call.h"

struct endpoint {
    const config *config;
    char *only;                 /* NULL: not of one server */
    char *profile;              /* NULL: not of one profile */
    const config_profile *part; /* what the configuration says of it; NULL: everything */
    loop *loop;
    uint32_t worker;
    const seal_ring *ring;
    mcp_server *engine;
    call_door *door; /* NULL: none */
    session_persister *persister;
    catalog_servers servers;
    catalog_view views[LISTING_KINDS];
    list waiting;      /* requests from before the servers were heard of */
    map subscriptions; /* subscriptions, see endpoint_subscriptions.c */
    list owned;
    list unowned;
    unsigned abilities;   /* of its servers together, see endpoint_about.c */
    unsigned changes_due; /* mcp_change */
    uint64_t told_ms;     /* of changes; 0: never */
    loop_timer tell;
    loop_timer waking; /* servers that slept are waited for no longer than that */
    bool is_waking;
    loop_timer awaiting; /* requests that wait for one server's first list: see endpoint_await */
    bool is_awaiting;
    uint64_t resumed_until_ms; /* while such a request is taken up again: how long it may wait */
    bool is_settled;
    bool is_ending; /* nothing outlives its client any more */
    bool has_one_client;
    bool is_searched; /* it lists the meta tools in place of its tools */
    list searches;    /* under way */
    unsigned search_count;
    buf scratch;
    suspended_calls suspended;
    size_t mrtr_bytes;         /* of what is asked in rounds just now */
    map numbered;              /* see endpoint_clients.c */
    map by_name;               /* the same by their names */
    mcp_session *only_session; /* of the only client, where there is one; NULL: none */
    list client_questions;
    map own_lists; /* see own_lists.c */
    bool has_refused_own_lists;
    bool is_introduced; /* the only client has said what it can be asked */
    void (*introduced)(void *user, unsigned inputs);
    void *user;
    map elicitations;
    list elicited;
    uint64_t last_number;
    const endpoint_user_login *user_login; /* NULL: no user can log in at a server */
    list logging_in;                       /* routes that wait for that, see user_login.c */
    size_t logging_in_count;               /* of them, at the last step, and since */
    loop_timer login_timer;
    const endpoint_tasks *tasks;         /* NULL: it knows of none */
    struct task_registry *task_registry; /* NULL: nothing to remember */
};

/* 0 where there is no loop (tests of what needs none). */
static inline void endpoint_refuse_memory(mcp_request *request)
{
    mcp_request_error(request, RPC_INTERNAL_ERROR, STR("Out of memory"), (bay_str){NULL, 0});
}

static inline uint64_t endpoint_now_ms(const endpoint *self)
{
    return self->loop != NULL ? loop_now_ms(self->loop) : 0;
}

/* What is shown by that name, if it passes just now. */
static inline const catalog_entry *endpoint_find_in(const catalog_view *view, bay_str name)
{
    const catalog_entry *entry = catalog_view_find(view, name);
    return entry != NULL && listing_item_passes(entry->item) ? entry : NULL;
}

/* … to all clients. */
static inline const catalog_entry *endpoint_find(const endpoint *self, listing_kind kind,
                                                 bay_str name)
{
    return endpoint_find_in(&self->views[kind], name);
}

/* Asks the door for a request to this server; as mcp_request_admit. */
static inline bool endpoint_admits(mcp_request *request, const upstream *to)
{
    request->call.timeout_ms = upstream_config(to)->timeout_ms;
    return mcp_request_admit(request, upstream_target(to));
}

/* endpoint_rules.c */
enum { ENDPOINT_FULL_BYTES = CONFIG_NAME_BYTES + LISTING_NAME_BYTES + 16 };
bool endpoint_has_rules(const call_context *call);
/* Are there settings of tools, or limits, that its name may have? */
bool endpoint_has_settings(const call_context *call);
/* Does the call's principal see the entry? */
bool endpoint_shows(const endpoint *self, const call_context *call, listing_kind kind,
                    const catalog_entry *entry);
/* Could the call's principal see a thing by that name, without its server's, of a server whose list
 * has not been read? */
bool endpoint_may_show(const endpoint *self, const call_context *call, listing_kind kind,
                       const upstream *of, bay_str bare);
/* The entry of that name that the request's principal sees; NULL: there is none. The request is
 * about it from now on. */
const catalog_entry *endpoint_find_seen(const endpoint *self, mcp_request *request,
                                        listing_kind kind, bay_str shown);
/* Does the call's principal see the resource call->shown of that server (NULL: whose it is nobody
 * can say yet)? The call is about it from now on. By the URI alone, so that one that is hidden and
 * one that nobody has are the same. */
bool endpoint_sees_resource(call_context *call, const upstream *owner);
/* Does the request's principal see anything of that server? */
bool endpoint_sees_server(const endpoint *self, const mcp_request *request, const upstream *of);
/* A skill, or something in its folder, of that server. */
bool endpoint_sees_skill(call_context *call, const upstream *of, bay_str uri);
/* The request names nothing that rules decide on but its method. */
void endpoint_about_method(mcp_request *request);

/* endpoint.c: before the servers were heard of, what is not known is not unknown: the request
 * waits. False: they were, or memory is short. */
bool endpoint_request_defer(endpoint *self, mcp_request *request);
/* Takes up what was suspended. */
void endpoint_resume(endpoint *self);
/* A tool by that name is shown to the request's principal, or may turn out to be. */
bool endpoint_knows_tool(const endpoint *self, mcp_request *request, bay_str name);
/* Whose resource it is to that client (NULL: to all), by the lists alone, or by whatever is known;
 * NULL: nobody's. */
upstream *endpoint_owner_by_list(const endpoint *self, const mcp_session *session, bay_str address);
upstream *endpoint_owner_of_resource(const endpoint *self, const mcp_session *session,
                                     bay_str address);
/* Is that one of its servers? */
bool endpoint_has_server(const endpoint *self, const upstream *server);

/* endpoint_lazy.c */
/* Starts its servers that sleep; true: there are some to be waited for. */
bool endpoint_wake(endpoint *self);
void endpoint_waited(void *argument); /* a timer's function; the argument is the endpoint */

/* A request for something of a server whose list has not been read: waits until it has been, at
 * most `timeouts.settle`. False: it could not be read, or the server is down. */
bool endpoint_await(endpoint *self, mcp_request *request, const catalog_source *source,
                    listing_kind kind);
/* A list has been read, or could not be, or the time is over: who waits is taken up again. The
 * argument is the endpoint. */
void endpoint_awaited(void *argument);

/* endpoint_lists.c */
void endpoint_answer_list(endpoint *self, mcp_request *request);
catalog_options endpoint_catalog_options(const endpoint *self);
void endpoint_tell_now(void *argument); /* a timer's function; the argument is the endpoint */

/* endpoint_about.c */
void endpoint_capabilities(void *user, const mcp_revision *revision, json_writer *out);

/* What its servers tell clients to know of them: of one server byte for byte, else each under its
 * name, as much as fits. */
void endpoint_instructions(void *user, const mcp_request *request, buf *out);

/* endpoint_subscriptions.c */
void endpoint_subscriptions_init(endpoint *self);
void endpoint_subscriptions_fini(endpoint *self);
bay_err endpoint_resolve_subscription(void *user, mcp_session *session, call_context *call,
                                      call_target **out) BAY_MUST_CHECK;
bay_err endpoint_subscribe(void *user, bay_str address, bool is_wanted) BAY_MUST_CHECK;
void endpoint_subscribed(void *user, mcp_session *session, bay_str address, bool is_wanted);
/* Is it shown to that client, or not known yet? */
bool endpoint_shows_resource(const endpoint *self, const mcp_session *session, bay_str address);
void endpoint_subscriptions_settle(endpoint *self); /* those without a server look for one */
void endpoint_subscriptions_move(endpoint *self);   /* all do */
void endpoint_subscriptions_forget(endpoint *self); /* its servers are about to leave */

/* endpoint_clients.c */
enum {
    ENDPOINT_ELICITATIONS = 4096,      /* URLs that somebody may yet be told are done with */
    ENDPOINT_ELICITATION_BYTES = 1024, /* of a server's name and its id for one */
    ENDPOINT_CONVERSATION_BYTES = 256, /* of a conversation's name, raw; a longer one is none */
};
void endpoint_clients_init(endpoint *self);
void endpoint_clients_fini(endpoint *self);
/* Which of its principal's conversations a request without a session names, as raw JSON; "": none.
 * Never of an anonymous principal: that may be anybody. */
bay_str endpoint_conversation(const endpoint *self, const mcp_request *request);
/* Whose request it is: the client's session or connection, else its principal, with its
 * conversation. Lives as long as that, or as the request. */
bay_err endpoint_identity(endpoint *self, const mcp_request *request, bay_str *out) BAY_MUST_CHECK;
/* The session of this identity, "" that of the only client; NULL: it has none here. */
mcp_session *endpoint_session_find(const endpoint *self, bay_str identity);
/* By which servers know the client of a session. */
bay_err endpoint_session_identity(endpoint *self, mcp_session *session,
                                  bay_str *out) BAY_MUST_CHECK;
/* The only client has said what it can be asked. */
void endpoint_introduce(endpoint *self, unsigned inputs);
void endpoint_session_changed(void *user, mcp_session *session, bool is_open);
void endpoint_notified(void *user, mcp_session *session, const rpc_message *message);
/* The client of this session was asked to open a URL; `params` name it. */
void endpoint_elicited(endpoint *self, bay_str server, json_val params, mcp_session *session);

/* A request on its way through: in the request's memory until it is finished; a call that may be
 * suspended has memory of its own and outlives the request (suspended_call.h). */
typedef struct route {
    list_link link; /* in endpoint.waiting or logging_in */
    uint64_t
        until_ms; /* it waits no longer, see endpoint_await and user_login_waits; 0: not said */
    endpoint *endpoint;
    mcp_request *request; /* NULL while it is suspended_call */
    listing *owner;       /* keeps the tool's header table; may be NULL */
    upstream_call call;
    suspended_call *suspended;      /* NULL: it cannot be suspended_call */
    mrtr_loop *rounds;              /* NULL: the server has asked for nothing by input_required */
    struct task_continuation *task; /* NULL: it has nothing to do with tasks */
    struct route_liveness *liveness;
    list input_requests; /* of a server of the session revisions, not answered yet */
    uint32_t last_input_request;
    uint32_t input_request_count;
    size_t input_request_bytes;
} route;

/* route.c */
/* NULL: the request has been refused. Nothing has been sent. */
route *route_new(endpoint *self, mcp_request *request);
void route_to(endpoint *self, mcp_request *request, upstream *to, bay_str rename,
              const catalog_entry *entry);
void route_cancelled(mcp_request *request);
void route_drained(mcp_request *request);
bool route_complete(endpoint *self, mcp_request *request);
/* Of a log message; one that cannot be read is let through: dropping it would hide it. */
mcp_log_level route_level_of(json_val params);
/* Hands the call to its upstream; it may have ended when this returns. */
void route_send(route *self, upstream *to);
/* The requestState of a retry is none that was given for its call. */
void route_refuse_state(mcp_request *request);
/* Answers a question of the server. False: the call ended over it, and the route is gone. */
bool route_reply(route *self, bay_str id, json_val result, int code, bay_str message);
/* No call is under way any more: leaves its request, which is still to be finished, and goes. */
void route_end(route *self);
/* The call is given up on our side; the client is told why. `text` goes on from "The server … gave
 * no answer: ". */
void route_give_up(route *self, const char *reason, bay_str text);
/* The same where its upstream may be gone: `server` is its name. */
void route_give_up_on(route *self, bay_str server, const char *reason, bay_str text);

/* Sees whether the route ends meanwhile. */
typedef struct route_liveness {
    route *route;
    struct route_liveness *outer;
    bool is_gone;
} route_liveness;

void route_liveness_enter(route_liveness *self, route *of);
bool route_liveness_leave(route_liveness *self); /* false: it is gone */

/* passed_state.c: the requestState of a server of the stateless revision. */
/* Answers with it bound to the caller; false: there is none to bind, and nothing was answered. */
bool passed_state_answer(const endpoint *of, mcp_request *request, bay_str server, json_val result);
/* Gives the server its own state back; true: the request was refused, and the route is gone. */
bool passed_state_refuses(route *self, const upstream *to);

/* user_login.c: servers that want their user's own login. */
enum {
    USER_LOGIN_ROUNDS = 12,     /* a client of 2026-07-28 is asked to open the page so often */
    USER_LOGIN_WAIT_MS = 20000, /* and between two times its call waits for the user */
    USER_LOGIN_STEP_MS = 1000,  /* it is sent again meanwhile */
    USER_LOGINS_WAITING = 1024, /* calls of one endpoint; a further one asks again at once */
};
void user_logins_init(endpoint *self);
/* Its servers are about to change, or it ends: who waits is answered. */
void user_logins_end(endpoint *self);
/* Appends the link to the page. False: there is none for this caller. */
bool user_login_link(const endpoint *of, const mcp_request *request, bay_str server, bay_str id,
                     buf *out);
/* A retry whose user did not agree to open the page: refused. */
bool user_login_refuses(mcp_request *request, bay_str server);
/* Takes the answer to our question out of what the server gets. BAY_ERR_NOMEM, BAY_ERR_LIMIT. */
bay_err user_login_strip(const mcp_request *request, json_val *params) BAY_MUST_CHECK;
/* The call failed for want of the login, and its user is about to log in: it waits. False: it ends. */
bool user_login_waits(route *self, const mcp_outcome *outcome);
/* Asks the client to open the page. False: it cannot be asked so, and nothing was answered. */
bool user_login_ask(endpoint *of, mcp_request *request, bay_str server);

/* route_outcome.c: the last word of a call. */
enum { ROUTE_URL_REQUIRED = -32042 }; /* mcp 2025-11-25 client/elicitation */
void route_answer(endpoint *of, mcp_request *request, bay_str server, const mcp_outcome *outcome);
/* A failure of our own: a tool's result that a model can read, else a JSON-RPC error. `reason` is
 * for machines; `server` whom it is about. */
void route_refuse(mcp_request *request, bay_str server, const char *reason, int code, bay_str text,
                  bool may_have_run);
/* The client of a session hears of URLs that it is to open (-32042), and later that they are done.
 */
void route_note_urls(endpoint *of, const mcp_request *request, bay_str server,
                     const mcp_outcome *outcome);
/* A retry by a client whose user did not agree to the URL that the server wants opened: refused. */
bool route_refuses_urls(mcp_request *request, bay_str server);

#endif

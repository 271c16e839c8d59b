#ifndef DOWNSTREAM_FACE_PARTS_H
#define DOWNSTREAM_FACE_PARTS_H

#include "base/str.h"
#include "downstream/face.h"
#include "downstream/meta_tools.h"
#include "downstream/parked.h"
#include "downstream/questions.h"
#include "downstream/rounds.h"

struct face {
    const config *config;
    char *only;                 /* NULL: not of one server */
    char *profile;              /* NULL: not of one profile */
    const config_profile *part; /* what the configuration says of it; NULL: everything */
    loop *loop;
    uint32_t worker;
    const seal_ring *ring;
    mcp_server *engine;
    session_keeper *keeper;
    catalog_roster roster;
    catalog_view views[LISTING_KINDS];
    list waiting; /* requests from before the servers were heard of */
    map wishes;   /* subscriptions, see face_wishes.c */
    list owned;
    list unowned;
    unsigned abilities;   /* of its servers together, see face_about.c */
    unsigned changes_due; /* mcp_change */
    uint64_t told_ms;     /* of changes; 0: never */
    loop_timer tell;
    loop_timer waking; /* servers that slept are waited for no longer than that */
    bool is_waking;
    loop_timer awaiting; /* requests that wait for one server's first list: see face_await */
    bool is_awaiting;
    uint64_t resumed_until_ms; /* while such a request is taken up again: how long it may wait */
    bool is_settled;
    bool has_one_client;
    bool is_searched; /* it lists the meta tools in place of its tools */
    list searches;    /* under way */
    unsigned search_count;
    buf scratch;
    parked_calls parked;
    size_t rounds_bytes; /* of what is asked in rounds just now */
    map numbered;        /* see face_clients.c */
    map elicitations;
    list elicited;
    uint64_t last_number;
    const face_tasks *tasks;     /* NULL: it knows of none */
    struct task_book *task_book; /* NULL: nothing to remember */
};

/* 0 where there is no loop (tests of what needs none). */
static inline void face_refuse_memory(mcp_request *request)
{
    mcp_request_error(request, RPC_INTERNAL_ERROR, STR("Out of memory"), (bay_str){NULL, 0});
}

static inline uint64_t face_now_ms(const face *self)
{
    return self->loop != NULL ? loop_now_ms(self->loop) : 0;
}

/* Asks the door for a request to this server; as mcp_request_admit. */
static inline bool face_admits(mcp_request *request, const upstream *to)
{
    request->call.timeout_ms = upstream_config(to)->timeout_ms;
    return mcp_request_admit(request, upstream_target(to));
}

/* face.c: before the servers were heard of, what is not known is not unknown: the request waits.
 * False: they were, or memory is short. */
bool face_park(face *self, mcp_request *request);
/* Takes up what was parked. */
void face_resume(face *self);
/* A tool by that name is shown, or may turn out to be. */
bool face_knows_tool(const face *self, bay_str name);
/* Whose resource it is, by the lists alone, or by whatever is known; NULL: nobody's. */
upstream *face_owner_by_list(const face *self, bay_str address);
upstream *face_owner_of_resource(const face *self, bay_str address);

/* face_lazy.c */
/* Starts its servers that sleep; true: there are some to be waited for. */
bool face_wake(face *self);
void face_waited(void *argument); /* a timer's function; the argument is the face */

/* A request for something of a server whose list has not been read: waits until it has been, at
 * most `timeouts.settle`. False: it could not be read, or the server is down. */
bool face_await(face *self, mcp_request *request, const catalog_source *source, listing_kind kind);
/* A list has been read, or could not be, or the time is over: who waits is taken up again. The
 * argument is the face. */
void face_awaited(void *argument);

/* face_lists.c */
void face_answer_list(face *self, mcp_request *request);
void face_tell_now(void *argument); /* a timer's function; the argument is the face */

/* face_about.c */
void face_capabilities(void *user, const mcp_revision *revision, json_writer *out);

/* What its servers tell clients to know of them: of one server byte for byte, else each under its
 * name, as much as fits. */
void face_instructions(void *user, buf *out);

/* face_wishes.c */
void face_wishes_init(face *self);
void face_wishes_fini(face *self);
bay_err face_resolve_subscription(void *user, const call_context *call,
                                  call_target **out) BAY_MUST_CHECK;
bay_err face_subscribe(void *user, bay_str address, bool is_wanted) BAY_MUST_CHECK;
void face_wishes_settle(face *self); /* those without a server look for one */
void face_wishes_move(face *self);   /* all do */
void face_wishes_forget(face *self); /* its servers are about to leave */

/* face_clients.c */
enum {
    FACE_ELICITATIONS = 4096,      /* URLs that somebody may yet be told are done with */
    FACE_ELICITATION_BYTES = 1024, /* of a server's name and its id for one */
};
void face_clients_init(face *self);
void face_clients_fini(face *self);
/* Whose request it is: the client's session or connection, else its principal. Lives as long as
 * that. */
bay_err face_identity(face *self, const mcp_request *request, bay_str *out) BAY_MUST_CHECK;
void face_session_changed(void *user, mcp_session *session, bool is_open);
void face_notified(void *user, mcp_session *session, const rpc_message *message);
/* The client of this session was asked to open a URL; `params` name it. */
void face_elicited(face *self, bay_str server, json_val params, mcp_session *session);

/* A request on its way through: in the request's memory until it is finished; a call that may be
 * parked has memory of its own and outlives the request (parked.h). */
typedef struct route {
    list_link link;    /* in face.waiting */
    uint64_t until_ms; /* there: it waits no longer, see face_await; 0: as long as the others */
    face *face;
    mcp_request *request; /* NULL while it is parked */
    listing *owner;       /* keeps the tool's header table; may be NULL */
    upstream_call call;
    json_doc params_doc;    /* of rewritten params */
    parked *parked;         /* NULL: it cannot be parked */
    rounds *rounds;         /* NULL: the server has asked for nothing by input_required */
    struct task_plan *task; /* NULL: it has nothing to do with tasks */
    struct route_guard *guard;
    list questions; /* of a server of the handshake era, not answered yet */
    uint32_t last_question;
    uint32_t question_count;
    size_t question_bytes;
} route;

/* route.c */
/* NULL: the request has been refused. Nothing has been sent. */
route *route_new(face *self, mcp_request *request);
void route_to(face *self, mcp_request *request, upstream *to, bay_str rename,
              const catalog_entry *entry);
void route_cancelled(mcp_request *request);
void route_drained(mcp_request *request);
bool route_complete(face *self, mcp_request *request);
/* Hands the call to its upstream; it may have ended when this returns. */
void route_send(route *self, upstream *to);
/* Answers a question of the server. False: the call ended over it, and the route is gone. */
bool route_reply(route *self, bay_str id, bay_str result, int code, bay_str message);
/* No call is under way any more: leaves its request, which is still to be finished, and goes. */
void route_end(route *self);
/* The call is given up on our side; the client is told why. `text` goes on from "The server … gave
 * no answer: ". */
void route_give_up(route *self, const char *reason, bay_str text);
/* The same where its upstream may be gone: `server` is its name. */
void route_give_up_on(route *self, bay_str server, const char *reason, bay_str text);

/* Sees whether the route ends meanwhile. */
typedef struct route_guard {
    route *route;
    struct route_guard *outer;
    bool is_gone;
} route_guard;

void route_guard_enter(route_guard *self, route *of);
bool route_guard_leave(route_guard *self); /* false: it is gone */

/* route_outcome.c: the last word of a call. */
void route_answer(mcp_request *request, bay_str server, const mcp_outcome *outcome);
/* A failure of our own: a tool's result that a model can read, else a JSON-RPC error. `reason` is
 * for machines; `server` whom it is about. */
void route_refuse(mcp_request *request, bay_str server, const char *reason, int code, bay_str text,
                  bool may_have_run);
/* The client of a session hears of URLs that it is to open (-32042), and later that they are done.
 */
void route_note_urls(face *of, const mcp_request *request, bay_str server,
                     const mcp_outcome *outcome);
/* A retry by a client whose user did not agree to the URL that the server wants opened: refused. */
bool route_refuses_urls(mcp_request *request, bay_str server);

#endif

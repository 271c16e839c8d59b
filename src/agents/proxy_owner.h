/* Whose names a relay passes on. A remote agent knows one caller, the gateway, so the relay keeps
 * its callers apart (agents/owners.h):
 *
 *     named in a request              the caller's own         anything else
 *     ──────────────────              ────────────────         ─────────────
 *     a task                          as it is                 there is no such task
 *     a context                       as it is                 with the caller's mark behind it
 *     a message                       with the caller's mark   with the caller's mark
 *     a task that its client names    as it is                 with the caller's mark, if a message
 *     (0.1, at an agent of 0.1)                                begins it, else no such task
 *
 * A mark is '~' and a digest of the caller and the agent under a key of the gateway: equal ids of
 * two callers never meet at the agent, whoever guesses another's id names something of his own, and
 * a context of somebody else is like one that does not exist. What comes back has the mark taken
 * off wherever it stands. At an agent that is open (agents/owners.h) nothing of this happens. */
#ifndef AGENTS_PROXY_OWNER_H
#define AGENTS_PROXY_OWNER_H

#include "a2a/service.h"
#include "agents/owners.h"
#include "json/writer.h"

enum { PROXY_LIST_ROUNDS = 16 /* pages of the agent that one page of a caller is made of */ };

typedef struct agents_proxy_owner {
    agents_owned *of; /* NULL: nothing is checked */
    const auth_principal *principal;
    const seal_ring *const *ring; /* as it is at the time; NULL, or of NULL: none */
    bay_str agent;
    char *text; /* owned: the caller's key, then the mark */
    size_t key_len;
    size_t mark_len; /* 0: the agent was open when the call began */
} agents_proxy_owner;

/* `of` may be NULL. Borrows all but itself. Errors: BAY_ERR_NOMEM. */
bay_err agents_proxy_owner_init(agents_proxy_owner *self, agents_owned *of,
                                const seal_ring *const *ring, bay_str agent,
                                const auth_principal *principal) BAY_MUST_CHECK;
void agents_proxy_owner_fini(agents_proxy_owner *self);
/* Is anything checked? It may begin while a call is under way. */
bool agents_proxy_owner_is_on(const agents_proxy_owner *self);

/* The params as the agent gets them, in `memory`. `is_namer`: the client names the tasks that its
 * messages begin, and so does the agent expect it (0.1).
 * Errors: BAY_ERR_PROTOCOL with `fault`: there is no such task; BAY_ERR_NOMEM. */
bay_err agents_proxy_owner_write(const agents_proxy_owner *self, a2a_method method, bool is_namer,
                                 json_val params, arena *memory, json_val *out,
                                 a2a_fault *fault) BAY_MUST_CHECK;

/* Looks at an answer or an event (`is_event`) as the agent wrote it: what a message began becomes
 * the caller's. False: it is about a task that is not the caller's, who must not get it. */
bool agents_proxy_owner_admits(const agents_proxy_owner *self, a2a_method method, bool is_event,
                               json_val value, arena *scratch);
/* The same for one task or context by its id. */
bool agents_proxy_owner_claims(const agents_proxy_owner *self, owned_kind kind, bay_str id);

/* How many tasks of the caller are known. */
size_t agents_proxy_owner_tasks(const agents_proxy_owner *self);

/* `text` without marks; in `out`, where there are any. Errors, in `out`: BAY_ERR_NOMEM,
 * BAY_ERR_LIMIT. */
bay_str agents_proxy_owner_strip(const agents_proxy_owner *self, bay_str text, buf *out);
/* A value without marks, in `memory`; itself, where there are none. */
bay_err agents_proxy_owner_strip_val(const agents_proxy_owner *self, json_val value, arena *memory,
                                     json_val *out) BAY_MUST_CHECK;
void agents_proxy_owner_strip_fault(const agents_proxy_owner *self, a2a_fault *fault);

/* A page of ListTasks, with the caller's tasks alone, made of as many pages of the agent as it
 * takes, at most PROXY_LIST_ROUNDS; then it is shorter. Its token is sealed, because an agent's may
 * count what others have. `totalSize` is exact where the first page is the only one, else how many
 * tasks of the caller the gateway knows, whatever the filter. */
typedef struct agents_proxy_list {
    buf tasks;    /* json_doc pointers, owned … */
    size_t bytes; /* … and what they hold */
    buf token;    /* of the agent: where it goes on; empty: nowhere */
    size_t count;
    size_t size; /* of the page; 0: as the agent likes */
    int rounds;
    bool is_first; /* its caller brought no token */
} agents_proxy_list;

/* Reads the caller's params. Errors: BAY_ERR_PROTOCOL with `fault`: the token; BAY_ERR_NOMEM. */
bay_err agents_proxy_list_init(agents_proxy_list *self, const agents_proxy_owner *owner,
                               json_val params, arena *memory, a2a_fault *fault) BAY_MUST_CHECK;
void agents_proxy_list_fini(agents_proxy_list *self);
/* The params of the next page, of what agents_proxy_owner_write made of the caller's. */
void agents_proxy_list_ask(const agents_proxy_list *self, json_val params, json_writer *out);
/* Takes a page of the agent. `out_is_done`: nothing more is to be asked. Errors: BAY_ERR_NOMEM,
 * BAY_ERR_LIMIT, BAY_ERR_PROTOCOL: it is no page. */
bay_err agents_proxy_list_take(agents_proxy_list *self, const agents_proxy_owner *owner,
                               json_val page, arena *scratch, bool *out_is_done) BAY_MUST_CHECK;
/* Writes the caller's page, with marks. Errors: BAY_ERR_NOMEM, BAY_ERR_LIMIT of `out`. */
bay_err agents_proxy_list_write(const agents_proxy_list *self, const agents_proxy_owner *owner,
                                json_writer *out) BAY_MUST_CHECK;

#endif

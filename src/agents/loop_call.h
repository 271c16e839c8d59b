/* Cross-loop calls of agents: a tool agent keeps its tasks in one engine on one loop, and
 * connections arrive on all.
 *
 *   caller ─► call ─► loop pair ─► carried call ─► the agent's service
 *   caller ◄─ call ◄─ loop pair ◄─ carried call ◄─┘
 *
 * Parameters, results and events are copied. If AGENTS_LOOP_CALL_EVENTS events of a stream are
 * under way, its agent has to wait. */
#ifndef AGENTS_LOOP_CALL_H
#define AGENTS_LOOP_CALL_H

#include "a2a/service.h"
#include "base/list.h"
#include "net/loop_mailbox.h"

enum { AGENTS_LOOP_CALL_EVENTS = 64, AGENTS_LOOP_CALLS = 10000 /* of one loop */ };

/* Those that one loop began. */
typedef struct agents_loop_calls {
    list open;
    size_t count;
    loop_mailbox *mailbox; /* borrowed */
} agents_loop_calls;

/* The service of an agent, on its loop. `user` is that of the loop's mailbox. NULL: there is no
 * agent of that name. */
typedef a2a_service *(*agents_loop_call_find)(void *user, bay_str name);

void agents_loop_calls_init(agents_loop_calls *self, loop_mailbox *mailbox);
/* Every open call fails. */
void agents_loop_calls_end(agents_loop_calls *self);

/* Takes the call; `owner` is the mailbox of the agent's loop. Threads: the caller's loop. */
void agents_loop_call_begin(agents_loop_calls *self, loop_mailbox *owner, bay_str agent,
                            agents_loop_call_find find, a2a_call *call);
/* As the members of a2a_service. */
void agents_loop_call_gone(a2a_call *call);
void agents_loop_call_drained(a2a_call *call);

#endif

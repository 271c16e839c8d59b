/* Calls from one loop to an agent that lives on another: an agent made of tools has its tasks in
 * one engine, on one loop, and connections arrive on all.
 *
 *   caller ─► call ─begin, gone, drained─► carried call ─► the agent's service
 *   caller ◄─ call ◄─result, event, end, fail─ carried call ◄─┘
 *
 * Everything crosses as a copy, through the letter boxes of the loops (transport/relay_port). At
 * most CROSSING_EVENTS of a stream are on their way at one time; then its agent is told to wait. */
#ifndef AGENTS_CROSSING_H
#define AGENTS_CROSSING_H

#include "a2a/service.h"
#include "base/list.h"
#include "transport/relay_port.h"

enum { CROSSING_EVENTS = 64, CROSSING_OPEN = 10000 /* of one loop */ };

/* Those that began on one loop. */
typedef struct crossings {
    list open;
    size_t count;
    relay_port *port; /* borrowed */
} crossings;

/* The service of an agent, on the loop of `face`; NULL: there is none of that name. */
typedef a2a_service *(*crossing_find)(void *face, bay_str name);

void crossings_init(crossings *self, relay_port *port);
/* Every open call fails. */
void crossings_end(crossings *self);

/* Takes the call; `owner` is where the agent lives. Threads: the caller's loop. */
void crossing_begin(crossings *self, relay_port *owner, bay_str agent, crossing_find find,
                    a2a_call *call);
/* As the members of a2a_service. */
void crossing_gone(a2a_call *call);
void crossing_drained(a2a_call *call);

#endif

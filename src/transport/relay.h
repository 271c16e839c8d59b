/* A session lives on one loop; its client's connections end up on any. An exchange that belongs to
 * another loop's session is relayed: the owner gets a copy of the request and drives its engine
 * with a carrier whose every word travels back as a message.
 *
 *   exchange's loop                                    owner's loop
 *   http_reply ◄── answer, event, end, cut ──────────  mcp_carrier ◄── engine
 *              ─── begin, gone, acknowledgement ────►
 *
 * Either side may vanish first: what both know is counted, each touches its own half only. Bytes
 * not yet acknowledged are bounded: above the window the engine is told to wait. */
#ifndef TRANSPORT_RELAY_H
#define TRANSPORT_RELAY_H

#include "transport/face_internal.h"

/* Hands the exchange to `owner`'s loop. It is answered in any case: 503 when that cannot be done.
 */
void relay_exchange(http_face *self, http_exchange *exchange, relay_port *owner,
                    const auth_principal *principal);

/* The engines of this face are about to go: every relayed exchange ends. */
void relays_end(http_face *self);
/* Graceful end of the streams that other loops' clients have open here. */
void relays_close_streams(http_face *self);

#endif

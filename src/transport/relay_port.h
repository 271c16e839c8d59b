/* A loop's letter box: where other loops leave messages for its face. Counted, so that whoever
 * wants to post may hold it longer than the face or the loop lives; posting to a closed box fails
 * and nothing else. Messages are the senders' own storage: posting allocates nothing. */
#ifndef TRANSPORT_RELAY_PORT_H
#define TRANSPORT_RELAY_PORT_H

#include "net/loop.h"

typedef struct relay_port relay_port;

bay_err relay_port_new(loop *loop, void *face, relay_port **out) BAY_MUST_CHECK;
relay_port *relay_port_ref(relay_port *self);
void relay_port_unref(relay_port *self);

/* Any thread. Messages run on the port's loop, once, in the order posted, also when the port is
 * closed meanwhile. False: it is closed, and `message` will not run. */
bool relay_port_post(relay_port *self, loop_message *message);

/* The rest is for the loop's thread. */
void *relay_port_face(const relay_port *self); /* NULL once closed */
void relay_port_close(relay_port *self);

#endif

/* An engine's way back over one exchange, of this loop or another, and the call that waits for its
 * session to be found before any engine sees it. Internal to the HTTP face. */
#ifndef TRANSPORT_FACE_BACK_H
#define TRANSPORT_FACE_BACK_H

#include "mcp/server.h"

typedef struct face_wait face_wait;

typedef struct face_back face_back;
struct face_back {
    mcp_carrier carrier;             /* first */
    mcp_server *engine;              /* NULL: the face itself answers */
    face_wait *wait;                 /* NULL: the call waits for nothing */
    void (*served)(face_back *self); /* a call that waited was given to its engine; may be NULL */
};

/* The exchange is gone: nobody is told anything any more. */
void face_back_gone(face_back *self, uint64_t now_ms);

#endif

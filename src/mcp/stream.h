/* The event streams of a legacy session over HTTP: that of a POST whose answer streams, and the
 * standalone one of a GET. A stream outlives its connection: while the client is away its events go
 * to the session's log, and a GET with Last-Event-ID takes it up again. Internal to the server
 * engine. */
#ifndef MCP_STREAM_H
#define MCP_STREAM_H

#include "mcp/server_internal.h"

struct stream {
    carrier_owner owner; /* first */
    list_link link;
    mcp_session *session;
    response_channel *channel; /* NULL: a GET's, or all answers are sent */
    uint32_t number;
    uint32_t seq;        /* of the last event */
    uint64_t expires_ms; /* of a GET's; wall clock: it ends; 0: never */
    bool is_get;
    bool is_finished; /* the client has not had all of it and is away, or will have it soon */
    bool is_written;  /* finished, and all of it was written to a client that was there */
    bool is_held;     /* says nothing until the session is kept with it */
};

/* Takes the carrier on success only; NULL when out of memory. */
stream *stream_new(mcp_session *session, mcp_carrier *carrier, bool is_get);
void stream_free(stream *self); /* the carrier, if there is one, ends */

/* Opens the reply. mcp 2025-11-25 basic/transports: by an event with an id and no data, to prime
 * the client. Older clients do not expect empty data and get none. */
void stream_prime(stream *self);

/* Numbers, logs and sends one message. `is_last`: none follows. */
bay_err stream_event(stream *self, bay_str json, bool is_last);
/* The same for the answer to the request of that (raw) id. */
bay_err stream_answer(stream *self, bay_str json, bay_str id, bool is_last);
/* One that was held speaks: what has come so far goes out. It may be freed by that. */
void stream_show(stream *self);

/* No more events. Kept for a client that comes back, and for one that was there for a while. */
void stream_finish(stream *self);

/* Takes apart "<stream>-<seq>" and finds the stream; NULL: not one of this session. One whose last
 * event that was ("<stream>-<seq>-end") has nothing more to say: *out_is_over. */
stream *stream_find(mcp_session *session, bay_str event_id, uint32_t *out_seq, bool *out_is_over);

/* Sends what came after `seq` on a new carrier, then goes on live or ends. */
void stream_resume(stream *self, mcp_carrier *carrier, uint32_t seq);

/* Ends the exchange, not the stream, where a client can come back for the rest; false: it cannot,
 * and nothing was done. */
bool stream_release(stream *self);

/* A stream of a session that was taken up: nobody is on it. NULL when out of memory. */
stream *stream_restore(mcp_session *session, uint32_t number, bool is_get);

#endif

/* The event streams of a legacy session over HTTP: that of a POST whose answer streams, and the
 * standalone one of a GET. A stream outlives its connection: while the client is disconnected its
 * events go to the session's log, and a GET with Last-Event-ID resumes it. Internal to the server
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
    uint64_t expires_ms; /* of a GET's; wall clock: when it ends; 0: never */
    bool is_get;
    bool is_finished; /* the client has not received all of it */
    bool is_written;  /* finished, and all of it was written to a connected client */
    bool is_held;     /* sends nothing until the session is stored with it */
};

/* Takes the carrier on success only; NULL: out of memory. */
stream *stream_new(mcp_session *session, mcp_carrier *carrier, bool is_get);
void stream_free(stream *self); /* the carrier, if any, ends */

/* Opens the reply. mcp 2025-11-25 basic/transports: with an event with an id and no data, to prime
 * the client. Older clients do not expect empty data and get none. */
void stream_prime(stream *self);

/* Numbers, logs and sends one message. `is_last`: none follows. */
bay_err stream_event(stream *self, bay_str json, bool is_last);
/* The same for the answer to the request with this (raw) id. */
bay_err stream_answer(stream *self, bay_str json, bay_str id, bool is_last);
/* Sends what a held stream has collected. May free it. */
void stream_show(stream *self);

/* No more events follow. Kept for a client that reconnects, and for a while for one that was
 * connected. */
void stream_finish(stream *self);

/* Parses "<stream>-<seq>" and finds the stream; NULL: not one of this session. *out_is_over: that
 * event was its last ("<stream>-<seq>-end"), and nothing remains to be sent. */
stream *stream_find(mcp_session *session, bay_str event_id, uint32_t *out_seq, bool *out_is_over);

/* Sends what came after `seq` on a new carrier, then continues or ends. */
void stream_resume(stream *self, mcp_carrier *carrier, uint32_t seq);

/* Ends the exchange, not the stream, if the client can reconnect for the rest; false: it cannot,
 * and nothing was done. */
bool stream_release(stream *self);

/* A stream of a restored session, without a carrier. NULL: out of memory. */
stream *stream_restore(mcp_session *session, uint32_t number, bool is_get);

#endif

/* What a stream has reported of its task, so that a resumed one reports only the rest: the state,
 * and the number of parts of each artifact and a hash of them. Their content is not kept. */
#ifndef A2A_TRANSPORT_LINK_STREAM_STATE_H
#define A2A_TRANSPORT_LINK_STREAM_STATE_H

#include "a2a/protocol.h"
#include "base/buf.h"
#include "json/json.h"

enum {
    A2A_STREAM_STATE_ARTIFACTS = 1000, /* of a task; further ones are reported again whole */
    A2A_STREAM_STATE_ID_BYTES = 1024,  /* of a task's id; with a longer one it is not resumed */
};

typedef struct a2a_stream_state_artifact {
    uint64_t id; /* hashes */
    uint64_t content;
    size_t parts;
} a2a_stream_state_artifact;

typedef struct a2a_stream_state {
    buf task_id; /* raw JSON: a string */
    a2a_state state;
    bool is_message; /* a direct answer: there is no task */
    uint64_t status; /* hash of state, time and message of the last status */
    a2a_stream_state_artifact *artifacts;
    size_t count;
    size_t cap;
} a2a_stream_state;

void a2a_stream_state_init(a2a_stream_state *self);
void a2a_stream_state_fini(a2a_stream_state *self);

/* Sets the task's id, if it is not known yet: a JSON string. BAY_ERR_NOMEM. */
bay_err a2a_stream_state_note_id(a2a_stream_state *self, json_val id) BAY_MUST_CHECK;
/* `event`, a StreamResponse (1.0), was reported. Errors: BAY_ERR_NOMEM. */
bay_err a2a_stream_state_note(a2a_stream_state *self, json_val event) BAY_MUST_CHECK;

/* The parts of `task` (1.0) that were not reported, as StreamResponses: one call of `tell` for
 * each, which copies what it keeps; they then count as reported. An artifact that differs from the
 * known one is reported as a whole. Errors: BAY_ERR_NOMEM, BAY_ERR_LIMIT, or what `tell` returned.
 */
typedef bay_err (*a2a_stream_state_tell)(void *user, json_val event);
bay_err a2a_stream_state_difference(a2a_stream_state *self, json_val task,
                                    a2a_stream_state_tell tell, void *user) BAY_MUST_CHECK;

/* `event` says only what was told: the status that the task has, or an artifact as it is. An agent
 * may put what happens while a stream is taken up into the task and into an event. Parts that
 * are appended, and the last ones, always count as new. */
bool a2a_stream_state_was_told(a2a_stream_state *self, json_val event);

#endif

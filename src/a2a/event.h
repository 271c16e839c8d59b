/* One event of a task for all its subscribers: the 1.0 StreamResponse, and each form and encoding
 * of it, made once when the first subscriber needs it. Counted; one thread. */
#ifndef A2A_EVENT_H
#define A2A_EVENT_H

#include "a2a/dialect.h"

typedef struct a2a_event a2a_event;

/* A copy of `json`, a StreamResponse in normal form. `sequence`: its number in its task, from 1; 0:
 * none (it cannot be replayed). `is_last`: streams end after it. NULL: out of memory. */
a2a_event *a2a_event_new(bay_str json, uint64_t sequence, bool is_last);
a2a_event *a2a_event_ref(a2a_event *self);
void a2a_event_unref(a2a_event *self); /* NULL is allowed */

/* Lends its JSON as a value, so that converting it needs no parsing. Take it back (JSON_NONE)
 * before the value is freed. */
void a2a_event_lend(a2a_event *self, json_val value);

uint64_t a2a_event_sequence(const a2a_event *self);
bool a2a_event_is_last(const a2a_event *self);
bay_str a2a_event_json(const a2a_event *self);
/* … as a value, valid as long as `memory` and what was lent. */
bay_err a2a_event_value(const a2a_event *self, arena *memory, json_val *out) BAY_MUST_CHECK;
size_t a2a_event_bytes(const a2a_event *self); /* of memory, with all forms made so far */

/* The event in this form: JSON, or protobuf for the two forms that have it. Valid as long as the
 * event. Errors: BAY_ERR_NOMEM, BAY_ERR_LIMIT, BAY_ERR_INVALID (the form has no protobuf). */
bay_err a2a_event_in(a2a_event *self, a2a_form form, bool is_protobuf, bay_str *out) BAY_MUST_CHECK;

#endif

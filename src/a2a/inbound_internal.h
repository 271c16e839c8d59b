/* Shared by the files of a2a/inbound.h. Private to a2a/. */
#ifndef A2A_INBOUND_INTERNAL_H
#define A2A_INBOUND_INTERNAL_H

#include "a2a/dialect_walk.h"
#include "a2a/inbound.h"

/* From the request's form and method: `params` in normal form, and its tenant. */
bay_err a2a_inbound_params(a2a_inbound *self, json_val params, arena *memory,
                           a2a_fault *fault) BAY_MUST_CHECK;

/* BAY_OK, BAY_ERR_NOMEM, or BAY_ERR_PROTOCOL with the fault. */
bay_err a2a_inbound_failed(bay_err err, a2a_fault *fault) BAY_MUST_CHECK;

#endif

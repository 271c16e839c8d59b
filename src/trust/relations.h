/* What the names of several servers' items say together: one name twice, and names that look
 * alike. */
#ifndef TRUST_RELATIONS_H
#define TRUST_RELATIONS_H

#include "trust/findings.h"

enum { TRUST_RELATED_NAMES = 100000 }; /* compared; beyond, none are */

/* Adds a finding to each item of a later server whose name is, or looks like, one of an earlier
 * server. Tools and prompts. BAY_ERR_NOMEM, BAY_ERR_LIMIT. Time: n log n in names, but for the
 * length of one. */
bay_err trust_relations_add(trust_findings *self, const trust_definitions *const *servers,
                            size_t count, trust_silences *silences) BAY_MUST_CHECK;

#endif

/* Forms as OAuth writes them: application/x-www-form-urlencoded bodies and the queries of
 * redirects.
 * Source: WHATWG URL, application/x-www-form-urlencoded; RFC 6749 appendix B. */
#ifndef AUTH_OAUTH_FORM_H
#define AUTH_OAUTH_FORM_H

#include "base/arena.h"
#include "base/buf.h"

enum {
    OAUTH_FORM_BYTES = 64 << 10, /* of a form that is read */
    OAUTH_FORM_FIELDS = 32,      /* in it */
};

/* Appends `&` where `out` is longer than `start`, then name=value. Errors stick in `out`. */
void oauth_form_put(buf *out, size_t start, bay_str name, bay_str value);
/* The same, but nothing if the value is empty. */
void oauth_form_put_some(buf *out, size_t start, bay_str name, bay_str value);
/* Appends one text as a form writes it: a space is `+`. */
void oauth_form_encode(buf *out, bay_str text);

typedef struct oauth_form_field {
    bay_str name;
    bay_str value;
} oauth_form_field;

typedef struct oauth_form {
    oauth_form_field fields[OAUTH_FORM_FIELDS];
    size_t count;
} oauth_form;

/* Takes a form apart. A name that appears twice is an error: RFC 6749 section 3.1 forbids it, and
 * two readers of such a form may each believe another value.
 * Owns: decoded texts in `memory`. Errors: BAY_ERR_SYNTAX; BAY_ERR_DUPLICATE; BAY_ERR_LIMIT;
 * BAY_ERR_NOMEM. */
bay_err oauth_form_read(bay_str text, arena *memory, oauth_form *out) BAY_MUST_CHECK;
/* The field's value; `at` is NULL if it is absent. */
bay_str oauth_form_get(const oauth_form *self, bay_str name);

#endif

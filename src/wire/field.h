/* One header field, for all modules above. */
#ifndef WIRE_FIELD_H
#define WIRE_FIELD_H

#include "patchbay/types.h"

/* `name` as sent (compare without case), `value` without white space around it. */
typedef struct http_field {
    bay_str name;
    bay_str value;
} http_field;

#endif

/* The parts of a number's text. Nothing is converted or rounded. Private to json/. */
#ifndef JSON_DECIMAL_H
#define JSON_DECIMAL_H

#include "patchbay/types.h"

/* The value is 0.D1D2D3… × 10^(point + exponent); D are the significant digits, and the first and
 * the last of them are not zero. Their text may contain a '.'. */
typedef struct json_decimal {
    bool is_negative;
    bay_str digits; /* empty: the value is zero */
    size_t count;   /* significant digits */
    int64_t point;
    bool is_exponent_negative;
    bay_str exponent; /* its digits, without leading zeros; empty: zero */
} json_decimal;

/* `text` is a JSON number. */
json_decimal json_decimal_of(bay_str text);

/* point + exponent, limited to about ±10^18. */
int64_t json_decimal_magnitude(const json_decimal *self);

/* Equal numbers have the same hash. */
uint64_t json_number_hash(bay_str text, uint64_t seed);

#endif

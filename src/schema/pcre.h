/* The one place that says which PCRE2 is meant. */
#ifndef SCHEMA_PCRE_H
#define SCHEMA_PCRE_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#endif

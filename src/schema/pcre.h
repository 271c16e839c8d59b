/* Selects the PCRE2 variant, for all files. */
#ifndef SCHEMA_PCRE_H
#define SCHEMA_PCRE_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#endif

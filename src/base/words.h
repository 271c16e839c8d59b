/* The words of a command line that is one text. */
#ifndef BASE_WORDS_H
#define BASE_WORDS_H

#include "patchbay/types.h"

/* Separates `text` at its white space, in place: words are quoted with '…' or "…" where needed, and
 * no shell is involved. `words` has room for `most` of them and the NULL behind the last.
 * Errors: BAY_ERR_SYNTAX: a quote is not closed; BAY_ERR_LIMIT: there are more. */
bay_err words_split(char *text, char **words, size_t most, size_t *out_count) BAY_MUST_CHECK;

#endif

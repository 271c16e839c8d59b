/* The arguments of a call: KEY=VALUE words or one JSON object. */
#ifndef CLI_PAIRS_H
#define CLI_PAIRS_H

#include "cli/arguments.h"
#include "json/build.h"

enum { CLI_PAIRS_BYTES = 64 * 1024 * 1024 };

/* Writes the object. `is_text`: every value is a text (prompts); else a VALUE that is JSON goes as
 * it is written, KEY:=VALUE must be JSON and KEY==VALUE is a text.
 * Errors: BAY_ERR_INVALID (a key twice, := without JSON, no key); BAY_ERR_DEPTH, BAY_ERR_LIMIT
 * (JSON beyond what is read); BAY_ERR_NOMEM; each with a text. */
bay_err cli_pairs_write(char *const *pairs, size_t count, bool is_text, json_writer *out,
                        bay_diag *diag) BAY_MUST_CHECK;

/* Writes what --arguments names: JSON, @FILE or @- (stdin). It must be one object.
 * Errors: BAY_ERR_INVALID (no JSON, no object); BAY_ERR_IO (the file); BAY_ERR_NOMEM,
 * BAY_ERR_LIMIT. */
bay_err cli_pairs_read(const char *text, json_writer *out, bay_diag *diag) BAY_MUST_CHECK;

/* {"name":…,"arguments":…} of the command line, with whichever arguments it has; they are {} when
 * it has none. `*out` is good until `made` is dropped, which the caller does also on failure. Says
 * on stderr what is wrong. */
cli_exit cli_pairs_params(const cli_arguments *arguments, bool is_text, json_builder *made,
                          json_val *out);

#endif

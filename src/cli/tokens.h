/* What a tool's definition costs a model, about.
 *
 * Every model has its own tokenizer, so this is an estimate, never a bill. It imitates what byte
 * pair encodings have in common: a word with the space before it is one token up to six letters and
 * gains one for each further six; two capitals or a lower-case letter before a capital begin a new
 * word; digits go by threes; punctuation that stands together goes by twos; a character beyond
 * ASCII costs about one token per two bytes. White space between JSON tokens is not counted: hosts
 * hand definitions on in compact form. */
#ifndef CLI_TOKENS_H
#define CLI_TOKENS_H

#include "json/json.h"

/* Of JSON or of plain text; white space outside of strings counts nothing. */
size_t cli_tokens_of_json(bay_str raw);

/* Of a definition: its name, description and inputSchema, as one compact object. */
size_t cli_tokens_of_tool(json_val tool);

#endif

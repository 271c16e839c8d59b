/* The arguments of a call as the audit shows them. What it writes has neither line ends nor secrets
 * that can be told by their name or their form, and has a bound: a larger value becomes the names of
 * its members. */
#ifndef EVIDENCE_ARGUMENTS_H
#define EVIDENCE_ARGUMENTS_H

#include "auth/seal.h"
#include "json/writer.h"

enum {
    ARGUMENTS_BYTES = 4096, /* of what is shown */
    ARGUMENTS_DEPTH = 16,
    ARGUMENTS_KEYS = 64, /* names, where the value is too large */
    ARGUMENTS_KEY_BYTES = 128,
};

/* The order of the words of `audit.arguments`. */
typedef enum arguments_form {
    ARGUMENTS_REDACTED,
    ARGUMENTS_NONE,
    ARGUMENTS_KEYS_ALONE,
    ARGUMENTS_DIGEST,
    ARGUMENTS_FULL,
} arguments_form;

/* Does a member of this name have a secret, whatever it is? */
bool arguments_name_is_secret(bay_str name);
/* Does the text have the form of a credential, somewhere in it? */
bool arguments_text_is_secret(bay_str text);

/* Writes members of the open object: `arguments`, `argumentKeys` or `argumentsDigest`; nothing for a
 * value that is missing. `digest`: of the value's canonical form, as call_arguments_digest has it;
 * only for ARGUMENTS_DIGEST, which needs `ring`: the same value has the same digest as long as the
 * gateway has the same `keys`. */
void arguments_write(json_val value, arguments_form form, bay_str digest, const seal_ring *ring,
                     json_writer *out);

#endif

/* The digest of a call's arguments. */
#include "auth/digest.h"
#include "base/str.h"
#include "call/call.h"

bay_err call_arguments_digest(call_context *self, bay_str *out)
{
    char text[DIGEST_TEXT_BYTES + 1];
    bay_err err = BAY_OK;
    if (self->arguments_digest.len == 0) {
        err = digest_json(json_get(self->params, STR("arguments")), text);
        if (err == BAY_OK) {
            err = arena_dup(self->memory, (bay_str){text, DIGEST_TEXT_BYTES},
                            &self->arguments_digest);
        }
    }
    *out = self->arguments_digest;
    return err;
}

/* The place of access_token.c in a library that is built without OpenSSL: no token is believed. */
#include "auth/access_token.h"

#include "base/err.h"

static bay_err access_refuse(bay_diag *diag)
{
    return diag_set(diag, BAY_ERR_UNSUPPORTED,
                    "this libpatchbay was built without TLS: it verifies no tokens");
}

bool access_token_is_jwt(bay_str token)
{
    (void)token;
    return false;
}

bay_err access_token_read(bay_str token, arena *memory, access_token *out, bay_diag *diag)
{
    (void)token;
    (void)memory;
    (void)out;
    return access_refuse(diag);
}

bay_err access_token_verify(const access_token *self, const jose_keys *keys, bay_diag *diag)
{
    (void)self;
    (void)keys;
    return access_refuse(diag);
}

unsigned access_algorithm(bay_str name)
{
    (void)name;
    return 0;
}

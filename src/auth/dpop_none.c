/* The place of dpop.c in a library that is built without OpenSSL: no proof is believed. */
#include "auth/dpop.h"

#include "base/err.h"

bay_err dpop_check(bay_str proof, const dpop_expected *expected, dpop_replays *replays,
                   bay_diag *diag)
{
    (void)proof;
    (void)expected;
    (void)replays;
    return diag_set(diag, BAY_ERR_UNSUPPORTED,
                    "this libpatchbay was built without TLS: it verifies no proofs");
}

bool dpop_url_is(bay_str one, bay_str other)
{
    (void)one;
    (void)other;
    return false;
}

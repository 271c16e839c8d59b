/* The place of jose.c in a library that is built without OpenSSL: no key is ever made, so nothing
 * is signed and nothing that claims to be is believed. */
#include "auth/jose.h"

#include "base/err.h"

static bay_err jose_refuse(bay_diag *diag)
{
    return diag_set(diag, BAY_ERR_UNSUPPORTED,
                    "this libpatchbay was built without TLS: it neither signs nor verifies");
}

bay_err jose_key_new(bay_str text, bay_str key_id, jose_key **out, bay_diag *diag)
{
    (void)text;
    (void)key_id;
    (void)out;
    return jose_refuse(diag);
}

void jose_key_free(jose_key *self)
{
    (void)self; /* NULL: there is none */
}

bay_str jose_key_id(const jose_key *self)
{
    (void)self;
    return (bay_str){"", 0};
}

bay_err jose_key_public(const jose_key *self, buf *out)
{
    (void)self;
    (void)out;
    return BAY_ERR_UNSUPPORTED;
}

bay_err jose_keys_new(bay_str text, jose_keys **out, bay_diag *diag)
{
    (void)text;
    (void)out;
    return jose_refuse(diag);
}

jose_keys *jose_keys_ref(jose_keys *self)
{
    return self; /* NULL: there is none */
}

void jose_keys_free(jose_keys *self)
{
    (void)self; /* NULL: there is none */
}

size_t jose_keys_count(const jose_keys *self)
{
    (void)self;
    return 0;
}

bay_err jose_sign(const jose_key *key, bay_str payload, bay_str typ, bay_str jku,
                  buf *out_protected, buf *out_signature)
{
    (void)key;
    (void)payload;
    (void)typ;
    (void)jku;
    (void)out_protected;
    (void)out_signature;
    return BAY_ERR_UNSUPPORTED;
}

bay_err jose_verify(const jose_keys *keys, bay_str protected_header, bay_str payload,
                    bay_str signature)
{
    (void)keys;
    (void)protected_header;
    (void)payload;
    (void)signature;
    return BAY_ERR_UNSUPPORTED;
}

bay_err jose_keys_thumbprint(const jose_keys *self, buf *out)
{
    (void)self;
    (void)out;
    return BAY_ERR_UNSUPPORTED;
}

bool jose_keys_have_all(const jose_keys *self, const jose_keys *older)
{
    (void)self;
    (void)older;
    return false;
}

bay_err jose_token_sign(const jose_key *key, bay_str typ, bool shows_key, bay_str claims, buf *out)
{
    (void)key;
    (void)typ;
    (void)shows_key;
    (void)claims;
    (void)out;
    return BAY_ERR_UNSUPPORTED;
}

bay_str jose_key_algorithm(const jose_key *self)
{
    (void)self;
    return (bay_str){"", 0};
}

bay_err jose_key_generate(buf *out)
{
    (void)out;
    return BAY_ERR_UNSUPPORTED;
}

bay_err jose_hash(bay_str bytes, buf *out)
{
    (void)bytes;
    (void)out;
    return BAY_ERR_UNSUPPORTED;
}

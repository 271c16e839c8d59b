/* Keys as people write them down. */
#include <string.h>

#include "auth/seal.h"
#include "base/mem.h"
#include "wire/base64.h"
#include "wire/chars.h"

enum { HEX_LEN = 2 * SEAL_KEY_BYTES, DECODED_BYTES = SEAL_KEY_BYTES + 8 };

static bool read_hex(bay_str text, unsigned char *out)
{
    if (text.len != HEX_LEN) {
        return false;
    }
    for (size_t i = 0; i < SEAL_KEY_BYTES; i++) {
        int high = char_hex(text.at[2 * i]);
        int low = char_hex(text.at[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

static bool read_base64(bay_str text, base64_form form, unsigned char *out)
{
    char bytes[DECODED_BYTES] = {0};
    buf decoded = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    bool is_key = base64_decode(&decoded, text, form) == BAY_OK && decoded.len == SEAL_KEY_BYTES;
    if (is_key) {
        memcpy(out, bytes, SEAL_KEY_BYTES);
    }
    mem_wipe(bytes, sizeof(bytes));
    return is_key;
}

bool seal_key_read(bay_str text, unsigned char out[SEAL_KEY_BYTES])
{
    return read_hex(text, out) || read_base64(text, BASE64_STANDARD_LOOSE, out) ||
           read_base64(text, BASE64_URL_LOOSE, out);
}

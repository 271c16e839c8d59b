/* Tokens and ids that come back from clients: what was not sealed here opens nothing, what was
 * opens for whom and for what it was sealed, and any changed byte ends that; where a token leads is
 * read without harm. The input's first bytes say how long the principal is and which byte of a
 * genuine token to change; the rest is principal, forged token and sealed text. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "auth/seal.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "sessions/keys.h"
#include "sessions/token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROOM = 1 << 20, NOW = 1000 };

static seal_ring *ring(void)
{
    static seal_ring *made; /* one for the whole run: no input can hold what it sealed */
    if (made == NULL) {
        CHECK(seal_ring_new(&made) == BAY_OK && seal_ring_generate(made) == BAY_OK);
    }
    return made;
}

static bool opens(const char *kind, bay_str principal, bay_str token, uint64_t now_ms, buf *out)
{
    buf_clear(out);
    bay_err err = token_open(ring(), kind, principal, token, now_ms, out);
    CHECK(err == BAY_OK || err == BAY_ERR_DENIED || err == BAY_ERR_TIMEOUT || err == BAY_ERR_LIMIT);
    CHECK(err == BAY_OK || out->len == 0);
    return err == BAY_OK;
}

static void check_forged(bay_str principal, bay_str text)
{
    buf out;
    uint32_t worker = 0;
    unsigned char key[SEAL_KEY_BYTES];
    buf_init(&out, ROOM);
    CHECK(!opens("call", principal, text, NOW, &out));
    CHECK(!token_worker(text, &worker) || str_starts(text, STR("pb")));
    (void)seal_key_read(text, key);
    buf_fini(&out);
}

static void check_genuine(bay_str principal, bay_str plain, uint32_t worker, size_t at, char by)
{
    buf token;
    buf out;
    buf_init(&token, ROOM);
    buf_init(&out, ROOM);
    bay_err err = token_seal(ring(), "call", worker, principal, plain, 2 * NOW, &token);
    CHECK(err == BAY_OK || err == BAY_ERR_LIMIT);
    if (err == BAY_OK) {
        bay_str whole = buf_view(&token);
        CHECK(opens("call", principal, whole, NOW, &out) && str_eq(buf_view(&out), plain));
        CHECK(!opens("call", principal, whole, 2 * NOW, &out));
        CHECK(!opens("task", principal, whole, NOW, &out));
        CHECK(!opens("call", plain, whole, NOW, &out) || str_eq(plain, principal));
        CHECK(!opens("call", principal, str_head(whole, at % whole.len), NOW, &out));
        uint32_t found = ~worker;
        CHECK(token_worker(whole, &found) && found == worker);
        size_t dot = str_find(whole, '.');
        at = dot + 1 + at % (whole.len - dot - 1);
        if (by != '\0') {
            token.at[at] = (char)(token.at[at] ^ by);
            CHECK(!opens("call", principal, whole, NOW, &out));
        }
    }
    buf_fini(&token);
    buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 8) {
        return 0;
    }
    size_t len = data[0] < size - 8 ? data[0] : size - 8;
    uint32_t worker = (uint32_t)data[1] << 24 | (uint32_t)data[2] << 8 | data[3];
    size_t at = (size_t)data[4] << 8 | data[5];
    char *copy = mem_dup((const char *)data + 8, size - 8); /* exact: a byte too far is seen */
    CHECK(copy != NULL);
    bay_str principal = {copy, len};
    bay_str text = {copy + len, size - 8 - len};
    check_forged(principal, text);
    check_genuine(principal, text, worker, at, (char)data[6]);
    mem_free(copy);
    return 0;
}

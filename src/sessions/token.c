#include "sessions/token.h"

#include "auth/principal.h"
#include "base/str.h"

/* Kind and binding, which may name an endpoint as well. */
enum { BOUND_BYTES = PRINCIPAL_IDENTITY_BYTES + 8192 };

static void write_bound(buf *out, const char *kind, bay_str binding)
{
    buf_str(out, str_of(kind));
    buf_char(out, '\0');
    buf_str(out, binding);
}

bay_err token_seal(const seal_ring *ring, const char *kind, uint32_t worker, bay_str binding,
                   bay_str plain, uint64_t expires_at_ms, buf *out)
{
    buf bound;
    size_t before = out->len;
    buf_init(&bound, BOUND_BYTES);
    write_bound(&bound, kind, binding);
    buf_printf(out, "pb%x.", worker);
    bay_err err = bound.err != BAY_OK ? bound.err : out->err;
    err = err == BAY_OK ? seal_value(ring, plain, buf_view(&bound), expires_at_ms, out) : err;
    if (err != BAY_OK) {
        out->len = before;
    }
    buf_fini(&bound);
    return err;
}

/* The sealed part; `at` NULL when this is no token. */
static bay_str read_prefix(bay_str token, uint32_t *out_worker)
{
    uint32_t worker = 0;
    size_t dot = str_find(str_head(token, TOKEN_PREFIX_BYTES), '.');
    if (!str_starts(token, STR("pb")) || dot < 3 || dot >= TOKEN_PREFIX_BYTES || dot == token.len) {
        return (bay_str){NULL, 0};
    }
    for (size_t i = 2; i < dot; i++) {
        char c = token.at[i];
        bool is_digit = c >= '0' && c <= '9';
        if (!is_digit && (c < 'a' || c > 'f')) {
            return (bay_str){NULL, 0};
        }
        worker = worker << 4 | (uint32_t)(is_digit ? c - '0' : c - 'a' + 10);
    }
    *out_worker = worker;
    return str_from(token, dot + 1);
}

bay_err token_open(const seal_ring *ring, const char *kind, bay_str binding, bay_str token,
                   uint64_t now_ms, buf *out)
{
    uint32_t worker;
    bay_str sealed = read_prefix(token, &worker);
    if (sealed.at == NULL) {
        return BAY_ERR_DENIED;
    }
    buf bound;
    buf_init(&bound, BOUND_BYTES);
    write_bound(&bound, kind, binding);
    bay_err err =
        bound.err != BAY_OK ? bound.err : seal_open(ring, sealed, buf_view(&bound), now_ms, out);
    buf_fini(&bound);
    return err;
}

bool token_worker(bay_str token, uint32_t *out_worker)
{
    return read_prefix(token, out_worker).at != NULL;
}

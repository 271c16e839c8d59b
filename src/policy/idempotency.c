#include "policy/idempotency.h"

#include <stdio.h>
#include <string.h>

#include "auth/digest.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/str.h"

enum { PARTS_BYTES = PRINCIPAL_IDENTITY_BYTES + 64 * 1024 };

static bay_err refuse(bay_diag *diag, const char *where, const char *what)
{
    (void)snprintf(diag->text, sizeof(diag->text),
                   "The idempotency key in %.64s %s. The call was not carried out.", where, what);
    return BAY_ERR_INVALID;
}

/* A text, or a number as it is written. BAY_ERR_NOT_FOUND: there is none. */
static bay_err read_value(json_val value, const char *where, arena *memory, bay_str *out,
                          bay_diag *diag)
{
    bay_str text;
    if (json_is(value, JSON_MISSING) || json_is(value, JSON_NULL)) {
        return BAY_ERR_NOT_FOUND;
    }
    if (json_is(value, JSON_NUMBER)) {
        text = json_raw(value);
    } else if (!json_is(value, JSON_STRING)) {
        return refuse(diag, where, "is neither a text nor a number");
    } else if (json_str(value, memory, &text) != BAY_OK) {
        return BAY_ERR_NOMEM;
    }
    if (text.len == 0 || text.len > IDEMPOTENCY_KEY_BYTES) {
        return refuse(diag, where, "is empty or has more than 255 bytes");
    }
    *out = text;
    return BAY_OK;
}

static bay_err read_meta(const idempotency_call *self, bay_str *out, bay_diag *diag)
{
    json_val meta = json_get(self->params, STR("_meta"));
    bay_str names[] = {STR(IDEMPOTENCY_META), self->how->meta};
    size_t count = names[1].len > 0 && !str_eq(names[0], names[1]) ? 2 : 1;
    json_val at[2] = {JSON_NONE, JSON_NONE};
    if (!json_is(meta, JSON_OBJECT)) {
        return BAY_ERR_NOT_FOUND;
    }
    if (json_pick(meta, names, count, at, NULL) != BAY_OK) {
        return refuse(diag, "_meta", "is there twice");
    }
    bay_err err = read_value(at[0], "_meta", self->memory, out, diag);
    return err == BAY_ERR_NOT_FOUND ? read_value(at[1], "_meta", self->memory, out, diag) : err;
}

static bay_err read_header(const idempotency_call *self, bay_str *out, bay_diag *diag)
{
    for (size_t i = 0; i < self->field_count && self->how->header.len > 0; i++) {
        if (str_eq_nocase(self->fields[i].name, self->how->header)) {
            bay_str value = self->fields[i].value;
            if (value.len == 0 || value.len > IDEMPOTENCY_KEY_BYTES) {
                return refuse(diag, "the header", "is empty or has more than 255 bytes");
            }
            *out = value;
            return BAY_OK;
        }
    }
    return BAY_ERR_NOT_FOUND;
}

static bay_err read_argument(const idempotency_call *self, bay_str *out, bay_diag *diag)
{
    if (self->how->argument.len == 0) {
        return BAY_ERR_NOT_FOUND;
    }
    json_val arguments = json_get(self->params, STR("arguments"));
    return read_value(json_pointer(arguments, self->how->argument), "the arguments", self->memory,
                      out, diag);
}

/* The first that the caller gives. */
static bay_err read_given(const idempotency_call *self, bay_str *out, bay_diag *diag)
{
    bay_err err = read_meta(self, out, diag);
    if (err == BAY_ERR_NOT_FOUND) {
        err = read_header(self, out, diag);
    }
    return err == BAY_ERR_NOT_FOUND ? read_argument(self, out, diag) : err;
}

bool idempotency_has_key(const idempotency_call *self)
{
    bay_str given;
    bay_diag why;
    return self->how->derive || read_given(self, &given, &why) != BAY_ERR_NOT_FOUND;
}

static bay_err digest_cut(bay_str text, unsigned char out[OUTCOME_KEY_BYTES])
{
    unsigned char whole[DIGEST_BYTES];
    bay_err err = digest_bytes(text, whole);
    if (err == BAY_OK) {
        memcpy(out, whole, OUTCOME_KEY_BYTES);
    }
    return err;
}

static bay_err write_upstream(const idempotency_call *self, bay_str parts, bay_str *out)
{
    unsigned char digest[SEAL_DIGEST_BYTES];
    char text[IDEMPOTENCY_UPSTREAM_BYTES];
    buf digits = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    size_t count = seal_ring_count(self->ring);
    *out = STR("");
    if (count == 0) {
        return BAY_OK;
    }
    /* the oldest: a key that is new in the ring does not make the server see another call */
    bay_err err = seal_digest(self->ring, count - 1, SEAL_IDEMPOTENCY, parts, digest);
    for (size_t i = 0; i < SEAL_DIGEST_BYTES && err == BAY_OK; i++) {
        buf_printf(&digits, "%02x", digest[i]);
    }
    return err == BAY_OK ? arena_dup(self->memory, buf_view(&digits), out) : err;
}

bay_err idempotency_read(const idempotency_call *self, outcome_key *out, bay_str *out_upstream,
                         bay_diag *diag)
{
    static const bay_str answers[] = {STR_INIT("requestState"), STR_INIT("inputResponses")};
    json_val at[2];
    bay_str key = self->arguments_digest;
    buf parts;
    bay_err err = read_given(self, &key, diag);
    bool is_derived = err == BAY_ERR_NOT_FOUND && self->how->derive;
    if (err != BAY_OK && !is_derived) {
        return err;
    }
    bool is_retry = json_pick(self->params, answers, 2, at, NULL) != BAY_OK ||
                    !json_is(at[0], JSON_MISSING) || !json_is(at[1], JSON_MISSING);
    uint64_t usual = is_derived ? IDEMPOTENCY_DERIVED_KEEP_MS : IDEMPOTENCY_KEEP_MS;
    *out = (outcome_key){.keep_ms = self->how->keep_ms > 0 ? self->how->keep_ms : usual,
                         .is_retry = is_retry,
                         .may_repeat = self->how->on_unknown == POLICY_UNKNOWN_RETRY};
    buf_init(&parts, PARTS_BYTES);
    bytes_put_part(&parts, principal_identity(self->principal));
    bytes_put_part(&parts, self->server);
    bytes_put_part(&parts, self->name);
    bytes_put_part(&parts, is_derived ? STR("derived") : STR("given"));
    bytes_put_part(&parts, key);
    err = parts.err != BAY_OK ? parts.err : digest_cut(buf_view(&parts), out->key);
    if (err == BAY_OK) {
        err = digest_cut(self->arguments_digest, out->fingerprint);
    }
    if (err == BAY_OK) {
        err = digest_cut(principal_identity(self->principal), out->owner);
    }
    if (err == BAY_OK) {
        err = write_upstream(self, buf_view(&parts), out_upstream);
    }
    buf_fini(&parts);
    return err;
}

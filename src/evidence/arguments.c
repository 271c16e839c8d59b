#include "evidence/arguments.h"

#include "auth/principal_key.h"
#include "base/check.h"
#include "base/str.h"
#include "wire/chars.h"

/* ---- what is secret --------------------------------------------------------------------------- */

enum { NAME_BYTES = 64 };

/* Parts of names: small letters and digits alone, as `plain_name` makes them. */
static const bay_str secret_names[] = {
    STR_INIT("password"),   STR_INIT("passwd"), STR_INIT("passphrase"),
    STR_INIT("secret"),     STR_INIT("token"),  STR_INIT("apikey"),
    STR_INIT("accesskey"),  STR_INIT("bearer"), STR_INIT("authorization"),
    STR_INIT("credential"), STR_INIT("cookie"), STR_INIT("privatekey"),
    STR_INIT("signature"),  STR_INIT("jwt"),    STR_INIT("otp"),
    STR_INIT("pincode"),    STR_INIT("cvv"),    STR_INIT("cardnumber"),
};

/* How credentials begin, at the begin of a word. */
static const bay_str secret_forms[] = {
    STR_INIT("Bearer "), STR_INIT("Basic "), STR_INIT("sk-"),         STR_INIT("ghp_"),
    STR_INIT("gho_"),    STR_INIT("ghs_"),   STR_INIT("github_pat_"), STR_INIT("glpat-"),
    STR_INIT("xoxb-"),   STR_INIT("xoxp-"),  STR_INIT("AKIA"),        STR_INIT("ASIA"),
    STR_INIT("AIza"),    STR_INIT("eyJ"),    STR_INIT("-----BEGIN"),  STR_INIT("pbk_"),
};

/* Does `text` begin with one of them, and go on behind it where `needs_more`? */
static bool begins(bay_str text, const bay_str *parts, size_t count, bool needs_more)
{
    for (size_t i = 0; i < count; i++) {
        if (parts[i].at[0] == text.at[0] && str_starts(text, parts[i]) &&
            (!needs_more || text.len > parts[i].len)) {
            return true;
        }
    }
    return false;
}

static size_t plain_name(bay_str name, char out[NAME_BYTES])
{
    size_t len = 0;
    for (size_t i = 0; i < name.len && len < NAME_BYTES; i++) {
        char c = char_lower(name.at[i]);
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
            out[len++] = c;
        }
    }
    return len;
}

bool arguments_name_is_secret(bay_str name)
{
    char plain[NAME_BYTES];
    bay_str text = {plain, plain_name(name, plain)};
    for (size_t at = 0; at < text.len; at++) {
        if (begins(str_from(text, at), secret_names, ARRAY_LEN(secret_names), false)) {
            return true;
        }
    }
    return name.len > NAME_BYTES; /* its end was not looked at */
}

static bool is_word(char c)
{
    return char_is(c, CHAR_ALPHA | CHAR_DIGIT) || c == '_' || c == '-';
}

/* `text` begins with the user information of a URI: user:password@ */
static bool has_userinfo(bay_str text)
{
    bay_str authority = str_head(text, str_find(text, '/'));
    size_t sign = str_find(authority, '@');
    return sign < authority.len && str_find(str_head(authority, sign), ':') < sign;
}

bool arguments_text_is_secret(bay_str text)
{
    for (size_t at = 0; at < text.len; at++) {
        bay_str rest = str_from(text, at);
        bool is_begin = at == 0 || !is_word(text.at[at - 1]);
        if ((is_begin && begins(rest, secret_forms, ARRAY_LEN(secret_forms), true)) ||
            (text.at[at] == ':' && str_starts(rest, STR("://")) &&
             has_userinfo(str_from(rest, 3)))) {
            return true;
        }
    }
    return false;
}

/* ---- writing ---------------------------------------------------------------------------------- */

/* What is being shown. */
typedef struct showing {
    arena memory; /* of decoded texts */
    bool redacts;
    bool is_cut; /* something does not fit */
} showing;

static void put_value(showing *self, json_val value, uint32_t depth, json_writer *out);

static bay_str text_of(showing *self, json_val value)
{
    bay_str text = {NULL, 0};
    if (json_str(value, &self->memory, &text) != BAY_OK) {
        self->is_cut = true;
    }
    return text;
}

static void put_members(showing *self, json_val value, uint32_t depth, json_writer *out)
{
    json_iter iter = json_iter_of(value);
    while (!self->is_cut && out->out->err == BAY_OK && json_next(&iter)) {
        if (!json_is(iter.key, JSON_STRING)) {
            put_value(self, iter.value, depth + 1, out);
            continue;
        }
        bay_str name = text_of(self, iter.key);
        json_key(out, name);
        if (self->redacts && arguments_name_is_secret(name)) {
            json_put_word(out, STR("[redacted]"));
        } else {
            put_value(self, iter.value, depth + 1, out);
        }
    }
}

static void put_value(showing *self, json_val value, uint32_t depth, json_writer *out)
{
    switch (json_kind_of(value)) {
    case JSON_OBJECT:
    case JSON_ARRAY: {
        bool is_object = json_is(value, JSON_OBJECT);
        if (depth >= ARGUMENTS_DEPTH) {
            self->is_cut = true;
            json_put_null(out);
            return;
        }
        is_object ? json_open_object(out) : json_open_array(out);
        put_members(self, value, depth, out);
        is_object ? json_close_object(out) : json_close_array(out);
        return;
    }
    case JSON_STRING: {
        bay_str text = text_of(self, value);
        bool is_secret = self->redacts && arguments_text_is_secret(text);
        json_put_str(out, is_secret ? STR("[redacted]") : text);
        return;
    }
    default:
        json_put_raw(out, json_raw(value)); /* a number or a word: without white space in it */
        return;
    }
}

static void write_keys(json_val value, json_writer *out)
{
    arena memory;
    json_iter iter = json_iter_of(value);
    arena_init(&memory, ARGUMENTS_KEYS * (ARGUMENTS_BYTES + 64));
    json_key_lit(out, "argumentKeys");
    json_open_array(out);
    for (size_t i = 0; i < ARGUMENTS_KEYS && json_next(&iter); i++) {
        bay_str name;
        if (json_is(iter.key, JSON_STRING) && json_raw(iter.key).len <= ARGUMENTS_BYTES &&
            json_str(iter.key, &memory, &name) == BAY_OK) {
            json_put_str(out, str_head(name, ARGUMENTS_KEY_BYTES));
        }
    }
    json_close_array(out);
    arena_fini(&memory);
}

static void write_value(json_val value, bool redacts, json_writer *out)
{
    char bytes[ARGUMENTS_BYTES];
    buf text = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    json_writer writer;
    showing self = {.redacts = redacts};
    json_writer_init(&writer, &text);
    arena_init(&self.memory, 4 * ARGUMENTS_BYTES);
    put_value(&self, value, 0, &writer);
    arena_fini(&self.memory);
    if (text.err == BAY_OK && !self.is_cut) {
        json_key_lit(out, "arguments");
        json_put_raw(out, buf_view(&text));
        return;
    }
    write_keys(value, out);
    json_key_lit(out, "argumentBytes");
    json_put_uint(out, json_raw(value).len);
}

static void write_digest(bay_str digest, const seal_ring *ring, json_writer *out)
{
    unsigned char hash[SEAL_DIGEST_BYTES];
    if (digest.len == 0 || seal_digest(ring, 0, SEAL_AUDIT, digest, hash) != BAY_OK) {
        return;
    }
    json_key_lit(out, "argumentsDigest");
    size_t opened = json_open_word(out);
    principal_key_digits((bay_str){(const char *)hash, sizeof(hash)}, out->out);
    json_close_word(out, opened);
}

void arguments_write(json_val value, arguments_form form, bay_str digest, const seal_ring *ring,
                     json_writer *out)
{
    if (form == ARGUMENTS_NONE || json_is(value, JSON_MISSING)) {
        return;
    }
    if (form == ARGUMENTS_DIGEST) {
        write_digest(digest, ring, out);
    } else if (form == ARGUMENTS_KEYS_ALONE) {
        write_keys(value, out);
    } else {
        write_value(value, form == ARGUMENTS_REDACTED, out);
    }
}

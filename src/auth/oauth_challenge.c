#include "auth/oauth_challenge.h"

#include "base/str.h"
#include "wire/chars.h"

typedef struct challenge_reader {
    bay_str rest;
    arena *memory;
    bay_err err; /* BAY_ERR_SYNTAX: the field ends here; BAY_ERR_NOMEM */
} challenge_reader;

static void skip_spaces(challenge_reader *self)
{
    while (self->rest.len > 0 && (self->rest.at[0] == ' ' || self->rest.at[0] == '\t')) {
        self->rest = str_from(self->rest, 1);
    }
}

static void skip_commas(challenge_reader *self)
{
    skip_spaces(self);
    while (self->rest.len > 0 && self->rest.at[0] == ',') {
        self->rest = str_from(self->rest, 1);
        skip_spaces(self);
    }
}

static bay_str take_token(challenge_reader *self)
{
    size_t len = chars_span(self->rest, CHAR_TOKEN);
    bay_str token = str_head(self->rest, len);
    self->rest = str_from(self->rest, len);
    return token;
}

/* A quoted-string, from behind its first quote. */
static bay_str take_quoted(challenge_reader *self)
{
    char *at = arena_alloc(self->memory, self->rest.len + 1);
    size_t len = 0;
    if (at == NULL) {
        self->err = BAY_ERR_NOMEM;
        return (bay_str){NULL, 0};
    }
    for (size_t i = 0; i < self->rest.len; i++) {
        char c = self->rest.at[i];
        if (c == '"') {
            self->rest = str_from(self->rest, i + 1);
            return (bay_str){at, len};
        }
        if (c == '\\' && ++i < self->rest.len) {
            c = self->rest.at[i];
        }
        if (!char_is(c, CHAR_VALUE)) {
            break;
        }
        at[len++] = c;
    }
    self->err = BAY_ERR_SYNTAX; /* never closed */
    return (bay_str){NULL, 0};
}

static void take_param(oauth_challenge *challenge, bay_str name, bay_str value)
{
    const struct {
        bay_str name;
        bay_str *place;
    } known[] = {
        {STR("resource_metadata"), &challenge->resource_metadata},
        {STR("scope"), &challenge->scope},
        {STR("error"), &challenge->error},
        {STR("error_description"), &challenge->description},
        {STR("algs"), &challenge->algorithms},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (str_eq_nocase(name, known[i].name) && known[i].place->len == 0) {
            *known[i].place = value; /* the first one of a name counts */
        }
    }
}

/* The auth-params of a challenge, up to the next scheme or the end; token68 is skipped. */
static void take_params(challenge_reader *self, oauth_challenge *challenge)
{
    for (unsigned count = 0; self->err == BAY_OK; count++) {
        skip_commas(self);
        bay_str before = self->rest;
        bay_str name = take_token(self);
        skip_spaces(self);
        bool has_value = self->rest.len > 0 && self->rest.at[0] == '=';
        if (name.len == 0 || !has_value || count == OAUTH_CHALLENGE_PARAMS) {
            self->rest = before; /* the next scheme, the end, or what no challenge has */
            self->err = count == OAUTH_CHALLENGE_PARAMS ? BAY_ERR_SYNTAX : self->err;
            return;
        }
        self->rest = str_from(self->rest, 1);
        skip_spaces(self);
        bay_str value;
        if (self->rest.len > 0 && self->rest.at[0] == '"') {
            self->rest = str_from(self->rest, 1);
            value = take_quoted(self);
        } else {
            value = take_token(self);
        }
        if (self->err == BAY_OK) {
            take_param(challenge, name, value);
        }
    }
}

/* Before the first parameter: a token68, which is nothing of OAuth's. */
static void skip_token68(challenge_reader *self)
{
    size_t len = 0;
    while (len < self->rest.len &&
           (char_is(self->rest.at[len], CHAR_TOKEN) || self->rest.at[len] == '/')) {
        len++;
    }
    size_t end = len;
    while (end < self->rest.len && self->rest.at[end] == '=') {
        end++;
    }
    bay_str behind = str_from(self->rest, end);
    if (len > 0 && (behind.len == 0 || behind.at[0] == ',')) {
        self->rest = behind;
    }
}

static void choose(oauth_challenge *best, const oauth_challenge *found)
{
    bool is_better =
        !best->is_present || (best->resource_metadata.len == 0 && found->resource_metadata.len > 0);
    if (is_better) {
        *best = *found;
        best->is_present = true;
    }
}

static bay_err read_field(bay_str value, arena *memory, unsigned *left, oauth_challenge *best)
{
    challenge_reader reader = {.rest = value, .memory = memory};
    while (reader.err == BAY_OK && *left > 0) {
        skip_commas(&reader);
        bay_str scheme = take_token(&reader);
        if (scheme.len == 0) {
            break;
        }
        --*left;
        skip_spaces(&reader);
        oauth_challenge found = {.is_dpop = str_eq_nocase(scheme, STR("DPoP"))};
        skip_token68(&reader);
        take_params(&reader, &found);
        bool is_ours = found.is_dpop || str_eq_nocase(scheme, STR("Bearer"));
        if (is_ours && reader.err == BAY_OK) {
            choose(best, &found);
        }
    }
    return reader.err == BAY_ERR_NOMEM ? BAY_ERR_NOMEM : BAY_OK;
}

bay_err oauth_challenge_read(const http_field *fields, size_t count, arena *memory,
                             oauth_challenge *out)
{
    unsigned left = OAUTH_CHALLENGES;
    size_t bytes = 0;
    *out = (oauth_challenge){0};
    for (size_t i = 0; i < count && left > 0; i++) {
        if (!str_eq_nocase(fields[i].name, STR("www-authenticate"))) {
            continue;
        }
        bytes += fields[i].value.len;
        if (bytes > OAUTH_CHALLENGE_BYTES) {
            break;
        }
        bay_err err = read_field(fields[i].value, memory, &left, out);
        if (err != BAY_OK) {
            return err;
        }
    }
    return BAY_OK;
}

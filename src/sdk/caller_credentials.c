/* Which header fields go with the requests of a caller, and where they may go: to the origin that
 * the card came from, to origins that the program named, and to whatever a card names that the
 * program gave itself. */
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/caller_parts.h"
#include "wire/uri.h"

/* ---- where ----------------------------------------------------------------------------------- */

/* A gRPC interface is "host:port": TLS exactly when the port is 443. */
static bay_err parse_place(bay_str text, buf *scratch, uri *out)
{
    if (memmem(text.at, text.len, "://", 3) == NULL) {
        bool is_tls = str_ends(text, STR(":443")) || memchr(text.at, ':', text.len) == NULL;
        buf_str(scratch, is_tls ? STR("https://") : STR("http://"));
    }
    buf_str(scratch, text);
    if (scratch->err != BAY_OK) {
        return scratch->err;
    }
    return uri_parse(out, buf_view(scratch));
}

static bool is_same_place(bay_str a, bay_str b)
{
    uri first;
    uri second;
    buf texts[2];
    buf_init(&texts[0], CALLER_URL_BYTES);
    buf_init(&texts[1], CALLER_URL_BYTES);
    bool is_same = parse_place(a, &texts[0], &first) == BAY_OK &&
                   parse_place(b, &texts[1], &second) == BAY_OK && uri_same_origin(&first, &second);
    buf_fini(&texts[0]);
    buf_fini(&texts[1]);
    return is_same;
}

bool sdk_caller_trusts(const bay_caller *self, bay_str url)
{
    const asker_settings *named = &self->options.origins;
    if (url.len == 0) {
        return false;
    }
    if (self->agent[0] == '{' || is_same_place(url, buf_view(&self->origin))) {
        return true;
    }
    for (size_t i = 0; i < named->count; i++) {
        bay_str origin = str_of(named->at[i].name);
        if (str_eq(origin, STR("*")) || (origin.len > 0 && is_same_place(url, origin))) {
            return true;
        }
    }
    return false;
}

/* ---- what ------------------------------------------------------------------------------------ */

/* Fields being made: places in a buffer that still moves. */
typedef struct made_fields {
    buf *text;
    size_t at[CALLER_FIELDS][3]; /* begin of name, of value, end */
    size_t count;
} made_fields;

static void put_field(made_fields *self, bay_str name, bay_str before, bay_str value)
{
    if (self->count >= CALLER_FIELDS) {
        self->text->err = self->text->err == BAY_OK ? BAY_ERR_LIMIT : self->text->err;
        return;
    }
    size_t *at = self->at[self->count++];
    at[0] = self->text->len;
    buf_str(self->text, name);
    at[1] = self->text->len;
    buf_str(self->text, before);
    buf_str(self->text, value);
    at[2] = self->text->len;
}

static bay_err put_api_key(made_fields *self, json_val scheme, const char *name, bay_str key,
                           bay_diag *diag)
{
    bay_str field = {NULL, 0};
    json_val where = json_get(scheme, STR("location"));
    if (!json_str_plain(json_get(scheme, STR("name")), &field) || field.len == 0 ||
        field.len > 200) {
        return diag_set(diag, BAY_ERR_UNSUPPORTED, "the security scheme \"%.60s\" names no field",
                        name);
    }
    if (json_str_eq(where, STR("header"))) {
        put_field(self, field, STR(""), key);
    } else if (json_str_eq(where, STR("cookie"))) {
        size_t before = self->count;
        put_field(self, STR("Cookie"), field, STR("="));
        if (self->count > before) {
            buf_str(self->text, key);
            self->at[before][2] = self->text->len;
        }
    } else {
        return diag_set(diag, BAY_ERR_UNSUPPORTED,
                        "the security scheme \"%.60s\" wants its key in the query, where it would "
                        "be logged: it is not sent",
                        name);
    }
    return BAY_OK;
}

static bay_err put_credential(made_fields *self, json_val schemes, const asker_setting *one,
                              bay_diag *diag)
{
    json_val scheme = json_get(schemes, str_of(one->name));
    bay_str value = str_of(one->value);
    json_val api_key = json_get(scheme, STR("apiKeySecurityScheme"));
    json_val http = json_get(scheme, STR("httpAuthSecurityScheme"));
    if (json_is(scheme, JSON_MISSING)) {
        return diag_set(diag, BAY_ERR_INVALID, "the agent's card has no security scheme \"%.60s\"",
                        one->name);
    }
    if (!json_is(api_key, JSON_MISSING)) {
        return put_api_key(self, api_key, one->name, value, diag);
    }
    bay_str word = {NULL, 0};
    if (json_is(http, JSON_MISSING) || !json_str_plain(json_get(http, STR("scheme")), &word) ||
        str_eq_nocase(word, STR("bearer"))) {
        put_field(self, STR("Authorization"), STR("Bearer "), value);
        return BAY_OK;
    }
    size_t before = self->count;
    put_field(self, STR("Authorization"), word, STR(" "));
    if (self->count > before) {
        buf_str(self->text, value);
        self->at[before][2] = self->text->len;
    }
    return BAY_OK;
}

static void put_extensions(made_fields *self, const asker_settings *extensions)
{
    size_t before = self->count;
    if (extensions->count == 0) {
        return;
    }
    put_field(self, STR("A2A-Extensions"), STR(""), str_of(extensions->at[0].name));
    for (size_t i = 1; self->count > before && i < extensions->count; i++) {
        buf_lit(self->text, ", ");
        buf_str(self->text, str_of(extensions->at[i].name));
        self->at[before][2] = self->text->len;
    }
}

static size_t fields_room(const bay_caller_options *options)
{
    const asker_settings *all[] = {&options->base.headers, &options->credentials,
                                   &options->extensions};
    size_t room = 0;
    for (size_t k = 0; k < ARRAY_LEN(all); k++) {
        for (size_t i = 0; i < all[k]->count; i++) {
            room += strlen(all[k]->at[i].name) + 1024; /* names of fields that a card gives */
            room += all[k]->at[i].value != NULL ? strlen(all[k]->at[i].value) : 0;
        }
    }
    return room;
}

bay_err sdk_caller_fields(const bay_caller *self, buf *memory, http_field *out, size_t max,
                          size_t *out_count, bay_diag *diag)
{
    const bay_caller_options *options = &self->options;
    json_val schemes = json_get(self->card, STR("securitySchemes"));
    made_fields made = {.text = memory};
    bay_err err = BAY_OK;
    (void)buf_reserve(memory, fields_room(options)); /* it must not move: copies are not wiped */
    if (!self->has_withheld) {
        for (size_t i = 0; i < options->base.headers.count; i++) {
            put_field(&made, str_of(options->base.headers.at[i].name), STR(""),
                      str_of(options->base.headers.at[i].value));
        }
        for (size_t i = 0; err == BAY_OK && i < options->credentials.count; i++) {
            err = put_credential(&made, schemes, &options->credentials.at[i], diag);
        }
    }
    put_extensions(&made, &options->extensions);
    if (err != BAY_OK) {
        return err;
    }
    if (memory->err != BAY_OK || made.count > max) {
        return diag_set(diag, memory->err != BAY_OK ? memory->err : BAY_ERR_LIMIT,
                        "the header fields: %s", bay_err_text(memory->err));
    }
    for (size_t i = 0; i < made.count; i++) {
        const size_t *at = made.at[i];
        out[i] =
            (http_field){{memory->at + at[0], at[1] - at[0]}, {memory->at + at[1], at[2] - at[1]}};
    }
    *out_count = made.count;
    return BAY_OK;
}

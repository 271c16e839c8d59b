/* The schemes and requirements of a card, read once into one arena, then immutable. */
#include "a2a/security_internal.h"

#include "base/check.h"
#include "base/mem.h"
#include "wire/chars.h"

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct reader {
    a2a_security *self;
    a2a_fault *fault;
} reader;

static bay_err invalid(const reader *on, const char *what, bay_str name)
{
    (void)a2a_fault_set(on->fault, A2A_E_INVALID_PARAMS, "the card's security: %s: %.*s", what,
                        (int)(name.len < 80 ? name.len : 80), name.at);
    return BAY_ERR_INVALID;
}

static bay_err too_many(const reader *on, const char *what)
{
    (void)a2a_fault_set(on->fault, A2A_E_INVALID_PARAMS, "the card's security: too many %s", what);
    return BAY_ERR_LIMIT;
}

/* A copy that outlives the card. */
static bay_err security_keep(const reader *on, json_val value, bay_str *out)
{
    bay_str text = {"", 0};
    bay_err err = json_str(value, &on->self->memory, &text);
    if (err == BAY_OK) {
        err = arena_dup(&on->self->memory, text, out);
    }
    if (err == BAY_ERR_UTF8) {
        return invalid(on, "a text that is none", STR(""));
    }
    return err == BAY_ERR_LIMIT ? too_many(on, "bytes") : err;
}

static bay_err lower_copy(const reader *on, bay_str *text)
{
    bay_err err = arena_dup(&on->self->memory, *text, text);
    for (size_t i = 0; err == BAY_OK && i < text->len; i++) {
        ((char *)(uintptr_t)text->at)[i] = char_lower(text->at[i]);
    }
    return err == BAY_ERR_LIMIT ? too_many(on, "bytes") : err;
}

static bay_err read_api_key(const reader *on, json_val value, scheme *out)
{
    json_val where = json_get(value, STR("location"));
    bay_err err = security_keep(on, json_get(value, STR("name")), &out->field);
    if (err != BAY_OK) {
        return err == BAY_ERR_TYPE ? invalid(on, "an API key without a name", out->name) : err;
    }
    if (json_str_eq(where, STR("header"))) {
        out->where = IN_HEADER;
        err = lower_copy(on, &out->field);
    } else if (json_str_eq(where, STR("cookie"))) {
        out->where = IN_COOKIE;
    } else if (json_str_eq(where, STR("query"))) {
        out->where = IN_QUERY;
    } else {
        return invalid(on, "an API key neither in header, query nor cookie", out->name);
    }
    if (out->field.len == 0 || !chars_are(out->field, CHAR_TOKEN)) {
        return invalid(on, "an API key whose name cannot be one", out->name);
    }
    return err;
}

static bay_err read_http(const reader *on, json_val value, scheme *out)
{
    bay_err err = security_keep(on, json_get(value, STR("scheme")), &out->field);
    if (err == BAY_ERR_TYPE ||
        (err == BAY_OK && (out->field.len == 0 || !chars_are(out->field, CHAR_TOKEN)))) {
        return invalid(on, "HTTP authentication without a scheme", out->name);
    }
    return err;
}

static bay_err read_scheme(const reader *on, json_val key, json_val value, scheme *out)
{
    static const bay_str members[] = {
        STR_INIT("apiKeySecurityScheme"), STR_INIT("httpAuthSecurityScheme"),
        STR_INIT("oauth2SecurityScheme"), STR_INIT("openIdConnectSecurityScheme"),
        STR_INIT("mtlsSecurityScheme"),
    };
    *out = (scheme){.kind = A2A_SCHEME_API_KEY};
    bay_err err = security_keep(on, key, &out->name);
    if (err != BAY_OK) {
        return err;
    }
    json_val found = JSON_NONE;
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        json_val member = json_get(value, members[i]);
        if (json_is(member, JSON_OBJECT)) {
            out->kind = (a2a_scheme_kind)i;
            found = member;
            count++;
        }
    }
    if (count != 1) {
        return invalid(on, "a scheme of no kind that is known, or of two", out->name);
    }
    if (out->kind == A2A_SCHEME_API_KEY) {
        return read_api_key(on, found, out);
    }
    if (out->kind == A2A_SCHEME_HTTP) {
        return read_http(on, found, out);
    }
    out->field = STR("Bearer");
    return BAY_OK;
}

static bay_err read_schemes(const reader *on, json_val card)
{
    a2a_security *self = on->self;
    json_val schemes = json_get(card, STR("securitySchemes"));
    size_t count = json_is(schemes, JSON_OBJECT) ? json_count(schemes) : 0;
    if (count > A2A_SCHEMES) {
        return too_many(on, "schemes");
    }
    self->schemes = arena_array(&self->memory, count + 1, sizeof(*self->schemes));
    if (self->schemes == NULL) {
        return BAY_ERR_NOMEM;
    }
    bay_err err = BAY_OK;
    json_iter it = json_iter_of(count > 0 ? schemes : JSON_NONE);
    while (err == BAY_OK && json_next(&it)) {
        err = read_scheme(on, it.key, it.value, &self->schemes[self->scheme_count]);
        self->scheme_count += err == BAY_OK ? 1 : 0;
    }
    return err;
}

static bay_err read_scopes(const reader *on, json_val value, needed *out)
{
    json_val list = json_get(value, STR("list"));
    size_t count = json_is(list, JSON_ARRAY) ? json_count(list) : 0;
    if (count > A2A_REQUIREMENT_SCOPES) {
        return too_many(on, "scopes");
    }
    bay_str *scopes = arena_array(&on->self->memory, count + 1, sizeof(*scopes));
    if (scopes == NULL) {
        return BAY_ERR_NOMEM;
    }
    json_iter it = json_iter_of(count > 0 ? list : JSON_NONE);
    for (size_t i = 0; json_next(&it); i++) {
        bay_err err = security_keep(on, it.value, &scopes[i]);
        if (err == BAY_OK && (scopes[i].len == 0 || memchr(scopes[i].at, '"', scopes[i].len) ||
                              memchr(scopes[i].at, '\\', scopes[i].len))) {
            err = BAY_ERR_TYPE;
        }
        for (size_t c = 0; err == BAY_OK && c < scopes[i].len; c++) {
            err = scopes[i].at[c] > ' ' && scopes[i].at[c] < 0x7f ? BAY_OK : BAY_ERR_TYPE;
        }
        if (err != BAY_OK) {
            return err == BAY_ERR_TYPE ? invalid(on, "a scope that cannot be one", STR("")) : err;
        }
    }
    out->scopes = scopes;
    out->scope_count = count;
    return BAY_OK;
}

static bay_err read_alternative(const reader *on, json_val value, alternative *out)
{
    const a2a_security *self = on->self;
    json_val schemes = json_get(value, STR("schemes"));
    if (!json_is(value, JSON_OBJECT) ||
        !(json_is(schemes, JSON_OBJECT) || json_is(schemes, JSON_MISSING)) ||
        (json_is(schemes, JSON_MISSING) && json_count(value) > 0)) {
        /* The older form would otherwise mean that nothing is required. */
        return invalid(on, "a requirement that is no object with \"schemes\"", STR(""));
    }
    size_t count = json_is(schemes, JSON_OBJECT) ? json_count(schemes) : 0;
    if (count > A2A_REQUIREMENT_SCHEMES) {
        return too_many(on, "schemes in one requirement");
    }
    needed *all_of = arena_array(&on->self->memory, count + 1, sizeof(*all_of));
    if (all_of == NULL) {
        return BAY_ERR_NOMEM;
    }
    json_iter it = json_iter_of(count > 0 ? schemes : JSON_NONE);
    for (size_t i = 0; json_next(&it); i++) {
        size_t at = 0;
        while (at < self->scheme_count && !json_str_eq(it.key, self->schemes[at].name)) {
            at++;
        }
        if (at == self->scheme_count) {
            return invalid(on, "a requirement of a scheme that the card does not have",
                           json_raw(it.key));
        }
        all_of[i].scheme = at;
        bay_err err = read_scopes(on, it.value, &all_of[i]);
        if (err != BAY_OK) {
            return err;
        }
    }
    *out = (alternative){.all_of = all_of, .count = count};
    return BAY_OK;
}

static bay_err read_requirement(const reader *on, json_val list, requirement *out)
{
    if (json_is(list, JSON_MISSING) || json_is(list, JSON_NULL)) {
        *out = (requirement){.count = 0};
        return BAY_OK;
    }
    size_t count = json_count(list);
    if (!json_is(list, JSON_ARRAY)) {
        return invalid(on, "securityRequirements is no list", STR(""));
    }
    if (count > A2A_REQUIREMENTS) {
        return too_many(on, "requirements");
    }
    alternative *any_of = arena_array(&on->self->memory, count + 1, sizeof(*any_of));
    if (any_of == NULL) {
        return BAY_ERR_NOMEM;
    }
    json_iter it = json_iter_of(list);
    for (size_t i = 0; json_next(&it); i++) {
        bay_err err = read_alternative(on, it.value, &any_of[i]);
        if (err != BAY_OK) {
            return err;
        }
    }
    *out = (requirement){.any_of = any_of, .count = count};
    return BAY_OK;
}

static bay_err read_skills(const reader *on, json_val card)
{
    a2a_security *self = on->self;
    json_val skills = json_get(card, STR("skills"));
    size_t count = json_is(skills, JSON_ARRAY) ? json_count(skills) : 0;
    if (count > A2A_SECURED_SKILLS) {
        return too_many(on, "skills");
    }
    self->skills = arena_array(&self->memory, count + 1, sizeof(*self->skills));
    if (self->skills == NULL) {
        return BAY_ERR_NOMEM;
    }
    json_iter it = json_iter_of(count > 0 ? skills : JSON_NONE);
    while (json_next(&it)) {
        secured_skill *skill = &self->skills[self->skill_count];
        bay_err err =
            read_requirement(on, json_get(it.value, STR("securityRequirements")), &skill->needs);
        if (err == BAY_OK && skill->needs.count > 0) {
            err = security_keep(on, json_get(it.value, STR("id")), &skill->id);
            self->skill_count++;
        }
        if (err != BAY_OK) {
            return err == BAY_ERR_TYPE ? invalid(on, "a skill without an id", STR("")) : err;
        }
    }
    return BAY_OK;
}

bay_err a2a_security_new(json_val card, a2a_security **out, a2a_fault *fault)
{
    a2a_security *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    reader on = {self, fault};
    arena_init(&self->memory, A2A_SECURITY_BYTES);
    bay_err err = json_is(card, JSON_OBJECT) ? json_check_duplicates(card, NULL) : BAY_ERR_TYPE;
    if (err != BAY_OK && err != BAY_ERR_NOMEM) {
        err = invalid(&on, "the card is no object, or has a member twice", STR(""));
    }
    if (err == BAY_OK) {
        err = read_schemes(&on, card);
    }
    if (err == BAY_OK) {
        err = read_requirement(&on, json_get(card, STR("securityRequirements")), &self->card);
    }
    if (err == BAY_OK) {
        err = read_skills(&on, card);
    }
    if (err == BAY_ERR_NOMEM && self->memory.is_full) {
        err = too_many(&on, "bytes");
    }
    if (err != BAY_OK) {
        a2a_security_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

void a2a_security_free(a2a_security *self)
{
    if (self != NULL) {
        arena_fini(&self->memory);
        mem_free(self);
    }
}

static bool is_optional(const requirement *self)
{
    for (size_t i = 0; i < self->count; i++) {
        if (self->any_of[i].count == 0) {
            return true;
        }
    }
    return self->count == 0;
}

bool a2a_security_is_open(const a2a_security *self)
{
    return is_optional(&self->card);
}

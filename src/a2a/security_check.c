/* Checks a request against a card's requirements. A scheme is verified when an alternative first
 * needs it, and the result is kept for the other alternatives of the same check. */
#include "a2a/security_internal.h"
#include "base/check.h"
#include "wire/base64.h"
#include "wire/header.h"
#include "wire/uri.h"

enum { CHALLENGE_BYTES = 4096, PRINCIPAL_BYTES = 8192 };

typedef enum verdict { UNSEEN, ABSENT, REFUSED, GOOD } verdict;

typedef struct seen {
    verdict is;
    principal_parts who;
} seen;

typedef struct check {
    const a2a_security *self;
    const a2a_presented *presented;
    a2a_verify verify;
    void *verify_user;
    arena *memory;
    seen seen[A2A_SCHEMES];
    bool lacks_scopes; /* an alternative failed only because of scopes */
    bay_str lacking;   /* a missing scope */
} check;

static const bay_str nothing = {NULL, 0};

/* --- credentials ------------------------------------------------------------------------------ */

/* The value of the single `name=value` in a list; with two of this name there is none:
 * `*out_twice`. */
static bay_str find_pair(bay_str list, char separator, bay_str name, bool *out_twice)
{
    bay_str found = nothing;
    while (list.len > 0) {
        size_t end = str_find(list, separator);
        bay_str pair = str_trim(str_head(list, end));
        size_t equals = str_find(pair, '=');
        if (equals < pair.len && str_eq(str_head(pair, equals), name)) {
            *out_twice = *out_twice || found.at != NULL;
            found = str_from(pair, equals + 1);
        }
        list = end < list.len ? str_from(list, end + 1) : (bay_str){"", 0};
    }
    return *out_twice ? nothing : found;
}

static bool is_clean(bay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.at[i] < 0x20 || text.at[i] == 0x7f) {
            return false;
        }
    }
    return text.len > 0 && text.len <= A2A_CREDENTIAL_BYTES;
}

/* Decoded bytes, in the arena; BAY_ERR_DENIED: they cannot be a credential. */
static bay_err decode(const check *on, bay_str text, bool is_base64, bay_str *out)
{
    buf bytes;
    buf_init_secret(&bytes, A2A_CREDENTIAL_BYTES);
    bay_err err =
        is_base64 ? base64_decode(&bytes, text, BASE64_STANDARD_LOOSE) : uri_decode(&bytes, text);
    if (err == BAY_OK) {
        err = is_clean(buf_view(&bytes)) ? arena_dup(on->memory, buf_view(&bytes), out)
                                         : BAY_ERR_DENIED;
    }
    buf_fini(&bytes);
    return err == BAY_ERR_SYNTAX || err == BAY_ERR_LIMIT ? BAY_ERR_DENIED : err;
}

/* BAY_ERR_NOT_FOUND: no credential; BAY_ERR_DENIED: an invalid one. */
static bay_err api_key_of(const check *on, const scheme *by, bay_str *out)
{
    const a2a_presented *from = on->presented;
    bool is_twice = false;
    bay_str found = nothing;
    if (by->where == IN_HEADER) {
        found = from->field(from->context, by->field);
    } else if (by->where == IN_COOKIE) {
        found = find_pair(from->field(from->context, STR("cookie")), ';', by->field, &is_twice);
    } else {
        found = find_pair(from->query, '&', by->field, &is_twice);
    }
    if (is_twice) {
        return BAY_ERR_DENIED;
    }
    if (found.at == NULL || found.len == 0) {
        return BAY_ERR_NOT_FOUND;
    }
    if (by->where == IN_QUERY) {
        return decode(on, found, false, out);
    }
    *out = found;
    return is_clean(found) ? BAY_OK : BAY_ERR_DENIED;
}

/* RFC 9110 section 11.4. */
static bay_err authorization_of(const check *on, const scheme *by, bay_str *out)
{
    const a2a_presented *from = on->presented;
    bay_str field = from->field(from->context, STR("authorization"));
    size_t space = field.at != NULL ? str_find(field, ' ') : 0;
    if (field.at == NULL || !str_eq_nocase(str_head(field, space), by->field)) {
        return BAY_ERR_NOT_FOUND;
    }
    bay_str rest = str_trim(str_from(field, space));
    if (!is_clean(rest)) {
        return BAY_ERR_DENIED;
    }
    if (str_eq_nocase(by->field, STR("Basic"))) {
        bay_err err = decode(on, rest, true, out);
        return err == BAY_OK && str_find(*out, ':') == out->len ? BAY_ERR_DENIED : err;
    }
    *out = rest;
    return !str_eq_nocase(by->field, STR("Bearer")) || header_is_token68(rest) ? BAY_OK
                                                                               : BAY_ERR_DENIED;
}

static bay_err credential_of(const check *on, const scheme *by, bay_str *out)
{
    switch (by->kind) {
    case A2A_SCHEME_API_KEY:
        return api_key_of(on, by, out);
    case A2A_SCHEME_MTLS:
        *out = on->presented->certificate;
        return out->len > 0 ? BAY_OK : BAY_ERR_NOT_FOUND;
    default:
        return authorization_of(on, by, out);
    }
}

/* --- alternatives ----------------------------------------------------------------------------- */

static bay_err look_at(check *on, size_t at)
{
    const scheme *by = &on->self->schemes[at];
    seen *result = &on->seen[at];
    if (result->is != UNSEEN) {
        return BAY_OK;
    }
    bay_str credential = nothing;
    principal_parts who = {.proof = PRINCIPAL_PROGRAM};
    bay_err err = credential_of(on, by, &credential);
    if (err == BAY_OK) {
        err = on->verify == NULL
                  ? BAY_ERR_UNSUPPORTED
                  : on->verify(on->verify_user, by->kind, by->name, credential, on->memory, &who);
        if (err == BAY_OK && who.subject.len == 0) {
            err = BAY_ERR_DENIED;
        }
    }
    if (err == BAY_ERR_NOMEM) {
        return err;
    }
    *result = (seen){.is = err == BAY_OK              ? GOOD
                           : err == BAY_ERR_NOT_FOUND ? ABSENT
                                                      : REFUSED,
                     .who = who};
    return BAY_OK;
}

/* *out_holds; every scheme is verified, so that missing scopes are reported only to known callers.
 */
static bay_err try_alternative(check *on, const alternative *one, bool *out_holds)
{
    bool is_known = true;
    bay_str lacking = nothing;
    for (size_t i = 0; i < one->count; i++) {
        const needed *item = &one->all_of[i];
        bay_err err = look_at(on, item->scheme);
        if (err != BAY_OK) {
            return err;
        }
        const seen *result = &on->seen[item->scheme];
        is_known = is_known && result->is == GOOD;
        for (size_t j = 0; result->is == GOOD && j < item->scope_count; j++) {
            if (!scopes_have(result->who.scopes, item->scopes[j])) {
                lacking = item->scopes[j];
            }
        }
    }
    *out_holds = is_known && lacking.at == NULL;
    if (is_known && lacking.at != NULL) {
        on->lacks_scopes = true;
        on->lacking = lacking;
    }
    return BAY_OK;
}

/* The satisfied alternative; NULL: none. An alternative with credentials precedes an empty one: a
 * caller that identifies itself is not anonymous. */
static bay_err choose(check *on, const requirement *needs, const alternative **out)
{
    const alternative *empty = NULL;
    *out = NULL;
    for (size_t i = 0; i < needs->count; i++) {
        const alternative *one = &needs->any_of[i];
        bool holds = false;
        if (one->count == 0) {
            empty = one;
            continue;
        }
        bay_err err = try_alternative(on, one, &holds);
        if (err != BAY_OK) {
            return err;
        }
        if (holds) {
            *out = one;
            return BAY_OK;
        }
    }
    /* An invalid credential does not make its caller anonymous, because the caller expects to be
     * identified. */
    for (size_t i = 0; i < on->self->scheme_count; i++) {
        empty = on->seen[i].is == REFUSED ? NULL : empty;
    }
    *out = empty;
    return BAY_OK;
}

/* --- answers ---------------------------------------------------------------------------------- */

/* True: every scheme of the alternative has the same subject of the same issuer. */
static bool is_one_subject(const check *on, const alternative *one, const principal_parts *first)
{
    for (size_t i = 1; i < one->count; i++) {
        const principal_parts *who = &on->seen[one->all_of[i].scheme].who;
        if (!str_eq(who->issuer, first->issuer) || !str_eq(who->subject, first->subject)) {
            return false;
        }
    }
    return true;
}

static bay_err join_subjects(const check *on, const alternative *one, bay_str *out)
{
    buf text;
    buf_init(&text, PRINCIPAL_BYTES);
    for (size_t i = 0; i < one->count; i++) {
        size_t at = one->all_of[i].scheme;
        if (i > 0) {
            buf_char(&text, '&');
        }
        uri_encode(&text, on->self->schemes[at].name);
        buf_char(&text, '=');
        uri_encode(&text, on->seen[at].who.subject);
    }
    bay_err err = text.err != BAY_OK ? text.err : arena_dup(on->memory, buf_view(&text), out);
    buf_fini(&text);
    return err;
}

static bay_err join_scopes(const check *on, const alternative *one, principal_parts *to)
{
    buf text;
    buf_init(&text, PRINCIPAL_SCOPES_BYTES);
    for (size_t i = 0; i < one->count; i++) {
        const principal_parts *who = &on->seen[one->all_of[i].scheme].who;
        if (who->scopes.len > 0) {
            buf_str(&text, text.len > 0 ? STR(" ") : STR(""));
            buf_str(&text, who->scopes);
        }
    }
    bay_err err =
        text.err != BAY_OK ? text.err : arena_dup(on->memory, buf_view(&text), &to->scopes);
    buf_fini(&text);
    return err;
}

/* The principal of all credentials of an alternative. Different subjects together make a principal
 * of its own, which none of them alone may equal. It is valid until the first of them expires. */
static bay_err name_principal(const check *on, const alternative *one, const auth_principal **out)
{
    principal_parts who = on->seen[one->all_of[0].scheme].who;
    bay_err err = BAY_OK;
    if (!is_one_subject(on, one, &who)) {
        err = join_subjects(on, one, &who.subject);
        who.issuer = who.client = (bay_str){"", 0};
        who.claims = JSON_NONE;
    }
    if (err == BAY_OK && one->count > 1) {
        err = join_scopes(on, one, &who);
    }
    for (size_t i = 1; i < one->count; i++) {
        uint64_t until = on->seen[one->all_of[i].scheme].who.expires_at_ms;
        who.expires_at_ms = who.expires_at_ms == 0 || (until != 0 && until < who.expires_at_ms)
                                ? until
                                : who.expires_at_ms;
    }
    return err == BAY_OK ? principal_new(&who, out) : err;
}

static void put_challenge(const check *on, size_t at, buf *out)
{
    const scheme *by = &on->self->schemes[at];
    bool is_bearer = by->kind == A2A_SCHEME_OAUTH2 || by->kind == A2A_SCHEME_OPENID ||
                     (by->kind == A2A_SCHEME_HTTP && str_eq_nocase(by->field, STR("Bearer")));
    if (out->len > 0) {
        buf_lit(out, ", ");
    }
    if (by->kind == A2A_SCHEME_API_KEY) {
        static const char *const places[] = {"header", "query", "cookie"};
        buf_printf(out, "ApiKey realm=\"a2a\", in=\"%s\", name=\"%.*s\"", places[by->where],
                   BAY_STR(by->field));
    } else if (by->kind == A2A_SCHEME_MTLS) {
        buf_lit(out, "ClientCertificate realm=\"a2a\"");
    } else {
        buf_printf(out, "%.*s realm=\"a2a\"", BAY_STR(by->field));
    }
    if (is_bearer && on->lacks_scopes && on->seen[at].is == GOOD) {
        buf_printf(out, ", error=\"insufficient_scope\", scope=\"%.*s\"", BAY_STR(on->lacking));
    } else if (is_bearer && on->seen[at].is == REFUSED) {
        buf_lit(out, ", error=\"invalid_token\""); /* RFC 6750 section 3.1 */
    }
}

static bool is_said_already(const check *on, const bool *said, size_t at)
{
    const scheme *by = &on->self->schemes[at];
    for (size_t i = 0; i < on->self->scheme_count; i++) {
        const scheme *other = &on->self->schemes[i];
        bool is_same_kind =
            (other->kind == A2A_SCHEME_API_KEY) == (by->kind == A2A_SCHEME_API_KEY) &&
            (other->kind == A2A_SCHEME_MTLS) == (by->kind == A2A_SCHEME_MTLS);
        if (said[i] && is_same_kind && other->where == by->where &&
            str_eq_nocase(other->field, by->field)) {
            return true;
        }
    }
    return false;
}

/* Every scheme, once; what does not fit is omitted. */
static bay_err write_challenge(const check *on, const requirement *needs, bay_str *out)
{
    bool said[A2A_SCHEMES] = {false};
    buf text;
    buf_init(&text, CHALLENGE_BYTES);
    for (size_t i = 0; i < needs->count; i++) {
        for (size_t j = 0; j < needs->any_of[i].count; j++) {
            size_t at = needs->any_of[i].all_of[j].scheme;
            size_t before = text.len;
            if (said[at] || is_said_already(on, said, at)) {
                continue;
            }
            put_challenge(on, at, &text);
            said[at] = true;
            if (text.err == BAY_ERR_LIMIT) {
                text.len = before;
                text.err = BAY_OK;
            }
        }
    }
    bay_err err = text.err != BAY_OK ? text.err : arena_dup(on->memory, buf_view(&text), out);
    buf_fini(&text);
    return err;
}

static bay_err deny(const check *on, const requirement *needs, bay_str *out_challenge,
                    a2a_fault *fault)
{
    bay_err err = write_challenge(on, needs, out_challenge);
    if (err == BAY_ERR_NOMEM) {
        return err;
    }
    if (on->lacks_scopes) {
        (void)a2a_fault_set(fault, A2A_E_FORBIDDEN, "these credentials lack the scope %.*s",
                            (int)(on->lacking.len < 100 ? on->lacking.len : 100), on->lacking.at);
    } else {
        (void)a2a_fault_set(fault, A2A_E_UNAUTHENTICATED,
                            "credentials are missing or not valid; the agent's card says which it "
                            "wants");
    }
    return BAY_ERR_DENIED;
}

static const requirement *skill_needs(const a2a_security *self, bay_str skill)
{
    for (size_t i = 0; skill.len > 0 && i < self->skill_count; i++) {
        if (str_eq(self->skills[i].id, skill)) {
            return &self->skills[i].needs;
        }
    }
    return NULL;
}

bay_err a2a_security_check(const a2a_security *self, const a2a_presented *presented, bay_str skill,
                           a2a_verify verify, void *verify_user, arena *memory,
                           const auth_principal **out_principal, bay_str *out_challenge,
                           a2a_fault *fault)
{
    const requirement *lists[] = {&self->card, skill_needs(self, skill)};
    if (lists[0]->count == 0 && (lists[1] == NULL || lists[1]->count == 0)) {
        *out_principal = NULL;
        return BAY_OK;
    }
    check on = {.self = self,
                .presented = presented,
                .verify = verify,
                .verify_user = verify_user,
                .memory = memory};
    const alternative *named = NULL;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        const alternative *held = NULL;
        if (lists[i] == NULL || lists[i]->count == 0) {
            continue;
        }
        on.lacks_scopes = false;
        bay_err err = choose(&on, lists[i], &held);
        if (err != BAY_OK) {
            return err;
        }
        if (held == NULL) {
            return deny(&on, lists[i], out_challenge, fault);
        }
        named = named != NULL || held->count == 0 ? named : held;
    }
    const auth_principal *principal = NULL;
    bay_err err = named != NULL ? name_principal(&on, named, &principal) : BAY_OK;
    if (err != BAY_OK) {
        return err == BAY_ERR_NOMEM ? err : deny(&on, &self->card, out_challenge, fault);
    }
    *out_principal = principal;
    return BAY_OK;
}

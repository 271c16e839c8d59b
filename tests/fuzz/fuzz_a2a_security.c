/* Cards' security and requests against it. The input is a card, a NUL, and a request: lines of
 * "name: value", the query as its first line. Nothing crashes; nobody gets in through a card that
 * requires something without a credential that was verified; who is refused is told how to get in.
 */
#include <stdint.h>
#include <string.h>

#include "a2a/security.h"
#include "base/check.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct visit {
    bay_str lines;
    int verified;
} visit;

static bay_str field(void *context, bay_str name)
{
    const visit *self = context;
    bay_str rest = self->lines;
    while (rest.len > 0) {
        size_t end = str_find(rest, '\n');
        bay_str line = str_head(rest, end);
        size_t colon = str_find(line, ':');
        if (colon < line.len && str_eq_nocase(str_head(line, colon), name)) {
            return str_trim(str_from(line, colon + 1));
        }
        rest = end < rest.len ? str_from(rest, end + 1) : (bay_str){"", 0};
    }
    return (bay_str){NULL, 0};
}

static bay_err verify(void *user, a2a_scheme_kind kind, bay_str name, bay_str credential,
                      arena *memory, principal_parts *out)
{
    visit *self = user;
    (void)kind;
    (void)memory;
    CHECK(name.at != NULL && credential.len > 0 && credential.len <= A2A_CREDENTIAL_BYTES);
    CHECK(memchr(credential.at, '\n', credential.len) == NULL);
    if (credential.at[0] != 'g') {
        return BAY_ERR_DENIED;
    }
    self->verified++;
    out->subject = credential;
    out->scopes = STR("a b");
    return BAY_OK;
}

static void knock(const a2a_security *security, bay_str query, bay_str lines, bay_str skill)
{
    arena memory;
    visit who = {.lines = lines};
    const auth_principal *principal = NULL;
    bay_str challenge = {"", 0};
    a2a_fault fault = {.error = A2A_NO_ERROR};
    bay_str certificate = field(&who, STR("certificate"));
    a2a_presented presented = {.field = field,
                               .query = query,
                               .certificate = certificate.at != NULL ? certificate : STR(""),
                               .context = &who};
    arena_init(&memory, 1 << 20);
    bay_err err = a2a_security_check(security, &presented, skill, verify, &who, &memory, &principal,
                                     &challenge, &fault);
    if (err == BAY_OK) {
        CHECK(a2a_security_is_open(security) || (who.verified > 0 && principal != NULL));
        principal_unref(principal);
    } else {
        CHECK(err == BAY_ERR_DENIED || err == BAY_ERR_NOMEM);
        CHECK(memchr(challenge.at, '\n', challenge.len) == NULL);
        CHECK(memchr(challenge.at, '\r', challenge.len) == NULL);
    }
    arena_fini(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bay_str input = {(const char *)data, size};
    size_t cut = str_find(input, '\0');
    bay_str card = str_head(input, cut);
    bay_str request = cut < size ? str_from(input, cut + 1) : (bay_str){"", 0};
    size_t line = str_find(request, '\n');
    arena memory;
    json_doc doc;
    arena_init(&memory, 8 << 20);
    if (json_parse(&doc, card, NULL, &memory, NULL) == BAY_OK) {
        a2a_security *security = NULL;
        a2a_fault fault = {.error = A2A_NO_ERROR};
        bay_err err = a2a_security_new(json_root(&doc), &security, &fault);
        if (err == BAY_OK) {
            bay_str lines = line < request.len ? str_from(request, line + 1) : STR("");
            knock(security, str_head(request, line), lines, STR(""));
            knock(security, str_head(request, line), lines, STR("s"));
        } else {
            CHECK(err == BAY_ERR_NOMEM || fault.error != A2A_NO_ERROR);
        }
        a2a_security_free(security);
    }
    arena_fini(&memory);
    return 0;
}

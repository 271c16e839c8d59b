/* Asking an issuer what a token is (RFC 7662). Requests that bring the same token at the same time
 * are one question. */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "oauth/guard_parts.h"
#include "wire/base64.h"
#include "wire/uri.h"

struct introspection {
    list_link link; /* in guard_link.introspections */
    oauth_guard_link *of;
    unsigned char digest[DIGEST_BYTES];
    size_t issuer;
    oauth_document document;
    list checks; /* by asked_link */
    loop_task end;
};

/* Not inside an event of its document. */
static void introspection_free(introspection *self)
{
    loop_undefer(self->of->loop, &self->end);
    oauth_document_fini(&self->document);
    list_remove(&self->link);
    self->of->introspection_count--;
    mem_free(self);
}

static void on_end(void *argument)
{
    introspection_free(argument);
}

/* Nobody joins it from now on. */
static void end_soon(introspection *self)
{
    self->issuer = SIZE_MAX;
    loop_defer(self->of->loop, &self->end);
}

void introspection_leave(oauth_check *check)
{
    introspection *self = check->asked;
    check->asked = NULL;
    list_remove(&check->asked_link);
    if (self != NULL && list_is_empty(&self->checks)) {
        end_soon(self);
    }
}

void introspections_end(oauth_guard_link *self)
{
    list_link *link;
    while ((link = list_first(&self->introspections)) != NULL) {
        introspection_free(CONTAINER_OF(link, introspection, link));
    }
}

/* What the answer is for those who ask: BAY_OK with an object; BAY_ERR_DENIED: we are not allowed
 * to ask; else it could not be had. */
static bay_err outcome_of(const oauth_answer *answer)
{
    if (answer->err != BAY_OK) {
        return answer->err;
    }
    if (answer->status == 401 || answer->status == 403) {
        return BAY_ERR_DENIED;
    }
    return answer->status == 200 && json_is(answer->root, JSON_OBJECT) ? BAY_OK : BAY_ERR_PROTOCOL;
}

static void on_answer(void *user, const oauth_answer *answer)
{
    introspection *self = user;
    list_link *link;
    bay_err err = outcome_of(answer);
    end_soon(self);
    while ((link = list_first(&self->checks)) != NULL) {
        oauth_check *check = CONTAINER_OF(link, oauth_check, asked_link);
        introspection_leave(check);
        check->is_answered = true;
        check->answer = err;
        check->response = answer->root;
        check_go_on(check);
    }
}

/* RFC 6749 section 2.3.1: both are form-encoded before they are joined. */
static bay_err write_authorization(const oauth_guard_issuer *by, buf *out)
{
    buf pair;
    buf_init_secret(&pair, 16 << 10);
    uri_encode(&pair, by->client_id);
    buf_char(&pair, ':');
    uri_encode(&pair, by->client_secret);
    buf_lit(out, "Basic ");
    base64_encode(out, buf_view(&pair), BASE64_STANDARD);
    bay_err err = pair.err != BAY_OK ? pair.err : out->err;
    buf_fini(&pair);
    return err;
}

static bay_err introspection_start(introspection *self, const oauth_check *check, bay_str url,
                                   bay_diag *diag)
{
    const oauth_guard_issuer *by = &self->of->guard->issuers[self->issuer];
    buf form;
    buf authorization;
    buf_init_secret(&form, 4 * ACCESS_TOKEN_BYTES);
    buf_init_secret(&authorization, 32 << 10);
    buf_lit(&form, "token_type_hint=access_token&token=");
    uri_encode(&form, check->brought.text);
    bay_err err = form.err == BAY_OK ? write_authorization(by, &authorization) : form.err;
    if (err == BAY_OK) {
        http_field field = {STR("Authorization"), buf_view(&authorization)};
        oauth_request request = {
            .url = url, .form = buf_view(&form), .fields = &field, .field_count = 1};
        err = oauth_document_start(&self->document, &request, on_answer, self, diag);
    }
    buf_fini(&authorization);
    buf_fini(&form);
    return err;
}

static introspection *find(oauth_guard_link *of, const unsigned char *digest, size_t issuer)
{
    LIST_EACH(at, &of->introspections)
    {
        introspection *one = CONTAINER_OF(at, introspection, link);
        if (one->issuer == issuer && memcmp(one->digest, digest, DIGEST_BYTES) == 0) {
            return one;
        }
    }
    return NULL;
}

bay_err introspection_ask(oauth_check *check, size_t issuer, bay_str url, bay_diag *diag)
{
    oauth_guard_link *of = check->of;
    introspection *self = find(of, check->digest, issuer);
    if (self == NULL) {
        if (of->introspection_count == OAUTH_INTROSPECTIONS) {
            return diag_set(diag, BAY_ERR_BUSY, "too many tokens are being asked about");
        }
        self = mem_zalloc(sizeof(*self));
        if (self == NULL) {
            return BAY_ERR_NOMEM;
        }
        self->of = of;
        self->issuer = issuer;
        memcpy(self->digest, check->digest, DIGEST_BYTES);
        list_init(&self->checks);
        self->end = (loop_task){.function = on_end, .argument = self};
        oauth_document_init(&self->document, oauth_issuer_link_source(of->issuers[issuer]));
        list_push(&of->introspections, &self->link);
        of->introspection_count++;
        bay_err err = introspection_start(self, check, url, diag);
        if (err != BAY_OK) {
            introspection_free(self);
            return err;
        }
    }
    list_push(&self->checks, &check->asked_link);
    check->asked = self;
    return BAY_OK;
}

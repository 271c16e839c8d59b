/* An authorization request whose redirect is received by another client than the one that made it:
 * in a gateway, whichever loop the browser comes back to. What the redirect is compared with is
 * written as a form. Source: RFC 6749 section 4.1.1, RFC 7636 section 4.1. */
#include <stdio.h>

#include "auth/oauth_client_internal.h"
#include "base/err.h"
#include "base/str.h"

enum { NUMBER_BYTES = 24 };

static bool is_between_flows(const oauth_client *self)
{
    return self->phase == OAUTH_IDLE || self->phase == OAUTH_IS_READY ||
           self->phase == OAUTH_HAS_FAILED;
}

bay_err oauth_client_attempt_write(const oauth_client *self, buf *out)
{
    char until[NUMBER_BYTES];
    size_t start = out->len;
    if (self->phase != OAUTH_AUTHORIZING) {
        return BAY_ERR_STATE;
    }
    (void)snprintf(until, sizeof(until), "%llu", (unsigned long long)self->until_ms);
    oauth_form_put(out, start, STR("issuer"), self->server.issuer);
    oauth_form_put(out, start, STR("state"), buf_view(&self->state));
    oauth_form_put(out, start, STR("verifier"), buf_view(&self->verifier));
    oauth_form_put(out, start, STR("redirect_uri"), buf_view(&self->redirect_uri));
    oauth_form_put(out, start, STR("until"), str_of(until));
    oauth_form_put_some(out, start, STR("nonce"), buf_view(&self->nonce));
    oauth_form_put_some(out, start, STR("scope"), buf_view(&self->asked));
    if (self->has_resource) {
        oauth_form_put(out, start, STR("resource"), self->resource.resource);
    }
    return out->err;
}

/* ---- taking it up ---------------------------------------------------------------------------- */

/* BAY_ERR_NOT_FOUND: it is not whole. */
static bay_err take_attempt(oauth_client *self, const oauth_form *form, bay_str *out_issuer)
{
    const struct {
        bay_str name;
        buf *place;
        bool is_needed;
    } rows[] = {{STR("state"), &self->state, true},
                {STR("verifier"), &self->verifier, true},
                {STR("redirect_uri"), &self->redirect_uri, true},
                {STR("nonce"), &self->nonce, self->settings.is_login},
                {STR("scope"), &self->asked, false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bay_str value = oauth_form_get(form, rows[i].name);
        if (rows[i].is_needed && value.len == 0) {
            return BAY_ERR_NOT_FOUND;
        }
        bay_err err = oauth_text_set(rows[i].place, value);
        if (err != BAY_OK) {
            return err;
        }
    }
    *out_issuer = oauth_form_get(form, STR("issuer"));
    bay_str configured = self->settings.issuer;
    bool is_ours = out_issuer->len > 0 && (configured.len == 0 || str_eq(configured, *out_issuer));
    return is_ours && str_uint(oauth_form_get(form, STR("until")), &self->until_ms)
               ? BAY_OK
               : BAY_ERR_NOT_FOUND;
}

/* The resource that was asked for, as it was received then. */
static bay_err take_resource(oauth_client *self, bay_str resource)
{
    arena_reset(&self->resource_memory);
    self->resource = (oauth_resource){.scopes = {"", 0}};
    self->has_resource = resource.len > 0;
    return arena_dup(&self->resource_memory, resource, &self->resource.resource);
}

bay_err oauth_client_resume(oauth_client *self, bay_str attempt, bay_str query, uint64_t now_ms)
{
    arena memory;
    oauth_form kept, came;
    bay_str issuer = {"", 0};
    if (!is_between_flows(self)) {
        return BAY_ERR_STATE;
    }
    oauth_client_abandon(self);
    arena_init(&memory, 4 * OAUTH_FORM_BYTES);
    bay_err err = oauth_form_read(attempt, &memory, &kept);
    if (err == BAY_OK) {
        err = take_attempt(self, &kept, &issuer);
    }
    if (err == BAY_OK) {
        err = oauth_form_read(query, &memory, &came);
    }
    /* before anything is fetched: nobody makes us fetch by a redirect that was not asked for */
    if (err == BAY_OK &&
        (!oauth_text_same(oauth_form_get(&came, STR("state")), buf_view(&self->state)) ||
         now_ms >= self->until_ms)) {
        err = BAY_ERR_NOT_FOUND;
    }
    if (err == BAY_OK) {
        err = take_resource(self, oauth_form_get(&kept, STR("resource")));
    }
    if (err == BAY_OK) {
        err = oauth_text_set(&self->redirect, query);
    }
    if (err == BAY_OK) {
        self->purpose = OAUTH_TO_GRANT;
        oauth_server_begin(self, issuer, now_ms);
    } else {
        oauth_client_abandon(self);
    }
    arena_fini(&memory);
    return err == BAY_OK || err == BAY_ERR_NOMEM ? err : BAY_ERR_NOT_FOUND;
}

void oauth_attempt_go_on(oauth_client *self, uint64_t now_ms)
{
    bay_str query = buf_view(&self->redirect);
    oauth_set_phase(self, OAUTH_AUTHORIZING);
    bay_err err = oauth_client_redirected(self, query, now_ms);
    if (err != BAY_OK) { /* its time passed meanwhile */
        oauth_fail(self, now_ms, err == BAY_ERR_NOMEM ? err : BAY_ERR_TIMEOUT,
                   "the login took too long");
    }
}

void oauth_client_abandon(oauth_client *self)
{
    oauth_record_drop_tokens(&self->record);
    oauth_attempt_end(self);
    oauth_text_forget(&self->nonce);
    oauth_text_forget(&self->id_token);
    self->generation = 0;
    self->settings.is_eager = false;
    oauth_set_phase(self, OAUTH_IDLE);
}

bay_str oauth_client_id_token(const oauth_client *self)
{
    return buf_view(&self->id_token);
}

bay_str oauth_client_nonce(const oauth_client *self)
{
    return buf_view(&self->nonce);
}

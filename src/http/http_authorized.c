/* Calls whose requests an authority proves: kept, so that each attempt can be written anew. */
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "http/http_client_internal.h"

/* ---- what the request is made of ------------------------------------------------------------- */

static bay_str put(char **at, bay_str text)
{
    bay_str copy = {*at, text.len};
    if (text.len > 0) {
        memcpy(*at, text.at, text.len);
    }
    *at += text.len;
    return copy;
}

bay_err call_draft(http_call *self, const http_call_spec *spec, bool is_tls)
{
    size_t table = (spec->field_count + HTTP_AUTHORITY_FIELDS) * sizeof(http_field);
    size_t bytes = sizeof(http_draft) + table + spec->method.len + spec->url.len + spec->body.len;
    for (size_t i = 0; i < spec->field_count; i++) {
        bytes += spec->fields[i].name.len + spec->fields[i].value.len;
    }
    http_draft *draft = mem_zalloc(bytes);
    if (draft == NULL) {
        return BAY_ERR_NOMEM;
    }
    char *at = (char *)draft + sizeof(http_draft) + table;
    draft->authority = spec->authority;
    draft->bytes = bytes;
    draft->is_tls = is_tls;
    draft->spec = *spec;
    draft->spec.method = put(&at, spec->method);
    draft->spec.url = put(&at, spec->url);
    draft->spec.parts = NULL; /* of the text that the caller has */
    draft->spec.body = put(&at, spec->body);
    draft->spec.fields = draft->fields;
    for (size_t i = 0; i < spec->field_count; i++) {
        draft->fields[i].name = put(&at, spec->fields[i].name);
        draft->fields[i].value = put(&at, spec->fields[i].value);
    }
    self->draft = draft;
    return BAY_OK;
}

void call_draft_free(http_call *self)
{
    http_draft *draft = self->draft;
    if (draft != NULL) {
        self->draft = NULL;
        mem_wipe(draft, draft->bytes);
        mem_free(draft);
    }
}

/* ---- attempts -------------------------------------------------------------------------------- */

static void set_waiting(http_call *self, bool is_waiting)
{
    http_draft *draft = self->draft;
    if (draft->is_waiting != is_waiting) {
        draft->is_waiting = is_waiting;
        if (self->events->waits != NULL && self->state != CALL_OVER) {
            self->events->waits(self->user, is_waiting);
        }
    }
}

bay_err call_attempt(http_call *self, bay_diag *diag)
{
    http_draft *draft = self->draft;
    size_t count = 0;
    uri url;
    if (draft->attempts++ == HTTP_ATTEMPTS) {
        return diag_set(diag, BAY_ERR_DENIED, "the server refuses every attempt");
    }
    self->state = CALL_AUTHORIZING;
    bay_err err = draft->authority->fields(draft->authority, self, &draft->grant,
                                           draft->spec.method, draft->spec.url,
                                           draft->fields + draft->spec.field_count, &count, diag);
    if (err == BAY_ERR_AGAIN) {
        draft->attempts--; /* nothing was sent */
        set_waiting(self, true);
        return BAY_OK;
    }
    if (err == BAY_OK) {
        err = uri_parse(&url, draft->spec.url);
    }
    if (err != BAY_OK) {
        return err;
    }
    http_call_spec spec = draft->spec;
    spec.field_count += count;
    self->interim = 0;
    self->is_in_head = false;
    self->head_end_ms = spec.timeout_ms > 0 ? loop_now_ms(self->client->loop) + spec.timeout_ms : 0;
    set_waiting(self, false);
    return http_call_go(self, &spec, &url, draft->is_tls, diag);
}

void call_draft_leave(http_call *self)
{
    http_draft *draft = self->draft;
    if (draft->is_waiting) {
        draft->is_waiting = false;
        draft->authority->left(draft->authority, &draft->grant);
    }
}

bool call_is_refused(http_call *self, int status, const http_field *fields, size_t count,
                     bay_diag *diag)
{
    http_draft *draft = self->draft;
    http_verdict verdict =
        draft->authority->replied(draft->authority, &draft->grant, status, fields, count, diag);
    if (verdict == HTTP_AGAIN) {
        diag->code = BAY_OK;
    }
    return verdict != HTTP_PASS;
}

void call_again(http_call *self, const bay_diag *diag)
{
    bay_diag why = *diag;
    loop_timer_stop(self->client->loop, &self->timer);
    bay_err err = why.code;
    if (err == BAY_OK) {
        err = call_attempt(self, &why);
    }
    if (err != BAY_OK) {
        http_call_fail(self, err, why.text[0] != '\0' ? why.text : bay_err_text(err));
    }
}

/* ---- told by the authority ------------------------------------------------------------------- */

void http_call_authorized(http_call *self)
{
    http_client *client = self->client;
    if (self->state != CALL_AUTHORIZING) {
        return;
    }
    http_client_enter(client);
    call_again(self, &(bay_diag){0});
    http_client_leave(client);
}

void http_call_refused(http_call *self, bay_err err, const char *text)
{
    http_client *client = self->client;
    if (self->state != CALL_AUTHORIZING) {
        return;
    }
    http_client_enter(client);
    self->draft->is_waiting = false; /* the authority knows */
    http_call_fail(self, err, text);
    http_client_leave(client);
}

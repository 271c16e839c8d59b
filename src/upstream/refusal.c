#include "upstream/refusal.h"

/* The call stands in the grant's state. */
static http_call **call_of(http_grant *grant)
{
    return (http_call **)(void *)grant->state;
}

static bay_err refusal_fields(http_authority *http, http_call *call, http_grant *grant,
                              bay_str method, bay_str url, http_field *out, size_t *out_count,
                              bay_diag *diag)
{
    refusal *self = CONTAINER_OF(http, refusal, http);
    (void)method;
    (void)url;
    (void)out;
    (void)out_count;
    (void)diag;
    *call_of(grant) = call;
    list_push(&self->waiting, &grant->link);
    loop_defer(self->loop, &self->task);
    return BAY_ERR_AGAIN;
}

static http_verdict refusal_replied(http_authority *http, http_grant *grant, int status,
                                    const http_field *fields, size_t count, bay_diag *diag)
{
    (void)http;
    (void)grant;
    (void)status;
    (void)fields;
    (void)count;
    (void)diag;
    return HTTP_PASS; /* nothing was sent */
}

static void refusal_left(http_authority *http, http_grant *grant)
{
    (void)http;
    list_remove(&grant->link);
}

static void refuse_all(void *argument)
{
    refusal *self = argument;
    list_link *link;
    list now;
    list_init(&now); /* whoever hears of it may ask again */
    while ((link = list_pop(&self->waiting)) != NULL) {
        list_push(&now, link);
    }
    while ((link = list_pop(&now)) != NULL) {
        http_call_refused(*call_of(CONTAINER_OF(link, http_grant, link)), self->err, self->text);
    }
}

void refusal_init(refusal *self, loop *on, bay_err err, const char *text)
{
    *self = (refusal){
        .http = {.fields = refusal_fields, .replied = refusal_replied, .left = refusal_left},
        .loop = on,
        .err = err,
        .text = text};
    self->task = (loop_task){.function = refuse_all, .argument = self};
    list_init(&self->waiting);
}

void refusal_fini(refusal *self)
{
    if (self->loop != NULL) {
        loop_undefer(self->loop, &self->task);
    }
}

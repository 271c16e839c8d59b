#include "oauth/authority.h"

#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "oauth/receiver.h"

_Static_assert(sizeof(oauth_try) <= sizeof(((http_grant *)0)->state), "a request's part fits");

struct oauth_authority {
    http_authority http; /* first: http_authority functions get it */
    loop *loop;
    oauth_client *client;
    oauth_source *source;
    oauth_document document;
    oauth_receiver *receiver;
    const oauth_authority_events *events;
    void *user;
    loop_task step;
    loop_timer timer;
    list waiting;             /* grants whose calls wait */
    buf authorization, proof; /* of the request that is being made */
    bool has_receiver;
    bool is_keeping, is_rereading, is_getting_subject, is_open; /* the owner has to answer */
    bool is_flowing; /* a flow is under way, whose end is told */
    unsigned depth;  /* steps on the stack */
    bool is_freed;
};

static void authority_release(oauth_authority *self);

/* ---- calls ----------------------------------------------------------------------------------- */

/* A grant's state: what the machine knows of the request, then its call. */
static oauth_try *try_of(http_grant *grant)
{
    return (oauth_try *)(void *)grant->state;
}

static http_call **call_of(http_grant *grant)
{
    return (http_call **)(void *)&grant->state[2];
}

_Static_assert(sizeof(oauth_try) <= 2 * sizeof(uint64_t), "the call's place follows");

static void wait_for(oauth_authority *self, http_call *call, http_grant *grant)
{
    *call_of(grant) = call;
    list_push(&self->waiting, &grant->link);
    loop_defer(self->loop, &self->step);
}

static bay_err authority_fields(http_authority *http, http_call *call, http_grant *grant,
                                bay_str method, bay_str url, http_field *out, size_t *out_count,
                                bay_diag *diag)
{
    oauth_authority *self = CONTAINER_OF(http, oauth_authority, http);
    oauth_action action;
    uint64_t now = loop_time_ms();
    bay_err err = oauth_client_next(self->client, now, &action);
    if (err != BAY_OK) {
        return err;
    }
    if (action.need != OAUTH_GO || self->is_keeping) {
        wait_for(self, call, grant);
        return BAY_ERR_AGAIN;
    }
    buf_clear(&self->authorization);
    buf_clear(&self->proof);
    err = oauth_client_authorize(self->client, try_of(grant), method, url, now,
                                 &self->authorization, &self->proof);
    if (err == BAY_ERR_DENIED) {
        return diag_set(diag, err, "the token is for another server than the one that is called");
    }
    if (err != BAY_OK) {
        return diag_set(diag, err, "no credentials for the request: %s", bay_err_text(err));
    }
    if (self->authorization.len > 0) {
        out[(*out_count)++] = (http_field){STR("Authorization"), buf_view(&self->authorization)};
    }
    if (self->proof.len > 0) {
        out[(*out_count)++] = (http_field){STR("DPoP"), buf_view(&self->proof)};
    }
    return BAY_OK;
}

static http_verdict authority_replied(http_authority *http, http_grant *grant, int status,
                                      const http_field *fields, size_t count, bay_diag *diag)
{
    oauth_authority *self = CONTAINER_OF(http, oauth_authority, http);
    switch (
        oauth_client_replied(self->client, try_of(grant), status, fields, count, loop_time_ms())) {
    case OAUTH_AGAIN:
        return HTTP_AGAIN;
    case OAUTH_REFUSE:
        *diag = *oauth_client_fault(self->client);
        return HTTP_REFUSE;
    case OAUTH_PASS:
        break;
    }
    return HTTP_PASS;
}

static void authority_left(http_authority *http, http_grant *grant)
{
    (void)http;
    list_remove(&grant->link);
}

/* Each call asks for its fields anew, so one of them may begin the next flow. */
static void release_calls(oauth_authority *self, const bay_diag *fault)
{
    list calls;
    list_link *link;
    list_init(&calls);
    while ((link = list_pop(&self->waiting)) != NULL) {
        list_push(&calls, link);
    }
    while ((link = list_pop(&calls)) != NULL) {
        http_call *call = *call_of(CONTAINER_OF(link, http_grant, link));
        if (fault == NULL) {
            http_call_authorized(call);
        } else {
            http_call_refused(call, fault->code, fault->text);
        }
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void step_soon(oauth_authority *self)
{
    loop_defer(self->loop, &self->step);
}

static void on_answer(void *user, const oauth_answer *answer)
{
    oauth_authority *self = user;
    uint64_t now = loop_time_ms();
    if (answer->err != BAY_OK) {
        oauth_client_unanswered(self->client, answer->err, answer->text, now);
    } else {
        /* a page in HTML under a good status is no answer */
        bool is_json = !json_is(answer->root, JSON_MISSING);
        oauth_client_answered(self->client, answer->status, answer->dpop_nonce,
                              is_json ? answer->body : (bay_str){"", 0}, now);
    }
    step_soon(self);
}

static void send_request(oauth_authority *self, const oauth_action *action)
{
    bay_diag diag = {0};
    oauth_request request = {.url = action->url, .max_bytes = 2 * OAUTH_METADATA_BYTES};
    http_field fields[OAUTH_ACTION_FIELDS];
    for (size_t i = 0; i < action->field_count; i++) {
        bay_str name = action->fields[i].name;
        bool is_json = str_eq(action->fields[i].value, STR("application/json"));
        if (str_eq(name, STR("Content-Type"))) {
            *(is_json ? &request.json : &request.form) = action->body;
        } else if (!str_eq(name, STR("Accept"))) { /* the document writes both itself */
            fields[request.field_count++] = action->fields[i];
        }
    }
    request.fields = fields;
    bay_err err = oauth_document_start(&self->document, &request, on_answer, self, &diag);
    if (err != BAY_OK) {
        oauth_client_unanswered(self->client, err,
                                diag.text[0] != '\0' ? diag.text : bay_err_text(err),
                                loop_time_ms());
        step_soon(self);
    }
}

static bool on_redirect(void *user, bay_str query)
{
    return oauth_authority_redirected(user, query);
}

static void begin_listening(oauth_authority *self, bay_str preferred)
{
    bay_diag diag = {0};
    uint64_t now = loop_time_ms();
    if (!self->has_receiver) {
        oauth_client_give_up(self->client, BAY_ERR_DENIED,
                             "a person has to log in, and there is no browser here", now);
        return;
    }
    oauth_receiver_free(self->receiver); /* of an earlier login */
    self->receiver = NULL;
    bay_err err =
        oauth_receiver_new(self->loop, preferred, on_redirect, self, &self->receiver, &diag);
    if (err != BAY_OK) {
        oauth_client_give_up(self->client, err, diag.text, now);
        return;
    }
    oauth_client_listens(self->client, oauth_receiver_uri(self->receiver), now);
}

static void set_timer(oauth_authority *self, uint64_t at_ms)
{
    uint64_t now = loop_time_ms();
    if (loop_timer_start(self->loop, &self->timer, at_ms > now ? at_ms - now : 1) != BAY_OK) {
        oauth_client_give_up(self->client, BAY_ERR_NOMEM, bay_err_text(BAY_ERR_NOMEM), now);
        step_soon(self);
    }
}

static void give_up(oauth_authority *self, const char *why)
{
    oauth_client_give_up(self->client, BAY_ERR_DENIED, why, loop_time_ms());
}

/* A flow is over: the browser is not waited for any more. */
static void end_flow(oauth_authority *self, const bay_diag *fault)
{
    loop_timer_stop(self->loop, &self->timer);
    self->is_open = self->is_getting_subject = self->is_rereading = false;
    if (self->receiver != NULL) {
        oauth_receiver_stop(self->receiver);
    }
    if (self->is_flowing) {
        self->is_flowing = false;
        if (self->events->settled != NULL) {
            self->events->settled(self->user, self, fault);
        }
    }
    if (!self->is_freed) {
        release_calls(self, fault);
    }
}

/* Does one step. True: there may be another one at once. */
static bool take_action(oauth_authority *self, const oauth_action *action)
{
    const oauth_authority_events *events = self->events;
    self->is_flowing =
        self->is_flowing || (action->need != OAUTH_GO && action->need != OAUTH_FAILED);
    switch (action->need) {
    case OAUTH_GO:
        end_flow(self, NULL);
        return false;
    case OAUTH_FAILED:
        self->is_flowing = self->is_flowing || !list_is_empty(&self->waiting);
        end_flow(self, oauth_client_fault(self->client));
        return false;
    case OAUTH_REQUEST:
        send_request(self, action);
        return false;
    case OAUTH_LISTEN:
        begin_listening(self, action->url);
        return true;
    case OAUTH_BROWSER:
        if (events->open == NULL) {
            give_up(self, "a person has to log in, and there is no browser here");
            return true;
        }
        set_timer(self, action->at_ms);
        if (!self->is_open) {
            self->is_open = true;
            events->open(self->user, self, action->url);
        }
        return false;
    case OAUTH_SHOW:
        if (events->show == NULL) {
            give_up(self, "a person has to log in, and nobody can be shown a code here");
            return true;
        }
        events->show(self->user, self, action->url, action->code);
        return true;
    case OAUTH_WAIT:
        set_timer(self, action->at_ms);
        return false;
    case OAUTH_SUBJECT:
        if (events->subject == NULL) {
            give_up(self, "there is no token to present");
            return true;
        }
        if (!self->is_getting_subject) {
            self->is_getting_subject = true;
            events->subject(self->user, self);
        }
        return false;
    case OAUTH_REREAD:
        if (events->reread == NULL) {
            oauth_client_reread(self->client, loop_time_ms());
            return true;
        }
        if (!self->is_rereading) {
            self->is_rereading = true;
            events->reread(self->user, self);
        }
        return false;
    }
    return false;
}

/* mcp and RFC 9700: a rotated token is kept before it is used. True: the owner keeps it now. */
static bool keep_change(oauth_authority *self)
{
    buf text;
    if (!oauth_client_take_change(self->client) || self->events->keep == NULL) {
        return false;
    }
    buf_init_secret(&text, OAUTH_RECORD_BYTES);
    bay_err err = oauth_record_write(oauth_client_record(self->client), &text);
    if (err != BAY_OK) {
        LOG(LOG_WARN, "oauth", "a login could not be kept: %s; it is lost with this process",
            bay_err_text(err));
    } else {
        self->is_keeping = true;
        self->events->keep(self->user, self, buf_view(&text));
    }
    buf_fini(&text);
    return err == BAY_OK;
}

static void take_step(void *argument)
{
    oauth_authority *self = argument;
    oauth_action action;
    bool goes_on = true;
    self->depth++;
    while (goes_on && !self->is_freed && !self->is_keeping &&
           !oauth_document_is_busy(&self->document)) {
        if (keep_change(self)) {
            continue;
        }
        bay_err err = oauth_client_next(self->client, loop_time_ms(), &action);
        goes_on = err == BAY_OK && take_action(self, &action);
    }
    if (--self->depth == 0 && self->is_freed) {
        authority_release(self);
    }
}

static void on_timer(void *argument)
{
    take_step(argument);
}

/* ---- told by the owner ----------------------------------------------------------------------- */

void oauth_authority_kept(oauth_authority *self)
{
    if (self->is_keeping) {
        self->is_keeping = false;
        step_soon(self);
    }
}

void oauth_authority_reread(oauth_authority *self, bay_str record)
{
    if (!self->is_rereading) {
        return;
    }
    self->is_rereading = false;
    bay_err err = oauth_client_load(self->client, record.len > 0 ? record : STR("{}"));
    if (err != BAY_OK) {
        oauth_client_give_up(self->client, err, bay_err_text(err), loop_time_ms());
    } else {
        oauth_client_reread(self->client, loop_time_ms());
    }
    step_soon(self);
}

void oauth_authority_subject(oauth_authority *self, bay_str token, const char *why)
{
    if (!self->is_getting_subject) {
        return;
    }
    self->is_getting_subject = false;
    if (token.len == 0 && why != NULL) {
        give_up(self, why);
    } else {
        oauth_client_subject(self->client, token, loop_time_ms());
    }
    step_soon(self);
}

bool oauth_authority_redirected(oauth_authority *self, bay_str query)
{
    bay_err err = oauth_client_redirected(self->client, query, loop_time_ms());
    if (err == BAY_OK) {
        step_soon(self);
    }
    return err == BAY_OK;
}

bay_err oauth_authority_resume(oauth_authority *self, bay_str attempt, bay_str query)
{
    bay_err err = oauth_client_resume(self->client, attempt, query, loop_time_ms());
    if (err == BAY_OK) {
        self->is_flowing = true;
        step_soon(self);
    }
    return err;
}

void oauth_authority_abandon(oauth_authority *self)
{
    loop_timer_stop(self->loop, &self->timer);
    loop_undefer(self->loop, &self->step);
    oauth_client_abandon(self->client);
    self->is_open = self->is_flowing = false;
}

void oauth_authority_declined(oauth_authority *self, const char *why)
{
    give_up(self, why);
    step_soon(self);
}

void oauth_authority_begin(oauth_authority *self, bool anew)
{
    oauth_client_begin(self->client, anew);
    self->is_flowing = true;
    step_soon(self);
}

void oauth_authority_revoke(oauth_authority *self)
{
    oauth_client_revoke(self->client);
    self->is_flowing = true;
    step_soon(self);
}

void oauth_authority_forget(oauth_authority *self)
{
    oauth_client_forget(self->client);
}

bay_err oauth_authority_load(oauth_authority *self, bay_str record)
{
    return oauth_client_load(self->client, record);
}

http_authority *oauth_authority_http(oauth_authority *self)
{
    return &self->http;
}

const oauth_client *oauth_authority_client(const oauth_authority *self)
{
    return self->client;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void authority_release(oauth_authority *self)
{
    oauth_receiver_free(self->receiver);
    oauth_document_fini(&self->document);
    oauth_source_free(self->source);
    oauth_client_free(self->client);
    buf_fini(&self->authorization);
    buf_fini(&self->proof);
    mem_free(self);
}

bay_err oauth_authority_new(loop *on, const oauth_authority_options *options,
                            const oauth_authority_events *events, void *user, oauth_authority **out,
                            bay_diag *diag)
{
    oauth_authority *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    self->http = (http_authority){
        .fields = authority_fields, .replied = authority_replied, .left = authority_left};
    self->loop = on;
    self->events = events;
    self->user = user;
    self->has_receiver = options->has_receiver;
    self->step = (loop_task){.function = take_step, .argument = self};
    list_init(&self->waiting);
    loop_timer_init(&self->timer, on_timer, self);
    buf_init_secret(&self->authorization, 2 * OAUTH_TOKEN_BYTES);
    buf_init_secret(&self->proof, 2 * OAUTH_TOKEN_BYTES);
    oauth_source_options source = {
        .home = options->client.url,
        .allow = options->allow,
        .allow_count = options->allow_count,
        .tls = options->tls,
    };
    bay_err err = oauth_client_new(&options->client, &self->client, diag);
    if (err == BAY_OK) {
        err = oauth_source_new(on, &source, &self->source, diag);
    }
    if (err != BAY_OK) {
        oauth_client_free(self->client);
        buf_fini(&self->authorization);
        buf_fini(&self->proof);
        mem_free(self);
        return err;
    }
    oauth_document_init(&self->document, self->source);
    *out = self;
    return BAY_OK;
}

void oauth_authority_free(oauth_authority *self)
{
    if (self == NULL || self->is_freed) {
        return;
    }
    self->is_freed = true;
    loop_undefer(self->loop, &self->step);
    loop_timer_stop(self->loop, &self->timer);
    if (self->depth == 0) {
        authority_release(self);
    }
}

#include "sdk/asker.h"

#include <stdio.h>

#include "base/err.h"
#include "base/log.h"

/* ---- its life -------------------------------------------------------------------------------- */

bay_err asker_open(asker *self, const asker_kind *kind, const asker_options *options, loop *lent,
                   bay_diag *diag)
{
    *self = (asker){.kind = kind, .loop = lent, .is_loop_lent = lent != NULL, .is_touched = true};
    self->settle = (loop_task){.function = kind->settle, .argument = self};
    list_init(&self->items);
    list_init(&self->ended);
    if (lent != NULL) {
        return BAY_OK;
    }
    bay_err err = loop_new(&self->loop);
    if (err != BAY_OK) {
        return diag_set(diag, err, "no event loop: %s", bay_err_text(err));
    }
    if (options->log.sink != NULL) {
        loop_set_log(self->loop, &options->log);
    }
    return BAY_OK;
}

void asker_stop(asker *self)
{
    if (self->loop != NULL) {
        loop_undefer(self->loop, &self->settle);
    }
    http_client_free(self->http);
    sdk_login_free(self->login);
    self->login = NULL;
    tls_free(self->tls);
    self->http = NULL;
    self->tls = NULL;
}

void asker_fini(asker *self)
{
    asker_stop(self);
    if (self->loop != NULL && !self->is_loop_lent) {
        loop_free(self->loop);
    }
    self->loop = NULL;
}

bool asker_close(asker *self)
{
    if (asker_is_inside(self) || self->is_closing) {
        LOG(LOG_ERROR, self->kind->noun, "%s: bay_%s_close inside a callback does nothing",
            self->shown, self->kind->noun);
        return false;
    }
    self->is_closing = true;
    return true;
}

/* ---- its place in an event loop -------------------------------------------------------------- */

int asker_fd(const asker *self)
{
    return self != NULL ? loop_fd(self->loop) : -1;
}

int asker_wait_ms(const asker *self)
{
    if (self == NULL) {
        return -1;
    }
    /* what was just started is not yet among what the descriptor watches */
    return self->is_touched ? 0 : loop_wait_ms(self->loop);
}

bay_err asker_turn(asker *self, int ms)
{
    if (self == NULL) {
        return BAY_ERR_INVALID;
    }
    if (asker_is_inside(self) || self->is_closing) {
        return BAY_ERR_STATE;
    }
    self->is_touched = false;
    (void)loop_turn(self->loop, ms);
    return BAY_OK;
}

void asker_touch(asker *self)
{
    self->is_touched = true;
    if (!loop_is_turning(self->loop)) {
        loop_refresh(self->loop);
    }
}

void asker_settle_soon(asker *self)
{
    loop_defer(self->loop, &self->settle);
}

bool asker_is_inside(const asker *self)
{
    return loop_is_turning(self->loop) || self->is_tracing;
}

bay_err asker_check_waiting(const asker *self, bay_diag *diag)
{
    if (self->is_tracing) {
        return diag_set(diag, BAY_ERR_STATE, "inside on_message nothing can be waited for");
    }
    if (self->is_closing) {
        return diag_set(diag, BAY_ERR_STATE, "the %s is being closed", self->kind->noun);
    }
    if (loop_is_turning(self->loop)) {
        return diag_set(diag, BAY_ERR_STATE, ASKER_INSIDE);
    }
    return BAY_OK;
}

/* ---- one item -------------------------------------------------------------------------------- */

void asker_item_init(asker_item *self, asker *of)
{
    *self = (asker_item){.asker = of, .phase = ASKER_NEW};
}

bay_err asker_item_start(asker_item *self, bay_diag *diag)
{
    asker *of = self->asker;
    if (of->is_closing) {
        return diag_set(diag, of->kind->closing, "the %s is being closed", of->kind->noun);
    }
    if (of->count >= of->kind->most) {
        return diag_set(diag, BAY_ERR_BUSY, "%zu %s are under way", of->count, of->kind->items);
    }
    self->phase = ASKER_OPEN;
    list_push(&of->items, &self->link);
    of->count++;
    return BAY_OK;
}

void asker_item_set(asker_item *self, asker_phase phase)
{
    asker *of = self->asker;
    of->waiting -= self->phase == ASKER_WAITING ? 1 : 0;
    of->waiting += phase == ASKER_WAITING ? 1 : 0;
    self->phase = phase;
}

void asker_item_drop(asker_item *self)
{
    asker_item_set(self, ASKER_NEW);
    list_remove(&self->link);
    self->asker->count--;
}

bool asker_item_end(asker_item *self, const bay_diag *diag)
{
    if (self->phase == ASKER_ENDED) {
        return false;
    }
    asker_item_set(self, ASKER_ENDED);
    self->diag = *diag;
    list_remove(&self->link);
    list_push(&self->asker->ended, &self->link);
    asker_settle_soon(self->asker);
    return true;
}

bay_err asker_await(asker *self, asker_wait *wait, bay_diag *diag)
{
    while (!wait->is_done) {
        (void)loop_turn(self->loop, -1);
    }
    self->is_touched = true;
    if (wait->diag.code != BAY_OK) {
        self->kind->answer_free(wait->answer);
        wait->answer = NULL;
        if (diag != NULL) {
            *diag = wait->diag;
        }
    }
    return wait->diag.code;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static asker_item *item_of(list_link *link)
{
    return CONTAINER_OF(link, asker_item, link);
}

void asker_send_waiting(asker *self)
{
    if (self->waiting == 0) {
        return;
    }
    LIST_EACH(link, &self->items)
    {
        if (item_of(link)->phase == ASKER_WAITING) {
            self->kind->send(item_of(link));
        }
    }
}

void asker_fail_waiting(asker *self, const bay_diag *fault)
{
    if (self->waiting == 0) {
        return;
    }
    LIST_EACH(link, &self->items)
    {
        if (item_of(link)->phase == ASKER_WAITING) {
            self->kind->fail(item_of(link), fault->code, fault->text);
        }
    }
}

void asker_finish(asker *self)
{
    list_link *link;
    while ((link = list_pop(&self->ended)) != NULL) {
        asker_item *item = item_of(link);
        void *answer = item->answer;
        item->answer = NULL;
        self->count--;
        self->kind->ended(item, answer);
        if (item->wait != NULL) {
            *item->wait = (asker_wait){.is_done = true, .answer = answer, .diag = item->diag};
        } else {
            self->kind->tell(item, answer);
        }
        self->kind->item_free(item);
    }
}

void asker_end_all(asker *self, const char *why)
{
    list_link *link;
    while ((link = list_first(&self->items)) != NULL) {
        self->kind->withdraw(item_of(link));
        self->kind->fail(item_of(link), BAY_ERR_CANCELLED, why);
    }
    asker_finish(self);
}

/* A host's life: its loop, its users, its turns, and how all of it ends (see sdk/host.h). */
#include "sdk/host.h"

#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "sdk/host_parts.h"

static void run_out(void *argument)
{
    host_serving *self = argument;
    self->is_impatient = true;
}

static void be_patient(host_serving *self)
{
    self->is_impatient =
        loop_timer_start(self->loop, &self->patience, self->host->drain_ms) != BAY_OK;
}

static void turn(host_serving *self, int64_t timeout_ms)
{
    self->is_turning = true;
    loop_turn(self->loop, timeout_ms);
    self->is_turning = false;
}

bool host_turn_until(sdk_host *self, bool (*is_done)(const void *object))
{
    host_serving *now = self->serving;
    be_patient(now);
    while (!is_done(self->owner.object) && !now->is_impatient) {
        turn(now, -1);
    }
    loop_timer_stop(now->loop, &now->patience);
    return is_done(self->owner.object);
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool has_open_ways(const host_serving *self)
{
    return self->open_pairs > 0 || host_listeners_are_open(self);
}

static void begin_drain(host_serving *self)
{
    sdk_host *of = self->host;
    self->phase = HOST_DRAINING;
    if (of->kind->drain != NULL) {
        of->kind->drain(of->owner.object);
    }
    be_patient(self);
    host_listeners_drain(self);
    host_pipes_end(self);
}

static void begin_end(host_serving *self)
{
    self->phase = HOST_ENDING;
    be_patient(self);
    self->host->kind->end(self->host->owner.object);
}

static void ring_stop(void *argument)
{
    host_serving *self = argument;
    if (!self->is_own_user) {
        return; /* clients in process are all there is: nothing of ours to stop */
    }
    if (!self->is_ready) {
        self->phase = HOST_DRAINING; /* whoever opens it learns of that */
    } else if (self->phase == HOST_SERVING) {
        begin_drain(self);
    } else if (self->phase == HOST_DRAINING) {
        begin_end(self);
    }
}

/* Not inside a turn: listeners and pipes are freed. */
static void cut(host_serving *self)
{
    if (self->is_cut) {
        return;
    }
    self->is_cut = true;
    host_pipes_cut(self);
    host_listeners_free(self);
    if (self->host->kind->cut != NULL) {
        self->host->kind->cut(self->host->owner.object);
    }
}

/* ---- users ----------------------------------------------------------------------------------- */

static void serving_free(host_serving *self)
{
    sdk_host *of = self->host;
    of->kind->close(of->owner.object);
    loop_free(self->loop);
    of->kind->release(of->owner.object);
    host_pipes_free(self);
    net_wakeup_unwatch(&of->stop); /* what stopped this must not stop the next */
    of->serving = NULL;
    mem_free(self);
}

static bay_err serving_new(sdk_host *of, bool is_own, bay_diag *diag)
{
    host_serving *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    bay_err err = loop_new(&self->loop);
    if (err != BAY_OK) {
        mem_free(self);
        return err;
    }
    self->host = of;
    self->is_own_user = is_own;
    of->serving = self;
    loop_set_log(self->loop, of->owner.log->sink != NULL ? of->owner.log : NULL);
    loop_timer_init(&self->patience, run_out, self);
    call_door_init(&of->door);
    of->door.wall_ms = loop_time_ms;
    err = net_wakeup_watch(&of->stop, self->loop, ring_stop, self);
    if (err == BAY_OK) {
        err = of->kind->open(of->owner.object, self->loop, diag);
    }
    if (err != BAY_OK) {
        serving_free(self);
        return err;
    }
    self->is_ready = true;
    loop_hold(self->loop); /* a turn waits for the wakeup, even when nothing else is open */
    return BAY_OK;
}

static bay_err open_for(sdk_host *self, bool is_own, bay_diag *diag)
{
    bay_err err = self->kind->check(self->owner.object, diag);
    if (err != BAY_OK) {
        return err;
    }
    if (self->serving == NULL) {
        bay_diag why = {.code = BAY_OK};
        err = serving_new(self, is_own, &why);
        if (err != BAY_OK) {
            return diag_set(diag, err, "the %s cannot begin: %s", self->kind->noun,
                            why.code != BAY_OK ? why.text : bay_err_text(err));
        }
    }
    self->serving->users++;
    return BAY_OK;
}

bay_err host_open(sdk_host *self, bay_diag *diag)
{
    return open_for(self, false, diag);
}

static bool is_at_rest(const void *argument)
{
    const sdk_host *self = argument;
    return !self->kind->is_busy(self->owner.object);
}

void host_close(sdk_host *self)
{
    host_serving *now = self->serving;
    CHECK(now != NULL && now->users > 0);
    if (--now->users > 0) {
        return; /* always so inside a turn of the object's own */
    }
    self->kind->end(self->owner.object);
    be_patient(now);
    while (!is_at_rest(self) && !now->is_impatient) {
        turn(now, -1);
    }
    if (!is_at_rest(self)) {
        HOST_LOG(self, LOG_ERROR, "a handler did not come to an end; its %s is kept for it",
                 self->kind->noun);
        return;
    }
    serving_free(now);
}

loop *host_loop(const sdk_host *self)
{
    return self->serving != NULL ? self->serving->loop : NULL;
}

bay_err host_open_own(sdk_host *self, bay_diag *diag)
{
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "%s", bay_err_text(BAY_ERR_NOMEM));
    }
    host_serving *now = self->serving;
    if (now == NULL || !now->is_own_user) {
        bay_err err = open_for(self, true, diag);
        if (err != BAY_OK) {
            return err;
        }
        if (now != NULL) { /* clients in process had it open */
            now->is_own_user = true;
            now->phase = HOST_SERVING;
            now->is_cut = false;
        }
    }
    if (self->serving->phase != HOST_SERVING) {
        host_close_own_if_idle(self);
        return diag_set(diag, BAY_ERR_STATE, "the %s is being stopped", self->kind->noun);
    }
    return BAY_OK;
}

void host_close_own_if_idle(sdk_host *self)
{
    host_serving *now = self->serving;
    if (!now->had_ways && !now->is_turning) {
        now->is_own_user = false;
        host_close(self);
    }
}

void host_has_way(sdk_host *self)
{
    self->serving->had_ways = true;
    self->has_served = true;
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* Between two turns: BAY_OK goes on, BAY_ERR_EOF: it is over and `serving` may be gone,
 * BAY_ERR_TIMEOUT: over but for handlers that do not end. */
static bay_err host_look(sdk_host *of)
{
    host_serving *self = of->serving;
    bool has_company = self->users > 1;
    if (self->phase == HOST_SERVING && !has_open_ways(self) && !has_company) {
        begin_end(self);
    } else if (self->phase == HOST_DRAINING && (!has_open_ways(self) || self->is_impatient)) {
        begin_end(self);
    }
    if (self->phase != HOST_ENDING) {
        return BAY_OK;
    }
    cut(self);
    if (!has_company && !is_at_rest(of)) {
        if (!self->is_impatient) {
            return BAY_OK;
        }
        be_patient(self); /* for whoever tries again */
        return BAY_ERR_TIMEOUT;
    }
    loop_timer_stop(self->loop, &self->patience);
    self->is_own_user = false;
    self->had_ways = false;
    host_close(of);
    return BAY_ERR_EOF;
}

bay_err host_run(sdk_host *self, bay_diag *diag)
{
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "%s", bay_err_text(BAY_ERR_NOMEM));
    }
    const host_kind *kind = self->kind;
    if (self->serving == NULL || !self->serving->is_own_user) {
        bay_err err = kind->check(self->owner.object, diag);
        if (err != BAY_OK) {
            return err;
        }
        return kind->pipe_new != NULL
                   ? diag_set(diag, BAY_ERR_STATE,
                              "there is nothing to serve on: %s_listen or %s_pipe comes first",
                              kind->prefix, kind->prefix)
                   : diag_set(diag, BAY_ERR_STATE,
                              "there is nothing to serve on: %s_listen comes first", kind->prefix);
    }
    if (self->serving->is_turning) {
        return diag_set(diag, BAY_ERR_STATE, "the %s is running already", kind->noun);
    }
    bay_err err = host_look(self);
    while (err == BAY_OK) {
        turn(self->serving, -1);
        err = host_look(self);
    }
    if (err == BAY_ERR_TIMEOUT) {
        return diag_set(diag, err, "a handler did not come to an end");
    }
    return BAY_OK;
}

void host_stop(sdk_host *self)
{
    if (self != NULL) {
        net_wakeup_signal(&self->stop);
    }
}

int host_fd(const sdk_host *self)
{
    return self != NULL && self->serving != NULL ? loop_fd(self->serving->loop) : -1;
}

int host_wait_ms(const sdk_host *self)
{
    if (self == NULL || self->serving == NULL) {
        return -1;
    }
    const host_serving *now = self->serving;
    bool is_due = now->is_own_user && now->phase == HOST_SERVING && !has_open_ways(now) &&
                  now->users == 1; /* dispatch has the end to tell */
    return is_due ? 0 : loop_wait_ms(now->loop);
}

bay_err host_dispatch(sdk_host *self)
{
    if (self == NULL || (self->serving == NULL && !self->has_served)) {
        return BAY_ERR_STATE;
    }
    if (self->serving == NULL || !self->serving->is_own_user) {
        return BAY_ERR_EOF;
    }
    if (self->serving->is_turning) {
        return BAY_ERR_STATE;
    }
    turn(self->serving, 0);
    return host_look(self);
}

bool host_abandon(sdk_host *self)
{
    host_serving *now = self->serving;
    if (now == NULL) {
        return true;
    }
    if (now->is_turning || now->users > (now->is_own_user ? 1u : 0u)) {
        return false;
    }
    cut(now);
    if (!now->is_own_user) {
        now->users++; /* an earlier end was given up on: once more */
    }
    now->is_own_user = false;
    host_close(self);
    if (self->serving == NULL) {
        return true;
    }
    now->users++; /* host_run may still see to its end */
    now->is_own_user = true;
    begin_end(now);
    return false;
}

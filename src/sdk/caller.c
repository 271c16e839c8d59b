/* A caller of an agent: made, waited for, ended; and its place in an event loop.
 *
 * Invariant: nothing of the program's runs but from `settle`, from what the link tells while the
 * loop turns, and from bay_caller_close. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/caller_parts.h"
#include "sdk/client_parts.h"

/* ---- what is due ----------------------------------------------------------------------------- */

static void tell_connected(bay_caller *self)
{
    void (*connected)(bay_caller * caller, const bay_diag *diag, void *user) = self->connected;
    if (connected == NULL || (self->phase != CALLER_READY && self->phase != CALLER_LOST)) {
        return;
    }
    self->connected = NULL;
    bay_diag diag = self->fault;
    connected(self, &diag, self->connected_user);
}

static void caller_settle(void *of)
{
    bay_caller *self = CONTAINER_OF(of, bay_caller, base);
    tell_connected(self);
    if (self->phase == CALLER_READY) {
        asker_send_waiting(&self->base);
    } else if (self->phase == CALLER_LOST) {
        asker_fail_waiting(&self->base, &self->fault);
    }
    asker_finish(&self->base);
}

static const asker_kind caller_kind = {
    .noun = "caller",
    .items = "operations",
    .most = CALLER_OPERATIONS,
    .closing = BAY_ERR_STATE,
    .settle = caller_settle,
    .send = sdk_operation_send,
    .withdraw = sdk_operation_withdraw,
    .fail = sdk_operation_lose,
    .ended = sdk_operation_ended,
    .tell = sdk_operation_tell,
    .answer_free = sdk_response_release,
    .item_free = sdk_operation_item_free,
};

void sdk_caller_found(bay_caller *self)
{
    self->phase = CALLER_READY;
    self->fault = (bay_diag){0};
    asker_settle_soon(&self->base);
}

void sdk_caller_lost(bay_caller *self, const bay_diag *fault)
{
    self->phase = CALLER_LOST;
    self->fault = *fault;
    asker_settle_soon(&self->base);
}

void sdk_caller_need(bay_caller *self)
{
    if (self->phase == CALLER_LOST) {
        self->phase = CALLER_FETCHING;
        sdk_card_fetch(self);
    }
}

/* ---- being ----------------------------------------------------------------------------------- */

static void caller_free(bay_caller *self)
{
    sdk_card_abandon(self);
    a2a_link_free(self->link);
    asker_fini(&self->base);
    arena_fini(&self->memory);
    buf *texts[] = {&self->origin, &self->remote_error};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        buf_fini(texts[i]);
    }
    sdk_caller_options_fini(&self->options);
    mem_free(self->agent);
    mem_free(self);
}

static void caller_init(bay_caller *self)
{
    arena_init(&self->memory, CALLER_CARD_MEMORY);
    buf_init(&self->origin, CALLER_URL_BYTES);
    buf_init(&self->remote_error, A2A_FAULT_BYTES);
}

static void show_agent(bay_caller *self)
{
    if (self->agent[0] == '{') {
        snprintf(self->base.shown, sizeof(self->base.shown), "the agent of the card given");
    } else {
        sdk_target_show(self->agent, NULL, self->base.shown, sizeof(self->base.shown));
    }
}

/* The resource is the agent, not its card. */
static bay_err make_login(bay_caller *self, bay_diag *diag)
{
    if (self->agent[0] == '{') {
        return diag_set(diag, BAY_ERR_INVALID, "OAuth needs the agent's URL, not its card");
    }
    return sdk_login_new(self->options.base.oauth, self->base.loop,
                         a2a_agent_url(str_of(self->agent)), self->base.tls, true,
                         &self->base.login, diag);
}

static bay_err caller_equip(bay_caller *self, const char *agent, bay_diag *diag)
{
    self->agent = mem_dup(agent, strlen(agent));
    if (self->agent == NULL) {
        return BAY_ERR_NOMEM;
    }
    bay_err err = asker_open(&self->base, &caller_kind, &self->options.base, NULL, diag);
    if (err != BAY_OK) {
        return err;
    }
    show_agent(self);
    http_client_limits limits = http_client_default_limits;
    limits.connections_per_origin = CALLER_CONNECTIONS;
    err = asker_options_http(&self->options.base, self->base.loop, &limits, &self->base.tls,
                             &self->base.http, diag);
    return err == BAY_OK && self->options.base.oauth != NULL ? make_login(self, diag) : err;
}

/* With its loop; its card is being fetched. */
static bay_err caller_new(const char *agent, const bay_caller_options *options, bay_caller **out,
                          bay_diag *diag)
{
    bay_err err = sdk_card_check_agent(agent, diag);
    if (err != BAY_OK) {
        return err;
    }
    bay_caller *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    caller_init(self);
    err = sdk_caller_options_copy(&self->options, options, diag);
    if (err == BAY_OK) {
        bay_diag why = {0};
        err = caller_equip(self, agent, &why);
        if (err != BAY_OK) {
            (void)diag_set(diag, err, "a caller cannot be made: %.200s",
                           why.text[0] != '\0' ? why.text : bay_err_text(err));
        }
    }
    if (err != BAY_OK) {
        caller_free(self);
        return err;
    }
    loop_refresh(self->base.loop);
    sdk_card_fetch(self);
    *out = self;
    return BAY_OK;
}

bay_err bay_caller_connect(const char *agent, const bay_caller_options *options, bay_caller **out,
                           bay_diag *diag)
{
    bay_caller *self = NULL;
    if (agent == NULL || out == NULL) {
        return diag_set(diag, BAY_ERR_INVALID, "no agent");
    }
    bay_err err = caller_new(agent, options, &self, diag);
    if (err != BAY_OK) {
        return err;
    }
    while (self->phase == CALLER_FETCHING) {
        (void)loop_turn(self->base.loop, -1);
    }
    if (self->phase == CALLER_READY) {
        self->base.is_touched = true;
        *out = self;
        return BAY_OK;
    }
    err = diag_set(diag, self->fault.code, "%s", self->fault.text);
    caller_free(self);
    return err;
}

bay_err bay_caller_connect_start(
    const char *agent, const bay_caller_options *options, bay_caller **out, bay_diag *diag,
    void (*connected)(bay_caller *caller, const bay_diag *diag, void *user), void *user)
{
    if (agent == NULL || out == NULL) {
        return diag_set(diag, BAY_ERR_INVALID, "no agent");
    }
    bay_err err = caller_new(agent, options, out, diag);
    if (err == BAY_OK) {
        (*out)->connected = connected;
        (*out)->connected_user = user;
    }
    return err;
}

void bay_caller_close(bay_caller *caller)
{
    if (caller == NULL) {
        return;
    }
    if (!asker_close(&caller->base)) {
        return;
    }
    caller->connected = NULL;
    asker_end_all(&caller->base, "cancelled");
    caller_free(caller);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static const asker *asker_of(const bay_caller *caller)
{
    return caller != NULL ? &caller->base : NULL;
}

int bay_caller_fd(const bay_caller *caller)
{
    return asker_fd(asker_of(caller));
}

int bay_caller_wait_ms(const bay_caller *caller)
{
    return asker_wait_ms(asker_of(caller));
}

bay_err bay_caller_dispatch(bay_caller *caller)
{
    return bay_caller_wait(caller, 0);
}

bay_err bay_caller_wait(bay_caller *caller, int ms)
{
    return asker_turn(caller != NULL ? &caller->base : NULL, ms);
}

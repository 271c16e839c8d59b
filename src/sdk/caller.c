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

static void on_settle(void *argument)
{
    bay_caller *self = argument;
    tell_connected(self);
    if (self->phase == CALLER_READY) {
        sdk_operations_hand_over(self);
    } else if (self->phase == CALLER_LOST) {
        sdk_operations_fail_waiting(self, &self->fault);
    }
    sdk_operations_finish(self);
}

void sdk_caller_settle_soon(bay_caller *self)
{
    loop_defer(self->loop, &self->settle);
}

void sdk_caller_touch(bay_caller *self)
{
    self->is_touched = true;
    if (!loop_is_turning(self->loop)) {
        loop_refresh(self->loop);
    }
}

void sdk_caller_found(bay_caller *self)
{
    self->phase = CALLER_READY;
    self->fault = (bay_diag){0};
    sdk_caller_settle_soon(self);
}

void sdk_caller_lost(bay_caller *self, const bay_diag *fault)
{
    self->phase = CALLER_LOST;
    self->fault = *fault;
    sdk_caller_settle_soon(self);
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
    http_client_free(self->http);
    if (self->loop != NULL) {
        loop_undefer(self->loop, &self->settle);
        loop_free(self->loop);
    }
    tls_free(self->tls);
    arena_fini(&self->memory);
    buf *texts[] = {&self->source, &self->card, &self->origin, &self->remote_error};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        buf_fini(texts[i]);
    }
    sdk_caller_options_fini(&self->options);
    mem_free(self->agent);
    mem_free(self);
}

static void caller_init(bay_caller *self)
{
    list_init(&self->waiting);
    list_init(&self->open);
    list_init(&self->ended);
    self->settle = (loop_task){.function = on_settle, .argument = self};
    arena_init(&self->memory, CALLER_CARD_MEMORY);
    buf_init(&self->source, CALLER_CARD_BYTES);
    buf_init(&self->card, 2 * CALLER_CARD_BYTES);
    buf_init(&self->origin, CALLER_URL_BYTES);
    buf_init(&self->remote_error, A2A_FAULT_BYTES);
    self->is_touched = true;
}

static bay_err make_http(bay_caller *self, bay_diag *diag)
{
    const bay_caller_options *options = &self->options;
    http_client_options http = {.limits = http_client_default_limits};
    tls_options tls = {
        .ca_file = options->ca_file,
        .certificate_file = options->certificate_file,
        .key_file = options->key_file,
    };
    http.limits.connections_per_origin = CALLER_CONNECTIONS;
    bool has_tls = tls.ca_file != NULL || tls.certificate_file != NULL;
    bay_err err = has_tls ? tls_client_new(&tls, &self->tls, diag) : BAY_OK;
    http.tls = self->tls;
    return err == BAY_OK ? http_client_new(self->loop, &http, &self->http) : err;
}

static bay_err caller_equip(bay_caller *self, const char *agent, bay_diag *diag)
{
    self->agent = mem_dup(agent, strlen(agent));
    if (self->agent == NULL) {
        return BAY_NOMEM;
    }
    bay_err err = loop_new(&self->loop);
    if (err != BAY_OK) {
        return err;
    }
    if (self->options.log_sink != NULL) {
        self->log =
            (log_target){self->options.log_sink, self->options.log_user, self->options.log_level};
        loop_set_log(self->loop, &self->log);
    }
    return make_http(self, diag);
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
        return diag_set(diag, BAY_NOMEM, "out of memory");
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
    if (agent[0] == '{') {
        snprintf(self->shown, sizeof(self->shown), "the agent of the card given");
    } else {
        sdk_target_show(agent, NULL, self->shown, sizeof(self->shown));
    }
    loop_refresh(self->loop);
    sdk_card_fetch(self);
    *out = self;
    return BAY_OK;
}

bay_err bay_caller_connect(const char *agent, const bay_caller_options *options, bay_caller **out,
                           bay_diag *diag)
{
    bay_caller *self = NULL;
    if (agent == NULL || out == NULL) {
        return diag_set(diag, BAY_INVALID, "no agent");
    }
    bay_err err = caller_new(agent, options, &self, diag);
    if (err != BAY_OK) {
        return err;
    }
    while (self->phase == CALLER_FETCHING) {
        (void)loop_turn(self->loop, -1);
    }
    if (self->phase == CALLER_READY) {
        self->is_touched = true;
        *out = self;
        return BAY_OK;
    }
    err = diag_set(diag, self->fault.code, "%s", self->fault.text);
    caller_free(self);
    return err;
}

bay_err bay_caller_begin(const char *agent, const bay_caller_options *options,
                         void (*connected)(bay_caller *caller, const bay_diag *diag, void *user),
                         void *user, bay_caller **out, bay_diag *diag)
{
    if (agent == NULL || out == NULL) {
        return diag_set(diag, BAY_INVALID, "no agent");
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
    if (loop_is_turning(caller->loop) || caller->phase == CALLER_CLOSING) {
        LOG(LOG_ERROR, "caller", "%s: bay_caller_close inside a callback does nothing",
            caller->shown);
        return;
    }
    caller->phase = CALLER_CLOSING;
    caller->connected = NULL;
    sdk_operations_end(caller);
    sdk_operations_finish(caller);
    caller_free(caller);
}

/* ---- the loop -------------------------------------------------------------------------------- */

bay_err sdk_caller_check_waiting(const bay_caller *self, bay_diag *diag)
{
    if (self->phase == CALLER_CLOSING) {
        return diag_set(diag, BAY_STATE, "the caller is being closed");
    }
    if (loop_is_turning(self->loop)) {
        return diag_set(diag, BAY_STATE,
                        "inside a callback nothing can be waited for: start it, or do it later");
    }
    return BAY_OK;
}

int bay_caller_fd(const bay_caller *caller)
{
    return caller != NULL ? loop_fd(caller->loop) : -1;
}

int bay_caller_wait_ms(const bay_caller *caller)
{
    if (caller == NULL) {
        return -1;
    }
    /* what was just started is not yet among what the descriptor watches */
    return caller->is_touched ? 0 : loop_wait_ms(caller->loop);
}

bay_err bay_caller_dispatch(bay_caller *caller)
{
    return bay_caller_wait(caller, 0);
}

bay_err bay_caller_wait(bay_caller *caller, int ms)
{
    if (caller == NULL) {
        return BAY_INVALID;
    }
    if (loop_is_turning(caller->loop) || caller->phase == CALLER_CLOSING) {
        return BAY_STATE;
    }
    caller->is_touched = false;
    (void)loop_turn(caller->loop, ms);
    return BAY_OK;
}

/* A client: made, waited for, ended, asked about; and its place in an event loop. Its link is in
 * client_link.c.
 *
 * Invariant: nothing of the caller runs but from the end of a turn of the loop, from what the link
 * tells while the loop turns, and from bay_client_close. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/client_parts.h"
#include "sdk/serving.h"

enum { CLOSE_MS = 5000, LAST_WORDS_MS = 1000 };

static const asker_kind client_kind = {
    .noun = "client",
    .items = "requests",
    .most = CLIENT_MAX_REQUESTS,
    .closing = BAY_ERR_CLOSED,
    .settle = sdk_client_settle,
    .send = sdk_request_send,
    .withdraw = sdk_request_give_up,
    .fail = sdk_request_lose,
    .ended = sdk_request_ended,
    .tell = sdk_request_tell,
    .answer_free = sdk_reply_release,
    .item_free = sdk_request_release,
};

/* ---- making a client ------------------------------------------------------------------------- */

static bay_err render_roots(bay_client *self)
{
    const asker_settings *roots = &self->options.roots;
    const char **pairs = mem_array(2 * roots->count + 1, sizeof(*pairs));
    if (pairs == NULL) {
        return BAY_ERR_NOMEM;
    }
    for (size_t i = 0; i < roots->count; i++) {
        pairs[2 * i] = roots->at[i].name;
        pairs[2 * i + 1] = roots->at[i].value != NULL ? roots->at[i].value : "";
    }
    bay_err err = sdk_client_render_roots(self, pairs);
    mem_free(pairs);
    return err;
}

static void client_free(bay_client *self)
{
    sdk_client_link_fini(self);
    asker_stop(&self->base);
    sdk_skills_end(self);
    sdk_lists_fini(self);
    if (self->attached != NULL) {
        loop_turn(self->base.loop, 0); /* buries the link */
    }
    asker_fini(&self->base);
    if (self->attached != NULL) {
        sdk_serving_close(self->attached);
    }
    for (size_t i = 0; self->argv != NULL && self->argv[i] != NULL; i++) {
        mem_free(self->argv[i]);
    }
    mem_free(self->argv);
    mem_free(self->url);
    sdk_client_forget_subscriptions(self);
    mem_free(self->roots);
    buf_fini(&self->remote_error);
    sdk_options_fini(&self->options);
    mem_free(self);
}

/* With its loop, without a target. */
static bay_err client_new(struct bay_server *attached, const bay_client_options *options,
                          bay_client **out, bay_diag *diag)
{
    bay_client *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    bay_err err = sdk_options_copy(&self->options, options, diag);
    if (err != BAY_OK) {
        mem_free(self);
        return err;
    }
    err = attached != NULL ? sdk_serving_open(attached, diag) : BAY_OK;
    if (err == BAY_OK) {
        loop *lent = attached != NULL ? sdk_serving_loop(attached) : NULL;
        err = asker_open(&self->base, &client_kind, &self->options.base, lent, diag);
    }
    if (err != BAY_OK) {
        sdk_options_fini(&self->options);
        mem_free(self);
        return err;
    }
    self->attached = attached;
    list_init(&self->listings);
    list_init(&self->questions);
    list_init(&self->refused_skills);
    sdk_client_link_init(self);
    map_init(&self->subscriptions, CLIENT_MAX_SUBSCRIPTIONS);
    buf_init(&self->remote_error, CLIENT_MAX_REPLY);
    self->level = MCP_LOG_NONE;
    self->wants_changes = self->options.changed != NULL;
    err = render_roots(self);
    if (err != BAY_OK) {
        client_free(self);
        return diag_set(diag, err, "the roots: %s", bay_err_text(err));
    }
    *out = self;
    return BAY_OK;
}

static bay_err client_aim(bay_client *self, const char *target, bay_diag *diag)
{
    bool is_url = strncasecmp(target, "http://", 7) == 0 || strncasecmp(target, "https://", 8) == 0;
    if (strncmp(target, "stdio:", 6) == 0) {
        return sdk_target_words(target + 6, &self->argv, diag);
    }
    if (!is_url) {
        /* of anything with an address only the scheme is shown: the rest may hold a password */
        bay_str text = str_of(target);
        size_t scheme = str_find(text, ':');
        text = str_head(text, scheme < text.len ? scheme + 1 : 100);
        return diag_set(diag, BAY_ERR_INVALID,
                        "\"%.*s%s\" is no target: give an http:// or https:// URL, or stdio: and a "
                        "command",
                        BAY_STR(str_head(text, 100)), text.len < strlen(target) ? "…" : "");
    }
    self->url = mem_dup(target, strlen(target));
    if (self->url == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    bay_err err =
        asker_options_http(&self->options.base, self->base.loop, &http_client_default_limits,
                           &self->base.tls, &self->base.http, diag);
    if (err == BAY_OK && self->options.base.oauth != NULL) {
        err = sdk_login_new(self->options.base.oauth, self->base.loop, str_of(self->url),
                            self->base.tls, false, &self->base.login, diag);
    }
    return err;
}

/* The first link is opened; what comes of it is known later. */
static void client_begin(bay_client *self)
{
    sdk_target_show(self->url, (const char *const *)self->argv, self->base.shown,
                    sizeof(self->base.shown));
    loop_refresh(self->base.loop);
    sdk_client_open(self);
}

/* Takes the client. */
static bay_err client_await(bay_client *self, bay_client **out, bay_diag *diag)
{
    client_begin(self);
    while (self->phase != CLIENT_READY && !self->has_given_up) {
        if (self->phase == CLIENT_LOST && !self->is_link_broken) {
            break;
        }
        (void)loop_turn(self->base.loop, -1);
    }
    if (self->phase == CLIENT_READY) {
        self->base.is_touched = true;
        *out = self;
        return BAY_OK;
    }
    bay_err err = diag_set(diag, self->fault.code, "cannot connect to %s", self->fault.text);
    self->base.is_closing = true;
    self->phase = CLIENT_CLOSING;
    asker_end_all(&self->base, "the client was closed"); /* a callback may have started something */
    sdk_lists_finish(self);
    client_free(self);
    return err;
}

bay_err bay_client_connect(const char *target, const bay_client_options *options, bay_client **out,
                           bay_diag *diag)
{
    bay_client *self = NULL;
    if (target == NULL || out == NULL) {
        return diag_set(diag, BAY_ERR_INVALID, "no target");
    }
    bay_err err = client_new(NULL, options, &self, diag);
    if (err != BAY_OK) {
        return err;
    }
    err = client_aim(self, target, diag);
    if (err != BAY_OK) {
        client_free(self);
        return err;
    }
    return client_await(self, out, diag);
}

bay_err bay_client_spawn(const char *const *argv, const bay_client_options *options,
                         bay_client **out, bay_diag *diag)
{
    bay_client *self = NULL;
    if (argv == NULL || argv[0] == NULL || out == NULL) {
        return diag_set(diag, BAY_ERR_INVALID, "no command");
    }
    bay_err err = client_new(NULL, options, &self, diag);
    if (err != BAY_OK) {
        return err;
    }
    err = sdk_target_copy_words(argv, &self->argv, diag);
    if (err != BAY_OK) {
        client_free(self);
        return err;
    }
    return client_await(self, out, diag);
}

bay_err bay_client_attach(struct bay_server *server, const bay_client_options *options,
                          bay_client **out, bay_diag *diag)
{
    bay_client *self = NULL;
    if (server == NULL || out == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "no server: there was no memory to make one");
    }
    loop *on = sdk_serving_loop(server);
    if (on != NULL && loop_is_turning(on)) {
        return diag_set(diag, BAY_ERR_STATE, ASKER_INSIDE);
    }
    bay_err err = client_new(server, options, &self, diag);
    return err == BAY_OK ? client_await(self, out, diag) : err;
}

bay_err bay_client_connect_start(
    const char *target, const bay_client_options *options, bay_client **out, bay_diag *diag,
    void (*connected)(bay_client *client, const bay_diag *diag, void *user), void *user)
{
    bay_client *self = NULL;
    if (target == NULL || out == NULL) {
        return diag_set(diag, BAY_ERR_INVALID, "no target");
    }
    bay_err err = client_new(NULL, options, &self, diag);
    if (err != BAY_OK) {
        return err;
    }
    err = client_aim(self, target, diag);
    if (err != BAY_OK) {
        client_free(self);
        return err;
    }
    self->connected = connected;
    self->connected_user = user;
    client_begin(self);
    *out = self;
    return BAY_OK;
}

/* ---- ending ---------------------------------------------------------------------------------- */

static void link_left(void *user)
{
    bay_client *self = user;
    self->is_closed = true;
}

/* What was given up a moment ago may have left a task to cancel: the only calls there still are. */
static void say_last_words(bay_client *self)
{
    mcp_client *engine = sdk_client_engine(self);
    loop_refresh(self->base.loop);
    uint64_t end = loop_now_ms(self->base.loop) + LAST_WORDS_MS;
    while (engine != NULL && mcp_client_open_calls(engine) > 0 &&
           loop_now_ms(self->base.loop) < end) {
        (void)loop_turn(self->base.loop, (int64_t)(end - loop_now_ms(self->base.loop)));
        engine = sdk_client_engine(self);
    }
}

static void link_end(bay_client *self)
{
    if (self->link == NULL || self->is_link_broken) {
        return;
    }
    loop_refresh(self->base.loop);
    uint64_t end = loop_now_ms(self->base.loop) + CLOSE_MS;
    mcp_link_close(self->link, link_left, self);
    while (!self->is_closed && loop_now_ms(self->base.loop) < end) {
        (void)loop_turn(self->base.loop, (int64_t)(end - loop_now_ms(self->base.loop)));
    }
}

void bay_client_close(bay_client *client)
{
    if (client == NULL) {
        return;
    }
    if (!asker_close(&client->base)) {
        return;
    }
    client->phase = CLIENT_CLOSING;
    client->connected = NULL;
    loop_timer_stop(client->base.loop, &client->retry);
    asker_end_all(&client->base, "the client was closed");
    sdk_lists_finish(client);
    sdk_questions_end(client);
    say_last_words(client);
    link_end(client);
    client_free(client);
}

/* ---- about it -------------------------------------------------------------------------------- */

bay_str bay_client_revision(const bay_client *client)
{
    bool is_known = client != NULL && client->about != NULL;
    return is_known ? client->about->revision->text : (bay_str){NULL, 0};
}

bay_str bay_client_server_info(const bay_client *client)
{
    bool is_known = client != NULL && client->about != NULL;
    return is_known ? client->about->info : (bay_str){NULL, 0};
}

bay_str bay_client_capabilities(const bay_client *client)
{
    bool is_known = client != NULL && client->about != NULL;
    return is_known ? client->about->capabilities : (bay_str){NULL, 0};
}

bay_str bay_client_instructions(const bay_client *client)
{
    bool is_known = client != NULL && client->about != NULL;
    return is_known ? client->about->instructions : (bay_str){NULL, 0};
}

bool bay_client_has(const bay_client *client, const char *capability)
{
    if (client == NULL || client->about == NULL || capability == NULL) {
        return false;
    }
    json_val said = mcp_capability(client->about->can, str_of(capability));
    json_kind kind = json_kind_of(said);
    return kind != JSON_MISSING && kind != JSON_NULL && kind != JSON_FALSE;
}

bay_str bay_client_remote_error(const bay_client *client)
{
    return client != NULL ? buf_view(&client->remote_error) : (bay_str){NULL, 0};
}

const char *sdk_client_where(const bay_client *self)
{
    return self->base.shown;
}

mcp_client *sdk_client_engine(bay_client *self)
{
    return self->link != NULL && !self->is_link_broken ? mcp_link_client(self->link) : NULL;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static const asker *asker_of(const bay_client *client)
{
    return client != NULL ? &client->base : NULL;
}

int bay_client_fd(const bay_client *client)
{
    return asker_fd(asker_of(client));
}

int bay_client_wait_ms(const bay_client *client)
{
    return asker_wait_ms(asker_of(client));
}

bay_err bay_client_dispatch(bay_client *client)
{
    return bay_client_wait(client, 0);
}

bay_err bay_client_wait(bay_client *client, int ms)
{
    bay_err err = asker_turn(client != NULL ? &client->base : NULL, ms);
    bool is_given_up = err == BAY_OK && client->has_given_up && client->phase == CLIENT_LOST;
    return is_given_up ? BAY_ERR_CLOSED : err;
}

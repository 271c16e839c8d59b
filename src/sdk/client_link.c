/* The links of a client: the lives that follow each other, what they tell, and the pauses between.
 *
 *   LOST --a request, a subscription--> OPENING --ready--> READY
 *     ^  \--too early after a failure--> PAUSING --time--> OPENING, READY
 *     |                                     ^                |
 *     \--given up: too often, or for good---+---broken, nobody answers
 *   any --bay_client_close--> CLOSING
 *
 * Invariants
 * - A link lives one life: when it breaks it is freed in `settle`, never in its own callbacks.
 * - In PAUSING there may be a link (HTTP: the address did not answer, the session may still be
 *   good); in LOST there is none, or a broken one that `settle` frees.
 * - What is WAITING is handed to the engine in READY only, in the order in which it was started. */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "sdk/client_parts.h"
#include "sdk/serving.h"
#include "json/build.h"

enum { TERM_MS = 2000, KILL_MS = 2000, PROBE_MS = 3000 };

/* ---- failures and pauses --------------------------------------------------------------------- */

static uint64_t client_now(const bay_client *self)
{
    return loop_now_ms(self->base.loop);
}

/* ± a quarter, so that many clients of one server do not come back at once. */
static uint64_t client_pause_ms(const bay_client *self)
{
    uint64_t pause = CLIENT_RECONNECT_FIRST_MS;
    for (uint32_t i = 1; i < self->failures && pause < self->options.longest_ms; i++) {
        pause *= 2;
    }
    pause = pause < self->options.longest_ms ? pause : self->options.longest_ms;
    return pause - pause / 4 + rand_u64() % (pause / 2 + 1);
}

static void client_give_up(bay_client *self)
{
    self->phase = CLIENT_LOST;
    self->has_given_up = true;
    self->failures = 0;
    asker_fail_waiting(&self->base, &self->fault);
}

/* Is there a point in trying again? What broke a link that was in use (a line that was too long,
 * the hundredth of garbage) says nothing of the next one. */
static bool client_may_retry(const bay_client *self)
{
    return self->was_ready && self->failures <= self->options.attempts &&
           (self->broke_in_use || bay_err_class_of(self->fault.code) == BAY_ERR_CLASS_RETRY);
}

static bool client_is_needed(const bay_client *self)
{
    bool is_listening = self->subscriptions.len > 0 || self->options.changed != NULL;
    return self->base.waiting > 0 || (is_listening && !self->has_given_up);
}

/* Goes on when the pause is over: at once, or by the timer. */
static void client_plan(bay_client *self)
{
    uint64_t now = client_now(self);
    if (self->failures > 0 && !client_may_retry(self)) {
        client_give_up(self);
        return;
    }
    if (self->failures == 0 || now >= self->retry_at_ms) {
        sdk_client_open(self);
        return;
    }
    self->phase = CLIENT_PAUSING;
    bay_err err = loop_timer_start(self->base.loop, &self->retry, self->retry_at_ms - now);
    if (err != BAY_OK) {
        (void)diag_set(&self->fault, err, "%s: %s", self->base.shown, bay_err_text(err));
        client_give_up(self);
    }
}

static void client_fail(bay_client *self, bay_err err, const char *text)
{
    const char *hint = "";
    if (err == BAY_ERR_CONNECT) {
        hint = "; is the server running there?";
    } else if (err == BAY_ERR_RESOLVE) {
        hint = "; is its name right?";
    }
    (void)diag_set(&self->fault, err, "%.200s: %s%s", self->base.shown,
                   text != NULL && text[0] != '\0' ? text : bay_err_text(err), hint);
    self->broke_in_use = self->phase == CLIENT_READY || self->phase == CLIENT_PAUSING;
    self->failures++;
    self->retry_at_ms = client_now(self) + client_pause_ms(self);
}

void sdk_client_unreachable(bay_client *self, bay_err err, const char *text)
{
    mcp_client *engine = sdk_client_engine(self);
    bool is_breaking = engine == NULL || mcp_client_state_of(engine) == MCP_CLIENT_BROKEN;
    if (self->phase != CLIENT_READY || is_breaking) {
        return; /* told already by another request, or about to be told by the link */
    }
    client_fail(self, err, text);
    if (loop_timer_start(self->base.loop, &self->retry, self->retry_at_ms - client_now(self)) ==
        BAY_OK) {
        self->phase = CLIENT_PAUSING;
    }
}

void sdk_client_alive(bay_client *self)
{
    self->failures = 0;
    self->has_given_up = false;
}

void sdk_client_need(bay_client *self)
{
    if (self->phase == CLIENT_LOST) {
        self->has_given_up = false;
    }
    asker_settle_soon(&self->base);
}

/* ---- what the link tells --------------------------------------------------------------------- */

static void about_free(client_about *self)
{
    while (self != NULL) {
        client_about *older = self->older;
        buf_fini(&self->text);
        arena_fini(&self->memory);
        mem_free(self);
        self = older;
    }
}

/* Views into an older one were given away: it stays, as long as there are not too many. */
static void about_put(bay_client *self, client_about *made)
{
    size_t count = 0;
    made->older = self->about;
    self->about = made;
    for (client_about *at = made; at != NULL; at = at->older) {
        if (++count == CLIENT_MAX_ABOUTS) {
            about_free(at->older);
            at->older = NULL;
        }
    }
}

static bay_err about_learn(bay_client *self)
{
    mcp_client *engine = mcp_link_client(self->link);
    bay_str info = json_raw(mcp_client_server_info(engine));
    json_val can = mcp_client_server_capabilities(engine);
    bay_str capabilities;
    bay_str instructions = mcp_client_instructions(engine);
    can = json_is(can, JSON_MISSING) ? json_empty_object() : can;
    capabilities = json_raw(can);
    const client_about *known = self->about;
    if (known != NULL && known->revision == mcp_client_revision(engine) &&
        str_eq(known->info, info) && str_eq(known->capabilities, capabilities) &&
        str_eq(known->instructions, instructions)) {
        return BAY_OK;
    }
    client_about *made = mem_zalloc(sizeof(*made));
    if (made == NULL) {
        return BAY_ERR_NOMEM;
    }
    buf_init(&made->text, CLIENT_MAX_REPLY);
    arena_init(&made->memory, CLIENT_MAX_PARSED);
    buf_str(&made->text, info);
    buf_str(&made->text, capabilities);
    buf_str(&made->text, instructions);
    bay_err err = made->text.err;
    if (err == BAY_OK) {
        bay_str rest = buf_view(&made->text);
        made->info = str_head(rest, info.len);
        rest = str_from(rest, info.len);
        made->capabilities = str_head(rest, capabilities.len);
        made->instructions = str_from(rest, capabilities.len);
        made->revision = mcp_client_revision(engine);
        err = json_clone_in(can, &made->memory, &made->can);
    }
    if (err != BAY_OK) {
        about_free(made);
        return err;
    }
    about_put(self, made);
    return BAY_OK;
}

static void link_broken(void *user, bay_err err, const char *text)
{
    bay_client *self = user;
    if (self->is_link_broken || self->phase == CLIENT_CLOSING) {
        return;
    }
    self->is_link_broken = true;
    mcp_link_log_last_lines(self->link);
    loop_timer_stop(self->base.loop, &self->retry);
    bool was_silent = !self->was_ready && self->argv != NULL && err == BAY_ERR_CLOSED;
    client_fail(self, err, was_silent ? "it ended before it could be spoken to" : text);
    self->phase = CLIENT_LOST;
    asker_settle_soon(&self->base);
}

static void link_ready(void *user)
{
    bay_client *self = user;
    if (self->is_link_broken || self->phase == CLIENT_CLOSING) {
        return;
    }
    bay_err err = about_learn(self);
    if (err != BAY_OK) {
        link_broken(self, err, "what the server says of itself could not be kept");
        return;
    }
    self->remembered = self->about->revision->era == MCP_LEGACY ? self->about->revision : NULL;
    self->was_ready = true;
    if (self->phase == CLIENT_OPENING) {
        self->phase = CLIENT_READY;
    }
    asker_settle_soon(&self->base);
}

static void link_changed(void *user, mcp_change change)
{
    bay_client *self = user;
    mcp_change which = mcp_change_any(change);
    bay_kind kind = which == MCP_CHANGE_TOOLS     ? BAY_KIND_TOOLS
                    : which == MCP_CHANGE_PROMPTS ? BAY_KIND_PROMPTS
                                                  : BAY_KIND_RESOURCES;
    sdk_lists_changed(self, kind);
    if (self->options.changed != NULL && self->phase != CLIENT_CLOSING) {
        self->options.changed(self, kind, self->options.changed_user);
    }
}

static void link_updated(void *user, bay_str uri)
{
    bay_client *self = user;
    if (self->options.updated != NULL && self->phase != CLIENT_CLOSING) {
        self->options.updated(self, uri, self->options.updated_user);
    }
}

static void link_logged(void *user, json_val params)
{
    bay_client *self = user;
    if (self->options.logged != NULL && self->phase != CLIENT_CLOSING) {
        self->options.logged(self, json_raw(params), self->options.logged_user);
    }
}

static bool link_asked(void *user, const rpc_message *request)
{
    bay_client *self = user;
    return self->phase != CLIENT_CLOSING && sdk_question_arrived(self, NULL, request);
}

static void link_withdrawn(void *user, bay_str id)
{
    sdk_question_withdrawn(user, id);
}

static void link_traced(void *user, bool is_outgoing, bay_str message, const mcp_field *fields,
                        size_t count)
{
    bay_client *self = user;
    (void)fields, (void)count;
    if (self->options.traced != NULL && !self->base.is_tracing) {
        self->base.is_tracing = true;
        self->options.traced(self, is_outgoing, message, self->options.traced_user);
        self->base.is_tracing = false;
    }
}

static const mcp_client_events link_events = {
    .ready = link_ready,
    .broken = link_broken,
    .changed = link_changed,
    .updated = link_updated,
    .logged = link_logged,
    .asked = link_asked,
    .withdrawn = link_withdrawn,
};

static const mcp_client_events traced_events = {
    .ready = link_ready,
    .broken = link_broken,
    .changed = link_changed,
    .updated = link_updated,
    .logged = link_logged,
    .asked = link_asked,
    .withdrawn = link_withdrawn,
    .traced = link_traced,
};

/* ---- making a link --------------------------------------------------------------------------- */

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static http_authority *link_authority(void *user, const auth_principal *principal)
{
    bay_client *self = user;
    (void)principal;
    return sdk_login_http(self->base.login);
}

static mcp_link_options link_options(bay_client *self, bay_str capabilities)
{
    const bay_client_options *options = &self->options;
    bool is_http_only = self->url != NULL && options->transport == BAY_TRANSPORT_HTTP;
    mcp_link_options out = {
        .events = options->traced != NULL ? &traced_events : &link_events,
        .user = self,
        .term_ms = TERM_MS,
        .kill_ms = KILL_MS,
        .authority = self->base.login != NULL ? link_authority : NULL,
    };
    out.client = (mcp_client_options){
        .label = str_of(self->base.shown),
        .name = str_of(options->name != NULL ? options->name : "patchbay"),
        .version = str_of(options->version != NULL ? options->version : bay_version()),
        .capabilities = capabilities,
        .oldest = options->oldest,
        .newest = options->newest,
        .remembered = self->remembered,
        .probe_timeout_ms = least(PROBE_MS, options->idle_ms),
        .call_timeout_ms = options->idle_ms,
        .max_total_ms = options->total_ms,
        .max_calls = CLIENT_MAX_REQUESTS,
        .wants_changes = self->wants_changes,
    };
    /* Without 2024-11-05 there is nothing to fall back to: that is its only other transport. */
    if (is_http_only && out.client.oldest < MCP_REV_2025_03_26 &&
        out.client.newest >= MCP_REV_2025_03_26) {
        out.client.oldest = MCP_REV_2025_03_26;
    }
    return out;
}

static bay_err open_url(bay_client *self, const mcp_link_options *options, bay_diag *diag)
{
    const asker_settings *headers = &self->options.base.headers;
    bay_err err = BAY_OK;
    http_field *fields = NULL;
    if (headers->count > 0) {
        fields = mem_array(headers->count, sizeof(*fields));
        err = fields != NULL ? BAY_OK : BAY_ERR_NOMEM;
    }
    for (size_t i = 0; err == BAY_OK && i < headers->count; i++) {
        fields[i] = (http_field){str_of(headers->at[i].name), str_of(headers->at[i].value)};
    }
    if (err == BAY_OK) {
        bool is_sse = self->options.transport == BAY_TRANSPORT_SSE_2024;
        err = mcp_link_open_http(self->base.loop, self->base.http, str_of(self->url), fields,
                                 headers->count, is_sse, options, &self->link, diag);
    }
    mem_free(fields);
    return err;
}

static bool is_replaced(const asker_settings *env, const char *inherited)
{
    size_t len = strcspn(inherited, "=");
    for (size_t i = 0; i < env->count; i++) {
        if (strncmp(env->at[i].name, inherited, len) == 0 && env->at[i].name[len] == '=') {
            return true;
        }
    }
    return false;
}

/* The inherited variables; those given again replace them. NULL: no memory. */
static const char **environment_of(const asker_settings *given)
{
    extern char **environ;
    size_t inherited = 0;
    while (environ != NULL && environ[inherited] != NULL) {
        inherited++;
    }
    const char **out = mem_array(inherited + given->count + 1, sizeof(*out));
    size_t count = 0;
    for (size_t i = 0; out != NULL && i < inherited; i++) {
        if (!is_replaced(given, environ[i])) {
            out[count++] = environ[i];
        }
    }
    for (size_t i = 0; out != NULL && i < given->count; i++) {
        out[count++] = given->at[i].name;
    }
    return out;
}

static bay_err open_command(bay_client *self, const mcp_link_options *options, bay_diag *diag)
{
    const char **env = environment_of(&self->options.env);
    if (env == NULL) {
        return BAY_ERR_NOMEM;
    }
    /* A client may be handed from thread to thread: only the first thread lives as long as we do.
     */
    process_options child = {
        .argv = (const char *const *)self->argv,
        .env = env,
        .cwd = self->options.directory,
        .outlives_thread = syscall(SYS_gettid) != getpid(),
    };
    bay_err err = mcp_link_open_stdio(self->base.loop, &child, str_of(self->argv[0]), options,
                                      &self->link, diag);
    mem_free(env);
    return err;
}

static void renew_wishes(bay_client *self)
{
    mcp_client *engine = mcp_link_client(self->link);
    size_t cursor = 0;
    bay_str uri;
    void *value;
    mcp_client_note_level(engine, self->level);
    while (map_next(&self->subscriptions, &cursor, &uri, &value)) {
        if (mcp_client_note_subscription(engine, uri, true, client_now(self)) != BAY_OK) {
            LOG(LOG_WARN, "client", "%s: out of memory: a subscription is lost", self->base.shown);
        }
    }
}

void sdk_client_open(bay_client *self)
{
    bay_diag diag = {0};
    buf capabilities;
    self->phase = CLIENT_OPENING;
    self->link = NULL;
    buf_init(&capabilities, 4 * CLIENT_MAX_TEXT);
    bay_err err = sdk_options_write_capabilities(&self->options, &capabilities);
    if (err == BAY_OK) {
        mcp_link_options options = link_options(self, buf_view(&capabilities));
        if (self->attached != NULL) {
            options.principal = principal_local();
            err = options.principal != NULL
                      ? mcp_link_open_local(self->base.loop, sdk_serving_engine(self->attached),
                                            &options, &self->link)
                      : BAY_ERR_NOMEM;
            principal_unref(options.principal);
        } else if (self->url != NULL) {
            err = open_url(self, &options, &diag);
        } else {
            err = open_command(self, &options, &diag);
        }
    }
    buf_fini(&capabilities);
    if (err != BAY_OK) {
        self->link = NULL;
        client_fail(self, err, diag.text);
        self->phase = CLIENT_LOST;
        asker_settle_soon(&self->base);
        return;
    }
    self->links++;
    renew_wishes(self);
}

/* ---- the end of a turn ----------------------------------------------------------------------- */

static void reap_link(bay_client *self)
{
    if (self->is_link_broken) {
        mcp_link *old = self->link;
        self->link = NULL;
        self->is_link_broken = false;
        mcp_link_free(old);
        sdk_questions_end(self);
    }
}

static void tell_connected(bay_client *self)
{
    void (*connected)(bay_client * client, const bay_diag *diag, void *user) = self->connected;
    bool is_known = self->phase == CLIENT_READY || self->has_given_up;
    if (connected != NULL && is_known) {
        bay_diag diag = {0};
        if (self->phase != CLIENT_READY) {
            diag = self->fault;
        }
        self->connected = NULL;
        connected(self, &diag, self->connected_user);
    }
}

void sdk_client_settle(void *of)
{
    bay_client *self = CONTAINER_OF(of, bay_client, base);
    if (self->phase == CLIENT_CLOSING) {
        return; /* bay_client_close sees to what is left */
    }
    reap_link(self);
    if (self->phase == CLIENT_LOST && (client_is_needed(self) || self->connected != NULL)) {
        client_plan(self);
    }
    tell_connected(self);
    if (self->phase == CLIENT_READY) {
        asker_send_waiting(&self->base);
    }
    asker_finish(&self->base);
    sdk_lists_finish(self);
}

static void on_retry(void *argument)
{
    bay_client *self = argument;
    if (self->phase != CLIENT_PAUSING) {
        return;
    }
    if (self->link != NULL) {
        self->phase = CLIENT_READY;
    } else {
        self->phase = CLIENT_LOST;
    }
    asker_settle_soon(&self->base);
}

void sdk_client_link_init(bay_client *self)
{
    loop_timer_init(&self->retry, on_retry, self);
}

void sdk_client_link_fini(bay_client *self)
{
    loop_timer_stop(self->base.loop, &self->retry);
    mcp_link_free(self->link);
    about_free(self->about);
}

#include "oauth/login.h"

#include "auth/access_token.h"
#include "auth/oauth_form.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "oauth/authority.h"

enum { TEXT_BYTES = 64 << 10, TOKEN_MEMORY_BYTES = 256 << 10 };

struct oauth_login {
    loop *loop;
    oauth_issuer *issuer;
    oauth_issuer_link *keys;
    tls_context *tls; /* NULL: the system's trust */
    arena memory;     /* of the options' texts */
    oauth_login_options options;
    list steps;  /* under way */
    list spares; /* whose clients are kept */
    size_t step_count;
    size_t spare_count;
    uint64_t rests_until_ms; /* the loop's clock */
};

struct oauth_login_step {
    list_link link;
    oauth_login *of;
    oauth_authority *authority;
    bay_str redirect_uri; /* of `authority`, owned */
    bool is_begin;
    bool has_waited; /* for a key that was not known */
    oauth_login_done done;
    void *user;
    loop_timer timer;
    oauth_wait wait; /* for keys */
};

/* ---- ends ------------------------------------------------------------------------------------ */

static void step_free(oauth_login_step *self)
{
    oauth_authority_free(self->authority);
    mem_free((void *)(uintptr_t)self->redirect_uri.at);
    mem_free(self);
}

/* It is under way no more; its client goes on, with what it read of the provider, if it is at
 * rest. */
static void step_retire(oauth_login_step *self, bool is_at_rest)
{
    oauth_login *of = self->of;
    loop_timer_stop(of->loop, &self->timer);
    oauth_wait_cancel(&self->wait);
    list_remove(&self->link);
    of->step_count--;
    if (!is_at_rest || of->spare_count == OAUTH_LOGIN_SPARES) {
        step_free(self);
        return;
    }
    oauth_authority_abandon(self->authority);
    list_push(&of->spares, &self->link);
    of->spare_count++;
}

static void step_end(oauth_login_step *self, const oauth_login_outcome *outcome, bool is_at_rest)
{
    oauth_login_done done = self->done;
    void *user = self->user;
    if (bay_err_class_of(outcome->err) == BAY_ERR_CLASS_RETRY && self->is_begin) {
        self->of->rests_until_ms = loop_now_ms(self->of->loop) + OAUTH_LOGIN_REST_MS;
    }
    step_retire(self, is_at_rest);
    done(user, outcome);
}

static void step_fail(oauth_login_step *self, bay_err err, const char *text, bool is_at_rest)
{
    const oauth_login_outcome outcome = {
        .err = err, .text = text != NULL && text[0] != '\0' ? text : bay_err_text(err)};
    step_end(self, &outcome, is_at_rest);
}

static void on_timeout(void *argument)
{
    step_fail(argument, BAY_ERR_TIMEOUT, "the provider took too long", false);
}

/* ---- the ID token ---------------------------------------------------------------------------- */

/* BAY_ERR_AGAIN: its key is being fetched. */
static bay_err verify(oauth_login_step *self, const access_token *token, bay_diag *diag)
{
    oauth_issuer_link *keys = self->of->keys;
    jose_keys *set = NULL;
    uint32_t retry_ms = 0;
    bay_err err = oauth_issuer_link_keys(keys, &set, &retry_ms);
    if (err != BAY_OK) {
        return err == BAY_ERR_BUSY ? diag_set(diag, err, "the provider's keys cannot be had") : err;
    }
    err = access_token_verify(token, set, diag);
    jose_keys_free(set);
    if (err == BAY_ERR_NOT_FOUND) {
        err = oauth_issuer_link_refresh(keys, token->key_id, self->has_waited);
        self->has_waited = err == BAY_ERR_AGAIN;
        err = err == BAY_ERR_NOT_FOUND ? BAY_ERR_DENIED : err;
    }
    return err;
}

static bay_err read_token(oauth_login_step *self, arena *memory, const auth_principal **out,
                          bay_diag *diag)
{
    const oauth_login_options *options = &self->of->options;
    const oauth_client *client = oauth_authority_client(self->authority);
    access_rules rules = {.issuer = oauth_issuer_url(self->of->issuer),
                          .audiences = &options->client_id,
                          .audience_count = 1,
                          .algorithms = options->algorithms,
                          .now_ms = loop_time_ms(),
                          .skew_ms = options->skew_ms};
    access_token token;
    access_claims claims;
    bay_err err = access_token_read(oauth_client_id_token(client), memory, &token, diag);
    if (err == BAY_OK) {
        err = id_token_check(&token, &rules, oauth_client_nonce(client), memory, &claims, diag);
    }
    if (err == BAY_OK) {
        err = verify(self, &token, diag);
    }
    if (err == BAY_OK) {
        claims.who.expires_at_ms = rules.now_ms + options->session_ms;
        err = access_claims_principal(&claims, NULL, 0, out, diag);
    }
    return err;
}

static void on_keys(void *user);

static void take_token(oauth_login_step *self)
{
    arena memory;
    bay_diag diag = {.text = ""};
    const auth_principal *principal = NULL;
    arena_init(&memory, TOKEN_MEMORY_BYTES);
    bay_err err = read_token(self, &memory, &principal, &diag);
    arena_wipe(&memory);
    if (err == BAY_ERR_AGAIN) {
        self->wait.done = on_keys;
        self->wait.user = self;
        oauth_issuer_link_wait(self->of->keys, &self->wait);
        return;
    }
    if (err != BAY_OK) {
        step_fail(self, err, diag.text, true);
        return;
    }
    const oauth_login_outcome outcome = {.text = "", .principal = principal};
    step_end(self, &outcome, true);
    principal_unref(principal);
}

static void on_keys(void *user)
{
    take_token(user);
}

/* ---- the client ------------------------------------------------------------------------------ */

static void on_open(void *user, oauth_authority *authority, bay_str url)
{
    oauth_login_step *self = user;
    buf page, attempt;
    buf_init(&page, OAUTH_FORM_BYTES);
    buf_init_secret(&attempt, OAUTH_ATTEMPT_BYTES);
    buf_str(&page, url); /* which goes with the flow */
    bay_err err = oauth_client_attempt_write(oauth_authority_client(authority), &attempt);
    err = err == BAY_OK ? page.err : err;
    if (!self->is_begin) {
        err = BAY_ERR_STATE;
    }
    const oauth_login_outcome outcome = {.err = err,
                                         .text = err != BAY_OK ? bay_err_text(err) : "",
                                         .url = buf_view(&page),
                                         .attempt = buf_view(&attempt)};
    step_end(self, &outcome, true);
    buf_fini(&page);
    buf_fini(&attempt);
}

static void on_settled(void *user, oauth_authority *authority, const bay_diag *fault)
{
    oauth_login_step *self = user;
    (void)authority;
    if (fault != NULL) {
        bay_diag why = *fault; /* which goes with the flow */
        step_fail(self, why.code, why.text, true);
    } else {
        take_token(self);
    }
}

static const oauth_authority_events events = {.open = on_open, .settled = on_settled};

/* ---- steps ----------------------------------------------------------------------------------- */

static bay_err make_authority(oauth_login_step *self, bay_str redirect_uri)
{
    const oauth_login *of = self->of;
    const oauth_login_options *options = &of->options;
    oauth_authority_options asked = {
        .client = {.grant = OAUTH_CODE,
                   .url = oauth_issuer_url(of->issuer),
                   .identity = {.id = options->client_id, .secret = options->client_secret},
                   .issuer = oauth_issuer_url(of->issuer),
                   .redirect_uri = redirect_uri,
                   .scope = options->scope,
                   .is_login = true},
        .allow = options->allow,
        .allow_count = options->allow_count,
        .tls = of->tls,
    };
    bay_diag diag = {.text = ""};
    char *copy = mem_dup(redirect_uri.at, redirect_uri.len);
    if (copy == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->redirect_uri = (bay_str){copy, redirect_uri.len};
    return oauth_authority_new(of->loop, &asked, &events, self, &self->authority, &diag);
}

/* A kept one, whose redirect URI matters only if it begins. */
static oauth_login_step *take_spare(oauth_login *self, const bay_str *redirect_uri)
{
    LIST_EACH(link, &self->spares)
    {
        oauth_login_step *one = CONTAINER_OF(link, oauth_login_step, link);
        if (redirect_uri == NULL || str_eq(one->redirect_uri, *redirect_uri)) {
            list_remove(link);
            self->spare_count--;
            return one;
        }
    }
    return NULL;
}

static bay_err step_new(oauth_login *self, const bay_str *redirect_uri, oauth_login_done done,
                        void *user, oauth_login_step **out)
{
    if (self->step_count >= OAUTH_LOGINS) {
        return BAY_ERR_BUSY;
    }
    oauth_login_step *step = take_spare(self, redirect_uri);
    bay_err err = BAY_OK;
    if (step == NULL) {
        step = mem_zalloc(sizeof(*step));
        if (step == NULL) {
            return BAY_ERR_NOMEM;
        }
        step->of = self;
        loop_timer_init(&step->timer, on_timeout, step);
        err = make_authority(step, redirect_uri != NULL ? *redirect_uri : STR(""));
    }
    err = err == BAY_OK ? loop_timer_start(self->loop, &step->timer, OAUTH_LOGIN_MS) : err;
    if (err != BAY_OK) {
        step_free(step);
        return err;
    }
    step->is_begin = redirect_uri != NULL;
    step->has_waited = false;
    step->done = done;
    step->user = user;
    list_push(&self->steps, &step->link);
    self->step_count++;
    *out = step;
    return BAY_OK;
}

bay_err oauth_login_begin(oauth_login *self, bay_str redirect_uri, oauth_login_done done,
                          void *user, oauth_login_step **out)
{
    if (loop_now_ms(self->loop) < self->rests_until_ms) {
        return BAY_ERR_BUSY;
    }
    bay_err err = step_new(self, &redirect_uri, done, user, out);
    if (err == BAY_OK) {
        oauth_authority_begin((*out)->authority, true);
    }
    return err;
}

bay_err oauth_login_finish(oauth_login *self, bay_str attempt, bay_str query, oauth_login_done done,
                           void *user, oauth_login_step **out)
{
    oauth_login_step *step = NULL;
    bay_err err = step_new(self, NULL, done, user, &step);
    if (err != BAY_OK) {
        return err;
    }
    err = oauth_authority_resume(step->authority, attempt, query);
    if (err != BAY_OK) {
        step_retire(step, true);
        return err;
    }
    *out = step;
    return BAY_OK;
}

void oauth_login_cancel(oauth_login_step *self)
{
    step_retire(self, false);
}

/* ---- life ------------------------------------------------------------------------------------ */

static bay_err copy_options(oauth_login *self, const oauth_login_options *from)
{
    oauth_login_options *to = &self->options;
    *to = *from;
    bay_str *allow = arena_alloc(&self->memory, (from->allow_count + 1) * sizeof(*allow));
    bay_err err =
        allow != NULL ? arena_dup(&self->memory, from->client_id, &to->client_id) : BAY_ERR_NOMEM;
    if (err == BAY_OK) {
        err = arena_dup(&self->memory, from->client_secret, &to->client_secret);
    }
    if (err == BAY_OK) {
        err = arena_dup(&self->memory, from->scope, &to->scope);
    }
    for (size_t i = 0; err == BAY_OK && i < from->allow_count; i++) {
        err = arena_dup(&self->memory, from->allow[i], &allow[i]);
    }
    to->allow = allow;
    return err;
}

bay_err oauth_login_new(loop *on, const oauth_login_options *options, oauth_login **out,
                        bay_diag *diag)
{
    oauth_login *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    tls_options tls = {.ca_file = options->ca_file};
    self->loop = on;
    self->issuer = oauth_issuer_ref(options->issuer);
    list_init(&self->steps);
    list_init(&self->spares);
    arena_init(&self->memory, TEXT_BYTES);
    bay_err err = copy_options(self, options);
    if (err == BAY_OK && tls_client_has_own(&tls)) {
        err = tls_client_new(&tls, &self->tls, diag);
    }
    if (err == BAY_OK) {
        err = oauth_issuer_link_new(on, self->issuer, &self->keys, diag);
    }
    if (err != BAY_OK) {
        oauth_login_free(self);
        return err == BAY_ERR_NOMEM ? diag_set(diag, err, "out of memory") : err;
    }
    *out = self;
    return BAY_OK;
}

void oauth_login_free(oauth_login *self)
{
    list_link *link;
    if (self == NULL) {
        return;
    }
    while ((link = list_first(&self->steps)) != NULL) {
        step_fail(CONTAINER_OF(link, oauth_login_step, link), BAY_ERR_CANCELLED,
                  "the gateway ends, or its configuration changed", false);
    }
    while ((link = list_pop(&self->spares)) != NULL) {
        step_free(CONTAINER_OF(link, oauth_login_step, link));
    }
    oauth_issuer_link_free(self->keys);
    tls_free(self->tls);
    oauth_issuer_unref(self->issuer);
    arena_wipe(&self->memory);
    mem_free(self);
}

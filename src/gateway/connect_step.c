/* Logins at servers, under way. A step begins with a request of the browser and ends with its answer;
 * between the two steps of a login everything is in a sealed cookie.
 *
 *   begin:   own registration from the vault ──► metadata, registration ──► cookie, redirect
 *   finish:  cookie ──► own registration from the vault ──► token ──► the user's row ──► page */
#include "auth/oauth_form.h"
#include "auth/vault.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "front/http_reply.h"
#include "front/page.h"
#include "gateway/connect_parts.h"
#include "gateway/login.h"
#include "upstream/credentials.h"

#define ATTEMPT_FOR "patchbay connect\n"

enum {
    URL_BYTES = 4096,
    ASSOCIATED_BYTES = PRINCIPAL_IDENTITY_BYTES + URL_BYTES,
    ATTEMPT_BYTES = OAUTH_ATTEMPT_BYTES + VAULT_SERVER_BYTES + CONNECT_ID_BYTES,
};

struct worker_connect {
    worker *worker;
    list steps;
    size_t step_count;
};

typedef struct connect_step {
    const http_owner_ops *owner; /* first: as front/http_reply.h wants it */
    list_link link;
    worker_connect *of;
    front_request request;
    bay_str base;
    const config *config; /* a reference: `to` views it */
    connect_target to;
    const auth_principal *who;
    tls_context *tls; /* NULL: the system's trust */
    upstream_credentials *credentials;
    oauth_authority *authority;
    upstream_vault_call call;
    loop_timer timer;
    bool is_begin;
    bool is_granted; /* the row is written */
    bay_err kept;    /* of the last row that was to be written */
    buf id;          /* of the elicitation */
    buf attempt;     /* of the redirect's step: secret */
} connect_step;

static const upstream_vault *vault_of(const connect_step *self)
{
    return gateway_vault_of(self->of->worker->vault);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void step_free(connect_step *self)
{
    const upstream_vault *vault = vault_of(self);
    list_remove(&self->link);
    self->of->step_count--;
    loop_timer_stop(self->of->worker->loop, &self->timer);
    vault->cancel(vault->user, &self->call);
    oauth_authority_free(self->authority);
    upstream_credentials_free(self->credentials);
    tls_free(self->tls);
    principal_unref(self->who);
    config_free(self->config);
    buf_fini(&self->id);
    buf_fini(&self->attempt);
    mem_free(self);
}

static void step_closed(void *user, http_exchange *exchange, bool is_complete)
{
    (void)exchange;
    (void)is_complete;
    step_free(user);
}

static void step_drained(void *user, http_exchange *exchange)
{
    (void)user;
    (void)exchange;
}

/* Why it failed is for the operator. */
static void step_fail(connect_step *self, bay_err err, const char *why)
{
    http_exchange *exchange = self->request.exchange;
    bool may_pass = bay_err_class_of(err) == BAY_ERR_CLASS_RETRY || err == BAY_ERR_CANCELLED ||
                    err == BAY_ERR_NOMEM;
    LOG(LOG_WARN, "vault", "%.*s could not log in at %.*s: %s",
        BAY_STR(principal_subject(self->who)), BAY_STR(self->to.name),
        why[0] != '\0' ? why : bay_err_text(err));
    http_exchange_set_user(exchange, NULL);
    if (may_pass) {
        connect_say(exchange, 503, "Not now",
                    "The server cannot be reached, or the login cannot be kept, at the moment. Try "
                    "again in a minute.");
    } else {
        connect_say(exchange, 403, "Not logged in there",
                    "The server refused the login, or it could not be verified. The gateway's log "
                    "says why.");
    }
    step_free(self);
}

static void on_time(void *argument)
{
    connect_step *self = argument;
    if (!self->is_granted) {
        step_fail(self, BAY_ERR_TIMEOUT, "the server took too long");
        return;
    }
    http_exchange_set_user(self->request.exchange, NULL);
    connect_done(self->of->worker, &self->request, &self->to, self->who, buf_view(&self->id));
    step_free(self);
}

/* ---- the attempt, in the browser ------------------------------------------------------------- */

/* Of this address and person. */
static bay_err attempt_associated(bay_str base, const auth_principal *who, buf *out)
{
    buf_lit(out, ATTEMPT_FOR);
    buf_str(out, base);
    buf_char(out, '\n');
    buf_str(out, principal_identity(who));
    return out->err;
}

static bay_err write_attempt(const connect_step *self, bay_str attempt, buf *out)
{
    char name[PAGE_COOKIE_NAME_BYTES];
    buf associated, plain, sealed;
    buf_init(&associated, ASSOCIATED_BYTES);
    buf_init_secret(&plain, ATTEMPT_BYTES);
    buf_init(&sealed, PAGE_COOKIE_BYTES);
    bay_err err = attempt_associated(self->base, self->who, &associated);
    oauth_form_put(&plain, 0, STR("server"), self->to.name);
    oauth_form_put(&plain, 0, STR("id"), buf_view(&self->id));
    oauth_form_put(&plain, 0, STR("attempt"), attempt);
    err = err == BAY_OK ? plain.err : err;
    if (err == BAY_OK) {
        err = seal_value(self->of->worker->ring, buf_view(&plain), buf_view(&associated),
                         loop_time_ms() + OAUTH_ATTEMPT_MS, &sealed);
    }
    if (err == BAY_OK) {
        page_cookie_write(out, self->base, page_cookie_name(self->base, CONNECT_COOKIE, name),
                          buf_view(&sealed), OAUTH_ATTEMPT_MS / 1000);
        err = out->err;
    }
    buf_fini(&associated);
    buf_fini(&plain);
    buf_fini(&sealed);
    return err;
}

/* What this browser brings back of an attempt of this person's; once. */
static bool read_attempt(worker *self, const front_request *request, bay_str base,
                         const auth_principal *who, oauth_form *out)
{
    char name[PAGE_COOKIE_NAME_BYTES];
    buf associated, plain;
    bay_str sealed = page_cookie(request->exchange, page_cookie_name(base, CONNECT_COOKIE, name));
    buf_init(&associated, ASSOCIATED_BYTES);
    buf_init_secret(&plain, ATTEMPT_BYTES);
    bool is_ours =
        sealed.len > 0 && attempt_associated(base, who, &associated) == BAY_OK &&
        seal_open(self->ring, sealed, buf_view(&associated), loop_time_ms(), &plain) == BAY_OK &&
        oauth_form_read(buf_view(&plain), http_exchange_arena(request->exchange), out) == BAY_OK &&
        worker_login_is_first(self, who, sealed);
    buf_fini(&associated);
    buf_fini(&plain);
    return is_ours;
}

/* ---- the machine ----------------------------------------------------------------------------- */

static void on_open(void *user, oauth_authority *authority, bay_str url)
{
    connect_step *self = user;
    buf cookie, attempt;
    buf_init_secret(&cookie, PAGE_COOKIE_FIELD_BYTES);
    buf_init_secret(&attempt, OAUTH_ATTEMPT_BYTES);
    bay_err err = self->is_begin
                      ? oauth_client_attempt_write(oauth_authority_client(authority), &attempt)
                      : BAY_ERR_STATE;
    err = err == BAY_OK ? write_attempt(self, buf_view(&attempt), &cookie) : err;
    if (err == BAY_OK) {
        const http_field field = {STR("Set-Cookie"), buf_view(&cookie)};
        http_exchange_set_user(self->request.exchange, NULL);
        page_lead(self->request.exchange, url, &field, 1);
        step_free(self);
    } else {
        step_fail(self, err, "");
    }
    buf_fini(&cookie);
    buf_fini(&attempt);
}

static void on_kept(upstream_vault_call *call, bay_err err, bay_str record)
{
    connect_step *self = CONTAINER_OF(call, connect_step, call);
    (void)record;
    self->kept = err;
    oauth_authority_kept(self->authority);
}

/* Tokens are the user's. A registration without any is the gateway's, and serves all users. */
static void on_keep(void *user, oauth_authority *authority, bay_str record)
{
    connect_step *self = user;
    const upstream_vault *vault = vault_of(self);
    bool has_tokens = oauth_client_record(oauth_authority_client(authority))->access.len > 0;
    self->call.done = on_kept;
    vault->write(vault->user, has_tokens ? principal_identity(self->who) : STR(VAULT_CLIENT),
                 self->to.name, record, &self->call);
}

static void on_settled(void *user, oauth_authority *authority, const bay_diag *fault)
{
    connect_step *self = user;
    if (fault != NULL) {
        bay_diag why = *fault; /* which goes with the flow */
        step_fail(self, why.code, why.text);
    } else if (self->kept != BAY_OK ||
               oauth_client_record(oauth_authority_client(authority))->access.len == 0) {
        step_fail(self, self->kept != BAY_OK ? self->kept : BAY_ERR_DENIED,
                  "there is nothing that could be kept");
    } else {
        /* a loop whose call has just found no row looks again after so long: whoever is told now
         * and calls at once is not to be asked once more */
        self->is_granted = true;
        if (loop_timer_start(self->of->worker->loop, &self->timer, OAUTH_KEPT_PAUSE_MS) != BAY_OK) {
            on_time(self);
        }
    }
}

static const oauth_authority_events events = {
    .open = on_open, .keep = on_keep, .settled = on_settled};

/* Which client the gateway is there: registered by a login before this one, perhaps. */
static void on_client(upstream_vault_call *call, bay_err err, bay_str record)
{
    connect_step *self = CONTAINER_OF(call, connect_step, call);
    const upstream_vault *vault = vault_of(self);
    if (err == BAY_OK) {
        vault->release(vault->user, STR(VAULT_CLIENT), self->to.name);
        err = record.len > 0 ? oauth_authority_load(self->authority, record) : BAY_OK;
    }
    if (err != BAY_OK) {
        step_fail(self, err, "");
        return;
    }
    if (self->is_begin) {
        oauth_authority_begin(self->authority, true);
        return;
    }
    err = oauth_authority_resume(self->authority, buf_view(&self->attempt),
                                 http_exchange_query(self->request.exchange));
    if (err != BAY_OK) {
        step_fail(self, err, "the redirect is not of this login");
    }
}

/* ---- beginning ------------------------------------------------------------------------------- */

static const char *file_of(bay_str path)
{
    return path.len > 0 ? path.at : NULL;
}

static bay_err make_authority(connect_step *self, bay_diag *diag)
{
    char redirect_text[URL_BYTES], document_text[URL_BYTES];
    buf redirect = {.at = redirect_text, .cap = URL_BYTES, .max = URL_BYTES};
    buf document = {.at = document_text, .cap = URL_BYTES, .max = URL_BYTES};
    loop *on = self->of->worker->loop;
    tls_options tls = {.certificate_file = file_of(self->to.tls->certificate),
                       .key_file = file_of(self->to.tls->key),
                       .ca_file = file_of(self->to.tls->ca)};
    bay_err err = tls_client_has_own(&tls) ? tls_client_new(&tls, &self->tls, diag) : BAY_OK;
    upstream_credentials_options given = {.settings = self->to.credentials,
                                          .server = self->to.name,
                                          .url = self->to.url,
                                          .tls = self->tls,
                                          .vault = vault_of(self)};
    err = err == BAY_OK ? upstream_credentials_new(on, &given, &self->credentials, diag) : err;
    if (err != BAY_OK) {
        return err;
    }
    oauth_authority_options options = upstream_credentials_login(self->credentials);
    buf_str(&redirect, self->base);
    buf_lit(&redirect, CONNECT_REDIRECT);
    options.client.redirect_uri = buf_view(&redirect);
    if (str_starts(self->base, STR("https://")) && options.client.identity.key == NULL) {
        buf_str(&document, self->base);
        buf_lit(&document, CONNECT_DOCUMENT_PATH);
        options.client.document_url = buf_view(&document);
    }
    return redirect.err != BAY_OK ? redirect.err
           : document.err != BAY_OK
               ? document.err
               : oauth_authority_new(on, &options, &events, self, &self->authority, diag);
}

static void step_start(worker *self, const front_request *request, const connect_target *to,
                       const auth_principal *who, bay_str id, bay_str attempt)
{
    static const http_owner_ops ops = {.closed = step_closed, .drained = step_drained};
    worker_connect *of = worker_auth_connect(self->auth);
    bay_diag diag = {.text = ""};
    connect_step *step = of->step_count < CONNECT_STEPS ? mem_zalloc(sizeof(*step)) : NULL;
    if (step == NULL) {
        connect_say(request->exchange, 503, "Not now",
                    "Too many people log in at servers just now. Try again in a minute.");
        return;
    }
    *step = (connect_step){.owner = &ops,
                           .of = of,
                           .request = *request,
                           .base = worker_login_base(self, request),
                           .config = config_ref(self->config),
                           .to = *to,
                           .who = principal_ref(who),
                           .is_begin = attempt.len == 0};
    loop_timer_init(&step->timer, on_time, step);
    buf_init(&step->id, CONNECT_ID_BYTES);
    buf_init_secret(&step->attempt, OAUTH_ATTEMPT_BYTES);
    buf_str(&step->id, id);
    buf_str(&step->attempt, attempt);
    list_push(&of->steps, &step->link);
    of->step_count++;
    http_exchange_set_user(request->exchange, step);
    bay_err err = step->attempt.err != BAY_OK ? step->attempt.err : step->id.err;
    err = err == BAY_OK ? loop_timer_start(self->loop, &step->timer, CONNECT_MS) : err;
    err = err == BAY_OK ? make_authority(step, &diag) : err;
    if (err != BAY_OK) {
        step_fail(step, err, diag.text);
        return;
    }
    const upstream_vault *vault = vault_of(step);
    step->call.done = on_client;
    vault->read(vault->user, STR(VAULT_CLIENT), step->to.name, &step->call);
}

void connect_begin(worker *self, const front_request *request, const connect_target *to,
                   const auth_principal *who, bay_str id)
{
    step_start(self, request, to, who, id, STR(""));
}

void connect_finish(worker *self, const front_request *request, const auth_principal *who)
{
    oauth_form kept = {.count = 0};
    connect_target to;
    bool is_ours = read_attempt(self, request, worker_login_base(self, request), who, &kept);
    bay_str attempt = is_ours ? oauth_form_get(&kept, STR("attempt")) : STR("");
    if (attempt.len > 0 &&
        connect_target_find(self->config, oauth_form_get(&kept, STR("server")), &to)) {
        step_start(self, request, &to, who, oauth_form_get(&kept, STR("id")), attempt);
    } else {
        connect_say(request->exchange, 403, "Unknown login",
                    "This login was not begun by you in this browser, or it is over, or it was "
                    "begun more than ten minutes ago.");
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

bay_err worker_connect_new(worker *of, worker_connect **out)
{
    worker_connect *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->worker = of;
    list_init(&self->steps);
    *out = self;
    return BAY_OK;
}

void worker_connect_free(worker_connect *self)
{
    list_link *link;
    if (self == NULL) {
        return;
    }
    while ((link = list_first(&self->steps)) != NULL) {
        step_fail(CONTAINER_OF(link, connect_step, link), BAY_ERR_CANCELLED,
                  "the gateway ends, or its configuration changed");
    }
    mem_free(self);
}

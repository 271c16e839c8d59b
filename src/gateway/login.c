#include "gateway/login.h"

#include <stdatomic.h>

#include "auth/token_memory.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "front/http_reply.h"
#include "front/page.h"
#include "gateway/auth_parts.h"
#include "gateway/worker.h"
#include "oauth/login.h"
#include "wire/base64.h"
#include "wire/header.h"

#define CALLBACK "/login/callback"
#define ATTEMPT_FOR "patchbay login\n"
#define FORM_FOR "patchbay form\n"

enum {
    SESSION_BYTES = 32,
    SESSION_TEXT = 44,
    ATTEMPT_MS = 600000, /* as OAUTH_ATTEMPT_MS: then the cookie goes, too */
    URL_BYTES = 4096,
};

struct login_sessions {
    atomic_uint references;
    token_memory *memory;
    token_memory *used; /* attempts that have come back */
};

struct worker_login {
    worker *worker;
    const config_login *settings; /* gateway_auth's */
    login_sessions *sessions;
    oauth_login *logins;
    list waiting;
};

/* A browser that waits for the provider's answer. */
typedef struct login_wait {
    const http_owner_ops *owner; /* first: as front/http_reply.h wants it */
    list_link link;
    worker_login *of;
    http_exchange *exchange;
    oauth_login_step *step;
    bay_str base;
    buf back; /* where to afterwards: a path and query */
} login_wait;

/* ---- sessions -------------------------------------------------------------------------------- */

bay_err login_sessions_new(login_sessions **out)
{
    login_sessions *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    atomic_init(&self->references, 1);
    bay_err err = token_memory_new(LOGIN_SESSIONS, &self->memory);
    err = err == BAY_OK ? token_memory_new(LOGIN_USED, &self->used) : err;
    if (err != BAY_OK) {
        login_sessions_unref(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

login_sessions *login_sessions_ref(login_sessions *self)
{
    if (self != NULL) {
        atomic_fetch_add_explicit(&self->references, 1, memory_order_relaxed);
    }
    return self;
}

void login_sessions_unref(login_sessions *self)
{
    if (self != NULL &&
        atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) == 1) {
        token_memory_free(self->memory);
        token_memory_free(self->used);
        mem_free(self);
    }
}

/* The cookie's text; "": there is none that can be one. */
static bay_str session_text(const front_request *request, bay_str base)
{
    char name[PAGE_COOKIE_NAME_BYTES];
    bay_str text = page_cookie(request->exchange, page_cookie_name(base, "session", name));
    return text.len == SESSION_TEXT - 1 ? text : STR("");
}

/* One reference; NULL: nobody. */
static const auth_principal *session_find(const worker_login *self, bay_str text)
{
    unsigned char digest[DIGEST_BYTES];
    token_entry entry;
    if (text.len == 0 || digest_bytes(text, digest) != BAY_OK) {
        return NULL;
    }
    token_verdict verdict =
        token_memory_find(self->sessions->memory, digest, 0, loop_time_ms(), &entry);
    return verdict == TOKEN_GOOD ? entry.principal : NULL;
}

/* Each login has a principal of its own, so this is that session and no other. */
static bool is_session_of(void *user, const token_entry *entry)
{
    return entry->principal == user;
}

static void session_end(const worker_login *self, const auth_principal *who)
{
    token_memory_forget(self->sessions->memory, is_session_of, (void *)(uintptr_t)who);
}

static bay_err session_begin(const worker_login *self, const auth_principal *who, buf *out)
{
    unsigned char bytes[SESSION_BYTES], digest[DIGEST_BYTES];
    rand_bytes(bytes, sizeof(bytes));
    base64_encode(out, (bay_str){(const char *)bytes, sizeof(bytes)}, BASE64_URL);
    mem_wipe(bytes, sizeof(bytes));
    bay_err err = out->err != BAY_OK ? out->err : digest_bytes(buf_view(out), digest);
    if (err == BAY_OK) {
        const token_entry entry = {.principal = who, .until_ms = principal_expires_at(who)};
        token_memory_keep(self->sessions->memory, digest, 0, &entry, loop_time_ms());
    }
    return err;
}

/* ---- places ---------------------------------------------------------------------------------- */

static worker_login *login_of(const worker *self)
{
    return self->auth != NULL ? worker_auth_login(self->auth) : NULL;
}

bool worker_login_is_on(const worker *self)
{
    return login_of(self) != NULL;
}

bay_str worker_login_issuer(const worker *self)
{
    return oauth_issuer_url(worker_auth_of(self->auth)->login_issuer);
}

bay_str worker_login_base(worker *self, const front_request *request)
{
    return worker_auth_base(self->auth, request->from.host);
}

/* A path of ours, with its query: it begins with one slash, and has nothing that a browser reads as
 * the beginning of another host, and nothing that ends a header field. */
static bool is_return(bay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] <= ' ' || text.at[i] > '~' || text.at[i] == '\\' || text.at[i] == '#') {
            return false;
        }
    }
    return text.len > 0 && text.len <= LOGIN_RETURN_BYTES && text.at[0] == '/' &&
           !str_starts(text, STR("//"));
}

static void put_path(buf *out, bay_str base, bay_str path)
{
    buf_str(out, base);
    buf_str(out, path);
}

static void say(http_exchange *exchange, int status, const char *title, const char *sentence,
                bay_str base)
{
    char text[URL_BYTES];
    buf link = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    put_path(&link, base, STR("/login"));
    page_say(exchange, status, str_of(title), str_of(sentence), buf_view(&link),
             STR("Log in again"));
}

/* ---- waiting for the provider ---------------------------------------------------------------- */

static void wait_free(login_wait *self)
{
    list_remove(&self->link);
    buf_fini(&self->back);
    mem_free(self);
}

static void wait_closed(void *user, http_exchange *exchange, bool is_complete)
{
    login_wait *self = user;
    (void)exchange;
    (void)is_complete;
    oauth_login_cancel(self->step);
    wait_free(self);
}

static void wait_drained(void *user, http_exchange *exchange)
{
    (void)user;
    (void)exchange;
}

static login_wait *wait_new(worker_login *of, const front_request *request, bay_str base,
                            bay_str back)
{
    static const http_owner_ops ops = {.closed = wait_closed, .drained = wait_drained};
    login_wait *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    *self = (login_wait){.owner = &ops, .of = of, .exchange = request->exchange, .base = base};
    buf_init(&self->back, LOGIN_RETURN_BYTES);
    buf_str(&self->back, back);
    if (self->back.err != BAY_OK) {
        wait_free(self);
        return NULL;
    }
    list_push(&of->waiting, &self->link);
    http_exchange_set_user(request->exchange, self);
    return self;
}

static void refuse_busy(http_exchange *exchange, bay_str base)
{
    say(exchange, 503, "Not now",
        "The login cannot be reached at the moment. Try again in a minute.", base);
}

/* Why it failed is for the operator; who looks at the page may be anybody. */
static void refuse_step(http_exchange *exchange, bay_str base, const oauth_login_outcome *outcome)
{
    bool may_pass = bay_err_class_of(outcome->err) == BAY_ERR_CLASS_RETRY ||
                    outcome->err == BAY_ERR_CANCELLED || outcome->err == BAY_ERR_NOMEM;
    LOG(LOG_INFO, "login", "a login failed: %s", outcome->text);
    if (may_pass) {
        refuse_busy(exchange, base);
    } else {
        say(exchange, 403, "Not logged in",
            "The login was refused, or could not be verified. The gateway's log says why.", base);
    }
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* The cookie: where to afterwards, and the attempt, sealed for this address. */
static bay_err write_attempt(const login_wait *self, bay_str attempt, buf *out)
{
    char name_text[PAGE_COOKIE_NAME_BYTES], for_text[URL_BYTES];
    buf associated = {.at = for_text, .cap = sizeof(for_text), .max = sizeof(for_text)};
    buf plain, sealed;
    buf_init_secret(&plain, OAUTH_FORM_BYTES);
    buf_init(&sealed, PAGE_COOKIE_BYTES);
    buf_lit(&associated, ATTEMPT_FOR);
    buf_str(&associated, self->base);
    buf_str(&plain, buf_view(&self->back));
    buf_char(&plain, '\n');
    buf_str(&plain, attempt);
    bay_err err = plain.err != BAY_OK ? plain.err : associated.err;
    if (err == BAY_OK) {
        err = seal_value(self->of->worker->ring, buf_view(&plain), buf_view(&associated),
                         loop_time_ms() + ATTEMPT_MS, &sealed);
    }
    if (err == BAY_OK) {
        bay_str name = page_cookie_name(self->base, "login", name_text);
        page_cookie_write(out, self->base, name, buf_view(&sealed), ATTEMPT_MS / 1000);
        err = out->err;
    }
    buf_fini(&plain);
    buf_fini(&sealed);
    return err;
}

static void on_begun(void *user, const oauth_login_outcome *outcome)
{
    login_wait *self = user;
    http_exchange *exchange = self->exchange;
    buf cookie;
    http_exchange_set_user(exchange, NULL);
    buf_init_secret(&cookie, PAGE_COOKIE_FIELD_BYTES);
    bay_err err = outcome->err;
    if (err == BAY_OK) {
        err = write_attempt(self, outcome->attempt, &cookie);
    }
    if (err == BAY_OK) {
        const http_field field = {STR("Set-Cookie"), buf_view(&cookie)};
        page_lead(exchange, outcome->url, &field, 1);
    } else {
        const oauth_login_outcome failed = {
            .err = err, .text = outcome->err != BAY_OK ? outcome->text : bay_err_text(err)};
        refuse_step(exchange, self->base, &failed);
    }
    buf_fini(&cookie);
    wait_free(self);
}

static void begin(worker_login *self, const front_request *request, bay_str base, bay_str back)
{
    char text[URL_BYTES];
    buf redirect = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    put_path(&redirect, base, STR(CALLBACK));
    login_wait *wait = redirect.err == BAY_OK
                           ? wait_new(self, request, base, is_return(back) ? back : STR("/login"))
                           : NULL;
    bay_err err = wait == NULL ? BAY_ERR_NOMEM
                               : oauth_login_begin(self->logins, buf_view(&redirect), on_begun,
                                                   wait, &wait->step);
    if (err != BAY_OK) {
        http_exchange_set_user(request->exchange, NULL);
        if (wait != NULL) {
            wait_free(wait);
        }
        refuse_busy(request->exchange, base);
    }
}

/* ---- the end --------------------------------------------------------------------------------- */

/* What the browser brings back of its attempt. BAY_ERR_NOT_FOUND: nothing that this gateway sealed
 * for it. `out` has the path, a line end, the attempt. */
static bay_err read_attempt(const worker_login *self, const front_request *request, bay_str base,
                            buf *out)
{
    char name_text[PAGE_COOKIE_NAME_BYTES], for_text[URL_BYTES];
    buf associated = {.at = for_text, .cap = sizeof(for_text), .max = sizeof(for_text)};
    bay_str sealed = page_cookie(request->exchange, page_cookie_name(base, "login", name_text));
    buf_lit(&associated, ATTEMPT_FOR);
    buf_str(&associated, base);
    bay_err err = sealed.len == 0 ? BAY_ERR_NOT_FOUND : associated.err;
    if (err == BAY_OK) {
        err = seal_open(self->worker->ring, sealed, buf_view(&associated), loop_time_ms(), out);
    }
    return err == BAY_OK || err == BAY_ERR_NOMEM ? err : BAY_ERR_NOT_FOUND;
}

/* True: answered. */
static bool turns_away(const worker_login *self, http_exchange *exchange, const auth_principal *who)
{
    front_refusal refusal;
    bool is_away = worker_turns_away(self->worker, who, &refusal);
    if (is_away) {
        page_say(exchange, refusal.status, STR("Not allowed"), str_of(refusal.text), STR(""),
                 STR(""));
    }
    return is_away;
}

static void enter(login_wait *self, const auth_principal *who)
{
    const worker_login *of = self->of;
    char session_name[PAGE_COOKIE_NAME_BYTES], login_name[PAGE_COOKIE_NAME_BYTES];
    char text[URL_BYTES];
    buf url = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    buf session, cookie, gone;
    buf_init_secret(&session, SESSION_TEXT);
    buf_init_secret(&cookie, PAGE_COOKIE_FIELD_BYTES);
    buf_init(&gone, PAGE_COOKIE_FIELD_BYTES);
    put_path(&url, self->base, buf_view(&self->back));
    bay_err err = session_begin(of, who, &session);
    page_cookie_write(&cookie, self->base, page_cookie_name(self->base, "session", session_name),
                      buf_view(&session), of->settings->session_ms / 1000);
    page_cookie_write(&gone, self->base, page_cookie_name(self->base, "login", login_name), STR(""),
                      0);
    if (err == BAY_OK && url.err == BAY_OK && cookie.err == BAY_OK && gone.err == BAY_OK) {
        const http_field fields[] = {{STR("Set-Cookie"), buf_view(&cookie)},
                                     {STR("Set-Cookie"), buf_view(&gone)}};
        LOG(LOG_INFO, "login", "%.*s of %.*s has logged in", BAY_STR(principal_subject(who)),
            BAY_STR(principal_issuer(who)));
        page_lead(self->exchange, buf_view(&url), fields, 2);
    } else {
        refuse_busy(self->exchange, self->base);
    }
    buf_fini(&session);
    buf_fini(&cookie);
    buf_fini(&gone);
}

static void on_finished(void *user, const oauth_login_outcome *outcome)
{
    login_wait *self = user;
    http_exchange_set_user(self->exchange, NULL);
    if (outcome->err != BAY_OK) {
        refuse_step(self->exchange, self->base, outcome);
    } else if (!turns_away(self->of, self->exchange, outcome->principal)) {
        enter(self, outcome->principal);
    }
    wait_free(self);
}

static void serve_callback(worker_login *self, const front_request *request, bay_str base)
{
    buf kept;
    buf_init_secret(&kept, OAUTH_FORM_BYTES);
    bay_err err = read_attempt(self, request, base, &kept);
    bay_str all = buf_view(&kept);
    bay_str back = str_head(all, str_find(all, '\n'));
    login_wait *wait = err == BAY_OK ? wait_new(self, request, base, back) : NULL;
    if (err == BAY_OK) {
        err = wait == NULL ? BAY_ERR_NOMEM
                           : oauth_login_finish(self->logins, str_from(all, back.len + 1),
                                                http_exchange_query(request->exchange), on_finished,
                                                wait, &wait->step);
    }
    buf_fini(&kept);
    if (err == BAY_OK) {
        return;
    }
    http_exchange_set_user(request->exchange, NULL);
    if (wait != NULL) {
        wait_free(wait);
    }
    if (err == BAY_ERR_NOT_FOUND) {
        say(request->exchange, 403, "Unknown login",
            "This login was not begun in this browser, or it was begun again or more than ten "
            "minutes ago.",
            base);
    } else {
        refuse_busy(request->exchange, base);
    }
}

/* ---- pages ----------------------------------------------------------------------------------- */

static const auth_principal *principal_of(const worker_login *self, const front_request *request,
                                          bay_str base)
{
    return session_find(self, session_text(request, base));
}

const auth_principal *worker_login_require(worker *self, const front_request *request)
{
    worker_login *login = login_of(self);
    bay_str base = worker_login_base(self, request);
    const auth_principal *who = principal_of(login, request, base);
    if (who != NULL && turns_away(login, request->exchange, who)) {
        principal_unref(who);
        return NULL;
    }
    if (who != NULL) {
        return who;
    }
    if (!str_eq(http_exchange_method(request->exchange), STR("GET"))) {
        say(request->exchange, 403, "Not logged in",
            "Nobody is logged in here any more, so nothing was changed.", base);
        return NULL;
    }
    char text[LOGIN_RETURN_BYTES];
    buf back = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    bay_str query = http_exchange_query(request->exchange);
    buf_str(&back, request->path);
    buf_str(&back, query.len > 0 ? STR("?") : STR(""));
    buf_str(&back, query);
    begin(login, request, base, back.err == BAY_OK ? buf_view(&back) : STR(""));
    return NULL;
}

/* One-way: it says nothing of the session. */
static bay_err form_token(bay_str session, bay_str purpose, buf *out)
{
    unsigned char digest[DIGEST_BYTES];
    buf text;
    buf_init_secret(&text, LOGIN_FORM_BYTES);
    buf_lit(&text, FORM_FOR);
    buf_str(&text, session);
    buf_char(&text, '\n');
    buf_str(&text, purpose);
    bay_err err = text.err != BAY_OK ? text.err : digest_bytes(buf_view(&text), digest);
    buf_fini(&text);
    if (err == BAY_OK) {
        base64_encode(out, (bay_str){(const char *)digest, sizeof(digest)}, BASE64_URL);
        err = out->err;
    }
    return err;
}

void worker_login_form(worker *self, const front_request *request, bay_str path, bay_str purpose,
                       buf *out)
{
    bay_str base = worker_login_base(self, request);
    bay_str session = session_text(request, base);
    buf_lit(out, "<form method=\"post\" action=\"");
    page_text(out, base);
    page_text(out, path);
    buf_lit(out, "\"><input type=\"hidden\" name=\"token\" value=\"");
    bay_err err = session.len > 0 ? form_token(session, purpose, out) : BAY_ERR_STATE;
    out->err = out->err == BAY_OK ? err : out->err;
    buf_lit(out, "\">");
}

bool worker_login_is_form(worker *self, const front_request *request, bay_str purpose,
                          oauth_form *out_body)
{
    http_exchange *exchange = request->exchange;
    bay_str session = session_text(request, worker_login_base(self, request));
    bay_str body = http_exchange_body(exchange);
    bool is_form = str_eq(http_exchange_method(exchange), STR("POST")) &&
                   header_content_type_is(http_exchange_field(exchange, STR("Content-Type")),
                                          STR("application/x-www-form-urlencoded")) &&
                   session.len > 0 && body.len <= LOGIN_FORM_BYTES;
    oauth_form fields = {.count = 0};
    if (!is_form || oauth_form_read(body, http_exchange_arena(exchange), &fields) != BAY_OK) {
        return false;
    }
    buf token;
    buf_init_secret(&token, 2 * DIGEST_BYTES);
    bay_str given = oauth_form_get(&fields, STR("token"));
    bool is_ours =
        form_token(session, purpose, &token) == BAY_OK && str_eq_secret(given, buf_view(&token));
    buf_fini(&token);
    if (is_ours && out_body != NULL) {
        *out_body = fields;
    }
    return is_ours;
}

bool worker_login_is_first(worker *self, const auth_principal *who, bay_str sealed)
{
    token_memory *used = login_of(self)->sessions->used;
    unsigned char digest[DIGEST_BYTES];
    token_entry entry = {.principal = NULL};
    uint64_t now_ms = loop_time_ms();
    if (digest_bytes(sealed, digest) != BAY_OK) {
        return false;
    }
    bool is_first = token_memory_find(used, digest, 0, now_ms, &entry) == TOKEN_UNKNOWN;
    principal_unref(entry.principal);
    entry = (token_entry){.principal = who, .until_ms = now_ms + ATTEMPT_MS};
    token_memory_keep(used, digest, 0, &entry, now_ms);
    return is_first;
}

/* Where /login is asked to lead to; "": nowhere. */
static bay_str return_of(const front_request *request)
{
    oauth_form fields;
    bay_err err = oauth_form_read(http_exchange_query(request->exchange),
                                  http_exchange_arena(request->exchange), &fields);
    bay_str back = err == BAY_OK ? oauth_form_get(&fields, STR("return")) : STR("");
    return is_return(back) ? back : STR("");
}

static void show_person(worker *self, const front_request *request, const auth_principal *who)
{
    buf body;
    buf_init(&body, PAGE_BYTES);
    buf_lit(&body, "<dl><dt>User</dt><dd>");
    page_text(&body, principal_subject(who));
    buf_lit(&body, "</dd><dt>Issuer</dt><dd>");
    page_text(&body, principal_issuer(who));
    buf_lit(&body, "</dd></dl>");
    worker_login_form(self, request, STR("/logout"), STR("logout"), &body);
    buf_lit(&body, "<button class=\"primary\">Log out</button></form>");
    const page_spec page = {.status = body.err == BAY_OK ? 200 : 503,
                            .title = STR("Logged in"),
                            .body = body.err == BAY_OK ? buf_view(&body) : STR("")};
    page_reply(request->exchange, &page);
    buf_fini(&body);
}

static void serve_login(worker *self, const front_request *request, bay_str base)
{
    const auth_principal *who = worker_login_require(self, request);
    char text[URL_BYTES];
    buf url = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    if (who == NULL) {
        return;
    }
    bay_str back = return_of(request);
    put_path(&url, base, back);
    if (back.len > 0 && url.err == BAY_OK) {
        page_lead(request->exchange, buf_view(&url), NULL, 0);
    } else {
        show_person(self, request, who);
    }
    principal_unref(who);
}

static void serve_logout(worker *self, worker_login *login, const front_request *request,
                         bay_str base)
{
    const auth_principal *who = principal_of(login, request, base);
    char name[PAGE_COOKIE_NAME_BYTES];
    if (who == NULL) {
        say(request->exchange, 200, "Logged out", "Nobody is logged in here.", base);
    } else if (str_eq(http_exchange_method(request->exchange), STR("GET"))) {
        show_person(self, request, who);
    } else if (!worker_login_is_form(self, request, STR("logout"), NULL)) {
        say(request->exchange, 403, "Not logged out",
            "The request does not come from the gateway's own page.", base);
    } else {
        buf gone;
        buf_init(&gone, PAGE_COOKIE_FIELD_BYTES);
        session_end(login, who);
        page_cookie_write(&gone, base, page_cookie_name(base, "session", name), STR(""), 0);
        const http_field field = {STR("Set-Cookie"), buf_view(&gone)};
        const page_spec page = {
            .status = 200,
            .title = STR("Logged out"),
            .body = STR("<p>You are logged out of this gateway. The provider where you logged in "
                        "may still know you.</p>"),
            .fields = &field,
            .field_count = 1};
        page_reply(request->exchange, &page);
        buf_fini(&gone);
    }
    principal_unref(who);
}

bool worker_login_serve(void *user, const front_request *request)
{
    worker *self = user;
    worker_login *login = login_of(self);
    bay_str method = http_exchange_method(request->exchange);
    if (login == NULL) {
        return false;
    }
    bay_str base = worker_login_base(self, request);
    bool is_logout = str_eq(request->path, STR("/logout"));
    if (!str_eq(method, STR("GET")) && !(is_logout && str_eq(method, STR("POST")))) {
        const http_field allow = {STR("Allow"), is_logout ? STR("GET, POST") : STR("GET")};
        http_exchange_reply(request->exchange, 405, &allow, 1, STR(""));
    } else if (is_logout) {
        serve_logout(self, login, request, base);
    } else if (str_eq(request->path, STR(CALLBACK))) {
        serve_callback(login, request, base);
    } else {
        serve_login(self, request, base);
    }
    return true;
}

/* ---- life ------------------------------------------------------------------------------------ */

static const config_issuer *issuer_of(const config_auth *auth)
{
    for (size_t i = 0; auth->login.issuer.len > 0 && i < auth->issuer_count; i++) {
        if (str_eq(auth->issuers[i].name, auth->login.issuer)) {
            return &auth->issuers[i];
        }
    }
    return NULL;
}

bay_err worker_login_new(worker *of, const gateway_auth *auth, worker_login **out, bay_diag *diag)
{
    const config_auth *settings = &auth->config->auth;
    const config_issuer *issuer = issuer_of(settings);
    *out = NULL;
    if (issuer == NULL || auth->login_issuer == NULL) {
        return BAY_OK;
    }
    worker_login *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    self->worker = of;
    self->settings = &settings->login;
    self->sessions = login_sessions_ref(auth->sessions);
    list_init(&self->waiting);
    oauth_login_options options = {.issuer = auth->login_issuer,
                                   .client_id = settings->login.client_id,
                                   .client_secret = settings->login.client_secret,
                                   .scope = settings->login.scope,
                                   .allow = issuer->allow.at,
                                   .allow_count = issuer->allow.count,
                                   .ca_file = issuer->tls.ca.len > 0 ? issuer->tls.ca.at : NULL,
                                   .algorithms = auth_algorithms(issuer),
                                   .skew_ms = issuer->skew_ms,
                                   .session_ms = settings->login.session_ms};
    bay_err err = oauth_login_new(of->loop, &options, &self->logins, diag);
    if (err != BAY_OK) {
        worker_login_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

void worker_login_free(worker_login *self)
{
    if (self != NULL) {
        oauth_login_free(self->logins); /* who waits is answered */
        login_sessions_unref(self->sessions);
        mem_free(self);
    }
}

/* What a person sees of the gateway's authorization server: who asks, for what, and where the answer
 * goes; and the answer. */
#include "auth/oauth_form.h"
#include "auth/oauth_metadata.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "front/page.h"
#include "gateway/auth_parts.h"
#include "gateway/login.h"
#include "gateway/proxy.h"
#include "gateway/worker.h"
#include "oauth/proxy_client.h"
#include "wire/uri.h"

#define AUTHORIZE "/oauth/authorize"
#define CONSENT_FOR "consent "

enum { CHALLENGE_BYTES = 43, URL_BYTES = 8192 };

/* A request that may be shown. Views live as long as the exchange. */
typedef struct ask {
    bay_str base;
    bay_str query; /* all of it, as it was sent */
    oauth_proxy_client client;
    bay_str client_id;
    bool is_document; /* the client id is the URL of its description */
    bay_str redirect_uri;
    bay_str state; /* `at` NULL: none */
    bay_str challenge;
    bay_str resource;
    bay_str scope; /* of what is asked, what a person may allow */
} ask;

/* ---- the request ----------------------------------------------------------------------------- */

bay_str proxy_resource(bay_str base, bay_str resource)
{
    bay_str rest = str_from(resource, base.len);
    return str_starts(resource, base) && str_eq(rest, STR("/")) ? base : resource;
}

/* This gateway, or what stands below it. */
static bool is_resource(bay_str base, bay_str resource)
{
    uri parts;
    bay_str rest = str_from(resource, base.len);
    return str_starts(resource, base) && (rest.len == 0 || rest.at[0] == '/') &&
           uri_parse(&parts, resource) == BAY_OK && !parts.has_query && !parts.has_fragment;
}

static bool lists(config_list among, bay_str scope)
{
    for (size_t i = 0; i < among.count; i++) {
        if (str_eq(among.at[i], scope)) {
            return true;
        }
    }
    return false;
}

/* Of the scopes that are asked for, those that a person may allow; without any, those that everybody
 * needs. BAY_ERR_NOMEM. */
static bay_err choose_scope(const config_auth *settings, bay_str asked, arena *memory, bay_str *out)
{
    buf chosen;
    buf_init(&chosen, OAUTH_SCOPE_BYTES);
    for (bay_str rest = asked; rest.len > 0;) {
        bay_str one = str_head(rest, str_find(rest, ' '));
        rest = str_from(rest, one.len + 1);
        if (one.len > 0 && lists(settings->proxy.scopes, one)) {
            oauth_scopes_join(&chosen, one);
        }
    }
    for (size_t i = 0; asked.len == 0 && i < settings->scopes.count; i++) {
        if (lists(settings->proxy.scopes, settings->scopes.at[i])) {
            oauth_scopes_join(&chosen, settings->scopes.at[i]);
        }
    }
    bay_err err = chosen.err == BAY_OK ? arena_dup(memory, buf_view(&chosen), out) : chosen.err;
    buf_fini(&chosen);
    return err;
}

/* NULL: the request may be shown. Else why not, for the person (static). Nobody is redirected for
 * it: who is behind the redirect URI is not known (RFC 9700 section 4.11.2). */
static const char *read_ask(worker *self, const config_auth *settings, const front_request *request,
                            const oauth_proxy_client *described, ask *out)
{
    oauth_form form;
    arena *memory = http_exchange_arena(request->exchange);
    const oauth_proxy_schemes schemes = {settings->proxy.schemes.at, settings->proxy.schemes.count};
    if (oauth_form_read(out->query, memory, &form) != BAY_OK) {
        return "The request has a parameter twice, or cannot be read.";
    }
    out->client_id = oauth_form_get(&form, STR("client_id"));
    out->is_document = oauth_proxy_client_is_document(out->client_id);
    if (described != NULL) {
        out->client = *described;
    } else if (!out->is_document &&
               oauth_proxy_client_read(self->ring, out->client_id, loop_time_ms(), memory,
                                       &out->client) != BAY_OK) {
        return "The program that asks is not registered here, or was registered before the "
               "gateway's keys changed. Let it register again.";
    }
    out->redirect_uri = oauth_form_get(&form, STR("redirect_uri"));
    if (out->redirect_uri.at == NULL ||
        oauth_proxy_redirect_fault(out->redirect_uri, &schemes) != NULL ||
        ((described != NULL || !out->is_document) && /* else it is compared before it is shown */
         !oauth_proxy_client_has(&out->client, out->redirect_uri))) {
        return "The program wants the answer at an address that it did not register.";
    }
    out->state = oauth_form_get(&form, STR("state"));
    out->challenge = oauth_form_get(&form, STR("code_challenge"));
    bay_str mode = oauth_form_get(&form, STR("response_mode"));
    if (!str_eq(oauth_form_get(&form, STR("response_type")), STR("code")) ||
        (mode.at != NULL && !str_eq(mode, STR("query"))) || out->state.len > PROXY_STATE_BYTES ||
        oauth_form_get(&form, STR("request")).at != NULL ||
        oauth_form_get(&form, STR("request_uri")).at != NULL) {
        return "The program asks for something that this gateway does not offer.";
    }
    if (out->challenge.len != CHALLENGE_BYTES ||
        !str_eq(oauth_form_get(&form, STR("code_challenge_method")), STR("S256"))) {
        return "The program does not protect its request (PKCE with S256).";
    }
    bay_str resource = oauth_form_get(&form, STR("resource"));
    out->resource = resource.len > 0 ? proxy_resource(out->base, resource) : out->base;
    if (!is_resource(out->base, out->resource)) {
        return "The program asks for access to something else than this gateway.";
    }
    bay_str scope = oauth_form_get(&form, STR("scope"));
    return choose_scope(settings, scope.at != NULL ? scope : STR(""), memory, &out->scope) == BAY_OK
               ? NULL
               : "The program asks for too many scopes.";
}

/* ---- the page -------------------------------------------------------------------------------- */

static void put_row(buf *out, const char *name, bay_str value)
{
    buf_lit(out, "<dt>");
    buf_str(out, str_of(name));
    buf_lit(out, "</dt><dd>");
    page_text(out, value);
    buf_lit(out, "</dd>");
}

/* Where the answer goes, as far as a person can judge it. */
static bay_str target_of(bay_str redirect_uri)
{
    uri parts;
    if (uri_parse(&parts, redirect_uri) != BAY_OK || !str_starts(parts.scheme, STR("http"))) {
        return redirect_uri;
    }
    return parts.authority;
}

static void purpose_of(const ask *self, buf *out)
{
    buf_lit(out, CONSENT_FOR);
    buf_str(out, self->query);
}

static void show_consent(worker *self, const front_request *request, const ask *asked,
                         const auth_principal *who)
{
    buf body, purpose;
    buf_init(&body, PAGE_BYTES);
    buf_init(&purpose, LOGIN_FORM_BYTES);
    purpose_of(asked, &purpose);
    buf_lit(&body, "<p>A program wants to use this gateway in your name. Allow it only if you have "
                   "just begun this yourself, and know where the answer goes.</p><dl>");
    put_row(&body, "Program", asked->client.name.len > 0 ? asked->client.name : STR("(no name)"));
    if (asked->is_document) {
        put_row(&body, "Described at", asked->client_id);
    }
    put_row(&body, "Answer goes to", target_of(asked->redirect_uri));
    put_row(&body, "Access to", asked->resource);
    put_row(&body, "Scopes", asked->scope.len > 0 ? asked->scope : STR("(none)"));
    put_row(&body, "You are", principal_subject(who));
    put_row(&body, "Known by", principal_issuer(who));
    buf_lit(&body,
            "</dl><p>The name is what the program says of itself: nobody has checked it.</p>");
    worker_login_form(self, request, STR(AUTHORIZE), buf_view(&purpose), &body);
    buf_lit(&body, "<input type=\"hidden\" name=\"request\" value=\"");
    page_text(&body, asked->query);
    buf_lit(&body, "\"><button name=\"decision\" value=\"deny\">Deny</button><button "
                   "class=\"primary\" name=\"decision\" value=\"allow\">Allow</button></form>");
    bool is_whole = body.err == BAY_OK && purpose.err == BAY_OK;
    const page_spec page = {.status = is_whole ? 200 : 503,
                            .title = STR("Allow access?"),
                            .body = is_whole ? buf_view(&body) : STR(""),
                            .leads_away = true};
    page_reply(request->exchange, &page);
    buf_fini(&body);
    buf_fini(&purpose);
}

static void show_fault(http_exchange *exchange, int status, const char *why)
{
    page_say(exchange, status, STR("Access cannot be allowed"), str_of(why), STR(""), STR(""));
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* RFC 6749 section 4.1.2, RFC 9207 section 2. */
static void lead_back(const front_request *request, const ask *asked, bay_str name, bay_str value)
{
    buf url;
    bay_str to = asked->redirect_uri;
    buf_init_secret(&url, URL_BYTES);
    buf_str(&url, to);
    buf_char(&url, str_find(to, '?') < to.len ? '&' : '?');
    size_t start = url.len;
    oauth_form_put(&url, start, name, value);
    if (asked->state.at != NULL) {
        oauth_form_put(&url, start, STR("state"), asked->state);
    }
    oauth_form_put(&url, start, STR("iss"), asked->base);
    if (url.err == BAY_OK) {
        page_lead(request->exchange, buf_view(&url), NULL, 0);
    } else {
        show_fault(request->exchange, 503, "The answer is too long.");
    }
    buf_fini(&url);
}

static void allow(worker *self, const front_request *request, const ask *asked,
                  const auth_principal *who)
{
    char code[OAUTH_GIVEN_BYTES];
    const oauth_consent consent = {.person = who,
                                   .client_id = asked->client_id,
                                   .redirect_uri = asked->redirect_uri,
                                   .challenge = asked->challenge,
                                   .resource = asked->resource,
                                   .scope = asked->scope};
    bay_err err = oauth_grants_open(worker_auth_of(self->auth)->proxy->grants, &consent,
                                    loop_time_ms(), code);
    if (err == BAY_OK) {
        bay_str target = target_of(asked->redirect_uri);
        LOG(LOG_INFO, "proxy", "%.*s lets a program come in, whose answer goes to %.*s",
            BAY_STR(principal_subject(who)), BAY_STR(target));
        lead_back(request, asked, STR("code"), str_of(code));
    } else {
        show_fault(request->exchange, 503, "The gateway cannot remember this now.");
    }
    mem_wipe(code, sizeof(code));
}

/* Only for the page that this session saw, with this very request in it. */
static bool decide(worker *self, const front_request *request, const ask *asked, bay_str decision,
                   const auth_principal *who)
{
    buf purpose;
    buf_init(&purpose, LOGIN_FORM_BYTES);
    purpose_of(asked, &purpose);
    bool is_ours =
        purpose.err == BAY_OK && worker_login_is_form(self, request, buf_view(&purpose), NULL);
    buf_fini(&purpose);
    if (!is_ours) {
        return false;
    }
    if (str_eq(decision, STR("allow"))) {
        allow(self, request, asked, who);
    } else {
        lead_back(request, asked, STR("error"), STR("access_denied"));
    }
    return true;
}

/* The query that is asked: of GET its own, of POST what the page repeated. */
static bool take_query(const front_request *request, bool is_post, ask *out, bay_str *out_decision)
{
    oauth_form form;
    bay_str body = http_exchange_body(request->exchange);
    if (!is_post) {
        out->query = http_exchange_query(request->exchange);
    } else if (body.len <= LOGIN_FORM_BYTES &&
               oauth_form_read(body, http_exchange_arena(request->exchange), &form) == BAY_OK) {
        out->query = oauth_form_get(&form, STR("request"));
        *out_decision = oauth_form_get(&form, STR("decision"));
    }
    /* it has to come back from the login */
    return out->query.len > 0 && out->query.len + STR(AUTHORIZE "?").len <= LOGIN_RETURN_BYTES;
}

/* Its redirect URI is known only now. A POST needs no description: the page was shown for this very
 * request, or its token is none. */
static void on_described(worker *self, const front_request *request, const auth_principal *who,
                         const oauth_proxy_client *client, const char *why)
{
    ask asked = {.base = worker_login_base(self, request),
                 .query = http_exchange_query(request->exchange)};
    if (client != NULL) {
        why = read_ask(self, worker_proxy_settings(self), request, client, &asked);
    }
    if (why != NULL) {
        show_fault(request->exchange, 400, why);
    } else {
        show_consent(self, request, &asked, who);
    }
}

bool worker_proxy_authorize(void *user, const front_request *request)
{
    worker *self = user;
    const config_auth *settings = worker_proxy_settings(self);
    http_exchange *exchange = request->exchange;
    bay_str method = http_exchange_method(exchange);
    bool is_post = str_eq(method, STR("POST"));
    bay_str decision = STR("");
    if (settings == NULL) {
        return false;
    }
    if (!is_post && !str_eq(method, STR("GET"))) {
        const http_field allowed = {STR("Allow"), STR("GET, POST")};
        http_exchange_reply(exchange, 405, &allowed, 1, STR(""));
        return true;
    }
    ask asked = {.base = worker_login_base(self, request)};
    const char *why = take_query(request, is_post, &asked, &decision)
                          ? read_ask(self, settings, request, NULL, &asked)
                          : "The request is empty or too long.";
    if (why != NULL) {
        show_fault(exchange, 400, why);
        return true;
    }
    const auth_principal *who = worker_login_require(self, request);
    if (who == NULL) {
        return true;
    }
    if (!is_post && asked.is_document) {
        proxy_describe(self, request, who, asked.client_id, on_described);
    } else if (!is_post) {
        show_consent(self, request, &asked, who);
    } else if (!decide(self, request, &asked, decision, who)) {
        show_fault(exchange, 403, "The answer does not come from the page that asked.");
    }
    principal_unref(who);
    return true;
}

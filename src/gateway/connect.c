#include "gateway/connect.h"

#include <string.h>

#include "a2a_transport/link.h"
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
#include "gateway/worker.h"
#include "wire/uri.h"
#include "json/build.h"

#define LINK_FOR "patchbay connect link\n"
#define FORM_FOR "connect "

enum {
    ASSOCIATED_BYTES = PRINCIPAL_IDENTITY_BYTES + VAULT_SERVER_BYTES + 64,
    BODY_BYTES = 16 << 10
};

/* ---- where to log in ------------------------------------------------------------------------- */

bool connect_target_find(const config *settings, bay_str name, connect_target *out)
{
    const config_server *server = config_server_find(settings, name);
    const config_agent *agent = config_agent_find(settings, name);
    if (server != NULL && server->credentials.grant == CONFIG_GRANT_USER) {
        *out = (connect_target){&server->credentials, server->name, server->url, &server->tls};
        return true;
    }
    if (agent != NULL && agent->credentials.grant == CONFIG_GRANT_USER) {
        bay_str url = agent->card.len > 0 ? a2a_agent_url(agent->card) : agent->url;
        *out = (connect_target){&agent->credentials, agent->name, url, &agent->tls};
        return true;
    }
    return false;
}

/* ---- links ----------------------------------------------------------------------------------- */

/* A link is for one person and server. */
static bay_err link_associated(const auth_principal *who, bay_str server, buf *out)
{
    buf_lit(out, LINK_FOR);
    buf_str(out, server);
    buf_char(out, '\n');
    buf_str(out, principal_identity(who));
    return out->err;
}

static bool has_pages(const worker *self)
{
    return self->auth != NULL && self->vault != NULL && worker_login_is_on(self);
}

bool worker_connect_page(void *user, bay_str server, buf *out)
{
    worker *self = user;
    if (!has_pages(self)) {
        return false;
    }
    buf_str(out, worker_auth_base(self->auth, STR("")));
    buf_lit(out, "/connect/");
    uri_encode(out, server);
    return true;
}

bay_err worker_connect_link(void *user, const auth_principal *who, bay_str server, bay_str id,
                            buf *out)
{
    worker *self = user;
    if (!has_pages(self)) {
        return BAY_ERR_UNSUPPORTED;
    }
    if (!principal_has_proof(who, PRINCIPAL_TOKEN) ||
        !str_eq(principal_issuer(who), worker_login_issuer(self))) {
        return BAY_ERR_DENIED;
    }
    buf associated;
    buf_init(&associated, ASSOCIATED_BYTES);
    bay_err err = link_associated(who, server, &associated);
    (void)worker_connect_page(self, server, out);
    buf_lit(out, "?for=");
    err = err == BAY_OK ? seal_value(self->ring, id, buf_view(&associated),
                                     loop_time_ms() + CONNECT_LINK_MS, out)
                        : err;
    buf_fini(&associated);
    return err == BAY_OK ? out->err : err;
}

/* False: it is for somebody else, too old, or not ours. */
static bool link_open(const worker *self, const auth_principal *who, bay_str server, bay_str seal,
                      buf *out_id)
{
    buf associated;
    buf_init(&associated, ASSOCIATED_BYTES);
    bool is_open =
        link_associated(who, server, &associated) == BAY_OK &&
        seal_open(self->ring, seal, buf_view(&associated), loop_time_ms(), out_id) == BAY_OK;
    buf_fini(&associated);
    return is_open;
}

/* ---- clients that were asked ----------------------------------------------------------------- */

typedef struct connect_news {
    worker *worker;
    size_t server_len;
    size_t id_len;
    char text[]; /* both */
} connect_news;

static void tell_endpoints(const worker *self, bay_str server, json_val params)
{
    endpoint_elicitation_done(self->all, server, params);
    for (size_t i = 0; i < self->profile_count; i++) {
        endpoint_elicitation_done(self->profiles[i], server, params);
    }
    for (size_t i = 0; i < self->upstream_count; i++) {
        if (self->upstreams[i]->endpoint != NULL) {
            endpoint_elicitation_done(self->upstreams[i]->endpoint, server, params);
        }
    }
}

static void tell_worker(void *argument)
{
    connect_news *self = argument;
    json_builder made;
    json_val params;
    json_writer *out = json_builder_init(&made, NULL, 8 * CONNECT_ID_BYTES);
    json_open_object(out);
    json_key_lit(out, "elicitationId");
    json_put_str(out, (bay_str){self->text + self->server_len, self->id_len});
    json_close_object(out);
    if (!self->worker->is_ending && json_builder_view(&made, &params) == BAY_OK) {
        tell_endpoints(self->worker, (bay_str){self->text, self->server_len}, params);
    }
    json_builder_drop(&made);
    mem_free(self);
}

/* mcp 2025-11-25 client/elicitation: a client may be told; it asks again by itself otherwise. */
static void tell_all(const gateway *owner, bay_str server, bay_str id)
{
    for (uint32_t i = 0; id.len > 0 && i < owner->worker_count; i++) {
        connect_news *news = mem_zalloc(sizeof(*news) + server.len + id.len);
        if (news == NULL) {
            return;
        }
        news->worker = &owner->workers[i];
        news->server_len = server.len;
        news->id_len = id.len;
        memcpy(news->text, server.at, server.len);
        memcpy(news->text + server.len, id.at, id.len);
        if (loop_post(news->worker->loop, tell_worker, news) != BAY_OK) {
            mem_free(news);
        }
    }
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void put_row(buf *out, const char *name, bay_str value)
{
    buf_lit(out, "<dt>");
    buf_str(out, str_of(name));
    buf_lit(out, "</dt><dd>");
    page_text(out, value);
    buf_lit(out, "</dd>");
}

static void put_rows(buf *out, const connect_target *to, const auth_principal *who)
{
    uri parts;
    buf_lit(out, "<dl>");
    put_row(out, "Server", to->name);
    put_row(out, "At", uri_parse(&parts, to->url) == BAY_OK ? parts.authority : to->url);
    put_row(out, "You are", principal_subject(who));
    put_row(out, "Known by", principal_issuer(who));
    buf_lit(out, "</dl>");
}

static void reply_body(http_exchange *exchange, const char *title, const buf *body, bool leads_away,
                       const http_field *field)
{
    const page_spec page = {.status = body->err == BAY_OK ? 200 : 503,
                            .title = str_of(title),
                            .body = body->err == BAY_OK ? buf_view(body) : STR(""),
                            .leads_away = leads_away,
                            .fields = field,
                            .field_count = field != NULL ? 1 : 0};
    page_reply(exchange, &page);
}

/* The form is good for this server and this link. */
static void purpose_of(const connect_target *to, bay_str seal, buf *out)
{
    buf_lit(out, FORM_FOR);
    buf_str(out, to->name);
    buf_char(out, '\n');
    buf_str(out, seal);
}

static void show_question(worker *self, const front_request *request, const connect_target *to,
                          const auth_principal *who, bay_str seal)
{
    buf body, purpose, path;
    buf_init(&body, PAGE_BYTES);
    buf_init(&purpose, LOGIN_FORM_BYTES);
    buf_init(&path, LOGIN_RETURN_BYTES);
    purpose_of(to, seal, &purpose);
    buf_lit(&path, "/connect/");
    uri_encode(&path, to->name);
    buf_lit(&body, "<p>A program that works for you wants this gateway to use a server in your "
                   "name. The login page of that server comes next. Go on only if you have just "
                   "asked for this.</p>");
    put_rows(&body, to, who);
    worker_login_form(self, request, buf_view(&path), buf_view(&purpose), &body);
    buf_lit(&body, "<input type=\"hidden\" name=\"for\" value=\"");
    page_text(&body, seal);
    buf_lit(&body, "\"><button class=\"primary\">Log in there</button></form>");
    body.err = body.err == BAY_OK ? purpose.err : body.err;
    body.err = body.err == BAY_OK ? path.err : body.err;
    reply_body(request->exchange, "Log in at a server?", &body, true, NULL);
    buf_fini(&body);
    buf_fini(&purpose);
    buf_fini(&path);
}

void connect_say(http_exchange *exchange, int status, const char *title, const char *sentence)
{
    page_say(exchange, status, str_of(title), str_of(sentence), STR(""), STR(""));
}

/* The step has told what it was for; the cookie of the attempt goes. */
void connect_done(worker *self, const front_request *request, const connect_target *to,
                  const auth_principal *who, bay_str id)
{
    char name[PAGE_COOKIE_NAME_BYTES];
    bay_str base = worker_login_base(self, request);
    buf body, gone;
    buf_init(&body, BODY_BYTES);
    buf_init(&gone, PAGE_COOKIE_FIELD_BYTES);
    LOG(LOG_INFO, "vault", "%.*s of %.*s has logged in at %.*s", BAY_STR(principal_subject(who)),
        BAY_STR(principal_issuer(who)), BAY_STR(to->name));
    tell_all(self->gateway, to->name, id);
    buf_lit(&body, "<p>The gateway may use this server in your name now. Go back to the program: "
                   "it can go on, or be asked again.</p>");
    put_rows(&body, to, who);
    page_cookie_write(&gone, base, page_cookie_name(base, CONNECT_COOKIE, name), STR(""), 0);
    const http_field field = {STR("Set-Cookie"), buf_view(&gone)};
    reply_body(request->exchange, "Logged in", &body, false, &field);
    buf_fini(&body);
    buf_fini(&gone);
}

/* ---- the gateway as a client ----------------------------------------------------------------- */

static void put_list(json_writer *writer, const char *name, bay_str first, const char *second)
{
    json_key(writer, str_of(name));
    json_open_array(writer);
    json_put_str(writer, first);
    if (second[0] != '\0') {
        json_put_str(writer, str_of(second));
    }
    json_close_array(writer);
}

static void put_place(json_writer *writer, const char *name, bay_str base, const char *path)
{
    char text[LOGIN_RETURN_BYTES];
    buf url = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    buf_str(&url, base);
    buf_str(&url, str_of(path));
    json_key(writer, str_of(name));
    json_put_str(writer, url.err == BAY_OK ? buf_view(&url) : STR(""));
}

/* RFC 7591 section 2; mcp 2025-11-25 basic/authorization, Client ID Metadata Documents. */
bool worker_connect_document(void *user, const front_request *request)
{
    worker *self = user;
    char redirect_text[LOGIN_RETURN_BYTES];
    buf redirect = {
        .at = redirect_text, .cap = sizeof(redirect_text), .max = sizeof(redirect_text)};
    buf body;
    json_writer writer;
    if (!has_pages(self)) {
        return false;
    }
    bay_str base = worker_login_base(self, request);
    buf_str(&redirect, base);
    buf_lit(&redirect, CONNECT_REDIRECT);
    buf_init(&body, BODY_BYTES);
    json_writer_init(&writer, &body);
    json_open_object(&writer);
    put_place(&writer, "client_id", base, CONNECT_DOCUMENT_PATH);
    put_place(&writer, "client_uri", base, "/");
    json_key_lit(&writer, "client_name");
    json_put_str(&writer, STR("patchbay"));
    json_key_lit(&writer, "application_type");
    json_put_str(&writer, STR("web"));
    put_list(&writer, "redirect_uris", buf_view(&redirect), "");
    put_list(&writer, "grant_types", STR("authorization_code"), "refresh_token");
    put_list(&writer, "response_types", STR("code"), "");
    json_key_lit(&writer, "token_endpoint_auth_method");
    json_put_str(&writer, STR("none"));
    json_close_object(&writer);
    const http_field fields[] = {{STR("Content-Type"), STR("application/json")},
                                 {STR("Cache-Control"), STR("public, max-age=300")},
                                 {STR("Access-Control-Allow-Origin"), STR("*")}};
    bool is_whole = body.err == BAY_OK && redirect.err == BAY_OK;
    http_exchange_reply(request->exchange, is_whole ? 200 : 503, fields, ARRAY_LEN(fields),
                        is_whole ? buf_view(&body) : STR(""));
    buf_fini(&body);
    return true;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The link's seal: of GET in the query, of POST in the form. */
static bool read_seal(worker *self, const front_request *request, const connect_target *to,
                      bool is_post, bay_str *out)
{
    oauth_form form;
    buf purpose;
    arena *memory = http_exchange_arena(request->exchange);
    bay_str text =
        is_post ? http_exchange_body(request->exchange) : http_exchange_query(request->exchange);
    if (text.len > LOGIN_FORM_BYTES || oauth_form_read(text, memory, &form) != BAY_OK) {
        return false;
    }
    bay_str seal = oauth_form_get(&form, STR("for"));
    *out = seal.at != NULL ? seal : STR("");
    buf_init(&purpose, LOGIN_FORM_BYTES);
    purpose_of(to, *out, &purpose);
    bool is_good = !is_post || (purpose.err == BAY_OK &&
                                worker_login_is_form(self, request, buf_view(&purpose), NULL));
    buf_fini(&purpose);
    return is_good;
}

static void serve_page(worker *self, const front_request *request, const connect_target *to,
                       const auth_principal *who, bool is_post)
{
    http_exchange *exchange = request->exchange;
    bay_str seal = STR("");
    buf id;
    buf_init(&id, CONNECT_ID_BYTES);
    if (!read_seal(self, request, to, is_post, &seal)) {
        connect_say(exchange, is_post ? 403 : 400, "Not logged in there",
                    is_post ? "The request does not come from the gateway's own page."
                            : "The link cannot be read.");
    } else if (seal.len > 0 && !link_open(self, who, to->name, seal, &id)) {
        connect_say(exchange, 403, "Not your link",
                    "This link was made for somebody else, or more than an hour ago. If you are "
                    "logged in as another person than the one whose program gave it to you, log "
                    "out first. Never open a link that another person sent to you.");
    } else if (is_post) {
        connect_begin(self, request, to, who, buf_view(&id));
    } else {
        show_question(self, request, to, who, seal);
    }
    buf_fini(&id);
}

bool worker_connect_serve(void *user, const front_request *request)
{
    worker *self = user;
    http_exchange *exchange = request->exchange;
    connect_target to = {.name = STR("")};
    bay_str method = http_exchange_method(exchange);
    bool is_redirect = str_eq(request->path, STR(CONNECT_REDIRECT));
    bool is_post = str_eq(method, STR("POST"));
    buf name;
    if (!has_pages(self)) {
        return false;
    }
    if (!str_eq(method, STR("GET")) && (is_redirect || !is_post)) {
        const http_field allow = {STR("Allow"), is_redirect ? STR("GET") : STR("GET, POST")};
        http_exchange_reply(exchange, 405, &allow, 1, STR(""));
        return true;
    }
    const auth_principal *who = worker_login_require(self, request);
    if (who == NULL) {
        return true; /* the same for names that there are and others */
    }
    buf_init(&name, VAULT_SERVER_BYTES);
    if (is_redirect) {
        connect_finish(self, request, who);
    } else if (uri_decode(&name, request->name) == BAY_OK &&
               connect_target_find(self->config, buf_view(&name), &to)) {
        serve_page(self, request, &to, who, is_post);
    } else {
        connect_say(exchange, 404, "No such server",
                    "This gateway has no server of that name that is used in your name.");
    }
    buf_fini(&name);
    principal_unref(who);
    return true;
}

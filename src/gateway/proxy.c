/* What clients ask the gateway's authorization server: metadata, registration, tokens. */
#include "gateway/proxy.h"

#include "auth/oauth_form.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "gateway/auth_parts.h"
#include "gateway/login.h"
#include "gateway/worker.h"
#include "oauth/proxy_client.h"
#include "wire/header.h"
#include "json/writer.h"

enum { ANSWER_BYTES = 64 << 10, ANSWER_FIELDS = 3 };

const http_cors worker_proxy_cors = {STR_INIT("GET, HEAD, POST, OPTIONS"),
                                     STR_INIT("accept, content-type, mcp-protocol-version"),
                                     STR_INIT("")};

/* ---- what the workers share ------------------------------------------------------------------ */

bay_err gateway_proxy_new(const config_proxy *settings, gateway_proxy **out)
{
    const oauth_grants_options options = {.access_ms = settings->access_ms,
                                          .refresh_ms = settings->refresh_ms};
    gateway_proxy *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    atomic_init(&self->references, 1);
    bay_err err = oauth_grants_new(&options, &self->grants);
    if (err == BAY_OK) {
        err = failure_limit_new(PROXY_REGISTRATIONS, &self->registrations);
    }
    if (err != BAY_OK) {
        gateway_proxy_unref(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

gateway_proxy *gateway_proxy_ref(gateway_proxy *self)
{
    if (self != NULL) {
        atomic_fetch_add_explicit(&self->references, 1, memory_order_relaxed);
    }
    return self;
}

void gateway_proxy_unref(gateway_proxy *self)
{
    if (self != NULL &&
        atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) == 1) {
        oauth_grants_unref(self->grants);
        failure_limit_free(self->registrations);
        mem_free(self);
    }
}

static gateway_proxy *proxy_of(const worker *self)
{
    return self->auth != NULL ? worker_auth_of(self->auth)->proxy : NULL;
}

const config_auth *worker_proxy_settings(worker *self)
{
    return proxy_of(self) != NULL ? &worker_auth_of(self->auth)->config->auth : NULL;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Programs of any origin may read them: what they say is for whoever asked. */
static void answer(http_exchange *exchange, int status, const buf *json, bay_str cache)
{
    const http_field fields[ANSWER_FIELDS] = {
        {STR("Content-Type"), STR("application/json")},
        {STR("Cache-Control"), cache},
        {STR("Access-Control-Allow-Origin"), STR("*")},
    };
    bool is_whole = json->err == BAY_OK;
    http_exchange_reply(exchange, is_whole ? status : 503, fields, ANSWER_FIELDS,
                        is_whole ? buf_view(json) : STR(""));
}

/* RFC 6749 section 5.2. `text`: static, or without anything that was sent. */
static void answer_error(http_exchange *exchange, int status, const char *error, const char *text)
{
    buf body;
    json_writer writer;
    buf_init(&body, ANSWER_BYTES);
    json_writer_init(&writer, &body);
    json_open_object(&writer);
    json_key_lit(&writer, "error");
    json_put_str(&writer, str_of(error));
    if (text != NULL && text[0] != '\0') {
        json_key_lit(&writer, "error_description");
        json_put_str(&writer, str_of(text));
    }
    json_close_object(&writer);
    answer(exchange, status, &body, STR("no-store"));
    buf_fini(&body);
}

/* True: it is a POST; else it was answered. */
static bool is_post(http_exchange *exchange)
{
    if (str_eq(http_exchange_method(exchange), STR("POST"))) {
        return true;
    }
    const http_field allow = {STR("Allow"), STR("POST, OPTIONS")};
    http_exchange_reply(exchange, 405, &allow, 1, STR(""));
    return false;
}

/* ---- metadata -------------------------------------------------------------------------------- */

static void put_list(json_writer *writer, bay_str name, const bay_str *at, size_t count)
{
    json_key(writer, name);
    json_open_array(writer);
    for (size_t i = 0; i < count; i++) {
        json_put_str(writer, at[i]);
    }
    json_close_array(writer);
}

static void put_place(json_writer *writer, bay_str name, bay_str base, bay_str path)
{
    buf url;
    buf_init(&url, ANSWER_BYTES);
    buf_str(&url, base);
    buf_str(&url, path);
    json_key(writer, name);
    json_put_str(writer, buf_view(&url));
    buf_fini(&url);
}

/* RFC 8414 section 2, RFC 9207 section 3. */
static void write_metadata(const config_auth *settings, bay_str base, buf *out)
{
    static const bay_str code[] = {STR_INIT("code")};
    static const bay_str query[] = {STR_INIT("query")};
    static const bay_str s256[] = {STR_INIT("S256")};
    static const bay_str none[] = {STR_INIT("none")};
    static const bay_str grants[] = {STR_INIT("authorization_code"), STR_INIT("refresh_token")};
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_key_lit(&writer, "issuer");
    json_put_str(&writer, base);
    put_place(&writer, STR("authorization_endpoint"), base, STR("/oauth/authorize"));
    put_place(&writer, STR("token_endpoint"), base, STR("/oauth/token"));
    put_place(&writer, STR("registration_endpoint"), base, STR("/oauth/register"));
    put_place(&writer, STR("revocation_endpoint"), base, STR("/oauth/revoke"));
    put_list(&writer, STR("response_types_supported"), code, 1);
    put_list(&writer, STR("response_modes_supported"), query, 1);
    put_list(&writer, STR("grant_types_supported"), grants, ARRAY_LEN(grants));
    put_list(&writer, STR("code_challenge_methods_supported"), s256, 1);
    put_list(&writer, STR("token_endpoint_auth_methods_supported"), none, 1);
    put_list(&writer, STR("revocation_endpoint_auth_methods_supported"), none, 1);
    if (settings->proxy.scopes.count > 0) {
        put_list(&writer, STR("scopes_supported"), settings->proxy.scopes.at,
                 settings->proxy.scopes.count);
    }
    json_key_lit(&writer, "client_id_metadata_document_supported");
    json_put_bool(&writer, true);
    json_key_lit(&writer, "authorization_response_iss_parameter_supported");
    json_put_bool(&writer, true);
    json_close_object(&writer);
}

/* The path of publicUrl stands behind the well-known one, unless a proxy took it away. */
static bool is_metadata_path(bay_str base, bay_str path)
{
    bay_str rest = str_from(path, STR(PROXY_METADATA_PATH).len);
    bay_str below = str_from(base, str_find(base, ':') + 3);
    return rest.len == 0 || str_eq(rest, str_from(below, str_find(below, '/')));
}

bool worker_proxy_metadata(void *user, const front_request *request)
{
    worker *self = user;
    const config_auth *settings = worker_proxy_settings(self);
    bay_str method = http_exchange_method(request->exchange);
    bool is_read = str_eq(method, STR("GET")) || str_eq(method, STR("HEAD"));
    if (settings == NULL || !is_read) {
        return false;
    }
    bay_str base = worker_login_base(self, request);
    if (!is_metadata_path(base, request->path)) {
        return false;
    }
    buf body;
    buf_init(&body, ANSWER_BYTES);
    write_metadata(settings, base, &body);
    answer(request->exchange, 200, &body, STR("max-age=60"));
    buf_fini(&body);
    return true;
}

/* ---- registration ---------------------------------------------------------------------------- */

bool worker_proxy_register(void *user, const front_request *request)
{
    worker *self = user;
    gateway_proxy *proxy = proxy_of(self);
    http_exchange *exchange = request->exchange;
    uint32_t retry_ms = 0;
    uint64_t now_ms = loop_now_ms(self->loop);
    if (proxy == NULL) {
        return false;
    }
    if (!is_post(exchange)) {
        return true;
    }
    if (!failure_limit_admits(proxy->registrations, request->from.address, now_ms, &retry_ms)) {
        answer_error(exchange, 429, "temporarily_unavailable", "too many registrations");
        return true;
    }
    failure_limit_count(proxy->registrations, request->from.address, now_ms);
    if (http_exchange_body(exchange).len > OAUTH_PROXY_BODY_BYTES) {
        answer_error(exchange, 413, "invalid_client_metadata", "the body is too large");
        return true;
    }
    const config_proxy *settings = &worker_proxy_settings(self)->proxy;
    const oauth_proxy_schemes schemes = {settings->schemes.at, settings->schemes.count};
    const char *error = "server_error";
    bay_diag diag = {.text = ""};
    buf body;
    buf_init(&body, ANSWER_BYTES);
    bay_err err =
        oauth_proxy_register(self->ring, http_exchange_body(exchange), &schemes, loop_time_ms(),
                             http_exchange_arena(exchange), &body, &error, &diag);
    if (err == BAY_OK) {
        answer(exchange, 201, &body, STR("no-store"));
    } else {
        answer_error(exchange, err == BAY_ERR_DENIED ? 400 : 503, error, diag.text);
    }
    buf_fini(&body);
    return true;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static bay_str value_of(const oauth_form *form, const char *name)
{
    bay_str value = oauth_form_get(form, str_of(name));
    return value.at != NULL ? value : STR("");
}

/* The form of a request by a public client. False: it was answered. */
static bool read_form(worker *self, http_exchange *exchange, oauth_form *out)
{
    oauth_proxy_client client;
    bay_str body = http_exchange_body(exchange);
    bool is_form = header_content_type_is(http_exchange_field(exchange, STR("Content-Type")),
                                          STR("application/x-www-form-urlencoded"));
    if (!is_form || body.len > PROXY_FORM_BYTES ||
        oauth_form_read(body, http_exchange_arena(exchange), out) != BAY_OK) {
        answer_error(exchange, 400, "invalid_request", "the form cannot be read in one way only");
        return false;
    }
    bool has_secret = value_of(out, "client_secret").len > 0 ||
                      http_exchange_field_count(exchange, STR("Authorization")) > 0;
    bay_str id = value_of(out, "client_id");
    bay_err err = oauth_proxy_client_is_document(id) /* the grant says whether it is that one */
                      ? BAY_OK
                      : oauth_proxy_client_read(self->ring, id, loop_time_ms(),
                                                http_exchange_arena(exchange), &client);
    if (has_secret || err != BAY_OK) {
        answer_error(exchange, 400, "invalid_client",
                     has_secret ? "clients here have no secret" : "the client is not known");
        return false;
    }
    return true;
}

static void answer_given(http_exchange *exchange, const oauth_given *given)
{
    buf body;
    json_writer writer;
    buf_init_secret(&body, ANSWER_BYTES);
    json_writer_init(&writer, &body);
    json_open_object(&writer);
    json_key_lit(&writer, "access_token");
    json_put_str(&writer, str_of(given->access));
    json_key_lit(&writer, "token_type");
    json_put_str(&writer, STR("Bearer"));
    json_key_lit(&writer, "expires_in");
    json_put_uint(&writer, given->access_ms / 1000);
    json_key_lit(&writer, "refresh_token");
    json_put_str(&writer, str_of(given->refresh));
    json_key_lit(&writer, "scope");
    json_put_str(&writer, str_of(given->scope));
    json_close_object(&writer);
    answer(exchange, 200, &body, STR("no-store"));
    buf_fini(&body);
}

bool worker_proxy_token(void *user, const front_request *request)
{
    worker *self = user;
    gateway_proxy *proxy = proxy_of(self);
    http_exchange *exchange = request->exchange;
    oauth_form form;
    if (proxy == NULL) {
        return false;
    }
    if (!is_post(exchange) || !read_form(self, exchange, &form)) {
        return true;
    }
    bay_str grant = value_of(&form, "grant_type");
    bool is_code = str_eq(grant, STR("authorization_code"));
    oauth_given given = {.access = ""};
    const oauth_redemption asked = {
        .text = value_of(&form, is_code ? "code" : "refresh_token"),
        .client_id = value_of(&form, "client_id"),
        .redirect_uri = value_of(&form, "redirect_uri"),
        .verifier = value_of(&form, "code_verifier"),
        .resource = proxy_resource(worker_login_base(self, request), value_of(&form, "resource")),
        .scope = value_of(&form, "scope")};
    const char *error = "unsupported_grant_type";
    if (is_code) {
        error = oauth_grants_redeem(proxy->grants, &asked, loop_time_ms(), &given);
    } else if (str_eq(grant, STR("refresh_token"))) {
        error = oauth_grants_refresh(proxy->grants, &asked, loop_time_ms(), &given);
    }
    if (error == NULL) {
        answer_given(exchange, &given);
    } else {
        answer_error(exchange, 400, error, "");
    }
    mem_wipe(&given, sizeof(given));
    return true;
}

bool worker_proxy_revoke(void *user, const front_request *request)
{
    worker *self = user;
    gateway_proxy *proxy = proxy_of(self);
    oauth_form form;
    if (proxy == NULL) {
        return false;
    }
    if (is_post(request->exchange) && read_form(self, request->exchange, &form)) {
        buf empty = {.at = NULL};
        oauth_grants_revoke(proxy->grants, value_of(&form, "token"), value_of(&form, "client_id"),
                            loop_time_ms());
        answer(request->exchange, 200, &empty, STR("no-store"));
    }
    return true;
}

#include "oauth/document.h"

#include "base/err.h"
#include "base/mem.h"
#include "wire/header.h"
#include "wire/uri.h"

enum { VALUES = 1 << 14, MEMORY_BYTES = 8 << 20 };

struct oauth_source {
    loop *loop;
    http_client *http;
    address_rules *rules; /* NULL: none */
    address_guard guard;
    char home[];
};

/* ---- what may be fetched --------------------------------------------------------------------- */

static bool is_loopback(bay_str url)
{
    uri parts;
    return uri_parse(&parts, url) == BAY_OK && header_host_is_loopback(parts.host);
}

const char *oauth_url_fault(bay_str home, bay_str url)
{
    uri parts;
    if (url.len > OAUTH_URL_BYTES) {
        return "it is too long";
    }
    if (uri_parse(&parts, url) != BAY_OK || parts.host.len == 0) {
        return "it is no URL with a host";
    }
    if (parts.has_userinfo || parts.has_fragment) {
        return "it has a user name or a fragment";
    }
    if (str_eq_nocase(parts.scheme, STR("https"))) {
        return NULL;
    }
    if (!str_eq_nocase(parts.scheme, STR("http"))) {
        return "it is not https";
    }
    return header_host_is_loopback(parts.host) && is_loopback(home)
               ? NULL
               : "it is not https, and not on this machine";
}

bay_err oauth_source_new(loop *on, const oauth_source_options *options, oauth_source **out,
                         bay_diag *diag)
{
    const char *fault = oauth_url_fault(options->home, options->home);
    if (fault != NULL) {
        return diag_set(diag, BAY_ERR_INVALID, "the URL cannot be used: %s", fault);
    }
    oauth_source *self = mem_zalloc(sizeof(*self) + options->home.len);
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->loop = on;
    memcpy(self->home, options->home.at, options->home.len);
    self->guard.home = (bay_str){self->home, options->home.len};
    /* by its name alone: what is fetched first need not be of its host; it is looked at later */
    self->guard.reach = is_loopback(options->home) ? ADDRESS_SAME_MACHINE : ADDRESS_UNSEEN;
    bay_err err = options->allow_count > 0
                      ? address_rules_new(options->allow, options->allow_count, &self->rules, diag)
                      : BAY_OK;
    self->guard.rules = self->rules;
    http_client_options client = {.limits = http_client_default_limits,
                                  .tls = options->tls,
                                  .permit = address_guard_permit,
                                  .permit_user = &self->guard};
    if (options->connect_timeout_ms > 0) {
        client.limits.connect_timeout_ms = options->connect_timeout_ms;
    }
    err = err == BAY_OK ? http_client_new(on, &client, &self->http) : err;
    if (err != BAY_OK) {
        oauth_source_free(self);
        return err == BAY_ERR_SYNTAX ? BAY_ERR_INVALID : err;
    }
    *out = self;
    return BAY_OK;
}

void oauth_source_free(oauth_source *self)
{
    if (self != NULL) {
        http_client_free(self->http);
        address_rules_free(self->rules);
        mem_free(self);
    }
}

/* ---- one document ---------------------------------------------------------------------------- */

void oauth_document_init(oauth_document *self, oauth_source *source)
{
    *self = (oauth_document){.source = source};
    http_document_init(&self->fetch, source->loop);
    arena_init(&self->memory, MEMORY_BYTES);
}

void oauth_document_fini(oauth_document *self)
{
    http_document_fini(&self->fetch);
    arena_wipe(&self->memory);
}

bool oauth_document_is_busy(const oauth_document *self)
{
    return http_document_is_busy(&self->fetch);
}

static void on_head(void *user, int status, const http_field *fields, size_t count)
{
    oauth_document *self = user;
    (void)status;
    for (size_t i = 0; i < count; i++) {
        bay_str value = fields[i].value;
        if (str_eq_nocase(fields[i].name, STR("DPoP-Nonce")) && value.len <= OAUTH_NONCE_BYTES) {
            memcpy(self->dpop_nonce, value.at, value.len);
            self->dpop_nonce[value.len] = '\0';
        }
    }
}

/* NULL: `root` is the object. Else why there is none. */
static const char *read_body(oauth_document *self, json_val *out_root)
{
    static const json_limits limits = {OAUTH_DOCUMENT_MOST, OAUTH_DOCUMENT_DEPTH, VALUES};
    if (!self->fetch.may_be_json) {
        return "its answer is no JSON, by its Content-Type";
    }
    bay_err err = json_parse(&self->doc, buf_view(&self->fetch.body), &limits, &self->memory, NULL);
    if (err != BAY_OK) {
        return err == BAY_ERR_NOMEM ? "out of memory" : "its answer is no JSON that can be read";
    }
    if (!json_is(json_root(&self->doc), JSON_OBJECT)) {
        return "its answer is no JSON object";
    }
    err = json_check_duplicates(json_root(&self->doc), NULL);
    if (err != BAY_OK) {
        return err == BAY_ERR_NOMEM ? "out of memory" : "its answer has a member twice";
    }
    *out_root = json_root(&self->doc);
    return NULL;
}

static void on_document(void *user, bay_err err, const char *text)
{
    oauth_document *self = user;
    oauth_answer answer = {.err = err,
                           .text = text,
                           .status = self->fetch.status,
                           .root = JSON_NONE,
                           .has_max_age = self->fetch.has_max_age,
                           .max_age_s = self->fetch.max_age_s,
                           .dpop_nonce = str_of(self->dpop_nonce)};
    if (err == BAY_OK) {
        answer.body = buf_view(&self->fetch.body);
        const char *why = read_body(self, &answer.root);
        answer.text = why != NULL ? why : "";
    }
    self->done(self->user, &answer);
}

bay_err oauth_document_start(oauth_document *self, const oauth_request *request,
                             oauth_document_done done, void *user, bay_diag *diag)
{
    http_field fields[OAUTH_REQUEST_FIELDS + 2] = {{STR("Accept"), STR("application/json")}};
    size_t count = 1;
    bay_str body = request->form.len > 0 ? request->form : request->json;
    const char *fault = oauth_url_fault(self->source->guard.home, request->url);
    if (fault != NULL) {
        return diag_set(diag, BAY_ERR_DENIED, "the URL is not fetched: %s", fault);
    }
    if (request->field_count > OAUTH_REQUEST_FIELDS || request->max_bytes > OAUTH_DOCUMENT_MOST) {
        return diag_set(diag, BAY_ERR_LIMIT, "too many fields, or too large an answer");
    }
    if (body.len > 0) {
        fields[count++] = (http_field){
            STR("Content-Type"), request->form.len > 0 ? STR("application/x-www-form-urlencoded")
                                                       : STR("application/json")};
    }
    for (size_t i = 0; i < request->field_count; i++) {
        fields[count++] = request->fields[i];
    }
    self->done = done;
    self->user = user;
    self->dpop_nonce[0] = '\0';
    arena_wipe(&self->memory);
    http_document_spec spec = {.url = request->url,
                               .method = body.len > 0 ? STR("POST") : STR("GET"),
                               .fields = fields,
                               .field_count = count,
                               .body = body,
                               .max_bytes = request->max_bytes > 0 ? request->max_bytes
                                                                   : OAUTH_DOCUMENT_BYTES,
                               .timeout_ms = OAUTH_DOCUMENT_MS,
                               .is_secret = true,
                               .head = on_head};
    bay_err err =
        http_document_start(&self->fetch, self->source->http, &spec, on_document, self, diag);
    mem_wipe(fields, sizeof(fields));
    return err;
}

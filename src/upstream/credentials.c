#include "upstream/credentials.h"

#include "auth/oauth_form.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/capture.h"
#include "oauth/authority.h"
#include "wire/uri.h"

enum { PARAMETER_BYTES = 64 << 10 };

struct upstream_credentials {
    oauth_authority *authority;
    jose_key *key;    /* NULL: none */
    char *token_file; /* NULL: none */
};

/* ---- the platform's token -------------------------------------------------------------------- */

/* It is rotated in its file: read each time, without waiting. */
static void on_subject(void *user, oauth_authority *authority)
{
    const upstream_credentials *self = user;
    buf text;
    bay_diag why = {0};
    buf_init_secret(&text, OAUTH_TOKEN_BYTES);
    const char *fault = capture_file_into(self->token_file, 0, &text);
    bay_str token = str_trim(buf_view(&text));
    if (fault == NULL && token.len == 0) {
        fault = "it is empty";
    }
    if (fault != NULL) {
        (void)diag_set(&why, BAY_ERR_DENIED, "tokenFile %.100s: %.80s", self->token_file, fault);
        oauth_authority_subject(authority, (bay_str){"", 0}, why.text);
    } else {
        oauth_authority_subject(authority, token, NULL);
    }
    buf_fini(&text);
}

static const oauth_authority_events events = {.subject = on_subject};

/* ---- making ---------------------------------------------------------------------------------- */

static bay_err write_parameters(const config_map *parameters, buf *out)
{
    for (size_t i = 0; i < parameters->count; i++) {
        oauth_form_put(out, 0, parameters->at[i].name, parameters->at[i].value);
    }
    return out->err;
}

/* The operator's own words may be at any address. */
static size_t write_rules(const config_credentials *settings, bay_str *out)
{
    uri issuer;
    size_t count = 0;
    for (; count < settings->allow.count; count++) {
        out[count] = settings->allow.at[count];
    }
    if (settings->issuer.len > 0 && uri_parse(&issuer, settings->issuer) == BAY_OK) {
        out[count++] = issuer.host;
    }
    return count;
}

static bay_err make_authority(upstream_credentials *self, loop *on,
                              const config_credentials *settings, bay_str url, tls_context *tls,
                              bay_str extra, bay_diag *diag)
{
    bay_str *rules = mem_array(settings->allow.count + 1, sizeof(*rules));
    if (rules == NULL) {
        return BAY_ERR_NOMEM;
    }
    bool is_workload = settings->grant == CONFIG_GRANT_WORKLOAD;
    oauth_authority_options options = {
        .client = {.grant = is_workload ? OAUTH_ASSERTION : OAUTH_CLIENT,
                   .url = url,
                   .identity = {.id = settings->client_id,
                                .secret = settings->client_secret,
                                .key = self->key},
                   .issuer = settings->issuer,
                   .scope = settings->scope,
                   .extra = extra,
                   .wants_dpop = settings->dpop,
                   .is_modern_only = true},
        .allow = rules,
        .allow_count = write_rules(settings, rules),
        .tls = tls,
    };
    bay_err err = oauth_authority_new(on, &options, &events, self, &self->authority, diag);
    mem_free(rules);
    return err;
}

bay_err upstream_credentials_new(loop *on, const config_credentials *settings, bay_str url,
                                 tls_context *tls, upstream_credentials **out, bay_diag *diag)
{
    buf extra;
    bay_err err = BAY_OK;
    upstream_credentials *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    buf_init_secret(&extra, PARAMETER_BYTES);
    if (settings->key.len > 0) {
        err = jose_key_new(settings->key, settings->key_id, &self->key, diag);
    }
    if (err == BAY_OK && settings->token_file.len > 0) {
        self->token_file = mem_dup(settings->token_file.at, settings->token_file.len);
        err = self->token_file != NULL ? BAY_OK : BAY_ERR_NOMEM;
    }
    err = err == BAY_OK ? write_parameters(&settings->parameters, &extra) : err;
    if (err == BAY_OK) {
        err = make_authority(self, on, settings, url, tls, buf_view(&extra), diag);
    }
    buf_fini(&extra);
    if (err != BAY_OK) {
        upstream_credentials_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

void upstream_credentials_free(upstream_credentials *self)
{
    if (self != NULL) {
        oauth_authority_free(self->authority);
        jose_key_free(self->key);
        mem_free(self->token_file);
        mem_free(self);
    }
}

http_authority *upstream_credentials_http(upstream_credentials *self)
{
    return self != NULL ? oauth_authority_http(self->authority) : NULL;
}

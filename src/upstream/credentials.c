#include "upstream/credentials.h"

#include <string.h>

#include "auth/oauth_form.h"
#include "auth/vault.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/capture.h"
#include "upstream/refusal.h"
#include "wire/uri.h"

enum { PARAMETER_BYTES = 64 << 10, MEMORY_BYTES = 256 << 10 };

/* A caller, and what was exchanged for his token, or is in the vault. */
typedef struct caller caller;
struct caller {
    list_link link; /* in upstream_credentials.callers, the least recently used first */
    upstream_credentials *of;
    upstream_vault_call call;
    unsigned char rights[PRINCIPAL_RIGHTS_BYTES];
    const auth_principal *principal; /* counted; of his newest token */
    oauth_authority *authority;
    bool has_failed; /* with that token */
};

struct upstream_credentials {
    loop *loop;
    arena memory;                    /* secrets: what `options` views */
    oauth_authority_options options; /* of the gateway's own, or of each caller */
    oauth_authority *own;            /* NULL: the gateway asks without credentials */
    jose_key *key;                   /* NULL: none */
    jose_key *idp_key;               /* likewise */
    bay_str token_file;              /* "": none; else it ends in NUL */
    bool are_callers;
    const upstream_vault *vault; /* NULL: they bring tokens */
    bay_str server;
    caller *local; /* of the vault: as whom lists are read */
    list callers;
    map by_rights;
    refusal no_token, crowded;
};

/* ---- the platform's token -------------------------------------------------------------------- */

/* It is rotated in its file: read each time, without waiting. */
static void on_platform_subject(void *user, oauth_authority *authority)
{
    const upstream_credentials *self = user;
    buf text;
    bay_diag why = {0};
    buf_init_secret(&text, OAUTH_TOKEN_BYTES);
    const char *fault = capture_file_into(self->token_file.at, 0, &text);
    bay_str token = str_trim(buf_view(&text));
    if (fault == NULL && token.len == 0) {
        fault = "it is empty";
    }
    if (fault != NULL) {
        (void)diag_set(&why, BAY_ERR_DENIED, "tokenFile %.100s: %.80s", self->token_file.at, fault);
        oauth_authority_subject(authority, (bay_str){"", 0}, why.text);
    } else {
        oauth_authority_subject(authority, token, NULL);
    }
    buf_fini(&text);
}

static const oauth_authority_events own_events = {.subject = on_platform_subject};

/* ---- callers --------------------------------------------------------------------------------- */

static void on_caller_subject(void *user, oauth_authority *authority)
{
    const caller *self = user;
    oauth_authority_subject(authority, principal_token(self->principal), NULL);
}

static void on_caller_settled(void *user, oauth_authority *authority, const bay_diag *fault)
{
    (void)authority;
    ((caller *)user)->has_failed = fault != NULL;
}

static const oauth_authority_events caller_events = {.subject = on_caller_subject,
                                                     .settled = on_caller_settled};

/* ---- users, of the vault --------------------------------------------------------------------- */

static bay_str identity_of(const caller *self)
{
    return principal_identity(self->principal);
}

static void on_read(upstream_vault_call *call, bay_err err, bay_str record)
{
    caller *self = CONTAINER_OF(call, caller, call);
    if (err != BAY_OK) {
        oauth_authority_declined(self->authority, "the vault cannot be read");
        return;
    }
    oauth_authority_reread(self->authority, record);
}

static void on_user_reread(void *user, oauth_authority *authority)
{
    caller *self = user;
    (void)authority;
    self->call.done = on_read;
    self->of->vault->read(self->of->vault->user, identity_of(self), self->of->server, &self->call);
}

static void on_written(upstream_vault_call *call, bay_err err, bay_str record)
{
    caller *self = CONTAINER_OF(call, caller, call);
    (void)record;
    if (err != BAY_OK) {
        LOG(LOG_ERROR, "upstream",
            "%.*s: a user's new tokens could not be kept: %s; he has to log in there again after a "
            "restart",
            BAY_STR(self->of->server), bay_err_text(err));
    }
    oauth_authority_kept(self->authority);
}

static void on_user_keep(void *user, oauth_authority *authority, bay_str record)
{
    caller *self = user;
    (void)authority;
    self->call.done = on_written;
    self->of->vault->write(self->of->vault->user, identity_of(self), self->of->server, record,
                           &self->call);
}

static void on_user_settled(void *user, oauth_authority *authority, const bay_diag *fault)
{
    caller *self = user;
    (void)authority;
    (void)fault;
    self->of->vault->release(self->of->vault->user, identity_of(self), self->of->server);
}

static const oauth_authority_events user_events = {
    .keep = on_user_keep, .reread = on_user_reread, .settled = on_user_settled};

static bay_str rights_of(const caller *self)
{
    return (bay_str){(const char *)self->rights, sizeof(self->rights)};
}

static void caller_free(upstream_credentials *of, caller *self)
{
    list_remove(&self->link);
    (void)map_remove(&of->by_rights, rights_of(self));
    if (of->vault != NULL) {
        of->vault->cancel(of->vault->user, &self->call);
    }
    oauth_authority_free(self->authority);
    principal_unref(self->principal);
    mem_free(self);
}

/* The one who was away for longest makes room: his token is exchanged anew when he comes again. False:
 * requests of all of them are under way. */
static bool make_room(upstream_credentials *self)
{
    if (self->by_rights.len < UPSTREAM_CALLERS) {
        return true;
    }
    LIST_EACH(link, &self->callers)
    {
        caller *one = CONTAINER_OF(link, caller, link);
        if (one != self->local && oauth_authority_http(one->authority)->holders == 0) {
            caller_free(self, one);
            return true;
        }
    }
    return false;
}

static bay_err caller_new(upstream_credentials *of, const auth_principal *principal,
                          const unsigned char rights[PRINCIPAL_RIGHTS_BYTES], caller **out)
{
    bay_diag diag = {0};
    caller *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    memcpy(self->rights, rights, sizeof(self->rights));
    self->of = of;
    bay_err err = oauth_authority_new(of->loop, &of->options,
                                      of->vault != NULL ? &user_events : &caller_events, self,
                                      &self->authority, &diag);
    err = err == BAY_OK ? map_put(&of->by_rights, rights_of(self), self, NULL) : err;
    if (err != BAY_OK) {
        oauth_authority_free(self->authority);
        mem_free(self);
        return err;
    }
    self->principal = principal_ref(principal);
    list_push(&of->callers, &self->link);
    *out = self;
    return BAY_OK;
}

/* The same caller with a newer token: what failed with the old one may be tried at once. */
static void caller_take(caller *self, const auth_principal *principal)
{
    if (str_eq_secret(principal_token(self->principal), principal_token(principal))) {
        return;
    }
    principal_unref(self->principal);
    self->principal = principal_ref(principal);
    if (self->has_failed) {
        self->has_failed = false;
        oauth_authority_begin(self->authority, false);
    }
}

http_authority *upstream_credentials_of(upstream_credentials *self, const auth_principal *who)
{
    unsigned char rights[PRINCIPAL_RIGHTS_BYTES];
    if (self == NULL || !self->are_callers) {
        return upstream_credentials_own(self);
    }
    bool has_none = self->vault != NULL ? who == NULL : principal_token(who).len == 0;
    if (has_none || principal_rights(who, rights) != BAY_OK) {
        return &self->no_token.http;
    }
    caller *one = map_get(&self->by_rights, (bay_str){(const char *)rights, sizeof(rights)});
    if (one == NULL && (!make_room(self) || caller_new(self, who, rights, &one) != BAY_OK)) {
        return &self->crowded.http;
    }
    list_remove(&one->link);
    list_push(&self->callers, &one->link);
    caller_take(one, who);
    return oauth_authority_http(one->authority);
}

http_authority *upstream_credentials_own(upstream_credentials *self)
{
    oauth_authority *own = self == NULL          ? NULL
                           : self->local != NULL ? self->local->authority
                                                 : self->own;
    return own != NULL ? oauth_authority_http(own) : NULL;
}

oauth_authority_options upstream_credentials_login(const upstream_credentials *self)
{
    oauth_authority_options options = self->options;
    options.client.grant = OAUTH_CODE;
    options.client.is_eager = false;
    options.client.reread_ms = 0;
    options.client.name = STR("patchbay");
    return options;
}

/* ---- making ---------------------------------------------------------------------------------- */

static bay_err keep_parameters(upstream_credentials *self, const config_map *parameters)
{
    buf extra;
    buf_init_secret(&extra, PARAMETER_BYTES);
    for (size_t i = 0; i < parameters->count; i++) {
        oauth_form_put(&extra, 0, parameters->at[i].name, parameters->at[i].value);
    }
    bay_err err = extra.err;
    if (err == BAY_OK) {
        err = arena_dup(&self->memory, buf_view(&extra), &self->options.client.extra);
    }
    buf_fini(&extra);
    return err;
}

/* The operator's own words may be at any address. */
static bay_err keep_rules(upstream_credentials *self, const config_credentials *settings)
{
    const bay_str issuers[] = {settings->issuer, settings->idp.issuer};
    size_t count = 0;
    uri issuer;
    bay_str *rules =
        arena_array(&self->memory, settings->allow.count + ARRAY_LEN(issuers), sizeof(*rules));
    if (rules == NULL) {
        return BAY_ERR_NOMEM;
    }
    bay_err err = BAY_OK;
    for (size_t i = 0; err == BAY_OK && i < settings->allow.count; i++) {
        err = arena_dup(&self->memory, settings->allow.at[i], &rules[count++]);
    }
    for (size_t i = 0; err == BAY_OK && i < ARRAY_LEN(issuers); i++) {
        if (issuers[i].len > 0 && uri_parse(&issuer, issuers[i]) == BAY_OK) {
            err = arena_dup(&self->memory, issuer.host, &rules[count++]);
        }
    }
    self->options.allow = rules;
    self->options.allow_count = count;
    return err;
}

static bay_err keep_texts(upstream_credentials *self, const config_credentials *settings,
                          bay_str url)
{
    oauth_settings *client = &self->options.client;
    const struct {
        bay_str from;
        bay_str *to;
    } texts[] = {
        {url, &client->url},
        {settings->client_id, &client->identity.id},
        {settings->client_secret, &client->identity.secret},
        {settings->issuer, &client->issuer},
        {settings->scope, &client->scope},
        {settings->idp.issuer, &client->idp_issuer},
        {settings->idp.client_id, &client->idp.id},
        {settings->idp.client_secret, &client->idp.secret},
        {settings->token_file, &self->token_file},
    };
    bay_err err = BAY_OK;
    for (size_t i = 0; err == BAY_OK && i < ARRAY_LEN(texts); i++) {
        err = arena_dup(&self->memory, texts[i].from, texts[i].to);
    }
    return err;
}

static bay_err keep_keys(upstream_credentials *self, const config_credentials *settings,
                         bay_diag *diag)
{
    bay_err err = BAY_OK;
    if (settings->key.len > 0) {
        err = jose_key_new(settings->key, settings->key_id, &self->key, diag);
    }
    if (err == BAY_OK && settings->idp.key.len > 0) {
        err = jose_key_new(settings->idp.key, STR(""), &self->idp_key, diag);
    }
    self->options.client.identity.key = self->key;
    self->options.client.idp.key = self->idp_key;
    return err;
}

/* The user of this process, with a row of his own in the vault: without one, lists are asked for without
 * credentials. */
static bay_err make_local(upstream_credentials *self)
{
    const unsigned char rights[PRINCIPAL_RIGHTS_BYTES] = {0}; /* as a caller he has another place */
    const auth_principal *local = principal_local();
    bay_err err = local != NULL ? BAY_OK : BAY_ERR_NOMEM;
    self->options.client.is_eager = false;
    err = err == BAY_OK ? caller_new(self, local, rights, &self->local) : err;
    self->options.client.is_eager = true;
    principal_unref(local);
    return err;
}

/* Lists belong to no caller: the client asks for them itself, or nobody does. */
static bay_err make_own(upstream_credentials *self, const config_credentials *settings,
                        bay_diag *diag)
{
    oauth_authority_options options = self->options;
    options.client.is_eager = false;
    options.client.grant =
        settings->grant == CONFIG_GRANT_WORKLOAD ? OAUTH_ASSERTION : OAUTH_CLIENT;
    options.client.idp = (oauth_identity){.id = STR("")};
    options.client.idp_issuer = STR("");
    if (self->are_callers && settings->lists == CONFIG_LISTS_NONE) {
        return BAY_OK;
    }
    if (self->vault != NULL) {
        return make_local(self);
    }
    return oauth_authority_new(self->loop, &options, &own_events, self, &self->own, diag);
}

static oauth_grant grant_of(const config_credentials *settings)
{
    return settings->grant == CONFIG_GRANT_ID_JAG ? OAUTH_ID_JAG
           : settings->grant == CONFIG_GRANT_USER ? OAUTH_STORED
                                                  : OAUTH_EXCHANGE;
}

bay_err upstream_credentials_new(loop *on, const upstream_credentials_options *options,
                                 upstream_credentials **out, bay_diag *diag)
{
    const config_credentials *settings = options->settings;
    bool is_user = settings->grant == CONFIG_GRANT_USER;
    if (is_user && options->vault == NULL) {
        return diag_set(diag, BAY_ERR_INVALID, "there is no vault with users' tokens here");
    }
    upstream_credentials *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->loop = on;
    self->are_callers = config_credentials_are_callers(settings);
    self->vault = is_user ? options->vault : NULL;
    self->options = (oauth_authority_options){
        .client = {.grant = grant_of(settings),
                   .reread_ms = is_user ? VAULT_READ_MS : 0,
                   .wants_dpop = settings->dpop,
                   .is_eager = true, /* no call is sent without its caller's credential */
                   .is_modern_only = true,
                   .is_subject_access = true},
        .tls = options->tls,
    };
    arena_init(&self->memory, MEMORY_BYTES);
    list_init(&self->callers);
    map_init(&self->by_rights, UPSTREAM_CALLERS);
    refusal_init(
        &self->no_token, on, BAY_ERR_DENIED,
        "the caller brought no access token that could be exchanged for one of this server");
    refusal_init(&self->crowded, on, BAY_ERR_BUSY,
                 "too many callers at once have credentials there");
    bay_err err = keep_texts(self, settings, options->url);
    err = err == BAY_OK ? arena_dup(&self->memory, options->server, &self->server) : err;
    err = err == BAY_OK ? keep_parameters(self, &settings->parameters) : err;
    err = err == BAY_OK ? keep_rules(self, settings) : err;
    err = err == BAY_OK ? keep_keys(self, settings, diag) : err;
    err = err == BAY_OK ? make_own(self, settings, diag) : err;
    if (err != BAY_OK) {
        upstream_credentials_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

void upstream_credentials_free(upstream_credentials *self)
{
    list_link *link;
    if (self == NULL) {
        return;
    }
    while ((link = list_first(&self->callers)) != NULL) {
        caller_free(self, CONTAINER_OF(link, caller, link));
    }
    oauth_authority_free(self->own);
    refusal_fini(&self->no_token);
    refusal_fini(&self->crowded);
    map_fini(&self->by_rights);
    jose_key_free(self->key);
    jose_key_free(self->idp_key);
    arena_wipe(&self->memory);
    mem_free(self);
}

#include "sdk/oauth_settings.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "sdk/asker_options.h"
#include "sdk/caller_parts.h"
#include "sdk/client_parts.h"

enum { OAUTH_EXTRA_BYTES = 4096 };

typedef enum oauth_word {
    WORD_CLIENT_ID,
    WORD_CLIENT_SECRET,
    WORD_DOCUMENT,
    WORD_ISSUER,
    WORD_SCOPE,
    WORD_REDIRECT,
    WORD_PROVIDER,
    WORD_PROVIDER_ID,
    WORD_PROVIDER_SECRET,
    WORDS,
} oauth_word;

struct bay_oauth {
    atomic_uint references;
    bay_oauth_grant grant;
    bay_diag fault; /* the first one */
    buf words[WORDS];
    buf extra;
    jose_key *key;
    bool wants_dpop;
    bool is_provider_endpoint;
    bay_login_open_fn open;
    void *open_user;
    bay_login_code_fn show;
    void *show_user;
    bay_login_token_fn get;
    void *get_user;
    bay_login_load_fn load;
    bay_login_save_fn save;
    void *store_user;
};

struct bay_login {
    bay_oauth *settings;
    oauth_authority *authority;
    oauth_authority_events events;
    bool is_first; /* what is kept was not loaded yet */
    bool is_loading;
};

/* ---- settings -------------------------------------------------------------------------------- */

bay_oauth *bay_oauth_new(bay_oauth_grant grant)
{
    bay_oauth *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    atomic_init(&self->references, 1);
    self->grant = grant;
    for (size_t i = 0; i < WORDS; i++) {
        buf_init_secret(&self->words[i], OAUTH_SCOPE_BYTES);
    }
    buf_init_secret(&self->extra, OAUTH_EXTRA_BYTES);
    if (grant < BAY_OAUTH_GRANT_BROWSER || grant > BAY_OAUTH_GRANT_ENTERPRISE) {
        diag_set(&self->fault, BAY_ERR_INVALID, "there is no such grant");
    }
    return self;
}

bay_oauth *sdk_oauth_ref(bay_oauth *self)
{
    if (self != NULL) {
        atomic_fetch_add(&self->references, 1);
    }
    return self;
}

void bay_oauth_free(bay_oauth *oauth)
{
    if (oauth == NULL || atomic_fetch_sub(&oauth->references, 1) > 1) {
        return;
    }
    for (size_t i = 0; i < WORDS; i++) {
        buf_fini(&oauth->words[i]);
    }
    buf_fini(&oauth->extra);
    jose_key_free(oauth->key);
    mem_free(oauth);
}

bay_err sdk_oauth_check(const bay_oauth *self, bay_diag *diag)
{
    return self->fault.code == BAY_OK
               ? BAY_OK
               : diag_set(diag, self->fault.code, "OAuth: %s", self->fault.text);
}

const char *sdk_oauth_extension(const bay_oauth *self)
{
    static const char *const extensions[] = {
        [BAY_OAUTH_GRANT_CLIENT] = "io.modelcontextprotocol/oauth-client-credentials",
        [BAY_OAUTH_GRANT_WORKLOAD] = "io.modelcontextprotocol/auth/wif",
        [BAY_OAUTH_GRANT_ENTERPRISE] = "io.modelcontextprotocol/enterprise-managed-authorization",
    };
    return self->grant <= BAY_OAUTH_GRANT_ENTERPRISE ? extensions[self->grant] : NULL;
}

bool sdk_oauth_wants_dpop(const bay_oauth *self)
{
    return self->wants_dpop;
}

static void set_word(bay_oauth *self, oauth_word word, const char *text, const char *what)
{
    if (self == NULL || self->fault.code != BAY_OK) {
        return;
    }
    bay_str value = text != NULL ? str_of(text) : (bay_str){"", 0};
    for (size_t i = 0; i < value.len; i++) {
        if ((unsigned char)value.at[i] < 0x20 || value.at[i] == 0x7f) {
            diag_set(&self->fault, BAY_ERR_INVALID, "%s has a control character", what);
            return;
        }
    }
    bay_err err = oauth_text_set(&self->words[word], value);
    if (err != BAY_OK) {
        diag_set(&self->fault, err, "%s: %s", what, bay_err_text(err));
    }
}

void bay_oauth_client(bay_oauth *oauth, const char *id, const char *secret)
{
    set_word(oauth, WORD_CLIENT_ID, id, "the client id");
    set_word(oauth, WORD_CLIENT_SECRET, secret, "the client secret");
}

void bay_oauth_key(bay_oauth *oauth, const char *key, const char *key_id)
{
    bay_diag diag = {0};
    if (oauth == NULL || oauth->fault.code != BAY_OK) {
        return;
    }
    jose_key_free(oauth->key);
    oauth->key = NULL;
    bay_err err = jose_key_new(str_of(key), str_of(key_id), &oauth->key, &diag);
    if (err != BAY_OK) {
        diag_set(&oauth->fault, err, "the client's key: %s",
                 diag.text[0] != '\0' ? diag.text : bay_err_text(err));
    }
}

void bay_oauth_document(bay_oauth *oauth, const char *url)
{
    set_word(oauth, WORD_DOCUMENT, url, "the URL of the client id metadata document");
}

void bay_oauth_issuer(bay_oauth *oauth, const char *issuer)
{
    set_word(oauth, WORD_ISSUER, issuer, "the issuer");
}

void bay_oauth_scope(bay_oauth *oauth, const char *scopes)
{
    set_word(oauth, WORD_SCOPE, scopes, "the scope");
}

void bay_oauth_redirect(bay_oauth *oauth, const char *uri)
{
    set_word(oauth, WORD_REDIRECT, uri, "the redirect URI");
}

void bay_oauth_parameter(bay_oauth *oauth, const char *name, const char *value)
{
    if (oauth == NULL || oauth->fault.code != BAY_OK) {
        return;
    }
    if (name == NULL || name[0] == '\0' || value == NULL) {
        diag_set(&oauth->fault, BAY_ERR_INVALID, "a parameter needs a name and a value");
        return;
    }
    oauth_form_put(&oauth->extra, 0, str_of(name), str_of(value));
    if (oauth->extra.err != BAY_OK) {
        diag_set(&oauth->fault, oauth->extra.err, "the parameters: %s",
                 bay_err_text(oauth->extra.err));
    }
}

void bay_oauth_dpop(bay_oauth *oauth)
{
    if (oauth != NULL) {
        oauth->wants_dpop = true;
    }
}

void bay_oauth_provider(bay_oauth *oauth, const char *url, bool is_endpoint, const char *client_id,
                        const char *secret)
{
    set_word(oauth, WORD_PROVIDER, url, "the identity provider");
    set_word(oauth, WORD_PROVIDER_ID, client_id, "the client id at the identity provider");
    set_word(oauth, WORD_PROVIDER_SECRET, secret, "the client secret at the identity provider");
    if (oauth != NULL) {
        oauth->is_provider_endpoint = is_endpoint;
    }
}

void bay_oauth_on_open(bay_oauth *oauth, bay_login_open_fn open, void *user)
{
    if (oauth != NULL) {
        oauth->open = open;
        oauth->open_user = user;
    }
}

void bay_oauth_on_code(bay_oauth *oauth, bay_login_code_fn show, void *user)
{
    if (oauth != NULL) {
        oauth->show = show;
        oauth->show_user = user;
    }
}

void bay_oauth_on_token(bay_oauth *oauth, bay_login_token_fn get, void *user)
{
    if (oauth != NULL) {
        oauth->get = get;
        oauth->get_user = user;
    }
}

void bay_oauth_on_store(bay_oauth *oauth, bay_login_load_fn load, bay_login_save_fn save,
                        void *user)
{
    if (oauth == NULL) {
        return;
    }
    if ((load == NULL) != (save == NULL) && oauth->fault.code == BAY_OK) {
        diag_set(&oauth->fault, BAY_ERR_INVALID, "a store loads and saves: give both functions");
    }
    oauth->load = load;
    oauth->save = save;
    oauth->store_user = user;
}

/* ---- a login --------------------------------------------------------------------------------- */

static void login_open(void *user, oauth_authority *authority, bay_str url)
{
    bay_login *self = user;
    char text[OAUTH_FORM_BYTES + 1];
    (void)authority;
    snprintf(text, sizeof(text), "%.*s", BAY_STR(url));
    self->settings->open(self, text, self->settings->open_user);
}

static void login_show(void *user, oauth_authority *authority, bay_str url, bay_str code)
{
    bay_login *self = user;
    char place[OAUTH_URL_MOST + 1];
    char text[OAUTH_URL_MOST + 1];
    (void)authority;
    snprintf(place, sizeof(place), "%.*s", BAY_STR(url));
    snprintf(text, sizeof(text), "%.*s", BAY_STR(code));
    self->settings->show(self, place, text, self->settings->show_user);
}

static void login_subject(void *user, oauth_authority *authority)
{
    bay_login *self = user;
    (void)authority;
    self->settings->get(self, self->settings->get_user);
}

static void login_keep(void *user, oauth_authority *authority, bay_str record)
{
    bay_login *self = user;
    bay_err err = self->settings->save(self, record, self->settings->store_user);
    if (err != BAY_OK) {
        LOG(LOG_WARN, "oauth", "a login could not be kept: %s; it is lost with this process",
            bay_err_text(err));
    }
    oauth_authority_kept(authority);
}

static void login_reread(void *user, oauth_authority *authority)
{
    bay_login *self = user;
    (void)authority;
    self->is_loading = true;
    self->settings->load(self, self->settings->store_user);
}

bool bay_login_redirected(bay_login *login, const char *url)
{
    if (login == NULL || url == NULL) {
        return false;
    }
    bay_str text = str_of(url);
    size_t query = str_find(text, '?');
    text = query < text.len ? str_from(text, query + 1) : text;
    return oauth_authority_redirected(login->authority, str_head(text, str_find(text, '#')));
}

void bay_login_decline(bay_login *login, const char *why)
{
    if (login != NULL) {
        oauth_authority_declined(login->authority, why != NULL ? why : "the login was declined");
    }
}

void bay_login_token(bay_login *login, const char *token)
{
    if (login != NULL) {
        oauth_authority_subject(login->authority, str_of(token), "there is no token to present");
    }
}

void bay_login_loaded(bay_login *login, bay_str record)
{
    if (login == NULL) {
        return;
    }
    if (login->is_first) {
        login->is_first = false;
        if (record.len > 0 && oauth_authority_load(login->authority, record) != BAY_OK) {
            LOG(LOG_WARN, "oauth", "out of memory: what is kept of a login is not used");
        }
        return;
    }
    oauth_authority_reread(login->authority, record);
}

static void login_settings(const bay_oauth *from, bay_str url, bool is_agent, oauth_settings *out)
{
    static const oauth_grant grants[] = {
        [BAY_OAUTH_GRANT_BROWSER] = OAUTH_CODE,      [BAY_OAUTH_GRANT_DEVICE] = OAUTH_DEVICE,
        [BAY_OAUTH_GRANT_CLIENT] = OAUTH_CLIENT,     [BAY_OAUTH_GRANT_WORKLOAD] = OAUTH_ASSERTION,
        [BAY_OAUTH_GRANT_EXCHANGE] = OAUTH_EXCHANGE, [BAY_OAUTH_GRANT_ENTERPRISE] = OAUTH_ID_JAG,
    };
    *out = (oauth_settings){
        .grant = grants[from->grant],
        .url = url,
        .identity = {.id = buf_view(&from->words[WORD_CLIENT_ID]),
                     .secret = buf_view(&from->words[WORD_CLIENT_SECRET]),
                     .key = from->key},
        .issuer = buf_view(&from->words[WORD_ISSUER]),
        .document_url = buf_view(&from->words[WORD_DOCUMENT]),
        .redirect_uri = buf_view(&from->words[WORD_REDIRECT]),
        .scope = buf_view(&from->words[WORD_SCOPE]),
        .extra = buf_view(&from->extra),
        .idp = {.id = buf_view(&from->words[WORD_PROVIDER_ID]),
                .secret = buf_view(&from->words[WORD_PROVIDER_SECRET])},
        .wants_dpop = from->wants_dpop,
        .is_modern_only = is_agent,
    };
    bay_str provider = buf_view(&from->words[WORD_PROVIDER]);
    if (from->is_provider_endpoint) {
        out->idp_token_endpoint = provider;
    } else {
        out->idp_issuer = provider;
    }
}

bay_err sdk_login_new(bay_oauth *settings, loop *on, bay_str url, tls_context *tls, bool is_agent,
                      bay_login **out, bay_diag *diag)
{
    oauth_authority_options options = {.tls = tls};
    bay_err err = sdk_oauth_check(settings, diag);
    bay_login *self = err == BAY_OK ? mem_zalloc(sizeof(*self)) : NULL;
    if (self == NULL) {
        return err != BAY_OK ? err : diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    login_settings(settings, url, is_agent, &options.client);
    options.has_receiver = settings->open != NULL;
    self->events = (oauth_authority_events){
        .open = settings->open != NULL ? login_open : NULL,
        .show = settings->show != NULL ? login_show : NULL,
        .subject = settings->get != NULL ? login_subject : NULL,
        .keep = settings->save != NULL ? login_keep : NULL,
        .reread = settings->load != NULL ? login_reread : NULL,
    };
    err = oauth_authority_new(on, &options, &self->events, self, &self->authority, diag);
    if (err != BAY_OK) {
        mem_free(self);
        return err;
    }
    self->settings = sdk_oauth_ref(settings);
    if (settings->load != NULL) {
        self->is_first = true;
        settings->load(self, settings->store_user);
    }
    *out = self;
    return BAY_OK;
}

void sdk_login_free(bay_login *self)
{
    if (self != NULL) {
        oauth_authority_free(self->authority);
        bay_oauth_free(self->settings);
        mem_free(self);
    }
}

http_authority *sdk_login_http(bay_login *self)
{
    return self != NULL ? oauth_authority_http(self->authority) : NULL;
}

/* ---- options --------------------------------------------------------------------------------- */

void bay_client_options_oauth(struct bay_client_options *options, bay_oauth *oauth)
{
    if (options == NULL) {
        return;
    }
    bay_oauth_free(options->base.oauth);
    options->base.oauth = sdk_oauth_ref(oauth);
    const char *extension = oauth != NULL ? sdk_oauth_extension(oauth) : NULL;
    if (extension != NULL) {
        bay_client_options_extension(options, extension, NULL);
    }
    if (oauth != NULL && oauth->wants_dpop) {
        bay_client_options_extension(options, "io.modelcontextprotocol/auth/dpop", NULL);
    }
}

void bay_caller_options_oauth(struct bay_caller_options *options, bay_oauth *oauth)
{
    if (options != NULL) {
        bay_oauth_free(options->base.oauth);
        options->base.oauth = sdk_oauth_ref(oauth);
    }
}

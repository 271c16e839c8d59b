/* How to call an agent: filled by the program, copied by the connect.
 * Invariant: the first thing that went wrong is remembered and told by the connect; nothing after
 * it is taken. Values are secrets as a rule: wiped before they are freed. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "sdk/caller_parts.h"
#include "wire/header.h"

/* ---- settings -------------------------------------------------------------------------------- */

static void free_secret(char *text)
{
    if (text != NULL) {
        mem_wipe(text, strlen(text));
        mem_free(text);
    }
}

void sdk_settings_fini(caller_settings *self)
{
    for (size_t i = 0; i < self->count; i++) {
        free_secret(self->at[i].name);
        free_secret(self->at[i].value);
    }
    mem_free(self->at);
    *self = (caller_settings){0};
}

static bay_err copy_text(const char *text, char **out)
{
    size_t len = strlen(text);
    if (len > CALLER_SETTING_BYTES) {
        return BAY_LIMIT;
    }
    *out = mem_dup(text, len);
    return *out != NULL ? BAY_OK : BAY_NOMEM;
}

bay_err sdk_settings_add(caller_settings *self, const char *name, const char *value)
{
    caller_setting one = {0};
    if (self->count >= CALLER_SETTINGS) {
        return BAY_LIMIT;
    }
    if (self->count == self->cap) {
        size_t cap = self->cap == 0 ? 4 : self->cap * 2;
        caller_setting *at = mem_resize(self->at, cap * sizeof(*at));
        if (at == NULL) {
            return BAY_NOMEM;
        }
        self->at = at;
        self->cap = cap;
    }
    bay_err err = copy_text(name, &one.name);
    if (err == BAY_OK && value != NULL) {
        err = copy_text(value, &one.value);
    }
    if (err != BAY_OK) {
        free_secret(one.name);
        return err;
    }
    self->at[self->count++] = one;
    return BAY_OK;
}

static void options_fault(bay_caller_options *self, bay_err err, const char *text)
{
    if (self->err == BAY_OK) {
        self->err = err;
        snprintf(self->fault, sizeof(self->fault), "%s", text);
    }
}

static void options_add(bay_caller_options *self, caller_settings *to, const char *name,
                        const char *value, const char *what)
{
    char text[100];
    if (self->err != BAY_OK) {
        return;
    }
    bay_err err = sdk_settings_add(to, name, value);
    if (err != BAY_OK) {
        snprintf(text, sizeof(text), "%s: %s", what, bay_err_text(err));
        options_fault(self, err, text);
    }
}

/* ---- making and copying ---------------------------------------------------------------------- */

static void sdk_caller_options_init(bay_caller_options *self)
{
    *self = (bay_caller_options){
        .binding = -1,
        .version = -1,
        .limits = a2a_link_default_limits,
    };
}

bay_caller_options *bay_caller_options_new(void)
{
    bay_caller_options *self = mem_alloc(sizeof(*self));
    if (self != NULL) {
        sdk_caller_options_init(self);
    }
    return self;
}

void sdk_caller_options_fini(bay_caller_options *self)
{
    caller_settings *settings[] = {&self->headers, &self->credentials, &self->origins,
                                   &self->extensions, &self->key_urls};
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        sdk_settings_fini(settings[i]);
    }
    char *texts[] = {self->keys, self->ca_file, self->certificate_file, self->key_file};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        mem_free(texts[i]);
    }
    sdk_caller_options_init(self);
}

void bay_caller_options_free(bay_caller_options *options)
{
    if (options != NULL) {
        sdk_caller_options_fini(options);
        mem_free(options);
    }
}

static bay_err copy_if(const char *text, char **out)
{
    return text != NULL ? copy_text(text, out) : BAY_OK;
}

static bay_err settings_copy(caller_settings *self, const caller_settings *from)
{
    bay_err err = BAY_OK;
    for (size_t i = 0; err == BAY_OK && i < from->count; i++) {
        err = sdk_settings_add(self, from->at[i].name, from->at[i].value);
    }
    return err;
}

bay_err sdk_caller_options_copy(bay_caller_options *self, const bay_caller_options *from,
                                bay_diag *diag)
{
    sdk_caller_options_init(self);
    if (from == NULL) {
        return BAY_OK;
    }
    if (from->err != BAY_OK) {
        return diag_set(diag, from->err, "%s", from->fault);
    }
    *self = *from;
    self->headers = self->credentials = self->origins = self->extensions = self->key_urls =
        (caller_settings){0};
    self->keys = self->ca_file = self->certificate_file = self->key_file = NULL;
    bay_err err = copy_if(from->keys, &self->keys);
    err = err == BAY_OK ? copy_if(from->ca_file, &self->ca_file) : err;
    err = err == BAY_OK ? copy_if(from->certificate_file, &self->certificate_file) : err;
    err = err == BAY_OK ? copy_if(from->key_file, &self->key_file) : err;
    err = err == BAY_OK ? settings_copy(&self->headers, &from->headers) : err;
    err = err == BAY_OK ? settings_copy(&self->credentials, &from->credentials) : err;
    err = err == BAY_OK ? settings_copy(&self->origins, &from->origins) : err;
    err = err == BAY_OK ? settings_copy(&self->extensions, &from->extensions) : err;
    err = err == BAY_OK ? settings_copy(&self->key_urls, &from->key_urls) : err;
    if (err != BAY_OK) {
        sdk_caller_options_fini(self);
        return diag_set(diag, err, "the options: %s", bay_err_text(err));
    }
    return BAY_OK;
}

/* ---- filling --------------------------------------------------------------------------------- */

static bool is_one_line(const char *value)
{
    return strpbrk(value, "\r\n") == NULL;
}

void bay_caller_options_header(bay_caller_options *options, const char *name, const char *value)
{
    if (options == NULL) {
        return;
    }
    if (name == NULL || value == NULL || !header_name_is_valid(str_of(name)) ||
        !is_one_line(value)) {
        options_fault(options, BAY_INVALID, "a header field that is not valid");
        return;
    }
    options_add(options, &options->headers, name, value, "header fields");
}

void bay_caller_options_bearer(bay_caller_options *options, const char *token)
{
    if (options == NULL) {
        return;
    }
    if (token == NULL || token[0] == '\0' || !is_one_line(token)) {
        options_fault(options, BAY_INVALID, "a bearer token that is empty or not one line");
        return;
    }
    size_t len = strlen(token) + sizeof("Bearer ");
    char *value = mem_alloc(len);
    if (value == NULL) {
        options_fault(options, BAY_NOMEM, "out of memory");
        return;
    }
    snprintf(value, len, "Bearer %s", token);
    options_add(options, &options->headers, "Authorization", value, "header fields");
    mem_wipe(value, len);
    mem_free(value);
}

void bay_caller_options_credential(bay_caller_options *options, const char *scheme,
                                   const char *credential)
{
    if (options == NULL) {
        return;
    }
    if (scheme == NULL || credential == NULL || !is_one_line(credential)) {
        options_fault(options, BAY_INVALID, "a credential that is not one line");
        return;
    }
    options_add(options, &options->credentials, scheme, credential, "credentials");
}

void bay_caller_options_trust(bay_caller_options *options, const char *origin)
{
    if (options != NULL && origin != NULL) {
        options_add(options, &options->origins, origin, NULL, "origins");
    }
}

void bay_caller_options_extension(bay_caller_options *options, const char *uri)
{
    if (options == NULL) {
        return;
    }
    if (uri == NULL || uri[0] == '\0' || strpbrk(uri, "\r\n, ") != NULL) {
        options_fault(options, BAY_INVALID, "an extension that is not a URI");
        return;
    }
    options_add(options, &options->extensions, uri, NULL, "extensions");
}

void bay_caller_options_interface(bay_caller_options *options, const char *binding,
                                  const char *version)
{
    if (options == NULL) {
        return;
    }
    options->binding = options->version = -1;
    for (int i = 0; binding != NULL && i < A2A_BINDINGS; i++) {
        options->binding =
            str_eq_nocase(a2a_binding_names[i], str_of(binding)) ? i : options->binding;
    }
    for (int i = 0; version != NULL && i < A2A_VERSIONS; i++) {
        options->version = str_eq(a2a_version_names[i], str_of(version)) ? i : options->version;
    }
    if (binding != NULL && options->binding < 0) {
        options_fault(options, BAY_INVALID,
                      "the binding must be JSONRPC, HTTP+JSON or GRPC (or none)");
    } else if (version != NULL && options->version < 0) {
        options_fault(options, BAY_INVALID, "the version must be 1.0, 0.3, 0.2 or 0.1 (or none)");
    }
}

static void options_replace(bay_caller_options *self, char **place, const char *text)
{
    char *copy = NULL;
    if (self->err != BAY_OK || text == NULL) {
        return;
    }
    bay_err err = copy_text(text, &copy);
    if (err != BAY_OK) {
        options_fault(self, err, "an option is too long, or there is no memory for it");
        return;
    }
    mem_free(*place);
    *place = copy;
}

void bay_caller_options_keys(bay_caller_options *options, const char *jwk_set)
{
    if (options != NULL) {
        options_replace(options, &options->keys, jwk_set);
    }
}

void bay_caller_options_tls(bay_caller_options *options, const char *ca_file,
                            const char *certificate_file, const char *key_file)
{
    if (options != NULL) {
        options_replace(options, &options->ca_file, ca_file);
        options_replace(options, &options->certificate_file, certificate_file);
        options_replace(options, &options->key_file, key_file);
    }
}

void bay_caller_options_key_url(bay_caller_options *options, const char *url)
{
    if (options != NULL && url != NULL) {
        options_add(options, &options->key_urls, url, NULL, "URLs of keys");
    }
}

void bay_caller_options_require_signature(bay_caller_options *options)
{
    if (options != NULL) {
        options->needs_signature = true;
    }
}

void bay_caller_options_timeout(bay_caller_options *options, uint32_t total_ms, uint32_t idle_ms)
{
    if (options != NULL) {
        options->limits.timeout_ms = total_ms != 0 ? total_ms : a2a_link_default_limits.timeout_ms;
        options->limits.idle_ms = idle_ms != 0 ? idle_ms : a2a_link_default_limits.idle_ms;
    }
}

void bay_caller_options_resume(bay_caller_options *options, uint32_t attempts, uint32_t first_ms)
{
    if (options != NULL) {
        options->limits.resumes = attempts != 0 ? attempts : a2a_link_default_limits.resumes;
        options->limits.first_delay_ms =
            first_ms != 0 ? first_ms : a2a_link_default_limits.first_delay_ms;
    }
}

void bay_caller_options_log_to(bay_caller_options *options, bay_log_sink sink, void *user,
                               bay_log_level most_verbose)
{
    if (options != NULL) {
        options->log_sink = sink;
        options->log_user = user;
        options->log_level = most_verbose;
    }
}

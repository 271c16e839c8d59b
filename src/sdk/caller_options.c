/* How to call an agent: filled by the program, copied by the connect. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "sdk/caller_parts.h"

/* ---- making and copying ---------------------------------------------------------------------- */

static void sdk_caller_options_init(bay_caller_options *self)
{
    *self = (bay_caller_options){
        .binding = -1,
        .version = -1,
        .limits = a2a_link_default_limits,
    };
    asker_options_init(&self->base, "caller", CALLER_SETTINGS);
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
    asker_options_fini(&self->base);
    asker_settings *settings[] = {&self->credentials, &self->origins, &self->extensions,
                                  &self->key_urls};
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        asker_settings_fini(settings[i]);
    }
    mem_free(self->keys);
    sdk_caller_options_init(self);
}

void bay_caller_options_free(bay_caller_options *options)
{
    if (options != NULL) {
        sdk_caller_options_fini(options);
        mem_free(options);
    }
}

bay_err sdk_caller_options_copy(bay_caller_options *self, const bay_caller_options *from,
                                bay_diag *diag)
{
    if (from == NULL) {
        sdk_caller_options_init(self);
        return BAY_OK;
    }
    *self = *from;
    self->credentials = self->origins = self->extensions = self->key_urls = (asker_settings){0};
    self->keys = NULL;
    asker_options *base = &self->base;
    asker_options_copy(base, &from->base);
    asker_options_replace(base, &self->keys, from->keys, "the keys");
    asker_options_add_all(base, &self->credentials, &from->credentials, "credentials");
    asker_options_add_all(base, &self->origins, &from->origins, "origins");
    asker_options_add_all(base, &self->extensions, &from->extensions, "extensions");
    asker_options_add_all(base, &self->key_urls, &from->key_urls, "URLs of keys");
    bay_err err = asker_options_check(base, diag);
    if (err != BAY_OK) {
        sdk_caller_options_fini(self);
    }
    return err;
}

/* ---- filling --------------------------------------------------------------------------------- */

static bool is_one_line(const char *value)
{
    return strpbrk(value, "\r\n") == NULL;
}

void bay_caller_options_header(bay_caller_options *options, const char *name, const char *value)
{
    if (options != NULL) {
        asker_options_header(&options->base, name, value);
    }
}

void bay_caller_options_bearer(bay_caller_options *options, const char *token)
{
    if (options == NULL) {
        return;
    }
    if (token == NULL || token[0] == '\0' || !is_one_line(token)) {
        asker_options_fault(&options->base, BAY_ERR_INVALID,
                            "a bearer token that is empty or not one line");
        return;
    }
    size_t len = strlen(token) + sizeof("Bearer ");
    char *value = mem_alloc(len);
    if (value == NULL) {
        asker_options_fault(&options->base, BAY_ERR_NOMEM, "out of memory");
        return;
    }
    snprintf(value, len, "Bearer %s", token);
    asker_options_add(&options->base, &options->base.headers, "Authorization", value,
                      "header fields");
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
        asker_options_fault(&options->base, BAY_ERR_INVALID, "a credential that is not one line");
        return;
    }
    asker_options_add(&options->base, &options->credentials, scheme, credential, "credentials");
}

void bay_caller_options_trust(bay_caller_options *options, const char *origin)
{
    if (options != NULL && origin != NULL) {
        asker_options_add(&options->base, &options->origins, origin, NULL, "origins");
    }
}

void bay_caller_options_extension(bay_caller_options *options, const char *uri)
{
    if (options == NULL) {
        return;
    }
    if (uri == NULL || uri[0] == '\0' || strpbrk(uri, "\r\n, ") != NULL) {
        asker_options_fault(&options->base, BAY_ERR_INVALID, "an extension that is not a URI");
        return;
    }
    asker_options_add(&options->base, &options->extensions, uri, NULL, "extensions");
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
        asker_options_fault(&options->base, BAY_ERR_INVALID,
                            "the binding must be JSONRPC, HTTP+JSON or GRPC (or none)");
    } else if (version != NULL && options->version < 0) {
        asker_options_fault(&options->base, BAY_ERR_INVALID,
                            "the version must be 1.0, 0.3, 0.2 or 0.1 (or none)");
    }
}

void bay_caller_options_keys(bay_caller_options *options, const char *jwk_set)
{
    if (options != NULL) {
        asker_options_replace(&options->base, &options->keys, jwk_set, "the keys");
    }
}

void bay_caller_options_tls(bay_caller_options *options, const char *ca_file,
                            const char *certificate_file, const char *key_file)
{
    if (options != NULL) {
        asker_options_tls(&options->base, ca_file, certificate_file, key_file);
    }
}

void bay_caller_options_insecure(bay_caller_options *options)
{
    if (options != NULL) {
        options->base.is_insecure = true;
    }
}

void bay_caller_options_key_url(bay_caller_options *options, const char *url)
{
    if (options != NULL && url != NULL) {
        asker_options_add(&options->base, &options->key_urls, url, NULL, "URLs of keys");
    }
}

void bay_caller_options_require_signature(bay_caller_options *options)
{
    if (options != NULL) {
        options->needs_signature = true;
    }
}

void bay_caller_options_timeout(bay_caller_options *options, uint32_t idle_ms, uint32_t total_ms)
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

void bay_caller_options_log_to(bay_caller_options *options, bay_log_level most_verbose,
                               bay_log_fn sink, void *user)
{
    if (options != NULL) {
        options->base.log = (log_target){sink, user, most_verbose};
    }
}

#include "sdk/asker_options.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/oauth_settings.h"
#include "wire/chars.h"

/* ---- settings -------------------------------------------------------------------------------- */

static void secret_free(char *text)
{
    if (text != NULL) {
        mem_wipe(text, strlen(text));
        mem_free(text);
    }
}

void asker_settings_fini(asker_settings *self)
{
    for (size_t i = 0; i < self->count; i++) {
        secret_free(self->at[i].name);
        secret_free(self->at[i].value);
    }
    mem_free(self->at);
    *self = (asker_settings){0};
}

static bay_err text_copy(const char *text, char **out)
{
    size_t len = strlen(text);
    if (len > ASKER_SETTING_BYTES) {
        return BAY_ERR_LIMIT;
    }
    *out = mem_dup(text, len);
    return *out != NULL ? BAY_OK : BAY_ERR_NOMEM;
}

bay_err asker_settings_add(asker_settings *self, size_t most, const char *name, const char *value)
{
    asker_setting one = {0};
    if (self->count >= most) {
        return BAY_ERR_LIMIT;
    }
    if (self->count == self->cap) {
        size_t cap = self->cap == 0 ? 4 : self->cap * 2;
        asker_setting *at = mem_resize(self->at, cap * sizeof(*at));
        if (at == NULL) {
            return BAY_ERR_NOMEM;
        }
        self->at = at;
        self->cap = cap;
    }
    bay_err err = text_copy(name, &one.name);
    if (err == BAY_OK && value != NULL) {
        err = text_copy(value, &one.value);
    }
    if (err != BAY_OK) {
        secret_free(one.name);
        return err;
    }
    self->at[self->count++] = one;
    return BAY_OK;
}

/* ---- faults ---------------------------------------------------------------------------------- */

void asker_options_fault(asker_options *self, bay_err err, const char *format, ...)
{
    va_list arguments;
    if (self->err != BAY_OK) {
        return;
    }
    self->err = err;
    va_start(arguments, format);
    vsnprintf(self->fault, sizeof(self->fault), format, arguments);
    va_end(arguments);
}

bay_err asker_options_check(const asker_options *self, bay_diag *diag)
{
    if (self->err != BAY_OK) {
        return diag_set(diag, self->err, "the %s's options: %s", self->noun, self->fault);
    }
    if (self->is_insecure && self->ca_file != NULL) {
        return diag_set(diag, BAY_ERR_INVALID,
                        "the %s's options: a CA file says whom to trust, and insecure to trust "
                        "anybody: give one of them",
                        self->noun);
    }
    for (size_t i = 0; self->oauth != NULL && i < self->headers.count; i++) {
        if (str_eq_nocase(str_of(self->headers.at[i].name), STR("authorization"))) {
            return diag_set(diag, BAY_ERR_INVALID,
                            "the %s's options: OAuth writes the field Authorization itself",
                            self->noun);
        }
    }
    return self->oauth != NULL ? sdk_oauth_check(self->oauth, diag) : BAY_OK;
}

static void copy_fault(asker_options *self, bay_err err, const char *what)
{
    if (err == BAY_ERR_LIMIT) {
        asker_options_fault(self, err, "%s: more than %d bytes", what, ASKER_SETTING_BYTES);
    } else if (err != BAY_OK) {
        asker_options_fault(self, err, "%s", bay_err_text(err));
    }
}

/* ---- filling --------------------------------------------------------------------------------- */

void asker_options_add(asker_options *self, asker_settings *to, const char *name, const char *value,
                       const char *what)
{
    if (self->err != BAY_OK) {
        return;
    }
    if (to->count >= self->most) {
        asker_options_fault(self, BAY_ERR_LIMIT, "more than %zu %s", self->most, what);
        return;
    }
    copy_fault(self, asker_settings_add(to, self->most, name, value), what);
}

void asker_options_add_all(asker_options *self, asker_settings *to, const asker_settings *from,
                           const char *what)
{
    for (size_t i = 0; i < from->count; i++) {
        asker_options_add(self, to, from->at[i].name, from->at[i].value, what);
    }
}

void asker_options_replace(asker_options *self, char **place, const char *text, const char *what)
{
    char *copy = NULL;
    if (self->err != BAY_OK) {
        return;
    }
    bay_err err = text != NULL ? text_copy(text, &copy) : BAY_OK;
    if (err != BAY_OK) {
        copy_fault(self, err, what);
        return;
    }
    mem_free(*place);
    *place = copy;
}

void asker_options_header(asker_options *self, const char *name, const char *value)
{
    if (name == NULL || value == NULL || name[0] == '\0' || !chars_are(str_of(name), CHAR_TOKEN)) {
        asker_options_fault(self, BAY_ERR_INVALID,
                            "a header field needs a name (a token) and a value");
    } else if (!chars_are(str_of(value), CHAR_VALUE)) {
        asker_options_fault(self, BAY_ERR_INVALID,
                            "header field \"%.60s\": its value has control characters", name);
    } else {
        asker_options_add(self, &self->headers, name, value, "header fields");
    }
}

void asker_options_tls(asker_options *self, const char *ca_file, const char *certificate_file,
                       const char *key_file)
{
    const char *files[] = {ca_file, certificate_file, key_file};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        if (files[i] != NULL && files[i][0] == '\0') {
            asker_options_fault(self, BAY_ERR_INVALID,
                                "TLS: the name of a file is empty: leave it out, or give a file");
        }
    }
    if ((certificate_file == NULL) != (key_file == NULL)) {
        asker_options_fault(self, BAY_ERR_INVALID,
                            "TLS: a certificate and its key belong together: give both files");
    }
    char **places[] = {&self->ca_file, &self->certificate_file, &self->key_file};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (files[i] != NULL) {
            asker_options_replace(self, places[i], files[i], "the name of a TLS file");
        }
    }
}

/* ---- making and copying ---------------------------------------------------------------------- */

void asker_options_init(asker_options *self, const char *noun, size_t most)
{
    *self = (asker_options){.noun = noun, .most = most};
}

void asker_options_fini(asker_options *self)
{
    asker_settings_fini(&self->headers);
    mem_free(self->ca_file);
    mem_free(self->certificate_file);
    mem_free(self->key_file);
    bay_oauth_free(self->oauth);
    asker_options_init(self, self->noun, self->most);
}

void asker_options_copy(asker_options *self, const asker_options *from)
{
    *self = *from;
    self->headers = (asker_settings){0};
    self->ca_file = self->certificate_file = self->key_file = NULL;
    self->oauth = sdk_oauth_ref(from->oauth);
    asker_options_add_all(self, &self->headers, &from->headers, "header fields");
    asker_options_tls(self, from->ca_file, from->certificate_file, from->key_file);
}

/* ---- use ------------------------------------------------------------------------------------- */

bay_err asker_options_http(const asker_options *self, loop *on, const http_client_limits *limits,
                           tls_context **out_tls, http_client **out, bay_diag *diag)
{
    tls_context *tls = NULL;
    bay_err err = BAY_OK;
    tls_options options = {
        .certificate_file = self->certificate_file,
        .key_file = self->key_file,
        .ca_file = self->ca_file,
        .insecure_no_verify = self->is_insecure,
    };
    if (tls_client_has_own(&options)) {
        const log_target *before = log_direct(loop_log(on)); /* it warns of an insecure one */
        err = tls_client_new(&options, &tls, diag);
        log_direct(before);
    }
    if (err != BAY_OK) {
        return err;
    }
    http_client_options http = {.limits = *limits, .tls = tls};
    err = http_client_new(on, &http, out);
    if (err != BAY_OK) {
        tls_free(tls);
        return diag_set(diag, err, "no HTTP client: %s", bay_err_text(err));
    }
    *out_tls = tls;
    return BAY_OK;
}

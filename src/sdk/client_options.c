/* How to connect, and what may be asked of us: filled in by the caller, copied by the connect.
 * Invariant: the first thing that went wrong is remembered and told by the connect; nothing after
 * it is taken. Values of header fields and variables are secrets: wiped before they are freed. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/client_parts.h"
#include "wire/chars.h"
#include "json/writer.h"

/* ---- keeping --------------------------------------------------------------------------------- */

static void options_fault(bay_client_options *self, bay_err err, const char *text)
{
    if (self->err == BAY_OK) {
        self->err = err;
        snprintf(self->fault, sizeof(self->fault), "%s", text);
    }
}

/* A copy, or NULL with the fault kept. `what`: for the text. */
static char *options_dup(bay_client_options *self, const char *text, const char *what)
{
    char message[80];
    size_t len = strlen(text);
    if (len > CLIENT_MAX_TEXT) {
        snprintf(message, sizeof(message), "%s: more than %d bytes", what, CLIENT_MAX_TEXT);
        options_fault(self, BAY_LIMIT, message);
        return NULL;
    }
    char *copy = mem_dup(text, len);
    if (copy == NULL) {
        options_fault(self, BAY_NOMEM, "out of memory");
    }
    return copy;
}

static void settings_fini(client_settings *self)
{
    for (size_t i = 0; i < self->count; i++) {
        client_setting *one = &self->at[i];
        mem_wipe(one->name, strlen(one->name));
        mem_free(one->name);
        if (one->value != NULL) {
            mem_wipe(one->value, one->value_len);
            mem_free(one->value);
        }
    }
    mem_free(self->at);
    *self = (client_settings){0};
}

static bool settings_reserve(client_settings *self)
{
    if (self->count < self->cap) {
        return true;
    }
    size_t cap = self->cap == 0 ? 4 : self->cap * 2;
    client_setting *at = mem_resize(self->at, cap * sizeof(*at));
    if (at == NULL) {
        return false;
    }
    self->at = at;
    self->cap = cap;
    return true;
}

static void options_add(bay_client_options *self, client_settings *to, const char *name,
                        const char *value, const char *what)
{
    char message[80];
    if (self->err != BAY_OK) {
        return;
    }
    if (to->count >= CLIENT_MAX_SETTINGS) {
        snprintf(message, sizeof(message), "more than %d of %s", CLIENT_MAX_SETTINGS, what);
        options_fault(self, BAY_LIMIT, message);
        return;
    }
    if (!settings_reserve(to)) {
        options_fault(self, BAY_NOMEM, "out of memory");
        return;
    }
    client_setting one = {.name = options_dup(self, name, what)};
    if (one.name != NULL && value != NULL) {
        one.value = options_dup(self, value, what);
        one.value_len = strlen(value);
    }
    if (self->err != BAY_OK) {
        mem_free(one.name);
        return;
    }
    to->at[to->count++] = one;
}

static void options_replace(bay_client_options *self, char **place, const char *text,
                            const char *what)
{
    char *copy = NULL;
    if (self->err != BAY_OK) {
        return;
    }
    if (text != NULL) {
        copy = options_dup(self, text, what);
        if (copy == NULL) {
            return;
        }
    }
    mem_free(*place);
    *place = copy;
}

/* ---- making and copying ---------------------------------------------------------------------- */

static void options_init(bay_client_options *self)
{
    *self = (bay_client_options){
        .oldest = MCP_REV_2024_11_05,
        .newest = MCP_LATEST,
        .idle_ms = CLIENT_IDLE_MS,
        .total_ms = CLIENT_TOTAL_MS,
        .attempts = CLIENT_RECONNECT_ATTEMPTS,
        .longest_ms = CLIENT_RECONNECT_LONGEST_MS,
    };
}

bay_client_options *bay_client_options_new(void)
{
    bay_client_options *self = mem_alloc(sizeof(*self));
    if (self != NULL) {
        options_init(self);
    }
    return self;
}

void sdk_options_fini(bay_client_options *self)
{
    client_settings *settings[] = {&self->headers, &self->env, &self->extensions, &self->roots};
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        settings_fini(settings[i]);
    }
    mem_free(self->name);
    mem_free(self->version);
    mem_free(self->directory);
    mem_free(self->sampling_capability);
    options_init(self);
}

void bay_client_options_free(bay_client_options *options)
{
    if (options != NULL) {
        sdk_options_fini(options);
        mem_free(options);
    }
}

static void copy_settings(bay_client_options *self, client_settings *to,
                          const client_settings *from)
{
    for (size_t i = 0; i < from->count; i++) {
        options_add(self, to, from->at[i].name, from->at[i].value, "settings");
    }
}

bay_err sdk_options_copy(bay_client_options *self, const bay_client_options *from, bay_diag *diag)
{
    if (from == NULL) {
        options_init(self);
        return BAY_OK;
    }
    *self = *from;
    self->name = self->version = self->directory = self->sampling_capability = NULL;
    self->headers = self->env = self->extensions = self->roots = (client_settings){0};
    options_replace(self, &self->name, from->name, "the name");
    options_replace(self, &self->version, from->version, "the version");
    options_replace(self, &self->directory, from->directory, "the directory");
    options_replace(self, &self->sampling_capability, from->sampling_capability, "sampling");
    copy_settings(self, &self->headers, &from->headers);
    copy_settings(self, &self->env, &from->env);
    copy_settings(self, &self->extensions, &from->extensions);
    copy_settings(self, &self->roots, &from->roots);
    if (self->err == BAY_OK) {
        return BAY_OK;
    }
    bay_err err = diag_set(diag, self->err, "the client's options: %s", self->fault);
    sdk_options_fini(self);
    return err;
}

/* ---- the setters ----------------------------------------------------------------------------- */

void bay_client_options_name(bay_client_options *options, const char *name, const char *version)
{
    if (options != NULL) {
        options_replace(options, &options->name, name, "the name");
        options_replace(options, &options->version, version, "the version");
    }
}

void bay_client_options_header(bay_client_options *options, const char *name, const char *value)
{
    if (options == NULL) {
        return;
    }
    if (name == NULL || value == NULL || name[0] == '\0' || !chars_are(str_of(name), CHAR_TOKEN)) {
        options_fault(options, BAY_INVALID, "a header field needs a name (a token) and a value");
    } else if (!chars_are(str_of(value), CHAR_VALUE)) {
        char message[120];
        snprintf(message, sizeof(message),
                 "header field \"%.60s\": its value has control characters", name);
        options_fault(options, BAY_INVALID, message);
    } else {
        options_add(options, &options->headers, name, value, "header fields");
    }
}

void bay_client_options_env(bay_client_options *options, const char *assignment)
{
    if (options == NULL) {
        return;
    }
    if (assignment == NULL || assignment[0] == '=' || strchr(assignment, '=') == NULL) {
        options_fault(options, BAY_INVALID, "a variable is given as NAME=VALUE");
        return;
    }
    options_add(options, &options->env, assignment, NULL, "variables");
}

void bay_client_options_directory(bay_client_options *options, const char *path)
{
    if (options != NULL) {
        options_replace(options, &options->directory, path, "the directory");
    }
}

void bay_client_options_revisions(bay_client_options *options, const char *oldest,
                                  const char *newest)
{
    if (options == NULL) {
        return;
    }
    const mcp_revision *from = mcp_revision_of(MCP_REV_2024_11_05);
    const mcp_revision *to = mcp_revision_of(MCP_LATEST);
    from = oldest != NULL ? mcp_revision_find(str_of(oldest)) : from;
    to = newest != NULL ? mcp_revision_find(str_of(newest)) : to;
    if (from == NULL || to == NULL || from->id > to->id) {
        char message[120];
        snprintf(message, sizeof(message),
                 "no revisions \"%.20s\" to \"%.20s\": see bay_client_options_revisions",
                 oldest != NULL ? oldest : "", newest != NULL ? newest : "");
        options_fault(options, BAY_INVALID, message);
        return;
    }
    options->oldest = from->id;
    options->newest = to->id;
}

void bay_client_options_transport(bay_client_options *options, bay_transport transport)
{
    if (options != NULL) {
        options->transport = transport;
    }
}

void bay_client_options_timeout(bay_client_options *options, uint32_t idle_ms, uint32_t total_ms)
{
    if (options != NULL) {
        options->idle_ms = idle_ms != 0 ? idle_ms : CLIENT_IDLE_MS;
        options->total_ms = total_ms != 0 ? total_ms : CLIENT_TOTAL_MS;
    }
}

void bay_client_options_reconnect(bay_client_options *options, uint32_t attempts,
                                  uint32_t longest_ms)
{
    if (options != NULL) {
        options->attempts = attempts != 0 ? attempts : CLIENT_RECONNECT_ATTEMPTS;
        options->longest_ms = longest_ms != 0 ? longest_ms : CLIENT_RECONNECT_LONGEST_MS;
    }
}

void bay_client_options_no_cache(bay_client_options *options)
{
    if (options != NULL) {
        options->has_no_cache = true;
    }
}

void bay_client_options_trust_hints(bay_client_options *options)
{
    if (options != NULL) {
        options->trusts_hints = true;
    }
}

/* Is it one whole JSON object? */
static bool is_object(bay_client_options *options, const char *text, const char *what)
{
    arena memory;
    json_doc doc;
    char message[120];
    if (text == NULL) {
        return true;
    }
    arena_init(&memory, (size_t)64 * CLIENT_MAX_TEXT);
    bay_err err = json_parse(&doc, str_of(text), NULL, &memory, NULL);
    bool is_one = err == BAY_OK && json_is(json_root(&doc), JSON_OBJECT);
    arena_fini(&memory);
    if (!is_one) {
        snprintf(message, sizeof(message), "%.80s: no JSON object", what);
        options_fault(options, err == BAY_NOMEM ? BAY_NOMEM : BAY_INVALID,
                      err == BAY_NOMEM ? "out of memory" : message);
    }
    return is_one;
}

void bay_client_options_extension(bay_client_options *options, const char *id, const char *settings)
{
    if (options == NULL || options->err != BAY_OK) {
        return;
    }
    if (id == NULL || id[0] == '\0') {
        options_fault(options, BAY_INVALID, "an extension needs an id");
    } else if (is_object(options, settings, id)) {
        options_add(options, &options->extensions, id, settings != NULL ? settings : "{}",
                    "extensions");
    }
}

void bay_client_options_log_to(bay_client_options *options, bay_log_sink sink, void *user,
                               bay_log_level most_verbose)
{
    if (options != NULL) {
        options->log_sink = sink;
        options->log_user = user;
        options->log_level = most_verbose;
    }
}

void bay_client_options_elicitation(bay_client_options *options, unsigned modes, bay_asked asked,
                                    void *user)
{
    if (options != NULL) {
        unsigned known = modes & (unsigned)(BAY_ELICIT_FORM | BAY_ELICIT_URL);
        options->elicitation_modes = asked != NULL ? known : 0;
        options->elicitation_asked = asked;
        options->elicitation_user = user;
    }
}

void bay_client_options_sampling(bay_client_options *options, const char *capability,
                                 bay_asked asked, void *user)
{
    if (options != NULL && is_object(options, capability, "the sampling capability")) {
        options_replace(options, &options->sampling_capability, capability, "sampling");
        options->sampling_asked = asked;
        options->sampling_user = user;
    }
}

void bay_client_options_root(bay_client_options *options, const char *uri, const char *name)
{
    if (options == NULL) {
        return;
    }
    if (uri == NULL || uri[0] == '\0') {
        options_fault(options, BAY_INVALID, "a root needs a URI");
        return;
    }
    options->has_roots = true;
    options_add(options, &options->roots, uri, name, "roots");
}

void bay_client_options_on_changed(bay_client_options *options,
                                   void (*changed)(bay_client *client, bay_kind kind, void *user),
                                   void *user)
{
    if (options != NULL) {
        options->changed = changed;
        options->changed_user = user;
    }
}

void bay_client_options_on_updated(bay_client_options *options,
                                   void (*updated)(bay_client *client, bay_str uri, void *user),
                                   void *user)
{
    if (options != NULL) {
        options->updated = updated;
        options->updated_user = user;
    }
}

void bay_client_options_on_log(bay_client_options *options,
                               void (*logged)(bay_client *client, bay_str params, void *user),
                               void *user)
{
    if (options != NULL) {
        options->logged = logged;
        options->logged_user = user;
    }
}

void bay_client_options_on_message(bay_client_options *options,
                                   void (*traced)(bay_client *client, bool is_outgoing,
                                                  bay_str message, void *user),
                                   void *user)
{
    if (options != NULL) {
        options->traced = traced;
        options->traced_user = user;
    }
}

/* ---- what the server is told ----------------------------------------------------------------- */

static void write_elicitation(const bay_client_options *options, json_writer *out)
{
    json_key_lit(out, "elicitation");
    json_open_object(out);
    if ((options->elicitation_modes & BAY_ELICIT_FORM) != 0) {
        json_key_lit(out, "form");
        json_put_raw(out, STR("{}"));
    }
    if ((options->elicitation_modes & BAY_ELICIT_URL) != 0) {
        json_key_lit(out, "url");
        json_put_raw(out, STR("{}"));
    }
    json_close_object(out);
}

static bool has_extension(const bay_client_options *options, const char *id)
{
    for (size_t i = 0; i < options->extensions.count; i++) {
        if (strcmp(options->extensions.at[i].name, id) == 0) {
            return true;
        }
    }
    return false;
}

/* Tasks are always followed, so they are always declared. An id given twice: the last one. */
static void write_extensions(const bay_client_options *options, json_writer *out)
{
    const client_settings *given = &options->extensions;
    json_key_lit(out, "extensions");
    json_open_object(out);
    if (!has_extension(options, MCP_EXTENSION_TASKS)) {
        json_key_lit(out, MCP_EXTENSION_TASKS);
        json_put_raw(out, STR("{}"));
    }
    for (size_t i = 0; i < given->count; i++) {
        bool is_last = true;
        for (size_t k = i + 1; k < given->count; k++) {
            is_last = is_last && strcmp(given->at[k].name, given->at[i].name) != 0;
        }
        if (is_last) {
            json_key(out, str_of(given->at[i].name));
            json_put_raw(out, str_of(given->at[i].value));
        }
    }
    json_close_object(out);
}

bay_err sdk_options_write_capabilities(const bay_client_options *options, buf *out)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    if (options->elicitation_modes != 0) {
        write_elicitation(options, &writer);
    }
    if (options->sampling_asked != NULL) {
        json_key_lit(&writer, "sampling");
        json_put_raw(
            &writer,
            str_of(options->sampling_capability != NULL ? options->sampling_capability : "{}"));
    }
    if (options->has_roots) {
        json_key_lit(&writer, "roots");
        json_put_raw(&writer, STR("{\"listChanged\":true}"));
    }
    write_extensions(options, &writer);
    json_close_object(&writer);
    return out->err;
}

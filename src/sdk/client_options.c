/* How to connect, and what may be asked of us: filled in by the caller, copied by the connect. */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/client_parts.h"
#include "json/writer.h"

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
    asker_options_init(&self->base, "client", CLIENT_MAX_SETTINGS);
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
    asker_options_fini(&self->base);
    asker_settings *settings[] = {&self->env, &self->extensions, &self->roots};
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        asker_settings_fini(settings[i]);
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

bay_err sdk_options_copy(bay_client_options *self, const bay_client_options *from, bay_diag *diag)
{
    if (from == NULL) {
        options_init(self);
        return BAY_OK;
    }
    *self = *from;
    self->name = self->version = self->directory = self->sampling_capability = NULL;
    self->env = self->extensions = self->roots = (asker_settings){0};
    asker_options *base = &self->base;
    asker_options_copy(base, &from->base);
    asker_options_replace(base, &self->name, from->name, "the name");
    asker_options_replace(base, &self->version, from->version, "the version");
    asker_options_replace(base, &self->directory, from->directory, "the directory");
    asker_options_replace(base, &self->sampling_capability, from->sampling_capability, "sampling");
    asker_options_add_all(base, &self->env, &from->env, "variables");
    asker_options_add_all(base, &self->extensions, &from->extensions, "extensions");
    asker_options_add_all(base, &self->roots, &from->roots, "roots");
    bay_err err = asker_options_check(base, diag);
    if (err != BAY_OK) {
        sdk_options_fini(self);
    }
    return err;
}

/* ---- the setters ----------------------------------------------------------------------------- */

void bay_client_options_name(bay_client_options *options, const char *name, const char *version)
{
    if (options != NULL) {
        asker_options_replace(&options->base, &options->name, name, "the name");
        asker_options_replace(&options->base, &options->version, version, "the version");
    }
}

void bay_client_options_header(bay_client_options *options, const char *name, const char *value)
{
    if (options != NULL) {
        asker_options_header(&options->base, name, value);
    }
}

void bay_client_options_tls(bay_client_options *options, const char *ca_file,
                            const char *certificate_file, const char *key_file)
{
    if (options != NULL) {
        asker_options_tls(&options->base, ca_file, certificate_file, key_file);
    }
}

void bay_client_options_insecure(bay_client_options *options)
{
    if (options != NULL) {
        options->base.is_insecure = true;
    }
}

void bay_client_options_env(bay_client_options *options, const char *assignment)
{
    if (options == NULL) {
        return;
    }
    if (assignment == NULL || assignment[0] == '=' || strchr(assignment, '=') == NULL) {
        asker_options_fault(&options->base, BAY_ERR_INVALID, "a variable is given as NAME=VALUE");
        return;
    }
    asker_options_add(&options->base, &options->env, assignment, NULL, "variables");
}

void bay_client_options_directory(bay_client_options *options, const char *path)
{
    if (options != NULL) {
        asker_options_replace(&options->base, &options->directory, path, "the directory");
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
        asker_options_fault(&options->base, BAY_ERR_INVALID,
                            "no revisions \"%.20s\" to \"%.20s\": see bay_client_options_revisions",
                            oldest != NULL ? oldest : "", newest != NULL ? newest : "");
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

void bay_client_options_output(bay_client_options *options, bay_output_check check)
{
    if (options != NULL) {
        options->output_check = check;
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

/* Is it one whole JSON object? And has it a member `tools`? */
static bool is_object(bay_client_options *options, const char *text, const char *what,
                      bool *out_has_tools)
{
    arena memory;
    json_doc doc;
    *out_has_tools = false;
    if (text == NULL) {
        return true;
    }
    arena_init(&memory, (size_t)64 * CLIENT_MAX_TEXT);
    bay_err err = json_parse(&doc, str_of(text), NULL, &memory, NULL);
    bool is_one = err == BAY_OK && json_is(json_root(&doc), JSON_OBJECT);
    *out_has_tools = is_one && !json_is(json_get(json_root(&doc), STR("tools")), JSON_MISSING);
    arena_fini(&memory);
    if (err == BAY_ERR_NOMEM) {
        asker_options_fault(&options->base, err, "out of memory");
    } else if (!is_one) {
        asker_options_fault(&options->base, BAY_ERR_INVALID, "%.80s: no JSON object", what);
    }
    return is_one;
}

void bay_client_options_extension(bay_client_options *options, const char *id, const char *settings)
{
    bool has_tools;
    if (options == NULL || options->base.err != BAY_OK) {
        return;
    }
    if (id == NULL || id[0] == '\0') {
        asker_options_fault(&options->base, BAY_ERR_INVALID, "an extension needs an id");
    } else if (is_object(options, settings, id, &has_tools)) {
        asker_options_add(&options->base, &options->extensions, id,
                          settings != NULL ? settings : "{}", "extensions");
    }
}

void bay_client_options_log_to(bay_client_options *options, bay_log_level most_verbose,
                               bay_log_fn sink, void *user)
{
    if (options != NULL) {
        options->base.log = (log_target){sink, user, most_verbose};
    }
}

void bay_client_options_elicitation(bay_client_options *options, unsigned modes, bay_asked_fn asked,
                                    void *user)
{
    if (options != NULL) {
        unsigned known = modes & (unsigned)(BAY_ELICITATION_FORM | BAY_ELICITATION_URL);
        options->elicitation_modes = asked != NULL ? known : 0;
        options->elicitation_asked = asked;
        options->elicitation_user = user;
    }
}

void bay_client_options_sampling(bay_client_options *options, const char *capability,
                                 bay_asked_fn asked, void *user)
{
    bool has_tools;
    if (options != NULL && is_object(options, capability, "the sampling capability", &has_tools)) {
        options->has_sampling_tools = has_tools;
        asker_options_replace(&options->base, &options->sampling_capability, capability,
                              "sampling");
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
        asker_options_fault(&options->base, BAY_ERR_INVALID, "a root needs a URI");
        return;
    }
    options->has_roots = true;
    asker_options_add(&options->base, &options->roots, uri, name, "roots");
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
    if ((options->elicitation_modes & BAY_ELICITATION_FORM) != 0) {
        json_key_lit(out, "form");
        json_put_raw(out, STR("{}"));
    }
    if ((options->elicitation_modes & BAY_ELICITATION_URL) != 0) {
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
    const asker_settings *given = &options->extensions;
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

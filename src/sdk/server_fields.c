/* Tools and prompts from tables: their schemas, the defaults that calls lack, the choices that are
 * completed. Hand-written schemas share the last two steps. */
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "schema/defaults.h"
#include "schema/keywords.h"
#include "sdk/fields.h"
#include "sdk/server_parts.h"
#include "json/build.h"

/* ---- registration ---------------------------------------------------------------------------- */

/* What the program gives as JSON, taken; its copy stands in the server's memory. False: it is no
 * object, or not whole, which is an error of registration. */
static bool keep_json(entry *self, const char *what, bay_json *json, json_val *out)
{
    json_val made;
    bay_err err = sdk_json_val(json, JSON_OBJECT, &made);
    if (err == BAY_OK && json_raw(made).len > SERVER_MAX_SCHEMA) {
        sdk_entry_error(self, "%s has more than %d bytes", what, SERVER_MAX_SCHEMA);
        err = BAY_ERR_LIMIT;
    } else if (err == BAY_OK) {
        err = json_clone_in(made, &self->server->memory, out);
    } else if (err != BAY_ERR_NOMEM) {
        sdk_entry_error(self, "%s: %s", what,
                        err == BAY_ERR_TYPE ? "it is no JSON object" : sdk_json_fault(json, err));
    }
    if (err == BAY_ERR_NOMEM) {
        self->server->is_out_of_memory = true;
    }
    bay_json_free(json);
    return err == BAY_OK;
}

/* Renders a table. False: it contradicts itself, likewise. */
static bool keep_table(entry *self, const char *what, const bay_field *fields, json_val *out)
{
    bay_json *json = NULL;
    bay_diag diag = {0};
    bay_err err = sdk_fields_schema(fields, FIELDS_OF_OBJECT, &json, &diag);
    if (err == BAY_OK) {
        return keep_json(self, what, json, out);
    }
    if (err == BAY_ERR_NOMEM) {
        self->server->is_out_of_memory = true;
    } else {
        sdk_entry_error(self, "%s: %s", what, diag.text);
    }
    return false;
}

static void apply_defaults(entry *self, json_val root)
{
    if (schema_has_defaults(root)) {
        self->wanted = root;
    }
}

bay_tool *bay_server_tool(bay_server *self, const char *name, const char *description,
                          const bay_field *input, bay_handler_fn handler, void *user)
{
    json_val made;
    entry *tool = sdk_server_add_tool(self, name, description, handler, user);
    if (tool != NULL && keep_table(tool, "the input table", input, &made)) {
        sdk_tool_schema(tool, json_raw(made), made.doc);
        apply_defaults(tool, json_root(&tool->schema_doc));
    }
    return tool;
}

bay_tool *bay_server_tool_schema_json(bay_server *self, const char *name, const char *description,
                                      bay_json *input_schema, bay_handler_fn handler, void *user)
{
    json_val made;
    entry *tool = sdk_server_add_tool(self, name, description, handler, user);
    if (tool == NULL) {
        bay_json_free(input_schema);
    } else if (keep_json(tool, "the input schema", input_schema, &made)) {
        sdk_tool_schema(tool, json_raw(made), made.doc);
    }
    return tool;
}

void bay_tool_apply_defaults(bay_tool *tool)
{
    bay_diag diag = {0};
    if (tool == NULL || tool->input_check == NULL) {
        return;
    }
    json_val root = json_root(&tool->schema_doc);
    bay_err err = schema_check_defaults(root, false, &diag);
    if (err == BAY_OK) {
        apply_defaults(tool, root);
    } else if (err == BAY_ERR_NOMEM) {
        tool->server->is_out_of_memory = true;
    } else {
        sdk_entry_error(tool, "%s", diag.text);
    }
}

void bay_tool_output(bay_tool *tool, const bay_field *output)
{
    json_val made;
    if (tool != NULL && keep_table(tool, "the output table", output, &made)) {
        sdk_tool_output(tool, json_raw(made), made.doc);
    }
}

void bay_tool_output_schema_json(bay_tool *tool, bay_json *json)
{
    json_val made;
    if (tool == NULL) {
        bay_json_free(json);
    } else if (keep_json(tool, "the output schema", json, &made)) {
        sdk_tool_output(tool, json_raw(made), made.doc);
    }
}

/* ---- prompts --------------------------------------------------------------------------------- */

/* The argument's choices, or missing. */
static json_val choices_of(const entry *prompt, json_val argument)
{
    bay_str name;
    json_val fields = json_get(prompt->wanted, STR("properties"));
    if (!json_str_plain(argument, &name)) {
        return JSON_NONE; /* a name with escapes is not worth completing */
    }
    return json_get(json_get(fields, name), STR("enum"));
}

bool sdk_has_choices(const entry *prompt, json_val argument)
{
    return !json_is(choices_of(prompt, argument), JSON_MISSING);
}

static void complete_choices(bay_call *call, void *user)
{
    const bay_server *self = user;
    const entry *prompt = sdk_server_find(self, ENTRY_PROMPT, call->request->name);
    bay_str begun = bay_call_str(call, "value");
    bay_result *result = bay_result_new(call);
    json_iter each = json_iter_of(
        prompt != NULL ? choices_of(prompt, json_get(call->arguments, STR("name"))) : JSON_NONE);
    while (json_next(&each)) {
        bay_str choice;
        if (json_str(each.value, &call->memory, &choice) == BAY_OK && str_starts(choice, begun)) {
            bay_result_value_str(result, choice);
        }
    }
    bay_call_finish(call, result);
}

/* One entry completes all choices of a server. */
static void need_choices(bay_server *self)
{
    if (self->choices == NULL) {
        entry *item = arena_zalloc(&self->memory, sizeof(*item));
        if (item == NULL) {
            self->is_out_of_memory = true;
            return;
        }
        *item = (entry){
            .server = self, .kind = ENTRY_COMPLETION, .handler = complete_choices, .user = self};
        self->choices = item;
    }
}

/* What is listed: names, titles, descriptions. */
static bool keep_arguments(entry *prompt, const bay_field *arguments)
{
    bay_diag diag = {0};
    bay_json *listed = NULL;
    json_val made;
    bay_err err = sdk_fields_arguments(arguments, &listed, &diag);
    if (err == BAY_OK) {
        err = sdk_json_val(listed, JSON_ARRAY, &made);
    }
    if (err == BAY_OK) {
        err = json_clone_in(made, &prompt->server->memory, &made);
    }
    if (err == BAY_OK) {
        prompt->schema = json_raw(made);
        prompt->schema_doc = *made.doc;
        err = sdk_arguments_compile_prompt(prompt);
    }
    if (err == BAY_ERR_NOMEM) {
        prompt->server->is_out_of_memory = true;
    } else if (err != BAY_OK) {
        sdk_entry_error(prompt, "the table of arguments: %s", diag.text);
    }
    bay_json_free(listed);
    return err == BAY_OK;
}

bay_prompt *bay_server_prompt(bay_server *self, const char *name, const char *description,
                              const bay_field *arguments, bay_handler_fn handler, void *user)
{
    json_val made;
    entry *prompt = sdk_server_add(self, ENTRY_PROMPT, name, description, handler, user);
    if (prompt == NULL || arguments == NULL) {
        return (bay_prompt *)prompt;
    }
    if (keep_arguments(prompt, arguments) &&
        keep_table(prompt, "the table of arguments", arguments, &made) &&
        sdk_arguments_compile(prompt, made, false)) {
        prompt->wanted = made;
        for (const bay_field *field = arguments; field->name != NULL; field++) {
            if (field->choices != NULL) {
                need_choices(self);
            }
        }
    }
    return (bay_prompt *)prompt;
}

/* ---- calls ----------------------------------------------------------------------------------- */

bay_err sdk_arguments_fill(const entry *item, arena *memory, json_val *arguments)
{
    if (json_is(item->wanted, JSON_MISSING)) {
        return BAY_OK;
    }
    json_val given = json_is(*arguments, JSON_MISSING) ? json_empty_object() : *arguments;
    if (!schema_lacks_default(item->wanted, given, DEFAULTS_OF_OPTIONAL)) {
        return BAY_OK;
    }
    json_builder builder;
    schema_put_defaults(item->wanted, given, DEFAULTS_OF_OPTIONAL,
                        json_builder_init(&builder, memory, SERVER_MAX_RESULT));
    return json_builder_end(&builder, arguments);
}

/* ---- warnings -------------------------------------------------------------------------------- */

static void warn_of(const entry *tool, const char *what, const json_doc *document)
{
    buf words;
    buf_init(&words, 16 << 10);
    if (document->tape != NULL && schema_unknown_words(json_root(document), &words) > 0) {
        SERVER_LOG(tool->server, LOG_WARN, "server", "tool \"%.*s\": the %s schema: %.*s",
                   BAY_STR(tool->key), what, BAY_STR(buf_view(&words)));
    }
    buf_fini(&words);
}

void sdk_server_warn(const bay_server *self)
{
    const entry_list *tools = &self->lists[ENTRY_TOOL];
    for (size_t i = 0; i < tools->len; i++) {
        warn_of(tools->items[i], "input", &tools->items[i]->schema_doc);
        warn_of(tools->items[i], "output", &tools->items[i]->output_doc);
    }
}

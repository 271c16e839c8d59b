/* What goes into a handler and what comes out of it, held against the tool's schemas: compiled when
 * the tool is registered, checked for each call without allocating. What breaks a rule is told the
 * caller in words that a model can act on; a handler's own mistakes go to the log. */
#include "base/check.h"
#include "base/log.h"
#include "base/str.h"
#include "sdk/server_parts.h"
#include "json/build.h"

/* ---- registration */

static void keep_check(entry *tool, bool is_output, schema *compiled)
{
    schema **at = is_output ? &tool->output_check : &tool->input_check;
    if (tool->input_check == NULL && tool->output_check == NULL) {
        tool->next_checked = tool->server->checked;
        tool->server->checked = tool;
    }
    schema_free(*at);
    *at = compiled;
}

bool sdk_arguments_compile(entry *item, json_val document, bool is_output)
{
    bay_diag diag = {0};
    schema *compiled;
    bay_err err = schema_compile(document, NULL, &compiled, &diag);
    if (err == BAY_OK) {
        keep_check(item, is_output, compiled);
    } else if (err == BAY_ERR_NOMEM) {
        item->server->is_out_of_memory = true;
    } else {
        sdk_entry_error(item, "the %s schema: %s", is_output ? "output" : "input", diag.text);
    }
    return err == BAY_OK;
}

void sdk_arguments_free(bay_server *server)
{
    for (entry *tool = server->checked; tool != NULL; tool = tool->next_checked) {
        schema_free(tool->input_check);
        schema_free(tool->output_check);
    }
    schema_state_fini(&server->checks);
}

/* The list was rendered from a table, so that each argument has a name of its own. */
bay_err sdk_arguments_compile_prompt(entry *prompt)
{
    json_val arguments = json_root(&prompt->schema_doc);
    prompt->rules =
        arena_array(&prompt->server->memory, json_count(arguments), sizeof(*prompt->rules));
    bay_err err = prompt->rules != NULL ? BAY_OK : BAY_ERR_NOMEM;
    json_iter iter = json_iter_of(arguments);
    while (err == BAY_OK && json_next(&iter)) {
        argument_rule *rule = &prompt->rules[prompt->rule_count++];
        rule->is_required = json_true(json_get(iter.value, STR("required")));
        err = json_str(json_get(iter.value, STR("name")), &prompt->server->memory, &rule->name);
    }
    return err;
}

/* ---- calls */

const argument_rule *sdk_arguments_missing(const entry *prompt, json_val arguments)
{
    for (size_t i = 0; i < prompt->rule_count; i++) {
        const argument_rule *rule = &prompt->rules[i];
        if (rule->is_required && !json_is(json_get(arguments, rule->name), JSON_STRING)) {
            return rule;
        }
    }
    return NULL;
}

/* Apart, so that the room for the failures is taken only when there are any. */
static bay_err explain(const entry *tool, json_val arguments, buf *out_text)
{
    schema_failures failures;
    bay_err err = schema_check(tool->input_check, arguments, &tool->server->checks, &failures);
    if (err == BAY_ERR_NOMEM) {
        return err;
    }
    buf_printf(out_text, "The arguments do not fit the input schema of \"%.*s\":\n",
               BAY_STR(tool->key));
    schema_failures_print(&failures, out_text);
    return BAY_ERR_INVALID;
}

bay_err sdk_arguments_check(const entry *tool, json_val arguments, buf *out_text)
{
    if (tool->input_check == NULL) {
        return BAY_OK;
    }
    if (json_is(arguments, JSON_MISSING)) {
        arguments = json_empty_object();
    }
    bay_err err = schema_check(tool->input_check, arguments, &tool->server->checks, NULL);
    return err == BAY_OK || err == BAY_ERR_NOMEM ? err : explain(tool, arguments, out_text);
}

bay_err sdk_output_check(const bay_call *call, json_val structured)
{
    bay_server *server = call->server;
    const schema *wanted = call->entry->output_check;
    if (wanted == NULL) {
        return BAY_OK;
    }
    schema_failures failures;
    bay_err err = BAY_ERR_INVALID;
    if (structured.doc != NULL) { /* the state of the server is the loop's */
        schema_state *state = sdk_call_on_loop(call) ? &server->checks : NULL;
        err = schema_check(wanted, structured, state, &failures);
    }
    if (err == BAY_OK || err == BAY_ERR_NOMEM) {
        return err;
    }
    buf text;
    buf_init(&text, SCHEMA_FAILURE_BYTES * 2);
    if (structured.doc == NULL) {
        buf_lit(&text, "there is no structured content");
    } else {
        schema_failures_print(&failures, &text);
    }
    SERVER_LOG(server, LOG_ERROR, "server", "the output of \"%.*s\" breaks its schema: %.*s",
               BAY_STR(call->entry->key), BAY_STR(buf_view(&text)));
    buf_fini(&text);
    return BAY_ERR_INVALID;
}

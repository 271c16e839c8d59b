#include "mcp/inputs.h"

static bool has(json_val capabilities, const char *path)
{
    return json_is(mcp_capability(capabilities, str_of(path)), JSON_OBJECT);
}

/* mcp 2025-11-25 client/elicitation, Capabilities: an empty object means forms only. */
static unsigned elicitation_of(const mcp_revision *revision, json_val capabilities)
{
    if (revision->id < MCP_REV_2025_06_18 || !has(capabilities, "elicitation")) {
        return 0;
    }
    bool has_url = revision->id >= MCP_REV_2025_11_25 && has(capabilities, "elicitation.url");
    bool has_form = !has_url || has(capabilities, "elicitation.form");
    return (has_form ? MCP_INPUT_FORM : 0u) | (has_url ? MCP_INPUT_URL : 0u);
}

unsigned mcp_inputs_of(const mcp_revision *revision, json_val capabilities)
{
    if (json_count(capabilities) == 0) {
        return 0;
    }
    unsigned inputs = elicitation_of(revision, capabilities);
    if (has(capabilities, "sampling")) {
        bool is_newer = revision->id >= MCP_REV_2025_11_25;
        inputs |= MCP_INPUT_SAMPLING;
        inputs |= is_newer && has(capabilities, "sampling.tools") ? MCP_INPUT_SAMPLING_TOOLS : 0u;
        inputs |=
            is_newer && has(capabilities, "sampling.context") ? MCP_INPUT_SAMPLING_CONTEXT : 0u;
    }
    return inputs | (has(capabilities, "roots") ? MCP_INPUT_ROOTS : 0u);
}

unsigned mcp_inputs_needed(bay_str method, json_val params)
{
    if (str_eq(method, STR("roots/list"))) {
        return MCP_INPUT_ROOTS;
    }
    if (str_eq(method, STR("elicitation/create"))) {
        json_val mode = json_get(params, STR("mode"));
        if (json_is(mode, JSON_MISSING) || json_str_eq(mode, STR("form"))) {
            return MCP_INPUT_FORM;
        }
        return json_str_eq(mode, STR("url")) ? MCP_INPUT_URL : 0;
    }
    if (str_eq(method, STR("sampling/createMessage"))) {
        bool has_tools = !json_is(json_get(params, STR("tools")), JSON_MISSING) ||
                         !json_is(json_get(params, STR("toolChoice")), JSON_MISSING);
        return MCP_INPUT_SAMPLING | (has_tools ? MCP_INPUT_SAMPLING_TOOLS : 0u);
    }
    return 0;
}

void mcp_inputs_write(unsigned inputs, const mcp_revision *revision, json_writer *out)
{
    bool has_modes = revision == NULL || revision->id >= MCP_REV_2025_11_25;
    bool has_elicitation = revision == NULL || revision->id >= MCP_REV_2025_06_18;
    if (has_elicitation && (inputs & (MCP_INPUT_FORM | (has_modes ? MCP_INPUT_URL : 0u))) != 0) {
        json_key_lit(out, "elicitation");
        json_open_object(out);
        if (has_modes && (inputs & MCP_INPUT_FORM) != 0) {
            json_key_lit(out, "form");
            json_put_raw(out, STR("{}"));
        }
        if (has_modes && (inputs & MCP_INPUT_URL) != 0) {
            json_key_lit(out, "url");
            json_put_raw(out, STR("{}"));
        }
        json_close_object(out);
    }
    if ((inputs & MCP_INPUT_SAMPLING) != 0) {
        json_key_lit(out, "sampling");
        json_open_object(out);
        if (has_modes && (inputs & MCP_INPUT_SAMPLING_CONTEXT) != 0) {
            json_key_lit(out, "context");
            json_put_raw(out, STR("{}"));
        }
        if (has_modes && (inputs & MCP_INPUT_SAMPLING_TOOLS) != 0) {
            json_key_lit(out, "tools");
            json_put_raw(out, STR("{}"));
        }
        json_close_object(out);
    }
    if ((inputs & MCP_INPUT_ROOTS) != 0) {
        json_key_lit(out, "roots");
        json_put_raw(out, STR("{\"listChanged\":true}"));
    }
}

/* What a card says about its agent, and where the agent stands: one function a detail. */
#include "base/check.h"
#include "base/err.h"
#include "base/str.h"
#include "sdk/agent_parts.h"
#include "wire/uri.h"

/* ---- details of the card --------------------------------------------------------------------- */

void bay_agent_provider(bay_agent *agent, const char *organization, const char *url)
{
    if (agent != NULL) {
        agent->organization = sdk_agent_keep(agent, organization);
        agent->organization_url = sdk_agent_keep(agent, url);
    }
}

void bay_agent_documentation(bay_agent *agent, const char *url)
{
    if (agent != NULL) {
        agent->documentation = sdk_agent_keep(agent, url);
    }
}

void bay_agent_icon(bay_agent *agent, const char *url)
{
    if (agent != NULL) {
        agent->icon = sdk_agent_keep(agent, url);
    }
}

void bay_agent_input_mode(bay_agent *agent, const char *media_type)
{
    if (agent != NULL) {
        sdk_agent_add_text(agent, &agent->inputs, media_type);
    }
}

void bay_agent_output_mode(bay_agent *agent, const char *media_type)
{
    if (agent != NULL) {
        sdk_agent_add_text(agent, &agent->outputs, media_type);
    }
}

void bay_agent_extension(bay_agent *agent, const char *name, const char *description,
                         bool is_required, const char *params)
{
    if (agent == NULL) {
        return;
    }
    json_val given = params != NULL ? sdk_agent_keep_object(agent, params) : JSON_NONE;
    const char *fault = name == NULL || name[0] == '\0' || strpbrk(name, ", \t\r\n") != NULL
                            ? "that is no URI"
                        : params != NULL && given.doc == NULL ? "its params are no JSON object"
                                                              : NULL;
    if (fault != NULL) {
        sdk_agent_error(agent, "bay_agent_extension \"%.100s\": %s", name != NULL ? name : "",
                        fault);
        return;
    }
    json_builder made;
    json_writer *to = sdk_agent_build(agent, &made);
    json_open_object(to);
    json_key_lit(to, "uri");
    json_put_str(to, str_of(name));
    if (description != NULL) {
        json_key_lit(to, "description");
        json_put_str(to, str_of(description));
    }
    if (is_required) {
        json_key_lit(to, "required");
        json_put_bool(to, true);
    }
    if (params != NULL) {
        json_key_lit(to, "params");
        json_put_val(to, given);
    }
    json_close_object(to);
    sdk_agent_add(agent, &agent->extensions, &made);
    if (agent->extension_uris.len > 0) {
        buf_char(&agent->extension_uris, ',');
    }
    buf_str(&agent->extension_uris, str_of(name));
    agent->is_out_of_memory = agent->is_out_of_memory || agent->extension_uris.err != BAY_OK;
}

void bay_agent_url(bay_agent *agent, const char *url)
{
    if (agent == NULL) {
        return;
    }
    uri parts;
    bay_str text = sdk_agent_keep(agent, url);
    while (str_ends(text, STR("/"))) {
        text.len--;
    }
    bool is_good = uri_parse(&parts, text) == BAY_OK && parts.host.len > 0 &&
                   (str_eq(parts.scheme, STR("http")) || str_eq(parts.scheme, STR("https"))) &&
                   !parts.has_query && !parts.has_fragment && !parts.has_userinfo;
    if (!is_good) {
        if (!agent->is_out_of_memory) {
            sdk_agent_error(agent,
                            "bay_agent_url \"%.120s\": an http or https URL without query "
                            "is wanted",
                            url != NULL ? url : "");
        }
        return;
    }
    agent->url = text;
    if (!agent->has_path) {
        agent->path = parts.path;
    }
}

void bay_agent_path(bay_agent *agent, const char *path)
{
    if (agent == NULL) {
        return;
    }
    bay_str text = sdk_agent_keep(agent, path);
    while (str_ends(text, STR("/"))) {
        text.len--;
    }
    uri parts;
    bool is_good = text.len == 0 || (text.at[0] == '/' && uri_parse(&parts, text) == BAY_OK &&
                                     str_eq(parts.path, text));
    if (!is_good) {
        sdk_agent_error(agent, "bay_agent_path \"%.100s\": a path begins with '/'",
                        path != NULL ? path : "");
        return;
    }
    agent->path = text;
    agent->has_path = true;
}

void bay_agent_extended(bay_agent *agent, const char *members)
{
    if (agent == NULL) {
        return;
    }
    json_val given = sdk_agent_keep_object(agent, members);
    if (given.doc == NULL) {
        sdk_agent_error(agent, "bay_agent_extended: the members are no JSON object");
        return;
    }
    agent->extended = given;
}

void bay_agent_hybrid_card(bay_agent *agent, bool is_hybrid)
{
    if (agent != NULL) {
        agent->is_hybrid = is_hybrid;
    }
}

void bay_agent_lenient(bay_agent *agent, bool is_lenient)
{
    if (agent != NULL) {
        agent->is_lenient = is_lenient;
    }
}

void bay_agent_signing_key(bay_agent *agent, const char *key, const char *key_id, const char *jku)
{
    if (agent == NULL) {
        return;
    }
    bay_diag why = {.code = BAY_OK};
    jose_key *made = NULL;
    bay_err err = jose_key_new(str_of(key), str_of(key_id), &made, &why);
    if (err != BAY_OK) {
        sdk_agent_error(agent, "bay_agent_signing_key: %s",
                        why.code != BAY_OK ? why.text : bay_err_text(err));
        return;
    }
    jose_key_free(agent->signing_key);
    agent->signing_key = made;
    agent->jku = sdk_agent_keep(agent, jku);
}

/* ---- where tasks live, who hears of them ----------------------------------------------------- */

void bay_agent_resumable(bay_agent *agent)
{
    if (agent != NULL) {
        agent->is_resumable = true;
    }
}

void bay_agent_on_loop(bay_agent *agent)
{
    if (agent != NULL) {
        agent->is_on_loop = true;
    }
}

void bay_agent_push(bay_agent *agent)
{
    if (agent != NULL) {
        agent->has_push = true;
    }
}

void bay_agent_push_allow(bay_agent *agent, const char *target)
{
    if (agent != NULL) {
        host_add_text(&agent->host, &agent->targets, "push_allow", target);
    }
}

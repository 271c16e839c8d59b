/* What a client is asked to do in one word: call, read, complete, subscribe … Each is a request
 * that is waited for, written in the way of the server's revision. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/client_parts.h"

static bay_err no_client(bay_diag *diag)
{
    return diag_set(diag, BAY_ERR_INVALID, "no client");
}

/* ---- requests -------------------------------------------------------------------------------- */

/* One that has a name; `what` says which, where it was not given. */
static bay_err named_missing(const bay_client *client, const char *what, bay_diag *diag)
{
    return client == NULL ? no_client(diag) : diag_set(diag, BAY_ERR_INVALID, "%s", what);
}

static const char no_tool[] = "no tool is named";
static const char no_prompt[] = "no prompt is named";

bay_err bay_client_call_str(bay_client *client, bay_str tool, bay_str arguments, bay_reply **out,
                            bay_diag *diag)
{
    if (client == NULL || tool.at == NULL) {
        return named_missing(client, no_tool, diag);
    }
    return bay_request_run(bay_request_tool_str(client, tool, arguments), out, diag);
}

bay_err bay_client_call(bay_client *client, const char *tool, const char *arguments,
                        bay_reply **out, bay_diag *diag)
{
    return bay_client_call_str(client, str_of(tool), str_of(arguments), out, diag);
}

bay_err bay_client_call_json(bay_client *client, const char *tool, bay_json *arguments,
                             bay_reply **out, bay_diag *diag)
{
    if (client == NULL || tool == NULL) {
        bay_json_free(arguments);
        return named_missing(client, no_tool, diag);
    }
    return bay_request_run(bay_request_tool_json(client, tool, arguments), out, diag);
}

/* `{"uri":…}` */
static bay_request *request_uri(bay_client *client, const char *method, bay_str uri)
{
    bay_request *request = bay_request_new(client, method, NULL);
    if (request != NULL) {
        json_builder made;
        json_writer *out = json_builder_init(&made, NULL, CLIENT_MAX_REPLY);
        json_open_object(out);
        json_key_lit(out, "uri");
        json_put_str(out, uri);
        json_close_object(out);
        sdk_request_set_params(request, &made);
    }
    return request;
}

bay_err bay_client_read_str(bay_client *client, bay_str uri, bay_reply **out, bay_diag *diag)
{
    if (client == NULL || uri.at == NULL) {
        return named_missing(client, "no URI", diag);
    }
    return bay_request_run(request_uri(client, "resources/read", uri), out, diag);
}

bay_err bay_client_read(bay_client *client, const char *uri, bay_reply **out, bay_diag *diag)
{
    return bay_client_read_str(client, str_of(uri), out, diag);
}

bay_err bay_client_prompt_str(bay_client *client, bay_str prompt, bay_str arguments,
                              bay_reply **out, bay_diag *diag)
{
    if (client == NULL || prompt.at == NULL) {
        return named_missing(client, no_prompt, diag);
    }
    return bay_request_run(sdk_request_named(client, "prompts/get", prompt, arguments), out, diag);
}

bay_err bay_client_prompt(bay_client *client, const char *prompt, const char *arguments,
                          bay_reply **out, bay_diag *diag)
{
    return bay_client_prompt_str(client, str_of(prompt), str_of(arguments), out, diag);
}

bay_err bay_client_prompt_json(bay_client *client, const char *prompt, bay_json *arguments,
                               bay_reply **out, bay_diag *diag)
{
    if (client == NULL || prompt == NULL) {
        bay_json_free(arguments);
        return named_missing(client, no_prompt, diag);
    }
    return bay_request_run(
        sdk_request_named_json(client, "prompts/get", str_of(prompt), arguments, true), out, diag);
}

/* Templates have a scheme: "file:///{path}". */
static bool is_template_uri(bay_str reference)
{
    for (bay_str rest = reference; rest.len > 0; rest = str_from(rest, 1)) {
        if (str_starts(rest, STR("://"))) {
            return true;
        }
    }
    return false;
}

/* mcp 2025-06-18 server/utilities/completion: an object of strings. */
static bay_err check_context(bay_json *context, json_val *out, bay_diag *diag)
{
    bay_err err = sdk_json_val(context, JSON_OBJECT, out);
    json_iter iter = json_iter_of(err == BAY_OK ? *out : JSON_NONE);
    if (err == BAY_ERR_NOMEM || err == BAY_ERR_LIMIT) {
        return diag_set(diag, err, "the completion's context: %s", bay_err_text(err));
    }
    if (err != BAY_OK) {
        return diag_set(diag, BAY_ERR_INVALID, "the completion's context is no JSON object");
    }
    while (json_next(&iter)) {
        if (!json_is(iter.value, JSON_STRING)) {
            return diag_set(diag, BAY_ERR_INVALID, "the completion's context: %.*s is no string",
                            BAY_STR(str_head(json_raw(iter.key), 100)));
        }
    }
    return BAY_OK;
}

static void put_completion(json_writer *to, bay_str reference, bay_str argument, bay_str value,
                           json_val context)
{
    bool is_template = is_template_uri(reference);
    json_open_object(to);
    json_key_lit(to, "ref");
    json_open_object(to);
    json_key_lit(to, "type");
    json_put_str(to, is_template ? STR("ref/resource") : STR("ref/prompt"));
    json_key(to, is_template ? STR("uri") : STR("name"));
    json_put_str(to, reference);
    json_close_object(to);
    json_key_lit(to, "argument");
    json_open_object(to);
    json_key_lit(to, "name");
    json_put_str(to, argument);
    json_key_lit(to, "value");
    json_put_str(to, value);
    json_close_object(to);
    if (!json_is(context, JSON_MISSING)) {
        json_key_lit(to, "context");
        json_open_object(to);
        json_key_lit(to, "arguments");
        json_put_val(to, context);
        json_close_object(to);
    }
    json_close_object(to);
}

static bay_err complete(bay_client *client, bay_str reference, bay_str argument, bay_str value,
                        json_val context, bay_reply **out, bay_diag *diag)
{
    if (reference.at == NULL || argument.at == NULL || value.at == NULL) {
        return diag_set(diag, BAY_ERR_INVALID,
                        "a completion needs a reference, an argument, a value");
    }
    bay_request *request = bay_request_new(client, "completion/complete", NULL);
    if (request != NULL) {
        json_builder made;
        put_completion(json_builder_init(&made, NULL, CLIENT_MAX_REPLY), reference, argument, value,
                       context);
        sdk_request_set_params(request, &made);
    }
    return bay_request_run(request, out, diag);
}

bay_err bay_client_complete_str(bay_client *client, bay_str reference, bay_str argument,
                                bay_str value, bay_reply **out, bay_diag *diag)
{
    return client != NULL ? complete(client, reference, argument, value, JSON_NONE, out, diag)
                          : no_client(diag);
}

bay_err bay_client_complete(bay_client *client, const char *reference, const char *argument,
                            const char *value, bay_reply **out, bay_diag *diag)
{
    return bay_client_complete_str(client, str_of(reference), str_of(argument), str_of(value), out,
                                   diag);
}

bay_err bay_client_complete_json(bay_client *client, const char *reference, const char *argument,
                                 const char *value, bay_json *context, bay_reply **out,
                                 bay_diag *diag)
{
    json_val chosen = JSON_NONE;
    bay_err err = client != NULL ? check_context(context, &chosen, diag) : no_client(diag);
    if (err == BAY_OK) {
        err =
            complete(client, str_of(reference), str_of(argument), str_of(value), chosen, out, diag);
    }
    bay_json_free(context);
    return err;
}

bay_err bay_client_request(bay_client *client, const char *method, const char *params,
                           bay_reply **out, bay_diag *diag)
{
    if (client == NULL || method == NULL) {
        return named_missing(client, "no method", diag);
    }
    return bay_request_run(bay_request_new(client, method, params), out, diag);
}

bay_err bay_client_request_json(bay_client *client, const char *method, bay_json *params,
                                bay_reply **out, bay_diag *diag)
{
    if (client == NULL || method == NULL) {
        bay_json_free(params);
        return named_missing(client, "no method", diag);
    }
    return bay_request_run(bay_request_new_json(client, method, params), out, diag);
}

/* ---- being there ----------------------------------------------------------------------------- */

/* Until the server can be spoken to, as a request would wait for it. */
static bay_err await_ready(bay_client *self, bay_diag *diag)
{
    asker_touch(&self->base);
    if (self->phase == CLIENT_READY && sdk_client_engine(self) != NULL) {
        return BAY_OK;
    }
    bay_err err = asker_check_waiting(&self->base, diag);
    if (err != BAY_OK) {
        return err;
    }
    /* server/discover and ping are answered by whoever is there; their absence is an answer, too */
    bay_diag why = {0};
    err = bay_client_ping(self, &why);
    if (err != BAY_OK && err != BAY_ERR_REMOTE && err != BAY_ERR_UNSUPPORTED) {
        return diag_set(diag, err, "%s", why.text);
    }
    return self->phase == CLIENT_READY && sdk_client_engine(self) != NULL
               ? BAY_OK
               : diag_set(diag, BAY_ERR_CLOSED, "%s: the connection was lost", self->base.shown);
}

static bool is_modern(const bay_client *self)
{
    return self->about != NULL && self->about->revision->era == MCP_MODERN;
}

bay_err bay_client_ping(bay_client *client, bay_diag *diag)
{
    if (client == NULL) {
        return no_client(diag);
    }
    /* mcp 2026-07-28 has no ping; server/discover every server answers. Before it is known which of
     * the two it will be, the link is waited for by a request that fits both. */
    bay_err err = asker_check_waiting(&client->base, diag);
    while (err == BAY_OK && client->about == NULL && client->connected != NULL) {
        (void)loop_turn(client->base.loop, -1);
    }
    if (err != BAY_OK) {
        return err;
    }
    const char *method = is_modern(client) ? "server/discover" : "ping";
    return bay_request_run(bay_request_new(client, method, NULL), NULL, diag);
}

static bay_err notify(bay_client *client, const char *method, bay_str params, bay_diag *diag)
{
    bay_err err = await_ready(client, diag);
    if (err != BAY_OK) {
        return err;
    }
    return mcp_client_tell(sdk_client_engine(client), str_of(method), params,
                           loop_now_ms(client->base.loop), diag);
}

bay_err bay_client_notify_json(bay_client *client, const char *method, bay_json *params,
                               bay_diag *diag)
{
    json_val object;
    bay_err err = BAY_OK;
    if (client == NULL || method == NULL) {
        err = named_missing(client, "no method", diag);
    } else if (sdk_json_val(params, JSON_OBJECT, &object) != BAY_OK) {
        err = diag_set(diag, BAY_ERR_INVALID, "%s: the params are no JSON object", method);
    } else {
        err = notify(client, method, json_raw(object), diag);
    }
    bay_json_free(params);
    return err;
}

bay_err bay_client_notify(bay_client *client, const char *method, const char *params,
                          bay_diag *diag)
{
    if (params != NULL) {
        return bay_client_notify_json(client, method, bay_json_of(params), diag);
    }
    if (client == NULL || method == NULL) {
        return named_missing(client, "no method", diag);
    }
    return notify(client, method, (bay_str){NULL, 0}, diag);
}

/* ---- subscriptions --------------------------------------------------------------------------- */

void sdk_client_forget_subscriptions(bay_client *self)
{
    size_t cursor = 0;
    bay_str uri;
    void *value;
    while (map_next(&self->subscriptions, &cursor, &uri, &value)) {
        mem_free(value);
    }
    map_fini(&self->subscriptions);
}

static bay_err remember(bay_client *self, bay_str uri, bay_diag *diag)
{
    if (map_get(&self->subscriptions, uri) != NULL) {
        return BAY_OK;
    }
    char *copy = mem_dup(uri.at, uri.len);
    bay_err err = copy != NULL ? BAY_OK : BAY_ERR_NOMEM;
    if (err == BAY_OK) {
        err = map_put(&self->subscriptions, (bay_str){copy, uri.len}, copy, NULL);
    }
    if (err == BAY_OK) {
        return BAY_OK;
    }
    mem_free(copy);
    return diag_set(diag, err, "%.*s cannot be subscribed to: %s", BAY_STR(str_head(uri, 100)),
                    bay_err_text(err));
}

static void client_service_forget(bay_client *self, bay_str uri)
{
    mem_free(map_remove(&self->subscriptions, uri));
}

/* A listen names all that is subscribed to; it stands once the server acknowledged it. */
static bay_err listen_for(bay_client *self, bay_str uri, bay_diag *diag)
{
    uint64_t end = loop_now_ms(self->base.loop) + self->options.idle_ms;
    mcp_client *engine = sdk_client_engine(self);
    bay_err err = mcp_client_subscribe(engine, uri, true, loop_now_ms(self->base.loop));
    if (err != BAY_OK) {
        return diag_set(diag, err, "%.*s at %s: %s", BAY_STR(str_head(uri, 100)), self->base.shown,
                        err == BAY_ERR_UNSUPPORTED ? "the server has no subscriptions"
                                                   : bay_err_text(err));
    }
    for (;;) {
        engine = sdk_client_engine(self);
        mcp_listening state = engine != NULL ? mcp_client_listening(engine) : MCP_LISTENS_NOT;
        uint64_t now = loop_now_ms(self->base.loop);
        if (state == MCP_LISTENS) {
            return BAY_OK;
        }
        if (state == MCP_LISTEN_REFUSED) {
            return diag_set(diag, BAY_ERR_UNSUPPORTED,
                            "%s: the server refuses subscriptions/listen", self->base.shown);
        }
        if (self->has_given_up) {
            return diag_set(diag, self->fault.code, "%s", self->fault.text);
        }
        if (now >= end) {
            return diag_set(diag, BAY_ERR_TIMEOUT,
                            "%s: a subscription was not acknowledged in time", self->base.shown);
        }
        (void)loop_turn(self->base.loop, (int64_t)(end - now));
    }
}

static bay_err subscribe_by_request(bay_client *self, bay_str uri, bool is_wanted, bay_diag *diag)
{
    const char *method = is_wanted ? "resources/subscribe" : "resources/unsubscribe";
    if (is_wanted && !bay_client_has(self, "resources.subscribe")) {
        return diag_set(diag, BAY_ERR_UNSUPPORTED, "%s has no subscriptions of resources",
                        self->base.shown);
    }
    /* first the stream on which updates come, then the updates */
    bay_err err = mcp_client_note_subscription(sdk_client_engine(self), uri, is_wanted,
                                               loop_now_ms(self->base.loop));
    if (err != BAY_OK) {
        return diag_set(diag, err, "%.*s: %s", BAY_STR(str_head(uri, 100)), bay_err_text(err));
    }
    return bay_request_run(request_uri(self, method, uri), NULL, diag);
}

bay_err bay_client_subscribe_str(bay_client *client, bay_str uri, bay_diag *diag)
{
    if (client == NULL || uri.len == 0) {
        return named_missing(client, "no URI", diag);
    }
    bay_err err = asker_check_waiting(&client->base, diag);
    err = err == BAY_OK ? await_ready(client, diag) : err;
    bool is_known = map_get(&client->subscriptions, uri) != NULL;
    if (err != BAY_OK || is_known) {
        return err;
    }
    err = remember(client, uri, diag);
    if (err != BAY_OK) {
        return err;
    }
    err = is_modern(client) ? listen_for(client, uri, diag)
                            : subscribe_by_request(client, uri, true, diag);
    if (err != BAY_OK) {
        mcp_client *engine = sdk_client_engine(client);
        client_service_forget(client, uri);
        if (engine != NULL && is_modern(client)) {
            err_ignore(mcp_client_subscribe(engine, uri, false, loop_now_ms(client->base.loop)));
        } else if (engine != NULL) {
            err_ignore(mcp_client_note_subscription(engine, uri, false, 0));
        }
    }
    return err;
}

bay_err bay_client_subscribe(bay_client *client, const char *uri, bay_diag *diag)
{
    return bay_client_subscribe_str(client, str_of(uri), diag);
}

bay_err bay_client_unsubscribe_str(bay_client *client, bay_str uri, bay_diag *diag)
{
    if (client == NULL || uri.len == 0) {
        return named_missing(client, "no URI", diag);
    }
    bay_err err = asker_check_waiting(&client->base, diag);
    if (err != BAY_OK || map_get(&client->subscriptions, uri) == NULL) {
        return err;
    }
    client_service_forget(client, uri);
    asker_touch(&client->base);
    mcp_client *engine = client->phase == CLIENT_READY ? sdk_client_engine(client) : NULL;
    if (engine == NULL) {
        return BAY_OK; /* the next link will not know of it */
    }
    if (is_modern(client)) {
        return mcp_client_subscribe(engine, uri, false, loop_now_ms(client->base.loop));
    }
    return subscribe_by_request(client, uri, false, diag);
}

bay_err bay_client_unsubscribe(bay_client *client, const char *uri, bay_diag *diag)
{
    return bay_client_unsubscribe_str(client, str_of(uri), diag);
}

/* ---- the level of log messages --------------------------------------------------------------- */

bay_err bay_client_log_level(bay_client *client, const char *level, bay_diag *diag)
{
    mcp_log_level wanted = MCP_LOG_NONE;
    if (client == NULL) {
        return no_client(diag);
    }
    if (level != NULL && !mcp_log_level_find(str_of(level), &wanted)) {
        return diag_set(diag, BAY_ERR_INVALID,
                        "\"%.40s\" is no level: debug, info, notice, warning, error, critical, "
                        "alert, emergency",
                        level);
    }
    bay_err err = asker_check_waiting(&client->base, diag);
    err = err == BAY_OK ? await_ready(client, diag) : err;
    if (err != BAY_OK) {
        return err;
    }
    if (!is_modern(client)) {
        if (!bay_client_has(client, "logging")) {
            return diag_set(diag, BAY_ERR_UNSUPPORTED, "%s sends no log messages",
                            client->base.shown);
        }
        /* sessions have no level for "none": the least there is */
        char params[40];
        bay_str text = mcp_log_level_text(level != NULL ? wanted : MCP_LOG_EMERGENCY);
        snprintf(params, sizeof(params), "{\"level\":\"%.*s\"}", BAY_STR(text));
        err = bay_client_request(client, "logging/setLevel", params, NULL, diag);
    }
    if (err == BAY_OK) {
        mcp_client *engine = sdk_client_engine(client);
        client->level = wanted;
        if (engine != NULL) {
            mcp_client_note_level(engine, wanted);
        }
    }
    return err;
}

/* ---- roots ----------------------------------------------------------------------------------- */

bay_err sdk_client_render_roots(bay_client *self, const char *const *pairs)
{
    json_builder made;
    json_val all;
    json_doc *roots;
    json_writer *to = json_builder_init(&made, NULL, CLIENT_MAX_REPLY);
    json_open_object(to);
    json_key_lit(to, "roots");
    json_open_array(to);
    for (size_t i = 0; pairs != NULL && pairs[i] != NULL; i += 2) {
        json_open_object(to);
        json_key_lit(to, "uri");
        json_put_str(to, str_of(pairs[i]));
        if (pairs[i + 1] != NULL && pairs[i + 1][0] != '\0') {
            json_key_lit(to, "name");
            json_put_str(to, str_of(pairs[i + 1]));
        }
        json_close_object(to);
        if (pairs[i + 1] == NULL) {
            break;
        }
    }
    json_close_array(to);
    json_close_object(to);
    bay_err err = json_builder_view(&made, &all);
    err = err == BAY_OK ? json_clone(all, &roots) : err;
    json_builder_drop(&made);
    if (err == BAY_OK) {
        mem_free(self->roots);
        self->roots = roots;
    }
    return err;
}

bay_err bay_client_roots(bay_client *client, const char *const *pairs, bay_diag *diag)
{
    if (client == NULL) {
        return no_client(diag);
    }
    if (!client->options.has_roots) {
        return diag_set(diag, BAY_ERR_STATE,
                        "this client declared no roots: give it one with bay_client_options_root "
                        "before it connects");
    }
    bay_err err = sdk_client_render_roots(client, pairs);
    if (err != BAY_OK) {
        return diag_set(diag, err, "the roots: %s", bay_err_text(err));
    }
    asker_touch(&client->base);
    mcp_client *engine = client->phase == CLIENT_READY ? sdk_client_engine(client) : NULL;
    if (engine == NULL || is_modern(client)) {
        return BAY_OK; /* asked for when they are needed */
    }
    return mcp_client_tell(engine, STR("notifications/roots/list_changed"), (bay_str){NULL, 0},
                           loop_now_ms(client->base.loop), diag);
}

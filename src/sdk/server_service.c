/* What stands behind the engine of an SDK server: finds the registration a request means and runs
 * its handler. */
#include "base/mem.h"
#include "base/str.h"
#include "sdk/server_parts.h"
#include "wire/uri.h"

const entry *sdk_server_find(const bay_server *self, entry_kind kind, bay_str key)
{
    const entry *found = map_get(&self->lists[kind].by_key, key);
    return found != NULL && !atomic_load(&found->is_off) ? found : NULL;
}

static void server_service_refuse(mcp_request *request, const char *what, bay_str name)
{
    buf text;
    buf_init(&text, 1024);
    buf_printf(&text, "%s: %.*s", what, (int)(name.len < 200 ? name.len : 200), name.at);
    mcp_request_error(request, RPC_INVALID_PARAMS,
                      text.err == BAY_OK ? buf_view(&text) : str_of(what), (bay_str){NULL, 0});
    buf_fini(&text);
}

static void start(bay_server *self, const entry *item, mcp_request *request, json_val arguments)
{
    bay_call *call;
    if (sdk_call_new(self, item, request, &call) != BAY_OK) {
        mcp_request_error(request, RPC_INTERNAL_ERROR, STR("Out of memory"), (bay_str){NULL, 0});
        return;
    }
    call->arguments = arguments;
    if ((item->task_mode == BAY_TASK_MODE_OPTIONAL || item->task_mode == BAY_TASK_MODE_REQUIRED) &&
        sdk_task_is_wanted(request)) {
        sdk_task_start(call);
        return;
    }
    bool has_rounds = request->revision->era == MCP_MODERN && request->method != NULL &&
                      (request->method->flags & MCP_FLAG_MRTR) != 0;
    if (!has_rounds || sdk_call_round_open(call)) {
        sdk_call_run(call);
    }
}

/* A failure the model can act on, without a handler. */
static void fail_tool(bay_server *self, const entry *tool, mcp_request *request, const char *text)
{
    bay_call *call;
    if (sdk_call_new(self, tool, request, &call) != BAY_OK) {
        mcp_request_error(request, RPC_INTERNAL_ERROR, STR("Out of memory"), (bay_str){NULL, 0});
        return;
    }
    bay_call_fail(call, text);
}

/* {"elicitation":{"url":{}}} */
static void write_capability(buf *out, bay_str path)
{
    bool is_extension = str_starts(path, STR("extensions."));
    size_t dot = str_find(path, '.');
    buf_char(out, '{');
    json_quote(out, str_head(path, dot));
    buf_char(out, ':');
    if (dot == path.len) {
        buf_lit(out, "{}");
    } else if (is_extension) {
        buf_char(out, '{');
        json_quote(out, str_from(path, dot + 1));
        buf_lit(out, ":{}}");
    } else {
        write_capability(out, str_from(path, dot + 1));
    }
    buf_char(out, '}');
}

/* mcp 2026-07-28 basic: a missing client capability is -32021 with data.requiredCapabilities */
static void refuse_capability(bay_server *self, const entry *tool, mcp_request *request,
                              bay_str capability)
{
    buf text;
    buf_init(&text, 4096);
    if (request->revision->era == MCP_MODERN) {
        buf_lit(&text, "{\"requiredCapabilities\":");
        write_capability(&text, capability);
        buf_char(&text, '}');
        mcp_request_error(request, MCP_MISSING_CAPABILITY,
                          STR("Missing required client capability"), buf_view(&text));
    } else {
        buf_printf(&text, "This tool needs a client with the capability \"%.*s\".",
                   BAY_STR(capability));
        buf_char(&text, '\0');
        fail_tool(self, tool, request, text.err == BAY_OK ? text.at : "Missing capability");
    }
    buf_fini(&text);
}

/* Some clients write null where they have none. False: they are something else. */
static bool read_arguments(const mcp_request *request, json_val *out)
{
    json_val arguments = json_get(request->message.params, STR("arguments"));
    *out = json_is(arguments, JSON_NULL) ? JSON_NONE : arguments;
    return json_is(*out, JSON_MISSING) || json_is(*out, JSON_OBJECT);
}

/* Arguments that fit, and could not be checked or be given their defaults. */
static void refuse_unfilled(mcp_request *request, bay_err err)
{
    mcp_request_error(request, RPC_INTERNAL_ERROR,
                      err == BAY_ERR_LIMIT
                          ? STR("The arguments with their defaults are larger than a call may be")
                          : STR("Out of memory"),
                      (bay_str){NULL, 0});
}

static void call_tool(bay_server *self, mcp_request *request)
{
    json_val arguments;
    const entry *tool = sdk_server_find(self, ENTRY_TOOL, request->name);
    if (tool == NULL) {
        server_service_refuse(request, "Unknown tool", request->name);
        return;
    }
    request->call.timeout_ms = tool->timeout_ms;
    request->call.scopes = tool->scopes;
    if (!mcp_request_admit(request, NULL)) {
        return;
    }
    if (tool->requires.len > 0 &&
        json_is(mcp_capability(request->client_capabilities, tool->requires), JSON_MISSING)) {
        refuse_capability(self, tool, request, tool->requires);
        return;
    }
    if (tool->task_mode == BAY_TASK_MODE_REQUIRED && !sdk_task_is_wanted(request)) {
        refuse_capability(self, tool, request, STR("extensions." MCP_EXTENSION_TASKS));
        return;
    }
    if (!read_arguments(request, &arguments)) {
        server_service_refuse(request, "The arguments must be an object; tool", request->name);
        return;
    }
    buf complaint;
    buf_init(&complaint, SCHEMA_FAILURE_BYTES * 2);
    bay_err err = sdk_arguments_check(tool, arguments, &complaint);
    if (err == BAY_OK) {
        err = sdk_arguments_fill(tool, request->memory, &arguments);
    }
    if (err == BAY_OK) {
        start(self, tool, request, arguments);
    } else if (err == BAY_ERR_INVALID) {
        buf_char(&complaint, '\0');
        fail_tool(self, tool, request,
                  complaint.err == BAY_OK ? complaint.at : "The arguments do not fit the schema.");
    } else {
        refuse_unfilled(request, err);
    }
    buf_fini(&complaint);
}

static const entry *find_template(const bay_server *self, bay_str name)
{
    const entry_list *templates = &self->lists[ENTRY_TEMPLATE];
    for (size_t i = 0; i < templates->len; i++) {
        if (uri_template_matches(templates->items[i]->key, name) &&
            !atomic_load(&templates->items[i]->is_off)) {
            return templates->items[i];
        }
    }
    return NULL;
}

static void read_resource(bay_server *self, mcp_request *request)
{
    const entry *item = sdk_server_find(self, ENTRY_RESOURCE, request->name);
    if (item == NULL) {
        item = find_template(self, request->name);
    }
    if (item == NULL) {
        mcp_request_resource_not_found(request);
    } else if (mcp_request_admit(request, NULL)) {
        start(self, item, request, JSON_NONE);
    }
}

static void get_prompt(bay_server *self, mcp_request *request)
{
    json_val arguments;
    const entry *prompt = sdk_server_find(self, ENTRY_PROMPT, request->name);
    if (prompt == NULL) {
        server_service_refuse(request, "Unknown prompt", request->name);
        return;
    }
    if (!read_arguments(request, &arguments)) {
        server_service_refuse(request, "The arguments must be an object; prompt", request->name);
        return;
    }
    const argument_rule *missing = sdk_arguments_missing(prompt, arguments);
    if (missing != NULL) {
        server_service_refuse(request, "Missing prompt argument", missing->name);
        return;
    }
    buf complaint;
    buf_init(&complaint, SCHEMA_FAILURE_BYTES * 2);
    bay_err err = sdk_arguments_check(prompt, arguments, &complaint);
    if (err == BAY_OK) {
        err = sdk_arguments_fill(prompt, request->memory, &arguments);
    }
    if (err == BAY_ERR_INVALID) {
        mcp_request_error(request, RPC_INVALID_PARAMS, buf_view(&complaint), (bay_str){NULL, 0});
    } else if (err != BAY_OK) {
        refuse_unfilled(request, err);
    } else if (mcp_request_admit(request, NULL)) {
        start(self, prompt, request, arguments);
    }
    buf_fini(&complaint);
}

json_val sdk_completion_context(const mcp_request *request)
{
    json_val context = JSON_NONE;
    if (request->revision->id >= MCP_REV_2025_06_18) {
        context = json_get(request->message.params, STR("context"));
        context = json_is(context, JSON_OBJECT) ? json_get(context, STR("arguments")) : context;
    }
    return json_is(context, JSON_NULL) ? JSON_NONE : context;
}

/* mcp 2025-06-18 server/utilities/completion: context.arguments is an object of strings. False: it
 * was refused. */
static bool takes_context(mcp_request *request)
{
    json_val context = sdk_completion_context(request);
    json_iter iter = json_iter_of(context);
    if (json_is(context, JSON_MISSING)) {
        return true;
    }
    if (!json_is(context, JSON_OBJECT)) {
        server_service_refuse(request, "context.arguments must be an object of strings; got",
                              json_raw(context));
        return false;
    }
    if (json_raw(context).len > COMPLETION_CONTEXT_BYTES) {
        server_service_refuse(request, "context.arguments is larger than 1 MiB; it begins with",
                              json_raw(context));
        return false;
    }
    while (json_next(&iter)) {
        if (!json_is(iter.value, JSON_STRING)) {
            server_service_refuse(request, "context.arguments: the value must be a string, of",
                                  json_raw(iter.key));
            return false;
        }
    }
    return true;
}

static void complete(bay_server *self, mcp_request *request)
{
    json_val reference = json_get(request->message.params, STR("ref"));
    bool is_prompt = json_str_eq(json_get(reference, STR("type")), STR("ref/prompt"));
    json_val name = json_get(reference, is_prompt ? STR("name") : STR("uri"));
    json_val argument = json_get(request->message.params, STR("argument"));
    bay_str key;
    if (json_str(name, request->memory, &key) != BAY_OK ||
        !json_is(json_get(argument, STR("name")), JSON_STRING) ||
        !json_is(json_get(argument, STR("value")), JSON_STRING)) {
        server_service_refuse(request, "completion/complete needs ref and argument; got",
                              json_raw(request->message.params));
        return;
    }
    if (!takes_context(request)) {
        return;
    }
    const entry *target = sdk_server_find(self, is_prompt ? ENTRY_PROMPT : ENTRY_TEMPLATE, key);
    if (target == NULL && !is_prompt) {
        target = sdk_server_find(self, ENTRY_RESOURCE, key);
    }
    const entry *completes =
        self->lists[ENTRY_COMPLETION].len > 0 ? self->lists[ENTRY_COMPLETION].items[0] : NULL;
    if (target != NULL && sdk_has_choices(target, json_get(argument, STR("name")))) {
        completes = self->choices;
    }
    if (target == NULL || completes == NULL) {
        server_service_refuse(request, "Nothing to complete for", key);
        return;
    }
    request->name = key;
    request->call.shown = key;
    if (mcp_request_admit(request, NULL)) {
        start(self, completes, request, argument);
    }
}

/* One that the engine asked service_knows_method about. */
static void call_method(bay_server *self, mcp_request *request)
{
    const entry *method = sdk_server_find(self, ENTRY_METHOD, request->message.method);
    if (method == NULL) {
        mcp_request_error(request, RPC_METHOD_NOT_FOUND, STR("Method not found"),
                          (bay_str){NULL, 0});
        return;
    }
    request->name = request->message.method;
    if (mcp_request_admit(request, NULL)) {
        start(self, method, request, request->message.params);
    }
}

static bool service_knows_method(void *user, bay_str method, const mcp_revision *revision)
{
    (void)revision;
    return sdk_server_find(user, ENTRY_METHOD, method) != NULL;
}

static void answer_list(bay_server *self, entry_kind kind, mcp_request *request)
{
    if (mcp_request_admit(request, NULL)) {
        sdk_list_answer(self, kind, request);
    }
}

static void service_request(void *user, mcp_request *request)
{
    bay_server *self = user;
    switch (request->method != NULL ? request->method->id : MCP_METHOD_COUNT) {
    case MCP_TOOLS_LIST:
        answer_list(self, ENTRY_TOOL, request);
        return;
    case MCP_RESOURCES_LIST:
        answer_list(self, ENTRY_RESOURCE, request);
        return;
    case MCP_RESOURCES_TEMPLATES_LIST:
        answer_list(self, ENTRY_TEMPLATE, request);
        return;
    case MCP_PROMPTS_LIST:
        answer_list(self, ENTRY_PROMPT, request);
        return;
    case MCP_TOOLS_CALL:
        call_tool(self, request);
        return;
    case MCP_RESOURCES_READ:
        read_resource(self, request);
        return;
    case MCP_PROMPTS_GET:
        get_prompt(self, request);
        return;
    case MCP_COMPLETE:
        complete(self, request);
        return;
    case MCP_TASKS_GET:
    case MCP_TASKS_UPDATE:
    case MCP_TASKS_CANCEL:
        if (mcp_request_admit(request, NULL)) {
            sdk_tasks_request(self, request);
        }
        return;
    case MCP_SKILLS_LIST:
    case MCP_SKILLS_GET:
    case MCP_DIRECTORY_READ:
        if (mcp_request_admit(request, NULL)) {
            sdk_skills_request(self, request);
        }
        return;
    case MCP_METHOD_COUNT:
        call_method(self, request);
        return;
    default:
        mcp_request_error(request, RPC_METHOD_NOT_FOUND, STR("Method not found"),
                          (bay_str){NULL, 0});
    }
}

static void service_cancelled(void *user, mcp_request *request)
{
    (void)user;
    bay_call *call = request->user;
    if (call != NULL && call->task == NULL) { /* a task goes on without its client */
        atomic_store(&call->is_cancelled, true);
    }
}

static void service_drained(void *user, mcp_request *request)
{
    (void)user;
    bay_call *call = request->user;
    if (call != NULL) {
        atomic_store(&call->is_slow, false);
    }
}

static const mcp_param_table *service_param_table(void *user, bay_str tool)
{
    const bay_server *self = user;
    const entry *item = sdk_server_find(self, ENTRY_TOOL, tool);
    return item != NULL ? &item->param_table : NULL;
}

static bay_err service_subscribe(void *user, bay_str name, bool is_wanted)
{
    bay_server *self = user;
    bool is_known =
        sdk_server_find(self, ENTRY_RESOURCE, name) != NULL || find_template(self, name) != NULL;
    if (!is_known && is_wanted) {
        return BAY_ERR_NOT_FOUND;
    }
    if (self->subscribed != NULL) {
        self->subscribed(self, name, is_wanted, self->subscribed_user);
    }
    return BAY_OK;
}

const mcp_service sdk_server_service = {
    .request = service_request,
    .cancelled = service_cancelled,
    .drained = service_drained,
    .capabilities = sdk_server_write_capabilities,
    .param_table = service_param_table,
    .knows_method = service_knows_method,
    .subscribe = service_subscribe,
};

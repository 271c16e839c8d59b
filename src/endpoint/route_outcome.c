/* The last word of a call: the server's own, or why there is none, in the words of the client's
 * revision. */
#include <string.h>

#include "base/str.h"
#include "endpoint/endpoint_parts.h"
#include "json/build.h"

enum { URL_RESULT_BYTES = 1 << 20, FAILURE_BYTES = 8192 };

/* Our key for a URL that a server wants opened before it takes the call. */
#define URL_KEY "patchbay-url-"

/* ---- failures -------------------------------------------------------------------------------- */

/* Machine-readable reasons of a failure on the way. */
static const char *reason_of(const mcp_outcome *outcome)
{
    if (outcome->login != MCP_LOGIN_NONE) {
        return "auth_expired";
    }
    switch (outcome->err) {
    case BAY_ERR_TIMEOUT:
        return "timeout";
    case BAY_ERR_BUSY:
        return "busy";
    case BAY_ERR_LIMIT:
        return "result_too_large";
    case BAY_ERR_DENIED:
        return "denied_by_server";
    case BAY_ERR_UNSUPPORTED:
        return "not_supported_by_server";
    case BAY_ERR_PROTOCOL:
    case BAY_ERR_SYNTAX:
    case BAY_ERR_UTF8:
        return "invalid_answer";
    default:
        return "server_unavailable";
    }
}

/* Who has to do what, so that there are credentials. `link`: where the user logs in, or "". */
static void write_login(buf *out, bay_str server, const mcp_outcome *outcome, const char *why,
                        bay_str link)
{
    static const char *const lacks[] = {
        [MCP_LOGIN_OPERATOR] =
            "The gateway's own credentials for the server \"%.*s\" are missing or "
            "not accepted",
        [MCP_LOGIN_CALLER] = "The gateway got no token of this caller's for the server \"%.*s\"",
        [MCP_LOGIN_USER] = "This caller has no login at the server \"%.*s\"",
    };
    static const char *const remedies[] = {
        [MCP_LOGIN_OPERATOR] = "The operator of the gateway has to renew them: `credentials` or "
                               "`headers` of the server in its configuration.",
        [MCP_LOGIN_CALLER] = "Log in to the gateway again, then repeat it.",
        [MCP_LOGIN_USER] =
            "This caller has no way to log in there with a browser: have the operator "
            "of the gateway run `patchbay login --for` for him and this server, then "
            "repeat it.",
    };
    buf_printf(out, lacks[outcome->login], BAY_STR(server));
    buf_printf(out, ": %.1000s.%s ", why,
               outcome->was_sent ? " The call may have been carried out."
                                 : " The call was not carried out.");
    if (link.len > 0) {
        buf_lit(out, "Its user logs in there at ");
        buf_str(out, link);
        buf_lit(out, " ; then repeat it.");
    } else {
        buf_str(out, str_of(remedies[outcome->login]));
    }
}

static void write_failure(buf *out, bay_str server, const mcp_outcome *outcome, bay_str link)
{
    const char *what = bay_err_text(outcome->err);
    const char *detail = outcome->text != NULL ? outcome->text : "";
    bool has_detail = detail[0] != '\0' && strcmp(detail, what) != 0;
    if (outcome->login != MCP_LOGIN_NONE) {
        write_login(out, server, outcome, has_detail ? detail : what, link);
        return;
    }
    buf_printf(out, "The server \"%.*s\" gave no answer: %s%s%.1000s.%s", BAY_STR(server), what,
               has_detail ? ": " : "", has_detail ? detail : "",
               outcome->was_sent ? " The call may have been carried out."
                                 : " The call was not carried out; it can be tried again.");
}

/* Members of an object. */
static void write_reason(buf *out, bay_str server, const char *reason, const char *place,
                         bool may_have_run)
{
    buf_printf(out, "\"patchbay/reason\":\"%s\",\"patchbay/server\":", reason);
    json_quote(out, server);
    if (place[0] != '\0') {
        buf_lit(out, ",\"patchbay/place\":");
        json_quote(out, str_of(place));
    }
    buf_printf(out, ",\"patchbay/mayHaveRun\":%s", may_have_run ? "true" : "false");
}

/* A failure the model can act on is a tool's result; anything else a JSON-RPC error. */
static void route_outcome_refuse(mcp_request *request, int code, bay_str text, const buf *reason)
{
    if (request->method != NULL && request->method->id == MCP_TOOLS_CALL) {
        mcp_request_tool_error(request, text, buf_view(reason));
        return;
    }
    buf data;
    buf_init(&data, reason->len + 2);
    buf_char(&data, '{');
    buf_str(&data, buf_view(reason));
    buf_char(&data, '}');
    mcp_request_error(request, code, text, buf_view(&data));
    buf_fini(&data);
}

void route_refuse(mcp_request *request, bay_str server, const char *reason, int code, bay_str text,
                  bool may_have_run)
{
    buf data;
    buf_init(&data, 4096);
    write_reason(&data, server, reason, "", may_have_run);
    route_outcome_refuse(request, code, text, &data);
    buf_fini(&data);
}

static void answer_failure(endpoint *of, mcp_request *request, bay_str server,
                           const mcp_outcome *outcome)
{
    buf text, data, link;
    bool is_login = outcome->login == MCP_LOGIN_USER;
    if (is_login && user_login_ask(of, request, server)) {
        return;
    }
    buf_init(&text, FAILURE_BYTES);
    buf_init(&data, FAILURE_BYTES);
    buf_init(&link, FAILURE_BYTES / 2);
    bool has_link = is_login && user_login_link(of, request, server, STR(""), &link);
    write_failure(&text, server, outcome, has_link ? buf_view(&link) : STR(""));
    write_reason(&data, server, reason_of(outcome), outcome->place, outcome->was_sent);
    if (has_link) {
        buf_lit(&data, ",\"patchbay/login\":");
        json_quote(&data, buf_view(&link));
    }
    route_outcome_refuse(request, RPC_INTERNAL_ERROR, buf_view(&text), &data);
    buf_fini(&data);
    buf_fini(&text);
    buf_fini(&link);
}

/* ---- errors that the client's revision does not know ----------------------------------------- */

static bay_str message_of(json_val error, arena *memory)
{
    bay_str message;
    return json_str(json_get(error, STR("message")), memory, &message) == BAY_OK ? message
                                                                                 : STR("");
}

/* A server of the stateless revision wants a capability that the client of a session never
 * declared. */
static void answer_missing_capability(mcp_request *request, bay_str server, json_val error)
{
    buf text;
    bay_str required =
        json_raw(json_get(json_get(error, STR("data")), STR("requiredCapabilities")));
    bay_str message = message_of(error, request->memory);
    buf_init(&text, 8192);
    buf_printf(&text, "The server \"%.*s\" needs a capability that this client has not declared",
               BAY_STR(server));
    if (required.len > 0) {
        buf_lit(&text, ": ");
        buf_str(&text, str_head(required, 500));
    }
    if (message.len > 0) {
        buf_lit(&text, ". It said: ");
        buf_str(&text, str_head(message, 1000));
    }
    route_refuse(request, server, "capability_missing", RPC_INVALID_REQUEST, buf_view(&text),
                 false);
    buf_fini(&text);
}

static bool is_url(json_val elicitation)
{
    return json_str_eq(json_get(elicitation, STR("mode")), STR("url")) &&
           json_is(json_get(elicitation, STR("url")), JSON_STRING);
}

/* {"resultType":"input_required",…}; how many URLs there are in it. */
static size_t write_urls(json_writer *out, json_val elicitations)
{
    char key[sizeof(URL_KEY) + 24];
    size_t count = 0;
    json_iter iter = json_iter_of(elicitations);
    json_open_object(out);
    json_key_lit(out, "resultType");
    json_put_str(out, STR("input_required"));
    json_key_lit(out, "inputRequests");
    json_open_object(out);
    while (json_is(elicitations, JSON_ARRAY) && json_next(&iter)) {
        if (is_url(iter.value)) {
            (void)snprintf(key, sizeof(key), URL_KEY "%zu", ++count);
            json_key(out, str_of(key));
            json_open_object(out);
            json_key_lit(out, "method");
            json_put_str(out, STR("elicitation/create"));
            json_key_lit(out, "params");
            json_put_val(out, iter.value);
            json_close_object(out);
        }
    }
    json_close_object(out);
    json_close_object(out);
    return count;
}

static bool is_mrtr(const mcp_request *request)
{
    return request->revision->era == MCP_MODERN && request->method != NULL &&
           (request->method->flags & MCP_FLAG_MRTR) != 0;
}

static void answer_urls(mcp_request *request, bay_str server, json_val error)
{
    unsigned inputs = mcp_inputs_of(request->revision, request->client_capabilities);
    bool can_open = is_mrtr(request) && (inputs & MCP_INPUT_URL) != 0;
    json_builder made;
    json_val result;
    json_writer *out = json_builder_init(&made, request->memory, URL_RESULT_BYTES);
    size_t count = write_urls(out, json_get(json_get(error, STR("data")), STR("elicitations")));
    if (can_open && count > 0) {
        if (json_builder_end(&made, &result) == BAY_OK) {
            mcp_request_result(request, result);
        } else {
            endpoint_refuse_memory(request);
        }
        return;
    }
    json_builder_drop(&made);
    /* -32042 must not reach a client of the stateless revision; the capability that is missing may
     */
    buf text;
    bay_str message = message_of(error, request->memory);
    buf_init(&text, URL_RESULT_BYTES);
    buf_printf(&text, "The server \"%.*s\" wants its user to open a URL first: ", BAY_STR(server));
    buf_str(&text, str_head(message, 1000));
    mcp_request_error(request, MCP_MISSING_CAPABILITY, buf_view(&text),
                      STR("{\"requiredCapabilities\":{\"elicitation\":{\"url\":{}}}}"));
    buf_fini(&text);
}

bool route_refuses_urls(mcp_request *request, bay_str server)
{
    json_val answers = json_get(request->message.params, STR("inputResponses"));
    json_iter iter = json_iter_of(answers);
    while (json_is(answers, JSON_OBJECT) && json_next(&iter)) {
        bay_str key;
        if (json_str_plain(iter.key, &key) && str_starts(key, STR(URL_KEY)) &&
            !json_str_eq(json_get(iter.value, STR("action")), STR("accept"))) {
            route_refuse(request, server, "declined", RPC_INVALID_PARAMS,
                         STR("The server wants a URL opened before it takes this call, and the "
                             "user did not agree to that"),
                         false);
            return true;
        }
    }
    return false;
}

void route_note_urls(endpoint *of, const mcp_request *request, bay_str server,
                     const mcp_outcome *outcome)
{
    if (outcome->kind != MCP_OUTCOME_ERROR || outcome->error_code != ROUTE_URL_REQUIRED ||
        request->session == NULL) {
        return;
    }
    json_iter iter =
        json_iter_of(json_get(json_get(outcome->error, STR("data")), STR("elicitations")));
    for (int i = 0; i < INPUT_REQUESTS_PER_CALL && json_next(&iter); i++) {
        endpoint_elicited(of, server, iter.value, request->session);
    }
}

/* ---- results of a bounded tool --------------------------------------------------------------- */

/* Is it longer than the settings of its tool say? Its bytes are here, so this protects who gets
 * them, not the gateway: that is what `limits` are for. */
static bool refuses_result(mcp_request *request, bay_str server, json_val result)
{
    call_context *call = &request->call;
    if (call->door == NULL || call->door->tools.tools == NULL || call->about.kind != POLICY_TOOL) {
        return false;
    }
    size_t bytes = json_raw(result).len;
    size_t most = policy_tools_find(&call->door->tools, call->about.name).result_bytes;
    if (most == 0 || bytes <= most) {
        return false;
    }
    buf text;
    buf_init(&text, FAILURE_BYTES);
    buf_printf(
        &text,
        "The result of \"%.*s\" has %zu bytes; this gateway passes on at most %zu of this "
        "tool. The call was carried out. Ask for less, with arguments that narrow the result.",
        BAY_STR(str_head(call->about.name, 256)), bytes, most);
    route_refuse(request, server, "result_too_large", RPC_INTERNAL_ERROR, buf_view(&text), true);
    buf_fini(&text);
    return true;
}

/* ---- the outcome ----------------------------------------------------------------------------- */

void route_answer(endpoint *of, mcp_request *request, bay_str server, const mcp_outcome *outcome)
{
    bool is_modern = request->revision->era == MCP_MODERN;
    switch (outcome->kind) {
    case MCP_OUTCOME_RESULT:
        if (!passed_state_answer(of, request, server, outcome->result) &&
            !refuses_result(request, server, outcome->result)) {
            mcp_request_result(request, outcome->result);
        }
        return;
    case MCP_OUTCOME_ERROR:
        if (is_modern && outcome->error_code == ROUTE_URL_REQUIRED) {
            answer_urls(request, server, outcome->error);
        } else if (!is_modern && outcome->error_code == MCP_MISSING_CAPABILITY) {
            answer_missing_capability(request, server, outcome->error);
        } else {
            mcp_request_error_object(request, outcome->error);
        }
        return;
    case MCP_OUTCOME_FAILED:
        request->call.is_sent = outcome->was_sent;
        answer_failure(of, request, server, outcome);
        return;
    }
}

#include "endpoint/input_request.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "endpoint/endpoint_parts.h"

/* ---- in words -------------------------------------------------------------------------------- */

void input_request_write_inputs(buf *out, unsigned inputs)
{
    static const struct {
        unsigned inputs; /* one of these … */
        unsigned unless; /* … and none of these, which say more */
        const char *text;
    } words[] = {
        {MCP_INPUT_FORM, 0, "elicitation by a form"},
        {MCP_INPUT_URL, 0, "elicitation by a URL"},
        {MCP_INPUT_SAMPLING, MCP_INPUT_SAMPLING_TOOLS, "sampling"},
        {MCP_INPUT_SAMPLING_TOOLS, 0, "sampling with tools"},
        {MCP_INPUT_ROOTS, 0, "roots"},
    };
    const char *gap = "";
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if ((inputs & words[i].inputs) != 0 && (inputs & words[i].unless) == 0) {
            buf_printf(out, "%s%s", gap, words[i].text);
            gap = ", ";
        }
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

bool input_request_accepts(const input_request *self, json_val answer)
{
    mcp_shape_fault fault;
    return mcp_shape_result(self->method, mcp_revision_of(MCP_LATEST_LEGACY), answer, &fault);
}

/* ---- open questions -------------------------------------------------------------------------- */

void input_request_free(input_request *self)
{
    route *of = self->route;
    list_remove(&self->link);
    of->input_request_count--;
    of->input_request_bytes -= self->held;
    of->endpoint->suspended.bytes -= self->held;
    mem_free(self);
}

static size_t params_bytes(json_val params)
{
    return json_is(params, JSON_MISSING) ? 0 : json_clone_bytes(params);
}

/* `params` are kept for those who are asked later. */
static input_request *input_request_new(route *of, const mcp_method *method, bay_str id,
                                        json_val params)
{
    size_t held = params_bytes(params);
    input_request *self = mem_alloc(sizeof(*self) + held + id.len);
    if (self == NULL) {
        return NULL;
    }
    char *bytes = (char *)(self + 1) + held;
    memcpy(bytes, id.at, id.len);
    *self =
        (input_request){.route = of,
                        .method = method,
                        .number = ++of->last_input_request,
                        .id = {bytes, id.len},
                        .params = held > 0 ? json_root(json_clone_at(params, self + 1)) : JSON_NONE,
                        .held = held};
    list_push(&of->input_requests, &self->link);
    of->input_request_count++;
    of->input_request_bytes += held;
    of->endpoint->suspended.bytes += held;
    return self;
}

void input_requests_drop(route *of)
{
    list_link *link;
    while ((link = list_first(&of->input_requests)) != NULL) {
        input_request *one = CONTAINER_OF(link, input_request, link);
        if (of->suspended == NULL) {
            mcp_request_withdraw(of->request, one, STR("The call that needed it has ended"));
        }
        input_request_free(one);
    }
}

bool input_requests_refuse(route *of, int code, bay_str text)
{
    list_link *link;
    while ((link = list_first(&of->input_requests)) != NULL) {
        input_request *one = CONTAINER_OF(link, input_request, link);
        char id[RPC_MAX_ID_BYTES];
        bay_str copy = {id, one->id.len};
        memcpy(id, one->id.at, one->id.len);
        input_request_free(one);
        if (!route_reply(of, copy, JSON_NONE, code, text)) {
            return false;
        }
    }
    return true;
}

/* ---- a client of the session revisions ------------------------------------------------------- */

static void read_error(input_answer *out, json_val error)
{
    int64_t code = RPC_INTERNAL_ERROR;
    bay_str text = STR("");
    arena_init(&out->memory, INPUT_REQUESTS_CALL_BYTES);
    bay_err err = json_int64(json_get(error, STR("code")), &code);
    if (err != BAY_OK || code < INT32_MIN || code > INT32_MAX) {
        code = RPC_INTERNAL_ERROR;
    }
    if (json_str(json_get(error, STR("message")), &out->memory, &text) != BAY_OK) {
        text = STR("the client's error cannot be carried: its message is too long");
    }
    out->code = (int)code;
    out->message = text;
}

/* What the client answered goes to the server only if the server can read it. */
static void read_result(input_answer *out, const mcp_method *method, const mcp_revision *revision,
                        json_val result)
{
    mcp_shape_fault fault;
    if (mcp_shape_result(method, revision, result, &fault)) {
        out->result = result;
        return;
    }
    (void)snprintf(out->text, sizeof(out->text), "the client's answer is no result of %.*s: %s %s",
                   BAY_STR(method->text), fault.place, fault.text);
    out->code = RPC_INTERNAL_ERROR;
    out->message = str_of(out->text);
}

void input_answer_init(input_answer *self, bay_err err, const rpc_message *response,
                       const mcp_method *method, const mcp_revision *revision)
{
    self->result = JSON_NONE;
    self->code = 0;
    self->message = (bay_str){NULL, 0};
    arena_init(&self->memory, 0);
    if (err != BAY_OK) {
        self->code = RPC_INTERNAL_ERROR;
        self->message = err == BAY_ERR_TIMEOUT    ? STR("the client did not answer in time")
                        : err == BAY_ERR_PROTOCOL ? STR("the client's answer could not be read")
                                                  : STR("the client is gone");
    } else if (response->kind == RPC_RESULT) {
        read_result(self, method, revision, response->result);
    } else {
        read_error(self, response->error);
    }
}

void input_answer_fini(input_answer *self)
{
    arena_fini(&self->memory);
}

/* BAY_ERR_CANCELLED: the call itself ends, and the server waits for nothing any more. */
static void client_answered(void *user, bay_err err, const rpc_message *response)
{
    input_request *one = user;
    route *of = one->route;
    const mcp_method *method = one->method;
    char id[RPC_MAX_ID_BYTES];
    bay_str copy = {id, one->id.len};
    memcpy(id, one->id.at, one->id.len);
    input_request_free(one);
    if (err == BAY_ERR_CANCELLED) {
        return;
    }
    input_answer answer;
    input_answer_init(&answer, err, response, method, of->request->revision);
    (void)route_reply(of, copy, answer.result, answer.code, answer.message);
    input_answer_fini(&answer);
}

static bay_err ask_legacy(route *of, const mcp_method *method, const rpc_message *message)
{
    buf params;
    buf_init(&params, 2 * INPUT_REQUESTS_CALL_BYTES);
    json_writer writer;
    json_writer_init(&writer, &params);
    input_request_write_params(&writer, method->text, message->params, of->request->revision);
    bay_err err = params.err;
    input_request *one =
        err == BAY_OK ? input_request_new(of, method, message->id, JSON_NONE) : NULL;
    if (one != NULL) {
        one->is_told = true;
        endpoint_elicited(of->endpoint, upstream_name(of->call.upstream), message->params,
                          of->request->session);
        err = mcp_request_ask(of->request, method->id, buf_view(&params), client_answered, one,
                              endpoint_now_ms(of->endpoint));
        if (err != BAY_OK) {
            input_request_free(one);
        }
    } else if (err == BAY_OK) {
        err = BAY_ERR_NOMEM;
    }
    buf_fini(&params);
    return err;
}

/* ---- a question arrives ---------------------------------------------------------------------- */

/* What it declared first, and declares now: each request of the stateless revision speaks for
 * itself. */
static unsigned inputs_of(const route *of)
{
    const mcp_request *request = of->request;
    unsigned first = of->call.affinity.inputs;
    return request == NULL ? first
                           : first & mcp_inputs_of(request->revision, request->client_capabilities);
}

bool input_request_is_beyond(unsigned has, const rpc_message *message, int *out_code,
                             const char **out_text)
{
    unsigned needed = mcp_inputs_needed(message->method, message->params);
    if (needed != 0 && (needed & ~has) == 0) {
        return false;
    }
    unsigned modes = MCP_INPUT_FORM | MCP_INPUT_URL;
    bool is_mode = (needed & modes) != 0 && (has & modes) != 0;
    bool is_tools = (needed & MCP_INPUT_SAMPLING_TOOLS) != 0 && (has & MCP_INPUT_SAMPLING) != 0;
    /* mcp 2025-11-25 client/elicitation, Error Handling */
    *out_code = needed == 0 || is_mode || is_tools ? RPC_INVALID_PARAMS : RPC_METHOD_NOT_FOUND;
    *out_text = needed == 0 ? "what is asked for is not known"
                : is_mode  ? "the client behind this call has not declared this mode of elicitation"
                : is_tools ? "the client behind this call has not declared sampling with tools"
                           : "the client behind this call has not declared the capability";
    return true;
}

static bool is_full(const route *of, json_val params)
{
    size_t more = params_bytes(params);
    return of->input_request_count >= INPUT_REQUESTS_PER_CALL ||
           more > INPUT_REQUESTS_CALL_BYTES - of->input_request_bytes ||
           of->endpoint->suspended.bytes + more > SUSPENDED_MAX_BYTES;
}

void input_requests_asked(route *of, const rpc_message *message)
{
    int code = RPC_INTERNAL_ERROR;
    const char *text = NULL;
    const mcp_method *method =
        mcp_method_find(message->method, MCP_LATEST_LEGACY, MCP_SENDER_SERVER);
    of->call.is_repeatable = false; /* nobody is asked the same twice for one call */
    if (method == NULL || input_request_is_beyond(inputs_of(of), message, &code, &text)) {
        text = text != NULL ? text : "it is no question";
    } else if (message->id.len > RPC_MAX_ID_BYTES || is_full(of, message->params)) {
        text = "too much is asked at once";
    } else if (of->suspended != NULL) {
        input_request *one = input_request_new(of, method, message->id, message->params);
        text = one != NULL ? NULL : "out of memory";
        if (one != NULL && of->request != NULL) {
            suspended_call_ask(of->suspended);
        }
    } else {
        bay_err err = ask_legacy(of, method, message);
        text = err == BAY_OK ? NULL : err == BAY_ERR_NOMEM ? "out of memory" : "the client is gone";
    }
    if (text != NULL) {
        (void)route_reply(of, message->id, JSON_NONE, code, str_of(text));
    }
}

void input_requests_withdrawn(route *of, bay_str id)
{
    LIST_EACH(at, &of->input_requests)
    {
        input_request *one = CONTAINER_OF(at, input_request, link);
        if (str_eq(one->id, id)) {
            if (of->suspended == NULL) {
                mcp_request_withdraw(of->request, one, STR("The server took it back"));
            }
            input_request_free(one);
            return;
        }
    }
}

#include "endpoint/client_session.h"

#include "base/mem.h"
#include "base/str.h"
#include "endpoint/endpoint_parts.h"

/* A question that is put to a session outside of any call, until it is answered. Its upstream may
 * go meanwhile: it is looked at only while the endpoint shows it. */
typedef struct client_question {
    list_link link; /* in endpoint.client_questions */
    endpoint *endpoint;
    upstream *from;
    uint64_t number; /* the upstream's */
    const mcp_method *method;
    const mcp_revision *revision; /* of the session */
} client_question;

static void client_question_free(client_question *self)
{
    list_remove(&self->link);
    mem_free(self);
}

/* ---- notifications --------------------------------------------------------------------------- */

static mcp_change change_of(mcp_method_id method)
{
    return method == MCP_N_TOOLS_CHANGED     ? MCP_CHANGE_TOOLS
           : method == MCP_N_PROMPTS_CHANGED ? MCP_CHANGE_PROMPTS
                                             : MCP_CHANGE_RESOURCES;
}

void endpoint_client_told(endpoint *self, const upstream *from, const upstream_client_message *what)
{
    mcp_session *session = endpoint_session_find(self, what->identity);
    if (session == NULL) {
        return;
    }
    switch (what->method) {
    case MCP_N_MESSAGE:
        mcp_session_log(session, route_level_of(what->params), json_raw(what->params));
        return;
    case MCP_N_RESOURCE_UPDATED:
        if (endpoint_shows_resource(self, session, what->uri)) {
            mcp_session_resource_updated(session, what->uri);
        }
        return;
    default:
        break;
    }
    bool is_same = what->method == MCP_N_TOOLS_CHANGED && self->is_searched; /* the meta tools */
    if (!own_lists_announced(self, session, from, change_of(what->method)) && !is_same) {
        mcp_session_notify(session, what->method, (bay_str){NULL, 0});
    }
}

/* ---- questions ------------------------------------------------------------------------------- */

static void client_answered(void *user, bay_err err, const rpc_message *response)
{
    client_question *one = user;
    client_question was = *one;
    input_answer answer;
    client_question_free(one);
    if (err == BAY_ERR_CANCELLED || !endpoint_has_server(was.endpoint, was.from)) {
        return;
    }
    input_answer_init(&answer, err, response, was.method, was.revision);
    upstream_client_answer(was.from, was.number, json_raw(answer.result), answer.code,
                           answer.message);
    input_answer_fini(&answer);
}

static bay_err question_ask(endpoint *self, mcp_session *session, client_question *one,
                            json_val asked)
{
    buf params;
    json_writer writer;
    buf_init(&params, 2 * INPUT_REQUESTS_CALL_BYTES);
    json_writer_init(&writer, &params);
    input_request_write_params(&writer, one->method->text, asked, one->revision);
    bay_err err = params.err;
    if (err == BAY_OK) {
        endpoint_elicited(self, upstream_name(one->from), asked, session);
        err = mcp_session_ask(session, one->method->id, buf_view(&params), client_answered, one,
                              endpoint_now_ms(self));
    }
    buf_fini(&params);
    return err;
}

bool endpoint_client_asked(endpoint *self, upstream *from, bay_str identity, uint64_t number,
                           const rpc_message *request)
{
    mcp_session *session = endpoint_session_find(self, identity);
    const mcp_method *method =
        mcp_method_find(request->method, MCP_LATEST_LEGACY, MCP_SENDER_SERVER);
    int code;
    const char *text;
    if (session == NULL || method == NULL || !endpoint_has_server(self, from) ||
        json_raw(request->params).len > INPUT_REQUESTS_CALL_BYTES) {
        return false;
    }
    if (input_request_is_beyond(mcp_session_inputs(session), request, &code, &text)) {
        upstream_client_answer(from, number, (bay_str){NULL, 0}, code, str_of(text));
        return true;
    }
    client_question *one = mem_alloc(sizeof(*one));
    if (one == NULL) {
        return false;
    }
    *one = (client_question){.endpoint = self,
                             .from = from,
                             .number = number,
                             .method = method,
                             .revision = mcp_session_revision(session)};
    list_push(&self->client_questions, &one->link);
    if (question_ask(self, session, one, request->params) != BAY_OK) {
        client_question_free(one);
        return false;
    }
    return true;
}

void endpoint_client_withdrawn(endpoint *self, const upstream *from, uint64_t number)
{
    LIST_EACH(at, &self->client_questions)
    {
        client_question *one = CONTAINER_OF(at, client_question, link);
        if (one->from == from && one->number == number) {
            mcp_server_withdraw(self->engine, one, STR("The server took it back"));
            client_question_free(one);
            return;
        }
    }
}

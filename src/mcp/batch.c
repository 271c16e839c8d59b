/* Batches, which only 2025-03-26 has: the messages of an array, each handled by itself; one channel
 * collects their answers. */
#include "base/check.h"
#include "mcp/server_internal.h"

bay_err batch_check(const request *read)
{
    size_t count = json_count(read->shown.message.root);
    if (count == 0) {
        return BAY_ERR_PROTOCOL;
    }
    return count > BATCH_MAX ? BAY_ERR_LIMIT : BAY_OK;
}

static void batch_refuse(response_channel *through, mcp_server *server, bay_str id, int code,
                         const char *text)
{
    buf *out = server_out(server);
    rpc_write_error(out, id, code, str_of(text), STR(""));
    if (out->err == BAY_OK) {
        response_channel_answer(through, 400, STR(""), out);
    }
}

static void receive_one(mcp_server *server, bay_str text, mcp_session *session,
                        response_channel *through)
{
    rpc_fault fault = {0};
    request *one;
    bay_err err = request_read(server, text, &one, &fault);
    if (err == BAY_ERR_NOMEM) {
        batch_refuse(through, server, STR("null"), RPC_INTERNAL_ERROR, "Out of memory");
        return;
    }
    if (err == BAY_ERR_UNSUPPORTED) {
        request_discard(one);
        batch_refuse(through, server, STR("null"), RPC_INVALID_REQUEST, "A batch holds no batches");
        return;
    }
    if (err != BAY_OK) {
        batch_refuse(through, server, fault.id, fault.code, fault.text);
        return;
    }
    bool is_request = one->shown.message.kind == RPC_REQUEST;
    bool is_initialize = is_request && str_eq(one->shown.message.method, STR("initialize"));
    err = request_read_envelope(one);
    if (err != BAY_OK || is_initialize || modern_is_marked(one)) {
        if (is_request) {
            batch_refuse(through, server, one->shown.message.id, RPC_INVALID_REQUEST,
                         is_initialize ? "initialize must not be part of a batch"
                                       : "This message cannot be part of a batch");
        }
        request_discard(one);
        return;
    }
    one->shown.principal = principal_ref(session->principal);
    legacy_message(one, session, through);
}

void batch_receive(request *read, mcp_session *session, response_channel *through)
{
    mcp_server *server = read->shown.server;
    json_iter it = json_iter_of(read->shown.message.root);
    while (json_next(&it)) {
        if (through->connection != NULL && through->connection->session != session) {
            break; /* the connection was closed during the batch */
        }
        receive_one(server, json_raw(it.value), session, through);
    }
    request_discard(read);
    response_channel_detach(through);
}

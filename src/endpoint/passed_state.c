/* The requestState of a server of the stateless revision, on its way through the gateway. To such a
 * server all callers are the gateway, so it cannot tell whose state comes back. The gateway does:
 * it writes a seal in front of the state, "ps.SEAL.STATE", which holds for this state, endpoint,
 * server and principal alone, and takes it away from what comes back. An anonymous caller's state
 * passes as it is: there is nobody that it could be bound to. */
#include <string.h>

#include "auth/digest.h"
#include "base/str.h"
#include "endpoint/endpoint_parts.h"
#include "json/build.h"

enum {
    ASSOCIATED_BYTES = PRINCIPAL_IDENTITY_BYTES + 8192,
    SEAL_BYTES = 1024,          /* of nothing: a key's name, a nonce, an expiry, a tag */
    REWRITTEN_BYTES = 64 << 20, /* of params or a result with the state replaced */
};

static const bay_str prefix = STR_INIT("ps.");
static const bay_str member = STR_INIT("requestState");

static bool has_caller(const mcp_request *request)
{
    return request->revision->era == MCP_MODERN && request->principal != NULL &&
           request->method != NULL && (request->method->flags & MCP_FLAG_MRTR) != 0;
}

/* What the seal of this state holds for. */
static bay_err write_associated(const endpoint *of, const mcp_request *request, bay_str server,
                                bay_str state, buf *out)
{
    char digest[DIGEST_TEXT_BYTES + 1];
    bay_err err = digest_sha256(state, digest);
    buf_lit(out, "passed");
    buf_char(out, '\0');
    buf_str(out, str_of(of->only));
    buf_char(out, '\0');
    buf_str(out, str_of(of->profile));
    buf_char(out, '\0');
    buf_str(out, server);
    buf_char(out, '\0');
    buf_str(out, err == BAY_OK ? (bay_str){digest, DIGEST_TEXT_BYTES} : STR(""));
    buf_str(out, principal_binding(request->principal));
    return err == BAY_OK ? out->err : err;
}

/* ---- to the client --------------------------------------------------------------------------- */

static bay_err write_sealed(const endpoint *of, const mcp_request *request, bay_str server,
                            bay_str state, buf *out)
{
    buf associated;
    buf_init(&associated, ASSOCIATED_BYTES);
    bay_err err = of->ring != NULL ? write_associated(of, request, server, state, &associated)
                                   : BAY_ERR_UNSUPPORTED;
    buf_str(out, prefix);
    if (err == BAY_OK) {
        err = seal_value(of->ring, STR(""), buf_view(&associated), 0, out);
    }
    buf_char(out, '.');
    buf_str(out, state);
    buf_fini(&associated);
    return err == BAY_OK ? out->err : err;
}

/* The object with this text as its requestState, in the request's memory. */
static bay_err with_state(json_val object, bay_str state, arena *memory, json_val *out)
{
    json_builder made;
    json_writer *writer = json_builder_init(&made, memory, REWRITTEN_BYTES);
    json_open_object(writer);
    json_put_members(writer, object, &member, 1);
    json_key(writer, member);
    json_put_str(writer, state);
    json_close_object(writer);
    return json_builder_end(&made, out);
}

bool passed_state_answer(const endpoint *of, mcp_request *request, bay_str server, json_val result)
{
    json_val given = json_get(result, member);
    bay_str state;
    json_val bound;
    buf sealed;
    if (!json_is(given, JSON_STRING) || !has_caller(request) ||
        !json_str_eq(json_get(result, STR("resultType")), STR("input_required"))) {
        return false;
    }
    bay_err err = json_str(given, request->memory, &state);
    buf_init(&sealed, err == BAY_OK ? state.len + SEAL_BYTES : SEAL_BYTES);
    err = err == BAY_OK ? write_sealed(of, request, server, state, &sealed) : err;
    err = err == BAY_OK ? with_state(result, buf_view(&sealed), request->memory, &bound) : err;
    buf_fini(&sealed);
    if (err == BAY_OK) {
        mcp_request_result(request, bound);
    } else if (err == BAY_ERR_NOMEM) {
        endpoint_refuse_memory(request);
    } else { /* what cannot be bound to its caller is not given away */
        route_refuse(request, server, "input_not_available", RPC_INTERNAL_ERROR,
                     STR("The server asks for input, and its state cannot be sealed for this "
                         "caller"),
                     true);
    }
    return true;
}

/* ---- from the client ------------------------------------------------------------------------- */

/* The server's own state in what came; BAY_ERR_DENIED: it was not given to this caller. */
static bay_err open_sealed(const endpoint *of, const mcp_request *request, bay_str server,
                           bay_str text, bay_str *out)
{
    bay_str rest = str_from(text, str_starts(text, prefix) ? prefix.len : text.len);
    size_t dot = str_find(rest, '.');
    if (of->ring == NULL || dot == rest.len) {
        return BAY_ERR_DENIED;
    }
    buf associated;
    buf plain;
    bay_str state = str_from(rest, dot + 1);
    buf_init(&associated, ASSOCIATED_BYTES);
    buf_init(&plain, 1);
    bay_err err = write_associated(of, request, server, state, &associated);
    if (err == BAY_OK) {
        err =
            seal_open(of->ring, str_head(rest, dot), buf_view(&associated), loop_time_ms(), &plain);
    }
    buf_fini(&plain);
    buf_fini(&associated);
    *out = state;
    return err;
}

bool passed_state_refuses(route *self, const upstream *to)
{
    mcp_request *request = self->request;
    json_val given = json_get(self->call.spec.params, member);
    bay_str text;
    bay_str state;
    if (request == NULL || json_is(given, JSON_MISSING) || !has_caller(request)) {
        return false;
    }
    bay_err err =
        json_is(given, JSON_STRING) ? json_str(given, request->memory, &text) : BAY_ERR_DENIED;
    err =
        err == BAY_OK ? open_sealed(self->endpoint, request, upstream_name(to), text, &state) : err;
    if (err == BAY_OK) {
        err = with_state(self->call.spec.params, state, request->memory, &self->call.spec.params);
    }
    if (err == BAY_OK) {
        return false;
    }
    route_end(self);
    if (err == BAY_ERR_NOMEM) {
        endpoint_refuse_memory(request);
    } else {
        route_refuse_state(request);
    }
    return true;
}

/* The rules of the stateless revision: all that a request needs is in its _meta, and over HTTP the
 * header fields must agree. The checks have the specification's order: a client that detects the
 * kind of server depends on which error comes first. */
#include "base/check.h"
#include "mcp/http_head.h"
#include "mcp/result_adapt.h"
#include "mcp/server_internal.h"
#include "mcp/subscription.h"
#include "wire/header.h"
#include "wire/http1.h"

bool modern_is_marked(const request *self)
{
    return !json_is(self->envelope.version, JSON_MISSING);
}

static bool mismatch(request *self, const char *text)
{
    request_refuse(self, 400, MCP_HEADER_MISMATCH, text, STR(""));
    return false;
}

static bool invalid(request *self, const char *text)
{
    request_refuse(self, 400, RPC_INVALID_PARAMS, text, STR(""));
    return false;
}

static bool out_of_memory(request *self)
{
    request_refuse(self, 503, RPC_INTERNAL_ERROR, "Out of memory", STR(""));
    return false;
}

/* `code` with the versions that _meta may have, which is all that a client of another era can
 * learn. `requested` raw or empty. */
static bool refuse_version(request *self, int code, const char *text, bay_str requested)
{
    mcp_server *server = self->shown.server;
    buf data;
    buf_init(&data, 64 * 1024);
    buf_lit(&data, "{\"supported\":");
    buf_str(&data, server->modern_list);
    if (requested.len > 0) {
        buf_lit(&data, ",\"requested\":");
        buf_str(&data, requested);
    }
    buf_char(&data, '}');
    bay_str raw = data.err == BAY_OK ? buf_view(&data) : STR("");
    request_refuse(self, 400, code, text, raw);
    buf_fini(&data);
    return false;
}

/* Version and capabilities: the header is present, _meta is complete, both agree, the version is
 * served. */
static bool check_version(request *self, const http_head *http)
{
    const envelope *says = &self->envelope;
    bay_str header = STR("");
    if (!modern_is_marked(self) && str_eq(self->shown.message.method, STR("initialize")) &&
        !server_has_legacy(self->shown.server)) {
        /* mcp 2026-07-28 basic/versioning: name the versions in any error to initialize. */
        json_val wanted = json_get(self->shown.message.params, STR("protocolVersion"));
        bay_str raw = json_is(wanted, JSON_STRING) ? json_raw(wanted) : STR("\"\"");
        return refuse_version(self, http != NULL ? MCP_HEADER_MISMATCH : MCP_UNSUPPORTED_VERSION,
                              "This server has no initialize: it wants " MCP_META_VERSION
                              " in the _meta of each request",
                              raw.len <= RPC_MAX_ID_BYTES ? raw : STR("\"\""));
    }
    if (http != NULL) {
        size_t count = http->count[HEAD_VERSION];
        if (count != 1) {
            return mismatch(self, count == 0 ? "The MCP-Protocol-Version header is missing"
                                             : "The MCP-Protocol-Version header stands twice");
        }
        header = http->at[HEAD_VERSION];
    }
    if (!json_is(says->version, JSON_STRING)) {
        return invalid(self, "_meta needs " MCP_META_VERSION);
    }
    if (!json_is(says->client_capabilities, JSON_OBJECT)) {
        return invalid(self, "_meta needs " MCP_META_CLIENT_CAPABILITIES);
    }
    if (http != NULL && !json_str_eq(says->version, header)) {
        return mismatch(self, "The MCP-Protocol-Version header differs from _meta");
    }
    for (size_t i = MCP_REVISION_COUNT; i-- > 0;) {
        const mcp_revision *revision = mcp_revision_of((mcp_revision_id)i);
        if (revision->era == MCP_MODERN && json_str_eq(says->version, revision->text) &&
            server_offers(self->shown.server, revision->id)) {
            self->shown.revision = revision;
            return true;
        }
    }
    bay_str raw = json_raw(says->version);
    return refuse_version(self, MCP_UNSUPPORTED_VERSION, "Unsupported protocol version",
                          raw.len <= RPC_MAX_ID_BYTES ? raw : STR(""));
}

static bool check_meta(request *self)
{
    const envelope *says = &self->envelope;
    if (!json_is(says->client_info, JSON_MISSING) && !json_is(says->client_info, JSON_OBJECT)) {
        return invalid(self, MCP_META_CLIENT_INFO " is not an object");
    }
    self->shown.client_info = says->client_info;
    self->shown.client_capabilities = says->client_capabilities;
    if (json_is(says->log_level, JSON_MISSING)) {
        return true;
    }
    bay_str level;
    if (json_str(says->log_level, self->shown.memory, &level) != BAY_OK ||
        !mcp_log_level_find(level, &self->shown.log_level)) {
        return invalid(self, MCP_META_LOG_LEVEL " is not a log level");
    }
    return true;
}

static bool check_method_header(request *self, const http_head *http)
{
    size_t count = http->count[HEAD_METHOD];
    if (count != 1) {
        return mismatch(self, count == 0 ? "The Mcp-Method header is missing"
                                         : "The Mcp-Method header stands twice");
    }
    if (!str_eq(http->at[HEAD_METHOD], self->shown.message.method)) {
        return mismatch(self, "The Mcp-Method header differs from the method");
    }
    return true;
}

static bool check_method(request *self)
{
    const mcp_revision *revision = self->shown.revision;
    self->shown.method =
        mcp_method_find(self->shown.message.method, revision->id, MCP_SENDER_CLIENT);
    const mcp_method *method = self->shown.method;
    if (method == NULL || method->is_notification) {
        return true; /* the service may have it */
    }
    const declared *has = server_declared(self->shown.server, revision);
    if (has == NULL) {
        return out_of_memory(self);
    }
    if ((has->methods >> method->id & 1) == 0) {
        request_refuse(self, 404, RPC_METHOD_NOT_FOUND,
                       "The server has not declared the capability for this method", STR(""));
        return false;
    }
    return true;
}

/* Whether the decoded header equals the decoded name. */
static bool name_matches(request *self, bay_str field)
{
    if (str_eq(field, self->shown.name) && header_value_is_plain(field) &&
        !str_starts(field, STR("=?base64?"))) {
        return true;
    }
    buf decoded;
    buf_init(&decoded, field.len + 1);
    bay_err err = header_value_decode(&decoded, field);
    bool is_match = err == BAY_OK && str_eq(buf_view(&decoded), self->shown.name);
    buf_fini(&decoded);
    return is_match;
}

static bool check_name(request *self, const http_head *http)
{
    const mcp_method *method = self->shown.method;
    if (method == NULL || method->name_field.len == 0) {
        return true;
    }
    if (http != NULL && http->count[HEAD_NAME] != 1) {
        return mismatch(self, http->count[HEAD_NAME] == 0 ? "The Mcp-Name header is missing"
                                                          : "The Mcp-Name header stands twice");
    }
    bay_err err = request_read_name(self);
    if (err == BAY_ERR_NOMEM) {
        return out_of_memory(self);
    }
    if (err != BAY_OK) {
        return invalid(self, request_name_fault(method));
    }
    if (http != NULL && !name_matches(self, http->at[HEAD_NAME])) {
        return mismatch(self, "The Mcp-Name header differs from the body");
    }
    return true;
}

/* ---- Mcp-Param fields */

const mcp_param_table mcp_params_pending = {0};

static bool params_match(request *self, const http_field *fields, size_t field_count,
                         const mcp_param_table *table)
{
    json_val arguments = json_get(self->shown.message.params, STR("arguments"));
    for (size_t i = 0; i < table->count; i++) {
        buf name;
        buf_init(&name, 4096);
        buf_lit(&name, MCP_PARAM_PREFIX);
        buf_str(&name, table->params[i].header);
        if (name.err != BAY_OK) {
            buf_fini(&name);
            return out_of_memory(self);
        }
        size_t count = http1_field_count(fields, field_count, buf_view(&name));
        bay_str field = http1_field_find(fields, field_count, buf_view(&name));
        buf_fini(&name);
        if (count > 1 ||
            !mcp_param_matches(&table->params[i], arguments, field, self->shown.memory)) {
            return mismatch(self, count > 1 ? "An Mcp-Param header stands twice"
                                            : "An Mcp-Param header is missing or differs from "
                                              "the arguments");
        }
    }
    return true;
}

static bool is_param(bay_str name)
{
    bay_str prefix = STR(MCP_PARAM_PREFIX);
    return str_eq_nocase(str_head(name, prefix.len), prefix);
}

/* The transport frees the fields before the tool is known. */
static bool keep_params(request *self, const mcp_http_request *from)
{
    arena *memory = self->shown.memory;
    kept_params *kept = arena_zalloc(memory, sizeof(*kept));
    size_t count = 0;
    for (size_t i = 0; i < from->field_count; i++) {
        count += is_param(from->fields[i].name);
    }
    if (kept != NULL && count > 0) {
        kept->at = arena_array(memory, count, sizeof(*kept->at));
    }
    if (kept == NULL || (count > 0 && kept->at == NULL)) {
        return out_of_memory(self);
    }
    for (size_t i = 0; i < from->field_count; i++) {
        const http_field *field = &from->fields[i];
        if (!is_param(field->name)) {
            continue;
        }
        if (arena_dup(memory, field->name, &kept->at[kept->count].name) != BAY_OK ||
            arena_dup(memory, field->value, &kept->at[kept->count].value) != BAY_OK) {
            return out_of_memory(self);
        }
        kept->count++;
    }
    self->params = kept;
    return true;
}

bool mcp_request_check_params(mcp_request *shown, const mcp_param_table *table)
{
    request *self = request_of(shown);
    const kept_params *kept = self->params;
    self->params = NULL;
    return kept == NULL || params_match(self, kept->at, kept->count, table);
}

static bool check_params(request *self, const http_head *http)
{
    mcp_server *server = self->shown.server;
    const mcp_method *method = self->shown.method;
    if (method == NULL || method->id != MCP_TOOLS_CALL || server->service->param_table == NULL) {
        return true;
    }
    const mcp_param_table *table = server->service->param_table(server->user, self->shown.name);
    if (table == &mcp_params_pending) {
        return keep_params(self, http->request);
    }
    return table == NULL || table->count == 0 ||
           params_match(self, http->request->fields, http->request->field_count, table);
}

/* ---- the request */

static void discover(request *self)
{
    mcp_server *server = self->shown.server;
    buf members;
    buf_init(&members, server->out.max);
    buf_lit(&members, "\"supportedVersions\":");
    buf_str(&members, server->modern_list);
    buf_lit(&members, ",\"capabilities\":");
    json_writer writer;
    json_writer_init(&writer, &members);
    server_write_capabilities(server, self->shown.revision, &writer);
    server_write_instructions(server, &self->shown, &members);
    if (members.err != BAY_OK) {
        (void)out_of_memory(self);
    } else {
        mcp_request_result_members(&self->shown, buf_view(&members));
    }
    buf_fini(&members);
}

void modern_request(request *self, const http_head *http)
{
    self->shown.revision =
        mcp_revision_of(MCP_LATEST); /* until it is known: errors are adapted to it */
    if (!check_version(self, http) || !check_meta(self) ||
        (http != NULL && !check_method_header(self, http)) || !check_method(self) ||
        !check_name(self, http) || (http != NULL && !check_params(self, http))) {
        return;
    }
    const mcp_method *method = self->shown.method;
    if (method != NULL && method->id == MCP_DISCOVER) {
        discover(self);
    } else if (method != NULL && method->id == MCP_LISTEN) {
        listen_open(self);
    } else {
        request_dispatch(self);
    }
}

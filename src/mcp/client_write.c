/* Output: stores the parts of a call, writes them as one message for the current revision, and adds
 * header fields. Nothing of the caller's is re-serialised: only the engine's own `_meta` keys and
 * the renamed member are written anew. */
#include "base/err.h"
#include "base/log.h"
#include "mcp/client_internal.h"
#include "wire/header.h"
#include "wire/via.h"

/* The per-request keys of `_meta` that belong to the connection between this engine and the server.
 * The last one is a header field over HTTP, and copied unchanged on other links. */
static const bay_str owned_meta[] = {
    STR_INIT("progressToken"),      STR_INIT(MCP_META_VERSION),
    STR_INIT(MCP_META_CLIENT_INFO), STR_INIT(MCP_META_CLIENT_CAPABILITIES),
    STR_INIT(MCP_META_LOG_LEVEL),   STR_INIT(MCP_META_VIA)};

static size_t owned_count(const mcp_client *self)
{
    return ARRAY_LEN(owned_meta) - (self->kind == MCP_LINK_HTTP ? 0 : 1);
}

/* ---- keeping --------------------------------------------------------------------------------- */

bay_str mcp_call_kept_part(const mcp_call *call, int part)
{
    size_t at = 0;
    for (int i = 0; i < part; i++) {
        at += call->kept.len[i];
    }
    return (bay_str){call->kept.bytes.at + at, call->kept.len[part]};
}

static bay_err kept_fields(call_kept *kept, const mcp_call_spec *spec, arena *memory)
{
    json_val arguments = json_get(spec->params, STR("arguments"));
    for (size_t i = 0; i < spec->param_table->count; i++) {
        const mcp_param *param = &spec->param_table->params[i];
        bay_str value = {0};
        bay_err err = mcp_param_value(param, arguments, memory, &value);
        if (err != BAY_OK) {
            return err;
        }
        if (value.at == NULL || kept->field_count >= MCP_MAX_PARAM_HEADERS) {
            continue;
        }
        buf_lit(&kept->bytes, MCP_PARAM_PREFIX);
        buf_str(&kept->bytes, param->header);
        buf_char(&kept->bytes, '\0');
        buf_str(&kept->bytes, value);
        buf_char(&kept->bytes, '\0');
        kept->field_count++;
    }
    return BAY_OK;
}

bay_err mcp_call_keep(call_kept *kept, const mcp_call_spec *spec, bool wants_fields, arena *memory)
{
    bay_str parts[] = {[KEPT_METHOD] = spec->method,
                       [KEPT_PARAMS] = json_raw(spec->params),
                       [KEPT_RENAME] = spec->rename,
                       [KEPT_META] = json_raw(spec->meta),
                       [KEPT_CAPABILITIES] = spec->capabilities,
                       [KEPT_CLIENT_INFO] = spec->client_info};
    buf_clear(&kept->bytes);
    kept->field_count = 0;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        kept->len[i] = parts[i].len;
        buf_str(&kept->bytes, parts[i]);
    }
    if (wants_fields && spec->param_table != NULL) {
        bay_err err = kept_fields(kept, spec, memory);
        if (err != BAY_OK) {
            return err;
        }
    }
    return kept->bytes.err;
}

/* ---- splicing -------------------------------------------------------------------------------- */

static void write_modern_meta(json_writer *out, const mcp_call *call, const mcp_revision *revision)
{
    const mcp_client *self = call->client;
    bay_str capabilities = mcp_call_kept_part(call, KEPT_CAPABILITIES);
    bay_str client_info = mcp_call_kept_part(call, KEPT_CLIENT_INFO);
    json_key_lit(out, MCP_META_VERSION);
    json_put_str(out, revision->text);
    json_key_lit(out, MCP_META_CLIENT_INFO);
    json_put_raw(out, client_info.len > 0 ? client_info : buf_view(&self->client_info));
    json_key_lit(out, MCP_META_CLIENT_CAPABILITIES);
    json_put_raw(out, capabilities.len > 0 ? capabilities : buf_view(&self->capabilities));
    mcp_log_level level = call->log_level < self->level ? call->log_level : self->level;
    if (call->purpose == CALL_USER && level != MCP_LOG_NONE) {
        json_key_lit(out, MCP_META_LOG_LEVEL);
        json_put_str(out, mcp_log_level_text(level));
    }
}

static bool meta_has_others(json_val meta, size_t owned)
{
    json_iter iter = json_iter_of(meta);
    while (json_next(&iter)) {
        bool is_owned = false;
        for (size_t i = 0; i < owned; i++) {
            is_owned = is_owned || json_str_eq(iter.key, owned_meta[i]);
        }
        if (!is_owned) {
            return true;
        }
    }
    return false;
}

static void write_params(json_writer *out, const mcp_call *call, const mcp_revision *revision,
                         json_val params, json_val meta)
{
    bool is_modern = revision->era == MCP_MODERN;
    bay_str rename = mcp_call_kept_part(call, KEPT_RENAME);
    bay_str name_field = call->method != NULL ? call->method->name_field : (bay_str){0};
    bool is_renamed = rename.len > 0 && name_field.len > 0;
    size_t owned = owned_count(call->client);
    bool has_meta = is_modern || call->wants_progress || meta_has_others(meta, owned);
    if (!has_meta && !is_renamed && json_kind_of(params) == JSON_MISSING) {
        return;
    }
    bay_str except[4] = {STR_INIT("_meta")};
    size_t excepted = 1;
    if (is_renamed) {
        except[excepted++] = name_field;
    }
    if (!is_modern) {
        /* the members of a stateless retry have no meaning in a session */
        except[excepted++] = STR("inputResponses");
        except[excepted++] = STR("requestState");
    }
    json_key_lit(out, "params");
    json_open_object(out);
    if (is_renamed) {
        json_key(out, name_field);
        json_put_str(out, rename);
    }
    json_put_members(out, params, except, excepted);
    if (has_meta) {
        json_key_lit(out, "_meta");
        json_open_object(out);
        if (is_modern) {
            write_modern_meta(out, call, revision);
        }
        if (call->wants_progress) {
            json_key_lit(out, "progressToken");
            json_put_uint(out, call->id);
        }
        json_put_members(out, meta, owned_meta, owned);
        json_close_object(out);
    }
    json_close_object(out);
}

static void write_request(buf *message, const mcp_call *call, const mcp_revision *revision,
                          json_val params, json_val meta)
{
    json_writer out;
    json_writer_init(&out, message);
    json_open_object(&out);
    json_key_lit(&out, "jsonrpc");
    json_put_raw(&out, STR("\"2.0\""));
    json_key_lit(&out, "id");
    json_put_uint(&out, call->id);
    json_key_lit(&out, "method");
    json_put_str(&out, mcp_call_kept_part(call, KEPT_METHOD));
    write_params(&out, call, revision, params, meta);
    json_close_object(&out);
}

/* ---- header fields --------------------------------------------------------------------------- */

size_t mcp_client_legacy_fields(const mcp_client *self, bay_str event_id, mcp_field *out)
{
    size_t count = 0;
    if (self->kind != MCP_LINK_HTTP || self->revision == NULL) {
        return 0;
    }
    /* mcp 2025-06-18 basic/transports: the header exists since that revision */
    if (self->revision->id >= MCP_REV_2025_06_18) {
        out[count++] = (mcp_field){STR("MCP-Protocol-Version"), self->revision->text};
    }
    if (self->session.len > 0 && self->revision->era == MCP_LEGACY) {
        out[count++] = (mcp_field){STR("Mcp-Session-Id"), buf_view(&self->session)};
    }
    if (event_id.len > 0) {
        out[count++] = (mcp_field){STR("Last-Event-ID"), event_id};
    }
    return count;
}

/* mcp 2026-07-28 basic/transports/streamable-http: Standard Request Headers, Custom Headers */
static bay_err modern_fields(const mcp_call *call, const mcp_revision *revision, json_val params,
                             client_scratch *scratch, mcp_field *out, size_t *out_count)
{
    size_t count = 0;
    out[count++] = (mcp_field){STR("MCP-Protocol-Version"), revision->text};
    out[count++] = (mcp_field){STR("Mcp-Method"), mcp_call_kept_part(call, KEPT_METHOD)};
    bay_str name = mcp_call_kept_part(call, KEPT_RENAME);
    if (call->method != NULL && call->method->name_field.len > 0) {
        json_val member = json_get(params, call->method->name_field);
        if (name.len == 0 && json_is(member, JSON_STRING)) {
            bay_err err = json_str(member, &scratch->memory, &name);
            if (err != BAY_OK) {
                return err;
            }
        }
        if (name.len > 0 || json_is(member, JSON_STRING)) {
            header_value_encode(&scratch->name, name);
            if (scratch->name.err != BAY_OK) {
                return scratch->name.err;
            }
            out[count++] = (mcp_field){STR("Mcp-Name"), buf_view(&scratch->name)};
        }
    }
    size_t at = 0;
    for (size_t i = 0; i < ARRAY_LEN(call->kept.len); i++) {
        at += call->kept.len[i];
    }
    /* Name and value alternate, each followed by a NUL. */
    bay_str rest = str_from(buf_view(&call->kept.bytes), at);
    for (size_t i = 0; i < call->kept.field_count; i++) {
        bay_str header = str_head(rest, str_find(rest, '\0'));
        rest = str_from(rest, header.len + 1);
        bay_str value = str_head(rest, str_find(rest, '\0'));
        rest = str_from(rest, value.len + 1);
        out[count++] = (mcp_field){header, value};
    }
    *out_count = count;
    return BAY_OK;
}

/* RFC 9110 section 7.6.3: the received entries, and this gateway's */
static bay_err via_field(const mcp_client *self, json_val meta, client_scratch *scratch,
                         mcp_field *out, size_t *count)
{
    bay_str received = {"", 0};
    bay_str value = buf_view(&self->via);
    if (self->kind != MCP_LINK_HTTP || value.len == 0) {
        return BAY_OK;
    }
    if (json_str_plain(json_get(meta, STR(MCP_META_VIA)), &received) && via_is_fine(received)) {
        buf text;
        buf_init(&text, 2 * VIA_BYTES);
        buf_str(&text, received);
        buf_lit(&text, ", ");
        buf_str(&text, value);
        bay_err err =
            text.err == BAY_OK ? arena_dup(&scratch->memory, buf_view(&text), &value) : text.err;
        buf_fini(&text);
        if (err != BAY_OK) {
            return err;
        }
    }
    out[(*count)++] = (mcp_field){STR("Via"), value};
    return BAY_OK;
}

/* ---- sending --------------------------------------------------------------------------------- */

static bay_err parse_kept(const mcp_call *call, int part, json_doc *doc, arena *memory,
                          json_val *out)
{
    bay_str text = mcp_call_kept_part(call, part);
    if (text.len == 0) {
        return BAY_OK;
    }
    static const json_limits as_it_was = {SIZE_MAX, 128 | JSON_MARK_DEPTH, UINT32_MAX};
    bay_err err = json_parse(doc, text, &as_it_was, memory, NULL);
    if (err == BAY_OK) {
        *out = json_root(doc);
    }
    return err;
}

static bay_err send_on_scratch(mcp_call *call, const mcp_revision *revision, json_val params,
                               json_val meta, client_scratch *scratch)
{
    mcp_client *self = call->client;
    json_doc params_doc, meta_doc;
    bay_err err = BAY_OK;
    if (json_kind_of(params) == JSON_MISSING) {
        err = parse_kept(call, KEPT_PARAMS, &params_doc, &scratch->memory, &params);
    }
    if (err == BAY_OK && json_kind_of(meta) == JSON_MISSING) {
        err = parse_kept(call, KEPT_META, &meta_doc, &scratch->memory, &meta);
    }
    if (err != BAY_OK) {
        return err;
    }
    write_request(&scratch->message, call, revision, params, meta);
    if (scratch->message.err != BAY_OK) {
        return scratch->message.err;
    }
    mcp_field fields[MCP_MAX_FIELDS];
    size_t count = 0;
    if (self->kind == MCP_LINK_HTTP && revision->era == MCP_MODERN) {
        err = modern_fields(call, revision, params, scratch, fields, &count);
        if (err != BAY_OK) {
            return err;
        }
    } else if (self->kind == MCP_LINK_HTTP && call->purpose != CALL_INITIALIZE) {
        count = mcp_client_legacy_fields(self, (bay_str){0}, fields);
        call->used_session = self->session.len > 0;
    }
    err = via_field(self, meta, scratch, fields, &count);
    if (err != BAY_OK) {
        return err;
    }
    call->session_serial = self->session_serial;
    mcp_client_trace(self, true, buf_view(&scratch->message), fields, count);
    uint32_t bound =
        call->purpose == CALL_USER ? (uint32_t)(call->end_ms - self->now_ms) : call->timeout_ms;
    self->sends_for = call->principal;
    err = self->ops.send(self->link, call->exchange, buf_view(&scratch->message), fields, count,
                         call->purpose == CALL_LISTEN ? 0 : bound);
    self->sends_for = NULL;
    if (err == BAY_ERR_AGAIN) {
        self->is_clogged = self->kind != MCP_LINK_HTTP;
        err = BAY_OK;
    }
    return err;
}

bay_err mcp_call_send(mcp_call *call, const mcp_revision *revision, json_val params, json_val meta)
{
    mcp_client *self = call->client;
    client_scratch scratch = mcp_client_scratch_take(self, &self->send_scratch);
    bay_err err = send_on_scratch(call, revision, params, meta, &scratch);
    mcp_client_scratch_put(&self->send_scratch, &scratch);
    return err;
}

bay_err mcp_client_post(mcp_client *self, bay_str message)
{
    if (self->is_dead || self->state == MCP_CLIENT_BROKEN) {
        return BAY_OK;
    }
    /* A peer that makes this engine send without reading it is disconnected. */
    if (self->is_clogged && ++self->clogged_count > CLIENT_MAX_CLOGGED) {
        mcp_client_break(self, BAY_ERR_LIMIT, "the server does not read what it asked for", false);
        return BAY_OK;
    }
    mcp_field fields[MCP_MAX_FIELDS];
    size_t count = mcp_client_legacy_fields(self, (bay_str){0}, fields);
    mcp_client_trace(self, true, message, fields, count);
    bay_err err = self->ops.send(self->link, 0, message, fields, count, self->call_timeout_ms);
    if (err == BAY_ERR_AGAIN) {
        self->is_clogged = self->kind != MCP_LINK_HTTP;
        return BAY_OK;
    }
    if (err != BAY_OK) {
        LOG(LOG_WARN, "mcp", "%s: a message could not be sent: %s", self->label, bay_err_text(err));
    }
    return err;
}

void mcp_client_notify(mcp_client *self, mcp_method_id method, bay_str params)
{
    client_scratch scratch = mcp_client_scratch_take(self, &self->send_scratch);
    rpc_write_notification(&scratch.message, mcp_method_of(method)->text, params);
    if (scratch.message.err == BAY_OK) {
        err_ignore(mcp_client_post(self, buf_view(&scratch.message)));
    }
    mcp_client_scratch_put(&self->send_scratch, &scratch);
}

void mcp_client_trace(mcp_client *self, bool is_outgoing, bay_str message, const mcp_field *fields,
                      size_t count)
{
    if (self->events.traced != NULL && !self->is_dead) {
        self->events.traced(self->user, is_outgoing, message, fields, count);
    }
}

const auth_principal *mcp_client_sends_for(const mcp_client *self)
{
    return self->sends_for;
}

/* A request on its way to the server that owns it, and the answer's way back. The bytes of both are
 * spliced by the engines; here only names, eras and failures are looked at. */
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "gateway/face_parts.h"

static void route_end(route *self)
{
    listing_unref(self->owner);
    self->owner = NULL;
    self->request->user = NULL;
}

/* Progress keeps all its members but the token, which becomes the client's own. */
static void pass_progress(route *self, json_val params)
{
    buf *members = &self->face->scratch;
    json_writer writer;
    double progress = 0;
    static const bay_str token = STR_INIT("progressToken");
    buf_clear(members);
    json_writer_init(&writer, members);
    json_open_object(&writer);
    json_put_members(&writer, params, &token, 1);
    json_close_object(&writer);
    if (members->err != BAY_OK || members->len < 2 ||
        json_double(json_get(params, STR("progress")), &progress) != BAY_OK) {
        return;
    }
    bay_str inner = {members->at + 1, members->len - 2};
    if (mcp_request_progress(self->request, progress, inner) == BAY_AGAIN) {
        upstream_call_pause(&self->call, true);
    }
}

static void route_notified(void *user, mcp_method_id method, json_val params)
{
    route *self = user;
    if (method == MCP_N_PROGRESS) {
        pass_progress(self, params);
    } else if (method == MCP_N_MESSAGE &&
               mcp_request_notify(self->request, MCP_N_MESSAGE, json_raw(params)) == BAY_AGAIN) {
        upstream_call_pause(&self->call, true);
    }
}

/* Machine-readable reasons of a failure on the way. */
static const char *reason_of(bay_err err)
{
    switch (err) {
    case BAY_TIMEOUT:
        return "timeout";
    case BAY_BUSY:
        return "busy";
    case BAY_LIMIT:
        return "result_too_large";
    case BAY_DENIED:
        return "denied_by_server";
    case BAY_UNSUPPORTED:
        return "not_supported_by_server";
    case BAY_PROTOCOL:
    case BAY_SYNTAX:
    case BAY_UTF8:
        return "invalid_answer";
    default:
        return "server_unavailable";
    }
}

static void write_failure(buf *out, bay_str server, const mcp_outcome *outcome)
{
    const char *what = bay_err_text(outcome->err);
    const char *detail = outcome->text != NULL ? outcome->text : "";
    bool has_detail = detail[0] != '\0' && strcmp(detail, what) != 0;
    buf_printf(out, "The server \"%.*s\" gave no answer: %s%s%.1000s.%s", BAY_STR(server), what,
               has_detail ? ": " : "", has_detail ? detail : "",
               outcome->was_sent ? " The call may have been carried out."
                                 : " The call was not carried out; it can be tried again.");
}

static void write_reason(buf *out, bay_str server, const mcp_outcome *outcome)
{
    buf_printf(out, "{\"patchbay/reason\":\"%s\",\"patchbay/server\":", reason_of(outcome->err));
    json_quote(out, server);
    buf_printf(out, ",\"patchbay/mayHaveRun\":%s}", outcome->was_sent ? "true" : "false");
}

/* The engine dresses it like any result; its _meta must stay one. */
static void answer_tool_failure(mcp_request *request, bay_str text, bay_str reason)
{
    buf out;
    bay_str copy;
    json_doc doc;
    buf_init(&out, 65536);
    buf_lit(&out, "{\"content\":[{\"type\":\"text\",\"text\":");
    json_quote(&out, text);
    buf_lit(&out, "}],\"isError\":true,\"_meta\":");
    buf_str(&out, reason);
    buf_char(&out, '}');
    bay_err err = out.err == BAY_OK ? arena_dup(request->memory, buf_view(&out), &copy) : out.err;
    err = err == BAY_OK ? json_parse(&doc, copy, NULL, request->memory, NULL) : err;
    buf_fini(&out);
    if (err == BAY_OK) {
        mcp_request_result(request, json_root(&doc));
    } else {
        mcp_request_error(request, RPC_INTERNAL_ERROR, STR("Out of memory"), (bay_str){NULL, 0});
    }
}

/* A failure the model can act on is a tool's result; anything else a JSON-RPC error. */
static void answer_failure(mcp_request *request, bay_str server, const mcp_outcome *outcome)
{
    buf text;
    buf reason;
    buf_init(&text, 4096);
    buf_init(&reason, 4096);
    write_failure(&text, server, outcome);
    write_reason(&reason, server, outcome);
    if (request->method->id == MCP_TOOLS_CALL) {
        answer_tool_failure(request, buf_view(&text), buf_view(&reason));
    } else {
        mcp_request_error(request, RPC_INTERNAL_ERROR, buf_view(&text), buf_view(&reason));
    }
    buf_fini(&text);
    buf_fini(&reason);
}

static bool needs_input(json_val result)
{
    return json_str_eq(json_get(result, STR("resultType")), STR("input_required"));
}

static void route_done(void *user, const mcp_outcome *outcome)
{
    route *self = user;
    mcp_request *request = self->request;
    bay_str server = upstream_name(self->call.upstream);
    route_end(self);
    switch (outcome->kind) {
    case MCP_OUTCOME_RESULT:
        if (request->revision->era == MCP_LEGACY && needs_input(outcome->result)) {
            /* nothing is dropped in silence: what cannot be carried is refused by name */
            mcp_request_error(
                request, RPC_INTERNAL_ERROR,
                STR("The server asks for input from the client (input_required), which "
                    "this gateway does not carry to clients of handshake revisions"),
                (bay_str){NULL, 0});
            return;
        }
        mcp_request_result(request, outcome->result);
        return;
    case MCP_OUTCOME_ERROR:
        mcp_request_error_object(request, outcome->error);
        return;
    case MCP_OUTCOME_FAILED:
        answer_failure(request, server, outcome);
        return;
    }
}

static const upstream_call_events route_events = {.notified = route_notified, .done = route_done};

static route *route_new(face *self, mcp_request *request)
{
    route *way = arena_zalloc(request->memory, sizeof(*way));
    if (way == NULL) {
        mcp_request_error(request, RPC_INTERNAL_ERROR, STR("Out of memory"), (bay_str){NULL, 0});
        return NULL;
    }
    way->face = self;
    way->request = request;
    way->call.events = &route_events;
    way->call.user = way;
    way->call.spec = (mcp_call_spec){
        .method = request->method->text,
        .params = request->message.params,
        .meta = request->meta,
        .log_level = request->log_level,
        .wants_progress = request->progress_token.len > 0,
    };
    if (request->revision->era == MCP_MODERN) {
        /* a modern client's own capabilities: the server may ask it by input_required */
        way->call.spec.capabilities = json_raw(request->client_capabilities);
        way->call.spec.client_info = json_raw(request->client_info);
    }
    return way;
}

static void route_send(route *self, upstream *to)
{
    mcp_request *request = self->request;
    request->user = self;
    if (request->log_level != MCP_LOG_NONE) {
        upstream_set_level(to, request->log_level);
    }
    upstream_send(to, &self->call);
}

void route_to(face *self, mcp_request *request, upstream *to, bay_str rename,
              const catalog_entry *entry)
{
    route *way = route_new(self, request);
    if (way == NULL) {
        return;
    }
    if (rename.len > 0 && !str_eq(rename, request->name)) {
        if (arena_dup(request->memory, rename, &way->call.spec.rename) != BAY_OK) {
            mcp_request_error(request, RPC_INTERNAL_ERROR, STR("Out of memory"),
                              (bay_str){NULL, 0});
            return;
        }
    }
    if (entry != NULL && entry->item->params.count > 0) {
        way->owner = listing_ref(entry->owner);
        way->call.spec.param_table = &entry->item->params;
    }
    route_send(way, to);
}

void route_cancelled(mcp_request *request)
{
    route *self = request->user;
    if (self != NULL) {
        list_remove(&self->link); /* if it waits for a list */
        upstream_call_cancel(&self->call, STR("the client cancelled the request"));
        route_end(self);
    }
    mcp_request_error(request, RPC_INTERNAL_ERROR, STR("Cancelled"), (bay_str){NULL, 0});
}

void route_drained(mcp_request *request)
{
    route *self = request->user;
    if (self != NULL) {
        upstream_call_pause(&self->call, false);
    }
}

/* ref.name inside the params becomes the server's own name. */
static bay_err rewrite_reference(route *self, bay_str name)
{
    mcp_request *request = self->request;
    json_val params = request->message.params;
    json_val old = json_get(json_get(params, STR("ref")), STR("name"));
    bay_str whole = json_raw(params);
    bay_str part = json_raw(old);
    buf text;
    buf_init(&text, whole.len + name.len * 6 + 64);
    buf_append(&text, whole.at, (size_t)(part.at - whole.at));
    json_quote(&text, name);
    buf_str(&text, str_from(whole, (size_t)(part.at - whole.at) + part.len));
    bay_str copy;
    bay_err err =
        text.err == BAY_OK ? arena_dup(request->memory, buf_view(&text), &copy) : text.err;
    buf_fini(&text);
    if (err == BAY_OK) {
        err = json_parse(&self->params_doc, copy, NULL, request->memory, NULL);
    }
    if (err == BAY_OK) {
        self->call.spec.params = json_root(&self->params_doc);
        self->call.spec.meta = json_get(self->call.spec.params, STR("_meta"));
    }
    return err;
}

bool route_complete(face *self, mcp_request *request)
{
    json_val reference = json_get(request->message.params, STR("ref"));
    bool is_prompt = json_str_eq(json_get(reference, STR("type")), STR("ref/prompt"));
    bay_str key;
    if (json_str(json_get(reference, is_prompt ? STR("name") : STR("uri")), request->memory,
                 &key) != BAY_OK) {
        return false;
    }
    const catalog_entry *entry =
        catalog_view_find(&self->views[is_prompt ? LISTING_PROMPTS : LISTING_TEMPLATES], key);
    if (entry == NULL && !is_prompt) {
        entry = catalog_view_find(&self->views[LISTING_RESOURCES], key);
    }
    if (entry == NULL) {
        return false;
    }
    route *way = route_new(self, request);
    if (way == NULL) {
        return true;
    }
    if (is_prompt && !str_eq(entry->item->key, key) &&
        rewrite_reference(way, entry->item->key) != BAY_OK) {
        mcp_request_error(request, RPC_INTERNAL_ERROR, STR("Out of memory"), (bay_str){NULL, 0});
        return true;
    }
    route_send(way, entry->upstream);
    return true;
}

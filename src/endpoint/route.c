/* A request on its way to the server that owns it, and the answer's way back. The bytes of both are
 * spliced by the engines; here only names and eras are looked at. What a server asks meanwhile is
 * in input_request.c, suspended_call.c and mrtr_loop.c; how a call ends, in route_outcome.c. */
#include "base/str.h"
#include "endpoint/endpoint_parts.h"
#include "sessions/token.h"
#include "wire/via.h"
#include "json/build.h"

void route_liveness_enter(route_liveness *self, route *of)
{
    *self = (route_liveness){.route = of, .outer = of->liveness};
    of->liveness = self;
}

bool route_liveness_leave(route_liveness *self)
{
    if (self->is_gone) {
        return false;
    }
    self->route->liveness = self->outer;
    return true;
}

void route_end(route *self)
{
    list_remove(&self->link); /* if it waits for a list */
    if (self->task != NULL) {
        self->endpoint->tasks->end(self);
    }
    input_requests_drop(self);
    mrtr_free(self->rounds);
    self->rounds = NULL;
    listing_unref(self->owner);
    self->owner = NULL;
    for (route_liveness *at = self->liveness; at != NULL; at = at->outer) {
        at->is_gone = true;
    }
    if (self->request != NULL) {
        self->request->user = NULL;
    }
    if (self->suspended != NULL) {
        suspended_call_free(self->suspended);
    }
}

bool route_reply(route *self, bay_str id, json_val result, int code, bay_str message)
{
    route_liveness liveness;
    route_liveness_enter(&liveness, self);
    if (self->task != NULL) {
        result = self->endpoint->tasks->answer(self, result);
    }
    upstream_call_answer(&self->call, id, json_raw(result), code, message);
    return route_liveness_leave(&liveness);
}

void route_give_up_on(route *self, bay_str server, const char *reason, bay_str text)
{
    mcp_request *request = self->request;
    buf full;
    upstream_call_cancel(&self->call, STR("the gateway gave the call up"));
    buf_init(&full, 8192);
    buf_printf(&full, "The server \"%.*s\" gave no answer: ", BAY_STR(server));
    buf_str(&full, text); /* which may lie in the route's memory */
    route_end(self);
    route_refuse(request, server, reason, RPC_INTERNAL_ERROR, buf_view(&full), true);
    buf_fini(&full);
}

void route_give_up(route *self, const char *reason, bay_str text)
{
    route_give_up_on(self, upstream_name(self->call.upstream), reason, text);
}

/* Progress keeps all its members but the token, which becomes the client's own. */
static void pass_progress(route *self, json_val params)
{
    buf *members = &self->endpoint->scratch;
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
    if (mcp_request_progress(self->request, progress, inner) == BAY_ERR_AGAIN) {
        upstream_call_pause(&self->call, true);
    }
}

mcp_log_level route_level_of(json_val params)
{
    bay_str text;
    mcp_log_level level = MCP_LOG_EMERGENCY;
    (void)(json_str_plain(json_get(params, STR("level")), &text) &&
           mcp_log_level_find(text, &level));
    return level;
}

static void route_notified(void *user, mcp_method_id method, json_val params)
{
    route *self = user;
    if (self->request == NULL) {
        return; /* suspended: no client request is open that could carry progress or log messages */
    }
    if (method == MCP_N_PROGRESS) {
        pass_progress(self, params);
    } else if (method == MCP_N_MESSAGE && mcp_request_log(self->request, route_level_of(params),
                                                          json_raw(params)) == BAY_ERR_AGAIN) {
        upstream_call_pause(&self->call, true);
    }
}

static void route_asked(void *user, const rpc_message *message)
{
    input_requests_asked(user, message);
}

static void route_withdrawn(void *user, bay_str id)
{
    input_requests_withdrawn(user, id);
}

/* A client of the session revisions that is asked for input in a result. */
static bool wants_rounds(const mcp_request *request, const mcp_outcome *outcome)
{
    return outcome->kind == MCP_OUTCOME_RESULT && request->revision->era == MCP_LEGACY &&
           request->method != NULL && (request->method->flags & MCP_FLAG_MRTR) != 0 &&
           json_str_eq(json_get(outcome->result, STR("resultType")), STR("input_required"));
}

static void route_done(void *user, const mcp_outcome *outcome)
{
    route *self = user;
    mcp_request *request = self->request;
    if (request == NULL) {
        suspended_call_store_outcome(self->suspended, outcome);
        return;
    }
    if (wants_rounds(request, outcome)) {
        mrtr_take(self, outcome->result);
        return;
    }
    if (user_login_waits(self, outcome)) {
        return;
    }
    bay_str server = upstream_name(self->call.upstream);
    endpoint *of = self->endpoint;
    route_note_urls(self->endpoint, request, server, outcome);
    route_end(self);
    route_answer(of, request, server, outcome);
}

static const upstream_call_events route_events = {.notified = route_notified,
                                                  .asked = route_asked,
                                                  .withdrawn = route_withdrawn,
                                                  .done = route_done};

/* ---- a call is made -------------------------------------------------------------------------- */

/* What its client can be asked during this call, in its own era's way. */
static unsigned inputs_of(const endpoint *self, const mcp_request *request)
{
    bool is_modern = request->revision->era == MCP_MODERN;
    bool may_ask = is_modern ? suspended_call_is_possible(self, request)
                             : request->method != NULL && request->method->id != MCP_COMPLETE;
    return may_ask ? mcp_inputs_of(request->revision, request->client_capabilities) : 0;
}

/* The capabilities of a session's client in the words of the stateless revision: what it can be
 * asked, and what has no meaning to the gateway. */
static bay_err write_capabilities(endpoint *self, const mcp_request *request, bay_str *out)
{
    static const char *const others[] = {"experimental", "extensions"};
    json_writer writer;
    buf *text = &self->scratch;
    buf_clear(text);
    json_writer_init(&writer, text);
    json_open_object(&writer);
    mcp_inputs_write(mcp_inputs_of(request->revision, request->client_capabilities),
                     mcp_revision_of(MCP_LATEST), &writer);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        json_val value = json_get(request->client_capabilities, str_of(others[i]));
        if (json_is(value, JSON_OBJECT)) {
            json_key(&writer, str_of(others[i]));
            json_put_val(&writer, value);
        }
    }
    json_close_object(&writer);
    return text->err == BAY_OK ? arena_dup(request->memory, buf_view(text), out) : text->err;
}

/* What goes along in `_meta`: whom the request came through, over loops, bridges and pipes; and the
 * key by which the server may know the call again, in place of the client's own. */
static bay_err carry_meta(route *self)
{
    mcp_request *request = self->request;
    mcp_call_spec *spec = &self->call.spec;
    bay_str key = request->call.upstream_key;
    bay_str replaced[3];
    size_t count = 0;
    json_builder made;
    if (request->via.len == 0 && key.len == 0) {
        return BAY_OK;
    }
    if (request->via.len > 0) {
        replaced[count++] = STR(MCP_META_VIA);
    }
    if (key.len > 0) {
        replaced[count++] = STR(IDEMPOTENCY_META);
        if (request->call.meta_name.len > 0) {
            replaced[count++] = request->call.meta_name;
        }
    }
    json_writer *out =
        json_builder_init(&made, request->memory, json_raw(spec->meta).len + 8 * VIA_BYTES);
    json_open_object(out);
    json_put_members(out, spec->meta, replaced, count);
    for (size_t i = 0; i < count; i++) {
        json_key(out, replaced[i]);
        json_put_str(out, i == 0 && request->via.len > 0 ? request->via : key);
    }
    json_close_object(out);
    return json_builder_end(&made, &spec->meta);
}

static bay_err route_describe(route *self)
{
    mcp_request *request = self->request;
    mcp_call_spec *spec = &self->call.spec;
    *spec = (mcp_call_spec){
        .method = request->method->text,
        .params = request->message.params,
        .meta = request->meta,
        .log_level = request->log_level,
        .wants_progress = request->progress_token.len > 0,
        .client_info = json_raw(request->client_info),
    };
    bay_err err = carry_meta(self);
    /* a client's own capabilities: the server may ask it by input_required */
    if (request->revision->era == MCP_MODERN) {
        spec->capabilities = json_raw(request->client_capabilities);
        return err;
    }
    return err == BAY_OK ? write_capabilities(self->endpoint, request, &spec->capabilities) : err;
}

route *route_new(endpoint *self, mcp_request *request)
{
    if (!call_is_admitted(&request->call)) {
        mcp_request_error(request, RPC_INTERNAL_ERROR, STR("The call was not admitted"),
                          (bay_str){NULL, 0});
        return NULL;
    }
    unsigned inputs = inputs_of(self, request);
    bool may_suspend = inputs != 0 && request->revision->era == MCP_MODERN;
    bay_str identity;
    route *way = NULL;
    if (endpoint_identity(self, request, &identity) == BAY_OK) {
        way = may_suspend ? suspended_call_new(self, request->principal, identity)
                          : arena_zalloc(request->memory, sizeof(*way));
    }
    if (way == NULL) {
        endpoint_refuse_memory(request);
        return NULL;
    }
    way->endpoint = self;
    way->request = request;
    list_init(&way->input_requests);
    way->call.events = &route_events;
    way->call.user = way;
    if (!may_suspend) {
        way->call.affinity.principal = request->principal;
        way->call.affinity.identity = identity;
    }
    way->call.affinity.inputs = inputs;
    way->call.affinity.has_session = request->session != NULL;
    way->call.affinity.is_stateless = request->session == NULL && !self->has_one_client &&
                                      endpoint_conversation(self, request).len == 0;
    way->call.is_repeatable = request->method->id != MCP_TOOLS_CALL;
    if (route_describe(way) != BAY_OK) {
        route_end(way);
        endpoint_refuse_memory(request);
        return NULL;
    }
    return way;
}

/* Then a retry may bring the answer to our question for that. */
static bool wants_user_login(const upstream *to)
{
    return upstream_config(to)->credentials.grant == CONFIG_GRANT_USER;
}

void route_send(route *self, upstream *to)
{
    mcp_request *request = self->request;
    if (wants_user_login(to) && user_login_strip(request, &self->call.spec.params) != BAY_OK) {
        route_end(self);
        endpoint_refuse_memory(request);
        return;
    }
    request->user = self;
    request->call.is_sent = true;
    if (self->call.spec.timeout_ms == 0) {
        self->call.spec.timeout_ms = request->call.timeout_ms;
    }
    if (request->log_level != MCP_LOG_NONE) {
        upstream_set_level(to, request->log_level);
    }
    upstream_send(to, &self->call);
}

void route_refuse_state(mcp_request *request)
{
    mcp_request_error(request, RPC_INVALID_PARAMS,
                      STR("The requestState is not one that was given for this call, or not since "
                          "the gateway started: call again without it"),
                      (bay_str){NULL, 0});
}

/* What a retry brings is for the server that asked. One of the session revisions asks through us,
 * and whatever is ours has been recognised before. */
static bool refuses_retry(mcp_request *request, const upstream *to)
{
    const mcp_revision *revision = upstream_revision(to);
    json_val state = json_get(request->message.params, STR("requestState"));
    bay_str text;
    uint32_t worker;
    if (request->revision->era != MCP_MODERN || (revision != NULL && revision->era == MCP_MODERN)) {
        return false;
    }
    bool is_ours = json_str_plain(state, &text) && token_worker(text, &worker);
    if (!json_is(state, JSON_MISSING) && (revision != NULL || is_ours)) {
        route_refuse_state(request);
        return true;
    }
    return route_refuses_urls(request, upstream_name(to));
}

void route_to(endpoint *self, mcp_request *request, upstream *to, bay_str rename,
              const catalog_entry *entry)
{
    if (entry != NULL && !mcp_request_check_params(request, &entry->item->params)) {
        return;
    }
    bool is_declined = wants_user_login(to) && user_login_refuses(request, upstream_name(to));
    bool is_refused = is_declined || refuses_retry(request, to);
    route *way = is_refused ? NULL : route_new(self, request);
    if (way == NULL) {
        return;
    }
    if (rename.len > 0 && !str_eq(rename, request->name)) {
        if (arena_dup(request->memory, rename, &way->call.spec.rename) != BAY_OK) {
            route_end(way);
            endpoint_refuse_memory(request);
            return;
        }
    }
    way->call.is_repeatable = way->call.is_repeatable || request->call.is_repeatable;
    if (entry != NULL && entry->item->params.count > 0) {
        way->owner = listing_ref(entry->owner);
        way->call.spec.param_table = &entry->item->params;
    }
    bay_str why;
    const endpoint_tasks *tasks = self->tasks;
    int refused = tasks != NULL ? tasks->admit(way, to, entry, &why) : 0;
    if (refused != 0) {
        route_end(way);
        mcp_request_error(request, refused, why, (bay_str){NULL, 0});
        return;
    }
    if (!passed_state_refuses(way, to)) {
        route_send(way, to);
    }
}

void route_cancelled(mcp_request *request)
{
    route *self = request->user;
    if (self != NULL && call_outlives_caller(&request->call) && !self->endpoint->is_ending) {
        return; /* at most its timeout */
    }
    if (self != NULL) {
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

/* The members of the object, `name` in place of the value `old`. */
static void put_replaced(json_writer *out, json_val object, json_val old, bay_str name)
{
    json_iter iter = json_iter_of(object);
    while (json_next(&iter)) {
        json_key_raw(out, json_raw(iter.key));
        if (iter.value.at == old.at) {
            json_put_str(out, name);
        } else {
            json_put_val(out, iter.value);
        }
    }
}

/* ref.name inside the params becomes the server's own name. */
static bay_err rewrite_reference(route *self, bay_str name)
{
    mcp_request *request = self->request;
    mcp_call_spec *spec = &self->call.spec;
    json_val params = request->message.params;
    json_val reference = json_get(params, STR("ref"));
    json_builder made;
    json_iter iter = json_iter_of(params);
    json_writer *out =
        json_builder_init(&made, request->memory, json_raw(params).len + name.len * 6 + 64);
    json_open_object(out);
    while (json_next(&iter)) {
        json_key_raw(out, json_raw(iter.key));
        if (iter.value.at != reference.at) {
            json_put_val(out, iter.value);
            continue;
        }
        json_open_object(out);
        put_replaced(out, reference, json_get(reference, STR("name")), name);
        json_close_object(out);
    }
    json_close_object(out);
    bay_err err = json_builder_end(&made, &spec->params);
    if (err == BAY_OK) {
        spec->meta = json_get(spec->params, STR("_meta"));
        err = carry_meta(self);
    }
    return err;
}

bool route_complete(endpoint *self, mcp_request *request)
{
    json_val reference = json_get(request->message.params, STR("ref"));
    bool is_prompt = json_str_eq(json_get(reference, STR("type")), STR("ref/prompt"));
    bay_str key;
    if (json_str(json_get(reference, is_prompt ? STR("name") : STR("uri")), request->memory,
                 &key) != BAY_OK) {
        return false;
    }
    const catalog_entry *entry =
        endpoint_find_seen(self, request, is_prompt ? LISTING_PROMPTS : LISTING_TEMPLATES, key);
    if (entry == NULL && !is_prompt) {
        entry = endpoint_find_seen(self, request, LISTING_RESOURCES, key);
    }
    if (entry == NULL) {
        return false;
    }
    if (!endpoint_admits(request, entry->upstream)) {
        return true;
    }
    route *way = route_new(self, request);
    if (way == NULL) {
        return true;
    }
    if (is_prompt && !str_eq(entry->item->key, key) &&
        rewrite_reference(way, entry->item->key) != BAY_OK) {
        route_end(way);
        endpoint_refuse_memory(request);
        return true;
    }
    route_send(way, entry->upstream);
    return true;
}

#include "endpoint/mrtr_loop.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "endpoint/endpoint_parts.h"
#include "json/build.h"

/* One of inputRequests. */
typedef struct round_ask {
    mrtr_loop *rounds;
    json_val key;
    bay_str method; /* decoded */
    json_val params;
    json_val answer;
    bool is_open;
} round_ask;

struct mrtr_loop {
    route *way;
    char *server; /* its name: while the client thinks, a reload may take the server away */
    json_val first_params;
    uint32_t number;
    uint32_t quiet;  /* rounds in a row in which nothing was asked */
    arena memory;    /* of this round */
    size_t held;     /* bytes of what is asked in it, counted among the endpoint's */
    json_val result; /* what the server sent: the first of it */
    round_ask *asks;
    size_t count;
    size_t open;
    bool is_asking;      /* not all are out yet */
    arena params_memory; /* of the call as it is sent again */
    loop_timer wait;
};

static void send_again(mrtr_loop *self);

static void waited(void *argument)
{
    send_again(argument);
}

static mrtr_loop *mrtr_of(route *way)
{
    if (way->rounds == NULL) {
        bay_str server = upstream_name(way->call.upstream);
        mrtr_loop *self = mem_zalloc(sizeof(*self));
        char *name = mem_dup(server.at, server.len);
        if (self == NULL || name == NULL) {
            mem_free(name);
            mem_free(self);
            return NULL;
        }
        self->server = name;
        self->way = way;
        self->first_params = way->call.spec.params;
        arena_init(&self->memory, 4 * (size_t)MRTR_BYTES);
        arena_init(&self->params_memory, (size_t)1 << 30);
        loop_timer_init(&self->wait, waited, self);
        way->rounds = self;
    }
    return way->rounds;
}

static void let_go_bytes(mrtr_loop *self)
{
    self->way->endpoint->mrtr_bytes -= self->held;
    self->held = 0;
}

void mrtr_free(mrtr_loop *self)
{
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < self->count && self->way->request != NULL; i++) {
        if (self->asks[i].is_open) {
            mcp_request_withdraw(self->way->request, &self->asks[i],
                                 STR("The call that needed it has ended"));
        }
    }
    if (self->way->endpoint->loop != NULL) {
        loop_timer_stop(self->way->endpoint->loop, &self->wait);
    }
    let_go_bytes(self);
    arena_fini(&self->memory);
    arena_fini(&self->params_memory);
    mem_free(self->server);
    mem_free(self);
}

/* No call is under way, and perhaps no server is there any more. */
static void mrtr_loop_give_up(mrtr_loop *self, const char *reason, bay_str text)
{
    route *way = self->way;
    char *server = self->server;
    self->server = NULL;
    route_give_up_on(way, str_of(server), reason, text);
    mem_free(server);
}

static void fail_memory(mrtr_loop *self)
{
    mrtr_loop_give_up(self, "server_unavailable", STR("out of memory for what it asks"));
}

/* ---- sending again --------------------------------------------------------------------------- */

static void write_params(const mrtr_loop *self, json_writer *out)
{
    static const bay_str except[] = {STR_INIT("inputResponses"), STR_INIT("requestState"),
                                     STR_INIT("_meta")};
    json_val state = json_get(self->result, STR("requestState"));
    json_open_object(out);
    json_put_members(out, self->first_params, except, ARRAY_LEN(except));
    if (self->count > 0) {
        json_key_lit(out, "inputResponses");
        json_open_object(out);
        for (size_t i = 0; i < self->count; i++) {
            json_key_raw(out, json_raw(self->asks[i].key));
            json_put_val(out, self->asks[i].answer);
        }
        json_close_object(out);
    }
    if (json_is(state, JSON_STRING)) {
        json_key_lit(out, "requestState");
        json_put_val(out, state);
    }
    json_close_object(out);
}

static void send_again(mrtr_loop *self)
{
    route *way = self->way;
    catalog_source *source = catalog_servers_find(&way->endpoint->servers, str_of(self->server));
    if (source == NULL) {
        mrtr_loop_give_up(self, "server_unavailable", STR("it has left the gateway"));
        return;
    }
    json_builder made;
    arena_reset(&self->params_memory);
    write_params(self, json_builder_init(&made, &self->params_memory, (size_t)1 << 30));
    if (json_builder_end(&made, &way->call.spec.params) != BAY_OK) {
        fail_memory(self);
        return;
    }
    route_send(way, source->upstream);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void client_refused(mrtr_loop *self, const round_ask *one, json_val error)
{
    buf text;
    arena memory;
    bay_str message = STR("");
    arena_init(&memory, 1 << 20);
    buf_init(&text, 4096);
    err_ignore(
        json_str(json_get(error, STR("message")), &memory, &message)); /* says nothing, then */
    buf_printf(&text, "the client refused to answer %.*s: %.*s", BAY_STR(str_head(one->method, 64)),
               BAY_STR(str_head(message, 1000)));
    mrtr_loop_give_up(self, "client_refused", buf_view(&text));
    buf_fini(&text);
    arena_fini(&memory);
}

/* False: it is no answer to what was asked, and the call is given up. */
static bool is_answer(mrtr_loop *self, const round_ask *one, json_val result)
{
    mcp_shape_fault fault;
    const mcp_revision *revision = self->way->request->revision;
    const mcp_method *method = mcp_method_find(one->method, MCP_LATEST_LEGACY, MCP_SENDER_SERVER);
    if (mcp_shape_result(method, revision, result, &fault)) {
        return true;
    }
    buf text;
    buf_init(&text, 4096);
    buf_printf(&text, "the client's answer is no result of %.*s: %s %s",
               BAY_STR(str_head(one->method, 64)), fault.place, fault.text);
    mrtr_loop_give_up(self, "client_refused", buf_view(&text));
    buf_fini(&text);
    return false;
}

static void client_answered(void *user, bay_err err, const rpc_message *response)
{
    round_ask *one = user;
    mrtr_loop *self = one->rounds;
    one->is_open = false;
    self->open--;
    if (err == BAY_ERR_CANCELLED) {
        return; /* the request itself ends */
    }
    if (err != BAY_OK) {
        bool is_late = err == BAY_ERR_TIMEOUT;
        mrtr_loop_give_up(self, is_late ? "timeout" : "client_refused",
                          is_late ? STR("the client did not answer what it asks in time")
                                  : STR("the client can be asked no more"));
    } else if (response->kind != RPC_RESULT) {
        client_refused(self, one, response->error);
    } else if (!is_answer(self, one, response->result)) {
        return;
    } else if (json_clone_in(response->result, &self->memory, &one->answer) != BAY_OK) {
        fail_memory(self);
    } else if (self->open == 0 && !self->is_asking) {
        send_again(self);
    }
}

/* ---- what is asked --------------------------------------------------------------------------- */

static bool is_twice(const mrtr_loop *self, json_val key)
{
    for (size_t i = 0; i < self->count; i++) {
        if (json_str_same(self->asks[i].key, key)) {
            return true;
        }
    }
    return false;
}

/* Reads inputRequests; NULL: all is well, else what is wrong. */
static const char *read_requests(mrtr_loop *self, json_val requests, unsigned *out_needed)
{
    json_iter iter = json_iter_of(requests);
    size_t count = json_count(requests);
    if (!json_is(requests, JSON_OBJECT) || count > MRTR_REQUESTS) {
        return "its inputRequests are no object, or too many";
    }
    self->asks = arena_array(&self->memory, count + 1, sizeof(*self->asks));
    if (self->asks == NULL) {
        return "out of memory";
    }
    while (json_next(&iter)) {
        round_ask *one = &self->asks[self->count];
        json_val params = json_get(iter.value, STR("params"));
        if (is_twice(self, iter.key)) {
            return "one of its inputRequests stands twice";
        }
        if (json_str(json_get(iter.value, STR("method")), &self->memory, &one->method) != BAY_OK ||
            (!json_is(params, JSON_MISSING) && !json_is(params, JSON_OBJECT))) {
            return "one of its inputRequests is no request";
        }
        unsigned needed = mcp_inputs_needed(one->method, params);
        if (needed == 0) {
            return "it asks for something that is not known";
        }
        one->rounds = self;
        one->key = iter.key;
        one->params = params;
        *out_needed |= needed;
        self->count++;
    }
    return NULL;
}

/* What the result asks, in this round's memory; NULL: all is well. */
static const char *read_result(mrtr_loop *self, json_val result, unsigned *out_needed)
{
    bay_str raw = json_raw(result);
    arena_reset(&self->memory);
    self->result = JSON_NONE;
    self->asks = NULL;
    self->count = self->open = 0;
    let_go_bytes(self);
    if (raw.len > MRTR_BYTES || self->way->endpoint->mrtr_bytes + raw.len > MRTR_MAX_BYTES) {
        return "it asks for too much at once";
    }
    self->held = raw.len;
    self->way->endpoint->mrtr_bytes += raw.len;
    if (json_clone_in(result, &self->memory, &self->result) != BAY_OK) {
        return "out of memory";
    }
    json_val requests = json_get(self->result, STR("inputRequests"));
    json_val state = json_get(self->result, STR("requestState"));
    if (!json_is(state, JSON_MISSING) && !json_is(state, JSON_STRING)) {
        return "its requestState is no string";
    }
    if (!json_is(requests, JSON_MISSING)) {
        return read_requests(self, requests, out_needed);
    }
    return json_is(state, JSON_MISSING) ? "it asks for input and does not say for which" : NULL;
}

static bay_err ask_one(mrtr_loop *self, round_ask *one)
{
    route *way = self->way;
    const mcp_method *method = mcp_method_find(one->method, MCP_LATEST_LEGACY, MCP_SENDER_SERVER);
    buf params;
    buf_init(&params, 2 * (size_t)MRTR_BYTES);
    json_writer writer;
    json_writer_init(&writer, &params);
    input_request_write_params(&writer, one->method, one->params, way->request->revision);
    bay_err err = params.err;
    if (err == BAY_OK) {
        one->is_open = true;
        self->open++;
        err = mcp_request_ask(way->request, method->id, buf_view(&params), client_answered, one,
                              endpoint_now_ms(way->endpoint));
    }
    buf_fini(&params);
    return err;
}

static void ask_all(mrtr_loop *self)
{
    route *way = self->way;
    route_liveness liveness;
    bay_err err = BAY_OK;
    self->is_asking = true;
    route_liveness_enter(&liveness, way);
    for (size_t i = 0; err == BAY_OK && !liveness.is_gone && i < self->count; i++) {
        err = ask_one(self, &self->asks[i]);
        if (err != BAY_OK && !liveness.is_gone && self->asks[i].is_open) {
            self->asks[i].is_open = false;
            self->open--;
        }
    }
    if (!route_liveness_leave(&liveness)) {
        return;
    }
    self->is_asking = false;
    if (err != BAY_OK) {
        mrtr_loop_give_up(self, err == BAY_ERR_NOMEM ? "server_unavailable" : "client_refused",
                          STR("the client could not be asked"));
    } else if (self->open == 0) {
        send_again(self);
    }
}

static void wait_a_while(mrtr_loop *self)
{
    uint64_t delay = 0;
    if (self->quiet > 0) {
        delay = (uint64_t)MRTR_WAIT_MS << (self->quiet < 16 ? self->quiet - 1 : 15);
    }
    self->quiet++;
    delay = delay < MRTR_WAIT_MOST_MS ? delay : MRTR_WAIT_MOST_MS;
    loop *on = self->way->endpoint->loop;
    if (on == NULL || loop_timer_start(on, &self->wait, delay) != BAY_OK) {
        fail_memory(self);
    }
}

static void refuse_inputs(mrtr_loop *self, unsigned missing)
{
    route *way = self->way;
    buf text;
    buf_init(&text, 4096);
    buf_lit(&text, "it asks for input that this client has not declared, or that its protocol "
                   "revision (");
    buf_str(&text, way->request->revision->text);
    buf_lit(&text, ") does not have: ");
    input_request_write_inputs(&text, missing);
    mrtr_loop_give_up(self, "input_not_available", buf_view(&text));
    buf_fini(&text);
}

void mrtr_take(route *of, json_val result)
{
    unsigned needed = 0;
    mrtr_loop *self = mrtr_of(of);
    if (self == NULL) {
        route_give_up(of, "server_unavailable", STR("out of memory for what it asks"));
        return;
    }
    if (self->number++ >= MRTR_MOST) {
        mrtr_loop_give_up(self, "limit", STR("it asked for input too often"));
        return;
    }
    const char *wrong = read_result(self, result, &needed);
    unsigned missing = needed & ~of->call.affinity.inputs;
    if (wrong != NULL) {
        mrtr_loop_give_up(self, "invalid_answer", str_of(wrong));
    } else if (missing != 0) {
        refuse_inputs(self, missing);
    } else if (self->count == 0) {
        wait_a_while(self);
    } else {
        self->quiet = 0;
        ask_all(self);
    }
}

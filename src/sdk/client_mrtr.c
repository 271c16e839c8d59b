/* "Input required": the server wants something before it goes on. What it wants is asked of the
 * client's handlers, then the same request goes out anew, with the answers and with the state that
 * came along, byte for byte. A result that has only a state asks for nothing but patience: at once
 * the first time, then with growing pauses.
 * Source: mcp 2026-07-28 basic/patterns/mrtr. */
#include "base/err.h"
#include "base/mem.h"
#include "sdk/client_inputs.h"

enum {
    ROUNDS_MAX = 16,       /* with questions, of one request */
    ROUNDS_MAX_WAITS = 64, /* without */
    ROUNDS_PAUSE_MS = 250, /* before the second of them; doubles */
    ROUNDS_MAX_PAUSE_MS = 5000,
};

/* What a request remembers from round to round. */
typedef struct rounds {
    bay_request *request;
    uint32_t asked;
    uint32_t waited;
    json_doc *state; /* requestState; NULL: none came */
    inputs *inputs;
} rounds;

static void rounds_free(void *held)
{
    rounds *self = held;
    inputs_free(self->inputs);
    mem_free(self->state);
    mem_free(self);
}

static rounds *rounds_of(bay_request *request)
{
    rounds *self = sdk_request_held(request);
    if (self != NULL) {
        return self;
    }
    self = mem_zalloc(sizeof(*self));
    if (self != NULL) {
        self->request = request;
        sdk_request_hold(request, self, rounds_free);
    }
    return self;
}

/* The first params, with what belongs to this round. */
static void write_params(const rounds *self, json_writer *out)
{
    static const bay_str own[] = {STR_INIT("inputResponses"), STR_INIT("requestState")};
    json_open_object(out);
    json_put_members(out, sdk_request_params(self->request), own, 2);
    if (self->inputs != NULL) {
        json_key(out, own[0]);
        inputs_write(self->inputs, out);
    }
    if (self->state != NULL) {
        json_key(out, own[1]);
        json_put_val(out, json_root(self->state));
    }
    json_close_object(out);
}

static void client_mrtr_fail(bay_request *request, const bay_diag *why)
{
    bay_diag diag = {0};
    sdk_request_diag(request, &diag, why->code, why->text);
    sdk_request_fail(request, &diag, JSON_NONE);
}

/* The next round; `self` may be gone afterwards. */
static void send_round(rounds *self, uint32_t after_ms)
{
    bay_request *request = self->request;
    bay_diag diag = {0};
    json_builder made;
    json_val params;
    write_params(self, json_builder_init(&made, NULL, CLIENT_MAX_REPLY));
    bay_err err = json_builder_view(&made, &params);
    if (err != BAY_OK) {
        diag_set(&diag, err, "the next round could not be written: %s", bay_err_text(err));
    } else {
        bay_str method = sdk_request_method(request);
        err = after_ms == 0 ? sdk_request_again(request, method, params, &diag)
                            : sdk_request_later(request, method, params, after_ms, &diag);
    }
    json_builder_drop(&made);
    if (err != BAY_OK) {
        client_mrtr_fail(request, &diag);
    }
}

static void answered(void *user, const bay_diag *diag)
{
    rounds *self = user;
    if (diag != NULL) {
        client_mrtr_fail(self->request, diag);
        return;
    }
    send_round(self, 0);
}

static void put_off(rounds *self, bay_diag *diag)
{
    uint32_t pause = 0;
    if (self->waited >= ROUNDS_MAX_WAITS) {
        diag_set(diag, BAY_ERR_LIMIT, "the server put the request off %d times", ROUNDS_MAX_WAITS);
        client_mrtr_fail(self->request, diag);
        return;
    }
    for (uint32_t i = 0; i < self->waited && pause < ROUNDS_MAX_PAUSE_MS; i++) {
        pause = pause == 0 ? ROUNDS_PAUSE_MS : pause * 2;
    }
    self->waited++;
    send_round(self, pause < ROUNDS_MAX_PAUSE_MS ? pause : ROUNDS_MAX_PAUSE_MS);
}

/* Reads the result into `self`. BAY_OK, or why it is none. */
static bay_err read_round(rounds *self, json_val result, json_val *out_requests, bay_diag *diag)
{
    static const bay_str keys[] = {STR_INIT("inputRequests"), STR_INIT("requestState")};
    json_val members[2] = {JSON_NONE, JSON_NONE};
    bay_err err = json_pick(result, keys, 2, members, NULL);
    bool has_state = json_is(members[1], JSON_STRING);
    bool has_requests = json_is(members[0], JSON_OBJECT);
    if (err != BAY_OK || (!has_state && !json_is(members[1], JSON_MISSING)) ||
        (!has_requests && !json_is(members[0], JSON_MISSING)) || (!has_state && !has_requests)) {
        return diag_set(diag, BAY_ERR_PROTOCOL,
                        "the server requires input but says neither which nor for what state");
    }
    mem_free(self->state);
    self->state = NULL;
    err = has_state ? json_clone(members[1], &self->state) : BAY_OK;
    if (err != BAY_OK) {
        return diag_set(diag, err, "no memory for the server's state");
    }
    *out_requests = json_count(members[0]) > 0 ? members[0] : JSON_NONE;
    return BAY_OK;
}

void sdk_mrtr_state_continue(bay_request *request, json_val result)
{
    bay_diag diag = {0};
    const mcp_method *method =
        mcp_method_find(sdk_request_method(request), MCP_LATEST, MCP_SENDER_CLIENT);
    if (method == NULL || (method->flags & MCP_FLAG_MRTR) == 0) {
        /* mcp 2026-07-28 basic/patterns/mrtr: Supported Requests */
        diag_set(&diag, BAY_ERR_PROTOCOL,
                 "%.*s was answered by a request for input, which it cannot be",
                 BAY_STR(str_head(sdk_request_method(request), 64)));
        client_mrtr_fail(request, &diag);
        return;
    }
    rounds *self = rounds_of(request);
    if (self == NULL) {
        diag_set(&diag, BAY_ERR_NOMEM, "out of memory");
        client_mrtr_fail(request, &diag);
        return;
    }
    inputs_free(self->inputs);
    self->inputs = NULL;
    json_val requests = JSON_NONE;
    bay_err err = read_round(self, result, &requests, &diag);
    if (err != BAY_OK) {
        client_mrtr_fail(request, &diag);
    } else if (json_is(requests, JSON_MISSING)) {
        put_off(self, &diag);
    } else if (self->asked >= ROUNDS_MAX) {
        diag_set(&diag, BAY_ERR_LIMIT, "the server required input %d times", ROUNDS_MAX);
        client_mrtr_fail(request, &diag);
    } else {
        self->asked++;
        self->waited = 0;
        err = inputs_ask(sdk_request_client(request), requests, NULL, answered, self, &self->inputs,
                         &diag);
        if (err != BAY_OK) {
            client_mrtr_fail(request, &diag);
        }
    }
}

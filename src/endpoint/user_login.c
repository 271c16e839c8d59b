/* A call to a server that wants its caller's own login there, which the caller does not have
 * (MCP_LOGIN_USER): the user is led to the page where he logs in.
 *
 *   2025-11-25   error -32042 with the page; notifications/elicitation/complete when he has logged in
 *   2026-07-28   input_required with the page as a question. "accept" says only that the user agreed to
 *                open it, so the retry is sent again and again, for USER_LOGIN_WAIT_MS; then the
 *                question comes once more, USER_LOGIN_ROUNDS times in all
 *   others       the failure names the page
 *
 * The link is of endpoint_options.user_login; without one the operator has to help. */
#include "base/err.h"
#include "base/rand.h"
#include "base/str.h"
#include "endpoint/endpoint_parts.h"
#include "json/build.h"

enum {
    LINK_BYTES = 8192,
    RESULT_BYTES = 64 << 10,
    ID_BYTES = 16, /* random, of an elicitation */
};

/* Our key for the question; its number follows. */
#define KEY "patchbay-login-"

bool user_login_link(const endpoint *of, const mcp_request *request, bay_str server, bay_str id,
                     buf *out)
{
    const endpoint_user_login *login = of->user_login;
    return login != NULL && login->link(login->user, request->principal, server, id, out) == BAY_OK;
}

/* ---- what a retry says ----------------------------------------------------------------------- */

/* The answer to our question in the request; `out_round`: which one it was. */
static json_val answer_of(const mcp_request *request, uint64_t *out_round)
{
    json_val answers = json_get(request->message.params, STR("inputResponses"));
    json_iter iter = json_iter_of(answers);
    while (json_is(answers, JSON_OBJECT) && json_next(&iter)) {
        bay_str key;
        if (json_str_plain(iter.key, &key) && str_starts(key, STR(KEY)) &&
            str_uint(str_from(key, STR(KEY).len), out_round)) {
            return iter.value;
        }
    }
    *out_round = 0;
    return JSON_NONE;
}

static bool is_accepted(json_val answer)
{
    return json_str_eq(json_get(answer, STR("action")), STR("accept"));
}

bool user_login_refuses(mcp_request *request, bay_str server)
{
    uint64_t round;
    json_val answer = answer_of(request, &round);
    if (round == 0 || is_accepted(answer)) {
        return false;
    }
    route_refuse(request, server, "declined", RPC_INVALID_PARAMS,
                 STR("The server wants a login of its user, who did not agree to it"), false);
    return true;
}

bay_err user_login_strip(const mcp_request *request, json_val *params)
{
    static const bay_str ours = STR_INIT("inputResponses");
    uint64_t round;
    json_builder made;
    (void)answer_of(request, &round);
    if (round == 0) {
        return BAY_OK;
    }
    json_writer *out =
        json_builder_init(&made, request->memory, json_raw(*params).len + RESULT_BYTES);
    json_open_object(out);
    json_put_members(out, *params, &ours, 1);
    json_close_object(out);
    return json_builder_end(&made, params);
}

/* ---- the question ---------------------------------------------------------------------------- */

static void put_params(json_writer *out, bay_str server, bay_str url, bay_str id)
{
    buf text;
    buf_init(&text, LINK_BYTES);
    buf_printf(&text, "Log in at \"%.*s\", so that it can be used in your name", BAY_STR(server));
    json_open_object(out);
    json_key_lit(out, "mode");
    json_put_str(out, STR("url"));
    json_key_lit(out, "url");
    json_put_str(out, url);
    json_key_lit(out, "message");
    json_put_str(out, buf_view(&text));
    if (id.len > 0) {
        json_key_lit(out, "elicitationId");
        json_put_str(out, id);
    }
    json_close_object(out);
    buf_fini(&text);
}

static void ask_modern(mcp_request *request, bay_str server, bay_str url, uint64_t round)
{
    char key[sizeof(KEY) + 24];
    json_builder made;
    json_val result;
    json_writer *out = json_builder_init(&made, request->memory, RESULT_BYTES);
    (void)snprintf(key, sizeof(key), KEY "%llu", (unsigned long long)round);
    json_open_object(out);
    json_key_lit(out, "resultType");
    json_put_str(out, STR("input_required"));
    json_key_lit(out, "inputRequests");
    json_open_object(out);
    json_key(out, str_of(key));
    json_open_object(out);
    json_key_lit(out, "method");
    json_put_str(out, STR("elicitation/create"));
    json_key_lit(out, "params");
    put_params(out, server, url, STR(""));
    json_close_object(out);
    json_close_object(out);
    json_close_object(out);
    if (json_builder_end(&made, &result) == BAY_OK) {
        mcp_request_result(request, result);
    } else {
        endpoint_refuse_memory(request);
    }
}

static void ask_legacy(endpoint *of, mcp_request *request, bay_str server, bay_str url, bay_str id)
{
    json_builder made;
    json_val data;
    json_writer *out = json_builder_init(&made, request->memory, RESULT_BYTES);
    json_open_object(out);
    json_key_lit(out, "elicitations");
    json_open_array(out);
    put_params(out, server, url, id);
    json_close_array(out);
    json_close_object(out);
    if (json_builder_end(&made, &data) != BAY_OK) {
        endpoint_refuse_memory(request);
        return;
    }
    json_iter first = json_iter_of(json_get(data, STR("elicitations")));
    if (json_next(&first)) {
        endpoint_elicited(of, server, first.value, request->session);
    }
    mcp_request_error(request, ROUTE_URL_REQUIRED, STR("A login at the server is needed"),
                      json_raw(data));
}

static void new_id(char out[2 * ID_BYTES + 1])
{
    unsigned char bytes[ID_BYTES];
    rand_bytes(bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    }
}

bool user_login_ask(endpoint *of, mcp_request *request, bay_str server)
{
    unsigned inputs = mcp_inputs_of(request->revision, request->client_capabilities);
    bool is_modern = request->revision->era == MCP_MODERN;
    bool can_answer =
        !is_modern || (request->method != NULL && (request->method->flags & MCP_FLAG_MRTR) != 0);
    char id[2 * ID_BYTES + 1] = "";
    uint64_t round;
    buf url;
    (void)answer_of(request, &round);
    if ((inputs & MCP_INPUT_URL) == 0 || !can_answer || round >= USER_LOGIN_ROUNDS) {
        return false;
    }
    if (!is_modern) {
        new_id(id);
    }
    buf_init(&url, LINK_BYTES);
    bool is_asked = user_login_link(of, request, server, str_of(id), &url);
    if (is_asked && is_modern) {
        ask_modern(request, server, buf_view(&url), round + 1);
    } else if (is_asked) {
        ask_legacy(of, request, server, buf_view(&url), str_of(id));
    }
    buf_fini(&url);
    return is_asked;
}

/* ---- waiting for the user -------------------------------------------------------------------- */

/* Sent again: who still has no login waits on. */
static void try_again(void *argument)
{
    endpoint *self = argument;
    list now;
    list_link *link;
    list_init(&now);
    while ((link = list_pop(&self->logging_in)) != NULL) {
        list_push(&now, link);
    }
    self->logging_in_count = 0;
    while ((link = list_pop(&now)) != NULL) {
        route *one = CONTAINER_OF(link, route, link);
        route_send(one, one->call.upstream);
    }
}

bool user_login_waits(route *self, const mcp_outcome *outcome)
{
    endpoint *of = self->endpoint;
    uint64_t round;
    bool is_due = outcome->kind == MCP_OUTCOME_FAILED && outcome->login == MCP_LOGIN_USER &&
                  !outcome->was_sent && self->task == NULL && of->loop != NULL &&
                  of->user_login != NULL && !of->is_ending;
    if (!is_due || !is_accepted(answer_of(self->request, &round)) || round > USER_LOGIN_ROUNDS ||
        of->logging_in_count >= USER_LOGINS_WAITING) {
        return false;
    }
    uint64_t now_ms = endpoint_now_ms(of);
    self->until_ms = self->until_ms == 0 ? now_ms + USER_LOGIN_WAIT_MS : self->until_ms;
    if (now_ms >= self->until_ms ||
        (list_is_empty(&of->logging_in) &&
         loop_timer_start(of->loop, &of->login_timer, USER_LOGIN_STEP_MS) != BAY_OK)) {
        return false;
    }
    list_push(&of->logging_in, &self->link);
    of->logging_in_count++;
    return true;
}

void user_logins_init(endpoint *self)
{
    list_init(&self->logging_in);
    loop_timer_init(&self->login_timer, try_again, self);
}

void user_logins_end(endpoint *self)
{
    list_link *link;
    if (self->logging_in.head.next == NULL) {
        return; /* it was never made */
    }
    while ((link = list_pop(&self->logging_in)) != NULL) {
        route *one = CONTAINER_OF(link, route, link);
        mcp_request *request = one->request;
        buf server;
        buf_init(&server, CONFIG_NAME_BYTES);
        buf_str(&server, upstream_name(one->call.upstream));
        route_end(one);
        route_refuse(request, buf_view(&server), "auth_expired", RPC_INTERNAL_ERROR,
                     STR("The gateway's servers changed while the call waited for a login of its "
                         "user. It was not carried out; it can be tried again."),
                     false);
        buf_fini(&server);
    }
    self->logging_in_count = 0;
    if (self->loop != NULL) {
        loop_timer_stop(self->loop, &self->login_timer);
    }
}

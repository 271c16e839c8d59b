/* The client engine against a server that says anything at any time: no crash, no leak, no hang,
 * and every call ends exactly once. The input is a script: one byte says what happens, one says to
 * which exchange, one how long the bytes that follow are. In the bytes a '#' stands for an id of
 * ours, so that answers are sometimes meant for somebody. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "mcp/client.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CALLS = 8, TEXT = 512 };

typedef struct peer {
    mcp_client *client;
    uint64_t last; /* newest exchange */
    uint64_t now;
    bool is_slow;
    size_t messages;
} peer;

typedef struct one_call {
    peer *on;
    mcp_call *call; /* while it is open */
    int done;
    bool was_started;
    bool was_cancelled;
} one_call;

static bay_err link_send(void *link, uint64_t exchange, bay_str message, const mcp_field *fields,
                         size_t count, uint32_t timeout_ms)
{
    peer *self = link;
    (void)timeout_ms;
    if (message.len == 0 || message.at[0] != '{' || memchr(message.at, '\n', message.len) != NULL) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        if (memchr(fields[i].value.at, '\n', fields[i].value.len) != NULL) {
            abort();
        }
    }
    self->last = exchange != 0 ? exchange : self->last;
    self->messages++;
    return self->is_slow ? BAY_ERR_AGAIN : BAY_OK;
}

static void link_abandon(void *link, uint64_t exchange)
{
    (void)link;
    if (exchange == 0) {
        abort();
    }
}

static bay_err link_listen(void *link, uint64_t exchange, const mcp_field *fields, size_t count)
{
    peer *self = link;
    (void)fields;
    (void)count;
    self->last = exchange;
    return BAY_OK;
}

static void link_fall_back(void *link)
{
    (void)link;
}

static bool on_asked(void *user, mcp_call *call, const rpc_message *request)
{
    one_call *self = user;
    (void)call;
    mcp_client_answer(self->on->client, request->id, STR("{}"), 0, (bay_str){0});
    return true;
}

static void on_done(void *user, mcp_call *call, const mcp_outcome *outcome)
{
    one_call *self = user;
    (void)call;
    (void)json_raw(outcome->result);
    if (outcome->kind == MCP_OUTCOME_FAILED && outcome->text == NULL) {
        abort();
    }
    self->done++;
    self->call = NULL;
}

static const mcp_call_events call_events = {.asked = on_asked, .done = on_done};

static void start_call(peer *self, one_call *call, const char *method)
{
    mcp_call_spec spec = {.method = str_of(method),
                          .rename = STR("n\xc3\xa9"),
                          .log_level = MCP_LOG_NONE,
                          .wants_progress = true,
                          .timeout_ms = 1000};
    if (call->was_started) {
        return;
    }
    call->on = self;
    call->was_started = mcp_client_call(self->client, &spec, &call_events, call, self->now,
                                        &call->call, NULL) == BAY_OK;
}

/* '#' -> id; at most TEXT bytes. */
static bay_str expand(const uint8_t *data, size_t size, uint64_t id, char *out)
{
    size_t len = 0;
    for (size_t i = 0; i < size && len + 24 < TEXT; i++) {
        if (data[i] != '#') {
            out[len++] = (char)data[i];
            continue;
        }
        char digits[24];
        size_t count = 0;
        for (uint64_t rest = id; count == 0 || rest > 0; rest /= 10) {
            digits[count++] = (char)('0' + rest % 10);
        }
        while (count > 0) {
            out[len++] = digits[--count];
        }
    }
    return (bay_str){out, len};
}

static void cancel_call(one_call *call)
{
    if (call->call != NULL) {
        mcp_call *open = call->call;
        call->call = NULL;
        call->was_cancelled = true;
        mcp_call_cancel(open, STR("enough"));
    }
}

static void step(peer *self, one_call *calls, uint8_t what, uint64_t exchange, bay_str text,
                 bay_str exact)
{
    static const int statuses[] = {200, 202, 400, 401, 404, 405, 500, 503};
    static const char *const methods[] = {"tools/list", "tools/call", "resources/read", "x/y"};
    one_call *call = &calls[what / 16 % CALLS];
    switch (what % 16) {
    case 0:
    case 1:
        mcp_client_receive(self->client, exchange, exact, (bay_str){0}, self->now);
        return;
    case 2:
        mcp_client_receive(self->client, exchange, exact, str_head(text, 4), self->now);
        return;
    case 3:
        mcp_client_head(self->client, exchange, statuses[what / 16 % 8], str_head(text, 8),
                        self->now);
        return;
    case 4:
        mcp_client_ended(self->client, exchange, BAY_OK, true, NULL, self->now);
        return;
    case 5:
        mcp_client_ended(self->client, exchange, BAY_ERR_CLOSED, what >= 128, "cut", self->now);
        return;
    case 6:
        self->now += (uint64_t)100 << (what / 16);
        (void)mcp_client_tick(self->client, self->now);
        return;
    case 7:
        mcp_client_event_hint(self->client, exchange, str_head(text, 4), what);
        return;
    case 8:
        cancel_call(call);
        return;
    case 9:
        (void)!mcp_client_subscribe(self->client, str_head(text, 3), what >= 128, self->now);
        return;
    case 10:
        mcp_client_broken(self->client, BAY_ERR_EXITED, NULL, self->now);
        return;
    case 11:
        mcp_client_opened(self->client, self->now);
        return;
    case 12:
        self->is_slow = what >= 128;
        mcp_client_drained(self->client);
        return;
    case 13:
        mcp_client_relinked(self->client, MCP_LINK_SSE_2024, self->now);
        return;
    default:
        start_call(self, call, methods[what / 16 % 4]);
        return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const mcp_client_events events = {0};
    static const mcp_link_ops ops = {.send = link_send,
                                     .abandon = link_abandon,
                                     .listen = link_listen,
                                     .fall_back = link_fall_back};
    peer self = {.now = 1};
    one_call calls[CALLS] = {0};
    if (size < 2) {
        return 0;
    }
    mcp_client_options options = {.name = STR("f"),
                                  .version = STR("1"),
                                  .link_kind = (mcp_link_kind)(data[0] % 2),
                                  .oldest = MCP_REV_2024_11_05,
                                  .newest = MCP_LATEST,
                                  .max_message_bytes = 400,
                                  .wants_changes = data[0] >= 128};
    if (data[1] % 8 < MCP_REVISION_COUNT) {
        options.remembered = mcp_revision_of((mcp_revision_id)(data[1] % 8));
    }
    if (mcp_client_new(&options, &events, &self, &ops, &self, &self.client) != BAY_OK) {
        return 0;
    }
    mcp_client_opened(self.client, self.now);
    for (size_t at = 2; at + 3 <= size;) {
        uint8_t what = data[at], whom = data[at + 1];
        size_t len = data[at + 2] < size - at - 3 ? data[at + 2] : size - at - 3;
        uint64_t back = whom % 8;
        uint64_t id = self.last > back ? self.last - back : self.last;
        char expanded[TEXT];
        bay_str text = expand(data + at + 3, len, id, expanded);
        char *copy = malloc(text.len + 1); /* exact: a byte read too far is seen */
        if (copy == NULL) {
            break;
        }
        memcpy(copy, text.at, text.len);
        step(&self, calls, what, whom >= 200 ? 0 : id, text, (bay_str){copy, text.len});
        free(copy);
        at += 3 + len;
    }
    mcp_client_free(self.client);
    for (size_t i = 0; i < CALLS; i++) {
        if (calls[i].done != (calls[i].was_started && !calls[i].was_cancelled ? 1 : 0)) {
            abort();
        }
    }
    return 0;
}

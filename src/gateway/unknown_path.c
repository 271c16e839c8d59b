/* What is said at a path where this gateway has nothing: which kind of name is unknown, and where
 * its operator finds the names. Names are not told: whoever asks may be anybody. */
#include "base/str.h"
#include "front/http_reply.h"
#include "gateway/worker.h"
#include "rpc/message.h"

enum { SHOWN_BYTES = 64 };

/* The name behind such a prefix, up to the next slash, as far as it is shown. */
static bool is_below(bay_str path, bay_str prefix, bay_str *out_name)
{
    if (!str_starts(path, prefix)) {
        return false;
    }
    bay_str rest = str_from(path, prefix.len);
    bay_str name = str_head(rest, str_find(rest, '/'));
    *out_name = str_head(name, SHOWN_BYTES);
    return true;
}

static bool is_card(bay_str path)
{
    return str_eq(path, STR("/.well-known/agent-card.json")) ||
           str_eq(path, STR("/.well-known/agent.json"));
}

static void reply_nothing(http_exchange *exchange)
{
    http_field fields[HTTP_REPLY_FIELDS];
    size_t count = http_reply_cors(exchange, fields, 0);
    http_exchange_reply(exchange, 404, fields, count, STR(""));
}

void worker_unknown_path(void *user, http_exchange *exchange)
{
    (void)user;
    bay_str path = http_exchange_path(exchange);
    bay_str name;
    char text[400];
    buf out = {.at = text, .cap = sizeof(text) - 1, .max = sizeof(text) - 1};
    if (is_below(path, STR("/mcp/@"), &name)) {
        buf_printf(&out,
                   "this gateway has no profile \"%.*s\" (path /mcp/@NAME; all servers are at "
                   "/mcp). Its operator finds the names in its configuration, under profiles",
                   BAY_STR(name));
    } else if (is_below(path, STR("/mcp/"), &name)) {
        buf_printf(&out,
                   "this gateway has no server \"%.*s\" (path /mcp/NAME; all servers are at "
                   "/mcp). Its operator finds the names in its configuration, under mcpServers",
                   BAY_STR(name));
    } else if (is_below(path, STR("/a2a/"), &name)) {
        buf_printf(&out,
                   "this gateway has no agent \"%.*s\" (path /a2a/NAME). Its operator finds the "
                   "names in its configuration, under agents",
                   BAY_STR(name));
    } else if (is_card(path)) {
        buf_lit(&out, "this gateway is no agent and has no card of its own: an agent's is at "
                      "/a2a/NAME/.well-known/agent-card.json. Its operator finds the names in its "
                      "configuration, under agents");
    } else {
        reply_nothing(exchange);
        return;
    }
    text[out.len] = '\0';
    front_reply_error(exchange, 404, RPC_INVALID_REQUEST, text);
}

/* /healthz and /readyz on the clients' listeners: is it alive, is it ready, and each server as this
 * loop sees it. What operators see of all loops is the admin API (admin.h). */
#include <string.h>

#include "base/str.h"
#include "gateway/grader.h"
#include "gateway/worker.h"
#include "json/writer.h"

static void write_sessions(json_writer *writer, const upstream *server)
{
    upstream_count count = upstream_count_of(server);
    json_key_lit(writer, "sessions");
    json_put_uint(writer, count.links);
    if (upstream_config(server)->command.len > 0) {
        json_key_lit(writer, "processes");
        json_put_uint(writer, count.processes);
        json_key_lit(writer, "circuit");
        json_put_str(writer, str_of(count.circuit));
    }
    json_key_lit(writer, "waiting");
    json_put_uint(writer, count.waiting);
    json_key_lit(writer, "refusedQuestions");
    json_put_uint(writer, count.refused_questions);
}

/* What helps to find a mistake also helps an attacker: errors quote commands, paths, addresses and
 * what a process wrote to stderr. They are for whoever is on this machine, and in the log. */
static void write_errors(json_writer *writer, const upstream *server)
{
    if (upstream_error(server)[0] != '\0') {
        json_key_lit(writer, "error");
        json_put_str(writer, str_of(upstream_error(server)));
    }
    if (upstream_last_break(server)[0] != '\0') {
        json_key_lit(writer, "restartedFor");
        json_put_str(writer, str_of(upstream_last_break(server)));
    }
    if (upstream_process_id(server) > 0) {
        json_key_lit(writer, "pid");
        json_put_int(writer, upstream_process_id(server));
    }
}

static void write_server(json_writer *writer, const worker_upstream *at)
{
    const upstream *server = at->upstream;
    const mcp_revision *revision = upstream_revision(server);
    json_open_object(writer);
    json_key_lit(writer, "name");
    json_put_str(writer, upstream_name(server));
    json_key_lit(writer, "state");
    json_put_str(writer, str_of(upstream_state_text(upstream_state_of(server))));
    if (at->worker->gateway->is_local) {
        write_errors(writer, server);
    }
    json_key_lit(writer, "revision");
    if (revision != NULL) {
        json_put_str(writer, revision->text);
    } else {
        json_put_null(writer);
    }
    json_key_lit(writer, "transport");
    json_put_str(writer, upstream_config(server)->agent.len > 0     ? STR("agent")
                         : upstream_config(server)->command.len > 0 ? STR("stdio")
                                                                    : STR("http"));
    json_key_lit(writer, "restarts");
    json_put_uint(writer, upstream_restarts(server));
    write_sessions(writer, server);
    static const bay_str names[LISTING_KINDS] = {STR_INIT("tools"), STR_INIT("resources"),
                                                 STR_INIT("resourceTemplates"),
                                                 STR_INIT("prompts")};
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        json_key(writer, names[kind]);
        json_put_uint(writer,
                      at->fetches[kind].current != NULL ? at->fetches[kind].current->count : 0);
    }
    gateway_contracts_write(at->worker->contracts, upstream_name(server),
                            at->worker->gateway->is_local, writer);
    gateway_grade_write(at->worker->pins, upstream_name(server), writer);
    json_close_object(writer);
}

static void write_state(worker *self, buf *out)
{
    json_writer writer;
    json_writer_init(&writer, out);
    bool is_degraded = false;
    for (size_t i = 0; i < self->upstream_count; i++) {
        const upstream *server = self->upstreams[i]->upstream;
        is_degraded = is_degraded || upstream_is_down(server) ||
                      gateway_contracts_hold(self->contracts, upstream_name(server)) ||
                      gateway_grade_holds(self->pins, upstream_name(server));
    }
    json_open_object(&writer);
    json_key_lit(&writer, "status");
    json_put_str(&writer, !self->is_settled ? STR("starting")
                          : is_degraded     ? STR("degraded")
                                            : STR("ready"));
    json_key_lit(&writer, "version");
    json_put_str(&writer, str_of(bay_version()));
    json_key_lit(&writer, "servers");
    json_open_array(&writer);
    for (size_t i = 0; i < self->upstream_count; i++) {
        write_server(&writer, self->upstreams[i]);
    }
    json_close_array(&writer);
    if (self->agents != NULL && agents_count(self->agents) > 0) {
        json_key_lit(&writer, "agents");
        json_open_array(&writer);
        agents_write_state(self->agents, self->gateway->is_local, &writer);
        json_close_array(&writer);
    }
    json_close_object(&writer);
}

static void reply_json(http_exchange *exchange, int status, bay_str body)
{
    static const http_field fields[] = {
        {STR_INIT("Content-Type"), STR_INIT("application/json")},
        {STR_INIT("Cache-Control"), STR_INIT("no-store")},
    };
    http_exchange_reply(exchange, status, fields, ARRAY_LEN(fields), body);
}

static bool is_read(http_exchange *exchange)
{
    bay_str method = http_exchange_method(exchange);
    if (str_eq(method, STR("GET")) || str_eq(method, STR("HEAD"))) {
        return true;
    }
    static const http_field allow = {STR_INIT("Allow"), STR_INIT("GET, HEAD")};
    http_exchange_reply(exchange, 405, &allow, 1, (bay_str){NULL, 0});
    return false;
}

void health_serve(http_exchange *exchange)
{
    if (is_read(exchange)) {
        reply_json(exchange, 200, STR("{\"status\":\"ok\"}"));
    }
}

void health_greet(http_exchange *exchange)
{
    static const bay_str text =
        STR_INIT("This is Patchbay, a gateway to MCP servers and A2A agents.\n"
                 "MCP clients connect to /mcp at this address; agents are at /a2a.\n");
    static const bay_str page =
        STR_INIT("<!doctype html><title>Patchbay</title>\n"
                 "<p>This is Patchbay, a gateway to MCP servers and A2A agents.</p>\n"
                 "<p>MCP clients connect to <code>/mcp</code> at this address; agents are at "
                 "<code>/a2a</code>.</p>\n");
    if (!is_read(exchange)) {
        return;
    }
    bay_str accept = http_exchange_field(exchange, STR("Accept"));
    bool is_browser = accept.len > 0 && memmem(accept.at, accept.len, "text/html", 9) != NULL;
    const http_field fields[] = {
        {STR("Content-Type"),
         is_browser ? STR("text/html; charset=utf-8") : STR("text/plain; charset=utf-8")},
        {STR("Content-Security-Policy"), STR("default-src 'none'")},
        {STR("Cache-Control"), STR("no-store")},
        {STR("Vary"), STR("Accept")},
    };
    http_exchange_reply(exchange, 200, fields, ARRAY_LEN(fields), is_browser ? page : text);
}

void health_serve_ready(worker *self, http_exchange *exchange)
{
    if (!is_read(exchange)) {
        return;
    }
    buf out;
    buf_init(&out, 16 << 20);
    write_state(self, &out);
    /* one dead server does not make the gateway unready: the others are served */
    reply_json(exchange, self->is_settled && out.err == BAY_OK ? 200 : 503, buf_view(&out));
    buf_fini(&out);
}

/* Our HTTP server answering a canned reply: what the server itself costs over the floor.
 *
 *     http_hello [PORT] [async]   0 or nothing: a free port, printed on stdout. async: the reply is
 *                                 made at the end of the turn instead of inside the handler. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "http/http_server.h"

static const char answer[] =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\",\"content\":[{\"type\":"
    "\"text\",\"text\":\"17 degrees and cloudy, light wind from the west, no rain before tonight, "
    "sunset at twenty\"}],\"isError\":false}}";

static const http_field fields[] = {{STR_INIT("Content-Type"), STR_INIT("application/json")}};

static void reply(void *argument)
{
    http_exchange_reply(argument, 200, fields, 1, (bay_str){answer, sizeof(answer) - 1});
}

static void on_request(void *user, http_exchange *exchange)
{
    (void)user;
    reply(exchange);
}

static void on_request_later(void *user, http_exchange *exchange)
{
    (void)user;
    arena *memory = http_exchange_arena(exchange);
    loop_task *task = arena_zalloc(memory, sizeof(loop_task));
    if (task == NULL) {
        http_exchange_abort(exchange);
        return;
    }
    *task = (loop_task){.function = reply, .argument = exchange};
    loop_defer(http_exchange_loop(exchange), task);
}

static void on_closed(void *user, http_exchange *exchange, bool is_complete)
{
    (void)user;
    (void)exchange;
    (void)is_complete;
}

int main(int argc, char **argv)
{
    static const http_handler now = {.request = on_request, .closed = on_closed};
    static const http_handler later = {.request = on_request_later, .closed = on_closed};
    char address[64];
    snprintf(address, sizeof(address), "127.0.0.1:%s", argc > 1 ? argv[1] : "0");
    bool is_later = argc > 2 && strcmp(argv[2], "async") == 0;
    http_server_options options = {.limits = http_server_default_limits,
                                   .handler = is_later ? &later : &now};
    loop *runs_on = NULL;
    http_server *server = NULL;
    bay_diag diag = {.code = BAY_OK};
    if (loop_new(&runs_on) != BAY_OK || http_server_new(runs_on, &options, &server) != BAY_OK ||
        http_server_listen(server, str_of(address), &diag) != BAY_OK) {
        fprintf(stderr, "http_hello: %s\n", diag.text);
        return 1;
    }
    printf("%u\n", http_server_port(server));
    fflush(stdout);
    loop_run(runs_on);
    http_server_free(server);
    loop_free(runs_on);
    return 0;
}

/* What bench/peers measures of ours: the same server as the peers', one tool that greets.
 *
 *     peer_hello [--http 127.0.0.1:0] */
#include <patchbay/server.h>

static void hello(bay_call *call, void *user)
{
    bay_str name = bay_call_str(call, "name");
    (void)user;
    bay_call_replyf(call, "Hello, %.*s", BAY_STR(name));
}

int main(int argc, char **argv)
{
    bay_server *server = bay_server_new("hello", "1.0.0");
    bay_server_tool_schema(server, "hello", "Greets somebody.",
                           "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}},"
                           "\"required\":[\"name\"]}",
                           hello, NULL);
    return bay_server_main(server, argc, argv);
}

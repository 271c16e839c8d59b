/* An SDK server whose one tool gives a canned answer, as the floor does: what the SDK itself costs.
 *
 *     sdk_hello --http 127.0.0.1:0 */
#include <patchbay/server.h>

static void hello(bay_call *call, void *user)
{
    (void)user;
    bay_call_reply(call, "17 degrees and cloudy, light wind from the west, no rain before tonight");
}

int main(int argc, char **argv)
{
    bay_server *server = bay_server_new("hello", "1.0.0");
    bay_server_tool_schema(
        server, "get_weather", "A canned answer.",
        "{\"type\":\"object\",\"properties\":{\"location\":{\"type\":\"string\"}},"
        "\"required\":[\"location\"]}",
        hello, NULL);
    return bay_server_main(server, argc, argv);
}

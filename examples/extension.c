/* An extension of one's own: a capability with settings, and a method outside the protocol's. */
#include <patchbay/server.h>
#include <time.h>

static void get_time(bay_call *call, void *user)
{
    (void)user;
    if (!bay_call_client_has(call, "extensions.com.example/clock")) {
        bay_call_error(call, -32602, "Declare the extension com.example/clock first");
        return;
    }
    bay_json *json = bay_json_new();
    bay_json_object(json, NULL);
    bay_json_int(json, "seconds", time(NULL));
    bay_json_end(json);
    bay_call_finish_json(call, json);
}

int main(int argc, char **argv)
{
    bay_server *server = bay_server_new("extension", "1.0.0");
    bay_server_extension(server, "com.example/clock", "{\"resolution\":\"s\"}");
    bay_server_method(server, "com.example/clock/get", get_time, NULL);
    return bay_server_main(server, argc, argv);
}

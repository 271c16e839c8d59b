/* A tool whose results a host can show in a page of ours (the apps extension). Other hosts show the
 * text. */
#include <patchbay/server.h>
#include <stdlib.h>

static const char page[] =
    "<!doctype html><title>Dice</title><output id=dice>?</output><script>"
    "addEventListener('message', ({data}) => {"
    "  const result = data.params?.structuredContent;"
    "  if (result) document.getElementById('dice').textContent = result.eyes;"
    "});</script>";

static void roll(bay_call *call, void *user)
{
    int eyes = 1 + rand() % 6;
    (void)user;
    bay_json *json = bay_json_new();
    bay_json_object(json, NULL);
    bay_json_int(json, "eyes", eyes);
    bay_json_end(json);
    bay_result *result = bay_result_new(call);
    bay_result_textf(result, "You rolled a %d.", eyes);
    bay_result_structured_json(result, json);
    bay_call_finish(call, result);
}

int main(int argc, char **argv)
{
    bay_server *server = bay_server_new("apps", "1.0.0");
    bay_server_ui(server, "ui://dice", "Dice", page, "{\"prefersBorder\":true}");
    bay_tool *tool = bay_server_tool(server, "roll", "Rolls a die.", NULL, roll, NULL);
    bay_tool_ui(tool, "ui://dice");
    return bay_server_main(server, argc, argv);
}

/* A tool whose results a host can show in a page of ours (the apps extension). Other hosts show the
 * text. */
#include <patchbay/server.h>
#include <stdio.h>
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
    char json[32];
    (void)user;
    snprintf(json, sizeof(json), "{\"eyes\":%d}", eyes);
    bay_result *result = bay_result_new(call);
    bay_result_textf(result, "You rolled a %d.", eyes);
    bay_result_structured(result, json);
    bay_call_finish(call, result);
}

int main(int argc, char **argv)
{
    bay_server *server = bay_server_new("apps", "1.0.0");
    bay_server_ui(server, "ui://dice", "Dice", page, "{\"prefersBorder\":true}");
    bay_tool *tool =
        bay_server_tool_schema(server, "roll", "Rolls a die.", "{\"type\":\"object\"}", roll, NULL);
    bay_tool_ui(tool, "ui://dice");
    return bay_server_main(server, argc, argv);
}

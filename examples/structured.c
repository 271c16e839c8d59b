/* Arguments that were checked, and a result that a program can read. A call whose arguments break
 * the schema never gets here: the model is told what to mend. A result that breaks the output
 * schema never leaves. */
#include <patchbay/server.h>
#include <stdio.h>

static const char input[] = "{\"type\":\"object\",\"properties\":{"
                            "\"width\":{\"type\":\"number\",\"exclusiveMinimum\":0},"
                            "\"height\":{\"type\":\"number\",\"exclusiveMinimum\":0},"
                            "\"unit\":{\"enum\":[\"m\",\"ft\"],\"default\":\"m\"}},"
                            "\"required\":[\"width\",\"height\"],\"additionalProperties\":false}";
static const char output[] = "{\"type\":\"object\",\"properties\":{"
                             "\"area\":{\"type\":\"number\"},\"unit\":{\"type\":\"string\"}},"
                             "\"required\":[\"area\",\"unit\"]}";

static void get_area(bay_call *call, void *user)
{
    (void)user;
    double width = 0;
    double height = 0;
    if (bay_call_double(call, "width", &width) != BAY_OK ||
        bay_call_double(call, "height", &height) != BAY_OK) {
        bay_call_fail(call, "The sides do not fit into a double.");
        return;
    }
    bay_str unit = bay_call_str(call, "unit");
    char json[128];
    snprintf(json, sizeof(json), "{\"area\":%.9g,\"unit\":\"%.*s2\"}", width * height,
             unit.len > 0 ? (int)unit.len : 1, unit.len > 0 ? unit.at : "m");
    bay_result *result = bay_result_new(call);
    bay_result_structured(result, json);
    bay_call_finish(call, result);
}

int main(int argc, char **argv)
{
    bay_server *server = bay_server_new("structured", "1.0.0");
    bay_tool *tool = bay_server_tool_schema(server, "get_area", "The area of a rectangle.", input,
                                            get_area, NULL);
    bay_tool_output_schema(tool, output);
    return bay_server_main(server, argc, argv);
}

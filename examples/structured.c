/* Arguments that were checked, and a result that a program can read. A call whose arguments break
 * the table never gets here: the model is told what to mend. A result that breaks the table of the
 * output never leaves. */
#include <patchbay/server.h>

static const char *const units[] = {"m", "ft", NULL};
static const bay_field input[] = {
    {"width", BAY_TYPE_NUMBER, .is_required = true, .above = "0"},
    {"height", BAY_TYPE_NUMBER, .is_required = true, .above = "0"},
    {"unit", BAY_TYPE_STRING, .choices = units, .default_value = "m"},
    {0},
};
static const bay_field output[] = {
    {"area", BAY_TYPE_NUMBER, .is_required = true},
    {"unit", BAY_TYPE_STRING, .is_required = true},
    {0},
};

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
    bay_json *json = bay_json_new();
    bay_json_object(json, NULL);
    bay_json_double(json, "area", width * height);
    bay_json_textf(json, "unit", "%.*s2", BAY_STR(bay_call_str(call, "unit")));
    bay_json_end(json);
    bay_call_reply_json(call, json);
}

int main(int argc, char **argv)
{
    bay_server *server = bay_server_new("structured", "1.0.0");
    bay_tool *tool =
        bay_server_tool(server, "get_area", "The area of a rectangle.", input, get_area, NULL);
    bay_tool_output(tool, output);
    return bay_server_main(server, argc, argv);
}

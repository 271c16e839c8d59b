/* Typical weather of some cities, from a table: the smallest useful server. */
#include <patchbay/server.h>
#include <string.h>
#include <strings.h>

typedef struct city {
    const char *name;
    const char *country;
    int celsius; /* mean over the year */
    int millimetres;
    const char *sky;
} city;

static const city cities[] = {
    {"Amsterdam", "Netherlands", 10, 838, "cloudy, often windy"},
    {"Athens", "Greece", 19, 397, "mostly clear"},
    {"Berlin", "Germany", 10, 570, "cloudy"},
    {"Buenos Aires", "Argentina", 18, 1237, "humid, partly cloudy"},
    {"Cairo", "Egypt", 22, 25, "clear"},
    {"Helsinki", "Finland", 6, 655, "cloudy"},
    {"Lagos", "Nigeria", 27, 1506, "humid, partly cloudy"},
    {"Lima", "Peru", 19, 13, "overcast, mist"},
    {"London", "United Kingdom", 11, 601, "cloudy, light rain"},
    {"Mexico City", "Mexico", 17, 820, "partly cloudy"},
    {"Mumbai", "India", 27, 2213, "humid, monsoon rain"},
    {"Nairobi", "Kenya", 19, 958, "partly cloudy"},
    {"New York", "United States", 13, 1174, "partly cloudy"},
    {"Oslo", "Norway", 6, 763, "cloudy"},
    {"Paris", "France", 12, 637, "cloudy"},
    {"Reykjavik", "Iceland", 5, 798, "overcast, windy"},
    {"Santiago", "Chile", 15, 312, "mostly clear"},
    {"Seoul", "South Korea", 12, 1418, "partly cloudy"},
    {"Sydney", "Australia", 18, 1213, "mostly clear"},
    {"Tokyo", "Japan", 16, 1598, "cloudy"},
    {"Vancouver", "Canada", 11, 1189, "overcast, rain"},
    {"Zurich", "Switzerland", 10, 1134, "cloudy"},
};
enum { CITIES = sizeof(cities) / sizeof(cities[0]) };

static const city *find(bay_str name)
{
    for (int i = 0; i < CITIES; i++) {
        if (strlen(cities[i].name) == name.len &&
            strncasecmp(cities[i].name, name.at, name.len) == 0) {
            return &cities[i];
        }
    }
    return NULL;
}

static void get_weather(bay_call *call, void *user)
{
    bay_str name = bay_call_str(call, "location"); /* there, and a string: the schema was checked */
    const city *found = find(name);
    (void)user;
    if (found == NULL) {
        bay_call_failf(call, "There is no city \"%.*s\" in the table; list_cities tells which are.",
                       BAY_STR(name));
        return;
    }
    bay_call_replyf(call, "%s, %s: %d °C on average, %s, %d mm of rain a year", found->name,
                    found->country, found->celsius, found->sky, found->millimetres);
}

static void list_cities(bay_call *call, void *user)
{
    bay_result *result = bay_result_new(call);
    (void)user;
    for (int i = 0; i < CITIES; i++) {
        bay_result_textf(result, "%s, %s", cities[i].name, cities[i].country);
    }
    bay_call_finish(call, result);
}

static const bay_field input[] = {
    {"location", BAY_TYPE_STRING, "Name of the city", .is_required = true}, {0}};

int main(int argc, char **argv)
{
    bay_server *server = bay_server_new("weather", "1.0.0");
    bay_tool *tool = bay_server_tool(server, "get_weather", "Typical weather of a city.", input,
                                     get_weather, NULL);
    bay_tool_annotations(tool, "{\"readOnlyHint\":true,\"openWorldHint\":false}");
    tool = bay_server_tool(server, "list_cities", "The cities that get_weather knows.", NULL,
                           list_cities, NULL);
    bay_tool_annotations(tool, "{\"readOnlyHint\":true,\"openWorldHint\":false}");
    return bay_server_main(server, argc, argv);
}

/* The weather of some cities in C; see ../../docs/compare.md. */
#include <patchbay/server.h>

typedef struct weather {
    const char *city, *sky;
    double degrees;
} weather;

static weather cities[] = {
    {"Athens", "clear", 19}, {"Bergen", "rainy", 8}, {"Berlin", "cloudy", 10}, {0}};
static const char *const names[] = {"Athens", "Bergen", "Berlin", NULL};
static const char *const units[] = {"C", "F", NULL};

#define STRING BAY_TYPE_STRING, .is_required = true
#define NUMBER BAY_TYPE_NUMBER, .is_required = true
#define CITY "city", STRING, .description = "Name of the city"
#define DAYS "days", BAY_TYPE_INTEGER, "How many", .min = "1", .max = "14", .default_value = "3"
#define UNIT "unit", BAY_TYPE_STRING, .choices = units, .default_value = "C"
static const bay_field weather_in[] = {{CITY}, {UNIT}, {0}};
static const bay_field weather_out[] = {
    {"city", STRING}, {"degrees", NUMBER}, {"sky", STRING}, {0}};
static const bay_field day[] = {{"day", NUMBER}, {"degrees", NUMBER}, {0}};
static const bay_field each = {.type = BAY_TYPE_OBJECT, .fields = day};
static const bay_field forecast_in[] = {{CITY}, {DAYS}, {0}};
static const bay_field forecast_out[] = {
    {"city", STRING}, {"days", BAY_TYPE_ARRAY, .items = &each}, {0}};
static const bay_field place[] = {{CITY, .choices = names}, {0}}, stay[] = {{DAYS}, {0}};

/* In the table that a handler is given, the city that its call is about. NULL: the call has failed. */
static weather *find(bay_call *call, weather *one)
{
    bay_str city = bay_call_str_or(call, "city", NULL);
    city = city.at != NULL ? city : bay_call_variable(call, "city");
    while (one->city != NULL && !bay_str_eq_c(city, one->city)) {
        one++;
    }
    if (one->city != NULL) {
        return one;
    }
    bay_call_failf(call, "There is no city \"%.*s\".", BAY_STR(city));
    return NULL;
}

static void get_weather(bay_call *call, void *user)
{
    weather *found = find(call, user);
    if (found == NULL) {
        return;
    }
    bool is_celsius = bay_str_eq_c(bay_call_str_or(call, "unit", "C"), "C");
    bay_json *json = bay_json_new();
    bay_json_object(json, NULL);
    bay_json_text(json, "city", found->city);
    bay_json_double(json, "degrees", is_celsius ? found->degrees : found->degrees * 1.8 + 32);
    bay_json_text(json, "sky", found->sky);
    bay_json_end(json);
    bay_call_reply_json(call, json);
}

static void get_forecast(bay_call *call, void *user)
{
    weather *found = find(call, user);
    if (found == NULL) {
        return;
    }
    bay_json *json = bay_json_new();
    bay_json_object(json, NULL);
    bay_json_text(json, "city", found->city);
    bay_json_array(json, "days");
    for (int64_t i = 1; i <= bay_call_int_or(call, "days", 0); i++) {
        bay_json_object(json, NULL);
        bay_json_int(json, "day", i);
        bay_json_double(json, "degrees", found->degrees + (double)(i % 3));
        bay_json_end(json);
    }
    bay_json_end(json);
    bay_json_end(json);
    bay_call_reply_json(call, json);
}

static void planned(bay_call *call, const bay_answer *answer, void *user)
{
    weather *found = user;
    if (bay_answer_action(answer) != BAY_ACTION_ACCEPT) {
        bay_call_fail(call, "Nobody said how long.");
        return;
    }
    bay_call_replyf(call, "%.*s days in %s: %s, %g °C.", BAY_STR(bay_answer_str(answer, "days")),
                    found->city, found->sky, found->degrees);
}

static void plan_trip(bay_call *call, void *user)
{
    weather *found = find(call, user);
    bay_call_elicitf(call, stay, planned, found, "How many days in %s?", found->city);
}

static void packing_list(bay_call *call, void *user)
{
    weather *found = find(call, user);
    bay_call_replyf(call, "What shall I pack for %s, where it is %s?", found->city, found->sky);
}

int main(int argc, char **argv)
{
    bay_server *server = bay_server_new("weather", "1.0.0");
    bay_tool *tool = bay_server_tool(server, "get_weather", "The weather of a city.", weather_in,
                                     get_weather, cities);
    bay_tool_output(tool, weather_out);
    bay_tool_annotations(tool, "{\"readOnlyHint\":true}");
    tool = bay_server_tool(server, "get_forecast", "The next days in a city.", forecast_in,
                           get_forecast, cities);
    bay_tool_output(tool, forecast_out);
    bay_tool_annotations(tool, "{\"readOnlyHint\":true}");
    bay_server_tool(server, "plan_trip", "Plans a trip; asks how long.", place, plan_trip, cities);
    bay_server_template(server, "weather://{city}", "weather", "The weather of a city.",
                        "application/json", get_weather, cities);
    bay_server_prompt(server, "packing_list", "What to take along.", place, packing_list, cities);
    return bay_server_main(server, argc, argv);
}

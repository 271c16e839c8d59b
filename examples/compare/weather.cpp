// The weather of some cities in C++; see ../../docs/compare.md.
#include <patchbay/patchbay.hpp>

#include <map>

namespace bay = patchbay;

struct weather {
    double degrees;
    std::string sky;
};
static const std::map<std::string, weather, std::less<>> cities = {
    {"Athens", {19, "clear"}}, {"Bergen", {8, "rainy"}}, {"Berlin", {10, "cloudy"}}};

static const bay::field city = bay::string("city", "Name of the city").required();
static const bay::field days = bay::integer("days", "How many").min(1).max(14).default_value(3);
static const bay::field unit = bay::string("unit").choices({"C", "F"}).default_value("C");
static const bay::field degrees = bay::number("degrees").required();
static const bay::field day = bay::object("", {bay::integer("day").required(), degrees});

// NULL: the call has failed.
static const weather *find(bay::call &call, std::string_view name)
{
    auto found = cities.find(name);
    if (found == cities.end()) {
        call.fail(bay::text("There is no city \"", name, "\"."));
        return nullptr;
    }
    return &found->second;
}

static void get_weather(bay::call &call) // of the tool, and of the template
{
    std::string_view name = call.has("city") ? call.str("city") : call.variable("city");
    if (const weather *found = find(call, name)) {
        double shown = call.str("unit") == "F" ? found->degrees * 1.8 + 32 : found->degrees;
        call.reply(bay::object({{"city", name}, {"degrees", shown}, {"sky", found->sky}}));
    }
}

static void get_forecast(bay::call &call)
{
    if (const weather *found = find(call, call.str("city"))) {
        bay::json all;
        all.array();
        for (int64_t i = 1; i <= call.int_or("days", 0); i++) {
            all.add(bay::object({{"day", i}, {"degrees", found->degrees + i % 3}}));
        }
        call.reply(bay::object({{"city", call.str("city")}, {"days", all.end()}}));
    }
}

static void planned(bay::call &call, const bay::answer &answer)
{
    if (!answer.is_accepted()) {
        return call.fail("Nobody said how long.");
    }
    const auto &[name, found] = *cities.find(call.str("city"));
    call.reply(bay::text(answer.str("days"), " days in ", name, ": ", found.sky, ", ",
                         found.degrees, " °C."));
}

static void plan_trip(bay::call &call)
{
    if (find(call, call.str("city")) != nullptr) {
        call.elicit(bay::text("How many days in ", call.str("city"), "?"), {days}, planned);
    }
}

static std::string packing_list(bay::call &call)
{
    const auto &[name, found] = *cities.find(call.str("city"));
    return bay::text("What shall I pack for ", name, ", where it is ", found.sky, "?");
}

int main(int argc, char **argv)
{
    bay::server server("weather", "1.0.0");
    server.tool("get_weather", "The weather of a city.", {city, unit}, get_weather)
        .output({bay::string("city").required(), degrees, bay::string("sky").required()})
        .annotations("{\"readOnlyHint\":true}");
    server.tool("get_forecast", "The next days in a city.", {city, days}, get_forecast)
        .output({bay::string("city").required(), bay::array("days", day).required()})
        .annotations("{\"readOnlyHint\":true}");
    server.tool("plan_trip", "Plans a trip; asks how long.", {city}, plan_trip);
    server.resource_template("weather://{city}", "weather", "The weather of a city.",
                             "application/json", get_weather);
    server.prompt("packing_list", "What to take along.",
                  {bay::field(city).choices({"Athens", "Bergen", "Berlin"})}, packing_list);
    return server.main(argc, argv);
}

/* Resources: one that is fixed, a family behind a template, one that changes while clients watch.
 */
#include <patchbay/server.h>
#include <stdatomic.h>
#include <time.h>

static atomic_int visits;

static void read_motto(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_text(result, "Plug anything into anything.");
    bay_result_cache(result, 3600000, true); /* it will not change soon */
    bay_call_finish(call, result);
}

static void read_square(bay_call *call, void *user)
{
    int64_t number = 0;
    (void)user;
    if (bay_str_to_int(bay_call_variable(call, "number"), &number) != BAY_OK || number > 100000 ||
        number < -100000) {
        bay_call_not_found(call);
        return;
    }
    bay_json *json = bay_json_new();
    bay_json_object(json, NULL);
    bay_json_int(json, "number", number);
    bay_json_int(json, "square", number * number);
    bay_json_end(json);
    bay_call_reply_json(call, json);
}

static void read_visits(bay_call *call, void *user)
{
    (void)user;
    bay_call_replyf(call, "%d", atomic_load(&visits));
}

static void visit(bay_call *call, void *server)
{
    atomic_fetch_add(&visits, 1);
    bay_server_updated(server, "counter://visits"); /* whoever subscribed is told */
    bay_call_reply(call, "Welcome.");
}

int main(int argc, char **argv)
{
    bay_server *server = bay_server_new("resources", "1.0.0");
    bay_resource *motto = bay_server_resource(server, "text://motto", "Motto", "What it is about.",
                                              "text/plain", read_motto, NULL);
    bay_resource_annotations(motto, "{\"audience\":[\"user\"],\"priority\":0.2}");
    bay_server_template(server, "square://{number}", "Square", "A number, squared.",
                        "application/json", read_square, NULL);
    bay_server_resource(server, "counter://visits", "Visits", "How many there were.", "text/plain",
                        read_visits, NULL);
    bay_server_tool(server, "visit", "Adds a visit.", NULL, visit, server);
    return bay_server_main(server, argc, argv);
}

/* A tool that takes its time: it runs on a thread of the pool, says how far it is, stops when its
 * caller gives up, and is given up itself after a minute. */
#include <patchbay/server.h>
#include <time.h>

static void count(bay_call *call, void *user)
{
    int64_t to = bay_call_int_or(call, "to", 10);
    (void)user;
    for (int64_t i = 0; i < to && !bay_call_is_cancelled(call); i++) {
        struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
        nanosleep(&pause, NULL);
        bay_call_progress(call, (double)(i + 1), (double)to, "counting");
        bay_call_log(call, "debug", "one more");
    }
    bay_call_replyf(call, "Counted to %lld.", (long long)to); /* after a cancel: dropped */
}

static const bay_field input[] = {
    {"to", BAY_TYPE_INTEGER, "How far", .min = "1", .max = "1000", .default_value = "10"}, {0}};

int main(int argc, char **argv)
{
    bay_server *server = bay_server_new("progress", "1.0.0");
    bay_tool *tool = bay_server_tool(server, "count", "Counts, slowly.", input, count, NULL);
    bay_tool_blocking(tool);
    bay_tool_timeout(tool, 60000);
    return bay_server_main(server, argc, argv);
}

/* A tool that takes its time: it runs on a thread of the pool, says how far it is, stops when its
 * caller gives up, and is given up itself after a minute. */
#include <patchbay/server.h>
#include <time.h>

static void count(bay_call *call, void *user)
{
    int64_t to = 10;
    (void)user;
    if (bay_call_has(call, "to") && bay_call_int(call, "to", &to) != BAY_OK) {
        bay_call_fail(call, "\"to\" is too large.");
        return;
    }
    for (int64_t i = 0; i < to && !bay_call_is_cancelled(call); i++) {
        struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
        nanosleep(&pause, NULL);
        bay_call_progress(call, (double)(i + 1), (double)to, "counting");
        bay_call_log(call, "debug", "one more");
    }
    bay_call_replyf(call, "Counted to %lld.", (long long)to); /* after a cancel: dropped */
}

int main(int argc, char **argv)
{
    bay_server *server = bay_server_new("progress", "1.0.0");
    bay_tool *tool = bay_server_tool_schema(
        server, "count", "Counts, slowly.",
        "{\"type\":\"object\",\"properties\":{\"to\":{\"type\":\"integer\",\"minimum\":1,"
        "\"maximum\":1000}}}",
        count, NULL);
    bay_tool_blocking(tool);
    bay_tool_timeout(tool, 60000);
    return bay_server_main(server, argc, argv);
}

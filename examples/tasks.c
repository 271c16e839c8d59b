/* Work that outlives its request: a client that knows the tasks extension gets a task at once, and
 * looks after it; any other waits. The tasks are in tasks.db: they survive this process. */
#include <patchbay/server.h>
#include <time.h>

static void bake(bay_call *call, void *user)
{
    static const char *const steps[] = {"kneading", "proving", "baking", "cooling"};
    (void)user;
    for (int i = 0; i < 4 && !bay_call_is_cancelled(call); i++) {
        struct timespec pause = {.tv_nsec = 250 * 1000 * 1000};
        bay_call_task_status(call, steps[i]);
        bay_call_progress(call, i, 4, steps[i]);
        nanosleep(&pause, NULL);
    }
    bay_call_reply(call, "One loaf of bread.");
}

int main(int argc, char **argv)
{
    bay_server *server = bay_server_new("tasks", "1.0.0");
    bay_tool *tool =
        bay_server_tool(server, "bake", "Bakes a loaf. Takes a second.", NULL, bake, NULL);
    bay_tool_blocking(tool);
    bay_tool_task(tool, BAY_TASK_MODE_OPTIONAL);
    bay_tool_resumable(tool); /* dying in the middle does no harm: it is baked again */
    bay_server_store(server, "tasks.db");
    bay_server_set(server, BAY_SERVER_SETTING_TASK_POLL_MS, 200);
    return bay_server_main(server, argc, argv);
}

/* An agent whose tasks are complete at once: what the SDK itself costs for a blocking SendMessage.
 *
 *     a2a_send --http 127.0.0.1:0 [--store FILE] */
#include <patchbay/agent.h>

static void hello(bay_task *task, const bay_message *message, void *user)
{
    (void)message;
    (void)user;
    bay_task_complete(task,
                      "17 degrees and cloudy, light wind from the west, no rain before tonight");
}

int main(int argc, char **argv)
{
    bay_agent *agent = bay_agent_new("hello", "1.0.0", "Completes at once.");
    bay_agent_skill(agent, "hello", "Hello", "A canned answer.", hello, NULL);
    bay_agent_on_loop(agent); /* the handler does not block */
    return bay_agent_main(agent, argc, argv);
}

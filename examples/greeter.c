/* The shortest agent there is: it asks for a name if it got none, and greets.
 *
 *     greeter --http 127.0.0.1:8080
 *     patchbay send http://127.0.0.1:8080 Ada */
#include <patchbay/agent.h>

static void greet(bay_task *task, const bay_message *message, void *user)
{
    (void)user;
    bay_str name = bay_message_text(message);
    if (name.len == 0) {
        bay_task_ask(task, "Whom shall I greet?"); /* the answer is another call of greet */
        return;
    }
    bay_task_completef(task, "Hello, %.*s.", BAY_STR(name));
}

int main(int argc, char **argv)
{
    bay_agent *agent = bay_agent_new("greeter", "1.0.0", "Greets whoever is named.");
    bay_agent_skill(agent, "greet", "Greeting", "Says hello to a name.", greet, NULL);
    return bay_agent_main(agent, argc, argv); /* --http 127.0.0.1:8080; --store FILE; --help */
}

/* A program that lets others work: it finds agents by their cards, takes the first that has the
 * skill it needs, follows what that one does, and answers when it asks back.
 *
 *     orchestrator TOPIC ANSWER AGENT...
 *     orchestrator tides yes http://127.0.0.1:8081 http://127.0.0.1:8080
 *
 * The skill is "literature_search", that of the research agent, or $ORCHESTRATOR_SKILL. */
#include <patchbay/caller.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_ANSWERS = 5 };

static bool has_skill(const bay_caller *caller, const char *wanted)
{
    for (size_t i = 0; i < bay_caller_skill_count(caller); i++) {
        if (bay_str_eq_c(bay_caller_skill(caller, i), wanted)) {
            return true;
        }
    }
    return false;
}

/* An agent's words on a terminal: bay_print keeps them from driving it. */
static void say_name(const bay_caller *caller)
{
    fprintf(stderr, "orchestrator: ");
    bay_print(stderr, bay_caller_name(caller));
}

/* The first agent with that skill; NULL: there is none. One that is not there is no reason to stop.
 */
static bay_caller *find_agent(char **agents, const char *skill)
{
    for (; *agents != NULL; agents++) {
        bay_caller *caller;
        bay_diag diag;
        if (bay_caller_connect(*agents, NULL, &caller, &diag) != BAY_OK) {
            fprintf(stderr, "orchestrator: %s\n", diag.text);
        } else if (has_skill(caller, skill)) {
            say_name(caller);
            fprintf(stderr, " does it, by %.*s %.*s\n", BAY_STR(bay_caller_binding(caller)),
                    BAY_STR(bay_caller_version(caller)));
            return caller;
        } else {
            say_name(caller);
            fprintf(stderr, " cannot do it\n");
            bay_caller_close(caller);
        }
    }
    fprintf(stderr, "orchestrator: no agent has the skill %s\n", skill);
    return NULL;
}

/* What comes of it, as it comes: the report on stdout, the rest on stderr. */
static void follow(bay_caller_request *request, const bay_caller_reply *event, void *user)
{
    (void)request;
    (void)user;
    if (bay_caller_reply_kind_of(event) == BAY_CALLER_REPLY_KIND_ARTIFACT) {
        bay_str chunk = bay_message_text(bay_caller_reply_artifact(event, 0));
        bay_print(stdout, chunk);
        fflush(stdout);
    } else if (bay_caller_reply_kind_of(event) == BAY_CALLER_REPLY_KIND_STATUS) {
        fprintf(stderr, "orchestrator: %s: ", bay_task_state_text(bay_caller_reply_state(event)));
        bay_print(stderr, bay_caller_reply_text(event));
        fputc('\n', stderr);
    }
}

/* One message, followed to its end: the task as it is then. An empty `task`: it begins one. */
static bay_caller_reply *delegate(bay_caller *caller, const char *skill, const char *text,
                                  bay_str task)
{
    bay_caller_reply *reply = NULL;
    bay_diag diag;
    bay_caller_request *request = bay_caller_request_send_text(caller, text);
    bay_caller_request_for_skill(request, skill);
    bay_caller_request_for_task_str(request, task);
    bay_caller_request_on_event(request, follow, NULL);
    if (bay_caller_request_run(request, &reply, &diag) != BAY_OK) {
        fprintf(stderr, "orchestrator: %s\n", diag.text);
        return NULL;
    }
    return reply;
}

/* Answers as often as it is asked, within reason. */
static bool see_through(bay_caller *caller, const char *skill, const char *topic,
                        const char *answer)
{
    bay_caller_reply *reply = delegate(caller, skill, topic, bay_str_of(NULL));
    for (int i = 0;
         i < MOST_ANSWERS && bay_caller_reply_state(reply) == BAY_TASK_STATE_INPUT_REQUIRED; i++) {
        bay_caller_reply *asked = reply;
        reply = delegate(caller, skill, answer, bay_caller_reply_task(asked));
        bay_caller_reply_free(asked);
    }
    bool is_done = bay_caller_reply_state(reply) == BAY_TASK_STATE_COMPLETED ||
                   bay_caller_reply_kind_of(reply) == BAY_CALLER_REPLY_KIND_MESSAGE;
    bay_caller_reply_free(reply);
    return is_done;
}

int main(int argc, char **argv)
{
    const char *skill = getenv("ORCHESTRATOR_SKILL");
    skill = skill != NULL ? skill : "literature_search";
    if (argc < 4) {
        fprintf(stderr, "usage: orchestrator TOPIC ANSWER AGENT...\n");
        return 2;
    }
    bay_caller *caller = find_agent(argv + 3, skill);
    if (caller == NULL) {
        return 1;
    }
    bool is_done = see_through(caller, skill, argv[1], argv[2]);
    bay_caller_close(caller);
    return is_done ? 0 : 1;
}

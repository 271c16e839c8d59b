/* The agent that the clients of other SDKs meet: what it does with a message is said by the first
 * word of its text, as SCRIPT in tests/interop/a2a/run lists them. The peers' servers do the same.
 *
 *     interop_agent --http 127.0.0.1:PORT [OPTION…]       its bearer token is "interop-token"
 *     interop_agent --open …                              it asks for none
 */
#include <patchbay/agent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_GATES = 1000, GATE_BYTES = 64, LOOK_MS = 10 };

static const char token[] = "interop-token";
static const char extended[] =
    "{\"description\":\"Does what it is told, and more.\",\"skills\":["
    "{\"id\":\"script\",\"name\":\"Script\",\"description\":\"Does what the text says.\",\"tags\":["
    "\"test\"]},{\"id\":\"hidden\",\"name\":\"Hidden\",\"description\":\"For those who are "
    "known.\","
    "\"tags\":[\"test\"]}]}";

/* ---- gates: "hold NAME" waits for "release NAME" --------------------------------------------- */

static pthread_mutex_t gates_lock = PTHREAD_MUTEX_INITIALIZER;
static char gates[MAX_GATES][GATE_BYTES];
static size_t gate_count;

static bool gate_is_open(bay_str name)
{
    bool is_open = false;
    pthread_mutex_lock(&gates_lock);
    for (size_t i = 0; i < gate_count && !is_open; i++) {
        is_open = strlen(gates[i]) == name.len && memcmp(gates[i], name.at, name.len) == 0;
    }
    pthread_mutex_unlock(&gates_lock);
    return is_open;
}

static bool gate_open(bay_str name)
{
    bool is_kept = false;
    pthread_mutex_lock(&gates_lock);
    if (gate_count < MAX_GATES && name.len < GATE_BYTES) {
        memcpy(gates[gate_count], name.at, name.len);
        gates[gate_count][name.len] = '\0';
        gate_count++;
        is_kept = true;
    }
    pthread_mutex_unlock(&gates_lock);
    return is_kept;
}

/* ---- what it does ---------------------------------------------------------------------------- */

static void make_result(bay_task *task)
{
    bay_artifact *artifact = bay_task_artifact(task, "result", "text/plain");
    bay_artifact_append(artifact, "the result, naïve ☃");
    bay_artifact_close(artifact);
}

static void do_complete(bay_task *task, const bay_message *message, bay_str rest)
{
    (void)message, (void)rest;
    bay_task_status(task, BAY_TASK_STATE_WORKING, "on it");
    make_result(task);
    bay_task_complete(task, "done");
}

static void do_reply(bay_task *task, const bay_message *message, bay_str rest)
{
    (void)message, (void)rest;
    bay_task_reply(task, "a message, naïve ☃");
}

static char *text_of(bay_str view)
{
    char *text = calloc(1, view.len + 1);
    if (text != NULL && view.len > 0) {
        memcpy(text, view.at, view.len);
    }
    return text;
}

/* Every part but the first, which says what to do, goes back as it came. */
static void do_parts(bay_task *task, const bay_message *message, bay_str rest)
{
    bay_message *back = bay_message_new();
    (void)rest;
    for (size_t i = 1; i < bay_message_part_count(message); i++) {
        bay_str part = bay_message_part(message, i);
        char *name = text_of(bay_message_part_name(message, i));
        char *type = text_of(bay_message_part_type(message, i));
        char *text = text_of(part);
        switch (bay_message_part_kind(message, i)) {
        case BAY_PART_TEXT:
            bay_message_add_text_str(back, part);
            break;
        case BAY_PART_BYTES:
            bay_message_add_bytes(back, part.at, part.len, name, type);
            break;
        case BAY_PART_URL:
            bay_message_add_url(back, text, name, type);
            break;
        case BAY_PART_DATA:
            bay_message_add_data(back, text);
            break;
        case BAY_PART_NONE:
            break;
        }
        free(name);
        free(type);
        free(text);
    }
    bay_task_end(task, BAY_TASK_STATE_COMPLETED, back);
    bay_message_free(back);
}

static void do_chunks(bay_task *task, const bay_message *message, bay_str rest)
{
    (void)message, (void)rest;
    bay_task_status(task, BAY_TASK_STATE_WORKING, "on it");
    bay_artifact *artifact = bay_task_artifact(task, "chunks", "text/plain");
    bay_artifact_append(artifact, "one ");
    bay_artifact_append(artifact, "two ");
    bay_artifact_append(artifact, "three");
    bay_artifact_close(artifact);
    bay_task_complete(task, "done");
}

static void do_ask(bay_task *task, const bay_message *message, bay_str rest)
{
    (void)message, (void)rest;
    bay_task_ask(task, "which one?");
}

static void do_hold(bay_task *task, const bay_message *message, bay_str rest)
{
    (void)message;
    bay_task_status(task, BAY_TASK_STATE_WORKING, "on it");
    while (!gate_is_open(rest)) {
        if (!bay_task_sleep(task, LOOK_MS)) {
            return; /* it was canceled */
        }
    }
    make_result(task);
    bay_task_complete(task, "done");
}

static void do_release(bay_task *task, const bay_message *message, bay_str rest)
{
    (void)message;
    bay_task_reply(task, gate_open(rest) ? "released" : "too many gates");
}

static void do_reject(bay_task *task, const bay_message *message, bay_str rest)
{
    (void)message, (void)rest;
    bay_task_reject(task, "not that");
}

static void do_fail(bay_task *task, const bay_message *message, bay_str rest)
{
    (void)message, (void)rest;
    bay_task_status(task, BAY_TASK_STATE_WORKING, "on it");
    bay_task_fail(task, "it broke");
}

static const struct {
    const char *word;
    void (*act)(bay_task *task, const bay_message *message, bay_str rest);
} script[] = {
    {"complete", do_complete}, {"reply", do_reply},   {"parts", do_parts},
    {"chunks", do_chunks},     {"ask", do_ask},       {"hold", do_hold},
    {"release", do_release},   {"reject", do_reject}, {"fail", do_fail},
};

static void act(bay_task *task, const bay_message *message, void *user)
{
    bay_str text = bay_message_part_kind(message, 0) == BAY_PART_TEXT ? bay_message_part(message, 0)
                                                                      : (bay_str){"", 0};
    (void)user;
    if (!bay_task_is_new(task)) { /* what it asked for */
        bay_task_completef(task, "you said %.*s", (int)text.len, text.at);
        return;
    }
    const char *space = memchr(text.at, ' ', text.len);
    size_t len = space != NULL ? (size_t)(space - text.at) : text.len;
    bay_str rest = space != NULL ? (bay_str){space + 1, text.len - len - 1} : (bay_str){"", 0};
    for (size_t i = 0; i < sizeof(script) / sizeof(script[0]); i++) {
        if (strlen(script[i].word) == len && memcmp(script[i].word, text.at, len) == 0) {
            script[i].act(task, message, rest);
            return;
        }
    }
    bay_task_fail(task, "that is not in the script");
}

static bool verify(bay_grant *grant, bay_str credential, void *user)
{
    (void)user;
    bay_grant_principal(grant, "interop");
    return credential.len == sizeof(token) - 1 &&
           memcmp(credential.at, token, sizeof(token) - 1) == 0;
}

int main(int argc, char **argv)
{
    bool is_open = argc > 1 && strcmp(argv[1], "--open") == 0;
    bay_agent *agent = bay_agent_new("interop", "1.0.0", "Does what it is told.");
    bay_skill *skill =
        bay_agent_skill(agent, "script", "Script", "Does what the text says.", act, NULL);
    bay_skill_tag(skill, "test");
    bay_agent_input_mode(agent, "text/plain");
    bay_agent_input_mode(agent, "*/*");
    bay_agent_output_mode(agent, "text/plain");
    bay_agent_set(agent, BAY_AGENT_SETTING_THREADS, 32);
    bay_agent_push(agent);
    bay_agent_push_allow(agent, "127.0.0.1");
    if (!is_open) {
        bay_agent_http_auth(agent, "token", "Bearer", verify, NULL);
        bay_agent_extended(agent, extended);
    }
    argv[is_open] = argv[0];
    return bay_agent_main(agent, argc - is_open, argv + is_open);
}

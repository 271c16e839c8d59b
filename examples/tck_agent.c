/* An agent for test suites: what it does with a message is said by how the message's id begins, as
 * the public compatibility kit for A2A expects it.
 *
 *     tck_agent --http 127.0.0.1:9999
 *     tck_agent --require-extension …     callers have to declare urn:a2a:tck:required-extension
 */
#include <patchbay/agent.h>
#include <string.h>

enum { WORK_MS = 4500 };

static bay_artifact *begin(bay_task *task, const char *name)
{
    return bay_task_artifact(task, name, "text/plain");
}

static void complete(bay_task *task)
{
    bay_task_complete(task, "Hello from TCK"); /* closes what is open */
}

static void text(bay_task *task)
{
    bay_artifact_append(begin(task, "text"), "Generated text content");
    complete(task);
}

static void file(bay_task *task)
{
    bay_artifact_append_bytes(begin(task, "output.txt"), "Generated file content", 22);
    complete(task);
}

static void file_url(bay_task *task)
{
    bay_artifact_append_url(begin(task, "output.txt"), "https://example.com/output.txt");
    complete(task);
}

static void data(bay_task *task)
{
    bay_artifact *artifact = bay_task_artifact(task, "data", "application/json");
    bay_artifact_append_data(artifact, "{\"key\":\"value\",\"count\":42}");
    complete(task);
}

static void message(bay_task *task)
{
    bay_task_reply(task, "Direct message response");
}

static void ask(bay_task *task)
{
    bay_task_ask(task, "Please say more");
}

static void reject(bay_task *task)
{
    bay_task_reject(task, "Rejected by TCK");
}

static void work_and_text(bay_task *task)
{
    bay_task_status(task, BAY_TASK_STATE_WORKING, "working");
    text(task);
}

static void work_and_file(bay_task *task)
{
    bay_task_status(task, BAY_TASK_STATE_WORKING, "working");
    file(task);
}

static void work_and_chunks(bay_task *task)
{
    bay_task_status(task, BAY_TASK_STATE_WORKING, "working");
    bay_artifact *artifact = begin(task, "chunks");
    bay_artifact_append(artifact, "chunk-1 ");
    bay_artifact_append(artifact, "chunk-2");
    bay_artifact_close(artifact);
    complete(task);
}

static void work_long(bay_task *task)
{
    bay_task_status(task, BAY_TASK_STATE_WORKING, "working");
    if (bay_task_sleep(task, WORK_MS)) { /* else it was canceled: nobody waits */
        complete(task);
    }
}

static const struct {
    const char *prefix;
    void (*behave)(bay_task *task);
} table[] = {
    {"tck-complete-task", complete},
    {"tck-artifact-text", text},
    {"tck-artifact-file-url", file_url}, /* before the shorter one */
    {"tck-artifact-file", file},
    {"tck-artifact-data", data},
    {"tck-message-response", message},
    {"tck-input-required", ask},
    {"tck-reject-task", reject},
    {"tck-stream-001", work_and_text},
    {"tck-stream-002", complete},
    {"tck-stream-003", work_and_text},
    {"tck-stream-ordering-001", work_and_text},
    {"tck-stream-artifact-text", work_and_text},
    {"tck-stream-artifact-file", work_and_file},
    {"tck-stream-artifact-chunked", work_and_chunks},
    {"test-resubscribe-message-id", work_long},
    {"tck-delayed-complete", work_long},
};

static void behave(bay_task *task, const bay_message *said, void *user)
{
    bay_str id = bay_message_id(said);
    (void)user;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (bay_str_starts(id, table[i].prefix)) {
            table[i].behave(task);
            return;
        }
    }
    complete(task);
}

int main(int argc, char **argv)
{
    bool is_required = argc > 1 && strcmp(argv[1], "--require-extension") == 0;
    bay_agent *agent = bay_agent_new("tck", "1.0.0", "Behaves as a compatibility kit expects.");
    bay_skill *skill = bay_agent_skill(agent, "tck", "Compatibility kit",
                                       "Does what the message's id says.", behave, NULL);
    bay_skill_tag(skill, "test");
    bay_agent_input_mode(agent, "text/plain");
    bay_agent_input_mode(agent, "application/json");
    bay_agent_output_mode(agent, "text/plain");
    bay_agent_output_mode(agent, "application/json");
    bay_agent_extension(agent, "urn:a2a:tck:required-extension", "Asked for by the kit.",
                        is_required, NULL);
    bay_agent_hybrid_card(agent, false); /* the kit reads cards of 1.0 */
    bay_agent_push(agent);
    bay_agent_push_allow(agent, "127.0.0.1");
    bay_agent_push_allow(agent, "localhost");
    argv[is_required] = argv[0];
    return bay_agent_main(agent, argc - is_required, argv + is_required);
}

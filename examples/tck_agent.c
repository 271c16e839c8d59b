/* An agent for test suites: what it does with a message is said by how the message's id begins, as
 * the public compatibility kit for A2A expects it.
 *
 *     tck_agent --http 127.0.0.1:9999
 *     tck_agent --require-extension …     callers have to declare urn:a2a:tck:required-extension
 */
#include <patchbay/agent.h>
#include <string.h>

enum { RESUBSCRIBE_MS = 4500, DELAY_MS = 1000 };

typedef void (*behaviour)(bay_task *task);

static void complete(bay_task *task)
{
    bay_task_complete(task, "Hello from TCK");
}

static void write_text(bay_task *task)
{
    bay_artifact *artifact = bay_task_artifact(task, "text", "text/plain");
    bay_artifact_append(artifact, "Generated text content");
    bay_artifact_close(artifact);
}

static void write_file(bay_task *task)
{
    bay_artifact *artifact = bay_task_artifact(task, "output.txt", "text/plain");
    bay_artifact_append_bytes(artifact, "Generated file content", 22);
    bay_artifact_close(artifact);
}

static void artifact_text(bay_task *task)
{
    write_text(task);
    complete(task);
}

static void artifact_file(bay_task *task)
{
    write_file(task);
    complete(task);
}

static void artifact_file_url(bay_task *task)
{
    bay_artifact *artifact = bay_task_artifact(task, "output.txt", "text/plain");
    bay_artifact_append_url(artifact, "https://example.com/output.txt");
    bay_artifact_close(artifact);
    complete(task);
}

static void artifact_data(bay_task *task)
{
    bay_artifact *artifact = bay_task_artifact(task, "data", "application/json");
    bay_artifact_append_data(artifact, "{\"key\":\"value\",\"count\":42}");
    bay_artifact_close(artifact);
    complete(task);
}

static void message_response(bay_task *task)
{
    bay_task_reply(task, "Direct message response");
}

static void input_required(bay_task *task)
{
    bay_task_ask(task, "Please say more");
}

static void reject(bay_task *task)
{
    bay_task_reject(task, "Rejected by TCK");
}

static void stream(bay_task *task)
{
    bay_task_status(task, BAY_WORKING, "working");
    artifact_text(task);
}

static void stream_file(bay_task *task)
{
    bay_task_status(task, BAY_WORKING, "working");
    artifact_file(task);
}

static void stream_chunks(bay_task *task)
{
    bay_task_status(task, BAY_WORKING, "working");
    bay_artifact *artifact = bay_task_artifact(task, "chunks", "text/plain");
    bay_artifact_append(artifact, "chunk-1 ");
    bay_artifact_append(artifact, "chunk-2");
    bay_artifact_close(artifact);
    complete(task);
}

static void work_for(bay_task *task, uint32_t ms)
{
    bay_task_status(task, BAY_WORKING, "working");
    if (bay_task_sleep(task, ms)) { /* else it was canceled: nobody waits */
        complete(task);
    }
}

static void long_work(bay_task *task)
{
    work_for(task, RESUBSCRIBE_MS);
}

static void delayed(bay_task *task)
{
    work_for(task, DELAY_MS);
}

static const struct {
    const char *prefix;
    behaviour behave;
} table[] = {
    {"tck-complete-task", complete},
    {"tck-artifact-text", artifact_text},
    {"tck-artifact-file-url", artifact_file_url}, /* before the shorter one */
    {"tck-artifact-file", artifact_file},
    {"tck-artifact-data", artifact_data},
    {"tck-message-response", message_response},
    {"tck-input-required", input_required},
    {"tck-reject-task", reject},
    {"tck-stream-001", stream},
    {"tck-stream-002", complete},
    {"tck-stream-003", stream},
    {"tck-stream-ordering-001", stream},
    {"tck-stream-artifact-text", stream},
    {"tck-stream-artifact-file", stream_file},
    {"tck-stream-artifact-chunked", stream_chunks},
    {"test-resubscribe-message-id", long_work},
    {"tck-delayed-complete", delayed},
};

static void behave(bay_task *task, const bay_message *message, void *user)
{
    bay_str id = bay_message_id(message);
    (void)user;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        size_t len = strlen(table[i].prefix);
        if (id.len >= len && memcmp(id.at, table[i].prefix, len) == 0) {
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
    bay_ability *skill = bay_agent_skill(agent, "tck", "Compatibility kit",
                                         "Does what the message's id says.", behave, NULL);
    bay_ability_tag(skill, "test");
    bay_agent_input(agent, "text/plain");
    bay_agent_input(agent, "application/json");
    bay_agent_output(agent, "text/plain");
    bay_agent_output(agent, "application/json");
    bay_agent_extension(agent, "urn:a2a:tck:required-extension", "Asked for by the kit.",
                        is_required, NULL);
    bay_agent_hybrid_card(agent, false); /* the kit reads cards of 1.0 */
    bay_agent_push(agent);
    bay_agent_push_allow(agent, "127.0.0.1");
    bay_agent_push_allow(agent, "localhost");
    argv[is_required] = argv[0];
    return bay_agent_main(agent, argc - is_required, argv + is_required);
}

/* An agent that reads: given a topic it looks for papers about it, asks back when there are many,
 * and writes a report, paragraph by paragraph. It looks and reads with the tools of an MCP server,
 * the files example unless told otherwise:
 *
 *     cd /papers && RESEARCH_TOOLS="stdio:/path/to/files" research_agent --http 127.0.0.1:8080
 *     patchbay send --stream http://127.0.0.1:8080 "tides" */
#include <patchbay/agent.h>
#include <patchbay/client.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TOPIC = 200, MANY = 3, MAX_PARAGRAPH = 2000 };

/* Calls a tool; NULL: the task has failed, and says why. */
static bay_reply *call_tool(bay_task *task, bay_client *tools, const char *tool, const char *name,
                            bay_str value)
{
    bay_reply *reply = NULL;
    bay_diag diag;
    bay_json *arguments = bay_json_new();
    bay_json_object(arguments, NULL);
    bay_json_text_str(arguments, name, value);
    bay_json_end(arguments);
    if (bay_client_call_json(tools, tool, arguments, &reply, &diag) != BAY_OK) {
        bay_task_failf(task, "%s: %s", tool, diag.text);
        return NULL;
    }
    return reply;
}

/* Does this line of the search name a paper? Its last line counts them. */
static bool is_paper(bay_str line)
{
    return line.len > 3 && memcmp(line.at + line.len - 3, ".md", 3) == 0;
}

static size_t count_papers(const bay_reply *found)
{
    size_t papers = 0;
    for (size_t i = 0; i < bay_reply_count(found); i++) {
        papers += is_paper(bay_reply_text(found, i)) ? 1 : 0;
    }
    return papers;
}

/* The first paragraph of a paper goes into the report. */
static bool read_paper(bay_task *task, bay_client *tools, bay_str path, bay_artifact *report)
{
    bay_reply *reply = call_tool(task, tools, "read_file", "path", path);
    if (reply == NULL) {
        return false;
    }
    bay_str paper = bay_reply_text(reply, 0);
    const char *end = paper.len > 0 ? memmem(paper.at, paper.len, "\n\n", 2) : NULL;
    size_t len = end != NULL ? (size_t)(end - paper.at) : paper.len;
    bay_artifact_appendf(report, "## %.*s\n\n%.*s\n\n", BAY_STR(path),
                         (int)(len < MAX_PARAGRAPH ? len : MAX_PARAGRAPH), paper.at);
    bay_reply_free(reply);
    return true;
}

static void write_report(bay_task *task, bay_client *tools, const bay_reply *found)
{
    size_t papers = 0;
    bay_artifact *report = bay_task_artifact(task, "report.md", "text/markdown");
    for (size_t i = 0; i < bay_reply_count(found) && !bay_task_is_cancelled(task); i++) {
        bay_str path = bay_reply_text(found, i);
        if (is_paper(path) && !read_paper(task, tools, path, report)) {
            return;
        }
        papers += is_paper(path) ? 1 : 0;
    }
    bay_artifact_close(report);
    bay_task_completef(task, "%zu papers read", papers);
}

static void look_for(bay_task *task, bay_client *tools, bay_str topic, bool is_confirmed)
{
    bay_task_status(task, BAY_TASK_STATE_WORKING, "searching");
    bay_reply *found = call_tool(task, tools, "search_files", "name", topic);
    if (found == NULL) {
        return;
    }
    size_t papers = count_papers(found);
    if (papers > MANY && !is_confirmed) {
        bay_task_remember(task, topic.at, topic.len); /* another process may get the answer */
        bay_task_askf(task, "There are %zu papers. Shall I read them all?", papers);
    } else {
        write_report(task, tools, found);
    }
    bay_reply_free(found);
}

static void research(bay_task *task, const bay_message *message, void *user)
{
    bay_str said = bay_message_text(message);
    bay_str topic = bay_task_remembered(task);
    bool is_answer = topic.len > 0;
    if (!is_answer && (said.len == 0 || said.len > MAX_TOPIC)) {
        bay_task_ask(task, "Which topic, in a few words?");
        return;
    }
    if (is_answer && (said.len == 0 || (said.at[0] | 0x20) != 'y')) {
        bay_task_complete(task, "Nothing read, as you wish.");
        return;
    }
    bay_client *tools;
    bay_diag diag;
    if (bay_client_connect(user, NULL, &tools, &diag) != BAY_OK) {
        bay_task_failf(task, "my tools cannot be reached: %s", diag.text);
        return;
    }
    look_for(task, tools, is_answer ? topic : said, is_answer);
    bay_client_close(tools);
}

int main(int argc, char **argv)
{
    static char files[] = "stdio:./files";
    char *tools = getenv("RESEARCH_TOOLS");
    bay_agent *agent = bay_agent_new("research", "1.0.0", "Reads the literature.");
    bay_skill *skill =
        bay_agent_skill(agent, "literature_search", "Literature search",
                        "Finds and sums up papers.", research, tools != NULL ? tools : files);
    bay_skill_tag(skill, "research");
    bay_skill_example(skill, "tides");
    bay_skill_output_mode(skill, "text/markdown");
    bay_agent_resumable(agent); /* reading twice does no harm */
    return bay_agent_main(agent, argc, argv);
}

/* One request for each row of MCP's table of methods that is a call. A row without one fails the
 * tests of the door until it is written here. The names are those of a server "a" behind a gateway.
 */
#ifndef SUPPORT_DOOR_ROWS_H
#define SUPPORT_DOOR_ROWS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"
#include "mcp/protocol.h"

/* For params that depend on the place: the id of a task, the URI of a skill, of its folder … */
static const char door_row_task[] = "task";
static const char door_row_skill[] = "skill";
static const char door_row_folder[] = "folder";
/* … and a URI that nobody has subscribed to. */
static const char door_row_listen[] = "listen";
static const char door_row_subscribe[] = "subscribe";
#define DOOR_LISTEN "'notifications':{'toolsListChanged':true,'resourceSubscriptions':['%s']}"
#define DOOR_SUBSCRIBE "'uri':'%s'"

typedef struct door_row {
    const char *params; /* ' for "; NULL: unknown */
    const char *name;   /* what Mcp-Name says; NULL: nothing */
} door_row;

static const door_row door_rows[MCP_METHOD_COUNT] = {
    [MCP_LISTEN] = {door_row_listen, NULL},
    [MCP_TOOLS_LIST] = {"", NULL},
    [MCP_TOOLS_CALL] = {"'name':'a.echo','arguments':{}", "a.echo"},
    [MCP_RESOURCES_LIST] = {"", NULL},
    [MCP_RESOURCES_TEMPLATES_LIST] = {"", NULL},
    [MCP_RESOURCES_READ] = {"'uri':'f:///a'", "f:///a"},
    [MCP_RESOURCES_SUBSCRIBE] = {door_row_subscribe, NULL},
    [MCP_PROMPTS_LIST] = {"", NULL},
    [MCP_PROMPTS_GET] = {"'name':'a.p'", "a.p"},
    [MCP_COMPLETE] =
        {"'ref':{'type':'ref/prompt','name':'a.p'},'argument':{'name':'x','value':'y'}", NULL},
    [MCP_TASKS_GET] = {door_row_task, NULL},
    [MCP_TASKS_UPDATE] = {door_row_task, NULL},
    [MCP_TASKS_CANCEL] = {door_row_task, NULL},
    [MCP_TASKS_LEGACY_GET] = {door_row_task, NULL},
    [MCP_TASKS_RESULT] = {door_row_task, NULL},
    [MCP_TASKS_LIST] = {"", NULL},
    [MCP_TASKS_LEGACY_CANCEL] = {door_row_task, NULL},
    [MCP_SKILLS_LIST] = {"", NULL},
    [MCP_SKILLS_GET] = {door_row_skill, NULL},
    [MCP_DIRECTORY_READ] = {door_row_folder, NULL},
};

/* Of each method that is a call and each revision that has it. */
static inline int door_each_row(void (*visit)(const mcp_method *method, mcp_revision_id revision))
{
    int count = 0;
    for (int i = 0; i < MCP_METHOD_COUNT; i++) {
        const mcp_method *method = mcp_method_of((mcp_method_id)i);
        if (method->call == CALL_NONE) {
            continue;
        }
        if (door_rows[i].params == NULL) {
            fail_msg("%.*s is a call that this test does not know", BAY_STR(method->text));
        }
        for (int revision = (int)method->since; revision <= (int)method->until; revision++) {
            visit(method, (mcp_revision_id)revision);
            count++;
        }
    }
    return count;
}

/* subscriptions/listen is a call for the lists, and one for each URI. */
static inline int door_calls_of(const mcp_method *method)
{
    return method->id == MCP_LISTEN ? 2 : 1;
}

#endif

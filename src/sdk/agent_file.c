/* Where an agent's tasks live. A file of its own: only programs that ask for a store hold SQLite.
 */
#include "base/str.h"
#include "sdk/agent_parts.h"

void bay_agent_store(bay_agent *agent, const char *path)
{
    if (agent == NULL) {
        return;
    }
    bool is_memory = path == NULL || str_eq(str_of(path), STR(":memory:"));
    agent->store_path = is_memory ? STR("") : sdk_agent_keep(agent, path);
    agent->open_store = is_memory ? NULL : store_open_sqlite;
}

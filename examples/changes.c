/* Tools that come and go while the server runs: clients are told, and list again. */
#include <patchbay/server.h>

static void open_safe(bay_call *call, void *user)
{
    (void)user;
    bay_call_reply(call, "Gold.");
}

static void set_lock(bay_call *call, void *safe)
{
    bool is_locked = bay_call_bool_or(call, "locked", false);
    bay_tool_enable(safe, !is_locked); /* the list of tools has changed */
    bay_call_log(call, "notice", is_locked ? "locked" : "unlocked");
    bay_call_reply(call, is_locked ? "Locked." : "Unlocked: open_safe can be called.");
}

static const bay_field input[] = {
    {"locked", BAY_TYPE_BOOLEAN, "Shall it be locked?", .is_required = true}, {0}};

int main(int argc, char **argv)
{
    bay_server *server = bay_server_new("changes", "1.0.0");
    bay_tool *safe =
        bay_server_tool(server, "open_safe", "What is in the safe.", NULL, open_safe, NULL);
    bay_tool_enable(safe, false);
    bay_server_tool(server, "set_lock", "Locks the safe, or unlocks it.", input, set_lock, safe);
    return bay_server_main(server, argc, argv);
}

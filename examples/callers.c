/* Who is calling: each HTTP request is identified before anything of it is looked at, and what one
 * caller began no other can go on with. (Compare keys in constant time, and keep them out of the
 * source, in a real program.) */
#include <patchbay/server.h>

static bool identify(bay_peer *peer, void *user)
{
    static const char *const callers[][2] = {{"Bearer a-key", "alice"}, {"Bearer b-key", "bob"}};
    bay_str given = bay_peer_field(peer, "authorization");
    (void)user;
    for (int i = 0; i < 2; i++) {
        if (bay_str_eq_c(given, callers[i][0])) {
            bay_peer_principal(peer, callers[i][1]);
            return true;
        }
    }
    bay_peer_challenge(peer, "Bearer realm=\"callers\"");
    return false;
}

static void who_am_i(bay_call *call, void *user)
{
    (void)user;
    bay_call_reply_str(call, bay_call_principal(call));
}

int main(int argc, char **argv)
{
    bay_server *server = bay_server_new("callers", "1.0.0");
    bay_server_identify(server, identify, NULL);
    bay_server_tool(server, "who_am_i", "The caller's name.", NULL, who_am_i, NULL);
    return bay_server_main(server, argc, argv);
}

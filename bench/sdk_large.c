/* An SDK server for floods (bench/floods.py): one tool whose answer is short, one whose answer is
 * as large as it is asked for.
 *
 *     sdk_large --http 127.0.0.1:0 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <patchbay/server.h>

enum { MOST_BYTES = 32 << 20 };

static void hello(bay_call *call, void *user)
{
    (void)user;
    bay_call_reply(call, "17 degrees and cloudy, light wind from the west, no rain before tonight");
}

static void large(bay_call *call, void *user)
{
    (void)user;
    int64_t bytes = 0;
    bool is_given = bay_call_int(call, "bytes", &bytes) == BAY_OK;
    char *text = is_given && bytes >= 0 && bytes <= MOST_BYTES ? malloc((size_t)bytes + 1) : NULL;
    if (text == NULL) {
        bay_call_fail(call, "no memory for that");
        return;
    }
    memset(text, 'L', (size_t)bytes);
    text[bytes] = '\0';
    bay_call_reply(call, text);
    free(text);
}

int main(int argc, char **argv)
{
    bay_server *server = bay_server_new("large", "1.0.0");
    bay_server_tool_schema(server, "hello", "A short answer.", "{\"type\":\"object\"}", hello,
                           NULL);
    bay_server_tool_schema(server, "large", "A large answer.",
                           "{\"type\":\"object\",\"properties\":{\"bytes\":{\"type\":\"integer\"}},"
                           "\"required\":[\"bytes\"]}",
                           large, NULL);
    return bay_server_main(server, argc, argv);
}

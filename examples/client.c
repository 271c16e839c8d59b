/* Calls one tool of a server, and prints what it says: the smallest useful client.
 *
 *     client https://example.com/mcp
 *     client "stdio:./weather" get_weather '{"location":"Oslo"}' */
#include <patchbay/client.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    const char *target = argc > 1 ? argv[1] : "stdio:./weather";
    const char *tool = argc > 2 ? argv[2] : "get_weather";
    const char *arguments = argc > 3 ? argv[3] : "{\"location\":\"Tokyo\"}";
    bay_client *client;
    bay_reply *reply;
    bay_diag diag;
    if (bay_client_connect(target, NULL, &client, &diag) != BAY_OK) {
        fprintf(stderr, "%s\n", diag.text); /* says what, where and what to do */
        return 1;
    }
    int status = 1;
    if (bay_client_call(client, tool, arguments, &reply, &diag) == BAY_OK) {
        for (size_t i = 0; i < bay_reply_count(reply); i++) {
            bay_print(stdout, bay_reply_text(reply, i)); /* harmless on a terminal */
            putchar('\n');
        }
        status = bay_reply_is_error(reply) ? 2 : 0; /* the tool itself says that it failed */
        bay_reply_free(reply);
    } else {
        fprintf(stderr, "%s\n", diag.text);
    }
    bay_client_close(client);
    return status;
}

/* Several requests at once, with progress, a time limit and a cancel: nothing here waits for one of
 * them in particular. Try it on the server of progress.c:
 *
 *     client_requests stdio:./progress */
#include <patchbay/client.h>
#include <stdio.h>

static int open_requests;

static void progressed(bay_request *request, double progress, double total, bay_str message,
                       void *user)
{
    (void)request;
    printf("%s: %g of %g ", (const char *)user, progress, total);
    bay_print(stdout, message);
    putchar('\n');
}

static void done(bay_request *request, bay_reply *reply, const bay_diag *diag, void *user)
{
    (void)request;
    open_requests--;
    if (reply == NULL) {
        printf("%s: %s\n", (const char *)user, diag->text);
    } else {
        printf("%s: ", (const char *)user);
        bay_print(stdout, bay_reply_text(reply, 0));
        putchar('\n');
    }
    bay_reply_free(reply);
}

static bay_request *start(bay_client *client, const char *arguments, void *name)
{
    bay_diag diag;
    bay_request *request = bay_request_tool(client, "count", arguments);
    bay_request_on_progress(request, progressed, name);
    bay_request_timeout(request, 1000, 5000); /* a second without progress, five in all */
    if (bay_request_start(request, &diag, done, name) != BAY_OK) {
        fprintf(stderr, "%s: %s\n", (const char *)name, diag.text);
        return NULL;
    }
    open_requests++;
    return request;
}

int main(int argc, char **argv)
{
    static char names[][8] = {"first", "second", "third"};
    bay_client *client = NULL;
    bay_diag diag;
    if (argc != 2 || bay_client_connect(argv[1], NULL, &client, &diag) != BAY_OK) {
        fprintf(stderr, "%s\n", argc != 2 ? "usage: client_requests TARGET" : diag.text);
        return 1;
    }
    start(client, "{\"to\":3}", names[0]);
    start(client, "{\"to\":5}", names[1]);
    bay_request *third = start(client, "{\"to\":1000}", names[2]);
    if (third != NULL) {
        bay_request_cancel(third, "changed my mind");
    }
    while (open_requests > 0 && bay_client_wait(client, 1000) == BAY_OK) {
    }
    bay_client_close(client);
    return 0;
}

/* A client inside an epoll loop: three calls at once, beside whatever else the loop watches.
 *
 *     client_epoll "stdio:./weather" */
#include <patchbay/client.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

static const char *const questions[] = {"{\"location\":\"Tokyo\"}", "{\"location\":\"Oslo\"}",
                                        "{\"location\":\"Cairo\"}"};
enum { QUESTIONS = sizeof(questions) / sizeof(questions[0]) };

static void answered(bay_request *request, bay_reply *reply, const bay_diag *diag, void *user)
{
    int *open = user;
    (void)request;
    if (reply != NULL && diag->code == BAY_OK) {
        bay_print(stdout, bay_reply_text(reply, 0));
        putchar('\n');
    } else {
        fprintf(stderr, "%s\n", diag->text);
    }
    bay_reply_free(reply);
    --*open;
}

int main(int argc, char **argv)
{
    bay_client *client;
    bay_diag diag;
    int open = 0; /* questions without an answer */
    /* Nothing is waited for here: the requests go out once the connection stands. */
    if (bay_client_connect_start(argc > 1 ? argv[1] : "stdio:./weather", NULL, &client, &diag, NULL,
                                 NULL) != BAY_OK) {
        fprintf(stderr, "%s\n", diag.text);
        return 1;
    }
    for (int i = 0; i < QUESTIONS; i++) {
        bay_request *request = bay_request_tool(client, "get_weather", questions[i]);
        if (bay_request_start(request, &diag, answered, &open) == BAY_OK) {
            open++;
        } else {
            fprintf(stderr, "%s\n", diag.text);
        }
    }
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event watched = {.events = EPOLLIN};
    bool is_well =
        epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, bay_client_fd(client), &watched) == 0;
    while (is_well && open > 0) {
        struct epoll_event event;
        (void)epoll_wait(epoll, &event, 1, bay_client_wait_ms(client));
        is_well = bay_client_dispatch(client) == BAY_OK; /* due, or not: it knows */
    }
    if (epoll >= 0) {
        close(epoll);
    }
    bay_client_close(client);
    return is_well ? 0 : 1;
}

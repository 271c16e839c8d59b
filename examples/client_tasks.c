/* A tool's work as a task: started, looked at, and waited for by another connection, as after a
 * restart of this program. Try it on the server of tasks.c:
 *
 *     client_tasks stdio:./tasks bake */
#include <patchbay/client.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    bay_client *client = NULL;
    bay_reply *reply = NULL;
    bay_diag diag;
    if (argc != 3 || bay_client_connect(argv[1], NULL, &client, &diag) != BAY_OK) {
        fprintf(stderr, "%s\n", argc != 3 ? "usage: client_tasks TARGET TOOL" : diag.text);
        return 1;
    }
    bay_request *request = bay_request_tool(client, argv[2], NULL);
    bay_request_return_immediately(request);
    if (bay_request_run(request, &reply, &diag) != BAY_OK) {
        fprintf(stderr, "%s\n", diag.text);
        bay_client_close(client);
        return 1;
    }
    if (bay_reply_task_state(reply) == BAY_TASK_STATE_UNKNOWN) {
        printf("No task: ");
        bay_print(stdout, bay_reply_text(reply, 0));
        putchar('\n');
        bay_reply_free(reply);
        bay_client_close(client);
        return 0;
    }
    bay_reply *begun = reply; /* it knows the task's id */
    printf("Task ");
    bay_print(stdout, bay_reply_task(begun));
    putchar('\n');
    bay_client_close(client);

    bay_err err = bay_client_connect(argv[1], NULL, &client, &diag);
    if (err == BAY_OK) {
        err = bay_client_task_wait_str(client, bay_reply_task(begun), &reply, &diag);
    }
    bay_reply_free(begun);
    if (err == BAY_OK) {
        bay_print(stdout, bay_reply_text(reply, 0));
        putchar('\n');
        bay_reply_free(reply);
    } else {
        fprintf(stderr, "%s\n", diag.text);
    }
    bay_client_close(client);
    return err != BAY_OK;
}

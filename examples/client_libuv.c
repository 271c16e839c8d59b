/* A client inside a libuv loop: three calls at once, beside whatever else the loop watches.
 *
 *     client_libuv "stdio:./weather" */
#include <patchbay/client.h>
#include <stdio.h>
#include <uv.h>

static const char *const questions[] = {"{\"location\":\"Tokyo\"}", "{\"location\":\"Oslo\"}",
                                        "{\"location\":\"Cairo\"}"};
enum { QUESTIONS = sizeof(questions) / sizeof(questions[0]) };

typedef struct program {
    bay_client *client;
    uv_poll_t readable;
    uv_timer_t due;
    int open; /* questions without an answer */
    int status;
} program;

static void on_due(uv_timer_t *timer);

/* Asked anew after each dispatch and each start. */
static void wait_for_more(program *self)
{
    int wait_ms = bay_client_wait_ms(self->client);
    if (self->open == 0) {
        uv_stop(self->readable.loop);
    } else if (wait_ms < 0) {
        uv_timer_stop(&self->due);
    } else {
        uv_timer_start(&self->due, on_due, (uint64_t)wait_ms, 0);
    }
}

static void dispatch(program *self)
{
    if (bay_client_dispatch(self->client) != BAY_OK) {
        self->status = 1;
    }
    wait_for_more(self);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    dispatch(poll->data);
}

static void on_due(uv_timer_t *timer)
{
    dispatch(timer->data);
}

static void answered(bay_request *request, bay_reply *reply, const bay_diag *diag, void *user)
{
    program *self = user;
    (void)request;
    if (reply != NULL && diag->code == BAY_OK) {
        bay_print(stdout, bay_reply_text(reply, 0));
        putchar('\n');
    } else {
        fprintf(stderr, "%s\n", diag->text);
        self->status = 1;
    }
    bay_reply_free(reply);
    self->open--;
}

int main(int argc, char **argv)
{
    program self = {0};
    bay_diag diag;
    uv_loop_t loop;
    if (uv_loop_init(&loop) != 0) {
        fprintf(stderr, "no event loop\n");
        return 1;
    }
    if (bay_client_connect_start(argc > 1 ? argv[1] : "stdio:./weather", NULL, &self.client, &diag,
                                 NULL, NULL) != BAY_OK) {
        fprintf(stderr, "%s\n", diag.text);
        uv_loop_close(&loop);
        return 1;
    }
    uv_poll_init(&loop, &self.readable, bay_client_fd(self.client));
    uv_timer_init(&loop, &self.due);
    self.readable.data = self.due.data = &self;
    uv_poll_start(&self.readable, UV_READABLE, on_readable);
    for (int i = 0; i < QUESTIONS; i++) {
        bay_request *request = bay_request_tool(self.client, "get_weather", questions[i]);
        self.open += bay_request_start(request, &diag, answered, &self) == BAY_OK;
    }
    wait_for_more(&self);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&self.readable, NULL);
    uv_close((uv_handle_t *)&self.due, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    bay_client_close(self.client);
    uv_loop_close(&loop);
    return self.status;
}

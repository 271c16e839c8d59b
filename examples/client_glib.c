/* A client inside a GLib main loop, as a source of its own: three calls at once.
 *
 *     client_glib "stdio:./weather" */
#include <glib-unix.h>
#include <glib.h>
#include <patchbay/client.h>
#include <stdio.h>

static const char *const questions[] = {"{\"location\":\"Tokyo\"}", "{\"location\":\"Oslo\"}",
                                        "{\"location\":\"Cairo\"}"};
enum { QUESTIONS = sizeof(questions) / sizeof(questions[0]) };

/* A GSource that is a client: GLib asks it how long it may wait. */
typedef struct client_source {
    GSource base;
    bay_client *client;
    gpointer readable;
} client_source;

static gboolean source_prepare(GSource *base, gint *timeout_ms)
{
    client_source *self = (client_source *)base;
    *timeout_ms = bay_client_wait_ms(self->client);
    return *timeout_ms == 0;
}

static gboolean source_check(GSource *base)
{
    client_source *self = (client_source *)base;
    return g_source_query_unix_fd(base, self->readable) != 0 ||
           bay_client_wait_ms(self->client) == 0;
}

static gboolean source_dispatch(GSource *base, GSourceFunc callback, gpointer user)
{
    client_source *self = (client_source *)base;
    (void)callback, (void)user;
    return bay_client_dispatch(self->client) == BAY_OK ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
}

static GSourceFuncs source_functions = {
    .prepare = source_prepare, .check = source_check, .dispatch = source_dispatch};

typedef struct program {
    GMainLoop *loop;
    int open; /* questions without an answer */
    int status;
} program;

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
    if (--self->open == 0) {
        g_main_loop_quit(self->loop);
    }
}

int main(int argc, char **argv)
{
    bay_client *client;
    bay_diag diag;
    if (bay_client_connect_start(argc > 1 ? argv[1] : "stdio:./weather", NULL, &client, &diag, NULL,
                                 NULL) != BAY_OK) {
        fprintf(stderr, "%s\n", diag.text);
        return 1;
    }
    program self = {.loop = g_main_loop_new(NULL, FALSE)};
    client_source *source = (client_source *)g_source_new(&source_functions, sizeof(*source));
    source->client = client;
    source->readable = g_source_add_unix_fd(&source->base, bay_client_fd(client), G_IO_IN);
    g_source_attach(&source->base, NULL);
    for (int i = 0; i < QUESTIONS; i++) {
        bay_request *request = bay_request_tool(client, "get_weather", questions[i]);
        self.open += bay_request_start(request, &diag, answered, &self) == BAY_OK;
    }
    if (self.open > 0) {
        g_main_loop_run(self.loop);
    }
    g_source_destroy(&source->base);
    g_source_unref(&source->base);
    g_main_loop_unref(self.loop);
    bay_client_close(client);
    return self.status;
}

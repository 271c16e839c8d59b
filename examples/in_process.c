/* A server and its client in one program, without a carrier between them: for programs that are
 * their own host, and for tests. The allocator and the log are the program's, too. */
#include <patchbay/client.h>
#include <patchbay/server.h>
#include <stdio.h>
#include <stdlib.h>

static size_t allocations;

static void *counted_alloc(size_t bytes, void *user)
{
    (void)user;
    allocations++;
    return malloc(bytes);
}

static void *counted_resize(void *old, size_t bytes, void *user)
{
    (void)user;
    allocations += old == NULL;
    return realloc(old, bytes);
}

static void counted_release(void *old, void *user)
{
    (void)user;
    free(old);
}

static void print_line(bay_log_level level, const char *component, const char *text, void *user)
{
    (void)user;
    fprintf(stderr, "%d %s: %s\n", (int)level, component, text);
}

static void add(bay_call *call, void *user)
{
    (void)user;
    bay_call_replyf(call, "%g",
                    bay_call_double_or(call, "a", 0) + bay_call_double_or(call, "b", 0));
}

static const bay_field input[] = {
    {"a", BAY_TYPE_NUMBER, .is_required = true}, {"b", BAY_TYPE_NUMBER, .is_required = true}, {0}};

int main(void)
{
    bay_allocator counted = {sizeof(counted), counted_alloc, counted_resize, counted_release, NULL};
    bay_client *client = NULL;
    bay_reply *reply = NULL;
    bay_diag diag;
    if (bay_set_allocator(&counted) != BAY_OK) {
        return 1;
    }
    bay_log_to(BAY_LOG_LEVEL_WARNING, print_line, NULL);
    bay_server *server = bay_server_new("sums", "1.0.0");
    bay_server_tool(server, "add", "The sum of two numbers.", input, add, NULL);
    if (bay_client_attach(server, NULL, &client, &diag) != BAY_OK ||
        bay_client_call(client, "add", "{\"a\":2,\"b\":40}", &reply, &diag) != BAY_OK) {
        fprintf(stderr, "%s\n", diag.text);
        bay_client_close(client);
        bay_server_free(server);
        return 1;
    }
    printf("%.*s\n", BAY_STR(bay_reply_text(reply, 0)));
    bay_reply_free(reply);
    bay_client_close(client);
    bay_server_free(server);
    fprintf(stderr, "%zu allocations\n", allocations);
    return 0;
}

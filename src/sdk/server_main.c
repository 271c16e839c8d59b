/* bay_server_main: a program that is a server. Standard input and output unless --http asks for an
 * address. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/server_parts.h"
#include "transport/mcp_http_face.h"
#include "transport/mcp_stdio.h"

enum { DRAIN_MS = 10000, LINGER_MS = 60000, EXIT_FAILED = 1, EXIT_USAGE = 2 };

typedef struct host {
    bay_server *server;
    loop *loop;
    mcp_stdio *stdio;
    http_server *http;
    http_face *face;
    loop_timer timer;
    bool is_draining;
} host;

static void stderr_sink(void *user, log_level level, const char *component, const char *text)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    (void)user;
    fprintf(stderr, "%s: %s: %s\n", names[level], component, text);
}

static void host_tick(void *argument)
{
    host *self = argument;
    uint64_t now = loop_now_ms(self->loop);
    uint64_t due = mcp_server_tick(self->server->engine, now);
    uint64_t after = due == UINT64_MAX || due > now + 1000 ? 1000 : due > now ? due - now : 1;
    err_ignore(loop_timer_start(self->loop, &self->timer, after));
}

static void host_done(void *argument)
{
    host *self = argument;
    loop_stop(self->loop);
}

static void host_signal(void *argument, int number)
{
    host *self = argument;
    (void)number;
    if (self->http == NULL || self->is_draining) {
        loop_stop(self->loop);
        return;
    }
    self->is_draining = true;
    http_face_close_streams(self->face);
    http_server_drain(self->http, DRAIN_MS, host_done, self);
}

static mcp_server *host_engine(void *user, bay_str path)
{
    host *self = user;
    bool is_endpoint = str_eq(path, STR("/mcp")) || str_eq(path, STR("/"));
    return is_endpoint ? self->server->engine : NULL;
}

static bay_err host_open_engine(host *self)
{
    bay_server *server = self->server;
    mcp_server_options options = {
        .name = str_of(server->name),
        .title = str_of(server->title),
        .version = str_of(server->version),
        .instructions = str_of(server->instructions),
        .oldest = MCP_REV_2024_11_05,
        .newest = MCP_LATEST,
    };
    server->loop = self->loop;
    server->loop_thread = pthread_self();
    bay_err err = mcp_server_new(&options, &sdk_server_service, server, &server->engine);
    if (err == BAY_OK) {
        sdk_announcements_open(server, self->loop);
    }
    return err;
}

static bay_err host_open_http(host *self, const char *address)
{
    char full[256];
    bool has_port = strrchr(address, ':') != NULL && address[strlen(address) - 1] != ']';
    int len = snprintf(full, sizeof(full), "%s%s", address, has_port ? "" : ":8080");
    if (address[0] == '\0' || address[0] == ':' || len < 0 || (size_t)len >= sizeof(full)) {
        fprintf(stderr, "%s: cannot listen on \"%.80s\": ADDRESS[:PORT] is wanted\n",
                self->server->name, address);
        return BAY_INVALID;
    }
    bool is_loopback = strncmp(full, "127.", 4) == 0 || strncmp(full, "localhost:", 10) == 0 ||
                       strncmp(full, "[::1]", 5) == 0;
    http_face_options face = {
        .is_loopback = is_loopback,
        .engine = host_engine,
        .user = self,
        .sse_path = "/sse",
        .messages_path = "/messages",
    };
    bay_err err = http_face_new(self->loop, &face, &self->face);
    if (err != BAY_OK) {
        return err;
    }
    http_server_options http = {
        .limits = http_server_default_limits,
        .handler = &http_face_handler,
        .user = self->face,
    };
    err = http_server_new(self->loop, &http, &self->http);
    if (err != BAY_OK) {
        return err;
    }
    bay_diag diag = {0};
    err = http_server_listen(self->http, str_of(full), &diag);
    if (err != BAY_OK) {
        fprintf(stderr, "%s: cannot listen on %s: %s\n", self->server->name, full, diag.text);
        return err;
    }
    int host_len = (int)(strrchr(full, ':') - full);
    fprintf(stderr, "%s: listening on http://%.*s:%u/mcp\n", self->server->name, host_len, full,
            http_server_port(self->http));
    return BAY_OK;
}

static void host_close(host *self)
{
    if (self->stdio != NULL) {
        mcp_stdio_free(self->stdio);
    }
    if (self->http != NULL) {
        http_server_free(self->http);
    }
    if (self->face != NULL) {
        http_face_free(self->face);
    }
    loop_timer_stop(self->loop, &self->timer);
    /* Handlers on other threads still hold their calls: give them time to let go. */
    uint64_t deadline = loop_now_ms(self->loop) + DRAIN_MS;
    while (self->server->calls_under_way > 0 && loop_now_ms(self->loop) < deadline) {
        loop_turn(self->loop, 100);
    }
    if (self->server->calls_under_way > 0) {
        fprintf(stderr, "%s: a handler did not come to an end; leaving without it\n",
                self->server->name);
        _exit(EXIT_FAILED);
    }
    sdk_announcements_close(self->server);
    mcp_server_free(self->server->engine);
    self->server->engine = NULL;
    loop_free(self->loop);
    self->server->loop = NULL;
}

static int serve(bay_server *server, const char *address)
{
    host self = {.server = server};
    if (loop_new(&self.loop) != BAY_OK) {
        fprintf(stderr, "%s: cannot serve: no event loop\n", server->name);
        return EXIT_FAILED;
    }
    loop_timer_init(&self.timer, host_tick, &self);
    bay_err err = host_open_engine(&self);
    if (err == BAY_OK) {
        err = address != NULL
                  ? host_open_http(&self, address)
                  : mcp_stdio_new(self.loop, server->engine, STDIN_FILENO, STDOUT_FILENO, LINGER_MS,
                                  host_done, &self, &self.stdio);
    }
    if (err == BAY_OK) {
        err = loop_on_signal(self.loop, SIGTERM, host_signal, &self);
    }
    if (err == BAY_OK) {
        err = loop_on_signal(self.loop, SIGINT, host_signal, &self);
    }
    if (err == BAY_OK) {
        host_tick(&self);
        loop_run(self.loop);
    } else {
        fprintf(stderr, "%s: cannot serve: %s\n", server->name, bay_err_text(err));
    }
    host_close(&self);
    return err == BAY_OK ? 0 : EXIT_FAILED;
}

static void print_help(const bay_server *server, const char *program)
{
    printf("%s %s: an MCP server\n\n"
           "usage: %s [--stdio | --http ADDRESS[:PORT]]\n\n"
           "  --stdio                speak on standard input and output (the default)\n"
           "  --http ADDRESS[:PORT]  listen, 127.0.0.1:8080 for instance, at /mcp (port 0: a free "
           "one)\n"
           "  --help, --version\n",
           server->name, server->version != NULL ? server->version : "", program);
}

static int run(bay_server *server, int argc, char **argv)
{
    const char *address = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            print_help(server, argv[0]);
            return 0;
        }
        if (strcmp(argv[i], "--version") == 0) {
            printf("%s %s\n", server->name, server->version != NULL ? server->version : "");
            return 0;
        }
        if (strcmp(argv[i], "--http") == 0 && i + 1 < argc) {
            address = argv[++i];
        } else if (strcmp(argv[i], "--stdio") == 0) {
            address = NULL;
        } else {
            fprintf(stderr, "%s: unknown or incomplete option \"%s\"; see --help\n", server->name,
                    argv[i]);
            return EXIT_USAGE;
        }
    }
    if (sdk_server_render(server) != BAY_OK) {
        fprintf(stderr, "%s: out of memory\n", server->name);
        return EXIT_FAILED;
    }
    return serve(server, address);
}

int bay_server_main(bay_server *server, int argc, char **argv)
{
    bay_diag diag = {0};
    if (bay_server_check(server, &diag) != BAY_OK) {
        size_t told = server != NULL ? server->error_count : 0;
        for (size_t i = 0; i < told && i < SERVER_MAX_ERRORS; i++) {
            fprintf(stderr, "error: %s\n", server->errors[i].text);
        }
        if (told > SERVER_MAX_ERRORS) {
            fprintf(stderr, "error: and %zu more\n", told - SERVER_MAX_ERRORS);
        }
        if (told == 0 || server->is_out_of_memory) {
            fprintf(stderr, "error: %s\n", diag.text);
        }
        bay_server_free(server);
        return EXIT_FAILED;
    }
    signal(SIGPIPE, SIG_IGN);
    log_set_sink(stderr_sink, NULL, LOG_WARN);
    int status = run(server, argc, argv);
    bay_server_free(server);
    return status;
}

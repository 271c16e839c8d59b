/* bay_server_main: a program that is a server, on standard input and output unless --http asks for
 * an address. The only place of the library that prints, takes signals and ends the process. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "sdk/server_parts.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

static void stderr_sink(void *user, log_level level, const char *component, const char *text)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    (void)user;
    fprintf(stderr, "%s: %s: %s\n", names[level], component, text);
}

/* The one server of this process that signals stop. */
static bay_server *stopped_by_signal;

static void on_signal(int number)
{
    (void)number;
    bay_server_stop(stopped_by_signal);
}

static void take_signals(bay_server *server)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    stopped_by_signal = server;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

/* The server goes, and with it what the handler would ring. */
static void leave_signals(void)
{
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    stopped_by_signal = NULL;
}

static bay_err listen_on(bay_server *server, const char *address)
{
    char full[256];
    bool has_port = strrchr(address, ':') != NULL && address[strlen(address) - 1] != ']';
    int len = snprintf(full, sizeof(full), "%s%s", address, has_port ? "" : ":8080");
    if (address[0] == '\0' || address[0] == ':' || len < 0 || (size_t)len >= sizeof(full)) {
        fprintf(stderr, "%s: cannot listen on \"%.80s\": ADDRESS[:PORT] is wanted\n", server->name,
                address);
        return BAY_INVALID;
    }
    bay_diag diag = {0};
    bay_err err = bay_server_listen(server, full, &diag);
    if (err != BAY_OK) {
        fprintf(stderr, "%s: cannot listen on %s: %s\n", server->name, full, diag.text);
        return err;
    }
    int host_len = (int)(strrchr(full, ':') - full);
    fprintf(stderr, "%s: listening on http://%.*s:%u/mcp\n", server->name, host_len, full,
            bay_server_port(server));
    return BAY_OK;
}

/* Standard input and output unless there is an address. */
static int serve(bay_server *server, const char *address)
{
    bay_diag diag = {0};
    bay_err err;
    if (address != NULL) {
        err = listen_on(server, address);
    } else {
        err = bay_server_pipe(server, STDIN_FILENO, STDOUT_FILENO, &diag);
        if (err != BAY_OK) {
            fprintf(stderr, "%s: cannot serve: %s\n", server->name, diag.text);
        }
    }
    if (err != BAY_OK) {
        return EXIT_FAILED;
    }
    take_signals(server);
    err = bay_server_run(server, &diag);
    leave_signals();
    if (err == BAY_TIMEOUT) {
        fprintf(stderr, "%s: %s; leaving without it\n", server->name, diag.text);
        _exit(EXIT_FAILED); /* a thread still works on the server's memory */
    }
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

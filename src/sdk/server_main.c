/* bay_server_main: a program that is a server, on standard input and output unless --http asks for
 * an address. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "sdk/program.h"
#include "sdk/server_parts.h"

static void stop(void *server)
{
    bay_server_stop(server);
}

static bay_err listen_on(bay_server *server, const char *address)
{
    char full[PROGRAM_ADDRESS_BYTES];
    if (!program_address(str_of(server->name), address, full)) {
        return BAY_ERR_INVALID;
    }
    bay_diag diag = {0};
    bay_err err = bay_server_listen(server, full, &diag);
    if (err != BAY_OK) {
        fprintf(stderr, "%s: cannot listen on %s: %s\n", server->name, full, diag.text);
        return err;
    }
    program_print_address(str_of(server->name),
                          server->host.certificate_file.len > 0 ? "https" : "http", str_of(full),
                          bay_server_port(server), STR("/mcp"));
    return BAY_OK;
}

/* Standard input and output unless there is an address. */
static int main_serve(bay_server *server, const char *address)
{
    bay_diag diag = {0};
    bay_err err;
    program_take_signals(stop, server); /* before anybody is told that it serves */
    if (address != NULL) {
        err = listen_on(server, address);
    } else {
        err = bay_server_pipe(server, STDIN_FILENO, STDOUT_FILENO, &diag);
        if (err != BAY_OK) {
            fprintf(stderr, "%s: cannot serve: %s\n", server->name, diag.text);
        }
    }
    if (err != BAY_OK) {
        program_leave_signals();
        return PROGRAM_FAILED;
    }
    err = bay_server_run(server, &diag);
    program_leave_signals();
    return program_ended(str_of(server->name), err, &diag);
}

static void print_help(const bay_server *server, const char *program)
{
    printf("%s %s: an MCP server\n\n"
           "usage: %s [--stdio | --http ADDRESS[:PORT] [--open]]\n\n"
           "  --stdio                speak on standard input and output (the default)\n"
           "  --http ADDRESS[:PORT]  listen, 127.0.0.1:8080 for instance, at /mcp (port 0: a free "
           "one)\n"
           "  --open                 listen also where other machines reach it: anybody may call\n"
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
        } else if (strcmp(argv[i], "--open") == 0) {
            bay_server_open_on_purpose(server);
        } else {
            fprintf(stderr, "%s: unknown or incomplete option \"%s\"; see --help\n", server->name,
                    argv[i]);
            return PROGRAM_USAGE;
        }
    }
    return main_serve(server, address);
}

int bay_server_main(bay_server *server, int argc, char **argv)
{
    bay_diag diag = {0};
    program_begin(); /* warnings of the check are shown, too */
    if (bay_server_check(server, &diag) != BAY_OK) {
        program_print_errors(server != NULL ? &server->errors : NULL,
                             server == NULL || server->is_out_of_memory, &diag);
        bay_server_free(server);
        return PROGRAM_FAILED;
    }
    int status = run(server, argc, argv);
    bay_server_free(server);
    return status;
}

/* bay_agent_main: a program that is an agent. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "sdk/agent_parts.h"
#include "sdk/program.h"

static void stop(void *agent)
{
    bay_agent_stop(agent);
}

static int print_help(const bay_agent *agent, const char *program)
{
    printf("%.*s %.*s: %.*s\nan A2A agent\n\n"
           "usage: %s [--http ADDRESS[:PORT] [--open]] [--store FILE] [--url URL]\n\n"
           "  --http ADDRESS[:PORT]  listen there (127.0.0.1:8080; port 0: a free one)\n"
           "  --open                 listen also where other machines reach it: anybody may call\n"
           "  --store FILE           keep tasks in this SQLite file\n"
           "  --url URL              where callers reach it, for its card\n"
           "  --card                 print the card and end\n"
           "  --help, --version\n",
           BAY_STR(agent->name), BAY_STR(agent->version), BAY_STR(agent->description), program);
    return 0;
}

static int agent_main_serve(bay_agent *agent, const char *address)
{
    char full[PROGRAM_ADDRESS_BYTES];
    if (!program_address(agent->name, address, full)) {
        return PROGRAM_USAGE;
    }
    bay_diag diag = {.code = BAY_OK};
    program_take_signals(stop, agent); /* before anybody is told that it serves */
    if (bay_agent_listen(agent, full, &diag) != BAY_OK) {
        program_leave_signals();
        fprintf(stderr, "%.*s: cannot listen on %s: %s\n", BAY_STR(agent->name), full, diag.text);
        return PROGRAM_FAILED;
    }
    program_print_address(agent->name, agent->host.certificate_file.len > 0 ? "https" : "http",
                          str_of(full), bay_agent_port(agent), agent->path);
    bay_err err = bay_agent_run(agent, &diag);
    program_leave_signals();
    return program_ended(agent->name, err, &diag);
}

static int run(bay_agent *agent, int argc, char **argv)
{
    const char *address = "127.0.0.1";
    bool is_card = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            return print_help(agent, argv[0]);
        }
        if (strcmp(argv[i], "--version") == 0) {
            printf("%.*s %.*s\n", BAY_STR(agent->name), BAY_STR(agent->version));
            return 0;
        }
        if (strcmp(argv[i], "--card") == 0) {
            is_card = true;
        } else if (strcmp(argv[i], "--open") == 0) {
            bay_agent_open_on_purpose(agent);
        } else if (strcmp(argv[i], "--http") == 0 && i + 1 < argc) {
            address = argv[++i];
        } else if (strcmp(argv[i], "--store") == 0 && i + 1 < argc) {
            bay_agent_store(agent, argv[++i]);
        } else if (strcmp(argv[i], "--url") == 0 && i + 1 < argc) {
            bay_agent_url(agent, argv[++i]);
        } else {
            fprintf(stderr, "%.*s: unknown or incomplete option \"%s\"; see --help\n",
                    BAY_STR(agent->name), argv[i]);
            return PROGRAM_USAGE;
        }
    }
    bay_diag diag = {.code = BAY_OK};
    if (bay_agent_check(agent, &diag) != BAY_OK) {
        return program_print_errors(&agent->errors, agent->is_out_of_memory, &diag);
    }
    if (is_card) {
        printf("%.*s\n", BAY_STR(bay_agent_card(agent)));
        return 0;
    }
    return agent_main_serve(agent, address);
}

int bay_agent_main(bay_agent *agent, int argc, char **argv)
{
    bay_diag diag = {.code = BAY_ERR_NOMEM};
    int status;
    if (agent == NULL) {
        fprintf(stderr, "error: %s\n", bay_err_text(BAY_ERR_NOMEM));
        return PROGRAM_FAILED;
    }
    if (bay_agent_check(agent, &diag) != BAY_OK) {
        status = program_print_errors(&agent->errors, agent->is_out_of_memory, &diag);
    } else {
        program_begin();
        status = run(agent, argc, argv);
    }
    bay_agent_free(agent);
    return status;
}

/* bay_agent_main: a program that is an agent. With bay_server_main the only place of the library
 * that prints, takes signals and ends the process. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "sdk/agent_parts.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

static void stderr_sink(void *user, log_level level, const char *component, const char *text)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    (void)user;
    fprintf(stderr, "%s: %s: %s\n", names[level], component, text);
}

/* The one agent of this process that signals stop. */
static bay_agent *stopped_by_signal;

static void on_signal(int number)
{
    (void)number;
    bay_agent_stop(stopped_by_signal);
}

static void take_signals(bay_agent *agent)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    stopped_by_signal = agent;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

/* The agent goes, and with it what the handler would ring. */
static void leave_signals(void)
{
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    stopped_by_signal = NULL;
}

static int print_help(const bay_agent *agent, const char *program)
{
    printf("%.*s %.*s: %.*s\nan A2A agent\n\n"
           "usage: %s [--http ADDRESS[:PORT]] [--store FILE] [--url URL]\n\n"
           "  --http ADDRESS[:PORT]  listen there (127.0.0.1:8080; port 0: a free one)\n"
           "  --store FILE           keep tasks in this SQLite file\n"
           "  --url URL              where callers reach it, for its card\n"
           "  --card                 print the card and end\n"
           "  --help, --version\n",
           BAY_STR(agent->name), BAY_STR(agent->version), BAY_STR(agent->description), program);
    return 0;
}

static int serve(bay_agent *agent, const char *address)
{
    char full[256];
    bool has_port = strrchr(address, ':') != NULL && address[strlen(address) - 1] != ']';
    int len = snprintf(full, sizeof(full), "%s%s", address, has_port ? "" : ":8080");
    if (address[0] == '\0' || address[0] == ':' || len < 0 || (size_t)len >= sizeof(full)) {
        fprintf(stderr, "%.*s: cannot listen on \"%.80s\": ADDRESS[:PORT] is wanted\n",
                BAY_STR(agent->name), address);
        return EXIT_USAGE;
    }
    bay_diag diag = {.code = BAY_OK};
    if (bay_agent_listen(agent, full, &diag) != BAY_OK) {
        fprintf(stderr, "%.*s: cannot listen on %s: %s\n", BAY_STR(agent->name), full, diag.text);
        return EXIT_FAILED;
    }
    int host_len = (int)(strrchr(full, ':') - full);
    fprintf(stderr, "%.*s: listening on %s://%.*s:%u%.*s\n", BAY_STR(agent->name),
            agent->certificate_file.len > 0 ? "https" : "http", host_len, full,
            bay_agent_port(agent), BAY_STR(agent->path));
    take_signals(agent);
    bay_err err = bay_agent_run(agent, &diag);
    leave_signals();
    if (err == BAY_TIMEOUT) {
        fprintf(stderr, "%.*s: %s; leaving without it\n", BAY_STR(agent->name), diag.text);
        _exit(EXIT_FAILED); /* a thread still works on the agent's memory */
    }
    return err == BAY_OK ? 0 : EXIT_FAILED;
}

static int print_errors(const bay_agent *agent, const bay_diag *diag)
{
    size_t told = agent != NULL ? agent->error_count : 0;
    for (size_t i = 0; i < told && i < AGENT_ERRORS; i++) {
        fprintf(stderr, "error: %s\n", agent->errors[i].text);
    }
    if (told > AGENT_ERRORS) {
        fprintf(stderr, "error: and %zu more\n", told - AGENT_ERRORS);
    }
    if (told == 0 || agent->is_out_of_memory) {
        fprintf(stderr, "error: %s\n", diag->text);
    }
    return EXIT_FAILED;
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
        } else if (strcmp(argv[i], "--http") == 0 && i + 1 < argc) {
            address = argv[++i];
        } else if (strcmp(argv[i], "--store") == 0 && i + 1 < argc) {
            bay_agent_store(agent, argv[++i]);
        } else if (strcmp(argv[i], "--url") == 0 && i + 1 < argc) {
            bay_agent_url(agent, argv[++i]);
        } else {
            fprintf(stderr, "%.*s: unknown or incomplete option \"%s\"; see --help\n",
                    BAY_STR(agent->name), argv[i]);
            return EXIT_USAGE;
        }
    }
    bay_diag diag = {.code = BAY_OK};
    if (bay_agent_check(agent, &diag) != BAY_OK) {
        return print_errors(agent, &diag);
    }
    if (is_card) {
        printf("%.*s\n", BAY_STR(bay_agent_card(agent)));
        return 0;
    }
    return serve(agent, address);
}

int bay_agent_main(bay_agent *agent, int argc, char **argv)
{
    bay_diag diag = {.code = BAY_NOMEM};
    int status;
    if (agent == NULL) {
        fprintf(stderr, "error: %s\n", bay_err_text(BAY_NOMEM));
        return EXIT_FAILED;
    }
    if (bay_agent_check(agent, &diag) != BAY_OK) {
        status = print_errors(agent, &diag);
    } else {
        signal(SIGPIPE, SIG_IGN);
        log_set_sink(stderr_sink, NULL, LOG_WARN);
        status = run(agent, argc, argv);
    }
    bay_agent_free(agent);
    return status;
}

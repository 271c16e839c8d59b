/* A program that is a server or an agent. */
#include "sdk/program.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "front/listen_address.h"

static void stderr_sink(log_level level, const char *component, const char *text, void *user)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    (void)user;
    fprintf(stderr, "%s: %s: %s\n", names[level], component, text);
}

void program_begin(void)
{
    signal(SIGPIPE, SIG_IGN);
    mem_trim_large();
    log_set_sink(LOG_WARN, stderr_sink, NULL);
}

/* The one object of this process that signals stop. */
static void (*stop_it)(void *object);
static void *stopped_by_signal;

static void on_signal(int number)
{
    (void)number;
    stop_it(stopped_by_signal);
}

void program_take_signals(void (*stop)(void *object), void *object)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    stop_it = stop;
    stopped_by_signal = object;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

/* The object goes, and with it what the handler would ring. */
void program_leave_signals(void)
{
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    stopped_by_signal = NULL;
}

bool program_address(bay_str name, const char *address, char out[PROGRAM_ADDRESS_BYTES])
{
    bool has_port = strrchr(address, ':') != NULL && address[strlen(address) - 1] != ']';
    int len = snprintf(out, PROGRAM_ADDRESS_BYTES, "%s%s", address, has_port ? "" : ":8080");
    if (address[0] != '\0' && address[0] != ':' && len >= 0 && len < PROGRAM_ADDRESS_BYTES) {
        return true;
    }
    fprintf(stderr, "%.*s: cannot listen on \"%.80s\": ADDRESS[:PORT] is wanted\n", BAY_STR(name),
            address);
    return false;
}

void program_print_address(bay_str name, const char *scheme, bay_str address, uint16_t port,
                           bay_str path)
{
    char text[PROGRAM_ADDRESS_BYTES + 8];
    buf where = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    listen_address_write(address, port, &where);
    fprintf(stderr, "%.*s: listening on %s://%.*s%.*s\n", BAY_STR(name), scheme,
            BAY_STR(buf_view(&where)), BAY_STR(path));
}

int program_print_errors(const registration_errors *errors, bool is_out_of_memory,
                         const bay_diag *diag)
{
    size_t count = errors != NULL ? errors->count : 0;
    for (size_t i = 0; i < count && i < REGISTRATION_ERRORS; i++) {
        fprintf(stderr, "error: %s\n", errors->kept[i].text);
    }
    if (count > REGISTRATION_ERRORS) {
        fprintf(stderr, "error: and %zu more\n", count - REGISTRATION_ERRORS);
    }
    if (count == 0 || is_out_of_memory) {
        fprintf(stderr, "error: %s\n", diag->text);
    }
    return PROGRAM_FAILED;
}

int program_ended(bay_str name, bay_err err, const bay_diag *diag)
{
    if (err == BAY_ERR_TIMEOUT) {
        fprintf(stderr, "%.*s: %s; leaving without it\n", BAY_STR(name), diag->text);
        _exit(PROGRAM_FAILED);
    }
    return err == BAY_OK ? 0 : PROGRAM_FAILED;
}

/* The load generator of stdio servers: starts one, keeps W calls under way, one line each, and asks
 * the kernel what the server's process paid for them; and what memory it held before its first call
 * and after it.
 *
 *     stdio_load [-t SECONDS] [-w CALLS] [-o REQUEST]… [-n NOTIFICATION]… -i ID -e TEXT -d CALL
 *                COMMAND…
 *
 * -o, -n: what opens the conversation, in this order; a request's answer is awaited. -i: the digits
 * in CALL that become a number of each call's own. -e: what every answer must hold. An answer that
 * is no result of JSON-RPC, or one with isError, is an error, is not counted, and fails the run. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"
#include "cpu.h"

enum { INPUT_BYTES = 1 << 20, CALL_BYTES = 4096, CALLS_MAX = 64, OPENING_MAX = 8, WAIT_MS = 20000 };

static const double warm_seconds = 0.3;

typedef struct load {
    const char *opening[OPENING_MAX];
    bool is_awaited[OPENING_MAX];
    size_t opening_count;
    char call[CALL_BYTES]; /* with its newline */
    size_t call_len;
    char *id_at; /* in `call` */
    size_t id_len;
    const char *expected;
    size_t under_way;
    double seconds;
    int in, out; /* the server's answers, and its requests */
    pid_t server;
    uint64_t sent, answered, errors;
    char input[INPUT_BYTES];
    size_t input_len;
} load;

static load state = {.under_way = 1, .seconds = 2};

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void fail(const char *what)
{
    fprintf(stderr, "stdio_load: %s\n", what);
    kill(state.server, SIGKILL);
    exit(1);
}

static void read_proc(const char *name, char *out, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)state.server, name);
    FILE *file = fopen(path, "r");
    size_t len = file != NULL ? fread(out, 1, size - 1, file) : 0;
    if (file != NULL) {
        fclose(file);
    }
    out[len] = '\0';
}

static cpu_time server_cpu(void)
{
    cpu_time used;
    if (!cpu_of(state.server, &used)) {
        fail("the server is gone");
    }
    return used;
}

static unsigned long resident_kb(void)
{
    char text[4096];
    read_proc("status", text, sizeof(text));
    char *at = strstr(text, "VmRSS:");
    return at != NULL ? strtoul(at + 6, NULL, 10) : 0;
}

static void send_all(const char *at, size_t len)
{
    while (len > 0) {
        ssize_t put = write(state.out, at, len);
        if (put < 0 && errno != EINTR) {
            fail("the server does not take its requests");
        }
        at += put > 0 ? put : 0;
        len -= put > 0 ? (size_t)put : 0;
    }
}

static void receive(void)
{
    struct pollfd waiting = {.fd = state.in, .events = POLLIN};
    if (poll(&waiting, 1, WAIT_MS) == 0) {
        fail("no answer");
    }
    ssize_t got = read(state.in, state.input + state.input_len, INPUT_BYTES - state.input_len);
    if (got <= 0) {
        fail("the server ended");
    }
    state.input_len += (size_t)got;
}

/* Takes the whole lines out of the input; how many there were. */
static size_t take_lines(const char *expected)
{
    size_t lines = 0;
    char *start = state.input;
    char *end = state.input + state.input_len;
    for (char *at; (at = memchr(start, '\n', (size_t)(end - start))) != NULL; start = at + 1) {
        lines++;
        if (!answer_is_result(start, (size_t)(at - start)) ||
            memmem(start, (size_t)(at - start), expected, strlen(expected)) == NULL) {
            if (state.errors++ == 0) {
                fprintf(stderr, "stdio_load: answered %.*s\n", (int)(at - start), start);
            }
        }
    }
    state.input_len = (size_t)(end - start);
    memmove(state.input, start, state.input_len);
    return lines;
}

static void open_conversation(void)
{
    for (size_t i = 0; i < state.opening_count; i++) {
        send_all(state.opening[i], strlen(state.opening[i]));
        send_all("\n", 1);
        if (state.is_awaited[i]) {
            do {
                receive();
            } while (take_lines("\"result\"") == 0);
        }
    }
}

/* `count` calls in one write, as a host does that has so many to make. */
static void call(size_t count)
{
    static char batch[CALLS_MAX * CALL_BYTES];
    size_t len = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t number = ++state.sent;
        for (size_t digit = state.id_len - 1; digit > 0; digit--, number /= 10) {
            state.id_at[digit] = (char)('0' + number % 10); /* the first stays: no leading zero */
        }
        memcpy(batch + len, state.call, state.call_len);
        len += state.call_len;
    }
    send_all(batch, len);
}

static void run(double seconds)
{
    double end = now() + seconds;
    size_t open = state.under_way;
    call(open);
    while (open > 0) {
        receive();
        uint64_t errors = state.errors;
        size_t lines = take_lines(state.expected);
        state.answered += lines - (state.errors - errors);
        open -= lines < open ? lines : open;
        if (lines > 0 && now() < end) {
            call(lines);
            open += lines;
        }
    }
}

static void start(char **command)
{
    int requests[2];
    int answers[2];
    if (pipe(requests) != 0 || pipe(answers) != 0 || (state.server = fork()) < 0) {
        perror("stdio_load");
        exit(1);
    }
    if (state.server == 0) {
        dup2(requests[0], STDIN_FILENO);
        dup2(answers[1], STDOUT_FILENO);
        close(requests[0]);
        close(requests[1]);
        close(answers[0]);
        close(answers[1]);
        execvp(command[0], command);
        perror(command[0]);
        _exit(127);
    }
    close(requests[0]);
    close(answers[1]);
    state.out = requests[1];
    state.in = answers[0];
}

static void usage(void)
{
    fprintf(stderr, "usage: stdio_load [-t seconds] [-w calls] [-o request]... "
                    "[-n notification]... -i id -e text -d call COMMAND...\n");
    exit(2);
}

static void read_arguments(int argc, char **argv)
{
    const char *id = NULL;
    for (int option; (option = getopt(argc, argv, "+t:w:o:n:i:e:d:")) != -1;) {
        switch (option) {
        case 't':
            state.seconds = strtod(optarg, NULL);
            break;
        case 'w':
            state.under_way = strtoul(optarg, NULL, 10);
            break;
        case 'o':
        case 'n':
            if (state.opening_count == OPENING_MAX) {
                usage();
            }
            state.is_awaited[state.opening_count] = option == 'o';
            state.opening[state.opening_count++] = optarg;
            break;
        case 'i':
            id = optarg;
            break;
        case 'e':
            state.expected = optarg;
            break;
        case 'd':
            state.call_len = (size_t)snprintf(state.call, CALL_BYTES, "%s\n", optarg);
            break;
        default:
            usage();
        }
    }
    state.id_at = id != NULL ? strstr(state.call, id) : NULL;
    if (optind == argc || state.id_at == NULL || state.expected == NULL ||
        state.call_len >= CALL_BYTES || state.under_way == 0 || state.under_way > CALLS_MAX) {
        usage();
    }
    state.id_len = strlen(id);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    start(argv + optind);
    open_conversation();
    unsigned long at_rest = resident_kb();
    size_t under_way = state.under_way;
    state.under_way = 1;
    run(0); /* one call */
    unsigned long after_call = resident_kb();
    state.under_way = under_way;
    run(state.seconds < warm_seconds ? state.seconds : warm_seconds);
    state.answered = 0;
    cpu_time before = server_cpu();
    double begin = now();
    run(state.seconds);
    double seconds = now() - begin;
    cpu_time after = server_cpu();
    close(state.out);
    kill(state.server, SIGTERM);
    waitpid(state.server, NULL, 0);
    printf("requests=%llu errors=%llu calls=%llu seconds=%.2f per_second=%.0f cpu_us=%.3f "
           "user_us=%.3f rest_kb=%lu called_kb=%lu\n",
           (unsigned long long)state.answered, (unsigned long long)state.errors,
           (unsigned long long)state.sent, seconds, (double)state.answered / seconds,
           (after.total - before.total) / (double)state.answered,
           (after.user - before.user) / (double)state.answered, at_rest, after_call);
    return state.errors == 0 ? 0 : 1;
}

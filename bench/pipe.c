/* The floor of a stdio upstream: the least that a round trip over two pipes can cost the parent. A
 * child answers each line with a line; the parent keeps 64 under way, one write and its share of a
 * read and an epoll_wait each. Prints the parent's CPU time per round trip.
 *
 *     pipe [ROUND_TRIPS] */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UNDER_WAY = 64, REQUEST_BYTES = 300, ANSWER_BYTES = 200, INPUT_BYTES = 64 * 1024 };

static char request[REQUEST_BYTES];
static char answer[ANSWER_BYTES];
static char input[INPUT_BYTES];

static size_t count_lines(ssize_t len)
{
    size_t lines = 0;
    for (const char *at = input; (at = memchr(at, '\n', (size_t)(input + len - at))) != NULL;
         at++) {
        lines++;
    }
    return lines;
}

/* One write each: a pipe takes these sizes whole. */
static void write_lines(int descriptor, const char *line, size_t len, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (write(descriptor, line, len) != (ssize_t)len) {
            _exit(1);
        }
    }
}

static void answer_lines(int from, int to)
{
    for (ssize_t got; (got = read(from, input, sizeof(input))) > 0;) {
        write_lines(to, answer, sizeof(answer), count_lines(got));
    }
    _exit(0);
}

static double cpu_us(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void go_round(int to, int from, size_t wanted)
{
    int poll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(poll, EPOLL_CTL_ADD, from, &event);
    write_lines(to, request, sizeof(request), UNDER_WAY);
    for (size_t answered = 0; answered < wanted;) {
        if (epoll_wait(poll, &event, 1, 5000) != 1) {
            fprintf(stderr, "pipe: no answer in 5 s\n");
            exit(1);
        }
        ssize_t got = read(from, input, sizeof(input));
        if (got <= 0) {
            fprintf(stderr, "pipe: the child is gone\n");
            exit(1);
        }
        size_t lines = count_lines(got);
        answered += lines;
        write_lines(to, request, sizeof(request), lines);
    }
    close(poll);
}

int main(int argc, char **argv)
{
    size_t wanted = argc > 1 ? strtoul(argv[1], NULL, 10) : 200000;
    int down[2];
    int up[2];
    memset(request, 'q', sizeof(request));
    memset(answer, 'a', sizeof(answer));
    request[sizeof(request) - 1] = answer[sizeof(answer) - 1] = '\n';
    if (pipe(down) != 0 || pipe(up) != 0) {
        perror("pipe");
        return 1;
    }
    pid_t child = fork();
    if (child == 0) {
        close(down[1]);
        close(up[0]);
        answer_lines(down[0], up[1]);
    }
    close(down[0]);
    close(up[1]);
    double before = cpu_us();
    go_round(down[1], up[0], wanted);
    printf("cpu_us=%.3f\n", (cpu_us() - before) / (double)wanted);
    close(down[1]);
    close(up[0]);
    waitpid(child, NULL, 0);
    return 0;
}

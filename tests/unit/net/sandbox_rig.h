/* What the tests of the sandbox share: things outside that a server may want, a server that wants
 * them (support/escape_server.c), and the kinds of walls around it. */
#ifndef NET_SANDBOX_RIG_H
#define NET_SANDBOX_RIG_H

#include "support/net_test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "net/process.h"
#include "net/sandbox.h"
#include "support/skipped.h"

enum { PATH = 256, TEXT = 1200 };

#ifndef BAY_TEST_BINARY_DIR
#define BAY_TEST_BINARY_DIR "." /* for readers of this header alone */
#endif
#define ESCAPE_SERVER BAY_TEST_BINARY_DIR "/escape_server"

/* ---- the world outside ----------------------------------------------------------------------- */

static struct {
    char folder[PATH]; /* with out/, ro/ and rw/ */
    char abstract[60];
    char socket[PATH];
    int tcp, udp, local, hidden; /* who listens */
    int tcp_port, udp_port;
    pid_t bystander;
    char program[PATH]; /* the escape server */
    char secret[16];    /* in the bystander's memory, too */
} world;

static inline void path_in(char out[PATH], const char *name)
{
    (void)snprintf(out, PATH, "%.200s/%.50s", world.folder, name);
}

static inline void put_file(const char *name, const char *text, mode_t mode)
{
    char path[PATH];
    path_in(path, name);
    (void)unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static inline void remove_file(const char *name)
{
    char path[PATH];
    path_in(path, name);
    if (unlink(path) != 0 && errno != ENOENT) {
        (void)rmdir(path);
    }
}

/* As it was before an attempt changed it. */
static inline void tidy_folder(void)
{
    static const char *const made[] = {"ro/new",  "ro/way",    "ro/folder", "rw/new",
                                       "rw/way",  "rw/hard",   "rw/folder", "out/new",
                                       "out/way", "out/folder"};
    char way[PATH];
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
        remove_file(made[i]);
    }
    put_file("out/secret", "hidden", 0666);
    put_file("out/program", "#!/bin/sh\nexit 0\n", 0755);
    put_file("ro/file", "shown", 0666);
    put_file("ro/program", "#!/bin/sh\nexit 0\n", 0755);
    put_file("rw/file", "ours", 0666);
    path_in(way, "rw/link");
    (void)unlink(way);
    assert_int_equal(symlink("../out/secret", way), 0);
}

static inline int listen_on(int family, int kind, struct sockaddr *at, socklen_t len)
{
    int fd = socket(family, kind | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, at, len), 0);
    if (kind == SOCK_STREAM) {
        assert_int_equal(listen(fd, 100), 0);
    }
    return fd;
}

static inline int listen_on_port(int kind, int *out_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = listen_on(AF_INET, kind, (struct sockaddr *)&at, sizeof(at));
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *out_port = ntohs(at.sin_port);
    return fd;
}

static inline int listen_on_name(const char *name, bool is_abstract)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)snprintf(at.sun_path + is_abstract, sizeof(at.sun_path) - is_abstract, "%s", name);
    size_t len = offsetof(struct sockaddr_un, sun_path) + is_abstract + strlen(name);
    return listen_on(AF_UNIX, SOCK_STREAM, (struct sockaddr *)&at, (socklen_t)len);
}

/* Somebody else's process: it has secrets in memory and environment, and lives until we end. */
static inline void start_bystander(void)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    world.bystander = fork();
    if (world.bystander == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)signal(SIGUSR1, SIG_IGN);
        (void)write(ends[1], "x", 1);
        for (;;) {
            pause();
        }
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    close(ends[1]);
}

static inline int open_world(void **state)
{
    static const char *const folders[] = {"out", "ro", "rw"};
    (void)state;
    (void)signal(SIGUSR1,
                 SIG_IGN); /* sent to us by a sandbox that leaks: tests then fail by name */
    (void)snprintf(world.folder, sizeof(world.folder), "/tmp/sandbox.XXXXXX");
    (void)snprintf(world.secret, sizeof(world.secret), "quiet");
    (void)snprintf(world.program, sizeof(world.program), "%s", ESCAPE_SERVER);
    assert_non_null(mkdtemp(world.folder));
    assert_int_equal(chmod(world.folder, 0755), 0);
    for (size_t i = 0; i < 3; i++) {
        char path[PATH];
        path_in(path, folders[i]);
        assert_int_equal(mkdir(path, 0777), 0);
        assert_int_equal(chmod(path, 0777), 0);
    }
    (void)snprintf(world.abstract, sizeof(world.abstract), "sandbox.%d", (int)getpid());
    path_in(world.socket, "rw/socket");
    world.tcp = listen_on_port(SOCK_STREAM, &world.tcp_port);
    world.udp = listen_on_port(SOCK_DGRAM, &world.udp_port);
    world.local = listen_on_name(world.socket, false);
    world.hidden = listen_on_name(world.abstract, true);
    start_bystander();
    return 0;
}

static inline int close_world(void **state)
{
    static const char *const left[] = {"rw/socket",  "rw/link",    "rw/file",     "ro/file",
                                       "ro/program", "out/secret", "out/program", "rw",
                                       "ro",         "out"};
    (void)state;
    tidy_folder();
    (void)kill(world.bystander, SIGKILL);
    (void)waitpid(world.bystander, NULL, 0);
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        remove_file(left[i]);
    }
    close(world.tcp);
    close(world.udp);
    close(world.local);
    close(world.hidden);
    return rmdir(world.folder);
}

/* ---- a server -------------------------------------------------------------------------------- */

typedef struct cell {
    loop *loop;
    process *process;
    buf line;
    int lines;
    int exits;
    int status;
    int signal;
} cell;

static inline void on_line(void *user, bay_str line)
{
    cell *self = user;
    buf_clear(&self->line);
    buf_str(&self->line, line);
    buf_char(&self->line, '\0');
    self->lines++;
}

static inline void on_error_line(void *user, bay_str line)
{
    (void)user;
    printf("# %.*s\n", BAY_STR(line));
}

static inline void on_exited(void *user, int status, int signal)
{
    cell *self = user;
    self->exits++;
    self->status = status;
    self->signal = signal;
}

static const process_events events = {
    .line = on_line, .error_line = on_error_line, .exited = on_exited};

static inline bay_err try_cell(cell *self, const sandbox_options *sandbox, bay_diag *diag)
{
    const char *argv[] = {world.program, NULL};
    process_options options = {.argv = argv, .sandbox = sandbox};
    *self = (cell){.loop = test_loop()};
    buf_init(&self->line, 1 << 20);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* as the gateway is */
    bay_err err = process_start(self->loop, &options, &events, self, &self->process, diag);
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* as tools and attempts from outside need us */
    return err;
}

static inline void open_cell(cell *self, const sandbox_options *sandbox)
{
    bay_diag diag = {0};
    bay_err err = try_cell(self, sandbox, &diag);
    if (err != BAY_OK) {
        print_error("%s\n", diag.text);
    }
    assert_int_equal(err, BAY_OK);
}

static inline void close_cell(cell *self)
{
    if (self->process != NULL && self->exits == 0) {
        process_close(self->process, 60000, 60000);
        turn_until(self->loop, self->exits == 1);
        assert_int_equal(self->status, 0);
    }
    process_free(self->process);
    loop_free(self->loop);
    buf_fini(&self->line);
}

/* The answer's text, or "" when the server died of the question. */
static inline const char *ask(cell *self, const char *tool, const char *a, const char *b)
{
    char text[TEXT];
    int before = self->lines;
    int len = snprintf(text, sizeof(text),
                       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
                       "\"name\":\"%s\",\"arguments\":{\"a\":\"%s\",\"b\":\"%s\"}}}",
                       tool, a, b);
    assert_in_range(len, 1, sizeof(text) - 1);
    assert_int_equal(process_write(self->process, str_of(text)), BAY_OK);
    turn_until(self->loop, self->lines > before || self->exits > 0);
    const char *answer = self->lines > before ? strstr(self->line.at, "\"text\":\"") : NULL;
    return answer != NULL ? answer + 8 : "";
}

static inline bool says(const char *answer, const char *word)
{
    return strncmp(answer, word, strlen(word)) == 0;
}

static inline void expect(cell *self, const char *tool, const char *a, const char *b,
                          const char *word)
{
    const char *answer = ask(self, tool, a, b);
    if (!says(answer, word)) {
        print_error("%s %s %s: wanted %s, came %.200s\n", tool, a, b, word, answer);
    }
    assert_true(says(answer, word));
}

/* ---- attempts -------------------------------------------------------------------------------- */

typedef struct attempt {
    const char *tool;
    const char *a; /* @ is the folder, % the bystander, & our own number, ! an address there */
    const char *b;
    int needs; /* a word of the test's own */
} attempt;

static inline void expand(char out[PATH], const char *text)
{
    size_t len = 0;
    if (strcmp(text, "tcp") == 0 || strcmp(text, "udp") == 0) {
        (void)snprintf(out, PATH, "%d", text[0] == 't' ? world.tcp_port : world.udp_port);
        return;
    }
    if (strcmp(text, "unix") == 0 || strcmp(text, "abstract") == 0) {
        (void)snprintf(out, PATH, "%s", text[0] == 'u' ? world.socket : world.abstract);
        return;
    }
    out[0] = '\0';
    for (const char *at = text; *at != '\0'; at++) {
        int added = *at == '@'   ? snprintf(out + len, PATH - len, "%s", world.folder)
                    : *at == '%' ? snprintf(out + len, PATH - len, "%d", (int)world.bystander)
                    : *at == '&' ? snprintf(out + len, PATH - len, "%d", (int)getpid())
                    : *at == '!' ? snprintf(out + len, PATH - len, "%lx",
                                            (unsigned long)(uintptr_t)world.secret)
                                 : snprintf(out + len, PATH - len, "%c", *at);
        len += (size_t)added;
        assert_true(len < PATH);
    }
}

static inline const char *make_attempt(cell *self, const attempt *row)
{
    char a[PATH];
    char b[PATH];
    expand(a, row->a);
    expand(b, row->b);
    tidy_folder();
    return ask(self, row->tool, a, b);
}

/* ---- kinds of walls -------------------------------------------------------------------------- */

typedef struct walls {
    sandbox_options options;
    sandbox_path paths[3];
    char texts[3][PATH];
} walls;

static inline void make_walls(walls *self, sandbox_bubblewrap bubblewrap)
{
    *self = (walls){.options = {.bubblewrap = bubblewrap, .path_count = 2}};
    path_in(self->texts[0], "ro");
    path_in(self->texts[1], "rw");
    self->paths[0] = (sandbox_path){self->texts[0], false};
    self->paths[1] = (sandbox_path){self->texts[1], true};
    self->options.paths = self->paths;
}

/* Why this machine has no such wall; NULL: it has. What it can do is asked of others, too, in
 * test_sandbox.c, so that our own look at it cannot skip these cases wrongly. */
static inline const char *wall_lack(sandbox_bubblewrap bubblewrap)
{
    const sandbox_facts *facts = sandbox_facts_of_machine();
    bool is_wrapped = bubblewrap == SANDBOX_BUBBLEWRAP_REQUIRED;
    return !facts->has_seccomp ? "this kernel, or what we run in, has no seccomp filters"
           : is_wrapped && facts->bubblewrap[0] == '\0'
               ? "bubblewrap is not installed or may not make namespaces here"
           : !is_wrapped && facts->landlock_abi == 0
               ? "this kernel, or what we run in, has no Landlock"
               : NULL;
}

/* In a case that goes through several walls: said aloud, and it goes on with the others. */
static inline bool is_wall_missing(sandbox_bubblewrap bubblewrap)
{
    const char *lack = wall_lack(bubblewrap);
    if (lack != NULL) {
        printf("skipped: sandbox: %s\n", lack);
    }
    return lack != NULL;
}

#define SKIP_WITHOUT(bubblewrap)                                                                   \
    do {                                                                                           \
        if (wall_lack(bubblewrap) != NULL) {                                                       \
            SKIP(wall_lack(bubblewrap));                                                           \
        }                                                                                          \
    } while (0)

/* Before a loop over walls: a case that meets none of them would show nothing. */
#define SKIP_WITHOUT_ANY()                                                                         \
    do {                                                                                           \
        if (wall_lack(SANDBOX_BUBBLEWRAP_NEVER) != NULL &&                                         \
            wall_lack(SANDBOX_BUBBLEWRAP_REQUIRED) != NULL) {                                      \
            SKIP("neither wall is to be had here");                                                \
        }                                                                                          \
    } while (0)

/* Who runs as root becomes somebody else: root's processes are not counted. */
static inline const char *bounded_user(void)
{
    return geteuid() == 0 ? "nobody" : NULL;
}

static inline const char *counting_lack(void)
{
    if (sandbox_facts_of_machine()->has_user_namespaces) {
        return NULL;
    }
#ifdef __SANITIZE_THREAD__
    return "no user namespaces with ThreadSanitizer, which has a thread of its own: the bound on "
           "processes was not tried";
#else
    return "no user namespaces here: the bound on processes was not tried";
#endif
}

static inline bool is_counting_missing(void)
{
    const char *lack = counting_lack();
    if (lack != NULL) {
        printf("skipped: sandbox: %s\n", lack);
    }
    return lack != NULL;
}

#endif

/* login, whoami, logout, and the commands in between, with the real binary: what is shown, what is
 * stored, and that no secret is ever printed. The test is the browser. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <openssl/evp.h> /* not in a build without it: its logins have no digests */
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/login_server.h" /* cmocka takes the word "fail" */

#include <cmocka.h>

#include "support/browse.h"

#define PROGRAM BAY_TEST_BINARY_DIR "/patchbay"

enum { TEXT_BYTES = 32768 };

typedef struct rig {
    login_server server;
    char state[64]; /* the user's state folder */
} rig;

typedef struct run {
    pid_t pid;
    int out, in;
    char text[TEXT_BYTES]; /* stdout and stderr */
    size_t len;
} run;

/* ---- the binary ------------------------------------------------------------------------------ */

static void start(const rig *on, run *self, const char *const *argv)
{
    int out[2], in[2];
    const char *words[24] = {PROGRAM};
    size_t count = 1;
    while (argv[count - 1] != NULL) {
        words[count] = argv[count - 1];
        count++;
    }
    *self = (run){0};
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    self->pid = fork();
    assert_true(self->pid >= 0);
    if (self->pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(out[1], 2);
        setenv("XDG_STATE_HOME", on->state, 1);
        unsetenv("DISPLAY");
        unsetenv("WAYLAND_DISPLAY");
        unsetenv("BROWSER");
        execv(PROGRAM, (char *const *)words);
        _exit(127);
    }
    close(out[1]);
    close(in[0]);
    self->out = out[0];
    self->in = in[1];
}

static bool read_more(run *self)
{
    ssize_t got = read(self->out, self->text + self->len, sizeof(self->text) - self->len - 1);
    if (got > 0) {
        self->len += (size_t)got;
        self->text[self->len] = '\0';
    }
    return got > 0;
}

static int finish(run *self)
{
    int status = 0;
    close(self->in);
    while (read_more(self)) {
    }
    close(self->out);
    assert_int_equal(waitpid(self->pid, &status, 0), self->pid);
    assert_null(strstr(self->text, "secret-")); /* no code, token or secret, whatever happened */
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int command(const rig *on, run *self, const char *const *argv)
{
    start(on, self, argv);
    return finish(self);
}

#define RUN(on, self, ...) command((on), (self), (const char *const[]){__VA_ARGS__, NULL})

/* ---- the browser ----------------------------------------------------------------------------- */

/* The page that the person is shown, once it is there. */
static void await_page(run *self, char *out, size_t size)
{
    const char *at = NULL;
    while ((at = strstr(self->text, "    http://")) == NULL || strchr(at + 4, '\n') == NULL) {
        if (!read_more(self)) {
            fail_msg("no page: %s", self->text);
        }
    }
    snprintf(out, size, "%.*s", (int)strcspn(at + 4, "\n"), at + 4);
}

static int log_in(const rig *on, run *self, const char *more)
{
    char page[4096], back[4096], end[256];
    const char *const argv[] = {"login", on->server.url, more, NULL};
    start(on, self, argv);
    await_page(self, page, sizeof(page));
    browse(page, back, sizeof(back));
    browse(back, end, sizeof(end));
    assert_non_null(strstr(end, " 200 "));
    return finish(self);
}

/* ---- set up ---------------------------------------------------------------------------------- */

static void rig_start(rig *self)
{
    snprintf(self->state, sizeof(self->state), "/tmp/bay-login-XXXXXX");
    assert_non_null(mkdtemp(self->state));
    login_server_start(&self->server);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

static void rig_end(rig *self)
{
    login_server_stop(&self->server);
    assert_int_equal(nftw(self->state, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* Every file of the store: private, and nothing of a login readable in it. */
static int check_files(const rig *self)
{
    char path[512], text[65536];
    int count = 0;
    snprintf(path, sizeof(path), "%s/patchbay/logins", self->state);
    DIR *folder = opendir(path);
    assert_non_null(folder);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        count++;
        snprintf(path, sizeof(path), "%s/patchbay/logins/%s", self->state, entry->d_name);
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(info.st_mode & 0777, 0600);
        FILE *file = fopen(path, "r");
        size_t len = fread(text, 1, sizeof(text), file);
        fclose(file);
        assert_null(memmem(text, len, "secret", 6));
        assert_null(memmem(text, len, "127.0.0.1", 9));
    }
    closedir(folder);
    return count;
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void a_login_from_beginning_to_end(void **state)
{
    (void)state;
    rig it = {0};
    run one;
    rig_start(&it);
    assert_int_equal(RUN(&it, &one, "list", it.server.url), 8);
    assert_non_null(strstr(one.text, "patchbay login"));
    assert_int_equal(RUN(&it, &one, "whoami", it.server.url), 8);
    assert_non_null(strstr(one.text, "nobody is logged in"));
    assert_int_equal(log_in(&it, &one, NULL), 0);
    assert_non_null(strstr(one.text, "subject   ann"));
    assert_int_equal(check_files(&it), 2); /* the key and the login */
    assert_int_equal(RUN(&it, &one, "call", it.server.url, "who"), 0);
    assert_non_null(strstr(one.text, "you are ann"));
    assert_int_equal(RUN(&it, &one, "whoami", "--json", it.server.url), 0);
    assert_non_null(strstr(one.text, "\"claims\":{\"sub\":\"ann\""));
    assert_non_null(strstr(one.text, "\"scope\":\"read\""));
    /* a second login goes on with the client of the first */
    assert_int_equal(log_in(&it, &one, NULL), 0);
    assert_int_equal(it.server.pages, 2);
    assert_int_equal(RUN(&it, &one, "logout", it.server.url), 0);
    assert_int_equal(it.server.revocations, 1);
    assert_int_equal(check_files(&it), 1);
    assert_int_equal(RUN(&it, &one, "call", it.server.url, "who"), 8);
    assert_int_equal(RUN(&it, &one, "logout", it.server.url), 8);
    rig_end(&it);
}

/* The tokens are renewed without anybody, also by several processes at once: one refresh. */
static void tokens_are_renewed(void **state)
{
    (void)state;
    rig it = {0};
    run runs[6];
    rig_start(&it);
    assert_int_equal(log_in(&it, &runs[0], NULL), 0);
    it.server.epoch = 1; /* the token is refused from here on */
    for (int i = 0; i < 6; i++) {
        start(&it, &runs[i], (const char *const[]){"call", it.server.url, "who", NULL});
    }
    for (int i = 0; i < 6; i++) {
        if (finish(&runs[i]) != 0 || strstr(runs[i].text, "you are ann") == NULL) {
            fail_msg("process %d: %s", i, runs[i].text);
        }
    }
    assert_int_equal(it.server.refreshes, 1);
    assert_int_equal(it.server.reuses, 0);
    assert_int_equal(it.server.pages, 1);
    rig_end(&it);
}

static void a_login_on_another_device(void **state)
{
    (void)state;
    rig it = {.server = {.has_device = true}};
    run one;
    rig_start(&it);
    assert_int_equal(RUN(&it, &one, "login", "--device", it.server.url), 0);
    assert_non_null(strstr(one.text, "WDJB-MJHT"));
    assert_non_null(strstr(one.text, "subject   ann"));
    assert_int_equal(RUN(&it, &one, "call", it.server.url, "who"), 0);
    rig_end(&it);
}

/* The browser cannot come back: the address at which it ended is pasted. */
static void a_pasted_address(void **state)
{
    (void)state;
    rig it = {0};
    run one;
    char page[4096], back[4096];
    rig_start(&it);
    start(&it, &one, (const char *const[]){"login", "--no-browser", it.server.url, NULL});
    await_page(&one, page, sizeof(page));
    browse(page, back, sizeof(back));
    dprintf(one.in, "http://127.0.0.1/callback?code=guess&state=guess\n%s\n", back);
    assert_int_equal(finish(&one), 0);
    assert_non_null(strstr(one.text, "not the address of this login"));
    assert_non_null(strstr(one.text, "subject   ann"));
    rig_end(&it);
}

static void a_server_that_asks_late(void **state)
{
    (void)state;
    rig it = {.server = {.asks_only_for_calls = true}};
    run one;
    rig_start(&it);
    assert_int_equal(RUN(&it, &one, "list", it.server.url), 0);
    assert_int_equal(RUN(&it, &one, "call", it.server.url, "who"), 8);
    assert_int_equal(log_in(&it, &one, NULL), 0);
    assert_int_equal(RUN(&it, &one, "call", it.server.url, "who"), 0);
    rig_end(&it);
}

static void what_goes_wrong(void **state)
{
    (void)state;
    rig it = {.server = {.refuses_scope = "admin"}};
    run one;
    char path[256];
    rig_start(&it);
    assert_int_equal(RUN(&it, &one, "login", "--", "true"), 2);
    assert_int_equal(RUN(&it, &one, "login", "--client-secret", "x", it.server.url), 2);
    assert_int_equal(RUN(&it, &one, "login", "--header", "Authorization: x", it.server.url), 2);
    assert_int_equal(RUN(&it, &one, "login", "--issuer", "https://other.example", it.server.url),
                     8);
    assert_non_null(strstr(one.text, "not the configured issuer"));
    assert_int_equal(RUN(&it, &one, "login", "http://127.0.0.1:1/mcp"), 3);
    assert_int_equal(RUN(&it, &one, "login", "--device", it.server.url), 1);
    assert_non_null(strstr(one.text, "no login by a code"));
    /* a scope that nobody gets: the text names it */
    assert_int_equal(log_in(&it, &one, NULL), 0);
    assert_int_equal(RUN(&it, &one, "call", it.server.url, "who"), 8);
    assert_non_null(strstr(one.text, "\"admin\", which was not granted"));
    /* a folder or key that others can use is not used */
    snprintf(path, sizeof(path), "%s/patchbay/logins/key", it.state);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(RUN(&it, &one, "whoami", it.server.url), 7);
    assert_non_null(strstr(one.text, "chmod"));
    assert_int_equal(chmod(path, 0600), 0);
    /* a key of another length, then none: what is sealed opens no more */
    assert_int_equal(truncate(path, 7), 0);
    assert_int_equal(RUN(&it, &one, "whoami", it.server.url), 7);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(RUN(&it, &one, "whoami", it.server.url), 8);
    rig_end(&it);
}

static void a_login_that_is_interrupted(void **state)
{
    (void)state;
    rig it = {0};
    run one;
    char page[4096];
    rig_start(&it);
    start(&it, &one, (const char *const[]){"login", it.server.url, NULL});
    await_page(&one, page, sizeof(page));
    kill(one.pid, SIGINT);
    assert_int_equal(finish(&one), 130);
    assert_int_equal(RUN(&it, &one, "whoami", it.server.url), 8);
    rig_end(&it);
}

static void tokens_in_files(void **state)
{
    (void)state;
    rig it = {0};
    run one;
    char path[256];
    rig_start(&it);
    snprintf(path, sizeof(path), "%s/token", it.state);
    FILE *file = fopen(path, "w");
    fputs("secret-access.eyJzdWIiOiJhbm4iLCJlcG9jaCI6MCwibiI6MX0.x\n", file);
    fclose(file);
    assert_int_equal(RUN(&it, &one, "call", "--token-file", path, it.server.url, "who"), 0);
    assert_non_null(strstr(one.text, "you are ann"));
    it.server.epoch = 1;
    assert_int_equal(RUN(&it, &one, "call", "--token-file", path, it.server.url, "who"), 8);
    assert_int_equal(RUN(&it, &one, "call", "--token-file", "/nonexistent", it.server.url, "who"),
                     7);
    rig_end(&it);
}

/* ---- the vault of a gateway ------------------------------------------------------------------ */

#define KEYS "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static void write_config_of(const rig *self, const char *path, const char *keys, const char *kind)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(
        file,
        "{\"store\":\"%s/store\",%s\"auth\":{\"issuers\":{\"i\":{\"url\":\"https://i.example\"}}},"
        "\"%s\":{\"s\":{\"url\":\"%s\",\"credentials\":{\"grant\":\"user\"}}}}",
        self->state, keys, kind, self->server.url);
    fclose(file);
}

static void write_config(const rig *self, const char *path, const char *keys)
{
    write_config_of(self, path, keys, "mcpServers");
}

static int grant(const rig *on, run *self, const char *config, const char *user)
{
    char page[4096], back[4096], end[256];
    const char *const argv[] = {"login", "-c", config, "--for", user, "s", NULL};
    start(on, self, argv);
    await_page(self, page, sizeof(page));
    browse(page, back, sizeof(back));
    browse(back, end, sizeof(end));
    return finish(self);
}

static void a_login_for_a_user_of_the_gateway(void **state)
{
    (void)state;
    rig self = {.server = {.has_device = false}};
    run one;
    char path[128], id[16];
    rig_start(&self);
    snprintf(path, sizeof(path), "%s/c.json", self.state);
    write_config(&self, path, "");
    assert_int_equal(RUN(&self, &one, "vault", "list", "-c", path), 6);
    assert_non_null(strstr(one.text, "users' tokens are sealed with `keys`"));
    write_config(&self, path, "\"keys\":[\"" KEYS "\"],");
    assert_int_equal(RUN(&self, &one, "vault", "list", "-c", path), 0);
    assert_string_equal(one.text, "");
    assert_int_equal(grant(&self, &one, path, "bea"), 0);
    assert_int_equal(grant(&self, &one, path, "https://j.example cem"), 0);
    /* this user has no login of his own by that */
    assert_int_equal(RUN(&self, &one, "whoami", "-c", path, "s"), 8);
    assert_int_equal(RUN(&self, &one, "vault", "list", "-c", path, "--json"), 0);
    assert_non_null(strstr(one.text, "\"subject\":\"bea\""));
    assert_non_null(strstr(one.text, "\"issuer\":\"https://i.example\""));
    assert_non_null(strstr(one.text, "\"issuer\":\"https://j.example\""));
    assert_int_equal(RUN(&self, &one, "vault", "list", "-c", path), 0);
    assert_non_null(strstr(one.text, "  s  bea  read"));
    snprintf(id, sizeof(id), "%.12s", one.text);
    assert_int_equal(RUN(&self, &one, "vault", "revoke", "zz", "-c", path), 1);
    assert_int_equal(RUN(&self, &one, "vault", "revoke", id, "-c", path), 0);
    assert_int_equal(self.server.revocations, 1);
    assert_int_equal(RUN(&self, &one, "vault", "list", "-c", path), 0);
    assert_null(strstr(one.text, id));
    assert_non_null(strchr(one.text, '\n'));
    /* of an agent as well */
    assert_int_equal(grant(&self, &one, path, "dan"), 0);
    write_config_of(&self, path, "\"keys\":[\"" KEYS "\"],", "agents");
    assert_int_equal(RUN(&self, &one, "vault", "list", "-c", path), 0);
    const char *dan = strstr(one.text, "  s  dan");
    assert_non_null(dan);
    while (dan > one.text && dan[-1] != '\n') {
        dan--;
    }
    snprintf(id, sizeof(id), "%.12s", dan);
    assert_int_equal(RUN(&self, &one, "vault", "revoke", id, "-c", path), 0);
    assert_int_equal(self.server.revocations, 2);
    /* what other keys sealed is counted, and not shown */
    write_config(
        &self, path,
        "\"keys\":[\"f00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\"],");
    assert_int_equal(RUN(&self, &one, "vault", "list", "-c", path), 0);
    assert_non_null(strstr(one.text, "1 more cannot be opened"));
    /* whose it is must be said in full where it cannot be known */
    assert_int_equal(RUN(&self, &one, "login", "--for", "bea", self.server.url), 2);
    rig_end(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_login_from_beginning_to_end),
        cmocka_unit_test(tokens_are_renewed),
        cmocka_unit_test(a_login_on_another_device),
        cmocka_unit_test(a_pasted_address),
        cmocka_unit_test(a_server_that_asks_late),
        cmocka_unit_test(what_goes_wrong),
        cmocka_unit_test(a_login_for_a_user_of_the_gateway),
        cmocka_unit_test(a_login_that_is_interrupted),
        cmocka_unit_test(tokens_in_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

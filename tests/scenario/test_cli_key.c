/* patchbay key and block, as a person or a script runs it: keys are shown once, listed without their secrets,
 * revoked by name or ID; callers are blocked and let in again; and what is wrong is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/evp.h> /* without it there is no digest of a key, and no key */
#include <sqlite3.h>     /* keys are in a store on disk */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_BYTES = 16 << 10 };

static char folder[] = "/tmp/bay-key-XXXXXX";
static char config_path[64];
static char said[TEXT_BYTES]; /* on both streams */

/* Runs the program; what it says on stdout, or on both streams, stands in `said`. */
static int run(const char *words, const char *streams)
{
    char command[1024];
    (void)snprintf(command, sizeof(command), "%s/patchbay %s -c %s %s", BAY_TEST_BINARY_DIR, words,
                   config_path, streams);
    int ends[2];
    int status = 0;
    size_t len = 0;
    ssize_t got;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/bin/sh", "sh", "-c", command, NULL);
        _exit(127);
    }
    close(ends[1]);
    while ((got = read(ends[0], said + len, sizeof(said) - 1 - len)) > 0) {
        len += (size_t)got;
    }
    said[len] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void expect(int code, int wanted, const char *part)
{
    if (code != wanted || strstr(said, part) == NULL) {
        fail_msg("wanted %d %s\ncame %d %s", wanted, part, code, said);
    }
}

static void configure(const char *text)
{
    FILE *file = fopen(config_path, "w");
    assert_non_null(file);
    (void)fprintf(file, text, folder);
    assert_int_equal(fclose(file), 0);
}

static void keys_come_and_go(void **state)
{
    (void)state;
    char key[128], id[32], words[64];
    configure("store: %s/store\nmcpServers: {a: {command: x}}\n");
    expect(run("key list", "2>&1"), 0, "");
    assert_string_equal(said, "");
    expect(run("key new ci --scope 'notes.read use' --expires 90d", "2>/dev/null"), 0, "pbk_");
    (void)snprintf(key, sizeof(key), "%.*s", (int)strcspn(said, "\n"), said);
    assert_int_equal(strlen(said), strlen(key) + 1); /* nothing else on stdout */
    (void)snprintf(id, sizeof(id), "%.16s", key + 4);
    assert_int_equal(strlen(key), 4 + 16 + 1 + 43);
    expect(run("key new ci", "2>&1"), 0, "this is shown once; the key's ID is ");
    expect(run("key list", "2>&1"), 0, id);
    expect(0, 0, "  ci  notes.read use\n");
    assert_null(strstr(said, key + 21)); /* the secret */
    expect(run("key list --json", "2>&1"), 0, "[{\"id\":\"");
    expect(0, 0, "\"name\":\"ci\",\"scopes\":\"notes.read use\",\"madeAt\":");
    assert_null(strstr(said, key + 21));
    expect(run("key revoke ci", "2>&1"), 1, "several API keys have that name: give the ID of one");
    (void)snprintf(words, sizeof(words), "key revoke %s", id);
    expect(run(words, "2>&1"), 0, "is revoked: a gateway that runs takes it for 10 s at most");
    expect(run(words, "2>&1"), 1, "there is no API key of that name or ID");
    expect(run("key revoke ci", "2>&1"), 0, "is revoked");
    expect(run("key list", "2>&1"), 0, "");
    assert_string_equal(said, "");
    expect(run("key new bot --json", "2>/dev/null"), 0, "\"expiresAt\":0,\"key\":\"pbk_");
}

static void callers_are_blocked_and_let_in_again(void **state)
{
    (void)state;
    configure("store: %s/store\nmcpServers: {a: {command: x}}\n");
    expect(run("block", "2>&1"), 0, "");
    assert_string_equal(said, "");
    expect(run("block 'CN=box,O=Example'", "2>&1"), 0,
           "CN=box,O=Example is turned away within 5 s");
    expect(run("block ann", "2>&1"), 0, "ann is turned away within 5 s");
    expect(run("block ann", "2>&1"), 0, "ann is turned away within 5 s");
    expect(run("block", "2>&1"), 0, "CN=box,O=Example\n");
    expect(0, 0, "ann\n");
    assert_int_equal(strlen(said), strlen("CN=box,O=Example\nann\n"));
    expect(run("block ann --lift", "2>&1"), 0, "ann may come in again within 5 s");
    expect(run("block ann --lift", "2>&1"), 1, "ann is not blocked");
    expect(run("block --json", "2>&1"), 0, "[\"CN=box,O=Example\"]");
    expect(run("block --lift", "2>&1"), 2, "--lift needs a SUBJECT");
    expect(run("block a b", "2>&1"), 2, "\"b\" is too much");
    expect(run("key list --lift", "2>&1"), 2, "--lift is no option of key");
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        int code;
        const char *text;
    } cases[] = {
        {"key", 2, "use it so: patchbay key new NAME | list | revoke NAME"},
        {"key make ci", 2, "use it so: patchbay key "},
        {"key new", 2, "use it so: patchbay key "},
        {"key new a b", 2, "use it so: patchbay key "},
        {"key list a", 2, "use it so: patchbay key "},
        {"key list --scope a", 2, "--scope and --expires are for key new"},
        {"key new ci --scope 'a  b'", 2, "--scope needs scopes separated by single spaces"},
        {"key new ci --scope ' a'", 2, "--scope needs scopes separated by single spaces"},
        {"key new ci --scope 'a\"b'", 2, "--scope needs scopes separated by single spaces"},
        {"key new ci --expires never", 2, "--expires needs a duration up to 3650d"},
        {"key new ci --expires 0d", 2, "--expires needs a duration up to 3650d"},
        {"key new ci --expires 4000d", 2, "--expires needs a duration up to 3650d"},
        {"key new \"$(printf 'a\\nb')\"", 2, "the name of a key is one line of text"},
    };
    configure("store: %s/store\nmcpServers: {a: {command: x}}\n");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        expect(run(cases[i].words, "2>&1"), cases[i].code, cases[i].text);
    }
    configure("mcpServers: {a: {command: x}}\n# %s\n");
    expect(run("key list", "2>&1"), 6, "the configuration has no store, where API keys are kept");
    configure("store: %s/none/store\nmcpServers: {a: {command: x}}\n");
    expect(run("key list", "2>&1"), 6, "none/store");
}

static int make_folder(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(config_path, sizeof(config_path), "%s/patchbay.yaml", folder);
    return 0;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"patchbay.yaml", "store", "store-wal", "store-shm"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[100];
        (void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_come_and_go),
        cmocka_unit_test(callers_are_blocked_and_let_in_again),
        cmocka_unit_test(what_is_wrong_is_said),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

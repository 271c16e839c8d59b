/* A program whose libraries or interpreter the sandbox hides: what is said, and that nothing is
 * said of a program that would start. */
#include "sandbox_rig.h"

#include <stdio.h>
#include <unistd.h>

static char program[PATH];
static char library[PATH];
static char script[PATH];

static bool has_compiler;

/* A library in out/, and a program in rw/ that is linked to it by a path relative to itself. */
static int open_programs(void **state)
{
    char command[PATH * 8];
    char source[PATH];
    (void)open_world(state);
    path_in(program, "rw/linked");
    path_in(library, "out/libhidden.so");
    path_in(script, "rw/script");
    path_in(source, "rw/source.c");
    put_file("rw/source.c",
             "int hidden(void);\n"
             "#ifdef LIBRARY\nint hidden(void) { return 0; }\n"
             "#else\nint main(void) { return hidden(); }\n#endif\n",
             0644);
    (void)snprintf(
        command, sizeof(command),
        "cc -shared -fPIC -DLIBRARY -o %s %s && cc -o %s %s %s '-Wl,-rpath,$ORIGIN/../out'",
        library, source, program, source, library);
    const char *argv[] = {"sh", "-c", command, NULL};
    pid_t pid = fork();
    int status = 1;
    if (pid == 0) {
        (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    (void)waitpid(pid, &status, 0);
    has_compiler = WIFEXITED(status) && WEXITSTATUS(status) != 127; /* the shell found one */
    return has_compiler && status != 0 ? -1 : 0;
}

static int close_programs(void **state)
{
    static const char *const left[] = {"rw/linked", "out/libhidden.so", "rw/script", "rw/source.c",
                                       "out/sh"};
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        remove_file(left[i]);
    }
    return close_world(state);
}

static bay_err start(const char *path, const sandbox_options *options, bay_diag *diag)
{
    const char *argv[] = {path, NULL};
    process_options with = {.argv = argv, .sandbox = options};
    process *made = NULL;
    loop *on = test_loop();
    cell self = {.loop = on};
    bay_err err = process_start(on, &with, &events, &self, &made, diag);
    if (err == BAY_OK) {
        turn_until(on, self.exits == 1);
        assert_int_equal(self.status, 0);
    }
    process_free(made);
    loop_free(on);
    buf_fini(&self.line);
    return err;
}

static void expect_hidden(const char *path, const char *what)
{
    static const sandbox_bubblewrap kinds[] = {SANDBOX_BUBBLEWRAP_NEVER,
                                               SANDBOX_BUBBLEWRAP_REQUIRED};
    char folder[PATH];
    char remedy[PATH + 40];
    path_in(folder, "out");
    (void)snprintf(remedy, sizeof(remedy), "add \"%s\" to sandbox.fs", folder);
    for (size_t i = 0; i < 2; i++) {
        walls one;
        bay_diag diag = {0};
        if (is_wall_missing(kinds[i])) {
            continue;
        }
        make_walls(&one, kinds[i]);
        assert_int_equal(start(path, &one.options, &diag), BAY_ERR_SPAWN);
        assert_non_null(strstr(diag.text, what));
        assert_non_null(strstr(diag.text, remedy));
        one.paths[2] = (sandbox_path){folder, false}; /* as it was told */
        one.options.path_count = 3;
        assert_int_equal(start(path, &one.options, &diag), BAY_OK);
    }
}

static void a_hidden_library_is_named(void **state)
{
    (void)state;
    SKIP_WITHOUT_ANY();
    if (!has_compiler) {
        SKIP("no compiler, so no program with a hidden library");
    }
    expect_hidden(program, "/out/libhidden.so");
}

static void a_hidden_interpreter_is_named(void **state)
{
    (void)state;
    char text[PATH + 40];
    char shell[PATH];
    SKIP_WITHOUT_ANY();
    path_in(shell, "out/sh");
    (void)snprintf(text, sizeof(text), "cp \"$(readlink -f /bin/sh)\" %s", shell);
    const char *argv[] = {"sh", "-c", text, NULL};
    pid_t pid = fork();
    if (pid == 0) {
        (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    (void)waitpid(pid, NULL, 0);
    (void)snprintf(text, sizeof(text), "#! %s -e\nexit 0\n", shell);
    put_file("rw/script", text, 0755);
    expect_hidden(script, "/out/sh");
}

/* Cut anywhere, changed anywhere: it is no such program, or one that is left to the start. */
static void broken_files_are_left_to_the_start(void **state)
{
    (void)state;
    static unsigned char bytes[4096];
    walls one;
    SKIP_WITHOUT(SANDBOX_BUBBLEWRAP_NEVER);
    make_walls(&one, SANDBOX_BUBBLEWRAP_NEVER);
    FILE *file = fopen("/proc/self/exe", "r");
    assert_non_null(file);
    size_t len = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    for (size_t at = 0; at < 1024 && at < len; at += 3) {
        bay_diag diag = {0};
        unsigned char was = bytes[at];
        bytes[at] = (unsigned char)~was;
        file = fopen(script, "w");
        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, len - at, file), len - at);
        fclose(file);
        assert_int_equal(chmod(script, 0644), 0); /* it is not to be run */
        bytes[at] = was;
        assert_int_not_equal(start(script, &one.options, &diag), BAY_OK);
        assert_null(strstr(diag.text, "sandbox.fs"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hidden_library_is_named),
        cmocka_unit_test(a_hidden_interpreter_is_named),
        cmocka_unit_test(broken_files_are_left_to_the_start),
    };
    return cmocka_run_group_tests(tests, open_programs, close_programs);
}

/* What the configuration says of a sandbox, as it reaches net: nothing is lost, nothing is weaker.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "config/server_sandbox.h"
#include "support/failing_memory.h"

static const config *load(const char *server)
{
    static config_report report;
    char text[1000];
    const config *made = NULL;
    (void)snprintf(text, sizeof(text), "mcpServers:\n  a: %s\n", server);
    bay_err err = config_load_text((bay_str){text, strlen(text)}, (bay_str){"t", 1}, NULL, NULL,
                                   &made, &report);
    if (err != BAY_OK) {
        print_error("%s: %s\n", server, report.messages[0].text);
    }
    assert_int_equal(err, BAY_OK);
    return made;
}

static void without_the_section_there_is_none(void **state)
{
    (void)state;
    static const char *const servers[] = {"{command: x}", "{url: 'http://x/'}",
                                          "{command: x, sandbox: {enabled: false, fs: [/a]}}"};
    for (size_t i = 0; i < 3; i++) {
        const config *settings = load(servers[i]);
        const sandbox_options *made = NULL;
        arena memory;
        arena_init(&memory, 1 << 16);
        assert_int_equal(server_sandbox_make(settings->servers, &memory, &made), BAY_OK);
        assert_null(made);
        arena_fini(&memory);
        config_free(settings);
    }
}

static void an_empty_section_forbids_the_most(void **state)
{
    (void)state;
    static const char *const servers[] = {"{command: x, sandbox: {}}", "{command: x, sandbox: }",
                                          "{command: x, sandbox: {enabled: true}}"};
    for (size_t i = 0; i < 3; i++) {
        const config *settings = load(servers[i]);
        const sandbox_options *made = NULL;
        arena memory;
        arena_init(&memory, 1 << 16);
        assert_int_equal(server_sandbox_make(settings->servers, &memory, &made), BAY_OK);
        assert_non_null(made);
        assert_int_equal(made->path_count, 0);
        assert_false(made->has_no_defaults || made->has_net || made->has_unix_sockets ||
                     made->has_attributes || made->is_best_effort);
        assert_int_equal(made->bubblewrap, SANDBOX_BUBBLEWRAP_AUTO);
        assert_null(made->user);
        arena_fini(&memory);
        config_free(settings);
    }
}

static void every_key_arrives(void **state)
{
    (void)state;
    const config *settings =
        load("{command: x, sandbox: {fs: [none, /a, '/b:rw', '/c:ro', '/d:e'], net: true, "
             "unixSockets: true, attributes: true, memory: 512M, cpu: 2, time: 1500ms, "
             "processes: 7, files: 9, user: nobody, bubblewrap: required, bestEffort: true}}");
    const sandbox_options *made = NULL;
    arena memory;
    arena_init(&memory, 1 << 16);
    assert_int_equal(server_sandbox_make(settings->servers, &memory, &made), BAY_OK);
    static const sandbox_path paths[] = {
        {"/a", false}, {"/b", true}, {"/c", false}, {"/d:e", false}};
    assert_int_equal(made->path_count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(made->paths[i].path, paths[i].path);
        assert_int_equal(made->paths[i].is_writable, paths[i].is_writable);
    }
    assert_true(made->has_no_defaults && made->has_net && made->has_unix_sockets &&
                made->has_attributes && made->is_best_effort);
    assert_int_equal(made->memory_bytes, 512 << 20);
    assert_int_equal(made->cpus, 2);
    assert_int_equal(made->cpu_seconds, 2); /* up to whole seconds */
    assert_int_equal(made->processes, 7);
    assert_int_equal(made->files, 9);
    assert_string_equal(made->user, "nobody");
    assert_int_equal(made->bubblewrap, SANDBOX_BUBBLEWRAP_REQUIRED);
    arena_fini(&memory);
    config_free(settings);
    settings = load("{command: x, sandbox: {bubblewrap: never}}");
    assert_int_equal(settings->servers->sandbox.bubblewrap, SANDBOX_BUBBLEWRAP_NEVER);
    config_free(settings);
}

static void what_stands_beside_or_above_is_fine(void **state)
{
    (void)state;
    static const char *const lists[] = {"[/a, '/a/b:rw', /ab, /c]",
                                        "['/a:rw', '/b:rw', /abc]",
                                        "[/, '/a:rw']",
                                        "['/a.b/..c:rw', /a.b]",
                                        "[none]",
                                        "[]"};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        char text[200];
        (void)snprintf(text, sizeof(text), "{command: x, sandbox: {fs: %s}}", lists[i]);
        const config *settings = load(text);
        const config_sandbox *sandbox = &settings->servers->sandbox;
        assert_int_equal(server_sandbox_nested(sandbox), sandbox->fs.count);
        config_free(settings);
    }
}

static void inside_only_what_programs_need_is_inherited(void **state)
{
    (void)state;
    const config *open = load("{command: x, env: {HOME: /h}}");
    const config *closed = load("{command: x, env: {HOME: /h}, sandbox: {}}");
    static const struct {
        const char *variable;
        bool open;
        bool closed;
    } cases[] = {
        {"PATH=/bin", true, true},       {"LANG=C", true, true},
        {"HOME=/root", false, false},    {"TOKEN=secret", true, false},
        {"LD_PRELOAD=x", true, false},   {"PATHS=x", true, false},
        {"TMPDIR=/tmp", true, true},     {"SSH_AUTH_SOCK=/s", true, false},
        {"NODE_OPTIONS=x", true, false}, {"", true, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(server_inherits(open->servers, cases[i].variable), cases[i].open);
        assert_int_equal(server_inherits(closed->servers, cases[i].variable), cases[i].closed);
    }
    config_free(open);
    config_free(closed);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    const config *settings = load("{command: x, sandbox: {fs: [/a, '/b:rw']}}");
    for (size_t at = 0; failing_memory_start(at); at++) {
        const sandbox_options *made = NULL;
        arena memory;
        arena_init(&memory, 1 << 16);
        bay_err err = server_sandbox_make(settings->servers, &memory, &made);
        assert_true(err == BAY_OK ? made != NULL : err == BAY_ERR_NOMEM && made == NULL);
        arena_fini(&memory);
        failing_memory_check();
    }
    config_free(settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_the_section_there_is_none),
        cmocka_unit_test(an_empty_section_forbids_the_most),
        cmocka_unit_test(every_key_arrives),
        cmocka_unit_test(what_stands_beside_or_above_is_fine),
        cmocka_unit_test(inside_only_what_programs_need_is_inherited),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Skills: what is refused when they are registered, and what clients see of those that are good:
 * the list, entries, folders, files. */
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/digest.h"
#include "sdk/skills.h"
#include "support/failing_memory.h"
#include "unit/sdk/sdk_bench.h"

#define MAIN_OF(name) "---\nname: " name "\ndescription: What it does.\n---\n# Read me\n"

static void add(bay_server *server, const char *skill_name, const char *path, const char *text)
{
    bay_server_skill_file(server, skill_name, path, NULL, text, strlen(text));
}

static void expect_error(bay_server *server, const char *wanted)
{
    bay_diag diag = {0};
    assert_int_equal(bay_server_check(server, &diag), BAY_ERR_INVALID);
    assert_has(diag.text, wanted);
    assert_int_equal(bay_server_check(server, NULL), BAY_ERR_INVALID);
    assert_int_equal(server->errors.count, 1);
    bay_server_free(server);
}

/* ---- a folder of the test's own */

static char root[] = BAY_TEST_BINARY_DIR "/skills-XXXXXX";

static int make_root(void **state)
{
    (void)state;
    return mkdtemp(root) != NULL ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about;
    (void)kind;
    (void)where;
    return remove(path);
}

static int remove_root(void **state)
{
    (void)state;
    return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *in_root(const char *path)
{
    static char full[1024];
    (void)snprintf(full, sizeof(full), "%s/%s", root, path);
    return full;
}

static void make_folder(const char *path)
{
    assert_int_equal(mkdir(in_root(path), 0700), 0);
}

static void make_file(const char *path, const void *bytes, size_t len)
{
    FILE *file = fopen(in_root(path), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static void make_text(const char *path, const char *text)
{
    make_file(path, text, strlen(text));
}

/* ---- what is refused */

static void bad_registrations_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *path;
        const char *wanted;
    } bad[] = {
        {NULL, "SKILL.md", "without a name"},
        {"", "SKILL.md", "without a name"},
        {"a", NULL, "is no path below it"},
        {"a", "", "is no path below it"},
        {"a", "/SKILL.md", "is no path below it"},
        {"a", "../SKILL.md", "is no path below it"},
        {"a", "b/../SKILL.md", "is no path below it"},
        {"a", "./SKILL.md", "is no path below it"},
        {"a", "b//c", "is no path below it"},
        {"a", "b/", "is no path below it"},
        {"a", "b\\c", "is no path below it"},
        {"a", "b\nc", "is no path below it"},
        {"a", "b\xff", "is no path below it"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        bay_server *server = bay_server_new("s", "1");
        add(server, bad[i].name, bad[i].path, MAIN_OF("a"));
        expect_error(server, bad[i].wanted);
    }
    static const struct {
        const char *name;
        const char *text;
        const char *wanted;
    } files[] = {
        {"a", "# no front matter\n", "skill \"a\": SKILL.md: "},
        {"a", "---\nname: a\n---\n", "must have a \"description\""},
        {"a", "---\nname: a\ndescription: [b]\n---\n", "must have a \"description\""},
        {"a", MAIN_OF("b"), "must have the skill's name as \"name\""},
        {"a", "---\nname: [a]\ndescription: b\n---\n", "must have the skill's name"},
        {"a", "---\ndescription: b\n---\n", "must have the skill's name"},
        {"a", "---\nname: a\ndescription: b\nmetadata:\n  io.modelcontextprotocol/x: 1\n---\n",
         "must not have keys that begin with io.modelcontextprotocol/"},
        {"A", MAIN_OF("A"), "a name has 1 to 64"},
        {"a--b", MAIN_OF("a--b"), "a name has 1 to 64"},
        {"-a", MAIN_OF("-a"), "a name has 1 to 64"},
        {"a-", MAIN_OF("a-"), "a name has 1 to 64"},
        {"a b", MAIN_OF("a b"), "a name has 1 to 64"},
    };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        bay_server *server = bay_server_new("s", "1");
        add(server, files[i].name, "SKILL.md", files[i].text);
        expect_error(server, files[i].wanted);
    }
    bay_server *server = bay_server_new("s", "1");
    add(server, "a", "README.md", "text");
    expect_error(server, "skill \"a\": it has no SKILL.md");
    server = bay_server_new("s", "1");
    add(server, "a", "SKILL.md", MAIN_OF("a"));
    add(server, "a", "SKILL.md", MAIN_OF("a"));
    expect_error(server, "resource \"skill://a/SKILL.md\" was registered twice");
    bay_server_skill(NULL, "a");
    bay_server_skill_file(NULL, "a", "a", NULL, "", 0);
}

static void bounds_hold(void **state)
{
    (void)state;
    bay_server *server = bay_server_new("s", "1");
    add(server, "a", "SKILL.md", MAIN_OF("a"));
    for (int i = 0; i < SKILL_MAX_FILES; i++) {
        char path[16];
        (void)snprintf(path, sizeof(path), "f%d", i);
        add(server, "a", path, "");
    }
    expect_error(server, "it has more than 512 files");
    server = bay_server_new("s", "1");
    char *large = calloc(1, SKILL_MAX_BYTES);
    assert_non_null(large);
    add(server, "a", "SKILL.md", MAIN_OF("a"));
    bay_server_skill_file(server, "a", "large", NULL, large, SKILL_MAX_BYTES);
    free(large);
    expect_error(server, "its files have more than 16777216 bytes");
}

static void bad_folders_are_told(void **state)
{
    (void)state;
    bay_server *server = bay_server_new("s", "1");
    bay_server_skill(server, NULL);
    expect_error(server, "without a folder");
    server = bay_server_new("s", "1");
    bay_server_skill(server, in_root("absent"));
    expect_error(server, "No such file or directory");
    make_text("plain", "text");
    server = bay_server_new("s", "1");
    bay_server_skill(server, in_root("plain"));
    expect_error(server, "Not a directory");
    make_folder("empty");
    server = bay_server_new("s", "1");
    bay_server_skill(server, in_root("empty"));
    expect_error(server, "skill \"empty\": it has no SKILL.md");
    server = bay_server_new("s", "1");
    bay_server_skill(server, in_root("empty"));
    add(server, "empty", "SKILL.md", MAIN_OF("empty"));
    expect_error(server, "no file can be added");
    make_folder("good");
    make_text("good/SKILL.md", MAIN_OF("good"));
    server = bay_server_new("s", "1");
    bay_server_skill(server, in_root("good"));
    bay_server_skill(server, in_root("good/"));
    expect_error(server, "skill \"good\" was registered twice");
}

static void nothing_leads_out_of_a_folder(void **state)
{
    (void)state;
    make_text("secret", "secret");
    make_folder("linked");
    make_text("linked/SKILL.md", MAIN_OF("linked"));
    assert_int_equal(symlink("../secret", in_root("linked/file")), 0);
    bay_server *server = bay_server_new("s", "1");
    bay_server_skill(server, in_root("linked"));
    expect_error(server, "file: symbolic links are not followed");
    assert_int_equal(unlink(in_root("linked/file")), 0);
    assert_int_equal(symlink("..", in_root("linked/folder")), 0);
    server = bay_server_new("s", "1");
    bay_server_skill(server, in_root("linked"));
    expect_error(server, "folder: symbolic links are not followed");
    assert_int_equal(unlink(in_root("linked/folder")), 0);
    assert_int_equal(mkfifo(in_root("linked/pipe"), 0600), 0);
    server = bay_server_new("s", "1");
    bay_server_skill(server, in_root("linked"));
    expect_error(server, "pipe: it is neither a file nor a folder");
}

static void folders_have_bounds(void **state)
{
    (void)state;
    char path[256] = "deep";
    make_folder(path);
    make_text("deep/SKILL.md", MAIN_OF("deep"));
    for (int i = 0; i <= SKILL_MAX_DEPTH; i++) {
        (void)snprintf(path + strlen(path), sizeof(path) - strlen(path), "/d");
        make_folder(path);
    }
    bay_server *server = bay_server_new("s", "1");
    bay_server_skill(server, in_root("deep"));
    expect_error(server, "folders are nested too deeply");
    make_folder("large");
    make_text("large/SKILL.md", MAIN_OF("large"));
    int fd = open(in_root("large/hole"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, SKILL_MAX_BYTES), 0);
    close(fd);
    server = bay_server_new("s", "1");
    bay_server_skill(server, in_root("large"));
    expect_error(server, "its files have more than 16777216 bytes");
}

/* ---- what clients see */

#define FORMS "Fill them in: \"now\"\n"

static bay_server *server_of_skills(void)
{
    bay_server *server = bay_server_new("s", "1");
    add(server, "refunds", "scripts/run.sh", "#!/bin/sh\n");
    add(server, "refunds", "references/FORMS.md", FORMS);
    add(server, "refunds", "references/more/a b.txt", "deep");
    add(server, "refunds", "SKILL.md",
        "---\nname: refunds\ndescription: \"How to\\trefund\"\nmetadata:\n  version: "
        "2\n---\nDo.\n");
    bay_server_skill_file(server, "refunds", "assets/pixel.bin", "application/x-pixel", "\xff\0\1",
                          3);
    add(server, "other", "SKILL.md", MAIN_OF("other"));
    return server;
}

static const char *ask_uri(rig *on, const char *method, const char *uri)
{
    char params[256];
    (void)snprintf(params, sizeof(params), "\"uri\":\"%s\"", uri);
    return rig_ask(on, method, params);
}

static void expect_digest(const char *said, const char *uri, const char *text)
{
    char digest[DIGEST_TEXT_BYTES + 1];
    char wanted[256];
    assert_int_equal(digest_sha256(str_of(text), digest), BAY_OK);
    (void)snprintf(wanted, sizeof(wanted), "{\"uri\":\"%s\",\"digest\":\"%s\",\"size\":%zu}", uri,
                   digest, strlen(text));
    assert_has(said, wanted);
}

#define REFUNDS                                                                                    \
    "{\"uri\":\"skill://refunds/SKILL.md\",\"frontmatter\":{\"name\":\"refunds\",\"description\":" \
    "\"How to\\trefund\",\"metadata\":{\"version\":2}},\"resources\":["                            \
    "{\"uri\":\"skill://refunds/SKILL.md\",\"digest\":\"sha256:"

static void skills_are_listed_with_digests(void **state)
{
    (void)state;
    rig on;
    rig_start(&on, server_of_skills());
    static const char *const with[] = {"2025-11-25", "2026-07-28"};
    for (size_t i = 0; i < ARRAY_LEN(with); i++) {
        rig_client(&on, with[i]);
        const char *said = rig_ask(&on, "skills/list", "");
        assert_has(said, "\"skills\":[" REFUNDS);
        assert_has(said, "{\"uri\":\"skill://other/SKILL.md\",\"frontmatter\":{\"name\":\"other\"");
        expect_digest(said, "skill://refunds/references/FORMS.md", FORMS);
        expect_digest(said, "skill://refunds/references/more/a%20b.txt", "deep");
        expect_digest(said, "skill://other/SKILL.md", MAIN_OF("other"));
        assert_true((strstr(said, "\"ttlMs\":300000,\"cacheScope\":\"public\"") != NULL) ==
                    rig_is_modern(&on));
        said = ask_uri(&on, "skills/get", "skill://refunds/SKILL.md");
        assert_has(said, "\"result\":{\"skill\":" REFUNDS);
        assert_null(strstr(said, "nextCursor"));
        assert_has(ask_uri(&on, "skills/get", "skill://refunds"), "{\"code\":-32602,");
        assert_has(ask_uri(&on, "skills/get", "skill://absent/SKILL.md"), "{\"code\":-32602,");
        assert_has(rig_ask(&on, "skills/get", ""), "{\"code\":-32602,");
        assert_has(rig_ask(&on, "skills/get", "\"uri\":7"), "{\"code\":-32602,");
    }
    rig_stop(&on);
}

static void it_is_declared_where_it_is_known(void **state)
{
    (void)state;
    rig on;
#define DECLARED "\":{\"io.modelcontextprotocol/skills\":{\"directoryRead\":true}}"
    rig_start(&on, server_of_skills());
    rig_client(&on, "2025-11-25");
    assert_has(on.way.event[0], "\"extensions" DECLARED);
    assert_has(on.way.event[0], "\"resources\":{");
    rig_client(&on, "2025-06-18");
    assert_has(rig_ask(&on, "skills/list", ""), "{\"code\":-32601,");
    rig_stop(&on);
    bay_server *server = bay_server_new("s", "1");
    bay_server_tool_schema(server, "t", NULL, NULL, reply_ok, NULL);
    rig_start(&on, server);
    rig_client(&on, "2026-07-28");
    assert_null(strstr(rig_ask(&on, "server/discover", ""), "skills"));
    assert_has(rig_ask(&on, "skills/list", ""), "{\"code\":-32601,");
    assert_has(ask_uri(&on, "resources/directory/read", "skill://a"), "{\"code\":-32601,");
    rig_stop(&on);
}

static void files_are_resources(void **state)
{
    (void)state;
    rig on;
    rig_start(&on, server_of_skills());
    rig_client(&on, "2026-07-28");
    const char *said = rig_ask(&on, "resources/list", "");
    assert_has(said,
               "\"resources\":[{\"uri\":\"skill://refunds/SKILL.md\",\"name\":\"refunds\","
               "\"description\":\"How to\\trefund\",\"mimeType\":\"text/markdown\",\"size\":");
    assert_has(said, "{\"uri\":\"skill://refunds/scripts/run.sh\",\"name\":\"scripts/run.sh\","
                     "\"mimeType\":\"application/x-sh\",\"size\":10}");
    assert_has(ask_uri(&on, "resources/read", "skill://refunds/references/FORMS.md"),
               "\"contents\":[{\"uri\":\"skill://refunds/references/FORMS.md\",\"mimeType\":"
               "\"text/markdown\",\"text\":\"Fill them in: \\\"now\\\"\\n\"}]");
    assert_has(ask_uri(&on, "resources/read", "skill://refunds/assets/pixel.bin"),
               "\"mimeType\":\"application/x-pixel\",\"blob\":\"/wAB\"}]");
    assert_has(ask_uri(&on, "resources/read", "skill://refunds/references"), "{\"code\":-32602,");
    assert_has(ask_uri(&on, "resources/read", "skill://refunds/references/../SKILL.md"),
               "{\"code\":-32602,");
    rig_stop(&on);
}

static void folders_are_read(void **state)
{
    (void)state;
    rig on;
    rig_start(&on, server_of_skills());
    rig_client(&on, "2026-07-28");
    const char *method = "resources/directory/read";
    const char *said = ask_uri(&on, method, "skill://refunds");
    assert_has(said, "\"resources\":[{\"uri\":\"skill://refunds/SKILL.md\",\"name\":\"refunds\",");
    assert_has(
        said,
        "},{\"uri\":\"skill://refunds/assets\",\"name\":\"assets\",\"mimeType\":"
        "\"inode/directory\"},{\"uri\":\"skill://refunds/references\",\"name\":"
        "\"references\",\"mimeType\":\"inode/directory\"},{\"uri\":"
        "\"skill://refunds/scripts\",\"name\":\"scripts\",\"mimeType\":\"inode/directory\"}]");
    assert_has(ask_uri(&on, method, "skill://refunds/references/"),
               "\"resources\":[{\"uri\":\"skill://refunds/references/FORMS.md\",\"name\":"
               "\"references/FORMS.md\",\"mimeType\":\"text/markdown\",\"size\":20},{\"uri\":"
               "\"skill://refunds/references/more\",\"name\":\"more\",\"mimeType\":"
               "\"inode/directory\"}]");
    assert_has(ask_uri(&on, method, "skill://refunds/references/more"), "a%20b.txt");
    static const char *const bad[] = {
        "skill://refunds/SKILL.md",  "skill://refund",    "skill://", "", "skill://absent",
        "skill://refunds/reference", "skill://refunds//", "x:a"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_has(ask_uri(&on, method, bad[i]), "{\"code\":-32602,");
    }
    assert_has(rig_ask(&on, method, ""), "{\"code\":-32602,");
    assert_has(rig_ask(&on, method, "\"uri\":\"skill://refunds\",\"cursor\":\"1\""),
               "{\"code\":-32602,");
    rig_stop(&on);
}

static void a_folder_is_served_as_it_was(void **state)
{
    (void)state;
    rig on;
    static const char binary[] = {(char)0x89, 'P', 'N', 'G', 0};
    make_folder("from-disk");
    make_folder("from-disk/images");
    make_folder("from-disk/.git");
    make_text("from-disk/SKILL.md", MAIN_OF("from-disk"));
    make_text("from-disk/.hidden", "hidden");
    make_text("from-disk/.git/config", "hidden");
    make_text("from-disk/notes", "plain");
    make_file("from-disk/images/a.PNG", binary, sizeof(binary));
    bay_server *server = bay_server_new("s", "1");
    bay_server_skill(server, in_root("from-disk/"));
    rig_start(&on, server);
    make_text("from-disk/notes", "changed meanwhile");
    rig_client(&on, "2026-07-28");
    const char *said = rig_ask(&on, "skills/list", "");
    expect_digest(said, "skill://from-disk/SKILL.md", MAIN_OF("from-disk"));
    expect_digest(said, "skill://from-disk/notes", "plain");
    assert_null(strstr(said, "hidden"));
    assert_null(strstr(said, "config"));
    assert_has(ask_uri(&on, "resources/read", "skill://from-disk/notes"),
               "\"mimeType\":\"text/plain\",\"text\":\"plain\"}]");
    assert_has(ask_uri(&on, "resources/read", "skill://from-disk/images/a.PNG"),
               "\"mimeType\":\"image/png\",\"blob\":\"iVBORwA=\"}]");
    rig_stop(&on);
}

static void lists_of_skills_have_pages(void **state)
{
    (void)state;
    rig on;
    bay_server *server = server_of_skills();
    bay_server_set(server, BAY_SERVER_SETTING_PAGE_SIZE, 1);
    rig_start(&on, server);
    rig_client(&on, "2026-07-28");
    const char *said = rig_ask(&on, "skills/list", "");
    assert_null(strstr(said, "skill://other"));
    const char *at = strstr(said, "\"nextCursor\":\"");
    assert_non_null(at);
    char params[128];
    (void)snprintf(params, sizeof(params), "\"cursor\":\"%.*s\"", (int)strcspn(at + 14, "\""),
                   at + 14);
    said = rig_ask(&on, "skills/list", params);
    assert_has(said, "\"skills\":[{\"uri\":\"skill://other/SKILL.md\"");
    assert_null(strstr(said, "nextCursor"));
    rig_stop(&on);
}

/* Every lack of memory is told as one, and everything is given back. */
static void every_allocation_may_fail(void **state)
{
    (void)state;
    size_t served = 0;
    make_folder("sweep");
    make_text("sweep/SKILL.md", MAIN_OF("sweep"));
    make_text("sweep/notes", "plain");
    for (size_t at = 0; failing_memory_start(at); at++) {
        rig on;
        bay_diag diag = {0};
        bay_server *server = server_of_skills();
        bay_server_skill(server, in_root("sweep"));
        if (bay_server_check(server, &diag) != BAY_OK) {
            assert_int_equal(diag.code, BAY_ERR_NOMEM);
            bay_server_free(server);
        } else if (rig_try_start(&on, server)) {
            wire_init(&on.way, &on.on);
            if (mcp_connection_open(on.server->engine, &on.way.carrier, &on.way.connection) ==
                BAY_OK) {
                on.revision = "2026-07-28";
                rig_send(&on, "skills/list", "", "");
                rig_send(&on, "skills/get", "\"uri\":\"skill://sweep/SKILL.md\"", "");
                rig_send(&on, "resources/directory/read", "\"uri\":\"skill://refunds\"", "");
                rig_send(&on, "resources/read", "\"uri\":\"skill://sweep/notes\"", "");
                assert_int_equal(on.way.events, 4);
                served++;
            }
            rig_stop(&on);
        }
        failing_memory_check();
    }
    assert_true(served > 5);
}

int main(void)
{
    char digest[DIGEST_TEXT_BYTES + 1];
    if (digest_sha256(STR(""), digest) == BAY_ERR_UNSUPPORTED) {
        return 0; /* nothing of this is there without OpenSSL */
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_registrations_are_told),
        cmocka_unit_test(bounds_hold),
        cmocka_unit_test(bad_folders_are_told),
        cmocka_unit_test(nothing_leads_out_of_a_folder),
        cmocka_unit_test(folders_have_bounds),
        cmocka_unit_test(skills_are_listed_with_digests),
        cmocka_unit_test(it_is_declared_where_it_is_known),
        cmocka_unit_test(files_are_resources),
        cmocka_unit_test(folders_are_read),
        cmocka_unit_test(a_folder_is_served_as_it_was),
        cmocka_unit_test(lists_of_skills_have_pages),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

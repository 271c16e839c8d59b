/* The lock file: written, read back, edited by hand. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "support/failing_memory.h"
#include "trust/lock.h"

#ifdef BAY_NO_TLS
int main(void)
{
    trust_lock lock;
    arena memory;
    json_doc doc;
    buf out;
    char digest[DIGEST_TEXT_BYTES + 1];
    trust_lock_init(&lock);
    arena_init(&memory, 1 << 20);
    buf_init(&out, 1 << 20);
    bool is_told = json_parse(&doc, STR("1"), NULL, &memory, NULL) == BAY_OK &&
                   trust_canon(json_root(&doc), &memory, &out, digest) == BAY_ERR_UNSUPPORTED;
    arena_fini(&memory);
    buf_fini(&out);
    trust_lock_fini(&lock);
    return is_told ? 0 : 1;
}
#else

#define SEEN "2026-11-27T10:00:00Z"

static bay_err put(trust_lock *self, const char *server, bool is_agent, trust_kind kind,
                   const char *name, const char *definition)
{
    json_doc doc;
    arena memory;
    arena scratch;
    buf canon;
    trust_pin pin = {.kind = kind, .name = str_of(name), .seen = STR(SEEN)};
    trust_pinned *pinned;
    arena_init(&memory, 64 << 20);
    arena_init(&scratch, 64 << 20);
    buf_init(&canon, 64 << 20);
    bay_err err = json_parse(&doc, str_of(definition), NULL, &memory, NULL);
    err = err == BAY_OK ? trust_canon(json_root(&doc), &scratch, &canon, pin.digest) : err;
    pin.canon = buf_view(&canon);
    err = err == BAY_OK ? trust_lock_enter(self, str_of(server), is_agent, &pinned) : err;
    err = err == BAY_OK ? trust_lock_put(self, pinned, &pin) : err;
    arena_fini(&memory);
    arena_fini(&scratch);
    buf_fini(&canon);
    return err;
}

static void write_out(const trust_lock *self, buf *out)
{
    buf_init(out, 64 << 20);
    trust_lock_write(self, out);
    assert_int_equal(out->err, BAY_OK);
}

/* ---- round trips ----------------------------------------------------------------------------- */

static const char *const definitions[] = {
    "{\"name\":\"a\"}",
    "\"instructions\"",
    "{}",
    "[]",
    "{\"b\":1,\"a\":[1,2,{\"c\":\"  x  \"}]}",
    "{\"description\":\"first\\n  second, which is longer than a line of a lock is to "
    "be\\n\\n\\n\"}",
    "{\"description\":\"ends in a line end\\n\"}",
    "{\"description\":\"{ not } a [ container ] and \\\" a quote, \\\\ and \\\\n no line end\"}",
    "{\"description\":\"\\u001b[2J\\u0000\\u202e\\u200b\\udb40\\udc41 \\\\u202e é\"}",
    "{\"description\":\"\\ud800 a lone surrogate \\u202E\", \"x\" : [ 1 ,\n 2 ]}",
    "{\"a\":1e400,\"b\":\"\\u202e\"}",
    "{\"a\":1,\"a\":2}",
    "{\"inputSchema\":{\"properties\":{\"path\":{\"type\":\"string\",\"description\":\"the path to "
    "read\"},"
    "\"limit\":{\"type\":\"integer\"}},\"required\":[\"path\"],\"type\":\"object\"},\"name\":"
    "\"read\"}",
};

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    trust_lock first;
    trust_lock second;
    buf before;
    buf after;
    bay_diag diag = {0};
    trust_lock_init(&first);
    for (size_t i = 0; i < ARRAY_LEN(definitions); i++) {
        char name[32];
        snprintf(name, sizeof(name), "i%zu \"\\\x01\xe2\x80\xae", i);
        assert_int_equal(put(&first, "s", false, TRUST_TOOL, name, definitions[i]), BAY_OK);
    }
    assert_int_equal(put(&first, "s", false, TRUST_INSTRUCTIONS, "", "\"x\""), BAY_OK);
    assert_int_equal(put(&first, "s", true, TRUST_CARD, "", "{\"skills\":[]}"), BAY_OK);
    trust_pinned *server = trust_lock_find(&first, STR("s"), false);
    server->identity = STR("url https://a.example");
    server->items[0].approved = STR(SEEN);
    server->items[0].by = STR("al\"ice\xe2\x80\xae");
    write_out(&first, &before);
    trust_lock_init(&second);
    bay_err err = trust_lock_read(&second, buf_view(&before), &diag);
    if (err != BAY_OK) {
        fail_msg("line %u: %s\n%.*s", diag.line, diag.text, (int)before.len, before.at);
    }
    write_out(&second, &after);
    assert_true(str_eq(buf_view(&before), buf_view(&after)));
    for (size_t i = 0; i < server->count; i++) {
        const trust_pin *pin = &server->items[i];
        const trust_pin *again =
            trust_pinned_find(trust_lock_find(&second, STR("s"), false), pin->kind, pin->name);
        assert_non_null(again);
        assert_string_equal(again->digest, pin->digest);
        assert_true(str_eq(again->canon, pin->canon));
        assert_true(str_eq(again->by, pin->by));
    }
    /* nothing in it hides, and no line is another's */
    assert_null(memmem(before.at, before.len, "\xe2\x80\xae", 3));
    assert_null(memmem(before.at, before.len, "\x1b", 1));
    trust_lock_fini(&first);
    trust_lock_fini(&second);
    buf_fini(&before);
    buf_fini(&after);
}

static void it_reads_as_it_is_documented(void **state)
{
    (void)state;
    trust_lock lock;
    buf text;
    trust_lock_init(&lock);
    assert_int_equal(put(&lock, "b", false, TRUST_TOOL, "t", definitions[12]), BAY_OK);
    assert_int_equal(put(&lock, "a", false, TRUST_PROMPT, "p", "{ \"name\":\"p\" }"), BAY_OK);
    write_out(&lock, &text);
    buf_char(&text, '\0');
    assert_string_equal(
        strstr(text.at, "\nserver"),
        "\nserver \"a\"\n\n"
        "  prompt \"p\" "
        "sha256:1cf8d75aa01a64d20f498907560fe65bd4cc3ed6ab4bc38a5592392afbfaa192\n"
        "    seen " SEEN "\n"
        "      | {\"name\":\"p\"}\n\n"
        "server \"b\"\n\n"
        "  tool \"t\" "
        "sha256:d976d71d4906f84868ddb95e6f38edcbb87d72c8aad6c6df9a0492419da08def\n"
        "    seen " SEEN "\n"
        "      | {\n"
        "      |   \"inputSchema\":{\n"
        "      |     \"properties\":{\n"
        "      |       \"limit\":{\"type\":\"integer\"},\n"
        "      |       \"path\":{\"description\":\"the path to read\",\"type\":\"string\"}\n"
        "      |     },\n"
        "      |     \"required\":[\"path\"],\n"
        "      |     \"type\":\"object\"\n"
        "      |   },\n"
        "      |   \"name\":\"read\"\n"
        "      | }\n");
    buf_fini(&text);
    trust_lock_fini(&lock);
}

/* Another order of members, or of items, is the same lock. */
static void order_makes_no_difference(void **state)
{
    (void)state;
    trust_lock locks[2];
    buf texts[2];
    for (size_t i = 0; i < 2; i++) {
        trust_lock_init(&locks[i]);
        assert_int_equal(put(&locks[i], "s", false, TRUST_TOOL, i == 0 ? "a" : "b",
                             i == 0 ? "{\"x\":1,\"y\":2.0}" : "{\"z\":1}"),
                         BAY_OK);
        assert_int_equal(put(&locks[i], "s", false, TRUST_TOOL, i == 0 ? "b" : "a",
                             i == 0 ? "{\"z\":1}" : "{ \"y\" : 2, \"x\":1}"),
                         BAY_OK);
        write_out(&locks[i], &texts[i]);
    }
    assert_true(str_eq(buf_view(&texts[0]), buf_view(&texts[1])));
    for (size_t i = 0; i < 2; i++) {
        buf_fini(&texts[i]);
        trust_lock_fini(&locks[i]);
    }
}

/* ---- by hand --------------------------------------------------------------------------------- */

#define HEAD "patchbay.lock 1\n"
#define DIGEST "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" /* of {} */
#define ITEM "tool \"a\" " DIGEST "\n| {}\n"

static const struct {
    const char *text;
    bay_err err;
    unsigned line;
    const char *why;
} edits[] = {
    {"", BAY_OK, 0, ""},
    {"\n\n", BAY_OK, 0, ""},
    {HEAD, BAY_OK, 0, ""},
    {HEAD "# a remark\nserver \"s\"\n" ITEM, BAY_OK, 0, ""},
    {HEAD "server \"s\"\r\n  tool \"a\" " DIGEST "\r\n\t| {\r\n| }\r\n", BAY_OK, 0, ""},
    {"patchbay.lock\n", BAY_ERR_SYNTAX, 1, "does not begin with"},
    {"{}", BAY_ERR_SYNTAX, 1, "does not begin with"},
    {"patchbay.lock 2\n", BAY_ERR_VERSION, 1, "by a newer patchbay"},
    {"patchbay.lock 0\n", BAY_ERR_VERSION, 1, "an older form"},
    {"patchbay.lock 99999999999999999999\n", BAY_ERR_SYNTAX, 1, "does not begin with"},
    {"<<<<<<< HEAD\n" HEAD, BAY_ERR_SYNTAX, 1, "a mark of a merge conflict"},
    {HEAD "server \"s\"\n<<<<<<< ours\n" ITEM, BAY_ERR_SYNTAX, 3, "a mark of a merge conflict"},
    {HEAD "server \"s\"\n" ITEM "=======\n", BAY_ERR_SYNTAX, 5, "a mark of a merge conflict"},
    {HEAD "server \"s\"\n" ITEM ">>>>>>> theirs\n", BAY_ERR_SYNTAX, 5,
     "a mark of a merge conflict"},
    {HEAD "server \"s\"\n" ITEM ITEM, BAY_ERR_DUPLICATE, 5, "tool \"a\" stands twice"},
    {HEAD "server \"s\"\nserver \"s\"\n", BAY_ERR_DUPLICATE, 3, "server \"s\" stands twice"},
    {HEAD ITEM, BAY_ERR_SYNTAX, 2, "before the first server"},
    {HEAD "server s\n", BAY_ERR_SYNTAX, 2, "a name in quotes"},
    {HEAD "server \"s\n", BAY_ERR_SYNTAX, 2, "a name in quotes"},
    {HEAD "server \"\\q\"\n", BAY_ERR_SYNTAX, 2, "a name in quotes"},
    {HEAD "server \"s\" more\n", BAY_ERR_SYNTAX, 2, "a name in quotes"},
    {HEAD "server \"s\"\ntool " DIGEST "\n", BAY_ERR_SYNTAX, 3, "a name in quotes"},
    {HEAD "server \"s\"\ntool \"a\"\n", BAY_ERR_SYNTAX, 3, "a digest is missing"},
    {HEAD "server \"s\"\ntool \"a\" sha256:12\n", BAY_ERR_SYNTAX, 3, "a digest is missing"},
    {HEAD "server \"s\"\ntool \"a\" " DIGEST " more\n", BAY_ERR_SYNTAX, 3, "a digest is missing"},
    {HEAD "server \"s\"\ntool \"a\" " DIGEST "\n", BAY_ERR_SYNTAX, 3, "has no definition"},
    {HEAD "server \"s\"\ntool \"a\" " DIGEST "\n| {\"x\":1}\n", BAY_ERR_DENIED, 3,
     "is not that of its definition"},
    {HEAD "server \"s\"\ntool \"a\" " DIGEST "\n| {}\n| {}\n", BAY_ERR_DENIED, 3,
     "is not that of its definition"},
    {HEAD "server \"s\"\n| {}\n", BAY_ERR_SYNTAX, 3, "without its item"},
    {HEAD "server \"s\"\nseen yesterday\n", BAY_ERR_SYNTAX, 3, "seen needs a time"},
    {HEAD "seen " SEEN "\n", BAY_ERR_SYNTAX, 2, "seen needs a time"},
    {HEAD "server \"s\"\napproved " SEEN "\n", BAY_ERR_SYNTAX, 3, "approved needs a time and who"},
    {HEAD "server \"s\"\napproved by \"x\"\n", BAY_ERR_SYNTAX, 3, "approved needs a time and who"},
    {HEAD "server \"s\"\n" ITEM "identity \"x\"\n", BAY_ERR_SYNTAX, 5,
     "identity belongs to a server"},
    {HEAD "server \"s\"\nallow everything\n", BAY_ERR_SYNTAX, 3, "is no word of a lock"},
    {HEAD "server \"\xff\"\n", BAY_ERR_SYNTAX, 0, "not UTF-8"},
};

static void edits_are_told_with_line_and_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(edits); i++) {
        trust_lock lock;
        bay_diag diag = {0};
        trust_lock_init(&lock);
        bay_err err = trust_lock_read(&lock, str_of(edits[i].text), &diag);
        if (err != edits[i].err || diag.line != edits[i].line ||
            strstr(diag.text, edits[i].why) == NULL) {
            fail_msg("%s: %s, line %u: %s", edits[i].text, bay_err_text(err), diag.line, diag.text);
        }
        trust_lock_fini(&lock);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static void files_are_replaced_whole(void **state)
{
    (void)state;
    char folder[] = "/tmp/patchbay-lock-XXXXXX";
    char path[64];
    trust_lock lock;
    trust_lock again;
    struct stat found;
    bay_diag diag = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/patchbay.lock", folder);
    trust_lock_init(&lock);
    assert_int_equal(trust_lock_load(&lock, path, &diag), BAY_OK); /* it is not there */
    assert_int_equal(lock.count, 0);
    assert_int_equal(put(&lock, "s", false, TRUST_TOOL, "a", "{}"), BAY_OK);
    assert_int_equal(trust_lock_save(&lock, path, &diag), BAY_OK);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(trust_lock_save(&lock, path, &diag), BAY_OK);
    assert_int_equal(stat(path, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600); /* as it was */
    trust_lock_init(&again);
    assert_int_equal(trust_lock_load(&again, path, &diag), BAY_OK);
    assert_int_equal(again.items, 1);
    trust_lock_fini(&again);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0); /* and nothing lies beside it */
    assert_int_equal(trust_lock_save(&lock, path, &diag), BAY_ERR_STATE); /* it was there */
    trust_lock_fini(&lock);
    trust_lock_init(&lock);
    assert_int_equal(trust_lock_save(&lock, path, &diag), BAY_ERR_IO);
    assert_non_null(strstr(diag.text, "cannot be written"));
    trust_lock_fini(&lock);
    trust_lock_init(&lock);
    assert_int_equal(trust_lock_load(&lock, "/tmp", &diag), BAY_ERR_IO);
    trust_lock_fini(&lock);
}

/* Two that load it and save it, one after the other: what the first wrote stays. */
static void a_file_that_changed_is_not_overwritten(void **state)
{
    (void)state;
    char folder[] = "/tmp/patchbay-lock-XXXXXX";
    char path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/patchbay.lock", folder);
    for (int is_there = 0; is_there < 2; is_there++) {
        trust_lock both[2];
        bay_diag diag = {0};
        for (size_t i = 0; i < 2; i++) {
            trust_lock_init(&both[i]);
            assert_int_equal(trust_lock_load(&both[i], path, &diag), BAY_OK);
            assert_int_equal(both[i].items, is_there);
        }
        assert_int_equal(put(&both[0], "s", false, TRUST_TOOL, is_there ? "b" : "a", "{}"), BAY_OK);
        assert_int_equal(put(&both[1], "s", false, TRUST_TOOL, "c", "{}"), BAY_OK);
        assert_int_equal(trust_lock_save(&both[0], path, &diag), BAY_OK);
        assert_int_equal(trust_lock_save(&both[1], path, &diag), BAY_ERR_STATE);
        assert_non_null(strstr(diag.text, "changed meanwhile"));
        assert_int_equal(trust_lock_save(&both[0], path, &diag), BAY_OK); /* its own file */
        trust_lock_fini(&both[0]);
        trust_lock_fini(&both[1]);
    }
    /* while another process has it under its lock */
    trust_lock lock;
    bay_diag diag = {0};
    trust_lock_init(&lock);
    assert_int_equal(trust_lock_load(&lock, path, &diag), BAY_OK);
    assert_int_equal(lock.items, 2);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(file, LOCK_EX), 0);
    assert_int_equal(trust_lock_save(&lock, path, &diag), BAY_ERR_STATE);
    assert_non_null(strstr(diag.text, "written by another process"));
    close(file);
    assert_int_equal(trust_lock_save(&lock, path, &diag), BAY_OK);
    trust_lock_fini(&lock);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void a_symbolic_link_stays_one(void **state)
{
    (void)state;
    char folder[] = "/tmp/patchbay-lock-XXXXXX";
    char path[64];
    char target[64];
    struct stat found;
    trust_lock lock;
    bay_diag diag = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/patchbay.lock", folder);
    snprintf(target, sizeof(target), "%s/elsewhere", folder);
    assert_int_equal(symlink("elsewhere", path), 0);
    FILE *file = fopen(target, "w");
    fputs("patchbay.lock 1\n", file);
    fclose(file);
    trust_lock_init(&lock);
    assert_int_equal(trust_lock_load(&lock, path, &diag), BAY_OK);
    assert_int_equal(put(&lock, "s", false, TRUST_TOOL, "a", "{}"), BAY_OK);
    assert_int_equal(trust_lock_save(&lock, path, &diag), BAY_OK);
    trust_lock_fini(&lock);
    assert_int_equal(lstat(path, &found), 0);
    assert_true(S_ISLNK(found.st_mode));
    trust_lock_init(&lock);
    assert_int_equal(trust_lock_load(&lock, target, &diag), BAY_OK);
    assert_int_equal(lock.items, 1);
    trust_lock_fini(&lock);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(target), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void memory_may_fail(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        trust_lock lock;
        trust_lock again;
        buf text;
        trust_lock_init(&lock);
        trust_lock_init(&again);
        buf_init(&text, 1 << 20);
        bay_err err = put(&lock, "s", false, TRUST_TOOL, "a", definitions[8]);
        err = err == BAY_OK ? put(&lock, "t", true, TRUST_CARD, "", definitions[12]) : err;
        if (err == BAY_OK) {
            trust_lock_write(&lock, &text);
            err = text.err;
        }
        err = err == BAY_OK ? trust_lock_read(&again, buf_view(&text), NULL) : err;
        assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        trust_lock_fini(&lock);
        trust_lock_fini(&again);
        buf_fini(&text);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(it_reads_as_it_is_documented),
        cmocka_unit_test(order_makes_no_difference),
        cmocka_unit_test(edits_are_told_with_line_and_reason),
        cmocka_unit_test(files_are_replaced_whole),
        cmocka_unit_test(a_file_that_changed_is_not_overwritten),
        cmocka_unit_test(a_symbolic_link_stays_one),
        cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif

/* The audit on disk: nothing is missing or twice after an end in order, what a kill cuts off is told,
 * a disk that takes no more loses nothing that memory can hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <openssl/opensslv.h> /* a build without digests leaves this out */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

#include "base/check.h"
#include "base/str.h"
#include "evidence/audit_file.h"
#include "evidence/audit_parts.h"
#include "evidence/audit_verify.h"

#define RECORD "\"time\":\"t\",\"kind\":\"call\",\"name\":\"x\"\n"

static char folder[] = "/tmp/audit-file.XXXXXX";
static char path[64];
static uint64_t now_ms = 1700000000000;

static uint64_t clock_ms(void)
{
    return now_ms;
}

static bay_err open_as(audit_file **out, uint64_t part_bytes, bay_diag *diag)
{
    audit_file_options options = {.path = path,
                                  .replica = STR("test"),
                                  .part_bytes = part_bytes,
                                  .keep_ms = 3600 * 1000,
                                  .wall_ms = clock_ms};
    return audit_file_open(&options, out, diag);
}

static audit_file *opened(uint64_t part_bytes)
{
    audit_file *file = NULL;
    bay_diag diag = {0};
    if (open_as(&file, part_bytes, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    return file;
}

static audit_verdict verified(const char *head)
{
    audit_verdict verdict;
    bay_diag diag = {0};
    if (audit_verify(path, str_of(head), &verdict, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    return verdict;
}

static audit_verdict whole(void)
{
    audit_verdict verdict = verified("");
    if (verdict.fault != AUDIT_GOOD) {
        fail_msg("fault %d at %s:%llu", verdict.fault, verdict.file,
                 (unsigned long long)verdict.line);
    }
    return verdict;
}

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(path, sizeof(path), "%s/log", folder);
    audit_parts parts;
    char name[AUDIT_PATH_BYTES];
    assert_int_equal(audit_parts_list(path, &parts), BAY_OK);
    for (size_t i = 0; i < parts.count; i++) {
        assert_true(audit_part_name(path, parts.at[i], name));
        assert_int_equal(unlink(name), 0);
    }
    audit_parts_free(&parts);
    (void)unlink(path);
    now_ms += 10000000;
    return 0;
}

static void append(const char *text)
{
    FILE *file = fopen(path, "ae");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void another_writer_is_refused(void **state)
{
    audit_file *other = NULL;
    bay_diag diag = {0};
    (void)state;
    audit_file *file = opened(0);
    assert_int_equal(open_as(&other, 0, &diag), BAY_ERR_DENIED);
    assert_non_null(strstr(diag.text, "another gateway"));
    audit_file_close(file);
}

static void a_file_of_something_else_is_refused(void **state)
{
    audit_file *file = NULL;
    bay_diag diag = {0};
    (void)state;
    append("my diary\n");
    assert_int_equal(open_as(&file, 0, &diag), BAY_ERR_SYNTAX);
    assert_non_null(strstr(diag.text, "none of an audit"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_int_equal(open_as(&file, 0, &diag), BAY_ERR_IO);
}

static void starts_go_on_with_the_chain(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        audit_file *file = opened(0);
        assert_true(audit_file_write(file, STR(RECORD RECORD), 0));
        audit_file_close(file);
    }
    audit_verdict verdict = whole();
    assert_int_equal(verdict.calls, 6);
    assert_int_equal(verdict.lines, 12);
    assert_int_equal(verdict.crashes, 0);
    assert_true(verdict.is_closed);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
}

static void a_cut_is_told_by_a_head_alone(void **state)
{
    char head[AUDIT_HASH_DIGITS + 1];
    struct stat about;
    (void)state;
    audit_file *file = opened(0);
    assert_true(audit_file_write(file, STR(RECORD RECORD), 0));
    audit_file_close(file);
    audit_verdict verdict = whole();
    audit_chain_head(&verdict.chain, head);
    assert_true(verified(head).has_head);
    assert_int_equal(stat(path, &about), 0);
    bay_str last = STR("\"hash\":\"\"}\n");
    assert_int_equal(truncate(path, about.st_size - (off_t)last.len), 0);
    verdict = verified(head);
    assert_int_equal(verdict.fault, AUDIT_GOOD);
    assert_false(verdict.has_head);
    assert_false(verdict.is_closed);
    assert_true(verdict.torn_bytes > 0);
}

static void an_end_out_of_order_is_told(void **state)
{
    (void)state;
    audit_file *file = opened(0);
    assert_true(audit_file_write(file, STR(RECORD), 0));
    audit_file_close(file);
    append("{\"seq\":5,\"kind\":\"ca"); /* what a killed writer leaves */
    file = opened(0);
    assert_true(audit_file_write(file, STR(RECORD), 0));
    audit_file_close(file);
    audit_verdict verdict = whole();
    assert_int_equal(verdict.calls, 2);
    assert_int_equal(verdict.torn_bytes, strlen("{\"seq\":5,\"kind\":\"ca"));
    append("{\"seq\":5,\"kind\":\"ca\n"); /* a line that nothing tells of */
    verdict = verified("");
    assert_int_equal(verdict.fault, AUDIT_NO_RECORD);
}

/* Killed while the first line was written. */
static void begin_behind(const char *torn)
{
    audit_file *file = opened(256); /* leaves a part, and a file that was begun */
    assert_true(audit_file_write(file, STR(RECORD), 0));
    audit_file_close(file);
    assert_int_equal(unlink(path), 0);
    append(torn);
    file = opened(0);
    assert_true(audit_file_write(file, STR(RECORD), 0));
    audit_file_close(file);
    audit_verdict verdict = whole();
    assert_int_equal(verdict.calls, 2);
    assert_int_equal(verdict.torn_bytes, strlen(torn));
    for (int i = 0; i < 2; i++) { /* put aside later, it keeps its place in the order */
        file = opened(256);
        assert_true(audit_file_write(file, STR(RECORD), 0));
        assert_true(audit_file_write(file, STR(RECORD), 0));
        audit_file_close(file);
    }
    assert_int_equal(whole().calls, 6);
}

/* One that says a number that an earlier part has, and one that says none. */
static void a_first_line_may_be_cut(void **state)
{
    begin_behind("{\"seq\":1,\"prev");
    assert_int_equal(set_up(state), 0);
    begin_behind("{\"seq\":");
}

static void a_full_part_is_put_aside(void **state)
{
    audit_parts parts;
    char name[AUDIT_PATH_BYTES];
    (void)state;
    audit_file *file = opened(2048);
    for (int i = 0; i < 40; i++) {
        assert_true(audit_file_write(file, STR(RECORD), 0));
    }
    audit_verdict verdict = whole();
    assert_int_equal(verdict.calls, 40);
    assert_int_equal(verdict.first_seq, 1);
    assert_int_equal(audit_parts_list(path, &parts), BAY_OK);
    assert_true(parts.count >= 2);
    /* the first one is old, and goes whole; the chain begins behind it */
    assert_true(audit_part_name(path, parts.at[0], name));
    struct utimbuf old = {.actime = 1, .modtime = 1};
    assert_int_equal(utime(name, &old), 0);
    for (size_t i = 1; i < parts.count; i++) {
        assert_true(audit_part_name(path, parts.at[i], name));
        struct utimbuf young = {.actime = (time_t)(now_ms / 1000),
                                .modtime = (time_t)(now_ms / 1000)};
        assert_int_equal(utime(name, &young), 0);
    }
    audit_file_tick(file);
    verdict = whole();
    assert_int_equal(verdict.first_seq, parts.at[1]);
    audit_parts_free(&parts);
    audit_file_close(file);
    assert_true(whole().is_closed);
}

static void a_file_that_is_moved_is_begun_anew(void **state)
{
    char aside[AUDIT_PATH_BYTES];
    (void)state;
    audit_file *file = opened(0);
    assert_true(audit_file_write(file, STR(RECORD), 0));
    assert_true(audit_part_name(path, 1, aside));
    assert_int_equal(rename(path, aside), 0);
    now_ms += AUDIT_CHECK_MS;
    assert_true(audit_file_write(file, STR(RECORD), 0));
    audit_file_close(file);
    assert_int_equal(whole().calls, 2);
    assert_int_equal(unlink(path), 0); /* what its last part ends with is gone on from */
    file = opened(0);
    audit_file_close(file);
    assert_int_equal(whole().crashes, 1);
}

static void set_largest(rlim_t bytes)
{
    struct rlimit limit = {bytes, RLIM_INFINITY};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Half a record goes in; the rest follows when there is room. */
static void a_full_disk_loses_nothing(void **state)
{
    struct stat about;
    (void)state;
    audit_file *file = opened(0);
    assert_true(audit_file_write(file, STR(RECORD), 0));
    assert_int_equal(stat(path, &about), 0);
    set_largest((rlim_t)about.st_size + 50);
    assert_false(audit_file_write(file, STR(RECORD RECORD), 0));
    assert_false(audit_file_write(file, STR(""), 0));
    set_largest(RLIM_INFINITY);
    assert_true(audit_file_write(file, STR(""), 0));
    assert_true(audit_file_write(file, STR(RECORD), 7));
    audit_file_close(file);
    audit_verdict verdict = whole();
    assert_int_equal(verdict.calls, 4);
    assert_int_equal(verdict.dropped, 7);
}

/* ---- killed ----------------------------------------------------------------------------------- */

/* Writes batches for ever; a byte to `tell` after each. */
static void write_for_ever(int tell)
{
    audit_file *file = opened(16384);
    for (;;) {
        if (!audit_file_write(file, STR(RECORD RECORD RECORD), 0) || write(tell, "x", 1) != 1) {
            _exit(3);
        }
    }
}

/* Everything that was written before the kill is there, once; what follows it says that it was one. */
static void nothing_written_is_lost_by_a_kill(void **state)
{
    enum { KILLS = 200 };
    uint64_t least = 0;
    (void)state;
    srand(7);
    for (unsigned i = 0; i < KILLS; i++) {
        int ends[2];
        char byte;
        unsigned batches = 1 + (unsigned)rand() % 20;
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            close(ends[0]);
            write_for_ever(ends[1]);
        }
        close(ends[1]);
        for (unsigned k = 0; k < batches; k++) {
            assert_int_equal(read(ends[0], &byte, 1), 1);
        }
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        close(ends[0]);
        least += 3 * (uint64_t)batches;
    }
    audit_file_close(opened(16384));
    audit_verdict verdict = whole();
    assert_true(verdict.calls >= least);
    assert_int_equal(verdict.crashes, KILLS);
    assert_int_equal(verdict.first_seq, 1);
    assert_int_equal(verdict.lines, verdict.chain.seq);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(another_writer_is_refused, set_up),
        cmocka_unit_test_setup(a_file_of_something_else_is_refused, set_up),
        cmocka_unit_test_setup(starts_go_on_with_the_chain, set_up),
        cmocka_unit_test_setup(a_cut_is_told_by_a_head_alone, set_up),
        cmocka_unit_test_setup(an_end_out_of_order_is_told, set_up),
        cmocka_unit_test_setup(a_first_line_may_be_cut, set_up),
        cmocka_unit_test_setup(a_full_part_is_put_aside, set_up),
        cmocka_unit_test_setup(a_file_that_is_moved_is_begun_anew, set_up),
        cmocka_unit_test_setup(a_full_disk_loses_nothing, set_up),
        cmocka_unit_test_setup(nothing_written_is_lost_by_a_kill, set_up),
    };
    signal(SIGXFSZ, SIG_IGN);
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    set_up(NULL);
    return rmdir(folder) == 0 ? failed : 1;
}

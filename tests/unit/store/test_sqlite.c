/* What only a file has: it is there afterwards, also after a crash; others may have it open; it may
 * be anything but ours. */
#include "support/store_rig.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/str.h"

#define T STR("t")

static int setup(void **state)
{
    *state = rig_new(true);
    return 0;
}

static int teardown(void **state)
{
    rig_free(*state);
    return 0;
}

/* Runs SQL on the file from outside; the number in the first column of the last row. */
static int64_t outside(store_rig *rig, const char *sql)
{
    sqlite3 *database;
    sqlite3_stmt *query;
    int64_t number = -1;
    assert_int_equal(sqlite3_open(rig->path, &database), SQLITE_OK);
    sqlite3_busy_timeout(database, 10000);
    assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &query, NULL), SQLITE_OK);
    while (sqlite3_step(query) == SQLITE_ROW) {
        number = sqlite3_column_int64(query, 0);
    }
    assert_int_equal(sqlite3_finalize(query), SQLITE_OK);
    sqlite3_close(database);
    return number;
}

/* The totals say what the cells are, and streams have the events they claim. */
static void check_totals(store_rig *rig)
{
    assert_int_equal(outside(rig, "SELECT (SELECT cells FROM totals) ="
                                  " (SELECT count(*) FROM cell WHERE space <> 4)"),
                     1);
    assert_int_equal(outside(rig, "SELECT (SELECT bytes FROM totals) = coalesce((SELECT"
                                  " sum(length(scope) + length(key) + length(value))"
                                  " FROM cell WHERE space <> 4), 0)"),
                     1);
    assert_int_equal(outside(rig, "SELECT (SELECT count(DISTINCT scope) FROM cell WHERE space = 3)"
                                  " = (SELECT count(*) FROM cell WHERE space = 4)"),
                     1);
    assert_int_equal(outside(rig, "SELECT count(*) FROM cell s WHERE space = 4 AND"
                                  " hex(substr(s.value, 1, 8)) != (SELECT printf('%016X', count(*))"
                                  " FROM cell e WHERE e.space = 3 AND e.scope = s.scope)"),
                     0);
    assert_int_equal(outside(rig, "SELECT max(version) <= (SELECT counter FROM totals) FROM cell"),
                     1);
}

/* --- files that are not ours ------------------------------------------------------------------ */

static void write_file(store_rig *rig, const char *bytes, size_t len)
{
    int fd = open(rig->path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    close(fd);
}

static void refused(store_rig *rig, bay_err expected, const char *part)
{
    bay_diag diag = {0};
    assert_int_equal(rig_try_open(rig, &diag), expected);
    assert_int_equal(diag.code, expected);
    if (strstr(diag.text, part) == NULL) {
        fail_msg("'%s' does not say '%s'", diag.text, part);
    }
    assert_null(rig->store);
    assert_int_equal(rig_try_open(rig, NULL), expected);
}

static void what_is_no_path_is_refused(void **state)
{
    store_rig *rig = *state;
    static const bay_str paths[] = {
        {NULL, 0}, STR_INIT(":memory:"), STR_INIT("file:x?mode=memory"), STR_INIT("/tmp/a\0b")};
    bay_diag diag;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        assert_int_equal(store_open_sqlite(rig->loop, paths[i], NULL, &rig->store, &diag),
                         BAY_ERR_INVALID);
    }
    char kept[sizeof(rig->path)];
    memcpy(kept, rig->path, sizeof(kept));
    snprintf(rig->path, sizeof(rig->path), "%s", rig->folder);
    refused(rig, BAY_ERR_INVALID, "not a regular file");
    snprintf(rig->path, sizeof(rig->path), "%s/none/state.db", rig->folder);
    refused(rig, BAY_ERR_NOT_FOUND, "no such folder");
    memcpy(rig->path, kept, sizeof(kept));
    assert_int_equal(mkfifo(rig->path, 0600), 0);
    refused(rig, BAY_ERR_INVALID, "not a regular file");
}

static void what_is_no_database_is_refused_and_left_alone(void **state)
{
    store_rig *rig = *state;
    static char text[5000];
    memset(text, 'x', sizeof(text));
    static const size_t sizes[] = {1, 15, 100, 512, sizeof(text)};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        write_file(rig, text, sizes[i]);
        refused(rig, BAY_ERR_SYNTAX, "not an SQLite database");
        char back[sizeof(text)];
        int fd = open(rig->path, O_RDONLY);
        assert_int_equal(read(fd, back, sizeof(back)), sizes[i]);
        assert_memory_equal(back, text, sizes[i]);
        close(fd);
    }
}

static void the_database_of_another_program_is_refused_and_left_alone(void **state)
{
    store_rig *rig = *state;
    outside(rig, "CREATE TABLE cell (space, scope, key, value, version, expires)");
    refused(rig, BAY_ERR_INVALID, "another program");
    assert_int_equal(outside(rig, "SELECT count(*) FROM sqlite_schema"), 1);
    rig_remove_file(rig);
    outside(rig, "PRAGMA application_id = 77");
    refused(rig, BAY_ERR_INVALID, "another program");
    rig_remove_file(rig);
    outside(rig, "PRAGMA user_version = 1");
    refused(rig, BAY_ERR_INVALID, "another program");
}

static void a_newer_schema_is_refused_and_left_alone(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    rig_open(rig);
    rig_set(rig, "k", "v");
    rig_close(rig);
    outside(rig, "PRAGMA user_version = 2");
    refused(rig, BAY_ERR_VERSION, "newer release");
    assert_int_equal(outside(rig, "PRAGMA user_version"), 2);
    outside(rig, "PRAGMA user_version = 0");
    refused(rig, BAY_ERR_INVALID, "damaged");
    outside(rig, "PRAGMA user_version = -1");
    refused(rig, BAY_ERR_INVALID, "damaged");
    outside(rig, "PRAGMA user_version = 1");
    rig_open(rig);
    assert_int_equal(ask(rig, &a, get, T, STR("k")), BAY_OK);
    answer_clear(&a);
}

static void a_database_without_its_tables_is_refused(void **state)
{
    store_rig *rig = *state;
    rig_open(rig);
    rig_close(rig);
    outside(rig, "DELETE FROM totals");
    refused(rig, BAY_ERR_IO, "damaged");
    outside(rig, "DROP TABLE totals");
    bay_diag diag;
    assert_true(rig_try_open(rig, &diag) != BAY_OK);
}

/* A file with bytes changed anywhere opens or not, works or not, but never takes the process along.
 */
static void a_damaged_file_is_an_error_at_worst(void **state)
{
    store_rig *rig = *state;
    rig_open(rig);
    answer a = {0};
    for (int i = 0; i < 40; i++) {
        char key[8];
        snprintf(key, sizeof(key), "%d", i);
        rig_set(rig, key, "a value that takes some room in the page");
        assert_int_equal(rig_append(rig, &a, "s", "event", 5, 0), BAY_OK);
    }
    rig_close(rig);
    static char whole[1 << 17];
    int fd = open(rig->path, O_RDONLY);
    ssize_t len = read(fd, whole, sizeof(whole));
    close(fd);
    assert_true(len > 4096 && len < (ssize_t)sizeof(whole));
    uint32_t random = 7;
    for (int round = 0; round < 150; round++) {
        static char damaged[sizeof(whole)];
        memcpy(damaged, whole, (size_t)len);
        for (int i = 0; i < 20; i++) {
            random = random * 1664525U + 1013904223U;
            /* Half of it in the header and the schema, where it hurts most. */
            damaged[(random >> 8) % (i % 2 == 0 ? (uint32_t)len : 4096U)] ^= (char)(random >> 24);
        }
        rig_remove_file(rig);
        write_file(rig, damaged, round % 10 == 9 ? (size_t)len / 2 : (size_t)len);
        bay_diag diag;
        if (rig_try_open(rig, &diag) == BAY_OK) {
            err_ignore(rig_put(rig, &a, "3", "v", STORE_ANY, 0));
            err_ignore(rig_append(rig, &a, "s", "more", 2, 0));
            err_ignore(ask(rig, &a, scan, T, STR(""), STR(""), 100));
            err_ignore(ask(rig, &a, read, STR("s"), 0, 100));
            err_ignore(ask(rig, &a, claim, T, STR("l"), STR("me"), 10));
            rig_close(rig);
        }
        rig->store = NULL;
    }
    answer_clear(&a);
}

/* --- afterwards ------------------------------------------------------------------------------- */

static void a_new_file_and_its_log_are_the_owners_alone(void **state)
{
    store_rig *rig = *state;
    mode_t before = umask(0);
    rig_open(rig);
    rig_set(rig, "k", "v");
    umask(before);
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        char path[160];
        struct stat about;
        snprintf(path, sizeof(path), "%s%s", rig->path, ends[i]);
        assert_int_equal(stat(path, &about), 0);
        assert_int_equal(about.st_mode & 0777, 0600);
    }
}

static void everything_is_there_after_opening_again(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    rig_open(rig);
    uint64_t version = rig_set(rig, "k", "value");
    assert_int_equal(rig_put(rig, &a, "short", "lived", STORE_ANY, RIG_NOW + 50), BAY_OK);
    assert_int_equal(ask(rig, &a, claim, T, STR("work"), STR("me"), 1000), BAY_OK);
    assert_int_equal(rig_append(rig, &a, "s", "one", 2, 0), BAY_OK);
    assert_int_equal(rig_append(rig, &a, "s", "two", 2, 0), BAY_OK);
    uint64_t last = a.version;
    uint64_t held = a.held_bytes;
    rig_reopen(rig);
    rig->now_ms += 60;
    assert_int_equal(ask(rig, &a, get, T, STR("k")), BAY_OK);
    assert_true(answer_is(&a, "k=value "));
    assert_int_equal(a.version, version);
    assert_int_equal(a.held_rows, 5);
    assert_int_equal(a.held_bytes, held);
    assert_int_equal(ask(rig, &a, get, T, STR("short")), BAY_ERR_NOT_FOUND);
    assert_int_equal(ask(rig, &a, claim, T, STR("work"), STR("you"), 1000), BAY_ERR_BUSY);
    assert_int_equal(rig_append(rig, &a, "s", "three", 2, 0), BAY_OK);
    assert_true(a.version > last);
    assert_int_equal(ask(rig, &a, read, STR("s"), 0, 10), BAY_OK);
    assert_true(answer_is(&a, "=two =three "));
    rig_close(rig);
    check_totals(rig);
    answer_clear(&a);
}

/* --- other processes -------------------------------------------------------------------------- */

static void write_until_killed(store_rig *rig, int confirmed)
{
    rig_open(rig);
    enum { AT_ONCE = 7 };
    static answer answers[AT_ONCE];
    static uint32_t number[AT_ONCE];
    for (uint32_t next = 0, oldest = 0;;) {
        while (next < oldest + AT_ONCE) {
            answer *a = &answers[next % AT_ONCE];
            char key[16];
            answer_clear(a);
            snprintf(key, sizeof(key), "%08u", next);
            number[next % AT_ONCE] = next;
            const store_part parts[] = {{STR_INIT("one"), {key, 8}}, {STR_INIT("two"), {key, 8}}};
            store_put_request put = {.table = T,
                                     .key = {key, 8},
                                     .value = {key, 8},
                                     .expected = STORE_ABSENT,
                                     .is_relaxed = next % 3 == 0,
                                     .parts = parts,
                                     .part_count = 2};
            store_append_request append = {
                .stream = T, .value = {key, 8}, .keep_events = 100, .is_relaxed = true};
            bay_err err = next % 2 == 0 ? store_put(rig->store, &put, on_answer, a)
                                        : store_append(rig->store, &append, on_answer, a);
            if (err != BAY_OK) {
                _exit(1);
            }
            next++;
        }
        while (oldest < next && answers[oldest % AT_ONCE].calls > 0) {
            uint32_t done = number[oldest % AT_ONCE];
            if (answers[oldest % AT_ONCE].err != BAY_OK ||
                write(confirmed, &done, sizeof(done)) != sizeof(done)) {
                _exit(2);
            }
            oldest++;
        }
        loop_turn(rig->loop, 100);
    }
}

static void check_confirmed(store_rig *rig, uint32_t count)
{
    answer a = {0};
    for (uint32_t i = 0; i < count; i += 2) {
        char key[16];
        char row[64];
        snprintf(key, sizeof(key), "%08u", i);
        snprintf(row, sizeof(row), "%s=%s ", key, key);
        assert_int_equal(ask(rig, &a, get, T, (bay_str){key, 8}), BAY_OK);
        assert_true(answer_is(&a, row));
        snprintf(row, sizeof(row), "one=%s two=%s ", key, key);
        assert_int_equal(ask(rig, &a, parts, T, (bay_str){key, 8}, STR(""), 10), BAY_OK);
        assert_true(answer_is(&a, row));
    }
    assert_int_equal(ask(rig, &a, read, T, 0, 1000), BAY_OK);
    assert_true(a.count <= 100);
    /* The last events are there, in order; "=00000001 =00000003 …". */
    uint32_t last = 0;
    for (size_t i = 0; i < a.count; i++) {
        uint64_t number;
        assert_true(str_uint((bay_str){a.text.at + i * 10 + 1, 8}, &number));
        assert_true(i == 0 || number == last + 2);
        last = (uint32_t)number;
    }
    assert_true(last + 2 >= count);
    answer_clear(&a);
}

static void what_was_confirmed_survives_a_kill(void **state)
{
    store_rig *rig = *state;
    for (uint32_t round = 0; round < 8; round++) {
        int pipes[2];
        rig_remove_file(rig);
        assert_int_equal(pipe(pipes), 0);
        pid_t pid = fork();
        if (pid == 0) {
            close(pipes[0]);
            loop_free(rig->loop);
            if (loop_new(&rig->loop) == BAY_OK) {
                write_until_killed(rig, pipes[1]);
            }
            _exit(3);
        }
        close(pipes[1]);
        uint32_t number;
        uint32_t count = 0;
        while (count < 30 + round * 61 &&
               read(pipes[0], &number, sizeof(number)) == sizeof(number)) {
            assert_int_equal(number, count);
            count++;
        }
        assert_int_equal(kill(pid, SIGKILL), 0);
        while (read(pipes[0], &number, sizeof(number)) == sizeof(number)) {
            count++;
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        close(pipes[0]);
        assert_true(count >= 30);
        /* Also of what nobody confirmed a row has its parts, and the parts their row. */
        assert_int_equal(outside(rig, "SELECT 2 * (SELECT count(*) FROM cell WHERE space = 1) ="
                                      " (SELECT count(*) FROM cell p JOIN cell r ON r.space = 1"
                                      " AND r.scope = p.scope AND r.value = p.value"
                                      " WHERE p.space = 5) AND 2 * (SELECT count(*) FROM cell"
                                      " WHERE space = 1) = (SELECT count(*) FROM cell"
                                      " WHERE space = 5)"),
                         1);
        rig_open(rig);
        check_confirmed(rig, count);
        rig_set(rig, "it", "goes on");
        rig_close(rig);
        check_totals(rig);
    }
}

/* Adds one `times` times to a number that others add to as well. */
static void count_up(store_rig *rig, int times)
{
    answer a = {0};
    rig_open(rig);
    for (int done = 0; done < times;) {
        uint64_t number = 0;
        uint64_t version = STORE_ABSENT;
        if (ask(rig, &a, get, T, STR("n")) == BAY_OK) {
            assert_true(str_uint((bay_str){a.text.at + 2, a.text.len - 3}, &number));
            version = a.version;
        }
        char text[24];
        snprintf(text, sizeof(text), "%llu", (unsigned long long)number + 1);
        bay_err err = rig_put(rig, &a, "n", text, version, 0);
        done += err == BAY_OK;
        assert_true(err == BAY_OK || err == BAY_ERR_STATE || err == BAY_ERR_DUPLICATE);
        assert_int_equal(rig_append(rig, &a, "s", "e", 5, 0), BAY_OK);
    }
    rig_close(rig);
    answer_clear(&a);
}

static void processes_share_a_file_that_none_has_made_yet(void **state)
{
    store_rig *rig = *state;
    enum { PROCESSES = 4, TIMES = 40 };
    rig->options.busy_ms = 60000;
    pid_t pids[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            loop_free(rig->loop);
            if (loop_new(&rig->loop) == BAY_OK) {
                count_up(rig, TIMES);
                _exit(0);
            }
            _exit(1);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    answer a = {0};
    rig_open(rig);
    assert_int_equal(ask(rig, &a, get, T, STR("n")), BAY_OK);
    assert_true(answer_is(&a, "n=160 "));
    assert_int_equal(a.held_rows, 6);
    rig_close(rig);
    check_totals(rig);
    answer_clear(&a);
}

static void two_stores_on_one_file_see_each_other(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    rig_open(rig);
    store *first = rig->store;
    rig->store = NULL;
    rig_open(rig);
    store *second = rig->store;
    uint64_t version = rig_set(rig, "k", "from the second");
    rig->store = first;
    assert_int_equal(ask(rig, &a, get, T, STR("k")), BAY_OK);
    assert_int_equal(a.version, version);
    assert_int_equal(rig_put(rig, &a, "k", "x", STORE_ABSENT, 0), BAY_ERR_DUPLICATE);
    assert_true(rig_set(rig, "k", "from the first") > version);
    assert_int_equal(ask(rig, &a, claim, T, STR("work"), STR("one"), 10), BAY_OK);
    rig->store = second;
    assert_int_equal(ask(rig, &a, claim, T, STR("work"), STR("two"), 10), BAY_ERR_BUSY);
    assert_int_equal(rig_put(rig, &a, "k", "x", version, 0), BAY_ERR_STATE);
    assert_int_equal(a.held_rows, 2);
    rig_close(rig);
    rig->store = first;
    rig_close(rig);
    check_totals(rig);
    answer_clear(&a);
}

/* --- locked ----------------------------------------------------------------------------------- */

static sqlite3 *lock_file(store_rig *rig)
{
    sqlite3 *database;
    assert_int_equal(sqlite3_open(rig->path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    return database;
}

static void a_file_locked_for_too_long_is_a_time_out(void **state)
{
    store_rig *rig = *state;
    answer a = {0};
    rig->options.busy_ms = 20;
    rig_open(rig);
    rig_set(rig, "k", "v");
    sqlite3 *other = lock_file(rig);
    assert_int_equal(rig_put(rig, &a, "k", "w", STORE_ANY, 0), BAY_ERR_TIMEOUT);
    assert_int_equal(a.count, 0);
    assert_int_equal(ask(rig, &a, get, T, STR("k")), BAY_OK); /* reading goes on */
    assert_true(answer_is(&a, "k=v "));
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(rig_put(rig, &a, "k", "w", STORE_ANY, 0), BAY_OK);
    rig_close(rig);
    rig_remove_file(rig);
    sqlite3_close(other);
    /* Opening waits as long. */
    assert_int_equal(sqlite3_open(rig->path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    refused(rig, BAY_ERR_TIMEOUT, "locked");
    sqlite3_close(other);
    answer_clear(&a);
}

static void closing_does_not_wait_for_a_lock(void **state)
{
    store_rig *rig = *state;
    rig->options.busy_ms = 24 * 3600000;
    rig_open(rig);
    sqlite3 *other = lock_file(rig);
    answer a[3] = {0};
    store_put_request put = {.table = T, .key = STR("k"), .expected = STORE_ANY};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(store_put(rig->store, &put, on_answer, &a[i]), BAY_OK);
        loop_turn(rig->loop, 20);
    }
    rig_close(rig);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(a[i].calls, 1);
        assert_int_equal(a[i].err, BAY_ERR_CANCELLED);
        answer_clear(&a[i]);
    }
    sqlite3_close(other);
}

/* --- groups ----------------------------------------------------------------------------------- */

/* One operation that the file cannot carry out fails alone, whatever waited with it. */
static void an_operation_fails_alone(void **state)
{
    store_rig *rig = *state;
    rig_open(rig);
    rig_set(rig, "3", "before");
    rig_close(rig);
    outside(rig, "CREATE UNIQUE INDEX no_twins ON cell (value) WHERE space = 1");
    rig_open(rig);
    enum { COUNT = 8 };
    answer a[COUNT] = {0};
    for (int i = 0; i < COUNT; i++) {
        char key = (char)('0' + i);
        store_put_request put = {.table = T,
                                 .key = {&key, 1},
                                 .value = i == 5 ? STR("before") : (bay_str){&key, 1},
                                 .expected = i == 3 ? STORE_ABSENT : STORE_ANY};
        assert_int_equal(store_put(rig->store, &put, on_answer, &a[i]), BAY_OK);
    }
    rig_turn_until(rig, a[COUNT - 1].calls == 1);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(a[i].calls, 1);
        assert_int_equal(a[i].err, i == 5 ? BAY_ERR_IO : i == 3 ? BAY_ERR_DUPLICATE : BAY_OK);
        answer_clear(&a[i]);
    }
    assert_int_equal(ask(rig, &a[0], scan, T, STR(""), STR(""), 100), BAY_OK);
    assert_true(answer_is(&a[0], "0=0 1=1 2=2 3=before 4=4 6=6 7=7 "));
    assert_int_equal(a[0].held_rows, 7);
    rig_close(rig);
    check_totals(rig);
    answer_clear(&a[0]);
}

/* More than the thread holds for the loop at once: it waits, and loses nothing. */
static atomic_int complaints;

static void count_complaint(log_level level, const char *component, const char *text, void *user)
{
    (void)user;
    (void)level;
    (void)component;
    atomic_fetch_add(&complaints, strstr(text, "SQLite: ") == text);
}

/* Each operation fails with an error; the log tells of it once in a while. */
static void a_full_disk_is_not_a_flood_of_lines(void **state)
{
    enum { TRIES = 20, VALUE = 100000 };
    store_rig *rig = *state;
    struct rlimit before;
    static char value[VALUE + 1];
    answer a = {0};
    memset(value, 'v', VALUE);
    rig_open(rig);
    rig_set(rig, "k", "v");
    atomic_store(&complaints, 0);
    log_set_sink(LOG_DEBUG, count_complaint, NULL);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    struct rlimit tight = {.rlim_cur = VALUE, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    for (int i = 0; i < TRIES; i++) {
        char key[12];
        snprintf(key, sizeof(key), "%d", i);
        assert_int_not_equal(rig_put(rig, &a, key, value, STORE_ANY, 0), BAY_OK);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, handler);
    log_set_sink(LOG_DEBUG, NULL, NULL);
    assert_int_equal(atomic_load(&complaints), 1);
    rig_set(rig, "again", "v"); /* there is room again */
    answer_clear(&a);
}

static void large_results_come_in_turn(void **state)
{
    store_rig *rig = *state;
    enum { COUNT = 60 };
    static char value[STORE_VALUE_BYTES];
    static answer a[COUNT];
    int order = 0;
    rig_open(rig);
    store_put_request put = {
        .table = T, .key = STR("k"), .value = {value, sizeof(value)}, .expected = STORE_ANY};
    answer_clear(&a[0]);
    assert_int_equal(ask(rig, &a[0], put, &put), BAY_OK);
    answer_clear(&a[0]);
    for (int i = 0; i < COUNT; i++) {
        a[i] = (answer){.order = &order};
        assert_int_equal(store_get(rig->store, T, STR("k"), on_answer, &a[i]), BAY_OK);
    }
    rig_turn_until(rig, order == COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(a[i].err, BAY_OK);
        assert_int_equal(a[i].place, i);
        assert_int_equal(a[i].text.len, sizeof(value) + 3);
        answer_clear(&a[i]);
    }
}

/* How many times a transaction was committed: frames of the log that end one. */
static int commits_in_log(store_rig *rig)
{
    enum { HEAD = 32, FRAME = 24 };
    char path[160];
    unsigned char head[HEAD];
    unsigned char frame[FRAME];
    int count = 0;
    snprintf(path, sizeof(path), "%s-wal", rig->path);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(head, 1, HEAD, file), HEAD);
    long page = (long)head[8] << 24 | (long)head[9] << 16 | (long)head[10] << 8 | head[11];
    while (fread(frame, 1, FRAME, file) == FRAME) {
        count += memcmp(frame + 4, "\0\0\0\0", 4) != 0 && memcmp(frame + 8, head + 16, 8) == 0;
        assert_int_equal(fseek(file, page, SEEK_CUR), 0);
    }
    fclose(file);
    return count;
}

static void what_one_turn_starts_is_one_commit(void **state)
{
    store_rig *rig = *state;
    enum { TURNS = 5, EACH = 20 };
    rig_open(rig);
    rig_set(rig, "first", "1");
    int before = commits_in_log(rig);
    for (int turn = 0; turn < TURNS; turn++) {
        answer a[EACH] = {0};
        for (int i = 0; i < EACH; i++) {
            char key[16];
            snprintf(key, sizeof(key), "%d-%d", turn, i);
            store_put_request put = {.table = T,
                                     .key = str_of(key),
                                     .value = STR("v"),
                                     .expected = STORE_ANY,
                                     .is_relaxed = i % 2 == 0};
            assert_int_equal(store_put(rig->store, &put, on_answer, &a[i]), BAY_OK);
        }
        rig_turn_until(rig, a[EACH - 1].calls == 1);
        for (int i = 0; i < EACH; i++) {
            answer_clear(&a[i]);
        }
    }
    assert_int_equal(commits_in_log(rig) - before, TURNS);
    rig_close(rig);
}

static void many_changes_at_once_are_all_there(void **state)
{
    store_rig *rig = *state;
    enum { COUNT = 2000 };
    static answer a[COUNT];
    rig_open(rig);
    for (int i = 0; i < COUNT; i++) {
        char key[8];
        snprintf(key, sizeof(key), "%04d", i);
        store_put_request put = {.table = T, .key = {key, 4}, .value = {key, 4}};
        assert_int_equal(store_put(rig->store, &put, on_answer, &a[i]), BAY_OK);
    }
    rig_turn_until(rig, a[COUNT - 1].calls == 1);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(a[i].calls, 1);
        assert_int_equal(a[i].err, BAY_OK);
        assert_int_equal(a[i].version, i + 1);
        answer_clear(&a[i]);
    }
    rig_reopen(rig);
    answer last = {0};
    assert_int_equal(ask(rig, &last, scan, T, STR("1"), STR(""), 1000), BAY_OK);
    assert_int_equal(last.count, 1000);
    assert_false(last.has_more);
    assert_int_equal(last.held_rows, COUNT);
    answer_clear(&last);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(what_is_no_path_is_refused),
        CASE(what_is_no_database_is_refused_and_left_alone),
        CASE(the_database_of_another_program_is_refused_and_left_alone),
        CASE(a_newer_schema_is_refused_and_left_alone),
        CASE(a_database_without_its_tables_is_refused),
        CASE(a_damaged_file_is_an_error_at_worst),
        CASE(a_new_file_and_its_log_are_the_owners_alone),
        CASE(everything_is_there_after_opening_again),
        CASE(what_was_confirmed_survives_a_kill),
        CASE(processes_share_a_file_that_none_has_made_yet),
        CASE(two_stores_on_one_file_see_each_other),
        CASE(a_file_locked_for_too_long_is_a_time_out),
        CASE(closing_does_not_wait_for_a_lock),
        CASE(an_operation_fails_alone),
        CASE(a_full_disk_is_not_a_flood_of_lines),
        CASE(large_results_come_in_turn),
        CASE(what_one_turn_starts_is_one_commit),
        CASE(many_changes_at_once_are_all_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

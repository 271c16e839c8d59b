/* Lines over every kind of descriptor our own stdin and stdout may be. */
#include "support/net_test.h"

#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/line_stream.h"
#include "net/reply_room.h"
#include "support/failing_memory.h"

typedef struct lines {
    loop *loop;
    line_reader *reader;
    buf text; /* every line, each followed by '|' */
    size_t last_len;
    int count;
    int ends;
    int overflows;
    int late;
    size_t overflow_bytes;
    bay_err end_reason;
    bool pauses;
    bool frees;
} lines;

static void on_line(void *user, bay_str line)
{
    lines *self = user;
    self->count++;
    self->late += self->ends;
    self->last_len = line.len;
    buf_str(&self->text, line);
    buf_char(&self->text, '|');
    if (self->pauses) {
        line_reader_pause(self->reader);
    }
    if (self->frees) {
        line_reader_free(self->reader);
        self->reader = NULL;
    }
}

static void on_overflow(void *user, size_t line_bytes)
{
    lines *self = user;
    self->overflows++;
    self->overflow_bytes = line_bytes;
}

static void on_end(void *user, bay_err err)
{
    lines *self = user;
    self->ends++;
    self->end_reason = err;
}

/* '<' before what is a piece, '>' behind the last one. */
static void on_piece(void *user, bay_str piece, bool is_last)
{
    lines *self = user;
    buf_char(&self->text, '<');
    buf_str(&self->text, piece);
    buf_str(&self->text, is_last ? STR(">") : STR(""));
}

static const line_reader_events events = {.line = on_line, .overflow = on_overflow, .end = on_end};
static const line_reader_events pieces = {.line = on_line, .piece = on_piece, .end = on_end};

static void lines_open(lines *self, int fd, const line_reader_options *options,
                       const line_reader_events *with)
{
    *self = (lines){.loop = test_loop()};
    buf_init(&self->text, (size_t)64 << 20);
    assert_int_equal(line_reader_new(self->loop, fd, options, with, self, &self->reader), BAY_OK);
    line_reader_resume(self->reader);
    assert_int_equal(self->count, 0);
}

static void lines_init(lines *self, int fd, size_t line_bytes, bool cuts)
{
    line_reader_options options = {.line_bytes = line_bytes, .cuts_overlong = cuts};
    lines_open(self, fd, &options, &events);
}

static void lines_fini(lines *self)
{
    assert_int_equal(self->late, 0);
    line_reader_free(self->reader);
    loop_free(self->loop);
    buf_fini(&self->text);
}

static void expect(lines *self, const char *text)
{
    assert_int_equal(self->text.len, strlen(text));
    assert_memory_equal(self->text.at, text, self->text.len);
}

static void pipe_ends(int ends[2])
{
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
}

static void put(int fd, const char *text)
{
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* --- reading ---------------------------------------------------------------------------------- */

static void a_closed_descriptor_is_an_error(void **state)
{
    (void)state;
    loop *on = test_loop();
    int ends[2];
    pipe_ends(ends);
    close(ends[0]);
    close(ends[1]);
    line_reader *reader = NULL;
    line_writer *writer = NULL;
    static const line_writer_events none;
    assert_int_equal(line_reader_new(on, ends[0], NULL, &events, NULL, &reader), BAY_ERR_IO);
    assert_int_equal(line_writer_new(on, ends[1], 0, 0, &none, NULL, &writer), BAY_ERR_IO);
    assert_null(reader);
    assert_null(writer);
    loop_free(on);
}

static void a_line_above_the_bound_ends_the_stream(void **state)
{
    (void)state;
    int ends[2];
    static const char *const inputs[] = {"ok\n12345678\r\n123456789\nmore\n",
                                         "ok\n12345678\n123456789a"};
    for (size_t i = 0; i < 2; i++) {
        pipe_ends(ends);
        lines self;
        lines_init(&self, ends[0], 8, false);
        put(ends[1], inputs[i]);
        turn_until(self.loop, self.ends == 1);
        assert_int_equal(self.end_reason, BAY_ERR_LIMIT);
        assert_int_equal(self.overflows, 1);
        assert_true(self.overflow_bytes > 8);
        expect(&self, "ok|12345678|");
        close(ends[1]);
        lines_fini(&self);
    }
}

static void an_overlong_line_comes_in_pieces_where_that_is_wanted(void **state)
{
    (void)state;
    static const line_reader_options options = {.line_bytes = 4};
    int ends[2];
    pipe_ends(ends);
    lines self;
    lines_open(&self, ends[0], &options, &pieces);
    put(ends[1], "ab\n1234\r\n12345\r\n123456");
    turn_until(self.loop, self.text.len >= 22);
    expect(&self, "ab|1234|<12345><123456");
    put(ends[1], "789\n\nabcde\nlast");
    close(ends[1]);
    turn_until(self.loop, self.ends == 1);
    expect(&self, "ab|1234|<12345><123456<789>|<abcde>last|");
    assert_int_equal(self.end_reason, BAY_ERR_EOF);
    assert_int_equal(self.overflows, 0);
    lines_fini(&self);
}

/* Also while it is paused in the middle of one. */
static void pieces_wait_while_it_is_paused(void **state)
{
    (void)state;
    static const line_reader_options options = {.line_bytes = 4};
    int ends[2];
    pipe_ends(ends);
    lines self;
    lines_open(&self, ends[0], &options, &pieces);
    self.pauses = true;
    put(ends[1], "a\n123456\nb\n");
    close(ends[1]);
    turn_until(self.loop, self.count == 1);
    expect(&self, "a|");
    line_reader_resume(self.reader);
    turn_until(self.loop, self.count == 2);
    expect(&self, "a|<123456>b|");
    line_reader_resume(self.reader);
    turn_until(self.loop, self.ends == 1);
    lines_fini(&self);
}

static void an_overlong_line_is_cut_where_that_is_wanted(void **state)
{
    (void)state;
    int ends[2];
    pipe_ends(ends);
    lines self;
    lines_init(&self, ends[0], 4, true);
    put(ends[1], "123456");
    turn_until(self.loop, self.count == 1);
    put(ends[1], "7890");
    loop_turn(self.loop, 0);
    put(ends[1], "x\nabcdef\nab\n1234567");
    close(ends[1]);
    turn_until(self.loop, self.ends == 1);
    expect(&self, "1234|abcd|ab|1234|");
    assert_int_equal(self.overflows, 0);
    lines_fini(&self);
}

static void every_split_gives_the_same_lines(void **state)
{
    (void)state;
    static const char input[] = "one\r\n\ntwo\n\r\nth\rree\nlast";
    for (size_t split = 0; split < sizeof(input); split++) {
        int ends[2];
        pipe_ends(ends);
        lines self;
        lines_init(&self, ends[0], 6, false);
        assert_int_equal(write(ends[1], input, split), (ssize_t)split);
        loop_turn(self.loop, 0);
        loop_turn(self.loop, 0);
        put(ends[1], input + split);
        close(ends[1]);
        turn_until(self.loop, self.ends == 1);
        assert_int_equal(self.end_reason, BAY_ERR_EOF);
        expect(&self, "one||two||th\rree|last|");
        lines_fini(&self);
    }
}

static void pausing_in_a_line_keeps_the_rest_for_later(void **state)
{
    (void)state;
    int ends[2];
    pipe_ends(ends);
    lines self;
    lines_init(&self, ends[0], 100, false);
    self.pauses = true;
    put(ends[1], "1\n2\n3\n4");
    close(ends[1]);
    for (int i = 1; i <= 4; i++) {
        turn_until(self.loop, self.count == i);
        for (int turn = 0; turn < 3; turn++) {
            loop_turn(self.loop, 0);
        }
        assert_int_equal(self.count, i);
        assert_int_equal(self.ends, 0);
        line_reader_resume(self.reader);
        assert_int_equal(self.count, i);
    }
    turn_until(self.loop, self.ends == 1);
    expect(&self, "1|2|3|4|");
    lines_fini(&self);
}

static void freeing_in_a_line_is_the_last_event(void **state)
{
    (void)state;
    int ends[2];
    pipe_ends(ends);
    lines self;
    lines_init(&self, ends[0], 100, false);
    self.frees = true;
    put(ends[1], "1\n2\n3\n");
    turn_until(self.loop, self.count == 1);
    loop_turn(self.loop, 0);
    assert_int_equal(self.count, 1);
    assert_int_equal(self.ends, 0);
    close(ends[1]);
    lines_fini(&self);
}

static void put_large_file(int fd, size_t line_bytes, int count)
{
    char *line = mem_alloc(line_bytes + 1);
    memset(line, 'x', line_bytes);
    line[line_bytes] = '\n';
    for (int i = 0; i < count; i++) {
        assert_int_equal(write(fd, line, line_bytes + 1), (ssize_t)line_bytes + 1);
    }
    mem_free(line);
}

static void a_regular_file_is_read_to_its_end(void **state)
{
    (void)state;
    char path[] = "/tmp/patchbay-lines-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    put_large_file(fd, 100000, 20);
    put(fd, "the end");
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    lines self;
    lines_init(&self, fd, 200000, false);
    self.pauses = true;
    while (self.ends == 0) {
        int before = self.count;
        turn_until(self.loop, self.count > before || self.ends == 1);
        line_reader_resume(self.reader);
    }
    assert_int_equal(self.count, 21);
    assert_int_equal(self.last_len, 7);
    lines_fini(&self);
    unlink(path);
}

static void a_file_may_be_freed_while_it_is_read(void **state)
{
    (void)state;
    int before = open_descriptors();
    lines self;
    lines_init(&self, open("/dev/null", O_RDONLY | O_CLOEXEC), 10, false);
    loop_turn(self.loop, 0);
    lines_fini(&self);
    assert_true(open_descriptors() <= before + 1);
}

static void a_socket_and_a_terminal_are_read_too(void **state)
{
    (void)state;
    int ends[2];
    lines self;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    lines_init(&self, ends[0], 100, false);
    put(ends[1], "by socket\n");
    close(ends[1]);
    turn_until(self.loop, self.ends == 1);
    expect(&self, "by socket|");
    lines_fini(&self);

    int master = -1;
    int terminal = -1;
    assert_int_equal(openpty(&master, &terminal, NULL, NULL, NULL), 0);
    lines_init(&self, terminal, 100, false);
    put(master, "by hand\n");
    turn_until(self.loop, self.count == 1);
    expect(&self, "by hand|");
    lines_fini(&self);
    close(master);
}

static void a_long_line_arrives_whole_from_many_reads(void **state)
{
    (void)state;
    int ends[2];
    pipe_ends(ends);
    lines self;
    lines_init(&self, ends[0], 1 << 20, false);
    char block[4096];
    memset(block, 'y', sizeof(block));
    for (int i = 0; i < 256; i++) {
        assert_int_equal(write(ends[1], block, sizeof(block)), sizeof(block));
        loop_turn(self.loop, 0);
    }
    put(ends[1], "\nshort\n");
    close(ends[1]);
    turn_until(self.loop, self.ends == 1);
    assert_int_equal(self.count, 2);
    assert_int_equal(self.text.len, (1 << 20) + 1 + 6);
    lines_fini(&self);
}

/* As much of a line as the pipe takes. */
static void pour(int fd, size_t *left)
{
    static char piece[64 * 1024];
    memset(piece, 'p', sizeof(piece));
    while (*left > 0) {
        size_t len = *left < sizeof(piece) ? *left : sizeof(piece);
        piece[len - 1] = *left == len ? '\n' : 'p';
        ssize_t put = write(fd, piece, len);
        piece[len - 1] = 'p';
        if (put < 0) {
            return;
        }
        *left -= (size_t)put;
    }
}

/* Large lines of several pipes, and no room for all of them: they wait in their pipes, and all
 * arrive. A pause, or the end of a reader, leaves nothing in the account. */
static void large_lines_wait_in_their_pipes(void **state)
{
    (void)state;
    enum { PIPES = 5, LINE = 4 << 20, MOST = 6 << 20 };
    loop *on = test_loop();
    lines all[PIPES];
    int fds[PIPES];
    size_t left[PIPES];
    for (size_t i = 0; i < PIPES; i++) {
        int ends[2];
        pipe_ends(ends);
        assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
        fds[i] = ends[1];
        left[i] = LINE;
        all[i] = (lines){.loop = on};
        buf_init(&all[i].text, (size_t)64 << 20);
        line_reader_options options = {.line_bytes = 2 * LINE, .reply_bytes = MOST};
        assert_int_equal(line_reader_new(on, ends[0], &options, &events, &all[i], &all[i].reader),
                         BAY_OK);
        line_reader_resume(all[i].reader);
    }
    size_t most = 0;
    for (int arrived = 0; arrived < PIPES - 1;) {
        arrived = 0;
        for (size_t i = 0; i < PIPES; i++) {
            pour(fds[i], &left[i]);
            arrived += all[i].count;
            if (i == 1 && all[1].count == 0) {
                line_reader_pause(all[1].reader);
                line_reader_resume(all[1].reader);
            }
        }
        if (all[0].reader != NULL && reply_account_bytes() > MOST - (256 << 10)) {
            line_reader_free(all[0].reader);
            all[0].reader = NULL;
        }
        (void)loop_turn(on, 0);
        most = reply_account_bytes() > most ? reply_account_bytes() : most;
    }
    assert_in_range(most, MOST - (512 << 10), MOST + LINE);
    assert_int_equal(reply_account_bytes(), 0);
    for (size_t i = 0; i < PIPES; i++) {
        assert_int_equal(all[i].last_len, i == 0 ? 0 : LINE - 1);
        line_reader_free(all[i].reader);
        buf_fini(&all[i].text);
        close(fds[i]);
    }
    loop_free(on);
}

/* --- writing ---------------------------------------------------------------------------------- */

typedef struct writing {
    loop *loop;
    line_writer *writer;
    int drained;
    int closed;
} writing;

static void on_drained(void *user)
{
    ((writing *)user)->drained++;
}

static void on_closed(void *user, bay_err err)
{
    assert_int_not_equal(err, BAY_OK);
    ((writing *)user)->closed++;
}

static const line_writer_events writer_events = {.drained = on_drained, .closed = on_closed};

static void writing_init(writing *self, int fd, size_t high_bytes, size_t max_bytes)
{
    *self = (writing){.loop = test_loop()};
    assert_int_equal(
        line_writer_new(self->loop, fd, high_bytes, max_bytes, &writer_events, self, &self->writer),
        BAY_OK);
}

static void a_reader_that_is_gone_is_told_once(void **state)
{
    (void)state;
    int ends[2];
    pipe_ends(ends);
    writing self;
    writing_init(&self, ends[1], 0, 0);
    close(ends[0]);
    /* a short line leaves at the end of the turn: only then it shows that nobody reads */
    assert_int_equal(line_writer_write(self.writer, STR("x")), BAY_OK);
    assert_int_equal(self.closed, 0);
    turn_until(self.loop, self.closed == 1);
    assert_int_equal(line_writer_write(self.writer, STR("x")), BAY_ERR_CLOSED);
    line_writer_close(self.writer, 0);
    loop_free(self.loop);
    assert_int_equal(self.closed, 1);
}

/* What the kernel has may be read: such a line is not said to have stayed here, although the rest
 * of it finds no memory. */
static void a_line_that_left_in_part_is_taken(void **state)
{
    (void)state;
    int ends[2];
    size_t len = (size_t)1 << 20;
    char *line = malloc(len);
    memset(line, 'x', len);
    pipe_ends(ends);
    writing self;
    writing_init(&self, ends[1], 0, 0);
    assert_true(failing_memory_start(0));
    bay_err err = line_writer_write(self.writer, (bay_str){line, len});
    assert_true(failing_memory.has_failed);
    failing_memory_stop();
    char first;
    assert_int_equal(read(ends[0], &first, 1), 1);
    assert_int_equal(err, BAY_OK);
    assert_int_equal(line_writer_write(self.writer, STR("x")), BAY_ERR_CLOSED);
    turn_until(self.loop, self.closed == 1);
    line_writer_close(self.writer, 0);
    loop_free(self.loop);
    close(ends[0]);
    free(line);
}

/* The same queue is full already: nothing of the next line leaves. */
static void a_line_that_stayed_here_is_not(void **state)
{
    (void)state;
    int ends[2];
    size_t len = (size_t)1 << 20;
    char *line = malloc(len);
    memset(line, 'x', len);
    pipe_ends(ends);
    writing self;
    writing_init(&self, ends[1], 0, 0);
    assert_int_equal(line_writer_write(self.writer, (bay_str){line, len}), BAY_ERR_AGAIN);
    assert_true(failing_memory_start(0));
    bay_err err = line_writer_write(self.writer, (bay_str){line, len});
    assert_true(failing_memory.has_failed);
    failing_memory_stop();
    assert_int_equal(err, BAY_ERR_CLOSED);
    line_writer_free(self.writer);
    loop_free(self.loop);
    close(ends[0]);
    free(line);
}

/* Everything up to `wanted` bytes; a pipe may hold less than that at a time. */
static size_t read_all(writing *self, int fd, char *into, size_t wanted)
{
    size_t len = 0;
    for (int i = 0; i < 100000 && len < wanted; i++) {
        ssize_t got = read(fd, into + len, wanted - len);
        len += got > 0 ? (size_t)got : 0;
        if (got <= 0) {
            loop_turn(self->loop, 1);
        }
    }
    return len;
}

/* Short lines of one turn leave together and in order, before a long one that follows them. */
static void lines_of_a_turn_leave_in_order(void **state)
{
    (void)state;
    int ends[2];
    pipe_ends(ends);
    writing self;
    writing_init(&self, ends[1], 0, 0);
    char got[100000] = {0};
    char line[40000];
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    memset(line, 'z', sizeof(line));
    assert_int_equal(line_writer_write(self.writer, STR("first")), BAY_OK);
    assert_int_equal(line_writer_write(self.writer, STR("second")), BAY_OK);
    assert_int_equal(line_writer_queued_bytes(self.writer), 13);
    assert_true(read(ends[0], got, sizeof(got)) < 0); /* nothing yet */
    assert_int_equal(line_writer_write(self.writer, (bay_str){line, sizeof(line)}), BAY_OK);
    size_t wanted = 13 + sizeof(line) + 1;
    assert_int_equal(read_all(&self, ends[0], got, wanted), wanted);
    assert_memory_equal(got, "first\nsecond\nzz", 15);
    assert_int_equal(line_writer_write(self.writer, STR("third")), BAY_OK);
    turn_until(self.loop, line_writer_queued_bytes(self.writer) == 0);
    assert_int_equal(read_all(&self, ends[0], got, 6), 6);
    assert_memory_equal(got, "third\n", 6);
    assert_int_equal(line_writer_write(self.writer, STR("last")), BAY_OK);
    line_writer_close(self.writer, 0); /* what was taken is written all the same */
    assert_int_equal(read_all(&self, ends[0], got, 5), 5);
    loop_free(self.loop);
    close(ends[0]);
}

static void a_slow_reader_is_waited_for_within_the_bound(void **state)
{
    (void)state;
    int ends[2];
    pipe_ends(ends);
    writing self;
    writing_init(&self, ends[1], 10000, 300000);
    char line[10000];
    memset(line, 'z', sizeof(line));
    size_t sent = 0;
    bay_err err = BAY_OK;
    bool was_asked_to_stop = false;
    for (int i = 0; i < 100; i++) {
        err = line_writer_write(self.writer, (bay_str){line, sizeof(line)});
        was_asked_to_stop |= err == BAY_ERR_AGAIN;
        if (err == BAY_ERR_LIMIT) {
            break;
        }
        sent += sizeof(line) + 1;
    }
    assert_int_equal(err, BAY_ERR_LIMIT);
    assert_true(was_asked_to_stop);
    assert_true(line_writer_queued_bytes(self.writer) <= 300000);
    assert_int_equal(self.drained, 0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    size_t got = 0;
    char sink[8192];
    for (int i = 0; i < NET_TEST_TURNS && (self.drained == 0 || got < sent); i++) {
        ssize_t count = read(ends[0], sink, sizeof(sink));
        got += count > 0 ? (size_t)count : 0;
        loop_turn(self.loop, 0);
    }
    assert_int_equal(got, sent);
    assert_int_equal(self.drained, 1);
    line_writer_close(self.writer, 0);
    loop_free(self.loop);
    close(ends[0]);
}

static void close_flushes_and_gives_up_on_a_reader_that_never_reads(void **state)
{
    (void)state;
    int ends[2];
    pipe_ends(ends);
    writing self;
    writing_init(&self, ends[1], 1000, 1 << 20);
    char line[200000];
    memset(line, 'z', sizeof(line));
    assert_int_equal(line_writer_write(self.writer, (bay_str){line, sizeof(line)}), BAY_ERR_AGAIN);
    line_writer_close(self.writer, 5);
    loop_run(self.loop); /* returns: the writer gave up */
    loop_free(self.loop);
    close(ends[0]);
    assert_int_equal(self.closed + self.drained, 0);

    pipe_ends(ends);
    writing_init(&self, ends[1], 1000, 1 << 20);
    assert_int_equal(line_writer_write(self.writer, (bay_str){line, sizeof(line)}), BAY_ERR_AGAIN);
    line_writer_close(self.writer, 60000);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    size_t got = 0;
    for (int i = 0; i < NET_TEST_TURNS && got < sizeof(line) + 1; i++) {
        ssize_t count = read(ends[0], line, 5000);
        got += count > 0 ? (size_t)count : 0;
        loop_turn(self.loop, 0);
    }
    assert_int_equal(got, sizeof(line) + 1);
    loop_free(self.loop);
    close(ends[0]);
}

static void lines_go_to_a_file(void **state)
{
    (void)state;
    char path[] = "/tmp/patchbay-lines-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    int reading = open(path, O_RDONLY | O_CLOEXEC);
    writing self;
    writing_init(&self, fd, 0, 0);
    assert_int_equal(line_writer_write(self.writer, STR("one")), BAY_OK);
    assert_int_equal(line_writer_write(self.writer, STR("")), BAY_OK);
    line_writer_close(self.writer, 0);
    loop_free(self.loop);
    char got[16];
    assert_int_equal(read(reading, got, sizeof(got)), 5);
    assert_memory_equal(got, "one\n\n", 5);
    close(reading);
    unlink(path);
}

static void the_standard_descriptors_are_left_as_they_were(void **state)
{
    (void)state;
    int ends[2];
    pipe_ends(ends);
    int saved = dup(STDIN_FILENO);
    assert_true(dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
    int before = fcntl(STDIN_FILENO, F_GETFL);
    lines self;
    lines_init(&self, STDIN_FILENO, 10, false);
    assert_int_not_equal(fcntl(STDIN_FILENO, F_GETFL), before);
    lines_fini(&self);
    assert_int_equal(fcntl(STDIN_FILENO, F_GETFL), before);
    if (saved >= 0) {
        dup2(saved, STDIN_FILENO);
        close(saved);
    }
    close(ends[0]);
    close(ends[1]);
}

static void no_descriptor_is_left_behind(void **state)
{
    (void)state;
    int before = open_descriptors();
    int ends[2];
    pipe_ends(ends);
    lines self;
    lines_init(&self, ends[0], 10, false);
    writing other;
    writing_init(&other, ends[1], 0, 0);
    loop_free(other.loop);
    lines_fini(&self);
    assert_int_equal(open_descriptors(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_closed_descriptor_is_an_error),
        cmocka_unit_test(a_line_above_the_bound_ends_the_stream),
        cmocka_unit_test(an_overlong_line_comes_in_pieces_where_that_is_wanted),
        cmocka_unit_test(pieces_wait_while_it_is_paused),
        cmocka_unit_test(an_overlong_line_is_cut_where_that_is_wanted),
        cmocka_unit_test(every_split_gives_the_same_lines),
        cmocka_unit_test(pausing_in_a_line_keeps_the_rest_for_later),
        cmocka_unit_test(freeing_in_a_line_is_the_last_event),
        cmocka_unit_test(a_regular_file_is_read_to_its_end),
        cmocka_unit_test(a_file_may_be_freed_while_it_is_read),
        cmocka_unit_test(a_socket_and_a_terminal_are_read_too),
        cmocka_unit_test(a_long_line_arrives_whole_from_many_reads),
        cmocka_unit_test(large_lines_wait_in_their_pipes),
        cmocka_unit_test(a_reader_that_is_gone_is_told_once),
        cmocka_unit_test(a_line_that_left_in_part_is_taken),
        cmocka_unit_test(a_line_that_stayed_here_is_not),
        cmocka_unit_test(lines_of_a_turn_leave_in_order),
        cmocka_unit_test(a_slow_reader_is_waited_for_within_the_bound),
        cmocka_unit_test(close_flushes_and_gives_up_on_a_reader_that_never_reads),
        cmocka_unit_test(lines_go_to_a_file),
        cmocka_unit_test(the_standard_descriptors_are_left_as_they_were),
        cmocka_unit_test(no_descriptor_is_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

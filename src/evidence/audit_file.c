#include "evidence/audit_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "evidence/audit_parts.h"
#include "evidence/record.h"

enum { OUT_BYTES = 24 << 20, MEMBERS_BYTES = 512 };

struct audit_file {
    audit_file_options options;
    char path[AUDIT_PATH_BYTES];
    char replica[RECORD_ID_BYTES];
    int descriptor; /* -1: it could not be opened anew */
    audit_chain chain;
    buf out;            /* sealed lines that are not written yet */
    uint64_t first_seq; /* of the part */
    uint64_t bytes;     /* of the part */
    uint64_t checked_ms;
    uint64_t swept_ms;
    uint64_t lost; /* that no line tells of yet */
    bool is_unsynced;
    record_clock clock;
    log_pace pace;
};

static void tell(audit_file *self, const char *what)
{
    log_write_paced(&self->pace, self->options.wall_ms(), LOG_ERROR, "audit",
                    "%s: %s: %s; what is to be written is kept in memory, and calls may be "
                    "refused: see audit.onFailure",
                    self->path, what, strerror(errno));
}

/* ---- lines ------------------------------------------------------------------------------------ */

static bay_err seal_line(audit_file *self, bay_str members, bool is_opening)
{
    return audit_chain_append(&self->chain, members, is_opening, &self->out);
}

/* A line of the file itself. `why`, `more`: text that needs no escapes. */
static bay_err seal_own(audit_file *self, const char *kind, const char *why, const char *more)
{
    char bytes[MEMBERS_BYTES];
    buf members = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    buf_lit(&members, "\"time\":\"");
    record_put_time(&self->clock, self->options.wall_ms(), &members);
    buf_printf(&members, "\",\"kind\":\"%s\",\"why\":\"%s\",\"replica\":\"%s\"%s", kind, why,
               self->replica, more);
    return members.err == BAY_OK ? seal_line(self, buf_view(&members), strcmp(kind, "open") == 0)
                                 : members.err;
}

static bay_err seal_opening(audit_file *self, const char *why, uint64_t torn_bytes)
{
    char more[96];
    (void)snprintf(more, sizeof(more), ",\"version\":\"%.24s\",\"tornBytes\":%" PRIu64,
                   bay_version(), torn_bytes);
    return seal_own(self, "open", why, more);
}

/* Writes what is sealed. False: not all of it. */
static bool write_out(audit_file *self)
{
    while (self->out.len > 0) {
        ssize_t sent =
            self->descriptor >= 0 ? write(self->descriptor, self->out.at, self->out.len) : -1;
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent <= 0) {
            tell(self, "cannot be written");
            return false;
        }
        self->bytes += (uint64_t)sent;
        self->is_unsynced = true;
        buf_consume(&self->out, (size_t)sent);
    }
    return true;
}

/* ---- opening ---------------------------------------------------------------------------------- */

/* What stands at the end of a file that is there. */
typedef struct file_end {
    uint64_t bytes;
    uint64_t torn_bytes; /* behind its last whole line */
    bool has_line;
    bool is_closed; /* the last line says that the gateway ended */
    bool is_begun;  /* no line, but how the first one begins */
    bay_str line;   /* the last whole one */
} file_end;

static bool is_closing(bay_str line)
{
    static const bay_str mark = STR_INIT(",\"kind\":\"close\",\"why\":\"end\",");
    for (size_t at = 0; at < 128 && at + mark.len <= line.len; at++) {
        if (str_starts(str_from(line, at), mark)) {
            return true;
        }
    }
    return false;
}

/* `room`: of 2 * AUDIT_LINE_BYTES. */
static bay_err read_end(int descriptor, char *room, file_end *out)
{
    struct stat about;
    if (fstat(descriptor, &about) != 0) {
        return BAY_ERR_IO;
    }
    size_t most = 2 * (size_t)AUDIT_LINE_BYTES;
    size_t want = (uint64_t)about.st_size < most ? (size_t)about.st_size : most;
    ssize_t got = pread(descriptor, room, want, about.st_size - (off_t)want);
    if (got != (ssize_t)want) {
        return BAY_ERR_IO;
    }
    *out = (file_end){.bytes = (uint64_t)about.st_size};
    bay_str text = {room, want};
    size_t end = str_find_last(text, '\n');
    out->torn_bytes = end == text.len ? text.len : text.len - end - 1;
    if (end < text.len) {
        size_t begin = str_find_last(str_head(text, end), '\n');
        begin = begin == end ? 0 : begin + 1;
        out->line = (bay_str){room + begin, end - begin};
        out->has_line = true;
        out->is_closed = is_closing(out->line);
    }
    out->is_begun = !out->has_line && str_starts(STR("{\"seq\":"), str_head(text, 7));
    return BAY_OK;
}

static bool lock_file(int descriptor)
{
    return flock(descriptor, LOCK_EX | LOCK_NB) == 0;
}

static int open_path(const audit_file *self)
{
    return open(self->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* The file gets the name of a part, and never that of another one: a number that a torn first line
 * says may be taken. The number of the last line is above those of all parts before. */
static bool put_aside(audit_file *self)
{
    char part[AUDIT_PATH_BYTES];
    bool is_named = audit_part_name(self->path, self->first_seq, part);
    if (is_named && access(part, F_OK) == 0) {
        is_named = audit_part_name(self->path, self->chain.seq, part) && access(part, F_OK) != 0;
        errno = EEXIST;
    }
    return is_named && rename(self->path, part) == 0;
}

/* The number of the first line of a file that is there; 0: it has none. */
static uint64_t first_seq_of(int descriptor)
{
    char text[64];
    ssize_t got = pread(descriptor, text, sizeof(text), 0);
    uint64_t seq = 0;
    bay_str line = {text, got > 0 ? (size_t)got : 0};
    bay_str rest = str_from(line, STR("{\"seq\":").len);
    bool is_good =
        str_starts(line, STR("{\"seq\":")) && str_uint(str_head(rest, str_find(rest, ',')), &seq);
    return is_good ? seq : 0;
}

static bay_err refuse_foreign(const char *path, bay_diag *diag)
{
    return diag_set(diag, BAY_ERR_SYNTAX,
                    "%s: its last line is none of an audit: move the file away", path);
}

/* What is no whole line stays, as a line that the next one tells of. */
static void end_torn_line(audit_file *self, uint64_t torn_bytes)
{
    if (torn_bytes > 0) {
        buf_char(&self->out, '\n');
    }
}

static void warn_of_crash(const audit_file *self)
{
    LOG(LOG_WARN, "audit",
        "%s: the gateway before this one was not ended in order: records of its last moments may "
        "be missing",
        self->path);
}

/* There is no file, or none with a whole line. If there are parts, the gateway before this one was killed
 * between the end of one and the begin of the next, or somebody took the file away. `room`: as
 * read_end. */
static bay_err begin_file(audit_file *self, uint64_t torn_bytes, char *room, bay_diag *diag)
{
    audit_parts parts;
    char name[AUDIT_PATH_BYTES];
    file_end end;
    end_torn_line(self, torn_bytes);
    bay_err err = audit_parts_list(self->path, &parts);
    if (err != BAY_OK) {
        return diag_set(diag, err, "%s: its folder cannot be read", self->path);
    }
    bool has_part = parts.count > 0 && audit_part_name(self->path, parts.at[parts.count - 1], name);
    audit_parts_free(&parts);
    if (!has_part) {
        self->first_seq = 1;
        return seal_opening(self, torn_bytes > 0 ? "crash" : "new", torn_bytes);
    }
    int part = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    err = part >= 0 ? read_end(part, room, &end) : BAY_ERR_IO;
    if (part >= 0) {
        close(part);
    }
    if (err != BAY_OK) {
        return diag_set(diag, err, "%s: cannot be read: %s", name, strerror(errno));
    }
    if (!end.has_line || end.torn_bytes > 0 || !audit_chain_read(end.line, &self->chain)) {
        return refuse_foreign(name, diag);
    }
    self->first_seq = self->chain.seq + 1;
    warn_of_crash(self);
    return seal_opening(self, "crash", torn_bytes);
}

/* Goes on with a file that was found. */
static bay_err go_on(audit_file *self, const file_end *end, bay_diag *diag)
{
    if (!end->has_line || !audit_chain_read(end->line, &self->chain)) {
        return refuse_foreign(self->path, diag);
    }
    self->first_seq = first_seq_of(self->descriptor);
    if (self->first_seq == 0) { /* its first line is torn: any number of its own keeps the order */
        self->first_seq = self->chain.seq;
    }
    self->bytes = end->bytes;
    end_torn_line(self, end->torn_bytes);
    if (!end->is_closed) {
        warn_of_crash(self);
    }
    return seal_opening(self, end->is_closed && end->torn_bytes == 0 ? "start" : "crash",
                        end->torn_bytes);
}

static bay_err open_first(audit_file *self, bay_diag *diag)
{
    file_end end;
    self->descriptor = open_path(self);
    if (self->descriptor < 0) {
        return diag_set(diag, BAY_ERR_IO, "%s: cannot be opened: %s", self->path, strerror(errno));
    }
    if (!lock_file(self->descriptor)) {
        return diag_set(diag, BAY_ERR_DENIED,
                        "%s: another gateway writes to it: give each its own audit.file",
                        self->path);
    }
    char *room = mem_alloc(2 * (size_t)AUDIT_LINE_BYTES);
    if (room == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    bay_err err = read_end(self->descriptor, room, &end);
    if (err != BAY_OK) {
        err = diag_set(diag, err, "%s: cannot be read: %s", self->path, strerror(errno));
    } else {
        err = end.bytes == 0 || end.is_begun ? begin_file(self, end.torn_bytes, room, diag)
                                             : go_on(self, &end, diag);
    }
    mem_free(room);
    if (err == BAY_OK && !write_out(self)) {
        return diag_set(diag, BAY_ERR_IO, "%s: cannot be written: %s", self->path, strerror(errno));
    }
    return err;
}

bay_err audit_file_open(const audit_file_options *options, audit_file **out, bay_diag *diag)
{
    audit_file *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    self->options = *options;
    self->descriptor = -1;
    buf_init(&self->out, OUT_BYTES);
    (void)snprintf(self->replica, sizeof(self->replica), "%.*s", BAY_STR(options->replica));
    int len = snprintf(self->path, sizeof(self->path), "%s", options->path);
    bay_err err = len > 0 && len < AUDIT_PATH_BYTES - AUDIT_SEQ_DIGITS - 1
                      ? open_first(self, diag)
                      : diag_set(diag, BAY_ERR_LIMIT, "audit.file: the path is too long");
    if (err != BAY_OK) {
        if (self->descriptor >= 0) {
            close(self->descriptor);
        }
        buf_fini(&self->out);
        mem_free(self);
        return diag->text[0] != '\0' ? err : diag_set(diag, err, "%s", bay_err_text(err));
    }
    *out = self;
    return BAY_OK;
}

/* ---- parts ------------------------------------------------------------------------------------ */

/* From the next line on another file, of the same name. */
static bool begin_part(audit_file *self, const char *why)
{
    int fresh = open_path(self);
    if (fresh < 0 || !lock_file(fresh)) {
        tell(self, "cannot be made anew");
        if (fresh >= 0) {
            close(fresh);
        }
        return false;
    }
    if (self->descriptor >= 0) {
        (void)fdatasync(self->descriptor);
        close(self->descriptor);
    }
    self->descriptor = fresh;
    self->first_seq = self->chain.seq + 1;
    self->bytes = 0;
    return seal_opening(self, why, 0) == BAY_OK;
}

/* Somebody has moved the file away or deleted it. Lines that were sealed before go into the new one:
 * its opening comes behind them. */
static bool check_place(audit_file *self)
{
    struct stat there;
    struct stat ours;
    uint64_t now = self->options.wall_ms();
    if (now >= self->checked_ms && now - self->checked_ms < AUDIT_CHECK_MS) {
        return true;
    }
    self->checked_ms = now;
    bool is_same = self->descriptor >= 0 && lstat(self->path, &there) == 0 &&
                   fstat(self->descriptor, &ours) == 0 && there.st_ino == ours.st_ino &&
                   there.st_dev == ours.st_dev;
    if (is_same || self->out.len > 0) {
        return is_same || write_out(self);
    }
    LOG(LOG_WARN, "audit", "%s was moved or deleted: a new file is begun", self->path);
    return begin_part(self, "moved");
}

static bool end_part(audit_file *self)
{
    if (self->options.part_bytes == 0 || self->bytes < self->options.part_bytes) {
        return true;
    }
    if (seal_own(self, "close", "part", "") != BAY_OK || !write_out(self)) {
        return false;
    }
    if (!put_aside(self)) {
        tell(self, "cannot be renamed");
        return false;
    }
    return begin_part(self, "part");
}

/* Parts whose last change is long ago. */
static void sweep(audit_file *self, uint64_t now)
{
    audit_parts parts;
    if (audit_parts_list(self->path, &parts) != BAY_OK) {
        return; /* next time */
    }
    for (size_t i = 0; i < parts.count; i++) {
        char name[AUDIT_PATH_BYTES];
        struct stat about;
        if (!audit_part_name(self->path, parts.at[i], name) || lstat(name, &about) != 0 ||
            (uint64_t)about.st_mtime * 1000 + self->options.keep_ms > now) {
            continue;
        }
        if (unlink(name) == 0) {
            LOG(LOG_INFO, "audit", "%s is older than audit.keep and was deleted", name);
        } else {
            LOG(LOG_WARN, "audit", "%s is older than audit.keep and cannot be deleted: %s", name,
                strerror(errno));
        }
    }
    audit_parts_free(&parts);
}

/* ---- what the journal calls ------------------------------------------------------------------- */

static bool seal_dropped(audit_file *self, uint64_t dropped)
{
    char more[64];
    (void)snprintf(more, sizeof(more), ",\"count\":%" PRIu64, dropped);
    LOG(LOG_ERROR, "audit",
        "%s: %" PRIu64 " records were lost: they came faster than the disk "
        "takes them",
        self->path, dropped);
    return seal_own(self, "dropped", "full", more) == BAY_OK;
}

bool audit_file_write(audit_file *self, bay_str lines, uint64_t dropped)
{
    bool is_good = check_place(self);
    if (dropped > 0) {
        is_good = seal_dropped(self, dropped) && is_good;
    }
    while (lines.len > 0) {
        size_t end = str_find(lines, '\n');
        if (seal_line(self, str_head(lines, end), false) != BAY_OK) {
            self->out.err = BAY_OK;
            self->lost++;
        }
        lines = str_from(lines, end + 1);
    }
    if (self->lost > 0 && seal_dropped(self, self->lost)) {
        self->lost = 0;
    }
    return is_good && write_out(self) && end_part(self) && write_out(self);
}

void audit_file_tick(audit_file *self)
{
    uint64_t now = self->options.wall_ms();
    if (self->is_unsynced && self->descriptor >= 0) {
        if (fdatasync(self->descriptor) != 0) {
            tell(self, "cannot be brought to the disk");
        }
        self->is_unsynced = false;
    }
    bool is_due = now < self->swept_ms || now - self->swept_ms >= AUDIT_SWEEP_MS;
    if (self->options.keep_ms > 0 && is_due) {
        self->swept_ms = now;
        sweep(self, now);
    }
}

void audit_file_close(audit_file *self)
{
    if (self == NULL) {
        return;
    }
    if (seal_own(self, "close", "end", "") != BAY_OK || !write_out(self)) {
        LOG(LOG_ERROR, "audit", "%s: the last records could not be written", self->path);
    }
    if (self->descriptor >= 0) {
        (void)fdatasync(self->descriptor);
        close(self->descriptor);
    }
    buf_fini(&self->out);
    mem_free(self);
}

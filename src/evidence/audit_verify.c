#include "evidence/audit_verify.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "evidence/audit_parts.h"

enum { MEMORY_BYTES = 4 << 20 };

/* One reading. */
typedef struct reading {
    audit_verdict *verdict;
    bay_str head;
    char *room;          /* of a line: AUDIT_LINE_BYTES */
    arena memory;        /* of a line's index */
    uint64_t torn_bytes; /* of the line before, which is no whole one; 0: it is one */
} reading;

static uint64_t number_of(json_val record, bay_str name)
{
    uint64_t number = 0;
    return json_uint64(json_get(record, name), &number) == BAY_OK ? number : 0;
}

/* A line that is one of the chain. */
static bay_err take_line(reading *self, bay_str line, uint64_t torn_bytes)
{
    audit_verdict *out = self->verdict;
    json_doc document;
    arena_reset(&self->memory);
    bay_err err = json_parse(&document, line, NULL, &self->memory, NULL);
    if (err != BAY_OK && err != BAY_ERR_NOMEM) {
        out->fault = AUDIT_NO_RECORD;
        return BAY_OK;
    }
    if (err != BAY_OK) {
        return err;
    }
    json_val record = json_root(&document);
    json_val kind = json_get(record, STR("kind"));
    json_val why = json_get(record, STR("why"));
    bool is_opening = json_str_eq(kind, STR("open"));
    uint64_t told_bytes = is_opening ? number_of(record, STR("tornBytes")) : 0;
    if (told_bytes != torn_bytes) {
        out->fault = AUDIT_NO_RECORD;
        return BAY_OK;
    }
    out->lines++;
    out->torn_bytes += told_bytes;
    out->calls += json_str_eq(kind, STR("call"));
    out->is_closed = json_str_eq(kind, STR("close")) && json_str_eq(why, STR("end"));
    out->crashes += is_opening && json_str_eq(why, STR("crash"));
    out->dropped += json_str_eq(kind, STR("dropped")) ? number_of(record, STR("count")) : 0;
    return BAY_OK;
}

/* A line that was cut off when the gateway was killed may stand before an opening that tells of it. */
static bay_err check_line(reading *self, bay_str line)
{
    audit_verdict *out = self->verdict;
    char text[AUDIT_HASH_DIGITS + 1];
    audit_fault fault;
    bool is_first = out->chain.seq == 0;
    bay_err err = audit_chain_check(&out->chain, line, &fault);
    if (err != BAY_OK) {
        return err;
    }
    uint64_t torn_bytes = self->torn_bytes;
    if (fault == AUDIT_NO_RECORD && torn_bytes == 0) {
        self->torn_bytes = line.len > 0 ? line.len : 1;
        return BAY_OK;
    }
    self->torn_bytes = 0;
    out->fault = fault;
    if (fault != AUDIT_GOOD) {
        return BAY_OK;
    }
    out->first_seq = is_first ? out->chain.seq : out->first_seq;
    audit_chain_head(&out->chain, text);
    out->has_head = out->has_head || str_eq(str_of(text), self->head);
    return take_line(self, line, torn_bytes);
}

/* The next line, without its end. False: the end of the file; `out` is what is there without one. */
static bool next_line(FILE *from, char *room, bay_str *out)
{
    size_t len = 0;
    int c;
    while ((c = getc_unlocked(from)) != EOF && c != '\n') {
        if (len < AUDIT_LINE_BYTES) {
            room[len++] = (char)c;
        }
    }
    *out = (bay_str){room, len};
    return c == '\n';
}

static void set_place(audit_verdict *self, const char *path, uint64_t line)
{
    (void)snprintf(self->file, sizeof(self->file), "%s", path);
    self->line = line;
}

static bay_err read_file(reading *self, const char *path, bay_diag *diag)
{
    audit_verdict *out = self->verdict;
    bay_str line;
    uint64_t number = 0;
    bay_err err = BAY_OK;
    FILE *from = fopen(path, "re");
    if (from == NULL) {
        return diag_set(diag, errno == ENOENT ? BAY_ERR_NOT_FOUND : BAY_ERR_IO, "%s: %s", path,
                        strerror(errno));
    }
    while (err == BAY_OK && out->fault == AUDIT_GOOD && next_line(from, self->room, &line)) {
        number++;
        err = check_line(self, line);
    }
    if (err == BAY_OK && out->fault == AUDIT_GOOD && ferror(from) != 0) {
        err = diag_set(diag, BAY_ERR_IO, "%s: cannot be read", path);
    } else if (err == BAY_OK && out->fault == AUDIT_GOOD && line.len > 0) {
        out->torn_bytes += line.len;
        out->is_closed = false;
    }
    if (err == BAY_OK && out->fault == AUDIT_GOOD && self->torn_bytes > 0) {
        out->fault = AUDIT_NO_RECORD; /* a line that nothing tells of */
    }
    set_place(out, path, number);
    (void)fclose(from);
    return err;
}

static bay_err read_parts(reading *self, const char *path, bay_diag *diag)
{
    audit_parts parts;
    char name[AUDIT_PATH_BYTES];
    bay_err err = audit_parts_list(path, &parts);
    if (err != BAY_OK) {
        return diag_set(diag, err, "%s: its folder cannot be read: %s", path, bay_err_text(err));
    }
    for (size_t i = 0; err == BAY_OK && self->verdict->fault == AUDIT_GOOD && i < parts.count;
         i++) {
        err = audit_part_name(path, parts.at[i], name)
                  ? read_file(self, name, diag)
                  : diag_set(diag, BAY_ERR_LIMIT, "%s: the path is too long", path);
    }
    audit_parts_free(&parts);
    if (err == BAY_OK && self->verdict->fault == AUDIT_GOOD) {
        err = read_file(self, path, diag);
    }
    return err;
}

bay_err audit_verify(const char *path, bay_str head, audit_verdict *out, bay_diag *diag)
{
    *out = (audit_verdict){0};
    reading self = {.verdict = out, .head = head, .room = mem_alloc(AUDIT_LINE_BYTES)};
    if (self.room == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    arena_init(&self.memory, MEMORY_BYTES);
    bay_err err = read_parts(&self, path, diag);
    arena_fini(&self.memory);
    mem_free(self.room);
    return err;
}

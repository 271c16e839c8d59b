/* The pins and their file: loaded, approved, recorded, written. */
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "trust/pins_internal.h"

enum {
    REPLACED_BYTES = 8 << 20
}; /* that a lock may hold of texts that were replaced, besides what it has */

bay_err trust_pins_load(trust_pins *self, bay_diag *diag)
{
    trust_lock next;
    trust_lock before;
    bay_diag why = {0};
    trust_lock_init(&next);
    pthread_mutex_lock(&self->file_mutex);
    bay_err err = trust_lock_load(&next, self->path, &why);
    if (err != BAY_OK) {
        pthread_mutex_unlock(&self->file_mutex);
        trust_lock_fini(&next);
        return why.line > 0
                   ? diag_set(diag, err, "%s:%u: %s", self->path, why.line, why.text)
                   : diag_set(diag, err, "%s", why.text[0] != '\0' ? why.text : bay_err_text(err));
    }
    pthread_mutex_lock(&self->mutex);
    before = self->lock;
    self->lock = next;
    self->is_due = false;
    pins_judge_identities(self);
    pins_judge_all(self);
    pthread_mutex_unlock(&self->mutex);
    pthread_mutex_unlock(&self->file_mutex);
    trust_lock_fini(&before);
    return BAY_OK;
}

bay_err pins_put(trust_pins *self, const trust_cell *cell, bay_str by)
{
    const pins_name *of = cell->of;
    char now[TRUST_TIME_BYTES + 1];
    trust_pinned *server;
    trust_pin pin = {.kind = of->kind, .name = of->name};
    trust_time((int64_t)time(NULL), now);
    bay_err err = trust_lock_enter(&self->lock, of->section->name, of->section->is_agent, &server);
    if (err == BAY_OK) {
        const trust_pin *before = trust_pinned_find(server, of->kind, of->name);
        bool is_same = before != NULL && strcmp(before->digest, cell->digest) == 0;
        memcpy(pin.digest, cell->digest, sizeof(pin.digest));
        pin.canon = (bay_str){cell->bytes + cell->len, cell->canon_len};
        pin.seen = is_same ? before->seen : str_of(now);
        pin.approved = by.len > 0 ? str_of(now) : (bay_str){"", 0};
        pin.by = by;
        err = trust_lock_put(&self->lock, server, &pin);
        self->is_due = self->is_due || err == BAY_OK;
    }
    return err;
}

/* With `file_mutex` alone: a loop that checks a list does not wait for the disk. Then the file has what was recorded
 * before; on failure the caller says whether it is due. */
static bay_err write_file(trust_pins *self, bay_diag *diag)
{
    buf text;
    bay_diag why = {0};
    buf_init(&text, TRUST_LOCK_BYTES);
    pthread_mutex_lock(&self->mutex);
    trust_lock_write(&self->lock, &text);
    trust_lock_file file = self->lock.file;
    self->is_due = false;
    pthread_mutex_unlock(&self->mutex);
    bay_err err = text.err;
    if (err == BAY_OK) {
        err = trust_lock_replace(&file, self->path, buf_view(&text), &why);
    }
    size_t written = text.len;
    buf_fini(&text);
    pthread_mutex_lock(&self->mutex);
    self->lock.file = file;
    /* a definition that changes often leaves its earlier texts behind */
    if (err == BAY_OK && self->lock.memory.used > 2 * written + REPLACED_BYTES) {
        err_ignore(trust_lock_compact(&self->lock)); /* no memory: it stays as large as it is */
    }
    pthread_mutex_unlock(&self->mutex);
    return err == BAY_OK
               ? BAY_OK
               : diag_set(diag, err, "%s%s", why.text[0] != '\0' ? why.text : bay_err_text(err),
                          err == BAY_ERR_STATE ? " (patchbay reload loads it)" : "");
}

bool trust_pins_is_due(const trust_pins *self)
{
    trust_pins *mutable = (trust_pins *)(uintptr_t)self;
    pthread_mutex_lock(&mutable->mutex);
    bool is_due = self->is_due;
    pthread_mutex_unlock(&mutable->mutex);
    return is_due;
}

bay_err trust_pins_save(trust_pins *self, bay_diag *diag)
{
    pthread_mutex_lock(&self->file_mutex);
    bay_err err = trust_pins_is_due(self) ? write_file(self, diag) : BAY_OK;
    if (err != BAY_OK) {
        pthread_mutex_lock(&self->mutex);
        self->is_due = true;
        pthread_mutex_unlock(&self->mutex);
    }
    pthread_mutex_unlock(&self->file_mutex);
    return err;
}

/* ---- approval -------------------------------------------------------------------------------- */

static trust_cell *find_cell(const pins_section *section, trust_kind kind, bay_str name,
                             bay_str digest)
{
    LIST_EACH(link, &section->names)
    {
        pins_name *of = CONTAINER_OF(link, pins_name, link);
        if (of->kind != kind || !str_eq(of->name, name)) {
            continue;
        }
        LIST_EACH(at, &of->cells)
        {
            trust_cell *cell = CONTAINER_OF(at, trust_cell, link);
            if (str_eq(str_of(cell->digest), digest)) {
                return cell;
            }
        }
    }
    return NULL;
}

/* What the lock had before an approval; its texts stay as long as the lock. */
typedef struct lock_before {
    trust_pinned server; /* its identity and who approved it */
    trust_pin item;
    bool had_item;
    bool is_due;
} lock_before;

static bay_err approve_identity(trust_pins *self, const pins_section *section, bay_str by,
                                lock_before *out)
{
    char now[TRUST_TIME_BYTES + 1];
    trust_pinned *server;
    trust_pinned made = {0};
    arena *memory = &self->lock.memory;
    if (!section->is_identified || section->identity[0] == '\0') {
        return BAY_ERR_NOT_FOUND;
    }
    trust_time((int64_t)time(NULL), now);
    bay_err err = arena_dup(memory, str_of(section->identity), &made.identity);
    err = err == BAY_OK ? arena_dup(memory, str_of(now), &made.approved) : err;
    err = err == BAY_OK ? arena_dup(memory, by, &made.by) : err;
    err = err == BAY_OK ? trust_lock_enter(&self->lock, section->name, section->is_agent, &server)
                        : err;
    if (err == BAY_OK) {
        out->server = *server;
        server->identity = made.identity;
        server->approved = made.approved;
        server->by = made.by;
    }
    return err;
}

static bay_err approve_item(trust_pins *self, const pins_section *section, trust_kind kind,
                            bay_str name, bay_str digest, bay_str by, lock_before *out)
{
    const trust_cell *cell = find_cell(section, kind, name, digest);
    const trust_pinned *server = trust_lock_find(&self->lock, section->name, section->is_agent);
    const trust_pin *pin = server != NULL ? trust_pinned_find(server, kind, name) : NULL;
    if (cell == NULL) {
        return BAY_ERR_NOT_FOUND;
    }
    out->had_item = pin != NULL;
    out->item = pin != NULL ? *pin : (trust_pin){0};
    return pins_put(self, cell, by);
}

/* The section and the item are found again: others may have been entered meanwhile. */
static void take_back(trust_pins *self, const pins_section *section, trust_kind kind, bay_str name,
                      bool is_item, const lock_before *before)
{
    trust_pinned *server = trust_lock_find(&self->lock, section->name, section->is_agent);
    trust_pin *pin = is_item ? trust_pinned_find(server, kind, name) : NULL;
    if (!is_item) {
        server->identity = before->server.identity;
        server->approved = before->server.approved;
        server->by = before->server.by;
    } else if (pin != NULL && before->had_item) {
        *pin = before->item;
    } else {
        trust_pinned_remove(&self->lock, server, kind, name);
    }
    self->is_due = self->is_due || before->is_due;
}

bay_err trust_pins_approve(trust_pins *self, bay_str server, bool is_agent, trust_kind kind,
                           bay_str name, bay_str digest, bay_str by, bay_diag *diag)
{
    lock_before before = {0};
    bool is_item = digest.len > 0;
    bay_err err = BAY_ERR_NOT_FOUND;
    pthread_mutex_lock(&self->file_mutex);
    pthread_mutex_lock(&self->mutex);
    const pins_section *section = pins_find_section(self, server, is_agent);
    before.is_due = self->is_due;
    if (section != NULL) {
        err = is_item ? approve_item(self, section, kind, name, digest, by, &before)
                      : approve_identity(self, section, by, &before);
    }
    pthread_mutex_unlock(&self->mutex);
    if (err == BAY_OK) {
        err = write_file(self, diag);
        pthread_mutex_lock(&self->mutex);
        if (err != BAY_OK) {
            take_back(self, section, kind, name, is_item, &before);
        }
        pins_judge_identities(self);
        pins_judge_all(self);
        pthread_mutex_unlock(&self->mutex);
    } else {
        err = diag_set(diag, err, "%s",
                       err == BAY_ERR_NOT_FOUND
                           ? "no such definition is listed: it may have become another one"
                           : bay_err_text(err));
    }
    pthread_mutex_unlock(&self->file_mutex);
    return err;
}

bay_err trust_pins_copy(trust_pins *self, bay_str server, bool is_agent, trust_lock *out,
                        buf *out_identity)
{
    trust_pinned *copy = NULL;
    bay_err err = BAY_OK;
    pthread_mutex_lock(&self->mutex);
    const pins_section *section = pins_find_section(self, server, is_agent);
    const trust_pinned *from = trust_lock_find(&self->lock, server, is_agent);
    if (section != NULL) {
        buf_str(out_identity, str_of(section->identity));
    }
    if (from != NULL) {
        err = trust_lock_enter(out, server, is_agent, &copy);
    }
    if (from != NULL && err == BAY_OK) {
        err = arena_dup(&out->memory, from->identity, &copy->identity);
    }
    for (size_t i = 0; from != NULL && err == BAY_OK && i < from->count; i++) {
        err = trust_lock_put(out, copy, &from->items[i]);
    }
    pthread_mutex_unlock(&self->mutex);
    return err == BAY_OK ? out_identity->err : err;
}

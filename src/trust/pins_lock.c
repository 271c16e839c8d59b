/* The pins and their file: loaded, approved, recorded, written. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "trust/pins_internal.h"

static void note_file(trust_pins *self)
{
    struct stat found = {0};
    if (stat(self->path, &found) != 0) {
        found = (struct stat){0};
    }
    self->loaded = found.st_mtim;
    self->loaded_bytes = found.st_size;
    self->loaded_file = found.st_ino;
}

/* Somebody edited it, or took another in its place, since it was read or written here. */
static bool was_changed(const trust_pins *self)
{
    struct stat found = {0};
    if (stat(self->path, &found) != 0) {
        found = (struct stat){0};
    }
    return found.st_ino != self->loaded_file || found.st_size != self->loaded_bytes ||
           found.st_mtim.tv_sec != self->loaded.tv_sec ||
           found.st_mtim.tv_nsec != self->loaded.tv_nsec;
}

bay_err trust_pins_load(trust_pins *self, bay_diag *diag)
{
    trust_lock next;
    trust_lock before;
    bay_diag why = {0};
    trust_lock_init(&next);
    bay_err err = trust_lock_load(&next, self->path, &why);
    if (err != BAY_OK) {
        trust_lock_fini(&next);
        return why.line > 0
                   ? diag_set(diag, err, "%s:%u: %s", self->path, why.line, why.text)
                   : diag_set(diag, err, "%s", why.text[0] != '\0' ? why.text : bay_err_text(err));
    }
    pthread_mutex_lock(&self->mutex);
    before = self->lock;
    self->lock = next;
    self->is_due = false;
    note_file(self);
    pins_judge_identities(self);
    pins_judge_all(self);
    pthread_mutex_unlock(&self->mutex);
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
        self->is_due = true;
    }
    return err;
}

static bay_err write_file(trust_pins *self, bay_diag *diag)
{
    if (was_changed(self)) {
        return diag_set(diag, BAY_ERR_STATE,
                        "%s was changed meanwhile: load it first (patchbay reload)", self->path);
    }
    bay_err err = trust_lock_save(&self->lock, self->path, diag);
    if (err == BAY_OK) {
        self->is_due = false;
        note_file(self);
    }
    return err;
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
    pthread_mutex_lock(&self->mutex);
    bay_err err = self->is_due ? write_file(self, diag) : BAY_OK;
    pthread_mutex_unlock(&self->mutex);
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

static bay_err approve_identity(trust_pins *self, pins_section *section, bay_str by)
{
    trust_pinned *pinned;
    char now[TRUST_TIME_BYTES + 1];
    if (!section->is_identified || section->identity[0] == '\0') {
        return BAY_ERR_NOT_FOUND;
    }
    trust_time((int64_t)time(NULL), now);
    bay_err err = trust_lock_enter(&self->lock, section->name, section->is_agent, &pinned);
    err = err == BAY_OK
              ? arena_dup(&self->lock.memory, str_of(section->identity), &pinned->identity)
              : err;
    err = err == BAY_OK ? arena_dup(&self->lock.memory, str_of(now), &pinned->approved) : err;
    return err == BAY_OK ? arena_dup(&self->lock.memory, by, &pinned->by) : err;
}

bay_err trust_pins_approve(trust_pins *self, bay_str server, bool is_agent, trust_kind kind,
                           bay_str name, bay_str digest, bay_str by, bay_diag *diag)
{
    bay_err err = BAY_ERR_NOT_FOUND;
    pthread_mutex_lock(&self->mutex);
    pins_section *section = pins_find_section(self, server, is_agent);
    if (was_changed(self)) {
        err = diag_set(diag, BAY_ERR_STATE,
                       "%s was changed meanwhile: load it first (patchbay reload)", self->path);
    } else if (section != NULL && digest.len == 0) {
        err = approve_identity(self, section, by);
    } else if (section != NULL) {
        const trust_cell *cell = find_cell(section, kind, name, digest);
        err = cell != NULL ? pins_put(self, cell, by) : BAY_ERR_NOT_FOUND;
    }
    if (err == BAY_ERR_NOT_FOUND) {
        err = diag_set(diag, err, "no such definition is listed: it may have become another one");
    } else if (err == BAY_OK) {
        self->is_due = true;
        err = write_file(self, diag);
        pins_judge_identities(self);
        pins_judge_all(self);
    }
    pthread_mutex_unlock(&self->mutex);
    return err;
}

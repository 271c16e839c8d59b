/* The lock in its file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "trust/lock.h"

enum { CHUNK_BYTES = 256 << 10, PATH_BYTES = 4096, BESIDE_BYTES = PATH_BYTES + 32 };

static bay_err read_file(int file, buf *out)
{
    for (;;) {
        if (!buf_reserve(out, CHUNK_BYTES)) {
            return out->err;
        }
        ssize_t got = read(file, out->at + out->len, CHUNK_BYTES);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return BAY_ERR_IO;
        }
        if (got == 0) {
            return BAY_OK;
        }
        out->len += (size_t)got;
    }
}

static trust_lock_file file_of(const struct stat *found)
{
    return (trust_lock_file){
        .is_there = true,
        .device = found->st_dev,
        .number = found->st_ino,
        .bytes = found->st_size,
        .modified = found->st_mtim,
    };
}

static bool is_same_file(const trust_lock_file *a, const trust_lock_file *b)
{
    return a->is_there == b->is_there && a->device == b->device && a->number == b->number &&
           a->bytes == b->bytes && a->modified.tv_sec == b->modified.tv_sec &&
           a->modified.tv_nsec == b->modified.tv_nsec;
}

bay_err trust_lock_load(trust_lock *self, const char *path, bay_diag *diag)
{
    buf text;
    struct stat found = {0};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return errno == ENOENT
                   ? BAY_OK
                   : diag_set(diag, BAY_ERR_IO, "%s cannot be opened: %s", path, strerror(errno));
    }
    buf_init(&text, TRUST_LOCK_BYTES + CHUNK_BYTES);
    /* before its bytes: what is written to it meanwhile is another state of it */
    bay_err err = fstat(file, &found) == 0 ? read_file(file, &text) : BAY_ERR_IO;
    if (err != BAY_OK) {
        err = diag_set(diag, err, "%s cannot be read: %s", path,
                       err == BAY_ERR_IO ? strerror(errno) : bay_err_text(err));
    } else {
        err = trust_lock_read(self, buf_view(&text), diag);
    }
    self->file = file_of(&found);
    close(file);
    buf_fini(&text);
    return err;
}

static bay_err write_file(int file, bay_str text)
{
    while (text.len > 0) {
        ssize_t put = write(file, text.at, text.len);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            return BAY_ERR_IO;
        }
        text = str_from(text, (size_t)put);
    }
    return fsync(file) == 0 ? BAY_OK : BAY_ERR_IO;
}

/* The folder of the file, so that its new name outlives a crash. */
static void sync_folder(const char *path)
{
    char folder[PATH_BYTES];
    const char *slash = strrchr(path, '/');
    (void)snprintf(folder, sizeof(folder), "%.*s", slash != NULL ? (int)(slash - path + 1) : 1,
                   slash != NULL ? path : ".");
    int opened = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened >= 0) {
        (void)fsync(opened);
        close(opened);
    }
}

/* Takes the place of the file, or of none: whoever put one there meanwhile keeps it. */
static bay_err put_in_place(const char *beside, const char *path, bool is_there)
{
    if (!is_there && link(beside, path) == 0) {
        (void)unlink(beside);
        return BAY_OK;
    }
    if (!is_there && errno == EEXIST) {
        return BAY_ERR_STATE;
    }
    return rename(beside, path) == 0 ? BAY_OK : BAY_ERR_IO; /* or a file system without links */
}

/* errno says why BAY_ERR_IO. */
static bay_err write_beside(const char *path, bay_str text, trust_lock_file *inout_file)
{
    char beside[BESIDE_BYTES];
    struct stat found = {0};
    bool is_there = stat(path, &found) == 0;
    trust_lock_file now = is_there ? file_of(&found) : (trust_lock_file){0};
    if (!is_same_file(&now, inout_file)) {
        return BAY_ERR_STATE;
    }
    (void)snprintf(beside, sizeof(beside), "%s.new-%ld", path, (long)getpid());
    int file = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                    is_there ? found.st_mode & 0777 : 0644);
    bay_err err = file >= 0 ? write_file(file, text) : BAY_ERR_IO;
    err = err == BAY_OK && fstat(file, &found) != 0 ? BAY_ERR_IO : err;
    if (file >= 0 && close(file) != 0) {
        err = BAY_ERR_IO;
    }
    err = err == BAY_OK ? put_in_place(beside, path, is_there) : err;
    if (err != BAY_OK) {
        int reason = errno;
        (void)unlink(beside);
        errno = reason;
        return err;
    }
    *inout_file = file_of(&found);
    sync_folder(path);
    return BAY_OK;
}

bay_err trust_lock_replace(trust_lock_file *inout_file, const char *path, bay_str text,
                           bay_diag *diag)
{
    char target[PATH_BYTES]; /* of a symbolic link: the file that it names */
    if (strlen(path) >= sizeof(target)) {
        return diag_set(diag, BAY_ERR_IO, "the path of the lock is too long");
    }
    if (realpath(path, target) == NULL) {
        memcpy(target, path, strlen(path) + 1);
    }
    /* Held while it is compared and replaced: of two writers one finds that it was changed. */
    int guard = open(target, O_RDONLY | O_CLOEXEC);
    bool is_busy = guard >= 0 && flock(guard, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    bay_err err = is_busy ? BAY_ERR_STATE : write_beside(target, text, inout_file);
    int reason = errno;
    if (guard >= 0) {
        close(guard);
    }
    if (err == BAY_ERR_STATE) {
        return diag_set(diag, err, "%s %s", path,
                        is_busy ? "is being written by another process: try again"
                                : "was changed meanwhile, and stays as it is");
    }
    return err == BAY_OK ? BAY_OK
                         : diag_set(diag, err, "%s cannot be written: %s", path, strerror(reason));
}

bay_err trust_lock_save(trust_lock *self, const char *path, bay_diag *diag)
{
    buf text;
    buf_init(&text, TRUST_LOCK_BYTES);
    trust_lock_write(self, &text);
    bay_err err = text.err == BAY_OK
                      ? trust_lock_replace(&self->file, path, buf_view(&text), diag)
                      : diag_set(diag, text.err, "%s: %s", path, bay_err_text(text.err));
    buf_fini(&text);
    return err;
}

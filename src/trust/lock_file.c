/* The lock in its file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "trust/lock.h"

enum { CHUNK_BYTES = 256 << 10, PATH_BYTES = 4096 };

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

bay_err trust_lock_load(trust_lock *self, const char *path, bay_diag *diag)
{
    buf text;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return errno == ENOENT
                   ? BAY_OK
                   : diag_set(diag, BAY_ERR_IO, "%s cannot be opened: %s", path, strerror(errno));
    }
    buf_init(&text, TRUST_LOCK_BYTES + CHUNK_BYTES);
    bay_err err = read_file(file, &text);
    if (err != BAY_OK) {
        err = diag_set(diag, err, "%s cannot be read: %s", path,
                       err == BAY_ERR_IO ? strerror(errno) : bay_err_text(err));
    } else {
        err = trust_lock_read(self, buf_view(&text), diag);
    }
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

bay_err trust_lock_save(const trust_lock *self, const char *path, bay_diag *diag)
{
    buf text;
    char beside[PATH_BYTES];
    struct stat before;
    int named = snprintf(beside, sizeof(beside), "%s.new-%ld", path, (long)getpid());
    if (named < 0 || (size_t)named >= sizeof(beside)) {
        return diag_set(diag, BAY_ERR_IO, "the path of the lock is too long");
    }
    buf_init(&text, TRUST_LOCK_BYTES);
    trust_lock_write(self, &text);
    if (text.err != BAY_OK) {
        bay_err err = text.err;
        buf_fini(&text);
        return diag_set(diag, err, "%s: %s", path, bay_err_text(err));
    }
    mode_t mode = stat(path, &before) == 0 ? before.st_mode & 0777 : 0644;
    int file = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
    bay_err err = file >= 0 ? write_file(file, buf_view(&text)) : BAY_ERR_IO;
    if (file >= 0 && close(file) != 0) {
        err = BAY_ERR_IO;
    }
    if (err == BAY_OK && rename(beside, path) != 0) {
        err = BAY_ERR_IO;
    }
    int reason = errno;
    buf_fini(&text);
    if (err != BAY_OK) {
        (void)unlink(beside);
        return diag_set(diag, err, "%s cannot be written: %s", path, strerror(reason));
    }
    sync_folder(path);
    return BAY_OK;
}

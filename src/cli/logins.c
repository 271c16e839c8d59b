#include "cli/logins.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "auth/digest.h"
#include "auth/oauth_record.h"
#include "auth/seal.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"

enum {
    PATH_BYTES = 4096,
    FILE_BYTES = 2 * OAUTH_RECORD_BYTES,
    LOGIN_LOCK_TRIES = 100,
    LOGIN_LOCK_PAUSE_MS = 100,
};

struct cli_logins {
    seal_ring *ring;
    int folder;
    int lock; /* -1: none */
};

/* ---- the folder ------------------------------------------------------------------------------ */

static bay_err folder_path(char out[PATH_BYTES], bay_diag *diag)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    int len = 0;
    if (state != NULL && state[0] == '/') {
        len = snprintf(out, PATH_BYTES, "%s/patchbay/logins", state);
    } else if (home != NULL && home[0] == '/') {
        len = snprintf(out, PATH_BYTES, "%s/.local/state/patchbay/logins", home);
    } else {
        return diag_set(diag, BAY_ERR_IO,
                        "there is no place for logins: neither XDG_STATE_HOME nor HOME is set");
    }
    return len < PATH_BYTES ? BAY_OK
                            : diag_set(diag, BAY_ERR_IO, "the path of the logins is too long");
}

/* Each folder on the way; those that are there stay as they are. */
static void make_folders(char *path)
{
    for (char *at = path + 1; *at != '\0'; at++) {
        if (*at == '/') {
            *at = '\0';
            (void)mkdir(path, 0700);
            *at = '/';
        }
    }
    (void)mkdir(path, 0700);
}

/* Ours, and nobody else's to read or write. */
static bay_err check_private(int fd, const char *what, bay_diag *diag)
{
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return diag_set(diag, BAY_ERR_IO, "%s: %s", what, strerror(errno));
    }
    if (info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
        return diag_set(
            diag, BAY_ERR_IO,
            "%s belongs to another user, or others can use it: chmod go= makes it private", what);
    }
    return BAY_OK;
}

static bay_err open_folder(cli_logins *self, bool creates, bay_diag *diag)
{
    char path[PATH_BYTES];
    bay_err err = folder_path(path, diag);
    if (err != BAY_OK) {
        return err;
    }
    if (creates) {
        make_folders(path);
    }
    self->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (self->folder < 0) {
        return diag_set(diag, errno == ENOENT ? BAY_ERR_NOT_FOUND : BAY_ERR_IO, "%s: %s", path,
                        strerror(errno));
    }
    return check_private(self->folder, path, diag);
}

/* ---- files ----------------------------------------------------------------------------------- */

static bay_err read_all(int fd, buf *out)
{
    char piece[4096];
    ssize_t got = 0;
    while (out->err == BAY_OK && (got = read(fd, piece, sizeof(piece))) > 0) {
        buf_append(out, piece, (size_t)got);
    }
    mem_wipe(piece, sizeof(piece));
    return got < 0 ? BAY_ERR_IO : out->err;
}

static bool write_all(int fd, bay_str text)
{
    while (text.len > 0) {
        ssize_t done = write(fd, text.at, text.len);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return false;
        }
        text = str_from(text, (size_t)done);
    }
    return true;
}

static bay_err make_key(cli_logins *self, unsigned char key[SEAL_KEY_BYTES])
{
    rand_bytes(key, SEAL_KEY_BYTES);
    int fd = openat(self->folder, "key", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return errno == EEXIST ? BAY_ERR_DUPLICATE : BAY_ERR_IO;
    }
    bool is_done = write_all(fd, (bay_str){(const char *)key, SEAL_KEY_BYTES}) && fsync(fd) == 0;
    close(fd);
    if (!is_done) {
        (void)unlinkat(self->folder, "key", 0);
    }
    return is_done ? BAY_OK : BAY_ERR_IO;
}

static bay_err read_key(cli_logins *self, unsigned char key[SEAL_KEY_BYTES], bay_diag *diag)
{
    int fd = openat(self->folder, "key", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return errno == ENOENT ? BAY_ERR_NOT_FOUND : BAY_ERR_IO;
    }
    bay_err err = check_private(fd, "the key of the logins", diag);
    ssize_t got = err == BAY_OK ? read(fd, key, SEAL_KEY_BYTES) : 0;
    close(fd);
    if (err == BAY_OK && got != SEAL_KEY_BYTES) {
        err = diag_set(diag, BAY_ERR_IO,
                       "the key of the logins is damaged: remove it and log in again");
    }
    return err;
}

static bay_err open_key(cli_logins *self, bool creates, bay_diag *diag)
{
    unsigned char key[SEAL_KEY_BYTES];
    bay_err err = read_key(self, key, diag);
    if (err == BAY_ERR_NOT_FOUND && creates) {
        err = make_key(self, key);
        if (err == BAY_ERR_DUPLICATE) { /* another process was faster */
            err = read_key(self, key, diag);
        }
    }
    if (err == BAY_OK) {
        err = seal_ring_new(&self->ring);
    }
    if (err == BAY_OK) {
        err = seal_ring_add(self->ring, (bay_str){(const char *)key, sizeof(key)});
    }
    mem_wipe(key, sizeof(key));
    bool is_told = diag != NULL && diag->code == err;
    return err == BAY_OK || is_told
               ? err
               : diag_set(diag, err, "the key of the logins: %s", bay_err_text(err));
}

bay_err cli_logins_open(bool creates, cli_logins **out, bay_diag *diag)
{
    cli_logins *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    self->folder = self->lock = -1;
    bay_err err = open_folder(self, creates, diag);
    if (err == BAY_OK) {
        err = open_key(self, creates, diag);
    }
    if (err != BAY_OK) {
        cli_logins_close(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

void cli_logins_close(cli_logins *self)
{
    if (self == NULL) {
        return;
    }
    cli_logins_unlock(self);
    seal_ring_free(self->ring);
    if (self->folder >= 0) {
        close(self->folder);
    }
    mem_free(self);
}

/* ---- records --------------------------------------------------------------------------------- */

typedef struct login_name {
    char text[DIGEST_TEXT_BYTES + 8];
} login_name;

/* The hash of the URL, so that a listing of the folder does not show where somebody logs in. */
static bay_err name_of(bay_str url, const char *suffix, login_name *out)
{
    char digest[DIGEST_TEXT_BYTES + 1];
    bay_err err = digest_sha256(url, digest);
    if (err == BAY_OK) {
        snprintf(out->text, sizeof(out->text), "%s%s", digest + sizeof("sha256:") - 1, suffix);
    }
    return err;
}

bay_err cli_logins_read(cli_logins *self, bay_str url, buf *out)
{
    login_name name;
    buf text;
    bay_err err = name_of(url, "", &name);
    if (err != BAY_OK) {
        return err;
    }
    int fd = openat(self->folder, name.text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return errno == ENOENT ? BAY_ERR_NOT_FOUND : BAY_ERR_IO;
    }
    buf_init(&text, FILE_BYTES);
    err = read_all(fd, &text);
    close(fd);
    if (err == BAY_OK) {
        err = seal_open(self->ring, buf_view(&text), url, 0, out);
    }
    buf_fini(&text);
    return err;
}

bay_err cli_logins_write(cli_logins *self, bay_str url, bay_str record)
{
    login_name name, beside;
    buf text;
    bay_err err = name_of(url, "", &name);
    if (err == BAY_OK) {
        err = name_of(url, ".new", &beside);
    }
    if (err != BAY_OK) {
        return err;
    }
    buf_init(&text, FILE_BYTES);
    err = seal_value(self->ring, record, url, 0, &text);
    (void)unlinkat(self->folder, beside.text, 0); /* of a process that was killed */
    int fd = err == BAY_OK ? openat(self->folder, beside.text,
                                    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)
                           : -1;
    if (err == BAY_OK) {
        bool is_done = fd >= 0 && write_all(fd, buf_view(&text)) && fsync(fd) == 0;
        err = is_done && renameat(self->folder, beside.text, self->folder, name.text) == 0 &&
                      fsync(self->folder) == 0
                  ? BAY_OK
                  : BAY_ERR_IO;
    }
    if (fd >= 0) {
        close(fd);
    }
    buf_fini(&text);
    return err;
}

bay_err cli_logins_remove(cli_logins *self, bay_str url)
{
    login_name name, lock;
    bay_err err = name_of(url, "", &name);
    if (err == BAY_OK) {
        err = name_of(url, ".lock", &lock);
    }
    if (err != BAY_OK) {
        return err;
    }
    (void)unlinkat(self->folder, lock.text, 0);
    if (unlinkat(self->folder, name.text, 0) == 0) {
        return BAY_OK;
    }
    return errno == ENOENT ? BAY_ERR_NOT_FOUND : BAY_ERR_IO;
}

/* ---- one at a time --------------------------------------------------------------------------- */

void cli_logins_lock(cli_logins *self, bay_str url)
{
    login_name name;
    cli_logins_unlock(self);
    if (name_of(url, ".lock", &name) != BAY_OK) {
        return;
    }
    int fd = openat(self->folder, name.text, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    for (int i = 0; fd >= 0 && i < LOGIN_LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            self->lock = fd;
            return;
        }
        const struct timespec pause = {.tv_nsec = LOGIN_LOCK_PAUSE_MS * 1000000L};
        (void)nanosleep(&pause, NULL);
    }
    if (fd >= 0) {
        close(fd);
    }
}

void cli_logins_unlock(cli_logins *self)
{
    if (self->lock >= 0) {
        close(self->lock); /* which unlocks */
        self->lock = -1;
    }
}

/* Listening on a path of the file system.
 *
 * The file protects the socket: mode 0600 from its creation, in a folder that only this user and
 * root can write to. The name itself is not followed if it is a symbolic link. What a killed
 * process left behind is replaced: a socket of this user without a listener. The folder is locked
 * from that check to the new socket's listen, so that two processes that start together cannot
 * replace each other's. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "net/socket_internal.h"

enum {
    FOLDERS_MAX = 128, /* nested in each other */
    LOCK_TRIES = 200,
    LOCK_PAUSE_NS = 10 * 1000 * 1000,
};

_Static_assert(SOCKET_UNIX_PATH_BYTES == sizeof(((struct sockaddr_un *)NULL)->sun_path),
               "a path is as long as the kernel takes it");

bool socket_address_is_unix(bay_str address)
{
    return str_starts(address, STR(SOCKET_UNIX_PREFIX));
}

bay_err socket_unix_path(bay_str address, char out[SOCKET_UNIX_PATH_BYTES], bay_diag *diag)
{
    bay_str path = str_from(address, strlen(SOCKET_UNIX_PREFIX));
    if (!socket_address_is_unix(address) || path.len < 2 || path.at[0] != '/' ||
        path.at[path.len - 1] == '/' || memchr(path.at, '\0', path.len) != NULL) {
        return diag_set(diag, BAY_ERR_INVALID,
                        "\"%.*s\" is no address of a Unix socket: unix:/FOLDER/NAME is",
                        (int)(address.len < 120 ? address.len : 120), address.at);
    }
    if (path.len >= SOCKET_UNIX_PATH_BYTES) {
        return diag_set(diag, BAY_ERR_LIMIT,
                        "the path of a Unix socket has %zu bytes, %d is the most: use a shorter "
                        "one",
                        path.len, SOCKET_UNIX_PATH_BYTES - 1);
    }
    memcpy(out, path.at, path.len);
    out[path.len] = '\0';
    return BAY_OK;
}

static bay_err failed(bay_diag *diag, const char *path, const char *what)
{
    return diag_set(diag, BAY_ERR_IO, "cannot listen on unix:%s: %s", path, what);
}

static bay_err failed_by(bay_diag *diag, const char *path, const char *what, int error)
{
    return diag_set(diag, BAY_ERR_IO, "cannot listen on unix:%s: %s: %s", path, what,
                    strerror(error));
}

/* ---- the folder ------------------------------------------------------------------------------ */

/* Only this user and root can rename or remove what is in it; in a sticky folder, only what is
 * theirs. */
static bool is_safe(const struct stat *folder)
{
    bool is_ours = folder->st_uid == 0 || folder->st_uid == geteuid();
    return is_ours &&
           ((folder->st_mode & (S_IWGRP | S_IWOTH)) == 0 || (folder->st_mode & S_ISVTX) != 0);
}

/* Nor can other users replace a folder on the path to it. Consumes `at`. */
static bool is_safe_to_root(int at)
{
    struct stat here;
    bool is_known = fstat(at, &here) == 0;
    for (int i = 0; is_known && i < FOLDERS_MAX && is_safe(&here); i++) {
        struct stat above;
        int up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = up;
        is_known = up >= 0 && fstat(up, &above) == 0;
        if (is_known && above.st_dev == here.st_dev && above.st_ino == here.st_ino) {
            close(at);
            return true;
        }
        here = above;
    }
    if (at >= 0) {
        close(at);
    }
    return false;
}

/* Locked until it is closed. */
static bay_err open_folder(const char *path, int *out, bay_diag *diag)
{
    char folder[SOCKET_UNIX_PATH_BYTES];
    size_t len = str_find_last(str_of(path), '/');
    memcpy(folder, path, len);
    folder[len] = '\0';
    const char *name = len > 0 ? folder : "/";
    int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return diag_set(diag, BAY_ERR_IO, "cannot listen on unix:%s: the folder %s: %s", path, name,
                        strerror(errno));
    }
    if (!is_safe_to_root(dup(fd))) {
        close(fd);
        return diag_set(diag, BAY_ERR_DENIED,
                        "cannot listen on unix:%s: other users could replace the socket: %s and "
                        "every folder above it must belong to this user or root, and be writable "
                        "by its owner alone",
                        path, name);
    }
    for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || i == LOCK_TRIES) {
            bay_err err = failed_by(diag, path, "its folder cannot be locked", errno);
            close(fd);
            return err;
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = LOCK_PAUSE_NS}, NULL);
    }
    *out = fd;
    return BAY_OK;
}

/* ---- what is there already ------------------------------------------------------------------- */

/* 0: a process listens there; otherwise the errno that says why not. */
static int try_connect(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return errno;
    }
    int error = connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ? 0 : errno;
    close(fd);
    return error == EAGAIN ? 0 : error; /* its backlog is full */
}

static bay_err clear_name(int folder, const char *name, const struct sockaddr_un *address,
                          bay_diag *diag)
{
    const char *path = address->sun_path;
    struct stat there;
    if (fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? BAY_OK : failed_by(diag, path, "it cannot be looked at", errno);
    }
    if (!S_ISSOCK(there.st_mode)) {
        return failed(diag, path,
                      "a file that is no socket has this name: remove it, or use "
                      "another path");
    }
    if (there.st_uid != geteuid()) {
        return failed(diag, path, "the socket of another user has this name");
    }
    int error = try_connect(address);
    if (error == 0) {
        return diag_set(diag, BAY_ERR_STATE,
                        "cannot listen on unix:%s: another process listens there: end it, or use "
                        "another path",
                        path);
    }
    if (error != ECONNREFUSED) {
        return failed_by(diag, path, "what has this name does not say whether it is in use", error);
    }
    return unlinkat(folder, name, 0) == 0
               ? BAY_OK
               : failed_by(diag, path, "what is left of an earlier process cannot be removed",
                           errno);
}

/* ---- making and removing --------------------------------------------------------------------- */

/* The kernel gives the file the mode of the descriptor, minus the umask: set before the bind, so
 * that the file is never open to others. */
static bay_err bind_private(int fd, int folder, const char *name, const struct sockaddr_un *address,
                            int backlog, socket_unix_file *out, bay_diag *diag)
{
    struct stat made;
    if (fchmod(fd, S_IRUSR | S_IWUSR) != 0) {
        return failed_by(diag, address->sun_path, "its mode cannot be set", errno);
    }
    if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) != 0) {
        return failed_by(diag, address->sun_path, "it cannot be made", errno);
    }
    if (fstatat(folder, name, &made, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISSOCK(made.st_mode) ||
        (made.st_mode & (S_IRWXG | S_IRWXO)) != 0 || made.st_uid != geteuid()) {
        (void)unlinkat(folder, name, 0);
        return failed(diag, address->sun_path, "this file system does not keep others out");
    }
    if (listen(fd, backlog) != 0) {
        bay_err err = failed_by(diag, address->sun_path, "listen", errno);
        (void)unlinkat(folder, name, 0);
        return err;
    }
    *out = (socket_unix_file){.device = made.st_dev, .inode = made.st_ino};
    memcpy(out->path, address->sun_path, sizeof(out->path));
    return BAY_OK;
}

bay_err socket_unix_open(bay_str text, int backlog, socket_unix_file *out, int *out_fd,
                         bay_diag *diag)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int folder = -1;
    bay_err err = socket_unix_path(text, address.sun_path, diag);
    err = err == BAY_OK ? open_folder(address.sun_path, &folder, diag) : err;
    if (err != BAY_OK) {
        return err;
    }
    const char *name = strrchr(address.sun_path, '/') + 1;
    err = clear_name(folder, name, &address, diag);
    int fd = -1;
    if (err == BAY_OK) {
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        err = fd >= 0 ? bind_private(fd, folder, name, &address, backlog, out, diag)
                      : failed_by(diag, address.sun_path, "no socket", errno);
    }
    if (err != BAY_OK && fd >= 0) {
        close(fd);
        fd = -1;
    }
    close(folder); /* and its lock */
    *out_fd = fd;
    return err;
}

void socket_unix_remove(const socket_unix_file *file)
{
    struct stat there;
    if (lstat(file->path, &there) == 0 && there.st_dev == file->device &&
        there.st_ino == file->inode) {
        (void)unlink(file->path);
    }
}

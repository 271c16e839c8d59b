/* Attempts on files, and by sockets, that are more than one system call. See escape_server.c. */
#include "escape.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { CALL_OPENAT2 = 437, CALL_FCHMODAT2 = 452, CALL_SETXATTRAT = 463, SET_ID_MODE = 06755 };

/* ---- reading and writing by other ways ---------------------------------------------------------
 */

typedef struct how {
    uint64_t flags;
    uint64_t mode;
    uint64_t resolve;
} how;

static long try_openat2(attempt *self)
{
    how plain = {.flags = O_RDONLY | O_CLOEXEC};
    return close_after((int)syscall(CALL_OPENAT2, AT_FDCWD, self->a, &plain, sizeof(plain)));
}

static long try_reopen(attempt *self)
{
    char path[64];
    int handle = open(self->a, O_PATH | O_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
    long result = handle >= 0 ? close_after(open(path, O_RDONLY | O_CLOEXEC)) : -1;
    int error = errno;
    (void)close_after(handle);
    errno = error;
    return result;
}

static long try_relative(attempt *self)
{
    return chdir(self->a) == 0 ? close_after(open(self->b, O_RDONLY | O_CLOEXEC)) : -1;
}

static long try_chdir_and_read(attempt *self)
{
    return in_child(try_relative, self);
}

static long try_open_write(attempt *self)
{
    return close_after(open(self->a, O_WRONLY | O_CLOEXEC | O_NONBLOCK));
}

static long try_open_both(attempt *self)
{
    return close_after(open(self->a, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

static long try_readlink(attempt *self)
{
    char target[WORD];
    return readlink(self->a, target, sizeof(target)) > 0 ? 0 : -1;
}

static long try_creat(attempt *self)
{
    return close_after(creat(self->a, 0644));
}

static long try_fifo(attempt *self)
{
    return mkfifo(self->a, 0644);
}

static long try_node(attempt *self)
{
    return mknod(self->a, S_IFREG | 0644, 0);
}

static long try_device(attempt *self)
{
    return mknod(self->a, S_IFCHR | 0666, (1 << 8) | 1); /* all memory */
}

static long try_nameless(attempt *self)
{
    return close_after(open(self->a, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
}

static long try_rmdir(attempt *self)
{
    return rmdir(self->a);
}

static long try_exchange(attempt *self)
{
    return syscall(SYS_renameat2, AT_FDCWD, self->a, AT_FDCWD, self->b, 2U /* RENAME_EXCHANGE */);
}

static long try_link_handle(attempt *self)
{
    char path[64];
    int handle = open(self->a, O_PATH | O_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
    long result = linkat(AT_FDCWD, path, AT_FDCWD, self->b, AT_SYMLINK_FOLLOW);
    int error = errno;
    (void)close_after(handle);
    errno = error;
    return result;
}

/* Through a link of its own making. */
static long try_follow(attempt *self)
{
    (void)unlink(self->b);
    if (symlink(self->a, self->b) != 0) {
        return -1;
    }
    long result = close_after(open(self->b, O_RDONLY | O_CLOEXEC));
    int error = errno;
    (void)unlink(self->b);
    errno = error;
    return result;
}

static long try_exec_handle(attempt *self)
{
    static char empty[] = "";
    char *arguments[] = {self->a, NULL};
    int handle = open(self->a, O_PATH); /* a script is opened by it once more */
    (void)dup2(2, 1);                   /* our answers go there */
    return handle < 0 ? -1 : syscall(SYS_execveat, handle, empty, arguments, NULL, AT_EMPTY_PATH);
}

static long try_execveat(attempt *self)
{
    return in_child(try_exec_handle, self);
}

static long try_interpreter(attempt *self)
{
    char *arguments[] = {self->a, self->b, NULL};
    (void)dup2(2, 1);
    return execv(self->a, arguments);
}

static long try_run(attempt *self)
{
    return in_child(try_interpreter, self);
}

/* ---- attributes ------------------------------------------------------------------------------ */

static long try_chown(attempt *self)
{
    return chown(self->a, geteuid(), getegid());
}

static long try_give_away(attempt *self)
{
    return chown(self->a, 1, 1);
}

static long try_lchown(attempt *self)
{
    return lchown(self->a, geteuid(), getegid());
}

static long try_fchmodat(attempt *self)
{
    return syscall(SYS_fchmodat, AT_FDCWD, self->a, 0777);
}

static long try_fchmodat2(attempt *self)
{
    return syscall(CALL_FCHMODAT2, AT_FDCWD, self->a, 0777, 0);
}

static long try_setxattr(attempt *self)
{
    return setxattr(self->a, "user.x", "y", 1, 0);
}

static long try_setxattrat(attempt *self)
{
    struct {
        uint64_t value;
        uint32_t size;
        uint32_t flags;
    } value = {(uint64_t)(uintptr_t) "y", 1, 0};
    return syscall(CALL_SETXATTRAT, AT_FDCWD, self->a, 0, "user.x", &value, sizeof(value));
}

static long try_setcap(attempt *self)
{
    static const uint32_t all[5] = {0x02000001, UINT32_MAX, 0, 0x1ff, 0};
    return setxattr(self->a, "security.capability", all, sizeof(all), 0);
}

static long try_flags(attempt *self)
{
    long flags = 0x40; /* not to be dumped: an owner's right */
    int fd = open(self->a, O_RDONLY | O_CLOEXEC);
    long result = fd >= 0 ? ioctl(fd, 0x40086602, &flags) : -1;
    int error = errno;
    (void)close_after(fd);
    errno = error;
    return result;
}

static long try_utimes(attempt *self)
{
    return syscall(SYS_utimensat, AT_FDCWD, self->a, NULL, AT_SYMLINK_NOFOLLOW);
}

/* ---- set-id bits: done is what has them -------------------------------------------------------
 */

static long has_set_id(const char *path, long result)
{
    struct stat about;
    if (result < 0 || stat(path, &about) != 0) {
        return -1;
    }
    errno = EPERM;
    return (about.st_mode & 06000) != 0 ? 0 : -1;
}

static long try_set_id_open(attempt *self)
{
    long fd = syscall(SYS_openat, AT_FDCWD, self->a, O_WRONLY | O_CREAT | O_CLOEXEC, SET_ID_MODE);
    return has_set_id(self->a, close_after((int)fd));
}

static long try_set_id_open2(attempt *self)
{
    how with = {.flags = O_WRONLY | O_CREAT | O_CLOEXEC, .mode = SET_ID_MODE};
    long fd = syscall(CALL_OPENAT2, AT_FDCWD, self->a, &with, sizeof(with));
    return has_set_id(self->a, close_after((int)fd));
}

static long try_set_id_creat(attempt *self)
{
    return has_set_id(self->a, close_after(creat(self->a, 04755)));
}

static long try_set_id_node(attempt *self)
{
    return has_set_id(self->a, mknod(self->a, S_IFREG | 02755, 0));
}

/* a is the folder, b the name that it gets in the end. */
static long try_set_id_nameless(attempt *self)
{
    char path[64];
    int fd = open(self->a, O_TMPFILE | O_RDWR | O_CLOEXEC, SET_ID_MODE);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    long result = fd >= 0 ? linkat(AT_FDCWD, path, AT_FDCWD, self->b, AT_SYMLINK_FOLLOW) : -1;
    int error = errno;
    (void)close_after(fd);
    errno = error;
    return has_set_id(self->b, result);
}

static long try_set_id_chmod(attempt *self)
{
    return has_set_id(self->a, chmod(self->a, SET_ID_MODE));
}

static long try_set_id_fchmod(attempt *self)
{
    int fd = open(self->a, O_RDWR | O_CLOEXEC);
    long result = fd >= 0 ? fchmod(fd, 02755) : -1;
    int error = errno;
    (void)close_after(fd);
    errno = error;
    return has_set_id(self->a, result);
}

static long try_set_id_fchmodat(attempt *self)
{
    return has_set_id(self->a, syscall(SYS_fchmodat, AT_FDCWD, self->a, 04755));
}

static long try_set_id_fchmodat2(attempt *self)
{
    return has_set_id(self->a, syscall(CALL_FCHMODAT2, AT_FDCWD, self->a, 04755, 0));
}

/* ---- sockets --------------------------------------------------------------------------------- */

/* a: family, b: type; a third word of b: protocol. */
static long try_socket(attempt *self)
{
    char *rest = NULL;
    long type = strtol(self->b, &rest, 10);
    return close_after(
        socket((int)self->number, (int)type | SOCK_CLOEXEC, (int)strtol(rest, NULL, 10)));
}

static socklen_t name_socket(struct sockaddr_un *at, const char *name)
{
    bool is_abstract = name[0] != '/';
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(at->sun_path + is_abstract, sizeof(at->sun_path) - is_abstract, "%s", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + is_abstract + strlen(name));
}

/* One end of a pair in place of a socket. b: what is done with it. */
static long with_pair(const attempt *self, int type)
{
    struct sockaddr_un at;
    socklen_t len = name_socket(&at, self->a);
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) {
        return -1;
    }
    long result = -1;
    char byte = 'x';
    struct iovec part = {&byte, 1};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } passed = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    memcpy(CMSG_DATA(&passed.head), &ends[1], sizeof(int));
    struct mmsghdr message = {.msg_hdr = {.msg_name = &at,
                                          .msg_namelen = len,
                                          .msg_iov = &part,
                                          .msg_iovlen = 1,
                                          .msg_control = passed.bytes,
                                          .msg_controllen = sizeof(passed.bytes)}};
    if (strcmp(self->b, "sendto") == 0) {
        result = sendto(ends[0], &byte, 1, MSG_DONTWAIT, (struct sockaddr *)&at, len);
    } else if (strcmp(self->b, "sendmsg") == 0) {
        result = sendmsg(ends[0], &message.msg_hdr, MSG_DONTWAIT);
    } else if (strcmp(self->b, "sendmmsg") == 0) {
        result = sendmmsg(ends[0], &message, 1, MSG_DONTWAIT);
    } else if (connect(ends[0], (struct sockaddr *)&at, len) == 0) {
        result = write(ends[0], &byte, 1);
    }
    int error = errno;
    close(ends[0]);
    close(ends[1]);
    errno = error;
    return result == 1 ? 0 : -1;
}

static long try_datagram_pair(attempt *self)
{
    return with_pair(self, SOCK_DGRAM);
}

static long try_raw_pair(attempt *self)
{
    return with_pair(self, SOCK_RAW); /* which AF_UNIX takes for a datagram pair */
}

/* To occupy a name that others look for. */
static long try_name_pair(attempt *self)
{
    struct sockaddr_un at;
    socklen_t len = name_socket(&at, self->a);
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return -1;
    }
    long result = bind(ends[0], (struct sockaddr *)&at, len);
    int error = errno;
    close(ends[0]);
    close(ends[1]);
    errno = error;
    return result;
}

static long try_unix_datagram(attempt *self)
{
    struct sockaddr_un at;
    socklen_t len = name_socket(&at, self->a);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    long sent = fd >= 0 ? sendto(fd, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&at, len) : -1;
    int error = errno;
    (void)close_after(fd);
    errno = error;
    return sent == 1 ? 0 : -1;
}

static long try_udp_to(attempt *self)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)self->number),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    long sent = fd >= 0 ? sendto(fd, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&at, sizeof(at)) : -1;
    int error = errno;
    (void)close_after(fd);
    errno = error;
    return sent == 1 ? 0 : -1;
}

static long try_serve(attempt *self)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)self;
    long result = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 ? listen(fd, 1) : -1;
    int error = errno;
    (void)close_after(fd);
    errno = error;
    return result;
}

const escape_tool escape_file_tools[] = {
    {"openat2", try_openat2},
    {"reopen", try_reopen},
    {"chdir_and_read", try_chdir_and_read},
    {"open_write", try_open_write},
    {"open_both", try_open_both},
    {"readlink", try_readlink},
    {"creat", try_creat},
    {"fifo", try_fifo},
    {"node", try_node},
    {"device", try_device},
    {"nameless", try_nameless},
    {"rmdir", try_rmdir},
    {"exchange", try_exchange},
    {"link_handle", try_link_handle},
    {"follow", try_follow},
    {"execveat", try_execveat},
    {"run", try_run},
    {"chown", try_chown},
    {"give_away", try_give_away},
    {"lchown", try_lchown},
    {"fchmodat", try_fchmodat},
    {"fchmodat2", try_fchmodat2},
    {"setxattr", try_setxattr},
    {"setxattrat", try_setxattrat},
    {"setcap", try_setcap},
    {"flags", try_flags},
    {"utimes", try_utimes},
    {"set_id_open", try_set_id_open},
    {"set_id_open2", try_set_id_open2},
    {"set_id_creat", try_set_id_creat},
    {"set_id_node", try_set_id_node},
    {"set_id_nameless", try_set_id_nameless},
    {"set_id_chmod", try_set_id_chmod},
    {"set_id_fchmod", try_set_id_fchmod},
    {"set_id_fchmodat", try_set_id_fchmodat},
    {"set_id_fchmodat2", try_set_id_fchmodat2},
    {"socket", try_socket},
    {"datagram_pair", try_datagram_pair},
    {"raw_pair", try_raw_pair},
    {"name_pair", try_name_pair},
    {"unix_datagram", try_unix_datagram},
    {"udp_to", try_udp_to},
    {"serve", try_serve},
    {NULL, NULL},
};

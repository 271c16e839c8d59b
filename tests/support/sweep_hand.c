/* A server's process that does nothing but hand its standard input and output to whoever listens on
 * the socket named by its argument, and end when that one hangs up: so that a test, in its own
 * process, holds the bytes of a client that runs commands. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (argc != 2 || strlen(argv[1]) >= sizeof(address.sun_path)) {
        return 2;
    }
    memcpy(address.sun_path, argv[1], strlen(argv[1]));
    int line = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (line < 0 || connect(line, (struct sockaddr *)&address, sizeof(address)) != 0) {
        return 1;
    }
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control;
    const int ends[2] = {STDIN_FILENO, STDOUT_FILENO};
    char byte = 'x';
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof(control.room)};
    memset(&control, 0, sizeof(control));
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = CMSG_LEN(sizeof(ends));
    memcpy(CMSG_DATA(&control.head), ends, sizeof(ends));
    if (sendmsg(line, &message, 0) != 1) {
        return 1;
    }
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    return read(line, &byte, 1) == 0 ? 0 : 1;
}

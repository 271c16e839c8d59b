#include "net/peer_process.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "net/descendants.h"

enum {
    OPTION_PEERPIDFD = 77, /* SO_PEERPIDFD, Linux 6.5 */
    CALL_PIDFD_OPEN = 434, /* the same on every machine */
};

/* The process that connected, whoever has its number now; -1: it has ended, or is unknown. */
static int open_process(int descriptor, pid_t pid)
{
    int process = -1;
    socklen_t len = sizeof(process);
    if (getsockopt(descriptor, SOL_SOCKET, OPTION_PEERPIDFD, &process, &len) == 0) {
        return process;
    }
    return errno == ENOPROTOOPT ? (int)syscall(CALL_PIDFD_OPEN, pid, 0U) : -1;
}

static bool has_ended(int process)
{
    struct pollfd end = {.fd = process, .events = POLLIN};
    return poll(&end, 1, 0) != 0;
}

peer_standing peer_process_check(int descriptor)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0) {
        return PEER_UNDECIDED;
    }
    if (peer.uid != geteuid() && peer.uid != 0) {
        return PEER_OTHER_USER;
    }
    if (peer.pid <= 0) { /* of a namespace that is not inside ours */
        return PEER_UNDECIDED;
    }
    int process = open_process(descriptor, peer.pid);
    if (process < 0) {
        return PEER_UNDECIDED;
    }
    descendants_answer answer = descendants_find(peer.pid);
    /* While it runs its number is not reused: what was read belongs to it. */
    bool is_known = !has_ended(process);
    close(process);
    if (!is_known || answer == DESCENDANTS_UNKNOWN) {
        return PEER_UNDECIDED;
    }
    return answer == DESCENDANTS_YES ? PEER_DESCENDANT : PEER_ADMITTED;
}

/* Identifies the process at the other end of a Unix socket, and decides whether it may be served:
 * it must run as this user or as root, and this process must not have started it, directly or
 * through others. */
#ifndef NET_PEER_PROCESS_H
#define NET_PEER_PROCESS_H

#include "patchbay/types.h"

typedef enum peer_standing {
    PEER_ADMITTED,
    PEER_OTHER_USER, /* neither this user nor root */
    PEER_DESCENDANT, /* this process started it, directly or through others */
    PEER_UNDECIDED,  /* one of these could not be excluded: it has ended, or is hidden */
} peer_standing;

/* Checks the process that connected. Call it as soon as the connection is accepted: before Linux
 * 6.5 another process may have got the number of an ended one. An ended process is undecided. Reads
 * a few files of /proc. Threads: any. */
peer_standing peer_process_check(int descriptor);

#endif

/* Which process is at the other end of a Unix socket, and whether it may be listened to: it runs as
 * this user or as root, and this process did not start it, directly or through others. */
#ifndef NET_PEER_PROCESS_H
#define NET_PEER_PROCESS_H

#include "patchbay/types.h"

typedef enum peer_standing {
    PEER_ADMITTED,
    PEER_OTHER_USER, /* neither this user nor root */
    PEER_DESCENDANT, /* this process started it, directly or through others */
    PEER_UNDECIDED,  /* one of these could not be ruled out: it has ended, or is hidden */
} peer_standing;

/* Looks at the process that connected. Ask as soon as the connection is accepted: before Linux 6.5
 * another process can have got the number of one that has ended by then. A process that has ended
 * is undecided. Reads a few files of /proc. Threads: any. */
peer_standing peer_process_check(int descriptor);

#endif

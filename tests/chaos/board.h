/* What the programs of a chaos run share, by mapping one file: how often each call was executed,
 * which process plays which server, and what is to go wrong next. tests/chaos/run maps it, too; the
 * order and size of the members is its own list there. */
#ifndef CHAOS_BOARD_H
#define CHAOS_BOARD_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BOARD_SERVERS = 32, BOARD_CALLS = 4 << 20 };

typedef struct board_server {
    uint32_t pid;      /* who plays it now */
    uint32_t delay_ms; /* added to each of its answers */
    uint32_t cuts;     /* so many of its answers are yet to be cut in their middle */
    uint32_t changes;  /* of its tools; a change is announced */
} board_server;

typedef struct board {
    board_server servers[BOARD_SERVERS];
    uint32_t is_crashing; /* the gateway has been killed, and connections break for that reason */
    uint32_t executed[BOARD_CALLS]; /* by the number of the call */
} board;

/* Maps the file at `path`, which is made when it is not there. Exits when that cannot be. */
static inline board *board_open(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *at = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, (off_t)sizeof(board)) == 0) {
        at = mmap(NULL, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (at == MAP_FAILED) {
        perror(path);
        exit(1);
    }
    close(fd);
    return at;
}

#endif

/* Returns memory that the C library's heap keeps for later. Only base/mem.c calls these. */
#ifndef BASE_TRIM_H
#define BASE_TRIM_H

void trim_heap(void);         /* returns all of it to the system */
void trim_large_blocks(void); /* from now on blocks of 1 MiB or more are not kept */

#endif

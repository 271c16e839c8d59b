/* Gives memory that the heap keeps for later back to the system. Only base/mem.c calls this. */
#ifndef BASE_TRIM_H
#define BASE_TRIM_H

void trim_heap(void);

#endif

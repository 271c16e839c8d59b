/* What the C library's heap keeps for later. Only base/mem.c calls these. */
#ifndef BASE_TRIM_H
#define BASE_TRIM_H

void trim_heap(void);         /* gives it back to the system */
void trim_large_blocks(void); /* blocks of a megabyte and more are not kept from now on */

#endif

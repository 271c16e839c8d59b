/* Random bytes from the kernel. */
#ifndef BASE_RAND_H
#define BASE_RAND_H

#include "patchbay/types.h"

void rand_bytes(void *at, size_t len); /* fit for keys; stops the process if the kernel has none */
uint64_t rand_u64(void);
/* A new UUID as text (RFC 9562, version 4), with a NUL. */
void rand_uuid(char out[37]);

#endif

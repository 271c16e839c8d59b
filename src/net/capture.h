/* What a file holds, or what a program writes to its stdout, whole and bounded in bytes and time.
 * Blocks the thread that calls, for `timeout_ms` at most: for the loading of a configuration, not for
 * serving. With 0 a file that is none (a FIFO, a terminal) is an error at once.
 *
 * For the whole header: `out` gets at most `size` bytes. Errors: NULL is success; else why not, for
 * a person, static. */
#ifndef NET_CAPTURE_H
#define NET_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

const char *capture_file(const char *path, uint32_t timeout_ms, char *out, size_t size,
                         size_t *out_len);
/* The same, appended: at most what `out` may still hold. */
const char *capture_file_into(const char *path, uint32_t timeout_ms, buf *out);
/* Without a shell: `argv` ends in NULL, argv[0] is a path. The program has its own process group, no
 * stdin, and a stderr that nobody reads; one that fails or is late is an error, and a late one is
 * killed with what it started. */
const char *capture_program(char *const *argv, uint32_t timeout_ms, char *out, size_t size,
                            size_t *out_len);

#endif

/* What the files of the escape server share: an attempt, and the tables of tools. */
#ifndef ESCAPE_H
#define ESCAPE_H

#include <stddef.h>

enum { WORD = 1024 };

typedef struct attempt {
    char a[WORD];
    char b[WORD];
    long number; /* of a */
    char said[4 * WORD];
} attempt;

/* What an attempt returns: 0, or -1 with errno. `said` may hold more. */
typedef long (*try_function)(attempt *self);

typedef struct escape_tool {
    const char *name; /* NULL: the end of a table */
    try_function function;
} escape_tool;

extern const escape_tool escape_file_tools[];
extern const escape_tool escape_kernel_tools[];

/* Closes a descriptor and keeps errno. 0: it was one. */
long close_after(int fd);
/* Makes the attempt in a child, because it would change or end whoever makes it. */
long in_child(try_function function, attempt *self);

#endif

/* The two things that belong to the process: its allocator, and the sink of lines that belong to no
 * object. */
#include "patchbay/library.h"

#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/shown.h"

/* As much of the struct as this version knows. */
enum { ALLOCATOR_BYTES = sizeof(bay_allocator) };

bay_err bay_set_allocator(const bay_allocator *allocator)
{
    if (allocator == NULL || allocator->size < ALLOCATOR_BYTES || allocator->alloc == NULL ||
        allocator->resize == NULL || allocator->release == NULL) {
        return BAY_ERR_INVALID;
    }
    if (mem_was_used()) {
        return BAY_ERR_STATE;
    }
    mem_set_hooks(
        &(mem_hooks){allocator->alloc, allocator->resize, allocator->release, allocator->user});
    return BAY_OK;
}

void bay_print(FILE *to, bay_str text)
{
    if (to == NULL) {
        return;
    }
    if (isatty(fileno(to)) == 1) {
        shown_write(to, text, SHOWN_TEXT);
    } else if (text.len > 0) { /* an empty one may be NULL */
        fwrite(text.at, 1, text.len, to);
    }
}

void bay_log(bay_log_level level, const char *component, const char *text)
{
    LOG(level, component != NULL ? component : "", "%s", text != NULL ? text : "");
}

void bay_log_to(bay_log_level most_verbose, bay_log_fn sink, void *user)
{
    log_set_sink(most_verbose, sink, user);
}

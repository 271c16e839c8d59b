/* What the library asks of the process it lives in: memory, and where its log goes.
 *
 * There is no other state of the process: every object stands for itself, and two of them share
 * nothing unless one was given to the other. (SIGPIPE, where nobody handles it, is ignored once an
 * object is connected to something.)
 *
 * Errors: a function that names none cannot fail. Units: lengths in bytes. Source: this library's
 * own, where no other is named. */
#ifndef PATCHBAY_LIBRARY_H
#define PATCHBAY_LIBRARY_H

#include <patchbay/types.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An allocator. `size` is sizeof(bay_allocator), so that later versions may add members. `resize`
 * and `release` are given NULL for nothing. All three may be called from any thread. */
typedef struct bay_allocator {
    size_t size;
    void *(*alloc)(size_t bytes, void *user);
    void *(*resize)(void *old, size_t bytes, void *user);
    void (*release)(void *old, void *user);
    void *user;
} bay_allocator;

/* Replaces malloc for everything the library allocates; what libuv, OpenSSL, SQLite and PCRE2 need
 * for themselves comes from where those were told. Owns: copied; `user` must outlive the last
 * object. Errors: BAY_ERR_INVALID (a member is missing, the size is wrong), BAY_ERR_STATE (an
 * object was made already, whatever has become of it). Units: bytes. Threads: before any other call
 * of the library. */
BAY_API bay_err bay_set_allocator(const bay_allocator *allocator) BAY_MUST_CHECK;

typedef enum bay_log_level {
    BAY_LOG_LEVEL_ERROR,
    BAY_LOG_LEVEL_WARNING,
    BAY_LOG_LEVEL_INFO,
    BAY_LOG_LEVEL_DEBUG,
} bay_log_level;

/* One line of the log. `text` ends in NUL, has at most 1,023 bytes and no secrets; what a terminal
 * would obey or a reader would not see is in it as bay_print shows it. So is `component`. Called
 * from whatever thread has something to say; must not call the object it is of. */
typedef void (*bay_log_fn)(bay_log_level level, const char *component, const char *text,
                           void *user);

/* Where lines go that belong to no object with a sink of its own (bay_server_log_to,
 * bay_client_options_log_to). Without any sink they are dropped; the library never prints. Owns:
 * `user` stays the caller's. Threads: before objects are made. */
BAY_API void bay_log_to(bay_log_level most_verbose, bay_log_fn sink, void *user);

/* Writes a line to that sink, as the library writes its own; what is longer is cut. `component` says
 * who writes; NULL: nobody. Owns: nothing. Threads: any. */
BAY_API void bay_log(bay_log_level level, const char *component, const char *text);

/* Writes text of a peer (an answer, a question, a name, a description) for a person. If `to` is a
 * terminal, then characters that a terminal obeys, that reorder a line or that nobody sees are
 * shown by their code points, "\u{202e}", and bytes that are not UTF-8 as "\x{ff}"; newlines and
 * tabs stay. Else the bytes are written unchanged. Logs and the text of a bay_diag are shown so
 * already. Owns: nothing. Errors: as fwrite, kept by the stream. Threads: any. Source: Unicode
 * Standard Annex 44 (Default_Ignorable_Code_Point), Unicode Technical Report 36. */
BAY_API void bay_print(FILE *to, bay_str text);

#ifdef __cplusplus
}
#endif
#endif

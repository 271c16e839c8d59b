/* The words every other public header is made of: strings, errors, diagnostics.
 *
 * Nothing here allocates and nothing here is thread-bound: the types are plain values.
 * Errors: no function here fails. Units: lengths in bytes. Source: this library's own. */
#ifndef PATCHBAY_TYPES_H
#define PATCHBAY_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BAY_API __attribute__((visibility("default")))
#define BAY_MUST_CHECK __attribute__((warn_unused_result))
#define BAY_PRINTF(text_at, first) __attribute__((format(printf, text_at, first)))
#else
#define BAY_API
#define BAY_MUST_CHECK
#define BAY_PRINTF(text_at, first)
#endif

/* Bytes that somebody else owns. Never assumed to end in NUL; `at` may be NULL when `len` is 0. */
typedef struct bay_str {
    const char *at;
    size_t len;
} bay_str;

/* For "%.*s". */
#define BAY_STR(s) (int)(s).len, (s).at

/* Every error: name, class, text.
 * Classes: NONE; LOCAL (our caller or this machine is at fault), PEER (the other side is at fault),
 * RETRY (the same call may succeed later), FATAL (the object is of no further use). */
#define BAY_ERRORS(X)                                                                              \
    X(OK, NONE, "ok")                                                                              \
    X(NOMEM, LOCAL, "out of memory")                                                               \
    X(INVALID, LOCAL, "invalid argument")                                                          \
    X(STATE, LOCAL, "not possible in this state")                                                  \
    X(LIMIT, PEER, "a stated limit was exceeded")                                                  \
    X(SYNTAX, PEER, "malformed input")                                                             \
    X(UTF8, PEER, "invalid UTF-8")                                                                 \
    X(DEPTH, PEER, "nested too deeply")                                                            \
    X(TYPE, PEER, "a value of another type was expected")                                          \
    X(RANGE, PEER, "the number cannot be represented exactly")                                     \
    X(NOTFOUND, LOCAL, "not found")                                                                \
    X(DUPLICATE, PEER, "present more than once")                                                   \
    X(PROTOCOL, PEER, "the peer broke the protocol")                                               \
    X(UNSUPPORTED, PEER, "not supported by the peer")                                              \
    X(VERSION, PEER, "no protocol version in common")                                              \
    X(DENIED, PEER, "refused")                                                                     \
    X(CANCELLED, LOCAL, "cancelled")                                                               \
    X(TIMEOUT, RETRY, "timed out")                                                                 \
    X(AGAIN, RETRY, "would block; try again when drained")                                         \
    X(BUSY, RETRY, "too many of these at once")                                                    \
    X(CLOSED, RETRY, "the connection is closed")                                                   \
    X(CONNECT, RETRY, "could not connect")                                                         \
    X(RESOLVE, RETRY, "could not resolve the host name")                                           \
    X(TLS, PEER, "TLS failed")                                                                     \
    X(IO, LOCAL, "input/output error")                                                             \
    X(SPAWN, LOCAL, "could not start the process")                                                 \
    X(EXITED, RETRY, "the process exited")                                                         \
    X(REMOTE, PEER, "the peer answered with an error")                                             \
    X(EOF, NONE, "end of input")                                                                   \
    X(INTERNAL, FATAL, "internal error")

typedef enum bay_err {
#define BAY_ERROR_ENUM(name, class_name, text) BAY_##name,
    BAY_ERRORS(BAY_ERROR_ENUM)
#undef BAY_ERROR_ENUM
        BAY_ERROR_COUNT
} bay_err;

typedef enum bay_err_class {
    BAY_CLASS_NONE,
    BAY_CLASS_LOCAL,
    BAY_CLASS_PEER,
    BAY_CLASS_RETRY,
    BAY_CLASS_FATAL,
} bay_err_class;

/* What went wrong, where and what to do. `offset` is in bytes of the input the error is about;
 * `line` counts from 1 and is 0 where lines make no sense. `text` ends in NUL. */
typedef struct bay_diag {
    bay_err code;
    uint32_t line;
    size_t offset;
    char text[240];
    uint64_t reserved[4]; /* of later versions; leave alone */
} bay_diag;

/* What a server offers, and a client lists. Bits, where several may be meant. */
typedef enum bay_kind {
    BAY_TOOLS = 1,
    BAY_PROMPTS = 2,
    BAY_RESOURCES = 4,
    BAY_TEMPLATES = 8, /* resource templates */
    BAY_SKILLS = 16,   /* extension io.modelcontextprotocol/skills */
} bay_kind;

/* How a person answered a question (elicitation). */
typedef enum bay_action {
    BAY_NO_ANSWER, /* the client cannot be asked, is gone, or took too long */
    BAY_ACCEPT,
    BAY_DECLINE, /* the person said no */
    BAY_CANCEL,  /* the person said nothing: closed the dialog */
} bay_action;

/* The text of an error. Owns: static storage. Threads: any. Source: the table above. */
BAY_API const char *bay_err_text(bay_err err);

/* The class of an error. Owns: nothing. Threads: any. Source: the table above. */
BAY_API bay_err_class bay_err_class_of(bay_err err);

/* The version of the library, "major.minor.patch". Owns: static storage. Threads: any. */
BAY_API const char *bay_version(void);

#ifdef __cplusplus
}
#endif
#endif

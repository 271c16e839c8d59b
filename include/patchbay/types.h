/* The words every other public header is made of: strings, errors, diagnostics.
 *
 * For the whole header: Owns: nothing is taken or given, but by bay_str_dup and bay_free; texts that
 * are returned as const are static. Errors: a function that names none cannot fail. Units: lengths
 * in bytes. Threads: any. Source: this library's own, but for the states of tasks: A2A 1.0.1
 * section 4.1.3. */
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

/* A view of a text that ends in NUL; NULL: an empty one. */
BAY_API bay_str bay_str_of(const char *text);
/* Bytes are compared; an empty text equals an empty text, whatever its `at`. */
BAY_API bool bay_str_eq(bay_str a, bay_str b);
BAY_API bool bay_str_eq_c(bay_str a, const char *b);
BAY_API bool bay_str_starts(bay_str text, const char *prefix);
/* A copy that ends in NUL, for bay_free. NULL: out of memory; or the text has a NUL byte inside,
 * where a C string would end and mean something else. */
BAY_API char *bay_str_dup(bay_str text);
/* The same into `size` bytes at `out`. False: it does not fit, or has a NUL byte; `out` is "". */
BAY_API bool bay_str_copy(bay_str text, char *out, size_t size) BAY_MUST_CHECK;

/* Every error. In brackets its class: none; local (the program or this machine is at fault); peer
 * (the other side is at fault); retry (the same call may succeed later); fatal (the object is of no
 * further use). */
typedef enum bay_err {
    BAY_OK,              /* ok [none] */
    BAY_ERR_NOMEM,       /* out of memory [local] */
    BAY_ERR_INVALID,     /* invalid argument [local] */
    BAY_ERR_STATE,       /* not possible in this state [local] */
    BAY_ERR_LIMIT,       /* a stated limit was exceeded [peer] */
    BAY_ERR_SYNTAX,      /* malformed input [peer] */
    BAY_ERR_UTF8,        /* invalid UTF-8 [peer] */
    BAY_ERR_DEPTH,       /* nested too deeply [peer] */
    BAY_ERR_TYPE,        /* a value of another type was expected [peer] */
    BAY_ERR_RANGE,       /* the number cannot be represented exactly [peer] */
    BAY_ERR_NOT_FOUND,   /* not found [local] */
    BAY_ERR_DUPLICATE,   /* present more than once [peer] */
    BAY_ERR_PROTOCOL,    /* the peer broke the protocol [peer] */
    BAY_ERR_UNSUPPORTED, /* not supported by the peer [peer] */
    BAY_ERR_VERSION,     /* no protocol version in common [peer] */
    BAY_ERR_DENIED,      /* refused [peer] */
    BAY_ERR_CANCELLED,   /* cancelled [local] */
    BAY_ERR_TIMEOUT,     /* timed out [retry] */
    BAY_ERR_AGAIN,       /* would block; try again when drained [retry] */
    BAY_ERR_BUSY,        /* too many of these at once [retry] */
    BAY_ERR_CLOSED,      /* the connection is closed [retry] */
    BAY_ERR_CONNECT,     /* could not connect [retry] */
    BAY_ERR_RESOLVE,     /* could not resolve the host name [retry] */
    BAY_ERR_TLS,         /* TLS failed [peer] */
    BAY_ERR_IO,          /* input/output error [local] */
    BAY_ERR_SPAWN,       /* could not start the process [local] */
    BAY_ERR_EXITED,      /* the process exited [retry] */
    BAY_ERR_REMOTE,      /* the peer answered with an error [peer] */
    BAY_ERR_EOF,         /* end of input [none] */
    BAY_ERR_INTERNAL,    /* internal error [fatal] */
} bay_err;

typedef enum bay_err_class {
    BAY_ERR_CLASS_NONE,
    BAY_ERR_CLASS_LOCAL,
    BAY_ERR_CLASS_PEER,
    BAY_ERR_CLASS_RETRY,
    BAY_ERR_CLASS_FATAL,
} bay_err_class;

/* The whole text is a number: "-7"; "0.5", "1e9", as JSON writes numbers. BAY_ERR_SYNTAX: it is none;
 * BAY_ERR_RANGE: it is no int64_t, or beyond double. `out` stays as it was. */
BAY_API bay_err bay_str_to_int(bay_str text, int64_t *out) BAY_MUST_CHECK;
BAY_API bay_err bay_str_to_double(bay_str text, double *out) BAY_MUST_CHECK;

/* Gives back what a function says the caller frees with it; NULL is fine. */
BAY_API void bay_free(void *memory);

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
    BAY_KIND_TOOLS = 1,
    BAY_KIND_PROMPTS = 2,
    BAY_KIND_RESOURCES = 4,
    BAY_KIND_TEMPLATES = 8, /* resource templates */
    BAY_KIND_SKILLS = 16,   /* extension io.modelcontextprotocol/skills */
} bay_kind;

/* How a person answered a question (elicitation). */
typedef enum bay_action {
    BAY_ACTION_NONE, /* the client cannot be asked, is gone, or took too long */
    BAY_ACTION_ACCEPT,
    BAY_ACTION_DECLINE, /* the person said no */
    BAY_ACTION_CANCEL,  /* the person said nothing: closed the dialog */
} bay_action;

/* How far a task is, of MCP or A2A, by the numbers of A2A's TaskState. COMPLETED, FAILED, CANCELLED
 * and REJECTED end it; INPUT_REQUIRED and AUTH_REQUIRED interrupt it. */
typedef enum bay_task_state {
    BAY_TASK_STATE_UNKNOWN, /* no task, or a state of a later version */
    BAY_TASK_STATE_SUBMITTED,
    BAY_TASK_STATE_WORKING,
    BAY_TASK_STATE_COMPLETED,
    BAY_TASK_STATE_FAILED,
    BAY_TASK_STATE_CANCELLED,
    BAY_TASK_STATE_INPUT_REQUIRED,
    BAY_TASK_STATE_REJECTED,      /* A2A */
    BAY_TASK_STATE_AUTH_REQUIRED, /* A2A */
} bay_task_state;

/* The text of an error. */
BAY_API const char *bay_err_text(bay_err err);

/* The class of an error; fatal: of what is no error. */
BAY_API bay_err_class bay_err_class_of(bay_err err);

/* A2A's word for a state: "submitted", "input-required", "canceled", …. */
BAY_API const char *bay_task_state_text(bay_task_state state);
BAY_API bool bay_task_state_is_final(bay_task_state state);

/* The version of the library, "major.minor.patch". */
BAY_API const char *bay_version(void);

#ifdef __cplusplus
}
#endif
#endif

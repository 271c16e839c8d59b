/* What a program sets before it connects, for a client of servers and for a caller of agents alike:
 * lists of settings, header fields, TLS, the log. Each option object has one as its `base`.
 *
 * Invariant: the first fault of filling is kept and returned by the connect; nothing after it is
 * taken. Values of settings are secrets: they are wiped before they are freed. */
#ifndef SDK_ASKER_OPTIONS_H
#define SDK_ASKER_OPTIONS_H

#include "base/log.h"
#include "http/http_client.h"
#include "net/loop.h"
#include "net/tls.h"

enum { ASKER_SETTING_BYTES = 1 << 20 /* one setting */ };

typedef struct asker_setting {
    char *name;  /* ends in NUL */
    char *value; /* the same, or NULL */
} asker_setting;

typedef struct asker_settings {
    asker_setting *at;
    size_t count;
    size_t cap;
} asker_settings;

/* Appends copies. BAY_ERR_LIMIT: there are `most` already, or one is too long. */
bay_err asker_settings_add(asker_settings *self, size_t most, const char *name,
                           const char *value) BAY_MUST_CHECK;
void asker_settings_fini(asker_settings *self);

typedef struct asker_options {
    const char *noun; /* "client", "caller": for messages */
    size_t most;      /* settings of each list */
    bay_err err;      /* the first fault ... */
    char fault[160];  /* ... and its text */
    asker_settings headers;
    char *ca_file, *certificate_file, *key_file; /* NULL: none */
    bool is_insecure;
    struct bay_oauth *oauth; /* NULL: none; a reference */
    log_target log;          /* no sink: the process's */
} asker_options;

void asker_options_init(asker_options *self, const char *noun, size_t most);
void asker_options_fini(asker_options *self);
/* A deep copy, into memory that holds nothing. A fault is kept like one of filling. */
void asker_options_copy(asker_options *self, const asker_options *from);
/* The fault, if there is one. */
bay_err asker_options_check(const asker_options *self, bay_diag *diag) BAY_MUST_CHECK;

void asker_options_fault(asker_options *self, bay_err err, const char *format, ...)
    BAY_PRINTF(3, 4);
/* `what` the list holds, in the plural. */
void asker_options_add(asker_options *self, asker_settings *to, const char *name, const char *value,
                       const char *what);
void asker_options_add_all(asker_options *self, asker_settings *to, const asker_settings *from,
                           const char *what);
/* Frees what is at `place`, and puts a copy there; NULL: nothing. */
void asker_options_replace(asker_options *self, char **place, const char *text, const char *what);

void asker_options_header(asker_options *self, const char *name, const char *value);
void asker_options_tls(asker_options *self, const char *ca_file, const char *certificate_file,
                       const char *key_file);

/* An HTTP client with these TLS options. The caller frees both, the client first; on failure there
 * is neither. BAY_ERR_TLS: a file cannot be used. */
bay_err asker_options_http(const asker_options *self, loop *on, const http_client_limits *limits,
                           tls_context **out_tls, http_client **out, bay_diag *diag) BAY_MUST_CHECK;

#endif

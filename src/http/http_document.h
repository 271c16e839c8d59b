/* One document over HTTP, as a whole and limited in bytes and time: an agent's card, a key set,
 * metadata of an authorization server, the answer of its token endpoint. Redirects are ordinary
 * answers. */
#ifndef HTTP_HTTP_DOCUMENT_H
#define HTTP_HTTP_DOCUMENT_H

#include "base/buf.h"
#include "http/http_client.h"

enum { HTTP_DOCUMENT_ETAG_BYTES = 128, HTTP_DOCUMENT_MS = 15000 };

typedef struct http_document http_document;

/* Called exactly once, unless http_document_fini ended it first; may begin the next one. `err`
 * BAY_OK: an answer of any status. `text`: the error, for people. */
typedef void (*http_document_done)(void *user, bay_err err, const char *text);

typedef struct http_document_spec {
    bay_str url;
    bay_str method;           /* "": GET */
    const http_field *fields; /* borrowed for the call */
    size_t field_count;
    bay_str body;        /* borrowed for the call; of a POST */
    size_t max_bytes;    /* of the answer */
    uint32_t timeout_ms; /* for all of it; 0: HTTP_DOCUMENT_MS */
    bool is_secret;      /* the answer is wiped when it is freed */
    /* NULL: none; outlives the call. While it waits, the time-out does not run. */
    http_authority *authority;
    /* The fields of the answer, before its body; views live for the call only. May be NULL. */
    void (*head)(void *user, int status, const http_field *fields, size_t count);
} http_document_spec;

/* Embedded in its owner; the answer may be read from `done` on until the next start. */
struct http_document {
    loop *loop;
    http_call *call; /* NULL: nothing is under way */
    loop_timer timeout_timer;
    uint32_t timeout_ms;
    http_document_done done;
    void (*head)(void *user, int status, const http_field *fields, size_t count);
    void *user;
    int status;
    buf body;
    char etag[HTTP_DOCUMENT_ETAG_BYTES]; /* "": none, or a longer one */
    bool may_be_json;                    /* its Content-Type does not exclude it */
    bool has_max_age;
    uint64_t max_age_s;
};

void http_document_init(http_document *self, loop *loop);
void http_document_fini(http_document *self); /* cancels */
bool http_document_is_busy(const http_document *self);

/* Nothing may be under way. Errors: as http_client_call, and `done` is not called then. */
bay_err http_document_start(http_document *self, http_client *http, const http_document_spec *spec,
                            http_document_done done, void *user, bay_diag *diag) BAY_MUST_CHECK;

#endif

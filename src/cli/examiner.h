/* The examination of one server or agent: what conformance_mcp.c and conformance_a2a.c ask by. */
#ifndef CLI_EXAMINER_H
#define CLI_EXAMINER_H

#include "cli/wire.h"
#include "mcp/protocol.h"
#include "trust/findings.h"

typedef enum conformance {
#define CONFORMANCE(symbol, id, severity, clause, why, remedy) CONFORMANCE_##symbol,
#include "cli/conformance.def"
    CONFORMANCE_COUNT
} conformance;

enum { EXAMINER_ID_BYTES = 24, EXAMINER_FIELDS = 8 /* of one request */ };

typedef struct examiner {
    cli_target target;
    cli_wire *wire;
    bay_str url; /* "": the target's */
    trust_findings *findings;
    trust_silences *silences;
    bay_str server;
    const mcp_revision *revision; /* NULL: of A2A, or not agreed on yet */
    bay_str a2a_version;          /* "": of MCP */
    bay_str session;              /* Mcp-Session-Id; "": none */
    json_val capabilities;
    unsigned last_id;
    char asked[EXAMINER_ID_BYTES]; /* the id of the latest request; "": none */
    cli_exit code;                 /* not CLI_EXIT_OK: it cannot go on, which was said */
} examiner;

/* One message. What is "" is left out, or as it should be. */
typedef struct examiner_question {
    bay_str method;
    bay_str key; /* the one member of params beside _meta */
    bay_str value;
    bay_str id;      /* raw */
    bay_str version; /* of header field and _meta */
    bay_str field;   /* a header field that has … */
    bay_str field_value;
    bay_str raw; /* in place of the message */
    bool is_notification;
    bool lacks_meta;
    bool is_get;
    uint32_t wait_ms;
} examiner_question;

/* Notes what is wrong with the answer as such: envelope, id, Content-Type, shape. False: there is no answer to look at,
 * which was noted, or `code` says why. */
bool examiner_ask(examiner *self, const examiner_question *question, cli_wire_reply *out);
/* The same without a look at the answer. False: `code` says why. */
bool examiner_send(examiner *self, const examiner_question *question, cli_wire_reply *out);

/* `what`: the method or the like; `place`: a pointer in its answer, or ""; `shown`: what came. */
void examiner_note(examiner *self, conformance which, bay_str what, bay_str place, bay_str shown);
/* Notes `which` unless the answer is an error with that code. */
void examiner_expect(examiner *self, conformance which, bay_str what, const cli_wire_reply *reply,
                     int error);
/* The code of an error; 0: it is none. */
int examiner_error(const cli_wire_reply *reply);
/* A result, or JSON_NONE. */
json_val examiner_result(const cli_wire_reply *reply);
bool examiner_is_http(const examiner *self);

void conformance_mcp(examiner *self);
void conformance_a2a(examiner *self);

#endif

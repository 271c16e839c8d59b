/* Single messages to a server or agent, as they are: none is mended, and every answer is shown, also one that no client
 * would accept. What speaks a protocol is mcp_link; this is for looking at who is on the other end. */
#ifndef CLI_WIRE_H
#define CLI_WIRE_H

#include "cli/target.h"
#include "json/json.h"

enum {
    CLI_WIRE_BYTES = 16 << 20,   /* of one answer */
    CLI_WIRE_MEMORY = 256 << 20, /* of all answers of one connection */
    CLI_WIRE_MS = 5000,          /* for one answer, unless --timeout is less */
};

typedef struct cli_wire cli_wire;

typedef struct cli_wire_request {
    bay_str text; /* the message; "": none, as of GET */
    bay_str id;   /* raw, of the answer that is awaited; "": none is */
    /* HTTP: */
    bay_str http_method; /* "": POST */
    const http_field *fields;
    size_t field_count;
    uint32_t wait_ms; /* 0: CLI_WIRE_MS; on a pipe, how long it is looked whether something comes */
} cli_wire_request;

typedef enum cli_wire_end {
    CLI_WIRE_ANSWERED, /* on a pipe by a message with that id; over HTTP by any reply */
    CLI_WIRE_SILENT,   /* by nothing, in that time */
    CLI_WIRE_CLOSED,   /* the process ended, or the connection failed */
} cli_wire_end;

/* Views live as long as the wire. */
typedef struct cli_wire_reply {
    cli_wire_end end;
    int status; /* HTTP; 0: none */
    bay_str content_type;
    bay_str session;  /* Mcp-Session-Id; "": none */
    bay_str text;     /* the message, else the body */
    json_val message; /* JSON_NONE: it is no JSON, or there is none */
    size_t
        strangers; /* on a pipe: lines that came and are no message, or answer nothing that was asked */
    bay_str stranger; /* the first of them */
} cli_wire_reply;

/* `url`: where the messages go, in place of the target's; "": to the target. What failed was said on stderr. `target`
 * outlives it. */
cli_exit cli_wire_open(const cli_target *target, bay_str url, cli_wire **out);
void cli_wire_close(cli_wire *self); /* NULL is fine */

/* Errors: what is wrong here and not there: memory, a signal; it was said. */
cli_exit cli_wire_ask(cli_wire *self, const cli_wire_request *request, cli_wire_reply *out);

#endif

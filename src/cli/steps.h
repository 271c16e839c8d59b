/* What `step` shows: each message as it went over the wire, and after it what the host knows now
 * that it did not know before. The writer holds a message back until the engine has read it, so
 * that message and knowledge come together.
 *
 * Secrets stay out: of header fields that carry one, only the first characters are shown. */
#ifndef CLI_STEPS_H
#define CLI_STEPS_H

#include "cli/output.h"
#include "mcp/client.h"
#include "json/writer.h"

enum { CLI_STEPS_BYTES = 256 * 1024 * 1024 };

/* What the host knows of the server. */
typedef struct cli_known {
    mcp_client_state state;
    const mcp_revision *revision; /* NULL: not yet */
    bay_str server_info;          /* raw; empty: not said */
    bay_str capabilities;         /* raw; empty: not said */
    const char *transport;
    size_t counts[4]; /* tools, resources, templates, prompts; SIZE_MAX: not asked */
} cli_known;

typedef enum cli_probe {
    CLI_PROBE_NONE,     /* not asked */
    CLI_PROBE_ASKED,    /* server/discover is under way, or was never answered */
    CLI_PROBE_ANSWERED, /* by a result */
    CLI_PROBE_REFUSED,  /* by an error */
} cli_probe;

typedef struct cli_steps {
    const output *device;
    bool is_json;
    buf text; /* what is not printed yet */
    bool has_message;
    bool is_answer;     /* the one held back */
    json_writer writer; /* inside the object of the message held back */
    size_t count;
    uint64_t start_ms;
    bay_str methods[8]; /* of our last requests, by id: static text of the method table */
    uint64_t ids[8];
    cli_probe probe;
    int probe_error;
    bool has_session;
    bool is_session_told;
    cli_known told; /* strings: only whether they were told */
    buf told_info;
    buf told_capabilities;
} cli_steps;

void cli_steps_init(cli_steps *self, const output *device, bool is_json, uint64_t now_ms);
void cli_steps_fini(cli_steps *self);

/* A message went out or came in. Anything held back must have been settled before. */
void cli_steps_message(cli_steps *self, bool is_outgoing, bay_str message, const mcp_field *fields,
                       size_t count, uint64_t now_ms);
/* Is an answer held back? What it means may be known only when whoever asked has read it. */
bool cli_steps_holds_answer(const cli_steps *self);
/* Completes the message held back with what is known now; nothing is held back afterwards. `text`
 * then holds what is to be printed. */
void cli_steps_settle(cli_steps *self, const cli_known *known);

/* Appends a field's value, or what may be shown of it. */
void cli_steps_field_value(buf *out, bay_str name, bay_str value);

#endif

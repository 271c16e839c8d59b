/* The TARGET of a command, with whatever the configuration says of it. */
#ifndef CLI_TARGET_H
#define CLI_TARGET_H

#include "base/arena.h"
#include "cli/arguments.h"
#include "net/sandbox.h"
#include "net/tls.h"
#include "wire/field.h"

enum { CLI_TARGET_SHOWN_BYTES = 200 };

typedef struct cli_target {
    bool is_process;
    bay_str name;                       /* component of what its stderr says in the log */
    char shown[CLI_TARGET_SHOWN_BYTES]; /* for messages: no user information, no query */

    bay_str url;
    const http_field *fields;
    size_t field_count;
    bay_str token;                         /* of --token-file, as Authorization has it; "": none */
    const config_credentials *credentials; /* as whom the gateway calls it; NULL: none */
    const config_credentials *granted; /* what its users are granted is in the vault; NULL: not */
    bool is_sse;
    tls_options tls;

    const char *const *argv;
    const char *const *env;         /* NULL: inherited */
    const char *cwd;                /* NULL: inherited */
    const sandbox_options *sandbox; /* NULL: none */

    mcp_revision_id oldest;
    mcp_revision_id newest;
    uint32_t timeout_ms; /* of a call */
    uint32_t total_ms;   /* bound that progress does not extend; 0: the client's default */
    uint32_t probe_ms;
    uint32_t connect_ms;

    const config *config; /* NULL: none was needed */
    arena memory;
    buf secrets; /* values of header fields and variables; wiped */
} cli_target;

/* Reads the configuration only when the target is a name. Says itself what is wrong: then the exit
 * code is not CLI_EXIT_OK. In any case: cli_target_fini. */
cli_exit cli_target_resolve(cli_target *out, const cli_arguments *arguments);
void cli_target_fini(cli_target *self);
/* What the command line says of TLS, else the configuration (NULL: nothing). Borrowed from both. */
tls_options cli_tls_options(const cli_arguments *arguments, const config_server_tls *configured);

#endif

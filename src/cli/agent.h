/* One conversation of a command with an AGENT, as plain calls that return when the answer is there.
 * SIGINT and SIGTERM end what is under way, and the exit code is 128 and the signal's number; tasks
 * of the agent go on. Whatever goes wrong is said on stderr; the caller only passes the code on. */
#ifndef CLI_AGENT_H
#define CLI_AGENT_H

#include "cli/arguments.h"
#include "cli/output.h"
#include "patchbay/caller.h"

typedef struct cli_agent cli_agent;

/* `*out` is set also on failure once there is something to close; NULL: there is nothing. */
cli_exit cli_agent_open(const cli_arguments *arguments, cli_agent **out);
/* NULL is fine. Returns `code`, or the one of a signal that came. */
cli_exit cli_agent_close(cli_agent *self, cli_exit code);
bay_caller *cli_agent_caller(cli_agent *self);

/* Runs the operation (which it takes) to its end. CLI_EXIT_OK: with a response, the caller's. */
cli_exit cli_agent_run(cli_agent *self, bay_caller_request *operation, bay_caller_reply **out);

/* The file of a name ("-": stdin), appended. Says itself what is wrong; `what`: the option. */
cli_exit cli_agent_read_file(const char *name, const char *what, buf *out);

/* What a response says, as text: messages and artifacts. */
void cli_agent_put(const output *device, buf *out, const bay_caller_reply *response);
/* A message's or an artifact's parts. */
void cli_agent_put_parts(const output *device, buf *out, const bay_message *message);
/* State and ids, on stderr; and the exit code that tells of the state. */
cli_exit cli_agent_say_state(const bay_caller_reply *response);

#endif

/* The admin socket of a running gateway: where it is, and one question to it. */
#ifndef CLI_ADMIN_CLIENT_H
#define CLI_ADMIN_CLIENT_H

#include "cli/arguments.h"
#include "net/socket.h"

enum { CLI_ADMIN_ANSWER_BYTES = 32 << 20 };

/* Where a gateway listens that is not told where, and where it is looked for:
 * $XDG_RUNTIME_DIR/patchbay/admin.sock (if that folder is this user's), then
 * /run/patchbay/admin.sock. "": the path is too long. False: there is no such one. */
bool cli_admin_path(size_t index, char out[SOCKET_UNIX_PATH_BYTES]);

/* For `patchbay serve`: the address ("unix:/…") of the first whose folder is there or can be made
 * and that is ours to write to; "" if there is none. */
void cli_admin_default(char out[SOCKET_UNIX_PATH_BYTES + 8]);

/* Asks the gateway that the arguments name (--socket, else the configuration, else the paths
 * above). `body` is the caller's, initialised. Says why on failure. CLI_EXIT_CONNECT: there is no
 * gateway; CLI_EXIT_TIMEOUT, CLI_EXIT_PROTOCOL, CLI_EXIT_CONFIG. */
cli_exit cli_admin_ask(const cli_arguments *arguments, bay_str method, bay_str route,
                       uint32_t timeout_ms, int *out_status, buf *body);

/* The error of an answer, on stderr. Returns the exit code for its status. */
cli_exit cli_admin_say_error(int status, bay_str body);

#endif

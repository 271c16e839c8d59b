/* One conversation of a command with its TARGET, as plain calls that return when the answer is
 * there: the loop turns inside them.
 *
 *   resolve -> open (the server is ready) -> call, call … -> close (politely)
 *
 * SIGINT and SIGTERM end what is under way, the server is told, and the exit code is 128 and the
 * signal's number; a second one ends it at once. Whatever goes wrong between here and the server is
 * said on stderr; the caller only passes the exit code on. */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include "cli/answer.h"
#include "cli/login.h"
#include "cli/target.h"

typedef struct cli_session cli_session;

typedef struct cli_session_hooks {
    /* Every message on the wire, as mcp_client_events.traced. */
    void (*traced)(void *user, bool is_outgoing, bay_str message, const mcp_field *fields,
                   size_t count);
    /* Whatever could happen now has happened; the loop is about to wait. */
    void (*turned)(void *user);
    void *user;
} cli_session_hooks;

typedef struct cli_request {
    mcp_method_id method;
    json_val params;                    /* an object; JSON_NONE: none */
    const mcp_param_table *param_table; /* of the tool; may be NULL */
    bool shows_progress;                /* on stderr, when it is a terminal */
} cli_request;

/* `hooks` may be NULL. `*out` is set also on failure once there is something to close; NULL: there
 * is nothing. */
cli_exit cli_session_open(const cli_arguments *arguments, const cli_session_hooks *hooks,
                          cli_session **out);
/* Ends politely and frees; NULL is fine. Returns `code`, or the one of a signal that came. */
cli_exit cli_session_close(cli_session *self, cli_exit code);

/* CLI_EXIT_OK: the server answered, by a result or by an error (cli_answer.kind). */
cli_exit cli_session_call(cli_session *self, const cli_request *request, cli_answer *out);

/* Says on stderr which error the server answered with. `what`: the tool, the URI …
 * Returns CLI_EXIT_REMOTE. */
cli_exit cli_session_refused(const cli_session *self, bay_str what, const cli_answer *answer);

/* A whole session of one request: opens, asks with `params`, gives the result to `print`, closes.
 * Returns the exit status; what failed was said on stderr. */
cli_exit cli_session_once(const cli_arguments *arguments, mcp_method_id method, json_val params,
                          cli_exit (*print)(const cli_arguments *arguments, json_val result));

mcp_client *cli_session_client(cli_session *self);
cli_login *cli_session_login(cli_session *self); /* NULL: requests are not authorized by a login */
/* Turns the loop until the login's flow has ended; its exit code, which was told. */
cli_exit cli_session_await_login(cli_session *self);
const char *cli_session_target(const cli_session *self); /* for messages */
const cli_target *cli_session_resolved(const cli_session *self);
const char *cli_session_transport(const cli_session *self); /* "stdio", "http" or "sse" */

#endif

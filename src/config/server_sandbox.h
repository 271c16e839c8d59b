/* From what the configuration says of a server's sandbox to what net makes of it; for the gateway
 * and for the commands that start one of its servers. */
#ifndef CONFIG_SERVER_SANDBOX_H
#define CONFIG_SERVER_SANDBOX_H

#include "base/arena.h"
#include "config/config.h"
#include "net/sandbox.h"

/* One entry of `fs`: PATH, PATH:ro or PATH:rw. False: no absolute path, or one with . or .. in it.
 */
bool server_sandbox_path(bay_str entry, bay_str *out_path, bool *out_is_writable);
/* The index of an entry that lies inside another, writable one, or fs.count. Such an entry would be
 * no less writable, and the server could put a link in its place that leads elsewhere. */
size_t server_sandbox_nested(const config_sandbox *self);
/* Does `fs` begin with the word that leaves the defaults out? */
bool server_sandbox_has_defaults(const config_sandbox *self);

/* NULL in `out`: the server has no sandbox. In `memory`, and borrowing from the config.
 * BAY_ERR_NOMEM.
 */
bay_err server_sandbox_make(const config_server *server, arena *memory,
                            const sandbox_options **out) BAY_MUST_CHECK;
/* One line on how the server is held, and a warning for what this machine cannot do. */
void server_sandbox_log(const config_server *server, const sandbox_options *sandbox);

/* Does the child get this variable ("NAME=value") of our environment? Not what its `env` names; and
 * inside a sandbox only what a program needs to run. */
bool server_inherits(const config_server *server, const char *variable);

#endif

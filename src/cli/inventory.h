/* All that a server lists, and how `list` shows it. */
#ifndef CLI_INVENTORY_H
#define CLI_INVENTORY_H

#include "cli/output.h"
#include "cli/pages.h"
#include "cli/session.h"

typedef enum cli_list {
    CLI_LIST_TOOLS,
    CLI_LIST_RESOURCES,
    CLI_LIST_TEMPLATES,
    CLI_LIST_PROMPTS,
    CLI_LIST_COUNT,
} cli_list;

typedef struct cli_inventory {
    cli_pages lists[CLI_LIST_COUNT];
    bool has[CLI_LIST_COUNT]; /* the server offers this list */
    bay_str revision;
    const char *transport;
    json_val server_info;  /* may be missing */
    json_val capabilities; /* may be missing */
    bay_str instructions;
} cli_inventory;

void cli_inventory_init(cli_inventory *self);
void cli_inventory_fini(cli_inventory *self);

/* Every list that the server's capabilities promise. One that fails is said on stderr and does not
 * hold back the others; the first failure's code is returned. Views live as long as the session. */
cli_exit cli_inventory_fetch(cli_inventory *self, cli_session *session);
/* One list; CLI_EXIT_OK without asking when the server lacks the capability. */
cli_exit cli_inventory_fetch_one(cli_inventory *self, cli_session *session, cli_list which);

size_t cli_inventory_tokens(const cli_inventory *self); /* of all tools */

/* For people. Errors stick in `out`. */
void cli_inventory_write(const cli_inventory *self, const output *device, buf *out);
/* One object; items, capabilities and serverInfo byte for byte. Errors stick in `out`. */
void cli_inventory_write_json(const cli_inventory *self, buf *out);

#endif

/* Where a server's tasks live. Apart from the rest, so that a program that never says "a file" does
 * not hold SQLite. */
#include <string.h>

#include "base/str.h"
#include "sdk/server_parts.h"
#include "store/store.h"

void bay_server_store(bay_server *server, const char *path)
{
    if (server == NULL) {
        return;
    }
    bool is_file = path != NULL && path[0] != '\0' && strcmp(path, ":memory:") != 0;
    server->store_path = (bay_str){NULL, 0};
    server->open_store = NULL;
    if (is_file && arena_dup(&server->memory, str_of(path), &server->store_path) != BAY_OK) {
        server->is_out_of_memory = true;
    } else if (is_file) {
        server->open_store = store_open_sqlite;
    }
}

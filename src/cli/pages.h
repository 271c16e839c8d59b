/* Every page of a list, within bounds: a server that never stops paging ends nobody's memory. */
#ifndef CLI_PAGES_H
#define CLI_PAGES_H

#include "cli/answer.h"
#include "cli/arguments.h"
#include "json/build.h"

enum {
    CLI_PAGES = 1000,
    CLI_PAGE_ITEMS = 100000,
    CLI_PAGE_BYTES = 64 * 1024 * 1024, /* of all items together */
};

/* Asks for one page; `params` is "{}" or has a cursor. What it cannot answer it has said itself:
 * then not CLI_EXIT_OK. An ERROR of the server is an answer. */
typedef cli_exit (*cli_page_fetch)(void *user, json_val params, cli_answer *out);

typedef struct cli_pages {
    json_builder made; /* the items so far, each byte for byte */
    arena memory;
    json_val items; /* the array; never missing after cli_pages_fetch */
    size_t count;
    size_t page_count;
    int error_code;  /* not 0: the server answered with this error */
    char error[240]; /* why it is not whole; empty: it is */
} cli_pages;

void cli_pages_init(cli_pages *self);
void cli_pages_fini(cli_pages *self);

/* Fills `self` with what the result's `member` holds, page after page. What was read before
 * something went wrong stays: then `error` says what, and the exit code is CLI_EXIT_REMOTE (the
 * server's error), CLI_EXIT_PROTOCOL (no array, no string as cursor, the same cursor again, beyond
 * a bound) or CLI_EXIT_FAILED (memory). Otherwise `fetch`'s own code, or CLI_EXIT_OK. */
cli_exit cli_pages_fetch(cli_pages *self, bay_str member, cli_page_fetch fetch, void *user);

#endif

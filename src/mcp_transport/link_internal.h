/* Shared by the client links; for src/mcp_transport/link*.c only.
 *
 *   opened --begin, later--> carrying --mcp_link_close--> closing --link_closed--> closed
 *      \________________\________________\___________________\______ mcp_link_free --> freed
 *
 * Invariants
 * - The engine is called only between `begin` and mcp_link_free; after every call into it a carrier
 *   checks `is_freed` before it uses anything of the engine again.
 * - mcp_link_free stops the carrier and frees the engine at once; the struct itself is freed in a
 *   later loop iteration, so functions still on the stack find its memory and `is_freed`.
 * - `done` of mcp_link_close runs in an iteration of its own, never inside mcp_link_close. */
#ifndef MCP_TRANSPORT_LINK_INTERNAL_H
#define MCP_TRANSPORT_LINK_INTERNAL_H

#include "base/buf.h"
#include "mcp_transport/link.h"

enum {
    LINK_MAX_MESSAGE_BYTES = 64 << 20, /* if the options have 0 */
    LINK_HIGH_BYTES = 256 << 10,       /* queued in process: slow down */
};

typedef struct link_carrier {
    /* Calls mcp_client_opened, now or when the carrier is ready. */
    void (*begin)(mcp_link *self);
    /* Begins the clean end; link_closed follows, now or later. */
    void (*close)(mcp_link *self);
    /* Ends at once: no callback runs after it. Also on a half-built link. */
    void (*stop)(mcp_link *self);
    /* Frees the memory; `stop` was called before. */
    void (*release)(mcp_link *self);
    int (*process_id)(const mcp_link *self);      /* NULL: there is never a process */
    void (*log_last_lines)(const mcp_link *self); /* NULL: there are no lines */
} link_carrier;

struct mcp_link {
    const link_carrier *carrier;
    loop *loop;
    mcp_client *client;
    loop_timer timer; /* the engine's clock */
    loop_task turn;
    loop_task burial;
    void (*done)(void *user);
    void *done_user;
    size_t max_message_bytes;
    bool is_begun;
    bool is_clogged; /* a send returned BAY_ERR_AGAIN and nothing has drained since */
    bool is_closing;
    bool is_closed;
    bool is_freed;
};

/* Creates the engine; the first loop iteration calls `begin`. On failure the caller frees what it
 * made.
 * Errors: as mcp_client_new. Threads: the loop's. */
bay_err link_init(mcp_link *self, const link_carrier *carrier, loop *runs_on,
                  const mcp_link_options *options, mcp_link_kind kind,
                  const mcp_link_ops *ops) BAY_MUST_CHECK;

/* Something may have changed the engine's next deadline. */
void link_touch(mcp_link *self);
void link_closed(mcp_link *self);
uint64_t link_now(const mcp_link *self);

/* The message as one line: line ends, which JSON has only between tokens, become spaces. A view of
 * `message` if it has none, otherwise of `scratch`; `at` NULL: out of memory. */
bay_str link_line(buf *scratch, bay_str message);

/* A peer's line for people: as base/shown.h displays it, without escape sequences that only set a
 * colour; at most `size` - 1 bytes, cut between characters. */
void link_clean_text(char *out, size_t size, bay_str text);

#endif

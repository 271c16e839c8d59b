/* What asks: a client of a server and a caller of an agent alike. Its place in an event loop, its
 * HTTP client, the life of what it asks for, and waiting for it. The first member of bay_client and
 * bay_caller; what they do differently is in their asker_kind.
 *
 * An item is one thing asked for: a request, an operation.
 *
 *   NEW --asker_item_start--> OPEN <--asker_item_set--> WAITING (for the peer to be there)
 *   OPEN, WAITING --asker_item_end--> ENDED --asker_finish: it is told--> gone
 *
 * Invariants
 * - An item is told once, from asker_finish: in a later turn of the loop than whatever ended it, or
 *   inside the close. Nothing of the program's runs in a function that only starts something.
 * - Items keep the order in which they were started. */
#ifndef SDK_ASKER_H
#define SDK_ASKER_H

#include "base/list.h"
#include "sdk/asker_options.h"
#include "sdk/oauth_settings.h"

#define ASKER_INSIDE "inside a callback nothing can be waited for: start it, or do it later"

typedef struct asker asker;
typedef struct asker_item asker_item;

typedef struct asker_kind {
    const char *noun;               /* "client": for messages, the names of functions and the log */
    const char *items;              /* "requests": for messages */
    size_t most;                    /* items at one time: a further one is BAY_ERR_BUSY */
    bay_err closing;                /* of the start of an item while the asker is being closed */
    void (*settle)(void *of);       /* the asker: what asker_settle_soon asks for */
    void (*send)(asker_item *item); /* WAITING: the peer is there */
    void (*withdraw)(asker_item *item); /* ends what the peer does for it */
    void (*fail)(asker_item *item, bay_err err, const char *text); /* ends it */
    void (*ended)(asker_item *item, const void *answer);           /* before it is told */
    /* The program's callback, which takes the answer. */
    void (*tell)(asker_item *item, void *answer);
    void (*answer_free)(void *answer); /* NULL is fine */
    void (*item_free)(asker_item *item);
} asker_kind;

struct asker {
    const asker_kind *kind;
    loop *loop;
    bool is_loop_lent;       /* another's */
    char shown[200];         /* the target for messages: no user information, no query */
    tls_context *tls;        /* NULL: the one that all share */
    http_client *http;       /* NULL: the target is no URL */
    struct bay_login *login; /* NULL: requests are not authorized by OAuth */
    bool is_touched;         /* something was started since the last dispatch */
    bool is_tracing;         /* a callback runs, perhaps of something that was only started */
    bool is_closing;
    loop_task settle;
    list items; /* OPEN and WAITING */
    list ended;
    size_t count;   /* of both lists */
    size_t waiting; /* WAITING ones */
};

typedef enum asker_phase {
    ASKER_NEW, /* not started */
    ASKER_WAITING,
    ASKER_OPEN,
    ASKER_ENDED,
} asker_phase;

/* Somebody waits for the end of an item, in place of a callback. */
typedef struct asker_wait {
    bool is_done;
    void *answer;
    bay_diag diag;
} asker_wait;

/* The first member of bay_request and bay_caller_request. */
struct asker_item {
    list_link link;
    asker *asker;
    asker_phase phase;
    asker_wait *wait; /* NULL: `tell` */
    void *answer;     /* ENDED: what is told ... */
    bay_diag diag;    /* ... and how it went */
};

/* ---- its life -------------------------------------------------------------------------------- */

/* `lent`: a loop to use in place of an own one, or NULL. `options` outlive it. BAY_ERR_NOMEM,
 * BAY_ERR_IO.
 */
bay_err asker_open(asker *self, const asker_kind *kind, const asker_options *options, loop *lent,
                   bay_diag *diag) BAY_MUST_CHECK;
/* Nothing of it runs any more, and its HTTP client is gone. Harmless twice, and when it was never
 * opened. */
void asker_stop(asker *self);
void asker_fini(asker *self); /* stops; its own loop is freed */
/* False, and an error is logged: inside a callback, or a second time. */
bool asker_close(asker *self);

/* ---- its place in an event loop -------------------------------------------------------------- */

int asker_fd(const asker *self); /* these three: NULL is fine */
int asker_wait_ms(const asker *self);
bay_err asker_turn(asker *self, int ms); /* BAY_ERR_INVALID, BAY_ERR_STATE */
void asker_touch(asker *self);           /* something is about to be started or timed */
void asker_settle_soon(asker *self);
bool asker_is_inside(const asker *self); /* does a callback run? */
/* BAY_ERR_STATE: nothing can be waited for now. */
bay_err asker_check_waiting(const asker *self, bay_diag *diag) BAY_MUST_CHECK;

/* ---- items ----------------------------------------------------------------------------------- */

void asker_item_init(asker_item *self, asker *of);
/* NEW -> OPEN. BAY_ERR_BUSY; kind->closing. */
bay_err asker_item_start(asker_item *self, bay_diag *diag) BAY_MUST_CHECK;
void asker_item_set(asker_item *self, asker_phase phase); /* OPEN, WAITING */
/* It was started in vain: it is not told. */
void asker_item_drop(asker_item *self);
/* False: it has ended before. The answer, if there is one, was put into it. */
bool asker_item_end(asker_item *self, const bay_diag *diag);
/* For functions that wait, once it was started with `wait`. With BAY_OK the answer is the
 * caller's, else there is none. */
bay_err asker_await(asker *self, asker_wait *wait, bay_diag *diag) BAY_MUST_CHECK;

void asker_send_waiting(asker *self);
void asker_fail_waiting(asker *self, const bay_diag *fault);
void asker_finish(asker *self);                   /* tells what has ended */
void asker_end_all(asker *self, const char *why); /* BAY_ERR_CANCELLED, and told */

#endif

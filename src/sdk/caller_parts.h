/* The inside of a caller of agents, for its files only.
 *
 *   caller.c            its life, its loop
 *   caller_options.c    how to call; secrets
 *   caller_card.c       the card: where it is, whether it is signed
 *   caller_choose.c     which of its interfaces is spoken to
 *   caller_about.c      what the card says
 *   caller_credentials.c  which header fields go with requests, and where they may go
 *   caller_request.c  one operation: made, filled
 *   caller_run.c          started, ended
 *   caller_assembly.c     a task put together from the events of its stream
 *   caller_reply.c   views into what came back
 *   caller_service.c    everything that is one word
 *
 *   FETCHING ──card──► READY        operations go to the link at once
 *      │ ▲
 *      ▼ └──the next operation──┐
 *     LOST ─────────────────────┘   operations that waited have failed
 *
 * Invariant: nothing of the program's runs but while the loop turns, and inside bay_caller_close.
 */
#ifndef SDK_CALLER_PARTS_H
#define SDK_CALLER_PARTS_H

#include "a2a_transport/link.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "http/http_client.h"
#include "net/loop.h"
#include "patchbay/caller.h"
#include "sdk/asker.h"
#include "json/build.h"

enum {
    CALLER_SETTINGS = 256,         /* header fields, credentials, origins …: of each */
    CALLER_CARD_BYTES = 1 << 20,   /* a card as fetched */
    CALLER_CARD_MEMORY = 64 << 20, /* of its text, indexes and views */
    CALLER_KEYSETS = 4,            /* fetched for one card */
    CALLER_INTERFACES = 32,        /* of a card that are looked at */
    CALLER_CARD_MS = 30000,        /* for one file of the above */
    CALLER_OPERATIONS = 10000,     /* open at one time */
    CALLER_CONNECTIONS = 1024,     /* a stream over HTTP/1.1 has one of its own */
    CALLER_REQUEST_BYTES = 64 << 20,
    CALLER_RESPONSE_BYTES = 64 << 20,
    CALLER_RESPONSE_MEMORY = 256 << 20, /* to read one */
    CALLER_FIELDS = 48,                 /* of one request */
    CALLER_URL_BYTES = 8192,
};

/* ---- options --------------------------------------------------------------------------------- */

struct bay_caller_options {
    asker_options base;
    asker_settings credentials; /* scheme, credential */
    asker_settings origins;
    asker_settings extensions;
    asker_settings key_urls;
    char *keys;
    int binding; /* -1: any */
    int version;
    bool needs_signature;
    a2a_link_limits limits;
};

bay_err sdk_caller_options_copy(bay_caller_options *self, const bay_caller_options *from,
                                bay_diag *diag) BAY_MUST_CHECK;
void sdk_caller_options_fini(bay_caller_options *self);

/* ---- the caller ------------------------------------------------------------------------------ */

typedef enum caller_phase {
    CALLER_FETCHING,
    CALLER_READY,
    CALLER_LOST,
} caller_phase;

typedef struct caller_fetch caller_fetch; /* caller_card.c */

typedef struct caller_skill {
    bay_str id, name, description;
} caller_skill;

struct bay_caller {
    asker base;
    bay_caller_options options;
    caller_phase phase;
    a2a_link *link;
    char *agent; /* as given */
    caller_fetch *fetch;
    bay_diag fault; /* why it is LOST */
    void (*connected)(bay_caller *caller, const bay_diag *diag, void *user);
    void *connected_user;
    /* The card; all of `memory`. */
    arena memory;
    json_val source; /* as it came */
    json_val card;   /* 1.0, normal form */
    buf origin;      /* where the card was fetched from; empty: it was given */
    bool is_verified;
    bool is_known;
    bool has_withheld; /* credentials that the interface's origin may not have */
    bay_str name, description;
    caller_skill *skills;
    size_t skill_count;
    buf remote_error;
};

/* caller_about.c: takes the texts of the card out of it. BAY_ERR_NOMEM, BAY_ERR_LIMIT. */
bay_err sdk_caller_read_about(bay_caller *self) BAY_MUST_CHECK;

/* ---- caller.c -------------------------------------------------------------------------------- */

/* The card is known and the link made; or not, see `fault`. */
void sdk_caller_found(bay_caller *self);
void sdk_caller_lost(bay_caller *self, const bay_diag *fault);
/* LOST: tries again. */
void sdk_caller_need(bay_caller *self);

/* ---- caller_card.c --------------------------------------------------------------------------- */

/* Ends with sdk_caller_found or sdk_caller_lost, in a later turn. */
void sdk_card_fetch(bay_caller *self);
void sdk_card_abandon(bay_caller *self);
/* caller_choose.c: of the card that was read; makes the link. BAY_ERR_VERSION with `fault`:
 * none. */
bay_err sdk_caller_choose(bay_caller *self, a2a_fault *fault) BAY_MUST_CHECK;
/* Is it a URL, or a card? */
bay_err sdk_card_check_agent(const char *agent, bay_diag *diag) BAY_MUST_CHECK;

/* ---- caller_credentials.c -------------------------------------------------------------------- */

/* May what is at this URL (or host:port) have the credentials? */
bool sdk_caller_trusts(const bay_caller *self, bay_str url);
/* The fields of every request, into `out`; texts that had to be made go to `memory`, which is
 * wiped by the caller. BAY_ERR_UNSUPPORTED: a credential that cannot be sent. */
bay_err sdk_caller_fields(const bay_caller *self, buf *memory, http_field *out, size_t max,
                          size_t *out_count, bay_diag *diag) BAY_MUST_CHECK;

/* ---- operations ------------------------------------------------------------------------------ */

typedef struct caller_assembly caller_assembly;

struct bay_caller_request {
    asker_item item; /* its answer is a bay_caller_reply */
    bay_caller *caller;
    a2a_method method;
    bay_err err; /* the first fault of its making */
    char fault[160];
    bool is_message; /* SendMessage: made of the following */
    json_builder
        message; /* members of the Message but ids; these four are objects that stay open */
    json_builder request; /* members of the request */
    json_builder configuration;
    json_builder metadata;
    json_builder whole; /* the request, written */
    char *task;
    char *context;
    char *skill;
    asker_settings fields; /* of this request alone */
    asker_settings modes;  /* media types that are taken */
    uint64_t after;
    bay_event_fn event;
    void *event_user;
    bay_caller_request_done_fn done;
    void *user;
    bool is_paused;
    bool is_unheard;     /* nobody wants the response of its stream */
    a2a_link_call *call; /* NULL: it waits for the card */
    caller_assembly *assembly;
    a2a_error error;
};

/* caller_request.c: writes the request as 1.0 wants it into `whole`. */
bay_err sdk_operation_write(bay_caller_request *self, bay_diag *diag) BAY_MUST_CHECK;
void sdk_operation_release(bay_caller_request *self);

/* caller_run.c: as asker_kind has them. */
void sdk_operation_send(asker_item *item);
void sdk_operation_withdraw(asker_item *item);
void sdk_operation_lose(asker_item *item, bay_err err, const char *text);
void sdk_operation_ended(asker_item *item, const void *answer);
void sdk_operation_tell(asker_item *item, void *answer);
void sdk_operation_item_free(asker_item *item);
void sdk_response_release(void *response);

/* ---- caller_assembly.c ----------------------------------------------------------------------- */

caller_assembly *sdk_assembly_new(void);
void sdk_assembly_free(caller_assembly *self);
/* `event`: a StreamResponse. Errors: BAY_ERR_NOMEM, BAY_ERR_LIMIT. */
bay_err sdk_assembly_add(caller_assembly *self, json_val event) BAY_MUST_CHECK;
/* {"task":…} or {"message":…}; BAY_ERR_NOT_FOUND: nothing was told. */
bay_err sdk_assembly_write(const caller_assembly *self, json_writer *out) BAY_MUST_CHECK;

/* ---- caller_reply.c ----------------------------------------------------------------------- */

/* Of a method's result, or (`is_event`) of a StreamResponse; `value` is copied. */
bay_err sdk_response_new(a2a_method method, bool is_event, json_val value, uint64_t event_id,
                         bay_caller_reply **out) BAY_MUST_CHECK;

#endif

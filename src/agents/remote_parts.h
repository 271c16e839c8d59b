/* What remote.c (life and card), remote_card.c (fetching it) and proxy.c (calls) share. */
#ifndef AGENTS_REMOTE_PARTS_H
#define AGENTS_REMOTE_PARTS_H

#include "a2a_transport/link.h"
#include "agents/address_filter.h"
#include "agents/proxy_owner.h"
#include "agents/proxy_params.h"
#include "agents/remote.h"
#include "agents/webhook_receiver.h"
#include "http/http_document.h"

/* A link, kept while calls are on it: a new card may bring another. */
typedef struct remote_connection {
    list_link link; /* in remote.old_lines, or nowhere: it is the current one */
    a2a_link *to;
    size_t calls;
    bool is_ours; /* of the host that was configured: it may see credentials */
} remote_connection;

enum { REMOTE_ERROR_BYTES = 240, REMOTE_SETS = 8 /* of keys that one card is verified with */ };

struct agents_remote {
    a2a_service service; /* first */
    loop *loop;
    http_client *http;     /* its own: behind its address filter, with its TLS settings */
    http_client *key_http; /* for key sets; NULL: none is trusted */
    agents_address_filter address_filter;
    tls_context *tls; /* NULL: the system's trust */
    const agents_settings *settings;
    const agents_public *public;
    agents_aliases *aliases;                 /* borrowed; NULL: ids of clients are not translated */
    agents_owned *owned;                     /* borrowed; NULL: callers are not kept apart */
    const seal_ring *const *ring;            /* that names them; as it is at the time */
    const agents_webhook_receiver *receiver; /* borrowed; NULL: no webhooks of the gateway's own */
    uint32_t looks;  /* tasks that it is being asked for, for its notifications */
    jose_keys *keys; /* of the file; NULL: none */
    circuit circuit;

    /* the card */
    agents_card *card; /* NULL: not known */
    unsigned told;     /* whose webhooks are told, as the card says */
    bool is_verified;
    bool has_failed; /* to be fetched, when last tried */
    uint64_t fresh_until_ms;
    char etag[HTTP_DOCUMENT_ETAG_BYTES];
    char error[REMOTE_ERROR_BYTES];
    list watches;

    /* fetching it */
    http_document fetch;
    bool is_learning;
    bool is_second_path; /* agent.json, after agent-card.json was not there */
    buf url;
    buf candidate; /* the card as it came, while key sets are fetched, … */
    arena candidate_memory;
    json_doc candidate_doc; /* … and read */
    char candidate_etag[HTTP_DOCUMENT_ETAG_BYTES];
    uint64_t candidate_age_ms;
    size_t next_signer;

    /* calls */
    remote_connection *connection; /* NULL: no card, or no interface of it suits */
    list old_lines;
    loop_task sweep;
    list waiting;
    list calls;
    size_t waiting_count;
    size_t call_count;
    arena scratch;
};

/* proxy.c */
extern const a2a_service remote_service;
void agents_proxy_begin_waiting(agents_remote *self);
void agents_proxy_fail_waiting(agents_remote *self, a2a_error error, const char *text);
void agents_proxy_fail_all(agents_remote *self);

/* proxy_webhook.c */
/* Can the agent tell the gateway's own webhook? Not where nothing can be sealed, and not where it
 * is on another machine and all that is known of the gateway's address is loopback. */
bool agents_proxy_has_webhooks(const agents_remote *self);
/* The params of a call that registers `webhook` (of these params), with the gateway's own in its
 * place, in the call's memory. `at` is where they go. Errors: BAY_ERR_PROTOCOL with `fault`,
 * BAY_ERR_NOMEM.
 */
bay_err agents_proxy_webhook_wrap(const agents_remote *self, const a2a_call *call, json_val webhook,
                                  const agents_proxy_alias *alias, const a2a_interface *at,
                                  json_val *out, a2a_fault *fault) BAY_MUST_CHECK;

/* An answer with webhooks, each as its caller registered it; `out` stays empty where none is ours.
 * Errors: BAY_ERR_NOMEM, BAY_ERR_LIMIT. */
bay_err agents_proxy_webhook_show(agents_remote *self, json_val answer,
                                  json_writer *out) BAY_MUST_CHECK;

/* remote_card.c */
/* Fetches the card, unless it is being fetched. While the circuit is not closed that is its trial:
 * short, unlike a call. */
void remote_card_try(agents_remote *self);

/* remote.c */
/* The card of this text, 1.0 in normal form, is the agent's from now on. */
bay_err remote_take_card(agents_remote *self, json_val source, bool is_verified,
                         const char **out_why) BAY_MUST_CHECK;
void remote_tell_watches(agents_remote *self);
void remote_connection_drop(agents_remote *self, remote_connection *connection);
/* The connection for a webhook that is registered in `version`: agents deliver in the version that
 * they were asked in. One of its own is swept when no call is on it. NULL: the agent has none; or
 * BAY_ERR_NOMEM. */
bay_err remote_connection_of(agents_remote *self, a2a_version version,
                             remote_connection **out) BAY_MUST_CHECK;
/* Is a webhook told that a caller of this version registers? */
bool remote_tells(const agents_remote *self, a2a_version version);
/* A call, or the card, did or did not get through. */
void remote_reached(agents_remote *self);
void remote_missed(agents_remote *self);

#endif

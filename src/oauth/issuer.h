/* An authorization server whose tokens are taken: its keys, and where it introspects. One issuer is
 * shared by all loops of a process, with one key set; each loop has a link to it, which may fetch.
 *
 *              keys ── a fetch at a time, by whichever link needs it first ──► all links are told
 *
 * - A key set is fresh for as long as its Cache-Control says (within bounds), and used on when it
 *   cannot be fetched anew, for a day at most.
 * - A key that the set does not have makes it be fetched anew: at most once a minute, whatever keys
 *   tokens name.
 * - A set that has lost a key makes `dropped` be called: what was verified with it counts no more.
 *
 * For the whole header: Units: ms of the loops' clock. */
#ifndef OAUTH_ISSUER_H
#define OAUTH_ISSUER_H

#include "auth/jose.h"
#include "base/list.h"
#include "oauth/document.h"

enum {
    OAUTH_KEYS_FRESH_MS = 600000,      /* without a Cache-Control; and the bounds of one: */
    OAUTH_KEYS_FRESH_LEAST_MS = 60000, /* … */
    OAUTH_KEYS_FRESH_MOST_MS = 24 * 3600 * 1000,
    OAUTH_KEYS_STALE_MS = 24 * 3600 * 1000, /* a set that cannot be fetched anew is used so long */
    OAUTH_KEYS_REFRESH_MS = 60000,          /* between two fetches for keys that are not known */
    OAUTH_KEYS_RETRY_MS = 1000, /* after a failure without any keys; doubled, up to the former */
    OAUTH_UNKNOWN_KEYS = 64,    /* names of keys that are known not to be there */
    OAUTH_UNKNOWN_KEY_MS = 600000,
};

typedef struct oauth_issuer oauth_issuer;
typedef struct oauth_issuer_link oauth_issuer_link;

typedef struct oauth_issuer_options {
    bay_str url;          /* the issuer identifier, byte for byte */
    bay_str keys;         /* a JWK set: nothing is fetched; or the URL of one; "": by metadata */
    const bay_str *allow; /* where its metadata may lead besides, as address_rules_new takes it */
    size_t allow_count;
    const char *ca_file; /* NULL: the system's trust */
    /* A key of the set is gone. On a loop's thread, under no lock. May be NULL. */
    void (*dropped)(void *user, const oauth_issuer *issuer);
    void *user;
    uint64_t (*now)(void); /* NULL: the loop's clock; for tests */
} oauth_issuer_options;

/* Owns: the caller, one reference; copies. Errors: BAY_ERR_INVALID with `diag`; BAY_ERR_SYNTAX,
 * BAY_ERR_LIMIT: `keys` is no set; BAY_ERR_NOMEM. Threads: any, also below. */
bay_err oauth_issuer_new(const oauth_issuer_options *options, oauth_issuer **out,
                         bay_diag *diag) BAY_MUST_CHECK;
oauth_issuer *oauth_issuer_ref(oauth_issuer *self); /* NULL is fine, also below */
void oauth_issuer_unref(oauth_issuer *self);
bay_str oauth_issuer_url(const oauth_issuer *self);
size_t oauth_issuer_fetches(oauth_issuer *self); /* of key sets or metadata, since it was made */

/* ---- on a loop ------------------------------------------------------------------------------- */

/* Somebody who waits for a fetch. Embedded in its owner. */
typedef struct oauth_wait {
    list_link link;
    void (*done)(void *user); /* once, in a later turn, when a fetch has ended since: look again */
    void *user;
    uint64_t since; /* the link's */
} oauth_wait;

/* Owns: the caller; the link holds a reference to `issuer`. Errors: BAY_ERR_NOMEM, what
 * tls_client_new says. Threads: the loop's, also below. */
bay_err oauth_issuer_link_new(loop *loop, oauth_issuer *issuer, oauth_issuer_link **out,
                              bay_diag *diag) BAY_MUST_CHECK;
/* Cancels its fetch (another link may begin one); those who wait hear no more. NULL is fine. */
void oauth_issuer_link_free(oauth_issuer_link *self);

/* The keys: BAY_OK, with one reference for the caller. BAY_ERR_AGAIN: they are being fetched; wait.
 * BAY_ERR_BUSY: they cannot be had, and why was logged; not before *out_retry_ms. */
bay_err oauth_issuer_link_keys(oauth_issuer_link *self, jose_keys **out,
                               uint32_t *out_retry_ms) BAY_MUST_CHECK;
/* The set has no key of that name: BAY_ERR_AGAIN: it is being fetched; wait, look again, and say so
 * (`has_waited`) if it still has none. BAY_ERR_NOT_FOUND: there is none, as far as it can be
 * known. */
bay_err oauth_issuer_link_refresh(oauth_issuer_link *self, bay_str key_id,
                                  bool has_waited) BAY_MUST_CHECK;
/* Appends where it introspects. Errors: as oauth_issuer_link_keys; BAY_ERR_UNSUPPORTED: its
 * metadata names no such address. */
bay_err oauth_issuer_link_introspection(oauth_issuer_link *self, buf *out,
                                        uint32_t *out_retry_ms) BAY_MUST_CHECK;
/* For who shares its connections: the same guard, the same trust. NULL: nothing is fetched. */
oauth_source *oauth_issuer_link_source(const oauth_issuer_link *self);

/* After BAY_ERR_AGAIN. */
void oauth_issuer_link_wait(oauth_issuer_link *self, oauth_wait *wait);
void oauth_wait_cancel(oauth_wait *self); /* harmless when it does not wait */

#endif

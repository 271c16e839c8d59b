/* The gateway's own webhook, in place of a caller's: an agent delivers in the version that it was
 * asked in, so where that is not the caller's, the agent is given an address of the gateway, which
 * translates what it is told and delivers it in the version of the registration.
 *
 *   caller ── url, token, credentials ──► gateway ── its own url, its own token ──► agent
 *   caller's webhook ◄── in the caller's form ── gateway ◄── in the agent's form ── agent
 *
 * Nothing of that is kept: the address holds where the webhook is and in which form it is told, the
 * token what is secret, each sealed, the token for that address alone. So a registration lives as
 * long as the keys do (auth/seal), on every replica that has them; there is nothing to count, to
 * sweep or to lose; and what the agent shows of a configuration can be shown as the caller wrote
 * it. docs/decisions/026 says why. */
#ifndef AGENTS_WEBHOOK_H
#define AGENTS_WEBHOOK_H

#include "a2a/dialect.h"
#include "auth/seal.h"
#include "json/writer.h"

enum {
    AGENTS_WEBHOOK_DAYS = 30, /* after which an address of ours is good no more */
};

/* A registration; views. */
typedef struct agents_webhook {
    a2a_form caller_form; /* as the caller registered it: the form it is told in */
    a2a_form agent_form;  /* as we registered ours: the form the agent tells it in */
    bay_str url;
    /* what the token holds */
    bay_str token;
    bay_str scheme;
    bay_str credentials;
    bay_str id;        /* of the configuration, where the caller said it; "" */
    bay_str task_id;   /* at the agent, where it was known; "": any */
    bay_str client_id; /* what the caller calls its task, where it makes ids itself (0.1); "" */
    bay_str principal; /* who registered it: the identity; "": nobody who is known */
} agents_webhook;

/* Appends the path of an agent's addresses: "/a2a/NAME/push/". */
void agents_webhook_path(bay_str agent, buf *out);

/* Appends the address and the token that the agent is given. Secrets are in `out_token` as cipher
 * text alone.
 * Owns: nothing. Errors: BAY_ERR_PROTOCOL with `fault`: too long for what agents take
 * (A2A_PUSH_URL_BYTES, A2A_PUSH_CREDENTIAL_BYTES); BAY_ERR_NOMEM, BAY_ERR_UNSUPPORTED. Units: ms
 * since 1970. Threads: any. Source: A2A 1.0.1 section 4.3.3. */
bay_err agents_webhook_seal(const seal_ring *ring, bay_str base, bay_str agent,
                            const agents_webhook *hook, uint64_t now_ms, buf *out_url,
                            buf *out_token, a2a_fault *fault) BAY_MUST_CHECK;

/* What the last part of an address holds: `told`, `heard`, `url`, a view into `plain`, which is the
 * caller's to wipe.
 * Owns: nothing. Errors: BAY_ERR_DENIED: none of ours, or another agent's; BAY_ERR_TIMEOUT: too
 * old; BAY_ERR_NOMEM. Units: ms since 1970. Threads: any. */
bay_err agents_webhook_open_url(const seal_ring *ring, bay_str agent, bay_str sealed,
                                uint64_t now_ms, buf *plain, agents_webhook *out) BAY_MUST_CHECK;
/* The rest, of the token that belongs to that address. The same holds. */
bay_err agents_webhook_open_token(const seal_ring *ring, bay_str agent, bay_str sealed,
                                  bay_str token, uint64_t now_ms, buf *plain,
                                  agents_webhook *out) BAY_MUST_CHECK;

/* The configuration that the agent is given, in place of the caller's: its address and token, and
 * of the caller's what is neither. */
void agents_webhook_write(json_val config, bay_str url, bay_str token, json_writer *out);

/* What an agent answers, a configuration or a list of them, as the caller registered it: the
 * answer itself where nothing is ours. One of ours that does not open (its key is gone, it is too
 * old) is shown without what was sealed. Written to `out`, unless it is the
 * answer itself: then nothing is.
 * Owns: nothing. Errors: BAY_ERR_NOMEM, BAY_ERR_LIMIT of `out`. Units: ms since 1970. Threads:
 * any. */
bay_err agents_webhook_show(const seal_ring *ring, bay_str base, bay_str agent, json_val answer,
                            uint64_t now_ms, json_writer *out) BAY_MUST_CHECK;

/* What an agent told a webhook that was registered in the form `heard`, as an event of 1.0
 * in normal form: `body` itself where it is one, else in `memory`. Peers differ: of 0.3 some tell
 * the task, some the event, some in the words of 1.0; all of these are understood. Owns: nothing.
 * Errors: BAY_ERR_PROTOCOL with `fault`, BAY_ERR_NOMEM, BAY_ERR_LIMIT. Threads: any. Source: A2A
 * 1.0.1 section 4.3.3, A2A 0.3.0 section 9.5. */
bay_err agents_webhook_read(a2a_form heard, json_val body, arena *memory, json_val *out,
                            a2a_fault *fault) BAY_MUST_CHECK;

#endif

/* The card of an agent as the gateway shows it: what the agent says of itself, at the gateway's
 * address, in all forms, signed by the gateway. Immutable and counted; one thread. */
#ifndef AGENTS_CARD_H
#define AGENTS_CARD_H

#include "a2a/dialect.h"
#include "a2a_transport/router.h"
#include "agents/settings.h"
#include "json/writer.h"

typedef struct agents_card agents_card;

/* Callers whose webhooks are told, where the agent has push notifications at all: a card says of
 * them what holds for whoever reads it. */
enum {
    AGENTS_WEBHOOKS_NOW = 1,   /* those of 1.0 */
    AGENTS_WEBHOOKS_OLDER = 2, /* those of 0.2 and 0.3 */
    AGENTS_WEBHOOKS_ALL = AGENTS_WEBHOOKS_NOW | AGENTS_WEBHOOKS_OLDER,
};

/* `source`: the agent's own card, 1.0 in normal form; copied. Interfaces become the gateway's: each
 * binding twice, as "1.0" and as "0.3". Signatures go: they are of another text; and the security
 * that the agent asks for: the gateway meets it. A card that cannot be signed (with an empty field
 * that a card needs) is shown without a signature, and the log says so.
 * Owns: the caller gets one reference. Errors: BAY_ERR_NOMEM, BAY_ERR_LIMIT; what else
 * a2a_card_write says.
 * Threads: one. Source: A2A 1.0.1 sections 4.4.1 and 8. */
bay_err agents_card_new(bay_str name, json_val source, const agents_public *public, unsigned told,
                        agents_card **out) BAY_MUST_CHECK;
void agents_card_free(agents_card *self); /* NULL is fine */

/* The agent's own card. */
json_val agents_card_source(const agents_card *self);
/* Writes another card of the agent (the extended one), rewritten like the first; not signed. */
void agents_card_rewrite(bay_str name, json_val card, const agents_public *public, bool is_told,
                         json_writer *out);
/* Fills in cards and their ETags. */
void agents_card_show(const agents_card *self, a2a_http_agent *out);
/* The skill of that id; JSON_NONE. */
json_val agents_card_skill(const agents_card *self, bay_str id);
/* Appends the ids of its skills for a person: "a, b, c", at most a few. */
void agents_card_write_skills(const agents_card *self, buf *out);

#endif

/* What the gateway is told of one agent: of the configuration, in this module's own words. Every
 * view is borrowed from whoever configures and lives as long as the agent. */
#ifndef AGENTS_SETTINGS_H
#define AGENTS_SETTINGS_H

#include "a2a/protocol.h"
#include "auth/jose.h"
#include "auth/principal.h"
#include "base/circuit.h"
#include "http/http_client.h"
#include "net/address.h"
#include "wire/field.h"
#include "json/json.h"

enum {
    AGENTS_CARD_BYTES = 1 << 20,     /* of a card as it is fetched */
    AGENTS_RENDERED_BYTES = 4 << 20, /* of one as it is shown */
    AGENTS_WAITING = 1000,           /* calls that wait for an agent's first card */
    AGENTS_SKILLS = 1000,            /* of one agent, as tools */
};

typedef struct agents_verify {
    bay_str keys_file; /* "": none */
    const bay_str *jku;
    size_t jku_count;
    bool is_required;
} agents_verify;

typedef struct agents_settings {
    bay_str name;
    bay_str url;
    bool is_card;             /* `url` is the card's own address */
    const http_field *fields; /* of each request */
    size_t field_count;
    /* Of requests to its own host; each may be NULL: none. They outlive the agent. */
    http_authority *authority; /* of what the gateway asks for itself: the card */
    http_authority *(*authority_of)(void *user, const auth_principal *caller); /* of a call */
    void *authority_user;
    /* Appends the address of the page where a caller logs in there; false: there is none. NULL: callers
     * have no logins there. */
    bool (*login_page)(void *user, bay_str name, buf *out);
    void *login_user;
    bool has_version;
    a2a_version version;
    bool has_binding;
    a2a_binding binding;
    const bay_str *allow; /* rules of net/address: where its card may lead as well */
    size_t allow_count;
    agents_verify verify;
    const char *tls_ca; /* files; NULL: none */
    const char *tls_certificate;
    const char *tls_key;
    uint32_t connect_ms;
    uint32_t connections;
    uint32_t timeout_ms;
    uint32_t stream_idle_ms;
    uint32_t refresh_ms;
    size_t answer_bytes;
    circuit_rules circuit;
    /* Whether a card that was fetched may be used; NULL: every card. False: `*out_why` says why. */
    bool (*admits_card)(void *user, json_val card, const char **out_why);
    void *admits_user;
    /* An agent made of tools: globs over their names; NULL: it is elsewhere. */
    const bay_str *tools;
    size_t tool_count;
    bay_str title;
    bay_str description;
} agents_settings;

/* What is the same for all agents of a gateway. */
/* What callers of the gateway have to bring: its cards declare it. One kind of them is enough. */
typedef struct agents_security {
    const bay_str *issuers; /* of access tokens */
    size_t issuer_count;
    const bay_str *scopes; /* that every token needs */
    size_t scope_count;
    bool has_keys; /* API keys */
    bool has_certificates;
} agents_security;

typedef struct agents_public {
    bay_str base;        /* "https://gateway.example" */
    bay_str grpc;        /* "gateway.example:443"; "": gRPC is not served */
    const jose_key *key; /* NULL: cards are not signed */
    bay_str jku;         /* where its public half is; "" */
    bool is_hybrid_default;
    uint32_t card_max_age_s;
    const address_rules *webhooks; /* where webhooks may be as well; NULL: public addresses only */
    const bay_str *webhook_rules;  /* the same, as it was written */
    size_t webhook_rule_count;
    bay_str via;          /* the gateway's name in the Via of what it passes on; "": none is sent */
    bool relays_webhooks; /* all are told by the gateway, also where the agent could */
    agents_security security;
} agents_public;

#endif

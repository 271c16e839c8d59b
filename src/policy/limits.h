/* Limits of rate: how many calls an address, a principal, a tool and a server may make or get. Each
 * has a bucket (base/buckets.h) that all loops share. A call is charged twice: to its principal when
 * it arrives, whatever it names; and, when nothing but the dispatch is left, to the buckets of
 * (principal, tool), the tool, and the server: to all of them, or to none where one is full.
 *
 * A reload changes rates, not buckets. A principal that nobody proved is its address; an address of
 * IPv6 is its /64, which one customer has. */
#ifndef POLICY_LIMITS_H
#define POLICY_LIMITS_H

#include "base/buckets.h"
#include "policy/rules.h"
#include "policy/tools.h"

enum { POLICY_BUCKETS = 65536 };

/* Ceilings, whatever the tool is. */
typedef struct policy_rates {
    policy_rate address;   /* of each address: requests */
    policy_rate principal; /* of each principal: calls of all kinds */
    policy_rate tool;      /* of each tool, prompt and agent: calls of all principals */
    policy_rate server;    /* of each server and agent: calls of all principals */
} policy_rates;

/* Why a call is refused. */
typedef struct policy_excess {
    char text[256]; /* for people and models: the limit, and when to try again */
    uint32_t retry_after_ms;
} policy_excess;

typedef struct policy_payer {
    const auth_principal *principal;
    const policy_origin *origin; /* NULL: unknown */
} policy_payer;

typedef struct policy_limits policy_limits;

/* One loop's view of the limits. Embedded in its owner. It brings the functions along: a program
 * without limits does not link them. */
struct policy_limits {
    buckets *table; /* NULL: there was no memory for it, and every call is refused */
    policy_rates rates;
    const policy_origin *(*origin)(const policy_rules *rules, const net_address *address,
                                   const http_field *fields, size_t count, arena *memory);
    policy_tool (*find)(policy_tools_index *tools, bay_str name);
    bool (*enter)(policy_limits *self, const policy_payer *payer, uint64_t now_ms,
                  policy_excess *out);
    bool (*spend)(policy_limits *self, const policy_payer *payer, const policy_name *about,
                  const policy_tool *tool, uint64_t now_ms, policy_excess *out);
};

/* `table`: of all loops; NULL: see policy_limits. Takes a reference. */
void policy_limits_set(policy_limits *self, buckets *table, const policy_rates *rates);
void policy_limits_fini(policy_limits *self);

/* A call arrives. False: its principal has made too many. */
bool policy_limits_enter(policy_limits *self, const policy_payer *payer, uint64_t now_ms,
                         policy_excess *out);
/* A call is about to be made. False: `out` says which of the limits it is above; nothing is charged.
 */
bool policy_limits_spend(policy_limits *self, const policy_payer *payer, const policy_name *about,
                         const policy_tool *tool, uint64_t now_ms, policy_excess *out);
/* A request from an address comes in. False: too many have. */
bool policy_limits_admits(policy_limits *self, const net_address *address, uint64_t now_ms,
                          policy_excess *out);

#endif

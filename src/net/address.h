/* IP addresses: their classes, and rules for connecting. For programs that connect to addresses
 * that peers supply (webhooks, key sets): by default only to global unicast addresses. Addresses
 * that carry another one (IPv4-mapped, NAT64, 6to4, ISATAP) have the class of the carried one. */
#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

#include "patchbay/types.h"

enum {
    ADDRESS_RULES = 256,      /* of one list */
    ADDRESS_RULE_BYTES = 260, /* of one of them */
};

/* IPv4 is mapped into IPv6 (::ffff:0:0/96). Network order. */
typedef struct net_address {
    uint8_t bytes[16];
} net_address;

typedef enum address_class {
    ADDRESS_GLOBAL,
    ADDRESS_UNSPECIFIED, /* 0.0.0.0/8, :: */
    ADDRESS_LOOPBACK,
    ADDRESS_PRIVATE,    /* RFC 1918, fc00::/7, fec0::/10, 64:ff9b:1::/48 */
    ADDRESS_SHARED,     /* carrier-grade NAT, 100.64.0.0/10 */
    ADDRESS_LINK_LOCAL, /* 169.254.0.0/16, fe80::/10 */
    ADDRESS_METADATA,   /* metadata services of clouds */
    ADDRESS_MULTICAST,
    ADDRESS_DOCUMENTATION, /* and benchmarks */
    ADDRESS_RESERVED,      /* broadcast, Teredo, everything outside of 2000::/3 */
    ADDRESS_CLASSES
} address_class;

/* "a private address"; static. */
const char *address_class_text(address_class kind);

/* A literal, IPv4 as four numbers, IPv6 without brackets and zone. Errors: BAY_ERR_SYNTAX. */
bay_err address_parse(bay_str text, net_address *out) BAY_MUST_CHECK;

/* Source: the IANA registries of special-purpose addresses, RFC 6890, 6052, 3056, 5214. */
address_class address_class_of(const net_address *self);

/* An address prefix: "10.0.0.0/8", "::1/128", or one address. */
typedef struct net_network {
    net_address start;
    uint8_t bits;
} net_network;

/* Errors: BAY_ERR_SYNTAX: not a network. Bits after the prefix are ignored. */
bay_err network_parse(bay_str text, net_network *out) BAY_MUST_CHECK;
bool network_has(const net_network *self, const net_address *address);

/* Addresses that may be connected to in addition to global unicast ones. */
typedef struct address_rules address_rules;

/* `texts`: addresses and networks ("127.0.0.1", "10.0.0.0/8", "::1/128"), host names
 * ("hooks.internal") and all names below one ("*.internal"), case ignored. A name permits any
 * address of its host except those of ADDRESS_METADATA, which must be named themselves. Owns: the
 * caller; copies. Errors: BAY_ERR_SYNTAX with `diag`; BAY_ERR_LIMIT: more than ADDRESS_RULES;
 * BAY_ERR_NOMEM. Threads: any; immutable. */
bay_err address_rules_new(const bay_str *texts, size_t count, address_rules **out,
                          bay_diag *diag) BAY_MUST_CHECK;
void address_rules_free(address_rules *self); /* NULL is allowed */

/* `host`: as requested; empty if only the address is known. `self` NULL: no rules. */
bool address_rules_permit(const address_rules *self, bay_str host, const net_address *address);

/* The same for a URL, before its host is resolved: false with `out_kind` if it names an address, or
 * this machine, that may not be connected to. */
bool address_rules_permit_url(const address_rules *self, bay_str url, address_class *out_kind);

#endif

/* Classifies addresses by tables: one of prefixes with their class, one of prefixes that carry an
 * IPv4 address. An address without a row is global if it is IPv4 or in 2000::/3, otherwise
 * reserved. */
#include "net/address.h"

#include <string.h>
#include <uv.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "wire/header.h"
#include "wire/uri.h"

typedef struct prefix {
    uint8_t bytes[16];
    uint8_t bits;
    uint8_t kind; /* address_class */
} prefix;

#define V4(a, b, c, d) 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d
#define V4_BITS(bits) (96 + (bits))

/* The first match decides. */
static const prefix prefixes[] = {
    {{V4(169, 254, 169, 254)}, V4_BITS(32), ADDRESS_METADATA},
    {{V4(169, 254, 170, 2)}, V4_BITS(32), ADDRESS_METADATA},
    {{V4(169, 254, 170, 23)}, V4_BITS(32), ADDRESS_METADATA},
    {{V4(100, 100, 100, 200)}, V4_BITS(32), ADDRESS_METADATA},
    {{V4(168, 63, 129, 16)}, V4_BITS(32), ADDRESS_METADATA},
    {{V4(192, 0, 0, 192)}, V4_BITS(32), ADDRESS_METADATA},
    {{V4(0, 0, 0, 0)}, V4_BITS(8), ADDRESS_UNSPECIFIED},
    {{V4(10, 0, 0, 0)}, V4_BITS(8), ADDRESS_PRIVATE},
    {{V4(100, 64, 0, 0)}, V4_BITS(10), ADDRESS_SHARED},
    {{V4(127, 0, 0, 0)}, V4_BITS(8), ADDRESS_LOOPBACK},
    {{V4(169, 254, 0, 0)}, V4_BITS(16), ADDRESS_LINK_LOCAL},
    {{V4(172, 16, 0, 0)}, V4_BITS(12), ADDRESS_PRIVATE},
    {{V4(192, 0, 0, 0)}, V4_BITS(24), ADDRESS_RESERVED},
    {{V4(192, 0, 2, 0)}, V4_BITS(24), ADDRESS_DOCUMENTATION},
    {{V4(192, 88, 99, 0)}, V4_BITS(24), ADDRESS_RESERVED},
    {{V4(192, 168, 0, 0)}, V4_BITS(16), ADDRESS_PRIVATE},
    {{V4(198, 18, 0, 0)}, V4_BITS(15), ADDRESS_DOCUMENTATION},
    {{V4(198, 51, 100, 0)}, V4_BITS(24), ADDRESS_DOCUMENTATION},
    {{V4(203, 0, 113, 0)}, V4_BITS(24), ADDRESS_DOCUMENTATION},
    {{V4(224, 0, 0, 0)}, V4_BITS(4), ADDRESS_MULTICAST},
    {{V4(240, 0, 0, 0)}, V4_BITS(4), ADDRESS_RESERVED},
    {{V4(0, 0, 0, 0)}, V4_BITS(0), ADDRESS_GLOBAL},
    {{[15] = 1}, 128, ADDRESS_LOOPBACK},
    {{0}, 128, ADDRESS_UNSPECIFIED},
    {{0xfd, 0, 0x0e, 0xc2, [14] = 2, [15] = 0x54}, 128, ADDRESS_METADATA},
    {{0, 0x64, 0xff, 0x9b, 0, 1}, 48, ADDRESS_PRIVATE},
    {{0xfc}, 7, ADDRESS_PRIVATE},
    {{0xfe, 0xc0}, 10, ADDRESS_PRIVATE},
    {{0xfe, 0x80}, 10, ADDRESS_LINK_LOCAL},
    {{0xff}, 8, ADDRESS_MULTICAST},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, ADDRESS_DOCUMENTATION},
    {{0x3f, 0xff}, 20, ADDRESS_DOCUMENTATION},
    {{0x20, 0x01, 0, 2}, 48, ADDRESS_DOCUMENTATION},
    {{0x20, 0x01}, 23, ADDRESS_RESERVED}, /* protocol assignments, Teredo among them */
    {{0x20}, 3, ADDRESS_GLOBAL},
};

/* Where another kind of address carries an IPv4 address. */
typedef struct carrier {
    uint8_t bytes[16];
    uint8_t bits;
    uint8_t at;
} carrier;

static const carrier carriers[] = {
    {{0, 0x64, 0xff, 0x9b}, 96, 12}, /* NAT64, RFC 6052 */
    {{0x20, 0x02}, 16, 2},           /* 6to4, RFC 3056 */
    {{0}, 96, 12},                   /* IPv4-compatible, RFC 4291 section 2.5.5.1 */
};

const char *address_class_text(address_class kind)
{
    static const char *const texts[ADDRESS_CLASSES] = {
        [ADDRESS_GLOBAL] = "a global address",
        [ADDRESS_UNSPECIFIED] = "no address of a host",
        [ADDRESS_LOOPBACK] = "a loopback address",
        [ADDRESS_PRIVATE] = "a private address",
        [ADDRESS_SHARED] = "a shared (carrier-grade NAT) address",
        [ADDRESS_LINK_LOCAL] = "a link-local address",
        [ADDRESS_METADATA] = "a cloud's metadata service",
        [ADDRESS_MULTICAST] = "a multicast address",
        [ADDRESS_DOCUMENTATION] = "an address for documentation or benchmarks",
        [ADDRESS_RESERVED] = "a reserved address",
    };
    return texts[kind];
}

static bool is_within(const net_address *self, const uint8_t *bytes, unsigned bits)
{
    unsigned whole = bits / 8;
    unsigned rest = bits % 8;
    return memcmp(self->bytes, bytes, whole) == 0 &&
           (rest == 0 || ((self->bytes[whole] ^ bytes[whole]) >> (8 - rest)) == 0);
}

static net_address from_v4(const uint8_t *four)
{
    net_address address = {{V4(four[0], four[1], four[2], four[3])}};
    return address;
}

static address_class class_by_table(const net_address *self)
{
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        if (is_within(self, prefixes[i].bytes, prefixes[i].bits)) {
            return (address_class)prefixes[i].kind;
        }
    }
    return ADDRESS_RESERVED;
}

/* RFC 5214: the last eight bytes are [02]00:5efe and an IPv4 address. */
static bool is_isatap(const net_address *self)
{
    const uint8_t *id = self->bytes + 8;
    return (id[0] & 0xfd) == 0 && id[1] == 0 && id[2] == 0x5e && id[3] == 0xfe;
}

address_class address_class_of(const net_address *self)
{
    static const uint8_t unspecified_and_loopback[15] = {0};
    if (memcmp(self->bytes, unspecified_and_loopback, 15) != 0 || self->bytes[15] > 1) {
        for (size_t i = 0; i < ARRAY_LEN(carriers); i++) {
            if (is_within(self, carriers[i].bytes, carriers[i].bits)) {
                net_address inner = from_v4(self->bytes + carriers[i].at);
                return class_by_table(&inner);
            }
        }
    }
    address_class own = class_by_table(self);
    if (own == ADDRESS_GLOBAL && is_isatap(self)) {
        net_address inner = from_v4(self->bytes + 12);
        return class_by_table(&inner);
    }
    return own;
}

bay_err address_parse(bay_str text, net_address *out)
{
    char literal[64];
    uint8_t four[4];
    net_address address;
    if (text.len == 0 || text.len >= sizeof(literal) || memchr(text.at, '\0', text.len) != NULL ||
        memchr(text.at, '%', text.len) != NULL) {
        return BAY_ERR_SYNTAX;
    }
    memcpy(literal, text.at, text.len);
    literal[text.len] = '\0';
    if (uv_inet_pton(AF_INET, literal, four) == 0) {
        *out = from_v4(four);
        return BAY_OK;
    }
    if (uv_inet_pton(AF_INET6, literal, address.bytes) != 0) {
        return BAY_ERR_SYNTAX;
    }
    *out = address;
    return BAY_OK;
}

bay_err network_parse(bay_str text, net_network *out)
{
    size_t slash = str_find(text, '/');
    bay_str literal = str_head(text, slash);
    bool is_v6 = literal.len > 0 && memchr(literal.at, ':', literal.len) != NULL;
    uint64_t most = is_v6 ? 128 : 32;
    uint64_t bits = most;
    net_network network;
    if (address_parse(literal, &network.start) != BAY_OK ||
        (slash < text.len && (!str_uint(str_from(text, slash + 1), &bits) || bits > most))) {
        return BAY_ERR_SYNTAX;
    }
    network.bits = (uint8_t)(is_v6 ? bits : V4_BITS(bits));
    *out = network;
    return BAY_OK;
}

bool network_has(const net_network *self, const net_address *address)
{
    return is_within(address, self->start.bytes, self->bits);
}

/* --- rules ------------------------------------------------------------------------------------ */

typedef struct address_rule {
    bool is_name;
    net_network network;
    bay_str name; /* ".internal": all names below it */
    char text[];
} address_rule;

struct address_rules {
    size_t count;
    address_rule *rules[];
};

void address_rules_free(address_rules *self)
{
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < self->count; i++) {
        mem_free(self->rules[i]);
    }
    mem_free(self);
}

static bool name_is_valid(bay_str name)
{
    if (name.len == 0) {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool is_fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || (c == '.' && i > 0 && name.at[i - 1] != '.');
        if (!is_fine) {
            return false;
        }
    }
    return true;
}

static bay_err rule_new(bay_str text, address_rule **out, bay_diag *diag)
{
    if (text.len == 0 || text.len > ADDRESS_RULE_BYTES) {
        return diag_set(diag, BAY_ERR_SYNTAX, "an allowed address is empty or too long");
    }
    address_rule *rule = mem_zalloc(sizeof(*rule) + text.len);
    if (rule == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    memcpy(rule->text, text.at, text.len);
    rule->name = (bay_str){rule->text, text.len};
    bool is_below = str_starts(text, STR("*."));
    if (is_below) {
        rule->name = str_from(rule->name, 1);
    }
    bay_str plain = is_below ? str_from(rule->name, 1) : rule->name;
    if (!is_below && network_parse(text, &rule->network) == BAY_OK) {
        *out = rule;
        return BAY_OK;
    }
    /* A text that ends in a number is not a name: "10.0.0" must not count as one. */
    size_t dot = str_find_last(plain, '.');
    uint64_t number = 0;
    bool is_number = str_uint(dot < plain.len ? str_from(plain, dot + 1) : plain, &number);
    if (is_number || !name_is_valid(plain)) {
        mem_free(rule);
        return diag_set(diag, BAY_ERR_SYNTAX, "\"%.*s\" is no address, network or host name",
                        (int)(text.len < 100 ? text.len : 100), text.at);
    }
    rule->is_name = true;
    *out = rule;
    return BAY_OK;
}

bay_err address_rules_new(const bay_str *texts, size_t count, address_rules **out, bay_diag *diag)
{
    if (count > ADDRESS_RULES) {
        return diag_set(diag, BAY_ERR_LIMIT, "more than %d allowed addresses", ADDRESS_RULES);
    }
    address_rules *self = mem_zalloc(sizeof(*self) + count * sizeof(self->rules[0]));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    for (; self->count < count; self->count++) {
        bay_err err = rule_new(texts[self->count], &self->rules[self->count], diag);
        if (err != BAY_OK) {
            address_rules_free(self);
            return err;
        }
    }
    *out = self;
    return BAY_OK;
}

static bool name_matches(const address_rule *rule, bay_str host)
{
    if (host.len > 0 && host.at[host.len - 1] == '.') {
        host.len--;
    }
    if (rule->name.at[0] != '.') {
        return str_eq_nocase(host, rule->name);
    }
    return host.len > rule->name.len &&
           str_eq_nocase(str_from(host, host.len - rule->name.len), rule->name);
}

bool address_rules_permit(const address_rules *self, bay_str host, const net_address *address)
{
    address_class kind = address_class_of(address);
    if (kind == ADDRESS_GLOBAL) {
        return true;
    }
    for (size_t i = 0; self != NULL && i < self->count; i++) {
        const address_rule *rule = self->rules[i];
        if (rule->is_name ? kind != ADDRESS_METADATA && name_matches(rule, host)
                          : network_has(&rule->network, address)) {
            return true;
        }
    }
    return false;
}

bool address_rules_permit_url(const address_rules *self, bay_str url, address_class *out_kind)
{
    uri parts;
    net_address address;
    *out_kind = ADDRESS_GLOBAL;
    if (uri_parse(&parts, url) != BAY_OK) {
        return true;
    }
    if (address_parse(parts.host, &address) == BAY_OK) {
        *out_kind = address_class_of(&address);
        return address_rules_permit(self, parts.host, &address);
    }
    if (!header_host_is_loopback(parts.host)) {
        return true;
    }
    static const bay_str here[] = {STR_INIT("127.0.0.1"), STR_INIT("::1")};
    *out_kind = ADDRESS_LOOPBACK;
    for (size_t i = 0; i < ARRAY_LEN(here); i++) {
        if (address_parse(here[i], &address) == BAY_OK &&
            address_rules_permit(self, parts.host, &address)) {
            return true;
        }
    }
    return false;
}

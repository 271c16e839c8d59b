#include "net/address_guard.h"

#include "base/str.h"
#include "wire/uri.h"

static address_reach reach_of(address_class kind)
{
    return kind == ADDRESS_GLOBAL     ? ADDRESS_ELSEWHERE
           : kind == ADDRESS_LOOPBACK ? ADDRESS_SAME_MACHINE
                                      : ADDRESS_SAME_NETWORK;
}

/* Addresses of this machine are for peers on it, those of a network for peers in it. */
static bool is_near_enough(const address_guard *self, address_class kind)
{
    switch (kind) {
    case ADDRESS_LOOPBACK:
    case ADDRESS_UNSPECIFIED:
        return self->reach == ADDRESS_SAME_MACHINE;
    case ADDRESS_PRIVATE:
    case ADDRESS_SHARED:
    case ADDRESS_LINK_LOCAL:
    case ADDRESS_DOCUMENTATION:
        return self->reach == ADDRESS_SAME_MACHINE || self->reach == ADDRESS_SAME_NETWORK;
    default:
        return false;
    }
}

bool address_guard_is_here(const address_guard *self)
{
    return self->reach == ADDRESS_SAME_MACHINE;
}

bool address_guard_is_home(const address_guard *self, bay_str host)
{
    uri parts;
    return uri_parse(&parts, self->home) == BAY_OK && str_eq_nocase(parts.host, host);
}

bool address_guard_permit(void *user, bay_str host, const net_address *address)
{
    address_guard *self = user;
    address_class kind = address_class_of(address);
    if (address_guard_is_home(self, host)) {
        /* the farthest decides: a name may have several addresses, and others later */
        address_reach reach = reach_of(kind);
        self->reach = reach > self->reach ? reach : self->reach;
        return true;
    }
    return address_rules_permit(self->rules, host, address) || is_near_enough(self, kind);
}

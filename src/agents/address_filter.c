#include "agents/address_filter.h"

#include "base/log.h"
#include "wire/uri.h"

/* From near to far: who is seen farther away is trusted with less. */
enum { UNSEEN, SAME_MACHINE, SAME_NETWORK, ELSEWHERE };

bay_err agents_address_filter_init(agents_address_filter *self, const agents_settings *settings,
                                   bay_diag *diag)
{
    *self = (agents_address_filter){.settings = settings};
    return settings->allow_count > 0
               ? address_rules_new(settings->allow, settings->allow_count, &self->rules, diag)
               : BAY_OK;
}

void agents_address_filter_fini(agents_address_filter *self)
{
    address_rules_free(self->rules);
    self->rules = NULL;
}

static bool is_host_of(bay_str url, bay_str host)
{
    uri parts;
    return uri_parse(&parts, url) == BAY_OK && str_eq_nocase(parts.host, host);
}

static int reach_of(address_class kind)
{
    return kind == ADDRESS_GLOBAL     ? ELSEWHERE
           : kind == ADDRESS_LOOPBACK ? SAME_MACHINE
                                      : SAME_NETWORK;
}

/* A machine's own addresses are for those on it, a network's for those in it. */
static bool is_near_enough(const agents_address_filter *self, address_class kind)
{
    switch (kind) {
    case ADDRESS_LOOPBACK:
    case ADDRESS_UNSPECIFIED:
        return self->reach == SAME_MACHINE;
    case ADDRESS_PRIVATE:
    case ADDRESS_SHARED:
    case ADDRESS_LINK_LOCAL:
    case ADDRESS_DOCUMENTATION:
        return self->reach == SAME_MACHINE || self->reach == SAME_NETWORK;
    default:
        return false;
    }
}

bool agents_address_filter_is_here(const agents_address_filter *self)
{
    return self->reach == SAME_MACHINE;
}

bool agents_address_filter_permit(void *user, bay_str host, const net_address *address)
{
    agents_address_filter *self = user;
    address_class kind = address_class_of(address);
    if (is_host_of(self->settings->url, host)) {
        /* the farthest counts: a name may have several addresses, and others later */
        int reach = reach_of(kind);
        self->reach = reach > self->reach ? reach : self->reach;
        return true;
    }
    if (address_rules_permit(self->rules, host, address) || is_near_enough(self, kind)) {
        return true;
    }
    LOG(LOG_WARN, "agents",
        "the card of \"%.*s\" leads to %.*s, which is %s: not connected to; its key allow would "
        "permit it",
        BAY_STR(self->settings->name), BAY_STR(host), address_class_text(kind));
    return false;
}

bool agents_address_filter_permit_keys(void *user, bay_str host, const net_address *address)
{
    const agents_address_filter *self = user;
    const agents_verify *verify = &self->settings->verify;
    (void)address;
    for (size_t i = 0; i < verify->jku_count; i++) {
        if (is_host_of(verify->jku[i], host)) {
            return true;
        }
    }
    return false;
}

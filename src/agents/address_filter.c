#include "agents/address_filter.h"

#include "base/log.h"

bay_err agents_address_filter_init(agents_address_filter *self, const agents_settings *settings,
                                   bay_diag *diag)
{
    *self = (agents_address_filter){.settings = settings, .guard = {.home = settings->url}};
    bay_err err =
        settings->allow_count > 0
            ? address_rules_new(settings->allow, settings->allow_count, &self->rules, diag)
            : BAY_OK;
    self->guard.rules = self->rules;
    return err;
}

void agents_address_filter_fini(agents_address_filter *self)
{
    address_rules_free(self->rules);
    self->rules = NULL;
    self->guard.rules = NULL;
}

bool agents_address_filter_permit(void *user, bay_str host, const net_address *address)
{
    agents_address_filter *self = user;
    if (address_guard_permit(&self->guard, host, address)) {
        return true;
    }
    LOG(LOG_WARN, "agents",
        "the card of \"%.*s\" leads to %.*s, which is %s: not connected to; its key allow would "
        "permit it",
        BAY_STR(self->settings->name), BAY_STR(host),
        address_class_text(address_class_of(address)));
    return false;
}

bool agents_address_filter_permit_keys(void *user, bay_str host, const net_address *address)
{
    const agents_address_filter *self = user;
    const agents_verify *verify = &self->settings->verify;
    (void)address;
    for (size_t i = 0; i < verify->jku_count; i++) {
        address_guard named = {.home = verify->jku[i]};
        if (address_guard_is_home(&named, host)) {
            return true;
        }
    }
    return false;
}

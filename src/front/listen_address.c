#include "front/listen_address.h"

#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "net/address.h"
#include "net/socket.h"
#include "wire/header.h"

bay_err listen_policy_check(const listen_policy *self, bay_diag *diag)
{
    return self->is_protected && self->is_open
               ? diag_set(diag, BAY_ERR_INVALID,
                          "%s authenticates callers and %s admits anybody: remove one of the two",
                          self->authentication, self->opening)
               : BAY_OK;
}

/* a2a 1.0.1 section 13; mcp 2026-07-28 basic/transports/streamable-http, Security Warning: servers
 * SHOULD bind to localhost, and SHOULD authenticate all connections */
bay_err listen_policy_decide(const listen_policy *self, bay_str address, bool is_local,
                             bay_diag *diag)
{
    address = str_head(address, 64);
    if (!is_local && !self->is_protected && !self->is_open) {
        return diag_set(diag, BAY_ERR_DENIED,
                        "other machines can reach %.*s, and callers are not authenticated: use %s, "
                        "or %s if anybody may call",
                        BAY_STR(address), self->authentication, self->opening);
    }
    if (!is_local && self->missing_url != NULL) {
        return diag_set(diag, BAY_ERR_INVALID,
                        "other machines can reach %.*s, and tokens must be for the address they "
                        "know it by: set %s",
                        BAY_STR(address), self->missing_url);
    }
    return BAY_OK;
}

bay_err listen_policy_admit(const listen_policy *self, bay_str address, bool *out_is_local,
                            bay_diag *diag)
{
    bool is_local = false;
    bay_err err = listen_policy_check(self, diag);
    if (err == BAY_OK) {
        err = socket_address_is_local(address, &is_local, diag);
    }
    if (err == BAY_OK) {
        err = listen_policy_decide(self, address, is_local, diag);
    }
    if (err == BAY_OK) {
        *out_is_local = is_local;
    }
    return err;
}

static bay_str host_of(bay_str address)
{
    return str_head(address, str_find_last(address, ':'));
}

bool listen_names_have(const listen_names *self, bay_str name)
{
    for (size_t i = 0; self != NULL && i < self->count; i++) {
        if (str_eq_nocase(str_of(self->at[i]), name)) {
            return true;
        }
    }
    return false;
}

void listen_names_add(listen_names *self, bay_str address)
{
    bay_str name;
    uint16_t port;
    if (header_host_split(host_of(address), &name, &port) == BAY_OK &&
        !header_host_is_loopback(name) && !listen_names_have(self, name) &&
        self->count < LISTEN_NAMES && name.len <= LISTEN_NAME_BYTES) {
        memcpy(self->at[self->count++], name.at, name.len); /* the rest is zero */
    }
}

static bool is_every_address(bay_str host)
{
    net_address literal;
    if (host.len == 0 || str_eq(host, STR("*"))) {
        return true;
    }
    if (str_starts(host, STR("[")) && str_ends(host, STR("]"))) {
        host = (bay_str){host.at + 1, host.len - 2};
    }
    return address_parse(host, &literal) == BAY_OK &&
           address_class_of(&literal) == ADDRESS_UNSPECIFIED;
}

static void write_with_port(bay_str host, uint16_t port, buf *out)
{
    buf_str(out, host);
    buf_char(out, ':');
    buf_uint(out, port);
}

void listen_address_write(bay_str address, uint16_t port, buf *out)
{
    bay_str host = host_of(address);
    bool is_unnamed = host.len == 0 || str_eq(host, STR("*"));
    write_with_port(is_unnamed ? STR("[::]") : host, port, out);
}

void listen_address_write_reachable(bay_str address, uint16_t port, buf *out)
{
    char machine[256];
    bay_str host = host_of(address);
    if (is_every_address(host) && gethostname(machine, sizeof(machine)) == 0) {
        machine[sizeof(machine) - 1] = '\0';
        host = str_of(machine);
    }
    write_with_port(host, port, out);
}

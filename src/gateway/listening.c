/* Where the gateway listens, and who may reach it there. Addresses and TLS stay what the first
 * configuration said; a reload can neither open the gateway nor take the protection away that what
 * is listened on needs. */
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "front/listen_address.h"
#include "gateway/worker.h"

config_list gateway_addresses(const gateway *self)
{
    const bay_str *given = &self->options.listen;
    return given->len > 0 ? (config_list){given, 1} : self->started->listen;
}

static listen_policy policy_of(const gateway *self, const config *settings)
{
    bool has_url = settings->public_url.len > 0 || settings->a2a.public_url.len > 0;
    return (listen_policy){
        .is_protected =
            settings->tls.require_client_certificate || gateway_auth_guards_all(settings),
        .is_open = settings->is_open || self->options.is_open,
        .authentication = "auth or tls.requireClientCertificate",
        .opening = "open: true (--open)",
        .missing_url = has_url || !config_auth_has_issuers(settings) ? NULL : "publicUrl",
    };
}

bay_err gateway_check_listening(gateway *self, bay_diag *diag)
{
    config_list addresses = gateway_addresses(self);
    listen_policy policy = policy_of(self, self->started);
    bool is_local = true;
    for (size_t i = 0; !self->options.on_stdio && i < addresses.count; i++) {
        bool is_this_local = false;
        bay_err err = listen_policy_admit(&policy, addresses.at[i], &is_this_local, diag);
        if (err != BAY_OK) {
            return err;
        }
        if (is_this_local) {
            listen_names_add(&self->names, addresses.at[i]);
        }
        is_local = is_local && is_this_local;
    }
    self->is_local = is_local;
    return BAY_OK;
}

static bool same_list(config_list a, config_list b)
{
    bool is_same = a.count == b.count;
    for (size_t i = 0; is_same && i < a.count; i++) {
        is_same = str_eq(a.at[i], b.at[i]);
    }
    return is_same;
}

static bool same_tls(const config_tls *a, const config_tls *b)
{
    return str_eq(a->certificate, b->certificate) && str_eq(a->key, b->key) &&
           str_eq(a->client_ca, b->client_ca) &&
           a->require_client_certificate == b->require_client_certificate;
}

bay_err gateway_check_reload(const gateway *self, const config *next, bay_diag *diag)
{
    if (self->options.on_stdio) {
        return BAY_OK;
    }
    listen_policy policy = policy_of(self, next);
    bay_err err = listen_policy_check(&policy, diag);
    if (err != BAY_OK) {
        return err;
    }
    bool is_moved =
        self->options.listen.len == 0 && !same_list(self->started->listen, next->listen);
    bool is_local = self->is_local;
    for (size_t i = 0; is_moved && i < next->listen.count; i++) {
        err = listen_policy_admit(&policy, next->listen.at[i], &is_local, diag);
        if (err != BAY_OK) {
            return err;
        }
    }
    policy.is_protected = /* what is in force */
        self->started->tls.require_client_certificate || gateway_auth_guards_all(next);
    err = listen_policy_decide(&policy, gateway_addresses(self).at[0], self->is_local, diag);
    if (err == BAY_ERR_DENIED) {
        return diag_set(diag, err,
                        "other machines reach what is listened on, and callers are not "
                        "authenticated: keep open: true, or restart the gateway with other "
                        "settings of listen or tls");
    }
    return err;
}

size_t gateway_later_keys(const gateway *self, const config *next,
                          const char *out[GATEWAY_LATER_KEYS])
{
    const config *started = self->started;
    bool is_served = !self->options.on_stdio;
    size_t count = 0;
    if (is_served && self->options.listen.len == 0 && !same_list(started->listen, next->listen)) {
        out[count++] = "listen";
    }
    if (is_served && !same_tls(&started->tls, &next->tls)) {
        out[count++] = "tls";
    }
    if (is_served && self->options.workers == 0 && started->workers != next->workers) {
        out[count++] = "workers";
    }
    if (is_served && !str_eq(started->store, next->store)) {
        out[count++] = "store";
    }
    if (is_served && !same_list(started->allowed_hosts, next->allowed_hosts)) {
        out[count++] = "allowedHosts";
    }
    if (is_served && !same_list(started->allowed_origins, next->allowed_origins)) {
        out[count++] = "allowedOrigins";
    }
    if (is_served && !same_list(started->trusted_proxies, next->trusted_proxies)) {
        out[count++] = "trustedProxies";
    }
    if (!same_list(started->admin.listen, next->admin.listen) ||
        (started->admin.listen.at == NULL) != (next->admin.listen.at == NULL)) {
        out[count++] = "admin";
    }
    if (!gateway_evidence_is_same(started, next)) {
        out[count++] = "audit, metrics and log.access";
    }
    if (self->pins != NULL && !str_eq(str_of(trust_pins_path(self->pins)), next->pins.file)) {
        out[count++] = "pins.file";
    }
    return count;
}

/* ---- as people and cards are told ------------------------------------------------------------ */

size_t gateway_address_count(const gateway *self)
{
    return gateway_addresses(self).count;
}

void gateway_write_address(const gateway *self, size_t index, buf *out)
{
    listen_address_write(gateway_addresses(self).at[index], self->ports[index], out);
}

void gateway_write_reachable(const gateway *self, buf *out)
{
    listen_address_write_reachable(gateway_addresses(self).at[0], self->ports[0], out);
}

bool gateway_is_local(const gateway *self)
{
    return self->is_local;
}

uint16_t gateway_port(const gateway *self)
{
    return self->ports[0];
}

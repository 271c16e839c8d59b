/* What a gateway would refuse at its start of a configuration that is well formed: who could reach
 * it, certificates and keys of issuers that are none, a lock file that cannot be read. Nothing is
 * listened on, started or written. */
#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"
#include "gateway/worker.h"

static void report_add(config_report *report, uint32_t line, const char *key, const bay_diag *diag)
{
    char text[sizeof(diag->text) + 16];
    (void)snprintf(text, sizeof(text), "%s%s", key, diag->text);
    config_report_error(report, line, text);
}

/* False after telling which cannot be used. */
static bool check_issuers(const config *settings, config_report *report)
{
    size_t before = report->errors;
    for (size_t i = 0; i <= settings->profile_count; i++) {
        const config_auth *auth = i == 0 ? &settings->auth : &settings->profiles[i - 1].auth;
        for (size_t k = 0; k < auth->issuer_count; k++) {
            bay_diag diag = {0};
            if (gateway_auth_check_issuer(&auth->issuers[k], &diag) != BAY_OK) {
                report_add(report, auth->issuers[k].line, "", &diag);
            }
        }
    }
    return report->errors == before;
}

bay_err gateway_check(const gateway_options *options, config_report *report, bool *out_is_local)
{
    gateway *self = mem_zalloc(sizeof(*self));
    bay_diag diag = {0};
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->options = *options;
    self->config = self->started = options->config;
    bay_err err = gateway_check_listening(self, &diag);
    if (err == BAY_OK) {
        *out_is_local = self->is_local;
    } else {
        report_add(report, self->config->listen_line, "listen: ", &diag);
    }
    diag = (bay_diag){0};
    if (gateway_open_tls(self, &diag) != BAY_OK) {
        report_add(report, self->config->tls.line, "tls: ", &diag);
    }
    diag = (bay_diag){0};
    if (check_issuers(self->config, report) &&
        gateway_auth_new(self->config, NULL, &self->auth, &diag) != BAY_OK) {
        report_add(report, 0, "", &diag);
    }
    diag = (bay_diag){0};
    if (gateway_pins_configure(self, self->config, &diag) != BAY_OK) {
        report_add(report, self->config->pins.line, "pins.file: ", &diag);
    }
    trust_pins_unref(self->pins);
    gateway_auth_unref(self->auth);
    tls_free(self->tls);
    mem_free(self);
    return BAY_OK;
}

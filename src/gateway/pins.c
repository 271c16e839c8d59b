/* What the gateway serves, held against the lock and the scanner (trust/pins.h). */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "gateway/grader.h"
#include "gateway/worker.h"
#include "trust/identity.h"

/* ---- what the configuration asks for --------------------------------------------------------- */

static trust_policy policy_of(const config *settings, config_pin own)
{
    config_pin pin = own == CONFIG_PIN_AUTO ? settings->pins.mode : own;
    return (trust_policy){
        .pin = pin == CONFIG_PIN_RECORD ? TRUST_PIN_RECORD
               : pin == CONFIG_PIN_WARN ? TRUST_PIN_WARN
               : pin == CONFIG_PIN_HOLD ? TRUST_PIN_HOLD
                                        : TRUST_PIN_OFF,
        .scan = settings->scan.definitions == CONFIG_SCAN_HOLD   ? TRUST_SCAN_HOLD
                : settings->scan.definitions == CONFIG_SCAN_WARN ? TRUST_SCAN_WARN
                                                                 : TRUST_SCAN_OFF,
    };
}

bool gateway_pins_same_policy(const config *old, config_pin before, const config *next,
                              config_pin now)
{
    trust_policy was = policy_of(old, before);
    trust_policy is = policy_of(next, now);
    return was.pin == is.pin && was.scan == is.scan;
}

static bool is_asked(trust_policy policy)
{
    return policy.pin != TRUST_PIN_OFF || policy.scan != TRUST_SCAN_OFF;
}

static bool needs_pins(const config *settings)
{
    bool is_needed = is_asked(policy_of(settings, CONFIG_PIN_AUTO));
    for (size_t i = 0; i < settings->server_count; i++) {
        is_needed = is_needed || is_asked(policy_of(settings, settings->servers[i].pin)) ||
                    config_least_grade(&settings->servers[i]) != 0;
    }
    for (size_t i = 0; i < settings->agent_count; i++) {
        is_needed = is_needed || is_asked(policy_of(settings, settings->agents[i].pin));
    }
    return is_needed || settings->contracts.mode == CONFIG_CONTRACTS_HOLD;
}

trust_silences *gateway_silences(const config *settings)
{
    trust_silences *made = mem_zalloc(sizeof(*made));
    for (size_t i = 0; made != NULL && i < settings->silence.count; i++) {
        const config_pair *pair = &settings->silence.at[i];
        if (trust_silences_add(made, pair->name, pair->value, NULL) != BAY_OK) {
            mem_free(made);
            return NULL;
        }
    }
    return made;
}

static bay_err take_rules(trust_pins *to, const config *settings)
{
    scan_rule_set *rules = NULL;
    trust_silences *silences = gateway_silences(settings);
    bay_err err = silences != NULL ? config_scan_rules(settings, &rules) : BAY_ERR_NOMEM;
    if (err == BAY_OK) {
        err = trust_pins_set_rules(to, rules, silences);
    } else {
        scan_rule_set_free(rules);
    }
    mem_free(silences);
    return err;
}

static bay_err take_policies(trust_pins *to, const config *settings)
{
    bay_err err = BAY_OK;
    for (size_t i = 0; err == BAY_OK && i < settings->server_count; i++) {
        const config_server *server = &settings->servers[i];
        char bytes[TRUST_IDENTITY_BYTES];
        buf identity = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
        if (server->agent.len > 0) {
            continue; /* made of an agent, whose card is pinned */
        }
        err = trust_pins_set_policy(to, server->name, false, policy_of(settings, server->pin));
        if (err == BAY_OK && server->url.len > 0) {
            bool is_known = trust_identity_url(server->url, &identity) == BAY_OK;
            trust_pins_identify(to, server->name, false,
                                is_known ? buf_view(&identity) : (bay_str){"", 0});
        }
    }
    for (size_t i = 0; err == BAY_OK && i < settings->agent_count; i++) {
        err = trust_pins_set_policy(to, settings->agents[i].name, true,
                                    policy_of(settings, settings->agents[i].pin));
    }
    return err;
}

bay_err gateway_pins_configure(gateway *self, const config *next, bay_diag *diag)
{
    bay_err err = BAY_OK;
    if (self->pins == NULL && !needs_pins(next)) {
        return BAY_OK;
    }
    if (self->pins == NULL) {
        err = trust_pins_new(next->pins.file.at, &self->pins, diag);
    } else if (needs_pins(next)) {
        err = trust_pins_load(self->pins, diag);
    }
    if (err != BAY_OK) {
        return err;
    }
    err = take_rules(self->pins, next);
    err = err == BAY_OK ? take_policies(self->pins, next) : err;
    return err == BAY_OK ? BAY_OK : diag_set(diag, err, "%s", bay_err_text(err));
}

/* ---- the file -------------------------------------------------------------------------------- */

static void save(void *argument)
{
    gateway *self = argument;
    bay_diag diag = {0};
    if (trust_pins_save(self->pins, &diag) != BAY_OK) { /* once a second, until it can be written */
        (void)log_write_paced(&self->pins_unsaved, loop_time_ms(), LOG_WARN, "trust",
                              "what was recorded is not in the lock: %s", diag.text);
    }
}

static void saved(void *argument)
{
    gateway *self = argument;
    self->is_saving_pins = false;
}

void gateway_pins_tick(gateway *self)
{
    if (self->pins == NULL || self->is_saving_pins || !trust_pins_is_due(self->pins)) {
        return;
    }
    self->is_saving_pins = loop_work(self->workers[0].loop, save, saved, self) == BAY_OK;
}

void gateway_pins_close(gateway *self)
{
    if (self->pins != NULL && trust_pins_is_due(self->pins)) {
        save(self);
    }
}

/* ---- loops ----------------------------------------------------------------------------------- */

static void pins_changed(void *argument)
{
    worker *self = argument;
    worker_pins_refresh(self);
    if (!self->is_ending) {
        worker_check_lists_ready(self); /* they may have waited for contracts */
    }
}

void gateway_pins_changed(gateway *self)
{
    for (uint32_t i = 0; i < self->worker_count; i++) {
        if (loop_post(self->workers[i].loop, pins_changed, &self->workers[i]) != BAY_OK) {
            LOG(LOG_ERROR, "trust",
                "out of memory: a loop shows what passes from its next list on");
        }
    }
}

bool worker_upstream_is_held(const worker_upstream *self)
{
    return self->worker->pins != NULL &&
           trust_pins_holds(self->worker->pins, upstream_name(self->upstream), false);
}

static void check_about(worker_upstream *self)
{
    trust_checked before = self->about;
    trust_pins_check_text(self->worker->pins, upstream_name(self->upstream), TRUST_INSTRUCTIONS,
                          upstream_instructions(self->upstream), loop_now_ms(self->worker->loop),
                          &self->about);
    trust_checked_drop(&before);
}

void worker_pins_take(worker *self)
{
    gateway *owner = self->gateway;
    if (self->pins == NULL && owner->pins != NULL) {
        self->pins = trust_pins_ref(owner->pins);
    }
}

void worker_pins_refresh(worker *self)
{
    worker_pins_take(self);
    for (size_t i = 0; self->pins != NULL && !self->is_ending && i < self->upstream_count; i++) {
        worker_upstream *at = self->upstreams[i];
        for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
            at->fetches[kind].pins = self->pins;
            listing_check(at->fetches[kind].current, kind, self->pins, upstream_name(at->upstream),
                          loop_now_ms(self->loop));
        }
        worker_upstream_pin(at);
        worker_upstream_show(at);
        grader_run(at->grader);
    }
}

void worker_upstream_quarantine(worker_upstream *self)
{
    gateway *owner = self->worker->gateway;
    trust_pins *pins = self->worker->pins;
    bay_str name = upstream_name(self->upstream);
    if (pins == NULL) {
        return;
    }
    uint64_t before = trust_pins_generation(pins);
    if (trust_pins_hold(pins, name, false, TRUST_HELD_CONTRACT,
                        gateway_contracts_hold(self->worker->contracts, name)) != BAY_OK) {
        LOG(LOG_ERROR, "contract", "%.*s: out of memory: it is not held though its contracts fail",
            BAY_STR(name));
    }
    if (trust_pins_generation(pins) != before && !atomic_load(&owner->is_over)) {
        gateway_pins_changed(owner);
    }
}

/* ---- what a program is ----------------------------------------------------------------------- */

/* Its files are read on a thread of the pool. */
typedef struct identifying {
    gateway *gateway;
    trust_pins *pins;
    const config *settings; /* keeps the words */
    bay_str name;
    const char *cwd;
    const char *path;
    char identity[TRUST_IDENTITY_BYTES];
    const char *argv[];
} identifying;

static void identify(void *argument)
{
    identifying *self = argument;
    bay_diag diag = {0};
    buf out = {.at = self->identity, .cap = sizeof(self->identity), .max = sizeof(self->identity)};
    bay_err err = trust_identity_command(self->argv, self->cwd, self->path, &out, &diag);
    if (err != BAY_OK) {
        LOG(LOG_WARN, "trust", "%.*s: what it is could not be found out: %s", BAY_STR(self->name),
            diag.text[0] != '\0' ? diag.text : bay_err_text(err));
    }
    trust_pins_identify(self->pins, self->name, false,
                        err == BAY_OK ? buf_view(&out) : (bay_str){"", 0});
}

static void identified(void *argument)
{
    identifying *self = argument;
    if (!atomic_load(&self->gateway->is_over)) { /* it may pass now, or have another grade */
        gateway_pins_changed(self->gateway);
    }
    trust_pins_unref(self->pins);
    config_free(self->settings);
    mem_free(self);
}

static const char *path_of(const config_server *server)
{
    for (size_t i = 0; i < server->env.count; i++) {
        if (str_eq(server->env.at[i].name, STR("PATH"))) {
            return server->env.at[i].value.at;
        }
    }
    return NULL;
}

static identifying *identifying_new(const worker_upstream *of)
{
    const config_server *server = upstream_config(of->upstream);
    identifying *self =
        mem_zalloc(sizeof(*self) + (server->args.count + 2) * sizeof(self->argv[0]));
    if (self != NULL) {
        self->gateway = of->worker->gateway;
        self->name = server->name;
        self->cwd = server->cwd.len > 0 ? server->cwd.at : NULL;
        self->path = path_of(server);
        self->argv[0] = server->command.at;
        for (size_t i = 0; i < server->args.count; i++) {
            self->argv[i + 1] = server->args.at[i].at;
        }
    }
    return self;
}

/* Where its files are what they were when they were last read, it is what it was. */
static void identify_program(worker_upstream *self)
{
    identifying *made = identifying_new(self);
    uint64_t stamp = made != NULL ? trust_identity_stamp(made->argv, made->cwd, made->path) : 0;
    if (stamp != 0 && stamp == self->identity_stamp) {
        mem_free(made);
        return;
    }
    self->identity_stamp = stamp;
    trust_pins_identify(self->worker->pins, upstream_name(self->upstream), false,
                        (bay_str){NULL, 0});
    if (made == NULL) {
        return; /* unknown: held where that is asked for */
    }
    made->pins = trust_pins_ref(self->worker->pins);
    made->settings = config_ref(self->config);
    if (loop_work(self->worker->loop, identify, identified, made) != BAY_OK) {
        self->identity_stamp = 0;
        identified(made);
    }
}

void worker_upstream_pin(worker_upstream *self)
{
    const config_server *server = upstream_config(self->upstream);
    upstream_state state = upstream_state_of(self->upstream);
    if (self->worker->pins == NULL || server->agent.len > 0) {
        return;
    }
    if (state == UPSTREAM_READY) {
        check_about(self);
    }
    if (!is_asked(policy_of(self->config, server->pin))) {
        return;
    }
    /* A process is what its files were when it started, whatever becomes of them meanwhile. */
    bool is_due =
        state == UPSTREAM_STARTING || (state == UPSTREAM_READY && self->identity_stamp == 0);
    if (!self->is_proxy && server->command.len > 0 && is_due) {
        identify_program(self);
    }
}

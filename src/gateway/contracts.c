#include "gateway/contracts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "gateway/contract_files.h"

typedef struct server_contracts {
    contract_set set;
    size_t room;
    contract_verdict verdict;
} server_contracts;

struct gateway_contracts {
    atomic_uint references;
    config_contracts settings;
    arena memory;
    pthread_mutex_t mutex; /* of the verdicts */
    map by_server;         /* server_contracts, in `memory` */
};

gateway_contracts *gateway_contracts_ref(gateway_contracts *self)
{
    if (self != NULL) {
        atomic_fetch_add(&self->references, 1);
    }
    return self;
}

void gateway_contracts_unref(gateway_contracts *self)
{
    if (self == NULL || atomic_fetch_sub(&self->references, 1) > 1) {
        return;
    }
    map_fini(&self->by_server);
    arena_fini(&self->memory);
    pthread_mutex_destroy(&self->mutex);
    mem_free(self);
}

/* ---- reading --------------------------------------------------------------------------------- */

static server_contracts *enter(gateway_contracts *self, bay_str server)
{
    server_contracts *of = map_get(&self->by_server, server);
    if (of == NULL) {
        of = arena_alloc(&self->memory, sizeof(*of));
        if (of == NULL) {
            return NULL;
        }
        *of = (server_contracts){.set = {.server = server}};
        if (map_put(&self->by_server, server, of, NULL) != BAY_OK) {
            return NULL;
        }
    }
    return of;
}

static bay_err add(gateway_contracts *self, server_contracts *to, const trust_contracts *from)
{
    size_t count = to->set.count + from->count;
    const trust_contract **at = arena_array(&self->memory, count + 1, sizeof(*at));
    if (at == NULL) {
        return BAY_ERR_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        at[i] = i < to->set.count ? to->set.at[i] : &from->at[i - to->set.count];
    }
    to->set.at = at;
    to->set.count = count;
    return BAY_OK;
}

static bay_err read_file(gateway_contracts *self, const config *settings, const char *path,
                         bay_diag *diag)
{
    trust_contracts read;
    bay_err err = contract_file_read(path, &self->memory, &read, diag);
    if (err != BAY_OK) {
        return err;
    }
    if (read.server.len == 0 || config_server_find(settings, read.server) == NULL) {
        return diag_set(diag, BAY_ERR_INVALID,
                        "%s: server must name one of mcpServers: the gateway would run these "
                        "contracts nowhere",
                        path);
    }
    server_contracts *to = enter(self, read.server);
    err = to != NULL ? add(self, to, &read) : BAY_ERR_NOMEM;
    return err == BAY_OK ? BAY_OK : diag_set(diag, err, "%s: out of memory", path);
}

static bay_err read_files(gateway_contracts *self, const config *settings, bay_diag *diag)
{
    const char **paths = NULL;
    size_t count = 0;
    bay_err err = contract_files_list(self->settings.path.at, &self->memory, &paths, &count, diag);
    for (size_t i = 0; err == BAY_OK && i < count; i++) {
        err = read_file(self, settings, paths[i], diag);
    }
    return err;
}

static void take_verdicts(gateway_contracts *self, gateway_contracts *before)
{
    size_t at = 0;
    bay_str server;
    void *of;
    while (before != NULL && map_next(&self->by_server, &at, &server, &of)) {
        ((server_contracts *)of)->verdict = gateway_contracts_verdict(before, server);
    }
}

bay_err gateway_contracts_new(const config *settings, gateway_contracts *before,
                              gateway_contracts **out, bay_diag *diag)
{
    bay_str path;
    *out = NULL;
    if (settings->contracts.mode == CONFIG_CONTRACTS_OFF) {
        return BAY_OK;
    }
    gateway_contracts *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    atomic_init(&self->references, 1);
    pthread_mutex_init(&self->mutex, NULL);
    arena_init(&self->memory, CONTRACT_MEMORY);
    map_init(&self->by_server, CONFIG_SERVERS);
    self->settings = settings->contracts;
    bay_err err = arena_dup(&self->memory, settings->contracts.path, &path);
    self->settings.path = path;
    err = err == BAY_OK ? read_files(self, settings, diag) : diag_set(diag, err, "out of memory");
    if (err != BAY_OK) {
        gateway_contracts_unref(self);
        return err;
    }
    take_verdicts(self, before);
    *out = self;
    return BAY_OK;
}

/* ---- what is known --------------------------------------------------------------------------- */

static server_contracts *find(const gateway_contracts *self, bay_str server)
{
    return self != NULL ? map_get(&self->by_server, server) : NULL;
}

const contract_set *gateway_contracts_of(const gateway_contracts *self, bay_str server)
{
    const server_contracts *of = find(self, server);
    return of != NULL && of->set.count > 0 ? &of->set : NULL;
}

config_contracts gateway_contracts_settings(const gateway_contracts *self)
{
    return self != NULL ? self->settings : (config_contracts){.mode = CONFIG_CONTRACTS_OFF};
}

contract_verdict gateway_contracts_verdict(gateway_contracts *self, bay_str server)
{
    contract_verdict out = {0};
    const server_contracts *of = find(self, server);
    if (of != NULL) {
        pthread_mutex_lock(&self->mutex);
        out = of->verdict;
        pthread_mutex_unlock(&self->mutex);
    }
    return out;
}

contract_verdict gateway_contracts_set_verdict(gateway_contracts *self, bay_str server,
                                               const contract_verdict *verdict)
{
    contract_verdict before = {0};
    server_contracts *of = find(self, server);
    if (of != NULL) {
        pthread_mutex_lock(&self->mutex);
        before = of->verdict;
        of->verdict = *verdict;
        pthread_mutex_unlock(&self->mutex);
    }
    return before;
}

bool gateway_contracts_hold(gateway_contracts *self, bay_str server)
{
    contract_verdict verdict = gateway_contracts_verdict(self, server);
    return gateway_contracts_of(self, server) != NULL &&
           self->settings.mode == CONFIG_CONTRACTS_HOLD &&
           (!verdict.is_judged || verdict.failing > 0);
}

bool gateway_contracts_await(gateway_contracts *self, bay_str server)
{
    return gateway_contracts_hold(self, server) &&
           !gateway_contracts_verdict(self, server).is_judged;
}

void gateway_contracts_write(gateway_contracts *self, bay_str server, bool has_text,
                             json_writer *out)
{
    contract_verdict verdict = gateway_contracts_verdict(self, server);
    if (gateway_contracts_of(self, server) == NULL) {
        return;
    }
    json_key_lit(out, "contracts");
    json_open_object(out);
    json_key_lit(out, "holding");
    json_put_uint(out, verdict.holding);
    json_key_lit(out, "failing");
    json_put_uint(out, verdict.failing);
    json_key_lit(out, "held");
    json_put_bool(out, gateway_contracts_hold(self, server));
    if (has_text && verdict.text[0] != '\0') {
        json_key_lit(out, "error");
        json_put_str(out, str_of(verdict.text));
    }
    json_close_object(out);
}

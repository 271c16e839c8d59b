/* A read: the lease, then the row under each of its names. A write: the row under its first name, then
 * away with the older one, then the lease goes. */
#include "gateway/vault.h"

#include <string.h>

#include "auth/vault.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"

enum { OWNER_BYTES = 16, LEASE_RETRY_MS = 50, LEASE_WAIT_MS = 10000 };

struct gateway_vault {
    upstream_vault face;
    loop *loop;
    store *rows;
    seal_ring *keys;
    char owner[2 * OWNER_BYTES];
    list steps;
};

/* An operation of the store under way; it outlives whoever asked, and the vault. */
typedef struct vault_step {
    list_link link;            /* in gateway_vault.steps */
    gateway_vault *of;         /* NULL: gone */
    upstream_vault_call *call; /* NULL: nobody waits */
    loop_timer timer;
    uint64_t until_ms;
    size_t nth;       /* name that is looked under */
    bool is_in_store; /* its function runs */
    buf identity, server, record;
    char first[VAULT_NAME_BYTES]; /* under number 0: also the lease's */
    char name[VAULT_NAME_BYTES];
} vault_step;

static void step_free(vault_step *self)
{
    list_remove(&self->link);
    if (self->call != NULL) {
        self->call->step = NULL;
    }
    buf_fini(&self->identity);
    buf_fini(&self->server);
    buf_fini(&self->record);
    mem_free(self);
}

static void step_end(vault_step *self, bay_err err, bay_str record)
{
    upstream_vault_call *call = self->call;
    self->call = NULL;
    if (call != NULL) {
        call->step = NULL;
        call->done(call, err, record);
    }
    step_free(self);
}

/* True: it goes on. */
static bool step_back(vault_step *self)
{
    self->is_in_store = false;
    if (self->of == NULL || self->call == NULL) {
        step_free(self);
        return false;
    }
    return true;
}

static bool step_started(vault_step *self, bay_err err)
{
    self->is_in_store = err == BAY_OK;
    if (err != BAY_OK) {
        step_end(self, err, STR(""));
    }
    return err == BAY_OK;
}

static bay_str first_of(const vault_step *self)
{
    return (bay_str){self->first, sizeof(self->first)};
}

static bay_str name_of(const vault_step *self)
{
    return (bay_str){self->name, sizeof(self->name)};
}

static bay_str owner_of(const gateway_vault *self)
{
    return (bay_str){self->owner, sizeof(self->owner)};
}

/* ---- reading --------------------------------------------------------------------------------- */

static void read_row(vault_step *self);

/* A row that does not open is none: of other keys, or moved from another place. */
static void take_row(vault_step *self, const store_row *row)
{
    buf plain;
    vault_row out;
    buf_init_secret(&plain, VAULT_PLAIN_BYTES);
    bay_err err = vault_open(self->of->keys, name_of(self), row->value, &plain, &out);
    bool is_ours = err == BAY_OK && str_eq(out.identity, buf_view(&self->identity)) &&
                   str_eq(out.server, buf_view(&self->server));
    if (!is_ours && err != BAY_ERR_NOMEM) {
        LOG(LOG_WARN, "vault",
            "what a user was granted at %.*s cannot be opened: its keys are gone",
            BAY_STR(buf_view(&self->server)));
    }
    step_end(self, err == BAY_ERR_NOMEM ? err : BAY_OK, is_ours ? out.record : STR(""));
    buf_fini(&plain);
}

static void on_row(void *user, const store_result *result)
{
    vault_step *self = user;
    if (!step_back(self)) {
        return;
    }
    if (result->err == BAY_OK && result->count > 0) {
        take_row(self, &result->rows[0]);
    } else if (result->err == BAY_ERR_NOT_FOUND && ++self->nth < seal_ring_count(self->of->keys)) {
        read_row(self);
    } else {
        step_end(self, result->err == BAY_ERR_NOT_FOUND ? BAY_OK : result->err, STR(""));
    }
}

static void read_row(vault_step *self)
{
    bay_err err = vault_name(self->of->keys, self->nth, buf_view(&self->identity),
                             buf_view(&self->server), self->name);
    if (err == BAY_OK) {
        err = store_get(self->of->rows, STR(VAULT_TABLE), name_of(self), on_row, self);
    }
    (void)step_started(self, err);
}

static void claim(void *argument);

static void on_claimed(void *user, const store_result *result)
{
    vault_step *self = user;
    if (!step_back(self)) {
        return;
    }
    if (result->err == BAY_OK) {
        read_row(self);
    } else if (result->err == BAY_ERR_BUSY && loop_now_ms(self->of->loop) < self->until_ms) {
        bay_err err = loop_timer_start(self->of->loop, &self->timer, LEASE_RETRY_MS);
        if (err != BAY_OK) {
            step_end(self, err, STR(""));
        }
    } else {
        step_end(self, result->err, STR(""));
    }
}

static void claim(void *argument)
{
    vault_step *self = argument;
    bay_err err = store_claim(self->of->rows, STR(VAULT_LEASES), first_of(self), owner_of(self->of),
                              VAULT_REFRESH_MS, on_claimed, self);
    (void)step_started(self, err);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void remove_older(vault_step *self);

static void on_removed(void *user, const store_result *result)
{
    vault_step *self = user;
    (void)result; /* there mostly is none */
    if (step_back(self)) {
        remove_older(self);
    }
}

static void remove_older(vault_step *self)
{
    if (++self->nth >= seal_ring_count(self->of->keys)) {
        step_end(self, BAY_OK, STR(""));
        return;
    }
    bay_err err = vault_name(self->of->keys, self->nth, buf_view(&self->identity),
                             buf_view(&self->server), self->name);
    if (err == BAY_OK) {
        err = store_remove(self->of->rows, STR(VAULT_TABLE), name_of(self), STORE_ANY, on_removed,
                           self);
    }
    (void)step_started(self, err);
}

static void on_put(void *user, const store_result *result)
{
    vault_step *self = user;
    if (!step_back(self)) {
        return;
    }
    if (result->err == BAY_OK) {
        remove_older(self);
    } else {
        step_end(self, result->err, STR(""));
    }
}

static void put_row(vault_step *self)
{
    buf value;
    vault_row row = {buf_view(&self->identity), buf_view(&self->server), buf_view(&self->record)};
    buf_init(&value, 2 * VAULT_PLAIN_BYTES);
    bay_err err = vault_seal(self->of->keys, first_of(self), &row, &value);
    if (err == BAY_OK) {
        store_put_request request = {.table = STR(VAULT_TABLE),
                                     .key = first_of(self),
                                     .value = buf_view(&value),
                                     .expected = STORE_ANY};
        err = store_put(self->of->rows, &request, on_put, self);
    }
    buf_fini(&value);
    (void)step_started(self, err);
}

/* ---- asked by users -------------------------------------------------------------------------- */

static void ask(gateway_vault *self, bay_str identity, bay_str server, bay_str record,
                bool is_write, upstream_vault_call *call)
{
    vault_step *step = mem_zalloc(sizeof(*step));
    if (step == NULL) {
        call->done(call, BAY_ERR_NOMEM, STR(""));
        return;
    }
    step->of = self;
    step->call = call;
    step->until_ms = loop_now_ms(self->loop) + LEASE_WAIT_MS;
    loop_timer_init(&step->timer, claim, step);
    buf_init(&step->identity, PRINCIPAL_IDENTITY_BYTES);
    buf_init(&step->server, VAULT_SERVER_BYTES);
    buf_init_secret(&step->record, VAULT_PLAIN_BYTES);
    buf_str(&step->identity, identity);
    buf_str(&step->server, server);
    buf_str(&step->record, record);
    list_push(&self->steps, &step->link);
    call->step = step;
    bay_err err = step->record.err != BAY_OK   ? step->record.err
                  : step->server.err != BAY_OK ? step->server.err
                                               : step->identity.err;
    err = err == BAY_OK ? vault_name(self->keys, 0, identity, server, step->first) : err;
    if (err != BAY_OK) {
        step_end(step, err, STR(""));
    } else if (is_write) {
        put_row(step);
    } else {
        claim(step);
    }
}

static void vault_read(void *user, bay_str identity, bay_str server, upstream_vault_call *call)
{
    ask(user, identity, server, STR(""), false, call);
}

static void vault_write(void *user, bay_str identity, bay_str server, bay_str record,
                        upstream_vault_call *call)
{
    ask(user, identity, server, record, true, call);
}

static void on_released(void *user, const store_result *result)
{
    (void)user;
    (void)result; /* it ends by itself otherwise */
}

static void vault_release(void *user, bay_str identity, bay_str server)
{
    gateway_vault *self = user;
    char name[VAULT_NAME_BYTES];
    if (vault_name(self->keys, 0, identity, server, name) == BAY_OK) {
        err_ignore(store_release(self->rows, STR(VAULT_LEASES), (bay_str){name, sizeof(name)},
                                 owner_of(self), on_released, NULL));
    }
}

/* What runs in the store comes back and finds nobody. */
static void step_forget(vault_step *self)
{
    self->call->step = NULL;
    self->call = NULL;
    if (!self->is_in_store) {
        loop_timer_stop(self->of->loop, &self->timer);
        step_free(self);
    }
}

static void vault_cancel(void *user, upstream_vault_call *call)
{
    (void)user;
    if (call->step != NULL) {
        step_forget(call->step);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

bay_err gateway_vault_new(loop *on, store *rows, const seal_ring *ring, gateway_vault **out)
{
    unsigned char random[OWNER_BYTES];
    gateway_vault *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    bay_err err = vault_keys_new(ring, &self->keys);
    if (err != BAY_OK) {
        mem_free(self);
        return err;
    }
    rand_bytes(random, sizeof(random));
    for (size_t i = 0; i < sizeof(random); i++) {
        self->owner[2 * i] = "0123456789abcdef"[random[i] >> 4];
        self->owner[2 * i + 1] = "0123456789abcdef"[random[i] & 15];
    }
    self->loop = on;
    self->rows = rows;
    list_init(&self->steps);
    self->face = (upstream_vault){.read = vault_read,
                                  .write = vault_write,
                                  .release = vault_release,
                                  .cancel = vault_cancel,
                                  .user = self};
    *out = self;
    return BAY_OK;
}

void gateway_vault_free(gateway_vault *self)
{
    list_link *link;
    if (self == NULL) {
        return;
    }
    while ((link = list_pop(&self->steps)) != NULL) {
        vault_step *step = CONTAINER_OF(link, vault_step, link);
        if (step->call != NULL) {
            step->call->step = NULL;
            step->call = NULL;
        }
        if (step->is_in_store) {
            step->of = NULL; /* its function runs once more, at the latest when the store closes */
        } else {
            loop_timer_stop(self->loop, &step->timer);
            step_free(step);
        }
    }
    seal_ring_free(self->keys);
    mem_free(self);
}

void gateway_vault_set_ring(gateway_vault *self, const seal_ring *ring)
{
    seal_ring *keys = NULL;
    if (self == NULL) {
        return;
    }
    bay_err err = vault_keys_new(ring, &keys);
    if (err != BAY_OK) {
        LOG(LOG_ERROR, "vault", "the new keys are not used: %s", bay_err_text(err));
        return;
    }
    seal_ring_free(self->keys);
    self->keys = keys;
}

const upstream_vault *gateway_vault_of(const gateway_vault *self)
{
    return self != NULL ? &self->face : NULL;
}

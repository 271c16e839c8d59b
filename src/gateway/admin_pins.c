/* GET /v1/pins: what is served that nobody approved, that became other, or that reads like an
 * attack. POST /v1/pins/approve: {"server" or "agent", "kind", "name", "digest", "by"}, or in place
 * of kind, name and digest "identity": true. */
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "gateway/admin_internal.h"

void admin_pins(admin *self, http_exchange *exchange)
{
    gateway *owner = self->gateway;
    buf body;
    json_writer out;
    if (owner->pins == NULL) {
        admin_refuse(exchange, 404,
                     STR("nothing is pinned or scanned: pins.mode and scan.definitions are off"));
        return;
    }
    buf_init(&body, ADMIN_ANSWER_BYTES);
    json_writer_init(&out, &body);
    trust_pins_write(owner->pins, &out);
    if (body.err == BAY_OK) {
        admin_answer(exchange, 200, buf_view(&body));
    } else {
        admin_refuse(exchange, 503, STR("out of memory for the answer"));
    }
    buf_fini(&body);
}

enum { APPROVAL_BYTES = 4 << 20 };

/* The lock file is written on a thread of the pool. */
typedef struct approval {
    admin_job job;
    trust_pins *pins;
    arena memory; /* of the body and of the texts in it: the client may go before they are read */
    bay_str server;
    bool is_agent;
    trust_kind kind;
    bay_str name;
    bay_str digest; /* "": what the server is */
    bay_str by;
    bay_err err;
    bay_diag diag;
} approval;

static bool take_text(json_val object, const char *key, arena *memory, bay_str *out)
{
    return json_str(json_get(object, str_of(key)), memory, out) == BAY_OK;
}

/* NULL, or what is missing. */
static const char *read_approval(json_val object, approval *out)
{
    bay_str kind;
    arena *memory = &out->memory;
    out->is_agent = !json_is(json_get(object, STR("agent")), JSON_MISSING);
    if (!take_text(object, out->is_agent ? "agent" : "server", memory, &out->server)) {
        return "server or agent is missing";
    }
    if (!take_text(object, "by", memory, &out->by) || out->by.len == 0 ||
        out->by.len > TRUST_BY_BYTES) {
        return "by is missing: who approves";
    }
    if (json_true(json_get(object, STR("identity")))) {
        return NULL;
    }
    if (!take_text(object, "kind", memory, &kind) || !trust_kind_find(kind, &out->kind)) {
        return "kind is missing: tool, prompt, resource, template, instructions or card";
    }
    if (!take_text(object, "digest", memory, &out->digest) || out->digest.len == 0) {
        return "digest is missing: exactly what was looked at is approved";
    }
    bool is_named = out->kind != TRUST_INSTRUCTIONS && out->kind != TRUST_CARD;
    return is_named && !take_text(object, "name", memory, &out->name) ? "name is missing" : NULL;
}

static void approval_free(admin_job *job)
{
    approval *self = CONTAINER_OF(job, approval, job);
    trust_pins_unref(self->pins);
    arena_fini(&self->memory);
    mem_free(self);
}

static void approve(void *argument)
{
    approval *self = argument;
    self->err = trust_pins_approve(self->pins, self->server, self->is_agent, self->kind, self->name,
                                   self->digest, self->by, &self->diag);
}

static void approval_answer(approval *self)
{
    if (self->err == BAY_OK) {
        admin_job_answer(&self->job, 200, STR("{\"status\":\"approved\"}"));
        return;
    }
    int status = self->err == BAY_ERR_NOT_FOUND ? 404 : self->err == BAY_ERR_STATE ? 409 : 503;
    admin_job_refuse(
        &self->job, status,
        str_of(self->diag.text[0] != '\0' ? self->diag.text : bay_err_text(self->err)));
}

static void approved(void *argument)
{
    approval *self = argument;
    gateway *owner = self->job.admin->gateway;
    if (self->err == BAY_OK) {
        LOG(LOG_INFO, "trust", "%.*s: %s \"%.*s\" was approved by %.*s", BAY_STR(self->server),
            self->digest.len > 0 ? trust_kind_text(self->kind) : "identity",
            BAY_STR(str_head(self->name, 100)), BAY_STR(self->by));
    }
    if (atomic_load(&owner->is_over)) {
        return; /* admin_free frees it */
    }
    if (self->err == BAY_OK) {
        gateway_pins_changed(owner);
    }
    approval_answer(self);
    admin_job_remove(&self->job);
    approval_free(&self->job);
}

/* A disk that does not answer: the approval goes on. */
static void approval_late(void *argument)
{
    admin_job_answer(argument, 202,
                     STR("{\"status\":\"waiting\",\"detail\":\"the lock file is not written yet; "
                         "the approval goes on\"}"));
}

void admin_approve_pin(admin *self, http_exchange *exchange)
{
    json_doc document;
    bay_str body;
    trust_pins *pins = self->gateway->pins;
    if (pins == NULL) {
        admin_refuse(exchange, 404, STR("nothing is pinned: pins.mode is off"));
        return;
    }
    approval *made = mem_zalloc(sizeof(*made));
    if (made == NULL) {
        admin_refuse_busy(exchange);
        return;
    }
    *made = (approval){.job = {.free = approval_free}, .name = {"", 0}, .digest = {"", 0}};
    arena_init(&made->memory, APPROVAL_BYTES);
    made->pins = trust_pins_ref(pins);
    bay_err err = arena_dup(&made->memory, http_exchange_body(exchange), &body);
    err = err == BAY_OK ? json_parse(&document, body, NULL, &made->memory, NULL) : err;
    const char *missing = err != BAY_OK || !json_is(json_root(&document), JSON_OBJECT)
                              ? "the body must be an object"
                              : read_approval(json_root(&document), made);
    if (missing != NULL) {
        admin_refuse(exchange, 400, str_of(missing));
        approval_free(&made->job);
        return;
    }
    err = admin_job_begin(&made->job, self, exchange, approval_late, ADMIN_APPROVAL_MS);
    if (err != BAY_OK) {
        admin_refuse_busy(exchange);
        approval_free(&made->job);
        return;
    }
    if (loop_work(self->gateway->workers[0].loop, approve, approved, made) != BAY_OK) {
        made->err = BAY_ERR_NOMEM;
        approved(made);
    }
}

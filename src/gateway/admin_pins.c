/* GET /v1/pins: what is served that nobody approved, that became other, or that reads like an
 * attack. POST /v1/pins/approve: {"server" or "agent", "kind", "name", "digest", "by"}, or in place
 * of kind, name and digest "identity": true. */
#include "base/err.h"
#include "base/log.h"
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

typedef struct approval {
    bay_str server;
    bool is_agent;
    trust_kind kind;
    bay_str name;
    bay_str digest; /* "": what the server is */
    bay_str by;
} approval;

static bool take_text(json_val object, const char *key, arena *memory, bay_str *out)
{
    return json_str(json_get(object, str_of(key)), memory, out) == BAY_OK;
}

/* NULL, or what is missing. */
static const char *read_approval(json_val object, arena *memory, approval *out)
{
    bay_str kind;
    *out = (approval){.name = {"", 0}, .digest = {"", 0}};
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

void admin_approve_pin(admin *self, http_exchange *exchange)
{
    gateway *owner = self->gateway;
    json_doc document;
    approval asked;
    bay_diag diag = {0};
    arena *memory = http_exchange_arena(exchange);
    if (owner->pins == NULL) {
        admin_refuse(exchange, 404, STR("nothing is pinned: pins.mode is off"));
        return;
    }
    bay_err err = json_parse(&document, http_exchange_body(exchange), NULL, memory, NULL);
    const char *missing = err != BAY_OK || !json_is(json_root(&document), JSON_OBJECT)
                              ? "the body must be an object"
                              : read_approval(json_root(&document), memory, &asked);
    if (missing != NULL) {
        admin_refuse(exchange, 400, str_of(missing));
        return;
    }
    err = trust_pins_approve(owner->pins, asked.server, asked.is_agent, asked.kind, asked.name,
                             asked.digest, asked.by, &diag);
    if (err != BAY_OK) {
        int status = err == BAY_ERR_NOT_FOUND ? 404 : err == BAY_ERR_STATE ? 409 : 503;
        admin_refuse(exchange, status,
                     str_of(diag.text[0] != '\0' ? diag.text : bay_err_text(err)));
        return;
    }
    LOG(LOG_INFO, "trust", "%.*s: %s \"%.*s\" was approved by %.*s", BAY_STR(asked.server),
        asked.digest.len > 0 ? trust_kind_text(asked.kind) : "identity",
        BAY_STR(str_head(asked.name, 100)), BAY_STR(asked.by));
    gateway_pins_changed(owner);
    admin_answer(exchange, 200, STR("{\"status\":\"approved\"}"));
}

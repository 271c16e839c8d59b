/* Webhooks on their way to a remote agent: the gateway's own in the place of a caller's. */
#include "agents/remote_parts.h"
#include "agents/webhook.h"
#include "base/check.h"
#include "base/mem.h"
#include "json/build.h"

enum { ADDRESS_BYTES = 4096, TOKEN_BYTES = 128 << 10 };

bool agents_proxy_has_webhooks(const agents_remote *self)
{
    address_class kind = ADDRESS_GLOBAL;
    (void)address_rules_permit_url(NULL, self->public->base, &kind);
    return agents_webhook_receiver_works(self->receiver) &&
           (kind != ADDRESS_LOOPBACK || address_guard_is_here(&self->address_filter.guard));
}

static bay_err text_of(json_val object, bay_str key, arena *memory, bay_str *out)
{
    json_val value = json_get(object, key);
    *out = (bay_str){"", 0};
    return json_is(value, JSON_STRING) ? json_str(value, memory, out) : BAY_OK;
}

/* What the agent calls the task; "": there is none yet, or nobody here knows. */
static bay_err find_task(const a2a_call *call, const agents_proxy_alias *alias, bay_str *out)
{
    bool is_create = call->method == A2A_CREATE_PUSH_CONFIG;
    json_val of = is_create ? call->params : json_get(call->params, STR("message"));
    if (alias->among == NULL) {
        return text_of(of, STR("taskId"), call->memory, out);
    }
    buf known;
    buf_init(&known, 2 * AGENTS_ALIAS_BYTES);
    bool is_known = agents_aliases_find(alias->among, alias->agent,
                                        (bay_str){alias->principal, alias->principal_len},
                                        (bay_str){alias->client_id, alias->client_id_len}, &known);
    *out = (bay_str){"", 0};
    bay_err err = is_known ? arena_dup(call->memory, buf_view(&known), out) : BAY_OK;
    buf_fini(&known);
    return err;
}

static bay_err describe(const a2a_call *call, json_val webhook, const agents_proxy_alias *alias,
                        const a2a_interface *at, agents_webhook *out)
{
    json_val login = json_get(webhook, STR("authentication"));
    *out = (agents_webhook){
        .caller_form = a2a_form_of(call->version, call->binding),
        .agent_form = a2a_form_of(at->version, at->binding),
    };
    out->principal = principal_identity(call->principal);
    if (alias->among != NULL) {
        out->client_id = (bay_str){alias->client_id, alias->client_id_len};
    }
    const struct {
        json_val in;
        bay_str key;
        bay_str *to;
    } texts[] = {
        {webhook, STR("url"), &out->url},
        {webhook, STR("token"), &out->token},
        {webhook, STR("id"), &out->id},
        {login, STR("scheme"), &out->scheme},
        {login, STR("credentials"), &out->credentials},
    };
    bay_err err = find_task(call, alias, &out->task_id);
    for (size_t i = 0; err == BAY_OK && i < ARRAY_LEN(texts); i++) {
        err = text_of(texts[i].in, texts[i].key, call->memory, texts[i].to);
    }
    return err;
}

/* A SendMessageRequest with another webhook. */
static void write_send(json_val params, json_val webhook, bay_str url, bay_str token,
                       json_writer *writer)
{
    static const bay_str outer = STR_INIT("configuration");
    static const bay_str inner = STR_INIT("taskPushNotificationConfig");
    json_open_object(writer);
    json_put_members(writer, params, &outer, 1);
    json_key(writer, outer);
    json_open_object(writer);
    json_put_members(writer, json_get(params, outer), &inner, 1);
    json_key(writer, inner);
    agents_webhook_write(webhook, url, token, writer);
    json_close_object(writer);
    json_close_object(writer);
}

static bay_err write_params(const a2a_call *call, json_val webhook, bay_str url, bay_str token,
                            json_val *out)
{
    json_builder made;
    json_writer *to = json_builder_init(&made, call->memory, a2a_json_limits.max_bytes);
    if (call->method == A2A_CREATE_PUSH_CONFIG) {
        agents_webhook_write(call->params, url, token, to);
    } else {
        write_send(call->params, webhook, url, token, to);
    }
    return json_builder_end(&made, out);
}

bay_err agents_proxy_webhook_wrap(const agents_remote *self, const a2a_call *call, json_val webhook,
                                  const agents_proxy_alias *alias, const a2a_interface *at,
                                  json_val *out, a2a_fault *fault)
{
    agents_webhook hook;
    buf url, token;
    buf_init(&url, ADDRESS_BYTES);
    buf_init(&token, TOKEN_BYTES);
    bay_err err = describe(call, webhook, alias, at, &hook);
    if (err == BAY_OK) {
        err = agents_webhook_seal(*self->receiver->ring, self->public->base, self->settings->name,
                                  &hook, loop_time_ms(), &url, &token, fault);
    }
    if (err == BAY_OK) {
        err = write_params(call, webhook, buf_view(&url), buf_view(&token), out);
    }
    buf_fini(&url);
    buf_fini(&token);
    return err;
}

bay_err agents_proxy_webhook_show(agents_remote *self, json_val answer, json_writer *out)
{
    const seal_ring *ring =
        agents_webhook_receiver_works(self->receiver) ? *self->receiver->ring : NULL;
    return agents_webhook_show(ring, self->public->base, self->settings->name, answer,
                               loop_time_ms(), out);
}

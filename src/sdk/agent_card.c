/* The card of an agent: written from what was registered, checked against the model's tables,
 * signed, and kept in each form in which it is served. */
#include <stdio.h>

#include "a2a/types.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/agent_parts.h"
#include "sdk/guard.h"

/* ---- writing --------------------------------------------------------------------------------- */

static void put_text(json_writer *out, bay_str key, bay_str text)
{
    if (text.len > 0) {
        json_key(out, key);
        json_put_str(out, text);
    }
}

/* "KEY":[ITEMS]; without any, `otherwise` is the only one, or with "" there is no such member. */
static void put_items(json_writer *out, bay_str key, const list *items, bay_str otherwise)
{
    if (list_is_empty(items) && otherwise.len == 0) {
        return;
    }
    json_key(out, key);
    json_open_array(out);
    LIST_EACH(link, items)
    {
        json_put_val(out, CONTAINER_OF(link, agent_value, link)->value);
    }
    if (list_is_empty(items)) {
        json_put_str(out, otherwise);
    }
    json_close_array(out);
}

static void put_interface(json_writer *out, bay_str url, a2a_binding binding, a2a_version version)
{
    json_open_object(out);
    put_text(out, STR("url"), url);
    put_text(out, STR("protocolBinding"), a2a_binding_names[binding]);
    put_text(out, STR("protocolVersion"), a2a_version_names[version]);
    json_close_object(out);
}

/* Each in 1.0 first, and again for those who speak 0.3. */
static void put_interfaces(json_writer *out, const bay_agent *self, bay_str base)
{
    char text[512];
    buf target = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    buf whole;
    buf_init(&whole, AGENT_CARD_BYTES);
    a2a_http_router_write_grpc(base, &target);
    buf_str(&whole, base);
    if (self->url.len == 0) {
        buf_str(&whole, self->path);
    }
    json_key_lit(out, "supportedInterfaces");
    json_open_array(out);
    for (int i = 0; i < 2; i++) {
        a2a_version version = i == 0 ? A2A_1_0 : A2A_0_3;
        put_interface(out, buf_view(&whole), A2A_JSONRPC, version);
        put_interface(out, buf_view(&whole), A2A_HTTP_JSON, version);
        if (target.err == BAY_OK && target.len > 0) {
            put_interface(out, buf_view(&target), A2A_GRPC, version);
        }
    }
    json_close_array(out);
    buf_fini(&whole);
}

static void put_capabilities(json_writer *out, const bay_agent *self)
{
    json_key_lit(out, "capabilities");
    json_open_object(out);
    json_key_lit(out, "streaming");
    json_put_bool(out, true);
    if (self->has_push) {
        json_key_lit(out, "pushNotifications");
        json_put_bool(out, true);
    }
    put_items(out, STR("extensions"), &self->extensions, STR(""));
    if (self->extended.doc != NULL) {
        json_key_lit(out, "extendedAgentCard");
        json_put_bool(out, true);
    }
    json_close_object(out);
}

static void put_security(json_writer *out, const bay_agent *self)
{
    if (self->schemes == NULL) {
        return;
    }
    json_key_lit(out, "securitySchemes");
    json_open_object(out);
    for (const agent_scheme *at = self->schemes; at != NULL; at = at->next) {
        json_key(out, at->name);
        json_put_val(out, at->value);
    }
    json_close_object(out);
    if (!list_is_empty(&self->requirements)) {
        put_items(out, STR("securityRequirements"), &self->requirements, STR(""));
        return;
    }
    json_key_lit(out, "securityRequirements");
    json_open_array(out);
    for (const agent_scheme *at = self->schemes; at != NULL; at = at->next) { /* any is enough */
        json_open_object(out);
        json_key_lit(out, "schemes");
        json_open_object(out);
        json_key(out, at->name);
        json_open_object(out);
        json_key_lit(out, "list");
        json_open_array(out);
        json_close_array(out);
        json_close_object(out);
        json_close_object(out);
        json_close_object(out);
    }
    json_close_array(out);
}

/* No required member may be empty: verifiers of signatures differ on those. */
static void put_ability(json_writer *out, const bay_skill *self)
{
    json_open_object(out);
    put_text(out, STR("id"), self->id);
    put_text(out, STR("name"), self->name);
    put_text(out, STR("description"), self->description);
    put_items(out, STR("tags"), &self->tags, self->id);
    put_items(out, STR("examples"), &self->examples, STR(""));
    put_items(out, STR("inputModes"), &self->inputs, STR(""));
    put_items(out, STR("outputModes"), &self->outputs, STR(""));
    put_items(out, STR("securityRequirements"), &self->requirements, STR(""));
    json_close_object(out);
}

static void write_card(const bay_agent *self, bay_str base, json_writer *out)
{
    json_open_object(out);
    put_text(out, STR("name"), self->name);
    put_text(out, STR("description"), self->description);
    put_interfaces(out, self, base);
    if (self->organization.len > 0 || self->organization_url.len > 0) {
        json_key_lit(out, "provider");
        json_open_object(out);
        json_key_lit(out, "url");
        json_put_str(out, self->organization_url);
        json_key_lit(out, "organization");
        json_put_str(out, self->organization);
        json_close_object(out);
    }
    put_text(out, STR("version"), self->version);
    put_text(out, STR("documentationUrl"), self->documentation);
    put_capabilities(out, self);
    put_security(out, self);
    put_items(out, STR("defaultInputModes"), &self->inputs, STR("text/plain"));
    put_items(out, STR("defaultOutputModes"), &self->outputs, STR("text/plain"));
    json_key_lit(out, "skills");
    json_open_array(out);
    for (const bay_skill *at = self->abilities; at != NULL; at = at->next) {
        if (at->is_listed) {
            put_ability(out, at);
        }
    }
    json_close_array(out);
    put_text(out, STR("iconUrl"), self->icon);
    json_close_object(out);
}

/* ---- forms ----------------------------------------------------------------------------------- */

/* Ends a card, in the model's normal form. */
static bay_err end_card(json_builder *made, arena *memory, json_val *out, bay_diag *diag)
{
    a2a_fault fault = {A2A_NO_ERROR, ""};
    bay_err err = json_builder_end(made, out);
    if (err != BAY_OK) {
        return diag_set(diag, err, "the card cannot be written: %s", bay_err_text(err));
    }
    err = a2a_normal_view(A2A_TYPE_AGENT_CARD, *out, AGENT_CARD_BYTES, memory, out, &fault);
    return err == BAY_OK ? err
                         : diag_set(diag, err == BAY_ERR_PROTOCOL ? BAY_ERR_INVALID : err,
                                    "the card is not valid: %s",
                                    err == BAY_ERR_PROTOCOL ? fault.text : bay_err_text(err));
}

/* One form: signed if there is a key, and kept. */
static bay_err keep_form(const bay_agent *self, json_val card, a2a_card_form form, bay_str *out,
                         char tag[AGENT_TAG_BYTES], bay_diag *diag)
{
    buf shown;
    arena memory;
    buf_init(&shown, AGENT_CARD_BYTES);
    arena_init(&memory, AGENT_MEMORY_BYTES);
    bay_err err = a2a_card_in_form(form, card, AGENT_CARD_BYTES, &memory, &card);
    if (err == BAY_OK && self->signing_key != NULL) {
        err = card_sign(card, self->signing_key, self->jku, &shown, diag);
    } else if (err == BAY_OK) {
        buf_str(&shown, json_raw(card));
        err = shown.err;
    }
    if (err == BAY_OK) {
        bay_str view = buf_view(&shown);
        snprintf(tag, AGENT_TAG_BYTES, "\"%016llx%016llx\"",
                 (unsigned long long)str_hash(view, 0x6361726473),
                 (unsigned long long)str_hash(view, view.len));
        char *copy = mem_dup(view.at, view.len);
        *out = (bay_str){copy, view.len};
        err = copy != NULL ? BAY_OK : BAY_ERR_NOMEM;
    }
    arena_fini(&memory);
    buf_fini(&shown);
    return err;
}

/* The card with the extended card's members in addition, or in place of its own. */
static bay_err keep_extended(const bay_agent *self, json_val card, bay_str *out, bay_diag *diag)
{
    arena memory;
    json_builder made;
    char tag[AGENT_TAG_BYTES];
    arena_init(&memory, AGENT_MEMORY_BYTES);
    json_writer *to = json_builder_init(&made, &memory, AGENT_CARD_BYTES);
    json_open_object(to);
    json_iter base = json_iter_of(card);
    while (json_next(&base)) {
        bay_str key;
        if (json_str_plain(base.key, &key) &&
            json_is(json_get(self->extended, key), JSON_MISSING)) {
            json_key_val(to, base.key);
            json_put_val(to, base.value);
        }
    }
    json_put_members(to, self->extended, NULL, 0);
    json_close_object(to);
    bay_err err = end_card(&made, &memory, &card, diag);
    if (err == BAY_OK) {
        err = keep_form(self, card, A2A_CARD_1_0, out, tag, diag);
    }
    arena_fini(&memory);
    return err;
}

static bay_err keep_forms(const bay_agent *self, json_val card, agent_cards *out, bay_diag *diag)
{
    a2a_fault fault = {A2A_NO_ERROR, ""};
    bay_err err = a2a_security_new(card, &out->security, &fault);
    if (err != BAY_OK) {
        return diag_set(diag, err, "the card's security: %s",
                        fault.error != A2A_NO_ERROR ? fault.text : bay_err_text(err));
    }
    err = json_clone(card, &out->plain);
    if (err == BAY_OK) {
        err = keep_form(self, card, A2A_CARD_1_0, &out->pure, out->pure_tag, diag);
    }
    if (err == BAY_OK) {
        err = keep_form(self, card, A2A_CARD_HYBRID, &out->hybrid, out->hybrid_tag, diag);
    }
    if (err == BAY_OK) {
        err = keep_form(self, card, A2A_CARD_0_3, &out->old, out->old_tag, diag);
    }
    if (err == BAY_OK && self->extended.doc != NULL) {
        err = keep_extended(self, card, &out->extended, diag);
    }
    return err;
}

bay_err sdk_agent_render(bay_agent *self, bay_str base, bay_diag *diag)
{
    json_builder made;
    arena memory;
    json_val card;
    agent_cards cards = {.security = NULL};
    bay_diag why = {.code = BAY_OK};
    arena_init(&memory, AGENT_MEMORY_BYTES);
    write_card(self, self->url.len > 0 ? self->url : base,
               json_builder_init(&made, &memory, AGENT_CARD_BYTES));
    bay_err err = end_card(&made, &memory, &card, &why);
    if (err == BAY_OK) {
        err = keep_forms(self, card, &cards, &why);
    }
    if (err == BAY_OK) {
        sdk_agent_cards_free(&self->cards);
        self->cards = cards;
    } else {
        sdk_agent_cards_free(&cards);
        err = diag_set(diag, err, "%s", why.code != BAY_OK ? why.text : bay_err_text(err));
    }
    arena_fini(&memory);
    return err;
}

void sdk_agent_cards_free(agent_cards *self)
{
    mem_free(self->plain);
    mem_free((char *)self->pure.at);
    mem_free((char *)self->hybrid.at);
    mem_free((char *)self->old.at);
    mem_free((char *)self->extended.at);
    a2a_security_free(self->security);
    *self = (agent_cards){.security = NULL};
}

bool sdk_agent_is_open(const bay_agent *self)
{
    return a2a_security_is_open(self->cards.security);
}

listen_policy sdk_agent_policy(const bay_agent *self)
{
    return (listen_policy){
        .is_protected = !sdk_agent_is_open(self),
        .is_open = self->host.is_open,
        .authentication = "a security scheme (bay_agent_api_key, …)",
        .opening = "bay_agent_open_on_purpose (--open)",
        .missing_url = sdk_guard_missing_url(self->guard),
    };
}

bay_str bay_agent_card(const bay_agent *agent)
{
    return agent != NULL ? agent->cards.pure : STR("");
}

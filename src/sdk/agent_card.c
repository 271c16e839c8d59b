/* The card of an agent: written from what was registered, checked against the model's tables,
 * signed, and kept in each form in which it is served. */
#include <stdio.h>

#include "a2a/types.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/agent_parts.h"
#include "json/writer.h"

/* ---- writing --------------------------------------------------------------------------------- */

static void put_text(json_writer *out, bay_str key, bay_str text)
{
    if (text.len > 0) {
        json_key(out, key);
        json_put_str(out, text);
    }
}

/* "KEY":[ITEMS], elements with their commas. */
static void put_items(json_writer *out, bay_str key, const buf *items, bay_str otherwise)
{
    bay_str text = items->len > 0 ? buf_view(items) : otherwise;
    if (text.len > 0) {
        json_key(out, key);
        json_open_array(out);
        json_put_raw(out, text);
        json_close_array(out);
    }
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
    if (self->extended.len > 0) {
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
        json_put_raw(out, at->json);
    }
    json_close_object(out);
    json_key_lit(out, "securityRequirements");
    json_open_array(out);
    if (self->requirements.len > 0) {
        json_put_raw(out, buf_view(&self->requirements));
    } else { /* any one of them is enough */
        for (const agent_scheme *at = self->schemes; at != NULL; at = at->next) {
            json_open_object(out);
            json_key_lit(out, "schemes");
            json_open_object(out);
            json_key(out, at->name);
            json_put_raw(out, STR("{\"list\":[]}"));
            json_close_object(out);
            json_close_object(out);
        }
    }
    json_close_array(out);
}

/* No required member may be empty: verifiers of signatures differ on those. */
static void put_ability(json_writer *out, const bay_skill *self)
{
    char bytes[256];
    buf tag = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    json_quote(&tag, self->id);
    json_open_object(out);
    put_text(out, STR("id"), self->id);
    put_text(out, STR("name"), self->name);
    put_text(out, STR("description"), self->description);
    put_items(out, STR("tags"), &self->tags, tag.err == BAY_OK ? buf_view(&tag) : STR("\"skill\""));
    put_items(out, STR("examples"), &self->examples, STR(""));
    put_items(out, STR("inputModes"), &self->inputs, STR(""));
    put_items(out, STR("outputModes"), &self->outputs, STR(""));
    put_items(out, STR("securityRequirements"), &self->requirements, STR(""));
    json_close_object(out);
}

static void write_card(const bay_agent *self, bay_str base, buf *text)
{
    json_writer writer;
    json_writer_init(&writer, text);
    json_open_object(&writer);
    put_text(&writer, STR("name"), self->name);
    put_text(&writer, STR("description"), self->description);
    put_interfaces(&writer, self, base);
    if (self->organization.len > 0 || self->organization_url.len > 0) {
        json_key_lit(&writer, "provider");
        json_open_object(&writer);
        json_key_lit(&writer, "url");
        json_put_str(&writer, self->organization_url);
        json_key_lit(&writer, "organization");
        json_put_str(&writer, self->organization);
        json_close_object(&writer);
    }
    put_text(&writer, STR("version"), self->version);
    put_text(&writer, STR("documentationUrl"), self->documentation);
    put_capabilities(&writer, self);
    put_security(&writer, self);
    put_items(&writer, STR("defaultInputModes"), &self->inputs, STR("\"text/plain\""));
    put_items(&writer, STR("defaultOutputModes"), &self->outputs, STR("\"text/plain\""));
    json_key_lit(&writer, "skills");
    json_open_array(&writer);
    for (const bay_skill *at = self->abilities; at != NULL; at = at->next) {
        if (at->is_listed) {
            put_ability(&writer, at);
        }
    }
    json_close_array(&writer);
    put_text(&writer, STR("iconUrl"), self->icon);
    json_close_object(&writer);
}

/* ---- forms ----------------------------------------------------------------------------------- */

/* `text` becomes a card in the model's normal form. */
static bay_err normalise(buf *text, arena *memory, json_doc *out, bay_diag *diag)
{
    bay_err err =
        text->err != BAY_OK ? text->err : json_parse(out, buf_view(text), NULL, memory, NULL);
    if (err != BAY_OK) {
        return diag_set(diag, err, "the card cannot be written: %s", bay_err_text(err));
    }
    buf normal;
    buf_init(&normal, AGENT_CARD_BYTES);
    bool is_normal = false;
    a2a_fault fault = {A2A_NO_ERROR, ""};
    err = a2a_normalise(A2A_TYPE_AGENT_CARD, json_root(out), &normal, &is_normal, &fault);
    if (err != BAY_OK) {
        err = diag_set(diag, err == BAY_ERR_PROTOCOL ? BAY_ERR_INVALID : err,
                       "the card is not valid: %s",
                       err == BAY_ERR_PROTOCOL ? fault.text : bay_err_text(err));
    } else if (!is_normal) {
        buf_clear(text);
        buf_str(text, buf_view(&normal));
        err = text->err != BAY_OK ? text->err : json_parse(out, buf_view(text), NULL, memory, NULL);
    }
    buf_fini(&normal);
    return err;
}

/* One form: written, signed if there is a key, and kept. */
static bay_err keep_form(const bay_agent *self, const json_doc *card, a2a_card_form form,
                         bay_str *out, char tag[AGENT_TAG_BYTES], bay_diag *diag)
{
    buf text;
    buf sealed;
    arena memory;
    json_doc doc;
    buf_init(&text, AGENT_CARD_BYTES);
    buf_init(&sealed, AGENT_CARD_BYTES);
    arena_init(&memory, AGENT_MEMORY_BYTES);
    bay_err err = a2a_card_write(form, json_root(card), &text);
    if (err == BAY_OK && self->signing_key != NULL) {
        err = json_parse(&doc, buf_view(&text), NULL, &memory, NULL);
        if (err == BAY_OK) {
            err = card_sign(json_root(&doc), self->signing_key, self->jku, &sealed, diag);
        }
    } else {
        buf_str(&sealed, buf_view(&text));
    }
    err = err != BAY_OK ? err : sealed.err;
    if (err == BAY_OK) {
        bay_str view = buf_view(&sealed);
        snprintf(tag, AGENT_TAG_BYTES, "\"%016llx%016llx\"",
                 (unsigned long long)str_hash(view, 0x6361726473),
                 (unsigned long long)str_hash(view, view.len));
        char *copy = mem_dup(view.at, view.len);
        *out = (bay_str){copy, view.len};
        err = copy != NULL ? BAY_OK : BAY_ERR_NOMEM;
    }
    arena_fini(&memory);
    buf_fini(&sealed);
    buf_fini(&text);
    return err;
}

/* The card with `members` in addition, or in place of its own. */
static bay_err write_extended(const bay_agent *self, const json_doc *card, bay_str *out,
                              bay_diag *diag)
{
    arena memory;
    json_doc members;
    json_doc doc;
    buf text;
    arena_init(&memory, AGENT_MEMORY_BYTES);
    buf_init(&text, AGENT_CARD_BYTES);
    bay_err err = json_parse(&members, self->extended, NULL, &memory, NULL);
    if (err == BAY_OK) {
        json_writer writer;
        json_writer_init(&writer, &text);
        json_open_object(&writer);
        json_iter base = json_iter_of(json_root(card));
        while (json_next(&base)) {
            bay_str key;
            if (json_str_plain(base.key, &key) &&
                json_is(json_get(json_root(&members), key), JSON_MISSING)) {
                json_key(&writer, key);
                json_put_val(&writer, base.value);
            }
        }
        json_put_members(&writer, json_root(&members), NULL, 0);
        json_close_object(&writer);
        err = normalise(&text, &memory, &doc, diag);
    }
    if (err == BAY_OK) {
        char tag[AGENT_TAG_BYTES];
        err = keep_form(self, &doc, A2A_CARD_1_0, out, tag, diag);
    }
    buf_fini(&text);
    arena_fini(&memory);
    return err;
}

static bay_err keep_forms(const bay_agent *self, const json_doc *card, agent_cards *out,
                          bay_diag *diag)
{
    a2a_fault fault = {A2A_NO_ERROR, ""};
    bay_err err = a2a_security_new(json_root(card), &out->security, &fault);
    if (err != BAY_OK) {
        return diag_set(diag, err, "the card's security: %s",
                        fault.error != A2A_NO_ERROR ? fault.text : bay_err_text(err));
    }
    err = keep_form(self, card, A2A_CARD_1_0, &out->pure, out->pure_tag, diag);
    if (err == BAY_OK) {
        err = keep_form(self, card, A2A_CARD_HYBRID, &out->hybrid, out->hybrid_tag, diag);
    }
    if (err == BAY_OK) {
        err = keep_form(self, card, A2A_CARD_0_3, &out->old, out->old_tag, diag);
    }
    if (err == BAY_OK && self->extended.len > 0) {
        err = write_extended(self, card, &out->extended, diag);
    }
    return err;
}

bay_err sdk_agent_render(bay_agent *self, bay_str base, bay_diag *diag)
{
    buf text;
    arena memory;
    json_doc doc;
    agent_cards made = {.security = NULL};
    bay_diag why = {.code = BAY_OK};
    buf_init(&text, AGENT_CARD_BYTES);
    arena_init(&memory, AGENT_MEMORY_BYTES);
    write_card(self, self->url.len > 0 ? self->url : base, &text);
    bay_err err = normalise(&text, &memory, &doc, &why);
    if (err == BAY_OK) {
        err = keep_forms(self, &doc, &made, &why);
    }
    if (err == BAY_OK) {
        sdk_agent_cards_free(&self->cards);
        self->cards = made;
    } else {
        sdk_agent_cards_free(&made);
        err = diag_set(diag, err, "%s", why.code != BAY_OK ? why.text : bay_err_text(err));
    }
    arena_fini(&memory);
    buf_fini(&text);
    return err;
}

void sdk_agent_cards_free(agent_cards *self)
{
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
    };
}

bay_str bay_agent_card(const bay_agent *agent)
{
    return agent != NULL ? agent->cards.pure : STR("");
}

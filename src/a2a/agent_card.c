/* What the engine reads of the agent's card: capabilities, required extensions, media types. */
#include "a2a/agent_internal.h"

/* ---- reading */

static bay_err add_modes(agent_card *self, json_val modes)
{
    json_iter it = json_iter_of(modes);
    while (json_next(&it)) {
        if (self->mode_count == AGENT_MODES) {
            return BAY_ERR_LIMIT;
        }
        bay_err err = json_str(it.value, &self->memory, &self->modes[self->mode_count]);
        if (err != BAY_OK) {
            return err == BAY_ERR_TYPE ? BAY_ERR_INVALID : err;
        }
        self->mode_count++;
    }
    return BAY_OK;
}

static bay_err read_modes(agent_card *self, json_val card)
{
    bay_err err = add_modes(self, json_get(card, STR("defaultInputModes")));
    json_iter skill = json_iter_of(json_get(card, STR("skills")));
    while (err == BAY_OK && json_next(&skill)) {
        err = add_modes(self, json_get(skill.value, STR("inputModes")));
    }
    return err;
}

static bay_err read_extensions(agent_card *self, json_val capabilities)
{
    json_iter it = json_iter_of(json_get(capabilities, STR("extensions")));
    while (json_next(&it)) {
        if (!json_true(json_get(it.value, STR("required")))) {
            continue;
        }
        if (self->extension_count == AGENT_EXTENSIONS) {
            return BAY_ERR_LIMIT;
        }
        bay_err err = json_str(json_get(it.value, STR("uri")), &self->memory,
                               &self->extensions[self->extension_count]);
        if (err != BAY_OK) {
            return err == BAY_ERR_TYPE ? BAY_ERR_INVALID : err;
        }
        self->extension_count++;
    }
    return BAY_OK;
}

static bay_err read_card(agent_card *self, json_val card, bay_str extended_card)
{
    if (!json_is(card, JSON_OBJECT)) {
        return BAY_ERR_INVALID;
    }
    bay_err err = json_clone_in(card, &self->memory, &card);
    if (err == BAY_OK) {
        err = arena_dup(&self->memory, extended_card, &self->extended);
    }
    if (err != BAY_OK) {
        return err;
    }
    json_val capabilities = json_get(card, STR("capabilities"));
    self->can_stream = json_true(json_get(capabilities, STR("streaming")));
    self->can_push = json_true(json_get(capabilities, STR("pushNotifications")));
    self->has_extended = json_true(json_get(capabilities, STR("extendedAgentCard")));
    err = read_modes(self, card);
    return err == BAY_OK ? read_extensions(self, capabilities) : err;
}

bay_err agent_card_read(agent_card *self, json_val card, bay_str extended_card)
{
    *self = (agent_card){.mode_count = 0};
    arena_init(&self->memory, SIZE_MAX);
    bay_err err = read_card(self, card, extended_card);
    if (err != BAY_OK) {
        agent_card_fini(self);
    }
    return err;
}

void agent_card_fini(agent_card *self)
{
    arena_fini(&self->memory);
    *self = (agent_card){.mode_count = 0};
}

/* ---- asking */

static bool sends_extension(bay_str sent, bay_str uri)
{
    while (sent.len > 0) {
        size_t comma = str_find(sent, ',');
        if (str_eq(str_trim(str_head(sent, comma)), uri)) {
            return true;
        }
        sent = str_from(sent, comma + 1);
    }
    return false;
}

/* a2a 1.0 section 3.3.4 */
bay_err agent_card_check_extensions(const agent_card *self, bay_str sent, a2a_fault *fault)
{
    for (size_t i = 0; i < self->extension_count; i++) {
        if (!sends_extension(sent, self->extensions[i])) {
            bay_str uri = str_head(self->extensions[i], 120);
            return a2a_fault_set(
                fault, A2A_E_EXTENSION_SUPPORT_REQUIRED,
                "this agent requires the extension %.*s; name it in A2A-Extensions", (int)uri.len,
                uri.at);
        }
    }
    return BAY_OK;
}

/* "text/plain" matches "text/plain", "text/…", any and, as older cards write it, "text". */
static bool mode_holds(bay_str mode, bay_str type)
{
    mode = str_trim(str_head(mode, str_find(mode, ';')));
    size_t slash = str_find(mode, '/');
    if (slash == mode.len) {
        return !str_eq_nocase(mode, STR("text")) || str_eq_nocase(str_head(type, 5), STR("text/"));
    }
    if (str_ends(mode, STR("/*"))) {
        return str_eq_nocase(mode, STR("*/*")) ||
               str_eq_nocase(str_head(type, slash + 1), str_head(mode, slash + 1));
    }
    return str_eq_nocase(mode, type);
}

static bool accepts(const agent_card *self, bay_str type)
{
    type = str_trim(str_head(type, str_find(type, ';')));
    for (size_t i = 0; i < self->mode_count; i++) {
        if (mode_holds(self->modes[i], type)) {
            return true;
        }
    }
    return self->mode_count == 0 || type.len == 0;
}

/* a2a 1.0 section 3.1.1: a media type in the message's parts is not supported by the agent */
bay_err agent_card_check_parts(const agent_card *self, json_val parts, arena *memory,
                               a2a_fault *fault)
{
    json_iter it = json_iter_of(parts);
    for (size_t i = 0; json_next(&it); i++) {
        json_val value = json_get(it.value, STR("mediaType"));
        bay_str type = {"", 0};
        if (!json_str_plain(value, &type) && json_is(value, JSON_STRING)) {
            bay_err err = json_str(value, memory, &type);
            if (err != BAY_OK) {
                return err;
            }
        }
        if (!accepts(self, type)) {
            type = str_head(type, 80);
            return a2a_fault_set(fault, A2A_E_CONTENT_TYPE_NOT_SUPPORTED,
                                 "message.parts[%zu].mediaType: this agent does not accept %.*s", i,
                                 (int)type.len, type.at);
        }
    }
    return BAY_OK;
}

void agent_extended_card(a2a_agent *self, a2a_call *call)
{
    if (!self->card.has_extended) {
        agent_fail(call, A2A_E_UNSUPPORTED_OPERATION, "this agent has no extended card");
    } else if (self->card.extended.len == 0) {
        agent_fail(call, A2A_E_EXTENDED_CARD_NOT_CONFIGURED, "no extended card is configured");
    } else {
        a2a_call_result(call, self->card.extended);
    }
}

/* What an agent's card says of it, and how it is spoken to. */
#include "base/str.h"
#include "sdk/caller_parts.h"

static bay_err take_text(bay_caller *self, json_val value, bay_str *out)
{
    *out = STR("");
    return json_is(value, JSON_STRING) ? json_str(value, &self->memory, out) : BAY_OK;
}

bay_err sdk_caller_read_about(bay_caller *self)
{
    json_val card = self->card;
    json_val skills = json_get(card, STR("skills"));
    bay_err err = take_text(self, json_get(card, STR("name")), &self->name);
    if (err == BAY_OK) {
        err = take_text(self, json_get(card, STR("description")), &self->description);
    }
    self->skill_count = 0;
    self->skills = arena_array(&self->memory, json_count(skills) + 1, sizeof(*self->skills));
    if (self->skills == NULL) {
        return BAY_ERR_NOMEM;
    }
    json_iter all = json_iter_of(skills);
    while (err == BAY_OK && json_next(&all)) {
        caller_skill *one = &self->skills[self->skill_count++];
        err = take_text(self, json_get(all.value, STR("id")), &one->id);
        err = err == BAY_OK ? take_text(self, json_get(all.value, STR("name")), &one->name) : err;
        err = err == BAY_OK
                  ? take_text(self, json_get(all.value, STR("description")), &one->description)
                  : err;
    }
    return err;
}

static bool is_known(const bay_caller *caller)
{
    return caller != NULL && caller->is_known;
}

bay_str bay_caller_card(const bay_caller *caller)
{
    return is_known(caller) ? json_raw(caller->card) : (bay_str){NULL, 0};
}

bay_str bay_caller_card_source(const bay_caller *caller)
{
    return is_known(caller) ? caller->source.doc->text : (bay_str){NULL, 0};
}

bay_str bay_caller_name(const bay_caller *caller)
{
    return is_known(caller) ? caller->name : (bay_str){NULL, 0};
}

bay_str bay_caller_description(const bay_caller *caller)
{
    return is_known(caller) ? caller->description : (bay_str){NULL, 0};
}

bool bay_caller_is_verified(const bay_caller *caller)
{
    return is_known(caller) && caller->is_verified;
}

bool bay_caller_has(const bay_caller *caller, const char *capability)
{
    if (!is_known(caller) || capability == NULL) {
        return false;
    }
    json_val all = json_get(caller->card, STR("capabilities"));
    return json_true(json_get(all, str_of(capability)));
}

size_t bay_caller_skill_count(const bay_caller *caller)
{
    return is_known(caller) ? caller->skill_count : 0;
}

static const caller_skill *skill_at(const bay_caller *caller, size_t index)
{
    static const caller_skill none = {0};
    return index < bay_caller_skill_count(caller) ? &caller->skills[index] : &none;
}

bay_str bay_caller_skill(const bay_caller *caller, size_t index)
{
    return skill_at(caller, index)->id;
}

bay_str bay_caller_skill_name(const bay_caller *caller, size_t index)
{
    return skill_at(caller, index)->name;
}

bay_str bay_caller_skill_description(const bay_caller *caller, size_t index)
{
    return skill_at(caller, index)->description;
}

bay_str bay_caller_url(const bay_caller *caller)
{
    return is_known(caller) ? a2a_link_interface(caller->link)->url : (bay_str){NULL, 0};
}

bay_str bay_caller_binding(const bay_caller *caller)
{
    return is_known(caller) ? a2a_binding_names[a2a_link_interface(caller->link)->binding]
                            : (bay_str){NULL, 0};
}

bay_str bay_caller_version(const bay_caller *caller)
{
    return is_known(caller) ? a2a_version_names[a2a_link_interface(caller->link)->version]
                            : (bay_str){NULL, 0};
}

bay_str bay_caller_remote_error(const bay_caller *caller)
{
    return caller != NULL ? buf_view(&caller->remote_error) : (bay_str){NULL, 0};
}

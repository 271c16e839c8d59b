/* The public agent object: registration. Nothing here fails loudly: what is wrong with a
 * registration is kept and told, all of it, before the agent serves. */
#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/agent_parts.h"
#include "sdk/guard.h"
#include "json/writer.h"

/* ---- errors and copies ----------------------------------------------------------------------- */

void sdk_agent_error(bay_agent *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    registration_error(&self->errors, format, arguments);
    va_end(arguments);
}

bay_str sdk_agent_keep(bay_agent *self, const char *text)
{
    bay_str copy = STR("");
    if (text != NULL && arena_dup(&self->memory, str_of(text), &copy) != BAY_OK) {
        self->is_out_of_memory = true;
        copy = STR("");
    }
    return copy;
}

json_val sdk_agent_keep_object(bay_agent *self, const char *text)
{
    json_doc *doc = arena_alloc(&self->memory, sizeof(*doc));
    bay_str kept = sdk_agent_keep(self, text);
    bay_err err = doc != NULL ? json_parse(doc, kept, NULL, &self->memory, NULL) : BAY_ERR_NOMEM;
    self->is_out_of_memory = self->is_out_of_memory || err == BAY_ERR_NOMEM;
    return err == BAY_OK && json_is(json_root(doc), JSON_OBJECT) ? json_root(doc) : JSON_NONE;
}

json_writer *sdk_agent_build(bay_agent *self, json_builder *made)
{
    return json_builder_init(made, &self->memory, AGENT_CARD_BYTES);
}

void sdk_agent_add(bay_agent *self, list *among, json_builder *made)
{
    json_val value;
    agent_value *one = arena_zalloc(&self->memory, sizeof(*one));
    if (json_builder_end(made, &value) != BAY_OK || one == NULL) {
        self->is_out_of_memory = true;
        return;
    }
    one->value = value;
    list_push(among, &one->link);
}

void sdk_agent_add_text(bay_agent *self, list *among, const char *text)
{
    json_builder made;
    if (text == NULL || text[0] == '\0') {
        sdk_agent_error(self, "a media type, tag, example or URI of the agent is empty");
        return;
    }
    json_put_str(sdk_agent_build(self, &made), str_of(text));
    sdk_agent_add(self, among, &made);
}

/* ---- life ------------------------------------------------------------------------------------ */

bay_agent *bay_agent_new(const char *name, const char *version, const char *description)
{
    bay_agent *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    arena_init(&self->memory, AGENT_MEMORY_BYTES);
    list *const lists[] = {&self->inputs, &self->outputs, &self->extensions, &self->requirements};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        list_init(lists[i]);
    }
    buf_init(&self->extension_uris, AGENT_CARD_BYTES);
    map_init(&self->abilities_by_id, AGENT_ABILITIES);
    self->is_hybrid = true;
    self->is_lenient = true;
    self->name = sdk_agent_keep(self, name);
    self->version = sdk_agent_keep(self, version);
    self->description = sdk_agent_keep(self, description);
    const host_owner owner = {self, &self->memory, &self->errors, &self->is_out_of_memory,
                              &self->log};
    host_init(&self->host, &sdk_agent_kind, &owner);
    bool is_whole = self->name.len > 0 && self->version.len > 0 && self->description.len > 0;
    if (!is_whole && !self->is_out_of_memory) {
        sdk_agent_error(self, "bay_agent_new: an agent needs a name, a version and a description");
    }
    return self;
}

void bay_agent_free(bay_agent *agent)
{
    if (agent == NULL) {
        return;
    }
    if (!host_abandon(&agent->host)) {
        AGENT_LOG(agent, LOG_ERROR,
                  "bay_agent_free: a handler did not come to an end; the agent "
                  "is kept for it");
        return;
    }
    sdk_agent_cards_free(&agent->cards);
    sdk_agent_schemes_free(agent);
    map_fini(&agent->abilities_by_id);
    bay_guard_free(agent->guard);
    jose_key_free(agent->signing_key);
    buf_fini(&agent->extension_uris);
    host_fini(&agent->host);
    arena_fini(&agent->memory);
    mem_free(agent);
}

void bay_agent_log_to(bay_agent *agent, bay_log_level most_verbose, bay_log_fn sink, void *user)
{
    if (agent != NULL) {
        agent->log = (log_target){sink, user, most_verbose};
    }
}

/* ---- settings -------------------------------------------------------------------------------- */

typedef struct setting_row {
    const char *name;
    int64_t otherwise; /* the default */
    int64_t least;
    int64_t most;
} setting_row;

#define A_DAY_MS (INT64_C(24) * 3600 * 1000)

static const setting_row rows[] = {
    [BAY_AGENT_SETTING_THREADS] = {"BAY_AGENT_SETTING_THREADS", 16, 1, 1024},
    [BAY_AGENT_SETTING_MAX_TASKS] = {"BAY_AGENT_SETTING_MAX_TASKS", 100000, 1, 10000000},
    [BAY_AGENT_SETTING_MAX_RUNNING] = {"BAY_AGENT_SETTING_MAX_RUNNING", 10000, 1, 1000000},
    [BAY_AGENT_SETTING_MAX_WAITING] = {"BAY_AGENT_SETTING_MAX_WAITING", 16, 1, 10000},
    [BAY_AGENT_SETTING_TASK_BYTES] = {"BAY_AGENT_SETTING_TASK_BYTES", 32 << 20, 1024, 1 << 30},
    [BAY_AGENT_SETTING_TOTAL_BYTES] = {"BAY_AGENT_SETTING_TOTAL_BYTES", 1 << 30, 1024,
                                       INT64_C(1) << 40},
    [BAY_AGENT_SETTING_TASK_TTL_MS] = {"BAY_AGENT_SETTING_TASK_TTL_MS", 7 * A_DAY_MS, 1,
                                       3660 * A_DAY_MS},
    [BAY_AGENT_SETTING_MAX_HISTORY] = {"BAY_AGENT_SETTING_MAX_HISTORY", 1000, 2, 100000},
    [BAY_AGENT_SETTING_MAX_ARTIFACTS] = {"BAY_AGENT_SETTING_MAX_ARTIFACTS", 1000, 1, 100000},
    [BAY_AGENT_SETTING_MAX_SUBSCRIBERS] = {"BAY_AGENT_SETTING_MAX_SUBSCRIBERS", 10000, 1, 1000000},
    [BAY_AGENT_SETTING_REPLAY_EVENTS] = {"BAY_AGENT_SETTING_REPLAY_EVENTS", 1000, 1, 100000},
    [BAY_AGENT_SETTING_DEDUPLICATE_MS] = {"BAY_AGENT_SETTING_DEDUPLICATE_MS", 600000, 1, A_DAY_MS},
    [BAY_AGENT_SETTING_MAX_BODY_BYTES] = {"BAY_AGENT_SETTING_MAX_BODY_BYTES", 16 << 20, 1024,
                                          1 << 30},
    [BAY_AGENT_SETTING_MAX_CONNECTIONS] = {"BAY_AGENT_SETTING_MAX_CONNECTIONS", 10000, 1, 1000000},
    [BAY_AGENT_SETTING_KEEP_ALIVE_MS] = {"BAY_AGENT_SETTING_KEEP_ALIVE_MS", 15000, 10, A_DAY_MS},
    [BAY_AGENT_SETTING_CARD_MAX_AGE_S] = {"BAY_AGENT_SETTING_CARD_MAX_AGE_S", 300, 1, 31536000},
    [BAY_AGENT_SETTING_MAX_REPLY_BYTES] = {"BAY_AGENT_SETTING_MAX_REPLY_BYTES", 16 << 20, 1024,
                                           INT64_C(1) << 40},
};
_Static_assert(ARRAY_LEN(rows) <= AGENT_SETTINGS, "agent_parts.h has the room");

uint64_t sdk_agent_setting(const bay_agent *self, bay_agent_setting setting)
{
    int64_t kept = self->settings[setting];
    return (uint64_t)(kept > 0 ? kept : rows[setting].otherwise);
}

void bay_agent_set(bay_agent *agent, bay_agent_setting setting, int64_t value)
{
    if (agent == NULL) {
        return;
    }
    if ((size_t)setting >= ARRAY_LEN(rows)) {
        sdk_agent_error(agent, "bay_agent_set: there is no setting number %d", (int)setting);
        return;
    }
    const setting_row *row = &rows[setting];
    if (value != 0 && (value < row->least || value > row->most)) {
        sdk_agent_error(agent, "bay_agent_set: %s is %lld; it must be between %lld and %lld",
                        row->name, (long long)value, (long long)row->least, (long long)row->most);
        return;
    }
    agent->settings[setting] = value;
}

/* ---- skills ---------------------------------------------------------------------------------- */

static const char *ability_fault(const bay_skill *self)
{
    return self->id.len == 0            ? "it has no id"
           : self->name.len == 0        ? "it has no name"
           : self->description.len == 0 ? "it has no description"
           : self->handler == NULL      ? "it has no handler"
                                        : NULL;
}

static void list_ability(bay_agent *self, bay_skill *ability)
{
    const char *fault = ability_fault(ability);
    if (fault == NULL && map_get(&self->abilities_by_id, ability->id) != NULL) {
        fault = "there is one of that id already";
    }
    if (fault != NULL) {
        if (!self->is_out_of_memory) {
            sdk_agent_error(self, "bay_agent_skill \"%.*s\": %s", BAY_STR(ability->id), fault);
        }
        return;
    }
    bay_err err = map_put(&self->abilities_by_id, ability->id, ability, NULL);
    if (err == BAY_ERR_LIMIT) {
        sdk_agent_error(self, "bay_agent_skill: an agent has at most %d skills", AGENT_ABILITIES);
    }
    self->is_out_of_memory = self->is_out_of_memory || err == BAY_ERR_NOMEM;
    ability->is_listed = err == BAY_OK;
    self->ability_count += ability->is_listed ? 1 : 0;
}

bay_skill *bay_agent_skill(bay_agent *agent, const char *id, const char *name,
                           const char *description, bay_task_handler_fn handler, void *user)
{
    if (agent == NULL) {
        return NULL;
    }
    bay_skill *self = arena_zalloc(&agent->memory, sizeof(*self));
    if (self == NULL) {
        agent->is_out_of_memory = true;
        return NULL;
    }
    self->agent = agent;
    self->id = sdk_agent_keep(agent, id);
    self->name = sdk_agent_keep(agent, name);
    self->description = sdk_agent_keep(agent, description);
    self->handler = handler;
    self->user = user;
    list *const lists[] = {&self->tags, &self->examples, &self->inputs, &self->outputs,
                           &self->requirements};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        list_init(lists[i]);
    }
    bay_skill **last = &agent->abilities;
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = self;
    list_ability(agent, self);
    return self;
}

const bay_skill *sdk_agent_ability(const bay_agent *self, bay_str id)
{
    return id.len > 0 ? map_get(&self->abilities_by_id, id) : NULL;
}

void bay_skill_tag(bay_skill *ability, const char *tag)
{
    if (ability != NULL) {
        sdk_agent_add_text(ability->agent, &ability->tags, tag);
    }
}

void bay_skill_example(bay_skill *ability, const char *example)
{
    if (ability != NULL) {
        sdk_agent_add_text(ability->agent, &ability->examples, example);
    }
}

void bay_skill_input_mode(bay_skill *ability, const char *media_type)
{
    if (ability != NULL) {
        sdk_agent_add_text(ability->agent, &ability->inputs, media_type);
    }
}

void bay_skill_output_mode(bay_skill *ability, const char *media_type)
{
    if (ability != NULL) {
        sdk_agent_add_text(ability->agent, &ability->outputs, media_type);
    }
}

void bay_skill_require(bay_skill *ability, const char *scheme, const char *scopes)
{
    if (ability != NULL) {
        sdk_agent_requirement(ability->agent, &ability->requirements, scheme, scopes);
    }
}

void bay_agent_handler(bay_agent *agent, bay_task_handler_fn handler, void *user)
{
    if (agent != NULL) {
        agent->handler = handler;
        agent->handler_user = user;
    }
}

/* ---- check ----------------------------------------------------------------------------------- */

static void check_whole(bay_agent *self)
{
    if (self->ability_count == 0 && self->errors.count == 0) {
        sdk_agent_error(self, "an agent needs a skill: bay_agent_skill");
    }
    if (self->requires_any && self->schemes == NULL) {
        sdk_agent_error(self, "bay_agent_require: the agent declares no security scheme");
    }
    if (self->extended.doc != NULL && self->schemes == NULL) {
        sdk_agent_error(self, "bay_agent_extended: an extended card is for callers with "
                              "credentials; the agent declares no security scheme");
    }
    for (agent_scheme *at = self->schemes; at != NULL; at = at->next) {
        if (at->is_mtls && self->host.ca_file.len == 0) {
            sdk_agent_error(self,
                            "bay_agent_mtls \"%.*s\": bay_agent_tls has to say who signs "
                            "clients' certificates",
                            BAY_STR(at->name));
        }
        if (at->like.len > 0 && sdk_agent_scheme_find(self, at->like) == NULL) {
            sdk_agent_error(self, "bay_agent_scheme \"%.*s\": there is no scheme \"%.*s\"",
                            BAY_STR(at->name), BAY_STR(at->like));
        }
    }
}

bay_err bay_agent_check(bay_agent *agent, bay_diag *diag)
{
    if (agent == NULL || agent->is_out_of_memory) {
        return diag_set(diag, BAY_ERR_NOMEM, "%s", bay_err_text(BAY_ERR_NOMEM));
    }
    if (agent->errors.count == 0) {
        check_whole(agent);
    }
    if (agent->errors.count == 0 && agent->serving == NULL) {
        bay_err err = sdk_agent_render(agent, STR("http://127.0.0.1"), diag);
        if (err != BAY_OK) {
            return err;
        }
    }
    if (agent->errors.count > 0) {
        return diag_set(diag, BAY_ERR_INVALID, "%s", agent->errors.kept[0].text);
    }
    listen_policy policy = sdk_agent_policy(agent);
    return listen_policy_check(&policy, diag);
}

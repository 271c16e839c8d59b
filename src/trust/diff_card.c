/* Two cards of an agent. */
#include "base/str.h"
#include "trust/diff_walk.h"

static void list_change(diff_walk *self, const diff_pair *pair, trust_class gone,
                        const char *why_gone, trust_class new, const char *why_new)
{
    diff_pair *pairs;
    size_t count = diff_set(self, pair->before, pair->after, &pairs);
    bool is_gone = false;
    bool is_new = false;
    for (size_t i = 0; i < count; i++) {
        is_gone |= json_is(pairs[i].after, JSON_MISSING);
        is_new |= json_is(pairs[i].before, JSON_MISSING);
    }
    if (is_gone) {
        diff_note(self, gone, pair->before, pair->after, why_gone);
    }
    if (is_new) {
        diff_note(self, new, pair->before, pair->after, why_new);
    }
}

static bool is_modes(bay_str key)
{
    return str_eq(key, STR("inputModes")) || str_eq(key, STR("outputModes")) ||
           str_eq(key, STR("defaultInputModes")) || str_eq(key, STR("defaultOutputModes"));
}

static void skill_member(diff_walk *self, const diff_pair *pair, void *context)
{
    (void)context;
    if (is_modes(pair->key)) {
        list_change(self, pair, TRUST_BREAKING, "a content type was removed", TRUST_COMPATIBLE,
                    "a content type was added");
    } else {
        diff_any(self, pair->before, pair->after, "a text of the skill changed");
    }
}

static void skill(diff_walk *self, const diff_pair *pair, void *context)
{
    (void)context;
    if (json_is(pair->after, JSON_MISSING)) {
        diff_note(self, TRUST_BREAKING, pair->before, pair->after, "the skill was removed");
    } else if (json_is(pair->before, JSON_MISSING)) {
        diff_note(self, TRUST_REVIEW, pair->before, pair->after, "a skill was added");
    } else {
        diff_pair *pairs;
        size_t count = diff_members(self, pair->before, pair->after, &pairs);
        diff_each(self, pairs, count, skill_member, NULL);
    }
}

static void capability(diff_walk *self, const diff_pair *pair, void *context)
{
    (void)context;
    if (json_true(pair->before) && !json_true(pair->after)) {
        diff_note(self, TRUST_BREAKING, pair->before, pair->after, "the agent lost the capability");
    } else if (json_true(pair->after)) {
        diff_note(self, TRUST_COMPATIBLE, pair->before, pair->after,
                  "the agent has a new capability");
    } else {
        diff_any(self, pair->before, pair->after, "the capability changed");
    }
}

static void scheme(diff_walk *self, const diff_pair *pair, void *context)
{
    (void)context;
    bool is_new = json_is(pair->before, JSON_MISSING);
    diff_note(self, is_new ? TRUST_REVIEW : TRUST_RISK, pair->before, pair->after,
              is_new                               ? "an authentication scheme was added"
              : json_is(pair->after, JSON_MISSING) ? "an authentication scheme was removed"
                                                   : "credentials may be sent elsewhere");
}

static void each_member(diff_walk *self, const diff_pair *pair,
                        void (*each)(diff_walk *self, const diff_pair *pair, void *context))
{
    diff_pair *pairs;
    size_t count = diff_members(self, pair->before, pair->after, &pairs);
    diff_each(self, pairs, count, each, NULL);
}

static void signatures(diff_walk *self, const diff_pair *pair)
{
    bool is_gone = json_count(pair->before) > 0 && json_count(pair->after) == 0;
    diff_note(self, is_gone ? TRUST_RISK : TRUST_REVIEW, pair->before, pair->after,
              is_gone ? "the signature of the card was removed"
                      : "the signature of the card changed");
}

static void card_member(diff_walk *self, const diff_pair *pair, void *context)
{
    bay_str key = pair->key;
    (void)context;
    if (str_eq(key, STR("url"))) {
        diff_note(self, TRUST_RISK, pair->before, pair->after, "messages are sent elsewhere");
    } else if (str_eq(key, STR("supportedInterfaces")) ||
               str_eq(key, STR("additionalInterfaces"))) {
        list_change(self, pair, TRUST_BREAKING, "an interface was removed", TRUST_RISK,
                    "messages may be sent elsewhere");
    } else if (str_eq(key, STR("skills"))) {
        diff_pair *pairs;
        size_t count = diff_keyed(self, pair->before, pair->after, STR("id"), &pairs);
        diff_each(self, pairs, count, skill, NULL);
    } else if (str_eq(key, STR("capabilities"))) {
        each_member(self, pair, capability);
    } else if (str_eq(key, STR("securitySchemes"))) {
        each_member(self, pair, scheme);
    } else if (str_eq(key, STR("security")) || str_eq(key, STR("securityRequirements"))) {
        diff_note(self, TRUST_RISK, pair->before, pair->after,
                  "the authentication requirements changed");
    } else if (str_eq(key, STR("signatures"))) {
        signatures(self, pair);
    } else if (str_eq(key, STR("provider"))) {
        diff_any(self, pair->before, pair->after, "the provider changed");
    } else if (is_modes(key)) {
        skill_member(self, pair, NULL);
    } else if (str_eq(key, STR("version"))) {
        diff_note(self, TRUST_COMPATIBLE, pair->before, pair->after, "the version changed");
    } else {
        diff_any(self, pair->before, pair->after, "the card changed");
    }
}

void diff_card(diff_walk *self, json_val before, json_val after)
{
    diff_pair whole = {.before = before, .after = after};
    each_member(self, &whole, card_member);
}

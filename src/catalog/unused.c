#include "catalog/unused.h"

#include <stdio.h>

#include "base/shown.h"
#include "base/str.h"
#include "catalog/filter.h"

enum {
    OF_TOOLS = 1 << LISTING_TOOLS,
    OF_PROMPTS = 1 << LISTING_PROMPTS,
    OF_URIS = 1 << LISTING_RESOURCES | 1 << LISTING_TEMPLATES,
    OF_ALL = OF_TOOLS | OF_PROMPTS | OF_URIS,
    OF_NAMES = 1 << LISTING_KINDS | OF_TOOLS | OF_PROMPTS, /* as they are, no patterns */
};

typedef struct search {
    listing *const *listings;
    buf *out;
    size_t found;
} search;

static bool is_used(const search *self, unsigned kinds, bay_str pattern)
{
    const config_list one = {&pattern, 1};
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        const listing *all = (kinds >> kind & 1) != 0 ? self->listings[kind] : NULL;
        bool is_uri = (OF_URIS >> kind & 1) != 0;
        for (size_t i = 0; all != NULL && i < all->count; i++) {
            bay_str key = all->items[i].key;
            if (kinds == OF_NAMES
                    ? str_eq(pattern, key)
                    : str_glob(pattern, key) || (is_uri && filter_uri_matches(&one, key, true))) {
                return true;
            }
        }
    }
    return false;
}

static void tell(search *self, const char *key, bay_str pattern)
{
    if (self->found++ < UNUSED_SHOWN) {
        char shown[96];
        shown_copy(shown, sizeof(shown), pattern, SHOWN_LINE);
        buf_printf(self->out, "%s%s \"%s\"", self->found > 1 ? ", " : "", key, shown);
    }
}

static void look(search *self, const char *key, unsigned kinds, bay_str pattern)
{
    if (!is_used(self, kinds, pattern)) {
        tell(self, key, pattern);
    }
}

static void look_at_list(search *self, const char *key, unsigned kinds, const config_list *globs)
{
    for (size_t i = 0; i < globs->count; i++) {
        look(self, key, kinds, globs->at[i]);
    }
}

static void look_at_map(search *self, const char *key, const config_map *map)
{
    for (size_t i = 0; i < map->count; i++) {
        look(self, key, OF_NAMES, map->at[i].name);
    }
}

/* Is the pattern about tools or prompts of this server? Then the rest of it is in `out`, and where
 * it is looked for. */
static bool is_of_server(const config *settings, const config_server *server, bay_str pattern,
                         unsigned *out_kinds, bay_str *out)
{
    *out_kinds = str_starts(pattern, STR("prompt:")) ? OF_PROMPTS : OF_TOOLS;
    if (*out_kinds == OF_PROMPTS || str_starts(pattern, STR("tool:"))) {
        pattern = str_from(pattern, str_find(pattern, ':') + 1);
    }
    if (!str_starts(pattern, server->name)) {
        return false;
    }
    pattern = str_from(pattern, server->name.len);
    if (!str_starts(pattern, settings->separator)) {
        return false;
    }
    *out = str_from(pattern, settings->separator.len);
    return true;
}

static bool is_shown(const search *self, const config_server *server, unsigned kinds,
                     bay_str pattern)
{
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        const listing *all = (kinds >> kind & 1) != 0 ? self->listings[kind] : NULL;
        for (size_t i = 0; all != NULL && i < all->count; i++) {
            if (str_glob(pattern, filter_rename(server, kind, all->items[i].key))) {
                return true;
            }
        }
    }
    return false;
}

/* `more`: kinds that are looked at besides; of profiles, whose patterns are about all. */
static void look_at_shown(search *self, const config *settings, const config_server *server,
                          const char *key, unsigned more, const config_list *globs)
{
    for (size_t i = 0; i < globs->count; i++) {
        unsigned kinds;
        bay_str rest;
        if (is_of_server(settings, server, globs->at[i], &kinds, &rest) &&
            !is_shown(self, server, kinds | more, rest)) {
            tell(self, key, globs->at[i]);
        }
    }
}

static void look_at_rules(search *self, const config *settings, const config_server *server)
{
    char key[64];
    for (size_t i = 0; i < settings->policy.rules.count; i++) {
        const config_rule *rule = &settings->policy.rules.at[i];
        const config_list *patterns = rule->allow.at != NULL  ? &rule->allow
                                      : rule->deny.at != NULL ? &rule->deny
                                                              : &rule->approve;
        (void)snprintf(key, sizeof(key), "policy.rules.%zu.%s", i + 1,
                       rule->allow.at != NULL  ? "allow"
                       : rule->deny.at != NULL ? "deny"
                                               : "approve");
        look_at_shown(self, settings, server, key, 0, patterns);
    }
    for (size_t i = 0; i < settings->profile_count && !settings->bare_names; i++) {
        const config_profile *profile = &settings->profiles[i];
        (void)snprintf(key, sizeof(key), "profiles.%.40s.tools", profile->name.at);
        look_at_shown(self, settings, server, key, 0, &profile->tools);
        (void)snprintf(key, sizeof(key), "profiles.%.40s.hide", profile->name.at);
        look_at_shown(self, settings, server, key, OF_PROMPTS, &profile->hide);
    }
}

static size_t patterns_of(const config *settings)
{
    size_t count = 0;
    for (size_t i = 0; i < settings->policy.rules.count; i++) {
        const config_rule *rule = &settings->policy.rules.at[i];
        count += rule->allow.count + rule->deny.count + rule->approve.count;
    }
    for (size_t i = 0; i < settings->profile_count; i++) {
        count += settings->profiles[i].tools.count + settings->profiles[i].hide.count;
    }
    return count;
}

size_t unused_find(const config *settings, const config_server *server,
                   listing *const listings[LISTING_KINDS], buf *out)
{
    search self = {.listings = listings, .out = out};
    const config_expose *expose = &server->expose;
    size_t entries = expose->tools.count + expose->resources.count + expose->prompts.count +
                     expose->hide.count + server->include_tools.count +
                     server->exclude_tools.count + server->rename.count + server->describe.count +
                     patterns_of(settings);
    size_t items = 0;
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        items += listings[kind] != NULL ? listings[kind]->count : 0;
    }
    if (entries * items > UNUSED_MOST_LOOKS) { /* at most 32,768 by 400,000 */
        return 0;
    }
    look_at_list(&self, "expose.tools", OF_TOOLS, &expose->tools);
    look_at_list(&self, "expose.resources", OF_URIS, &expose->resources);
    look_at_list(&self, "expose.prompts", OF_PROMPTS, &expose->prompts);
    look_at_list(&self, "expose.hide", OF_ALL, &expose->hide);
    look_at_list(&self, "includeTools", OF_TOOLS, &server->include_tools);
    look_at_list(&self, "excludeTools", OF_TOOLS, &server->exclude_tools);
    look_at_map(&self, "rename", &server->rename);
    look_at_map(&self, "describe", &server->describe);
    look_at_rules(&self, settings, server);
    if (self.found > UNUSED_SHOWN) {
        buf_printf(out, " and %zu more", self.found - UNUSED_SHOWN);
    }
    return self.found;
}

#include "catalog/filter.h"

#include "base/str.h"
#include "wire/uri_plain.h"

enum { URI_BYTES = 64 * 1024 }; /* of one that is looked at: a longer one is shown to nobody */

static bool matches(const config_list *globs, bay_str text)
{
    for (size_t i = 0; i < globs->count; i++) {
        if (str_glob(globs->at[i], text)) {
            return true;
        }
    }
    return false;
}

bool filter_uri_matches(const config_list *globs, bay_str text, bool otherwise)
{
    buf read;
    buf pattern;
    bool is_match = false;
    buf_init(&read, URI_BYTES);
    buf_init(&pattern, SIZE_MAX / 2);
    uri_plain(&read, text);
    bay_err err = read.err;
    for (size_t i = 0; i < globs->count && err == BAY_OK && !is_match; i++) {
        buf_clear(&pattern);
        uri_plain_pattern(&pattern, globs->at[i]);
        err = pattern.err;
        is_match = err == BAY_OK && str_glob(buf_view(&pattern), buf_view(&read));
    }
    buf_fini(&read);
    buf_fini(&pattern);
    return err == BAY_OK ? is_match : otherwise;
}

/* An empty list admits nothing; one that was not given, everything. */
static bool admits(const config_list *globs, bay_str text)
{
    return globs->at == NULL || matches(globs, text);
}

static bool is_uri(listing_kind kind)
{
    return kind == LISTING_RESOURCES || kind == LISTING_TEMPLATES;
}

/* In whatever spelling. */
static bool is_hidden(const config_list *globs, listing_kind kind, bay_str text)
{
    return globs->count > 0 &&
           (matches(globs, text) || (is_uri(kind) && filter_uri_matches(globs, text, true)));
}

static bool admits_uri(const config_list *globs, bay_str text)
{
    return admits(globs, text) && (globs->at == NULL || filter_uri_matches(globs, text, false));
}

bool filter_hides(const config_server *server, listing_kind kind, bay_str key)
{
    return is_hidden(&server->expose.hide, kind, key) ||
           (kind == LISTING_TOOLS && matches(&server->exclude_tools, key));
}

bool filter_exposes(const config_server *server, listing_kind kind, bay_str key)
{
    if (filter_hides(server, kind, key)) {
        return false;
    }
    switch (kind) {
    case LISTING_TOOLS:
        return admits(&server->expose.tools, key) && admits(&server->include_tools, key);
    case LISTING_PROMPTS:
        return admits(&server->expose.prompts, key);
    default:
        return admits_uri(&server->expose.resources, key);
    }
}

static bool is_named(listing_kind kind)
{
    return kind == LISTING_TOOLS || kind == LISTING_PROMPTS;
}

static const config_pair *find_pair(const config_map *in, bay_str name)
{
    for (size_t i = 0; i < in->count; i++) {
        if (str_eq(in->at[i].name, name)) {
            return &in->at[i];
        }
    }
    return NULL;
}

bay_str filter_rename(const config_server *server, listing_kind kind, bay_str key)
{
    const config_pair *pair = is_named(kind) ? find_pair(&server->rename, key) : NULL;
    return pair != NULL ? pair->value : key;
}

bool filter_own_name(const config_server *server, listing_kind kind, bay_str shown, bay_str *out)
{
    for (size_t i = 0; is_named(kind) && i < server->rename.count; i++) {
        if (str_eq(server->rename.at[i].value, shown)) {
            *out = server->rename.at[i].name;
            return true;
        }
    }
    *out = shown;
    return !is_named(kind) || find_pair(&server->rename, shown) == NULL;
}

bay_str filter_description(const config_server *server, listing_kind kind, bay_str key)
{
    const config_pair *pair = is_named(kind) ? find_pair(&server->describe, key) : NULL;
    return pair != NULL ? pair->value : (bay_str){NULL, 0};
}

bool filter_admits(const config_profile *profile, listing_kind kind, bay_str shown)
{
    if (profile == NULL) {
        return true;
    }
    return !is_hidden(&profile->hide, kind, shown) &&
           (kind != LISTING_TOOLS || admits(&profile->tools, shown));
}

bool filter_shows(const config_profile *profile, const config_server *server, listing_kind kind,
                  bay_str own, bay_str shown)
{
    return filter_exposes(server, kind, own) && filter_admits(profile, kind, shown);
}

bool filter_has_server(const config_profile *profile, bay_str server)
{
    if (profile == NULL || profile->servers.at == NULL) {
        return true;
    }
    for (size_t i = 0; i < profile->servers.count; i++) {
        if (str_eq(profile->servers.at[i], server)) {
            return true;
        }
    }
    return false;
}

static uint64_t mix_list(uint64_t seed, const config_list *texts)
{
    seed = str_hash(texts->at != NULL ? STR("list") : STR("none"), seed);
    for (size_t i = 0; i < texts->count; i++) {
        seed = str_hash(texts->at[i], seed);
    }
    return seed;
}

static uint64_t mix_map(uint64_t seed, const config_map *pairs)
{
    seed = str_hash(STR("map"), seed);
    for (size_t i = 0; i < pairs->count; i++) {
        seed = str_hash(pairs->at[i].value, str_hash(pairs->at[i].name, seed));
    }
    return seed;
}

uint64_t filter_rules(const config_server *server)
{
    uint64_t seed = mix_list(0, &server->expose.tools);
    seed = mix_list(seed, &server->expose.resources);
    seed = mix_list(seed, &server->expose.prompts);
    seed = mix_list(seed, &server->expose.hide);
    seed = mix_list(seed, &server->include_tools);
    seed = mix_list(seed, &server->exclude_tools);
    seed = mix_map(seed, &server->rename);
    return mix_map(seed, &server->describe);
}

uint64_t filter_part(const config_profile *profile)
{
    return profile != NULL ? mix_list(mix_list(1, &profile->tools), &profile->hide) : 0;
}

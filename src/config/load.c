/* From a file or a text to a checked config. The tree is walked along the table of keys; everything
 * wrong is collected, so that one run shows it all, and loading stops early only where nothing more
 * can be said: unreadable syntax, or no memory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "base/map.h"
#include "base/mem.h"
#include "config/internal.h"

enum {
    TREE_BYTES = 96 * 1024 * 1024,
    KEPT_BYTES = 64 * 1024 * 1024,
    MOST_KEYS = 64,
    MOST_STRANGERS = 1000
};

/* ---- tree ------------------------------------------------------------------------------------ */

config_node *config_node_new(config_loader *loader, config_kind kind, uint32_t line)
{
    if (loader->nodes++ == CONFIG_NODES) {
        config_error(loader, line, "more than %d values: split the file", CONFIG_NODES);
        return NULL;
    }
    config_node *node = config_pool_alloc(&loader->tree, sizeof(*node));
    if (node == NULL) {
        loader->err = config_pool_err(&loader->tree);
        return NULL;
    }
    node->kind = kind;
    node->line = line;
    return node;
}

void config_node_add(config_node *parent, config_node *child)
{
    if (parent->last != NULL) {
        parent->last->next = child;
    } else {
        parent->first = child;
    }
    parent->last = child;
    parent->count++;
}

/* ---- the path of the key at hand ------------------------------------------------------------- */

size_t config_path_enter(config_loader *loader, bay_str name)
{
    size_t before = loader->path_len;
    config_quoted quoted = config_quote(name);
    int added = snprintf(loader->path + before, sizeof(loader->path) - before, "%s%s",
                         before > 0 ? "." : "", quoted.text);
    loader->path_len += (size_t)added;
    if (loader->path_len > sizeof(loader->path) - 1) {
        loader->path_len = sizeof(loader->path) - 1;
    }
    return before;
}

void config_path_leave(config_loader *loader, size_t before)
{
    loader->path_len = before;
    loader->path[before] = '\0';
}

/* ---- single values --------------------------------------------------------------------------- */

static void refuse_value(config_loader *loader, const config_key *key, const config_node *node)
{
    buf expected;
    buf_init(&expected, 1024);
    config_value_describe(key, &expected);
    if (expected.err == BAY_ERR_NOMEM) {
        loader->err = BAY_ERR_NOMEM;
    }
    config_error(loader, node->line, "%s needs %.*s", loader->path, BAY_STR(buf_view(&expected)));
    buf_fini(&expected);
}

static void apply_text(config_loader *loader, const config_key *key, const config_node *node,
                       bay_str *field)
{
    bay_str text;
    if (!config_expand(loader, node, &text)) {
        return;
    }
    if (text.len < key->min || text.len > key->max) {
        config_error(loader, node->line, "%s needs %llu to %llu bytes", loader->path,
                     (unsigned long long)key->min, (unsigned long long)key->max);
        return;
    }
    *field = text;
}

static void apply_scalar(config_loader *loader, const config_key *key, const config_node *node,
                         void *base)
{
    if (node->kind != CONFIG_NODE_SCALAR) {
        refuse_value(loader, key, node);
        return;
    }
    if (key->type == CONFIG_TYPE_TEXT) {
        apply_text(loader, key, node, (bay_str *)((char *)base + key->offset));
        return;
    }
    bay_str text;
    uint64_t value = 0;
    bool is_bare = false;
    if (!config_expand(loader, node, &text)) {
        return;
    }
    if (config_value_parse(key, text, &value, &is_bare) != BAY_OK) {
        refuse_value(loader, key, node);
        return;
    }
    if (key->type == CONFIG_TYPE_PATIENCE && is_bare && value > 0) {
        config_warn(loader, node->line,
                    "%s has no unit and is read as %llums: write %llums or %llus", loader->path,
                    (unsigned long long)value, (unsigned long long)value,
                    (unsigned long long)(value + 999) / 1000);
    }
    config_value_store(key, base, value);
}

/* ---- lists and maps -------------------------------------------------------------------------- */

static bool is_crowded(config_loader *loader, const config_key *key, const config_node *node)
{
    if (node->count > key->max) {
        config_error(loader, node->line, "%s holds %zu entries, %llu is the most: shorten it",
                     loader->path, node->count, (unsigned long long)key->max);
        return true;
    }
    return false;
}

void *config_keep_array(config_loader *loader, size_t count, size_t size)
{
    void *at = config_pool_alloc(&loader->kept, count * size); /* count <= CONFIG_ITEMS */
    if (at == NULL) {
        loader->err = config_pool_err(&loader->kept);
    }
    return at;
}

void config_apply_list(config_loader *loader, const config_key *key, const config_node *node,
                       config_list *field)
{
    bool is_single = (key->type == CONFIG_TYPE_LISTEN || key->type == CONFIG_TYPE_TEXTS ||
                      key->type == CONFIG_TYPE_TESTS) &&
                     node->kind == CONFIG_NODE_SCALAR;
    if (node->kind != CONFIG_NODE_LIST && !is_single) {
        refuse_value(loader, key, node);
        return;
    }
    size_t count = is_single ? 1 : node->count;
    if (is_crowded(loader, key, node)) {
        return;
    }
    if (count < key->min) {
        refuse_value(loader, key, node);
        return;
    }
    bay_str *items = config_keep_array(loader, count, sizeof(*items));
    if (items == NULL) {
        return;
    }
    size_t index = 0;
    size_t errors = loader->report->errors;
    for (const config_node *item = is_single ? node : node->first; item != NULL && index < count;
         item = item->next, index++) {
        if (item->kind != CONFIG_NODE_SCALAR) {
            config_error(loader, item->line, "%s: entry %zu is no text: put it in quotes",
                         loader->path, index + 1);
        } else if (!config_expand(loader, item, &items[index]) && loader->err != BAY_OK) {
            return;
        }
    }
    if (loader->report->errors == errors) {
        *field = (config_list){items, count};
    }
}

/* Says which keys stand twice; the walk then takes the first. */
bool config_check_twice(config_loader *loader, const config_node *node)
{
    bool is_unique = true;
    map seen;
    map_init(&seen, CONFIG_NODES);
    for (config_node *child = node->first; child != NULL; child = child->next) {
        const config_node *first = map_get(&seen, child->key);
        if (first != NULL) {
            config_error(loader, child->line, "\"%s\"%s%s stands twice, first in line %u: keep one",
                         config_quote(child->key).text, loader->path_len > 0 ? " in " : "",
                         loader->path, first->line);
            is_unique = false;
        } else if (map_put(&seen, child->key, child, NULL) != BAY_OK) {
            loader->err = BAY_ERR_NOMEM;
            break;
        }
    }
    map_fini(&seen);
    return is_unique && loader->err == BAY_OK;
}

static void apply_pairs(config_loader *loader, const config_key *key, const config_node *node,
                        config_map *field)
{
    if (node->kind != CONFIG_NODE_MAP) {
        refuse_value(loader, key, node);
        return;
    }
    if (is_crowded(loader, key, node) || !config_check_twice(loader, node)) {
        return;
    }
    config_pair *pairs = config_keep_array(loader, node->count, sizeof(*pairs));
    if (pairs == NULL) {
        return;
    }
    size_t index = 0;
    for (const config_node *child = node->first; child != NULL; child = child->next, index++) {
        size_t before = config_path_enter(loader, child->key);
        pairs[index].name = config_pool_dup(&loader->kept, child->key);
        if (pairs[index].name.at == NULL) {
            loader->err = config_pool_err(&loader->kept);
        } else if (child->kind != CONFIG_NODE_SCALAR) {
            config_error(loader, child->line, "%s is no text: put it in quotes", loader->path);
        } else if (!config_expand(loader, child, &pairs[index].value)) {
            pairs[index].value = (bay_str){"", 0};
        }
        config_path_leave(loader, before);
        if (loader->err != BAY_OK) {
            return;
        }
    }
    *field = (config_map){pairs, node->count};
}

/* ---- scopes ---------------------------------------------------------------------------------- */

void config_set_defaults(config_scope scope, void *base)
{
    for (size_t i = 0; i < config_key_count; i++) {
        const config_key *key = &config_keys[i];
        char *field = (char *)base + key->offset;
        uint64_t value = 0;
        if (key->scope != scope) {
            continue;
        }
        if (key->type == CONFIG_TYPE_SECTION) {
            config_set_defaults(config_key_section(key), field);
        } else if (key->fallback.len == 0) {
            continue;
        } else if (key->type == CONFIG_TYPE_TEXT) {
            *(bay_str *)field = key->fallback;
        } else if (key->type == CONFIG_TYPE_LISTEN) {
            *(config_list *)field = (config_list){&key->fallback, 1};
        } else {
            CHECK(config_value_parse(key, key->fallback, &value, NULL) == BAY_OK);
            config_value_store(key, base, value);
        }
    }
}

static void refuse_unknown(config_loader *loader, config_scope scope, const config_node *node)
{
    config_quoted quoted = config_quote(node->key);
    const char *in = loader->path_len > 0 ? " in " : "";
    const config_report *report = loader->report;
    /* Past what a report keeps nobody reads a suggestion, and a search for each has its price. */
    bool is_flood = report->errors >= CONFIG_ERRORS || report->warnings >= MOST_STRANGERS;
    const config_key *nearest = is_flood ? NULL : config_key_nearest(scope, node->key);
    if (nearest != NULL) {
        config_error(loader, node->line, "unknown key \"%s\"%s%s: did you mean \"%.*s\"?",
                     quoted.text, in, loader->path, BAY_STR(nearest->name));
    } else if (scope == CONFIG_SCOPE_TOP && loader->is_host_file && !is_flood) {
        config_warn(loader, node->line, "\"%s\" has no effect here: it belongs to the desktop host",
                    quoted.text);
    } else {
        config_error(loader, node->line,
                     "unknown key \"%s\"%s%s: remove it; docs/config.md lists the keys",
                     quoted.text, in, loader->path);
    }
}

static void apply_row(config_loader *loader, const config_key *key, const config_node *node,
                      config_row *row)
{
    config_scope scope = config_key_section(key);
    config_set_defaults(scope, row);
    row->line = node->line;
    row->name = config_pool_dup(&loader->kept, node->key);
    if (row->name.at == NULL) {
        loader->err = config_pool_err(&loader->kept);
        return;
    }
    bool is_pattern =
        scope == CONFIG_SCOPE_TOOL && row->name.len > 0 && row->name.len <= POLICY_PATTERN_BYTES;
    if (scope == CONFIG_SCOPE_TOOL && !is_pattern) {
        config_error(loader, node->line, "%s: a pattern has 1 to %d bytes", loader->path,
                     POLICY_PATTERN_BYTES);
        return;
    }
    if (!is_pattern && !config_is_name(row->name)) {
        config_error(loader, node->line,
                     "%s: \"%s\" cannot be a name: use 1 to %d letters, digits, _ and -",
                     loader->path, config_quote(row->name).text, CONFIG_NAME_BYTES);
        return;
    }
    size_t before = config_path_enter(loader, node->key);
    config_apply_map(loader, scope, node, row);
    config_path_leave(loader, before);
}

/* Structs by name. */
static void apply_rows(config_loader *loader, const config_key *key, const config_node *node,
                       config_rows *field)
{
    size_t size = config_scopes[config_key_section(key)].size;
    if (node->kind != CONFIG_NODE_MAP) {
        config_error(loader, node->line, "%s needs a map: write each name, then its keys",
                     loader->path);
        return;
    }
    if (is_crowded(loader, key, node) || !config_check_twice(loader, node) || node->count == 0) {
        return;
    }
    char *rows = config_keep_array(loader, node->count, size);
    size_t count = 0;
    for (const config_node *child = node->first;
         rows != NULL && child != NULL && loader->err == BAY_OK; child = child->next) {
        apply_row(loader, key, child, (config_row *)(void *)(rows + count * size));
        count++;
    }
    *field = (config_rows){rows, count};
}

static void apply_section(config_loader *loader, config_scope scope, const config_node *node,
                          void *field)
{
    size_t errors = loader->report->errors;
    config_apply_map(loader, scope, node, field);
    if (scope == CONFIG_SCOPE_AUTH && loader->report->errors == errors && loader->err == BAY_OK) {
        config_check_auth(loader, node, field);
    }
}

static void apply_key(config_loader *loader, const config_key *key, const config_node *node,
                      void *base)
{
    char *field = (char *)base + key->offset;
    if (node->kind == CONFIG_NODE_NULL || key->type == CONFIG_TYPE_SERVERS ||
        key->type == CONFIG_TYPE_AGENTS) {
        return; /* these come last */
    }
    size_t before = config_path_enter(loader, key->name);
    switch (key->type) {
    case CONFIG_TYPE_HOSTLIST:
        if (node->kind != CONFIG_NODE_LIST) {
            config_warn(loader, node->line, "%s has no effect here: it is no list of names",
                        loader->path);
            break;
        }
        config_apply_list(loader, key, node, (config_list *)field);
        break;
    case CONFIG_TYPE_LIST:
    case CONFIG_TYPE_LISTEN:
    case CONFIG_TYPE_TEXTS:
        config_apply_list(loader, key, node, (config_list *)field);
        break;
    case CONFIG_TYPE_MAP:
        apply_pairs(loader, key, node, (config_map *)field);
        break;
    case CONFIG_TYPE_NAMED:
        apply_rows(loader, key, node, (config_rows *)field);
        break;
    case CONFIG_TYPE_SECTION:
        apply_section(loader, config_key_section(key), node, field);
        break;
    case CONFIG_TYPE_TESTS:
        config_apply_tests(loader, key, node, (config_tests *)field);
        break;
    case CONFIG_TYPE_RULES:
        config_apply_rules(loader, key, node, (config_rules *)field);
        break;
    case CONFIG_TYPE_TOLERATED:
        if (key->doc[0] != '\0') {
            config_warn(loader, node->line, "%s has no effect here: %s", loader->path, key->doc);
        }
        break;
    default:
        apply_scalar(loader, key, node, base);
        break;
    }
    config_path_leave(loader, before);
}

void config_apply_map(config_loader *loader, config_scope scope, const config_node *node,
                      void *base)
{
    const config_key *given[MOST_KEYS];
    size_t count = 0;
    if (node->kind == CONFIG_NODE_NULL) {
        return;
    }
    if (node->kind != CONFIG_NODE_MAP) {
        config_error(loader, node->line, "%s needs a map of keys: indent them below it, or use { }",
                     loader->path_len > 0 ? loader->path : "the file");
        return;
    }
    config_check_twice(loader, node);
    for (const config_node *child = node->first; child != NULL && loader->err == BAY_OK;
         child = child->next) {
        const config_key *key = config_key_find(scope, child->key);
        if (key == NULL) {
            refuse_unknown(loader, scope, child);
            continue;
        }
        const config_key *other = NULL;
        for (size_t i = 0; i < count && other == NULL; i++) {
            bool is_same_field =
                key->type != CONFIG_TYPE_TOLERATED && given[i]->offset == key->offset;
            other = given[i] == key || is_same_field ? given[i] : NULL;
        }
        if (other != NULL && other != key) {
            config_error(loader, child->line, "%s: %.*s and %.*s are the same: keep one",
                         loader->path, BAY_STR(other->name), BAY_STR(key->name));
        }
        if (other == NULL) {
            if (key->type != CONFIG_TYPE_TOLERATED && count < MOST_KEYS) {
                given[count++] = key;
            }
            apply_key(loader, key, child, base);
        }
    }
}

/* ---- servers --------------------------------------------------------------------------------- */

/* Known before the keys are read in their order, for what they may then leave open. */
static bool is_left_out(const config_node *node)
{
    for (const config_node *child = node->first; child != NULL; child = child->next) {
        const config_key *key = config_key_find(CONFIG_SCOPE_SERVER, child->key);
        bool says_so = key != NULL && key->offset == offsetof(config_server, is_disabled) &&
                       (key->type == CONFIG_TYPE_BOOL || key->type == CONFIG_TYPE_INVERSE);
        uint64_t value = 0;
        if (says_so && config_value_parse(key, child->text, &value, NULL) == BAY_OK) {
            return value != 0;
        }
    }
    return false;
}

static void apply_server(config_loader *loader, const config_node *node, config_server *server)
{
    size_t before = config_path_enter(loader, node->key);
    size_t errors = loader->report->errors;
    size_t warnings = loader->report->warnings;
    config_set_defaults(CONFIG_SCOPE_SERVER, server);
    server->line = node->line;
    server->name = config_pool_dup(&loader->kept, node->key);
    if (server->name.at == NULL) {
        loader->err = config_pool_err(&loader->kept);
        return;
    }
    config_fit_name(loader, node, (char *)(uintptr_t)server->name.at);
    loader->is_left_out = is_left_out(node);
    config_apply_map(loader, CONFIG_SCOPE_SERVER, node, server);
    bool is_open = loader->is_left_out && loader->report->warnings > warnings;
    loader->is_left_out = false;
    server->transport = config_transport_of(server->transport);
    if (loader->err == BAY_OK && !is_open) {
        config_check_server(loader, node, server, loader->report->errors == errors);
        config_check_server_files(loader, node, server);
    }
    config_path_leave(loader, before);
}

static void apply_servers(config_loader *loader, const config_node *node, config *self)
{
    if (node->kind == CONFIG_NODE_NULL) {
        return;
    }
    size_t before = config_path_enter(loader, node->key);
    if (node->kind != CONFIG_NODE_MAP) {
        config_error(loader, node->line,
                     "mcpServers needs a map: write each server's name, then "
                     "its keys");
    } else if (node->count > CONFIG_SERVERS) {
        config_error(loader, node->line,
                     "mcpServers holds %zu servers, %d is the most: remove some", node->count,
                     CONFIG_SERVERS);
    } else if (config_check_twice(loader, node) && node->count > 0) {
        config_server *servers = config_keep_array(loader, node->count, sizeof(*servers));
        size_t index = 0;
        for (const config_node *child = node->first;
             servers != NULL && child != NULL && loader->err == BAY_OK; child = child->next) {
            apply_server(loader, child, &servers[index++]);
        }
        self->servers = servers;
        self->server_count = index;
    }
    config_path_leave(loader, before);
}

const config_node *config_member(const config_node *node, const char *name)
{
    if (node != NULL && node->kind == CONFIG_NODE_MAP) {
        for (const config_node *child = node->first; child != NULL; child = child->next) {
            if (str_eq(child->key, str_of(name))) {
                return child;
            }
        }
    }
    return NULL;
}

/* mcpServers, and no key that only the gateway knows. */
static bool looks_like_host_file(const config_node *root)
{
    if (config_member(root, "mcpServers") == NULL) {
        return false;
    }
    for (const config_node *child = root->first; child != NULL; child = child->next) {
        const config_key *key = config_key_find(CONFIG_SCOPE_TOP, child->key);
        if (key != NULL && key->type != CONFIG_TYPE_TOLERATED && key->type != CONFIG_TYPE_SERVERS) {
            return false;
        }
    }
    return true;
}

static void apply_root(config_loader *loader, const config_node *root, config *self)
{
    const config_node *listen = config_member(root, "listen");
    const config_node *tls = config_member(root, "tls");
    const config_node *pins = config_member(root, "pins");
    loader->is_host_file = looks_like_host_file(root);
    config_apply_map(loader, CONFIG_SCOPE_TOP, root, self);
    self->listen_line = listen != NULL ? listen->line : 0;
    self->tls.line = tls != NULL ? tls->line : 0;
    self->pins.line = pins != NULL ? pins->line : 0;
    if (loader->err == BAY_OK) {
        config_check_top(loader, root, self, loader->report->errors == 0);
        config_check_top_files(loader, root, self);
    }
    const config_node *servers = config_member(root, "mcpServers");
    if (servers != NULL && loader->err == BAY_OK) {
        apply_servers(loader, servers, self);
    }
    if (loader->err == BAY_OK) {
        config_check_names(loader, self);
    }
    if (loader->err == BAY_OK) {
        config_check_profiles(loader, self);
    }
    const config_node *agents = config_member(root, "agents");
    if (agents != NULL && loader->err == BAY_OK) {
        config_apply_agents(loader, agents, self);
    }
    if (loader->report->errors == 0 && loader->err == BAY_OK) {
        config_check_access(loader, root, self);
        config_check_callers(loader, self);
        config_check_policy(loader, root, self);
    }
    if (loader->report->errors == 0 && self->server_count == 0 && self->agent_count == 0) {
        config_warn(loader, servers != NULL ? servers->line : 0,
                    "no server is configured: add one below mcpServers");
    }
}

/* ---- loading --------------------------------------------------------------------------------- */

static bool is_json(bay_str text)
{
    size_t at = 0;
    while (at < text.len && memchr(" \t\r\n", text.at[at], 4) != NULL) {
        at++;
    }
    return at < text.len && text.at[at] == '{';
}

static void load_into(config_loader *loader, bay_str text, config *self)
{
    bay_str body = str_starts(text, STR("\xef\xbb\xbf")) ? str_from(text, 3) : text;
    config_node *root =
        is_json(body) ? config_json_parse(loader, body) : config_yaml_parse(loader, body);
    config_set_defaults(CONFIG_SCOPE_TOP, self);
    if (root != NULL && loader->err == BAY_OK) {
        apply_root(loader, root, self);
    }
    if (loader->err == BAY_ERR_LIMIT) {
        config_error(loader, 0, "too much for one configuration: split the file");
    }
}

static bay_err load_text(bay_str text, bay_str name, config_loader loader, const config **out)
{
    config_report *report = loader.report;
    config_report_init(report, name);
    if (text.len > CONFIG_FILE_BYTES) {
        config_error(&loader, 0, "longer than %d MiB: split it or drop what is not needed",
                     CONFIG_FILE_BYTES / (1024 * 1024));
        return BAY_ERR_LIMIT;
    }
    config_object *object = mem_zalloc(sizeof(*object));
    if (object == NULL) {
        return BAY_ERR_NOMEM;
    }
    config_pool_init(&loader.tree, TREE_BYTES);
    config_pool_init(&loader.kept, KEPT_BYTES);
    load_into(&loader, text, &object->public);
    config_pool_fini(&loader.tree);
    object->pool = loader.kept;
    atomic_init(&object->references, 1);
    if (loader.err != BAY_OK || report->errors > 0) {
        config_free(&object->public);
        return loader.err == BAY_ERR_NOMEM ? BAY_ERR_NOMEM : BAY_ERR_SYNTAX;
    }
    *out = &object->public;
    return BAY_OK;
}

bay_err config_load_text(bay_str text, bay_str name, config_lookup lookup, void *context,
                         const config **out, config_report *report)
{
    config_loader loader = {.report = report, .lookup = lookup, .context = context};
    return load_text(text, name, loader, out);
}

bool config_lookup_process(void *context, bay_str name, bay_str *out)
{
    (void)context;
    char text[256];
    if (name.len >= sizeof(text)) {
        return false;
    }
    memcpy(text, name.at, name.len);
    text[name.len] = '\0';
    *out = str_of(getenv(text));
    return out->at != NULL;
}

/* At most one byte more than is allowed, so that "too long" shows. */
static bay_err read_all(int file, char *at, size_t *out_len)
{
    size_t len = 0;
    while (len <= CONFIG_FILE_BYTES) {
        ssize_t got = read(file, at + len, CONFIG_FILE_BYTES + 1 - len);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return BAY_ERR_IO;
        }
        if (got == 0) {
            break;
        }
        len += (size_t)got;
    }
    *out_len = len;
    return BAY_OK;
}

bay_err config_load_file(const char *path, bool is_served, const config **out,
                         config_report *report)
{
    config_report_init(report, str_of(path));
    config_loader loader = {.report = report};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        bay_err err = errno == ENOENT ? BAY_ERR_NOT_FOUND : BAY_ERR_IO;
        config_error(&loader, 0, "cannot be opened: %s: check the path and its permissions",
                     strerror(errno));
        return err;
    }
    size_t len = 0;
    bay_err err = BAY_ERR_NOMEM;
    char *at = mem_alloc(CONFIG_FILE_BYTES + 1);
    if (at != NULL) {
        err = read_all(file, at, &len);
        if (err != BAY_OK) {
            config_error(&loader, 0, "cannot be read: %s: check that it is a file",
                         strerror(errno));
        }
    }
    close(file);
    if (err == BAY_OK) {
        loader = (config_loader){
            .report = report, .lookup = config_lookup_process, .is_served = is_served};
        err = load_text((bay_str){at, len}, str_of(path), loader, out);
        mem_wipe(at, len);
    }
    mem_free(at);
    return err;
}

/* JSON into the tree, by our own reader: what a desktop host wrote loads as it stands, tabs,
 * escaped surrogates and long keys included. Offsets become lines on the way: they only grow. */
#include "json/json.h"
#include "base/mem.h"
#include "config/internal.h"

enum { INDEX_BYTES = 64 * 1024 * 1024 };

typedef struct json_builder {
    config_loader *loader;
    arena memory;
    bay_str text;
    size_t counted; /* bytes whose newlines `line` counts */
    uint32_t line;
} json_builder;

static uint32_t line_at(json_builder *self, size_t offset)
{
    for (; self->counted < offset && self->counted < self->text.len; self->counted++) {
        self->line += self->text.at[self->counted] == '\n';
    }
    return self->line;
}

/* A decoded copy in the tree's pool; what the arena held of it is wiped. */
static bool copy_text(json_builder *self, json_val value, bay_str *out)
{
    config_loader *loader = self->loader;
    bay_str text = json_raw(value);
    bool is_decoded = false;
    if (json_is(value, JSON_STRING)) {
        bay_err err = json_str(value, &self->memory, &text);
        if (err == BAY_ERR_NOMEM || err == BAY_ERR_LIMIT) {
            loader->err = err;
            return false;
        }
        if (err != BAY_OK) {
            config_error(loader, line_at(self, json_offset(value)),
                         "not valid JSON: half of a surrogate pair: write \\uXXXX\\uXXXX or the "
                         "character itself");
            return false;
        }
        is_decoded =
            text.len > 0 && (text.at < self->text.at || text.at >= self->text.at + self->text.len);
    }
    *out = config_pool_dup(&loader->tree, text);
    if (is_decoded) {
        mem_wipe((void *)(uintptr_t)text.at, text.len);
    }
    if (out->at == NULL) {
        loader->err = config_pool_err(&loader->tree);
    }
    return out->at != NULL;
}

/* Recursion is bounded by the reader's depth. */
static config_node *build(json_builder *self, json_val value, json_val key)
{
    static const config_kind kinds[] = {
        [JSON_NULL] = CONFIG_NODE_NULL,     [JSON_FALSE] = CONFIG_NODE_SCALAR,
        [JSON_TRUE] = CONFIG_NODE_SCALAR,   [JSON_NUMBER] = CONFIG_NODE_SCALAR,
        [JSON_STRING] = CONFIG_NODE_SCALAR, [JSON_ARRAY] = CONFIG_NODE_LIST,
        [JSON_OBJECT] = CONFIG_NODE_MAP,
    };
    bool has_key = json_is(key, JSON_STRING);
    uint32_t line = line_at(self, json_offset(has_key ? key : value));
    config_node *node = config_node_new(self->loader, kinds[json_kind_of(value)], line);
    if (node == NULL || (has_key && !copy_text(self, key, &node->key))) {
        return NULL;
    }
    node->is_quoted = json_is(value, JSON_STRING);
    if (node->kind == CONFIG_NODE_SCALAR) {
        return copy_text(self, value, &node->text) ? node : NULL;
    }
    json_iter members = json_iter_of(value);
    while (json_next(&members)) {
        config_node *child = build(self, members.value, members.key);
        if (child == NULL) {
            return NULL;
        }
        config_node_add(node, child);
    }
    return node;
}

static const char *advice(bay_str text, size_t offset)
{
    char c = offset < text.len ? text.at[offset] : '\0';
    if (c == '/' || c == '#') {
        return "JSON has no comments: remove it, or write the file as YAML";
    }
    if (c == '}' || c == ']' || c == '"') {
        return "check the commas here and in the line above";
    }
    return "check commas, quotes and brackets here; a file that begins with { is read as JSON";
}

config_node *config_json_parse(config_loader *loader, bay_str text)
{
    const json_limits limits = {CONFIG_FILE_BYTES, CONFIG_DEPTH, CONFIG_NODES};
    json_builder builder = {.loader = loader, .text = text, .line = 1};
    arena_init(&builder.memory, INDEX_BYTES);
    json_doc document;
    bay_diag diag = {.code = BAY_OK};
    config_node *root = NULL;
    bay_err err = json_parse(&document, text, &limits, &builder.memory, &diag);
    if (err == BAY_OK) {
        root = build(&builder, json_root(&document), JSON_NONE);
    } else if (err == BAY_ERR_NOMEM) {
        loader->err = err;
    } else {
        config_error(loader, line_at(&builder, diag.offset), "not valid JSON: %s: %s",
                     bay_err_text(err), advice(text, diag.offset));
    }
    arena_fini(&builder.memory);
    return root;
}

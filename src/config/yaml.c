/* YAML into the tree, by the event parser of libyaml. Anchors, aliases and tags are refused:
 * nothing here needs them, and nested aliases let a small file stand for an endless one. One
 * document. */
#include <yaml.h>

#include "base/mem.h"
#include "config/internal.h"

typedef struct yaml_builder {
    config_loader *loader;
    config_node *stack[CONFIG_DEPTH]; /* the open lists and maps */
    size_t depth;
    config_node *root;
    bay_str key; /* of the pair under way, in the tree's pool */
    uint32_t key_line;
    bool has_key;
} yaml_builder;

static void refuse_syntax(config_loader *loader, const yaml_parser_t *parser, bay_str text)
{
    uint32_t line = (uint32_t)parser->problem_mark.line + 1;
    if (parser->error == YAML_READER_ERROR) {
        line = 1;
        for (size_t i = 0; i < text.len && i < parser->problem_offset; i++) {
            line += text.at[i] == '\n';
        }
    }
    const char *problem = parser->problem != NULL ? parser->problem : "unreadable";
    bool is_tab = strstr(problem, "cannot start any token") != NULL;
    config_error(loader, line, "not valid YAML: %s: %s", problem,
                 is_tab ? "indent with spaces, not tabs, and put quotes around a value that "
                          "begins with @, ` or %"
                        : "check indentation, colons, quotes and brackets here and above");
}

/* Hangs a value where it belongs: under its key, into the list, or as the root. */
static void place(yaml_builder *self, config_node *node)
{
    if (self->depth == 0) {
        self->root = node;
        return;
    }
    config_node *parent = self->stack[self->depth - 1];
    if (parent->kind == CONFIG_NODE_MAP) {
        node->key = self->key;
        node->line = self->key_line;
        self->has_key = false;
    }
    config_node_add(parent, node);
}

static bool wants_key(const yaml_builder *self)
{
    return self->depth > 0 && self->stack[self->depth - 1]->kind == CONFIG_NODE_MAP &&
           !self->has_key;
}

static bool is_null(const yaml_event_t *event)
{
    if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) {
        return false;
    }
    bay_str text = {(const char *)event->data.scalar.value, event->data.scalar.length};
    return text.len == 0 || str_eq(text, STR("~")) || str_eq(text, STR("null")) ||
           str_eq(text, STR("Null")) || str_eq(text, STR("NULL"));
}

static bool on_scalar(yaml_builder *self, const yaml_event_t *event, uint32_t line)
{
    config_loader *loader = self->loader;
    if (event->data.scalar.anchor != NULL || event->data.scalar.tag != NULL) {
        config_error(loader, line, "anchors and tags are not read: write the plain value");
        return false;
    }
    bay_str text = {(const char *)event->data.scalar.value, event->data.scalar.length};
    bay_str copy = config_pool_dup(&loader->tree, text);
    if (copy.at == NULL) {
        loader->err = config_pool_err(&loader->tree);
        return false;
    }
    if (wants_key(self)) {
        self->key = copy;
        self->key_line = line;
        self->has_key = true;
        return true;
    }
    config_node *node =
        config_node_new(loader, is_null(event) ? CONFIG_NODE_NULL : CONFIG_NODE_SCALAR, line);
    if (node == NULL) {
        return false;
    }
    node->text = copy;
    node->is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    place(self, node);
    return true;
}

static bool on_open(yaml_builder *self, config_kind kind, bool is_dressed, uint32_t line)
{
    config_loader *loader = self->loader;
    if (is_dressed) {
        config_error(loader, line, "anchors and tags are not read: write the plain value");
        return false;
    }
    if (wants_key(self)) {
        config_error(loader, line,
                     "a key must be a plain text, not a list or a map: check for "
                     "stray { or [");
        return false;
    }
    if (self->depth == CONFIG_DEPTH) {
        config_error(loader, line, "nested deeper than %d levels: flatten it", CONFIG_DEPTH);
        return false;
    }
    config_node *node = config_node_new(loader, kind, line);
    if (node == NULL) {
        return false;
    }
    place(self, node);
    self->stack[self->depth++] = node;
    return true;
}

static bool on_event(yaml_builder *self, const yaml_event_t *event)
{
    uint32_t line = (uint32_t)event->start_mark.line + 1;
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return on_scalar(self, event, line);
    case YAML_SEQUENCE_START_EVENT:
        return on_open(self, CONFIG_NODE_LIST,
                       event->data.sequence_start.anchor != NULL ||
                           event->data.sequence_start.tag != NULL,
                       line);
    case YAML_MAPPING_START_EVENT:
        return on_open(self, CONFIG_NODE_MAP,
                       event->data.mapping_start.anchor != NULL ||
                           event->data.mapping_start.tag != NULL,
                       line);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        self->depth--;
        return true;
    case YAML_ALIAS_EVENT:
        config_error(self->loader, line, "aliases are not read: write the value out");
        return false;
    case YAML_DOCUMENT_START_EVENT:
        if (self->root != NULL) {
            config_error(self->loader, line, "a second YAML document: keep one document a file");
            return false;
        }
        return true;
    default:
        return true;
    }
}

/* What the parser still holds of the text may be secrets. */
static void wipe_parser(yaml_parser_t *parser)
{
    if (parser->buffer.start != NULL) {
        mem_wipe(parser->buffer.start, (size_t)(parser->buffer.end - parser->buffer.start));
    }
    if (parser->raw_buffer.start != NULL) {
        mem_wipe(parser->raw_buffer.start,
                 (size_t)(parser->raw_buffer.end - parser->raw_buffer.start));
    }
    yaml_parser_delete(parser);
}

config_node *config_yaml_parse(config_loader *loader, bay_str text)
{
    yaml_parser_t parser;
    if (yaml_parser_initialize(&parser) == 0) {
        loader->err = BAY_ERR_NOMEM;
        return NULL;
    }
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.at, text.len);
    yaml_builder builder = {.loader = loader};
    bool is_good = true;
    bool is_over = false;
    while (is_good && !is_over) {
        yaml_event_t event;
        if (yaml_parser_parse(&parser, &event) == 0) {
            if (parser.error == YAML_MEMORY_ERROR) {
                loader->err = BAY_ERR_NOMEM;
            } else {
                refuse_syntax(loader, &parser, text);
            }
            is_good = false;
            break;
        }
        is_over = event.type == YAML_STREAM_END_EVENT;
        is_good = on_event(&builder, &event);
        if (event.type == YAML_SCALAR_EVENT) {
            mem_wipe(event.data.scalar.value, event.data.scalar.length);
        }
        yaml_event_delete(&event);
    }
    wipe_parser(&parser);
    if (!is_good) {
        return NULL;
    }
    return builder.root != NULL ? builder.root : config_node_new(loader, CONFIG_NODE_NULL, 1);
}

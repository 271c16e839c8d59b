/* The tree is written as JSON in which each member and element stands on the line that it has in the file; offsets
 * in the JSON therefore give lines of the file. */
#include "config/document.h"

#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "config/internal.h"
#include "net/capture.h"
#include "json/writer.h"

enum { TREE_BYTES = 64 << 20 };

typedef struct document_writer {
    config_loader *loader;
    json_writer json;
    buf *out;
    uint32_t line;
} document_writer;

static void go_to_line(document_writer *self, uint32_t line)
{
    for (; self->line < line; self->line++) {
        buf_char(self->out, '\n');
    }
}

static size_t count_digits(bay_str text)
{
    size_t count = 0;
    while (count < text.len && text.at[count] >= '0' && text.at[count] <= '9') {
        count++;
    }
    return count;
}

/* Numbers of JSON's own grammar; YAML's 0x1F, .inf, 007 and 1_000 stay texts. */
static bool is_number(bay_str text)
{
    text = str_from(text, str_starts(text, STR("-")) ? 1 : 0);
    size_t digits = count_digits(text);
    if (digits == 0 || (digits > 1 && text.at[0] == '0')) {
        return false;
    }
    text = str_from(text, digits);
    if (str_starts(text, STR("."))) {
        digits = count_digits(str_from(text, 1));
        text = str_from(text, digits + 1);
        if (digits == 0) {
            return false;
        }
    }
    if (text.len > 0 && (text.at[0] == 'e' || text.at[0] == 'E')) {
        text = str_from(text, 1);
        text = str_from(text, text.len > 0 && (text.at[0] == '-' || text.at[0] == '+') ? 1 : 0);
        return text.len > 0 && count_digits(text) == text.len;
    }
    return text.len == 0;
}

static void put_scalar(document_writer *self, const config_node *node)
{
    bool is_word = str_eq(node->text, STR("true")) || str_eq(node->text, STR("false"));
    if (!node->is_quoted && (is_word || is_number(node->text))) {
        json_put_raw(&self->json, node->text);
    } else {
        json_put_str(&self->json, node->text);
    }
}

/* Recursion is bounded by CONFIG_DEPTH. */
static void put_node(document_writer *self, const config_node *node)
{
    bool is_map = node->kind == CONFIG_NODE_MAP;
    if (node->kind == CONFIG_NODE_NULL) {
        json_put_raw(&self->json, STR("null"));
        return;
    }
    if (node->kind == CONFIG_NODE_SCALAR) {
        put_scalar(self, node);
        return;
    }
    if (is_map) {
        (void)config_check_twice(self->loader, node);
        json_open_object(&self->json);
    } else {
        json_open_array(&self->json);
    }
    for (const config_node *child = node->first; child != NULL; child = child->next) {
        go_to_line(self, child->line);
        if (is_map) {
            json_key(&self->json, child->key);
        }
        put_node(self, child);
    }
    if (is_map) {
        json_close_object(&self->json);
    } else {
        json_close_array(&self->json);
    }
}

static bay_err convert(const config_node *root, arena *memory, json_doc *out, config_loader *loader)
{
    buf text;
    bay_str copy;
    bay_diag diag = {0};
    document_writer writer = {.loader = loader, .out = &text, .line = 1};
    buf_init(&text, CONFIG_DOCUMENT_BYTES);
    json_writer_init(&writer.json, &text);
    go_to_line(&writer, root->line);
    put_node(&writer, root);
    bay_err err = loader->report->errors > 0 ? BAY_ERR_SYNTAX : text.err;
    err = err == BAY_OK ? arena_dup(memory, buf_view(&text), &copy) : err;
    err = err == BAY_OK ? json_parse(out, copy, NULL, memory, &diag) : err;
    buf_fini(&text);
    if (err != BAY_OK && err != BAY_ERR_NOMEM && loader->report->errors == 0) {
        config_error(loader, 0, "%s", diag.text[0] != '\0' ? diag.text : bay_err_text(err));
    }
    return err;
}

bay_err config_document_read(bay_str text, bay_str name, arena *memory, json_doc *out,
                             config_report *report)
{
    config_report_init(report, name);
    config_loader loader = {.report = report};
    if (text.len > CONFIG_DOCUMENT_BYTES) {
        config_error(&loader, 0, "longer than %d MiB: split it", CONFIG_DOCUMENT_BYTES >> 20);
        return BAY_ERR_LIMIT;
    }
    config_pool_init(&loader.tree, TREE_BYTES);
    text = text.at != NULL ? text : STR(""); /* libyaml demands a pointer */
    bay_str head = str_trim(text);
    bool is_json = str_starts(head, STR("{")) || str_starts(head, STR("["));
    const config_node *root =
        is_json ? config_json_parse(&loader, text) : config_yaml_parse(&loader, text);
    bay_err err = loader.err;
    if (err == BAY_OK && (root == NULL || report->errors > 0)) {
        err = BAY_ERR_SYNTAX;
    }
    err = err == BAY_OK ? convert(root, memory, out, &loader) : err;
    config_pool_fini(&loader.tree);
    return err;
}

bay_err config_document_load(const char *path, uint32_t timeout_ms, arena *memory, json_doc *out,
                             bay_diag *diag)
{
    buf text;
    config_report *report = mem_zalloc(sizeof(*report));
    if (report == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "%s: out of memory", path);
    }
    buf_init(&text, CONFIG_DOCUMENT_BYTES + 1);
    const char *fault = capture_file_into(path, timeout_ms, &text);
    bay_err err = fault == NULL
                      ? config_document_read(buf_view(&text), str_of(path), memory, out, report)
                      : diag_set(diag, BAY_ERR_IO, "%s: %s", path, fault);
    if (err != BAY_OK && report->errors > 0) {
        err = diag_set(diag, BAY_ERR_INVALID, "%s:%u: %s", path, report->messages[0].line,
                       report->messages[0].text);
    } else if (err != BAY_OK && fault == NULL) {
        err = diag_set(diag, err, "%s: %s", path, bay_err_text(err));
    }
    buf_fini(&text);
    mem_free(report);
    return err;
}

uint32_t config_document_line(json_val value)
{
    bay_str raw = json_raw(value);
    const char *start = raw.at - json_offset(value);
    uint32_t line = 1;
    for (const char *at = start; at < raw.at; at++) {
        line += *at == '\n';
    }
    return line;
}

/* ${NAME} and ${NAME:-default} in values; ${file:PATH} and ${exec:PROGRAM} are in secret.c. `$$` is a
 * dollar sign; a dollar before anything else is itself. ${env:NAME} is read as ${NAME}: some desktop hosts write it so. The default stands in for
 * a variable that is unset or empty and is taken literally up to the first '}'.
 *
 * Invariant: the result is measured first and written into wiped memory once, so that no copy of a
 * secret is left in memory that was outgrown. */
#include "base/err.h"
#include "config/internal.h"

enum { EXPANDED_BYTES = 1024 * 1024 };

typedef struct expansion {
    config_loader *loader;
    const config_node *node;
    char *at; /* NULL: only measure */
    size_t len;
    size_t cap;
} expansion;

static void put(expansion *self, bay_str text)
{
    if (self->at != NULL && text.len > 0 && self->len <= self->cap &&
        text.len <= self->cap - self->len) {
        memcpy(self->at + self->len, text.at, text.len);
    }
    self->len += text.len;
}

static bool is_name(bay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!is_letter && (i == 0 || c < '0' || c > '9')) {
            return false;
        }
    }
    return text.len > 0;
}

static bay_str find_default(bay_str inside, bay_str *out_name)
{
    for (size_t i = 0; i + 1 < inside.len; i++) {
        if (inside.at[i] == ':' && inside.at[i + 1] == '-') {
            *out_name = str_head(inside, i);
            return str_from(inside, i + 2);
        }
    }
    *out_name = inside;
    return (bay_str){NULL, 0};
}

static bool put_secret(expansion *self, bay_str source)
{
    config_loader *loader = self->loader;
    bay_str secret = {"", 0};
    if (loader->is_left_out) {
        if (self->at == NULL) {
            config_warn(loader, self->node->line,
                        "%s: ${%s} is not read while the server is disabled", loader->path,
                        config_quote(source).text);
        }
        return true;
    }
    if (!config_secret_read(loader, self->node->line, source, &secret)) {
        return false;
    }
    put(self, secret);
    return true;
}

/* `inside`: what stands between the braces. */
static bool put_variable(expansion *self, bay_str inside)
{
    config_loader *loader = self->loader;
    bay_str name;
    if (str_starts(inside, STR("file:")) || str_starts(inside, STR("exec:"))) {
        return put_secret(self, inside);
    }
    bay_str fallback = find_default(inside, &name);
    if (str_starts(name, STR("env:"))) {
        name = str_from(name, 4);
    }
    if (!is_name(name)) {
        config_error(loader, self->node->line,
                     "%s: ${...} must name an environment variable: write ${NAME} or "
                     "${NAME:-default} (or ${file:/PATH}, ${exec:/PROGRAM}), or $${ for a plain ${",
                     loader->path);
        return false;
    }
    bay_str value = {NULL, 0};
    bool is_set = loader->lookup != NULL && loader->lookup(loader->context, name, &value);
    if (fallback.at != NULL && (!is_set || value.len == 0)) {
        put(self, fallback);
        return true;
    }
    if (!is_set && loader->is_left_out) {
        if (self->at == NULL) {
            config_warn(loader, self->node->line,
                        "%s: the environment variable %s is not set; the server is disabled",
                        loader->path, config_quote(name).text);
        }
        return true;
    }
    if (!is_set) {
        config_quoted quoted = config_quote(name);
        config_error(loader, self->node->line,
                     "%s: the environment variable %s is not set: set it, or write ${%s:-default}",
                     loader->path, quoted.text, quoted.text);
        return false;
    }
    put(self, value);
    return true;
}

static bool expand(expansion *self)
{
    bay_str rest = self->node->text;
    while (rest.len > 0) {
        size_t dollar = str_find(rest, '$');
        put(self, str_head(rest, dollar));
        rest = str_from(rest, dollar);
        if (rest.len < 2 || (rest.at[1] != '$' && rest.at[1] != '{')) {
            put(self, str_head(rest, 1));
            rest = str_from(rest, 1);
            continue;
        }
        if (rest.at[1] == '$') {
            put(self, STR("$"));
            rest = str_from(rest, 2);
            continue;
        }
        size_t end = str_find(rest, '}');
        if (end == rest.len) {
            config_error(self->loader, self->node->line,
                         "%s: ${ without its }: close it, or write $${ for a plain ${",
                         self->loader->path);
            return false;
        }
        if (!put_variable(self, (bay_str){rest.at + 2, end - 2})) {
            return false;
        }
        rest = str_from(rest, end + 1);
        if (self->len > EXPANDED_BYTES) {
            config_error(self->loader, self->node->line,
                         "%s: longer than 1 MiB with its variables replaced: shorten it",
                         self->loader->path);
            return false;
        }
    }
    return true;
}

bool config_expand(config_loader *loader, const config_node *node, bay_str *out)
{
    expansion measured = {.loader = loader, .node = node};
    if (!expand(&measured)) {
        return false;
    }
    char *at = config_pool_alloc(&loader->kept, measured.len + 1);
    if (at == NULL) {
        loader->err = config_pool_err(&loader->kept);
        return false;
    }
    expansion written = {.loader = loader, .node = node, .at = at, .cap = measured.len};
    if (!expand(&written)) {
        return false;
    }
    if (written.len != measured.len) {
        config_error(loader, node->line, "%s: the environment changed meanwhile: load again",
                     loader->path);
        return false;
    }
    if (memchr(at, '\0', written.len) != NULL) {
        config_error(loader, node->line, "%s: a NUL byte cannot stand in a value: remove it",
                     loader->path);
        return false;
    }
    *out = (bay_str){at, written.len};
    return true;
}

bay_err config_expand_text(bay_str text, config_lookup lookup, void *context, buf *out,
                           bay_diag *diag)
{
    config_report report;
    config_report_init(&report, STR(""));
    config_loader loader = {
        .report = &report, .lookup = lookup, .context = context, .path = "the value"};
    config_pool_init(&loader.kept, 2 * EXPANDED_BYTES);
    const config_node node = {.kind = CONFIG_NODE_SCALAR, .text = text};
    bay_str value;
    bay_err err = BAY_OK;
    if (config_expand(&loader, &node, &value)) {
        buf_str(out, value);
        err = out->err;
    } else if (loader.err != BAY_OK) {
        err = diag_set(diag, loader.err, "%s", bay_err_text(loader.err));
    } else {
        err = diag_set(diag, BAY_ERR_SYNTAX, "%s", report.messages[0].text);
    }
    config_pool_fini(&loader.kept);
    return err;
}

/* Reading front matter: by indentation, one line at a time, as deep as MATTER_MAX_DEPTH. `at` is
 * always at the beginning of a line while blocks are read; nodes lie in the arena. Source: YAML
 * 1.2.2, sections 6 to 8 (what of it is said in the header). */
#include "sdk/front_matter.h"

#include "base/check.h"
#include "base/err.h"

typedef struct reader {
    bay_str text;
    size_t at;
    arena *memory;
    bay_diag *diag;
    size_t base; /* offset of the text in the file */
    uint32_t nodes;
    uint32_t depth;
    bay_err err;
} reader;

static bool front_matter_fail(reader *self, bay_err err, const char *what)
{
    if (self->err == BAY_OK) {
        self->err = diag_at(self->diag, err, self->base + self->at, "front matter: %s", what);
    }
    return false;
}

static matter *new_node(reader *self, matter_kind kind)
{
    if (++self->nodes > MATTER_MAX_NODES) {
        front_matter_fail(self, BAY_ERR_LIMIT, "too many values");
        return NULL;
    }
    matter *node = arena_zalloc(self->memory, sizeof(*node));
    if (node == NULL) {
        front_matter_fail(self, self->memory->is_full ? BAY_ERR_LIMIT : BAY_ERR_NOMEM, "no memory");
        return NULL;
    }
    node->kind = kind;
    return node;
}

/* ---- lines */

static bay_str line_at(const reader *self, size_t at)
{
    bay_str rest = str_from(self->text, at);
    bay_str line = str_head(rest, str_find(rest, '\n'));
    return line.len > 0 && line.at[line.len - 1] == '\r' ? str_head(line, line.len - 1) : line;
}

static void next_line(reader *self)
{
    bay_str rest = str_from(self->text, self->at);
    self->at += str_find(rest, '\n') + 1;
    self->at = self->at < self->text.len ? self->at : self->text.len;
}

static size_t indent_of(bay_str line)
{
    size_t indent = 0;
    while (indent < line.len && line.at[indent] == ' ') {
        indent++;
    }
    return indent;
}

static bool is_blank(bay_str line)
{
    bay_str rest = str_trim(line);
    return rest.len == 0 || rest.at[0] == '#';
}

/* Skips lines without content; false at the end. */
static bool find_line(reader *self, bay_str *out, size_t *out_indent)
{
    while (self->at < self->text.len) {
        bay_str line = line_at(self, self->at);
        if (!is_blank(line)) {
            *out = line;
            *out_indent = indent_of(line);
            return *out_indent < line.len && line.at[*out_indent] == '\t'
                       ? front_matter_fail(self, BAY_ERR_UNSUPPORTED, "a tab as indentation")
                       : true;
        }
        next_line(self);
    }
    return false;
}

/* The text before a comment: a '#' at the beginning or behind a space. */
static bay_str before_comment(bay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '#' && (i == 0 || text.at[i - 1] == ' ' || text.at[i - 1] == '\t')) {
            return str_trim(str_head(text, i));
        }
    }
    return str_trim(text);
}

static bool is_space_at(bay_str text, size_t at)
{
    return at >= text.len || text.at[at] == ' ' || text.at[at] == '\t';
}

/* ---- quoted scalars */

static void put_code_point(buf *out, uint32_t code)
{
    if (code < 0x80) {
        buf_char(out, (char)code);
    } else if (code < 0x800) {
        buf_char(out, (char)(0xc0 | code >> 6));
        buf_char(out, (char)(0x80 | (code & 0x3f)));
    } else if (code < 0x10000) {
        buf_char(out, (char)(0xe0 | code >> 12));
        buf_char(out, (char)(0x80 | (code >> 6 & 0x3f)));
        buf_char(out, (char)(0x80 | (code & 0x3f)));
    } else {
        buf_char(out, (char)(0xf0 | code >> 18));
        buf_char(out, (char)(0x80 | (code >> 12 & 0x3f)));
        buf_char(out, (char)(0x80 | (code >> 6 & 0x3f)));
        buf_char(out, (char)(0x80 | (code & 0x3f)));
    }
}

static bool read_hex(bay_str text, size_t at, size_t digits, uint32_t *out)
{
    uint32_t code = 0;
    for (size_t i = 0; i < digits; i++) {
        char c = at + i < text.len ? text.at[at + i] : ' ';
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16) {
            return false;
        }
        code = code << 4 | digit;
    }
    *out = code;
    return code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

/* One escape behind the backslash at `at`; returns how many bytes it has, 0 for none we know. */
static size_t read_escape(bay_str text, size_t at, buf *out)
{
    static const char from[] = "0abtnvfre \"/\\";
    static const char to[] = "\0\a\b\t\n\v\f\r\033 \"/\\";
    char c = at + 1 < text.len ? text.at[at + 1] : '\0';
    const char *known = c != '\0' ? memchr(from, c, sizeof(from) - 1) : NULL;
    if (known != NULL) {
        buf_char(out, to[known - from]);
        return 2;
    }
    size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    uint32_t code = 0;
    if (digits == 0 || !read_hex(text, at + 2, digits, &code)) {
        return 0;
    }
    put_code_point(out, code);
    return 2 + digits;
}

static bool front_matter_keep(reader *self, buf *text, bay_str *out)
{
    bay_err err = text->err == BAY_OK ? arena_dup(self->memory, buf_view(text), out) : text->err;
    buf_fini(text);
    return err == BAY_OK || front_matter_fail(self, err, "no memory");
}

/* `text` begins with a quote. *out_end: behind the closing one. */
static bool read_quoted(reader *self, bay_str text, bay_str *out, size_t *out_end)
{
    char quote = text.at[0];
    buf decoded;
    buf_init(&decoded, MATTER_MAX_BYTES);
    size_t i = 1;
    while (i < text.len) {
        if (text.at[i] == quote && quote == '\'' && i + 1 < text.len && text.at[i + 1] == quote) {
            buf_char(&decoded, quote);
            i += 2;
        } else if (text.at[i] == quote) {
            *out_end = i + 1;
            return front_matter_keep(self, &decoded, out);
        } else if (text.at[i] == '\\' && quote == '"') {
            size_t len = read_escape(text, i, &decoded);
            if (len == 0) {
                break;
            }
            i += len;
        } else {
            buf_char(&decoded, text.at[i++]);
        }
    }
    buf_fini(&decoded);
    return front_matter_fail(self, BAY_ERR_UNSUPPORTED,
                             "a quoted text has an unknown escape, or does not end on its line");
}

/* ---- flow: [a, "b"] and {k: v}, on one line */

static matter *read_flow(reader *self, bay_str text, size_t *at);

static void skip_spaces(bay_str text, size_t *at)
{
    while (*at < text.len && (text.at[*at] == ' ' || text.at[*at] == '\t')) {
        (*at)++;
    }
}

static bay_str flow_plain(bay_str text, size_t *at)
{
    size_t start = *at;
    while (*at < text.len && memchr(",[]{}", text.at[*at], 5) == NULL &&
           !(text.at[*at] == ':' && (is_space_at(text, *at + 1) || text.at[*at + 1] == ',')) &&
           !(text.at[*at] == '#' && *at > start && text.at[*at - 1] == ' ')) {
        (*at)++;
    }
    return str_trim((bay_str){text.at + start, *at - start});
}

static bool has_indicator(bay_str text)
{
    return text.len > 0 && memchr("&*!%@`|>?\"'", text.at[0], 11) != NULL &&
           (text.at[0] != '?' || is_space_at(text, 1));
}

static matter *flow_scalar(reader *self, bay_str text, size_t *at)
{
    matter *node = new_node(self, MATTER_PLAIN);
    if (node == NULL) {
        return NULL;
    }
    if (*at < text.len && (text.at[*at] == '"' || text.at[*at] == '\'')) {
        size_t end = 0;
        node->kind = MATTER_TEXT;
        if (!read_quoted(self, str_from(text, *at), &node->text, &end)) {
            return NULL;
        }
        *at += end;
        return node;
    }
    node->text = flow_plain(text, at);
    if (has_indicator(node->text)) {
        front_matter_fail(self, BAY_ERR_UNSUPPORTED, "anchors, tags and the like are not read");
        return NULL;
    }
    return node;
}

static bool has_key(const matter *mapping, bay_str key)
{
    return matter_get(mapping, key) != NULL;
}

/* One member of a flow collection. */
static matter *flow_member(reader *self, bay_str text, size_t *at, const matter *in)
{
    matter *node = read_flow(self, text, at);
    if (node == NULL || in->kind == MATTER_SEQUENCE) {
        return node;
    }
    bay_str key = node->text;
    bool is_key = node->kind == MATTER_PLAIN || node->kind == MATTER_TEXT;
    skip_spaces(text, at);
    if (!is_key || *at >= text.len || text.at[*at] != ':') {
        front_matter_fail(self, BAY_ERR_UNSUPPORTED, "a member of {…} without \"key: value\"");
        return NULL;
    }
    if (has_key(in, key)) {
        front_matter_fail(self, BAY_ERR_DUPLICATE, "a key stands twice");
        return NULL;
    }
    (*at)++;
    node = read_flow(self, text, at);
    if (node != NULL) {
        node->key = key;
    }
    return node;
}

static matter *read_flow(reader *self, bay_str text, size_t *at)
{
    skip_spaces(text, at);
    char open = *at < text.len ? text.at[*at] : '\0';
    if (open != '[' && open != '{') {
        return flow_scalar(self, text, at);
    }
    matter *node = new_node(self, open == '[' ? MATTER_SEQUENCE : MATTER_MAPPING);
    if (node == NULL || ++self->depth > MATTER_MAX_DEPTH) {
        front_matter_fail(self, BAY_ERR_DEPTH, "nested too deeply");
        return NULL;
    }
    char close = open == '[' ? ']' : '}';
    matter **last = &node->first;
    (*at)++;
    for (skip_spaces(text, at); *at < text.len && text.at[*at] != close; skip_spaces(text, at)) {
        matter *member = flow_member(self, text, at, node);
        if (member == NULL) {
            return NULL;
        }
        *last = member;
        last = &member->next;
        skip_spaces(text, at);
        if (*at < text.len && text.at[*at] == ',') {
            (*at)++;
        } else if (*at >= text.len || text.at[*at] != close) {
            break;
        }
    }
    self->depth--;
    if (*at >= text.len || text.at[*at] != close) {
        front_matter_fail(self, BAY_ERR_UNSUPPORTED, "[…] or {…} does not end on its line");
        return NULL;
    }
    (*at)++;
    return node;
}

/* ---- block scalars: | and > */

static void put_lines(buf *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf_char(out, '\n');
    }
}

/* What stands between two lines: as it is, or folded to a space. */
static void join_lines(buf *out, bool is_folded, size_t blanks, bool is_indented)
{
    if (!is_folded || is_indented) {
        put_lines(out, blanks + 1);
    } else if (blanks == 0) {
        buf_char(out, ' ');
    } else {
        put_lines(out, blanks);
    }
}

/* `header`: "|", ">-" … ; the lines that follow are indented deeper than `parent`. */
static bool read_block_scalar(reader *self, bay_str header, int parent, bay_str *out)
{
    bay_str flags = before_comment(str_from(header, 1));
    bool is_folded = header.at[0] == '>';
    char chomping =
        flags.len == 1 && (flags.at[0] == '-' || flags.at[0] == '+') ? flags.at[0] : ' ';
    if (flags.len > 0 && chomping == ' ') {
        return front_matter_fail(self, BAY_ERR_UNSUPPORTED, "an explicit indentation");
    }
    buf text;
    buf_init(&text, MATTER_MAX_BYTES);
    size_t indent = 0, blanks = 0;
    bool was_indented = false;
    for (; self->at < self->text.len; next_line(self)) {
        bay_str line = line_at(self, self->at);
        size_t own = indent_of(line);
        if (own == line.len && (indent == 0 || own <= indent)) {
            blanks++;
            continue;
        }
        if ((int)own <= parent || own < indent) {
            break;
        }
        bool is_first = indent == 0;
        indent = is_first ? own : indent;
        bool is_indented = own > indent;
        if (is_first) {
            put_lines(&text, blanks);
        } else {
            join_lines(&text, is_folded, blanks, is_indented || was_indented);
        }
        buf_str(&text, str_from(line, indent));
        was_indented = is_indented;
        blanks = 0;
    }
    if (chomping != '-' && text.len > 0) {
        buf_char(&text, '\n');
    }
    if (chomping == '+') {
        put_lines(&text, blanks);
    }
    return front_matter_keep(self, &text, out);
}

/* ---- blocks */

static matter *read_block(reader *self, int parent);

static bool is_key_end(bay_str text, size_t at)
{
    return text.at[at] == ':' && is_space_at(text, at + 1);
}

static bool has_key_end(bay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (is_key_end(text, i)) {
            return true;
        }
    }
    return false;
}

/* A plain scalar goes on over the lines that are indented deeper. */
static bool read_plain(reader *self, bay_str first, int parent, bay_str *out)
{
    buf text;
    buf_init(&text, MATTER_MAX_BYTES);
    buf_str(&text, first);
    size_t blanks = 0;
    for (; self->at < self->text.len; next_line(self)) {
        bay_str line = line_at(self, self->at);
        bay_str rest = before_comment(line);
        bool has_comment = str_trim(line).len > rest.len;
        if (rest.len == 0 && !has_comment) {
            blanks++;
            continue;
        }
        if (rest.len == 0 || (int)indent_of(line) <= parent) {
            break;
        }
        if (has_key_end(rest)) {
            buf_fini(&text);
            return front_matter_fail(self, BAY_ERR_UNSUPPORTED,
                                     "\": \" in a plain text is not read");
        }
        join_lines(&text, true, blanks, false);
        buf_str(&text, rest);
        blanks = 0;
    }
    return front_matter_keep(self, &text, out);
}

/* What stands behind "key:" or "-" on its line; the line has been passed. */
static matter *read_inline(reader *self, bay_str rest, int parent)
{
    rest = str_trim(rest);
    if (is_blank(rest)) {
        return read_block(self, parent);
    }
    char c = rest.at[0];
    if (c == '"' || c == '\'' || c == '[' || c == '{') {
        size_t end = 0;
        matter *node = read_flow(self, rest, &end);
        if (node != NULL && !is_blank(str_from(rest, end))) {
            front_matter_fail(self, BAY_ERR_UNSUPPORTED, "something behind a value");
            return NULL;
        }
        return node;
    }
    matter *node = new_node(self, c == '|' || c == '>' ? MATTER_TEXT : MATTER_PLAIN);
    if (node == NULL) {
        return NULL;
    }
    if (node->kind == MATTER_TEXT) {
        return read_block_scalar(self, rest, parent, &node->text) ? node : NULL;
    }
    bay_str plain = before_comment(rest);
    if (has_indicator(rest) || has_key_end(plain)) {
        front_matter_fail(self, BAY_ERR_UNSUPPORTED,
                          "anchors, tags, and \": \" in a plain text are not read");
        return NULL;
    }
    bool is_cut = plain.len < rest.len; /* a comment ends it */
    if (is_cut) {
        node->text = plain;
        return node;
    }
    return read_plain(self, plain, parent, &node->text) ? node : NULL;
}

/* "key: rest" at the beginning of `text`. */
static bool read_key(reader *self, bay_str text, bay_str *out_key, bay_str *out_rest)
{
    size_t end = 0;
    if (text.at[0] == '"' || text.at[0] == '\'') {
        if (!read_quoted(self, text, out_key, &end)) {
            return false;
        }
    } else {
        while (end < text.len && !is_key_end(text, end)) {
            end++;
        }
        *out_key = str_trim(str_head(text, end));
    }
    if (end >= text.len || !is_key_end(text, end) || out_key->len == 0 || has_indicator(*out_key)) {
        return text.at[0] == '"' || !has_indicator(text)
                   ? front_matter_fail(self, BAY_ERR_SYNTAX, "\"key: value\" was expected")
                   : front_matter_fail(self, BAY_ERR_UNSUPPORTED,
                                       "anchors, tags and complex keys are not read");
    }
    *out_rest = str_from(text, end + 1);
    return true;
}

static bool is_item(bay_str line, size_t indent)
{
    return indent < line.len && line.at[indent] == '-' && is_space_at(line, indent + 1);
}

/* All members at one indentation. */
static matter *read_members(reader *self, size_t indent, bool is_sequence)
{
    matter *node = new_node(self, is_sequence ? MATTER_SEQUENCE : MATTER_MAPPING);
    matter **last = node != NULL ? &node->first : NULL;
    bay_str line;
    size_t own;
    while (node != NULL && find_line(self, &line, &own) && own == indent &&
           is_item(line, own) == is_sequence) {
        bay_str key = {0}, rest = str_from(line, indent + 1);
        if (!is_sequence && !read_key(self, str_from(line, indent), &key, &rest)) {
            return NULL;
        }
        if (is_sequence && has_key_end(before_comment(rest)) &&
            memchr("\"'[{", str_trim(rest).at[0], 4) == NULL) {
            front_matter_fail(self, BAY_ERR_UNSUPPORTED,
                              "mappings in a sequence are read as {…} only");
            return NULL;
        }
        if (!is_sequence && has_key(node, key)) {
            front_matter_fail(self, BAY_ERR_DUPLICATE, "a key stands twice");
            return NULL;
        }
        next_line(self);
        matter *member = read_inline(self, rest, (int)indent);
        if (member == NULL) {
            return NULL;
        }
        member->key = key;
        *last = member;
        last = &member->next;
    }
    if (self->err == BAY_OK && find_line(self, &line, &own) && own > indent) {
        front_matter_fail(self, BAY_ERR_SYNTAX, "indented deeper than what it belongs to");
    }
    return self->err == BAY_OK ? node : NULL;
}

/* The value on the lines below, indented deeper than `parent` (a sequence: or equally); an empty
 * plain scalar when there is none. */
static matter *read_block(reader *self, int parent)
{
    bay_str line;
    size_t indent = 0;
    bool has_line = find_line(self, &line, &indent);
    if (self->err != BAY_OK) {
        return NULL;
    }
    bool is_sequence = has_line && is_item(line, indent);
    if (!has_line || (int)indent < parent || ((int)indent == parent && !is_sequence)) {
        return new_node(self, MATTER_PLAIN);
    }
    if (++self->depth > MATTER_MAX_DEPTH) {
        front_matter_fail(self, BAY_ERR_DEPTH, "nested too deeply");
        return NULL;
    }
    matter *node = NULL;
    if (is_sequence || has_key_end(line)) {
        node = read_members(self, indent, is_sequence);
    } else {
        next_line(self);
        node = read_inline(self, line, parent);
    }
    self->depth--;
    return node;
}

/* The lines between the first "---" and the next. */
static bay_err find_matter(bay_str file, bay_str *out, bay_diag *diag)
{
    size_t start = str_find(file, '\n') + 1;
    bay_str first = str_trim(str_head(file, start > file.len ? file.len : start - 1));
    if (first.len > 0 && first.at[first.len - 1] == '\r') {
        first.len--;
    }
    if (!str_eq(first, STR("---"))) {
        return diag_at(diag, BAY_ERR_SYNTAX, 0, "the file does not begin with front matter (---)");
    }
    for (size_t at = start; at < file.len;) {
        bay_str rest = str_from(file, at);
        bay_str line = str_head(rest, str_find(rest, '\n'));
        bay_str mark =
            line.len > 0 && line.at[line.len - 1] == '\r' ? str_head(line, line.len - 1) : line;
        if (str_eq(str_trim(mark), STR("---")) && indent_of(mark) == 0) {
            *out = (bay_str){file.at + start, at - start};
            return out->len <= MATTER_MAX_BYTES
                       ? BAY_OK
                       : diag_at(diag, BAY_ERR_LIMIT, start, "the front matter is too long");
        }
        at += line.len + 1;
    }
    return diag_at(diag, BAY_ERR_SYNTAX, file.len, "the front matter does not end (---)");
}

bay_err matter_read(bay_str file, arena *memory, const matter **out, bay_diag *diag)
{
    bay_str text;
    bay_err err = find_matter(file, &text, diag);
    if (err != BAY_OK) {
        return err;
    }
    reader self = {
        .text = text, .memory = memory, .diag = diag, .base = (size_t)(text.at - file.at)};
    bay_str line;
    size_t indent = 0;
    matter *root = find_line(&self, &line, &indent) ? read_members(&self, indent, false) : NULL;
    if (root != NULL && (self.at < text.len || root->first == NULL)) {
        front_matter_fail(&self, BAY_ERR_SYNTAX, "\"key: value\" was expected");
    }
    if (self.err == BAY_OK && root == NULL) {
        front_matter_fail(&self, BAY_ERR_SYNTAX, "it is empty");
    }
    if (self.err == BAY_OK) {
        *out = root;
    }
    return self.err;
}

const matter *matter_get(const matter *self, bay_str key)
{
    const matter *member = self != NULL && self->kind == MATTER_MAPPING ? self->first : NULL;
    while (member != NULL && !str_eq(member->key, key)) {
        member = member->next;
    }
    return member;
}

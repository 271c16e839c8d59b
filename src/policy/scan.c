/* The walk over a definition, and its report. */
#include "policy/scan.h"

#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/shown.h"
#include "policy/scan_internal.h"

enum {
    MEMORY_BYTES = 4 << 20,
    DECODED_BYTES = 128 << 10,
    HIDDEN_BYTES = 16 << 10,
    LARGE_BYTES = 128 << 10, /* a definition of more is a finding */
};

const scan_rule_row scan_rules[SCAN_RULES] = {
#define SCAN_RULE(symbol, id, tier, severity, why, remedy)                                         \
    [SCAN_##symbol] = {id, SCAN_##tier, SCAN_##severity, why, remedy},
#include "policy/scan_rules.def"
};

const char *scan_tier_text(scan_tier tier)
{
    static const char *const texts[] = {
        [SCAN_STRUCTURE] = "structure", [SCAN_WORDS] = "words", [SCAN_RELATION] = "relation"};
    return texts[tier];
}

const char *scan_severity_text(scan_severity severity)
{
    static const char *const texts[] = {
        [SCAN_NOTE] = "note", [SCAN_WARNING] = "warning", [SCAN_ERROR] = "error"};
    return texts[severity];
}

bay_err scanner_new(scanner **out)
{
    scanner *self = mem_zalloc(sizeof(*self));
    bay_err err = self != NULL ? scan_lexicon_get(&self->lexicon) : BAY_ERR_NOMEM;
    if (err != BAY_OK) {
        mem_free(self);
        return err;
    }
    buf_init(&self->decoded, DECODED_BYTES);
    buf_init(&self->hidden, HIDDEN_BYTES);
    arena_init(&self->memory, MEMORY_BYTES);
    scan_patterns_index(self->patterns_of);
    *out = self;
    return BAY_OK;
}

void scanner_free(scanner *self)
{
    if (self != NULL) {
        buf_fini(&self->decoded);
        buf_fini(&self->hidden);
        arena_fini(&self->memory);
        mem_free(self);
    }
}

void scanner_set_rules(scanner *self, const scan_rule_set *rules)
{
    self->rules = rules;
}

/* ---- where ----------------------------------------------------------------------------------- */

static void pointer_put(scanner *self, bay_str text)
{
    size_t room = sizeof(self->pointer) - 1 - self->pointer_len;
    size_t len = text.len < room ? text.len : room;
    memcpy(self->pointer + self->pointer_len, text.at, len);
    self->pointer_len += len;
}

size_t scan_pointer_enter(scanner *self, bay_str key)
{
    size_t before = self->pointer_len;
    pointer_put(self, STR("/"));
    for (size_t i = 0; i < key.len; i++) {
        bool is_escaped = key.at[i] == '~' || key.at[i] == '/';
        pointer_put(self, is_escaped ? (key.at[i] == '~' ? STR("~0") : STR("~1"))
                                     : (bay_str){key.at + i, 1});
    }
    return before;
}

size_t scan_pointer_enter_index(scanner *self, size_t index)
{
    char text[24];
    size_t before = self->pointer_len;
    int len = snprintf(text, sizeof(text), "/%zu", index);
    pointer_put(self, (bay_str){text, (size_t)len});
    return before;
}

void scan_pointer_leave(scanner *self, size_t before)
{
    self->pointer_len = before;
}

/* ---- findings -------------------------------------------------------------------------------- */

static void excerpt_of(bay_str bytes, char out[SCAN_EXCERPT_BYTES])
{
    shown_copy(out, SCAN_EXCERPT_BYTES, shown_whole(bytes), SHOWN_LINE);
}

static scan_finding *report_place(scanner *self, scan_rule rule, scan_severity severity)
{
    scan_report *out = self->out;
    out->total++;
    out->worst = severity > out->worst ? severity : out->worst;
    if (out->count >= SCAN_FINDINGS) {
        return NULL;
    }
    scan_finding *made = &out->findings[out->count++];
    *made = (scan_finding){.rule = rule, .severity = severity};
    bay_str pointer = {self->pointer, self->pointer_len};
    (void)snprintf(made->id, sizeof(made->id), "%s", scan_rules[rule].id);
    (void)snprintf(made->why, sizeof(made->why), "%s", scan_rules[rule].why);
    shown_copy(made->pointer, sizeof(made->pointer), shown_whole(pointer), SHOWN_LINE);
    return made;
}

static scan_finding *report_text(scanner *self, const scan_text *text, scan_rule rule,
                                 scan_severity severity, size_t start, size_t end)
{
    scan_finding *made = report_place(self, rule, severity);
    if (made != NULL) {
        end = end < text->bytes.len ? end : text->bytes.len;
        start = start < end ? start : end;
        made->start = start;
        made->len = end - start;
        made->encoding = text->encoding;
        excerpt_of(str_head(str_from(text->bytes, start), end - start), made->excerpt);
    }
    return made;
}

void scan_report_add(scanner *self, scan_text *text, scan_rule rule, size_t start, size_t end)
{
    if ((text->found >> rule & 1) != 0) {
        return; /* once a text */
    }
    text->found |= (uint64_t)1 << rule;
    (void)report_text(self, text, rule, scan_rules[rule].severity, start, end);
}

void scan_report_user(scanner *self, scan_text *text, const scan_user_rule *rule, size_t start,
                      size_t end)
{
    scan_finding *made = report_text(self, text, SCAN_USER, rule->severity, start, end);
    if (made != NULL) {
        (void)snprintf(made->id, sizeof(made->id), "%s", rule->id);
        (void)snprintf(made->why, sizeof(made->why), "%s", rule->why);
    }
}

void scan_report_place(scanner *self, scan_rule rule, bay_str excerpt)
{
    scan_finding *made = report_place(self, rule, scan_rules[rule].severity);
    if (made != NULL) {
        excerpt_of(excerpt, made->excerpt);
    }
}

/* ---- the walk -------------------------------------------------------------------------------- */

static bool is_one_of(bay_str key, const bay_str *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(key, words[i])) {
            return true;
        }
    }
    return false;
}

static scan_role role_of(bay_str key, scan_role above)
{
    static const bay_str values[] = {
        STR_INIT("default"),  STR_INIT("enum"),     STR_INIT("const"),
        STR_INIT("pattern"),  STR_INIT("format"),   STR_INIT("type"),
        STR_INIT("required"), STR_INIT("mimeType"), STR_INIT("version")};
    static const bay_str addresses[] = {STR_INIT("uri"),
                                        STR_INIT("uriTemplate"),
                                        STR_INIT("src"),
                                        STR_INIT("url"),
                                        STR_INIT("href"),
                                        STR_INIT("iconUrl"),
                                        STR_INIT("websiteUrl"),
                                        STR_INIT("$ref"),
                                        STR_INIT("$id"),
                                        STR_INIT("$schema"),
                                        STR_INIT("documentationUrl")};
    if (is_one_of(key, values, ARRAY_LEN(values))) {
        return SCAN_IN_VALUE;
    }
    if (is_one_of(key, addresses, ARRAY_LEN(addresses))) {
        return SCAN_IN_URI;
    }
    return str_eq(key, STR("name")) ? SCAN_IN_NAME : above;
}

/* The bytes [start, end) of a string as it is written. */
static bay_err scan_part(scanner *self, json_val value, scan_role role, size_t start, size_t end)
{
    bay_str text;
    size_t known = self->out->count;
    bay_err err = json_str_part(value, start, end - start, &self->memory, &text);
    if (err == BAY_ERR_TYPE || err == BAY_ERR_UTF8) { /* an escape that is no character */
        text = str_head(str_from(json_raw(value), start + 1), end - start);
        scan_report_place(self, SCAN_SURROGATE, text);
        err = BAY_OK;
    }
    if (err != BAY_OK) {
        self->out->is_cut = true;
        return err == BAY_ERR_LIMIT ? BAY_OK : err;
    }
    scan_text_run(self, text, role);
    for (size_t i = known; i < self->out->count; i++) {
        self->out->findings[i].start += start;
    }
    return BAY_OK;
}

static bay_err scan_string(scanner *self, json_val value, scan_role role)
{
    size_t len = json_raw(value).len - 2; /* its quotes */
    size_t from = self->passed;
    size_t head = from < self->head ? self->head - from : 0;
    size_t tail = from < self->tail ? self->tail - from : 0;
    self->passed += len;
    if (head >= len || tail == 0) {
        return scan_part(self, value, role, 0, len);
    }
    bay_err err = head > 0 ? scan_part(self, value, role, 0, head) : BAY_OK;
    return err == BAY_OK && tail < len ? scan_part(self, value, role, tail, len) : err;
}

static bay_err scan_value(scanner *self, json_val value, scan_role role, unsigned depth);

static bay_err scan_object(scanner *self, json_val object, unsigned depth)
{
    json_iter iter = json_iter_of(object);
    bay_err err = BAY_OK;
    while (err == BAY_OK && json_next(&iter)) {
        bay_str key;
        bay_str plain;
        bay_str place = {self->pointer, self->pointer_len};
        err = json_str_part(iter.key, 0, SCAN_POINTER_BYTES, &self->memory, &key);
        if (err == BAY_ERR_UTF8) {
            key = json_raw(iter.key); /* scan_string reports it */
        } else if (err != BAY_OK) {
            self->out->is_cut = true;
            return err == BAY_ERR_NOMEM ? err : BAY_OK;
        }
        if (self->kind == SCAN_CONTENT && scan_content_is_file(place, key, iter.value)) {
            continue;
        }
        size_t before = scan_pointer_enter(self, key);
        err = BAY_OK;
        if (key.len > SCAN_LONG_KEY_BYTES || !json_str_plain(iter.key, &plain)) {
            err = scan_string(self, iter.key, SCAN_IN_NAME);
        }
        /* a schema below "properties/type" is no value */
        bool is_schema = json_is(iter.value, JSON_OBJECT);
        scan_role inner =
            self->kind == SCAN_CONTENT || is_schema ? SCAN_IN_TEXT : role_of(key, SCAN_IN_TEXT);
        err = err == BAY_OK ? scan_value(self, iter.value, inner, depth + 1) : err;
        scan_pointer_leave(self, before);
    }
    return err;
}

static bay_err scan_value(scanner *self, json_val value, scan_role role, unsigned depth)
{
    bay_err err = BAY_OK;
    if (self->left == 0 || (self->kind == SCAN_CONTENT && scan_is_suspicious(self->out))) {
        self->out->is_cut = self->out->is_cut || self->left == 0;
        return BAY_OK;
    }
    switch (json_kind_of(value)) {
    case JSON_STRING:
        return scan_string(self, value, role);
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    default:
        return BAY_OK;
    }
    if (depth >= SCAN_DEPTH) {
        scan_report_place(self, SCAN_DEEP, (bay_str){"", 0});
        self->out->is_cut = true;
        return BAY_OK;
    }
    if (json_is(value, JSON_OBJECT)) {
        return scan_object(self, value, depth);
    }
    json_iter iter = json_iter_of(value);
    for (size_t i = 0; err == BAY_OK && json_next(&iter); i++) {
        size_t before = scan_pointer_enter_index(self, i);
        err = scan_value(self, iter.value, role, depth + 1);
        scan_pointer_leave(self, before);
    }
    return err;
}

static void begin(scanner *self, scan_kind kind, const scan_names *names, scan_report *out)
{
    out->count = out->total = 0;
    out->worst = SCAN_NOTE;
    out->is_cut = false;
    self->out = out;
    self->kind = kind;
    self->names = names;
    self->pointer_len = 0;
    self->left = SCAN_BYTES;
    self->passed = 0;
    self->head = SIZE_MAX;
    self->tail = 0;
    arena_reset(&self->memory);
    if (self->place > UINT32_MAX / 2) { /* begins anew, long before places repeat */
        self->place = self->denied_place = 0;
        memset(self->last, 0, sizeof(self->last));
        memset(self->user_last, 0, sizeof(self->user_last));
    }
}

bay_err scan_definition(scanner *self, scan_kind kind, json_val definition, const scan_names *names,
                        scan_report *out)
{
    begin(self, kind, names, out);
    bay_err err = scan_value(self, definition, SCAN_IN_TEXT, 0);
    if (err == BAY_OK && kind == SCAN_TOOL) {
        scan_schema_run(self, definition);
    }
    if (err != BAY_OK) {
        out->is_cut = true;
    }
    if (out->is_cut || (kind != SCAN_CONTENT && json_raw(definition).len > LARGE_BYTES)) {
        scan_report_place(self, SCAN_OVERSIZE, (bay_str){"", 0});
    }
    return err;
}

bool scan_content(scanner *self, json_val content, scan_report *out)
{
    scan_report own;
    begin(self, SCAN_CONTENT, NULL, out != NULL ? out : &own);
    size_t bytes = json_raw(content).len; /* of its texts alone where that matters */
    bytes = bytes > SCAN_RESULT_BYTES ? scan_content_bytes(content) : bytes;
    if (bytes > SCAN_RESULT_BYTES) {
        self->head = SCAN_RESULT_BYTES / 2;
        self->tail = bytes - SCAN_RESULT_BYTES / 2;
        self->out->is_cut = true;
    }
    if (scan_value(self, content, SCAN_IN_TEXT, 0) != BAY_OK) {
        self->out->is_cut = true;
    }
    return scan_is_suspicious(self->out);
}

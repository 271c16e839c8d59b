#include "trust/lint.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/map.h"
#include "base/str.h"
#include "wire/chars.h"
#include "wire/uri.h"

enum { DEPTH = 32, POINTER_BYTES = 1024, WORDS_LEAST = 3, MEMORY_BYTES = 64 << 20 };

const lint_rule_row lint_rules[LINT_RULES] = {
#define LINT_RULE(symbol, id, severity, why, remedy)                                               \
    [LINT_##symbol] = {id, SCAN_##severity, why, remedy},
#include "trust/lint_rules.def"
};

typedef struct lint_walk {
    trust_findings *out;
    const trust_definitions *of;
    trust_silences *silences;
    const trust_item *item;
    arena memory; /* texts of one item */
    char pointer_bytes[POINTER_BYTES];
    buf pointer;
    map descriptions; /* of the tools and prompts before */
    bay_err err;
} lint_walk;

static void lint_note(lint_walk *self, lint_rule rule, bay_str excerpt)
{
    trust_finding found = {
        .source = TRUST_BY_LINT,
        .severity = lint_rules[rule].severity,
        .rule = str_of(lint_rules[rule].id),
        .server = self->of->server,
        .kind = self->item->kind,
        .item = self->item->name,
        .pointer = buf_view(&self->pointer),
        .excerpt = excerpt,
        .why = str_of(lint_rules[rule].why),
        .remedy = str_of(lint_rules[rule].remedy),
    };
    if (self->err == BAY_OK) {
        self->err = trust_findings_add(self->out, &found, self->silences);
    }
}

/* ---- where ----------------------------------------------------------------------------------- */

/* A pointer that does not fit ends where the room ends. */
static size_t enter(lint_walk *self, bay_str key)
{
    size_t before = self->pointer.len;
    buf_char(&self->pointer, '/');
    for (size_t i = 0; i < key.len; i++) {
        char c = key.at[i];
        buf_str(&self->pointer, c == '~'   ? STR("~0")
                                : c == '/' ? STR("~1")
                                           : (bay_str){&key.at[i], 1});
    }
    return before;
}

static void leave(lint_walk *self, size_t before)
{
    self->pointer.len = before;
    self->pointer.err = BAY_OK;
}

static void note_at(lint_walk *self, lint_rule rule, bay_str key, bay_str excerpt)
{
    size_t before = enter(self, key);
    lint_note(self, rule, excerpt);
    leave(self, before);
}

static bay_str text_of(lint_walk *self, json_val value)
{
    bay_str text = {"", 0};
    bay_err err = json_str(value, &self->memory, &text);
    self->err = err == BAY_ERR_NOMEM ? err : self->err;
    return err == BAY_OK ? text : (bay_str){"", 0};
}

/* ---- names and descriptions ------------------------------------------------------------------ */

/* mcp 2025-11-25 server/tools: 1 to 128 characters of A-Z, a-z, 0-9, _, - and . */
static bool is_name(bay_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        if (!char_is(c, CHAR_ALPHA | CHAR_DIGIT) && c != '_' && c != '-' && c != '.') {
            return false;
        }
    }
    return name.len > 0 && name.len <= LINT_NAME_BYTES;
}

static size_t count_words(bay_str text)
{
    size_t words = 0;
    bool was_blank = true;
    for (size_t i = 0; i < text.len; i++) {
        bool is_blank = strchr(" \t\r\n", text.at[i]) != NULL;
        words += was_blank && !is_blank;
        was_blank = is_blank;
    }
    return words;
}

/* Scripts that write words without blanks between them have more than ASCII. */
static bool is_ascii(bay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.at[i] >= 0x80) {
            return false;
        }
    }
    return true;
}

static void check_description(lint_walk *self, json_val description)
{
    bool is_said = self->item->kind == TRUST_TOOL || self->item->kind == TRUST_PROMPT;
    bay_str text = str_trim(text_of(self, description));
    bay_str key = STR("description");
    if (text.len == 0) {
        if (is_said) {
            note_at(self, LINT_DESCRIPTION_MISSING, key, (bay_str){"", 0});
        }
        return;
    }
    bool is_short = is_ascii(text) && count_words(text) < WORDS_LEAST;
    if (is_said && (is_short || str_eq(text, self->item->name))) {
        note_at(self, LINT_DESCRIPTION_VAGUE, key, (bay_str){"", 0});
    }
    if (json_str_length(description) > LINT_DESCRIPTION_CHARACTERS) {
        note_at(self, LINT_DESCRIPTION_LONG, key, (bay_str){"", 0});
    }
    if (!is_said) {
        return;
    }
    if (map_get(&self->descriptions, text) != NULL) {
        note_at(self, LINT_DESCRIPTION_REPEATED, key, (bay_str){"", 0});
        return;
    }
    bay_str kept;
    bay_err err = arena_dup(&self->out->memory, text, &kept); /* outlives the item's memory */
    err = err == BAY_OK ? map_put(&self->descriptions, kept, self, NULL) : err;
    self->err = err == BAY_OK ? self->err : err;
}

/* ---- schemas --------------------------------------------------------------------------------- */

static bool has_any(json_val object, const bay_str *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!json_is(json_get(object, keys[i]), JSON_MISSING)) {
            return true;
        }
    }
    return false;
}

static bool is_typed(json_val schema)
{
    static const bay_str keys[] = {
        STR_INIT("type"),  STR_INIT("enum"),       STR_INIT("const"), STR_INIT("$ref"),
        STR_INIT("anyOf"), STR_INIT("oneOf"),      STR_INIT("allOf"), STR_INIT("properties"),
        STR_INIT("items"), STR_INIT("$dynamicRef")};
    return !json_is(schema, JSON_OBJECT) || has_any(schema, keys, ARRAY_LEN(keys));
}

static bool is_bounded(json_val schema)
{
    static const bay_str keys[] = {STR_INIT("enum"), STR_INIT("const"), STR_INIT("pattern"),
                                   STR_INIT("$ref")};
    return has_any(schema, keys, ARRAY_LEN(keys));
}

static bool is_text_type(json_val schema)
{
    json_val type = json_get(schema, STR("type"));
    return json_is(type, JSON_MISSING) || json_str_eq(type, STR("string"));
}

static bool is_among(bay_str name, const bay_str *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq_nocase(name, names[i])) {
            return true;
        }
    }
    return false;
}

/* By the name of a parameter: what it hands over to whoever writes the arguments. */
static void check_power(lint_walk *self, bay_str name, json_val schema)
{
    static const bay_str commands[] = {
        STR_INIT("command"),    STR_INIT("cmd"), STR_INIT("shell"), STR_INIT("script"),
        STR_INIT("code"),       STR_INIT("sql"), STR_INIT("bash"),  STR_INIT("python"),
        STR_INIT("expression"), STR_INIT("eval")};
    static const bay_str places[] = {
        STR_INIT("path"),      STR_INIT("file"),   STR_INIT("filename"), STR_INIT("filepath"),
        STR_INIT("file_path"), STR_INIT("url"),    STR_INIT("uri"),      STR_INIT("directory"),
        STR_INIT("dir"),       STR_INIT("folder"), STR_INIT("endpoint"), STR_INIT("webhook")};
    static const bay_str length = STR_INIT("maxLength");
    if (!is_text_type(schema) || is_bounded(schema)) {
        return;
    }
    if (is_among(name, commands, ARRAY_LEN(commands))) {
        lint_note(self, LINT_POWER_COMMAND, name);
    } else if (is_among(name, places, ARRAY_LEN(places)) && !has_any(schema, &length, 1)) {
        lint_note(self, LINT_POWER_PLACE, name);
    }
}

static void check_parameter(lint_walk *self, bay_str name, json_val schema, bool is_input)
{
    static const bay_str texts[] = {STR_INIT("description"), STR_INIT("title"), STR_INIT("$ref"),
                                    STR_INIT("const")};
    if (!is_typed(schema)) {
        lint_note(self, LINT_SCHEMA_LOOSE, (bay_str){"", 0});
    }
    if (is_input && json_is(schema, JSON_OBJECT)) {
        if (!has_any(schema, texts, ARRAY_LEN(texts))) {
            lint_note(self, LINT_PARAMETER_TEXT, name);
        }
        check_power(self, name, schema);
    }
}

static void check_required(lint_walk *self, json_val schema)
{
    json_val properties = json_get(schema, STR("properties"));
    json_iter names = json_iter_of(json_get(schema, STR("required")));
    json_iter members = json_iter_of(properties);
    map known; /* of a server's choice: looked up in one by one, many would take hours */
    if (!json_is(properties, JSON_OBJECT)) {
        return;
    }
    map_init(&known, UINT32_MAX);
    while (self->err == BAY_OK && json_next(&members)) {
        self->err = map_put(&known, text_of(self, members.key), self, NULL);
    }
    while (self->err == BAY_OK && json_next(&names)) {
        bay_str name = text_of(self, names.value);
        if (name.len > 0 && map_get(&known, name) == NULL) {
            note_at(self, LINT_REQUIRED_UNKNOWN, STR("required"), name);
        }
    }
    map_fini(&known);
}

static void check_schema(lint_walk *self, json_val schema, bool is_input, unsigned depth)
{
    if (depth >= DEPTH || !json_is(schema, JSON_OBJECT)) {
        return;
    }
    check_required(self, schema);
    size_t before = enter(self, STR("properties"));
    json_iter properties = json_iter_of(json_get(schema, STR("properties")));
    while (self->err == BAY_OK && json_next(&properties)) {
        bay_str name = text_of(self, properties.key);
        size_t inner = enter(self, name);
        check_parameter(self, name, properties.value, is_input);
        check_schema(self, properties.value, is_input, depth + 1);
        leave(self, inner);
    }
    leave(self, before);
    before = enter(self, STR("items"));
    check_schema(self, json_get(schema, STR("items")), is_input, depth + 1);
    leave(self, before);
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static void check_annotations(lint_walk *self, json_val annotations)
{
    static const bay_str hints[] = {STR_INIT("readOnlyHint"), STR_INIT("destructiveHint"),
                                    STR_INIT("idempotentHint"), STR_INIT("openWorldHint")};
    if (!has_any(annotations, hints, ARRAY_LEN(hints))) {
        note_at(self, LINT_ANNOTATIONS_MISSING, STR("annotations"), (bay_str){"", 0});
        return;
    }
    size_t before = enter(self, STR("annotations"));
    for (size_t i = 0; i < ARRAY_LEN(hints); i++) {
        json_kind kind = json_kind_of(json_get(annotations, hints[i]));
        if (kind != JSON_MISSING && kind != JSON_TRUE && kind != JSON_FALSE) {
            note_at(self, LINT_ANNOTATION_TYPE, hints[i], (bay_str){"", 0});
        }
    }
    leave(self, before);
}

static void check_tool(lint_walk *self, json_val tool)
{
    json_val input = json_get(tool, STR("inputSchema"));
    json_val output = json_get(tool, STR("outputSchema"));
    if (!is_name(self->item->name)) {
        note_at(self, LINT_NAME, STR("name"), (bay_str){"", 0});
    }
    check_description(self, json_get(tool, STR("description")));
    check_annotations(self, json_get(tool, STR("annotations")));
    if (!json_str_eq(json_get(input, STR("type")), STR("object"))) {
        note_at(self, LINT_SCHEMA_MISSING, STR("inputSchema"), (bay_str){"", 0});
    }
    if (json_is(output, JSON_MISSING)) {
        lint_note(self, LINT_OUTPUT_MISSING, (bay_str){"", 0});
    }
    size_t before = enter(self, STR("inputSchema"));
    check_schema(self, input, true, 0);
    leave(self, before);
    before = enter(self, STR("outputSchema"));
    check_schema(self, output, false, 0);
    leave(self, before);
}

static void check_prompt(lint_walk *self, json_val prompt)
{
    static const bay_str texts[] = {STR_INIT("description"), STR_INIT("title")};
    if (!is_name(self->item->name)) {
        note_at(self, LINT_NAME, STR("name"), (bay_str){"", 0});
    }
    check_description(self, json_get(prompt, STR("description")));
    size_t before = enter(self, STR("arguments"));
    json_iter arguments = json_iter_of(json_get(prompt, STR("arguments")));
    for (size_t i = 0; self->err == BAY_OK && json_next(&arguments); i++) {
        char index[24];
        int len = snprintf(index, sizeof(index), "%zu", i);
        if (!has_any(arguments.value, texts, ARRAY_LEN(texts))) {
            note_at(self, LINT_PARAMETER_TEXT, (bay_str){index, (size_t)len},
                    text_of(self, json_get(arguments.value, STR("name"))));
        }
    }
    leave(self, before);
}

static bool is_plain_address(bay_str url)
{
    uri parts;
    return uri_parse(&parts, url) == BAY_OK && str_eq_nocase(parts.scheme, STR("http")) &&
           !str_eq_nocase(parts.host, STR("localhost")) && !str_starts(parts.host, STR("127.")) &&
           !str_eq(parts.host, STR("::1"));
}

static void check_card(lint_walk *self, json_val card)
{
    static const bay_str schemes[] = {STR_INIT("securitySchemes"), STR_INIT("authentication")};
    static const bay_str lists[] = {STR_INIT("supportedInterfaces"),
                                    STR_INIT("additionalInterfaces")};
    bay_str url = text_of(self, json_get(card, STR("url")));
    if (json_count(json_get(card, STR("skills"))) == 0) {
        note_at(self, LINT_CARD_SKILLS, STR("skills"), (bay_str){"", 0});
    }
    if (!has_any(card, schemes, ARRAY_LEN(schemes))) {
        note_at(self, LINT_CARD_OPEN, STR("securitySchemes"), (bay_str){"", 0});
    }
    if (is_plain_address(url)) {
        note_at(self, LINT_CARD_PLAIN, STR("url"), url);
    }
    for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
        size_t before = enter(self, lists[k]);
        json_iter at = json_iter_of(json_get(card, lists[k]));
        while (self->err == BAY_OK && json_next(&at)) {
            url = text_of(self, json_get(at.value, STR("url")));
            if (is_plain_address(url)) {
                lint_note(self, LINT_CARD_PLAIN, url);
            }
        }
        leave(self, before);
    }
}

static void check_item(lint_walk *self)
{
    json_val value = self->item->value;
    switch (self->item->kind) {
    case TRUST_TOOL:
        check_tool(self, value);
        break;
    case TRUST_PROMPT:
        check_prompt(self, value);
        break;
    case TRUST_RESOURCE:
    case TRUST_TEMPLATE:
        check_description(self, json_get(value, STR("description")));
        break;
    case TRUST_CARD:
        check_card(self, value);
        break;
    default:
        break;
    }
}

bay_err trust_lint_run(trust_findings *out, const trust_definitions *of, trust_silences *silences)
{
    lint_walk self = {.out = out, .of = of, .silences = silences};
    arena_init(&self.memory, MEMORY_BYTES);
    map_init(&self.descriptions, TRUST_ITEMS);
    self.pointer = (buf){.at = self.pointer_bytes, .cap = POINTER_BYTES, .max = POINTER_BYTES};
    for (size_t i = 0; self.err == BAY_OK && i < of->count; i++) {
        self.item = &of->items[i];
        check_item(&self);
        arena_reset(&self.memory);
    }
    map_fini(&self.descriptions);
    arena_fini(&self.memory);
    return self.err;
}

static bay_err add_budget(trust_findings *out, bay_str server, lint_rule rule, size_t count,
                          trust_silences *silences)
{
    char excerpt[40];
    int len = snprintf(excerpt, sizeof(excerpt), "%zu", count);
    trust_finding found = {
        .source = TRUST_BY_LINT,
        .severity = lint_rules[rule].severity,
        .rule = str_of(lint_rules[rule].id),
        .server = server,
        .kind = TRUST_KINDS,
        .item = {"", 0},
        .pointer = {"", 0},
        .excerpt = {excerpt, (size_t)len},
        .why = str_of(lint_rules[rule].why),
        .remedy = str_of(lint_rules[rule].remedy),
    };
    return trust_findings_add(out, &found, silences);
}

bay_err trust_lint_budget(trust_findings *out, bay_str server, size_t tools, size_t tokens,
                          trust_silences *silences)
{
    bay_err err = BAY_OK;
    if (tools > LINT_TOOLS) {
        err = add_budget(out, server, LINT_BUDGET_TOOLS, tools, silences);
    }
    if (err == BAY_OK && tokens > LINT_TOKENS) {
        err = add_budget(out, server, LINT_BUDGET_TOKENS, tokens, silences);
    }
    return err;
}

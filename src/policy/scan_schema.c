/* What a tool's annotations, name and schema say together. */
#include "policy/scan_internal.h"
#include "wire/chars.h"

enum { KEY_BYTES = 64, SCHEMA_DEPTH = 64 };

typedef struct verbs {
    const bay_str *words;
    size_t count;
} verbs;

static const bay_str changing[] = {
    STR_INIT("delete"),   STR_INIT("remove"),    STR_INIT("drop"),    STR_INIT("erase"),
    STR_INIT("wipe"),     STR_INIT("purge"),     STR_INIT("destroy"), STR_INIT("overwrite"),
    STR_INIT("write"),    STR_INIT("truncate"),  STR_INIT("upload"),  STR_INIT("send"),
    STR_INIT("install"),  STR_INIT("uninstall"), STR_INIT("kill"),    STR_INIT("terminate"),
    STR_INIT("shutdown"), STR_INIT("transfer"),  STR_INIT("pay"),     STR_INIT("deploy"),
    STR_INIT("move"),     STR_INIT("rename"),    STR_INIT("format"),  STR_INIT("reset"),
    STR_INIT("revoke"),   STR_INIT("rm"),        STR_INIT("update"),  STR_INIT("edit"),
    STR_INIT("modify"),   STR_INIT("insert"),    STR_INIT("post"),    STR_INIT("publish"),
    STR_INIT("unlink"),   STR_INIT("patch"),
};

static const bay_str reaching[] = {
    STR_INIT("fetch"), STR_INIT("browse"), STR_INIT("navigate"), STR_INIT("download"),
    STR_INIT("crawl"), STR_INIT("scrape"), STR_INIT("http"),     STR_INIT("request"),
    STR_INIT("visit"), STR_INIT("web"),    STR_INIT("curl"),
};

static const bay_str destroying[] = {
    STR_INIT("delete"), STR_INIT("drop"),    STR_INIT("erase"),     STR_INIT("wipe"),
    STR_INIT("purge"),  STR_INIT("destroy"), STR_INIT("overwrite"), STR_INIT("truncate"),
    STR_INIT("kill"),   STR_INIT("rm"),
};

/* The word at the front of a name or a sentence, small: delete_file, deleteFile, "Deletes a file". */
static bay_str first_word(bay_str text, char out[KEY_BYTES])
{
    size_t len = 0;
    while (text.len > 0 && !char_is(text.at[0], CHAR_ALPHA)) {
        text = str_from(text, 1);
    }
    for (size_t i = 0; i < text.len && i < KEY_BYTES; i++) {
        char c = text.at[i];
        bool is_capital = c >= 'A' && c <= 'Z';
        bool was_small = i > 0 && text.at[i - 1] >= 'a' && text.at[i - 1] <= 'z';
        if (!char_is(c, CHAR_ALPHA) || (is_capital && was_small)) {
            break;
        }
        out[len++] = char_lower(c);
    }
    return (bay_str){out, len};
}

static bool is_verb(bay_str word, const bay_str *list, size_t count, bool is_sentence)
{
    for (size_t i = 0; i < count; i++) {
        bool is_inflected = is_sentence && word.len == list[i].len + 1 &&
                            word.at[word.len - 1] == 's' && str_starts(word, list[i]);
        if (str_eq(word, list[i]) || is_inflected) {
            return true;
        }
    }
    return false;
}

static bool is_hint(json_val annotations, bay_str key, json_kind value)
{
    return json_is(json_get(annotations, key), value);
}

static bool begins_with_verb(json_val text, arena *memory, const bay_str *list, size_t count,
                             bool is_sentence)
{
    bay_str plain;
    char word[KEY_BYTES];
    return json_str(text, memory, &plain) == BAY_OK &&
           is_verb(first_word(plain, word), list, count, is_sentence);
}

/* A parameter that names where to go. */
static bool has_address_parameter(json_val properties)
{
    json_iter iter = json_iter_of(properties);
    while (json_next(&iter)) {
        bool is_named = json_str_eq(iter.key, STR("url")) || json_str_eq(iter.key, STR("uri")) ||
                        json_str_eq(iter.key, STR("webhook")) ||
                        json_str_eq(iter.key, STR("webhook_url"));
        bool is_format = json_str_eq(json_get(iter.value, STR("format")), STR("uri")) ||
                         json_str_eq(json_get(iter.value, STR("format")), STR("url"));
        if (is_named || is_format) {
            return true;
        }
    }
    return false;
}

static void check_annotations(scanner *self, json_val tool)
{
    json_val annotations = json_get(tool, STR("annotations"));
    json_val name = json_get(tool, STR("name"));
    json_val description = json_get(tool, STR("description"));
    if (!json_is(annotations, JSON_OBJECT)) {
        return;
    }
    size_t before = scan_pointer_enter(self, STR("annotations"));
    bool is_read_only = is_hint(annotations, STR("readOnlyHint"), JSON_TRUE);
    if (is_read_only &&
        (begins_with_verb(name, &self->memory, changing, ARRAY_LEN(changing), false) ||
         begins_with_verb(description, &self->memory, destroying, ARRAY_LEN(destroying), true) ||
         is_hint(annotations, STR("destructiveHint"), JSON_TRUE))) {
        size_t inner = scan_pointer_enter(self, STR("readOnlyHint"));
        scan_report_place(self, SCAN_READ_ONLY, json_raw(name));
        scan_pointer_leave(self, inner);
    }
    if (is_hint(annotations, STR("destructiveHint"), JSON_FALSE) && !is_read_only &&
        (begins_with_verb(name, &self->memory, destroying, ARRAY_LEN(destroying), false) ||
         begins_with_verb(description, &self->memory, destroying, ARRAY_LEN(destroying), true))) {
        size_t inner = scan_pointer_enter(self, STR("destructiveHint"));
        scan_report_place(self, SCAN_HARMLESS, json_raw(name));
        scan_pointer_leave(self, inner);
    }
    if (is_hint(annotations, STR("openWorldHint"), JSON_FALSE) &&
        begins_with_verb(name, &self->memory, reaching, ARRAY_LEN(reaching), false) &&
        has_address_parameter(json_get(json_get(tool, STR("inputSchema")), STR("properties")))) {
        size_t inner = scan_pointer_enter(self, STR("openWorldHint"));
        scan_report_place(self, SCAN_CLOSED, json_raw(name));
        scan_pointer_leave(self, inner);
    }
    scan_pointer_leave(self, before);
}

/* ---- schemas ---------------------------------------------------------------------------------- */

/* What is known of a group of a regular expression while it is read. */
typedef struct group {
    bool has_repeat; /* something in this alternative repeats … */
    bool has_fixed;  /* … and something must be there once */
    bool is_loose;   /* an alternative has the first and not the second */
} group;

static void close_alternative(group *of)
{
    of->is_loose = of->is_loose || (of->has_repeat && !of->has_fixed);
    of->has_repeat = of->has_fixed = false;
}

/* The bytes of the atom at the front that is no group: a class, an escape, a character. */
static size_t atom_length(bay_str at)
{
    if (at.at[0] == '\\') {
        return at.len > 1 ? 2 : 1;
    }
    if (at.at[0] != '[') {
        return 1;
    }
    size_t len = 1;
    while (len < at.len && at.at[len] != ']') {
        len += at.at[len] == '\\' ? 2 : 1;
    }
    return len < at.len ? len + 1 : at.len;
}

typedef enum quantity { ONCE, AT_MOST_ONCE, BOUNDED, REPEATED } quantity;

static quantity quantity_of(bay_str at, size_t *out_len)
{
    *out_len = 1;
    char c = at.len > 0 ? at.at[0] : '\0';
    if (c == '*' || c == '+') {
        return REPEATED;
    }
    if (c == '?') {
        return AT_MOST_ONCE;
    }
    enum { BOUNDS_BYTES = 32 }; /* {1,99999}: a longer one is text */
    size_t end = c == '{' ? str_find(str_head(at, BOUNDS_BYTES), '}') : BOUNDS_BYTES;
    if (end < at.len && end < BOUNDS_BYTES) {
        *out_len = end + 1;
        return at.at[end - 1] == ',' ? REPEATED : BOUNDED;
    }
    *out_len = 0;
    return ONCE;
}

/* A repeated group in which everything repeats or may be absent can take the same text in many ways:
 * (a+)+, (.*)*, (\w+\s?)*. */
static bool is_pattern_bomb(bay_str pattern)
{
    group groups[SCHEMA_DEPTH] = {{0}};
    size_t depth = 0;
    while (pattern.len > 0) {
        char c = pattern.at[0];
        size_t len = atom_length(pattern);
        size_t used = 0;
        bool is_loose = false;
        if (c == '|') {
            close_alternative(&groups[depth]);
            pattern = str_from(pattern, 1);
            continue;
        }
        if (c == '(') {
            if (depth + 1 >= SCHEMA_DEPTH) {
                return true; /* whoever nests so deep means no good */
            }
            groups[++depth] = (group){0};
            bool is_special = str_starts(pattern, STR("(?"));
            pattern = str_from(pattern, is_special ? 3 : 1);
            continue;
        }
        if (c == ')' && depth > 0) {
            close_alternative(&groups[depth]);
            is_loose = groups[depth--].is_loose;
        }
        quantity how = quantity_of(str_from(pattern, len), &used);
        if (how == REPEATED && is_loose) {
            return true;
        }
        bool is_anchor = c == '^' || c == '$';
        groups[depth].has_repeat = groups[depth].has_repeat || how == REPEATED;
        groups[depth].has_fixed =
            groups[depth].has_fixed || (!is_anchor && (how == ONCE || how == BOUNDED) && !is_loose);
        pattern = str_from(pattern, len + used);
    }
    return false;
}

static void squeeze(bay_str key, char out[KEY_BYTES], size_t *out_len)
{
    *out_len = 0;
    for (size_t i = 0; i < key.len && *out_len < KEY_BYTES; i++) {
        if (char_is(key.at[i], CHAR_ALPHA | CHAR_DIGIT)) {
            out[(*out_len)++] = char_lower(key.at[i]);
        }
    }
}

/* Parameters by which others were made to hand over what they were told. */
static bool is_carrier(bay_str key)
{
    static const bay_str names[] = {
        STR_INIT("conversationhistory"), STR_INIT("chathistory"),
        STR_INIT("messagehistory"),      STR_INIT("toolcallhistory"),
        STR_INIT("toolslist"),           STR_INIT("systeminstructions"),
        STR_INIT("chainofthought"),      STR_INIT("fullconversation"),
        STR_INIT("entireconversation"),  STR_INIT("fullchat"),
        STR_INIT("usersecrets"),         STR_INIT("sidenote"),
        STR_INIT("previousmessages"),    STR_INIT("allmessages"),
        STR_INIT("internalreasoning"),   STR_INIT("hiddenreasoning"),
        STR_INIT("usercredentials"),     STR_INIT("fullcontext"),
        STR_INIT("conversationcontext"), STR_INIT("modelinstructions"),
        STR_INIT("conversationlog"),     STR_INIT("chatlog"),
        STR_INIT("chattranscript"),      STR_INIT("conversationtranscript"),
        STR_INIT("systempromptcopy"),    STR_INIT("currentsystemprompt"),
        STR_INIT("yoursystemprompt"),    STR_INIT("agentsystemprompt"),
        STR_INIT("entirecontext"),       STR_INIT("contextwindow"),
        STR_INIT("availabletools"),      STR_INIT("llmcontext"),
        STR_INIT("modelthoughts"),       STR_INIT("userprivatekey"),
        STR_INIT("fullhistory"),         STR_INIT("systempromptcontents"),
    };
    char squeezed[KEY_BYTES];
    size_t len = 0;
    squeeze(key, squeezed, &len);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eq((bay_str){squeezed, len}, names[i])) {
            return true;
        }
    }
    return false;
}

static void check_key(scanner *self, bay_str key)
{
    static const bay_str prototypes[] = {STR_INIT("__proto__"), STR_INIT("constructor"),
                                         STR_INIT("prototype"), STR_INIT("__defineGetter__"),
                                         STR_INIT("__class__")};
    for (size_t i = 0; i < ARRAY_LEN(prototypes); i++) {
        if (str_eq(key, prototypes[i])) {
            scan_report_place(self, SCAN_PROTOTYPE, key);
        }
    }
    if (is_carrier(key)) {
        scan_report_place(self, SCAN_CARRIER, key);
    }
}

static void check_reference(scanner *self, json_val reference)
{
    bay_str text;
    if (json_str(reference, &self->memory, &text) == BAY_OK && text.len > 0 && text.at[0] != '#') {
        bay_str uri = text;
        bool has_scheme = str_find(uri, ':') < str_find(uri, '/');
        bool is_known = str_starts(uri, STR("https://json-schema.org/")) ||
                        str_starts(uri, STR("http://json-schema.org/"));
        if (has_scheme && !is_known && !str_starts(uri, STR("urn:"))) {
            size_t before = scan_pointer_enter(self, STR("$ref"));
            scan_report_place(self, SCAN_REMOTE_REF, text);
            scan_pointer_leave(self, before);
        }
    }
}

static void check_secret_value(scanner *self, json_val value)
{
    bay_str text;
    if (json_str(value, &self->memory, &text) == BAY_OK && scan_is_secret_path(text)) {
        scan_report_place(self, SCAN_SECRET_DEFAULT, text);
    }
}

static void check_values(scanner *self, json_val schema)
{
    bay_str pattern;
    size_t before = scan_pointer_enter(self, STR("default"));
    check_secret_value(self, json_get(schema, STR("default")));
    scan_pointer_leave(self, before);
    before = scan_pointer_enter(self, STR("const"));
    check_secret_value(self, json_get(schema, STR("const")));
    scan_pointer_leave(self, before);
    json_iter values = json_iter_of(json_get(schema, STR("enum")));
    before = scan_pointer_enter(self, STR("enum"));
    for (size_t i = 0; json_next(&values); i++) {
        size_t inner = scan_pointer_enter_index(self, i);
        check_secret_value(self, values.value);
        scan_pointer_leave(self, inner);
    }
    scan_pointer_leave(self, before);
    if (json_str(json_get(schema, STR("pattern")), &self->memory, &pattern) == BAY_OK &&
        is_pattern_bomb(pattern)) {
        before = scan_pointer_enter(self, STR("pattern"));
        scan_report_place(self, SCAN_PATTERN_BOMB, pattern);
        scan_pointer_leave(self, before);
    }
}

static void check_schema(scanner *self, json_val schema, unsigned depth)
{
    if (depth > SCHEMA_DEPTH) {
        scan_report_place(self, SCAN_DEEP, (bay_str){"", 0});
        return;
    }
    if (json_is(schema, JSON_OBJECT)) {
        check_reference(self, json_get(schema, STR("$ref")));
        check_values(self, schema);
    }
    json_iter iter = json_iter_of(schema);
    for (size_t i = 0; json_next(&iter); i++) {
        json_kind kind = json_kind_of(iter.value);
        bay_str key = {NULL, 0};
        bool is_object = json_is(schema, JSON_OBJECT);
        if (is_object && json_str(iter.key, &self->memory, &key) != BAY_OK) {
            continue;
        }
        size_t before =
            is_object ? scan_pointer_enter(self, key) : scan_pointer_enter_index(self, i);
        if (is_object && str_eq(key, STR("properties"))) {
            json_iter properties = json_iter_of(iter.value);
            while (json_next(&properties)) {
                bay_str name;
                if (json_str(properties.key, &self->memory, &name) == BAY_OK) {
                    size_t inner = scan_pointer_enter(self, name);
                    check_key(self, name);
                    scan_pointer_leave(self, inner);
                }
            }
        }
        if (kind == JSON_OBJECT || kind == JSON_ARRAY) {
            check_schema(self, iter.value, depth + 1);
        }
        scan_pointer_leave(self, before);
    }
}

void scan_schema_run(scanner *self, json_val definition)
{
    static const bay_str schemas[] = {STR_INIT("inputSchema"), STR_INIT("outputSchema")};
    check_annotations(self, definition);
    for (size_t i = 0; i < ARRAY_LEN(schemas); i++) {
        size_t before = scan_pointer_enter(self, schemas[i]);
        check_schema(self, json_get(definition, schemas[i]), 0);
        scan_pointer_leave(self, before);
    }
}

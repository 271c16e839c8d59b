/* RFC 6901 (JSON Pointer), evaluated without memory: a token is compared with each key while both
 * are decoded. */
#include "base/str.h"
#include "json/escape.h"
#include "json/json.h"
#include "json/tape.h"

/* '~' is valid only before 0 or 1. */
static bool is_token(bay_str token)
{
    for (size_t i = 0; i < token.len; i++) {
        if (token.at[i] == '~' &&
            (i + 1 == token.len || (token.at[i + 1] != '0' && token.at[i + 1] != '1'))) {
            return false;
        }
    }
    return true;
}

static bool is_named(json_val key, bay_str token)
{
    json_chars chars = json_chars_of(tape_inside(key.doc, &key.doc->tape[key.at]));
    for (size_t i = 0; i < token.len; i++) {
        unsigned char c = (unsigned char)token.at[i];
        if (c == '~') {
            c = token.at[++i] == '0' ? '~' : '/';
        }
        if (json_chars_next(&chars) != c) {
            return false;
        }
    }
    return json_chars_next(&chars) < 0 && !chars.is_broken;
}

static json_val member(json_val object, bay_str token)
{
    if (str_find(token, '~') == token.len) {
        return json_get(object, token);
    }
    json_iter iter = json_iter_of(object);
    while (json_next(&iter)) {
        if (is_named(iter.key, token)) {
            return iter.value;
        }
    }
    return JSON_NONE;
}

static json_val element(json_val array, bay_str token)
{
    uint64_t index;
    if ((token.len > 1 && token.at[0] == '0') || !str_uint(token, &index) ||
        index >= json_count(array)) {
        return JSON_NONE; /* also "-", the element after the last */
    }
    return json_item(array, (size_t)index);
}

json_val json_pointer(json_val root, bay_str pointer)
{
    json_val value = root;
    while (pointer.len > 0) {
        if (pointer.at[0] != '/') {
            return JSON_NONE;
        }
        pointer = str_from(pointer, 1);
        bay_str token = str_head(pointer, str_find(pointer, '/'));
        pointer = str_from(pointer, token.len);
        if (!is_token(token)) {
            return JSON_NONE;
        }
        switch (json_kind_of(value)) {
        case JSON_OBJECT:
            value = member(value, token);
            break;
        case JSON_ARRAY:
            value = element(value, token);
            break;
        default:
            return JSON_NONE;
        }
    }
    return value;
}

/* What front matter means: the types of plain scalars, the comparison with a manifest's JSON, and
 * the JSON itself. */
#include "sdk/front_matter.h"

/* ---- types of plain scalars: YAML 1.2.2 section 10.3.2 */

static bool is_one_of(bay_str text, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (str_eq(text, str_of(*words))) {
            return true;
        }
    }
    return false;
}

static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
static const char *const trues[] = {"true", "True", "TRUE", NULL};
static const char *const falses[] = {"false", "False", "FALSE", NULL};
/* YAML 1.1's, which many readers still speak. */
static const char *const old_trues[] = {"yes", "Yes", "YES", "on", "On", "ON", NULL};
static const char *const old_falses[] = {"no", "No", "NO", "off", "Off", "OFF", NULL};

/* A number as JSON writes it, too; other notations are texts to us. */
static bool is_number(bay_str text)
{
    size_t i = text.len > 0 && text.at[0] == '-' ? 1 : 0;
    size_t digits = i;
    while (i < text.len && text.at[i] >= '0' && text.at[i] <= '9') {
        i++;
    }
    if (i == digits || (text.at[digits] == '0' && i > digits + 1)) {
        return false;
    }
    if (i < text.len && text.at[i] == '.') {
        digits = ++i;
        while (i < text.len && text.at[i] >= '0' && text.at[i] <= '9') {
            i++;
        }
        if (i == digits) {
            return false;
        }
    }
    if (i < text.len && (text.at[i] == 'e' || text.at[i] == 'E')) {
        i++;
        i += i < text.len && (text.at[i] == '+' || text.at[i] == '-');
        digits = i;
        while (i < text.len && text.at[i] >= '0' && text.at[i] <= '9') {
            i++;
        }
        if (i == digits) {
            return false;
        }
    }
    return i == text.len;
}

static bool plain_is(bay_str text, json_val value)
{
    switch (json_kind_of(value)) {
    case JSON_STRING:
        return json_str_eq(value, text);
    case JSON_NUMBER:
        return is_number(text) && json_number_eq(text, json_raw(value));
    case JSON_TRUE:
        return is_one_of(text, trues) || is_one_of(text, old_trues);
    case JSON_FALSE:
        return is_one_of(text, falses) || is_one_of(text, old_falses);
    case JSON_NULL:
        return is_one_of(text, nulls);
    default:
        return false;
    }
}

/* ---- comparing */

static bool is_same(const matter *self, json_val value, bay_str *out_field);

static bool same_members(const matter *self, json_val value, bay_str *out_field)
{
    size_t count = 0;
    for (const matter *member = self->first; member != NULL; member = member->next, count++) {
        json_val other = json_get(value, member->key);
        if (out_field != NULL) {
            *out_field = member->key;
        }
        if (json_is(other, JSON_MISSING) || !is_same(member, other, NULL)) {
            return false;
        }
    }
    if (out_field != NULL && count != json_count(value)) {
        json_iter iter = json_iter_of(value);
        while (json_next(&iter)) {
            bay_str key = {0};
            if (json_str_plain(iter.key, &key) && matter_get(self, key) == NULL) {
                *out_field = key;
            }
        }
    }
    return count == json_count(value);
}

static bool is_same(const matter *self, json_val value, bay_str *out_field)
{
    if (self->kind == MATTER_PLAIN) {
        return plain_is(self->text, value);
    }
    if (self->kind == MATTER_TEXT) {
        return json_str_eq(value, self->text);
    }
    if (self->kind == MATTER_MAPPING) {
        return json_is(value, JSON_OBJECT) && same_members(self, value, out_field);
    }
    json_iter iter = json_iter_of(value);
    const matter *member = self->first;
    for (; member != NULL && json_next(&iter); member = member->next) {
        if (!is_same(member, iter.value, NULL)) {
            return false;
        }
    }
    return json_is(value, JSON_ARRAY) && member == NULL && !json_next(&iter);
}

bay_err matter_compare(const matter *self, json_val value, bay_str *out_field)
{
    bay_str field = {0};
    /* Two readers must not disagree about which of two members counts. */
    if (json_check_duplicates(value, NULL) != BAY_OK || !is_same(self, value, &field)) {
        if (out_field != NULL) {
            *out_field = field;
        }
        return BAY_ERR_DENIED;
    }
    return BAY_OK;
}

/* ---- writing */

static void write_plain(bay_str text, json_writer *out)
{
    if (is_number(text)) {
        json_put_raw(out, text);
    } else if (is_one_of(text, nulls)) {
        json_put_null(out);
    } else if (is_one_of(text, trues) || is_one_of(text, falses)) {
        json_put_bool(out, is_one_of(text, trues));
    } else {
        json_put_str(out, text);
    }
}

void matter_write(const matter *self, json_writer *out)
{
    if (self->kind == MATTER_PLAIN) {
        write_plain(self->text, out);
        return;
    }
    if (self->kind == MATTER_TEXT) {
        json_put_str(out, self->text);
        return;
    }
    bool is_mapping = self->kind == MATTER_MAPPING;
    if (is_mapping) {
        json_open_object(out);
    } else {
        json_open_array(out);
    }
    for (const matter *member = self->first; member != NULL; member = member->next) {
        if (is_mapping) {
            json_key(out, member->key);
        }
        matter_write(member, out);
    }
    if (is_mapping) {
        json_close_object(out);
    } else {
        json_close_array(out);
    }
}

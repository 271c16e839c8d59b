/* Navigation in an indexed document: kinds, members, elements, duplicates. */
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "json/escape.h"
#include "json/json.h"
#include "json/tape.h"

enum { PICK_MAX = 32, JSON_LEVELS_MOST = 512 };

static const json_tape *entry_of(json_val value)
{
    return &value.doc->tape[value.at];
}

static bay_str raw_at(const json_doc *doc, const json_tape *entry)
{
    return (bay_str){doc->text.at + entry->start, entry->end - entry->start};
}

json_val json_root(const json_doc *doc)
{
    return (json_val){doc, 0};
}

json_kind json_kind_of(json_val value)
{
    return value.doc != NULL ? tape_kind(entry_of(value)) : JSON_MISSING;
}

bay_str json_raw(json_val value)
{
    return value.doc != NULL ? raw_at(value.doc, entry_of(value)) : (bay_str){"", 0};
}

size_t json_offset(json_val value)
{
    return value.doc != NULL ? entry_of(value)->start : 0;
}

bool json_true(json_val value)
{
    return json_kind_of(value) == JSON_TRUE;
}

static bool is_container(json_val value)
{
    json_kind kind = json_kind_of(value);
    return kind == JSON_ARRAY || kind == JSON_OBJECT;
}

/* No recursion and no stack: a container inside another ends with it or before it, so the ends of
 * the open containers are at most `levels` numbers. */
bool json_is_deeper(json_val value, uint32_t levels)
{
    uint32_t ends[JSON_LEVELS_MOST];
    uint32_t open = 0;
    uint32_t end = is_container(value) ? entry_of(value)->next : 0;
    levels = levels < JSON_LEVELS_MOST ? levels : JSON_LEVELS_MOST;
    for (uint32_t at = (uint32_t)value.at; at < end; at++) {
        const json_tape *entry = &value.doc->tape[at];
        json_kind kind = tape_kind(entry);
        while (open > 0 && ends[open - 1] <= at) {
            open--;
        }
        if (kind == JSON_ARRAY || kind == JSON_OBJECT) {
            if (open == levels) {
                return true;
            }
            ends[open++] = entry->next;
        }
    }
    return false;
}

size_t json_count(json_val value)
{
    if (!is_container(value)) {
        return 0;
    }
    uint32_t count = entry_of(value)->head >> TAPE_COUNT_SHIFT;
    if (count < TAPE_COUNT_MAX) {
        return count;
    }
    size_t walked = 0;
    json_iter iter = json_iter_of(value);
    while (json_next(&iter)) {
        walked++;
    }
    return walked;
}

json_iter json_iter_of(json_val container)
{
    json_iter iter = {.key = JSON_NONE, .value = JSON_NONE, .parent = container};
    if (is_container(container)) {
        iter.next = container.at + 1;
        iter.end = entry_of(container)->next;
    }
    return iter;
}

bool json_next(json_iter *iter)
{
    if (iter->next >= iter->end) {
        return false;
    }
    const json_doc *doc = iter->parent.doc;
    if (json_kind_of(iter->parent) == JSON_OBJECT) {
        iter->key = (json_val){doc, iter->next};
        iter->next++;
    }
    iter->value = (json_val){doc, iter->next};
    iter->next = doc->tape[iter->next].next;
    return true;
}

/* Whether the string at `entry` is this text. Most keys have no escapes: then their bytes decide.
 */
static inline bool is_named(const json_doc *doc, uint32_t at, bay_str key)
{
    const json_tape *entry = &doc->tape[at];
    if (tape_is_escaped(entry)) {
        return json_str_eq((json_val){doc, at}, key);
    }
    return entry->end - entry->start - 2 == key.len &&
           memcmp(doc->text.at + entry->start + 1, key.len > 0 ? key.at : "", key.len) == 0;
}

json_val json_get(json_val object, bay_str key)
{
    if (json_kind_of(object) != JSON_OBJECT) {
        return JSON_NONE;
    }
    const json_doc *doc = object.doc;
    uint32_t end = entry_of(object)->next;
    for (uint32_t at = object.at + 1; at < end; at = doc->tape[at + 1].next) {
        if (is_named(doc, at, key)) {
            return (json_val){doc, at + 1};
        }
    }
    return JSON_NONE;
}

json_val json_item(json_val array, size_t index)
{
    if (json_kind_of(array) != JSON_ARRAY) {
        return JSON_NONE;
    }
    json_iter iter = json_iter_of(array);
    while (json_next(&iter)) {
        if (index-- == 0) {
            return iter.value;
        }
    }
    return JSON_NONE;
}

static uint64_t length_bit(size_t len)
{
    return (uint64_t)1 << (len < 63 ? len : 63);
}

bay_err json_pick(json_val object, const bay_str *keys, size_t count, json_val *out,
                  size_t *out_duplicate)
{
    if (count > PICK_MAX) {
        return BAY_ERR_INVALID;
    }
    if (json_kind_of(object) != JSON_OBJECT) {
        return BAY_ERR_TYPE;
    }
    json_val found[PICK_MAX];
    uint64_t lengths = 0; /* a key of another length is not compared */
    for (size_t i = 0; i < count; i++) {
        found[i] = JSON_NONE;
        lengths |= length_bit(keys[i].len);
    }
    const json_doc *doc = object.doc;
    uint32_t end = entry_of(object)->next;
    for (uint32_t at = object.at + 1; at < end; at = doc->tape[at + 1].next) {
        const json_tape *key = &doc->tape[at];
        bool is_plain = !tape_is_escaped(key);
        bay_str name = tape_inside(doc, key);
        if (is_plain && (lengths & length_bit(name.len)) == 0) {
            continue;
        }
        for (size_t i = 0; i < count; i++) {
            if (is_plain ? !str_eq(name, keys[i]) : !json_str_eq((json_val){doc, at}, keys[i])) {
                continue;
            }
            if (found[i].doc != NULL) {
                if (out_duplicate != NULL) {
                    *out_duplicate = i;
                }
                return BAY_ERR_DUPLICATE;
            }
            found[i] = (json_val){doc, at + 1};
        }
    }
    memcpy(out, found, count * sizeof(*out));
    return BAY_OK;
}

static bool is_same_key(const json_doc *doc, uint32_t a, uint32_t b)
{
    bay_str left = tape_inside(doc, &doc->tape[a]);
    bay_str right = tape_inside(doc, &doc->tape[b]);
    if (!tape_is_escaped(&doc->tape[a]) && !tape_is_escaped(&doc->tape[b])) {
        return str_eq(left, right);
    }
    return json_chars_eq(left, right);
}

/* Compares each key with the previous ones: fastest for few members. Returns the second of two
 * equal keys, or 0. */
static uint32_t find_among_few(const json_doc *doc, uint32_t object)
{
    uint32_t end = doc->tape[object].next;
    for (uint32_t at = object + 1; at < end; at = doc->tape[at + 1].next) {
        for (uint32_t before = object + 1; before < at; before = doc->tape[before + 1].next) {
            if (is_same_key(doc, before, at)) {
                return at;
            }
        }
    }
    return 0;
}

/* Hashes the decoded key, whatever its escapes. `decoded` has room for it. */
static uint64_t hash_key(const json_doc *doc, uint32_t at, uint64_t seed, char *decoded)
{
    const json_tape *entry = &doc->tape[at];
    bay_str inside = tape_inside(doc, entry);
    if (!tape_is_escaped(entry)) {
        return str_hash(inside, seed);
    }
    json_chars chars = json_chars_of(inside);
    size_t len = 0;
    for (int c = json_chars_next(&chars); c >= 0; c = json_chars_next(&chars)) {
        decoded[len++] = (char)c;
    }
    return str_hash((bay_str){decoded, len}, seed);
}

/* A hash set of entry indexes: linear in the members, for any keys that a peer may choose. */
static bay_err find_among_many(const json_doc *doc, uint32_t object, size_t members,
                               uint32_t *out_second)
{
    size_t longest = 1;
    uint32_t end = doc->tape[object].next;
    for (uint32_t at = object + 1; at < end; at = doc->tape[at + 1].next) {
        const json_tape *key = &doc->tape[at];
        if (tape_is_escaped(key) && key->end - key->start > longest) {
            longest = key->end - key->start;
        }
    }
    size_t cap = 64;
    while (cap < members * 2) {
        cap *= 2;
    }
    uint32_t *slots = mem_array(cap, sizeof(*slots)); /* 0: free (the root is never a key) */
    char *decoded = mem_alloc(longest);
    bay_err err = slots != NULL && decoded != NULL ? BAY_OK : BAY_ERR_NOMEM;
    uint64_t seed = rand_u64();
    uint32_t second = 0;
    for (uint32_t at = object + 1; err == BAY_OK && second == 0 && at < end;
         at = doc->tape[at + 1].next) {
        size_t slot = (size_t)hash_key(doc, at, seed, decoded) & (cap - 1);
        while (slots[slot] != 0 && second == 0) {
            if (is_same_key(doc, slots[slot], at)) {
                second = at;
            }
            slot = (slot + 1) & (cap - 1);
        }
        slots[slot] = at;
    }
    mem_free(decoded);
    mem_free(slots);
    if (err == BAY_OK) {
        *out_second = second;
    }
    return err;
}

bay_err json_check_duplicates(json_val value, bay_diag *diag)
{
    enum { FEW = 12 };
    if (value.doc == NULL) {
        return BAY_OK;
    }
    const json_doc *doc = value.doc;
    uint32_t end = entry_of(value)->next;
    for (uint32_t at = value.at; at < end; at++) {
        size_t members = json_count((json_val){doc, at});
        if (members < 2 || tape_kind(&doc->tape[at]) != JSON_OBJECT) {
            continue;
        }
        uint32_t second = 0;
        if (members <= FEW) {
            second = find_among_few(doc, at);
        } else {
            bay_err err = find_among_many(doc, at, members, &second);
            if (err != BAY_OK) {
                return diag_at(diag, err, doc->tape[at].start, "no memory to compare names");
            }
        }
        if (second != 0) {
            bay_str name = str_head(raw_at(doc, &doc->tape[second]), 80);
            return diag_at(diag, BAY_ERR_DUPLICATE, doc->tape[second].start, "%.*s stands twice",
                           BAY_STR(name));
        }
    }
    return BAY_OK;
}

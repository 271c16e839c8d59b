/* Rules that a user adds: a line of text each, read once. */
#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/shown.h"
#include "policy/scan_internal.h"
#include "json/utf8.h"

bay_err scan_rule_set_new(scan_rule_set **out)
{
    *out = mem_zalloc(sizeof(**out));
    return *out != NULL ? BAY_OK : BAY_ERR_NOMEM;
}

void scan_rule_set_free(scan_rule_set *self)
{
    mem_free(self);
}

static bool is_id(bay_str id)
{
    bool is_good = id.len > 0 && id.len < sizeof(((scan_user_rule *)0)->id);
    for (size_t i = 0; is_good && i < id.len; i++) {
        char c = id.at[i];
        is_good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c == '-' && i > 0);
    }
    return is_good;
}

static bool is_taken(const scan_rule_set *self, bay_str id)
{
    for (size_t i = 0; i < SCAN_RULES; i++) {
        if (str_eq(id, str_of(scan_rules[i].id))) {
            return true;
        }
    }
    for (size_t i = 0; i < self->count; i++) {
        if (str_eq(id, str_of(self->rules[i].id))) {
            return true;
        }
    }
    return false;
}

/* "warning: …": takes it off the front. */
static scan_severity take_severity(bay_str *text)
{
    for (scan_severity at = SCAN_NOTE; at <= SCAN_ERROR; at++) {
        bay_str word = str_of(scan_severity_text(at));
        if (str_starts(*text, word) && text->len > word.len && text->at[word.len] == ':') {
            *text = str_trim(str_from(*text, word.len + 1));
            return at;
        }
    }
    return SCAN_WARNING;
}

/* Folded into the rule's text as the scanner folds what it reads. False: there is no room, or
 * nothing is left of it. */
static bool fold_word(scan_user_rule *rule, size_t *used, bay_str word, bay_str *out)
{
    size_t start = *used;
    while (word.len > 0) {
        uint32_t code = 0;
        size_t len = shown_decode(word, &code);
        if (len == 0 || *used + 4 > sizeof(rule->text)) {
            return false;
        }
        scan_char folded = scan_fold(code);
        if (folded.class == SCAN_LETTER || folded.class == SCAN_DIGIT) {
            *used += json_utf8_put(rule->text + *used, folded.folded);
        } else if (folded.class != SCAN_MARK && folded.class != SCAN_QUOTE) {
            return false;
        }
        word = str_from(word, len);
    }
    *out = (bay_str){rule->text + start, *used - start};
    return out->len > 0 && out->len <= SCAN_WORD_BYTES;
}

static bay_err add_group(scan_user_rule *rule, size_t *used, bay_str group, bay_diag *diag)
{
    if (rule->group_count == SCAN_USER_GROUPS) {
        return diag_set(diag, BAY_ERR_LIMIT, "more than %d groups of words", SCAN_USER_GROUPS);
    }
    size_t number = rule->group_count++;
    while (group.len > 0) {
        bay_str word = str_head(group, str_find(group, '|'));
        group = str_from(group, word.len + 1);
        size_t count = rule->groups[number].count;
        bool is_prefix = str_ends(word, STR("*"));
        word = is_prefix ? str_head(word, word.len - 1) : word;
        if (count == SCAN_USER_WORDS) {
            return diag_set(diag, BAY_ERR_LIMIT, "more than %d words in a group", SCAN_USER_WORDS);
        }
        if (!fold_word(rule, used, word, &rule->groups[number].words[count])) {
            return diag_set(
                diag, BAY_ERR_SYNTAX,
                "\"%.*s\" is no word: write letters and digits, | between words and * at "
                "the end for any ending",
                (int)(word.len < 40 ? word.len : 40), word.at);
        }
        rule->groups[number].is_prefix[count] = is_prefix;
        rule->groups[number].count++;
    }
    return BAY_OK;
}

bay_err scan_rule_set_add(scan_rule_set *self, bay_str id, bay_str text, bay_diag *diag)
{
    if (self->count == SCAN_USER_RULES) {
        return diag_set(diag, BAY_ERR_LIMIT, "more than %d rules", SCAN_USER_RULES);
    }
    if (!is_id(id)) {
        return diag_set(diag, BAY_ERR_SYNTAX,
                        "a rule's id is of a to z, 0 to 9 and -, at most 39 bytes");
    }
    if (is_taken(self, id)) {
        return diag_set(diag, BAY_ERR_DUPLICATE,
                        "there is a rule of this id already: choose another");
    }
    scan_user_rule *rule = &self->rules[self->count];
    size_t used = 0;
    *rule = (scan_user_rule){0};
    text = str_trim(text);
    rule->severity = take_severity(&text);
    bay_str why = str_from(text, str_find(text, ':') + 1);
    bay_str groups = str_trim(str_head(text, str_find(text, ':')));
    bay_err err = BAY_OK;
    while (err == BAY_OK && groups.len > 0) {
        bay_str group = str_head(groups, str_find(groups, ' '));
        groups = str_trim(str_from(groups, group.len));
        err = add_group(rule, &used, group, diag);
    }
    if (err == BAY_OK && rule->group_count == 0) {
        err = diag_set(diag, BAY_ERR_SYNTAX,
                       "the rule has no words: write them, as in send|forward acme");
    }
    if (err != BAY_OK) {
        return err;
    }
    (void)snprintf(rule->id, sizeof(rule->id), "%.*s", BAY_STR(id));
    why = str_trim(why);
    shown_copy(rule->why, sizeof(rule->why), why.len > 0 ? why : STR("a rule of the configuration"),
               SHOWN_LINE);
    self->count++;
    return BAY_OK;
}

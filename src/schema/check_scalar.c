/* Numbers and strings: compared by their text, never as doubles. */
#include "schema/check.h"

/* The value is `digits` / 10^`scale`, if the text has few digits and no exponent. */
typedef struct number {
    bay_str raw;
    bool is_small;
    uint32_t scale;
    int64_t digits;
} number;

enum { MOST_DIGITS = 18 };

static number read_number(json_val value)
{
    bay_str raw = json_raw(value);
    bool is_negative = raw.at[0] == '-';
    size_t point = raw.len - 1;
    int64_t digits = 0;
    if (raw.len - is_negative > MOST_DIGITS) {
        return (number){.raw = raw};
    }
    for (size_t i = is_negative; i < raw.len; i++) {
        unsigned digit = (unsigned char)raw.at[i] - (unsigned)'0';
        if (digit <= 9) {
            digits = digits * 10 + digit;
        } else if (raw.at[i] == '.') {
            point = i;
        } else {
            return (number){.raw = raw};
        }
    }
    return (number){raw, true, (uint32_t)(raw.len - 1 - point), is_negative ? -digits : digits};
}

static int compare(const number *value, const program_rule *one, json_val limit)
{
    static const int64_t tens[] = {1,
                                   10,
                                   100,
                                   1000,
                                   10000,
                                   100000,
                                   1000000,
                                   10000000,
                                   100000000,
                                   1000000000,
                                   10000000000,
                                   100000000000,
                                   1000000000000,
                                   10000000000000,
                                   100000000000000,
                                   1000000000000000,
                                   10000000000000000,
                                   100000000000000000,
                                   1000000000000000000};
    if (value->is_small && one->is_small) {
        __int128 scaled = (__int128)one->small * tens[value->scale];
        return value->digits < scaled ? -1 : value->digits > scaled;
    }
    return json_number_cmp(value->raw, json_raw(limit));
}

static bool is_multiple(const number *value, const program_rule *one, json_val step)
{
    if (value->is_small && value->scale == 0 && one->is_small) {
        return value->digits % one->small == 0;
    }
    bool holds = false;
    return json_number_is_multiple(value->raw, json_raw(step), &holds) == BAY_OK && holds;
}

static bool holds_limit(const number *value, const program_rule *one, json_val limit)
{
    switch ((rule_kind)one->kind) {
    case RULE_MULTIPLE_OF:
        return is_multiple(value, one, limit);
    case RULE_MINIMUM:
        return compare(value, one, limit) >= 0;
    case RULE_MAXIMUM:
        return compare(value, one, limit) <= 0;
    case RULE_EXCLUSIVE_MINIMUM:
        return compare(value, one, limit) > 0;
    default:
        return compare(value, one, limit) < 0;
    }
}

static bool report_limit(check *self, const frame *at, const program_rule *one, json_val limit)
{
    static const char *const words[] = {
        [RULE_MULTIPLE_OF] = "a multiple of",
        [RULE_MINIMUM] = "at least",
        [RULE_MAXIMUM] = "at most",
        [RULE_EXCLUSIVE_MINIMUM] = "greater than",
        [RULE_EXCLUSIVE_MAXIMUM] = "less than",
    };
    fixed_text *out = report_open(self, at->value, limit);
    if (out != NULL) {
        fixed_printf(out, "must be %s ", words[one->kind]);
        fixed_short(out, json_raw(limit), 60);
        fixed_lit(out, ", got ");
        fixed_short(out, json_raw(at->value), 60);
    }
    return report_close(self);
}

bool check_number(check *self, const frame *at)
{
    const program_node *node = at->node;
    if (node->from == node->ends[RULES_NUMBER]) {
        return true;
    }
    bool holds = true;
    number value = read_number(at->value);
    if (!check_spend(self, value.raw.len / 64)) {
        return false;
    }
    for (uint32_t i = node->from; i < node->ends[RULES_NUMBER]; i++) {
        const program_rule *one = &self->schema->rules[i];
        json_val limit = check_keyword(self, at, one);
        holds &= holds_limit(&value, one, limit) || report_limit(self, at, one, limit);
        if (!holds && check_is_silent(self)) {
            return false;
        }
    }
    return holds;
}

bool check_text(check *self, json_val value, bay_str *out)
{
    if (json_str_plain(value, out)) {
        return true;
    }
    arena_reset(&self->state->text);
    bay_err err = json_str(value, &self->state->text, out);
    if (err == BAY_ERR_LIMIT) {
        return check_fail(self, BAY_ERR_LIMIT, "max_scratch_bytes");
    }
    return err == BAY_ERR_NOMEM ? check_fail(self, BAY_ERR_NOMEM, "") : err == BAY_OK;
}

bool check_pattern(check *self, uint32_t which, json_val text, bool *out)
{
    bay_str subject;
    *out = false;
    if (!check_text(self, text, &subject)) {
        return self->err == BAY_OK;
    }
    bay_err err = pattern_matches(self->schema->patterns[which], self->schema->engine, subject,
                                  &self->state->match, &self->steps, out);
    return err == BAY_OK || check_fail(self, err, "max_steps, by a pattern");
}

static bool check_length(check *self, const frame *at, const program_rule *one)
{
    bool is_least = one->kind == RULE_MIN_LENGTH;
    size_t bytes = json_raw(at->value).len - 2;
    if (is_least ? bytes >= one->most * 12 && one->most < SIZE_MAX / 12 : bytes <= one->most) {
        return true; /* a character has at most twelve bytes: \ud83d\ude00 */
    }
    if (!check_spend(self, bytes / 64)) {
        return false;
    }
    size_t length = json_str_length(at->value);
    if (is_least ? length >= one->most : length <= one->most) {
        return true;
    }
    return report(self, at->value, check_keyword(self, at, one),
                  "must have at %s %llu character%s, has %zu", is_least ? "least" : "most",
                  (unsigned long long)one->most, one->most == 1 ? "" : "s", length);
}

static bool check_pattern_rule(check *self, const frame *at, const program_rule *one)
{
    bool matches;
    if (!check_pattern(self, one->a, at->value, &matches) || matches) {
        return self->err == BAY_OK;
    }
    json_val keyword = check_keyword(self, at, one);
    fixed_text *out = report_open(self, at->value, keyword);
    if (out != NULL) {
        fixed_lit(out, "must match the pattern ");
        fixed_short(out, json_raw(keyword), 200);
        fixed_lit(out, ", got ");
        report_got(out, at->value);
    }
    return report_close(self);
}

static bool check_format(check *self, const frame *at, const program_rule *one)
{
    const format_kind *wanted = format_at(one->a);
    bay_str text;
    if (!check_spend(self, json_raw(at->value).len / 32)) {
        return false;
    }
    format_tools tools = {self->schema->engine, self->schema->idn, &self->state->match,
                          &self->steps, BAY_OK};
    if (check_text(self, at->value, &text) && wanted->check(text, &tools)) {
        return tools.err == BAY_OK;
    }
    if (self->err != BAY_OK || tools.err != BAY_OK) {
        return self->err != BAY_OK ? false : check_fail(self, tools.err, "max_steps");
    }
    fixed_text *out = report_open(self, at->value, check_keyword(self, at, one));
    if (out != NULL) {
        fixed_printf(out, "must be %s, got ", wanted->words);
        report_got(out, at->value);
    }
    return report_close(self);
}

bool check_string(check *self, const frame *at)
{
    const program_node *node = at->node;
    bool holds = true;
    for (uint32_t i = node->ends[RULES_NUMBER]; i < node->ends[RULES_STRING]; i++) {
        const program_rule *one = &self->schema->rules[i];
        switch ((rule_kind)one->kind) {
        case RULE_PATTERN:
            holds &= check_pattern_rule(self, at, one);
            break;
        case RULE_FORMAT:
            holds &= check_format(self, at, one);
            break;
        default:
            holds &= check_length(self, at, one);
            break;
        }
        if (!holds && check_is_silent(self)) {
            return false;
        }
    }
    return holds;
}

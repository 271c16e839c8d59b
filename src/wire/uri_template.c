/* Matches a URI against a URI template. The template is a sequence of parts, each a literal or an
 * expression. The matcher keeps the set of positions in the URI that the parts so far can reach,
 * and advances the whole set by one part at a time, so nothing is tried twice. */
#include "base/check.h"
#include "base/str.h"
#include "wire/chars.h"
#include "wire/uri.h"

typedef struct part {
    bay_str literal; /* empty for an expression */
    char sign;       /* '\0' for {x}, else the operator */
    bool is_many;    /* more than one variable, or one that is exploded */
} part;

static size_t variable_len(bay_str text, bool *is_many)
{
    size_t len = 0;
    while (len < text.len && (char_is(text.at[len], CHAR_ALPHA | CHAR_DIGIT) ||
                              memchr("_.%-", text.at[len], 4) != NULL)) {
        len++;
    }
    if (len == 0 || len == text.len) {
        return len;
    }
    if (text.at[len] == '*') {
        *is_many = true;
        return len + 1;
    }
    if (text.at[len] != ':') {
        return len;
    }
    size_t digits = len + 1;
    while (digits < text.len && char_is(text.at[digits], CHAR_DIGIT)) {
        digits++;
    }
    size_t count = digits - len - 1;
    return count >= 1 && count <= 4 ? digits : 0;
}

/* `text`: the text between the braces. */
static bool read_expression(part *out, bay_str text)
{
    *out = (part){.sign = '\0'};
    if (text.len > 0 && memchr("+#./;?&", text.at[0], 7) != NULL) {
        out->sign = text.at[0];
        text = str_from(text, 1);
    }
    for (;;) {
        size_t len = variable_len(text, &out->is_many);
        if (len == 0) {
            return false;
        }
        if (len == text.len) {
            return true;
        }
        if (text.at[len] != ',') {
            return false;
        }
        out->is_many = true;
        text = str_from(text, len + 1);
    }
}

/* Removes the next part from the front of `rest`; false: malformed. */
static bool next_part(part *out, bay_str *rest)
{
    if (rest->at[0] == '{') {
        size_t end = str_find(*rest, '}');
        if (end == rest->len || !read_expression(out, (bay_str){rest->at + 1, end - 1})) {
            return false;
        }
        *rest = str_from(*rest, end + 1);
        return true;
    }
    size_t end = str_find(*rest, '{');
    *out = (part){.literal = str_head(*rest, end)};
    *rest = str_from(*rest, end);
    return str_find(out->literal, '}') == out->literal.len && chars_value_is_clean(out->literal);
}

bay_err uri_template_check(bay_str text)
{
    unsigned expressions = 0;
    if (text.len > URI_TEMPLATE_BYTES) {
        return BAY_ERR_LIMIT;
    }
    while (text.len > 0) {
        part next;
        if (!next_part(&next, &text)) {
            return BAY_ERR_SYNTAX;
        }
        expressions += next.literal.len == 0;
    }
    return expressions > URI_TEMPLATE_EXPRESSIONS ? BAY_ERR_LIMIT : BAY_OK;
}

/* Whether `c` may occur in an expansion of the expression, after its sign. */
static bool may_hold(const part *expression, char c)
{
    if ((unsigned char)c <= ' ' || c == '\x7f') {
        return false;
    }
    switch (expression->sign) {
    case '+':
    case '#':
        return true;
    case '?':
    case '&':
        return c != '#';
    case '/':
        return c != '?' && c != '#' && (c != '/' || expression->is_many);
    default:
        return c != '/' && c != '?' && c != '#';
    }
}

static void cross_literal(bay_str text, bay_str literal, const bool *from, bool *to)
{
    for (size_t i = 0; i + literal.len <= text.len; i++) {
        if (from[i] && memcmp(text.at + i, literal.at, literal.len) == 0) {
            to[i + literal.len] = true;
        }
    }
}

static void cross_expression(bay_str text, const part *expression, const bool *from, bool *to)
{
    bool has_sign = expression->sign != '\0' && expression->sign != '+';
    bool is_inside = false;
    for (size_t i = 0; i <= text.len; i++) {
        if (has_sign) {
            bool begins = i > 0 && from[i - 1] && text.at[i - 1] == expression->sign;
            is_inside = begins || (is_inside && may_hold(expression, text.at[i - 1]));
            to[i] = from[i] || is_inside;
        } else {
            is_inside = is_inside && may_hold(expression, text.at[i - 1]);
            to[i] = is_inside;
            is_inside = is_inside || from[i];
        }
    }
}

bool uri_template_matches(bay_str text, bay_str uri_text)
{
    bool sets[2][URI_TEMPLATE_URI_BYTES + 1];
    unsigned now = 0;
    if (uri_text.len > URI_TEMPLATE_URI_BYTES || uri_template_check(text) != BAY_OK) {
        return false;
    }
    memset(sets[now], 0, uri_text.len + 1);
    sets[now][0] = true;
    while (text.len > 0) {
        part next;
        CHECK(next_part(&next, &text)); /* uri_template_check has accepted it */
        bool *to = sets[1 - now];
        memset(to, 0, uri_text.len + 1);
        if (next.literal.len > 0) {
            cross_literal(uri_text, next.literal, sets[now], to);
        } else {
            cross_expression(uri_text, &next, sets[now], to);
        }
        now = 1 - now;
    }
    return sets[now][uri_text.len];
}

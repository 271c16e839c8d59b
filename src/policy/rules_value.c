/* Operators: each compares one value with the values of a condition. What it cannot compare is
 * unknown, never no. */
#include "policy/rules_internal.h"
#include "wire/chars.h"
#include "wire/uri.h"

/* ---- where a pointer leads -------------------------------------------------------------------- */

/* Servers differ in which of two equal members they read, and some compare names without case. */
static bool find_member(json_val object, bay_str name, json_val *out)
{
    arena memory;
    size_t found = 0;
    arena_init(&memory, POLICY_TEXT_BYTES);
    *out = JSON_NONE;
    for (json_iter at = json_iter_of(object); json_next(&at);) {
        bay_str key;
        if (json_str(at.key, &memory, &key) != BAY_OK) {
            found = 2;
            break;
        }
        if (str_eq_folded(key, name)) {
            found++;
            *out = str_eq(key, name) ? at.value : *out;
        }
    }
    arena_fini(&memory);
    return found == 0 || (found == 1 && !json_is(*out, JSON_MISSING));
}

policy_value policy_value_at(json_val root, const bay_str *tokens, size_t count)
{
    json_val at = root;
    for (size_t i = 0; i < count && !json_is(at, JSON_MISSING); i++) {
        uint64_t index;
        if (json_is(at, JSON_OBJECT)) {
            if (!find_member(at, tokens[i], &at)) {
                return (policy_value){.kind = VALUE_UNCLEAR};
            }
        } else if (json_is(at, JSON_ARRAY) && str_uint(tokens[i], &index)) {
            at = json_item(at, (size_t)index);
        } else {
            at = JSON_NONE;
        }
    }
    return (policy_value){.kind = json_is(at, JSON_MISSING) ? VALUE_MISSING : VALUE_JSON,
                          .json = at};
}

/* ---- texts ------------------------------------------------------------------------------------ */

static int hex_at(bay_str text, size_t at)
{
    int high = at + 2 < text.len && text.at[at] == '%' ? char_hex(text.at[at + 1]) : -1;
    int low = high >= 0 ? char_hex(text.at[at + 2]) : -1;
    return low >= 0 ? high << 4 | low : -1;
}

/* Has it a segment "." or "..", however it is written? Such a path leads elsewhere than it begins.
 */
static bool has_dot_segment(bay_str text)
{
    size_t dots = 0;
    bool is_dots = true; /* so far the segment has nothing but dots */
    for (size_t i = 0; i <= text.len; i++) {
        int code = i < text.len ? hex_at(text, i) : '/';
        char c = code >= 0 ? (char)code : text.at[i];
        i += i < text.len && code >= 0 ? 2 : 0;
        if (c == '/' || c == '\\' || c == '?' || c == '#') {
            if (is_dots && (dots == 1 || dots == 2)) {
                return true;
            }
            dots = 0;
            is_dots = true;
        } else if (c == '.') {
            dots++;
        } else {
            is_dots = false;
        }
    }
    return false;
}

static policy_truth truth_of(bool is_true)
{
    return is_true ? POLICY_YES : POLICY_NO;
}

typedef bool (*text_match)(bay_str text, bay_str value);

static bool glob_matches(bay_str text, bay_str value)
{
    return str_glob(value, text);
}

static policy_truth compare_ends(const policy_condition *self, bay_str text)
{
    text_match match = self->op == OPERATOR_PREFIX   ? str_starts
                       : self->op == OPERATOR_SUFFIX ? str_ends
                                                     : glob_matches;
    if (str_find(text, '\0') < text.len || (self->is_path && has_dot_segment(text))) {
        return POLICY_UNKNOWN;
    }
    for (size_t i = 0; i < self->value_count; i++) {
        if (match(text, self->values[i])) {
            return POLICY_YES;
        }
    }
    return POLICY_NO;
}

static policy_truth compare_regex(const policy_rules *rules, const policy_condition *self,
                                  bay_str text)
{
    void *match = NULL;
    bool is_match = false;
    bay_err err = json_is_utf8(text) ? BAY_OK : BAY_ERR_UTF8;
    uint64_t steps = POLICY_REGEX_STEPS;
    for (size_t i = 0; i < self->value_count && err == BAY_OK && !is_match; i++) {
        err = pattern_matches(self->patterns[i], rules->engine, text, &match, &steps, &is_match);
    }
    if (match != NULL) {
        pattern_match_free(match);
    }
    return err == BAY_OK ? truth_of(is_match) : POLICY_UNKNOWN;
}

static policy_truth compare_network(const policy_condition *self, const net_address *address)
{
    for (size_t i = 0; i < self->value_count; i++) {
        if (network_has(&self->networks[i], address)) {
            return POLICY_YES;
        }
    }
    return POLICY_NO;
}

static policy_truth compare_cidr(const policy_condition *self, bay_str text)
{
    net_address address;
    return address_parse(text, &address) == BAY_OK ? compare_network(self, &address)
                                                   : POLICY_UNKNOWN;
}

/* Numbers that resolvers take for IPv4 addresses: "2130706433", "0x7f.1", "127.1". */
static bool is_odd_address(bay_str host)
{
    net_address address;
    size_t dot = str_find_last(host, '.');
    bay_str last = str_from(host, dot < host.len ? dot + 1 : 0);
    return last.len > 0 && char_is(last.at[0], CHAR_DIGIT) &&
           address_parse(host, &address) != BAY_OK;
}

static policy_truth compare_host(const policy_condition *self, bay_str text)
{
    uri parts;
    char lower[256];
    if (uri_parse(&parts, text) != BAY_OK || parts.scheme.len == 0 || parts.host.len == 0 ||
        parts.has_userinfo || parts.host.len >= sizeof(lower) ||
        str_find(parts.host, '%') < parts.host.len) {
        return POLICY_UNKNOWN;
    }
    bay_str host = {lower, parts.host.len};
    for (size_t i = 0; i < host.len; i++) {
        lower[i] = char_lower(parts.host.at[i]);
    }
    host.len -= lower[host.len - 1] == '.'; /* the name of the root is the same name */
    if (!parts.is_ip_literal && is_odd_address(host)) {
        return POLICY_UNKNOWN;
    }
    for (size_t i = 0; i < self->value_count; i++) {
        if (str_glob(self->values[i], host)) {
            return POLICY_YES;
        }
    }
    return POLICY_NO;
}

static policy_truth compare_text(const policy_rules *rules, const policy_condition *self,
                                 bay_str text)
{
    switch (self->op) {
    case OPERATOR_REGEX:
        return compare_regex(rules, self, text);
    case OPERATOR_CIDR:
        return compare_cidr(self, text);
    case OPERATOR_HOST:
        return compare_host(self, text);
    default:
        return compare_ends(self, text);
    }
}

/* ---- values ----------------------------------------------------------------------------------- */

static size_t digits_at(bay_str text, size_t at)
{
    return chars_span(str_from(text, at), CHAR_DIGIT);
}

/* RFC 8259 section 6. */
bool policy_is_number(bay_str text)
{
    size_t at = text.len > 0 && text.at[0] == '-';
    size_t whole = digits_at(text, at);
    if (whole == 0 || (whole > 1 && text.at[at] == '0')) {
        return false;
    }
    at += whole;
    if (at < text.len && text.at[at] == '.') {
        size_t part = digits_at(text, at + 1);
        at = part > 0 ? at + 1 + part : text.len + 1;
    }
    if (at < text.len && (text.at[at] == 'e' || text.at[at] == 'E')) {
        at++;
        at += at < text.len && (text.at[at] == '+' || text.at[at] == '-');
        size_t part = digits_at(text, at);
        at = part > 0 ? at + part : text.len + 1;
    }
    return at == text.len;
}

static bool is_scalar(json_val value)
{
    json_kind kind = json_kind_of(value);
    return kind != JSON_MISSING && kind != JSON_ARRAY && kind != JSON_OBJECT;
}

static bool is_equal(json_val value, bay_str text)
{
    switch (json_kind_of(value)) {
    case JSON_STRING:
        return json_str_eq(value, text);
    case JSON_NUMBER:
        return policy_is_number(text) && json_number_eq(json_raw(value), text);
    default:
        return str_eq(json_raw(value), text);
    }
}

static bool is_listed(const policy_condition *self, json_val value)
{
    for (size_t i = 0; i < self->value_count; i++) {
        if (is_scalar(value) && is_equal(value, self->values[i])) {
            return true;
        }
    }
    return false;
}

/* One value counts as a list of itself. */
static bool list_has(json_val list, bay_str text)
{
    if (is_scalar(list)) {
        return is_equal(list, text);
    }
    for (json_iter at = json_iter_of(list); json_next(&at);) {
        if (is_scalar(at.value) && is_equal(at.value, text)) {
            return true;
        }
    }
    return false;
}

static policy_truth compare_list(const policy_condition *self, json_val value)
{
    size_t have = 0;
    if (json_is(value, JSON_OBJECT)) {
        return POLICY_UNKNOWN;
    }
    for (size_t i = 0; i < self->value_count; i++) {
        have += list_has(value, self->values[i]);
    }
    return truth_of(self->op == OPERATOR_HAS ? have == self->value_count : have > 0);
}

static policy_truth compare_number(const policy_condition *self, json_val value)
{
    if (!json_is(value, JSON_NUMBER)) {
        return POLICY_UNKNOWN;
    }
    int order = json_number_cmp(json_raw(value), self->values[0]);
    switch (self->op) {
    case OPERATOR_LT:
        return truth_of(order < 0);
    case OPERATOR_LE:
        return truth_of(order <= 0);
    case OPERATOR_GT:
        return truth_of(order > 0);
    default:
        return truth_of(order >= 0);
    }
}

static policy_truth compare_claim(const policy_condition *self, json_val value,
                                  const auth_principal *principal)
{
    json_val claim = principal_claim(principal, self->values[0]);
    bool is_number = json_is(value, JSON_NUMBER) && json_is(claim, JSON_NUMBER);
    bool is_text = json_is(value, JSON_STRING) && json_is(claim, JSON_STRING);
    if (json_is(value, JSON_STRING) && str_eq(self->values[0], STR("/sub")) &&
        json_is(claim, JSON_MISSING) && principal != NULL) {
        return truth_of(json_str_eq(value, principal_subject(principal)));
    }
    if (!is_number && !is_text) {
        return POLICY_UNKNOWN;
    }
    return truth_of(is_text ? json_str_same(value, claim)
                            : json_number_eq(json_raw(value), json_raw(claim)));
}

static policy_truth compare_json(const policy_rules *rules, const policy_condition *self,
                                 json_val value, const auth_principal *principal)
{
    arena memory;
    bay_str text;
    policy_truth truth = POLICY_UNKNOWN;
    switch (self->op) {
    case OPERATOR_IN:
        return is_scalar(value) ? truth_of(is_listed(self, value)) : POLICY_UNKNOWN;
    case OPERATOR_ANY:
    case OPERATOR_HAS:
        return compare_list(self, value);
    case OPERATOR_LT:
    case OPERATOR_LE:
    case OPERATOR_GT:
    case OPERATOR_GE:
        return compare_number(self, value);
    case OPERATOR_SAME_AS:
        return compare_claim(self, value, principal);
    default:
        arena_init(&memory, POLICY_TEXT_BYTES);
        if (json_str(value, &memory, &text) == BAY_OK && text.len <= POLICY_TEXT_BYTES) {
            truth = compare_text(rules, self, text);
        }
        arena_fini(&memory);
        return truth;
    }
}

/* Of the principal or a header field: it has one value, and no type. */
static policy_truth compare_plain(const policy_rules *rules, const policy_condition *self,
                                  bay_str text)
{
    size_t same = 0;
    switch (self->op) {
    case OPERATOR_IN:
    case OPERATOR_ANY:
    case OPERATOR_HAS:
        for (size_t i = 0; i < self->value_count; i++) {
            same += str_eq(self->values[i], text);
        }
        return truth_of(self->op == OPERATOR_HAS ? same == self->value_count : same > 0);
    case OPERATOR_LT:
    case OPERATOR_LE:
    case OPERATOR_GT:
    case OPERATOR_GE:
    case OPERATOR_SAME_AS:
        return POLICY_UNKNOWN;
    default:
        return compare_text(rules, self, text);
    }
}

policy_truth policy_compare(const policy_rules *rules, const policy_condition *condition,
                            policy_value value, const auth_principal *principal)
{
    bool exists = condition->op == OPERATOR_EXISTS;
    switch (value.kind) {
    case VALUE_MISSING:
        return exists ? truth_of(!condition->is_wanted) : POLICY_UNKNOWN;
    case VALUE_UNCLEAR:
        return POLICY_UNKNOWN;
    case VALUE_TEXT:
        return exists ? truth_of(condition->is_wanted)
                      : compare_plain(rules, condition, value.text);
    default:
        return exists ? truth_of(condition->is_wanted)
                      : compare_json(rules, condition, value.json, principal);
    }
}

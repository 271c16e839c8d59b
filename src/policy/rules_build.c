/* Rules as they are built: every text is copied, every value checked, so that nothing is left to be
 * found wrong when a call is decided. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "policy/rules_internal.h"
#include "wire/chars.h"
#include "wire/uri.h"
#include "wire/uri_plain.h"

typedef struct pattern_link {
    struct pattern_link *next;
    pattern *pattern;
} pattern_link;

static const char *const operator_names[OPERATORS] = {
    [OPERATOR_IN] = "in",         [OPERATOR_ANY] = "any",       [OPERATOR_HAS] = "has",
    [OPERATOR_PREFIX] = "prefix", [OPERATOR_SUFFIX] = "suffix", [OPERATOR_GLOB] = "glob",
    [OPERATOR_REGEX] = "regex",   [OPERATOR_LT] = "lt",         [OPERATOR_LE] = "le",
    [OPERATOR_GT] = "gt",         [OPERATOR_GE] = "ge",         [OPERATOR_CIDR] = "cidr",
    [OPERATOR_HOST] = "host",     [OPERATOR_EXISTS] = "exists", [OPERATOR_SAME_AS] = "sameAs",
};

static const char *const kind_names[POLICY_KINDS] = {[POLICY_TOOL] = "tool",
                                                     [POLICY_PROMPT] = "prompt",
                                                     [POLICY_RESOURCE] = "resource",
                                                     [POLICY_SKILL] = "skill",
                                                     [POLICY_AGENT] = "agent"};

/* `eq` is `in` with one value. */
const char *policy_operator_name(size_t index)
{
    return index == OPERATORS ? "eq" : index < OPERATORS ? operator_names[index] : NULL;
}

/* The sum of what was added, in its order. */
static void mix_text(policy_rules *self, bay_str text)
{
    self->hash = str_hash(text, self->hash);
}

static void mix_number(policy_rules *self, unsigned number)
{
    char byte = (char)number;
    mix_text(self, (bay_str){&byte, 1});
}

/* ---- memory ---------------------------------------------------------------------------------- */

static bay_err no_room(const policy_rules *self, bay_diag *diag)
{
    return self->memory.is_full ? diag_set(diag, BAY_ERR_LIMIT, "the rules are too large")
                                : diag_set(diag, BAY_ERR_NOMEM, "out of memory");
}

bay_err policy_rules_new(policy_effect fallback, bool hides_locked, policy_rules **out)
{
    CHECK(fallback != POLICY_APPROVE);
    policy_rules *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    atomic_init(&self->references, 1);
    self->fallback = fallback;
    self->hides_locked = hides_locked;
    mix_number(self, 1 + (unsigned)fallback * 2 + hides_locked);
    arena_init(&self->memory, POLICY_RULES_BYTES);
    *out = self;
    return BAY_OK;
}

policy_rules *policy_rules_ref(policy_rules *self)
{
    if (self != NULL) {
        atomic_fetch_add_explicit(&self->references, 1, memory_order_relaxed);
    }
    return self;
}

void policy_rules_unref(policy_rules *self)
{
    if (self == NULL ||
        atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (const pattern_link *at = self->patterns; at != NULL; at = at->next) {
        pattern_free(at->pattern);
    }
    if (self->engine != NULL) {
        pattern_engine_free(self->engine);
    }
    arena_wipe(&self->memory); /* values may come from the environment */
    mem_free(self);
}

/* ---- rules ----------------------------------------------------------------------------------- */

bay_err policy_rules_add(policy_rules *self, policy_effect effect, uint32_t line, bay_str by,
                         policy_rule **out)
{
    if (self->count == POLICY_RULES) {
        return BAY_ERR_LIMIT;
    }
    policy_rule *rule = arena_zalloc(&self->memory, sizeof(*rule));
    if (rule == NULL || arena_dup(&self->memory, by, &rule->by) != BAY_OK) {
        return self->memory.is_full ? BAY_ERR_LIMIT : BAY_ERR_NOMEM;
    }
    rule->effect = effect;
    rule->line = line;
    mix_number(self, 8 + (unsigned)effect);
    mix_text(self, by);
    if (self->last != NULL) {
        self->last->next = rule;
    } else {
        self->first = rule;
    }
    self->last = rule;
    self->count++;
    *out = rule;
    return BAY_OK;
}

static policy_text *add_text(policy_rules *self, policy_text **list, bay_str text)
{
    policy_text *made = arena_zalloc(&self->memory, sizeof(*made));
    if (made == NULL || arena_dup(&self->memory, text, &made->text) != BAY_OK) {
        return NULL;
    }
    made->next = *list;
    *list = made;
    mix_text(self, text);
    return made;
}

static bool is_uri_kind(policy_kind kind)
{
    return kind == POLICY_RESOURCE || kind == POLICY_SKILL;
}

/* A word before the first colon is a kind; with a separator that has a colon it may also be part of
 * a tool's name. */
static bool split_kind(bay_str *about, bay_str separator, policy_kind *out)
{
    size_t colon = str_find(*about, ':');
    bay_str word = str_head(*about, colon);
    *out = POLICY_TOOL;
    if (colon == about->len) {
        return true;
    }
    for (policy_kind kind = 0; kind < POLICY_KINDS; kind++) {
        if (kind_names[kind] != NULL && str_eq(str_of(kind_names[kind]), word)) {
            *about = str_from(*about, colon + 1);
            *out = kind;
            return true;
        }
    }
    return str_find(separator, ':') < separator.len;
}

static const char *nearest_kind(bay_str word)
{
    const char *nearest = "tool";
    size_t least = SIZE_MAX;
    for (policy_kind kind = 0; kind < POLICY_KINDS; kind++) {
        bay_str name = str_of(kind_names[kind]);
        size_t distance = name.at != NULL && word.len <= 64 ? str_distance(name, word) : SIZE_MAX;
        if (distance < least) {
            least = distance;
            nearest = name.at;
        }
    }
    return nearest;
}

bay_err policy_rule_about(policy_rules *self, policy_rule *rule, bay_str about, bay_str separator,
                          bay_diag *diag)
{
    policy_kind kind;
    bay_str rest = about;
    if (!split_kind(&rest, separator, &kind)) {
        return diag_set(diag, BAY_ERR_SYNTAX,
                        "what stands before the colon is no kind: did you mean \"%s:\"? Kinds are "
                        "tool, prompt, resource, skill and agent",
                        nearest_kind(str_head(about, str_find(about, ':'))));
    }
    if (rest.len == 0 || rest.len > POLICY_PATTERN_BYTES) {
        return diag_set(diag, BAY_ERR_SYNTAX, "a pattern needs 1 to %d bytes",
                        POLICY_PATTERN_BYTES);
    }
    mix_number(self, 64 + (unsigned)kind);
    policy_text *made = add_text(self, &rule->about, rest);
    if (made == NULL) {
        return no_room(self, diag);
    }
    made->kind = kind;
    if (!is_uri_kind(kind)) {
        return BAY_OK;
    }
    buf plain;
    buf_init(&plain, 8 * POLICY_PATTERN_BYTES);
    uri_plain_pattern(&plain, rest);
    bay_err err = plain.err;
    if (err == BAY_OK) {
        err = arena_dup(&self->memory, buf_view(&plain), &made->plain);
    }
    buf_fini(&plain);
    return err == BAY_OK ? BAY_OK : no_room(self, diag);
}

bay_err policy_rule_server(policy_rules *self, policy_rule *rule, bay_str name)
{
    mix_number(self, 80);
    return add_text(self, &rule->servers, name) != NULL ? BAY_OK : no_room(self, NULL);
}

bay_err policy_rule_method(policy_rules *self, policy_rule *rule, bay_str glob)
{
    mix_number(self, 81);
    return add_text(self, &rule->methods, glob) != NULL ? BAY_OK : no_room(self, NULL);
}

bay_err policy_rules_group(policy_rules *self, bay_str name, policy_group **out)
{
    policy_group *made = arena_zalloc(&self->memory, sizeof(*made));
    if (made == NULL || arena_dup(&self->memory, name, &made->name) != BAY_OK) {
        return no_room(self, NULL);
    }
    made->next = self->groups;
    self->groups = made;
    mix_text(self, name);
    *out = made;
    return BAY_OK;
}

/* ---- conditions ------------------------------------------------------------------------------ */

static bool find_operator(bay_str name, policy_operator *out)
{
    for (size_t i = 0; i < OPERATORS; i++) {
        if (str_eq(str_of(operator_names[i]), name)) {
            *out = (policy_operator)i;
            return true;
        }
    }
    *out = OPERATOR_IN;
    return name.len == 0 || str_eq(name, STR("eq"));
}

static const char *nearest_operator(bay_str name)
{
    const char *nearest = "eq";
    size_t least = SIZE_MAX;
    for (size_t i = 0; i <= OPERATORS && name.len <= 64; i++) {
        size_t distance = str_distance(str_of(policy_operator_name(i)), name);
        if (distance < least) {
            least = distance;
            nearest = policy_operator_name(i);
        }
    }
    return nearest;
}

/* RFC 6901: `~1` is a slash, `~0` a tilde. */
static bool read_token(bay_str raw, char *to, bay_str *out)
{
    size_t len = 0;
    for (size_t i = 0; i < raw.len; i++) {
        if (raw.at[i] != '~') {
            to[len++] = raw.at[i];
        } else if (i + 1 < raw.len && (raw.at[i + 1] == '0' || raw.at[i + 1] == '1')) {
            to[len++] = raw.at[++i] == '0' ? '~' : '/';
        } else {
            return false;
        }
    }
    *out = (bay_str){to, len};
    return true;
}

static bay_err read_pointer(policy_rules *self, policy_condition *made, bay_diag *diag)
{
    bay_str rest = made->key;
    size_t count = 0;
    for (size_t i = 0; i < rest.len; i++) {
        count += rest.at[i] == '/';
    }
    bay_str *tokens = arena_array(&self->memory, count + 1, sizeof(*tokens));
    char *text = arena_alloc(&self->memory, rest.len + 1);
    if (tokens == NULL || text == NULL) {
        return no_room(self, diag);
    }
    if (rest.len == 0 || rest.at[0] != '/') {
        return diag_set(diag, BAY_ERR_SYNTAX,
                        "\"%.*s\" is no pointer: write the names on the way, each behind a slash: "
                        "/%.*s, or /a/b for b inside of a",
                        BAY_STR(str_head(rest, 64)), BAY_STR(str_head(rest, 64)));
    }
    for (size_t i = 0; i < count; i++) {
        rest = str_from(rest, 1);
        size_t end = str_find(rest, '/');
        if (!read_token(str_head(rest, end), text, &tokens[i])) {
            return diag_set(diag, BAY_ERR_SYNTAX,
                            "\"%.*s\": a ~ in a pointer is followed by 0 or 1",
                            BAY_STR(str_head(made->key, 64)));
        }
        text += tokens[i].len;
        rest = str_from(rest, end);
    }
    made->tokens = tokens;
    made->token_count = count;
    return BAY_OK;
}

static bay_err read_networks(policy_rules *self, policy_condition *made, bay_diag *diag)
{
    net_network *networks = arena_array(&self->memory, made->value_count, sizeof(*networks));
    if (networks == NULL) {
        return no_room(self, diag);
    }
    for (size_t i = 0; i < made->value_count; i++) {
        if (network_parse(made->values[i], &networks[i]) != BAY_OK) {
            return diag_set(diag, BAY_ERR_SYNTAX,
                            "entry %zu is no address and no network: write 10.0.0.7, 10.0.0.0/8 or "
                            "fd00::/8",
                            i + 1);
        }
    }
    made->networks = networks;
    return BAY_OK;
}

/* The whole text has to match. The expression is compiled alone first: one that only the brackets
 * around it complete is none. */
static bay_err compile(policy_rules *self, bay_str text, pattern **out, bay_diag *diag)
{
    bay_diag why = {0};
    pattern *alone = NULL;
    bay_err err = pattern_new(self->engine, text, 1 << 20, &alone, &why);
    pattern_free(alone);
    buf whole;
    buf_init(&whole, POLICY_REGEX_BYTES + 16);
    buf_lit(&whole, "^(?:");
    buf_str(&whole, text);
    buf_lit(&whole, ")$");
    err = err == BAY_OK ? whole.err : err;
    if (err == BAY_OK) {
        err = pattern_new(self->engine, buf_view(&whole), 1 << 20, out, &why);
    }
    buf_fini(&whole);
    if (err == BAY_ERR_NOMEM) {
        return diag_set(diag, err, "out of memory");
    }
    return err == BAY_OK ? BAY_OK
                         : diag_set(diag, BAY_ERR_SYNTAX, "this is no regular expression: %.80s",
                                    why.text[0] != '\0' ? why.text : bay_err_text(err));
}

static bay_err read_patterns(policy_rules *self, policy_condition *made, bay_diag *diag)
{
    if (self->engine == NULL && (self->engine = pattern_engine_new()) == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    made->patterns = arena_array(&self->memory, made->value_count, sizeof(pattern *));
    for (size_t i = 0; made->patterns != NULL && i < made->value_count; i++) {
        pattern_link *link = arena_zalloc(&self->memory, sizeof(*link));
        if (link == NULL) {
            return no_room(self, diag);
        }
        if (made->values[i].len > POLICY_REGEX_BYTES) {
            return diag_set(diag, BAY_ERR_SYNTAX, "a regular expression has at most %d bytes",
                            POLICY_REGEX_BYTES);
        }
        bay_err err = compile(self, made->values[i], &link->pattern, diag);
        if (err != BAY_OK) {
            return err;
        }
        link->next = self->patterns;
        self->patterns = link;
        made->patterns[i] = link->pattern;
    }
    return made->patterns != NULL ? BAY_OK : no_room(self, diag);
}

static bay_err check_numbers(const policy_condition *made, bay_diag *diag)
{
    for (size_t i = 0; i < made->value_count; i++) {
        if (!policy_is_number(made->values[i])) {
            return diag_set(diag, BAY_ERR_SYNTAX, "%s compares with a number, as JSON writes it",
                            operator_names[made->op]);
        }
    }
    return made->value_count == 1
               ? BAY_OK
               : diag_set(diag, BAY_ERR_SYNTAX, "%s takes one number", operator_names[made->op]);
}

/* "https://docs.example" is also how "https://docs.example.evil" begins. */
static bay_err check_prefixes(const policy_condition *made, bay_diag *diag)
{
    for (size_t i = 0; i < made->value_count; i++) {
        uri parts;
        bay_str value = made->values[i];
        if (value.len == 0) {
            return diag_set(diag, BAY_ERR_SYNTAX, "%s needs a text that is not empty",
                            operator_names[made->op]);
        }
        if (made->op == OPERATOR_PREFIX && uri_parse(&parts, value) == BAY_OK &&
            parts.has_authority && parts.path.len == 0) {
            return diag_set(diag, BAY_ERR_SYNTAX,
                            "entry %zu is also how other hosts begin: end it with a slash, or use "
                            "host",
                            i + 1);
        }
    }
    return BAY_OK;
}

static bay_err read_exists(policy_condition *made, bay_diag *diag)
{
    made->is_wanted = made->value_count == 1 && str_eq(made->values[0], STR("true"));
    return made->is_wanted || (made->value_count == 1 && str_eq(made->values[0], STR("false")))
               ? BAY_OK
               : diag_set(diag, BAY_ERR_SYNTAX, "exists is true or false");
}

static bay_err read_same_as(policy_rules *self, policy_condition *made, bay_diag *diag)
{
    if (made->value_count != 1 || made->values[0].len == 0 || made->values[0].at[0] != '/') {
        return diag_set(diag, BAY_ERR_SYNTAX, "sameAs names one claim by its pointer, as in /sub");
    }
    (void)self;
    return BAY_OK;
}

static bay_err read_values(policy_rules *self, policy_condition *made, bay_diag *diag)
{
    switch (made->op) {
    case OPERATOR_LT:
    case OPERATOR_LE:
    case OPERATOR_GT:
    case OPERATOR_GE:
        return check_numbers(made, diag);
    case OPERATOR_CIDR:
        return read_networks(self, made, diag);
    case OPERATOR_REGEX:
        return read_patterns(self, made, diag);
    case OPERATOR_EXISTS:
        return read_exists(made, diag);
    case OPERATOR_SAME_AS:
        return read_same_as(self, made, diag);
    case OPERATOR_PREFIX:
    case OPERATOR_SUFFIX:
    case OPERATOR_GLOB:
        for (size_t i = 0; i < made->value_count; i++) {
            made->is_path |= str_find(made->values[i], '/') < made->values[i].len;
        }
        return check_prefixes(made, diag);
    default:
        return BAY_OK;
    }
}

static bay_err find_groups(policy_rules *self, policy_condition *made, bay_diag *diag)
{
    made->groups = arena_array(&self->memory, made->value_count, sizeof(policy_group *));
    for (size_t i = 0; made->groups != NULL && i < made->value_count; i++) {
        const char *nearest = NULL;
        size_t least = SIZE_MAX;
        for (const policy_group *at = self->groups; at != NULL; at = at->next) {
            bool is_short = at->name.len <= 64 && made->values[i].len <= 64;
            size_t distance = is_short ? str_distance(at->name, made->values[i]) : SIZE_MAX;
            if (str_eq(at->name, made->values[i])) {
                made->groups[i] = at;
            }
            if (distance < least) {
                least = distance;
                nearest = at->name.at;
            }
        }
        if (made->groups[i] == NULL && nearest != NULL) {
            return diag_set(diag, BAY_ERR_SYNTAX,
                            "there is no group of that name: did you mean "
                            "\"%.64s\"?",
                            nearest);
        }
        if (made->groups[i] == NULL) {
            return diag_set(diag, BAY_ERR_SYNTAX,
                            "there is no group of that name: write it below groups");
        }
    }
    return made->groups != NULL ? BAY_OK : no_room(self, diag);
}

/* A header field that some rule reads is asked for by every call. */
static bay_err add_header(policy_rules *self, policy_condition *made, bay_diag *diag)
{
    char *text = arena_alloc(&self->memory, made->key.len + 1);
    if (text == NULL) {
        return no_room(self, diag);
    }
    for (size_t i = 0; i < made->key.len; i++) {
        text[i] = char_lower(made->key.at[i]);
    }
    made->key.at = text;
    for (size_t i = 0; i < self->header_count; i++) {
        if (str_eq(self->headers[i], made->key)) {
            return BAY_OK;
        }
    }
    if (self->header_count == POLICY_HEADERS) {
        return diag_set(diag, BAY_ERR_LIMIT, "rules read at most %d header fields", POLICY_HEADERS);
    }
    self->headers[self->header_count++] = made->key;
    return BAY_OK;
}

static bay_err join_scopes(policy_rules *self, policy_condition *made, bay_diag *diag)
{
    size_t bytes = 1;
    for (size_t i = 0; i < made->value_count; i++) {
        bytes += made->values[i].len + 1;
    }
    char *text = arena_alloc(&self->memory, bytes);
    if (text == NULL) {
        return no_room(self, diag);
    }
    made->joined = (bay_str){text, 0};
    for (size_t i = 0; i < made->value_count; i++) {
        if (i > 0) {
            text[made->joined.len++] = ' ';
        }
        if (made->values[i].len > 0) {
            memcpy(text + made->joined.len, made->values[i].at, made->values[i].len);
        }
        made->joined.len += made->values[i].len;
    }
    return BAY_OK;
}

static bay_err read_field(policy_rules *self, policy_condition *made, bay_diag *diag)
{
    switch (made->field) {
    case POLICY_CLAIM:
    case POLICY_ARGUMENT:
        return read_pointer(self, made, diag);
    case POLICY_HEADER:
        return add_header(self, made, diag);
    case POLICY_ADDRESS:
        self->reads_address = true;
        made->op = OPERATOR_CIDR;
        return BAY_OK;
    case POLICY_GROUP:
        return find_groups(self, made, diag);
    case POLICY_SCOPES:
        return join_scopes(self, made, diag);
    default:
        return BAY_OK;
    }
}

static bay_err make_condition(policy_rules *self, const policy_test *test, policy_condition **out,
                              bay_diag *diag)
{
    policy_condition *made = arena_zalloc(&self->memory, sizeof(*made));
    bay_str *values = arena_array(&self->memory, test->count + 1, sizeof(*values));
    if (made == NULL || values == NULL ||
        arena_dup(&self->memory, test->key, &made->key) != BAY_OK) {
        return no_room(self, diag);
    }
    if (!find_operator(test->op, &made->op)) {
        return diag_set(diag, BAY_ERR_SYNTAX, "there is no operator \"%.*s\": did you mean \"%s\"?",
                        BAY_STR(str_head(test->op, 64)), nearest_operator(test->op));
    }
    if (test->count == 0) {
        return diag_set(diag, BAY_ERR_SYNTAX, "%s needs a value to compare with",
                        operator_names[made->op]);
    }
    for (size_t i = 0; i < test->count; i++) {
        if (arena_dup(&self->memory, test->values[i], &values[i]) != BAY_OK) {
            return no_room(self, diag);
        }
    }
    mix_number(self, 16 + (unsigned)made->op);
    mix_number(self, (unsigned)test->field);
    mix_text(self, test->key);
    for (size_t i = 0; i < test->count; i++) {
        mix_text(self, test->values[i]);
    }
    made->field = test->field;
    made->values = values;
    made->value_count = test->count;
    bay_err err = read_field(self, made, diag);
    err = err == BAY_OK ? read_values(self, made, diag) : err;
    *out = made;
    return err;
}

static bay_err add_condition(policy_rules *self, policy_condition **list, size_t *count,
                             const policy_test *test, bay_diag *diag)
{
    policy_condition *made = NULL;
    if (*count == POLICY_CONDITIONS) {
        return diag_set(diag, BAY_ERR_LIMIT, "more than %d conditions", POLICY_CONDITIONS);
    }
    bay_err err = make_condition(self, test, &made, diag);
    if (err == BAY_OK) {
        made->next = *list;
        *list = made;
        (*count)++;
    }
    return err;
}

bay_err policy_rule_if(policy_rules *self, policy_rule *rule, const policy_test *test,
                       bay_diag *diag)
{
    bool is_argument = test->field == POLICY_ARGUMENT;
    return add_condition(self, is_argument ? &rule->arguments : &rule->identity,
                         &rule->condition_count, test, diag);
}

bay_err policy_group_if(policy_rules *self, policy_group *group, const policy_test *test,
                        bay_diag *diag)
{
    CHECK(test->field != POLICY_ARGUMENT && test->field != POLICY_GROUP);
    return add_condition(self, &group->conditions, &group->condition_count, test, diag);
}

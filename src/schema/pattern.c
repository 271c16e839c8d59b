/* Translates ECMA-262 regular expressions to PCRE2. The whole grammar is read, so that no extension
 * of PCRE2 (verbs, recursion, POSIX classes, inline options, \A, \K, \Q) is accepted, and syntax
 * with different meanings is rewritten. Source: ECMA-262 22.2.1, with the u flag. */
#include "schema/pattern.h"

#include "base/err.h"
#include "base/str.h"

typedef struct reader {
    bay_str text;
    size_t at;
    bool is_strict;
    bool is_discarding; /* only the grammar matters: `out` is emptied repeatedly */
    buf *out;
    bay_diag *diag;
    bay_err err;
} reader;

/* \s: white space and line terminators, and the rest of the characters. */
#define SPACES                                                                                     \
    "\\x{9}-\\x{d}\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}"                    \
    "\\x{202f}\\x{205f}\\x{3000}\\x{feff}"
#define NO_SPACES                                                                                  \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}"               \
    "\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}"                 \
    "\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}"

/* The value of an escape: one character, or a class that is written already. */
enum { IS_CLASS = -1, IS_ERROR = -2 };

static int fail_as(reader *self, bay_err err, size_t at, const char *what)
{
    if (self->err == BAY_OK) {
        self->err = diag_at(self->diag, err, at, "at %zu of the regular expression: %s", at, what);
    }
    return IS_ERROR;
}

static int pattern_fail(reader *self, const char *what)
{
    return fail_as(self, BAY_ERR_SYNTAX, self->at, what);
}

static int peek(const reader *self, size_t ahead)
{
    return self->at + ahead < self->text.len ? (unsigned char)self->text.at[self->at + ahead] : -1;
}

static bool pattern_take(reader *self, char c)
{
    bool is_there = peek(self, 0) == (unsigned char)c;
    self->at += is_there;
    return is_there;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_syntax(int c)
{
    return c > 0 && c < 0x80 && str_find(STR("^$\\.*+?()[]{}|/"), (char)c) < 15;
}

static int hex_digit(int c)
{
    if (is_digit(c)) {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* `count` hexadecimal digits; -1: there are fewer. */
static int read_hex(reader *self, size_t count)
{
    int code = 0;
    for (size_t i = 0; i < count; i++) {
        int digit = hex_digit(peek(self, i));
        if (digit < 0) {
            return -1;
        }
        code = code * 16 + digit;
    }
    self->at += count;
    return code;
}

static void put_code(reader *self, int code)
{
    buf_printf(self->out, "\\x{%x}", (unsigned)code);
}

/* After \u. */
static int read_unicode(reader *self)
{
    if (pattern_take(self, '{')) {
        int code = 0;
        size_t digits = 0;
        for (int digit = hex_digit(peek(self, 0)); digit >= 0; digit = hex_digit(peek(self, 0))) {
            code = code * 16 + digit;
            self->at++;
            digits++;
            if (code > 0x10ffff) {
                return pattern_fail(self, "no such character");
            }
        }
        return digits > 0 && pattern_take(self, '}')
                   ? code
                   : pattern_fail(self, "\\u{ needs digits and a }");
    }
    int high = read_hex(self, 4);
    if (high < 0) {
        return pattern_fail(self, "\\u needs four hexadecimal digits");
    }
    if (high >= 0xd800 && high <= 0xdbff && peek(self, 0) == '\\' && peek(self, 1) == 'u') {
        size_t before = self->at;
        self->at += 2;
        int low = read_hex(self, 4);
        if (low >= 0xdc00 && low <= 0xdfff) {
            return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        }
        self->at = before;
    }
    if (high >= 0xd800 && high <= 0xdfff) {
        return fail_as(self, BAY_ERR_UNSUPPORTED, self->at, "half of a surrogate pair");
    }
    return high;
}

/* The long names of general categories, for PCRE2 knows only the short ones. */
static bay_str category(bay_str name)
{
    static const struct {
        bay_str name;
        bay_str code;
    } names[] = {
#define CATEGORY(name, code) {STR_INIT(name), STR_INIT(code)}
        CATEGORY("Cased_Letter", "L&"),
        CATEGORY("LC", "L&"),
        CATEGORY("Close_Punctuation", "Pe"),
        CATEGORY("Connector_Punctuation", "Pc"),
        CATEGORY("Control", "Cc"),
        CATEGORY("cntrl", "Cc"),
        CATEGORY("Currency_Symbol", "Sc"),
        CATEGORY("Dash_Punctuation", "Pd"),
        CATEGORY("Decimal_Number", "Nd"),
        CATEGORY("digit", "Nd"),
        CATEGORY("Enclosing_Mark", "Me"),
        CATEGORY("Final_Punctuation", "Pf"),
        CATEGORY("Format", "Cf"),
        CATEGORY("Initial_Punctuation", "Pi"),
        CATEGORY("Letter", "L"),
        CATEGORY("Letter_Number", "Nl"),
        CATEGORY("Line_Separator", "Zl"),
        CATEGORY("Lowercase_Letter", "Ll"),
        CATEGORY("Mark", "M"),
        CATEGORY("Combining_Mark", "M"),
        CATEGORY("Math_Symbol", "Sm"),
        CATEGORY("Modifier_Letter", "Lm"),
        CATEGORY("Modifier_Symbol", "Sk"),
        CATEGORY("Nonspacing_Mark", "Mn"),
        CATEGORY("Number", "N"),
        CATEGORY("Open_Punctuation", "Ps"),
        CATEGORY("Other", "C"),
        CATEGORY("Other_Letter", "Lo"),
        CATEGORY("Other_Number", "No"),
        CATEGORY("Other_Punctuation", "Po"),
        CATEGORY("Other_Symbol", "So"),
        CATEGORY("Paragraph_Separator", "Zp"),
        CATEGORY("Private_Use", "Co"),
        CATEGORY("Punctuation", "P"),
        CATEGORY("punct", "P"),
        CATEGORY("Separator", "Z"),
        CATEGORY("Space_Separator", "Zs"),
        CATEGORY("Spacing_Mark", "Mc"),
        CATEGORY("Surrogate", "Cs"),
        CATEGORY("Symbol", "S"),
        CATEGORY("Titlecase_Letter", "Lt"),
        CATEGORY("Unassigned", "Cn"),
        CATEGORY("Uppercase_Letter", "Lu"),
#undef CATEGORY
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (str_eq(name, names[i].name)) {
            return names[i].code;
        }
    }
    return name;
}

/* After \p or \P: {Name} or {Name=Value}. */
static int read_property(reader *self, char letter)
{
    if (!pattern_take(self, '{')) {
        return pattern_fail(self, "\\p needs a property in braces");
    }
    bay_str rest = str_from(self->text, self->at);
    bay_str name = str_head(rest, str_find(rest, '}'));
    if (name.len == rest.len || name.len == 0) {
        return pattern_fail(self, "\\p needs a property in braces");
    }
    for (size_t i = 0; i < name.len; i++) {
        if (!is_letter(name.at[i]) && !is_digit(name.at[i]) && name.at[i] != '_' &&
            name.at[i] != '=') {
            return pattern_fail(self, "no property has such a name");
        }
    }
    self->at += name.len + 1;
    size_t equals = str_find(name, '=');
    bay_str key = equals < name.len ? str_head(name, equals) : (bay_str){"", 0};
    bay_str value = equals < name.len ? str_from(name, equals + 1) : name;
    bool is_script = str_eq(key, STR("Script")) || str_eq(key, STR("sc"));
    bool is_extended = str_eq(key, STR("Script_Extensions")) || str_eq(key, STR("scx"));
    bool is_category = str_eq(key, STR("General_Category")) || str_eq(key, STR("gc"));
    if (key.len > 0 && !is_script && !is_extended && !is_category) {
        return pattern_fail(self, "no property has such a name");
    }
    value = is_script || is_extended ? value : category(value);
    buf_printf(self->out, "\\%c{%s%.*s}", letter,
               is_script     ? "sc:"
               : is_extended ? "scx:"
                             : "",
               BAY_STR(value));
    return IS_CLASS;
}

static int put_class(reader *self, const char *outside, const char *inside, bool in_class)
{
    buf_str(self->out, str_of(in_class ? inside : outside));
    return IS_CLASS;
}

/* An escape that is valid inside and outside of brackets; `self->at` is after the backslash. */
static int read_escape(reader *self, bool in_class)
{
    int c = peek(self, 0);
    self->at++;
    switch (c) {
    case 'd':
        return put_class(self, "[0-9]", "0-9", in_class);
    case 'D':
        return put_class(self, "[^0-9]", "\\x{0}-/:-\\x{10ffff}", in_class);
    case 'w':
        return put_class(self, "[A-Za-z0-9_]", "A-Za-z0-9_", in_class);
    case 'W':
        return put_class(self, "[^A-Za-z0-9_]", "\\x{0}-/:-@\\[-\\^`{-\\x{10ffff}", in_class);
    case 's':
        return put_class(self, "[" SPACES "]", SPACES, in_class);
    case 'S':
        return put_class(self, "[^" SPACES "]", NO_SPACES, in_class);
    case 'p':
    case 'P':
        return read_property(self, (char)c);
    case 't':
        return '\t';
    case 'n':
        return '\n';
    case 'v':
        return '\v';
    case 'f':
        return '\f';
    case 'r':
        return '\r';
    case '0':
        return is_digit(peek(self, 0)) ? pattern_fail(self, "no octal escapes") : 0;
    case 'c':
        c = peek(self, 0);
        self->at++;
        return is_letter(c) ? c % 32 : pattern_fail(self, "\\c needs a letter");
    case 'x':
        c = read_hex(self, 2);
        return c >= 0 ? c : pattern_fail(self, "\\x needs two hexadecimal digits");
    case 'u':
        return read_unicode(self);
    default:
        break;
    }
    bool is_allowed = is_syntax(c) || (in_class && c == '-') ||
                      (!self->is_strict && c > 0x20 && c < 0x7f && !is_letter(c) && !is_digit(c));
    if (!is_allowed) {
        self->at--;
        return pattern_fail(self, c < 0 ? "ends in a backslash" : "no such escape");
    }
    return c;
}

/* One character: its code. The text is UTF-8. */
static int read_character(reader *self)
{
    int lead = peek(self, 0);
    size_t more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
    int code = more == 0 ? lead : lead & (0x3f >> more);
    for (size_t i = 1; i <= more; i++) {
        code = code << 6 | (peek(self, i) & 0x3f);
    }
    self->at += more + 1;
    return code;
}

/* An end of a range: a character, or IS_CLASS for a class. */
static int read_class_atom(reader *self)
{
    if (!pattern_take(self, '\\')) {
        return read_character(self);
    }
    if (pattern_take(self, 'b')) {
        return '\b';
    }
    return read_escape(self, true);
}

/* After the '['. A '[' inside and other characters that PCRE2 could misread are written as codes.
 */
static void read_class(reader *self)
{
    size_t start = self->at;
    buf_char(self->out, '[');
    if (pattern_take(self, '^')) {
        buf_char(self->out, '^');
    }
    while (self->err == BAY_OK && !pattern_take(self, ']')) {
        if (peek(self, 0) < 0) {
            fail_as(self, BAY_ERR_SYNTAX, start, "this bracket is not closed");
            return;
        }
        if (self->is_discarding) {
            buf_clear(self->out);
        }
        int low = read_class_atom(self);
        if (low >= 0) {
            put_code(self, low);
        }
        if (low == IS_ERROR || peek(self, 0) != '-' || peek(self, 1) < 0 || peek(self, 1) == ']') {
            continue;
        }
        self->at++;
        int high = read_class_atom(self);
        if (low >= 0 && high >= 0) {
            if (low > high) {
                pattern_fail(self, "a range that runs backwards");
            }
            buf_char(self->out, '-');
            put_code(self, high);
        } else if (high != IS_ERROR && self->is_strict) {
            pattern_fail(self, "a class cannot end a range");
        } else if (high != IS_ERROR && self->out->err == BAY_OK) {
            put_code(self, '-'); /* then it is literal */
            if (high >= 0) {
                put_code(self, high);
            }
        }
    }
    buf_char(self->out, ']');
}

/* {n}, {n,} or {n,m} at `self->at`: its length, or 0. */
static size_t counts_len(const reader *self)
{
    size_t i = 1;
    if (peek(self, 0) != '{' || !is_digit(peek(self, 1))) {
        return 0;
    }
    while (is_digit(peek(self, i))) {
        i++;
    }
    if (peek(self, i) == ',') {
        i++;
        while (is_digit(peek(self, i))) {
            i++;
        }
    }
    return peek(self, i) == '}' ? i + 1 : 0;
}

static void check_counts(reader *self, bay_str counts)
{
    size_t comma = str_find(counts, ',');
    uint64_t least = 0;
    uint64_t most = 0;
    if (comma + 2 < counts.len && str_uint((bay_str){counts.at + 1, comma - 1}, &least) &&
        str_uint((bay_str){counts.at + comma + 1, counts.len - comma - 2}, &most) && least > most) {
        pattern_fail(self, "a count that runs backwards");
    }
}

/* Reads an optional quantifier after an atom. */
static void read_quantifier(reader *self, bool may_repeat)
{
    size_t counts = counts_len(self);
    int c = peek(self, 0);
    if (c != '*' && c != '+' && c != '?' && counts == 0) {
        return;
    }
    if (!may_repeat) {
        pattern_fail(self, "nothing to repeat");
        return;
    }
    bay_str quantifier = {self->text.at + self->at, counts > 0 ? counts : 1};
    if (counts > 0) {
        check_counts(self, quantifier);
    }
    buf_str(self->out, quantifier);
    self->at += quantifier.len;
    if (pattern_take(self, '?')) {
        buf_char(self->out, '?');
    }
    c = peek(self, 0);
    if (c == '*' || c == '+' || c == '?' || counts_len(self) > 0) {
        pattern_fail(self, "nothing to repeat");
    }
}

/* <name> at `self->at`, copied unchanged. */
static bool read_name(reader *self)
{
    bay_str rest = str_from(self->text, self->at);
    bay_str name = str_head(rest, str_find(rest, '>') + 1);
    bool holds = name.len > 2 && name.at[0] == '<' && str_ends(name, STR(">"));
    for (size_t i = 1; holds && i + 1 < name.len; i++) {
        int c = (unsigned char)name.at[i];
        holds = is_letter(c) || c == '_' || c == '$' || c >= 0x80 || (i > 1 && is_digit(c));
    }
    if (!holds) {
        pattern_fail(self, "a group's name is broken");
        return false;
    }
    buf_str(self->out, name);
    self->at += name.len;
    return true;
}

/* After the '('. *is_look: a look-around, which cannot be repeated (look-ahead: only if strict). */
static void read_group(reader *self, bool *may_repeat)
{
    static const char *const kinds[] = {"?:", "?=", "?!", "?<=", "?<!"};
    buf_char(self->out, '(');
    *may_repeat = true;
    bay_str rest = str_from(self->text, self->at);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (str_starts(rest, str_of(kinds[i]))) {
            buf_str(self->out, str_of(kinds[i]));
            self->at += strlen(kinds[i]);
            *may_repeat = i == 0 || (i < 3 && !self->is_strict);
            return;
        }
    }
    if (pattern_take(self, '?')) {
        buf_char(self->out, '?');
        if (peek(self, 0) != '<' || !read_name(self)) {
            pattern_fail(self, "no such group");
        }
    }
}

/* After a backslash, outside of brackets. */
static void read_outer_escape(reader *self, bool *may_repeat)
{
    int c = peek(self, 0);
    *may_repeat = true;
    if (c == 'b' || c == 'B') {
        self->at++;
        *may_repeat = false;
        buf_str(self->out, c == 'b' ? STR("\\b") : STR("\\B"));
    } else if (c == 'k') {
        self->at++;
        buf_lit(self->out, "\\k");
        read_name(self);
    } else if (c >= '1' && c <= '9') {
        size_t from = self->at;
        while (is_digit(peek(self, 0))) {
            self->at++;
        }
        buf_printf(self->out, "\\g{%.*s}", (int)(self->at - from), self->text.at + from);
    } else {
        int code = read_escape(self, false);
        if (code >= 0) {
            put_code(self, code);
        }
    }
}

/* A literal character, or one that is not allowed alone. */
static void read_literal(reader *self)
{
    int c = peek(self, 0);
    if (c == '*' || c == '+' || c == '?' ||
        (c == '{' && (self->is_strict || counts_len(self) > 0))) {
        pattern_fail(self, "nothing to repeat");
    } else if ((c == '}' || c == ']') && self->is_strict) {
        pattern_fail(self, "a bracket that closes nothing");
    } else {
        put_code(self, read_character(self));
    }
}

static bay_err translate(reader *start)
{
    enum { DEEPEST = 200 };
    reader self = *start;
    bay_str text = self.text;
    buf *out = self.out;
    bool may_repeat[DEEPEST]; /* of the open groups */
    size_t depth = 0;
    while (self.at < text.len && self.err == BAY_OK && out->err == BAY_OK) {
        if (self.is_discarding) {
            buf_clear(out);
        }
        bool repeats = true;
        int c = peek(&self, 0);
        if (c == '(' && depth == DEEPEST) {
            fail_as(&self, BAY_ERR_LIMIT, self.at, "groups nest too deeply");
        } else if (pattern_take(&self, '(')) {
            read_group(&self, &may_repeat[depth++]);
            continue;
        } else if (c == ')' && depth == 0) {
            pattern_fail(&self, "a bracket that closes nothing");
        } else if (pattern_take(&self, ')')) {
            buf_char(out, ')');
            repeats = may_repeat[--depth];
        } else if (pattern_take(&self, '|')) {
            buf_char(out, '|');
            continue;
        } else if (c == '^' || c == '$') {
            self.at++;
            buf_char(out, (char)c);
            repeats = false;
        } else if (pattern_take(&self, '.')) {
            buf_lit(out, "[^\\x{a}\\x{d}\\x{2028}\\x{2029}]");
        } else if (pattern_take(&self, '[')) {
            read_class(&self);
        } else if (pattern_take(&self, '\\')) {
            read_outer_escape(&self, &repeats);
        } else {
            read_literal(&self);
        }
        if (self.err == BAY_OK) {
            read_quantifier(&self, repeats);
        }
    }
    if (depth > 0) {
        pattern_fail(&self, "a group is not closed");
    }
    return self.err != BAY_OK ? self.err : out->err;
}

bay_err pattern_translate(bay_str text, bool is_strict, buf *out, bay_diag *diag)
{
    reader self = {.text = text, .is_strict = is_strict, .out = out, .diag = diag};
    return translate(&self);
}

bool pattern_is_valid(bay_str text)
{
    char room[1024]; /* more than any single step writes */
    buf discarded = {.at = room, .cap = sizeof(room), .max = sizeof(room)};
    reader self = {.text = text, .is_strict = true, .is_discarding = true, .out = &discarded};
    return translate(&self) == BAY_OK;
}

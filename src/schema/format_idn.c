/* Internationalised names: the labels that IDNA2008 allows, their Punycode, and the rule for names
 * with right-to-left labels. PCRE2 supplies general categories, scripts and Bidi classes of code
 * points. What it does not have (stability under normalisation, joining types) is approximated by
 * ranges, see docs/schema.md. Sources: RFC 5890 to 5893, RFC 3492. */
#include "base/str.h"
#include "schema/format.h"

enum { LABEL_BYTES = 63, NAME_BYTES = 253, LABEL_CODES = 64 };

/* Combining class 9: a joiner may follow. */
#define VIRAMA                                                                                     \
    "\\x{94d}\\x{9cd}\\x{a4d}\\x{acd}\\x{b4d}\\x{bcd}\\x{c4d}\\x{ccd}\\x{d3b}\\x{d3c}\\x{d4d}"     \
    "\\x{dca}\\x{e3a}\\x{eba}\\x{f84}\\x{1039}\\x{103a}\\x{1714}\\x{1734}\\x{17d2}\\x{1a60}"       \
    "\\x{1b44}\\x{1baa}\\x{1bab}\\x{1bf2}\\x{1bf3}\\x{2d7f}\\x{a806}\\x{a82c}\\x{a8c4}\\x{a953}"   \
    "\\x{a9c0}\\x{aaf6}\\x{abed}\\x{10a3f}\\x{11046}\\x{1107f}\\x{110b9}\\x{11133}\\x{11134}"      \
    "\\x{111c0}\\x{11235}\\x{112ea}\\x{1134d}\\x{11442}\\x{114c2}\\x{115bf}\\x{1163f}\\x{116b6}"   \
    "\\x{1172b}\\x{11839}\\x{119e0}\\x{11a34}\\x{11a47}\\x{11a99}\\x{11c3f}\\x{11d44}\\x{11d45}"   \
    "\\x{11d97}"

/* Arabic letters that join on both sides. */
#define DUAL_JOINING                                                                               \
    "\\x{620}\\x{626}\\x{628}\\x{62a}-\\x{62e}\\x{633}-\\x{63f}\\x{641}-\\x{647}\\x{649}\\x{64a}"  \
    "\\x{66e}\\x{66f}\\x{678}-\\x{687}\\x{69a}-\\x{6bf}\\x{6c1}\\x{6c2}\\x{6cc}\\x{6ce}\\x{6d0}"   \
    "\\x{6d1}\\x{6fa}-\\x{6fc}\\x{6ff}\\x{750}-\\x{758}\\x{75c}-\\x{76a}\\x{76d}-\\x{770}"

/* Letters that are not PVALID: compatibility forms, conjoining Jamo, and RFC 5892 section 2.6. */
#define NOT_VALID                                                                                  \
    "\\x{aa}\\x{ba}\\x{132}-\\x{133}\\x{13f}\\x{140}\\x{149}\\x{17f}\\x{1c4}-\\x{1cc}"             \
    "\\x{1f1}-\\x{1f3}\\x{2b0}-\\x{2b8}\\x{2e0}-\\x{2e4}\\x{340}\\x{341}\\x{343}\\x{344}\\x{345}"  \
    "\\x{34f}\\x{374}\\x{37a}\\x{3d0}-\\x{3d6}\\x{3f0}-\\x{3f2}\\x{3f5}\\x{640}\\x{675}-\\x{678}"  \
    "\\x{7fa}\\x{e33}\\x{eb3}\\x{1100}-\\x{11ff}\\x{17b4}\\x{17b5}\\x{180b}-\\x{180f}"             \
    "\\x{1d2c}-\\x{1d2e}\\x{1d30}-\\x{1d3a}\\x{1d3c}-\\x{1d4d}\\x{1d4f}-\\x{1d6a}\\x{1d78}"        \
    "\\x{1d9b}-\\x{1dbf}\\x{1e9a}\\x{1e9b}\\x{2071}\\x{207f}\\x{2090}-\\x{209c}\\x{20d0}-\\x{"     \
    "20ff}"                                                                                        \
    "\\x{2102}-\\x{214d}\\x{302e}\\x{302f}\\x{3031}-\\x{3035}\\x{303b}\\x{309f}\\x{30ff}"          \
    "\\x{3131}-\\x{318e}\\x{a960}-\\x{a97f}\\x{d7b0}-\\x{d7ff}\\x{f900}-\\x{fa0d}\\x{fa10}\\x{"    \
    "fa12}"                                                                                        \
    "\\x{fa15}-\\x{fa1e}\\x{fa20}\\x{fa22}\\x{fa25}\\x{fa26}\\x{fa2a}-\\x{fdff}\\x{fe00}-\\x{"     \
    "fe0f}"                                                                                        \
    "\\x{fe70}-\\x{ffef}\\x{1d400}-\\x{1d7ff}\\x{1ee00}-\\x{1eeff}\\x{2f800}-\\x{2fa1f}"           \
    "\\x{e0100}-\\x{e01ef}"

static const char *const expressions[IDN_PATTERNS] = {
    [IDN_LABEL] = "^(?!\\p{M})(?=[^\\x{30fb}]*$|.*[\\p{sc:Hiragana}\\p{sc:Katakana}\\p{sc:Han}])"
                  "(?!.*[\\x{660}-\\x{669}].*[\\x{6f0}-\\x{6f9}])"
                  "(?!.*[\\x{6f0}-\\x{6f9}].*[\\x{660}-\\x{669}])"
                  "(?:(?![" NOT_VALID
                  "])[\\p{Ll}\\p{Lo}\\p{Lm}\\p{Mn}\\p{Mc}\\p{Nd}\\-\\x{6fd}\\x{6fe}\\x{f0b}"
                  "\\x{3007}\\x{30fb}]|(?<=l)\\x{b7}(?=l)|\\x{375}(?=\\p{sc:Greek})|"
                  "(?<=\\p{sc:Hebrew})[\\x{5f3}\\x{5f4}]|(?<=[" VIRAMA "])[\\x{200c}\\x{200d}]|"
                  "(?:(?<=[" DUAL_JOINING "])|(?<=[" DUAL_JOINING
                  "]\\p{Mn}))\\x{200c}(?=\\p{Mn}*\\p{sc:Arabic}))+$",
    [IDN_HAS_RTL] = "[\\p{bidi_class:R}\\p{bidi_class:AL}\\p{bidi_class:AN}]",
    [IDN_BIDI_LABEL] =
        "^(?:\\p{bidi_class:L}[\\p{bidi_class:L}\\p{bidi_class:EN}\\p{bidi_class:ES}"
        "\\p{bidi_class:CS}\\p{bidi_class:ET}\\p{bidi_class:ON}\\p{bidi_class:BN}"
        "\\p{bidi_class:NSM}]*(?<=[\\p{bidi_class:L}\\p{bidi_class:EN}\\p{bidi_class:NSM}])|"
        "(?!.*\\p{bidi_class:EN}.*\\p{bidi_class:AN})(?!.*\\p{bidi_class:AN}.*\\p{bidi_class:EN})"
        "[\\p{bidi_class:R}\\p{bidi_class:AL}][\\p{bidi_class:R}\\p{bidi_class:AL}"
        "\\p{bidi_class:AN}\\p{bidi_class:EN}\\p{bidi_class:ES}\\p{bidi_class:CS}"
        "\\p{bidi_class:ET}\\p{bidi_class:ON}\\p{bidi_class:BN}\\p{bidi_class:NSM}]*"
        "(?<=[\\p{bidi_class:R}\\p{bidi_class:AL}\\p{bidi_class:EN}\\p{bidi_class:AN}"
        "\\p{bidi_class:NSM}]))$",
};

bay_err format_idn_new(const pattern_engine *engine, pattern *out[IDN_PATTERNS])
{
    for (size_t i = 0; i < IDN_PATTERNS; i++) {
        bay_err err = pattern_new_native(engine, str_of(expressions[i]), &out[i]);
        if (err != BAY_OK) {
            return err;
        }
    }
    return BAY_OK;
}

static bool matches(format_tools *tools, idn_pattern which, bay_str text)
{
    bool holds = which != IDN_HAS_RTL; /* without PCRE2, Unicode is not checked */
    if (tools->err == BAY_OK && tools->idn[which] != NULL) {
        tools->err = pattern_matches(tools->idn[which], tools->engine, text, tools->match,
                                     tools->steps, &holds);
    }
    return holds;
}

/* RFC 3492 section 6.1 */
static uint32_t adapt(uint32_t delta, uint32_t points, bool is_first)
{
    uint32_t k = 0;
    delta = is_first ? delta / 700 : delta / 2;
    delta += delta / points;
    while (delta > 455) {
        delta /= 35;
        k += 36;
    }
    return k + 36 * delta / (delta + 38);
}

static uint32_t threshold(uint32_t k, uint32_t bias)
{
    return k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
}

static int digit_of(int c)
{
    return format_is_digit(c) ? c - '0' + 26 : format_is_letter(c) ? (c | 0x20) - 'a' : -1;
}

/* The code points that `text`, without its "xn--", encodes; 0: invalid. */
static size_t decode(bay_str text, uint32_t out[LABEL_CODES])
{
    size_t count = 0;
    size_t delimiter = str_find_last(text, '-');
    if (delimiter < text.len) {
        for (; count < delimiter; count++) {
            int c = (unsigned char)text.at[count];
            out[count] = (uint32_t)(format_is_letter(c) ? c | 0x20 : c);
        }
        text = str_from(text, delimiter + 1);
    }
    uint32_t n = 128;
    uint32_t bias = 72;
    uint32_t i = 0;
    for (size_t at = 0; at < text.len;) {
        uint32_t before = i;
        uint32_t weight = 1;
        for (uint32_t k = 36;; k += 36) {
            int digit = at < text.len ? digit_of((unsigned char)text.at[at++]) : -1;
            uint32_t more;
            if (digit < 0 || __builtin_mul_overflow((uint32_t)digit, weight, &more) ||
                __builtin_add_overflow(i, more, &i)) {
                return 0;
            }
            uint32_t least = threshold(k, bias);
            if ((uint32_t)digit < least) {
                break;
            }
            if (__builtin_mul_overflow(weight, 36 - least, &weight)) {
                return 0;
            }
        }
        bias = adapt(i - before, (uint32_t)count + 1, before == 0);
        n += i / ((uint32_t)count + 1);
        i %= (uint32_t)count + 1;
        if (n > 0x10ffff || (n >= 0xd800 && n <= 0xdfff) || count == LABEL_CODES) {
            return 0;
        }
        for (size_t j = count; j > i; j--) {
            out[j] = out[j - 1];
        }
        out[i++] = n;
        count++;
    }
    return count;
}

static char letter_of(uint32_t digit)
{
    return (char)(digit < 26 ? 'a' + digit : '0' + digit - 26);
}

/* One difference as digits of a variable base; false: no room. */
static bool put_delta(uint32_t delta, uint32_t bias, char out[LABEL_BYTES], size_t *len)
{
    for (uint32_t k = 36;; k += 36) {
        uint32_t least = threshold(k, bias);
        if (*len == LABEL_BYTES) {
            return false;
        }
        if (delta < least) {
            out[(*len)++] = letter_of(delta);
            return true;
        }
        out[(*len)++] = letter_of(least + (delta - least) % (36 - least));
        delta = (delta - least) / (36 - least);
    }
}

/* RFC 3492 section 6.3: the bytes after "xn--"; 0: they do not fit in a label. */
static size_t encode(const uint32_t *codes, size_t count, char out[LABEL_BYTES])
{
    size_t len = 0;
    for (size_t i = 0; i < count && len < LABEL_BYTES; i++) {
        if (codes[i] < 128) {
            out[len++] = (char)codes[i];
        }
    }
    size_t basic = len;
    size_t done = len;
    if (basic > 0 && len < LABEL_BYTES) {
        out[len++] = '-';
    }
    uint32_t n = 128;
    uint32_t delta = 0;
    uint32_t bias = 72;
    while (done < count) {
        uint32_t next = UINT32_MAX;
        for (size_t i = 0; i < count; i++) {
            next = codes[i] >= n && codes[i] < next ? codes[i] : next;
        }
        delta += (next - n) * ((uint32_t)done + 1); /* count <= 64: no overflow */
        n = next;
        for (size_t i = 0; i < count; i++) {
            delta += codes[i] < n;
            if (codes[i] == n) {
                if (!put_delta(delta, bias, out, &len)) {
                    return 0;
                }
                bias = adapt(delta, (uint32_t)done + 1, done == basic);
                delta = 0;
                done++;
            }
        }
        delta++;
        n++;
    }
    return len;
}

static size_t put_utf8(char *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};
    for (size_t i = more; i > 0; i--, code >>= 6) {
        out[i] = (char)(0x80 | (code & 0x3f));
    }
    out[0] = (char)(leads[more] | code);
    return more + 1;
}

/* Whether a label, as Unicode text, satisfies RFC 5891 section 4.2. */
static bool is_u_label(bay_str label, format_tools *tools)
{
    bool has_hyphens = label.len >= 4 && label.at[2] == '-' && label.at[3] == '-';
    return label.len > 0 && !has_hyphens && label.at[0] != '-' && label.at[label.len - 1] != '-' &&
           matches(tools, IDN_LABEL, label);
}

bool format_a_label(bay_str label, format_tools *tools)
{
    uint32_t codes[LABEL_CODES + 1];
    char again[LABEL_BYTES];
    char text[LABEL_CODES * 4 + 4];
    size_t len = 0;
    bool has_other = false;
    if (label.len <= 4 || label.len > LABEL_BYTES) {
        return false;
    }
    bay_str spelled = str_from(label, 4);
    size_t count = decode(spelled, codes);
    for (size_t i = 0; i < count; i++) {
        len += put_utf8(text + len, codes[i]);
        has_other |= codes[i] >= 128;
    }
    size_t again_len = has_other ? encode(codes, count, again) : 0;
    if (!has_other || !str_eq_nocase(spelled, (bay_str){again, again_len}) ||
        !is_u_label((bay_str){text, len}, tools)) {
        return false;
    }
    return !matches(tools, IDN_HAS_RTL, (bay_str){text, len}) ||
           matches(tools, IDN_BIDI_LABEL, (bay_str){text, len});
}

/* The label's length as an A-label; 0: invalid. */
static size_t label_len(bay_str label, format_tools *tools)
{
    uint32_t codes[LABEL_CODES];
    char spelled[LABEL_BYTES];
    size_t count = 0;
    bool is_ascii = true;
    for (size_t i = 0; i < label.len; count++) {
        if (count == LABEL_CODES) {
            return 0;
        }
        codes[count] = format_character(label, &i);
        is_ascii &= codes[count] < 128;
    }
    if (is_ascii) {
        bool is_spelled = str_eq_nocase(str_head(label, 4), STR("xn--"));
        bool has_hyphens = label.len >= 4 && label.at[2] == '-' && label.at[3] == '-';
        bool holds = label.len <= LABEL_BYTES && (is_spelled || !has_hyphens) &&
                     format_hostname(label, tools);
        return holds ? label.len : 0;
    }
    size_t len = encode(codes, count, spelled);
    return len > 0 && len + 4 <= LABEL_BYTES && is_u_label(label, tools) ? len + 4 : 0;
}

/* The length of the separator at `at`, or 0; RFC 3490 section 3.1 has the other three. */
static size_t separator_len(bay_str text, size_t at)
{
    bay_str rest = str_from(text, at);
    if (str_starts(rest, STR("."))) {
        return 1;
    }
    return str_starts(rest, STR("\xe3\x80\x82")) || str_starts(rest, STR("\xef\xbc\x8e")) ||
                   str_starts(rest, STR("\xef\xbd\xa1"))
               ? 3
               : 0;
}

bool format_idn_hostname(bay_str text, format_tools *tools)
{
    bool is_bidi = text.len <= NAME_BYTES * 4 && matches(tools, IDN_HAS_RTL, text);
    size_t total = 0;
    for (size_t from = 0;;) {
        size_t end = from;
        while (end < text.len && separator_len(text, end) == 0) {
            end++;
        }
        bay_str label = {text.at + from, end - from};
        size_t len = end > from ? label_len(label, tools) : 0;
        total += len + 1;
        if (len == 0 || total > NAME_BYTES + 1 ||
            (is_bidi && !matches(tools, IDN_BIDI_LABEL, label))) {
            return false;
        }
        if (end == text.len) {
            return true;
        }
        from = end + separator_len(text, end);
    }
}

/* Characters as the scanner compares them: small, without marks, and in plain letters whatever alphabet
 * or style a look-alike was taken from. */
#include "base/shown.h"
#include "policy/scan_internal.h"
#include "json/utf8.h"

typedef struct fold_range {
    uint32_t first;
    uint32_t last;
    scan_class class;
} fold_range;

/* Ascending; what is in none of them is OTHER above ASCII. */
static const fold_range ranges[] = {
    {0x00c0, 0x024f, SCAN_LETTER},   {0x0250, 0x02af, SCAN_LETTER},
    {0x0300, 0x034e, SCAN_MARK},     {0x034f, 0x034f, SCAN_HIDDEN},
    {0x0350, 0x036f, SCAN_MARK},     {0x0370, 0x03ff, SCAN_LETTER},
    {0x0400, 0x0482, SCAN_LETTER},   {0x0483, 0x0489, SCAN_MARK},
    {0x048a, 0x052f, SCAN_LETTER},   {0x0531, 0x0587, SCAN_LETTER},
    {0x0591, 0x05bd, SCAN_MARK},     {0x05d0, 0x05f4, SCAN_LETTER},
    {0x0610, 0x061a, SCAN_MARK},     {0x061f, 0x061f, SCAN_STOP},
    {0x0620, 0x064a, SCAN_JOINED},   {0x064b, 0x065f, SCAN_MARK},
    {0x0660, 0x0669, SCAN_DIGIT},    {0x066e, 0x06d3, SCAN_JOINED},
    {0x06d4, 0x06d4, SCAN_STOP},     {0x0904, 0x0963, SCAN_JOINED},
    {0x0964, 0x0965, SCAN_STOP},     {0x0966, 0x097f, SCAN_JOINED},
    {0x0e01, 0x0e5b, SCAN_SYLLABLE}, {0x10a0, 0x10ff, SCAN_LETTER},
    {0x1100, 0x11ff, SCAN_JOINED},   {0x13a0, 0x13ff, SCAN_LETTER},
    {0x1680, 0x1680, SCAN_SPACE},    {0x1ab0, 0x1aff, SCAN_MARK},
    {0x1d00, 0x1dbf, SCAN_LETTER},   {0x1dc0, 0x1dff, SCAN_MARK},
    {0x1e00, 0x1fff, SCAN_LETTER},   {0x2000, 0x200a, SCAN_SPACE},
    {0x2018, 0x2019, SCAN_QUOTE},    {0x2028, 0x2029, SCAN_NEWLINE},
    {0x202f, 0x202f, SCAN_SPACE},    {0x205f, 0x205f, SCAN_SPACE},
    {0x20d0, 0x20f0, SCAN_MARK},     {0x2100, 0x214f, SCAN_LETTER},
    {0x24b6, 0x24e9, SCAN_LETTER},   {0x2c60, 0x2c7f, SCAN_LETTER},
    {0x3000, 0x3000, SCAN_SPACE},    {0x3002, 0x3002, SCAN_STOP},
    {0x3005, 0x3007, SCAN_SYLLABLE}, {0x3041, 0x3096, SCAN_SYLLABLE},
    {0x30a1, 0x30ff, SCAN_SYLLABLE}, {0x3130, 0x318f, SCAN_JOINED},
    {0x31f0, 0x31ff, SCAN_SYLLABLE}, {0x3400, 0x4dbf, SCAN_SYLLABLE},
    {0x4e00, 0x9fff, SCAN_SYLLABLE}, {0xa640, 0xa69f, SCAN_LETTER},
    {0xa720, 0xa7ff, SCAN_LETTER},   {0xac00, 0xd7a3, SCAN_JOINED},
    {0xf900, 0xfaff, SCAN_SYLLABLE}, {0xfb50, 0xfdff, SCAN_JOINED},
    {0xfe20, 0xfe2f, SCAN_MARK},     {0xfe70, 0xfefc, SCAN_JOINED},
    {0xff01, 0xff01, SCAN_STOP},     {0xff0e, 0xff0e, SCAN_STOP},
    {0xff10, 0xff19, SCAN_DIGIT},    {0xff1b, 0xff1b, SCAN_STOP},
    {0xff1f, 0xff1f, SCAN_STOP},     {0xff21, 0xff3a, SCAN_LETTER},
    {0xff41, 0xff5a, SCAN_LETTER},   {0xff66, 0xff9f, SCAN_SYLLABLE},
    {0x1d400, 0x1d7cb, SCAN_LETTER}, {0x1d7ce, 0x1d7ff, SCAN_DIGIT},
    {0x1f130, 0x1f149, SCAN_LETTER}, {0x1f150, 0x1f169, SCAN_LETTER},
    {0x1f170, 0x1f189, SCAN_LETTER}, {0x20000, 0x3134f, SCAN_SYLLABLE},
};

/* U+00C0 to U+017F and U+1E00 to U+1EFF without their marks; '*' is no letter. */
static const char latin_1_a[] = "aaaaaaaceeeeiiiidnooooo*ouuuuytsaaaaaaaceeeeiiiidnooooo*ouuuuyty"
                                "aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkklllllll"
                                "lllnnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs";
static const char latin_additional[] =
    "aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmm"
    "mmmmnnnnnnnnoooooooopppprrrrrrrrssssssssssttttttttuuuuuuuuuuvvvv"
    "wwwwwwwwwwxxxxyyzzzzzzhtwyasssssaaaaaaaaaaaaaaaaaaaaaaaaeeeeeeee"
    "eeeeeeeeiiiioooooooooooooooooooooooouuuuuuuuuuuuuuyyyyyyyyssssss";

typedef struct look_alike {
    uint32_t code; /* small */
    char latin;
} look_alike;

/* Letters of other alphabets that read as Latin ones. Ascending. */
static const look_alike look_alikes[] = {
    {0x0251, 'a'}, {0x0261, 'g'}, {0x0269, 'i'}, {0x026a, 'i'}, {0x03b1, 'a'}, {0x03b5, 'e'},
    {0x03b7, 'n'}, {0x03b9, 'i'}, {0x03ba, 'k'}, {0x03bd, 'v'}, {0x03bf, 'o'}, {0x03c1, 'p'},
    {0x03c4, 't'}, {0x03c5, 'u'}, {0x03c7, 'x'}, {0x03f2, 'c'}, {0x03f3, 'j'}, {0x0430, 'a'},
    {0x0432, 'b'}, {0x0433, 'r'}, {0x0435, 'e'}, {0x043a, 'k'}, {0x043c, 'm'}, {0x043d, 'h'},
    {0x043e, 'o'}, {0x043f, 'n'}, {0x0440, 'p'}, {0x0441, 'c'}, {0x0442, 't'}, {0x0443, 'y'},
    {0x0445, 'x'}, {0x0455, 's'}, {0x0456, 'i'}, {0x0458, 'j'}, {0x0475, 'v'}, {0x04ab, 'c'},
    {0x04af, 'y'}, {0x04bb, 'h'}, {0x04cf, 'l'}, {0x0501, 'd'}, {0x051b, 'q'}, {0x051d, 'w'},
    {0x0561, 'w'}, {0x0563, 'q'}, {0x0566, 'q'}, {0x0570, 'h'}, {0x0575, 'j'}, {0x0578, 'n'},
    {0x057d, 'u'}, {0x0581, 'g'}, {0x0585, 'o'}, {0x10e7, 'y'},
};

/* Capitals that look Latin although their small letters do not. */
static const look_alike capital_look_alikes[] = {
    {0x0392, 'b'}, {0x0395, 'e'}, {0x0396, 'z'}, {0x0397, 'h'}, {0x0399, 'i'},
    {0x039c, 'm'}, {0x039d, 'n'}, {0x03a1, 'p'}, {0x03a4, 't'}, {0x03a5, 'y'},
    {0x0412, 'b'}, {0x041d, 'h'}, {0x0420, 'p'}, {0x0421, 'c'},
};

/* The small capitals of the phonetic block, and the letter-like symbols. */
static const look_alike styled_letters[] = {
    {0x0262, 'g'}, {0x0274, 'n'}, {0x0280, 'r'}, {0x0299, 'b'}, {0x029c, 'h'}, {0x029f, 'l'},
    {0x028f, 'y'}, {0x1d00, 'a'}, {0x1d04, 'c'}, {0x1d05, 'd'}, {0x1d07, 'e'}, {0x1d0a, 'j'},
    {0x1d0b, 'k'}, {0x1d0d, 'm'}, {0x1d0f, 'o'}, {0x1d18, 'p'}, {0x1d1b, 't'}, {0x1d1c, 'u'},
    {0x1d20, 'v'}, {0x1d21, 'w'}, {0x1d22, 'z'}, {0x2102, 'c'}, {0x210a, 'g'}, {0x210b, 'h'},
    {0x210c, 'h'}, {0x210d, 'h'}, {0x210e, 'h'}, {0x2110, 'i'}, {0x2111, 'i'}, {0x2112, 'l'},
    {0x2113, 'l'}, {0x2115, 'n'}, {0x2119, 'p'}, {0x211a, 'q'}, {0x211b, 'r'}, {0x211c, 'r'},
    {0x211d, 'r'}, {0x2124, 'z'}, {0x2128, 'z'}, {0x212c, 'b'}, {0x212d, 'c'}, {0x212f, 'e'},
    {0x2130, 'e'}, {0x2131, 'f'}, {0x2133, 'm'}, {0x2134, 'o'}, {0xa730, 'f'}, {0xa731, 's'},
};

static uint32_t find(const look_alike *table, size_t count, uint32_t code)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table[middle].code < code) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && table[low].code == code ? (unsigned char)table[low].latin : 0;
}

static scan_class class_of(uint32_t code)
{
    size_t low = 0;
    size_t high = ARRAY_LEN(ranges);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].last < code) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < ARRAY_LEN(ranges) && ranges[low].first <= code ? ranges[low].class : SCAN_OTHER;
}

/* The plain letter of a styled one; 0: it is none. */
static uint32_t unstyled(uint32_t code)
{
    if (code >= 0x1d400 && code <= 0x1d6a3) {
        return 'a' + (code - 0x1d400) % 52 % 26;
    }
    if (code >= 0xff21 && code <= 0xff3a) {
        return 'a' + (code - 0xff21);
    }
    if (code >= 0xff41 && code <= 0xff5a) {
        return 'a' + (code - 0xff41);
    }
    if (code >= 0x24b6 && code <= 0x24e9) {
        return 'a' + (code - 0x24b6) % 26;
    }
    if ((code >= 0x1f130 && code <= 0x1f149) || (code >= 0x1f150 && code <= 0x1f169) ||
        (code >= 0x1f170 && code <= 0x1f189)) {
        return 'a' + (code - 0x1f130) % 32;
    }
    return code > 0x260 && code < 0xa732 ? find(styled_letters, ARRAY_LEN(styled_letters), code)
                                         : 0;
}

static uint32_t small(uint32_t code)
{
    if (code >= 0x391 && code <= 0x3a9) {
        return code + 0x20;
    }
    if (code >= 0x410 && code <= 0x42f) {
        code += 0x20;
    } else if (code >= 0x400 && code <= 0x40f) {
        code += 0x50;
    } else if (code >= 0x531 && code <= 0x556) {
        code += 0x30;
    } else if (code >= 0x460 && code <= 0x52f && code % 2 == 0) {
        code += 1;
    }
    switch (code) {
    case 0x0451: /* io, short i: as without their marks */
    case 0x0450:
        return 0x0435;
    case 0x0439:
        return 0x0438;
    case 0x03c2:
        return 0x03c3;
    case 0x03ac:
        return 0x03b1;
    case 0x03ad:
        return 0x03b5;
    default:
        return code;
    }
}

static scan_char fold_ascii(unsigned char code)
{
    scan_char out = {.folded = code, .class = SCAN_OTHER};
    if (code >= 'a' && code <= 'z') {
        out.class = SCAN_LETTER;
        out.is_latin = true;
    } else if (code >= 'A' && code <= 'Z') {
        out.folded = code + ('a' - 'A');
        out.class = SCAN_LETTER;
        out.is_latin = true;
    } else if (code >= '0' && code <= '9') {
        out.class = SCAN_DIGIT;
    } else if (code == '\n') {
        out.class = SCAN_NEWLINE;
    } else if (code == ' ' || code == '\t' || code == '\r') {
        out.class = SCAN_SPACE;
    } else if (code == '.' || code == '!' || code == '?' || code == ';') {
        out.class = SCAN_STOP;
    } else if (code == '\'') {
        out.class = SCAN_QUOTE;
    }
    return out;
}

static scan_char fold_latin(char base)
{
    return (scan_char){.folded = (unsigned char)base, .class = SCAN_LETTER, .is_latin = true};
}

scan_char scan_fold(uint32_t code)
{
    if (code < 0x80) {
        return fold_ascii((unsigned char)code);
    }
    if (code >= 0xc0 && code < 0x180 && latin_1_a[code - 0xc0] != '*') {
        return fold_latin(latin_1_a[code - 0xc0]);
    }
    if (code >= 0x1e00 && code - 0x1e00 < sizeof(latin_additional) - 1) {
        return fold_latin(latin_additional[code - 0x1e00]);
    }
    uint32_t plain = unstyled(code);
    if (plain != 0) {
        return (scan_char){
            .folded = plain, .class = SCAN_LETTER, .is_latin = true, .is_styled = true};
    }
    scan_char out = {.folded = code, .class = code == 0xa0 ? SCAN_SPACE : class_of(code)};
    if (out.class == SCAN_DIGIT) {
        out.folded = code >= 0x1d7ce  ? '0' + (code - 0x1d7ce) % 10
                     : code >= 0xff10 ? '0' + (code - 0xff10)
                                      : '0' + (code - 0x660);
    } else if (out.class == SCAN_LETTER) {
        out.latin = find(capital_look_alikes, ARRAY_LEN(capital_look_alikes), code);
        out.folded = small(code);
        out.latin =
            out.latin != 0 ? out.latin : find(look_alikes, ARRAY_LEN(look_alikes), out.folded);
    }
    return out;
}

void scan_put(buf *out, uint32_t code)
{
    char bytes[4] = {0};
    buf_append(out, bytes, json_utf8_put(bytes, code));
}

/* ---- composition ------------------------------------------------------------------------------ */

enum {
    LEADING = 0x1100,
    VOWEL = 0x1161,
    TRAILING = 0x11a7,
    LEADINGS = 19,
    VOWELS = 21,
    TRAILINGS = 28,
    SYLLABLES = 0xac00,
    VOICED = 0x3099,
    HALF_VOICED = 0x309a,
};

bool scan_needs_composing(bay_str text)
{
    for (size_t at = 0; at + 3 <= text.len; at++) {
        const unsigned char *bytes = (const unsigned char *)text.at + at;
        bool is_jamo = bytes[0] == 0xe1 && (bytes[1] == 0x84 || bytes[1] == 0x85);
        bool is_mark =
            bytes[0] == 0xe3 && bytes[1] == 0x82 && (bytes[2] == 0x99 || bytes[2] == 0x9a);
        if (is_jamo || is_mark) {
            return true;
        }
    }
    return false;
}

static bool is_within(uint32_t code, uint32_t first, uint32_t count)
{
    return code >= first && code < first + count;
}

/* What `code` makes of the character before it; 0: it stands by itself. */
static uint32_t composed(uint32_t before, uint32_t code)
{
    if (is_within(before, LEADING, LEADINGS) && is_within(code, VOWEL, VOWELS)) {
        return SYLLABLES + ((before - LEADING) * VOWELS + code - VOWEL) * TRAILINGS;
    }
    bool is_open = is_within(before, SYLLABLES, LEADINGS * VOWELS * TRAILINGS) &&
                   (before - SYLLABLES) % TRAILINGS == 0;
    if (is_open && is_within(code, TRAILING + 1, TRAILINGS - 1)) {
        return before + code - TRAILING;
    }
    bool is_kana = is_within(before, 0x3041, 0xbe);
    if (is_kana && code == VOICED) {
        return before == 0x3046 ? 0x3094 : before == 0x30a6 ? 0x30f4 : before + 1;
    }
    return is_kana && code == HALF_VOICED ? before + 2 : 0;
}

void scan_compose(bay_str text, buf *out)
{
    uint32_t before = 0;
    while (text.len > 0 && out->err == BAY_OK) {
        uint32_t code = 0;
        size_t len = shown_decode(text, &code);
        if (len == 0) {
            code = 0xfffd;
            len = 1;
        }
        uint32_t both = composed(before, code);
        if (both == 0 && before != 0) {
            scan_put(out, before);
        }
        before = both != 0 ? both : code;
        text = str_from(text, len);
    }
    if (before != 0) {
        scan_put(out, before);
    }
}

/* One text: characters become words, words their meanings. What does not show is left out, so that a
 * word is found whatever was put between its letters; that it was there is a finding of its own. */
#include "base/shown.h"
#include "policy/scan_internal.h"
#include "wire/chars.h"
#include "json/utf8.h"

enum {
    NO_CHARACTER = 0xffffffff,
    SPELLED_LETTERS = 512, /* of words that are taken apart */
    SPELLED_LEAST = 5,
    SPLITS = 6,
    STACKED_MARKS = 4,
    STYLED_LEAST = 4,
    BLANK_FLAG = 0x1f3f4,
    FLAG_TAGS = 8,
};

/* A word under way. */
typedef struct letters_read {
    char bytes[SCAN_WORD_BYTES]; /* folded */
    char alike[SCAN_WORD_BYTES]; /* in the Latin letters that it looks like */
    size_t len;
    size_t alike_len;
    size_t start;
    size_t letters;
    size_t latin;   /* letters that are Latin */
    size_t foreign; /* that are not, but look it */
    size_t strange; /* that are neither */
    size_t styled;
    bool has_digit;
    bool was_small; /* the letter before */
    uint8_t splits[SPLITS];
    size_t split_count;
} letters_read;

typedef struct reader {
    scanner *scan;
    scan_text *text;
    letters_read word;
    size_t at;
    uint32_t before;      /* the last visible character … */
    bool is_selected;     /* … with a variation selector behind it */
    size_t newlines;      /* since the last visible character */
    size_t marks;         /* in a row */
    scan_meaning pending; /* of the word before */
    scan_span pending_at;
    size_t styled; /* letters of the text */
    size_t unseen; /* characters of the text */
    size_t flag_tags;
    size_t turned;                 /* words that are frequent in ROT13 … */
    size_t backwards;              /* … and in text that is written backwards */
    char spelled[SPELLED_LETTERS]; /* single letters in a row; a space where the gap is wider */
    size_t spelled_len;
    size_t spelled_start;
    size_t spelled_end;
} reader;

/* ---- meanings -------------------------------------------------------------------------------- */

static void remember_before(scanner *scan, bay_str word)
{
    scan->before_len = word.len < SCAN_WORD_BYTES ? word.len : SCAN_WORD_BYTES;
    memcpy(scan->before, word.at, scan->before_len);
}

/* A word waits for the next one, which may take its meaning from it: conversation_id. */
static void feed_pending(reader *self)
{
    if (self->pending != 0) {
        scan_patterns_feed(self->scan, self->text, self->pending, self->pending_at);
        self->pending = 0;
    }
}

static void feed(reader *self, scan_meaning meaning, size_t start, size_t end)
{
    feed_pending(self);
    self->pending = meaning;
    self->pending_at = (scan_span){self->scan->place, (uint32_t)start, (uint32_t)end};
}

static scan_meaning look_up(const scanner *scan, bay_str word)
{
    return scan_lexicon_word(scan->lexicon, word, (bay_str){scan->before, scan->before_len});
}

static void step(scanner *scan)
{
    scan->place += SCAN_WORD_STEP;
}

/* One word: steps, and feeds what it means. */
static scan_meaning take_word(reader *self, bay_str folded, size_t start, size_t end)
{
    scanner *scan = self->scan;
    step(scan);
    scan_meaning meaning = look_up(scan, folded);
    if ((meaning & SCAN_MEANS(NEUTRAL)) != 0) {
        self->pending = 0;
        meaning = 0;
    }
    self->turned += (meaning & SCAN_MEANS(ROT13)) != 0;
    self->backwards += (meaning & SCAN_MEANS(REVERSED)) != 0;
    feed(self, meaning, start, end);
    if (scan_has_user_rules(scan)) {
        scan_patterns_user(scan, self->text, folded,
                           (scan_span){scan->place, (uint32_t)start, (uint32_t)end});
    }
    remember_before(scan, folded);
    return meaning;
}

/* Digits and signs that stand for letters: 1gn0r3. */
static scan_meaning look_up_digits(const scanner *scan, bay_str folded)
{
    static const char from[] = "0134578@$";
    static const char to[] = "oieasrbas";
    char bytes[SCAN_WORD_BYTES];
    size_t letters = 0;
    for (size_t i = 0; i < folded.len; i++) {
        const char *digit = memchr(from, folded.at[i], sizeof(from) - 1);
        bytes[i] = digit != NULL ? to[digit - from] : folded.at[i];
        letters += digit == NULL;
    }
    if (letters < 2 || folded.len < 3) {
        return 0;
    }
    for (size_t i = 0; i < folded.len; i++) {
        bytes[i] = folded.at[i] == '7' ? 't' : folded.at[i] == '8' ? 'b' : bytes[i];
    }
    return look_up(scan, (bay_str){bytes, folded.len});
}

static void take_pieces(reader *self, const letters_read *of, size_t end)
{
    size_t from = 0;
    for (size_t i = 0; i <= of->split_count; i++) {
        size_t to = i < of->split_count ? of->splits[i] : of->len;
        if (to > from) {
            (void)take_word(self, (bay_str){of->bytes + from, to - from}, of->start, end);
        }
        from = to;
    }
}

static bool is_mixed(const letters_read *of)
{
    return of->foreign > 0 && of->strange == 0 && of->latin >= 2 && of->letters >= 3;
}

static void take_whole(reader *self, letters_read *of, size_t end)
{
    scanner *scan = self->scan;
    bay_str folded = {of->bytes, of->len};
    bay_str alike = {of->alike, of->alike_len};
    bool looks_latin = of->foreign > 0 && of->strange == 0;
    if (is_mixed(of)) {
        scan_report_add(scan, self->text, SCAN_MIXED, of->start, end);
        (void)take_word(self, alike, of->start, end);
        return;
    }
    if (of->split_count > 0 && look_up(scan, folded) == 0) {
        take_pieces(self, of, end);
        return;
    }
    scan_meaning meaning = take_word(self, folded, of->start, end);
    if (meaning == 0 && looks_latin && of->letters > 2) {
        /* all of its letters are another alphabet's: a word of that, unless Latin ones surround it */
        meaning = scan->latin_words > 3 ? look_up(scan, alike) : 0;
        if (meaning != 0) {
            scan_report_add(scan, self->text, SCAN_MIXED, of->start, end);
            feed(self, meaning, of->start, end);
        }
    }
    if (meaning == 0 && of->has_digit) {
        feed(self, look_up_digits(scan, folded), of->start, end);
    }
    scan->latin_words += of->latin > 1;
}

/* ---- words that are taken apart --------------------------------------------------------------- */

/* The longest word of the lexicon at the front of `letters`; 0: none of three letters or more. */
static size_t longest_word(const scanner *scan, bay_str letters)
{
    size_t most = letters.len < 16 ? letters.len : 16;
    for (size_t len = most; len >= 3; len--) {
        if (scan_lexicon_word(scan->lexicon, str_head(letters, len), (bay_str){"", 0}) != 0) {
            return len;
        }
    }
    return 0;
}

/* The letters of one word: looked up, or the words of the lexicon in it. Returns the letters that
 * belong to words. */
static size_t take_letters(reader *self, bay_str letters)
{
    size_t covered = 0;
    if (letters.len <= SCAN_WORD_BYTES &&
        take_word(self, letters, self->spelled_start, self->spelled_end) != 0) {
        return letters.len;
    }
    for (bay_str rest = letters; rest.len >= 3;) {
        size_t len = longest_word(self->scan, rest);
        if (len > 0) {
            (void)take_word(self, str_head(rest, len), self->spelled_start, self->spelled_end);
            covered += len;
        }
        rest = str_from(rest, len > 0 ? len : 1);
    }
    return covered;
}

static void end_spelled(reader *self)
{
    bay_str letters = {self->spelled, self->spelled_len};
    size_t covered = 0;
    self->spelled_len = 0;
    if (letters.len < SPELLED_LEAST) {
        return;
    }
    for (bay_str rest = letters; rest.len > 0;) {
        bay_str one = str_head(rest, str_find(rest, ' '));
        rest = str_from(rest, one.len + 1);
        covered += one.len > 1 ? take_letters(self, one) : 0;
    }
    if (covered >= SPELLED_LEAST && covered * 2 >= letters.len) {
        scan_report_add(self->scan, self->text, SCAN_SPELLED, self->spelled_start,
                        self->spelled_end);
    }
}

static void take_single(reader *self, const letters_read *of, size_t end)
{
    bool is_apart = self->spelled_len > 0 && of->start - self->spelled_end > 1;
    if (self->spelled_len == 0) {
        self->spelled_start = of->start;
    }
    if (is_apart && self->spelled_len < SPELLED_LETTERS) {
        self->spelled[self->spelled_len++] = ' ';
    }
    if (self->spelled_len < SPELLED_LETTERS) {
        self->spelled[self->spelled_len++] = of->alike[0];
    }
    self->spelled_end = end;
}

static void end_word(reader *self)
{
    letters_read *of = &self->word;
    if (of->len == 0) {
        return;
    }
    if (of->letters == 1 && of->alike_len == 1 && !of->has_digit) {
        take_single(self, of, self->at);
        step(self->scan);
    } else {
        end_spelled(self);
        take_whole(self, of, self->at);
    }
    of->len = 0;
}

/* ---- characters ------------------------------------------------------------------------------ */

static void begin_word(reader *self)
{
    letters_read *of = &self->word;
    if (of->len == 0) {
        size_t start = self->at;
        of->alike_len = of->letters = of->latin = of->foreign = of->strange = of->styled = 0;
        of->has_digit = of->was_small = false;
        of->split_count = 0;
        of->start = start;
    }
}

static void put_letter(letters_read *of, uint32_t folded, uint32_t alike)
{
    char bytes[4];
    size_t len = json_utf8_put(bytes, folded);
    if (of->len + len <= sizeof(of->bytes)) {
        memcpy(of->bytes + of->len, bytes, len);
        of->len += len;
    }
    if (alike != 0 && of->alike_len < sizeof(of->alike)) {
        of->alike[of->alike_len++] = (char)alike;
    }
}

static void take_letter(reader *self, scan_char c)
{
    letters_read *of = &self->word;
    begin_word(self);
    of->letters++;
    of->latin += c.is_latin && !c.is_styled;
    of->foreign += !c.is_latin && c.latin != 0;
    of->strange += !c.is_latin && c.latin == 0;
    self->styled += c.is_styled;
    put_letter(of, c.folded, c.is_latin ? c.folded : c.latin);
}

/* Scripts without spaces: the longest entry that stands here. Returns its bytes, or one character's. */
static size_t take_run(reader *self, scan_class class, size_t len)
{
    size_t found = 0;
    bool is_start =
        self->at == 0 || class == SCAN_SYLLABLE || self->before == ' ' || self->before < 0x80;
    end_word(self);
    scan_meaning meaning = scan_lexicon_run(
        self->scan->lexicon, str_from(self->text->bytes, self->at), is_start, &found);
    if (meaning != 0) {
        step(self->scan);
        feed(self, meaning, self->at, self->at + found);
        return found;
    }
    self->scan->place += class == SCAN_SYLLABLE ? 1 : 0;
    return len;
}

static void take_newline(reader *self)
{
    self->newlines++;
    self->scan->place += self->newlines == 2   ? 5 * SCAN_WORD_STEP
                         : self->newlines == 1 ? SCAN_WORD_STEP
                                               : 0;
    self->scan->before_len = 0;
}

/* ---- what does not show ---------------------------------------------------------------------- */

static void note_hidden(reader *self, uint32_t code, size_t len)
{
    self->unseen++;
    scanner *scan = self->scan;
    scan_rule rule = SCAN_INVISIBLE;
    if (code >= 0xe0020 && code <= 0xe007e) {
        if (self->before == BLANK_FLAG && self->flag_tags++ < FLAG_TAGS) {
            return; /* the flag of a region */
        }
        buf_char(&scan->hidden, (char)(code - 0xe0000));
        rule = SCAN_TAGS;
    } else if (code == 0xe007f || code == 0xe0001) {
        if (self->before == BLANK_FLAG) {
            return;
        }
        rule = SCAN_TAGS;
    } else if ((code >= 0xfe00 && code <= 0xfe0f) || (code >= 0xe0100 && code <= 0xe01ef)) {
        uint32_t byte = code < 0xe0100 ? code - 0xfe00 : code - 0xe0100 + 16;
        bool is_ideograph = scan_fold(self->before).class == SCAN_SYLLABLE;
        if (is_ideograph && !self->is_selected) {
            self->is_selected = true; /* a variant of the character */
            return;
        }
        buf_char(&scan->hidden, (char)byte);
        rule = SCAN_SELECTORS;
    } else if ((code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069)) {
        rule = SCAN_BIDI;
    } else if (code < 0x20 || (code >= 0x7f && code < 0xa0)) {
        rule = SCAN_CONTROLS;
    } else if (code == 0xfeff && self->at == 0) {
        return; /* a byte order mark */
    }
    scan_report_add(scan, self->text, rule, self->at, self->at + len);
}

static uint32_t code_behind(const reader *self, size_t len)
{
    bay_str rest = str_from(self->text->bytes, self->at + len);
    uint32_t code = NO_CHARACTER;
    return rest.len > 0 && shown_decode(rest, &code) > 0 ? code : NO_CHARACTER;
}

/* Marks of direction belong to texts that are written from the right. */
static bool is_direction_mark(const reader *self, uint32_t code, size_t len)
{
    uint32_t next = code_behind(self, len);
    bool is_mark = code == 0x200e || code == 0x200f || code == 0x61c;
    return is_mark &&
           ((self->before >= 0x590 && self->before < 0x900) || (next >= 0x590 && next < 0x900));
}

static bool is_unseen(const reader *self, uint32_t code, size_t len)
{
    return shown_is_hidden(code) && code != '\t' && code != '\n' && code != '\r' &&
           code != 0x2028 && code != 0x2029 && !is_direction_mark(self, code, len) &&
           !shown_belongs(self->before, self->is_selected, code, code_behind(self, len));
}

static void note_visible(reader *self, uint32_t code)
{
    self->before = code;
    self->is_selected = false;
    self->flag_tags = 0;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static bool ends_sentence(const reader *self)
{
    bay_str bytes = self->text->bytes;
    return self->at + 1 >= bytes.len || memchr(" \n\t\r\"')", bytes.at[self->at + 1], 7) != NULL;
}

/* An apostrophe inside a word: it counts as nothing in don't and user's, and separates the article of
 * l'utilisateur. */
static bool is_joint_quote(const reader *self, size_t len)
{
    bay_str rest = str_from(self->text->bytes, self->at + len);
    size_t letters = 0;
    while (letters < 3 && rest.len > 0) {
        uint32_t code = 0;
        size_t used = shown_decode(rest, &code);
        if (used == 0 || scan_fold(code).class != SCAN_LETTER) {
            break;
        }
        letters++;
        rest = str_from(rest, used);
    }
    return self->word.len > 0 && letters > 0 && letters < 3;
}

static void take_other(reader *self, scan_char c, uint32_t code)
{
    bool is_joint = code == '_' || code == '-'; /* of two-word entries: system_prompt */
    end_word(self);
    if (c.class == SCAN_NEWLINE) {
        take_newline(self);
        return;
    }
    if (c.class == SCAN_STOP && (code >= 0x80 || ends_sentence(self))) {
        self->scan->place += 2 * SCAN_WORD_STEP;
        self->scan->before_len = 0;
    } else if (c.class == SCAN_QUOTE) {
        return; /* it separates, and no more */
    } else if (c.class == SCAN_OTHER && !is_joint && code != '`' && code != '"' && code != '*') {
        self->scan->place += code == ',' || code == ':' || code == '(' ? SCAN_WORD_STEP : 0;
        self->scan->before_len = 0;
    }
    if (c.class == SCAN_OTHER && code < 0x80 && !is_joint && self->spelled_len > 0 &&
        memchr(".*|/+~", (int)code, 6) == NULL) {
        end_spelled(self);
    }
}

/* Returns the bytes that were taken. */
static size_t take_wide(reader *self)
{
    bay_str rest = str_from(self->text->bytes, self->at);
    uint32_t code = 0;
    size_t len = shown_decode(rest, &code);
    if (len == 0) {
        end_word(self);
        scan_report_add(self->scan, self->text, SCAN_SURROGATE, self->at, self->at + 1);
        return 1;
    }
    if (is_unseen(self, code, len)) {
        note_hidden(self, code, len);
        return len;
    }
    scan_char c = scan_fold(code);
    self->marks = c.class == SCAN_MARK ? self->marks + 1 : 0;
    if (c.class == SCAN_MARK) {
        if (self->marks == STACKED_MARKS) {
            scan_report_add(self->scan, self->text, SCAN_STACKED, self->at, self->at + len);
        }
        return len;
    }
    size_t taken = len;
    if (c.class == SCAN_LETTER) {
        take_letter(self, c);
        self->word.was_small = false;
    } else if (c.class == SCAN_SYLLABLE || c.class == SCAN_JOINED) {
        taken = take_run(self, c.class, len);
    } else if (c.class == SCAN_DIGIT) {
        begin_word(self);
        self->word.has_digit = true;
        put_letter(&self->word, c.folded, c.folded);
    } else if (c.class != SCAN_HIDDEN && !(c.class == SCAN_QUOTE && is_joint_quote(self, len)) &&
               code != 0x200c && code != 0x200d && !(code >= 0xfe0e && code <= 0xfe0f)) {
        take_other(self, c, code);
    }
    if (code == 0xfe0e || code == 0xfe0f) {
        self->is_selected = true;
    } else {
        note_visible(self, code);
        self->newlines = c.class == SCAN_NEWLINE || c.class == SCAN_SPACE ? self->newlines : 0;
    }
    return taken;
}

/* A run of ASCII letters, which is most of most texts. Returns its bytes. */
static size_t take_letters_here(reader *self)
{
    letters_read *of = &self->word;
    const char *at = self->text->bytes.at + self->at;
    size_t most = self->text->bytes.len - self->at;
    size_t len = 0;
    begin_word(self);
    for (; len < most && char_is(at[len], CHAR_ALPHA); len++) {
        char c = at[len];
        bool is_small = char_is(c, CHAR_LOWER);
        if (!is_small && of->was_small && of->split_count < SPLITS) {
            of->splits[of->split_count++] = (uint8_t)of->len; /* systemPrompt */
        }
        of->was_small = is_small;
        if (of->len < SCAN_WORD_BYTES) {
            of->bytes[of->len++] = (char)(c | 0x20);
        }
        if (of->alike_len < SCAN_WORD_BYTES) {
            of->alike[of->alike_len++] = (char)(c | 0x20);
        }
    }
    of->letters += len;
    of->latin += len;
    note_visible(self, (unsigned char)at[len - 1]);
    self->marks = 0;
    self->newlines = 0;
    return len;
}

/* ASCII that is no letter. */
static void take_narrow(reader *self, unsigned char c)
{
    scan_char folded = scan_fold(c);
    if (folded.class == SCAN_DIGIT || ((c == '@' || c == '$') && self->word.len > 0)) {
        begin_word(self);
        self->word.has_digit = true;
        self->word.was_small = false;
        put_letter(&self->word, c, c);
    } else if (folded.class != SCAN_QUOTE || !is_joint_quote(self, 1)) {
        take_other(self, folded, c);
    }
    note_visible(self, c);
    self->marks = 0;
    if (folded.class != SCAN_NEWLINE && folded.class != SCAN_SPACE) {
        self->newlines = 0;
    }
}

/* The bytes of a run without white space; *out_is_plain: only letters, digits and the marks of
 * sentences, so that it is no address, path or encoding. */
static size_t run_length(bay_str text, bool *out_is_plain)
{
    size_t len = 0;
    bool is_plain = true;
    while (len < text.len && (unsigned char)text.at[len] > ' ' &&
           (unsigned char)text.at[len] < 0x7f) {
        char c = text.at[len++];
        is_plain = is_plain && (char_is(c, CHAR_ALPHA | CHAR_DIGIT) || c == ',' || c == '\'' ||
                                c == ')' || c == '(' || c == '"' || c == '`' || c == ':' ||
                                (c == '.' && (len == text.len || text.at[len] <= ' ')));
    }
    *out_is_plain = is_plain && len < SCAN_RUN_PLAIN;
    return len;
}

/* A run that is one thing, an address or a path: one word. False: it is to be read. */
static bool take_address(reader *self, size_t len)
{
    bay_str run = str_head(str_from(self->text->bytes, self->at), len);
    end_word(self);
    feed_pending(self); /* an encoding inside of the run is a text of its own */
    scan_meaning meaning = scan_run_read(self->scan, self->text, run, self->at);
    if (meaning == 0) {
        return false;
    }
    end_spelled(self);
    step(self->scan);
    feed(self, meaning, self->at, self->at + len);
    self->scan->before_len = 0;
    char last = run.at[run.len - 1];
    self->scan->place += last == '.' || last == ';' ? 2 * SCAN_WORD_STEP : 0;
    note_visible(self, (unsigned char)last);
    self->newlines = 0;
    return true;
}

static void read_text(reader *self)
{
    bay_str bytes = self->text->bytes;
    size_t run_end = 0;
    while (self->at < bytes.len &&
           !(self->scan->kind == SCAN_CONTENT && scan_is_suspicious(self->scan->out))) {
        unsigned char c = (unsigned char)bytes.at[self->at];
        if (c > ' ' && c < 0x7f && self->at >= run_end) {
            bool is_plain = true;
            size_t len = run_length(str_from(bytes, self->at), &is_plain);
            run_end = self->at + len;
            if (len > 3 && !is_plain && take_address(self, len)) {
                self->at = run_end;
                continue;
            }
        }
        if (c >= 0x80 || c == 0x7f || (c < ' ' && c != '\n' && c != '\t' && c != '\r')) {
            self->at += take_wide(self);
        } else if (char_is((char)c, CHAR_ALPHA)) {
            self->at += take_letters_here(self);
        } else {
            take_narrow(self, c);
            self->at++;
        }
    }
    end_word(self);
    end_spelled(self);
    feed_pending(self);
    if (self->styled >= STYLED_LEAST) {
        scan_report_add(self->scan, self->text, SCAN_STYLED, 0, bytes.len);
    }
}

/* ---- whole texts ------------------------------------------------------------------------------ */

bool scan_is_sentence(bay_str text)
{
    enum { FEW_WORDS = 3, FEW_SYLLABLES = 6 };
    size_t words = 0; /* at the front, or behind a space */
    size_t syllables = 0;
    bool is_apart = true;
    while (text.len > 0) {
        uint32_t code = 0;
        size_t len = shown_decode(text, &code);
        if (len == 0 || (code < ' ' && code != '\n' && code != '\t' && code != '\r')) {
            return false;
        }
        scan_class class = scan_fold(code).class;
        words += is_apart && (class == SCAN_LETTER || class == SCAN_JOINED);
        is_apart = class == SCAN_SPACE || class == SCAN_NEWLINE;
        syllables += class == SCAN_SYLLABLE;
        text = str_from(text, len);
    }
    return words >= FEW_WORDS || syllables >= FEW_SYLLABLES;
}

/* Texts whose letters are in another order or another place of the alphabet. */
static void look_behind(scanner *self, const reader *read)
{
    enum { FEW_WORDS = 2 };
    bay_str bytes = read->text->bytes;
    bool is_turned = read->turned >= FEW_WORDS;
    if ((!is_turned && read->backwards < FEW_WORDS) || read->text->depth > 0) {
        return;
    }
    buf_clear(&self->decoded);
    for (size_t i = 0; i < bytes.len; i++) {
        char c = is_turned ? bytes.at[i] : bytes.at[bytes.len - 1 - i];
        char small = (char)(c | 0x20);
        bool is_letter = small >= 'a' && small <= 'z';
        buf_char(&self->decoded,
                 !is_turned || !is_letter ? c : (char)(small < 'n' ? c + 13 : c - 13));
    }
    if (self->decoded.err == BAY_OK) {
        scan_report_add(self, read->text, SCAN_ENCODED, 0, bytes.len);
        scan_text_nested(self, read->text, buf_view(&self->decoded),
                         is_turned ? "ROT13" : "letters backwards");
    }
}

/* The text as it looks: without what does not show, in plain letters. So an address or a path is seen
 * whose characters are not its own. */
static void look_plain(scanner *self, const reader *read)
{
    bay_str rest = read->text->bytes;
    bool is_mixed_text = (read->text->found >> SCAN_MIXED & 1) != 0;
    if (read->text->depth > 0 || (read->unseen == 0 && read->styled == 0 && !is_mixed_text)) {
        return;
    }
    buf_clear(&self->decoded);
    while (rest.len > 0) {
        uint32_t code = 0;
        size_t len = shown_decode(rest, &code);
        len = len > 0 ? len : 1;
        scan_char c = scan_fold(code);
        bool is_wide = code >= 0xff01 && code <= 0xff5e; /* full-width ASCII */
        uint32_t plain = is_wide                        ? code - 0xff01 + '!'
                         : c.is_styled                  ? c.folded
                         : is_mixed_text && c.latin > 0 ? c.latin
                                                        : code;
        if (!shown_is_hidden(code) || code == '\n' || code == '\t') {
            scan_put(&self->decoded, plain);
        }
        rest = str_from(rest, len);
    }
    if (self->decoded.err == BAY_OK) {
        scan_text_nested(self, read->text, buf_view(&self->decoded), "look-alike letters");
    }
}

/* Syllables that are written as letters and marks: Hangul and kana as decomposed Unicode has them. */
static void look_composed(scanner *self, scan_text *text)
{
    if (text->depth > 0 || !scan_needs_composing(text->bytes)) {
        return;
    }
    buf_clear(&self->decoded);
    scan_compose(text->bytes, &self->decoded);
    if (self->decoded.err == BAY_OK) {
        scan_text_nested(self, text, buf_view(&self->decoded), "decomposed letters");
    }
}

static void run_text(scanner *self, scan_text *text)
{
    size_t hidden_before = self->hidden.len;
    self->place += 1000;
    self->text_place = self->place;
    self->before_len = 0;
    self->latin_words = 0;
    reader reading = {.scan = self, .text = text, .before = NO_CHARACTER};
    read_text(&reading);
    look_behind(self, &reading);
    look_plain(self, &reading);
    look_composed(self, text);
    scan_marks_run(self, text);
    if (text->depth == 0 && self->hidden.len > hidden_before) {
        bay_str hidden = buf_view(&self->hidden);
        scan_text_nested(self, text, hidden, "characters that do not show");
    }
    if (text->depth == 0) {
        buf_clear(&self->hidden);
    }
}

void scan_text_nested(scanner *self, const scan_text *outer, bay_str text, const char *encoding)
{
    scan_text inner = {.bytes = text,
                       .role = outer->role,
                       .depth = outer->depth + 1,
                       .encoding = encoding,
                       .found = outer->found,
                       .user_found = outer->user_found};
    if (outer->depth > 0 || text.len == 0) {
        return;
    }
    /* the reader of the outer text goes on behind it */
    char before[SCAN_WORD_BYTES];
    size_t before_len = self->before_len;
    size_t latin_words = self->latin_words;
    memcpy(before, self->before, before_len);
    run_text(self, &inner);
    memcpy(self->before, before, before_len);
    self->before_len = before_len;
    self->latin_words = latin_words;
    self->place += 1000;
    self->text_place = self->place;
}

void scan_text_run(scanner *self, bay_str bytes, scan_role role)
{
    if (bytes.len > self->left) {
        self->out->is_cut = true;
        bytes = shown_whole(str_head(bytes, self->left));
    }
    self->left -= bytes.len;
    scan_text text = {.bytes = bytes, .role = role};
    run_text(self, &text);
}

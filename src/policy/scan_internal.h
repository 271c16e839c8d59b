/* What the files of the scanner share: concepts, the lexicon, a text under way. */
#ifndef POLICY_SCAN_INTERNAL_H
#define POLICY_SCAN_INTERNAL_H

#include "base/check.h"
#include "base/str.h"
#include "policy/scan.h"

/* ---- concepts -------------------------------------------------------------------------------- */

typedef enum scan_concept {
#define SCAN_CONCEPT(symbol) SCAN_C_##symbol,
#include "policy/scan_concepts.def"
    SCAN_CONCEPTS
} scan_concept;

_Static_assert(SCAN_CONCEPTS <= 64, "a set of concepts is a word of 64 bits");

typedef uint64_t scan_meaning; /* a set of concepts */
#define SCAN_MEANS(symbol) ((scan_meaning)1 << SCAN_C_##symbol)

/* ---- characters ------------------------------------------------------------------------------ */

typedef enum scan_class {
    SCAN_LETTER,   /* of an alphabet whose words stand apart */
    SCAN_SYLLABLE, /* of a script without spaces: Han, kana, Thai */
    SCAN_JOINED,   /* of a script whose words take others in: Hangul, Arabic, Devanagari */
    SCAN_DIGIT,
    SCAN_SPACE,
    SCAN_NEWLINE,
    SCAN_STOP,   /* ends a sentence */
    SCAN_QUOTE,  /* an apostrophe: inside a word it counts as nothing */
    SCAN_MARK,   /* combines with the letter before it */
    SCAN_HIDDEN, /* is not seen */
    SCAN_OTHER,
} scan_class;

/* A character as the scanner compares it. */
typedef struct scan_char {
    uint32_t folded; /* small, without marks; a styled letter as the plain one */
    uint32_t latin;  /* the Latin letter that it looks like; 0: none, or it is one */
    scan_class class;
    bool is_latin;  /* it is written in Latin letters */
    bool is_styled; /* mathematical, full-width, enclosed or small capital */
} scan_char;

scan_char scan_fold(uint32_t code);
void scan_put(buf *out, uint32_t code); /* in UTF-8 */

/* Has `text` letters of Hangul or marks of kana that belong together with what stands before
 * them? */
bool scan_needs_composing(bay_str text);
/* Appends the text with these composed. Errors stick in `out`. Source: Unicode 15, section 3.12. */
void scan_compose(bay_str text, buf *out);

/* ---- the lexicon ----------------------------------------------------------------------------- */

enum { SCAN_WORD_BYTES = 48 };

/* Built at the first use and kept; any thread. BAY_ERR_NOMEM. */
typedef struct scan_lexicon scan_lexicon;
bay_err scan_lexicon_get(const scan_lexicon **out) BAY_MUST_CHECK;
/* What the folded word means, behind `before` (may be empty). 0: nothing. */
scan_meaning scan_lexicon_word(const scan_lexicon *self, bay_str word, bay_str before);
/* The longest entry of a script without spaces at the front of `text`, which is folded UTF-8;
 * *out_len: its bytes. `is_start`: a word begins here. */
scan_meaning scan_lexicon_run(const scan_lexicon *self, bay_str text, bool is_start,
                              size_t *out_len);
/* Words and bytes of it, for tests and documents. */
void scan_lexicon_count(const scan_lexicon *self, size_t *out_words, size_t *out_bytes);

/* ---- users' rules ---------------------------------------------------------------------------- */

typedef struct scan_user_rule {
    char id[40];
    char why[160];
    scan_severity severity;
    size_t group_count;
    struct {
        size_t count;
        bay_str words[SCAN_USER_WORDS]; /* folded; in `text` */
        bool is_prefix[SCAN_USER_WORDS];
    } groups[SCAN_USER_GROUPS];
    char text[SCAN_USER_TEXT_BYTES];
} scan_user_rule;

struct scan_rule_set {
    size_t count;
    scan_user_rule rules[SCAN_USER_RULES];
};

/* ---- a text under way ------------------------------------------------------------------------ */

/* Where a text stands in its definition. */
typedef enum scan_role {
    SCAN_IN_TEXT,  /* description, title, instructions, content */
    SCAN_IN_VALUE, /* default, enum, const, pattern, format */
    SCAN_IN_NAME,  /* a name or a property's key */
    SCAN_IN_URI,
} scan_role;

enum {
    SCAN_PATTERN_GROUPS = 5,
    SCAN_RUN_PLAIN = 24,      /* letters in a row that may be an encoding, from here on */
    SCAN_LONG_KEY_BYTES = 24, /* a longer key is a text */
    SCAN_WORD_STEP = 3,       /* places that a word takes: finer than one, for syllables */
};

/* A word that means something, or a letter run: its place in the text. */
typedef struct scan_span {
    uint32_t place; /* in steps, growing over all texts of a scanner's life */
    uint32_t start; /* bytes of the text */
    uint32_t end;
} scan_span;

typedef struct scan_text {
    bay_str bytes;
    scan_role role;
    unsigned depth;       /* of encodings */
    const char *encoding; /* NULL: plain */
    uint64_t found;       /* rules already told of this text, one bit each */
    uint64_t user_found;
    size_t comment_end; /* of the comment of markup that was read last */
} scan_text;

struct scanner {
    const scan_lexicon *lexicon;
    const scan_rule_set *rules;
    const scan_names *names;
    scan_report *out;
    scan_kind kind;
    size_t left;   /* bytes that may still be scanned */
    size_t passed; /* of content: bytes of its texts so far; they are scanned … */
    size_t head;   /* … up to here, … */
    size_t tail;   /* … and from here on */
    char pointer[SCAN_POINTER_BYTES];
    size_t pointer_len;
    uint32_t place;
    uint32_t text_place;                     /* where the text under way begins */
    uint32_t denied_place;                   /* of the last negation; 0: none */
    uint64_t patterns_of[SCAN_CONCEPTS];     /* one bit a pattern */
    scan_span last[64][SCAN_PATTERN_GROUPS]; /* of each pattern's groups */
    scan_span user_last[SCAN_USER_RULES][SCAN_USER_GROUPS];
    char before[SCAN_WORD_BYTES]; /* the word before, folded */
    size_t before_len;
    size_t latin_words; /* of the text, in Latin letters */
    buf decoded;        /* of an encoding inside a text */
    buf hidden;         /* spelt by tag characters or variation selectors */
    arena memory;       /* decoded strings of the definition */
};

_Static_assert(SCAN_RULES <= 64, "a text's rules are bits of a word");

/* scan_text.c: scans one text: characters, words, encodings. */
void scan_text_run(scanner *self, bay_str text, scan_role role);
/* What an encoding inside of `outer` says; it is read like any text, one level deep. */
void scan_text_nested(scanner *self, const scan_text *outer, bay_str text, const char *encoding);
/* Does it read as a sentence: several words between spaces, or of a script without them? */
bool scan_is_sentence(bay_str text);
/* scan_patterns.c: a word that means something was read. */
void scan_patterns_index(uint64_t out[SCAN_CONCEPTS]);
void scan_patterns_feed(scanner *self, scan_text *text, scan_meaning meaning, scan_span at);
void scan_patterns_user(scanner *self, scan_text *text, bay_str word, scan_span at);
bool scan_has_user_rules(const scanner *self);
/* scan_marks.c: markup, templates, blank space: what a whole text looks like. */
void scan_marks_run(scanner *self, scan_text *text);
/* scan_run.c: a run of ASCII without white space: an address, a path, an encoding. What it means as
 * one word; 0: its words are to be read. */
scan_meaning scan_run_read(scanner *self, scan_text *text, bay_str run, size_t start);
/* Is it the path of a file that holds secrets? */
bool scan_is_secret_path(bay_str text);
/* scan_schema.c: what annotations, names and schemas say together. */
void scan_schema_run(scanner *self, json_val definition);

/* scan_content.c: what the texts of content have, in bytes as they are written. */
size_t scan_content_bytes(json_val content);
/* Is this member of an object that lies at `pointer` an image or another file, which nobody reads as
 * a text? */
bool scan_content_is_file(bay_str pointer, bay_str key, json_val value);

/* scan.c: reports. `start` and `end` are bytes of the text. */
void scan_report_add(scanner *self, scan_text *text, scan_rule rule, size_t start, size_t end);
void scan_report_user(scanner *self, scan_text *text, const scan_user_rule *rule, size_t start,
                      size_t end);
/* About what stands at the pointer, not about a text. */
void scan_report_place(scanner *self, scan_rule rule, bay_str excerpt);
/* The pointer of what is being looked at. Returns what to give back to leave. */
size_t scan_pointer_enter(scanner *self, bay_str key);
size_t scan_pointer_enter_index(scanner *self, size_t index);
void scan_pointer_leave(scanner *self, size_t before);

#endif

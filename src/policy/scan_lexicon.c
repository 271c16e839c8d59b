/* The lexicon: words and what they mean, from the tables, folded as texts are.
 *
 * A word is found by its first three bytes: they select a bucket, whose entries are compared.
 * Scripts without spaces have buckets by their first character, the longest entries first. */
#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/shown.h"
#include "policy/scan_internal.h"

enum { BUCKETS = 4096, MOST_WORDS = 16384, TEXT_BYTES = 512 << 10 };

typedef struct entry {
    scan_meaning meaning;
    uint32_t text;   /* in `texts` */
    uint32_t before; /* the word that must stand before it; 0: any */
    uint16_t next;   /* in its bucket; 0: none */
    uint8_t len;
    uint8_t before_len;
    bool is_prefix;
    bool is_run;        /* of a script without spaces */
    bool is_whole_word; /* too short to be looked for inside of words */
} entry;

struct scan_lexicon {
    uint16_t buckets[BUCKETS];
    uint16_t runs[BUCKETS];
    entry *entries; /* from 1 on */
    size_t count;
    buf texts;
};

static const struct {
    scan_meaning meaning;
    const char *words;
} rows[] = {
#define SCAN_WORDS(concept, words) {SCAN_MEANS(concept), words},
#include "policy/scan_words.def"
#include "policy/scan_words_de_nl.def"
#include "policy/scan_words_other.def"
#include "policy/scan_words_romance.def"
#include "policy/scan_words_slavic.def"
#undef SCAN_WORDS
};

static uint32_t bucket_of(bay_str word)
{
    uint32_t key = (unsigned char)word.at[0];
    key |= word.len > 1 ? (uint32_t)(unsigned char)word.at[1] << 8 : 0;
    key |= word.len > 2 ? (uint32_t)(unsigned char)word.at[2] << 16 : 0;
    return (key * 2654435761u) >> 20;
}

/* The class of a word's first character, and how many characters it has. */
static scan_class class_of(bay_str word, size_t *out_characters)
{
    scan_class first = SCAN_OTHER;
    *out_characters = 0;
    while (word.len > 0) {
        uint32_t code = 0;
        size_t len = shown_decode(word, &code);
        if (len == 0) {
            break;
        }
        if ((*out_characters)++ == 0) {
            first = scan_fold(code).class;
        }
        word = str_from(word, len);
    }
    return first;
}

/* A word of the table, folded, appended to the texts. A hyphen separates two words, as it does in
 * texts; an underscore stays. */
static bay_str fold_word(buf *texts, bay_str word)
{
    size_t start = texts->len;
    while (word.len > 0) {
        uint32_t code = 0;
        size_t len = shown_decode(word, &code);
        scan_char folded = scan_fold(code);
        if (folded.class != SCAN_MARK && folded.class != SCAN_QUOTE) {
            scan_put(texts, code == '-' ? '_' : folded.folded);
        }
        word = str_from(word, len);
    }
    return (bay_str){texts->at + start, texts->len - start};
}

static entry *find_same(scan_lexicon *self, uint16_t at, const entry *like)
{
    for (; at != 0; at = self->entries[at].next) {
        entry *known = &self->entries[at];
        if (known->len == like->len && known->before_len == like->before_len &&
            known->is_prefix == like->is_prefix &&
            memcmp(self->texts.at + known->text, self->texts.at + like->text, like->len) == 0 &&
            memcmp(self->texts.at + known->before, self->texts.at + like->before,
                   like->before_len) == 0) {
            return known;
        }
    }
    return NULL;
}

/* Longest first. */
static void link_entry(scan_lexicon *self, uint16_t *head, uint16_t number)
{
    while (*head != 0 && self->entries[*head].len >= self->entries[number].len) {
        head = &self->entries[*head].next;
    }
    self->entries[number].next = *head;
    *head = number;
}

static bay_err add_word(scan_lexicon *self, bay_str word, scan_meaning meaning)
{
    bool is_prefix = str_ends(word, STR("*"));
    bay_str folded = fold_word(&self->texts, is_prefix ? str_head(word, word.len - 1) : word);
    if (self->texts.err != BAY_OK || self->count + 1 >= MOST_WORDS) {
        return self->texts.err != BAY_OK ? self->texts.err : BAY_ERR_LIMIT;
    }
    size_t characters = 0;
    scan_class class = class_of(folded, &characters);
    entry made = {.meaning = meaning, .is_prefix = is_prefix};
    made.is_run = class == SCAN_SYLLABLE || class == SCAN_JOINED;
    size_t gap = made.is_run ? folded.len : str_find(folded, '_');
    bay_str last = gap < folded.len ? str_from(folded, gap + 1) : folded;
    made.text = (uint32_t)(last.at - self->texts.at);
    made.len = (uint8_t)last.len;
    made.before = gap < folded.len ? (uint32_t)(folded.at - self->texts.at) : 0;
    made.before_len = gap < folded.len ? (uint8_t)gap : 0;
    made.is_whole_word = class == SCAN_JOINED && characters <= 3;
    uint16_t *head = made.is_run ? &self->runs[bucket_of(last)] : &self->buckets[bucket_of(last)];
    entry *same = find_same(self, *head, &made);
    if (same != NULL) {
        same->meaning |= meaning;
        return BAY_OK;
    }
    self->entries[++self->count] = made;
    link_entry(self, head, (uint16_t)self->count);
    return BAY_OK;
}

static void lexicon_free(scan_lexicon *self)
{
    if (self != NULL) {
        mem_free(self->entries);
        buf_fini(&self->texts);
        mem_free(self);
    }
}

static bay_err lexicon_new(scan_lexicon **out)
{
    scan_lexicon *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    buf_init(&self->texts, TEXT_BYTES);
    self->entries = mem_array(MOST_WORDS, sizeof(*self->entries));
    /* folded texts are no longer than the tables: reserved, they stay where they are */
    bool has_room = buf_reserve(&self->texts, TEXT_BYTES / 2);
    bay_err err = self->entries != NULL && has_room ? BAY_OK : BAY_ERR_NOMEM;
    for (size_t i = 0; err == BAY_OK && i < ARRAY_LEN(rows); i++) {
        bay_str rest = str_of(rows[i].words);
        while (err == BAY_OK && rest.len > 0) {
            bay_str word = str_head(rest, str_find(rest, ' '));
            rest = str_from(rest, word.len + 1);
            err = word.len > 0 ? add_word(self, word, rows[i].meaning) : BAY_OK;
        }
    }
    if (err != BAY_OK) {
        lexicon_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

bay_err scan_lexicon_get(const scan_lexicon **out)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static scan_lexicon *shared;
    (void)pthread_mutex_lock(&lock);
    bay_err err = shared != NULL ? BAY_OK : lexicon_new(&shared);
    *out = shared;
    (void)pthread_mutex_unlock(&lock);
    return err;
}

scan_meaning scan_lexicon_word(const scan_lexicon *self, bay_str word, bay_str before)
{
    scan_meaning meaning = 0;
    const char *texts = self->texts.at;
    for (uint16_t at = self->buckets[bucket_of(word)]; at != 0; at = self->entries[at].next) {
        const entry *known = &self->entries[at];
        bool is_long_enough = known->is_prefix ? word.len >= known->len : word.len == known->len;
        if (!is_long_enough || memcmp(texts + known->text, word.at, known->len) != 0) {
            continue;
        }
        if (known->before_len == 0 || (known->before_len == before.len &&
                                       memcmp(texts + known->before, before.at, before.len) == 0)) {
            meaning |= known->meaning;
        }
    }
    return meaning;
}

/* Bytes of `text` that the entry takes, over white space where it has an underscore; 0: not
 * there. */
static size_t match_run(bay_str entry_text, bay_str text)
{
    size_t at = 0;
    for (size_t i = 0; i < entry_text.len; i++) {
        if (entry_text.at[i] == '_') {
            while (at < text.len && text.at[at] == ' ') {
                at++;
            }
            continue;
        }
        if (at >= text.len || text.at[at] != entry_text.at[i]) {
            return 0;
        }
        at++;
    }
    return at;
}

static bool ends_word(bay_str rest)
{
    uint32_t code = 0;
    return rest.len == 0 || shown_decode(rest, &code) == 0 || scan_fold(code).class != SCAN_JOINED;
}

static bool is_hangul(bay_str text)
{
    unsigned char first = (unsigned char)text.at[0];
    return first >= 0xea && first <= 0xed; /* U+A000 to U+DFFF */
}

scan_meaning scan_lexicon_run(const scan_lexicon *self, bay_str text, bool is_start,
                              size_t *out_len)
{
    *out_len = 0;
    for (uint16_t at = self->runs[bucket_of(text)]; at != 0; at = self->entries[at].next) {
        const entry *known = &self->entries[at];
        bay_str entry_text = {self->texts.at + known->text, known->len};
        size_t len = match_run(entry_text, text);
        if (len == 0 || (known->is_whole_word &&
                         (!is_start || (!is_hangul(text) && !ends_word(str_from(text, len)))))) {
            continue;
        }
        *out_len = len;
        return known->meaning;
    }
    return 0;
}

void scan_lexicon_count(const scan_lexicon *self, size_t *out_words, size_t *out_bytes)
{
    *out_words = self->count;
    *out_bytes = self->texts.len;
}

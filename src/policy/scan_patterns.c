/* Patterns: rules of the words tier. Each pattern keeps where a word of each of its groups was read
 * last; it is found when the farthest of them is near enough. So a word costs the patterns that it is
 * part of, and nothing is read twice. */
#include "policy/scan_internal.h"

enum { ANY = 0, VALUE = 1 };        /* places */
enum { ORDERED = 1, UNDENIED = 2 }; /* flags */
enum { DENIAL_WORDS = 6 };

typedef struct pattern {
    scan_rule rule;
    scan_meaning made; /* of a composition: what it means; 0: it is a rule */
    unsigned within;
    unsigned place;
    unsigned flags;
    scan_meaning groups[SCAN_PATTERN_GROUPS];
} pattern;

static const pattern patterns[] = {
#define C(symbol) SCAN_MEANS(symbol)
#define SCAN_PATTERN(rule, within, place, flags, ...)                                              \
    {SCAN_##rule, 0, within, place, flags, {__VA_ARGS__}},
#define SCAN_COMPOSE(concept, within, ...) {0, C(concept), within, ANY, ORDERED, {__VA_ARGS__}},
#include "policy/scan_patterns.def"
#undef C
};

_Static_assert(ARRAY_LEN(patterns) <= 64, "the patterns of a concept are bits of a word");

/* Which patterns a concept is part of, made at the first use by each scanner's first word. */
static uint64_t patterns_of(unsigned concept)
{
    uint64_t found = 0;
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        for (size_t k = 0; k < SCAN_PATTERN_GROUPS; k++) {
            found |= (patterns[i].groups[k] >> concept & 1) != 0 ? (uint64_t)1 << i : 0;
        }
    }
    return found;
}

void scan_patterns_index(uint64_t out[SCAN_CONCEPTS])
{
    for (unsigned i = 0; i < SCAN_CONCEPTS; i++) {
        out[i] = patterns_of(i);
    }
}

/* Is each group's last word near the others', and none the same word? */
static bool are_near(const scan_span *spans, size_t count, unsigned within, scan_span *out)
{
    uint32_t least = UINT32_MAX;
    uint32_t most = 0;
    *out = (scan_span){.start = UINT32_MAX};
    for (size_t i = 0; i < count; i++) {
        if (spans[i].place == 0) {
            return false;
        }
        least = spans[i].place < least ? spans[i].place : least;
        most = spans[i].place > most ? spans[i].place : most;
        out->start = spans[i].start < out->start ? spans[i].start : out->start;
        out->end = spans[i].end > out->end ? spans[i].end : out->end;
        for (size_t k = 0; k < i; k++) {
            if (spans[k].place == spans[i].place) {
                return false;
            }
        }
    }
    return most - least <= within * SCAN_WORD_STEP;
}

static size_t group_count(const pattern *of)
{
    size_t count = 0;
    while (count < SCAN_PATTERN_GROUPS && of->groups[count] != 0) {
        count++;
    }
    return count;
}

/* A word that several groups could claim goes to the one whose last word is farthest back. Words of
 * earlier texts are none. */
static void remember(const scanner *self, const pattern *of, scan_span *last, scan_meaning meaning,
                     scan_span at)
{
    size_t best = SCAN_PATTERN_GROUPS;
    for (size_t i = 0; i < SCAN_PATTERN_GROUPS; i++) {
        last[i].place = last[i].place < self->text_place ? 0 : last[i].place;
    }
    for (size_t i = 0; i < SCAN_PATTERN_GROUPS; i++) {
        bool is_older = best == SCAN_PATTERN_GROUPS || last[i].place < last[best].place;
        if ((of->groups[i] & meaning) != 0 && is_older) {
            best = i;
        }
    }
    if (best < SCAN_PATTERN_GROUPS) {
        last[best] = at;
    }
}

static bool is_in_order(const scan_span *last, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (last[i].place < last[i - 1].place) {
            return false;
        }
    }
    return true;
}

/* A negation up to some words before the first of them, or the first itself: never. */
static bool is_denied(const scanner *self, const scan_span *last, size_t count)
{
    uint32_t first = last[0].place;
    for (size_t i = 1; i < count; i++) {
        first = last[i].place < first ? last[i].place : first;
    }
    uint32_t denied = self->denied_place;
    return denied != 0 && denied <= first && first - denied <= DENIAL_WORDS * SCAN_WORD_STEP;
}

static bool feed_one(scanner *self, scan_text *text, unsigned number, scan_meaning meaning,
                     scan_span at, scan_span *out)
{
    const pattern *of = &patterns[number];
    scan_span *last = self->last[number];
    size_t count = group_count(of);
    if ((of->made == 0 && (text->found >> of->rule & 1) != 0) ||
        (of->place == VALUE && text->role != SCAN_IN_VALUE)) {
        return false;
    }
    remember(self, of, last, meaning, at);
    return are_near(last, count, of->within, out) &&
           ((of->flags & ORDERED) == 0 || is_in_order(last, count)) &&
           ((of->flags & UNDENIED) == 0 || !is_denied(self, last, count));
}

void scan_patterns_feed(scanner *self, scan_text *text, scan_meaning meaning, scan_span at)
{
    uint64_t todo = 0;
    scan_span made_at = {0};
    scan_meaning made = 0;
    for (scan_meaning rest = meaning; rest != 0; rest &= rest - 1) {
        todo |= self->patterns_of[__builtin_ctzll(rest)];
    }
    for (; todo != 0; todo &= todo - 1) {
        unsigned number = (unsigned)__builtin_ctzll(todo);
        scan_span found;
        if (!feed_one(self, text, number, meaning, at, &found)) {
            continue;
        }
        if (patterns[number].made == 0) {
            scan_report_add(self, text, patterns[number].rule, found.start, found.end);
        } else {
            made |= patterns[number].made;
            made_at = found;
        }
    }
    if ((meaning & (SCAN_MEANS(NOT) | SCAN_MEANS(NOT_AFTER))) != 0) {
        self->denied_place = at.place;
    }
    if (made != 0) {
        /* at a place of its own: one word in a group must not be two */
        scan_patterns_feed(self, text, made, (scan_span){at.place + 1, made_at.start, made_at.end});
    }
}

/* ---- users' rules ---------------------------------------------------------------------------- */

bool scan_has_user_rules(const scanner *self)
{
    return self->rules != NULL && self->rules->count > 0;
}

void scan_patterns_user(scanner *self, scan_text *text, bay_str word, scan_span at)
{
    enum { WITHIN = 12 };
    for (size_t i = 0; i < self->rules->count; i++) {
        const scan_user_rule *rule = &self->rules->rules[i];
        scan_span *last = self->user_last[i];
        bool is_hit = false;
        for (size_t k = 0; k < rule->group_count; k++) {
            for (size_t w = 0; w < rule->groups[k].count; w++) {
                bay_str known = rule->groups[k].words[w];
                if (rule->groups[k].is_prefix[w] ? str_starts(word, known) : str_eq(word, known)) {
                    last[k] = at;
                    is_hit = true;
                }
            }
        }
        scan_span found;
        if (is_hit && (text->user_found >> i & 1) == 0 &&
            are_near(last, rule->group_count, WITHIN, &found)) {
            text->user_found |= (uint64_t)1 << i;
            scan_report_user(self, text, rule, found.start, found.end);
        }
    }
}

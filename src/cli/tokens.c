#include "cli/tokens.h"

#include "base/str.h"

enum { LETTERS_A_TOKEN = 12, DIGITS_A_TOKEN = 3, MARKS_A_TOKEN = 4, BYTES_A_TOKEN = 2 };

typedef enum kind { KIND_NONE, KIND_WORD, KIND_DIGITS, KIND_MARKS, KIND_SPACE, KIND_WIDE } kind;

typedef struct counter {
    size_t tokens;
    kind kind;
    size_t run; /* bytes of the piece under way */
    bool was_lower;
} counter;

static void piece_end(counter *self)
{
    static const unsigned divisors[] = {
        [KIND_NONE] = 1,
        [KIND_WORD] = LETTERS_A_TOKEN,
        [KIND_DIGITS] = DIGITS_A_TOKEN,
        [KIND_MARKS] = MARKS_A_TOKEN,
        [KIND_SPACE] = 1,
        [KIND_WIDE] = BYTES_A_TOKEN,
    };
    size_t run = self->run;
    if (self->kind == KIND_SPACE) {
        run = run > 1 ? 1 : 0; /* a single one belongs to the word behind it */
    }
    self->tokens += (run + divisors[self->kind] - 1) / divisors[self->kind];
    self->run = 0;
    self->kind = KIND_NONE;
}

static kind kind_of(unsigned char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
        return KIND_WORD;
    }
    if (c >= '0' && c <= '9') {
        return KIND_DIGITS;
    }
    if (c >= 0x80) {
        return KIND_WIDE;
    }
    return c <= ' ' ? KIND_SPACE : KIND_MARKS;
}

static void count(counter *self, unsigned char c)
{
    kind next = kind_of(c);
    bool is_upper = c >= 'A' && c <= 'Z';
    if (next != self->kind || (is_upper && self->was_lower)) {
        piece_end(self);
    }
    self->kind = next;
    self->run++;
    self->was_lower = c >= 'a' && c <= 'z';
}

static void count_json(counter *self, bay_str raw)
{
    bool is_string = false;
    for (size_t i = 0; i < raw.len; i++) {
        unsigned char c = (unsigned char)raw.at[i];
        if (!is_string && kind_of(c) == KIND_SPACE) {
            continue;
        }
        if (is_string && c == '\\' && i + 1 < raw.len) {
            count(self, c);
            c = (unsigned char)raw.at[++i]; /* whatever it is, it does not end the string */
        } else if (c == '"') {
            is_string = !is_string;
        }
        count(self, c);
    }
}

size_t cli_tokens_of_json(bay_str raw)
{
    counter self = {0};
    count_json(&self, raw);
    piece_end(&self);
    return self.tokens;
}

size_t cli_tokens_of_tool(json_val tool)
{
    static const bay_str names[] = {STR_INIT("name"), STR_INIT("description"),
                                    STR_INIT("inputSchema")};
    counter self = {0};
    bool is_first = true;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        json_val value = json_get(tool, names[i]);
        if (json_is(value, JSON_MISSING)) {
            continue;
        }
        count_json(&self, is_first ? STR("{\"") : STR(",\""));
        for (size_t at = 0; at < names[i].len; at++) {
            count(&self, (unsigned char)names[i].at[at]);
        }
        count_json(&self, STR("\":"));
        count_json(&self, json_raw(value));
        is_first = false;
    }
    count_json(&self, is_first ? STR("{}") : STR("}"));
    piece_end(&self);
    return self.tokens;
}

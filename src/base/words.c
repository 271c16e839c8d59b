#include "base/words.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Takes the quotes of the word at `from` off. Returns what is behind it; NULL: a quote is not
 * closed. */
static char *take_word(char *from)
{
    char *to = from;
    char quote = '\0';
    for (; *from != '\0' && (quote != '\0' || !is_space(*from)); from++) {
        if (quote != '\0' && *from == quote) {
            quote = '\0';
        } else if (quote == '\0' && (*from == '\'' || *from == '"')) {
            quote = *from;
        } else {
            *to++ = *from;
        }
    }
    char *behind = *from != '\0' ? from + 1 : from;
    *to = '\0';
    return quote != '\0' ? NULL : behind;
}

bay_err words_split(char *text, char **words, size_t most, size_t *out_count)
{
    size_t count = 0;
    while (true) {
        while (is_space(*text)) {
            text++;
        }
        if (*text == '\0') {
            break;
        }
        if (count == most) {
            return BAY_ERR_LIMIT;
        }
        words[count++] = text;
        text = take_word(text);
        if (text == NULL) {
            return BAY_ERR_SYNTAX;
        }
    }
    words[count] = NULL;
    *out_count = count;
    return BAY_OK;
}

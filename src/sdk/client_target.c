/* What a client connects to: "stdio:" commands taken apart into words, and how a target is shown in
 * messages. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/shown.h"
#include "base/str.h"
#include "sdk/client_parts.h"

static void words_free(char **words)
{
    for (size_t i = 0; words != NULL && words[i] != NULL; i++) {
        mem_free(words[i]);
    }
    mem_free(words);
}

bay_err sdk_target_copy_words(const char *const *argv, char ***out, bay_diag *diag)
{
    size_t count = 0;
    while (count <= CLIENT_MAX_WORDS && argv[count] != NULL) {
        count++;
    }
    if (count > CLIENT_MAX_WORDS) {
        return diag_set(diag, BAY_ERR_LIMIT, "a command of more than %d words", CLIENT_MAX_WORDS);
    }
    char **words = mem_array(count + 1, sizeof(*words));
    for (size_t i = 0; words != NULL && i < count; i++) {
        words[i] = mem_dup(argv[i], strlen(argv[i]));
        if (words[i] == NULL) {
            words_free(words);
            words = NULL;
        }
    }
    if (words == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    *out = words;
    return BAY_OK;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The word at `*at`, its quotes taken off, appended with a NUL. BAY_ERR_SYNTAX: a quote is not
 * closed.
 */
static bay_err take_word(const char **at, buf *out)
{
    char quote = '\0';
    for (; **at != '\0' && (quote != '\0' || !is_space(**at)); (*at)++) {
        if (quote != '\0' && **at == quote) {
            quote = '\0';
        } else if (quote == '\0' && (**at == '\'' || **at == '"')) {
            quote = **at;
        } else {
            buf_char(out, **at);
        }
    }
    buf_char(out, '\0');
    return quote != '\0' ? BAY_ERR_SYNTAX : out->err;
}

bay_err sdk_target_words(const char *command, char ***out, bay_diag *diag)
{
    buf text; /* word after word, each with a NUL */
    size_t count = 0;
    bay_err err = BAY_OK;
    buf_init(&text, CLIENT_MAX_TEXT);
    const char *at = command;
    while (err == BAY_OK) {
        while (is_space(*at)) {
            at++;
        }
        if (*at == '\0') {
            break;
        }
        err = ++count > CLIENT_MAX_WORDS ? BAY_ERR_LIMIT : take_word(&at, &text);
    }
    const char **argv = NULL;
    if (err == BAY_ERR_SYNTAX) {
        err = diag_set(diag, BAY_ERR_INVALID, "stdio:%.100s: a quote is not closed", command);
    } else if (err != BAY_OK) {
        err = diag_set(diag, err, "stdio:%.100s: %s", command, bay_err_text(err));
    } else if (count == 0) {
        err = diag_set(diag, BAY_ERR_INVALID,
                       "stdio: needs a command, as in stdio:./weather --units=c");
    } else {
        argv = mem_array(count + 1, sizeof(*argv));
        err = argv != NULL ? BAY_OK : diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    const char *word = text.at;
    for (size_t i = 0; err == BAY_OK && i < count; i++) {
        argv[i] = word;
        word += strlen(word) + 1;
    }
    err = err == BAY_OK ? sdk_target_copy_words(argv, out, diag) : err;
    mem_free(argv);
    buf_fini(&text);
    return err;
}

/* What may be a secret stays out: user information and the query of a URL, a command's arguments.
 */
void sdk_target_show(const char *url, const char *const *argv, char *out, size_t size)
{
    if (url == NULL) {
        snprintf(out, size, "%.*s", 180, argv != NULL ? argv[0] : "the server in this process");
        return;
    }
    bay_str text = str_head(str_of(url), strcspn(url, "?#"));
    size_t scheme = str_find(text, ':');
    bay_str rest = str_from(text, scheme + 3);
    bay_str authority = str_head(rest, str_find(rest, '/'));
    size_t at = str_find_last(authority, '@');
    rest = at < authority.len ? str_from(rest, at + 1) : rest;
    rest = str_head(rest, 180);
    size_t len = shown_copy(out, size, str_head(text, scheme), SHOWN_LINE);
    len += shown_copy(out + len, size - len, STR("://"), SHOWN_LINE);
    shown_copy(out + len, size - len, shown_whole(rest), SHOWN_LINE);
}

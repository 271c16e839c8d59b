/* What a client connects to: "stdio:" commands taken apart into words, and how a target is shown in
 * messages. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/shown.h"
#include "base/str.h"
#include "base/words.h"
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

bay_err sdk_target_words(const char *command, char ***out, bay_diag *diag)
{
    size_t count = 0;
    size_t len = strlen(command);
    if (len > CLIENT_MAX_TEXT) {
        return diag_set(diag, BAY_ERR_LIMIT, "stdio:%.100s: %s", command,
                        bay_err_text(BAY_ERR_LIMIT));
    }
    char *text = mem_dup(command, len);
    char **words = mem_array(CLIENT_MAX_WORDS + 1, sizeof(*words));
    bay_err err = text != NULL && words != NULL ? words_split(text, words, CLIENT_MAX_WORDS, &count)
                                                : BAY_ERR_NOMEM;
    if (err == BAY_ERR_SYNTAX) {
        err = diag_set(diag, BAY_ERR_INVALID, "stdio:%.100s: a quote is not closed", command);
    } else if (err == BAY_ERR_NOMEM) {
        err = diag_set(diag, err, "out of memory");
    } else if (err != BAY_OK) {
        err = diag_set(diag, err, "stdio:%.100s: %s", command, bay_err_text(err));
    } else if (count == 0) {
        err = diag_set(diag, BAY_ERR_INVALID,
                       "stdio: needs a command, as in stdio:./weather --units=c");
    } else {
        err = sdk_target_copy_words((const char *const *)words, out, diag);
    }
    mem_free(words);
    mem_free(text);
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

/* ${file:PATH} and ${exec:PROGRAM ARGUMENT …}: secrets that are in neither the configuration nor
 * the environment. A program is started without a shell; what it writes to its stdout is the
 * secret. Both block whoever loads the configuration, for CONFIG_SECRET_MS at most. */
#include "base/err.h"
#include "base/mem.h"
#include "config/internal.h"
#include "net/capture.h"

enum { WORDS = 32, COMMAND_BYTES = 4096 };

typedef struct secret_text {
    char at[CONFIG_SECRET_BYTES];
    size_t len;
} secret_text;

/* The words between spaces; `text` is written into. */
static const char *run_words(char *text, secret_text *out)
{
    char *argv[WORDS + 1] = {NULL};
    size_t count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        if (count == WORDS) {
            return "it has more than 32 words";
        }
        argv[count++] = word;
    }
    return capture_program(argv, CONFIG_SECRET_MS, out->at, sizeof(out->at), &out->len);
}

static const char *read_source(bay_str source, secret_text *out)
{
    char text[COMMAND_BYTES];
    bay_str what = str_from(source, sizeof("file:") - 1);
    if (what.len == 0 || what.at[0] != '/') {
        return "write the whole path, from / on";
    }
    if (what.len >= sizeof(text) || memchr(what.at, '\0', what.len) != NULL) {
        return "it is too long";
    }
    memcpy(text, what.at, what.len);
    text[what.len] = '\0';
    const char *fault =
        str_starts(source, STR("file:"))
            ? capture_file(text, CONFIG_SECRET_MS, out->at, sizeof(out->at), &out->len)
            : run_words(text, out);
    while (fault == NULL && out->len > 0 &&
           (out->at[out->len - 1] == '\n' || out->at[out->len - 1] == '\r')) {
        out->len--;
    }
    return fault == NULL && out->len == 0 ? "it is empty" : fault;
}

static bool keep(config_loader *loader, bay_str source, bay_str value, bay_str *out)
{
    config_secret *secret = config_pool_alloc(&loader->kept, sizeof(*secret));
    if (secret != NULL) {
        secret->source = config_pool_dup(&loader->kept, source);
        secret->value = config_pool_dup(&loader->kept, value);
    }
    if (secret == NULL || secret->source.at == NULL || secret->value.at == NULL) {
        loader->err = config_pool_err(&loader->kept);
        return false;
    }
    secret->next = loader->secrets;
    loader->secrets = secret;
    *out = secret->value;
    return true;
}

bool config_secret_read(config_loader *loader, uint32_t line, bay_str source, bay_str *out)
{
    for (const config_secret *at = loader->secrets; at != NULL; at = at->next) {
        if (str_eq(at->source, source)) {
            *out = at->value;
            return true;
        }
    }
    if (loader->secret_count++ == CONFIG_SECRETS) {
        config_error(loader, line, "%s: more than %d different ${file:…} and ${exec:…}",
                     loader->path, CONFIG_SECRETS);
        return false;
    }
    secret_text *text = mem_zalloc(sizeof(*text));
    if (text == NULL) {
        loader->err = BAY_ERR_NOMEM;
        return false;
    }
    bool is_kept = false;
    const char *fault = read_source(source, text);
    if (fault != NULL) {
        config_error(loader, line, "%s: ${%s}: %s", loader->path, config_quote(source).text, fault);
    } else {
        is_kept = keep(loader, source, (bay_str){text->at, text->len}, out);
    }
    mem_wipe(text, sizeof(*text));
    mem_free(text);
    return is_kept;
}

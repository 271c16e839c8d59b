#include "cli/pairs.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "cli/say.h"

enum { MEMORY = 1 << 30 };

typedef struct pair {
    bay_str key;
    bay_str value;
    enum { ANY, TEXT, RAW } form;
} pair;

static pair split(const char *word)
{
    bay_str text = str_of(word);
    size_t equals = str_find(text, '=');
    pair self = {.key = str_head(text, equals), .value = str_from(text, equals + 1)};
    if (self.key.len > 0 && self.key.at[self.key.len - 1] == ':') {
        self.key.len--;
        self.form = RAW;
    } else if (self.value.len > 0 && self.value.at[0] == '=') {
        self.value = str_from(self.value, 1);
        self.form = TEXT;
    }
    return self;
}

/* VALUE as JSON, byte for byte. BAY_ERR_SYNTAX: it is none. */
static bay_err put_json(json_writer *writer, bay_str value)
{
    json_doc doc;
    arena memory;
    arena_init(&memory, MEMORY);
    bay_err err = json_parse(&doc, str_trim(value), NULL, &memory, NULL);
    if (err == BAY_OK) {
        json_put_val(writer, json_root(&doc));
    }
    arena_fini(&memory);
    return err;
}

static bay_err put_pair(json_writer *writer, const pair *self, bool is_text, bay_diag *diag)
{
    if (!json_is_utf8(self->key) || !json_is_utf8(self->value)) { /* the writer would change it */
        return diag_set(diag, BAY_ERR_INVALID,
                        "an argument is not UTF-8: give it as JSON with \\u");
    }
    json_key(writer, self->key);
    bay_err err = is_text || self->form == TEXT ? BAY_ERR_SYNTAX : put_json(writer, self->value);
    if (err != BAY_ERR_SYNTAX) {
        return err; /* also if it is too deep: it may be JSON, so it is not sent as a text */
    }
    if (self->form == RAW) {
        return diag_set(diag, BAY_ERR_INVALID, "%.*s:= needs JSON%s",
                        BAY_STR(str_head(self->key, 64)),
                        is_text ? ", and arguments of prompts are texts: write KEY=VALUE" : "");
    }
    json_put_str(writer, self->value);
    return BAY_OK;
}

bay_err cli_pairs_write(char *const *pairs, size_t count, bool is_text, json_writer *out,
                        bay_diag *diag)
{
    json_open_object(out);
    for (size_t i = 0; i < count; i++) {
        pair self = split(pairs[i]);
        if (self.key.len == 0) {
            return diag_set(diag, BAY_ERR_INVALID, "an argument has no name: write KEY=VALUE");
        }
        for (size_t k = 0; k < i; k++) {
            if (str_eq(split(pairs[k]).key, self.key)) {
                return diag_set(diag, BAY_ERR_INVALID,
                                "the argument %.*s was given twice: keep one",
                                BAY_STR(str_head(self.key, 64)));
            }
        }
        bay_err err = put_pair(out, &self, is_text, diag);
        if (err != BAY_OK) {
            return err == BAY_ERR_INVALID ? err : diag_set(diag, err, "%s", bay_err_text(err));
        }
    }
    json_close_object(out);
    bay_err err = out->out->err;
    return err == BAY_OK ? err : diag_set(diag, err, "%s", bay_err_text(err));
}

/* ---- --arguments ----------------------------------------------------------------------------- */

static bay_err read_all(int file, buf *out)
{
    char chunk[16 * 1024];
    ssize_t got;
    do {
        got = read(file, chunk, sizeof(chunk));
        if (got > 0) {
            buf_append(out, chunk, (size_t)got);
        }
    } while (out->err == BAY_OK && (got > 0 || (got < 0 && errno == EINTR)));
    return out->err != BAY_OK ? out->err : got < 0 ? BAY_ERR_IO : BAY_OK;
}

static bay_err read_named(const char *name, buf *out, bay_diag *diag)
{
    bool is_stdin = str_eq(str_of(name), STR("-"));
    int file = is_stdin ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    bay_err err = file >= 0 ? read_all(file, out) : BAY_ERR_IO;
    int reason = errno;
    if (!is_stdin && file >= 0) {
        close(file);
    }
    if (err == BAY_ERR_IO) {
        return diag_set(diag, err, "--arguments: %s: %s", is_stdin ? "stdin" : name,
                        strerror(reason));
    }
    if (err == BAY_ERR_LIMIT) {
        return diag_set(diag, err, "--arguments: more than %d bytes", CLI_PAIRS_BYTES);
    }
    return err; /* BAY_ERR_NOMEM */
}

static bay_err put_object(bay_str text, json_writer *out, bay_diag *diag)
{
    json_doc doc;
    arena memory;
    bay_diag where = {0};
    arena_init(&memory, MEMORY);
    bay_err err = json_parse(&doc, text, NULL, &memory, &where);
    if (err == BAY_ERR_NOMEM) {
        (void)diag_set(diag, err, "%s", bay_err_text(err));
    } else if (err != BAY_OK) {
        err = diag_at(diag, BAY_ERR_INVALID, where.offset, "--arguments: no JSON at byte %zu: %s",
                      where.offset, where.text);
    } else if (!json_is(json_root(&doc), JSON_OBJECT)) {
        err = diag_set(diag, BAY_ERR_INVALID, "--arguments needs a JSON object: {\"KEY\": VALUE}");
    } else {
        json_put_val(out, json_root(&doc));
        err = out->out->err;
        err = err == BAY_OK ? err : diag_set(diag, err, "%s", bay_err_text(err));
    }
    arena_fini(&memory);
    return err;
}

bay_err cli_pairs_read(const char *text, json_writer *out, bay_diag *diag)
{
    if (text[0] != '@') {
        return put_object(str_of(text), out, diag);
    }
    buf file;
    buf_init(&file, CLI_PAIRS_BYTES);
    bay_err err = read_named(text + 1, &file, diag);
    if (err == BAY_OK) {
        err = put_object(buf_view(&file), out, diag);
    }
    buf_fini(&file);
    return err;
}

cli_exit cli_pairs_params(const cli_arguments *arguments, bool is_text, json_builder *made,
                          json_val *out)
{
    bay_diag diag = {0};
    bay_err err;
    json_writer *to = json_builder_init(made, NULL, 2 * (size_t)CLI_PAIRS_BYTES);
    json_open_object(to);
    json_key_lit(to, "name");
    json_put_str(to, str_of(arguments->name));
    json_key_lit(to, "arguments");
    if (arguments->json_arguments != NULL) {
        err = cli_pairs_read(arguments->json_arguments, to, &diag);
    } else {
        err = cli_pairs_write(arguments->pairs, arguments->pair_count, is_text, to, &diag);
    }
    if (err == BAY_OK) {
        json_close_object(to);
        err = json_builder_view(made, out);
    }
    if (err == BAY_OK) {
        return CLI_EXIT_OK;
    }
    cli_say("%s", diag.code != BAY_OK ? diag.text : bay_err_text(err));
    return err == BAY_ERR_NOMEM || err == BAY_ERR_IO ? CLI_EXIT_FAILED : CLI_EXIT_USAGE;
}

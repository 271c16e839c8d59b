#include "cli/pairs.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "cli/say.h"
#include "json/writer.h"

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

static bay_err check_json(bay_str text, json_kind *out_kind, bay_diag *diag)
{
    json_doc doc;
    arena memory;
    arena_init(&memory, MEMORY);
    bay_err err = json_parse(&doc, text, NULL, &memory, diag);
    if (err == BAY_OK) {
        *out_kind = json_kind_of(json_root(&doc));
    }
    arena_fini(&memory);
    return err;
}

/* Where a text would not be UTF-8, the writer would change it. */
static bay_err check_text(bay_str key, bay_str value, bay_diag *diag)
{
    buf quoted;
    json_kind kind;
    bay_err err = BAY_OK;
    for (int i = 0; i < 2 && err == BAY_OK; i++) {
        bay_str text = i == 0 ? key : value;
        buf_init(&quoted, CLI_PAIRS_BYTES);
        buf_char(&quoted, '"');
        for (size_t at = 0; at < text.len; at++) {
            unsigned char c = (unsigned char)text.at[at];
            buf_char(&quoted, c < 0x20 || c == '"' || c == '\\' ? ' ' : text.at[at]);
        }
        buf_char(&quoted, '"');
        err = quoted.err == BAY_OK ? check_json(buf_view(&quoted), &kind, diag) : quoted.err;
        buf_fini(&quoted);
    }
    if (err == BAY_ERR_UTF8) {
        return diag_set(diag, BAY_ERR_INVALID,
                        "an argument is not UTF-8: give it as JSON with \\u");
    }
    return err;
}

static bay_err put_pair(json_writer *writer, const pair *self, bool is_text, bay_diag *diag)
{
    json_kind kind;
    bay_err err = check_text(self->key, self->value, diag);
    if (err != BAY_OK) {
        return err;
    }
    json_key(writer, self->key);
    bool may_be_json = !is_text && self->form != TEXT;
    err = may_be_json ? check_json(str_trim(self->value), &kind, NULL) : BAY_ERR_SYNTAX;
    if (err == BAY_OK) {
        json_put_raw(writer, str_trim(self->value));
        return BAY_OK;
    }
    if (err != BAY_ERR_SYNTAX) {
        return err; /* too deep, no memory: JSON it may be, so it is not sent as a text */
    }
    if (self->form == RAW) {
        return diag_set(diag, BAY_ERR_INVALID, "%.*s:= needs JSON%s",
                        BAY_STR(str_head(self->key, 64)),
                        is_text ? ", and arguments of prompts are texts: write KEY=VALUE" : "");
    }
    json_put_str(writer, self->value);
    return BAY_OK;
}

bay_err cli_pairs_write(char *const *pairs, size_t count, bool is_text, buf *out, bay_diag *diag)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
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
        bay_err err = put_pair(&writer, &self, is_text, diag);
        if (err != BAY_OK) {
            return err == BAY_ERR_INVALID ? err : diag_set(diag, err, "%s", bay_err_text(err));
        }
    }
    json_close_object(&writer);
    return out->err == BAY_OK ? BAY_OK : diag_set(diag, out->err, "%s", bay_err_text(out->err));
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
    return err;
}

bay_err cli_pairs_read(const char *text, buf *out, bay_diag *diag)
{
    size_t start = out->len;
    bay_diag where = {0};
    json_kind kind = JSON_MISSING;
    bay_err err = BAY_OK;
    if (text[0] == '@') {
        err = read_named(text + 1, out, diag);
    } else {
        buf_str(out, str_of(text));
        err = out->err;
    }
    if (err != BAY_OK) {
        return err == BAY_ERR_NOMEM ? diag_set(diag, err, "%s", bay_err_text(err)) : err;
    }
    err = check_json(str_from(buf_view(out), start), &kind, &where);
    if (err == BAY_ERR_NOMEM) {
        return diag_set(diag, err, "%s", bay_err_text(err));
    }
    if (err != BAY_OK) {
        return diag_at(diag, BAY_ERR_INVALID, where.offset, "--arguments: no JSON at byte %zu: %s",
                       where.offset, where.text);
    }
    if (kind != JSON_OBJECT) {
        return diag_set(diag, BAY_ERR_INVALID, "--arguments needs a JSON object: {\"KEY\": VALUE}");
    }
    return BAY_OK;
}

cli_exit cli_pairs_take(const cli_arguments *arguments, bool is_text, buf *out)
{
    bay_diag diag = {0};
    bay_err err;
    if (arguments->json_arguments != NULL) {
        err = cli_pairs_read(arguments->json_arguments, out, &diag);
    } else {
        err = cli_pairs_write(arguments->pairs, arguments->pair_count, is_text, out, &diag);
    }
    if (err == BAY_OK) {
        return CLI_EXIT_OK;
    }
    cli_say("%s", diag.text);
    return err == BAY_ERR_NOMEM || err == BAY_ERR_IO ? CLI_EXIT_FAILED : CLI_EXIT_USAGE;
}

/* The lock as text, read line by line. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "trust/lock.h"
#include "json/json.h"
#include "json/utf8.h"

typedef struct lock_reader {
    trust_lock *self;
    bay_str rest;
    uint32_t line; /* the one under way */
    bay_diag *diag;
    trust_pinned *server; /* under way; NULL: none yet */
    trust_pin item;
    uint32_t item_line; /* 0: none is under way */
    bool is_as_written;
    buf canon;
} lock_reader;

static bay_err fail(const lock_reader *self, bay_err err, uint32_t line, const char *format, ...)
    BAY_PRINTF(4, 5);

static bay_err fail(const lock_reader *self, bay_err err, uint32_t line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (self->diag != NULL) {
        (void)diag_set(self->diag, err, "%s", "");
        (void)vsnprintf(self->diag->text, sizeof(self->diag->text), format, arguments);
        self->diag->line = line;
    }
    va_end(arguments);
    return err;
}

static bay_err memory_failed(const lock_reader *self, bay_err err)
{
    return fail(self, err, self->line, "%s",
                err == BAY_ERR_LIMIT ? "the lock has more entries than its maximum"
                                     : bay_err_text(err));
}

/* ---- words ----------------------------------------------------------------------------------- */

/* The word at the front, and the blank behind it, taken off. */
static bay_str take_word(bay_str *text)
{
    bay_str word = str_head(*text, str_find(*text, ' '));
    *text = str_trim(str_from(*text, word.len));
    return word;
}

/* A name in quotes, as JSON writes it, taken off the front. BAY_ERR_SYNTAX: there is none. */
static bay_err take_name(lock_reader *self, bay_str *text, bay_str *out)
{
    size_t end = 1;
    if (text->len < 2 || text->at[0] != '"') {
        return BAY_ERR_SYNTAX;
    }
    while (end < text->len && text->at[end] != '"') {
        end += text->at[end] == '\\' ? 2 : 1;
    }
    if (end >= text->len) {
        return BAY_ERR_SYNTAX;
    }
    json_doc doc;
    bay_str quoted = str_head(*text, end + 1);
    *text = str_trim(str_from(*text, end + 1));
    if (memchr(quoted.at, '\\', quoted.len) == NULL) {
        *out = str_head(str_from(quoted, 1), quoted.len - 2);
        return BAY_OK;
    }
    bay_err err = json_parse(&doc, quoted, NULL, &self->self->memory, NULL);
    err = err == BAY_OK ? json_str(json_root(&doc), &self->self->memory, out) : err;
    return err == BAY_OK || err == BAY_ERR_NOMEM || err == BAY_ERR_LIMIT ? err : BAY_ERR_SYNTAX;
}

static bay_err name_failed(const lock_reader *self, bay_err err, const char *behind)
{
    return err != BAY_ERR_SYNTAX
               ? memory_failed(self, err)
               : fail(self, err, self->line, "a name in quotes is missing behind \"%s\"", behind);
}

static bool is_digest(bay_str text)
{
    if (text.len != DIGEST_TEXT_BYTES || !str_starts(text, STR("sha256:"))) {
        return false;
    }
    for (size_t i = 7; i < text.len; i++) {
        char c = text.at[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) {
            return false;
        }
    }
    return true;
}

static bool is_time(bay_str text)
{
    static const char form[] = "dddd-dd-ddTdd:dd:ddZ";
    if (text.len != TRUST_TIME_BYTES) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        bool is_digit = text.at[i] >= '0' && text.at[i] <= '9';
        if (form[i] == 'd' ? !is_digit : text.at[i] != form[i]) {
            return false;
        }
    }
    return true;
}

static uint32_t hex4(bay_str text)
{
    uint32_t value = 0;
    for (size_t i = 0; i < 4; i++) {
        char c = i < text.len ? text.at[i] : 'x';
        uint32_t digit = c >= '0' && c <= '9' ? (uint32_t)(c - '0') : (uint32_t)(c - 'a') + 10;
        if (digit > 15) {
            return 0;
        }
        value = value << 4 | digit;
    }
    return value;
}

/* The bytes of the escape at the front; `out_code`: what \u stands for, 0 for another one. */
static size_t escape_at(bay_str text, uint32_t *out_code)
{
    uint32_t code = text.len > 5 && text.at[1] == 'u' ? hex4(str_from(text, 2)) : 0;
    uint32_t low =
        text.len > 11 && text.at[6] == '\\' && text.at[7] == 'u' ? hex4(str_from(text, 8)) : 0;
    if (code >= 0xd800 && code < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
        *out_code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        return 12;
    }
    *out_code = code >= 0xd800 && code < 0xe000 ? 0 : code;
    return text.len < 2 ? text.len : *out_code != 0 ? 6 : 2;
}

/* ---- items ----------------------------------------------------------------------------------- */

/* The item under way is complete: its digest must be that of its definition. */
static bay_err end_item(lock_reader *self)
{
    char digest[DIGEST_TEXT_BYTES + 1];
    if (self->item_line == 0) {
        return BAY_OK;
    }
    const char *kind = trust_kind_text(self->item.kind);
    bay_str name = self->item.name;
    int len = (int)(name.len < 60 ? name.len : 60);
    uint32_t line = self->item_line;
    self->item_line = 0;
    if (self->canon.err != BAY_OK) {
        return memory_failed(self, self->canon.err);
    }
    if (self->canon.len == 0) {
        return fail(self, BAY_ERR_SYNTAX, line, "%s \"%.*s\" has no definition", kind, len,
                    name.at);
    }
    bay_err err = digest_sha256(buf_view(&self->canon), digest);
    if (err != BAY_OK) {
        return memory_failed(self, err);
    }
    if (strcmp(digest, self->item.digest) != 0) {
        return fail(
            self, BAY_ERR_DENIED, line,
            "the digest of %s \"%.*s\" is not that of its definition: one of them was edited; "
            "take the change back and use patchbay pin review",
            kind, len, name.at);
    }
    self->item.canon = buf_view(&self->canon);
    err = trust_lock_put(self->self, self->server, &self->item);
    return err == BAY_OK ? BAY_OK : memory_failed(self, err);
}

static bay_err begin_item(lock_reader *self, trust_kind kind, bay_str rest)
{
    bay_str name = {"", 0};
    bay_err err = end_item(self);
    if (err != BAY_OK) {
        return err;
    }
    if (self->server == NULL) {
        return fail(self, BAY_ERR_SYNTAX, self->line, "an item before the first server");
    }
    bool is_named = kind != TRUST_INSTRUCTIONS && kind != TRUST_CARD;
    err = is_named ? take_name(self, &rest, &name) : BAY_OK;
    if (err != BAY_OK) {
        return name_failed(self, err, trust_kind_text(kind));
    }
    bay_str digest = take_word(&rest);
    self->is_as_written = str_eq(rest, STR("as-written"));
    if (!is_digest(digest) || (rest.len > 0 && !self->is_as_written)) {
        return fail(self, BAY_ERR_SYNTAX, self->line,
                    "a digest is missing: sha256: and 64 digits of 0 to 9 and a to f");
    }
    if (trust_pinned_find(self->server, kind, name) != NULL) {
        return fail(self, BAY_ERR_DUPLICATE, self->line, "%s \"%.*s\" stands twice: keep one",
                    trust_kind_text(kind), (int)(name.len < 60 ? name.len : 60), name.at);
    }
    self->item = (trust_pin){.kind = kind, .name = name};
    memcpy(self->item.digest, digest.at, DIGEST_TEXT_BYTES);
    self->item_line = self->line;
    buf_clear(&self->canon);
    return BAY_OK;
}

/* Appends a piece of a definition; an escape of what is beyond ASCII stands for the character,
 * which the canonical form has. */
static void take_piece(lock_reader *self, bay_str text)
{
    size_t start = 0;
    for (size_t at = 0; !self->is_as_written && at < text.len;) {
        const char *escape = memchr(text.at + at, '\\', text.len - at);
        uint32_t code = 0;
        if (escape == NULL) {
            break;
        }
        at = (size_t)(escape - text.at);
        size_t len = escape_at(str_from(text, at), &code);
        if (code >= 0x80) {
            char bytes[4] = {0};
            size_t count = json_utf8_put(bytes, code);
            buf_str(&self->canon, str_head(str_from(text, start), at - start));
            buf_append(&self->canon, bytes, count);
            start = at + len;
        }
        at += len;
    }
    buf_str(&self->canon, str_from(text, start));
}

/* "| text" or "|>text". */
static bay_err take_definition(lock_reader *self, bay_str text)
{
    if (self->item_line == 0) {
        return fail(self, BAY_ERR_SYNTAX, self->line, "a definition without its item");
    }
    if (str_starts(text, STR("|>"))) {
        take_piece(self, str_from(text, 2));
        return BAY_OK;
    }
    take_piece(self, str_trim(str_from(text, 1)));
    return BAY_OK;
}

/* ---- servers --------------------------------------------------------------------------------- */

static bay_err begin_server(lock_reader *self, bool is_agent, bay_str rest)
{
    bay_str name;
    bay_err err = end_item(self);
    if (err != BAY_OK) {
        return err;
    }
    err = take_name(self, &rest, &name);
    if (err != BAY_OK || rest.len > 0) {
        return name_failed(self, err == BAY_OK ? BAY_ERR_SYNTAX : err,
                           is_agent ? "agent" : "server");
    }
    if (trust_lock_find(self->self, name, is_agent) != NULL) {
        return fail(self, BAY_ERR_DUPLICATE, self->line, "%s \"%.*s\" stands twice: keep one",
                    is_agent ? "agent" : "server", (int)(name.len < 60 ? name.len : 60), name.at);
    }
    err = trust_lock_enter(self->self, name, is_agent, &self->server);
    return err == BAY_OK ? BAY_OK : memory_failed(self, err);
}

static bay_err copy_text(lock_reader *self, bay_str text, bay_str *out)
{
    bay_err err = arena_dup(&self->self->memory, text, out);
    return err == BAY_OK ? BAY_OK : memory_failed(self, err);
}

static bay_err take_seen(lock_reader *self, bay_str rest)
{
    if (self->server == NULL || !is_time(rest)) {
        return fail(self, BAY_ERR_SYNTAX, self->line,
                    "seen needs a time such as 2026-11-27T10:00:00Z");
    }
    return copy_text(self, rest, self->item_line > 0 ? &self->item.seen : &self->server->seen);
}

static bay_err take_approved(lock_reader *self, bay_str rest)
{
    bay_str when = take_word(&rest);
    bay_str by = {"", 0};
    bool is_good = self->server != NULL && is_time(when) && str_eq(take_word(&rest), STR("by"));
    bay_err err = is_good ? take_name(self, &rest, &by) : BAY_ERR_SYNTAX;
    if (err != BAY_OK && err != BAY_ERR_SYNTAX) {
        return memory_failed(self, err);
    }
    if (err != BAY_OK || rest.len > 0 || by.len > TRUST_BY_BYTES) {
        return fail(self, BAY_ERR_SYNTAX, self->line,
                    "approved needs a time and who: 2026-11-27T10:00:00Z by \"name\"");
    }
    bool is_item = self->item_line > 0;
    err = copy_text(self, when, is_item ? &self->item.approved : &self->server->approved);
    return err == BAY_OK ? copy_text(self, by, is_item ? &self->item.by : &self->server->by) : err;
}

static bay_err take_identity(lock_reader *self, bay_str rest)
{
    bay_str text = {"", 0};
    bay_err err = self->server != NULL && self->item_line == 0 ? take_name(self, &rest, &text)
                                                               : BAY_ERR_SYNTAX;
    if (err != BAY_OK && err != BAY_ERR_SYNTAX) {
        return memory_failed(self, err);
    }
    if (err != BAY_OK || rest.len > 0) {
        return fail(self, BAY_ERR_SYNTAX, self->line, "identity belongs to a server, in quotes");
    }
    return copy_text(self, text, &self->server->identity);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static bool is_merge_mark(bay_str line)
{
    return str_starts(line, STR("<<<<<<<")) || str_starts(line, STR("=======")) ||
           str_starts(line, STR(">>>>>>>")) || str_starts(line, STR("|||||||"));
}

static bay_err take_line(lock_reader *self, bay_str line)
{
    trust_kind kind;
    if (is_merge_mark(line)) {
        return fail(self, BAY_ERR_SYNTAX, self->line, "a mark of a merge conflict: resolve it");
    }
    bay_str text = line;
    while (text.len > 0 && (text.at[0] == ' ' || text.at[0] == '\t')) {
        text = str_from(text, 1);
    }
    if (text.len > 0 && text.at[0] == '|') {
        return take_definition(self, text);
    }
    text = str_trim(text);
    if (text.len == 0 || text.at[0] == '#') {
        return BAY_OK;
    }
    bay_str rest = text;
    bay_str word = take_word(&rest);
    if (str_eq(word, STR("server")) || str_eq(word, STR("agent"))) {
        return begin_server(self, str_eq(word, STR("agent")), rest);
    }
    if (trust_kind_find(word, &kind)) {
        return begin_item(self, kind, rest);
    }
    if (str_eq(word, STR("seen"))) {
        return take_seen(self, rest);
    }
    if (str_eq(word, STR("approved"))) {
        return take_approved(self, rest);
    }
    if (str_eq(word, STR("identity"))) {
        return take_identity(self, rest);
    }
    return fail(self, BAY_ERR_SYNTAX, self->line,
                "\"%.*s\" is no word of a lock: server, agent, identity, tool, prompt, resource, "
                "template, instructions, card, seen, approved",
                (int)(word.len < 40 ? word.len : 40), word.at);
}

static bool next_line(lock_reader *self, bay_str *out)
{
    if (self->rest.len == 0) {
        return false;
    }
    *out = str_head(self->rest, str_find(self->rest, '\n'));
    self->rest = str_from(self->rest, out->len + 1);
    self->line++;
    if (str_ends(*out, STR("\r"))) {
        out->len--;
    }
    return true;
}

/* "patchbay.lock 1": the first line that is not empty. */
static bay_err take_version(lock_reader *self)
{
    bay_str line = {"", 0};
    uint64_t version = 0;
    while (line.len == 0) {
        if (!next_line(self, &line)) {
            return BAY_OK; /* an empty lock */
        }
        line = str_trim(line);
    }
    if (is_merge_mark(line)) {
        return fail(self, BAY_ERR_SYNTAX, self->line, "a mark of a merge conflict: resolve it");
    }
    if (!str_eq(take_word(&line), STR("patchbay.lock")) || !str_uint(line, &version)) {
        return fail(self, BAY_ERR_SYNTAX, self->line, "it does not begin with \"patchbay.lock %d\"",
                    TRUST_LOCK_VERSION);
    }
    if (version > TRUST_LOCK_VERSION) {
        return fail(
            self, BAY_ERR_VERSION, self->line,
            "it was written by a newer patchbay (form %llu, this one knows %d): use that one",
            (unsigned long long)version, TRUST_LOCK_VERSION);
    }
    if (version < TRUST_LOCK_VERSION) {
        return fail(self, BAY_ERR_VERSION, self->line,
                    "it is of an older form (%llu): put it aside and approve anew by patchbay pin "
                    "review",
                    (unsigned long long)version);
    }
    return BAY_OK;
}

bay_err trust_lock_read(trust_lock *self, bay_str text, bay_diag *diag)
{
    lock_reader reader = {.self = self, .rest = text, .diag = diag};
    bay_str line;
    if (text.len > TRUST_LOCK_BYTES) {
        return fail(&reader, BAY_ERR_LIMIT, 0, "it is longer than %d MiB", TRUST_LOCK_BYTES >> 20);
    }
    if (!json_is_utf8(text)) {
        return fail(&reader, BAY_ERR_SYNTAX, 0, "it is not UTF-8");
    }
    buf_init(&reader.canon, TRUST_LOCK_BYTES);
    bay_err err = take_version(&reader);
    while (err == BAY_OK && next_line(&reader, &line)) {
        err = take_line(&reader, line);
    }
    err = err == BAY_OK ? end_item(&reader) : err;
    buf_fini(&reader.canon);
    return err;
}

bay_err trust_pinned_definitions(const trust_pinned *self, trust_definitions *out)
{
    bay_err err = BAY_OK;
    for (size_t i = 0; err == BAY_OK && i < self->count; i++) {
        json_doc *doc = arena_alloc(&out->memory, sizeof(*doc));
        const trust_pin *pin = &self->items[i];
        err = doc != NULL ? json_parse(doc, pin->canon, &json_any_depth, &out->memory, NULL)
                          : BAY_ERR_NOMEM;
        err =
            err == BAY_OK ? trust_definitions_add(out, pin->kind, pin->name, json_root(doc)) : err;
    }
    trust_definitions_sort(out);
    return err;
}

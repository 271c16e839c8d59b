#include "auth/oauth_record.h"

#include "auth/oauth_metadata.h"
#include "base/err.h"
#include "wire/base64.h"
#include "json/json.h"
#include "json/writer.h"

enum { RECORD_TEXTS = 9, KEY_BYTES = 4 << 10 };

static const json_limits record_limits = {OAUTH_RECORD_BYTES, 4, 256};

typedef struct record_text {
    bay_str name;
    buf *text;
    size_t max;
} record_text;

static void record_texts(oauth_record *self, record_text out[RECORD_TEXTS])
{
    const record_text texts[RECORD_TEXTS] = {
        {STR("issuer"), &self->issuer, OAUTH_URL_MOST},
        {STR("resource"), &self->resource, 4 * OAUTH_URL_MOST},
        {STR("client"), &self->client_id, OAUTH_URL_MOST},
        {STR("secret"), &self->client_secret, OAUTH_URL_MOST},
        {STR("redirect"), &self->redirect_uri, OAUTH_URL_MOST},
        {STR("access"), &self->access, OAUTH_TOKEN_BYTES},
        {STR("refresh"), &self->refresh, OAUTH_TOKEN_BYTES},
        {STR("scope"), &self->scope, OAUTH_SCOPE_BYTES},
        {STR("key"), &self->key, KEY_BYTES},
    };
    memcpy(out, texts, sizeof(texts));
}

void oauth_record_init(oauth_record *self)
{
    record_text texts[RECORD_TEXTS];
    *self = (oauth_record){0};
    record_texts(self, texts);
    for (size_t i = 0; i < RECORD_TEXTS; i++) {
        buf_init_secret(texts[i].text, texts[i].max);
    }
}

void oauth_record_fini(oauth_record *self)
{
    record_text texts[RECORD_TEXTS];
    record_texts(self, texts);
    for (size_t i = 0; i < RECORD_TEXTS; i++) {
        buf_fini(texts[i].text);
    }
}

bay_err oauth_text_set(buf *text, bay_str value)
{
    size_t max = text->max;
    buf_fini(text); /* which wipes it */
    buf_init_secret(text, max);
    buf_str(text, value);
    bay_err err = text->err;
    if (err != BAY_OK) {
        buf_fini(text);
        buf_init_secret(text, max);
    }
    return err;
}

static void forget(buf *text)
{
    err_ignore(oauth_text_set(text, (bay_str){"", 0})); /* nothing is allocated */
}

void oauth_record_drop_tokens(oauth_record *self)
{
    forget(&self->access);
    forget(&self->refresh);
    forget(&self->scope);
    forget(&self->resource);
    self->is_dpop = self->is_scope_said = false;
    self->obtained_at_ms = self->expires_at_ms = 0;
}

void oauth_record_drop_client(oauth_record *self)
{
    oauth_record_drop_tokens(self);
    forget(&self->client_id);
    forget(&self->client_secret);
    forget(&self->redirect_uri);
    forget(&self->key);
    self->method = 0;
    self->secret_expires_at_ms = 0;
    self->is_registered = false;
}

/* ---- as text --------------------------------------------------------------------------------- */

/* A key has line ends. As base64 it needs no escapes, and so is never decoded into memory that is
 * not wiped. */
static void put_text(json_writer *writer, const record_text *text)
{
    bay_str value = buf_view(text->text);
    if (!str_eq(text->name, STR("key"))) {
        json_put_str(writer, value);
        return;
    }
    size_t opened = json_open_word(writer);
    base64_encode(writer->out, value, BASE64_URL);
    json_close_word(writer, opened);
}

static bay_err take_text(const record_text *text, bay_str value)
{
    if (!str_eq(text->name, STR("key"))) {
        return oauth_text_set(text->text, value);
    }
    return base64_decode(text->text, value, BASE64_URL);
}

bay_err oauth_record_write(const oauth_record *self, buf *out)
{
    record_text texts[RECORD_TEXTS];
    json_writer writer;
    oauth_record *views = (oauth_record *)(uintptr_t)self; /* only read */
    record_texts(views, texts);
    json_writer_init(&writer, out);
    json_open_object(&writer);
    for (size_t i = 0; i < RECORD_TEXTS; i++) {
        if (texts[i].text->len > 0) {
            json_key(&writer, texts[i].name);
            put_text(&writer, &texts[i]);
        }
    }
    const struct {
        bay_str name;
        bool value;
    } flags[] = {
        {STR("legacy"), self->is_legacy},
        {STR("registered"), self->is_registered},
        {STR("dpop"), self->is_dpop},
        {STR("scopeSaid"), self->is_scope_said},
    };
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (flags[i].value) {
            json_key(&writer, flags[i].name);
            json_put_bool(&writer, true);
        }
    }
    const struct {
        bay_str name;
        uint64_t value;
    } numbers[] = {
        {STR("method"), self->method},
        {STR("secretExpires"), self->secret_expires_at_ms},
        {STR("obtained"), self->obtained_at_ms},
        {STR("expires"), self->expires_at_ms},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (numbers[i].value > 0) {
            json_key(&writer, numbers[i].name);
            json_put_uint(&writer, numbers[i].value);
        }
    }
    json_close_object(&writer);
    return out->err;
}

static uint64_t number_of(json_val root, bay_str name)
{
    uint64_t number = 0;
    return json_uint64(json_get(root, name), &number) == BAY_OK ? number : 0;
}

bay_err oauth_record_read(oauth_record *self, bay_str text)
{
    record_text texts[RECORD_TEXTS];
    arena memory;
    json_doc doc;
    oauth_record_fini(self);
    oauth_record_init(self);
    record_texts(self, texts);
    arena_init(&memory, 4 * OAUTH_RECORD_BYTES);
    bay_err err = json_parse(&doc, text, &record_limits, &memory, NULL);
    if (err == BAY_OK && !json_is(json_root(&doc), JSON_OBJECT)) {
        err = BAY_ERR_SYNTAX;
    }
    json_val root = err == BAY_OK ? json_root(&doc) : JSON_NONE;
    for (size_t i = 0; err == BAY_OK && i < RECORD_TEXTS; i++) {
        json_val value = json_get(root, texts[i].name);
        bay_str plain = {"", 0};
        if (json_is(value, JSON_STRING)) {
            err = json_str(value, &memory, &plain);
        }
        if (err == BAY_OK) {
            err = take_text(&texts[i], plain);
        }
    }
    if (err == BAY_OK) {
        self->is_legacy = json_true(json_get(root, STR("legacy")));
        self->is_registered = json_true(json_get(root, STR("registered")));
        self->is_dpop = json_true(json_get(root, STR("dpop")));
        self->is_scope_said = json_true(json_get(root, STR("scopeSaid")));
        self->method = (unsigned)number_of(root, STR("method"));
        self->secret_expires_at_ms = number_of(root, STR("secretExpires"));
        self->obtained_at_ms = number_of(root, STR("obtained"));
        self->expires_at_ms = number_of(root, STR("expires"));
    }
    arena_fini(&memory);
    if (err != BAY_OK) {
        oauth_record_fini(self);
        oauth_record_init(self);
    }
    return err == BAY_ERR_NOMEM || err == BAY_OK ? err : BAY_ERR_SYNTAX;
}

/* Shared by the older forms: words for roles and states, parts with a discriminator, push
 * configurations. */
#include "a2a/dialect_walk.h"

static const bay_str state_names[A2A_STATES] = {
    STR_INIT("unknown"),        STR_INIT("submitted"), STR_INIT("working"),
    STR_INIT("completed"),      STR_INIT("failed"),    STR_INIT("canceled"),
    STR_INIT("input-required"), STR_INIT("rejected"),  STR_INIT("auth-required"),
};

a2a_state dialect_state_named(json_val value)
{
    size_t i = 0;
    while (i < A2A_STATES && !json_str_eq(value, state_names[i])) {
        i++;
    }
    return (a2a_state)i;
}

bay_str dialect_state_name(a2a_state state)
{
    return state_names[state];
}

bay_str dialect_digits(uint64_t number, char out[DIALECT_DIGITS])
{
    size_t at = DIALECT_DIGITS;
    do {
        out[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return (bay_str){out + at, DIALECT_DIGITS - at};
}

void dialect_put_state(dialect *self, json_val value)
{
    bay_str name;
    json_put_word(
        &self->to,
        state_names[json_str_plain(value, &name) ? a2a_state_of(name) : A2A_STATE_UNSPECIFIED]);
}

void dialect_read_role(dialect *self, json_val value)
{
    if (json_str_eq(value, STR("user"))) {
        json_put_word(&self->to, STR("ROLE_USER"));
    } else if (json_str_eq(value, STR("agent"))) {
        json_put_word(&self->to, STR("ROLE_AGENT"));
    } else {
        dialect_refuse(self, STR(""), "must be user or agent");
    }
}

void dialect_write_role(dialect *self, json_val value)
{
    json_put_word(&self->to, json_str_eq(value, STR("ROLE_USER")) ? STR("user") : STR("agent"));
}

/* "2025-05-01T12:00:00.123456", as some peers write it: without a zone. */
static bool lacks_zone(bay_str text)
{
    enum { DAY = 10, SHORTEST = 19 };
    if (text.len < SHORTEST || text.at[DAY] != 'T') {
        return false;
    }
    for (size_t i = DAY + 1; i < text.len; i++) {
        char c = text.at[i];
        if ((c < '0' || c > '9') && c != ':' && c != '.') {
            return false;
        }
    }
    return true;
}

void dialect_read_time(dialect *self, json_val value)
{
    bay_str text;
    if (!json_str_plain(value, &text) || !lacks_zone(text)) {
        json_put_val(&self->to, value);
        return;
    }
    char *whole = arena_alloc(self->memory, text.len + 1);
    if (whole == NULL) {
        self->err = self->err != BAY_OK ? self->err : BAY_ERR_NOMEM;
        return;
    }
    memcpy(whole, text.at, text.len);
    whole[text.len] = 'Z';
    json_put_str(&self->to, (bay_str){whole, text.len + 1});
}

/* ---- parts ------------------------------------------------------------------------------------
 */

static const dialect_row file_rows[] = {
    {STR_INIT("bytes"), STR_INIT("raw"), JSON_STRING, 0, NULL, NULL},
    {STR_INIT("uri"), STR_INIT("url"), JSON_STRING, 0, NULL, NULL},
    {STR_INIT("name"), STR_INIT("filename"), JSON_STRING, 0, NULL, NULL},
    {STR_INIT("mimeType"), STR_INIT("mediaType"), JSON_STRING, 0, NULL, NULL},
};
static const dialect_shape file_shape = DIALECT_SHAPE(file_rows);

static void read_file(dialect *self, json_val value)
{
    bool has_bytes = dialect_is_there(json_get(value, STR("bytes")));
    bool has_uri = dialect_is_there(json_get(value, STR("uri")));
    if (has_bytes == has_uri) {
        dialect_refuse(self, STR(""), has_uri ? "has both bytes and uri" : "has no bytes or uri");
        return;
    }
    dialect_read_members(self, &file_shape, value);
}

static bool is_wrapped(json_val part)
{
    static const bay_str flag = DIALECT_WRAPPED;
    return json_true(dialect_kept_value(part, flag)) &&
           !json_is(json_get(json_get(part, STR("data")), STR("value")), JSON_MISSING);
}

static void read_data(dialect *self, json_val value)
{
    json_put_val(&self->to, is_wrapped(self->object) ? json_get(value, STR("value")) : value);
}

static const dialect_row text_rows[] = {
    {STR_INIT("text"), STR_INIT("text"), JSON_STRING, DIALECT_DUE, NULL, NULL},
};
static const dialect_row file_part_rows[] = {
    {STR_INIT("file"), STR_INIT(""), JSON_OBJECT, DIALECT_DUE | DIALECT_OWN_KEY, read_file, NULL},
    {STR_INIT("metadata"), STR_INIT("metadata"), JSON_OBJECT, 0, NULL, NULL},
};
static const dialect_row data_rows[] = {
    {STR_INIT("data"), STR_INIT("data"), JSON_OBJECT, DIALECT_DUE, read_data, NULL},
};
static const dialect_kept text_kept[] = {
    {DIALECT_KEY("filename"), STR_INIT("filename")},
    {DIALECT_KEY("mediaType"), STR_INIT("mediaType")},
};
static const dialect_kept data_kept[] = {
    {DIALECT_KEY("filename"), STR_INIT("filename")},
    {DIALECT_KEY("mediaType"), STR_INIT("mediaType")},
    {DIALECT_WRAPPED, STR_INIT("")},
};

static void keep_wrapping(dialect_metadata_writer *writer, json_val part)
{
    if (!json_is(json_get(part, STR("data")), JSON_OBJECT)) {
        static const bay_str flag = DIALECT_WRAPPED;
        dialect_keep(writer, flag);
        json_put_bool(&dialect_of(writer)->to, true);
    }
}

static const dialect_shape text_shape = DIALECT_SHAPE_KEEPING(text_rows, text_kept, NULL);
static const dialect_shape file_part_shape = DIALECT_SHAPE(file_part_rows);
static const dialect_shape data_shape = {data_rows, 1, data_kept, 3, keep_wrapping};

static bay_str discriminator(const dialect *self)
{
    return self->form == A2A_FORM_0_1 ? STR("type") : STR("kind");
}

/* By its discriminator (0.1's name is accepted in 0.3 and the reverse), otherwise by its members.
 */
static const dialect_shape *part_shape(const dialect *self, json_val part)
{
    json_val said = json_get(part, discriminator(self));
    if (!dialect_is_there(said)) {
        said = json_get(part, self->form == A2A_FORM_0_1 ? STR("kind") : STR("type"));
    }
    bool is_said = dialect_is_there(said);
    json_val by_name = is_said ? JSON_NONE : part;
    if (json_str_eq(said, STR("text")) || dialect_is_there(json_get(by_name, STR("text")))) {
        return &text_shape;
    }
    if (json_str_eq(said, STR("file")) || dialect_is_there(json_get(by_name, STR("file")))) {
        return &file_part_shape;
    }
    if (json_str_eq(said, STR("data")) || dialect_is_there(json_get(by_name, STR("data")))) {
        return &data_shape;
    }
    return NULL;
}

static void read_part(dialect *self, json_val value)
{
    const dialect_shape *shape = part_shape(self, value);
    if (shape == NULL && json_is(value, JSON_OBJECT)) {
        dialect_refuse(self, discriminator(self), "must be text, file or data");
        return;
    }
    dialect_read_object(self, shape != NULL ? shape : &text_shape, value);
}

static void write_part(dialect *self, json_val value)
{
    json_val text = json_get(value, STR("text"));
    json_val data = json_get(value, STR("data"));
    json_open_object(&self->to);
    json_key_word(&self->to, discriminator(self));
    if (!json_is(text, JSON_MISSING)) {
        json_put_word(&self->to, STR("text"));
        dialect_write_members(self, &text_shape, value);
    } else if (!json_is(data, JSON_MISSING)) {
        json_put_word(&self->to, STR("data"));
        json_key_word(&self->to, STR("data"));
        dialect_put_data(self, data);
        static const dialect_shape rest = {NULL, 0, data_kept, 3, keep_wrapping};
        dialect_write_members(self, &rest, value);
    } else {
        json_put_word(&self->to, STR("file"));
        json_key_word(&self->to, STR("file"));
        dialect_write_object(self, &file_shape, value);
        dialect_copy(self, value, STR("metadata"), STR("metadata"));
    }
    dialect_close_object(self);
}

void dialect_read_parts(dialect *self, json_val value)
{
    dialect_each(self, value, read_part);
}

void dialect_write_parts(dialect *self, json_val value)
{
    dialect_each(self, value, write_part);
}

/* ---- push configurations ----------------------------------------------------------------------
 */

/* The first scheme is used; a configuration without schemes authenticates by its token alone. */
static void read_authentication(dialect *self, json_val value)
{
    json_val schemes = json_get(value, STR("schemes"));
    if (dialect_is_there(schemes) && !json_is(schemes, JSON_ARRAY)) {
        dialect_refuse(self, STR("schemes"), "must be an array");
        return;
    }
    json_val scheme = json_item(schemes, 0);
    if (!dialect_is_there(scheme) && !dialect_is_there(json_get(value, STR("credentials")))) {
        return;
    }
    json_key_lit(&self->to, "authentication");
    json_open_object(&self->to);
    if (!json_is(scheme, JSON_STRING)) {
        dialect_refuse(self, STR("schemes"),
                       dialect_is_there(scheme) ? "must have strings" : "is required");
    } else {
        json_key_lit(&self->to, "scheme");
        json_put_val(&self->to, scheme);
    }
    dialect_copy(self, value, STR("credentials"), STR("credentials"));
    dialect_close_object(self);
}

static void write_authentication(dialect *self, json_val value)
{
    json_open_object(&self->to);
    json_key_lit(&self->to, "schemes");
    json_open_array(&self->to);
    json_val scheme = json_get(value, STR("scheme"));
    if (dialect_is_there(scheme)) {
        json_put_val(&self->to, scheme);
    }
    dialect_close_array(self);
    dialect_copy(self, value, STR("credentials"), STR("credentials"));
    dialect_close_object(self);
}

static const dialect_row push_rows[] = {
    {STR_INIT("id"), STR_INIT("id"), JSON_STRING, 0, NULL, NULL},
    {STR_INIT("url"), STR_INIT("url"), JSON_STRING, DIALECT_DUE, NULL, NULL},
    {STR_INIT("token"), STR_INIT("token"), JSON_STRING, 0, NULL, NULL},
    {STR_INIT("authentication"), STR_INIT("authentication"), JSON_OBJECT, DIALECT_OWN_KEY,
     read_authentication, write_authentication},
};
static const dialect_shape push_shape = DIALECT_SHAPE(push_rows);

void dialect_read_push(dialect *self, json_val value)
{
    dialect_read_object(self, &push_shape, value);
}

void dialect_write_push(dialect *self, json_val value)
{
    dialect_write_object(self, &push_shape, value);
}

void dialect_read_push_members(dialect *self, json_val value)
{
    dialect_read_members(self, &push_shape, value);
}

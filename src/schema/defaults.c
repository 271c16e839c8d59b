#include "schema/defaults.h"

#include "base/check.h"
#include "base/err.h"
#include "base/str.h"
#include "schema/schema.h"
#include "json/build.h"

/* The member of the same name as `key` has; most names have no escapes. */
static json_val member_of(json_val object, json_val key)
{
    bay_str name;
    if (json_str_plain(key, &name)) {
        return json_get(object, name);
    }
    json_iter each = json_iter_of(object);
    while (json_is(object, JSON_OBJECT) && json_next(&each)) {
        if (json_str_same(each.key, key)) {
            return each.value;
        }
    }
    return JSON_NONE;
}

static bool is_required(json_val root, json_val key)
{
    json_iter each = json_iter_of(json_get(root, STR("required")));
    while (json_next(&each)) {
        if (json_str_same(each.value, key)) {
            return true;
        }
    }
    return false;
}

bool schema_has_defaults(json_val root)
{
    json_iter each = json_iter_of(json_get(root, STR("properties")));
    while (json_next(&each)) {
        if (!json_is(json_get(each.value, STR("default")), JSON_MISSING) ||
            schema_has_defaults(each.value)) {
            return true;
        }
    }
    json_val items = json_get(root, STR("items"));
    return json_is(items, JSON_OBJECT) && schema_has_defaults(items);
}

/* Does this property give `instance`, an object, a default? */
static json_val default_for(json_val root, const json_iter *property, json_val instance,
                            defaults_of which)
{
    json_val value = json_get(property->value, STR("default"));
    bool is_lacking = !json_is(value, JSON_MISSING) &&
                      json_is(member_of(instance, property->key), JSON_MISSING) &&
                      (which == DEFAULTS_OF_ALL || !is_required(root, property->key));
    return is_lacking ? value : JSON_NONE;
}

bool schema_lacks_default(json_val root, json_val instance, defaults_of which)
{
    bool is_object = json_is(instance, JSON_OBJECT);
    json_iter each = json_iter_of(is_object ? json_get(root, STR("properties")) : JSON_NONE);
    while (json_next(&each)) {
        json_val value = member_of(instance, each.key);
        if (!json_is(default_for(root, &each, instance, which), JSON_MISSING) ||
            (!json_is(value, JSON_MISSING) && schema_lacks_default(each.value, value, which))) {
            return true;
        }
    }
    json_val items = json_get(root, STR("items"));
    each = json_iter_of(json_is(items, JSON_OBJECT) && json_is(instance, JSON_ARRAY) ? instance
                                                                                     : JSON_NONE);
    while (json_next(&each)) {
        if (schema_lacks_default(items, each.value, which)) {
            return true;
        }
    }
    return false;
}

static void put_object(json_val root, json_val instance, defaults_of which, json_writer *out)
{
    json_val properties = json_get(root, STR("properties"));
    json_open_object(out);
    json_iter each = json_iter_of(instance);
    while (json_next(&each)) {
        json_key_val(out, each.key);
        schema_put_defaults(member_of(properties, each.key), each.value, which, out);
    }
    each = json_iter_of(properties);
    while (json_next(&each)) {
        json_val value = default_for(root, &each, instance, which);
        if (!json_is(value, JSON_MISSING)) {
            json_key_val(out, each.key);
            json_put_val(out, value);
        }
    }
    json_close_object(out);
}

void schema_put_defaults(json_val root, json_val instance, defaults_of which, json_writer *out)
{
    json_val items = json_get(root, STR("items"));
    if (json_is(instance, JSON_OBJECT) && json_is(json_get(root, STR("properties")), JSON_OBJECT)) {
        put_object(root, instance, which, out);
    } else if (json_is(instance, JSON_ARRAY) && json_is(items, JSON_OBJECT)) {
        json_open_array(out);
        json_iter each = json_iter_of(instance);
        while (json_next(&each)) {
            schema_put_defaults(items, each.value, which, out);
        }
        json_close_array(out);
    } else {
        json_put_val(out, instance);
    }
}

/* ---- checking -------------------------------------------------------------------------------- */

typedef struct checker {
    json_val root;
    bool with_choices;
    buf path; /* of the member: a JSON pointer */
    bay_diag *diag;
} checker;

/* `part` alone, with the definitions that it may refer to. */
static bay_err compile_part(const checker *self, json_val part, schema **out, bay_diag *diag)
{
    static const bay_str kept[] = {STR_INIT("$schema"), STR_INIT("$defs"), STR_INIT("definitions")};
    json_builder builder;
    json_val made;
    json_writer *writer = json_builder_init(&builder, NULL, SIZE_MAX);
    json_open_object(writer);
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        json_val value = json_get(self->root, kept[i]);
        if (!json_is(value, JSON_MISSING)) {
            json_key(writer, kept[i]);
            json_put_val(writer, value);
        }
    }
    json_key_lit(writer, "allOf");
    json_open_array(writer);
    json_put_val(writer, part);
    json_close_array(writer);
    json_close_object(writer);
    bay_err err = json_builder_view(&builder, &made);
    err = err == BAY_OK ? schema_compile(made, NULL, out, diag) : err;
    json_builder_drop(&builder);
    return err;
}

static bay_err check_constant(const checker *self, const schema *compiled, const char *what,
                              json_val value)
{
    schema_failures failures;
    bay_err err = schema_check(compiled, value, NULL, &failures);
    if (err == BAY_OK || err == BAY_ERR_NOMEM) {
        return err;
    }
    bay_str path = buf_view(&self->path);
    bay_str text = failures.count > 0 ? failures.item[0].text : str_of(bay_err_text(err));
    return diag_set(self->diag, BAY_ERR_INVALID, "%s of %.*s breaks its own schema: %.*s", what,
                    BAY_STR(str_head(path, 80)), BAY_STR(text));
}

static bay_err check_choices(const checker *self, const schema *compiled, json_val part)
{
    json_val titled = json_get(part, STR("oneOf"));
    titled = json_is(titled, JSON_MISSING) ? json_get(part, STR("anyOf")) : titled;
    json_iter each = json_iter_of(json_get(part, STR("enum")));
    bay_err err = BAY_OK;
    while (err == BAY_OK && json_next(&each)) {
        err = check_constant(self, compiled, "a choice", each.value);
    }
    each = json_iter_of(titled);
    while (err == BAY_OK && json_next(&each)) {
        json_val value = json_get(each.value, STR("const"));
        if (!json_is(value, JSON_MISSING)) {
            err = check_constant(self, compiled, "a choice", value);
        }
    }
    return err;
}

/* The schema of one member or item. */
static bay_err check_part(const checker *self, json_val part)
{
    json_val value = json_get(part, STR("default"));
    bool has_choices =
        self->with_choices && (!json_is(json_get(part, STR("enum")), JSON_MISSING) ||
                               !json_is(json_get(part, STR("oneOf")), JSON_MISSING) ||
                               !json_is(json_get(part, STR("anyOf")), JSON_MISSING));
    if (json_is(value, JSON_MISSING) && !has_choices) {
        return BAY_OK;
    }
    schema *compiled = NULL;
    bay_diag diag = {0};
    bay_err err = compile_part(self, part, &compiled, &diag);
    if (err != BAY_OK) {
        return err == BAY_ERR_NOMEM
                   ? err
                   : diag_set(self->diag, BAY_ERR_UNSUPPORTED,
                              "the default of %.*s cannot be checked by itself: %s",
                              BAY_STR(str_head(buf_view(&self->path), 80)), diag.text);
    }
    err = json_is(value, JSON_MISSING) ? BAY_OK
                                       : check_constant(self, compiled, "the default", value);
    if (err == BAY_OK && has_choices) {
        err = check_choices(self, compiled, part);
    }
    schema_free(compiled);
    return err;
}

static bay_err check_below(checker *self, json_val root)
{
    size_t len = self->path.len;
    json_iter each = json_iter_of(json_get(root, STR("properties")));
    while (json_next(&each)) {
        bay_str quoted = json_raw(each.key);
        self->path.len = len;
        buf_char(&self->path, '/');
        buf_str(&self->path, str_head(str_from(quoted, 1), quoted.len - 2));
        bay_err err = check_part(self, each.value);
        err = err == BAY_OK ? check_below(self, each.value) : err;
        if (err != BAY_OK) {
            return err;
        }
    }
    json_val items = json_get(root, STR("items"));
    if (!json_is(items, JSON_OBJECT)) {
        return BAY_OK;
    }
    self->path.len = len;
    buf_lit(&self->path, "/0");
    bay_err err = check_part(self, items);
    return err == BAY_OK ? check_below(self, items) : err;
}

bay_err schema_check_defaults(json_val root, bool with_choices, bay_diag *diag)
{
    checker self = {.root = root, .with_choices = with_choices, .diag = diag};
    buf_init(&self.path, 64 << 10);
    bay_err err = check_below(&self, root);
    buf_fini(&self.path);
    return err;
}

/* Completing and checking a form. The defaults are the server's own JSON: they are spliced, never
 * read; one that breaks its own schema is found by the check like anything else. */
#include "sdk/client_form.h"

#include "base/err.h"
#include "json/writer.h"

bay_err form_complete(json_val wanted, json_val content, arena *memory, buf *out)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_put_members(&writer, content, NULL, 0);
    json_iter iter = json_iter_of(json_get(wanted, STR("properties")));
    while (json_next(&iter)) {
        json_val value = json_get(iter.value, STR("default"));
        bay_str name = {0};
        if (json_is(value, JSON_MISSING)) {
            continue;
        }
        bay_err err = json_str(iter.key, memory, &name);
        if (err != BAY_OK) {
            return err;
        }
        if (json_is(json_get(content, name), JSON_MISSING)) {
            json_key(&writer, name);
            json_put_val(&writer, value);
        }
    }
    json_close_object(&writer);
    return out->err;
}

bay_err form_check(const schema *compiled, bay_str form, bay_diag *diag)
{
    arena memory;
    json_doc doc;
    schema_failures failures;
    arena_init(&memory, 64 * form.len + 65536);
    bay_err err = json_parse(&doc, form, NULL, &memory, diag);
    if (err == BAY_OK) {
        err = schema_check(compiled, json_root(&doc), NULL, &failures);
        if (err == BAY_NOMEM) {
            diag_set(diag, err, "out of memory");
        } else if (err != BAY_OK) {
            diag_set(
                diag, BAY_INVALID, "the form breaks the server's schema: %.*s",
                BAY_STR(failures.count > 0 ? failures.item[0].text : str_of(bay_err_text(err))));
            err = BAY_INVALID;
        }
    }
    arena_fini(&memory);
    return err;
}

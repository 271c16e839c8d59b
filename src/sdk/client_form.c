/* Completing and checking a form. The defaults are the server's own JSON: they are spliced, never
 * read; one that breaks its own schema is found by the check like anything else. */
#include "sdk/client_form.h"

#include "base/err.h"
#include "json/writer.h"

bay_err form_complete(json_val wanted, json_val content, arena *memory, json_writer *out)
{
    json_open_object(out);
    json_put_members(out, content, NULL, 0);
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
            json_key(out, name);
            json_put_val(out, value);
        }
    }
    json_close_object(out);
    return out->out->err;
}

bay_err form_check(const schema *compiled, json_val form, bay_diag *diag)
{
    schema_failures failures;
    bay_err err = schema_check(compiled, form, NULL, &failures);
    if (err == BAY_ERR_NOMEM) {
        diag_set(diag, err, "out of memory");
    } else if (err != BAY_OK) {
        diag_set(diag, BAY_ERR_INVALID, "the form breaks the server's schema: %.*s",
                 BAY_STR(failures.count > 0 ? failures.item[0].text : str_of(bay_err_text(err))));
        err = BAY_ERR_INVALID;
    }
    return err;
}

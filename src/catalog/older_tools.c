#include "catalog/older_tools.h"

#include "base/str.h"

bool older_tools_is_free(json_val tool)
{
    json_val schema = json_get(tool, STR("outputSchema"));
    return !json_is(schema, JSON_MISSING) &&
           !json_str_eq(json_get(schema, STR("type")), STR("object"));
}

void older_tools_put(json_writer *out, json_val tool, bay_str shown, bay_str describe,
                     bool gains_tasks)
{
    static const bay_str name = STR_INIT("name");
    static const bay_str description = STR_INIT("description");
    static const bay_str schema = STR_INIT("outputSchema");
    const bay_str replaced[] = {name, schema, description};
    bool is_described = describe.at != NULL;
    json_open_object(out);
    json_key(out, name);
    json_put_str(out, shown);
    if (is_described) {
        json_key(out, description);
        json_put_str(out, describe);
    }
    json_put_members(out, tool, replaced, is_described ? 3 : 2);
    if (gains_tasks) {
        json_key_lit(out, "execution");
        json_put_raw(out, STR("{\"taskSupport\":\"optional\"}"));
    }
    json_close_object(out);
}

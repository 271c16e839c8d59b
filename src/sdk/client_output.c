/* Results of tools against the outputSchema that the latest list of tools has for them (mcp
 * 2025-06-18 server/tools, Output Schema: clients SHOULD validate). A schema is compiled when its
 * first result arrives, and kept with the list. Lists are not fetched for this: of a tool that no
 * list has named, nothing is checked. */
#include <stdio.h>

#include "base/log.h"
#include "base/str.h"
#include "sdk/client_parts.h"

enum { FAULT_BYTES = 200 }; /* of what is said of one result */

/* BAY_ERR_PROTOCOL: `out` says what is wrong. BAY_ERR_NOMEM: that cannot be told. */
static bay_err check_output(list_entry *tool, json_val result, char *out)
{
    schema_failures failures;
    bay_diag diag = {0};
    json_val structured = json_get(result, STR("structuredContent"));
    bay_err err = BAY_OK;
    if (tool->output == NULL) {
        err =
            schema_compile(json_get(tool->value, STR("outputSchema")), NULL, &tool->output, &diag);
    }
    if (err != BAY_OK) {
        (void)snprintf(out, FAULT_BYTES, "its outputSchema cannot be used: %.150s", diag.text);
    } else if (json_is(structured, JSON_MISSING)) {
        (void)snprintf(out, FAULT_BYTES,
                       "it has an outputSchema, and its result no structuredContent");
        err = BAY_ERR_PROTOCOL;
    } else if ((err = schema_check(tool->output, structured, NULL, &failures)) != BAY_OK) {
        bay_str why = err != BAY_ERR_NOMEM && failures.count > 0 ? failures.item[0].text
                                                                 : str_of(bay_err_text(err));
        (void)snprintf(out, FAULT_BYTES, "its structuredContent breaks its outputSchema: %.*s",
                       BAY_STR(str_head(why, 140)));
    }
    return err == BAY_OK || err == BAY_ERR_NOMEM ? err : BAY_ERR_PROTOCOL;
}

bool sdk_output_admits(bay_request *request, json_val result)
{
    char fault[FAULT_BYTES];
    bay_client *client = request->client;
    bay_output_check check = client->options.output_check;
    if (check == BAY_OUTPUT_CHECK_OFF || !str_eq(request->method, STR("tools/call")) ||
        json_true(json_get(result, STR("isError"))) ||
        json_str_eq(json_get(result, STR("resultType")), STR("task"))) {
        return true;
    }
    list_entry *tool = sdk_lists_output_of(client, json_get(request->params, STR("name")));
    bay_err err = tool != NULL ? check_output(tool, result, fault) : BAY_OK;
    if (err == BAY_OK) {
        return true;
    }
    if (err == BAY_ERR_NOMEM || check == BAY_OUTPUT_CHECK_REFUSE) {
        sdk_request_break(request, err, err == BAY_ERR_NOMEM ? NULL : fault);
        return false;
    }
    LOG(LOG_WARN, "client", "the tool \"%.*s\" at %.100s: %s", BAY_STR(str_head(tool->name, 100)),
        client->base.shown, fault);
    return true;
}

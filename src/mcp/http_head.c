#include "mcp/http_head.h"

#include "base/str.h"

enum { LONGEST = 20 };

/* No two have the same length, so a field's length selects the only candidate. */
static const struct {
    bay_str text;
    head_name name;
} names_by_length[LONGEST + 1] = {
    [3] = {STR_INIT("Via"), HEAD_VIA},
    [6] = {STR_INIT("Accept"), HEAD_ACCEPT},
    [8] = {STR_INIT("Mcp-Name"), HEAD_NAME},
    [10] = {STR_INIT("Mcp-Method"), HEAD_METHOD},
    [12] = {STR_INIT("Content-Type"), HEAD_CONTENT_TYPE},
    [13] = {STR_INIT("Last-Event-ID"), HEAD_LAST_EVENT_ID},
    [14] = {STR_INIT("Mcp-Session-Id"), HEAD_SESSION_ID},
    [LONGEST] = {STR_INIT("MCP-Protocol-Version"), HEAD_VERSION},
};

void http_head_read(http_head *out, const mcp_http_request *request)
{
    *out = (http_head){.request = request};
    for (size_t i = 0; i < request->field_count; i++) {
        const http_field *field = &request->fields[i];
        if (field->name.len > LONGEST || field->name.len == 0 ||
            !str_eq_nocase(field->name, names_by_length[field->name.len].text)) {
            continue;
        }
        head_name name = names_by_length[field->name.len].name;
        if (out->count[name]++ == 0) {
            out->at[name] = field->value;
        }
    }
}

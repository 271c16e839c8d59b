#include "mcp/icons.h"

#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

static const bay_str member = STR_INIT("icons");

static bool has_prefix(bay_str text, bay_str prefix)
{
    return text.len > prefix.len && str_eq_nocase(str_head(text, prefix.len), prefix);
}

/* mcp 2025-11-25 basic, Icons: consumers MUST reject other schemes, such as javascript:, file:, ftp:
 * and ws:. data:text/html would be a page of its own. */
bool mcp_icon_is_safe(json_val icon)
{
    json_val src = json_get(icon, STR("src"));
    bay_str text;
    arena memory;
    if (!json_is(src, JSON_STRING)) {
        return true;
    }
    arena_init(&memory, SIZE_MAX); /* what is decoded is no longer than what was received */
    bool is_safe = json_str(src, &memory, &text) == BAY_OK &&
                   (has_prefix(text, STR("https://")) || has_prefix(text, STR("data:image/")));
    arena_fini(&memory);
    return is_safe;
}

bool mcp_icons_are_safe(json_val definition)
{
    json_iter iter = json_iter_of(json_get(definition, member));
    while (json_next(&iter)) {
        if (!mcp_icon_is_safe(iter.value)) {
            return false;
        }
    }
    return true;
}

void mcp_icons_put_safe(json_writer *out, json_val definition)
{
    bool is_open = false;
    json_iter iter = json_iter_of(json_get(definition, member));
    json_open_object(out);
    json_put_members(out, definition, &member, 1);
    while (json_next(&iter)) {
        if (!mcp_icon_is_safe(iter.value)) {
            continue;
        }
        if (!is_open) {
            json_key(out, member);
            json_open_array(out);
            is_open = true;
        }
        json_put_val(out, iter.value);
    }
    if (is_open) {
        json_close_array(out);
    }
    json_close_object(out);
}

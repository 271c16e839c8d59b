/* Icons of tools, resources, templates and prompts. Whoever shows an icon fetches what its `src`
 * names, or renders it: only https: URLs, and data: URIs of images, are passed on. */
#ifndef MCP_ICONS_H
#define MCP_ICONS_H

#include "json/build.h"

/* Is its `src` such a URI? False also where there is no memory to tell. True where it is no string:
 * that names nothing, and is refused by its shape.
 * Source: mcp 2025-11-25 basic, Icons. */
bool mcp_icon_is_safe(json_val icon);

/* Are all icons of this definition? One without icons: true. */
bool mcp_icons_are_safe(json_val definition);

/* Writes the definition without the icons that are not; without the member if none is left. */
void mcp_icons_put_safe(json_writer *out, json_val definition);

#endif

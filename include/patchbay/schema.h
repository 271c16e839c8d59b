/* Schemas from tables: what a tool takes and gives, what a prompt takes, what a form asks for, field
 * by field.
 *
 *     static const bay_field input[] = {
 *         {"city", BAY_TYPE_STRING, "Name of the city", .is_required = true},
 *         {"days", BAY_TYPE_INTEGER, "How many", .min = "1", .max = "14", .default_value = "3"},
 *         {0},
 *     };
 *     bay_server_tool(server, "forecast", "The weather of the next days.", input, forecast, NULL);
 *
 * The table is rendered to JSON Schema 2020-12 and checked as a hand-written schema is: members that
 * it does not name are refused, and what is absent gets its default before the handler runs. A table
 * that contradicts itself (a default that its own bounds refuse, bounds that leave nothing, a format
 * for a number) is an error of registration.
 *
 * For the whole header:
 * Owns: a table and what it points to is read during the call that it is given to. Errors: those of
 * the function that it is given to. Units: lengths in characters (code points). Threads: any.
 * Source: JSON Schema 2020-12; MCP server/tools, client/elicitation; mcp 2026-07-28 server/tools,
 * x-mcp-header. */
#ifndef PATCHBAY_SCHEMA_H
#define PATCHBAY_SCHEMA_H

#include <patchbay/json.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One field: its name and type, and by their names whatever else there is to say. What is 0 or NULL
 * says nothing. Numbers are texts, so that 0 is a number like others and none is rounded. */
typedef struct bay_field {
    const char *name; /* NULL ends the table */
    bay_type type;
    const char *description;
    bool is_required;
    const char *default_value; /* of a string: its text; of anything else: JSON */
    /* Of a number: the smallest and the largest; of a string: characters; of an array: items. */
    const char *min;
    const char *max;
    const char *above; /* of a number: it is larger than this; smaller than `below` */
    const char *below;
    const char *const *choices;       /* the only values, as default_value; NULL ends them */
    const char *const *choice_titles; /* a title for each of them */
    const char *pattern;              /* of a string: a regular expression (ECMA-262) */
    const char *format;               /* of a string: "date", "email", "uri", … */
    const struct bay_field *items;    /* of an array: each item; its name is not looked at */
    const struct bay_field *fields;   /* of an object: its members, a table */
    const char *title;
    const char *header;      /* of a tool: the HTTP header field Mcp-Param-… that repeats it */
    const void *reserved[4]; /* of later versions; zero */
} bay_field;

/* The JSON Schema of a table (NULL: of an object without members), to be extended or shown. NULL:
 * out of memory; a table that contradicts itself is an error of the bay_json. */
BAY_API bay_json *bay_fields_json(const bay_field *fields);

#ifdef __cplusplus
}
#endif
#endif

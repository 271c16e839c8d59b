/* A YAML or JSON file of a command (contracts), as JSON. */
#ifndef CONFIG_DOCUMENT_H
#define CONFIG_DOCUMENT_H

#include "base/arena.h"
#include "config/config.h"
#include "json/json.h"

enum { CONFIG_DOCUMENT_BYTES = 4 << 20 }; /* of the JSON */

/* Reads `text`, the content of the file `name`. A plain scalar is null, true, false or a number where YAML's core
 * schema says so, and a text otherwise; ${NAME} is not replaced. The document is made in `memory`.
 * Errors: `report` says what is wrong and where, except for BAY_ERR_NOMEM. */
bay_err config_document_read(bay_str text, bay_str name, arena *memory, json_doc *out,
                             config_report *report) BAY_MUST_CHECK;
/* The same of a file; a pipe has `timeout_ms` to end. Blocking.
 * Errors: with `diag`: BAY_ERR_INVALID: it says what is wrong and in which line; BAY_ERR_IO; BAY_ERR_LIMIT;
 * BAY_ERR_NOMEM. */
bay_err config_document_load(const char *path, uint32_t timeout_ms, arena *memory, json_doc *out,
                             bay_diag *diag) BAY_MUST_CHECK;
/* The line of the file in which a value of such a document stands, from 1. */
uint32_t config_document_line(json_val value);

#endif

/* Files of contracts, of a gateway's configuration and of commands. Blocking. */
#ifndef GATEWAY_CONTRACT_FILES_H
#define GATEWAY_CONTRACT_FILES_H

#include "trust/contract.h"

enum { CONTRACT_FILES = 1000 };

/* The paths of the *.yaml and *.json of a folder, sorted by name; or `path` itself, if it is a file. They lie in
 * `memory`, each ends in NUL.
 * Errors: BAY_ERR_NOT_FOUND (there is none), BAY_ERR_IO, BAY_ERR_LIMIT, BAY_ERR_NOMEM, with `diag`. */
bay_err contract_files_list(const char *path, arena *memory, const char **out[], size_t *out_count,
                            bay_diag *diag) BAY_MUST_CHECK;

/* Reads one file. `out` and what it views lie in `memory`.
 * Errors: BAY_ERR_INVALID, with the line in `diag`; BAY_ERR_IO, BAY_ERR_LIMIT, BAY_ERR_NOMEM, with `diag`. */
bay_err contract_file_read(const char *path, arena *memory, trust_contracts *out,
                           bay_diag *diag) BAY_MUST_CHECK;

#endif

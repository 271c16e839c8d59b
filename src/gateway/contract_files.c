#include "gateway/contract_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/str.h"
#include "config/document.h"

enum { PATH_BYTES = 4096, READ_MS = 0 /* a FIFO is an error */ };

/* ---- one file -------------------------------------------------------------------------------- */

bay_err contract_file_read(const char *path, arena *memory, trust_contracts *out, bay_diag *diag)
{
    json_val place = JSON_NONE;
    bay_diag why = {0};
    json_doc *doc = arena_alloc(memory, sizeof(*doc));
    if (doc == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "%s: out of memory", path);
    }
    bay_err err = config_document_load(path, READ_MS, memory, doc, diag);
    if (err != BAY_OK) {
        return err;
    }
    err = trust_contracts_read(json_root(doc), memory, out, &place, &why);
    if (err == BAY_ERR_INVALID) {
        return diag_set(diag, err, "%s:%u: %s", path, config_document_line(place), why.text);
    }
    return err == BAY_OK ? err : diag_set(diag, err, "%s: %s", path, bay_err_text(err));
}

/* ---- a folder -------------------------------------------------------------------------------- */

static bool is_contract_file(const char *name)
{
    bay_str text = str_of(name);
    return name[0] != '.' && (str_ends(text, STR(".yaml")) || str_ends(text, STR(".json")));
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bay_err add_path(const char *folder, const char *name, arena *memory, const char **out)
{
    char path[PATH_BYTES];
    bay_str copy;
    int len = snprintf(path, sizeof(path), "%s%s%s", folder, name[0] != '\0' ? "/" : "", name);
    if (len < 0 || (size_t)len >= sizeof(path)) {
        return BAY_ERR_LIMIT;
    }
    bay_err err = arena_dup(memory, (bay_str){path, (size_t)len}, &copy);
    *out = copy.at;
    return err;
}

static bay_err list_folder(const char *path, DIR *folder, arena *memory, const char **out,
                           size_t *out_count)
{
    const struct dirent *entry;
    size_t count = 0;
    bay_err err = BAY_OK;
    while (err == BAY_OK && (entry = readdir(folder)) != NULL) {
        if (is_contract_file(entry->d_name)) {
            err = count < CONTRACT_FILES ? add_path(path, entry->d_name, memory, &out[count])
                                         : BAY_ERR_LIMIT;
            count += err == BAY_OK;
        }
    }
    qsort(out, count, sizeof(*out), compare_paths);
    *out_count = count;
    return err == BAY_OK && count == 0 ? BAY_ERR_NOT_FOUND : err;
}

static bay_err list_files(const char *path, arena *memory, const char **out, size_t *out_count)
{
    struct stat found;
    if (stat(path, &found) != 0) {
        return BAY_ERR_IO;
    }
    if (!S_ISDIR(found.st_mode)) {
        *out_count = 1;
        return add_path(path, "", memory, &out[0]);
    }
    DIR *folder = opendir(path);
    bay_err err = folder != NULL ? list_folder(path, folder, memory, out, out_count) : BAY_ERR_IO;
    if (folder != NULL) {
        closedir(folder);
    }
    return err;
}

bay_err contract_files_list(const char *path, arena *memory, const char **out[], size_t *out_count,
                            bay_diag *diag)
{
    const char **paths = arena_array(memory, CONTRACT_FILES, sizeof(*paths));
    bay_err err = paths != NULL ? list_files(path, memory, paths, out_count) : BAY_ERR_NOMEM;
    if (err == BAY_OK) {
        *out = paths;
        return BAY_OK;
    }
    return diag_set(diag, err, "%s: %s", path,
                    err == BAY_ERR_IO          ? strerror(errno)
                    : err == BAY_ERR_NOT_FOUND ? "no *.yaml and no *.json in it"
                    : err == BAY_ERR_LIMIT     ? "more than 1,000 files: split the folder"
                                               : "out of memory");
}
